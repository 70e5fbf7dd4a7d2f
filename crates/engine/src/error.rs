//! Why an engine could not make an image.

use std::error::Error;
use std::fmt;

use wincimg_common::diagnose::Diagnose;

/// An image that could not be made.
#[derive(Debug, Diagnose)]
#[diagnose(forward)]
pub struct EngineError {
    /// The image, in the words of whoever waits for it.
    image: String,
    source: Box<dyn Diagnose + Send + Sync>,
}

impl EngineError {
    /// An image that an engine could not make, and the engine's own reason.
    pub(super) fn new(
        image: impl Into<String>,
        source: impl Diagnose + Send + Sync + 'static,
    ) -> Self {
        Self {
            image: image.into(),
            source: Box::new(source),
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not build {}", self.image)
    }
}

impl Error for EngineError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.source.as_ref())
    }
}
