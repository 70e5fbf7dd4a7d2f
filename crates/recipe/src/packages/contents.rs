//! What the files of a package contain, and which of them the image has already.

use std::sync::Arc;

use wincimg_common::diagnose::error_chain;
use wincimg_common::digest::Digest;
use wincimg_layer::ContentSource;
use wincimg_layer::archive::Archive;
use wincimg_msi::{InstallPlan, InstalledContent};
use wincimg_registry::Presence;
use wincimg_windows::path::ImagePath;

use super::PlannedPackage;
use crate::source::FileSource;

/// The source of an installed file; `beside` finds files next to the package.
pub fn content_of(
    content: &InstalledContent,
    package: &PlannedPackage,
    opened: &Arc<Archive>,
    beside: &dyn Fn(&str) -> Result<FileSource, String>,
) -> Result<FileSource, String> {
    let member = match content {
        InstalledContent::Package => return Ok(package.file.clone()),
        InstalledContent::Bytes(bytes) => return Ok(FileSource::Bytes(bytes.clone().into())),
        InstalledContent::Beside(path) => return beside(path),
        InstalledContent::Cabinet { cabinet, member } if !cabinet.starts_with('#') => {
            let opened = beside(cabinet)?.cabinet(&package.archives);
            let opened = opened.map_err(|error| error_chain(&error))?;
            opened.and_then(|cabinet| cabinet.member_named(member))
        }
        content => opened.installed_member(content),
    };
    match member {
        Some(member) => Ok(FileSource::Member(member)),
        None => Err(format!("{content} not found in the package")),
    }
}

/// Leaves out files that the image has with the same bytes: whatever Windows does, it has them then.
/// Other files that it has are an error. The contents are those of the plan's files.
/// <https://learn.microsoft.com/windows/win32/msi/file-versioning-rules>
pub fn leave_out_equal_files(
    plan: &mut InstallPlan,
    contents: &mut Vec<FileSource>,
    digest: &dyn Fn(&ImagePath) -> Presence<Digest>,
) -> Result<(), String> {
    let pairs = plan.files.iter().zip(contents.iter());
    let replacements: Vec<_> = pairs.filter(|(file, _)| file.is_replacement).collect();
    let sources = replacements.iter();
    let sources: Vec<ContentSource> = sources.map(|(_, it)| ContentSource::from(*it)).collect();
    let digests = ContentSource::digests(&sources).map_err(|error| error_chain(&error))?;
    for ((file, _), own) in replacements.into_iter().zip(digests) {
        if digest(&file.path) != Presence::Present(own) {
            let when = match file.version {
                Some(_) => "if its version is lower",
                None => "unless it was changed after its creation",
            };
            return Err(format!(
                "the image has {}, which Windows replaces {when}: only Windows can tell",
                file.path
            ));
        }
    }
    let mut files = plan.files.iter();
    contents.retain(|_| files.next().is_some_and(|file| !file.is_replacement));
    plan.files.retain(|file| !file.is_replacement);
    Ok(())
}
