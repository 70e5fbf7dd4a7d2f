//! Evaluation of statements, pipelines and commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use wincimg_windows::path::ImagePath;
use wincimg_windows::quoting::powershell::native_command_line;

use super::super::error::{ScriptError, ScriptErrorKind};
use super::super::image::{Deferred, ImageAction, Lookup};
use super::super::process::Process;
use super::super::tools;
use super::super::traced_text::TracedText;
use super::super::variables::unknown_variable;
use super::ast::{
    Argument, CommandAst, ControlFlow, Element, Expression, Pipeline, Redirect, Statement,
    StringPart,
};
use super::flow::Function;
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
    pub(super) is_ok: bool,
    pub(super) last_exit: Option<i32>,
    pub(super) left_out: LeftOut,
    /// True if the script has loaded the types that unpack zip files.
    pub(super) has_zip: bool,
    /// Pending `break`, `continue` or `return`.
    pub(super) flow: Option<ControlFlow>,
    pub(super) functions: BTreeMap<String, Function>,
    /// Depth of nested calls.
    pub(super) calls: usize,
    pub(super) depth: usize,
    /// Depth of script files.
    pub(super) scripts: usize,
    /// Number of programs of `Start-Process -PassThru` that nothing has waited for.
    pub(super) unawaited: u32,
    /// The current pipeline.
    pub(super) pipeline: PipelineKind,
    /// Files that the current pipelines read.
    pub(super) read_files: Vec<ImagePath>,
}

/// Commands without effect that were left out: what Windows says of them is unknown.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// The last command: `$?` is that of its success.
    pub(super) command: Option<String>,
    /// The last program: so is `$LASTEXITCODE`.
    pub(super) program: Option<String>,
    /// True where a failure would fail the build.
    is_success_assumed: bool,
}

/// Number of commands in a pipeline. PowerShell waits for a program with windows only in one of
/// several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PipelineKind {
    #[default]
    One,
    Several,
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
            is_ok: true,
            last_exit: None,
            left_out: LeftOut::default(),
            has_zip: is_core,
            flow: None,
            functions: BTreeMap::new(),
            calls: 0,
            depth: 0,
            pipeline: PipelineKind::default(),
            read_files: Vec::new(),
            scripts: 0,
            unawaited: 0,
        }
    }
}

impl Shell<'_, '_> {
    /// Runs statements and returns their output.
    pub(super) fn block(&mut self, statements: &[Statement]) -> Result<PsValue, ScriptError> {
        let mut out = Vec::new();
        for statement in statements {
            if self.exit.is_some() || self.flow.is_some() {
                break;
            }
            out.extend(self.statement(statement)?.items());
        }
        Ok(PsValue::from_items(out))
    }

    pub(super) fn position(&self, at: usize) -> usize {
        self.script.origin(at)
    }

    pub(super) fn statement(&mut self, statement: &Statement) -> Result<PsValue, ScriptError> {
        let was_running = self.unawaited > 0;
        let value = self.run_statement(statement)?;
        if was_running && self.unawaited > 0 {
            let why = "the script goes on while the program of Start-Process runs";
            return Err(ScriptError::windows(why).help("add -Wait"));
        }
        Ok(value)
    }

    fn run_statement(&mut self, statement: &Statement) -> Result<PsValue, ScriptError> {
        self.machine.step()?;
        match statement {
            Statement::Pipeline(pipeline) => {
                let at = self.position(pipeline.at);
                self.pipeline(pipeline)
                    .map_err(|error| error.at_position(at))
            }
            Statement::Assign {
                to,
                operator,
                value,
                at,
            } => {
                let place = self.position(*at);
                self.assign(to, *operator, value)
                    .map_err(|error| error.at_position(place))?;
                Ok(PsValue::Null)
            }
            Statement::If {
                clauses,
                otherwise,
                at,
            } => {
                let place = self.position(*at);
                self.condition(clauses, otherwise)
                    .map_err(|error| error.in_command("if", place))
            }
            Statement::ForEach {
                variable,
                items,
                body,
                at,
            } => self.for_each(variable, items, body, self.position(*at)),
            Statement::Loop {
                test,
                continues_if,
                tests_last,
                body,
                at,
            } => {
                let place = self.position(*at);
                self.run_loop(test, *continues_if, *tests_last, body)
                    .map_err(|error| error.in_command("while", place))
            }
            Statement::Try {
                body,
                catch,
                has_typed_catch,
                finally,
            } => self.run_try(body, catch.as_deref(), *has_typed_catch, finally),
            Statement::Function {
                name,
                parameters,
                body,
            } => {
                let function = Function {
                    parameters: parameters.clone(),
                    body: body.clone(),
                    script: Arc::clone(&self.script),
                    file: self.file.clone(),
                };
                self.functions.insert(name.clone(), function);
                Ok(PsValue::Null)
            }
            Statement::Flow { flow, value } => {
                let value = match value {
                    Some(value) => self.statement(value)?,
                    None => PsValue::Null,
                };
                self.flow = Some(*flow);
                Ok(value)
            }
            Statement::Throw { at } => Err(ScriptError::fails("the script throws an error")
                .in_command("throw", self.position(*at))),
            Statement::Exit { code, at } => self
                .exit(code.as_ref())
                .map_err(|error| error.in_command("exit", self.position(*at))),
        }
    }

    /// Runs an `if`. A condition on a file digest becomes a verification if the branch for a
    /// mismatch fails the build.
    fn condition(
        &mut self,
        clauses: &[(Statement, Vec<Statement>)],
        otherwise: &[Statement],
    ) -> Result<PsValue, ScriptError> {
        for (test, body) in clauses {
            let fails = |statements| self.always_fails(statements) || exits_with_last(statements);
            let is_check = clauses.len() == 1 && (fails(body) || fails(otherwise));
            let value = self.assuming_success(is_check, |shell| shell.statement(test))?;
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
                return Err(ScriptError::unclear(
                    "a condition on a file digest may only fail the build",
                ));
            }
            self.machine.apply(ImageAction::Verify {
                path,
                algorithm,
                digest,
            })?;
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
        let outer = std::mem::replace(&mut self.left_out.is_success_assumed, is_check);
        let value = run(self);
        self.left_out.is_success_assumed = outer;
        value
    }

    /// Returns true if these statements always fail the build.
    pub(super) fn always_fails(&self, statements: &[Statement]) -> bool {
        statements.iter().any(|statement| match statement {
            Statement::Throw { .. } => true,
            Statement::Exit {
                code: Some(Expression::Number(code)),
                ..
            } => *code != 0,
            Statement::Pipeline(pipeline) => match pipeline.elements.as_slice() {
                [Element::Command(command)] => {
                    matches!(&command.name, Expression::Word(name) if name.eq_ignore_ascii_case("write-error"))
                        && self.on_error() == ErrorAction::Stop
                        && command.arguments.iter().all(|argument| {
                            !matches!(argument, Argument::Parameter { name, .. } if name.starts_with("ea") || name.starts_with("error"))
                        })
                }
                _ => false,
            },
            _ => false,
        })
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<PsValue, ScriptError> {
        let outer = self.read_files.len();
        let result = self.elements(pipeline);
        self.read_files.truncate(outer);
        result
    }

    fn elements(&mut self, pipeline: &Pipeline) -> Result<PsValue, ScriptError> {
        let mut input: Option<PsValue> = None;
        let mut all_ok = true;
        let mut skipped = None;
        self.pipeline = match pipeline.elements.as_slice() {
            [_] => PipelineKind::One,
            _ => PipelineKind::Several,
        };
        for element in &pipeline.elements {
            input = Some(match element {
                Element::Expression(expression) => {
                    let value = self.expression(expression)?;
                    if !matches!(expression, Expression::Group(_)) {
                        self.is_ok = true;
                        self.left_out.command = None;
                    }
                    value
                }
                Element::Command(command) => self.command(command, input)?,
            });
            // A pipeline fails if any element fails.
            all_ok &= self.is_ok;
            self.is_ok = all_ok;
            skipped = skipped.or(self.left_out.command.take());
        }
        self.left_out.command = skipped;
        Ok(input.unwrap_or(PsValue::Null))
    }

    fn command(
        &mut self,
        command: &CommandAst,
        input: Option<PsValue>,
    ) -> Result<PsValue, ScriptError> {
        self.machine.step()?;
        let at = self.position(command.at);
        let name = self
            .expression(&command.name)
            .map_err(|error| error.at_position(at))?;
        if let PsValue::Block(statements) = name {
            if command.is_dotted {
                let why = "a block after a dot is not supported";
                return Err(ScriptError::unclear(why).at_position(at));
            }
            let function = Function {
                parameters: Vec::new(),
                body: statements,
                script: Arc::clone(&self.script),
                file: self.file.clone(),
            };
            let value = self.call_function(&function, command);
            let value = value.map_err(|error| error.at_position(at))?;
            return self.redirected(command, value);
        }
        let name = name.text().map_err(|error| error.at_position(at))?;
        self.named_command(&name, command, input)
            .map_err(|error| error.in_command(&name, at))
    }

    fn named_command(
        &mut self,
        name: &str,
        command: &CommandAst,
        input: Option<PsValue>,
    ) -> Result<PsValue, ScriptError> {
        let lower = name.to_lowercase();
        let cmdlet = self.alias(&lower);
        self.is_ok = true;
        self.left_out.command = None;
        if command.is_dotted {
            if input.is_some() || !super::script_file::is_script(name) {
                let why = "after a dot, only a script file is supported";
                return Err(ScriptError::unclear(why));
            }
            let value = self.script_file(name, command)?;
            return self.redirected(command, value);
        }
        if let Some(function) = self.functions.get(&lower).cloned() {
            if input.is_some() {
                return Err(ScriptError::unclear(
                    "piping output to a function is not supported",
                ));
            }
            let value = self.call_function(&function, command)?;
            return self.redirected(command, value);
        }
        let is_of_package = self.machine.is_in_package && super::chocolatey::is_function(&cmdlet);
        let value = if is_of_package || cmdlet.contains('-') && super::cmdlets::is_cmdlet(&cmdlet) {
            let result = if is_of_package {
                self.chocolatey_function(&cmdlet, command)
            } else {
                self.cmdlet(&cmdlet, command, input)
            };
            match result {
                Err(error) if error.kind == ScriptErrorKind::Fails => {
                    let action = self.error_action(command)?;
                    let at = self.position(command.at);
                    self.handle_error(action, error.in_command(name, at))?;
                    PsValue::Null
                }
                other => {
                    let at = self.position(command.at);
                    let error = self.machine.error.take();
                    self.machine.error = error.map(|error| error.in_command(name, at));
                    other?
                }
            }
        } else if is_verb_noun(&lower) {
            return Err(ScriptError::unclear("unsupported cmdlet"));
        } else {
            if input.is_some() {
                return Err(ScriptError::unclear(
                    "piping output to a program is not supported",
                ));
            }
            if super::script_file::is_script(name) {
                self.script_file(name, command)?
            } else {
                self.native(name, command)?
            }
        };
        self.redirected(command, value)
    }

    /// Records an error, or returns it if it ends the script.
    pub(super) fn handle_error(
        &mut self,
        action: ErrorAction,
        error: ScriptError,
    ) -> Result<(), ScriptError> {
        match action {
            ErrorAction::Stop => Err(error),
            ErrorAction::Continue => {
                self.is_ok = false;
                self.machine.error = Some(error);
                Ok(())
            }
        }
    }

    /// Handles a failure of a command; other errors are returned.
    pub(super) fn handle_result(
        &mut self,
        action: ErrorAction,
        done: Result<(), ScriptError>,
    ) -> Result<(), ScriptError> {
        match done {
            Err(error) if error.kind == ScriptErrorKind::Fails => self.handle_error(action, error),
            done => done,
        }
    }

    pub(super) fn on_error(&self) -> ErrorAction {
        match self.variables.get("erroractionpreference") {
            Some(PsValue::Text(text)) if text.eq_ignore_ascii_case("stop") => ErrorAction::Stop,
            _ => ErrorAction::Continue,
        }
    }

    pub(super) fn error_action(
        &mut self,
        command: &CommandAst,
    ) -> Result<ErrorAction, ScriptError> {
        let mut arguments = command.arguments.iter().peekable();
        while let Some(argument) = arguments.next() {
            let Argument::Parameter { name, value, .. } = argument else {
                continue;
            };
            if name == "ea" || (name.len() > 5 && "erroraction".starts_with(name.as_str())) {
                let value = match (value, arguments.peek()) {
                    (Some(value), _) | (None, Some(Argument::Value(value))) => {
                        self.expression(value)?
                    }
                    _ => return Err(ScriptError::option(name)),
                };
                return Ok(match value.text()?.to_lowercase().as_str() {
                    "stop" => ErrorAction::Stop,
                    "continue" | "silentlycontinue" | "ignore" | "0" => ErrorAction::Continue,
                    other => return Err(ScriptError::option(other)),
                });
            }
        }
        Ok(self.on_error())
    }

    /// Runs a program with the command line that PowerShell builds.
    fn native(&mut self, name: &str, command: &CommandAst) -> Result<PsValue, ScriptError> {
        if super::super::cmd::is_batch(name) && !name.contains(['\\', '/']) {
            return Err(ScriptError::unclear(format!(
                "PowerShell does not run {name} from the working folder: write .\\{name}"
            )));
        }
        let mut words = vec![name.to_owned()];
        for argument in &command.arguments {
            match argument {
                Argument::Value(Expression::List(items)) if items.iter().all(is_bare) => {
                    let texts: Vec<String> = items
                        .iter()
                        .map(|item| self.expression(item)?.text())
                        .collect::<Result<_, _>>()?;
                    words.push(texts.join(","));
                }
                Argument::Value(value) => {
                    let texts = self.expression(value)?.texts()?;
                    let has_home = |text: &String| {
                        text == "~" || text.starts_with("~/") || text.starts_with(r"~\")
                    };
                    if self.is_core && is_bare(value) && texts.iter().any(has_home) {
                        return Err(ScriptError::unclear(
                            "PowerShell 7.5 replaces ~ by the home folder, earlier versions do not",
                        )
                        .help("write $HOME, or quote ~"));
                    }
                    words.extend(texts);
                }
                Argument::Parameter { written, value, .. } => match value {
                    None => words.push(written.clone()),
                    Some(value) => {
                        let value = self.expression(value)?.text()?;
                        words.push(format!("{written}:{value}"));
                    }
                },
                Argument::Splat(_) => return Err(ScriptError::unclear("@ is not supported here")),
            }
        }
        let empty = words.iter().skip(1).any(String::is_empty);
        if empty {
            words = std::iter::once(words[0].clone())
                .chain(words.into_iter().skip(1).filter(|word| !word.is_empty()))
                .collect();
        }
        if tools::program_name(name) == "msiexec" && self.pipeline == PipelineKind::One {
            let why = "PowerShell does not wait for it, and the build may end before it";
            let help = "use Start-Process msiexec -Wait -ArgumentList …";
            return Err(ScriptError::refused(why).help(help));
        }
        let line = native_command_line(&words);
        let at = self.position(command.at);
        let before = self.machine.error.take();
        let outer = self.machine.skipped.take();
        let code = tools::command_line(self.machine, &TracedText::from_one(&line, at))?;
        self.left_out.command.clone_from(&self.machine.skipped);
        self.left_out.program.clone_from(&self.machine.skipped);
        self.machine.skipped = self.machine.skipped.take().or(outer);
        self.last_exit = Some(code);
        self.is_ok = code == 0;
        if code == 0 {
            self.machine.error = before;
        } else {
            self.machine.set_exit_code(code, name, at);
        }
        Ok(PsValue::opaque(format!("the output of {name} is used")))
    }

    /// Applies the redirections of a command to its output.
    fn redirected(&mut self, command: &CommandAst, value: PsValue) -> Result<PsValue, ScriptError> {
        let mut value = value;
        for redirect in &command.redirects {
            let Redirect::File {
                stream,
                append,
                file,
            } = redirect
            else {
                continue;
            };
            let file = self.expression(file)?;
            if file == PsValue::Null
                || matches!(&file, PsValue::Text(name) if name.eq_ignore_ascii_case("nul"))
            {
                if *stream <= 1 {
                    value = PsValue::Null;
                }
                continue;
            }
            if *stream != 1 {
                return Err(ScriptError::unclear(
                    "redirecting errors to a file is not supported",
                ));
            }
            let output = std::mem::replace(&mut value, PsValue::Null);
            self.out_file(&file.text()?, &output, *append, None)?;
        }
        Ok(value)
    }

    /// The output of a statement; in an expression, an assignment has the assigned value.
    fn value_of(&mut self, statement: &Statement) -> Result<PsValue, ScriptError> {
        let value = self.statement(statement)?;
        match statement {
            Statement::Assign { to, .. } => match to {
                Expression::Variable(name) => Ok(self.variable(name)),
                Expression::Cast(_, inner) => self.expression(inner),
                _ => Ok(value),
            },
            _ => Ok(value),
        }
    }

    fn assign(
        &mut self,
        to: &Expression,
        operator: char,
        statement: &Statement,
    ) -> Result<(), ScriptError> {
        let mut value = self.value_of(statement)?;
        if matches!(statement, Statement::Pipeline(pipeline) if matches!(pipeline.elements.as_slice(), [Element::Expression(_)]))
        {
            self.is_ok = true;
        }
        match to {
            Expression::Variable(name) => {
                if operator != '=' {
                    let before = self.variable(name);
                    value = super::operators::binary(&operator.to_string(), before, value)?;
                }
                self.set_variable(name, value)
            }
            Expression::Cast(kind, inner) => match inner.as_ref() {
                Expression::Variable(name) if operator == '=' => {
                    let value = super::operators::typed(kind, value)?;
                    self.types.remove(without_scope(name));
                    self.set_variable(name, value)?;
                    self.types
                        .insert(without_scope(name).to_owned(), kind.clone());
                    Ok(())
                }
                _ => Err(ScriptError::unclear("unsupported assignment")),
            },
            Expression::Member {
                of,
                name,
                is_static: true,
            } => {
                let is_idle = matches!(of.as_ref(), Expression::Type(of) if of == "net.servicepointmanager")
                    && matches!(
                        name.as_str(),
                        "securityprotocol"
                            | "expect100continue"
                            | "servercertificatevalidationcallback"
                            | "checkcertificaterevocationlist"
                            | "defaultconnectionlimit"
                    );
                if is_idle {
                    // Network settings of the process do not change the image.
                    Ok(())
                } else {
                    Err(ScriptError::unclear(format!(
                        "setting {name} is not supported"
                    )))
                }
            }
            _ => Err(ScriptError::unclear("unsupported assignment")),
        }
    }

    pub(super) fn set_variable(&mut self, name: &str, value: PsValue) -> Result<(), ScriptError> {
        if let Some(variable) = name.strip_prefix("env:") {
            let value = match value {
                PsValue::Null => None,
                value => Some(value.text()?).filter(|text| !text.is_empty()),
            };
            self.machine.variables.set(variable, value);
            return Ok(());
        }
        let plain = without_scope(name);
        if plain != name && !name.starts_with("local:") {
            if self.calls > 0 {
                return Err(ScriptError::unclear(
                    "a function sets a variable of its calling script",
                ));
            }
            if self.scripts > 0 {
                return Err(ScriptError::unclear(
                    "a script file sets a variable of its calling script",
                ));
            }
        }
        if plain.contains(':') || plain.starts_with("ps") {
            return Err(ScriptError::unclear(format!(
                "setting ${name} is not supported"
            )));
        }
        if plain != "null" {
            self.put_variable(plain, value)?;
        }
        Ok(())
    }

    /// Sets a variable of the current scope, whose type converts the value.
    pub(super) fn put_variable(&mut self, name: &str, value: PsValue) -> Result<(), ScriptError> {
        let value = match self.types.get(name) {
            Some(kind) => super::operators::typed(kind, value)?,
            None => value,
        };
        self.variables.insert(name.to_owned(), value.check_size()?);
        Ok(())
    }

    pub(super) fn variable(&self, name: &str) -> PsValue {
        if let Some(variable) = name.strip_prefix("env:") {
            return match self.machine.variable(variable) {
                Lookup::Present(value) => PsValue::Text(value),
                Lookup::Absent => PsValue::Null,
                Lookup::Deferred(Deferred) => PsValue::Opaque(ScriptError::later(format!(
                    "$env:{variable} depends on a download"
                ))),
                Lookup::Unknown => {
                    PsValue::Opaque(unknown_variable(variable, &format!("$env:{variable}")))
                }
            };
        }
        match without_scope(name) {
            "true" => PsValue::Bool(true),
            "false" => PsValue::Bool(false),
            "null" => PsValue::Null,
            "?" | "lastexitcode"
                if !self.left_out.is_success_assumed
                    && let Some(what) = if name == "?" {
                        &self.left_out.command
                    } else {
                        &self.left_out.program
                    } =>
            {
                PsValue::Opaque(Process::depends_on(what))
            }
            "?" => PsValue::Bool(self.is_ok),
            "pwd" => PsValue::Text(self.machine.folder.to_string()),
            "psitem" => self.variables.get("_").cloned().unwrap_or(PsValue::Null),
            "lastexitcode" => match self.last_exit {
                Some(code) => PsValue::Number(i64::from(code)),
                None => PsValue::Null,
            },
            "home" => match self.machine.variables.profile() {
                Some(profile) => PsValue::Text(profile),
                None => PsValue::opaque("$home is known only on Windows"),
            },
            plain => match self.variables.get(plain) {
                Some(value) => value.clone(),
                None if is_automatic(plain) => {
                    PsValue::opaque(format!("${plain} is known only on Windows"))
                }
                None => PsValue::Null,
            },
        }
    }

    pub(super) fn expression(&mut self, expression: &Expression) -> Result<PsValue, ScriptError> {
        if self.depth == DEPTH {
            return Err(ScriptError::unclear("expressions are nested too deeply"));
        }
        self.depth += 1;
        let value = self.expression_of(expression);
        self.depth -= 1;
        value
    }

    fn expression_of(&mut self, expression: &Expression) -> Result<PsValue, ScriptError> {
        match expression {
            Expression::Text(text) => Ok(PsValue::Text(text.clone())),
            // A word in canonical form of a number is a number.
            Expression::Word(text) => Ok(match text.parse::<i64>() {
                Ok(number) if number.to_string() == *text => PsValue::Number(number),
                _ => PsValue::Text(text.clone()),
            }),
            Expression::Number(number) => Ok(PsValue::Number(*number)),
            Expression::Filled(pieces) => self.filled(pieces),
            Expression::Variable(name) => Ok(self.variable(name)),
            Expression::List(items) => {
                let items = items
                    .iter()
                    .map(|item| self.expression(item))
                    .collect::<Result<_, _>>()?;
                Ok(PsValue::List(items))
            }
            Expression::Group(statement) => self.value_of(statement),
            Expression::Script(statements) => self.block(statements),
            Expression::Array(statements) => {
                let value = self.block(statements)?;
                Ok(match value {
                    PsValue::List(items) => PsValue::List(items),
                    other => PsValue::List(other.items()),
                })
            }
            Expression::Table(entries) => {
                let mut table = Vec::new();
                for (key, value) in entries {
                    let key = self.expression(key)?.text()?.to_lowercase();
                    table.push((key, self.statement(value)?));
                }
                Ok(PsValue::Table(table))
            }
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
            Expression::Member {
                of,
                name,
                is_static,
            } => {
                let of = self.expression(of)?;
                super::methods::member(of, name, *is_static)
            }
            Expression::Call {
                of,
                name,
                is_static,
                arguments,
            } => {
                let of = self.expression(of)?;
                let arguments = arguments
                    .iter()
                    .map(|argument| self.expression(argument))
                    .collect::<Result<Vec<_>, _>>()?;
                let value = self.call(of, name, *is_static, &arguments)?;
                self.is_ok = true;
                Ok(value)
            }
            Expression::Index(of, index) => {
                let of = self.expression(of)?;
                let index = self.expression(index)?;
                super::operators::index(of, &index)
            }
        }
    }

    fn binary(
        &mut self,
        operator: &str,
        left: &Expression,
        right: &Expression,
    ) -> Result<PsValue, ScriptError> {
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
        if let "match" | "imatch" | "cmatch" = operator
            && let PsValue::Text(text) = &left
        {
            let found = super::patterns::groups(text, &right.text()?, operator == "cmatch")?;
            let is_match = found.is_some();
            if let Some(groups) = found {
                self.variables
                    .insert("matches".to_owned(), PsValue::Table(groups));
            }
            return Ok(PsValue::Bool(is_match));
        }
        super::operators::binary(operator, left, right)
    }

    fn filled(&mut self, pieces: &[StringPart]) -> Result<PsValue, ScriptError> {
        let mut out = String::new();
        for piece in pieces {
            let value = match piece {
                StringPart::Text(text) => PsValue::Text(text.clone()),
                StringPart::Variable(name) => self.variable(name),
                StringPart::Script(statements) => self.block(statements)?,
            };
            match value.text() {
                Ok(text) => out.push_str(&text),
                Err(error) => return Ok(PsValue::Opaque(error)),
            }
            if out.len() > 1 << 18 {
                return Err(ScriptError::unclear("string too long"));
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

/// Returns true if these statements end the script with the exit code of the last program.
fn exits_with_last(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| {
        matches!(statement, Statement::Exit { code: Some(Expression::Variable(name)), .. } if name == "lastexitcode")
    })
}

/// Returns true if a program gets an argument as written.
fn is_bare(expression: &Expression) -> bool {
    matches!(expression, Expression::Word(_))
}

fn without_scope(name: &str) -> &str {
    ["global:", "script:", "local:", "private:", "variable:"]
        .iter()
        .find_map(|scope| name.strip_prefix(scope))
        .unwrap_or(name)
}

/// Returns true for an automatic variable of PowerShell.
fn is_automatic(name: &str) -> bool {
    name.contains(':')
        || name.starts_with("ps")
        || matches!(
            name,
            "args"
                | "error"
                | "host"
                | "input"
                | "matches"
                | "myinvocation"
                | "ofs"
                | "pid"
                | "profile"
                | "shellid"
                | "$"
                | "^"
                | "iswindows"
                | "islinux"
                | "executioncontext"
                | "stacktrace"
                | "this"
                | "outputencoding"
        )
}

/// Returns true for a name of the form Verb-Noun with a verb of PowerShell's cmdlets; other names,
/// such as `redis-server`, are programs.
fn is_verb_noun(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(char::is_alphanumeric);
    name.split_once('-')
        .is_some_and(|(verb, noun)| VERBS.contains(&verb) && is_word(noun))
}

/// Approved verbs of cmdlets, and those of `ForEach-Object` and its like.
const VERBS: [&str; 102] = [
    "add",
    "approve",
    "assert",
    "backup",
    "block",
    "build",
    "checkpoint",
    "clear",
    "close",
    "compare",
    "complete",
    "compress",
    "confirm",
    "connect",
    "convert",
    "convertfrom",
    "convertto",
    "copy",
    "debug",
    "deny",
    "deploy",
    "disable",
    "disconnect",
    "dismount",
    "edit",
    "enable",
    "enter",
    "exit",
    "expand",
    "export",
    "find",
    "foreach",
    "format",
    "get",
    "grant",
    "group",
    "hide",
    "import",
    "initialize",
    "install",
    "invoke",
    "join",
    "limit",
    "lock",
    "measure",
    "merge",
    "mount",
    "move",
    "new",
    "open",
    "optimize",
    "out",
    "ping",
    "pop",
    "protect",
    "publish",
    "push",
    "read",
    "receive",
    "redo",
    "register",
    "remove",
    "rename",
    "repair",
    "request",
    "reset",
    "resize",
    "resolve",
    "restart",
    "restore",
    "resume",
    "revoke",
    "save",
    "search",
    "select",
    "send",
    "set",
    "show",
    "skip",
    "sort",
    "split",
    "start",
    "step",
    "stop",
    "submit",
    "suspend",
    "switch",
    "sync",
    "tee",
    "test",
    "trace",
    "unblock",
    "undo",
    "uninstall",
    "unlock",
    "unprotect",
    "unpublish",
    "unregister",
    "update",
    "use",
    "wait",
    "watch",
];
