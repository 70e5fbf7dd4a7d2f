//! Stop requests: in time, at the deadline, in order.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use wincimg_testkit::wine::Wine;

use super::harness::{RunningCommand, run, shim, start};

/// Starts the shim, waits until its program is ready and asks to stop.
fn stopped(wine: &Wine, words: &str) -> RunningCommand {
    let mut running = start(wine, words);
    running.wait_for("ready");
    running.ask_to_stop();
    running
}

pub(crate) fn a_program_that_is_told_has_its_time_to_clean_up(wine: &Wine) {
    // The pre-stop command stops it, because wine delivers no CTRL_BREAK.
    stopped(
        wine,
        "--stop-timeout 9 --stop-signal none --pre-stop 'probe.exe --do set clean-up' \
         -- probe.exe --do until clean-up 1 7",
    )
    .end()
    .assert_code(7)
    .assert_order(&[
        "asked to stop (ctrl-c), 9 s left",
        "told",
        "clean",
        "stopped in time",
    ])
    .assert_stopping_took(1.0, 5.0);
}

pub(crate) fn a_program_that_ignores_everything_is_ended_at_the_deadline(wine: &Wine) {
    stopped(wine, "--stop-timeout 1.5 -- probe.exe --do ignore")
        .end()
        .assert_code(124)
        .assert_printed("error: the program did not end within the stop time; ending it")
        .assert_stopping_took(1.5, 4.0);
}

pub(crate) fn a_second_request_is_harmless(wine: &Wine) {
    let mut running = stopped(
        wine,
        "--stop-timeout 9 --stop-signal none --pre-stop 'probe.exe --do set twice' \
         -- probe.exe --do until twice 1 7",
    );
    running.wait_for("told");
    running.ask_to_stop();
    running.ask_to_stop();
    let ended = running.end();
    ended.assert_code(7).assert_printed("clean");
    assert_eq!(ended.printed.matches("asked to stop").count(), 1);
}

pub(crate) fn ctrl_break_is_sent_to_the_program_s_own_group(wine: &Wine) {
    let mut command = shim(wine, "--stop-timeout 1 -- probe.exe --do ignore");
    command.env("WINEDEBUG", "trace+console");
    let mut running = RunningCommand::start(command);
    let started = running.wait_for("started probe.exe");
    running.wait_for("ready");
    running.ask_to_stop();
    let (_, id) = started.split_once("(process ").unwrap();
    let id: u32 = id.split(')').next().unwrap().parse().unwrap();
    // CTRL_BREAK_EVENT is 1; the group has the id of its first process.
    running
        .end()
        .assert_code(124)
        .assert_printed(&format!("GenerateConsoleCtrlEvent (1, {id:x})"));
}

/// Runs the shim on a terminal and types ^C there.
///
/// The shell that `script` starts is replaced by wine: dash would handle the ^C itself and exit
/// with 130.
fn with_ctrl_c_typed(wine: &Wine, words: &str) -> super::harness::CommandOutput {
    let shim = shim(wine, "");
    let loader = shim.get_program().to_string_lossy();
    let script = format!(
        "(sleep 2; printf '\\003'; sleep 3) | script -qec 'exec {loader} shim.exe {words}' /dev/null"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("TERM", "dumb");
    command.current_dir(wine.drive());
    for (name, value) in shim.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    run(command)
}

pub(crate) fn ctrl_c_of_the_console_reaches_a_program_that_wants_it(wine: &Wine) {
    with_ctrl_c_typed(
        wine,
        "--stop-timeout 2 --stop-signal ctrl-c -- probe.exe --do clean-up 0.2 9",
    )
    .assert_code(9)
    .assert_order(&["event 0", "clean"]);
}

pub(crate) fn ctrl_c_of_the_console_does_not_reach_one_that_wants_ctrl_break(wine: &Wine) {
    with_ctrl_c_typed(wine, "--stop-timeout 1 -- probe.exe --do until never 0 9")
        .assert_code(124)
        .assert_printed("asked to stop (ctrl-c)");
}

const TOLD_TO_CLOSE: [&str; 4] = [
    "query-end-session", "end-session 1", "close", "stopped in time",
];

pub(crate) fn a_window_is_told_of_the_end_and_closed(wine: &Wine) {
    stopped(
        wine,
        "--stop-timeout 9 --stop-signal close -- probe.exe --do window one",
    )
    .end()
    .assert_code(5)
    .assert_order(&TOLD_TO_CLOSE);
}

pub(crate) fn a_windowed_program_is_closed_without_being_asked_for(wine: &Wine) {
    stopped(wine, "--stop-timeout 9 -- gui-probe.exe --do window two")
        .end()
        .assert_code(5)
        .assert_order(&TOLD_TO_CLOSE)
        .assert_not_printed("ctrl-break");
}

pub(crate) fn a_program_without_a_window_cannot_be_closed_and_is_ended(wine: &Wine) {
    stopped(
        wine,
        "--stop-timeout 1 --stop-signal close -- probe.exe --do ignore",
    )
    .end()
    .assert_code(124)
    .assert_printed("warning: the program has no window that could be asked to close");
}

pub(crate) fn draining_comes_before_telling(wine: &Wine) {
    let words = "--stop-timeout 9 --drain 1.5 --stop-signal close -- probe.exe --do window three";
    stopped(wine, words)
        .end()
        .assert_code(5)
        .assert_order(&["waiting 1.5 s before stopping", "query-end-session"])
        .assert_stopping_took(1.5, 6.0);
}

pub(crate) fn a_program_that_ends_while_draining_ends_the_drain(wine: &Wine) {
    stopped(
        wine,
        "--stop-timeout 20 --drain 15 --pre-stop 'probe.exe --do set drained' \
         -- probe.exe --do until drained 0.5 7",
    )
    .end()
    .assert_code(7)
    .assert_stopping_took(0.5, 8.0);
}

pub(crate) fn a_pre_stop_command_that_fails_does_not_matter(wine: &Wine) {
    for (command, words) in [
        (
            "probe.exe --do exit 3",
            "warning: probe.exe ended with exit code 3",
        ),
        (
            "absent.exe",
            "warning: cannot run absent.exe: File not found",
        ),
    ] {
        stopped(
            wine,
            &format!(
                "--stop-timeout 9 --stop-signal close --pre-stop '{command}' \
                 -- probe.exe --do window four"
            ),
        )
        .end()
        .assert_code(5)
        .assert_order(&[words, "query-end-session"]);
    }
}

pub(crate) fn a_pre_stop_command_that_hangs_is_ended_with_the_program(wine: &Wine) {
    stopped(
        wine,
        "--stop-timeout 1.5 --pre-stop 'probe.exe --do until never-set 0 0' \
         -- probe.exe --do ignore",
    )
    .end()
    .assert_code(124)
    .assert_order(&[
        "probe.exe took all the time and was ended",
        "the program did not end",
    ])
    .assert_stopping_took(1.5, 4.0);
}

pub(crate) fn the_environment_wins(wine: &Wine) {
    let mut command = shim(
        wine,
        "--stop-timeout 60 --drain 30 -- probe.exe --do ignore",
    );
    command
        .env("SHIM_STOP_TIMEOUT", "1")
        .env("SHIM_DRAIN", "0")
        .env("SHIM_LOG_FORMAT", "json");
    let mut running = RunningCommand::start(command);
    running.wait_for("ready");
    running.ask_to_stop();
    running
        .end()
        .assert_code(124)
        .assert_printed(r#""event":"deadline""#)
        .assert_stopping_took(1.0, 4.0);
}

/// Returns true if a wine process is running.
fn is_running(wine: &Wine, spawned: &str) -> bool {
    let (_, id) = spawned.split_once("spawned ").unwrap();
    let mut probe = wine.command("probe.exe");
    probe.args(["--do", "is-running", id.trim()]);
    let ended = run(probe);
    assert!(ended.printed.starts_with("running "), "{ended:?}");
    ended.printed.starts_with("running yes")
}

pub(crate) fn what_a_program_leaves_is_ended_with_it(wine: &Wine) {
    let mut running = start(wine, "-- probe.exe --do spawn");
    let spawned = running.wait_for("spawned");
    running
        .end()
        .assert_code(0)
        .assert_printed("ending what the program left behind (processes: 1)");
    assert!(!is_running(wine, &spawned));
}

pub(crate) fn what_a_program_leaves_stays_where_that_is_wanted(wine: &Wine) {
    let mut running = start(wine, "--no-kill-tree -- probe.exe --do spawn");
    let spawned = running.wait_for("spawned");
    running
        .end()
        .assert_code(0)
        .assert_not_printed("left behind");
    assert!(is_running(wine, &spawned));
}

pub(crate) fn what_a_program_started_is_ended_at_the_deadline(wine: &Wine) {
    let mut running = start(wine, "--stop-timeout 1 -- probe.exe --do spawn stay");
    let spawned = running.wait_for("spawned");
    assert!(is_running(wine, &spawned));
    running.ask_to_stop();
    running.end().assert_code(124);
    assert!(!is_running(wine, &spawned));
}

/// Context switches and clock ticks of all threads of a process.
fn work(process: u32) -> Vec<String> {
    let mut counts = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let thread = thread.unwrap().path();
        let status = fs::read_to_string(thread.join("status")).unwrap();
        counts.extend(
            status
                .lines()
                .filter(|line| line.contains("ctxt_switches"))
                .map(String::from),
        );
        let stat = fs::read_to_string(thread.join("stat")).unwrap();
        counts.push(
            stat.split(' ')
                .skip(13)
                .take(2)
                .collect::<Vec<_>>()
                .join(" "),
        );
    }
    counts
}

/// Asserts that no thread of the shim runs while it waits.
fn assert_idle(running: &RunningCommand) {
    sleep(Duration::from_millis(500));
    let before = work(running.id());
    let woken = before.iter().any(|line| line.starts_with("voluntary"));
    assert!(woken, "{before:?}");
    sleep(Duration::from_secs(3));
    assert_eq!(before, work(running.id()));
}

pub(crate) fn pause_waits_without_any_work(wine: &Wine) {
    let mut running = start(wine, "pause");
    running.wait_for("waiting for a stop request");
    assert_idle(&running);
    running.ask_to_stop();
    running
        .end()
        .assert_code(0)
        .assert_printed("asked to stop (ctrl-c)")
        .assert_stopping_took(0.0, 2.0);
}

pub(crate) fn it_asks_to_be_told_of_a_shutdown_first(wine: &Wine) {
    let mut command = shim(wine, "pause");
    // wine names functions that it implements only in part.
    command.env("WINEDEBUG", "fixme+all");
    let mut running = RunningCommand::start(command);
    running.wait_for("SetProcessShutdownParameters (000003ff, 00000000)");
    running.wait_for("waiting for a stop request");
    running.ask_to_stop();
    running.end().assert_code(0);
}

pub(crate) fn a_running_program_is_waited_for_without_any_work(wine: &Wine) {
    let words = "--stop-timeout 0 -- probe.exe --do ignore";
    let mut running = start(wine, words);
    running.wait_for("ready");
    assert_idle(&running);
    running.ask_to_stop();
    running.end().assert_code(124);
}
