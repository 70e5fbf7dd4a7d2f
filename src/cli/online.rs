//! What commands have at hand while they speak to registries.

use std::sync::Arc;

use wincimg_common::progress::Progress;
use wincimg_engine::bases::BaseSearch;
use wincimg_engine::build::Means;
use wincimg_http::Downloads;
use wincimg_inspect::library::Library;
use wincimg_layer::Remembered;
use wincimg_oci::remote::Registry;

use super::failure::Failure;
use super::progress::display;
use super::registry_args::RegistryArgs;
use super::session::Session;

/// Registries, what is known of bases in them, and who is told.
pub(super) struct Online<'s> {
    pub(super) registry: Registry,
    pub(super) progress: Arc<dyn Progress>,
    pub(super) library: Library,
    downloads: Downloads,
    remembered: Remembered,
    bases: BaseSearch,
    session: &'s Session,
}

impl<'s> Online<'s> {
    pub(super) fn new(connection: &RegistryArgs, session: &'s Session) -> Result<Self, Failure> {
        let progress = display(session);
        let registry = connection.connect(Arc::clone(&progress))?;
        Ok(Self {
            library: session.cache.library(&registry, &progress),
            downloads: session.cache.downloads(),
            remembered: session.cache.remembered(),
            bases: BaseSearch::new(&registry),
            registry,
            progress,
            session,
        })
    }

    /// What plans are made with.
    pub(super) fn means(&self) -> Means<'_> {
        Means {
            registry: &self.registry,
            bases: &self.bases,
            library: &self.library,
            downloads: &self.downloads,
            remembered: &self.remembered,
            progress: &self.progress,
            tell: self.session,
        }
    }
}
