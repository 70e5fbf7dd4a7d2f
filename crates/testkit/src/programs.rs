//! The programs that tests need, and Debian's packages that have them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What `tests/run` installs from: a program and its packages a line.
const NEEDS: &str = include_str!("../../../tests/needs");

/// The path of a program that a test needs. Where it is missing, the test is skipped with a
/// printed reason, or fails if `WINCIMG_REQUIRE_ALL=1`.
pub fn component(name: &str) -> Option<PathBuf> {
    find(name).map_err(|missing| skip(&missing)).ok()
}

/// The path of a program in `tests/needs`, or what to install for it.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let (program, packages) = NEEDS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(char::is_whitespace))
        .find(|(program, _)| Path::new(program).ends_with(name))
        .unwrap_or_else(|| panic!("{name} is not in tests/needs"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")])
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            format!(
                "{program} is missing; on Debian: apt-get install {}",
                packages.trim()
            )
        })
}

/// Says why a test is skipped; panics if `WINCIMG_REQUIRE_ALL=1`.
pub fn skip(reason: &str) {
    assert!(!everything_is_required(), "{reason}");
    eprintln!("skipped: {reason}");
}

/// Whether nothing may be skipped.
pub fn everything_is_required() -> bool {
    std::env::var_os("WINCIMG_REQUIRE_ALL").is_some_and(|value| value == "1")
}

/// A Python that has regipy.
pub fn python_with_regipy() -> Option<PathBuf> {
    python_with("import regipy")
}

/// A Python that takes these imports.
pub fn python_with(imports: &str) -> Option<PathBuf> {
    let here = Path::new(crate::ROOT);
    [
        std::env::var_os("WINCIMG_PYTHON").map(PathBuf::from),
        Some(here.join("target/venv/bin/python")),
        Some(PathBuf::from("python3")),
    ]
    .into_iter()
    .flatten()
    .find(|python| {
        let import = Command::new(python).args(["-c", imports]).output();
        import.is_ok_and(|output| output.status.success())
    })
}
