//! Operators and path functions of PowerShell whose results differ from what their names suggest.

use super::in_powershell;

/// What `Set-Content` writes for an expression.
fn written(expression: &str) -> String {
    let line = format!("Set-Content C:\\a.txt -NoNewline -Value ({expression})");
    let actions = in_powershell(&line);
    let text = actions[0].strip_prefix("write C:\\a.txt ");
    text.unwrap_or_else(|| panic!("{expression}: {actions:?}"))
        .replace(r"\\", r"\")
}

#[test]
fn a_replacement_is_that_of_dotnet() {
    for (expression, expected) in [
        (r"'pw=X' -replace 'X','a$1b'", "pw=a$1b"),
        (r"'abc' -replace '(a)(b)','$2$10'", "b$10c"),
        (r"'a1' -replace '(\d)','$1$$'", "a1$"),
        (r"'abc' -replace '.*','x'", "xx"),
        (r"'port=80' -replace '\d*$','90'", "port=9090"),
        (r"'aa' -replace 'a*','x'", "xx"),
        (r"'abc' -replace 'b|','x'", "xaxxcx"),
        (r"'C:\a\b' -replace '^(.):','$1'", r"C\a\b"),
        (r"('a=b=c' -split '=',2)[1]", "b=c"),
        (r"(('a,b','c') -split ',').Count", "3"),
        (r"'a[b]' -replace '[\[\]]','x'", "axbx"),
        (r"'a]b' -replace '[]a]','x'", "xxb"),
        (r"$true + 1", "2"),
    ] {
        assert_eq!(written(expression), expected, "{expression}");
    }
}

#[test]
fn paths_are_joined_as_by_windows() {
    for (expression, expected) in [
        (r"Join-Path 'C:/a' b/c", r"C:\a\b\c"),
        (r"Split-Path C:/a/b", r"C:\a"),
        (r"[IO.Path]::Combine('C:', 'f')", "C:f"),
        (r"[IO.Path]::Combine('C:\a', '')", r"C:\a"),
        (r"[IO.Path]::Combine('C:\a', 'b', 'c')", r"C:\a\b\c"),
    ] {
        assert_eq!(written(expression), expected, "{expression}");
    }
}

#[test]
fn a_variable_without_a_value_is_an_item() {
    assert_eq!(written("@($null).Count"), "1");
    assert_eq!(written("@($nope).Count"), "1");
    assert_eq!(written("@().Count"), "0");
    assert_eq!(written("@(Remove-Item C:\\nope*).Count"), "0");
}

#[test]
fn values_are_those_of_powershell() {
    for (expression, expected) in [
        ("@('') -contains $null", "False"),
        ("@(1) -contains '01'", "True"),
        ("'B' -in 'a','b'", "True"),
        ("3010 -notin 0, 3010", "False"),
        ("@($null -replace 'a','b').Count", "1"),
        ("@($null -split ',').Count", "1"),
        ("if (15 -match '1(.)') { $Matches[1] }", "5"),
        ("if ('abc' -notmatch 'b(.)') { } else { $Matches[1] }", "c"),
        ("1 | % { } | Out-Null; $_ -eq $null", "True"),
        (
            r"mkdir C:\d.e | Out-Null; (Get-Item C:\d.e).BaseName",
            "d.e",
        ),
        (r"Set-Content C:\d.e x; (Get-Item C:\d.e).BaseName", "d"),
        (
            r"New-Item C:\e -Type File | Out-Null; (Get-Content C:\e -Raw) -eq $null",
            "True",
        ),
    ] {
        let line = format!(r"Set-Content C:\a.txt -NoNewline -Value $({expression})");
        let actions = in_powershell(&line);
        let written = format!(r"write C:\a.txt {expected}");
        assert_eq!(actions.last(), Some(&written), "{line}");
    }
}

#[test]
fn question_marks_and_colons_belong_to_the_name_of_a_variable() {
    for (expression, expected) in [
        (r#"\"${env:VERSION}?raw=1\""#, "1.2.3?raw=1"),
        (r#"\"$env:VERSION.zip\""#, "1.2.3.zip"),
    ] {
        assert_eq!(written(expression), expected, "{expression}");
    }
}
