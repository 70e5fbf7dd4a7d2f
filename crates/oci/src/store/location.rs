//! Locations of images, as typed by a user.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use wincimg_common::diagnose::Diagnose;
use wincimg_common::shell::{command_line, quote};
use wincimg_common::untrusted::QuotedText;

use crate::reference::{DOCKER_HUB, Reference, ReferenceError, display_host, parse_reference};

/// Schemes of images in files and folders.
pub const LOCAL_SCHEMES: [&str; 2] = ["oci:", "docker-archive:"];

/// Returns true if the name of an image has one of these schemes.
pub fn is_local_image(image: &str) -> bool {
    LOCAL_SCHEMES.iter().any(|scheme| image.starts_with(scheme))
}

/// Location of an image: `HOST/NAME:TAG`, `oci:DIR[:TAG]` or `docker-archive:FILE[:NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A repository of a registry.
    Registry(Reference),
    /// An OCI layout directory.
    Layout {
        /// The directory.
        dir: PathBuf,
        /// The image's tag in it.
        tag: Option<String>,
    },
    /// A docker-archive file.
    Archive {
        /// The file.
        file: PathBuf,
        /// The image's name in it, such as `app:1.4`.
        name: Option<String>,
    },
}

/// A text that is not the location of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnose)]
#[diagnose(code = "usage/location", blame = Request)]
pub enum LocationError {
    /// `oci:` or `docker-archive:` without a path, or with `-`: no image is read from stdin or written
    /// to stdout.
    #[error(
        "{} names no path: expected oci:DIR[:TAG] or docker-archive:FILE[:NAME]",
        QuotedText(.text)
    )]
    NoPath {
        /// The text given.
        text: String,
    },
    /// A local file or folder without a scheme, or the short name of a base.
    #[error("{} {is}: {meant}", QuotedText(.text))]
    Meant {
        /// The text given.
        text: String,
        /// A description of it.
        is: &'static str,
        /// The correct text.
        meant: String,
    },
    /// Any other invalid reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(rest) = text.strip_prefix("oci:") {
            let (dir, tag) = split_path(text, rest)?;
            // As oras and regctl name it.
            let named = dir.to_str().and_then(|dir| dir.strip_suffix("@sha256"));
            match (named, &tag) {
                (Some(dir), Some(digest)) => Err(LocationError::Meant {
                    text: text.to_owned(),
                    is: "is not an image of a layout",
                    meant: format!("type {}", quote(&format!("oci:{dir}:sha256:{digest}"))),
                }),
                _ => Ok(Self::Layout { dir, tag }),
            }
        } else if let Some(rest) = text.strip_prefix("docker-archive:") {
            let (file, name) = split_path(text, rest)?;
            Ok(Self::Archive { file, name })
        } else {
            let name = text.strip_prefix("docker://");
            let read = parse_reference(name.unwrap_or(text));
            // Names without a host refer to Docker Hub. Names that cannot be there are not sent to
            // it.
            let names_host = match &read {
                Ok(reference) => {
                    reference.registry() != DOCKER_HUB
                        || display_host(text.split('/').next().unwrap_or_default()) == DOCKER_HUB
                }
                Err(_) => false,
            };
            match not_on_hub(text) {
                Some(error) if name.is_none() && !names_host => Err(error),
                _ => Ok(Self::Registry(read?)),
            }
        }
    }
}

/// Returns an error if a name without a host cannot be an image on Docker Hub.
fn not_on_hub(text: &str) -> Option<LocationError> {
    let error = |is, meant| {
        let text = text.to_owned();
        Some(LocationError::Meant { text, is, meant })
    };
    if let Some(name) = text.strip_prefix("docker-daemon:") {
        let layout = format!("oci:./{}", folder_of(name));
        let copy = command_line(&["wincimg", "copy", text, &layout]);
        let meant = format!("copy it to a layout first: `{copy}`");
        return error("is in a Docker daemon", meant);
    }
    if text.starts_with("dir:") || text.starts_with("containers-storage:") {
        let copy = command_line(&["skopeo", "copy", text, "oci:DIR:TAG"]);
        let meant = format!("copy it to a layout first: `{copy}`");
        return error("is in a store of skopeo", meant);
    }
    let path = Path::new(text);
    if path.join("oci-layout").is_file() {
        return error(
            "is an OCI layout",
            format!("type {}", quote(&format!("oci:{text}"))),
        );
    }
    if let Some((name, rest)) = text.split_once(':')
        && let Some(scheme) = scheme_like(name)
    {
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        return error("is not an image", format!("did you mean {scheme}:{rest}?"));
    }
    let is_archive = [".tar", ".tar.gz", ".tgz"]
        .iter()
        .any(|end| text.ends_with(end));
    if is_archive && path.is_file() {
        let archive = quote(&format!("docker-archive:{text}"));
        return error("is a file", format!("type {archive}"));
    }
    if is_archive {
        let meant = "file not found; for an archive, type docker-archive:FILE";
        return error("is not in a registry", meant.to_owned());
    }
    for file in ["recipe.toml", "Dockerfile"] {
        if path.join(file).is_file() {
            return error("is a folder to build from", how_to_build(text));
        }
    }
    None
}

/// What to do with a recipe or a Dockerfile in place of an image.
pub fn how_to_build(recipe: &str) -> String {
    let build = command_line(&["wincimg", "build", recipe]);
    format!("build it with `{build}`, then type the image's name")
}

/// Last name of an image, without its tag.
fn folder_of(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split([':', '@']).next().unwrap_or(name)
}

/// Returns the scheme that was probably meant. A name without host and folder is one of Docker's
/// official images, none of which has a similar name.
fn scheme_like(name: &str) -> Option<&'static str> {
    match name {
        // Skopeo's name for a layout in a tar file, which is read like an archive.
        "oci-archive" => return Some("docker-archive"),
        // Those of regctl and buildx for a layout.
        "ocidir" | "oci-layout" => return Some("oci"),
        _ => {}
    }
    ["oci", "docker-archive", "docker-daemon"]
        .into_iter()
        .find(|scheme| {
            let slips = strsim::osa_distance(name, scheme);
            (1..=1 + scheme.len() / 5).contains(&slips)
        })
}

/// Splits off the path at the first colon, as skopeo does; a drive letter's colon belongs to the
/// path.
fn split_path(text: &str, rest: &str) -> Result<(PathBuf, Option<String>), LocationError> {
    // The prefix of Windows' verbatim paths.
    let before = if rest.starts_with(r"\\?\") { 4 } else { 0 };
    let bytes = &rest.as_bytes()[before..];
    let has_drive = bytes.len() > 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'\\' | b'/');
    let start = before + if has_drive { 2 } else { 0 };
    let (path, name) = match rest[start..].find(':') {
        Some(colon) => (&rest[..start + colon], Some(&rest[start + colon + 1..])),
        None => (rest, None),
    };
    if path.is_empty() || path == "-" {
        return Err(LocationError::NoPath {
            text: text.to_owned(),
        });
    }
    let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
    Ok((path.into(), name))
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, path, name) = match self {
            Self::Registry(reference) => return reference.fmt(f),
            Self::Layout { dir, tag } => ("oci", dir, tag),
            Self::Archive { file, name } => ("docker-archive", file, name),
        };
        write!(f, "{scheme}:{}", path.display())?;
        match name {
            Some(name) => write!(f, ":{name}"),
            None => Ok(()),
        }
    }
}

impl Location {
    /// Returns the digest or else the tag to read.
    pub fn tag_or_digest(&self) -> Option<&str> {
        match self {
            Self::Registry(reference) => reference.digest().or(reference.tag()),
            Self::Layout { tag, .. } => tag.as_deref(),
            Self::Archive { name, .. } => name.as_deref(),
        }
    }

    /// Returns the tag to publish; `None` if only a digest is given.
    pub fn tag(&self) -> Option<&str> {
        match self {
            Self::Registry(reference) => reference.tag(),
            Self::Layout { tag, .. } => tag.as_deref(),
            Self::Archive { name, .. } => name.as_deref(),
        }
    }
}
