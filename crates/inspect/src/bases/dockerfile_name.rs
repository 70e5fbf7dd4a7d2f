//! Bases as Dockerfiles name them.
//!
//! A tag such as `4.8-windowsservercore-ltsc2019` names a program and the Windows that its author
//! intended. The host decides on the Windows, as for any base. A tag that names no Windows is one
//! image or index, and is never replaced by another.

use futures_util::future::try_join_all;
use wincimg_oci::reference::{Reference, parse_reference};
use wincimg_oci::remote::RegistryClient;
use wincimg_windows::compat::{Architecture, HostBuild};
use wincimg_windows::update::{Update, Updates};
use wincimg_windows::version::WindowsVersion;

use super::best_fit::{BaseMatch, Fit};
use super::flavour_selector::FlavourSelector;
use super::name::{BaseName, BaseNameError, BaseRegistry};
use super::resolve::{
    BaseImage, BaseRepository, NoMatchingBase, RejectedTag, Resolution, ResolveError,
};
use super::tag::{BaseTag, TagPrecision};
use super::tag_target::{TagTarget, other_systems, read_tag};

/// The host of Microsoft's images.
pub const MICROSOFT: &str = "mcr.microsoft.com";

/// A base named in a Dockerfile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NamedBase {
    /// A program on the Windows that fits the host.
    OfHost {
        /// The repository and the program.
        name: BaseName,
        /// Windows build that its author intended.
        build: u32,
    },
    /// Exactly the image of the reference.
    Exact(Reference),
}

impl BaseRegistry {
    /// Parses a base name of a Dockerfile. Microsoft's images come from this registry, others from
    /// their own.
    pub fn parse_dockerfile_name(&self, text: &str) -> Result<NamedBase, BaseNameError> {
        let mut reference = parse_reference(text)?;
        let (tag, digest) = (reference.tag(), reference.digest());
        if reference.registry() == MICROSOFT {
            let here = self.0.join(reference.repository())?;
            let (host, path) = (here.registry(), here.repository());
            reference = Reference::new(host, path, tag, digest);
        }
        let tag = reference.tag().filter(|_| reference.digest().is_none());
        let read = tag.and_then(BaseTag::parse);
        let build = read.as_ref().and_then(|tag| match tag.names {
            TagPrecision::Version(version) => Some(version.build),
            TagPrecision::Update { build, .. } | TagPrecision::Release { build } => Some(build),
            TagPrecision::Nothing => None,
        });
        Ok(match (read, build) {
            (Some(tag), Some(build)) if tag.is_for(Architecture::Amd64) => NamedBase::OfHost {
                name: BaseName {
                    flavour: FlavourSelector::from_flavour(&tag.flavour),
                    repository: reference,
                },
                build,
            },
            _ => NamedBase::Exact(reference),
        })
    }
}

impl NamedBase {
    /// The Windows that its tag names, also one with a digest, with a revision if the tag has one.
    pub fn windows(&self) -> Option<WindowsVersion> {
        let reference = match self {
            Self::OfHost { name, .. } => &name.repository,
            Self::Exact(reference) => reference,
        };
        let tag = reference.tag().and_then(BaseTag::parse)?;
        if !tag.is_for(Architecture::Amd64) {
            return None;
        }
        match tag.names {
            TagPrecision::Version(version) => Some(version),
            TagPrecision::Update { build, kb } => {
                let mut updates = Updates::global().by_kb(kb);
                let update = updates.find(|update| update.build == build);
                Some(update.map_or(WindowsVersion::from_build(build), Update::version))
            }
            TagPrecision::Release { build } => Some(WindowsVersion::from_build(build)),
            TagPrecision::Nothing => None,
        }
    }

    /// Finds the image for each host.
    pub async fn resolve(
        &self,
        registry: &RegistryClient,
        hosts: &[HostBuild],
        wanted: BaseMatch,
    ) -> Result<Vec<Resolution>, ResolveError> {
        match self {
            Self::OfHost { name, .. } => {
                let bases = BaseRepository::open_for(registry, name, hosts).await?;
                let bases = bases.with_single_flavour(hosts, wanted)?;
                let searches = hosts.iter().map(|host| bases.resolve(*host, wanted));
                try_join_all(searches).await
            }
            Self::Exact(reference) => {
                let searches = hosts.iter().map(async |host| {
                    let base = resolve_exact(registry, reference, *host, wanted).await?;
                    let set_aside = Vec::new();
                    Ok(Resolution { base, set_aside })
                });
                try_join_all(searches).await
            }
        }
    }
}

/// The image of a reference, or the best one of its index for the host.
async fn resolve_exact(
    registry: &RegistryClient,
    reference: &Reference,
    host: HostBuild,
    wanted: BaseMatch,
) -> Result<BaseImage, ResolveError> {
    let repository = registry.repository(reference);
    let tag = reference.tag();
    let which = reference.digest().or(tag).unwrap_or("latest");
    let divider = if reference.digest().is_some() {
        '@'
    } else {
        ':'
    };
    let image = format!("{repository}{divider}{which}");
    let rejected = |reason| RejectedTag {
        tag: which.to_owned(),
        reason,
    };
    let mut set_aside = Vec::new();
    let best = match read_tag(&repository, which, host.architecture).await {
        Err(error) if error.is_not_found() => {
            return Err(ResolveError::NoTag {
                repository: repository.to_string(),
                which: which.to_owned(),
                answer: Box::new(repository.with_suggestion(error, which).await),
            });
        }
        Err(error) => return Err(error.into()),
        Ok(Ok(seen)) => best_fit(seen, host, wanted, |reason| {
            set_aside.push(rejected(reason));
        }),
        Ok(Err(reason)) => {
            if let Some(systems) = other_systems(&repository, which).await? {
                return Err(ResolveError::NotForWindows { image, systems });
            }
            set_aside.push(rejected(reason));
            None
        }
    };
    if let Some((version, found)) = best {
        match found.load(&repository, tag, version, host).await? {
            Ok(base) => return Ok(base),
            Err(reason) => set_aside.push(rejected(reason)),
        }
    }
    Err(ResolveError::NothingFits(Box::new(NoMatchingBase {
        repository: image,
        flavour: None,
        other_flavours: Vec::new(),
        host,
        wanted,
        below: None,
        above: None,
        set_aside,
    })))
}

/// The image that fits the host best; calls `reject` with the reason for each that does not.
fn best_fit(
    seen: Vec<(WindowsVersion, TagTarget)>,
    host: HostBuild,
    wanted: BaseMatch,
    mut reject: impl FnMut(String),
) -> Option<(WindowsVersion, TagTarget)> {
    let mut best = None;
    for (version, found) in seen {
        let Some(fit) = Fit::of(version, host, wanted) else {
            reject(format!("its image is {}", version.os_version()));
            continue;
        };
        if best.as_ref().is_none_or(|(known, _, _)| *known < fit) {
            best = Some((fit, version, found));
        }
    }
    best.map(|(_, version, found)| (version, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(registry: &str, text: &str) -> String {
        let registry: BaseRegistry = registry.parse().unwrap();
        match registry.parse_dockerfile_name(text).unwrap() {
            NamedBase::OfHost { name, build } => {
                let (registry, path) = (name.repository.registry(), name.repository.repository());
                format!("{registry}/{path} {:?} {build}", name.flavour)
            }
            NamedBase::Exact(reference) => reference.to_string(),
        }
    }

    /// Names in a Dockerfile, and what they stand for.
    const NAMES: &str = r#"
mcr.microsoft.com/windows/servercore:ltsc2019 => mcr.microsoft.com/windows/servercore Usual 17763
mcr.microsoft.com/windows/nanoserver:10.0.20348.2402 => mcr.microsoft.com/windows/nanoserver Usual 20348
mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2019 => mcr.microsoft.com/dotnet/framework/aspnet Named(["4.8", "windowsservercore"]) 17763
golang:1.22-nanoserver-1809 => docker.io/library/golang Named(["1.22", "nanoserver"]) 17763
golang:1.22 => docker.io/library/golang:1.22
repo.lan:5000/own:1.4 => repo.lan:5000/own:1.4
repo.lan/own => repo.lan/own:latest
"#;

    #[test]
    fn the_host_decides_on_the_windows_of_a_tag_and_on_nothing_else() {
        for case in NAMES.trim().lines() {
            let (text, expected) = case.split_once(" => ").unwrap();
            assert_eq!(named("mcr.microsoft.com", text), expected, "{text}");
        }
        // Nobody named the tag latest.
        let digest = format!("@sha256:{}", "0".repeat(64));
        for repository in ["mcr.microsoft.com/windows/nanoserver", "repo.lan/own"] {
            let pinned = format!("{repository}{digest}");
            assert_eq!(named("mcr.microsoft.com", &pinned), pinned);
        }
    }

    #[test]
    fn a_tag_names_its_windows_with_a_digest_too() {
        let registry: BaseRegistry = "mcr.microsoft.com".parse().unwrap();
        let digest = format!("@sha256:{}", "0".repeat(64));
        for (tag, expected) in [
            (":ltsc2022", Some("20348")),
            (":10.0.17763.973-amd64", Some("17763.973")),
            (":ltsc2022-arm64", None),
            (":8.0", None),
            ("", None),
        ] {
            let text = format!("mcr.microsoft.com/windows/nanoserver{tag}{digest}");
            let named = registry.parse_dockerfile_name(&text).unwrap();
            let expected = expected.map(|version| version.parse().unwrap());
            assert_eq!(named.windows(), expected, "{tag}");
        }
    }

    #[test]
    fn microsofts_images_come_from_the_mirror_and_others_do_not() {
        for (text, expected) in [
            (
                "mcr.microsoft.com/windows/nanoserver:1809",
                "repo.lan:9999/mcr/windows/nanoserver Usual 17763",
            ),
            (
                "mcr.microsoft.com/own/tool:1",
                "repo.lan:9999/mcr/own/tool:1",
            ),
            ("repo.lan/own:1", "repo.lan/own:1"),
        ] {
            assert_eq!(named("repo.lan:9999/mcr", text), expected);
        }
    }
}
