//! Conflicts that keep an image's layers from being moved to another base.

use std::fmt;

use serde::{Serialize, Serializer};
use wincimg_common::Named;
use wincimg_oci::document::Digest;

/// A conflict of a layer with the new base, or a possible one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UpdateConflict {
    /// The layer, counted from 1 at the bottom of the image.
    pub layer: usize,
    /// Digest of the layer.
    pub digest: Digest,
    /// The instruction that made it, from the image's history.
    pub instruction: Option<String>,
    /// The file or key.
    pub place: String,
    /// The conflict.
    #[serde(flatten)]
    pub conflict: Conflict,
    /// Bases whose contents would decide it, and are not known.
    #[serde(skip)]
    pub unknown_bases: Vec<String>,
}

/// Kind of a conflict. Its name is stable.
#[derive(Debug, Clone, PartialEq, Eq, Named)]
#[named(rename_all = "kebab-case")]
pub enum Conflict {
    /// The component store, or another place where only servicing writes.
    Servicing,
    /// A hive of Windows as a file.
    HiveFile,
    /// It differs between the bases.
    Changed,
    /// Only the old base has it.
    Gone,
    /// Only the new base has it.
    #[named(rename = "new-in-base")]
    Came,
    /// Content below it, which the layer hides, differs between the bases.
    ChangedBelow(String),
    /// The layer repeats rights that the new base changed.
    Rights,
    /// It is a copy of a file of the old base, which servicing changed.
    Copied(String),
    /// It is a file of Windows, of that version, which the old base does not have.
    OfWindows(String),
    /// A value differs between the bases.
    Value(String),
    /// It is not known whether the bases have it.
    NotKnown(String),
    /// It cannot be compared.
    #[named(rename = "cannot-compare")]
    Strange(String),
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Servicing => f.write_str("only Windows servicing writes there"),
            Self::HiveFile => f.write_str("it is a hive of the base, which layers change under \
                                           Hives"),
            Self::Changed => f.write_str("servicing changed it, and the layer would hide the change"),
            Self::Gone => f.write_str("the old base has it, and the new one does not"),
            Self::Came => f.write_str("the new base adds it, and the layer would hide it"),
            Self::ChangedBelow(path) => write!(
                f,
                "the layer hides what is below it, and {path} is not the same in both bases"
            ),
            Self::Rights => f.write_str(
                "its rights differ between the bases, and the layer would set them to others than the \
                 new base's",
            ),
            Self::Copied(path) => write!(
                f,
                "it is a copy of the old base's {path}, which servicing changed: a build takes the \
                 new one"
            ),
            Self::OfWindows(version) => write!(
                f,
                "it is a file of Windows {version}, which servicing changes: a build takes it from \
                 an image that has the updates"
            ),
            Self::Value(name) if name.is_empty() => {
                f.write_str("its default value is not the same in both bases")
            }
            Self::Value(name) => write!(f, "its value {name:?} is not the same in both bases"),
            Self::NotKnown(what) | Self::Strange(what) => f.write_str(what),
        }
    }
}

impl Serialize for Conflict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;

        let mut fields = serializer.serialize_struct("Conflict", 2)?;
        fields.serialize_field("conflict", self.name())?;
        fields.serialize_field("reason", &self.to_string())?;
        fields.end()
    }
}
