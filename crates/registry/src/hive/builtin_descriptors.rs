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

/// A descriptor with its keys. `%C` is the capability that may read the registry.
pub(super) type Row = (&'static str, &'static [&'static str]);

pub(super) const SYSTEM_ROOT: &str =
    "O:BAG:BAD:(A;CI;KA;;;SY)(A;CI;KA;;;BA)(A;CI;KR;;;WD)(A;CI;KR;;;RC)";
pub(super) const CONTROL_SET: &str = "O:BAG:SYD:(A;CI;KR;;;BU)(A;CI;KA;;;BA)(A;CI;KA;;;SY)(A;;KA;;;BA)(A;CIIO;KA;;;CO)(A;CI;KR;;;AC)(A;CI;KR;;;%C)";
pub(super) const SOFTWARE_ROOT: &str = "O:BAG:SYD:PAI(A;CI;KR;;;BU)(A;CI;KA;;;BA)(A;CI;KA;;;SY)(A;CIIO;KA;;;CO)(A;CI;KR;;;AC)(A;CI;KR;;;%C)S:AI";

pub(super) const SAM_ROOT: &str = "O:BAG:SYD:PAI(A;CI;KA;;;SY)(A;CI;KA;;;BA)S:AI";
pub(super) const SECURITY_ROOT: &str = "O:BAG:SYD:PAI(A;CI;KA;;;SY)(A;CI;0x60000;;;BA)S:AI";

pub(super) const SYSTEM: [Row; 24] = [
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
        "O:SYG:SYD:PAI(A;;KA;;;SY)(A;OICIIO;GA;;;SY)S:AI",
        &[r"ControlSet001\Control\Session Manager\kernel\RNG"],
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
        "O:BAG:SYD:AI(A;;KA;;;BA)(A;OICIIO;0xc0000000;;;S-1-5-80-3139157870-2983391045-3678747466-658725712-1809340420)(A;;0x2001f;;;S-1-5-80-3139157870-2983391045-3678747466-658725712-1809340420)(A;ID;KA;;;BA)(A;CIIOID;GA;;;BA)(A;ID;KA;;;SY)(A;CIIOID;GA;;;SY)(A;CIIOID;GA;;;CO)(A;ID;KA;;;S-1-5-80-880578595-1860270145-482643319-2788375705-1540778122)(A;OICIIOID;GA;;;S-1-5-80-880578595-1860270145-482643319-2788375705-1540778122)S:AI",
        &[r"ControlSet001\Control\WMI\Autologger\Circular Kernel Context Logger"],
    ),
    (
        "O:BAG:SYD:PAI(A;;KR;;;AU)(A;CIIO;GR;;;AU)(A;;KA;;;SO)(A;CIIO;GA;;;SO)(A;;KA;;;BA)(A;CIIO;GA;;;BA)(A;;KA;;;SY)(A;CIIO;GA;;;SY)(A;;KA;;;S-1-5-80-880578595-1860270145-482643319-2788375705-1540778122)(A;CIIO;GA;;;S-1-5-80-880578595-1860270145-482643319-2788375705-1540778122)S:AI(AU;OICISAFA;0xd0006;;;WD)",
        &[
            r"ControlSet001\Control\WMI\Autologger\EventLog-Application",
            r"ControlSet001\Control\WMI\Autologger\EventLog-System",
        ],
    ),
    (
        "O:BAG:SYD:PAI(A;;KA;;;AU)(A;CIIO;GA;;;AU)(A;;KA;;;SO)(A;CIIO;GA;;;SO)(A;;KA;;;BA)(A;CIIO;GA;;;BA)(A;;KA;;;SY)(A;CIIO;GA;;;SY)(A;;KA;;;S-1-5-80-880578595-1860270145-482643319-2788375705-1540778122)(A;CIIO;GA;;;S-1-5-80-880578595-1860270145-482643319-2788375705-1540778122)S:AI(AU;OICISAFA;0xd0006;;;WD)",
        &[r"ControlSet001\Control\WMI\Autologger\EventLog-Security"],
    ),
    (
        "O:BAG:SYD:PAI(A;OICI;KA;;;SY)(A;OICI;KA;;;LS)(A;OICI;KA;;;BA)S:AI",
        &[r"ControlSet001\Control\WMI\Autologger\SQMLogger"],
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
        "O:SYG:SYD:(A;OICI;KA;;;SY)(A;OICI;KR;;;BA)(A;OICI;KA;;;S-1-5-80-880578595-1860270145-482643319-2788375705-1540778122)",
        &[r"ControlSet001\Services\EventLog\State"],
    ),
    (
        "O:BAG:SYD:AI(A;;KA;;;BA)(A;CIID;KR;;;BU)(A;CIID;KA;;;BA)(A;CIID;KA;;;SY)(A;CIIOID;KA;;;CO)(A;CIID;KR;;;AC)(A;CIID;KR;;;%C)S:AI",
        &[r"ControlSet001\Services\mpssvc"],
    ),
    (
        "O:SYG:SYD:PAI(A;CI;0x3;;;S-1-5-80-2940520708-3855866260-481812779-327648279-1710889582)(A;CI;0x3;;;S-1-5-80-3526382388-830156861-4107432654-3665941875-1028450966)(A;CI;0x11;;;S-1-5-80-3088073201-1464728630-1879813800-1107566885-823218052)(A;OI;0x11;;;SY)(A;OI;0x11;;;BA)S:AI",
        &[r"ControlSet001\Services\mpssvc\Parameters\PortKeywords\DHCP"],
    ),
    (
        "O:SYG:SYD:PAI(A;CI;0x3;;;S-1-5-80-979556362-403687129-3954533659-2335141334-1547273080)(A;CI;0x11;;;S-1-5-80-3088073201-1464728630-1879813800-1107566885-823218052)(A;OI;0x11;;;SY)(A;OI;0x11;;;BA)S:AI",
        &[r"ControlSet001\Services\mpssvc\Parameters\PortKeywords\RPC-EPMap"],
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
        "O:SYG:SYD:PAI(A;;KR;;;BU)(A;CIIO;GR;;;BU)(A;;KA;;;BA)(A;CIIO;GA;;;BA)(A;;KA;;;SY)(A;CIIO;GA;;;SY)(A;;KR;;;AC)(A;CIIO;GR;;;AC)(A;;KR;;;S-1-15-3-1)(A;CIIO;GR;;;S-1-15-3-1)(A;;KR;;;S-1-15-3-2)(A;CIIO;GR;;;S-1-15-3-2)(A;;KR;;;S-1-15-3-3)(A;CIIO;GR;;;S-1-15-3-3)(A;;KR;;;S-1-15-3-4214768333-1334025770-122408079-3919188833)(A;CIIO;GR;;;S-1-15-3-4214768333-1334025770-122408079-3919188833)S:AI",
        &[r"ControlSet001\Services\Tcpip\Parameters\Adapters"],
    ),
    (
        "O:SYG:SYD:PAI(A;;KA;;;BA)(A;;KA;;;SY)(A;;0x3001f;;;BO)(A;;0x3001f;;;LS)(A;;0x3001f;;;NS)(A;CIIO;RC;;;OW)(A;;KR;;;BU)(A;CIIO;GR;;;BU)(A;CIIO;GA;;;BA)(A;CIIO;GA;;;BO)(A;CIIO;GA;;;LS)(A;CIIO;GA;;;NS)(A;CIIO;GA;;;SY)S:AI",
        &[r"ControlSet001\Services\VSS\Diag"],
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
