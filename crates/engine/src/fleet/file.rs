//! Fleet files: a TOML list of images, with shared settings at the top.

mod entry;
mod order;
mod schema;
mod tags;

use std::fmt;
use std::path::Path;

use wincimg_common::diagnose::{Diagnose as _, Excerpt, Problem, line_and_column};
use wincimg_common::files::{LARGEST_TEXT, named_path_hint, read_text};
use wincimg_recipe::explain_toml_error;

use self::entry::entry;
use self::order::set_levels;
use self::schema::FleetFile;
use self::tags::check_tags;
use super::Fleet;

/// The JSON schema of fleet files, for editors.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(FleetFile)
}

/// A file's text, for errors with a line number.
struct FleetSource<'a> {
    name: String,
    text: &'a str,
}

impl FleetSource<'_> {
    fn error(&self, offset: usize, problem: impl fmt::Display) -> Problem {
        let (line, column) = line_and_column(self.text, offset);
        let problem = format!("{}:{line}:{column}: {problem}", self.name);
        Problem::request("fleet/invalid", problem)
            .excerpt(Some(Excerpt::at(self.text, offset).in_file(&self.name)))
    }

    fn line(&self, offset: usize) -> usize {
        line_and_column(self.text, offset).0
    }
}

impl Fleet {
    /// Reads a fleet file. Its paths are relative to its folder.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        if path == Path::new("-") {
            let problem = "cannot read a fleet from stdin";
            return Err(Problem::request("usage/arguments", problem)
                .hint("write it to a file, and name that"));
        }
        let text = read_text(path, LARGEST_TEXT).map_err(|error| {
            let problem = format!("cannot read the fleet {}", path.display());
            Problem::new("fleet/unreadable", problem)
                .hint_if(named_path_hint(path).or_else(|| error.diagnosis().hint))
                .source(error)
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::from_text(&path.display().to_string(), &text, folder)
    }

    /// Parses a fleet's text as if read from a file of that name in a folder.
    pub fn from_text(name: &str, text: &str, folder: &Path) -> Result<Self, Problem> {
        let origin = FleetSource {
            name: name.to_owned(),
            text,
        };
        let file: FleetFile = toml::from_str(text).map_err(|error| {
            let found = explain_toml_error(text, &error);
            let reported = origin.error(found.offset, found.problem);
            reported.hint_if(found.hint)
        })?;
        if file.image.is_empty() {
            let problem = format!("{} lists no images", origin.name);
            return Err(Problem::request("fleet/invalid", problem)
                .hint("add one: [[image]], and below it build = \"pause\""));
        }
        let mut entries = Vec::with_capacity(file.image.len());
        for (place, image) in file.image.iter().enumerate() {
            entries.push(entry(&file, image, place, folder, &origin)?);
        }
        check_tags(&file, &entries, &origin)?;
        set_levels(&file, &mut entries, &origin)?;
        Ok(Self {
            file: origin.name,
            entries,
        })
    }
}
