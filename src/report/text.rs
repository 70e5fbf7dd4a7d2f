//! The report for a terminal: a matrix that fits it, then the reasons for what is not green.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{Host, Report};
use crate::windows::compat::Outcome;

/// More hosts than this are shown by build instead of by name.
const HOSTS_BY_NAME: usize = 40;

/// Two spaces between columns.
const GAP: usize = 2;

/// Writes the report for a terminal that is `width` characters wide.
pub fn write_text(report: &Report, width: usize, mut out: impl Write) -> io::Result<()> {
    let rows = rows_of(report);
    write_matrix(report, &rows, width, &mut out)?;
    for problem in report.problems() {
        let finding = problem.finding;
        writeln!(
            out,
            "\n{} on {}: {} ({})",
            problem.image.label(),
            problem.hosts_in_words(),
            finding.outcome.name(),
            finding.rule.name()
        )?;
        writeln!(out, "  why: {}", finding.reason)?;
        if let Some(fix) = &finding.fix {
            writeln!(out, "  fix: {fix}")?;
        }
    }
    writeln!(out, "\n{}", report.summary)?;
    writeln!(out, "{}", rules_in_words(report))
}

/// A line of the matrix: its heading and the host whose checks it shows.
struct Row {
    heading: String,
    host: usize,
}

fn rows_of(report: &Report) -> Vec<Row> {
    if report.hosts.len() <= HOSTS_BY_NAME {
        return report
            .hosts
            .iter()
            .enumerate()
            .map(|(host, value)| Row {
                heading: value.label(),
                host,
            })
            .collect();
    }
    let mut by_build: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for (index, host) in report.hosts.iter().enumerate() {
        by_build.entry(host.build).or_insert((index, 0)).1 += 1;
    }
    by_build
        .into_iter()
        .map(|(build, (host, count))| {
            let anonymous = Host { name: None, build };
            Row {
                heading: format!("{} ({count} hosts)", anonymous.label()),
                host,
            }
        })
        .collect()
}

fn write_matrix(
    report: &Report,
    rows: &[Row],
    width: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let heading_width = rows
        .iter()
        .map(|row| row.heading.chars().count())
        .max()
        .unwrap_or(0)
        .max("host".len());
    let labels: Vec<String> = report.images.iter().map(super::Image::label).collect();
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
        for row in rows {
            write!(out, "{:heading_width$}", row.heading)?;
            let mut padding = 0;
            for image in band.clone() {
                let check = &report.checks[row.host * report.images.len() + image];
                let mark = mark(check.finding.outcome);
                write!(out, "{:padding$}  {mark}", "")?;
                padding = headings[image].chars().count().saturating_sub(mark.len());
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
    writeln!(
        out,
        "{} isolation; ok starts, ! starts but look, NO does not start, ? not known",
        report.isolation.name()
    )
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

fn mark(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Compatible => "ok",
        Outcome::Warning => "!",
        Outcome::Incompatible => "NO",
        Outcome::Unknown => "?",
    }
}

/// How often each rule decided: the short answer to "why" where everything is green.
fn rules_in_words(report: &Report) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for check in &report.checks {
        *counts.entry(check.finding.rule.name()).or_default() += 1;
    }
    let words: Vec<String> = counts
        .iter()
        .map(|(rule, count)| format!("{rule} {count}"))
        .collect();
    format!("by rule: {}", words.join(", "))
}
