//! Script files of the image, such as those that a Dockerfile copies.

use std::collections::BTreeMap;
use std::sync::Arc;

use wincimg_common::untrusted::QuotedText;
use wincimg_windows::path::ImagePath;
use wincimg_windows::quoting::powershell::is_dash;

use super::super::error::{self, Result, ScriptError};
use super::super::process::Process;
use super::super::traced_text::TracedText;
use super::ast::{Argument, CommandAst, ControlFlow, Expression, ScriptParameter, Statement};
use super::command::check_has_folder;
use super::eval::Shell;
use super::parse;
use super::value::PsValue;

/// Maximum depth of scripts that run scripts.
const DEPTH: usize = 8;

/// A parsed script file.
struct ScriptFile {
    path: ImagePath,
    text: Arc<TracedText>,
    /// Declared parameters, if it declares some.
    parameters: Option<Vec<ScriptParameter>>,
    statements: Vec<Statement>,
}

/// An argument of a script file.
enum ScriptArgument {
    /// `-Name`, or `-Name:value`.
    Name(String, Option<PsValue>),
    Value(PsValue),
}

/// How the arguments of a script file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgumentMode {
    /// As texts, after `-File`.
    Text,
    /// As values: a number is one.
    Value,
}

/// Returns true if a name is that of a script file.
pub(super) fn is_script(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".ps1")
}

/// Returns true for the path of a module that is one script.
pub(super) fn is_module(name: &str) -> bool {
    name.contains(['\\', '/']) && name.to_ascii_lowercase().ends_with(".psm1")
}

/// Runs a script file as `-File` does, and returns its exit code. It sees variables of a caller, whose
/// names are in lower case.
pub(in super::super) fn run(
    machine: &mut Process<'_>,
    name: &str,
    arguments: &[TracedText],
    of_caller: &[(&str, String)],
    is_core: bool,
) -> Result<i32> {
    let given = arguments.iter().map(|word| literal_argument(word.as_str()));
    let given = given.collect::<Result<Vec<_>, _>>()?;
    let file = ScriptFile::read(machine, name, is_core)?;
    machine.nested(|machine| {
        let before = machine.error.take();
        let mut shell = Shell::new(machine, Arc::clone(&file.text), is_core);
        let of_caller = of_caller.iter();
        let of_caller =
            of_caller.map(|(name, value)| ((*name).to_owned(), PsValue::text_value(value)));
        shell.variables = of_caller.chain(file.variables()).collect();
        shell.file = Some(file.path.clone());
        let bound = file.bind(&mut shell, given, ArgumentMode::Text);
        let done = bound.and_then(|()| shell.block(&file.statements));
        let (exit, flow) = (shell.exit, shell.flow);
        file.locate_recorded(machine, before);
        if let Err(error) = done {
            return super::ended(machine, file.locate(error), is_core);
        }
        file.check_end(flow)?;
        Ok(exit.unwrap_or(0))
    })
}

fn unsupported_arguments() -> ScriptError {
    ScriptError::unclear("these arguments of a script file are not supported")
}

/// An argument after `-File`, which is text: PowerShell does not evaluate it.
fn literal_argument(word: &str) -> Result<ScriptArgument> {
    let is_name = |name: &str| name.starts_with(char::is_alphabetic);
    match word.strip_prefix(is_dash).filter(|name| is_name(name)) {
        Some(name) if name.contains([':', '=', '"']) => Err(unsupported_arguments()),
        Some(name) => Ok(ScriptArgument::Name(name.to_lowercase(), None)),
        None => Ok(ScriptArgument::Value(PsValue::text_value(word))),
    }
}

impl ScriptFile {
    fn read(machine: &Process<'_>, name: &str, is_core: bool) -> Result<Self> {
        if !is_script(name) {
            return error::unclear(format!(
                "{} is not a script file: expected a name that ends with .ps1",
                QuotedText(name)
            ));
        }
        Self::read_any(machine, name, is_core)
    }

    fn read_any(machine: &Process<'_>, name: &str, is_core: bool) -> Result<Self> {
        let path = machine.path(name)?;
        let later = ScriptError::later(format!("{path} is downloaded later"));
        let bytes = machine.script(&path, later)?;
        let text = decoded(&bytes, is_core)
            .map_err(|why| ScriptError::unclear(format!("the script {path} {why}")))?;
        let is_requirement = |line: &str| {
            let start = line.trim_start().get(..9).unwrap_or_default();
            start.eq_ignore_ascii_case("#requires") && !is_met(line, is_core)
        };
        if text.lines().any(is_requirement) {
            return error::unclear(format!("the script {path} has an unsupported #Requires"));
        }
        let mut file = Self {
            path,
            text: Arc::new(TracedText::new(&text, 0)),
            parameters: None,
            statements: Vec::new(),
        };
        let parsed = parse::parse_file(file.text.as_str());
        (file.parameters, file.statements) = parsed.map_err(|error| file.locate(error))?;
        Ok(file)
    }

    /// The variables that a script has of itself.
    fn variables(&self) -> BTreeMap<String, PsValue> {
        let path = PsValue::Text(self.path.to_string());
        let of_command = ["definition", "path", "source"]
            .map(|name| (name.to_owned(), path.clone()))
            .to_vec();
        let command = ("mycommand".to_owned(), PsValue::Object(of_command.into()));
        let invocation = PsValue::Object(vec![command].into());
        let mut variables: BTreeMap<String, PsValue> =
            file_variables(Some(&self.path)).into_iter().collect();
        variables.insert("myinvocation".to_owned(), invocation);
        variables
    }

    /// Binds the arguments to the declared parameters, in a shell that has the script's scope.
    fn bind(
        &self,
        shell: &mut Shell<'_, '_>,
        given: Vec<ScriptArgument>,
        mode: ArgumentMode,
    ) -> Result<()> {
        let Some(parameters) = &self.parameters else {
            return if given.is_empty() {
                Ok(())
            } else {
                Err(unsupported_arguments())
            };
        };
        let (mut named, positional) = named_arguments(parameters, given)?;
        let mut positional = positional.into_iter();
        let mut others = Vec::new();
        for parameter in parameters {
            let given = match named.remove(parameter.name.as_str()) {
                None if !parameter.is_switch() => positional.next(),
                named => named,
            };
            let Some(value) = given else {
                others.push(parameter);
                continue;
            };
            if mode == ArgumentMode::Value && parameter.kind.is_none() {
                value.check_literal()?;
            }
            parameter.set(shell, parameter.converted(value)?);
        }
        if positional.next().is_some() {
            return Err(unsupported_arguments());
        }
        // The defaults see the parameters that are given.
        for parameter in others {
            let value = match &parameter.default {
                Some(default) => {
                    let value = shell.expression(default)?;
                    parameter.converted(value)?
                }
                None => parameter.empty_value()?,
            };
            parameter.set(shell, value);
        }
        Ok(())
    }

    /// Refuses a `break` that ends a loop of the caller.
    fn check_end(&self, flow: Option<ControlFlow>) -> Result<()> {
        match flow {
            None | Some(ControlFlow::Return) => Ok(()),
            Some(_) => error::unclear(format!(
                "{} has a break or continue outside a loop",
                self.path
            )),
        }
    }

    /// The same for the error after which the script continued, or the one before it.
    fn locate_recorded(&self, machine: &mut Process<'_>, before: Option<ScriptError>) {
        let own = machine.error.take().map(|error| self.locate(error));
        machine.error = own.or(before);
    }

    fn locate(&self, error: ScriptError) -> ScriptError {
        locate(&self.path, &self.text, error)
    }
}

/// Returns true for a `#Requires` of no more than a version that every image has.
fn is_met(line: &str, is_core: bool) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let (Some(option), Some(version), None) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    let own = if is_core { (7, 0) } else { (5, 1) };
    option.eq_ignore_ascii_case("-version")
        && matches!((major.parse::<u8>(), minor.parse::<u8>()),
            (Ok(major), Ok(minor)) if (major, minor) <= own)
}

/// The variables of a script file that name it, also in its functions.
pub(super) fn file_variables(path: Option<&ImagePath>) -> Vec<(String, PsValue)> {
    let above = path.map(|path| path.up_to(path.components().len().saturating_sub(1)));
    let text = |path: Option<&ImagePath>| {
        path.map_or(PsValue::Null, |path| PsValue::Text(path.to_string()))
    };
    vec![
        ("psscriptroot".to_owned(), text(above.as_ref())),
        ("pscommandpath".to_owned(), text(path)),
    ]
}

/// An error with its line in a script file, in place of a position after `RUN`.
pub(super) fn locate(path: &ImagePath, text: &TracedText, mut error: ScriptError) -> ScriptError {
    let text = text.as_str();
    let before = text.get(..error.at.min(text.len())).unwrap_or_default();
    let why = &error.why;
    error.why = if error.at == usize::MAX {
        format!("{path}: {why}")
    } else {
        format!("{path}:{}: {why}", before.matches('\n').count() + 1)
    };
    error.at = usize::MAX;
    error
}

/// Arguments by the names of their parameters, and those without a name.
fn named_arguments(
    parameters: &[ScriptParameter],
    given: Vec<ScriptArgument>,
) -> Result<(BTreeMap<&str, PsValue>, Vec<PsValue>)> {
    let mut named = BTreeMap::new();
    let mut positional = Vec::new();
    let mut given = given.into_iter().peekable();
    while let Some(argument) = given.next() {
        let (name, value) = match argument {
            ScriptArgument::Value(value) => {
                positional.push(value);
                continue;
            }
            ScriptArgument::Name(name, value) => (name, value),
        };
        let Some(parameter) = parameters.iter().find(|known| known.name == name) else {
            return Err(unsupported_arguments());
        };
        let value = match (value, parameter.is_switch(), given.peek()) {
            (Some(value), _, _) => value,
            (None, true, _) => PsValue::Bool(true),
            (None, false, Some(ScriptArgument::Value(value))) => {
                let value = value.clone();
                given.next();
                value
            }
            (None, false, _) => return error::fails(format!("-{name} requires a value")),
        };
        if named.insert(parameter.name.as_str(), value).is_some() {
            return error::fails(format!("-{name} is given more than once"));
        }
    }
    Ok((named, positional))
}

impl ScriptParameter {
    fn is_switch(&self) -> bool {
        self.kind.as_deref() == Some("switch")
    }

    /// A value converted to the parameter's type.
    fn converted(&self, value: PsValue) -> Result<PsValue> {
        match (self.kind.as_deref(), value) {
            (None, value)
            | (Some("string"), value @ PsValue::Opaque(_))
            | (Some("switch" | "bool"), value @ PsValue::Bool(_))
            | (Some("int" | "int32"), value @ PsValue::Number(_))
            | (Some("string[]" | "array"), value @ PsValue::List(_)) => Ok(value),
            (Some("string"), PsValue::Text(text)) => Ok(PsValue::Text(text)),
            (Some("string"), PsValue::Number(number)) => Ok(PsValue::Text(number.to_string())),
            (Some("int" | "int32"), PsValue::Text(text)) => {
                let number = text
                    .parse::<i32>()
                    .map(|number| PsValue::Number(number.into()));
                number.map_err(|_| ScriptError::unclear(format!("{text:?} is not a number")))
            }
            (Some(kind), _) => error::unclear(format!(
                "whether -{} converts to [{kind}] is unclear",
                self.name
            )),
        }
    }

    /// Sets the variable of the parameter, whose type later values have too.
    fn set(&self, shell: &mut Shell<'_, '_>, value: PsValue) {
        shell.variables.insert(self.name.clone(), value);
        if let Some(kind) = self.kind.clone().filter(|_| !self.is_switch()) {
            shell.types.insert(self.name.clone(), kind);
        }
    }

    /// The value of a parameter that is not given and has no default.
    fn empty_value(&self) -> Result<PsValue> {
        match self.kind.as_deref() {
            Some("switch" | "bool") => Ok(PsValue::Bool(false)),
            // It asks for its value.
            _ if self.is_mandatory => error::unclear(format!("the script needs -{}", self.name)),
            Some("string") => Ok(PsValue::text_value("")),
            Some("int" | "int32") => Ok(PsValue::Number(0)),
            _ => Ok(PsValue::Null),
        }
    }
}

/// Text of a script. Windows PowerShell reads a file without a byte order mark in the code page of
/// the machine, PowerShell 7 in UTF-8.
fn decoded(bytes: &[u8], is_core: bool) -> Result<String, &'static str> {
    let text = match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        [0xFF, 0xFE, rest @ ..] => {
            let units: Vec<u16> = rest
                .chunks(2)
                .map(|unit| u16::from(unit[0]) | u16::from(*unit.get(1).unwrap_or(&0)) << 8)
                .collect();
            String::from_utf16(&units).ok()
        }
        _ if bytes.is_ascii() || is_core => String::from_utf8(bytes.to_vec()).ok(),
        _ => return Err("has non-ASCII characters and no byte order mark"),
    };
    text.ok_or("is not Unicode text")
}

impl Shell<'_, '_> {
    /// Runs a script file by its name, in a scope of its own unless it is dotted.
    pub(super) fn script_file(&mut self, name: &str, command: &CommandAst) -> Result<PsValue> {
        check_has_folder(name)?;
        let given = self.script_arguments(command)?;
        if self.scripts == DEPTH {
            return error::unclear("script files are nested too deeply");
        }
        let file = ScriptFile::read(self.machine, name, self.is_core)?;
        // A script sees the variables of its caller.
        let mut variables = self.variables.clone();
        variables.extend(file.variables());
        let before = self.machine.error.take();
        let mut inner = Shell {
            variables,
            types: if command.is_dotted {
                self.types.clone()
            } else {
                BTreeMap::new()
            },
            process_folder: self.process_folder.clone(),
            status: self.status.clone(),
            last_exit: self.last_exit,
            has_zip: self.has_zip,
            functions: self.functions.clone(),
            scripts: self.scripts + 1,
            tries: self.tries,
            depth: self.depth,
            file: Some(file.path.clone()),
            ..Shell::new(self.machine, Arc::clone(&file.text), self.is_core)
        };
        let bound = file.bind(&mut inner, given, ArgumentMode::Value);
        let done = bound.and_then(|()| inner.block(&file.statements));
        let (exit, flow) = (inner.exit, inner.flow);
        let (variables, types, functions) = (inner.variables, inner.types, inner.functions);
        (self.last_exit, self.has_zip) = (inner.last_exit, inner.has_zip);
        self.skipped_program = inner.skipped_program;
        file.locate_recorded(self.machine, before);
        let value = done.map_err(|error| file.locate(error))?;
        file.check_end(flow)?;
        if command.is_dotted {
            self.take_scope(&file, variables)?;
            (self.functions, self.types) = (functions, types);
            if exit.is_some() {
                self.exit = exit;
                return Ok(value);
            }
        }
        // Without exit, it succeeds whatever its last command does.
        if let Some(code) = exit {
            self.last_exit = Some(code);
            self.command_status.has_failed = code != 0;
            if code != 0 {
                let at = self.position(command.at);
                self.machine.set_exit_code(code, file.path.name(), at);
            }
        }
        Ok(value)
    }

    fn script_arguments(&mut self, command: &CommandAst) -> Result<Vec<ScriptArgument>> {
        let arguments = command.arguments.iter().map(|argument| match argument {
            Argument::Value(value) => Ok(ScriptArgument::Value(self.expression(value)?)),
            Argument::Parameter { name, value, .. } => {
                let value = value.as_ref().map(|value| self.expression(value));
                Ok(ScriptArgument::Name(name.clone(), value.transpose()?))
            }
            Argument::Splat(_) => Err(unsupported_arguments()),
        });
        arguments.collect()
    }

    /// Imports a module that only defines functions. They see the variables of `RUN`, which are global,
    /// but would not see those of a script file.
    pub(super) fn import_module(&mut self, name: &str) -> Result<()> {
        let file = ScriptFile::read_any(self.machine, name, self.is_core)?;
        if self.file.is_some() {
            return Err(ScriptError::unclear(format!(
                "a script file imports the module {}: which variables its functions see is unclear",
                file.path
            ))
            .help("import it in RUN"));
        }
        let is_export = |statement: &Statement| {
            let name = statement.only_command().map(|command| &command.name);
            matches!(name, Some(Expression::Text(name) | Expression::Word(name))
                if name.eq_ignore_ascii_case("export-modulemember"))
        };
        let is_definition = |statement: &Statement| matches!(statement, Statement::Function { .. });
        let (definitions, others): (Vec<_>, Vec<_>) =
            file.statements.into_iter().partition(is_definition);
        if !others.iter().all(is_export) {
            let why = format!("the module {} does more than define functions", file.path);
            return error::unclear(why);
        }
        let mut module = Shell {
            functions: std::mem::take(&mut self.functions),
            file: Some(file.path),
            ..Shell::new(self.machine, file.text, self.is_core)
        };
        let defined = module.block(&definitions);
        self.functions = module.functions;
        defined.map(drop)
    }

    /// Takes over the variables of a dotted script, except those that name it.
    fn take_scope(
        &mut self,
        file: &ScriptFile,
        mut variables: BTreeMap<String, PsValue>,
    ) -> Result<()> {
        for name in file.variables().into_keys() {
            match self.variables.get(&name) {
                Some(own) => variables.insert(name, own.clone()),
                None => variables.remove(&name),
            };
        }
        let is_new = |name: &String, value: &PsValue| self.variables.get(name) != Some(value);
        let mut blocks = variables
            .iter()
            .filter(|(_, it)| matches!(it, PsValue::Block(_)));
        if let Some((name, _)) = blocks.find(|(name, value)| is_new(name, value)) {
            return error::unclear(format!("{} leaves a script block in ${name}", file.path));
        }
        self.variables = variables;
        Ok(())
    }
}
