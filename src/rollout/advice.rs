//! What to type: the commands of a plan, and of each finding the plan's command that mends it, so that
//! no two pieces of advice contradict each other.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::finding::is_mendable;
use super::image::Image;
use super::plan::{Action, Pin, Plan};
use super::{Finding, HostKind, Request, Rollout, Shared};
use crate::cluster::nodes::Node;
use crate::cluster::workloads::WorkloadId;
use crate::oci::store::Location;
use crate::windows::compat::{Concern, Outcome, Rule};
use crate::windows::update::{Kb, Updates};
use crate::windows::version::WindowsVersion;

/// What stands for the recipe in a command: nothing about an image says how it was made.
const RECIPE: &str = "RECIPE";

/// What the commands of this run's advice need as the run itself did, as words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// Of `wincimg`, about registries.
    pub registry: Vec<String>,
    /// Of `kubectl`, about the cluster.
    pub kubectl: Vec<String>,
}

impl Rollout {
    /// Plans what makes everything start, and gives every finding the plan's commands that mend it.
    pub fn advise(&mut self, request: &Request) -> Plan {
        let plan = Plan::new(request, self);
        let mut advisor = Advisor::new(&plan, &request.flags);
        for placement in &mut self.placements {
            for placed in &mut placement.images {
                let groups = placement.selection.groups.iter();
                for (group, finding) in groups.zip(&mut placed.findings) {
                    let about = About {
                        workload: placement.workload,
                        place: placed.image,
                        image: &self.images[placed.image],
                        kind: &self.kinds[group.kind],
                        hosts: &group.hosts,
                    };
                    *finding = advisor.better(finding, &about);
                }
            }
        }
        for notice in &mut self.notices {
            if notice.finding.rule == Concern::NoWindowsSelector.name()
                && let Some(workload) = notice.workload
            {
                let id = &self.workloads[workload].id;
                notice.finding = Rc::new(Finding {
                    commands: advisor.pin_to_windows(workload, id),
                    ..Finding::clone(&notice.finding)
                });
            }
        }
        plan
    }
}

/// What a finding is about.
struct About<'a> {
    workload: Option<usize>,
    place: usize,
    image: &'a Image,
    kind: &'a HostKind,
    hosts: &'a [u32],
}

/// Which actions of the plan mend a finding, by their places.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Mending {
    pin: Option<usize>,
    rebuild: Option<usize>,
    patches: BTreeSet<usize>,
}

/// Finds the actions for findings.
struct Advisor<'a> {
    plan: &'a Plan,
    flags: &'a Flags,
    pins: HashMap<usize, usize>,
    rebuilds: HashMap<usize, usize>,
    patches: HashMap<usize, usize>,
    known: HashMap<(*const Finding, usize, Mending), Shared>,
}

impl<'a> Advisor<'a> {
    fn new(plan: &'a Plan, flags: &'a Flags) -> Self {
        let mut advisor = Self {
            plan,
            flags,
            pins: HashMap::new(),
            rebuilds: HashMap::new(),
            patches: HashMap::new(),
            known: HashMap::new(),
        };
        for (place, action) in plan.actions.iter().enumerate() {
            match action {
                Action::Pin { workload, .. } => {
                    advisor.pins.insert(*workload, place);
                }
                Action::Rebuild { image, .. } => {
                    advisor.rebuilds.insert(*image, place);
                }
                Action::Patch { hosts, .. } => {
                    advisor
                        .patches
                        .extend(hosts.iter().map(|host| (*host, place)));
                }
            }
        }
        advisor
    }

    /// The finding with what to do about it.
    fn better(&mut self, finding: &Shared, about: &About<'_>) -> Shared {
        let mending = match finding.outcome {
            Outcome::Compatible | Outcome::Warning => return Rc::clone(finding),
            Outcome::Incompatible => self.mending(finding, about),
            Outcome::Unknown => Mending::default(),
        };
        let key = (Rc::as_ptr(finding), about.place, mending);
        if let Some(known) = self.known.get(&key) {
            return Rc::clone(known);
        }
        let better = Rc::new(self.advised(finding, about, &key.2));
        self.known.insert(key, Rc::clone(&better));
        better
    }

    fn mending(&self, finding: &Finding, about: &About<'_>) -> Mending {
        let pin = about
            .workload
            .and_then(|workload| self.pins.get(&workload).copied());
        if pin.is_some() || !is_mendable(finding, about.image, about.kind) {
            return Mending {
                pin,
                ..Mending::default()
            };
        }
        let is_about_revisions = [Rule::Baseline202002, Rule::RevisionMismatch2016]
            .iter()
            .any(|rule| rule.name() == finding.rule);
        let hosts = about.hosts.iter().filter(|_| is_about_revisions);
        Mending {
            pin: None,
            rebuild: self.rebuilds.get(&about.place).copied(),
            patches: hosts
                .filter_map(|host| self.patches.get(&(*host as usize)).copied())
                .collect(),
        }
    }

    fn advised(&self, finding: &Finding, about: &About<'_>, mending: &Mending) -> Finding {
        let Mending {
            pin,
            rebuild,
            patches,
        } = mending;
        let places = pin.iter().chain(rebuild).chain(patches);
        let actions: Vec<&Action> = places.map(|place| &self.plan.actions[*place]).collect();
        let commands = actions.iter().flat_map(|action| action.commands()).cloned();
        // What a verdict says by itself is about building again.
        let own = finding.fix.as_ref().filter(|_| rebuild.is_some());
        let fixes: Vec<String> = actions
            .iter()
            .map(|action| match (action, own) {
                (Action::Rebuild { .. }, Some(own)) if patches.is_empty() => own.clone(),
                _ => action.to_string(),
            })
            .collect();
        let mut advised = finding.clone();
        if !actions.is_empty() {
            advised.fix = Some(fixes.join(", and "));
            advised.commands = commands.collect();
        } else if finding.outcome == Outcome::Unknown {
            advised.commands = inspect_command(finding, about.image, self.flags);
        }
        advised
    }

    fn pin_to_windows(&self, workload: usize, id: &WorkloadId) -> Vec<String> {
        match self.pins.get(&workload) {
            Some(place) => self.plan.actions[*place].commands().to_vec(),
            None => pin_command(id, &Pin::to_windows(), self.flags)
                .into_iter()
                .collect(),
        }
    }
}

/// What shows the version of an image that could be read and did not tell.
fn inspect_command(finding: &Finding, image: &Image, flags: &Flags) -> Vec<String> {
    let is_readable = image.is_readable();
    let is_unsaid = finding.image_build.is_none_or(|own| own.revision.is_none());
    match &image.reference {
        Some(reference) if is_readable && is_unsaid => {
            let mut words = vec!["wincimg", "inspect", reference];
            words.extend(flags.registry.iter().map(String::as_str));
            vec![typed(&words)]
        }
        _ => Vec::new(),
    }
}

/// The command that keeps a workload's pods where a label is; nothing for a kind that cannot be
/// patched.
pub(super) fn pin_command(workload: &WorkloadId, pin: &Pin, flags: &Flags) -> Option<String> {
    let patch = pin.patch(workload)?;
    let kind = workload.kind.to_ascii_lowercase();
    let mut words = vec!["kubectl", "patch", &kind, &workload.name];
    words.extend(["--namespace", &workload.namespace]);
    words.extend(flags.kubectl.iter().map(String::as_str));
    words.extend(["--type", "merge", "--patch", &patch]);
    Some(typed(&words))
}

/// The commands that bring hosts to a version. Several nodes are best drained one after the other, so
/// only a single one is drained here.
pub(super) fn patch_commands(
    to: WindowsVersion,
    kb: Option<Kb>,
    hosts: &[&Node],
    flags: &Flags,
) -> Vec<String> {
    let exact = Updates::embedded().exact(to).is_some();
    let what = match kb {
        Some(kb) if !exact => kb.to_string(),
        None if !exact => format!("--latest {}", to.build),
        _ => to.to_string(),
    };
    let mut commands = vec![
        format!("wincimg hotfix fetch {what} --output ./hotfix"),
        format!("wincimg hotfix script {what} --files ./hotfix --output install.ps1"),
    ];
    if let [host] = hosts
        && let Some(name) = &host.name
    {
        let mut words = vec!["kubectl", "drain", name, "--ignore-daemonsets"];
        words.extend(flags.kubectl.iter().map(String::as_str));
        commands.push(typed(&words));
    }
    commands
}

/// The command that builds an image for hosts of these versions; `others` is the flag that says what
/// becomes of what its tag has.
pub(super) fn rebuild_command(
    image: &Image,
    hosts: &[WindowsVersion],
    others: Option<&str>,
    flags: &Flags,
) -> String {
    let mut words = vec!["wincimg".to_owned(), "build".to_owned(), RECIPE.to_owned()];
    let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    for host in hosts {
        flag("host-build", host.to_string());
    }
    match image.location() {
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
            words.extend(others.map(str::to_owned));
            words.extend(flags.registry.iter().cloned());
        }
        Some(Location::Layout { dir, tag }) => {
            flag("output", format!("oci:{}", dir.display()));
            if let Some(tag) = tag {
                flag("tag", tag);
            }
            words.extend(others.map(str::to_owned));
        }
        Some(Location::Archive { file, .. }) => {
            flag("output", format!("docker-archive:{}", file.display()));
        }
        None => {}
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    typed(&words)
}

/// A command line of these words for a shell.
fn typed(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// A word for a shell: quoted where it is more than letters, digits and what names are made of.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=,+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
