//! One file in an archive, read in place.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use wincimg_common::diagnose::error_chain;
use wincimg_common::digest::{Digest, sha256_of};

use super::Archive;
use super::error::ArchiveError;

/// A file in an archive.
#[derive(Clone)]
pub struct Member {
    pub(super) archive: Arc<Archive>,
    pub(super) index: usize,
}

impl Member {
    /// The archive.
    pub fn archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// Path in the archive.
    pub fn path(&self) -> &str {
        &self.archive.entries[self.index].path
    }

    /// Index in the archive.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.archive.entries[self.index].size
    }

    /// Reads the content, up to `limit` bytes.
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

/// Location, `tools.zip:bin/tool.exe`.
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

/// Equal for the same member of the same file.
impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        let (one, another) = (&self.archive, &other.archive);
        self.index == other.index
            && (Arc::ptr_eq(one, another)
                || one.place == another.place && one.stamp == another.stamp)
    }
}

impl Eq for Member {}

/// Reader of a member's content, which verifies its stated size.
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

    /// Checks that the content ends, which verifies a checksum.
    pub(super) fn finish(&mut self) -> Result<(), ArchiveError> {
        let drained = io::copy(self, &mut io::sink());
        drained.map_err(|error| ArchiveError::from_content(error, self.archive))?;
        match self.source.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.error("it is longer than the archive states")),
            Err(error) => Err(self.error(error_chain(&error))),
        }
    }
}

impl Read for MemberReader<'_> {
    /// Errors wrap an [`ArchiveError`], which [`ArchiveError::from_content`] unwraps.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        if most == 0 {
            return Ok(0);
        }
        match self.source.read(&mut buffer[..most]) {
            Ok(0) => Err(io::Error::other(self.error("it is truncated"))),
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
    /// Converts an error of reading content.
    pub fn from_content(error: io::Error, archive: &str) -> Self {
        error
            .downcast()
            .unwrap_or_else(|source| Self::read(archive, source))
    }
}

/// Requested members of one archive: positions in the caller's list, by the member's index.
struct RequestedMembers<'a> {
    archive: &'a Arc<Archive>,
    places: BTreeMap<usize, Vec<usize>>,
}

/// Reads members archive by archive, each in its own order: in one pass, unless a member is
/// requested more than once. Passes the position of each member to the callback.
pub fn read<E: From<ArchiveError>>(
    members: &[&Member],
    mut take: impl FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut all: Vec<RequestedMembers<'_>> = Vec::new();
    // In reverse, so that the first position is popped first.
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

/// SHA-256 of members, in their order.
pub fn digests(members: &[&Member]) -> Result<Vec<Digest>, ArchiveError> {
    let mut digests = vec![None; members.len()];
    read(members, |place, content| {
        let digest = sha256_of(content);
        let failed = |error| ArchiveError::from_content(error, &members[place].archive.name);
        digests[place] = Some(digest.map_err(failed)?);
        Ok::<_, ArchiveError>(())
    })?;
    Ok(digests.into_iter().flatten().collect())
}
