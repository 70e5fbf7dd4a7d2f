//! Windows versions in every spelling that hosts, images, daemons and people use.
//!
//! A version is `10.0.BUILD.REVISION`. The build says which release it is, the revision which
//! cumulative update; some sources carry the build alone.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, de};

/// A Windows build with its revision, where that is known: `17763.973`.
///
/// Versions order by build, then revision; an unknown revision comes before every known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowsVersion {
    /// The third part of `10.0.17763.973`: which release of Windows.
    pub build: u32,
    /// The fourth part: which cumulative update; absent where the source does not carry it.
    pub revision: Option<u32>,
}

/// A text in which no Windows version could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no Windows build: expected 17763.973, 10.0.17763.973 or 17763")]
pub struct ParseVersionError {
    text: String,
}

impl WindowsVersion {
    /// A version whose revision is known.
    pub const fn new(build: u32, revision: u32) -> Self {
        Self {
            build,
            revision: Some(revision),
        }
    }

    /// A version of which only the build is known.
    pub const fn of_build(build: u32) -> Self {
        Self {
            build,
            revision: None,
        }
    }

    /// The spelling of `os.version` in an image: `10.0.17763.973`.
    pub fn os_version(&self) -> String {
        format!("10.0.{self}")
    }
}

impl fmt::Display for WindowsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.revision {
            Some(revision) => f.pad(&format!("{}.{revision}", self.build)),
            None => f.pad(&self.build.to_string()),
        }
    }
}
