//! What cmdlets do with their pipeline input.

use super::{POWERSHELL, describe, image, refused, run_on};
use crate::ScriptErrorKind::{Fails, NotUnderstood};

#[test]
fn input_that_a_cmdlet_does_not_read_is_refused() {
    for line in [
        r"cd C:\work; Get-Item C:\inetpub | Get-ChildItem | Remove-Item -Force",
        r"'C:\inetpub' | Get-Item",
        r"'abc' | New-Item C:\o.txt",
        r"'abc' | Set-Variable x",
        r"'C:\inetpub' | Remove-Item C:\Windows\Temp -Recurse",
        r"'C:\inetpub' | Copy-Item -Path C:\Windows\Temp -Destination C:\t -Recurse",
        r"'C:\a\b', 'C:\c' | Split-Path -Leaf | Set-Content C:\o.txt",
        r"'a' | Write-Output b | Set-Content C:\o.txt",
        r"'a' | Out-File C:\o.txt -InputObject b",
        r"'a' | & { mkdir C:\d }",
    ] {
        assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood, "{line}");
    }
    let line = r"'C:\a\b' | Split-Path -Leaf | Set-Content C:\o.txt; mkdir C:\d | Out-Null";
    let tree = run_on(image(), &POWERSHELL, line).unwrap();
    let actions: Vec<String> = tree.actions.iter().map(describe).collect();
    assert_eq!(actions, [r"write C:\o.txt b\r\n", r"folder C:\d"]);
}

#[test]
fn each_item_that_an_error_is_written_of_fails() {
    assert_eq!(refused(&POWERSHELL, "'x' | Write-Error").0, Fails);
    let line = r"@() | Write-Error; Set-Content C:\o.txt a";
    let tree = run_on(image(), &POWERSHELL, line).unwrap();
    let actions: Vec<String> = tree.actions.iter().map(describe).collect();
    assert_eq!(actions, [r"write C:\o.txt a\r\n"]);
}

#[test]
fn content_without_input_is_not_written() {
    let mut tree = image();
    tree.file(r"C:\hosts", Some(b"a\r\nb\r\n".to_vec()));
    for (line, expected) in [
        (
            r"(Get-Content C:\hosts) | ? { $_ -eq 'z' } | Set-Content C:\hosts",
            vec![],
        ),
        (r"@() | Set-Content C:\new", vec![]),
        (r"@() | Add-Content C:\new", vec![]),
        (
            r"(Get-Content C:\hosts) | ? { $_ -eq 'b' } | Set-Content C:\hosts",
            vec![r"write C:\hosts b\r\n"],
        ),
        // A variable that is not set is an item.
        (r"$null | Set-Content C:\hosts", vec![r"write C:\hosts "]),
        (
            r"$x | % { mkdir C:\once } | Out-Null",
            vec![r"folder C:\once"],
        ),
        (
            r"$x = 1; $x = $null; $x | Set-Content C:\hosts",
            vec![r"write C:\hosts "],
        ),
        (r"$x = @(); $x | Set-Content C:\hosts", vec![]),
        (r"Set-Content C:\hosts $null", vec![r"write C:\hosts "]),
    ] {
        let tree = run_on(tree.clone(), &POWERSHELL, line).unwrap();
        let actions: Vec<String> = tree.actions.iter().map(describe).collect();
        assert_eq!(actions, expected, "{line}");
    }
    let line = r"$null | Remove-Item";
    assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood);
}
