//! Settings of IIS as a recipe writes them: one site's, and the server's configuration.
mod monitor;

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use wincimg_common::document::{self, Pairs, items};
use wincimg_iis::config::{ConfigChange, ConfigEdit, ConfigLocation, ElementPath, SectionPath};
use wincimg_iis::document::{Line, pool_settings, settings};
use wincimg_iis::{
    AppPool, Application, Attribute, Binding, DEFAULT_APP_POOL, DEFAULT_PATH, DEFAULT_SITE,
    DocumentName, FileExtension, IisSettings, MimeType, Name, Site, UrlPath,
};
use wincimg_windows::invalid::InvalidText;
use wincimg_windows::path::ImagePath;

use super::text::{Field, Text, Texts, plain};
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

/// A site.
// Apart from `Site`: its own folders and pool are those of the application `/`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"Api\", path = 'C:\\api', bindings = [\"http/*:8080:\"] }"
)]
struct SiteEntry {
    /// The site's name.
    name: Field<Name>,
    /// Number of a new site; default: the highest plus one.
    id: Option<Field<u32>>,
    /// The folder with the site's files.
    path: Field<ImagePath>,
    /// Its application pool; default: the one in the server's defaults.
    app_pool: Option<Field<Name>>,
    /// All bindings of the site: PROTOCOL/ADDRESS:PORT:HOST, such as http/*:80:.
    #[serde(deserialize_with = "items")]
    #[schemars(with = "Texts")]
    bindings: Vec<Binding>,
    /// Attributes as appcmd names them, such as limits.maxConnections = 100.
    #[serde(default, deserialize_with = "settings")]
    #[schemars(with = "Pairs<String, String>")]
    settings: BTreeMap<Attribute, String>,
    /// Applications, by their paths in URLs.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ApplicationEntry>")]
    applications: BTreeMap<document::Text<UrlPath>, ApplicationEntry>,
    /// The folders of virtual directories, by their paths in URLs.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Text>")]
    virtual_directories: Folders,
}

/// An application of a site.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { path = 'C:\\api', app_pool = \"api\" }"
)]
struct ApplicationEntry {
    /// The folder with the application's files.
    path: Field<ImagePath>,
    /// Its application pool; default: the one in the server's defaults.
    app_pool: Option<Field<Name>>,
    /// Attributes as appcmd names them, such as preloadEnabled = true.
    #[serde(default, deserialize_with = "settings")]
    #[schemars(with = "Pairs<String, String>")]
    settings: BTreeMap<Attribute, String>,
    /// The folders of virtual directories, by their paths in the application's URLs.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Text>")]
    virtual_directories: Folders,
}

/// Handler of requests for certain paths.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"php\", path = \"*.php\", modules = \"FastCgiModule\" }"
)]
struct HandlerEntry {
    /// The handler's name.
    name: Field<Line>,
    /// The paths, such as *.php.
    path: Field<Line>,
    /// The verbs, separated by commas; default: all.
    verb: Option<Field<Line>>,
    /// The modules that answer, separated by commas.
    modules: Option<Field<Line>>,
    /// The managed type that answers.
    #[serde(rename = "type")]
    kind: Option<Field<Line>>,
    /// The program of a CGI or ISAPI handler.
    script_processor: Option<Field<Line>>,
    /// Required type of the path: File, Directory, Either or Unspecified.
    resource_type: Option<Field<Line>>,
    /// Access that the handler needs: None, Read, Write, Script or Execute.
    require_access: Option<Field<Line>>,
    /// Precondition, such as bitness64.
    pre_condition: Option<Field<Line>>,
    /// Site, or path below a site, that it applies to; default: the whole server.
    site: Option<Field<ConfigLocation>>,
}

/// A module of IIS.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"RewriteModule\", image = 'C:\\rewrite.dll' }"
)]
struct ModuleEntry {
    /// The module's name.
    name: Field<Line>,
    /// The file of a native module, which is registered with the server.
    image: Option<Field<Line>>,
    /// The type of a managed module.
    #[serde(rename = "type")]
    kind: Option<Field<Line>>,
    /// Precondition, such as managedHandler.
    pre_condition: Option<Field<Line>>,
    /// Site, or path below a site, that it applies to; default: the whole server.
    site: Option<Field<ConfigLocation>>,
}

/// Changes to a section, in this order: clear, remove, add, set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { section = \"system.webServer/httpErrors\", set = { errorMode = \"Detailed\" } }"
)]
pub(super) struct ConfigEntry {
    /// The section's path, such as system.webServer/security/requestFiltering.
    section: Field<SectionPath>,
    /// Site, or path below a site, that it applies to; default: the whole server.
    location: Option<Field<ConfigLocation>>,
    /// Elements and attributes to clear, as with appcmd clear config.
    #[serde(default)]
    clear: Vec<Field<ElementPath>>,
    /// Entries to remove, such as fileExtensions.[fileExtension='.asp'].
    #[serde(default)]
    remove: Vec<Field<EntryPath>>,
    /// Entries to add, replacing those with the same key, such as [value='index.html'].
    #[serde(default)]
    add: Vec<Field<EntryPath>>,
    /// Entries to add before the existing ones, replacing those with the same key.
    #[serde(default)]
    add_first: Vec<Field<EntryPath>>,
    /// Entries to add unless one with the same key exists.
    #[serde(default)]
    ensure: Vec<Field<EntryPath>>,
    /// True if configuration files below may set the section (appcmd unlock config), false if not
    /// (appcmd lock config).
    delegate: Option<bool>,
    /// Attributes to set, such as "requestLimits.maxAllowedContentLength" = 1000000.
    #[serde(default)]
    set: BTreeMap<String, Field<Line>>,
    /// Name of its layer; default: the recipe's last.
    pub(super) layer: Option<Text>,
}

/// Folders by their paths in URLs.
type Folders = BTreeMap<document::Text<UrlPath>, Field<ImagePath>>;

/// The path of an entry.
#[derive(Debug, Clone)]
struct EntryPath(ElementPath);

impl FromStr for EntryPath {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        ElementPath::with_entry(text).map(Self)
    }
}

type Value = Field<Line>;

impl Value {
    fn text(&self) -> &str {
        &self.value.0
    }
}

/// The edit that adds an entry with the given attributes.
fn addition<const N: usize>(
    section: &str,
    site: Option<&Field<ConfigLocation>>,
    attributes: [(&str, Option<&str>); N],
    first: bool,
) -> ConfigEdit {
    let given = attributes.into_iter();
    let given = given.filter_map(|(name, value)| Some((name, value?)));
    ConfigEdit {
        section: SectionPath::of(section),
        location: site.map(|site| site.value.clone()),
        change: ConfigChange::Add {
            entry: ElementPath::default().entry(given),
            first,
        },
    }
}

impl HandlerEntry {
    fn edit(&self) -> ConfigEdit {
        let optional = |value| Option::as_ref(value).map(Value::text);
        let attributes = [
            ("name", Some(self.name.text())),
            ("path", Some(self.path.text())),
            ("verb", optional(&self.verb).or(Some("*"))),
            ("type", optional(&self.kind)),
            ("modules", optional(&self.modules)),
            ("scriptProcessor", optional(&self.script_processor)),
            ("resourceType", optional(&self.resource_type)),
            ("requireAccess", optional(&self.require_access)),
            ("preCondition", optional(&self.pre_condition)),
        ];
        addition(
            "system.webServer/handlers",
            self.site.as_ref(),
            attributes,
            true,
        )
    }
}

impl Recipe {
    /// Checks that no two sites have a name that is the same to IIS.
    fn check_site_names(&self, sites: &[SiteEntry]) -> Result<()> {
        let mut known = BTreeSet::new();
        for SiteEntry { name, .. } in sites {
            if !known.insert(name.value.to_string().to_lowercase()) {
                return Err(self.error(name, format!("two sites have the name {}", name.value)));
            }
        }
        Ok(())
    }

    fn site(&self, entry: SiteEntry) -> Result<Site> {
        if entry.bindings.is_empty() {
            return Err(self.error(&entry.name, "a site without bindings cannot be reached"));
        }
        let root = Application {
            app_pool: entry.app_pool.map(|it| it.value),
            folders: self.folders(entry.path, entry.virtual_directories)?,
            settings: BTreeMap::new(),
        };
        let mut applications = BTreeMap::from([(UrlPath::root(), root)]);
        let mut known = BTreeMap::new();
        for (document::Text(path), application) in entry.applications {
            if path == UrlPath::root() {
                let problem = format!("the application {path} is the site itself: set it there");
                return Err(self.error(&application.path, problem));
            }
            self.check_new_path(&path, &mut known, &application.path)?;
            let new = Application {
                app_pool: application.app_pool.map(|it| it.value),
                folders: self.folders(application.path, application.virtual_directories)?,
                settings: application.settings,
            };
            applications.insert(path, new);
        }
        Ok(Site {
            name: entry.name.value,
            id: entry.id.map(|it| it.value),
            bindings: entry.bindings,
            settings: entry.settings,
            applications,
        })
    }

    /// The folders of an application, by their paths in its URLs.
    fn folders(
        &self,
        root: Field<ImagePath>,
        others: Folders,
    ) -> Result<BTreeMap<UrlPath, ImagePath>> {
        let mut folders = BTreeMap::from([(UrlPath::root(), root.value)]);
        let mut known = BTreeMap::new();
        for (document::Text(path), folder) in others {
            if path == UrlPath::root() {
                return Err(self.error(&folder, "path sets the folder of /"));
            }
            self.check_new_path(&path, &mut known, &folder)?;
            folders.insert(path, folder.value);
        }
        Ok(folders)
    }

    /// Rejects a path in URLs that is the same to IIS as one before it.
    fn check_new_path(
        &self,
        path: &UrlPath,
        known: &mut BTreeMap<String, UrlPath>,
        at: &Field<ImagePath>,
    ) -> Result<()> {
        match known.insert(path.as_str().to_lowercase(), path.clone()) {
            Some(other) => {
                Err(self.error(at, format!("{other} and {path} are the same path to IIS")))
            }
            None => Ok(()),
        }
    }

    fn module(&self, entry: &ModuleEntry) -> Result<Vec<ConfigEdit>> {
        let name = ("name", Some(entry.name.text()));
        let image = entry.image.as_ref().map(Value::text);
        let kind = entry.kind.as_ref().map(Value::text);
        let condition = entry.pre_condition.as_ref().map(Value::text);
        if image.is_some() && kind.is_some() {
            let problem = "a module requires either image (native) or type (managed)";
            return Err(self.error(&entry.name, problem));
        }
        let native = image.map(|image| {
            let attributes = [name, ("image", Some(image)), ("preCondition", condition)];
            addition("system.webServer/globalModules", None, attributes, false)
        });
        let attributes = [name, ("type", kind), ("preCondition", kind.and(condition))];
        let site = entry.site.as_ref();
        let enabled = addition("system.webServer/modules", site, attributes, false);
        Ok(native.into_iter().chain([enabled]).collect())
    }

    pub(super) fn config(&self, entry: &ConfigEntry) -> Result<Vec<ConfigEdit>> {
        let cleared = plain(&entry.clear).into_iter();
        let mut changes: Vec<ConfigChange> = cleared
            .map(|element| ConfigChange::Clear { element })
            .collect();
        for EntryPath(entry) in plain(&entry.remove) {
            changes.push(ConfigChange::Remove { entry });
        }
        for (fields, first) in [(&entry.add, false), (&entry.add_first, true)] {
            let added = plain(fields).into_iter();
            changes.extend(added.map(|EntryPath(entry)| ConfigChange::Add { entry, first }));
        }
        for EntryPath(entry) in plain(&entry.ensure) {
            changes.push(ConfigChange::Ensure { entry });
        }
        changes.extend(
            entry
                .delegate
                .map(|allowed| ConfigChange::Delegate { allowed }),
        );
        for (path, field) in &entry.set {
            let (element, attribute) = ElementPath::with_attribute(path)
                .map_err(|problem| self.error(field, problem.to_string()))?;
            changes.push(ConfigChange::Set {
                element,
                attribute,
                value: field.value.0.clone(),
            });
        }
        if changes.is_empty() {
            let problem = "the entry changes nothing: give set, add, add_first, ensure, remove, clear or \
                 delegate";
            return Err(self.error(&entry.section, problem));
        }
        let edits = changes.into_iter().map(|change| ConfigEdit {
            section: entry.section.value.clone(),
            location: entry.location.as_ref().map(|field| field.value.clone()),
            change,
        });
        Ok(edits.collect())
    }
}

#[cfg(test)]
mod tests;
