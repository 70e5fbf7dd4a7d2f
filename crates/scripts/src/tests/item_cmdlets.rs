//! Cmdlets that change files.

use super::{OPEN, POWERSHELL, actions_of, check, image, in_powershell, refused, run_as};
use crate::ScriptErrorKind::{Deferred, Fails, NotUnderstood};

#[test]
fn items_are_copied_moved_and_deleted_as_the_cmdlets_do() {
    let mut tree = image();
    for file in [r"C:\s\a.txt", r"C:\s\d\b.txt", r"C:\t\a.txt"] {
        tree.file(file, Some(Vec::new()));
    }
    check(
        &tree,
        r"
        PS> Copy-Item C:\s\a.txt C:\t\d.txt => copy C:\s\a.txt to C:\t\d.txt
        PS> cp C:\s\a.txt C:\t -Force => copy C:\s\a.txt to C:\t\a.txt
        PS> cp -Recurse C:\s C:\t => copy C:\s to C:\t\s
        PS> cp C:\s\* C:\t -Recurse => copy C:\s\a.txt to C:\t\a.txt; copy C:\s\d to C:\t\d
        PS> mv C:\s\d C:\t => move C:\s\d to C:\t\d
        PS> Rename-Item C:\s C:\u => move C:\s to C:\u
        PS> Rename-Item C:/s C:/u => move C:\s to C:\u
        PS> Rename-Item C:\s\a.txt c.txt => move C:\s\a.txt to C:\s\c.txt
        PS> rm -Recurse -Force C:\s, C:\t\*.txt => delete C:\s; delete C:\t\a.txt
        PS> gci C:\s -Filter *.txt | rm => delete C:\s\a.txt
        # Folders come first, and of a path below the root the backslash stays.
        PS> mv (gci C:\s)[0].FullName C:\u => move C:\s\d to C:\u
        PS> Set-Content ((Split-Path C:\tool) + 'y.txt') x -NoNewline => write C:\y.txt x
        PS> New-Item C:\s\n.txt -ItemType File -Value x => write C:\s\n.txt x
        PS> ni -Force -Type Directory C:\s\x\y => folder C:\s\x\y
        PS> mv C:\s\a.txt C:\t => Fails
        PS> cp C:\s\* C:\t -Recurse -Container:$false => NotUnderstood
        PS> mkdir C:\s => Fails
        PS> cp C:\none C:\t => Fails
        PS> cp C:\s\a.txt C:\none\a.txt => Fails
        PS> rm C:\s => NotUnderstood
        PS> mv C:\s\* C:\none => NotUnderstood
        PS> rm C:\s\[a]* => NotUnderstood
    ",
    );
}

#[test]
fn a_long_line_may_be_wrapped() {
    let long = format!("'{}' > C:\\f", "x".repeat(100));
    assert_eq!(refused(&POWERSHELL, &long).0, NotUnderstood);
}

#[test]
fn a_tilde_is_unknown_for_other_users() {
    let error = run_as("Bob", image(), &POWERSHELL, "mkdir ~/x").unwrap_err();
    let expected = "mkdir: ~ is the home folder of Bob, which only Windows knows";
    assert_eq!(
        (error.kind, error.to_string().as_str()),
        (NotUnderstood, expected)
    );
}

#[test]
fn a_piped_path_is_renamed() {
    let made = r"mkdir C:\j\jdk-11; ";
    let found = in_powershell(&format!(
        "{made}Get-ChildItem C:\\j | Rename-Item -NewName 'OpenJDK'"
    ));
    assert_eq!(found[1], r"move C:\j\jdk-11 to C:\j\OpenJDK");
    let several = format!("{made}mkdir C:\\j\\b; Get-ChildItem C:\\j | Rename-Item -NewName x");
    assert_eq!(refused(&POWERSHELL, &several).0, NotUnderstood);
    let later =
        "Expand-Archive C:\\work\\a.zip C:\\j; Get-ChildItem C:\\j | Rename-Item -NewName x";
    let line = format!("Invoke-WebRequest https://e.com/a.zip -OutFile C:\\work\\a.zip; {later}");
    assert_eq!(refused(&POWERSHELL, &line).0, Deferred);
}

#[test]
fn files_below_a_folder_are_listed() {
    let made = r"mkdir C:\t\a; Set-Content C:\t\x.log 1; Set-Content C:\t\a\y.LOG 1; Set-Content C:\t\a\z.txt 1; ";
    let of = |rest: &str| in_powershell(&format!("{made}{rest}"))[4..].to_vec();
    assert_eq!(
        of(r"Get-ChildItem C:\t -Recurse -File -Include *.log | Remove-Item -Force"),
        [r"delete C:\t\x.log", r"delete C:\t\a\y.LOG"]
    );
    assert_eq!(
        of(r"gci C:\t -File -Recurse -Filter z* | Remove-Item"),
        [r"delete C:\t\a\z.txt"]
    );
    for line in [
        r"gci C:\t -Recurse",
        r"gci C:\t -Include *.log",
        r"gci C:\t\* -Recurse -File",
    ] {
        assert_eq!(
            refused(&POWERSHELL, &format!("{made}{line} | Remove-Item")).0,
            NotUnderstood,
            "{line}"
        );
    }
}

#[test]
fn a_symbolic_link_has_the_kind_of_its_target() {
    let found = in_powershell(r"New-Item -Type SymbolicLink -Path C:\l -Target C:\Windows");
    assert!(found[0].contains("to_folder: true"), "{found:?}");
    let found = in_powershell(r"New-Item -Type SymbolicLink -Path C:\l -Target C:\\Windows");
    assert!(found[0].contains(r#"target: "C:\\Windows""#), "{found:?}");
}

#[test]
fn a_filter_is_one_of_windows() {
    let start = r"mkdir C:\d; 'a.htm', 'b' | % { Set-Content C:\d\$_ 1 }; ";
    let of = |rest: &str| in_powershell(&format!("{start}{rest}"))[3..].to_vec();
    assert_eq!(
        of(r"Get-ChildItem C:\d -Filter *.htm | Remove-Item"),
        [r"delete C:\d\a.htm"]
    );
    assert_eq!(of(r"gci C:\d *. | rm"), [r"delete C:\d\b"]);
    assert_eq!(of(r"gci C:\d\b* | rm"), [r"delete C:\d\b"]);
    assert_eq!(of(r"gci C:\d\?? | rm"), [""; 0]);
    for rest in [
        r"Set-Content C:\d\c.html 1; Get-ChildItem C:\d -Filter *.htm | Remove-Item",
        r"gci C:\d\* -Filter *.htm | rm",
    ] {
        let line = format!("{start}{rest}");
        assert_eq!(refused(&POWERSHELL, &line).0, NotUnderstood, "{rest}");
    }
}

#[test]
fn a_folder_is_copied_over_another_only_with_force() {
    let start = r"mkdir C:\s\d, C:\t\d; Set-Content C:\s\d\f.txt 1; ";
    for source in [r"C:\s\d", r"C:\s\*"] {
        let line = format!(r"{start}Copy-Item {source} C:\t -Recurse");
        assert_eq!(refused(&POWERSHELL, &line).0, Fails, "{line}");
        let copied = [r"copy C:\s\d to C:\t\d", r"folder C:\x"];
        assert_eq!(
            in_powershell(&format!("{line} -Force; mkdir C:\\x"))[3..],
            copied
        );
        // Otherwise the files are copied after the error, too.
        assert_eq!(
            actions_of(&OPEN, &format!("{line}; mkdir C:\\x"))[3..],
            copied
        );
        assert_eq!(refused(&OPEN, &line).0, Fails);
    }
}

#[test]
fn several_items_of_iis_are_refused() {
    let line = r"$paths = 'IIS:\AppPools\a', 'IIS:\AppPools\b'; New-Item $paths";
    let (kind, why) = refused(&POWERSHELL, line);
    let expected = "New-Item: several items of IIS: are not supported";
    assert_eq!((kind, why.as_str()), (NotUnderstood, expected));
}
