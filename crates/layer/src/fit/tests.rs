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

fn names(entries: &WrittenEntries) -> Vec<&str> {
    entries.keys().map(String::as_str).collect()
}

fn descriptor(entries: &WrittenEntries, name: &str) -> SecurityDescriptor {
    read_descriptor(entries[name].1.as_ref().unwrap())
}

#[test]
fn a_folder_of_the_base_is_repeated_where_something_lies_below_it_and_only_there() {
    let added = layer(&["users/containeruser/app/a.txt", "Program Files"]);
    let found = fit_and_list(&base(), added);
    let [folder, file] = ["Users/ContainerUser/app", "Users/ContainerUser/app/a.txt"];
    let expected = ["Users", "Users/ContainerUser", folder, file];
    assert_eq!(names(&found), expected);
    assert_eq!(found["Users"], (Some(0x11), Some(security(PROGRAMS))));
    let user = (Some(0x2012), Some(security(USER)));
    assert_eq!(found["Users/ContainerUser"], user);
    for (name, inherited) in [
        (folder, "(A;OICIID;FA;;;SY)(A;OICIID;FA;;;S-1-5-93-2-2)"),
        (file, "(A;ID;FA;;;SY)(A;ID;FA;;;S-1-5-93-2-2)"),
    ] {
        assert_eq!(found[name].0, None);
        let sddl = format!("O:BAG:SYD:AI{inherited}");
        assert_eq!(descriptor(&found, name), sddl.parse().unwrap(), "{name}");
    }
    let mut nothing = layer(&["Program Files", "USERS/ContainerUser"]);
    nothing.fit_to_base(&base()).unwrap();
    assert!(nothing.is_empty());
}

#[test]
fn what_is_new_inherits_from_the_nearest_folder() {
    let found = fit_and_list(&base(), layer(&["Program Files/shop/data", "top/x.txt"]));
    let folder = "O:BAG:SYD:AI(A;ID;FA;;;SY)(A;OICIIOID;GA;;;SY)(A;ID;FA;;;BA)(A;OICIIOID;GA;;;BA)(A;ID;0x1200a9;;;BU)(A;OICIIOID;GXGR;;;BU)";
    for name in ["Program Files/shop", "Program Files/shop/data"] {
        assert_eq!(descriptor(&found, name), folder.parse().unwrap());
    }
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
        let all = "(A;ID;FA;;;BA)(A;ID;FA;;;SY)";
        let file = format!("O:{USER}G:SYD:AI{all}(A;ID;FA;;;{USER})(A;ID;0x1200a9;;;BU)");
        assert_eq!(descriptor(&found, "top/x.txt"), file.parse().unwrap());
        let folder = descriptor(&found, "top").to_string();
        let user = format!("(A;ID;FA;;;{USER})");
        for entry in [user.as_str(), "(A;OICIIOID;GA;;;CO)"] {
            assert!(folder.contains(entry), "{folder}");
        }
        let own = descriptor(&found, "Users/ContainerUser/y.txt").to_string();
        assert!(own.starts_with(&format!("O:{USER}")), "{own}");
    }
    // The folder of an unknown base does not.
    let mut made = layer(&["app/x.txt"]);
    made.set_owner(USER.parse().unwrap());
    assert_eq!(fit_and_list(&UnknownBase, made)["app"].1, None);
}

#[test]
fn what_windows_needs_is_neither_replaced_nor_deleted() {
    for inside in [&base() as &dyn BaseContents, &UnknownBase] {
        for (text, why) in [
            ("windows", "a folder that Windows needs"),
            ("Windows/System32", "a folder that Windows needs"),
            ("Users", "a folder that Windows needs"),
            ("windows/system32/config/Software", "[[registry]] or reg"),
        ] {
            let mut replaced = Layer::new(0);
            replaced.file(path(text), ContentSource::Bytes("x".into()));
            let mut deleted = Layer::new(0);
            deleted.delete(path(text));
            for mut layer in [replaced, deleted] {
                let error = layer.fit_to_base(inside).unwrap_err().to_string();
                assert!(error.ends_with(why), "{text}: {error}");
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
    assert_eq!(names(&found), ["Users", "Users/.wh.hosts"]);
}

#[test]
fn folders_of_every_windows_keep_their_rights_in_an_unknown_base() {
    let added = layer(&["app/a.txt", "users/ContainerUser/app/a.txt", "ProgramData"]);
    let found = fit_and_list(&WindowsBase(&UnknownBase), added);
    let [user, folder] = ["Users/ContainerUser", "Users/ContainerUser/app"];
    let file = "Users/ContainerUser/app/a.txt";
    let expected = ["Users", user, folder, file, "app", "app/a.txt"];
    assert_eq!(names(&found), expected);
    let full = "(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;S-1-5-93-2-2)";
    let own = format!("O:SYG:SYD:P{full}");
    assert_eq!(descriptor(&found, user), own.parse().unwrap());
    let inherited = format!("O:BAG:SYD:AI{}", full.replace("OICI;", "OICIID;"));
    assert_eq!(descriptor(&found, folder), inherited.parse().unwrap());
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
            assert_eq!(descriptor(&found, folder), own, "{folder}");
        }
        for file in ["Users/ContainerUser/app/a.txt", "x/b.txt"] {
            let inherited = "O:BAG:SYD:AI(A;ID;FA;;;BA)".parse().unwrap();
            assert_eq!(descriptor(&found, file), inherited, "{file}");
        }
    }
    let mut alone = Layer::new(0);
    alone.set_security(path("Program Files"), &own);
    let found = fit_and_list(&base(), alone);
    assert_eq!(names(&found), ["Program Files"]);
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
            r"C:\Users\All Users is a link (use its target) in the layers below, but a folder in the image",
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

/// Fits a layer and puts it on top.
fn fit_on_top(below: &mut BaseOverlay<'_>, mut layer: Layer) -> WrittenEntries {
    layer.fit_to_base(below).unwrap();
    let found = written(&layer);
    below.lay(&Arc::new(layer)).unwrap();
    found
}

#[test]
fn what_a_layer_below_set_stays_whatever_is_known_of_the_base() {
    let own = OWN.parse::<SecurityDescriptor>().unwrap();
    for base in [&base() as &dyn BaseContents, &UnknownBase] {
        let mut below = BaseOverlay::over(base);
        let mut first = layer(&["Data", "plain/a.txt", "deep/er/a.txt"]);
        first.set_security(path("Data"), &own);
        first.set_security(path("deep/er"), &own);
        fit_on_top(&mut below, first);
        let second = layer(&["data/b.txt", "data/in/c.txt", "plain/b.txt", "deep"]);
        let found = fit_on_top(&mut below, second);
        let expected = [
            "Data", "Data/b.txt", "Data/in", "Data/in/c.txt", "plain", "plain/b.txt",
        ];
        assert_eq!(names(&found), expected);
        assert_eq!(descriptor(&found, "Data"), own);
        let inherited = "O:BAG:SYD:AI(A;ID;FA;;;BA)".parse().unwrap();
        assert_eq!(descriptor(&found, "Data/b.txt"), inherited);
        assert_eq!(descriptor(&found, "Data/in/c.txt"), inherited);
        assert_eq!(found["plain"].1, None);
        assert_eq!(found["plain/b.txt"].1, None, "as in the layer below");
        // Deleted and made again.
        let mut gone = Layer::new(0);
        gone.delete(path("Data"));
        fit_on_top(&mut below, gone);
        let found = fit_on_top(&mut below, layer(&["Data/b.txt"]));
        assert_eq!(found["Data"], (None, None));
    }
}

#[test]
fn a_moved_link_is_to_what_it_was_to() {
    let links = |names: [&str; 2]| {
        let mut layer = Layer::new(0);
        for (name, to) in names.into_iter().zip([LinkTo::File, LinkTo::Directory]) {
            layer.symlink(path(name), "x", to).unwrap();
        }
        layer
    };
    let mut below = BaseOverlay::over(&UnknownBase);
    below.lay(&Arc::new(links(["file", "folder"]))).unwrap();
    let mut moved = links(["a", "b"]);
    let kept = [("a", "/file"), ("b", "/folder")].map(|(to, from)| {
        let was = below.file(&from.parse().unwrap()).unwrap();
        (path(to), was.present().unwrap(), true)
    });
    moved.copy_metadata(&kept);
    let found = written(&moved);
    let expected = [
        (0x420, descriptor::FILE.bytes()),
        (0x410, descriptor::DIRECTORY.bytes()),
    ];
    for (name, (attributes, security)) in ["a", "b"].into_iter().zip(expected) {
        assert_eq!(found[name], (Some(attributes), Some(security)), "{name}");
    }
}
