//! Which hives of Windows a layer has the changes of.

use crate::Root;

/// The hives of Windows whose changes a layer of Windows' own carries, in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delta {
    /// One that edits can reach.
    Edited(Root),
    /// `HKLM\SAM`, the accounts.
    Sam,
    /// `HKLM\SECURITY`, the system's secrets.
    Security,
}

impl Delta {
    pub(super) const ALL: [Self; 5] = [
        Self::Edited(Root::System),
        Self::Edited(Root::Software),
        Self::Sam,
        Self::Security,
        Self::Edited(Root::DefaultUser),
    ];

    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::Edited(root) => root.delta_name(),
            Self::Sam => "Sam_Delta",
            Self::Security => "Security_Delta",
        }
    }
}
