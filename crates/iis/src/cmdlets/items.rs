//! PowerShell's own cmdlets on items of the drive `IIS:`.

use super::super::change::{
    IisChange, NewSite, Result, app_pool, bindings, entry_named, failure, folder_in, is_same,
    pairs, site_id, split_folder, take, unclear, without_site,
};
use super::super::config::{APP_POOLS, ConfigChange, ElementPath, SITES, SectionPath, Server};
use super::configuration::Section;
use super::sites::{check_site, new_application, new_folder, required};
use super::{CmdletCall, ParameterValue};

/// Attributes of the site's root application that `IIS:\Sites\NAME` shows.
const APPLICATION_ATTRIBUTES: [&str; 5] = [
    "applicationPool",
    "enabledProtocols",
    "preloadEnabled",
    "serviceAutoStartEnabled",
    "serviceAutoStartProvider",
];

/// Attributes of that application's folder that it shows.
const FOLDER_ATTRIBUTES: [&str; 1] = ["physicalPath"];

enum IisDriveItem {
    Pool(String),
    Site(String),
    /// A site, and a path below it.
    Below(String, String),
}

pub(super) fn read(call: CmdletCall<'_>, server: &Server) -> Result<IisChange> {
    let path = call.needed("path")?;
    let item = item(&path)?;
    match call.name {
        "new-item" => make(call, &item, server),
        "remove-item" => remove(call, &item, server),
        _ => change(call, &item, server),
    }
}

fn item(path: &str) -> Result<IisDriveItem> {
    let names: Vec<&str> = path
        .split(['\\', '/'])
        .filter(|name| !name.is_empty())
        .collect();
    let (folder, inside) = names.split_first().unwrap_or((&"", &[][..]));
    let unsupported = || unclear(format!(r"IIS:\{} is not supported", names.join(r"\")));
    if path.contains(['*', '?']) {
        return unsupported();
    }
    match (folder.to_ascii_lowercase().as_str(), inside) {
        ("apppools", [name]) => Ok(IisDriveItem::Pool((*name).to_owned())),
        ("sites", [site]) => Ok(IisDriveItem::Site((*site).to_owned())),
        ("sites", [site, below @ ..]) => {
            let path = format!("/{}", below.join("/"));
            Ok(IisDriveItem::Below((*site).to_owned(), path))
        }
        _ => unsupported(),
    }
}

fn make(call: CmdletCall<'_>, item: &IisDriveItem, server: &Server) -> Result<IisChange> {
    match item {
        IisDriveItem::Pool(name) => {
            call.without(&["bindings", "physicalpath", "applicationpool", "id", "value"])?;
            let mut known = server.app_pools().into_iter();
            if known.any(|known| is_same(&known, name)) && call.has("force") {
                return unclear("the effect of -Force on an existing pool is unknown");
            }
            Ok(IisChange::new(vec![app_pool(name)]))
        }
        IisDriveItem::Site(name) => make_site(call, name, server),
        IisDriveItem::Below(site, path) => {
            check_site(site, server)?;
            let kind = call.text("itemtype")?.unwrap_or_default().to_lowercase();
            match kind.as_str() {
                "application" => new_application(call, server, site, path),
                "virtualdirectory" => {
                    let (_, application, folder) = split_folder(&format!("{site}{path}"), server);
                    new_folder(call, site, &application, &folder)
                }
                _ => unclear(format!("the type {kind:?} is not supported")),
            }
        }
    }
}

fn make_site(call: CmdletCall<'_>, name: &str, server: &Server) -> Result<IisChange> {
    if server.has_site(name) {
        return if call.has("force") {
            unclear("the effect of -Force on an existing site is unknown")
        } else {
            failure(format!("site {name:?} already exists"))
        };
    }
    let ways = call.needed_value("bindings")?;
    let directory = call.needed("physicalpath")?;
    let pool = call.text("applicationpool")?;
    let site = NewSite {
        name,
        id: site_id(call.text("id")?)?,
        bindings: parse_bindings(ways)?,
        folder: Some(&directory),
        app_pool: pool.as_deref(),
    };
    Ok(IisChange::new(site.edits()).with_folder(required(call, &directory, false)))
}

fn parse_bindings(value: &ParameterValue) -> Result<Vec<(String, String)>> {
    value.items().iter().map(parse_binding).collect()
}

/// `@{protocol='http';bindingInformation='*:80:'}`
fn parse_binding(value: &ParameterValue) -> Result<(String, String)> {
    let unsupported =
        || unclear("unsupported binding: expected @{protocol='http';bindingInformation='*:80:'}");
    let ParameterValue::Table(entries) = value else {
        return unsupported();
    };
    let given = |name: &str| {
        let mut entries = entries.iter();
        let found = entries.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.text())
    };
    match (
        given("protocol"),
        given("bindingInformation"),
        entries.len(),
    ) {
        (Some(protocol), Some(information), 2) => Ok((protocol, information)),
        _ => unsupported(),
    }
}

fn remove(call: CmdletCall<'_>, item: &IisDriveItem, server: &Server) -> Result<IisChange> {
    if !call.has("recurse") {
        return unclear("without -Recurse it may ask for confirmation");
    }
    Ok(IisChange::new(vec![match item {
        IisDriveItem::Pool(name) => take(APP_POOLS, entry_named(name)),
        IisDriveItem::Site(name) => without_site(name, server)?,
        IisDriveItem::Below(site, path) if server.is_application(site, path) => {
            take(SITES, entry_named(site).entry([("path", path.as_str())]))
        }
        IisDriveItem::Below(site, path) => take(SITES, folder_of(&format!("{site}{path}"), server)),
    }]))
}

fn folder_of(path: &str, server: &Server) -> ElementPath {
    let (site, application, folder) = split_folder(path, server);
    folder_in(&site, &application, &folder)
}

/// `Set-ItemProperty IIS:\… -Name … -Value …`
fn change(call: CmdletCall<'_>, item: &IisDriveItem, server: &Server) -> Result<IisChange> {
    let name = call.needed("name")?;
    let value = call.needed_value("value")?;
    let is = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(&name));
    if is(&["name", "state", "userName", "password"]) {
        return unclear(format!("-Name {name} is not supported"));
    }
    let (section, at) = match item {
        IisDriveItem::Pool(pool) => (APP_POOLS, entry_named(pool)),
        IisDriveItem::Site(site) if is(&["bindings"]) => {
            let ways = parse_bindings(value)?;
            check_site(site, server)?;
            return Ok(IisChange::new(vec![bindings(site, pairs(&ways))]));
        }
        IisDriveItem::Site(site) if is(&FOLDER_ATTRIBUTES) => (SITES, folder_of(site, server)),
        IisDriveItem::Site(site) if is(&APPLICATION_ATTRIBUTES) => {
            (SITES, entry_named(site).entry([("path", "/")]))
        }
        IisDriveItem::Site(site) => (SITES, entry_named(site)),
        IisDriveItem::Below(site, path) if is(&FOLDER_ATTRIBUTES) => {
            (SITES, folder_of(&format!("{site}{path}"), server))
        }
        IisDriveItem::Below(site, path) => {
            (SITES, entry_named(site).entry([("path", path.as_str())]))
        }
    };
    let section = SectionPath::of(section);
    let schema = server.schema();
    let path = &section;
    let changes = property(Section { path, schema }, at, &name, value)?;
    Ok(IisChange::at((None, None), &section, changes))
}

/// An attribute, attributes of an element, or the entries of a collection.
fn property(
    section: Section<'_>,
    at: ElementPath,
    name: &str,
    value: &ParameterValue,
) -> Result<Vec<ConfigChange>> {
    let (element, last) = at.dotted(name);
    let inner = element.clone().element(last);
    match value {
        ParameterValue::Table(_) | ParameterValue::List(_) if section.is_collection(&inner) => {
            let entries = value.items().iter();
            let entries = entries.map(|value| section.entry(&inner, value));
            Ok(vec![ConfigChange::Fill {
                entries: entries.collect::<Result<_, _>>()?,
                collection: inner,
            }])
        }
        ParameterValue::Table(entries) => section.set_all(&inner, entries),
        value => Ok(vec![section.set(element, last, value)?]),
    }
}
