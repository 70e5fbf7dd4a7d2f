//! Hosts without an image: they are set aside with the reason, and the others continue.

use std::collections::BTreeMap;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use wincimg_common::diagnose::BoxError;
use wincimg_inspect::bases::ResolveError;
use wincimg_windows::compat::{HostBuild, generation};
use wincimg_windows::version::WindowsVersion;

use crate::build::BuildContext;
use crate::error::search;
use crate::fleet::ReportedError;
use crate::plans::{BuildRequest, PlannedImage, TargetHost};

/// A host without an image, and the reason.
#[derive(Debug, Clone)]
pub struct UnservedHost {
    /// The host.
    pub host: TargetHost,
    /// The reason.
    pub error: ReportedError,
}

impl Serialize for UnservedHost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("UnservedHost", 4)?;
        fields.serialize_field("host_build", &self.host.build.to_string())?;
        fields.serialize_field("nodes", &self.host.nodes)?;
        fields.serialize_field("problem", &self.error.problem)?;
        fields.serialize_field("hint", &self.error.hint)?;
        fields.end()
    }
}

/// The host without a matching base, if that is the error.
pub(crate) fn host_without_base(error: &BoxError) -> Option<HostBuild> {
    match search(error)? {
        ResolveError::NothingFits(nothing) => Some(nothing.host),
        _ => None,
    }
}

/// Moves the hosts of a build to those without an image. Returns the error if they are not among
/// the hosts.
pub(crate) fn set_aside(
    hosts: &mut Vec<TargetHost>,
    build: HostBuild,
    error: BoxError,
    unserved: &mut Vec<UnservedHost>,
) -> Result<(), BoxError> {
    let (own, others): (Vec<_>, Vec<_>) = std::mem::take(hosts)
        .into_iter()
        .partition(|host| host.build == build);
    *hosts = others;
    if own.is_empty() {
        return Err(error);
    }
    let error = ReportedError::from(error);
    unserved.extend(own.into_iter().map(|host| UnservedHost {
        host,
        error: error.clone(),
    }));
    Ok(())
}

impl BuildRequest {
    /// Plans the images of all hosts that have a base. The others leave the request and are
    /// returned; if no host has one, or all are required, the first of them is the error.
    pub async fn plan_served(
        &mut self,
        means: &BuildContext<'_>,
    ) -> Result<(Vec<PlannedImage>, Vec<UnservedHost>), BoxError> {
        let mut unserved = Vec::new();
        loop {
            let error = match self.plan(means).await {
                Ok(images) => return Ok((images, unserved)),
                Err(error) => error,
            };
            let without = host_without_base(&error);
            let is_only = self.hosts.len() == 1 && unserved.is_empty();
            let Some(without) = without.filter(|_| !self.all_or_nothing && !is_only) else {
                return Err(error);
            };
            set_aside(&mut self.hosts, without, error, &mut unserved)?;
            if self.hosts.is_empty() {
                return Ok((Vec::new(), unserved));
            }
        }
    }
}

/// A host that an index cannot serve, because it has one image per Windows build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexConflict {
    pub(crate) host: TargetHost,
    /// The version of the image that the index has for the host's build.
    pub(crate) kept: WindowsVersion,
}

/// The hosts that do not get their image in an index: of several images for one build it has one.
/// That is the one for the hosts that an existing entry serves today; without such an entry the one
/// for the most nodes, and then the newest.
pub(crate) fn index_conflicts<'a>(
    images: impl Iterator<Item = &'a PlannedImage>,
    existing: &[WindowsVersion],
) -> Vec<IndexConflict> {
    let mut builds: BTreeMap<u32, Vec<Candidate>> = BTreeMap::new();
    for image in images {
        let (Some(host), Some(version)) = (&image.host, image.base.os_version) else {
            continue;
        };
        let candidates = builds.entry(host.build.version.build).or_default();
        match candidates.iter_mut().find(|one| one.version == version) {
            Some(known) => known.hosts.push(host.clone()),
            None => candidates.push(Candidate {
                version,
                hosts: vec![host.clone()],
            }),
        }
    }
    let mut conflicts = Vec::new();
    for candidates in builds.into_values() {
        let best = candidates.iter().max_by_key(|one| one.rank(existing));
        let Some(kept) = best.map(|best| best.version) else {
            continue;
        };
        let others = candidates.into_iter().filter(|one| one.version != kept);
        let hosts = others.flat_map(|one| one.hosts);
        conflicts.extend(hosts.map(|host| IndexConflict { host, kept }));
    }
    conflicts
}

/// One of several images for a build.
struct Candidate {
    /// Version of its base.
    version: WindowsVersion,
    hosts: Vec<TargetHost>,
}

impl Candidate {
    fn rank(&self, existing: &[WindowsVersion]) -> (bool, usize, WindowsVersion) {
        let is_alike = |other: &WindowsVersion| {
            let same = other.build == self.version.build
                && generation(*other).is_some()
                && generation(*other) == generation(self.version);
            same || *other == self.version
        };
        let nodes = self.hosts.iter().map(|host| host.nodes.len().max(1));
        (existing.iter().any(is_alike), nodes.sum(), self.version)
    }
}
