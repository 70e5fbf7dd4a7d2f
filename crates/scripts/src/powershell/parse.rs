//! Parser of statements.

use wincimg_windows::quoting::powershell::{is_double_quote, is_single_quote};

use super::super::error::{Result, ScriptError};
use super::ast::{
    Assignment, ControlFlow, Element, Expression, ForEach, Loop, Pipeline, ScriptParameter,
    Statement, Test, Try,
};
use super::has_word;
use super::loose::LOOSE;

/// Maximum depth of nested brackets, blocks and scripts.
const DEPTH: usize = 20;

/// Maximum number of consecutive operators or members.
pub(super) const CHAIN: usize = 50;

/// Keywords that begin a supported statement.
const STATEMENTS: [&str; 11] = [
    "if", "foreach", "while", "do", "try", "function", "break", "continue", "return", "throw",
    "exit",
];

/// Keywords that begin a statement of unknown syntax.
const KEYWORDS: [&str; 5] = ["class", "data", "enum", "until", "using"];

/// A script that is parsed from its start.
#[derive(Default)]
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Depth of nested brackets, blocks and scripts.
    pub(super) depth: usize,
    /// Number of commands so far, without those in script blocks.
    pub(super) commands: usize,
    /// True if a comma ends an expression, as in the arguments of a method.
    pub(super) is_argument: bool,
    /// True if `&&` and `||` end the process: Windows PowerShell reads the script as its command line.
    pub(super) fails_at_chains: bool,
    /// The first syntax that the interpreter does not run.
    pub(super) unsupported: Option<ScriptError>,
}

/// Returns true for a quote of either kind.
pub(super) fn is_quote(c: char) -> bool {
    is_double_quote(c) || is_single_quote(c)
}

/// Returns true for a character of a name.
pub(super) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true for a character that ends a word of a command.
pub(super) fn ends_word(c: char) -> bool {
    c.is_whitespace() || "(){};,|&<>".contains(c)
}

/// Parses the script of a command line.
pub(super) fn parse(script: &str, is_core: bool) -> Result<Vec<Statement>> {
    let mut parser = Parser::new(script);
    parser.fails_at_chains = !is_core;
    let parsed = parser.statements(None);
    parser.supported(parsed)
}

/// Parses a script that is not run.
pub(super) fn parse_any(script: &str) -> Result<Vec<Statement>> {
    Parser::new(script).statements(None)
}

/// Parses a script file: its parameters, if it declares some, and its statements.
pub(super) fn parse_file(script: &str) -> Result<(Option<Vec<ScriptParameter>>, Vec<Statement>)> {
    let mut parser = Parser::new(script);
    let parameters = parser.script_parameters()?;
    let parsed = parser.statements(None);
    Ok((parameters, parser.supported(parsed)?))
}

/// Returns true if a dot before the character is an operator: it is not part of a name or number.
pub(super) fn follows_dot(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '$' | '(')
}

/// Returns true for a statement that ends with a block, after which another may begin.
fn is_block(statement: &Statement) -> bool {
    match statement {
        Statement::If { .. }
        | Statement::ForEach(_)
        | Statement::Loop(_)
        | Statement::Try(_)
        | Statement::Function { .. } => true,
        Statement::Pipeline(pipeline) => matches!(
            pipeline.elements.as_slice(),
            [Element::Expression(Expression::Other(keyword, _))] if has_word(LOOSE, keyword)
        ),
        _ => false,
    }
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Reads `$name` or `$scope:name` and returns the name in lower case. Question marks and colons
    /// belong to it; two colons are an operator.
    pub(super) fn variable_name(&mut self) -> String {
        self.next();
        let start = self.at;
        loop {
            self.take_while(|c| is_name(c) || c == '?');
            if self.peek() != Some(':') || self.second() == Some(':') {
                break;
            }
            self.next();
        }
        let name = self.text[start..self.at].to_lowercase();
        if let Some(drive) = name.strip_suffix(':')
            && !drive.contains(':')
        {
            let why = format!("${name} is the variable without a name of a drive");
            let error = ScriptError::unclear(why).help("write ${name} before a colon");
            self.refuse(error.at_position(start));
        }
        name
    }

    pub(super) fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }
}

impl Parser<'_> {
    pub(super) fn error(&self, why: impl Into<String>) -> ScriptError {
        ScriptError::unclear(why).at_position(self.at.min(self.text.len()))
    }

    /// Error for `&&` and `||`, which PowerShell 7 has.
    fn chain_error(&self) -> ScriptError {
        if self.fails_at_chains {
            let why = "Windows PowerShell does not have && and ||";
            ScriptError::fails(why)
                .help("write ; if ($?) { … } instead")
                .at_position(self.at)
        } else {
            self.error("&& and || are not supported")
        }
    }

    pub(super) fn expected(&self, what: &str) -> ScriptError {
        match self.peek() {
            Some(c) => self.error(format!("expected {what}, found {c:?}")),
            None => self.error(format!("expected {what}, found the end of the script")),
        }
    }

    /// Notes syntax that the interpreter does not run: the parser goes on, for those who only read.
    pub(super) fn refuse(&mut self, error: ScriptError) {
        self.unsupported.get_or_insert(error);
    }

    /// What was parsed, if the interpreter runs all of it.
    fn supported<T>(self, parsed: Result<T>) -> Result<T> {
        self.unsupported.map_or(parsed, Err)
    }

    /// Skips a sign that has to be here.
    pub(super) fn require(&mut self, sign: &str) -> Result<()> {
        if self.eat(sign) {
            return Ok(());
        }
        Err(self.expected(&format!("a {sign}")))
    }

    /// The word after a dash at this position, in lower case; empty if there is none.
    pub(super) fn dash_word(&self) -> String {
        let rest = self.rest().strip_prefix('-').unwrap_or_default();
        let word = rest.chars().take_while(char::is_ascii_alphabetic);
        word.collect::<String>().to_ascii_lowercase()
    }

    /// Parses one level deeper, up to the limit.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH {
            return Err(self.error("brackets are nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips white space and comments, but not line ends.
    pub(super) fn skip_blanks(&mut self) -> Result<()> {
        loop {
            match self.peek() {
                Some('\n') | None => return Ok(()),
                Some(c) if c.is_whitespace() => {
                    self.next();
                }
                Some('`') if self.second().is_some_and(char::is_whitespace) => {
                    self.next();
                    if self.next() == Some('\r') && self.peek() == Some('\n') {
                        self.next();
                    }
                }
                Some('#') => {
                    self.take_while(|c| c != '\n');
                }
                Some('<') if self.second() == Some('#') => match self.rest().find("#>") {
                    Some(end) => self.at += end + 2,
                    None => return Err(self.error("unclosed comment")),
                },
                Some(_) => return Ok(()),
            }
        }
    }

    /// Skips white space, comments and line ends.
    pub(super) fn skip_lines(&mut self) -> Result<()> {
        loop {
            self.skip_blanks()?;
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.next();
        }
    }

    /// Parses statements up to a closing bracket, which is not consumed, or the end.
    pub(super) fn statements(&mut self, close: Option<char>) -> Result<Vec<Statement>> {
        let mut statements = Vec::new();
        loop {
            self.skip_lines()?;
            match self.peek() {
                None if close.is_some() => return Err(self.expected("a closing bracket")),
                None => return Ok(statements),
                Some(';') => {
                    self.next();
                    continue;
                }
                found if found == close => return Ok(statements),
                _ => {}
            }
            let statement = self.deeper(Self::statement)?;
            let is_block = is_block(&statement);
            statements.push(statement);
            self.skip_blanks()?;
            match self.peek() {
                None | Some(';' | '\n') => {}
                found if found == close => {}
                _ if is_block => {}
                _ => return Err(self.expected("the end of a statement")),
            }
        }
    }

    /// `{ … }`
    pub(super) fn block(&mut self) -> Result<Vec<Statement>> {
        self.skip_lines()?;
        self.require("{")?;
        let statements = self.statements(Some('}'))?;
        self.next();
        Ok(statements)
    }

    /// Parses something whose commands do not run where it is.
    fn uncounted<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let commands = self.commands;
        let result = read(self);
        self.commands = commands;
        result
    }

    /// `{ … }` as a value
    pub(super) fn script_block(&mut self) -> Result<Expression> {
        self.uncounted(Self::block).map(Expression::Block)
    }

    /// The keyword at this position; empty if there is none.
    pub(super) fn keyword(&self) -> String {
        let word: String = self
            .rest()
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '\\' | ':' | '/'))
            .collect();
        word.to_ascii_lowercase()
    }

    /// Skips line ends and one of these keywords, if one is there.
    fn next_keyword<'w>(&mut self, words: &'w str) -> Result<Option<&'w str>> {
        let before = self.at;
        self.skip_lines()?;
        let keyword = self.keyword();
        let mut words = words.split_ascii_whitespace();
        let found = words.find(|word| *word == keyword);
        self.at = found.map_or(before, |word| self.at + word.len());
        Ok(found)
    }

    pub(super) fn statement(&mut self) -> Result<Statement> {
        let is_argument = std::mem::replace(&mut self.is_argument, false);
        let statement = self.statement_here();
        self.is_argument = is_argument;
        statement
    }

    fn statement_here(&mut self) -> Result<Statement> {
        let at = self.at;
        let keyword = self.keyword();
        let is_loose = has_word(LOOSE, &keyword);
        if is_loose || KEYWORDS.contains(&keyword.as_str()) {
            let error = ScriptError::unclear(format!("{keyword} is not supported")).at_position(at);
            if !is_loose {
                return Err(error);
            }
            self.refuse(error);
            self.at += keyword.len();
            return self.loose_statement(keyword, at);
        }
        if STATEMENTS.contains(&keyword.as_str())
            // Without a bracket it is the alias of the cmdlet.
            && (keyword != "foreach" || self.rest()[keyword.len()..].trim_start().starts_with('('))
        {
            self.at += keyword.len();
            return self.keyword_statement(&keyword, at);
        }
        let pipeline = self.pipeline()?;
        let [Element::Expression(to)] = pipeline.elements.as_slice() else {
            return self.chain(pipeline);
        };
        self.skip_blanks()?;
        let operator = match (self.peek(), self.second()) {
            (Some('='), _) => '=',
            (Some(c), Some('=')) if "+-*/%".contains(c) => c,
            _ => return self.chain(pipeline),
        };
        self.at += 1 + usize::from(operator != '=');
        self.skip_lines()?;
        let value = self.deeper(Self::statement)?;
        Ok(Statement::Assign(Assignment {
            to: to.clone(),
            operator,
            value: Box::new(value),
            at,
        }))
    }

    /// Parses the `&&` and `||` after a pipeline, with the pipelines between them.
    fn chain(&mut self, first: Pipeline) -> Result<Statement> {
        let at = first.at;
        let first = Statement::Pipeline(first);
        let mut parts = Vec::new();
        loop {
            self.skip_blanks()?;
            let mut operators = ["&&", "||"].into_iter();
            let Some(operator) = operators.find(|it| self.rest().starts_with(*it)) else {
                break;
            };
            self.refuse(self.chain_error());
            self.at += operator.len();
            self.skip_lines()?;
            parts.push(Expression::Word(operator.to_owned()));
            let next = Statement::Pipeline(self.pipeline()?);
            parts.push(Expression::Block(vec![next]));
        }
        if parts.is_empty() {
            return Ok(first);
        }
        parts.insert(0, Expression::Block(vec![first]));
        Ok(Statement::of(Expression::Other("&&".to_owned(), parts), at))
    }

    /// Parses a statement after its keyword.
    fn keyword_statement(&mut self, keyword: &str, at: usize) -> Result<Statement> {
        match keyword {
            "if" => self.condition(at),
            "foreach" => self.for_loop(at),
            "while" | "do" => self.loop_statement(keyword == "do", at),
            "try" => self.attempt(),
            "function" => self.uncounted(Self::function),
            "throw" => {
                self.skip_blanks()?;
                if !self.ends_statement() {
                    self.uncounted(|parser| parser.deeper(Self::statement))?;
                }
                Ok(Statement::Throw { at })
            }
            "exit" => {
                self.skip_blanks()?;
                let code = if self.ends_statement() {
                    None
                } else {
                    Some(self.expression()?)
                };
                Ok(Statement::Exit { code, at })
            }
            _ => self.flow(keyword),
        }
    }

    fn ends_statement(&self) -> bool {
        self.peek().is_none_or(|c| ";\n})".contains(c))
    }

    /// Parses the `( … )` of a condition or loop.
    fn test(&mut self) -> Result<Test> {
        self.skip_lines()?;
        self.require("(")?;
        self.skip_lines()?;
        let before = self.commands;
        let statement = self.deeper(Self::statement)?;
        let has_command = self.commands > before;
        self.skip_lines()?;
        self.require(")")?;
        Ok(Test {
            statement,
            has_command,
        })
    }

    /// Parses `while ( … ) { … }` and `do { … } while ( … )` after the first keyword.
    fn loop_statement(&mut self, tests_last: bool, at: usize) -> Result<Statement> {
        let (test, body, continues_if) = if tests_last {
            let body = self.block()?;
            let Some(word) = self.next_keyword("while until")? else {
                self.skip_lines()?;
                return Err(self.expected("while or until"));
            };
            (self.test()?, body, word == "while")
        } else {
            (self.test()?, self.block()?, true)
        };
        Ok(Statement::Loop(Loop {
            test: Box::new(test),
            continues_if,
            tests_last,
            body,
            at,
        }))
    }

    fn flow(&mut self, keyword: &str) -> Result<Statement> {
        self.skip_blanks()?;
        let value = if self.ends_statement() {
            None
        } else {
            Some(Box::new(self.deeper(Self::statement)?))
        };
        let flow = match keyword {
            "break" => ControlFlow::Break,
            "continue" => ControlFlow::Continue,
            _ => ControlFlow::Return,
        };
        if value.is_some() && flow != ControlFlow::Return {
            self.refuse(self.error("labels are not supported"));
        }
        Ok(Statement::Flow { flow, value })
    }

    fn attempt(&mut self) -> Result<Statement> {
        let mut attempt = Try {
            body: self.block()?,
            ..Try::default()
        };
        loop {
            match self.next_keyword("catch finally")? {
                Some("catch") => {
                    self.skip_lines()?;
                    while self.peek() == Some('[') {
                        attempt.has_typed_catch = true;
                        self.primary()?;
                        self.skip_lines()?;
                        self.eat(",");
                        self.skip_lines()?;
                    }
                    attempt.catches.push(self.block()?);
                }
                Some(_) => attempt.finally = self.block()?,
                None => return Ok(Statement::Try(attempt)),
            }
        }
    }

    fn condition(&mut self, at: usize) -> Result<Statement> {
        let mut clauses = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let test = self.test()?;
            clauses.push((test, self.block()?));
            match self.next_keyword("elseif else")? {
                Some("elseif") => {}
                Some(_) => {
                    otherwise = self.block()?;
                    break;
                }
                None => break,
            }
        }
        Ok(Statement::If {
            clauses,
            otherwise,
            at,
        })
    }

    fn for_loop(&mut self, at: usize) -> Result<Statement> {
        self.skip_lines()?;
        self.eat("(");
        self.skip_lines()?;
        if !self.eat("$") {
            return Err(self.expected("a variable"));
        }
        let variable = self.take_while(is_name).to_lowercase();
        self.skip_lines()?;
        if self.keyword() != "in" {
            return Err(self.expected("in"));
        }
        self.at += 2;
        self.skip_lines()?;
        let items = self.deeper(Self::statement)?;
        self.skip_lines()?;
        self.require(")")?;
        Ok(Statement::ForEach(ForEach {
            variable,
            items: Box::new(items),
            body: self.block()?,
            at,
        }))
    }
}
