//! Entrances for `fuzz/`, compiled for it alone.

use std::io::{self, Cursor};

use super::cabinet::Cabinet;
use super::package::Package;
use super::plan::InstallOptions;
use super::session::BareSystem;

/// Unpacks every member of a cabinet.
pub fn cabinet(bytes: &[u8]) {
    let mut reader = Cursor::new(bytes);
    let Ok(cabinet) = Cabinet::read(&mut reader) else {
        return;
    };
    let unpacked = cabinet.unpack(&mut reader, &|_| true, &mut |member, content| {
        let copied = io::copy(content, &mut io::sink())?;
        assert!(copied <= u64::from(member.size));
        Ok(())
    });
    drop(unpacked);
}

/// Applies a transform to a package, and plans its installation.
pub fn transform(package: &[u8], transform: &[u8]) {
    if let Ok(mut package) = Package::read(Cursor::new(package))
        && package.transform(transform).is_ok()
    {
        drop(package.plan(&InstallOptions::default(), &BareSystem::default()));
    }
}
