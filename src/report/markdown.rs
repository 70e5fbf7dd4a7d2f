//! The report as Markdown for a pull request's comment: the answer first, the details folded.

use std::io::{self, Write};

use super::Report;

/// Writes the report as Markdown.
pub fn write_markdown(report: &Report, strict: bool, mut out: impl Write) -> io::Result<()> {
    let answer = if report.is_compatible(strict) {
        "Everything starts"
    } else {
        "Not everything starts"
    };
    writeln!(out, "### {answer}\n\n{}.", report.summary)?;
    let problems = report.problems();
    if problems.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n<details><summary>What to do</summary>\n")?;
    writeln!(out, "| Image | Hosts | Verdict | Rule | Why | Fix |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
    for problem in problems {
        let finding = problem.finding;
        writeln!(
            out,
            "| {} | {} | {} | `{}` | {} | {} |",
            cell(&problem.image.label()),
            cell(&problem.hosts_in_words()),
            finding.outcome.name(),
            finding.rule.name(),
            cell(&finding.reason),
            cell(finding.fix.as_deref().unwrap_or_default()),
        )?;
    }
    writeln!(out, "\n</details>")
}

/// Foreign text inside a table: nothing in it may end the cell or begin mark-up.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '#' => {
                escaped.push('\\');
                escaped.push(character);
            }
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}
