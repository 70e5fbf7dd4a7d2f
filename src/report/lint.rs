//! Reports on findings in Dockerfiles: text, JSON, and SARIF for code review.

use wincimg_common::diagnose::Excerpt;
use wincimg_dockerfile::lint::{LintFinding, RULES};

use super::annotations::Annotation;
use super::sarif;
use crate::report::prelude::*;

pub(crate) struct LintedFile {
    /// The file's name as the user gave it.
    pub file: String,
    pub text: String,
    pub findings: Vec<LintFinding>,
}

/// Writes `file:line: severity[rule]: why`, and under it the line, unless it has a secret, and the
/// corrected ones.
pub(crate) fn write_lint_text(
    LintedFile {
        file,
        text,
        findings,
    }: &LintedFile,
    colour: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let lines: Vec<&str> = text.lines().collect();
    for finding in findings {
        writeln!(
            out,
            "{}:{}: {}[{}]: {}",
            UntrustedText(file),
            finding.line,
            finding.severity.name(),
            finding.rule.name,
            UntrustedText(&finding.message),
        )?;
        // Logs have more readers than the file.
        if finding.rule.name != "secret-in-image" {
            writeln!(out, "{}", excerpt(&lines, finding).render(colour))?;
        }
        let fixed = finding.fix.iter().flat_map(|fix| fix.lines());
        for (label, line) in std::iter::once("fix:")
            .chain(std::iter::repeat(""))
            .zip(fixed)
        {
            writeln!(out, "  {label:4} {}", UntrustedText(line))?;
        }
    }
    Ok(())
}

/// The first line that the fix changes, with a mark below the change; without a fix or a change,
/// the first line of the finding.
fn excerpt(lines: &[&str], finding: &LintFinding) -> Excerpt {
    let first = finding.line - 1;
    let own = lines.get(first..).unwrap_or_default();
    let last = own.len().min(finding.last_line.saturating_sub(first));
    let own = &own[..last];
    if finding.fix_line < finding.line {
        let line = lines.get(first).copied().unwrap_or_default();
        return Excerpt::from_line(finding.line, line);
    }
    let corrected = finding.fix.iter().flat_map(|fix| fix.lines());
    let changed = own.iter().zip(finding.line..);
    let changed = changed.zip(corrected).find(|((line, _), fix)| *line != fix);
    match changed {
        Some(((line, number), fix)) => Excerpt::from_diff(number, line, fix),
        None => Excerpt::from_line(finding.line, own.first().copied().unwrap_or_default()),
    }
}

pub(crate) fn write_lint_json(files: &[LintedFile], out: &mut dyn Write) -> io::Result<()> {
    let findings = files.iter().flat_map(|linted| {
        linted.findings.iter().map(|finding| {
            json!({
                "file": linted.file,
                "line": finding.line,
                "last_line": finding.last_line,
                "rule": finding.rule.name,
                "severity": finding.severity.name(),
                "message": finding.message,
                "fix": finding.fix,
                "fix_line": finding.fix_line,
            })
        })
    });
    let findings: Vec<Value> = findings.collect();
    write_pretty(out, &json!({ "findings": findings }))
}

pub(crate) fn write_lint_sarif(files: &[LintedFile], out: &mut dyn Write) -> io::Result<()> {
    let rules = RULES.iter();
    let rules: Vec<_> = rules
        .map(|rule| (rule.name, rule.summary.to_owned()))
        .collect();
    let results = files
        .iter()
        .flat_map(|linted| linted.findings.iter().map(|it| result(&linted.file, it)));
    sarif::write("wincimg lint", &rules, results, out).map(drop)
}

/// The findings at their lines.
pub(crate) fn annotations_of(files: &[LintedFile]) -> Vec<Annotation<'_>> {
    let mut all = Vec::new();
    for linted in files {
        let lines: Vec<&str> = linted.text.lines().collect();
        all.extend(linted.findings.iter().map(|finding| Annotation {
            file: &linted.file,
            line: finding.line,
            last_line: finding.last_line,
            name: finding.rule.name,
            severity: finding.severity,
            message: finding.message.as_str().into(),
            text: lines.get(finding.line - 1).copied().unwrap_or_default(),
        }));
    }
    all
}

fn result(file: &str, finding: &LintFinding) -> sarif::Result {
    sarif::Result {
        rule: finding.rule.name,
        level: finding.severity.name(),
        message: finding.message.clone(),
        place: Some(SourceLocation {
            file: file.to_owned(),
            line: finding.line,
        }),
        last_line: Some(finding.last_line),
        fix: finding.fix.clone().map(|fix| (finding.fix_line, fix)),
        ..sarif::Result::default()
    }
}
