//! Buffer of a blob before its upload: a small one in memory, a large one in an unnamed temporary
//! file.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use bytes::Bytes;
use wincimg_common::files::Spool;

/// A writer that buffers a blob.
#[derive(Debug)]
pub struct BlobBuffer {
    limit: usize,
    folder: PathBuf,
    store: Store,
}

/// Content of a finished [`BlobBuffer`].
#[derive(Debug)]
pub enum BufferedBlob {
    /// A small blob in memory.
    Memory(Bytes),
    /// A large blob in a file that is deleted on drop.
    Disk(Spool),
}

#[derive(Debug)]
enum Store {
    Memory(Vec<u8>),
    Disk(Spool),
}

impl BlobBuffer {
    /// Creates a buffer that is in memory up to `limit` bytes and in a file below `folder` beyond.
    pub fn new(limit: usize, folder: impl Into<PathBuf>) -> Self {
        Self {
            limit,
            folder: folder.into(),
            store: Store::Memory(Vec::new()),
        }
    }

    /// Finishes the blob.
    pub fn finish(self) -> BufferedBlob {
        match self.store {
            Store::Memory(bytes) => BufferedBlob::Memory(bytes.into()),
            Store::Disk(spool) => BufferedBlob::Disk(spool),
        }
    }

    /// The file, if it has moved to one.
    pub fn spool(&self) -> Option<&Spool> {
        match &self.store {
            Store::Memory(_) => None,
            Store::Disk(spool) => Some(spool),
        }
    }

    fn file_after(&mut self, more: usize) -> io::Result<Option<&File>> {
        if let Store::Memory(bytes) = &self.store
            && bytes.len() + more > self.limit
        {
            let spool = Spool::in_folder(&self.folder)?;
            spool.file().write_all(bytes)?;
            self.store = Store::Disk(spool);
        }
        Ok(match &self.store {
            Store::Memory(_) => None,
            Store::Disk(spool) => Some(spool.file()),
        })
    }
}

impl Write for BlobBuffer {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = match self.file_after(buffer.len())? {
            Some(mut file) => file.write(buffer)?,
            None => buffer.len(),
        };
        if let Store::Memory(bytes) = &mut self.store {
            bytes.extend_from_slice(buffer);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &self.store {
            Store::Memory(_) => Ok(()),
            Store::Disk(spool) => spool.file().flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_blob_stays_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut blob = BlobBuffer::new(8, folder.path());
        blob.write_all(b"12345678").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(matches!(blob.finish(), BufferedBlob::Memory(bytes) if bytes == "12345678"));
    }

    #[test]
    fn a_large_blob_moves_to_a_file_that_goes_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut blob = BlobBuffer::new(8, folder.path());
        blob.write_all(b"1234").unwrap();
        blob.write_all(b"56789").unwrap();
        blob.write_all(b"0").unwrap();
        blob.flush().unwrap();
        let BufferedBlob::Disk(spool) = blob.finish() else {
            panic!("the blob went back to memory");
        };
        assert_eq!(std::fs::read(spool.path()).unwrap(), b"1234567890");
        drop(spool);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let mut blob = BlobBuffer::new(0, "/does/not/exist");
        assert!(blob.write_all(b"1").is_err());
        assert!(matches!(blob.finish(), BufferedBlob::Memory(bytes) if bytes.is_empty()));
    }
}
