//! Parts of a spool: many temporary files in one.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Take, Write};
use std::path::Path;
use std::sync::Arc;

use super::spool::Spool;
use super::window::FileWindow;

/// A part of a spool.
#[derive(Debug, Clone)]
pub struct SpoolPart {
    spool: Arc<Spool>,
    offset: u64,
    length: u64,
}

/// A spool to which parts are appended.
#[derive(Debug)]
pub struct SpoolWriter {
    spool: Arc<Spool>,
    end: u64,
}

impl SpoolWriter {
    /// Creates an empty one on the file system of `folder`.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            spool: Arc::new(Spool::in_folder(folder)?),
            end: 0,
        })
    }

    /// Appends everything that a function writes as a part.
    pub fn append<E: From<io::Error>>(
        &mut self,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<SpoolPart, E> {
        let mut counted = CountingWriter {
            file: self.spool.file(),
            count: 0,
        };
        let filled = fill(&mut counted);
        let part = SpoolPart {
            spool: Arc::clone(&self.spool),
            offset: self.end,
            length: counted.count,
        };
        self.end += counted.count;
        filled.map(|()| part)
    }
}

struct CountingWriter<'a> {
    file: &'a File,
    count: u64,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl SpoolPart {
    /// A whole file, which stays readable if it is removed.
    pub fn from_file(file: File, path: &Path) -> io::Result<Self> {
        Ok(Self {
            offset: 0,
            length: file.metadata()?.len(),
            spool: Arc::new(Spool::from_file(file, path)),
        })
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Opens it at its beginning.
    pub fn open(&self) -> io::Result<Take<File>> {
        let mut file = File::open(self.spool.path())?;
        file.seek(SeekFrom::Start(self.offset))?;
        Ok(file.take(self.length))
    }

    /// Opens it for random access.
    pub fn window(&self) -> io::Result<FileWindow> {
        FileWindow::new(File::open(self.spool.path())?, self.offset, self.length)
    }
}

/// Equal if it is the same part of the same spool.
impl PartialEq for SpoolPart {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.spool, &other.spool)
            && (self.offset, self.length) == (other.offset, other.length)
    }
}

impl Eq for SpoolPart {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut parts = SpoolWriter::in_folder(folder.path()).unwrap();
        let mut add = |text: &[u8]| parts.append(|out| out.write_all(text)).unwrap();
        let (one, none, two) = (add(b"one"), add(b""), add(b"three"));
        for (part, expected) in [(two, "three"), (none, ""), (one, "one")] {
            assert_eq!(io::read_to_string(part.open().unwrap()).unwrap(), expected);
            assert_eq!(part.length(), expected.len() as u64);
        }
    }
}
