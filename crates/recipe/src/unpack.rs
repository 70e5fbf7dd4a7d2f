//! Archives that a recipe unpacks where they go.

use std::fmt;

use serde::Serialize;
use wincimg_layer::archive::{
    ArchiveError, ArchiveFormat, Archives, UnpackSelection, UnpackedEntry,
};
use wincimg_windows::path::fold;

use super::file::FileEntry;
use super::source::FileSource;
use super::text::Text;
use super::{Recipe, RecipeError};

/// Options for unpacking an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnpackOptions {
    /// What it has to be, where the recipe says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ArchiveKind>,
    /// Number of names dropped from the start of each path; shorter paths are left out.
    pub strip: usize,
    /// What was opened already.
    #[serde(skip)]
    archives: Archives,
}

/// What recipes tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ArchiveKind {
    /// A zip file.
    Zip,
    /// A tar, however it is compressed.
    Tar,
    /// A 7z file.
    #[serde(rename = "7z")]
    SevenZip,
}

impl ArchiveKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Tar => "tar",
            Self::SevenZip => "7z",
        }
    }

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
    /// What is in the archive.
    pub fn entries(&self, source: &FileSource) -> Result<Vec<UnpackedEntry>, ArchiveError> {
        let Some(archive) = source.archive(&self.archives)? else {
            let problem = "it is not an archive: expected zip, 7z, or tar, which gzip, zstd, xz or \
                           bzip2 may have compressed";
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
            let problem = format!("nothing is left of it with strip = {}", self.strip);
            return Err(refused(problem));
        }
        Ok(entries)
    }

    /// Returns true if the archive can be unpacked, if it is here.
    pub(super) fn check(&self, source: &FileSource) -> Result<(), ArchiveError> {
        if matches!(source, FileSource::Download(download) if download.content.is_none()) {
            return Ok(());
        }
        self.entries(source).map(drop)
    }

    /// Returns true if the archive has something at a path below the folder that it goes to.
    pub(super) fn provides(&self, source: &FileSource, names: &[String]) -> bool {
        let key = fold(&names.join("/"));
        let is_there = |entry: &UnpackedEntry| fold(&entry.names.join("/")) == key;
        self.entries(source)
            .is_ok_and(|entries| entries.iter().any(is_there))
    }
}

impl fmt::Display for UnpackOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unpacked")?;
        match self.strip {
            0 => Ok(()),
            1 => f.write_str(" without the first name of each path"),
            more => write!(f, " without the first {more} names of each path"),
        }
    }
}

impl Recipe {
    /// How a file is unpacked, if it is, and where that stands.
    pub(super) fn unpack<'e>(
        &self,
        entry: &'e FileEntry,
    ) -> Result<Option<(&'e Text, UnpackOptions)>, RecipeError> {
        let Some(text) = &entry.unpack else {
            return match &entry.strip {
                Some(text) => Err(self.error(text, "strip is for what unpack = true unpacks")),
                None => Ok(None),
            };
        };
        let format = match text.value.as_str() {
            "false" if entry.strip.is_none() => return Ok(None),
            "true" => None,
            "zip" => Some(ArchiveKind::Zip),
            "tar" => Some(ArchiveKind::Tar),
            "7z" => Some(ArchiveKind::SevenZip),
            other => {
                let problem = format!("invalid unpack {other:?}: expected true, zip, tar or 7z");
                return Err(self.error(text, problem));
            }
        };
        if entry.from.is_none() && entry.context.is_none() && entry.url.is_none() {
            return Err(self.error(
                text,
                "unpack is for archives that from, context or url names",
            ));
        }
        let strip = match &entry.strip {
            None => 0,
            Some(text) => text.value.parse().map_err(|_| {
                let value = &text.value;
                let problem = format!("invalid strip {value:?}: expected a number of names");
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
