//! Values of documents that people write: texts, of which some may have `${variables}`, as lists
//! and tables. A type with `FromStr` is read from a text; a whole number, true and false are
//! accepted as texts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer};

/// A key of a table, or a value.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text<T = String>(pub T);

/// One string, or a list of `T`.
#[derive(Debug)]
pub enum Texts<T = Text> {
    /// A string.
    One(String),
    /// A list.
    List(Vec<T>),
}

/// A table, or one string with `KEY=VALUE,KEY=VALUE`.
#[derive(Debug)]
pub struct Pairs<K, V>(pub BTreeMap<K, V>);

/// Reads a value from a text.
pub fn text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    Text::deserialize(deserializer).map(|Text(value)| value)
}

/// Reads a list, or one string with commas.
pub fn items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    match Texts::deserialize(deserializer)? {
        Texts::One(text) => {
            let items: Result<_, _> = split_at_commas(&text).map(str::parse).collect();
            items.map_err(de::Error::custom)
        }
        Texts::List(list) => Ok(list.into_iter().map(|Text(item)| item).collect()),
    }
}

/// Reads a table with `add`, whose errors are those of the value.
pub fn table<'de, D, K, V>(
    deserializer: D,
    add: impl FnMut(K, V) -> Result<(), String>,
) -> Result<(), D::Error>
where
    D: Deserializer<'de>,
    K: FromStr<Err: fmt::Display>,
    V: FromStr<Err: fmt::Display>,
{
    struct Visitor<K, V, F>(F, PhantomData<(K, V)>);

    impl<'de, K, V, F> de::Visitor<'de> for Visitor<K, V, F>
    where
        K: FromStr<Err: fmt::Display>,
        V: FromStr<Err: fmt::Display>,
        F: FnMut(K, V) -> Result<(), String>,
    {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: de::MapAccess<'de>>(self, fields: A) -> Result<(), A::Error> {
            entries(fields, self.0)
        }
    }

    deserializer.deserialize_map(Visitor(add, PhantomData))
}

fn entries<'de, A, K, V>(
    mut fields: A,
    mut add: impl FnMut(K, V) -> Result<(), String>,
) -> Result<(), A::Error>
where
    A: de::MapAccess<'de>,
    K: FromStr<Err: fmt::Display>,
    V: FromStr<Err: fmt::Display>,
{
    struct Entry<'a, K, V, F>(K, &'a mut F, PhantomData<V>);

    impl<'de, K, V, F> DeserializeSeed<'de> for Entry<'_, K, V, F>
    where
        V: FromStr<Err: fmt::Display>,
        F: FnMut(K, V) -> Result<(), String>,
    {
        type Value = ();

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            let value = text(deserializer)?;
            (self.1)(self.0, value).map_err(de::Error::custom)
        }
    }

    while let Some(Text(key)) = fields.next_key()? {
        fields.next_value_seed(Entry(key, &mut add, PhantomData))?;
    }
    Ok(())
}

fn split_at_commas(text: &str) -> impl Iterator<Item = &str> {
    let items = text.split(',').map(str::trim);
    items.filter(|item| !item.is_empty())
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);

        impl<T: FromStr<Err: fmt::Display>> de::Visitor<'_> for Visitor<T> {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a whole number, true or false")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<T>, E> {
                text.parse().map(Text).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text<T>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Text<T>, E> {
                self.visit_str(&flag.to_string())
            }
        }

        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Texts<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
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

impl<'de, K, V> Deserialize<'de> for Pairs<K, V>
where
    K: FromStr<Err: fmt::Display> + Ord + fmt::Display,
    V: FromStr<Err: fmt::Display>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<K, V>(PhantomData<(K, V)>);

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

            fn visit_map<A: de::MapAccess<'de>>(self, fields: A) -> Result<Pairs<K, V>, A::Error> {
                let mut pairs = BTreeMap::new();
                entries(fields, |key: K, value| {
                    if pairs.contains_key(&key) {
                        return Err(format!("duplicate {key}"));
                    }
                    pairs.insert(key, value);
                    Ok(())
                })?;
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

impl<K, V> Default for Pairs<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> JsonSchema for Text<T> {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A string, which may contain ${variables} in recipes; a whole number, true and false are accepted, too",
            "type": ["string", "integer", "boolean"]
        })
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

/// Reads types with `FromStr` from texts.
#[macro_export]
macro_rules! read_from_text {
    ($($name:ty),+) => {$(
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::document::text(deserializer)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$crate::document::Text as schemars::JsonSchema>::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$crate::document::Text as schemars::JsonSchema>::json_schema(generator)
            }
        }
    )+};
}
