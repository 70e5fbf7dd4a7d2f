//! The plans of a build: one recipe for several hosts, each on the base image that fits it.

use futures_util::future::try_join_all;

use crate::diagnose::{Blame, Diagnose};
use crate::oci::base::{
    BaseImage, BaseRegistry, BaseRepository, Match, NameError, ResolveError, SetAside,
};
use crate::oci::remote::Registry;
use crate::recipe::{Plan, PlanBase, Recipe, RecipeError, Settings};
use crate::windows::compat::HostBuild;

/// A recipe and the hosts that its images are for.
pub struct BuildRequest<'a> {
    /// The recipe.
    pub recipe: &'a Recipe,
    /// What it is filled in with.
    pub settings: Settings<'a>,
    /// The hosts, one image each.
    pub hosts: &'a [HostBuild],
    /// Where base images come from.
    pub base_registry: &'a BaseRegistry,
    /// Which base images will do.
    pub wanted: Match,
}

/// An image that is planned, on a base that was found.
#[derive(Debug, Clone)]
pub struct PlannedImage {
    /// The base, pinned.
    pub base: BaseImage,
    /// What is made of it.
    pub plan: Plan,
    /// Base images that were passed over, and why.
    pub set_aside: Vec<SetAside>,
}

/// Why a build could not be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The recipe does not fit what was asked.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The recipe's base is not the name of one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No base fits, or none could be looked for.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
}

impl Diagnose for PlanError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Recipe(error) => error.hint(),
            Self::Name(error) => error.hint(),
            Self::Resolve(error) => error.hint(),
        }
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Recipe(error) => error.blame(),
            Self::Name(error) => error.blame(),
            Self::Resolve(error) => error.blame(),
        }
    }
}

impl BuildRequest<'_> {
    /// Finds all bases at once and fills the recipe in for each.
    pub async fn plan(&self, registry: &Registry) -> Result<Vec<PlannedImage>, PlanError> {
        let base = self.recipe.base(&self.settings)?;
        let repository = self.base_registry.repository(&base)?;
        let bases = BaseRepository::open(registry, &repository).await?;
        let searches = self
            .hosts
            .iter()
            .map(|host| bases.resolve(*host, self.wanted));
        let found = try_join_all(searches).await?;
        self.hosts
            .iter()
            .zip(found)
            .map(|(host, resolution)| {
                let base = resolution.base;
                let container = &base.image.config().config;
                let plan_base = PlanBase {
                    name: format!(
                        "{}/{}:{}",
                        base.reference.registry(),
                        base.reference.repository(),
                        base.reference.tag().unwrap_or_default()
                    ),
                    digest: base.digest().to_string(),
                    os_version: base.os_version,
                    shell: container.shell.clone(),
                    user: container.user.clone().filter(|user| !user.is_empty()),
                };
                Ok(PlannedImage {
                    plan: self.recipe.plan(plan_base, host.version, &self.settings)?,
                    set_aside: resolution.set_aside,
                    base,
                })
            })
            .collect()
    }
}
