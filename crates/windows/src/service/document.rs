//! Services in documents that people write.

use std::collections::BTreeMap;

use serde::Deserializer;
use serde::de::Error as _;
use wincimg_common::document::{table, text};
use wincimg_common::read_from_text;

use super::{
    FailureKind, InvalidText, ServiceAccount, ServiceArgument, ServiceName, ServiceProgram,
    ServiceText, StartType,
};
use crate::variables::check_new_variable;

read_from_text!(
    FailureKind, ServiceAccount, ServiceArgument, ServiceName, ServiceProgram, ServiceText,
    StartType
);

/// Half a day: the actions of services count in seconds and minutes.
const LONGEST_DELAY: u32 = 43_200;

/// The usual value in `sc failure` commands.
pub(super) const fn day() -> u32 {
    86_400
}

/// Reads a number of seconds.
pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    seconds_up_to(u32::MAX, deserializer)
}

/// Reads seconds as milliseconds.
pub(super) fn delay<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    seconds_up_to(LONGEST_DELAY, deserializer).map(|seconds| seconds * 1000)
}

fn seconds_up_to<'de, D: Deserializer<'de>>(most: u32, deserializer: D) -> Result<u32, D::Error> {
    let given: String = text(deserializer)?;
    let seconds = given.parse().ok().filter(|seconds| *seconds <= most);
    seconds.ok_or_else(|| {
        D::Error::custom(format!(
            "invalid time {given:?}: expected 0 to {most} seconds"
        ))
    })
}

/// Reads a table of variables.
pub(super) fn variables<'de, D>(deserializer: D) -> Result<Vec<ServiceText>, D::Error>
where
    D: Deserializer<'de>,
{
    let mut names = BTreeMap::new();
    let mut lines = BTreeMap::new();
    table(deserializer, |name: String, value: String| {
        check_new_variable(&name, &names)?;
        names.insert(name.to_ascii_lowercase(), name.clone());
        let is_path = name.eq_ignore_ascii_case("path");
        if is_path && value.to_ascii_lowercase().contains("%path%") {
            return Err("PATH of a service cannot contain %PATH%: list all folders".to_owned());
        }
        let line = format!("{name}={value}").parse();
        lines.insert(name, line.map_err(|error: InvalidText| error.to_string())?);
        Ok(())
    })?;
    Ok(lines.into_values().collect())
}
