//! Records of keys and files in the tables.

use wincimg_registry::{DataType, RegistryData};
use wincimg_windows::base_contents::{FileDigest, FileKind};

use super::error::FactsError;
use super::fields::{Fields, put_bytes, put_number};

/// A key, with the number of its descriptor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyRecord {
    pub(super) name: String,
    pub(super) class: Option<String>,
    pub(super) is_link: bool,
    /// True if its values are left out.
    pub(super) is_alone: bool,
    pub(super) descriptor: u32,
    pub(super) values: Vec<(String, RegistryData)>,
}

/// A file, with the number of its descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileRecord {
    pub(super) name: String,
    pub(super) kind: FileKind<FileDigest>,
    pub(super) attributes: u32,
    pub(super) descriptor: Option<u32>,
    pub(super) target: Option<String>,
}

/// Flag of a key that is a link.
pub(super) const LINK: u8 = 1;
const CLASS: u8 = 2;
/// Flag of a key whose values are unknown.
pub(super) const WITHOUT_VALUES: u8 = 4;

/// Starts a key's record; its values follow.
pub(super) fn put_key(
    out: &mut Vec<u8>,
    flags: u8,
    name: &str,
    class: Option<&str>,
    descriptor: u32,
) {
    out.push(flags | class.map_or(0, |_| CLASS));
    put_bytes(out, name.as_bytes());
    if let Some(class) = class {
        put_bytes(out, class.as_bytes());
    }
    put_number(out, descriptor.into());
}

pub(super) fn put_value(out: &mut Vec<u8>, name: &str, kind: DataType, data: &[u8]) {
    put_bytes(out, name.as_bytes());
    put_number(out, kind.0.into());
    put_bytes(out, data);
}

impl KeyRecord {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, FactsError> {
        let mut fields = Fields::new(bytes);
        let flags = fields.byte()?;
        let name = fields.text()?.to_owned();
        let class = match flags & CLASS {
            0 => None,
            _ => Some(fields.text()?.to_owned()),
        };
        let descriptor = fields.number32()?;
        let mut values = Vec::new();
        while !fields.is_empty() {
            let (name, kind) = (fields.text()?, DataType(fields.number32()?));
            values.push((name.to_owned(), RegistryData::new(kind, fields.bytes()?)));
        }
        Ok(Self {
            name,
            class,
            is_link: flags & LINK != 0,
            is_alone: flags & WITHOUT_VALUES != 0,
            descriptor,
            values,
        })
    }
}

impl FileRecord {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let kind = match self.kind {
            FileKind::Folder => 0,
            FileKind::File(_) => 1,
            FileKind::Link(()) => 2,
        };
        out.push(kind);
        put_bytes(out, self.name.as_bytes());
        put_number(out, self.attributes.into());
        put_number(
            out,
            self.descriptor.map_or(0, |number| u64::from(number) + 1),
        );
        match self.kind {
            FileKind::Folder => {}
            FileKind::File(FileDigest { size, sha256 }) => {
                put_number(out, size);
                out.extend(sha256);
            }
            FileKind::Link(()) => {
                put_bytes(out, self.target.as_deref().unwrap_or_default().as_bytes());
            }
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, FactsError> {
        let mut fields = Fields::new(bytes);
        let kind = fields.byte()?;
        let name = fields.text()?.to_owned();
        let attributes = fields.number32()?;
        let descriptor = fields.number32()?.checked_sub(1);
        let mut target = None;
        let kind = match kind {
            0 => FileKind::Folder,
            1 => FileKind::File(FileDigest {
                size: fields.number()?,
                sha256: fields.array()?,
            }),
            2 => {
                target = Some(fields.text()?.to_owned()).filter(|target| !target.is_empty());
                FileKind::Link(())
            }
            _ => return Err(FactsError::Damaged("a file is of an unknown kind")),
        };
        if !fields.is_empty() {
            return Err(FactsError::Damaged("a record is too long"));
        }
        Ok(Self {
            name,
            kind,
            attributes,
            descriptor,
            target,
        })
    }
}
