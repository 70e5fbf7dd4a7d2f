use super::{CMD, OPEN, POWERSHELL, Tree, check, describe, image, refused, run_on};
use crate::ScriptErrorKind::{self, Deferred, Fails, NeedsWindows, NotUnderstood};

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
    check(
        &with(&[SETUP]),
        r"
        cmd> powershell -File C:\build\setup.ps1 => folder C:\data; folder C:\build\logs
        cmd> powershell -ExecutionPolicy Bypass -NoProfile -f C:/build/setup.ps1 => folder C:\data; folder C:\build\logs
        cmd> powershell C:\build\setup.ps1 => folder C:\data; folder C:\build\logs
        cmd> cd C:\build && powershell .\setup.ps1 => folder C:\data; folder C:\build\logs
        cmd> cd C:\build && pwsh setup.ps1 => folder C:\data; folder C:\build\logs
        PS> C:\build\setup.ps1 => folder C:\data; folder C:\build\logs
        PS> & 'C:\build\setup.ps1' => folder C:\data; folder C:\build\logs
        PS> cd C:\build; .\setup.ps1 => folder C:\data; folder C:\build\logs
        PS> & C:\build\Setup.ps1 => folder C:\data; folder C:\build\logs
    ",
    );
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
            r"folder C:\data", r"folder C:\seen", r"folder C:\outer", r"folder C:\data\set"
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
    check(
        &with(&[exits]),
        r"
        cmd> powershell -File C:\e.ps1 => Fails
        cmd> powershell C:\e.ps1 => Fails
        PS> C:\e.ps1 => Fails
        PS> C:\e.ps1; mkdir C:\$LASTEXITCODE => folder C:\3
    ",
    );
    // A last command that fails does not fail the script.
    let missing = (r"C:\m.ps1", "Remove-Item C:\\none");
    assert!(actions(&CMD, with(&[missing]), r"powershell -File C:\m.ps1").is_empty());
    assert!(actions(&OPEN, with(&[missing]), r"C:\m.ps1").is_empty());
    let (kind, why) = error(&POWERSHELL, with(&[missing]), r"C:\m.ps1");
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
        (
            "param([Parameter(Mandatory)] [string]$x)\nmkdir C:\\$x",
            NotUnderstood,
        ),
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

const WITH_PARAMETERS: (&str, &str) = (
    r"C:\s.ps1",
    "[CmdletBinding()]\nparam(\n  [Parameter(Mandatory=$true)] [string] $name,\n  [int]$number = 1,\n  \
     [switch]$also\n)\nmkdir C:\\$name-$number\nif ($also) { mkdir C:\\also }\n",
);

#[test]
fn a_script_gets_its_arguments_by_name_and_by_position() {
    check(
        &with(&[WITH_PARAMETERS]),
        r"
        cmd> powershell -File C:\s.ps1 -Name x -Number 2 => folder C:\x-2
        cmd> powershell -File C:\s.ps1 x => folder C:\x-1
        cmd> powershell C:\s.ps1 x 3 -Also => folder C:\x-3; folder C:\also
        PS> $v = 'y'; C:\s.ps1 -Name $v -Also:$true => folder C:\y-1; folder C:\also
        PS> & C:\s.ps1 'a b' => folder C:\a b-1
        cmd> powershell -File C:\s.ps1 => NotUnderstood
        cmd> powershell -File C:\s.ps1 -Other x => NotUnderstood
        cmd> powershell -File C:\s.ps1 x 2 3 => NotUnderstood
        cmd> powershell -File C:\s.ps1 x many => NotUnderstood
    ",
    );
    let validated = (
        r"C:\s.ps1",
        "param([ValidateSet('a', 'b')] [string] $x)\nmkdir C:\\$x",
    );
    assert_eq!(
        error(&POWERSHELL, with(&[validated]), r"C:\s.ps1 c").0,
        NotUnderstood
    );
}

#[test]
fn a_parameter_that_is_not_given_has_the_value_of_its_type() {
    let script = (
        r"C:\s.ps1",
        "#Requires -Version 5\nparam([Parameter(Mandatory = $false)] [string]$text, [int]$number, $any, \
         [bool]$is, [string[]]$all)\nif ($any -eq $null -and $all -eq $null) { \
         Set-Content C:\\o.txt \"[$text] $number $is\" }",
    );
    assert_eq!(
        actions(&CMD, with(&[script]), r"powershell -File C:\s.ps1"),
        [r"write C:\o.txt [] 0 False\r\n"]
    );
    for newer in [
        "#Requires -Version 7", "#Requires -Version 5.2", "#Requires -Modules a",
    ] {
        let text = format!("{newer}\nmkdir C:\\a");
        let tree = with(&[(r"C:\s.ps1", text.as_str())]);
        assert_eq!(error(&CMD, tree, r"powershell C:\s.ps1").0, NotUnderstood);
    }
}

#[test]
fn in_strict_mode_nothing_without_a_value_is_used() {
    let strict = "Set-StrictMode -Version Latest;";
    assert_eq!(
        actions(
            &POWERSHELL,
            image(),
            &format!("{strict} $a = 'a'; mkdir C:\\$a")
        ),
        [r"folder C:\a"]
    );
    for line in [
        "mkdir C:\\x$none",
        "if ($none) { }; mkdir C:\\x",
        "$t = @{}; if ($t.a) { mkdir C:\\x }",
        "$l = 'a','b'; mkdir C:\\x$($l[2])",
    ] {
        let line = format!("{strict} {line}");
        assert_eq!(refused(&POWERSHELL, &line).0, NotUnderstood, "{line}");
    }
    let off = format!("{strict} Set-StrictMode -Off; mkdir C:\\x$none");
    assert_eq!(actions(&POWERSHELL, image(), &off), [r"folder C:\x"]);
}

const HELPERS: (&str, &str) = (
    r"C:\in\helpers.ps1",
    "$from = 'helper'\nfunction Add-Own($name) {\n  mkdir \"$PSScriptRoot\\$name-$kind\"\n}\n\
     function Start-Setup {\n\n  Start-Process C:\\setup.exe -Wait\n}\n",
);

#[test]
fn a_dotted_script_runs_in_the_scope_of_its_caller() {
    check(
        &with(&[HELPERS]),
        r"
        PS> . C:\in\helpers.ps1; $kind = 'b'; Add-Own a; mkdir C:\$from => folder C:\in\a-b; folder C:\helper
        PS> $kind = 'b'; cd C:\in; . .\helpers.ps1; Add-Own a; mkdir C:\$from => folder C:\in\a-b; folder C:\helper
        PS> $d = 'C:\in'; . (Join-Path $d 'helpers.ps1'); $kind = 'b'; Add-Own a; mkdir C:\$from => folder C:\in\a-b; folder C:\helper
        PS> $d = 'C:\in\helpers.ps1'; .$d; $kind = 'b'; Add-Own a; mkdir C:\$from => folder C:\in\a-b; folder C:\helper
    ",
    );
    // Each error has the line of its script.
    let main = (
        r"C:\own\main.ps1",
        "$d = $PSScriptRoot\n. 'C:\\in\\helpers.ps1'\nmkdir $d\\made\nStart-Setup\n",
    );
    let (kind, why) = error(&CMD, with(&[HELPERS, main]), r"powershell C:\own\main.ps1");
    assert_eq!(kind, NeedsWindows, "{why}");
    let both = r"C:\own\main.ps1:4: ";
    assert!(
        why.contains(both) && why.contains(r"C:\in\helpers.ps1:7: "),
        "{why}"
    );
    // The caller keeps its own name, and ends where the script exits.
    let main = (
        r"C:\own\main.ps1",
        ". 'C:\\in\\helpers.ps1'\nmkdir $PSScriptRoot\\made\n. 'C:\\end.ps1'\nmkdir C:\\no\n",
    );
    let scripts = [HELPERS, main, (r"C:\end.ps1", "exit 0")];
    assert_eq!(
        actions(&CMD, with(&scripts), r"powershell -File C:\own\main.ps1"),
        [r"folder C:\own\made"]
    );
    let block = (r"C:\b.ps1", "$b = { mkdir C:\\a }");
    for (line, expected) in [
        (r". C:\none.ps1", Fails),
        (r". C:\b.ps1", NotUnderstood),
        (r". { mkdir C:\a }", NotUnderstood),
        (r". mkdir C:\a", NotUnderstood),
    ] {
        let (kind, why) = error(&POWERSHELL, with(&[block]), line);
        assert_eq!(kind, expected, "{line}: {why}");
    }
}

#[test]
fn a_module_of_the_image_brings_its_functions() {
    let module = (
        r"C:\in\own.psm1",
        "function Add-Own($name) {\n  mkdir \"$PSScriptRoot\\$name-$kind\"\n}\n\
         Export-ModuleMember -Function Add-Own\n",
    );
    check(
        &with(&[module]),
        r"
        PS> Import-Module C:\in\own.psm1; $kind = 'b'; Add-Own a => folder C:\in\a-b
        PS> $kind = 'b'; cd C:\in; Import-Module .\own.psm1 -Force; Add-Own a => folder C:\in\a-b
    ",
    );
    let state = (
        r"C:\in\state.psm1",
        "$kind = 'c'\nfunction Add-Own { mkdir C:\\$kind }",
    );
    let script = (
        r"C:\in\main.ps1",
        "Import-Module C:\\in\\own.psm1\nAdd-Own a",
    );
    for (line, expected) in [
        (r"Import-Module C:\none.psm1", Fails),
        (r"Import-Module C:\in\state.psm1", NotUnderstood),
        (r"C:\in\main.ps1", NotUnderstood),
        ("Import-Module Own", NeedsWindows),
    ] {
        let (kind, why) = error(&POWERSHELL, with(&[module, state, script]), line);
        assert_eq!(kind, expected, "{line}: {why}");
    }
}

#[test]
fn a_slash_begins_a_path_and_not_an_option() {
    let line = r"powershell /build/setup.ps1";
    assert_eq!(
        actions(&CMD, with(&[SETUP]), line),
        [r"folder C:\data", r"folder C:\build\logs"]
    );
}

const BATCH: (&str, &str) = (
    r"C:\build\setup.cmd",
    "@echo off\r\nrem a comment with %1\r\n:: another\r\nsetlocal\r\nset DIR=%~1\r\n\
     if \"%DIR%\"==\"\" set DIR=C:\\none\r\n:label\r\nmkdir \"%DIR%\"\r\nif errorlevel 1 exit /b 1\r\n\
     for %%i in (a b) do (\r\n  mkdir %DIR%\\%%i\r\n)\r\n>%~dp0log.txt echo 100%% of %~nx0 %2 %* ^\r\nend\r\n\
     if %ERRORLEVEL% neq 0 exit /b %ERRORLEVEL%\r\nexit /b 0\r\n",
);

#[test]
fn a_batch_file_is_read_however_it_is_run() {
    for (shell, line) in [
        (&CMD[..], r"C:\build\setup.cmd C:\x 2"),
        (&CMD, r"C:\build\setup C:\x 2"),
        (&CMD, r"call C:\build\setup.cmd C:\x 2"),
        (&CMD, r"cd C:\build && setup C:\x 2"),
        (&CMD, r"cmd /c C:\build\setup.cmd C:\x 2"),
        (&POWERSHELL, r"C:\build\setup.cmd C:\x 2"),
        (&POWERSHELL, r"cd C:\build; & .\setup.cmd C:\x 2"),
    ] {
        assert_eq!(
            actions(shell, with(&[BATCH]), line),
            [
                r"folder C:\x",
                r"folder C:\x\a",
                r"folder C:\x\b",
                r"write C:\build\log.txt 100% of setup.cmd 2 C:\\x 2 end\r\n",
            ],
            "{line}"
        );
    }
    assert_eq!(
        actions(
            &CMD,
            with(&[BATCH]),
            r"C:\build\setup.cmd && mkdir C:\after"
        )[0],
        r"folder C:\none"
    );
    assert_eq!(
        error(&POWERSHELL, with(&[BATCH]), r"cd C:\build; setup.cmd").0,
        NotUnderstood
    );
}

#[test]
fn the_list_of_a_loop_may_have_several_lines() {
    let batch = (
        r"C:\b.bat",
        "for %%i in (\r\n  a\r\n  b\r\n) do mkdir C:\\%%i\r\n",
    );
    assert_eq!(
        actions(&CMD, with(&[batch]), r"C:\b.bat"),
        [r"folder C:\a", r"folder C:\b"]
    );
    let batch = (r"C:\b.bat", "for %%i in (\r\n  a\r\n");
    assert_eq!(error(&CMD, with(&[batch]), r"C:\b.bat").0, NotUnderstood);
}

#[test]
fn a_slash_ends_the_name_of_a_program() {
    for (line, is_read) in [
        (r"cd C:\ && ./build/setup.cmd C:\x", false),
        (r"cd C:\ && build/setup C:\x", false),
        (r"cd C:\ && call build/setup.cmd C:\x", false),
        (r#"cd C:\ && "build/setup.cmd" C:\x"#, true),
        (r"C:/build/setup.cmd C:\x", true),
        (r"cd C:\ && .\build\setup.cmd C:\x", true),
    ] {
        if is_read {
            assert_eq!(actions(&CMD, with(&[BATCH]), line)[0], r"folder C:\x");
        } else {
            assert_eq!(error(&CMD, with(&[BATCH]), line).0, NotUnderstood, "{line}");
        }
    }
}

#[test]
fn an_if_in_a_block_ends_with_its_line() {
    let batch = (
        r"C:\b.bat",
        "if exist C:\\work (\r\n  if exist C:\\none mkdir C:\\no\r\n\r\n  \
         for %%i in (a) do (mkdir C:\\%%i) & mkdir C:\\b\r\n  \
         if exist C:\\none (\r\n    mkdir C:\\no\r\n  ) else (\r\n    mkdir C:\\c\r\n  )\r\n  \
         mkdir C:\\d\r\n)\r\n",
    );
    assert_eq!(
        actions(&CMD, with(&[batch]), r"C:\b.bat"),
        [
            r"folder C:\a", r"folder C:\b", r"folder C:\c", r"folder C:\d"
        ]
    );
}

#[test]
fn variables_and_exit_codes_of_a_batch_file_are_those_of_cmd() {
    let sets = (r"C:\set.bat", "set A=C:\\made\r\nmkdir %A%%NONE%\r\n");
    let keeps = (r"C:\keep.bat", "setlocal\r\nset A=C:\\other\r\n");
    let uses = (
        r"C:\use.bat",
        "call C:\\set.bat\r\ncall C:\\keep.bat\r\nmkdir %A%\\b\r\n",
    );
    assert_eq!(
        actions(&CMD, with(&[sets, keeps, uses]), r"C:\use.bat"),
        [r"folder C:\made", r"folder C:\made\b"]
    );
    let ends = (r"C:\e.bat", "mkdir C:\\a\r\nexit /b 3\r\nmkdir C:\\no\r\n");
    let (kind, why) = error(&CMD, with(&[ends]), r"C:\e.bat && mkdir C:\b");
    assert_eq!(kind, Fails, "{why}");
    assert_eq!(
        actions(&CMD, with(&[ends]), r"C:\e.bat || mkdir C:\b"),
        [r"folder C:\a", r"folder C:\b"]
    );
    // What was left out succeeds where its failure would fail the build.
    let checks = (
        r"C:\v.bat",
        "node --version\r\nif errorlevel 1 exit /b 1\r\nif %errorlevel% neq 0 exit /b %errorlevel%\r\n",
    );
    assert_eq!(
        actions(&CMD, with(&[checks]), r"C:\v.bat"),
        [r#"Skip("node --version")"#]
    );
    // exit without /b ends the cmd that called it.
    let quits = (r"C:\q.bat", "exit 0");
    assert_eq!(
        actions(&CMD, with(&[quits]), r"C:\q.bat & mkdir C:\b"),
        [""; 0]
    );
    let end = (r"C:\end.bat", "goto :eof\r\nmkdir C:\\no\r\n");
    assert_eq!(
        actions(&CMD, with(&[end]), r"C:\end.bat && mkdir C:\b"),
        [r"folder C:\b"]
    );
}

#[test]
fn what_a_batch_file_needs_is_told_with_its_line() {
    for (text, expected) in [
        ("mkdir C:\\a\r\nsetup.exe /quiet\r\n", NeedsWindows),
        ("goto label\r\n:label\r\n", NotUnderstood),
        ("call :label\r\n:label\r\n", NotUnderstood),
        ("if exist C:\\work (\r\nmkdir C:\\a\r\n", NotUnderstood),
        (
            "mkdir C:\\a\r\nmkdir C:\\a\r\nmkdir C:\\b\r\n",
            NotUnderstood,
        ),
        (
            "mkdir C:\\a\r\nmkdir C:\\a & if errorlevel 1 mkdir C:\\b\r\n",
            NotUnderstood,
        ),
        (
            "mkdir C:\\a\r\nmkdir C:\\a || echo %ERRORLEVEL%\r\nmkdir C:\\%ERRORLEVEL%",
            NotUnderstood,
        ),
        ("setlocal enabledelayedexpansion\r\n", NotUnderstood),
        ("setlocal\r\ncd C:\\Windows\r\n", NotUnderstood),
        ("mkdir C:\\%NONE:~0,1%\r\n", NotUnderstood),
        ("mkdir C:\\ä\r\n", NotUnderstood),
        ("rem ^\r\nmkdir C:\\a\r\n", NotUnderstood),
        ("for /f %%i in (a) do mkdir %%i\r\n", NotUnderstood),
        ("C:\\b.bat\r\n", NotUnderstood),
        (
            "node --version\r\nif %errorlevel% neq 0 mkdir C:\\a\r\n",
            NeedsWindows,
        ),
        (
            "node --version\r\nif errorlevel 1 mkdir C:\\a\r\n",
            NeedsWindows,
        ),
    ] {
        let (kind, why) = error(&CMD, with(&[(r"C:\b.bat", text)]), r"C:\b.bat");
        assert_eq!(kind, expected, "{text}: {why}");
    }
    let (_, why) = error(
        &CMD,
        with(&[(r"C:\b.bat", "@echo off\r\n\r\nsetup.exe\r\n")]),
        r"C:\b.bat",
    );
    assert!(why.contains(r"C:\b.bat:3: "), "{why}");
}

#[test]
fn an_argument_that_is_a_number_and_a_text_is_not_guessed() {
    let script = (
        r"C:\a.ps1",
        "param($Name, [string]$Text = '')\nmkdir \"C:\\$Name$Text\"\n",
    );
    check(
        &with(&[script]),
        r"
        PS> C:\a.ps1 5 => folder C:\5
        PS> C:\a.ps1 3.7 => folder C:\3.7
        PS> C:\a.ps1 1.2.3 => folder C:\1.2.3
        PS> C:\a.ps1 v1 -Text 1.10 => folder C:\v11.10
        PS> C:\a.ps1 dad => folder C:\dad
    ",
    );
    // After -File, arguments are texts.
    let line = r"powershell -File C:\a.ps1 007";
    assert_eq!(actions(&CMD, with(&[script]), line), [r"folder C:\007"]);
    for word in [
        "007", "1.10", "1kb", "0x10", "1e3", "-0", "12345678901234567890",
    ] {
        for line in [
            format!(r"C:\a.ps1 {word}"),
            format!(r"C:\a.ps1 -Name {word}"),
            format!(r"function f($a) {{ mkdir C:\$a }}; f {word}"),
        ] {
            let (kind, why) = error(&POWERSHELL, with(&[script]), &line);
            assert_eq!(kind, NotUnderstood, "{line}: {why}");
        }
    }
}

#[test]
fn strings_keep_the_line_ends_of_their_script() {
    let text = "$a = @'\nb\nc\n'@\nSet-Content C:\\o.txt $a `\n  -NoNewline\n\
        [IO.File]::WriteAllText('C:\\p.txt', 'd\ne')\nif ($a.Length -eq 4) { mkdir C:\\windows-end }\n\
        elseif ($a.Length -eq 3)\n{\n  mkdir C:\\unix-end # end\n}\nexit\n";
    let line = r"powershell C:\build\s.ps1";
    let tree = |text: &str| with(&[(r"C:\build\s.ps1", text)]);
    assert_eq!(
        actions(&CMD, tree(&text.replace('\n', "\r\n")), line),
        [
            r"write C:\o.txt b\r\nc", r"write C:\p.txt d\r\ne", r"folder C:\windows-end"
        ]
    );
    assert_eq!(
        actions(&CMD, tree(text), line),
        [
            r"write C:\o.txt b\nc", r"write C:\p.txt d\ne", r"folder C:\unix-end"
        ]
    );
}

#[test]
fn a_profile_runs_before_the_command() {
    let windows = (
        r"C:\Windows\System32\WindowsPowerShell\v1.0\profile.ps1",
        "$env:SET = 'x'",
    );
    let of_user = (
        r"C:\Users\ContainerAdministrator\Documents\WindowsPowerShell\Microsoft.PowerShell_profile.ps1",
        "$ErrorActionPreference = 'Stop'",
    );
    let core = (r"C:\Program Files\PowerShell\7\profile.ps1", "cd C:\\");
    for (profile, shell) in [
        (windows, "powershell"),
        (of_user, "powershell"),
        (core, "pwsh"),
    ] {
        for line in ["-Command mkdir C:\\a", r"-File C:\build\setup.ps1"] {
            let tree = with(&[profile, SETUP]);
            let (kind, why) = error(&CMD, tree.clone(), &format!("{shell} {line}"));
            assert_eq!(kind, NotUnderstood);
            assert!(why.contains("the profile C:\\"), "{why}");
            let without = format!("{shell} -nop {line}");
            assert!(!actions(&CMD, tree, &without).is_empty(), "{without}");
        }
        let other = if shell == "pwsh" {
            "powershell"
        } else {
            "pwsh"
        };
        let line = format!("{other} -c mkdir C:\\a");
        assert_eq!(actions(&CMD, with(&[profile]), &line), [r"folder C:\a"]);
    }
}
