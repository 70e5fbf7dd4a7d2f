//! The account of a container's program: one that the image has.
//!
//! Docker and containerd pass the name on to Windows, which refuses an unknown one only when a
//! container starts.

use wincimg_common::untrusted::QuotedText;
use wincimg_registry::{BaseReadError, Presence};

use crate::base_contents::BaseContents;

/// Accounts that every Windows container has, without their domain.
const CONTAINER_ACCOUNTS: [&str; 2] = ["ContainerAdministrator", "ContainerUser"];
/// Accounts of `NT AUTHORITY`, whose blanks may be missing.
const AUTHORITY_ACCOUNTS: [&str; 3] = ["SYSTEM", "LOCAL SERVICE", "NETWORK SERVICE"];
/// Accounts in the database of every Windows.
const WINDOWS_ACCOUNTS: [&str; 4] = [
    "Administrator", "DefaultAccount", "Guest", "WDAGUtilityAccount",
];

/// Returns true if every Windows container has the account.
pub fn is_known_account(user: &str) -> bool {
    let (domain, name) = user.split_once('\\').unwrap_or(("", user));
    let is_in = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(name));
    let without_blanks = |name: &str| name.replace(' ', "").to_ascii_uppercase();
    let mut of_authority = AUTHORITY_ACCOUNTS.iter();
    let mut is_of_authority =
        || of_authority.any(|own| without_blanks(own) == without_blanks(name));
    match domain.to_ascii_lowercase().as_str() {
        "" => is_in(&CONTAINER_ACCOUNTS) || is_in(&WINDOWS_ACCOUNTS) || is_of_authority(),
        "." => is_in(&WINDOWS_ACCOUNTS),
        "user manager" => is_in(&CONTAINER_ACCOUNTS),
        "nt authority" => is_of_authority(),
        _ => false,
    }
}

/// Looks up whether an image has an account; `inherited` is that of its base. Plain Windows has only
/// the known ones, even if its contents were not read.
pub fn find_account(
    user: &str,
    inherited: Option<&str>,
    base: &dyn BaseContents,
    is_plain_windows: bool,
) -> Result<Presence<()>, BaseReadError> {
    let is_inherited = inherited.is_some_and(|own| own.eq_ignore_ascii_case(user));
    if user.is_empty() || is_inherited || is_known_account(user) {
        return Ok(Presence::Present(()));
    }
    let (domain, name) = user.split_once('\\').unwrap_or((".", user));
    if domain != "." {
        return Ok(Presence::Unknown);
    }
    Ok(match base.account(name)? {
        Presence::Unknown if is_plain_windows => Presence::Absent,
        found => found,
    })
}

/// The problem of an account that the image does not have, and a hint.
pub fn missing_account(user: &str) -> (String, &'static str) {
    (
        format!("account {} not found in the image", QuotedText(user)),
        "name ContainerUser, ContainerAdministrator or an account of the base",
    )
}

#[cfg(test)]
mod tests {
    use wincimg_registry::UnknownBase;

    use super::*;

    #[test]
    fn plain_windows_has_only_the_known_accounts() {
        let find = |user: &str, is_plain: bool| {
            find_account(user, Some("app"), &UnknownBase, is_plain).unwrap()
        };
        for user in [
            "",
            "APP",
            "containeruser",
            r"User Manager\ContainerAdministrator",
            r"NT Authority\System",
            "Local Service",
            "NetworkService",
            r".\Administrator",
        ] {
            assert_eq!(find(user, true), Presence::Present(()), "{user}");
        }
        for user in ["bob", "ContainerAdmin", r".\bob"] {
            assert_eq!(find(user, true), Presence::Absent, "{user}");
            assert_eq!(find(user, false), Presence::Unknown, "{user}");
        }
        assert_eq!(find(r"CORP\bob", true), Presence::Unknown);
    }
}
