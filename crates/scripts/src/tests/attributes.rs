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

fn done(shell: &[&str], line: &str) -> Result<Vec<String>, ScriptError> {
    let tree = run_on(image_with_attributes(), shell, line)?;
    Ok(tree.actions.iter().map(describe).collect())
}

fn check_done(shell: &[&str], line: &str, expected: &[&str]) {
    assert_eq!(done(shell, line).unwrap(), expected, "{line}");
}

fn check_denied(shell: &[&str], line: &str, kind: ScriptErrorKind) -> ScriptError {
    let error = done(shell, line).unwrap_err();
    assert_eq!(error.kind, kind, "{line}: {error}");
    error
}

#[test]
fn cmd_does_not_see_what_is_hidden() {
    check_done(
        &CMD,
        r"del /f /q C:\d\*",
        &[r"delete C:\d\a.txt", r"delete C:\d\r.txt"],
    );
    check_done(&CMD, r"del C:\d\h.txt C:\d\s.txt", &[]);
    for line in [
        r"copy C:\d\* C:\work",
        r"for %i in (C:\d\*) do copy %i C:\work",
    ] {
        let copied = [
            r"copy C:\d\a.txt to C:\work\a.txt",
            r"copy C:\d\r.txt to C:\work\r.txt",
        ];
        check_done(&CMD, line, &copied);
    }
    for line in [
        r"copy C:\d\h.txt C:\work",
        r"dir C:\d\h.txt",
        r"dir C:\d\s*",
    ] {
        check_denied(&CMD, line, ScriptErrorKind::Fails);
    }
    check_done(
        &CMD,
        r"dir /a C:\d\h.txt && dir /a C:\d\s* && if not exist C:\d\h* exit 1",
        &[],
    );
    // What is named may be deleted with its folder.
    check_done(&CMD, r"rd /s /q C:\d", &[r"delete C:\d"]);
}

#[test]
fn xcopy_copies_what_is_hidden_only_if_asked_for() {
    check_done(&CMD, r"xcopy C:\d C:\q\ /e /h", &[r"copy C:\d to C:\q"]);
    check_done(
        &CMD,
        r"xcopy C:\d C:\q\ /e",
        &[
            r"folder C:\q",
            r"copy C:\d\a.txt to C:\q\a.txt",
            r"copy C:\d\r.txt to C:\q\r.txt",
        ],
    );
    check_done(
        &CMD,
        r"xcopy C:\d\?.txt C:\q\",
        &[
            r"folder C:\q",
            r"copy C:\d\a.txt to C:\q\a.txt",
            r"copy C:\d\r.txt to C:\q\r.txt",
        ],
    );
    check_denied(&CMD, r"xcopy C:\d\h.txt C:\q\", ScriptErrorKind::Fails);
    check_denied(&CMD, r"xcopy /y C:\d C:\e", ScriptErrorKind::Fails);
    check_done(
        &CMD,
        r"xcopy /y /r C:\d\r.txt C:\e",
        &[r"copy C:\d\r.txt to C:\e\r.txt"],
    );
}

#[test]
fn cmd_does_not_replace_or_delete_what_is_read_only() {
    // On Windows del goes on, with exit code 0.
    for line in [r"del C:\d\r.txt", r"del /q C:\d\*"] {
        let error = check_denied(&CMD, line, ScriptErrorKind::Refused);
        assert_eq!(error.help, Some("add /f"));
        assert!(
            error.why.contains(r"access to C:\d\r.txt is denied"),
            "{error}"
        );
    }
    check_done(&CMD, r"del /f C:\d\r.txt", &[r"delete C:\d\r.txt"]);
    for line in [
        r"copy /y C:\d\a.txt C:\d\r.txt",
        r"copy /y C:\d\a.txt C:\d\h.txt",
        r"copy /y C:\d\r.txt C:\e",
        r"copy nul C:\d\r.txt",
        r"move /y C:\d\a.txt C:\d\r.txt",
        r"echo x> C:\d\r.txt",
        r"echo x>> C:\d\r.txt",
        r"echo x> C:\d\h.txt",
    ] {
        let error = check_denied(&CMD, line, ScriptErrorKind::Fails);
        assert!(error.why.contains("is denied"), "{line}: {error}");
    }
    check_done(&CMD, r"echo x>> C:\d\h.txt", &[r"append C:\d\h.txt x\r\n"]);
    check_done(
        &CMD,
        r"ren C:\d\r.txt b.txt",
        &[r"move C:\d\r.txt to C:\d\b.txt"],
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
        let error = check_denied(&POWERSHELL, line, ScriptErrorKind::Fails);
        assert_eq!(error.help, Some("add -Force"), "{line}");
        assert_eq!(
            done(&POWERSHELL, &format!("{line} -Force")).unwrap().len(),
            1
        );
    }
    check_denied(
        &POWERSHELL,
        r"[IO.File]::WriteAllText('C:\d\r.txt', 'x')",
        ScriptErrorKind::Fails,
    );
    check_denied(&POWERSHELL, r"'x' > C:\d\r.txt", ScriptErrorKind::Fails);
    // It does not hide what is only of the system.
    check_done(
        &POWERSHELL,
        r"Get-ChildItem C:\d\?.txt | Copy-Item -Destination C:\work",
        &[
            r"copy C:\d\a.txt to C:\work\a.txt",
            r"copy C:\d\r.txt to C:\work\r.txt",
            r"copy C:\d\s.txt to C:\work\s.txt",
        ],
    );
    check_done(
        &POWERSHELL,
        r"Get-ChildItem C:\d -Recurse -File -Force -Filter h* | Remove-Item -Force",
        &[r"delete C:\d\h.txt"],
    );
    check_done(&POWERSHELL, r"Remove-Item C:\d\h*", &[]);
}
