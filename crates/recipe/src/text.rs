//! The values of a recipe, with their positions in its file, and the variables in their texts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use wincimg_common::diagnose::closest_match;

use super::toml_error::TomlError;

/// A value of the recipe file and its position, with variables filled in. A whole number, true and
/// false are accepted as texts.
#[derive(Debug, Clone)]
pub(super) struct Field<T> {
    pub(super) value: T,
    /// Start in the file, in bytes.
    pub(super) offset: usize,
}

/// A text and its position.
pub(super) type Text = Field<String>;

impl<T> Field<T> {
    pub(super) fn into_inner(self) -> T {
        self.value
    }
}

/// The values without their positions.
pub(super) fn plain<T: Clone>(fields: &[Field<T>]) -> Vec<T> {
    fields.iter().map(|field| field.value.clone()).collect()
}

/// A key of a table, or a value without its position.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<T>(pub(super) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Key<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);

        impl<T: FromStr<Err: fmt::Display>> de::Visitor<'_> for Visitor<T> {
            type Value = Key<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a whole number, true or false")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Key<T>, E> {
                text.parse().map(Key).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Key<T>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Key<T>, E> {
                self.visit_str(&flag.to_string())
            }
        }

        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Key<T>>::deserialize(deserializer)?;
        Ok(Self {
            offset: spanned.span().start,
            value: spanned.into_inner().0,
        })
    }
}

impl<T> JsonSchema for Field<T> {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A string, which may contain ${variables}; a whole number, true and false are accepted, too",
            "type": ["string", "integer", "boolean"]
        })
    }
}

/// One string, or a list.
#[derive(Debug)]
pub(super) enum Texts<T = String> {
    One(String),
    List(Vec<Field<T>>),
}

/// A table, or one string with `KEY=VALUE,KEY=VALUE`.
#[derive(Debug)]
pub(super) struct Pairs<K, V>(pub(super) BTreeMap<K, V>);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Texts<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);

        impl<'de, T: FromStr<Err: fmt::Display>> de::Visitor<'de> for Visitor<T> {
            type Value = Texts<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Texts<T>, E> {
                Ok(Texts::One(text.to_owned()))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, items: A) -> Result<Texts<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(Texts::List)
            }
        }

        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

/// Reads a list, or one string with commas.
pub(super) fn items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    match Texts::deserialize(deserializer)? {
        Texts::One(text) => {
            let items: Result<_, _> = split_at_commas(&text).map(str::parse).collect();
            items.map_err(de::Error::custom)
        }
        Texts::List(list) => Ok(list.into_iter().map(Field::into_inner).collect()),
    }
}

impl<'de, K, V> Deserialize<'de> for Pairs<K, V>
where
    K: FromStr<Err: fmt::Display> + Ord + fmt::Display,
    V: FromStr<Err: fmt::Display>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<K, V>(BTreeMap<K, V>);

        /// A value, unless its key is a duplicate.
        struct Value<V>(Option<String>, PhantomData<V>);

        impl<'de, V: FromStr<Err: fmt::Display>> DeserializeSeed<'de> for Value<V> {
            type Value = V;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V, D::Error> {
                match self.0 {
                    Some(key) => Err(de::Error::custom(format!("duplicate {key}"))),
                    None => Key::deserialize(deserializer).map(|Key(value)| value),
                }
            }
        }

        impl<'de, K, V> de::Visitor<'de> for Visitor<K, V>
        where
            K: FromStr<Err: fmt::Display> + Ord + fmt::Display,
            V: FromStr<Err: fmt::Display>,
        {
            type Value = Pairs<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a table of strings")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Pairs<K, V>, E> {
                let missing = |item| format!("{item:?} has no =: expected KEY=VALUE");
                let pairs = split_at_commas(text).map(|item| {
                    let (key, value) = item.split_once('=').ok_or_else(|| missing(item))?;
                    Ok((key.trim(), value.trim()))
                });
                let pairs: Vec<_> = pairs
                    .collect::<Result<_, _>>()
                    .map_err(E::custom::<String>)?;
                self.visit_map(MapDeserializer::new(pairs.into_iter()))
            }

            fn visit_map<A: de::MapAccess<'de>>(
                mut self,
                mut fields: A,
            ) -> Result<Pairs<K, V>, A::Error> {
                while let Some(Key(key)) = fields.next_key()? {
                    let known = self.0.contains_key(&key).then(|| key.to_string());
                    let value = fields.next_value_seed(Value(known, PhantomData))?;
                    self.0.insert(key, value);
                }
                Ok(Pairs(self.0))
            }
        }

        deserializer.deserialize_any(Visitor(BTreeMap::new()))
    }
}

impl<K, V> Default for Pairs<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> JsonSchema for Texts<T> {
    fn schema_name() -> Cow<'static, str> {
        "Texts".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = generator.subschema_for::<Text>();
        json_schema!({
            "description": "A list of strings, or one string with several",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": text }]
        })
    }
}

impl<K, V> JsonSchema for Pairs<K, V> {
    fn schema_name() -> Cow<'static, str> {
        "Pairs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = generator.subschema_for::<Text>();
        json_schema!({
            "description": "A table of strings, or one string with KEY=VALUE,KEY=VALUE",
            "anyOf": [{ "type": "string" }, { "type": "object", "additionalProperties": text }]
        })
    }
}

fn split_at_commas(text: &str) -> impl Iterator<Item = &str> {
    let items = text.split(',').map(str::trim);
    items.filter(|item| !item.is_empty())
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
                return Err(format!("{text:?} has a ${{ without its }}"));
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
