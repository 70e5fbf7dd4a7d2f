//! Reports on findings in Dockerfiles: text, JSON, and SARIF for code review.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use wincimg_common::diagnose::Excerpt;
use wincimg_common::untrusted::Untrusted;
use wincimg_dockerfile::lint::{LintFinding, RULES, Severity};

use super::sarif;

/// A checked file.
pub(crate) struct LintedFile {
    /// The file's name as the user gave it.
    pub file: String,
    /// The file's text.
    pub text: String,
    /// Findings in the file.
    pub findings: Vec<LintFinding>,
}

/// Writes `file:line: severity[rule]: why`, and under it the line and the corrected ones.
pub(crate) fn write_lint_text(
    files: &[LintedFile],
    colour: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for LintedFile {
        file,
        text,
        findings,
    } in files
    {
        for finding in findings {
            writeln!(
                out,
                "{}:{}: {}[{}]: {}",
                Untrusted(file),
                finding.line,
                finding.severity.name(),
                finding.rule.name,
                Untrusted(&finding.message),
            )?;
            writeln!(out, "{}", excerpt(text, finding).render(colour))?;
            let lines = finding.fix.iter().flat_map(|fix| fix.lines());
            for (label, line) in std::iter::once("fix:")
                .chain(std::iter::repeat(""))
                .zip(lines)
            {
                writeln!(out, "  {label:4} {}", Untrusted(line))?;
            }
        }
    }
    Ok(())
}

/// The first line that the fix changes, with a mark below the change; without a fix or a change,
/// the first line of the finding.
fn excerpt(text: &str, finding: &LintFinding) -> Excerpt {
    if finding.fix_line < finding.line {
        let line = text.lines().nth(finding.line - 1).unwrap_or_default();
        return Excerpt::from_line(finding.line, line);
    }
    let lines = text.lines().zip(1..).skip(finding.line - 1);
    let lines = lines.take_while(|(_, number)| *number <= finding.last_line);
    let corrected = finding.fix.iter().flat_map(|fix| fix.lines());
    let changed = lines
        .clone()
        .zip(corrected)
        .find(|((line, _), fix)| line != fix);
    match changed {
        Some(((line, number), fix)) => Excerpt::from_diff(number, line, fix),
        None => {
            let line = lines.map(|(line, _)| line).next().unwrap_or_default();
            Excerpt::from_line(finding.line, line)
        }
    }
}

/// Writes the findings as JSON.
pub(crate) fn write_lint_json(files: &[LintedFile], out: &mut dyn Write) -> io::Result<()> {
    let findings: Vec<Value> = files
        .iter()
        .flat_map(|linted| {
            linted
                .findings
                .iter()
                .map(|finding| (&linted.file, finding))
        })
        .map(|(file, finding)| {
            json!({
                "file": file,
                "line": finding.line,
                "last_line": finding.last_line,
                "rule": finding.rule.name,
                "severity": finding.severity.name(),
                "message": finding.message,
                "fix": finding.fix,
                "fix_line": finding.fix_line,
            })
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &json!({ "findings": findings }))?;
    out.write_all(b"\n")
}

/// Writes the findings as SARIF.
pub(crate) fn write_lint_sarif(files: &[LintedFile], out: &mut dyn Write) -> io::Result<()> {
    let rules = RULES.iter().map(|rule| sarif::SarifRule {
        id: rule.name,
        summary: rule.summary.to_owned(),
    });
    let results = files
        .iter()
        .flat_map(|linted| linted.findings.iter().map(|it| result(&linted.file, it)));
    sarif::write("wincimg lint", rules.collect(), results.collect(), out)
}

/// Writes the findings as annotations of GitHub Actions.
pub(crate) fn write_lint_github(files: &[LintedFile], out: &mut dyn Write) -> io::Result<()> {
    for linted in files {
        for finding in &linted.findings {
            let level = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "notice",
            };
            writeln!(
                out,
                "::{level} file={},line={},endLine={},title={}::{}",
                github_text(&linted.file, true),
                finding.line,
                finding.last_line,
                finding.rule.name,
                github_text(&finding.message, false),
            )?;
        }
    }
    Ok(())
}

/// Escapes a message, or a property, of an annotation.
fn github_text(text: &str, is_property: bool) -> String {
    let text = Untrusted(text).to_string();
    let text = text.replace('%', "%25");
    let text = text.replace('\r', "%0D").replace('\n', "%0A");
    if is_property {
        text.replace(':', "%3A").replace(',', "%2C")
    } else {
        text
    }
}

/// Writes the findings as a Code Quality report of GitLab.
pub(crate) fn write_lint_gitlab(files: &[LintedFile], out: &mut dyn Write) -> io::Result<()> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut entries = Vec::new();
    for linted in files {
        let lines: Vec<&str> = linted.text.lines().collect();
        for finding in &linted.findings {
            let line = lines.get(finding.line - 1).copied().unwrap_or_default();
            // The same when lines move; a repeated line counts.
            let what = format!("{}\0{}\0{}", linted.file, finding.rule.name, line.trim());
            let count = seen.entry(what.clone()).or_default();
            *count += 1;
            let fingerprint = hex::encode(Sha256::digest(format!("{what}\0{count}")));
            entries.push(json!({
                "description": finding.message,
                "check_name": finding.rule.name,
                "fingerprint": fingerprint,
                "severity": match finding.severity {
                    Severity::Error => "major",
                    Severity::Warning => "minor",
                    Severity::Note => "info",
                },
                "location": {
                    "path": linted.file,
                    "lines": {"begin": finding.line, "end": finding.last_line},
                },
            }));
        }
    }
    serde_json::to_writer_pretty(&mut *out, &entries)?;
    out.write_all(b"\n")
}

fn result(file: &str, finding: &LintFinding) -> sarif::Result {
    sarif::Result {
        rule: finding.rule.name,
        level: match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        message: finding.message.clone(),
        place: Some(sarif::SarifRegion {
            file: file.to_owned(),
            first_line: finding.line,
            last_line: finding.last_line,
        }),
        subject: None,
        fingerprint: None,
        fix: finding.fix.clone().map(|fix| (finding.fix_line, fix)),
    }
}
