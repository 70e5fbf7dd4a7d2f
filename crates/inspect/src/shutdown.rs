//! Time that a container of an image gets to stop, and problems of its settings.

use serde::Serialize;
use wincimg_oci::document::Digest;
use wincimg_registry::RegistryData;
use wincimg_registry::hive::{Key, Semantics};
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_windows::shutdown::{DEFAULT_SECONDS, ShutdownValue};

/// The two shutdown times of an image as its layers set them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShutdownTimes {
    /// `ProcessShutdownTimeoutSeconds`, for the entry point.
    pub process: Option<ShutdownSetting>,
    /// `WaitToKillServiceTimeout`, for services.
    pub service: Option<ShutdownSetting>,
    /// The seconds that a container gets in any case: the smaller of the two. A missing or invalid
    /// one counts as Windows' default of five seconds.
    pub seconds: u64,
    /// Problems that keep the settings from having the intended effect.
    pub warnings: Vec<String>,
    /// True if every layer that could change them was read.
    pub complete: bool,
}

/// A shutdown time, from the topmost layer that sets it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShutdownSetting {
    /// Its time; none if the value is invalid for Windows.
    pub milliseconds: Option<u64>,
    /// Value in the registry.
    #[serde(flatten)]
    pub data: RegistryData,
    /// The layer that sets it, counted from 1 at the bottom.
    pub layer: usize,
    /// Its digest.
    pub layer_digest: Digest,
}

impl ShutdownTimes {
    /// The times from the settings in effect, in the order of [`ShutdownValue::BOTH`].
    pub(super) fn new(settings: [Option<ShutdownSetting>; 2], complete: bool) -> Self {
        let [process, service] = settings;
        let milliseconds = |setting: &Option<ShutdownSetting>| {
            setting
                .as_ref()
                .and_then(|setting| setting.milliseconds)
                .unwrap_or(u64::from(DEFAULT_SECONDS) * 1000)
        };
        Self {
            seconds: milliseconds(&process).min(milliseconds(&service)) / 1000,
            warnings: warnings(process.as_ref(), service.as_ref()),
            process,
            service,
            complete,
        }
    }

    /// Returns true if no layer that was read sets either of the two.
    pub fn is_default(&self) -> bool {
        self.process.is_none() && self.service.is_none()
    }
}

fn warnings(process: Option<&ShutdownSetting>, service: Option<&ShutdownSetting>) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(process.and_then(|found| misuse(ShutdownValue::Process, found)));
    warnings.extend(service.and_then(|found| misuse(ShutdownValue::Service, found)));
    let [of_process, of_service] = ShutdownValue::BOTH.map(ShutdownValue::name);
    let alone = |set: &str, missing: &str| {
        format!("{set} is set and {missing} is not: set both, to the same time")
    };
    match (process, service) {
        (Some(_), None) => warnings.push(alone(of_process, of_service)),
        (None, Some(_)) => warnings.push(alone(of_service, of_process)),
        (Some(process), Some(service)) if warnings.is_empty() => {
            if let (Some(process), Some(service)) = (process.milliseconds, service.milliseconds)
                && process != service
            {
                warnings.push(format!(
                    "{of_process} is {process} ms and {of_service} is {service} ms: set both to the \
                     same time"
                ));
            }
        }
        _ => {}
    }
    warnings
}

/// A wrong type, or a number in the other setting's unit: sixteen minutes in round thousands of
/// seconds, or less than one second.
fn misuse(setting: ShutdownValue, found: &ShutdownSetting) -> Option<String> {
    let (name, data, kind) = (setting.name(), &found.data, setting.data_type());
    let (right, wrong) = match setting {
        ShutdownValue::Process => ("seconds", "milliseconds"),
        ShutdownValue::Service => ("milliseconds", "seconds"),
    };
    if data.kind() != kind {
        let found = data.kind();
        return Some(format!("{name} is a {found}: Windows reads a {kind} there"));
    }
    let Some(milliseconds) = found.milliseconds else {
        return Some(format!("{name} is {data}: expected a number of {right}"));
    };
    let seconds = milliseconds / 1000;
    let number = match setting {
        ShutdownValue::Process if seconds >= 1000 && seconds.is_multiple_of(1000) => seconds,
        ShutdownValue::Service if (1..1000).contains(&milliseconds) => milliseconds,
        _ => return None,
    };
    Some(format!(
        "{name} is {number} and counts {right}: is that number meant in {wrong}?"
    ))
}

/// Effect of a layer on a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// Deleted, whatever the layers below have.
    Gone,
    Set(RegistryData),
}

/// Effect of the delta hive with this root key on one of the settings.
pub(super) fn effect_on(setting: ShutdownValue, root: &Key<'_>) -> Effect {
    let mut key = root;
    let mut hidden = false;
    let absent = |hidden| if hidden { Effect::Gone } else { Effect::None };
    for name in setting.key().components() {
        match key.subkey(name) {
            Some(subkey) => key = subkey,
            None => return absent(hidden),
        }
        match key.layer.semantics {
            Semantics::Tombstone => return Effect::Gone,
            Semantics::SupersedeTree => hidden = true,
            Semantics::Merge | Semantics::SupersedeLocal => {}
        }
    }
    let hidden = hidden || key.layer.semantics == Semantics::SupersedeLocal;
    let value = key
        .values
        .iter()
        .find(|value| eq_ignore_case(&value.name, setting.name()));
    match value {
        Some(value) => value.data().map_or(Effect::Gone, Effect::Set),
        None => absent(hidden),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wincimg_registry::hive::{FileTime, Hive, HiveFile, merge, unfitted_hives};
    use wincimg_registry::{KeyMode, KeyPath, RegistryEdit, Root};

    use super::*;

    /// Changes to the setting, to the keys above it, and next to it.
    fn any_edit() -> impl Strategy<Value = RegistryEdit> {
        let keys = [
            r"HKLM\SYSTEM\ControlSet001\Services\cexecsvc",
            r"HKLM\SYSTEM\ControlSet001\Services",
            r"HKLM\SYSTEM\ControlSet001",
            r"HKLM\SYSTEM\ControlSet001\Services\cexecsvc\below",
        ];
        let name = ShutdownValue::Process.name();
        let key = prop::sample::select(keys.to_vec());
        let name = prop::sample::select(vec![name.to_owned(), name.to_uppercase(), "x".into()]);
        (0..6, key, name, 0_u32..100).prop_map(|(kind, key, name, number)| {
            let key: KeyPath = key.parse().unwrap();
            let create = |key, mode| RegistryEdit::CreateKey { key, mode };
            match kind {
                0 | 1 => RegistryEdit::SetValue {
                    key,
                    name,
                    data: RegistryData::dword(number),
                },
                2 => RegistryEdit::DeleteValue { key, name },
                3 => RegistryEdit::DeleteKey { key },
                4 => create(key, KeyMode::Replace),
                _ => create(key, KeyMode::ReplaceValues),
            }
        })
    }

    fn system(hives: &[HiveFile]) -> Option<&HiveFile> {
        hives
            .iter()
            .find(|hive| hive.name == Root::System.delta_name())
    }

    proptest! {
        #[test]
        fn the_effects_of_layers_add_up_to_what_a_container_sees(
            layers in prop::collection::vec(prop::collection::vec(any_edit(), 0..5), 0..5),
        ) {
            let setting = ShutdownValue::Process;
            let layers: Vec<_> = layers
                .iter()
                .map(|edits| unfitted_hives(edits, FileTime::default()).unwrap())
                .collect();
            let roots: Vec<Key<'_>> = layers
                .iter()
                .filter_map(|hives| system(hives))
                .map(|hive| Hive::read(&hive.bytes).unwrap().root)
                .collect();
            let found = roots.iter().fold(None, |below, root| match effect_on(setting, root) {
                Effect::None => below,
                Effect::Gone => None,
                Effect::Set(data) => Some(data),
            });
            let seen = merge(None, roots).and_then(|root| {
                root.at(r"ControlSet001\Services\cexecsvc")?.value(setting.name())
            });
            prop_assert_eq!(found, seen);
        }
    }
}
