//! Loose parser for commands and words of an instruction: it finds `reg add` and its arguments in a
//! JSON array, after a shell, or in a nested script.
//!
//! Quotes of any kind only group words.

use std::ops::Range;

use super::TextExt;
use super::correction::Edit;
use super::quotes::takes_value;
use super::shell::BaseShell;
use super::stage::LintStep;
use super::statements::{PowerShellStatement, statements};
use crate::source::{Instruction, json_array};

/// A word, and its range in the instruction's joined text with quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) value: String,
    pub(super) range: Range<usize>,
    /// True if a part of it is in quotes.
    pub(super) is_quoted: bool,
}

impl Word {
    pub(super) fn eq_ignore_case(&self, name: &str) -> bool {
        self.value.eq_ignore_ascii_case(name)
    }

    /// Returns true if it is one of these in any case.
    pub(super) fn is_any_of(&self, names: &[&str]) -> bool {
        self.value.is_any_of(names)
    }

    /// True for an option of a program of Windows or another one.
    pub(super) fn is_option(&self) -> bool {
        self.value.starts_with(['/', '-'])
    }

    pub(super) fn start(&self) -> usize {
        self.range.start
    }
}

/// The last name of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or_default()
}

/// Returns true if a file name ends in one of these extensions, in any case.
pub(super) fn has_extension(file: &str, extensions: &[&str]) -> bool {
    let found = file.rsplit_once('.').map(|(_, extension)| extension);
    found.is_some_and(|found| extensions.iter().any(|it| found.eq_ignore_ascii_case(it)))
}

/// Returns true for a path that begins with a drive.
pub(super) fn has_drive(path: &str) -> bool {
    let mut start = path.chars();
    start.next().is_some_and(|c| c.is_ascii_alphabetic()) && start.next() == Some(':')
}

/// A program's name without folder and `.exe`, in lower case.
pub(super) fn program_name(path: &str) -> String {
    let file = file_name(path);
    let file = file.trim_start_matches('@').to_ascii_lowercase();
    file.strip_suffix(".exe").unwrap_or(&file).to_owned()
}

fn name_of(words: &[Word]) -> String {
    program_name(words.first().map_or("", |word| word.value.as_str()))
}

/// A program or cmdlet and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LintCommand {
    program: String,
    /// At least the program.
    pub(super) words: Vec<Word>,
    /// True if the words are from a JSON array.
    is_json: bool,
    /// True if a quote is open at the end, so that nothing can be appended.
    is_open: bool,
    /// True if the input is another command or a file.
    pub(super) has_input: bool,
    /// Files of its redirections.
    pub(super) files: Vec<Word>,
    /// Operator after it.
    pub(super) next: NextOperator,
    /// Grammar of the script that it is in.
    pub(super) grammar: Grammar,
}

/// Operator after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextOperator {
    /// The end of the script.
    End,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|`
    Pipe,
    /// Any other.
    Other,
}

impl LintCommand {
    /// The program's name without folder and `.exe`, in lower case.
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// Start of the program's name in the instruction's joined text.
    pub(super) fn start(&self) -> usize {
        self.words[0].start()
    }

    /// The words after the program.
    pub(super) fn arguments(&self) -> &[Word] {
        &self.words[1..]
    }

    /// The word at a place, of which 0 is the program's; empty without one.
    pub(super) fn word(&self, place: usize) -> &str {
        self.words.get(place).map_or("", |word| word.value.as_str())
    }

    /// True if it has a word of one of these names, in any case.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.words.iter().any(|word| word.is_any_of(names))
    }

    /// True if a test accepts one of the arguments in lower case.
    pub(super) fn any(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        let mut arguments = self.arguments().iter();
        arguments.any(|word| is_meant(&word.value.to_ascii_lowercase()))
    }

    /// The word behind the first of these options, in any case, and before a comment of PowerShell.
    pub(super) fn value_of(&self, options: &[&str]) -> Option<&Word> {
        let is_comment = |word: &Word| self.grammar.is_powershell() && word.value.starts_with('#');
        let mut words = self.arguments().iter().take_while(|word| !is_comment(word));
        words.find(|word| word.is_any_of(options))?;
        words.next()
    }

    /// The command that `start` or `Start-Process` launches.
    pub(super) fn started(&self) -> Option<Self> {
        if !matches!(self.program(), "start" | "start-process" | "saps") {
            return None;
        }
        let is_program = |word: &Word| !word.value.is_empty() && !word.is_option();
        let mut words = self.words.iter().enumerate().skip(1);
        // `start "title" program`
        let (at, _) =
            words.find(|(at, word)| is_program(word) && !(*at == 1 && self.is_title()))?;
        Some(self.at_word(at))
    }

    /// The command whose output PowerShell assigns to a variable.
    pub(super) fn assigned(&self) -> Option<Self> {
        let is_variable = self.grammar.is_powershell() && self.word(0).starts_with('$');
        let value = self.words.get(2)?;
        (is_variable && self.word(1) == "=" && !value.is_quoted).then(|| self.at_word(2))
    }

    fn at_word(&self, at: usize) -> Self {
        let words = self.words[at..].to_vec();
        Self {
            program: name_of(&words),
            words,
            ..self.clone()
        }
    }

    fn is_title(&self) -> bool {
        let title = self.words.get(1);
        let is_cmd = self.grammar == Grammar::Cmd;
        is_cmd && title.is_some_and(|word| word.is_quoted)
    }

    /// Edit that adds words after one of these, unless a quote is open.
    pub(super) fn add_after(&self, word: &Word, more: &[&str]) -> Option<Edit> {
        let text: String = more
            .iter()
            .map(|word| {
                if self.is_json {
                    format!(", \"{word}\"")
                } else {
                    format!(" {word}")
                }
            })
            .collect();
        (!self.is_open).then(|| Edit::after(word.range.end, text))
    }
}

/// Operators that separate commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Grammar {
    Cmd,
    PowerShell,
    /// PowerShell 6 and later.
    PowerShellCore,
    /// The words of a JSON array, which no shell reads.
    Exec,
    /// A script for a shell that is not known, read like one of cmd.
    #[default]
    Unknown,
}

impl Grammar {
    pub(super) fn is_powershell(self) -> bool {
        matches!(self, Self::PowerShell | Self::PowerShellCore)
    }

    /// True unless it is certainly not of cmd: for what fails in PowerShell, too.
    pub(super) fn may_be_cmd(self) -> bool {
        matches!(self, Self::Cmd | Self::Unknown)
    }
}

/// A script for a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LintScript {
    pub(super) grammar: Grammar,
    /// Range in the instruction's joined text.
    pub(super) range: Range<usize>,
    /// True if another script, or a JSON array, starts its shell.
    pub(super) is_nested: bool,
    /// Statements of a script of PowerShell.
    pub(super) statements: Vec<PowerShellStatement>,
}

/// Commands and scripts of an instruction.
#[derive(Debug, Default)]
pub(super) struct StepScripts {
    pub(super) commands: Vec<LintCommand>,
    pub(super) scripts: Vec<LintScript>,
    /// Ranges of the commands of PowerShell by their starts, each to the furthest end so far.
    powershell: Vec<Range<usize>>,
}

impl StepScripts {
    pub(super) fn read(step: &LintStep<'_>) -> Self {
        let instruction = step.instruction;
        if !instruction.documents.is_empty() {
            return Self::default();
        }
        let text = match instruction.keyword.as_str() {
            "RUN" | "CMD" | "ENTRYPOINT" => instruction.text(),
            "HEALTHCHECK" => instruction.health_command().unwrap_or_default(),
            _ => return Self::default(),
        };
        let start = instruction.start() + (instruction.text().len() - text.len());
        let mut search = Search {
            instruction,
            depth: 0,
            found: Self::default(),
        };
        if let Some(elements) = json_array(text) {
            let words = json_words(instruction, start, elements);
            if words.is_empty() || step.is_argument {
                return Self::default();
            }
            search.add(LintCommand {
                program: name_of(&words),
                words,
                is_json: true,
                is_open: false,
                has_input: false,
                files: Vec::new(),
                next: NextOperator::End,
                grammar: Grammar::Exec,
            });
        } else {
            let grammar = match step.shell {
                BaseShell::PowerShell if step.is_core => Grammar::PowerShellCore,
                BaseShell::PowerShell => Grammar::PowerShell,
                BaseShell::Cmd => Grammar::Cmd,
                BaseShell::Other | BaseShell::Unknown => Grammar::Unknown,
            };
            let range = without_wrapper(instruction, start..start + text.len());
            search.read_script(range, grammar);
        }
        let mut found = search.found;
        found.powershell = powershell_ranges(&found.commands);
        found
    }

    /// True for a position in a command of PowerShell.
    pub(super) fn is_in_powershell(&self, at: usize) -> bool {
        let after = self.powershell.partition_point(|it| it.start <= at);
        let before = self.powershell[..after].last();
        before.is_some_and(|it| at < it.end)
    }
}

fn powershell_ranges(commands: &[LintCommand]) -> Vec<Range<usize>> {
    let own = commands.iter().filter(|it| it.grammar.is_powershell());
    let ranges = own.filter_map(|it| {
        let (first, last) = it.words.first().zip(it.words.last())?;
        Some(first.range.start..last.range.end)
    });
    let mut ranges: Vec<Range<usize>> = ranges.collect();
    ranges.sort_unstable_by_key(|it| it.start);
    let mut end = 0;
    for range in &mut ranges {
        end = end.max(range.end);
        range.end = end;
    }
    ranges
}

/// Maximum depth of nested scripts.
const DEPTH: usize = 4;

/// Commands of an instruction so far, and the depth of nested scripts.
struct Search<'a> {
    instruction: &'a Instruction,
    depth: usize,
    found: StepScripts,
}

impl Search<'_> {
    /// Adds a command and, if it is a shell with a script, the script's commands.
    fn add(&mut self, command: LintCommand) {
        if self.depth < DEPTH
            && let Some((grammar, words)) = script_of(&command)
        {
            self.depth += 1;
            if command.is_json && words.len() > 1 {
                // In JSON, quotes and commas around words are not a part of the script.
                let words = words.to_vec();
                self.add(LintCommand {
                    program: name_of(&words),
                    words,
                    grammar,
                    files: Vec::new(),
                    ..command
                });
            } else {
                self.read_script(range_of(self.instruction, words), grammar);
            }
            self.depth -= 1;
        }
        self.found.commands.push(command);
    }
}

/// Words of a shell's script: after `-Command` or `/c`, or from the first argument that is not an
/// option.
pub(super) fn script_of(command: &LintCommand) -> Option<(Grammar, &[Word])> {
    let grammar = match command.program() {
        "cmd" => Grammar::Cmd,
        "powershell" => Grammar::PowerShell,
        "pwsh" => Grammar::PowerShellCore,
        _ => return None,
    };
    let arguments = command.words.get(1..)?;
    let mut script = arguments;
    while let [word, rest @ ..] = script {
        let option = word.value.strip_prefix(['-', '/']);
        let is_command = word.is_any_of(&["-command", "-c", "/c", "/k"]);
        let has_value = !is_command
            && grammar.is_powershell()
            && option.is_some_and(|option| takes_value(&option.to_ascii_lowercase()));
        script = match option {
            None => break,
            Some(_) if has_value => rest.get(1..)?,
            Some(_) => rest,
        };
        if is_command {
            break;
        }
    }
    let script = Some(script).filter(|script| !script.is_empty())?;
    Some((grammar, script))
}

/// The file that a PowerShell gets with `-File`, and its arguments.
pub(super) fn file_of(command: &LintCommand) -> Option<&[Word]> {
    let mut rest = command.arguments();
    loop {
        let (word, behind) = rest.split_first()?;
        // Behind other words, -f formats a text.
        let option = word.value.strip_prefix(['-', '/'])?.to_ascii_lowercase();
        rest = match option.as_str() {
            "file" | "f" => return Some(behind),
            "command" | "c" => return None,
            name if takes_value(name) => behind.get(1..)?,
            _ => behind,
        };
    }
}

/// Range of a script in these words, without outer quotes.
fn range_of(instruction: &Instruction, words: &[Word]) -> Range<usize> {
    match words {
        [] => 0..0,
        [only] => inside_quotes(instruction, only.range.clone()),
        [first, .., last] => first.range.start..last.range.end,
    }
}

/// Range of a text without its outer quotes.
fn without_wrapper(instruction: &Instruction, range: Range<usize>) -> Range<usize> {
    let text = instruction.part(range.clone());
    let wrapped = text.len() > 1
        && text.starts_with('"')
        && text.ends_with('"')
        && !text[1..text.len() - 1].starts_with('"')
        && text[1..].contains(' ')
        && text[1..text.len() - 1]
            .match_indices('"')
            .all(|(at, _)| text[..=at].ends_with('\\'));
    if wrapped {
        range.start + 1..range.end - 1
    } else {
        range
    }
}

fn inside_quotes(instruction: &Instruction, range: Range<usize>) -> Range<usize> {
    let text = instruction.part(range.clone());
    // Single quotes inside of double ones are of the script.
    let is_quote = |c: char| c == '"' || c == '\'' && text.starts_with('\'');
    let opening = text.len() - text.trim_start_matches(is_quote).len();
    let closing = text.len() - text.trim_end_matches(is_quote).len();
    if opening + closing < text.len() {
        range.start + opening..range.end - closing
    } else {
        range
    }
}

/// Strings of a JSON array, with their ranges.
fn json_words(instruction: &Instruction, start: usize, elements: Vec<String>) -> Vec<Word> {
    let text = &instruction.full_text()[start..];
    let mut from = 0;
    let mut words = Vec::new();
    for value in elements {
        let Some(open) = text[from..].find('"').map(|at| from + at) else {
            break;
        };
        let mut escaped = false;
        let end = text[open + 1..].find(|c| {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        let Some(close) = end.map(|at| open + 1 + at) else {
            break;
        };
        words.push(Word {
            value,
            range: start + open..start + close + 1,
            is_quoted: true,
        });
        from = close + 1;
    }
    words
}

impl Search<'_> {
    /// Reads the words of a script, and ends a command at each unquoted operator.
    fn read_script(&mut self, range: Range<usize>, grammar: Grammar) {
        let text = self.instruction.part(range.clone());
        self.found.scripts.push(LintScript {
            grammar,
            range: range.clone(),
            is_nested: self.depth > 0,
            statements: if grammar.is_powershell() {
                statements(text, range.start)
            } else {
                Vec::new()
            },
        });
        let mut reader = ScriptReader {
            grammar,
            ..ScriptReader::default()
        };
        let mut characters = text.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            let position = range.start + at;
            let next = characters.peek().map(|(_, next)| *next);
            match c {
                '\\' if next == Some('"') => {}
                '^' if !grammar.is_powershell() && reader.quote.is_none() => {
                    let escaped = |(_, next): &(usize, char)| "&|()<>".contains(*next);
                    if let Some((at, c)) = characters.next_if(escaped) {
                        reader.push(c, range.start + at);
                    }
                }
                '"' | '\'' if reader.is_quote(c) => reader.toggle(c, position),
                _ if reader.quote.is_some() => reader.push(c, position),
                _ if c.is_whitespace() => reader.end_word(),
                '<' | '>' => {
                    // The number of a redirected stream is not an argument.
                    let is_stream = |word: &Word| word.value.len() == 1;
                    reader.word = reader.word.take().filter(|word| !is_stream(word));
                    reader.end_word();
                    reader.has_input |= c == '<';
                    reader.is_redirected = true;
                    // `>>`, and `>&1`.
                    characters.next_if(|(_, next)| *next == c);
                    characters.next_if(|(_, next)| *next == '&');
                }
                '(' if !reader.opens_block() => reader.push(c, position),
                ')' if !reader.closes_block() => reader.push(c, position),
                _ if reader.is_operator(c) => {
                    let before = text[..at].chars().next_back();
                    let operator = match (c, next) {
                        ('&', Some('&')) => NextOperator::And,
                        ('|', Some('|')) => NextOperator::Or,
                        ('|', _) if before != Some('|') => NextOperator::Pipe,
                        _ => NextOperator::Other,
                    };
                    self.found_by(&mut reader, operator);
                    reader.has_input = operator == NextOperator::Pipe;
                }
                _ => reader.push(c, position),
            }
        }
        self.found_by(&mut reader, NextOperator::End);
    }

    fn found_by(&mut self, reader: &mut ScriptReader, next: NextOperator) {
        if let Some(command) = reader.end_command(next) {
            self.add(command);
        }
    }
}

#[derive(Default)]
struct ScriptReader {
    grammar: Grammar,
    words: Vec<Word>,
    /// Files of the redirections.
    files: Vec<Word>,
    word: Option<Word>,
    quote: Option<char>,
    has_input: bool,
    /// True if the next word is a redirection's file.
    is_redirected: bool,
    /// True between the braces of `${NAME}`.
    is_in_variable: bool,
    /// Open blocks of cmd.
    blocks: usize,
}

impl ScriptReader {
    fn is_quote(&self, c: char) -> bool {
        match self.quote {
            Some(open) => open == c,
            None => c == '"' || self.grammar.is_powershell(),
        }
    }

    fn is_operator(&mut self, c: char) -> bool {
        match self.grammar {
            Grammar::Cmd | Grammar::Exec | Grammar::Unknown => "&|()".contains(c),
            Grammar::PowerShell | Grammar::PowerShellCore => {
                ";|&(){}".contains(c) && !self.is_of_variable(c)
            }
        }
    }

    /// True for a character of PowerShell's `${NAME}`, such as `${env:ProgramFiles(x86)}`.
    fn is_of_variable(&mut self, c: char) -> bool {
        let word = self.word.as_ref().filter(|word| !word.is_quoted);
        let opens = c == '{' && word.is_some_and(|word| word.value.ends_with('$'));
        let is_inside = opens || self.is_in_variable;
        self.is_in_variable = is_inside && c != '}';
        is_inside
    }

    /// In cmd a parenthesis is one of a block only where a command begins.
    fn opens_block(&mut self) -> bool {
        if self.grammar.is_powershell() {
            return true;
        }
        let first = self
            .words
            .first()
            .map(|word| word.value.to_ascii_lowercase());
        let is_keyword =
            first.is_some_and(|first| matches!(first.as_str(), "if" | "for" | "else" | "do"));
        let opens = self.word.is_none() && (self.words.is_empty() || is_keyword);
        self.blocks += usize::from(opens);
        opens
    }

    fn closes_block(&mut self) -> bool {
        let closes = self.blocks > 0;
        self.blocks = self.blocks.saturating_sub(1);
        closes || self.grammar.is_powershell()
    }

    fn toggle(&mut self, quote: char, position: usize) {
        self.quote = match self.quote {
            Some(_) => None,
            None => Some(quote),
        };
        // A word may consist of quotes only.
        let word = self.word_at(position);
        word.range.end = position + 1;
        word.is_quoted = true;
    }

    fn push(&mut self, c: char, position: usize) {
        let word = self.word_at(position);
        // In a script within JSON or quotes, backslashes are doubled.
        if !(c == '\\' && word.value.ends_with('\\')) {
            word.value.push(c);
        }
        word.range.end = position + c.len_utf8();
    }

    fn word_at(&mut self, position: usize) -> &mut Word {
        self.word.get_or_insert_with(|| Word {
            value: String::with_capacity(16),
            range: position..position,
            is_quoted: false,
        })
    }

    fn end_word(&mut self) {
        self.is_in_variable = false;
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.is_redirected) {
            self.files.push(word);
        } else {
            self.words.push(word);
        }
    }

    fn end_command(&mut self, next: NextOperator) -> Option<LintCommand> {
        self.end_word();
        self.is_redirected = false;
        let words = std::mem::take(&mut self.words);
        let files = std::mem::take(&mut self.files);
        (!words.is_empty()).then(|| LintCommand {
            program: name_of(&words),
            words,
            is_json: false,
            is_open: self.quote.is_some(),
            has_input: self.has_input,
            files,
            next,
            grammar: self.grammar,
        })
    }
}
