use proptest::prelude::*;

use super::*;
use crate::path::fold;

fn path(text: &str) -> LayerPath {
    text.parse().unwrap()
}

fn layer(files: &[&str]) -> Layer {
    let mut layer = Layer::new(0);
    for file in files {
        layer.file(path(file), b"".as_slice());
    }
    layer
}

fn names(layer: &Layer) -> Vec<String> {
    let items = layer.items().unwrap();
    items.into_iter().map(|item| item.name).collect()
}

#[test]
fn an_empty_layer_has_both_top_directories() {
    assert_eq!(names(&Layer::new(0)), ["Hives", "Files"]);
    assert!(Layer::new(0).is_empty());
}

#[test]
fn parents_come_by_themselves_and_once() {
    let names = names(&layer(&["b/c/2", "b/c/1", "b/d", "a"]));
    let expected = "Hives Files Files/a Files/b Files/b/c Files/b/c/1 Files/b/c/2 Files/b/d";
    assert_eq!(names.join(" "), expected);
}

#[test]
fn hives_come_first_and_a_deletion_lies_where_its_victim_lay() {
    let mut layer = layer(&["x"]);
    layer.hive(path("System_Delta"), b"regf".as_slice());
    layer.delete(path("Windows/old.dll"));
    let expected = "Hives Hives/System_Delta Files Files/Windows Files/Windows/.wh.old.dll Files/x";
    assert_eq!(names(&layer).join(" "), expected);
}

#[test]
fn only_the_top_directories_and_hives_go_without_a_descriptor() {
    let mut layer = layer(&["a/b"]);
    layer.hive(path("System_Delta"), b"regf".as_slice());
    let mut items = layer.items().unwrap();
    items.retain(|item| !item.secured);
    let unsecured: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(unsecured, ["Hives", "Hives/System_Delta", "Files"]);
}

fn secured(layer: &Layer) -> Vec<(String, &Security)> {
    let items = layer.items().unwrap().into_iter();
    items
        .filter_map(|item| Some((item.name, item.security?)))
        .collect()
}

#[test]
fn a_descriptor_goes_to_what_exists_or_to_a_folder_that_exists_for_it() {
    let [one, two, three] = [1, 2, 3].map(|byte| Security::from([byte].as_slice()));
    let mut layer = Layer::new(0);
    layer.set_security(path("A"), two.clone());
    layer.set_security(path("a/B/c"), one.clone());
    layer.set_security(path("x/y"), two.clone());
    layer.set_security(path("X/Y"), three.clone());
    layer.file(path("a/b/C"), b"".as_slice());
    layer.directory(path("a"));
    let expected = [
        ("Files/a", &two),
        ("Files/a/b/C", &one),
        ("Files/x/y", &three),
    ];
    let expected = expected.map(|(name, security)| (name.to_owned(), security));
    assert_eq!(secured(&layer), expected);
    let expected = "Files/a Files/a/b Files/a/b/C Files/x Files/x/y";
    assert_eq!(names(&layer)[2..].join(" "), expected);
    let mut alone = Layer::new(0);
    alone.set_security(path("ProgramData"), one);
    assert!(!alone.is_empty());
    assert_eq!(names(&alone), ["Hives", "Files", "Files/ProgramData"]);
}

const SAME_PATH: &str = "are the same path on Windows";

/// Reason why a layer is refused.
fn refusal(layer: &Layer) -> String {
    layer.items().unwrap_err().to_string()
}

#[test]
fn a_descriptor_needs_something_that_can_have_it() {
    let mut gone = Layer::new(0);
    gone.set_security(path("A"), b"sd".as_slice());
    gone.delete(path("a"));
    assert!(refusal(&gone).ends_with(SAME_PATH));
    let mut below = layer(&["a"]);
    below.set_security(path("a"), b"sd".as_slice());
    below.set_security(path("a/b"), b"sd".as_slice());
    assert!(refusal(&below).ends_with("which is not a directory"));
}

#[test]
fn spellings_that_differ_in_case_become_one_directory() {
    let mut layer = layer(&["app/a", "APP/b", "App/sub/c"]);
    let expected = "Files/app Files/app/a Files/app/b Files/app/sub Files/app/sub/c";
    assert_eq!(names(&layer)[2..].join(" "), expected);
    layer.directory(path("aPP"));
    assert_eq!(names(&layer)[2..4], ["Files/aPP", "Files/aPP/a"]);
    layer.directory(path("aPP"));
    assert_eq!(names(&layer).len(), 7);
}

#[test]
fn two_entries_at_one_path_are_refused() {
    let error = refusal(&layer(&["x/Readme", "x/README"]));
    let expected = r#"layer entries "C:\x\README" and "C:\x\Readme" are the same path on Windows"#;
    assert_eq!(error, expected);
    let mut both = layer(&["x"]);
    both.delete(path("X"));
    assert!(refusal(&both).ends_with(SAME_PATH));
    let mut both = layer(&["x"]);
    both.directory(path("x"));
    assert!(refusal(&both).ends_with(SAME_PATH));
    let mut hives = Layer::new(0);
    hives.hive(path("System_Delta"), b"1".as_slice());
    hives.hive(path("SYSTEM_DELTA"), b"2".as_slice());
    assert!(refusal(&hives).ends_with(SAME_PATH));
}

#[test]
fn nothing_lies_below_a_file_a_link_or_a_deletion() {
    let expected = r#"layer entry "C:\A\b\c" is below "C:\a", which is not a directory"#;
    assert_eq!(refusal(&layer(&["a", "A/b/c", "a.txt"])), expected);
    let mut linked = layer(&["A/b/c"]);
    linked.symlink(path("a"), "b", LinkTo::Directory).unwrap();
    assert_eq!(refusal(&linked), expected);
    let mut deleted = layer(&["A/b/c"]);
    deleted.delete(path("a"));
    assert_eq!(refusal(&deleted), expected);
}

proptest! {
    #[test]
    fn every_parent_comes_before_its_children_whatever_the_order(
        files in proptest::collection::btree_set("[a-cA-C ]{0,1}[a-c.]{0,1}[a-c](/[a-cB]{1,2}){0,4}", 0..40),
        seed in any::<u64>(),
    ) {
        let mut files: Vec<String> = files.into_iter().collect();
        let sorted = layer(&files.iter().map(String::as_str).collect::<Vec<_>>());
        let length = files.len().max(1);
        files.rotate_left(usize::try_from(seed % length as u64).unwrap());
        let rotated = layer(&files.iter().map(String::as_str).collect::<Vec<_>>());
        match (sorted.items(), rotated.items()) {
            (Ok(a), Ok(b)) => {
                let names: Vec<&str> = a.iter().map(|item| item.name.as_str()).collect();
                prop_assert_eq!(&names, &b.iter().map(|item| item.name.as_str()).collect::<Vec<_>>());
                for (at, name) in names.iter().enumerate() {
                    if let Some((parent, _)) = name.rsplit_once('/') {
                        prop_assert!(names[..at].contains(&parent), "{} has no parent", name);
                    }
                    prop_assert!(!names[..at].iter().any(|other| fold(other) == fold(name)));
                }
            }
            (Err(_), Err(_)) => {}
            (a, b) => prop_assert!(false, "{a:?} but {b:?}"),
        }
    }
}

#[test]
fn bytes_in_memory_are_read_up_to_the_maximum() {
    let source = ContentSource::from(b"abc".as_slice());
    assert_eq!(source.read(3).unwrap(), b"abc");
    let error = source.read(2).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
}
