//! Windows Installer packages: tables, the plan of an installation, and the content of its files. A
//! package is also its own transform, and that of a made package.

#![no_main]

use std::collections::BTreeSet;
use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use wincimg_msi::{BareSystem, InstallOptions, Package};

/// A made package.
const MADE: &[u8] = include_bytes!("../seeds/msi/wixl");

fuzz_target!(|bytes: &[u8]| {
    wincimg_msi::fuzz::transform(MADE, bytes);
    wincimg_msi::fuzz::transform(bytes, bytes);
    let Ok(mut package) = Package::read(Cursor::new(bytes)) else {
        return;
    };
    drop(package.contents());
    let Ok(plan) = package.plan(&InstallOptions::default(), &BareSystem::default()) else {
        return;
    };
    let wanted: BTreeSet<_> = plan.files.iter().map(|file| &file.source).collect();
    let read = package.read_contents(&wanted, &mut |_, content| {
        std::io::copy(content, &mut std::io::sink()).map(drop)
    });
    drop(read);
});
