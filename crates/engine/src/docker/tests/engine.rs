//! The Docker engine against a real daemon. It runs Linux containers, so the Dockerfiles are `FROM
//! scratch`; what only Windows does is in `replay.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use wincimg_common::diagnose::BoxError;
use wincimg_common::progress::Silent;
use wincimg_dockerfile::{ContextContent, ContextEntry, RenderedDockerfile};
use wincimg_testkit::chain;
use wincimg_testkit::docker_registry::{DockerRegistry, Setup, free_port};
use wincimg_testkit::dockerd::Dockerd;

use super::{connect, text};
use crate::docker::api::ImageInfo;
use crate::docker::build::{DockerBuildOptions, StepError};
use crate::docker::daemon::Daemon;

/// Waits, prints and fails as its argument says: the only program in these images.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    for (int line = 1; line <= 30; line++) printf("line %d\n", line);
    fflush(stdout);
    if (strcmp(what, "wait") == 0) sleep(120);
    return strcmp(what, "fail") == 0 ? 7 : 0;
}
"#;

/// The program, compiled once.
fn program() -> PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    let compile = || {
        let compiler = wincimg_testkit::component("cc");
        let file = std::env::current_exe()
            .unwrap()
            .with_file_name("docker-engine-program");
        let source = file.with_extension("c");
        fs::write(&source, PROGRAM).unwrap();
        let mut command = Command::new(compiler);
        command.args(["-static", "-o"]).args([&file, &source]);
        assert!(command.status().unwrap().success());
        file
    };
    FILE.get_or_init(compile).clone()
}

fn context(dockerfile: &str, files: &[(&str, &Path)]) -> RenderedDockerfile {
    let entries = files.iter().map(|(path, source)| ContextEntry {
        path: (*path).to_owned(),
        content: ContextContent::File(source.to_path_buf().into()),
    });
    RenderedDockerfile {
        context: entries.collect(),
        ..text(dockerfile)
    }
}

/// Options without network, which neither the daemon nor the steps need.
fn options() -> DockerBuildOptions {
    DockerBuildOptions {
        network: Some("none".to_owned()),
        ..DockerBuildOptions::default()
    }
}

async fn build(daemon: &Daemon, context: &RenderedDockerfile) -> Result<ImageInfo, BoxError> {
    super::build(daemon, context, &options()).await
}

fn labels(daemon: &Dockerd, image: &str) -> Value {
    let printed = daemon.must(&[
        "image",
        "inspect",
        image,
        "--format",
        "{{json .Config.Labels}}",
    ]);
    serde_json::from_str(&printed).unwrap()
}

#[test]
async fn an_image_is_built_tagged_and_pushed_and_the_registry_has_it_under_the_digest() {
    let dockerd = Dockerd::start();
    let registry = DockerRegistry::start(Setup::default());
    let daemon = connect(&dockerd.host()).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "a").unwrap();
    let mut context = context(
        "FROM scratch\nARG COLOUR=none\nCOPY site/ /site/\nLABEL colour=$COLOUR\n\
         EXPOSE 80 443/tcp\nVOLUME /data\nHEALTHCHECK --interval=5s CMD [\"/up\"]\n",
        &[("site/a.txt", &folder.path().join("a.txt"))],
    );
    let options = DockerBuildOptions {
        arguments: [("COLOUR".to_owned(), "blue & \"white\"".to_owned())].into(),
        ..options()
    };
    context.labels = [("made.by".to_owned(), "a=b c".to_owned())].into();
    let image = super::build(&daemon, &context, &options).await.unwrap();
    assert_eq!(image.os, "linux");
    assert_eq!(image.layers.len(), 1);
    let labels = labels(&dockerd, &image.id);
    assert_eq!(labels["colour"], "blue & \"white\"");
    assert_eq!(labels["made.by"], "a=b c");

    let name = format!("{}/team/app", registry.host());
    daemon.tag(&image.id, &name, "1.4").await.unwrap();
    let tagged = daemon.image(&format!("{name}:1.4")).await.unwrap();
    assert_eq!(tagged.id, image.id);
    let digest = daemon.push(&name, "1.4", None, &Silent).await.unwrap();
    let pushed = wincimg_testkit::repository(
        wincimg_testkit::options(&registry.host()),
        &format!("{name}:1.4"),
    );
    let manifest = pushed.get_manifest("1.4").await.unwrap();
    assert_eq!(manifest.digest.to_string(), digest);
    let again = daemon.push(&name, "1.4", None, &Silent).await.unwrap();
    assert_eq!(again, digest);
}

#[test]
async fn a_bad_step_is_named_with_its_exit_code_and_its_last_lines() {
    let dockerd = Dockerd::start();
    let program = program();
    let daemon = connect(&dockerd.host()).await;
    let text = "FROM scratch\nCOPY p /p\nRUN [\"/p\", \"fine\"]\nRUN [\"/p\", \"fail\"]\n";
    let error = build(&daemon, &context(text, &[("p", &program)]))
        .await
        .unwrap_err();
    let expected = r#"step 4 of 4 failed with exit code 7: RUN ["/p", "fail"]"#;
    assert_eq!(error.to_string(), expected);
    let StepError { output, .. } = error.downcast_ref().unwrap();
    assert_eq!(output.lines.len(), 20);
    assert_eq!(output.lines[19], "line 30");
    // Only the cache remains of the build.
    assert_eq!(dockerd.must(&["ps", "--all", "--quiet"]), "");
}

#[test]
async fn what_a_dockerfile_does_wrong_is_said_in_the_daemons_words() {
    let dockerd = Dockerd::start();
    let daemon = connect(&dockerd.host()).await;
    let unreachable = format!("127.0.0.1:{}/base:1", free_port());
    for (text, expected) in [
        ("FROM scratch\nFLY away\n", "unknown instruction: FLY"),
        ("", "cannot be empty"),
        (
            "FROM scratch\nCOPY gone /\n",
            "step 2 of 2 failed: COPY gone /: COPY failed",
        ),
        ("FROM scratch\n", "No image was generated"),
        (&format!("FROM {unreachable}\n"), "connection refused"),
    ] {
        let error = build(&daemon, &context(text, &[])).await.unwrap_err();
        let printed = chain(error.as_ref());
        assert!(printed.contains(expected), "{text:?}: {printed}");
    }
}

#[test]
async fn an_unknown_base_fails_the_step_that_wants_it() {
    let dockerd = Dockerd::start();
    let registry = DockerRegistry::start(Setup::default());
    let daemon = connect(&dockerd.host()).await;
    let text = format!("FROM {}/windows/nanoserver:1\n", registry.host());
    let error = build(&daemon, &context(&text, &[])).await.unwrap_err();
    let printed = chain(error.as_ref());
    assert!(printed.starts_with("step 1 of 1 failed: FROM"), "{printed}");
    assert!(printed.contains("not found"), "{printed}");
}

#[test]
async fn a_push_of_an_unknown_tag_or_to_a_closed_port_is_refused() {
    let dockerd = Dockerd::start();
    let registry = DockerRegistry::start(Setup::default());
    let daemon = connect(&dockerd.host()).await;
    let image = build(&daemon, &context("FROM scratch\nLABEL a=b\n", &[]))
        .await
        .unwrap();
    let name = format!("{}/app", registry.host());
    daemon.tag(&image.id, &name, "1").await.unwrap();
    let error = daemon.push(&name, "2", None, &Silent).await.unwrap_err();
    let printed = error.to_string();
    assert!(
        printed.contains("tag does not exist") || printed.contains("with the tag"),
        "{printed}"
    );

    // A port without a listener; a released one may be used by another test already.
    let unreachable = "127.0.0.1:1/app";
    daemon.tag(&image.id, unreachable, "1").await.unwrap();
    let error = daemon
        .push(unreachable, "1", None, &Silent)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("connection refused"), "{error}");
    // The daemon accepts the beginning of an id too, so a shorter one might match.
    let unknown = format!("sha256:{}", "0".repeat(64));
    let error = daemon.tag(&unknown, &name, "3").await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert!(
        daemon
            .image("nobody/here:1")
            .await
            .unwrap_err()
            .is_not_found()
    );
}

/// Waits until a step's container runs.
async fn until_a_container_runs(dockerd: &Dockerd) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while dockerd.run(&["ps", "--quiet"]).1.is_empty() {
        assert!(Instant::now() < deadline, "no step's container came up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

const WAITING: &str = "FROM scratch\nCOPY p /p\nRUN [\"/p\", \"wait\"]\n";

#[test(multi_thread = 2)]
async fn a_dropped_build_ends_in_the_daemon() {
    let dockerd = Dockerd::start();
    let program = program();
    let daemon = connect(&dockerd.host()).await;
    let work =
        tokio::spawn(async move { build(&daemon, &context(WAITING, &[("p", &program)])).await });
    until_a_container_runs(&dockerd).await;
    work.abort();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !dockerd.must(&["ps", "--all", "--quiet"]).is_empty() {
        assert!(Instant::now() < deadline, "a container is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test(multi_thread = 2)]
async fn a_daemon_that_dies_in_a_build_is_reported_with_the_step() {
    let mut dockerd = Dockerd::start();
    let program = program();
    let daemon = connect(&dockerd.host()).await;
    let work =
        tokio::spawn(async move { build(&daemon, &context(WAITING, &[("p", &program)])).await });
    until_a_container_runs(&dockerd).await;
    dockerd.kill();
    let error = work.await.unwrap().unwrap_err();
    let expected = "the build was interrupted at step 3 of 3";
    assert_eq!(error.to_string(), expected);
}
