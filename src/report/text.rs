//! The report for a terminal: a matrix that fits it, then the reasons for what is not green.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::matrix::Matrix;
use super::plan::{outcome, steps};
use super::problems::problems;
use super::what_if;
use crate::foreign::Foreign;
use crate::rollout::{Plan, Rollout};
use crate::windows::compat::Outcome;

/// Two spaces between columns.
const GAP: usize = 2;

/// Writes the report for a terminal that is `width` characters wide.
pub fn write_text(rollout: &Rollout, width: usize, mut out: impl Write) -> io::Result<()> {
    if let Some(what_if) = what_if(rollout) {
        writeln!(out, "{}\n", Foreign(what_if))?;
    }
    let matrix = Matrix::of(rollout);
    if !matrix.images.is_empty() {
        write_matrix(rollout, &matrix, width, &mut out)?;
    }
    for problem in problems(rollout) {
        let finding = problem.finding;
        write!(out, "\n{}", Foreign(problem.subject()))?;
        if !problem.hosts.is_empty() {
            write!(out, " on {}", Foreign(problem.hosts_in_words()))?;
        }
        writeln!(out, ": {} ({})", finding.outcome.name(), finding.rule)?;
        if problem.image.is_some() && !problem.workloads.is_empty() {
            writeln!(out, "  for: {}", Foreign(problem.workloads_in_words()))?;
        }
        writeln!(out, "  why: {}", Foreign(&finding.reason))?;
        if let Some(fix) = &finding.fix {
            writeln!(out, "  fix: {}", Foreign(fix))?;
        }
        for command in &finding.commands {
            writeln!(out, "  run: {}", Foreign(command))?;
        }
    }
    if let Some(plan) = &rollout.plan {
        write_plan(rollout, plan, &mut out)?;
    }
    for skipped in &rollout.skipped {
        writeln!(
            out,
            "\n{}: skipped, as no pods were found in it",
            Foreign(skipped)
        )?;
    }
    writeln!(out, "\n{}", rollout.summary)?;
    match rollout.summary.total() {
        0 => Ok(()),
        _ => writeln!(out, "{}", rules_in_words(rollout)),
    }
}

fn write_plan(rollout: &Rollout, plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nplan:")?;
    for (number, step) in (1..).zip(steps(rollout, plan)) {
        writeln!(out, "{number}. {}", Foreign(step.title))?;
        for command in step.commands {
            writeln!(out, "   {}", Foreign(command))?;
        }
    }
    writeln!(out, "{}", Foreign(outcome(plan)))
}

fn write_matrix(
    rollout: &Rollout,
    matrix: &Matrix,
    width: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let shown = |text: &str| Foreign(text).to_string();
    let rows: Vec<String> = matrix.rows.iter().map(|row| shown(row)).collect();
    let heading_width = rows
        .iter()
        .map(|row| row.chars().count())
        .max()
        .unwrap_or(0)
        .max("host".len());
    let labels: Vec<String> = matrix
        .images
        .iter()
        .map(|&image| shown(&rollout.images[image].label()))
        .collect();
    let named: usize = labels.iter().map(|label| label.chars().count() + GAP).sum();
    let numbered = heading_width + named > width;
    let headings: Vec<String> = if numbered {
        (1..=labels.len())
            .map(|number| format!("[{number}]"))
            .collect()
    } else {
        labels.clone()
    };
    for band in bands(&headings, width.saturating_sub(heading_width)) {
        write!(out, "{:heading_width$}", "host")?;
        for heading in &headings[band.clone()] {
            write!(out, "  {heading}")?;
        }
        writeln!(out)?;
        for (row, heading) in rows.iter().enumerate() {
            write!(out, "{heading:heading_width$}")?;
            let mut padding = 0;
            for column in band.clone() {
                let mark = mark(matrix.cell(row, column));
                write!(out, "{:padding$}  {mark}", "")?;
                padding = headings[column].chars().count().saturating_sub(mark.len());
            }
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    if numbered {
        for (number, label) in labels.iter().enumerate() {
            writeln!(out, "[{}] {label}", number + 1)?;
        }
        writeln!(out)?;
    }
    let isolations = rollout.isolations();
    if !isolations.is_empty() {
        write!(out, "{isolations} isolation; ")?;
    }
    write!(
        out,
        "ok starts, ! starts but look, NO does not start, ? not known"
    )?;
    if rollout
        .placements
        .iter()
        .any(|placement| placement.workload.is_some())
    {
        write!(out, ", - does not land there")?;
    }
    writeln!(out)
}

/// Groups of columns that fit beside the row headings; each holds at least one.
fn bands(headings: &[String], width: usize) -> Vec<std::ops::Range<usize>> {
    let mut bands = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (index, heading) in headings.iter().enumerate() {
        let needed = heading.chars().count() + GAP;
        if used + needed > width && index > start {
            bands.push(start..index);
            (start, used) = (index, 0);
        }
        used += needed;
    }
    bands.push(start..headings.len());
    bands
}

fn mark(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Compatible) => "ok",
        Some(Outcome::Warning) => "!",
        Some(Outcome::Incompatible) => "NO",
        Some(Outcome::Unknown) => "?",
        None => "-",
    }
}

/// How often each rule decided: the short answer to "why" where everything is green.
fn rules_in_words(rollout: &Rollout) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for placement in &rollout.placements {
        for placed in &placement.images {
            for (group, finding) in placement.selection.groups.iter().zip(&placed.findings) {
                *counts.entry(finding.rule).or_default() += group.hosts.len();
            }
        }
    }
    for notice in &rollout.notices {
        *counts.entry(notice.finding.rule).or_default() += 1;
    }
    let words: Vec<String> = counts
        .iter()
        .map(|(rule, count)| format!("{rule} {count}"))
        .collect();
    format!("by rule: {}", words.join(", "))
}
