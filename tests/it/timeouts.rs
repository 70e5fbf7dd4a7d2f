//! Nothing blocks the program: helpers that hang, files of the wrong type, servers that do not
//! respond.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use wincimg_testkit::docker_config;
use wincimg_testkit::scripted::{answer, scripted};
use wincimg_testkit::serve::TestServer;

use crate::api::{Api, windows_node};
use crate::failure::{Fails, Failure};
use crate::site::{Site, stderr, write_program};

/// A registry with a password, and a user whose credential helper is this script.
struct HelperSetup {
    folder: tempfile::TempDir,
    registry: TestServer,
}

impl HelperSetup {
    fn by(script: &str) -> Self {
        let (_, registry) = scripted(|asked| match asked.header("authorization") {
            Some(_) => answer(200, &[], r#"{"tags":["10.0.17763.973"]}"#),
            None => answer(401, &[("WWW-Authenticate", "Basic realm=\"r\"")], ""),
        });
        let folder = tempfile::tempdir().unwrap();
        let script = format!("echo $$ >pid\n{script}");
        write_program(folder.path(), "docker-credential-test", &script);
        docker_config(folder.path(), &serde_json::json!({ "credsStore": "test" }));
        Self { folder, registry }
    }

    fn command(&self, more: &[&str]) -> Command {
        let host = self.registry.host();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command
            .current_dir(self.folder.path())
            .args(["base", "list", "nanoserver", "--base-registry", &host])
            .args(["--insecure-registry", &host, "--plain-credentials"])
            .args(more)
            .env("DOCKER_CONFIG", self.folder.path())
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.folder.path().display()),
            );
        command
    }

    fn run(&self, more: &[&str]) -> (Output, Duration) {
        let started = Instant::now();
        (self.command(more).output().unwrap(), started.elapsed())
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.path().join("pid")
    }

    /// Returns true if the helper, or what it started, is still running.
    fn is_running(&self) -> bool {
        any_runs(&self.pid_file())
    }
}

/// Returns true if a process runs; one that its parent has not awaited yet does not.
fn runs(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

/// Returns true if one of the processes in a file runs.
fn any_runs(pids: &Path) -> bool {
    let pids = fs::read_to_string(pids).unwrap();
    pids.split_whitespace().any(runs)
}

/// A script's end that only `SIGKILL` ends, with a child; their IDs are in the file `pid`.
const STUBBORN: &str = "trap '' TERM INT HUP; sleep 60 & echo $! >>pid; wait; sleep 60";

/// Waits until both have started.
fn until_started(pids: &Path) {
    let count = || fs::read_to_string(pids).unwrap_or_default().lines().count();
    assert!(ends(|| count() < 2));
}

/// Ends a program by `SIGTERM`.
fn terminate(mut child: Child) {
    let asked = Instant::now();
    let pid = child.id().to_string();
    Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert!(asked.elapsed() < Duration::from_secs(5));
}

/// Waits until something is false.
fn ends(is_so: impl Fn() -> bool) -> bool {
    (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !is_so()
    })
}

#[test]
fn a_helper_that_answers_is_used() {
    let helped = HelperSetup::by(r#"cat >/dev/null; echo '{"Username":"bob","Secret":"sesame"}'"#);
    let (output, _) = helped.run(&[]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_helper_can_ask_on_the_terminal() {
    let helped = HelperSetup::by(
        r#"cat >/dev/null; read -r it </dev/tty; echo '{"Username":"bob","Secret":"'"$it"'"}'"#,
    );
    let command = helped.command(&[]);
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_str().unwrap()).collect();
    let mut child = Command::new("script")
        .args(["-qec", &words.join(" "), "/dev/null"])
        .current_dir(helped.folder.path())
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its end would be typed, too.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"sesame\n").unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
}

#[test]
fn the_answer_of_a_helper_that_fails_is_not_printed() {
    for redirected in ["", " >&2"] {
        let script = format!(
            r#"cat >/dev/null; echo '{{"Username":"bob", "Secret" : "sesame"}}'{redirected}; exit 1"#
        );
        let (output, _) = HelperSetup::by(&script).run(&["--format", "json"]);
        Failure::of(&output)
            .is("registry/credential", &["it failed"])
            .hides("sesame");
    }
}

#[test]
fn a_helper_that_hangs_is_ended_by_the_time_limit() {
    let helped = HelperSetup::by("exec sleep 60");
    let (output, took) = helped.run(&["--timeout", "1s", "--format", "json"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(took < Duration::from_secs(8), "{took:?}");
    Failure::of(&output).is("network/time-limit", &[]);
    assert!(!helped.is_running());
}

#[test]
fn what_a_helper_started_ends_with_it() {
    let helped = HelperSetup::by(STUBBORN);
    let (output, _) = helped.run(&["--timeout", "1s"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(ends(|| helped.is_running()));

    // One that answers and leaves something behind.
    let helped = HelperSetup::by(
        r#"sleep 60 >/dev/null 2>&1 & echo $! >>pid; echo '{"Username":"bob","Secret":"sesame"}'"#,
    );
    let (output, _) = helped.run(&[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(ends(|| helped.is_running()));
}

#[test]
fn a_plugin_of_a_kubeconfig_ends_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let plugin = format!("echo $$ >pid\n{STUBBORN}");
    write_program(folder.path(), "plugin", &plugin);
    let user = serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": file("plugin"),
        "interactiveMode": "Never",
    });
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {"exec": user}}],
    });
    fs::write(file("config"), config.to_string()).unwrap();
    let command = |limit: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command
            .current_dir(folder.path())
            .args(["check-compat", "--kube", "--timeout", limit])
            .env("KUBECONFIG", file("config"));
        command
    };
    let started = Instant::now();
    let output = command("2s").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(ends(|| any_runs(&file("pid"))));

    // What has lost its parent, and one that answers and leaves something behind.
    let answer = r#"echo '{"status":{"token":"abc"}}'"#;
    for script in [
        "(sleep 60 & echo $! >>pid); sleep 60".to_owned(),
        format!("sleep 60 >/dev/null 2>&1 & echo $! >>pid; {answer}"),
    ] {
        let plugin = format!("echo $$ >pid\n{script}");
        write_program(folder.path(), "plugin", &plugin);
        let output = command("2s").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(ends(|| any_runs(&file("pid"))), "{script}");
    }

    write_program(folder.path(), "plugin", &plugin);
    fs::remove_file(file("pid")).unwrap();
    let child = command("60s").stderr(Stdio::null()).spawn().unwrap();
    until_started(&file("pid"));
    terminate(child);
    assert!(ends(|| any_runs(&file("pid"))));
}

/// As with kubectl: it may be a cache of tokens, or a browser.
#[test]
fn what_a_plugin_leaves_behind_stays_if_the_command_succeeds() {
    let api = Api::start();
    let node = windows_node("w", "10.0.17763.973");
    api.set("/api/v1/nodes", vec![node]);
    let pid = api.kubeconfig().with_file_name("pid");
    let script = format!(
        r#"sleep 60 >/dev/null 2>&1 & echo $! >{}; echo '{{"status":{{"token":"secret"}}}}'"#,
        pid.display()
    );
    let config = fs::read(api.kubeconfig()).unwrap();
    let mut config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    config["users"][0]["user"] = serde_json::json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", script],
        "interactiveMode": "Never",
    }});
    fs::write(api.kubeconfig(), config.to_string()).unwrap();
    let check = |code: i32| {
        let output = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
            .current_dir(pid.parent().unwrap())
            .args(["check-compat", "--kube", "--offline", "--on", "2024-06-01"])
            .args(["--image-build", "17763.973"])
            .env("KUBECONFIG", api.kubeconfig())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    };
    check(0);
    let stays = !ends(|| any_runs(&pid));
    let left = fs::read_to_string(&pid).unwrap();
    Command::new("kill").arg(left.trim()).status().unwrap();
    assert!(stays);
    api.refuse("/api/v1/nodes", 403);
    check(3);
    assert!(ends(|| any_runs(&pid)));
}

#[test]
fn a_helper_that_hangs_is_ended_by_a_signal() {
    let helped = HelperSetup::by(STUBBORN);
    let child = helped.command(&[]).stderr(Stdio::null()).spawn().unwrap();
    until_started(&helped.pid_file());
    terminate(child);
    assert!(ends(|| helped.is_running()));

    fs::remove_file(helped.pid_file()).unwrap();
    let mut command = helped.command(&["--format", "json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    until_started(&helped.pid_file());
    terminate(child);
    let answer: serde_json::Value = serde_json::from_reader(stdout).unwrap();
    assert_eq!(answer["error"]["message"], "interrupted");

    // One that is to keep a password.
    fs::remove_file(helped.pid_file()).unwrap();
    let host = helped.registry.host();
    let mut login = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    login
        .current_dir(helped.folder.path())
        .args(["login", &host, "--user", "bob", "--password-stdin"])
        .args(["--insecure-registry", &host, "--plain-credentials"])
        .envs(
            helped
                .command(&[])
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = login.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"sesame\n").unwrap();
    drop(stdin);
    until_started(&helped.pid_file());
    terminate(child);
    assert!(ends(|| helped.is_running()));
}

#[test]
fn a_helper_that_talks_without_end_is_not_listened_to() {
    let helped = HelperSetup::by("exec yes");
    let (output, took) = helped.run(&["--format", "json"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(took < Duration::from_secs(20), "{took:?}");
    Failure::of(&output).is("registry/credential", &["65536"]);
    assert!(!helped.is_running());
}

#[test]
fn what_a_helper_says_moves_no_terminal() {
    let helped = HelperSetup::by(r"printf '\033[2Jno \r::error::way\n' >&2; exit 1");
    let (output, _) = helped.run(&["--format", "json"]);
    assert_eq!(output.status.code(), Some(3));
    let printed = Failure::of(&output).is("registry/credential", &[]).stderr;
    assert_contains!(printed, "\\u{1b}[2Jno \\r::error::way");
    assert!(!printed.contains(['\u{1b}', '\r']), "{printed:?}");
}

/// A pipe without a writer, instead of a file.
fn pipe(path: PathBuf) {
    let _ = fs::remove_file(&path);
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_at_once() {
    let site = Site::new();
    let mut build = site.build("pause");
    build.args(["--host-build", "17763.973", "--output", "oci:layout"]);
    build.assert().success();
    let blobs = fs::read_dir(site.path("layout/blobs/sha256")).unwrap();
    let mut blobs: Vec<PathBuf> = blobs.map(|entry| entry.unwrap().path()).collect();
    blobs.push(site.path("layout/index.json"));
    for file in blobs {
        let held = fs::read(&file).unwrap();
        pipe(file.clone());
        for words in [
            &["inspect", "oci:layout"][..],
            &["check-compat", "--host-build", "17763.973", "oci:layout"],
        ] {
            let started = Instant::now();
            let output = site.command(words).output().unwrap();
            assert!(started.elapsed() < Duration::from_secs(8), "{words:?}");
            assert!(output.status.code().is_some(), "{}", stderr(&output));
        }
        fs::remove_file(&file).unwrap();
        fs::write(&file, held).unwrap();
    }
    pipe(site.path("image.tar"));
    site.command(&["inspect", "docker-archive:image.tar"])
        .fails(3, "archive/invalid", &["image.tar", "pipe"]);
}

#[test]
fn a_header_of_an_archive_that_is_larger_than_any_is_not_read() {
    let site = Site::new();
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::XHeader);
    header.set_path("pax").unwrap();
    header.set_size((6 << 30) - 1024);
    header.set_cksum();
    let path = site.write("image.tar", header.as_bytes());
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(6 << 30)
        .unwrap();
    let index = site.write("layout/index.json", "");
    fs::OpenOptions::new()
        .write(true)
        .open(&index)
        .unwrap()
        .set_len(8 << 30)
        .unwrap();
    site.write("layout/oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#);
    for (place, code, values) in [
        (
            "docker-archive:image.tar",
            "archive/invalid",
            ["image.tar", "1 MiB"],
        ),
        ("oci:layout", "layout/invalid", ["index.json", "67108864"]),
    ] {
        let started = Instant::now();
        site.command(&["inspect", place]).fails(3, code, &values);
        assert!(started.elapsed() < Duration::from_secs(8));
    }
}

#[test]
fn a_closed_port_and_an_unknown_name_are_tried_twice_and_quickly() {
    let site = Site::new();
    let closed = format!(
        "127.0.0.1:{}",
        wincimg_testkit::docker_registry::free_port()
    );
    for host in [closed.as_str(), "registry.invalid"] {
        let started = Instant::now();
        let mut command = site.command(&["base", "list", "nanoserver", "--base-registry", host]);
        let failure =
            command
                .args(["--insecure-registry", host])
                .fails(3, "network/unreachable", &[host]);
        let printed = &failure.stderr;
        let lines = printed.lines().filter(|line| line.contains(host));
        assert!(lines.count() > 1, "{printed}");
        if host == closed {
            assert!(started.elapsed() < Duration::from_secs(8), "{printed}");
            let is_told = failure.message.contains('2') && failure.message.contains("refused");
            assert!(is_told, "{printed}");
        }
    }
}

#[test]
fn a_server_that_says_nothing_is_left_at_the_time_limit() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = silent.local_addr().unwrap().to_string();
    let catalog = format!("http://{host}");
    for words in [
        &["base", "list", "nanoserver", "--base-registry", &host][..],
        &["hotfix", "search", "KB4549949", "--catalog", &catalog],
    ] {
        let started = Instant::now();
        let failure = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
            .args(words)
            .args(["--insecure-registry", &host, "--timeout", "1s"])
            .fails(3, "network/time-limit", &[]);
        let took = started.elapsed();
        assert!(took < Duration::from_secs(8), "{took:?}: {failure:#?}");
    }
}

#[test]
fn a_daemon_that_says_nothing_is_left_at_the_time_limit() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let daemon = format!("tcp://{}", silent.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .args(["copy", "docker-daemon:app:1", "oci:copied"])
        .args(["--docker-host", &daemon, "--timeout", "1s"])
        .current_dir(folder.path())
        .fails(3, "network/time-limit", &[]);
}

/// The source, which is read after the mirror, would be past the limit, too.
#[test]
fn a_mirror_that_says_nothing_is_named_and_not_the_source() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = silent.local_addr().unwrap().to_string();
    let site = Site::new();
    let image = format!("{}/mcr/windows/nanoserver:10.0.17763.973", site.host());
    let words = ["image", "mirror", &image, "--to", &host, "--timeout", "2s"];
    let failure = site
        .command(&words)
        .args(["--insecure-registry", &host])
        .fails(3, "network/time-limit", &[&host]);
    assert!(!failure.message.contains(&site.host()), "{failure:#?}");
}

#[test]
fn a_limit_on_threads_is_an_error_at_once() {
    // Limits do not apply to root, and this limit is on all threads of a user.
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let limits: &[&str] = if is_root {
        &["1", "2", "3", "4"]
    } else {
        &["1"]
    };
    let program = assert_cmd::cargo::cargo_bin!("wincimg").to_owned();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("wincimg");
    fs::hard_link(&program, &copy)
        .or_else(|_| fs::copy(&program, &copy).map(drop))
        .unwrap();
    for limit in limits {
        let mut command = Command::new("prlimit");
        if is_root {
            command = Command::new("setpriv");
            command.args(["--reuid", "61234", "--clear-groups", "prlimit"]);
        }
        let started = Instant::now();
        command
            .current_dir(folder.path())
            .arg(format!("--nproc={limit}"))
            .arg(&copy)
            .args(["inspect", "oci:none"])
            .fails(3, "failed", &["threads", "limits"]);
        assert!(started.elapsed() < Duration::from_secs(5), "{limit}");
    }
}
