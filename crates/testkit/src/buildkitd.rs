//! A private `BuildKit` daemon. Debian has no package of it: it is used where it is installed.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::image_locations::path;
use super::programs::{in_path, start_logged};

/// A daemon that runs until it is dropped.
pub struct Buildkitd {
    process: Child,
    folder: TempDir,
    client: PathBuf,
}

impl Buildkitd {
    /// Starts a daemon that allows plain HTTP for a registry, if it is installed.
    pub fn find(registry: &str) -> Option<Self> {
        let [daemon, client, _] = ["buildkitd", "buildctl", "runc"].map(in_path);
        let (daemon, client) = daemon.zip(client)?;
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| path(&folder, name);
        let config = format!("[registry.\"{registry}\"]\nhttp = true\n");
        std::fs::write(inside("buildkitd.toml"), config).unwrap();
        let mut command = Command::new(daemon);
        command
            .args(["--config", &inside("buildkitd.toml")])
            .args(["--root", &inside("root")])
            .args(["--addr", &format!("unix://{}", inside("socket"))])
            .args(["--otel-socket-path", &inside("traces")])
            .args(["--oci-worker=true", "--containerd-worker=false"])
            .args(["--oci-worker-snapshotter=native"]);
        let daemon = Self {
            process: start_logged(&mut command, folder.path()),
            folder,
            client,
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut workers = daemon.client();
        workers.args(["debug", "workers"]);
        while !workers.output().unwrap().status.success() {
            let log = std::fs::read_to_string(path(&daemon.folder, "log")).unwrap();
            assert!(Instant::now() < deadline, "BuildKit does not answer: {log}");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(daemon)
    }

    pub fn client(&self) -> Command {
        let mut command = Command::new(&self.client);
        command.arg(format!("--addr=unix://{}", path(&self.folder, "socket")));
        command
    }
}

impl Drop for Buildkitd {
    fn drop(&mut self) {
        let pid = self.process.id().to_string();
        drop(Command::new("kill").arg(&pid).status());
        drop(self.process.wait());
    }
}
