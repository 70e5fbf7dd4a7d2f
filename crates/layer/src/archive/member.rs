//! One file in an archive, which is read where it lies.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use wincimg_common::diagnose::error_chain;

use super::Archive;
use super::error::ArchiveError;

/// A file in an archive.
#[derive(Clone)]
pub struct Member {
    pub(super) archive: Arc<Archive>,
    pub(super) index: usize,
}

impl Member {
    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.archive.entries[self.index].size
    }

    /// All of it, if that is not more than `limit` bytes.
    pub fn bytes(&self, limit: u64) -> Result<Vec<u8>, ArchiveError> {
        let size = self.size();
        let entry = &self.archive.entries[self.index];
        let failed = |problem| ArchiveError::member(&self.archive.name, &entry.path, problem);
        if size > limit {
            return Err(failed(format!("it is larger than {limit} bytes")));
        }
        let mut bytes = Vec::new();
        read(&[self], |_, content| {
            content
                .read_to_end(&mut bytes)
                .map(drop)
                .map_err(|error| ArchiveError::from_content(error, &self.archive.name))
        })?;
        Ok(bytes)
    }
}

/// Where it is, `tools.zip:bin/tool.exe`.
impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = &self.archive.entries[self.index];
        write!(f, "{}:{}", self.archive.name, entry.path)
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Member({self})")
    }
}

/// The same member of the same file.
impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        let (one, another) = (&self.archive, &other.archive);
        self.index == other.index
            && (Arc::ptr_eq(one, another)
                || one.place == another.place && one.stamp == another.stamp)
    }
}

impl Eq for Member {}

/// The content of a member on its way out of its archive: just as many bytes as it is said to have.
pub struct MemberReader<'a> {
    source: &'a mut dyn Read,
    left: u64,
    archive: &'a str,
    member: &'a str,
}

impl<'a> MemberReader<'a> {
    pub(super) fn new(archive: &'a Archive, index: usize, source: &'a mut dyn Read) -> Self {
        let entry = &archive.entries[index];
        Self {
            source,
            left: entry.size,
            archive: &archive.name,
            member: &entry.path,
        }
    }

    fn error(&self, problem: impl Into<String>) -> ArchiveError {
        ArchiveError::member(self.archive, self.member, problem)
    }

    /// Sees to it that nothing else comes, and that a checksum was looked at.
    pub(super) fn finish(&mut self) -> Result<(), ArchiveError> {
        let drained = io::copy(self, &mut io::sink());
        drained.map_err(|error| ArchiveError::from_content(error, self.archive))?;
        match self.source.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.error("it is longer than the archive says")),
            Err(error) => Err(self.error(error_chain(&error))),
        }
    }
}

impl Read for MemberReader<'_> {
    /// An error is an [`ArchiveError`] inside, as [`ArchiveError::from_content`] takes it out.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        if most == 0 {
            return Ok(0);
        }
        match self.source.read(&mut buffer[..most]) {
            Ok(0) => Err(io::Error::other(
                self.error("the archive ends in the middle of it"),
            )),
            Ok(read) => {
                self.left -= read as u64;
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(io::Error::other(self.error(error_chain(&error)))),
        }
    }
}

impl ArchiveError {
    /// What went wrong while content was read.
    pub fn from_content(error: io::Error, archive: &str) -> Self {
        error
            .downcast()
            .unwrap_or_else(|source| Self::read(archive, source))
    }
}

/// Members of one archive that are wanted: places in the caller's list, by the member's index.
struct RequestedMembers<'a> {
    archive: &'a Arc<Archive>,
    places: BTreeMap<usize, Vec<usize>>,
}

/// Reads members, archive by archive, and each archive in its own order: in one pass, unless a
/// member is wanted more than once. Says which of them it is at.
pub fn read<E: From<ArchiveError>>(
    members: &[&Member],
    mut take: impl FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut all: Vec<RequestedMembers<'_>> = Vec::new();
    // From the end, so that the first place is the first one taken.
    for (place, member) in members.iter().enumerate().rev() {
        let is_same = |known: &RequestedMembers<'_>| Arc::ptr_eq(known.archive, &member.archive);
        let at = all.iter().position(is_same).unwrap_or_else(|| {
            all.push(RequestedMembers {
                archive: &member.archive,
                places: BTreeMap::new(),
            });
            all.len() - 1
        });
        let places = all[at].places.entry(member.index).or_default();
        places.push(place);
    }
    for RequestedMembers {
        archive,
        mut places,
    } in all.into_iter().rev()
    {
        while !places.is_empty() {
            let now = places.keys().copied().collect();
            archive.each(&now, &mut |index, content| {
                let place = places.get_mut(&index).and_then(Vec::pop);
                place.map_or(Ok(()), |place| take(place, content))
            })?;
            places.retain(|_, places| !places.is_empty());
        }
    }
    Ok(())
}
