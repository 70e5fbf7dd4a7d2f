//! Security fixes that images lack, counted by image, with the age of the table that says so.

use jiff::civil::Date;
use serde::Serialize;

use crate::version::WindowsVersion;

/// Age of a table of security updates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableAge {
    /// Number of its documents.
    pub documents: usize,
    /// The newest document, `2026-Sep`.
    pub newest: String,
    /// Release of that document.
    pub released: Date,
    /// Days since then.
    pub age_days: i32,
}

/// Security fixes that an image lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageFixes {
    /// Reference, if it has one.
    pub reference: Option<String>,
    /// Its version of Windows.
    pub build: WindowsVersion,
    /// False if the table has nothing about its build, also since the end of its support, or its
    /// revision is not known.
    pub known: bool,
    /// Number of missing fixes.
    pub missing: usize,
    /// Number of critical ones.
    pub critical: usize,
    /// Number of those for exploited vulnerabilities.
    pub exploited: usize,
}

/// Security fixes that images lack, according to one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingFixes {
    /// Age of the table.
    pub table: TableAge,
    /// The images.
    pub images: Vec<ImageFixes>,
}

impl MissingFixes {
    /// The images that lack fixes, the worst first.
    pub fn lacking(&self) -> Vec<&ImageFixes> {
        let mut lacking: Vec<&ImageFixes> = self
            .images
            .iter()
            .filter(|image| image.missing > 0)
            .collect();
        lacking.sort_by_key(|image| {
            std::cmp::Reverse((image.exploited, image.critical, image.missing))
        });
        lacking
    }
}
