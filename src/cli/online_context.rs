//! Context of commands that use registries.

use std::sync::Arc;

use wincimg_common::progress::Progress;
use wincimg_engine::bases::BaseSearch;
use wincimg_engine::build::BuildContext;
use wincimg_http::Downloads;
use wincimg_inspect::facts_provider::BaseFactsProvider;
use wincimg_layer::DiffIdCache;
use wincimg_oci::remote::RegistryClient;

use super::command_context::Session;
use super::error::Failure;
use super::progress::display;
use super::registry_args::RegistryArgs;

/// Registries, facts about their bases, and the session.
pub(super) struct Online<'s> {
    pub(super) registry: RegistryClient,
    pub(super) progress: Arc<dyn Progress>,
    pub(super) library: BaseFactsProvider,
    downloads: Downloads,
    remembered: DiffIdCache,
    bases: BaseSearch,
    session: &'s Session,
}

impl<'s> Online<'s> {
    pub(super) fn new(connection: &RegistryArgs, session: &'s Session) -> Result<Self, Failure> {
        let progress = display(session);
        let registry = connection.connect(Arc::clone(&progress))?;
        Ok(Self {
            library: session.cache.facts_provider(&registry, &progress),
            downloads: session.cache.downloads(),
            remembered: session.cache.diff_id_cache(),
            bases: BaseSearch::new(&registry),
            registry,
            progress,
            session,
        })
    }

    /// Context for plans.
    pub(super) fn build_context(&self) -> BuildContext<'_> {
        BuildContext {
            registry: &self.registry,
            bases: &self.bases,
            library: &self.library,
            downloads: &self.downloads,
            remembered: &self.remembered,
            progress: &self.progress,
            reporter: self.session,
        }
    }
}
