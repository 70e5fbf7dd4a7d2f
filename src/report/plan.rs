//! The plan after which everything starts, as text.

use wincimg_cluster::rollout::{CapacityChange, Interruption, PlanAction, host_name, host_names};

use super::summary::{format_tally, noun};
use crate::report::prelude::*;

/// One action: its title, its effect on the nodes of workloads, and its steps.
pub(super) struct PlanStep<'a> {
    pub(super) title: String,
    pub(super) nodes: Option<String>,
    pub(super) steps: &'a [ActionStep],
}

pub(super) fn steps<'a>(rollout: &Rollout, plan: &'a ActionPlan) -> Vec<PlanStep<'a>> {
    let names = names::workloads(rollout);
    let actions = plan.actions.iter().zip(&plan.capacity);
    actions
        .map(|(action, changes)| PlanStep {
            title: title_of(rollout, action),
            nodes: nodes_in_words(changes, &names),
            steps: action.steps(),
        })
        .collect()
}

/// `shop/web starts on 2 of 4 nodes, then on 4 of 4`, for the first few workloads.
fn nodes_in_words(changes: &[CapacityChange], names: &[String]) -> Option<String> {
    const NAMED: usize = 3;
    let words = changes.iter().take(NAMED).map(|change| {
        let (before, after) = (&change.before, &change.after);
        let nodes = count(before.of, "node");
        let of_after = match after.of {
            0 => "outside the checked nodes".to_owned(),
            of => format!("on {} of {of}", after.starts),
        };
        let name = &names[change.workload];
        let starts = before.starts;
        format!("{name} starts on {starts} of {nodes}, then {of_after}")
    });
    let mut words: Vec<String> = words.collect();
    if changes.len() > NAMED {
        words.push(format!("{} more", count(changes.len() - NAMED, "workload")));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

fn title_of(rollout: &Rollout, action: &PlanAction) -> String {
    match action {
        PlanAction::Patch { to, kb, hosts, .. } => {
            let update = kb
                .map(|kb| format!(" with {}", kb.describe()))
                .unwrap_or_default();
            let names = host_names(rollout, hosts);
            match hosts.len() {
                1 => format!("drain 1 node, then update it to {to}{update}: {names}"),
                count => format!(
                    "drain {count} nodes one by one, and update each to {to}{update}: {names}"
                ),
            }
        }
        PlanAction::Rebuild { holds, .. } if !holds.is_empty() => format!(
            "{}; no new pods go to {} until the patch",
            action.title(rollout),
            host_names(rollout, holds)
        ),
        PlanAction::Pin { .. } | PlanAction::Rebuild { .. } => action.title(rollout),
    }
}

fn names_of(rollout: &Rollout, hosts: &[usize]) -> Vec<String> {
    let hosts = hosts.iter().map(|&host| &rollout.hosts[host]);
    hosts.map(host_name).collect()
}

/// Effect of the plan, after its effect on workloads that start today.
pub(super) fn outcome(rollout: &Rollout, plan: &ActionPlan) -> String {
    let mut spans: BTreeMap<_, Vec<&Interruption>> = BTreeMap::new();
    for interruption in &plan.interruptions {
        let span = (
            interruption.from, interruption.until, interruption.loses_data,
        );
        spans.entry(span).or_default().push(interruption);
    }
    let spans = spans.into_iter();
    let sentences = spans.map(|(span, all)| interruption_in_words(rollout, span, &all));
    let sentences = sentences.chain([outcome_at_last(rollout, plan)]);
    sentences.collect::<Vec<_>>().join(" ")
}

/// `Between 2 and 3, new pods of DaemonSet shop/logs do not start on win-a (17763.973).`; or that 3
/// stops them or deletes their data there.
fn interruption_in_words(
    rollout: &Rollout,
    (from, until, loses_data): (usize, Option<usize>, bool),
    all: &[&Interruption],
) -> String {
    let workloads = all
        .iter()
        .map(|it| rollout.workloads[it.workload].id.to_string());
    let hosts: BTreeSet<usize> = all.iter().flat_map(|it| &it.hosts).copied().collect();
    let hosts: Vec<usize> = hosts.into_iter().collect();
    let (names, hosts) = (in_words(workloads), hosts_in_words(rollout, &hosts));
    let action = from + 1;
    let no_start = format!("new pods of {names} do not start on {hosts}");
    match until {
        _ if loses_data => {
            format!("Action {action} deletes the emptyDir volumes of {names} on {hosts}.")
        }
        Some(until) if until == from => {
            format!("Action {action} stops {names} on {hosts} until the uncordon.")
        }
        Some(until) => format!("Between {action} and {}, {no_start}.", until + 1),
        None => format!("After {action}, {no_start}."),
    }
}

fn outcome_at_last(rollout: &Rollout, plan: &ActionPlan) -> String {
    let left = plan.then.incompatible + plan.then.unknown;
    let words = format_tally(&plan.tally, noun(rollout));
    let has_others = has_other_commands(rollout, plan);
    let too = if has_others {
        "Run the commands of the warnings, too. "
    } else {
        ""
    };
    let is_unplaced = plan.tally.get(StartStatus::Unplaced) > 0;
    match (plan.actions.is_empty(), left) {
        (true, 0) if is_unplaced => {
            format!("{too}No planned action; apply the fixes of what lands on no node.")
        }
        (true, 0) if has_others => {
            "No planned action; run the commands of the warnings.".to_owned()
        }
        (true, 0) => "Nothing to do.".to_owned(),
        (false, 0) if is_unplaced => {
            format!("{too}{} {words}.", promise(rollout, plan))
        }
        (false, 0) => too.to_owned() + &promise(rollout, plan),
        (true, _) => {
            let mut findings = rollout.placements.iter().flat_map(Placement::findings);
            let has_commands = findings.any(|finding| !finding.commands.is_empty());
            let or_fix = if has_commands {
                "; run the commands of the fixes"
            } else {
                ""
            };
            format!("No planned action solves this{or_fix}.")
        }
        (false, _) => format!("Then: {words}."),
    }
}

/// Returns true if warnings have commands that are not the plan's.
fn has_other_commands(rollout: &Rollout, plan: &ActionPlan) -> bool {
    let planned: BTreeSet<String> = plan.actions.iter().flat_map(PlanAction::commands).collect();
    let warnings = rollout.notices.iter();
    let mut commands = warnings.flat_map(|warning| &warning.finding.commands);
    commands.any(|command| !planned.contains(command))
}

/// `Then everything starts.`, except for pods without a node and where it is reported to fail.
fn promise(rollout: &Rollout, plan: &ActionPlan) -> String {
    let is_short = |action: &PlanAction| match action {
        PlanAction::Pin { shortage, .. } => shortage.is_some(),
        PlanAction::Patch { .. } | PlanAction::Rebuild { .. } => false,
    };
    let mut text = "Then everything starts".to_owned();
    if plan.actions.iter().any(is_short) {
        text.push_str(" that finds a node");
    }
    if !plan.reported_broken.is_empty() {
        let hosts = hosts_in_words(rollout, &plan.reported_broken);
        text.push_str(" except on ");
        text.push_str(&hosts);
        text.push_str(", where such images are reported to fail");
    }
    text + "."
}

pub(super) fn as_json(rollout: &Rollout, plan: &ActionPlan) -> Value {
    let actions = plan.actions.iter().zip(&plan.capacity);
    let actions: Vec<Value> = actions
        .map(|(action, changes)| {
            let mut value = action_as_json(rollout, action);
            let nodes = changes.iter().map(|change| {
                let workload = &rollout.workloads[change.workload].id;
                json!({"workload": workload, "before": change.before, "after": change.after})
            });
            value["commands"] = json!(action.commands());
            value["nodes"] = nodes.collect();
            value["steps"] = json!(action.steps());
            value
        })
        .collect();
    let interruptions = plan.interruptions.iter().map(|interruption| {
        json!({
            "workload": rollout.workloads[interruption.workload].id,
            "hosts": names_of(rollout, &interruption.hosts),
            "from": interruption.from,
            "until": interruption.until,
            "loses_data": interruption.loses_data,
        })
    });
    let interruptions: Vec<Value> = interruptions.collect();
    json!({"actions": actions, "interruptions": interruptions, "then": plan.then})
}

fn action_as_json(rollout: &Rollout, action: &PlanAction) -> Value {
    match action {
        PlanAction::Pin {
            workload,
            pin,
            hosts,
            of,
            shortage,
            ..
        } => json!({
            "kind": "pin",
            "workload": rollout.workloads[*workload].id,
            "node_selector": pin.selector().map(|(label, value)| json!({label: value})),
            "node_affinity": pin.affinity(),
            "of_hosts": of,
            "shortage": shortage,
            "hosts": names_of(rollout, hosts),
        }),
        PlanAction::Patch { to, kb, hosts, .. } => json!({
            "kind": "patch",
            "to": to,
            "kb": kb.map(|kb| kb.to_string()),
            "hosts": names_of(rollout, hosts),
        }),
        PlanAction::Rebuild {
            image,
            host_builds,
            new_tag,
            holds,
            ..
        } => json!({
            "kind": "rebuild",
            "image": rollout.images[*image].label(),
            "host_builds": host_builds,
            "new_tag": new_tag,
            "cordoned": names_of(rollout, holds),
        }),
    }
}
