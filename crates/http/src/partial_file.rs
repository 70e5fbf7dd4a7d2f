//! A partial download: `NAME.part`, kept if the connection breaks, and renamed once complete and
//! verified.
//!
//! A later run must be able to identify the content of a partial file: by its name, derived from
//! the content's digest, or by the server's identification of the file, stored in `NAME.part.json`.
//! Processes that need the same file wait for each other.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::spawn_blocking;
use wincimg_common::diagnose::Problem;
use wincimg_common::digest::{Digest, Hasher};
use wincimg_common::files;

use super::client::HttpClient;
use super::error::{HttpError, file_error};
use super::transfer::TransferError;

/// Identification of a version of a file on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// Size in bytes.
    pub(super) size: u64,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

impl Identity {
    /// Returns true if another response is for the same version: all fields present in both are
    /// equal.
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

/// The sidecar of a file that only its server can identify.
#[derive(Serialize, Deserialize)]
struct Sidecar {
    digest: Option<Digest>,
    #[serde(flatten)]
    identity: Identity,
}

/// Key by which a later run identifies a partial file.
#[derive(Clone)]
enum ResumeKey {
    /// By name, derived from the digest of a content of this size.
    ByName(u64),
    /// By the server's identification, stored in a sidecar with the expected digest.
    ByServer(Option<Digest>),
}

/// Number of chunks of up to half a megabyte that may wait to be hashed. With fewer, hashing would
/// run idle while another thread has the processor.
const CHUNKS_TO_HASH: usize = 16;
/// Interval of checks for another process to finish.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A partial download.
pub struct PartialFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
    key: ResumeKey,
    /// The server's identification of the file.
    identity: Option<Identity>,
    fresh: Hasher,
    hasher: Hasher,
    written: u64,
    resumed: bool,
}

impl PartialFile {
    /// Opens a partial file identified by its server, and resumes an earlier run's if possible. Waits
    /// while another process has locked it.
    pub async fn open(
        http: &HttpClient,
        target: &Path,
        expected: Option<&Digest>,
    ) -> Result<Self, TransferError> {
        let hasher = expected.and_then(Hasher::matching).unwrap_or_default();
        let key = ResumeKey::ByServer(expected.cloned());
        Self::open_locked(http, target, &hasher, &key).await
    }

    /// Opens a partial file named by its digest, which `hasher` computes, like [`Self::open`].
    pub async fn open_for_digest<E: From<HttpError> + From<Problem>>(
        http: &HttpClient,
        target: &Path,
        hasher: &Hasher,
        size: u64,
    ) -> Result<Self, E> {
        Self::open_locked(http, target, hasher, &ResumeKey::ByName(size)).await
    }

    async fn open_locked<E: From<HttpError> + From<Problem>>(
        http: &HttpClient,
        target: &Path,
        hasher: &Hasher,
        key: &ResumeKey,
    ) -> Result<Self, E> {
        if let Some(partial) = Self::try_open(target, hasher, key).await? {
            return Ok(partial);
        }
        http.progress().note(&format!(
            "another process is downloading {}; waiting for it",
            target.display()
        ));
        let waiting = async {
            loop {
                tokio::time::sleep(POLL_INTERVAL).await;
                if let Some(partial) = Self::try_open(target, hasher, key).await? {
                    return Ok(partial);
                }
            }
        };
        let name = target.file_name().unwrap_or(target.as_os_str());
        let what = format!("wait for {}", name.display());
        http.with_deadline(&what, waiting).await
    }

    /// Opens a partial file; `None` if another process has locked it.
    async fn try_open(
        target: &Path,
        hasher: &Hasher,
        key: &ResumeKey,
    ) -> Result<Option<Self>, Problem> {
        let path = target.with_added_extension("part");
        let (target, fresh, key) = (target.to_owned(), hasher.clone(), key.clone());
        in_thread(&path.clone(), move || {
            let file = loop {
                let file = open(&path)?;
                match file.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => return Ok(None),
                    // The file system has no locks; the digest detects concurrent writes.
                    Err(TryLockError::Error(error)) => tracing::debug!(%error, "no lock"),
                }
                // Another process may have renamed it before the lock; emptying it would empty the
                // finished file.
                files::refresh_names(files::folder_of(&path));
                if files::is_at(&file, &path) {
                    break file;
                }
            };
            let mut partial = Self {
                file,
                path,
                target,
                key,
                identity: None,
                hasher: fresh.clone(),
                fresh,
                written: 0,
                resumed: false,
            };
            partial.resume_earlier()?;
            Ok(Some(partial))
        })
        .await
    }

    /// Resumes an earlier run's file, or empties it if that is impossible.
    fn resume_earlier(&mut self) -> io::Result<()> {
        let size = match &self.key {
            ResumeKey::ByName(size) => Some(*size),
            ResumeKey::ByServer(expected) => {
                self.identity = noted(&self.sidecar(), expected.as_ref());
                self.identity.as_ref().map(|identity| identity.size)
            }
        };
        let length = self.file.metadata()?.len();
        // A file longer than the content is useless.
        if length == 0 || size.is_none_or(|size| length > size) {
            return self.empty();
        }
        self.written = self.hasher.read_all(&mut (&self.file).take(length))?;
        self.resumed = true;
        Ok(())
    }

    fn sidecar(&self) -> PathBuf {
        self.path.with_added_extension("json")
    }

    /// Discards the content.
    pub fn restart(&mut self) -> Result<(), Problem> {
        self.empty().map_err(file_error("empty", &self.path))
    }

    fn empty(&mut self) -> io::Result<()> {
        remove(&self.sidecar())?;
        self.identity = None;
        // On ext4, even truncating an empty file forces a flush on close.
        if self.file.metadata()?.len() > 0 {
            self.file.set_len(0)?;
        }
        self.file.seek(SeekFrom::Start(0))?;
        self.hasher = self.fresh.clone();
        self.written = 0;
        self.resumed = false;
        Ok(())
    }

    /// Stores the server's identification of a new download; without it, the download cannot
    /// resume.
    pub(super) fn start(&mut self, now: Option<Identity>) -> Result<(), Problem> {
        if let (ResumeKey::ByServer(expected), Some(now)) = (&self.key, &now) {
            let noted = Sidecar {
                digest: expected.clone(),
                identity: now.clone(),
            };
            let sidecar = self.sidecar();
            serde_json::to_vec(&noted)
                .map_err(io::Error::from)
                .and_then(|text| fs::write(&sidecar, text))
                .map_err(file_error("write", &sidecar))?;
        }
        self.identity = now;
        Ok(())
    }

    /// Writes chunks until the stream ends or fails, and hashes them in another thread, which takes
    /// longer than receiving and writing. Writes go to the page cache and are done here, so that
    /// two threads suffice.
    pub async fn write_stream<E>(
        &mut self,
        chunks: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Result<(), E>, Problem> {
        let mut chunks = std::pin::pin!(chunks);
        let (to_hash, waiting) = mpsc::channel(CHUNKS_TO_HASH);
        let hashing = spawn_blocking(hash_all(self.hasher.clone(), waiting));
        let end = loop {
            match chunks.next().await {
                Some(Ok(chunk)) => {
                    let written = self.file.write_all(&chunk);
                    written.map_err(file_error("write", &self.path))?;
                    self.written += chunk.len() as u64;
                    // The receiver lives until the sender is dropped.
                    let _ = to_hash.send(chunk).await;
                }
                Some(Err(error)) => break Err(error),
                None => break Ok(()),
            }
        };
        drop(to_hash);
        self.hasher = hashing
            .await
            .map_err(io::Error::other)
            .map_err(file_error("hash", &self.path))?;
        Ok(end)
    }

    /// Number of bytes written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The server's identification of the file when the download started.
    pub(super) fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Returns true if its bytes came over several connections.
    pub fn was_resumed(&self) -> bool {
        self.resumed
    }

    /// Records that the next bytes come over another connection.
    pub(super) fn resume(&mut self) {
        self.resumed = true;
    }

    /// Digest of the bytes so far.
    pub fn digest(&self) -> Digest {
        self.hasher.clone().finish()
    }

    /// Path of the partial file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if a later connection can identify the same version.
    pub(super) fn is_recognized(&self) -> bool {
        let identity = self.identity();
        identity.is_some_and(|it| it.etag.is_some() || it.last_modified.is_some())
    }

    /// Renames the file to its final name.
    pub async fn commit(self) -> Result<(), Problem> {
        in_thread(&self.target.clone(), move || self.rename()).await
    }

    fn rename(&self) -> io::Result<()> {
        // A file under its final name is not verified again.
        self.file.sync_data()?;
        let renamed = fs::rename(&self.path, &self.target);
        files::sync_folder(&self.target);
        let is_by_name = matches!(self.key, ResumeKey::ByName(_));
        match renamed {
            // Without locks, another process may have finished the same content.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_by_name => {
                fs::metadata(&self.target).map(drop)
            }
            Err(error) => Err(error),
            Ok(()) => remove(&self.sidecar()),
        }
    }

    /// Removes the partial file and its sidecar.
    pub fn discard(self) -> Result<(), Problem> {
        for path in [&self.sidecar(), &self.path] {
            remove(path).map_err(file_error("remove", path))?;
        }
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // An empty file is useless to a later run, but harmless.
        if self.written == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Runs blocking operations that create a file in another thread.
async fn in_thread<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Problem> {
    spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(file_error("create", path))
}

/// Opens or creates a file. A link in its place is replaced, not followed.
fn open(path: &Path) -> io::Result<File> {
    if path.is_symlink() {
        fs::remove_file(path)?;
    }
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// The identification of an earlier run's file in its sidecar, if it has the expected digest.
fn noted(sidecar: &Path, expected: Option<&Digest>) -> Option<Identity> {
    let noted: Sidecar = serde_json::from_slice(&fs::read(sidecar).ok()?).ok()?;
    (noted.digest.as_ref() == expected).then_some(noted.identity)
}

fn hash_all(mut hasher: Hasher, mut chunks: Receiver<Bytes>) -> impl FnOnce() -> Hasher {
    move || {
        while let Some(chunk) = chunks.blocking_recv() {
            hasher.update(&chunk);
        }
        hasher
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use wincimg_common::digest::sha256;

    use super::*;

    fn identity(size: u64, etag: Option<&str>) -> Identity {
        Identity {
            size,
            etag: etag.map(str::to_owned),
            last_modified: None,
        }
    }

    async fn write(part: &mut PartialFile, bytes: &'static [u8]) {
        let chunks = stream::iter([Ok::<_, Infallible>(Bytes::from_static(bytes))]);
        part.write_stream(chunks).await.unwrap().unwrap();
    }

    /// Opens a part identified by its server, unless another process has it.
    async fn open(target: &Path) -> Option<PartialFile> {
        let key = ResumeKey::ByServer(None);
        let opened = PartialFile::try_open(target, &Hasher::default(), &key).await;
        opened.unwrap()
    }

    /// Starts a download of ten bytes and stops after three.
    async fn leave_one_behind(target: &Path) {
        let mut part = open(target).await.unwrap();
        part.start(Some(identity(10, Some("\"a\"")))).unwrap();
        write(&mut part, b"abc").await;
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_in_its_place_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.msu");
        let other = folder.path().join("other");
        fs::write(&other, "kept").unwrap();
        let part = target.with_added_extension("part");
        std::os::unix::fs::symlink(&other, &part).unwrap();
        leave_one_behind(&target).await;
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
        assert_eq!(fs::read_to_string(&part).unwrap(), "abc");
    }

    #[tokio::test]
    async fn a_later_run_continues_with_the_hash_of_what_exists() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.msu");
        leave_one_behind(&target).await;
        let mut part = open(&target).await.unwrap();
        assert_eq!(part.written(), 3);
        assert!(part.was_resumed());
        assert_eq!(part.identity(), Some(&identity(10, Some("\"a\""))));
        write(&mut part, b"def").await;
        let whole = part.digest();
        part.commit().await.unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"abcdef");
        assert_eq!(whole, sha256(b"abcdef"));
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
                fs::write(&sidecar, text.replace("null", "\"sha1:00\"")).unwrap();
            },
        ];
        for spoil in spoil {
            leave_one_behind(&target).await;
            spoil();
            let part = open(&target).await.unwrap();
            assert_eq!((part.written(), part.identity()), (0, None));
            part.discard().unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[tokio::test]
    async fn a_disk_that_refuses_ends_with_an_error_and_not_in_a_wait() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.msu");
        let mut part = open(&target).await.unwrap();
        part.file = File::open(part.path()).unwrap();
        let chunks = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"abc"))]);
        assert!(part.write_stream(chunks).await.is_err());
        assert_eq!(part.written(), 0);
    }

    #[tokio::test]
    async fn two_processes_do_not_write_the_same_part() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.msu");
        let _first = open(&target).await.unwrap();
        assert!(open(&target).await.is_none());
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
