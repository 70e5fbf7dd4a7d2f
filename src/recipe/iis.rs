//! Settings of a site on IIS as a recipe writes them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::{Pairs, Text, Texts, Values};
use super::{Plan, Recipe, RecipeError};
use crate::windows::iis::{DEFAULT_APP_POOL, DEFAULT_PATH, DEFAULT_SITE, IisSettings};

/// A site on IIS.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IisEntry {
    /// The site's name; Default Web Site unless another is given.
    site: Option<Text>,
    /// The folder with the site's files; C:\inetpub\wwwroot unless another is given.
    path: Option<Text>,
    /// File extensions that the site may serve, with or without the dot; in one text with commas.
    #[serde(default)]
    file_extensions: Texts,
    /// Content types by file extension; in one text as json=application/json,woff2=font/woff2.
    #[serde(default)]
    mime_types: Pairs,
    /// The application pool that the site runs in.
    app_pool: Option<AppPoolEntry>,
}

/// An application pool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AppPoolEntry {
    /// The pool's name; `DefaultAppPool` unless another is given.
    name: Option<Text>,
    /// Attributes as appcmd names them, such as processModel.idleTimeout = "00:00:00".
    #[serde(default)]
    settings: Pairs,
}

/// Gives `ServiceMonitor` the pool that gets the container's variables, which it takes for
/// `DefaultAppPool` otherwise and ends where there is none: `ServiceMonitor.exe w3svc POOL`.
pub(super) fn name_pool(plan: &mut Plan) {
    let Some(pool) = plan.iis.as_ref().map(|iis| iis.app_pool.as_str()) else {
        return;
    };
    if pool.eq_ignore_ascii_case(DEFAULT_APP_POOL) {
        return;
    }
    let pool = pool.to_owned();
    let words = |words: &Option<Vec<String>>| words.clone().unwrap_or_default();
    let line = [words(&plan.entrypoint), words(&plan.cmd)].concat();
    let [.., program, service] = line.as_slice() else {
        return;
    };
    let file = program.rsplit(['\\', '/']).next().unwrap_or_default();
    let is_monitor = ["ServiceMonitor.exe", "ServiceMonitor"]
        .iter()
        .any(|name| file.eq_ignore_ascii_case(name));
    if !is_monitor || !service.eq_ignore_ascii_case("w3svc") {
        return;
    }
    let last = match (&mut plan.cmd, &mut plan.entrypoint) {
        (Some(cmd), _) if !cmd.is_empty() => cmd,
        (_, Some(entrypoint)) => entrypoint,
        _ => return,
    };
    last.push(pool);
}

impl Recipe {
    pub(super) fn iis(
        &self,
        entry: &IisEntry,
        values: &Values,
    ) -> Result<IisSettings, RecipeError> {
        let pool = entry.app_pool.as_ref();
        let pool_settings = match pool {
            Some(pool) => self.pairs(&pool.settings, values)?,
            None => Vec::new(),
        };
        Ok(IisSettings {
            site: self.parsed_or(entry.site.as_ref(), DEFAULT_SITE, values)?,
            path: self.parsed_or(entry.path.as_ref(), DEFAULT_PATH, values)?,
            file_extensions: self
                .items(&entry.file_extensions, values)?
                .into_iter()
                .map(|text| self.read(&text))
                .collect::<Result<_, _>>()?,
            mime_types: self.table(self.pairs(&entry.mime_types, values)?, |value| {
                self.read(value)
            })?,
            app_pool: self.parsed_or(
                pool.and_then(|pool| pool.name.as_ref()),
                DEFAULT_APP_POOL,
                values,
            )?,
            app_pool_settings: self.table(pool_settings, |value| {
                if value.value.is_empty() || value.value.contains(char::is_control) {
                    return Err(self.error(value, "expected a value on one line"));
                }
                Ok(value.value.clone())
            })?,
        })
    }

    fn parsed_or<T: FromStr<Err: fmt::Display>>(
        &self,
        text: Option<&Text>,
        default: &str,
        values: &Values,
    ) -> Result<T, RecipeError> {
        match text {
            Some(text) => self.parsed(text, values),
            None => self.read(&Text {
                value: default.to_owned(),
                offset: 0,
            }),
        }
    }

    /// Reads a text that is filled in already.
    pub(super) fn read<T: FromStr<Err: fmt::Display>>(
        &self,
        text: &Text,
    ) -> Result<T, RecipeError> {
        text.value
            .parse()
            .map_err(|problem: T::Err| self.error(text, problem.to_string()))
    }

    /// A table from pairs whose keys differ once they are read.
    fn table<K, V>(
        &self,
        pairs: Vec<(Text, Text)>,
        read_value: impl Fn(&Text) -> Result<V, RecipeError>,
    ) -> Result<BTreeMap<K, V>, RecipeError>
    where
        K: FromStr<Err: fmt::Display> + Ord + fmt::Display,
    {
        let mut table = BTreeMap::new();
        for (key_text, value) in pairs {
            let key: K = self.read(&key_text)?;
            let problem = format!("duplicate {key}");
            if table.insert(key, read_value(&value)?).is_some() {
                return Err(self.error(&key_text, problem));
            }
        }
        Ok(table)
    }

    /// The items of a list, each with its place; one text has commas between them.
    fn items(&self, texts: &Texts, values: &Values) -> Result<Vec<Text>, RecipeError> {
        match texts {
            Texts::One(text) => {
                let filled = self.resolve(text, values)?;
                Ok(split_at_commas(&filled)
                    .map(|item| text.with_value(item))
                    .collect())
            }
            Texts::List(list) => list
                .iter()
                .map(|text| Ok(text.with_value(&self.resolve(text, values)?)))
                .collect(),
        }
    }

    /// The keys and values of a table, each with a place.
    fn pairs(&self, pairs: &Pairs, values: &Values) -> Result<Vec<(Text, Text)>, RecipeError> {
        match pairs {
            Pairs::One(text) => {
                let filled = self.resolve(text, values)?;
                split_at_commas(&filled)
                    .map(|item| match item.split_once('=') {
                        Some((key, value)) => {
                            Ok((text.with_value(key.trim()), text.with_value(value.trim())))
                        }
                        None => {
                            Err(self.error(text, format!("{item:?} has no =: expected KEY=VALUE")))
                        }
                    })
                    .collect()
            }
            Pairs::Table(table) => table
                .iter()
                .map(|(key, value)| {
                    let filled = self.resolve(value, values)?;
                    Ok((value.with_value(key), value.with_value(&filled)))
                })
                .collect(),
        }
    }
}

fn split_at_commas(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}
