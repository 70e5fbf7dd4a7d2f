//! The two registry settings that decide how long a container may take to stop.
//!
//! The entry point of a container gets five seconds unless they say otherwise. They belong together
//! and should say the same time, but count in different units and have different types.

use super::registry::{KeyPath, RegistryData, RegistryEdit, Root};

/// The service whose key says how long Windows waits for the entry point.
const CEXECSVC: [&str; 3] = ["ControlSet001", "Services", "cexecsvc"];

/// The key that says how long services may take.
const CONTROL: [&str; 2] = ["ControlSet001", "Control"];

/// What Windows waits without either setting.
pub const DEFAULT_SECONDS: u32 = 5;

/// One of the two settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// `ProcessShutdownTimeoutSeconds`, a DWORD in seconds.
    Process,
    /// `WaitToKillServiceTimeout`, a text in milliseconds.
    Service,
}

impl Setting {
    /// Both, in the order in which they are written.
    pub const BOTH: [Self; 2] = [Self::Process, Self::Service];

    /// The key in the SYSTEM hive.
    pub fn key(self) -> KeyPath {
        let components: &[&str] = match self {
            Self::Process => &CEXECSVC,
            Self::Service => &CONTROL,
        };
        let mut key = KeyPath::root_of(Root::System);
        for component in components {
            #[expect(
                clippy::expect_used,
                reason = "the names above are sound; a test goes through them"
            )]
            key.push(component).expect("a sound key name");
        }
        key
    }

    /// The value's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "ProcessShutdownTimeoutSeconds",
            Self::Service => "WaitToKillServiceTimeout",
        }
    }

    /// The value's data for this many seconds.
    pub fn data(self, seconds: u32) -> RegistryData {
        match self {
            Self::Process => RegistryData::dword(seconds),
            Self::Service => RegistryData::sz(&(u64::from(seconds) * 1000).to_string()),
        }
    }
}

/// The edits that give a container this many seconds to stop.
pub fn edits(seconds: u32) -> [RegistryEdit; 2] {
    Setting::BOTH.map(|setting| RegistryEdit::SetValue {
        key: setting.key(),
        name: setting.name().to_owned(),
        data: setting.data(seconds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_settings_say_the_same_time_in_their_own_way() {
        let [process, service] = edits(45).map(|edit| edit.to_string());
        assert_eq!(
            process,
            r#"set HKLM\SYSTEM\ControlSet001\Services\cexecsvc "ProcessShutdownTimeoutSeconds" = REG_DWORD 45"#
        );
        assert_eq!(
            service,
            r#"set HKLM\SYSTEM\ControlSet001\Control "WaitToKillServiceTimeout" = REG_SZ "45000""#
        );
    }
}
