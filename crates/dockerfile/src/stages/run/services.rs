//! Services that a line creates, changes or deletes.

use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{KeyPath, RegistryData, RegistryEdit, TypedData};
use wincimg_scripts::{ImageState as _, Lookup, PendingDownload, ScriptError, ServiceChange};
use wincimg_windows::service::{FailureActions, ServiceName};

use super::RunState;
use super::keys::is_same;

/// Value of a service's key.
const DISPLAY_NAME: &str = "DisplayName";

impl RunState<'_> {
    pub(super) fn service(&mut self, service: ServiceChange) -> Result<(), ScriptError> {
        let ServiceChange { name, settings, .. } = service;
        if let Some(display_name) = &settings.display_name {
            self.check_display_name(display_name.as_str(), &name)?;
        }
        let key = name.key();
        let mut edits = match (self.key(&key), service.is_new) {
            (Lookup::Present(()), true) => {
                let why = format!("the service {name} already exists");
                return Err(ScriptError::fails(why));
            }
            (_, true) => settings.new_service(&name),
            (_, false) => {
                self.check_service_exists(&name)?;
                let delayed = self.value(&key, "DelayedAutostart");
                let was_delayed = matches!(&delayed, Lookup::Present(data)
                    if !matches!(data.typed(), TypedData::Dword(0)));
                settings.changes(&name, was_delayed)
            }
        };
        if let Some(failure) = &service.on_failure {
            self.check_failure_command(failure, &name)?;
            edits.extend(failure.edits(&name));
        }
        if service.fails_on_error {
            edits.push(RegistryEdit::SetValue {
                key,
                name: "FailureActionsOnNonCrashFailures".to_owned(),
                data: RegistryData::dword(1),
            });
        }
        self.registry.edit(edits);
        Ok(())
    }

    pub(super) fn delete_service(&mut self, name: &ServiceName) -> Result<(), ScriptError> {
        self.check_service_exists(name)?;
        let edit = RegistryEdit::DeleteKey { key: name.key() };
        self.registry.edit([edit]);
        Ok(())
    }

    /// A display name is that of one service, and no other service has it as its name. Those of the
    /// base are mostly in resources of its programs.
    fn check_display_name(&self, text: &str, name: &ServiceName) -> Result<(), ScriptError> {
        let own = name.key();
        let is_name = text.parse::<ServiceName>().is_ok_and(|other| {
            !is_same(&other.key(), &own) && self.key(&other.key()) == Lookup::Present(())
        });
        let has_it = |key: &KeyPath| matches!(self.value(key, DISPLAY_NAME), Lookup::Present(data) if matches!(data.typed(), TypedData::Text(other) if eq_ignore_case(&other, text)));
        let above = |key: &KeyPath| {
            let mut above = key.clone();
            above.pop();
            above
        };
        let is_other = |key: &KeyPath| !is_same(key, &own) && is_same(&above(key), &above(&own));
        let mut keys = self.registry.with_value(DISPLAY_NAME);
        if is_name || keys.any(|key| is_other(key) && has_it(key)) {
            let why = format!("another service has the name or display name {text:?}");
            return Err(ScriptError::fails(why));
        }
        Ok(())
    }

    fn check_service_exists(&self, name: &ServiceName) -> Result<(), ScriptError> {
        match self.key(&name.key()) {
            Lookup::Present(()) => Ok(()),
            Lookup::Absent => Err(ScriptError::fails(format!("service {name} not found"))),
            Lookup::Unknown | Lookup::Deferred(PendingDownload) => {
                let why = format!("it is unknown whether the base has the service {name}");
                Err(ScriptError::unknown(why))
            }
        }
    }

    /// The command of a service stays where none is given, and only Windows knows how the actions
    /// say so.
    fn check_failure_command(
        &self,
        failure: &FailureActions,
        name: &ServiceName,
    ) -> Result<(), ScriptError> {
        let has = |value: &str| self.value(&name.key(), value) != Lookup::Absent;
        if has("RebootMessage") || failure.command.is_none() && has("FailureCommand") {
            let why = format!("the service {name} has a failure command or message already");
            return Err(ScriptError::unclear(why).help("give the command, too"));
        }
        Ok(())
    }
}
