//! The report as one HTML file that asks no network for anything: a matrix of nodes and images, and
//! what to do. The page's script draws it from data inside the page, a part at a time, so that
//! thousands of nodes cost no more than the screen shows.

use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::answer::headline;
use super::plan::{outcome, steps};
use super::problems::all_problems;
use super::{skipped, what_if};
use crate::rollout::{Finding, HostKind, Image, Placement, Rollout, Selection, severity};
use crate::windows::release;

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// Writes the report as HTML.
pub fn write_html(rollout: &Rollout, mut out: impl Write) -> io::Result<()> {
    let data = serde_json::to_string(&Data::of(rollout))?
        // Nothing inside the data may end the element that it is in.
        .replace('<', "\\u003c");
    let values = [
        ("answer", escaped(&headline(rollout))),
        (
            "summary",
            match skipped(rollout) {
                Some(skipped) => format!("{}. {}", rollout.summary, escaped(&skipped)),
                None => rollout.summary.to_string(),
            },
        ),
        // Only the page's own style and script may run, and nothing may be fetched.
        ("style-hash", hash_of(STYLE)),
        ("script-hash", hash_of(SCRIPT)),
        ("style", STYLE.to_owned()),
        ("script", SCRIPT.to_owned()),
        ("data", data),
    ];
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        out.write_all(before.as_bytes())?;
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
            out.write_all(value.as_bytes())?;
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn hash_of(text: &str) -> String {
    format!("sha256-{}", BASE64.encode(Sha256::digest(text)))
}

/// What the page's script reads.
#[derive(Serialize)]
struct Data<'a> {
    counts: [usize; 4],
    /// Name, kind and version.
    hosts: Vec<(Option<&'a str>, usize, Option<String>)>,
    kinds: Vec<Kind<'a>>,
    images: Vec<String>,
    workloads: Vec<String>,
    findings: Vec<FindingPart<'a>>,
    /// For each selection its hosts, as bits in base64.
    selections: Vec<String>,
    placements: Vec<PlacementPart>,
    problems: Vec<ProblemPart>,
    plan: Option<PlanPart>,
    what_if: Option<String>,
}

#[derive(Serialize)]
struct PlanPart {
    steps: Vec<(String, Vec<String>)>,
    outcome: String,
}

#[derive(Serialize)]
struct Kind<'a> {
    build: Option<String>,
    release: String,
    runtime: &'a str,
}

#[derive(Serialize)]
struct FindingPart<'a> {
    /// 0 compatible, 1 warning, 2 unknown, 3 incompatible.
    level: u8,
    rule: &'a str,
    why: &'a str,
    fix: Option<&'a str>,
    commands: &'a [String],
    isolation: &'a str,
    build: Option<String>,
}

#[derive(Serialize)]
struct PlacementPart {
    workload: Option<usize>,
    selection: usize,
    /// Image, and its findings: one for each kind of host, as they come first among the hosts.
    images: Vec<(usize, Vec<usize>)>,
}

#[derive(Serialize)]
struct ProblemPart {
    finding: usize,
    images: Vec<usize>,
    hosts: usize,
    hosts_in_words: String,
    workloads: Vec<usize>,
}

impl<'a> Data<'a> {
    fn of(rollout: &'a Rollout) -> Self {
        let mut findings = Findings::default();
        let mut selections = Selections::default();
        let placements = rollout
            .placements
            .iter()
            .map(|placement| part_of(placement, rollout, &mut findings, &mut selections))
            .collect();
        let problems = all_problems(rollout)
            .iter()
            .map(|problem| ProblemPart {
                finding: findings.place(problem.finding),
                images: problem.images.clone(),
                hosts: problem.hosts.len(),
                hosts_in_words: problem.hosts_in_words(),
                workloads: problem.workloads.clone(),
            })
            .collect();
        let summary = &rollout.summary;
        let hosts = rollout.hosts.iter();
        Self {
            counts: [
                summary.compatible,
                summary.warning,
                summary.unknown,
                summary.incompatible,
            ],
            hosts: hosts
                .zip(&rollout.kind_of)
                .map(|(host, &kind)| {
                    let build = host.build.map(|build| build.to_string());
                    (host.name.as_deref(), kind, build)
                })
                .collect(),
            kinds: rollout.kinds.iter().map(kind_part).collect(),
            images: rollout.images.iter().map(Image::label).collect(),
            workloads: rollout
                .workloads
                .iter()
                .map(|workload| workload.id.to_string())
                .collect(),
            findings: findings.parts,
            selections: selections.parts,
            placements,
            problems,
            plan: rollout.plan.as_ref().map(|plan| PlanPart {
                steps: steps(rollout, plan)
                    .into_iter()
                    .map(|step| (step.title, step.commands.to_vec()))
                    .collect(),
                outcome: outcome(plan),
            }),
            what_if: what_if(rollout),
        }
    }
}

fn kind_part(kind: &HostKind) -> Kind<'_> {
    Kind {
        build: kind.versions(),
        release: kind
            .build
            .map(|build| release::name_of(build.version.build))
            .unwrap_or_default(),
        runtime: kind.runtime.name(),
    }
}

fn part_of<'a>(
    placement: &'a Placement,
    rollout: &Rollout,
    findings: &mut Findings<'a>,
    selections: &mut Selections,
) -> PlacementPart {
    PlacementPart {
        workload: placement.workload,
        selection: selections.place(&placement.selection, rollout.hosts.len()),
        images: placement
            .images
            .iter()
            .map(|placed| {
                let own = placed
                    .findings
                    .iter()
                    .map(|finding| findings.place(finding));
                (placed.image, own.collect())
            })
            .collect(),
    }
}

/// Every finding once.
#[derive(Default)]
struct Findings<'a> {
    known: HashMap<*const Finding, usize>,
    parts: Vec<FindingPart<'a>>,
}

impl<'a> Findings<'a> {
    fn place(&mut self, finding: &'a Finding) -> usize {
        let parts = &mut self.parts;
        *self
            .known
            .entry(std::ptr::from_ref(finding))
            .or_insert_with(|| {
                parts.push(FindingPart {
                    level: severity(finding.outcome),
                    rule: finding.rule,
                    why: &finding.reason,
                    fix: finding.fix.as_deref(),
                    commands: &finding.commands,
                    isolation: finding.isolation.name(),
                    build: finding.image_build.map(|build| build.to_string()),
                });
                parts.len() - 1
            })
    }
}

/// Every selection once.
#[derive(Default)]
struct Selections {
    known: HashMap<*const Selection, usize>,
    parts: Vec<String>,
}

impl Selections {
    fn place(&mut self, selection: &Rc<Selection>, hosts: usize) -> usize {
        let parts = &mut self.parts;
        *self.known.entry(Rc::as_ptr(selection)).or_insert_with(|| {
            let mut bits = vec![0_u8; hosts.div_ceil(8)];
            for &(host, _) in &selection.hosts {
                bits[host as usize / 8] |= 1 << (host % 8);
            }
            parts.push(BASE64.encode(bits));
            parts.len() - 1
        })
    }
}
