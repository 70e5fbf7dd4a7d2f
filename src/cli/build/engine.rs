//! Which engine builds, and why.

use std::fmt;

use clap::ValueEnum;

use crate::cli::failure::Failure;
use crate::dockerfile;
use crate::engine::direct::{DirectError, check, rehearse};
use crate::recipe::Plan;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum EngineArg {
    Auto,
    Docker,
    Direct,
}

/// The engine of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    Docker,
    Direct,
}

impl Engine {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Direct => "direct",
        }
    }
}

/// Why it is that engine.
pub(super) enum Reason {
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

impl EngineArg {
    /// The engine that makes all of the images, and why it is that one.
    pub(super) fn choose<'a>(self, mut plans: impl Iterator<Item = &'a Plan>) -> (Engine, Reason) {
        let mut obstacle = || plans.find_map(|plan| check(plan).err());
        match self {
            Self::Docker => (Engine::Docker, Reason::AskedFor),
            Self::Direct => (Engine::Direct, Reason::AskedFor),
            Self::Auto => match obstacle() {
                None => (Engine::Direct, Reason::NothingNeedsWindows),
                Some(obstacle) => (Engine::Docker, Reason::NeedsWindows(obstacle)),
            },
        }
    }

    /// Refuses what its engine cannot make, before anything is asked of a registry.
    pub(super) fn rehearse(self, drafts: &[Plan]) -> Result<(), Failure> {
        let (engine, _) = self.choose(drafts.iter());
        for draft in drafts {
            match engine {
                Engine::Direct => rehearse(draft)?,
                Engine::Docker => {
                    dockerfile::rehearse(draft)?;
                }
            }
        }
        Ok(())
    }
}
