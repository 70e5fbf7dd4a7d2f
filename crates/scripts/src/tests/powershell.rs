//! The language: expressions, statements, functions, errors.

use super::{POWERSHELL, image, in_powershell, refused, run_on, written};
use crate::ScriptErrorKind::NotUnderstood;

const SHA: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

#[test]
fn what_is_not_understood_is_named() {
    let line = "mkdir C:\\a;   Start-Process x.exe";
    let error = run_on(image(), &POWERSHELL, line).unwrap_err();
    assert_eq!(&line[error.at..], "Start-Process x.exe");
}

#[test]
fn what_only_tells_is_left_out_and_cannot_be_used() {
    let reported = in_powershell("Get-Service w3svc; Get-Date | Out-Null; Get-Process | Out-Host");
    assert_eq!(reported.len(), 2, "{reported:?}");
}

#[test]
fn a_variable_has_its_type() {
    for (script, value, expected) in [
        ("[int]$n = '5'", "$n + 1", "6;"),
        ("[int]$n = $env:NONE", "$n + 1", "1;"),
        ("[int]$n = 5; $n = '7'", "$n + 1", "8;"),
        ("[int]$n = '0x10'; $n += '4'; $n = $n", "$n", "20;"),
        ("[string]$s = 5", "$s + 1", "51;"),
        ("[string]$s = 'a','b'", "$s", "a b;"),
        ("[string]$s = 'a'; $s = $null", "$s -eq $null", "False;"),
        ("[string]$s = 1; [int]$s = 2", "$s + 1", "3;"),
        ("[bool]$b = 'False'", "$b", "True;"),
        ("$b = [int]$a = '5'", "$a + $b", "10;"),
        ("$b = ($a = 'x') + 'y'", "$a + $b", "xxy;"),
        ("[array]$a = 'x'", "$a + 'y'", "x;y;"),
        ("[string[]]$a = 1; $a += 2", "$a[0] + $a[1]", "12;"),
        ("[int[]]$a = '1','2'", "$a[0] + $a[1]", "3;"),
        ("[int]$n = 0; foreach ($n in '1','2') { }", "$n + 1", "3;"),
        // A function or block has variables of its own.
        ("[int]$n = 5; & { $n = '7'; $n + 1 | Out-Null }", "$n", "5;"),
        ("[int]$n = 5; function f { $n = '7'; $n + 1 }", "f", "71;"),
        ("function f([string]$s) { $s + 1 }", "f 5", "51;"),
        (
            "function f { param([string]$s) $s -eq $null }",
            "f",
            "False;",
        ),
        // What is not supported is only refused where it is used.
        ("[version]$v = '1.2'", "'x'", "x;"),
        ("[hashtable]$t = @{ a = 'b' }", "$t.a", "b;"),
    ] {
        let line = format!("{script}; Set-Content C:\\o.txt ({value})");
        assert_eq!(written(&line), Ok(expected.to_owned()), "{line}");
    }
    for script in [
        "[int]$n = 'abc'", "[int]$n = '5.5'", "[int]$n = '1kb'", "[int]$n = 3000000000",
        "[double]$n = '1.5'", "[version]$n = '1.2'",
    ] {
        let line = format!("{script}; Set-Content C:\\o.txt $n");
        assert_eq!(refused(&POWERSHELL, &line).0, NotUnderstood, "{line}");
    }
    let checked = format!(
        "curl https://e.com/a -OutFile C:\\a; [string]$h = (Get-FileHash C:\\a).Hash; if ($h -ne '{SHA}') {{ exit 1 }}"
    );
    assert!(in_powershell(&checked)[1].starts_with("verify "));
}

#[test]
fn a_text_that_is_compared_with_a_number_becomes_one() {
    for (test, expected) in [
        ("0 -eq ''", "True"),
        ("0 -ne ''", "False"),
        ("5 -eq '5.0'", "True"),
        ("5 -eq ' 5 '", "True"),
        ("16 -eq '0x10'", "True"),
        ("5 -eq 'five'", "False"),
        ("'5.0' -eq 5", "False"),
        ("1 -eq $true", "True"),
    ] {
        let line = format!("Set-Content C:\\o.txt ({test})");
        assert_eq!(written(&line), Ok(format!("{expected};")), "{test}");
    }
}

#[test]
fn finally_runs_after_exit() {
    for script in [
        "try { throw 'x' } catch { exit 0 } finally { Set-Content C:\\o.txt f }",
        "try { exit 0 } finally { Set-Content C:\\o.txt f }; Set-Content C:\\o.txt no",
        "function f { try { return } finally { Set-Content C:\\o.txt f } }; f",
        // It has the last command.
        "try { Remove-Item C:\\none } finally { Set-Content C:\\o.txt f }",
    ] {
        assert_eq!(written(script), Ok("f;".to_owned()), "{script}");
    }
}

#[test]
fn a_hashtable_has_keys_and_properties() {
    for (script, value, expected) in [
        ("$t = @{ a = 1; b = 2 }", "$t.Count", "2;"),
        ("$t = @{}", "$t.Count", "0;"),
        ("$t = @{ a = 1 } + @{ b = 2 }", "$t.Count", "2;"),
        (
            "$t = @{ Count = 'c'; Keys = 'k'; Values = 'v' }",
            "$t.Count + $t.Keys + $t.Values",
            "ckv;",
        ),
        ("$t = @{ a = 1 }", "$t.b -eq $null", "True;"),
        ("$t = @{ a = 1 }; $k = $t.Keys", "'x'", "x;"),
        ("$m = 'a1b' -match '([a-z])([0-9])'", "$Matches.Count", "3;"),
        ("$m = 'a' -match '(a)(b)?'", "$Matches.Count", "2;"),
        ("$m = 'a' -match '(a)'", "$Matches.1", "a;"),
        ("$m = 'a' -match '(a)'", "$Matches['1'] -eq $null", "True;"),
    ] {
        let line = format!("{script}; Set-Content C:\\o.txt ({value})");
        assert_eq!(written(&line), Ok(expected.to_owned()), "{line}");
    }
}
