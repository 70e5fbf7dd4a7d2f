//! `ServiceInstall` and `ServiceControl` tables.

use wincimg_registry::{KeyPath, Presence, RegistryData, RegistryEdit};
use wincimg_windows::service::ServiceName;

use super::builder::Builder;
use super::database::Row;
use super::error::MsiError;
use super::formatted::SEPARATOR;
use super::session::Session;

/// Bit of `ErrorControl` that makes the installation fail if the service cannot be installed.
const VITAL: u32 = 0x8000;

const START: u32 = 1;
const DELETE: u32 = 8;

impl Session<'_> {
    /// `InstallServices`.
    pub(crate) fn install_services(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.database.rows("ServiceInstall") {
            if self.installed(row.text("Component_")).is_none() {
                continue;
            }
            let name = self.format(row.text("Name"))?;
            let key = service_key(&name)?;
            if let Presence::Unknown = self.system.key(&key) {
                self.unknown
                    .push(format!("whether the service {name} exists"));
            }
            self.write_service(&row, &key, &name, plan)?;
            plan.services.push(name);
        }
        Ok(())
    }

    fn write_service(
        &self,
        row: &Row<'_>,
        key: &KeyPath,
        name: &str,
        plan: &mut Builder,
    ) -> Result<(), MsiError> {
        let component = self.components.get(row.text("Component_"));
        let program = component
            .map(|it| self.file(&it.key_path))
            .transpose()?
            .flatten();
        let Some(program) = program else {
            let why = format!("the component of service {name} has no file");
            return Err(MsiError::damaged(why));
        };
        let mut command = format!("\"{program}\"");
        let arguments = self.format(row.text("Arguments"))?;
        if !arguments.is_empty() {
            command = format!("{command} {arguments}");
        }
        plan.set(key, "Type", RegistryData::dword(row.flags("ServiceType")))?;
        plan.set(key, "Start", RegistryData::dword(row.flags("StartType")))?;
        let error_control = row.flags("ErrorControl") & !VITAL;
        plan.set(key, "ErrorControl", RegistryData::dword(error_control))?;
        plan.set(key, "ImagePath", RegistryData::expand_sz(&command))?;
        let mut text = |value: &str, column: &str| match self.format(row.text(column))? {
            text if text.is_empty() => Ok(()),
            text => plan.set(key, value, RegistryData::sz(&text)),
        };
        text("DisplayName", "DisplayName")?;
        text("Group", "LoadOrderGroup")?;
        text("Description", "Description")?;
        let account = self.format(row.text("StartName"))?;
        if !self.format(row.text("Password"))?.is_empty() {
            let why =
                format!("service {name} has an account with a password, which Windows stores");
            return Err(MsiError::unsupported(why));
        }
        let account = if account.is_empty() {
            "LocalSystem"
        } else {
            &account
        };
        plan.set(key, "ObjectName", RegistryData::sz(account))?;
        let dependencies = self.format(row.text("Dependencies"))?;
        let all = dependencies.split(SEPARATOR).filter(|it| !it.is_empty());
        let (groups, services): (Vec<&str>, Vec<&str>) = all.partition(|it| it.starts_with('+'));
        let groups: Vec<&str> = groups.iter().map(|it| it.trim_start_matches('+')).collect();
        for (value, names) in [("DependOnService", services), ("DependOnGroup", groups)] {
            if !names.is_empty() {
                let data = RegistryData::multi_sz(&names);
                let data = data.map_err(|error| MsiError::unsupported(error.to_string()))?;
                plan.set(key, value, data)?;
            }
        }
        Ok(())
    }

    /// `DeleteServices` and `StartServices`: nothing runs in an image.
    pub(crate) fn control_services(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.database.rows("ServiceControl") {
            if self.installed(row.text("Component_")).is_none() {
                continue;
            }
            let event = row.flags("Event");
            let name = self.format(row.text("Name"))?;
            if event & START != 0 {
                self.notes
                    .push(format!("service {name} starts with the container, not now"));
            }
            if event & DELETE == 0 {
                continue;
            }
            let key = service_key(&name)?;
            match self.system.key(&key) {
                Presence::Present(()) => plan.edit(RegistryEdit::DeleteKey { key })?,
                Presence::Absent => {}
                Presence::Unknown => self
                    .unknown
                    .push(format!("whether the service {name} exists")),
            }
        }
        Ok(())
    }
}

pub(crate) fn service_key(name: &str) -> Result<KeyPath, MsiError> {
    let parsed = name.parse::<ServiceName>();
    let parsed = parsed.map_err(|error| MsiError::unsupported(error.to_string()))?;
    Ok(parsed.key())
}
