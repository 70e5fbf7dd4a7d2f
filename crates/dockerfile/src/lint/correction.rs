//! Corrections: replacement lines without findings of their own.

use std::collections::HashSet;
use std::iter;
use std::ops::Range;

use super::LintFinding;
use crate::source::{Dockerfile, Instruction};

/// Replacement of lines, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Correction {
    pub(super) first_line: usize,
    pub(super) last_line: usize,
    pub(super) text: String,
}

impl Correction {
    /// Replaces lines, which count from 0.
    pub(super) fn new((first, last): (usize, usize), text: String) -> Self {
        Self {
            first_line: first + 1,
            last_line: last + 1,
            text,
        }
    }
}

/// A change of a range of an instruction's joined text. An empty range is the position *after* the
/// character before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

impl Edit {
    pub(super) fn new(range: Range<usize>, text: impl Into<String>) -> Self {
        Self {
            range,
            text: text.into(),
        }
    }

    pub(super) fn after(position: usize, text: impl Into<String>) -> Self {
        Self::new(position..position, text)
    }

    /// Shifts the change for a text that begins earlier.
    pub(super) fn shift(self, by: usize) -> Self {
        Self::new(self.range.start + by..self.range.end + by, self.text)
    }
}

/// A text with other texts in its ranges, which are in order.
pub(super) fn replaced(text: &str, edits: &[Edit]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for edit in edits {
        out.push_str(&text[from..edit.range.start.max(from)]);
        out.push_str(&edit.text);
        from = edit.range.end.max(from);
    }
    out.push_str(&text[from..]);
    out
}

/// Limits for linting a file repeatedly: rounds, and text in total; far more than real files need.
const ROUNDS: usize = 200;
const TEXT: usize = 1 << 20;

impl Dockerfile<'_> {
    /// Correction that applies edits to an instruction.
    pub(super) fn apply_edits(
        &self,
        instruction: &Instruction,
        edits: &[Edit],
    ) -> Option<Correction> {
        // BuildKit escapes the quotes of such a script.
        let is_document = instruction.keyword == "RUN" && instruction.has_here_document();
        if is_document && edits.iter().any(|edit| edit.text.contains('"')) {
            return None;
        }
        let placed = edits.iter().map(|edit| {
            let (line, range) = instruction.place(&edit.range)?;
            Some((line, Edit::new(range, edit.text.as_str())))
        });
        let mut placed: Vec<(usize, Edit)> = placed.collect::<Option<_>>()?;
        placed.sort_by_key(|(line, edit)| (*line, edit.range.start));
        let first = placed.first()?.0;
        let last = placed.last()?.0;
        let mut placed = placed.into_iter().peekable();
        let lines = (first..=last).map(|line| {
            let own = iter::from_fn(|| placed.next_if(|(at, _)| *at == line));
            let own: Vec<Edit> = own.map(|(_, edit)| edit).collect();
            replaced(self.line(line), &own)
        });
        let lines: Vec<String> = lines.collect();
        Some(Correction::new((first, last), lines.join("\n")))
    }

    /// Correction that writes the instruction on one line with other arguments.
    pub(super) fn rewrite(&self, instruction: &Instruction, arguments: &str) -> Correction {
        let (first, last) = instruction.lines();
        let line = self.line(first);
        let indent = &line[..line.len() - line.trim_start().len()];
        let text = format!("{indent}{}{arguments}", instruction.head());
        Correction::new((first, last), text)
    }
}

/// Extends corrections of overlapping findings so that each repairs all of them. Of findings that
/// then say the same of the same lines, the first remains.
pub(super) fn extend_corrections(
    source: &str,
    findings: &mut Vec<LintFinding>,
    find: impl Fn(&str) -> Vec<LintFinding>,
) {
    let mut rounds = ROUNDS.min(TEXT / source.len().max(1));
    let mut shares = sharing_lines(findings).into_iter();
    let mut seen = HashSet::new();
    findings.retain_mut(|finding| {
        let shares = shares.next().unwrap_or_default();
        let lines = finding.line..=finding.last_line;
        if !seen.insert((lines, finding.rule.name, finding.message.clone())) {
            return false;
        }
        if shares && rounds > 0 && finding.fix.is_some() {
            finding.fix = correct_repeatedly(source, finding, &find, &mut rounds);
        }
        true
    });
}

/// Returns for each finding, in line order, true if another one shares lines with it.
fn sharing_lines(findings: &[LintFinding]) -> Vec<bool> {
    let mut shares = vec![false; findings.len()];
    let mut furthest: Option<usize> = None;
    for (index, finding) in findings.iter().enumerate() {
        if let Some(before) = furthest.filter(|before| findings[*before].last_line >= finding.line)
        {
            shares[before] = true;
            shares[index] = true;
        }
        if furthest.is_none_or(|before| findings[before].last_line <= finding.last_line) {
            furthest = Some(index);
        }
    }
    shares
}

/// Lints a correction and corrects it again until nothing is found.
fn correct_repeatedly(
    source: &str,
    finding: &LintFinding,
    find: &impl Fn(&str) -> Vec<LintFinding>,
    rounds: &mut usize,
) -> Option<String> {
    let mut fix = finding.fix.clone()?;
    let lines: Vec<&str> = source.split('\n').collect();
    let before = lines[..finding.fix_line - 1].join("\n");
    let after = lines
        .get(finding.last_line..)
        .unwrap_or_default()
        .join("\n");
    while *rounds > 0 {
        *rounds -= 1;
        let text = if finding.fix_line == 1 {
            format!("{fix}\n{after}")
        } else {
            format!("{before}\n{fix}\n{after}")
        };
        let last = finding.fix_line + fix.matches('\n').count();
        let left = find(&text).into_iter().find(|other| {
            other.fix.is_some() && other.fix_line >= finding.fix_line && other.last_line <= last
        });
        let Some(LintFinding {
            fix_line,
            last_line,
            fix: Some(next),
            ..
        }) = left
        else {
            break;
        };
        let mut own: Vec<&str> = fix.split('\n').collect();
        own.splice(
            fix_line - finding.fix_line..=last_line - finding.fix_line,
            [next.as_str()],
        );
        fix = own.join("\n");
    }
    Some(fix)
}
