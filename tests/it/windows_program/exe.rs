//! `wincimg.exe`, built once for all tests and run under wine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::{env, fs};

use wincimg_testkit::component;
use wincimg_testkit::harness::skip;
use wincimg_testkit::wine::{Wine, succeed, windows_path};

/// The target that `tests/run` installs.
const TARGET: &str = "x86_64-pc-windows-gnu";

/// A Windows with `C:\wincimg.exe`.
pub(super) struct Exe {
    pub(super) wine: Wine,
}

impl Exe {
    /// What all tests that run at this time share.
    pub(super) fn find() -> Arc<Self> {
        static SHARED: Mutex<Weak<Exe>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(exe) = shared.upgrade() {
            return exe;
        }
        let exe = Arc::new(Self::set_up());
        *shared = Arc::downgrade(&exe);
        exe
    }

    fn set_up() -> Self {
        let program = built();
        let wine = Wine::start();
        let library = "windows/system32/bcryptprimitives.dll";
        wine.compile("tests/programs/prng.c", library, &["-shared"])
            .unwrap();
        let on_drive = wine.drive().join("wincimg.exe");
        fs::hard_link(&program, &on_drive)
            .or_else(|_| fs::copy(&program, &on_drive).map(drop))
            .unwrap();
        Self { wine }
    }

    /// `wincimg` with arguments, in a folder of this machine, with nothing of the user's.
    pub(super) fn command(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = self.wine.command(r"C:\wincimg.exe");
        command.args(arguments).current_dir(folder);
        for variable in [
            "CI",
            "DOCKER_CERT_PATH",
            "DOCKER_CONFIG",
            "DOCKER_CONTEXT",
            "DOCKER_HOST",
            "DOCKER_TLS_VERIFY",
            "KUBECONFIG",
            "NO_COLOR",
            "REGISTRY_AUTH_FILE",
            "SOURCE_DATE_EPOCH",
            "SSL_CERT_FILE",
            "WINCIMG_CONFIG",
        ] {
            command.env_remove(variable);
        }
        command
    }

    /// The folder of the user in this Windows.
    pub(super) fn profile(&self) -> PathBuf {
        let line = ["/c", "echo %USERPROFILE%"];
        let said = succeed(self.wine.command("cmd").args(line)).unwrap();
        let below = said.trim().strip_prefix(r"C:\").unwrap().replace('\\', "/");
        self.wine.drive().join(below)
    }
}

/// The executable in the folder where this program was built.
pub(super) fn built() -> PathBuf {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(build).clone().unwrap()
}

fn build() -> Result<PathBuf, String> {
    component("x86_64-w64-mingw32-gcc");
    let here = env!("CARGO_MANIFEST_DIR");
    let root = succeed(
        Command::new("rustc")
            .args(["--print", "sysroot"])
            .current_dir(here),
    )?;
    if !Path::new(root.trim())
        .join("lib/rustlib")
        .join(TARGET)
        .is_dir()
    {
        skip(&format!("Rust's {TARGET} (rustup target add {TARGET})"));
    }
    let linux = assert_cmd::cargo::cargo_bin!("wincimg");
    let folder = linux.parent().and_then(Path::parent).unwrap();
    let words = ["build", "--quiet", "--locked", "--bin", "wincimg"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(words)
        .args(["--target", TARGET])
        .arg("--target-dir")
        .arg(folder)
        .current_dir(here);
    // What cargo tells a test of its package it did not tell whoever built the executable before it, and
    // ring, with all that needs it, is built anew where that changes.
    for (name, _) in env::vars() {
        let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name == "OUT_DIR" || prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            cargo.env_remove(name);
        }
    }
    succeed(&mut cargo)?;
    Ok(folder.join(TARGET).join("debug/wincimg.exe"))
}

/// A folder of this machine as Windows programs see it, below another name.
pub(super) fn below(folder: &Path, name: &str) -> String {
    format!(r"{}\{name}", windows_path(folder))
}
