//! The data of a registry value: a type number and bytes, as Windows stores it, and the readable
//! typed forms.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// The type number of a value's data. Windows allows any number; these are the ones with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataType(pub u32);

impl DataType {
    /// No type.
    pub const NONE: Self = Self(0);
    /// A string.
    pub const SZ: Self = Self(1);
    /// A string with `%VARIABLES%`.
    pub const EXPAND_SZ: Self = Self(2);
    /// Bytes.
    pub const BINARY: Self = Self(3);
    /// A 32-bit number.
    pub const DWORD: Self = Self(4);
    /// A 32-bit number, the most significant byte first.
    pub const DWORD_BIG_ENDIAN: Self = Self(5);
    /// The target of a symbolic link between keys.
    pub const LINK: Self = Self(6);
    /// A list of strings.
    pub const MULTI_SZ: Self = Self(7);
    /// A 64-bit number.
    pub const QWORD: Self = Self(11);

    const NAMES: [&'static str; 12] = [
        "none",
        "sz",
        "expand_sz",
        "binary",
        "dword",
        "dword_big_endian",
        "link",
        "multi_sz",
        "resource_list",
        "full_resource_descriptor",
        "resource_requirements_list",
        "qword",
    ];

    /// The name without its prefix, in lower case (`expand_sz`), where the type has one.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.get(usize::try_from(self.0).ok()?).copied()
    }

    /// Reads a name in either spelling, `expand_sz` or `REG_EXPAND_SZ`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let bare = name.strip_prefix("reg_").unwrap_or(&name);
        (0..)
            .zip(Self::NAMES)
            .find_map(|(number, known)| (known == bare).then_some(Self(number)))
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "REG_{}", name.to_ascii_uppercase()),
            None => write!(f, "type {:#x}", self.0),
        }
    }
}

/// The data of a value, with its type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegistryData {
    kind: DataType,
    bytes: Vec<u8>,
}

/// The data of a value, decoded by its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypedData<'a> {
    /// A string, an expandable string or a link's target, without the terminating null.
    Text(String),
    /// The strings of a list.
    List(Vec<String>),
    /// A number of 32 bits, of either byte order.
    Dword(u32),
    /// A number of 64 bits.
    Qword(u64),
    /// Bytes: another type, or data that is invalid for its type.
    Bytes(&'a [u8]),
}

/// A list of strings that the registry cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("string {position} of the list is empty or contains a null, which would end the list")]
pub struct ListError {
    position: usize,
}

impl RegistryData {
    /// Creates data of any type from its bytes.
    pub fn new(kind: DataType, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            bytes: bytes.into(),
        }
    }

    /// A string (`REG_SZ`).
    pub fn sz(text: &str) -> Self {
        Self::new(DataType::SZ, terminated(text))
    }

    /// A string with variables (`REG_EXPAND_SZ`).
    pub fn expand_sz(text: &str) -> Self {
        Self::new(DataType::EXPAND_SZ, terminated(text))
    }

    /// Bytes (`REG_BINARY`).
    pub fn binary(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(DataType::BINARY, bytes)
    }

    /// A 32-bit number (`REG_DWORD`).
    pub fn dword(number: u32) -> Self {
        Self::new(DataType::DWORD, number.to_le_bytes())
    }

    /// A 32-bit number, most significant byte first (`REG_DWORD_BIG_ENDIAN`).
    pub fn dword_big_endian(number: u32) -> Self {
        Self::new(DataType::DWORD_BIG_ENDIAN, number.to_be_bytes())
    }

    /// A 64-bit number (`REG_QWORD`).
    pub fn qword(number: u64) -> Self {
        Self::new(DataType::QWORD, number.to_le_bytes())
    }

    /// The target of a link between keys (`REG_LINK`), which has no terminating null.
    pub fn link(target: &str) -> Self {
        Self::new(DataType::LINK, utf16(target).collect::<Vec<u8>>())
    }

    /// A list of strings (`REG_MULTI_SZ`).
    pub fn multi_sz<S: AsRef<str>>(texts: &[S]) -> Result<Self, ListError> {
        let unfit = |text: &S| text.as_ref().is_empty() || text.as_ref().contains('\0');
        if let Some(at) = texts.iter().position(unfit) {
            return Err(ListError { position: at + 1 });
        }
        let mut bytes: Vec<u8> = texts
            .iter()
            .flat_map(|text| terminated(text.as_ref()))
            .collect();
        bytes.extend([0, 0]);
        Ok(Self::new(DataType::MULTI_SZ, bytes))
    }

    /// The type of the data.
    pub fn kind(&self) -> DataType {
        self.kind
    }

    /// The bytes as Windows stores them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Decodes the data by its type. Data that the typed form cannot represent, such as a string
    /// without its null or a number of three bytes, stays bytes.
    pub fn typed(&self) -> TypedData<'_> {
        typed(self.kind, &self.bytes).unwrap_or(TypedData::Bytes(&self.bytes))
    }

    /// The text of a string, an expandable string or a link.
    pub fn text(&self) -> Option<String> {
        match self.typed() {
            TypedData::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number of 32 bits, of either byte order.
    pub fn number(&self) -> Option<u32> {
        match self.typed() {
            TypedData::Dword(number) => Some(number),
            _ => None,
        }
    }
}

fn typed(kind: DataType, bytes: &[u8]) -> Option<TypedData<'static>> {
    Some(match kind {
        DataType::SZ | DataType::EXPAND_SZ => {
            let text = from_utf16(bytes)?;
            let text = text.strip_suffix('\0')?;
            if text.contains('\0') {
                return None;
            }
            TypedData::Text(text.to_owned())
        }
        DataType::LINK => TypedData::Text(from_utf16(bytes).filter(|text| !text.contains('\0'))?),
        DataType::MULTI_SZ => {
            let text = from_utf16(bytes)?;
            let strings = text.strip_suffix('\0')?;
            if strings.is_empty() {
                return Some(TypedData::List(Vec::new()));
            }
            let list: Vec<String> = strings
                .strip_suffix('\0')?
                .split('\0')
                .map(str::to_owned)
                .collect();
            if list.iter().any(String::is_empty) {
                return None;
            }
            TypedData::List(list)
        }
        DataType::DWORD => TypedData::Dword(u32::from_le_bytes(bytes.try_into().ok()?)),
        DataType::DWORD_BIG_ENDIAN => TypedData::Dword(u32::from_be_bytes(bytes.try_into().ok()?)),
        DataType::QWORD => TypedData::Qword(u64::from_le_bytes(bytes.try_into().ok()?)),
        _ => return None,
    })
}

fn utf16(text: &str) -> impl Iterator<Item = u8> + '_ {
    text.encode_utf16().flat_map(u16::to_le_bytes)
}

fn terminated(text: &str) -> Vec<u8> {
    utf16(text).chain([0, 0]).collect()
}

/// Decodes strictly: half a code unit or half a surrogate pair is not text.
fn from_utf16(bytes: &[u8]) -> Option<String> {
    crate::text::from_utf16(bytes, u16::from_le_bytes).ok()
}

impl fmt::Display for RegistryData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.typed() {
            TypedData::Text(text) => write!(f, "{} {text:?}", self.kind),
            TypedData::List(list) => write!(f, "{} {list:?}", self.kind),
            TypedData::Dword(number) => write!(f, "{} {number}", self.kind),
            TypedData::Qword(number) => write!(f, "{} {number}", self.kind),
            TypedData::Bytes(bytes) => write!(f, "{} {}", self.kind, hex::encode(bytes)),
        }
    }
}

/// `{"type": "dword", "value": 4}`; data that is invalid for its type, or of a type without a
/// readable form, has `"bytes"` in hexadecimal instead of the value.
impl Serialize for RegistryData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match self.kind.name() {
            Some(name) => map.serialize_entry("type", name)?,
            None => map.serialize_entry("type", &format!("{:#x}", self.kind.0))?,
        }
        match self.typed() {
            TypedData::Text(text) => map.serialize_entry("value", &text)?,
            TypedData::List(list) => map.serialize_entry("value", &list)?,
            TypedData::Dword(number) => map.serialize_entry("value", &number)?,
            TypedData::Qword(number) => map.serialize_entry("value", &number)?,
            TypedData::Bytes(bytes) => map.serialize_entry("bytes", &hex::encode(bytes))?,
        }
        map.end()
    }
}
