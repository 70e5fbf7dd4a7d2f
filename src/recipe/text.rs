//! The texts of a recipe: where they stand in its file, and the variables in them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer};
use toml::Spanned;

/// A scalar of the recipe's file, kept as text until its variables are filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) value: String,
    /// Where it begins in the file, in bytes.
    pub(super) offset: usize,
}

struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a whole number, true or false")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Scalar, E> {
                Ok(Scalar(flag.to_string()))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Scalar>::deserialize(deserializer)?;
        Ok(Self {
            offset: spanned.span().start,
            value: spanned.into_inner().0,
        })
    }
}

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A text with ${variables} in it; a whole number and true or false are fine too",
            "type": ["string", "integer", "boolean"]
        })
    }
}

/// What variables stand for.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(BTreeMap<String, String>);

impl Values {
    pub(super) fn insert(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// Replaces every `${name}`; `$${` stands for a plain `${`.
    pub(super) fn fill(&self, text: &str) -> Result<String, String> {
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
                return Err(format!("{text:?} has a ${{ without its }}"));
            };
            match self.0.get(name) {
                Some(value) => filled.push_str(value),
                None => {
                    return Err(format!(
                        "there is no variable {name:?}; write $${{ for a plain ${{"
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
        values.fill(text)
    }

    #[test]
    fn variables_are_filled_in() {
        assert_eq!(fill("a ${port} b ${base.name}").unwrap(), "a 8080 b x");
        assert_eq!(fill("$env:PATH and $port").unwrap(), "$env:PATH and $port");
        assert_eq!(fill("$${port} ${port}").unwrap(), "${port} 8080");
    }

    #[test]
    fn unknown_and_unfinished_variables_are_errors() {
        assert!(fill("${prot}").unwrap_err().contains("\"prot\""));
        assert!(fill("x ${port").is_err());
    }

    #[test]
    fn a_value_is_not_filled_in_again() {
        let mut values = Values::default();
        values.insert("a", "${b}".to_owned());
        assert_eq!(values.fill("${a}").unwrap(), "${b}");
    }
}
