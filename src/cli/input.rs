//! Input files: `-` is stdin, and text may have the encodings of programs on Windows.

use std::io::Read;

use wincimg_common::files::{LARGEST_TEXT, LimitedReader};
use wincimg_registry::text::{TruncatedUtf16, from_utf16};

use crate::cli::prelude::*;

/// Limit on lists of nodes, workloads and images: `kubectl get` prints some 30 KB for a node, and
/// 10 KB for a pod.
const LARGEST_LIST: u64 = 256 << 20;

/// Bytes to read at once.
const CHUNK: usize = 64 * 1024;

/// Reads a file or stdin as text without a byte order mark, whatever its encoding.
pub(super) fn read_text(path: &Path) -> Result<String> {
    let text = decode(read(path, LARGEST_LIST)?);
    text.map_err(|failure| failure.context(format!("cannot read {}", name(path))))
}

/// Reads all bytes unchanged.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    read(path, LARGEST_TEXT)
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let read = source(path, limit).and_then(read_whole);
    read.map_err(|error| unreadable(path, error))
}

/// Reads a source of unknown size. `read_to_end` doubles the buffer and clears what it has not
/// filled: up to three times the content.
fn read_whole(mut source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match source.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(length) => {
                if bytes.capacity() - bytes.len() < length {
                    bytes.reserve_exact(length.max(bytes.len() / 8));
                }
                bytes.extend_from_slice(&chunk[..length]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Error for a file that cannot be read, with the nearest existing one.
fn unreadable(path: &Path, error: io::Error) -> Failure {
    let failure = Failure::from(error).context(format!("cannot read {}", name(path)));
    failure.hint_if(files::named_path_hint(path).filter(|_| !is_stdin(path)))
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

pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Text as UTF-8; `PowerShell`'s `>` writes UTF-16 with a mark.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String> {
    let truncated =
        |error: TruncatedUtf16| Failure::usage(error).hint("write it again, or save it as UTF-8");
    Ok(match &bytes[..] {
        [0xFF, 0xFE, text @ ..] => from_utf16(text, u16::from_le_bytes).map_err(truncated)?,
        [0xFE, 0xFF, text @ ..] => from_utf16(text, u16::from_be_bytes).map_err(truncated)?,
        _ => files::text_of(files::without_mark(bytes))?,
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
    fn a_buffer_is_not_doubled() {
        let length = 9 << 20;
        let bytes = read_whole(io::repeat(b'x').take(length)).unwrap();
        assert_eq!(bytes.len() as u64, length);
        assert!(bytes.capacity() < bytes.len() * 5 / 4);
        let endless = LimitedReader::new(io::repeat(0), 1000);
        assert!(read_whole(endless).is_err());
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
