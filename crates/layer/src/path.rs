//! Validated paths inside a layer.

use std::fmt;
use std::str::FromStr;

use wincimg_common::untrusted::QuotedText;
pub(super) use wincimg_windows::path::fold;
use wincimg_windows::path::{ImagePath, name_problem};

/// Prefix of a tar entry that deletes a path.
pub(super) const WHITEOUT_PREFIX: &str = ".wh.";

/// A mark in a layer, by the name of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whiteout<'a> {
    /// Deletes this name, which is next to it.
    Deletion(&'a str),
    /// `.wh..wh..opq`: hides what lower layers have in its folder. Windows does not know it.
    Opaque,
    /// A mark that nothing knows.
    Other,
}

impl<'a> Whiteout<'a> {
    /// Reads the name of an entry; none for files and folders.
    pub fn from_name(name: &'a str) -> Option<Self> {
        let deleted = name.strip_prefix(WHITEOUT_PREFIX)?;
        Some(match deleted.strip_prefix(WHITEOUT_PREFIX) {
            Some(".opq") => Self::Opaque,
            None if !deleted.is_empty() => Self::Deletion(deleted),
            _ => Self::Other,
        })
    }
}

/// A path below a layer's `Files` (or `Hives`) directory: names joined by `/`, each a valid file
/// name on Windows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayerPath(String);

/// Error of an invalid layer path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid name {} in layer path {}: {problem}",
    QuotedText(.name),
    QuotedText(.path)
)]
pub struct PathError {
    path: String,
    name: String,
    problem: &'static str,
}

impl LayerPath {
    /// The path as text, `Program Files/app/app.exe`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Key shared by all spellings of the path; a folder's contents sort after it.
    pub(super) fn key(&self) -> String {
        fold(&self.0)
    }

    /// The path of `name`, a single name or several joined by `/`, below this one.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        format!("{}/{name}", self.0).parse()
    }
}

impl FromStr for LayerPath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<Self, PathError> {
        for name in path.split('/') {
            check(name, path)?;
        }
        Ok(Self(path.to_owned()))
    }
}

impl TryFrom<&ImagePath> for LayerPath {
    type Error = PathError;

    /// Fails on the root of the drive, which is not an entry.
    fn try_from(path: &ImagePath) -> Result<Self, PathError> {
        path.components().join("/").parse()
    }
}

impl fmt::Display for LayerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn check(name: &str, path: &str) -> Result<(), PathError> {
    let problem = if name.starts_with(WHITEOUT_PREFIX) {
        Some("it would be a deletion marker")
    } else {
        name_problem(name)
    };
    match problem {
        None => Ok(()),
        Some(problem) => Err(PathError {
            path: path.to_owned(),
            name: name.to_owned(),
            problem,
        }),
    }
}

/// Checks a symbolic link's target: names valid on Windows, after a drive or as a relative path
/// that may use `..`.
pub(super) fn check_target(target: &str) -> Result<(), PathError> {
    let inside = match target.split_once(":/") {
        Some((drive, inside)) if is_drive(drive) => inside,
        _ => target,
    };
    let names = inside.split('/');
    names
        .filter(|name| !matches!(*name, "." | ".."))
        .try_for_each(|name| check(name, target))
}

fn is_drive(text: &str) -> bool {
    text.len() == 1 && text.starts_with(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_taken() {
        for path in ["a", "Program Files/app/.config", "日本語/ü.txt", ".hidden"] {
            assert_eq!(path.parse::<LayerPath>().unwrap().as_str(), path);
        }
    }

    #[test]
    fn names_that_would_leave_the_layer_or_mean_something_else_are_refused() {
        let long = "x".repeat(256);
        for path in [
            "", "/a", "a/", "a//b", ".", "a/..", "a\\b", "C:", "a:stream", "a\0", "a\nb", "a?",
            ".wh.a", "a/.wh..wh..opq", "end.", "end ", &long,
        ] {
            assert!(path.parse::<LayerPath>().is_err(), "{path:?} was taken");
        }
    }

    #[test]
    fn a_mark_deletes_the_name_behind_its_prefix() {
        for (name, expected) in [
            ("a.txt", None),
            (".wh", None),
            (".wh.a.txt", Some(Whiteout::Deletion("a.txt"))),
            (".wh..hidden", Some(Whiteout::Deletion(".hidden"))),
            (".wh..wh..opq", Some(Whiteout::Opaque)),
            (".wh.", Some(Whiteout::Other)),
            (".wh..wh.plnk", Some(Whiteout::Other)),
            (".wh..wh.aufs", Some(Whiteout::Other)),
        ] {
            assert_eq!(Whiteout::from_name(name), expected, "{name}");
        }
    }

    #[test]
    fn a_refusal_names_the_path_and_the_reason_on_one_line() {
        let error = "a/b\nc".parse::<LayerPath>().unwrap_err().to_string();
        assert_eq!(
            error,
            r#"invalid name "b\nc" in layer path "a/b\nc": it has a control character"#
        );
        let error = r"a/b\c".parse::<LayerPath>().unwrap_err().to_string();
        let expected = r#"invalid name "b\c" in layer path "a/b\c": "#;
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn a_path_in_an_image_is_one_in_a_layer_except_for_the_root() {
        let path = |text: &str| LayerPath::try_from(&text.parse::<ImagePath>().unwrap());
        assert_eq!(path(r"C:\app\x.exe").unwrap().as_str(), "app/x.exe");
        assert!(path(r"C:\").is_err());
        assert!(path(r"C:\.wh.x").is_err());
    }

    #[test]
    fn a_link_points_along_names_up_or_to_a_drive() {
        for target in ["x", "../x/y", "..", ".", "C:/app/x"] {
            assert_eq!(check_target(target), Ok(()));
        }
        for target in [
            "", "/x", "x/", "a\\b", "a\0", "CC:/x", "C:x", "a/C:/b", ".wh.x",
        ] {
            assert!(check_target(target).is_err(), "{target:?} was taken");
        }
    }
}
