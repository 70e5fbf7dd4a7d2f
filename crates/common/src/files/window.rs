//! A range of a file, read like a file of its own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// A range of a file.
pub type FileWindow = Window<File>;

/// A range of a reader.
#[derive(Debug)]
pub struct Window<R> {
    inner: R,
    start: u64,
    length: u64,
    at: u64,
}

impl<R: Seek> Window<R> {
    /// The range of `length` bytes from `start`.
    pub fn new(mut inner: R, start: u64, length: u64) -> io::Result<Self> {
        inner.seek(SeekFrom::Start(start))?;
        Ok(Self {
            inner,
            start,
            length,
            at: 0,
        })
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl<R: Read> Read for Window<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(self.at);
        let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.inner.read(&mut buffer[..most])?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: Seek> Seek for Window<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
        };
        let place = at.and_then(|at| Some((at, self.start.checked_add(at)?)));
        let (at, place) = place.ok_or(io::ErrorKind::InvalidInput)?;
        self.inner.seek(SeekFrom::Start(place))?;
        self.at = at;
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn nothing_around_a_window_is_seen() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before inside after").unwrap();
        let mut window = FileWindow::new(file, 7, 6).unwrap();
        assert_eq!(io::read_to_string(&mut window).unwrap(), "inside");
        assert_eq!(window.seek(SeekFrom::End(-4)).unwrap(), 2);
        assert_eq!(window.seek(SeekFrom::Current(1)).unwrap(), 3);
        assert_eq!(io::read_to_string(&mut window).unwrap(), "ide");
        assert!(window.seek(SeekFrom::End(-7)).is_err());
        window.seek(SeekFrom::Start(60)).unwrap();
        assert_eq!(io::read_to_string(&mut window).unwrap(), "");
    }
}
