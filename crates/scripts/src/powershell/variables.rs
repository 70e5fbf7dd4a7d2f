//! Variables and assignments.

use std::sync::Arc;

use super::super::error::{self, Result, ScriptError};
use super::super::image::{Lookup, PendingDownload};
use super::super::process::Process;
use super::super::tools::{PROGRAM, QUOTE};
use super::super::variables::unknown_variable;
use super::ast::{Assignment, CommandAst, Expression, Statement};
use super::eval::Shell;
use super::has_word;
use super::methods::{entry, table_member};
use super::value::PsValue;

/// Set by `Set-StrictMode`, whose scope is that of a variable.
pub(super) const STRICT: &str = "set-strictmode";

impl Shell<'_, '_> {
    /// The output of a statement; in an expression, an assignment has the assigned value.
    pub(super) fn value_of(&mut self, statement: &Statement) -> Result<PsValue> {
        let value = self.statement(statement);
        let value = value.map_err(|error| match statement.only_command() {
            Some(command) => self.hint_at_quotes(command, error),
            None => error,
        })?;
        match statement {
            Statement::Assign(assignment) => match &assignment.to {
                Expression::Variable(name) => Ok(self.variable(name)),
                Expression::Cast(_, inner) => self.expression(inner),
                Expression::Member(member) if member.is_static => Ok(value),
                to => self.expression(to),
            },
            _ => Ok(value),
        }
    }

    /// Adds to the error of a program a hint for a text that a RUN line quotes.
    pub(super) fn hint_at_quotes(&self, command: &CommandAst, error: ScriptError) -> ScriptError {
        let is_word = matches!(command.name, Expression::Word(_)) && command.arguments.is_empty();
        let is_plain = error.why == PROGRAM && error.help.is_none();
        if is_word && is_plain && self.file.is_none() {
            return error.instead(QUOTE);
        }
        error
    }

    pub(super) fn assign(&mut self, assignment: &Assignment) -> Result<()> {
        let operator = assignment.operator;
        let mut value = self.value_of(&assignment.value)?;
        match &assignment.to {
            Expression::Variable(name) => {
                if operator != '=' {
                    let before = self.variable(name);
                    value = super::operators::binary(&operator.to_string(), before, value)?;
                }
                let plain = without_scope(name);
                let is_null = operator == '='
                    && !is_automatic(plain)
                    && self.is_null_variable(std::slice::from_ref(assignment.value.as_ref()));
                self.set_variable(name, value)?;
                if is_null && self.variables.get(plain) == Some(&PsValue::Null) {
                    self.variables.remove(plain);
                }
                Ok(())
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
                _ => error::unclear("unsupported assignment"),
            },
            Expression::Member(member) if member.is_static => {
                let is_network = matches!(member.of.as_ref(), Expression::Type(of) if of == "net.servicepointmanager");
                if is_network && has_word(NETWORK, &member.name) {
                    return Ok(());
                }
                error::unclear(format!("setting {} is not supported", member.name))
            }
            Expression::Member(member) => {
                self.assign_entry(&member.of, &member.name, operator, value)
            }
            Expression::Index(of, key) => {
                let key = match key.as_ref() {
                    Expression::Text(key) => PsValue::text_value(key),
                    Expression::Variable(name) => self.used_variable(name)?,
                    _ => return error::unclear("unsupported assignment"),
                };
                let PsValue::Text(key) = key else {
                    return error::unclear("a key that is not a text is not supported");
                };
                self.assign_entry(of, &key, operator, value)
            }
            _ => error::unclear("unsupported assignment"),
        }
    }

    /// Sets an entry of the hashtable that a variable has.
    fn assign_entry(
        &mut self,
        of: &Expression,
        key: &str,
        operator: char,
        mut value: PsValue,
    ) -> Result<()> {
        let (name, mut entries) = self.own_table(of)?;
        let key = key.to_lowercase();
        let before = table_member(&entries, &key)?;
        let is_property = entry(&entries, &key).is_none() && before != PsValue::Null;
        if is_property || key.parse::<i64>().is_ok() {
            return error::unclear(format!("whether {key} is a key of ${name} is unclear"));
        }
        if operator != '=' {
            self.check_strict(&before)?;
            value = super::operators::binary(&operator.to_string(), before, value)?;
        }
        if value.has(&|it| matches!(it, PsValue::Table(_) | PsValue::Object(_))) {
            return error::unclear("an object as a value of a hashtable is not supported here");
        }
        entries.retain(|(known, _)| *known != key);
        entries.push((key, value));
        self.variables
            .insert(name, PsValue::Table(entries.into()).check_size()?);
        Ok(())
    }

    /// Runs `Add` or `Remove` of the hashtable that a variable has.
    pub(super) fn change_table(
        &mut self,
        of: &Expression,
        method: &str,
        arguments: &[PsValue],
    ) -> Result<PsValue> {
        let (name, mut entries) = self.own_table(of)?;
        match (method, arguments) {
            ("add", [PsValue::Text(key), _]) if entry(&entries, &key.to_lowercase()).is_some() => {
                return error::fails(format!("${name} has the key {key} already"));
            }
            ("add", [PsValue::Text(key), value]) => {
                self.assign_entry(of, key, '=', value.clone())?;
            }
            ("remove", [PsValue::Text(key)]) => {
                let key = key.to_lowercase();
                entries.retain(|(known, _)| *known != key);
                self.variables.insert(name, PsValue::Table(entries.into()));
            }
            _ => return error::unclear(format!("unsupported call of {method}")),
        }
        Ok(PsValue::Null)
    }

    /// The hashtable of a variable that may be changed, and the variable's name. PowerShell's variables
    /// share hashtables, and have copies here: it is refused if another may have the same one.
    fn own_table(&self, of: &Expression) -> Result<(String, Vec<(String, PsValue)>)> {
        let Expression::Variable(name) = of else {
            return error::unclear("unsupported change of a value");
        };
        let name = without_scope(name);
        let Some(PsValue::Table(entries)) = self.variables.get(name) else {
            return error::unclear(format!("${name} is not a known hashtable"));
        };
        let is_same =
            |it: &PsValue| matches!(it, PsValue::Table(other) if Arc::ptr_eq(other, entries));
        let mut others = self.variables.iter().filter(|(other, _)| *other != name);
        let is_of_caller = self.calls > 0 || self.scripts > 0 || name == "_";
        if is_of_caller || others.any(|(_, value)| value.has(&is_same)) {
            return error::unclear(format!(
                "whether another variable is the hashtable ${name}, too, is unclear"
            ));
        }
        Ok((name.to_owned(), entries.to_vec()))
    }

    pub(super) fn set_variable(&mut self, name: &str, value: PsValue) -> Result<()> {
        if let Some(variable) = name.strip_prefix("env:") {
            let value = match value {
                PsValue::Null => None,
                value => Some(value.text()?).filter(|text| !text.is_empty()),
            };
            // Chocolatey takes it for the exit code of the package.
            if variable == "chocolateyexitcode"
                && let (Some(code), Some(text)) = (&mut self.machine.package_code, &value)
            {
                let why = || ScriptError::unclear(format!("unsupported exit code {text:?}"));
                *code = text.parse().map_err(|_| why())?;
            }
            self.machine.variables.set(variable, value);
            return Ok(());
        }
        let plain = without_scope(name);
        if plain != name && !name.starts_with("local:") {
            if self.calls > 0 {
                return error::unclear("a function sets a variable of its calling script");
            }
            if self.scripts > 0 {
                return error::unclear("a script file sets a variable of its calling script");
            }
        }
        if plain.contains(':') || plain.starts_with("ps") || plain == "ofs" {
            return error::unclear(format!("setting ${name} is not supported"));
        }
        if plain != "null" {
            self.put_variable(plain, value)?;
        }
        Ok(())
    }

    /// Sets a variable of the current scope, whose type converts the value.
    pub(super) fn put_variable(&mut self, name: &str, value: PsValue) -> Result<()> {
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
                Lookup::Deferred(PendingDownload) => PsValue::Opaque(ScriptError::later(format!(
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
                if !self.is_success_assumed
                    && let Some(what) = if name == "?" {
                        &self.status.left_out
                    } else {
                        &self.skipped_program
                    } =>
            {
                PsValue::Opaque(Process::depends_on(what))
            }
            "?" => PsValue::Bool(!self.status.has_failed),
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
                None if self.variables.contains_key(STRICT) => PsValue::Opaque(strict()),
                None => PsValue::Null,
            },
        }
    }

    /// The value of a variable in an expression. In strict mode one that is not set is an error, also
    /// where nothing uses the value.
    pub(super) fn used_variable(&self, name: &str) -> Result<PsValue> {
        match self.variable(name) {
            PsValue::Opaque(error) if error == strict() => Err(error),
            value => Ok(value),
        }
    }

    /// Refuses a member or item without a value, which may be an error in strict mode.
    pub(super) fn check_strict(&self, value: &PsValue) -> Result<()> {
        if self.variables.contains_key(STRICT) && *value == PsValue::Null {
            return Err(strict());
        }
        Ok(())
    }
}

fn strict() -> ScriptError {
    ScriptError::unclear("Set-StrictMode does not allow what has no value")
}

fn without_scope(name: &str) -> &str {
    ["global:", "script:", "local:", "private:", "variable:"]
        .iter()
        .find_map(|scope| name.strip_prefix(scope))
        .unwrap_or(name)
}

/// Network settings of the process, which do not change the image.
const NETWORK: &str = "
    securityprotocol expect100continue servercertificatevalidationcallback
    checkcertificaterevocationlist defaultconnectionlimit
";

/// Automatic variables of PowerShell, beside those that begin with `ps`.
const AUTOMATIC: &str = "
    args error host input matches myinvocation ofs pid profile shellid $ ^ iswindows islinux
    executioncontext stacktrace this outputencoding
";

fn is_automatic(name: &str) -> bool {
    name.contains(':') || name.starts_with("ps") || has_word(AUTOMATIC, name)
}
