//! Input files: `-` is stdin, and text may have the encodings of programs on Windows.

use std::io::{self, Read};
use std::path::Path;

use wincimg_common::files;
use wincimg_common::files::{LARGEST_TEXT, LimitedReader};
use wincimg_registry::text::{TruncatedUtf16, from_utf16};

use super::error::Failure;

/// Size limit, above that of any cluster's lists.
const LARGEST_LIST: u64 = 1024 * 1024 * 1024;

/// Reads a file or stdin as text without a byte order mark, whatever its encoding.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    decode(read(path, LARGEST_LIST)?).map_err(|error| {
        let is_utf16 = error.is::<TruncatedUtf16>();
        let failure = Failure::usage(error.context(format!("cannot read {}", name(path))));
        if is_utf16 {
            failure.hint("write it again, or save it as UTF-8")
        } else {
            failure
        }
    })
}

/// Reads all bytes unchanged.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    read(path, LARGEST_TEXT)
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = source(path, limit).and_then(|mut source| source.read_to_end(&mut bytes));
    read.map_err(|error| unreadable(path, error))?;
    Ok(bytes)
}

/// Error for a file that cannot be read, with the nearest existing one.
fn unreadable(path: &Path, error: io::Error) -> Failure {
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    let failure = Failure::operation(anyhow::Error::new(error));
    let failure = failure.context(format!("cannot read {}", name(path)));
    if is_missing && path.is_symlink() {
        return failure.hint("it is a link to a missing file");
    }
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

/// Text as UTF-8; `PowerShell`'s `>` writes UTF-16 with a mark.
fn decode(mut bytes: Vec<u8>) -> anyhow::Result<String> {
    Ok(match &bytes[..] {
        [0xFF, 0xFE, text @ ..] => from_utf16(text, u16::from_le_bytes)?,
        [0xFE, 0xFF, text @ ..] => from_utf16(text, u16::from_be_bytes)?,
        [0xEF, 0xBB, 0xBF, ..] => String::from_utf8(bytes.split_off(3))?,
        _ => String::from_utf8(bytes)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> String {
        decode(bytes.to_vec()).unwrap()
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
