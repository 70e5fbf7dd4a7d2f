//! Parser of cmd: commands, operators, blocks, redirections.

use super::super::error::{Result, ScriptError};
use super::super::traced_text::TracedText;

/// Maximum depth of nested blocks.
const DEPTH: usize = 24;

/// Node of the syntax tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CmdNode {
    /// `a & b`
    Sequence(Vec<CmdNode>),
    /// `a && b`
    And(Vec<CmdNode>),
    /// `a || b`
    Or(Vec<CmdNode>),
    /// `a | b`
    Pipe(Vec<CmdNode>),
    /// `( … )` with its redirections.
    Block(Box<CmdNode>, Vec<Redirect>),
    If {
        not: bool,
        ignore_case: bool,
        test: Test,
        then: Box<CmdNode>,
        otherwise: Option<Box<CmdNode>>,
    },
    For(ForLoop),
    /// Any other command.
    Simple(SimpleCommand),
    /// `rem` or an empty command.
    Nothing,
}

/// `for %i in ( … ) do`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForLoop {
    pub(super) kind: LoopKind,
    pub(super) variable: char,
    pub(super) items: Vec<TracedText>,
    pub(super) body: Box<CmdNode>,
    /// True if `@` keeps cmd from echoing the body.
    pub(super) is_quiet: bool,
    pub(super) at: usize,
}

/// What a `for` loop runs over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LoopKind {
    /// Words and files.
    Items,
    /// `/d`: words and folders.
    Folders,
    /// `/l`: numbers.
    Numbers,
    /// `/r`: files in a folder and below it, the working folder by default.
    Tree(Option<TracedText>),
}

/// Condition of an `if`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Test {
    Exist(TracedText),
    Defined(TracedText),
    ErrorLevel(TracedText),
    Compare {
        left: TracedText,
        operator: String,
        right: TracedText,
    },
}

/// Text of a command with its quotes, without redirections and carets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    pub(super) text: TracedText,
    pub(super) redirects: Vec<Redirect>,
    /// True if only spaces follow the last redirection.
    pub(super) ends_in_spaces: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) stream: u8,
    pub(super) to: RedirectTarget,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RedirectTarget {
    File { name: TracedText, append: bool },
    Stream(u8),
    Input(TracedText),
}

pub(super) fn parse(line: &TracedText) -> Result<CmdNode> {
    let mut parser = Parser {
        characters: line.characters().collect(),
        at: 0,
        depth: 0,
    };
    parser.skip(|c| is_delimiter(c) || c == '\r');
    if parser.peek().is_none() {
        return Ok(CmdNode::Nothing);
    }
    let node = parser.sequence(false)?;
    match parser.peek() {
        None => Ok(node),
        Some(c) => Err(parser.error(format!("unexpected {c}"))),
    }
}

/// Makes a node of the commands that an operator joins.
type Join = fn(Vec<CmdNode>) -> CmdNode;

/// Operators between commands of a sequence, of lower precedence first.
const OPERATORS: [(&str, Join); 3] = [
    ("||", CmdNode::Or),
    ("&&", CmdNode::And),
    ("|", CmdNode::Pipe),
];

/// Returns the only node, or a node of several.
fn one_or(mut nodes: Vec<CmdNode>, several: Join) -> CmdNode {
    match nodes.len() {
        0 => CmdNode::Nothing,
        1 => nodes.remove(0),
        _ => several(nodes),
    }
}

struct Parser {
    characters: Vec<(char, usize)>,
    at: usize,
    depth: usize,
}

pub(super) fn is_delimiter(c: char) -> bool {
    matches!(c, ' ' | '\t' | ',' | ';' | '=')
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Option<char> {
        self.characters.get(self.at + by).map(|(c, _)| *c)
    }

    fn origin(&self) -> usize {
        let last = self.characters.len().saturating_sub(1);
        self.characters
            .get(self.at.min(last))
            .map_or(0, |(_, at)| *at)
    }

    fn error(&self, why: impl Into<String>) -> ScriptError {
        ScriptError::unclear(why).at_position(self.origin())
    }

    fn next(&mut self) -> Option<(char, usize)> {
        let next = self.characters.get(self.at).copied();
        self.at += usize::from(next.is_some());
        next
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&skipped) {
            self.at += 1;
        }
    }

    /// Parses the lines of a block.
    fn lines(&mut self) -> Result<CmdNode> {
        let mut nodes = Vec::new();
        loop {
            self.skip(|c| is_delimiter(c) || matches!(c, '\r' | '\n'));
            if matches!(self.peek(), None | Some(')')) {
                break;
            }
            match self.sequence(true)? {
                CmdNode::Sequence(more) => nodes.extend(more),
                node => nodes.push(node),
            }
            if self.peek() != Some('\n') {
                break;
            }
        }
        Ok(one_or(nodes, CmdNode::Sequence))
    }

    /// Parses commands of one line separated by `&`, the operator of lowest precedence.
    fn sequence(&mut self, in_block: bool) -> Result<CmdNode> {
        let mut nodes = vec![self.joined(0, in_block)?];
        while self.peek() == Some('&') {
            self.at += 1;
            self.skip(|c| is_delimiter(c) || c == '\r');
            // A line may end in an operator.
            if self.is_line_end(in_block) {
                break;
            }
            nodes.push(self.joined(0, in_block)?);
        }
        Ok(one_or(nodes, CmdNode::Sequence))
    }

    fn is_line_end(&self, in_block: bool) -> bool {
        match self.peek() {
            None | Some('\n') => true,
            Some(c) => in_block && c == ')',
        }
    }

    /// Parses commands joined by the operators of a level and above.
    fn joined(&mut self, level: usize, in_block: bool) -> Result<CmdNode> {
        let Some((operator, several)) = OPERATORS.get(level) else {
            return self.command(in_block);
        };
        let mut nodes = vec![self.joined(level + 1, in_block)?];
        while self.eat_operator(operator) {
            nodes.push(self.joined(level + 1, in_block)?);
        }
        Ok(one_or(nodes, *several))
    }

    /// Skips an operator, unless its last sign is repeated.
    fn eat_operator(&mut self, operator: &str) -> bool {
        let (sign, length) = (operator.chars().next(), operator.len());
        let is_here = (0..length).all(|by| self.ahead(by) == sign)
            && (length > 1 || self.ahead(length) != sign);
        self.at += if is_here { length } else { 0 };
        is_here
    }

    fn command(&mut self, in_block: bool) -> Result<CmdNode> {
        if self.depth == DEPTH {
            return Err(self.error("blocks are nested too deeply"));
        }
        self.depth += 1;
        let node = self.command_of(in_block);
        self.depth -= 1;
        node
    }

    fn command_of(&mut self, in_block: bool) -> Result<CmdNode> {
        self.skip(|c| is_delimiter(c) || matches!(c, '@' | '\r'));
        if self.is_line_end(in_block) {
            return Err(self.error("missing command"));
        }
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let inside = self.lines()?;
                if self.peek() != Some(')') {
                    return Err(self.error("unclosed ("));
                }
                self.at += 1;
                self.block_end(inside)
            }
            Some('&' | '|') => Err(self.error("missing command")),
            _ => match self.keyword().as_str() {
                "if" => self.condition(in_block),
                "for" => self.for_loop(in_block),
                "rem" => {
                    self.eat_keyword("rem");
                    if matches!(self.peek(), Some('&' | '|')) {
                        return Err(self.error("an empty comment ends at & or |, unlike others"));
                    }
                    self.skip(|c| c != '\n');
                    Ok(CmdNode::Nothing)
                }
                _ => self.simple(in_block).map(CmdNode::Simple),
            },
        }
    }

    fn block_end(&mut self, inside: CmdNode) -> Result<CmdNode> {
        let mut redirects = Vec::new();
        loop {
            self.skip(|c| matches!(c, ' ' | '\t'));
            let is_stream = self.peek().is_some_and(|c| c.is_ascii_digit())
                && self.ahead(1).is_some_and(|c| matches!(c, '<' | '>'));
            match self.peek() {
                Some('<' | '>') => redirects.push(self.redirect(None)?),
                Some(digit) if is_stream => {
                    self.at += 1;
                    redirects.push(self.redirect(digit.to_digit(10))?);
                }
                _ => return Ok(CmdNode::Block(Box::new(inside), redirects)),
            }
        }
    }

    /// The word at this position in lower case, if it consists of letters.
    fn keyword(&self) -> String {
        let rest = &self.characters[self.at..];
        let word: String = rest
            .iter()
            .map(|(c, _)| *c)
            .take_while(char::is_ascii_alphabetic)
            .collect();
        let after = rest.get(word.len()).map(|(c, _)| *c);
        if after.is_none_or(|c| is_delimiter(c) || "(&|<>\n".contains(c)) {
            word.to_ascii_lowercase()
        } else {
            String::new()
        }
    }

    fn eat_keyword(&mut self, word: &str) -> bool {
        let found = self.keyword() == word;
        if found {
            self.at += word.len();
            self.skip(is_delimiter);
        }
        found
    }

    /// Parses a word up to a delimiter outside quotes; quotes are kept.
    fn word(&mut self, ends: impl Fn(char) -> bool) -> TracedText {
        let mut word = TracedText::default();
        let mut quoted = false;
        while let Some(c) = self.peek() {
            if !quoted && (ends(c) || "&|<>()\n".contains(c)) {
                break;
            }
            let Some((c, at)) = self.next() else { break };
            if c == '^' && !quoted {
                if let Some((escaped, at)) = self.next() {
                    word.push(escaped, at);
                }
                continue;
            }
            quoted ^= c == '"';
            word.push(c, at);
        }
        word
    }

    fn condition(&mut self, in_block: bool) -> Result<CmdNode> {
        self.eat_keyword("if");
        let mut ignore_case = false;
        let mut not = false;
        loop {
            if self.peek() == Some('/') && self.ahead(1).is_some_and(|c| matches!(c, 'i' | 'I')) {
                self.at += 2;
                self.skip(is_delimiter);
                ignore_case = true;
            } else if self.eat_keyword("not") {
                not = !not;
            } else {
                break;
            }
        }
        let test = self.test()?;
        // The rest of the line is the command, also after a block.
        let then = Box::new(self.sequence(in_block)?);
        self.skip(is_delimiter);
        let otherwise = if self.eat_keyword("else") {
            Some(Box::new(self.sequence(in_block)?))
        } else {
            None
        };
        Ok(CmdNode::If {
            not,
            ignore_case,
            test,
            then,
            otherwise,
        })
    }

    fn test(&mut self) -> Result<Test> {
        let is_end = |c: char| is_delimiter(c);
        if self.eat_keyword("exist") {
            return Ok(Test::Exist(self.word(is_end)));
        }
        if self.eat_keyword("defined") {
            return Ok(Test::Defined(self.word(is_end)));
        }
        if self.eat_keyword("errorlevel") {
            return Ok(Test::ErrorLevel(self.word(is_end)));
        }
        let left = self.word(is_end);
        self.skip(|c| matches!(c, ' ' | '\t' | ',' | ';'));
        let operator = if self.peek() == Some('=') && self.ahead(1) == Some('=') {
            self.at += 2;
            "==".to_owned()
        } else {
            let word = self.keyword();
            if !["equ", "neq", "lss", "leq", "gtr", "geq"].contains(&word.as_str()) {
                return Err(self.error("unsupported condition of if"));
            }
            self.at += word.len();
            word
        };
        self.skip(is_delimiter);
        let right = self.word(is_end);
        if left.is_empty() || right.is_empty() {
            return Err(self.error("unsupported condition of if"));
        }
        Ok(Test::Compare {
            left,
            operator,
            right,
        })
    }

    fn for_loop(&mut self, in_block: bool) -> Result<CmdNode> {
        let at = self.origin();
        self.eat_keyword("for");
        let kind = self.loop_kind()?;
        if self.peek() != Some('%') {
            return Err(self.error("only for [/d|/l|/r] %i in (…) is supported"));
        }
        self.at += 1;
        if self.peek() == Some('%') {
            let why = "the variable of for has one % here: %% is for batch files";
            return Err(ScriptError::fails(why)
                .at_position(at)
                .help("write %i in place of %%i"));
        }
        let Some((variable, _)) = self.next().filter(|(c, _)| c.is_ascii_alphabetic()) else {
            return Err(self.error("unsupported variable of for"));
        };
        self.skip(is_delimiter);
        if !self.eat_keyword("in") || self.peek() != Some('(') {
            return Err(self.error("for without a list is not supported"));
        }
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip(|c| is_delimiter(c) || c == '\n');
            match self.peek() {
                Some(')') => break,
                None => return Err(self.error("unclosed ( of for")),
                _ => {}
            }
            let item = self.word(is_delimiter);
            if item.is_empty() {
                return Err(self.error("unsupported list of for"));
            }
            items.push(item);
        }
        self.at += 1;
        self.skip(is_delimiter);
        if !self.eat_keyword("do") {
            return Err(self.error("for without do is not supported"));
        }
        let has_at = self.peek() == Some('@');
        let body = Box::new(self.sequence(in_block)?);
        let is_one = !matches!(
            *body,
            CmdNode::Sequence(_) | CmdNode::And(_) | CmdNode::Or(_) | CmdNode::Pipe(_)
        );
        Ok(CmdNode::For(ForLoop {
            kind,
            variable,
            items,
            body,
            is_quiet: has_at && is_one,
            at,
        }))
    }

    /// The switch of a loop.
    fn loop_kind(&mut self) -> Result<LoopKind> {
        if self.peek() != Some('/') {
            return Ok(LoopKind::Items);
        }
        let switch = self.word(is_delimiter);
        self.skip(is_delimiter);
        match switch.as_str().to_ascii_lowercase().as_str() {
            "/d" => Ok(LoopKind::Folders),
            "/l" => Ok(LoopKind::Numbers),
            "/r" if self.peek() == Some('%') => Ok(LoopKind::Tree(None)),
            "/r" => {
                let folder = self.word(is_delimiter);
                self.skip(is_delimiter);
                Ok(LoopKind::Tree(Some(folder)))
            }
            other => Err(self.error(format!("for {other} is not supported"))),
        }
    }

    fn simple(&mut self, in_block: bool) -> Result<SimpleCommand> {
        let mut text = TracedText::default();
        let mut redirects = Vec::new();
        let mut quoted = false;
        let mut redirected_at = None;
        while let Some((c, at)) = self.next() {
            match c {
                '"' => quoted = !quoted,
                '^' if !quoted => {
                    if let Some((escaped, at)) = self.next() {
                        text.push(escaped, at);
                    }
                    continue;
                }
                '&' | '|' | '\n' if !quoted => {
                    self.at -= 1;
                    break;
                }
                ')' if !quoted && in_block => {
                    self.at -= 1;
                    break;
                }
                '<' | '>' if !quoted => {
                    self.at -= 1;
                    let stream = stream_before(&text);
                    if stream.is_some() {
                        text.pop();
                    }
                    redirects.push(self.redirect(stream)?);
                    redirected_at = Some(text.as_str().len());
                    continue;
                }
                '\r' if !quoted => continue,
                '\n' => return Err(self.error("unclosed quote at the end of a line")),
                _ => {}
            }
            text.push(c, at);
        }
        let after = redirected_at.map_or("", |at| &text.as_str()[at..]);
        let ends_in_spaces = !after.is_empty() && after.trim().is_empty();
        Ok(SimpleCommand {
            text,
            redirects,
            ends_in_spaces,
        })
    }

    fn redirect(&mut self, stream: Option<u32>) -> Result<Redirect> {
        let Some((sign, _)) = self.next() else {
            return Err(self.error("unsupported redirection"));
        };
        let stream = stream.unwrap_or(u32::from(sign == '>'));
        let stream = u8::try_from(stream).unwrap_or_default();
        let append = sign == '>' && self.peek() == Some('>');
        self.at += usize::from(append);
        if self.peek() == Some('&') {
            self.at += 1;
            let digit = self.next().and_then(|(c, _)| c.to_digit(10));
            let to = digit.and_then(|digit| u8::try_from(digit).ok());
            return match to {
                Some(to) if sign == '>' && to > 0 => Ok(Redirect {
                    stream,
                    to: RedirectTarget::Stream(to),
                }),
                _ => Err(self.error("unsupported redirection")),
            };
        }
        self.skip(is_delimiter);
        let name = self.word(is_delimiter);
        if name.is_empty() {
            return Err(self.error("redirection without a file"));
        }
        let to = if sign == '<' {
            if stream != 0 {
                return Err(self.error("unsupported redirection"));
            }
            RedirectTarget::Input(name)
        } else {
            RedirectTarget::File { name, append }
        };
        Ok(Redirect { stream, to })
    }
}

/// The stream number directly before a redirection.
fn stream_before(text: &TracedText) -> Option<u32> {
    let mut characters = text.as_str().chars().rev();
    let digit = characters.next()?.to_digit(10)?;
    let is_alone = characters
        .next()
        .is_none_or(|c| is_delimiter(c) || c == '"' || c == ')');
    is_alone.then_some(digit)
}
