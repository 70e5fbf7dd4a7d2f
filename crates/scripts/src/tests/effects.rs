//! Scripts that are read and not run.

use super::{POWERSHELL, refused};
use crate::ScriptErrorKind;
use crate::script::read;

/// Sound scripts that the interpreter does not run, and why.
const NOT_RUN: &str = r#"
for ($i = 0; $i -lt 3; $i++) { Get-Item $i } => for is not supported
for (;;) { break } => for is not supported
switch -Regex ($x) { 'a b' { 1 } { $_ -gt 2 } { 2 } default { 3 } } => switch is not supported
& { param([Parameter(Mandatory=$true)] [string] $a = 'b', $c) dir $a } => param is not supported
trap [Exception] { exit 1 }; dir => trap is not supported
filter f { $_ }; 1 | f | & { begin { } process { } } => filter is not supported
function f([int] $a) { $a } => expected a parameter, found '['
function global:f { 1 } => expected a {, found ':'
while ($true) { break outer } => labels are not supported
$i++ => expected the end of a statement, found '+'
$i--; dir => expected the end of a statement, found '-'
++$i => expected a value, found '+'
1 -shl 2 => expected the end of a statement, found '-'
$x -gt 5MB => unsupported number
$x = 1.5 => unsupported number
$x.$y = 1 => unsupported member name
$x.('a' + 'b') => unsupported member name
[Dictionary[string,int]]::new() => unsupported type [dictionary[string,int]]
@{ $a = 1 } => expected a name, found '$'
icacls --% "a b" /q | dir => --% is not supported
x 'a'b => text directly after a quote is not supported
x $(1)=2 => text directly after $(…) is not supported
x -a,-b c => expected an argument, found ','
x -a:b,c => expected an argument, found ','
x -a:; dir => expected an argument, found ';'
x 1>&2 => expected an argument, found '&'
"#;

#[test]
fn what_the_interpreter_does_not_run_is_read() {
    for case in NOT_RUN.trim().lines() {
        let (script, why) = case.split_once(" => ").unwrap();
        assert!(read(script).is_sound(), "{script}");
        // It is refused before anything runs.
        let (kind, message) = refused(&POWERSHELL, &format!("mkdir C:\\x; {script}"));
        assert_eq!(kind, ScriptErrorKind::NotUnderstood, "{script}");
        assert!(message.ends_with(why), "{script}: {message}");
    }
    // PowerShell 7 runs it.
    assert!(read("a && b || c").is_sound());
    let (kind, _) = refused(&POWERSHELL, "mkdir C:\\x; a && b || c");
    assert_eq!(kind, ScriptErrorKind::Fails);
}

#[test]
fn what_is_not_powershell_is_not_sound() {
    for script in [
        "'a", "\"a", "dir (", "dir )", "{ dir", "if $x { }", "x & y", "x < y", "\"a\" \"b\"",
        "$x = 'a' b", "f(a b, 'c')[", "[a", "for %i in (a) do b", "<# a", "a |", "a &&",
        "switch (1) { 1 }", "$x.", "$x = @\u{201e}a",
    ] {
        assert!(!read(script).is_sound(), "{script}");
    }
    for keyword in [
        "return ", "throw ", "break ", "return (", "-not ", "!", "++",
    ] {
        let script = keyword.repeat(100_000);
        assert!(!read(&script).is_sound(), "{keyword}");
    }
    for (script, is_lone) in [
        ("'a b'", true),
        ("dir; \"$x\"", true),
        ("if ($x) { 'a' }", true),
        ("'a' | dir", false),
        ("$x = 'a'", false),
        ("dir $('a')", false),
        ("'a'.Length", false),
        ("return 'a'", false),
    ] {
        assert_eq!(read(script).has_lone_string, is_lone, "{script}");
    }
}

#[test]
fn spelling_does_not_matter_and_values_do() {
    for (one, other, is_equivalent) in [
        ("dir 'a' \"b\"", "dir a b", true),
        ("dir 'a b'", "dir a b", false),
        ("dir \"$env:A\\b\"", "dir $env:A\\b", true),
        ("dir \"$a.zip\"", "dir $a.zip", false),
        ("dir \"$a.zip/b\"", "dir $a.zip/b", false),
        ("$x = '5'", "$x = 5", true),
        ("$x = 'a'", "$x = a", false),
        ("x.exe '-Da.b=1'", "x.exe -Da.b=1", false),
        ("x.exe '-Da=1'", "x.exe -Da=1", true),
        ("x.exe \"-Da=$b\"", "x.exe -Da=$b", false),
        ("x.exe '-a:' b", "x.exe -a: b", true),
        ("x.exe '-a:b'", "x.exe -a:b", true),
        ("x.exe '-a,-b'", "x.exe -a,-b", true),
        ("x.exe '-a:b,c'", "x.exe -a:b,c", true),
        ("Remove-Item 'a,b'", "Remove-Item a,b", false),
        ("x.exe '/a=\"b\"'", "x.exe /a=b", true),
        ("Set-Content a '\"b\"'", "Set-Content a b", false),
        ("Write-Host 'a b'", "Write-Host c", true),
        ("Write-Host \"a $(b)\"", "Write-Host $(c)", false),
        ("Write-Host 'a b' | dir", "Write-Host c | dir", false),
        ("$x = Write-Output 'a b'", "$x = Write-Output a b", false),
        ("echo 'a' > b", "echo c > b", false),
        ("throw 'a b'", "throw c", true),
        ("dir 'C:\\a\\\\'", "dir C:\\a\\", true),
        ("exit '1'", "exit 1", true),
        (
            "try { dir 'a' } catch { }",
            "try { dir a } catch { exit 1 }",
            false,
        ),
        (
            "try { a } catch [b] { dir 'a b' } catch { c }",
            "try { a } catch [b] { dir a b } catch { c }",
            false,
        ),
        ("cmd /c \"a b\"", "cmd /c a b", true),
        ("powershell -c 'a b; c'", "powershell -c a b; c", true),
        ("powershell -c 'cd b; c'", "powershell -c cd b; c", false),
        ("pwsh -c 'a b; c'", "pwsh -c a b; c", false),
        ("for (;;) { dir 'a' }", "for (;;) { dir a }", true),
        ("for (;;) { dir 'a b' }", "for (;;) { dir a b }", false),
    ] {
        let (first, second) = (read(one), read(other));
        assert!(first.is_sound() && second.is_sound(), "{one}, {other}");
        assert_eq!(
            first.is_equivalent(&second),
            is_equivalent,
            "{one}, {other}"
        );
    }
    assert!(!read("'").is_equivalent(&read("'")));
}

#[test]
fn a_single_command_has_a_name() {
    for (script, name) in [
        ("a.exe b $c (d)", Some("a.exe")),
        ("& 'C:\\a b.exe' -c", Some("C:\\a b.exe")),
        ("echo a", Some("write-output")),
        ("a; b", None),
        ("a | b", None),
        ("a && b", None),
        ("a > b", None),
        ("a $b.c", None),
        ("$x = a", None),
        ("a (", None),
    ] {
        assert_eq!(read(script).only_command.as_deref(), name, "{script}");
    }
}

#[test]
fn what_follows_a_version_is_read_once() {
    // Each level would be read twice.
    let (open, close) = ("$a.1[(c ".repeat(8), ")]x".repeat(8));
    let script = format!("echo {open}$({}){close}", "x;".repeat(10_000));
    let start = std::time::Instant::now();
    assert!(read(&script).is_sound());
    let nested = start.elapsed();
    let start = std::time::Instant::now();
    assert!(read(&"x;".repeat(10_000)).is_sound());
    let plain = start.elapsed();
    assert!(nested < plain * 60, "{plain:?}, {nested:?}");
}
