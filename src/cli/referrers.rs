//! Documents attached to copied images: what `copy`, `push` and `image mirror` say of them.

use wincimg_oci::copy::{ReferrerOutcome, ReferrerReport};

use super::{Failure, Session};
use crate::report::count;

/// Warns of documents that were not copied, and returns the number of failures.
pub(super) fn report_referrers<'r>(
    reports: impl Iterator<Item = &'r ReferrerReport>,
    session: &Session,
) -> usize {
    let mut failed = 0;
    for report in reports {
        let ReferrerReport { about, kind, .. } = report;
        let problem = report.problem.as_deref().unwrap_or_default();
        match report.outcome {
            ReferrerOutcome::Left => {
                let changed = "the copy of the image has another digest";
                let reason = report.problem.as_deref().unwrap_or(changed);
                session.warn(format_args!(
                    "{kind} attached to {about} is not copied: {reason}"
                ));
            }
            ReferrerOutcome::Unknown => {
                failed += 1;
                session.warn(format_args!(
                    "the documents attached to {about} are not copied: {problem}"
                ));
            }
            ReferrerOutcome::Failed => {
                failed += 1;
                session.warn(format_args!(
                    "{kind} attached to {about} is not copied: {problem}"
                ));
            }
            ReferrerOutcome::Present | ReferrerOutcome::Copied => {}
        }
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
