//! Security descriptors of the keys of a delta hive.
//!
//! Every parent key has a descriptor too, which takes effect in a container. So it must be the
//! descriptor of the key in Windows' base hive, or an image that sets one value would change who
//! may open the key. The known ones are in [`super::builtin_descriptors`]; every other key inherits
//! from the nearest of them above it, as when the kernel creates a key.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::builtin_descriptors::{
    CONTROL_SET, CONTROL_SETS, SAM_ROOT, SECURITY_ROOT, SOFTWARE_ROOT, SYSTEM, SYSTEM_ROOT,
};
use super::delta::Delta;
use crate::Root;
use crate::name_folding::FoldedName;
use crate::security::{ChildKind, SddlError, SecurityDescriptor, Sid};

/// Position of a key in the tree of known descriptors.
#[derive(Clone, Copy)]
pub(super) struct Position(Option<&'static KnownKey>);

/// A key with a known descriptor, or a parent of one.
#[derive(Default)]
struct KnownKey {
    own: Option<SecurityDescriptor>,
    below: BTreeMap<FoldedName, KnownKey>,
}

pub(super) struct KnownHive {
    pub(super) root: SecurityDescriptor,
    /// Descriptor from which keys directly below the root inherit.
    pub(super) passed_on: SecurityDescriptor,
    tree: KnownKey,
}

pub(super) fn known(hive: Delta) -> Result<&'static KnownHive, SddlError> {
    static KNOWN: LazyLock<Result<[KnownHive; 4], SddlError>> = LazyLock::new(|| {
        Ok([
            system()?,
            plain(SOFTWARE_ROOT)?,
            plain(SAM_ROOT)?,
            plain(SECURITY_ROOT)?,
        ])
    });
    let [system, software, sam, security] = KNOWN.as_ref().map_err(Clone::clone)?;
    Ok(match hive {
        Delta::Edited(Root::System) => system,
        Delta::Edited(Root::Software | Root::DefaultUser) => software,
        Delta::Sam => sam,
        Delta::Security => security,
    })
}

impl KnownHive {
    pub(super) fn position(&'static self) -> Position {
        Position(Some(&self.tree))
    }
}

impl Position {
    /// The key of that name below this one.
    pub(super) fn below(self, name: &FoldedName) -> Self {
        Self(self.0.and_then(|known| known.below.get(name)))
    }

    /// The key's descriptor, if it is not inherited.
    pub(super) fn own(self) -> Option<&'static SecurityDescriptor> {
        self.0?.own.as_ref()
    }
}

fn system() -> Result<KnownHive, SddlError> {
    let mut tree = KnownKey::default();
    let mut add = |path: &str, sddl| -> Result<(), SddlError> {
        let known = path.split('\\').fold(&mut tree, |known, name| {
            known.below.entry(FoldedName::new(name)).or_default()
        });
        known.own = Some(descriptor(sddl)?);
        Ok(())
    };
    for path in CONTROL_SETS {
        add(path, CONTROL_SET)?;
    }
    let mut sddl = "";
    for line in SYSTEM.lines() {
        match line.strip_prefix("  ") {
            Some(path) => add(path, sddl)?,
            None => sddl = line,
        }
    }
    Ok(KnownHive {
        root: descriptor(SYSTEM_ROOT)?,
        passed_on: descriptor(CONTROL_SET)?,
        tree,
    })
}

/// A hive with a known descriptor of the root alone.
fn plain(root: &str) -> Result<KnownHive, SddlError> {
    Ok(KnownHive {
        root: descriptor(root)?,
        passed_on: descriptor(root)?,
        tree: KnownKey::default(),
    })
}

fn descriptor(sddl: &str) -> Result<SecurityDescriptor, SddlError> {
    const CAPABILITY: &str = "S-1-15-3-1024-1065365936-1281604716-3511738428-1654721687-432734479-3232135806-4053264122-3456934681";
    sddl.replace("%C", CAPABILITY).parse()
}

/// The descriptor of a key that Windows' setup created below one with this descriptor.
pub(super) fn inherited(parent: &SecurityDescriptor) -> SecurityDescriptor {
    let system = Sid::local_system();
    parent.inherited_by(ChildKind::Key, &system, &system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_root_has_a_descriptor_that_can_be_read() {
        for hive in Root::ALL.map(Delta::Edited) {
            assert!(known(hive).is_ok());
        }
        for hive in [Delta::Sam, Delta::Security] {
            assert!(known(hive).is_ok());
        }
    }

    #[test]
    fn an_ordinary_key_inherits_from_the_control_set() {
        let control = inherited(&descriptor(CONTROL_SET).unwrap());
        let expected = descriptor(
            "O:SYG:SYD:AI(A;CIID;KR;;;BU)(A;CIID;KA;;;BA)(A;CIID;KA;;;SY)(A;CIIOID;KA;;;CO)S:AI",
        )
        .unwrap();
        let first = |descriptor: &SecurityDescriptor| {
            let list = descriptor.dacl.as_ref().unwrap();
            list.entries[..4].to_vec()
        };
        assert_eq!(first(&control), first(&expected));
        assert_eq!(control.control, expected.control);
        assert_eq!(
            (control.owner, control.group),
            (expected.owner, expected.group)
        );
    }

    #[test]
    fn a_known_key_is_found_whatever_its_case() {
        let root = known(Delta::Edited(Root::System)).unwrap().position();
        let lsa = ["CONTROLSET001", "control", "LSA"]
            .iter()
            .fold(root, |at, name| at.below(&FoldedName::new(name)));
        assert!(lsa.own().is_some());
        assert!(lsa.below(&FoldedName::new("x")).own().is_none());
    }
}
