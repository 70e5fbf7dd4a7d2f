//! Cache of opened archives, shared by all instructions and images.

use std::io;
use std::sync::{Arc, Mutex};

use wincimg_common::files::{SpoolPart, SpoolWriter};
use wincimg_common::lock;

use super::error::ArchiveError;
use super::member::{Member, read};
use super::{Archive, ArchiveFormat, ArchiveLocation};

/// Opened archives by location.
#[derive(Debug, Clone, Default)]
pub struct Archives(Arc<Mutex<OpenArchive>>);

#[derive(Debug, Default)]
struct OpenArchive {
    /// With the format that they are opened as, if it is not the detected one; `None` where the
    /// file is not an archive.
    archives: Vec<(ArchiveLocation, Option<ArchiveFormat>, Option<Arc<Archive>>)>,
    /// Copies of archives inside other archives.
    copies: Vec<(Member, SpoolPart)>,
}

impl Archives {
    /// Opens an archive of a format, or of the detected one, with a name for messages; `None` if
    /// the file is not an archive.
    pub fn open(
        &self,
        place: ArchiveLocation,
        name: &str,
        format: Option<ArchiveFormat>,
    ) -> Result<Option<Arc<Archive>>, ArchiveError> {
        let mut opened = lock(&self.0);
        let mut known = opened.archives.iter();
        let known = known.find(|(known, own, _)| *known == place && *own == format);
        if let Some((.., archive)) = known {
            return Ok(archive.clone());
        }
        let archive = Archive::open(place.clone(), name.to_owned(), format)?.map(Arc::new);
        opened.archives.push((place, format, archive.clone()));
        Ok(archive)
    }

    /// Location of an archive inside another one. It is read more than once, and from its end, so it
    /// is copied to an unnamed temporary file.
    pub fn locate_inner(&self, member: &Member) -> Result<ArchiveLocation, ArchiveError> {
        let mut opened = lock(&self.0);
        let known = opened.copies.iter().find(|(known, _)| known == member);
        let copy = match known {
            Some((_, copy)) => copy.clone(),
            None => {
                let copy = copied(member)?;
                opened.copies.push((member.clone(), copy.clone()));
                copy
            }
        };
        Ok(ArchiveLocation::Part(copy))
    }
}

fn copied(member: &Member) -> Result<SpoolPart, ArchiveError> {
    let name = member.to_string();
    let unwritable = |source| ArchiveError::read(&name, source);
    let mut parts = SpoolWriter::in_folder(&std::env::temp_dir()).map_err(unwritable)?;
    let mut copy = None;
    read(&[member], |_, content| {
        let part = parts.append(|out| io::copy(content, out).map(drop));
        copy = Some(part.map_err(|error| ArchiveError::from_content(error, &name))?);
        Ok::<(), ArchiveError>(())
    })?;
    copy.ok_or_else(|| ArchiveError::whole(&name, "it is empty"))
}

/// The cache is not part of a plan's identity.
impl PartialEq for Archives {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Archives {}
