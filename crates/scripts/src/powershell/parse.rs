//! Parser of statements, pipelines and commands.

use wincimg_windows::quoting::powershell::{is_double_quote, is_single_quote};

use super::super::error::ScriptError;
use super::ast::{
    Argument, CommandAst, ControlFlow, Element, Expression, Pipeline, Redirect, ScriptParameter,
    Statement,
};

/// Maximum depth of nested brackets, blocks and scripts.
const DEPTH: usize = 20;

/// Maximum number of consecutive operators or members.
pub(super) const CHAIN: usize = 50;

/// Keywords that begin a statement.
const KEYWORDS: [&str; 15] = [
    "begin",
    "class",
    "data",
    "dynamicparam",
    "end",
    "enum",
    "filter",
    "for",
    "param",
    "process",
    "switch",
    "trap",
    "until",
    "using",
    "workflow",
];

pub(super) fn parse(script: &str) -> Result<Vec<Statement>, ScriptError> {
    let mut parser = Parser {
        text: script,
        at: 0,
        is_argument: false,
        depth: 0,
    };
    parser.statements(None)
}

/// Parses a script file: its parameters, if it declares some, and its statements.
pub(super) fn parse_file(
    script: &str,
) -> Result<(Option<Vec<ScriptParameter>>, Vec<Statement>), ScriptError> {
    let mut parser = Parser {
        text: script,
        at: 0,
        is_argument: false,
        depth: 0,
    };
    let parameters = parser.script_parameters()?;
    Ok((parameters, parser.statements(None)?))
}

/// Parameters of a function, with their defaults.
type Parameters = Vec<(String, Option<Expression>)>;

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// True if a comma ends an expression, as in the arguments of a method.
    pub(super) is_argument: bool,
    depth: usize,
}

/// Returns true if a dot before the character is an operator: it is not part of a name or number.
fn follows_dot(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '$' | '(')
}

/// Returns true for a character that ends a word of a command.
pub(super) fn ends_word(c: char) -> bool {
    c.is_whitespace() || "(){};,|&<>".contains(c)
}

pub(super) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(super) fn is_quote(c: char) -> bool {
    is_double_quote(c) || is_single_quote(c)
}

impl Parser<'_> {
    pub(super) fn rest(&self) -> &str {
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

    pub(super) fn take_while(&mut self, keep: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&keep) {
            self.next();
        }
        self.text[start..self.at].to_owned()
    }

    pub(super) fn error(&self, why: impl Into<String>) -> ScriptError {
        ScriptError::unclear(why).at_position(self.at.min(self.text.len()))
    }

    pub(super) fn expected(&self, what: &str) -> ScriptError {
        match self.peek() {
            Some(c) => self.error(format!("expected {what}, found {c:?}")),
            None => self.error(format!("expected {what}, found the end of the script")),
        }
    }

    /// Parses one level deeper, up to the limit.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ScriptError>,
    ) -> Result<T, ScriptError> {
        if self.depth == DEPTH {
            return Err(self.error("brackets are nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips white space and comments, but not line ends.
    pub(super) fn skip_blanks(&mut self) -> Result<(), ScriptError> {
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
    pub(super) fn skip_lines(&mut self) -> Result<(), ScriptError> {
        loop {
            self.skip_blanks()?;
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.next();
        }
    }

    /// Parses statements up to a closing bracket, which is not consumed, or the end.
    pub(super) fn statements(
        &mut self,
        close: Option<char>,
    ) -> Result<Vec<Statement>, ScriptError> {
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
            let is_block = matches!(
                statement,
                Statement::If { .. }
                    | Statement::ForEach { .. }
                    | Statement::Loop { .. }
                    | Statement::Try { .. }
                    | Statement::Function { .. }
            );
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
    pub(super) fn block(&mut self) -> Result<Vec<Statement>, ScriptError> {
        self.skip_lines()?;
        if !self.eat("{") {
            return Err(self.expected("a {"));
        }
        let statements = self.statements(Some('}'))?;
        self.next();
        Ok(statements)
    }

    /// The keyword at this position; empty if there is none.
    fn keyword(&self) -> String {
        let word: String = self
            .rest()
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '\\' | ':' | '/'))
            .collect();
        word.to_ascii_lowercase()
    }

    pub(super) fn statement(&mut self) -> Result<Statement, ScriptError> {
        let is_argument = std::mem::replace(&mut self.is_argument, false);
        let statement = self.statement_here();
        self.is_argument = is_argument;
        statement
    }

    fn statement_here(&mut self) -> Result<Statement, ScriptError> {
        let at = self.at;
        let keyword = self.keyword();
        match keyword.as_str() {
            "if" => {
                self.at += keyword.len();
                return self.condition(at);
            }
            "foreach" if self.is_loop(keyword.len()) => {
                self.at += keyword.len();
                return self.for_loop(at);
            }
            "while" | "do" => {
                self.at += keyword.len();
                return self.loop_statement(keyword == "do", at);
            }
            "try" => {
                self.at += keyword.len();
                return self.attempt();
            }
            "function" => {
                self.at += keyword.len();
                return self.function();
            }
            "break" | "continue" | "return" => {
                self.at += keyword.len();
                return self.flow(&keyword);
            }
            "throw" => {
                self.at += keyword.len();
                self.skip_blanks()?;
                if self.peek().is_some_and(|c| !";\n})".contains(c)) {
                    self.statement()?;
                }
                return Ok(Statement::Throw { at });
            }
            "exit" => {
                self.at += keyword.len();
                self.skip_blanks()?;
                let code = match self.peek() {
                    Some(c) if !";\n})".contains(c) => Some(self.expression()?),
                    _ => None,
                };
                return Ok(Statement::Exit { code, at });
            }
            word if KEYWORDS.contains(&word) => {
                return Err(
                    ScriptError::unclear(format!("{keyword} is not supported")).at_position(at)
                );
            }
            _ => {}
        }
        let pipeline = self.pipeline()?;
        let [Element::Expression(to)] = pipeline.elements.as_slice() else {
            return Ok(Statement::Pipeline(pipeline));
        };
        self.skip_blanks()?;
        let operator = match (self.peek(), self.second()) {
            (Some('='), _) => '=',
            (Some(c), Some('=')) if "+-*/%".contains(c) => c,
            _ => return Ok(Statement::Pipeline(pipeline)),
        };
        self.at += 1 + usize::from(operator != '=');
        self.skip_lines()?;
        let value = self.deeper(Self::statement)?;
        Ok(Statement::Assign {
            to: to.clone(),
            operator,
            value: Box::new(value),
            at,
        })
    }

    /// Returns true if `foreach` is the loop and not the alias of the cmdlet.
    fn is_loop(&self, length: usize) -> bool {
        self.rest()[length..].trim_start().starts_with('(')
    }

    /// Parses the `( … )` of a condition or loop.
    fn test(&mut self) -> Result<Statement, ScriptError> {
        self.skip_lines()?;
        if !self.eat("(") {
            return Err(self.expected("a ("));
        }
        self.skip_lines()?;
        let test = self.deeper(Self::statement)?;
        self.skip_lines()?;
        if !self.eat(")") {
            return Err(self.expected("a )"));
        }
        Ok(test)
    }

    /// Parses `while ( … ) { … }` and `do { … } while ( … )` after the first keyword.
    fn loop_statement(&mut self, tests_last: bool, at: usize) -> Result<Statement, ScriptError> {
        let (test, body, continues_if) = if tests_last {
            let body = self.block()?;
            self.skip_lines()?;
            let word = self.keyword();
            if !matches!(word.as_str(), "while" | "until") {
                return Err(self.expected("while or until"));
            }
            self.at += word.len();
            (self.test()?, body, word == "while")
        } else {
            (self.test()?, self.block()?, true)
        };
        Ok(Statement::Loop {
            test: Box::new(test),
            continues_if,
            tests_last,
            body,
            at,
        })
    }

    fn flow(&mut self, keyword: &str) -> Result<Statement, ScriptError> {
        self.skip_blanks()?;
        let value = match self.peek() {
            Some(c) if !";\n})".contains(c) => Some(Box::new(self.statement()?)),
            _ => None,
        };
        let flow = match keyword {
            "break" => ControlFlow::Break,
            "continue" => ControlFlow::Continue,
            _ => ControlFlow::Return,
        };
        if value.is_some() && flow != ControlFlow::Return {
            return Err(self.error("labels are not supported"));
        }
        Ok(Statement::Flow { flow, value })
    }

    fn attempt(&mut self) -> Result<Statement, ScriptError> {
        let body = self.block()?;
        let mut catch = None;
        let mut has_typed_catch = false;
        let mut finally = Vec::new();
        loop {
            let after = self.at;
            self.skip_lines()?;
            match self.keyword().as_str() {
                "catch" => {
                    self.at += "catch".len();
                    self.skip_lines()?;
                    while self.peek() == Some('[') {
                        has_typed_catch = true;
                        self.primary()?;
                        self.skip_lines()?;
                        self.eat(",");
                        self.skip_lines()?;
                    }
                    catch = Some(self.block()?);
                }
                "finally" => {
                    self.at += "finally".len();
                    finally = self.block()?;
                }
                _ => {
                    self.at = after;
                    return Ok(Statement::Try {
                        body,
                        catch,
                        has_typed_catch,
                        finally,
                    });
                }
            }
        }
    }

    fn function(&mut self) -> Result<Statement, ScriptError> {
        self.skip_lines()?;
        let name = self.take_while(|c| is_name(c) || c == '-').to_lowercase();
        if name.is_empty() {
            return Err(self.expected("a name"));
        }
        self.skip_lines()?;
        let (mut parameters, mut body) = self.parameters()?;
        self.skip_lines()?;
        if !self.eat("{") {
            return Err(self.expected("a {"));
        }
        self.skip_lines()?;
        if self.keyword() == "param" {
            self.at += "param".len();
            self.skip_lines()?;
            (parameters, body) = self.parameters()?;
        }
        body.append(&mut self.statements(Some('}'))?);
        self.next();
        Ok(Statement::Function {
            name,
            parameters,
            body,
        })
    }

    /// Parses `($a, [string] $b = 1)`, if present: the parameters, and the assignments that give
    /// them their types.
    fn parameters(&mut self) -> Result<(Parameters, Vec<Statement>), ScriptError> {
        let mut parameters = Vec::new();
        let mut types = Vec::new();
        if !self.eat("(") {
            return Ok((parameters, types));
        }
        loop {
            self.skip_lines()?;
            if self.eat(")") {
                return Ok((parameters, types));
            }
            let at = self.at;
            let is_text = self.eat("[string]");
            self.skip_lines()?;
            if !self.eat("$") {
                return Err(self.expected("a parameter"));
            }
            let name = self.take_while(is_name).to_lowercase();
            self.skip_lines()?;
            let mut value = None;
            if self.eat("=") {
                self.skip_lines()?;
                let is_argument = std::mem::replace(&mut self.is_argument, true);
                value = Some(self.expression()?);
                self.is_argument = is_argument;
                self.skip_lines()?;
            }
            if is_text {
                let variable = Expression::Variable(name.clone());
                types.push(Statement::Assign {
                    to: Expression::Cast("string".to_owned(), Box::new(variable.clone())),
                    operator: '=',
                    value: Box::new(Statement::Pipeline(Pipeline {
                        elements: vec![Element::Expression(variable)],
                        at,
                    })),
                    at,
                });
            }
            parameters.push((name, value));
            self.eat(",");
        }
    }

    /// `[CmdletBinding()] param( … )` at the beginning of a script.
    fn script_parameters(&mut self) -> Result<Option<Vec<ScriptParameter>>, ScriptError> {
        self.skip_lines()?;
        let start = self.at;
        if self.peek() == Some('[') {
            let attribute = self.attribute()?;
            self.skip_lines()?;
            if attribute != "cmdletbinding" || self.keyword() != "param" {
                self.at = start;
                return Ok(None);
            }
        }
        if self.keyword() != "param" {
            return Ok(None);
        }
        self.at += "param".len();
        self.skip_lines()?;
        if !self.eat("(") {
            return Err(self.expected("a ("));
        }
        let mut parameters = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat(")") {
                return Ok(Some(parameters));
            }
            parameters.push(self.script_parameter()?);
            self.skip_lines()?;
            if !self.eat(",") && self.peek() != Some(')') {
                return Err(self.expected("a ,"));
            }
        }
    }

    fn script_parameter(&mut self) -> Result<ScriptParameter, ScriptError> {
        let mut kind = None;
        while self.peek() == Some('[') {
            let name = self.attribute()?;
            match name.as_str() {
                "parameter" => {}
                "string" | "int" | "int32" | "switch" | "bool" | "array" | "string[]" => {
                    kind = Some(name);
                }
                _ => return Err(self.error(format!("the attribute [{name}] is not supported"))),
            }
            self.skip_lines()?;
        }
        if !self.eat("$") {
            return Err(self.expected("a parameter"));
        }
        let name = self.take_while(is_name).to_lowercase();
        self.skip_lines()?;
        let mut default = None;
        if self.eat("=") {
            self.skip_lines()?;
            let is_argument = std::mem::replace(&mut self.is_argument, true);
            default = Some(self.expression()?);
            self.is_argument = is_argument;
        }
        Ok(ScriptParameter {
            name,
            kind,
            default,
        })
    }

    /// The name of `[name]` or `[name( … )]`. Of the arguments, only a position and that a
    /// parameter is mandatory are understood.
    fn attribute(&mut self) -> Result<String, ScriptError> {
        self.next();
        let name = self.take_while(|c| is_name(c) || c == '.').to_lowercase();
        let is_list = self.eat("[]");
        let name = name.strip_prefix("system.").unwrap_or(&name).to_owned();
        if self.eat("(") {
            let Some(length) = self.rest().find(')') else {
                return Err(self.error("unclosed ("));
            };
            let inside = self.rest()[..length].to_lowercase();
            let is_known = |argument: &str| {
                let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
                let (name, value) = (name.trim(), value.trim());
                match name {
                    "" => true,
                    "mandatory" => matches!(value, "" | "$true" | "$false"),
                    "helpmessage" => !value.contains('('),
                    _ => false,
                }
            };
            if !inside.split(',').all(is_known) {
                return Err(self.error(format!("unsupported arguments of [{name}]")));
            }
            self.at += length + 1;
        }
        if !self.eat("]") {
            return Err(self.expected("a ]"));
        }
        Ok(if is_list { format!("{name}[]") } else { name })
    }

    fn condition(&mut self, at: usize) -> Result<Statement, ScriptError> {
        let mut clauses = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let test = self.test()?;
            clauses.push((test, self.block()?));
            let after = self.at;
            self.skip_lines()?;
            match self.keyword().as_str() {
                "elseif" => self.at += "elseif".len(),
                "else" => {
                    self.at += "else".len();
                    otherwise = self.block()?;
                    break;
                }
                _ => {
                    self.at = after;
                    break;
                }
            }
        }
        Ok(Statement::If {
            clauses,
            otherwise,
            at,
        })
    }

    fn for_loop(&mut self, at: usize) -> Result<Statement, ScriptError> {
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
        if !self.eat(")") {
            return Err(self.expected("a )"));
        }
        Ok(Statement::ForEach {
            variable,
            items: Box::new(items),
            body: self.block()?,
            at,
        })
    }

    pub(super) fn pipeline(&mut self) -> Result<Pipeline, ScriptError> {
        let at = self.at;
        let mut elements = vec![self.element(true)?];
        loop {
            self.skip_blanks()?;
            if self.rest().starts_with("||") || self.rest().starts_with("&&") {
                return Err(self.error("Windows PowerShell does not have && and ||"));
            }
            if !self.eat("|") {
                return Ok(Pipeline { elements, at });
            }
            self.skip_lines()?;
            elements.push(self.element(false)?);
        }
    }

    fn element(&mut self, is_first: bool) -> Result<Element, ScriptError> {
        let at = self.at;
        match self.peek() {
            Some('&') if self.second() != Some('&') => {
                self.next();
                self.skip_blanks()?;
                self.command(at).map(Element::Command)
            }
            Some('.') if self.second().is_some_and(follows_dot) => {
                self.next();
                self.skip_blanks()?;
                let command = self.command(at)?;
                Ok(Element::Command(CommandAst {
                    is_dotted: true,
                    ..command
                }))
            }
            _ if is_first && self.is_expression() => {
                let expression = self.expression()?;
                self.skip_blanks()?;
                if self.peek() == Some('>') || self.rest().starts_with("2>") {
                    // Its value is redirected like the output of a command.
                    let redirects = self.redirections()?;
                    return Ok(Element::Command(CommandAst {
                        is_dotted: false,
                        name: Expression::Text("write-output".to_owned()),
                        arguments: vec![Argument::Value(expression)],
                        redirects,
                        at,
                    }));
                }
                Ok(Element::Expression(expression))
            }
            Some(c) if !ends_word(c) => self.command(at).map(Element::Command),
            _ => Err(self.expected("a command")),
        }
    }

    fn is_expression(&self) -> bool {
        let Some(c) = self.peek() else { return false };
        let second = self.second();
        match c {
            '$' | '(' | '[' | '!' | ',' | '{' => true,
            '@' => matches!(second, Some('(' | '{' | '"' | '\'')),
            '-' => {
                let word = self.rest()[1..]
                    .chars()
                    .take_while(char::is_ascii_alphabetic)
                    .collect::<String>();
                second.is_some_and(|c| c.is_ascii_digit() || c == '(' || c == '$')
                    || matches!(word.to_ascii_lowercase().as_str(), "not" | "join" | "split")
            }
            '+' => second.is_some_and(|c| c == '+' || c.is_ascii_digit()),
            c if c.is_ascii_digit() => self
                .rest()
                .chars()
                .find(|c| !c.is_ascii_digit())
                .is_none_or(|c| ends_word(c) || "+-*/%.".contains(c)),
            c => is_quote(c),
        }
    }

    fn command(&mut self, at: usize) -> Result<CommandAst, ScriptError> {
        let name = match self.peek() {
            Some('(') => self.primary()?,
            Some('{') => self.block().map(Expression::Block)?,
            Some(c) if !ends_word(c) => self.argument()?,
            _ => return Err(self.expected("a command")),
        };
        let mut command = CommandAst {
            is_dotted: false,
            name,
            arguments: Vec::new(),
            redirects: Vec::new(),
            at,
        };
        loop {
            self.skip_blanks()?;
            let Some(c) = self.peek() else {
                return Ok(command);
            };
            let second = self.second();
            match c {
                ';' | '|' | '\n' | ')' | '}' => return Ok(command),
                '&' if second == Some('&') => return Ok(command),
                '&' | '<' => return Err(self.error(format!("{c} is not supported here"))),
                '>' => command.redirects.append(&mut self.redirections()?),
                '0'..='9' | '*' if second == Some('>') => {
                    command.redirects.append(&mut self.redirections()?);
                }
                '@' if second.is_some_and(is_name) => {
                    self.next();
                    let name = self.take_while(is_name).to_lowercase();
                    command.arguments.push(Argument::Splat(name));
                }
                '-' if self.rest().starts_with("--%") => {
                    return Err(self.error("--% is not supported"));
                }
                '-' if second.is_some_and(|c| c.is_alphabetic() || c == '?') => {
                    let parameter = self.parameter()?;
                    command.arguments.push(parameter);
                }
                _ => {
                    let value = self.comma_separated(Self::argument)?;
                    command.arguments.push(Argument::Value(value));
                }
            }
        }
    }

    fn parameter(&mut self) -> Result<Argument, ScriptError> {
        let start = self.at;
        self.next();
        let name = self.take_while(|c| !ends_word(c) && !".[:\"'".contains(c) && c != '=');
        let written = self.text[start..self.at].to_owned();
        let mut value = None;
        if self.peek() == Some(':') {
            self.next();
            self.skip_blanks()?;
            value = Some(self.argument()?);
        } else if self.peek().is_some_and(|c| !ends_word(c)) {
            // It continues as an argument of a program: -DFOO="a b" or -o:x.
            self.at = start;
            return self.word().map(Argument::Value);
        }
        Ok(Argument::Parameter {
            name: name.to_lowercase(),
            value,
            written,
        })
    }

    fn redirections(&mut self) -> Result<Vec<Redirect>, ScriptError> {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks()?;
            let stream = match (self.peek(), self.second()) {
                (Some('>'), _) => 1,
                (Some('*'), Some('>')) => {
                    self.next();
                    0
                }
                (Some(digit), Some('>')) if digit.is_ascii_digit() => {
                    self.next();
                    digit
                        .to_digit(10)
                        .and_then(|digit| u8::try_from(digit).ok())
                        .unwrap_or(1)
                }
                _ => return Ok(redirects),
            };
            self.next();
            let append = self.eat(">");
            if self.eat("&1") {
                redirects.push(Redirect::Merge);
                continue;
            }
            self.skip_blanks()?;
            redirects.push(Redirect::File {
                stream,
                append,
                file: self.argument()?,
            });
        }
    }
}
