//! Where images go.

use std::path::{Path, PathBuf};

use wincimg_common::diagnose::{Blame, Problem};
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::ReferenceError;
use wincimg_oci::store::Location;
use wincimg_recipe::{FileSource, PlannedFile};

use crate::publication::Publication;

/// Where images go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A registry, with the path in front of the image's name.
    Registry(RegistryPrefix),
    /// An OCI layout directory.
    Layout(PathBuf),
    /// A docker-archive file.
    Archive(PathBuf),
}

impl Destination {
    /// Where an image of that name and tag goes.
    pub(crate) fn location(&self, name: &str, tag: &str) -> Result<Location, ReferenceError> {
        Ok(match self {
            Self::Registry(registry) => {
                Location::Registry(registry.join(&format!("{name}:{tag}"))?)
            }
            Self::Layout(dir) => Location::Layout {
                dir: dir.clone(),
                tag: Some(tag.to_owned()),
            },
            Self::Archive(file) => Location::Archive {
                file: file.clone(),
                name: Some(format!("{name}:{tag}")),
            },
        })
    }

    /// The words in which manifests are written there, where they must not be the base's own.
    pub(super) fn flavour(&self) -> Option<ManifestFormat> {
        match self {
            // A layout with Docker's documents is one that other tools do not read.
            Self::Layout(_) => Some(ManifestFormat::Oci),
            Self::Registry(_) | Self::Archive(_) => None,
        }
    }

    /// Refuses a place inside what goes into the images.
    pub(super) fn check(&self, publication: &Publication<'_>) -> Result<(), Problem> {
        let (Self::Layout(output) | Self::Archive(output)) = self else {
            return Ok(());
        };
        let images = publication.images.iter();
        let mut files = images.flat_map(|image| &image.planned.plan.files);
        match files.find_map(|file| folder_around(output, file)) {
            Some(folder) => {
                let (output, folder) = (output.display(), folder.display());
                let problem =
                    format!("the output {output} is inside {folder}, which goes into the image");
                Err(Problem::new("output/inside", problem)
                    .blame(Blame::Request)
                    .hint(
                        "write it elsewhere, for example --output oci:../image, or list it in \
                         .dockerignore",
                    ))
            }
            None => Ok(()),
        }
    }
}

/// The folder that goes into an image, where the output would go into that folder: the next image
/// would hold this one, and so on. What `.dockerignore` leaves out does no harm.
fn folder_around<'a>(output: &Path, file: &'a PlannedFile) -> Option<&'a Path> {
    let FileSource::Folder(source) = &file.source else {
        return None;
    };
    let folder = &*source.path;
    let real = folder.canonicalize().ok()?;
    let output = real_path(output)?;
    let inside = output.strip_prefix(&real).ok()?.to_str()?;
    // Rules that cannot be read are told when the folder is.
    let rules = source.ignore_filter();
    let is_left_out = rules.is_ok_and(|rules| rules.is_ignored(inside));
    (!is_left_out).then_some(folder)
}

/// A path without links, though its end need not be there yet.
fn real_path(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find_map(|known| {
        let rest = path.strip_prefix(known).ok()?;
        Some(known.canonicalize().ok()?.join(rest))
    })
}
