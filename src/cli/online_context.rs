//! Context of commands that use registries.

use wincimg_engine::bases::BaseSearch;
use wincimg_engine::build::BuildContext;

use crate::cli::prelude::*;

/// The services of a command, with its registry flags.
pub(super) fn online<'s>(
    connection: &RegistryArgs,
    session: &'s Session,
) -> Result<BuildContext<'s>, Failure> {
    let progress = display(session);
    let registry = connection.connect_with(Arc::clone(&progress))?;
    session.cache.enable_document_cache(&registry);
    Ok(BuildContext {
        bases: BaseSearch::new(&registry),
        library: session.cache.facts_provider(&registry, &progress),
        downloads: session.cache.downloads(),
        remembered: session.cache.diff_id_cache(),
        cache: session.cache.folder(),
        registry,
        progress,
        reporter: session,
    })
}
