//! Paths of cmdlets and their drives.

use super::super::error::{self, Result};
use super::eval::Shell;
use super::parameters::BoundParameters;
use super::value::PsValue;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Drive {
    File(String),
    Registry(String),
    Iis(String),
    Environment(String),
}

impl Shell<'_, '_> {
    /// Finds the drive of a path.
    pub(super) fn drive(&self, path: &str) -> Result<Drive> {
        match drive_of(path)? {
            Drive::File(path) => self.with_home(path).map(Drive::File),
            other => Ok(other),
        }
    }

    /// The path of a file or folder; the error says why another drive is refused.
    pub(super) fn file_path(&self, path: &str, refused: &str) -> Result<String> {
        match self.drive(path)? {
            Drive::File(path) => Ok(path),
            _ => error::unclear(refused),
        }
    }

    /// Replaces `~` at the beginning of a cmdlet's path, quoted or not, by the home folder.
    pub(super) fn with_home(&self, path: String) -> Result<String> {
        let Some(rest) = path
            .strip_prefix('~')
            .filter(|rest| rest.is_empty() || rest.starts_with(['\\', '/']))
        else {
            return Ok(path);
        };
        match self.machine.variables.profile() {
            Some(home) => Ok(home + rest),
            None => error::unclear(format!(
                "~ is the home folder of {}, which only Windows knows",
                self.machine.variables.user()
            )),
        }
    }
}

fn drive_of(path: &str) -> Result<Drive> {
    let lower = path.to_lowercase();
    for prefix in ["registry::", "microsoft.powershell.core\\registry::"] {
        if lower.starts_with(prefix) {
            return Ok(Drive::Registry(path[prefix.len()..].to_owned()));
        }
    }
    if lower.starts_with("iis:") {
        return Ok(Drive::Iis(path["iis:".len()..].to_owned()));
    }
    if lower.starts_with("hklm:") || lower.starts_with("hkcu:") {
        return Ok(Drive::Registry(path.to_owned()));
    }
    if lower.starts_with("env:") {
        return Ok(Drive::Environment(
            path["env:".len()..]
                .trim_start_matches(['\\', '/'])
                .to_owned(),
        ));
    }
    match lower.split_once(':') {
        Some((drive, _)) if drive.len() > 1 => {
            error::unclear(format!("unsupported drive {drive}:"))
        }
        _ => Ok(Drive::File(path.to_owned())),
    }
}

/// Error for a path beside pipeline input, which then fits no parameter.
pub(super) const TWO_PATHS: &str = "both -Path and the pipeline give paths";

/// Value of `-Path` or `-LiteralPath`.
pub(super) fn path_of(given: &BoundParameters) -> Result<Option<String>> {
    let value = given.value("path").or(given.value("literalpath"));
    match value.map(PsValue::texts).transpose()?.as_deref() {
        None => Ok(None),
        Some([path]) => Ok(Some(path.clone())),
        Some(_) => error::unclear("several paths are not supported"),
    }
}
