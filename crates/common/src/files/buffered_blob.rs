//! Bytes that are in memory or in a temporary file.

use std::io::{self, Cursor, Read};

use bytes::Bytes;

use super::spool::Spool;

/// The bytes of a blob.
#[derive(Debug)]
pub enum BufferedBlob {
    /// A small blob in memory.
    Memory(Bytes),
    /// A large blob in a file that is deleted on drop.
    Disk(Spool),
}

impl BufferedBlob {
    /// Opens a reader of the bytes.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Memory(bytes) => Box::new(Cursor::new(bytes.clone())),
            Self::Disk(spool) => Box::new(super::open(spool.path())?),
        })
    }

    /// Returns the bytes; of a file, up to `limit`.
    pub fn bytes(&self, limit: u64) -> io::Result<Bytes> {
        match self {
            Self::Memory(bytes) => Ok(bytes.clone()),
            Self::Disk(spool) => Ok(super::read(spool.path(), limit)?.into()),
        }
    }
}
