//! Reads files of a folder that others may write to while it is read, such as a build context.
//!
//! Whoever may write to the folder can replace a file, or a folder above it, by a link to what only
//! this user may read, after any check of its path. So the opening is the check: it follows no
//! links, and where there are some, it opens what they led to, which must be in the folder.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::path::Component;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use rustix::fs::{Mode, OFlags, open, openat};
#[cfg(unix)]
use rustix::io::{Errno, retry_on_intr};

use super::open::open_regular;
use super::or_here;

/// Non-blocking in case a pipe has replaced the file; has no effect on files.
#[cfg(unix)]
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

#[cfg(unix)]
const FOLDER: OFlags = SEARCH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opening what is in a folder needs no permission to list it.
#[cfg(target_os = "linux")]
const SEARCH: OFlags = OFlags::PATH;
#[cfg(all(unix, not(target_os = "linux")))]
const SEARCH: OFlags = OFlags::RDONLY;

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// The name.
    pub name: OsString,
    /// What has it.
    pub kind: FolderEntryKind,
}

/// What has a name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderEntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, with its target.
    Link(PathBuf),
    /// A pipe, a socket or a device.
    Special,
}

/// A link out of the folder, as the cause of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("it leads out of {}, to {}", folder.display(), to.display())]
pub struct LeadsOut {
    folder: PathBuf,
    to: PathBuf,
}

impl LeadsOut {
    /// What to do about it.
    pub const HINT: &str = "copy the link's target into the folder";

    /// Returns true if it is the cause of an error.
    pub fn is_cause_of(error: &io::Error) -> bool {
        error
            .get_ref()
            .is_some_and(<dyn Error + Send + Sync>::is::<Self>)
    }
}

/// Opens a regular file of a folder for reading; refuses folders, pipes and devices without
/// blocking. Links may lead elsewhere in the folder, but not out of it.
pub fn open_within(folder: &Path, path: &Path) -> io::Result<(File, Metadata)> {
    let opened = open_regular(path, || open_at_once(folder, path));
    // That a link leads out counts more than what is wrong with its target.
    opened.map_err(|error| resolve(folder, path).err().unwrap_or(error))
}

/// What [`fs::metadata`] returns for a path in a folder. Links may lead elsewhere in the folder, but
/// not out of it.
pub fn metadata_within(folder: &Path, path: &Path) -> io::Result<Metadata> {
    #[cfg(target_os = "linux")]
    {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open_with(folder, path, flags)?.metadata()
    }
    // Here that would need permission to read it, and to open a device has effects.
    #[cfg(not(target_os = "linux"))]
    {
        resolve(folder, path)?;
        fs::metadata(or_here(path))
    }
}

/// Lists a folder in a folder, in any order. Links may lead elsewhere in the folder, but not out of
/// it.
#[cfg(unix)]
pub fn list_within(folder: &Path, path: &Path) -> io::Result<Vec<FolderEntry>> {
    use std::os::unix::ffi::OsStrExt;

    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let listed = open_with(folder, path, flags)?;
    let mut entries = Vec::new();
    for entry in rustix::fs::Dir::read_from(&listed)? {
        let entry = entry?;
        let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            entries.push(FolderEntry {
                name: name.to_owned(),
                kind: kind_of(&listed, &entry)?,
            });
        }
    }
    Ok(entries)
}

#[cfg(unix)]
fn kind_of(folder: &File, entry: &rustix::fs::DirEntry) -> io::Result<FolderEntryKind> {
    use std::os::unix::ffi::OsStringExt;

    use rustix::fs::{AtFlags, FileType, readlinkat, statat};

    let mut kind = entry.file_type();
    // Some file systems do not list it.
    if kind == FileType::Unknown {
        let found = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
        kind = FileType::from_raw_mode(found.st_mode);
    }
    Ok(match kind {
        FileType::RegularFile => FolderEntryKind::File,
        FileType::Directory => FolderEntryKind::Folder,
        FileType::Symlink => {
            let target = readlinkat(folder, entry.file_name(), Vec::new())?;
            FolderEntryKind::Link(OsString::from_vec(target.into_bytes()).into())
        }
        _ => FolderEntryKind::Special,
    })
}

/// Its place is checked after it is listed, as that of a file.
#[cfg(not(unix))]
pub fn list_within(folder: &Path, path: &Path) -> io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(or_here(path))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let kind = if kind.is_symlink() {
            FolderEntryKind::Link(fs::read_link(entry.path())?)
        } else if kind.is_dir() {
            FolderEntryKind::Folder
        } else if kind.is_file() {
            FolderEntryKind::File
        } else {
            FolderEntryKind::Special
        };
        let name = entry.file_name();
        entries.push(FolderEntry { name, kind });
    }
    resolve(folder, path)?;
    Ok(entries)
}

/// The real path of a folder, and that of a file relative to it.
fn resolve(folder: &Path, path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let folder = or_here(folder);
    let top = fs::canonicalize(folder)?;
    let to = fs::canonicalize(or_here(path))?;
    match to.strip_prefix(&top) {
        Ok(inside) => {
            let inside = inside.to_owned();
            Ok((top, inside))
        }
        Err(_) => {
            let folder = folder.to_owned();
            let cause = LeadsOut { folder, to };
            Err(io::Error::new(io::ErrorKind::InvalidInput, cause))
        }
    }
}

#[cfg(unix)]
fn open_at_once(folder: &Path, path: &Path) -> io::Result<File> {
    open_with(folder, path, FILE)
}

/// Here a path is opened as a whole. Its place is checked after that, so that a link must also be
/// gone again in time.
#[cfg(not(unix))]
fn open_at_once(folder: &Path, path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    resolve(folder, path)?;
    Ok(file)
}

#[cfg(unix)]
fn open_with(folder: &Path, path: &Path, flags: OFlags) -> io::Result<File> {
    if let Ok(inside) = path.strip_prefix(folder)
        && let Ok(opened) = open_without_links(folder, inside, flags)
    {
        return Ok(opened.into());
    }
    let (folder, inside) = resolve(folder, path)?;
    Ok(open_without_links(&folder, &inside, flags)?.into())
}

/// Opens what is below a folder, or the folder itself, if no name on the way is a link.
#[cfg(unix)]
fn open_without_links(folder: &Path, inside: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let folder = retry_on_intr(|| open(or_here(folder), FOLDER, Mode::empty()))?;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let inside = or_here(inside);
        match retry_on_intr(|| openat2(&folder, inside, flags, Mode::empty(), how)) {
            // Linux before 5.6, and sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return refuse_link(opened?),
        }
    }
    refuse_link(open_by_names(folder, inside, flags)?)
}

/// `OFlags::PATH` opens a link itself where others refuse it.
#[cfg(unix)]
fn refuse_link(opened: OwnedFd) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{FileType, fstat};
    match FileType::from_raw_mode(fstat(&opened)?.st_mode) {
        FileType::Symlink => Err(Errno::LOOP),
        _ => Ok(opened),
    }
}

/// The same on any Unix, name by name.
#[cfg(unix)]
fn open_by_names(mut folder: OwnedFd, inside: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let mut rest = inside
        .components()
        .filter(|part| *part != Component::CurDir);
    let mut next = rest.next();
    while let Some(part) = next {
        let Component::Normal(name) = part else {
            return Err(Errno::LOOP);
        };
        next = rest.next();
        let flags = match next {
            Some(_) => FOLDER | OFlags::NOFOLLOW,
            None => flags,
        };
        folder = retry_on_intr(|| openat(&folder, name, flags, Mode::empty()))?;
        if next.is_none() {
            return Ok(folder);
        }
    }
    retry_on_intr(|| openat(&folder, ".", flags, Mode::empty()))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A context with one file, and a secret beside it.
    fn root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (folder, text) in [("context/site", "own"), ("secret", "secret")] {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("a"), text).unwrap();
        }
        root
    }

    fn read(folder: &Path, inside: &str) -> io::Result<String> {
        let (file, _) = open_within(folder, &folder.join(inside))?;
        io::read_to_string(file)
    }

    #[test]
    fn what_a_link_out_of_the_folder_replaced_is_not_opened() {
        let root = root();
        let context = root.path().join("context");
        let refused = || read(&context, "site/a").unwrap_err().to_string();
        assert_eq!(read(&context, "site/a").unwrap(), "own");

        fs::remove_file(context.join("site/a")).unwrap();
        symlink(root.path().join("secret/a"), context.join("site/a")).unwrap();
        assert!(refused().contains("leads out of"), "{}", refused());
        fs::remove_file(context.join("site/a")).unwrap();
        symlink("/dev/zero", context.join("site/a")).unwrap();
        assert!(refused().contains("leads out of"), "{}", refused());

        fs::remove_dir_all(context.join("site")).unwrap();
        symlink("../secret", context.join("site")).unwrap();
        assert!(refused().contains("leads out of"), "{}", refused());
    }

    #[test]
    fn what_a_link_out_of_the_folder_replaced_is_neither_listed_nor_looked_at() {
        let root = root();
        let context = root.path().join("context");
        let site = context.join("site");
        let listed = || list_within(&context, &site);
        assert_eq!(listed().unwrap()[0].name, "a");
        assert_eq!(metadata_within(&context, &site.join("a")).unwrap().len(), 3);

        fs::rename(&site, context.join("old")).unwrap();
        symlink("../secret", &site).unwrap();
        assert!(LeadsOut::is_cause_of(&listed().unwrap_err()));
        for path in [site.clone(), site.join("a")] {
            let error = metadata_within(&context, &path).unwrap_err();
            assert!(LeadsOut::is_cause_of(&error), "{error}");
        }
    }

    #[test]
    fn a_folder_is_listed_with_what_its_names_are() {
        use FolderEntryKind::{File, Folder, Link, Special};

        let root = root();
        let context = root.path().join("context");
        symlink("../gone", context.join("link")).unwrap();
        symlink("site", context.join("own")).unwrap();
        fs::create_dir(context.join("empty")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(context.join("socket")).unwrap();
        let listed = |path: &Path| {
            let mut entries = list_within(&context, path).unwrap();
            entries.sort_by(|one, other| one.name.cmp(&other.name));
            let entries = entries.into_iter();
            let entries = entries.map(|it| (it.name.into_string().unwrap(), it.kind));
            entries.collect::<Vec<_>>()
        };
        let all = [
            ("empty", Folder),
            ("link", Link("../gone".into())),
            ("own", Link("site".into())),
            ("site", Folder),
            ("socket", Special),
        ];
        assert_eq!(
            listed(&context),
            all.map(|(name, kind)| (name.to_owned(), kind))
        );
        assert_eq!(listed(&context.join("own")), [("a".to_owned(), File)]);
        assert!(listed(&context.join("empty")).is_empty());
        let error = list_within(&context, &context.join("site/a")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn links_in_the_folder_are_followed_and_the_folder_may_be_one() {
        let root = root();
        let context = root.path().join("context");
        symlink("site/a", context.join("file")).unwrap();
        symlink(context.join("site"), context.join("folder")).unwrap();
        symlink("context", root.path().join("named")).unwrap();
        for folder in [context, root.path().join("named")] {
            for inside in ["site/a", "./site/a", "file", "folder/a"] {
                assert_eq!(read(&folder, inside).unwrap(), "own", "{inside}");
                let found = metadata_within(&folder, &folder.join(inside)).unwrap();
                assert!(found.is_file(), "{inside}");
            }
            assert!(metadata_within(&folder, &folder).unwrap().is_dir());
        }
    }

    #[test]
    fn without_the_call_of_linux_names_are_followed_and_links_are_not() {
        let root = root();
        let context = root.path().join("context");
        symlink("site/a", context.join("file")).unwrap();
        symlink("site", context.join("folder")).unwrap();
        let opened = |inside: &str| {
            let folder = open(&context, FOLDER, Mode::empty()).unwrap();
            open_by_names(folder, Path::new(inside), FILE)
        };
        for inside in ["site/a", "./site/a"] {
            let file = File::from(opened(inside).unwrap());
            assert_eq!(io::read_to_string(file).unwrap(), "own");
        }
        for inside in ["", ".", "site"] {
            let folder = File::from(opened(inside).unwrap());
            assert!(folder.metadata().unwrap().is_dir(), "{inside}");
        }
        for inside in ["file", "folder/a", "../secret/a", "site/.."] {
            assert!(opened(inside).is_err(), "{inside}");
        }
    }
}
