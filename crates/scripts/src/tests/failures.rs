//! What a failure ends in PowerShell: a command, a statement, or the script.

use super::{POWERSHELL, refused, written};
use crate::ScriptErrorKind::Fails;

/// Statements that fail as a whole.
const FAILING: [&str; 9] = [
    r"[IO.File]::WriteAllText('C:\nope\x', 'a')",
    r"Add-Type -AssemblyName System.IO.Compression.FileSystem; [IO.Compression.ZipFile]::ExtractToDirectory('C:\nope.zip', 'C:\a')",
    "$x = 'a'.Substring(5)",
    "$x = '{1}' -f 'a'",
    r"'a' > C:\nope\x",
    r"'a' | Out-File C:\nope\x -ErrorAction Stop",
    r"Expand-Archive C:\nope.zip C:\a",
    "Write-Warning two words",
    "Write-Host ('a'.Substring(5))",
];

#[test]
fn a_statement_that_fails_does_not_end_the_script() {
    for failing in FAILING {
        let line = format!(r"{failing}; Set-Content C:\o.txt a");
        assert_eq!(written(&line), Ok("a;".to_owned()), "{line}");
        let line = format!(r"Set-Content C:\o.txt a; {failing}");
        assert!(written(&line).is_err(), "{line}");
        let line = format!(r"$ErrorActionPreference = 'Stop'; {failing}; Set-Content C:\o.txt a");
        assert!(written(&line).is_err(), "{line}");
    }
    // The error action of a command has no effect on these.
    let line = r"'a' | Out-File C:\nope\x -ErrorAction SilentlyContinue; mkdir C:\x";
    assert_eq!(refused(&POWERSHELL, line).0, Fails);
    // Windows opens the file before it runs the command.
    let line = r"& { cmd /c mkdir C:\a | Out-Null; 'a' } > C:\nope\x; Set-Content C:\o.txt a";
    assert!(written(line).is_err());
    for line in [
        "throw 'x'",
        r"Remove-Item C:\nope -ErrorAction Stop",
        "1 | % { throw 'x' }",
    ] {
        let line = format!(r"{line}; Set-Content C:\o.txt a");
        assert!(written(&line).is_err(), "{line}");
    }
}

#[test]
fn a_statement_that_fails_is_caught() {
    for failing in FAILING {
        for line in [
            format!(
                "try {{ {failing}; Set-Content C:\\o.txt t }} catch {{ Set-Content C:\\o.txt c }}"
            ),
            format!(
                "function f {{ {failing}; Set-Content C:\\o.txt f }}; try {{ f }} catch {{ Set-Content C:\\o.txt c }}"
            ),
            format!("try {{ 1 | % {{ {failing} }} }} catch {{ Set-Content C:\\o.txt c }}"),
        ] {
            assert_eq!(written(&line), Ok("c;".to_owned()), "{line}");
        }
    }
    for (line, expected) in [
        // An error that ends only its command is none to catch.
        (
            r"try { Remove-Item C:\nope; Set-Content C:\o.txt t } catch { Set-Content C:\o.txt c }",
            "t;",
        ),
        // A catch that fails ends, and its try with it.
        (
            r"try { throw 'x' } catch { $x = 'a'.Substring(5); Set-Content C:\o.txt c }; Add-Content C:\o.txt n",
            "n;",
        ),
        (
            r"try { $x = 'a'.Substring(5); Set-Content C:\o.txt t } finally { }; Add-Content C:\o.txt n",
            "n;",
        ),
    ] {
        assert_eq!(written(line), Ok(expected.to_owned()), "{line}");
    }
}

#[test]
fn a_command_that_runs_others_succeeds() {
    for failing in [
        r"Remove-Item C:\nope", "cmd /c exit 3", "$x = 'a'.Substring(5)", "node --version",
    ] {
        for line in [
            format!("function f {{ {failing} }}; Set-Content C:\\o.txt a; f"),
            format!("Set-Content C:\\o.txt a; & {{ {failing} }}"),
            format!("Set-Content C:\\o.txt a; 1 | % {{ {failing} }}"),
            format!("1 | % {{ {failing} }}; if ($?) {{ Set-Content C:\\o.txt a }}"),
        ] {
            assert_eq!(written(&line), Ok("a;".to_owned()), "{line}");
        }
    }
    let line = r"Set-Content C:\o.txt a; Remove-Item C:\nope | % { $_ }";
    assert!(written(line).is_err());
    let line = "if ($true) { cmd /c exit 3 }";
    assert!(written(line).is_err());
}
