//! Settings of a site on IIS as a recipe writes them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use wincimg_iis::{
    Attribute, DEFAULT_APP_POOL, DEFAULT_PATH, DEFAULT_SITE, IisSettings, Name, Site,
};
use wincimg_windows::path::ImagePath;

use self::server::{AppPoolEntry, ConfigEntry, HandlerEntry, ModuleEntry, SiteEntry};
use super::text::{Pairs, Text, Texts, Values};
use super::{Plan, Recipe, RecipeError};

mod server;

/// Settings of IIS: of one site in its `web.config`, and of the server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IisEntry {
    /// The name of the site whose `web.config` is written; Default Web Site unless another is given.
    site: Option<Text>,
    /// The folder with the site's files; that of the site in sites, or C:\inetpub\wwwroot, unless
    /// another is given.
    path: Option<Text>,
    /// File extensions that the site may serve, with or without the dot; in one text with commas.
    #[serde(default)]
    file_extensions: Texts,
    /// Content types by file extension; in one text as json=application/json,woff2=font/woff2.
    #[serde(default)]
    mime_types: Pairs,
    /// Files that the site serves where a folder is asked for, before those that the server names; in
    /// one text with commas.
    #[serde(default)]
    default_documents: Texts,
    /// The application pool that the site runs in.
    app_pool: Option<SitePoolEntry>,
    /// Application pools, made where the base does not have them.
    #[serde(default)]
    app_pools: Vec<AppPoolEntry>,
    /// Sites, made where the base does not have them.
    #[serde(default)]
    sites: Vec<SiteEntry>,
    /// Handlers, which come before those that are there.
    #[serde(default)]
    handlers: Vec<HandlerEntry>,
    /// Modules, native or managed.
    #[serde(default)]
    modules: Vec<ModuleEntry>,
    /// Changes of any section, as appcmd set config makes them.
    #[serde(default)]
    pub(super) config: Vec<ConfigEntry>,
}

/// The application pool that the site runs in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SitePoolEntry {
    /// The pool's name; that of the site in sites, or `DefaultAppPool`, unless another is given.
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
            Some(pool) => self.settings(&pool.settings, values)?,
            None => BTreeMap::new(),
        };
        let sites: Vec<Site> = entry
            .sites
            .iter()
            .map(|site| self.site(site, values))
            .collect::<Result<_, _>>()?;
        let name: Name = self.parsed_or(entry.site.as_ref(), DEFAULT_SITE, values)?;
        let (folder, own_pool) = of_site(&sites, &name);
        let mut config = Vec::new();
        for module in &entry.modules {
            config.extend(self.module(module, values)?);
        }
        // Each goes before those that are there.
        for handler in entry.handlers.iter().rev() {
            config.push(self.handler(handler, values)?);
        }
        for changes in entry.config.iter().filter(|entry| entry.layer.is_none()) {
            config.extend(self.config(changes, values)?);
        }
        Ok(IisSettings {
            path: self.parsed_or(entry.path.as_ref(), &folder, values)?,
            file_extensions: self
                .items(&entry.file_extensions, values)?
                .into_iter()
                .map(|text| self.read(&text))
                .collect::<Result<_, _>>()?,
            mime_types: self.table(self.pairs(&entry.mime_types, values)?, |value| {
                self.read(value)
            })?,
            default_documents: self
                .items(&entry.default_documents, values)?
                .into_iter()
                .map(|text| self.read(&text))
                .collect::<Result<_, _>>()?,
            app_pool: self.parsed_or(
                pool.and_then(|pool| pool.name.as_ref()),
                &own_pool,
                values,
            )?,
            app_pool_settings: pool_settings,
            app_pools: entry
                .app_pools
                .iter()
                .map(|pool| self.app_pool(pool, values))
                .collect::<Result<_, _>>()?,
            site: name,
            sites,
            config,
        })
    }

    /// Attributes by their paths, and their values.
    fn settings(
        &self,
        pairs: &Pairs,
        values: &Values,
    ) -> Result<BTreeMap<Attribute, String>, RecipeError> {
        self.table(self.pairs(pairs, values)?, |value| self.value(value))
    }

    /// A value of an attribute.
    fn value(&self, value: &Text) -> Result<String, RecipeError> {
        if value.value.contains(char::is_control) {
            return Err(self.error(value, "expected a value on one line"));
        }
        Ok(value.value.clone())
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

/// The folder and the pool of the site with this name; those that IIS comes with where it is not
/// described.
fn of_site(sites: &[Site], name: &Name) -> (String, String) {
    let site = sites.iter().find(|site| site.name == *name);
    let application = site.and_then(|site| site.applications.values().next());
    let folder = application.and_then(|application| application.folders.values().next());
    let pool = application.and_then(|application| application.app_pool.as_ref());
    (
        folder.map_or_else(|| DEFAULT_PATH.to_owned(), ImagePath::to_string),
        pool.map_or_else(|| DEFAULT_APP_POOL.to_owned(), Name::to_string),
    )
}

fn split_at_commas(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}
