//! Why the direct engine could not make an image, and what to do about it.

use crate::diagnose::{Blame, Diagnose};
use crate::foreign::Foreign;
use crate::layer::LayerError;
use crate::oci::document::DocumentError;
use crate::windows::hive::WriteError;
use crate::windows::iis::webconfig::WebConfigError;
use crate::windows::inside::InsideError;

/// Why the direct engine could not make an image.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// The plan has commands, and there is no Windows here to run them.
    #[error(
        "the direct engine cannot run commands, which need Windows: step {number} of {count} is `{step}`"
    )]
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
    OnBuild {
        /// The base.
        base: String,
        /// The instruction.
        trigger: String,
    },
    /// The base is an image of another system.
    #[error("the base {base} is for {os:?}: expected a Windows image")]
    NotWindows {
        /// The base.
        base: String,
        /// What its configuration says.
        os: String,
    },
    /// The base does not say when it was made, and nobody else did.
    #[error("the base {base} has the invalid creation time {text:?}")]
    NoTime {
        /// The base.
        base: String,
        /// What its configuration says.
        text: String,
    },
    /// A setting is one of the web server's own, which only its tools can change.
    #[error("the direct engine cannot set {setting}, which needs appcmd on Windows")]
    NeedsAppcmd {
        /// The setting by its name.
        setting: String,
    },
    /// The site's `web.config` cannot take the settings.
    #[error("the settings of IIS cannot be merged into {path}")]
    WebConfig {
        /// The file, on disk or in the image.
        path: String,
        /// What is wrong with it.
        source: WebConfigError,
    },
    /// What is known of the base could not be read.
    #[error(transparent)]
    Inside(#[from] InsideError),
    /// The registry changes cannot be in a delta hive.
    #[error("the registry changes cannot be written")]
    Hive(#[from] WriteError),
    /// The layer could not be written.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// The image's documents do not fit together.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A thread of the program ended early.
    #[error("a thread stopped before the image was made")]
    Stopped,
}

impl Diagnose for DirectError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NeedsWindows { .. } | Self::OnBuild { .. } | Self::NeedsAppcmd { .. } => Some(
                "build with --engine docker, on a Docker daemon for Windows containers".to_owned(),
            ),
            Self::NoTime { .. } => {
                Some("set SOURCE_DATE_EPOCH to the seconds since 1970 to use instead".to_owned())
            }
            Self::Hive(WriteError::UnknownHolder { holder, .. }) => Some(format!(
                "where the base has it, or where it may be created, add to the recipe: [[registry]] key = '{holder}'"
            )),
            _ => None,
        }
    }

    fn blame(&self) -> Blame {
        match self {
            Self::NeedsWindows { .. }
            | Self::OnBuild { .. }
            | Self::NeedsAppcmd { .. }
            | Self::WebConfig { .. }
            | Self::Hive(_) => Blame::Request,
            Self::Layer(error) => error.blame(),
            _ => Blame::Circumstances,
        }
    }
}
