//! Selection of the engine.

use wincimg_common::Named;
use wincimg_common::diagnose::{BoxError, Problem};
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
    /// The engine for all of the images: the requested one, else one that can build them; and what
    /// of them requires Windows, if that decides.
    pub(super) fn choose<'a>(
        asked_for: Option<Self>,
        mut plans: impl Iterator<Item = &'a Plan>,
    ) -> (Self, Option<Problem>) {
        if let Some(engine) = asked_for {
            return (engine, None);
        }
        match plans.find_map(|plan| check(plan).err()) {
            None => (Self::Direct, None),
            obstacle => (Self::Docker, obstacle),
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
