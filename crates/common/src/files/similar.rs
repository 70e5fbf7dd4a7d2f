//! Suggestions for missing files.

use std::path::{Path, PathBuf};

use super::or_here;

/// Maximum number of names that are compared.
const MOST_NAMES: usize = 1000;

/// Hint for a path that does not exist: it is a link, or another one was meant.
pub fn missing_path_hint(path: &Path) -> Option<String> {
    if path.is_symlink() && !path.exists() {
        return Some(format!("{} is a link to a missing file", path.display()));
    }
    similar_path(path).map(|meant| format!("did you mean {}?", meant.display()))
}

/// The same for a file that an argument names; without a similar one, where it is looked for.
pub fn named_path_hint(path: &Path) -> Option<String> {
    let is_searched_here = path.is_relative() && !path.exists();
    let here =
        || is_searched_here.then(|| "its path is relative to the working directory".to_owned());
    missing_path_hint(path).or_else(here)
}

/// Returns the file or folder that was probably meant by a missing one: of nearly the same name, or
/// with an extension. Another word with the same beginning is another file.
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
    let others = names.filter(|other| other != name);
    let near = others.filter_map(|other| Some((distance(name, &other)?, other)));
    let (_, meant) = near.min()?;
    Some(folder.join(meant))
}

/// Number of different letters, if there are few enough for a slip.
fn distance(typed: &str, other: &str) -> Option<usize> {
    let most = match typed.len() {
        0..=2 => 0,
        3..=7 => 1,
        _ => 2,
    };
    let is_longer = other
        .strip_prefix(typed)
        .is_some_and(|end| end.starts_with('.'));
    let distance = strsim::osa_distance(typed, other);
    (distance <= most || is_longer).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_seen_through_and_another_file_is_not_meant() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "Dockerfile.dev", "mine.toml", "recipes.md", "report.html", "shop", "workloads.yaml",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        for (missing, meant) in [
            ("Dockerfile", Some("Dockerfile.dev")),
            ("mien.toml", Some("mine.toml")),
            ("shp", Some("shop")),
            ("workload.yml", Some("workloads.yaml")),
            ("recipe.toml", None),
            ("sh", None),
        ] {
            let found = similar_path(&folder.path().join(missing));
            assert_eq!(
                found,
                meant.map(|name| folder.path().join(name)),
                "{missing}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nothing_is_not_meant_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("dangling");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert_eq!(similar_path(&link), None);
        let hint = missing_path_hint(&link).unwrap();
        let expected = "dangling is a link to a missing file";
        assert!(hint.ends_with(expected), "{hint}");
    }
}
