//! Security fixes that images lack, as lines of a report.

use std::fmt::Write as _;

use wincimg_common::shell::command_line;
use wincimg_windows::missing_fixes::{ImageFixes, TableAge};

use crate::report::prelude::*;

/// Number of images with a line of their own.
const NAMED: usize = 10;

/// `security updates as of 2026-Sep (2026-09-08), 80 days ago`.
pub(crate) fn age_in_words(table: &TableAge) -> String {
    let (newest, released, age_days) = (&table.newest, table.released, table.age_days);
    format!("security updates as of {newest} ({released}), {age_days} days ago")
}

/// `web:1.4 (17763.973)`.
fn name(image: &ImageFixes) -> String {
    match &image.reference {
        Some(reference) => format!("{reference} ({})", image.build),
        None => image.build.to_string(),
    }
}

/// `web:1.4 (17763.973) lacks 3 security fixes, 2 critical, 1 exploited`.
pub(super) fn image_in_words(image: &ImageFixes) -> String {
    let mut words = name(image);
    // Writing to a string cannot fail.
    let _ = write!(words, " lacks {}", count(image.missing, "security fix"));
    for (number, kind) in [(image.critical, "critical"), (image.exploited, "exploited")] {
        if number > 0 {
            let _ = write!(words, ", {number} {kind}");
        }
    }
    words
}

/// The state of one image, with the table that says so.
pub(crate) fn image_by_table(image: &ImageFixes, table: &TableAge) -> String {
    let age = age_in_words(table);
    if image.missing > 0 {
        format!("{}, by {age}", image_in_words(image))
    } else if image.known {
        format!("{} has all security fixes, by {age}", name(image))
    } else {
        format!("{} cannot be judged by {age}", name(image))
    }
}

/// The command that lists an image's missing fixes.
fn scan_command(image: &ImageFixes) -> Option<String> {
    let reference = image.reference.as_deref()?;
    Some(command_line(&["wincimg", "image", "scan", reference]))
}

/// A line on the table, and one for each of the worst images.
pub(super) fn security_lines(fixes: &MissingFixes) -> Vec<String> {
    if fixes.images.is_empty() {
        return Vec::new();
    }
    let lacking = fixes.lacking();
    // What is unknown may lack fixes that are known.
    let unknown = fixes.images.iter();
    let unknown = unknown.filter(|image| !image.known && image.missing == 0);
    let unknown = unknown.count();
    let others = fixes.images.len() - lacking.len() - unknown;
    let counts = [
        (lacking.len(), "without all security fixes"),
        (others, "with all of them"),
        (unknown, "that cannot be judged"),
    ];
    let counts = counts.into_iter().filter(|(number, _)| *number > 0);
    let counts = counts.map(|(number, what)| format!("{} {what}", count(number, "image")));
    let (age, counts) = (age_in_words(&fixes.table), joined(counts, ", "));
    let mut lines = vec![format!("By {age}: {counts}")];
    lines.extend(lacking.iter().take(NAMED).map(|image| {
        let command = scan_command(image);
        let command = command.map(|command| format!("; `{command}`"));
        format!("{}{}", image_in_words(image), command.unwrap_or_default())
    }));
    if lacking.len() > NAMED {
        lines.push(format!("{} more lack fixes", lacking.len() - NAMED));
    }
    lines
}
