//! The short names of base images and the registry that they come from.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use wincimg_common::diagnose::Diagnose;
use wincimg_images::recipes;
use wincimg_oci::prefix::{PrefixError, RegistryPrefix};
use wincimg_oci::reference::{Reference, ReferenceError, parse_reference};
use wincimg_oci::store::{Location, LocationError, how_to_build};

use super::dockerfile_name::MICROSOFT;
use super::flavour_selector::FlavourSelector;
use super::host_process::HOST_PROCESS;
use super::tag::{BaseTag, TagPrecision};

/// Short names and their repositories in Microsoft's registry.
pub const NAMES: [(&str, &str); 6] = [
    ("nanoserver", "windows/nanoserver"),
    ("servercore", "windows/servercore"),
    ("server", "windows/server"),
    ("windows", "windows"),
    ("aspnet", "dotnet/framework/aspnet"),
    ("iis", "windows/servercore/iis"),
];

/// Parses an image location as [`Location`] does. A short base name alone is refused: it would be
/// an image on Docker Hub, which is never intended.
pub fn parse_location(text: &str) -> Result<Location, LocationError> {
    let location = text.parse()?;
    if is_recipe(text) {
        return Err(LocationError::Meant {
            text: text.to_owned(),
            is: "is a recipe, not an image",
            meant: how_to_build(text),
        });
    }
    let (name, tag) = text.split_once(':').unwrap_or((text, "ltsc2022"));
    match NAMES.iter().find(|(short, _)| *short == name) {
        Some((_, path)) => Err(LocationError::Meant {
            text: text.to_owned(),
            is: "is not on Docker Hub",
            meant: format!("type {MICROSOFT}/{path}:{tag}"),
        }),
        None => Ok(location),
    }
}

/// Returns true for a built-in recipe and the file of a recipe or Dockerfile.
fn is_recipe(text: &str) -> bool {
    let path = Path::new(text);
    let is_named = |name: &str| path.file_name().is_some_and(|own| own == name);
    let is_toml = path.extension().is_some_and(|end| end == "toml");
    recipes().iter().any(|recipe| recipe.name == text)
        || ((is_toml || is_named("Dockerfile")) && path.is_file())
}

/// A repository of base images and the requested flavour.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseName {
    /// The repository.
    pub repository: Reference,
    /// The flavour.
    pub flavour: FlavourSelector,
}

impl From<Reference> for BaseName {
    fn from(repository: Reference) -> Self {
        Self {
            repository,
            flavour: FlavourSelector::Only,
        }
    }
}

/// Source of base images: Microsoft's registry, or a mirror under a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseRegistry(pub RegistryPrefix);

/// A text that is neither a registry nor the name of a base image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnose)]
#[diagnose(code = "base/name", blame = Request, hint = Some(BASE_NAMES.to_owned()))]
pub enum BaseNameError {
    /// Not `HOST[:PORT][/PREFIX]`.
    #[error(transparent)]
    Registry(#[from] PrefixError),
    /// A tag or digest, although the host determines the version.
    #[error(
        "{0:?} has the tag of one version of Windows, or a digest: expected a repository, because the host \
         determines the version"
    )]
    #[diagnose(hint = Some(tagged_hint(_0)))]
    Tagged(String),
    /// A base that wincimg creates itself.
    #[error(
        "{HOST_PROCESS:?} is not in a registry, because wincimg creates this base for every host"
    )]
    #[diagnose(hint = "write base = {HOST_PROCESS:?} in a recipe")]
    HostProcess,
    /// Not a repository.
    #[error(transparent)]
    Repository(#[from] ReferenceError),
}

/// Hint with the name of the repository, and how to name exactly this image.
fn tagged_hint(name: &str) -> String {
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let end = name[last..].find([':', '@']);
    let (plain, tag) = name.split_at(end.map_or(name.len(), |end| last + end));
    let short = NAMES.iter().find(|(short, _)| *short == plain);
    let image = match short {
        Some((_, path)) => format!("{MICROSOFT}/{path}{tag}"),
        None => name.to_owned(),
    };
    format!("write {plain:?}; in a recipe, base_image = {image:?} is exactly this image")
}

/// Known names of base images, as a hint.
pub const BASE_NAMES: &str =
    "base images are named nanoserver, servercore, server, windows, aspnet and iis";

impl FromStr for BaseRegistry {
    type Err = BaseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.parse()?))
    }
}

impl fmt::Display for BaseRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl BaseRegistry {
    /// The repository of a short name or a path; a name with a host keeps it. A colon and a flavour
    /// may follow: `dotnet/aspnet:8.0`.
    pub fn repository(&self, name: &str) -> Result<BaseName, BaseNameError> {
        if name == HOST_PROCESS {
            return Err(BaseNameError::HostProcess);
        }
        let last = name.rfind('/').map_or(0, |slash| slash + 1);
        let (plain, flavour) = match name[last..].split_once(':') {
            Some((end, flavour)) => (&name[..last + end.len()], Some(flavour)),
            None => (name, None),
        };
        let is_of_windows = |tag: &str| {
            let read = BaseTag::parse(tag);
            tag == "latest" || read.is_some_and(|tag| tag.names != TagPrecision::Nothing)
        };
        if plain.contains('@') || flavour.is_some_and(|tag| tag.contains('@') || is_of_windows(tag))
        {
            return Err(BaseNameError::Tagged(name.to_owned()));
        }
        let short = NAMES
            .iter()
            .find(|(short, path)| *short == plain || *path == plain);
        let path = short.map_or(plain, |(_, path)| *path);
        let repository = match path.split_once('/') {
            Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => {
                parse_reference(path)?
            }
            _ => self.0.join(path)?,
        };
        Ok(BaseName {
            repository,
            flavour: match (flavour, short) {
                (Some(flavour), _) => FlavourSelector::parse(flavour),
                (None, Some(_)) => FlavourSelector::Usual,
                (None, None) => FlavourSelector::Only,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn microsofts() -> BaseRegistry {
        "mcr.microsoft.com".parse().unwrap()
    }

    fn repository(registry: &str, name: &str) -> String {
        let registry: BaseRegistry = registry.parse().unwrap();
        let reference = registry.repository(name).unwrap().repository;
        format!("{}/{}", reference.registry(), reference.repository())
    }

    #[test]
    fn short_names_are_microsofts_repositories() {
        for (name, path) in [
            ("nanoserver", "windows/nanoserver"),
            ("windows", "windows"),
            ("dotnet/framework/runtime", "dotnet/framework/runtime"),
        ] {
            let base = microsofts().repository(name).unwrap();
            let expected = format!("mcr.microsoft.com/{path}:latest");
            assert_eq!(base.repository.to_string(), expected);
        }
    }

    #[test]
    fn a_mirrors_prefix_comes_before_the_path_unless_the_name_has_a_host() {
        let mirror = "repo.mylan.k8s:9999/mcr.microsoft.com";
        let iis = format!("{mirror}/windows/servercore/iis");
        for (registry, name, expected) in [
            (mirror, "iis", iis.as_str()),
            ("repo:9999/", "servercore", "repo:9999/windows/servercore"),
            ("docker.io/me", "iis", "docker.io/me/windows-servercore-iis"),
            (mirror, "repo:8888/base/nano", "repo:8888/base/nano"),
        ] {
            assert_eq!(repository(registry, name), expected);
        }
    }

    #[test]
    fn a_flavour_follows_a_colon() {
        let base = |name| microsofts().repository(name).unwrap();
        let aspnet = base("dotnet/aspnet:8.0");
        assert_eq!(aspnet.repository.repository(), "dotnet/aspnet");
        assert_eq!(aspnet.flavour, FlavourSelector::parse("8.0"));
        assert_eq!(base("aspnet:4.8").repository, base("aspnet").repository);
        assert_eq!(base("aspnet").flavour, FlavourSelector::Usual);
        let framework = base("dotnet/framework/aspnet");
        assert_eq!(framework.flavour, FlavourSelector::Usual);
        assert_eq!(base("dotnet/aspnet").flavour, FlavourSelector::Only);
        let temurin = base("localhost:5000/eclipse-temurin:21-jdk");
        assert_eq!(temurin.repository.registry(), "localhost:5000");
        assert_eq!(temurin.flavour, FlavourSelector::parse("21-jdk"));
    }

    #[test]
    fn a_recipe_is_not_an_image_on_docker_hub() {
        for recipe in recipes() {
            let error = parse_location(recipe.name).unwrap_err();
            assert!(matches!(error, LocationError::Meant { .. }), "{error}");
        }
        assert!(parse_location("me/pause").is_ok());
        assert!(parse_location("repo.lan/pause:1").is_ok());
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["", "/x", "a b", "host/UPPER", "host@x"] {
            let error = text.parse::<BaseRegistry>().unwrap_err();
            assert!(error.to_string().contains("HOST[:PORT][/PREFIX]"), "{text}");
        }
        let registry = microsofts();
        for name in [
            "dotnet/aspnet:8.0-nanoserver-1809",
            "nanoserver:latest",
            "nanoserver:ltsc2019",
            "repo:8888/base@sha256:00",
        ] {
            let error = registry.repository(name).unwrap_err();
            assert!(matches!(error, BaseNameError::Tagged(_)), "{name}");
        }
        for (name, plain, image) in [
            (
                "nanoserver:ltsc2019",
                "nanoserver",
                "mcr.microsoft.com/windows/nanoserver:ltsc2019",
            ),
            (
                "repo:8888/base@sha256:00",
                "repo:8888/base",
                "repo:8888/base@sha256:00",
            ),
        ] {
            let hint = registry.repository(name).unwrap_err().diagnosis().hint;
            let expected = format!("write {plain:?}; in a recipe, base_image = {image:?} ");
            assert!(hint.unwrap().starts_with(&expected), "{name}");
        }
        let error = registry.repository("Nano Server").unwrap_err();
        assert!(matches!(error, BaseNameError::Repository(_)), "{error}");
    }
}
