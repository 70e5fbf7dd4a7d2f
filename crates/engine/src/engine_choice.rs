//! Which engine makes images, and why.

use std::fmt;

use wincimg_common::diagnose::BoxError;
use wincimg_recipe::Plan;

use super::base_contents::Purpose;
use super::direct::{self, check};

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

    /// The engine that makes all of the images, and why it is that one: the one that was asked for,
    /// else the one that can.
    pub(super) fn choose<'a>(
        asked_for: Option<Self>,
        mut plans: impl Iterator<Item = &'a Plan>,
    ) -> (Self, EngineReason) {
        match asked_for {
            Some(engine) => (engine, EngineReason::AskedFor),
            None => match plans.find_map(|plan| check(plan).err()) {
                None => (Self::Direct, EngineReason::NothingNeedsWindows),
                Some(obstacle) => (Self::Docker, EngineReason::NeedsWindows(obstacle.into())),
            },
        }
    }

    /// Refuses what it cannot make, before anything is asked of a registry.
    pub(super) fn check_buildable(self, draft: &Plan) -> Result<(), BoxError> {
        match self {
            Self::Direct => direct::check_buildable(draft)?,
            Self::Docker => wincimg_dockerfile::check_renderable(draft)?,
        }
        Ok(())
    }

    /// What for it is looked inside bases.
    pub(super) fn purpose(self) -> Purpose {
        match self {
            Self::Docker => Purpose::Dockerfile,
            Self::Direct => Purpose::Layers,
        }
    }
}

/// Why it is that engine.
#[derive(Debug)]
pub enum EngineReason {
    /// The user named it.
    AskedFor,
    /// Nothing in the plan needs another.
    NothingNeedsWindows,
    /// This does.
    NeedsWindows(BoxError),
}

impl fmt::Display for EngineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AskedFor => f.write_str("requested"),
            Self::NothingNeedsWindows => f.write_str("nothing in the plan requires Windows"),
            Self::NeedsWindows(obstacle) => obstacle.fmt(f),
        }
    }
}
