//! A file while it is being downloaded: `NAME.part`, and beside it `NAME.part.json`, which says
//! what the server called the file, so that a later run can tell whether it still has the same one.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::spawn_blocking;

use super::digest::{Digest, Hasher};

/// What tells one state of a file on a server from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) size: u64,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

impl Identity {
    /// Whether another answer is about the same file: nothing that both of them say may differ.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let agrees = |one: &Option<String>, two: &Option<String>| match (one, two) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        self.size == other.size
            && agrees(&self.etag, &other.etag)
            && agrees(&self.last_modified, &other.last_modified)
    }
}

/// What is written beside the part.
#[derive(Serialize, Deserialize)]
struct Sidecar {
    /// What the catalog expected of it.
    digest: Option<String>,
    #[serde(flatten)]
    identity: Identity,
}

/// Chunks that are written and wait to be hashed; each has up to half a megabyte. Fewer would be used
/// up while another thread has the processor.
const CHUNKS_TO_HASH: usize = 16;

/// A download under way.
pub(super) struct Part {
    file: File,
    path: PathBuf,
    sidecar: PathBuf,
    expected: Option<Digest>,
    hasher: Hasher,
    written: u64,
    identity: Option<Identity>,
    resumed: bool,
}

impl Part {
    /// Opens the part of `target`, with what an earlier run left of it if that can be continued.
    /// `None` where another process is at it.
    pub(super) fn open(target: &Path, expected: Option<Digest>) -> io::Result<Option<Self>> {
        let path = with_suffix(target, ".part");
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // A file system without locks; the digest still catches what two writers make.
            Err(TryLockError::Error(error)) => tracing::debug!(%error, "no lock"),
        }
        let mut part = Self {
            file,
            sidecar: with_suffix(&path, ".json"),
            path,
            hasher: Hasher::like(expected.as_ref()),
            expected,
            written: 0,
            identity: None,
            resumed: false,
        };
        if !part.take_up()? {
            part.restart()?;
        }
        Ok(Some(part))
    }

    /// Continues where an earlier run stopped; false where that is not possible.
    fn take_up(&mut self) -> io::Result<bool> {
        let Ok(text) = fs::read(&self.sidecar) else {
            return Ok(false);
        };
        let Ok(sidecar) = serde_json::from_slice::<Sidecar>(&text) else {
            return Ok(false);
        };
        let length = self.file.metadata()?.len();
        if sidecar.digest != self.expected.map(|digest| digest.to_string())
            || length == 0
            || length > sidecar.identity.size
        {
            return Ok(false);
        }
        self.written = self.hasher.read_all(&mut self.file)?;
        self.identity = Some(sidecar.identity);
        self.resumed = true;
        Ok(true)
    }

    /// Throws away what is there.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        remove(&self.sidecar)?;
        // To ext4, cutting off nothing is a reason too to write everything to the disk at the end.
        if self.file.metadata()?.len() > 0 {
            self.file.set_len(0)?;
        }
        self.file.seek(SeekFrom::Start(0))?;
        self.hasher = Hasher::like(self.expected.as_ref());
        self.written = 0;
        self.identity = None;
        self.resumed = false;
        Ok(())
    }

    /// Notes what the server calls the file that now begins to come; without that, nothing of it
    /// can be continued later.
    pub(super) fn begin(&mut self, identity: Option<Identity>) -> io::Result<()> {
        if let Some(identity) = &identity {
            let sidecar = Sidecar {
                digest: self.expected.map(|digest| digest.to_string()),
                identity: identity.clone(),
            };
            fs::write(&self.sidecar, serde_json::to_vec(&sidecar)?)?;
        }
        self.identity = identity;
        Ok(())
    }

    /// Writes what comes until it ends or breaks, and has it hashed in another thread meanwhile: that
    /// takes longer than receiving and writing together. Writing goes to the page cache and is done
    /// here, so that two threads are enough; when the disk cannot follow, no other file's can either.
    pub(super) async fn take_in<E>(
        &mut self,
        mut chunks: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> io::Result<Result<(), E>> {
        let (to_hash, waiting) = mpsc::channel(CHUNKS_TO_HASH);
        let hashing = spawn_blocking(hash_all(self.hasher.clone(), waiting));
        let end = loop {
            match chunks.next().await {
                Some(Ok(chunk)) => {
                    self.file.write_all(&chunk)?;
                    self.written += chunk.len() as u64;
                    // The other end is there until this one goes.
                    let _ = to_hash.send(chunk).await;
                }
                Some(Err(error)) => break Err(error),
                None => break Ok(()),
            }
        };
        drop(to_hash);
        self.hasher = hashing.await.map_err(io::Error::other)?;
        Ok(end)
    }

    /// Bytes that are safely there.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// What the server called the file when it began to come.
    pub(super) fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Whether its bytes came in more than one piece.
    pub(super) fn was_resumed(&self) -> bool {
        self.resumed
    }

    /// Notes that the next bytes come from another connection than those before.
    pub(super) fn resume(&mut self) {
        self.resumed = true;
    }

    pub(super) fn digest(&self) -> Digest {
        self.hasher.clone().finish()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its final name.
    pub(super) fn keep_as(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        remove(&self.sidecar)
    }

    /// Removes every trace of it.
    pub(super) fn discard(self) -> io::Result<()> {
        remove(&self.sidecar)?;
        remove(&self.path)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Nothing to continue is nothing to leave behind; that it stays would be no harm either.
        if self.written == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn hash_all(mut hasher: Hasher, mut chunks: Receiver<Bytes>) -> impl FnOnce() -> Hasher {
    move || {
        while let Some(chunk) = chunks.blocking_recv() {
            hasher.update(&chunk);
        }
        hasher
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Removes a file that may not be there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    fn identity(size: u64, etag: Option<&str>) -> Identity {
        Identity {
            size,
            etag: etag.map(str::to_owned),
            last_modified: None,
        }
    }

    async fn write(part: &mut Part, bytes: &'static [u8]) {
        let chunks = stream::iter([Ok::<_, Infallible>(Bytes::from_static(bytes))]);
        part.take_in(chunks).await.unwrap().unwrap();
    }

    /// Starts a download of ten bytes and leaves it after three.
    async fn leave_one_behind(target: &Path) {
        let mut part = Part::open(target, None).unwrap().unwrap();
        part.begin(Some(identity(10, Some("\"a\"")))).unwrap();
        write(&mut part, b"abc").await;
    }

    #[tokio::test]
    async fn a_later_run_continues_with_the_hash_of_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.msu");
        leave_one_behind(&target).await;
        let mut part = Part::open(&target, None).unwrap().unwrap();
        assert_eq!(part.written(), 3);
        assert!(part.was_resumed());
        assert_eq!(part.identity(), Some(&identity(10, Some("\"a\""))));
        write(&mut part, b"def").await;
        let whole = part.digest();
        part.keep_as(&target).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"abcdef");
        assert_eq!(whole.of_same_kind(&target).unwrap(), whole);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn what_cannot_be_continued_is_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.msu");
        let sidecar = folder.path().join("a.msu.part.json");
        let spoil: [&dyn Fn(); 4] = [
            &|| fs::write(&sidecar, "{").unwrap(),
            &|| fs::remove_file(&sidecar).unwrap(),
            &|| fs::write(folder.path().join("a.msu.part"), "longer than ten bytes").unwrap(),
            &|| {
                let text = fs::read_to_string(&sidecar).unwrap();
                fs::write(&sidecar, text.replace("null", "\"SHA-1 00\"")).unwrap();
            },
        ];
        for spoil in spoil {
            leave_one_behind(&target).await;
            spoil();
            let part = Part::open(&target, None).unwrap().unwrap();
            assert_eq!((part.written(), part.identity()), (0, None));
            part.discard().unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[tokio::test]
    async fn a_disk_that_refuses_ends_with_an_error_and_not_in_a_wait() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.msu");
        let mut part = Part::open(&target, None).unwrap().unwrap();
        part.file = File::open(part.path()).unwrap();
        let chunks = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"abc"))]);
        assert!(part.take_in(chunks).await.is_err());
        assert_eq!(part.written(), 0);
    }

    #[test]
    fn two_processes_do_not_write_the_same_part() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.msu");
        let _first = Part::open(&target, None).unwrap().unwrap();
        assert!(Part::open(&target, None).unwrap().is_none());
    }

    #[test]
    fn a_file_is_the_same_while_nothing_that_is_known_differs() {
        let known = identity(10, Some("\"a\""));
        assert!(known.is_same(&identity(10, Some("\"a\""))));
        assert!(known.is_same(&identity(10, None)));
        assert!(!known.is_same(&identity(11, None)));
        assert!(!known.is_same(&identity(10, Some("\"b\""))));
    }
}
