//! Values of PowerShell.

use std::sync::Arc;

use wincimg_common::digest::Algorithm;
use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::ast::Statement;

/// Maximum length of a string.
const TEXT: usize = 1 << 18;

/// Maximum number of values in a list, with those nested in it.
const SIZE: usize = 1000;

/// Creates a string value within the limit.
pub(super) fn limited_text(text: String) -> Result<PsValue> {
    if text.len() > TEXT {
        return error::unclear("string too long");
    }
    Ok(PsValue::Text(text))
}

/// What a command gets through its pipeline; `None` at the beginning.
pub(super) type Input = Option<PsValue>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PsValue {
    Null,
    Text(String),
    Number(i64),
    Bool(bool),
    List(Vec<PsValue>),
    /// Hashtable; keys are in lower case, and those of `$Matches` may be numbers. Variables that
    /// hold the same one share the pointer.
    Table(Arc<Vec<(String, PsValue)>>),
    /// Object of which only these members are known.
    Object(Arc<Vec<(String, PsValue)>>),
    /// Type, by its name in lower case without `system.`.
    Type(String),
    Block(Vec<Statement>),
    WebClient,
    /// Time span, as PowerShell converts it to a string.
    TimeSpan(String),
    /// A program that `Start-Process -PassThru` started, by its exit code.
    Process(i32),
    FileHash(ImagePath, Algorithm),
    Digest(ImagePath, Algorithm),
    /// Comparison of a file's digest, true for equal or for not equal.
    Matches {
        path: ImagePath,
        algorithm: Algorithm,
        digest: String,
        if_equal: bool,
    },
    /// File or folder.
    Item(ImagePath),
    /// File or folder of a listing, which Windows PowerShell converts to its name or its path.
    Listed(ImagePath),
    /// Value that is known only on Windows; using it is an error.
    Opaque(ScriptError),
}

impl PsValue {
    pub(super) fn text_value(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number of things.
    pub(super) fn count(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// Error for the use of what the process of `Start-Process` says about itself.
    pub(super) fn process_used() -> ScriptError {
        ScriptError::windows("the process of Start-Process is used")
    }

    pub(super) fn opaque(why: impl Into<String>) -> Self {
        Self::Opaque(ScriptError::windows(why))
    }

    /// Refuses a text such as `007` or `1kb`, which an argument keeps beside the number that it is:
    /// which of them counts depends on its use.
    pub(super) fn check_literal(&self) -> Result<()> {
        match self {
            Self::Text(text) if is_inexact_number(text) => {
                error::unclear(format!("whether {text} is a number or a text is unclear"))
            }
            _ => Ok(()),
        }
    }

    /// Converts the value to a string.
    pub(super) fn text(&self) -> Result<String> {
        match self {
            Self::Null => Ok(String::new()),
            Self::Text(text) | Self::TimeSpan(text) => Ok(text.clone()),
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
            Self::Opaque(error) => Err(error.clone()),
            Self::Process(_) => Err(Self::process_used()),
            Self::Digest(..) | Self::FileHash(..) | Self::Matches { .. } => {
                error::unclear("a file digest can only be compared")
            }
            Self::Table(_) | Self::Object(_) | Self::Type(_) | Self::Block(_) | Self::WebClient => {
                error::unclear("using an object as a string is not supported")
            }
        }
    }

    /// Converts a list or value to strings.
    pub(super) fn texts(&self) -> Result<Vec<String>> {
        match self {
            Self::List(items) => items.iter().map(Self::text).collect(),
            Self::Null => Ok(Vec::new()),
            one => Ok(vec![one.text()?]),
        }
    }

    pub(super) fn piped_paths(&self) -> Result<Vec<String>> {
        match self {
            Self::List(items) if items.contains(&Self::Null) => {
                error::unclear("the pipeline has $null as a path")
            }
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

    /// Returns true if a pipeline has no items of it.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::List(items) => items.is_empty(),
            _ => false,
        }
    }

    pub(super) fn items(self) -> Vec<Self> {
        match self {
            Self::List(items) => items,
            Self::Null => Vec::new(),
            one => vec![one],
        }
    }

    /// Converts several values to one.
    pub(super) fn from_items(mut items: Vec<Self>) -> Self {
        match items.len() {
            0 => Self::Null,
            1 => items.remove(0),
            _ => Self::List(items),
        }
    }

    /// Converts the value to a boolean; a comparison of digests has none.
    pub(super) fn to_bool(&self) -> Result<bool> {
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
                return error::unclear("a condition on a file digest may only fail the build");
            }
            Self::Opaque(error) => return Err(error.clone()),
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

    /// Returns true if the value, or one inside it, passes a test.
    pub(super) fn has(&self, test: &dyn Fn(&Self) -> bool) -> bool {
        test(self) || self.inner().into_iter().any(|item| item.has(test))
    }

    fn inner(&self) -> Vec<&Self> {
        match self {
            Self::List(items) => items.iter().collect(),
            Self::Table(entries) | Self::Object(entries) => {
                entries.iter().map(|(_, item)| item).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Number of nested values, counted only up to the limit.
    fn size(&self) -> usize {
        let add = |size: usize, item: &Self| Some(size + item.size()).filter(|it| *it <= SIZE);
        self.inner()
            .into_iter()
            .try_fold(1, add)
            .unwrap_or(SIZE + 1)
    }

    /// Number of bytes in its texts.
    pub(super) fn text_length(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            _ => self.inner().into_iter().map(Self::text_length).sum(),
        }
    }

    /// Refuses a value above the limit.
    pub(super) fn check_size(self) -> Result<Self> {
        if self.size() > SIZE {
            return error::unclear("list too long");
        }
        Ok(self)
    }

    pub(super) fn check_known(&self) -> Result<()> {
        match self {
            Self::Opaque(error) => Err(error.clone()),
            Self::List(items) => items.iter().try_for_each(Self::check_known),
            _ => Ok(()),
        }
    }
}

/// The integer that PowerShell converts a text to, or `None` if it does not.
pub(super) fn integer(text: &str) -> Result<Option<i64>> {
    let trimmed = text.trim();
    let hexadecimal = trimmed.strip_prefix("0x").or(trimmed.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => i64::from_str_radix(digits, 16)
            .ok()
            .filter(|it| *it < 1 << 31),
        None if text.is_empty() => Some(0),
        None => trimmed.parse().ok().or_else(|| {
            let (whole, part) = trimmed.split_once('.')?;
            let is_whole = !part.is_empty() && part.bytes().all(|digit| digit == b'0');
            whole.parse().ok().filter(|_| is_whole)
        }),
    };
    // Other numbers are rounded, or have units.
    if number.is_none() && !trimmed.starts_with(char::is_alphabetic) {
        return error::unclear(format!(
            "whether {text:?} converts to an integer is unclear"
        ));
    }
    Ok(number)
}

/// Returns true if a word is a number of PowerShell that is written differently as a text.
fn is_inexact_number(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let digits = lower.trim_start_matches(['+', '-']);
    if digits.strip_prefix("0x").is_some_and(|hex| {
        let hex = hex.trim_end_matches(['l', 'k', 'm', 'g', 't', 'p', 'b']);
        hex.bytes().all(|digit| digit.is_ascii_hexdigit())
    }) {
        return true;
    }
    let number = ["kb", "mb", "gb", "tb", "pb", "l", "d"]
        .iter()
        .find_map(|unit| digits.strip_suffix(unit))
        .unwrap_or(digits);
    let is_number = number.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && number.parse::<f64>().is_ok();
    // The number as it is written again.
    let is_exact = lower
        .parse::<i64>()
        .is_ok_and(|value| value.to_string() == lower)
        || lower.split_once('.').is_some_and(|(whole, part)| {
            let is_plain = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
            let whole = whole.strip_prefix('-').unwrap_or(whole);
            let starts = whole == "0" || !whole.is_empty() && !whole.starts_with('0');
            starts
                && is_plain(whole)
                && is_plain(part)
                && !part.is_empty()
                && !part.ends_with('0')
                && lower.len() < 15
        });
    is_number && !is_exact
}
