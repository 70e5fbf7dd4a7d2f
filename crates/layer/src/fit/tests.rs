use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use wincimg_registry::UnknownBase;
use wincimg_registry::testing::{read_descriptor, security};
use wincimg_windows::known_folders::WindowsBase;
use wincimg_windows::testing::TestBaseContents;

use super::*;
use crate::content::ContentSource;
use crate::{BaseOverlay, LayerPath};

const USER: &str = "O:S-1-5-93-2-2G:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;S-1-5-93-2-2)";
const PROGRAMS: &str = "O:SYG:SYD:PAI(A;OICIIO;GA;;;SY)(A;OICIIO;GA;;;BA)(A;OICIIO;GXGR;;;BU)";
const OWN: &str = "O:BAG:SYD:(A;OICI;FA;;;BA)";

fn base() -> TestBaseContents {
    TestBaseContents::default()
        .with_drive()
        .with_folder(r"C:\Users", 0x11, PROGRAMS)
        .with_folder(r"C:\Users\ContainerUser", 0x2012, USER)
        .with_folder(r"C:\Program Files", 0x11, PROGRAMS)
        .with_file(r"C:\Users\hosts", b"x", 0x23, USER)
        .with_mount(r"C:\Users\All Users")
}

fn path(text: &str) -> LayerPath {
    text.parse().unwrap()
}

/// A file wherever a path has a dot in it, a folder elsewhere.
fn layer(paths: &[&str]) -> Layer {
    let mut layer = Layer::new(0);
    for text in paths {
        if text.contains('.') || text.to_lowercase().ends_with("hosts") {
            layer.file(path(text), ContentSource::Bytes("x".into()));
        } else {
            layer.directory(path(text));
        }
    }
    layer
}

/// Names, attributes and descriptors of the entries.
type WrittenEntries = BTreeMap<String, (Option<u32>, Option<Vec<u8>>)>;

fn written(layer: &Layer) -> WrittenEntries {
    let items = layer.items().unwrap().into_iter();
    let inside = items.filter_map(|item| {
        let name = item.name.strip_prefix("Files/")?.to_owned();
        Some((name, (item.attributes, item.security.map(Security::bytes))))
    });
    inside.collect()
}

fn fit_and_list(inside: &dyn BaseContents, mut layer: Layer) -> WrittenEntries {
    layer.fit_to_base(inside).unwrap();
    let names = written(&layer);
    layer.fit_to_base(inside).unwrap();
    assert_eq!(written(&layer), names, "once is enough");
    names
}

#[test]
fn a_folder_of_the_base_is_repeated_where_something_lies_below_it_and_only_there() {
    let found = fit_and_list(
        &base(),
        layer(&["users/containeruser/app/a.txt", "Program Files"]),
    );
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "Users",
            "Users/ContainerUser",
            "Users/ContainerUser/app",
            "Users/ContainerUser/app/a.txt"
        ]
    );
    assert_eq!(found["Users"], (Some(0x11), Some(security(PROGRAMS))));
    assert_eq!(
        found["Users/ContainerUser"],
        (Some(0x2012), Some(security(USER)))
    );
    let inherited = |name: &str, sddl: &str| {
        let (attributes, bytes) = &found[name];
        assert_eq!(*attributes, None);
        assert_eq!(
            read_descriptor(bytes.as_ref().unwrap()),
            sddl.parse().unwrap(),
            "{name}"
        );
    };
    inherited(
        "Users/ContainerUser/app",
        "O:BAG:SYD:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;S-1-5-93-2-2)",
    );
    inherited(
        "Users/ContainerUser/app/a.txt",
        "O:BAG:SYD:AI(A;ID;FA;;;SY)(A;ID;FA;;;S-1-5-93-2-2)",
    );
    let mut nothing = layer(&["Program Files", "USERS/ContainerUser"]);
    nothing.fit_to_base(&base()).unwrap();
    assert!(nothing.is_empty());
}

#[test]
fn what_is_new_inherits_from_the_nearest_folder() {
    let found = fit_and_list(&base(), layer(&["Program Files/shop/data", "top/x.txt"]));
    let descriptor = |name: &str| read_descriptor(found[name].1.as_ref().unwrap());
    let folder = "O:BAG:SYD:AI(A;ID;FA;;;SY)(A;OICIIOID;GA;;;SY)(A;ID;FA;;;BA)(A;OICIIOID;GA;;;BA)(A;ID;0x1200a9;;;BU)(A;OICIIOID;GXGR;;;BU)";
    assert_eq!(descriptor("Program Files/shop"), folder.parse().unwrap());
    assert_eq!(
        descriptor("Program Files/shop/data"),
        folder.parse().unwrap()
    );
    // Of the drive's root no descriptor is known.
    assert_eq!(found["top"], (None, None));
    assert_eq!(found["top/x.txt"], (None, None));
}

#[test]
fn what_another_user_makes_belongs_to_it() {
    const USER: &str = "S-1-5-93-2-2";
    for inside in [&base() as &dyn BaseContents, &UnknownBase] {
        let mut made = layer(&["top", "top/x.txt", "Users/ContainerUser/y.txt"]);
        made.set_owner(USER.parse().unwrap());
        let found = fit_and_list(inside, made);
        let descriptor = |name: &str| read_descriptor(found[name].1.as_ref().unwrap());
        let all = "(A;ID;FA;;;BA)(A;ID;FA;;;SY)";
        assert_eq!(
            descriptor("top/x.txt"),
            format!("O:{USER}G:SYD:AI{all}(A;ID;FA;;;{USER})(A;ID;0x1200a9;;;BU)")
                .parse()
                .unwrap()
        );
        let folder = descriptor("top").to_string();
        for entry in [
            format!("(A;ID;FA;;;{USER})"),
            "(A;OICIIOID;GA;;;CO)".to_owned(),
        ] {
            assert!(folder.contains(&entry), "{folder}");
        }
        let own = descriptor("Users/ContainerUser/y.txt").to_string();
        assert!(own.starts_with(&format!("O:{USER}")), "{own}");
    }
    // The folder of an unknown base does not.
    let mut made = layer(&["app/x.txt"]);
    made.set_owner(USER.parse().unwrap());
    assert_eq!(fit_and_list(&UnknownBase, made)["app"].1, None);
}

#[test]
fn folders_that_windows_needs_are_neither_replaced_nor_deleted() {
    for inside in [&base() as &dyn BaseContents, &UnknownBase] {
        for text in ["windows", "Windows/System32", "Users"] {
            let mut replaced = Layer::new(0);
            replaced.file(path(text), ContentSource::Bytes("x".into()));
            let mut deleted = Layer::new(0);
            deleted.delete(path(text));
            for mut layer in [replaced, deleted] {
                let error = layer.fit_to_base(inside).unwrap_err();
                let error = error.to_string();
                assert!(
                    error.ends_with("a folder that Windows needs"),
                    "{text}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_file_that_takes_the_place_of_one_keeps_its_descriptor() {
    let found = fit_and_list(&base(), layer(&["Users/HOSTS"]));
    let kept = (Some(0x23), Some(security(USER)));
    assert_eq!(found["Users/hosts"], kept);
}

#[test]
fn a_deletion_has_the_spelling_of_the_base() {
    let mut deleted = Layer::new(0);
    deleted.delete(path("USERS/HOSTS"));
    let found = fit_and_list(&base(), deleted);
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["Users", "Users/.wh.hosts"]);
}

#[test]
fn folders_of_every_windows_keep_their_rights_in_an_unknown_base() {
    let found = fit_and_list(
        &WindowsBase(&UnknownBase),
        layer(&["app/a.txt", "users/ContainerUser/app/a.txt", "ProgramData"]),
    );
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "Users",
            "Users/ContainerUser",
            "Users/ContainerUser/app",
            "Users/ContainerUser/app/a.txt",
            "app",
            "app/a.txt"
        ]
    );
    let descriptor = |name: &str| found[name].1.as_deref().map(read_descriptor);
    let full = "(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;S-1-5-93-2-2)";
    assert_eq!(
        descriptor("Users/ContainerUser"),
        Some(format!("O:SYG:SYD:P{full}").parse().unwrap())
    );
    let inherited = full.replace("OICI;", "OICIID;");
    assert_eq!(
        descriptor("Users/ContainerUser/app"),
        Some(format!("O:BAG:SYD:AI{inherited}").parse().unwrap())
    );
    // Of other folders nothing is known.
    assert_eq!(found["app"], (None, None));
}

#[test]
fn a_descriptor_that_was_asked_for_counts_and_is_passed_on() {
    let own = OWN.parse::<SecurityDescriptor>().unwrap();
    for inside in [&base() as &dyn BaseContents, &UnknownBase] {
        let mut secured = layer(&["Users/ContainerUser/app/a.txt", "x/b.txt"]);
        secured.set_security(path("Users/ContainerUser"), &own);
        secured.set_security(path("x"), &own);
        let found = fit_and_list(inside, secured);
        for folder in ["Users/ContainerUser", "x"] {
            let bytes = found[folder].1.as_ref().unwrap();
            assert_eq!(read_descriptor(bytes), own, "{folder}");
        }
        for file in ["Users/ContainerUser/app/a.txt", "x/b.txt"] {
            let bytes = found[file].1.as_ref().unwrap();
            let inherited = "O:BAG:SYD:AI(A;ID;FA;;;BA)".parse().unwrap();
            assert_eq!(read_descriptor(bytes), inherited, "{file}");
        }
    }
    let mut alone = Layer::new(0);
    alone.set_security(path("Program Files"), &own);
    let found = fit_and_list(&base(), alone);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["Program Files"]);
    assert_eq!(found["Program Files"].0, Some(0x11));
}

#[test]
fn nothing_changes_where_nothing_is_known() {
    let before = layer(&["Users/ContainerUser/a.txt", "Program Files"]);
    let mut after = before.clone();
    after.fit_to_base(&UnknownBase).unwrap();
    assert_eq!(after, before);
}

#[test]
fn what_is_in_the_way_is_reported_before_anything_is_written() {
    let mut linked = Layer::new(0);
    linked
        .symlink(path("Users/ContainerUser"), "x", LinkTo::Directory)
        .unwrap();
    for (mut layer, printed) in [
        (
            layer(&["users/HOSTS/x.txt"]),
            r"C:\Users\HOSTS is a file in the layers below, but a folder in the image",
        ),
        (
            layer(&["Users/All Users/x.txt"]),
            r"C:\Users\All Users is a link in the layers below, but a folder in the image",
        ),
        (
            linked,
            r"C:\Users\ContainerUser is a folder in the layers below, but a link in the image",
        ),
    ] {
        assert_eq!(layer.fit_to_base(&base()).unwrap_err().to_string(), printed);
    }
    let mut file = Layer::new(0);
    file.file(
        path("Users/CONTAINERUSER"),
        ContentSource::Bytes("x".into()),
    );
    let error = file.fit_to_base(&base()).unwrap_err().to_string();
    assert!(error.contains("in the layers below, but a file"), "{error}");
}

proptest! {
    #[test]
    fn no_folder_of_the_base_changes_and_every_entry_that_was_asked_for_exists(
        folders in proptest::collection::btree_set("[ab](/[ab]){0,2}", 0..6),
        entries in proptest::collection::btree_set("[aAb](/[abB]){0,3}", 0..8),
    ) {
        let mut inside = TestBaseContents::default().with_drive();
        for (number, folder) in (0_u32..).zip(&folders) {
            let sddl = format!("O:BAG:SYD:P(A;OICI;0x{:x};;;BU)", number + 1);
            let parents = folder.match_indices('/').map(|(at, _)| &folder[..at]);
            for known in parents.chain([folder.as_str()]) {
                inside = inside.with_folder(&format!("/{known}"), 0x10, &sddl);
            }
        }
        let mut layer = Layer::new(0);
        for entry in &entries {
            layer.directory(path(entry));
        }
        layer.fit_to_base(&inside).unwrap();
        let found = written(&layer);
        for (name, (_, bytes)) in &found {
            let at: ImagePath = format!("/{name}").parse().unwrap();
            if let Some(base) = inside.file(&at).unwrap().present() {
                prop_assert_eq!(bytes, &base.security);
                let folder = format!("{name}/");
                prop_assert!(found.keys().any(|below| below.starts_with(&folder)));
            }
        }
        for entry in &entries {
            let at: ImagePath = format!("/{entry}").parse().unwrap();
            let is_new = inside.file(&at).unwrap().present().is_none();
            let is_there = found.keys().any(|name| name.eq_ignore_ascii_case(entry));
            prop_assert!(is_there || !is_new, "{} is lost", entry);
        }
    }
}

/// A layer below, and one that is written above it.
struct Stack<'b> {
    below: BaseOverlay<'b>,
}

impl<'b> Stack<'b> {
    fn over(base: &'b dyn BaseContents) -> Self {
        Self {
            below: BaseOverlay::over(base),
        }
    }

    /// Fits a layer and puts it on top.
    fn fit_on_top(&mut self, mut layer: Layer) -> WrittenEntries {
        layer.fit_to_base(&self.below).unwrap();
        let found = written(&layer);
        self.below.lay(&Arc::new(layer)).unwrap();
        found
    }
}

#[test]
fn what_a_layer_below_set_stays_whatever_is_known_of_the_base() {
    let own = OWN.parse::<SecurityDescriptor>().unwrap();
    for base in [&base() as &dyn BaseContents, &UnknownBase] {
        let mut stack = Stack::over(base);
        let mut first = layer(&["Data", "plain/a.txt", "deep/er/a.txt"]);
        first.set_security(path("Data"), &own);
        first.set_security(path("deep/er"), &own);
        stack.fit_on_top(first);
        let found = stack.fit_on_top(layer(&[
            "data/b.txt", "data/in/c.txt", "plain/b.txt", "deep",
        ]));
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        let expected = [
            "Data", "Data/b.txt", "Data/in", "Data/in/c.txt", "plain", "plain/b.txt",
        ];
        assert_eq!(names, expected);
        let descriptor = |name: &str| found[name].1.as_deref().map(read_descriptor);
        assert_eq!(descriptor("Data"), Some(own.clone()));
        let inherited = Some("O:BAG:SYD:AI(A;ID;FA;;;BA)".parse().unwrap());
        assert_eq!(descriptor("Data/b.txt"), inherited);
        assert_eq!(descriptor("Data/in/c.txt"), inherited);
        assert_eq!(descriptor("plain"), None);
        assert_eq!(descriptor("plain/b.txt"), None, "as in the layer below");
        // Deleted and made again.
        let mut gone = Layer::new(0);
        gone.delete(path("Data"));
        stack.fit_on_top(gone);
        let found = stack.fit_on_top(layer(&["Data/b.txt"]));
        assert_eq!(found["Data"], (None, None));
    }
}
