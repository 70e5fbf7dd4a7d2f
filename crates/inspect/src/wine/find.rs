//! Finds wine on this machine.

use std::env;
use std::path::{Path, PathBuf};

use wincimg_common::diagnose::Problem;

/// Debian's folder of wine, which is not on the PATH.
const DEBIAN: &str = "/usr/lib/wine";

/// A wine installation.
#[derive(Debug, Clone)]
pub struct WineInstallation {
    /// Program that starts Windows programs.
    pub loader: PathBuf,
    /// wineserver, which serves and ends them.
    pub(super) server: PathBuf,
}

impl WineInstallation {
    /// The installation in `WINELOADER` and `WINESERVER`, or else the machine's.
    pub fn find() -> Result<Self, Problem> {
        let program = |variable, names, folder| match named(variable) {
            Some(file) if file.is_file() => Ok(file),
            Some(file) => Err(not_found(&file)),
            None => search(names, folder).ok_or_else(missing),
        };
        let loader = program("WINELOADER", &["wine64", "wine"], None)?;
        let names = ["wineserver64", "wineserver"];
        let server = program("WINESERVER", &names, loader.parent())?;
        Ok(Self { loader, server })
    }
}

/// Error for a missing installation.
fn missing() -> Problem {
    let problem = "wine is not installed: it is required to run Windows programs";
    Problem::new("wine/missing", problem).hint("apt-get install wine64")
}

/// Error for a variable with a wrong path.
fn not_found(file: &Path) -> Problem {
    let problem = format!("wine not found at {}", file.display());
    Problem::new("wine/missing", problem)
        .hint("unset WINELOADER and WINESERVER, or set them to the files of wine")
}

fn named(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Searches a folder, Debian's folder and the PATH for the first of these programs.
pub(super) fn search(names: &[&str], first: Option<&Path>) -> Option<PathBuf> {
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
