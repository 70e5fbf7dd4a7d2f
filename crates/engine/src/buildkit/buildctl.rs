//! `BuildKit`'s client as a child process.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use wincimg_common::diagnose::{Blame, BoxError, Problem};
use wincimg_common::files::{self, TemporaryFolder};
use wincimg_common::process_group::ProcessGroup;
use wincimg_common::progress::Progress;
use wincimg_oci::remote::DaemonCredential;

use super::address::BuildkitAddress;
use super::status::BuildStatus;
use crate::docker::{Environment, advice, one_line};

const PROGRAM: &str = "buildctl";
/// Prefix of the folders with the files of a build.
const FOLDER: &str = "wincimg-buildkit-";
/// Maximum length of a line of its output.
const MAX_LINE: u64 = 16 << 20;
/// Maximum length of its documents.
const MAX_DOCUMENT: u64 = 4 << 20;
/// Number of lines that wait to be read.
const LINES: usize = 64;
/// Interval of checks whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The client for a daemon.
pub(crate) struct Buildctl {
    pub(crate) address: BuildkitAddress,
    /// Flags with the TLS files.
    tls: Vec<(&'static str, PathBuf)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DaemonWorker {
    platforms: Option<Vec<WorkerPlatform>>,
    pub(crate) buildkit_version: Option<DaemonVersion>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WorkerPlatform {
    pub(crate) os: String,
    /// That of its host.
    #[serde(rename = "os.version")]
    pub(crate) os_version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DaemonVersion {
    pub(crate) version: String,
}

impl DaemonWorker {
    /// The platforms whose containers it runs.
    pub(crate) fn all_platforms(&self) -> impl Iterator<Item = &WorkerPlatform> {
        self.platforms.iter().flatten()
    }
}

/// An image for a daemon to build and push.
pub(crate) struct BuildctlBuild<'a> {
    /// The Dockerfile, which needs no files.
    pub(crate) dockerfile: &'a str,
    /// Numbers of its instructions that make a layer.
    pub(crate) layers: &'a [usize],
    /// Number of its instructions.
    pub(crate) count: usize,
    /// The result's name with its tag.
    pub(crate) name: &'a str,
    /// Build arguments, which anybody on this machine can read.
    pub(crate) arguments: &'a [(String, String)],
    pub(crate) credentials: &'a [DaemonCredential],
    /// Runs steps that the daemon has in its cache.
    pub(crate) no_cache: bool,
}

impl Buildctl {
    /// The client for a daemon, with the TLS files of Docker's variables.
    pub(crate) fn new(address: BuildkitAddress) -> Self {
        let tls = address.tls(&Environment::from_env());
        Self { address, tls }
    }

    /// Returns true if other machines can read the connection.
    pub(crate) fn is_readable(&self) -> bool {
        self.address.is_readable(!self.tls.is_empty())
    }

    /// The workers of the daemon, which thereby answers.
    pub(crate) async fn workers(&self) -> Result<Vec<DaemonWorker>, BoxError> {
        let mut command = self.command();
        command.args(["debug", "workers", "--format", "{{json .}}"]);
        let mut process = BuildctlProcess::start(&mut command)?;
        let mut last = String::new();
        while let Some(line) = process.lines.recv().await {
            let line = one_line(&String::from_utf8_lossy(&line));
            last = Some(line).filter(|line| !line.is_empty()).unwrap_or(last);
        }
        let (status, printed) = process.end().await?;
        if !status.success() {
            let message = last.strip_prefix("error: ").unwrap_or(&last);
            let problem = format!("cannot connect to BuildKit at {}: {message}", self.address);
            return Err(Problem::new("daemon/unreachable", problem)
                .hint(
                    "start buildkitd there with a TCP address; for TLS, set DOCKER_TLS_VERIFY=1 and \
                     DOCKER_CERT_PATH here",
                )
                .into());
        }
        let unexpected = |error| {
            let problem = format!("unexpected answer from BuildKit at {}", self.address);
            Problem::new("daemon/answer", problem).source(error)
        };
        Ok(serde_json::from_slice(&printed).map_err(unexpected)?)
    }

    /// Builds and pushes an image, and returns its digest. Dropping the future ends `buildctl`, and
    /// thereby the build, and removes the credentials.
    pub(crate) async fn build(
        &self,
        build: &BuildctlBuild<'_>,
        progress: &dyn Progress,
    ) -> Result<String, BoxError> {
        let folder = BuildFolder::new(build)?;
        let mut status = BuildStatus::new(progress, build.layers, build.count);
        let mut process = BuildctlProcess::start(&mut self.build_command(build, &folder))?;
        while let Some(line) = process.lines.recv().await {
            status.read(&line);
        }
        let (ended, _) = process.end().await?;
        if !ended.success() {
            return Err(match status.into_failure() {
                Ok(step) => step.into(),
                Err(message) => self.refused(&message, build.name).into(),
            });
        }
        Ok(folder.digest()?)
    }

    /// Error for a build that failed for another reason than a step, such as a registry.
    fn refused(&self, message: &str, name: &str) -> Problem {
        let problem = format!("BuildKit at {} failed: {message}", self.address);
        Problem::new("daemon/refused", problem).hint_if(refused_hint(message, name))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        // As one word: an address must not be read as a flag.
        command.arg(format!("--addr={}", self.address.for_buildctl()));
        for (flag, file) in &self.tls {
            command.arg(flag).arg(file);
        }
        command
    }

    fn build_command(&self, build: &BuildctlBuild<'_>, folder: &BuildFolder) -> Command {
        let mut command = self.command();
        command.args(["build", "--progress=rawjson", "--frontend=dockerfile.v0"]);
        for name in ["context", "dockerfile"] {
            let mut local = OsString::from(format!("--local={name}="));
            local.push(folder.context());
            command.arg(local);
        }
        // No platform: the image has that of its base, with the version of Windows.
        for (name, value) in build.arguments {
            command.arg(format!("--opt=build-arg:{name}={value}"));
        }
        if build.no_cache {
            command.arg("--no-cache");
        }
        let name = build.name;
        command
            .arg(format!(
                "--output=type=image,name={name},push=true,store=false"
            ))
            .arg("--metadata-file")
            .arg(folder.metadata())
            .env("DOCKER_CONFIG", folder.docker_config());
        command
    }
}

/// The files of a build, removed when it is dropped, or by the next build if this one is killed.
struct BuildFolder(TemporaryFolder);

impl BuildFolder {
    fn new(build: &BuildctlBuild<'_>) -> Result<Self, Problem> {
        let unwritten =
            |error| Problem::new("file/io", "cannot write the files of a build").source(error);
        let folder = Self(TemporaryFolder::new(FOLDER).map_err(unwritten)?);
        folder.fill(build).map_err(unwritten)?;
        Ok(folder)
    }

    fn fill(&self, build: &BuildctlBuild<'_>) -> io::Result<()> {
        // Credentials are not in the folder that the daemon may read.
        std::fs::create_dir(self.context())?;
        std::fs::write(self.context().join("Dockerfile"), build.dockerfile)?;
        std::fs::create_dir(self.docker_config())?;
        let auths = build.credentials.iter();
        let auths = auths.map(|it| (it.server.clone(), it.expose_secret().clone()));
        let auths: serde_json::Map<String, Value> = auths.collect();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(self.docker_config().join("config.json"))?;
        file.write_all(json!({ "auths": auths }).to_string().as_bytes())
    }

    fn context(&self) -> PathBuf {
        self.0.path().join("context")
    }

    fn docker_config(&self) -> PathBuf {
        self.0.path().join("docker")
    }

    fn metadata(&self) -> PathBuf {
        self.0.path().join("metadata.json")
    }

    /// The digest of the pushed image.
    fn digest(&self) -> Result<String, Problem> {
        let unexpected = |problem: &str| {
            let problem = format!("unexpected answer from {PROGRAM}: {problem}");
            Problem::new("daemon/answer", problem)
        };
        let bytes = files::read(&self.metadata(), MAX_DOCUMENT)
            .map_err(|error| unexpected("no metadata").source(error))?;
        let metadata: Value = serde_json::from_slice(&bytes)
            .map_err(|error| unexpected("its metadata").source(error))?;
        let digest = metadata["containerimage.digest"].as_str();
        Ok(digest.ok_or_else(|| unexpected("no digest"))?.to_owned())
    }
}

/// A running `buildctl`, which is ended when it is dropped.
struct BuildctlProcess {
    group: ProcessGroup,
    lines: mpsc::Receiver<Vec<u8>>,
    output: oneshot::Receiver<io::Result<Vec<u8>>>,
}

impl BuildctlProcess {
    fn start(command: &mut Command) -> Result<Self, Problem> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = ProcessGroup::spawn(command).map_err(not_started)?;
        let program = group.program();
        let (errors, printed) = (program.stderr.take(), program.stdout.take());
        let (sender, lines) = mpsc::channel(LINES);
        let (whole, output) = oneshot::channel();
        // Threads of their own, which end with the pipes.
        thread::spawn(move || errors.map(|pipe| send_lines(pipe, &sender)));
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = printed.map(|pipe| pipe.take(MAX_DOCUMENT).read_to_end(&mut bytes));
            whole.send(read.unwrap_or(Ok(0)).map(|_| bytes))
        });
        Ok(Self {
            group,
            lines,
            output,
        })
    }

    /// Waits for its end, and returns what it printed.
    async fn end(mut self) -> Result<(ExitStatus, Vec<u8>), Problem> {
        let lost = |error: io::Error| {
            Problem::new("daemon/answer", format!("lost {PROGRAM}")).source(error)
        };
        let status = loop {
            if let Some(status) = self.group.program().try_wait().map_err(lost)? {
                break status;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        // What it started may hold its pipes.
        drop(self.group);
        let output = self
            .output
            .await
            .map_err(|error| lost(io::Error::other(error)))?;
        Ok((status, output.map_err(lost)?))
    }
}

fn not_started(error: io::Error) -> Problem {
    let problem = format!("cannot run {PROGRAM}, which connects to BuildKit");
    let hint = match error.kind() {
        io::ErrorKind::NotFound => {
            "put buildctl on the PATH: it is in each release of BuildKit, for Linux and Windows"
        }
        _ => "check the program buildctl on the PATH",
    };
    Problem::new("daemon/unreachable", problem)
        .source(error)
        .blame(Blame::Request)
        .hint(hint)
}

/// The next step after a failure, if it is known.
fn refused_hint(message: &str, name: &str) -> Option<String> {
    let registry = name.split('/').next().unwrap_or_default();
    let setting = if message.contains("HTTP response to HTTPS client") {
        "http = true"
    } else if message.contains("x509: ") {
        r#"ca = ["FILE"], or insecure = true,"#
    } else {
        // Advice about Docker's own files and service does not apply.
        return advice(message, Some(name)).filter(|hint| !hint.to_lowercase().contains("docker"));
    };
    Some(format!(
        "on the daemon's machine set {setting} below [registry.\"{registry}\"] in buildkitd.toml, on \
         Windows in C:\\ProgramData\\buildkitd, and restart buildkitd"
    ))
}

fn send_lines(source: impl Read, lines: &mpsc::Sender<Vec<u8>>) {
    let mut source = BufReader::new(source);
    loop {
        let mut line = Vec::new();
        match source.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(length) if length > 0 && lines.blocking_send(line).is_ok() => {}
            _ => return,
        }
    }
}
