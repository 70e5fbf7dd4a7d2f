//! Registry changes: the two shutdown times, which go together and differ in type and unit, and
//! `reg`, which asks before it overwrites.

use super::reader::Edit;
use super::stage::{Base, Stage, Step};
use super::words::{Command, Word, commands};
use super::{Findings, Rule, Severity};
use crate::windows::quoting::exec_form;

/// One of the two values that say how long a container may take to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shutdown {
    /// `ProcessShutdownTimeoutSeconds`
    Process,
    /// `WaitToKillServiceTimeout`
    Services,
}

/// A time of at least this many milliseconds is meant; a smaller one is in seconds.
const LEAST_MILLISECONDS: u64 = 1000;

/// Nobody waits this long for a container; as many milliseconds are a few seconds.
const MOST_SECONDS: u64 = 5000;

impl Shutdown {
    const BOTH: [Self; 2] = [Self::Process, Self::Services];

    fn name(self) -> &'static str {
        match self {
            Self::Process => "ProcessShutdownTimeoutSeconds",
            Self::Services => "WaitToKillServiceTimeout",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Process => r"HKLM\SYSTEM\CurrentControlSet\Services\cexecsvc",
            Self::Services => r"HKLM\SYSTEM\CurrentControlSet\Control",
        }
    }

    /// The type in `reg`'s words.
    fn kind(self) -> &'static str {
        match self {
            Self::Process => "REG_DWORD",
            Self::Services => "REG_SZ",
        }
    }

    /// The type in PowerShell's words.
    fn cmdlet_kind(self) -> &'static str {
        match self {
            Self::Process => "DWord",
            Self::Services => "String",
        }
    }

    /// The number in the right unit, if the one given is in the other's.
    fn in_right_unit(self, number: u64) -> Option<u64> {
        match self {
            Self::Process if number >= MOST_SECONDS => Some(number.div_ceil(1000)),
            Self::Services if (1..LEAST_MILLISECONDS).contains(&number) => Some(number * 1000),
            _ => None,
        }
    }

    fn seconds(self, number: u64) -> u64 {
        let number = self.in_right_unit(number).unwrap_or(number);
        match self {
            Self::Process => number,
            Self::Services => number.div_ceil(1000),
        }
    }

    fn data_for(self, seconds: u64) -> u64 {
        match self {
            Self::Process => seconds,
            Self::Services => seconds.saturating_mul(1000),
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Process => Self::Services,
            Self::Services => Self::Process,
        }
    }
}

/// A command that sets a registry value.
#[derive(Debug)]
struct Setting<'a> {
    name: &'a Word,
    kind: Option<&'a Word>,
    data: Option<&'a Word>,
    tool: Tool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Reg,
    NewItemProperty,
    SetItemProperty,
}

/// A shutdown time and where it was set.
#[derive(Debug, Clone)]
struct Set<'a> {
    shutdown: Shutdown,
    step: Step<'a>,
    data: Option<(Word, u64)>,
    position: usize,
}

pub(super) fn check(stages: &[Stage<'_>], findings: &mut Findings<'_>) {
    let mut times: Vec<Vec<Set<'_>>> = Vec::new();
    for stage in stages {
        let mut set = match stage.base {
            Base::Stage(index) => times[index].clone(),
            _ => Vec::new(),
        };
        for step in &stage.steps {
            for command in commands(step) {
                check_force(step, &command, findings);
                if let Some(time) = check_shutdown(step, &command, findings) {
                    set.retain(|earlier| earlier.shutdown != time.shutdown);
                    set.push(time);
                }
            }
        }
        times.push(set);
    }
    for (index, set) in times.iter().enumerate() {
        // A stage that others build on is not what ships.
        let is_base = stages
            .iter()
            .any(|stage| matches!(stage.base, Base::Stage(i) if i == index));
        if !is_base {
            check_pair(set, findings);
        }
    }
}

fn check_force(step: &Step<'_>, command: &Command, findings: &mut Findings<'_>) {
    let [_, verb, ..] = command.words.as_slice() else {
        return;
    };
    let asks = command.program() == "reg" && (verb.is("add") || verb.is("delete"));
    let forced = command
        .words
        .iter()
        .any(|word| word.is("/f") || word.is("-f"));
    let help = command.words.iter().any(|word| word.is("/?"));
    let Some(last) = command.words.last() else {
        return;
    };
    if asks && !forced && !help {
        findings.edit(
            Rule::RegAddForce,
            Severity::Error,
            step.instruction,
            format!(
                "reg {} without /f waits for an answer that nobody gives",
                verb.value
            ),
            command.add_after(last, &["/f"]).as_slice(),
        );
    }
}

/// Checks a shutdown time's type and unit, and says what it is set to.
fn check_shutdown<'a>(
    step: &Step<'a>,
    command: &Command,
    findings: &mut Findings<'_>,
) -> Option<Set<'a>> {
    let setting = setting(command)?;
    let shutdown = Shutdown::BOTH
        .into_iter()
        .find(|shutdown| setting.name.is(shutdown.name()))?;
    check_type(step, command, &setting, shutdown, findings);
    let data = setting
        .data
        .and_then(|word| Some((word.clone(), number(&word.value)?)));
    if let Some((word, given)) = &data
        && let Some(right) = shutdown.in_right_unit(*given)
    {
        let unit = match shutdown {
            Shutdown::Process => "seconds",
            Shutdown::Services => "milliseconds",
        };
        findings.edit(
            Rule::ShutdownValueUnit,
            Severity::Error,
            step.instruction,
            format!("{} is in {unit}: {given} would be {right}", shutdown.name()),
            &[replace(step, word, &right.to_string())],
        );
    }
    Some(Set {
        shutdown,
        step: *step,
        data,
        position: setting.name.range.start,
    })
}

fn check_type(
    step: &Step<'_>,
    command: &Command,
    setting: &Setting<'_>,
    shutdown: Shutdown,
    findings: &mut Findings<'_>,
) {
    let right = match setting.tool {
        Tool::Reg => shutdown.kind(),
        Tool::NewItemProperty | Tool::SetItemProperty => shutdown.cmdlet_kind(),
    };
    let flag = match setting.tool {
        Tool::Reg => "/t",
        Tool::NewItemProperty => "-PropertyType",
        Tool::SetItemProperty => "-Type",
    };
    let (edit, found) = match (setting.kind, setting.tool) {
        (Some(kind), _) if kind.is(right) => return,
        (Some(kind), _) => (Some(replace(step, kind, right)), kind.value.clone()),
        // Without a type both write a string; Set-ItemProperty keeps the type that is there.
        (None, Tool::Reg | Tool::NewItemProperty) if shutdown == Shutdown::Process => {
            let last = setting.data.unwrap_or(setting.name);
            (
                command.add_after(last, &[flag, right]),
                "a string".to_owned(),
            )
        }
        (None, _) => return,
    };
    findings.edit(
        Rule::ShutdownValueType,
        Severity::Error,
        step.instruction,
        format!(
            "{} has to be {right}, and as {found} has no effect",
            shutdown.name()
        ),
        edit.as_slice(),
    );
}

fn check_pair(set: &[Set<'_>], findings: &mut Findings<'_>) {
    match set {
        [one] => {
            let message = format!(
                "{} alone does not give the container its time; set {} to the same time",
                one.shutdown.name(),
                one.shutdown.other().name()
            );
            let line = one.step.instruction.line_of(one.position);
            match &one.data {
                Some((_, number)) => {
                    let seconds = one.shutdown.seconds(*number);
                    let correction = findings.file.followed_by(
                        one.step.instruction,
                        line,
                        &run_line(one.shutdown.other(), seconds),
                    );
                    findings.correct(Rule::ShutdownPair, Severity::Error, message, correction);
                }
                None => findings.only(Rule::ShutdownPair, Severity::Error, line, message),
            }
        }
        [first, second] => {
            let (Some((_, a)), Some((word, b))) = (&first.data, &second.data) else {
                return;
            };
            let seconds = first.shutdown.seconds(*a);
            if seconds == second.shutdown.seconds(*b) {
                return;
            }
            let right = second.shutdown.data_for(seconds);
            findings.edit(
                Rule::ShutdownPair,
                Severity::Error,
                second.step.instruction,
                format!(
                    "{} and {} are not the same time; the shorter one wins",
                    first.shutdown.name(),
                    second.shutdown.name()
                ),
                &[replace(&second.step, word, &right.to_string())],
            );
        }
        _ => {}
    }
}

/// A `RUN` line that sets a shutdown time, whatever the shell.
fn run_line(shutdown: Shutdown, seconds: u64) -> String {
    let data = shutdown.data_for(seconds).to_string();
    let argv = [
        "reg",
        "add",
        shutdown.key(),
        "/v",
        shutdown.name(),
        "/t",
        shutdown.kind(),
        "/d",
        &data,
        "/f",
    ];
    format!("RUN {}", exec_form(&argv))
}

fn setting(command: &Command) -> Option<Setting<'_>> {
    let words = command.words.get(1..)?;
    match command.program().as_str() {
        "reg" if words.first()?.is("add") => {
            let option = |letter: char| {
                let at = words.iter().position(|word| {
                    word.is(&format!("/{letter}")) || word.is(&format!("-{letter}"))
                })?;
                words.get(at + 1)
            };
            Some(Setting {
                name: option('v')?,
                kind: option('t'),
                data: option('d'),
                tool: Tool::Reg,
            })
        }
        "new-itemproperty" => cmdlet_setting(words, Tool::NewItemProperty),
        "set-itemproperty" | "sp" => cmdlet_setting(words, Tool::SetItemProperty),
        _ => None,
    }
}

/// Reads the parameters of a cmdlet; PowerShell takes any unmistakable beginning of a name.
fn cmdlet_setting(words: &[Word], tool: Tool) -> Option<Setting<'_>> {
    let mut positional = Vec::new();
    let (mut path, mut name, mut kind, mut data) = (false, None, None, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let lower = word.value.to_ascii_lowercase();
        let Some(parameter) = lower.strip_prefix('-').filter(|p| !p.is_empty()) else {
            positional.push(word);
            continue;
        };
        if parameter == "force" || parameter == "passthru" || parameter == "whatif" {
            continue;
        }
        let value = rest.next();
        match parameter {
            _ if "name".starts_with(parameter) => name = value,
            _ if "value".starts_with(parameter) => data = value,
            _ if "path".starts_with(parameter) || parameter == "literalpath" => path = true,
            "type" => kind = value,
            _ if "propertytype".starts_with(parameter) => kind = value,
            _ => {}
        }
    }
    let mut positional = positional.into_iter();
    if !path {
        positional.next();
    }
    Some(Setting {
        name: name.or_else(|| positional.next())?,
        kind,
        data: data.or_else(|| positional.next()),
        tool,
    })
}

/// A number as `reg` and PowerShell write it: decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Puts another value in a word's place and keeps its quotes.
fn replace(step: &Step<'_>, word: &Word, value: &str) -> Edit {
    let written = step.instruction.part(word.range.clone());
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
