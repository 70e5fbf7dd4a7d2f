//! Single settings of a service: the values that `sc create` and `sc config` write.

use wincimg_registry::{KeyMode, RegistryData, RegistryEdit};

use super::{ServiceAccount, ServiceName, ServiceText, StartType, list};
use crate::keys::set_value;

/// Settings to change in a service; the others stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceSettings {
    /// The command line; `%VARIABLES%` are expanded.
    pub command: Option<String>,
    /// Display name.
    pub display_name: Option<ServiceText>,
    /// Description.
    pub description: Option<ServiceText>,
    /// Start type.
    pub start: Option<StartType>,
    /// Account.
    pub account: Option<ServiceAccount>,
    /// The services that must run before it.
    pub depends_on: Option<Vec<ServiceName>>,
}

impl ServiceSettings {
    /// The edits that create a service in its own process, replacing one of that name. Defaults:
    /// start on demand, as `LocalSystem`.
    pub fn new_service(mut self, name: &ServiceName) -> Vec<RegistryEdit> {
        const OWN_PROCESS: u32 = 0x10;
        /// A failure to start is logged; the system starts nevertheless.
        const NORMAL: u32 = 1;
        self.start.get_or_insert(StartType::Demand);
        self.account.get_or_insert_default();
        let key = name.key();
        let mut edits = vec![RegistryEdit::CreateKey {
            key: key.clone(),
            mode: KeyMode::Replace,
        }];
        for (name, number) in [("Type", OWN_PROCESS), ("ErrorControl", NORMAL)] {
            edits.push(set_value(&key, name, RegistryData::dword(number)));
        }
        edits.extend(self.changes(name, false));
        edits
    }

    /// The edits that change an existing service, whose start may be delayed.
    pub fn changes(&self, name: &ServiceName, was_delayed: bool) -> Vec<RegistryEdit> {
        let key = name.key();
        let mut edits = Vec::new();
        let mut set = |name: &str, data| edits.push(set_value(&key, name, data));
        if let Some(start) = self.start {
            set("Start", RegistryData::dword(start.number()));
        }
        if let Some(command) = &self.command {
            set("ImagePath", RegistryData::expand_sz(command));
        }
        if let Some(account) = &self.account {
            set("ObjectName", RegistryData::sz(&account.to_string()));
        }
        let is_delayed = self.start.map(|start| start == StartType::DelayedAuto);
        if is_delayed.is_some_and(|is_delayed| is_delayed || was_delayed) {
            let is_delayed = u32::from(is_delayed == Some(true));
            set("DelayedAutostart", RegistryData::dword(is_delayed));
        }
        if let Some(name) = &self.display_name {
            set("DisplayName", RegistryData::sz(&name.0));
        }
        if let Some(text) = &self.description {
            set("Description", RegistryData::sz(&text.0));
        }
        match self.depends_on.as_deref() {
            None => {}
            Some([]) => edits.push(RegistryEdit::DeleteValue {
                key,
                name: "DependOnService".to_owned(),
            }),
            Some(names) => set("DependOnService", list(names.iter().map(|it| &it.0))),
        }
        edits
    }
}
