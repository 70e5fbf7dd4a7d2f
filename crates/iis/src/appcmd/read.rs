//! Reads `appcmd`'s arguments as configuration changes.

use wincimg_common::untrusted::QuotedText;

use super::super::change::{
    IisChange, IisChangeError, NewSite, Result, app_pool, application, bindings, check_exists,
    edit, entry_named, failure, folder_in, location, pairs, site_id, split_folder, take, unclear,
    virtual_directory, without_site,
};
use super::super::config::{
    APP_POOLS, ConfigChange, ConfigEdit, ConfigLocation, ElementPath, PathStep, SITES, SectionPath,
    Server,
};

/// The arguments after verb and object.
#[derive(Debug, Default)]
struct AppcmdArguments {
    /// The word that is not a switch.
    name: Option<String>,
    switches: Vec<Switch>,
}

/// `/path:value`, `/+path`, `/-path` or `/path`.
#[derive(Debug, PartialEq, Eq)]
enum Switch {
    Set(String, String),
    Add(String),
    Remove(String),
    Bare(String),
}

/// Reads the arguments as changes of this server's configuration.
pub fn read(words: &[String], server: &Server) -> Result<IisChange> {
    let [verb, object, rest @ ..] = words else {
        return unclear("the verb or the object is missing");
    };
    let (verb, object) = (verb.to_lowercase(), object.to_lowercase());
    let mut line = AppcmdArguments::read(rest)?;
    let order = match (verb.as_str(), object.as_str()) {
        ("set", "config") => set_config(&mut line, server),
        ("clear", "config") => clear_config(&mut line, server),
        ("unlock" | "lock", "config") => delegate(&mut line, server, verb == "unlock"),
        ("add", "site") => add_site(&mut line),
        ("add", "app") => add_application(&mut line),
        ("add", "vdir") => add_folder(&mut line, server),
        ("add", "apppool") => add_pool(&mut line),
        ("set", "site" | "app" | "vdir" | "apppool") => set_object(&object, &mut line, server),
        ("delete", "site" | "app" | "vdir" | "apppool") => delete(&object, &mut line, server),
        ("start" | "stop", "site" | "apppool") | ("recycle", "apppool") | ("list", _) => {
            return known_object(&verb, &object, &mut line, server);
        }
        _ => unclear(format!("{verb} {object} is not supported")),
    }?;
    if let Some(left) = line.switches.first() {
        return unclear(format!("{left} is not supported here"));
    }
    order.normalized(server)
}

impl std::fmt::Display for Switch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Set(path, value) => write!(f, "/{path}:{value}"),
            Self::Add(path) => write!(f, "/+{path}"),
            Self::Remove(path) => write!(f, "/-{path}"),
            Self::Bare(path) => write!(f, "/{path}"),
        }
    }
}

impl AppcmdArguments {
    fn read(words: &[String]) -> Result<Self> {
        let mut line = Self::default();
        for word in words {
            match word.strip_prefix(['/', '-']) {
                Some(switch) => line.switches.push(Switch::read(switch)),
                None if line.name.is_none() => line.name = Some(word.clone()),
                None => {
                    return failure(format!(
                        "the parameter {} must begin with / or -: quote values with spaces",
                        QuotedText(word)
                    ));
                }
            }
        }
        Ok(line)
    }

    /// Removes a switch and returns its value.
    fn taken(&mut self, name: &str) -> Option<String> {
        let at = self.switches.iter().position(
            |switch| matches!(switch, Switch::Set(own, _) if own.eq_ignore_ascii_case(name)),
        )?;
        match self.switches.remove(at) {
            Switch::Set(_, value) => Some(value),
            _ => None,
        }
    }

    fn needed(&mut self, name: &str) -> Result<String> {
        self.taken(name)
            .ok_or_else(|| IisChangeError::Fails(format!("/{name}: is missing")))
    }

    /// Name of the object: `NAME` or `/site.name:NAME`.
    fn named(&mut self, object: &str) -> Result<String> {
        self.taken(&format!("{object}.name"))
            .or_else(|| self.name.take())
            .ok_or_else(|| IisChangeError::Fails(format!("the name of the {object} is missing")))
    }

    /// Name of a new object: also `/name:NAME`.
    fn new_name(&mut self, object: &str) -> Result<String> {
        self.taken("name").map_or_else(|| self.named(object), Ok)
    }

    /// Rejects a `/commit` to a file other than the server's, for sections of that file only.
    fn at_server(&mut self) -> Result<()> {
        match self.taken("commit") {
            Some(commit) if !is_host(&commit) => {
                unclear(format!("/commit:{commit} is not supported here"))
            }
            _ => Ok(()),
        }
    }

    /// The changes of the remaining switches below an element of a section.
    fn changes(&mut self, at: &ElementPath) -> Result<Vec<ConfigChange>> {
        let below = |path: ElementPath| {
            let steps = path.steps().iter().cloned();
            steps.fold(at.clone(), ElementPath::with)
        };
        let mut changes = Vec::new();
        for switch in std::mem::take(&mut self.switches) {
            changes.push(match &switch {
                Switch::Set(path, value) => {
                    let (element, attribute) = ElementPath::with_attribute(path)?;
                    ConfigChange::Set {
                        element: below(element),
                        attribute,
                        value: value.clone(),
                    }
                }
                Switch::Add(path) => {
                    let start = path.rfind("[@start,");
                    let path = path.replacen("[@start,", "[", usize::from(start.is_some()));
                    ConfigChange::New {
                        entry: below(ElementPath::with_entry(&path)?),
                        first: start.is_some(),
                    }
                }
                Switch::Remove(path) => ConfigChange::Take {
                    entry: below(ElementPath::with_entry(path)?),
                },
                Switch::Bare(_) => return unclear(format!("{switch} is not supported")),
            });
        }
        Ok(changes)
    }

    /// The same as edits of the server's configuration.
    fn edits(&mut self, section: &str, at: &ElementPath) -> Result<Vec<ConfigEdit>> {
        let changes = self.changes(at)?.into_iter();
        Ok(changes.map(|change| edit(section, change)).collect())
    }
}

impl Switch {
    fn read(text: &str) -> Self {
        if let Some(path) = text.strip_prefix('+') {
            return Self::Add(path.to_owned());
        }
        if let Some(path) = text.strip_prefix('-') {
            return Self::Remove(path.to_owned());
        }
        match colon(text) {
            Some(at) => Self::Set(text[..at].to_owned(), text[at + 1..].to_owned()),
            None => Self::Bare(text.to_owned()),
        }
    }
}

/// The first colon outside of brackets.
fn colon(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_inside = false;
    for (at, c) in text.char_indices() {
        if let Some(open) = quote {
            quote = Some(open).filter(|open| *open != c);
            continue;
        }
        match c {
            '\'' | '"' if is_inside => quote = Some(c),
            '[' => is_inside = true,
            ']' => is_inside = false,
            ':' if !is_inside => return Some(at),
            _ => {}
        }
    }
    None
}

fn is_host(commit: &str) -> bool {
    ["apphost", "machine/webroot/apphost"]
        .iter()
        .any(|host| host.eq_ignore_ascii_case(commit))
}

/// The `web.config` to change (none for the server's file), and the location in that file.
type Place = (Option<ConfigLocation>, Option<ConfigLocation>);

/// The section of a command, and where it is changed.
fn target(line: &mut AppcmdArguments, server: &Server) -> Result<(SectionPath, Place)> {
    let section = line.needed("section")?;
    let section = server.find_section(&section)?;
    let name = line.name.take();
    let place = name.as_deref().map(location).transpose()?.flatten();
    let commit = line.taken("commit");
    let place = match (&commit, place) {
        (None, place) => (place, None),
        (Some(commit), place) if is_host(commit) => (None, place),
        (Some(commit), Some(place)) => {
            let is_own = match commit.to_lowercase().as_str() {
                "url" => true,
                "site" => !place.as_str().contains('/'),
                _ => location(commit)?.as_ref() == Some(&place),
            };
            if !is_own {
                return unclear(format!("/commit:{commit} is not supported for {place}"));
            }
            (Some(place), None)
        }
        (Some(commit), None) => {
            return unclear(format!(
                "/commit:{commit} is not supported for the whole server"
            ));
        }
    };
    Ok((section, place))
}

fn set_config(line: &mut AppcmdArguments, server: &Server) -> Result<IisChange> {
    let (section, place) = target(line, server)?;
    let changes = line.changes(&ElementPath::default())?;
    if changes.is_empty() {
        return unclear("it changes nothing");
    }
    Ok(IisChange::at(place, &section, changes))
}

fn clear_config(line: &mut AppcmdArguments, server: &Server) -> Result<IisChange> {
    let (section, place) = target(line, server)?;
    let mut changes = Vec::new();
    for switch in std::mem::take(&mut line.switches) {
        match switch {
            Switch::Bare(path) if !path.eq_ignore_ascii_case("delete") => {
                let element = path.parse()?;
                changes.push(ConfigChange::Clear { element });
            }
            other => return unclear(format!("{other} is not supported")),
        }
    }
    if changes.is_empty() {
        let element = ElementPath::default();
        changes.push(ConfigChange::Clear { element });
    }
    Ok(IisChange::at(place, &section, changes))
}

fn delegate(line: &mut AppcmdArguments, server: &Server, allowed: bool) -> Result<IisChange> {
    let (section, (into, at)) = target(line, server)?;
    // A site's file cannot lock or unlock its own sections.
    let place = (None, into.or(at));
    let change = ConfigChange::Delegate { allowed };
    Ok(IisChange::at(place, &section, vec![change]))
}

fn add_site(line: &mut AppcmdArguments) -> Result<IisChange> {
    line.at_server()?;
    let name = line.new_name("site")?;
    let ways = line.taken("bindings");
    let folder = line.taken("physicalPath");
    let site = NewSite {
        name: &name,
        id: site_id(line.taken("id"))?,
        bindings: ways.map_or_else(|| Ok(Vec::new()), |text| read_bindings(&text))?,
        folder: folder.as_deref(),
        app_pool: None,
    };
    let mut edits = site.edits();
    refuse(line, &["applicationPool"])?;
    edits.extend(line.edits(SITES, &entry_named(&name))?);
    Ok(IisChange::new(edits))
}

fn add_application(line: &mut AppcmdArguments) -> Result<IisChange> {
    line.at_server()?;
    let site = line.needed("site.name")?;
    let path = line.needed("path")?;
    let folder = line.taken("physicalPath");
    let pool = line.taken("applicationPool");
    let mut edits = application(&site, &path, folder.as_deref(), pool.as_deref());
    edits.extend(line.edits(SITES, &entry_named(&site).entry([("path", path.as_str())]))?);
    Ok(IisChange::new(edits))
}

fn add_folder(line: &mut AppcmdArguments, server: &Server) -> Result<IisChange> {
    line.at_server()?;
    let application = line.needed("app.name")?;
    let (site, application, rest) = split_folder(&application, server);
    if rest != "/" {
        return failure(format!("application {rest} not found in {site}"));
    }
    let path = line.needed("path")?;
    let folder = line.taken("physicalPath");
    let mut edits = virtual_directory(&site, &application, &path, folder.as_deref());
    edits.extend(line.edits(SITES, &folder_in(&site, &application, &path))?);
    Ok(IisChange::new(edits))
}

fn add_pool(line: &mut AppcmdArguments) -> Result<IisChange> {
    line.at_server()?;
    let name = line.new_name("apppool")?;
    let mut edits = vec![app_pool(&name)];
    edits.extend(line.edits(APP_POOLS, &entry_named(&name))?);
    Ok(IisChange::new(edits))
}

/// The section of an object, and its path there.
fn place(
    object: &str,
    line: &mut AppcmdArguments,
    server: &Server,
) -> Result<(&'static str, ElementPath)> {
    let name = line.named(object)?;
    Ok(match object {
        "apppool" => (APP_POOLS, entry_named(&name)),
        "site" => (SITES, entry_named(&name)),
        "app" => {
            let (site, path) = name.split_once('/').unwrap_or((&name, ""));
            let path = format!("/{}", path.trim_matches('/'));
            (SITES, entry_named(site).entry([("path", path.as_str())]))
        }
        _ => {
            let (site, application, folder) = split_folder(&name, server);
            (SITES, folder_in(&site, &application, &folder))
        }
    })
}

fn set_object(object: &str, line: &mut AppcmdArguments, server: &Server) -> Result<IisChange> {
    line.at_server()?;
    let (section, at) = place(object, line, server)?;
    let mut edits = Vec::new();
    if object == "site" {
        refuse(line, &["applicationPool", "physicalPath"])?;
        if let (Some(ways), [PathStep::Entry(entry)]) = (line.taken("bindings"), at.steps()) {
            let name = entry.attributes().next().map_or("", |(_, name)| name);
            edits.push(bindings(name, pairs(&read_bindings(&ways)?)));
        }
    }
    if object == "app" {
        refuse(line, &["physicalPath"])?;
    }
    edits.extend(line.edits(section, &at)?);
    if edits.is_empty() {
        return unclear("it changes nothing");
    }
    Ok(IisChange::new(edits))
}

/// Rejects attributes of another kind of object.
fn refuse(line: &AppcmdArguments, names: &[&str]) -> Result<()> {
    for switch in &line.switches {
        if let Switch::Set(path, _) = switch
            && names.iter().any(|name| name.eq_ignore_ascii_case(path))
        {
            return failure(format!("{switch} is not an attribute of this object"));
        }
    }
    Ok(())
}

fn delete(object: &str, line: &mut AppcmdArguments, server: &Server) -> Result<IisChange> {
    line.at_server()?;
    if object == "site" {
        let name = line.named(object)?;
        return Ok(IisChange::new(vec![without_site(&name, server)?]));
    }
    let (section, at) = place(object, line, server)?;
    Ok(IisChange::new(vec![take(section, at)]))
}

/// Fails if a site or pool to list, start or stop does not exist.
fn known_object(
    verb: &str,
    object: &str,
    line: &mut AppcmdArguments,
    server: &Server,
) -> Result<IisChange> {
    let known = match object {
        "site" => server.sites(),
        "apppool" => server.app_pools(),
        _ => return Ok(IisChange::default()),
    };
    if verb != "list" {
        return check_exists(object, &line.named(object)?, &known);
    }
    let name = line.new_name(object).ok();
    // It fails if no object fits.
    let is_filter = |switch: &&Switch| matches!(switch, Switch::Set(name, _) if !is_output(name));
    if let Some(filter) = line.switches.iter().find(is_filter) {
        return unclear(format!(
            "whether {filter} applies to any {object} is unknown"
        ));
    }
    if let Some(name) = name {
        check_exists(object, &name, &known)?;
    }
    Ok(IisChange::default())
}

/// Returns true if a switch of `list` only says what is printed.
fn is_output(name: &str) -> bool {
    let mut known = ["text", "config"].iter();
    known.any(|known| known.eq_ignore_ascii_case(name))
}

/// `http/*:80:,https/*:443:www.example.com`, or `http://*:80`.
fn read_bindings(text: &str) -> Result<Vec<(String, String)>> {
    text.split(',')
        .map(|text| read_binding(text.trim()))
        .collect()
}

fn read_binding(text: &str) -> Result<(String, String)> {
    let unsupported = || IisChangeError::Unclear(format!("the binding {text:?} is not supported"));
    if let Some((protocol, rest)) = text.split_once("://") {
        let (host, port) = rest
            .trim_end_matches('/')
            .rsplit_once(':')
            .ok_or_else(unsupported)?;
        let port: u16 = port.parse().map_err(|_| unsupported())?;
        let host = if host == "*" { "" } else { host };
        let is_sound = !protocol.is_empty() && !host.contains([':', '/', '*']);
        return is_sound
            .then(|| (protocol.to_owned(), format!("*:{port}:{host}")))
            .ok_or_else(unsupported);
    }
    match text.split_once('/') {
        Some((protocol, information)) if !protocol.is_empty() && !information.is_empty() => {
            Ok((protocol.to_owned(), information.to_owned()))
        }
        _ => Err(unsupported()),
    }
}

#[cfg(test)]
mod tests;
