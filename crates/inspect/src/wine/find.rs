//! Which wine there is on this machine.

use std::env;
use std::path::{Path, PathBuf};

use wincimg_common::diagnose::Problem;

/// Where Debian has it, which puts only a script on the PATH.
const DEBIAN: &str = "/usr/lib/wine";

/// A wine of this machine.
#[derive(Debug, Clone)]
pub struct WineInstallation {
    /// What starts Windows programs.
    pub(super) loader: PathBuf,
    /// What serves them all, and can end them.
    pub(super) server: PathBuf,
}

impl WineInstallation {
    /// The one that wine's own variables `WINELOADER` and `WINESERVER` name, or the machine's.
    pub fn find() -> Result<Self, Problem> {
        let loader = match named("WINELOADER") {
            Some(file) if file.is_file() => file,
            Some(file) => return Err(not_there(&file)),
            None => search(&["wine64", "wine"], None).ok_or_else(missing)?,
        };
        let beside = loader.parent();
        let server = match named("WINESERVER") {
            Some(file) if file.is_file() => file,
            Some(file) => return Err(not_there(&file)),
            None => search(&["wineserver64", "wineserver"], beside).ok_or_else(missing)?,
        };
        Ok(Self { loader, server })
    }
}

/// It is not installed.
fn missing() -> Problem {
    let problem = "wine is not installed, which runs Windows programs here";
    Problem::new("wine/missing", problem).hint("apt-get install wine64")
}

/// Something else than what was named is there.
fn not_there(file: &Path) -> Problem {
    let problem = format!("there is no wine at {}", file.display());
    Problem::new("wine/missing", problem)
        .hint("unset WINELOADER and WINESERVER, or set them to wine's files")
}

fn named(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// The first of these programs in a folder, Debian's, or the PATH.
fn search(names: &[&str], first: Option<&Path>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = first
        .map(Path::to_owned)
        .into_iter()
        .chain([PathBuf::from(DEBIAN)])
        .chain(env::split_paths(&path).filter(|folder| folder.is_absolute()))
        .collect();
    let files = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.into_iter().find(|file| file.is_file())
}
