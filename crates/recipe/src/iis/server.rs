//! The server's own configuration as a recipe writes it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use wincimg_iis::config::{Change, ConfigEdit, ElementPath, Location, is_value};
use wincimg_iis::{AppPool, Application, Site, UrlPath};
use wincimg_windows::path::ImagePath;

use crate::text::{Pairs, Text, Texts, Values};
use crate::{Recipe, RecipeError};

/// An application pool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"api\", settings = { managedRuntimeVersion = \"\" } }"
)]
pub(super) struct AppPoolEntry {
    /// The pool's name.
    name: Text,
    /// Attributes as appcmd names them, such as processModel.idleTimeout = "00:00:00".
    #[serde(default)]
    settings: Pairs,
    /// Variables that the pool's processes get beside their own.
    #[serde(default)]
    environment: BTreeMap<String, Text>,
}

/// A site.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"Api\", path = 'C:\\api', bindings = [\"http/*:8080:\"] }"
)]
pub(super) struct SiteEntry {
    /// The site's name.
    name: Text,
    /// The site's number, if it is new; the one after the highest unless another is given.
    id: Option<Text>,
    /// The folder with the site's files.
    path: Text,
    /// The application pool that it runs in; the one that the server has for all unless another is
    /// given.
    app_pool: Option<Text>,
    /// How the site is reached, and no other way: PROTOCOL/ADDRESS:PORT:HOST, such as http/*:80:.
    bindings: Texts,
    /// Attributes as appcmd names them, such as limits.maxConnections = 100.
    #[serde(default)]
    settings: Pairs,
    /// Applications, by their paths in URLs.
    #[serde(default)]
    applications: BTreeMap<String, ApplicationEntry>,
    /// The folders of virtual directories, by their paths in URLs.
    #[serde(default)]
    virtual_directories: BTreeMap<String, Text>,
}

/// An application of a site.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { path = 'C:\\api', app_pool = \"api\" }"
)]
struct ApplicationEntry {
    /// The folder with the application's files.
    path: Text,
    /// The application pool that it runs in; the one that the server has for all unless another is
    /// given.
    app_pool: Option<Text>,
    /// Attributes as appcmd names them, such as preloadEnabled = true.
    #[serde(default)]
    settings: Pairs,
    /// The folders of virtual directories, by their paths in the application's URLs.
    #[serde(default)]
    virtual_directories: BTreeMap<String, Text>,
}

/// What answers requests for certain paths.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"php\", path = \"*.php\", modules = \"FastCgiModule\" }"
)]
pub(super) struct HandlerEntry {
    /// The handler's name.
    name: Text,
    /// The paths, such as *.php.
    path: Text,
    /// The verbs, with commas; all unless others are given.
    verb: Option<Text>,
    /// The modules that answer, with commas.
    modules: Option<Text>,
    /// The managed type that answers.
    #[serde(rename = "type")]
    kind: Option<Text>,
    /// The program of a CGI or ISAPI handler.
    script_processor: Option<Text>,
    /// What the path has to be: File, Directory, Either or Unspecified.
    resource_type: Option<Text>,
    /// Which access the handler needs: None, Read, Write, Script or Execute.
    require_access: Option<Text>,
    /// Where it counts, such as bitness64.
    pre_condition: Option<Text>,
    /// The site, or the path below one, that it is for; the whole server unless one is given.
    site: Option<Text>,
}

/// A module of IIS.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"RewriteModule\", image = 'C:\\rewrite.dll' }"
)]
pub(super) struct ModuleEntry {
    /// The module's name.
    name: Text,
    /// The file of a native module, which the server is told of.
    image: Option<Text>,
    /// The type of a managed module.
    #[serde(rename = "type")]
    kind: Option<Text>,
    /// Where it counts, such as managedHandler.
    pre_condition: Option<Text>,
    /// The site, or the path below one, that it is for; the whole server unless one is given.
    site: Option<Text>,
}

/// Changes of a section; in this order: clear, remove, add, set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { section = \"system.webServer/httpErrors\", set = { errorMode = \"Detailed\" } }"
)]
pub(crate) struct ConfigEntry {
    /// The section's path, such as system.webServer/security/requestFiltering.
    section: Text,
    /// The site, or the path below one, that it is for; the whole server unless one is given.
    location: Option<Text>,
    /// Elements and attributes of which is taken back what is set here.
    #[serde(default)]
    clear: Vec<Text>,
    /// Entries to take away, such as fileExtensions.[fileExtension='.asp'].
    #[serde(default)]
    remove: Vec<Text>,
    /// Entries to have in place of those with the same key, such as [value='index.html'].
    #[serde(default)]
    add: Vec<Text>,
    /// The same, before all that is there.
    #[serde(default)]
    add_first: Vec<Text>,
    /// Entries to have unless there is one with the same key.
    #[serde(default)]
    ensure: Vec<Text>,
    /// Whether files below may set the section, as appcmd's lock and unlock say.
    delegate: Option<bool>,
    /// Attributes to set, such as "requestLimits.maxAllowedContentLength" = 1000000.
    #[serde(default)]
    set: BTreeMap<String, Text>,
    /// The layer that it goes into; the recipe's last where absent.
    pub(crate) layer: Option<Text>,
}

impl Recipe {
    pub(super) fn app_pool(
        &self,
        entry: &AppPoolEntry,
        values: &Values,
    ) -> Result<AppPool, RecipeError> {
        let mut environment = BTreeMap::new();
        for (name, text) in &entry.environment {
            let value = self.entry_value(text, values)?;
            if name.is_empty() || name.contains('=') || !is_value(name) {
                return Err(self.error(text, format!("invalid name of a variable: {name:?}")));
            }
            environment.insert(name.clone(), value);
        }
        Ok(AppPool {
            name: self.parsed(&entry.name, values)?,
            settings: self.settings(&entry.settings, values)?,
            environment,
        })
    }

    pub(super) fn site(&self, entry: &SiteEntry, values: &Values) -> Result<Site, RecipeError> {
        let items = self.items(&entry.bindings, values)?;
        let bindings = items.iter().map(|text| self.read(text));
        let mut applications = BTreeMap::new();
        let root = Application {
            app_pool: self.parsed_option(entry.app_pool.as_ref(), values)?,
            folders: self.folders(&entry.path, &entry.virtual_directories, values)?,
            settings: BTreeMap::new(),
        };
        applications.insert(self.url_path("/", &entry.path)?, root);
        for (path, application) in &entry.applications {
            let new = Application {
                app_pool: self.parsed_option(application.app_pool.as_ref(), values)?,
                folders: self.folders(
                    &application.path,
                    &application.virtual_directories,
                    values,
                )?,
                settings: self.settings(&application.settings, values)?,
            };
            let path = self.url_path(path, &application.path)?;
            if applications.insert(path.clone(), new).is_some() {
                let problem = format!("the application {path} is the site itself: set it there");
                return Err(self.error(&application.path, problem));
            }
        }
        let site = Site {
            name: self.parsed(&entry.name, values)?,
            id: self.parsed_option(entry.id.as_ref(), values)?,
            bindings: bindings.collect::<Result<_, _>>()?,
            settings: self.settings(&entry.settings, values)?,
            applications,
        };
        if site.bindings.is_empty() {
            return Err(self.error(&entry.name, "a site without bindings answers nobody"));
        }
        Ok(site)
    }

    /// The folders of an application, by their paths in its URLs.
    fn folders(
        &self,
        root: &Text,
        others: &BTreeMap<String, Text>,
        values: &Values,
    ) -> Result<BTreeMap<UrlPath, ImagePath>, RecipeError> {
        let mut folders = BTreeMap::new();
        folders.insert(self.url_path("/", root)?, self.parsed(root, values)?);
        for (path, folder) in others {
            let path = self.url_path(path, folder)?;
            if folders.insert(path, self.parsed(folder, values)?).is_some() {
                return Err(self.error(folder, "the folder of / is given by path"));
            }
        }
        Ok(folders)
    }

    fn url_path(&self, path: &str, at: &Text) -> Result<UrlPath, RecipeError> {
        self.read(&at.with_value(path))
    }

    pub(super) fn handler(
        &self,
        entry: &HandlerEntry,
        values: &Values,
    ) -> Result<ConfigEdit, RecipeError> {
        let verb = entry.verb.clone();
        let verb = verb.unwrap_or_else(|| entry.name.with_value("*"));
        let entry_path = self.entry_of(
            [
                ("name", Some(&entry.name)),
                ("path", Some(&entry.path)),
                ("verb", Some(&verb)),
                ("type", entry.kind.as_ref()),
                ("modules", entry.modules.as_ref()),
                ("scriptProcessor", entry.script_processor.as_ref()),
                ("resourceType", entry.resource_type.as_ref()),
                ("requireAccess", entry.require_access.as_ref()),
                ("preCondition", entry.pre_condition.as_ref()),
            ],
            values,
        )?;
        let change = Change::Add {
            entry: entry_path,
            first: true,
        };
        let section = entry.name.with_value("system.webServer/handlers");
        self.edit(&section, entry.site.as_ref(), change, values)
    }

    pub(super) fn module(
        &self,
        entry: &ModuleEntry,
        values: &Values,
    ) -> Result<Vec<ConfigEdit>, RecipeError> {
        if entry.image.is_some() && entry.kind.is_some() {
            let problem = "a module has either an image, if it is native, or a type";
            return Err(self.error(&entry.name, problem));
        }
        let added = |entry| Change::Add {
            entry,
            first: false,
        };
        let mut edits = Vec::new();
        if entry.image.is_some() {
            let native = self.entry_of(
                [
                    ("name", Some(&entry.name)),
                    ("image", entry.image.as_ref()),
                    ("preCondition", entry.pre_condition.as_ref()),
                ],
                values,
            )?;
            let section = entry.name.with_value("system.webServer/globalModules");
            edits.push(self.edit(&section, None, added(native), values)?);
        }
        let managed = entry.kind.as_ref().and(entry.pre_condition.as_ref());
        let enabled = self.entry_of(
            [
                ("name", Some(&entry.name)),
                ("type", entry.kind.as_ref()),
                ("preCondition", managed),
            ],
            values,
        )?;
        let section = entry.name.with_value("system.webServer/modules");
        edits.push(self.edit(&section, entry.site.as_ref(), added(enabled), values)?);
        Ok(edits)
    }

    pub(crate) fn config(
        &self,
        entry: &ConfigEntry,
        values: &Values,
    ) -> Result<Vec<ConfigEdit>, RecipeError> {
        let mut changes = Vec::new();
        for text in &entry.clear {
            let element = self.parsed(text, values)?;
            changes.push(Change::Clear { element });
        }
        for text in &entry.remove {
            let entry = self.path(text, &self.resolve(text, values)?, ElementPath::with_entry)?;
            changes.push(Change::Remove { entry });
        }
        for (texts, first) in [(&entry.add, false), (&entry.add_first, true)] {
            for text in texts {
                let entry =
                    self.path(text, &self.resolve(text, values)?, ElementPath::with_entry)?;
                changes.push(Change::Add { entry, first });
            }
        }
        for text in &entry.ensure {
            let entry = self.path(text, &self.resolve(text, values)?, ElementPath::with_entry)?;
            changes.push(Change::Ensure { entry });
        }
        if let Some(allowed) = entry.delegate {
            changes.push(Change::Delegate { allowed });
        }
        for (path, text) in &entry.set {
            let (element, attribute) = self.path(text, path, ElementPath::with_attribute)?;
            changes.push(Change::Set {
                element,
                attribute,
                value: self.value(&text.with_value(&self.resolve(text, values)?))?,
            });
        }
        if changes.is_empty() {
            let problem = "nothing is changed here: give set, add, add_first, ensure, remove, clear or \
                 delegate";
            return Err(self.error(&entry.section, problem));
        }
        let changes = changes.into_iter();
        changes
            .map(|change| self.edit(&entry.section, entry.location.as_ref(), change, values))
            .collect()
    }

    fn path<T>(
        &self,
        at: &Text,
        path: &str,
        read: impl Fn(&str) -> Result<T, wincimg_iis::config::PathSyntaxError>,
    ) -> Result<T, RecipeError> {
        read(path).map_err(|problem| self.error(at, problem.to_string()))
    }

    fn edit(
        &self,
        section: &Text,
        location: Option<&Text>,
        change: Change,
        values: &Values,
    ) -> Result<ConfigEdit, RecipeError> {
        let location: Option<Location> = self.parsed_option(location, values)?;
        Ok(ConfigEdit {
            section: self.parsed(section, values)?,
            location,
            change,
        })
    }

    /// An entry with the attributes that are given.
    fn entry_of<const N: usize>(
        &self,
        attributes: [(&str, Option<&Text>); N],
        values: &Values,
    ) -> Result<ElementPath, RecipeError> {
        let mut given = Vec::new();
        for (name, text) in attributes {
            if let Some(text) = text {
                given.push((name, self.entry_value(text, values)?));
            }
        }
        let given = given.iter().map(|(name, value)| (*name, value.as_str()));
        Ok(ElementPath::default().entry(given))
    }

    /// A value that appcmd takes in quotes.
    fn entry_value(&self, text: &Text, values: &Values) -> Result<String, RecipeError> {
        let value = self.resolve(text, values)?;
        if !is_value(&value) {
            let problem = "expected a value on one line, without ', which appcmd does not take";
            return Err(self.error(text, problem));
        }
        Ok(value)
    }
}
