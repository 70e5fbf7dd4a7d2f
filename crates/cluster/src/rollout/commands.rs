//! Suggested commands, quoted for a shell.

use wincimg_common::shell::command_line;
use wincimg_oci::reference::prefix_and_name;
use wincimg_oci::store::Location;
use wincimg_windows::compat::HostBuild;
use wincimg_windows::update::{Kb, Updates};
use wincimg_windows::version::WindowsVersion;

use super::finding::Finding;
use super::image::Image;
use super::plan::ActionStep;
use super::tags::index_tag;
use crate::controller::UpdateHold;
use crate::nodes::Node;
use crate::pod::PullPolicy;
use crate::workloads::{Workload, WorkloadId};

/// Placeholder for the recipe: an image does not name its own.
const RECIPE: &str = "RECIPE";
const TAG: &str = "TAG";
/// The pods of a workload that keep a changed template from starting.
pub(super) const THAT_FAIL: &str = "that do not start, if any";

/// How the pod template of a workload is changed. That follows from who owns it: a command for
/// another object than the owner is undone, or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateChange {
    /// Patch of the object; its pods are replaced.
    Patch,
    /// Delete and create: Kubernetes allows no change of it, or does not replace its pods.
    MakeAgain,
    /// By hand: the object that owns the template is not in the input.
    ByHand,
}

impl TemplateChange {
    /// Returns `None` for kinds with unknown fields, and for workloads without a name or with a
    /// generated one.
    pub(super) fn of(workload: &Workload) -> Option<Self> {
        let id = &workload.id;
        let own = match id.kind.as_str() {
            // Of a custom resource, kubectl would change the namesake of Kubernetes' own kind.
            _ if !id.group.is_empty() => return None,
            _ if id.name.is_empty() || id.name.ends_with('*') => return None,
            "Deployment" | "DaemonSet" | "StatefulSet" | "CronJob" => Self::Patch,
            "Pod" | "Job" | "ReplicaSet" | "ReplicationController" => Self::MakeAgain,
            _ => return None,
        };
        Some(if workload.owns_template {
            own
        } else {
            Self::ByHand
        })
    }
}

/// The owner of a pod template that is not among the workloads, and how to get commands for it.
pub(super) fn absent_owner(workload: &Workload, flags: &CommandFlags) -> String {
    let id = &workload.id;
    let owner = match id.kind.as_str() {
        "Pod" => return format!("the manifest of {id}, a static pod, on its node"),
        "Job" | "ReplicaSet" | "ReplicationController" => " or the object that owns it",
        _ => "",
    };
    if flags.is_live {
        return format!(
            "{id}{owner}, which is not among the workloads that were read: change it by hand"
        );
    }
    let kind = id.kind.to_ascii_lowercase();
    let get = kubectl_command(&["get", &kind, &id.name], workload, flags);
    format!(
        "{id}{owner}, which is not in the input: for a command, pass it to --workloads too: {get} \
         --output yaml"
    )
}

/// Flags of this run that the suggested commands repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandFlags {
    /// Registry flags of `wincimg`.
    pub registry: Vec<String>,
    /// Cluster flags of `kubectl`.
    pub kubectl: Vec<String>,
    /// True if the workloads are those of the cluster, not of `--workloads`.
    pub is_live: bool,
}

impl CommandFlags {
    fn wincimg(&self, words: &[&str]) -> String {
        let registry: Vec<&str> = self.registry.iter().map(String::as_str).collect();
        command_line(&[&["wincimg"], words, &registry].concat())
    }

    pub(super) fn kubectl(&self, words: &[&str]) -> String {
        let cluster: Vec<&str> = self.kubectl.iter().map(String::as_str).collect();
        command_line(&[&["kubectl"], words, &cluster].concat())
    }
}

/// The command that inspects an image whose revision is unknown: its labels may name its base. Of
/// one without any version, it would show no more than that.
pub(super) fn inspect_command(
    finding: &Finding,
    image: &Image,
    flags: &CommandFlags,
) -> Vec<String> {
    let is_readable = image.is_readable();
    let is_unsaid = finding
        .image_build
        .is_some_and(|own| own.revision.is_none());
    match &image.reference {
        Some(reference) if is_readable && is_unsaid => {
            vec![flags.wincimg(&["image", "inspect", reference])]
        }
        _ => Vec::new(),
    }
}

/// The command that copies a base for hosts to its mirror, which keeps its path.
pub(super) fn mirror_command(
    (mirror, base): (String, &str),
    hosts: &[HostBuild],
    flags: &CommandFlags,
) -> Vec<String> {
    let base = format!("base:{base}");
    let mut words = vec!["image", "mirror", &base, "--to", &mirror];
    let versions: Vec<String> = hosts.iter().map(|host| host.version.to_string()).collect();
    words.extend(versions.iter().flat_map(|host| ["--host-build", host]));
    vec![flags.wincimg(&words)]
}

pub(super) struct DrainedHost<'a> {
    pub(super) node: &'a Node,
    /// Steps by hand before the drain.
    pub(super) before: Vec<ActionStep>,
    /// Steps by hand before the drain for pods that may be on it, or on another node.
    pub(super) if_there: Vec<ActionStep>,
    /// Steps by hand between the drain and the update.
    pub(super) drained: Vec<ActionStep>,
    /// The `OnDelete` workloads whose pods there get a rebuilt image with the update.
    pub(super) on_delete: Vec<&'a WorkloadId>,
    /// True if pods there may have `emptyDir` volumes, which drain deletes only if told to.
    pub(super) has_empty_dir: bool,
}

impl DrainedHost<'_> {
    /// Returns true if it has steps that no other host has.
    fn is_special(&self) -> bool {
        !self.before.is_empty() || !self.drained.is_empty()
    }

    /// An example of both.
    fn or(self, other: Self) -> Self {
        let (mut own, other) = if self.node.is_cordoned {
            (other, self)
        } else {
            (self, other)
        };
        own.has_empty_dir |= other.has_empty_dir;
        for id in other.on_delete {
            if !own.on_delete.contains(&id) {
                own.on_delete.push(id);
            }
        }
        for step in other.if_there {
            if !own.if_there.contains(&step) {
                own.if_there.push(step);
            }
        }
        own
    }

    fn steps(&self, script: &str, flags: &CommandFlags) -> Vec<ActionStep> {
        let name = self.node.name.as_deref().unwrap_or_default();
        let mut steps = [&self.before[..], &self.if_there].concat();
        let mut drain = vec!["drain", name, "--ignore-daemonsets"];
        if self.has_empty_dir {
            drain.push("--delete-emptydir-data");
        }
        steps.push(ActionStep::Command(flags.kubectl(&drain)));
        steps.extend(self.drained.iter().cloned());
        let run = format!("run {script} on {name} as an administrator");
        steps.push(ActionStep::Manual(run));
        if !self.node.is_cordoned {
            steps.push(ActionStep::Command(flags.kubectl(&["uncordon", name])));
        }
        let deleted = self.on_delete.iter().map(|id| {
            ActionStep::Manual(format!(
                "delete the pod of {id} on {name}: it is replaced only then (OnDelete)"
            ))
        });
        steps.extend(deleted);
        steps
    }
}

/// The kubectl command for an object of the namespace of a workload.
pub(super) fn kubectl_command(words: &[&str], own: &Workload, flags: &CommandFlags) -> String {
    flags.kubectl(&[words, &namespace_flag(own)[..]].concat())
}

/// kubectl's flag for the namespace of a workload; none if that of its context applies.
pub(super) fn namespace_flag(own: &Workload) -> Vec<&str> {
    let named = own.namespace.as_deref();
    named.map_or_else(Vec::new, |named| vec!["--namespace", named])
}

/// The steps that update hosts to a version, one node after the other. Each of a few nodes is
/// listed; of many with the same steps only one.
pub(super) fn patch_steps(
    to: WindowsVersion,
    kb: Option<Kb>,
    mut hosts: Vec<DrainedHost<'_>>,
    flags: &CommandFlags,
) -> Vec<ActionStep> {
    const LISTED: usize = 3;
    let exact = Updates::global().exact(to).is_some();
    let what = match kb {
        Some(kb) if !exact => kb.to_string(),
        None if !exact => format!("--latest {}", to.build),
        _ => to.to_string(),
    };
    // One script per update, so that builds do not overwrite each other's.
    let script = kb.map_or_else(|| format!("{to}.ps1"), |kb| format!("{kb}.ps1"));
    let write = format!("wincimg node hotfix script {what} --output {script}");
    let mut steps = vec![ActionStep::Command(write)];
    hosts.retain(|host| host.node.name.is_some());
    if hosts.is_empty() {
        steps.push(ActionStep::Manual(format!(
            "drain each node, run {script} on it as an administrator, and uncordon it"
        )));
        return steps;
    }
    let alike = hosts.iter().filter(|host| !host.is_special()).count();
    let (listed, alike): (Vec<_>, Vec<_>) = hosts
        .into_iter()
        .partition(|host| alike <= LISTED || host.is_special());
    for host in &listed {
        steps.extend(host.steps(&script, flags));
    }
    let others = alike.len().saturating_sub(1);
    if let Some(example) = alike.into_iter().reduce(DrainedHost::or) {
        let own = example.steps(&script, flags);
        let repeat = format!(
            "repeat the last {} steps for each of the other {others} nodes",
            own.len()
        );
        steps.extend(own);
        steps.push(ActionStep::Manual(repeat));
    }
    steps
}

/// The command that cordons hosts; none if they have no names.
pub(super) fn cordon_command<'a>(
    hosts: impl Iterator<Item = &'a Node>,
    flags: &CommandFlags,
) -> Option<String> {
    let names: Vec<&str> = hosts.filter_map(|host| host.name.as_deref()).collect();
    (!names.is_empty()).then(|| flags.kubectl(&[&["cordon"], &names[..]].concat()))
}

/// The command that builds an image for hosts of these versions; `others` is the flag for the
/// existing entries of a tag that is reused. An image that nothing uses does not keep the tag of one
/// version.
pub(super) fn rebuild_command(
    image: &Image,
    hosts: &[WindowsVersion],
    others: Option<&str>,
    new_tag: Option<&str>,
    is_used: bool,
    flags: &CommandFlags,
) -> String {
    let mut words = vec!["wincimg".to_owned(), "build".to_owned(), RECIPE.to_owned()];
    let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    for host in hosts {
        flag("host-build", host.to_string());
    }
    match image.location() {
        Some(Location::Registry(reference)) => {
            let (prefix, name) = prefix_and_name(&reference);
            flag("registry", prefix);
            flag("name", name.to_owned());
            let own = reference.tag();
            let kept = own.filter(|own| is_used || index_tag(own) == Some(*own));
            match new_tag.or(kept).or(own.and_then(index_tag)) {
                Some(tag) => flag("tag", tag.to_owned()),
                // An image named by its digest leaves the tag to the reader.
                None if own.is_none() => flag("tag", TAG.to_owned()),
                // By default each image gets its version, and the index `latest`.
                None => {}
            }
            words.push("--push".to_owned());
            // Another tag is in no one's way.
            let is_known = new_tag.or(kept).is_some();
            words.extend(others.filter(|_| is_known).map(str::to_owned));
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
            // An archive holds one image; several go to a layout of the same name.
            let place = match hosts {
                [_] => format!("docker-archive:{}", file.display()),
                _ => format!("oci:{}", file.with_extension("").display()),
            };
            flag("output", place);
        }
        None => {}
    }
    command_line(&words)
}

/// The command that gives an image a new tag too; none for an image without a name.
pub(super) fn tag_command(image: &Image, tag: &str, flags: &CommandFlags) -> Option<String> {
    Some(flags.wincimg(&["image", "tag", image.reference.as_deref()?, tag]))
}

/// The steps after which a workload runs a rebuilt image: one with another name, or its own. `update`
/// has those after which a changed template reaches its pods.
pub(super) fn adopt_steps(
    workload: &Workload,
    from: &str,
    to: Option<&str>,
    update: Vec<ActionStep>,
    flags: &CommandFlags,
) -> Vec<ActionStep> {
    let mut containers = workload.template.containers.iter();
    let never_pulls =
        containers.any(|own| own.image == from && own.pull_policy == PullPolicy::Never);
    let load = never_pulls.then(|| {
        ActionStep::Manual(format!(
            "load {} on each node of {}, which never pulls it (imagePullPolicy: Never)",
            to.unwrap_or(from),
            workload.id
        ))
    });
    let set_image = to.map(|to| image_step(workload, from, to, flags));
    // A paused Deployment refuses a restart, and pods that are deleted need none.
    let restart = restart_step(workload, flags)
        .filter(|_| to.is_none() && !workload.controller.updates_on_delete());
    let steps = load.into_iter().chain(set_image);
    steps.chain(update).chain(restart).collect()
}

/// The steps after which the pods of a workload have its changed template. `is_failing` is true if
/// some of them may not start now; `deleted` says which are deleted, where they are replaced only
/// then.
pub(super) fn update_steps(
    workload: &Workload,
    is_failing: bool,
    deleted: &str,
    flags: &CommandFlags,
) -> Vec<ActionStep> {
    if TemplateChange::of(workload) != Some(TemplateChange::Patch) {
        return Vec::new();
    }
    let holds = workload.controller.update_holds.iter();
    let holds = holds.filter(|hold| is_failing || **hold != UpdateHold::UnreadyPods);
    let steps = holds.map(|hold| update_step(workload, hold, deleted, flags));
    steps.map(ActionStep::Manual).collect()
}

/// The step by hand that removes a hold: its owner has set it on purpose, and knows which pods can
/// be spared.
fn update_step(
    workload: &Workload,
    hold: &UpdateHold,
    deleted: &str,
    flags: &CommandFlags,
) -> String {
    let id = &workload.id;
    let object = format!("{}/{}", id.kind.to_ascii_lowercase(), id.name);
    let kubectl = |words: &[&str]| kubectl_command(words, workload, flags);
    match hold {
        UpdateHold::Paused => format!(
            "resume {id}, which is paused and rolls out no change: {}",
            kubectl(&["rollout", "resume", &object])
        ),
        UpdateHold::OnDelete => {
            format!("delete the pods of {id} {deleted}: they are replaced only then (OnDelete)")
        }
        UpdateHold::Partition(partition) => {
            let patch = r#"{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}"#;
            let patch = kubectl(&["patch", &object, "--type", "merge", "--patch", patch]);
            format!(
                "set the partition of {id} from {partition} to 0, because pods below it keep the \
                 old template: {patch}"
            )
        }
        UpdateHold::UnreadyPods => format!(
            "delete the pods of {id} {THAT_FAIL}: its controller waits for them (OrderedReady)"
        ),
    }
}

/// The step that restarts a workload's pods; none for a kind that does not recreate them.
fn restart_step(workload: &Workload, flags: &CommandFlags) -> Option<ActionStep> {
    let id = &workload.id;
    if !["DaemonSet", "Deployment", "StatefulSet"].contains(&id.kind.as_str()) {
        return None;
    }
    if TemplateChange::of(workload)? == TemplateChange::ByHand {
        let owner = absent_owner(workload, flags);
        return Some(ActionStep::Manual(format!("restart {owner}")));
    }
    let object = format!("{}/{}", id.kind.to_ascii_lowercase(), id.name);
    let restart = kubectl_command(&["rollout", "restart", &object], workload, flags);
    Some(ActionStep::Command(restart))
}

/// The step that sets the image of a workload's containers.
pub(super) fn image_step(
    workload: &Workload,
    from: &str,
    to: &str,
    flags: &CommandFlags,
) -> ActionStep {
    let id = &workload.id;
    let by_hand = match TemplateChange::of(workload) {
        None => Some(format!("set the image {to} in {id}")),
        Some(TemplateChange::ByHand) => Some(format!(
            "set the image {to} in {}",
            absent_owner(workload, flags)
        )),
        // Of a pod, the image can be changed.
        Some(TemplateChange::MakeAgain) if id.kind != "Pod" => {
            Some(format!("recreate {id} with the image {to}"))
        }
        Some(TemplateChange::Patch | TemplateChange::MakeAgain) => None,
    };
    if let Some(text) = by_hand {
        return ActionStep::Manual(text);
    }
    let object = format!("{}/{}", id.kind.to_ascii_lowercase(), id.name);
    let containers = workload.template.containers.iter();
    let images: Vec<String> = containers
        .filter(|container| container.image == from)
        .map(|container| format!("{}={to}", container.name))
        .collect();
    let mut words = vec!["set", "image", &object];
    words.extend(images.iter().map(String::as_str));
    ActionStep::Command(kubectl_command(&words, workload, flags))
}
