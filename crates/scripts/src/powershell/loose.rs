//! Parser of statements that the interpreter does not run, for those who only read a script: it finds
//! their ends, and what is in them.

use super::super::error::Result;
use super::ast::{Expression, Statement};
use super::parse::{Parser, is_name};

/// Keywords that begin such a statement.
pub(super) const LOOSE: &str =
    "begin dynamicparam end filter for param process switch trap workflow";

impl Parser<'_> {
    /// Parses a statement after its keyword.
    pub(super) fn loose_statement(&mut self, keyword: String, at: usize) -> Result<Statement> {
        let mut parts = Vec::new();
        self.skip_lines()?;
        match keyword.as_str() {
            "for" => self.steps(&mut parts)?,
            "switch" => self.cases(&mut parts)?,
            "param" => self.declarations(&mut parts)?,
            "trap" if self.peek() == Some('[') => parts.push(self.primary()?),
            "filter" | "workflow" => {
                let name = self.take_while(|c| is_name(c) || c == '-');
                parts.push(Expression::Text(name.to_owned()));
            }
            _ => {}
        }
        if !matches!(keyword.as_str(), "switch" | "param") {
            parts.push(self.script_block()?);
        }
        Ok(Statement::of(Expression::Other(keyword, parts), at))
    }

    /// Parses the `( …; …; … )` of a `for`.
    fn steps(&mut self, parts: &mut Vec<Expression>) -> Result<()> {
        self.require("(")?;
        self.parts_up_to(")", &[";"], |parser| {
            let step = parser.deeper(Self::statement)?;
            parts.push(Expression::Group(Box::new(step)));
            Ok(())
        })
    }

    /// Parses parts up to a closing sign, whatever divides them.
    pub(super) fn parts_up_to(
        &mut self,
        close: &str,
        dividers: &[&str],
        mut read: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        loop {
            self.skip_lines()?;
            if self.eat(close) {
                return Ok(());
            }
            if !dividers.iter().any(|divider| self.eat(divider)) {
                read(self)?;
            }
        }
    }

    /// Parses the `-Regex ( … ) { … }` of a `switch`, with its cases.
    fn cases(&mut self, parts: &mut Vec<Expression>) -> Result<()> {
        while self.peek() != Some('{') {
            parts.push(self.argument()?);
            self.skip_lines()?;
        }
        self.next();
        self.parts_up_to("}", &[";"], |parser| {
            parts.extend([parser.argument()?, parser.script_block()?]);
            Ok(())
        })
    }

    /// Parses `( [type] $name = default, … )`.
    fn declarations(&mut self, parts: &mut Vec<Expression>) -> Result<()> {
        self.require("(")?;
        self.parts_up_to(")", &[",", "="], |parser| {
            parts.push(parser.comma_ended()?);
            Ok(())
        })
    }
}
