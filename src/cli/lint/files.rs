//! Dockerfiles that arguments name: files, folders and patterns.

use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::super::error::Failure;
use super::super::input;

/// A file to lint.
pub(super) struct FilePath {
    pub(super) path: PathBuf,
    /// True if it was found in a folder or by a pattern, and not named.
    pub(super) is_found: bool,
}

/// Folders without files of the author.
const SKIPPED: [&str; 4] = [".git", "node_modules", "target", ".terraform"];

pub(super) fn find(arguments: &[PathBuf]) -> Result<Vec<FilePath>, Failure> {
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
            walk(argument, &|path| is_dockerfile(path), &mut files)?;
        } else if pattern.contains(['*', '?']) {
            let pattern = pattern.trim_start_matches("./");
            let root = pattern_root(pattern);
            walk(&root, &|path| matches(pattern, path), &mut files)?;
        } else {
            // Reading it reports why it is not there.
            files.push(FilePath {
                path: argument.clone(),
                is_found: false,
            });
        }
        if files.len() == before {
            let problem = anyhow!("no Dockerfile in {}", argument.display());
            return Err(Failure::operation(problem)
                .hint("a folder is searched for Dockerfile, Dockerfile.* and *.Dockerfile"));
        }
    }
    Ok(files)
}

/// Returns true for the names that Docker's tools use.
fn is_dockerfile(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    ["dockerfile", "containerfile"].iter().any(|own| {
        let rest = name.strip_prefix(own);
        let is_named =
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']));
        let is_other = path.extension().is_some_and(|extension| {
            ["dockerignore", "md"]
                .iter()
                .any(|other| extension.eq_ignore_ascii_case(other))
        });
        (is_named && !is_other) || name.ends_with(&format!(".{own}"))
    })
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
            let text: Vec<char> = name.chars().collect();
            let first: Vec<char> = first.chars().collect();
            name_matches(&first, &text) && names_match(pattern, names)
        }
        _ => false,
    }
}

fn name_matches(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['*', rest @ ..], _) => (0..=name.len()).any(|skip| name_matches(rest, &name[skip..])),
        (['?', pattern @ ..], [_, name @ ..]) => name_matches(pattern, name),
        ([c, pattern @ ..], [own, name @ ..]) if c == own => name_matches(pattern, name),
        _ => false,
    }
}

/// Adds wanted files of a folder and its folders, sorted by name.
fn walk(
    folder: &Path,
    is_wanted: &dyn Fn(&Path) -> bool,
    files: &mut Vec<FilePath>,
) -> Result<(), Failure> {
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        let failed = |error: std::io::Error| {
            let problem = anyhow::Error::new(error);
            Failure::operation(problem.context(format!("cannot read {}", folder.display())))
        };
        let entries = std::fs::read_dir(&folder).map_err(failed)?;
        let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
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
    fn names_of_dockerfiles_are_known() {
        for name in [
            "Dockerfile",
            "Dockerfile.windows",
            "app.Dockerfile",
            "Containerfile",
            "dockerfile-nano",
        ] {
            assert!(is_dockerfile(Path::new(name)), "{name}");
        }
        for name in [
            "Dockerfile.dockerignore",
            "Dockerfiles",
            "README.md",
            "Dockerfile.md",
        ] {
            assert!(!is_dockerfile(Path::new(name)), "{name}");
        }
    }

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
            assert_eq!(
                matches(pattern, Path::new(path)),
                expected,
                "{pattern} {path}"
            );
        }
        assert_eq!(pattern_root("/x/a*/y"), Path::new("/x"));
        assert_eq!(pattern_root("*.x"), Path::new("."));
    }
}
