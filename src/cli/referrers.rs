//! Documents attached to copied images: what `copy`, `push` and `image mirror` say of them.

use wincimg_oci::copy::{ReferrerOutcome, ReferrerReport};

use crate::cli::prelude::*;

/// Warns of documents that were not copied, and returns the number of failures.
pub(super) fn report_referrers<'r>(
    reports: impl Iterator<Item = &'r ReferrerReport>,
    session: &Session,
) -> usize {
    let mut failed = 0;
    for report in reports {
        let ReferrerReport { about, kind, .. } = report;
        let what = match report.outcome {
            ReferrerOutcome::Left | ReferrerOutcome::Failed => {
                format!("{kind} attached to {about} is")
            }
            ReferrerOutcome::Unknown => format!("the documents attached to {about} are"),
            ReferrerOutcome::Present | ReferrerOutcome::Copied => continue,
        };
        let changed = "the copy of the image has another digest";
        let reason = report.problem.as_deref().unwrap_or(changed);
        session.warn(format_args!("{what} not copied: {reason}"));
        failed += usize::from(report.outcome != ReferrerOutcome::Left);
    }
    failed
}

/// Failure for documents that were not copied, after the images were.
pub(super) fn not_copied(done: &str, failed: usize) -> Failure {
    let documents = count(failed, "attached document");
    Failure::operation(format!("{done}, but failed to copy {documents}")).hint(
        "if the network or a registry failed, run the same command again; --no-referrers \
             skips attached documents",
    )
}
