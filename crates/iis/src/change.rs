//! The changes that a command requests from IIS.

use wincimg_windows::invalid::InvalidText;

use super::config::{
    APP_POOLS, ConfigChange, ConfigEdit, ConfigLocation, EditError, ElementPath, SITES,
    SectionPath, Selector, Server, UnknownName, is_of_iis,
};

/// The changes of a command: all of them are made, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IisChange {
    /// The changes.
    pub edits: Vec<ConfigEdit>,
    /// Location whose `web.config` they change; the server's configuration where absent.
    pub into: Option<ConfigLocation>,
    /// A folder that must exist.
    pub folder: Option<RequiredFolder>,
    /// True if the command would start or stop something, which has no effect in an image.
    pub is_skipped: bool,
}

/// A folder that must exist for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredFolder {
    /// The folder, as written.
    pub path: String,
    /// True if the command fails without it; otherwise its effect without it is unknown.
    pub fails: bool,
}

/// Reason why a command is not executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IisChangeError {
    /// Its effect is unknown.
    #[error("{0}")]
    Unclear(String),
    /// It fails on Windows, too.
    #[error("{0}")]
    Fails(String),
}

/// What a command requests, or why it is not executed.
pub(super) type Result<T, E = IisChangeError> = std::result::Result<T, E>;

/// A command whose effect is unknown.
pub(super) fn unclear<T>(why: impl Into<String>) -> Result<T> {
    Err(IisChangeError::Unclear(why.into()))
}

/// A command that fails on Windows, too.
pub(super) fn failure<T>(why: impl Into<String>) -> Result<T> {
    Err(IisChangeError::Fails(why.into()))
}

impl From<InvalidText> for IisChangeError {
    fn from(error: InvalidText) -> Self {
        Self::Unclear(error.to_string())
    }
}

impl From<EditError> for IisChangeError {
    fn from(error: EditError) -> Self {
        match error {
            // Windows would write it, and then answer no request.
            error @ EditError::NoPool(_) => Self::Unclear(format!("{error}: add it first")),
            EditError::Undeclared(UnknownName { name, .. }) if !is_of_iis(&name) => {
                Self::Unclear(format!(
                    "the section {name:?} is in another file than applicationHost.config, such as \
                     those of .NET, which cannot be changed"
                ))
            }
            error => Self::Fails(error.to_string()),
        }
    }
}

impl IisChange {
    /// Changes to the server's configuration.
    pub(super) fn new(edits: Vec<ConfigEdit>) -> Self {
        Self {
            edits,
            ..Self::default()
        }
    }

    /// Changes to a section: of the location whose `web.config` has them, or at a location of the
    /// server's configuration.
    pub(super) fn at(
        (into, location): (Option<ConfigLocation>, Option<ConfigLocation>),
        section: &SectionPath,
        changes: Vec<ConfigChange>,
    ) -> Self {
        let edits = changes.into_iter().map(|change| ConfigEdit {
            section: section.clone(),
            location: location.clone(),
            change,
        });
        Self {
            into,
            ..Self::new(edits.collect())
        }
    }

    /// The changes, which need this folder.
    pub(super) fn with_folder(self, folder: Option<RequiredFolder>) -> Self {
        Self { folder, ..self }
    }

    /// The changes with the names in the schema's spelling.
    pub(super) fn normalized(self, server: &Server) -> Result<Self> {
        let edits = self.edits.into_iter();
        let edits: Result<_, _> = edits
            .map(|edit| server.schema().normalize_names(edit))
            .collect();
        Ok(Self {
            edits: edits?,
            ..self
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct NewSite<'a> {
    pub(super) name: &'a str,
    pub(super) id: Option<u32>,
    /// Protocols and binding information.
    pub(super) bindings: Vec<(String, String)>,
    pub(super) folder: Option<&'a str>,
    pub(super) app_pool: Option<&'a str>,
}

impl NewSite<'_> {
    pub(super) fn edits(&self) -> Vec<ConfigEdit> {
        let id = self.id.map(|id| id.to_string());
        let id = id.iter().map(|id| ("id", id.as_str()));
        let entry = std::iter::once(("name", self.name)).chain(id);
        let mut edits = vec![new(SITES, ElementPath::default().entry(entry))];
        if let Some(folder) = self.folder {
            edits.extend(application(self.name, "/", Some(folder), self.app_pool));
        }
        if !self.bindings.is_empty() {
            edits.push(bindings(self.name, pairs(&self.bindings)));
        }
        edits
    }
}

/// Sets the bindings of a site to these.
pub(super) fn bindings<'a>(
    site: &str,
    bindings: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> ConfigEdit {
    let entries = bindings.into_iter().map(binding_attributes);
    let change = ConfigChange::Fill {
        collection: entry_named(site).element("bindings"),
        entries: entries.map(Selector::from_attributes).collect(),
    };
    edit(SITES, change)
}

/// The attributes of a binding, by its protocol and its binding information.
pub(super) fn binding_attributes<'a>(
    (protocol, information): (&'a str, &'a str),
) -> [(&'a str, &'a str); 2] {
    [("protocol", protocol), ("bindingInformation", information)]
}

/// Protocols and binding information as borrowed texts.
pub(super) fn pairs(bindings: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    let bindings = bindings.iter();
    bindings.map(|(protocol, information)| (protocol.as_str(), information.as_str()))
}

/// A new application of a site, with its folder.
pub(super) fn application(
    site: &str,
    path: &str,
    folder: Option<&str>,
    app_pool: Option<&str>,
) -> Vec<ConfigEdit> {
    let at = entry_named(site).entry([("path", path)]);
    let mut edits = vec![new(SITES, at.clone())];
    edits.extend(app_pool.map(|pool| set(SITES, at.clone(), "applicationPool", pool)));
    if folder.is_some() {
        edits.extend(virtual_directory(site, path, "/", folder));
    }
    edits
}

/// A new folder of an application.
pub(super) fn virtual_directory(
    site: &str,
    application: &str,
    path: &str,
    folder: Option<&str>,
) -> Vec<ConfigEdit> {
    let at = folder_in(site, application, path);
    let mut edits = vec![new(SITES, at.clone())];
    edits.extend(folder.map(|folder| set(SITES, at, "physicalPath", folder)));
    edits
}

pub(super) fn folder_in(site: &str, application: &str, path: &str) -> ElementPath {
    let application = entry_named(site).entry([("path", application)]);
    application.entry([("path", path)])
}

/// Returns true if names of sites or pools are the same to IIS.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// A command that would start or stop a site or a pool of this name.
pub(super) fn check_exists(what: &str, name: &str, known: &[String]) -> Result<IisChange> {
    if known.iter().any(|known| is_same(known, name)) {
        return Ok(IisChange {
            is_skipped: true,
            ..IisChange::default()
        });
    }
    failure(format!("{what} {name:?} not found"))
}

pub(super) fn site_id(text: Option<String>) -> Result<Option<u32>> {
    let read = |text: String| {
        let number = text.parse();
        number.map_err(|_| IisChangeError::Fails(format!("invalid id {text:?}")))
    };
    text.map(read).transpose()
}

pub(super) fn without_site(name: &str, server: &Server) -> Result<ConfigEdit> {
    if server.has_locations(&name.parse()?) {
        return unclear(format!(
            "the server's configuration has settings for paths of {name:?}; it is unknown whether Windows removes them, too"
        ));
    }
    Ok(take(SITES, entry_named(name)))
}

/// A new application pool.
pub(super) fn app_pool(name: &str) -> ConfigEdit {
    new(APP_POOLS, entry_named(name))
}

pub(super) fn entry_named(name: &str) -> ElementPath {
    ElementPath::default().entry([("name", name)])
}

pub(super) fn new(section: &str, entry: ElementPath) -> ConfigEdit {
    let first = false;
    edit(section, ConfigChange::New { entry, first })
}

pub(super) fn take(section: &str, entry: ElementPath) -> ConfigEdit {
    edit(section, ConfigChange::Take { entry })
}

pub(super) fn set(section: &str, element: ElementPath, attribute: &str, value: &str) -> ConfigEdit {
    let (attribute, value) = (attribute.to_owned(), value.to_owned());
    let change = ConfigChange::Set {
        element,
        attribute,
        value,
    };
    edit(section, change)
}

/// A change for the whole server.
pub(super) fn edit(section: &str, change: ConfigChange) -> ConfigEdit {
    ConfigEdit {
        section: SectionPath::of(section),
        location: None,
        change,
    }
}

/// A site, the path of an application of it, and the path of a folder of that.
pub(super) fn split_folder(text: &str, server: &Server) -> (String, String, String) {
    let (site, path) = text.split_once('/').unwrap_or((text, ""));
    let path = format!("/{}", path.trim_matches('/'));
    let ends = path.match_indices('/').map(|(at, _)| at);
    let application = ends
        .chain([path.len()])
        .rev()
        .map(|end| &path[..end])
        .find(|path| !path.is_empty() && server.is_application(site, path))
        .unwrap_or("/");
    let rest = &path[application.trim_end_matches('/').len()..];
    let folder = if rest.is_empty() { "/" } else { rest };
    (site.to_owned(), application.to_owned(), folder.to_owned())
}

/// The location in a path such as `MACHINE/WEBROOT/APPHOST/Default Web Site`; none for the server.
/// Paths above `APPHOST` are rejected: they are files of .NET.
pub(super) fn location(path: &str) -> Result<Option<ConfigLocation>> {
    let path = path.trim_matches('/');
    let lower = path.to_lowercase();
    let host = "machine/webroot/apphost";
    let rest = match lower.strip_prefix(host) {
        Some("") => return Ok(None),
        Some(rest) if rest.starts_with('/') => path[host.len()..].trim_matches('/'),
        _ if lower == "machine" || lower.starts_with("machine/") => {
            return unclear(format!("{path} is a file of .NET, which cannot be changed"));
        }
        _ => path,
    };
    Ok((!rest.is_empty()).then(|| rest.parse()).transpose()?)
}
