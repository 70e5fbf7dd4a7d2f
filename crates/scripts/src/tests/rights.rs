//! Permissions of users who are not administrators.

use super::{CMD, ScriptErrorKind, image, run_as};

fn outcome(line: &str) -> Result<(), (ScriptErrorKind, String)> {
    let mut tree = image();
    tree.folder(&r"C:\app".parse().unwrap());
    tree.file(r"C:\app\given.txt", Some(b"given".to_vec()));
    run_as("ContainerUser", tree, &CMD, line)
        .map(|_| ())
        .map_err(|error| (error.kind, error.to_string()))
}

#[test]
fn container_user_may_make_and_change_what_is_its_own() {
    for line in [
        r"mkdir C:\new\deep && (echo x)>C:\new\deep\a.txt&& del C:\new\deep\a.txt && rd C:\new\deep",
        r"(echo x)>C:\app\own.txt&& (echo y)>>C:\app\own.txt&& ren C:\app\own.txt o.txt",
        r"mkdir C:\Users\ContainerUser\x",
        r"copy C:\app\given.txt C:\copy.txt",
        r"curl -o C:\a.zip https://host/a.zip && tar -xf C:\a.zip -C C:\app && del C:\a.zip",
        r"set X=1 && type C:\app\given.txt",
    ] {
        assert_eq!(outcome(line), Ok(()), "{line}");
    }
}

#[test]
fn container_user_may_not_change_windows_or_what_others_made() {
    for (line, kind, printed) in [
        (
            r"setx /M PATH C:\x",
            ScriptErrorKind::Fails,
            "setx: ContainerUser may not change the machine's settings",
        ),
        (
            r"reg add HKLM\SOFTWARE\X /v Y /d Z /f",
            ScriptErrorKind::Fails,
            "reg: ContainerUser may not change the machine's settings",
        ),
        (
            r#"mkdir "C:\Program Files\x""#,
            ScriptErrorKind::Fails,
            r"mkdir: ContainerUser may not write C:\Program Files\x",
        ),
        (
            r"echo x> C:\Windows\System32\drivers\etc\hosts",
            ScriptErrorKind::Fails,
            r"echo: ContainerUser may not write C:\Windows\System32\drivers\etc\hosts",
        ),
        (
            r"mkdir C:\inetpub\x",
            ScriptErrorKind::NotUnderstood,
            r"mkdir: whether ContainerUser may change C:\inetpub\x depends on its owner and permissions",
        ),
        (
            r"del C:\app\given.txt",
            ScriptErrorKind::NotUnderstood,
            r"del: whether ContainerUser may change C:\app\given.txt depends on its owner and permissions",
        ),
        (
            r"echo x>> C:\app\given.txt",
            ScriptErrorKind::NotUnderstood,
            r"echo: whether ContainerUser may change C:\app\given.txt depends on its owner and permissions",
        ),
    ] {
        assert_eq!(outcome(line), Err((kind, printed.to_owned())), "{line}");
    }
}

#[test]
fn administrators_may_do_anything() {
    for user in [
        "ContainerAdministrator",
        r"User Manager\ContainerAdministrator",
        "containeradministrator",
    ] {
        let done = run_as(user, image(), &CMD, r"setx /M X 1 && mkdir C:\Windows\x");
        assert!(done.is_ok(), "{user}: {done:?}");
    }
}
