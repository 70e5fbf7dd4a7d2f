//! `$?`, the success of what ran last. A pipeline with commands sets it to their success, a statement
//! that is an expression and a condition with a command to true, an error that ends a statement to
//! false. Nothing else sets it.

use super::super::error::Result;
use super::ast::{Element, Expression, Statement, Test};
use super::eval::Shell;
use super::value::PsValue;

/// Success of a command or statement.
#[derive(Debug, Clone, Default)]
pub(super) struct Status {
    pub(super) has_failed: bool,
    /// A command without effect that was left out: its success is known only on Windows.
    pub(super) left_out: Option<String>,
}

impl Status {
    /// The success of two commands of a pipeline, which fails if either fails.
    pub(super) fn and(self, next: Self) -> Self {
        Self {
            has_failed: self.has_failed || next.has_failed,
            left_out: self.left_out.or(next.left_out),
        }
    }
}

impl Shell<'_, '_> {
    /// Returns true for an expression, or its assignment. PowerShell 7 looks into parentheses: those
    /// around a command leave `$?` as it is.
    pub(super) fn succeeds(&self, statement: &Statement) -> bool {
        if let Statement::Assign(assignment) = statement {
            return self.succeeds(&assignment.value);
        }
        let Some(Element::Expression(expression)) = statement.only_element() else {
            return false;
        };
        if !self.is_core {
            return true;
        }
        match expression {
            Expression::Group(inner) => self.succeeds(inner),
            Expression::Script(statements) => statements.is_empty(),
            Expression::Array(statements) => match statements.as_slice() {
                [] => true,
                [only] => self.succeeds(only),
                _ => false,
            },
            _ => true,
        }
    }

    /// Evaluates a condition.
    pub(super) fn tested(&mut self, test: &Test) -> Result<PsValue> {
        let value = match &test.statement {
            assignment @ Statement::Assign(_) => self.value_of(assignment)?,
            statement => self.statement(statement)?,
        };
        if test.has_command {
            self.status = Status::default();
        }
        Ok(value)
    }
}
