//! A script on PowerShell's command line as it arrives and as its author meant it.

use wincimg_scripts::script;
use wincimg_scripts::script::ParsedScript;
use wincimg_windows::quoting::powershell;

use crate::lint::prelude::*;
use crate::lint::quotes::line::{QuotedSpan, SourceLine};
use crate::lint::quotes::line_wrap;

/// A script as PowerShell gets it and as it was intended.
pub(in crate::lint::quotes) struct ScriptInterpretation<'a> {
    line: &'a SourceLine,
    /// Parts that were intended to be quoted.
    parts: Vec<QuotedSpan>,
    pub(super) meant: String,
    meant_script: ParsedScript,
}

/// Parts on the same lines whose quotes change the script's meaning.
pub(in crate::lint::quotes) struct QuoteProblem {
    /// Line of the file, from 0.
    pub(in crate::lint::quotes) line: usize,
    pub(super) parts: Vec<QuotedSpan>,
    /// The script with quotes only around these parts.
    wanted: String,
}

/// Maximum number of line groups that are checked one by one.
const GROUPS: usize = 60;

impl<'a> ScriptInterpretation<'a> {
    /// Parses both, and returns their problems; `None` without one.
    pub(in crate::lint::quotes) fn misread(
        line: &'a SourceLine,
        step: &LintStep<'_>,
    ) -> Option<(Self, Vec<QuoteProblem>)> {
        let reading = Self::parse(line)?;
        let problems = reading.problems(step);
        (!problems.is_empty()).then_some((reading, problems))
    }

    /// Parses both; `None` if they are equal or the intention is unclear.
    fn parse(line: &'a SourceLine) -> Option<Self> {
        let (all, is_closed) = line.parts();
        if all.is_empty() && is_closed {
            return None;
        }
        if let Some(pairs) = line.pairs() {
            return Self::meaning(line, pairs, None);
        }
        if !is_closed {
            return None;
        }
        let end = line.text.trim_end().len();
        let (first, last) = (all.first()?, all.last()?);
        let is_wrapped = first.open.at == 0 && last.close.at + 1 == end;
        if is_wrapped && all.len() == 1 {
            return None;
        }
        let mut parts = outside_joined_words(line, &all);
        parts.retain(|part| is_intended(line, *part));
        Self::meaning(line, parts, None).or_else(|| {
            if !is_wrapped {
                return None;
            }
            let inner = inner_parts(line, &all)?;
            Self::meaning(line, inner, Some((0, end - 1)))
        })
    }

    /// The script with quotes around these parts, without other quotes and the wrapper.
    fn meaning(
        line: &'a SourceLine,
        parts: Vec<QuotedSpan>,
        wrapper: Option<(usize, usize)>,
    ) -> Option<Self> {
        if parts.is_empty() {
            return None;
        }
        let meant = with_quotes(&line.text, &parts, wrapper);
        let meant_script = script::read(&meant);
        (meant_script.is_sound() && !meant_script.has_lone_string).then_some(Self {
            line,
            parts,
            meant,
            meant_script,
        })
    }

    fn is_as_meant(&self, other: &str) -> bool {
        script::read(other).is_equivalent(&self.meant_script)
    }

    /// Returns true if only the number of backslashes between names differs.
    fn is_the_same_path(&self, written: &str) -> bool {
        let single = |text: &str| {
            let mut text = text.to_owned();
            while text.contains("\\\\") {
                text = text.replace("\\\\", "\\");
            }
            script::read(&text)
        };
        written.contains(":\\") && single(written).is_equivalent(&single(&self.meant))
    }

    /// Groups of lines with another meaning than intended.
    fn problems(&self, step: &LintStep<'_>) -> Vec<QuoteProblem> {
        let written = powershell::script(&self.line.text);
        if self.is_as_meant(&written) || self.is_the_same_path(&written) {
            return Vec::new();
        }
        let start = step.instruction.start();
        let line_of = |at: usize| step.instruction.line_of(start + self.line.origin(at));
        let mut groups: Vec<Vec<QuotedSpan>> = Vec::new();
        let mut last = None;
        for part in &self.parts {
            match groups.last_mut() {
                Some(group) if last == Some(line_of(part.open.at)) => group.push(*part),
                _ => groups.push(vec![*part]),
            }
            last = Some(line_of(part.close.at));
        }
        if groups.len() > GROUPS {
            groups = vec![self.parts.clone()];
        }
        let mut problems: Vec<QuoteProblem> = groups
            .into_iter()
            .filter(|group| self.matters(group))
            .map(|group| self.problem(group, &line_of))
            .collect();
        if problems.is_empty() {
            problems.push(self.problem(self.parts.clone(), &line_of));
        }
        problems
    }

    fn problem(&self, parts: Vec<QuotedSpan>, line_of: &impl Fn(usize) -> usize) -> QuoteProblem {
        QuoteProblem {
            line: line_of(parts[0].open.at),
            wanted: with_quotes(&self.line.text, &parts, self.wrapper()),
            parts,
        }
    }

    /// Returns true if the script changes when a group, which is in order, loses its quotes.
    fn matters(&self, group: &[QuotedSpan]) -> bool {
        let is_in_group = |part: &&QuotedSpan| {
            let found = group.binary_search_by_key(&part.open.at, |it| it.open.at);
            found.is_ok()
        };
        let kept = self.parts.iter().filter(|part| !is_in_group(part));
        let kept: Vec<QuotedSpan> = kept.copied().collect();
        !self.is_as_meant(&with_quotes(&self.line.text, &kept, self.wrapper()))
    }

    /// Returns true for a text in single quotes that a program gets.
    pub(super) fn is_in_argument(&self, problem: &QuoteProblem) -> bool {
        let text = self.line.text.as_str();
        let mut literals = problem.parts.iter();
        literals.any(|part| {
            literal_start(text, part.open.at).is_some_and(|start| runs_program(&text[..start]))
        })
    }

    /// Returns true for a word that its quotes, where they arrive, divide in two; behind a dot the method
    /// of a text may follow.
    pub(super) fn divides_word(&self, problem: &QuoteProblem) -> bool {
        problem.parts.iter().any(|part| {
            let (_, _, after) = self.line.around(*part);
            begins_word(self.line, *part) && !after.starts_with('.')
        })
    }

    fn wrapper(&self) -> Option<(usize, usize)> {
        let end = self.line.text.trim_end().len();
        let is_kept = |at: usize| {
            self.parts
                .iter()
                .any(|part| part.open.at == at || part.close.at == at)
        };
        (self.line.text.starts_with('"') && !is_kept(0) && end > 0 && !is_kept(end - 1))
            .then(|| (0, end - 1))
    }

    /// Escapes the quotes of a problem, if that corrects it.
    pub(super) fn correction(
        &self,
        problem: &QuoteProblem,
        arrives: impl Fn(&[Edit], &str) -> bool,
    ) -> Option<Vec<Edit>> {
        let text = &self.line.text;
        let keeps_space = |part: &QuotedSpan| {
            let inside = &text[part.open.at..part.close.at];
            inside.contains("  ") || inside.contains('\t')
        };
        if problem.parts.iter().any(keeps_space) || self.divides_word(problem) {
            return None;
        }
        let edits = self.escaped(&problem.parts);
        arrives(&edits, &problem.wanted).then_some(edits)
    }

    fn escaped(&self, parts: &[QuotedSpan]) -> Vec<Edit> {
        let mut edits: Vec<Edit> = parts
            .iter()
            .flat_map(|part| [part.open, part.close])
            .map(|quote| {
                let start = self.line.origin(quote.at - quote.backslashes);
                let backslashes = "\\".repeat(quote.backslashes * 2 + 1);
                Edit::new(
                    start..self.line.origin(quote.at) + 1,
                    format!("{backslashes}\""),
                )
            })
            .collect();
        edits.sort_by_key(|edit| edit.range.start);
        edits
    }

    /// Escapes all quotes and quotes the whole text.
    pub(super) fn wrapped(&self, text: &str) -> Vec<Edit> {
        let mut edits = self.escaped(&self.parts);
        let trailing = text.len() - text.trim_end_matches('\\').len();
        line_wrap(&mut edits, text, trailing);
        edits
    }
}

/// The start of the string in single quotes that has a position.
pub(super) fn literal_start(text: &str, at: usize) -> Option<usize> {
    // Most have none, and each quote of a long line asks.
    if !text[..at].contains('\'') {
        return None;
    }
    let mut open: Option<(usize, char)> = None;
    let quotes = text[..at].char_indices();
    for (at, c) in quotes.filter(|(_, c)| matches!(c, '"' | '\'')) {
        match open {
            None => open = Some((at, c)),
            Some((_, quote)) if quote == c => open = None,
            Some(_) => {}
        }
    }
    open.filter(|(_, quote)| *quote == '\'').map(|(at, _)| at)
}

/// Returns true for a part with which a word begins that goes on behind it.
fn begins_word(line: &SourceLine, part: QuotedSpan) -> bool {
    let (before, _, after) = line.around(part);
    before.ends_with(char::is_whitespace)
        && after.starts_with(['\\', '/', '$', '.'])
        && literal_start(&line.text, part.open.at).is_none()
}

/// The parts outside of words that begin with a quote and go on behind it, as in `"$env:A"\b`: with its
/// quotes each is several arguments, and without them the one that was meant.
fn outside_joined_words(line: &SourceLine, all: &[QuotedSpan]) -> Vec<QuotedSpan> {
    let is_syntax = |c: char| c.is_whitespace() || ";|&<>(),@#'`".contains(c);
    let mut joined_end = None;
    let is_outside = |part: &QuotedSpan| {
        let (before, inside, _) = line.around(*part);
        let is_begun = joined_end.is_some_and(|end: usize| !before[end..].contains(is_syntax));
        let is_plain = !inside.is_empty() && !part.has_literal && !inside.contains(is_syntax);
        let is_joined = is_plain && (is_begun || begins_word(line, *part));
        joined_end = is_joined.then_some(part.close.at + 1);
        !is_joined
    };
    let mut parts = all.to_vec();
    parts.retain(is_outside);
    parts
}

/// Returns true if quotes are intended for the script, unlike those around escaped quotes, around a
/// path, or around a list in single quotes: their author expected them to be dropped.
fn is_intended(line: &SourceLine, part: QuotedSpan) -> bool {
    if part.has_literal {
        return false;
    }
    let (_, inside, _) = line.around(part);
    if is_list_of_texts(inside)
        || is_path_in_text(line, part)
        || is_plain_word(line, part)
        || is_operator_in_text(line, part)
        || is_whole_text(line, part)
        || is_dropped_again(line, part)
        || is_called_line(line, part)
    {
        return false;
    }
    let mut single = false;
    let mut has_single = false;
    for c in inside.chars() {
        if c == '\'' {
            single = !single;
            has_single = true;
        } else if c.is_whitespace() && !single {
            return true;
        }
    }
    !has_single || single
}

/// Returns true for a path without spaces in a text in single quotes, as of a line that is written to
/// a script: it means the same without quotes.
fn is_path_in_text(line: &SourceLine, part: QuotedSpan) -> bool {
    let (before, inside, after) = line.around(part);
    let ends = |c: char| c == '\'' || c.is_whitespace();
    let of_batch_file = inside.strip_prefix("%~dp0");
    let is_absolute = inside.get(1..).is_some_and(|rest| rest.starts_with(":\\"));
    let is_path = inside.len() > 3
        && (is_absolute || of_batch_file.is_some())
        && of_batch_file
            .unwrap_or(inside)
            .chars()
            .all(|c| c.is_alphanumeric() || "\\:._-".contains(c));
    // `(Test-Path "C:\a")`, unlike `($a -eq "C:\a")`.
    let is_argument = || {
        let command = before.split_whitespace().next_back().unwrap_or_default();
        after.starts_with(')') && script::is_cmdlet(command.trim_start_matches('('))
    };
    is_path
        && before.matches('\'').count() % 2 == 1
        && before.ends_with(ends)
        && (after.starts_with(ends) || is_argument())
}

/// Returns true for `'…?a=1"&"b=2'`: the quotes keep the operator from cmd, and are to be dropped.
fn is_operator_in_text(line: &SourceLine, part: QuotedSpan) -> bool {
    let (before, inside, after) = line.around(part);
    let is_operator = !inside.is_empty() && inside.chars().all(|c| "&|<>^".contains(c));
    is_operator
        && before.matches('\'').count() % 2 == 1
        && before.ends_with(|c: char| c.is_alphanumeric())
        && after.starts_with(|c: char| c.is_alphanumeric())
}

/// Parameters of cmdlets whose values have no quotes in them.
const NAME_PARAMETERS: [&str; 10] = [
    "-name", "-fullname", "-displayname", "-description", "-path", "-literalpath", "-destination",
    "-destinationpath", "-outfile", "-uri",
];

/// Programs that scripts start without their extension.
const PROGRAMS: [&str; 17] = [
    "appcmd", "bash", "choco", "cinst", "dotnet", "git", "icacls", "msbuild", "net", "netsh",
    "npm", "nuget", "python", "reg", "schtasks", "setx", "wmic",
];

/// Returns true if a script's last statement starts a program that reads quotes like the C runtime.
fn runs_program(before: &str) -> bool {
    let statement = last_statement(before);
    let command = match statement.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next(),
        None => statement.split_whitespace().next(),
    };
    let command = command.unwrap_or_default().trim_matches(['\'', '"']);
    let name = program_name(command);
    let is_program = has_extension(command, &["exe"]) || PROGRAMS.contains(&name.as_str());
    is_program && !matches!(name.as_str(), "cmd" | "msiexec")
}

/// Aliases of cmdlets, which take arguments.
const ALIASES: [&str; 12] = [
    "copy", "cp", "del", "echo", "iex", "iwr", "md", "mkdir", "move", "mv", "rd", "rm",
];

/// Returns true for a command with its arguments in quotes behind `&` or `.`: without the quotes it runs,
/// and with them it would be the name of a command.
fn is_called_line(line: &SourceLine, part: QuotedSpan) -> bool {
    let (before, inside, _) = line.around(part);
    let before = before.trim_end();
    let is_called = match before.strip_suffix('&') {
        Some(rest) => !rest.ends_with('&'),
        None => last_statement(before) == ".",
    };
    // Unlike `C:\Program Files\x.exe`.
    let is_command = |word: &str| {
        let is_alias = ALIASES.iter().any(|it| word.eq_ignore_ascii_case(it));
        is_alias || script::is_cmdlet(word) || has_extension(word, &["exe", "cmd", "bat", "ps1"])
    };
    let mut words = inside.split_whitespace();
    let first = words.next();
    is_called && first.is_some_and(is_command) && words.next().is_some()
}

fn last_statement(script: &str) -> &str {
    let statement = script.rsplit([';', '|', '{', '}', '(', ')', '&', '\n']);
    statement.map(str::trim_start).next().unwrap_or_default()
}

/// Returns true for quotes in single quotes that change nothing: Windows PowerShell drops those of an
/// argument without spaces again, and `echo` prints the same words.
fn is_dropped_again(line: &SourceLine, part: QuotedSpan) -> bool {
    let text = line.text.as_str();
    let Some(start) = literal_start(text, part.open.at) else {
        return false;
    };
    let literal = text[start + 1..].split('\'').next().unwrap_or_default();
    let is_printed = text[..part.open.at].ends_with("echo ");
    (is_printed || !literal.contains(char::is_whitespace)) && runs_program(&text[..start])
}

/// Returns true for `'"a b"'` as a name, a path or an argument of a program, and for folders that are
/// added to a list: they mean the same without the double quotes.
fn is_whole_text(line: &SourceLine, part: QuotedSpan) -> bool {
    let (before, inside, after) = line.around(part);
    let before = before.strip_suffix('\'').unwrap_or_default();
    let mut words = last_statement(before).split_whitespace();
    let command = words.next().unwrap_or_default().to_ascii_lowercase();
    let parameter = words.next_back().unwrap_or_default().to_ascii_lowercase();
    let is_name = script::is_cmdlet(&command) && NAME_PARAMETERS.contains(&parameter.as_str());
    let is_added = parameter == "+=" && inside.starts_with(';');
    (is_name || is_added || runs_program(before))
        && before.ends_with(' ')
        && before.matches('\'').count().is_multiple_of(2)
        && after.starts_with('\'')
        && !inside.ends_with('\\')
}

/// Parameters and operators whose value is a text.
const TAKE_TEXTS: [&str; 9] = [
    "-value", "-match", "-notmatch", "-notlike", "-replace", "-split", "-contains", "-notcontains",
    "-notin",
];

/// Returns true for a program, or the value of a parameter, that means the same without quotes.
fn is_plain_word(line: &SourceLine, part: QuotedSpan) -> bool {
    let (before, inside, after) = line.around(part);
    let before = before.trim_end();
    let is_plain = inside.starts_with(|c: char| c.is_alphanumeric())
        && inside
            .chars()
            .all(|c| c.is_alphanumeric() || "\\/:._-".contains(c));
    let parameter = before.rsplit(char::is_whitespace).next();
    let parameter = parameter.unwrap_or_default().to_ascii_lowercase();
    let is_value = parameter.starts_with('-')
        && parameter.len() > 5
        && !TAKE_TEXTS.contains(&parameter.as_str());
    let is_program = before.is_empty() && inside.contains(".ps1");
    is_plain
        && (is_value || is_program)
        && (after.is_empty() || after.starts_with(|c: char| c.is_whitespace() || c == ';'))
}

/// Returns true for a list such as `'-q', '-dir', 'C:\x'`.
fn is_list_of_texts(text: &str) -> bool {
    let pieces: Vec<&str> = text.split('\'').collect();
    let [first, inner @ .., last] = pieces.as_slice() else {
        return false;
    };
    let is_between = |piece: &&str| piece.trim() == ",";
    pieces.len() >= 5
        && pieces.len() % 2 == 1
        && first.trim().is_empty()
        && last.trim().is_empty()
        && inner.iter().skip(1).step_by(2).all(is_between)
}

/// The parts within outer quotes, where quotes open and close next to punctuation.
fn inner_parts(line: &SourceLine, all: &[QuotedSpan]) -> Option<Vec<QuotedSpan>> {
    let mut quotes: Vec<_> = all
        .iter()
        .flat_map(|part| [part.open, part.close])
        .collect();
    quotes.pop();
    quotes.remove(0);
    if all.iter().any(|part| part.has_literal) {
        return None;
    }
    quotes
        .chunks(2)
        .map(|pair| match *pair {
            [open, close] => {
                let before = line.text[..open.at].chars().next_back()?;
                let after = line.text[close.at + 1..].chars().next()?;
                let opens = before.is_whitespace() || "(=,{:[".contains(before);
                let closes = after.is_whitespace() || ";,)|}\".]".contains(after);
                (opens && closes && open.backslashes == 0).then_some(QuotedSpan::new(open, close))
            }
            _ => None,
        })
        .collect()
}

/// The script with quotes around these parts and with unescaped quotes, without all others.
fn with_quotes(text: &str, parts: &[QuotedSpan], wrapper: Option<(usize, usize)>) -> String {
    let mut kept: Vec<usize> = parts
        .iter()
        .flat_map(|part| [part.open.at, part.close.at])
        .collect();
    kept.sort_unstable();
    let mut out = String::with_capacity(text.len());
    let mut backslashes = 0;
    let mut quoted = false;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\\' {
            backslashes += 1;
            continue;
        }
        let is_quote = c == '"';
        if is_quote && kept.binary_search(&at).is_ok() {
            out.extend(std::iter::repeat_n('\\', backslashes));
            out.push('"');
            quoted = !quoted;
        } else if is_quote && wrapper.is_some_and(|(first, last)| at == first || at == last) {
            out.extend(std::iter::repeat_n('\\', backslashes));
        } else if is_quote {
            out.extend(std::iter::repeat_n('\\', backslashes / 2));
            let doubled = |next: &(usize, char)| quoted && next.1 == '"';
            if backslashes % 2 == 1 || characters.next_if(doubled).is_some() {
                out.push('"');
            } else {
                quoted = !quoted;
            }
        } else {
            out.extend(std::iter::repeat_n('\\', backslashes));
            out.push(c);
        }
        backslashes = 0;
    }
    out.extend(std::iter::repeat_n('\\', backslashes));
    out
}
