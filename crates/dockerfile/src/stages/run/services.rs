//! Services that a line makes or changes.

use wincimg_registry::Typed;
use wincimg_scripts::{Image as _, Seen, Service, ServiceStart, Trouble, TroubleKind};
use wincimg_windows::invalid::InvalidText;
use wincimg_windows::service::{ServiceName, Settings, Start};

use super::{Running, trouble};

impl Running<'_> {
    pub(super) fn service(&mut self, service: &Service) -> Result<(), Trouble> {
        let name: ServiceName = service.name.parse().map_err(not_understood)?;
        let settings = settings(service)?;
        let key = name.key();
        let edits = match (self.key(&key), service.is_new) {
            (Seen::There(()), true) => {
                let why = format!("there is a service {name} already");
                return Err(trouble(TroubleKind::Fails, why));
            }
            (_, true) => settings.new_service(&name),
            (Seen::Missing, false) => {
                let why = format!("there is no service {name}");
                return Err(trouble(TroubleKind::Fails, why));
            }
            (Seen::Unknown | Seen::Later, false) => {
                let why = format!("whether the base has the service {name} is not known");
                return Err(trouble(TroubleKind::NotKnown, why));
            }
            (Seen::There(()), false) => {
                let delayed = self.value(&key, "DelayedAutostart");
                let was_delayed = matches!(&delayed, Seen::There(data)
                    if !matches!(data.typed(), Typed::Dword(0)));
                settings.changes(&name, was_delayed)
            }
        };
        self.edits.extend(edits);
        Ok(())
    }
}

fn settings(service: &Service) -> Result<Settings, Trouble> {
    let line = |text: &Option<String>| {
        let line = text.as_ref().map(|text| text.parse());
        line.transpose().map_err(not_understood)
    };
    let account = service.account.as_ref().map(|text| {
        text.parse().map_err(|error| {
            not_understood(error).help("let a virtual account run it: obj= \"NT SERVICE\\NAME\"")
        })
    });
    let depends_on = service.depends_on.as_ref().map(|names| {
        let named = names.iter().filter(|name| !name.is_empty());
        named.map(|name| name.parse()).collect::<Result<_, _>>()
    });
    Ok(Settings {
        command: service.command.clone(),
        display_name: line(&service.display_name)?,
        description: line(&service.description)?,
        start: service.start.map(|start| match start {
            ServiceStart::Auto => Start::Auto,
            ServiceStart::Delayed => Start::DelayedAuto,
            ServiceStart::Demand => Start::Demand,
            ServiceStart::Disabled => Start::Disabled,
        }),
        account: account.transpose()?,
        depends_on: depends_on.transpose().map_err(not_understood)?,
    })
}

// As `map_err` passes it.
#[allow(clippy::needless_pass_by_value)]
fn not_understood(error: InvalidText) -> Trouble {
    trouble(TroubleKind::NotUnderstood, error.to_string())
}
