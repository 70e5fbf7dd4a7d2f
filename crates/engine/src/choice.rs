//! Which engine makes images, and why.

use std::fmt;

use wincimg_common::diagnose::Diagnose;
use wincimg_dockerfile::RenderError;
use wincimg_recipe::Plan;

use super::direct::{self, DirectError, check};
use super::error::EngineError;

/// Which engine is to make images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wish {
    /// The one that can.
    #[default]
    Any,
    /// This one.
    One(Engine),
}

/// Who makes images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A Docker daemon on Windows.
    Docker,
    /// The layers are written here.
    Direct,
}

impl Engine {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Direct => "direct",
        }
    }
}

/// Why it is that engine.
#[derive(Debug)]
pub enum Reason {
    /// The user named it.
    AskedFor,
    /// Nothing in the plan needs another.
    NothingNeedsWindows,
    /// This does.
    NeedsWindows(DirectError),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AskedFor => f.write_str("asked for"),
            Self::NothingNeedsWindows => f.write_str("nothing in the plan needs Windows"),
            Self::NeedsWindows(obstacle) => obstacle.fmt(f),
        }
    }
}

/// Why an engine cannot make what is planned, whatever the base is.
#[derive(Debug, thiserror::Error, Diagnose)]
pub enum RehearsalError {
    /// The layers cannot be written.
    #[error(transparent)]
    #[diagnose(forward)]
    Direct(#[from] EngineError),
    /// It cannot be said in a Dockerfile.
    #[error(transparent)]
    #[diagnose(forward)]
    Docker(#[from] RenderError),
}

impl Wish {
    /// The engine that makes all of the images, and why it is that one.
    pub fn choose<'a>(self, mut plans: impl Iterator<Item = &'a Plan>) -> (Engine, Reason) {
        match self {
            Self::One(engine) => (engine, Reason::AskedFor),
            Self::Any => match plans.find_map(|plan| check(plan).err()) {
                None => (Engine::Direct, Reason::NothingNeedsWindows),
                Some(obstacle) => (Engine::Docker, Reason::NeedsWindows(obstacle)),
            },
        }
    }

    /// Refuses what its engine cannot make, before anything is asked of a registry.
    pub fn rehearse(self, drafts: &[Plan]) -> Result<(), RehearsalError> {
        let (engine, _) = self.choose(drafts.iter());
        for draft in drafts {
            match engine {
                Engine::Direct => direct::rehearse(draft)?,
                Engine::Docker => wincimg_dockerfile::rehearse(draft).map(drop)?,
            }
        }
        Ok(())
    }
}
