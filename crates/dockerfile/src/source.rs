//! A Dockerfile as the daemon reads it, with the way back from every character to its line.
//!
//! The published parsers stop at the first mistake and read JSON and line ends more strictly
//! than the daemon does. A linter needs the opposite: any text gives instructions, joined exactly
//! as Moby joins them, so that what is found is what would happen.

use std::ops::{Range, RangeInclusive};

use wincimg_windows::quoting::Escape;

/// The instructions of a file, and its lines.
#[derive(Debug)]
pub struct Dockerfile<'a> {
    /// Its escape character, by the directive at its top.
    pub escape: Escape,
    /// What is wrong with the directives at its top.
    pub(crate) directive_problem: Option<DirectiveProblem>,
    /// The instructions, in their order.
    pub instructions: Vec<Instruction>,
    lines: Vec<&'a str>,
}

/// One instruction, its lines joined.
#[derive(Debug)]
pub struct Instruction {
    /// `RUN`, `FROM` and so on, in capitals.
    pub keyword: String,
    /// The here-documents that follow its lines; they are not arguments.
    pub documents: Vec<HereDocument>,
    /// The name of a here-document that does not end.
    pub(crate) open_document: Option<String>,
    joined: String,
    arguments: usize,
    pieces: Vec<TextSpan>,
}

/// A directive that Docker refuses, with the whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectiveProblem {
    /// Its line's index, from 0.
    pub line: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// Lines that stand in a file after the instruction that they are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HereDocument {
    /// The word that opens and ends it.
    pub name: String,
    /// Its lines, each with its end.
    pub text: String,
    /// True if variables in it are replaced: its name has no quotes.
    pub(crate) expands: bool,
}

/// Where a part of the joined text stands in the file; lines count from 0.
#[derive(Debug, Clone, Copy)]
struct TextSpan {
    at: usize,
    line: usize,
    column: usize,
}

/// A line that is joined with the next one.
#[derive(Debug, Clone, Copy)]
pub struct LineContinuation<'a> {
    /// Its index, from 0.
    pub line: usize,
    /// Its text before the escape character.
    pub text: &'a str,
    /// The line that it is joined with; none at the end of the file.
    pub next: Option<&'a str>,
}

/// What instructions begin with.
pub(super) const KEYWORDS: [&str; 18] = [
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "ONBUILD",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
];

impl<'a> Dockerfile<'a> {
    /// Reads any text; what is wrong with it is found out where it is carried out.
    pub fn read(source: &'a str) -> Self {
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
            lines,
        };
        let mut next = 0;
        while next < file.lines.len() {
            next = file.read_instruction(next);
        }
        file
    }

    /// Reads from a line on and returns the first line that was not read.
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

    /// The daemon skips empty lines and comments between joined lines.
    fn next_to_join(&self, from: usize) -> Option<usize> {
        (from..self.lines.len()).find(|index| {
            let line = self.lines[*index].trim_start();
            !line.is_empty() && !line.starts_with('#')
        })
    }

    /// Reads the here-documents of an instruction, if all of them end, and returns the line after them.
    fn read_here_documents(&self, instruction: &mut Instruction, from: usize) -> usize {
        let may_have_one = matches!(instruction.keyword.as_str(), "RUN" | "COPY" | "ADD");
        if !may_have_one || instruction.exec_form().is_some() {
            return from;
        }
        let mut documents = Vec::new();
        let mut next = from;
        for opened in here_documents(instruction.text()) {
            let unindented = |line: &str| {
                let line = if opened.tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                line.to_owned()
            };
            let lines = self.lines[next..].iter().map(|line| unindented(line));
            let lines: Vec<String> = lines.take_while(|line| line != opened.name).collect();
            let end = next + lines.len();
            if end == self.lines.len() {
                instruction.open_document = Some(opened.name.to_owned());
                return from;
            }
            documents.push(HereDocument {
                name: opened.name.to_owned(),
                text: lines.into_iter().map(|line| line + "\n").collect(),
                expands: opened.expands,
            });
            next = end + 1;
        }
        instruction.documents = documents;
        next
    }

    /// Every line that is joined with the next, inside instructions.
    pub fn continuations(&self, instruction: &Instruction) -> Vec<LineContinuation<'_>> {
        instruction
            .pieces
            .iter()
            .filter_map(|piece| {
                let (text, continues) = without_continuation(self.lines[piece.line], self.escape);
                continues.then(|| LineContinuation {
                    line: piece.line,
                    text,
                    next: self.lines.get(piece.line + 1).copied(),
                })
            })
            .collect()
    }

    /// A line, counted from 0.
    pub fn line(&self, index: usize) -> &str {
        self.lines[index]
    }

    /// Several lines.
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
        while joined[arguments..].starts_with("--") {
            let rest = &joined[arguments..];
            let end = rest.find(is_space).unwrap_or(rest.len());
            arguments += end;
            arguments += joined[arguments..].len() - joined[arguments..].trim_start().len();
        }
        Self {
            keyword,
            documents: Vec::new(),
            open_document: None,
            joined,
            arguments,
            pieces,
        }
    }

    /// Returns true if lines of a here-document follow.
    pub(crate) fn has_here_document(&self) -> bool {
        !self.documents.is_empty()
    }

    /// The keyword, and the flags behind it, as they stand there.
    pub fn head(&self) -> &str {
        &self.joined[..self.arguments]
    }

    /// The flags that stand before the arguments, each with its value if it has one.
    pub fn flags(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let words = self.head().split_whitespace();
        let flags = words.filter_map(|word| word.strip_prefix("--"));
        flags.map(|flag| match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        })
    }

    /// The instruction that an `ONBUILD` keeps for later.
    pub fn trigger(&self) -> Option<&str> {
        let (word, rest) = self.joined.split_once(is_space)?;
        word.eq_ignore_ascii_case("ONBUILD").then(|| rest.trim())
    }

    /// What stands after the keyword and its flags.
    pub fn text(&self) -> &str {
        self.joined[self.arguments..].trim_end()
    }

    /// The value of a flag that stands before the arguments.
    pub fn flag(&self, name: &str) -> Option<&str> {
        self.joined[..self.arguments]
            .split_whitespace()
            .find_map(|word| {
                word.strip_prefix("--")?
                    .strip_prefix(name)?
                    .strip_prefix('=')
            })
    }

    /// The command of a `HEALTHCHECK`.
    pub(crate) fn health_command(&self) -> Option<&str> {
        let (word, command) = self.text().split_once(is_space)?;
        word.eq_ignore_ascii_case("CMD")
            .then(|| command.trim_start())
    }

    /// Where [`Self::text`] begins, as edits count.
    pub fn start(&self) -> usize {
        self.arguments
    }

    /// A part of the joined text.
    pub fn part(&self, range: Range<usize>) -> &str {
        &self.joined[range]
    }

    /// The line of the file, from 0, that a character of the joined text stands on.
    pub(crate) fn line_of(&self, position: usize) -> usize {
        self.piece_of(position).line
    }

    /// Where the lines begin in [`Self::text`], or in the here-document that stands for it, and their
    /// numbers from 1.
    pub fn line_starts(&self) -> Vec<(usize, usize)> {
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

    /// Returns true if a here-document is all that follows the keyword.
    pub(crate) fn is_here_document(&self) -> bool {
        let text = self.text();
        !self.documents.is_empty() && text.starts_with("<<") && !text.contains(is_space)
    }

    /// The arguments as a JSON array of strings, if they are one. Like the daemon, this reads the
    /// first JSON value and does not look at what follows it.
    pub fn exec_form(&self) -> Option<Vec<String>> {
        let text = self.text();
        if !text.starts_with('[') {
            return None;
        }
        serde_json::Deserializer::from_str(text)
            .into_iter()
            .next()?
            .ok()
    }

    /// Whether its author thought of JSON, well-formed or not; PowerShell has types in brackets.
    pub(crate) fn looks_like_json(&self) -> bool {
        let inside = self.text().strip_prefix('[').map(str::trim_start);
        inside.is_some_and(|inside| inside.is_empty() || inside.starts_with(['"', ']']))
    }

    /// All of it, its lines joined.
    pub fn full_text(&self) -> &str {
        &self.joined
    }

    /// Its first and its last line, from 0.
    pub fn lines(&self) -> (usize, usize) {
        let first = self.pieces.first().map_or(0, |piece| piece.line);
        let last = self.pieces.last().map_or(0, |piece| piece.line);
        (first, last)
    }

    fn piece_of(&self, position: usize) -> TextSpan {
        let after = self.pieces.partition_point(|piece| piece.at <= position);
        self.pieces[after.saturating_sub(1)]
    }

    /// The line and the columns of a part, if it is on one line.
    pub fn place(&self, range: &Range<usize>) -> Option<(usize, Range<usize>)> {
        let last = range
            .end
            .saturating_sub(1)
            .max(range.start.saturating_sub(1));
        let first = if range.is_empty() { last } else { range.start };
        let piece = self.piece_of(first);
        if self.piece_of(last).at != piece.at {
            return None;
        }
        let column = |position: usize| position - piece.at + piece.column;
        Some((piece.line, column(range.start)..column(range.end)))
    }
}

/// Returns true if a line begins with an instruction's name.
pub(crate) fn begins_instruction(line: &str) -> bool {
    line.split_once(is_space)
        .is_some_and(|(word, _)| KEYWORDS.iter().any(|name| name.eq_ignore_ascii_case(word)))
}

fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\u{b}' | '\u{c}' | '\r' | ' ')
}

/// The directives stand at the very top, one a line; anything else ends them.
fn escape_directive(lines: &[&str]) -> (Escape, Option<DirectiveProblem>) {
    let mut escape = None;
    for (line, text) in lines.iter().enumerate() {
        let Some((key, value)) = text
            .trim_start()
            .strip_prefix('#')
            .and_then(|comment| comment.split_once('='))
        else {
            break;
        };
        let known = match (key.trim().to_ascii_lowercase().as_str(), value.trim()) {
            ("escape", "`") => Ok(Escape::Backtick),
            ("escape", "\\") => Ok(Escape::Backslash),
            ("escape", _) => Err("invalid escape character: expected ` or \\"),
            ("syntax" | "check", _) => continue,
            _ => break,
        };
        let known = known.and_then(|known| match escape.replace(known) {
            None => Ok(()),
            Some(_) => Err("duplicate escape directive"),
        });
        if let Err(what) = known {
            let problem = DirectiveProblem { line, what };
            return (escape.unwrap_or_default(), Some(problem));
        }
    }
    (escape.unwrap_or_default(), None)
}

/// A line without its joining character, and whether it had one. A doubled one does not join.
fn without_continuation(line: &str, escape: Escape) -> (&str, bool) {
    let body = line.trim_end_matches([' ', '\t']);
    match body.strip_suffix(escape.character()) {
        Some(text) if !text.ends_with(escape.character()) => (text, true),
        _ => (line, false),
    }
}

/// A here-document that a line opens.
struct OpenHereDocument<'a> {
    /// Its last line.
    name: &'a str,
    /// True if tabs before its lines go.
    tabs: bool,
    expands: bool,
}

/// The here-documents that a line opens.
fn here_documents(text: &str) -> Vec<OpenHereDocument<'_>> {
    text.split_whitespace()
        .filter_map(|word| {
            let (_, name) = word
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .split_at_checked(2)
                .filter(|(operator, _)| *operator == "<<")?;
            let (quoted, tabs) = match name.strip_prefix('-') {
                Some(name) => (name, true),
                None => (name, false),
            };
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
