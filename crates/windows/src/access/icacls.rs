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

impl AccountRights {
    /// Reads an account and its rights; the error says what is wrong.
    pub fn read(account: &str, rights: &str) -> Result<Self, String> {
        let invalid = |problem| format!("invalid rights {rights:?}: {problem}");
        let expected = "expected F, M, RX, R or W, with (OI), (CI), (IO) and (NP) before them";
        let account = account.strip_prefix('*').unwrap_or(account).parse();
        let account = account.map_err(|error: AccountError| error.to_string())?;
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
                _ => return Err(invalid(expected)),
            }
            rest = behind;
        };
        let read = |letters: &str| {
            let mut all = Rights::ALL.into_iter();
            all.find(|rights| rights.letters().eq_ignore_ascii_case(letters.trim()))
        };
        let read: Option<Vec<Rights>> = letters.split(',').map(read).collect();
        let read = read.ok_or_else(|| invalid(expected))?;
        Self::with_flags(account, read, flags)
            .ok_or_else(|| invalid("(IO) and (NP) require (OI) or (CI)"))
    }

    /// The rights of an entry of a list, if they have letters.
    pub fn of_entry(account: AccessAccount, mask: u32, flags: u8) -> Option<Self> {
        /// The generic rights to a file or folder.
        const GENERIC: [(u32, u32); 4] = [
            (0x1000_0000, 0x1F_01FF),
            (0x2000_0000, 0x12_00A0),
            (0x4000_0000, 0x12_0116),
            (0x8000_0000, 0x12_0089),
        ];
        let mut wanted = mask & 0x0FFF_FFFF;
        for (generic, own) in GENERIC {
            if mask & generic != 0 {
                wanted |= own;
            }
        }
        let mut left = wanted;
        let mut rights = Vec::new();
        for right in Rights::ALL {
            if right.mask() & !wanted == 0 && right.mask() & left != 0 {
                left &= !right.mask();
                rights.push(right);
            }
        }
        if left != 0 || rights.is_empty() {
            return None;
        }
        Self::with_flags(account, rights, flags)
    }

    /// Rights with the flags of an entry; none if they are for nothing.
    fn with_flags(account: AccessAccount, rights: Vec<Rights>, flags: u8) -> Option<Self> {
        use ace_flags::{CONTAINER_INHERIT, INHERIT_ONLY, NO_PROPAGATE, OBJECT_INHERIT};

        let has = |flag: u8| flags & flag != 0;
        let known = OBJECT_INHERIT | CONTAINER_INHERIT | INHERIT_ONLY | NO_PROPAGATE;
        let inherit = match (has(OBJECT_INHERIT), has(CONTAINER_INHERIT)) {
            _ if has(!known) => return None,
            (true, true) => Inherit::All,
            (true, false) => Inherit::Files,
            (false, true) => Inherit::Folders,
            (false, false) if flags != 0 => return None,
            (false, false) => Inherit::None,
        };
        Some(Self {
            account,
            rights,
            inherit,
            inherit_only: has(INHERIT_ONLY),
            no_propagate: has(NO_PROPAGATE),
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
