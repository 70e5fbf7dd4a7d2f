//! Buffer of a blob before its upload: a small one in memory, a large one in an unnamed temporary
//! file.

use std::io::{self, Write};
use std::path::PathBuf;

use wincimg_common::files::{BufferedBlob, Spool};

/// A writer that buffers a blob.
#[derive(Debug)]
pub struct BlobBuffer {
    limit: usize,
    folder: PathBuf,
    /// The bytes, unless they have moved to a file.
    memory: Vec<u8>,
    spool: Option<Spool>,
}

impl BlobBuffer {
    /// Creates a buffer that is in memory up to `limit` bytes and in a file below `folder` beyond.
    pub fn new(limit: usize, folder: impl Into<PathBuf>) -> Self {
        Self {
            limit,
            folder: folder.into(),
            memory: Vec::new(),
            spool: None,
        }
    }

    /// Finishes the blob.
    pub fn finish(self) -> BufferedBlob {
        match self.spool {
            Some(spool) => BufferedBlob::Disk(spool),
            None => BufferedBlob::Memory(self.memory.into()),
        }
    }

    /// Moves the bytes to a file, or keeps them where that fails.
    fn move_to(&mut self, spool: Spool) -> io::Result<()> {
        spool.file().write_all(&self.memory)?;
        self.memory = Vec::new();
        self.spool = Some(spool);
        Ok(())
    }

    /// The file, if it has moved to one.
    pub fn spool(&self) -> Option<&Spool> {
        self.spool.as_ref()
    }
}

impl Write for BlobBuffer {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.spool.is_none() && self.memory.len() + buffer.len() > self.limit {
            self.move_to(Spool::in_folder(&self.folder)?)?;
        }
        match &self.spool {
            Some(spool) => spool.file().write(buffer),
            None => self.memory.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.spool.as_ref().map_or(Ok(()), |it| it.file().flush())
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
    fn bytes_that_a_file_does_not_take_stay_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut blob = BlobBuffer::new(8, folder.path());
        blob.write_all(b"1234").unwrap();
        // Opened again, it can only be read.
        let file = Spool::in_folder(folder.path()).unwrap();
        assert!(blob.move_to(file.reopen().unwrap()).is_err());
        assert!(matches!(blob.finish(), BufferedBlob::Memory(bytes) if bytes == "1234"));
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let mut blob = BlobBuffer::new(0, "/does/not/exist");
        assert!(blob.write_all(b"1").is_err());
        assert!(matches!(blob.finish(), BufferedBlob::Memory(bytes) if bytes.is_empty()));
    }
}
