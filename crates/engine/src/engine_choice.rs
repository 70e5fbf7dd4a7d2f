//! Selection of the engine.

use std::fmt;

use wincimg_common::Named;
use wincimg_common::diagnose::BoxError;
use wincimg_recipe::Plan;

use super::base_contents::Purpose;
use super::direct::{self, check};

/// An engine that builds images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Named)]
#[named(rename_all = "lowercase")]
pub enum Engine {
    /// A Docker daemon on Windows.
    Docker,
    /// Layers are written without Windows.
    Direct,
}

impl Engine {
    /// The engine for all of the images, and the reason: the requested one, else one that can build
    /// them.
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

    /// Rejects what the engine cannot build, before a registry is contacted.
    pub(super) fn check_buildable(self, draft: &Plan) -> Result<(), BoxError> {
        match self {
            Self::Direct => direct::check_buildable(draft)?,
            Self::Docker => wincimg_dockerfile::check_renderable(draft)?,
        }
        Ok(())
    }

    /// Reason for reading the contents of bases.
    pub(super) fn purpose(self) -> Purpose {
        match self {
            Self::Docker => Purpose::Dockerfile,
            Self::Direct => Purpose::Layers,
        }
    }
}

/// Reason for the selection of an engine.
#[derive(Debug)]
pub enum EngineReason {
    /// The user requested it.
    AskedFor,
    /// No part of the plan requires another.
    NothingNeedsWindows,
    /// This requires Windows.
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
