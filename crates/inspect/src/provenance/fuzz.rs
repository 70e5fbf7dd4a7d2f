//! Entrances for `fuzz/`, compiled for it alone.

use bytes::Bytes;

use super::attached::{bill_in, has_subject, unwrap_envelope};
use super::packages::{PackageFileKind, windows_file_version};

/// Reads bytes as each kind of file with packages.
pub fn packages(bytes: &[u8]) {
    let names = [
        "app/a.exe",
        "app/b.dll",
        "node_modules/a/package.json",
        "app/a.deps.json",
        "lib/a-1.dist-info/METADATA",
        "app/a.jar",
        "Files/Windows/Installer/a.msi",
        "Files/Windows/System32/config/SOFTWARE",
    ];
    for name in names {
        let kind = PackageFileKind::from_path(name);
        drop(kind.map(|kind| kind.read(name, bytes)));
    }
    drop(windows_file_version(bytes));
}

/// Reads bytes as a document that is attached to an image.
pub fn attached(bytes: Bytes) {
    let (statement, _) = unwrap_envelope(&bytes).unwrap_or((bytes, false));
    drop(bill_in(&statement));
    has_subject(&statement, &[]);
}
