//! `ServiceInstall` and `ServiceControl` tables.

use wincimg_registry::{KeyPath, RegistryData, RegistryEdit};
use wincimg_windows::service::{ServiceAccount, ServiceName};

use super::builder::Builder;
use super::classes::with_arguments;
use super::database::Row;
use super::error::MsiError;
use super::formatted::SEPARATOR;
use super::session::Session;

/// Bits of `ServiceType` of drivers, which Windows Installer does not support.
const DRIVER: u32 = 3;

/// Bit of `ErrorControl` that makes the installation fail if the service cannot be installed.
const VITAL: u32 = 0x8000;

/// Table of settings of services.
pub(crate) const SERVICE_CONFIG: &str = "MsiServiceConfig";
/// `ConfigType` of the delayed start of an automatic service.
const DELAYED_START: i32 = 3;
/// `Event` of rows that are for an installation.
const ON_INSTALL: u32 = 1;

const START: u32 = 1;
const DELETE: u32 = 8;

/// `Start` of a service that Windows starts by itself.
const AUTOMATIC: u32 = 2;

impl Session<'_> {
    /// `InstallServices`.
    pub(crate) fn install_services(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("ServiceInstall") {
            let name = self.format(row.text("Name"))?;
            let key = service_key(&name)?;
            // Only that it is unknown matters.
            self.has_service(&key, &name);
            self.write_service(&row, &key, &name, plan)?;
            plan.rest.services.push(name);
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
        let program = self.key_file(row)?;
        if program.is_empty() {
            let why = format!("the component of service {name} has no file");
            return Err(MsiError::damaged(why));
        }
        let kind = row.flags("ServiceType");
        if kind & DRIVER != 0 {
            let why =
                format!("service {name} is a driver, which Windows Installer does not support");
            return Err(MsiError::unsupported(why));
        }
        let arguments = self.format(row.text("Arguments"))?;
        let command = with_arguments(format!("\"{program}\""), &arguments);
        plan.set(key, "Type", RegistryData::dword(kind))?;
        plan.set(key, "Start", RegistryData::dword(row.flags("StartType")))?;
        let error_control = row.flags("ErrorControl") & !VITAL;
        plan.set(key, "ErrorControl", RegistryData::dword(error_control))?;
        plan.set(key, "ImagePath", RegistryData::expand_sz(&command))?;
        let mut text = |value: &str, column: &str| match self.format(row.text(column))? {
            text if text.is_empty() => Ok(()),
            text => plan.text(key, value, &text),
        };
        text("DisplayName", "DisplayName")?;
        text("Group", "LoadOrderGroup")?;
        text("Description", "Description")?;
        plan.text(key, "ObjectName", &self.service_account(row, name)?)?;
        let dependencies = self.format(row.text("Dependencies"))?;
        let all = dependencies.split(SEPARATOR).filter(|it| !it.is_empty());
        let (groups, services): (Vec<&str>, Vec<&str>) = all.partition(|it| it.starts_with('+'));
        let groups: Vec<&str> = groups.iter().map(|it| it.trim_start_matches('+')).collect();
        for (value, names) in [("DependOnService", services), ("DependOnGroup", groups)] {
            if !names.is_empty() {
                let data = RegistryData::multi_sz(&names).map_err(MsiError::unsupported)?;
                plan.set(key, value, data)?;
            }
        }
        Ok(())
    }

    /// The account of a service, which is one that every image has.
    fn service_account(&self, row: &Row<'_>, name: &str) -> Result<String, MsiError> {
        if !self.format(row.text("Password"))?.is_empty() {
            let why =
                format!("service {name} has an account with a password, which Windows stores");
            return Err(MsiError::unsupported(why));
        }
        let account = self.format(row.text("StartName"))?;
        if account.is_empty() {
            return Ok("LocalSystem".to_owned());
        }
        let is_system = account.eq_ignore_ascii_case(r"NT AUTHORITY\SYSTEM");
        if !is_system && account.parse::<ServiceAccount>().is_err() {
            let why = format!("service {name} has the account {account}, which is not built in");
            return Err(MsiError::unsupported(why));
        }
        Ok(account)
    }

    /// `StartServices`: nothing runs in an image, and a service of the package that is automatic
    /// starts with the container.
    pub(crate) fn start_services(&mut self, plan: &Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("ServiceControl") {
            if row.flags("Event") & START == 0 {
                continue;
            }
            let name = self.format(row.text("Name"))?;
            let mut own = plan.rest.services.iter();
            let Some(own) = own.find(|own| own.eq_ignore_ascii_case(&name)) else {
                continue;
            };
            let start = self.present_value(&service_key(own)?, "Start", plan);
            if start == Some(RegistryData::dword(AUTOMATIC)) {
                self.notes
                    .push(format!("service {own} starts with the container, not now"));
            }
        }
        Ok(())
    }

    /// `MsiConfigureServices`: the delayed start of automatic services.
    pub(crate) fn delay_services(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows(SERVICE_CONFIG) {
            if row.flags("Event") & ON_INSTALL == 0 || !is_delayed_start(&row) {
                continue;
            }
            let key = service_key(&self.format(row.text("Name"))?)?;
            if self.present_value(&key, "Start", plan) == Some(RegistryData::dword(AUTOMATIC)) {
                let is_delayed = u32::from(row.text("Argument") == "1");
                plan.set(&key, "DelayedAutostart", RegistryData::dword(is_delayed))?;
            }
        }
        Ok(())
    }

    /// `DeleteServices`.
    pub(crate) fn delete_services(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("ServiceControl") {
            if row.flags("Event") & DELETE == 0 {
                continue;
            }
            let name = self.format(row.text("Name"))?;
            let key = service_key(&name)?;
            if self.has_service(&key, &name) {
                plan.edit(RegistryEdit::DeleteKey { key })?;
            }
        }
        Ok(())
    }

    fn has_service(&mut self, key: &KeyPath, name: &str) -> bool {
        let found = self.system.key(key);
        let question = || format!("whether the service {name} exists");
        self.known(found, question).is_some()
    }
}

/// True for a row of [`SERVICE_CONFIG`] that only delays the start of a service, or does not.
pub(crate) fn is_delayed_start(row: &Row<'_>) -> bool {
    row.number("ConfigType") == Some(DELAYED_START) && ["0", "1"].contains(&row.text("Argument"))
}

pub(crate) fn service_key(name: &str) -> Result<KeyPath, MsiError> {
    let parsed = name.parse::<ServiceName>().map_err(MsiError::unsupported)?;
    Ok(parsed.key())
}
