//! Paths inside a layer, checked once so that everything behind can rely on them.

use std::fmt;
use std::str::FromStr;

/// The prefix that makes a tar entry the deletion of what it names.
pub(super) const WHITEOUT_PREFIX: &str = ".wh.";

/// NTFS counts a name in UTF-16 code units.
const LONGEST_NAME: usize = 255;

/// A path below a layer's `Files` (or `Hives`) directory: names joined by `/`, each one that
/// Windows accepts for a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayerPath(String);

/// A path that cannot be in a layer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("layer path {path:?}: {problem}")]
pub struct PathError {
    path: String,
    problem: String,
}

impl LayerPath {
    /// The path as text, `Program Files/app/app.exe`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of `name`, a single name or several joined by `/`, below this one.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        format!("{}/{name}", self.0).parse()
    }
}

impl FromStr for LayerPath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<Self, PathError> {
        match path.split('/').find_map(problem_of_name) {
            Some(problem) => Err(PathError {
                path: path.to_owned(),
                problem,
            }),
            None => Ok(Self(path.to_owned())),
        }
    }
}

impl fmt::Display for LayerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn problem_of_name(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("a name is empty".to_owned());
    }
    if name == "." || name == ".." {
        return Some(format!("{name:?} is not a name"));
    }
    if name.starts_with(WHITEOUT_PREFIX) {
        return Some(format!("{name:?} would mean a deletion"));
    }
    if let Some(forbidden) = name.chars().find(|c| is_forbidden(*c)) {
        return Some(format!("Windows does not take {forbidden:?} in {name:?}"));
    }
    if name.ends_with(['.', ' ']) {
        return Some(format!(
            "Windows drops the dot or space at the end of {name:?}"
        ));
    }
    if name.encode_utf16().count() > LONGEST_NAME {
        return Some(format!("a name is longer than {LONGEST_NAME} characters"));
    }
    None
}

fn is_forbidden(c: char) -> bool {
    c < ' ' || matches!(c, '<' | '>' | ':' | '"' | '\\' | '|' | '?' | '*')
}

/// What two paths have in common when Windows takes them for the same one; keys order parents
/// before their children and keep a folder's content together.
pub(super) fn fold(path: &str) -> String {
    path.chars()
        .map(|c| if c == '/' { '\0' } else { upper(c) })
        .collect()
}

/// NTFS maps single characters, so a letter whose upper case is longer (`ß`) stays itself.
fn upper(c: char) -> char {
    let mut mapped = c.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(upper), None) => upper,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

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
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "a/..",
            "a\\b",
            "C:",
            "a:stream",
            "a\0",
            "a\nb",
            "a?",
            ".wh.a",
            "a/.wh..wh..opq",
            "end.",
            "end ",
            &long,
        ] {
            assert!(path.parse::<LayerPath>().is_err(), "{path:?} was taken");
        }
    }

    #[test]
    fn a_refusal_names_the_path_and_the_reason_on_one_line() {
        let error = "a/b\nc".parse::<LayerPath>().unwrap_err().to_string();
        assert_eq!(
            error,
            r#"layer path "a/b\nc": Windows does not take '\n' in "b\nc""#
        );
    }

    #[test]
    fn a_length_is_counted_as_windows_counts_it() {
        assert!("ü".repeat(255).parse::<LayerPath>().is_ok());
        assert!("😀".repeat(128).parse::<LayerPath>().is_err());
    }

    #[test]
    fn folding_puts_a_folder_right_before_its_content() {
        let mut paths = ["a.txt", "A/z", "a", "a b/c"];
        paths.sort_by_key(|path| fold(path));
        assert_eq!(paths, ["a", "A/z", "a b/c", "a.txt"]);
    }

    #[test]
    fn folding_joins_only_what_windows_joins() {
        assert_eq!(fold("Ünïcode"), fold("ÜNÏCODE"));
        assert_ne!(fold("straße"), fold("strasse"));
    }
}
