//! The folders that a recipe adds to PATH.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer};
use wincimg_common::diagnose::{Blame, Problem};
use wincimg_windows::search_path::{EntryError, PathAdditions, SearchPathError, entry};

use super::Recipe;
use super::file::RecipeFile;
use super::text::{Field, Text};

/// Returns true if the base's PATH cannot be determined, so that the recipe has to set it.
fn is_unclear(error: &SearchPathError) -> bool {
    matches!(
        error,
        SearchPathError::Unknown | SearchPathError::NotText(_)
    )
}

/// Blame for a PATH that cannot be extended.
pub fn path_blame(error: &SearchPathError) -> Blame {
    if is_unclear(error) {
        Blame::Request
    } else {
        Blame::Circumstances
    }
}

/// Hint for a PATH that cannot be extended.
pub fn path_hint(error: &SearchPathError) -> Option<String> {
    let hint =
        "set the whole PATH under [env]; `wincimg image base show REF` shows the PATH of a base";
    is_unclear(error).then(|| hint.to_owned())
}

/// An entry of PATH.
#[derive(Debug)]
struct Folder(String);

impl FromStr for Folder {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        entry(text).map(Self)
    }
}

/// Folders before and after those of the base.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sides {
    #[serde(default)]
    prepend: Vec<Field<Folder>>,
    #[serde(default)]
    append: Vec<Field<Folder>>,
}

/// The key `path` of a recipe.
#[derive(Debug)]
pub(super) struct PathEntry(Sides);

impl<'de> Deserialize<'de> for PathEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = PathEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r"a list of folders, such as ['C:\app'], or { append = ['C:\app'] }")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, items: A) -> Result<PathEntry, A::Error> {
                let prepend = Vec::deserialize(SeqAccessDeserializer::new(items))?;
                Ok(PathEntry(Sides {
                    prepend,
                    ..Sides::default()
                }))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, fields: A) -> Result<PathEntry, A::Error> {
                Sides::deserialize(MapAccessDeserializer::new(fields)).map(PathEntry)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for PathEntry {
    fn schema_name() -> Cow<'static, str> {
        "Path".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let folders = serde_json::json!({
            "type": "array",
            "items": generator.subschema_for::<Text>(),
        });
        json_schema!({
            "description": "Folders in front of the base's, or { prepend = [..], append = [..] }",
            "anyOf": [
                folders,
                {
                    "type": "object",
                    "properties": { "prepend": folders, "append": folders },
                    "additionalProperties": false
                }
            ]
        })
    }
}

impl Recipe {
    /// Folders added to PATH, by `path` or by a variable with the base's PATH in it.
    pub(super) fn path_additions(
        &self,
        file: &RecipeFile,
    ) -> Result<Option<PathAdditions>, Problem> {
        let variable = file.env.iter().find(|(name, _)| is_path(name));
        let Some(PathEntry(sides)) = &file.path else {
            let Some((_, text)) = variable else {
                return Ok(None);
            };
            let additions = PathAdditions::read(&text.value).transpose();
            return additions.map_err(|error| self.error(text, error.to_string()));
        };
        if let Some((name, text)) = variable {
            let problem = format!("env.{name} and path both set PATH: remove one of them");
            return Err(self.error(text, problem));
        }
        let folders = |folders: &[Field<Folder>]| {
            let folders = folders.iter().map(|folder| folder.value.0.clone());
            folders.collect()
        };
        Ok(Some(PathAdditions {
            prepend: folders(&sides.prepend),
            append: folders(&sides.append),
        }))
    }
}

/// Returns true if Windows treats the variable as PATH.
pub(super) fn is_path(name: &str) -> bool {
    name.eq_ignore_ascii_case("path")
}

#[cfg(test)]
mod tests;
