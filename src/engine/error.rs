//! Why the direct engine could not make an image, and what to do about it.

use crate::diagnose::{Blame, Diagnose};
use crate::layer::LayerError;
use crate::oci::copy::CopyError;
use crate::oci::document::DocumentError;
use crate::oci::store::StoreError;
use crate::windows::hive::WriteError;
use crate::windows::iis::webconfig::WebConfigError;

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
    /// The base is no Windows image.
    #[error("the base {base} is no Windows image but one for {os:?}")]
    NotWindows {
        /// The base.
        base: String,
        /// What its configuration says.
        os: String,
    },
    /// The base does not say when it was made, and nobody else did.
    #[error("the base {base} was created at {text:?}, which is no time: set SOURCE_DATE_EPOCH")]
    NoTime {
        /// The base.
        base: String,
        /// What its configuration says.
        text: String,
    },
    /// A setting is one of the web server's own, which only its tools can change.
    #[error("the direct engine cannot set {setting}, which needs Windows: appcmd does it")]
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
    /// The registry changes cannot be in a delta hive.
    #[error("the registry changes cannot be written")]
    Hive(#[from] WriteError),
    /// The layer could not be written.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// The image's documents do not fit together.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The image could not be brought to its place.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// A place failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Diagnose for DirectError {
    fn hint(&self) -> Option<String> {
        self.hint()
    }

    fn blame(&self) -> Blame {
        match self {
            Self::NeedsWindows { .. } | Self::NeedsAppcmd { .. } | Self::WebConfig { .. } => {
                Blame::Request
            }
            Self::Layer(error) => error.blame(),
            _ => Blame::Circumstances,
        }
    }
}

impl DirectError {
    /// What to type next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Copy(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::NeedsWindows { .. } | Self::NeedsAppcmd { .. } => Some(
                "build with --engine docker, on a Docker daemon for Windows containers".to_owned(),
            ),
            _ => None,
        }
    }
}
