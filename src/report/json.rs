//! The report as JSON, in the shape that the command line's contract promises: a check a line, put
//! together from parts that are written once, because there can be millions.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use jiff::civil::Date;
use serde::Serialize;
use wincimg_cluster::rollout::{Behind, Finding, Image, Placement, Prospect, Rollout, Subject};
use wincimg_cluster::workloads::{Skipped, WorkloadId};
use wincimg_windows::update::Kb;
use wincimg_windows::version::WindowsVersion;

use super::answer::{causes, fixes, in_short};
use super::plan::as_json;

/// Writes the report as one JSON document, with a check for each kind of node or for each node.
pub(crate) fn write_json(
    rollout: &Rollout,
    strict: bool,
    each_node: bool,
    mut out: impl Write,
) -> io::Result<()> {
    let compatible = rollout.is_compatible(strict);
    let summary = serde_json::to_string(&rollout.summary)?;
    write!(
        out,
        "{{\n  \"compatible\": {compatible},\n  \"summary\": {summary},\n  \"workloads\": ["
    )?;
    let mut separator = "\n    ";
    for prospect in rollout.prospects() {
        if let Subject::Workload(workload) = prospect.subject {
            let part = WorkloadPart::of(rollout, &prospect, workload);
            write!(out, "{separator}{}", serde_json::to_string(&part)?)?;
            separator = ",\n    ";
        }
    }
    out.write_all(b"\n  ],\n  \"checks\": [")?;
    let mut checks = Checks::new(rollout, each_node)?;
    for placement in &rollout.placements {
        checks.write_placement(placement, &mut out)?;
    }
    checks.write_notices(&mut out)?;
    out.write_all(b"\n  ]")?;
    if !rollout.what_if.is_empty() {
        let what_if = serde_json::to_string(&rollout.what_if)?;
        write!(out, ",\n  \"what_if\": {what_if}")?;
    }
    if !rollout.skipped.is_empty() {
        let skipped: Vec<_> = rollout.skipped.iter().map(SkippedPart::of).collect();
        let skipped = serde_json::to_string(&skipped)?;
        write!(out, ",\n  \"skipped\": {skipped}")?;
    }
    let cordoned = rollout.cordoned();
    if !cordoned.is_empty() {
        let cordoned = serde_json::to_string(&cordoned)?;
        write!(out, ",\n  \"cordoned\": {cordoned}")?;
    }
    if rollout.inactive > 0 {
        write!(out, ",\n  \"inactive\": {}", rollout.inactive)?;
    }
    let behind = rollout.behind();
    if !behind.is_empty() {
        let behind: Vec<_> = behind
            .iter()
            .map(|it| BehindPart::of(rollout, it))
            .collect();
        let behind = serde_json::to_string(&behind)?;
        write!(out, ",\n  \"behind\": {behind}")?;
    }
    if let Some(plan) = &rollout.plan {
        let plan = serde_json::to_string(&as_json(rollout, plan))?;
        write!(out, ",\n  \"plan\": {plan}")?;
    }
    out.write_all(b"\n}\n")
}

/// What becomes of one workload, with the worst thing about it and everything that mends it.
#[derive(Serialize)]
struct WorkloadPart<'a> {
    #[serde(flatten)]
    id: &'a WorkloadId,
    starts: &'static str,
    nodes: usize,
    starts_on: usize,
    rule: Option<&'static str>,
    reason: Option<String>,
    fix: Option<String>,
    commands: Vec<&'a str>,
}

impl<'a> WorkloadPart<'a> {
    fn of(rollout: &'a Rollout, prospect: &Prospect<'a>, workload: usize) -> Self {
        let causes = in_short(causes(rollout, prospect, workload), prospect.starts);
        let worst = causes.first();
        let fixes = fixes(&causes);
        let words: Vec<&str> = fixes.iter().map(|(fix, _)| *fix).collect();
        let mut commands: Vec<&str> = Vec::new();
        for command in fixes.iter().flat_map(|(_, commands)| *commands) {
            if !commands.contains(&command.as_str()) {
                commands.push(command);
            }
        }
        Self {
            id: &rollout.workloads[workload].id,
            starts: prospect.starts.name(),
            nodes: prospect.nodes,
            starts_on: prospect.starts_on,
            rule: worst.map(|cause| cause.finding.rule),
            reason: worst.map(|cause| cause.in_words(rollout)),
            fix: (!words.is_empty()).then(|| words.join("; ")),
            commands,
        }
    }
}

#[derive(Serialize)]
struct SkippedPart<'a> {
    #[serde(flatten)]
    id: &'a WorkloadId,
    file: &'a str,
    line: usize,
}

impl<'a> SkippedPart<'a> {
    fn of(skipped: &'a Skipped) -> Self {
        Self {
            id: &skipped.id,
            file: &skipped.origin.file,
            line: skipped.origin.line,
        }
    }
}

/// An image that lacks the update of the month.
#[derive(Serialize)]
struct BehindPart<'a> {
    image: ImagePart<'a>,
    kb: Option<Kb>,
    newest: UpdatePart,
}

#[derive(Serialize)]
struct UpdatePart {
    build: WindowsVersion,
    kb: Option<Kb>,
    date: Date,
}

impl<'a> BehindPart<'a> {
    fn of(rollout: &'a Rollout, behind: &Behind<'_>) -> Self {
        Self {
            image: ImagePart {
                reference: rollout.images[behind.image].reference.as_deref(),
                build: Some(behind.version),
            },
            kb: behind.at.and_then(|update| update.kb),
            newest: UpdatePart {
                build: behind.newest.version(),
                kb: behind.newest.kb,
                date: behind.newest.date,
            },
        }
    }
}

#[derive(Serialize)]
struct HostPart<'a> {
    name: Option<&'a str>,
    build: Option<WindowsVersion>,
}

#[derive(Serialize)]
struct ImagePart<'a> {
    reference: Option<&'a str>,
    build: Option<WindowsVersion>,
}

#[derive(Serialize)]
struct FindingPart<'a> {
    isolation: &'a str,
    verdict: &'a str,
    rule: &'a str,
    reason: &'a str,
    fix: Option<String>,
    commands: &'a [String],
}

/// The parts of checks as text.
struct Checks<'a> {
    rollout: &'a Rollout,
    /// Whether equal nodes get a row each.
    each_node: bool,
    hosts: Vec<String>,
    /// What comes before a check: nothing yet, or the end of the one before.
    separator: &'static str,
    known: HashMap<(Option<usize>, *const Finding), String>,
}

impl<'a> Checks<'a> {
    fn new(rollout: &'a Rollout, each_node: bool) -> io::Result<Self> {
        let hosts = rollout.hosts.iter().map(|host| {
            host_text(&HostPart {
                name: host.name.as_deref(),
                build: host.build.map(|build| build.version),
            })
        });
        Ok(Self {
            rollout,
            each_node,
            hosts: hosts.collect::<io::Result<_>>()?,
            separator: "",
            known: HashMap::new(),
        })
    }

    fn write_placement(
        &mut self,
        placement: &'a Placement,
        out: &mut impl Write,
    ) -> io::Result<()> {
        // What follows a host: one text for each image and each kind of host.
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
                    self.begin(out)?;
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
                    self.begin(out)?;
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
        let nowhere = host_text(&HostPart {
            name: None,
            build: None,
        })?;
        for notice in &self.rollout.notices {
            self.begin(out)?;
            out.write_all(nowhere.as_bytes())?;
            let end = self.end_of_check(notice.image, notice.workload, &notice.finding)?;
            out.write_all(end.as_bytes())?;
        }
        Ok(())
    }

    fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(self.separator.as_bytes())?;
        self.separator = ",";
        out.write_all(b"\n    ")
    }

    /// Everything about a check but its host.
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
                let text =
                    image_and_finding(image.map(|image| &self.rollout.images[image]), finding)?;
                self.known.entry(key).or_insert(text)
            }
        };
        Ok(known.replacen(WORKLOAD, &workload, 1))
    }
}

/// Hosts by their version: a kind has several where they make no difference.
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

/// Where the workload comes in a text that is shared by all workloads. No JSON text contains it: a
/// control character is always escaped there.
const WORKLOAD: &str = "\u{1}";

fn host_text(host: &HostPart<'_>) -> io::Result<String> {
    Ok(format!("{{\"host\":{}", serde_json::to_string(host)?))
}

fn image_and_finding(image: Option<&Image>, finding: &Finding) -> io::Result<String> {
    let image = serde_json::to_string(&ImagePart {
        reference: image.and_then(|image| image.reference.as_deref()),
        build: finding
            .image_build
            .or_else(|| image.and_then(Image::version)),
    })?;
    let finding = serde_json::to_string(&FindingPart {
        isolation: finding.isolation.name(),
        verdict: finding.outcome.name(),
        rule: finding.rule,
        reason: &finding.reason,
        fix: finding.advice(),
        commands: &finding.commands,
    })?;
    let finding = finding.trim_start_matches('{');
    Ok(format!(
        ",\"image\":{image},\"workload\":{WORKLOAD},{finding}"
    ))
}
