//! Settings of a site on IIS as a recipe writes them.

mod monitor;
mod server;

use std::collections::BTreeMap;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use wincimg_common::document::{Pairs, items};
use wincimg_iis::document::pool_settings;
use wincimg_iis::{
    AppPool, Attribute, DEFAULT_APP_POOL, DEFAULT_PATH, DEFAULT_SITE, DocumentName, FileExtension,
    IisSettings, MimeType, Name, Site,
};
use wincimg_windows::path::ImagePath;

use self::server::{ConfigEntry, HandlerEntry, ModuleEntry, SiteEntry};
use super::text::{Field, Texts};
use super::{Plan, Recipe, Result};

/// Settings of IIS: one site's `web.config`, and the server's configuration.
// Apart from `IisSettings`: the defaults of `path` and `app_pool` are those of the site, and
// handlers, modules and sections become edits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IisEntry {
    /// Name of the site whose `web.config` is written; default: Default Web Site.
    site: Option<Field<Name>>,
    /// The site's folder; default: that of the site in sites or in the base.
    path: Option<Field<ImagePath>>,
    /// File extensions that the site may serve, with or without the dot; a list, or a string with
    /// commas.
    #[serde(default, deserialize_with = "items")]
    #[schemars(with = "Texts")]
    file_extensions: Vec<FileExtension>,
    /// Content types by file extension; a table, or a string such as
    /// json=application/json,woff2=font/woff2.
    #[serde(default)]
    mime_types: Pairs<FileExtension, MimeType>,
    /// Default documents, before the server's; a list, or a string with commas.
    #[serde(default, deserialize_with = "items")]
    #[schemars(with = "Texts")]
    default_documents: Vec<DocumentName>,
    /// The application pool that the site runs in.
    app_pool: Option<SitePoolEntry>,
    /// Application pools, created if the base does not have them.
    #[serde(default)]
    app_pools: Vec<AppPool>,
    /// Sites, created if the base does not have them.
    #[serde(default)]
    sites: Vec<SiteEntry>,
    /// Handlers, placed before the existing ones.
    #[serde(default)]
    handlers: Vec<HandlerEntry>,
    /// Modules, native or managed.
    #[serde(default)]
    modules: Vec<ModuleEntry>,
    /// Changes to any section, as with appcmd set config.
    #[serde(default)]
    pub(super) config: Vec<ConfigEntry>,
}

/// The application pool that the site runs in.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SitePoolEntry {
    /// The pool's name; default: that of the site in sites, or `DefaultAppPool`.
    name: Option<Field<Name>>,
    /// Attributes as appcmd names them, such as processModel.idleTimeout = "00:00:00".
    #[serde(default, deserialize_with = "pool_settings")]
    #[schemars(with = "Pairs<String, String>")]
    settings: BTreeMap<Attribute, String>,
}

/// Passes the pool to `ServiceMonitor`, which sets the container's variables in it:
/// `ServiceMonitor.exe w3svc POOL`. Without one it uses `DefaultAppPool`, and exits if that does
/// not exist.
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
    if !monitor::is_monitor(program) || !service.eq_ignore_ascii_case("w3svc") {
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
    pub(super) fn iis(&self, entry: IisEntry) -> Result<IisSettings> {
        let pool = entry.app_pool.unwrap_or_default();
        self.check_site_names(&entry.sites)?;
        let sites = entry.sites.into_iter().map(|site| self.site(site));
        let sites: Vec<Site> = sites.collect::<Result<_, _>>()?;
        let name = self.or_default(entry.site, DEFAULT_SITE)?;
        let (folder, own_pool) = of_site(&sites, &name);
        let path = entry.path.map(|field| field.value);
        let mut config = Vec::new();
        for module in &entry.modules {
            config.extend(self.module(module)?);
        }
        // Each is placed before the existing ones.
        config.extend(entry.handlers.iter().rev().map(HandlerEntry::edit));
        for changes in entry.config.iter().filter(|entry| entry.layer.is_none()) {
            config.extend(self.config(changes)?);
        }
        Ok(IisSettings {
            path: path.or(folder),
            file_extensions: entry.file_extensions.into_iter().collect(),
            mime_types: entry.mime_types.0,
            default_documents: entry.default_documents,
            app_pool: self.or_default(pool.name, &own_pool)?,
            app_pool_settings: pool.settings,
            app_pools: entry.app_pools,
            site: name,
            sites,
            config,
        })
    }

    fn or_default<T: FromStr<Err: ToString>>(
        &self,
        field: Option<Field<T>>,
        default: &str,
    ) -> Result<T> {
        field
            .map_or_else(|| default.parse(), |field| Ok(field.value))
            .map_err(|problem| self.origin.error_at(0, problem.to_string()))
    }
}

/// Folder and pool of the site with this name; the defaults of IIS if the recipe does not describe
/// it. Only the base's configuration names the folder of another site.
fn of_site(sites: &[Site], name: &Name) -> (Option<ImagePath>, String) {
    let site = sites.iter().find(|site| site.name.is_same(name));
    let application = site.and_then(|site| site.applications.values().next());
    let folder = application.and_then(|application| application.folders.values().next());
    let pool = application.and_then(|application| application.app_pool.as_ref());
    let is_default = name.as_str().eq_ignore_ascii_case(DEFAULT_SITE);
    let default = || {
        DEFAULT_PATH
            .parse::<ImagePath>()
            .ok()
            .filter(|_| is_default)
    };
    (
        folder.cloned().or_else(default),
        pool.map_or_else(|| DEFAULT_APP_POOL.to_owned(), Name::to_string),
    )
}

#[cfg(test)]
mod tests;
