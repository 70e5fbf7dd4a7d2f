//! A site's `web.config`, changed as text: what is not asked for stays as it is, byte for byte.
//!
//! Settings for the whole site are those directly under `<configuration>` and under a
//! `<location>` without a path or with the path `.`, which is how ASP.NET Core publishes them. Other
//! locations are about parts of the site and are left alone.
//!
//! IIS refuses a second entry for a file extension, wherever the first one is: in the server's
//! configuration, too. So an entry is preceded by its removal, which may have nothing to remove.

use super::config::{Above, ConfigEdit, Document, EditError, Editing, Level, Schema};

/// What a site without a `web.config` starts from.
const EMPTY: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<configuration>\r\n</configuration>\r\n";

/// The site's `web.config` with these changes in it, made from the one that it has. `None` where
/// nothing is to be written: nothing is asked for, or all of it is there.
pub fn merge(existing: Option<&[u8]>, edits: &[ConfigEdit]) -> Result<Option<Vec<u8>>, EditError> {
    if edits.is_empty() {
        return Ok(None);
    }
    let mut document = Document::read(existing.unwrap_or(EMPTY.as_bytes()), "configuration")?;
    let schema = Schema::known();
    let root = document.root();
    let whole = document.named(root, "location").filter(|location| {
        let path = document.attribute(*location, "path");
        matches!(path, None | Some("" | "."))
    });
    let level = Level {
        roots: std::iter::once(root).chain(whole).collect(),
        above: Above::Unseen,
        below: Vec::new(),
    };
    for edit in edits {
        let mut editing = Editing {
            document: &mut document,
            schema,
            section: &edit.section,
            level: &level,
        };
        editing.apply(&edit.change)?;
    }
    Ok(document.is_changed().then(|| document.write()))
}

#[cfg(test)]
mod tests;
