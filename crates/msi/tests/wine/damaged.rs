//! Damaged packages: each is read, planned and unpacked to an error or a result, never a panic.

use std::io::Cursor;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use wincimg_msi::{BareSystem, InstallOptions, NoCompanions, Package};

use super::packages::PACKAGES;

/// Maximum time for one package.
const TIME_LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn damaged_packages_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let packages: Vec<Vec<u8>> = ["registry", "features", "service", "class", "file-type"]
        .iter()
        .map(|name| {
            let number = PACKAGES.iter().position(|it| it.name == *name).unwrap();
            let file = super::build(&PACKAGES[number], number, folder.path()).unwrap();
            std::fs::read(file).unwrap()
        })
        .collect();
    let rounds = std::env::var("WINCIMG_ROUNDS")
        .ok()
        .and_then(|it| it.parse().ok());
    let config = Config {
        cases: rounds.unwrap_or(400),
        failure_persistence: None,
        ..Config::default()
    };
    let change = (any::<prop::sample::Index>(), any::<u8>(), 1_usize..5);
    let changes = prop::collection::vec(change, 1..12);
    let strategy = (any::<prop::sample::Index>(), changes, any::<bool>());
    let result = TestRunner::new(config).run(&strategy, |(package, changes, is_cut)| {
        let mut bytes = package.get(&packages).clone();
        for (at, byte, count) in &changes {
            let at = at.index(bytes.len());
            for changed in bytes.iter_mut().skip(at).take(*count) {
                *changed = *byte;
            }
        }
        if is_cut {
            bytes.truncate(changes[0].0.index(bytes.len()));
        }
        let started = Instant::now();
        // The result does not matter.
        let _ = install(bytes);
        prop_assert!(started.elapsed() < TIME_LIMIT);
        Ok(())
    });
    result.unwrap();
}

fn install(bytes: Vec<u8>) -> Result<(), wincimg_msi::MsiError> {
    let mut package = Package::read(Cursor::new(bytes))?;
    let plan = package.plan(&InstallOptions::default(), &BareSystem)?;
    package.extract(&plan, &mut NoCompanions, &mut |_, content| {
        std::io::copy(content, &mut std::io::sink()).map(drop)
    })
}
