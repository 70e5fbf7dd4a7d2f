//! Cmdlets that create, change and remove sites, applications, pools and bindings: their own ones,
//! and PowerShell's on items of the drive `IIS:`.

use super::super::change::{
    IisChange, NewSite, RequiredFolder, Result, app_pool, application, binding_attributes,
    bindings, check_exists, entry_named, failure, folder_in, is_same, new, pairs, site_id,
    split_folder, take, unclear, virtual_directory, without_site,
};
use super::super::config::{APP_POOLS, ConfigChange, ElementPath, SITES, SectionPath, Server};
use super::configuration::Section;
use super::{CmdletCall, ParameterValue};

/// Default port of a site or binding.
const PORT: &str = "80";

pub(super) fn read(call: CmdletCall<'_>, server: &Server) -> Result<IisChange> {
    match call.name {
        "new-website" => new_website(call, server),
        "new-iissite" => new_iis_site(call, server),
        "remove-website" => {
            let name = call.needed("name")?;
            Ok(IisChange::new(vec![without_site(&name, server)?]))
        }
        "new-webapppool" => {
            let name = call.needed("name")?;
            let known = server.app_pools();
            let is_known = known.iter().any(|known| is_same(known, &name));
            check_new(is_known, &format!("application pool {name:?}"), call)?;
            Ok(IisChange::new(vec![app_pool(&name)]))
        }
        "remove-webapppool" => Ok(IisChange::new(vec![take(
            APP_POOLS,
            entry_named(&call.needed("name")?),
        )])),
        "new-webapplication" => {
            let site = known_site(call, "site", server)?;
            let path = url_path(&call.needed("name")?);
            new_application(call, server, &site, &path)
        }
        "new-webbinding" => new_binding(call, server),
        "start-website" | "stop-website" | "start-iissite" | "stop-iissite" => {
            check_exists("site", &call.needed("name")?, &server.sites())
        }
        "start-webapppool" | "stop-webapppool" | "restart-webapppool" => check_exists(
            "application pool",
            &call.needed("name")?,
            &server.app_pools(),
        ),
        other => unclear(format!("{other} is not supported")),
    }
}

/// Fails if a new object exists; the effect of `-Force` on it is unknown.
fn check_new(is_known: bool, what: &str, call: CmdletCall<'_>) -> Result<()> {
    match (is_known, call.has("force")) {
        (false, _) => Ok(()),
        (true, false) => failure(format!("{what} already exists")),
        (true, true) => unclear(format!(
            "{what} already exists, and the effect of -Force on it is unknown: remove it first"
        )),
    }
}

fn url_path(name: &str) -> String {
    format!("/{}", name.replace('\\', "/").trim_matches('/'))
}

fn known_site(call: CmdletCall<'_>, parameter: &str, server: &Server) -> Result<String> {
    let name = call.needed(parameter)?;
    check_site(&name, server)?;
    Ok(name)
}

fn check_site(name: &str, server: &Server) -> Result<()> {
    if server.has_site(name) {
        return Ok(());
    }
    failure(format!("site {name:?} not found"))
}

/// The given folder, which must exist unless `-Force` is given.
fn folder(call: CmdletCall<'_>) -> Result<(String, Option<RequiredFolder>)> {
    let folder = call.needed("physicalpath")?;
    if !is_whole(&folder) {
        return unclear(format!("-PhysicalPath is not an absolute path: {folder}"));
    }
    let needed = required(call, &folder, true);
    Ok((folder, needed))
}

/// A folder that must exist unless `-Force` is given.
fn required(call: CmdletCall<'_>, path: &str, fails: bool) -> Option<RequiredFolder> {
    let path = path.to_owned();
    (!call.has("force")).then_some(RequiredFolder { path, fails })
}

fn is_whole(path: &str) -> bool {
    let mut start = path.chars();
    let has_drive = start.next().is_some_and(|c| c.is_ascii_alphabetic())
        && start.next() == Some(':')
        && matches!(start.next(), Some('\\' | '/'));
    has_drive || path.starts_with('%')
}

/// `ADDRESS:PORT:HOST`
fn information(call: CmdletCall<'_>) -> Result<String> {
    let text = |name, default: &str| -> Result<String> {
        Ok(call.text(name)?.unwrap_or_else(|| default.to_owned()))
    };
    let port = text("port", PORT)?;
    if !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return failure(format!("invalid port {port:?}"));
    }
    let address = text("ipaddress", "*")?;
    let host = text("hostheader", "")?;
    Ok(format!("{address}:{port}:{host}"))
}

fn new_website(call: CmdletCall<'_>, server: &Server) -> Result<IisChange> {
    let name = call.needed("name")?;
    check_new(server.has_site(&name), &format!("site {name:?}"), call)?;
    if call
        .value("sslflags")
        .is_some_and(|flags| *flags != ParameterValue::Number(0))
    {
        call.without(&["sslflags"])?;
    }
    let is_secure = call.has("ssl");
    if is_secure && call.value("port").is_none() {
        return unclear("-Ssl requires -Port: the default port is unknown");
    }
    let protocol = if is_secure { "https" } else { "http" };
    let (path, needed) = folder(call)?;
    let app_pool = call.text("applicationpool")?;
    let site = NewSite {
        name: &name,
        id: site_id(call.text("id")?)?,
        bindings: vec![(protocol.to_owned(), information(call)?)],
        folder: Some(&path),
        app_pool: app_pool.as_deref(),
    };
    Ok(IisChange::new(site.edits()).with_folder(needed))
}

fn new_iis_site(call: CmdletCall<'_>, server: &Server) -> Result<IisChange> {
    let name = call.needed("name")?;
    check_new(server.has_site(&name), &format!("site {name:?}"), call)?;
    let protocol = call.text("protocol")?.unwrap_or_else(|| "http".to_owned());
    let (path, _) = folder(call)?;
    let site = NewSite {
        name: &name,
        bindings: vec![(protocol, call.needed("bindinginformation")?)],
        folder: Some(&path),
        ..NewSite::default()
    };
    Ok(IisChange::new(site.edits()).with_folder(required(call, &path, false)))
}

/// Adds an application to a site; two cmdlets do.
fn new_application(
    call: CmdletCall<'_>,
    server: &Server,
    site: &str,
    path: &str,
) -> Result<IisChange> {
    let what = format!("application {path} in {site:?}");
    check_new(server.is_application(site, path), &what, call)?;
    let (directory, needed) = folder(call)?;
    let pool = call.text("applicationpool")?;
    let edits = application(site, path, Some(&directory), pool.as_deref());
    Ok(IisChange::new(edits).with_folder(needed))
}

/// Adds a folder to an application.
fn new_folder(
    call: CmdletCall<'_>,
    site: &str,
    application: &str,
    path: &str,
) -> Result<IisChange> {
    let (directory, needed) = folder(call)?;
    let edits = virtual_directory(site, application, path, Some(&directory));
    Ok(IisChange::new(edits).with_folder(needed))
}

fn new_binding(call: CmdletCall<'_>, server: &Server) -> Result<IisChange> {
    let name = known_site(call, "name", server)?;
    let protocol = call.text("protocol")?.unwrap_or_else(|| "http".to_owned());
    let is_http = is_same(&protocol, "http");
    if !is_http && (!is_same(&protocol, "https") || call.value("port").is_none()) {
        return unclear(format!(
            "a binding for {protocol} without a port is not supported"
        ));
    }
    let information = information(call)?;
    let mut entry = binding_attributes((&protocol, &information)).to_vec();
    let flags = call.text("sslflags")?.filter(|flags| flags != "0");
    entry.extend(flags.iter().map(|flags| ("sslFlags", flags.as_str())));
    let entry = entry_named(&name).element("bindings").entry(entry);
    Ok(IisChange::new(vec![new(SITES, entry)]))
}

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

pub(super) fn read_item(call: CmdletCall<'_>, server: &Server) -> Result<IisChange> {
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
