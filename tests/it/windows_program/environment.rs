//! The program's environment on Windows: folders of the user, consoles, the Docker daemon's pipe.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tokio::net::{TcpListener, UnixStream};
use wincimg_testkit::component;
use wincimg_testkit::docker_registry::{DockerRegistry, PASSWORD, Setup, USER};
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::test_bases::{bottom_layer, image_of, made_software, made_system};
use wincimg_testkit::windows_daemon::WindowsDaemon;

use super::exe::{Exe, below};
use super::{run, succeed};
use crate::inside::publish;
use crate::site::Site;

#[test(multi_thread)]
async fn what_is_known_of_a_base_is_kept_in_local_application_data() {
    let exe = Exe::find();
    let server = FakeRegistry::start();
    let base = bottom_layer(&made_system(r"%SystemRoot%\system32"), &made_software());
    let base = image_of(crate::inside::VERSION, vec![base.tar()]);
    let reference = publish(&base, &server.host()).await;
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "base", "show", &reference, "--insecure-registry", "127.0.0.1",
    ];
    let printed = tokio::task::block_in_place(|| succeed(exe.command(folder.path(), &arguments)));
    assert_contains!(printed, r"%SystemRoot%\system32");
    let cache = exe.profile().join("AppData/Local/wincimg/bases");
    assert!(fs::read_dir(&cache).unwrap().next().is_some());
}

#[test]
fn credentials_are_kept_in_the_user_s_profile() {
    let exe = Exe::find();
    // wine's crypt32 rejects an explicit CA, so there is no TLS here.
    let registry = DockerRegistry::start(Setup::PASSWORD);
    let folder = tempfile::tempdir().unwrap();
    let host = registry.host();
    let plain = ["--insecure-registry", &host, "--plain-credentials"];
    let mut command = exe.command(folder.path(), &["login", &host, "--user", USER]);
    command.arg("--password-stdin").args(plain);
    let output = assert_cmd::Command::from_std(command)
        .write_stdin(format!("{PASSWORD}\r\n"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let file = exe.profile().join(".docker/config.json");
    let config: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(config["auths"][&host]["auth"].is_string(), "{config}");

    // With valid credentials, the error is that the image does not exist.
    let image = format!("{host}/no/such:image");
    let mut command = exe.command(folder.path(), &["inspect", &image]);
    command.args(plain);
    let (code, _, errors) = run(command);
    assert_eq!(code, 3);
    assert!(
        !errors.contains("401") && errors.contains("no/such"),
        "{errors}"
    );
    succeed(exe.command(folder.path(), &["logout", &host]));
    let config: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(config["auths"][&host].is_null(), "{config}");
}

#[test]
fn a_console_has_colours_and_a_file_has_none() {
    let exe = Exe::find();
    let script = component("script");
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "check-compat", "--host-build", "17763.973", "--image-build", "17763.1158",
    ];
    let (_, printed, errors) = run(exe.command(folder.path(), &arguments));
    assert!(
        !printed.contains('\x1b') && !errors.contains('\x1b'),
        "{printed}{errors}"
    );

    let on_console = |colour: bool| {
        let line = exe.command(folder.path(), &arguments);
        let words: Vec<String> = std::iter::once(line.get_program())
            .chain(line.get_args())
            .map(|word| format!("'{}'", word.to_str().unwrap()))
            .collect();
        let mut command = std::process::Command::new(&script);
        command
            .args([
                "-qec",
                &format!("stty cols 120 rows 50; {}", words.join(" ")),
                "/dev/null",
            ])
            .current_dir(folder.path())
            .env("TERM", "xterm-256color");
        for (name, value) in line.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if !colour {
            command.env("NO_COLOR", "1");
        }
        let (_, shown, _) = run(command);
        assert!(shown.contains("baseline-2020-02"), "{shown:?}");
        shown
    };
    // Red, as drawn by wine's console on this terminal.
    let red = |shown: &str| {
        shown.contains("\x1b[31") || shown.contains(";31") || shown.contains("\x1b[91")
    };
    let coloured = on_console(true);
    assert!(red(&coloured), "{coloured:?}");
    let plain = on_console(false);
    assert!(!red(&plain), "{plain:?}");
}

#[test]
fn a_missing_pipe_is_named_with_what_to_do() {
    let exe = Exe::find();
    let site = Site::new();
    let (host, base) = (site.host(), format!("{}/mcr", site.host()));
    let arguments = [
        "build", "pause", "--host-build", "17763.973", "--engine", "docker",
    ];
    let mut command = exe.command(site.folder.path(), &arguments);
    command
        .args(["--base-registry", &base, "--insecure-registry", &host])
        .args(["--docker-host", "npipe:////./pipe/nobody"])
        .args(["--format", "json"]);
    let (code, printed, errors) = run(command);
    assert_eq!(code, 3, "{errors}");
    assert_contains!(errors, "npipe:////./pipe/nobody");
    assert_contains!(printed, "\"daemon/unreachable\"");
    assert_contains!(errors, "hint: ");
}

/// A program that is killed on drop.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test(multi_thread)]
async fn the_docker_daemon_answers_over_its_named_pipe() {
    let exe = Exe::find();
    let daemon = WindowsDaemon::start();
    daemon.script(|script| {
        let enough = json!({"error": "enough", "errorDetail": {"message": "enough"}});
        script.builds = vec![vec![enough]];
    });
    let socket = daemon.host();
    let socket = socket.strip_prefix("unix://").unwrap().to_owned();
    let relay = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = relay.local_addr().unwrap().port().to_string();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = relay.accept().await {
            let socket = socket.clone();
            tokio::spawn(async move {
                let mut server = UnixStream::connect(socket).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    let source = "tests/programs/pipe.c";
    exe.wine.compile(source, "pipe.exe", &["-lws2_32"]).unwrap();
    let mut server = exe.wine.command(r"C:\pipe.exe");
    server.args([r"\\.\pipe\docker_engine", &port]);
    let mut server = KilledOnDrop(
        server
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    let mut output = BufReader::new(server.0.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "listening");

    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("recipe.toml"),
        "name = \"x\"\nbase = \"nanoserver\"\n[[run]]\nshell = \"ver\"\n",
    )
    .unwrap();
    let site = Site::new();
    let (host, recipe) = (site.host(), below(folder.path(), "recipe.toml"));
    let base = format!("{host}/mcr");
    // The platform's default pipe.
    let mut command = exe.command(
        folder.path(),
        &["build", &recipe, "--host-build", "17763.973"],
    );
    command
        .args(["--base-registry", &base, "--insecure-registry", &host])
        .args(["--engine", "docker", "--tag", "1"]);
    let (code, printed, errors) = tokio::task::block_in_place(|| run(command));
    let asked = daemon.asked("/build");
    assert_eq!(asked.len(), 1, "{printed}{errors}");
    assert!(code == 3 && errors.contains("enough"), "{code}: {errors}");
    assert!(asked[0].bytes > 0, "the context came along");
}
