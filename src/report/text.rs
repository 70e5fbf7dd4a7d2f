//! The report as text: the status of the workloads, the actions, and the matrix.

mod grid;

use grid::Grid;

use super::matrix::Matrix;
use super::plan::{outcome, steps};
use super::problems::{ReportProblem, problems};
use super::summary::{
    WorkloadGroup, answers, checks_in_words, current_headline, headline, workload_groups,
};
use super::{behind, cordoned, paint};
use crate::report::prelude::*;

/// Medium on which the report is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextStyle {
    /// Width of a line in characters.
    pub width: usize,
    /// True if sentences are wrapped; commands never are.
    pub wraps: bool,
    pub colour: bool,
}

const RED: &str = "1;31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const MAGENTA: &str = "35";
const CYAN: &str = "36";
const BOLD: &str = "1";

pub(crate) fn write_text(
    rollout: &Rollout,
    screen: TextStyle,
    mut out: impl Write,
) -> io::Result<()> {
    write_answer(rollout, screen, &mut out)?;
    let names = names::workloads(rollout);
    let mut told = HashSet::new();
    for case in workload_groups(rollout) {
        write_case(rollout, &case, &names, (screen, &mut told), &mut out)?;
    }
    let (urgent, warnings): (Vec<_>, Vec<_>) = problems(rollout)
        .into_iter()
        .partition(|problem| problem.finding.outcome != VerdictOutcome::Warning);
    for problem in &urgent {
        write_problem(problem, screen, &told, &mut out)?;
    }
    if let Some(plan) = &rollout.plan {
        write_plan(rollout, plan, screen, &mut out)?;
    }
    write_matrix(rollout, screen, &mut out)?;
    for problem in &warnings {
        write_problem(problem, screen, &told, &mut out)?;
    }
    if let Some(cordoned) = cordoned(rollout) {
        writeln!(out, "\n{}", escape_untrusted(cordoned))?;
    }
    for skipped in &rollout.skipped {
        writeln!(out, "\n{}: {NO_TEMPLATE}", escape_untrusted(skipped))?;
    }
    if let Some(behind) = behind(rollout) {
        writeln!(out)?;
        screen.write("", behind, &mut out)?;
    }
    if let Some(missing) = &rollout.missing_fixes {
        writeln!(out)?;
        for line in security_lines(missing) {
            screen.write("", line, &mut out)?;
        }
    }
    writeln!(out)?;
    screen.write("", checks_in_words(&rollout.summary), &mut out)?;
    let rules = rules_in_words(rollout);
    rules.map_or(Ok(()), |rules| screen.write("", rules, &mut out))
}

/// Writes the summary and the matrix, for a table that is redrawn.
pub(crate) fn write_summary_and_matrix(
    rollout: &Rollout,
    screen: TextStyle,
    mut out: impl Write,
) -> io::Result<()> {
    write_answer(rollout, screen, &mut out)?;
    write_matrix(rollout, screen, &mut out)
}

fn write_answer(rollout: &Rollout, screen: TextStyle, out: &mut impl Write) -> io::Result<()> {
    if let Some(what_if) = what_if(rollout) {
        screen.write("", what_if, out)?;
        writeln!(out)?;
    }
    let answers = answers(rollout);
    if answers.is_empty() {
        writeln!(out, "{}", headline(rollout))?;
    }
    for parts in answers {
        let words = parts.iter().map(|part| escape_untrusted(part.with_names()));
        let words: Vec<String> = words.collect();
        let mut line = screen.wrapped("", &words.join(" · "));
        for (part, words) in parts.iter().zip(&words) {
            // The part before the names is coloured.
            let first = words.split(": ").next().unwrap_or(words);
            line = line.replacen(first, &screen.paint(colour_of(part.starts), first), 1);
        }
        writeln!(out, "{line}")?;
    }
    if let Some(as_it_is) = current_headline(rollout) {
        screen.write("", as_it_is, out)?;
    }
    Ok(())
}

fn write_case(
    rollout: &Rollout,
    case: &WorkloadGroup<'_>,
    names: &[String],
    (screen, told): (TextStyle, &mut HashSet<String>),
    out: &mut impl Write,
) -> io::Result<()> {
    let title = format!("{} {}", case.subject_names(names), case.describe_starts());
    let title = screen.wrapped("", &escape_untrusted(title));
    writeln!(out, "\n{}", screen.paint(colour_of(case.starts), title))?;
    let manifests = case.manifests(rollout);
    if !manifests.is_empty() {
        screen.write("  in:  ", in_words(manifests.into_iter()), out)?;
    }
    let (whys, more) = case.reasons(rollout);
    // Reasons are not written again; one that is new, alone, would read as the only one.
    let is_told = !whys.is_empty() && whys.iter().all(|(why, _)| told.contains(why));
    if is_told {
        writeln!(out, "  why: as above ({})", screen.paint(CYAN, whys[0].1))?;
    }
    for (why, rule) in whys {
        told.insert(why.clone());
        if !is_told {
            write_reason(&why, Some(rule), screen, out)?;
        }
    }
    if more > 0 && !is_told {
        writeln!(out, "       and {more} more like these")?;
    }
    for (fix, commands) in &case.fixes {
        told.extend(commands.iter().map(|command| (*command).to_owned()));
        write_fix(Some(fix), commands, screen, out)?;
    }
    Ok(())
}

fn write_problem(
    problem: &ReportProblem<'_>,
    screen: TextStyle,
    told: &HashSet<String>,
    out: &mut impl Write,
) -> io::Result<()> {
    let finding = problem.finding;
    let mut title = problem.subject();
    if !problem.hosts.is_empty() {
        title = format!("{title} on {}", problem.format_hosts());
    }
    let (verdict, rule) = (finding.outcome.name(), finding.rule);
    let title = screen.wrapped(
        "",
        &format!("{}: {verdict} ({rule})", escape_untrusted(title)),
    );
    // The last words of the title, between which a line may end.
    let words = title.strip_suffix(&format!("({rule})"));
    let words = words.map(|words| (words.trim_end(), &words[words.trim_end().len()..]));
    let before = words.and_then(|(words, _)| words.strip_suffix(verdict));
    let title = match (before, words) {
        (Some(before), Some((_, space))) => {
            let verdict = screen.paint(colour_of_outcome(finding.outcome), verdict);
            format!("{before}{verdict}{space}({})", screen.paint(CYAN, rule))
        }
        _ => title,
    };
    writeln!(out, "\n{title}")?;
    if !problem.images.is_empty() && !problem.workloads.is_empty() {
        screen.write("  for: ", problem.format_workloads(), out)?;
    }
    write_reason(&finding.reason, None, screen, out)?;
    let commands = &finding.commands;
    let is_told = |command: &String| told.contains(command);
    if !commands.is_empty() && commands.iter().all(is_told) {
        return write_fix(Some("as above"), &commands[..0], screen, out);
    }
    write_fix(finding.fix.as_deref(), commands, screen, out)
}

fn write_reason(
    why: &str,
    rule: Option<&str>,
    screen: TextStyle,
    out: &mut impl Write,
) -> io::Result<()> {
    let rule = rule.map(|rule| format!(" ({rule})")).unwrap_or_default();
    let text = screen.wrapped("  why: ", &format!("{}{rule}", escape_untrusted(why)));
    // The rule is the last word.
    let (before, last) = text.rsplit_once(' ').unwrap_or(("", &text));
    if rule.is_empty() {
        writeln!(out, "{text}")
    } else {
        writeln!(out, "{before} {}", screen.paint(CYAN, last))
    }
}

fn write_fix(
    fix: Option<&str>,
    commands: &[impl Display],
    screen: TextStyle,
    out: &mut impl Write,
) -> io::Result<()> {
    if let Some(fix) = fix {
        let text = screen.wrapped("  fix: ", &escape_untrusted(fix));
        let text = text.replacen("fix:", &screen.paint("1;36", "fix:"), 1);
        writeln!(out, "{text}")?;
    }
    let label = screen.paint("1;36", "run:");
    for command in commands {
        writeln!(out, "  {label} {}", escape_untrusted(command))?;
    }
    Ok(())
}

fn write_plan(
    rollout: &Rollout,
    plan: &ActionPlan,
    screen: TextStyle,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "\n{}", screen.paint(BOLD, "plan:"))?;
    for (number, step) in (1..).zip(steps(rollout, plan)) {
        screen.write(&format!("{number}. "), step.title, out)?;
        if let Some(nodes) = &step.nodes {
            screen.write("   ", nodes, out)?;
        }
        // Commands alone need no numbers.
        let has_manual = |step: &ActionStep| matches!(step, ActionStep::Manual(_));
        let is_numbered = step.steps.iter().any(has_manual);
        for (place, part) in (1..).zip(step.steps) {
            let (ActionStep::Command(text) | ActionStep::Manual(text)) = part;
            let text = escape_untrusted(text);
            if is_numbered {
                writeln!(out, "   {number}.{place} {text}")?;
            } else {
                writeln!(out, "   {text}")?;
            }
        }
    }
    screen.write("", outcome(rollout, plan), out)
}

fn write_matrix(rollout: &Rollout, screen: TextStyle, out: &mut impl Write) -> io::Result<()> {
    let matrix = Matrix::new(rollout);
    let short = names::images(rollout);
    let labels = |images: &[usize]| -> Vec<String> {
        let names = images.iter().map(|&image| escape_untrusted(&short[image]));
        names.collect()
    };
    if !matrix.images.is_empty() {
        let rows: Vec<String> = matrix.rows.iter().map(escape_untrusted).collect();
        let grid = Grid::new(&rows, &labels(&matrix.images), screen.width);
        writeln!(out)?;
        grid.write(
            |row, column| {
                let outcome = matrix.cell(row, column);
                let mark = mark(outcome);
                let painted = match outcome {
                    Some(outcome) => screen.paint(colour_of_outcome(outcome), mark),
                    None => mark.to_owned(),
                };
                (painted, mark.len())
            },
            out,
        )?;
        let isolations = match rollout.isolations() {
            names if names.is_empty() => names,
            names => format!("{names} isolation; "),
        };
        let elsewhere = if matrix.has_gaps() {
            ", - does not land there"
        } else {
            ""
        };
        let legend = format!(
            "{isolations}ok starts, ! starts with a warning, NO does not start, ? not known\
             {elsewhere}"
        );
        screen.write("", legend, out)?;
    }
    if !matrix.nowhere.is_empty() {
        let names = in_words(labels(&matrix.nowhere).into_iter());
        let line = format!("not in the table, because their pods land on no node: {names}");
        screen.write("", line, out)?;
    }
    Ok(())
}

impl TextStyle {
    fn paint(self, colour: &str, text: impl Display) -> String {
        paint(self.colour, colour, text)
    }

    /// Writes a labelled sentence, wrapped.
    fn write(self, label: &str, text: impl Display, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.wrapped(label, &escape_untrusted(text)))
    }

    /// A labelled sentence, wrapped.
    fn wrapped(self, label: &str, text: &str) -> String {
        if !self.wraps {
            return format!("{label}{text}");
        }
        let indent = label.chars().count();
        let mut wrapped = label.to_owned();
        let mut used = indent;
        for (index, word) in text.split(' ').enumerate() {
            let length = word.chars().count();
            if index > 0 {
                if used + 1 + length > self.width {
                    wrapped.push('\n');
                    wrapped.extend(std::iter::repeat_n(' ', indent));
                    used = indent;
                } else {
                    wrapped.push(' ');
                    used += 1;
                }
            }
            wrapped.push_str(word);
            used += length;
        }
        wrapped
    }
}

fn colour_of(starts: StartStatus) -> &'static str {
    match starts {
        StartStatus::Nowhere | StartStatus::Unplaced => RED,
        StartStatus::Somewhere | StartStatus::Warned => YELLOW,
        StartStatus::Unknown => MAGENTA,
        StartStatus::Everywhere => GREEN,
    }
}

fn colour_of_outcome(outcome: VerdictOutcome) -> &'static str {
    match outcome {
        VerdictOutcome::Compatible => GREEN,
        VerdictOutcome::Warning => YELLOW,
        VerdictOutcome::Incompatible => RED,
        VerdictOutcome::Unknown => MAGENTA,
    }
}

fn mark(outcome: Option<VerdictOutcome>) -> &'static str {
    match outcome {
        Some(VerdictOutcome::Compatible) => "ok",
        Some(VerdictOutcome::Warning) => "!",
        Some(VerdictOutcome::Incompatible) => "NO",
        Some(VerdictOutcome::Unknown) => "?",
        None => "-",
    }
}

/// Number of decisions by each rule: the reason if all is well.
fn rules_in_words(rollout: &Rollout) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for placement in &rollout.placements {
        for (_, hosts, finding) in findings(placement) {
            *counts.entry(finding.rule).or_default() += hosts.len();
        }
    }
    for notice in &rollout.notices {
        *counts.entry(notice.finding.rule).or_default() += 1;
    }
    let words = counts.iter().map(|(rule, count)| format!("{rule} {count}"));
    let words = joined(words, ", ");
    (!words.is_empty()).then(|| format!("by rule: {words}"))
}
