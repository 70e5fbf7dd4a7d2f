use alloc::string::ToString;
use alloc::vec;

use super::*;

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn parse_with(tokens: &[&str], environment: &[(&str, &str)]) -> Result<Request, UsageError> {
    let tokens: Vec<Vec<u16>> = core::iter::once(&"shim.exe")
        .chain(tokens)
        .map(|token| wide(token))
        .collect();
    parse(tokens.iter().map(Vec::as_slice), |name| {
        environment
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| wide(value))
    })
}

fn settings(tokens: &[&str], environment: &[(&str, &str)]) -> Settings {
    let tokens = [tokens, &["--", "app.exe"]].concat();
    match parse_with(&tokens, environment).unwrap() {
        Request::Run { settings, .. } => settings,
        other => panic!("{other:?}"),
    }
}

fn logs(patterns: &[&str]) -> Vec<LogFiles> {
    let patterns = patterns.iter().map(|it| wide(it));
    let files = patterns.map(|pattern| LogFiles {
        pattern,
        named: false,
    });
    files.collect()
}

fn refusal(tokens: &[&str]) -> String {
    parse_with(tokens, &[]).unwrap_err().to_string()
}

#[test]
fn the_program_is_the_token_after_the_dashes() {
    let program = |tokens: &[&str]| match parse_with(tokens, &[]).unwrap() {
        Request::Run { program, .. } => program,
        other => panic!("{other:?}"),
    };
    assert_eq!(program(&["--", "app.exe", "--drain", "x"]), Some(2));
    assert_eq!(program(&["--drain", "1", "--", "app.exe"]), Some(4));
    assert_eq!(program(&["--quiet", "--", "--"]), Some(3));
    assert_eq!(program(&["--service", "w3svc"]), None);
    assert_eq!(program(&["--service", "w3svc", "--"]), None);
}

#[test]
fn without_options_the_defaults_hold() {
    assert_eq!(settings(&[], &[]), Settings::default());
    let defaults = Settings::default();
    assert!(defaults.kill_tree);
    assert_eq!(defaults.stop_signal, StopSignal::CtrlBreak);
    assert_eq!(defaults.stop_timeout, None);
}

#[test]
fn every_option_is_read_from_the_command_line() {
    let expected = Settings {
        stop_timeout: Some(Duration::from_millis(2500)),
        drain: Duration::from_secs(3),
        stop_signal: StopSignal::Close,
        pre_stop: Some(wide(r#"cmd /c "echo bye""#)),
        service: Some(wide("w3svc")),
        kill_tree: false,
        logs: logs(&[r"C:\a.log", r"D:\b\*.log"]),
        log_config: Some(wide(r"C:\c.json")),
        log_format: LogFormat::Json,
        quiet: true,
    };
    let separate = [
        "--stop-timeout", "2.5", "--drain", "3", "--stop-signal", "CLOSE", "--pre-stop",
        r#"cmd /c "echo bye""#, "--service", "w3svc", "--no-kill-tree", "--log", r"C:\a.log",
        "--log", r"D:\b\*.log", "--log-config", r"C:\c.json", "--log-format", "json", "--quiet",
    ];
    assert_eq!(settings(&separate, &[]), expected);
    let joined = [
        "--stop-timeout=2.5",
        "--drain=3",
        "--stop-signal=close",
        r#"--pre-stop=cmd /c "echo bye""#,
        "--service=w3svc",
        "--kill-tree=off",
        r"--log=C:\a.log;D:\b\*.log",
        r"--log-config=C:\c.json",
        "--log-format=json",
        "--quiet=on",
    ];
    assert_eq!(settings(&joined, &[]), expected);
}

#[test]
fn every_option_is_read_from_the_environment() {
    let environment = [
        ("SHIM_STOP_TIMEOUT", "7"),
        ("SHIM_DRAIN", "1"),
        ("SHIM_STOP_SIGNAL", "ctrl-c"),
        ("SHIM_PRE_STOP", "notify.exe --now"),
        ("SHIM_SERVICE", "was"),
        ("SHIM_KILL_TREE", "0"),
        ("SHIM_LOG", r"C:\a.log;D:\b\*.log;"),
        ("SHIM_LOG_CONFIG", r"C:\c.json"),
        ("SHIM_LOG_FORMAT", "json"),
        ("SHIM_QUIET", "true"),
    ];
    let expected = Settings {
        stop_timeout: Some(Duration::from_secs(7)),
        drain: Duration::from_secs(1),
        stop_signal: StopSignal::CtrlC,
        pre_stop: Some(wide("notify.exe --now")),
        service: Some(wide("was")),
        kill_tree: false,
        logs: logs(&[r"C:\a.log", r"D:\b\*.log"]),
        log_config: Some(wide(r"C:\c.json")),
        log_format: LogFormat::Json,
        quiet: true,
    };
    assert_eq!(settings(&[], &environment), expected);
}

#[test]
fn the_environment_wins_over_the_command_line() {
    let read = settings(
        &[
            "--drain", "9", "--quiet", "--stop-timeout", "30", "--log", r"C:\a.log",
        ],
        &[
            ("SHIM_DRAIN", "1"),
            ("SHIM_QUIET", "off"),
            ("SHIM_LOG", r"C:\b.log"),
        ],
    );
    assert_eq!(read.logs, logs(&[r"C:\b.log"]));
    assert_eq!(read.drain, Duration::from_secs(1));
    assert!(!read.quiet);
    assert_eq!(read.stop_timeout, Some(Duration::from_secs(30)));
}

#[test]
fn the_environment_can_take_an_option_back() {
    let read = settings(
        &[
            "--pre-stop", "x", "--service", "y", "--stop-timeout", "30", "--log", r"C:\a.log",
            "--log-config", r"C:\c.json",
        ],
        &[
            ("SHIM_LOG", "none"),
            ("SHIM_LOG_CONFIG", "none"),
            ("SHIM_PRE_STOP", "none"),
            ("SHIM_SERVICE", "none"),
            ("SHIM_STOP_TIMEOUT", "auto"),
        ],
    );
    assert_eq!(read, Settings::default());
}

#[test]
fn an_empty_variable_is_not_set() {
    assert_eq!(
        settings(&["--drain", "2"], &[("SHIM_DRAIN", "")]).drain,
        Duration::from_secs(2)
    );
}

#[test]
fn a_service_from_the_environment_is_enough_to_run() {
    let request = parse_with(&[], &[("SHIM_SERVICE", "w3svc")]).unwrap();
    assert!(matches!(request, Request::Run { program: None, .. }));
}

#[test]
fn pause_takes_only_what_it_can_heed() {
    assert_eq!(
        parse_with(&["pause"], &[]).unwrap(),
        Request::Pause(Settings::default())
    );
    let quiet = Settings {
        quiet: true,
        log_format: LogFormat::Json,
        ..Settings::default()
    };
    assert_eq!(
        parse_with(&["--quiet", "pause", "--log-format", "json"], &[]).unwrap(),
        Request::Pause(quiet)
    );
    assert_eq!(
        refusal(&["pause", "--drain", "1"]),
        "--drain has no meaning in pause mode"
    );
    assert_eq!(
        refusal(&["pause", "--", "a.exe"]),
        "a program has no meaning in pause mode"
    );
}

#[test]
fn help_and_version_need_no_program() {
    for flag in ["-h", "--help"] {
        assert_eq!(parse_with(&[flag], &[]).unwrap(), Request::Help);
    }
    for flag in ["-v", "-V", "--version"] {
        for before in ["--quiet", "pause"] {
            let request = parse_with(&[before, flag], &[]).unwrap();
            assert_eq!(request, Request::Version);
        }
    }
}

#[test]
fn a_program_s_own_help_is_not_the_shim_s() {
    let request = parse_with(&["--", "app.exe", "--help"], &[]).unwrap();
    assert!(matches!(
        request,
        Request::Run {
            program: Some(2),
            ..
        }
    ));
}

#[test]
fn wrong_usage_is_refused_with_what_to_do() {
    let cases = [
        (vec![], "no program to run; give one after --, or --service"),
        (
            vec!["--"],
            "no program to run; give one after --, or --service",
        ),
        (
            vec!["app.exe"],
            "unexpected 'app.exe'; put -- before the program",
        ),
        (
            vec!["--dr", "1"],
            "unknown option --dr; put -- before the program",
        ),
        (vec!["--drain"], "--drain needs a value"),
        (vec!["--drain", "--", "x"], "--drain needs a value"),
        (
            vec!["--drain", "1m", "--", "x"],
            "--drain takes seconds, not '1m'",
        ),
        (vec!["--drain=", "--", "x"], "--drain takes seconds, not ''"),
        (
            vec!["--stop-timeout", "-1"],
            "--stop-timeout takes seconds or 'auto', not '-1'",
        ),
        (
            vec!["--stop-signal", "term"],
            "--stop-signal takes ctrl-break, ctrl-c, close or none, not 'term'",
        ),
        (
            vec!["--log-format", "xml"],
            "--log-format takes text or json, not 'xml'",
        ),
        (
            vec!["--log", "json"],
            "--log takes paths, joined by ';', or 'none', not 'json'",
        ),
        (
            vec!["--kill-tree=maybe"],
            "--kill-tree takes on or off, not 'maybe'",
        ),
        (
            vec!["--pre-stop", " "],
            "--pre-stop takes a command or 'none', not ' '",
        ),
    ];
    for (tokens, message) in cases {
        assert_eq!(refusal(&tokens), message);
    }
}

#[test]
fn a_wrong_variable_is_named_in_the_message() {
    let error = parse_with(&["--", "app.exe"], &[("SHIM_DRAIN", "soon")]).unwrap_err();
    assert_eq!(error.to_string(), "SHIM_DRAIN takes seconds, not 'soon'");
}

#[test]
fn the_help_names_every_option_and_variable() {
    for option in &OPTIONS {
        assert!(HELP.contains(option.flag), "{}", option.flag);
        assert!(HELP.contains(option.variable), "{}", option.variable);
    }
}
