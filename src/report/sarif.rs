//! The report as SARIF 2.1.0, which code hosts show beside the lines of the workloads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::problems::{Problem, problems};
use crate::rollout::Rollout;
use crate::windows::compat::Outcome;

/// Writes the report as SARIF; under `strict` a warning is an error.
pub fn write_sarif(rollout: &Rollout, strict: bool, mut out: impl Write) -> io::Result<()> {
    let problems = problems(rollout);
    let mut rules: BTreeMap<&str, Value> = BTreeMap::new();
    for problem in &problems {
        let rule = problem.finding.rule;
        rules.entry(rule).or_insert_with(
            || json!({"id": rule, "shortDescription": {"text": rule.replace('-', " ")}}),
        );
    }
    let results: Vec<Value> = problems
        .iter()
        .flat_map(|problem| results_of(rollout, problem, strict))
        .collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "wincimg check-compat",
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut out, &document)?;
    out.write_all(b"\n")
}

/// One result for each workload, so that each shows at its own line; one without a place where the
/// problem is about no workload.
fn results_of(rollout: &Rollout, problem: &Problem<'_>, strict: bool) -> Vec<Value> {
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
    let result = |location: Option<Value>, who: &str| {
        let image = problem.image.map(|image| rollout.images[image].label());
        let fingerprint = format!("{}|{who}|{}", finding.rule, image.unwrap_or_default());
        json!({
            "ruleId": finding.rule,
            "level": level,
            "message": {"text": message},
            "locations": location.into_iter().collect::<Vec<_>>(),
            "partialFingerprints": {"wincimg/v1": fingerprint},
        })
    };
    if problem.workloads.is_empty() {
        return vec![result(None, "")];
    }
    problem
        .workloads
        .iter()
        .map(|&index| {
            let workload = &rollout.workloads[index];
            let who = workload.id.to_string();
            let mut location =
                json!({"logicalLocations": [{"fullyQualifiedName": who, "kind": "resource"}]});
            if let Some(origin) = &workload.origin {
                location["physicalLocation"] = json!({
                    "artifactLocation": {"uri": as_uri(&origin.file)},
                    "region": {"startLine": origin.line},
                });
            }
            result(Some(location), &who)
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
