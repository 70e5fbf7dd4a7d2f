//! Windows keys that are links to other keys of the same hive.
//!
//! A program that opens such a key reaches the target. A layer does not follow links: a plain key
//! over a link hides the link. So an edit must name the target.

use std::fmt;

use super::Root;
use super::name_folding::eq_ignore_case;

/// A link between keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    root: Root,
    from: &'static [&'static str],
    to: &'static [&'static str],
}

/// Known links; `CurrentControlSet` is resolved before. Those of the classes are from Microsoft's page
/// "Registry Keys Affected by WOW64".
const LINKS: [Link; 6] = [
    Link {
        root: Root::System,
        from: &["ControlSet001", "Hardware Profiles", "Current"],
        to: &["ControlSet001", "Hardware Profiles", "0001"],
    },
    Link {
        root: Root::Software,
        from: &["WOW6432Node", "Policies"],
        to: &["Policies"],
    },
    Link {
        root: Root::Software,
        from: &["WOW6432Node", "Classes"],
        to: &["Classes", "WOW6432Node"],
    },
    Link {
        root: Root::Software,
        from: &["Classes", "WOW6432Node", "AppID"],
        to: &["Classes", "AppID"],
    },
    Link {
        root: Root::Software,
        from: &["Classes", "WOW6432Node", "PROTOCOLS"],
        to: &["Classes", "PROTOCOLS"],
    },
    Link {
        root: Root::Software,
        from: &["Classes", "WOW6432Node", "TypeLib"],
        to: &["Classes", "TypeLib"],
    },
];

impl Link {
    /// Replaces links at the start of a path with their targets, and returns the last one.
    pub(super) fn resolve(root: Root, names: &mut Vec<String>) -> Option<Self> {
        let link = LINKS.into_iter().find(|link| {
            link.root == root
                && names.len() >= link.from.len()
                && names
                    .iter()
                    .zip(link.from)
                    .all(|(name, from)| eq_ignore_case(name, from))
        })?;
        names.splice(
            ..link.from.len(),
            link.to.iter().map(|&name| name.to_owned()),
        );
        // The target may be a link itself.
        Self::resolve(root, names).or(Some(link))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hive = self.root.short_name();
        let (from, to) = (self.from.join("\\"), self.to.join("\\"));
        write!(
            f,
            r"{hive}\{from} is a link in Windows: changes go to {hive}\{to}"
        )
    }
}
