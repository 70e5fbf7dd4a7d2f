//! A private Docker daemon, without network.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::component;
use super::harness::skip;
use super::image_locations::path;
use super::programs::start_logged;

/// A private daemon, without network, that runs until it is dropped.
pub struct Dockerd {
    process: Child,
    folder: TempDir,
    client: PathBuf,
}

#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Its `daemon.json`.
    pub config: Option<String>,
    /// Entries of its private `/etc/hosts`, in addition to the machine's own.
    pub hosts: String,
    pub arguments: Vec<String>,
}

impl Dockerd {
    pub fn start() -> Self {
        Self::start_with(&Setup::default())
    }

    pub fn start_with(setup: &Setup) -> Self {
        let (program, client) = (component("dockerd"), component("docker"));
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| path(&folder, name);
        let config = setup.config.as_deref().unwrap_or("{}");
        fs::write(inside("daemon.json"), config).unwrap();
        let hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
        fs::write(inside("hosts"), format!("{hosts}\n{}\n", setup.hosts)).unwrap();
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c"])
            .arg(r#"mount --bind "$0" /etc/hosts && exec "$@""#)
            .arg(inside("hosts"))
            .arg(program)
            .args(["--config-file", &inside("daemon.json")])
            .args(["--data-root", &inside("data")])
            .args(["--exec-root", &inside("exec")])
            .args(["--pidfile", &inside("pid"), "--host"])
            .arg(format!("unix://{}", inside("socket")))
            .args(&setup.arguments)
            .args(["--bridge=none", "--iptables=false", "--ip6tables=false"])
            .arg("--storage-driver=vfs");
        let mut daemon = Self {
            process: start_logged(&mut command, folder.path()),
            folder,
            client,
        };
        let deadline = Instant::now() + Duration::from_mins(1);
        // A client costs more than a look.
        let socket = daemon.folder.path().join("socket");
        while !(socket.exists() && daemon.run(&["version"]).0) {
            let ended = daemon.process.try_wait().unwrap().is_some();
            if ended || Instant::now() > deadline {
                let log = fs::read_to_string(path(&daemon.folder, "log")).unwrap();
                let last = log.lines().last().unwrap_or_default();
                skip(&format!("a working dockerd, which requires root: {last}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon
    }

    /// Address of its socket.
    pub fn host(&self) -> String {
        format!("unix://{}", path(&self.folder, "socket"))
    }

    /// Asks it to end, with its own containerd.
    pub fn stop(&self) {
        let _ = Command::new("kill")
            .arg(self.process.id().to_string())
            .status();
    }

    /// Kills it, like a power cut.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.kill_containers();
    }

    /// Kills the processes that keep containers running while their daemon is away.
    fn kill_containers(&self) {
        let socket = path(&self.folder, "exec/containerd/containerd.sock");
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let process = entry.path();
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            let words: Vec<_> = line.split(|byte| *byte == 0).collect();
            if !words.contains(&socket.as_bytes()) {
                continue;
            }
            let pid = entry.file_name().into_string().unwrap();
            let children = fs::read_to_string(process.join("task").join(&pid).join("children"));
            let children = children.unwrap_or_default();
            let pids = children.split_whitespace().chain([pid.as_str()]);
            let _ = Command::new("kill").arg("-KILL").args(pids).status();
        }
    }

    /// Runs the client and returns whether it succeeded and its output.
    pub fn run(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(&self.client)
            .arg("--host")
            .arg(self.host())
            .args(arguments)
            .env("HOME", self.folder.path())
            .output()
            .unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&printed).trim().to_owned(),
        )
    }

    /// Runs the client, which must succeed, and returns its output.
    pub fn must(&self, arguments: &[&str]) -> String {
        let (succeeded, printed) = self.run(arguments);
        assert!(succeeded, "docker {arguments:?}: {printed}");
        printed
    }
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        self.stop();
        let deadline = Instant::now() + Duration::from_secs(15);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.kill_containers();
    }
}
