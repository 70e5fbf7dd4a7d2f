//! Lexer of Dockerfiles like the daemon's, which maps every character to its line.
//!
//! The published parsers stop at the first error and are stricter about JSON and line ends than the
//! daemon. A linter needs the opposite: any text gives instructions, joined exactly as by Moby.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};

use wincimg_recipe::KEYWORDS;
use wincimg_windows::quoting::Escape;

/// Returns true if the text has a `FROM`: without it, it is not a Dockerfile.
pub fn has_from(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    let keyword = first.and_then(|line| line.split_ascii_whitespace().next());
    if keyword.is_some_and(|keyword| keyword.eq_ignore_ascii_case("FROM")) {
        return true;
    }
    let file = Dockerfile::read(text);
    file.instructions.iter().any(|it| it.keyword == "FROM")
}

/// Instructions and lines of a file.
#[derive(Debug)]
pub(crate) struct Dockerfile<'a> {
    /// Escape character, by the directive.
    pub(crate) escape: Escape,
    /// Line, from 0, and message of a directive for which Docker refuses the file.
    pub(crate) directive_problem: Option<(usize, &'static str)>,
    /// Instructions in order.
    pub(crate) instructions: Vec<Instruction>,
    text: &'a str,
    lower: OnceCell<String>,
    /// Whether it contains a text in lower case, by the text.
    mentioned: RefCell<HashMap<&'static str, bool>>,
    /// Positions of what may be the name of a variable, in the order of their texts.
    names: OnceCell<Vec<usize>>,
    has_continuation: OnceCell<bool>,
    lines: Vec<&'a str>,
}

/// Maximum length of a name in bytes that [`Dockerfile::uses`] finds.
const LONGEST_NAME: usize = 256;

/// An instruction with its lines joined.
#[derive(Debug)]
pub(crate) struct Instruction {
    /// Keyword in upper case, such as `RUN`.
    pub(crate) keyword: String,
    /// Here-documents after its lines; they are not arguments.
    pub(crate) documents: Vec<HereDocument>,
    /// Name of an unclosed here-document.
    pub(crate) open_document: Option<String>,
    /// Last line of the here-document whose only line is the text, from 0.
    inlined_to: Option<usize>,
    /// Flags before the arguments, without quotes.
    flags: Vec<(String, Option<String>)>,
    joined: String,
    arguments: usize,
    pieces: Vec<TextSpan>,
}

/// A here-document: lines after its instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HereDocument {
    /// Delimiter.
    pub(crate) name: String,
    /// Lines with their line ends.
    pub(crate) text: String,
    /// True if variables are expanded: the delimiter has no quotes.
    pub(crate) expands: bool,
}

/// Position of a part of the joined text in the file; lines count from 0.
#[derive(Debug, Clone, Copy)]
struct TextSpan {
    at: usize,
    line: usize,
    column: usize,
}

/// A line that continues on the next one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineContinuation<'a> {
    /// Line, from 0.
    pub(crate) line: usize,
    /// Text before the escape character.
    pub(crate) text: &'a str,
    /// Next line that is not a comment, and its number; `None` at the end of the file.
    pub(crate) next: Option<(usize, &'a str)>,
    /// Line that it is joined with, which is not empty either.
    pub(crate) joined: Option<&'a str>,
}

impl<'a> Dockerfile<'a> {
    /// Reads any text; errors are found in the evaluation.
    pub(crate) fn read(source: &'a str) -> Self {
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        let lines: Vec<&str> = source
            .split('\n')
            .map(|line| line.trim_end_matches('\r'))
            .collect();
        let (escape, directive_problem) = escape_directive(&lines);
        let mut file = Self {
            escape,
            directive_problem,
            instructions: Vec::new(),
            text: source,
            lower: OnceCell::new(),
            mentioned: RefCell::default(),
            names: OnceCell::new(),
            has_continuation: OnceCell::new(),
            lines,
        };
        let mut next = 0;
        while next < file.lines.len() {
            next = file.read_instruction(next);
        }
        file
    }

    /// Reads an instruction and returns the next line.
    fn read_instruction(&mut self, first: usize) -> usize {
        let start = self.lines[first].trim_start();
        if start.is_empty() || start.starts_with('#') {
            return first + 1;
        }
        let mut joined = String::new();
        let mut pieces = Vec::new();
        let mut index = first;
        let mut text = start;
        loop {
            let (kept, continues) = without_continuation(text, self.escape);
            pieces.push(TextSpan {
                at: joined.len(),
                line: index,
                column: self.lines[index].len() - text.len(),
            });
            joined.push_str(kept);
            index += 1;
            if !continues {
                break;
            }
            let Some(next) = self.next_to_join(index) else {
                index = self.lines.len();
                break;
            };
            index = next;
            text = self.lines[index];
        }
        let mut instruction = Instruction::new(joined, pieces);
        index = self.read_here_documents(&mut instruction, index);
        self.instructions.push(instruction);
        index
    }

    /// Next line to join; like the daemon, it skips empty lines and comments.
    fn next_to_join(&self, from: usize) -> Option<usize> {
        (from..self.lines.len()).find(|index| {
            let line = self.lines[*index].trim_start();
            !line.is_empty() && !line.starts_with('#')
        })
    }

    /// Reads the here-documents of an instruction, if all are closed, and returns the next line.
    fn read_here_documents(&self, instruction: &mut Instruction, from: usize) -> usize {
        let may_have_one = matches!(instruction.keyword.as_str(), "RUN" | "COPY" | "ADD");
        if !may_have_one || instruction.exec_form().is_some() {
            return from;
        }
        let mut documents = Vec::new();
        let mut next = from;
        for opened in here_documents(instruction.text()) {
            let lines = self.lines[next..].iter().map(|line| {
                if opened.tabs {
                    line.trim_start_matches('\t')
                } else {
                    *line
                }
            });
            let Some(count) = lines.clone().position(|line| line == opened.name) else {
                instruction.open_document = Some(opened.name.to_owned());
                return from;
            };
            documents.push(HereDocument {
                name: opened.name.to_owned(),
                text: lines.take(count).flat_map(|line| [line, "\n"]).collect(),
                expands: opened.expands,
            });
            next += count + 1;
        }
        instruction.documents = documents;
        next
    }

    /// Makes the only line of a here-document the text of its `RUN`: the shell gets it alike, but for
    /// double quotes, which `BuildKit` escapes.
    pub(crate) fn inline_here_documents(&mut self) {
        let runs = self
            .instructions
            .iter_mut()
            .filter(|it| it.keyword == "RUN");
        runs.for_each(|run| run.inline_here_document(&self.lines));
    }

    /// Lines of an instruction that continue on the next one.
    pub(crate) fn continuations(&self, instruction: &Instruction) -> Vec<LineContinuation<'_>> {
        instruction
            .own_pieces()
            .iter()
            .filter_map(|piece| {
                let (text, continues) = without_continuation(self.lines[piece.line], self.escape);
                let lines = self.lines.iter().copied().enumerate();
                continues.then(|| LineContinuation {
                    line: piece.line,
                    text,
                    next: lines
                        .skip(piece.line + 1)
                        .find(|(_, line)| !line.trim_start().starts_with('#')),
                    joined: self
                        .next_to_join(piece.line + 1)
                        .map(|line| self.lines[line]),
                })
            })
            .collect()
    }

    /// Returns true if the text above a line ends in a backtick, and no line continues at a backslash:
    /// the file is written for `# escape=` and a backtick, which it lacks.
    pub(crate) fn lacks_directive(&self, line: usize) -> bool {
        let mut above = self.lines[..line].iter().rev();
        let above = above.find(|above| !above.trim().is_empty());
        self.escape == Escape::Backslash
            && above.is_some_and(|above| above.trim_end().ends_with('`'))
            && !self.has_continuation()
    }

    /// Returns true if a line of any instruction continues.
    fn has_continuation(&self) -> bool {
        let read = || self.instructions.iter().any(|it| it.own_pieces().len() > 1);
        *self.has_continuation.get_or_init(read)
    }

    /// All lines, without their ends.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().copied()
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        self.text
    }

    /// The whole text in lower case, made once.
    pub(crate) fn lower_text(&self) -> &str {
        self.lower.get_or_init(|| self.text.to_ascii_lowercase())
    }

    /// Returns true if the file contains one of these texts in lower case. Each is searched for once, as
    /// every line may ask.
    pub(crate) fn mentions(&self, parts: &[&'static str]) -> bool {
        let mut mentioned = self.mentioned.borrow_mut();
        parts.iter().any(|part| {
            let search = || self.lower_text().contains(*part);
            *mentioned.entry(*part).or_insert_with(search)
        })
    }

    /// Returns true if a text follows a sign of a variable anywhere in the file, in any syntax.
    pub(crate) fn uses(&self, name: &str) -> bool {
        let bytes = self.text.as_bytes();
        let name_at = |at: usize| &bytes[at..bytes.len().min(at + LONGEST_NAME)];
        let names = self.names.get_or_init(|| {
            let signs = self.text.match_indices(['$', '{', '%', ':']);
            let mut names: Vec<usize> = signs.map(|(at, _)| at + 1).collect();
            names.sort_unstable_by_key(|at| name_at(*at));
            names
        });
        let first = names.partition_point(|at| name_at(*at) < name.as_bytes());
        let found = names.get(first).map(|at| name_at(*at));
        found.is_some_and(|found| found.starts_with(name.as_bytes()))
    }

    /// Line by index, from 0.
    pub(crate) fn line(&self, index: usize) -> &str {
        self.lines[index]
    }

    pub(crate) fn lines_of(&self, range: RangeInclusive<usize>) -> String {
        self.lines[range].join("\n")
    }
}

impl Instruction {
    fn new(joined: String, pieces: Vec<TextSpan>) -> Self {
        let mut keyword;
        let mut arguments = 0;
        loop {
            let rest = &joined[arguments..];
            let end = rest.find(is_space).unwrap_or(rest.len());
            keyword = rest[..end].to_ascii_uppercase();
            arguments += end;
            arguments += joined[arguments..].len() - joined[arguments..].trim_start().len();
            if keyword != "ONBUILD" || arguments == joined.len() {
                break;
            }
        }
        let mut flags = Vec::new();
        while let Some(rest) = joined[arguments..].strip_prefix("--") {
            let (flag, end) = read_flag(rest);
            flags.push(match flag.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (flag, None),
            });
            arguments += "--".len() + end;
            arguments += joined[arguments..].len() - joined[arguments..].trim_start().len();
        }
        Self {
            keyword,
            documents: Vec::new(),
            open_document: None,
            inlined_to: None,
            flags,
            joined,
            arguments,
            pieces,
        }
    }

    fn inline_here_document(&mut self, lines: &[&str]) {
        let ([document], true) = (self.documents.as_slice(), self.is_here_document()) else {
            return;
        };
        let mut own = document.text.lines();
        let text = own.next().unwrap_or_default().trim().to_owned();
        let is_only = own.all(|line| line.trim().is_empty());
        if !is_only || text.is_empty() || text.starts_with('#') || text.contains('"') {
            return;
        }
        let line = self.lines().1 + 1;
        self.inlined_to = Some(line + document.text.lines().count());
        self.joined.truncate(self.arguments);
        self.joined.push_str(&text);
        self.pieces.retain(|piece| piece.at < self.arguments);
        self.pieces.push(TextSpan {
            at: self.arguments,
            line,
            column: lines[line].len() - lines[line].trim_start().len(),
        });
        self.documents.clear();
    }

    /// The parts on its own lines.
    fn own_pieces(&self) -> &[TextSpan] {
        &self.pieces[..self.pieces.len() - usize::from(self.inlined_to.is_some())]
    }

    /// Returns true if the instruction has a here-document.
    pub(crate) fn has_here_document(&self) -> bool {
        !self.documents.is_empty() || self.inlined_to.is_some()
    }

    /// Keyword and flags in the source.
    pub(crate) fn head(&self) -> &str {
        &self.joined[..self.arguments]
    }

    /// Flags before the arguments, with their values.
    pub(crate) fn flags(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let flags = self.flags.iter();
        flags.map(|(name, value)| (name.as_str(), value.as_deref()))
    }

    /// Trigger of an `ONBUILD`.
    pub(crate) fn trigger(&self) -> Option<&str> {
        let (word, rest) = self.joined.split_once(is_space)?;
        word.eq_ignore_ascii_case("ONBUILD").then(|| rest.trim())
    }

    /// Text after the keyword and its flags.
    pub(crate) fn text(&self) -> &str {
        self.joined[self.arguments..].trim_end()
    }

    /// Value of a flag before the arguments.
    pub(crate) fn flag(&self, name: &str) -> Option<&str> {
        let mut flags = self.flags();
        flags.find_map(|(known, value)| value.filter(|_| known == name))
    }

    /// Command of a `HEALTHCHECK`.
    pub(crate) fn health_command(&self) -> Option<&str> {
        let (word, command) = self.text().split_once(is_space)?;
        word.eq_ignore_ascii_case("CMD")
            .then(|| command.trim_start())
    }

    /// Start of [`Self::text`] in the joined text.
    pub(crate) fn start(&self) -> usize {
        self.arguments
    }

    /// Range of the joined text.
    pub(crate) fn part(&self, range: Range<usize>) -> &str {
        &self.joined[range]
    }

    /// Line of the file, from 0, of a character of the joined text.
    pub(crate) fn line_of(&self, position: usize) -> usize {
        self.piece_of(position).line
    }

    /// Start of each line in [`Self::text`] or in the here-document that replaces it, and its
    /// number from 1.
    pub(crate) fn line_starts(&self) -> Vec<(usize, usize)> {
        if let ([document], true) = (self.documents.as_slice(), self.is_here_document()) {
            let first = self.lines().1 + 2;
            let mut at = 0;
            let lines = document.text.split_inclusive('\n').enumerate();
            return lines
                .map(|(index, line)| {
                    at += line.len();
                    (at - line.len(), first + index)
                })
                .collect();
        }
        let pieces = self.pieces.iter();
        pieces
            .map(|piece| (piece.at.saturating_sub(self.arguments), piece.line + 1))
            .collect()
    }

    /// Returns true if a here-document is the only argument.
    pub(crate) fn is_here_document(&self) -> bool {
        let text = self.text();
        !self.documents.is_empty() && text.starts_with("<<") && !text.contains(is_space)
    }

    /// Arguments as a JSON array of strings, if they are one. Like the daemon, this ignores text
    /// after the first JSON value.
    pub(crate) fn exec_form(&self) -> Option<Vec<String>> {
        json_array(self.text())
    }

    /// Returns true if the arguments were intended as JSON; PowerShell's types have brackets too.
    pub(crate) fn looks_like_json(&self) -> bool {
        let inside = self.text().strip_prefix('[').map(str::trim_start);
        let is_array = |inside: &str| inside.is_empty() || inside.starts_with(['"', ']']);
        inside.is_some_and(is_array) || self.text().starts_with("{\"")
    }

    /// Joined text of the instruction.
    pub(crate) fn full_text(&self) -> &str {
        &self.joined
    }

    /// First and last line, from 0.
    pub(crate) fn lines(&self) -> (usize, usize) {
        let first = self.pieces.first().map_or(0, |piece| piece.line);
        let last = self.pieces.last().map_or(0, |piece| piece.line);
        (first, self.inlined_to.unwrap_or(last))
    }

    fn piece_of(&self, position: usize) -> TextSpan {
        let after = self.pieces.partition_point(|piece| piece.at <= position);
        self.pieces[after.saturating_sub(1)]
    }

    /// Line and columns of a range, if it is on one line.
    pub(crate) fn place(&self, range: &Range<usize>) -> Option<(usize, Range<usize>)> {
        let last = range.end.max(range.start).saturating_sub(1);
        let first = if range.is_empty() { last } else { range.start };
        let piece = self.piece_of(first);
        if self.piece_of(last).at != piece.at {
            return None;
        }
        let column = |position: usize| position - piece.at + piece.column;
        Some((piece.line, column(range.start)..column(range.end)))
    }
}

/// The strings of an array with which a text begins.
pub(crate) fn json_array(text: &str) -> Option<Vec<String>> {
    let array = Some(text).filter(|text| text.starts_with('['))?;
    let mut values = serde_json::Deserializer::from_str(array).into_iter();
    values.next()?.ok()
}

/// Returns true for an instruction's keyword in upper case.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Returns true if a line begins with a keyword.
pub(crate) fn begins_instruction(line: &str) -> bool {
    line.split_once(is_space)
        .is_some_and(|(word, _)| KEYWORDS.iter().any(|name| name.eq_ignore_ascii_case(word)))
}

/// Reads a flag like the builders, whose escape character is always `\` here: its text without quotes,
/// and its end.
fn read_flag(text: &str) -> (String, usize) {
    let mut flag = String::new();
    let mut quote = None;
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        match quote {
            None if is_space(c) => return (flag, at),
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ if c == '\\' => flag.extend(rest.next().map(|(_, escaped)| escaped)),
            _ => flag.push(c),
        }
    }
    (flag, text.len())
}

pub(crate) fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\u{b}' | '\u{c}' | '\r' | ' ')
}

/// Directives are at the top, one a line; anything else ends them.
fn escape_directive(lines: &[&str]) -> (Escape, Option<(usize, &'static str)>) {
    let mut escape = Escape::default();
    let mut seen = Vec::new();
    for (line, text) in lines.iter().enumerate() {
        let Some((key, value)) = text
            .trim_start()
            .strip_prefix('#')
            .and_then(|comment| comment.split_once('='))
        else {
            break;
        };
        let key = key.trim().to_ascii_lowercase();
        let known = match (key.as_str(), value.trim()) {
            ("escape", _) if seen.contains(&key) => Err("duplicate escape directive"),
            ("syntax", _) if seen.contains(&key) => Err("duplicate syntax directive"),
            ("check", _) if seen.contains(&key) => Err("duplicate check directive"),
            ("escape", "`") => Ok(Escape::Backtick),
            ("escape", "\\") => Ok(Escape::Backslash),
            ("escape", _) => Err("invalid escape character: expected ` or \\"),
            ("syntax" | "check", _) => Ok(escape),
            _ => break,
        };
        match known {
            Ok(known) => escape = known,
            Err(what) => return (escape, Some((line, what))),
        }
        seen.push(key);
    }
    (escape, None)
}

/// The line without a trailing escape character, and true if it had one. A doubled one does not
/// continue the line.
fn without_continuation(line: &str, escape: Escape) -> (&str, bool) {
    let body = line.trim_end_matches([' ', '\t']);
    match body.strip_suffix(escape.character()) {
        Some(text) if !text.ends_with(escape.character()) => (text, true),
        _ => (line, false),
    }
}

struct OpenHereDocument<'a> {
    /// Delimiter.
    name: &'a str,
    /// True if leading tabs are removed.
    tabs: bool,
    expands: bool,
}

/// Here-documents that a line opens.
fn here_documents(text: &str) -> Vec<OpenHereDocument<'_>> {
    text.split_whitespace()
        .filter_map(|word| {
            let (_, name) = word
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .split_at_checked(2)
                .filter(|(operator, _)| *operator == "<<")?;
            let quoted = name.strip_prefix('-').unwrap_or(name);
            let tabs = quoted.len() < name.len();
            let name = quoted.trim_matches(['"', '\'']);
            let plain = name
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
            (plain && !name.is_empty()).then_some(OpenHereDocument {
                name,
                tabs,
                expands: name == quoted,
            })
        })
        .collect()
}
