//! Where the bytes of what goes into an image are.

use std::fmt;

use serde::Serialize;

use super::on_disk::OnDisk;
use crate::files::Part;
use crate::shim;

/// Where a file's bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSource {
    /// A file or folder on disk.
    Disk(OnDisk),
    /// The text itself.
    Text(String),
    /// A file that was fetched or unpacked for this build.
    Brought(Brought),
    /// A program that wincimg brings along.
    Embedded(Embedded),
}

/// A file that was fetched or unpacked for a build, and is kept until that ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// Its bytes.
    pub part: Part,
    /// Where it came from.
    pub from: String,
}

impl Serialize for Brought {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.from.serialize(serializer)
    }
}

/// A program that wincimg brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Embedded {
    /// The entry point that stops programs gracefully, and waits in pause images.
    Shim,
}

impl Embedded {
    /// The name in recipes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shim => "shim",
        }
    }

    /// The program itself.
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Shim => shim::EXECUTABLE,
        }
    }
}

impl fmt::Display for FileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(source) => write!(f, "{}", source.path.display()),
            Self::Text(text) => write!(f, "a text of {} bytes", text.len()),
            Self::Brought(file) => f.write_str(&file.from),
            Self::Embedded(program) => write!(f, "wincimg's {}", program.name()),
        }
    }
}
