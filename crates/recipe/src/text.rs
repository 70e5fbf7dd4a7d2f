//! The values of a recipe, with their positions in its file, and the variables in their texts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use wincimg_common::diagnose::closest_match;
use wincimg_common::document;
use wincimg_common::untrusted::QuotedText;

use super::toml_error::TomlError;

/// A value of a TOML file and its position; in a recipe, with variables filled in.
#[derive(Debug, Clone)]
pub struct Field<T> {
    /// The value.
    pub value: T,
    /// Start in the file, in bytes.
    pub offset: usize,
}

/// A text and its position.
pub(super) type Text = Field<String>;

/// One text, or a list.
pub(super) type Texts = document::Texts<Text>;

/// The values without their positions.
pub(super) fn plain<T: Clone>(fields: &[Field<T>]) -> Vec<T> {
    fields.iter().map(|field| field.value.clone()).collect()
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<document::Text<T>>::deserialize(deserializer)?;
        Ok(Self {
            offset: spanned.span().start,
            value: spanned.into_inner().0,
        })
    }
}

impl<T> JsonSchema for Field<T> {
    fn schema_name() -> Cow<'static, str> {
        document::Text::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        document::Text::<T>::json_schema(generator)
    }
}

/// Calls `fill` with the position of each text that may have variables: all values, and the
/// accounts that are keys of `grant`.
pub(super) fn fill_in<'i>(
    table: &mut DeTable<'i>,
    fill: &mut impl FnMut(usize, &mut DeString<'i>) -> Result<(), TomlError>,
) -> Result<(), TomlError> {
    for (key, value) in table.iter_mut() {
        if let (DeValue::Table(grant), "grant") = (value.get_mut(), &**key.get_ref()) {
            for (mut account, rights) in std::mem::take(grant) {
                let offset = account.span().start;
                if account.get_ref().contains("${") {
                    fill(offset, account.get_mut())?;
                }
                if grant.contains_key(&account) {
                    let problem = format!("duplicate {}", account.get_ref());
                    return Err(TomlError::at(offset, problem));
                }
                grant.insert(account, rights);
            }
        }
        fill_in_value(value, fill)?;
    }
    Ok(())
}

fn fill_in_value<'i>(
    value: &mut Spanned<DeValue<'i>>,
    fill: &mut impl FnMut(usize, &mut DeString<'i>) -> Result<(), TomlError>,
) -> Result<(), TomlError> {
    let offset = value.span().start;
    match value.get_mut() {
        DeValue::String(text) if text.contains("${") => fill(offset, text),
        DeValue::Array(items) => items
            .iter_mut()
            .try_for_each(|item| fill_in_value(item, fill)),
        DeValue::Table(table) => fill_in(table, fill),
        _ => Ok(()),
    }
}

/// Values of variables.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(BTreeMap<String, String>);

impl Values {
    pub(super) fn insert(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// Replaces every `${name}`; `$${` stands for a plain `${`.
    pub(super) fn expand(&self, text: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, opening) = rest.split_at(start);
            if let Some(literal) = before.strip_suffix('$') {
                filled.push_str(literal);
                filled.push_str("${");
                rest = &opening[2..];
                continue;
            }
            filled.push_str(before);
            let Some((name, after)) = opening[2..].split_once('}') else {
                return Err(format!("{} has a ${{ without its }}", QuotedText(text)));
            };
            match self.0.get(name) {
                Some(value) => filled.push_str(value),
                None => {
                    let meant = closest_match(name, self.0.keys().map(String::as_str))
                        .map(|near| format!(": did you mean {near:?}?"))
                        .unwrap_or_default();
                    return Err(format!(
                        "unknown variable {name:?}{meant}; write $${{ for a plain ${{"
                    ));
                }
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> Result<String, String> {
        let mut values = Values::default();
        values.insert("port", "8080".to_owned());
        values.insert("base.name", "x".to_owned());
        values.expand(text)
    }

    #[test]
    fn variables_are_filled_in() {
        assert_eq!(fill("a ${port} b ${base.name}").unwrap(), "a 8080 b x");
        assert_eq!(fill("$env:PATH and $port").unwrap(), "$env:PATH and $port");
        assert_eq!(fill("$${port} ${port}").unwrap(), "${port} 8080");
    }

    #[test]
    fn unknown_and_unfinished_variables_are_errors() {
        assert_eq!(
            fill("${prot}").unwrap_err(),
            "unknown variable \"prot\": did you mean \"port\"?; write $${ for a plain ${"
        );
        assert!(fill("x ${port").is_err());
    }

    #[test]
    fn a_value_is_not_filled_in_again() {
        let mut values = Values::default();
        values.insert("a", "${b}".to_owned());
        assert_eq!(values.expand("${a}").unwrap(), "${b}");
    }
}
