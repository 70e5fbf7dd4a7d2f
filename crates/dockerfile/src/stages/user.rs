//! `USER`: the name of an account, of which the parser takes a single `\` for its escape character.

use wincimg_windows::account::is_known_account;

use super::error::StepError;

/// Finds what a name lost on its way through the parser.
pub(super) fn lost_backslash(written: &str, user: &str) -> Option<StepError> {
    let written = written.trim();
    let is_lost = is_known_account(written) && user != written && user == written.replace('\\', "");
    is_lost.then(|| {
        let doubled = written.replace('\\', r"\\");
        StepError::hinted(
            format!("\\ is the escape character, so the account is {user:?}"),
            format!("write USER {doubled}, or begin the file with # escape=`"),
        )
    })
}
