//! Cmdlets on the IIS configuration, passed on by name and parameters.

use wincimg_iis::cmdlets;

use super::super::error::{self, Result};
use super::super::image::{IisCommand, ImageAction};
use super::ast::{Argument, CommandAst, Expression};
use super::eval::Shell;
use super::has_word;
use super::parameters::{BoundParameters, ParameterSet};
use super::value::PsValue;

/// Cmdlets, and the parameters that they take.
static CMDLETS: [(&str, ParameterSet); 8] = [
    (
        "new-website",
        ParameterSet(
            "[name] port ipaddress hostheader physicalpath applicationpool id sslflags force? ssl?",
        ),
    ),
    (
        "remove-website new-webapppool remove-webapppool remove-iissite start-website stop-website \
         start-webapppool stop-webapppool restart-webapppool start-iissite stop-iissite",
        ParameterSet("[name] force? confirm? passthru?"),
    ),
    (
        "new-webapplication new-webvirtualdirectory remove-webapplication \
         remove-webvirtualdirectory",
        ParameterSet("[name] site application physicalpath applicationpool force?"),
    ),
    (
        "new-webbinding remove-webbinding set-webbinding",
        ParameterSet(
            "[name] protocol port ipaddress hostheader bindinginformation sslflags propertyname \
             value force?",
        ),
    ),
    (
        "new-iissite",
        ParameterSet("[name] [physicalpath] [bindinginformation] protocol force? passthru?"),
    ),
    (
        "start-iiscommitdelay stop-iiscommitdelay reset-iisservermanager",
        ParameterSet("[commit] confirm?"),
    ),
    (
        "set-webconfigurationproperty add-webconfigurationproperty \
         remove-webconfigurationproperty clear-webconfigurationproperty set-webconfiguration \
         add-webconfiguration clear-webconfiguration",
        ParameterSet(
            "[filter] [pspath] name value location metadata atelement atindex atname clr force?",
        ),
    ),
    (
        "new-webhandler remove-webhandler new-webglobalmodule enable-webglobalmodule \
         disable-webglobalmodule",
        ParameterSet(
            "[name] path verb type modules scriptprocessor resourcetype requiredaccess \
             precondition image pspath location force?",
        ),
    ),
];

const ITEM: ParameterSet =
    ParameterSet("[path] name itemtype=type value bindings physicalpath applicationpool id force?");

/// The parameters of a supported cmdlet of IIS.
pub(super) fn parameters_of(name: &str) -> Option<&'static ParameterSet> {
    let mut cmdlets = CMDLETS.iter();
    let found = cmdlets.find(|(names, _)| has_word(names, name));
    found.map(|(_, takes)| takes)
}

impl Shell<'_, '_> {
    pub(super) fn iis_cmdlet(
        &mut self,
        name: &str,
        takes: &ParameterSet,
        command: &CommandAst,
        input: Option<&PsValue>,
    ) -> Result<PsValue> {
        if input.is_some() {
            return error::unclear("unsupported pipeline input");
        }
        let given = self.bind_parameters(command, takes)?;
        self.iis(name, command, parameters(&given)?)
    }

    fn iis(
        &mut self,
        name: &str,
        command: &CommandAst,
        parameters: Vec<(String, cmdlets::ParameterValue)>,
    ) -> Result<PsValue> {
        let on_error = self.error_action(command)?;
        let done = self.apply(ImageAction::Iis(IisCommand::Cmdlet {
            name: name.to_owned(),
            parameters,
        }));
        self.handle_result(on_error, done)?;
        let makes = name.starts_with("new-");
        Ok(if makes {
            PsValue::opaque(format!("the output of {name} is used"))
        } else {
            PsValue::Null
        })
    }

    /// Returns true if the path of `New-Item` is on `IIS:`.
    pub(super) fn is_new_on_iis(&mut self, command: &CommandAst) -> Result<bool> {
        let mut arguments = command.arguments.iter();
        let mut path = None;
        while let Some(argument) = arguments.next() {
            match argument {
                Argument::Value(value) => {
                    path = path.or(Some(value));
                }
                Argument::Parameter { name, value, .. } => {
                    let value = match value {
                        Some(value) => Some(value),
                        None => arguments.clone().next().and_then(|next| match next {
                            Argument::Value(value) => Some(value),
                            _ => None,
                        }),
                    };
                    if !name.is_empty() && "path".starts_with(name.as_str()) {
                        path = value;
                        break;
                    }
                    if !matches!(name.as_str(), "force" | "f") {
                        arguments.next();
                    }
                }
                Argument::Splat(_) => return Ok(false),
            }
        }
        let path = match path {
            Some(path @ (Expression::Text(_) | Expression::Word(_) | Expression::Variable(_))) => {
                self.expression(path)?
            }
            Some(Expression::Filled(pieces)) => match pieces.first() {
                Some(super::ast::StringPart::Text(text)) => PsValue::text_value(text.clone()),
                _ => return Ok(false),
            },
            _ => return Ok(false),
        };
        let PsValue::Text(path) = path else {
            return Ok(false);
        };
        Ok(path.to_lowercase().starts_with("iis:"))
    }

    /// `New-Item IIS:\AppPools\x`
    pub(super) fn new_on_iis(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &ITEM)?;
        let mut parameters = parameters(&given)?;
        let name = given.text("name")?;
        for (parameter, value) in &mut parameters {
            if let ("path", cmdlets::ParameterValue::Text(path)) = (parameter.as_str(), value) {
                *path = path["iis:".len()..].to_owned();
                if let Some(name) = &name {
                    *path = format!(r"{}\{name}", path.trim_end_matches(['\\', '/']));
                }
            }
        }
        parameters.retain(|(parameter, _)| parameter != "name");
        self.iis("new-item", command, parameters)
    }

    /// `Remove-Item IIS:\AppPools\x -Recurse`
    pub(super) fn iis_removal(&mut self, path: &str, given: &BoundParameters) -> Result<()> {
        let recurses = cmdlets::ParameterValue::Bool(given.has("recurse"));
        self.apply(ImageAction::Iis(IisCommand::Cmdlet {
            name: "remove-item".to_owned(),
            parameters: vec![
                (
                    "path".to_owned(),
                    cmdlets::ParameterValue::Text(path.to_owned()),
                ),
                ("recurse".to_owned(), recurses),
            ],
        }))
    }

    /// `Set-ItemProperty IIS:\AppPools\x -Name … -Value …`
    pub(super) fn iis_property(
        &mut self,
        command: &CommandAst,
        path: &str,
        given: &BoundParameters,
    ) -> Result<PsValue> {
        let mut parameters = parameters(given)?;
        parameters.retain(|(name, _)| matches!(name.as_str(), "name" | "value"));
        let path = cmdlets::ParameterValue::Text(path.to_owned());
        parameters.push(("path".to_owned(), path));
        self.iis("set-itemproperty", command, parameters)
    }
}

fn parameters(given: &BoundParameters) -> Result<Vec<(String, cmdlets::ParameterValue)>> {
    let entries = given.entries.iter();
    entries
        .map(|(name, value)| Ok(((*name).to_owned(), parameter_value(value)?)))
        .collect()
}

/// Converts a value to a parameter value.
fn parameter_value(value: &PsValue) -> Result<cmdlets::ParameterValue> {
    Ok(match value {
        PsValue::Number(number) => cmdlets::ParameterValue::Number(*number),
        PsValue::Bool(value) => cmdlets::ParameterValue::Bool(*value),
        PsValue::List(items) => cmdlets::ParameterValue::List(
            items
                .iter()
                .map(parameter_value)
                .collect::<Result<_, _>>()?,
        ),
        PsValue::Table(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(name, value)| Ok((name.clone(), parameter_value(value)?)));
            cmdlets::ParameterValue::Table(entries.collect::<Result<_>>()?)
        }
        value => cmdlets::ParameterValue::Text(value.text()?),
    })
}
