//! Windows hives whose deltas are in a layer.

use crate::Root;

/// Windows hives whose deltas a layer of Windows contains, in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delta {
    /// A hive that edits can change.
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
