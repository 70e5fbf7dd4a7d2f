//! The report as Markdown for a pull request's comment: the answer first, the details folded, and
//! never longer than such a comment may be.

use std::io::{self, Write};

use super::plan::{Step, outcome, steps};
use super::problems::{Problem, problems};
use super::{skipped, what_if};
use crate::foreign::Foreign;
use crate::rollout::{Finding, Plan, Rollout};

/// GitHub takes comments of 65,536 characters; what comes after the tables has room in the rest.
const ROOM: usize = 64_000;

/// A plan of more steps than this is folded.
const STEPS_SHOWN: usize = 5;

/// Writes the report as Markdown.
pub fn write_markdown(rollout: &Rollout, strict: bool, mut out: impl Write) -> io::Result<()> {
    let answer = if rollout.is_compatible(strict) {
        "Everything starts"
    } else {
        "Not everything starts"
    };
    writeln!(out, "### {answer}\n\n{}.", rollout.summary)?;
    if let Some(what_if) = what_if(rollout) {
        writeln!(out, "\n{}.", cell(&what_if))?;
    }
    if let Some(skipped) = skipped(rollout) {
        writeln!(out, "\n{}.", cell(&skipped))?;
    }
    let mut room = ROOM;
    if let Some(plan) = &rollout.plan {
        // The other half is for the reasons.
        room -= write_plan(rollout, plan, ROOM / 2, &mut out)?;
    }
    let problems = problems(rollout);
    if problems.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n<details><summary>What to do</summary>\n")?;
    let has_workloads = problems.iter().any(|problem| !problem.workloads.is_empty());
    let workload_heading = if has_workloads { " Workloads |" } else { "" };
    let workload_rule = if has_workloads { " --- |" } else { "" };
    writeln!(
        out,
        "| Image | Hosts |{workload_heading} Verdict | Rule | Why | Fix |"
    )?;
    writeln!(out, "| --- | --- |{workload_rule} --- | --- | --- | --- |")?;
    let rows = problems.iter().map(|problem| row(problem, has_workloads));
    write_what_fits(rows, room, &mut out)?;
    writeln!(out, "\n</details>")
}

/// Writes the first texts that there is room for, and how many more there are; says how many bytes
/// these took.
fn write_what_fits(
    texts: impl ExactSizeIterator<Item = String>,
    room: usize,
    out: &mut impl Write,
) -> io::Result<usize> {
    let total = texts.len();
    let mut used = 0;
    for (index, text) in texts.enumerate() {
        if used + text.len() > room {
            let left = total - index;
            writeln!(
                out,
                "\n… and {left} more, which `--format html` and `--format json` show."
            )?;
            break;
        }
        used += text.len();
        out.write_all(text.as_bytes())?;
    }
    Ok(used)
}

fn row(problem: &Problem<'_>, has_workloads: bool) -> String {
    let finding = problem.finding;
    let image = match problem.image {
        Some(_) => cell(&problem.subject()),
        None => String::new(),
    };
    let workloads = if has_workloads {
        format!(" {} |", cell(&problem.workloads_in_words()))
    } else {
        String::new()
    };
    format!(
        "| {image} | {} |{workloads} {} | `{}` | {} | {} |\n",
        cell(&problem.hosts_in_words()),
        finding.outcome.name(),
        finding.rule,
        cell(&finding.reason),
        fix_cell(finding),
    )
}

/// Says how many bytes its steps took.
fn write_plan(
    rollout: &Rollout,
    plan: &Plan,
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
    let used = write_what_fits(texts, room, out)?;
    if is_folded {
        writeln!(out, "\n</details>")?;
    }
    writeln!(out, "\n{}", cell(&outcome(plan)))?;
    Ok(used)
}

fn step_text((index, step): (usize, &Step<'_>)) -> String {
    let mut text = format!("{}. {}\n   ```sh\n", index + 1, cell(&step.title));
    for command in step.commands {
        text.extend(["   ", &Foreign(command).to_string(), "\n"]);
    }
    text.push_str("   ```\n");
    text
}

fn fix_cell(finding: &Finding) -> String {
    let mut lines = vec![cell(finding.fix.as_deref().unwrap_or_default())];
    for command in &finding.commands {
        lines.push(code(&Foreign(command).to_string()));
    }
    lines.join("<br>")
}

/// A command inside a table, to be copied as it is: only a bar needs a backslash there, and backticks
/// take a longer fence.
fn code(command: &str) -> String {
    let runs = command.split(|character| character != '`');
    let fence = "`".repeat(runs.map(str::len).max().unwrap_or(0) + 1);
    let space = if fence.len() > 1 { " " } else { "" };
    format!(
        "{fence}{space}{}{space}{fence}",
        command.replace('|', r"\|")
    )
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
    Foreign(escaped).to_string()
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
