//! Cmdlets on the IIS configuration, passed on by name and parameters.

use wincimg_iis::cmdlets::ParameterValue;

use super::super::error::Result;
use super::super::image::{IisCommand, ImageAction};
use super::ast::{Argument, CommandAst, Expression, StringPart};
use super::eval::Shell;
use super::has_word;
use super::parameters::{BoundParameters, ParameterSet};
use super::value::PsValue;

/// Cmdlets, and the parameters that they take.
static CMDLETS: [(&str, ParameterSet); 6] = [
    (
        "new-website",
        ParameterSet(
            "[name] port ipaddress hostheader physicalpath applicationpool id sslflags force? ssl? ...",
        ),
    ),
    (
        "remove-website new-webapppool remove-webapppool start-website stop-website \
         start-webapppool stop-webapppool restart-webapppool start-iissite stop-iissite",
        ParameterSet("[name] force? confirm? passthru? ..."),
    ),
    (
        "new-webapplication",
        ParameterSet("[name] site physicalpath applicationpool force? ..."),
    ),
    (
        "new-webbinding",
        ParameterSet("[name] protocol port ipaddress hostheader sslflags force? ..."),
    ),
    (
        "new-iissite",
        ParameterSet("[name] [physicalpath] [bindinginformation] protocol force? passthru? ..."),
    ),
    (
        "set-webconfigurationproperty add-webconfigurationproperty set-webconfiguration \
         add-webconfiguration clear-webconfiguration",
        ParameterSet(
            "[filter] [pspath] name value location metadata atelement atindex atname clr force? ...",
        ),
    ),
];

const ITEM: ParameterSet = ParameterSet(
    "[path] name itemtype=type value bindings physicalpath applicationpool id force? ...",
);

/// The parameters of a supported cmdlet of IIS.
pub(super) fn parameters_of(name: &str) -> Option<&'static ParameterSet> {
    let mut cmdlets = CMDLETS.iter();
    let found = cmdlets.find(|(names, _)| has_word(names, name));
    found.map(|(_, takes)| takes)
}

impl Shell<'_, '_> {
    pub(super) fn iis(
        &mut self,
        name: &str,
        command: &CommandAst,
        parameters: Vec<(String, ParameterValue)>,
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
    pub(super) fn is_new_on_iis(&self, command: &CommandAst) -> bool {
        let mut parameter = "path";
        command.arguments.iter().any(|argument| {
            if let Argument::Parameter { name, .. } = argument
                && !matches!(name.as_str(), "force" | "f")
            {
                parameter = name.as_str();
            }
            let Some(value) = argument.value() else {
                return false;
            };
            let is_path = "path".starts_with(std::mem::replace(&mut parameter, "path"));
            let text = match value {
                Expression::Text(text) | Expression::Word(text) => text.clone(),
                Expression::Variable(name) => match self.variable(name) {
                    PsValue::Text(text) => text,
                    _ => return false,
                },
                Expression::Filled(parts) => match parts.first() {
                    Some(StringPart::Text(text)) => text.clone(),
                    _ => return false,
                },
                _ => return false,
            };
            is_path && text.to_lowercase().starts_with("iis:")
        })
    }

    /// `New-Item IIS:\AppPools\x`
    pub(super) fn new_on_iis(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &ITEM)?;
        let mut parameters = parameters(command, &given)?;
        let name = given.text("name")?;
        for (parameter, value) in &mut parameters {
            if let ("path", ParameterValue::Text(path)) = (parameter.as_str(), value) {
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
        let recurses = ParameterValue::Bool(given.has("recurse"));
        self.apply(ImageAction::Iis(IisCommand::Cmdlet {
            name: "remove-item".to_owned(),
            parameters: vec![
                ("path".to_owned(), ParameterValue::Text(path.to_owned())),
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
    ) -> Result<()> {
        let mut parameters = parameters(command, given)?;
        parameters.retain(|(name, _)| matches!(name.as_str(), "name" | "value"));
        let path = ParameterValue::Text(path.to_owned());
        parameters.push(("path".to_owned(), path));
        self.iis("set-itemproperty", command, parameters).map(drop)
    }
}

pub(super) fn parameters(
    command: &CommandAst,
    given: &BoundParameters,
) -> Result<Vec<(String, ParameterValue)>> {
    if let Some(value) = given.value("value") {
        command.check_number(value)?;
    }
    let entries = given.entries.iter();
    entries
        .map(|(name, value)| Ok(((*name).to_owned(), parameter_value(value)?)))
        .collect()
}

/// Converts a value to a parameter value.
fn parameter_value(value: &PsValue) -> Result<ParameterValue> {
    Ok(match value {
        PsValue::Number(number) => ParameterValue::Number(*number),
        PsValue::Bool(value) => ParameterValue::Bool(*value),
        PsValue::List(items) => ParameterValue::List(
            items
                .iter()
                .map(parameter_value)
                .collect::<Result<_, _>>()?,
        ),
        PsValue::Table(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(name, value)| Ok((name.clone(), parameter_value(value)?)));
            ParameterValue::Table(entries.collect::<Result<_>>()?)
        }
        value => ParameterValue::Text(value.text()?),
    })
}
