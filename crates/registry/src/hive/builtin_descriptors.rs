//! Descriptors of Windows' base keys that are not inherited.
//!
//! - `HKLM\SYSTEM`: a delta hive that Windows itself wrote (a Windows sandbox of Windows 10) repeats
//!   the base's descriptors on every key. Its root has a descriptor of the delta's own; what stands
//!   directly below the root inherits from the base's root, which has the entries of `ControlSet001`.
//! - `HKLM\SOFTWARE`: public documentation. The DISA security guides for Windows 10, Server 2016 and
//!   Server 2019 list its default permissions: users, application packages and one capability read,
//!   administrators and the system do everything, the creator does everything below. Keys that
//!   Windows gives to its `TrustedInstaller` are not in that list and pass through with the
//!   inherited descriptor.
//! - `HKU\.DEFAULT`: no source was found; it gets what `HKLM\SOFTWARE` has.
//! - `HKLM\SAM`, `HKLM\SECURITY`: public documentation. Only the system opens them as a matter of
//!   course; administrators may change who else does.
//!
//! None of this was tested on a Windows host.

// In all of them `%C` is the capability that may read the registry.

pub(super) const SYSTEM_ROOT: &str =
    "O:BAG:BAD:(A;CI;KA;;;SY)(A;CI;KA;;;BA)(A;CI;KR;;;WD)(A;CI;KR;;;RC)";
pub(super) const CONTROL_SET: &str = "O:BAG:SYD:(A;CI;KR;;;BU)(A;CI;KA;;;BA)(A;CI;KA;;;SY)(A;;KA;;;BA)(A;CIIO;KA;;;CO)(A;CI;KR;;;AC)(A;CI;KR;;;%C)";
pub(super) const SOFTWARE_ROOT: &str = "O:BAG:SYD:PAI(A;CI;KR;;;BU)(A;CI;KA;;;BA)(A;CI;KA;;;SY)(A;CIIO;KA;;;CO)(A;CI;KR;;;AC)(A;CI;KR;;;%C)S:AI";

pub(super) const SAM_ROOT: &str = "O:BAG:SYD:PAI(A;CI;KA;;;SY)(A;CI;KA;;;BA)S:AI";
pub(super) const SECURITY_ROOT: &str = "O:BAG:SYD:PAI(A;CI;KA;;;SY)(A;CI;0x60000;;;BA)S:AI";

/// Keys of `HKLM\SYSTEM`, indented below their descriptor.
pub(super) const SYSTEM: &str = include_str!("system_descriptors.txt");
/// Keys with the descriptor [`CONTROL_SET`].
pub(super) const CONTROL_SETS: [&str; 3] = ["ControlSet001", "ControlSet002", "ControlSet003"];
