//! What is wrong with a Dockerfile, and where.

use std::path::{Path, PathBuf};

use wincimg_common::diagnose::{Diagnose, Excerpt};
use wincimg_common::files::similar_path;
use wincimg_common::untrusted::without_password;
use wincimg_scripts::ScriptErrorKind;

/// Why a Dockerfile does not come to an image.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "dockerfile/invalid", blame = Request)]
pub enum StageError {
    /// It could not be read.
    #[error("cannot read the Dockerfile {}", path.display())]
    #[diagnose(code = "dockerfile/unreadable", blame = Circumstances, hint = Some(meant(path)))]
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// What was asked for does not fit it.
    #[error("{0}")]
    #[diagnose(code = "dockerfile/request", hint = _1.clone())]
    Asked(String, Option<String>),
    /// A line of it cannot be carried out.
    #[error("{file}:{line}: {problem}")]
    #[diagnose(code = code_of(*trouble), hint = hint.clone(), excerpt = Some(Excerpt::from_quoted(*line, text, problem)))]
    Line {
        /// The file.
        file: Box<str>,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        problem: Box<str>,
        /// The instruction.
        text: Box<str>,
        /// What helps.
        hint: Option<String>,
        /// What may help beside another Dockerfile.
        remedy: Workaround,
        /// Why its commands are not carried out, where that is wrong with it.
        trouble: Option<ScriptErrorKind>,
        /// True if it has nothing to do with lines before it.
        stands_alone: bool,
        /// What is wrong with further lines.
        further: Box<[Self]>,
    },
}

/// What may help where a line cannot be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workaround {
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
            file: file.display().to_string().into(),
            line,
            problem: problem.into().into(),
            text: hidden(text).into(),
            hint: None,
            remedy: Workaround::None,
            trouble: None,
            stands_alone: false,
            further: Box::default(),
        }
    }

    pub(super) fn because(mut self, kind: ScriptErrorKind) -> Self {
        if let Self::Line { trouble, .. } = &mut self {
            *trouble = Some(kind);
        }
        self
    }

    /// One error for several lines: the first, with the others behind it. Where nothing helps one of
    /// them, those are left out that something may help.
    pub(super) fn all(mut errors: Vec<Self>) -> Option<Self> {
        if errors
            .iter()
            .any(|error| error.remedy() == Workaround::None)
        {
            errors.retain(|error| error.remedy() == Workaround::None);
        }
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        if let Self::Line { further, .. } = &mut first {
            *further = errors.collect();
        }
        Some(first)
    }

    /// Each line that is not carried out.
    pub fn lines(&self) -> impl Iterator<Item = &Self> {
        let further = match self {
            Self::Line { further, .. } => further,
            _ => &[][..],
        };
        std::iter::once(self).chain(further)
    }

    pub(super) fn is_isolated(&self) -> bool {
        matches!(
            self,
            Self::Line {
                stands_alone: true,
                ..
            }
        )
    }

    pub(super) fn isolated(mut self) -> Self {
        if let Self::Line { stands_alone, .. } = &mut self {
            *stands_alone = true;
        }
        self
    }

    /// Returns true if looks into bases may end all that is wrong.
    pub fn needs_base_contents(&self) -> bool {
        let mut lines = self.lines();
        lines.all(|line| matches!(line.remedy(), Workaround::Look(_)))
    }

    /// What may help beside another Dockerfile.
    pub(super) fn remedy(&self) -> Workaround {
        match self {
            Self::Line { remedy, .. } => *remedy,
            _ => Workaround::None,
        }
    }

    pub(super) fn or(mut self, other: Workaround) -> Self {
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

/// What is said first of a line whose commands are not carried out.
pub(super) struct Heading {
    code: &'static str,
    pub(super) problem: &'static str,
}

impl Heading {
    pub(super) fn of(kind: ScriptErrorKind) -> Self {
        match kind {
            ScriptErrorKind::NeedsWindows => Self {
                code: "dockerfile/needs-windows",
                problem: "RUN requires Windows",
            },
            ScriptErrorKind::NotUnderstood => Self {
                code: "dockerfile/not-understood",
                problem: "RUN is unsupported",
            },
            ScriptErrorKind::NotKnown | ScriptErrorKind::Later => Self {
                code: "dockerfile/not-known",
                problem: "RUN depends on unknown contents",
            },
            ScriptErrorKind::Fails => Self {
                code: "dockerfile/fails",
                problem: "RUN fails",
            },
            ScriptErrorKind::Refused => Self {
                code: "dockerfile/refused",
                problem: "RUN is refused",
            },
        }
    }
}

fn code_of(trouble: Option<ScriptErrorKind>) -> &'static str {
    trouble.map_or("dockerfile/invalid", |kind| Heading::of(kind).code)
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

fn meant(path: &Path) -> String {
    match similar_path(path) {
        Some(meant) => format!("did you mean {}?", meant.display()),
        None => "specify it with --file FILE; IMAGE is the folder with its files".to_owned(),
    }
}
