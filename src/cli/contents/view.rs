//! Parts of images in words: attributes, security descriptors, registry data, colours.

use wincimg_inspect::contents::{ContentChange, FileEntry, display_path, sddl};
use wincimg_inspect::{LayerChange, LinkTarget};
use wincimg_registry::{RegistryData, TypedData};

use crate::cli::prelude::*;

/// Maximum number of bytes of a value in text output.
const SHOWN_BYTES: usize = 32;

/// Names of attributes, as `attrib` and the Windows API have them.
const ATTRIBUTES: [(u32, &str); 14] = [
    (0x1, "readonly"),
    (0x2, "hidden"),
    (0x4, "system"),
    (0x10, "directory"),
    (0x20, "archive"),
    (0x80, "normal"),
    (0x100, "temporary"),
    (0x200, "sparse"),
    (0x400, "reparse-point"),
    (0x800, "compressed"),
    (0x1000, "offline"),
    (0x2000, "not-indexed"),
    (0x4000, "encrypted"),
    (0x8000, "integrity"),
];

pub(in crate::cli) fn attribute_names(attributes: u32) -> Vec<&'static str> {
    let set = ATTRIBUTES.iter().filter(|(bit, _)| attributes & bit != 0);
    set.map(|(_, name)| *name).collect()
}

/// Data of a value on one line; long binary data is cut.
pub(in crate::cli) fn shortened(data: &RegistryData) -> String {
    match data.typed() {
        TypedData::Bytes(bytes) if bytes.len() > SHOWN_BYTES => {
            let first = hex::encode(&bytes[..SHOWN_BYTES]);
            format!("{} {first}… ({} bytes)", data.kind(), bytes.len())
        }
        _ => data.to_string(),
    }
}

pub(in crate::cli) fn value_name(name: &str) -> &str {
    if name.is_empty() { "(default)" } else { name }
}

/// A file, folder or link in JSON.
#[derive(Debug, Serialize)]
pub(super) struct FileView {
    path: String,
    pub(super) kind: &'static str,
    pub(super) attributes: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) security: Option<String>,
    layer: usize,
    /// True if it is another name of a file listed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_name: Option<bool>,
}

impl FileView {
    pub(super) fn new(entry: &FileEntry, with_security: bool) -> Self {
        let (size, sha256) = match &entry.kind {
            LayerChange::File(digest) => (Some(digest.size), Some(hex::encode(digest.sha256))),
            _ => (None, None),
        };
        let target = match &entry.kind {
            LayerChange::Link(link) => link.target.as_deref().map(str::to_owned),
            _ => None,
        };
        let security = entry.security.as_deref().filter(|_| with_security);
        Self {
            path: display_path(&entry.path),
            kind: kind_name(entry),
            attributes: attribute_names(entry.attributes),
            size,
            sha256,
            target,
            security: security.map(sddl),
            layer: entry.layer,
            other_name: entry.is_other_name.then_some(true),
        }
    }
}

pub(super) fn kind_name(entry: &FileEntry) -> &'static str {
    match &entry.kind {
        LayerChange::Folder(()) => "folder",
        LayerChange::File(_) | LayerChange::HardLink(_) => "file",
        LayerChange::Link(link) if link.is_junction => "junction",
        LayerChange::Link(_) => "link",
        LayerChange::Deleted => "deleted",
    }
}

/// A name as it is listed: folders end with a backslash, links show their target.
pub(super) fn listed_name(entry: &FileEntry) -> String {
    let name = entry.name();
    match &entry.kind {
        LayerChange::Folder(()) => format!(r"{name}\"),
        LayerChange::Link(LinkTarget {
            target: Some(target),
            ..
        }) => format!("{name} -> {target}"),
        _ => name.to_owned(),
    }
}

/// Colours, if the output supports them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Colours(pub(super) bool);

impl Colours {
    pub(super) fn folder(self, name: impl Display) -> String {
        paint(self.0, "36", name)
    }

    pub(super) fn title(self, text: impl Display) -> String {
        paint(self.0, "1", text)
    }

    /// A line about a change, in its colour.
    pub(super) fn change(self, change: ContentChange, text: impl Display) -> String {
        let (mark, code) = match change {
            ContentChange::Added => ("+", "32"),
            ContentChange::Removed => ("-", "31"),
            ContentChange::Changed => ("~", "33"),
            ContentChange::Rewritten => ("=", "2"),
        };
        paint(self.0, code, format_args!("{mark} {text}"))
    }
}
