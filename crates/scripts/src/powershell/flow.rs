//! Loops, functions, script blocks and error handling.

use std::sync::Arc;

use wincimg_windows::path::ImagePath;

use super::super::error::{self, Ends, Result, ScriptError, ScriptErrorKind};
use super::super::image::{ImageAction, Lookup};
use super::super::process::Process;
use super::super::traced_text::TracedText;
use super::ast::{
    Argument, CommandAst, ControlFlow, Expression, ForEach, Loop, Statement, Test, Try,
};
use super::eval::{Shell, only_prints};
use super::script_file::{file_variables, locate};
use super::status::Status;
use super::value::PsValue;

/// Maximum depth of nested calls.
const CALLS: usize = 16;

#[derive(Debug, Clone)]
pub(super) struct Function {
    /// Parameters with their defaults.
    pub(super) parameters: Vec<(String, Option<Expression>)>,
    pub(super) body: Vec<Statement>,
    /// The script that defines it.
    pub(super) script: Arc<TracedText>,
    /// Path of the script, if it is a file.
    pub(super) file: Option<ImagePath>,
}

impl Shell<'_, '_> {
    /// Returns true if the current loop ends; `continue` is consumed.
    pub(super) fn ends_loop(&mut self) -> bool {
        match self.flow {
            Some(ControlFlow::Continue) => {
                self.flow = None;
                self.exit.is_some()
            }
            Some(ControlFlow::Break) => {
                self.flow = None;
                true
            }
            Some(ControlFlow::Return) => true,
            None => self.exit.is_some(),
        }
    }

    /// A function that the current script defines.
    pub(super) fn function(
        &self,
        parameters: Vec<(String, Option<Expression>)>,
        body: Vec<Statement>,
    ) -> Function {
        Function {
            parameters,
            body,
            script: Arc::clone(&self.script),
            file: self.file.clone(),
        }
    }

    pub(super) fn for_each(&mut self, each: &ForEach) -> Result<PsValue> {
        let place = self.position(each.at);
        let items = self.statement(&each.items)?;
        items
            .check_known()
            .map_err(|error| error.in_command("foreach", place))?;
        let mut out = Vec::new();
        for item in items.items() {
            self.machine.step()?;
            self.put_variable(&each.variable, item)?;
            out.extend(self.block(&each.body)?.items());
            if self.ends_loop() {
                break;
            }
        }
        Ok(PsValue::from_items(out))
    }

    pub(super) fn exit(&mut self, code: Option<&Expression>) -> Result<PsValue> {
        let code = match code {
            None if !self.status.has_failed => 0,
            None => return error::unclear("the exit code after a failed command is unknown"),
            Some(code) => {
                let value = self.assuming_success(true, |shell| shell.expression(code))?;
                value.check_known()?;
                value
                    .number()
                    .and_then(|code| i32::try_from(code).ok())
                    .ok_or_else(|| ScriptError::unclear("unsupported exit code"))?
            }
        };
        self.exit = Some(code);
        Ok(PsValue::Null)
    }

    /// Runs a command whose blocks have each item as `$_`, which ends with it.
    pub(super) fn with_items<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.variables.get("_").cloned();
        let done = run(self);
        match outer {
            Some(outer) => self.variables.insert("_".to_owned(), outer),
            None => self.variables.remove("_"),
        };
        done
    }

    /// Runs a block for one item of a pipeline; `return` ends only this item.
    pub(super) fn run_item_block(&mut self, statements: &[Statement]) -> Result<PsValue> {
        let value = self.block(statements)?;
        match self.flow.take() {
            None | Some(ControlFlow::Return) => Ok(value),
            Some(_) => error::unclear("break or continue in a pipeline ends the script"),
        }
    }

    pub(super) fn run_loop(&mut self, repeat: &Loop) -> Result<PsValue> {
        let (test, continues_if) = (&repeat.test, repeat.continues_if);
        if self.waits_for_module_cache(test, continues_if)? {
            return Ok(PsValue::Null);
        }
        let mut out = Vec::new();
        let mut is_tested = !repeat.tests_last;
        loop {
            self.machine.step()?;
            if is_tested && self.tested(test)?.to_bool()? != continues_if {
                return Ok(PsValue::from_items(out));
            }
            is_tested = true;
            let before = (self.machine.changes, self.variables.clone());
            out.extend(self.block(&repeat.body)?.items());
            if self.ends_loop() {
                return Ok(PsValue::from_items(out));
            }
            if before == (self.machine.changes, self.variables.clone())
                && self.tested(test)?.to_bool()? == continues_if
            {
                return error::windows(
                    "it waits for something that happens only on a running Windows",
                );
            }
        }
    }

    /// Skips a loop that ends when PowerShell has written its cache of modules, which makes its first
    /// start faster. What depends on the file later is unclear.
    fn waits_for_module_cache(&mut self, test: &Test, continues_if: bool) -> Result<bool> {
        let Lookup::Present(path) = self.machine.variable("PSModuleAnalysisCachePath") else {
            return Ok(false);
        };
        let path = self.machine.path(&path)?;
        if self.tested(test)?.to_bool()? != continues_if {
            return Ok(false);
        }
        self.machine.assumed_file = Some(path.clone());
        let value = self.tested(test).and_then(|value| value.to_bool());
        self.machine.assumed_file = None;
        if value? == continues_if {
            return Ok(false);
        }
        let what = format!("waiting for the module cache {path}");
        self.machine.apply(ImageAction::Skip(what))?;
        self.machine.apply(ImageAction::Unclear(path))?;
        Ok(true)
    }

    /// Records the error of a statement, or returns it if it ends more than that.
    pub(super) fn end_statement(&mut self, error: ScriptError) -> Result<()> {
        let goes_on = match error.ends {
            Ends::Command | Ends::Statement => true,
            Ends::Throw => self.ignores_errors(),
            Ends::Script => false,
        };
        if error.kind != ScriptErrorKind::Fails || !goes_on || self.tries > 0 {
            return Err(error.ending(Ends::Statement));
        }
        self.record_error(self.on_error(), error)?;
        self.status = Status {
            has_failed: true,
            left_out: None,
        };
        Ok(())
    }

    pub(super) fn run_try(&mut self, attempt: &Try) -> Result<PsValue> {
        let catch = attempt.catches.last();
        let outer = self.machine.skipped.take();
        let before = self.machine.changes;
        self.tries += 1;
        let tried = self.block(&attempt.body);
        if let (Some(what), Some(catch)) = (&self.machine.skipped, catch)
            && !self.always_fails(catch)
            && !(only_prints(catch) && attempt.body.len() == 1 && self.machine.changes == before)
        {
            return Err(Process::depends_on(what));
        }
        self.machine.skipped = self.machine.skipped.take().or(outer);
        let done = match (tried, catch) {
            (Err(failure), Some(_))
                if attempt.has_typed_catch && failure.kind == ScriptErrorKind::Fails =>
            {
                return error::unclear("catch for specific errors is not supported");
            }
            (Err(failure), Some(catch)) if failure.kind == ScriptErrorKind::Fails => self
                .with_items(|shell| {
                    let error = PsValue::opaque("the text of an error is used");
                    shell.variables.insert("_".to_owned(), error);
                    shell.block(catch)
                })
                .map_err(|error| caused_by(error, &failure)),
            (done, _) => done,
        };
        if matches!(&done, Err(failure) if failure.kind != ScriptErrorKind::Fails) {
            return done;
        }
        self.tries -= 1;
        // It runs after exit, too, and `$?` is that of its last command.
        let kept = (self.flow.take(), self.exit.take());
        let mut out = self.block(&attempt.finally)?.items();
        self.flow = self.flow.or(kept.0);
        self.exit = self.exit.or(kept.1);
        let mut all = done?.items();
        all.append(&mut out);
        Ok(PsValue::from_items(all))
    }

    /// An argument of a function, whose parameters may have no type.
    fn function_argument(&mut self, argument: &Expression) -> Result<PsValue> {
        let value = self.expression(argument)?;
        if let Expression::Word(_) = argument {
            value.check_literal()?;
        }
        Ok(value)
    }

    /// Calls a function; its variables end with it.
    pub(super) fn call_function(
        &mut self,
        function: &Function,
        command: &CommandAst,
    ) -> Result<PsValue> {
        if self.calls == CALLS {
            return error::unclear("function calls are nested too deeply");
        }
        let given = self.bind_function(function, command)?;
        let is_given = |name: &String| given.iter().any(|(own, _)| own == name);
        let parameters = function.parameters.iter();
        let others: Vec<_> = parameters.filter(|(name, _)| !is_given(name)).collect();
        let outer = (self.variables.clone(), std::mem::take(&mut self.types));
        self.variables.extend(given);
        self.calls += 1;
        let done = self
            .set_defaults(&others)
            .and_then(|()| self.function_body(function));
        self.calls -= 1;
        (self.variables, self.types) = outer;
        match self.flow {
            Some(ControlFlow::Return) | None => self.flow = None,
            Some(_) => return error::unclear("break or continue outside a loop of the function"),
        }
        done
    }

    /// Binds the arguments of a command to the parameters of a function.
    fn bind_function(
        &mut self,
        function: &Function,
        command: &CommandAst,
    ) -> Result<Vec<(String, PsValue)>> {
        let mut given: Vec<(String, PsValue)> = Vec::new();
        let mut positional = Vec::new();
        let mut arguments = command.arguments.iter().peekable();
        while let Some(argument) = arguments.next() {
            match argument {
                Argument::Value(value) => positional.push(self.function_argument(value)?),
                Argument::Parameter { name, value, .. } => {
                    let mut known = function.parameters.iter().map(|(known, _)| known);
                    let Some(own) = known.find(|known| *known == name).cloned() else {
                        return error::option(&format!("-{name}"));
                    };
                    let value = match (value, arguments.peek()) {
                        (Some(value), _) => self.function_argument(value)?,
                        (None, Some(Argument::Value(value))) => {
                            let value = self.function_argument(value)?;
                            arguments.next();
                            value
                        }
                        _ => return error::option(&format!("-{name}")),
                    };
                    given.push((own, value));
                }
                Argument::Splat(name) => {
                    return error::unclear(format!("@{name} is not supported here"));
                }
            }
        }
        let names = function.parameters.iter().map(|(name, _)| name);
        let free: Vec<&String> = names
            .filter(|name| !given.iter().any(|(known, _)| known == *name))
            .collect();
        if positional.len() > free.len() {
            return error::unclear("more arguments than supported");
        }
        let free = free.into_iter().cloned();
        given.extend(free.zip(positional));
        Ok(given)
    }

    /// Sets the parameters of a function that are not given: their defaults see the others.
    fn set_defaults(&mut self, parameters: &[&(String, Option<Expression>)]) -> Result<()> {
        for (name, default) in parameters {
            let default = default.as_ref().map(|default| self.expression(default));
            let value = default.transpose()?.unwrap_or(PsValue::Null);
            self.variables.insert(name.clone(), value);
        }
        Ok(())
    }

    /// Runs the body of a function, which another script may define.
    fn function_body(&mut self, function: &Function) -> Result<PsValue> {
        if Arc::ptr_eq(&self.script, &function.script) {
            return self.block(&function.body);
        }
        let script = std::mem::replace(&mut self.script, Arc::clone(&function.script));
        let file = std::mem::replace(&mut self.file, function.file.clone());
        let before = self.machine.error.take();
        self.variables.extend(file_variables(self.file.as_ref()));
        let done = self.block(&function.body);
        (self.script, self.file) = (script, file);
        let located = |error: ScriptError| match &function.file {
            Some(file) => locate(file, &function.script, error),
            None => error,
        };
        self.machine.error = self.machine.error.take().map(located).or(before);
        done.map_err(located)
    }
}

/// Adds the failure that a `catch` handles to the error of a command in it that cannot run.
fn caused_by(mut error: ScriptError, failure: &ScriptError) -> ScriptError {
    if error.kind.is_for_windows() {
        error.why = format!("{}; the failure before it: {failure}", error.why);
        error.help = error.help.or(failure.help);
    }
    error
}
