//! Loose parser for commands and words of an instruction: it finds `reg add` and its arguments in a
//! JSON array, after a shell, or in a nested script.
//!
//! Quotes of any kind only group words.

use std::ops::Range;

use super::correction::Edit;
use super::shell::BaseShell;
use super::stage::LintStep;
use crate::source::Instruction;

/// A word, and its range in the instruction's joined text with quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) value: String,
    pub(super) range: Range<usize>,
}

impl Word {
    pub(super) fn eq_ignore_case(&self, name: &str) -> bool {
        self.value.eq_ignore_ascii_case(name)
    }
}

/// A program's name without folder and `.exe`, in lower case.
pub(super) fn program_name(path: &str) -> String {
    let file = path.rsplit(['\\', '/']).next().unwrap_or_default();
    let file = file.trim_start_matches('@').to_ascii_lowercase();
    file.strip_suffix(".exe").unwrap_or(&file).to_owned()
}

/// A program or cmdlet and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LintCommand {
    pub(super) words: Vec<Word>,
    /// True if the words are from a JSON array.
    is_json: bool,
    /// True if a quote is open at the end, so that nothing can be appended.
    is_open: bool,
    /// True if the input is another command or a file.
    pub(super) has_input: bool,
}

impl LintCommand {
    /// The program's name without folder and `.exe`, in lower case.
    pub(super) fn program(&self) -> String {
        program_name(self.words.first().map_or("", |word| word.value.as_str()))
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grammar {
    Cmd,
    PowerShell,
}

/// All commands of a `RUN`, `CMD` or `ENTRYPOINT`, also in nested scripts.
pub(super) fn commands(step: &LintStep<'_>) -> Vec<LintCommand> {
    let instruction = step.instruction;
    let is_command = matches!(instruction.keyword.as_str(), "RUN" | "CMD" | "ENTRYPOINT");
    if !is_command || instruction.has_here_document() {
        return Vec::new();
    }
    let mut search = Search {
        instruction,
        depth: 0,
        found: Vec::new(),
    };
    if let Some(elements) = instruction.exec_form() {
        search.add(LintCommand {
            words: json_words(instruction, elements),
            is_json: true,
            is_open: false,
            has_input: false,
        });
    } else {
        let start = instruction.start();
        let grammar = match step.shell {
            BaseShell::PowerShell => Grammar::PowerShell,
            BaseShell::Cmd | BaseShell::Other | BaseShell::Unknown => Grammar::Cmd,
        };
        let range = start..start + instruction.text().len();
        search.read_script(without_wrapper(instruction, range), grammar);
    }
    search.found
}

/// Maximum depth of nested scripts.
const DEPTH: usize = 4;

/// Commands of an instruction so far, and the depth of nested scripts.
struct Search<'a> {
    instruction: &'a Instruction,
    depth: usize,
    found: Vec<LintCommand>,
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
                self.add(LintCommand { words, ..command });
            } else {
                self.read_script(range_of(self.instruction, words), grammar);
            }
            self.depth -= 1;
        }
        self.found.push(command);
    }
}

/// Words of a shell's script: after `-Command` or `/c`, or from the first argument that is not an
/// option.
fn script_of(command: &LintCommand) -> Option<(Grammar, &[Word])> {
    let grammar = match command.program().as_str() {
        "cmd" => Grammar::Cmd,
        "powershell" | "pwsh" => Grammar::PowerShell,
        _ => return None,
    };
    let arguments = command.words.get(1..)?;
    let is_command_option = |word: &Word| {
        ["-command", "-c", "/c", "/k"]
            .iter()
            .any(|name| word.eq_ignore_case(name))
    };
    let first = match arguments.iter().position(is_command_option) {
        Some(option) => option + 1,
        None => arguments
            .iter()
            .position(|word| !word.value.starts_with(['-', '/']))?,
    };
    let script = arguments.get(first..).filter(|script| !script.is_empty())?;
    Some((grammar, script))
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
    let is_quote = |c: char| matches!(c, '"' | '\'');
    let opening = text.len() - text.trim_start_matches(is_quote).len();
    let closing = text.len() - text.trim_end_matches(is_quote).len();
    if opening + closing < text.len() {
        range.start + opening..range.end - closing
    } else {
        range
    }
}

/// Strings of a JSON array, with their ranges.
fn json_words(instruction: &Instruction, elements: Vec<String>) -> Vec<Word> {
    let text = instruction.text();
    let start = instruction.start();
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
        });
        from = close + 1;
    }
    words
}

impl Search<'_> {
    /// Reads the words of a script, and ends a command at each unquoted operator.
    fn read_script(&mut self, range: Range<usize>, grammar: Grammar) {
        let text = self.instruction.part(range.clone());
        let mut reader = ScriptReader {
            grammar,
            words: Vec::new(),
            word: None,
            quote: None,
            has_input: false,
        };
        let mut characters = text.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            let position = range.start + at;
            let next = characters.peek().map(|(_, next)| *next);
            match c {
                '\\' if next == Some('"') => {}
                '^' if grammar == Grammar::Cmd && reader.quote.is_none() => {}
                '"' | '\'' if reader.is_quote(c) => reader.toggle(c, position),
                _ if reader.quote.is_some() => reader.push(c, position),
                _ if c.is_whitespace() => reader.end_word(),
                _ if reader.is_operator(c) => {
                    // The number of a redirected stream is not an argument.
                    if c == '>'
                        && reader
                            .word
                            .as_ref()
                            .is_some_and(|word| word.value.len() == 1)
                    {
                        reader.word = None;
                    }
                    reader.has_input |= c == '<';
                    self.found_by(&mut reader);
                    let before = text[..at].chars().next_back();
                    reader.has_input = c == '|' && before != Some('|') && next != Some('|');
                }
                _ => reader.push(c, position),
            }
        }
        self.found_by(&mut reader);
    }

    fn found_by(&mut self, reader: &mut ScriptReader) {
        if let Some(command) = reader.end_command() {
            self.add(command);
        }
    }
}

struct ScriptReader {
    grammar: Grammar,
    words: Vec<Word>,
    word: Option<Word>,
    quote: Option<char>,
    has_input: bool,
}

impl ScriptReader {
    fn is_quote(&self, c: char) -> bool {
        match self.quote {
            Some(open) => open == c,
            None => c == '"' || self.grammar == Grammar::PowerShell,
        }
    }

    fn is_operator(&self, c: char) -> bool {
        match self.grammar {
            Grammar::Cmd => "&|<>()".contains(c),
            Grammar::PowerShell => ";|&<>(){}".contains(c),
        }
    }

    fn toggle(&mut self, quote: char, position: usize) {
        self.quote = match self.quote {
            Some(_) => None,
            None => Some(quote),
        };
        // A word may consist of quotes only.
        self.word_at(position).range.end = position + 1;
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
            value: String::new(),
            range: position..position,
        })
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) -> Option<LintCommand> {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        (!words.is_empty()).then_some(LintCommand {
            words,
            is_json: false,
            is_open: self.quote.is_some(),
            has_input: self.has_input,
        })
    }
}
