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

impl Shell<'_, '_> {
    /// Runs a command of a pipeline after others. The commands that it runs itself do not decide its
    /// success.
    pub(super) fn in_pipeline<T>(
        &mut self,
        before: Option<Status>,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Status)> {
        let outer = std::mem::take(&mut self.command_status);
        let done = run(self);
        let own = std::mem::replace(&mut self.command_status, outer);
        let before = before.unwrap_or_default();
        // A pipeline fails if one of its commands fails.
        let status = Status {
            has_failed: before.has_failed || own.has_failed,
            left_out: before.left_out.or(own.left_out),
        };
        done.map(|value| (value, status))
    }

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
