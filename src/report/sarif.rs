//! SARIF 2.1.0: code hosts show results next to the lines that they are about.

use std::collections::BTreeSet;
use std::io::{self, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use wincimg_cluster::rollout::{Finding, Rollout, WorkloadOutcome};
use wincimg_cluster::workloads::{SourceLocation, Workload};
use wincimg_common::json::write_pretty;
use wincimg_windows::compat::VerdictOutcome;
use wincimg_windows::missing_fixes::MissingFixes;

use super::problems::{ReportProblem, problems};
use super::summary::{causes, fixes, outlook};
use super::{NO_TEMPLATE, behind_in_words, image_in_words, workload_outcomes};

/// Lines of a file, counted from 1.
pub(super) struct SarifRegion {
    pub(super) file: String,
    pub(super) first_line: usize,
    pub(super) last_line: usize,
}

/// One result.
#[derive(Default)]
pub(super) struct Result {
    pub(super) rule: &'static str,
    pub(super) level: &'static str,
    pub(super) message: String,
    pub(super) place: Option<SarifRegion>,
    /// Subject of the result, if it is not a file.
    pub(super) subject: Option<String>,
    /// Fingerprint that stays the same when lines move.
    pub(super) fingerprint: Option<String>,
    /// Replacement for lines: the first of them, the last being that of the place, and the text.
    pub(super) fix: Option<(usize, String)>,
    /// Reason for which it needs no attention.
    pub(super) suppression: Option<String>,
}

/// Writes one run of a command; the rules that results refer to have an id and a summary.
pub(super) fn write(
    command: &str,
    rules: &[(&str, String)],
    results: impl IntoIterator<Item = Result>,
    out: impl Write,
) -> io::Result<()> {
    let results: Vec<Value> = results
        .into_iter()
        .map(|result| result.into_value(rules))
        .collect();
    let rules: Vec<Value> = rules
        .iter()
        .map(|(id, summary)| json!({"id": id, "shortDescription": {"text": summary}}))
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": command,
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    write_pretty(out, &log)
}

impl Result {
    fn into_value(self, rules: &[(&str, String)]) -> Value {
        let rule = rules.iter().position(|(id, _)| *id == self.rule);
        let mut location = json!({});
        if let Some(subject) = &self.subject {
            location["logicalLocations"] =
                json!([{"fullyQualifiedName": subject, "kind": "resource"}]);
        }
        if let Some(place) = &self.place {
            location["physicalLocation"] = json!({
                "artifactLocation": {"uri": as_uri(&place.file)},
                "region": {"startLine": place.first_line, "endLine": place.last_line},
            });
        }
        let has_location = self.place.is_some() || self.subject.is_some();
        let mut value = json!({
            "ruleId": self.rule,
            "ruleIndex": rule,
            "level": self.level,
            "message": {"text": self.message},
            "locations": if has_location { vec![location] } else { Vec::new() },
        });
        if let Some(fingerprint) = self.fingerprint {
            value["partialFingerprints"] = json!({"wincimg/v1": fingerprint});
        }
        if let Some(reason) = self.suppression {
            value["suppressions"] = json!([{"kind": "external", "justification": reason}]);
        }
        if let (Some((first_line, fix)), Some(place)) = (self.fix, &self.place) {
            // A region without columns includes its lines, except for the end of the last.
            value["fixes"] = json!([{
                "description": {"text": rule.map(|rule| &rules[rule].1)},
                "artifactChanges": [{
                    "artifactLocation": {"uri": as_uri(&place.file)},
                    "replacements": [{
                        "deletedRegion": {"startLine": first_line, "endLine": place.last_line},
                        "insertedContent": {"text": fix},
                    }],
                }],
            }]);
        }
        value
    }
}

/// Writes the report: a result for each workload that requires attention, at its line, and one for
/// each problem of images without a workload; under `strict` a warning is an error.
pub(crate) fn write_sarif(rollout: &Rollout, strict: bool, out: impl Write) -> io::Result<()> {
    let workloads = workload_outcomes(rollout)
        .filter_map(|(workload, prospect)| of_workload(rollout, &prospect, workload, strict));
    let problems = problems(rollout);
    let images = problems
        .iter()
        .filter(|problem| problem.workloads.is_empty())
        .flat_map(|problem| of_problem(rollout, problem, strict));
    let skipped = rollout.skipped.iter().map(|skipped| Result {
        rule: "skipped",
        level: "note",
        message: format!("{}: {NO_TEMPLATE}", skipped.id),
        place: Some(place_of(&skipped.origin)),
        subject: Some(skipped.id.to_string()),
        fingerprint: Some(format!("skipped|{}", skipped.id)),
        ..Result::default()
    });
    let behind = rollout.outdated_images();
    let behind = behind.iter().map(|behind| {
        let image = rollout.images[behind.image].label();
        Result {
            rule: "behind",
            level: "note",
            message: behind_in_words(rollout, behind),
            fingerprint: Some(format!("behind|{image}|{}", behind.version)),
            subject: Some(image),
            ..Result::default()
        }
    });
    let missing = rollout.missing_fixes.iter().flat_map(MissingFixes::lacking);
    let missing = missing.map(|image| Result {
        rule: "missing-fixes",
        level: "note",
        message: image_in_words(image),
        fingerprint: image
            .reference
            .as_ref()
            .map(|it| format!("missing-fixes|{it}|{}", image.build)),
        subject: image.reference.clone(),
        ..Result::default()
    });
    let results = workloads
        .chain(images)
        .chain(skipped)
        .chain(behind)
        .chain(missing);
    let results: Vec<Result> = results.collect();
    let ids: BTreeSet<&'static str> = results.iter().map(|result| result.rule).collect();
    let summary = |id: &str| match id {
        "skipped" => NO_TEMPLATE.to_owned(),
        "behind" => "without the latest monthly update".to_owned(),
        "missing-fixes" => "without all security fixes".to_owned(),
        id => id.replace('-', " "),
    };
    let rules: Vec<_> = ids.into_iter().map(|id| (id, summary(id))).collect();
    write("wincimg check-compat", &rules, results, out)
}

/// Result for a workload: its worst cause, with every pair of image and nodes that has it.
fn of_workload(
    rollout: &Rollout,
    prospect: &WorkloadOutcome<'_>,
    workload: usize,
    strict: bool,
) -> Option<Result> {
    let causes = causes(rollout, prospect, workload);
    let worst = causes.first()?.finding;
    let Workload { id, origin, .. } = &rollout.workloads[workload];
    let outlook = outlook(prospect);
    let mut sentences = vec![format!("{id} {outlook}")];
    sentences.extend(causes.iter().map(|cause| cause.describe(rollout)));
    for (fix, commands) in fixes(&causes) {
        sentences.push(match commands.first() {
            Some(command) => format!("{fix}; type: {command}"),
            None => fix.to_owned(),
        });
    }
    Some(Result {
        rule: worst.rule,
        level: level_of(worst, strict),
        message: sentences.join(". "),
        place: origin.as_ref().map(place_of),
        fingerprint: Some(format!("{}|{id}", worst.rule)),
        subject: Some(id.to_string()),
        ..Result::default()
    })
}

/// A problem of an image without a workload.
fn of_problem(rollout: &Rollout, problem: &ReportProblem<'_>, strict: bool) -> Vec<Result> {
    if problem.images.is_empty() {
        return vec![of_image(&problem.subject(), problem, strict)];
    }
    let images = problem.images.iter();
    images
        .map(|&image| of_image(&rollout.images[image].label(), problem, strict))
        .collect()
}

fn of_image(image: &str, problem: &ReportProblem<'_>, strict: bool) -> Result {
    let finding = problem.finding;
    let mut message = image.to_owned();
    if !problem.hosts.is_empty() {
        message = format!("{message} on {}", problem.format_hosts());
    }
    message = format!("{message}: {}", finding.reason);
    if let Some(fix) = finding.advice() {
        message = format!("{message}. {fix}");
    }
    Result {
        rule: finding.rule,
        level: level_of(finding, strict),
        message,
        fingerprint: Some(format!("{}||{image}", finding.rule)),
        ..Result::default()
    }
}

fn level_of(finding: &Finding, strict: bool) -> &'static str {
    match finding.outcome {
        VerdictOutcome::Compatible => "none",
        VerdictOutcome::Warning if !strict => "warning",
        VerdictOutcome::Warning | VerdictOutcome::Incompatible | VerdictOutcome::Unknown => "error",
    }
}

fn place_of(origin: &SourceLocation) -> SarifRegion {
    SarifRegion {
        file: origin.file.clone(),
        first_line: origin.line,
        last_line: origin.line,
    }
}

/// A path as a relative or absolute URI.
fn as_uri(path: &str) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~')
        .remove(b'/')
        .remove(b':');
    utf8_percent_encode(&path.replace('\\', "/"), KEPT).to_string()
}
