//! Programs that tests require, and the Debian packages that contain them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::harness::{skip, skip_always};

/// Packages that `tests/run` installs: a program and its packages on each line.
const NEEDS: &str = include_str!("../../../tests/needs");

/// The path of a program of `tests/needs`. Without it, the test is skipped.
pub fn component(name: &str) -> PathBuf {
    let (program, packages) = NEEDS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(char::is_whitespace))
        .find(|(program, _)| Path::new(program).ends_with(name))
        .unwrap_or_else(|| panic!("{name} is not in tests/needs"));
    in_path(program)
        .unwrap_or_else(|| skip(&format!("{name} (apt-get install {})", packages.trim())))
}

pub(crate) fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")])
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Starts a program that writes its output to the file `log` in a folder.
pub(crate) fn start_logged(command: &mut Command, folder: &Path) -> Child {
    let log = File::create(folder.join("log")).unwrap();
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    command.spawn().unwrap()
}

/// Path of a sample that is not part of the project, so it may be missing.
pub fn place_of_sample(name: &str) -> PathBuf {
    Path::new(crate::ROOT).join("../shared/data").join(name)
}

/// Path of a sample. Without it, the test is skipped.
pub fn sample(name: &str) -> PathBuf {
    let file = place_of_sample(name);
    if !file.is_file() {
        skip_always(&format!("the sample {name}"));
    }
    file
}

pub fn python_with_regipy() -> PathBuf {
    python_with("regipy", &["regipy"])
}

/// Exits with 1 if a module is missing. An import would take seconds.
const FIND: &str = r"
import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))
";

pub fn python_with(what: &str, modules: &[&str]) -> PathBuf {
    let here = Path::new(crate::ROOT);
    [
        std::env::var_os("WINCIMG_PYTHON").map(PathBuf::from),
        Some(here.join("target/venv/bin/python")),
        Some(PathBuf::from("python3")),
    ]
    .into_iter()
    .flatten()
    .find(|python| {
        let found = Command::new(python)
            .args(["-c", FIND])
            .args(modules)
            .output();
        found.is_ok_and(|output| output.status.success())
    })
    .unwrap_or_else(|| skip(&format!("{what} (tests/run installs it)")))
}
