//! Binding of cmdlet parameters: prefixes, aliases, switches, positions.

use std::collections::BTreeSet;

use wincimg_common::untrusted::QuotedText;

use super::super::error::{self, Ends, Result, ScriptError};
use super::super::tools::QUOTE;
use super::ast::{Argument, CommandAst, Expression, Statement};
use super::eval::Shell;
use super::value::PsValue;

/// Parameters of a cmdlet, in lower case: `name`, `[name]` if its name can be left out, `name?` for a
/// switch, `name!` for one that is not supported, and makes a prefix ambiguous; each with its aliases
/// as `name=alias=alias`; `...` at the end if it takes more values.
pub(super) struct ParameterSet(pub(super) &'static str);

/// Common parameters, which have no effect here.
const COMMON: ParameterSet = ParameterSet(
    "erroraction=ea warningaction=wa informationaction=infa errorvariable=ev warningvariable=wv \
     outvariable=ov verbose=vb? debug=db? outbuffer=ob! pipelinevariable=pv! informationvariable=iv!",
);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ParameterKind {
    Value,
    Switch,
    Unsupported,
}

impl ParameterSet {
    /// The parameters with their aliases.
    fn entries(&self) -> impl Iterator<Item = (&'static str, ParameterKind)> {
        let words = self.0.split_ascii_whitespace();
        words.map(|word| {
            if let Some(switch) = word.strip_suffix('?') {
                (switch, ParameterKind::Switch)
            } else if let Some(other) = word.strip_suffix('!') {
                (other, ParameterKind::Unsupported)
            } else {
                (word.trim_matches(['[', ']']), ParameterKind::Value)
            }
        })
    }

    /// The parameters whose names can be left out, in order.
    fn positions(&self) -> impl Iterator<Item = &'static str> {
        let words = self.0.split_ascii_whitespace();
        words.filter_map(|word| Some(own_name(word.strip_prefix('[')?.strip_suffix(']')?)))
    }

    /// Returns true if a name is of no parameter, nor of a common one.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.matches(name).is_empty() && COMMON.matches(name).is_empty()
    }

    /// Parameters that a name or alias, or a prefix of them, matches.
    fn matches(&self, name: &str) -> BTreeSet<(&'static str, ParameterKind)> {
        let is_exact = |entry: &str| entry.split('=').any(|known| known == name);
        match self.entries().find(|(entry, _)| is_exact(entry)) {
            Some((entry, kind)) => BTreeSet::from([(own_name(entry), kind)]),
            None => self
                .entries()
                .filter(|(entry, _)| entry.split('=').any(|known| known.starts_with(name)))
                .map(|(entry, kind)| (own_name(entry), kind))
                .collect(),
        }
    }
}

fn own_name(entry: &'static str) -> &'static str {
    entry.split('=').next().unwrap_or_default()
}

/// Parameters that a command line binds.
#[derive(Debug, Clone, Default)]
pub(super) struct BoundParameters {
    pub(super) entries: Vec<(&'static str, PsValue)>,
}

impl BoundParameters {
    pub(super) fn value(&self, name: &str) -> Option<&PsValue> {
        self.entries
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    }

    /// The text of a parameter that takes one: a list is none.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>> {
        match self.value(name) {
            Some(PsValue::List(_)) => error::unclear(format!(
                "a list is given for -{name}, which takes one value"
            )),
            value => value.map(PsValue::text).transpose(),
        }
    }

    pub(super) fn required(&self, name: &str) -> Result<String> {
        self.text(name)?
            .ok_or_else(|| ScriptError::unclear(format!("-{name} is required")))
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>> {
        self.value(name).map_or(Ok(Vec::new()), PsValue::texts)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        matches!(self.value(name), Some(PsValue::Bool(true)))
    }

    /// Adds a parameter by its own name, as it is written; common ones are ignored.
    fn add(&mut self, own: &'static str, written: &str, value: PsValue) -> Result<()> {
        if COMMON.entries().any(|(entry, _)| own_name(entry) == own) {
            return Ok(());
        }
        if self.value(own).is_some() {
            return error::fails(format!("-{written} is given more than once"));
        }
        self.entries.push((own, value));
        Ok(())
    }

    /// Adds values without a name to the parameters with a position that have none.
    fn add_positional(&mut self, takes: &ParameterSet, values: Vec<PsValue>) -> Result<()> {
        let mut free: Vec<&str> = takes.positions().collect();
        free.retain(|name| self.value(name).is_none());
        if let Some(value) = values.get(free.len()) {
            return Err(match value.text() {
                _ if takes.0.ends_with("...") => {
                    ScriptError::unclear("more arguments than supported")
                }
                Ok(text) => ScriptError::fails(format!("unexpected argument {}", QuotedText(text)))
                    .help(QUOTE),
                Err(_) => ScriptError::fails("unexpected argument"),
            });
        }
        self.entries.extend(free.into_iter().zip(values));
        Ok(())
    }
}

impl Shell<'_, '_> {
    /// Binds the arguments of a command to the parameters of its cmdlet. What fails here ends the
    /// statement, whatever the error action of the command.
    pub(super) fn bind_parameters(
        &mut self,
        command: &CommandAst,
        takes: &ParameterSet,
    ) -> Result<BoundParameters> {
        let given = self.bound_parameters(command, takes);
        given.map_err(|error| error.ending(Ends::Statement))
    }

    fn bound_parameters(
        &mut self,
        command: &CommandAst,
        takes: &ParameterSet,
    ) -> Result<BoundParameters> {
        let mut given = BoundParameters::default();
        let mut positional = Vec::new();
        let mut splatted = Vec::new();
        // After `--`, everything is a value.
        let mut has_ended = false;
        let mut arguments = command.arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument {
                Argument::Value(Expression::Word(word)) if word == "--" && has_ended => {
                    return error::unclear("a second -- is not supported");
                }
                Argument::Value(Expression::Word(word)) if word == "--" => has_ended = true,
                Argument::Parameter { .. } if has_ended => {
                    return error::unclear("parameters after -- are not supported");
                }
                Argument::Value(value) => positional.push(self.expression(value)?),
                Argument::Splat(name) => match self.variables.get(name) {
                    Some(PsValue::Table(entries)) => splatted.extend(entries.iter().cloned()),
                    _ => return error::unclear(format!("@{name} is not supported")),
                },
                Argument::Parameter { name, value, .. } => {
                    let (own, is_switch) = resolve_name(takes, name)?;
                    let value = match (value, is_switch) {
                        (Some(value), true) => PsValue::Bool(self.expression(value)?.to_bool()?),
                        (None, true) => PsValue::Bool(true),
                        (Some(value), false) => self.expression(value)?,
                        (None, false) => match arguments.next() {
                            Some(Argument::Value(value)) => self.expression(value)?,
                            _ => return error::fails(format!("-{name} requires a value")),
                        },
                    };
                    given.add(own, name, value)?;
                }
            }
        }
        for (name, value) in splatted {
            let (own, is_switch) = resolve_name(takes, &name)?;
            // In PowerShell 7, what is written comes before it.
            if self.is_core && given.value(own).is_some() {
                continue;
            }
            let value = if is_switch {
                PsValue::Bool(value.to_bool()?)
            } else {
                value
            };
            given.add(own, &name, value)?;
        }
        given.add_positional(takes, positional)?;
        Ok(given)
    }

    /// The script block that is the only argument of a cmdlet.
    pub(super) fn bind_block(
        &mut self,
        command: &CommandAst,
        takes: &ParameterSet,
    ) -> Result<Vec<Statement>> {
        let given = self.bind_parameters(command, takes)?;
        match takes.positions().next().and_then(|name| given.value(name)) {
            Some(PsValue::Block(statements)) => Ok(statements.clone()),
            _ => error::unclear("expected a script block"),
        }
    }
}

impl CommandAst {
    /// Refuses an argument that is a bare word such as `0x10` or `007`, where it matters that it is a
    /// number and keeps its text.
    pub(super) fn check_number(&self, value: &PsValue) -> Result<()> {
        let PsValue::Text(text) = value else {
            return Ok(());
        };
        let mut values = self.arguments.iter().filter_map(Argument::value);
        let is_bare = values.any(|it| matches!(it, Expression::Word(word) if word == text));
        if is_bare {
            value.check_literal()
        } else {
            Ok(())
        }
    }
}

/// Resolves a name to one parameter, and whether it is a switch; common parameters come last.
fn resolve_name(takes: &ParameterSet, name: &str) -> Result<(&'static str, bool)> {
    let mut found = takes.matches(name);
    if found.is_empty() {
        found = COMMON.matches(name);
    }
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(|(own, _)| format!("-{own}")).collect();
        let why = format!("-{name} is ambiguous: {}", names.join(", "));
        return Err(ScriptError::unclear(why).help("write the whole name"));
    }
    match found.pop_first() {
        Some((own, ParameterKind::Value)) => Ok((own, false)),
        Some((own, ParameterKind::Switch)) => Ok((own, true)),
        Some((_, ParameterKind::Unsupported)) | None => error::option(&format!("-{name}")),
    }
}
