//! Settings of an image's IIS: its files, and the edits of its configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use wincimg_windows::path::ImagePath;
use wincimg_windows::variables::filled_in;

use super::DEFAULT_PATH;
use super::change::{bindings, edit, entry_named, set};
use super::config::{APP_POOLS, ConfigChange, ConfigEdit, ElementPath, SITES};
use super::text::{Attribute, Binding, DocumentName, FileExtension, MimeType, Name, UrlPath};

#[cfg(feature = "document")]
use super::document::{environment, pool_settings};
#[cfg(feature = "document")]
use schemars::JsonSchema;
#[cfg(feature = "document")]
use serde::Deserialize;
#[cfg(feature = "document")]
use wincimg_common::document::{Pairs, Text};

/// Settings of IIS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IisSettings {
    /// The site whose `web.config` is written.
    pub site: Name,
    /// The folder with the site's files; none if only the base's configuration names it.
    pub path: Option<ImagePath>,
    /// The file extensions that it may serve, in addition to the server's list.
    pub file_extensions: BTreeSet<FileExtension>,
    /// The content type of files, by their extension.
    pub mime_types: BTreeMap<FileExtension, MimeType>,
    /// Its default documents, before the server's.
    pub default_documents: Vec<DocumentName>,
    /// The pool that the site runs in.
    pub app_pool: Name,
    /// Settings of that pool, by the path of their attribute.
    pub app_pool_settings: BTreeMap<Attribute, String>,
    /// Application pools, created if the base does not have them.
    pub app_pools: Vec<AppPool>,
    /// Sites, created if the base does not have them.
    pub sites: Vec<Site>,
    /// Further changes to the server's configuration, in order.
    pub config: Vec<ConfigEdit>,
}

/// An application pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "document", derive(Deserialize, JsonSchema))]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"api\", settings = { managedRuntimeVersion = \"\" } }"
)]
pub struct AppPool {
    /// The pool's name.
    pub name: Name,
    /// Attributes as appcmd names them, such as processModel.idleTimeout = "00:00:00".
    #[serde(default, deserialize_with = "pool_settings")]
    #[cfg_attr(feature = "document", schemars(with = "Pairs<String, String>"))]
    pub settings: BTreeMap<Attribute, String>,
    /// Additional environment variables of the pool's processes.
    #[serde(default, deserialize_with = "environment")]
    #[cfg_attr(feature = "document", schemars(with = "BTreeMap<String, Text>"))]
    pub environment: BTreeMap<String, String>,
}

/// A site in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Site {
    /// Its name.
    pub name: Name,
    /// Number of a new site; the highest plus one where absent.
    pub id: Option<u32>,
    /// All of its bindings.
    pub bindings: Vec<Binding>,
    /// Its settings, by the path of their attribute.
    pub settings: BTreeMap<Attribute, String>,
    /// Its applications, by their paths in URLs; `/` always exists.
    pub applications: BTreeMap<UrlPath, Application>,
}

/// An application of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Application {
    /// Its application pool; the one in the server's defaults where absent.
    pub app_pool: Option<Name>,
    /// Its folders, by their paths in its URLs; `/` always exists.
    pub folders: BTreeMap<UrlPath, ImagePath>,
    /// Its settings, by the path of their attribute.
    pub settings: BTreeMap<Attribute, String>,
}

/// The root of a site or an application, in URLs.
const ROOT: &str = "/";

impl IisSettings {
    /// Changes to the site's `web.config`.
    pub fn site_edits(&self) -> Vec<ConfigEdit> {
        let extensions = self.file_extensions.iter().map(|extension| {
            let entry = ElementPath::default()
                .element("fileExtensions")
                .entry([("fileExtension", extension.as_str()), ("allowed", "true")]);
            add("system.webServer/security/requestFiltering", entry, false)
        });
        let types = self.mime_types.iter().map(|(extension, kind)| {
            let entry = ElementPath::default().entry([
                ("fileExtension", extension.as_str()),
                ("mimeType", kind.as_str()),
            ]);
            add("system.webServer/staticContent", entry, false)
        });
        // Each is placed before the existing ones.
        let documents = self.default_documents.iter().rev().map(|document| {
            let entry = ElementPath::default()
                .element("files")
                .entry([("value", document.as_str())]);
            add("system.webServer/defaultDocument", entry, true)
        });
        extensions.chain(types).chain(documents).collect()
    }

    /// Changes to `applicationHost.config`, in order: pools before the sites that run in them, and
    /// sites before their settings.
    pub fn server_edits(&self) -> Vec<ConfigEdit> {
        let mut edits = Vec::new();
        edits.extend(self.app_pools.iter().flat_map(pool_edits));
        edits.extend(self.sites.iter().flat_map(site_edits));
        if let Some(path) = self.moved_path() {
            let folder = entry_named(self.site.as_str()).entry([("path", ROOT)]);
            let folder = folder.entry([("path", ROOT)]);
            edits.push(set(SITES, folder, "physicalPath", &path));
        }
        let pool = entry_named(self.app_pool.as_str());
        edits.extend(set_all(APP_POOLS, &pool, &self.app_pool_settings));
        edits.extend(self.config.iter().cloned());
        edits
    }

    /// The folder that the site of the base gets; none if it is the default one of IIS, or the
    /// settings describe the site in full.
    pub(crate) fn moved_path(&self) -> Option<String> {
        let path = self.path.as_ref()?.to_string();
        let is_own = |site: &Site| site.name.is_same(&self.site);
        (path != DEFAULT_PATH && !self.sites.iter().any(is_own)).then_some(path)
    }
}

fn pool_edits(pool: &AppPool) -> Vec<ConfigEdit> {
    let at = entry_named(pool.name.as_str());
    let mut edits = vec![ensure(APP_POOLS, at.clone())];
    edits.extend(set_all(APP_POOLS, &at, &pool.settings));
    edits.extend(environment_edits(pool));
    edits
}

/// The variables of a pool.
pub(super) fn environment_edits(pool: &AppPool) -> Vec<ConfigEdit> {
    let variables = entry_named(pool.name.as_str()).element("environmentVariables");
    let variables = pool.environment.iter().map(|(name, value)| {
        let entry = variables
            .clone()
            .entry([("name", name.as_str()), ("value", value)]);
        add(APP_POOLS, entry, false)
    });
    variables.collect()
}

fn site_edits(site: &Site) -> Vec<ConfigEdit> {
    let at = entry_named(site.name.as_str());
    let id = site.id.map(|id| id.to_string());
    let id = id.iter().map(|id| ("id", id.as_str()));
    let new = ElementPath::default().entry(std::iter::once(("name", site.name.as_str())).chain(id));
    let mut edits = vec![ensure(SITES, new)];
    edits.extend(
        site.applications
            .iter()
            .flat_map(|(path, application)| application_edits(&at, path.as_str(), application)),
    );
    let pairs = site.bindings.iter().map(Binding::parts);
    edits.push(bindings(site.name.as_str(), pairs));
    edits.extend(set_all(SITES, &at, &site.settings));
    edits
}

fn application_edits(site: &ElementPath, path: &str, application: &Application) -> Vec<ConfigEdit> {
    let at = site.clone().entry([("path", path)]);
    let mut edits = vec![ensure(SITES, at.clone())];
    if let Some(pool) = &application.app_pool {
        edits.push(set(SITES, at.clone(), "applicationPool", pool.as_str()));
    }
    for (path, folder) in &application.folders {
        let at = at.clone().entry([("path", path.as_str())]);
        edits.push(ensure(SITES, at.clone()));
        edits.push(set(SITES, at, "physicalPath", &folder.to_string()));
    }
    edits.extend(set_all(SITES, &at, &application.settings));
    edits
}

fn set_all<'a>(
    section: &'a str,
    at: &'a ElementPath,
    settings: impl IntoIterator<Item = (&'a Attribute, &'a String)>,
) -> impl Iterator<Item = ConfigEdit> {
    settings.into_iter().map(move |(attribute, value)| {
        let (element, last) = at.clone().dotted(attribute.as_str());
        set(section, element, last, value)
    })
}

fn add(section: &str, entry: ElementPath, first: bool) -> ConfigEdit {
    edit(section, ConfigChange::Add { entry, first })
}

fn ensure(section: &str, entry: ElementPath) -> ConfigEdit {
    edit(section, ConfigChange::Ensure { entry })
}

/// Path of the server's configuration.
const SERVER_CONFIG: &str = r"C:\Windows\System32\inetsrv\config\applicationHost.config";

/// Folder of the schema files of IIS and of its extensions.
const SCHEMA_FOLDER: &str = r"C:\Windows\System32\inetsrv\config\schema";

/// The server's own configuration.
pub fn server_config() -> Option<ImagePath> {
    SERVER_CONFIG.parse().ok()
}

/// The folder whose schema files IIS reads.
pub fn schema_folder() -> Option<ImagePath> {
    SCHEMA_FOLDER.parse().ok()
}

/// The path of a folder that the configuration names; none if an image cannot have it.
pub fn folder_path(text: &str) -> Option<ImagePath> {
    let path = filled_in(text, &[])?.replace('/', "\\");
    let path = path.trim_end_matches('\\');
    if path.eq_ignore_ascii_case("c:") {
        return Some(ImagePath::drive());
    }
    path.parse().ok()
}

/// The schema files among the names in that folder, in the order in which they are read.
pub fn schema_files<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let is_schema = |name: &&str| {
        let end = Path::new(name).extension();
        end.is_some_and(|end| end.eq_ignore_ascii_case("xml"))
    };
    let mut files: Vec<&str> = names.into_iter().filter(is_schema).collect();
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_configuration_have_variables_and_any_drive() {
        let path = |text: &str| folder_path(text).map(|path| path.to_string());
        let default = Some(r"C:\inetpub\wwwroot".to_owned());
        assert_eq!(path(r"%SystemDrive%\inetpub\wwwroot\"), default);
        assert_eq!(path("c:/"), Some(r"C:\".to_owned()));
        for text in [r"D:\shop", "D:", r"%OWN%\shop", r"\\server\share", "shop"] {
            assert_eq!(path(text), None, "{text}");
        }
    }

    #[test]
    fn every_schema_file_is_read_in_the_same_order() {
        assert!(server_config().is_some() && schema_folder().is_some());
        let names = ["rscaext.xml", "xml", "Ftp_schema.XML", "old.xml.bak", "é"];
        assert_eq!(schema_files(names), ["Ftp_schema.XML", "rscaext.xml"]);
    }
}
