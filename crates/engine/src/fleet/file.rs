//! A fleet's file: a TOML list of images, with what all of them have in common at its top.

mod entry;
mod shape;
mod tags;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use toml::Spanned;
use wincimg_common::diagnose::{Diagnose, Excerpt, line_and_column};
use wincimg_common::files::{LARGEST_TEXT, like, read_text};
use wincimg_recipe::mistake;

use self::entry::entry;
use self::shape::FleetFile;
use self::tags::check_tags;
use super::Fleet;

/// The JSON schema of fleets' files, for editors.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(FleetFile)
}

/// Why a fleet's file could not be read.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "fleet/invalid", blame = Request)]
pub enum FleetError {
    /// Nobody can read it.
    #[error("cannot read the fleet {}", path.display())]
    #[diagnose(code = "fleet/unreadable", blame = Circumstances, hint = like(path).map(|meant| format!("did you mean {}?", meant.display())))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Something in it cannot be meant.
    #[error("{origin}:{line}:{column}: {problem}")]
    #[diagnose(hint = hint.clone(), excerpt = Some((**excerpt).clone()))]
    Invalid {
        /// The file.
        origin: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What is wrong.
        problem: String,
        /// The line, with a mark below the word.
        excerpt: Box<Excerpt>,
        /// What was probably meant.
        hint: Option<String>,
    },
    /// There is nothing in it.
    #[error("{origin} lists no image")]
    #[diagnose(hint = "add one: [[image]], and below it build = \"pause\"")]
    Empty {
        /// The file.
        origin: String,
    },
}

/// A file's text, for errors that say where in it something is.
struct Origin<'a> {
    name: String,
    text: &'a str,
}

impl Origin<'_> {
    fn error(&self, offset: usize, problem: impl fmt::Display) -> FleetError {
        let (line, column) = line_and_column(self.text, offset);
        FleetError::Invalid {
            origin: self.name.clone(),
            line,
            column,
            problem: problem.to_string(),
            excerpt: Box::new(Excerpt::at(self.text, offset)),
            hint: None,
        }
    }

    fn line(&self, offset: usize) -> usize {
        line_and_column(self.text, offset).0
    }

    /// A text of the file as what it stands for.
    fn parsed<T>(&self, text: &Spanned<String>) -> Result<T, FleetError>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let parsed = text.get_ref().parse();
        parsed.map_err(|error| self.error(text.span().start, error))
    }
}

impl FleetError {
    fn with_hint(mut self, said: String) -> Self {
        if let Self::Invalid { hint, .. } = &mut self {
            *hint = Some(said);
        }
        self
    }
}

impl Fleet {
    /// Reads a fleet's file. Paths in it are relative to its folder.
    pub fn read(path: &Path) -> Result<Self, FleetError> {
        let text = read_text(path, LARGEST_TEXT).map_err(|source| FleetError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::from_text(&path.display().to_string(), &text, folder)
    }

    /// Reads a fleet's text as if it stood in a file of that name in a folder.
    pub fn from_text(name: &str, text: &str, folder: &Path) -> Result<Self, FleetError> {
        let origin = Origin {
            name: name.to_owned(),
            text,
        };
        let file: FleetFile = toml::from_str(text).map_err(|error| {
            let found = mistake(text, &error);
            let told = origin.error(found.offset, found.problem);
            match found.hint {
                Some(hint) => told.with_hint(hint),
                None => told,
            }
        })?;
        if file.image.is_empty() {
            let origin = origin.name;
            return Err(FleetError::Empty { origin });
        }
        let mut entries = Vec::with_capacity(file.image.len());
        for (place, image) in file.image.iter().enumerate() {
            entries.push(entry(&file, image, place, folder, &origin)?);
        }
        check_tags(&file, &entries, &origin)?;
        Ok(Self {
            file: origin.name,
            entries,
        })
    }
}
