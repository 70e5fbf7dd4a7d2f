//! Errors of the direct engine, with their hints.

use wincimg_common::diagnose::{Blame, Diagnose, Problem, closest_match};
use wincimg_iis::config::{EditError, SchemaError, UnknownName};
use wincimg_layer::{LayerError, ON_WINDOWS};
use wincimg_recipe::{path_blame, path_hint};
use wincimg_registry::BaseReadError;
use wincimg_registry::hive::WriteError;
use wincimg_windows::search_path::SearchPathError;

/// Maximum number of names to list if none is close to the typed one.
const MAX_LISTED: usize = 24;

/// An image that the direct engine cannot build.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "build/failed")]
pub(super) enum DirectError {
    /// The IIS schema of the base cannot be read.
    #[error(transparent)]
    #[diagnose(code = "base/unreadable")]
    IisSchema(#[from] SchemaError),
    /// The contents of the base cannot be read.
    #[error(transparent)]
    #[diagnose(code = "base/unreadable")]
    Inside(#[from] BaseReadError),
    /// An entry cannot be added to PATH.
    #[error(transparent)]
    #[diagnose(code = "recipe/path", blame = path_blame(_0), hint = path_hint(_0))]
    Path(#[from] SearchPathError),
    /// The registry changes cannot be in a delta hive.
    #[error("the registry changes cannot be written")]
    #[diagnose(code = "recipe/registry", blame = Request, hint = holder_hint(_0))]
    Hive(#[from] WriteError),
    /// The layer could not be written.
    #[error(transparent)]
    #[diagnose(forward, hint = None, excerpt = None)]
    Layer(#[from] LayerError),
    /// Other errors, each with one cause.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

fn holder_hint(error: &WriteError) -> Option<String> {
    let WriteError::UnknownHolder { holder, .. } = error else {
        return None;
    };
    Some(format!(
        "if the base has that key, or may get it, add to the recipe: [[registry]] key = '{holder}'"
    ))
}

/// Error for what only Windows can do.
pub(super) fn needs_windows(problem: String) -> Problem {
    Problem::new("windows/needed", problem)
        .blame(Blame::Windows)
        .hint(ON_WINDOWS)
}

/// Error for a change that the base's IIS configuration does not accept.
pub(super) fn refused(edit: &str, error: EditError) -> Problem {
    let problem = format!("the configuration of IIS does not accept {edit}");
    let hint = meant(&error);
    Problem::request("recipe/iis", problem)
        .hint_if(hint)
        .source(error)
}

/// Hint with the section of the same last name, or of a similar one in the same group.
fn meant_section(section: &UnknownName) -> Option<String> {
    let (group, last) = divided(&section.name);
    let same = |path: &&String| divided(path).1.eq_ignore_ascii_case(last);
    let near = section.known.iter().find(same).cloned().or_else(|| {
        let is_near = |path: &&String| group.is_empty() || divided(path).0 == group;
        let known = || section.known.iter().filter(is_near);
        let near = closest_match(last, known().map(|path| divided(path).1))?;
        known().find(|path| divided(path).1 == near).cloned()
    });
    near.map(|near| format!("did you mean {near:?}?"))
}

/// The group and the last name of a section.
fn divided(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Hint with the nearest known name.
fn meant(error: &EditError) -> Option<String> {
    let (name, known) = match error {
        EditError::Unknown(unknown) | EditError::NoPool(unknown) => (&unknown.name, &unknown.known),
        EditError::Undeclared(section) => return meant_section(section),
        EditError::File(_) | EditError::Refused(_) => return None,
    };
    match closest_match(name, known.iter().map(String::as_str)) {
        Some(near) => Some(format!("did you mean {near:?}?")),
        None if known.is_empty() || known.len() > MAX_LISTED => None,
        None => Some(format!("known names: {}", known.join(", "))),
    }
}
