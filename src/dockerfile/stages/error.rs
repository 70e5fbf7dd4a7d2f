//! What is wrong with a Dockerfile, and where.

use std::path::{Path, PathBuf};

use crate::diagnose::{Blame, Diagnose, Excerpt};
use crate::files::like;
use crate::foreign::without_password;

/// Why a Dockerfile does not come to an image.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// It could not be read.
    #[error("cannot read the Dockerfile {}", path.display())]
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// What was asked for does not fit it.
    #[error("{0}")]
    Asked(String, Option<String>),
    /// A line of it cannot be carried out.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
        /// The instruction.
        text: String,
        /// What helps.
        hint: Option<String>,
        /// What may help beside another Dockerfile.
        remedy: Remedy,
    },
}

/// What may help where a line cannot be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing.
    None,
    /// To ask once more, where more is known of the base by chance.
    Again,
    /// To look inside the base of a stage, by its place in the file.
    Look(usize),
}

impl StageError {
    pub(super) fn at(file: &Path, line: usize, text: &str, problem: impl Into<String>) -> Self {
        Self::Line {
            file: file.display().to_string(),
            line,
            problem: problem.into(),
            text: hidden(text),
            hint: None,
            remedy: Remedy::None,
        }
    }

    /// What may help beside another Dockerfile.
    pub(super) fn remedy(&self) -> Remedy {
        match self {
            Self::Line { remedy, .. } => *remedy,
            _ => Remedy::None,
        }
    }

    pub(super) fn or(mut self, other: Remedy) -> Self {
        if let Self::Line { remedy, .. } = &mut self {
            *remedy = other;
        }
        self
    }

    pub(super) fn with_hint(mut self, text: impl Into<String>) -> Self {
        match &mut self {
            Self::Line { hint, .. } | Self::Asked(_, hint) => *hint = Some(text.into()),
            Self::Unreadable { .. } => {}
        }
        self
    }
}

/// A line without passwords in its URLs.
fn hidden(text: &str) -> String {
    let words = text.split_inclusive(|c: char| c.is_whitespace() || "'\"".contains(c));
    let shown = words.map(|word| {
        if word.contains("://") {
            without_password(word)
        } else {
            word.into()
        }
    });
    shown.collect()
}

impl Diagnose for StageError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Line { hint, .. } | Self::Asked(_, hint) => hint.clone(),
            Self::Unreadable { path, .. } => Some(match like(path) {
                Some(meant) => format!("did you mean {}?", meant.display()),
                None => {
                    "name it with --file FILE; IMAGE is the folder that its files are in".to_owned()
                }
            }),
        }
    }

    fn excerpt(&self) -> Option<Excerpt> {
        let Self::Line {
            line,
            text,
            problem,
            ..
        } = self
        else {
            return None;
        };
        Some(Excerpt::of_quoted(*line, text, problem))
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Unreadable { .. } => Blame::Circumstances,
            _ => Blame::Request,
        }
    }
}
