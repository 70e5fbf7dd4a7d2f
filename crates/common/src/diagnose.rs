//! Diagnosis of errors for users: causes, position in a text, suggestion, and next command.

use std::error::Error;
use std::fmt;

pub use crate::excerpt::Excerpt;
use crate::files::{LeadsOut, NotUtf8};

/// Implements [`Diagnose`] from attributes on the variants of an error. Attributes of the whole
/// type apply to each variant that does not set its own.
///
/// - `code = "…"`: see [`Diagnosis::code`]. Each variant needs one, its own or the type's.
/// - `blame = Request`: one of [`Blame`], or an expression.
/// - `hint = "… {field}"`: a text like that of `format!`, or an expression of `Option<String>`.
///   Fields without names are `_0`, `_1`.
/// - `excerpt = …`: an expression of `Option<Excerpt>`.
/// - `forward`: takes the diagnosis of the cause, or with `forward = field` of another field; the
///   other options override it.
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

/// An error with a diagnosis. The program derives the exit code, the chain of causes and the hint
/// from it.
pub trait Diagnose: Error {
    /// Returns the diagnosis.
    fn diagnosis(&self) -> Diagnosis;
}

/// An error of any kind, to be passed on with `?`.
pub type BoxError = Box<dyn Diagnose + Send + Sync>;

impl<E: Diagnose + Send + Sync + 'static> From<E> for BoxError {
    fn from(error: E) -> Self {
        Box::new(error)
    }
}

impl dyn Diagnose + Send + Sync {
    /// Returns the error if it is of that type.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        let error: &(dyn Error + 'static) = self;
        error.downcast_ref()
    }
}

/// An error without a type of its own: a message and a diagnosis.
///
/// ```
/// use wincimg_common::diagnose::{Blame, Diagnose, Problem};
///
/// let missing = Problem::new("shelf/missing", "no shelf 7").blame(Blame::Answer);
/// assert_eq!(missing.to_string(), "no shelf 7");
/// assert_eq!(missing.diagnosis().code, "shelf/missing");
/// let unread = Problem::context("cannot read the shelves", missing).hint("build one");
/// assert_eq!(unread.diagnosis().code, "shelf/missing");
/// ```
#[derive(Debug)]
pub struct Problem {
    /// `None` if the cause is sufficient.
    message: Option<String>,
    diagnosis: Box<Diagnosis>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Problem {
    /// An error with this [code](Diagnosis::code), caused by circumstances ([`Blame::Circumstances`]).
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            diagnosis: Box::new(Diagnosis {
                code,
                ..Diagnosis::default()
            }),
            source: None,
        }
    }

    /// An invalid request ([`Blame::Request`]).
    pub fn request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, message).blame(Blame::Request)
    }

    /// A negative answer to a valid request ([`Blame::Answer`]).
    pub fn answer(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, message).blame(Blame::Answer)
    }

    /// Wraps an error that has no diagnosis.
    pub fn from_error(code: &'static str, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            message: None,
            ..Self::new(code, "").source(error)
        }
    }

    /// Wraps an error to change its diagnosis.
    pub fn from_diagnosed(error: impl Into<BoxError>) -> Self {
        Self {
            message: None,
            ..Self::context("", error)
        }
    }

    /// Adds context to an error and takes its diagnosis.
    pub fn context(message: impl Into<String>, source: impl Into<BoxError>) -> Self {
        let source: BoxError = source.into();
        Self {
            message: Some(message.into()),
            diagnosis: Box::new(source.diagnosis()),
            source: Some(source),
        }
    }

    /// Sets the code, in place of that of the cause.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.diagnosis.code = code;
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets the party that has to act.
    #[must_use]
    pub fn blame(mut self, blame: Blame) -> Self {
        self.diagnosis.blame = blame;
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.diagnosis.hint = Some(hint.into());
        self
    }

    /// Sets the hint, if any.
    #[must_use]
    pub fn hint_if(mut self, hint: Option<impl Into<String>>) -> Self {
        self.diagnosis.hint = hint.map(Into::into).or(self.diagnosis.hint);
        self
    }

    /// Sets the excerpt.
    #[must_use]
    pub fn excerpt(mut self, excerpt: Option<Excerpt>) -> Self {
        self.diagnosis.excerpt = excerpt;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.message, &self.source) {
            (None, Some(error)) => error.fmt(f),
            (message, _) => f.write_str(message.as_deref().unwrap_or_default()),
        }
    }
}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.source.as_ref()?;
        match self.message {
            Some(_) => Some(source.as_ref()),
            None => source.source(),
        }
    }
}

impl Diagnose for Problem {
    fn diagnosis(&self) -> Diagnosis {
        (*self.diagnosis).clone()
    }
}

/// Diagnosis of an error, in addition to its message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnosis {
    /// Stable identifier for scripts: `registry/denied`.
    pub code: &'static str,
    /// The next command, or what to change, if known.
    pub hint: Option<String>,
    /// The line of the text with the error, marked.
    pub excerpt: Option<Excerpt>,
    /// The party that has to act.
    pub blame: Blame,
}

/// The party that has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Blame {
    /// The request is invalid: wrong usage.
    Request,
    /// The request is valid, and the answer is negative.
    Answer,
    /// The request is valid, and only a machine with Windows can carry it out.
    Windows,
    /// The request is valid but could not be carried out.
    #[default]
    Circumstances,
}

/// Diagnosis of system errors.
impl Diagnose for std::io::Error {
    fn diagnosis(&self) -> Diagnosis {
        let is_not_utf8 = self
            .get_ref()
            .is_some_and(<dyn Error + Send + Sync>::is::<NotUtf8>);
        let (blame, hint) = if LeadsOut::is_cause_of(self) {
            (Blame::Request, Some(LeadsOut::HINT))
        } else {
            (Blame::default(), is_not_utf8.then_some(NotUtf8::HINT))
        };
        Diagnosis {
            code: "file/io",
            hint: hint.map(str::to_owned),
            blame,
            ..Diagnosis::default()
        }
    }
}

/// Diagnosis of JSON errors.
impl Diagnose for serde_json::Error {
    fn diagnosis(&self) -> Diagnosis {
        Diagnosis {
            code: "file/json",
            ..Diagnosis::default()
        }
    }
}

/// Formats an error with its causes in one line, for a field, a log or a report: `cannot read
/// a.toml: permission denied`.
pub fn error_chain(error: &dyn Error) -> String {
    let mut printed = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        next = cause.source();
        if !is_layer(cause) {
            printed += ": ";
            printed += &cause.to_string();
        }
    }
    printed
}

/// Returns true if a cause only names a layer of a library.
pub fn is_layer(cause: &dyn Error) -> bool {
    const LAYERS: [&str; 5] = [
        "error sending request", "client error (Connect)", "tcp connect error", "dns error",
        "error resolving DNS",
    ];
    cause.source().is_some() && LAYERS.contains(&cause.to_string().as_str())
}

/// Returns the known name most similar to a typed one, if similar enough. In a short name, the
/// proximity of keys counts little.
pub fn closest_match<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let is_slip = |name: &str| name.len() > 2 && strsim::osa_distance(typed, name) == 1;
    known
        .map(|name| (strsim::jaro_winkler(typed, name), name))
        .filter(|(likeness, name)| *likeness > 0.8 || is_slip(name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

/// Line and column of a byte offset in a text, both counted from 1.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
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
        source: fmt::Error,
    }

    #[test]
    fn every_cause_is_said_once_the_outermost_first() {
        let error = Unreadable {
            name: "a.toml",
            source: fmt::Error,
        };
        let printed = error_chain(&error);
        assert_eq!(printed, format!("cannot read a.toml: {}", fmt::Error));
    }

    #[test]
    fn a_slip_or_a_beginning_is_near_and_another_word_is_not() {
        let known = &["nanoserver", "servercore", "iis"][..];
        for (word, known, expected) in [
            ("nano", known, Some("nanoserver")),
            ("severcore", known, Some("servercore")),
            ("ubuntu", known, None),
            ("tga", &["tag", "to"], Some("tag")),
            ("ab", &["ac", "b"], None),
            ("bogus", &["logs"], None),
            ("host", &["history"], None),
        ] {
            let found = closest_match(word, known.iter().copied());
            assert_eq!(found.as_deref(), expected, "{word}");
        }
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
