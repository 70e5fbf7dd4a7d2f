//! What to do about a finding, down to the command to type.

use super::finding::HostKind;
use super::image::{Image, Variant};
use crate::oci::store::Location;
use crate::windows::compat::{Fix, HostBuild, Verdict};
use crate::windows::update::{Kb, Updates};
use crate::windows::version::WindowsVersion;

/// What stands for the recipe in a command: nothing about an image says how it was made.
const RECIPE: &str = "RECIPE";

/// What to do, and what to type for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Advice {
    pub(super) text: Option<String>,
    pub(super) commands: Vec<String>,
}

/// What to do about a verdict on versions; `version` is that of what the host would take of the image.
pub(super) fn for_verdict(
    verdict: &Verdict,
    image: &Image,
    version: Option<WindowsVersion>,
) -> Advice {
    let Some(fix) = verdict.fix else {
        return Advice::default();
    };
    let commands = match fix {
        Fix::PatchHost { to, kb } => patch_commands(to, kb),
        Fix::RebuildImage { host, .. } => vec![rebuild_command(image, &with_host(image, host))],
        Fix::UseHyperV | Fix::RebuildForHyperV { .. } => Vec::new(),
        Fix::FindVersion => match &image.reference {
            Some(reference) if version.is_none_or(|own| own.revision.is_none()) => {
                vec![format!("wincimg inspect {}", quoted(reference))]
            }
            _ => Vec::new(),
        },
    };
    Advice {
        text: Some(fix.to_string()),
        commands,
    }
}

/// What to do about an image that has nothing for a host.
pub(super) fn add_platform(image: &Image, host: &HostKind) -> Advice {
    let Some(build) = host.build else {
        return Advice::default();
    };
    Advice {
        text: Some("build the image for this host too".to_owned()),
        commands: vec![rebuild_command(image, &with_host(image, build))],
    }
}

/// The host, and the builds that the image has already: what is pushed takes the old one's place, so
/// it needs them too. Of two revisions of one build only one would ever be taken.
fn with_host(image: &Image, host: HostBuild) -> Vec<WindowsVersion> {
    let mut builds: Vec<WindowsVersion> = image
        .variants()
        .iter()
        .filter(|variant| variant.os == "windows")
        .filter_map(|variant: &Variant| variant.version)
        .filter(|version| version.build != host.version.build)
        .chain([host.version])
        .collect();
    builds.sort();
    builds.dedup();
    builds
}

/// The commands that bring hosts to a version.
pub(super) fn patch_commands(to: WindowsVersion, kb: Option<Kb>) -> Vec<String> {
    let exact = Updates::embedded().exact(to).is_some();
    let what = match kb {
        Some(kb) if !exact => kb.to_string(),
        None if !exact => format!("--latest {}", to.build),
        _ => to.to_string(),
    };
    vec![
        format!("wincimg hotfix fetch {what} --output ./hotfix"),
        format!("wincimg hotfix script {what} --files ./hotfix --output install.ps1"),
    ]
}

/// The command that builds an image for hosts of these versions.
pub(super) fn rebuild_command(image: &Image, hosts: &[WindowsVersion]) -> String {
    let mut words = vec!["wincimg".to_owned(), "build".to_owned(), RECIPE.to_owned()];
    let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    for host in hosts {
        flag("host-build", host.to_string());
    }
    let place = image
        .reference
        .as_deref()
        .and_then(|text| text.parse().ok());
    match place {
        Some(Location::Registry(reference)) => {
            let (prefix, name) = match reference.repository().rsplit_once('/') {
                Some((prefix, name)) => (format!("{}/{prefix}", reference.registry()), name),
                None => (reference.registry().to_owned(), reference.repository()),
            };
            flag("registry", prefix);
            flag("name", name.to_owned());
            if let Some(tag) = reference.tag() {
                flag("tag", tag.to_owned());
            }
            words.push("--push".to_owned());
        }
        Some(Location::Layout { dir, tag }) => {
            flag("output", quoted(&format!("oci:{}", dir.display())));
            if let Some(tag) = tag {
                flag("tag", tag);
            }
        }
        Some(Location::Archive { file, .. }) => {
            flag(
                "output",
                quoted(&format!("docker-archive:{}", file.display())),
            );
        }
        None => {}
    }
    words.join(" ")
}

/// A word for a shell: quoted where it is more than letters, digits and what names are made of.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=,+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
