//! Random steps on a model of NTFS, and the layers that are written for them, read back: the same
//! files, with the same rights, with and without facts about the base.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use wincimg_common::progress::{Progress as _, Silent};
use wincimg_layer::{LayerReader, Limits, LinkTo, Symlink, TarEntryKind, WriteOptions};
use wincimg_oci::document::{ContainerConfig, Image, ManifestFormat, Platform};
use wincimg_recipe::{FileSource, Instructions, PlanBase, PlannedContent, PlannedStep};
use wincimg_registry::security::{SecurityDescriptor, Sid, ace_flags};
use wincimg_registry::{RegistryData, RegistryEdit, UnknownBase};
use wincimg_windows::access::{
    Access, AccessAccount, AccessChange, AccessEdit, AccountRights, DescriptorEdit, Grant, Inherit,
    Rights,
};
use wincimg_windows::version::WindowsVersion;

use super::*;

/// Accounts that have no rights in the usual descriptors.
const ACCOUNTS: [(&str, &str); 2] = [("Everyone", "S-1-1-0"), ("NetworkService", "S-1-5-20")];

/// A folder that the base has; no rights of it are inherited from above.
const OF_BASE: &str = "base";

/// Rights of an account at a place of the model.
#[derive(Debug, Clone)]
struct Granted {
    account: &'static str,
    mask: u32,
    inherit: Inherit,
}

/// A file or folder of the model.
#[derive(Debug, Clone, Default)]
struct Node {
    is_folder: bool,
    own: Vec<Granted>,
}

/// NTFS: a folder passes on what it was granted, now and later, until it is deleted.
#[derive(Debug, Clone, Default)]
struct Drive(BTreeMap<String, Node>);

/// A requested step, possibly invalid.
#[derive(Debug, Clone)]
enum Action {
    Folder(String),
    File(String),
    Delete(String),
    Grant(String, usize, Rights, Inherit, bool),
    Registry,
}

impl Drive {
    fn over(knows_base: bool) -> Self {
        let mut drive = Self::default();
        if knows_base {
            drive.make(OF_BASE, true);
        }
        drive
    }

    /// Makes something and the folders above it; false if a file is in the way or the same is there.
    fn make(&mut self, path: &str, is_folder: bool) -> bool {
        let above = || path.match_indices('/').map(|(at, _)| &path[..at]);
        let is_file = |path: &str| self.0.get(path).is_some_and(|node| !node.is_folder);
        if above().any(is_file) || self.0.get(path).is_some_and(|it| it.is_folder != is_folder) {
            return false;
        }
        for folder in above() {
            let made = self.0.entry(folder.to_owned()).or_default();
            made.is_folder = true;
        }
        // What is written again keeps its rights.
        self.0.entry(path.to_owned()).or_default().is_folder = is_folder;
        true
    }

    fn delete(&mut self, path: &str) -> bool {
        let below = format!("{path}/");
        let is_there = self.0.contains_key(path);
        self.0
            .retain(|own, _| own != path && !own.starts_with(&below));
        is_there
    }

    /// The rights of an account on a path: those granted there, and those passed on from above.
    fn rights(&self, path: &str, account: &str) -> u32 {
        let node = &self.0[path];
        let of = |node: &Node, is_passed_on: &dyn Fn(Inherit) -> bool| {
            let own = node.own.iter().filter(|it| it.account == account);
            own.filter(|it| is_passed_on(it.inherit))
                .fold(0, |all, it| all | it.mask)
        };
        let is_passed_on = |inherit| match inherit {
            Inherit::All => true,
            Inherit::Folders => node.is_folder,
            Inherit::Files => !node.is_folder,
            Inherit::None => false,
        };
        let above = path.match_indices('/').map(|(at, _)| &self.0[&path[..at]]);
        above.fold(of(node, &|_| true), |all, node| {
            all | of(node, &is_passed_on)
        })
    }

    /// The rights of all accounts on all paths.
    fn all_rights(&self) -> BTreeMap<String, [u32; 2]> {
        let paths = self.0.keys();
        paths
            .map(|path| {
                (
                    path.clone(),
                    ACCOUNTS.map(|(name, _)| self.rights(path, name)),
                )
            })
            .collect()
    }
}

fn mask(rights: Rights) -> u32 {
    match rights {
        Rights::Full => 0x1F_01FF,
        Rights::Modify => 0x13_01BF,
        Rights::ReadExecute => 0x12_00A9,
        Rights::Read => 0x12_0089,
        Rights::Write => 0x10_0116,
    }
}

/// A plain grant, or one that what is in the folder gets as its own too.
fn grant(
    text: &str,
    account: &str,
    rights: Rights,
    inherit: Inherit,
    each_inside: bool,
) -> AccessChange {
    let path = format!("/{text}").parse().unwrap();
    let account: AccessAccount = account.parse().unwrap();
    if !each_inside {
        let grants = vec![Grant { account, rights }];
        return AccessChange::Grant(Access {
            path,
            grants,
            inherit,
        });
    }
    let rights = AccountRights {
        account,
        rights: vec![rights],
        inherit,
        inherit_only: false,
        no_propagate: false,
    };
    let edit = DescriptorEdit::Grant {
        rights,
        replaces: false,
    };
    AccessChange::Edit(AccessEdit {
        path,
        edit,
        each_inside,
    })
}

/// The plan's layer of these actions, and what they make of the drive.
fn planned(actions: &[Action], drive: &mut Drive) -> PlannedLayer {
    let mut layer = PlannedLayer::default();
    let path = |text: &str| format!("/{text}").parse::<ImagePath>().unwrap();
    let is_free = |layer: &PlannedLayer, text: &str| {
        // Each path is changed once in a layer, and not below or above one that is deleted.
        !layer.entries.iter().any(|entry| {
            let is_deleted = entry.content == PlannedContent::Deleted;
            let (own, other) = (&entry.path, path(text));
            let is_related =
                own.strip_prefix(&other).is_some() || other.strip_prefix(own).is_some();
            *own == other || is_deleted && is_related
        })
    };
    for action in actions {
        let (text, content) = match action {
            Action::Folder(text) => (text, PlannedContent::Folder),
            Action::File(text) => (text, PlannedContent::File(FileSource::Text("x".into()))),
            Action::Delete(text) => (text, PlannedContent::Deleted),
            Action::Grant(..) | Action::Registry => continue,
        };
        let below = format!("{text}/");
        let has_own = |layer: &PlannedLayer| {
            let mut entries = layer.entries.iter();
            entries.any(|entry| entry.path.components().join("/").starts_with(&below))
        };
        let is_made = is_free(&layer, text)
            && match content {
                PlannedContent::Folder => drive.make(text, true),
                PlannedContent::Deleted => {
                    text != OF_BASE && !has_own(&layer) && drive.delete(text)
                }
                _ => drive.make(text, false),
            };
        if is_made {
            layer.entries.push(PlannedEntry {
                path: path(text),
                content,
            });
        }
    }
    for action in actions {
        match action {
            Action::Grant(text, account, rights, inherit, each_inside)
                if drive.0.contains_key(text) =>
            {
                let (name, _) = ACCOUNTS[*account];
                let granted = Granted {
                    account: name,
                    mask: mask(*rights),
                    inherit: *inherit,
                };
                let below = format!("{text}/");
                for (own, node) in &mut drive.0 {
                    if own == text || *each_inside && own.starts_with(&below) {
                        node.own.push(granted.clone());
                    }
                }
                layer
                    .access
                    .push(grant(text, name, *rights, *inherit, *each_inside));
            }
            Action::Registry => layer.registry.push(RegistryEdit::SetValue {
                key: r"HKLM\SOFTWARE\Shop".parse().unwrap(),
                name: "Region".into(),
                data: RegistryData::sz("EU"),
            }),
            _ => {}
        }
    }
    layer
}

/// A container's view of the layers: rights by path, and the number of hives of each layer.
#[derive(Debug, Default)]
struct ContainerView {
    rights: BTreeMap<String, [u32; 2]>,
    hives: Vec<usize>,
}

impl ContainerView {
    fn take(&mut self, layer: &Layer) {
        let cancelled = AtomicBool::new(false);
        let task = Silent.task("layer", None);
        let options = WriteOptions {
            compression: wincimg_layer::Compression::default(),
            threads: NonZero::new(1),
            cancelled: &cancelled,
            progress: task.as_ref(),
        };
        let mut blob = Vec::new();
        layer.write(&mut blob, &options).unwrap();
        let mut reader = LayerReader::new(blob.as_slice(), Limits::default()).unwrap();
        let (mut deleted, mut made, mut hives) = (Vec::new(), Vec::new(), 0);
        while let Some(entry) = reader.next_entry().unwrap() {
            let is_file = entry.kind == TarEntryKind::File;
            hives += usize::from(is_file && entry.path.starts_with("Hives/"));
            let Some(path) = entry.path.strip_prefix("Files/") else {
                continue;
            };
            if path.contains(".wh.") {
                deleted.push(path.replace(".wh.", ""));
                continue;
            }
            let mut records = reader.pax();
            let (_, value) = records.find(|(key, _)| *key == b"MSWINDOWS.rawsd").unwrap();
            let bytes = BASE64_STANDARD.decode(value).unwrap();
            made.push((
                path.to_owned(),
                effective(&SecurityDescriptor::from_bytes(&bytes).unwrap()),
            ));
        }
        for path in deleted {
            let below = format!("{path}/");
            self.rights
                .retain(|own, _| *own != path && !own.starts_with(&below));
        }
        self.rights.extend(made);
        self.hives.push(hives);
    }
}

fn effective(descriptor: &SecurityDescriptor) -> [u32; 2] {
    ACCOUNTS.map(|(_, sid)| {
        let sid: Sid = sid.parse().unwrap();
        let entries = descriptor.dacl.iter().flat_map(|list| &list.entries);
        entries
            .filter(|entry| entry.sid == sid && entry.flags & ace_flags::INHERIT_ONLY == 0)
            .fold(0, |all, entry| all | entry.mask)
    })
}

/// A base whose files are known: the drive and one folder.
#[derive(Debug)]
struct KnownBase;

impl BaseKeys for KnownBase {
    fn key(&self, _: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        Ok(Presence::Unknown)
    }
}

impl BaseContents for KnownBase {
    fn file(&self, path: &ImagePath) -> Result<Presence<BaseFile>, BaseReadError> {
        let (name, sddl) = match path.components() {
            [] => (String::new(), None),
            [name] if name.eq_ignore_ascii_case(OF_BASE) => (
                OF_BASE.to_owned(),
                Some("O:SYG:SYD:PAI(A;OICI;FA;;;SY)(A;;0x1200a9;;;BU)"),
            ),
            _ => return Ok(Presence::Absent),
        };
        Ok(Presence::Present(BaseFile {
            name,
            kind: FileKind::Folder,
            attributes: 0x10,
            security: sddl.map(wincimg_registry::testing::security),
        }))
    }

    fn folders_below(
        &self,
        _: &ImagePath,
    ) -> Result<Presence<Vec<(ImagePath, BaseFile)>>, BaseReadError> {
        Ok(Presence::Present(Vec::new()))
    }
}

fn plan(layers: Vec<PlannedLayer>) -> Plan {
    let steps = layers.into_iter().map(|layer| PlannedStep {
        line: None,
        created_by: "a step".to_owned(),
        layer: (!layer.is_empty()).then(|| Arc::new(layer)),
    });
    Plan {
        base: PlanBase {
            os_version: Some(WindowsVersion::new(17763, 973)),
            ..PlanBase::default()
        },
        instructions: Some(Instructions {
            steps: steps.collect(),
            container: ContainerConfig::default(),
            author: None,
        }),
        ..Plan::default()
    }
}

fn written(plan: &Plan, inside: &dyn BaseContents) -> ContainerView {
    let image = Image::empty(ManifestFormat::Oci, Platform::windows("10.0.17763.973")).unwrap();
    let mut found = ContainerView::default();
    for step in describe_steps(plan, &image, inside, 1, false).unwrap() {
        if let Some(layer) = step.layer {
            found.take(&layer);
        }
    }
    found
}

fn path() -> impl Strategy<Value = String> {
    let below = vec(select(vec!["a", "b"]), 0..3);
    (select(vec![OF_BASE, "own", "app"]), below).prop_map(|(top, mut names)| {
        names.insert(0, top);
        names.join("/")
    })
}

fn action() -> impl Strategy<Value = Action> {
    let rights = vec![Rights::Modify, Rights::Read, Rights::Write];
    let inherit = vec![
        Inherit::All,
        Inherit::Folders,
        Inherit::Files,
        Inherit::None,
    ];
    prop_oneof![
        3 => path().prop_map(Action::Folder),
        4 => path().prop_map(|path| Action::File(format!("{path}/file"))),
        1 => path().prop_map(|path| Action::Delete(format!("{path}/file"))),
        1 => path().prop_map(Action::Delete),
        4 => (path(), 0..2_usize, select(rights), select(inherit), any::<bool>())
            .prop_map(|(path, account, rights, inherit, each)| {
                Action::Grant(path, account, rights, inherit, each)
            }),
        1 => Just(Action::Registry),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn layers_mean_what_windows_would_have_made(steps in vec(vec(action(), 1..5), 1..6)) {
        let mut meanings = Vec::new();
        for knows_base in [true, false] {
            let is_used = |action: &&Action| match action {
                Action::Folder(path) | Action::File(path) | Action::Delete(path)
                | Action::Grant(path, ..) => knows_base || !path.starts_with(OF_BASE),
                Action::Registry => true,
            };
            let mut drive = Drive::over(knows_base);
            let layers: Vec<PlannedLayer> = steps
                .iter()
                .map(|actions| {
                    let used: Vec<Action> = actions.iter().filter(is_used).cloned().collect();
                    planned(&used, &mut drive)
                })
                .collect();
            let plan = plan(layers);
            let base: &dyn BaseContents = if knows_base { &KnownBase } else { &UnknownBase };
            let mut found = written(&plan, base);
            let mut expected = drive.all_rights();
            // A folder of the base alone is in no layer.
            if knows_base && !found.rights.contains_key(OF_BASE) {
                let untouched = expected.remove(OF_BASE);
                prop_assert_eq!(untouched, Some([0, 0]));
            }
            prop_assert_eq!(&found.rights, &expected, "knows base: {}", knows_base);
            let has_hives = found.hives.iter().any(|hives| *hives > 0);
            let count = if has_hives { 5 } else { 0 };
            prop_assert!(found.hives.iter().all(|hives| *hives == count), "{:?}", found.hives);
            found.rights.retain(|path, _| !path.starts_with(OF_BASE));
            meanings.push(found.rights);
        }
        prop_assert_eq!(&meanings[0], &meanings[1]);
    }
}

/// The descriptors of the layers' entries, as text, the topmost of each path.
fn descriptors(plan: &Plan, inside: &dyn BaseContents) -> BTreeMap<String, String> {
    let image = Image::empty(ManifestFormat::Oci, Platform::windows("10.0.17763.973")).unwrap();
    let mut found = BTreeMap::new();
    for step in describe_steps(plan, &image, inside, 1, false).unwrap() {
        let mut blob = Vec::new();
        let Some(layer) = step.layer else { continue };
        layer.write(&mut blob, &WriteOptions::default()).unwrap();
        let mut reader = LayerReader::new(blob.as_slice(), Limits::default()).unwrap();
        while let Some(entry) = reader.next_entry().unwrap() {
            let mut records = reader.pax();
            if let Some((_, value)) = records.find(|(key, _)| *key == b"MSWINDOWS.rawsd") {
                let bytes = BASE64_STANDARD.decode(value).unwrap();
                let descriptor = SecurityDescriptor::from_bytes(&bytes).unwrap();
                let path = entry.path.trim_start_matches("Files/").to_owned();
                found.insert(path, descriptor.to_string());
            }
        }
    }
    found
}

#[test]
fn a_working_directory_among_windows_folders_is_made_with_their_rights() {
    let mut plan = plan(Vec::new());
    for (folder, of_parent, of_own) in [
        (
            r"C:\Program Files\App", "(A;OICIIO;GA;;;CO)", "(A;ID;0x1200a9;;;BU)",
        ),
        (
            r"C:\ProgramData\App", "(A;CI;DCLCRPCR;;;BU)", "(A;CIID;DCLCRPCR;;;BU)",
        ),
        (
            r"C:\Users\ContainerUser\app",
            "(A;OICI;FA;;;S-1-5-93-2-2)",
            "(A;OICIID;FA;;;S-1-5-93-2-2)",
        ),
        (
            r"C:\inetpub\site", "(A;OICIIO;GXGR;;;BU)", "(A;ID;0x1200a9;;;BU)",
        ),
    ] {
        plan.working_dir = Some(folder.parse().unwrap());
        let found = descriptors(&plan, &UnknownBase);
        let own = folder.replace(r"C:\", "").replace('\\', "/");
        let (parent, _) = own.rsplit_once('/').unwrap();
        // In the spelling of this program's own descriptors.
        let has = |path: &str, entry: &str| {
            let list: SecurityDescriptor = format!("D:{entry}").parse().unwrap();
            let entry = list.to_string().replace("D:", "");
            found[path].contains(&entry)
        };
        assert!(has(parent, of_parent), "{folder}: {found:?}");
        assert!(has(&own, of_own), "{folder}: {found:?}");
    }
    for folder in [r"C:\Windows\Temp", r"C:\Program Files", r"C:\"] {
        plan.working_dir = Some(folder.parse().unwrap());
        assert!(descriptors(&plan, &UnknownBase).is_empty(), "{folder}");
    }
}

#[test]
fn the_history_names_what_gets_rights() {
    let granted = |created_by: &str| {
        let mut plan = plan(vec![PlannedLayer {
            entries: vec![PlannedEntry::folder("/data".parse().unwrap())],
            access: vec![grant("data", "Everyone", Rights::Read, Inherit::All, false)],
            ..PlannedLayer::default()
        }]);
        let steps = &mut plan.instructions.as_mut().unwrap().steps;
        created_by.clone_into(&mut steps[0].created_by);
        let image = Image::empty(ManifestFormat::Oci, Platform::windows("10.0.17763.973"));
        let steps = describe_steps(&plan, &image.unwrap(), &UnknownBase, 1, false).unwrap();
        steps[0].created_by.clone()
    };
    let named = granted("wincimg build app: data");
    assert_eq!(named, r"wincimg build app: data, icacls C:\data");
    let line = r"RUN ICACLS C:\data /grant Everyone:R";
    assert_eq!(granted(line), line);
}

#[test]
fn the_history_names_owners_links_and_keys_with_rights() {
    let link = Symlink {
        target: "data".to_owned(),
        to: LinkTo::Directory,
    };
    let plan = plan(vec![PlannedLayer {
        entries: vec![
            PlannedEntry::folder("/data".parse().unwrap()),
            PlannedEntry {
                path: "/cur".parse().unwrap(),
                content: PlannedContent::Link(link),
            },
        ],
        registry: vec![RegistryEdit::SetSecurity {
            key: r"HKLM\SOFTWARE\Shop".parse().unwrap(),
            security: "D:P(A;CI;KA;;;BA)".parse().unwrap(),
        }],
        owner: Some("ContainerUser".parse().unwrap()),
        ..PlannedLayer::default()
    }]);
    let image = Image::empty(ManifestFormat::Oci, Platform::windows("10.0.17763.973"));
    let steps = describe_steps(&plan, &image.unwrap(), &UnknownBase, 1, false).unwrap();
    let commands = r"takeown C:\data, mklink C:\cur, regini HKLM\SOFTWARE\Shop";
    assert_eq!(steps[0].created_by, format!("a step, {commands}"));
}

#[test]
fn layers_have_hives_if_one_above_or_below_has_some() {
    let plan = plan(vec![PlannedLayer {
        entries: vec![PlannedEntry::folder("/data".parse().unwrap())],
        ..PlannedLayer::default()
    }]);
    let image = Image::empty(ManifestFormat::Oci, Platform::windows("10.0.17763.973")).unwrap();
    for (requires_hives, count) in [(false, 0), (true, 5)] {
        let mut found = ContainerView::default();
        let steps = describe_steps(&plan, &image, &UnknownBase, 1, requires_hives);
        for step in steps.unwrap() {
            found.take(&step.layer.unwrap());
        }
        assert_eq!(found.hives, [count]);
    }
}
