//! How long a container may take to stop, which is in two places of its registry.
//!
//! The entry point of a container gets five seconds unless these say otherwise. They belong
//! together and should say the same time, but count in different units and have different types.

use super::Key;
use crate::windows::registry::{KeyPath, KeyPathError, RegistryData, RegistryEdit, Root, Typed};

const PROCESS: (&str, &str) = (
    r"ControlSet001\Services\cexecsvc",
    "ProcessShutdownTimeoutSeconds",
);
const SERVICES: (&str, &str) = (r"ControlSet001\Control", "WaitToKillServiceTimeout");

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
        let data = |(key, name): (&str, &str)| system.at(key)?.value(name);
        Self {
            process_seconds: data(PROCESS).and_then(|data| match data.typed() {
                Typed::Dword(seconds) => Some(seconds.into()),
                _ => None,
            }),
            services_milliseconds: data(SERVICES).and_then(|data| match data.typed() {
                Typed::Text(text) => text.trim().parse().ok(),
                _ => None,
            }),
        }
    }
}

/// The edits that give a container this many seconds to stop.
pub fn shutdown_edits(seconds: u32) -> Result<[RegistryEdit; 2], KeyPathError> {
    let set = |(key, name): (&str, &str), data| {
        let mut path = KeyPath::root_of(Root::System);
        key.split('\\').try_for_each(|name| path.push(name))?;
        Ok(RegistryEdit::SetValue {
            key: path,
            name: name.to_owned(),
            data,
        })
    };
    let milliseconds = u64::from(seconds) * 1000;
    Ok([
        set(PROCESS, RegistryData::dword(seconds))?,
        set(SERVICES, RegistryData::sz(&milliseconds.to_string()))?,
    ])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::windows::hive::{FileTime, Hive, write_deltas};

    #[test]
    fn the_times_that_were_set_are_read_back() {
        let edits = shutdown_edits(45).unwrap();
        assert_eq!(
            edits[1].to_string(),
            r#"set HKLM\SYSTEM\ControlSet001\Control "WaitToKillServiceTimeout" = REG_SZ "45000""#
        );
        let hives = write_deltas(&edits, FileTime::default()).unwrap();
        let times = ShutdownTimes::of(&Hive::read(&hives[0].bytes).unwrap().root);
        assert_eq!(times.process_seconds, Some(45));
        assert_eq!(times.services_milliseconds, Some(45_000));
    }

    #[test]
    fn a_time_of_the_wrong_type_does_not_count() {
        let [process, services] = shutdown_edits(45).unwrap().map(|edit| edit.key().clone());
        let edits = [
            RegistryEdit::SetValue {
                key: process,
                name: PROCESS.1.into(),
                data: RegistryData::sz("45"),
            },
            RegistryEdit::SetValue {
                key: services,
                name: SERVICES.1.into(),
                data: RegistryData::dword(45_000),
            },
        ];
        let hives = write_deltas(&edits, FileTime::default()).unwrap();
        let times = ShutdownTimes::of(&Hive::read(&hives[0].bytes).unwrap().root);
        assert_eq!(times, ShutdownTimes::default());
    }
}
