//! A Dockerfile as the daemon reads it, with the way back from every character to its line.
//!
//! The published parsers stop at the first mistake and read JSON and line ends more strictly
//! than the daemon does. A linter needs the opposite: any text gives instructions, joined exactly
//! as Moby joins them, so that what is found is what would happen.

use std::ops::Range;

use super::correction::Correction;
use crate::windows::quoting::Escape;

/// The instructions of a file, and its lines.
#[derive(Debug)]
pub(super) struct Dockerfile<'a> {
    pub(super) escape: Escape,
    pub(super) instructions: Vec<Instruction>,
    lines: Vec<&'a str>,
}

/// One instruction, its lines joined.
#[derive(Debug)]
pub(super) struct Instruction {
    /// `RUN`, `FROM` and so on, in capitals.
    pub(super) keyword: String,
    /// Whether lines of a here-document follow; they are not arguments.
    pub(super) has_here_document: bool,
    joined: String,
    arguments: usize,
    pieces: Vec<Piece>,
}

/// Where a part of the joined text stands in the file; lines count from 0.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at: usize,
    line: usize,
    column: usize,
}

/// A change of a part of an instruction's joined text. An empty part is a place right *after* the
/// character before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

impl Edit {
    pub(super) fn new(range: Range<usize>, text: impl Into<String>) -> Self {
        Self {
            range,
            text: text.into(),
        }
    }

    pub(super) fn after(position: usize, text: impl Into<String>) -> Self {
        Self::new(position..position, text)
    }

    /// The same change in a text that begins earlier by so much.
    pub(super) fn moved(self, by: usize) -> Self {
        Self::new(self.range.start + by..self.range.end + by, self.text)
    }
}

/// A line that is joined with the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Join<'a> {
    /// Its index, from 0.
    pub(super) line: usize,
    /// Its text before the escape character.
    pub(super) text: &'a str,
    /// The line that it is joined with; none at the end of the file.
    pub(super) next: Option<&'a str>,
}

const INSTRUCTIONS: [&str; 18] = [
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
    pub(super) fn read(source: &'a str) -> Self {
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        let lines: Vec<&str> = source
            .split('\n')
            .map(|line| line.trim_end_matches('\r'))
            .collect();
        let escape = escape_directive(&lines);
        let mut file = Self {
            escape,
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
            pieces.push(Piece {
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
        if let Some(after) = self.end_of_here_documents(&instruction, index) {
            instruction.has_here_document = true;
            index = after;
        }
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

    /// The line after the last here-document of an instruction, if it has one that ends.
    fn end_of_here_documents(&self, instruction: &Instruction, from: usize) -> Option<usize> {
        let may_have_one = matches!(instruction.keyword.as_str(), "RUN" | "COPY" | "ADD");
        if !may_have_one || instruction.exec_form().is_some() {
            return None;
        }
        let mut after = None;
        for (name, tabs) in here_documents(instruction.text()) {
            let from = after.unwrap_or(from);
            let end = (from..self.lines.len()).find(|index| {
                let line = self.lines[*index];
                name == if tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                }
            })?;
            after = Some(end + 1);
        }
        after
    }

    /// Every line that is joined with the next, inside instructions.
    pub(super) fn joins(&self, instruction: &Instruction) -> Vec<Join<'_>> {
        instruction
            .pieces
            .iter()
            .filter_map(|piece| {
                let (text, continues) = without_continuation(self.lines[piece.line], self.escape);
                continues.then(|| Join {
                    line: piece.line,
                    text,
                    next: self.lines.get(piece.line + 1).copied(),
                })
            })
            .collect()
    }

    /// The lines that change when these parts of an instruction do.
    pub(super) fn corrected(
        &self,
        instruction: &Instruction,
        edits: &[Edit],
    ) -> Option<Correction> {
        let mut placed: Vec<(usize, Range<usize>, &str)> = edits
            .iter()
            .map(|edit| {
                let (line, range) = instruction.place(&edit.range)?;
                Some((line, range, edit.text.as_str()))
            })
            .collect::<Option<_>>()?;
        placed.sort_by_key(|(line, range, _)| (*line, range.start));
        let first = placed.first()?.0;
        let last = placed.last()?.0;
        let mut lines: Vec<String> = (first..=last)
            .map(|line| self.lines[line].to_owned())
            .collect();
        for (line, range, text) in placed.into_iter().rev() {
            lines[line - first].replace_range(range, text);
        }
        Some(Correction {
            first_line: first + 1,
            last_line: last + 1,
            text: lines.join("\n"),
        })
    }

    /// The whole instruction on one line, with other arguments.
    pub(super) fn rewritten(&self, instruction: &Instruction, arguments: &str) -> Correction {
        let (first, last) = instruction.lines();
        let line = self.lines[first];
        let indent = &line[..line.len() - line.trim_start().len()];
        Correction {
            first_line: first + 1,
            last_line: last + 1,
            text: format!(
                "{indent}{}{arguments}",
                &instruction.joined[..instruction.arguments]
            ),
        }
    }

    /// The instruction's lines from one on, with another line after them.
    pub(super) fn followed_by(
        &self,
        instruction: &Instruction,
        from: usize,
        line: &str,
    ) -> Correction {
        let (_, last) = instruction.lines();
        Correction {
            first_line: from + 1,
            last_line: last + 1,
            text: format!("{}\n{line}", self.lines[from..=last].join("\n")),
        }
    }

    /// The instruction's lines with others before and after them.
    pub(super) fn surrounded(
        &self,
        instruction: &Instruction,
        before: &str,
        after: &str,
    ) -> Correction {
        let (first, last) = instruction.lines();
        Correction {
            first_line: first + 1,
            last_line: last + 1,
            text: format!("{before}\n{}\n{after}", self.lines[first..=last].join("\n")),
        }
    }

    /// One line, with another text in place of it.
    pub(super) fn replaced(line: usize, text: String) -> Correction {
        Correction {
            first_line: line + 1,
            last_line: line + 1,
            text,
        }
    }
}

impl Instruction {
    fn new(joined: String, pieces: Vec<Piece>) -> Self {
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
            has_here_document: false,
            joined,
            arguments,
            pieces,
        }
    }

    /// What stands after the keyword and its flags.
    pub(super) fn text(&self) -> &str {
        self.joined[self.arguments..].trim_end()
    }

    /// The value of a flag that stands before the arguments.
    pub(super) fn flag(&self, name: &str) -> Option<&str> {
        self.joined[..self.arguments]
            .split_whitespace()
            .find_map(|word| {
                word.strip_prefix("--")?
                    .strip_prefix(name)?
                    .strip_prefix('=')
            })
    }

    /// The command of a `HEALTHCHECK`.
    pub(super) fn health_command(&self) -> Option<&str> {
        let (word, command) = self.text().split_once(is_space)?;
        word.eq_ignore_ascii_case("CMD")
            .then(|| command.trim_start())
    }

    /// Where [`Self::text`] begins, as edits count.
    pub(super) fn start(&self) -> usize {
        self.arguments
    }

    /// A part of the joined text.
    pub(super) fn part(&self, range: Range<usize>) -> &str {
        &self.joined[range]
    }

    /// The line of the file, from 0, that a character of the joined text stands on.
    pub(super) fn line_of(&self, position: usize) -> usize {
        self.piece_of(position).line
    }

    /// The arguments as a JSON array of strings, if they are one. Like the daemon, this reads the
    /// first JSON value and does not look at what follows it.
    pub(super) fn exec_form(&self) -> Option<Vec<String>> {
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
    pub(super) fn is_meant_as_json(&self) -> bool {
        let inside = self.text().strip_prefix('[').map(str::trim_start);
        inside.is_some_and(|inside| inside.is_empty() || inside.starts_with(['"', ']']))
    }

    /// Its first and its last line, from 0.
    pub(super) fn lines(&self) -> (usize, usize) {
        let first = self.pieces.first().map_or(0, |piece| piece.line);
        let last = self.pieces.last().map_or(0, |piece| piece.line);
        (first, last)
    }

    fn piece_of(&self, position: usize) -> Piece {
        let after = self.pieces.partition_point(|piece| piece.at <= position);
        self.pieces[after.saturating_sub(1)]
    }

    /// The line and the columns of a part, if it is on one line.
    fn place(&self, range: &Range<usize>) -> Option<(usize, Range<usize>)> {
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

/// Whether a line begins with an instruction's name.
pub(super) fn begins_instruction(line: &str) -> bool {
    line.split_once(is_space).is_some_and(|(word, _)| {
        INSTRUCTIONS
            .iter()
            .any(|name| name.eq_ignore_ascii_case(word))
    })
}

fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\u{b}' | '\u{c}' | '\r' | ' ')
}

/// The directives stand at the very top, one a line; anything else ends them.
fn escape_directive(lines: &[&str]) -> Escape {
    for line in lines {
        let Some((key, value)) = line
            .trim_start()
            .strip_prefix('#')
            .and_then(|comment| comment.split_once('='))
        else {
            break;
        };
        match (key.trim().to_ascii_lowercase().as_str(), value.trim()) {
            ("escape", "`") => return Escape::Backtick,
            ("syntax" | "check", _) => {}
            _ => break,
        }
    }
    Escape::Backslash
}

/// A line without its joining character, and whether it had one. A doubled one does not join.
fn without_continuation(line: &str, escape: Escape) -> (&str, bool) {
    let body = line.trim_end_matches([' ', '\t']);
    match body.strip_suffix(escape.character()) {
        Some(text) if !text.ends_with(escape.character()) => (text, true),
        _ => (line, false),
    }
}

/// The here-documents that a line opens: each one's last line, and whether tabs go before it.
fn here_documents(text: &str) -> Vec<(&str, bool)> {
    text.split_whitespace()
        .filter_map(|word| {
            let (_, name) = word
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .split_at_checked(2)
                .filter(|(operator, _)| *operator == "<<")?;
            let (name, tabs) = match name.strip_prefix('-') {
                Some(name) => (name, true),
                None => (name, false),
            };
            let name = name.trim_matches(['"', '\'']);
            let plain = name
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
            (plain && !name.is_empty()).then_some((name, tabs))
        })
        .collect()
}
