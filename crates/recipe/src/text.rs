//! The texts of a recipe: where they stand in its file, and the variables in them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer};
use toml::Spanned;
use wincimg_common::diagnose::nearest;

/// A scalar of the recipe's file, kept as text until its variables are filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) value: String,
    /// Where it begins in the file, in bytes.
    pub(super) offset: usize,
}

impl Text {
    /// Another text at the same place.
    pub(super) fn with_value(&self, value: &str) -> Self {
        Self {
            value: value.to_owned(),
            offset: self.offset,
        }
    }
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

/// A list of texts, or one text that stands for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Texts {
    One(Text),
    List(Vec<Text>),
}

/// A table of texts, or one text that stands for several `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pairs {
    One(Text),
    Table(BTreeMap<String, Text>),
}

/// What a list or a table is while its place in the file is not known yet.
enum Compound {
    Scalar(String),
    List(Vec<Text>),
    Table(BTreeMap<String, Text>),
}

impl<'de> Deserialize<'de> for Compound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Compound;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or several in a list or a table")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Compound, E> {
                Ok(Compound::Scalar(text.to_owned()))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Compound, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Compound::List(list))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut fields: A) -> Result<Compound, A::Error> {
                let mut table = BTreeMap::new();
                while let Some((key, value)) = fields.next_entry()? {
                    table.insert(key, value);
                }
                Ok(Compound::Table(table))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Compound>::deserialize(deserializer)?;
        let offset = spanned.span().start;
        match spanned.into_inner() {
            Compound::Scalar(value) => Ok(Self::One(Text { value, offset })),
            Compound::List(list) => Ok(Self::List(list)),
            Compound::Table(_) => Err(de::Error::custom("expected a string or a list of strings")),
        }
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Compound>::deserialize(deserializer)?;
        let offset = spanned.span().start;
        match spanned.into_inner() {
            Compound::Scalar(value) => Ok(Self::One(Text { value, offset })),
            Compound::Table(table) => Ok(Self::Table(table)),
            Compound::List(_) => Err(de::Error::custom("expected a string or a table of strings")),
        }
    }
}

impl Default for Texts {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Default for Pairs {
    fn default() -> Self {
        Self::Table(BTreeMap::new())
    }
}

impl JsonSchema for Texts {
    fn schema_name() -> Cow<'static, str> {
        "Texts".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = generator.subschema_for::<Text>();
        json_schema!({
            "description": "A list of texts, or one text that stands for several",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": text }]
        })
    }
}

impl JsonSchema for Pairs {
    fn schema_name() -> Cow<'static, str> {
        "Pairs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = generator.subschema_for::<Text>();
        json_schema!({
            "description": "A table of texts, or one text with KEY=VALUE,KEY=VALUE",
            "anyOf": [{ "type": "string" }, { "type": "object", "additionalProperties": text }]
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
                    let meant = nearest(name, self.0.keys().map(String::as_str))
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
        assert_eq!(values.fill("${a}").unwrap(), "${b}");
    }
}
