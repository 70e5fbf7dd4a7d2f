//! Binding of cmdlet parameters: prefixes, aliases, switches, positions.

use super::super::error::ScriptError;
use super::ast::{Argument, CommandAst, Expression, Statement};
use super::eval::Shell;
use super::value::PsValue;

/// Parameters of a cmdlet. Names are in lower case; `name=alias=alias`.
pub(super) struct ParameterSet {
    pub(super) values: &'static str,
    pub(super) switches: &'static str,
    /// Positional parameters, in order.
    pub(super) positions: &'static str,
}

/// Common parameters, which have no effect here.
const COMMON_VALUES: &str = "erroraction=ea warningaction=wa informationaction=infa \
    errorvariable=ev warningvariable=wv outvariable=ov";
const COMMON_SWITCHES: &str = "verbose=vb debug=db";

/// Parameters that a command line binds.
#[derive(Debug, Clone, Default)]
pub(super) struct BoundParameters {
    entries: Vec<(&'static str, PsValue)>,
}

impl BoundParameters {
    pub(super) fn value(&self, name: &str) -> Option<&PsValue> {
        self.entries
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    }

    /// The text of a parameter that takes one: a list is none.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, ScriptError> {
        match self.value(name) {
            Some(PsValue::List(_)) => Err(ScriptError::unclear(format!(
                "a list is given for -{name}, which takes one value"
            ))),
            value => value.map(PsValue::text).transpose(),
        }
    }

    pub(super) fn required(&self, name: &str) -> Result<String, ScriptError> {
        self.text(name)?
            .ok_or_else(|| ScriptError::unclear(format!("-{name} is required")))
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, ScriptError> {
        self.value(name).map_or(Ok(Vec::new()), PsValue::texts)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        matches!(self.value(name), Some(PsValue::Bool(true)))
    }

    pub(super) fn entries(&self) -> &[(&'static str, PsValue)] {
        &self.entries
    }
}

/// Parameters that a name, alias or prefix matches.
fn matching_names(known: &'static str, name: &str) -> Vec<&'static str> {
    let known = known.split_ascii_whitespace();
    let split = |entry: &'static str| {
        let mut names = entry.split('=');
        (names.next().unwrap_or_default(), names)
    };
    let exact = known.clone().find_map(|entry| {
        let (own, mut aliases) = split(entry);
        (own == name || aliases.any(|alias| alias == name)).then_some(own)
    });
    if let Some(own) = exact {
        return vec![own];
    }
    known
        .map(|entry| split(entry).0)
        .filter(|own| own.starts_with(name))
        .collect()
}

fn is_common(name: &str) -> bool {
    [COMMON_VALUES, COMMON_SWITCHES]
        .into_iter()
        .flat_map(str::split_ascii_whitespace)
        .any(|entry| entry.split('=').next() == Some(name))
}

impl Shell<'_, '_> {
    /// Binds the arguments of a command to the parameters of its cmdlet.
    pub(super) fn bind_parameters(
        &mut self,
        command: &CommandAst,
        takes: &ParameterSet,
    ) -> Result<BoundParameters, ScriptError> {
        let mut given = BoundParameters::default();
        let mut positional = Vec::new();
        // After `--`, everything is a value.
        let mut has_ended = false;
        let mut arguments = command.arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument {
                Argument::Value(Expression::Word(word)) if word == "--" && !has_ended => {
                    has_ended = true;
                }
                Argument::Parameter { .. } if has_ended => {
                    return Err(ScriptError::unclear(
                        "parameters after -- are not supported",
                    ));
                }
                Argument::Value(value) => positional.push(self.expression(value)?),
                Argument::Splat(name) => {
                    let Some(PsValue::Table(entries)) = self.variables.get(name).cloned() else {
                        return Err(ScriptError::unclear(format!("@{name} is not supported")));
                    };
                    for (name, value) in entries {
                        let own = resolve_name(takes, &name)?;
                        given.entries.push((own.0, value));
                    }
                }
                Argument::Parameter { name, value, .. } => {
                    let (own, is_switch) = resolve_name(takes, name)?;
                    let value = match (value, is_switch) {
                        (Some(value), true) => PsValue::Bool(self.expression(value)?.to_bool()?),
                        (None, true) => PsValue::Bool(true),
                        (Some(value), false) => self.expression(value)?,
                        (None, false) => match arguments.next() {
                            Some(Argument::Value(value)) => self.expression(value)?,
                            _ => {
                                return Err(ScriptError::fails(format!(
                                    "-{name} requires a value"
                                )));
                            }
                        },
                    };
                    given.add(own, name, value)?;
                }
            }
        }
        given.add_positional(takes, positional)?;
        Ok(given)
    }

    /// The script block that is the only argument of a cmdlet.
    pub(super) fn bind_block(
        &mut self,
        command: &CommandAst,
        takes: &ParameterSet,
    ) -> Result<Vec<Statement>, ScriptError> {
        match self.bind_parameters(command, takes)?.value(takes.values) {
            Some(PsValue::Block(statements)) => Ok(statements.clone()),
            _ => Err(ScriptError::unclear("expected a script block")),
        }
    }
}

impl BoundParameters {
    /// Adds a parameter by its own name, as it is written; common ones are ignored.
    fn add(&mut self, own: &'static str, written: &str, value: PsValue) -> Result<(), ScriptError> {
        if is_common(own) {
            return Ok(());
        }
        if self.value(own).is_some() {
            let why = format!("-{written} is given more than once");
            return Err(ScriptError::fails(why));
        }
        self.entries.push((own, value));
        Ok(())
    }

    /// Adds values without a name to the parameters with a position that have none.
    fn add_positional(
        &mut self,
        takes: &ParameterSet,
        values: Vec<PsValue>,
    ) -> Result<(), ScriptError> {
        let mut free: Vec<&str> = takes.positions.split_ascii_whitespace().collect();
        free.retain(|name| self.value(name).is_none());
        if values.len() > free.len() {
            return Err(ScriptError::unclear("more arguments than supported"));
        }
        self.entries.extend(free.into_iter().zip(values));
        Ok(())
    }
}

/// Resolves a name to one parameter, and whether it is a switch; common parameters come last.
fn resolve_name(takes: &ParameterSet, name: &str) -> Result<(&'static str, bool), ScriptError> {
    let known = |values, switches| {
        let values = matching_names(values, name)
            .into_iter()
            .map(|own| (own, false));
        let switches = matching_names(switches, name)
            .into_iter()
            .map(|own| (own, true));
        values.chain(switches).collect::<Vec<_>>()
    };
    let mut found = known(takes.values, takes.switches);
    if found.is_empty() {
        found = known(COMMON_VALUES, COMMON_SWITCHES);
    }
    if found.len() > 1 {
        found.retain(|(own, _)| *own == name);
    }
    match found.as_slice() {
        [one] => Ok(*one),
        _ => Err(ScriptError::option(&format!("-{name}"))),
    }
}
