//! Opens files named by users or third parties.
//!
//! A pipe named `index.json` would block until something writes to it, `/dev/zero` would never end,
//! and opening some devices has side effects.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading; refuses folders, pipes and devices without blocking.
pub fn open(path: &Path) -> io::Result<File> {
    Ok(open_with_metadata(path)?.0)
}

/// Like [`open`], and returns the file's metadata.
pub(super) fn open_with_metadata(path: &Path) -> io::Result<(File, Metadata)> {
    open_regular(path, || open_at_once(path))
}

pub(super) fn open_regular(
    path: &Path,
    open: impl FnOnce() -> io::Result<File>,
) -> io::Result<(File, Metadata)> {
    regular(fs::metadata(path)?.file_type())?;
    let file = open()?;
    let metadata = file.metadata()?;
    regular(metadata.file_type())?;
    Ok((file, metadata))
}

#[cfg(unix)]
fn open_at_once(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    // Non-blocking in case a pipe has replaced the file; has no effect on files.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()));
    Ok(opened?.into())
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Opens a file, or a pipe from a shell's `<(command)`, for reading from its beginning.
pub fn open_stream(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if fs::metadata(path)?.file_type().is_fifo() {
            return File::open(path);
        }
    }
    open(path)
}

/// A reader that fails after a number of bytes, because a pipe may be endless.
pub struct LimitedReader<R> {
    source: R,
    limit: u64,
    left: u64,
}

impl<R: Read> LimitedReader<R> {
    /// Limits `source` to `limit` bytes.
    pub fn new(source: R, limit: u64) -> Self {
        Self {
            source,
            limit,
            left: limit,
        }
    }
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| larger_than(self.limit))?;
        Ok(read)
    }
}

fn larger_than(limit: u64) -> io::Error {
    let problem = format!("it is larger than {limit} bytes");
    io::Error::new(io::ErrorKind::FileTooLarge, problem)
}

/// Text in another encoding, as the cause of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("byte {at} is not UTF-8")]
pub struct NotUtf8 {
    at: usize,
}

impl NotUtf8 {
    /// What to do about it.
    pub const HINT: &str = "save it as UTF-8; some Windows editors and PowerShell's > write UTF-16";
}

/// Reads a file of at most `limit` bytes as text.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    text_of(read(path, limit)?)
}

/// The bytes of a file without the byte order mark with which editors on Windows begin a text.
pub fn without_mark(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    bytes
}

/// The bytes of a file as text.
pub fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, NotUtf8 { at })
    })
}

/// Reads a file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_opened(open_with_metadata(path)?, limit)
}

/// Reads an opened file of at most `limit` bytes.
pub fn read_opened((file, metadata): (File, Metadata), limit: u64) -> io::Result<Vec<u8>> {
    if metadata.len() > limit {
        return Err(larger_than(limit));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    LimitedReader::new(file, limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn regular(kind: FileType) -> io::Result<()> {
    let (error, what) = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        (io::ErrorKind::IsADirectory, "it is a folder")
    } else {
        (io::ErrorKind::InvalidInput, special(kind))
    };
    Err(io::Error::new(error, what))
}

#[cfg(unix)]
fn special(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "it is a pipe, not a file"
    } else if kind.is_socket() {
        "it is a socket, not a file"
    } else {
        "it is a device, not a file"
    }
}

#[cfg(not(unix))]
fn special(_kind: FileType) -> &'static str {
    "it is not a file"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::Diagnose as _;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        let error = read(&path, 4).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 4 bytes");
        let error = open(folder.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn text_in_another_encoding_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"a\xff\xfe").unwrap();
        let error = read_text(&path, 5).unwrap_err();
        assert_eq!(error.to_string(), "byte 1 is not UTF-8");
        assert_eq!(error.diagnosis().hint.as_deref(), Some(NotUtf8::HINT));
        let missing = read_text(&folder.path().join("none"), 5).unwrap_err();
        assert_eq!(missing.diagnosis().hint, None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_says_it_is_empty_is_read_up_to_the_limit_too() {
        let error = read(Path::new("/proc/self/status"), 4).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 4 bytes");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_or_a_device_is_refused_at_once_also_behind_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        for (name, expected) in [
            (pipe.as_path(), "it is a pipe, not a file"),
            (&link, "it is a pipe, not a file"),
            (&folder.path().join("socket"), "it is a socket, not a file"),
            (Path::new("/dev/zero"), "it is a device, not a file"),
        ] {
            assert_eq!(open(name).unwrap_err().to_string(), expected);
        }
    }
}
