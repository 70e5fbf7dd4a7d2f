//! Files that are read-only, hidden or of the system.

use super::*;

/// An image with `C:\d`: a plain file, a read-only, a hidden one and one of the system.
fn image_with_attributes() -> Tree {
    let mut tree = image();
    for (name, attributes) in [
        ("a.txt", 0x20),
        ("r.txt", 0x21),
        ("h.txt", 0x22),
        ("s.txt", 0x24),
    ] {
        tree.file_with(&format!(r"C:\d\{name}"), attributes);
    }
    tree.file_with(r"C:\e\r.txt", 0x21);
    tree
}

#[test]
fn cmd_and_xcopy_see_what_is_hidden_only_if_asked_for() {
    check(
        &image_with_attributes(),
        r"
        cmd> del /f /q C:\d\* => delete C:\d\a.txt; delete C:\d\r.txt
        cmd> del C:\d\h.txt C:\d\s.txt => nothing
        cmd> copy C:\d\* C:\work => copy C:\d\a.txt to C:\work\a.txt; copy C:\d\r.txt to C:\work\r.txt
        cmd> for %i in (C:\d\*) do copy %i C:\work => copy C:\d\a.txt to C:\work\a.txt; copy C:\d\r.txt to C:\work\r.txt
        cmd> copy C:\d\h.txt C:\work => Fails
        cmd> dir C:\d\h.txt => Fails
        cmd> dir C:\d\s* => Fails
        cmd> dir /a C:\d\h.txt && dir /a C:\d\s* && if not exist C:\d\h* exit 1 => nothing
        # What is named may be deleted with its folder.
        cmd> rd /s /q C:\d => delete C:\d
        cmd> xcopy C:\d C:\q\ /e /h => copy C:\d to C:\q
        cmd> xcopy C:\d C:\q\ /e => folder C:\q; copy C:\d\a.txt to C:\q\a.txt; copy C:\d\r.txt to C:\q\r.txt
        cmd> xcopy C:\d\?.txt C:\q\ => folder C:\q; copy C:\d\a.txt to C:\q\a.txt; copy C:\d\r.txt to C:\q\r.txt
        cmd> xcopy C:\d\h.txt C:\q\ => Fails
        cmd> xcopy /y C:\d C:\e => Fails
        cmd> xcopy /y /r C:\d\r.txt C:\e => copy C:\d\r.txt to C:\e\r.txt
    ",
    );
}

#[test]
fn a_link_is_deleted_only_if_the_kind_of_its_target_is_known() {
    let mut tree = image();
    for (name, attributes) in [("file", 0x420), ("folder", 0x410), ("either", 0x400)] {
        tree.file_with(&format!(r"C:\l\{name}"), attributes);
    }
    check(
        &tree,
        r"
        cmd> del C:\l\file => delete C:\l\file
        cmd> rd C:\l\folder => delete C:\l\folder
        cmd> del C:\l\either => NotKnown: …is a link…
        cmd> rd C:\l\either => NotKnown: …is a link…
        PS> Remove-Item C:\l\file => delete C:\l\file
        PS> Remove-Item C:\l\either => NotKnown: …is a link…
    ",
    );
}

#[test]
fn cmd_does_not_replace_or_delete_what_is_read_only() {
    // On Windows del goes on, with exit code 0.
    for line in [r"del C:\d\r.txt", r"del /q C:\d\*"] {
        let error = run_on(image_with_attributes(), &CMD, line).unwrap_err();
        assert_eq!(error.help, Some("add /f"));
    }
    check(
        &image_with_attributes(),
        r"
        cmd> del C:\d\r.txt => Refused: …access to C:\d\r.txt is denied…
        cmd> del /q C:\d\* => Refused: …access to C:\d\r.txt is denied…
        cmd> del /f C:\d\r.txt => delete C:\d\r.txt
        cmd> copy /y C:\d\a.txt C:\d\r.txt => Fails: …is denied…
        cmd> copy /y C:\d\a.txt C:\d\h.txt => Fails: …is denied…
        cmd> copy /y C:\d\r.txt C:\e => Fails: …is denied…
        cmd> copy nul C:\d\r.txt => Fails: …is denied…
        cmd> move /y C:\d\a.txt C:\d\r.txt => Fails: …is denied…
        cmd> echo x> C:\d\r.txt => Fails: …is denied…
        cmd> echo x>> C:\d\r.txt => Fails: …is denied…
        cmd> echo x> C:\d\h.txt => Fails: …is denied…
        cmd> echo x>> C:\d\h.txt => append C:\d\h.txt x\r\n
        cmd> ren C:\d\r.txt b.txt => move C:\d\r.txt to C:\d\b.txt
    ",
    );
}

#[test]
fn powershell_does_it_by_force() {
    for line in [
        r"Remove-Item C:\d\r.txt",
        r"Remove-Item C:\d\h.txt",
        r"Remove-Item -Recurse C:\d",
        r"Set-Content C:\d\r.txt x",
        r"Add-Content C:\d\r.txt x",
        r"'x' | Out-File C:\d\r.txt",
        r"Copy-Item C:\d\a.txt C:\d\r.txt",
        r"Copy-Item C:\d\a.txt C:\d\h.txt",
    ] {
        let error = run_on(image_with_attributes(), &POWERSHELL, line).unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::Fails, "{line}: {error}");
        assert_eq!(error.help, Some("add -Force"), "{line}");
        let forced = format!("{line} -Force");
        let tree = run_on(image_with_attributes(), &POWERSHELL, &forced).unwrap();
        assert_eq!(tree.actions.len(), 1, "{line}");
    }
    check(
        &image_with_attributes(),
        r"
        PS> [IO.File]::WriteAllText('C:\d\r.txt', 'x') => Fails
        PS> 'x' > C:\d\r.txt => Fails
        # It does not hide what is only of the system.
        PS> Get-ChildItem C:\d\?.txt | Copy-Item -Destination C:\work => copy C:\d\a.txt to C:\work\a.txt; copy C:\d\r.txt to C:\work\r.txt; copy C:\d\s.txt to C:\work\s.txt
        PS> Get-ChildItem C:\d -Recurse -File -Force -Filter h* | Remove-Item -Force => delete C:\d\h.txt
        PS> Remove-Item C:\d\h* => nothing
    ",
    );
}
