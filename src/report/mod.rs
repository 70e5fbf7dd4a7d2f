//! Report formats of a rollout or a fleet of images.

mod annotations;
mod fleet;
mod html;
mod json;
mod junit;
mod lint;
mod markdown;
mod matrix;
mod names;
mod plan;
mod prelude;
mod problems;
mod sarif;
mod scan;
mod security;
mod suites;
mod summary;
mod text;

use std::collections::BTreeMap;

pub(crate) use annotations::{Annotation, write_github, write_gitlab};
pub(crate) use fleet::write_fleet;
pub(crate) use html::{ReportOrigin, write_html};
pub(crate) use json::{extended, write_json};
pub(crate) use junit::write_junit;
pub(crate) use lint::{
    LintedFile, annotations_of, write_lint_json, write_lint_sarif, write_lint_text,
};
pub(crate) use markdown::write_markdown;
pub(crate) use names::{count, joined, shorten, tally};
pub(crate) use sarif::write_sarif;
pub(crate) use scan::write_scan_sarif;
use security::image_in_words;
pub(crate) use security::{age_in_words, image_by_table};
pub(crate) use text::{TextStyle, write_summary_and_matrix, write_text};
pub(crate) use wincimg_common::excerpt::paint;

use clap::ValueEnum;
use wincimg_cluster::rollout::{
    Finding, OutdatedImage, Placement, Rollout, Subject, WorkloadOutcome, first_names, host_label,
};
use wincimg_windows::update::Update;

/// Report format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
    Markdown,
    Junit,
    Sarif,
    Html,
}

/// The findings of a placement, each with its image and its hosts.
fn findings(placement: &Placement) -> impl Iterator<Item = (usize, &[u32], &Finding)> {
    placement.images.iter().flat_map(move |placed| {
        let groups = placement.selection.groups.iter();
        let findings = groups.zip(&placed.findings);
        findings.map(move |(group, finding)| (placed.image, &group.hosts[..], &**finding))
    })
}

/// The outcomes of workloads, each with its index.
fn workload_outcomes(rollout: &Rollout) -> impl Iterator<Item = (usize, WorkloadOutcome<'_>)> {
    let outcomes = rollout.outcomes();
    outcomes.filter_map(|outcome| match outcome.subject {
        Subject::Workload(workload) => Some((workload, outcome)),
        Subject::Image(_) => None,
    })
}

/// `What if: 3 nodes with KB4549949`, if a simulation is requested.
fn what_if(rollout: &Rollout) -> Option<String> {
    (!rollout.what_if.is_empty()).then(|| format!("What if: {}", rollout.what_if.join(", ")))
}

/// What is said of a skipped document: it may create pods all the same.
const NO_TEMPLATE: &str = "no pod template found; not checked";

/// Remark on skipped documents and cordoned nodes, naming the first few.
fn remarks(rollout: &Rollout) -> impl Iterator<Item = String> {
    let skipped = rollout.skipped.iter().map(ToString::to_string);
    let skipped = (!rollout.skipped.is_empty())
        .then(|| format!("No pod template found; not checked: {}", in_words(skipped)));
    skipped.into_iter().chain(cordoned(rollout))
}

fn cordoned(rollout: &Rollout) -> Option<String> {
    let cordoned = rollout.cordoned();
    let names = cordoned.iter().map(ToString::to_string);
    (!cordoned.is_empty()).then(|| {
        format!(
            "Cordoned, but checked (to skip them, add --skip-cordoned): {}",
            in_words(names)
        )
    })
}

/// Images without the latest monthly update, the first few of each update: `KB5094125 of 2026-09-08
/// is available for web:1.4 (17763.973, KB4534273, 80 months behind)`.
fn behind(rollout: &Rollout) -> Option<String> {
    let mut images: BTreeMap<(u32, String), Vec<String>> = BTreeMap::new();
    for behind in rollout.outdated_images() {
        let version = behind.version.to_string();
        let kb = behind.at.and_then(|at| at.kb).map(|kb| kb.to_string());
        let named = rollout.images[behind.image].reference.as_ref();
        let mut words: Vec<String> = named.map(ToString::to_string).into_iter().collect();
        words.push(version);
        words.extend(kb);
        words.extend(months_in_words(&behind));
        let image = match words.split_first() {
            Some((name, details)) if !details.is_empty() => {
                format!("{name} ({})", details.join(", "))
            }
            _ => words.concat(),
        };
        let update = (behind.newest.build, update_in_words(behind.newest));
        images.entry(update).or_default().push(image);
    }
    let updates = images.into_iter().map(|((_, update), images)| {
        let images = in_words(images.into_iter());
        format!("{update} is available for {images}")
    });
    let updates = joined(updates, "; ");
    (!updates.is_empty()).then(|| format!("Without the latest monthly update: {updates}"))
}

/// `web:1.4 is 17763.973 (KB4534273), at least 80 months behind: KB5094125 of 2026-09-08 is
/// available`.
fn behind_in_words(rollout: &Rollout, behind: &OutdatedImage<'_>) -> String {
    let image = &rollout.images[behind.image];
    let name = match &image.reference {
        Some(reference) => format!("{reference} is {}", behind.version),
        None => behind.version.to_string(),
    };
    let at = behind.at.and_then(|at| at.kb);
    let at = at.map(|kb| format!(" ({kb})")).unwrap_or_default();
    let months =
        months_in_words(behind).map_or_else(|| ", but".to_owned(), |months| format!(", {months}:"));
    let update = update_in_words(behind.newest);
    format!("{name}{at}{months} {update} is available")
}

/// `at least 80 months behind`.
fn months_in_words(behind: &OutdatedImage<'_>) -> Option<String> {
    let at_least = if behind.is_at_least { "at least " } else { "" };
    match behind.months() {
        None | Some(0) => None,
        Some(1) => Some(format!("{at_least}1 month behind")),
        Some(months) => Some(format!("{at_least}{months} months behind")),
    }
}

/// `KB5094125 of 2026-09-08`.
fn update_in_words(update: &Update) -> String {
    let kb = update.kb.map(|kb| kb.to_string());
    let name = kb.unwrap_or_else(|| update.version().to_string());
    format!("{name} of {}", update.date)
}

/// The first few names, and the number of the others.
fn in_words(names: impl ExactSizeIterator<Item = String>) -> String {
    first_names(names, 5)
}

/// Names of a few hosts, or the number of many.
fn hosts_in_words(rollout: &Rollout, hosts: &[usize]) -> String {
    const NAMED: usize = 2;
    let mut labels = hosts.iter().map(|&host| host_label(&rollout.hosts[host]));
    if hosts.len() <= NAMED {
        return in_words(labels);
    }
    let first = labels.next().unwrap_or_default();
    format!("{} such as {first}", count(hosts.len(), "node"))
}
