//! `wincimg demo`: runs the main commands from end to end, on any machine, offline.
//!
//! It runs real commands, each as a process of its own; only the registry and the base images are
//! stand-ins.

use std::process::{Command, Output, Stdio};
use std::time::Instant;

use wincimg_demo::{DemoRegistry, add_base_images};

use crate::cli::prelude::*;

/// Run the main commands against an in-process registry, offline
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg demo\n  \
    wincimg demo --format json")]
pub(super) struct Demo {
    /// Output format: each command with its output, or with its JSON
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

/// Name of the node list in the displayed commands.
const NODES: &str = "nodes.json";

/// Windows versions of the demonstration's cluster.
const OLD: WindowsVersion = WindowsVersion::new(17763, 973);
const NEW: WindowsVersion = WindowsVersion::new(20348, 2402);

struct DemoStep {
    what: &'static str,
    command: String,
    answer: CommandOutcome,
}

impl Demo {
    pub(super) fn run(self) -> Result<CommandOutcome> {
        let started = Instant::now();
        let registry = DemoRegistry::start().context("cannot start the registry")?;
        registry.with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &[OLD, NEW]))?;
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        let nodes = folder.path().join(NODES);
        fs::write(&nodes, node_list()).context("cannot write the node list")?;
        let stage = Stage {
            program: std::env::current_exe().context("cannot find this program's own file")?,
            folder: folder.path(),
        };
        let host = registry.host();
        let steps = steps(&host);
        let requests = || registry.with(|stored| stored.requests().len());
        match self.format {
            OutputFormat::Text => {
                print(&format!(
                    "A cluster has one node with Windows {OLD} and one with {NEW}. A registry listens on\n\
                     {host}, and mirrors base images under mcr/. Nodes start only images that match them.\n"
                ))?;
                for step in &steps {
                    stage.show(step)?;
                }
                print(&format!(
                    "\nThat took {} ms and {} requests, without Windows, Docker or the internet.\n\
                     With a cluster of your own, start here:\n\n  \
                     kubectl get nodes -o json > nodes.json\n  \
                     wincimg build pause --nodes nodes.json --registry HOST:PORT --push\n",
                    started.elapsed().as_millis(),
                    requests()
                ))?;
            }
            OutputFormat::Json => {
                let outcomes = steps.iter().map(|step| stage.ask(step));
                let document = json!({
                    "steps": outcomes.collect::<Result<Vec<_>, _>>()?,
                    "requests": requests(),
                    "milliseconds": started.elapsed().as_millis(),
                });
                write_result(None, |out| write_json(&document, out))?;
            }
        }
        Ok(CommandOutcome::Yes)
    }
}

fn steps(host: &str) -> [DemoStep; 6] {
    let step = |what, command| DemoStep {
        what,
        command,
        answer: CommandOutcome::Yes,
    };
    let build = format!(
        "build pause --nodes {NODES} --base-registry {host}/mcr --registry {host} --push \
         --insecure-registry {host}"
    );
    [
        step(
            "Which base image is right for the old node?",
            format!(
                "image base resolve nanoserver --host-build {OLD} --base-registry {host}/mcr \
                 --insecure-registry {host}"
            ),
        ),
        step(
            "Build the pause image for every node and push it, with an index over both:",
            build.clone(),
        ),
        step(
            "What is in it? The registry changes were written here, without Windows:",
            format!("image inspect {host}/pause:10.0.{OLD} --registry --insecure-registry {host}"),
        ),
        step(
            "Once more: the same inputs make the same bytes, so nothing is sent.",
            build,
        ),
        step(
            "Before a rollout: does it start on every node? The index has an image for each.",
            format!("check-compat --nodes {NODES} {host}/pause --insecure-registry {host}"),
        ),
        DemoStep {
            answer: CommandOutcome::No,
            ..step(
                "And the old node's image alone? The answer is no, with exit code 1, and what to do:",
                format!(
                    "check-compat --nodes {NODES} {host}/pause:10.0.{OLD} --insecure-registry {host}"
                ),
            )
        },
    ]
}

/// Temporary working folder of the commands, so that no `wincimg.toml` applies.
struct Stage<'a> {
    program: PathBuf,
    folder: &'a Path,
}

impl Stage<'_> {
    /// Prints the step, the command, and its output.
    fn show(&self, step: &DemoStep) -> Result<()> {
        print(&format!("\n{}\n\n$ wincimg {}", step.what, step.command))?;
        self.run(step, &[], Stdio::inherit()).map(drop)
    }

    /// Runs the command with JSON output.
    fn ask(&self, step: &DemoStep) -> Result<Value> {
        let output = self.run(step, &["--format", "json"], Stdio::piped())?;
        let result: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("wincimg {} printed no JSON", step.command))?;
        Ok(json!({
            "what": step.what,
            "command": format!("wincimg {}", step.command),
            "exit_code": output.status.code().unwrap_or_default(),
            "result": result,
        }))
    }

    fn run(&self, step: &DemoStep, more: &[&str], stdout: Stdio) -> Result<Output> {
        let output = Command::new(&self.program)
            .args(step.command.split_whitespace())
            .args(more)
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stdout(stdout)
            // Hints about the outside world, such as newer updates, do not belong here.
            .stderr(Stdio::piped())
            .output()
            .context("cannot start this program again")?;
        let expected = i32::from(step.answer.code());
        if output.status.code() == Some(expected) {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::operation(format!(
            "wincimg {} ended with {}: expected exit code {expected}\n{said}",
            step.command, output.status
        )))
    }
}

fn print(text: &str) -> Result<()> {
    write_result(None, |out| writeln!(out, "{text}"))
}

/// Output of `kubectl get nodes -o json` for this cluster.
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
