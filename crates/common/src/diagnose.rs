//! What an error tells the person who reads it: its causes, where in a text it stands, what was
//! probably meant, and what to type next.

use std::error::Error;

pub use crate::excerpt::Excerpt;

/// Implements [`Diagnose`] by what stands beside the variants of an error. What is said of the whole
/// type holds for each variant that does not say otherwise.
///
/// - `code = "…"`: see [`Diagnosis::code`]. Each variant needs one, its own or the type's.
/// - `blame = Request`: one of [`Blame`], or an expression.
/// - `hint = "… {field}"`: a text like that of `format!`, or an expression of `Option<String>`.
///   Fields without names are `_0`, `_1`.
/// - `excerpt = …`: an expression of `Option<Excerpt>`.
/// - `forward`: the diagnosis of the cause, or with `forward = field` of another field; the other
///   options change it.
///
/// ```
/// use wincimg_common::diagnose::{Blame, Diagnose};
///
/// #[derive(Debug, thiserror::Error, Diagnose)]
/// #[diagnose(code = "shelf/missing", blame = Answer)]
/// enum ShelfError {
///     #[error("no shelf {name}")]
///     #[diagnose(hint = "name another one than {name}")]
///     Missing { name: String },
///     #[error(transparent)]
///     #[diagnose(forward)]
///     Io(#[from] std::io::Error),
/// }
///
/// let missing = ShelfError::Missing { name: "7".to_owned() }.diagnosis();
/// assert_eq!(missing.code, "shelf/missing");
/// assert_eq!(missing.hint.as_deref(), Some("name another one than 7"));
/// let io = ShelfError::from(std::io::Error::other("broken")).diagnosis();
/// assert_eq!((io.code, io.blame), ("file/io", Blame::Circumstances));
/// ```
pub use wincimg_derive::Diagnose;

/// An error that knows what its reader can do about it. The edge of the program turns any of them
/// into an exit code, the chain of causes and a hint.
pub trait Diagnose: Error {
    /// What to say of it beside its message.
    fn diagnosis(&self) -> Diagnosis;
}

/// What to say of an error beside its message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnosis {
    /// What it is, in a word that scripts can rely on: `registry/denied`.
    pub code: &'static str,
    /// The next command to type, or what to change, where there is something.
    pub hint: Option<String>,
    /// The line of a text where it stands, with a mark below.
    pub excerpt: Option<Excerpt>,
    /// Who has to do something about it.
    pub blame: Blame,
}

/// What an error says about the request that met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Blame {
    /// The request cannot be meant: wrong usage.
    Request,
    /// The request was understood, and the answer is no.
    Answer,
    /// The request was right and could not be carried out.
    #[default]
    Circumstances,
}

/// What the system says by itself.
impl Diagnose for std::io::Error {
    fn diagnosis(&self) -> Diagnosis {
        Diagnosis {
            code: "file/io",
            ..Diagnosis::default()
        }
    }
}

/// What a parser says by itself.
impl Diagnose for serde_json::Error {
    fn diagnosis(&self) -> Diagnosis {
        Diagnosis {
            code: "file/json",
            ..Diagnosis::default()
        }
    }
}

/// An error with its causes in one line, for places that have only one: a field, a log, a report.
/// `cannot read a.toml: permission denied`.
pub fn in_one_line(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        next = cause.source();
        if !is_layer(cause) {
            said += ": ";
            said += &cause.to_string();
        }
    }
    said
}

/// Whether a cause only says through which layer of a library the one below it came.
pub fn is_layer(cause: &dyn Error) -> bool {
    const LAYERS: [&str; 5] = [
        "error sending request",
        "client error (Connect)",
        "tcp connect error",
        "dns error",
        "error resolving DNS",
    ];
    cause.source().is_some() && LAYERS.contains(&cause.to_string().as_str())
}

/// The known name that is most like what was typed, if one is near enough: the one key beside it in
/// a short name says little of its letters.
pub fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let is_slip = |name: &str| name.len() > 2 && strsim::osa_distance(typed, name) == 1;
    known
        .map(|name| (strsim::jaro_winkler(typed, name), name))
        .filter(|(likeness, name)| *likeness > 0.75 || is_slip(name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

/// The line and column of a byte offset in a text, both counted from 1.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read {name}")]
    struct Unreadable {
        name: &'static str,
        source: std::fmt::Error,
    }

    #[test]
    fn every_cause_is_said_once_the_outermost_first() {
        let error = Unreadable {
            name: "a.toml",
            source: std::fmt::Error,
        };
        let said = in_one_line(&error);
        assert_eq!(said, format!("cannot read a.toml: {}", std::fmt::Error));
    }

    #[test]
    fn a_slip_or_a_beginning_is_near_and_another_word_is_not() {
        let known = || ["nanoserver", "servercore", "iis"].into_iter();
        assert_eq!(nearest("nano", known()).as_deref(), Some("nanoserver"));
        assert_eq!(nearest("severcore", known()).as_deref(), Some("servercore"));
        assert_eq!(nearest("ubuntu", known()), None);
        assert_eq!(
            nearest("tga", ["tag", "to"].into_iter()).as_deref(),
            Some("tag")
        );
        assert_eq!(nearest("ab", ["ac", "b"].into_iter()).as_deref(), None);
    }

    #[test]
    fn positions_count_characters_from_one() {
        let text = "ab\nçd\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, 3), (2, 1));
        assert_eq!(line_and_column(text, 5), (2, 2));
        assert_eq!(line_and_column(text, 4), (2, 1), "inside a character");
        assert_eq!(line_and_column(text, 99), (3, 1));
    }
}
