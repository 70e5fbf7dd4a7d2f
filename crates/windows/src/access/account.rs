//! Well-known accounts by name, and their SIDs, which are the same in every image.

use std::fmt;
use std::str::FromStr;

use sha1::{Digest, Sha1};
use wincimg_common::SerializeDisplay;
use wincimg_common::untrusted::QuotedText;
use wincimg_registry::security::Sid;

/// The accounts and groups of every image; Moby's `idtools` has the SIDs of the first two.
const KNOWN: [(&str, u64, &[u32]); 10] = [
    ("ContainerAdministrator", 5, &[93, 2, 1]),
    ("ContainerUser", 5, &[93, 2, 2]),
    ("Everyone", 1, &[0]),
    ("Authenticated Users", 5, &[11]),
    ("Users", 5, &[32, 545]),
    ("Administrators", 5, &[32, 544]),
    ("LocalSystem", 5, &[18]),
    ("LocalService", 5, &[19]),
    ("NetworkService", 5, &[20]),
    ("IIS_IUSRS", 5, &[32, 568]),
];

/// Other names of accounts, as Windows shows them, and accounts that few images grant rights to.
const OTHER_NAMES: [(&str, u64, &[u32]); 9] = [
    ("SYSTEM", 5, &[18]),
    ("LOCAL SERVICE", 5, &[19]),
    ("NETWORK SERVICE", 5, &[20]),
    ("INTERACTIVE", 5, &[4]),
    ("SERVICE", 5, &[6]),
    // The anonymous user of IIS.
    ("IUSR", 5, &[17]),
    ("Guests", 5, &[32, 546]),
    ("Power Users", 5, &[32, 547]),
    ("CREATOR OWNER", 3, &[0]),
];

/// First sub-authority of the virtual accounts of services and of IIS application pools.
const SERVICES: u32 = 80;
const POOLS: u32 = 82;

/// An account or group.
#[derive(Debug, Clone, PartialEq, Eq, SerializeDisplay)]
pub struct AccessAccount {
    name: String,
    sid: Sid,
}

/// A name that is not a well-known account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown account {}: expected {}, IIS AppPool\\NAME, NT SERVICE\\NAME or S-1-…",
    QuotedText(.text),
    known()
)]
pub struct AccountError {
    text: String,
}

fn known() -> String {
    KNOWN.map(|(name, ..)| name).join(", ")
}

impl AccessAccount {
    /// Returns true for the placeholder of the owner of what inherits an entry.
    pub(super) fn is_creator_owner(&self) -> bool {
        Sid::new(3, &[0]).as_ref() == Some(&self.sid)
    }

    /// Its SID.
    pub fn sid(&self) -> Sid {
        self.sid.clone()
    }
}

impl FromStr for AccessAccount {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (domain, name) = text.split_once('\\').unwrap_or(("", text));
        let is = |text: &str| domain.eq_ignore_ascii_case(text);
        let of_windows = ["", "BUILTIN", "NT AUTHORITY", "User Manager"];
        let sid = if name.is_empty() {
            None
        } else if is("NT SERVICE") {
            named(SERVICES, &name.to_uppercase())
        } else if is("IIS AppPool") {
            named(POOLS, &name.to_lowercase())
        } else if domain.is_empty() && name.get(..4).is_some_and(|start| start == "S-1-") {
            name.parse().ok()
        } else if of_windows.into_iter().any(is) {
            let mut all = KNOWN.iter().chain(&OTHER_NAMES);
            let found = all.find(|(own, ..)| own.eq_ignore_ascii_case(name));
            found.and_then(|(_, authority, parts)| Sid::new(*authority, parts))
        } else {
            None
        };
        let unknown = || AccountError {
            text: text.to_owned(),
        };
        Ok(Self {
            name: text.to_owned(),
            sid: sid.ok_or_else(unknown)?,
        })
    }
}

/// A virtual account, whose SID is the SHA-1 of its name.
fn named(kind: u32, name: &str) -> Option<Sid> {
    let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let hash: [u8; 20] = Sha1::digest(&units).into();
    let (words, _) = hash.as_chunks::<4>();
    let words = words.iter().map(|word| u32::from_le_bytes(*word));
    Sid::new(5, &std::iter::once(kind).chain(words).collect::<Vec<_>>())
}

impl fmt::Display for AccessAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
