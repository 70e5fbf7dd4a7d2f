//! The command lines to be checked on Windows: those of the tests here, with the results of our
//! models of its parsers, in `tests/windows/command-lines.json`.

use std::fs;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use serde_json::{Value, json};
use wincimg_windows::quoting::argv::ArgvParser;
use wincimg_windows::quoting::{Escape, argv, cmd, powershell};
use wincimg_windows::testing::shell_lines::{CMD_PREFIX, for_cmd, for_powershell};

use super::HERE;
use crate::quoting::{PIECES, argument, sample};

const PLAIN: &str = r"C:\wincimg-proof\argv.exe";
const SPACED: &str = r"C:\wincimg-proof\a space\argv.exe";
const CMD: &str = r"C:\Windows\System32\cmd.exe";
const POWERSHELL: &str = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe";

/// Common command lines, also for the wrong shell.
const WRITTEN: &[&str] = &[
    r#"set config "Default Web Site" /section:handlers"#,
    r#"set config \"Default Web Site\" /section:handlers"#,
    r"set config 'Default Web Site' /section:handlers",
    r#"/d "a b" /v "c\\""#,
    r#"--name="a b" 'c d'"#,
    r#"a"b c"d"#,
    r#"\"a b\""#,
    r#""" x"#,
];

/// Dockerfile lines that lint corrects, with the shell before them and whether a build fails.
const BUILDS: &[(&str, &str, bool)] = &[
    (
        r#"SHELL ["powershell", "-Command"]"#,
        r#"RUN C:\Windows\System32\inetsrv\appcmd.exe set config "Default Web Site" /section:directoryBrowse /enabled:true"#,
        true,
    ),
    (
        r#"SHELL ["cmd", "/S", "/C"]"#,
        r#"RUN C:\Windows\System32\inetsrv\appcmd.exe set config \"Default Web Site\" /section:directoryBrowse /enabled:true"#,
        true,
    ),
    (
        r#"SHELL ["cmd", "/S", "/C"]"#,
        r#"RUN C:\Windows\System32\inetsrv\appcmd.exe set config "Default Web Site" /section:staticContent /+[fileExtension='wincimg2',mimeType='text/plain']"#,
        false,
    ),
    (
        r#"SHELL ["cmd", "/S", "/C"]"#,
        "RUN reg add HKLM\\SOFTWARE\\x /v z /t REG_SZ /f /d c:\\\nRUN echo next",
        true,
    ),
];

fn case(kind: &str, program: &str, line: &str, arguments: &[String]) -> Value {
    json!({"kind": kind, "program": program, "line": line, "arguments": arguments})
}

/// A program with arguments, alternately with and without a space in its path.
fn lists(count: usize) -> Vec<Vec<String>> {
    sample(prop::collection::vec(argument(PIECES), 0..5), count)
        .into_iter()
        .enumerate()
        .map(|(index, list)| {
            let program = [SPACED, PLAIN][index % 2].to_owned();
            std::iter::once(program).chain(list).collect()
        })
        .collect()
}

fn of_argv() -> impl Iterator<Item = Value> {
    let tails = sample(argument(&["\"", "\"", "\\", "\\", " ", "\t", "a"]), 120);
    tails.into_iter().map(|tail| {
        let words = argv::split(&format!("\"{PLAIN}\" {tail}"), ArgvParser::CRuntime);
        case("argv", PLAIN, &tail, &words[1..])
    })
}

fn of_cmd() -> impl Iterator<Item = Value> {
    let options = CMD_PREFIX.split_once(' ').unwrap().1;
    let ours = lists(80).into_iter().map(move |list| {
        let text = for_cmd(&list, Escape::Backslash);
        case("cmd", CMD, &format!("{options}{text}"), &list[1..])
    });
    let written = WRITTEN.iter().map(move |tail| {
        let text = format!("{PLAIN} {tail}");
        let line = cmd::parse(&text, |_| None).unwrap();
        let words = argv::split(&line, ArgvParser::CRuntime);
        case("cmd", CMD, &format!("{options}{text}"), &words[1..])
    });
    ours.chain(written)
}

fn of_powershell() -> impl Iterator<Item = Value> {
    const OPTIONS: &str = "-NoProfile -Command ";
    let ours = lists(40).into_iter().map(|list| {
        let text = for_powershell(&list);
        let line = format!("{OPTIONS}{text}");
        case("powershell", POWERSHELL, &line, &list[1..])
    });
    let written = WRITTEN.iter().filter_map(|tail| {
        let text = format!("{PLAIN} {tail}");
        let words = powershell::simple_command(&powershell::script(&text))?;
        let line = powershell::native_command_line(&words);
        let words = argv::split(&line, ArgvParser::CRuntime);
        let line = format!("{OPTIONS}{text}");
        Some(case("powershell", POWERSHELL, &line, &words[1..]))
    });
    ours.chain(written)
}

/// A line with lint's correction.
fn build(before: &str, line: &str, fails: bool) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Dockerfile");
    let from = "FROM mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022";
    fs::write(&file, format!("{from}\n{before}\n{line}\n")).unwrap();
    let output = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .args(["lint", "--format", "json", "--quiet"])
        .arg(&file)
        .output()
        .unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = printed["findings"].as_array().unwrap();
    let finding = findings
        .iter()
        .find(|finding| finding["severity"] == "error")
        .unwrap_or_else(|| panic!("{line}: {printed}"));
    let fixed = line.replacen(
        line.lines().next().unwrap(),
        finding["fix"].as_str().unwrap(),
        1,
    );
    json!({
        "rule": finding["rule"], "before": before, "found": line, "fixed": fixed, "fails": fails,
    })
}

#[test]
fn windows_is_asked_about_the_lines_of_our_tests() {
    let cases: Vec<Value> = of_argv()
        .chain(of_cmd())
        .chain(of_powershell())
        // A script on Windows reads its file by lines.
        .filter(|case| !case["line"].as_str().unwrap().contains('\n'))
        .collect();
    let builds: Vec<Value> = BUILDS
        .iter()
        .map(|&(before, line, fails)| build(before, line, fails))
        .collect();
    let lines = |values: &[Value]| {
        let lines: Vec<String> = values.iter().map(|value| format!("  {value}")).collect();
        lines.join(",\n")
    };
    let text = format!(
        "{{\"cases\": [\n{}\n], \"builds\": [\n{}\n]}}\n",
        lines(&cases),
        lines(&builds)
    );
    let file = Path::new(HERE).join("command-lines.json");
    if std::env::var_os("WINCIMG_UPDATE").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let is = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        is == text,
        "tests/windows/command-lines.json is out of date; run this test with WINCIMG_UPDATE=1"
    );
}
