//! Missing security updates as SARIF.

use std::io::{self, Write};

use wincimg_catalog::Severity;
use wincimg_cluster::workloads::SourceLocation;

use super::sarif;
use crate::cli::{ScanReport, ScannedImage};

/// The rules, by severity, with their levels.
const RULES: [(Severity, &str, &str); 5] = [
    (Severity::Critical, "critical-update", "error"),
    (Severity::Important, "important-update", "error"),
    (Severity::Moderate, "moderate-update", "warning"),
    (Severity::Low, "low-update", "note"),
    (Severity::Unrated, "unrated-update", "note"),
];

/// Writes the missing security updates of images.
pub(crate) fn write_scan_sarif(report: &ScanReport, out: &mut dyn Write) -> io::Result<()> {
    let rules = RULES.map(|(severity, id, _)| {
        let severity = severity.name();
        (
            id,
            format!("a security update of severity {severity} is missing"),
        )
    });
    let results = report.images.iter().flat_map(results);
    sarif::write("wincimg image scan", &rules, results, out).map(drop)
}

/// The missing fixes of an image; ignored ones are suppressed.
fn results(image: &ScannedImage) -> impl Iterator<Item = sarif::Result> {
    let missing = image.missing.iter().map(|fix| (fix, None));
    let ignored = image.ignored.iter();
    let ignored = ignored.map(|ignored| (&ignored.fix, Some(ignored.why())));
    missing.chain(ignored).map(|(fix, suppression)| {
        let rule = RULES
            .iter()
            .find(|(severity, ..)| *severity == fix.severity);
        let (_, rule, level) = rule.unwrap_or(&RULES[0]);
        let kb = fix.kb.map(|kb| format!(" ({kb})")).unwrap_or_default();
        let exploited = if fix.exploited {
            ", which is exploited"
        } else {
            ""
        };
        sarif::Result {
            rule,
            level,
            message: format!(
                "{}: {}{exploited}; fixed in {}{kb}",
                fix.cve, fix.title, fix.fixed_in
            ),
            place: Some(SourceLocation {
                file: image.path.clone(),
                line: 1,
            }),
            subject: Some(image.reference.clone()),
            fingerprint: Some(format!("scan|{}|{}", image.reference, fix.cve)),
            suppression,
            ..sarif::Result::default()
        }
    })
}
