//! A site's `web.config`, changed as text: what is not asked for stays as it is, byte for byte.
//!
//! Settings for the whole site are those directly under `<configuration>` and under a
//! `<location>` without a path or with the path `.`, which is how ASP.NET Core publishes them. Other
//! locations are about parts of the site and are left alone.
//!
//! IIS refuses a second entry for a file extension, wherever the first one is: in the server's
//! configuration, too. So an entry is preceded by its removal, which may have nothing to remove.

mod edit;
mod encoding;
mod outline;

use super::IisSettings;
use edit::{Collection, Editor, KeyedEntry};
use encoding::Decoded;
use outline::Outline;

/// What a site without a `web.config` starts from.
const EMPTY: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<configuration>\r\n</configuration>\r\n";

/// A `web.config` that cannot be changed, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct WebConfigError {
    /// The line, counted from 1.
    pub line: usize,
    /// The character in the line, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a `web.config`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is in an encoding that is not known here.
    #[error("unknown encoding {0:?}: save the file as UTF-8")]
    Encoding(String),
    /// Its bytes are not in the encoding that it says or starts as.
    #[error("the file is not in {0} as it claims")]
    NotAsDeclared(String),
    /// It is not XML.
    #[error("the XML is malformed: {0}")]
    Malformed(String),
    /// It has a document type, with which IIS does not read it.
    #[error("a document type, which IIS refuses")]
    DocumentType,
    /// It is another kind of file.
    #[error("the root element is <{0}>: expected <configuration>")]
    Root(String),
    /// A section or collection is there twice, which IIS refuses.
    #[error("a second <{0}>, which IIS refuses: make them one")]
    Twice(String),
    /// An entry is there twice, which IIS refuses.
    #[error("a second entry for {0}, which IIS refuses: delete one")]
    EntryTwice(String),
    /// A section is in a file of its own.
    #[error("<{0}> is in another file, by its configSource: write it here")]
    Elsewhere(String),
}

impl WebConfigError {
    fn at(text: &str, offset: usize, problem: Problem) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            problem,
        }
    }
}

/// The site's `web.config` with these settings in it, made from the one that it has. `None` where
/// nothing is to be written: nothing is asked for, or all of it is there.
pub fn merge(
    existing: Option<&[u8]>,
    settings: &IisSettings,
) -> Result<Option<Vec<u8>>, WebConfigError> {
    let collections = collections(settings);
    if collections.is_empty() {
        return Ok(None);
    }
    let decoded = Decoded::read(existing.unwrap_or(EMPTY.as_bytes()))?;
    let outline = Outline::read(&decoded.text)?;
    let mut editor = Editor::new(&decoded.text, &outline)?;
    for collection in &collections {
        editor.merge(collection)?;
    }
    Ok(editor.finish().map(|text| decoded.write(&text)))
}

/// What is to be in which collection.
fn collections(settings: &IisSettings) -> Vec<Collection> {
    let extensions = settings.file_extensions.iter().map(|extension| KeyedEntry {
        key: extension.to_string(),
        value: "true".to_owned(),
    });
    let mime_types = settings
        .mime_types
        .iter()
        .map(|(extension, kind)| KeyedEntry {
            key: extension.to_string(),
            value: kind.to_string(),
        });
    let both = [
        Collection {
            section: &["system.webServer", "security", "requestFiltering"],
            inner: Some("fileExtensions"),
            element: "add",
            value_attribute: "allowed",
            entries: extensions.collect(),
        },
        Collection {
            section: &["system.webServer", "staticContent"],
            inner: None,
            element: "mimeMap",
            value_attribute: "mimeType",
            entries: mime_types.collect(),
        },
    ];
    both.into_iter()
        .filter(|collection| !collection.entries.is_empty())
        .collect()
}

#[cfg(test)]
mod tests;
