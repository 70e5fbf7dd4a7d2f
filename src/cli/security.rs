//! Table of security updates that `image scan --msrc` keeps, as other commands use it: offline, if it
//! is there.

use jiff::civil::Date;
use wincimg_catalog::{SecurityFix, SecurityUpdates, Severity};
use wincimg_engine::fleet::FleetReport;
use wincimg_inspect::provenance::OperatingSystem;
use wincimg_windows::missing_fixes::{ImageFixes, MissingFixes};

use crate::cli::prelude::*;

pub(super) fn table_path(session: &Session) -> Option<PathBuf> {
    Some(session.cache.folder()?.join("security-updates.tsv"))
}

/// The fixes that an image's Windows lacks.
pub(super) fn missing(table: &SecurityUpdates, version: WindowsVersion) -> Vec<&SecurityFix> {
    table.missing(version, OperatingSystem::from_version(version).product)
}

/// Counts the fixes that the existing images of a fleet lack.
pub(super) fn missing_in_fleet(
    report: &FleetReport,
    session: &Session,
    reporter: &dyn Progress,
) -> Option<MissingFixes> {
    let builds = report.images.iter().flat_map(|image| &image.builds);
    let existing = builds
        .filter(|build| build.digest.is_some())
        .filter_map(|build| {
            let version = build.os_version.as_deref()?.parse().ok()?;
            Some((build.image.clone(), version))
        });
    missing_fixes(existing, None, session, reporter)
}

/// Counts the fixes that images lack, by reference and version; none without a table.
pub(super) fn missing_fixes(
    images: impl Iterator<Item = (Option<String>, WindowsVersion)>,
    today: Option<Date>,
    session: &Session,
    reporter: &dyn Progress,
) -> Option<MissingFixes> {
    let table = SecurityUpdates::load(&table_path(session)?);
    let table = table.inspect_err(|error| {
        reporter.warn(&format_args!(
            "missing security updates are not counted: {}; `wincimg image scan IMAGE --msrc URL` \
             makes a new table",
            error_chain(error.as_ref())
        ));
    });
    let table = table.ok()?;
    let today = today.unwrap_or_else(|| Zoned::now().date());
    let age = table.age(today)?;
    let images: BTreeSet<_> = images.collect();
    let images = images.into_iter().map(|(reference, build)| {
        let missing = missing(&table, build);
        let count = |is: fn(&SecurityFix) -> bool| missing.iter().filter(|fix| is(fix)).count();
        ImageFixes {
            reference,
            build,
            known: table.covers(build, age.released),
            critical: count(|fix| fix.severity == Severity::Critical),
            exploited: count(|fix| fix.exploited),
            missing: missing.len(),
        }
    });
    Some(MissingFixes {
        images: images.collect(),
        table: age,
    })
}
