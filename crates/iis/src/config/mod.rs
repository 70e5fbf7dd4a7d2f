//! Edits of IIS's configuration files as text: everything else stays as it is, byte for byte.
//!
//! A [`ConfigEdit`] is a change that appcmd's `set config` or `clear config` can make. [`Server`]
//! checks it with the schema and applies it to `applicationHost.config`; the same code changes a
//! site's `web.config`.

mod apply;
mod document;
mod encoding;
mod names;
mod path;
mod schema;
mod server;
mod value;

use std::fmt;

use serde::Serialize;
use wincimg_common::diagnose::line_and_column;
use wincimg_windows::checked_text;

pub(super) use self::apply::{Level, SectionEditor};
pub(super) use self::document::{Id, XmlDocument};
#[cfg(test)]
pub(super) use self::encoding::DecodedText;
pub(crate) use self::names::FilterTarget;
pub use self::path::{ElementPath, PathStep, SectionPath, Selector};
pub use self::schema::{EditError, Schema, SchemaError, UnknownName};
pub use self::server::{APP_POOLS, Server, SharedBinding};
pub(crate) use self::server::{SITES, is_of_iis};

/// A problem that prevents changes to a configuration file of IIS, and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ConfigError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The problem.
    pub problem: String,
}

impl ConfigError {
    fn at(text: &str, offset: usize, problem: impl Into<String>) -> Self {
        let (line, column) = line_and_column(text, offset);
        Self {
            line,
            column,
            problem: problem.into(),
        }
    }
}

/// What an edit gives, or why it cannot be made.
type Result<T, E = EditError> = std::result::Result<T, E>;

/// A change to one section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigEdit {
    /// The section.
    pub section: SectionPath,
    /// Site, or path below a site, that it applies to; the whole server where absent.
    pub location: Option<ConfigLocation>,
    /// Change in the section.
    pub change: ConfigChange,
}

/// Change to a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigChange {
    /// Sets an attribute.
    Set {
        /// The element; the section itself where empty.
        element: ElementPath,
        /// The attribute.
        attribute: String,
        /// Its value.
        value: String,
    },
    /// Adds an entry to a collection, replacing the one with the same key.
    Add {
        /// The collection, and at its end the entry.
        entry: ElementPath,
        /// True if it comes before all others.
        first: bool,
    },
    /// Adds an entry to a collection, unless one with the same key exists.
    Ensure {
        /// The collection, and at its end the entry.
        entry: ElementPath,
    },
    /// Adds an entry that must not exist yet to a collection.
    New {
        /// The collection, and at its end the entry.
        entry: ElementPath,
        /// True if it comes before all others.
        first: bool,
    },
    /// Removes an entry that must exist from a collection.
    Take {
        /// The collection, and at its end the key of the entry.
        entry: ElementPath,
    },
    /// Removes an entry from a collection, if it exists.
    Remove {
        /// The collection, and at its end the key of the entry.
        entry: ElementPath,
    },
    /// Replaces all entries of a collection.
    Fill {
        /// The collection.
        collection: ElementPath,
        /// The attributes of each entry.
        entries: Vec<Selector>,
    },
    /// Clears the settings of an element on the level of the server or the location.
    Clear {
        /// The element; the whole section where empty.
        element: ElementPath,
    },
    /// Allows or prevents that configuration files below set the section.
    Delegate {
        /// True to allow it.
        allowed: bool,
    },
}

checked_text!(
    /// A site or a path below one: `Default Web Site/app`.
    ConfigLocation,
    "location",
    "a site, or a path below one, such as Default Web Site/app",
    location
);

fn location(text: &str) -> Option<String> {
    let is_sound = |name: &str| {
        !name.trim().is_empty()
            && name.trim() == name
            && !name.contains(|c: char| c.is_control() || "\\?*<>|\"'%&^:".contains(c))
    };
    text.split('/').all(is_sound).then(|| text.to_owned())
}

impl ConfigLocation {
    /// Returns true if a `path` of a `<location>` is this one.
    fn is(&self, path: &str) -> bool {
        path.trim_matches('/').to_lowercase() == self.0.to_lowercase()
    }

    /// Returns true if a `path` of a `<location>` is a parent of this one.
    fn is_below(&self, path: &str) -> bool {
        let path = path.trim_matches('/').to_lowercase();
        let own = self.0.to_lowercase();
        own.strip_prefix(&path)
            .is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for ConfigEdit {
    /// `system.webServer/staticContent +[fileExtension='.json'] for Default Web Site`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.section, self.change)?;
        match &self.location {
            Some(location) => write!(f, " for {location}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ConfigChange {
    /// In the notation of appcmd, without the slash.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set {
                element,
                attribute,
                value,
            } => {
                let dot = if element.steps().is_empty() { "" } else { "." };
                write!(f, "{element}{dot}{attribute}:{value}")
            }
            Self::Add { entry, first: true } | Self::New { entry, first: true } => {
                write!(f, "+{}", entry.at_start())
            }
            Self::Add { entry, .. } | Self::New { entry, .. } | Self::Ensure { entry } => {
                write!(f, "+{entry}")
            }
            Self::Remove { entry } | Self::Take { entry } => write!(f, "-{entry}"),
            Self::Fill {
                collection,
                entries,
            } => {
                write!(f, "{collection}:")?;
                entries.iter().try_for_each(|entry| entry.fmt(f))
            }
            Self::Clear { element } => write!(f, "~{element}"),
            Self::Delegate { allowed: true } => f.write_str("unlocked"),
            Self::Delegate { allowed: false } => f.write_str("locked"),
        }
    }
}

#[cfg(test)]
mod tests;
