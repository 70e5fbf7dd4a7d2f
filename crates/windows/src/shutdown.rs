//! The two registry values that limit the time in which a container stops.
//!
//! By default, the entry point of a container has five seconds. Both values should set the same
//! time, but have different units and types.

use wincimg_registry::{DataType, KeyPath, RegistryData, RegistryEdit, Root};

use crate::keys::{known_key, set_value};

/// Default timeout of Windows.
pub const DEFAULT_SECONDS: u32 = 5;

/// One of the two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownValue {
    /// `ProcessShutdownTimeoutSeconds`, a DWORD in seconds.
    Process,
    /// `WaitToKillServiceTimeout`, a text in milliseconds.
    Service,
}

impl ShutdownValue {
    /// Both, in the order of their edits.
    pub const BOTH: [Self; 2] = [Self::Process, Self::Service];

    /// The key in the SYSTEM hive.
    pub fn key(self) -> KeyPath {
        let names: &[&str] = match self {
            Self::Process => &["ControlSet001", "Services", "cexecsvc"],
            Self::Service => &["ControlSet001", "Control"],
        };
        known_key(Root::System, names)
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

    /// The type that Windows reads there.
    pub fn data_type(self) -> DataType {
        self.data(DEFAULT_SECONDS).kind()
    }

    /// The time in the data; none if Windows does not accept it.
    pub fn milliseconds(self, data: &RegistryData) -> Option<u64> {
        if data.kind() != self.data_type() {
            return None;
        }
        match self {
            Self::Process => Some(u64::from(data.number()?) * 1000),
            Self::Service => data.text()?.trim().parse().ok(),
        }
    }
}

/// The edits that set the timeout to this many seconds.
pub fn edits(seconds: u32) -> [RegistryEdit; 2] {
    ShutdownValue::BOTH
        .map(|setting| set_value(&setting.key(), setting.name(), setting.data(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_that_were_set_are_read_back() {
        assert_eq!(
            edits(45)[1].to_string(),
            r#"set HKLM\SYSTEM\ControlSet001\Control "WaitToKillServiceTimeout" = REG_SZ "45000""#
        );
        for setting in ShutdownValue::BOTH {
            let data = setting.data(45);
            assert_eq!(data.kind(), setting.data_type());
            assert_eq!(setting.milliseconds(&data), Some(45_000));
        }
    }

    #[test]
    fn a_time_of_the_wrong_type_does_not_count() {
        let wrong = [
            (ShutdownValue::Process, RegistryData::sz("45")),
            (ShutdownValue::Process, RegistryData::dword_big_endian(45)),
            (ShutdownValue::Service, RegistryData::dword(45_000)),
            (ShutdownValue::Service, RegistryData::expand_sz("45000")),
            (ShutdownValue::Service, RegistryData::sz("45 s")),
        ];
        for (setting, data) in wrong {
            assert_eq!(setting.milliseconds(&data), None, "{data}");
        }
    }
}
