//! Parser of pipelines and commands.

use wincimg_windows::quoting::powershell::is_dash;

use super::super::error::Result;
use super::ast::{Argument, CommandAst, Element, Expression, Pipeline, Redirect};
use super::parse::{Parser, ends_word, follows_dot, is_name, is_quote};

impl Parser<'_> {
    pub(super) fn pipeline(&mut self) -> Result<Pipeline> {
        let at = self.at;
        let mut elements = vec![self.element(true)?];
        loop {
            self.skip_blanks()?;
            if self.rest().starts_with("||") || !self.eat("|") {
                return Ok(Pipeline { elements, at });
            }
            self.skip_lines()?;
            elements.push(self.element(false)?);
        }
    }

    fn element(&mut self, is_first: bool) -> Result<Element> {
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
                    self.commands += 1;
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
                second.is_some_and(|c| c.is_ascii_digit() || c == '(' || c == '$')
                    || self.rest().starts_with("--$")
                    || matches!(self.dash_word().as_str(), "not" | "join" | "split")
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

    fn command(&mut self, at: usize) -> Result<CommandAst> {
        let name = match self.peek() {
            Some('(') => self.primary()?,
            Some('{') => self.script_block()?,
            Some(c) if !ends_word(c) => self.argument()?,
            _ => return Err(self.expected("a command")),
        };
        self.commands += 1;
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
                    self.refuse(self.error("--% is not supported"));
                    self.at += 3;
                    let rest = self.take_while(|c| c != '|' && c != '\n').trim().to_owned();
                    command
                        .arguments
                        .push(Argument::Value(Expression::Text(rest)));
                }
                c if is_dash(c) && second.is_some_and(|c| c.is_alphabetic() || c == '?') => {
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

    fn parameter(&mut self) -> Result<Argument> {
        let start = self.at;
        self.next();
        // A dot or a bracket begins another argument: `-Da.b=1` is two, and `-Da=$b` is as written.
        let name = self.take_while(|c| !ends_word(c) && !".[:\"'".contains(c));
        let mut written = self.text[start..self.at].to_owned();
        let mut value = None;
        match self.peek() {
            Some(':') => {
                self.next();
                written.push(':');
                let colon = self.at;
                self.skip_blanks()?;
                if self
                    .peek()
                    .is_none_or(|c| ends_word(c) && !matches!(c, '(' | '{'))
                {
                    self.refuse(self.expected("an argument"));
                } else {
                    written.extend((self.at > colon).then_some(' '));
                    let first = self.argument()?;
                    value = Some(self.refused_list(first)?);
                }
            }
            Some('"' | '\'') => {
                // It continues as an argument of a program: -DFOO="a b".
                self.at = start;
                let word = self.word()?;
                return self.refused_list(word).map(Argument::Value);
            }
            Some(',') => {
                let list = self.refused_list(Expression::Text(written))?;
                return Ok(Argument::Value(list));
            }
            _ => {}
        }
        Ok(Argument::Parameter {
            name: name.to_lowercase(),
            value,
            written,
        })
    }

    /// Parses the other items of a list that the interpreter does not take.
    fn refused_list(&mut self, first: Expression) -> Result<Expression> {
        if self.peek() != Some(',') {
            return Ok(first);
        }
        self.refuse(self.expected("an argument"));
        self.next();
        self.skip_lines()?;
        let mut items = vec![first];
        match self.comma_separated(Self::argument)? {
            Expression::List(more) => items.extend(more),
            item => items.push(item),
        }
        Ok(Expression::List(items))
    }

    fn redirections(&mut self) -> Result<Vec<Redirect>> {
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
                    u8::try_from(digit).map_or(1, |digit| digit - b'0')
                }
                _ => return Ok(redirects),
            };
            self.next();
            let append = self.eat(">");
            if self.eat("&1") {
                redirects.push(Redirect::Merge);
                continue;
            }
            if self.peek() == Some('&') {
                self.refuse(self.expected("an argument"));
                self.next();
                self.take_while(|c| c.is_ascii_digit());
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
