//! Local blob bytes: ranges of files as sources, and writing a source to a file with length and
//! digest verified.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, ReadBuf};
use wincimg_common::diagnose::Problem;
use wincimg_common::files;
use wincimg_common::files::AtomicFile;
use wincimg_common::progress::Task;

use super::document::{Descriptor, Hasher, check, hasher_of};
use super::remote::{BlobObserver, BlobReader, BlobSource, RemoteBlob};

/// Large enough that hashing and system calls dominate, small enough for many transfers at once.
const BUFFER: usize = 256 * 1024;

/// Error for a blob whose bytes cannot be read after `at` of them.
pub(super) fn unreadable(blob: &Descriptor, at: u64, source: io::Error) -> Problem {
    let (digest, size) = (&blob.digest, blob.size);
    let problem = format!("cannot read {digest} after {at} of {size} bytes");
    Problem::new("image/document", problem).source(source)
}

/// Error for a blob of another size than its descriptor states; at most one byte more is read.
fn wrong_length(blob: &Descriptor, found: u64) -> Problem {
    let (digest, expected) = (&blob.digest, blob.size);
    let problem = format!("{digest} has {found} bytes: expected {expected}");
    Problem::new("image/document", problem)
}

/// Error for a file that cannot be written; a full disk is distinguished.
pub(super) fn unwritable(path: &Path) -> impl Fn(io::Error) -> Problem + use<> {
    let path = path.display().to_string();
    move |error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Problem::new("output/write", format!("no space left to write {path}"))
        }
        _ => Problem::new("output/write", format!("cannot write {path}")).source(error),
    }
}

/// A range of a file that holds a blob.
#[derive(Debug, Clone)]
pub struct FileRange {
    path: PathBuf,
    start: u64,
    pub(super) len: u64,
    /// True if the file has to end there.
    is_whole: bool,
}

impl FileRange {
    /// The range of `len` bytes from `start`.
    pub fn new(path: impl Into<PathBuf>, start: u64, len: u64) -> Self {
        Self {
            path: path.into(),
            start,
            len,
            is_whole: false,
        }
    }

    /// A file with exactly one blob.
    pub(super) fn whole(path: impl Into<PathBuf>, blob: &Descriptor) -> Self {
        Self {
            is_whole: true,
            ..Self::new(path, 0, blob.size)
        }
    }

    /// Opens a blocking reader of the range.
    pub fn reader(&self) -> io::Result<io::Take<std::fs::File>> {
        let mut file = files::open(&self.path)?;
        file.seek(SeekFrom::Start(self.start))?;
        Ok(file.take(self.len))
    }

    /// Reads the range into memory; for documents, which are small.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl BlobSource for FileRange {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        Box::pin(async move {
            let mut file = File::from_std(files::open(&self.path)?);
            let (has, needs) = (file.metadata().await?.len(), self.start + self.len);
            if self.is_whole && has != needs {
                let path = self.path.display();
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{path} has {has} bytes: the manifest says {needs}"),
                ));
            }
            if has < needs {
                let path = self.path.display();
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("{path} has {has} bytes: expected at least {needs}"),
                ));
            }
            file.set_max_buf_size(BUFFER);
            let offset = offset.min(self.len);
            file.seek(SeekFrom::Start(self.start + offset)).await?;
            Ok(Box::pin(AsyncReadExt::take(file, self.len - offset)) as BlobReader)
        })
    }
}

/// The bytes of a blob in some store.
pub enum BlobHandle {
    /// In a registry or at a URL.
    Remote(Box<RemoteBlob>),
    /// In a local file or in this process.
    Local(Arc<dyn BlobSource>),
}

impl BlobHandle {
    /// Shows the bytes of a remote blob to an observer.
    pub(super) fn observed_by(self, observer: BlobObserver) -> Self {
        match self {
            Self::Remote(remote) => Self::Remote(Box::new(remote.observed_by(observer))),
            local @ Self::Local(_) => local,
        }
    }

    /// Returns the remote blob, if it is one without an observer.
    pub(super) fn as_download(&self) -> Option<&RemoteBlob> {
        match self {
            Self::Remote(remote) if !remote.is_observed() => Some(remote),
            _ => None,
        }
    }
}

impl BlobSource for BlobHandle {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        match self {
            Self::Remote(remote) => remote.open(offset),
            Self::Local(local) => local.open(offset),
        }
    }
}

/// A reader that fails at the end unless the bytes match the blob; discard all results then.
pub(super) struct VerifyingReader {
    reader: BlobReader,
    blob: Descriptor,
    read: u64,
    hasher: Option<Hasher>,
}

impl VerifyingReader {
    /// Wraps a reader that starts at the blob's first byte.
    pub(super) fn new(reader: BlobReader, blob: &Descriptor) -> Result<Self, Problem> {
        Ok(Self {
            reader,
            read: 0,
            hasher: Some(hasher_of(&blob.digest)?),
            blob: blob.clone(),
        })
    }

    fn check(&mut self) -> Result<(), Problem> {
        if self.read != self.blob.size {
            return Err(wrong_length(&self.blob, self.read));
        }
        // The end may be read several times; it is checked the first time.
        match self.hasher.take() {
            Some(hasher) => check(hasher, &self.blob.digest),
            None => Ok(()),
        }
    }
}

impl AsyncRead for VerifyingReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.reader.as_mut().poll_read(context, buffer))?;
        let new = &buffer.filled()[before..];
        if new.is_empty() && buffer.remaining() > 0 {
            return Poll::Ready(self.check().map_err(io::Error::other));
        }
        self.read += new.len() as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(new);
        }
        Poll::Ready(Ok(()))
    }
}

/// Writes a blob to `file`, whose path is `path`. Fails unless the bytes match the descriptor; the
/// error has `code` if it is the source's.
pub(super) async fn write_blob(
    source: &dyn BlobSource,
    blob: &Descriptor,
    file: &std::fs::File,
    path: &Path,
    code: &'static str,
    task: &dyn Task,
) -> Result<(), Problem> {
    let unwritable = unwritable(path);
    let of_source = |problem: Problem| problem.code(code);
    let mut file = File::from_std(file.try_clone().map_err(&unwritable)?);
    let mut hasher = hasher_of(&blob.digest).map_err(of_source)?;
    let mut at = 0;
    let reader = source.open(0).await;
    let mut reader = reader.map_err(|error| of_source(unreadable(blob, 0, error)))?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = reader.read(&mut buffer).await;
        let count = count.map_err(|error| of_source(unreadable(blob, at, error)))?;
        if count == 0 {
            break;
        }
        let chunk = &buffer[..count];
        at += count as u64;
        if at > blob.size {
            break;
        }
        hasher.update(chunk);
        file.write_all(chunk).await.map_err(&unwritable)?;
        task.advance(count as u64);
    }
    if at != blob.size {
        return Err(of_source(wrong_length(blob, at)));
    }
    check(hasher, &blob.digest).map_err(of_source)?;
    file.flush().await.map_err(&unwritable)
}

/// Returns true if the file exists and holds exactly the blob.
pub(super) fn contains_blob(path: &Path, blob: &Descriptor) -> Result<bool, Problem> {
    let Ok(mut file) = files::open(path) else {
        return Ok(false);
    };
    if file.metadata().map(|data| data.len()).ok() != Some(blob.size) {
        return Ok(false);
    }
    let mut hasher = hasher_of(&blob.digest)?;
    Ok(hasher.read_all(&mut file).is_ok() && hasher.finish() == blob.digest)
}

/// Creates a temporary file in `dir`, and `dir` if it does not exist.
pub(super) fn draft_in(dir: &Path) -> Result<AtomicFile, Problem> {
    files::create_folder(dir)
        .and_then(|()| AtomicFile::in_folder(dir))
        .map_err(unwritable(dir))
}

/// Renames a finished file to its path.
pub(super) fn persist(draft: AtomicFile, path: &Path) -> Result<(), Problem> {
    draft.persist_durable(path).map_err(unwritable(path))
}

/// Writes a small file atomically.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    persist(create_temporary(path, bytes)?, path)
}

/// Writes a small file atomically, unless it exists.
pub(super) fn write_if_new(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    match create_temporary(path, bytes)?.persist_new(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(unwritable(path)(error)),
        _ => Ok(()),
    }
}

fn create_temporary(path: &Path, bytes: &[u8]) -> Result<AtomicFile, Problem> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut draft = draft_in(dir)?;
    let written = draft.file().write_all(bytes);
    written.map_err(unwritable(path))?;
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tempfile::NamedTempFile;
    use wincimg_common::diagnose::Diagnose as _;
    use wincimg_common::progress::Silent;

    use super::*;
    use crate::document::sha256;

    fn blob(bytes: &[u8]) -> Descriptor {
        Descriptor::new("", sha256(bytes), bytes.len() as u64)
    }

    async fn stream_into(
        path: &Path,
        source: &dyn BlobSource,
        blob: &Descriptor,
    ) -> Result<(), Problem> {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        write_blob(source, blob, &file, path, "layout/invalid", &Silent).await
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_full_disk_is_reported_as_such() {
        let bytes = Bytes::from(vec![7; 3 * BUFFER]);
        let error = stream_into(Path::new("/dev/full"), &bytes, &blob(&bytes))
            .await
            .unwrap_err();
        assert_eq!(error.diagnosis().code, "output/write");
        assert_eq!(error.to_string(), "no space left to write /dev/full");
    }

    #[tokio::test]
    async fn only_what_has_the_right_length_and_digest_is_taken() {
        let target = NamedTempFile::new().unwrap();
        let bytes = Bytes::from_static(b"content");
        let right = blob(&bytes);
        stream_into(target.path(), &bytes, &right).await.unwrap();
        for (size, found) in [(6, 7), (8, 7)] {
            let wrong = Descriptor {
                size,
                ..right.clone()
            };
            let error = stream_into(target.path(), &bytes, &wrong)
                .await
                .unwrap_err();
            let why = format!("has {found} bytes: expected {size}");
            assert!(error.to_string().contains(&why), "{error}");
            assert_eq!(error.diagnosis().code, "layout/invalid");
        }
        let other = Bytes::from_static(b"CONTENT");
        let error = stream_into(target.path(), &other, &right)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("has digest"), "{error}");
    }

    #[tokio::test]
    async fn a_verified_reader_ends_well_only_after_the_right_bytes() {
        let read = async |bytes: &'static [u8], blob: &Descriptor| {
            let reader = Bytes::from_static(bytes).open(0).await.unwrap();
            let mut text = String::new();
            let mut reader = VerifyingReader::new(reader, blob).unwrap();
            reader.read_to_string(&mut text).await.map(|_| text)
        };
        let right = blob(b"content");
        assert_eq!(read(b"content", &right).await.unwrap(), "content");
        for wrong in [&b"CONTENT"[..], b"conten", b"contents", b""] {
            let error = read(wrong, &right).await.unwrap_err();
            assert!(error.to_string().contains("expected"), "{error}");
        }
        assert_eq!(read(b"", &blob(b"")).await.unwrap(), "");
    }

    #[tokio::test]
    async fn a_file_that_is_too_short_is_not_begun() {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"0123").unwrap();
        let range = FileRange::new(file.path(), 0, 5);
        let error = range.open(2).await.err().unwrap();
        let words = "has 4 bytes: expected at least 5";
        assert!(error.to_string().ends_with(words), "{error}");
    }

    #[tokio::test]
    async fn a_file_whose_size_is_not_that_of_its_blob_is_not_begun() {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"0123").unwrap();
        for (size, is_right) in [(3, false), (4, true), (5, false)] {
            let descriptor = Descriptor::new("", sha256(b"0123"), size);
            let opened = FileRange::whole(file.path(), &descriptor).open(0).await;
            let Some(error) = opened.err() else {
                assert!(is_right);
                continue;
            };
            let expected = format!("has 4 bytes: the manifest says {size}");
            assert!(error.to_string().ends_with(&expected), "{error}");
        }
    }

    #[tokio::test]
    async fn a_range_of_a_file_is_read_from_any_offset() {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"0123456789").unwrap();
        let range = FileRange::new(file.path(), 2, 5);
        for (offset, expected) in [(0, "23456"), (3, "56"), (5, ""), (99, "")] {
            let mut text = String::new();
            let mut reader = range.open(offset).await.unwrap();
            reader.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, expected);
        }
    }
}
