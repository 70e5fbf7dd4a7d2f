//! Why a build could not be planned.

use std::sync::Arc;

use wincimg_common::diagnose::Diagnose;
use wincimg_dockerfile::stages::StageError;
use wincimg_inspect::TakeError;
use wincimg_inspect::bases::{HostProcessError, NameError, ResolveError};
use wincimg_recipe::{NeedsWindowsInside, RecipeError};

use crate::downloads::SupplyError;
use crate::inside::LookError;

/// Why a build could not be planned.
#[derive(Debug, thiserror::Error, Diagnose)]
pub enum PlanError {
    /// The recipe does not fit what was asked.
    #[error(transparent)]
    #[diagnose(forward)]
    Recipe(#[from] RecipeError),
    /// The Dockerfile cannot be carried out.
    #[error(transparent)]
    #[diagnose(forward)]
    Dockerfile(#[from] StageError),
    /// Files of servers could not be had.
    #[error(transparent)]
    #[diagnose(forward)]
    Supply(Box<SupplyError>),
    /// Files of another image could not be had.
    #[error(transparent)]
    #[diagnose(forward)]
    Take(#[from] TakeError),
    /// The recipe's base is not the name of one.
    #[error(transparent)]
    #[diagnose(forward)]
    Name(#[from] NameError),
    /// The base is for `HostProcess` containers, and it could not be had.
    #[error(transparent)]
    #[diagnose(forward)]
    HostProcess(#[from] HostProcessError),
    /// The recipe needs Windows inside, and its base has none.
    #[error(transparent)]
    #[diagnose(code = "base/no-windows", blame = Request, hint = "leave it out, or build on a base with Windows, such as nanoserver")]
    NeedsWindowsInside(#[from] NeedsWindowsInside),
    /// No base fits, or none could be looked for.
    #[error(transparent)]
    #[diagnose(forward)]
    Resolve(#[from] ResolveError),
    /// Nobody could look inside a base.
    #[error(transparent)]
    #[diagnose(forward)]
    Look(Box<LookError>),
    /// What others heard too that want the same base.
    #[error(transparent)]
    #[diagnose(forward)]
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

impl From<LookError> for PlanError {
    fn from(error: LookError) -> Self {
        Self::Look(Box::new(error))
    }
}

impl From<SupplyError> for PlanError {
    fn from(error: SupplyError) -> Self {
        Self::Supply(Box::new(error))
    }
}
