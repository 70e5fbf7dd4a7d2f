//! Where results go: stdout, or a file that appears under its name only when it is whole.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;

use super::failure::Failure;

/// The forms that every result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Writes a value as one JSON document.
pub(super) fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Writes a result to a file or, without one, to stdout. A reader that goes away early, as `head`
/// does, is no failure.
pub(super) fn write_result(
    file: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    match file {
        Some(path) => write_file(path, write)
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(Failure::from),
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            match write(&mut out).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                other => other
                    .context("cannot write the result")
                    .map_err(Failure::from),
            }
        }
    }
}

fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // A pipe or a device, such as /dev/stdout, is written to: another file in its place would
    // take it away from everybody.
    if fs::metadata(path).is_ok_and(|known| !known.is_file() && !known.is_dir()) {
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    }
    // A symbolic link stays one.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut temporary = builder.tempfile_in(folder)?;
    let mut out = BufWriter::with_capacity(1 << 16, temporary.as_file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    temporary.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// How wide the reader's terminal is; files and pipes get a width that most terminals have.
pub(super) fn terminal_width() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(100, |(width, _)| usize::from(width.0))
}
