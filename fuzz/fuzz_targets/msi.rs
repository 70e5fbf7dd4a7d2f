//! Windows Installer packages: tables, the plan of an installation, and the content of its files.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use wincimg_msi::{BareSystem, InstallOptions, NoCompanions, Package};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut package) = Package::read(Cursor::new(bytes)) else {
        return;
    };
    drop(package.contents());
    let Ok(plan) = package.plan(&InstallOptions::default(), &BareSystem) else {
        return;
    };
    let extracted = package.extract(&plan, &mut NoCompanions, &mut |_, content| {
        std::io::copy(content, &mut std::io::sink()).map(drop)
    });
    drop(extracted);
});
