//! Why a build could not be planned.

use std::sync::Arc;

use wincimg_common::diagnose::{Blame, Diagnose, Excerpt};
use wincimg_dockerfile::stages::StageError;
use wincimg_inspect::TakeError;
use wincimg_inspect::bases::{HostProcessError, NameError, ResolveError};
use wincimg_recipe::{NeedsWindowsInside, RecipeError};

use crate::downloads::SupplyError;

/// Why a build could not be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The recipe does not fit what was asked.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The Dockerfile cannot be carried out.
    #[error(transparent)]
    Dockerfile(#[from] StageError),
    /// Files of servers could not be had.
    #[error(transparent)]
    Supply(Box<SupplyError>),
    /// Files of another image could not be had.
    #[error(transparent)]
    Take(#[from] TakeError),
    /// The recipe's base is not the name of one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The base is for `HostProcess` containers, and it could not be had.
    #[error(transparent)]
    HostProcess(#[from] HostProcessError),
    /// The recipe needs Windows inside, and its base has none.
    #[error(transparent)]
    NeedsWindowsInside(#[from] NeedsWindowsInside),
    /// No base fits, or none could be looked for.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// What others heard too that want the same base.
    #[error(transparent)]
    Shared(Arc<Self>),
}

impl PlanError {
    /// Why no base was found, where that is what is wrong.
    pub fn search(&self) -> Option<&ResolveError> {
        match self {
            Self::Resolve(error) => Some(error),
            Self::Shared(error) => error.search(),
            _ => None,
        }
    }
}

impl From<SupplyError> for PlanError {
    fn from(error: SupplyError) -> Self {
        Self::Supply(Box::new(error))
    }
}

impl Diagnose for PlanError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Recipe(error) => error.hint(),
            Self::Dockerfile(error) => error.hint(),
            Self::Supply(error) => error.hint(),
            Self::Take(error) => error.hint(),
            Self::Name(error) => error.hint(),
            Self::HostProcess(error) => error.hint(),
            Self::NeedsWindowsInside(_) => {
                Some("leave it out, or build on a base with Windows, such as nanoserver".to_owned())
            }
            Self::Resolve(error) => error.hint(),
            Self::Shared(error) => error.hint(),
        }
    }

    fn excerpt(&self) -> Option<Excerpt> {
        match self {
            Self::Recipe(error) => error.excerpt(),
            Self::Dockerfile(error) => error.excerpt(),
            Self::Resolve(error) => error.excerpt(),
            Self::Shared(error) => error.excerpt(),
            _ => None,
        }
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Recipe(error) => error.blame(),
            Self::Dockerfile(error) => error.blame(),
            Self::Supply(error) => error.blame(),
            Self::Take(error) => error.blame(),
            Self::Name(error) => error.blame(),
            Self::HostProcess(error) => error.blame(),
            Self::NeedsWindowsInside(_) => Blame::Request,
            Self::Resolve(error) => error.blame(),
            Self::Shared(error) => error.blame(),
        }
    }
}
