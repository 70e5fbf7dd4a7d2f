//! Wine, for tests that run Windows programs. It needs no display.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use super::component;
use super::harness::skip;

/// A private wine prefix, in a directory that is removed on drop.
pub struct Wine {
    home: tempfile::TempDir,
    loader: PathBuf,
    server: PathBuf,
    compiler: PathBuf,
}

impl Wine {
    /// Creates a prefix.
    pub fn start() -> Self {
        let wine = Self {
            loader: component("wine64"),
            server: component("wineserver64"),
            compiler: component("x86_64-w64-mingw32-gcc"),
            home: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(wine.prefix()).unwrap();
        // Seen once: wineboot exited with 53, the last byte of STATUS_DLL_NOT_FOUND, for an unknown
        // reason.
        let started = wine.start_server().or_else(|_| wine.restart());
        started.unwrap_or_else(|error| skip(&format!("a working wine: {error}")));
        wine
    }

    /// Ends all processes in this prefix and starts it again.
    pub fn restart(&self) -> Result<(), String> {
        self.stop_server();
        self.start_server()
    }

    /// A command for a Windows program: a path or a name on drive C.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(&self.loader);
        let drive = Some(self.drive()).filter(|drive| drive.is_dir());
        command
            .arg(program.as_ref())
            .current_dir(drive.unwrap_or_else(|| self.home.path().into()))
            .env("WINEPREFIX", self.prefix())
            .env("TMPDIR", self.home.path())
            // Without a locale, wine truncates names at the first non-ASCII letter.
            .env("LC_ALL", "C.UTF-8")
            .env("WINEDEBUG", "-all")
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY");
        command
    }

    pub fn drive(&self) -> PathBuf {
        self.prefix().join("drive_c")
    }

    /// Compiles a C source of the repository to a program on drive C.
    pub fn compile(&self, source: &str, program: &str, options: &[&str]) -> Result<(), String> {
        let mut compiler = Command::new(&self.compiler);
        compiler
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-s", "-o"])
            .arg(self.drive().join(program))
            .arg(Path::new(crate::ROOT).join(source))
            .args(options);
        succeed(&mut compiler).map(drop)
    }

    fn prefix(&self) -> PathBuf {
        self.home.path().join("prefix")
    }

    /// Starts the background processes, so that they do not inherit the pipes of another program
    /// that would start them.
    fn start_server(&self) -> Result<(), String> {
        for mut command in [self.server("-p"), self.command("wineboot")] {
            let status = silent_status(&mut command);
            if !status.as_ref().is_ok_and(ExitStatus::success) {
                return Err(format!("{command:?}: {status:?}"));
            }
        }
        Ok(())
    }

    fn stop_server(&self) {
        for argument in ["-k", "-w"] {
            // Without a running server this fails, which is fine.
            let _ = silent_status(&mut self.server(argument));
        }
    }

    /// Debian's server puts its socket in the temporary folder, and leaves that folder behind.
    fn server(&self, argument: &str) -> Command {
        let mut server = Command::new(&self.server);
        server
            .arg(argument)
            .env("WINEPREFIX", self.prefix())
            .env("TMPDIR", self.home.path());
        server
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        self.stop_server();
    }
}

fn silent_status(command: &mut Command) -> std::io::Result<ExitStatus> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
}

/// Path of a local file for Windows programs.
pub fn windows_path(path: &Path) -> String {
    format!("Z:{}", path.to_str().unwrap().replace('/', "\\"))
}

/// Runs a command to its end; an error if it fails.
pub fn succeed(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("{command:?}: {}: {text}{errors}", output.status))
    }
}
