//! Grants in the notation of `icacls`: `Users:(OI)(CI)M`, in two words.

use super::{AccessAccount, AccountError, Grant, Inherit, Rights};

/// A grant and its scope within a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IcaclsGrant {
    /// One grant for each right.
    pub grants: Vec<Grant>,
    /// Scope within a folder.
    pub inherit: Inherit,
}

/// An unsupported grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantTextError {
    /// The account is unknown.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The rights are not among those that an image can grant.
    #[error("invalid rights {text:?}: expected F, M, RX, R or W, with (OI) and (CI) before them")]
    Rights {
        /// The text of the rights.
        text: String,
    },
}

impl IcaclsGrant {
    /// Reads an account and its rights.
    pub fn read(account: &str, rights: &str) -> Result<Self, GrantTextError> {
        let invalid = || GrantTextError::Rights {
            text: rights.to_owned(),
        };
        let account: AccessAccount = account.strip_prefix('*').unwrap_or(account).parse()?;
        let (mut files, mut folders) = (false, false);
        let mut rest = rights;
        let letters = loop {
            let group = rest.strip_prefix('(').and_then(|text| text.split_once(')'));
            match group {
                Some((flag, behind)) if flag.eq_ignore_ascii_case("OI") => {
                    (files, rest) = (true, behind);
                }
                Some((flag, behind)) if flag.eq_ignore_ascii_case("CI") => {
                    (folders, rest) = (true, behind);
                }
                Some((letters, "")) => break letters,
                Some(_) => return Err(invalid()),
                None => break rest,
            }
        };
        let read = |letters: &str| {
            let mut all = Rights::ALL.into_iter();
            all.find(|rights| rights.letters().eq_ignore_ascii_case(letters.trim()))
        };
        let grants = letters.split(',').map(|letters| {
            let account = account.clone();
            Some(Grant {
                account,
                rights: read(letters)?,
            })
        });
        Ok(Self {
            grants: grants.collect::<Option<_>>().ok_or_else(invalid)?,
            inherit: match (files, folders) {
                (true, true) => Inherit::All,
                (true, false) => Inherit::Files,
                (false, true) => Inherit::Folders,
                (false, false) => Inherit::None,
            },
        })
    }
}
