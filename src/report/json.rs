//! The report as JSON: one check per line, assembled from parts that are serialized once, because
//! there can be millions.

use serde::Serialize;
use wincimg_cluster::rollout::OutdatedImage;
use wincimg_cluster::workloads::WorkloadId;
use wincimg_common::json::EscapingWriter;
use wincimg_windows::version::WindowsVersion;

use super::plan::as_json;
use super::summary::{causes, fixes, summarize};
use crate::report::prelude::*;

/// Writes the report as one JSON document, with a check for each kind of node or for each node.
pub(crate) fn write_json(
    rollout: &Rollout,
    strict: bool,
    each_node: bool,
    out: impl Write,
) -> io::Result<()> {
    let mut out = EscapingWriter(out);
    let compatible = rollout.is_compatible(strict);
    let summary = serde_json::to_string(&rollout.summary)?;
    write!(
        out,
        "{{\n  \"compatible\": {compatible},\n  \"summary\": {summary},\n  \"workloads\": ["
    )?;
    let mut separator = "\n    ";
    for (workload, outcome) in workload_outcomes(rollout) {
        let part = workload_part(rollout, &outcome, workload);
        write!(out, "{separator}{part}")?;
        separator = ",\n    ";
    }
    out.write_all(b"\n  ],\n  \"checks\": [")?;
    let mut checks = Checks::new(rollout, each_node);
    for placement in &rollout.placements {
        checks.write_placement(placement, &mut out)?;
    }
    checks.write_notices(&mut out)?;
    out.write_all(b"\n  ]")?;
    for (name, value) in optional_parts(rollout) {
        write!(out, ",\n  \"{name}\": {value}")?;
    }
    out.write_all(b"\n}\n")
}

/// The parts that are left out if they are null or an empty list.
fn optional_parts(rollout: &Rollout) -> impl Iterator<Item = (&'static str, Value)> {
    let skipped = rollout.skipped.iter().map(|skipped| {
        let origin = &skipped.origin;
        extended(
            &skipped.id,
            json!({"file": origin.file, "line": origin.line}),
        )
    });
    let behind = rollout.outdated_images();
    let behind = behind.iter().map(|it| behind_part(rollout, it));
    let inactive = Some(rollout.inactive).filter(|number| *number > 0);
    let plan = rollout.plan.as_ref().map(|plan| as_json(rollout, plan));
    let parts = [
        ("what_if", json!(rollout.what_if)),
        ("skipped", skipped.collect()),
        ("cordoned", json!(rollout.cordoned())),
        ("inactive", json!(inactive)),
        ("behind", behind.collect()),
        ("missing_fixes", json!(rollout.missing_fixes)),
        ("plan", json!(plan)),
    ];
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    parts.into_iter().filter(move |(_, value)| !is_empty(value))
}

/// Result for one workload, with its worst finding and all fixes.
fn workload_part(rollout: &Rollout, outcome: &WorkloadOutcome<'_>, workload: usize) -> Value {
    let causes = summarize(causes(rollout, outcome, workload), outcome.starts);
    let worst = causes.first();
    let fixes = fixes(&causes);
    let words: Vec<&str> = fixes.iter().map(|(fix, _)| *fix).collect();
    let mut commands: Vec<&str> = Vec::new();
    for &command in fixes.iter().flat_map(|(_, commands)| commands) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    let outlook = json!({
        "manifest": rollout.workloads[workload].manifest(),
        "starts": outcome.starts.name(),
        "nodes": outcome.nodes,
        "starts_on": outcome.starts_on,
        "rule": worst.map(|cause| cause.finding.rule),
        "reason": worst.map(|cause| cause.describe(rollout)),
        "fix": (!words.is_empty()).then(|| words.join("; ")),
        "commands": commands,
    });
    extended(&rollout.workloads[workload].id, outlook)
}

/// An image without the latest monthly update.
fn behind_part(rollout: &Rollout, behind: &OutdatedImage<'_>) -> Value {
    json!({
        "image": {
            "reference": rollout.images[behind.image].reference,
            "build": behind.version,
        },
        "kb": behind.at.and_then(|update| update.kb),
        "newest": {
            "build": behind.newest.version(),
            "kb": behind.newest.kb,
            "date": behind.newest.date,
        },
        "months": behind.months(),
        "at_least": behind.is_at_least,
    })
}

/// Serialized parts of checks.
struct Checks<'a> {
    rollout: &'a Rollout,
    /// True if equal nodes are separate checks.
    each_node: bool,
    hosts: Vec<String>,
    /// Separator before a check: none before the first.
    separator: &'static str,
    known: HashMap<(Option<usize>, *const Finding), String>,
}

impl<'a> Checks<'a> {
    fn new(rollout: &'a Rollout, each_node: bool) -> Self {
        let hosts = rollout.hosts.iter().map(|host| {
            let build = host.build.map(|build| build.version);
            host_text(host.name.as_deref(), build)
        });
        Self {
            rollout,
            each_node,
            hosts: hosts.collect(),
            separator: "",
            known: HashMap::new(),
        }
    }

    fn write_placement(
        &mut self,
        placement: &'a Placement,
        out: &mut impl Write,
    ) -> io::Result<()> {
        // Text after a host: one for each image and each kind of host.
        let mut ends: Vec<Vec<String>> = Vec::with_capacity(placement.images.len());
        for placed in &placement.images {
            let own = placed
                .findings
                .iter()
                .map(|finding| self.end_of_check(Some(placed.image), placement.workload, finding));
            ends.push(own.collect::<io::Result<_>>()?);
        }
        if self.each_node {
            for &(host, group) in &placement.selection.hosts {
                for end in &ends {
                    self.start_array(out)?;
                    out.write_all(self.hosts[host as usize].as_bytes())?;
                    out.write_all(end[group as usize].as_bytes())?;
                }
            }
            return Ok(());
        }
        for (at, group) in placement.selection.groups.iter().enumerate() {
            for hosts in of_one_version(self.rollout, &group.hosts) {
                let names = hosts
                    .iter()
                    .map(|host| &self.rollout.hosts[*host as usize].name);
                let names = serde_json::to_string(&names.collect::<Vec<_>>())?;
                for end in &ends {
                    self.start_array(out)?;
                    out.write_all(self.hosts[hosts[0] as usize].as_bytes())?;
                    if hosts.len() > 1 {
                        write!(out, ",\"nodes\":{names}")?;
                    }
                    out.write_all(end[at].as_bytes())?;
                }
            }
        }
        Ok(())
    }

    fn write_notices(&mut self, out: &mut impl Write) -> io::Result<()> {
        let nowhere = host_text(None, None);
        for notice in &self.rollout.notices {
            self.start_array(out)?;
            out.write_all(nowhere.as_bytes())?;
            let end = self.end_of_check(notice.image, notice.workload, &notice.finding)?;
            out.write_all(end.as_bytes())?;
        }
        Ok(())
    }

    fn start_array(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(self.separator.as_bytes())?;
        self.separator = ",";
        out.write_all(b"\n    ")
    }

    /// The fields of a check except its host.
    fn end_of_check(
        &mut self,
        image: Option<usize>,
        workload: Option<usize>,
        finding: &Finding,
    ) -> io::Result<String> {
        let id: Option<&WorkloadId> = workload.map(|workload| &self.rollout.workloads[workload].id);
        let workload = serde_json::to_string(&id)?;
        let key = (image, std::ptr::from_ref(finding));
        let known = match self.known.get(&key) {
            Some(known) => known,
            None => {
                let image = image.map(|image| &self.rollout.images[image]);
                let text = image_and_finding(image, finding);
                self.known.entry(key).or_insert(text)
            }
        };
        Ok(known.replacen(WORKLOAD, &workload, 1))
    }
}

/// Hosts by version: a kind has several if their differences have no effect.
fn of_one_version(rollout: &Rollout, hosts: &[u32]) -> Vec<Vec<u32>> {
    let mut by_version: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for &host in hosts {
        let build = rollout.hosts[host as usize].build;
        by_version.entry(build).or_default().push(host);
    }
    let mut all: Vec<Vec<u32>> = by_version.into_values().collect();
    all.sort_by_key(|hosts| hosts[0]);
    all
}

/// Placeholder for the workload in a text shared by all workloads. JSON never contains it, because
/// control characters are escaped.
const WORKLOAD: &str = "\u{1}";

fn host_text(name: Option<&str>, build: Option<WindowsVersion>) -> String {
    format!("{{\"host\":{}", json!({"name": name, "build": build}))
}

fn image_and_finding(image: Option<&Image>, finding: &Finding) -> String {
    let image = json!({
        "reference": image.and_then(|image| image.reference.as_deref()),
        "build": finding
            .image_build
            .or_else(|| image.and_then(Image::version)),
    });
    let finding = json!({
        "isolation": finding.isolation.name(),
        "verdict": finding.outcome.name(),
        "rule": finding.rule,
        "reason": finding.reason,
        "fix": finding.advice(),
        "commands": finding.commands,
    });
    let finding = finding.to_string();
    let finding = finding.trim_start_matches('{');
    format!(",\"image\":{image},\"workload\":{WORKLOAD},{finding}")
}

/// JSON of a value, with further fields appended.
pub(crate) fn extended(value: &impl Serialize, more: Value) -> Value {
    let mut all = json!(value);
    if let (Value::Object(fields), Value::Object(more)) = (&mut all, more) {
        fields.extend(more);
    }
    all
}
