//! Wine, for the tests that run Windows programs, and the probe that they run in it.
//!
//! Needs `wine` (or `/usr/lib/wine/wine64`) and mingw-w64's C compiler; no display.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// A Windows of its own, in a directory that goes when it goes.
pub(crate) struct Wine {
    home: tempfile::TempDir,
    loader: PathBuf,
}

impl Wine {
    /// Sets up a Windows, or says what is missing for it.
    pub(crate) fn set_up() -> Result<Self, String> {
        let loader = ["/usr/lib/wine/wine64", "/usr/bin/wine64", "/usr/bin/wine"]
            .iter()
            .map(PathBuf::from)
            .find(|path| path.exists())
            .ok_or("no wine here; on Debian: apt-get install wine wine64")?;
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let wine = Self { home, loader };
        fs::create_dir(wine.prefix()).map_err(|error| error.to_string())?;
        wine.start_server()?;
        // Windows exist, but are shown nowhere.
        let driver = r"HKCU\Software\Wine\Drivers";
        succeed(
            wine.command("reg")
                .args(["add", driver, "/v", "Graphics", "/d", "null", "/f"]),
        )?;
        wine.stop_server();
        wine.start_server()?;
        wine.build_probe("probe.exe", &["-mconsole"])?;
        wine.build_probe("gui-probe.exe", &["-mwindows"])?;
        Ok(wine)
    }

    /// A Windows program to run: a path or a name of drive C, where the probe lies as `probe.exe`
    /// and, as a windowed program, `gui-probe.exe`.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(&self.loader);
        command
            .arg(program.as_ref())
            .current_dir(if self.drive().is_dir() {
                self.drive()
            } else {
                self.home.path().into()
            })
            .env("WINEPREFIX", self.prefix())
            .env("WINEDEBUG", "-all")
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY");
        command
    }

    /// Drive C.
    pub(crate) fn drive(&self) -> PathBuf {
        self.prefix().join("drive_c")
    }

    /// Puts a file on drive C.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        fs::write(self.drive().join(name), bytes)
    }

    fn prefix(&self) -> PathBuf {
        self.home.path().join("prefix")
    }

    fn build_probe(&self, name: &str, options: &[&str]) -> Result<(), String> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/images/shim/probe/probe.c");
        let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
        compiler
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-s", "-o"])
            .arg(self.drive().join(name))
            .arg(source)
            .args(options);
        succeed(&mut compiler)
            .map(drop)
            .map_err(|error| format!("no mingw-w64? apt-get install gcc-mingw-w64-x86-64: {error}"))
    }

    /// Starts what stays in the background, so that it does not hold on to the pipes of whichever
    /// program would have started it.
    fn start_server(&self) -> Result<(), String> {
        let mut commands = [Command::new("wineserver"), self.command("wineboot")];
        commands[0].arg("-p").env("WINEPREFIX", self.prefix());
        for command in &mut commands {
            let status = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if !status.as_ref().is_ok_and(ExitStatus::success) {
                return Err(format!("{command:?}: {status:?}"));
            }
        }
        Ok(())
    }

    /// Ends everything that runs in this Windows.
    fn stop_server(&self) {
        for argument in ["-k", "-w"] {
            // Where there is none to stop, that is an error, and no matter.
            let _ = Command::new("wineserver")
                .arg(argument)
                .env("WINEPREFIX", self.prefix())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        self.stop_server();
    }
}

/// Runs a command to its end; an error where that is not success.
pub(crate) fn succeed(command: &mut Command) -> Result<String, String> {
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
