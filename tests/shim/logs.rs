//! Following log files. The test writes them from Linux, which wine's programs see at once.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use wincimg_testkit::wine::{Wine, succeed};

use super::harness::{RunningCommand, processor_ticks, put, run, shim, start};
use super::services::{install, start_service};

/// A folder on drive C.
fn folder(wine: &Wine, name: &str) -> PathBuf {
    let folder = wine.drive().join(name);
    fs::create_dir(&folder).unwrap();
    folder
}

fn append(file: &PathBuf, text: impl AsRef<[u8]>) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .unwrap();
    file.write_all(text.as_ref()).unwrap();
}

/// The shim, following log files of a program that only ends when told.
fn follow(wine: &Wine, options: &str) -> RunningCommand {
    let words = format!("{options} --stop-timeout 0 -- probe.exe --do ignore");
    let mut running = start(wine, &words);
    running.wait_for("ready");
    running
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

pub(crate) fn lines_go_to_standard_output_as_they_are_written(wine: &Wine) {
    let folder = folder(wine, "plain");
    let (old, new) = (folder.join("old.log"), folder.join("new.log"));
    append(&old, "from before\nhalf");
    let mut running = follow(wine, r"--log C:\plain\old.log --log c:/plain/new.log");
    append(&new, "one\r\ntwo\n");
    running.wait_for("two");
    append(&old, " a line\n");
    running.wait_for(" a line");
    append(&new, "not a who");
    sleep(Duration::from_millis(1200));
    append(&new, "le line\n");
    running.ask_to_stop();
    running
        .end()
        .assert_order(&["\none\ntwo\n a line\n", "\nnot a whole line\n"])
        .assert_not_printed("from before")
        .assert_not_printed("half");
    // And not to standard error.
    let program = ["--", "cmd", "/c", r"echo said>C:\plain\echo.log"];
    let mut command = shim(wine, r"--log C:\plain\echo.log");
    assert_eq!(succeed(command.args(program)).unwrap(), "said\n");
}

pub(crate) fn a_renamed_log_is_read_to_its_end(wine: &Wine) {
    let folder = folder(wine, "renamed");
    let log = folder.join("app.log");
    append(&log, "");
    let mut running = follow(wine, r"--log C:\renamed\app.log --log C:\renamed\*.kept");
    append(&log, "first\n");
    running.wait_for("first");
    for (number, old) in ["app.log.1", "app.kept"].iter().enumerate() {
        append(&log, format!("last of {number}\nno end"));
        fs::rename(&log, folder.join(old)).unwrap();
        append(&log, format!("begin of {}\n", number + 1));
        running.wait_for(&format!("begin of {}", number + 1));
    }
    // Nothing more comes to the first one, while the second one is still followed.
    running.wait_for("no end");
    append(&folder.join("app.kept"), " and more\n");
    running.wait_for("no end and more");
    running.ask_to_stop();
    let ended = running.end();
    ended.assert_order(&["first\n", "last of 0\n", "begin of 1\n", "last of 1\n"]);
    ended.assert_order(&["begin of 2\nno end\n", "no end and more\n"]);
    for line in ["first\n", "last of 0\n", "last of 1\n", "begin of 1\n"] {
        assert_eq!(ended.printed.matches(line).count(), 1, "{ended:#?}");
    }
}

pub(crate) fn a_truncated_log_is_read_from_its_beginning(wine: &Wine) {
    let log = folder(wine, "truncated").join("app.log");
    let mut running = follow(wine, r"--log C:\truncated\app.log");
    append(&log, "a long line before\npart");
    running.wait_for("before");
    File::create(&log).unwrap();
    append(&log, "after\n");
    running.wait_for("after");
    running.ask_to_stop();
    running.end().assert_order(&["before\npart\nafter\n"]);
}

pub(crate) fn each_encoding_becomes_utf_8(wine: &Wine) {
    let folder = folder(wine, "encodings");
    append(&folder.join("old.log"), utf16("\u{feff}before\r\n"));
    let mut running = follow(wine, r"--log C:\encodings\*.log");
    append(&folder.join("old.log"), utf16("Grüße 日本\r\n"));
    running.wait_for("Grüße 日本");
    append(&folder.join("utf8.log"), "\u{feff}märk\n");
    running.wait_for("märk");
    let text = utf16("\u{feff}\u{1F600} piece by piece\n");
    for piece in text.chunks(5) {
        append(&folder.join("utf16.log"), piece);
        sleep(Duration::from_millis(150));
    }
    running.wait_for("\u{1F600} piece by piece");
    running.ask_to_stop();
    running.end().assert_not_printed("\u{feff}");
}

pub(crate) fn a_pattern_finds_new_files_and_folders(wine: &Wine) {
    let folder = folder(wine, "glob");
    let mut running = follow(wine, r"--log C:\glob\**\u_ex*.log;C:\glob\W3SVC?\x.txt");
    append(&folder.join("U_EX1.LOG"), "at the top\n");
    running.wait_for("at the top");
    let deep = folder.join("W3SVC1/deeper");
    fs::create_dir_all(&deep).unwrap();
    append(&deep.join("u_ex26.log"), "deep\n");
    append(&deep.join("other.log"), "not meant\n");
    append(&deep.join("x.txt"), "not meant\n");
    append(&folder.join("W3SVC1/x.txt"), "one folder\n");
    running.wait_for("one folder");
    running.ask_to_stop();
    running
        .end()
        .assert_printed("deep\n")
        .assert_not_printed("not meant");
}

pub(crate) fn space_that_is_reserved_is_no_line(wine: &Wine) {
    let log = folder(wine, "reserved").join("app.log");
    let mut running = follow(wine, r"--log C:\reserved\app.log");
    let mut file = [b"first\n".to_vec(), vec![0; 200_000]].concat();
    fs::write(&log, &file).unwrap();
    running.wait_for("first");
    file[6..13].copy_from_slice(b"second\n");
    fs::write(&log, &file).unwrap();
    running.wait_for("second");
    file[199_000..199_006].copy_from_slice(b"third\n");
    fs::write(&log, &file).unwrap();
    running.wait_for("third");
    running.ask_to_stop();
    running.end().assert_order(&["\nfirst\nsecond\nthird\n"]);
}

pub(crate) fn a_line_of_a_megabyte_comes_in_pieces(wine: &Wine) {
    let log = folder(wine, "long").join("app.log");
    let mut running = follow(wine, r"--log C:\long\app.log");
    append(&log, "é".repeat(1 << 19));
    append(&log, "\nshort\n");
    running.wait_for("short");
    running.ask_to_stop();
    let ended = running.end();
    let pieces = ended.printed.lines().filter(|line| line.starts_with('é'));
    let lengths: Vec<usize> = pieces.map(str::len).collect();
    assert_eq!(lengths, [64 << 10; 16]);
}

pub(crate) fn what_is_written_before_the_stop_is_printed(wine: &Wine) {
    let log = folder(wine, "stop").join("app.log");
    let words = r"--log C:\stop\app.log --stop-timeout 0 -- probe.exe --do ignore";
    let mut running = RunningCommand::start_without_messages(shim(wine, words));
    running.wait_for("ready");
    let line = |number| format!("line {number} {}\n", "x".repeat(1000));
    for number in 0..2000 {
        append(&log, line(number));
        if number == 1000 {
            running.wait_for("line 500 ");
        }
    }
    append(&log, "last");
    running.ask_to_stop();
    let ended = running.end();
    ended.assert_code(124);
    let lines = ended.printed.lines();
    let mut printed: Vec<&str> = lines.filter(|line| line.starts_with("line ")).collect();
    // It stops reading after 3 seconds, which a busy machine may need.
    if ended.stopping < Duration::from_secs(3) {
        assert_eq!(printed.len(), 2000);
        ended.assert_printed("\nlast\n");
    } else {
        printed.pop();
    }
    for (number, printed) in printed.iter().enumerate() {
        assert_eq!(*printed, line(number).trim_end());
    }
}

pub(crate) fn the_log_of_a_service_is_complete(wine: &Wine) {
    install(wine, "logging", "0.3", "1", "0");
    let words = r"--stop-timeout 9 --log C:\logging.txt --service logging";
    let mut running = start_service(wine, words);
    running.ask_to_stop();
    running
        .end()
        .assert_code(0)
        .assert_order(&["starting\n", "running\n", "stopping\n", "stopped\n"]);
}

pub(crate) fn a_log_monitor_configuration_is_read(wine: &Wine) {
    let folder = folder(wine, "configured");
    let config = r#"{ "LogConfig": { "sources": [
      { "type": "EventLog", "channels": [ { "name": "system", "level": "Error" } ] },
      { "type": "File", "directory": "C:\\configured", "filter": "*.log",
        "includeSubdirectories": true, "includeFileNames": true },
      { "type": "ETW", "providers": [] }, { "type": "ETW", "providers": [] } ] } }"#;
    put(wine, "LogMonitorConfig.json", config.as_bytes());
    let mut running = follow(wine, r"--log-config C:\LogMonitorConfig.json");
    fs::create_dir(folder.join("sub")).unwrap();
    append(&folder.join("sub/app.log"), "line\n");
    running.wait_for("app.log: line");
    running.ask_to_stop();
    running.end().assert_printed(
        r"warning: C:\LogMonitorConfig.json: not followed: sources of type EventLog ETW",
    );
    // A mistake in it does not keep the program from running.
    put(wine, "broken.json", b"{");
    for (file, reason) in [("broken.json", "error 13)"), ("absent.json", "error 2)")] {
        let file = format!(r"C:\{file}");
        start(
            wine,
            &format!("--log-config {file} -- probe.exe --do exit 3"),
        )
        .end()
        .assert_code(3)
        .assert_printed(&format!("warning: cannot read {file}: "))
        .assert_printed(reason);
    }
}

pub(crate) fn the_environment_turns_logs_off(wine: &Wine) {
    let echo = |value: &str| {
        let mut command = shim(wine, r"--quiet --log C:\off.log");
        command.args(["--", "cmd", "/c", r"echo said>>C:\off.log"]);
        command.env("SHIM_LOG", value);
        run(command).assert_code(0).printed.clone()
    };
    assert_eq!(echo("none"), "");
    assert_eq!(echo(""), "said\n");
    assert_eq!(echo(r"C:\absent\*.log;C:\off.log"), "said\n");
}

pub(crate) fn quiet_logs_cost_little(wine: &Wine) {
    let folder = folder(wine, "quiet");
    for number in 0..20 {
        append(&folder.join(format!("{number}.log")), "old\n");
    }
    let running = follow(wine, r"--log C:\quiet\**\*.log");
    sleep(Duration::from_millis(500));
    let before = processor_ticks(running.id());
    sleep(Duration::from_secs(5));
    let used = processor_ticks(running.id()) - before;
    // Of 500.
    assert!(used <= 25, "{used} ticks");
}
