//! Suggestions for missing files.

use std::path::{Path, PathBuf};

use super::or_here;
use crate::diagnose::closest_match;

/// Maximum number of names that are compared.
const MOST_NAMES: usize = 1000;

/// Returns the most similar file or folder in the folder of a missing one.
pub fn similar_path(missing: &Path) -> Option<PathBuf> {
    if missing.exists() {
        return None;
    }
    let name = missing.file_name()?.to_str()?;
    let folder = missing.parent().unwrap_or(Path::new(""));
    let entries = std::fs::read_dir(or_here(folder))
        .ok()?
        .take(MOST_NAMES)
        .flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names: Vec<String> = names.collect();
    let meant = closest_match(name, names.iter().map(String::as_str))?;
    Some(folder.join(meant))
}
