//! The report as Markdown for a pull request's comment: the answer first, the details folded.

use std::io::{self, Write};

use super::plan::{outcome, steps};
use super::problems::problems;
use crate::rollout::{Finding, Plan, Rollout};

/// Writes the report as Markdown.
pub fn write_markdown(rollout: &Rollout, strict: bool, mut out: impl Write) -> io::Result<()> {
    let answer = if rollout.is_compatible(strict) {
        "Everything starts"
    } else {
        "Not everything starts"
    };
    writeln!(out, "### {answer}\n\n{}.", rollout.summary)?;
    if let Some(plan) = &rollout.plan {
        write_plan(rollout, plan, &mut out)?;
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
    for problem in problems {
        let finding = problem.finding;
        let image = match problem.image {
            Some(_) => cell(&problem.subject()),
            None => String::new(),
        };
        write!(out, "| {image} | {} |", cell(&problem.hosts_in_words()))?;
        if has_workloads {
            write!(out, " {} |", cell(&problem.workloads_in_words()))?;
        }
        writeln!(
            out,
            " {} | `{}` | {} | {} |",
            finding.outcome.name(),
            finding.rule,
            cell(&finding.reason),
            fix_cell(finding),
        )?;
    }
    writeln!(out, "\n</details>")
}

fn write_plan(rollout: &Rollout, plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n#### Plan\n")?;
    for (number, step) in (1..).zip(steps(rollout, plan)) {
        writeln!(out, "{number}. {}", cell(&step.title))?;
        writeln!(out, "   ```sh")?;
        for command in step.commands {
            writeln!(out, "   {command}")?;
        }
        writeln!(out, "   ```")?;
    }
    writeln!(out, "\n{}", cell(&outcome(plan)))
}

fn fix_cell(finding: &Finding) -> String {
    let mut lines = vec![cell(finding.fix.as_deref().unwrap_or_default())];
    for command in &finding.commands {
        lines.push(format!("`{}`", command.replace(['`', '|'], " ")));
    }
    lines.join("<br>")
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
