//! Parsed instructions of a Dockerfile, before variables are expanded.

use wincimg_common::diagnose::closest_match;
use wincimg_common::untrusted::UntrustedText;
use wincimg_recipe::{CommandForm, check_keyword, check_trigger};
use wincimg_windows::access::AccessAccount;
use wincimg_windows::quoting::Escape;

use super::source::{Dockerfile, HereDocument, Instruction, is_space};

/// A parsed instruction.
#[derive(Debug, Clone)]
pub(crate) struct ParsedInstruction {
    /// First line, from 1.
    pub(crate) line: usize,
    /// Source text on one line.
    pub(crate) text: String,
    /// Start of each line in the arguments, and its number.
    lines: Vec<(usize, usize)>,
    /// Kind and arguments.
    pub(crate) kind: InstructionKind,
}

/// Kind of an instruction, with its arguments.
#[derive(Debug, Clone)]
pub enum InstructionKind {
    /// `FROM`.
    From(FromInstruction),
    /// `COPY` or `ADD`.
    Copy(CopyInstruction),
    /// `ARG`.
    Arg(Vec<(String, Option<String>)>),
    /// `CMD`.
    Cmd(CommandForm),
    /// `ENTRYPOINT`.
    Entrypoint(CommandForm),
    /// `ENV`.
    Env(Vec<(String, String)>),
    /// `EXPOSE`.
    Expose(String),
    /// `HEALTHCHECK`.
    Health(Health),
    /// `LABEL`.
    Label(Vec<(String, String)>),
    /// `MAINTAINER`.
    Maintainer(String),
    /// `ONBUILD` with its trigger.
    OnBuild(String),
    /// `RUN`.
    Run(RunInstruction),
    /// `SHELL`.
    Shell(Vec<String>),
    /// `STOPSIGNAL`.
    StopSignal(String),
    /// `USER`.
    User(String),
    /// `VOLUME`.
    Volume(Vec<String>),
    /// `WORKDIR`.
    Workdir(String),
}

/// Arguments of `FROM`.
#[derive(Debug, Clone)]
pub struct FromInstruction {
    /// Image or stage.
    pub(crate) image: String,
    /// Name of the new stage.
    pub(crate) name: Option<String>,
    /// Platform.
    pub(crate) platform: Option<String>,
}

/// Arguments of `COPY` and `ADD`.
#[derive(Debug, Clone)]
pub struct CopyInstruction {
    /// True for `ADD`.
    pub(crate) is_add: bool,
    /// Source stage or image.
    pub(crate) from: Option<String>,
    /// Source paths.
    pub(crate) sources: Vec<String>,
    /// Here-documents, copied as files.
    pub(crate) documents: Vec<HereDocument>,
    /// Destination.
    pub(crate) target: String,
    /// Patterns of `--exclude`.
    pub(crate) excluded: Vec<String>,
    /// Digest of `--checksum`.
    pub(crate) checksum: Option<String>,
    /// Value of `--unpack`.
    pub(crate) unpack: Option<bool>,
    /// True if it has any flag: a Docker daemon on Windows knows few.
    pub(crate) has_flags: bool,
}

/// Arguments of `RUN`.
#[derive(Debug, Clone)]
pub struct RunInstruction {
    /// Command.
    pub(crate) program: CommandForm,
    /// Flags without their dashes; all of them are for `BuildKit`.
    pub(crate) flags: Vec<String>,
    /// True if the command is a here-document, which is for `BuildKit`, too.
    pub(crate) is_document: bool,
}

/// Health check; times are in nanoseconds.
#[derive(Debug, Clone)]
pub struct Health {
    /// Command; `None` for `NONE`.
    pub(crate) test: Option<CommandForm>,
    /// Flags, by their names in an image configuration.
    pub(crate) times: Vec<(&'static str, i64)>,
}

/// Reason why an instruction is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstructionError {
    /// Message.
    pub(crate) message: String,
    /// True if it is valid for Linux.
    pub(crate) is_of_windows: bool,
    /// Hint.
    pub(crate) hint: Option<String>,
}

impl InstructionError {
    fn of_windows(message: String) -> Self {
        Self {
            message,
            is_of_windows: true,
            hint: None,
        }
    }
}

impl From<String> for InstructionError {
    fn from(message: String) -> Self {
        Self {
            message,
            is_of_windows: false,
            hint: None,
        }
    }
}

impl ParsedInstruction {
    /// Parses an instruction.
    pub(crate) fn read(
        instruction: &Instruction,
        escape: Escape,
    ) -> Result<Self, InstructionError> {
        Ok(Self {
            line: instruction.lines().0 + 1,
            text: instruction.full_text().trim().to_owned(),
            lines: instruction.line_starts(),
            kind: InstructionKind::read(instruction, escape)?,
        })
    }

    /// A trigger of another image, at a line of this file.
    pub(crate) fn from_trigger(kind: InstructionKind, line: usize, text: String) -> Self {
        Self {
            line,
            text,
            lines: Vec::new(),
            kind,
        }
    }

    /// Line number, from 1, and text of the line with a byte of the arguments.
    pub(crate) fn line_at(&self, at: usize) -> (usize, String) {
        let InstructionKind::Run(RunInstruction {
            program: CommandForm::Shell(text),
            ..
        }) = &self.kind
        else {
            return (self.line, self.text.clone());
        };
        let index = self.lines.partition_point(|(start, _)| *start <= at);
        let Some((start, line)) = index.checked_sub(1).and_then(|index| self.lines.get(index))
        else {
            return (self.line, self.text.clone());
        };
        let end = self.lines.get(index).map_or(text.len(), |(end, _)| *end);
        match text.get(*start..end) {
            Some(own) if *line != self.line => (*line, own.trim().to_owned()),
            _ => (self.line, self.text.clone()),
        }
    }
}

/// Parses an `ONBUILD` trigger. Like the daemon, it uses `\` as the escape character.
pub fn read_trigger(text: &str) -> Result<InstructionKind, String> {
    let file = Dockerfile::read(text);
    let [instruction] = file.instructions.as_slice() else {
        return Err("expected one instruction".to_owned());
    };
    InstructionKind::read(instruction, Escape::Backslash).map_err(|error| error.message)
}

impl InstructionKind {
    fn read(instruction: &Instruction, escape: Escape) -> Result<Self, InstructionError> {
        if let Some(name) = &instruction.open_document {
            let message = format!("the here-document {name} is not closed: expected a line {name}");
            return Err(message.into());
        }
        if let Some(trigger) = instruction.trigger() {
            let first = trigger.split_whitespace().next().unwrap_or_default();
            let keyword = if first.eq_ignore_ascii_case("ONBUILD") {
                "ONBUILD"
            } else {
                instruction.keyword.as_str()
            };
            check_trigger(keyword)?;
            // Builders parse it here, too; what only Windows refuses is for the later build.
            if let Err(error) = Self::read_own(instruction, escape)
                && !error.is_of_windows
            {
                return Err(error);
            }
            let documents = instruction.documents.iter();
            let documents: String = documents
                .flat_map(|document| ["\n", document.text.as_str(), document.name.as_str()])
                .collect();
            return Ok(Self::OnBuild(format!("{trigger}{documents}")));
        }
        Self::read_own(instruction, escape)
    }

    /// Reads an instruction, or the one that `ONBUILD` keeps for later builds.
    pub(crate) fn read_own(
        instruction: &Instruction,
        escape: Escape,
    ) -> Result<Self, InstructionError> {
        let keyword = instruction.keyword.as_str();
        check_keyword(keyword)?;
        let text = instruction.text();
        let is_list = matches!(keyword, "CMD" | "ENTRYPOINT");
        if text.is_empty() && !is_list {
            return Err(format!("{keyword} requires arguments").into());
        }
        let flags = Flags::read(instruction)?;
        Ok(match keyword {
            "FROM" => Self::From(from(text, &flags)?),
            "COPY" | "ADD" => Self::Copy(copy(instruction, &flags)?),
            "ARG" => Self::Arg(arguments(&words(text, escape))?),
            "CMD" => Self::Cmd(program(text)?),
            "ENTRYPOINT" => Self::Entrypoint(program(text)?),
            "ENV" => Self::Env(pairs(keyword, text, escape)?),
            "EXPOSE" => Self::Expose(text.to_owned()),
            "HEALTHCHECK" => Self::Health(health(instruction, &flags)?),
            "LABEL" => Self::Label(pairs(keyword, text, escape)?),
            "MAINTAINER" => Self::Maintainer(text.to_owned()),
            "RUN" => Self::Run(RunInstruction {
                program: run(instruction)?,
                flags: flags.texts(),
                is_document: instruction.is_here_document(),
            }),
            "SHELL" => match array(text)? {
                Some(words) if !words.is_empty() => Self::Shell(words),
                _ => {
                    let message = "SHELL takes an array: SHELL [\"powershell\", \"-Command\"]";
                    return Err(message.to_owned().into());
                }
            },
            "STOPSIGNAL" => Self::StopSignal(text.to_owned()),
            "USER" => Self::User(text.to_owned()),
            "VOLUME" => match list(text)? {
                folders if folders.is_empty() => {
                    return Err("VOLUME requires arguments".to_owned().into());
                }
                folders => Self::Volume(folders),
            },
            _ => Self::Workdir(text.to_owned()),
        })
    }
}

struct Flags<'a>(Vec<(&'a str, Option<&'a str>)>);

impl<'a> Flags<'a> {
    fn read(instruction: &'a Instruction) -> Result<Self, String> {
        let keyword = instruction.keyword.as_str();
        let allowed: &[&str] = match keyword {
            "FROM" => &["platform"],
            "COPY" => &["from", "link", "exclude", "chown", "chmod", "parents"],
            "ADD" => &[
                "link", "exclude", "chown", "chmod", "checksum", "unpack", "keep-git-dir",
            ],
            "HEALTHCHECK" => &[
                "interval", "timeout", "start-period", "start-interval", "retries",
            ],
            "RUN" => &["mount", "network", "security", "device"],
            _ => &[],
        };
        let flags: Vec<_> = instruction.flags().collect();
        let mut seen = Vec::new();
        for (name, _) in &flags {
            if allowed.contains(name) {
                let is_list = matches!(*name, "exclude" | "mount" | "device");
                if seen.contains(name) && !is_list {
                    return Err(format!("duplicate flag --{name}"));
                }
                seen.push(*name);
                continue;
            }
            let meant = closest_match(name, allowed.iter().copied());
            let meant =
                meant.map_or_else(String::new, |meant| format!(": did you mean --{meant}?"));
            return Err(format!(
                "{keyword} does not support the flag --{name}{meant}"
            ));
        }
        Ok(Self(flags))
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let flags = self.0.iter().filter(move |(known, _)| *known == name);
        flags.map(|(_, value)| value.unwrap_or_default())
    }

    fn texts(&self) -> Vec<String> {
        let text = |(name, value): &(&str, Option<&str>)| match value {
            Some(value) => format!("{name}={value}"),
            None => (*name).to_owned(),
        };
        self.0.iter().map(text).collect()
    }

    fn value(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.all(name).last() {
            Some("") => Err(format!("--{name} requires a value")),
            value => Ok(value),
        }
    }

    /// Reads a boolean flag, with or without a value.
    fn is_set(&self, name: &str) -> Result<Option<bool>, String> {
        match self.all(name).last() {
            None => Ok(None),
            Some("" | "true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(other) => Err(format!(
                "invalid value {other:?} of --{name}: expected true or false"
            )),
        }
    }
}

fn from(text: &str, flags: &Flags<'_>) -> Result<FromInstruction, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let name = match words.as_slice() {
        [_] => None,
        [_, keyword, name] if keyword.eq_ignore_ascii_case("as") => Some(name.to_ascii_lowercase()),
        _ => return Err("expected FROM IMAGE or FROM IMAGE AS NAME".to_owned()),
    };
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c))
    };
    if let Some(name) = name.as_deref().filter(|name| !is_name(name)) {
        return Err(format!(
            "invalid name {name:?} of a stage: expected a letter, then letters, digits and - _ ."
        ));
    }
    Ok(FromInstruction {
        image: words[0].to_owned(),
        name,
        platform: flags.value("platform")?.map(str::to_owned),
    })
}

fn copy(instruction: &Instruction, flags: &Flags<'_>) -> Result<CopyInstruction, InstructionError> {
    let (keyword, text) = (instruction.keyword.as_str(), instruction.text());
    for (flag, why) in [
        ("chown", "Windows containers have no Unix owners"),
        ("chmod", "Windows has no Unix file modes"),
        ("parents", "copy each folder by its own name"),
        ("keep-git-dir", "Git repositories are unsupported"),
    ] {
        if flags.all(flag).next().is_some() && flags.is_set(flag) != Ok(Some(false)) {
            let message = format!("{keyword} --{flag} is unsupported: {why}");
            let owner = flags.all("chown").last();
            let target = list(text).ok().and_then(|mut words| words.pop());
            let grant = owner.and_then(|owner| grant_line(owner, &target?));
            return Err(InstructionError {
                hint: (owner.is_some() || flag == "chmod").then(|| match grant {
                    Some(line) => format!("remove the flag, and add below: RUN {line}"),
                    None => "remove the flag".to_owned(),
                }),
                ..InstructionError::of_windows(message)
            });
        }
    }
    flags.is_set("link")?;
    let mut words = list(text)?;
    let target = words.pop().filter(|_| !words.is_empty()).ok_or_else(|| {
        format!("{keyword} requires at least two arguments: sources and a destination")
    })?;
    if !instruction.documents.is_empty() {
        if target.starts_with("<<") {
            let message = format!("{keyword} has a here-document in place of its destination");
            return Err(message.into());
        }
        words.retain(|word| !word.starts_with("<<"));
    }
    Ok(CopyInstruction {
        is_add: keyword == "ADD",
        from: flags.value("from")?.map(str::to_owned),
        sources: words,
        documents: instruction.documents.clone(),
        target,
        excluded: flags.all("exclude").map(str::to_owned).collect(),
        checksum: flags.value("checksum")?.map(str::to_owned),
        unpack: flags.is_set("unpack")?,
        has_flags: !flags.0.is_empty(),
    })
}

/// A program in exec form, as `PowerShell` evaluates the parentheses of rights, also in double quotes.
/// None for the root of the drive, and for variables, which are not expanded there.
fn grant_line(owner: &str, target: &str) -> Option<String> {
    let name = owner.split(':').next().unwrap_or_default();
    let name = match name.parse::<AccessAccount>() {
        Ok(_) => name,
        Err(_) => "ContainerUser",
    };
    let names: Vec<&str> = target
        .split(['/', '\\'])
        .filter(|it| !it.is_empty())
        .collect();
    let path = names.join("\\");
    if path.is_empty() || path.ends_with(':') || path.contains('$') {
        return None;
    }
    let root = if target.starts_with(['/', '\\']) {
        "C:\\"
    } else {
        ""
    };
    let (path, rights) = (format!("{root}{path}"), format!("{name}:(OI)(CI)M"));
    serde_json::to_string(&["icacls", path.as_str(), "/grant", rights.as_str()]).ok()
}

/// Arguments as a JSON array, if they are one.
fn array(text: &str) -> Result<Option<Vec<String>>, String> {
    if !text.starts_with('[') {
        return Ok(None);
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    let Some(Ok(value)) = values.next() else {
        return Ok(None);
    };
    if !text[values.byte_offset()..].trim().is_empty() {
        return Err("unexpected text after the array".to_owned());
    }
    serde_json::from_value(value)
        .map(Some)
        .map_err(|_| "the array contains a value that is not a string".to_owned())
}

/// Arguments as a JSON array, or split at spaces.
fn list(text: &str) -> Result<Vec<String>, String> {
    let words = text.split_whitespace();
    Ok(array(text)?.unwrap_or_else(|| words.map(str::to_owned).collect()))
}

fn program(text: &str) -> Result<CommandForm, String> {
    Ok(match array(text)? {
        Some(words) => CommandForm::Exec(words),
        None => CommandForm::Shell(text.to_owned()),
    })
}

/// Program of `RUN`. A here-document alone is the script, as for `BuildKit`.
fn run(instruction: &Instruction) -> Result<CommandForm, InstructionError> {
    match instruction.documents.as_slice() {
        [] => Ok(program(instruction.text())?),
        [document] if instruction.is_here_document() => Ok(CommandForm::Shell(
            document.text.trim_end_matches(['\r', '\n']).to_owned(),
        )),
        _ => Err(InstructionError::of_windows(
            "a here-document as a program's input requires a Linux shell".to_owned(),
        )),
    }
}

fn health(instruction: &Instruction, flags: &Flags<'_>) -> Result<Health, String> {
    let text = instruction.text();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    if word.eq_ignore_ascii_case("none") {
        if rest.is_empty() && flags.0.is_empty() {
            return Ok(Health {
                test: None,
                times: Vec::new(),
            });
        }
        return Err("HEALTHCHECK NONE takes no arguments".to_owned());
    }
    if !word.eq_ignore_ascii_case("cmd") || rest.is_empty() {
        return Err("expected HEALTHCHECK NONE or HEALTHCHECK CMD with a command".to_owned());
    }
    // With text after it, an array is a command for the shell.
    let is_array = serde_json::from_str::<Vec<serde_json::Value>>(rest).is_ok();
    let command = match is_array.then(|| program(rest)).transpose()? {
        Some(CommandForm::Exec(words)) if words.is_empty() => {
            return Err("HEALTHCHECK CMD requires a command".to_owned());
        }
        Some(command) => command,
        None => CommandForm::Shell(rest.to_owned()),
    };
    let mut times = Vec::new();
    for (flag, key) in [
        ("interval", "Interval"),
        ("timeout", "Timeout"),
        ("start-period", "StartPeriod"),
        ("start-interval", "StartInterval"),
    ] {
        let Some(value) = flags.value(flag)? else {
            continue;
        };
        let time = duration(value).ok_or_else(|| {
            format!("invalid time {value:?} of --{flag}: expected 30s, 1m30s or 500ms")
        })?;
        if time > 0 {
            times.push((key, time));
        }
    }
    if let Some(value) = flags.value("retries")? {
        let count = value.parse::<u32>().map_err(|_| {
            format!("invalid number {value:?} of --retries: expected a whole number")
        })?;
        if count > 0 {
            times.push(("Retries", count.into()));
        }
    }
    Ok(Health {
        test: Some(command),
        times,
    })
}

/// Parses Go's duration format, in nanoseconds; Docker's minimum is zero or a millisecond.
fn duration(text: &str) -> Option<i64> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3600e9),
    ];
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == &rest[..end])?;
        sum += number * unit;
        rest = &rest[end..];
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the value is checked against i64's bounds"
    )]
    let whole = (!text.is_empty() && sum < 9e18).then_some(sum as i64)?;
    (whole == 0 || whole >= 1_000_000).then_some(whole)
}

/// Parses `A=b "C D"=e`, or `A the rest`.
fn pairs(keyword: &str, text: &str, escape: Escape) -> Result<Vec<(String, String)>, String> {
    let words = words(text, escape);
    if !words.first().is_some_and(|word| word.contains('=')) {
        let (name, value) = text.split_once(is_space).ok_or_else(|| {
            format!("{keyword} requires a name and a value: {keyword} NAME=VALUE")
        })?;
        let value = value.trim_start_matches(is_space);
        return Ok(vec![(name.to_owned(), value.to_owned())]);
    }
    let pairs = words.iter().map(|word| match word.split_once('=') {
        Some(("", _)) => Err(no_name(keyword, word)),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None if matches!(word.as_str(), "\\" | "`") => Err(format!(
            "a line of this file continues with {}, and not with {word}",
            escape.character()
        )),
        None => Err(format!(
            "\"{}\" has no =: write {keyword} NAME=VALUE, with double quotes around a value with spaces",
            UntrustedText(word)
        )),
    });
    pairs.collect()
}

fn no_name(keyword: &str, word: &str) -> String {
    format!("{keyword} has no name before the = of {word:?}: write NAME=VALUE without spaces")
}

fn arguments(words: &[String]) -> Result<Vec<(String, Option<String>)>, String> {
    let pairs = words.iter().map(|word| match word.split_once('=') {
        Some(("", _)) => Err(no_name("ARG", word)),
        Some((name, value)) => Ok((name.to_owned(), Some(value.to_owned()))),
        None => Ok((word.clone(), None)),
    });
    pairs.collect()
}

/// Splits an instruction into words; quotes and escapes are kept.
pub(crate) fn words(text: &str, escape: Escape) -> Vec<String> {
    let escape = escape.character();
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if quote.is_none() && c.is_whitespace() {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        if c == escape && quote != Some('\'') {
            // A trailing escape character is ignored.
            if let Some(next) = rest.next() {
                word.push(c);
                word.push(next);
            }
            continue;
        }
        match quote {
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
        word.push(c);
    }
    words.extend(word.filter(|word| !word.is_empty()));
    words
}
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(text: &str) -> Result<InstructionKind, String> {
        let file = Dockerfile::read(text);
        let step = ParsedInstruction::read(&file.instructions[0], file.escape);
        step.map(|step| step.kind).map_err(|error| error.message)
    }

    #[test]
    fn times_are_read_as_go_writes_them() {
        for (text, expected) in [
            ("30s", Some(30_000_000_000)),
            ("1m30s", Some(90_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            ("500ms", Some(500_000_000)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("1us", None),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("", None),
            ("99999999999h", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn words_keep_their_quotes_until_they_are_expanded() {
        assert_eq!(
            words(r#"A="b c" D=e\ f 'g h'"#, Escape::Backslash),
            [r#"A="b c""#, r"D=e\ f", "'g h'"]
        );
        assert_eq!(words("a b\\", Escape::Backslash), ["a", "b"]);
        assert_eq!(words(r"P=C:\a\ Q=b", Escape::Backtick), [r"P=C:\a\", "Q=b"]);
    }

    #[test]
    fn what_is_no_instruction_says_what_it_should_be() {
        for (text, printed) in [
            ("COPPY a b", "did you mean COPY?"),
            ("COPY a", "at least two"),
            ("COPY --chown=a b c", "--chown is unsupported"),
            ("COPY --chmod=755 b c", "--chmod is unsupported"),
            ("COPY --form=x b c", "did you mean --from?"),
            ("COPY [\"a\", 1]", "not a string"),
            ("FROM a b", "FROM IMAGE AS NAME"),
            ("FROM a AS B!", "invalid name"),
            ("ENV A", "NAME=VALUE"),
            ("ENV A=b c", "no ="),
            ("SHELL cmd", "array"),
            ("WORKDIR", "requires arguments"),
            ("ONBUILD FROM x", "does not support FROM"),
            ("ONBUILD ONBUILD RUN x", "does not support ONBUILD"),
            ("ONBUILD ENV A", "NAME=VALUE"),
            ("ENV A\u{a0}b", "NAME=VALUE"),
            ("VOLUME []", "requires arguments"),
            ("HEALTHCHECK CMD [\"a\", 1]", "not a string"),
            (
                "HEALTHCHECK --retries=1 --retries=2 CMD x",
                "duplicate flag --retries",
            ),
            ("HEALTHCHECK --interval=x CMD y", "invalid time"),
            ("HEALTHCHECK x", "HEALTHCHECK NONE"),
            ("COPY <<EOF /x\na\n", "is not closed"),
            ("CMD [\"a\"] b", "after the array"),
        ] {
            let error = kind(text).map(|_| ()).unwrap_err();
            assert!(error.contains(printed), "{text}: {error}");
        }
    }

    #[test]
    fn flags_have_no_quotes_and_some_may_be_repeated() {
        let text = r#"COPY --from="a" --exclude='b c' --exclude=d\ e /f /g"#;
        let Ok(InstructionKind::Copy(copy)) = kind(text) else {
            panic!("{text}");
        };
        assert_eq!(copy.from.as_deref(), Some("a"));
        assert_eq!(copy.excluded, ["b c", "d e"]);
        assert_eq!(
            (copy.sources.concat().as_str(), copy.target.as_str()),
            ("/f", "/g")
        );
        assert!(kind("HEALTHCHECK --interval=\"30s\" CMD x").is_ok());
    }

    #[test]
    fn an_array_that_is_not_json_is_a_line_for_the_shell() {
        assert!(matches!(
            kind("CMD ['a']"),
            Ok(InstructionKind::Cmd(CommandForm::Shell(_)))
        ));
        assert!(matches!(
            kind("RUN [\"a\"]"),
            Ok(InstructionKind::Run(RunInstruction {
                program: CommandForm::Exec(_),
                is_document: false,
                ..
            }))
        ));
    }

    proptest! {
        #[test]
        fn no_instruction_panics(
            keyword in prop::sample::select(wincimg_recipe::KEYWORDS.to_vec()), text in r"[ -~]{0,32}"
        ) {
            let file = Dockerfile::read(&format!("{keyword} {text}")).instructions.len();
            prop_assert!(file <= 1);
            let _ = kind(&format!("{keyword} {text}"));
        }
    }
}
