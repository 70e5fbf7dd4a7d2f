//! Archives that a recipe unpacks.

use std::fmt;

use serde::Serialize;
use wincimg_common::Named;
use wincimg_common::diagnose::Problem;
use wincimg_layer::archive::{
    ArchiveError, ArchiveFormat, Archives, UnpackSelection, UnpackedEntry,
};
use wincimg_windows::path::{ImagePath, fold};

use super::Recipe;
use super::file::FileEntry;
use super::source::FileSource;
use super::text::Text;

/// An archive to unpack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedArchive {
    /// Source.
    pub source: FileSource,
    /// The folder in the image that its entries go into.
    pub target: ImagePath,
    /// Options for unpacking.
    pub unpack: UnpackOptions,
}

/// Options for unpacking an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnpackOptions {
    /// Required format, if the recipe sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ArchiveKind>,
    /// Number of leading components to remove from each path; shorter paths are skipped.
    pub strip: usize,
    /// Archives that are open.
    #[serde(skip)]
    archives: Archives,
}

/// Archive formats in recipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Named)]
#[serde(rename_all = "lowercase")]
pub enum ArchiveKind {
    /// A zip file.
    Zip,
    /// A tar file, compressed or not.
    Tar,
    /// A 7z file.
    #[serde(rename = "7z")]
    SevenZip,
}

impl ArchiveKind {
    fn is(self, format: ArchiveFormat) -> bool {
        matches!(
            (self, format),
            (Self::Zip, ArchiveFormat::Zip)
                | (Self::Tar, ArchiveFormat::Tar(_))
                | (Self::SevenZip, ArchiveFormat::SevenZip)
        )
    }
}

impl UnpackOptions {
    /// Lists the archive's entries.
    pub fn entries(&self, source: &FileSource) -> Result<Vec<UnpackedEntry>, ArchiveError> {
        let Some(archive) = source.archive(&self.archives)? else {
            let problem = "it is not an archive: expected zip, 7z or tar (plain, gzip, zstd, xz or \
                           bzip2)";
            return Err(ArchiveError::whole(&source.to_string(), problem));
        };
        let refused = |problem: String| ArchiveError::whole(archive.name(), problem);
        let found = archive.format();
        if let Some(kind) = self.format.filter(|kind| !kind.is(found)) {
            let wanted = kind.name();
            return Err(refused(format!(
                "it is {found}, where {wanted} is expected"
            )));
        }
        let entries = archive.unpack(&UnpackSelection {
            strip: self.strip,
            ..UnpackSelection::default()
        })?;
        if self.strip > 0 && entries.is_empty() {
            let problem = format!("strip = {} leaves no entries", self.strip);
            return Err(refused(problem));
        }
        Ok(entries)
    }

    /// Checks that the archive can be unpacked, unless it is not downloaded yet.
    pub(super) fn check(&self, source: &FileSource) -> Result<(), ArchiveError> {
        if matches!(source, FileSource::Download(download) if download.content.is_none()) {
            return Ok(());
        }
        self.entries(source).map(drop)
    }

    /// Returns true if the archive has an entry at this path.
    pub(super) fn provides(&self, source: &FileSource, names: &[String]) -> bool {
        let key = fold(&names.join("/"));
        let is_there = |entry: &UnpackedEntry| fold(&entry.path) == key;
        self.entries(source)
            .is_ok_and(|entries| entries.iter().any(is_there))
    }
}

impl fmt::Display for UnpackOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unpacked")?;
        match self.strip {
            0 => Ok(()),
            1 => f.write_str(" without the first component of each path"),
            more => write!(f, " without the first {more} components of each path"),
        }
    }
}

impl Recipe {
    /// Options for unpacking a file, if it is unpacked, and their position in the recipe.
    pub(super) fn unpack<'e>(
        &self,
        entry: &'e FileEntry,
    ) -> Result<Option<(&'e Text, UnpackOptions)>, Problem> {
        let Some(text) = &entry.unpack else {
            return match &entry.strip {
                Some(text) => Err(self.error(text, "strip requires unpack = true")),
                None => Ok(None),
            };
        };
        let format = match text.value.as_str() {
            "false" if entry.strip.is_none() => return Ok(None),
            "true" => None,
            other => Some(ArchiveKind::from_name(other).ok_or_else(|| {
                let names = ArchiveKind::NAMES;
                let problem = format!("invalid unpack {other:?}: expected true, {names}");
                self.error(text, problem)
            })?),
        };
        if entry.from.is_none() && entry.context.is_none() && entry.url.is_none() {
            return Err(self.error(text, "unpack requires from, context or url"));
        }
        let strip = match &entry.strip {
            None => 0,
            Some(text) => text.value.parse().map_err(|_| {
                let value = &text.value;
                let problem =
                    format!("invalid strip {value:?}: expected a number of path components");
                self.error(text, problem)
            })?,
        };
        let unpack = UnpackOptions {
            format,
            strip,
            archives: self.archives.clone(),
        };
        Ok(Some((text, unpack)))
    }
}
