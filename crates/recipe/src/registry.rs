//! Registry changes in a recipe.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer};
use toml::Spanned;
use wincimg_registry::regfile::RegFile;
use wincimg_registry::{DataType, KeyMode, KeyPath, RegistryData, RegistryEdit, Root, regfile};

use super::text::Text;
use super::{Plan, Recipe, Result};

/// Exports of whole hives have several hundred MiB.
const LARGEST_IMPORT: u64 = 1024 * 1024 * 1024;

/// Changes to one key, or a registration file with changes to many.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with key and values, or with import"
)]
pub(super) struct RegistryEntry {
    /// A key, such as HKLM\SYSTEM\CurrentControlSet\Services\NAME.
    key: Option<Text>,
    /// Treatment of a key of that name in the base: merge, replace or `replace_values`.
    mode: Option<Text>,
    /// Values to set; an empty name is the key's default value.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Data>")]
    values: BTreeMap<String, Spanned<Data>>,
    /// Names of values to delete.
    #[serde(default)]
    delete_values: Vec<Text>,
    /// Delete the key and everything under it.
    #[serde(default)]
    delete: bool,
    /// A .reg file in the recipe's folder.
    import: Option<Text>,
    /// Name of its layer; default: the recipe's last.
    pub(super) layer: Option<Text>,
}

/// A whole number is a `dword`, a string an `sz`, a list a `multi_sz`, unless a type is given.
#[derive(Debug)]
enum Data {
    Number(i64),
    Text(String),
    List(Vec<String>),
    TypedValue(TypedValue),
}

/// Data whose type is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedValue {
    #[serde(rename = "type")]
    kind: String,
    data: Box<Data>,
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Data;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a string, a list of strings or { type, data }")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Data, E> {
                Ok(Data::Number(number))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Data, E> {
                Ok(Data::Text(text.to_owned()))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, items: A) -> Result<Data, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(Data::List)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, fields: A) -> Result<Data, A::Error> {
                TypedValue::deserialize(MapAccessDeserializer::new(fields)).map(Data::TypedValue)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Data {
    fn schema_name() -> Cow<'static, str> {
        "RegistryValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let plain = json_schema!({
            "anyOf": [
                { "type": "integer" },
                { "type": "string" },
                { "type": "array", "items": { "type": "string" } }
            ]
        });
        json_schema!({
            "description": "A number is a DWORD, a string an SZ, a list a MULTI_SZ; or set the type",
            "anyOf": [
                plain,
                {
                    "type": "object",
                    "properties": { "type": { "type": "string" }, "data": plain },
                    "required": ["type", "data"],
                    "additionalProperties": false
                }
            ]
        })
    }
}

impl Plan {
    /// A warning if it changes a control set that containers do not have.
    pub fn control_set_warning(&self) -> Option<String> {
        let in_layers = self.instruction_layers().flat_map(|layer| &layer.registry);
        let mut edits = self.registry.iter().chain(in_layers);
        let other = edits.find_map(|edit| other_control_set(edit.key()))?;
        Some(format!(
            r"HKLM\SYSTEM\{other} has no effect: a container has only ControlSet001; write CurrentControlSet"
        ))
    }
}

/// `ControlSet002` of a key in it, or the like.
fn other_control_set(key: &KeyPath) -> Option<&str> {
    let name = key.components().first()?;
    let (start, number) = name.split_at_checked("ControlSet".len())?;
    let is_other = key.root() == Root::System
        && start.eq_ignore_ascii_case("ControlSet")
        && number.len() == 3
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && number != "001";
    is_other.then_some(name)
}

impl Recipe {
    /// The edits of one entry, in the order in which they apply, and the links that they went
    /// through.
    pub(super) fn registry_edits(&self, entry: &Spanned<RegistryEntry>) -> Result<RegFile> {
        let offset = entry.span().start;
        let entry = entry.get_ref();
        let (text, changes) = match (&entry.key, &entry.import) {
            (Some(key), None) => (key, self.changes_of_key(entry, key)?),
            (None, Some(import)) => (import, self.import(entry, import)?),
            _ => {
                let problem = "a registry entry requires either key or import";
                return Err(self.origin.error_at(offset, problem));
            }
        };
        match changes.edits.iter().find_map(RegistryEdit::lost_key) {
            None => Ok(changes),
            Some(key) => {
                let problem = format!("Windows needs {key}: it cannot be deleted or replaced");
                Err(self.error(text, problem))
            }
        }
    }

    fn changes_of_key(&self, entry: &RegistryEntry, key_text: &Text) -> Result<RegFile> {
        let (key, link) = KeyPath::parse(&key_text.value)
            .map_err(|problem| self.error(key_text, problem.to_string()))?;
        let links = link.into_iter().collect();
        let nothing_else = entry.values.is_empty() && entry.delete_values.is_empty();
        if entry.delete {
            if !nothing_else || entry.mode.is_some() {
                return Err(self.error(
                    key_text,
                    "delete cannot be combined with mode, values or delete_values",
                ));
            }
            let edits = vec![RegistryEdit::DeleteKey { key }];
            return Ok(RegFile { edits, links });
        }
        let mut edits = Vec::new();
        let mode = self.mode_of(entry)?;
        let key = || key.clone();
        if mode != KeyMode::Merge || nothing_else {
            edits.push(RegistryEdit::CreateKey { key: key(), mode });
        }
        for field in &entry.delete_values {
            let name = field.value.clone();
            edits.push(RegistryEdit::DeleteValue { key: key(), name });
        }
        for (name, value) in &entry.values {
            let data = data_of(value.get_ref())
                .map_err(|problem| self.origin.error_at(value.span().start, problem))?;
            let (key, name) = (key(), name.clone());
            edits.push(RegistryEdit::SetValue { key, name, data });
        }
        Ok(RegFile { edits, links })
    }

    fn import(&self, entry: &RegistryEntry, import: &Text) -> Result<RegFile> {
        let alone = entry.values.is_empty()
            && entry.delete_values.is_empty()
            && !entry.delete
            && entry.mode.is_none();
        if !alone {
            return Err(self.error(
                import,
                "import cannot be combined with mode, values, delete_values or delete",
            ));
        }
        let file = self.in_recipe_folder(import)?;
        let bytes = file.read(LARGEST_IMPORT);
        let bytes = bytes.map_err(|error| self.unreadable(import, &file.path, &error))?;
        regfile::import(&bytes)
            .map_err(|error| self.error(import, format!("{}: {error}", file.path.display())))
    }

    fn mode_of(&self, entry: &RegistryEntry) -> Result<KeyMode> {
        let Some(text) = &entry.mode else {
            return Ok(KeyMode::Merge);
        };
        match text.value.as_str() {
            "merge" => Ok(KeyMode::Merge),
            "replace" => Ok(KeyMode::Replace),
            "replace_values" => Ok(KeyMode::ReplaceValues),
            other => Err(self.error(
                text,
                format!("invalid mode {other:?}: expected merge, replace or replace_values"),
            )),
        }
    }
}

fn data_of(data: &Data) -> Result<RegistryData, String> {
    match data {
        Data::Number(number) => dword(*number),
        Data::Text(text) => Ok(RegistryData::sz(text)),
        Data::List(list) => multi_sz(list),
        Data::TypedValue(TypedValue { kind, data }) => typed(kind, data),
    }
}

fn typed(kind: &str, data: &Data) -> Result<RegistryData, String> {
    let text_of = |data: &Data| match data {
        Data::Text(text) => Ok(text.clone()),
        Data::Number(number) => Ok(number.to_string()),
        _ => Err(format!("{kind} requires a string or a number")),
    };
    let number_of = |data: &Data| -> Result<i64, String> {
        let text = text_of(data)?;
        text.parse()
            .map_err(|_| format!("invalid {kind} {text:?}: expected a whole number"))
    };
    match (DataType::from_name(kind), data) {
        (Some(DataType::SZ), _) => Ok(RegistryData::sz(&text_of(data)?)),
        (Some(DataType::EXPAND_SZ), _) => Ok(RegistryData::expand_sz(&text_of(data)?)),
        (Some(DataType::LINK), _) => Ok(RegistryData::link(&text_of(data)?)),
        (Some(DataType::DWORD), _) => dword(number_of(data)?),
        (Some(DataType::DWORD_BIG_ENDIAN), _) => u32::try_from(number_of(data)?)
            .map(RegistryData::dword_big_endian)
            .map_err(|_| "the number does not fit into 32 bits".to_owned()),
        (Some(DataType::QWORD), _) => u64::try_from(number_of(data)?)
            .map(RegistryData::qword)
            .map_err(|_| "a qword cannot be negative".to_owned()),
        (Some(DataType::MULTI_SZ), Data::List(list)) => multi_sz(list),
        (Some(DataType::MULTI_SZ), _) => Err("multi_sz requires a list of strings".to_owned()),
        (Some(other), _) => {
            let text = text_of(data)?;
            let digits: String = text
                .chars()
                .filter(|c| !c.is_whitespace() && *c != ',')
                .collect();
            let bytes = hex::decode(&digits)
                .map_err(|_| format!("invalid {kind} {text:?}: expected bytes such as 00 ff"))?;
            Ok(RegistryData::new(other, bytes))
        }
        (None, _) => Err(format!(
            "unknown type {kind:?}: expected sz, expand_sz, multi_sz, dword, qword, binary, \
             none or another registry type"
        )),
    }
}

fn dword(number: i64) -> Result<RegistryData, String> {
    u32::try_from(number).map(RegistryData::dword).map_err(|_| {
        if number < 0 {
            return format!("{number} does not fit into a dword: give 0 to {}", u32::MAX);
        }
        format!("{number} does not fit into a dword: give {{ type = \"qword\", data = … }}")
    })
}

fn multi_sz(list: &[String]) -> Result<RegistryData, String> {
    RegistryData::multi_sz(list).map_err(|error| error.to_string())
}
