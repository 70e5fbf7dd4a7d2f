//! Packages that are made of tables, planned on a system with some files and values.

mod actions;
mod features;
mod search;
mod system;
mod tables;

use std::io::Cursor;

use wincimg_registry::{KeyPath, Presence, RegistryData, RegistryEdit, TypedData};
use wincimg_testkit::transform::{Cell, TestTransform};
use wincimg_windows::path::ImagePath;

use super::*;

/// Tables with an installed component: a line with the name and the columns, and the rows. Columns
/// of numbers begin with `#`; only the first column is a key.
const TABLES: [&str; 6] = [
    "Property|Property|Value\nProductCode|{10000000-0000-0000-0000-000000000001}",
    "Directory|Directory|Directory_Parent|DefaultDir\nTARGETDIR||SourceDir",
    "Feature|Feature|#Level\nAll|1",
    "Component|Component|Directory_\nMain|TARGETDIR",
    "FeatureComponents|Feature_|Component_\nAll|Main",
    "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1",
];

/// Adds [`TABLES`], and others that may replace one of them.
pub(crate) fn add_tables(transform: &mut TestTransform, tables: &[&str]) {
    let is_replaced = |own: &str| tables.iter().any(|it| name(it) == name(own));
    let kept = TABLES.into_iter().filter(|own| !is_replaced(own));
    for table in kept.chain(tables.iter().copied()) {
        let mut lines = table
            .lines()
            .map(|line| line.split('|').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let is_number = |at: usize| names[at + 1].starts_with('#');
        let columns = names[1..].iter().enumerate().map(|(at, name)| match at {
            0 => (*name, 0x2D48),
            at if is_number(at) => (&name[1..], 0x1502),
            _ => (*name, 0x1DFF),
        });
        transform.add_table(names[0], &columns.collect::<Vec<_>>());
        for line in lines {
            let cells = line.iter().enumerate().map(|(at, text)| match *text {
                "" => Cell::Null,
                text if is_number(at) => Cell::Short(text.parse().unwrap()),
                text => Cell::Text(text),
            });
            transform.add(names[0], &cells.collect::<Vec<_>>());
        }
    }
}

fn name(table: &str) -> &str {
    table.split('|').next().unwrap_or_default()
}

/// A system with some files and values.
#[derive(Default)]
struct TestSystem {
    files: BareSystem,
    values: Vec<(KeyPath, &'static str, RegistryData)>,
    /// True if the other values are unknown.
    is_unread: bool,
}

impl TestSystem {
    fn with_file(path: &str, content: &[u8]) -> Self {
        let files = vec![(path.parse().unwrap(), content.to_vec())];
        Self {
            files: BareSystem { files },
            ..Self::default()
        }
    }

    fn with_value(key: &str, name: &'static str, data: RegistryData) -> Self {
        Self {
            values: vec![(key.parse().unwrap(), name, data)],
            ..Self::default()
        }
    }
}

impl InstalledSystem for TestSystem {
    fn value(&self, key: &KeyPath, name: &str) -> Presence<RegistryData> {
        let mut values = self.values.iter();
        match values.find(|(own, value, _)| own == key && *value == name) {
            Some((.., data)) => Presence::Present(data.clone()),
            None if self.is_unread => Presence::Unknown,
            None => Presence::Absent,
        }
    }

    fn value_names(&self, key: &KeyPath) -> Presence<Vec<String>> {
        let own = self.values.iter().filter(|(own, ..)| own == key);
        let names: Vec<String> = own.map(|(_, name, _)| (*name).to_owned()).collect();
        if names.is_empty() {
            return Presence::Absent;
        }
        Presence::Present(names)
    }

    fn key(&self, _: &KeyPath) -> Presence<()> {
        Presence::Absent
    }

    fn entry(&self, path: &ImagePath) -> Presence<bool> {
        let mut files = self.files.files.iter();
        let below = files.find_map(|(file, _)| file.strip_prefix(path));
        below.map_or(Presence::Absent, |below| {
            Presence::Present(!below.is_empty())
        })
    }

    fn names(&self, folder: &ImagePath) -> Presence<Vec<String>> {
        let files = self.files.files.iter();
        let inside = files.filter_map(|(file, _)| match file.strip_prefix(folder)? {
            [name, ..] => Some(name.clone()),
            [] => None,
        });
        Presence::Present(inside.collect())
    }

    fn content(&self, file: &ImagePath) -> Presence<Vec<u8>> {
        self.files.content(file)
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

const PACKAGE_CODE: &str = "{30000000-0000-0000-0000-000000000001}";

/// Plans a package for a platform with these tables.
fn plan(platform: &str, tables: &[&str], system: TestSystem) -> Result<InstallPlan, MsiError> {
    plan_with(&[("ALLUSERS", "1")], platform, tables, system)
}

/// Plans a package with properties of the command line.
fn plan_with(
    properties: &[(&str, &str)],
    platform: &str,
    tables: &[&str],
    system: TestSystem,
) -> Result<InstallPlan, MsiError> {
    let properties = properties.iter();
    let options = InstallOptions {
        properties: properties
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        ..InstallOptions::default()
    };
    plan_by(options, platform, tables, system)
}

/// Plans a package without an action.
fn plan_without(action: &str, tables: &[&str]) -> Result<InstallPlan, MsiError> {
    let options = InstallOptions {
        properties: vec![("ALLUSERS".to_owned(), "1".to_owned())],
        skipped_actions: vec![action.to_owned()],
        ..InstallOptions::default()
    };
    plan_by(options, "x64", tables, TestSystem::default())
}

fn plan_by(
    options: InstallOptions,
    platform: &str,
    tables: &[&str],
    mut system: TestSystem,
) -> Result<InstallPlan, MsiError> {
    plan_on(options, platform, tables, |own| {
        system.files.files.push(own);
        system
    })
}

/// Plans a package on a system that is made with its transform.
fn plan_on<S: InstalledSystem>(
    mut options: InstallOptions,
    platform: &str,
    tables: &[&str],
    system: impl FnOnce((ImagePath, Vec<u8>)) -> S,
) -> Result<InstallPlan, MsiError> {
    let template = format!("{platform};1033");
    let package = TestTransform::new(PACKAGE_CODE, &template, 0).bytes();
    let mut transform = TestTransform::new("", &template, 0);
    add_tables(&mut transform, tables);
    let own = (r"C:\own.mst".parse().unwrap(), transform.bytes());
    let transform = ("TRANSFORMS".to_owned(), r"C:\own.mst".to_owned());
    options.properties.push(transform);
    let mut package = Package::read(Cursor::new(package)).unwrap();
    package.plan(&options, &system(own))
}

/// The key, name and text of values that a plan sets; deletions have no text.
fn values_of(plan: &InstallPlan) -> Vec<String> {
    let values = plan.registry.iter().map(|edit| match edit {
        RegistryEdit::SetValue { key, name, data } => match data.typed() {
            TypedData::Text(text) => format!("{key} {name}={text}"),
            TypedData::Dword(number) => format!("{key} {name}={number}"),
            other => panic!("{other:?}"),
        },
        RegistryEdit::DeleteValue { key, name } => format!("{key} {name}"),
        other => panic!("{other:?}"),
    });
    values.collect()
}

/// Plans a package that writes a property after its searches, and returns what it writes.
fn written(property: &str, tables: &[&str], system: TestSystem) -> RegistryData {
    let columns = "Registry|Registry|#Root|Key|Name|Value|Component_";
    let registry = format!("{columns}\nr|2|SOFTWARE\\Acme|x|<[{property}]>|Main");
    let sequence = "InstallExecuteSequence|Action|#Sequence\nFindRelatedProducts|1\nAppSearch|2\n\
                    CostFinalize|3\nWriteRegistryValues|4";
    let tables = [tables, &[registry.as_str(), sequence]].concat();
    let plan = plan("x64", &tables, system).unwrap();
    assert!(plan.unknown.is_empty(), "{:?}", plan.unknown);
    match plan.registry.as_slice() {
        [RegistryEdit::SetValue { data, .. }] => data.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pointer_of_git_lfs_is_named() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n";
    let error = Package::read(Cursor::new(pointer)).err().unwrap();
    assert!(error.to_string().contains("git lfs pull"), "{error}");
}
