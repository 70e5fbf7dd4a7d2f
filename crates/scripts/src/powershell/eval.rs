//! State of the interpreter; evaluation of statements and expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use wincimg_windows::path::ImagePath;

use super::super::error::{self, Ends, Result, ScriptError};
use super::super::image::ImageAction;
use super::super::process::Process;
use super::super::traced_text::TracedText;
use super::ast::{Argument, ControlFlow, Element, Expression, Statement, StringPart, Test};
use super::flow::Function;
use super::status::Status;
use super::value::PsValue;

/// Maximum depth of nested expressions.
const DEPTH: usize = 120;

/// State of the interpreter.
pub(super) struct Shell<'m, 'a> {
    pub(super) machine: &'m mut Process<'a>,
    pub(super) script: Arc<TracedText>,
    /// Path of the script, if it is a file.
    pub(super) file: Option<ImagePath>,
    pub(super) variables: BTreeMap<String, PsValue>,
    /// Types of variables, to which later values are converted too.
    pub(super) types: BTreeMap<String, String>,
    /// True if it is PowerShell 7 rather than Windows PowerShell.
    pub(super) is_core: bool,
    /// Working folder of the process, which `cd` does not change.
    pub(super) process_folder: ImagePath,
    pub(super) exit: Option<i32>,
    /// `$?`
    pub(super) status: Status,
    /// Success of the current command so far, which its pipeline makes `$?`.
    pub(super) command_status: Status,
    pub(super) last_exit: Option<i32>,
    /// The last program without effect that was left out: `$LASTEXITCODE` is that of its success.
    pub(super) skipped_program: Option<String>,
    /// True where the failure of a command that was left out would fail the build.
    pub(super) is_success_assumed: bool,
    /// True if the script has loaded the types that unpack zip files.
    pub(super) has_zip: bool,
    /// Pending `break`, `continue` or `return`.
    pub(super) flow: Option<ControlFlow>,
    pub(super) functions: BTreeMap<String, Function>,
    /// Depth of nested `try` statements.
    pub(super) tries: usize,
    /// Depth of nested calls.
    pub(super) calls: usize,
    pub(super) depth: usize,
    /// Depth of script files.
    pub(super) scripts: usize,
    /// Number of programs of `Start-Process -PassThru` that nothing has waited for.
    pub(super) unawaited: u32,
    /// Number of commands in the current pipeline. PowerShell waits for a program with windows
    /// only in one of several.
    pub(super) pipeline_length: usize,
    /// Files that the current pipelines read.
    pub(super) read_files: Vec<ImagePath>,
}

/// Handling of a cmdlet's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorAction {
    Stop,
    Continue,
}

impl<'m, 'a> Shell<'m, 'a> {
    /// A new process.
    pub(super) fn new(
        machine: &'m mut Process<'a>,
        script: Arc<TracedText>,
        is_core: bool,
    ) -> Self {
        Self {
            process_folder: machine.folder.clone(),
            machine,
            script,
            file: None,
            variables: BTreeMap::new(),
            types: BTreeMap::new(),
            is_core,
            exit: None,
            status: Status::default(),
            command_status: Status::default(),
            last_exit: None,
            skipped_program: None,
            is_success_assumed: false,
            has_zip: is_core,
            flow: None,
            functions: BTreeMap::new(),
            tries: 0,
            calls: 0,
            depth: 0,
            pipeline_length: 1,
            read_files: Vec::new(),
            scripts: 0,
            unawaited: 0,
        }
    }
}

impl Shell<'_, '_> {
    /// Runs statements and returns their output.
    pub(super) fn block(&mut self, statements: &[Statement]) -> Result<PsValue> {
        let mut out = Vec::new();
        for statement in statements {
            if self.exit.is_some() || self.flow.is_some() {
                break;
            }
            match self.statement(statement) {
                Ok(value) => {
                    if self.succeeds(statement) {
                        self.status = Status::default();
                    }
                    out.extend(value.items());
                }
                Err(error) => self.end_statement(error)?,
            }
        }
        Ok(PsValue::from_items(out))
    }

    pub(super) fn position(&self, at: usize) -> usize {
        self.script.origin(at)
    }

    pub(super) fn statement(&mut self, statement: &Statement) -> Result<PsValue> {
        let was_running = self.unawaited > 0;
        let value = self.run_statement(statement)?;
        if was_running && self.unawaited > 0 {
            let why = "the script goes on while the program of Start-Process runs";
            return Err(ScriptError::windows(why).help("add -Wait"));
        }
        Ok(value)
    }

    fn run_statement(&mut self, statement: &Statement) -> Result<PsValue> {
        self.machine.step()?;
        let script = Arc::clone(&self.script);
        let place = |at: &usize| script.origin(*at);
        match statement {
            Statement::Pipeline(pipeline) => self
                .pipeline(pipeline)
                .map_err(|error| error.at_position(place(&pipeline.at))),
            Statement::Assign(assignment) => self
                .assign(assignment)
                .map(|()| PsValue::Null)
                .map_err(|error| error.at_position(place(&assignment.at))),
            Statement::If {
                clauses,
                otherwise,
                at,
            } => self
                .condition(clauses, otherwise)
                .map_err(|error| error.in_command("if", place(at))),
            Statement::ForEach(each) => self.for_each(each),
            Statement::Loop(repeat) => self
                .run_loop(repeat)
                .map_err(|error| error.in_command("while", place(&repeat.at))),
            Statement::Try(attempt) => self.run_try(attempt),
            Statement::Function {
                name,
                parameters,
                body,
            } => {
                let function = self.function(parameters.clone(), body.clone());
                self.functions.insert(name.clone(), function);
                Ok(PsValue::Null)
            }
            Statement::Flow { flow, value } => {
                let value = value.as_ref().map(|value| self.statement(value));
                let value = value.transpose()?.unwrap_or(PsValue::Null);
                self.flow = Some(*flow);
                Ok(value)
            }
            Statement::Throw { at } => {
                let error = ScriptError::fails("the script throws an error").ending(Ends::Throw);
                Err(error.in_command("throw", place(at)))
            }
            Statement::Exit { code, at } => self
                .exit(code.as_ref())
                .map_err(|error| error.in_command("exit", place(at))),
        }
    }

    /// Runs an `if`. A condition on a file digest becomes a verification if the branch for a
    /// mismatch fails the build.
    fn condition(
        &mut self,
        clauses: &[(Test, Vec<Statement>)],
        otherwise: &[Statement],
    ) -> Result<PsValue> {
        for (test, body) in clauses {
            let exits_with_last = |statement: &Statement| {
                matches!(statement, Statement::Exit { code: Some(Expression::Variable(name)), .. }
                    if name == "lastexitcode")
            };
            let fails = |statements: &[Statement]| {
                self.always_fails(statements) || statements.iter().any(exits_with_last)
            };
            let is_check = clauses.len() == 1 && (fails(body) || fails(otherwise));
            let value = self.assuming_success(is_check, |shell| shell.tested(test))?;
            let PsValue::Matches {
                path,
                algorithm,
                digest,
                if_equal,
            } = value
            else {
                if value.to_bool()? {
                    return self.block(body);
                }
                continue;
            };
            let on_mismatch = if if_equal { otherwise } else { body };
            if clauses.len() > 1 || !self.always_fails(on_mismatch) {
                return error::unclear("a condition on a file digest may only fail the build");
            }
            let verified = self.machine.apply(ImageAction::Verify {
                path,
                algorithm,
                digest,
            });
            verified.map_err(|error| error.ending(Ends::Script))?;
            return self.block(if if_equal { body } else { otherwise });
        }
        self.block(otherwise)
    }

    /// Evaluates something. If it is a check, commands that were left out succeed.
    pub(super) fn assuming_success<T>(
        &mut self,
        is_check: bool,
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = std::mem::replace(&mut self.is_success_assumed, is_check);
        let value = run(self);
        self.is_success_assumed = outer;
        value
    }

    /// Returns true if these statements always fail the build.
    pub(super) fn always_fails(&self, statements: &[Statement]) -> bool {
        statements.iter().any(|statement| match statement {
            Statement::Throw { .. } => !self.ignores_errors(),
            Statement::Exit {
                code: Some(Expression::Number(code)),
                ..
            } => *code != 0,
            statement => statement.only_command().is_some_and(|command| {
                matches!(&command.name, Expression::Word(name) if name.eq_ignore_ascii_case("write-error"))
                    && self.on_error() == ErrorAction::Stop
                    && command.arguments.iter().all(|argument| {
                        !matches!(argument, Argument::Parameter { name, .. } if name.starts_with("ea") || name.starts_with("error"))
                    })
            }),
        })
    }

    pub(super) fn expression(&mut self, expression: &Expression) -> Result<PsValue> {
        if self.depth == DEPTH {
            return error::unclear("expressions are nested too deeply");
        }
        self.depth += 1;
        let value = self.expression_of(expression);
        self.depth -= 1;
        let value = value?;
        self.machine.hold(value.text_length())?;
        Ok(value)
    }

    /// Returns true for a variable that is not set, or set to `$null`: it is one item of `@( … )` and of
    /// a pipeline. The empty output of a command is none.
    pub(super) fn is_not_set(&self, expression: &Expression) -> bool {
        matches!(expression, Expression::Variable(name) if !self.variables.contains_key(name))
    }

    /// The same for statements that are only a variable.
    pub(super) fn is_null_variable(&self, statements: &[Statement]) -> bool {
        let [statement] = statements else {
            return false;
        };
        matches!(statement.only_element(), Some(Element::Expression(only)) if self.is_not_set(only))
    }

    fn expression_of(&mut self, expression: &Expression) -> Result<PsValue> {
        match expression {
            Expression::Text(text) => Ok(PsValue::Text(text.clone())),
            // A word in canonical form of a number is a number.
            Expression::Word(text) => Ok(match text.parse::<i64>() {
                Ok(number) if number.to_string() == *text => PsValue::Number(number),
                _ => PsValue::Text(text.clone()),
            }),
            Expression::Number(number) => Ok(PsValue::Number(*number)),
            Expression::Filled(pieces) => self.filled(pieces),
            Expression::Variable(name) => self.used_variable(name),
            Expression::List(items) => self.expressions(items).map(PsValue::List),
            Expression::Group(statement) => self.value_of(statement),
            Expression::Script(statements) => self.block(statements),
            Expression::Array(statements) => self.array(statements),
            Expression::Table(entries) => self.table(entries),
            Expression::Block(statements) => Ok(PsValue::Block(statements.clone())),
            Expression::Type(name) => Ok(PsValue::Type(name.clone())),
            Expression::Cast(to, operand) => {
                let value = self.expression(operand)?;
                super::operators::cast(to, value)
            }
            Expression::Unary(operator, operand) => {
                let value = self.expression(operand)?;
                super::operators::unary(operator, value)
            }
            Expression::Binary(operator, left, right) => self.binary(operator, left, right),
            Expression::Member(member) => {
                let of = self.expression(&member.of)?;
                self.member(of, &member.name, member.is_static)
            }
            Expression::Call(method, arguments) => {
                let of = self.expression(&method.of)?;
                let arguments = self.expressions(arguments)?;
                if let (PsValue::Table(_), "add" | "remove") = (&of, method.name.as_str()) {
                    return self.change_table(&method.of, &method.name, &arguments);
                }
                self.call(of, &method.name, method.is_static, &arguments)
            }
            Expression::Index(of, index) => {
                let of = self.expression(of)?;
                let index = self.expression(index)?;
                let value = super::operators::index(of, &index)?;
                self.check_strict(&value)?;
                Ok(value)
            }
            // The parser has refused the script.
            Expression::Other(what, _) => error::unclear(format!("{what} is not supported")),
        }
    }

    /// The value of `@( … )`.
    fn array(&mut self, statements: &[Statement]) -> Result<PsValue> {
        let value = match statements {
            // Unlike a statement, an expression alone does not end the errors in it.
            [only] if matches!(only.only_element(), Some(Element::Expression(_))) => {
                self.statement(only)?
            }
            statements => self.block(statements)?,
        };
        Ok(match value {
            PsValue::List(items) => PsValue::List(items),
            PsValue::Null if self.is_null_variable(statements) => {
                PsValue::List(vec![PsValue::Null])
            }
            other => PsValue::List(other.items()),
        })
    }

    fn expressions(&mut self, items: &[Expression]) -> Result<Vec<PsValue>> {
        items.iter().map(|item| self.expression(item)).collect()
    }

    fn table(&mut self, entries: &[(Expression, Statement)]) -> Result<PsValue> {
        let mut table: Vec<(String, PsValue)> = Vec::new();
        for (key, value) in entries {
            let key = self.expression(key)?.text()?.to_lowercase();
            if key.parse::<i64>().is_ok() || table.iter().any(|(known, _)| *known == key) {
                return error::unclear(format!("the key {key} is a number or repeated"));
            }
            table.push((key, self.statement(value)?));
        }
        Ok(PsValue::Table(table.into()))
    }

    fn binary(&mut self, operator: &str, left: &Expression, right: &Expression) -> Result<PsValue> {
        let left = self.expression(left)?;
        // The right side is evaluated only if the left one does not decide.
        match operator {
            "and" if !left.to_bool()? => return Ok(PsValue::Bool(false)),
            "or" if left.to_bool()? => return Ok(PsValue::Bool(true)),
            _ => {}
        }
        let right = self.expression(right)?;
        // The right side decides, and may be a comparison of digests.
        if matches!(operator, "and" | "or") && matches!(right, PsValue::Matches { .. }) {
            return Ok(right);
        }
        if let "match" | "imatch" | "cmatch" | "notmatch" = operator
            && let PsValue::Text(_) | PsValue::Number(_) = &left
        {
            let text = left.text()?;
            let found = super::patterns::groups(&text, &right.text()?, operator == "cmatch")?;
            let is_match = found.is_some();
            if let Some(groups) = found {
                self.variables
                    .insert("matches".to_owned(), PsValue::Table(groups.into()));
            }
            return Ok(PsValue::Bool(is_match != (operator == "notmatch")));
        }
        super::operators::binary(operator, left, right)
    }

    fn filled(&mut self, pieces: &[StringPart]) -> Result<PsValue> {
        let mut out = String::new();
        for piece in pieces {
            let value = match piece {
                StringPart::Text(text) => PsValue::Text(text.clone()),
                StringPart::Variable(name) => self.used_variable(name)?,
                StringPart::Script(statements) => self.block(statements)?,
            };
            match value.text() {
                Ok(text) => out.push_str(&text),
                Err(error) => return Ok(PsValue::Opaque(error)),
            }
            if out.len() > 1 << 18 {
                return error::unclear("string too long");
            }
        }
        Ok(PsValue::Text(out))
    }
}

/// Returns true if these statements only print.
pub(super) fn only_prints(statements: &[Statement]) -> bool {
    let is_output = |name: &str| {
        let verb = name.get(..6).unwrap_or_default();
        verb.eq_ignore_ascii_case("write-") || name.eq_ignore_ascii_case("echo")
    };
    let prints = |element: &Element| match element {
        Element::Expression(expression) => matches!(
            expression,
            Expression::Text(_) | Expression::Filled(_) | Expression::Variable(_)
        ),
        Element::Command(command) => {
            matches!(&command.name, Expression::Word(name) if is_output(name))
                && command.redirects.is_empty()
        }
    };
    statements.iter().all(|statement| {
        matches!(statement, Statement::Pipeline(pipeline) if pipeline.elements.iter().all(prints))
    })
}
