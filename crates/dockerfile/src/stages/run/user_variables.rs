//! Variables in a user's hive. No layer has a delta of it: it is a file of the profile, which the
//! layer has in full.

use wincimg_layer::ContentSource;
use wincimg_recipe::{FileSource, PlannedContent};
use wincimg_registry::RegistryData;
use wincimg_registry::hive::{FileTime, Hive, set_value};
use wincimg_scripts::{Lookup, PendingDownload, ScriptError};
use wincimg_windows::path::ImagePath;

use super::RunState;

/// Key of a user's variables.
const ENVIRONMENT: &str = "Environment";

/// Maximum size of a hive.
const LONGEST: u64 = 32 << 20;

/// Time of the change, the beginning of 1970: the same inputs give the same bytes.
const CHANGED: FileTime = FileTime(116_444_736_000_000_000);

impl RunState<'_> {
    pub(super) fn set_user_variable(
        &mut self,
        hive: &ImagePath,
        name: &str,
        data: &RegistryData,
    ) -> Result<(), ScriptError> {
        let content = match self.hive_bytes(hive) {
            // It is extracted first.
            None => PlannedContent::File(FileSource::Text("".into())),
            Some(bytes) => {
                let changed = set_value(&bytes?, ENVIRONMENT, name, data, CHANGED);
                let changed = changed.map_err(|error| {
                    let why = format!("cannot set a variable in {hive}: {error}");
                    ScriptError::unclear(why).help("set it for the machine or with ENV")
                })?;
                self.count_written(hive, changed.len())?;
                PlannedContent::File(FileSource::Bytes(changed.into()))
            }
        };
        self.put(hive.clone(), content)
    }

    /// Content of a hive; `None` if it must be extracted first.
    fn hive_bytes(&self, hive: &ImagePath) -> Option<Result<Vec<u8>, ScriptError>> {
        let source = match self.created_file(hive) {
            Some(source) => source.clone(),
            None => match self.base.source(hive)? {
                Ok(source) => source,
                Err(error) => return Some(Err(error)),
            },
        };
        let bytes = ContentSource::from(&source).read(LONGEST);
        Some(bytes.map_err(|error| ScriptError::unclear(format!("cannot read {hive}: {error}"))))
    }

    /// Variable in a hive that a line, or an image below, changed.
    pub(super) fn variable_of_hive(&self, hive: &ImagePath, name: &str) -> Lookup<RegistryData> {
        if self.created_file(hive).is_none() && !self.base.has_user_variables {
            return Lookup::Absent;
        }
        let Some(bytes) = self.hive_bytes(hive) else {
            return Lookup::Deferred(PendingDownload);
        };
        let found = bytes.ok().and_then(|bytes| {
            let hive = Hive::read(&bytes).ok()?;
            hive.root.subkey(ENVIRONMENT)?.value(name)
        });
        found.map_or(Lookup::Absent, Lookup::Present)
    }
}
