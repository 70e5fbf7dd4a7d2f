//! Dockerfiles with steps for Windows that `BuildKit` runs, through `buildctl`. A real `BuildKit` for
//! Linux stands in for one on Windows (see `wincimg_testkit::windows_stand_in`).

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wincimg_testkit::windows_stand_in::WindowsStandIn;

use crate::failure::{Fails, Failure};
use crate::hybrid::{FROM, building, instructions, json_of, layers, only, site};
use crate::site::{Site, stderr, write_program};

const BUILDER: &str = "buildkit://127.0.0.1:1234";

/// A build whose temporary files are in a folder of the site.
fn build(site: &Site, windows: &WindowsStandIn, more: &[&str]) -> Command {
    let host = site.host();
    let arguments = ["--builder", BUILDER, "--registry", &host, "--push"];
    let mut command = building(site, &[&arguments[..], more].concat());
    let path = env::var_os("PATH").unwrap();
    let folders = [windows.buildctl()];
    let folders = folders.into_iter().chain(env::split_paths(&path));
    fs::create_dir_all(site.path("tmp")).unwrap();
    command
        .env("PATH", env::join_paths(folders).unwrap())
        .env("TMPDIR", site.path("tmp"));
    command
}

fn run(site: &Site, windows: &WindowsStandIn, more: &[&str]) -> Output {
    build(site, windows, more).output().unwrap()
}

/// Files of builds that are still there.
fn left_behind(site: &Site) -> Vec<String> {
    let entries = fs::read_dir(site.path("tmp")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("buildkit")).collect()
}

#[test(multi_thread = 2)]
async fn steps_for_windows_run_in_buildkit_and_not_again() {
    let site = site();
    let windows = WindowsStandIn::start(site.registry.clone());
    let text = format!(
        "{FROM}\nARG COLOUR=red\nENV A=$COLOUR\nCOPY site C:/site/\n\
         RUN [\"/Files/tool\", \"one\"]\n# a comment\nENV A=second\nRUN [\"/Files/tool\", \\\n  \"two\"]\n\
         COPY late.txt C:/late.txt\nRUN [\"/Files/tool\", \"three\"]\nCMD [\"x\"]\n"
    );
    site.write("app/Dockerfile", &text);
    // As it stands, also for BuildKit's parser.
    let argument = r#"COLOUR=it's "$HOME" C:\dir\"#;
    let arguments = ["--build-arg", "COLOUR"];
    let run = |more: &[&str]| {
        let mut command = build(&site, &windows, &[&arguments[..], more].concat());
        let (name, value) = argument.split_once('=').unwrap();
        command.env(name, value).output().unwrap()
    };

    let planned = json_of(&run(&["--dry-run"]));
    assert_eq!(
        planned["worker"],
        json!({"kind": "buildkit", "address": BUILDER})
    );
    let bases = format!("{}/mcr", site.host());
    let text = ["build", "./app", "--host-build", "17763.973", "--dry-run"];
    for flag in ["--builder", "--docker-host"] {
        let text = [&text[..], &["--base-registry", &bases, flag, BUILDER]].concat();
        let shown = site.command(&text).prints();
        let expected = format!("windows: buildkit at {BUILDER}, experimental");
        assert!(shown.lines().any(|line| line == expected), "{shown}");
    }
    assert!(windows.buildctl_calls().arguments.is_empty());

    let output = run(&[]);
    let built = json_of(&output);
    let said = stderr(&output);
    assert_contains!(said, "lines 5 to 8 run on Windows");
    assert_contains!(said, "v0.13.2", "experimental");
    let image = &built["images"][0];
    assert_eq!(image["engine"], "hybrid");
    assert_eq!(image["os_version"], "10.0.17763.973");
    let builds = windows.builds();
    let value = r#"ARG COLOUR='it'"'"'s "$HOME" C:\dir\'"#;
    let expected = [
        value,
        r#"RUN ["/Files/tool", "one"]"#,
        "ENV A=second",
        r#"RUN ["/Files/tool", \"#,
        r#"  "two"]"#,
    ];
    assert_eq!(instructions(&builds[0]), expected);
    let expected = [value, r#"RUN ["/Files/tool", "three"]"#];
    assert_eq!(instructions(&builds[1]), expected);
    assert_eq!(builds.len(), 2);
    let seen = r#"A=it's "$HOME" C:\dir\ site=1 late=0"#;
    let expected = [
        only("Files/site/a.txt", "a"),
        only("Files/made-one.txt", seen),
        only("Files/made-two.txt", "A=second site=1 late=0"),
        only("Files/late.txt", "late"),
        only("Files/made-three.txt", "A=second site=1 late=1"),
    ];
    assert_eq!(layers(&site, &built).await, expected);
    // Everybody can read a command line.
    for call in windows.buildctl_calls().arguments {
        assert!(!call.concat().contains("$HOME"), "{call:?}");
    }
    assert!(left_behind(&site).is_empty());

    // Not a step is run again, also without the daemon.
    let calls = windows.buildctl_calls().arguments.len();
    let again = json_of(&run(&[]));
    assert_eq!(again["images"][0]["digest"], image["digest"]);
    assert_eq!(again["images"][0]["up_to_date"], true);
    assert_eq!(windows.buildctl_calls().arguments.len(), calls);
    site.write("app/late.txt", "later");
    let changed = json_of(&run(&[]));
    assert_ne!(changed["images"][0]["digest"], image["digest"]);
    assert_eq!(windows.builds().len(), 3);
    json_of(&run(&[
        "--no-cache",
        "--build-arg",
        "HTTPS_PROXY=http://proxy.lan:3128",
    ]));
    assert_eq!(windows.builds().len(), 5);
    let calls = windows.buildctl_calls().arguments;
    let last = calls.last().unwrap();
    for word in [
        "--no-cache",
        "--opt=build-arg:HTTPS_PROXY=http://proxy.lan:3128",
    ] {
        assert!(last.iter().any(|it| it == word), "{last:?}");
    }
}

#[test(multi_thread = 2)]
async fn what_buildkit_refuses_and_steps_that_fail_are_named() {
    let site = site();
    let windows = WindowsStandIn::start(site.registry.clone());
    what_buildkit_does_not_have_is_refused(&site, &windows);
    a_step_that_fails_in_buildkit_is_named_by_its_line(&site, &windows);
}

fn what_buildkit_does_not_have_is_refused(site: &Site, windows: &WindowsStandIn) {
    site.write(
        "app/Dockerfile",
        format!("{FROM}\nARG A\nRUN [\"/Files/tool\", \"one\"]\n"),
    );
    let failure_of = |arguments: &[&str]| Failure::of(&run(site, windows, arguments));
    failure_of(&["--isolation", "hyperv"]).advises(&["--isolation", "--docker-host"]);
    let proxy = "HTTP_PROXY=http://bob:sesame@proxy.lan:3128";
    let failure = failure_of(&["--build-arg", proxy]).is("usage", &["HTTP_PROXY"]);
    failure.hides("sesame");
    failure_of(&["--build-arg", "A=1\n2"]).is("dockerfile/request", &["build argument A"]);
    let failure = failure_of(&["--engine", "docker"]).is("daemon/address", &[BUILDER]);
    failure.advises(&["--builder"]);
    assert!(windows.builds().is_empty());
}

fn a_step_that_fails_in_buildkit_is_named_by_its_line(site: &Site, windows: &WindowsStandIn) {
    let dockerfile = |last: &str| {
        let text = format!(
            "{FROM}\nCOPY site C:/site/\nRUN [\"/Files/tool\", \"one\"]\nCOPY late.txt C:/\n\
             ENV C=1\nARG X=1\nRUN [\"/Files/tool\", \"two\"]\nENV D=1\n\
             RUN [\"/Files/tool\", \"{last}\"]\n"
        );
        site.write("app/Dockerfile", text);
    };
    dockerfile("fail");
    let failure = Failure::of(&run(site, windows, &[]));
    let values = [
        "Dockerfile:9: ", "step 5 of 5", "exit code 7", "cannot install",
    ];
    let failure = failure.is("daemon/step", &values).on_line(9);
    let kept = format!("{}/app", site.host());
    assert!(failure.stderr.contains(&kept), "{failure:#?}");
    assert_eq!(windows.builds().len(), 2);
    assert!(left_behind(site).is_empty());
    // Neither the first steps nor the image below the failed ones again.
    dockerfile("three");
    json_of(&run(site, windows, &[]));
    assert_eq!(windows.builds().len(), 3);
}

#[test(multi_thread = 2)]
async fn credentials_are_those_of_the_registry_and_not_left_behind() {
    let site = site();
    let windows = WindowsStandIn::start(site.registry.clone());
    let (host, other) = (site.host(), "repo.lan:5000");
    let auths = json!({"auths": {
        &host: {"username": "bob", "password": "sesame"},
        other: {"username": "bob", "password": "other-sesame"},
    }});
    site.write("config.json", auths.to_string());
    site.write(
        "app/Dockerfile",
        format!("{FROM}\nRUN [\"/Files/tool\", \"one\"]\n"),
    );
    json_of(&run(&site, &windows, &["--plain-credentials"]));
    let calls = windows.buildctl_calls();
    let credential = json!({"username": "bob", "password": "sesame", "serveraddress": host});
    let expected = json!({"auths": {&host: credential}});
    assert_eq!(calls.configurations, [(expected, 0o600)]);
    assert!(!calls.arguments.concat().concat().contains("sesame"));

    // Nor if the build is ended.
    site.write(
        "app/Dockerfile",
        format!("{FROM}\nRUN [\"/Files/tool\", \"slow\"]\n"),
    );
    let mut command = build(&site, &windows, &["--plain-credentials"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let running = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while windows.builds().len() < 2 {
        assert!(Instant::now() < deadline, "the step does not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let id = running.id().to_string();
    assert_eq!(left_behind(&site).len(), 1);
    assert!(Command::new("kill").arg(&id).status().unwrap().success());
    let ended = tokio::task::spawn_blocking(move || running.wait_with_output().unwrap());
    assert!(!ended.await.unwrap().status.success());
    let calls = windows.buildctl_calls();
    assert_eq!(calls.configurations.len(), 2);
    for folder in calls.folders {
        assert!(!folder.exists(), "{}", folder.display());
    }
    assert!(left_behind(&site).is_empty());
    let client = calls.processes.last().unwrap();
    assert!(!Path::new(&format!("/proc/{client}")).exists());
}

#[test]
fn buildctl_is_required_and_its_errors_are_shown() {
    let site = site();
    site.write(
        "app/Dockerfile",
        format!("{FROM}\nRUN [\"/Files/tool\", \"one\"]\n"),
    );
    let host = site.host();
    let arguments = ["--builder", BUILDER, "--registry", &host, "--push"];
    let fails = |printed: &str| -> Failure {
        let folder = site.path("bin");
        if !printed.is_empty() {
            write_program(&folder, "buildctl", printed);
        }
        let mut command = building(&site, &arguments);
        command.env("PATH", format!("{}:/bin", folder.display()));
        Failure::of(&command.output().unwrap())
    };
    fails("")
        .is("daemon/unreachable", &["buildctl"])
        .advises(&["PATH"]);
    let refused = "connect: connection refused";
    let unreachable = format!("echo 'error: failed to list workers: {refused}' >&2; exit 1");
    fails(&unreachable).is("daemon/unreachable", &[refused, BUILDER]);
    fails("echo no json").is("daemon/answer", &[BUILDER]);
    let platforms: Value = json!([{"platforms": [{"os": "linux"}]}]);
    let linux = fails(&format!("echo '{platforms}'"));
    linux
        .is("windows/needed", &["linux", BUILDER])
        .advises(&["--builder"]);
    fails("echo '[]'").is("windows/needed", &["runs no containers", BUILDER]);
    // The first is a server or a client, and older than the base.
    for version in ["10.0.14393", "10.0.26100"] {
        let platforms = json!([{"platforms": [{"os": "windows", "os.version": version}]}]);
        fails(&format!("echo '{platforms}'")).is("daemon/cannot-run", &["17763", BUILDER]);
    }
    let platforms = json!([{"platforms": [{"os": "windows"}]}]);
    let plain = "failed to do request: http: server gave HTTP response to HTTPS client";
    let script = format!(
        "case \"$*\" in *workers*) echo '{platforms}';; *) echo 'error: failed to solve: {plain}' >&2; exit 1;; esac"
    );
    let failure = fails(&script).is("daemon/refused", &[plain]);
    failure.advises(&["buildkitd.toml", "http = true", &host]);
}
