//! Corrections: lines to put in place of others, with nothing left to find in them.

use super::Finding;

/// Lines to put in place of others; they count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Correction {
    pub(super) first_line: usize,
    pub(super) last_line: usize,
    pub(super) text: String,
}

/// How often a file is looked through again, and how much text that may be in all; far more than
/// any file that people wrote needs.
const ROUNDS: usize = 200;
const TEXT: usize = 8 << 20;

/// Where several things are wrong with the same lines, lets each finding's correction repair all of
/// them: whoever copies one should not get the next complaint for it.
pub(super) fn complete(
    source: &str,
    findings: &mut [Finding],
    find: impl Fn(&str) -> Vec<Finding>,
) {
    let mut rounds = ROUNDS.min(TEXT / source.len().max(1));
    for (index, shares) in sharing_lines(findings).into_iter().enumerate() {
        if shares && rounds > 0 && findings[index].fix.is_some() {
            findings[index].fix = repeated(source, &findings[index], &find, &mut rounds);
        }
    }
}

/// For each finding, in the order of their lines, whether another one has lines in common with it.
fn sharing_lines(findings: &[Finding]) -> Vec<bool> {
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

/// Corrects what is still found within a correction until nothing is.
fn repeated(
    source: &str,
    finding: &Finding,
    find: &impl Fn(&str) -> Vec<Finding>,
    rounds: &mut usize,
) -> Option<String> {
    let mut fix = finding.fix.clone()?;
    let lines: Vec<&str> = source.split('\n').collect();
    let before = lines[..finding.line - 1].join("\n");
    let after = lines
        .get(finding.last_line..)
        .unwrap_or_default()
        .join("\n");
    while *rounds > 0 {
        *rounds -= 1;
        let text = if finding.line == 1 {
            format!("{fix}\n{after}")
        } else {
            format!("{before}\n{fix}\n{after}")
        };
        let last = finding.line + fix.matches('\n').count();
        let left = find(&text).into_iter().find(|other| {
            other.fix.is_some() && other.line >= finding.line && other.last_line <= last
        });
        let Some(Finding {
            line,
            last_line,
            fix: Some(next),
            ..
        }) = left
        else {
            break;
        };
        let mut own: Vec<&str> = fix.split('\n').collect();
        own.splice(
            line - finding.line..=last_line - finding.line,
            [next.as_str()],
        );
        fix = own.join("\n");
    }
    Some(fix)
}
