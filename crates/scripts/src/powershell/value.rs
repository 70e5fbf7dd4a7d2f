//! What PowerShell's expressions come to.

use wincimg_windows::path::ImagePath;

use super::super::error::ScriptError;
use super::super::image::Algorithm;
use super::ast::Statement;

/// How long a text may grow; more is a loop that nobody wrote for an image.
const TEXT: usize = 1 << 18;

/// How many values may hang together.
const SIZE: usize = 1000;

/// A text that something was put together from.
pub(super) fn limited_text(text: String) -> Result<PsValue, ScriptError> {
    if text.len() > TEXT {
        return Err(ScriptError::unclear("string too long"));
    }
    Ok(PsValue::Text(text))
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PsValue {
    Null,
    Text(String),
    Number(i64),
    Bool(bool),
    List(Vec<PsValue>),
    Table(Vec<(String, PsValue)>),
    /// A type, by its name in small letters and without `system.`.
    Type(String),
    Block(Vec<Statement>),
    /// `System.Net.WebClient`
    WebClient,
    /// What `Get-FileHash` gives.
    FileHash(ImagePath, Algorithm),
    /// The digits of a file's digest.
    Digest(ImagePath, Algorithm),
    /// True if a file has a digest: true if it has, or if it has not.
    Matches {
        path: ImagePath,
        algorithm: Algorithm,
        digest: String,
        if_equal: bool,
    },
    /// A file or folder.
    Item(ImagePath),
    /// A file or folder of a list, whose text Windows PowerShell makes of its name or of its path.
    Listed(ImagePath),
    /// Something that only Windows can tell; using it is trouble, having it is not.
    Opaque(ScriptError),
}

impl PsValue {
    pub(super) fn text_value(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn opaque(why: impl Into<String>) -> Self {
        Self::Opaque(ScriptError::windows(why))
    }

    /// The value as a text.
    pub(super) fn text(&self) -> Result<String, ScriptError> {
        match self {
            Self::Null => Ok(String::new()),
            Self::Text(text) => Ok(text.clone()),
            Self::Number(number) => Ok(number.to_string()),
            Self::Bool(true) => Ok("True".to_owned()),
            Self::Bool(false) => Ok("False".to_owned()),
            Self::List(items) => {
                let texts: Vec<String> = items.iter().map(Self::text).collect::<Result<_, _>>()?;
                Ok(texts.join(" "))
            }
            Self::Item(path) => Ok(path.to_string()),
            Self::Listed(path) => Err(ScriptError::unclear(format!(
                "whether {path} converts to its name or its path depends on how it was listed"
            ))
            .help("append .FullName or .Name")),
            Self::Opaque(trouble) => Err(trouble.clone()),
            Self::Digest(..) | Self::FileHash(..) | Self::Matches { .. } => {
                Err(ScriptError::unclear("a file digest can only be compared"))
            }
            Self::Table(_) | Self::Type(_) | Self::Block(_) | Self::WebClient => Err(
                ScriptError::unclear("using an object as a string is not supported"),
            ),
        }
    }

    /// The texts that a list or a value comes to.
    pub(super) fn texts(&self) -> Result<Vec<String>, ScriptError> {
        match self {
            Self::List(items) => items.iter().map(Self::text).collect(),
            Self::Null => Ok(Vec::new()),
            one => Ok(vec![one.text()?]),
        }
    }

    /// The paths of what comes through a pipe.
    pub(super) fn piped_paths(&self) -> Result<Vec<String>, ScriptError> {
        match self {
            Self::List(items) => {
                let paths: Vec<Vec<String>> = items
                    .iter()
                    .map(Self::piped_paths)
                    .collect::<Result<_, _>>()?;
                Ok(paths.concat())
            }
            Self::Listed(path) => Ok(vec![path.to_string()]),
            other => other.texts(),
        }
    }

    pub(super) fn items(self) -> Vec<Self> {
        match self {
            Self::List(items) => items,
            Self::Null => Vec::new(),
            one => vec![one],
        }
    }

    /// Several values as one.
    pub(super) fn from_items(mut items: Vec<Self>) -> Self {
        match items.len() {
            0 => Self::Null,
            1 => items.remove(0),
            _ => Self::List(items),
        }
    }

    /// Returns true if PowerShell takes it for true; a comparison of digests is neither.
    pub(super) fn to_bool(&self) -> Result<bool, ScriptError> {
        Ok(match self {
            Self::Null => false,
            Self::Text(text) => !text.is_empty(),
            Self::Number(number) => *number != 0,
            Self::Bool(value) => *value,
            Self::List(items) => match items.as_slice() {
                [] => false,
                [one] => one.to_bool()?,
                _ => true,
            },
            Self::Matches { .. } => {
                return Err(ScriptError::unclear(
                    "a condition on a file digest may only fail the build",
                ));
            }
            Self::Opaque(trouble) => return Err(trouble.clone()),
            _ => true,
        })
    }

    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    /// How many values hang together in it, counted no further than matters.
    fn size(&self) -> usize {
        match self {
            Self::List(items) => items
                .iter()
                .try_fold(1, |size, item| {
                    Some(size + item.size()).filter(|size| *size <= SIZE)
                })
                .unwrap_or(SIZE + 1),
            Self::Table(entries) => entries
                .iter()
                .try_fold(1, |size, (_, item)| {
                    Some(size + item.size()).filter(|size| *size <= SIZE)
                })
                .unwrap_or(SIZE + 1),
            _ => 1,
        }
    }

    /// Refuses what has grown too large to be kept.
    pub(super) fn check_size(self) -> Result<Self, ScriptError> {
        if self.size() > SIZE {
            return Err(ScriptError::unclear("list too long"));
        }
        Ok(self)
    }

    pub(super) fn is_known(&self) -> Result<(), ScriptError> {
        match self {
            Self::Opaque(trouble) => Err(trouble.clone()),
            Self::List(items) => items.iter().try_for_each(Self::is_known),
            _ => Ok(()),
        }
    }
}
