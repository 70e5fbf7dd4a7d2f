//! Registry rules: the two shutdown times, which belong together and differ in type and unit, and
//! `reg`, which prompts before it overwrites.

mod change;

use std::collections::HashSet;

use change::{Change, Tool};
use wincimg_windows::quoting::exec_form;
use wincimg_windows::shutdown::ShutdownValue;

use super::prelude::*;

const PAIR: &str = "shutdown-pair";

/// A smaller value in milliseconds is probably in seconds.
const LEAST_MILLISECONDS: u64 = 1000;

/// From here on, a round number is probably in milliseconds.
const MIN_SUSPECT: u64 = 5000;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// Key as in a running container.
fn key(time: ShutdownValue) -> &'static str {
    match time {
        ShutdownValue::Process => r"HKLM\SYSTEM\CurrentControlSet\Services\cexecsvc",
        ShutdownValue::Service => r"HKLM\SYSTEM\CurrentControlSet\Control",
    }
}

fn other(time: ShutdownValue) -> ShutdownValue {
    match time {
        ShutdownValue::Process => ShutdownValue::Service,
        ShutdownValue::Service => ShutdownValue::Process,
    }
}

/// Name of the type for a tool.
fn kind(time: ShutdownValue, tool: Tool) -> &'static str {
    match (time, tool) {
        (ShutdownValue::Process, Tool::Reg) => "REG_DWORD",
        (ShutdownValue::Process, _) => "DWord",
        (ShutdownValue::Service, Tool::Reg) => "REG_SZ",
        (ShutdownValue::Service, _) => "String",
    }
}

/// Converts a number that is in the other value's unit.
fn in_right_unit(time: ShutdownValue, number: u64) -> Option<u64> {
    match time {
        ShutdownValue::Process if number > DAY || is_likely_milliseconds(number) => {
            Some(number.div_ceil(1000))
        }
        ShutdownValue::Service if (1..LEAST_MILLISECONDS).contains(&number) => Some(number * 1000),
        _ => None,
    }
}

/// Returns true if a number below a day's seconds is probably in milliseconds. Whole hours are not:
/// some servers get two hours to stop.
fn is_likely_milliseconds(number: u64) -> bool {
    number >= MIN_SUSPECT && number.is_multiple_of(1000) && !number.is_multiple_of(HOUR)
}

fn seconds(time: ShutdownValue, number: u64) -> u64 {
    let number = in_right_unit(time, number).unwrap_or(number);
    match time {
        ShutdownValue::Process => number,
        ShutdownValue::Service => number.div_ceil(1000),
    }
}

fn data_for(time: ShutdownValue, seconds: u64) -> u64 {
    match time {
        ShutdownValue::Process => seconds,
        ShutdownValue::Service => seconds.saturating_mul(1000),
    }
}

/// A shutdown time and the instruction that sets it.
#[derive(Debug, Clone)]
struct ShutdownAssignment<'a> {
    time: ShutdownValue,
    step: &'a LintStep<'a>,
    data: Option<(Word, u64)>,
    position: usize,
}

/// What the lines of a stage, and of those that it is built on, set so far.
#[derive(Debug, Clone, Default)]
struct StageValues<'a> {
    /// Keys and names in lower case.
    there: HashSet<(String, String)>,
    times: Vec<ShutdownAssignment<'a>>,
}

pub(super) fn check(linted: &LintFile<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    linted.read_stages(|_, stage, below: Option<StageValues<'_>>| {
        let mut values = below.unwrap_or_default();
        let steps = stage.steps.iter().filter(|_| !stage.is_linux());
        for (step, command) in
            steps.flat_map(|step| step.commands().iter().map(move |it| (step, it)))
        {
            found.extend(check_force(step, command, &mut values.there));
            found.extend(check_type(step, command));
            if let Some(new) = assignment(step, command) {
                values.times.retain(|earlier| earlier.time != new.time);
                values.times.push(new);
            }
        }
        // A stage that others are based on is not published.
        if !stage.is_base {
            found.extend(check_pair(&values.times));
        }
        values
    });
    found
}

/// Returns true if `reg add` is known to overwrite a value.
fn overwrites(command: &LintCommand, there: &mut HashSet<(String, String)>) -> bool {
    let change = Change::from_command(command);
    let (Some(key), Some(change)) = (command.words.get(2), change) else {
        return false;
    };
    let key = key.value.to_ascii_lowercase();
    let name = change.name.value.to_ascii_lowercase();
    // Every Windows has this value.
    let is_windows =
        change.name.eq_ignore_case(ShutdownValue::Service.name()) && key.ends_with(r"\control");
    !there.insert((key, name)) || is_windows
}

fn check_force(
    step: &LintStep<'_>,
    command: &LintCommand,
    there: &mut HashSet<(String, String)>,
) -> Option<Finding> {
    let verb = command
        .words
        .get(1)
        .filter(|_| command.program() == "reg")?;
    let asks =
        verb.eq_ignore_case("delete") || (verb.eq_ignore_case("add") && overwrites(command, there));
    if !asks || command.has(&["/f", "-f", "/?"]) || command.has_input {
        return None;
    }
    let message = format!(
        "reg {} without /f prompts for confirmation, which a build cannot give",
        verb.value
    );
    let edit = command.add_after(command.words.last()?, &["/f"]);
    let found = step.edited(message, edit.as_slice());
    Some(found.of("reg-add-force"))
}

/// The shutdown time that a command sets, and its change.
fn shutdown_change(command: &LintCommand) -> Option<(ShutdownValue, Change<'_>)> {
    let change = Change::from_command(command)?;
    let mut times = ShutdownValue::BOTH.into_iter();
    let time = times.find(|time| change.name.eq_ignore_case(time.name()))?;
    Some((time, change))
}

fn assignment<'a>(step: &'a LintStep<'a>, command: &LintCommand) -> Option<ShutdownAssignment<'a>> {
    let (time, change) = shutdown_change(command)?;
    let data = change
        .data
        .and_then(|word| Some((word.clone(), number(&word.value)?)));
    Some(ShutdownAssignment {
        time,
        step,
        data,
        position: change.name.range.start,
    })
}

/// Reports a shutdown time of another type.
fn check_type(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    let (time, change) = shutdown_change(command)?;
    let right = kind(time, change.tool);
    let (edit, found) = match (change.kind, change.tool) {
        (Some(kind), _) if kind.eq_ignore_case(right) => return None,
        (Some(kind), _) => (Some(replace(step, kind, right)), kind.value.as_str()),
        // Without a type both write a string; Set-ItemProperty keeps the existing type.
        (None, Tool::Reg | Tool::NewItemProperty) if time == ShutdownValue::Process => {
            let last = change.data.unwrap_or(change.name);
            let option = match change.tool {
                Tool::Reg => "/t",
                _ => "-PropertyType",
            };
            (command.add_after(last, &[option, right]), "a string")
        }
        (None, _) => return None,
    };
    let name = time.name();
    let message = format!("{name} must be {right}: as {found} it has no effect");
    Some(step.edited(message, edit.as_slice()))
}

fn check_pair(set: &[ShutdownAssignment<'_>]) -> Vec<Finding> {
    if are_one_time(set) {
        return Vec::new();
    }
    let of_pair = match set {
        [one] => Some(check_alone(one)),
        [first, second] => check_equal(first, second),
        _ => None,
    };
    set.iter().filter_map(check_unit).chain(of_pair).collect()
}

/// Returns true if both are set to the same time, however long.
fn are_one_time(set: &[ShutdownAssignment<'_>]) -> bool {
    let given = |time| {
        let mut found = set
            .iter()
            .filter(|one: &&ShutdownAssignment<'_>| one.time == time);
        found.find_map(|one| one.data.as_ref().map(|(_, number)| *number))
    };
    let times = (given(ShutdownValue::Process), given(ShutdownValue::Service));
    matches!(times, (Some(process), Some(service)) if process.checked_mul(1000) == Some(service))
}

fn check_unit(one: &ShutdownAssignment<'_>) -> Option<Finding> {
    let (word, given) = one.data.as_ref()?;
    let right = in_right_unit(one.time, *given)?;
    let unit = match one.time {
        ShutdownValue::Process => "seconds",
        ShutdownValue::Service => "milliseconds",
    };
    let name = one.time.name();
    let message = format!("{name} is in {unit}: write {right} instead of {given}");
    let edit = replace(one.step, word, &right.to_string());
    let found = one.step.edited(message, &[edit]);
    Some(found.of("shutdown-value-unit"))
}

fn check_alone(one: &ShutdownAssignment<'_>) -> Finding {
    let missing = other(one.time);
    let message = format!(
        "{} alone does not extend the shutdown time; set {} to the same time",
        one.time.name(),
        missing.name()
    );
    let line = one.step.line_at(one.position);
    let correction = one.data.as_ref().map(|(_, number)| {
        let last = one.step.instruction.lines().1;
        let lines = one.step.file.lines_of(line..=last);
        let run = run_line(missing, seconds(one.time, *number));
        Correction::new((line, last), format!("{lines}\n{run}"))
    });
    let found = Finding::new(line, message).corrected(correction);
    found.of(PAIR)
}

fn check_equal(first: &ShutdownAssignment<'_>, second: &ShutdownAssignment<'_>) -> Option<Finding> {
    let (_, one) = first.data.as_ref()?;
    let (word, another) = second.data.as_ref()?;
    let wanted = seconds(first.time, *one);
    if wanted == seconds(second.time, *another) {
        return None;
    }
    let message = format!(
        "{} and {} differ, and the shorter time wins",
        first.time.name(),
        second.time.name()
    );
    let data = data_for(second.time, wanted).to_string();
    let edit = replace(second.step, word, &data);
    Some(second.step.edited(message, &[edit]).of(PAIR))
}

/// A `RUN` line that sets a shutdown time in any shell.
fn run_line(time: ShutdownValue, seconds: u64) -> String {
    let (key, name, kind) = (key(time), time.name(), kind(time, Tool::Reg));
    let data = data_for(time, seconds);
    let line = format!("reg add {key} /v {name} /t {kind} /d {data} /f");
    let argv: Vec<&str> = line.split(' ').collect();
    format!("RUN {}", exec_form(&argv))
}

/// Parses a number of `reg` and PowerShell: decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Replaces a word and keeps its quotes.
fn replace(step: &LintStep<'_>, word: &Word, value: &str) -> Edit {
    let written = step.part(&word.range);
    let is_quote = |c: char| matches!(c, '"' | '\'' | '\\' | '^');
    let opening = written.len() - written.trim_start_matches(is_quote).len();
    let closing = written.len() - written.trim_end_matches(is_quote).len();
    let range = word.range.start + opening..word.range.end - closing;
    if range.start <= range.end {
        Edit::new(range, value)
    } else {
        Edit::new(word.range.clone(), value)
    }
}
