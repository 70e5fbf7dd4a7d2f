//! Services that a line creates or changes.

use wincimg_registry::TypedData;
use wincimg_scripts::{ImageState as _, Later, Lookup, ScriptError, ServiceChange, ServiceStart};
use wincimg_windows::invalid::InvalidText;
use wincimg_windows::service::{ServiceName, ServiceSettings, StartType};

use super::RunState;

impl RunState<'_> {
    pub(super) fn service(&mut self, service: &ServiceChange) -> Result<(), ScriptError> {
        let name: ServiceName = service.name.parse().map_err(not_understood)?;
        let settings = settings(service)?;
        let key = name.key();
        let edits = match (self.key(&key), service.is_new) {
            (Lookup::Present(()), true) => {
                let why = format!("the service {name} already exists");
                return Err(ScriptError::fails(why));
            }
            (_, true) => settings.new_service(&name),
            (Lookup::Absent, false) => {
                let why = format!("service {name} not found");
                return Err(ScriptError::fails(why));
            }
            (Lookup::Unknown | Lookup::Later(Later), false) => {
                let why = format!("it is unknown whether the base has the service {name}");
                return Err(ScriptError::unknown(why));
            }
            (Lookup::Present(()), false) => {
                let delayed = self.value(&key, "DelayedAutostart");
                let was_delayed = matches!(&delayed, Lookup::Present(data)
                    if !matches!(data.typed(), TypedData::Dword(0)));
                settings.changes(&name, was_delayed)
            }
        };
        self.registry.edits.extend(edits);
        Ok(())
    }
}

fn settings(service: &ServiceChange) -> Result<ServiceSettings, ScriptError> {
    let line = |text: &Option<String>| {
        let line = text.as_ref().map(|text| text.parse());
        line.transpose().map_err(not_understood)
    };
    let account = service.account.as_ref().map(|text| {
        text.parse().map_err(|error| {
            not_understood(error).help("use a virtual account: obj= \"NT SERVICE\\NAME\"")
        })
    });
    let depends_on = service.depends_on.as_ref().map(|names| {
        let named = names.iter().filter(|name| !name.is_empty());
        named.map(|name| name.parse()).collect::<Result<_, _>>()
    });
    Ok(ServiceSettings {
        command: service.command.clone(),
        display_name: line(&service.display_name)?,
        description: line(&service.description)?,
        start: service.start.map(|start| match start {
            ServiceStart::Auto => StartType::Auto,
            ServiceStart::Delayed => StartType::DelayedAuto,
            ServiceStart::Demand => StartType::Demand,
            ServiceStart::Disabled => StartType::Disabled,
        }),
        account: account.transpose()?,
        depends_on: depends_on.transpose().map_err(not_understood)?,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the signature for `map_err`")]
fn not_understood(error: InvalidText) -> ScriptError {
    ScriptError::unclear(error.to_string())
}
