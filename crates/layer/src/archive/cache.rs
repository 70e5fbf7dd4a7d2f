//! Archives that were opened, each once however many instructions, images and looks there are.

use std::io;
use std::sync::{Arc, Mutex};

use wincimg_common::files::{SpoolPart, SpoolWriter};
use wincimg_common::lock;

use super::error::ArchiveError;
use super::member::{Member, read};
use super::{Archive, ArchiveLocation};

/// Archives by where they are.
#[derive(Debug, Clone, Default)]
pub struct Archives(Arc<Mutex<OpenArchive>>);

#[derive(Debug, Default)]
struct OpenArchive {
    /// None where the file is not an archive.
    archives: Vec<(ArchiveLocation, Option<Arc<Archive>>)>,
    /// Copies of archives that lie in others.
    copies: Vec<(Member, SpoolPart)>,
}

impl Archives {
    /// Opens an archive that people know by a name; none where the file is not one.
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

    /// Opens an archive that lies in another. Its list stands at its end, and it is read more than
    /// once: this one is copied to a file without a name.
    pub fn open_inner(&self, member: &Member) -> Result<Option<Arc<Archive>>, ArchiveError> {
        let copy = {
            let mut opened = lock(&self.0);
            let known = opened.copies.iter().find(|(known, _)| known == member);
            match known {
                Some((_, copy)) => copy.clone(),
                None => {
                    let copy = copied(member)?;
                    opened.copies.push((member.clone(), copy.clone()));
                    copy
                }
            }
        };
        self.open(ArchiveLocation::Part(copy), &member.to_string())
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
    copy.ok_or_else(|| ArchiveError::whole(&name, "it has no content"))
}

/// What was opened does not belong to what a plan says.
impl PartialEq for Archives {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Archives {}
