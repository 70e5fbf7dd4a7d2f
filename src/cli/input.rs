//! Input files: `-` is stdin, and text may have the encodings of programs on Windows.

use std::io::{self, Cursor, Read};
use std::path::Path;

use anyhow::anyhow;
use wincimg_common::files;
use wincimg_common::files::{LARGEST_TEXT, LimitedReader};
use wincimg_registry::text::{TruncatedUtf16, from_utf16};

use super::error::Failure;
use crate::cli::error::Context;

/// Size limit, above that of any cluster's lists.
const LARGEST_LIST: u64 = 1024 * 1024 * 1024;

/// Opens a file or stdin as UTF-8 without a byte order mark, whatever its encoding.
pub(super) fn open(path: &Path) -> Result<impl Read, Failure> {
    let source = source(path, LARGEST_LIST);
    let source = source.map_err(|error| unreadable("open", path, error))?;
    as_utf8(source).map_err(|error| {
        if error
            .get_ref()
            .is_some_and(<dyn std::error::Error + Send + Sync>::is::<TruncatedUtf16>)
        {
            Failure::usage(anyhow!("{}: {error}", name(path)))
                .hint("write it again, or save it as UTF-8")
        } else {
            Failure::from(error).context(format!("cannot read {}", name(path)))
        }
    })
}

/// Reads all text.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    let text = io::read_to_string(open(path)?);
    text.with_context(|| format!("cannot read {}", name(path)))
}

/// Reads all bytes unchanged.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = source(path, LARGEST_TEXT).and_then(|mut source| source.read_to_end(&mut bytes));
    read.map_err(|error| unreadable("read", path, error))?;
    Ok(bytes)
}

/// Error for a file that cannot be read, with the nearest existing one.
fn unreadable(what: &str, path: &Path, error: io::Error) -> Failure {
    let failure = Failure::operation(anyhow::Error::new(error));
    let failure = failure.context(format!("cannot {what} {}", name(path)));
    match files::similar_path(path).filter(|_| !is_stdin(path)) {
        Some(meant) => failure.hint(format!("did you mean {}?", meant.display())),
        None => failure,
    }
}

fn source(path: &Path, limit: u64) -> io::Result<LimitedReader<Box<dyn Read>>> {
    let source: Box<dyn Read> = if is_stdin(path) {
        Box::new(io::stdin().lock())
    } else {
        Box::new(files::open_stream(path)?)
    };
    Ok(LimitedReader::new(source, limit))
}

/// Name of the input in messages.
pub(super) fn name(path: &Path) -> String {
    if is_stdin(path) {
        "stdin".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Returns true for stdin.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Text without a mark passes unchanged. `PowerShell`'s `>` writes UTF-16 with one, which is held
/// in memory.
fn as_utf8<R: Read>(mut source: R) -> io::Result<impl Read> {
    let mut start = Vec::new();
    source.by_ref().take(3).read_to_end(&mut start)?;
    let order: Option<fn([u8; 2]) -> u16> = match start[..] {
        [0xFF, 0xFE, ..] => Some(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => Some(u16::from_be_bytes),
        _ => None,
    };
    if let Some(order) = order {
        source.read_to_end(&mut start)?;
        let text = from_utf16(&start[2..], order)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        start = text.into_bytes();
    } else if start == b"\xEF\xBB\xBF" {
        start.clear();
    }
    Ok(Cursor::new(start).chain(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> String {
        io::read_to_string(as_utf8(bytes).unwrap()).unwrap()
    }

    fn units(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let marked = std::iter::once(0xFEFF).chain(text.encode_utf16());
        marked.flat_map(to_bytes).collect()
    }

    #[test]
    fn every_mark_is_understood_and_taken_off() {
        let text = "{\"é\": \"𝄞\"}";
        let marked = ["\u{FEFF}", text].concat();
        assert_eq!(read(text.as_bytes()), text);
        assert_eq!(read(marked.as_bytes()), text);
        assert_eq!(read(&units(text, u16::to_le_bytes)), text);
        assert_eq!(read(&units(text, u16::to_be_bytes)), text);
        assert_eq!(read(&[0xFF, 0xFE]), "");
        for short in ["", "a", "ab", "abc"] {
            assert_eq!(read(short.as_bytes()), short);
        }
    }
}
