//! Hosts without an image: they are set aside with the reason, and the others continue.

use std::collections::BTreeMap;

use serde::Serialize;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_inspect::bases::ResolveError;
use wincimg_windows::compat::generation;
use wincimg_windows::version::WindowsVersion;

use crate::build::{BuildContext, PlannedBuild};
use crate::delivery::DeliveryTarget;
use crate::error::search;
use crate::fleet::ReportedError;
use crate::plans::{PlannedImage, TargetHost};
use crate::publication::IndexMode;

/// A host without an image, and the reason.
#[derive(Debug, Clone, Serialize)]
pub struct UnservedHost {
    /// The host.
    #[serde(flatten)]
    pub host: TargetHost,
    /// The reason.
    #[serde(flatten)]
    pub error: ReportedError,
}

/// Plans for the hosts that have a base; no plan if none has one. The others are set aside with
/// the reason, unless all are required.
pub(crate) async fn served<P>(
    requested: &[TargetHost],
    all_or_nothing: bool,
    plan: impl AsyncFn(&[TargetHost]) -> Result<P, BoxError>,
) -> Result<(Option<P>, Vec<UnservedHost>), BoxError> {
    let mut hosts = requested.to_vec();
    let mut unserved = Vec::new();
    loop {
        let error = match plan(&hosts).await {
            Ok(planned) => return Ok((Some(planned), unserved)),
            Err(error) => error,
        };
        let without = match search(&error) {
            Some(ResolveError::NothingFits(nothing)) if !all_or_nothing => nothing.host,
            _ => return Err(error),
        };
        let (own, others): (Vec<_>, Vec<_>) =
            hosts.into_iter().partition(|host| host.build == without);
        if own.is_empty() {
            return Err(error);
        }
        let error = ReportedError::from(error);
        unserved.extend(own.into_iter().map(|host| UnservedHost {
            host,
            error: error.clone(),
        }));
        hosts = others;
        if hosts.is_empty() {
            return Ok((None, unserved));
        }
    }
}

impl PlannedBuild<'_> {
    /// Sets aside the hosts whose images the index of a target cannot have, unless all are required.
    /// The tags of the target are read only if there are such hosts.
    pub(crate) async fn set_aside_conflicts(
        &mut self,
        target: &DeliveryTarget<'_>,
        ctx: &BuildContext<'_>,
    ) -> Result<(), BoxError> {
        if target.naming.index == IndexMode::Never {
            return Ok(());
        }
        let images = self.images.iter();
        let planned = images.filter_map(PlannedImage::host_and_version);
        if index_conflicts(planned, &[]).is_empty() {
            return Ok(());
        }
        let index = TargetIndex {
            tag: target.naming.index_tag(),
            existing: &target.existing_versions(&ctx.registry).await?,
            command: &repeated_without_index,
            all_or_nothing: self.request.all_or_nothing,
        };
        index.set_aside_conflicts(&mut self.images, |image| image, &mut self.unserved)?;
        Ok(())
    }
}

/// Describes how to repeat the present command for one host without an index.
pub fn repeated_without_index(host: &TargetHost) -> String {
    let version = host.build.version;
    format!("run this command again with --host-build {version} as its only host, and --no-index")
}

/// The index that images are published in.
pub(crate) struct TargetIndex<'a> {
    pub(crate) tag: &'a str,
    /// Versions of Windows of the images that it has now.
    pub(crate) existing: &'a [WindowsVersion],
    /// Command that publishes a host's image outside the index.
    pub(crate) command: &'a (dyn Fn(&TargetHost) -> String + Sync),
    /// True if a host that it cannot serve is an error.
    pub(crate) all_or_nothing: bool,
}

impl TargetIndex<'_> {
    /// Moves the hosts whose images the index cannot have to those without an image.
    pub(crate) fn set_aside_conflicts<T>(
        &self,
        images: &mut Vec<T>,
        planned: impl Fn(&T) -> &PlannedImage,
        unserved: &mut Vec<UnservedHost>,
    ) -> Result<(), Problem> {
        let hosts = images.iter().map(&planned);
        let conflicts = index_conflicts(
            hosts.filter_map(PlannedImage::host_and_version),
            self.existing,
        );
        for (host, kept) in conflicts {
            let error = self.conflict_error(&host, kept);
            if self.all_or_nothing {
                return Err(error);
            }
            images.retain(|image| planned(image).host.as_ref() != Some(&host));
            unserved.push(UnservedHost {
                error: ReportedError::from(error),
                host,
            });
        }
        Ok(())
    }

    /// Error for a host that the index cannot serve.
    fn conflict_error(&self, host: &TargetHost, kept: WindowsVersion) -> Problem {
        let version = host.build.version;
        let problem = format!(
            "an index has one image per Windows build: tag {} has the one for {kept}, and \
             {version} requires another",
            self.tag
        );
        let command = (self.command)(host);
        let publish = format!("publish its image under a version tag: {command}");
        let hint = if version < kept && generation(version) != generation(kept) {
            format!("update the node: wincimg node hotfix script {kept}; or {publish}")
        } else {
            publish
        };
        Problem::answer("tag/several", problem).hint(hint)
    }
}

/// The hosts that do not get their image in an index, each with the version of the image that is in
/// it: of several for one build, the one for the hosts that an existing entry serves today; without
/// such an entry the one for the most nodes, and then the newest. Each of `images` has its own.
fn index_conflicts<'a>(
    images: impl Iterator<Item = (&'a TargetHost, WindowsVersion)>,
    existing: &[WindowsVersion],
) -> Vec<(TargetHost, WindowsVersion)> {
    let mut builds: BTreeMap<u32, Vec<Candidate>> = BTreeMap::new();
    for (host, version) in images {
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
        conflicts.extend(hosts.map(|host| (host, kept)));
    }
    conflicts
}

impl PlannedImage {
    fn host_and_version(&self) -> Option<(&TargetHost, WindowsVersion)> {
        Some((self.host.as_ref()?, self.base.os_version?))
    }
}

/// One of several images for a build.
struct Candidate {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;

    use wincimg_windows::compat::HostBuild;

    use super::*;

    fn host(version: &str, nodes: usize) -> (TargetHost, WindowsVersion) {
        let version: WindowsVersion = version.parse().unwrap();
        let build = HostBuild::new(version);
        let nodes = (0..nodes).map(|node| format!("{version}-{node}")).collect();
        (TargetHost { build, nodes }, version)
    }

    fn kept(hosts: &[(&str, usize)], existing: &[&str]) -> Vec<String> {
        let hosts = hosts.iter().map(|(text, nodes)| host(text, *nodes));
        let hosts: Vec<_> = hosts.collect();
        let existing: Vec<WindowsVersion> =
            existing.iter().map(|text| text.parse().unwrap()).collect();
        let images = hosts.iter().map(|(host, version)| (host, *version));
        let conflicts = index_conflicts(images, &existing).into_iter();
        conflicts
            .map(|(host, kept)| format!("{} < {kept}", host.build.version))
            .collect()
    }

    #[test]
    fn an_index_serves_most_nodes_and_none_worse_than_before() {
        let hosts = [("17763.973", 1), ("17763.1158", 2), ("20348.1", 1)];
        assert_eq!(kept(&hosts, &[]), ["17763.973 < 17763.1158"]);
        let even = [("17763.973", 1), ("17763.1158", 1)];
        assert_eq!(kept(&even, &[]), ["17763.973 < 17763.1158"]);
        let older = [("17763.973", 3), ("17763.1158", 1)];
        assert_eq!(kept(&older, &[]), ["17763.1158 < 17763.973"]);
        assert_eq!(kept(&hosts, &["17763.914"]), ["17763.1158 < 17763.973"]);
        assert!(kept(&[("17763.973", 1), ("20348.1", 1)], &[]).is_empty());
    }

    const VERSIONS: [&str; 6] = [
        "14393.3443", "14393.3630", "17763.973", "17763.1158", "20348.1", "20348.2402",
    ];

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
            ..ProptestConfig::with_cases(200)
        })]

        #[test]
        fn an_index_has_one_image_per_build(
            chosen in prop::collection::btree_map(prop::sample::select(&VERSIONS), 0_usize..4, 0..6),
            existing in prop::collection::vec(prop::sample::select(&VERSIONS), 0..3),
        ) {
            let hosts: Vec<_> = chosen.iter().map(|(text, nodes)| host(text, *nodes)).collect();
            let existing: Vec<WindowsVersion> =
                existing.iter().map(|text| text.parse().unwrap()).collect();
            let images = hosts.iter().map(|(host, version)| (host, *version));
            let conflicts = index_conflicts(images, &existing);
            let lost: BTreeSet<WindowsVersion> =
                conflicts.iter().map(|(host, _)| host.build.version).collect();
            let served: Vec<WindowsVersion> =
                hosts.iter().map(|(_, version)| *version).filter(|it| !lost.contains(it)).collect();
            let builds: BTreeSet<u32> = hosts.iter().map(|(_, version)| version.build).collect();
            prop_assert_eq!(served.len(), builds.len());
            // A build that is served today is served by an image like the present one.
            let is_alike = |a: &WindowsVersion, b: &WindowsVersion| {
                a.build == b.build && generation(*a) == generation(*b)
            };
            for (_, version) in &hosts {
                let is_served = existing.iter().any(|own| is_alike(own, version));
                let kept = served.iter().find(|own| own.build == version.build);
                let stays = kept.is_some_and(|kept| existing.iter().any(|own| is_alike(own, kept)));
                prop_assert!(!is_served || stays);
            }
        }
    }
}
