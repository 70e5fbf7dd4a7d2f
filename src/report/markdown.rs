//! The report as Markdown for a comment of a pull request: the result first, details folded, and no
//! longer than the limit of a comment.

use std::fmt::Write as _;

use super::matrix::Matrix;
use super::plan::{PlanStep, outcome, steps};
use super::problems::{ReportProblem, problems};
use super::summary::{checks_in_words, current_headline, headline, workload_groups};
use super::{behind, remarks};
use crate::report::prelude::*;

/// GitHub's limit for comments is 65,536 characters; the rest is room for the text after the
/// tables.
const LIMIT: usize = 64_000;

/// Formats without a limit.
const OTHER_FORMATS: &str = "`--format html` or `--format json`";

/// Wider tables are left to other formats.
const MOST_COLUMNS: usize = 12;

/// Longer plans are folded.
const STEPS_SHOWN: usize = 5;

pub(crate) fn write_markdown(rollout: &Rollout, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "### {}", cell(&headline(rollout)))?;
    let lines = what_if(rollout).into_iter();
    let lines = lines.chain(current_headline(rollout));
    for line in lines.chain(remarks(rollout)).chain(behind(rollout)) {
        writeln!(out, "\n{}.", cell(&line))?;
    }
    if let Some(missing) = &rollout.missing_fixes {
        write_security(missing, &mut out)?;
    }
    let used = write_cases(rollout, LIMIT / 2, &mut out)?;
    let mut room = LIMIT - used;
    if let Some(plan) = &rollout.plan {
        // The rest of the room is for the tables that follow.
        room -= write_plan(rollout, plan, room - LIMIT / 16, &mut out)?;
    }
    let matrix = matrix_text(rollout);
    if matrix.len() < room / 2 {
        room -= matrix.len();
        out.write_all(matrix.as_bytes())?;
    }
    write_problems(rollout, room, &mut out)?;
    writeln!(out, "\n{}.", checks_in_words(&rollout.summary))
}

/// The security fixes that images lack, as a list.
pub(super) fn write_security(missing: &MissingFixes, mut out: impl Write) -> io::Result<()> {
    let mut lines = security_lines(missing).into_iter();
    if let Some(table) = lines.next() {
        writeln!(out, "\n{}.", cell(&table))?;
    }
    for (at, image) in lines.enumerate() {
        let before = if at == 0 { "\n" } else { "" };
        writeln!(out, "{before}- {}", cell(&image))?;
    }
    Ok(())
}

/// The workloads that require an action, the worst first.
fn write_cases(rollout: &Rollout, room: usize, out: &mut impl Write) -> io::Result<usize> {
    let cases = workload_groups(rollout);
    if cases.is_empty() {
        return Ok(0);
    }
    let names = names::workloads(rollout);
    writeln!(
        out,
        "\n| Workload | Status | Why | Fix |\n| --- | --- | --- | --- |"
    )?;
    let rows = cases.iter().map(|case| {
        let (whys, more) = case.reasons(rollout);
        let mut whys: Vec<String> = whys
            .iter()
            .map(|(why, rule)| format!("{} (`{rule}`)", cell(why)))
            .collect();
        if more > 0 {
            whys.push(format!("and {more} more like these"));
        }
        let manifests = case.manifests(rollout);
        if !manifests.is_empty() {
            whys.push(format!("in: {}", cell(&in_words(manifests.into_iter()))));
        }
        let fixes = case.fixes.iter();
        let fixes: Vec<String> = fixes
            .map(|(fix, commands)| fix_cell(Some(fix), commands))
            .collect();
        format!(
            "| {} | {} | {} | {} |\n",
            cell(&case.subject_names(&names)),
            cell(&case.describe_starts()),
            whys.join("<br>"),
            fixes.join("<br>")
        )
    });
    write_limited(rows, room, OTHER_FORMATS, out)
}

/// Images in rows, kinds of nodes in columns: names are longer than builds.
fn matrix_text(rollout: &Rollout) -> String {
    let matrix = Matrix::new(rollout);
    let mut text = String::new();
    // Writing to a string cannot fail.
    if matrix.images.is_empty() || matrix.rows.len() > MOST_COLUMNS {
        return text;
    }
    let short = names::images(rollout);
    let heads: Vec<String> = matrix.rows.iter().map(|row| cell(row)).collect();
    let rule = " --- |".repeat(heads.len());
    text.push_str("\n<details><summary>Nodes and images</summary>\n\n");
    let _ = write!(text, "| Image | {} |\n| --- |{rule}\n", heads.join(" | "));
    for (column, &image) in matrix.images.iter().enumerate() {
        let _ = write!(text, "| {} |", cell(&short[image]));
        for row in 0..heads.len() {
            let word = match matrix.cell(row, column) {
                Some(VerdictOutcome::Compatible) => "starts",
                Some(VerdictOutcome::Warning) => "starts, with a warning",
                Some(VerdictOutcome::Incompatible) => "**does not start**",
                Some(VerdictOutcome::Unknown) => "not known",
                None => "",
            };
            let _ = write!(text, " {word} |");
        }
        text.push('\n');
    }
    text.push_str("\n</details>\n");
    text
}

/// Other problems: directly named images, and warnings.
fn write_problems(rollout: &Rollout, room: usize, out: &mut impl Write) -> io::Result<()> {
    let problems = problems(rollout);
    if problems.is_empty() {
        return Ok(());
    }
    let is_warning =
        |problem: &ReportProblem<'_>| problem.finding.outcome == VerdictOutcome::Warning;
    let summary = if problems.iter().all(is_warning) {
        "Warnings"
    } else {
        "What to do"
    };
    writeln!(out, "\n<details><summary>{summary}</summary>\n")?;
    let has_workloads = problems.iter().any(|problem| !problem.workloads.is_empty());
    let workload_heading = if has_workloads { " Workloads |" } else { "" };
    let workload_rule = if has_workloads { " --- |" } else { "" };
    writeln!(
        out,
        "| Image | Hosts |{workload_heading} Verdict | Rule | Why | Fix |"
    )?;
    writeln!(out, "| --- | --- |{workload_rule} --- | --- | --- | --- |")?;
    let rows = problems.iter().map(|problem| row(problem, has_workloads));
    write_limited(rows, room, OTHER_FORMATS, out)?;
    writeln!(out, "\n</details>")
}

/// Writes as many texts as fit, and the number of the others, which `formats` have; returns the
/// number of written bytes.
pub(super) fn write_limited(
    texts: impl ExactSizeIterator<Item = String>,
    room: usize,
    formats: &str,
    out: &mut impl Write,
) -> io::Result<usize> {
    let total = texts.len();
    let mut used = 0;
    for (index, text) in texts.enumerate() {
        if used + text.len() > room {
            let left = total - index;
            writeln!(out, "\n… and {left} more: see {formats}.")?;
            break;
        }
        used += text.len();
        out.write_all(text.as_bytes())?;
    }
    Ok(used)
}

fn row(problem: &ReportProblem<'_>, has_workloads: bool) -> String {
    let finding = problem.finding;
    let image = if problem.images.is_empty() {
        String::new()
    } else {
        cell(&problem.subject())
    };
    let workloads = if has_workloads {
        format!(" {} |", cell(&problem.format_workloads()))
    } else {
        String::new()
    };
    format!(
        "| {image} | {} |{workloads} {} | `{}` | {} | {} |\n",
        cell(&problem.format_hosts()),
        finding.outcome.name(),
        finding.rule,
        cell(&finding.reason),
        fix_cell(finding.fix.as_deref(), &finding.commands),
    )
}

/// Returns the number of bytes of its steps.
fn write_plan(
    rollout: &Rollout,
    plan: &ActionPlan,
    room: usize,
    out: &mut impl Write,
) -> io::Result<usize> {
    let steps = steps(rollout, plan);
    let is_folded = steps.len() > STEPS_SHOWN;
    writeln!(out, "\n#### Plan\n")?;
    if is_folded {
        let count = steps.len();
        writeln!(out, "<details><summary>{count} actions</summary>\n")?;
    }
    let texts = steps.iter().enumerate().map(step_text);
    let used = write_limited(texts, room, OTHER_FORMATS, out)?;
    if is_folded {
        writeln!(out, "\n</details>")?;
    }
    writeln!(out, "\n{}", cell(&outcome(rollout, plan)))?;
    Ok(used)
}

fn step_text((index, step): (usize, &PlanStep<'_>)) -> String {
    let mut text = format!("{}. {}\n", index + 1, cell(&step.title));
    if let Some(nodes) = &step.nodes {
        text.extend(["\n   ", &cell(nodes), "\n"]);
    }
    text.push_str("   ```sh\n");
    for part in step.steps {
        let (comment, part) = match part {
            ActionStep::Command(command) => ("", command),
            ActionStep::Manual(text) => ("# ", text),
        };
        text.extend(["   ", comment, &UntrustedText(part).to_string(), "\n"]);
    }
    text.push_str("   ```\n");
    text
}

fn fix_cell(fix: Option<&str>, commands: &[impl Display]) -> String {
    let mut lines = vec![cell(fix.unwrap_or_default())];
    for command in commands {
        lines.push(code(&UntrustedText(command).to_string()));
    }
    lines.join("<br>")
}

/// A command inside a table, as text to copy: only a bar is escaped, and a longer fence is used if
/// the command contains backticks.
fn code(command: &str) -> String {
    let runs = command.split(|character| character != '`');
    let fence = "`".repeat(runs.map(str::len).max().unwrap_or(0) + 1);
    let space = if fence.len() > 1 { " " } else { "" };
    format!(
        "{fence}{space}{}{space}{fence}",
        command.replace('|', r"\|")
    )
}

/// Foreign text inside a table, escaped: it cannot end the cell or begin markup.
pub(super) fn cell(text: &str) -> String {
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
    UntrustedText(escaped).to_string()
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn a_command_in_a_table_can_be_copied() {
        assert_eq!(code("a | b"), r"`a \| b`");
        assert_eq!(code("echo `x`"), "`` echo `x` ``");
    }
}
