//! Resolves a repository and a host to one image, pinned by its digest.
//!
//! Tags can move and can be wrong: each is read at most once, everything after that goes by digest,
//! and the version in the image's configuration decides. A tag that contradicts its image is
//! skipped with a note, and the next best one is tried.

use std::fmt;

use wincimg_common::diagnose::{Diagnose, Problem, closest_match};
use wincimg_oci::document::{Digest, Image};
use wincimg_oci::reference::{Reference, with_digest};
use wincimg_oci::remote::{RegistryClient, RegistryError, Repository};
use wincimg_windows::compat::{Architecture, HostBuild, Isolation, check};
use wincimg_windows::version::WindowsVersion;

use super::best_fit::BaseMatch;
use super::candidates::{CandidateQueue, NearestImage, VersionSource};
use super::dockerfile_name::MICROSOFT;
use super::flavour_selector::{FlavourSelector, listed};
use super::host_process::HOST_PROCESS;
use super::list::BaseListing;
use super::name::{BASE_NAMES, BaseName, NAMES};
use super::tag::BaseTag;
use super::tag_target::{TagTarget, read_tag};

/// Limit on the tags read for one host; a real repository requires a handful.
const MAX_LOOKUPS: usize = 64;
/// Limit on images that are requested before the tags are listed.
const MAX_PREFETCHED: usize = 8;

/// The image that a build starts from.
#[derive(Debug, Clone, PartialEq)]
pub struct BaseImage {
    /// Reference by tag and digest.
    pub reference: Reference,
    /// The tag's index, if it has one.
    pub index: Option<Digest>,
    /// Version in its configuration.
    pub os_version: WindowsVersion,
    /// Exact if it has the host's own revision.
    pub matched: BaseMatch,
    /// Manifest and configuration.
    pub image: Image,
}

impl BaseImage {
    /// The reference in the repository, for an identical copy: the index of the tag, if it has one,
    /// with everything in it.
    pub fn published_reference(&self) -> Reference {
        let (image, tag) = (&self.reference, self.reference.tag());
        match &self.index {
            Some(index) => with_digest(image.registry(), image.repository(), tag, index),
            None => image.clone(),
        }
    }

    /// Known problems of the image on a host on which it starts, with the fix.
    pub fn warning(&self, host: HostBuild) -> Option<String> {
        warning(self.os_version, host)
    }

    /// The digest of the image's manifest, which the reference is pinned to.
    pub fn digest(&self) -> &Digest {
        self.image.digest()
    }
}

/// Known problems of a version on a host on which it starts, with the fix.
pub fn warning(version: WindowsVersion, host: HostBuild) -> Option<String> {
    let verdict = check(Some(host), Some(version), Isolation::Process);
    let fix = verdict.fix.filter(|_| verdict.is_startable())?;
    Some(format!("{}; {fix} first", verdict.reason()))
}

/// A base image, and the tags that were skipped because they contradict their images.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The image.
    pub base: BaseImage,
    /// Skipped tags.
    pub set_aside: Vec<RejectedTag>,
}

/// A skipped tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedTag {
    /// The tag.
    pub tag: String,
    /// Reason.
    pub reason: String,
}

impl fmt::Display for RejectedTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped tag {}: {}", self.tag, self.reason)
    }
}

/// Error of resolving a base image.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "base/tags", blame = Answer)]
pub enum ResolveError {
    /// The repository has images, but none for this host.
    #[error(transparent)]
    #[diagnose(forward)]
    NothingFits(Box<NoMatchingBase>),
    /// The image is for other systems.
    #[error("{image} has no image for Windows: it is for {systems}")]
    #[diagnose(
        code = "image/not-windows",
        hint = "use a base such as mcr.microsoft.com/windows/nanoserver"
    )]
    NotForWindows {
        /// The image.
        image: String,
        /// The systems: `linux`.
        systems: String,
    },
    /// No tag of the repository belongs to a base image.
    #[error(
        "none of the {count} tags of {repository} names a version of Windows: expected tags such as \
         10.0.17763.973 or ltsc2019"
    )]
    NoBaseTags {
        /// The repository.
        repository: String,
        /// Number of its tags.
        count: usize,
    },
    /// The repository does not exist.
    #[error("{answer}")]
    #[diagnose(code = "base/not-found", blame = answer.diagnosis().blame, hint = Some(hint.clone()))]
    NoRepository {
        /// Answer of the registry.
        answer: Box<RegistryError>,
        /// The name that was probably intended, or how to copy the base there.
        hint: String,
    },
    /// The repository does not exist, or lacks the named tag or digest.
    #[error("{}", missing(repository, which, answer))]
    #[diagnose(code = "registry/not-found", blame = answer.diagnosis().blame, hint = answer.diagnosis().hint)]
    NoTag {
        /// The repository.
        repository: String,
        /// The tag or digest.
        which: String,
        /// Answer of the registry, with a suggestion.
        answer: Box<RegistryError>,
    },
    /// The registry failed.
    #[error(transparent)]
    #[diagnose(forward)]
    Registry(#[from] RegistryError),
    /// Anything else, such as a missing flavour.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

fn missing(repository: &str, which: &str, answer: &RegistryError) -> String {
    if answer.is_repository_missing() {
        return format!("repository {repository} not found");
    }
    let kind = if which.contains(':') { "digest" } else { "tag" };
    format!("{repository} has no {kind} {which}")
}

/// Hint for a repository that does not exist.
async fn base_hint(named: &Reference, repository: &Repository, hosts: &[HostBuild]) -> String {
    let meant = match short_name_like(named) {
        Some(meant) => Some(meant),
        // `dotnet/aspnet` is another product than `dotnet/framework/aspnet`.
        None => repository
            .similar_repository()
            .await
            .filter(|meant| base_parts(named).is_none_or(|(_, path, _)| meant.ends_with(path))),
    };
    let question = match (meant, mirror_command(named, hosts)) {
        (Some(meant), _) => format!("did you mean {meant}? "),
        (None, Some(command)) => return format!("copy it there: `{command}`"),
        (None, None) => String::new(),
    };
    format!(
        "{question}{BASE_NAMES}; set their registry with --base-registry and check it with `wincimg doctor`"
    )
}

/// The command that copies one of Microsoft's bases to a mirror that does not have it. It names
/// Microsoft's registry, because a `wincimg.toml` may name the mirror.
fn mirror_command(named: &Reference, hosts: &[HostBuild]) -> Option<String> {
    let (name, _, prefix) = base_parts(named)?;
    let registry = format!("{}/{prefix}", named.registry());
    let registry = registry.trim_end_matches('/');
    let base = MICROSOFT;
    let builds: Vec<String> = hosts.iter().map(|host| host.version.to_string()).collect();
    let host = match builds[..] {
        [] => "…".to_owned(),
        _ => builds.join(" --host-build "),
    };
    (named.registry() != base).then(|| {
        format!(
            "wincimg image mirror base:{name} --base-registry {base} --host-build {host} --to \
             {registry}"
        )
    })
}

/// The short name of one of Microsoft's bases, its path, and the prefix before that.
fn base_parts(named: &Reference) -> Option<(&'static str, &'static str, &str)> {
    NAMES.iter().find_map(|(name, path)| {
        let prefix = named.repository().strip_suffix(*path)?;
        (prefix.is_empty() || prefix.ends_with('/')).then_some((*name, *path, prefix))
    })
}

/// The short name most similar to a repository's name.
fn short_name_like(repository: &Reference) -> Option<String> {
    let path = repository.repository();
    let name = path.rsplit('/').next().unwrap_or(path);
    let known = NAMES.iter().map(|(short, _)| *short);
    let known = known.chain([HOST_PROCESS]);
    closest_match(name, known).filter(|meant| meant != name)
}

/// No image fits; the nearest ones.
#[derive(Debug, Clone, PartialEq, Eq, Diagnose)]
#[diagnose(code = "base/nothing-fits", blame = Answer, hint = Some(self.hint()))]
pub struct NoMatchingBase {
    /// The repository.
    pub repository: String,
    /// The requested flavour.
    pub flavour: Option<String>,
    /// Other flavours with an image for the host.
    pub other_flavours: Vec<String>,
    /// The host.
    pub host: HostBuild,
    /// Criterion of the match.
    pub wanted: BaseMatch,
    /// The newest image that is not newer than the host.
    pub below: Option<NearestImage>,
    /// The oldest image that is newer than the host.
    pub above: Option<NearestImage>,
    /// Tags that were skipped.
    pub set_aside: Vec<RejectedTag>,
}

impl NoMatchingBase {
    fn hint(&self) -> String {
        if self.host.version.revision.is_none() {
            return format!(
                "specify the host's revision too, as in {}.973: a node reports it in \
                 status.nodeInfo.kernelVersion",
                self.host.version.build
            );
        }
        if self.repository.contains('@') {
            return "remove the digest, which is of this image alone, or build for hosts of its \
                    build"
                .to_owned();
        }
        if let [first, ..] = &self.other_flavours[..] {
            return format!(
                "use a flavour that has one: {}, as in {}:{first}",
                listed(&self.other_flavours),
                self.repository
            );
        }
        let hint = match self.wanted {
            _ if self.is_for_other_architecture() => {
                "try another registry with --base-registry: most bases are for amd64 alone"
            }
            BaseMatch::Exact => {
                "use the nearest image that starts on the host: --match nearest (in a fleet, \
                 match = \"nearest\")"
            }
            // No update gives a host another build.
            BaseMatch::Nearest if self.is_update_enough() => {
                "try another registry with --base-registry, or update the host to the version of \
                 an image: `wincimg node hotfix resolve BUILD` names the update"
            }
            BaseMatch::Nearest => {
                "try another registry with --base-registry, or move the pods to hosts of a build \
                 that has images"
            }
        };
        hint.to_owned()
    }

    fn is_for_other_architecture(&self) -> bool {
        self.host.architecture != Architecture::default()
    }

    fn is_update_enough(&self) -> bool {
        let above = self.above.as_ref();
        above.is_some_and(|image| image.version.build == self.host.version.build)
    }
}

impl std::error::Error for NoMatchingBase {}

impl fmt::Display for NoMatchingBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no image of {}", self.repository)?;
        if let Some(flavour) = &self.flavour {
            write!(f, ":{flavour}")?;
        }
        let host = self.host;
        if self.is_for_other_architecture() {
            write!(f, " for windows/{}", host.architecture.name())?;
        }
        match self.wanted {
            BaseMatch::Nearest => write!(f, " starts on host {host}")?,
            BaseMatch::Exact => write!(f, " has the exact version of host {host}")?,
        }
        match (&self.below, &self.above) {
            (Some(below), Some(above)) => {
                write!(
                    f,
                    ": the nearest are {below} and, newer than the host, {above}"
                )
            }
            (Some(below), None) => write!(f, ": the nearest is {below}, and none is newer"),
            (None, Some(above)) => write!(f, ": the nearest is {above}, and none is older"),
            (None, None) => Ok(()),
        }
    }
}

impl NoMatchingBase {
    /// Reasons why the nearest images do not start on the host.
    pub fn reasons(&self) -> Vec<String> {
        let neighbours = [&self.below, &self.above].into_iter().flatten();
        let verdicts = neighbours
            .map(|neighbour| check(Some(self.host), Some(neighbour.version), Isolation::Process));
        match self.wanted {
            BaseMatch::Nearest if !self.is_for_other_architecture() => {
                verdicts.map(|verdict| verdict.reason()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A repository of base images with its list of tags, fetched once.
#[derive(Debug, Clone)]
pub struct BaseRepository {
    repository: Repository,
    tags: Vec<String>,
    flavour: FlavourSelector,
    /// The tags of the flavour for all hosts.
    chosen: Option<Vec<String>>,
}

impl BaseRepository {
    /// Lists the tags of a repository. Hosts are for the hint if it does not exist.
    pub async fn open(
        registry: &RegistryClient,
        base: &BaseName,
        hosts: &[HostBuild],
    ) -> Result<Self, ResolveError> {
        let named = &base.repository;
        let repository = registry.repository(named);
        match repository.tags().await {
            Ok(tags) => Ok(Self {
                repository,
                tags,
                flavour: base.flavour.clone(),
                chosen: None,
            }),
            Err(error) if error.is_not_found() => Err(ResolveError::NoRepository {
                answer: Box::new(error),
                hint: base_hint(named, &repository, hosts).await,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Lists the tags, and prefetches the likely image of each host by the tag of its version at
    /// the same time.
    pub async fn open_for(
        registry: &RegistryClient,
        base: &BaseName,
        hosts: &[HostBuild],
    ) -> Result<Self, ResolveError> {
        let has_plain_tags = !matches!(base.flavour, FlavourSelector::Named(_));
        let versions = hosts.iter().map(|host| host.version);
        let versions = versions.filter(|it| has_plain_tags && it.revision.is_some());
        let repository = registry.repository(&base.repository);
        for version in versions.take(MAX_PREFETCHED) {
            repository.prefetch_manifest(&version.os_version());
        }
        Self::open(registry, base, hosts).await
    }

    /// All tags.
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// The images of the requested flavour, or all of them.
    pub fn listing(&self) -> Result<BaseListing, ResolveError> {
        let named = self.flavour.matching_tags(
            &self.repository.to_string(),
            &self.tags,
            Architecture::default(),
        )?;
        let others = self.tags.len() - named.len();
        Ok(BaseListing::new(named, others))
    }

    /// The repository with the one flavour for all hosts.
    pub fn with_single_flavour(
        mut self,
        hosts: &[HostBuild],
        wanted: BaseMatch,
    ) -> Result<Self, ResolveError> {
        self.chosen = Some(self.narrowed(hosts, wanted)?);
        Ok(self)
    }

    fn narrowed(
        &self,
        hosts: &[HostBuild],
        wanted: BaseMatch,
    ) -> Result<Vec<String>, ResolveError> {
        let tags = self.chosen.as_deref().unwrap_or(&self.tags);
        let tags = self
            .flavour
            .narrow(&self.repository.to_string(), tags, hosts, wanted)?;
        if tags.is_empty() {
            return Err(ResolveError::NoBaseTags {
                repository: self.repository.to_string(),
                count: self.tags.len(),
            });
        }
        Ok(tags)
    }

    /// Finds the best image for a host.
    pub async fn resolve(
        &self,
        host: HostBuild,
        wanted: BaseMatch,
    ) -> Result<Resolution, ResolveError> {
        let offers = CandidateQueue::new(&self.narrowed(&[host], wanted)?, host, wanted);
        let mut search = Search {
            repository: &self.repository,
            host,
            offers,
            set_aside: Vec::new(),
        };
        let found = search.run().await?;
        let Search {
            offers, set_aside, ..
        } = search;
        if let Some(base) = found {
            return Ok(Resolution { base, set_aside });
        }
        let (below, above) = offers.nearest_versions();
        Err(ResolveError::NothingFits(Box::new(NoMatchingBase {
            repository: self.to_string(),
            flavour: self.flavour.requested(),
            other_flavours: self.flavour.others_for(&self.tags, host, wanted),
            host,
            wanted,
            below,
            above,
            set_aside,
        })))
    }
}

impl fmt::Display for BaseRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.repository.fmt(f)
    }
}

/// Finds the best image of a repository for a host.
pub async fn resolve(
    registry: &RegistryClient,
    base: &BaseName,
    host: HostBuild,
    wanted: BaseMatch,
) -> Result<Resolution, ResolveError> {
    let bases = BaseRepository::open(registry, base, &[host]).await?;
    bases.resolve(host, wanted).await
}

struct Search<'r> {
    repository: &'r Repository,
    host: HostBuild,
    offers: CandidateQueue<TagTarget>,
    set_aside: Vec<RejectedTag>,
}

impl Search<'_> {
    /// Reads the best candidates until one is an image as its tag says.
    async fn run(&mut self) -> Result<Option<BaseImage>, ResolveError> {
        let mut lookups = 0;
        while let Some(offer) = self.offers.pop_best() {
            let promised = match offer.basis {
                VersionSource::Seen(version, found) => {
                    let tag = offer.tag.text;
                    let loaded = found.load(self.repository, Some(&tag), version, self.host);
                    match loaded.await? {
                        Ok(base) => return Ok(Some(base)),
                        Err(reason) => self.skip(tag, reason),
                    }
                    continue;
                }
                VersionSource::Promised(version) => Some(version),
                VersionSource::Guessed => None,
            };
            lookups += 1;
            if lookups > MAX_LOOKUPS {
                let problem = format!(
                    "gave up after checking {MAX_LOOKUPS} tags of {} that do not name their version",
                    self.repository
                );
                return Err(Problem::new("base/tags", problem).into());
            }
            self.add_candidates(offer.tag, promised).await?;
        }
        Ok(None)
    }

    /// Adds the images of a tag to the candidates, unless the tag contradicts them.
    async fn add_candidates(
        &mut self,
        tag: BaseTag,
        promised: Option<WindowsVersion>,
    ) -> Result<(), RegistryError> {
        let read = match read_tag(self.repository, &tag.text, self.host.architecture).await {
            // Deleted after the tags were listed.
            Err(error) if error.is_not_found() => Err("it was not found".to_owned()),
            read => read?,
        };
        let seen = match read {
            Ok(seen) => seen,
            Err(reason) => {
                self.skip(tag.text, reason);
                return Ok(());
            }
        };
        let mut others = Vec::new();
        let mut kept = false;
        for (version, found) in seen {
            if promised.is_none_or(|promised| promised == version) {
                self.offers.add(tag.clone(), version, found);
                kept = true;
            } else {
                others.push(version.os_version());
            }
        }
        if !kept {
            self.skip(tag.text, format!("its image is {}", others.join(", ")));
        }
        Ok(())
    }

    fn skip(&mut self, tag: String, reason: String) {
        self.set_aside.push(RejectedTag { tag, reason });
    }
}
