//! Errors passed between steps. Each has its own diagnosis, so callers rarely match on them.

use std::fmt;
use std::sync::Arc;

use wincimg_common::diagnose::{BoxError, Diagnose, Problem};
use wincimg_inspect::bases::ResolveError;

pub(super) fn not_built(image: impl fmt::Display, source: impl Into<BoxError>) -> BoxError {
    Problem::context(format!("cannot build {image}"), source).into()
}

/// The error of a search for a base, if it is one.
pub fn search(error: &BoxError) -> Option<&ResolveError> {
    let shared = error.downcast_ref::<SharedError>();
    let error = shared.map_or(error.as_ref(), |shared| shared.0.as_ref());
    error.downcast_ref()
}

/// An error shared by several callers that waited for one result.
#[derive(Debug, Clone, thiserror::Error, Diagnose)]
#[error(transparent)]
#[diagnose(forward)]
pub(super) struct SharedError(Arc<dyn Diagnose + Send + Sync>);

impl From<BoxError> for SharedError {
    fn from(error: BoxError) -> Self {
        Self(error.into())
    }
}
