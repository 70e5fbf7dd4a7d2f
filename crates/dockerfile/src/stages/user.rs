//! `USER`: the name of an account that the image has.
//!
//! Docker passes the name on to Windows, which refuses an unknown one only when a container starts.
//! The parser takes a single `\` for its escape character.

use wincimg_common::untrusted::Quoted;
use wincimg_registry::{BaseReadError, Presence};

use super::drive::Tree;
use super::error::StepError;

/// Accounts that every Windows container has, without their domain.
const OF_CONTAINERS: [&str; 2] = ["ContainerAdministrator", "ContainerUser"];
/// Accounts of `NT AUTHORITY`.
const OF_AUTHORITY: [&str; 3] = ["SYSTEM", "LOCAL SERVICE", "NETWORK SERVICE"];
/// Accounts in the database of every Windows.
const OF_WINDOWS: [&str; 4] = [
    "Administrator", "DefaultAccount", "Guest", "WDAGUtilityAccount",
];

/// Returns true if every Windows container has the account.
pub(crate) fn is_of_windows(user: &str) -> bool {
    let (domain, name) = user.split_once('\\').unwrap_or(("", user));
    let names: &[&str] = match domain.to_ascii_lowercase().as_str() {
        "" if OF_CONTAINERS
            .iter()
            .any(|own| own.eq_ignore_ascii_case(name)) =>
        {
            return true;
        }
        "user manager" => &OF_CONTAINERS,
        "nt authority" => &OF_AUTHORITY,
        "" | "." => &OF_WINDOWS,
        _ => &[],
    };
    names.iter().any(|own| own.eq_ignore_ascii_case(name))
        || domain.is_empty()
            && OF_AUTHORITY
                .iter()
                .any(|own| own.eq_ignore_ascii_case(name))
}

/// Finds what a name lost on its way through the parser.
pub(super) fn lost_backslash(written: &str, user: &str) -> Option<StepError> {
    let written = written.trim();
    let is_lost = is_of_windows(written) && user != written && user == written.replace('\\', "");
    is_lost.then(|| {
        let doubled = written.replace('\\', r"\\");
        StepError::hinted(
            format!("\\ is the escape character, so the account is {user:?}"),
            format!("write USER {doubled}, or begin the file with # escape=`"),
        )
    })
}

/// Looks up whether an image has an account; `inherited` is that of its base.
pub(super) fn find(
    user: &str,
    inherited: Option<&str>,
    tree: &Tree,
) -> Result<Presence<()>, BaseReadError> {
    let is_inherited = inherited.is_some_and(|own| own.eq_ignore_ascii_case(user));
    if user.is_empty() || is_inherited || is_of_windows(user) {
        return Ok(Presence::Present(()));
    }
    let (domain, name) = user.split_once('\\').unwrap_or((".", user));
    if domain != "." {
        return Ok(Presence::Unknown);
    }
    Ok(match tree.base().account(name)? {
        Presence::Unknown if tree.is_plain_windows() => Presence::Absent,
        found => found,
    })
}

/// Describes an account that the image does not have.
pub(super) fn missing(user: &str) -> StepError {
    StepError::hinted(
        format!("account {} not found in the image", Quoted(user)),
        "name ContainerUser, ContainerAdministrator or an account of the base",
    )
}
