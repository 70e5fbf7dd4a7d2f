//! Writing a file that the user named as an output.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::AtomicFile;

/// Maximum number of symbolic links to follow, as on Linux.
const MOST_LINKS: usize = 40;

/// Writes a file that appears when it is complete, with the permissions of the file that it
/// replaces. A symbolic link stays, and its target is written. Devices and pipes, such as
/// `/dev/null`, are written directly: renaming a file would replace them.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    match draft(path)? {
        Some((mut draft, path)) => {
            write(draft.file())?;
            draft.persist_durable(&path)
        }
        None => write(&mut OpenOptions::new().write(true).open(path)?),
    }
}

/// Returns the error with which [`replace`] would begin, for work that it would waste.
pub fn check_replace(path: &Path) -> io::Result<()> {
    match draft(path)? {
        // Opening a pipe would wait for its reader.
        None if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Ok(()),
    }
}

/// The file to write and the path to give to it; none for a path that is not of a file.
fn draft(path: &Path) -> io::Result<Option<(AtomicFile, PathBuf)>> {
    let (path, replaced) = match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Ok(None),
        Ok(found) => (path.canonicalize()?, Some(found)),
        Err(_) => (link_target(path)?, None),
    };
    let draft = AtomicFile::in_folder(path.parent().unwrap_or(Path::new("")))
        // Without the name of the temporary file.
        .map_err(|error| io::Error::from(error.kind()))?;
    if let Some(replaced) = replaced {
        draft.set_permissions_of(&replaced)?;
    }
    Ok(Some((draft, path)))
}

/// The path at the end of a chain of links, which does not exist.
pub fn link_target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn one(file: &mut File) -> io::Result<()> {
        file.write_all(b"one")
    }

    #[test]
    fn a_failed_write_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        fs::write(&path, "before").unwrap();
        let outcome = replace(&path, |_| Err(io::Error::other("no")));
        assert!(outcome.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn a_check_finds_what_cannot_be_written_and_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        check_replace(&path).unwrap();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        fs::write(&path, "before").unwrap();
        check_replace(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        for wrong in [folder.path(), &folder.path().join("no/result")] {
            assert!(check_replace(wrong).is_err(), "{}", wrong.display());
        }
    }

    #[cfg(unix)]
    #[test]
    fn permissions_stay() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        for mode in [0o600, 0o640, 0o755, 0o444] {
            fs::write(&path, "before").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            replace(&path, one).unwrap();
            super::super::write(&path, b"two").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"two");
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, mode);
            fs::remove_file(&path).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        use std::os::unix::fs::{FileTypeExt, symlink};

        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("result"), "before").unwrap();
        symlink("result", path("link")).unwrap();
        symlink("new", path("dangling")).unwrap();
        replace(&path("link"), one).unwrap();
        replace(&path("dangling"), one).unwrap();
        assert!(path("link").is_symlink() && path("dangling").is_symlink());
        assert_eq!(fs::read(path("result")).unwrap(), b"one");
        assert_eq!(fs::read(path("new")).unwrap(), b"one");

        symlink("/dev/null", path("null")).unwrap();
        replace(&path("null"), one).unwrap();
        let device = path("null").metadata().unwrap().file_type();
        assert!(device.is_char_device(), "{device:?}");
        symlink("round", path("round")).unwrap();
        assert!(replace(&path("round"), one).is_err());
        assert!(replace(folder.path(), one).is_err());
    }
}
