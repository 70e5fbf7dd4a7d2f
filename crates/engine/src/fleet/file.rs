//! Fleet files: a TOML list of images, with shared settings at the top.

mod entry;
mod schema;
mod tags;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use wincimg_common::diagnose::{Diagnose as _, Excerpt, Problem, line_and_column};
use wincimg_common::files::{LARGEST_TEXT, named_path_hint, read_text};
use wincimg_oci::reference::parse_reference;
use wincimg_recipe::explain_toml_error;

use self::entry::entry;
use self::schema::FleetFile;
use self::tags::check_tags;
use super::{Fleet, FleetEntry};

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

/// The label of an entry with this name of an image; none for a name with a digest, which no build
/// changes.
fn label_of(name: &str) -> Option<String> {
    let reference = parse_reference(name).ok()?;
    reference.digest().is_none().then(|| reference.to_string())
}

/// Keeps the images below that are in the file, sets the levels, and rejects an image that is below
/// itself.
fn set_levels(
    file: &FleetFile,
    entries: &mut [FleetEntry],
    origin: &FleetSource<'_>,
) -> Result<(), Problem> {
    let labels = entries.iter().map(FleetEntry::label).zip(0..);
    let places: HashMap<String, usize> = labels.collect();
    for entry in &mut *entries {
        entry.below.retain(|label| places.contains_key(label));
    }
    let mut waiting: BTreeSet<usize> = (0..entries.len()).collect();
    for level in 0.. {
        let waits = |label: &String| waiting.contains(&places[label]);
        let ready = |place: &&usize| !entries[**place].below.iter().any(waits);
        let next: Vec<usize> = waiting.iter().filter(ready).copied().collect();
        if next.is_empty() {
            break;
        }
        for place in next {
            waiting.remove(&place);
            entries[place].level = level;
        }
    }
    // What waits is on a circle, or above one.
    let mut circles = waiting
        .iter()
        .filter_map(|place| Some((*place, circle(entries, &places, *place)?)));
    let Some((place, above)) = circles.next() else {
        return Ok(());
    };
    let label = entries[place].label();
    let through = if above == place {
        String::new()
    } else {
        format!(", through {}", entries[above].label())
    };
    let problem = format!("{label} is built on itself{through}");
    let hint = "set another name or tag for one of the images".to_owned();
    Err(origin.error(file.image[place].start(), problem).hint(hint))
}

/// The entry that is made of this one, which is made of it in turn.
fn circle(entries: &[FleetEntry], places: &HashMap<String, usize>, place: usize) -> Option<usize> {
    let mut seen = HashSet::new();
    let mut open = vec![place];
    while let Some(above) = open.pop() {
        for below in entries[above].below.iter().map(|label| places[label]) {
            if below == place {
                return Some(above);
            }
            if seen.insert(below) {
                open.push(below);
            }
        }
    }
    None
}
