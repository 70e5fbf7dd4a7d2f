//! Cache of opened archives, shared by all instructions and images.

use std::io;
use std::sync::{Arc, Mutex};

use wincimg_common::files::{SpoolPart, SpoolWriter};
use wincimg_common::lock;

use super::error::ArchiveError;
use super::member::{Member, read};
use super::{Archive, ArchiveLocation};

/// Opened archives by location.
#[derive(Debug, Clone, Default)]
pub struct Archives(Arc<Mutex<OpenArchive>>);

#[derive(Debug, Default)]
struct OpenArchive {
    /// `None` where the file is not an archive.
    archives: Vec<(ArchiveLocation, Option<Arc<Archive>>)>,
    /// Windows Installer packages and their cabinets.
    #[cfg(feature = "installers")]
    packages: Vec<(ArchiveLocation, Arc<Archive>)>,
    /// Copies of archives inside other archives.
    copies: Vec<(Member, SpoolPart)>,
}

impl Archives {
    /// Opens an archive, with a name for messages; `None` if the file is not an archive.
    pub fn open(
        &self,
        place: ArchiveLocation,
        name: &str,
    ) -> Result<Option<Arc<Archive>>, ArchiveError> {
        let mut opened = lock(&self.0);
        let known = opened.archives.iter().find(|(known, _)| *known == place);
        if let Some((_, archive)) = known {
            return Ok(archive.clone());
        }
        let archive = Archive::open(place.clone(), name.to_owned())?.map(Arc::new);
        opened.archives.push((place, archive.clone()));
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

#[cfg(feature = "installers")]
impl Archives {
    /// Opens an archive that is not detected, the first time.
    pub fn open_with(
        &self,
        place: ArchiveLocation,
        name: String,
        open: fn(ArchiveLocation, String) -> Result<Archive, ArchiveError>,
    ) -> Result<Arc<Archive>, ArchiveError> {
        let mut opened = lock(&self.0);
        let known = opened.packages.iter().find(|(known, _)| *known == place);
        if let Some((_, package)) = known {
            return Ok(Arc::clone(package));
        }
        let package = Arc::new(open(place.clone(), name)?);
        opened.packages.push((place, Arc::clone(&package)));
        Ok(package)
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
