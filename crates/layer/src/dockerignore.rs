//! `.dockerignore`: patterns of the files that are ignored.
//!
//! The patterns are Docker's, which are neither those of git nor those of a shell: every pattern is
//! relative to the folder's top, `**` matches any number of folders, `!` includes again what an
//! earlier line excluded, the last line that matches decides, and a folder includes everything in
//! it. A file written for Docker on Windows has `\` between names.

use std::io;
use std::path::{Path, PathBuf};

use wincimg_common::diagnose::{Diagnose as _, Diagnosis, Problem};
use wincimg_common::files::{LARGEST_TEXT, real_path};

use super::disk_source::DiskSource;

/// The name of the file.
pub const FILE_NAME: &str = ".dockerignore";

/// The rules of one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoreRules(Vec<IgnoreRule>);

/// A pattern with the syntax of Go's `filepath.Match`: `*` and `?` match no slash, and the whole
/// path has to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<GlobPart>);

impl Glob {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        parse(text, false).map(Self)
    }

    /// Returns true if it matches a path.
    pub fn matches(&self, path: &str) -> bool {
        matching_ends(&self.0, path).last() == Some(&path.len())
    }
}

/// Code of errors of reading ignore rules.
const CODE: &str = "layer/failed";

#[derive(Debug, Clone, PartialEq, Eq)]
struct IgnoreRule {
    /// True for a pattern with `!`.
    includes: bool,
    pattern: Vec<GlobPart>,
}

/// One piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobPart {
    /// This character.
    Just(char),
    /// `?`: any character but a slash.
    One,
    /// `*`: any number of characters but slashes.
    Some,
    /// Before `Folders`, which are optional.
    Maybe,
    /// `**` and `**/`: anything that ends with a slash.
    Folders,
    /// `**` at the end: anything.
    Rest,
    /// `[a-z]`: one of these.
    OneOf {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl IgnoreRules {
    /// Reads the rules of a folder; empty if it has no such file.
    pub fn read_folder(folder: &DiskSource) -> Result<Self, Problem> {
        Ok(Self::read_file(&folder.join(FILE_NAME))?.unwrap_or_default())
    }

    /// Reads the rules of a file, if it exists.
    pub fn read_file(file: &DiskSource) -> Result<Option<Self>, Problem> {
        match file.read(LARGEST_TEXT) {
            Ok(bytes) => Self::read(&String::from_utf8_lossy(&bytes), &file.path).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let problem = format!("cannot read {}", file.path.display());
                let Diagnosis { blame, hint, .. } = error.diagnosis();
                let problem = Problem::new(CODE, problem).source(error);
                Err(problem.blame(blame).hint_if(hint))
            }
        }
    }

    /// Parses rules; `path` is for messages.
    pub fn read(text: &str, path: &Path) -> Result<Self, Problem> {
        let mut rules = Vec::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let has_separators = lines().any(separates_names);
        for (index, line) in text.lines().enumerate() {
            let failed = |problem| {
                let (path, line, pattern) = (path.display(), index + 1, line.trim());
                let problem = format!("{path}:{line}: invalid pattern {pattern:?}: {problem}");
                Problem::new(CODE, problem)
            };
            // Only a # in the first column starts a comment.
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let line = line.trim();
            let (includes, pattern) = match line.strip_prefix('!') {
                Some(rest) => (true, rest.trim()),
                None => (false, line),
            };
            if pattern.is_empty() {
                return Err(failed("no pattern after the !"));
            }
            let pattern = if has_separators {
                clean(&pattern.replace('\\', "/"))
            } else {
                clean(pattern)
            };
            let pattern = parse(&pattern, true).map_err(failed)?;
            rules.push(IgnoreRule { includes, pattern });
        }
        Ok(Self(rules))
    }

    /// Rules that ignore these paths and all that is in them.
    pub fn of_paths(paths: impl IntoIterator<Item = String>) -> Self {
        let rules = paths.into_iter().map(|path| IgnoreRule {
            includes: false,
            pattern: path.chars().map(GlobPart::Just).collect(),
        });
        Self(rules.collect())
    }

    /// Rules that ignore those of these paths that are in a folder.
    pub fn of_written(folder: &Path, written: &[PathBuf]) -> Self {
        let top = real_path(folder);
        let inside = written.iter().filter_map(|path| {
            let path = real_path(path)?;
            let inside = path.strip_prefix(top.as_ref()?).ok()?.to_str()?;
            (!inside.is_empty()).then(|| inside.replace('\\', "/"))
        });
        Self::of_paths(inside)
    }

    /// The same rules after others, which they override.
    #[must_use]
    pub fn after(mut self, mut others: Self) -> Self {
        others.0.append(&mut self.0);
        others
    }

    /// Returns true if a path, relative to the folder and with slashes, is ignored. Each of its
    /// folders is looked at first, as Docker walks there: a rule that applies to a folder applies to
    /// all in it, and a rule that changes nothing for a folder does not apply to it.
    pub fn is_ignored(&self, path: &str) -> bool {
        let matched: Vec<_> = self
            .0
            .iter()
            .map(|rule| matching_ends(&rule.pattern, path))
            .collect();
        let mut applies = vec![false; self.0.len()];
        let mut is_ignored = false;
        let folders = path.match_indices('/').map(|(end, _)| end);
        for end in folders.chain([path.len()]) {
            is_ignored = false;
            for ((rule, ends), applies) in self.0.iter().zip(&matched).zip(&mut applies) {
                *applies |= rule.includes == is_ignored && ends.contains(&end);
                if *applies {
                    is_ignored = !rule.includes;
                }
            }
        }
        is_ignored
    }

    /// Returns true if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a folder that is left out may still hold something that is not.
    pub fn may_reinclude(&self) -> bool {
        self.0.iter().any(|rule| rule.includes)
    }
}

/// Returns true if a pattern has a `\` that separates names, as on Windows: at its end, or before a
/// character that needs no escape.
fn separates_names(pattern: &str) -> bool {
    let mut rest = pattern.trim().chars();
    while let Some(character) = rest.next() {
        if character == '\\' && rest.next().is_none_or(char::is_alphanumeric) {
            return true;
        }
    }
    false
}

/// Normalizes a path, as Docker does before it parses the pattern: `/a/./b/../c/` becomes `a/c`.
fn clean(pattern: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in pattern.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => {
                names.pop();
            }
            ".." if pattern.starts_with('/') => {}
            name => names.push(name),
        }
    }
    if names.is_empty() {
        return ".".to_owned();
    }
    names.join("/")
}

/// Parses a pattern; `**` matches folders only where the pattern may have any.
fn parse(pattern: &str, has_folders: bool) -> Result<Vec<GlobPart>, &'static str> {
    let mut pieces = Vec::new();
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        let piece = match character {
            '*' if has_folders && rest.next_if_eq(&'*').is_some() => {
                rest.next_if_eq(&'/');
                if rest.peek().is_none() {
                    GlobPart::Rest
                } else {
                    pieces.push(GlobPart::Maybe);
                    GlobPart::Folders
                }
            }
            '*' => GlobPart::Some,
            '?' => GlobPart::One,
            '\\' => GlobPart::Just(rest.next().ok_or("nothing follows the last \\")?),
            '[' => class(&mut rest)?,
            other => GlobPart::Just(other),
        };
        pieces.push(piece);
    }
    Ok(pieces)
}

/// Parses a character class.
fn class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<GlobPart, &'static str> {
    const OPEN: &str = "a [ is not closed";
    let negated = rest.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    let mut next = || match rest.next() {
        Some('\\') => Ok((rest.next().ok_or(OPEN)?, true)),
        Some(character) => Ok((character, false)),
        None => Err(OPEN),
    };
    let mut item = next()?;
    while item != (']', false) || ranges.is_empty() {
        let low = bound(item)?;
        item = next()?;
        let high = if item == ('-', false) {
            let high = bound(next()?)?;
            item = next()?;
            high
        } else {
            low
        };
        ranges.push((low, high));
    }
    Ok(GlobPart::OneOf { negated, ranges })
}

/// Parses one end of a range; Docker requires a `\` before special characters.
fn bound(item: (char, bool)) -> Result<char, &'static str> {
    match item {
        (']', false) => Err("found ], expected a character"),
        ('-', false) => Err("found -, expected a character"),
        (character, _) => Ok(character),
    }
}

/// Returns where the folders of a path end, and the path itself, that a pattern matches. All
/// alternatives are followed at once, so that no pattern takes exponential time.
fn matching_ends(pattern: &[GlobPart], path: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut reached = vec![false; pattern.len() + 1];
    let mut next = reached.clone();
    reached[0] = true;
    skip_optional(pattern, &mut reached);
    for (place, character) in path.char_indices() {
        if character == '/' && reached[pattern.len()] {
            ends.push(place);
        }
        next.fill(false);
        let here = pattern.iter().enumerate();
        for (index, piece) in here.filter(|(index, _)| reached[*index]) {
            match piece {
                GlobPart::Just(wanted) => next[index + 1] |= *wanted == character,
                GlobPart::One => next[index + 1] |= character != '/',
                GlobPart::Some => next[index] |= character != '/',
                GlobPart::Rest => next[index] = true,
                GlobPart::Maybe => {}
                GlobPart::Folders => {
                    next[index] = true;
                    next[index + 1] |= character == '/';
                }
                GlobPart::OneOf { negated, ranges } => {
                    let mut ranges = ranges.iter();
                    let within = ranges.any(|(low, high)| (*low..=*high).contains(&character));
                    next[index + 1] |= within != *negated;
                }
            }
        }
        if !next.contains(&true) {
            return ends;
        }
        std::mem::swap(&mut reached, &mut next);
        skip_optional(pattern, &mut reached);
    }
    if reached[pattern.len()] {
        ends.push(path.len());
    }
    ends
}

/// Skips pieces that may match nothing.
fn skip_optional(pattern: &[GlobPart], reached: &mut [bool]) {
    for (index, piece) in pattern.iter().enumerate() {
        if !reached[index] {
            continue;
        }
        match piece {
            GlobPart::Some | GlobPart::Rest => reached[index + 1] = true,
            GlobPart::Maybe => {
                reached[index + 1] = true;
                reached[index + 2] = true;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
