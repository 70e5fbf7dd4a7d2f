//! Corrections written into a file, which keep every other byte.

use super::{Fix, LintFinding, LintOptions, lint};

/// Corrections to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixSelection {
    /// Those that keep what the file means.
    Safe,
    /// All.
    All,
}

impl FixSelection {
    fn contains(self, finding: &LintFinding) -> bool {
        match finding.rule.fix {
            Fix::None => false,
            Fix::Safe => true,
            Fix::Unsafe => self == Self::All,
        }
    }
}

/// Maximum number of rounds: a correction can reveal another finding.
const ROUNDS: usize = 20;

/// The text with corrections of findings that `is_wanted` accepts, and their number.
pub fn fixed(
    source: &str,
    options: &LintOptions,
    selection: FixSelection,
    is_wanted: &dyn Fn(&LintFinding) -> bool,
) -> (String, usize) {
    let mut text = source.to_owned();
    let mut count = 0;
    for _ in 0..ROUNDS {
        let findings = lint(&text, options).findings;
        let fixable = findings
            .iter()
            .filter(|finding| selection.contains(finding) && is_wanted(finding));
        let mut next_line = 1;
        let mut chosen = Vec::new();
        for finding in fixable {
            let Some(fix) = &finding.fix else { continue };
            if !replaces_something(&text, finding, fix) {
                continue;
            }
            let lines = (finding.fix_line, finding.last_line, fix.as_str());
            // A line that moves up can change the meaning of all others.
            if finding.fix_line < finding.line {
                chosen = vec![lines];
                break;
            }
            if finding.line >= next_line {
                next_line = finding.last_line + 1;
                chosen.push(lines);
            }
        }
        if chosen.is_empty() {
            break;
        }
        count += chosen.len();
        text = replace_lines(&text, &chosen);
    }
    (text, count)
}

fn replaces_something(text: &str, finding: &LintFinding, fix: &str) -> bool {
    let before = text.split('\n').skip(finding.fix_line - 1);
    let before: Vec<&str> = before
        .take(finding.last_line + 1 - finding.fix_line)
        .map(|line| line.trim_end_matches('\r'))
        .collect();
    before.join("\n") != fix
}

/// Replaces lines, from 1, with texts. New lines end like the replaced ones.
fn replace_lines(text: &str, replacements: &[(usize, usize, &str)]) -> String {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let lines: Vec<&str> = body.split_inclusive('\n').collect();
    let mut out = mark.to_owned();
    let mut at = 0;
    for (first, last, fix) in replacements {
        out.extend(
            lines[at.min(lines.len())..(first - 1).min(lines.len())]
                .iter()
                .copied(),
        );
        let end = lines.get(first - 1).map_or("\n", |line| line_end(line));
        let end = if end.is_empty() { "\n" } else { end };
        out.push_str(&fix.replace('\n', end));
        out.push_str(lines.get(last - 1).map_or("", |line| line_end(line)));
        at = *last;
    }
    out.extend(lines[at.min(lines.len())..].iter().copied());
    out
}

fn line_end(line: &str) -> &str {
    let body = line.trim_end_matches(['\r', '\n']);
    &line[body.len()..]
}
