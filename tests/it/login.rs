//! `wincimg login` and `logout` with Debian's `docker-registry`; docker and skopeo read the stored
//! credentials.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use wincimg_testkit::component;
use wincimg_testkit::docker_registry::{DockerRegistry, PASSWORD, Setup, USER};

use crate::failure::{Fails, Failure, line, note};
use crate::site::write_program;

fn locked() -> DockerRegistry {
    DockerRegistry::start(Setup::TLS_AND_PASSWORD)
}

/// `wincimg` with this home folder.
fn wincimg(home: &Path, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command.current_dir(home).env("HOME", home).args(arguments);
    for variable in [
        "DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME",
        "WINCIMG_CONFIG", "SSL_CERT_FILE",
    ] {
        command.env_remove(variable);
    }
    command
}

fn login(registry: &DockerRegistry, home: &Path, password: &str) -> assert_cmd::Command {
    let ca = registry.ca().display().to_string();
    let flags = ["--user", USER, "--password-stdin", "--ca-file", &ca];
    let mut command = wincimg(home, &["login", &registry.host()]);
    command.args(flags).write_stdin(format!("{password}\n"));
    command
}

/// The error for a missing image: 404 if the credentials are accepted.
fn ask(registry: &DockerRegistry, home: &Path) -> Failure {
    let image = format!("{}/no/such:image", registry.host());
    let ca = registry.ca().display().to_string();
    let mut command = wincimg(home, &["inspect", &image, "--ca-file", &ca]);
    Failure::of(&command.args(["--format", "json"]).output().unwrap())
}

#[test]
fn a_byte_order_mark_is_not_part_of_a_password_or_a_certificate() {
    let registry = locked();
    let home = tempfile::tempdir().unwrap();
    let ca = fs::read_to_string(registry.ca()).unwrap();
    fs::write(home.path().join("ca.pem"), format!("\u{feff}{ca}")).unwrap();
    let mut command = wincimg(home.path(), &["login", &registry.host(), "--user", USER]);
    command.args(["--password-stdin", "--ca-file", "ca.pem"]);
    command.write_stdin(format!("\u{feff}{PASSWORD}\r\n"));
    command.assert().success();
}

#[test]
fn the_login_of_a_hint_has_the_flag_for_an_insecure_registry() {
    let (registry, home) = (locked(), tempfile::tempdir().unwrap());
    let host = registry.host();
    let image = format!("{host}/no/such:image");
    let login = format!("`wincimg login {host} --insecure-registry {host}`");
    wincimg(
        home.path(),
        &["inspect", &image, "--insecure-registry", &host],
    )
    .fails(3, "registry/denied", &["401"])
    .advises(&[&login]);
}

#[test]
fn a_login_is_tried_and_kept_for_its_owner_alone() {
    let registry = locked();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".docker/config.json");
    wincimg(home.path(), &["logout", &registry.host()])
        .assert()
        .code(0)
        .stdout("")
        .stderr(note(&[&registry.host()]));
    ask(&registry, home.path())
        .is("registry/denied", &["401"])
        .advises(&[&format!(
            "`wincimg login {} --ca-file {}`",
            registry.host(),
            registry.ca().display()
        )]);
    login(&registry, home.path(), "wrong")
        .fails(3, "registry/denied", &["401"])
        .advises(&["check the user and the password"])
        .hides("wrong");
    assert!(!file.exists(), "a password that is not right is not kept");

    fs::create_dir(home.path().join(".docker")).unwrap();
    fs::write(
        &file,
        r#"{"detachKeys":"ctrl-e,e","auths":{"other.lan":{"auth":"eDp5"}}}"#,
    )
    .unwrap();
    login(&registry, home.path(), PASSWORD)
        .assert()
        .code(0)
        .stdout(line(&[
            &registry.host(),
            USER,
            &file.canonicalize().unwrap().display().to_string(),
        ]))
        .stderr(contains(PASSWORD).not());
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept["detachKeys"], "ctrl-e,e");
    assert_eq!(kept["auths"]["other.lan"], json!({"auth": "eDp5"}));
    ask(&registry, home.path()).is("registry/not-found", &["404"]);

    let logout = ["logout", &registry.host()];
    wincimg(home.path(), &logout)
        .assert()
        .code(0)
        .stdout(contains(file.canonicalize().unwrap().display().to_string()));
    ask(&registry, home.path()).is("registry/denied", &["401"]);
    let kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept["auths"], json!({"other.lan": {"auth": "eDp5"}}));
    wincimg(home.path(), &logout)
        .assert()
        .code(0)
        .stdout("")
        .stderr(note(&[&registry.host()]));
}

#[test]
fn a_password_behind_the_user_is_not_repeated() {
    let home = tempfile::tempdir().unwrap();
    let arguments = ["login", "repo.lan", "-u", "bob:SECRET", "--password-stdin"];
    wincimg(home.path(), &arguments)
        .fails(2, "usage", &["bob:***"])
        .hides("SECRET");
}

#[test]
fn a_logout_says_that_it_waits_for_another_process() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".docker");
    fs::create_dir(&folder).unwrap();
    let kept = r#"{"auths":{"repo.lan":{"auth":"eDp5"}}}"#;
    fs::write(folder.join("config.json"), kept).unwrap();
    let held = fs::File::open(&folder).unwrap();
    held.lock().unwrap();
    let release = thread::spawn(move || {
        thread::sleep(Duration::from_secs(2));
        drop(held);
    });
    wincimg(home.path(), &["logout", "repo.lan"])
        .assert()
        .code(0)
        .stdout(contains("logged out"))
        .stderr(note(&["waiting", &folder.display().to_string()]));
    release.join().unwrap();
}

#[test]
fn skopeo_reads_what_a_login_keeps() {
    let (skopeo, registry) = (component("skopeo"), locked());
    let home = tempfile::tempdir().unwrap();
    login(&registry, home.path(), PASSWORD).assert().code(0);
    let output = Command::new(skopeo)
        .args(["login", "--get-login", "--authfile"])
        .arg(home.path().join(".docker/config.json"))
        .arg(registry.host())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(printed.trim(), USER, "{output:?}");
}

#[test]
fn docker_reads_what_a_login_keeps() {
    let (docker, registry) = (component("docker"), locked());
    let home = tempfile::tempdir().unwrap();
    login(&registry, home.path(), PASSWORD).assert().code(0);
    let image = format!("{}/no/such:image", registry.host());
    let output = Command::new(docker)
        .env("HOME", home.path())
        .arg("--config")
        .arg(home.path().join(".docker"))
        .args(["manifest", "inspect", "--insecure", &image])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_contains!(printed, "no such manifest");
}

#[test]
fn a_helper_that_is_configured_keeps_it() {
    let registry = locked();
    let home = tempfile::tempdir().unwrap();
    let host = registry.host();
    let bin = home.path().join("bin");
    fs::create_dir_all(home.path().join(".docker")).unwrap();
    let file = home.path().join(".docker/config.json");
    fs::write(&file, json!({"credsStore": "trial"}).to_string()).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let refusing = "echo 'credentials not found in native keychain'; exit 1";
    let helper = write_program(&bin, "docker-credential-trial", refusing);
    login(&registry, home.path(), PASSWORD)
        .env("PATH", &path)
        .fails(3, "registry/credential", &["docker-credential-trial"]);
    fs::write(
        &helper,
        "#!/bin/sh\nkept=\"$HOME/kept\"\ncase $1 in\nstore) cat > \"$kept\" ;;\nerase) rm -f \"$kept\" ;;\n\
         get) if [ -f \"$kept\" ]; then cat \"$kept\"; else echo 'credentials not found in native keychain'; exit 1; fi ;;\nesac\n",
    )
    .unwrap();

    login(&registry, home.path(), PASSWORD)
        .env("PATH", &path)
        .assert()
        .code(0)
        .stdout(contains("docker-credential-trial"))
        .stderr("");
    let kept: Value = serde_json::from_slice(&fs::read(home.path().join("kept")).unwrap()).unwrap();
    assert_eq!(
        kept,
        json!({"ServerURL": host, "Username": USER, "Secret": PASSWORD})
    );
    let text = fs::read_to_string(&file).unwrap();
    let kept: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept, json!({"credsStore": "trial", "auths": {&host: {}}}));
    wincimg(home.path(), &["logout", &host])
        .env("PATH", &path)
        .assert()
        .code(0)
        .stdout(contains("docker-credential-trial"));
    assert!(!home.path().join("kept").exists());
}

#[test]
fn what_podman_keeps_is_read_after_what_docker_keeps() {
    let registry = locked();
    let home = tempfile::tempdir().unwrap();
    let host = registry.host();
    let auth = |password: &str| {
        use base64::Engine as _;
        let auth = base64::prelude::BASE64_STANDARD.encode(format!("{USER}:{password}"));
        json!({"auths": {&host: {"auth": auth}}}).to_string()
    };
    let write = |name: &str, password: &str| {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, auth(password)).unwrap();
    };
    let ca = registry.ca().display().to_string();
    let image = format!("{host}/no/such:image");
    let inspect = || wincimg(home.path(), &["inspect", &image, "--ca-file", &ca]);

    inspect()
        .env("REGISTRY_AUTH_FILE", "/nosuch.json")
        .assert()
        .stderr(contains(
            "REGISTRY_AUTH_FILE /nosuch.json, which does not exist",
        ));
    write(".config/containers/auth.json", PASSWORD);
    inspect().assert().stderr(contains("404"));
    write("run/containers/auth.json", "wrong");
    let run = home.path().join("run");
    inspect()
        .env("XDG_RUNTIME_DIR", &run)
        .assert()
        .stderr(contains("401").and(contains("run/containers/auth.json")));
    write("own.json", PASSWORD);
    inspect()
        .env("XDG_RUNTIME_DIR", &run)
        .env("REGISTRY_AUTH_FILE", home.path().join("own.json"))
        .assert()
        .stderr(contains("404"));
    write(".docker/config.json", "wrong");
    inspect()
        .env("REGISTRY_AUTH_FILE", home.path().join("own.json"))
        .assert()
        .stderr(contains("401").and(contains(".docker/config.json")));
}

#[test]
fn arguments_that_cannot_be_meant_are_refused() {
    let home = tempfile::tempdir().unwrap();
    // Values that the command line rejects.
    for (arguments, value) in [
        (&["login", "repo.lan/apps", "-u", "bob"][..], "repo.lan\n"),
        (&["login", "not a host", "-u", "bob"], "HOST[:PORT]"),
    ] {
        wincimg(home.path(), arguments)
            .write_stdin("")
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(value));
    }
    let password = ["--password-stdin < FILE"];
    for (arguments, values) in [
        (&["login", "repo.lan"][..], &password[..]),
        (
            &["login", "repo.lan", "-u", "bob"],
            &[
                "prompt for the password",
                "--username bob --password-stdin < FILE",
            ],
        ),
        (
            &["login", "repo.lan", "-u", "a:b", "--password-stdin"],
            &["\"a:***\"", "--username NAME"],
        ),
        (&["login", "repo.lan", "-u", "bob", "--password-stdin"], &[]),
    ] {
        wincimg(home.path(), arguments)
            .write_stdin("")
            .fails(2, "usage", values);
    }
    wincimg(home.path(), &["login", "repo.lan", "--password-stdin"])
        .write_stdin("")
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("--username <NAME>"));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

/// Types at a terminal, and prints the output and whether echo is on at the end.
const AT_A_TERMINAL: &str = r#"
import os, pty, sys, termios, time
lines = [line.encode().decode("unicode_escape").encode() for line in sys.argv[1].split("|")]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown = b""
for line in lines:
    question = line.split(b"=")[0]
    while question not in shown:
        shown += os.read(terminal, 1024)
    time.sleep(0.2)
    os.write(terminal, line.split(b"=")[1])
    shown += b"|"
try:
    while True:
        shown += os.read(terminal, 1024)
except OSError:
    pass
_, status = os.waitpid(pid, 0)
shows = bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
print(os.waitstatus_to_exitcode(status), shows, shown)
"#;

#[test]
fn a_terminal_is_asked_and_does_not_show_the_password() {
    let registry = locked();
    let python = component("python3");
    let home = tempfile::tempdir().unwrap();
    let ca = registry.ca().display().to_string();
    let at_a_terminal = |typed: &str| {
        Command::new(&python)
            .args(["-c", AT_A_TERMINAL, typed])
            .arg(assert_cmd::cargo::cargo_bin!("wincimg"))
            .args(["login", &registry.host(), "--ca-file", &ca])
            .env("HOME", home.path())
            .env_remove("DOCKER_CONFIG")
            .stderr(Stdio::inherit())
            .prints()
    };
    let printed = at_a_terminal(&format!("User:={USER}\\n|Password:={PASSWORD}\\n"));
    assert!(printed.starts_with("0 True"), "{printed}");
    assert_contains!(printed, &registry.host(), USER);
    assert!(!printed.contains(PASSWORD), "{printed}");
    // Ctrl-C at the second prompt.
    let printed = at_a_terminal(&format!("User:={USER}\\n|Password:=sec\\x03"));
    assert!(printed.starts_with("-2 True"), "{printed}");
}
