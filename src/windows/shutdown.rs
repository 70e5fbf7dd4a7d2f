//! The two registry settings that decide how long a container may take to stop.
//!
//! The entry point of a container gets five seconds unless they say otherwise. They belong together
//! and should say the same time, but count in different units and have different types.

use super::hive::Key;
use super::registry::{KeyPath, RegistryData, RegistryEdit, Root, Typed};

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

/// The times that a registry gives a container to stop, as far as it says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShutdownTimes {
    /// Seconds for the entry point.
    pub process_seconds: Option<u64>,
    /// Milliseconds for services.
    pub services_milliseconds: Option<u64>,
}

impl ShutdownTimes {
    /// Reads the times from the system hive's root, of one layer or of a merged view. A value of
    /// another type than Windows reads there does not count.
    pub fn of(system: &Key<'_>) -> Self {
        let data = |setting: Setting| {
            let path = setting.key().components().join("\\");
            system.at(&path)?.value(setting.name())
        };
        Self {
            process_seconds: data(Setting::Process).and_then(|data| match data.typed() {
                Typed::Dword(seconds) => Some(seconds.into()),
                _ => None,
            }),
            services_milliseconds: data(Setting::Service).and_then(|data| match data.typed() {
                Typed::Text(text) => text.trim().parse().ok(),
                _ => None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::hive::{FileTime, Hive, write_deltas};

    fn times(edits: &[RegistryEdit]) -> ShutdownTimes {
        let hives = write_deltas(edits, FileTime::default()).unwrap();
        ShutdownTimes::of(&Hive::read(&hives[0].bytes).unwrap().root)
    }

    #[test]
    fn the_times_that_were_set_are_read_back() {
        assert_eq!(
            edits(45)[1].to_string(),
            r#"set HKLM\SYSTEM\ControlSet001\Control "WaitToKillServiceTimeout" = REG_SZ "45000""#
        );
        let times = times(&edits(45));
        assert_eq!(times.process_seconds, Some(45));
        assert_eq!(times.services_milliseconds, Some(45_000));
    }

    #[test]
    fn a_time_of_the_wrong_type_does_not_count() {
        let set = |setting: Setting, data| RegistryEdit::SetValue {
            key: setting.key(),
            name: setting.name().to_owned(),
            data,
        };
        let wrong = [
            set(Setting::Process, RegistryData::sz("45")),
            set(Setting::Service, RegistryData::dword(45_000)),
        ];
        assert_eq!(times(&wrong), ShutdownTimes::default());
    }
}
