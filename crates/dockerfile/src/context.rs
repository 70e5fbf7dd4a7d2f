//! What has to be beside a Dockerfile: the plan's files, under the rules that layers have, too.

use std::path::Path;

use serde::Serialize;
use wincimg_layer::{ContentSource, EntryContent, Layer, LayerError, LinkTo, Symlink};
use wincimg_recipe::{Plan, add_files};
use wincimg_windows::base_contents::FileKind;

use super::quote::{self, QuoteError};

/// The folder of the context that is laid out like the drive.
pub(super) const DRIVE: &str = "files";

/// One file or folder of a build context. Nothing of it is read yet.
#[derive(Debug, Clone)]
pub struct ContextEntry {
    /// Where it is in the context; folders come before what is in them.
    pub path: String,
    /// What it is.
    pub content: ContextContent,
}

/// What an entry of a build context is; a link leads to something in the context.
pub type ContextContent = FileKind<ContentSource, Symlink>;

/// An entry in a list for people and programs.
#[derive(Debug, Serialize)]
pub struct ContextSummary<'a> {
    path: &'a str,
    kind: &'static str,
    /// The file on disk that it is a copy of, if it is one.
    source: Option<&'a Path>,
}

impl ContextEntry {
    /// A file that was made here.
    pub(super) fn generated(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self {
            path: path.into(),
            content: ContextContent::File(bytes.into()),
        }
    }

    /// What it is and where it comes from.
    pub fn summary(&self) -> ContextSummary<'_> {
        let (kind, source) = match &self.content {
            ContextContent::Folder => ("folder", None),
            ContextContent::File(ContentSource::Path(path)) => ("file", Some(&**path)),
            ContextContent::File(
                ContentSource::Bytes(_)
                | ContentSource::Part(_)
                | ContentSource::Member(_)
                | ContentSource::Lacking { .. },
            ) => ("file", None),
            ContextContent::Link(_) => ("link", None),
        };
        ContextSummary {
            path: &self.path,
            kind,
            source,
        }
    }
}

/// A link to a folder. In a context it would arrive as a link to a file: the daemon makes links in
/// their order, and Go's `os.Symlink` asks what the target is, which is not there yet.
#[derive(Debug)]
pub(super) struct FolderLink {
    /// Where it is in the image.
    pub(super) path: String,
    /// Where it leads, from its own folder.
    pub(super) target: String,
}

/// Takes the links to folders out of a context: they have to be made after everything is copied.
pub(super) fn take_folder_links(
    context: &mut Vec<ContextEntry>,
) -> Result<Vec<FolderLink>, QuoteError> {
    let mut links = Vec::new();
    let mut kept = Vec::with_capacity(context.len());
    for entry in context.drain(..) {
        match &entry.content {
            ContextContent::Link(Symlink {
                target,
                to: LinkTo::Directory,
            }) => {
                let inside = entry.path.strip_prefix(DRIVE).unwrap_or(&entry.path);
                links.push(FolderLink {
                    path: quote::cmd_path(&format!("C:{inside}"))?,
                    target: quote::cmd_path(target)?,
                });
            }
            _ => kept.push(entry),
        }
    }
    *context = kept;
    Ok(links)
}

/// The plan's files in the context.
pub(super) fn files(plan: &Plan) -> Result<Vec<ContextEntry>, LayerError> {
    let mut layer = Layer::new(0);
    add_files(&mut layer, &plan.files)?;
    let entries = layer.drive()?;
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let drive = ContextEntry {
        path: DRIVE.to_owned(),
        content: ContextContent::Folder,
    };
    let inside = entries.into_iter().filter_map(|(path, content)| {
        let content = match content {
            EntryContent::Directory => ContextContent::Folder,
            EntryContent::File(source) => ContextContent::File(source.clone()),
            EntryContent::Symlink(link) => ContextContent::Link(link.clone()),
            // No plan deletes files.
            EntryContent::Deletion => return None,
        };
        Some(ContextEntry {
            path: format!("{DRIVE}/{path}"),
            content,
        })
    });
    Ok(std::iter::once(drive).chain(inside).collect())
}
