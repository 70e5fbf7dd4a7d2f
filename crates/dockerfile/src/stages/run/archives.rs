//! Archives that a line unpacks: formats that its program supports on Windows, and target paths.

use std::sync::Arc;

use wincimg_common::diagnose::error_chain;
use wincimg_layer::archive::{
    Archive, ArchiveError, ArchiveFormat, StreamCompression, UnpackSelection, UnpackedContent,
    Unpacker,
};
use wincimg_recipe::PlannedContent;
use wincimg_registry::Presence;
use wincimg_scripts::{ScriptError, ScriptErrorKind, UnpackAction, UnpackFormat as Asked};
use wincimg_windows::path::ImagePath;

use super::{PathKind, Result, RunState};

const UNPACK_BEFOREHAND: &str = "unpack it beforehand, and COPY the folder";
const CORRECT: &str = "correct the archive, or unpack it beforehand and COPY the folder";
const OTHER_FOLDER: &str =
    "unpack it into a folder of its own, or replace existing files with -Force";

impl RunState<'_> {
    /// Unpacks an archive to a folder.
    pub(super) fn unpack(&mut self, unpack: &UnpackAction) -> Result<()> {
        if self.is_pending_download(&unpack.archive) || self.tree.is_later(&unpack.archive) {
            self.make_folder(unpack.into.clone())?;
            self.tree.marks.later.insert(unpack.into.key());
            return Ok(());
        }
        let archive = self.archive(&unpack.archive)?;
        check(&archive, unpack)?;
        let selection = UnpackSelection {
            strip: unpack.strip,
            only: &unpack.only,
            by: match unpack.format {
                Asked::Zip => Unpacker::Dotnet,
                Asked::Any | Asked::SevenZip => Unpacker::OtherOnWindows,
            },
        };
        let entries = archive.unpack(&selection);
        self.make_folder(unpack.into.clone())?;
        for entry in entries.map_err(|error| refused(&error))? {
            let path = unpack.into.join_all(entry.path.split('/'));
            let path = path.map_err(|error| ScriptError::refused(error.to_string()))?;
            match entry.content {
                UnpackedContent::Folder => {
                    if self.kind(&path)? == Presence::Present(PathKind::File(())) {
                        let why = format!("{path} is a file, but a folder in the archive");
                        return Err(ScriptError::refused(why).help(OTHER_FOLDER));
                    }
                    self.make_folder(path)?;
                }
                UnpackedContent::Link(_) if unpack.format == Asked::SevenZip => {
                    let why = format!("{path} is a link, which 7-Zip may unpack differently");
                    return Err(ScriptError::unclear(why).help(UNPACK_BEFOREHAND));
                }
                content => {
                    self.may_unpack(&path, unpack.overwrites)?;
                    self.check_writable(&path, false)?;
                    self.put(path, content.into())?;
                }
            }
        }
        Ok(())
    }

    fn archive(&self, path: &ImagePath) -> Result<Arc<Archive>> {
        let Some(entry) = self.tree.created_entry(path) else {
            let why = format!("cannot unpack {path} of the base");
            return Err(ScriptError::unknown(why).help(UNPACK_BEFOREHAND));
        };
        let not_one = || ScriptError::refused(format!("{path} is not an archive")).help(CORRECT);
        let PlannedContent::File(source) = &entry.content else {
            return Err(not_one());
        };
        let opened = source.archive(&self.stages.archives);
        opened.map_err(|error| refused(&error))?.ok_or_else(not_one)
    }

    /// Checks that a file of an archive can be unpacked to a path.
    fn may_unpack(&self, path: &ImagePath, overwrites: bool) -> Result<()> {
        let failure = match (self.kind(path)?, overwrites) {
            (Presence::Present(PathKind::Folder), _) => {
                ScriptError::refused(format!("{path} is a folder, but a file in the archive"))
            }
            (Presence::Present(PathKind::Link(())), _) => {
                ScriptError::unclear(format!("{path} is a link, but a file in the archive"))
            }
            (Presence::Present(PathKind::File(())), false) => ScriptError::refused(format!(
                "{path} already exists, and is not replaced without -Force"
            )),
            (Presence::Unknown, false) => {
                let why = format!("it is unknown whether {path} exists in the base");
                return Err(ScriptError::unknown(why));
            }
            _ => return Ok(()),
        };
        Err(failure.help(OTHER_FOLDER))
    }
}

/// Checks that the program supports the archive.
fn check(archive: &Archive, unpack: &UnpackAction) -> Result<()> {
    let found = archive.format();
    let is_supported = match unpack.format {
        Asked::Zip => found == ArchiveFormat::Zip,
        Asked::Any => matches!(
            found,
            ArchiveFormat::Zip
                | ArchiveFormat::Tar(StreamCompression::Plain | StreamCompression::Gzip)
        ),
        Asked::SevenZip => matches!(
            found,
            ArchiveFormat::Zip
                | ArchiveFormat::SevenZip
                | ArchiveFormat::Tar(StreamCompression::Plain)
        ),
    };
    if is_supported {
        return Ok(());
    }
    let is = format!("{} is {found}", archive.name());
    let error = match unpack.format {
        Asked::Zip => ScriptError::refused(format!("{is}, expected a zip")),
        Asked::Any => ScriptError::unclear(format!(
            "{is}, which tar supports only since Windows Server 2025"
        )),
        Asked::SevenZip => {
            ScriptError::unclear(format!("{is}, from which 7-Zip unpacks only the tar"))
        }
    };
    Err(error.help(match found {
        ArchiveFormat::Tar(_) => "unpack it with ADD, which supports every compression of tar",
        _ => "use a zip, or a recipe with unpack = true",
    }))
}

/// PowerShell may continue after such an error, with a part of the archive unpacked.
fn refused(error: &ArchiveError) -> ScriptError {
    let kind = match error {
        ArchiveError::Invalid { .. } | ArchiveError::Unsupported { .. } => ScriptErrorKind::Refused,
        ArchiveError::Read { .. } | ArchiveError::Changed { .. } => ScriptErrorKind::NotKnown,
    };
    ScriptError::new(kind, error_chain(error)).help(CORRECT)
}
