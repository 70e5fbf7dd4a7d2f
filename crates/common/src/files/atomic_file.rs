//! A file that appears under its name only when it is complete.

use std::collections::HashSet;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::or_here;
use crate::lock;
use crate::progress::Progress;
use tempfile::{Builder, NamedTempFile, TempPath};

/// Prefix of temporary names.
const PREFIX: &str = ".wincimg-";

/// Name of a file that locks its folder on NFS.
const LOCK_NAME: &str = ".wincimg-lock";

/// Age at which an unlocked temporary file is of an earlier run. Other machines' locks are not seen
/// on NFS mounted with `nolock`, and a new file is not locked at once.
const ABANDONED_AGE: Duration = Duration::from_hours(1);

/// Returns true if the name is that of an unfinished file, or of a removed one that is still open
/// on NFS.
pub fn is_draft(name: &str) -> bool {
    let removed = name.strip_prefix(".nfs");
    let is_removed =
        removed.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_removed || name.starts_with(PREFIX)
}

/// A temporary file in the folder of its final name. On Linux it is unnamed, so that nothing
/// remains after a crash; elsewhere it is locked while it is written, and the next run that writes
/// to the same folder removes old, unlocked ones.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    named: Option<TempPath>,
    folder: PathBuf,
}

impl AtomicFile {
    /// Creates an empty file to be named in this folder.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let folder = or_here(folder);
        remove_unfinished(folder);
        #[cfg(target_os = "linux")]
        if let Some(file) = create_unnamed(folder) {
            return Ok(Self {
                file,
                named: None,
                folder: folder.to_owned(),
            });
        }
        let (file, named) = visible(folder)?.into_parts();
        Ok(Self {
            file,
            named: Some(named),
            folder: folder.to_owned(),
        })
    }

    /// The file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file the permissions of one that it replaces, and its owner where that is allowed.
    #[cfg(unix)]
    pub(super) fn set_permissions_of(&self, replaced: &Metadata) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) != (replaced.uid(), replaced.gid()) {
            // Only root may.
            let _ = fchown(&self.file, Some(replaced.uid()), Some(replaced.gid()));
        }
        let permissions = fs::Permissions::from_mode(replaced.mode() & 0o777);
        self.file.set_permissions(permissions)
    }

    /// On Windows a file in a folder inherits its permissions.
    #[cfg(not(unix))]
    pub(super) fn set_permissions_of(&self, _replaced: &Metadata) -> io::Result<()> {
        Ok(())
    }

    /// Renames the file to `path` and replaces an existing file.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        match self.named {
            Some(named) => named.persist(path).map_err(|error| error.error),
            None => {
                let draft = match self.link(path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        let mut names = Builder::new();
                        names.prefix(PREFIX);
                        names.make_in(&self.folder, |name| self.link(name))?
                    }
                    done => return done,
                };
                draft
                    .into_temp_path()
                    .persist(path)
                    .map_err(|error| error.error)
            }
        }
    }

    /// Like [`Self::persist`], for a result that a power cut must not take away: without this, a
    /// file system may have the name on disk before the content. Caches verify what they read, and
    /// need none of it.
    pub fn persist_durable(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        self.persist(path)?;
        sync_folder(path);
        Ok(())
    }

    /// Renames the file to `path` durably; fails if it exists.
    pub fn persist_new(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        match self.named {
            Some(named) => named.persist_noclobber(path).map_err(|error| error.error)?,
            None => self.link(path)?,
        }
        sync_folder(path);
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn link(&self, path: &Path) -> io::Result<()> {
        use rustix::fs::{AtFlags, CWD, linkat};
        let file = path_of(&self.file);
        Ok(linkat(CWD, file, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn link(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Lock of a folder, held until it is dropped.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
    /// A file that exists only while the folder is locked.
    name: Option<PathBuf>,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Whoever waits for this file finds then that its name is gone, and makes another.
        if let Some(path) = &self.name {
            let _ = fs::remove_file(path);
        }
    }
}

/// Waits until no other process changes a file of the folder that it has read, and lets others wait
/// until the result is dropped. `None` where a folder cannot be locked, as on Windows: there, and
/// after a long wait, the last one wins.
pub fn lock_folder(folder: &Path, progress: &dyn Progress) -> Option<FolderLock> {
    let folder = or_here(folder);
    if is_on_nfs(folder) {
        return lock_by_name(folder, progress);
    }
    let file = File::open(folder).ok()?;
    let is_held = lock_file(&file, folder, progress).ok()?;
    is_held.then_some(FolderLock {
        _file: file,
        name: None,
    })
}

/// Locks a folder by a file in it: NFS locks folders for one machine alone.
fn lock_by_name(folder: &Path, progress: &dyn Progress) -> Option<FolderLock> {
    let path = folder.join(LOCK_NAME);
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    loop {
        let file = options.open(&path).ok()?;
        if !lock_file(&file, folder, progress).ok()? {
            return None;
        }
        if is_at(&file, &path) {
            return Some(FolderLock {
                _file: file,
                name: Some(path),
            });
        }
    }
}

#[cfg(target_os = "linux")]
fn is_on_nfs(folder: &Path) -> bool {
    use rustix::fs::{NFS_SUPER_MAGIC, statfs};
    statfs(folder).is_ok_and(|it| it.f_type == NFS_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_on_nfs(_folder: &Path) -> bool {
    false
}

/// Returns true if a path still refers to this file.
#[cfg(unix)]
pub fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |found: Metadata| (found.dev(), found.ino());
    let here = file.metadata().map(place).ok();
    here.is_some() && here == fs::metadata(path).map(place).ok()
}

/// Returns true if a path still refers to a file, as it probably is this one.
#[cfg(not(unix))]
pub fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Time to wait for a lock, which is held only while a small file is written.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Time after which a note says why nothing happens.
const NOTE_DELAY: Duration = Duration::from_secs(1);

/// Waits for the lock of a file, which guards `folder`; returns false after a while, as every user
/// who may read the file can hold its lock.
pub fn lock_file(file: &File, folder: &Path, progress: &dyn Progress) -> io::Result<bool> {
    let begun = Instant::now();
    let mut is_noted = false;
    loop {
        match file.try_lock() {
            Ok(()) => {
                refresh_names(folder);
                return Ok(true);
            }
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        let waited = begun.elapsed();
        if waited > LOCK_TIMEOUT {
            return Ok(false);
        }
        if waited > NOTE_DELAY && !is_noted {
            is_noted = true;
            let folder = folder.display();
            progress.note(&format!("waiting for another wincimg that holds {folder}"));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Makes later lookups in a folder find what other machines renamed. An NFS client keeps names for
/// up to a minute, so that a name can be that of a file which meanwhile has another; opening the
/// folder asks the server.
pub fn refresh_names(folder: &Path) {
    let _ = File::open(or_here(folder));
}

/// Number of times and pauses in which a file is looked for again.
const LOOKUP_ATTEMPTS: u32 = 10;
const LOOKUP_INTERVAL: Duration = Duration::from_millis(50);

/// Reads a file that the folder has, whatever a look says. On NFS, a file that is replaced while
/// the same machine reads it has no name for a moment, and other clients keep for a while that it
/// had none.
pub fn find_again<T>(folder: &Path, mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..LOOKUP_ATTEMPTS {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
        thread::sleep(LOOKUP_INTERVAL);
        refresh_names(folder);
    }
    read()
}

/// Creates a folder and its missing parents durably.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let is_missing = |it: &&Path| !it.as_os_str().is_empty() && !it.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    fs::create_dir_all(path)?;
    missing.into_iter().rev().for_each(sync_folder);
    Ok(())
}

/// Writes the names in a file's folder to disk, where the file system can.
#[cfg(unix)]
pub fn sync_folder(path: &Path) {
    let _ = File::open(super::folder_of(path)).and_then(|folder| folder.sync_all());
}

/// Writes the names in a file's folder to disk, where the file system can.
#[cfg(not(unix))]
pub fn sync_folder(_path: &Path) {}

/// Writes a whole file atomically and durably, with the permissions of the file that it replaces. A
/// link in its place is replaced, not followed.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = AtomicFile::in_folder(path.parent().unwrap_or(Path::new("")))?;
    if let Ok(replaced) = path.symlink_metadata()
        && replaced.is_file()
    {
        draft.set_permissions_of(&replaced)?;
    }
    draft.file().write_all(bytes)?;
    draft.persist_durable(path)
}

/// Path of an open file, named or not.
#[cfg(target_os = "linux")]
pub(super) fn path_of(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// `None` if the file system does not support unnamed files, or `/proc` is not mounted.
#[cfg(target_os = "linux")]
fn create_unnamed(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::OFlags;
    let file = File::options()
        .read(true)
        .write(true)
        .mode(0o666)
        .custom_flags(OFlags::TMPFILE.bits().cast_signed())
        .open(folder)
        .ok()?;
    // Locks it between its two names.
    let _ = file.try_lock();
    path_of(&file).is_file().then_some(file)
}

fn visible(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The default mode is for secrets; results are read by other accounts too.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let draft = builder.tempfile_in(folder)?;
    // Without locks, the sweep cannot recognise files in use.
    let _ = draft.as_file().try_lock();
    Ok(draft)
}

/// Removes unfinished files of earlier runs from a folder.
fn remove_unfinished(folder: &Path) {
    static CLEANED: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);
    let mut cleaned = lock(&CLEANED);
    if !cleaned.insert(folder.to_owned()) {
        return;
    }
    drop(cleaned);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_left = name.to_str().is_some_and(|it| it.starts_with(PREFIX))
            && entry.metadata().is_ok_and(|it| it.is_file() && is_old(&it))
            && is_unlocked(&entry.path());
        if is_left {
            let removed = fs::remove_file(entry.path());
            tracing::debug!(file = %entry.path().display(), ?removed, "removed a file of an earlier run");
        }
    }
}

fn is_old(found: &Metadata) -> bool {
    let age = found.modified().ok().and_then(|it| it.elapsed().ok());
    age.is_some_and(|age| age > ABANDONED_AGE)
}

fn is_unlocked(path: &Path) -> bool {
    // NFS locks only files that are open for writing.
    let opened = File::options().write(true).open(path);
    opened.is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = folder.read_dir().unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_draft_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        for content in ["one", "two"] {
            let mut draft = AtomicFile::in_folder(folder.path()).unwrap();
            draft.file().write_all(content.as_bytes()).unwrap();
            #[cfg(target_os = "linux")]
            assert!(!names(folder.path()).iter().any(|name| is_draft(name)));
            draft.persist(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(names(folder.path()), ["result"]);
        }
        let mut draft = AtomicFile::in_folder(folder.path()).unwrap();
        draft.file().write_all(b"three").unwrap();
        let error = draft.persist_new(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        drop(AtomicFile::in_folder(folder.path()).unwrap());
        assert_eq!(names(folder.path()), ["result"]);
    }

    #[test]
    fn what_an_ended_run_left_goes_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let old = SystemTime::now() - 2 * ABANDONED_AGE;
        let put = |name: &str, modified: SystemTime| {
            fs::write(path(name), "").unwrap();
            let file = File::options().append(true).open(path(name)).unwrap();
            file.set_modified(modified).unwrap();
        };
        put(".wincimg-left", old);
        put(".other", old);
        put(".nfs00000000000200080000000b", old);
        // Its lock may not be visible.
        put(".wincimg-new", SystemTime::now());
        // The clock was put back.
        put(".wincimg-next", SystemTime::now() + 2 * ABANDONED_AGE);
        let written = visible(folder.path()).unwrap();
        written.as_file().set_modified(old).unwrap();
        remove_unfinished(folder.path());
        let name = written.path().file_name().unwrap().to_str().unwrap();
        let kept = [
            ".nfs00000000000200080000000b",
            ".other",
            ".wincimg-new",
            ".wincimg-next",
            name,
        ];
        let mut expected = kept.map(str::to_owned);
        expected.sort();
        assert_eq!(names(folder.path()), expected);
    }

    #[test]
    fn a_folder_is_locked_by_a_file_that_is_gone_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        fs::write(&count, "0").unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let _held = lock_by_name(folder.path(), &crate::progress::Silent).unwrap();
                        let before: u32 = fs::read_to_string(&count).unwrap().parse().unwrap();
                        fs::write(&count, (before + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&count).unwrap(), "80");
        assert_eq!(names(folder.path()), ["count"]);
    }

    #[test]
    fn a_file_is_looked_for_again_and_not_forever() {
        let found_at = |number: u32| {
            let mut looks = 0;
            let found = find_again(Path::new("."), || {
                looks += 1;
                if looks < number {
                    return Err(io::ErrorKind::NotFound.into());
                }
                Ok(())
            });
            (found.is_ok(), looks)
        };
        assert_eq!(found_at(1), (true, 1));
        assert_eq!(found_at(3), (true, 3));
        assert_eq!(found_at(LOOKUP_ATTEMPTS + 2), (false, LOOKUP_ATTEMPTS + 1));
    }

    #[test]
    fn a_removed_file_that_is_open_on_nfs_is_a_draft() {
        for (name, expected) in [
            (".wincimg-a", true),
            (".nfs00000000000200080000000b", true),
            (".nfs", false),
            (".nfs-mounts", false),
            ("nfs0b", false),
        ] {
            assert_eq!(is_draft(name), expected, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_long_wait_for_another_process_is_said_once() {
        use std::fmt::Display;

        #[derive(Default)]
        struct Notes(Mutex<Vec<String>>);

        impl Progress for Notes {
            fn note(&self, message: &dyn Display) {
                lock(&self.0).push(message.to_string());
            }

            fn warn(&self, _message: &dyn Display) {}
        }

        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::default();
        let held = lock_folder(folder.path(), &notes).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| lock_folder(folder.path(), &notes).is_some());
            thread::sleep(NOTE_DELAY + Duration::from_millis(500));
            drop(held);
            assert!(waiting.join().unwrap());
        });
        let path = folder.path().display();
        let expected = format!("waiting for another wincimg that holds {path}");
        assert_eq!(*lock(&notes.0), [expected]);
    }

    #[cfg(unix)]
    #[test]
    fn a_result_can_be_read_by_whom_the_user_lets_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("plain"), "").unwrap();
        let draft = AtomicFile::in_folder(folder.path()).unwrap();
        draft.persist(&folder.path().join("result")).unwrap();
        let mode = |name: &str| {
            let found = fs::metadata(folder.path().join(name)).unwrap();
            found.permissions().mode()
        };
        assert_eq!(mode("result"), mode("plain"));
    }
}
