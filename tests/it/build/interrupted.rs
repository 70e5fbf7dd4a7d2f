//! Interrupted builds.

use std::fs;
use std::io::{Read as _, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wincimg_testkit::{component, noise};

use crate::failure::{line, says};
use crate::site::{Site, run_by, stderr};

/// Waits until a build has opened a spool, which is unnamed.
fn wait_for_a_layer(child: &Child) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let files = format!("/proc/{}/fd", child.id());
    let spools = || {
        let open = fs::read_dir(&files).into_iter().flatten().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|path| path.to_string_lossy().ends_with("(deleted)"))
    };
    while !spools() {
        if Instant::now() >= deadline {
            send("-KILL", child);
            panic!("the layer was never begun");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// `nohup` ignores the signal.
#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let site = Site::new();
    endless_context(&site);
    let mut child = signalled(
        &site,
        &["build", "big", "--host-build", "17763.973"],
        "--ignore-signal=HUP",
    )
    .args(["--base-registry", &format!("{}/mcr", site.host())])
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    wait_for_a_layer(&child);
    send("-HUP", &child);
    std::thread::sleep(Duration::from_millis(200));
    assert!(child.try_wait().unwrap().is_none());
    send("-TERM", &child);
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

/// The program, whatever signals the test runner ignores.
fn signalled(site: &Site, arguments: &[&str], signals: &str) -> Command {
    let mut env = Command::new("env");
    env.arg(signals);
    run_by(env, &site.command(arguments))
}

/// Ctrl-C, the request of a CI system to end, and the end of the terminal.
#[test]
fn a_signal_ends_a_layer_that_takes_minutes_and_leaves_nothing_half_made() {
    let site = Site::new();
    endless_context(&site);
    let temporary = site.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let base = format!("{}/mcr", site.host());
    let arguments = [
        "build", "big", "--host-build", "17763.973", "--output", "oci:out", "--base-registry",
        &base,
    ];
    for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let child = signalled(&site, &arguments, "--default-signal")
            .env("TMPDIR", &temporary)
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_a_layer(&child);
        let asked = Instant::now();
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        assert!(asked.elapsed() < Duration::from_secs(8), "{signal}");
        assert_eq!(output.status.signal(), Some(number), "{}", stderr(&output));
        let errors = stderr(&output).matches("error: ").count();
        assert_eq!(errors, 1, "{}", stderr(&output));
        assert_eq!(
            fs::read_dir(&temporary).unwrap().count(),
            0,
            "left in TMPDIR"
        );
        let index = fs::read_to_string(site.path("out/index.json")).unwrap_or_default();
        assert!(!index.contains("digest"), "{index}");
    }
    // A second run works.
    fs::remove_file(site.path("big/files/sparse")).unwrap();
    let output = site.command(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

/// A folder with a file that takes minutes to compress, with only a few megabytes on disk.
fn endless_context(site: &Site) {
    fs::create_dir_all(site.path("big/files")).unwrap();
    let file = fs::File::create(site.path("big/files/sparse")).unwrap();
    file.set_len(60 << 30).unwrap();
    // It comes first and does not compress, so that the layer soon reaches the disk.
    site.write("big/files/first", noise(8 << 20, 1));
    site.write(
        "big/recipe.toml",
        "name = \"big\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\big'\n",
    );
}

#[test]
fn the_time_limit_ends_what_compresses_within_seconds() {
    let site = Site::new();
    endless_context(&site);
    for to in ["oci:out", "docker-archive:out.tar"] {
        let started = Instant::now();
        let mut build = site.build("big");
        build.args(["--host-build", "17763.973", "--output", to]);
        let output = build.args(["--timeout", "500ms"]).output().unwrap();
        let took = started.elapsed();
        assert!(took < Duration::from_secs(8), "{took:?}");
        assert_eq!(output.status.code(), Some(3));
        let printed = stderr(&output);
        says(&printed, &line(&["hint: ", "--timeout"]));
    }
}

#[test]
fn a_shells_loop_ends_with_the_command_that_ctrl_c_ended() {
    let site = Site::new();
    endless_context(&site);
    let command = site.command(&["build", "big", "--host-build", "17763.973"]);
    let words: Vec<&str> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(|word| word.to_str().unwrap())
        .collect();
    let (command, host) = (words.join(" "), site.host());
    let script = format!("for i in 1 2 3; do {command} --base-registry {host}/mcr; echo $?; done");
    // The test runner may ignore the signal, which a shell would inherit.
    let shell = Command::new("env")
        .args(["--default-signal=INT", "bash", "-c", &script])
        .current_dir(site.folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    wait_until("the build has begun", || site.requests() > 0);
    // Like a terminal: to the whole process group.
    let group = format!("-{}", shell.id());
    let sent = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(sent.unwrap().success());
    let output = shell.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(2), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("error: ").count(), 1);
}

#[test]
fn ctrl_c_leaves_the_terminal_clean() {
    let script = component("script");
    let site = Site::new();
    endless_context(&site);
    let command = site.command(&["build", "big", "--host-build", "17763.973"]);
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    let command = format!("{} --base-registry {}/mcr", words.join(" "), site.host());
    let mut terminal = Command::new(script);
    terminal
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(site.folder.path())
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    for variable in ["CI", "NO_COLOR"] {
        terminal.env_remove(variable);
    }
    let mut terminal = terminal.spawn().unwrap();
    let mut screen = terminal.stdout.take().unwrap();
    let mut shown = Vec::new();
    // Until a progress bar names the image.
    while !shown.windows(3).any(|it| it == b"big") {
        let mut piece = [0; 4096];
        let length = screen.read(&mut piece).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&piece[..length]);
    }
    let mut keyboard = terminal.stdin.take().unwrap();
    keyboard.write_all(b"\x03").unwrap();
    screen.read_to_end(&mut shown).unwrap();
    assert_eq!(terminal.wait().unwrap().code(), Some(130));
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let (bars, end) = shown.rsplit_once("big").unwrap();
    assert!(!bars.is_empty());
    let (cleared, end) = end.rsplit_once("\x1b[2K").unwrap();
    assert!(!cleared.contains("error:"), "{shown:?}");
    assert!(end.contains("error:"), "{shown:?}");
}
