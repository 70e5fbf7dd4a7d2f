//! Names of parameters, and parameters in a hashtable.

use super::{POWERSHELL, actions_of, in_powershell, refused};
use crate::ScriptErrorKind::Fails;

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
