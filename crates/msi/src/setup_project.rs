//! Checks of Visual Studio's setup projects, which actions of their library make: whether there is
//! the .NET Framework that they require.

use super::builder::Builder;
use super::database::Row;
use super::error::MsiError;
use super::registry::software_key;
use super::session::Session;

/// Name of the library in a package.
pub(crate) const LIBRARY: &str = "MSVBDPCADLL";

/// Property that the check sets.
const AVAILABLE: &str = "VSDFXAvailable";
/// Conditions of a project, and the entry point that sets the property of each.
const CHECKS: [(&str, &str); 2] = [
    (AVAILABLE, "CheckFX"),
    ("VSDNETCoreAvailable", "CheckNETCore"),
];
/// Property with the required version.
const VERSION: &str = "VSDFrameworkVersion";
/// Property of projects that a newer version may do for.
const ALLOWS_LATER: &str = "VSDAllowLaterFrameworkVersions";

/// Says which base has these versions.
const WITH_3_5: &str =
    " (mcr.microsoft.com/dotnet/framework/runtime:3.5 has .NET Framework 2.0 to 3.5)";

/// The value `Release` of each version, at least.
/// <https://learn.microsoft.com/dotnet/framework/install/how-to-determine-which-versions-are-installed>
const RELEASES: [(&str, u32); 12] = [
    ("4.0", 0),
    ("4.5", 378_389),
    ("4.5.1", 378_675),
    ("4.5.2", 379_893),
    ("4.6", 393_295),
    ("4.6.1", 394_254),
    ("4.6.2", 394_802),
    ("4.7", 460_798),
    ("4.7.1", 461_308),
    ("4.7.2", 461_808),
    ("4.8", 528_040),
    ("4.8.1", 533_320),
];

impl Session<'_> {
    /// `CheckFX`: looks for the .NET Framework. False if only Windows can tell.
    /// <https://learn.microsoft.com/previous-versions/xxyh2e6a(v=vs.90)>
    pub(crate) fn check_framework(&mut self) -> Result<bool, MsiError> {
        let questions = self.unknown.len();
        let found = self.has_framework()?;
        let is_unknown = self.unknown.len() > questions;
        if found == Some(true) {
            self.set(AVAILABLE, "TRUE");
        } else if is_unknown {
            self.unknown_searches.insert(AVAILABLE.to_owned());
        }
        Ok(found.is_some() || is_unknown)
    }

    fn has_framework(&mut self) -> Result<Option<bool>, MsiError> {
        let version = self.property(VERSION).trim_start_matches('v');
        let mut releases = RELEASES.iter();
        let (below, name, least) = if let Some(below) = part_of_3_5(version) {
            (below, "Install", 1)
        } else if let Some((_, release)) = releases.find(|(own, _)| *own == version) {
            (r"v4\Full", "Release", *release)
        } else {
            return Ok(None);
        };
        // The library is a program of 32 bits in every package.
        let path = format!(r"Microsoft\NET Framework Setup\NDP\{below}");
        let key = software_key(&path, false)?;
        let found = self.value_in_image(&key, name);
        let found = found.and_then(|data| data.number());
        let found = found.is_some_and(|own| own >= least);
        let allows_later = self.property(ALLOWS_LATER).eq_ignore_ascii_case("true");
        Ok((found || !allows_later).then_some(found))
    }

    /// `VsdLaunchConditions`, which the action `name` runs: the launch conditions of the project.
    pub(crate) fn check_project(&mut self, name: &str, plan: &Builder) -> Result<(), MsiError> {
        let database = self.database;
        for row in database.rows("_VsdLaunchCondition") {
            let condition = row.text("Condition");
            let is_open = self.is_uncertain(condition) || self.is_unchecked(condition, plan);
            if is_open || self.is_true(condition, name)? {
                continue;
            }
            let version = self.property(VERSION);
            let message = self.format(row.text("Description"))?;
            let message = message.replace("[1]", version);
            let is_old = condition == AVAILABLE && part_of_3_5(version).is_some();
            let base = if is_old { WITH_3_5 } else { "" };
            let why = format!("{name} refuses this system ({condition}): {message}{base}");
            self.fail(condition, why)?;
        }
        Ok(())
    }

    /// True if the check of a condition is left out on request, or requires Windows.
    pub(crate) fn is_unchecked(&self, condition: &str, plan: &Builder) -> bool {
        let is_check = |row: &Row<'_>| {
            row.text("Source") == LIBRARY && CHECKS.contains(&(condition, row.text("Target")))
        };
        let mut actions = self.database.rows("CustomAction").filter(is_check);
        actions.any(|row| {
            let name = row.text("Action");
            let mut refused = plan.rest.refused.iter();
            self.is_skipped(name) || refused.any(|action| action.name == name)
        })
    }
}

/// The key of a version that is a part of the feature .NET Framework 3.5.
fn part_of_3_5(version: &str) -> Option<&'static str> {
    match version.trim_start_matches('v') {
        "2.0" | "2.0.50727" => Some("v2.0.50727"),
        "3.0" => Some("v3.0"),
        version if version == "3.5" || version.starts_with("3.5.") => Some("v3.5"),
        _ => None,
    }
}
