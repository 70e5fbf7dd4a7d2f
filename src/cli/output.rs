//! Output of results: stdout, or a file that is renamed into place when it is complete.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use serde::Serialize;
use wincimg_common::files::AtomicFile;

use super::error::Failure;
use crate::cli::error::Context;

/// Output format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Human-readable text
    Text,
    /// JSON
    Json,
}

/// Writes a value as one JSON document.
pub(super) fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Writes a result to a file or, without one, to stdout. The reader may close early, as `head`
/// does.
pub(super) fn write_result(
    file: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    // A stdout that is a file belongs to the shell, and other programs may write to it too. `-` is
    // stdout here, as it is stdin for inputs.
    let is_stdout = |path: &Path| ["/dev/stdout", "-"].map(Path::new).contains(&path);
    let file = file.filter(|path| !is_stdout(path));
    match file {
        Some(path) => {
            write_file(path, write).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
            match write(&mut out).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                other => other.context("cannot write the result")?,
            }
        }
    }
    Ok(())
}

/// Opens the output; from then on a result is being written.
pub(super) fn stdout() -> io::Stdout {
    BEGUN.store(true, Ordering::Relaxed);
    io::stdout()
}

/// Returns true if stdout has a result or part of one.
pub(super) fn has_begun() -> bool {
    BEGUN.load(Ordering::Relaxed)
}

static BEGUN: AtomicBool = AtomicBool::new(false);

fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // A symlink stays, and its target is written.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return write_in_place(path, write);
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut draft = AtomicFile::in_folder(folder).map_err(|error| no_file_in(folder, &error))?;
    let mut out = BufWriter::with_capacity(1 << 16, draft.file());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    draft.persist(path)
}

/// Devices and pipes, such as `/dev/null`, are written directly: renaming a file would replace
/// them.
fn write_in_place(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    write(&mut out)?;
    out.flush()
}

/// Error for a folder in which no file can be created, without the name of the temporary file.
fn no_file_in(folder: &Path, error: &io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let problem = format!("no such folder: {}", folder.display());
            io::Error::new(io::ErrorKind::NotFound, problem)
        }
        kind => io::Error::new(kind, kind.to_string()),
    }
}

/// Width of files and pipes: that of most terminals.
pub(super) const FILE_WIDTH: usize = 100;

/// Width of the terminal, if there is one.
pub(super) fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"one")
    }

    #[test]
    fn a_failed_result_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        std::fs::write(&path, "before").unwrap();
        let outcome = write_file(&path, |_| Err(io::Error::other("no")));
        assert!(outcome.is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_named_without_a_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no");
        let error = write_file(&missing.join("result"), one).unwrap_err();
        let expected = format!("no such folder: {}", missing.display());
        assert_eq!(error.to_string(), expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        use std::os::unix::fs::{FileTypeExt, symlink};

        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("result"), "before").unwrap();
        symlink(path("result"), path("link")).unwrap();
        write_file(&path("link"), one).unwrap();
        assert!(path("link").is_symlink());
        assert_eq!(std::fs::read(path("result")).unwrap(), b"one");

        symlink("/dev/null", path("null")).unwrap();
        write_file(&path("null"), one).unwrap();
        let device = path("null").metadata().unwrap().file_type();
        assert!(device.is_char_device(), "{device:?}");
    }
}
