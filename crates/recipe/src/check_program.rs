//! Is the program that a container runs among the files? A slip there shows on Windows alone, when the
//! first container starts.

use std::path::{Path, PathBuf};

use wincimg_common::diagnose::closest_match;
use wincimg_windows::path::ImagePath;

use super::plan::Plan;
use super::source::{EmbeddedProgram, FileSource};
use super::text::Text;
use super::{Recipe, RecipeError};

/// Folders in which a base has programs of its own.
const OF_WINDOWS: [&str; 6] = [
    "Windows",
    "Program Files",
    "Program Files (x86)",
    "ProgramData",
    "Users",
    "inetpub",
];

impl Recipe {
    /// Refuses a program in a folder that the recipe fills and that does not have it. A base by its
    /// short name has nothing there; of another base that is not known, nor of what commands make.
    pub(super) fn check_program(
        &self,
        plan: &Plan,
        base: &str,
        entrypoint: Option<&[Text]>,
    ) -> Result<(), RecipeError> {
        let Some((place, program)) = program(plan) else {
            return Ok(());
        };
        let is_elsewhere =
            base.contains(['/', ':']) || !plan.steps.is_empty() || plan.instructions.is_some();
        let Some(first) = program.components().first() else {
            return Ok(());
        };
        let is_of_windows = OF_WINDOWS.iter().any(|own| own.eq_ignore_ascii_case(first));
        if is_elsewhere || is_of_windows {
            return Ok(());
        }
        let mut lacking: Vec<(&Path, Vec<String>)> = Vec::new();
        for file in &plan.files {
            let Some(inside) = program.strip_prefix(&file.target) else {
                continue;
            };
            match &file.source {
                FileSource::Folder(source) if !inside.is_empty() => {
                    match find_program(&source.path, inside) {
                        Ok(()) => return Ok(()),
                        Err(names) => lacking.push((&source.path, names)),
                    }
                }
                _ if inside.is_empty() => return Ok(()),
                _ => {}
            }
        }
        let Some((folder, _)) = lacking.first() else {
            return Ok(());
        };
        let name = program.components().last().map_or("", String::as_str);
        let problem = format!(
            "the program {name:?} is not among the files of {}",
            folder.display()
        );
        let text = entrypoint.and_then(|words| words.get(place));
        let error = match text {
            Some(text) => self.error(text, problem),
            None => self.origin.error_at(0, problem),
        };
        let names = || {
            lacking
                .iter()
                .flat_map(|(_, names)| names)
                .map(String::as_str)
        };
        let programs: Vec<&str> = names().filter(|name| is_program(name)).take(5).collect();
        Err(error.with_hint(match closest_match(name, names()) {
            Some(near) => Some(format!("did you mean {near:?}?")),
            None if programs.is_empty() => None,
            None => Some(format!("its programs are: {}", programs.join(", "))),
        }))
    }
}

/// The program that a container runs, the one behind the shim where that is in front, and its place in
/// the entry point. Nothing where it is looked for in the `PATH`.
fn program(plan: &Plan) -> Option<(usize, ImagePath)> {
    let words = plan.entrypoint.as_ref()?;
    let is_shim = plan.files.iter().any(|file| {
        file.source == FileSource::Embedded(EmbeddedProgram::Shim)
            && words
                .first()
                .and_then(|word| word.parse().ok())
                .is_some_and(|word: ImagePath| word == file.target)
    });
    let place = if is_shim {
        words.iter().position(|word| word == "--")? + 1
    } else {
        0
    };
    Some((place, words.get(place)?.parse().ok()?))
}

/// Finds a file by names that Windows compares, or says what there is in its place. Windows adds `.exe`
/// to a program without an extension.
fn find_program(folder: &Path, names: &[String]) -> Result<(), Vec<String>> {
    let mut folder: PathBuf = folder.to_owned();
    for (index, name) in names.iter().enumerate() {
        let is_last = index + 1 == names.len();
        let there: Vec<String> = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        let fits = |other: &&String| {
            other.eq_ignore_ascii_case(name)
                || (is_last && other.eq_ignore_ascii_case(&format!("{name}.exe")))
        };
        match there.iter().find(fits) {
            Some(found) => folder.push(found),
            None => return Err(there),
        }
    }
    Ok(())
}

fn is_program(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| {
        ["exe", "cmd", "bat", "com"]
            .iter()
            .any(|own| extension.eq_ignore_ascii_case(own))
    })
}
