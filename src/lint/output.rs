//! Findings as text for people, as JSON for scripts and as SARIF for code review tools.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Finding, Rule, Severity};

/// A file's name as the user gave it, and what was found in it.
pub type Linted = (String, Vec<Finding>);

/// Writes `file:line: severity[rule]: why`, and under it the corrected lines.
pub fn write_text(files: &[Linted], out: &mut dyn Write) -> io::Result<()> {
    for (file, findings) in files {
        for finding in findings {
            writeln!(
                out,
                "{file}:{}: {}[{}]: {}",
                finding.line,
                finding.severity.name(),
                finding.rule.name(),
                finding.message,
            )?;
            let lines = finding.fix.iter().flat_map(|fix| fix.lines());
            for (label, line) in std::iter::once("fix:")
                .chain(std::iter::repeat(""))
                .zip(lines)
            {
                writeln!(out, "  {label:4} {line}")?;
            }
        }
    }
    Ok(())
}

/// Writes the findings as the command line's contract has them.
pub fn write_json(files: &[Linted], out: &mut dyn Write) -> io::Result<()> {
    let findings: Vec<Value> = files
        .iter()
        .flat_map(|(file, findings)| findings.iter().map(move |finding| (file, finding)))
        .map(|(file, finding)| {
            json!({
                "file": file,
                "line": finding.line,
                "last_line": finding.last_line,
                "rule": finding.rule.name(),
                "severity": finding.severity.name(),
                "message": finding.message,
                "fix": finding.fix,
            })
        })
        .collect();
    write_value(&json!({ "findings": findings }), out)
}

/// Writes a SARIF 2.1.0 log with one run.
pub fn write_sarif(files: &[Linted], out: &mut dyn Write) -> io::Result<()> {
    let rules: Vec<Value> = Rule::ALL
        .iter()
        .map(|rule| {
            json!({
                "id": rule.name(),
                "shortDescription": { "text": rule.summary() },
            })
        })
        .collect();
    let results: Vec<Value> = files
        .iter()
        .flat_map(|(file, findings)| findings.iter().map(|finding| sarif_result(file, finding)))
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "wincimg",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    write_value(&log, out)
}

fn sarif_result(file: &str, finding: &Finding) -> Value {
    let artifact = json!({ "uri": uri(file) });
    let region = json!({ "startLine": finding.line, "endLine": finding.last_line });
    let mut result = json!({
        "ruleId": finding.rule.name(),
        "ruleIndex": Rule::ALL.iter().position(|rule| *rule == finding.rule),
        "level": match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "message": { "text": finding.message },
        "locations": [{ "physicalLocation": {
            "artifactLocation": artifact,
            "region": region,
        }}],
    });
    if let Some(fix) = &finding.fix {
        // Without columns a region is all of its lines but the end of the last.
        result["fixes"] = json!([{
            "description": { "text": finding.rule.summary() },
            "artifactChanges": [{
                "artifactLocation": artifact,
                "replacements": [{
                    "deletedRegion": region,
                    "insertedContent": { "text": fix },
                }],
            }],
        }]);
    }
    result
}

/// A path as the reference that SARIF wants: slashes forward, the rest escaped where it must be.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'\\' => uri.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => {
                // Writing to a string does not fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

fn write_value(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}
