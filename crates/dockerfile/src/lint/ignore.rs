//! `# wincimg: ignore=RULE,RULE reason`: findings that the author has judged.
//!
//! Above an instruction the comment is about it, and above the first instruction about the file.

use std::collections::HashSet;

use super::{Finding, LintFinding, Rule};
use crate::source::{Dockerfile, Instruction};

/// Rules that a comment names, and the lines that it is about, from 1.
struct IgnoreComment<'a> {
    rules: Vec<&'a str>,
    first: usize,
    last: usize,
}

/// Findings that no comment ignores.
pub(super) fn check(file: &Dockerfile<'_>, mut findings: Vec<LintFinding>) -> Vec<LintFinding> {
    if findings.is_empty() {
        return findings;
    }
    let comments = comments(file);
    let of_file = comments.partition_point(|it| it.last == usize::MAX);
    let (of_file, own) = comments.split_at(of_file);
    let anywhere: HashSet<&str> = of_file.iter().flat_map(|it| it.rules.clone()).collect();
    findings.retain(|finding| {
        let name = finding.rule.name;
        let from = own.partition_point(|it| it.last < finding.line);
        let here = own[from..].iter().take_while(|it| it.first <= finding.line);
        let mut rules = here.flat_map(|it| &it.rules);
        !anywhere.contains(name) && !rules.any(|rule| *rule == name)
    });
    findings
}

/// The comments, in the order of their lines.
fn comments<'a>(file: &'a Dockerfile<'_>) -> Vec<IgnoreComment<'a>> {
    let mut comments = Vec::new();
    for (line, text) in file.lines().enumerate() {
        let Some(rules) = rules(text) else { continue };
        let is_first = file
            .instructions
            .first()
            .is_none_or(|first| line < first.lines().0);
        // Inside an instruction, or above one.
        let next = file.instructions.partition_point(|it| it.lines().1 < line);
        let (first, last) = match file.instructions.get(next).map(Instruction::lines) {
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
    let list = comment.strip_prefix("wincimg:")?.trim_start();
    let list = list.strip_prefix("ignore")?.trim_start();
    let mut names = Vec::new();
    for part in list.strip_prefix('=')?.split(',') {
        let mut words = part.split_whitespace();
        // Behind a comma and a space may be the reason.
        let is_open = !names.is_empty() && part.starts_with(char::is_whitespace);
        let is_name = |word: &&str| !is_open || Rule::find(word).is_ok();
        names.extend(words.next().filter(is_name));
        if words.next().is_some() {
            break;
        }
    }
    Some(names)
}

/// Reports names that no rule has.
pub(super) fn check_names(file: &Dockerfile<'_>) -> Vec<Finding> {
    let lines = file.lines().enumerate();
    let names = lines.flat_map(|(line, text)| {
        let names = rules(text).unwrap_or_default().into_iter();
        names.map(move |name| (line, name))
    });
    let found = names.filter_map(|(line, name)| {
        let message = Rule::find(name).err()?;
        Some(Finding::new(line, format!("{name}: {message}")).warning())
    });
    found.collect()
}
