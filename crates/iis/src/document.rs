//! Settings of IIS in documents that people write.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use wincimg_common::document::{Pairs, table};
use wincimg_common::read_from_text;

use super::change::entry_named;
use super::config::{APP_POOLS, Schema, SectionPath};
use super::text::{Attribute, Name};

read_from_text!(Name);

/// A value of an attribute.
#[derive(Debug)]
pub struct Line(pub String);

impl FromStr for Line {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(char::is_control) {
            return Err("expected a value on one line");
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

/// Reads settings of an application pool. Values that no IIS accepts are rejected in their place;
/// the base's schema is read later.
pub fn pool_settings<'de, D>(deserializer: D) -> Result<BTreeMap<Attribute, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let settings = settings(deserializer)?;
    let section = SectionPath::of(APP_POOLS);
    for (path, value) in &settings {
        // The label of IIS Manager; the schema takes any text.
        if path.as_str() == "managedRuntimeVersion" && value.eq_ignore_ascii_case("No Managed Code")
        {
            return Err(D::Error::custom(format_args!(
                "invalid {path} {value:?}: expected \"\" for no managed code"
            )));
        }
        let (element, attribute) = entry_named("pool").dotted(path.as_str());
        let Ok(schema) = Schema::builtin().walk(&section, element.steps()) else {
            continue;
        };
        let checked = schema.attribute(attribute).check(value);
        checked.map_err(|expected| {
            D::Error::custom(format_args!("invalid {path} {value:?}: {expected}"))
        })?;
    }
    Ok(settings)
}

/// Reads the variables of a pool.
pub(super) fn environment<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let mut variables = BTreeMap::new();
    table(deserializer, |name: String, Line(value)| {
        if name.is_empty() || name.contains(|c: char| c == '=' || c.is_control()) {
            return Err(format!("invalid name of a variable: {name:?}"));
        }
        variables.insert(name, value);
        Ok(())
    })?;
    Ok(variables)
}
