//! Script files of the image, such as those that a Dockerfile copies.

use std::collections::BTreeMap;

use wincimg_windows::path::ImagePath;

use super::super::error::ScriptError;
use super::super::image::{Deferred, Lookup};
use super::super::process::{Process, last_name};
use super::super::traced_text::TracedText;
use super::ast::{CommandAst, ControlFlow, Statement};
use super::eval::Shell;
use super::parse;
use super::value::PsValue;

/// Maximum depth of scripts that run scripts.
const DEPTH: usize = 8;

/// A parsed script file.
struct ScriptFile {
    path: ImagePath,
    text: TracedText,
    statements: Vec<Statement>,
}

/// Returns true if a name is that of a script file.
pub(super) fn is_script(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".ps1")
}

/// Runs a script file as `-File` does, and returns its exit code.
pub(super) fn run(
    machine: &mut Process<'_>,
    name: &str,
    arguments: &[TracedText],
    is_core: bool,
) -> Result<i32, ScriptError> {
    if !arguments.is_empty() {
        return Err(unsupported_arguments());
    }
    let file = ScriptFile::read(machine, name, is_core)?;
    machine.nested(|machine| {
        let before = machine.error.take();
        let mut shell = Shell::new(machine, &file.text, is_core);
        shell.variables = file.variables();
        let done = shell.block(&file.statements);
        let (exit, flow) = (shell.exit, shell.flow);
        file.locate_recorded(machine, before);
        done.map_err(|error| file.locate(error))?;
        file.check_end(flow)?;
        Ok(exit.unwrap_or(0))
    })
}

fn unsupported_arguments() -> ScriptError {
    ScriptError::unclear("arguments of a script file are not supported")
}

impl ScriptFile {
    fn read(machine: &Process<'_>, name: &str, is_core: bool) -> Result<Self, ScriptError> {
        if !is_script(name) {
            return Err(ScriptError::unclear(format!(
                "{name:?} is not a script file: expected a name that ends with .ps1"
            )));
        }
        let path = machine.path(name)?;
        let bytes = match machine.image.content(&path) {
            Lookup::Present(bytes) => bytes,
            Lookup::Absent => return Err(ScriptError::fails(format!("the image has no {path}"))),
            Lookup::Deferred(Deferred) => {
                return Err(ScriptError::later(format!("{path} is downloaded later")));
            }
            Lookup::Unknown => {
                return Err(ScriptError::unknown(format!(
                    "the content of the script {path} is unknown"
                )));
            }
        };
        let text = decoded(&bytes, is_core)
            .map_err(|why| ScriptError::unclear(format!("the script {path} {why}")))?;
        let is_requirement = |line: &str| {
            let start = line.trim_start().get(..9).unwrap_or_default();
            start.eq_ignore_ascii_case("#requires")
        };
        if text.lines().any(is_requirement) {
            let why = format!("the script {path} has an unsupported #Requires");
            return Err(ScriptError::unclear(why));
        }
        let mut file = Self {
            path,
            text: TracedText::new(&text, 0),
            statements: Vec::new(),
        };
        let parsed = parse::parse(file.text.as_str());
        file.statements = parsed.map_err(|error| file.locate(error))?;
        Ok(file)
    }

    /// The variables that a script has of itself.
    fn variables(&self) -> BTreeMap<String, PsValue> {
        let names = self.path.components();
        let above = self.path.up_to(names.len().saturating_sub(1));
        [
            ("psscriptroot", above.to_string()),
            ("pscommandpath", self.path.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), PsValue::Text(value)))
        .into()
    }

    /// Refuses a `break` that ends a loop of the caller.
    fn check_end(&self, flow: Option<ControlFlow>) -> Result<(), ScriptError> {
        match flow {
            None | Some(ControlFlow::Return) => Ok(()),
            Some(_) => Err(ScriptError::unclear(format!(
                "{} has a break or continue outside a loop",
                self.path
            ))),
        }
    }

    /// The same for the error after which the script continued, or the one before it.
    fn locate_recorded(&self, machine: &mut Process<'_>, before: Option<ScriptError>) {
        let own = machine.error.take().map(|error| self.locate(error));
        machine.error = own.or(before);
    }

    /// An error with its line in the script, in place of a position after `RUN`.
    fn locate(&self, mut error: ScriptError) -> ScriptError {
        let text = self.text.as_str();
        let before = text.get(..error.at.min(text.len())).unwrap_or_default();
        let why = &error.why;
        error.why = if error.at == usize::MAX {
            format!("{}: {why}", self.path)
        } else {
            format!("{}:{}: {why}", self.path, before.matches('\n').count() + 1)
        };
        error.at = usize::MAX;
        error
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
    text.map(|text| text.replace("\r\n", "\n"))
        .ok_or("is not Unicode text")
}

impl Shell<'_, '_> {
    /// Runs a script file by its name, in a scope of its own.
    pub(super) fn script_file(
        &mut self,
        name: &str,
        command: &CommandAst,
    ) -> Result<PsValue, ScriptError> {
        if !name.contains(['\\', '/']) {
            return Err(ScriptError::unclear(format!(
                "PowerShell does not run {name} from the working folder: write .\\{name}"
            )));
        }
        if !command.arguments.is_empty() {
            return Err(unsupported_arguments());
        }
        if self.scripts == DEPTH {
            return Err(ScriptError::unclear("script files are nested too deeply"));
        }
        let file = ScriptFile::read(self.machine, name, self.is_core)?;
        // A script sees the variables of its caller.
        let mut variables = self.variables.clone();
        variables.extend(file.variables());
        let before = self.machine.error.take();
        let mut inner = Shell {
            variables,
            process_folder: self.process_folder.clone(),
            last_exit: self.last_exit,
            has_zip: self.has_zip,
            functions: self.functions.clone(),
            scripts: self.scripts + 1,
            depth: self.depth,
            ..Shell::new(self.machine, &file.text, self.is_core)
        };
        let done = inner.block(&file.statements);
        let (exit, is_ok, flow) = (inner.exit, inner.is_ok, inner.flow);
        (self.last_exit, self.has_zip) = (inner.last_exit, inner.has_zip);
        file.locate_recorded(self.machine, before);
        let value = done.map_err(|error| file.locate(error))?;
        file.check_end(flow)?;
        match exit {
            Some(code) => {
                self.last_exit = Some(code);
                self.is_ok = code == 0;
                if code != 0 {
                    let at = self.position(command.at);
                    self.machine.set_exit_code(code, last_name(&file.path), at);
                }
            }
            None if !is_ok => {
                return Err(ScriptError::unclear(format!(
                    "the last command of {} fails: whether the script does is unclear",
                    file.path
                )));
            }
            None => self.is_ok = true,
        }
        Ok(value)
    }
}
