//! Cmdlets that create and remove sites, applications, pools and bindings.

use super::super::change::{
    IisChange, NewSite, RequiredFolder, Result, app_pool, application, binding_attributes,
    check_exists, entry_named, failure, is_same, new, site_id, take, unclear, virtual_directory,
    without_site,
};
use super::super::config::{APP_POOLS, SITES, Server};
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

pub(super) fn check_site(name: &str, server: &Server) -> Result<()> {
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
pub(super) fn required(call: CmdletCall<'_>, path: &str, fails: bool) -> Option<RequiredFolder> {
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
pub(super) fn new_application(
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
pub(super) fn new_folder(
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
