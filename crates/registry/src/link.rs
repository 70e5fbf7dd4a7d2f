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
    from: &'static str,
    to: &'static str,
}

/// Known links; `CurrentControlSet` is resolved before. Those of the classes are from Microsoft's page
/// "Registry Keys Affected by WOW64".
const LINKS: [Link; 6] = [
    Link {
        root: Root::System,
        from: r"ControlSet001\Hardware Profiles\Current",
        to: r"ControlSet001\Hardware Profiles\0001",
    },
    Link {
        root: Root::Software,
        from: r"WOW6432Node\Policies",
        to: "Policies",
    },
    Link {
        root: Root::Software,
        from: r"WOW6432Node\Classes",
        to: r"Classes\WOW6432Node",
    },
    Link {
        root: Root::Software,
        from: r"Classes\WOW6432Node\AppID",
        to: r"Classes\AppID",
    },
    Link {
        root: Root::Software,
        from: r"Classes\WOW6432Node\PROTOCOLS",
        to: r"Classes\PROTOCOLS",
    },
    Link {
        root: Root::Software,
        from: r"Classes\WOW6432Node\TypeLib",
        to: r"Classes\TypeLib",
    },
];

impl Link {
    /// Replaces links at the start of a path with their targets, and returns the last one.
    pub(super) fn resolve(root: Root, names: &mut Vec<String>) -> Option<Self> {
        let link = LINKS.into_iter().find(|link| {
            let mut own = names.iter();
            let is_next = |from| own.next().is_some_and(|name| eq_ignore_case(name, from));
            link.root == root && link.from.split('\\').all(is_next)
        })?;
        let depth = link.from.split('\\').count();
        names.splice(..depth, link.to.split('\\').map(str::to_owned));
        // The target may be a link itself.
        Self::resolve(root, names).or(Some(link))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hive = self.root.short_name();
        let Self { from, to, .. } = self;
        write!(
            f,
            r"{hive}\{from} is a link in Windows: changes go to {hive}\{to}"
        )
    }
}
