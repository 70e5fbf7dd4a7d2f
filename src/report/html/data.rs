//! Data of the page's script: each finding and each set of nodes is stored once.

use std::hash::Hash;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use wincimg_cluster::rollout::{HostKind, HostSelection};

use crate::report::matrix::short_release;
use crate::report::plan::{outcome, steps};
use crate::report::prelude::*;
use crate::report::problems::problems;
use crate::report::summary::{WorkloadGroup, outlook, workload_groups};

/// The data, with an index of each finding and selection.
pub(super) fn data(rollout: &Rollout) -> Value {
    let mut findings = Parts::new();
    let mut selections = Parts::new();
    let placements = rollout.placements.iter();
    let placements: Vec<Value> = placements
        .map(|placement| part_of(placement, rollout, &mut findings, &mut selections))
        .collect();
    let problems = problems(rollout);
    let problems = problems.iter().map(|problem| {
        json!({
            "finding": findings.place(problem.finding, || finding_part(problem.finding)),
            "images": problem.images,
            "hosts_in_words": problem.format_hosts(),
            "workloads": problem.workloads,
        })
    });
    let problems: Vec<Value> = problems.collect();
    let cases = workload_groups(rollout);
    let cases = cases.iter().map(|case| case_part(case, rollout));
    let hosts = rollout.hosts.iter().zip(&rollout.kind_of);
    let hosts = hosts.map(|(host, kind)| {
        let build = host.build.map(|build| build.to_string());
        (&host.name, kind, build)
    });
    let images = rollout.images.iter().map(Image::label);
    let plan = rollout.plan.as_ref().map(|plan| {
        let steps = steps(rollout, plan).into_iter();
        let steps = steps.map(|it| json!([it.title, it.nodes, parts(it.steps)]));
        json!({"steps": steps.collect::<Vec<_>>(), "outcome": outcome(rollout, plan)})
    });
    json!({
        "hosts": hosts.collect::<Vec<_>>(),
        "kinds": rollout.kinds.iter().map(kind_part).collect::<Vec<_>>(),
        // The full name, and the shortest unique one.
        "images": images.zip(names::images(rollout)).collect::<Vec<_>>(),
        "workloads": workload_parts(rollout),
        "findings": findings.parts,
        // The hosts of each, as bits in base64.
        "selections": selections.parts,
        "placements": placements,
        "cases": cases.collect::<Vec<_>>(),
        "problems": problems,
        "plan": plan,
        "what_if": what_if(rollout),
    })
}

fn case_part(case: &WorkloadGroup<'_>, rollout: &Rollout) -> Value {
    let (whys, more) = case.reasons(rollout);
    json!({
        "starts": case.starts as usize,
        "workloads": case.workloads,
        "outlook": case.describe_starts(),
        "whys": whys,
        "more": more,
        "fixes": case.fixes,
    })
}

/// Each step with true if it is a command.
fn parts(steps: &[ActionStep]) -> Vec<(&str, bool)> {
    let parts = steps.iter().map(|step| match step {
        ActionStep::Command(command) => (command.as_str(), true),
        ActionStep::Manual(text) => (text.as_str(), false),
    });
    parts.collect()
}

fn workload_parts(rollout: &Rollout) -> Vec<Value> {
    let mut names = names::workloads(rollout).into_iter();
    let parts = workload_outcomes(rollout).filter_map(|(workload, outcome)| {
        Some(json!({
            "name": names.next()?,
            "kind": rollout.workloads[workload].id.kind,
            "manifest": rollout.workloads[workload].manifest().map(ToString::to_string),
            "starts": outcome.starts as usize,
            "outlook": outlook(&outcome),
            "nodes": outcome.nodes,
            "starts_on": outcome.starts_on,
        }))
    });
    parts.collect()
}

fn kind_part(kind: &HostKind) -> Value {
    let release = kind.build.map(|build| short_release(build.version.build));
    json!({
        "build": kind.versions(),
        "release": release.unwrap_or_default(),
        "runtime": kind.runtime.name(),
    })
}

fn part_of<'a>(
    placement: &'a Placement,
    rollout: &Rollout,
    findings: &mut Parts<&'a Finding>,
    selections: &mut Parts<*const HostSelection>,
) -> Value {
    let selection = &placement.selection;
    let selected = || selection_part(selection, rollout.hosts.len());
    // Each image, and its findings: one for each kind of host, in order of the hosts.
    let images = placement.images.iter().map(|placed| {
        let own = placed.findings.iter();
        let own = own.map(|finding| findings.place(finding, || finding_part(finding)));
        (placed.image, own.collect())
    });
    let images: Vec<(usize, Vec<usize>)> = images.collect();
    json!({
        "workload": placement.workload,
        "selection": selections.place(Rc::as_ptr(selection), selected),
        "images": images,
    })
}

/// Parts that are stored once, and named by their index.
struct Parts<K> {
    known: HashMap<K, usize>,
    parts: Vec<Value>,
}

impl<K: Eq + Hash> Parts<K> {
    fn new() -> Self {
        Self {
            known: HashMap::new(),
            parts: Vec::new(),
        }
    }

    fn place(&mut self, key: K, part: impl FnOnce() -> Value) -> usize {
        let parts = &mut self.parts;
        *self.known.entry(key).or_insert_with(|| {
            parts.push(part());
            parts.len() - 1
        })
    }
}

fn finding_part(finding: &Finding) -> Value {
    json!({
        // 0 compatible, 1 warning, 2 unknown, 3 incompatible.
        "level": finding.outcome as u8,
        "rule": finding.rule,
        "why": finding.reason,
        "fix": finding.fix,
        "commands": finding.commands,
        "isolation": finding.isolation.name(),
        "build": finding.image_build.map(|build| build.to_string()),
    })
}

fn selection_part(selection: &HostSelection, hosts: usize) -> Value {
    let mut bits = vec![0_u8; hosts.div_ceil(8)];
    for &(host, _) in &selection.hosts {
        bits[host as usize / 8] |= 1 << (host % 8);
    }
    BASE64.encode(bits).into()
}
