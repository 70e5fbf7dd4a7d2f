//! `# wincimg: ignore=RULE,RULE reason`: findings that the author has judged.
//!
//! Above an instruction the comment is about it, and above the first instruction about the file.

use super::LintFinding;
use crate::source::Dockerfile;

/// Rules that a comment names, and the lines that it is about, from 1.
struct IgnoreComment<'a> {
    rules: Vec<&'a str>,
    first: usize,
    last: usize,
}

impl IgnoreComment<'_> {
    fn applies_to(&self, finding: &LintFinding) -> bool {
        let is_inside = (self.first..=self.last).contains(&finding.line);
        is_inside && self.rules.contains(&finding.rule.name)
    }
}

/// Findings that no comment ignores.
pub(super) fn check(file: &Dockerfile<'_>, mut findings: Vec<LintFinding>) -> Vec<LintFinding> {
    if findings.is_empty() {
        return findings;
    }
    let comments = comments(file);
    findings.retain(|finding| !comments.iter().any(|it| it.applies_to(finding)));
    findings
}

fn comments<'a>(file: &'a Dockerfile<'_>) -> Vec<IgnoreComment<'a>> {
    let mut comments = Vec::new();
    for (line, text) in file.lines().enumerate() {
        let Some(rules) = rules(text) else { continue };
        let mut instructions = file
            .instructions
            .iter()
            .map(crate::source::Instruction::lines);
        let is_first = file
            .instructions
            .first()
            .is_none_or(|first| line < first.lines().0);
        // Inside an instruction, or above one.
        let next = instructions.find(|(_, last)| *last >= line);
        let (first, last) = match next {
            _ if is_first => (0, usize::MAX),
            Some((first, last)) => (first + 1, last + 1),
            None => continue,
        };
        comments.push(IgnoreComment { rules, first, last });
    }
    comments
}

/// Names of the rules in a comment; the reason follows them.
fn rules(line: &str) -> Option<Vec<&str>> {
    let comment = line.trim_start().strip_prefix('#')?.trim_start();
    let list = comment
        .strip_prefix("wincimg:")?
        .trim_start()
        .strip_prefix("ignore=")?;
    let names = list.split_whitespace().next()?;
    Some(names.split(',').collect())
}
