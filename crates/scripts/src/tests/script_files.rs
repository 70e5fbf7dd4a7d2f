use super::{CMD, POWERSHELL, Tree, describe, image, refused, run_on};
use crate::ScriptErrorKind::{self, Deferred, Fails, NeedsWindows, NotUnderstood};

const WITH_STOP: [&str; 3] = ["powershell", "-Command", "$ErrorActionPreference = 'Stop';"];

/// An image with scripts.
fn with(scripts: &[(&str, &str)]) -> Tree {
    let mut tree = image();
    for (path, text) in scripts {
        tree.file(path, Some(text.as_bytes().to_vec()));
    }
    tree
}

fn actions(shell: &[&str], tree: Tree, line: &str) -> Vec<String> {
    match run_on(tree, shell, line) {
        Ok(tree) => tree.actions.iter().map(describe).collect(),
        Err(error) => panic!("{line}: {error}"),
    }
}

fn error(shell: &[&str], tree: Tree, line: &str) -> (ScriptErrorKind, String) {
    match run_on(tree, shell, line) {
        Ok(tree) => panic!("{line}: {:?}", tree.actions),
        Err(error) => (error.kind, error.to_string()),
    }
}

const SETUP: (&str, &str) = (
    r"C:\build\setup.ps1",
    "# a comment\r\n$dir = 'C:\\data'\r\nNew-Item -ItemType Directory -Path $dir | Out-Null\r\nmkdir \"$PSScriptRoot\\logs\"\r\n",
);

#[test]
fn a_script_of_the_image_is_read_however_it_is_named() {
    for (shell, line) in [
        (&CMD[..], r"powershell -File C:\build\setup.ps1"),
        (
            &CMD,
            r"powershell -ExecutionPolicy Bypass -NoProfile -f C:/build/setup.ps1",
        ),
        (&CMD, r"powershell C:\build\setup.ps1"),
        (&CMD, r"cd C:\build && powershell .\setup.ps1"),
        (&CMD, r"cd C:\build && pwsh setup.ps1"),
        (&POWERSHELL, r"C:\build\setup.ps1"),
        (&POWERSHELL, r"& 'C:\build\setup.ps1'"),
        (&POWERSHELL, r"cd C:\build; .\setup.ps1"),
        (&WITH_STOP, r"& C:\build\Setup.ps1"),
    ] {
        assert_eq!(
            actions(shell, with(&[SETUP]), line),
            [r"folder C:\data", r"folder C:\build\logs"],
            "{line}"
        );
    }
}

#[test]
fn a_script_has_variables_of_its_own_and_the_environment_of_its_caller() {
    let inner = (
        r"C:\in.ps1",
        "$x = 'inner'; mkdir C:\\$y; $env:Z = 'set'; cd C:\\data",
    );
    let line = r"mkdir C:\data; $x = 'outer'; $y = 'seen'; C:\in.ps1; mkdir C:\$x; mkdir $env:Z";
    assert_eq!(
        actions(&POWERSHELL, with(&[inner]), line),
        [
            r"folder C:\data",
            r"folder C:\seen",
            r"folder C:\outer",
            r"folder C:\data\set"
        ]
    );
    let line = r"mkdir C:\data; $y = 'not'; powershell -File C:\in.ps1; mkdir C:\x$env:Z";
    let inner = (r"C:\in.ps1", "if ($y) { throw 'seen' }; $env:Z = 'set'");
    assert_eq!(
        actions(&POWERSHELL, with(&[inner]), line),
        [r"folder C:\data", r"folder C:\x"]
    );
    let global = (r"C:\in.ps1", "$global:x = 1");
    assert_eq!(
        error(&POWERSHELL, with(&[global]), r"C:\in.ps1").0,
        NotUnderstood
    );
}

#[test]
fn exit_codes_are_those_of_powershell() {
    let exits = (
        r"C:\e.ps1",
        "if (Test-Path C:\\work) { exit 3 }\nmkdir C:\\no",
    );
    for (shell, line) in [
        (&CMD[..], r"powershell -File C:\e.ps1"),
        (&CMD, r"powershell C:\e.ps1"),
        (&POWERSHELL, r"C:\e.ps1"),
    ] {
        let (kind, why) = error(shell, with(&[exits]), line);
        assert_eq!(kind, Fails, "{why}");
    }
    assert_eq!(
        actions(
            &POWERSHELL,
            with(&[exits]),
            r"C:\e.ps1; mkdir C:\$LASTEXITCODE"
        ),
        [r"folder C:\3"]
    );
    // A last command that fails does not fail -File, but -Command.
    let missing = (r"C:\m.ps1", "Remove-Item C:\\none");
    assert!(actions(&CMD, with(&[missing]), r"powershell -File C:\m.ps1").is_empty());
    let goes_on = ["powershell", "-Command"];
    assert_eq!(
        error(&goes_on, with(&[missing]), r"C:\m.ps1").0,
        NotUnderstood
    );
    let (kind, why) = error(&WITH_STOP, with(&[missing]), r"C:\m.ps1");
    assert_eq!(kind, Fails);
    assert!(why.contains(r"C:\m.ps1:1: "), "{why}");
}

#[test]
fn what_a_script_needs_is_told_with_its_line() {
    let program = (
        r"C:\p.ps1",
        "mkdir C:\\x\n\nStart-Process C:\\setup.exe -Wait\n",
    );
    let (kind, why) = error(&CMD, with(&[program]), r"powershell C:\p.ps1");
    assert_eq!(kind, NeedsWindows);
    assert!(why.contains(r"C:\p.ps1:3: "), "{why}");
    for (text, expected) in [
        ("param([string]$x)\nmkdir C:\\$x", NotUnderstood),
        ("mkdir C:\\ä", NotUnderstood),
        ("mkdir C:\\a (", NotUnderstood),
        ("#requires -Version 7\nmkdir C:\\a", NotUnderstood),
        ("mkdir C:\\a\nbreak", NotUnderstood),
        ("C:\\p.ps1", NotUnderstood),
    ] {
        let (kind, why) = error(&CMD, with(&[(r"C:\p.ps1", text)]), r"powershell C:\p.ps1");
        assert_eq!(kind, expected, "{text}: {why}");
    }
    let bom = with(&[(r"C:\p.ps1", "\u{feff}mkdir C:\\ä")]);
    assert_eq!(actions(&CMD, bom, r"powershell C:\p.ps1"), ["folder C:\\ä"]);
    for line in [
        r"powershell -File C:\p.ps1 -Name x",
        r"powershell C:\p.ps1 x",
    ] {
        assert_eq!(error(&CMD, with(&[program]), line).0, NotUnderstood);
    }
    assert_eq!(refused(&CMD, r"powershell -File C:\none.ps1").0, Fails);
    let mut unknown = image();
    unknown.file(r"C:\p.ps1", None);
    assert_eq!(
        error(&CMD, unknown, r"powershell -File C:\p.ps1").0,
        Deferred
    );
    let mut loaded = image();
    let line = r"curl -o C:\p.ps1 https://example.com/p.ps1 && powershell -File C:\p.ps1";
    loaded.folder(&r"C:\x".parse().unwrap());
    assert_eq!(error(&CMD, loaded, line).0, Deferred);
}

const CACHE: &str = "$stop = (Get-Date).AddMinutes(15); $ErrorActionPreference = 'Stop'; \
    while (!(Test-Path -Path $env:PSModuleAnalysisCachePath)) { Write-Host \\\"'waiting'\\\"; \
    if ((Get-Date) -gt $stop) { throw 'timeout' }; Start-Sleep -Seconds 6 }; mkdir C:\\after";

#[test]
fn the_loop_that_waits_for_the_module_cache_is_skipped_and_no_other() {
    let set = r"$env:PSModuleAnalysisCachePath = 'C:\cache\Cache'; ";
    let found = actions(&POWERSHELL, image(), &format!("{set}{CACHE}"));
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[1], r"unclear C:\cache\Cache");
    assert_eq!(found[2], r"folder C:\after");
    assert_eq!(refused(&POWERSHELL, CACHE).0, NotUnderstood);
    let other = CACHE.replace("$env:PSModuleAnalysisCachePath", r"C:\other");
    assert_eq!(
        refused(&POWERSHELL, &format!("{set}{other}")).0,
        NeedsWindows
    );
}
