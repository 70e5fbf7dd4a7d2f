//! Destinations of images.

use std::path::{Path, PathBuf};

use wincimg_common::diagnose::Problem;
use wincimg_common::files::real_path;
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::ReferenceError;
use wincimg_oci::store::Location;
use wincimg_recipe::{FileSource, Plan};

use crate::definition::cache_conflict;
use crate::publication::Publication;

/// Destination of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A registry, with a path prefix.
    Registry(RegistryPrefix),
    /// An OCI layout directory.
    Layout(PathBuf),
    /// A docker-archive file, and the registry that `docker load` names its images after.
    Archive(PathBuf, Option<RegistryPrefix>),
}

impl Destination {
    pub(crate) fn location(&self, name: &str, tag: &str) -> Result<Location, ReferenceError> {
        Ok(match self {
            Self::Registry(registry) => {
                Location::Registry(registry.join(&format!("{name}:{tag}"))?)
            }
            Self::Layout(dir) => Location::Layout {
                dir: dir.clone(),
                tag: Some(tag.to_owned()),
            },
            Self::Archive(file, registry) => {
                let name = format!("{name}:{tag}");
                let whole = registry.as_ref().map(|registry| registry.join(&name));
                Location::Archive {
                    file: file.clone(),
                    name: Some(whole.transpose()?.map_or(name, |whole| whole.to_string())),
                }
            }
        })
    }

    /// Required format of manifests there; none for the base's own.
    pub(super) fn format(&self) -> Option<ManifestFormat> {
        match self {
            // Other tools do not read a layout with Docker's documents.
            Self::Layout(_) => Some(ManifestFormat::Oci),
            Self::Registry(_) | Self::Archive(..) => None,
        }
    }

    /// Rejects a destination inside a folder that goes into the images.
    pub(super) fn check(&self, publication: &Publication<'_>) -> Result<(), Problem> {
        let (Self::Layout(output) | Self::Archive(output, _)) = self else {
            return Ok(());
        };
        let Some(folder) = folder_around(output, publication.plans()) else {
            return Ok(());
        };
        let (output, folder) = (output.display(), folder.display());
        let problem = format!("the output {output} is inside {folder}, which goes into the image");
        Err(Problem::request("output/inside", problem).hint(
            "write it elsewhere, for example --output oci:../image, or list it in .dockerignore",
        ))
    }
}

/// Rejects a cache that is itself a folder that goes into the images; one below is left out.
pub(crate) fn check_cache<'p>(
    cache: &Path,
    plans: impl Iterator<Item = &'p Plan>,
) -> Result<(), Problem> {
    match folder_around(cache, plans) {
        Some(_) => Err(cache_conflict(cache, "a folder that goes into the image")),
        None => Ok(()),
    }
}

/// The folder that goes into an image and would also contain what is written, so that each image
/// would contain that of the build before. Files excluded by `.dockerignore` do not count.
fn folder_around<'p>(written: &Path, plans: impl Iterator<Item = &'p Plan>) -> Option<&'p Path> {
    let written = real_path(written)?;
    let layers = plans.flat_map(Plan::entries_by_layer);
    layers.flatten().find_map(|file| {
        let Some(FileSource::Folder(source)) = file.source() else {
            return None;
        };
        let folder = &*source.path;
        let real = folder.canonicalize().ok()?;
        let inside = written.strip_prefix(&real).ok()?.to_str()?;
        // Unreadable rules are reported when the folder is read.
        let rules = source.ignore_filter();
        let is_left_out = rules.is_ok_and(|rules| rules.is_ignored(inside));
        (!is_left_out).then_some(folder)
    })
}
