//! Writer of a layer's tar stream: headers, the files' content, the end mark.
//!
//! Files in archives come last: each archive is read in its own order.

use std::io::{self, Read};
use std::thread;

use super::content::{ContentSource, EntryContent, TarItem};
use super::error::LayerError;
use super::header::{self, BLOCK};
use super::pipeline::Stream;
use super::read_ahead::{PreparedFile, ReadAhead};
use super::sorted::SortedLayer;
use crate::DiskSource;
use crate::archive;
use crate::archive::{ArchiveError, Member};

const ZEROS: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

impl SortedLayer<'_> {
    /// Writes the entries in the order of the stream.
    pub(super) fn stream_to<S: Stream>(&self, blocks: &mut S) -> Result<(), LayerError> {
        thread::scope(|scope| {
            let files = self.in_stream().filter_map(|item| match item.content {
                EntryContent::File(ContentSource::Path(source)) => Some(source),
                _ => None,
            });
            self.stream_with(&mut ReadAhead::new(scope, files), blocks)
        })
    }

    fn stream_with<'scope, 'a: 'scope, S: Stream>(
        &'a self,
        files: &mut ReadAhead<'scope, '_, 'a, impl Iterator<Item = &'a DiskSource>>,
        blocks: &mut S,
    ) -> Result<(), LayerError> {
        let timestamp = self.layer.timestamp;
        let mut headers = Vec::new();
        let mut members = Vec::new();
        for item in self.in_stream() {
            blocks.check_cancelled()?;
            let mut begin = |size, blocks: &mut S| {
                header::encode(item, size, timestamp, &mut headers);
                blocks.write(&headers)
            };
            let size = match item.content {
                EntryContent::File(ContentSource::Path(_)) => match files.next()? {
                    PreparedFile::Read(bytes) => {
                        begin(bytes.len() as u64, blocks)?;
                        blocks.write(bytes)?;
                        bytes.len() as u64
                    }
                    PreparedFile::Open(file) => {
                        let size = file.size();
                        begin(size, blocks)?;
                        file.copy(blocks)?;
                        size
                    }
                },
                EntryContent::File(ContentSource::Part(part)) => {
                    begin(part.length(), blocks)?;
                    let mut source = part.open().map_err(LayerError::Write)?;
                    blocks.fill(part.length(), |room| {
                        source.read_exact(room).map_err(LayerError::Write)?;
                        Ok(room.len())
                    })?;
                    part.length()
                }
                EntryContent::File(ContentSource::NotDownloaded { url, .. }) => {
                    return Err(LayerError::NotDownloaded(url.clone()));
                }
                EntryContent::File(ContentSource::Member(member)) => {
                    members.push((item, member));
                    continue;
                }
                EntryContent::File(ContentSource::Bytes(bytes)) => {
                    begin(bytes.len() as u64, blocks)?;
                    blocks.write(bytes)?;
                    bytes.len() as u64
                }
                EntryContent::Directory | EntryContent::Symlink(_) | EntryContent::Deletion => {
                    begin(0, blocks)?;
                    0
                }
            };
            blocks.write(padding(size))?;
        }
        stream_members(&members, timestamp, blocks)?;
        // Two empty blocks end an archive.
        blocks.write(&ZEROS)
    }
}

/// Writes members of archives, archive by archive.
fn stream_members<S: Stream>(
    members: &[(&TarItem<'_>, &Member)],
    timestamp: u64,
    blocks: &mut S,
) -> Result<(), LayerError> {
    let mut headers = Vec::new();
    let sources: Vec<_> = members.iter().map(|(_, member)| *member).collect();
    archive::read(&sources, |place, content| {
        blocks.check_cancelled()?;
        let (item, member) = members[place];
        let size = member.size();
        header::encode(item, size, timestamp, &mut headers);
        blocks.write(&headers)?;
        blocks.fill(size, |room| match content.read(room) {
            Ok(read) => Ok(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(ArchiveError::from_content(error, "the archive").into()),
        })?;
        blocks.write(padding(size))
    })
}

/// Zeros after content of this size.
pub(super) fn padding(size: u64) -> &'static [u8] {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    &ZEROS[..(BLOCK - over) % BLOCK]
}
