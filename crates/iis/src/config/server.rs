//! The server configuration, `applicationHost.config`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::super::change::is_same;
use super::apply::{Level, SectionEditor};
use super::document::{Id, InsertPosition, XmlDocument};
use super::names::section_named;
use super::path::PathStep;
use super::schema::{EditError, Schema, UnknownName};
use super::{
    ConfigChange, ConfigEdit, ConfigError, ConfigLocation, ElementPath, Result, SectionPath,
};

pub(crate) const SITES: &str = "system.applicationHost/sites";

/// The section with the application pools.
pub const APP_POOLS: &str = "system.applicationHost/applicationPools";

/// An `applicationHost.config` that is edited.
#[derive(Debug)]
pub struct Server {
    document: XmlDocument,
    schema: Arc<Schema>,
}

/// A binding that two sites have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedBinding {
    /// The binding, as appcmd writes it.
    binding: String,
    sites: [String; 2],
}

impl fmt::Display for SharedBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            binding,
            sites: [one, other],
        } = self;
        write!(
            f,
            "the sites {one:?} and {other:?} have the binding {binding}, and Windows starts only one \
             of them: change or remove one, or stop a site with serverAutoStart = false"
        )
    }
}

/// Entry of `configSections` for a section.
#[derive(Debug, Clone, Copy)]
struct SectionDeclaration {
    id: Id,
    /// True if it may be set for a site.
    takes_location: bool,
}

impl Server {
    /// Reads the file.
    pub fn read(bytes: &[u8], schema: impl Into<Arc<Schema>>) -> Result<Self, ConfigError> {
        let document = XmlDocument::read(bytes, "configuration")?;
        let schema = schema.into();
        Ok(Self { document, schema })
    }

    /// Changes a section, which may have its last name alone.
    pub fn apply(&mut self, edit: &ConfigEdit) -> Result<()> {
        let section = self.find_section(edit.section.as_str());
        let edit = &ConfigEdit {
            section: section.unwrap_or_else(|_| edit.section.clone()),
            ..edit.clone()
        };
        let declared = self.declared(&edit.section)?;
        if edit.location.is_some() && !declared.takes_location {
            return Err(EditError::Refused(format!(
                "{} can be set for the whole server only: remove the location",
                edit.section
            )));
        }
        self.check_names(edit)?;
        if let ConfigChange::Delegate { allowed } = edit.change {
            self.delegate(edit, allowed)?;
            return Ok(());
        }
        let level = self.level(edit.location.as_ref());
        let change = self.with_site_id(edit);
        let mut editing = SectionEditor {
            document: &mut self.document,
            schema: &self.schema,
            section: &edit.section,
            level: &level,
        };
        editing.apply(change.as_ref().unwrap_or(&edit.change))?;
        // The location was created in vain.
        let own = level.roots[0];
        if edit.location.is_some() && self.document.children(own).next().is_none() {
            self.document.remove(own);
        }
        Ok(())
    }

    /// Its schema.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The file with its changes; none if nothing changed.
    pub fn finish(&self) -> Option<Vec<u8>> {
        self.document.is_changed().then(|| self.document.write())
    }

    /// Returns true if the `web.config` of a site may have a section; without a site, that of every
    /// site.
    pub fn is_delegated(
        &self,
        section: &SectionPath,
        site: Option<&ConfigLocation>,
    ) -> Result<bool> {
        let declared = self.declared(section)?;
        let default = self.document.attribute(declared.id, "overrideModeDefault");
        let mut is_allowed = default != Some("Deny");
        let is_above = |path: &str| {
            let is_of_site = |site: &ConfigLocation| site.is(path) || site.is_below(path);
            is_server(path) || site.is_some_and(is_of_site)
        };
        let above = self.by_length(is_above);
        for (_, location) in above {
            if self.section_in(location, section).is_some() {
                let mode = self.document.attribute(location, "overrideMode");
                is_allowed = match (mode, self.document.attribute(location, "allowOverride")) {
                    (Some("Allow"), _) | (_, Some("true")) => true,
                    (Some("Deny"), _) | (_, Some("false")) => false,
                    _ => is_allowed,
                };
            }
        }
        Ok(is_allowed)
    }

    /// Returns true if the `web.config` of a site may have a section, including those of .NET,
    /// which this file does not declare.
    pub(crate) fn is_allowed_in_site(
        &self,
        section: &SectionPath,
        of: &ConfigLocation,
    ) -> Result<bool> {
        match self.is_delegated(section, Some(of)) {
            Err(EditError::Undeclared(_)) if !is_of_iis(section.as_str()) => Ok(true),
            known => known,
        }
    }

    fn section_in(&self, location: Id, section: &SectionPath) -> Option<Id> {
        let found = self.document.find(location, section.names());
        found.first().copied()
    }

    /// Allows or prevents that files below set a section: moves the section into a `<location>`
    /// with that setting.
    fn delegate(&mut self, edit: &ConfigEdit, allowed: bool) -> Result<()> {
        let location = edit.location.as_ref();
        if self.is_delegated(&edit.section, location)? == allowed {
            return Ok(());
        }
        let path = location.map_or("", ConfigLocation::as_str);
        let mode = if allowed { "Allow" } else { "Deny" };
        let is_meant = |own: &str| match location {
            Some(location) => location.is(own),
            None => is_server(own),
        };
        let own = self.located(is_meant);
        let has_mode = |id: &&Id| self.document.attribute(**id, "overrideMode") == Some(mode);
        let known = own.iter().find(has_mode).copied();
        let root = self.document.root();
        let before = location.is_none().then_some(root);
        let mut before = before.into_iter().chain(own);
        let before = before.find_map(|at| self.section_in(at, &edit.section));
        let into = known.unwrap_or_else(|| {
            let attributes = [("path", path), ("overrideMode", mode)];
            self.document
                .insert(root, InsertPosition::End, "location", attributes)
        });
        let mut names: Vec<&str> = edit.section.names().collect();
        let last = names.pop().unwrap_or_default();
        let mut group = into;
        for name in names {
            let found = self.document.children_named(group, name).next();
            group =
                found.unwrap_or_else(|| self.document.insert(group, InsertPosition::End, name, []));
        }
        match before {
            Some(section) => self.document.relocate(section, group),
            None => {
                self.document.insert(group, InsertPosition::End, last, []);
            }
        }
        Ok(())
    }

    fn declared(&self, section: &SectionPath) -> Result<SectionDeclaration> {
        let declared = self.sections();
        let Some((_, id)) = declared.iter().find(|(name, _)| name == section.as_str()) else {
            let name = section.as_str();
            let is_elsewhere = name.contains('/') || self.schema.sections.contains_key(name);
            let message = if is_of_iis(name) {
                format!(
                    "IIS has no section {name:?} here: the base lacks the feature that it belongs to"
                )
            } else if is_elsewhere {
                format!(
                    "the section {name:?} is in another file than applicationHost.config: set it in \
                     the site's web.config, or in the file of .NET"
                )
            } else {
                format!("IIS has no section {name:?}")
            };
            let known = declared.into_iter().map(|(name, _)| name).collect();
            return Err(EditError::Undeclared(UnknownName::new(
                message, name, known,
            )));
        };
        let attribute = |name| self.document.attribute(*id, name);
        let is_server_only = matches!(
            attribute("allowDefinition"),
            Some("AppHostOnly" | "MachineOnly" | "MachineToRootWeb")
        );
        Ok(SectionDeclaration {
            id: *id,
            takes_location: !is_server_only && attribute("allowLocation") != Some("false"),
        })
    }

    /// The paths of the declared sections.
    fn sections(&self) -> Vec<(String, Id)> {
        let mut declared = Vec::new();
        let root = self.document.root();
        for sections in self.document.children_named(root, "configSections") {
            self.declarations(sections, "", &mut declared);
        }
        declared
    }

    /// The section of this path, or with this last name if it is unique. Those that the file declares
    /// come before others of the schema, which are for other files.
    pub(crate) fn find_section(&self, text: &str) -> Result<SectionPath> {
        let declared = self.sections();
        let names: Vec<&str> = declared.iter().map(|(name, _)| name.as_str()).collect();
        match section_named(&names, text) {
            Some(name) => Ok(SectionPath::of(name)),
            None => self.schema.find_section(text),
        }
    }

    fn declarations(&self, group: Id, path: &str, found: &mut Vec<(String, Id)>) {
        for child in self.document.children(group) {
            let name = self.document.attribute(child, "name").unwrap_or_default();
            match self.document.name(child) {
                "section" => found.push((format!("{path}{name}"), child)),
                "sectionGroup" => self.declarations(child, &format!("{path}{name}/"), found),
                _ => {}
            }
        }
    }

    /// The locations and their paths.
    fn locations(&self) -> impl Iterator<Item = (Id, &str)> {
        let locations = self
            .document
            .children_named(self.document.root(), "location");
        locations.map(|id| (id, self.document.attribute(id, "path").unwrap_or_default()))
    }

    /// The locations whose path fits.
    fn located(&self, fits: impl Fn(&str) -> bool) -> Vec<Id> {
        let locations = self.locations().filter(|(_, path)| fits(path));
        locations.map(|(id, _)| id).collect()
    }

    /// The locations whose path fits, with its length: the outermost first.
    fn by_length(&self, fits: impl Fn(&str) -> bool) -> Vec<(usize, Id)> {
        let locations = self.locations().filter(|(_, path)| fits(path));
        let mut found: Vec<_> = locations.map(|(id, path)| (path.len(), id)).collect();
        found.sort_unstable();
        found
    }

    /// Returns true if the entry that an edit adds or removes exists on its level or above.
    pub fn has(&mut self, edit: &ConfigEdit) -> Result<bool> {
        let level = self.found_level(edit.location.as_ref());
        let editing = SectionEditor {
            document: &mut self.document,
            schema: &self.schema,
            section: &edit.section,
            level: &level,
        };
        editing.has(&edit.change)
    }

    /// The level of the server or of a location, which is created if absent.
    fn level(&mut self, location: Option<&ConfigLocation>) -> Level {
        let mut level = self.found_level(location);
        if let (true, Some(location)) = (level.roots.is_empty(), location) {
            let root = self.document.root();
            let path = [("path", location.as_str())];
            let made = self
                .document
                .insert(root, InsertPosition::End, "location", path);
            level.roots.push(made);
        }
        level
    }

    /// The level of the server or of a location, without roots if the location does not exist.
    fn found_level(&self, location: Option<&ConfigLocation>) -> Level {
        let of_server = [vec![self.document.root()], self.located(is_server)].concat();
        let Some(location) = location else {
            return Level {
                roots: of_server,
                above: Some(Vec::new()),
                below: self.located(|path| !is_server(path)),
            };
        };
        let above = self.by_length(|path| !is_server(path) && location.is_below(path));
        let mut levels = vec![of_server];
        for group in above.chunk_by(|one, other| one.0 == other.0) {
            levels.push(group.iter().map(|(_, id)| *id).collect());
        }
        let is_below = |path: &str| {
            path.parse::<ConfigLocation>()
                .is_ok_and(|path| path.is_below(location.as_str()))
        };
        Level {
            roots: self.located(|path| location.is(path)),
            above: Some(levels),
            below: self.located(is_below),
        }
    }

    /// The sites or the pools.
    fn entries(&self, section: &str, entry: &str) -> Vec<Id> {
        let path = section.split('/').chain([entry]);
        self.document.find(self.document.root(), path)
    }

    /// The entries (sites, applications or folders) whose attribute is a prefix of a text, the
    /// longest first.
    fn within<'a>(&'a self, of: Id, name: &'a str, path: &str) -> Option<(Id, String)> {
        let mut found: Vec<(usize, Id)> = self
            .document
            .children_named(of, name)
            .filter_map(|id| {
                let own = self.document.attribute(id, "path")?.trim_end_matches('/');
                let rest = path.get(..own.len())?;
                let is_whole = matches!(path[own.len()..].chars().next(), None | Some('/'));
                (rest.eq_ignore_ascii_case(own) && is_whole).then_some((own.len(), id))
            })
            .collect();
        found.sort_unstable();
        let (length, id) = found.pop()?;
        Some((id, path[length..].to_owned()))
    }

    fn site(&self, name: &str) -> Option<Id> {
        let sites = self.entries(SITES, "site").into_iter();
        let own = |id: &Id| self.document.attribute(*id, "name");
        let is_meant = |own: &str| is_same(own, name);
        sites.into_iter().find(|id| own(id).is_some_and(is_meant))
    }

    pub(crate) fn has_site(&self, name: &str) -> bool {
        self.site(name).is_some()
    }

    /// The sites' names.
    pub fn sites(&self) -> Vec<String> {
        self.names(SITES, "site")
    }

    /// The application pools' names.
    pub fn app_pools(&self) -> Vec<String> {
        self.names(APP_POOLS, "add")
    }

    /// The folder of a site or of a path below it, as written; none if the site has no such folder.
    pub fn folder(&self, location: &ConfigLocation) -> Option<String> {
        let (site, path) = location
            .as_str()
            .split_once('/')
            .unwrap_or((location.as_str(), ""));
        let path = format!("/{path}");
        let path = path.trim_end_matches('/');
        let (application, rest) = self.within(self.site(site)?, "application", path)?;
        let (folder, rest) = self.within(application, "virtualDirectory", &rest)?;
        let folder = self.document.attribute(folder, "physicalPath")?;
        Some(format!(
            "{}{}",
            folder.trim_end_matches('\\'),
            rest.replace('/', "\\")
        ))
    }

    /// Returns true if a path below a site is an application rather than a folder.
    pub(crate) fn is_application(&self, site: &str, path: &str) -> bool {
        let site = self.site(site);
        let mut own = site
            .into_iter()
            .flat_map(|id| self.document.children_named(id, "application"));
        own.any(|id| {
            let own = self.document.attribute(id, "path");
            own.is_some_and(|own| own.eq_ignore_ascii_case(path))
        })
    }

    /// The pairs of sites that start with the server and have the same binding for HTTP, of which
    /// Windows starts only one.
    pub fn shared_bindings(&self) -> BTreeSet<SharedBinding> {
        let mut first = BTreeMap::new();
        let mut shared = BTreeSet::new();
        for site in self.entries(SITES, "site") {
            let name = self.document.attribute(site, "name").unwrap_or_default();
            if !self.starts(site) {
                continue;
            }
            for binding in self.document.find(site, ["bindings", "binding"]) {
                let text = |name| self.document.attribute(binding, name).unwrap_or_default();
                let protocol = text("protocol").to_ascii_lowercase();
                if !matches!(protocol.as_str(), "http" | "https") {
                    continue;
                }
                let binding = format!("{protocol}/{}", text("bindingInformation"));
                let known = first.entry(binding.to_lowercase()).or_insert(name);
                if *known != name {
                    let sites = [(*known).to_owned(), name.to_owned()];
                    shared.insert(SharedBinding { binding, sites });
                }
            }
        }
        shared
    }

    /// Returns true if a site starts with the server.
    fn starts(&self, site: Id) -> bool {
        let defaults = self.entries(SITES, "siteDefaults").into_iter();
        let mut places = std::iter::once(site).chain(defaults);
        let set = places.find_map(|id| self.document.attribute(id, "serverAutoStart"));
        set.is_none_or(|set| !set.eq_ignore_ascii_case("false"))
    }

    /// Returns true if the file has a `<location>` for a site or a path below it.
    pub(crate) fn has_locations(&self, site: &ConfigLocation) -> bool {
        let is_of_it = |path: &str| {
            let below = path.parse::<ConfigLocation>();
            site.is(path) || below.is_ok_and(|below| below.is_below(site.as_str()))
        };
        self.locations().any(|(_, path)| is_of_it(path))
    }

    fn names(&self, section: &str, entry: &str) -> Vec<String> {
        let entries = self.entries(section, entry).into_iter();
        let names = entries.filter_map(|id| self.document.attribute(id, "name"));
        names.map(str::to_owned).collect()
    }

    /// Rejects a location or a pool that does not exist: IIS would answer no request.
    fn check_names(&self, edit: &ConfigEdit) -> Result<()> {
        if let Some(location) = &edit.location {
            self.check_site(location)?;
        }
        let pool = match &edit.change {
            ConfigChange::Set {
                attribute, value, ..
            } if edit.section.as_str() == SITES && attribute == "applicationPool" => Some(value),
            _ => None,
        };
        match pool {
            Some(pool) => {
                check_known("application pool", pool, self.app_pools()).map_err(EditError::NoPool)
            }
            None => Ok(()),
        }
    }

    /// Rejects a location of a site that does not exist.
    pub fn check_site(&self, location: &ConfigLocation) -> Result<()> {
        let site = location.as_str().split('/').next().unwrap_or_default();
        Ok(check_known("site", site, self.sites())?)
    }

    /// The edit with a number for a new site, one above the highest; none if it needs none.
    fn with_site_id(&self, edit: &ConfigEdit) -> Option<ConfigChange> {
        let mut change = edit.change.clone();
        let (ConfigChange::Add { entry, .. }
        | ConfigChange::New { entry, .. }
        | ConfigChange::Ensure { entry }) = &mut change
        else {
            return None;
        };
        let [PathStep::Entry(site)] = entry.steps() else {
            return None;
        };
        if edit.section.as_str() != SITES || site.attributes().any(|(name, _)| name == "id") {
            return None;
        }
        let sites = self.entries(SITES, "site").into_iter();
        let highest = sites
            .filter_map(|id| self.document.attribute(id, "id")?.parse::<u32>().ok())
            .max();
        let id = highest.unwrap_or(0).saturating_add(1).to_string();
        *entry = ElementPath::default().entry(site.attributes().chain([("id", id.as_str())]));
        Some(change)
    }
}

fn check_known(what: &str, name: &str, known: Vec<String>) -> Result<(), UnknownName> {
    if known.iter().any(|known| is_same(known, name)) {
        return Ok(());
    }
    let message = format!("{what} {name:?} not found");
    Err(UnknownName::new(message, name, known))
}

/// Returns true if a section is in the files of IIS rather than those of .NET.
pub(crate) fn is_of_iis(section: &str) -> bool {
    let groups = [
        "system.applicationHost/",
        "system.webServer/",
        "system.ftpServer/",
    ];
    groups.iter().any(|group| section.starts_with(group))
}

/// Returns true if a location applies to the whole server.
fn is_server(path: &str) -> bool {
    matches!(path, "" | "." | "/")
}
