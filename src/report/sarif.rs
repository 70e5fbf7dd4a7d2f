//! SARIF 2.1.0: code hosts show results next to the lines that they are about.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use wincimg_cluster::rollout::in_one_line;

use super::problems::{ReportProblem, problems};
use super::summary::{causes, fixes, outlook};
use super::{behind_in_words, image_in_words};
use crate::report::prelude::*;

#[derive(Default)]
pub(super) struct Result {
    pub(super) rule: &'static str,
    pub(super) level: &'static str,
    pub(super) message: String,
    /// A result without one is left out: for a single such result, code hosts refuse all.
    pub(super) place: Option<SourceLocation>,
    /// The last line of the place, if it has several.
    pub(super) last_line: Option<usize>,
    /// Subject of the result, if it is not a file.
    pub(super) subject: Option<String>,
    /// Fingerprint that stays the same when lines move.
    pub(super) fingerprint: Option<String>,
    /// Replacement for lines: the first of them, the last being that of the place, and the text.
    pub(super) fix: Option<(usize, String)>,
    /// Reason for which it needs no attention.
    pub(super) suppression: Option<String>,
}

/// Writes one run of a command; the rules that results refer to have an id and a summary. Returns
/// the number of results that are left out.
pub(super) fn write(
    command: &str,
    rules: &[(&str, String)],
    results: impl IntoIterator<Item = Result>,
    out: impl Write,
) -> io::Result<usize> {
    let results = results.into_iter().map(|result| result.into_value(rules));
    let results: Vec<Option<Value>> = results.collect();
    let all = results.len();
    let results: Vec<Value> = results.into_iter().flatten().collect();
    let left_out = all - results.len();
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
    write_pretty(out, &log)?;
    Ok(left_out)
}

impl Result {
    fn into_value(self, rules: &[(&str, String)]) -> Option<Value> {
        let place = self.place?;
        let last_line = self.last_line.unwrap_or(place.line);
        let rule = rules.iter().position(|(id, _)| *id == self.rule);
        let mut location = json!({});
        if let Some(subject) = &self.subject {
            location["logicalLocations"] =
                json!([{"fullyQualifiedName": subject, "kind": "resource"}]);
        }
        location["physicalLocation"] = json!({
            "artifactLocation": {"uri": as_uri(&place.file)},
            "region": {"startLine": place.line, "endLine": last_line},
        });
        let mut value = json!({
            "ruleId": self.rule,
            "ruleIndex": rule,
            "level": self.level,
            "message": {"text": self.message},
            "locations": [location],
        });
        if let Some(fingerprint) = self.fingerprint {
            value["partialFingerprints"] = json!({"wincimg/v1": fingerprint});
        }
        if let Some(reason) = self.suppression {
            value["suppressions"] = json!([{"kind": "external", "justification": reason}]);
        }
        if let Some((first_line, fix)) = self.fix {
            // A region without columns includes its lines, except for the end of the last.
            value["fixes"] = json!([{
                "description": {"text": rule.map(|rule| &rules[rule].1)},
                "artifactChanges": [{
                    "artifactLocation": {"uri": as_uri(&place.file)},
                    "replacements": [{
                        "deletedRegion": {"startLine": first_line, "endLine": last_line},
                        "insertedContent": {"text": fix},
                    }],
                }],
            }]);
        }
        Some(value)
    }
}

/// The lines that results are about.
struct Places<'r> {
    /// Of each image, the first workload that runs it.
    of_images: HashMap<&'r str, &'r SourceLocation>,
    /// For results about no line of a file: the first line of one that was read.
    other: Option<SourceLocation>,
}

impl<'r> Places<'r> {
    fn new(rollout: &'r Rollout, nodes_file: Option<&'r str>) -> Self {
        let mut of_images = HashMap::new();
        for workload in &rollout.workloads {
            let Some(origin) = &workload.origin else {
                continue;
            };
            for container in &workload.template.containers {
                of_images.entry(container.image.as_str()).or_insert(origin);
            }
        }
        let workloads = rollout.workloads.iter();
        let workloads = workloads.filter_map(|workload| workload.origin.as_ref());
        let skipped = rollout.skipped.iter().map(|skipped| &skipped.origin);
        let mut manifests = workloads.chain(skipped);
        let manifest = manifests.next().map(|origin| origin.file.as_str());
        let other = nodes_file.or(manifest).map(|file| SourceLocation {
            file: file.to_owned(),
            line: 1,
        });
        Self { of_images, other }
    }

    fn of_manifest(&self, origin: Option<&SourceLocation>) -> Option<SourceLocation> {
        origin.or(self.other.as_ref()).cloned()
    }

    fn of_image(&self, reference: Option<&str>) -> Option<SourceLocation> {
        let known = reference.and_then(|reference| self.of_images.get(reference));
        self.of_manifest(known.copied())
    }
}

/// Writes the report: a result for each workload that requires attention, at its line, and one for
/// each problem of images without a workload; under `strict` a warning is an error. Returns the
/// number of results that are left out, because no file was read.
pub(crate) fn write_sarif(
    rollout: &Rollout,
    strict: bool,
    nodes_file: Option<&str>,
    out: impl Write,
) -> io::Result<usize> {
    let places = Places::new(rollout, nodes_file);
    let workloads = workload_outcomes(rollout).filter_map(|(workload, outcome)| {
        let result = of_workload(rollout, &outcome, workload, strict)?;
        let origin = rollout.workloads[workload].origin.as_ref();
        Some(Result {
            place: places.of_manifest(origin),
            ..result
        })
    });
    let problems = problems(rollout);
    let images = problems
        .iter()
        .filter(|problem| problem.workloads.is_empty())
        .flat_map(|problem| of_problem(rollout, &places, problem, strict));
    let results = workloads.chain(images).chain(notes(rollout, &places));
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

/// Results that change no exit code: skipped objects, and images without the latest updates.
fn notes(rollout: &Rollout, places: &Places<'_>) -> Vec<Result> {
    let note = |rule, message, place, subject, fingerprint| Result {
        rule,
        level: "note",
        message,
        place,
        subject,
        fingerprint,
        ..Result::default()
    };
    let skipped = rollout.skipped.iter().map(|skipped| {
        let message = format!("{}: {NO_TEMPLATE}", skipped.id);
        let place = Some(skipped.origin.clone());
        let fingerprint = Some(format!("skipped|{}", skipped.id));
        let subject = Some(skipped.id.to_string());
        note("skipped", message, place, subject, fingerprint)
    });
    let behind = rollout.outdated_images();
    let behind = behind.iter().map(|behind| {
        let image = &rollout.images[behind.image];
        let label = image.label();
        let place = places.of_image(image.reference.as_deref());
        let fingerprint = Some(format!("behind|{label}|{}", behind.version));
        let message = behind_in_words(rollout, behind);
        note("behind", message, place, Some(label), fingerprint)
    });
    let missing = rollout.missing_fixes.iter().flat_map(MissingFixes::lacking);
    let missing = missing.map(|image| {
        let reference = image.reference.as_deref();
        let place = places.of_image(reference);
        let fingerprint = reference.map(|it| format!("missing-fixes|{it}|{}", image.build));
        let subject = image.reference.clone();
        let message = image_in_words(image);
        note("missing-fixes", message, place, subject, fingerprint)
    });
    skipped.chain(behind).chain(missing).collect()
}

/// Result for a workload, without its place: its worst cause, with every pair of image and nodes
/// that has it.
fn of_workload(
    rollout: &Rollout,
    outcome: &WorkloadOutcome<'_>,
    workload: usize,
    strict: bool,
) -> Option<Result> {
    let causes = causes(rollout, outcome, workload);
    let worst = causes.first()?.finding;
    let id = &rollout.workloads[workload].id;
    let outlook = outlook(outcome);
    let mut sentences = vec![format!("{id} {outlook}")];
    sentences.extend(causes.iter().map(|cause| cause.describe(rollout)));
    for (fix, commands) in fixes(&causes) {
        sentences.push(in_one_line(fix, &commands));
    }
    Some(Result {
        rule: worst.rule,
        level: level_of(worst, strict),
        message: sentences.join(". "),
        fingerprint: Some(format!("{}|{id}", worst.rule)),
        subject: Some(id.to_string()),
        ..Result::default()
    })
}

/// A problem of an image without a workload.
fn of_problem(
    rollout: &Rollout,
    places: &Places<'_>,
    problem: &ReportProblem<'_>,
    strict: bool,
) -> Vec<Result> {
    if problem.images.is_empty() {
        return vec![Result {
            place: places.other.clone(),
            ..of_image(&problem.subject(), problem, strict)
        }];
    }
    let images = problem.images.iter().map(|&image| {
        let image = &rollout.images[image];
        Result {
            place: places.of_image(image.reference.as_deref()),
            ..of_image(&image.label(), problem, strict)
        }
    });
    images.collect()
}

/// Result for an image or what stands for it, without its place.
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
        subject: Some(image.to_owned()),
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
