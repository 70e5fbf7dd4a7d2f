//! The Docker engine against a replayed Windows daemon (see `wincimg_testkit::windows_daemon` for
//! its data): `/info`, the classic builder's stream with the output of `RUN`, the errors of the
//! Windows runtime, a push. The registry that it pushes to, and every byte of the requests, are
//! real.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::json;
use wincimg_common::diagnose::{BoxError, Diagnose};
use wincimg_common::progress::Silent;
use wincimg_dockerfile::{ContextContent, ContextEntry, RenderedDockerfile};
use wincimg_layer::{LinkTo, Symlink};
use wincimg_testkit::chain;
use wincimg_testkit::windows_daemon::{DaemonRequest, WindowsDaemon, built, shown};

use super::{build, connect, text};
use crate::docker::api::ImageInfo;
use crate::docker::build::DockerBuildOptions;
use crate::docker::daemon::Daemon;
use crate::docker::endpoint::{Endpoint, Environment};
use crate::docker::preflight::Preflight;
use crate::docker::upload::ContextListing;

fn file(path: &str, source: PathBuf) -> ContextEntry {
    ContextEntry {
        path: path.to_owned(),
        content: ContextContent::File(source.into()),
    }
}

/// The names in a tar stream that was sent to the daemon.
fn names(asked: &DaemonRequest) -> Vec<String> {
    let mut archive = tar::Archive::new(asked.body.as_slice());
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect()
}

const SOME_ID: &str = "sha256:1f2e3d4c5b6a79880f1e2d3c4b5a69788f7e6d5c4b3a29181f0e9d8c7b6a5948";

/// A daemon whose builds end with one image.
fn with_image() -> WindowsDaemon {
    let windows = WindowsDaemon::start();
    windows.script(|script| {
        script.builds = vec![built(SOME_ID)];
        let image = shown(SOME_ID, "10.0.17763.973", &[]);
        script.images.insert(SOME_ID.to_owned(), image);
    });
    windows
}

async fn build_any(daemon: &Daemon) -> Result<ImageInfo, BoxError> {
    build(daemon, &text("FROM x"), &DockerBuildOptions::default()).await
}

#[test]
async fn a_document_without_end_is_not_read_to_it() {
    let windows = with_image();
    windows.script(|script| {
        let image = script.images.get_mut(SOME_ID).unwrap();
        image["Comment"] = json!("x".repeat(33 << 20));
    });
    let daemon = connect(&windows.host()).await;
    let error = daemon.image(SOME_ID).await.unwrap_err();
    let printed = chain(&error);
    assert!(printed.contains("longer than 33554432 bytes"), "{printed}");
}

#[test]
async fn a_build_is_asked_for_with_the_same_bytes_each_time() {
    let windows = with_image();
    let daemon = connect(&windows.host()).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "content").unwrap();
    let long = format!("files/{}/a.txt", "long".repeat(40));
    let entry = |path: &str, content| ContextEntry {
        path: path.to_owned(),
        content,
    };
    let link = ContextContent::Link(Symlink {
        target: "ü.txt".to_owned(),
        to: LinkTo::File,
    });
    let context = RenderedDockerfile {
        context: vec![
            entry("files", ContextContent::Folder),
            file("files/ü.txt", folder.path().join("a")),
            file(&long, folder.path().join("a")),
            entry("files/link", link),
            entry("made", ContextContent::File(Bytes::from("made").into())),
        ],
        labels: [("team".to_owned(), "a \"b\"".to_owned())].into(),
        ..text("FROM base\n")
    };
    let options = DockerBuildOptions {
        timestamp: Some(1_578_960_000),
        ..DockerBuildOptions::default()
    };
    for _ in 0..2 {
        let image = build(&daemon, &context, &options).await.unwrap();
        assert_eq!(image.os_version, "10.0.17763.973");
    }
    let asked = windows.asked("/build");
    let query = &asked[0].query;
    for (name, value) in [
        ("dockerfile", "Dockerfile"),
        ("rm", "true"),
        ("labels", r#"{"team":"a \"b\""}"#),
    ] {
        assert_eq!(query.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(asked[0].path, "/v1.41/build");
    assert_eq!(
        names(&asked[0]),
        [
            "Dockerfile", "files/", "files/ü.txt", &long, "files/link", "made"
        ]
    );
    assert_eq!(asked[0].body, asked[1].body);
}

/// Error of the Windows runtime if a base does not match its host.
const MISMATCH: &str = "container 1b2c encountered an error during hcsshim::System::CreateProcess: \
    failure in a Windows system call: The container operating system does not match the host \
    operating system. (0xc0370101)";

#[test]
async fn a_step_that_fails_on_windows_is_reported_with_its_output_and_what_to_do() {
    let windows = WindowsDaemon::start();
    let daemon = connect(&windows.host()).await;
    let failing = |message: &str, code: i64| {
        vec![
            json!({"stream": "Step 1/2 : FROM mcr.microsoft.com/windows/servercore"}),
            json!({"stream": "\n"}),
            json!({"stream": "Step 2/2 : RUN appcmd set config"}),
            json!({"stream": "\n"}),
            json!({"stream": " ---> Running in 1b2c\n"}),
            json!({"stream": "ERROR ( message:The parameter 'Web' must begin with a / or - \r\n"}),
            json!({"stream": "(HRESULT=80070057). )\r\n"}),
            json!({"errorDetail": {"code": code, "message": message}, "error": message}),
        ]
    };
    let refused = "The command 'get https://bob:SECRET@x/y' returned a non-zero code: 87";
    let newer = "a Windows version 10.0.20348-based image is incompatible with a 10.0.17763 host";
    let failures = [(refused, 87), (MISMATCH, 0), (newer, 0)];
    windows.script(|script| {
        let builds = failures.map(|(message, code)| failing(message, code));
        script.builds = builds.into();
    });
    let error = build_any(&daemon).await.unwrap_err();
    assert_eq!(
        chain(error.as_ref()),
        "step 2 of 2 failed with exit code 87: RUN appcmd set config: The command \
         'get https://***@x/y' returned a non-zero code: 87; last lines of its output:\n    \
         | ERROR ( message:The parameter 'Web' must begin with a / or -\n    \
         | (HRESULT=80070057). )"
    );
    assert_eq!(error.diagnosis().hint, None);
    for expected in ["--isolation hyperv", "not older than the base"] {
        let error = build_any(&daemon).await.unwrap_err();
        let printed = error.to_string();
        assert!(printed.starts_with("step 2 of 2 failed: RUN"), "{printed}");
        let hint = error.diagnosis().hint.unwrap();
        assert!(hint.contains(expected), "{hint}");
    }
}

#[test]
async fn nothing_unusual_in_a_stream_stops_a_build_that_goes_well() {
    let windows = with_image();
    let daemon = connect(&windows.host()).await;
    let layer = |detail| json!({"status": "Downloading", "id": "aa", "progressDetail": detail});
    windows.script(|script| {
        script.builds = vec![vec![
            json!({"stream": "Step 1/1 : FROM x", "vertex": {"of": ["another", 7]}}),
            layer(json!({"current": 5, "total": -1})),
            layer(json!({"current": "5", "total": null})),
            layer(json!("none")),
            json!({"id": "moby.buildkit.trace", "aux": "Cm8KR3NoYTI1Njpl"}),
            json!({"stream": 7, "status": [], "id": {}, "aux": {"ID": 7}, "error": null}),
            json!([1, 2]),
            json!(null),
            json!({"aux": {"ID": SOME_ID}}),
            json!("<html>a proxy's words</html>"),
            json!("{\"stream\": \"Successfully bui"),
        ]];
    });
    let image = build_any(&daemon).await.unwrap();
    assert_eq!(image.id, SOME_ID);
}

#[test]
async fn an_exit_code_of_windows_is_shown_as_its_status_and_explained() {
    let windows = WindowsDaemon::start();
    let daemon = connect(&windows.host()).await;
    let words = "The command 'cmd /S /C app.exe' returned a non-zero code: 3221225781";
    for detail in [
        json!({"code": 3_221_225_781_u32, "message": words}),
        json!({"code": -1_073_741_515, "message": words}),
        json!({ "message": words }),
    ] {
        windows.script(|script| {
            let step = json!({"stream": "Step 1/1 : RUN app.exe"});
            script.builds = vec![vec![step, json!({"errorDetail": detail, "error": words})]];
        });
        let error = build_any(&daemon).await.unwrap_err();
        let expected = "step 1 of 1 failed with exit code 0xC0000135 (3221225781, \
                        STATUS_DLL_NOT_FOUND): RUN app.exe";
        assert_eq!(error.to_string(), expected);
        let hint = error.diagnosis().hint.unwrap();
        let expected = "a DLL that the program needs is missing";
        assert!(hint.contains(expected), "{hint}");
    }
}

#[test]
async fn an_answer_that_is_none_of_dockers_is_no_build() {
    let windows = WindowsDaemon::start();
    let daemon = connect(&windows.host()).await;
    let other = "sha256:00";
    for (messages, expected) in [
        (vec![], "without naming an image"),
        (
            vec![json!({"stream": "Step 1/1 : FROM x"})],
            "without naming an image",
        ),
        (vec![json!([1, 2])], "without naming an image"),
        (vec![json!({"aux": {"ID": other}})], "No such image"),
        (
            vec![json!({"aux": {"ID": SOME_ID}})],
            "shows sha256:else instead",
        ),
        (
            vec![json!({"error": "no room"})],
            "failed to build the image: no room",
        ),
    ] {
        windows.script(|script| {
            script.builds = vec![messages.clone()];
            let image = shown("sha256:else", "10.0.17763.973", &[]);
            script.images.insert(SOME_ID.to_owned(), image);
        });
        let error = build_any(&daemon).await.unwrap_err();
        assert!(
            error.to_string().contains(expected),
            "{messages:?}: {error}"
        );
    }
}

#[test]
async fn a_daemon_of_before_or_of_something_else_is_refused() {
    let windows = WindowsDaemon::start();
    let endpoint = Endpoint::find(Some(&windows.host()), &Environment::default()).unwrap();
    for (version, expected) in [
        ("1.24", "has API version 1.24: expected 1.30 or newer"),
        ("", "no Api-Version header"),
        ("new", "no Api-Version header"),
    ] {
        windows.script(|script| script.api_version = version.to_owned());
        let connected = Daemon::connect(endpoint.clone()).await;
        let error = connected.unwrap_err().to_string();
        assert!(error.contains(expected), "{version}: {error}");
    }
    // A newer daemon is used with the newest supported version.
    windows.script(|script| script.api_version = "1.99".to_owned());
    let daemon = connect(&windows.host()).await;
    assert_eq!(daemon.api_version().to_string(), "1.47");
}

#[test]
async fn a_word_that_is_not_known_yet_leaves_the_rest_of_what_a_daemon_says_readable() {
    let windows = WindowsDaemon::start();
    let daemon = connect(&windows.host()).await;
    for name in ["Isolation", "CgroupDriver", "CgroupVersion"] {
        windows.script(|script| script.info[name] = json!("another"));
        let info = daemon.info().await.unwrap();
        assert_eq!(
            (&*info.os_type, &*info.server_version),
            ("windows", "20.10.24")
        );
    }
}

#[test]
async fn a_daemon_of_this_machine_needs_room_for_the_build() {
    let windows = WindowsDaemon::start();
    let daemon = connect(&windows.host()).await;
    let folder = tempfile::tempdir().unwrap();
    let mut info = daemon.info().await.unwrap();
    // The replayed daemon's folder is on no disk here, so its space is unknown.
    Preflight::new(&daemon, &info).check_disk(u64::MAX).unwrap();
    info.docker_root_dir = folder.path().display().to_string();
    let preflight = Preflight::new(&daemon, &info);
    preflight.check_disk(1).unwrap();
    let error = preflight.check_disk(u64::MAX).unwrap_err();
    let printed = error.to_string();
    assert!(printed.starts_with(&info.docker_root_dir), "{printed}");
    let expected = "needs about 17592186044415 MiB";
    assert!(printed.contains(expected), "{printed}");
    let hint = error.diagnosis().hint.unwrap();
    assert!(hint.contains("docker system prune"), "{hint}");
}

#[test]
async fn what_does_not_exist_or_changes_while_it_is_sent_ends_the_build_by_name() {
    let windows = with_image();
    let daemon = connect(&windows.host()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.bin");
    File::create(&path).unwrap().set_len(8 << 20).unwrap();
    let context = |path: &Path| RenderedDockerfile {
        context: vec![file("large.bin", path.to_owned())],
        ..text("FROM x\n")
    };
    let listing = ContextListing::new(&context(&path)).unwrap();
    fs::remove_file(&path).unwrap();
    let options = DockerBuildOptions::default();
    let error = daemon.build(listing, &options, &Silent).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot send the build context");
    assert!(chain(error.as_ref()).contains(&format!("cannot read {}", path.display())));

    let error = ContextListing::new(&context(&path))
        .unwrap_err()
        .to_string();
    assert_eq!(error, format!("cannot read {}", path.display()));

    let mut taken = context(&path);
    taken.context[0].path = "DOCKERFILE".to_owned();
    let error = ContextListing::new(&taken).unwrap_err().to_string();
    assert!(error.contains("\"DOCKERFILE\""), "{error}");

    // A file that the kernel reports as empty but that has content.
    #[cfg(target_os = "linux")]
    {
        let odd = Path::new("/proc/self/stat");
        let listing = ContextListing::new(&context(odd)).unwrap();
        let error = daemon.build(listing, &options, &Silent).await.unwrap_err();
        let expected = "/proc/self/stat changed";
        assert!(chain(error.as_ref()).contains(expected), "{error}");
    }
    // The daemon never took half a context for a complete one.
    assert!(windows.asked("/build").iter().all(is_cut));
}

fn is_cut(asked: &DaemonRequest) -> bool {
    !asked.body.ends_with(&[0; 1024])
}

#[cfg(target_os = "linux")]
#[test(multi_thread = 2)]
async fn three_gigabytes_pass_through_little_memory() {
    const TEST: &str = "three_gigabytes_pass_through_little_memory";
    if wincimg_testkit::child_argument().is_none() {
        wincimg_testkit::in_child(TEST, "child", &[]);
        return;
    }
    let windows = with_image();
    let daemon = connect(&windows.host()).await;
    let folder = wincimg_testkit::folder_for_holes();
    let path = folder.path().join("disk.vhdx");
    File::create(&path).unwrap().set_len(3 << 30).unwrap();
    let context = RenderedDockerfile {
        context: vec![file("disk.vhdx", path)],
        ..text("FROM x\n")
    };
    let listing = ContextListing::new(&context).unwrap();
    assert!(listing.bytes > 3 << 30);
    let options = DockerBuildOptions::default();
    daemon.build(listing, &options, &Silent).await.unwrap();
    assert!(windows.asked("/build")[0].bytes > 3 << 30);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().split(' ').next().unwrap();
    let peak: u64 = peak.parse().unwrap();
    // The replayed daemon keeps 16 MiB of what it receives.
    assert!(peak < 96 << 10, "{peak} KiB");
}
