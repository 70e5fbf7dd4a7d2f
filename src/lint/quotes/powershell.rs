//! Plain quotes under PowerShell, whose own command line eats them.

mod harm;

use super::wrap;
use crate::lint::reader::Edit;
use crate::lint::stage::Step;
use crate::lint::{Findings, Rule, Severity};

use harm::is_harmless;

const RULE: Rule = Rule::QuotesUnderPowershell;

/// A double quote in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Quote {
    at: usize,
    backslashes: usize,
}

impl Quote {
    fn is_escaped(self) -> bool {
        self.backslashes % 2 == 1
    }
}

fn quotes(text: &str) -> Vec<Quote> {
    text.match_indices('"')
        .map(|(at, _)| Quote {
            at,
            backslashes: text[..at].len() - text[..at].trim_end_matches('\\').len(),
        })
        .collect()
}

/// A part of a text that its author put in quotes.
#[derive(Debug, Clone, Copy)]
struct Quoted {
    open: Quote,
    close: Option<Quote>,
}

pub(super) fn check(step: &Step<'_>, findings: &mut Findings<'_>) {
    let text = step.instruction.text();
    let all = quotes(text);
    let grouping: Vec<Quote> = all.iter().copied().filter(|q| !q.is_escaped()).collect();
    if grouping.is_empty() || is_wrapped(text, &grouping) {
        return;
    }
    let start = step.instruction.start();
    if let Some(parts) = as_written(text, &all) {
        if parts.iter().any(|part| part.is_spaced(text)) {
            report(step, &parts, wrapped(text, edits(&parts)), findings);
        } else {
            for parts in by_line(step, &parts) {
                report(step, &parts, edits(&parts), findings);
            }
        }
    } else {
        // Quotes in quotes: which of them the script should see, only its author knows.
        let line = step.instruction.line_of(start + grouping[0].at);
        findings.only(RULE, Severity::Error, line, HARMFUL);
    }
}

const HARMFUL: &str = "PowerShell's own command line eats these quotes, and the script falls apart \
    at the spaces and signs between them; write \\\"";

const HARMLESS: &str = "PowerShell's own command line eats these quotes; nothing between them \
    needs any here, but write \\\" to keep them";

fn report(step: &Step<'_>, parts: &[Quoted], edits: Vec<Edit>, findings: &mut Findings<'_>) {
    let text = step.instruction.text();
    let (severity, message) = if parts.iter().all(|part| is_harmless(text, *part)) {
        (Severity::Warning, HARMLESS)
    } else {
        (Severity::Error, HARMFUL)
    };
    let start = step.instruction.start();
    let placed: Vec<Edit> = edits.into_iter().map(|edit| edit.moved(start)).collect();
    findings.edit(RULE, severity, step.instruction, message, &placed);
}

/// The parts in groups that have no line in common.
fn by_line(step: &Step<'_>, parts: &[Quoted]) -> Vec<Vec<Quoted>> {
    let line = |quote: Quote| {
        step.instruction
            .line_of(step.instruction.start() + quote.at)
    };
    let mut groups: Vec<Vec<Quoted>> = Vec::new();
    let mut last_line = None;
    for part in parts {
        match groups.last_mut() {
            Some(group) if last_line == Some(line(part.open)) => group.push(*part),
            _ => groups.push(vec![*part]),
        }
        last_line = Some(line(part.close.unwrap_or(part.open)));
    }
    groups
}

/// Whether the whole text is one argument in quotes, as careful authors write it.
fn is_wrapped(text: &str, grouping: &[Quote]) -> bool {
    matches!(grouping, [open, close] if open.at == 0 && close.at + 1 == text.len())
}

/// The parts in quotes as they look to an author who thinks of quotes at a prompt, where the
/// backslash at the end of `"C:\dir\"` is the path's; `None` if the quotes do not look like that.
fn as_written(text: &str, all: &[Quote]) -> Option<Vec<Quoted>> {
    let parts = pairs(all);
    parts
        .iter()
        .all(|part| {
            let opens = !part.open.is_escaped();
            let closes = part.close.is_some_and(|close| {
                !close.is_escaped()
                    || text[close.at + 1..]
                        .chars()
                        .next()
                        .is_none_or(|c| c.is_whitespace() || ";,)|}".contains(c))
            });
            opens && closes
        })
        .then_some(parts)
}

fn pairs(quotes: &[Quote]) -> Vec<Quoted> {
    quotes
        .chunks(2)
        .map(|pair| Quoted {
            open: pair[0],
            close: pair.get(1).copied(),
        })
        .collect()
}

impl Quoted {
    fn inside(self, text: &str) -> &str {
        let end = self.close.map_or(text.len(), |close| close.at);
        &text[self.open.at + 1..end]
    }

    /// Whether it has white space that does not survive outside quotes.
    fn is_spaced(self, text: &str) -> bool {
        let inside = self.inside(text);
        inside.contains('\t') || inside.contains("  ")
    }
}

/// What turns every quote that the author wrote into one that reaches the script.
fn edits(parts: &[Quoted]) -> Vec<Edit> {
    parts
        .iter()
        .flat_map(|part| [Some(part.open), part.close])
        .flatten()
        .map(|quote| {
            let backslashes = "\\".repeat(quote.backslashes * 2 + 1);
            Edit::new(
                quote.at - quote.backslashes..quote.at + 1,
                format!("{backslashes}\""),
            )
        })
        .collect()
}

/// With quotes around the whole, in which several spaces in a row stay several.
fn wrapped(text: &str, mut edits: Vec<Edit>) -> Vec<Edit> {
    let trailing = text.len() - text.trim_end_matches('\\').len();
    wrap(&mut edits, text, trailing);
    edits
}
