//! Entrances for `fuzz/`, compiled for it alone.

use super::packages::{PackageFileKind, windows_file_version};

/// Reads bytes as each kind of file with packages.
pub fn packages(bytes: &[u8]) {
    let names = [
        "app/a.exe",
        "app/b.dll",
        "node_modules/a/package.json",
        "app/a.deps.json",
        "lib/a-1.dist-info/METADATA",
    ];
    for name in names {
        let kind = PackageFileKind::from_path(name);
        drop(kind.map(|kind| kind.read(name, bytes)));
    }
    drop(windows_file_version(bytes));
}
