//! Archives that a line unpacks: what its program reads on Windows, and where things then are.

use std::sync::Arc;

use wincimg_common::diagnose::in_one_line;
use wincimg_layer::archive::{
    Archive, ArchiveError, Format, Packing, Selection, UnpackedContent, Unpacker,
};
use wincimg_recipe::PlannedContent;
use wincimg_registry::Known;
use wincimg_scripts::{Existing, Format as Asked, Trouble, TroubleKind, Unpack};
use wincimg_windows::path::ImagePath;

use super::{Kind, Running, key};

const UNPACK_BEFOREHAND: &str = "unpack it beforehand, and COPY the folder";
const CORRECT: &str = "correct the archive, or unpack it beforehand and COPY the folder";
const ELSEWHERE: &str = "unpack it into a folder of its own, or replace what is there with -Force";

impl Running<'_> {
    /// Lays what is in an archive into a folder.
    pub(super) fn unpack(&mut self, unpack: &Unpack) -> Result<(), Trouble> {
        if self.awaits(&unpack.archive) || self.tree.is_later(&unpack.archive) {
            self.make_folder(unpack.into.clone())?;
            self.tree.later.insert(key(&unpack.into));
            return Ok(());
        }
        let archive = self.archive(&unpack.archive)?;
        check(&archive, unpack)?;
        let selection = Selection {
            strip: unpack.strip,
            only: &unpack.only,
            by: match unpack.format {
                Asked::Zip => Unpacker::Dotnet,
                Asked::Any | Asked::SevenZip => Unpacker::OtherOnWindows,
            },
        };
        let entries = archive.unpacked(&selection);
        self.make_folder(unpack.into.clone())?;
        for entry in entries.map_err(|error| refused(&error))? {
            let path = unpack.into.join_all(&entry.names);
            let path = path.map_err(|error| Trouble::refused(error.to_string()))?;
            match entry.content {
                UnpackedContent::Folder => self.make_unpacked_folder(path)?,
                UnpackedContent::Link(_) if unpack.format == Asked::SevenZip => {
                    let why =
                        format!("{path} is a link, and what 7-Zip makes of it is not certain");
                    return Err(Trouble::unclear(why).help(UNPACK_BEFOREHAND));
                }
                content => {
                    self.may_unpack(&path, unpack.existing)?;
                    self.may_put(&path, false)?;
                    self.put(path, content.into());
                }
            }
        }
        Ok(())
    }

    fn archive(&self, path: &ImagePath) -> Result<Arc<Archive>, Trouble> {
        let Some(entry) = self.tree.made(path) else {
            let why = format!("what the base has at {path} is not at hand to be unpacked");
            return Err(Trouble::unknown(why).help(UNPACK_BEFOREHAND));
        };
        let not_one = || {
            let why = format!("{path} is not an archive");
            Trouble::refused(why).help(CORRECT)
        };
        let PlannedContent::File(source) = &entry.content else {
            return Err(not_one());
        };
        let opened = source.archive(self.archives);
        opened.map_err(|error| refused(&error))?.ok_or_else(not_one)
    }

    fn make_unpacked_folder(&mut self, path: ImagePath) -> Result<(), Trouble> {
        if self.kind(&path)? == Known::Present(Kind::File(())) {
            let why = format!("{path} is a file, where the archive has a folder");
            return Err(Trouble::refused(why).help(ELSEWHERE));
        }
        self.make_folder(path)
    }

    /// Whether a file of an archive may come to a path.
    fn may_unpack(&self, path: &ImagePath, existing: Existing) -> Result<(), Trouble> {
        let (kind, why) = match (self.kind(path)?, existing) {
            (Known::Present(Kind::Folder), _) => (
                TroubleKind::Refused,
                format!("{path} is a folder, where the archive has a file"),
            ),
            (Known::Present(Kind::Link(())), _) => (
                TroubleKind::NotUnderstood,
                format!("{path} is a link, where the archive has a file"),
            ),
            (Known::Present(Kind::File(())), Existing::Error) => (
                TroubleKind::Refused,
                format!("{path} is there already, and is not replaced without -Force"),
            ),
            (Known::Unknown, Existing::Error) => (
                TroubleKind::NotKnown,
                format!("whether the base has {path} already is not known"),
            ),
            _ => return Ok(()),
        };
        let trouble = Trouble::new(kind, why);
        Err(match kind {
            TroubleKind::NotKnown => trouble,
            _ => trouble.help(ELSEWHERE),
        })
    }
}

/// Whether the program reads such an archive.
fn check(archive: &Archive, unpack: &Unpack) -> Result<(), Trouble> {
    let found = archive.format();
    let name = archive.name();
    match (unpack.format, found) {
        (Asked::Zip, Format::Zip)
        | (Asked::Any, Format::Zip | Format::Tar(Packing::Plain | Packing::Gzip))
        | (Asked::SevenZip, Format::Zip | Format::SevenZip | Format::Tar(Packing::Plain)) => Ok(()),
        (Asked::Zip, _) => Err(Trouble::refused(format!(
            "{name} is {found}, where a zip is expected"
        ))
        .help("unpack it with ADD or tar -xf")),
        (Asked::Any, _) => Err(Trouble::unclear(format!(
            "{name} is {found}, which tar does not read before Windows Server 2025"
        ))
        .help("unpack it with ADD, which reads tar however it is compressed")),
        (Asked::SevenZip, _) => Err(Trouble::unclear(format!(
            "{name} is {found}, of which 7-Zip makes the tar and no more"
        ))
        .help("unpack it with ADD or tar -xf")),
    }
}

/// PowerShell may go on behind such an error, with part of the archive unpacked.
fn refused(error: &ArchiveError) -> Trouble {
    let kind = match error {
        ArchiveError::Whole { .. } | ArchiveError::Member { .. } => TroubleKind::Refused,
        ArchiveError::Read { .. } | ArchiveError::Changed { .. } => TroubleKind::NotKnown,
    };
    Trouble::new(kind, in_one_line(error)).help(CORRECT)
}
