//! The beginning of a file that is being downloaded: kept when the download breaks, renamed to the
//! file only when it is whole and true.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use oci_spec::image::{Descriptor, Digest};
use tempfile::NamedTempFile;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

use super::RegistryError;
use super::digest::hasher_like;
use crate::oci::document::Hasher;

/// `FILE.part`, with what an earlier run left in it.
pub(super) struct Part {
    /// How many bytes are there.
    pub(super) length: u64,
    /// A digest that has seen them.
    pub(super) hasher: Option<Hasher>,
    /// Whether an earlier run wrote some of them.
    pub(super) resumed: bool,
    file: tokio::fs::File,
    kept: Kept,
    to: PathBuf,
    digest: Digest,
}

/// Where the bytes are until they are whole.
enum Kept {
    /// In `FILE.part`, locked.
    Part(PathBuf),
    /// In a file of our own, because another process holds `FILE.part`.
    Private(NamedTempFile),
}

impl Part {
    /// Opens `FILE.part` and reads what is there.
    pub(super) async fn open(to: &Path, descriptor: &Descriptor) -> Result<Self, RegistryError> {
        let (to, descriptor) = (to.to_owned(), descriptor.clone());
        let open = move || Self::open_blocking(&to, &descriptor);
        match tokio::task::spawn_blocking(open).await {
            Ok(outcome) => outcome,
            Err(error) => Err(RegistryError::Client(error.into())),
        }
    }

    fn open_blocking(to: &Path, descriptor: &Descriptor) -> Result<Self, RegistryError> {
        let mut name = to.as_os_str().to_owned();
        name.push(".part");
        let path = PathBuf::from(name);
        let (mut file, kept) = open_part(to, &path).map_err(|source| RegistryError::File {
            action: "create",
            path: path.clone(),
            source,
        })?;
        let digest = descriptor.digest().clone();
        let mut hasher = hasher_like(&digest)?;
        let length = read_into(&mut file, descriptor.size(), &mut hasher).map_err(|source| {
            RegistryError::File {
                action: "read",
                path,
                source,
            }
        })?;
        Ok(Self {
            length,
            hasher: Some(hasher),
            resumed: length > 0,
            file: file.into(),
            kept,
            to: to.to_owned(),
            digest,
        })
    }

    /// Adds the next bytes.
    pub(super) async fn write(&mut self, chunk: &[u8]) -> Result<(), RegistryError> {
        let written = self.file.write_all(chunk).await;
        written.map_err(|source| self.failed("write", source))
    }

    /// Forgets everything and begins at the first byte.
    pub(super) async fn restart(&mut self) -> Result<(), RegistryError> {
        let emptied = self.empty().await;
        emptied.map_err(|source| self.failed("empty", source))?;
        self.length = 0;
        self.resumed = false;
        self.hasher = Some(hasher_like(&self.digest)?);
        Ok(())
    }

    async fn empty(&mut self) -> io::Result<()> {
        self.file.set_len(0).await?;
        self.file.rewind().await.map(drop)
    }

    /// Removes bytes that an error proves wrong; others are of use to the next run. Where the
    /// removal fails, the next run finds the wrong bytes by their digest.
    pub(super) fn fail(self, error: RegistryError) -> RegistryError {
        let wrong = matches!(
            error,
            RegistryError::Digest { .. } | RegistryError::Length { .. }
        );
        if let (true, Kept::Part(path)) = (wrong, &self.kept) {
            let _ = std::fs::remove_file(path);
        }
        error
    }

    /// Gives the verified file its name.
    pub(super) async fn keep(mut self) -> Result<(), RegistryError> {
        let written = self.file.flush().await;
        written.map_err(|source| self.failed("write", source))?;
        let synced = self.file.sync_data().await;
        synced.map_err(|source| self.failed("write", source))?;
        let renamed = match self.kept {
            // Another process may have finished the same file between our opening and locking it.
            Kept::Part(path) => match std::fs::rename(path, &self.to) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.to.exists() => Ok(()),
                renamed => renamed,
            },
            Kept::Private(file) => file
                .persist(&self.to)
                .map(drop)
                .map_err(|error| error.error),
        };
        renamed.map_err(|source| RegistryError::File {
            action: "create",
            path: self.to,
            source,
        })
    }

    fn failed(&self, action: &'static str, source: io::Error) -> RegistryError {
        let path = match &self.kept {
            Kept::Part(path) => path.clone(),
            Kept::Private(file) => file.path().to_owned(),
        };
        RegistryError::File {
            action,
            path,
            source,
        }
    }
}

fn open_part(to: &Path, path: &Path) -> io::Result<(File, Kept)> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    if file.try_lock().is_ok() {
        return Ok((file, Kept::Part(path.to_owned())));
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let private = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    Ok((private.reopen()?, Kept::Private(private)))
}

/// Hashes what a file has, and leaves it at its end. More than there can be is worth nothing.
fn read_into(file: &mut File, size: u64, hasher: &mut Hasher) -> io::Result<u64> {
    let mut length = file.metadata()?.len();
    if length > size {
        file.set_len(0)?;
        length = 0;
    }
    let mut buffer = vec![0; 128 * 1024];
    let mut known = file.take(length);
    let mut read = 0;
    loop {
        let chunk = known.read(&mut buffer)?;
        if chunk == 0 {
            return Ok(read);
        }
        hasher.update(&buffer[..chunk]);
        read += chunk as u64;
    }
}
