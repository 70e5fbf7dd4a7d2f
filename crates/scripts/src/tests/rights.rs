//! Permissions of users who are not administrators.

use super::{CMD, Tree, check_as, image, run_as};

/// An image with a file that others made.
fn with_app() -> Tree {
    let mut tree = image();
    tree.folder(&r"C:\app".parse().unwrap());
    tree.file(r"C:\app\given.txt", Some(b"given".to_vec()));
    tree
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
        let done = run_as("ContainerUser", with_app(), &CMD, line);
        assert!(done.is_ok(), "{line}: {done:?}");
    }
}

#[test]
fn container_user_may_not_change_windows_or_what_others_made() {
    check_as(
        "ContainerUser",
        &with_app(),
        r#"
        cmd> setx /M PATH C:\x => Fails: setx: ContainerUser may not change the machine's settings
        cmd> reg add HKLM\SOFTWARE\X /v Y /d Z /f => Fails: reg: ContainerUser may not change the machine's settings
        cmd> mkdir "C:\Program Files\x" => Fails: mkdir: ContainerUser may not write C:\Program Files\x
        cmd> echo x> C:\Windows\System32\drivers\etc\hosts => Fails: echo: ContainerUser may not write C:\Windows\System32\drivers\etc\hosts
        cmd> mkdir C:\inetpub\x => NotUnderstood: mkdir: whether ContainerUser may change C:\inetpub\x depends on its owner and permissions
        cmd> del C:\app\given.txt => NotUnderstood: del: whether ContainerUser may change C:\app\given.txt depends on its owner and permissions
        cmd> echo x>> C:\app\given.txt => NotUnderstood: echo: whether ContainerUser may change C:\app\given.txt depends on its owner and permissions
    "#,
    );
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
