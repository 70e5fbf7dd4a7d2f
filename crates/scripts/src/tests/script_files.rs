//! Scripts and batch files of the image.

use super::{POWERSHELL, Tree, check, image, in_powershell, refused};
use crate::ScriptErrorKind::{NeedsWindows, NotUnderstood};

/// An image with scripts.
fn with(scripts: &[(&str, &str)]) -> Tree {
    let mut tree = image();
    for (path, text) in scripts {
        tree.file(path, Some(text.as_bytes().to_vec()));
    }
    tree
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
        # A slash begins a path, and not an option.
        cmd> powershell /build/setup.ps1 => folder C:\data; folder C:\build\logs
    ",
    );
}

#[test]
fn a_script_has_variables_of_its_own_and_the_environment_of_its_caller() {
    let inner = (
        r"C:\in.ps1",
        "$x = 'inner'; mkdir C:\\$y; $env:Z = 'set'; cd C:\\data",
    );
    check(
        &with(&[inner]),
        r"PS> mkdir C:\data; $x = 'outer'; $y = 'seen'; C:\in.ps1; mkdir C:\$x; mkdir $env:Z => folder C:\data; folder C:\seen; folder C:\outer; folder C:\data\set",
    );
    let inner = (r"C:\in.ps1", "if ($y) { throw 'seen' }; $env:Z = 'set'");
    check(
        &with(&[inner]),
        r"PS> mkdir C:\data; $y = 'not'; powershell -File C:\in.ps1; mkdir C:\x$env:Z => folder C:\data; folder C:\x",
    );
    let global = (r"C:\in.ps1", "$global:x = 1");
    check(&with(&[global]), r"PS> C:\in.ps1 => NotUnderstood");
}

#[test]
fn exit_codes_are_those_of_powershell() {
    let exits = (
        r"C:\e.ps1",
        "if (Test-Path C:\\work) { exit 3 }\nmkdir C:\\no",
    );
    let missing = (r"C:\m.ps1", "Remove-Item C:\\none");
    check(
        &with(&[exits, missing]),
        r"
        cmd> powershell -File C:\e.ps1 => Fails
        cmd> powershell C:\e.ps1 => Fails
        PS> C:\e.ps1 => Fails
        PS> C:\e.ps1; mkdir C:\$LASTEXITCODE => folder C:\3
        # A last command that fails does not fail the script.
        cmd> powershell -File C:\m.ps1 => nothing
        PS continue> C:\m.ps1 => nothing
        PS> C:\m.ps1 => Fails: …C:\m.ps1:1: …
    ",
    );
}

#[test]
fn what_a_script_needs_is_told_with_its_line() {
    let program = (
        r"C:\p.ps1",
        "mkdir C:\\x\n\nStart-Process C:\\setup.exe -Wait\n",
    );
    check(
        &with(&[program]),
        r"
        cmd> powershell C:\p.ps1 => NeedsWindows: …C:\p.ps1:3: …
        cmd> powershell -File C:\p.ps1 -Name x => NotUnderstood
        cmd> powershell C:\p.ps1 x => NotUnderstood
    ",
    );
    for text in [
        "param([Parameter(Mandatory)] [string]$x)\nmkdir C:\\$x",
        "mkdir C:\\ä",
        "mkdir C:\\a (",
        "#requires -Version 7\nmkdir C:\\a",
        "mkdir C:\\a\nbreak",
        "C:\\p.ps1",
    ] {
        let tree = with(&[(r"C:\p.ps1", text)]);
        check(&tree, r"cmd> powershell C:\p.ps1 => NotUnderstood");
    }
    let bom = with(&[(r"C:\p.ps1", "\u{feff}mkdir C:\\ä")]);
    check(&bom, r"cmd> powershell C:\p.ps1 => folder C:\ä");
    let mut unknown = image();
    unknown.file(r"C:\p.ps1", None);
    check(&unknown, r"cmd> powershell -File C:\p.ps1 => Deferred");
    let mut loaded = image();
    loaded.folder(&r"C:\x".parse().unwrap());
    check(
        &loaded,
        r"cmd> curl -o C:\p.ps1 https://example.com/p.ps1 && powershell -File C:\p.ps1 => Deferred",
    );
}

const CACHE: &str = "$stop = (Get-Date).AddMinutes(15); $ErrorActionPreference = 'Stop'; \
    while (!(Test-Path -Path $env:PSModuleAnalysisCachePath)) { Write-Host \\\"'waiting'\\\"; \
    if ((Get-Date) -gt $stop) { throw 'timeout' }; Start-Sleep -Seconds 6 }; mkdir C:\\after";

#[test]
fn the_loop_that_waits_for_the_module_cache_is_skipped_and_no_other() {
    let set = r"$env:PSModuleAnalysisCachePath = 'C:\cache\Cache'; ";
    let found = in_powershell(&format!("{set}{CACHE}"));
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
    check(&with(&[validated]), r"PS> C:\s.ps1 c => NotUnderstood");
}

#[test]
fn a_parameter_that_is_not_given_has_the_value_of_its_type() {
    let script = (
        r"C:\s.ps1",
        "#Requires -Version 5\nparam([Parameter(Mandatory = $false)] [string]$text, [int]$number, $any, \
         [bool]$is, [string[]]$all)\nif ($any -eq $null -and $all -eq $null) { \
         Set-Content C:\\o.txt \"[$text] $number $is\" }",
    );
    check(
        &with(&[script]),
        r"cmd> powershell -File C:\s.ps1 => write C:\o.txt [] 0 False\r\n",
    );
    for newer in [
        "#Requires -Version 7", "#Requires -Version 5.2", "#Requires -Modules a",
    ] {
        let text = format!("{newer}\nmkdir C:\\a");
        let tree = with(&[(r"C:\s.ps1", text.as_str())]);
        check(&tree, r"cmd> powershell C:\s.ps1 => NotUnderstood");
    }
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
    check(
        &with(&[HELPERS, main]),
        r"cmd> powershell C:\own\main.ps1 => NeedsWindows: …C:\own\main.ps1:4: …C:\in\helpers.ps1:7: …",
    );
    // The caller keeps its own name, and ends where the script exits.
    let main = (
        r"C:\own\main.ps1",
        ". 'C:\\in\\helpers.ps1'\nmkdir $PSScriptRoot\\made\n. 'C:\\end.ps1'\nmkdir C:\\no\n",
    );
    let scripts = [HELPERS, main, (r"C:\end.ps1", "exit 0")];
    check(
        &with(&scripts),
        r"cmd> powershell -File C:\own\main.ps1 => folder C:\own\made",
    );
    let block = (r"C:\b.ps1", "$b = { mkdir C:\\a }");
    check(
        &with(&[block]),
        r"
        PS> . C:\none.ps1 => Fails
        PS> . C:\b.ps1 => NotUnderstood
        PS> . { mkdir C:\a } => NotUnderstood
        PS> . mkdir C:\a => NotUnderstood
    ",
    );
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
    check(
        &with(&[module, state, script]),
        r"
        PS> Import-Module C:\none.psm1 => Fails
        PS> Import-Module C:\in\state.psm1 => NotUnderstood
        PS> C:\in\main.ps1 => NotUnderstood
        PS> Import-Module Own => NeedsWindows
    ",
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
    for line in [
        r"cmd> C:\build\setup.cmd C:\x 2",
        r"cmd> C:\build\setup C:\x 2",
        r"cmd> call C:\build\setup.cmd C:\x 2",
        r"cmd> cd C:\build && setup C:\x 2",
        r"cmd> cmd /c C:\build\setup.cmd C:\x 2",
        r"PS> C:\build\setup.cmd C:\x 2",
        r"PS> cd C:\build; & .\setup.cmd C:\x 2",
    ] {
        let done = r"folder C:\x; folder C:\x\a; folder C:\x\b; write C:\build\log.txt 100% of setup.cmd 2 C:\\x 2 end\r\n";
        check(&with(&[BATCH]), &format!("{line} => {done}"));
    }
    check(
        &with(&[BATCH]),
        r"
        cmd> C:\build\setup.cmd && mkdir C:\after => folder C:\none…
        PS> cd C:\build; setup.cmd => NotUnderstood
    ",
    );
}

#[test]
fn the_list_of_a_loop_may_have_several_lines() {
    let batch = (
        r"C:\b.bat",
        "for %%i in (\r\n  a\r\n  b\r\n) do mkdir C:\\%%i\r\n",
    );
    check(
        &with(&[batch]),
        r"cmd> C:\b.bat => folder C:\a; folder C:\b",
    );
    let batch = (r"C:\b.bat", "for %%i in (\r\n  a\r\n");
    check(&with(&[batch]), r"cmd> C:\b.bat => NotUnderstood");
}

#[test]
fn a_slash_ends_the_name_of_a_program() {
    check(
        &with(&[BATCH]),
        r#"
        cmd> cd C:\ && ./build/setup.cmd C:\x => NotUnderstood
        cmd> cd C:\ && build/setup C:\x => NotUnderstood
        cmd> cd C:\ && call build/setup.cmd C:\x => NotUnderstood
        cmd> cd C:\ && "build/setup.cmd" C:\x => folder C:\x…
        cmd> C:/build/setup.cmd C:\x => folder C:\x…
        cmd> cd C:\ && .\build\setup.cmd C:\x => folder C:\x…
    "#,
    );
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
    check(
        &with(&[batch]),
        r"cmd> C:\b.bat => folder C:\a; folder C:\b; folder C:\c; folder C:\d",
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
    let ends = (r"C:\e.bat", "mkdir C:\\a\r\nexit /b 3\r\nmkdir C:\\no\r\n");
    let checks = (
        r"C:\v.bat",
        "node --version\r\nif errorlevel 1 exit /b 1\r\nif %errorlevel% neq 0 exit /b %errorlevel%\r\n",
    );
    let quits = (r"C:\q.bat", "exit 0");
    let end = (r"C:\end.bat", "goto :eof\r\nmkdir C:\\no\r\n");
    let handles = (r"C:\h.bat", "robocopy C:\\a C:\\c /E || set A=b\r\n");
    let calls = (
        r"C:\i.bat",
        "call C:\\h.bat\r\nif errorlevel 1 mkdir C:\\d\r\n",
    );
    check(
        &with(&[sets, keeps, uses, ends, checks, quits, end, handles, calls]),
        r#"
        cmd> C:\use.bat => folder C:\made; folder C:\made\b
        cmd> C:\e.bat => Fails
        cmd> call C:\e.bat && mkdir C:\b => Fails
        cmd> call C:\e.bat || mkdir C:\b => folder C:\a; folder C:\b
        # Without call, && and || see the success of exit /b.
        cmd> C:\e.bat && mkdir C:\b => NotUnderstood
        cmd> (C:\e.bat) || mkdir C:\b => NotUnderstood
        # What was left out succeeds where its failure would fail the build.
        cmd> C:\v.bat => Skip("node --version")
        # exit without /b ends the cmd that called it.
        cmd> C:\q.bat & mkdir C:\b => nothing
        cmd> C:\end.bat && mkdir C:\b => folder C:\b
        # The file ends with 0, and ERRORLEVEL is that of robocopy.
        cmd> mkdir C:\a\b& call C:\h.bat& if errorlevel 1 mkdir C:\d => NotUnderstood
        cmd> mkdir C:\a\b& C:\i.bat => NotUnderstood
    "#,
    );
}

#[test]
fn what_a_batch_file_needs_is_told_with_its_line() {
    for text in [
        "goto label\r\n:label\r\n",
        "call :label\r\n:label\r\n",
        "if exist C:\\work (\r\nmkdir C:\\a\r\n",
        "mkdir C:\\a\r\nmkdir C:\\a\r\nmkdir C:\\b\r\n",
        "mkdir C:\\a\r\nmkdir C:\\a & if errorlevel 1 mkdir C:\\b\r\n",
        "mkdir C:\\a\r\nmkdir C:\\a || echo %ERRORLEVEL%\r\nmkdir C:\\%ERRORLEVEL%",
        "setlocal enabledelayedexpansion\r\n",
        "setlocal\r\ncd C:\\Windows\r\n",
        "mkdir C:\\%NONE:~0,1%\r\n",
        "mkdir C:\\ä\r\n",
        "rem ^\r\nmkdir C:\\a\r\n",
        "for /f %%i in (a) do mkdir %%i\r\n",
        "C:\\b.bat\r\n",
    ] {
        let tree = with(&[(r"C:\b.bat", text)]);
        check(&tree, r"cmd> C:\b.bat => NotUnderstood");
    }
    for text in [
        "mkdir C:\\a\r\nsetup.exe /quiet\r\n",
        "node --version\r\nif %errorlevel% neq 0 mkdir C:\\a\r\n",
        "node --version\r\nif errorlevel 1 mkdir C:\\a\r\n",
    ] {
        let tree = with(&[(r"C:\b.bat", text)]);
        check(&tree, r"cmd> C:\b.bat => NeedsWindows");
    }
    let tree = with(&[(r"C:\b.bat", "@echo off\r\n\r\nsetup.exe\r\n")]);
    check(&tree, r"cmd> C:\b.bat => NeedsWindows: …C:\b.bat:3: …");
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
        # After -File, arguments are texts.
        cmd> powershell -File C:\a.ps1 007 => folder C:\007
    ",
    );
    for word in [
        "007", "1.10", "1kb", "0x10", "1e3", "-0", "12345678901234567890",
    ] {
        for line in [
            format!(r"C:\a.ps1 {word}"),
            format!(r"C:\a.ps1 -Name {word}"),
            format!(r"function f($a) {{ mkdir C:\$a }}; f {word}"),
        ] {
            check(&with(&[script]), &format!("PS> {line} => NotUnderstood"));
        }
    }
}

#[test]
fn strings_keep_the_line_ends_of_their_script() {
    let text = "$a = @'\nb\nc\n'@\nSet-Content C:\\o.txt $a `\n  -NoNewline\n\
        [IO.File]::WriteAllText('C:\\p.txt', 'd\ne')\nif ($a.Length -eq 4) { mkdir C:\\windows-end }\n\
        elseif ($a.Length -eq 3)\n{\n  mkdir C:\\unix-end # end\n}\nexit\n";
    let tree = |text: &str| with(&[(r"C:\build\s.ps1", text)]);
    check(
        &tree(&text.replace('\n', "\r\n")),
        r"cmd> powershell C:\build\s.ps1 => write C:\o.txt b\r\nc; write C:\p.txt d\r\ne; folder C:\windows-end",
    );
    check(
        &tree(text),
        r"cmd> powershell C:\build\s.ps1 => write C:\o.txt b\nc; write C:\p.txt d\ne; folder C:\unix-end",
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
    for (profile, shell, other) in [
        (windows, "powershell", "pwsh"),
        (of_user, "powershell", "pwsh"),
        (core, "pwsh", "powershell"),
    ] {
        let cases = r"
            cmd> SHELL -Command mkdir C:\a => NotUnderstood: …the profile C:\…
            cmd> SHELL -File C:\build\setup.ps1 => NotUnderstood: …the profile C:\…
            cmd> SHELL -nop -Command mkdir C:\a => folder C:\a
            cmd> SHELL -nop -File C:\build\setup.ps1 => folder C:\data; folder C:\build\logs
            cmd> OTHER -c mkdir C:\a => folder C:\a
        ";
        let cases = cases.replace("SHELL", shell).replace("OTHER", other);
        check(&with(&[profile, SETUP]), &cases);
    }
}
