//! Rights in the notation of `icacls`: `Users:(OI)(CI)M`, in two words.

use serde::Serialize;
use wincimg_registry::security::ace_flags;

use super::{AccessAccount, AccountError, Inherit, Rights};

/// Rights of an account, and what of a folder they are for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccountRights {
    /// The account or group.
    pub account: AccessAccount,
    /// The rights.
    pub rights: Vec<Rights>,
    /// Scope within a folder.
    pub inherit: Inherit,
    /// True if the folder itself is left out (`IO`).
    pub inherit_only: bool,
    /// True if only what is directly in the folder inherits them (`NP`).
    pub no_propagate: bool,
}

/// Rights that are not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RightsTextError {
    /// The account is unknown.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The rights are others than those that an image grants.
    #[error(
        "invalid rights {text:?}: expected F, M, RX, R or W, with (OI), (CI), (IO) and (NP) before them"
    )]
    Rights {
        /// The text of the rights.
        text: String,
    },
    /// The flags need others.
    #[error("invalid rights {text:?}: (IO) and (NP) require (OI) or (CI)")]
    Scope {
        /// Notation of the rights.
        text: String,
    },
}

impl AccountRights {
    /// Reads an account and its rights.
    pub fn read(account: &str, rights: &str) -> Result<Self, RightsTextError> {
        let text = || rights.to_owned();
        let account: AccessAccount = account.strip_prefix('*').unwrap_or(account).parse()?;
        let mut flags = 0;
        let mut rest = rights;
        let letters = loop {
            let group = rest.strip_prefix('(').and_then(|text| text.split_once(')'));
            let Some((name, behind)) = group else {
                break rest;
            };
            match name.to_ascii_uppercase().as_str() {
                "OI" => flags |= ace_flags::OBJECT_INHERIT,
                "CI" => flags |= ace_flags::CONTAINER_INHERIT,
                "IO" => flags |= ace_flags::INHERIT_ONLY,
                "NP" => flags |= ace_flags::NO_PROPAGATE,
                _ if behind.is_empty() => break name,
                _ => return Err(RightsTextError::Rights { text: text() }),
            }
            rest = behind;
        };
        let read = |letters: &str| {
            let mut all = Rights::ALL.into_iter();
            all.find(|rights| rights.letters().eq_ignore_ascii_case(letters.trim()))
        };
        let has = |flag: u8| flags & flag != 0;
        let inherit = match (
            has(ace_flags::OBJECT_INHERIT),
            has(ace_flags::CONTAINER_INHERIT),
        ) {
            (true, true) => Inherit::All,
            (true, false) => Inherit::Files,
            (false, true) => Inherit::Folders,
            (false, false) if flags != 0 => return Err(RightsTextError::Scope { text: text() }),
            (false, false) => Inherit::None,
        };
        let rights: Option<Vec<Rights>> = letters.split(',').map(read).collect();
        Ok(Self {
            account,
            rights: rights.ok_or_else(|| RightsTextError::Rights { text: text() })?,
            inherit,
            inherit_only: has(ace_flags::INHERIT_ONLY),
            no_propagate: has(ace_flags::NO_PROPAGATE),
        })
    }

    /// Flags of an entry for a file or folder itself.
    pub(super) fn flags(&self, is_folder: bool) -> u8 {
        if !is_folder {
            return 0;
        }
        let only = u8::from(self.inherit_only) * ace_flags::INHERIT_ONLY;
        let ends = u8::from(self.no_propagate) * ace_flags::NO_PROPAGATE;
        self.inherit.flags() | only | ends
    }

    /// The rights as bits.
    pub(super) fn mask(&self) -> u32 {
        self.rights
            .iter()
            .fold(0, |mask, rights| mask | rights.mask())
    }
}
