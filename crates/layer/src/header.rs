//! Tar headers of a layer's entries: a PAX header with Windows' metadata, then a ustar one.
//!
//! The fields are encoded by the `tar` crate; its `Builder` is not used because that copies file
//! content through a small buffer and does not verify its length.

use tar::{EntryType, Header};

use super::content::{EntryContent, LinkTo, Symlink, TarItem};
use super::descriptor::{self, Security};
pub(super) use crate::archive::tar::BLOCK;

/// The largest number that fits the size field of a ustar header, just short of 8 GiB.
const LARGEST_USTAR_SIZE: u64 = 0o777_7777_7777;

const ATTRIBUTE_DIRECTORY: u32 = 0x10;
const ATTRIBUTE_ARCHIVE: u32 = 0x20;

/// Header fields that depend on an entry's content.
struct Form<'a> {
    kind: EntryType,
    mode: u32,
    attributes: u32,
    security: &'a Security,
    target: Option<&'a str>,
}

impl<'a> Form<'a> {
    /// The modes carry the file type as hcsshim and `BuildKit` write it.
    fn from_content(content: &'a EntryContent) -> Self {
        match content {
            EntryContent::Directory => Self {
                kind: EntryType::Directory,
                mode: 0o040_755,
                attributes: ATTRIBUTE_DIRECTORY,
                security: &descriptor::DIRECTORY,
                target: None,
            },
            EntryContent::File(_) | EntryContent::Deletion => Self {
                kind: EntryType::Regular,
                mode: 0o100_644,
                attributes: ATTRIBUTE_ARCHIVE,
                security: &descriptor::FILE,
                target: None,
            },
            EntryContent::Symlink(Symlink { target, to }) => Self {
                kind: EntryType::Symlink,
                mode: 0o120_777,
                attributes: to.attributes(),
                security: match to {
                    LinkTo::File => &descriptor::FILE,
                    LinkTo::Directory => &descriptor::DIRECTORY,
                },
                target: Some(target),
            },
        }
    }
}

/// Replaces `out` with the headers of an entry with `size` bytes of content.
pub(super) fn encode(item: &TarItem, size: u64, timestamp: u64, out: &mut Vec<u8>) {
    let form = Form::from_content(item.content);
    out.clear();
    out.resize(BLOCK, 0);
    pax_records(item, &form, size, timestamp, out);
    let length = out.len() - BLOCK;
    if length == 0 {
        out.clear();
    } else {
        let mut extension = Header::new_ustar();
        extension.set_entry_type(EntryType::XHeader);
        set_name(&mut extension, "PaxHeaders.0");
        extension.set_mode(0o644);
        finish(&mut extension, length as u64, 0);
        out[..BLOCK].copy_from_slice(extension.as_bytes());
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }

    let mut header = Header::new_ustar();
    header.set_entry_type(form.kind);
    set_name(&mut header, &item.name);
    if let Some(target) = form.target {
        fill(&mut header.as_old_mut().linkname, target);
    }
    header.set_mode(form.mode);
    // A reader takes the size from the PAX header where this field cannot hold it.
    let size = if size > LARGEST_USTAR_SIZE { 0 } else { size };
    finish(&mut header, size, timestamp);
    out.extend_from_slice(header.as_bytes());
}

fn pax_records(item: &TarItem, form: &Form, size: u64, timestamp: u64, out: &mut Vec<u8>) {
    // hcsshim only reads the name of a deletion.
    if !matches!(item.content, EntryContent::Deletion) {
        let time = timestamp.to_string();
        record("LIBARCHIVE.creationtime", &time, out);
        let attributes = item.attributes.unwrap_or(form.attributes);
        record("MSWINDOWS.fileattr", &attributes.to_string(), out);
        if item.secured {
            let security = item.security.unwrap_or(form.security);
            record("MSWINDOWS.rawsd", security.base64(), out);
        }
        record("atime", &time, out);
        record("ctime", &time, out);
    }
    if let Some(target) = form.target
        && !fits_ustar(target)
    {
        record("linkpath", target, out);
    }
    if !fits_ustar(&item.name) {
        record("path", &item.name, out);
    }
    if size > LARGEST_USTAR_SIZE {
        record("size", &size.to_string(), out);
    }
}

/// Appends `LENGTH KEY=VALUE\n`, where the length counts its own digits.
fn record(key: &str, value: &str, out: &mut Vec<u8>) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest;
    while rest + digits(length) != length {
        length = rest + digits(length);
    }
    out.extend_from_slice(length.to_string().as_bytes());
    for part in [" ", key, "=", value, "\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn fits_ustar(text: &str) -> bool {
    text.len() <= 100 && text.is_ascii()
}

fn set_name(header: &mut Header, name: &str) {
    fill(&mut header.as_old_mut().name, name);
}

/// Copies as much as fits; readers without PAX see `_` for non-ASCII characters.
fn fill(field: &mut [u8; 100], text: &str) {
    let ascii = text.chars().map(|c| u8::try_from(c).unwrap_or(b'_'));
    for (to, byte) in field.iter_mut().zip(ascii) {
        *to = if byte.is_ascii() { byte } else { b'_' };
    }
}

fn finish(header: &mut Header, size: u64, timestamp: u64) {
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(timestamp);
    header.set_size(size);
    header.set_cksum();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        for (value, expected) in [
            ("", "5 k=\n"),
            ("1234", "9 k=1234\n"),
            ("12345", "11 k=12345\n"),
        ] {
            let mut out = Vec::new();
            record("k", value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        for length in 80..120 {
            let mut out = Vec::new();
            record("key", &"v".repeat(length), &mut out);
            let text = String::from_utf8(out).unwrap();
            let stated: usize = text.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(stated, text.len());
        }
    }

    fn headers(content: &EntryContent, name: &str, size: u64) -> Vec<u8> {
        let item = TarItem {
            name: name.to_owned(),
            content,
            secured: true,
            security: None,
            attributes: None,
        };
        let mut out = Vec::new();
        encode(&item, size, 1_580_000_000, &mut out);
        out
    }

    fn records(headers: &[u8]) -> Vec<String> {
        let length = Header::from_byte_slice(&headers[..BLOCK]).entry_size();
        let body = &headers[BLOCK..BLOCK + usize::try_from(length.unwrap()).unwrap()];
        tar::PaxExtensions::new(body)
            .map(|record| record.unwrap())
            .map(|record| format!("{}={}", record.key().unwrap(), record.value().unwrap()))
            .collect()
    }

    #[test]
    fn a_link_to_a_directory_is_a_reparse_point_and_a_directory() {
        let link = EntryContent::Symlink(Symlink {
            target: "../lib".to_owned(),
            to: LinkTo::Directory,
        });
        let bytes = headers(&link, "Files/l", 0);
        assert!(records(&bytes).contains(&"MSWINDOWS.fileattr=1040".to_owned()));
        let header = Header::from_byte_slice(&bytes[bytes.len() - BLOCK..]);
        assert_eq!(header.entry_type(), EntryType::Symlink);
        assert_eq!(header.link_name_bytes().unwrap().as_ref(), b"../lib");
    }

    #[test]
    fn a_descriptor_of_its_own_takes_the_place_of_the_usual_one() {
        let security = Security::from(b"own".as_slice());
        let item = TarItem {
            name: "Files/d".to_owned(),
            content: &EntryContent::Directory,
            secured: true,
            security: Some(&security),
            attributes: Some(0x2012),
        };
        let mut bytes = Vec::new();
        encode(&item, 0, 0, &mut bytes);
        assert!(records(&bytes).contains(&"MSWINDOWS.rawsd=b3du".to_owned()));
        assert!(records(&bytes).contains(&"MSWINDOWS.fileattr=8210".to_owned()));
        let usual = records(&headers(&EntryContent::Directory, "Files/d", 0));
        assert_eq!(usual.len(), records(&bytes).len());
        assert!(!usual.contains(&"MSWINDOWS.rawsd=b3du".to_owned()));
    }

    #[test]
    fn a_size_of_8_gib_moves_to_the_extension() {
        let file = EntryContent::File(Vec::new().into());
        let largest = headers(&file, "Files/f", LARGEST_USTAR_SIZE);
        assert!(!records(&largest).iter().any(|r| r.starts_with("size=")));
        let bytes = headers(&file, "Files/f", LARGEST_USTAR_SIZE + 1);
        assert!(records(&bytes).contains(&"size=8589934592".to_owned()));
    }

    #[test]
    fn a_deletion_is_one_plain_header() {
        assert_eq!(
            headers(&EntryContent::Deletion, "Files/.wh.a", 0).len(),
            BLOCK
        );
    }
}
