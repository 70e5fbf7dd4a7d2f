//! A blob between its making and its upload: in memory while it is small, in a file that vanishes
//! with it once it is not.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::{NamedTempFile, TempPath};

/// Collects what is written to it and hands it out any number of times.
#[derive(Debug)]
pub struct SpooledBlob {
    limit: usize,
    folder: PathBuf,
    size: u64,
    store: Store,
}

/// Where a [`SpooledBlob`] ended up.
#[derive(Debug)]
pub enum Spooled {
    /// It was small.
    Memory(Bytes),
    /// In a file that is removed when the value is dropped.
    Disk(TempPath),
}

#[derive(Debug)]
enum Store {
    Memory(Vec<u8>),
    Disk(NamedTempFile),
}

impl SpooledBlob {
    /// A blob that is kept in memory up to `limit` bytes and in a file below `folder` beyond.
    pub fn new(limit: usize, folder: impl Into<PathBuf>) -> Self {
        Self {
            limit,
            folder: folder.into(),
            size: 0,
            store: Store::Memory(Vec::new()),
        }
    }

    /// How many bytes were written.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The file that holds the blob, once it is too large for memory.
    pub fn path(&self) -> Option<&Path> {
        match &self.store {
            Store::Memory(_) => None,
            Store::Disk(file) => Some(file.path()),
        }
    }

    /// A reader from the blob's beginning, independent of others.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send + '_>> {
        Ok(match &self.store {
            Store::Memory(bytes) => Box::new(bytes.as_slice()),
            Store::Disk(file) => Box::new(file.reopen()?),
        })
    }

    /// Ends the collecting.
    pub fn finish(self) -> Spooled {
        match self.store {
            Store::Memory(bytes) => Spooled::Memory(bytes.into()),
            Store::Disk(file) => Spooled::Disk(file.into_temp_path()),
        }
    }

    fn file_after(&mut self, more: usize) -> io::Result<Option<&mut File>> {
        if let Store::Memory(bytes) = &self.store
            && bytes.len() + more > self.limit
        {
            let mut file = NamedTempFile::with_prefix_in("wincimg-layer-", &self.folder)?;
            file.write_all(bytes)?;
            self.store = Store::Disk(file);
        }
        Ok(match &mut self.store {
            Store::Memory(_) => None,
            Store::Disk(file) => Some(file.as_file_mut()),
        })
    }
}

impl Write for SpooledBlob {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = match self.file_after(buffer.len())? {
            Some(file) => file.write(buffer)?,
            None => buffer.len(),
        };
        if let Store::Memory(bytes) = &mut self.store {
            bytes.extend_from_slice(buffer);
        }
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.store {
            Store::Memory(_) => Ok(()),
            Store::Disk(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    fn content(blob: &SpooledBlob) -> Vec<u8> {
        let mut out = Vec::new();
        blob.open().unwrap().read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn a_small_blob_stays_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut blob = SpooledBlob::new(8, folder.path());
        blob.write_all(b"12345678").unwrap();
        assert_eq!((blob.size(), blob.path()), (8, None));
        assert_eq!(content(&blob), b"12345678");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(matches!(blob.finish(), Spooled::Memory(bytes) if bytes == "12345678"));
    }

    #[test]
    fn a_large_blob_moves_to_a_file_that_goes_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut blob = SpooledBlob::new(8, folder.path());
        blob.write_all(b"1234").unwrap();
        blob.write_all(b"56789").unwrap();
        blob.write_all(b"0").unwrap();
        blob.flush().unwrap();
        assert_eq!(blob.size(), 10);
        assert_eq!(content(&blob), b"1234567890");
        assert_eq!(content(&blob), b"1234567890", "a second reader starts anew");
        assert_eq!(std::fs::read(blob.path().unwrap()).unwrap(), b"1234567890");
        let Spooled::Disk(path) = blob.finish() else {
            panic!("the blob went back to memory");
        };
        assert_eq!(std::fs::read(&path).unwrap(), b"1234567890");
        drop(path);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let mut blob = SpooledBlob::new(0, "/does/not/exist");
        assert!(blob.write_all(b"1").is_err());
        assert_eq!(blob.size(), 0);
    }
}
