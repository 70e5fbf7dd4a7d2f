//! Pipelines and commands.

use std::collections::HashSet;

use wincimg_windows::quoting::powershell::native_command_line;

use super::super::error::{self, Ends, Result, ScriptError, ScriptErrorKind};
use super::super::process::{PathState, is_nul};
use super::super::tools;
use super::super::traced_text::TracedText;
use super::ast::{Argument, CommandAst, Element, Expression, Pipeline, Redirect};
use super::chocolatey::FUNCTIONS;
use super::cmdlets::is_cmdlet;
use super::content::WriteMode;
use super::eval::{ErrorAction, Shell};
use super::has_word;
use super::script_file::is_script;
use super::status::Status;
use super::value::{Input, PsValue};

impl Shell<'_, '_> {
    pub(super) fn pipeline(&mut self, pipeline: &Pipeline) -> Result<PsValue> {
        let outer = self.read_files.len();
        let result = self.elements(pipeline);
        self.read_files.truncate(outer);
        result
    }

    fn elements(&mut self, pipeline: &Pipeline) -> Result<PsValue> {
        let mut input: Input = None;
        let mut status: Option<Status> = None;
        let mut filters = self.filters_of_listing(pipeline);
        let mut listed = None;
        self.pipeline_length = pipeline.elements.len();
        for element in &pipeline.elements {
            input = Some(match element {
                Element::Expression(expression) => {
                    let value = self.expression(expression)?;
                    let is_item = pipeline.elements.len() > 1 && self.is_not_set(expression);
                    match value {
                        PsValue::Null if is_item => PsValue::List(vec![PsValue::Null]),
                        value => value,
                    }
                }
                Element::Command(command) => {
                    // The commands that it runs itself do not decide its success.
                    let outer = std::mem::take(&mut self.command_status);
                    let done = self.command(command, input);
                    let own = std::mem::replace(&mut self.command_status, outer);
                    let value = done?;
                    status = Some(status.unwrap_or_default().and(own));
                    if listed.is_none() && self.lists_all_first(command, &value) {
                        filters = None;
                    }
                    if filters.is_some() && listed.is_none() {
                        let folder = self.machine.folder.clone();
                        listed = Some((command, value.clone(), folder, self.machine.changes));
                    }
                    value
                }
            });
        }
        if let (Some(filters), Some((command, before, folder, changes))) = (filters, listed)
            && self.machine.changes > changes
        {
            let folder = std::mem::replace(&mut self.machine.folder, folder);
            let after = self.get_items(command, false);
            self.machine.folder = folder;
            let mut new = new_items(before, after)?;
            for filter in filters {
                new = self.command(filter, Some(new))?;
            }
            check_not_passed_on(new)?;
        }
        // An expression at its beginning is not a command of it.
        if let Some(status) = status {
            self.status = status;
        }
        Ok(input.unwrap_or(PsValue::Null))
    }

    /// The filters of a listing that Windows goes on with while the commands after them run.
    fn filters_of_listing<'p>(&self, pipeline: &'p Pipeline) -> Option<Vec<&'p CommandAst>> {
        let command = |element: &'p Element, cmdlet: &str| match element {
            Element::Command(command)
                if matches!(&command.name, Expression::Word(name)
                if self.alias(&name.to_lowercase()) == cmdlet) =>
            {
                Some(command)
            }
            _ => None,
        };
        let (first, rest) = pipeline.elements.split_first()?;
        command(first, "get-childitem")?;
        let filters: Vec<_> = rest
            .iter()
            .map_while(|element| command(element, "where-object"))
            .collect();
        let next = rest.get(filters.len())?;
        // Rename-Item is supported only for one item, which it would give the same name again.
        let is_renamed = command(next, "rename-item").is_some();
        let is_over = command(next, "select-object").is_some_and(ends_listing);
        (!is_renamed && !is_over).then_some(filters)
    }

    /// Returns true for a listing that is complete before its first item is passed on: PowerShell 7
    /// sorts the files, after the folders.
    fn lists_all_first(&self, command: &CommandAst, listed: &PsValue) -> bool {
        let may_recurse = |argument: &Argument| match argument {
            Argument::Parameter { name, .. } => name.starts_with(['r', 's', 'd']),
            Argument::Splat(_) => true,
            Argument::Value(_) => false,
        };
        let is_file = |item: &PsValue| match item {
            PsValue::Listed(path) => matches!(self.machine.path_state(path), Ok(PathState::File)),
            _ => false,
        };
        self.is_core
            && !command.arguments.iter().any(may_recurse)
            && listed.clone().items().iter().all(is_file)
    }

    fn command(&mut self, command: &CommandAst, input: Input) -> Result<PsValue> {
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
            check_not_piped(input.as_ref(), "a block").map_err(|error| error.at_position(at))?;
            let changes = self.machine.changes;
            let function = self.function(Vec::new(), statements);
            let value = self.call_function(&function, command);
            let value = value.map_err(|error| error.at_position(at))?;
            return self.redirected(command, value, changes);
        }
        let name = name.text().map_err(|error| error.at_position(at))?;
        let is_to_file = |redirect: &Redirect| match redirect {
            Redirect::File { stream, file, .. } => {
                *stream == 1 && !matches!(file, Expression::Variable(_))
            }
            Redirect::Merge => false,
        };
        let may_be_text = command.redirects.iter().any(is_to_file) && !name.contains(['\\', '.']);
        let mut done = self.named_command(&name, command, input);
        if may_be_text {
            done = done.map_err(|error| self.hint_at_quotes(command, error));
        }
        done.map_err(|error| error.in_command(&name, at))
    }

    fn named_command(&mut self, name: &str, command: &CommandAst, input: Input) -> Result<PsValue> {
        let lower = name.to_lowercase();
        let cmdlet = self.alias(&lower);
        let changes = self.machine.changes;
        let value = if command.is_dotted {
            if input.is_some() || !is_script(name) {
                return error::unclear("after a dot, only a script file is supported");
            }
            self.script_file(name, command)?
        } else if let Some(function) = self.functions.get(&lower).cloned() {
            check_not_piped(input.as_ref(), "a function")?;
            self.call_function(&function, command)?
        } else if self.machine.package_code.is_some() && has_word(FUNCTIONS, &cmdlet) {
            check_not_piped(input.as_ref(), "a function")?;
            // It throws its errors, which end the script with any error action.
            let done = self.chocolatey_function(&cmdlet, command);
            done.map_err(|error| error.ending(Ends::Script))?
        } else if is_cmdlet(&cmdlet) {
            let result = self.cmdlet(&cmdlet, command, input);
            self.cmdlet_result(name, command, result)?
        } else {
            check_not_piped(input.as_ref(), "a program")?;
            if is_script(name) {
                self.script_file(name, command)?
            } else {
                self.native(name, command)?
            }
        };
        self.redirected(command, value, changes)
    }

    /// A failure after changes that Windows may not make: the script does not go on.
    fn halfway(&self, error: ScriptError, changes: usize) -> ScriptError {
        if self.machine.changes == changes {
            error
        } else {
            error.ending(Ends::Script)
        }
    }

    /// The output of a cmdlet, whose failure ends the script only with the error action `Stop`, unless
    /// it ends the statement.
    fn cmdlet_result(
        &mut self,
        name: &str,
        command: &CommandAst,
        result: Result<PsValue>,
    ) -> Result<PsValue> {
        let at = self.position(command.at);
        match result {
            Err(error) if error.kind == ScriptErrorKind::Fails && error.ends == Ends::Command => {
                let action = self.error_action(command)?;
                self.handle_error(action, error.in_command(name, at))?;
                Ok(PsValue::Null)
            }
            other => {
                let error = self.machine.error.take();
                self.machine.error = error.map(|error| error.in_command(name, at));
                other
            }
        }
    }

    /// Records an error of a command, or returns it if it ends the script.
    pub(super) fn handle_error(&mut self, action: ErrorAction, error: ScriptError) -> Result<()> {
        self.record_error(action, error)?;
        self.command_status.has_failed = true;
        Ok(())
    }

    pub(super) fn record_error(&mut self, action: ErrorAction, error: ScriptError) -> Result<()> {
        match action {
            ErrorAction::Stop => Err(error.ending(Ends::Script)),
            ErrorAction::Continue => {
                self.machine.error = Some(error);
                Ok(())
            }
        }
    }

    /// Handles a failure of a command; other errors are returned.
    pub(super) fn handle_result(&mut self, action: ErrorAction, done: Result<()>) -> Result<()> {
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

    /// Returns true if even `throw` does not end the script.
    pub(super) fn ignores_errors(&self) -> bool {
        let action = self.variables.get("erroractionpreference");
        matches!(action, Some(PsValue::Text(text))
            if ["silentlycontinue", "ignore"].iter().any(|it| text.eq_ignore_ascii_case(it)))
    }

    pub(super) fn error_action(&mut self, command: &CommandAst) -> Result<ErrorAction> {
        let is_own =
            |name: &str| name == "ea" || (name.len() > 5 && "erroraction".starts_with(name));
        let mut arguments = command.arguments.iter().peekable();
        while let Some(argument) = arguments.next() {
            let value = match argument {
                Argument::Parameter { name, value, .. } if is_own(name) => {
                    match (value, arguments.peek()) {
                        (Some(value), _) | (None, Some(Argument::Value(value))) => {
                            self.expression(value)?
                        }
                        _ => return error::option(name),
                    }
                }
                Argument::Splat(name) => match self.variables.get(name) {
                    Some(PsValue::Table(entries)) => {
                        let Some((_, value)) = entries.iter().find(|(name, _)| is_own(name)) else {
                            continue;
                        };
                        value.clone()
                    }
                    _ => continue,
                },
                _ => continue,
            };
            return match value.text()?.to_lowercase().as_str() {
                "stop" => Ok(ErrorAction::Stop),
                "continue" | "silentlycontinue" | "ignore" | "0" => Ok(ErrorAction::Continue),
                other => error::option(other),
            };
        }
        Ok(self.on_error())
    }

    /// Runs a program with the command line that PowerShell builds.
    fn native(&mut self, name: &str, command: &CommandAst) -> Result<PsValue> {
        let is_batch = super::super::cmd::is_batch(name);
        if is_batch || tools::is_in_working_folder(self.machine, name) {
            check_has_folder(name)?;
        }
        let program = tools::program_name(name);
        // These get their arguments from every version as from the old ones.
        let is_old = is_batch || has_word("cmd cscript wscript", &program);
        let mut words = self.words(command)?;
        if self.is_core && !is_old && words.iter().any(|word| is_escaped(word)) {
            let why = "PowerShell 7.3 passes on empty arguments and escapes quotes, earlier versions \
                       do not";
            return error::unclear(why);
        }
        // It leaves out empty arguments.
        words.retain(|word| !word.is_empty());
        words.insert(0, name.to_owned());
        if program == "msiexec" && self.pipeline_length < 2 {
            let why = "PowerShell does not wait for it, and the build may end before it";
            let help = "use Start-Process msiexec -Wait -ArgumentList …";
            return Err(ScriptError::refused(why).help(help));
        }
        let line = native_command_line(&words);
        let at = self.position(command.at);
        let before = self.machine.error.take();
        let outer = self.machine.skipped.take();
        let changes = self.machine.changes;
        let line = TracedText::from_one(&line, at);
        let done = tools::command_line(self.machine, tools::Starter::PowerShell, &line);
        self.command_status
            .left_out
            .clone_from(&self.machine.skipped);
        self.skipped_program.clone_from(&self.machine.skipped);
        self.machine.skipped = self.machine.skipped.take().or(outer);
        let code = done.map_err(|error| self.halfway(error, changes))?;
        self.last_exit = Some(code);
        self.command_status.has_failed = code != 0;
        if code == 0 {
            self.machine.error = before;
        } else {
            self.machine.set_exit_code(code, name, at);
        }
        Ok(PsValue::opaque(format!("the output of {name} is used")))
    }

    /// Arguments of a program.
    fn words(&mut self, command: &CommandAst) -> Result<Vec<String>> {
        let mut words = Vec::new();
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
                        match written.strip_suffix(' ') {
                            Some(written) => words.extend([written.to_owned(), value]),
                            None => words.push(format!("{written}{value}")),
                        }
                    }
                },
                Argument::Splat(_) => return error::unclear("@ is not supported here"),
            }
        }
        Ok(words)
    }

    /// Applies the redirections of a command to its output; before it, there were so many changes.
    fn redirected(
        &mut self,
        command: &CommandAst,
        value: PsValue,
        changes: usize,
    ) -> Result<PsValue> {
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
            if matches!(&file, PsValue::Text(name) if is_nul(name)) {
                return Err(ScriptError::unclear("PowerShell writes to no device")
                    .help("write $null instead of NUL"));
            }
            if file == PsValue::Null {
                if *stream <= 1 {
                    value = PsValue::Null;
                }
                continue;
            }
            if *stream != 1 {
                return error::unclear("redirecting errors to a file is not supported");
            }
            let output = std::mem::replace(&mut value, PsValue::Null);
            let mode = WriteMode {
                appends: *append,
                is_forced: false,
            };
            let done = self.out_file(&file.text()?, &output, mode, None);
            // PowerShell opens the file first, and does nothing if that fails.
            done.map_err(|error| self.halfway(error, changes))?;
        }
        Ok(value)
    }
}

/// The items of a listing that it did not have before.
fn new_items(before: PsValue, after: Result<PsValue>) -> Result<PsValue> {
    let after = match after {
        // The folder is gone.
        Err(error) if error.kind == ScriptErrorKind::Fails => return Ok(PsValue::Null),
        after => after?,
    };
    let key = |item: &PsValue| match item {
        PsValue::Listed(path) => Some(path.key()),
        _ => None,
    };
    let known: HashSet<String> = before.items().iter().filter_map(key).collect();
    let is_new = |item: &PsValue| key(item).is_some_and(|key| !known.contains(&key));
    let new = after.items().into_iter().filter(is_new);
    Ok(PsValue::from_items(new.collect()))
}

/// Refuses a pipeline that makes files which its own listing has and its filters pass on.
fn check_not_passed_on(new: PsValue) -> Result<()> {
    match new.items().first() {
        Some(PsValue::Listed(path)) => Err(ScriptError::unclear(format!(
            "the pipeline makes {path}, which Windows may list and pass on, too"
        ))
        .help("put Get-ChildItem in brackets, which list before")),
        _ => Ok(()),
    }
}

/// Refuses a script of the working folder that is named without the folder.
pub(super) fn check_has_folder(name: &str) -> Result<()> {
    if name.contains(['\\', '/']) {
        return Ok(());
    }
    error::unclear(format!(
        "PowerShell does not run {name} from the working folder: write .\\{name}"
    ))
}

/// Refuses pipeline input that a command does not read.
pub(super) fn check_not_piped(input: Option<&PsValue>, to: &str) -> Result<()> {
    match input {
        None => Ok(()),
        Some(_) => error::unclear(format!("piping output to {to} is not supported")),
    }
}

/// Returns true for an argument that the versions of PowerShell 7 pass on in two ways.
fn is_escaped(word: &str) -> bool {
    let is_quoted = word.contains(char::is_whitespace);
    word.is_empty() || word.contains('"') || is_quoted && word.ends_with('\\')
}

/// Returns true if a program gets an argument as written.
fn is_bare(expression: &Expression) -> bool {
    matches!(expression, Expression::Word(_))
}

/// Returns true for a `Select-Object` that passes on nothing before its input ends: the last items, or
/// the first one alone, which ends it.
fn ends_listing(command: &CommandAst) -> bool {
    match &command.arguments[..] {
        [Argument::Parameter { name, .. }, Argument::Value(count)] => {
            let is_one =
                matches!(count, Expression::Number(1)) || *count == Expression::Word("1".into());
            name.eq_ignore_ascii_case("last") || name.eq_ignore_ascii_case("first") && is_one
        }
        _ => false,
    }
}
