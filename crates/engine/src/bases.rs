//! Bases that images are built on, each resolved once for all images.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::try_join_all;
use tokio::sync::OnceCell;
use wincimg_common::diagnose::BoxError;
use wincimg_common::lock;
use wincimg_inspect::bases::{
    BaseMatch, BaseRegistry, BaseRepository, NamedBase, ResolveError, find_host_process,
    find_host_process_image, find_published_host_process,
};
use wincimg_oci::document::Image;
use wincimg_oci::reference::Reference;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::Location;
use wincimg_windows::compat::HostBuild;

use super::error::SharedError;
use super::plans::{HostGroups, PlannedBase, TargetHost};
use super::unserved::{UnservedHost, served};

/// Resolves bases, and caches the results. Clones share them.
#[derive(Clone)]
pub struct BaseSearch {
    pub(super) registry: RegistryClient,
    found: Arc<Mutex<HashMap<Key, Arc<OnceCell<BaseSearchResult>>>>>,
}

/// Query of a base: its name, hosts and match.
type Key = (Name, Vec<HostBuild>, BaseMatch);

#[derive(PartialEq, Eq, Hash)]
enum Name {
    /// As a recipe names it, of a registry.
    Recipe(String, BaseRegistry),
    /// As a Dockerfile or an image names it.
    Named(NamedBase),
}

/// Cached result of a query.
type BaseSearchResult = Result<Vec<PlannedBase>, SharedError>;

/// The bases of images for several hosts.
#[derive(Debug)]
pub struct HostBases {
    /// The hosts that have all of them, each with its own in the order of their names.
    pub found: Vec<(TargetHost, Vec<PlannedBase>)>,
    /// The other hosts.
    pub unserved: Vec<UnservedHost>,
}

/// A base that serves any host, for each of these.
fn of_any_host(
    reference: Option<Reference>,
    image: Image,
    hosts: &[HostBuild],
) -> Vec<PlannedBase> {
    let found = PlannedBase::new(reference.map(Location::Registry), image);
    vec![found; hosts.len().max(1)]
}

impl BaseSearch {
    /// A search without results.
    pub fn new(registry: &RegistryClient) -> Self {
        Self {
            registry: registry.clone(),
            found: Arc::default(),
        }
    }

    /// The base named by a recipe for each host; one without Windows inside serves any.
    pub(super) async fn for_recipe(
        &self,
        name: &str,
        registry: &BaseRegistry,
        hosts: &[HostBuild],
        matched: BaseMatch,
    ) -> Result<Vec<PlannedBase>, BoxError> {
        let search = async {
            let found = find_host_process(name, registry, &self.registry).await?;
            if let Some((reference, image)) = found {
                return Ok(of_any_host(reference, image, hosts));
            }
            let repository = registry.repository(name)?;
            let bases = BaseRepository::open_for(&self.registry, &repository, hosts).await?;
            let bases = bases.with_single_flavour(hosts, matched)?;
            let searches = hosts.iter();
            let searches = searches.map(|host| bases.resolve(*host, matched));
            let found = try_join_all(searches).await?;
            Ok(found.into_iter().map(PlannedBase::from).collect())
        };
        let name = Name::Recipe(name.to_owned(), registry.clone());
        let key = (name, hosts.to_vec(), matched);
        self.resolve_once(key, Box::pin(search)).await
    }

    /// The bases on which recipes' images for these hosts are built, by the names that the recipes
    /// have for them.
    pub async fn for_hosts(
        &self,
        names: &[&str],
        registry: &BaseRegistry,
        hosts: &[TargetHost],
    ) -> Result<HostBases, BoxError> {
        let plan = async |hosts: &[TargetHost]| {
            let builds: Vec<HostBuild> = hosts.iter().map(|host| host.build).collect();
            let finding = names
                .iter()
                .map(|name| self.for_builds(name, registry, &builds));
            let found: Vec<Vec<PlannedBase>> = try_join_all(finding).await?;
            let rows = hosts.iter().enumerate().map(|(place, host)| {
                let bases = found.iter().map(|bases| bases[place].clone());
                (host.clone(), bases.collect())
            });
            Ok::<_, BoxError>(rows.collect::<Vec<(TargetHost, Vec<PlannedBase>)>>())
        };
        // One host alone has nothing to continue with.
        let (found, unserved) = served(hosts, hosts.len() == 1, plan).await?;
        Ok(HostBases {
            found: found.unwrap_or_default(),
            unserved,
        })
    }

    async fn for_builds(
        &self,
        name: &str,
        registry: &BaseRegistry,
        hosts: &[HostBuild],
    ) -> Result<Vec<PlannedBase>, BoxError> {
        let matched = BaseMatch::Nearest;
        let sharing = HostGroups::new(hosts.to_vec(), true, matched);
        let searching = self.for_recipe(name, registry, &sharing.asked_for, matched);
        let mut found = searching.await?;
        let bases = hosts
            .iter()
            .map(|host| sharing.base_for(Some(*host), &mut found));
        Ok(bases.collect())
    }

    /// The base of an image's name for each host; one without Windows inside serves any.
    pub(super) async fn by_name(
        &self,
        named: &NamedBase,
        hosts: &[HostBuild],
        matched: BaseMatch,
    ) -> Result<Vec<PlannedBase>, BoxError> {
        let registry = &self.registry;
        let search = async {
            if let NamedBase::Exact(reference) = named
                && let Some((reference, image)) =
                    find_published_host_process(reference, registry).await?
            {
                return Ok(of_any_host(Some(reference), image, hosts));
            }
            let error = match named.resolve(registry, hosts, matched).await {
                Ok(found) => return Ok(found.into_iter().map(PlannedBase::from).collect()),
                Err(error) => error,
            };
            // Only here, because most images have Windows inside; what cannot be read fits nothing.
            if let (NamedBase::Exact(reference), ResolveError::NothingFits(_)) = (named, &error)
                && let Ok(Some((reference, image))) =
                    find_host_process_image(reference, registry).await
            {
                return Ok(of_any_host(Some(reference), image, hosts));
            }
            Err(error.into())
        };
        let key = (Name::Named(named.clone()), hosts.to_vec(), matched);
        self.resolve_once(key, Box::pin(search)).await
    }

    async fn resolve_once(
        &self,
        key: Key,
        search: impl Future<Output = Result<Vec<PlannedBase>, BoxError>>,
    ) -> Result<Vec<PlannedBase>, BoxError> {
        let cell = {
            let mut found = lock(&self.found);
            Arc::clone(found.entry(key).or_default())
        };
        let answer = cell.get_or_init(async || Ok(search.await?));
        Ok(answer.await.clone()?)
    }
}
