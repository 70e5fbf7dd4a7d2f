//! SARIF 2.1.0, which code hosts show beside the lines that a result is about.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::problems::{Problem, problems};
use crate::rollout::Rollout;
use crate::windows::compat::Outcome;

/// A rule that results refer to.
pub(super) struct Rule {
    pub(super) id: &'static str,
    pub(super) summary: String,
}

/// Lines of a file, from 1.
pub(super) struct Place {
    pub(super) file: String,
    pub(super) first_line: usize,
    pub(super) last_line: usize,
}

/// One thing to show.
pub(super) struct Result {
    pub(super) rule: &'static str,
    pub(super) level: &'static str,
    pub(super) message: String,
    pub(super) place: Option<Place>,
    /// What it is about, unless that is a file.
    pub(super) subject: Option<String>,
    /// What stays the same when lines move.
    pub(super) fingerprint: Option<String>,
    /// What to write in place of the lines.
    pub(super) fix: Option<String>,
}

/// Writes one run of a command.
pub(super) fn write(
    command: &str,
    rules: Vec<Rule>,
    results: Vec<Result>,
    mut out: impl Write,
) -> io::Result<()> {
    let results: Vec<Value> = results
        .into_iter()
        .map(|result| result.into_value(&rules))
        .collect();
    let rules: Vec<Value> = rules
        .into_iter()
        .map(|rule| json!({"id": rule.id, "shortDescription": {"text": rule.summary}}))
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
    serde_json::to_writer_pretty(&mut out, &log)?;
    out.write_all(b"\n")
}

impl Result {
    fn into_value(self, rules: &[Rule]) -> Value {
        let summary = rules.iter().find(|rule| rule.id == self.rule);
        let mut location = json!({});
        if let Some(subject) = &self.subject {
            location["logicalLocations"] =
                json!([{"fullyQualifiedName": subject, "kind": "resource"}]);
        }
        if let Some(place) = &self.place {
            location["physicalLocation"] = json!({
                "artifactLocation": {"uri": as_uri(&place.file)},
                "region": place.region(),
            });
        }
        let has_location = self.place.is_some() || self.subject.is_some();
        let mut value = json!({
            "ruleId": self.rule,
            "ruleIndex": rules.iter().position(|rule| rule.id == self.rule),
            "level": self.level,
            "message": {"text": self.message},
            "locations": if has_location { vec![location] } else { Vec::new() },
        });
        if let Some(fingerprint) = self.fingerprint {
            value["partialFingerprints"] = json!({"wincimg/v1": fingerprint});
        }
        if let (Some(fix), Some(place)) = (self.fix, &self.place) {
            // Without columns a region is all of its lines but the end of the last.
            value["fixes"] = json!([{
                "description": {"text": summary.map(|rule| rule.summary.as_str())},
                "artifactChanges": [{
                    "artifactLocation": {"uri": as_uri(&place.file)},
                    "replacements": [{
                        "deletedRegion": place.region(),
                        "insertedContent": {"text": fix},
                    }],
                }],
            }]);
        }
        value
    }
}

impl Place {
    fn region(&self) -> Value {
        json!({"startLine": self.first_line, "endLine": self.last_line})
    }
}

/// Writes the report on workloads; under `strict` a warning is an error.
pub fn write_sarif(rollout: &Rollout, strict: bool, out: impl Write) -> io::Result<()> {
    let problems = problems(rollout);
    let rules: BTreeMap<&'static str, Rule> = problems
        .iter()
        .map(|problem| problem.finding.rule)
        .map(|id| {
            let summary = id.replace('-', " ");
            (id, Rule { id, summary })
        })
        .collect();
    let mut rules: Vec<Rule> = rules.into_values().collect();
    if !rollout.skipped.is_empty() {
        rules.push(Rule {
            id: "skipped",
            summary: "no pods were found in it".to_owned(),
        });
    }
    let results = problems
        .iter()
        .flat_map(|problem| results_of(rollout, problem, strict));
    let skipped = rollout.skipped.iter().map(|skipped| Result {
        rule: "skipped",
        level: "note",
        message: format!("{}: skipped, as no pods were found in it", skipped.id),
        place: Some(Place {
            file: skipped.origin.file.clone(),
            first_line: skipped.origin.line,
            last_line: skipped.origin.line,
        }),
        subject: Some(skipped.id.to_string()),
        fingerprint: Some(format!("skipped|{}", skipped.id)),
        fix: None,
    });
    write(
        "wincimg check-compat",
        rules,
        results.chain(skipped).collect(),
        out,
    )
}

/// One result for each workload, so that each shows at its own line; one without a place where the
/// problem is about no workload.
fn results_of(rollout: &Rollout, problem: &Problem<'_>, strict: bool) -> Vec<Result> {
    let finding = problem.finding;
    let level = match finding.outcome {
        Outcome::Compatible => "none",
        Outcome::Warning if !strict => "warning",
        Outcome::Warning | Outcome::Incompatible | Outcome::Unknown => "error",
    };
    let mut message = problem.subject();
    if !problem.hosts.is_empty() {
        message = format!("{message} on {}", problem.hosts_in_words());
    }
    message = format!("{message}: {}", finding.reason);
    if let Some(fix) = finding.advice() {
        message = format!("{message}. {fix}");
    }
    let result = |who: &str, place: Option<Place>| {
        let image = problem.image.map(|image| rollout.images[image].label());
        let fingerprint = format!("{}|{who}|{}", finding.rule, image.unwrap_or_default());
        Result {
            rule: finding.rule,
            level,
            message: message.clone(),
            place,
            subject: Some(who.to_owned()).filter(|who| !who.is_empty()),
            fingerprint: Some(fingerprint),
            fix: None,
        }
    };
    if problem.workloads.is_empty() {
        return vec![result("", None)];
    }
    problem
        .workloads
        .iter()
        .map(|&index| {
            let workload = &rollout.workloads[index];
            let place = workload.origin.as_ref().map(|origin| Place {
                file: origin.file.clone(),
                first_line: origin.line,
                last_line: origin.line,
            });
            result(&workload.id.to_string(), place)
        })
        .collect()
}

/// A path as a relative or absolute URI.
fn as_uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.replace('\\', "/").bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}
