//! Names of parameters, and parameters in a hashtable.

use super::{CMD, POWERSHELL, actions_of, describe, image, in_powershell, refused, run_on};
use crate::ScriptErrorKind::{Fails, NotUnderstood};

#[test]
fn a_hashtable_gives_the_error_action() {
    let plain = ["powershell", "-Command"];
    let line =
        r"$p = @{ Path = 'C:\nope'; ErrorAction = 'Stop' }; Remove-Item @p; Set-Content C:\o.txt a";
    assert_eq!(refused(&plain, line).0, Fails);
    let line = line.replace("'Stop'", "'SilentlyContinue'");
    assert_eq!(in_powershell(&line), [r"write C:\o.txt a\r\n"]);
}

#[test]
fn a_hashtable_gives_switches_and_nothing_twice() {
    let line = r"$p = @{ ItemType = 'File'; Force = 1; Path = 'C:\a\b' }; New-Item @p";
    assert_eq!(in_powershell(line), [r"folder C:\a", r"write C:\a\b "]);
    let line = r"$p = @{ Path = 'C:\a' }; New-Item @p -Path C:\b -Type Directory";
    assert_eq!(refused(&POWERSHELL, line).0, Fails);
    let pwsh = ["pwsh", "-Command"];
    assert_eq!(actions_of(&pwsh, line), [r"folder C:\b"]);
}

#[test]
fn an_alias_is_not_an_ambiguous_prefix() {
    for (files, expected) in [("-d", vec![r"delete C:\inetpub\wwwroot"]), ("-af", vec![])] {
        let line = format!(r"Get-ChildItem C:\inetpub {files} | Remove-Item -Recurse");
        assert_eq!(in_powershell(&line), expected, "{files}");
    }
}

#[test]
fn defaults_see_the_parameters_that_are_given() {
    for (line, expected) in [
        (
            r"function inst($dir, $bin = ($dir + '\bin')) { mkdir $bin }; inst C:\app",
            r"folder C:\app\bin",
        ),
        (
            r"$dir = 'C:\outer'; function inst($bin = ($dir + '\bin'), $dir) { mkdir $bin }; inst -dir C:\app",
            r"folder C:\app\bin",
        ),
        (
            r"function inst($a = 'C:\a', $b = ($a + '\b')) { mkdir $b }; inst",
            r"folder C:\a\b",
        ),
    ] {
        assert_eq!(in_powershell(line), [expected], "{line}");
    }
    let mut tree = image();
    let script = br"param($a = ('C:\' + $b), $b) mkdir $a";
    tree.file(r"C:\s.ps1", Some(script.to_vec()));
    let tree = run_on(tree, &CMD, r"powershell -File C:\s.ps1 -b given").unwrap();
    let actions: Vec<String> = tree.actions.iter().map(describe).collect();
    assert_eq!(actions, [r"folder C:\given"]);
}

#[test]
fn a_prefix_of_several_parameters_is_ambiguous() {
    for line in [
        r"Remove-Item C:\inetpub -r -f",
        r"Copy-Item -f C:\inetpub\wwwroot\iisstart.htm C:\t",
        r"Set-Location -p C:\inetpub",
        r"New-ItemProperty -Path HKLM:\SOFTWARE -Name a -Value 1 -f",
    ] {
        let (kind, why) = refused(&POWERSHELL, line);
        assert_eq!(kind, NotUnderstood, "{line}");
        assert!(why.contains("is ambiguous: -"), "{line}: {why}");
    }
    let line = r"Get-Content C:\inetpub\wwwroot\iisstart.htm -e ascii";
    assert_eq!(refused(&POWERSHELL, line).0, NotUnderstood);
    for (line, expected) in [
        (r"rm C:\inetpub -r -fo", r"delete C:\inetpub"),
        (r"mkdir -p C:\a\b", r"folder C:\a\b"),
        (r"ni -f C:\a -ty d", r"folder C:\a"),
        (
            r"iwr http://x/y -useb -o C:\y",
            "download http://x/y to C:\\y",
        ),
    ] {
        assert_eq!(in_powershell(line), [expected], "{line}");
    }
}
