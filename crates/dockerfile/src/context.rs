//! The build context of a rendered Dockerfile: the plan's files, under the rules for layers.

use serde_json::{Value, json};
use wincimg_common::diagnose::Problem;
use wincimg_layer::{ContentSource, EntryContent, Layer, LayerError, LinkTo, Symlink};
use wincimg_recipe::{Plan, add_entries};
use wincimg_windows::base_contents::FileKind;

use super::quote;

/// Folder of the context that is laid out like the drive.
pub(super) const DRIVE: &str = "files";

/// A file or folder of a build context; its content is not read yet.
#[derive(Debug, Clone)]
pub struct ContextEntry {
    /// Path in the context; folders precede their contents.
    pub path: String,
    /// Kind and content.
    pub content: ContextContent,
}

/// Kind of an entry in a build context; the target of a link is in the context.
pub type ContextContent = FileKind<ContentSource, Symlink>;

impl ContextEntry {
    /// Makes an entry with generated content.
    pub(super) fn generated(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self {
            path: path.into(),
            content: ContextContent::File(bytes.into()),
        }
    }

    /// Path, kind and source on disk, if it is a copy, as JSON.
    pub fn summary(&self) -> Value {
        let (kind, source) = match &self.content {
            ContextContent::Folder => ("folder", None),
            ContextContent::File(ContentSource::Path(source)) => ("file", Some(&*source.path)),
            ContextContent::File(_) => ("file", None),
            ContextContent::Link(_) => ("link", None),
        };
        json!({ "path": self.path, "kind": kind, "source": source })
    }
}

/// A link to a folder. COPY would make it a link to a file: the daemon creates links in order, and
/// Go's `os.Symlink` checks the target, which does not exist yet.
#[derive(Debug)]
pub(super) struct FolderLink {
    pub(super) path: String,
    /// Target, relative to its folder.
    pub(super) target: String,
}

/// Removes the links to folders from a context; they are created after everything is copied.
pub(super) fn take_folder_links(
    context: &mut Vec<ContextEntry>,
) -> Result<Vec<FolderLink>, Problem> {
    let is_to_folder = |entry: &mut ContextEntry| matches!(&entry.content, ContextContent::Link(link) if link.to == LinkTo::Directory);
    let mut links = Vec::new();
    for entry in context.extract_if(.., is_to_folder) {
        if let ContextContent::Link(link) = &entry.content {
            let inside = entry.path.strip_prefix(DRIVE).unwrap_or(&entry.path);
            links.push(FolderLink {
                path: quote::cmd_path(&format!("C:{inside}"))?,
                target: quote::cmd_path(&link.target)?,
            });
        }
    }
    Ok(links)
}

/// The plan's files in the context.
pub(super) fn files(plan: &Plan) -> Result<Vec<ContextEntry>, LayerError> {
    let mut layer = Layer::new(0);
    add_entries(&mut layer, &plan.files)?;
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
