//! Windows services, with wine's service manager.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use wincimg_testkit::wine::{Wine, succeed};

use super::harness::{RunningCommand, start};

/// Installs the probe as a service with start and stop times in seconds.
pub(crate) fn install(wine: &Wine, name: &str, start: &str, stop: &str, code: &str) {
    let path = format!(r"C:\probe.exe --do service C:\{name}.txt {start} {stop} {code}");
    let words = ["create", name, "binPath=", &path, "start=", "demand"];
    succeed(wine.command("sc").args(words)).unwrap();
}

/// Log of a service so far.
fn service_log(wine: &Wine, name: &str) -> Vec<String> {
    let text = fs::read_to_string(wine.drive().join(format!("{name}.txt"))).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn wait_until(wine: &Wine, name: &str, state: &str) {
    for _ in 0..1000 {
        if service_log(wine, name)
            .last()
            .is_some_and(|last| last == state)
        {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("{name} is not {state}: {:?}", service_log(wine, name));
}

const WHOLE_LIFE: [&str; 4] = ["starting", "running", "stopping", "stopped"];

pub(crate) fn start_service(wine: &Wine, words: &str) -> RunningCommand {
    let mut running = start(wine, words);
    match running.wait_for_output("is running") {
        Ok(_) => running,
        // Wine's service manager timed out: the machine was too busy.
        Err(printed) if printed.contains("Windows error 1359") => {
            let mut again = start(wine, words);
            again.wait_for("is running");
            again
        }
        Err(printed) => panic!("the service does not run: {printed}"),
    }
}

pub(crate) fn a_service_is_started_and_stopped(wine: &Wine) {
    install(wine, "plain", "0.3", "1", "0");
    let mut running = start_service(wine, "--stop-timeout 9 --service plain");
    assert_eq!(service_log(wine, "plain"), WHOLE_LIFE[..2]);
    running.ask_to_stop();
    running
        .end()
        .assert_code(0)
        .assert_order(&[
            "the service plain is running",
            "stopping the service",
            "stopped in time",
        ])
        .assert_stopping_took(1.0, 5.0);
    assert_eq!(service_log(wine, "plain"), WHOLE_LIFE);
}

pub(crate) fn a_service_that_ends_by_itself_gives_the_exit_code(wine: &Wine) {
    install(wine, "crashing", "0", "crash", "43");
    start_service(wine, "--service crashing")
        .end()
        .assert_code(43)
        .assert_printed("warning: the service stopped by itself with exit code 43");
}

pub(crate) fn a_service_that_does_not_start_is_127(wine: &Wine) {
    install(wine, "failing", "0.3", "fail", "42");
    start(wine, "--service failing")
        .end()
        .assert_code(127)
        .assert_printed("error: cannot start the service failing: it stopped with exit code 42");
}

pub(crate) fn a_service_that_is_not_there_is_127(wine: &Wine) {
    start(wine, "--service absent -- probe.exe --do echo started")
        .end()
        .assert_code(127)
        .assert_printed("error: cannot start the service absent: ")
        .assert_not_printed("started");
}

pub(crate) fn a_service_that_does_not_stop_is_124(wine: &Wine) {
    install(wine, "slow", "0", "20", "0");
    let mut running = start_service(wine, "--stop-timeout 1.5 --service slow");
    running.ask_to_stop();
    running
        .end()
        .assert_code(124)
        .assert_printed("error: the service did not stop within the stop time")
        .assert_stopping_took(1.5, 4.0);
}

pub(crate) fn a_stop_while_the_service_starts_stops_it(wine: &Wine) {
    install(wine, "starting", "2", "0", "0");
    let words = "--stop-timeout 9 --service starting -- probe.exe --do echo 'too late'";
    let mut running = start(wine, words);
    wait_until(wine, "starting", "starting");
    running.ask_to_stop();
    running.end().assert_code(0).assert_not_printed("too late");
    assert_eq!(service_log(wine, "starting"), WHOLE_LIFE);
}

pub(crate) fn the_service_stops_before_the_program_is_told(wine: &Wine) {
    install(wine, "first", "0", "1", "0");
    let words = "--stop-timeout 9 --stop-signal close --service first \
         -- probe.exe --do window after-service";
    let mut running = start_service(wine, words);
    running.wait_for("ready");
    running.ask_to_stop();
    running.wait_for("query-end-session");
    assert_eq!(service_log(wine, "first"), WHOLE_LIFE);
    running.end().assert_code(5).assert_stopping_took(1.0, 6.0);
}

pub(crate) fn the_end_of_the_program_stops_the_service(wine: &Wine) {
    install(wine, "beside", "0", "0.3", "0");
    start(
        wine,
        "--stop-timeout 9 --service beside -- probe.exe --do exit 6",
    )
    .end()
    .assert_code(6)
    .assert_order(&["the program ended with exit code 6", "stopping the service"]);
    assert_eq!(service_log(wine, "beside"), WHOLE_LIFE);
}

/// Restarts the service as `ServiceMonitor` does with w3svc.
pub(crate) fn a_service_that_restarts_beside_a_program_is_no_end(wine: &Wine) {
    install(wine, "restarted", "0", "0", "0");
    let words = "--stop-timeout 9 --stop-signal close --service restarted \
         -- probe.exe --do window monitor";
    let mut running = start_service(wine, words);
    running.wait_for("ready");
    for verb in ["stop", "start"] {
        succeed(wine.command("sc").args([verb, "restarted"])).unwrap();
        wait_until(
            wine,
            "restarted",
            if verb == "stop" { "stopped" } else { "running" },
        );
    }
    running.ask_to_stop();
    running
        .end()
        .assert_code(5)
        .assert_printed("stopping the service");
    assert_eq!(
        service_log(wine, "restarted"),
        [WHOLE_LIFE, WHOLE_LIFE].concat()
    );
}
