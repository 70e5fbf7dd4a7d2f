//! Missing security updates as SARIF.

use wincimg_catalog::Severity;

use super::sarif;
use crate::cli::{ScanReport, ScannedImage};
use crate::report::prelude::*;

/// The rules, by severity, with their levels.
const RULES: [(Severity, &str, &str); 5] = [
    (Severity::Critical, "critical-update", "error"),
    (Severity::Important, "important-update", "error"),
    (Severity::Moderate, "moderate-update", "warning"),
    (Severity::Low, "low-update", "note"),
    (Severity::Unrated, "unrated-update", "note"),
];

/// Rule of an image that cannot be judged: without a result, it would look clean.
const UNKNOWN: &str = "unknown-image";

/// Writes the missing security updates of images.
pub(crate) fn write_scan_sarif(report: &ScanReport, out: &mut dyn Write) -> io::Result<()> {
    let unknown = "it is not known which security updates are missing";
    let rules = RULES.iter().map(|(severity, id, _)| {
        let severity = severity.name();
        let summary = format!("a security update of severity {severity} is missing");
        (*id, summary)
    });
    let rules: Vec<(&str, String)> = rules.chain([(UNKNOWN, unknown.to_owned())]).collect();
    let results = report.images.iter().flat_map(results);
    sarif::write("wincimg image scan", &rules, results, out).map(drop)
}

/// The missing fixes of an image, or that they are not known.
fn results(image: &ScannedImage) -> impl Iterator<Item = sarif::Result> {
    let unknown = image.why_unknown().map(|why| sarif::Result {
        rule: UNKNOWN,
        level: "warning",
        message: format!(
            "the missing security updates of {} are not known: {why}",
            image.platform
        ),
        ..about(image, UNKNOWN)
    });
    fixes(image).chain(unknown)
}

/// The missing fixes of an image; ignored ones are suppressed.
fn fixes(image: &ScannedImage) -> impl Iterator<Item = sarif::Result> {
    let missing = image.missing.iter().map(|fix| (fix, None));
    let ignored = image.ignored.iter();
    let ignored = ignored.map(|ignored| (&ignored.fix, Some(ignored.why())));
    missing.chain(ignored).map(move |(fix, suppression)| {
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
            suppression,
            ..about(image, &fix.cve)
        }
    })
}

/// A result about an image, which may be one of several in an index.
fn about(image: &ScannedImage, problem: &str) -> sarif::Result {
    let (reference, platform) = (&image.reference, &image.platform);
    sarif::Result {
        place: Some(SourceLocation {
            file: image.path.clone(),
            line: 1,
        }),
        subject: Some(reference.clone()),
        fingerprint: Some(format!("scan|{reference}|{platform}|{problem}")),
        ..sarif::Result::default()
    }
}
