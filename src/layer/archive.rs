//! The tar stream of a layer: headers, the files' content, the end mark.
//!
//! Files in archives come behind all else: each archive is read in its own order.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::arranged::Arranged;
use super::content::{Content, Source};
use super::error::LayerError;
use super::header::{self, BLOCK};
use super::pipeline::Stream;
use crate::archive::{self, ArchiveError};
use crate::files;

const ZEROS: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

impl Arranged<'_> {
    /// Writes the entries in the order of the stream.
    pub(super) fn stream_to<S: Stream>(&self, blocks: &mut S) -> Result<(), LayerError> {
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
                Content::File(Source::Path(path)) => {
                    let open = OpenFile::at(path)?;
                    begin(open.size, blocks)?;
                    open.copy(blocks)?
                }
                Content::File(Source::Part(part)) => {
                    begin(part.length(), blocks)?;
                    let mut source = part.open().map_err(LayerError::Write)?;
                    let mut left = part.length();
                    while left > 0 {
                        let room = blocks.room()?;
                        let most = usize::try_from(left).unwrap_or(room.len()).min(room.len());
                        source
                            .read_exact(&mut room[..most])
                            .map_err(LayerError::Write)?;
                        blocks.advance(most);
                        left -= most as u64;
                    }
                    part.length()
                }
                Content::File(Source::Lacking { url, .. }) => {
                    return Err(LayerError::Lacking(url.clone()));
                }
                Content::File(Source::Member(member)) => {
                    members.push((item, member));
                    continue;
                }
                Content::File(Source::Bytes(bytes)) => {
                    begin(bytes.len() as u64, blocks)?;
                    blocks.write(bytes)?;
                    bytes.len() as u64
                }
                Content::Directory | Content::Symlink { .. } | Content::Deletion => {
                    begin(0, blocks)?;
                    0
                }
            };
            blocks.write(padding(size))?;
        }
        let sources: Vec<_> = members.iter().map(|(_, member)| *member).collect();
        archive::read(&sources, |place, content| {
            blocks.check_cancelled()?;
            let (item, member) = &members[place];
            let size = member.size();
            header::encode(item, size, timestamp, &mut headers);
            blocks.write(&headers)?;
            let mut left = size;
            while left > 0 {
                let room = blocks.room()?;
                let most = usize::try_from(left).unwrap_or(room.len()).min(room.len());
                match content.read(&mut room[..most]) {
                    Ok(read) => {
                        blocks.advance(read);
                        left -= read as u64;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(ArchiveError::of_content(error, "the archive").into()),
                }
            }
            blocks.write(padding(size))
        })?;
        // Two empty blocks end an archive.
        blocks.write(&ZEROS)
    }
}

fn padding(size: u64) -> &'static [u8] {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    &ZEROS[..(BLOCK - over) % BLOCK]
}

/// A file on disk whose size was promised to the reader of the stream.
struct OpenFile<'a> {
    path: &'a Path,
    file: File,
    size: u64,
    metadata: fs::Metadata,
}

impl<'a> OpenFile<'a> {
    fn at(path: &'a Path) -> Result<Self, LayerError> {
        let (file, metadata) =
            files::open_known(path).map_err(|source| match fs::metadata(path) {
                Ok(found) if !found.is_file() => LayerError::NotAFile {
                    path: path.to_owned(),
                },
                _ => unreadable(path, source),
            })?;
        Ok(Self {
            path,
            file,
            size: metadata.len(),
            metadata,
        })
    }

    fn copy(mut self, blocks: &mut impl Stream) -> Result<u64, LayerError> {
        let mut left = self.size;
        while left > 0 {
            let room = blocks.room()?;
            let most = usize::try_from(left).unwrap_or(room.len()).min(room.len());
            match self.file.read(&mut room[..most]) {
                Ok(0) => return Err(self.changed()),
                Ok(read) => {
                    blocks.advance(read);
                    left -= read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(self.path, error)),
            }
        }
        let after = self.file.metadata();
        let after = after.map_err(|source| unreadable(self.path, source))?;
        let is_same =
            after.len() == self.size && after.modified().ok() == self.metadata.modified().ok();
        if is_same {
            Ok(self.size)
        } else {
            Err(self.changed())
        }
    }

    fn changed(&self) -> LayerError {
        LayerError::Changed {
            path: self.path.to_owned(),
        }
    }
}

fn unreadable(path: &Path, source: io::Error) -> LayerError {
    LayerError::Read {
        path: path.to_owned(),
        source,
    }
}
