//! Starting programs: their arguments, environment and exit codes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use wincimg_testkit::wine::{Wine, succeed};

use super::harness::{CommandOutput, RunningCommand, put, run, shim, start};

fn end_of(wine: &Wine, words: &str) -> CommandOutput {
    start(wine, words).end()
}

/// Runs command lines in sequence and returns their output. Wine would quote them again; the probe
/// does not.
fn run_each(wine: &Wine, lines: &[String]) -> String {
    let mut probe = wine.command("probe.exe");
    let mut child = probe
        .args(["--do", "run-each"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = lines.join("\n") + "\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn the_exit_code_of_the_program_is_the_shim_s(wine: &Wine) {
    // All 32 bits: wine passes only eight to Linux, so the probe checks.
    let codes = [0, 1, 7, 124, 255, 256, 0x8000_0000, 0xC000_013A, u32::MAX];
    let lines: Vec<String> = codes
        .iter()
        .map(|code| format!("shim.exe --quiet -- probe.exe --do exit {code}"))
        .collect();
    let expected = codes.iter().fold(String::new(), |mut text, code| {
        let _ = writeln!(text, "code {code}");
        text
    });
    assert_eq!(run_each(wine, &lines), expected);
    end_of(wine, "-- probe.exe --do exit 7")
        .assert_code(7)
        .assert_printed("the program ended with exit code 7");
}

pub(crate) fn every_command_line_arrives_unchanged(wine: &Wine) {
    let tails = [
        r"probe.exe",
        r"probe.exe a b c",
        r"probe.exe   spaces   between   and after   ",
        r#"probe.exe "a b" c"#,
        r#"probe.exe "" " " x"#,
        r#"probe.exe a\"b "c\"d""#,
        r#"probe.exe a\\"b c" d\\\"e "f\\""#,
        r"probe.exe C:\dir\ C:\dir\\ \\server\share\",
        r#"probe.exe "C:\dir\" x "C:\dir\\" y"#,
        r#"probe.exe a"b"c"d e"f ""g"" """h""""#,
        r#"probe.exe "unfinished quote and more"#,
        r"probe.exe -- --drain 9 --help pause",
        r#"probe.exe -site.name:"Default Web Site" /section:system.webServer/handlers"#,
        r#"probe.exe "-Command" "$x = \"a b\"; Write-Host '$x'""#,
        r"probe.exe %PATH% ^& | < > ^ & ! ( ) ; , = ` ' # @ ~ * ?",
        r#"probe.exe {"a":"b c"} [1,2]"#,
        "probe.exe tab\there \t and\tthere",
        "probe.exe é 日本語 \u{1F600} \u{a0}x",
        r#""probe.exe" quoted"#,
        r#""C:\probe.exe" "with path""#,
    ];
    let wrapped: Vec<String> = tails
        .iter()
        .map(|tail| format!(r#"shim.exe --quiet --pre-stop "x -- y" -- {tail}"#))
        .collect();
    let direct = tails.map(ToOwned::to_owned);
    let reports = run_each(wine, &wrapped);
    assert_eq!(reports, run_each(wine, &direct));
    // The first line of each report is the raw command line.
    let first = reports.lines().next().unwrap();
    assert_eq!(first, r#""probe.exe""#);
    assert_eq!(reports.matches("code 0").count(), tails.len());
}

pub(crate) fn standard_handles_are_the_program_s(wine: &Wine) {
    let copied = || -> std::io::Result<_> {
        let mut child = shim(wine, "--quiet -- probe.exe --do copy")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        child.stdin.take().unwrap().write_all(b"from stdin\n")?;
        child.wait_with_output()
    };
    // Rarely, wine ends a process before it starts, and the pipe breaks.
    let output = copied().or_else(|_| copied()).unwrap();
    assert_eq!(output.stdout, b"from stdin\n");
    assert_eq!(output.stderr, b"probe on stderr\n");
}

pub(crate) fn other_handles_are_not_inherited(wine: &Wine) {
    let leak = |command: &str| {
        let mut probe = wine.command("probe.exe");
        probe.args(["--do", "leak", command]);
        run(probe)
    };
    leak("probe.exe --do has-handle").assert_printed("inherited yes");
    leak("shim.exe -- probe.exe --do has-handle").assert_printed("inherited no");
}

pub(crate) fn a_program_that_is_not_there_is_127_with_words(wine: &Wine) {
    end_of(wine, "-- absent.exe --password secret")
        .assert_code(127)
        .assert_printed("wincimg-shim: error: cannot start absent.exe: File not found")
        .assert_printed("(Windows error 2)")
        .assert_not_printed("secret");
}

pub(crate) fn a_file_that_is_no_program_is_126(wine: &Wine) {
    put(wine, "text.exe", b"not a program");
    end_of(wine, "-- text.exe")
        .assert_code(126)
        .assert_printed("cannot start text.exe: ");
}

pub(crate) fn wrong_usage_is_125_with_a_hint(wine: &Wine) {
    end_of(wine, "")
        .assert_code(125)
        .assert_printed("error: no program to run")
        .assert_printed("hint: shim.exe --help");
    end_of(wine, "probe.exe").assert_code(125);
    let mut command = shim(wine, "-- probe.exe");
    command.env("SHIM_DRAIN", "soon");
    run(command)
        .assert_code(125)
        .assert_printed("SHIM_DRAIN takes seconds, not 'soon'");
}

pub(crate) fn help_and_version_go_to_standard_output(wine: &Wine) {
    let help = succeed(&mut shim(wine, "--help")).unwrap();
    assert_eq!(help, include_str!("../../images/shim/src/help.txt"));
    for words in ["--version", "-v", "pause -v"] {
        let version = succeed(&mut shim(wine, words)).unwrap();
        assert_eq!(
            version.trim_end(),
            concat!("wincimg-shim ", env!("CARGO_PKG_VERSION"))
        );
    }
}

pub(crate) fn json_messages_are_one_object_a_line(wine: &Wine) {
    let ended = end_of(wine, "--log-format json -- probe.exe --do exit 3");
    ended.assert_code(3);
    let events: Vec<serde_json::Value> = ended
        .printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["event"], "started");
    assert_eq!(events[0]["level"], "info");
    assert!(events[0]["pid"].as_u64().is_some_and(|pid| pid > 0));
    assert_eq!(events[1]["event"], "ended");
    assert_eq!(events[1]["exit_code"], 3);
    assert_eq!(events.len(), 2);
}

pub(crate) fn quiet_leaves_only_what_is_wrong(wine: &Wine) {
    let ended = end_of(wine, "--quiet -- probe.exe --do echo hello");
    assert_eq!(ended.printed, "hello\n");
    end_of(wine, "--quiet -- absent.exe").assert_printed("error: cannot start");
}

pub(crate) fn arguments_of_the_program_stay_out_of_the_log(wine: &Wine) {
    end_of(wine, "-- probe.exe --do exit 0 s3cret").assert_not_printed("s3cret");
    let mut running = start(
        wine,
        "--stop-timeout 1 --pre-stop 'absent.exe s3cret' -- probe.exe --do ignore",
    );
    running.wait_for("ready");
    running.ask_to_stop();
    running.end().assert_code(124).assert_not_printed("s3cret");
}

/// A variable sets the pod's time, which takes precedence over the registry's.
pub(crate) fn the_stop_time_comes_from_the_pod(wine: &Wine) {
    let ignoring = |value: &str, options: &str| {
        let mut command = shim(wine, options);
        command.args(["--", "probe.exe", "--do", "ignore"]);
        command.env("WINCIMG_STOP_TIMEOUT", value);
        let mut running = RunningCommand::start(command);
        running.wait_for("ready");
        running.ask_to_stop();
        running.end()
    };
    ignoring("8", "")
        .assert_code(124)
        .assert_stopping_took(7.0, 9.5);
    ignoring("soon", "--stop-timeout 1")
        .assert_code(124)
        .assert_printed("WINCIMG_STOP_TIMEOUT takes seconds, not 'soon'");
}

/// The only case that changes the registry for all; the others set their own stop time.
pub(crate) fn the_stop_time_comes_from_the_registry(wine: &Wine) {
    let set = |key: &str, value: &str, kind: &str, data: &str| {
        let key = format!(r"HKLM\SYSTEM\CurrentControlSet\{key}");
        let words = ["add", &key, "/v", value, "/t", kind, "/d", data, "/f"];
        succeed(wine.command("reg").args(words)).unwrap();
    };
    let stop_time = || {
        let mut running = start(wine, "-- probe.exe --do exit 0");
        let line = running.wait_for("stop time");
        let (_, time) = line.split_once("stop time ").unwrap();
        time.trim().to_owned()
    };
    let warning = || {
        let words = "--stop-timeout 20 -- probe.exe --do exit 0";
        end_of(wine, words)
            .printed
            .contains("warning: the stop time is 20 s, but Windows ends this container after 5 s")
    };
    assert_eq!(stop_time(), "4 s");
    assert!(warning());
    let seconds = "ProcessShutdownTimeoutSeconds";
    set(r"Services\cexecsvc", seconds, "REG_DWORD", "60");
    assert_eq!(stop_time(), "4 s", "the other time is still five seconds");
    set("Control", "WaitToKillServiceTimeout", "REG_SZ", "30000");
    assert_eq!(stop_time(), "27 s");
    assert!(!warning());
    set(r"Services\cexecsvc", seconds, "REG_DWORD", "20");
    assert_eq!(stop_time(), "18 s");
    set(r"Services\cexecsvc", seconds, "REG_SZ", "20");
    assert_eq!(stop_time(), "4 s", "a text is not a number of seconds");
}
