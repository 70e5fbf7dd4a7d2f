//! Converts settings to edits of IIS's configuration.

use super::change::{bindings, edit, entry_named, set};
use super::config::{APP_POOLS, ConfigChange, ConfigEdit, ElementPath, SITES};
use super::settings::{AppPool, Application, IisSettings, Site};
use super::{Attribute, Binding, DEFAULT_PATH};

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
