//! Edits of a site's `web.config` as text: everything else stays as it is, byte for byte.
//!
//! Settings for the whole site are those directly under `<configuration>` and under a `<location>`
//! without a path or with the path `.`, as ASP.NET Core publishes them. Other locations apply to
//! parts of the site and are not changed.
//!
//! IIS rejects a second entry with the same key, even if the first one is in the server's
//! configuration. So an entry is preceded by its removal, which may have nothing to remove.

use std::sync::Arc;

use super::config::{
    ConfigChange, ConfigEdit, ConfigLocation, EditError, Id, Level, Schema, SectionEditor, Server,
    XmlDocument,
};

/// Initial `web.config` of a site that has none.
const EMPTY: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<configuration>\r\n</configuration>\r\n";

/// Adds these changes to the site's `web.config`. Returns `None` if that changes nothing.
pub fn merge(existing: Option<&[u8]>, edits: &[ConfigEdit]) -> Result<Option<Vec<u8>>, EditError> {
    if edits.is_empty() {
        return Ok(None);
    }
    let mut document = XmlDocument::read(existing.unwrap_or(EMPTY.as_bytes()), "configuration")?;
    let level = level(&document, None);
    for edit in edits {
        let mut editing = SectionEditor {
            document: &mut document,
            schema: Schema::builtin(),
            section: &edit.section,
            level: &level,
        };
        editing.apply(&edit.change)?;
    }
    Ok(document.is_changed().then(|| document.write()))
}

/// Adds these changes to the `web.config` of a site or of a path below it, checked against the
/// server's configuration. Returns `None` if that changes nothing.
pub fn change(
    existing: Option<&[u8]>,
    edits: &[ConfigEdit],
    server: &mut Server,
    of: &ConfigLocation,
) -> Result<Option<Vec<u8>>, EditError> {
    let mut document = XmlDocument::read(existing.unwrap_or(EMPTY.as_bytes()), "configuration")?;
    let schema = Arc::clone(server.schema());
    let alone = level(&document, Some(Vec::new()));
    let unseen = level(&document, None);
    for edit in edits {
        if !server.is_allowed_in_site(&edit.section, of)? {
            return Err(EditError::Refused(format!(
                "the section {0:?} is locked for the files of sites: unlock it (appcmd unlock config \
                 /section:{0}), or set it with /commit:apphost or -Location",
                edit.section.as_str()
            )));
        }
        let at_server = ConfigEdit {
            location: Some(of.clone()),
            ..edit.clone()
        };
        let is_inherited = server.has(&at_server)?;
        let mut editing = SectionEditor {
            document: &mut document,
            schema: &schema,
            section: &edit.section,
            level: if is_inherited { &unseen } else { &alone },
        };
        match &edit.change {
            ConfigChange::New { entry, .. } if is_inherited => {
                // An entry of the server is replaced only on request.
                return Err(editing.exists(entry));
            }
            ConfigChange::Take { entry } if is_inherited => {
                editing.apply(&ConfigChange::Remove {
                    entry: entry.clone(),
                })?;
            }
            change => editing.apply(change)?,
        }
    }
    Ok(document.is_changed().then(|| document.write()))
}

/// The level of the whole site.
fn level(document: &XmlDocument, above: Option<Vec<Vec<Id>>>) -> Level {
    let root = document.root();
    let whole = document
        .children_named(root, "location")
        .filter(|location| matches!(document.attribute(*location, "path"), None | Some("" | ".")));
    Level {
        roots: std::iter::once(root).chain(whole).collect(),
        above,
        below: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
