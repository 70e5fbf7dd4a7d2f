//! Tags of images: another one is the fix for a third-party image, and a rebuild needs a free one.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};
use wincimg_inspect::bases::{BaseMatch, Fit, NAMES, parse_location};
use wincimg_oci::reference::{Reference, repository_of};
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::Location;
use wincimg_windows::compat::{HostBuild, VerdictOutcome};
use wincimg_windows::release;
use wincimg_windows::update::Updates;
use wincimg_windows::version::WindowsVersion;

use super::fetch::PARALLEL;
use super::{Image, Rollout};

const PUBLIC: [&str; 11] = [
    "docker.io", "gcr.io", "ghcr.io", "k8s.gcr.io", "lscr.io", "mcr.microsoft.com", "nvcr.io",
    "public.ecr.aws", "quay.io", "registry.k8s.io", "registry.redhat.io",
];

/// Further images of Microsoft by their path, which a mirror keeps as it does that of a base.
const MIRRORED: [&str; 7] = [
    "dotnet/aspnet",
    "dotnet/framework/runtime",
    "dotnet/framework/sdk",
    "dotnet/framework/wcf",
    "dotnet/monitor",
    "dotnet/runtime",
    "dotnet/sdk",
];

/// Tags of repositories, by image reference.
pub type TagsByRepository = BTreeMap<String, Vec<String>>;

/// Returns true if an image is third-party: on a public registry or a mirror of one, and below none
/// of the user's own prefixes.
pub(super) fn is_third_party(reference: &str, own: &[String]) -> bool {
    let Ok(Location::Registry(reference)) = parse_location(reference) else {
        return false;
    };
    let repository = repository_of(&reference);
    let is_own = |prefix: &String| {
        let rest = repository.strip_prefix(prefix.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_mirror = || mirrored_base(&reference).is_some() || is_mirrored(reference.repository());
    let is_public = repository.split('/').any(|part| PUBLIC.contains(&part));
    (is_public || is_mirror()) && !own.iter().any(is_own)
}

/// Returns true for a path that a mirror takes from its source. `library` alone is also a project of
/// Harbor; below a prefix it is that of Docker's own images.
fn is_mirrored(path: &str) -> bool {
    let ends_in = |end: &&str| {
        let before = path.strip_suffix(*end);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let folder = path.rsplit_once('/').map(|(folder, _)| folder);
    MIRRORED.iter().any(ends_in) || folder.is_some_and(|folder| folder.ends_with("/library"))
}

/// Where a mirror keeps one of Microsoft's bases, and the base's short name.
pub(super) fn mirrored_base(reference: &Reference) -> Option<(String, &'static str)> {
    let repository = repository_of(reference);
    // `windows` alone may be anybody's.
    let bases = NAMES.iter().filter(|(_, path)| path.contains('/'));
    bases.copied().find_map(|(name, path)| {
        let mirror = repository.strip_suffix(path)?.strip_suffix('/')?;
        let is_mirror = mirror != "mcr.microsoft.com";
        is_mirror.then(|| (mirror.to_owned(), name))
    })
}

impl Rollout {
    /// Returns true if an image of a registry does not start on some host.
    pub fn has_failing_images(&self) -> bool {
        !failing(self).is_empty()
    }
}

fn failing(rollout: &Rollout) -> BTreeSet<String> {
    let placed = rollout.placements.iter().flat_map(|it| &it.images);
    let failing = placed.filter(|placed| {
        let mut findings = placed.findings.iter();
        findings.any(|finding| finding.outcome == VerdictOutcome::Incompatible)
    });
    // A registry that was not asked for the image, which a file describes, is not asked for tags.
    let is_of_registry = |image: &Image| {
        let mut variants = image.variants().iter();
        variants.any(|variant| variant.manifest.is_some())
            && matches!(image.location(), Some(Location::Registry(_)))
    };
    failing
        .filter(|placed| {
            rollout.of_others[placed.image] || is_of_registry(&rollout.images[placed.image])
        })
        .filter_map(|placed| rollout.images[placed.image].reference.clone())
        .collect()
}

/// Lists the tags of images that do not start on some host: another tag of a third-party image may,
/// and a new tag of an image that is built again has to be free. A repository that cannot be listed
/// is left out.
pub async fn fetch_tags(rollout: &Rollout, registry: &RegistryClient) -> TagsByRepository {
    let mut repositories: BTreeMap<String, (Reference, Vec<String>)> = BTreeMap::new();
    for text in failing(rollout) {
        let Ok(Location::Registry(reference)) = parse_location(&text) else {
            continue;
        };
        let name = repository_of(&reference);
        let (_, texts) = repositories.entry(name).or_insert((reference, Vec::new()));
        texts.push(text);
    }
    let listed = stream::iter(repositories.into_values()).map(async |(reference, texts)| {
        let tags = registry.repository(&reference).tags().await.ok()?;
        let texts = texts.into_iter();
        Some(texts.map(move |text| (text, tags.clone())))
    });
    let listed = listed.buffered(PARALLEL).collect::<Vec<_>>().await;
    listed.into_iter().flatten().flatten().collect()
}

/// The tag that differs in its Windows version alone and fits all of the hosts:
/// `8.0-nanoserver-1809` for `8.0-nanoserver-ltsc2022`.
pub(super) fn find_matching_tag<'t>(
    tag: &str,
    tags: &'t [String],
    hosts: &[HostBuild],
) -> Option<&'t str> {
    let (first, others) = hosts.split_first()?;
    let (shape, _) = split_tag(tag)?;
    let candidates = tags.iter().filter_map(|tag| {
        let (own, version) = split_tag(tag)?;
        let fits = |host: &HostBuild| Fit::of(version, *host, BaseMatch::Nearest);
        let fit =
            fits(first).filter(|_| own == shape && others.iter().all(|it| fits(it).is_some()));
        Some((fit?, tag.as_str()))
    });
    candidates.max().map(|(_, tag)| tag)
}

/// Splits a tag into its words without the Windows version, and that version: for a release the
/// newest that its tags may mean.
fn split_tag(tag: &str) -> Option<(Vec<Option<&str>>, WindowsVersion)> {
    let words: Vec<&str> = tag.split('-').collect();
    let version_of = |word: &str| match release::from_tag_word(word) {
        Some(release) => Some(Updates::global().newest_version(release.build)),
        None => word
            .parse::<WindowsVersion>()
            .ok()
            .filter(|version| word.starts_with("10.0.") && version.revision.is_some()),
    };
    let (place, version) = words
        .iter()
        .enumerate()
        .find_map(|(place, word)| Some((place, version_of(word)?)))?;
    let shape = words.iter().enumerate();
    let shape = shape.map(|(at, word)| (at != place).then_some(*word));
    Some((shape.collect(), version))
}

pub(super) fn with_tag(reference: &Reference, tag: &str) -> String {
    format!("{}:{tag}", repository_of(reference))
}

/// The tag without the Windows version by which a build names the image of one host: `1.4` of
/// `1.4-10.0.17763.973`, and none of `10.0.17763.973`.
pub(super) fn index_tag(tag: &str) -> Option<&str> {
    let (before, last) = tag.rsplit_once('-').unwrap_or(("", tag));
    let is_version = last.starts_with("10.0.") && last.parse::<WindowsVersion>().is_ok();
    let tag = if is_version { before } else { tag };
    (!tag.is_empty()).then_some(tag)
}

/// A tag with a suffix; a long one is cut, so that the result is a valid tag.
pub(super) fn with_suffix(tag: Option<&str>, suffix: &str) -> String {
    const MOST: usize = 128;
    let Some(tag) = tag else {
        return suffix.to_owned();
    };
    let kept: String = tag.chars().take(MOST - 1 - suffix.len()).collect();
    format!("{kept}-{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_of_others_where_everybody_has_theirs() {
        let own = ["ghcr.io/acme".to_owned()];
        for reference in [
            "mcr.microsoft.com/windows/servercore:ltsc2022",
            "golang:1.22-windowsservercore-ltsc2022",
            "registry.k8s.io/pause:3.9",
            "ghcr.io/acmes/web:1",
            "repo.mylan.k8s:8888/mcr.microsoft.com/windows/nanoserver:1809",
            "repo.mylan.k8s:8888/windows/servercore:ltsc2022",
            "repo.mylan.k8s:8888/windows/servercore/iis:1",
            "repo.mylan.k8s:9999/mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-1809",
            "repo.mylan.k8s:9999/registry.k8s.io/pause:3.9",
            "harbor.example/mcr/dotnet/framework/aspnet:4.8",
            "acme.azurecr.io/dotnet/runtime:8.0",
            "harbor.example/dockerhub/library/golang:1.22",
            "lscr.io/linuxserver/web:1",
        ] {
            assert!(is_third_party(reference, &own), "{reference}");
        }
        for reference in [
            "ghcr.io/acme/web:1",
            "repo.mylan.k8s:8888/our-windows/servercore:1",
            "acme.azurecr.io/web:1",
            "acme.azurecr.io/dotnet/web:1",
            "harbor.example/library/web:1",
            "oci:out",
        ] {
            assert!(!is_third_party(reference, &own), "{reference}");
        }
    }

    #[test]
    fn the_tag_for_a_host_differs_in_its_windows_alone() {
        let tags: Vec<String> = [
            "8.0-nanoserver-ltsc2022",
            "8.0-nanoserver-1809",
            "8.0-windowsservercore-1809",
            "9.0-nanoserver-1809",
            "8.0",
            "10.0.17763.5696",
            "10.0.17763.973",
            "10.0.20348.2402",
            "10.0.17763.973-amd64",
        ]
        .map(str::to_owned)
        .into();
        let fitting = |tag: &str, hosts: &[&str]| {
            let hosts = hosts
                .iter()
                .map(|host| HostBuild::new(host.parse().unwrap()));
            find_matching_tag(tag, &tags, &hosts.collect::<Vec<_>>())
        };
        let net = "8.0-nanoserver-ltsc2022";
        assert_eq!(fitting(net, &["17763.5696"]), Some("8.0-nanoserver-1809"));
        assert_eq!(fitting(net, &["26100.1"]), Some("8.0-nanoserver-ltsc2022"));
        assert_eq!(fitting(net, &["17763.5696", "20348.1"]), None);
        assert_eq!(fitting("8.0", &["17763.5696"]), None);
        let base = "10.0.20348.2402";
        assert_eq!(fitting(base, &["17763.973"]), Some("10.0.17763.973"));
        assert_eq!(fitting(base, &["17763.5700"]), Some("10.0.17763.5696"));
    }
}
