//! `wincimg.exe`, built once for all tests and run under wine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::{env, fs};

use wincimg_testkit::component;
use wincimg_testkit::harness::{only_on_request, skip};
use wincimg_testkit::wine::{Wine, succeed, windows_path};

/// The target installed by `tests/run`.
const TARGET: &str = "x86_64-pc-windows-gnu";

/// A wine prefix with `C:\wincimg.exe`.
pub(super) struct Exe {
    pub(super) wine: Wine,
}

impl Exe {
    /// Shared by all tests that run at the same time.
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

    /// `wincimg` with arguments, in a local folder, without the user's settings.
    pub(super) fn command(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = self.wine.command(r"C:\wincimg.exe");
        command.args(arguments).current_dir(folder);
        for variable in [
            "CI", "DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_HOST",
            "DOCKER_TLS_VERIFY", "KUBECONFIG", "NO_COLOR", "REGISTRY_AUTH_FILE",
            "SOURCE_DATE_EPOCH", "SSL_CERT_FILE", "WINCIMG_CONFIG",
        ] {
            command.env_remove(variable);
        }
        command
    }

    /// The user's folder in this prefix.
    pub(super) fn profile(&self) -> PathBuf {
        let line = ["/c", "echo %USERPROFILE%"];
        let printed = succeed(self.wine.command("cmd").args(line)).unwrap();
        let below = printed
            .trim()
            .strip_prefix(r"C:\")
            .unwrap()
            .replace('\\', "/");
        self.wine.drive().join(below)
    }
}

/// The executable in the build folder of this program.
pub(super) fn built() -> PathBuf {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    only_on_request("WINCIMG_WINDOWS_PROGRAM", "the Windows program");
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
    // Cargo sets these variables for a test. The executable was built without them, and a change
    // would rebuild ring and its dependents.
    for (name, _) in env::vars() {
        let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name == "OUT_DIR" || prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            cargo.env_remove(name);
        }
    }
    succeed(&mut cargo)?;
    Ok(folder.join(TARGET).join("debug/wincimg.exe"))
}

/// A local folder as seen by Windows programs, below another name.
pub(super) fn below(folder: &Path, name: &str) -> String {
    format!(r"{}\{name}", windows_path(folder))
}
