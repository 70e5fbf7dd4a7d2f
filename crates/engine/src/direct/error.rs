//! Errors of the direct engine, with their hints.

use wincimg_common::diagnose::{Blame, Diagnose, Problem, closest_match};
use wincimg_iis::config::{EditError, SchemaError, UnknownName};
use wincimg_layer::{GrantError, LayerError};
use wincimg_recipe::{path_blame, path_hint};
use wincimg_registry::BaseReadError;
use wincimg_registry::hive::WriteError;
use wincimg_windows::search_path::SearchPathError;

/// Maximum number of names to list if none is close to the typed one.
const MAX_LISTED: usize = 24;

/// What makes an image that requires Windows.
pub(super) const ON_WINDOWS: &str =
    "build it with `wincimg build --engine docker`, on a Docker daemon for Windows containers";

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
    /// Rights could not be granted.
    #[error(transparent)]
    #[diagnose(forward, hint = grant_hint(_0))]
    Grant(#[from] GrantError),
    /// The layer could not be written.
    #[error(transparent)]
    #[diagnose(forward, hint = None, excerpt = None)]
    Layer(#[from] LayerError),
    /// Other errors, each with one cause.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

fn grant_hint(error: &GrantError) -> Option<String> {
    let hint = match error {
        GrantError::Unknown { .. } | GrantError::OfBase { .. } | GrantError::Unsupported { .. } => {
            ON_WINDOWS
        }
        GrantError::Nowhere { .. } => "add it with [[files]], or set it as the working_dir",
        GrantError::TooMany { .. } => "add inherit = \"none\", or name a folder further down",
        GrantError::Unreadable { .. } | GrantError::Inside(_) => return None,
        GrantError::Layer(error) => return error.diagnosis().hint,
    };
    Some(hint.to_owned())
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

/// Hint with the nearest known name.
fn meant(error: &EditError) -> Option<String> {
    let (EditError::Unknown(UnknownName { name, known, .. })
    | EditError::NoPool(UnknownName { name, known, .. })
    | EditError::Undeclared(UnknownName { name, known, .. })) = error
    else {
        return None;
    };
    match closest_match(name, known.iter().map(String::as_str)) {
        Some(near) => Some(format!("did you mean {near:?}?")),
        None if known.is_empty() || known.len() > MAX_LISTED => None,
        None => Some(format!("known names: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_that_a_layer_cannot_grant_have_a_way_out() {
        let path = || r"C:\x".parse().unwrap();
        let hint = |error: GrantError| DirectError::from(error).diagnosis().hint.unwrap();
        assert!(hint(GrantError::Unknown { path: path() }).contains("--engine docker"));
        assert!(hint(GrantError::Nowhere { path: path() }).contains("[[files]]"));
        let many = GrantError::TooMany {
            path: path(),
            count: 5000,
        };
        assert!(hint(many).contains("inherit"));
    }
}
