//! Images that would be written into what they are made of.

use std::path::{Path, PathBuf};

use wincimg_recipe::{FileSource, PlannedFile};

/// The folder that goes into an image, where the output would go into that folder: the next image
/// would hold this one, and so on. What `.dockerignore` leaves out does no harm.
pub(super) fn folder_around<'a>(output: &Path, file: &'a PlannedFile) -> Option<&'a Path> {
    let FileSource::Folder(source) = &file.source else {
        return None;
    };
    let folder = &*source.path;
    let real = folder.canonicalize().ok()?;
    let output = real_path(output)?;
    let inside = output.strip_prefix(&real).ok()?.to_str()?;
    // Rules that cannot be read are told when the folder is.
    let rules = source.left_out();
    let is_left_out = rules.is_ok_and(|rules| rules.leaves_out(inside));
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
