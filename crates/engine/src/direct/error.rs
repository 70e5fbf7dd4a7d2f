//! Why the direct engine could not make an image, and what to do about it.

use wincimg_common::diagnose::{Diagnose, nearest};
use wincimg_common::foreign::Foreign;
use wincimg_iis::config::{ConfigError, EditError, SchemaError, Unsound};
use wincimg_layer::{GrantError, LayerError};
use wincimg_oci::document::DocumentError;
use wincimg_recipe::{path_blame, path_hint};
use wincimg_registry::InsideError;
use wincimg_registry::hive::WriteError;
use wincimg_windows::search_path::PathError;

/// How many names are listed where none is near what was typed.
const MOST_LISTED: usize = 24;

/// Why the direct engine could not make an image.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "build/failed")]
pub enum DirectError {
    /// The plan has commands, and there is no Windows here to run them.
    #[error(
        "the direct engine cannot run commands, which need Windows: step {number} of {count} is `{step}`"
    )]
    #[diagnose(code = "windows/needed", blame = Request, hint = "build with --engine docker, on a Docker daemon for Windows containers")]
    NeedsWindows {
        /// The first such step, counted from 1.
        number: usize,
        /// How many there are.
        count: usize,
        /// The step itself.
        step: String,
    },
    /// The base has an instruction for its children that is more than a setting.
    #[error(
        "the direct engine cannot carry out what {base} has for images that are built on it: ONBUILD {}",
        Foreign(trigger)
    )]
    #[diagnose(code = "windows/needed", blame = Request, hint = "build with --engine docker, on a Docker daemon for Windows containers")]
    OnBuild {
        /// The base.
        base: String,
        /// The instruction.
        trigger: String,
    },
    /// The base is an image of another system.
    #[error("the base {base} is for {os:?}: expected a Windows image")]
    #[diagnose(code = "base/no-windows")]
    NotWindows {
        /// The base.
        base: String,
        /// What its configuration says.
        os: String,
    },
    /// The base does not say when it was made, and nobody else did.
    #[error("the base {base} has the invalid creation time {text:?}")]
    #[diagnose(
        code = "base/document",
        hint = "set SOURCE_DATE_EPOCH to the seconds since 1970 to use instead"
    )]
    NoTime {
        /// The base.
        base: String,
        /// What its configuration says.
        text: String,
    },
    /// The site's `web.config` cannot take the settings.
    #[error("the settings of IIS cannot be merged into {path}")]
    #[diagnose(code = "recipe/iis", blame = Request)]
    WebConfig {
        /// The file, on disk or in the image.
        path: String,
        /// What is wrong with it.
        source: EditError,
    },
    /// Nobody knows how the base's IIS is configured.
    #[error(
        "the base {base} has to be looked into before its IIS can be configured, and that was not done"
    )]
    #[diagnose(
        code = "base/unseen",
        hint = "build with --engine docker, on a Docker daemon for Windows containers"
    )]
    IisUnseen {
        /// The base.
        base: String,
    },
    /// The base has no IIS.
    #[error("the base {base} has no IIS: it has no {file}")]
    #[diagnose(code = "base/no-iis", blame = Request, hint = "build on a base with IIS: base = \"aspnet\" or base = \"iis\"")]
    NoIis {
        /// The base.
        base: String,
        /// Its configuration.
        file: String,
    },
    /// The configuration of the base's IIS cannot be read.
    #[error("cannot read {file}")]
    #[diagnose(code = "base/unreadable")]
    IisConfig {
        /// The file, on disk or in the image.
        file: String,
        /// What is wrong with it.
        source: ConfigError,
    },
    /// What may stand in it cannot be read.
    #[error(transparent)]
    #[diagnose(code = "base/unreadable")]
    IisSchema(#[from] SchemaError),
    /// The configuration of the base's IIS does not take a change.
    #[error("the configuration of IIS cannot have {edit}")]
    #[diagnose(code = "recipe/iis", blame = Request, hint = meant(source))]
    IisEdit {
        /// The change.
        edit: String,
        /// Why not.
        source: EditError,
    },
    /// What is known of the base could not be read.
    #[error(transparent)]
    #[diagnose(code = "base/unreadable")]
    Inside(#[from] InsideError),
    /// What is added to PATH cannot be.
    #[error(transparent)]
    #[diagnose(code = "recipe/path", blame = path_blame(_0), hint = path_hint(_0))]
    Path(#[from] PathError),
    /// The registry changes cannot be in a delta hive.
    #[error("the registry changes cannot be written")]
    #[diagnose(code = "recipe/registry", blame = Request, hint = holder_hint(_0))]
    Hive(#[from] WriteError),
    /// Rights could not be granted.
    #[error(transparent)]
    #[diagnose(forward)]
    Grant(#[from] GrantError),
    /// The layer could not be written.
    #[error(transparent)]
    #[diagnose(forward, hint = None, excerpt = None)]
    Layer(#[from] LayerError),
    /// The image's documents do not fit together.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A thread of the program ended early.
    #[error("a thread stopped before the image was made")]
    Stopped,
}

fn holder_hint(error: &WriteError) -> Option<String> {
    let WriteError::UnknownHolder { holder, .. } = error else {
        return None;
    };
    Some(format!(
        "where the base has it, or where it may be created, add to the recipe: [[registry]] key = '{holder}'"
    ))
}

/// What was probably meant by a name that IIS does not know.
fn meant(error: &EditError) -> Option<String> {
    let (name, known) = match error {
        EditError::Unsound(
            Unsound::Section { name, known }
            | Unsound::Element { name, known, .. }
            | Unsound::Attribute { name, known, .. },
        )
        | EditError::NoSite { name, known }
        | EditError::NoPool { name, known } => (name, known),
        EditError::Undeclared { section, known } => (section, known),
        _ => return None,
    };
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => Some(format!("did you mean {near:?}?")),
        None if known.is_empty() || known.len() > MOST_LISTED => None,
        None => Some(format!("there is {}", known.join(", "))),
    }
}
