//! `appcmd`, the command line of IIS: writes and reads its arguments.

mod read;

pub use self::read::read;
use super::config::{ConfigChange, ConfigEdit, ConfigLocation};
use super::{Attribute, Binding, IisSettings, Site};

/// Path of `appcmd`, whose folder is not in `PATH`.
pub const PROGRAM: &str = r"C:\Windows\System32\inetsrv\appcmd.exe";

/// Commands to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppcmdCall {
    /// One command.
    Run(Vec<String>),
    /// Commands that may fail.
    Try(Vec<Vec<String>>),
    /// The second command, if the first one fails.
    Unless(Vec<String>, Vec<String>),
}

/// Sets the site's folder; none if it is the default one of IIS.
pub fn physical_path(settings: &IisSettings) -> Option<AppcmdCall> {
    let path = settings.moved_path()?;
    let site = format!("{}/", settings.site);
    set("vdir", &site, [format!("/physicalPath:{path}")])
}

/// Sets the application pool of the site.
pub fn app_pool_settings(settings: &IisSettings) -> Option<AppcmdCall> {
    set(
        "apppool",
        settings.app_pool.as_str(),
        settings.app_pool_settings.iter().map(switch),
    )
}

/// A setting in the notation of `set`.
fn switch((attribute, value): (&Attribute, &String)) -> String {
    format!("/{attribute}:{value}")
}

/// Creates an object unless it exists.
fn created(kind: &str, name: &str, switches: impl IntoIterator<Item = String>) -> AppcmdCall {
    let mut add = words(["add", kind]);
    add.extend(switches);
    AppcmdCall::Unless(words(["list", kind, name]), add)
}

/// Sets attributes of an object, if there are any.
fn set(kind: &str, name: &str, switches: impl IntoIterator<Item = String>) -> Option<AppcmdCall> {
    let mut line = words(["set", kind, name]);
    let empty = line.len();
    line.extend(switches);
    (line.len() > empty).then_some(AppcmdCall::Run(line))
}

/// Commands that create and set the application pools.
pub fn app_pools(settings: &IisSettings) -> Vec<AppcmdCall> {
    let mut all = Vec::new();
    for pool in &settings.app_pools {
        let name = pool.name.as_str();
        all.push(created("apppool", name, [format!("/name:{name}")]));
        all.extend(set("apppool", name, pool.settings.iter().map(switch)));
        all.extend(calls(&super::settings::environment_edits(pool)));
    }
    all
}

/// Commands that create and set the sites.
pub fn sites(settings: &IisSettings) -> Vec<AppcmdCall> {
    settings.sites.iter().flat_map(site).collect()
}

fn site(site: &Site) -> Vec<AppcmdCall> {
    let name = site.name.as_str();
    let own = [
        Some(format!("/name:{name}")),
        site.id.map(|id| format!("/id:{id}")),
    ];
    let mut calls = vec![created("site", name, own.into_iter().flatten())];
    for (path, application) in &site.applications {
        let whole = format!("{name}{path}");
        let below = whole.trim_end_matches('/');
        let own = [format!("/site.name:{name}"), format!("/path:{path}")];
        calls.push(created("app", &whole, own));
        let pool = application.app_pool.iter();
        let pool = pool.map(|pool| format!("/applicationPool:{pool}"));
        let attributes = application.settings.iter();
        calls.extend(set("app", &whole, pool.chain(attributes.map(switch))));
        for (path, folder) in &application.folders {
            let directory = format!("{below}{path}");
            let own = [format!("/app.name:{whole}"), format!("/path:{path}")];
            calls.push(created("vdir", &directory, own));
            calls.extend(set("vdir", &directory, [format!("/physicalPath:{folder}")]));
        }
    }
    let bindings: Vec<&str> = site.bindings.iter().map(Binding::as_str).collect();
    let bindings = std::iter::once(format!("/bindings:{}", bindings.join(",")));
    let attributes = site.settings.iter();
    calls.extend(set("site", name, bindings.chain(attributes.map(switch))));
    calls
}

/// Commands for the site's `web.config`: first those that remove replaced entries, which may fail,
/// then those that add entries.
pub fn site_config(settings: &IisSettings) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let edits = settings.site_edits();
    let site = settings.site.as_str();
    let removals = edits.iter().filter_map(|edit| {
        let removal = format!("/-{}", edit.replaced_entry()?);
        Some(config_line("set", edit, Some(site), [removal]))
    });
    let added = edits.chunk_by(|one, other| one.section == other.section);
    let added = added.map(|group| {
        let changes = group.iter().map(|edit| format!("/{}", edit.change));
        config_line("set", &group[0], Some(site), changes)
    });
    (removals.collect(), added.collect())
}

/// Commands for the server's configuration, in order: one command for adjacent changes of the same
/// section.
pub fn config(settings: &IisSettings) -> Vec<AppcmdCall> {
    calls(&settings.config)
}

fn calls(edits: &[ConfigEdit]) -> Vec<AppcmdCall> {
    let alike = |one: &ConfigEdit, other: &ConfigEdit| {
        let kind = |edit: &ConfigEdit| std::mem::discriminant(&edit.change);
        one.section == other.section && one.location == other.location && kind(one) == kind(other)
    };
    edits.chunk_by(alike).flat_map(group).collect()
}

fn group(edits: &[ConfigEdit]) -> Vec<AppcmdCall> {
    let line = |verb: &str, edit: &ConfigEdit, changes: Vec<String>| {
        let location = edit.location.as_ref().map(ConfigLocation::as_str);
        let mut line = config_line(verb, edit, location, changes);
        line.push("/commit:apphost".to_owned());
        line
    };
    let together = || {
        let changes = edits.iter().map(|edit| format!("/{}", edit.change));
        AppcmdCall::Run(line("set", &edits[0], changes.collect()))
    };
    match edits[0].change {
        ConfigChange::Set { .. }
        | ConfigChange::Fill { .. }
        | ConfigChange::New { .. }
        | ConfigChange::Take { .. } => vec![together()],
        ConfigChange::Delegate { allowed } => {
            let verb = if allowed { "unlock" } else { "lock" };
            let lines = edits.iter().map(|edit| line(verb, edit, Vec::new()));
            lines.map(AppcmdCall::Run).collect()
        }
        ConfigChange::Add { .. } | ConfigChange::Ensure { .. } => {
            let removals = edits.iter().filter_map(|edit| {
                let removal = format!("/-{}", edit.replaced_entry()?);
                Some(line("set", edit, vec![removal]))
            });
            vec![AppcmdCall::Try(removals.collect()), together()]
        }
        ConfigChange::Remove { .. } => {
            let removals = edits
                .iter()
                .map(|edit| line("set", edit, vec![format!("/{}", edit.change)]));
            vec![AppcmdCall::Try(removals.collect())]
        }
        ConfigChange::Clear { .. } => edits
            .iter()
            .map(|edit| {
                let path = edit.change.to_string();
                let path = path.strip_prefix('~').filter(|path| !path.is_empty());
                let path = path.map(|path| format!("/{path}"));
                AppcmdCall::Run(line("clear", edit, path.into_iter().collect()))
            })
            .collect(),
    }
}

fn config_line(
    verb: &str,
    edit: &ConfigEdit,
    location: Option<&str>,
    changes: impl IntoIterator<Item = String>,
) -> Vec<String> {
    let mut line = words([verb, "config"]);
    line.extend(location.map(str::to_owned));
    line.push(format!("/section:{}", edit.section));
    line.extend(changes);
    line
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
