//! `wincimg demo`: the main job from end to end, on any machine, offline.
//!
//! It types real commands and runs them; only the registry and the base images are stand-ins.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use clap::{Args, Parser};

use super::failure::Failure;
use super::output::write_result;
use super::session::Session;
use super::{Answer, Cli};
use crate::demo::{DemoRegistry, add_base_images};
use crate::windows::version::WindowsVersion;

/// Show build, push, inspect and check-compat on a registry inside this process
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  wincimg demo")]
pub(super) struct Demo {}

/// The node list, as it is called in the commands that are shown; it lies in a temporary folder.
const NODES: &str = "nodes.json";

/// The Windows versions of the cluster that the demonstration is about.
const OLD: WindowsVersion = WindowsVersion::new(17763, 973);
const NEW: WindowsVersion = WindowsVersion::new(20348, 2402);

impl Demo {
    pub(super) fn run(session: &Session) -> Result<Answer, Failure> {
        let started = Instant::now();
        let registry = DemoRegistry::start().context("cannot start the registry")?;
        registry.with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &[OLD, NEW]))?;
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let nodes = folder.path().join(NODES);
        std::fs::write(&nodes, node_list()).context("cannot write the node list")?;
        let stage = Stage {
            session,
            host: registry.host(),
            folder: folder.path(),
        };
        stage.play()?;
        let requests = registry.with(|stored| stored.requests().len());
        say(&format!(
            "\nThat took {} ms and {requests} requests, without Windows, Docker or the internet.\n\
             With a cluster of your own, start here:\n\n  \
             kubectl get nodes -o json > nodes.json\n  \
             wincimg build pause --nodes nodes.json --registry HOST:PORT --push\n",
            started.elapsed().as_millis()
        ))?;
        Ok(Answer::Yes)
    }
}

struct Stage<'a> {
    session: &'a Session,
    host: String,
    folder: &'a Path,
}

impl Stage<'_> {
    fn play(&self) -> Result<(), Failure> {
        let host = &self.host;
        say(&format!(
            "A cluster has one node with Windows {OLD} and one with {NEW}. A registry listens on\n\
             {host}, and mirrors base images under mcr/. Nodes start only images that match them.\n"
        ))?;
        self.step(
            "Which base image is right for the old node?",
            &format!(
                "base resolve nanoserver --host-build {OLD} --base-registry {host}/mcr \
                 --insecure-registry {host}"
            ),
        )?;
        self.step(
            "Build the pause image for every node and push it, with an index over both:",
            &format!(
                "build pause --nodes {NODES} --base-registry {host}/mcr --registry {host} --push \
                 --insecure-registry {host}"
            ),
        )?;
        self.step(
            "What is in it? The registry changes were written here, without Windows:",
            &format!("inspect {host}/pause:10.0.{OLD} --registry --insecure-registry {host}"),
        )?;
        self.step(
            "Once more: the same inputs make the same bytes, so nothing is sent.",
            &format!(
                "build pause --nodes {NODES} --base-registry {host}/mcr --registry {host} --push \
                 --insecure-registry {host}"
            ),
        )?;
        self.step(
            "Will an image of the old build start on all nodes? The answer is no, with exit code 1:",
            &format!("check-compat --nodes {NODES} --image-build {OLD}"),
        )
    }

    /// Says what comes, types the command, and runs it as `main` would.
    fn step(&self, what: &str, command: &str) -> Result<(), Failure> {
        say(&format!("\n{what}\n\n$ wincimg {command}"))?;
        let nodes = self.folder.join(NODES);
        let arguments = std::iter::once("wincimg").chain(command.split_whitespace());
        let arguments = arguments.map(|word| match word {
            NODES => nodes.as_os_str(),
            word => OsStr::new(word),
        });
        let cli = Cli::try_parse_from(arguments)?;
        cli.command.run(self.session)?;
        Ok(())
    }
}

fn say(text: &str) -> Result<(), Failure> {
    write_result(None, |out| writeln!(out, "{text}"))
}

/// What `kubectl get nodes -o json` would print of this cluster.
fn node_list() -> String {
    let node = |name: &str, version: WindowsVersion, product: &str| {
        serde_json::json!({
            "kind": "Node",
            "metadata": { "name": name, "labels": { "kubernetes.io/os": "windows" } },
            "status": { "nodeInfo": {
                "operatingSystem": "windows",
                "kernelVersion": version.os_version(),
                "osImage": product,
            } },
        })
    };
    serde_json::json!({
        "kind": "List",
        "items": [
            node("win-2019", OLD, "Windows Server 2019 Datacenter"),
            node("win-2022", NEW, "Windows Server 2022 Datacenter"),
        ],
    })
    .to_string()
}
