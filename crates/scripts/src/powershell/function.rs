//! Parser of functions and parameters.

use super::super::error::Result;
use super::ast::{Assignment, Expression, ScriptParameter, Statement};
use super::parse::{Parser, is_name};

/// Parameters of a function, with their defaults.
type Parameters = Vec<(String, Option<Expression>)>;

impl Parser<'_> {
    pub(super) fn function(&mut self) -> Result<Statement> {
        self.skip_lines()?;
        let name = self.take_while(|c| is_name(c) || c == '-').to_lowercase();
        if name.is_empty() {
            return Err(self.expected("a name"));
        }
        if self.peek() == Some(':') {
            self.refuse(self.expected("a {"));
            self.take_while(|c| is_name(c) || matches!(c, ':' | '-'));
        }
        self.skip_lines()?;
        let (mut parameters, mut body) = self.parameters()?;
        self.skip_lines()?;
        self.require("{")?;
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
    fn parameters(&mut self) -> Result<(Parameters, Vec<Statement>)> {
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
            if self.peek() == Some('[') {
                self.refuse(self.expected("a parameter"));
            }
            while self.peek() == Some('[') {
                types.push(Statement::of(self.type_name()?, at));
                self.skip_lines()?;
            }
            if !self.eat("$") {
                return Err(self.expected("a parameter"));
            }
            let name = self.take_while(is_name).to_lowercase();
            let value = self.default_value()?;
            self.skip_lines()?;
            if is_text {
                let variable = Expression::Variable(name.clone());
                types.push(Statement::Assign(Assignment {
                    to: Expression::Cast("string".to_owned(), Box::new(variable.clone())),
                    operator: '=',
                    value: Box::new(Statement::of(variable, at)),
                    at,
                }));
            }
            parameters.push((name, value));
            self.eat(",");
        }
    }

    /// `[CmdletBinding()] param( … )` at the beginning of a script.
    pub(super) fn script_parameters(&mut self) -> Result<Option<Vec<ScriptParameter>>> {
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
        self.require("(")?;
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

    fn script_parameter(&mut self) -> Result<ScriptParameter> {
        let (mut kind, mut is_mandatory) = (None, false);
        while self.peek() == Some('[') {
            let start = self.at;
            let name = self.attribute()?;
            match name.as_str() {
                "parameter" => {
                    let mut text = self.text[start..self.at].to_lowercase();
                    text.retain(|c| !c.is_whitespace());
                    is_mandatory |=
                        text.contains("mandatory") && !text.contains("mandatory=$false");
                }
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
        let default = self.default_value()?;
        Ok(ScriptParameter {
            name,
            kind,
            is_mandatory,
            default,
        })
    }

    /// Parses the `= 1` of a parameter, if present.
    fn default_value(&mut self) -> Result<Option<Expression>> {
        self.skip_lines()?;
        if !self.eat("=") {
            return Ok(None);
        }
        self.skip_lines()?;
        self.comma_ended().map(Some)
    }

    /// Parses an expression that a comma ends.
    pub(super) fn comma_ended(&mut self) -> Result<Expression> {
        let is_argument = std::mem::replace(&mut self.is_argument, true);
        let value = self.expression();
        self.is_argument = is_argument;
        value
    }

    /// The name of `[name]` or `[name( … )]`. Of the arguments, only a position and that a
    /// parameter is mandatory are understood.
    fn attribute(&mut self) -> Result<String> {
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
        self.require("]")?;
        Ok(if is_list { format!("{name}[]") } else { name })
    }
}
