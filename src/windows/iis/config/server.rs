//! The server's own configuration, `applicationHost.config`.

use super::apply::{Above, EditError, Editing, Level};
use super::document::{Document, Id, Place};
use super::path::{Selector, Step};
use super::schema::Schema;
use super::{Change, ConfigEdit, ConfigError, ElementPath, Location, SectionPath};

/// The section with the sites.
pub const SITES: &str = "system.applicationHost/sites";

/// The section with the application pools.
pub const APP_POOLS: &str = "system.applicationHost/applicationPools";

/// An `applicationHost.config` on its way.
#[derive(Debug)]
pub struct Server {
    document: Document,
    schema: Schema,
}

/// What `configSections` says about a section.
#[derive(Debug, Clone, Copy)]
struct Declared {
    id: Id,
    /// Whether it may be set for a site.
    takes_location: bool,
}

impl Server {
    /// Reads the file.
    pub fn read(bytes: &[u8], schema: Schema) -> Result<Self, ConfigError> {
        let document = Document::read(bytes, "configuration")?;
        Ok(Self { document, schema })
    }

    /// Changes a section.
    pub fn apply(&mut self, edit: &ConfigEdit) -> Result<(), EditError> {
        let declared = self.declared(&edit.section)?;
        if edit.location.is_some() && !declared.takes_location {
            return Err(EditError::ServerOnly(edit.section.to_string()));
        }
        self.check_names(edit)?;
        let level = self.level(edit.location.as_ref());
        let change = self.with_site_id(edit);
        let mut editing = Editing {
            document: &mut self.document,
            schema: &self.schema,
            section: &edit.section,
            level: &level,
        };
        editing.apply(change.as_ref().unwrap_or(&edit.change))?;
        // A location that was made for nothing.
        let own = level.roots[0];
        if edit.location.is_some() && self.document.children(own).next().is_none() {
            self.document.remove(own);
        }
        Ok(())
    }

    /// The file with its changes; none where nothing changed.
    pub fn finish(&self) -> Option<Vec<u8>> {
        self.document.is_changed().then(|| self.document.write())
    }

    /// Whether a site's `web.config` may have a section.
    pub fn is_delegated(&self, section: &SectionPath, site: &Location) -> Result<bool, EditError> {
        let declared = self.declared(section)?;
        let default = self.document.attribute(declared.id, "overrideModeDefault");
        let mut is_allowed = default != Some("Deny");
        let mut above: Vec<(usize, Id)> = self
            .locations()
            .filter(|(_, path)| is_server(path) || site.is(path) || site.is_below(path))
            .map(|(id, path)| (path.len(), id))
            .collect();
        above.sort_unstable();
        for (_, location) in above {
            if self.has_section(location, section) {
                let mode = self.document.attribute(location, "overrideMode");
                let old = self.document.attribute(location, "allowOverride");
                is_allowed = match (mode, old) {
                    (Some("Allow"), _) | (_, Some("true")) => true,
                    (Some("Deny"), _) | (_, Some("false")) => false,
                    _ => is_allowed,
                };
            }
        }
        Ok(is_allowed)
    }

    fn has_section(&self, location: Id, section: &SectionPath) -> bool {
        let mut at = Some(location);
        for name in section.names() {
            at = at.and_then(|at| self.document.named(at, name).next());
        }
        at.is_some()
    }

    fn declared(&self, section: &SectionPath) -> Result<Declared, EditError> {
        let root = self.document.root();
        let mut declared = Vec::new();
        for sections in self.document.named(root, "configSections") {
            self.declarations(sections, "", &mut declared);
        }
        let found = declared.iter().find(|(name, _)| name == section.as_str());
        let Some((_, id)) = found else {
            return Err(EditError::Undeclared {
                section: section.to_string(),
                known: declared.into_iter().map(|(name, _)| name).collect(),
            });
        };
        let attribute = |name| self.document.attribute(*id, name);
        let is_server_only = matches!(
            attribute("allowDefinition"),
            Some("AppHostOnly" | "MachineOnly" | "MachineToRootWeb")
        );
        Ok(Declared {
            id: *id,
            takes_location: !is_server_only && attribute("allowLocation") != Some("false"),
        })
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
        let locations = self.document.named(self.document.root(), "location");
        locations.map(|id| (id, self.document.attribute(id, "path").unwrap_or_default()))
    }

    /// The level of the server or of a location, which is made if it is not there.
    fn level(&mut self, location: Option<&Location>) -> Level {
        let of_server = std::iter::once(self.document.root());
        let of_server: Vec<Id> = of_server
            .chain(
                self.locations()
                    .filter(|(_, path)| is_server(path))
                    .map(|(id, _)| id),
            )
            .collect();
        let Some(location) = location else {
            return Level {
                roots: of_server,
                above: Above::Seen(Vec::new()),
                below: self
                    .locations()
                    .filter(|(_, path)| !is_server(path))
                    .map(|(id, _)| id)
                    .collect(),
            };
        };
        let mut above: Vec<(usize, Id)> = self
            .locations()
            .filter(|(_, path)| !is_server(path) && location.is_below(path))
            .map(|(id, path)| (path.len(), id))
            .collect();
        above.sort_unstable();
        let mut levels = vec![of_server];
        for group in above.chunk_by(|one, other| one.0 == other.0) {
            levels.push(group.iter().map(|(_, id)| *id).collect());
        }
        let mut own: Vec<Id> = self
            .locations()
            .filter(|(_, path)| location.is(path))
            .map(|(id, _)| id)
            .collect();
        if own.is_empty() {
            let root = self.document.root();
            let path = [("path", location.as_str())];
            own.push(self.document.insert(root, Place::End, "location", path));
        }
        let is_below = |path: &str| {
            path.parse::<Location>()
                .is_ok_and(|path| path.is_below(location.as_str()))
        };
        Level {
            roots: own,
            above: Above::Seen(levels),
            below: self
                .locations()
                .filter(|(_, path)| is_below(path))
                .map(|(id, _)| id)
                .collect(),
        }
    }

    /// The sites or the pools.
    fn entries(&self, section: &str, entry: &str) -> Vec<Id> {
        let mut at = vec![self.document.root()];
        for name in section.split('/').chain(std::iter::once(entry)) {
            at = at
                .into_iter()
                .flat_map(|id| self.document.named(id, name))
                .collect();
        }
        at
    }

    fn names(&self, section: &str, entry: &str) -> Vec<String> {
        let entries = self.entries(section, entry).into_iter();
        let names = entries.filter_map(|id| self.document.attribute(id, "name"));
        names.map(str::to_owned).collect()
    }

    /// Refuses a location or a pool that is not there: IIS would answer nobody.
    fn check_names(&self, edit: &ConfigEdit) -> Result<(), EditError> {
        let has = |known: &[String], name: &str| {
            known
                .iter()
                .any(|known| known.to_lowercase() == name.to_lowercase())
        };
        if let Some(location) = &edit.location {
            let site = location.as_str().split('/').next().unwrap_or_default();
            let known = self.names(SITES, "site");
            if !has(&known, site) {
                let name = site.to_owned();
                return Err(EditError::NoSite { name, known });
            }
        }
        let pool = match &edit.change {
            Change::Set {
                attribute, value, ..
            } if edit.section.as_str() == SITES && attribute == "applicationPool" => Some(value),
            _ => None,
        };
        if let Some(pool) = pool {
            let known = self.names(APP_POOLS, "add");
            if !has(&known, pool) {
                let name = pool.clone();
                return Err(EditError::NoPool { name, known });
            }
        }
        Ok(())
    }

    /// A new site with the number after the highest; none where nothing is to be added.
    fn with_site_id(&self, edit: &ConfigEdit) -> Option<Change> {
        let (Change::Add { entry, .. } | Change::Ensure { entry }) = &edit.change else {
            return None;
        };
        let [Step::Entry(Selector(attributes))] = entry.steps() else {
            return None;
        };
        if edit.section.as_str() != SITES || attributes.iter().any(|(name, _)| name == "id") {
            return None;
        }
        let sites = self.entries(SITES, "site").into_iter();
        let highest = sites
            .filter_map(|id| self.document.attribute(id, "id")?.parse::<u32>().ok())
            .max();
        let mut attributes = attributes.clone();
        let id = highest.unwrap_or(0).saturating_add(1);
        attributes.push(("id".to_owned(), id.to_string()));
        let entry = ElementPath::default().with(Step::Entry(Selector(attributes)));
        Some(match &edit.change {
            Change::Add { first, .. } => Change::Add {
                entry,
                first: *first,
            },
            _ => Change::Ensure { entry },
        })
    }
}

/// Whether a location is about the whole server.
fn is_server(path: &str) -> bool {
    matches!(path, "" | "." | "/")
}
