//! Files that arguments name: files, folders and patterns.

use wincimg_common::wildcards;

use super::input;
use crate::cli::prelude::*;

pub(super) struct FilePath {
    pub(super) path: PathBuf,
    /// True if it was found in a folder or by a pattern, and not named.
    pub(super) is_found: bool,
}

/// Folders without files of the author.
const SKIPPED: [&str; 4] = [".git", "node_modules", "target", ".terraform"];

/// Files that are looked for in folders.
pub(super) struct FileKind {
    /// What they are, after "no".
    pub(super) name: &'static str,
    pub(super) hint: &'static str,
    pub(super) matches: fn(&Path) -> bool,
}

/// The files of the arguments; those of a folder or a pattern sorted by name.
pub(super) fn find(arguments: &[PathBuf], kind: &FileKind) -> Result<Vec<FilePath>> {
    let mut files = Vec::new();
    for argument in arguments {
        let before = files.len();
        if input::is_stdin(argument) || argument.is_file() {
            files.push(FilePath {
                path: argument.clone(),
                is_found: false,
            });
            continue;
        }
        let pattern = argument.to_string_lossy();
        if argument.is_dir() {
            walk(argument, &kind.matches, &mut files)?;
        } else if pattern.contains(['*', '?']) {
            let pattern = pattern.trim_start_matches("./");
            let root = pattern_root(pattern);
            if root.is_dir() {
                walk(&root, &|path| matches(pattern, path), &mut files)?;
            }
        } else {
            // Reading it reports why it is missing.
            files.push(FilePath {
                path: argument.clone(),
                is_found: false,
            });
        }
        if files.len() == before {
            let problem = format!("no {} in {}", kind.name, argument.display());
            return Err(Problem::new("file/io", problem).hint(kind.hint).into());
        }
    }
    Ok(files)
}

/// Folder above the first part with a wildcard.
fn pattern_root(pattern: &str) -> PathBuf {
    let fixed = pattern.find(['*', '?']).unwrap_or(pattern.len());
    match pattern[..fixed].rfind('/') {
        Some(0) => PathBuf::from("/"),
        Some(end) => PathBuf::from(&pattern[..end]),
        None => PathBuf::from("."),
    }
}

/// Returns true if a path matches a pattern: `*` and `?` stay in a name, `**` does not.
fn matches(pattern: &str, path: &Path) -> bool {
    let path = path.to_string_lossy().replace('\\', "/");
    let path = path.strip_prefix("./").unwrap_or(&path);
    let pattern: Vec<&str> = pattern.split('/').collect();
    let names: Vec<&str> = path.split('/').collect();
    names_match(&pattern, &names)
}

fn names_match(pattern: &[&str], names: &[&str]) -> bool {
    match (pattern, names) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=names.len()).any(|skip| names_match(rest, &names[skip..])),
        ([first, pattern @ ..], [name, names @ ..]) => {
            wildcards::matches(first, name) && names_match(pattern, names)
        }
        _ => false,
    }
}

/// Adds wanted files of a folder and its folders, sorted by name.
fn walk(folder: &Path, is_wanted: &dyn Fn(&Path) -> bool, files: &mut Vec<FilePath>) -> Result<()> {
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        let failed = |error: io::Error| {
            Failure::from(error).context(format!("cannot read {}", folder.display()))
        };
        let entries = fs::read_dir(&folder).map_err(failed)?;
        let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let mut folders = Vec::new();
        for entry in entries {
            let kind = entry.file_type().map_err(failed)?;
            let is_skipped = SKIPPED.iter().any(|name| entry.file_name() == *name);
            // A link could lead back.
            if kind.is_dir() && !is_skipped {
                folders.push(entry.path());
            } else if kind.is_file() && is_wanted(&entry.path()) {
                files.push(FilePath {
                    path: entry.path(),
                    is_found: true,
                });
            }
        }
        pending.extend(folders.into_iter().rev());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_in_a_name_and_two_do_not() {
        for (pattern, path, expected) in [
            ("a/*.Dockerfile", "a/x.Dockerfile", true),
            ("a/*.Dockerfile", "a/b/x.Dockerfile", false),
            ("**/Dockerfile", "Dockerfile", true),
            ("**/Dockerfile", "./a/b/Dockerfile", true),
            ("a/**/D?ckerfile", "a/b/c/Dockerfile", true),
            ("a/**/Dockerfile", "b/Dockerfile", false),
        ] {
            let found = matches(pattern, Path::new(path));
            assert_eq!(found, expected, "{pattern} {path}");
        }
        assert_eq!(pattern_root("/x/a*/y"), Path::new("/x"));
        assert_eq!(pattern_root("*.x"), Path::new("."));
    }
}
