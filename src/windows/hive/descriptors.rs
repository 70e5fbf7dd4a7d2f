//! Which security descriptor a key of a delta hive gets.
//!
//! A key that is only passed through carries a descriptor all the same, and in a container it is
//! the one that counts. So it must be the descriptor that the key has in Windows' base hive, or an
//! image that sets one value would change who may open the key. Two sources say what that is:
//!
//! - `HKLM\SYSTEM`: a delta hive that Windows itself wrote (a Windows sandbox of Windows 10) repeats
//!   the base's descriptors on every key. Those of keys that images have reason to touch are below.
//!   Its root has a descriptor of the delta's own; what stands directly below the root inherits from
//!   the base's root, which has the entries of `ControlSet001`.
//! - `HKLM\SOFTWARE` and `HKU\.DEFAULT`: public documentation. The DISA security guides for Windows
//!   10 and Server 2016 to 2022 list the default permissions of `HKLM\SOFTWARE`: users and
//!   application packages read, administrators and the system do everything, the creator does
//!   everything below; `HKU\.DEFAULT` shows the same list. Keys that Windows gives to its
//!   `TrustedInstaller` are not in these sources and pass through with the inherited descriptor.
//!
//! Every other key inherits from the nearest of these above it, as when the kernel creates a key.
//! None of this could be tried on a Windows host here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::windows::registry::Root;
use crate::windows::registry::upcase::Folded;
use crate::windows::security::{SddlError, SecurityDescriptor, Sid};

/// A descriptor and the keys that have it. `%C` is the capability that may read the registry.
type Row = (&'static str, &'static [&'static str]);

const SYSTEM_ROOT: &str = "O:BAG:BAD:(A;CI;KA;;;SY)(A;CI;KA;;;BA)(A;CI;KR;;;WD)(A;CI;KR;;;RC)";
const CONTROL_SET: &str = "O:BAG:SYD:(A;CI;KR;;;BU)(A;CI;KA;;;BA)(A;CI;KA;;;SY)(A;;KA;;;BA)(A;CIIO;KA;;;CO)(A;CI;KR;;;AC)(A;CI;KR;;;%C)";
const SOFTWARE_ROOT: &str = "O:BAG:SYD:PAI(A;CI;KR;;;BU)(A;CI;KA;;;BA)(A;CI;KA;;;SY)(A;CIIO;KA;;;CO)(A;CI;KR;;;AC)(A;CI;KR;;;%C)S:AI";

const SYSTEM: [Row; 13] = [
    (
        CONTROL_SET,
        &["ControlSet001", "ControlSet002", "ControlSet003"],
    ),
    (
        "O:SYG:SYD:PAI(A;CI;KA;;;BA)(A;CIIO;KA;;;CO)(A;CI;KA;;;SY)(A;CI;KR;;;BU)(A;CI;KR;;;AC)(A;CI;KR;;;%C)S:AI",
        &[r"ControlSet001\Control\Lsa"],
    ),
    (
        "O:BAG:BAD:AI(A;CIID;KR;;;BU)(A;CIID;KA;;;BA)(A;CIID;KA;;;SY)(A;CIIOID;KA;;;CO)(A;CIID;KR;;;AC)(A;CIID;KR;;;%C)S:AI",
        &[r"ControlSet001\Control\Session Manager"],
    ),
    (
        "O:SYG:SYD:AI(A;;0x2001f;;;S-1-5-80-3139157870-2983391045-3678747466-658725712-1809340420)(A;OICIIO;0xc0000000;;;S-1-5-80-3139157870-2983391045-3678747466-658725712-1809340420)(A;CIID;KR;;;BU)(A;CIID;KA;;;BA)(A;CIID;KA;;;SY)(A;CIIOID;KA;;;CO)(A;CIID;KR;;;AC)(A;CIID;KR;;;%C)S:AI",
        &[r"ControlSet001\Control\Session Manager\Memory Management"],
    ),
    (
        "O:SYG:SYD:AI(A;;KA;;;SY)(A;CIIO;GA;;;SY)(A;;KA;;;BA)(A;CIIO;GA;;;BA)(A;;KR;;;AU)(A;OICIIO;0xa0000000;;;AU)(A;;KA;;;S-1-5-32-577)(A;CIIO;GA;;;S-1-5-32-577)(A;CIID;KR;;;BU)(A;CIID;KA;;;BA)(A;CIID;KA;;;SY)(A;CIIOID;KA;;;CO)(A;CIID;KR;;;AC)(A;CIID;KR;;;%C)S:AI",
        &[r"ControlSet001\Control\Terminal Server"],
    ),
    (
        "O:SYG:SYD:AI(A;ID;KA;;;SY)(A;CIIOID;GA;;;SY)(A;ID;KA;;;BA)(A;CIIOID;GA;;;BA)(A;ID;KR;;;AU)(A;OICIIOID;0xa0000000;;;AU)(A;ID;KA;;;S-1-5-32-577)(A;CIIOID;GA;;;S-1-5-32-577)(A;CIID;KR;;;BU)(A;CIIOID;KA;;;BA)(A;CIIOID;KA;;;SY)(A;CIIOID;KA;;;CO)(A;CIID;KR;;;AC)(A;CIID;KR;;;%C)S:AI",
        &[r"ControlSet001\Control\Terminal Server\WinStations"],
    ),
    (
        "O:BAG:SYD:PAI(A;;KA;;;BA)(A;CIIO;GA;;;BA)(A;;KA;;;SY)(A;CIIO;GA;;;SY)(A;;KA;;;BA)(A;CIIO;GA;;;CO)(A;;KA;;;S-1-5-80-880578595-1860270145-482643319-2788375705-1540778122)(A;OICIIO;GA;;;S-1-5-80-880578595-1860270145-482643319-2788375705-1540778122)S:AI",
        &[r"ControlSet001\Control\WMI\Autologger"],
    ),
    (
        "O:SYG:SYD:AI(A;CI;KR;;;BU)(A;CI;KA;;;BA)(A;CI;KA;;;SY)(A;CI;KR;;;IU)(A;CI;KR;;;NS)(A;CI;KR;;;LS)(A;CI;0x2001d;;;NO)(A;CI;KR;;;AC)(A;CI;KR;;;S-1-5-80-3088073201-1464728630-1879813800-1107566885-823218052)(A;CIID;KR;;;BU)(A;CIID;KA;;;BA)(A;CIID;KA;;;SY)(A;CIIOID;KA;;;CO)(A;CIID;KR;;;AC)(A;CIID;KR;;;%C)S:AI",
        &[r"ControlSet001\Services\Dnscache"],
    ),
    (
        "O:SYG:SYD:AI(A;CI;KR;;;BU)(A;CI;KA;;;BA)(A;CI;KA;;;SY)(A;CI;KR;;;IU)(A;CI;KR;;;NS)(A;CI;KR;;;LS)(A;CI;0x2001d;;;NO)(A;CI;KR;;;AC)(A;CI;KA;;;S-1-5-80-3088073201-1464728630-1879813800-1107566885-823218052)(A;CIID;KR;;;BU)(A;CIID;KA;;;BA)(A;CIID;KA;;;SY)(A;CIID;KR;;;IU)(A;CIID;KR;;;NS)(A;CIID;KR;;;LS)(A;CIID;0x2001d;;;NO)(A;CIID;KR;;;AC)(A;CIID;KR;;;S-1-5-80-3088073201-1464728630-1879813800-1107566885-823218052)(A;CIIOID;KA;;;CO)(A;CIID;KR;;;%C)S:AI",
        &[r"ControlSet001\Services\Dnscache\Parameters"],
    ),
    (
        "O:BAG:SYD:PAI(A;;KR;;;AU)(A;CIIO;GR;;;AU)(A;;KR;;;SO)(A;CIIO;GR;;;SO)(A;;KA;;;BA)(A;CIIO;GA;;;BA)(A;;KA;;;SY)(A;CIIO;GA;;;SY)S:AI",
        &[r"ControlSet001\Services\EventLog"],
    ),
    (
        "O:SYG:SYD:PAI(A;CI;KR;;;BU)(A;CI;KA;;;BA)(A;CI;KA;;;SY)(A;CI;0x20018;;;NS)(A;CI;KR;;;LS)(A;CI;0x20018;;;NO)(A;CI;0x20018;;;S-1-5-80-2940520708-3855866260-481812779-327648279-1710889582)(A;CIIO;RC;;;OW)(A;CI;KR;;;AC)(A;CI;KR;;;S-1-15-3-1)(A;CI;KR;;;S-1-15-3-2)(A;CI;KR;;;S-1-15-3-3)(A;CI;KR;;;S-1-15-3-4214768333-1334025770-122408079-3919188833)S:AI",
        &[
            r"ControlSet001\Services\Tcpip",
            r"ControlSet001\Services\Tcpip6",
        ],
    ),
    (
        "O:SYG:SYD:PAI(A;CI;KR;;;BU)(A;CI;KA;;;BA)(A;CI;KA;;;SY)(A;CI;0x3003f;;;NS)(A;CI;KR;;;LS)(A;CI;0x3001f;;;NO)(A;CI;0x3001f;;;S-1-5-80-2940520708-3855866260-481812779-327648279-1710889582)(A;CIIO;RC;;;OW)(A;CI;0x2001f;;;S-1-5-80-3981856537-581775623-1136376035-2066872258-409572886)(A;CI;KR;;;AC)(A;CI;KR;;;S-1-15-3-1)(A;CI;KR;;;S-1-15-3-2)(A;CI;KR;;;S-1-15-3-3)(A;CI;KR;;;S-1-15-3-4214768333-1334025770-122408079-3919188833)S:AI",
        &[
            r"ControlSet001\Services\Tcpip\Parameters",
            r"ControlSet001\Services\Tcpip6\Parameters",
        ],
    ),
    (
        "O:SYG:SYD:PAI(A;;KR;;;BU)(A;OICIIO;0xa0000000;;;BU)(A;;KA;;;BA)(A;OICIIO;GA;;;BA)(A;;KA;;;SY)(A;OICIIO;GA;;;SY)(A;;KA;;;SY)(A;OICIIO;GA;;;CO)S:AI",
        &[
            r"ControlSet001\Services\Winmgmt",
            r"ControlSet001\Services\Winmgmt\Parameters",
            r"ControlSet001\Services\WmiApRpl",
            r"ControlSet001\Services\WmiApRpl\Performance",
        ],
    ),
];

/// Where a key is, as far as its descriptor is concerned.
#[derive(Clone, Copy)]
pub(super) struct Position(Option<&'static Known>);

/// A key whose descriptor is known, or that leads to one.
#[derive(Default)]
struct Known {
    own: Option<SecurityDescriptor>,
    below: BTreeMap<Folded, Known>,
}

/// What is known of one hive.
struct KnownHive {
    root: SecurityDescriptor,
    /// What keys directly below the root inherit from.
    passed_on: SecurityDescriptor,
    tree: Known,
}

/// The descriptor of a hive's root, the one that keys below it inherit from, and where to look for
/// the descriptors of those keys.
pub(super) fn of_root(
    root: Root,
) -> Result<
    (
        &'static SecurityDescriptor,
        &'static SecurityDescriptor,
        Position,
    ),
    SddlError,
> {
    static KNOWN: LazyLock<Result<[KnownHive; 2], SddlError>> =
        LazyLock::new(|| Ok([system()?, software()?]));
    let [system, software] = KNOWN.as_ref().map_err(Clone::clone)?;
    let hive = match root {
        Root::System => system,
        Root::Software | Root::DefaultUser => software,
    };
    Ok((&hive.root, &hive.passed_on, Position(Some(&hive.tree))))
}

impl Position {
    /// The key of that name below this one.
    pub(super) fn below(self, name: &Folded) -> Self {
        Self(self.0.and_then(|known| known.below.get(name)))
    }

    /// The key's descriptor, where it is not inherited.
    pub(super) fn own(self) -> Option<&'static SecurityDescriptor> {
        self.0?.own.as_ref()
    }
}

fn system() -> Result<KnownHive, SddlError> {
    let mut tree = Known::default();
    for (sddl, paths) in SYSTEM {
        for path in paths {
            let known = path.split('\\').fold(&mut tree, |known, name| {
                known.below.entry(Folded::new(name)).or_default()
            });
            known.own = Some(descriptor(sddl)?);
        }
    }
    Ok(KnownHive {
        root: descriptor(SYSTEM_ROOT)?,
        passed_on: descriptor(CONTROL_SET)?,
        tree,
    })
}

fn software() -> Result<KnownHive, SddlError> {
    Ok(KnownHive {
        root: descriptor(SOFTWARE_ROOT)?,
        passed_on: descriptor(SOFTWARE_ROOT)?,
        tree: Known::default(),
    })
}

fn descriptor(sddl: &str) -> Result<SecurityDescriptor, SddlError> {
    const CAPABILITY: &str = "S-1-15-3-1024-1065365936-1281604716-3511738428-1654721687-432734479-3232135806-4053264122-3456934681";
    sddl.replace("%C", CAPABILITY).parse()
}

/// The descriptor of a key that Windows' setup created below one with this descriptor.
pub(super) fn inherited(parent: &SecurityDescriptor) -> SecurityDescriptor {
    let system = Sid::local_system();
    parent.inherited_by_key(&system, &system)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_root_has_a_descriptor_that_can_be_read() {
        for root in Root::ALL {
            assert!(of_root(root).is_ok());
        }
    }

    #[test]
    fn an_ordinary_key_inherits_from_the_control_set() {
        let control = inherited(&descriptor(CONTROL_SET).unwrap()).to_string();
        assert!(
            control.starts_with(
                "O:SYG:SYD:AI(A;CIID;KR;;;BU)(A;CIID;KA;;;BA)(A;CIID;KA;;;SY)(A;CIIOID;KA;;;CO)"
            ),
            "{control}"
        );
    }

    #[test]
    fn a_known_key_is_found_whatever_its_case() {
        let (_, _, root) = of_root(Root::System).unwrap();
        let lsa = ["CONTROLSET001", "control", "LSA"]
            .iter()
            .fold(root, |at, name| at.below(&Folded::new(name)));
        assert!(lsa.own().is_some());
        assert!(lsa.below(&Folded::new("x")).own().is_none());
    }
}
