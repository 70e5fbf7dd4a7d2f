//! Damaged packages and transforms: each is read, planned and unpacked to an error or a result,
//! never a panic.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use wincimg_msi::{BareSystem, InstallOptions, InstalledContent, Package};

use super::packages::PACKAGES;
use super::transforms;

/// Maximum time for one package.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Files beside a package are not read, which is an error too.
fn contents_beside_are_errors(package: &[u8]) {
    let mut package = Package::read(Cursor::new(package)).unwrap();
    let beside = [
        InstalledContent::Beside("a.txt".to_owned()),
        InstalledContent::Cabinet {
            cabinet: "a.cab".to_owned(),
            member: "a.txt".to_owned(),
        },
    ];
    for content in &beside {
        let read = package.read_contents(&BTreeSet::from([content]), &mut |_, _| Ok(()));
        let error = read.unwrap_err().to_string();
        assert!(error.contains("beside the package, not found"), "{error}");
    }
}

pub(crate) fn damaged_packages_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let built = |name: &str| {
        let number = PACKAGES.iter().position(|it| it.name == name).unwrap();
        let file = super::build(&PACKAGES[number], number, folder.path()).unwrap();
        (number, file)
    };
    let names = ["registry", "features", "service", "class", "file-type"];
    let packages: Vec<Vec<u8>> = names
        .map(|name| std::fs::read(built(name).1).unwrap())
        .to_vec();
    contents_beside_are_errors(&packages[0]);
    let (number, transformed) = built("transform");
    let transform = transforms::changes(number).bytes();
    let applied = transforms::plan(&transformed, "own.mst", transform.clone());
    assert!(applied.is_ok(), "{applied:?}");
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
        let change = |bytes: &[u8]| changed(bytes, &changes, is_cut);
        let started = Instant::now();
        // The results do not matter.
        let _ = install(change(package.get(&packages).as_slice()));
        let _ = transforms::plan(&transformed, "own.mst", change(&transform));
        prop_assert!(started.elapsed() < TIME_LIMIT);
        Ok(())
    });
    result.unwrap();
}

/// Bytes with some of them replaced.
fn changed(bytes: &[u8], changes: &[(prop::sample::Index, u8, usize)], is_cut: bool) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, byte, count) in changes {
        let at = at.index(bytes.len());
        for changed in bytes.iter_mut().skip(at).take(*count) {
            *changed = *byte;
        }
    }
    if is_cut {
        bytes.truncate(changes[0].0.index(bytes.len()));
    }
    bytes
}

fn install(bytes: Vec<u8>) -> Result<(), wincimg_msi::MsiError> {
    let mut package = Package::read(Cursor::new(bytes))?;
    let plan = package.plan(&InstallOptions::default(), &BareSystem::default())?;
    let wanted: BTreeSet<_> = plan.files.iter().map(|file| &file.source).collect();
    package.read_contents(&wanted, &mut |_, content| {
        std::io::copy(content, &mut std::io::sink()).map(drop)
    })
}
