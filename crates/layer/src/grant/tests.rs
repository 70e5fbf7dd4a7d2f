use std::collections::BTreeMap;

use wincimg_common::diagnose::Blame;
use wincimg_registry::security::DescriptorLayout;
use wincimg_registry::{BaseKey, BaseKeys, KeyPath, UnknownBase};
use wincimg_windows::access::Inherit;
use wincimg_windows::base_contents::FileDigest;

use super::*;

/// A base with these folders and files, by their paths and descriptors.
#[derive(Debug, Default)]
struct Base(BTreeMap<ImagePath, BaseFile>);

const PLAIN: &str = "O:BAG:SYD:AI(A;OICIID;FA;;;SY)(A;OICIID;0x1200a9;;;BU)";

impl Base {
    fn with(mut self, path: &str, kind: FileKind<FileDigest>, sddl: &str) -> Self {
        let descriptor: SecurityDescriptor = sddl.parse().unwrap();
        let file = BaseFile {
            name: String::new(),
            kind,
            attributes: 0x10,
            security: Some(descriptor.to_bytes(DescriptorLayout::ListsFirst)),
        };
        self.0.insert(path.parse().unwrap(), file);
        self
    }

    fn folder(self, path: &str, sddl: &str) -> Self {
        self.with(path, FileKind::Folder, sddl)
    }
}

impl BaseKeys for Base {
    fn key(&self, _: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        Ok(Presence::Unknown)
    }
}

impl BaseContents for Base {
    fn file(&self, path: &ImagePath) -> Result<Presence<BaseFile>, BaseReadError> {
        let found = self
            .0
            .iter()
            .find(|(own, _)| own.strip_prefix(path) == Some(&[]));
        Ok(found.map_or(Presence::Absent, |(_, file)| {
            Presence::Present(file.clone())
        }))
    }

    fn folders_below(
        &self,
        path: &ImagePath,
    ) -> Result<Presence<Vec<(ImagePath, BaseFile)>>, BaseReadError> {
        let below = self.0.iter().filter(|(own, file)| {
            file.kind == FileKind::Folder
                && own.strip_prefix(path).is_some_and(|rest| !rest.is_empty())
        });
        Ok(Presence::Present(
            below
                .map(|(path, file)| (path.clone(), file.clone()))
                .collect(),
        ))
    }
}

fn access(path: &str, inherit: Inherit) -> Access {
    use wincimg_windows::access::{Grant, Rights};

    Access {
        path: path.parse().unwrap(),
        grants: vec![Grant {
            account: "ContainerUser".parse().unwrap(),
            rights: Rights::Modify,
        }],
        inherit,
        replaces: false,
        each_inside: false,
    }
}

fn layer_of(files: &[&str]) -> Layer {
    let mut layer = Layer::new(0);
    for file in files {
        layer.file(file.parse().unwrap(), b"x".to_vec());
    }
    layer
}

/// Rights granted to the user below a path: flags of the entry, and of all others.
fn granted(layer: &Layer) -> BTreeMap<String, String> {
    let user = "S-1-5-93-2-2".parse().unwrap();
    let mut found = BTreeMap::new();
    for item in layer.items().unwrap() {
        let Some(security) = item.security else {
            continue;
        };
        let list = security.descriptor().unwrap().dacl.unwrap();
        let entry = list.entries.iter().find(|entry| entry.sid == user).unwrap();
        let others = list.entries.len() - 1;
        found.insert(
            item.name,
            format!("{:#04x} {:#x} +{others}", entry.flags, entry.mask),
        );
    }
    found
}

fn expected(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pair = |(path, what): &(&str, &str)| (format!("Files/{path}"), (*what).to_owned());
    list.iter().map(pair).collect()
}

#[test]
fn what_the_layer_brings_gets_the_rights_and_nothing_beside_it() {
    let mut layer = layer_of(&[
        "app/data/x.txt",
        "App/data/deep/y.txt",
        "app/data2/z.txt",
        "other.txt",
    ]);
    layer
        .symlink(
            "app/data/link".parse().unwrap(),
            "x.txt",
            super::super::LinkTo::File,
        )
        .unwrap();
    layer
        .grant(&[access(r"c:\APP\Data", Inherit::All)], &UnknownBase)
        .unwrap();
    assert_eq!(
        granted(&layer),
        expected(&[
            ("App/data", "0x03 0x1301bf +7"),
            ("App/data/deep", "0x13 0x1301bf +7"),
            ("App/data/deep/y.txt", "0x10 0x1301bf +3"),
            ("App/data/x.txt", "0x10 0x1301bf +3"),
        ])
    );
    let mut one = layer_of(&["app/a.txt"]);
    one.grant(&[access("/app/a.txt", Inherit::All)], &UnknownBase)
        .unwrap();
    assert_eq!(
        granted(&one),
        expected(&[("app/a.txt", "0x00 0x1301bf +3")])
    );
}

#[test]
fn grants_add_up_in_their_order() {
    let mut layer = layer_of(&["app/logs/x.txt"]);
    let both = [
        access("/app/logs", Inherit::All),
        access("/app", Inherit::All),
    ];
    layer.grant(&both, &UnknownBase).unwrap();
    assert_eq!(granted(&layer)["Files/app/logs"], "0x03 0x1301bf +8");
    assert_eq!(granted(&layer)["Files/app/logs/x.txt"], "0x10 0x1301bf +3");
}

#[test]
fn folders_of_the_base_keep_what_they_have_and_pass_it_on() {
    let base = Base::default()
        .folder("/data", PLAIN)
        .folder("/data/a", PLAIN)
        .folder("/data/a/b", PLAIN)
        .folder("/data/apart", "O:BAG:SYD:PAI(A;OICI;FA;;;SY)")
        .folder("/data/apart/below", PLAIN)
        .folder("/data/ours", "O:BAG:SYD:AI(A;OICIID;FA;;;SY)")
        .folder("/database", PLAIN)
        .with(
            "/data/file.txt",
            FileKind::File(FileDigest {
                size: 1,
                sha256: [0; 32],
            }),
            PLAIN,
        );
    let mut made = layer_of(&["Data/ours/x.txt"]);
    made.grant(&[access(r"C:\data", Inherit::All)], &base)
        .unwrap();
    assert_eq!(
        granted(&made),
        expected(&[
            ("Data", "0x03 0x1301bf +2"),
            ("Data/a", "0x13 0x1301bf +2"),
            ("Data/a/b", "0x13 0x1301bf +2"),
            ("Data/ours", "0x13 0x1301bf +1"),
            ("Data/ours/x.txt", "0x10 0x1301bf +3"),
        ])
    );
    let mut alone = layer_of(&[]);
    alone
        .grant(&[access(r"C:\data\a", Inherit::None)], &base)
        .unwrap();
    assert_eq!(granted(&alone), expected(&[("data/a", "0x00 0x1301bf +2")]));
}

#[test]
fn what_is_missing_or_a_layer_cannot_change_is_refused() {
    let file = FileKind::File(FileDigest {
        size: 1,
        sha256: [0; 32],
    });
    let base = Base::default().with("/hosts", file, PLAIN);
    let refused = |path: &str, inside: &dyn BaseContents| {
        let error = layer_of(&["app/x"])
            .grant(&[access(path, Inherit::All)], inside)
            .unwrap_err();
        assert_eq!(error.diagnosis().blame, Blame::Request);
        format!("{error}; {}", error.diagnosis().hint.unwrap())
    };
    assert!(refused("/none", &base).contains("neither the base nor the recipe has it; add it"));
    assert!(refused("/hosts", &base).contains("a file or link of the base"));
    assert!(
        refused("/none", &UnknownBase).contains("the content of the base is unknown; build with")
    );
    let mut many = Base::default().folder("/many", PLAIN);
    for number in 0..=MOST_FOLDERS {
        many = many.folder(&format!("/many/{number}"), PLAIN);
    }
    assert!(
        refused("/many", &many).contains("4097 folders of the base in it: the maximum is 4096")
    );
    let mut odd = Base::default().folder("/odd", PLAIN);
    odd.0
        .values_mut()
        .for_each(|file| file.security = Some(vec![1]));
    let error = layer_of(&[])
        .grant(&[access("/odd", Inherit::All)], &odd)
        .unwrap_err();
    assert!(matches!(error, GrantError::Unreadable { .. }), "{error}");
}

#[test]
fn a_folder_of_windows_is_asked_of_the_base_whatever_is_put_there() {
    let path = r"C:\Program Files\App";
    let mut layer = layer_of(&["Program Files/App/a.exe"]);
    let error = layer
        .grant(&[access(path, Inherit::All)], &UnknownBase)
        .unwrap_err();
    assert!(matches!(error, GrantError::Unknown { .. }), "{error}");
    let file = access(r"C:\Program Files\App\a.exe", Inherit::All);
    layer.grant(&[file], &UnknownBase).unwrap();
    let base = Base::default().folder("/Program Files", PLAIN);
    layer.grant(&[access(path, Inherit::All)], &base).unwrap();
}
