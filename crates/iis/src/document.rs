//! Settings of IIS in documents that people write.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use wincimg_common::document::{Pairs, table};
use wincimg_common::read_from_text;

use super::config::is_value;
use super::text::{Attribute, Name};

read_from_text!(Name);

/// A value of an attribute.
#[derive(Debug)]
pub struct Line(pub String);

/// A value that appcmd takes in quotes.
#[derive(Debug)]
pub struct EntryValue(pub String);

impl FromStr for Line {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(char::is_control) {
            return Err("expected a value on one line");
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for EntryValue {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !is_value(text) {
            return Err("expected a value on one line, without ', which appcmd does not take");
        }
        Ok(Self(text.to_owned()))
    }
}

/// Reads settings by the path of their attribute.
pub fn settings<'de, D>(deserializer: D) -> Result<BTreeMap<Attribute, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let pairs = Pairs::deserialize(deserializer)?.0.into_iter();
    Ok(pairs.map(|(path, Line(value))| (path, value)).collect())
}

/// Reads the variables of a pool.
pub(super) fn environment<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let mut variables = BTreeMap::new();
    table(deserializer, |name: String, EntryValue(value)| {
        if name.is_empty() || name.contains('=') || !is_value(&name) {
            return Err(format!("invalid name of a variable: {name:?}"));
        }
        variables.insert(name, value);
        Ok(())
    })?;
    Ok(variables)
}
