//! Opens files of a folder that others may write to while it is read, such as a build context.
//!
//! Whoever may write to the folder can replace a file, or a folder above it, by a link to what only
//! this user may read, after any check of its path. So the opening is the check: it follows no
//! links, and where there are some, it opens the file that they led to, which must be in the folder.

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

/// Opens a regular file of a folder for reading; refuses folders, pipes and devices without
/// blocking. Links may lead elsewhere in the folder, but not out of it.
pub fn open_within(folder: &Path, path: &Path) -> io::Result<(File, Metadata)> {
    open_regular(path, || open_at_once(folder, path))
}

/// Real path of a file or folder, if that is outside of another folder.
pub fn escape(folder: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    let (folder, path) = real_paths(folder, path)?;
    Ok((!path.starts_with(folder)).then_some(path))
}

fn real_paths(folder: &Path, path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    Ok((fs::canonicalize(or_here(folder))?, fs::canonicalize(path)?))
}

/// The real path of a folder, and that of a file relative to it.
fn resolve(folder: &Path, path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let (top, real) = real_paths(folder, path)?;
    let inside = real.strip_prefix(&top).map_err(|_| {
        let (folder, real) = (or_here(folder).display(), real.display());
        let problem = format!("it leads out of {folder}, to {real}");
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    })?;
    let inside = inside.to_owned();
    Ok((top, inside))
}

#[cfg(unix)]
fn open_at_once(folder: &Path, path: &Path) -> io::Result<File> {
    if let Ok(inside) = path.strip_prefix(folder)
        && let Ok(file) = open_without_links(folder, inside)
    {
        return Ok(file.into());
    }
    let (folder, inside) = resolve(folder, path)?;
    Ok(open_without_links(&folder, &inside)?.into())
}

/// Here a path is opened as a whole. Its place is checked after that, so that a link must also be
/// gone again in time.
#[cfg(not(unix))]
fn open_at_once(folder: &Path, path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    resolve(folder, path)?;
    Ok(file)
}

/// Opens a file below a folder if no name on the way is a link.
#[cfg(unix)]
fn open_without_links(folder: &Path, inside: &Path) -> rustix::io::Result<OwnedFd> {
    let folder = retry_on_intr(|| open(or_here(folder), FOLDER, Mode::empty()))?;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let flags = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match retry_on_intr(|| openat2(&folder, inside, FILE, Mode::empty(), flags)) {
            // Linux before 5.6, and sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return opened,
        }
    }
    open_by_names(folder, inside)
}

/// The same on any Unix, name by name.
#[cfg(unix)]
fn open_by_names(mut folder: OwnedFd, inside: &Path) -> rustix::io::Result<OwnedFd> {
    let (Some(above), Some(file)) = (inside.parent(), inside.file_name()) else {
        return Err(Errno::ISDIR);
    };
    for part in above.components() {
        let Component::Normal(name) = part else {
            return Err(Errno::LOOP);
        };
        let flags = FOLDER | OFlags::NOFOLLOW;
        folder = retry_on_intr(|| openat(&folder, name, flags, Mode::empty()))?;
    }
    retry_on_intr(|| openat(&folder, file, FILE, Mode::empty()))
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

        fs::remove_dir_all(context.join("site")).unwrap();
        symlink("../secret", context.join("site")).unwrap();
        assert!(refused().contains("leads out of"), "{}", refused());
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
            }
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
            open_by_names(folder, Path::new(inside))
        };
        let file = File::from(opened("site/a").unwrap());
        assert_eq!(io::read_to_string(file).unwrap(), "own");
        for inside in ["file", "folder/a", "../secret/a", "site/..", ""] {
            assert!(opened(inside).is_err(), "{inside}");
        }
    }
}
