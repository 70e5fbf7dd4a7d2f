use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use wincimg_common::diagnose::{Blame, Diagnose as _};
use wincimg_registry::UnknownBase;
use wincimg_registry::security::{Ace, ChildKind, Sid};
use wincimg_windows::access::{
    AccessEdit, AccountRights, DescriptorEdit, Grant, Inherit, InheritanceMode, RemovedEntries,
    Rights,
};
use wincimg_windows::testing::TestBaseContents;

use super::*;

const PLAIN: &str = "O:BAG:SYD:AI(A;OICIID;FA;;;SY)(A;OICIID;0x1200a9;;;BU)";

fn access(path: &str) -> AccessChange {
    modify(path, Inherit::All)
}

fn modify(path: &str, inherit: Inherit) -> AccessChange {
    AccessChange::Grant(Access {
        path: path.parse().unwrap(),
        grants: vec![Grant {
            account: "ContainerUser".parse().unwrap(),
            rights: Rights::Modify,
        }],
        inherit,
    })
}

fn layer_of(files: &[&str]) -> Layer {
    let mut layer = Layer::new(0);
    for file in files {
        layer.file(file.parse().unwrap(), b"x".to_vec());
    }
    layer
}

/// A layer of these files after changes.
fn changed(files: &[&str], changes: &[AccessChange], base: &dyn BaseContents) -> Layer {
    let mut layer = layer_of(files);
    layer.change_access(changes, base).unwrap();
    layer
}

fn refusal(files: &[&str], changes: &[AccessChange], base: &dyn BaseContents) -> LayerError {
    let mut layer = layer_of(files);
    layer.change_access(changes, base).unwrap_err()
}

#[track_caller]
fn assert_starts(text: &str, start: &str) {
    assert!(text.starts_with(start), "{text}");
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
        let path = item.name.strip_prefix("Files/").unwrap().to_owned();
        let rights = format!("{:#04x} {:#x} +{others}", entry.flags, entry.mask);
        found.insert(path, rights);
    }
    found
}

fn reported(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pair = |(path, what): &(&str, &str)| ((*path).to_owned(), (*what).to_owned());
    list.iter().map(pair).collect()
}

#[test]
fn what_the_layer_adds_gets_the_rights_and_nothing_next_to_it() {
    let mut layer = layer_of(&[
        "app/data/x.txt", "App/data/deep/y.txt", "app/data2/z.txt", "other.txt",
    ]);
    layer
        .symlink(
            "app/data/link".parse().unwrap(),
            "x.txt",
            super::super::LinkTo::File,
        )
        .unwrap();
    let changes = [access(r"c:\APP\Data")];
    layer.change_access(&changes, &UnknownBase).unwrap();
    assert_eq!(
        granted(&layer),
        reported(&[
            ("App/data", "0x03 0x1301bf +7"),
            ("App/data/deep", "0x13 0x1301bf +7"),
            ("App/data/deep/y.txt", "0x10 0x1301bf +3"),
            ("App/data/x.txt", "0x10 0x1301bf +3"),
        ])
    );
    let one = changed(&["app/a.txt"], &[access("/app/a.txt")], &UnknownBase);
    let rights = reported(&[("app/a.txt", "0x00 0x1301bf +3")]);
    assert_eq!(granted(&one), rights);
}

#[test]
fn grants_add_up_in_their_order() {
    let both = [access("/app/logs"), access("/app")];
    let layer = changed(&["app/logs/x.txt"], &both, &UnknownBase);
    assert_eq!(granted(&layer)["app/logs"], "0x03 0x1301bf +8");
    assert_eq!(granted(&layer)["app/logs/x.txt"], "0x10 0x1301bf +3");
}

#[test]
fn a_grant_counts_what_an_earlier_one_adds_of_the_base() {
    let base = TestBaseContents::default()
        .with_folder("/data", 0x10, PLAIN)
        .with_folder("/data/a", 0x10, PLAIN);
    let grants = ["/app/x.txt", "/data/a", "/data/a", "/app"].map(access);
    let at_once = changed(&["app/x.txt"], &grants, &base);
    let mut one_by_one = layer_of(&["app/x.txt"]);
    for grant in grants {
        one_by_one.change_access(&[grant], &base).unwrap();
    }
    assert_eq!(descriptors_of(&at_once), descriptors_of(&one_by_one));
    assert_eq!(granted(&at_once)["data/a"], "0x03 0x1301bf +2");
}

#[test]
fn many_grants_take_time_in_proportion() {
    let names: Vec<String> = (0..4_000).map(|number| format!("app/{number}")).collect();
    let mut layer = Layer::new(0);
    for name in &names {
        layer.file(name.parse().unwrap(), b"x".to_vec());
    }
    let grants = names.iter().map(|name| access(&format!("/{name}")));
    let grants: Vec<AccessChange> = grants.collect();
    let started = Instant::now();
    layer.change_access(&grants, &UnknownBase).unwrap();
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(granted(&layer).len(), names.len());
}

#[test]
fn folders_of_the_base_keep_what_they_have_and_pass_it_on() {
    let base = TestBaseContents::default()
        .with_folder("/data", 0x10, PLAIN)
        .with_folder("/data/a", 0x10, PLAIN)
        .with_folder("/data/a/b", 0x10, PLAIN)
        .with_folder("/data/apart", 0x10, "O:BAG:SYD:PAI(A;OICI;FA;;;SY)")
        .with_folder("/data/apart/below", 0x10, PLAIN)
        .with_folder("/data/ours", 0x10, "O:BAG:SYD:AI(A;OICIID;FA;;;SY)")
        .with_folder("/database", 0x10, PLAIN)
        .with_file("/data/file.txt", b"x", 0x20, PLAIN);
    let made = changed(&["Data/ours/x.txt"], &[access(r"C:\data")], &base);
    assert_eq!(
        granted(&made),
        reported(&[
            ("Data", "0x03 0x1301bf +2"),
            ("Data/a", "0x13 0x1301bf +2"),
            ("Data/a/b", "0x13 0x1301bf +2"),
            ("Data/ours", "0x13 0x1301bf +1"),
            ("Data/ours/x.txt", "0x10 0x1301bf +3"),
        ])
    );
    let alone = changed(&[], &[modify(r"C:\data\a", Inherit::None)], &base);
    assert_eq!(granted(&alone), reported(&[("data/a", "0x00 0x1301bf +2")]));
}

#[test]
fn what_is_missing_or_a_layer_cannot_change_is_refused() {
    let base = TestBaseContents::default().with_file("/hosts", b"x", 0x20, PLAIN);
    let refused = |path: &str, inside: &dyn BaseContents| {
        let error = refusal(&["app/x"], &[access(path)], inside);
        let found = error.diagnosis();
        assert_eq!(found.blame, Blame::Request);
        format!("{error}; {}", found.hint.unwrap())
    };
    assert!(refused("/none", &base).contains("nor the layer has it; add it with [[files]]"));
    assert!(refused("/hosts", &base).contains("a file or link of the base"));
    assert!(refused("/none", &UnknownBase).contains("the content of the base is unknown"));
    let mut many = TestBaseContents::default().with_folder("/many", 0x10, PLAIN);
    for number in 0..=MOST_FOLDERS {
        many = many.with_folder(&format!("/many/{number}"), 0x10, PLAIN);
    }
    assert!(
        refused("/many", &many).contains("4097 folders of the base in it: the maximum is 4096")
    );
    let odd = TestBaseContents::default().with_folder("/odd", 0x10, PLAIN);
    let odd = odd.with_damaged_descriptors();
    let error = refusal(&[], &[access("/odd")], &odd);
    assert_eq!(error.diagnosis().code, "base/unreadable", "{error}");
}

fn edit(path: &str, edit: DescriptorEdit, each_inside: bool) -> AccessChange {
    AccessChange::Edit(AccessEdit {
        path: path.parse().unwrap(),
        edit,
        each_inside,
    })
}

fn rights(account: &str, rights: &str) -> AccountRights {
    AccountRights::read(account, rights).unwrap()
}

/// A change of `C:\data`.
fn of_data(change: DescriptorEdit) -> AccessChange {
    edit(r"C:\data", change, false)
}

fn grant_of(account: &str, text: &str, replaces: bool) -> AccessChange {
    let rights = rights(account, text);
    of_data(DescriptorEdit::Grant { rights, replaces })
}

fn removal(entries: RemovedEntries) -> AccessChange {
    let account = "Users".parse().unwrap();
    of_data(DescriptorEdit::Remove { account, entries })
}

/// Descriptors of the layer's entries below a folder, those without one as new.
fn descriptors_of(layer: &Layer) -> BTreeMap<String, String> {
    let items = layer.items().unwrap().into_iter().filter_map(|item| {
        let path = item.name.strip_prefix("Files/")?.to_owned();
        let security = item.security?.descriptor().unwrap();
        Some((path, security.to_string()))
    });
    items.collect()
}

/// Lists of entries, as text, of a layer on an unknown base after changes of `C:\data`.
fn lists_after(changes: &[AccessChange]) -> BTreeMap<String, String> {
    let layer = changed(&["data/sub/x.txt"], changes, &UnknownBase);
    let mut after = descriptors_of(&layer);
    for sddl in after.values_mut() {
        *sddl = sddl.split_once("D:").unwrap().1.to_owned();
    }
    after
}

#[test]
fn a_list_replaces_the_one_of_a_folder_and_is_inherited() {
    let replace = |path: &str, sddl: &str| {
        let descriptor = sddl.parse().unwrap();
        edit(path, DescriptorEdit::Replace(descriptor), false)
    };
    let folder = replace(r"C:\data", "D:PAI(A;OICI;FA;;;SY)(A;OICIIO;FR;;;BU)");
    let file = replace(r"C:\data\sub\x.txt", "D:(A;;FA;;;WD)(A;OICIIO;FA;;;BU)");
    let inherited = "(A;OICIID;FA;;;SY)(A;OICIID;FR;;;BU)";
    assert_eq!(
        lists_after(std::slice::from_ref(&folder)),
        reported(&[
            ("data", "PAI(A;OICI;FA;;;SY)(A;OICIIO;FR;;;BU)"),
            ("data/sub", &format!("AI{inherited}")),
            ("data/sub/x.txt", "AI(A;ID;FA;;;SY)(A;ID;FR;;;BU)"),
        ])
    );
    assert_eq!(
        lists_after(&[file, folder])["data/sub/x.txt"],
        "AI(A;;FA;;;WD)(A;ID;FA;;;SY)(A;ID;FR;;;BU)"
    );
}

#[test]
fn what_a_new_folder_has_counts_as_inherited() {
    use InheritanceMode::{Copy, Enable, Remove};

    let inherit = |mode| of_data(DescriptorEdit::Inheritance(mode));
    let grant = |text, replaces| grant_of("Users", text, replaces);
    // Nothing is left of what was inherited, and the content follows.
    let closed = [
        ("data", "PAI(A;OICI;FR;;;BU)"),
        ("data/sub", "AI(A;OICIID;FR;;;BU)"),
        ("data/sub/x.txt", "AI(A;ID;FR;;;BU)"),
    ];
    let mut both = [inherit(Remove), grant("(OI)(CI)R", false)];
    assert_eq!(lists_after(&both), reported(&closed));
    // Whether it was granted before makes no difference.
    both.reverse();
    assert_eq!(lists_after(&both), reported(&closed));
    // What is kept is the folder's own, and can be taken away.
    let remove = removal(RemovedEntries::All);
    let kept = lists_after(&[inherit(Copy), remove.clone()]);
    assert_eq!(
        kept["data"],
        "PAI(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;FA;;;BA)(A;OICIIO;GA;;;CO)"
    );
    assert!(!kept["data/sub/x.txt"].contains(";BU)"), "{kept:?}");
    assert_starts(&kept["data/sub/x.txt"], "AI(A;ID;FA;;;BA)");
    // What is inherited stays.
    assert_eq!(lists_after(&[remove]), BTreeMap::new());
    let again = lists_after(&[inherit(Remove), grant("W", false), inherit(Enable)]);
    assert_starts(&again["data"], "AI(A;;0x100116;;;BU)(A;OICIID;FA;;;BA)");
    let reset = lists_after(&[
        inherit(Remove),
        grant("(OI)(CI)W", false),
        of_data(DescriptorEdit::Reset),
    ]);
    assert_starts(&reset["data"], "AI(A;OICIID;FA;;;BA)");
    assert!(!reset["data/sub/x.txt"].contains("0x100116"), "{reset:?}");
    // A replaced grant is replaced for the content, too.
    let replaced = lists_after(&[grant("(OI)(CI)F", false), grant("(OI)(CI)R", true)]);
    assert_starts(&replaced["data"], "AI(A;OICI;FR;;;BU)(A;OICIID");
    let below = &replaced["data/sub/x.txt"];
    assert!(!below.contains("FA;;;BU"), "{below}");
    // Whether it is with other flags, sources disagree.
    let both = [grant("(OI)(CI)F", false), grant("(CI)R", true)];
    let error = refusal(&["data/x.txt"], &both, &UnknownBase);
    assert!(error.to_string().contains("/grant:r"), "{error}");
}

#[test]
fn denials_come_first_and_take_what_was_granted() {
    let deny = |text| of_data(DescriptorEdit::Deny(rights("Users", text)));
    let grant = |text| grant_of("Users", text, false);
    let after = lists_after(&[grant("(OI)(CI)M"), deny("(OI)(CI)W")]);
    let own = "AI(D;OICI;0x100116;;;BU)(A;OICI;0x300a9;;;BU)(A;OICIID;FA;;;BA)";
    assert_starts(&after["data"], own);
    assert_starts(&after["data/sub/x.txt"], "AI(D;ID;0x100116;;;BU)");
    let after = lists_after(&[deny("(OI)(CI)W"), removal(RemovedEntries::Denied)]);
    let is_denied = |list: &String| list.contains("(D;");
    assert!(!after.values().any(is_denied), "{after:?}");
    // Which grant of several loses the rights, only Windows decides.
    let both = [grant("(OI)(CI)M"), deny("W")];
    let error = refusal(&["data/x.txt"], &both, &UnknownBase);
    assert!(error.to_string().contains("cannot change"), "{error}");
}

#[test]
fn flags_say_what_of_a_folder_rights_are_for() {
    let entry = |list: &str| {
        let at = list.find("S-1-5-93-2-2")?;
        let from = list[..at].rfind('(')?;
        Some(list[from..=at + 12].to_owned())
    };
    for (text, folder, below, file) in [
        ("(OI)(CI)(IO)F", "OICIIO", Some("OICIID"), Some("ID")),
        ("(CI)(NP)F", "CINP", Some("ID"), None),
        ("(OI)(CI)(NP)F", "OICINP", Some("ID"), None),
        ("(OI)(IO)F", "OIIO", Some("OIIOID"), Some("ID")),
    ] {
        let found = lists_after(&[grant_of("ContainerUser", text, false)]);
        let expected = |flags: &str| format!("(A;{flags};FA;;;S-1-5-93-2-2)");
        assert_eq!(entry(&found["data"]), Some(expected(folder)), "{text}");
        let of = |path: &str| found.get(path).and_then(|list| entry(list));
        assert_eq!(of("data/sub"), below.map(expected), "{text}");
        assert_eq!(of("data/sub/x.txt"), file.map(expected), "{text}");
    }
}

#[test]
fn changes_reach_folders_of_the_base_and_not_what_is_closed() {
    let own = "O:BAG:SYD:AI(A;OICI;FR;;;WD)(A;OICIID;FA;;;BA)";
    let inherited = "O:BUG:SYD:AI(A;OICIID;FR;;;WD)(A;OICIID;FA;;;BA)";
    let base = TestBaseContents::default()
        .with_folder("/", 0x10, "O:BAG:SYD:PAI(A;OICI;FA;;;BA)")
        .with_folder("/data", 0x10, own)
        .with_folder("/data/a", 0x10, inherited)
        .with_folder("/data/apart", 0x10, "O:BAG:SYD:PAI(A;OICI;FA;;;SY)")
        .with_folder("/data/apart/below", 0x10, "O:BAG:SYD:AI(A;OICIID;FA;;;SY)");
    let layer = changed(&[], &[of_data(DescriptorEdit::Reset)], &base);
    assert_eq!(
        descriptors_of(&layer),
        reported(&[
            ("data", "O:BAG:SYD:AI(A;OICIID;FA;;;BA)"),
            ("data/a", "O:BUG:SYD:AI(A;OICIID;FA;;;BA)"),
        ])
    );
    let owner = DescriptorEdit::Owner("SYSTEM".parse().unwrap());
    let found = descriptors_of(&changed(&[], &[edit(r"C:\data", owner, true)], &base));
    assert_eq!(found.len(), 4);
    for sddl in found.values() {
        assert_starts(sddl, "O:SYG:SYD:");
    }
}

/// A folder or file of the model: its own entries, and whether it takes those from above.
#[derive(Debug, Clone, Default)]
struct Node {
    is_closed: bool,
    own: Vec<Ace>,
}

/// The drive's folder, a folder in it, one in that, and a file.
const CHAIN: [&str; 3] = ["data", "data/sub", "data/sub/x.txt"];

/// Rights of the accounts on something itself: allowed and denied bits.
type Effect = BTreeMap<(String, bool), u32>;

fn new_folder() -> SecurityDescriptor {
    as_inherited(default_descriptor(true).unwrap(), true).unwrap()
}

fn effect(entries: &[Ace]) -> Effect {
    let mut found = Effect::new();
    for entry in entries {
        if entry.flags & ace_flags::INHERIT_ONLY == 0 && entry.mask != 0 {
            *found
                .entry((entry.sid.to_string(), entry.kind == 0))
                .or_default() |= entry.mask;
        }
    }
    found
}

/// The entries of all three, computed from the top with what each has of its own.
fn entries_of_model(model: &[Node]) -> Vec<Vec<Ace>> {
    let mut all: Vec<Vec<Ace>> = Vec::new();
    let (owner, group) = (Sid::administrators(), Sid::local_system());
    for (depth, node) in model.iter().enumerate() {
        let kind = match depth {
            2 => ChildKind::File,
            _ => ChildKind::Folder,
        };
        let mut entries = node.own.clone();
        if !node.is_closed {
            match all.last() {
                None => entries.extend(new_folder().dacl.unwrap().entries),
                Some(above) => {
                    let mut parent = new_folder();
                    parent.dacl.as_mut().unwrap().entries = above.clone();
                    entries.extend(parent.inherited_entries(kind, &owner, &group));
                }
            }
        }
        all.push(entries);
    }
    all
}

/// Applies a change to the model.
fn change_model(model: &mut [Node], at: usize, change: &DescriptorEdit) {
    let inherited: Vec<Ace> = entries_of_model(model)[at]
        .iter()
        .filter(|entry| entry.flags & ace_flags::INHERITED != 0)
        .cloned()
        .collect();
    let node = &mut model[at];
    let entry = |rights: &AccountRights, kind| {
        let before: SecurityDescriptor = "O:BAG:SYD:".parse().unwrap();
        let grant = DescriptorEdit::Grant {
            rights: rights.clone(),
            replaces: false,
        };
        let mut made = grant.apply(&before, &[], at < 2).unwrap();
        let entry = made.dacl.as_mut().unwrap().entries.remove(0);
        Ace { kind, ..entry }
    };
    match change {
        DescriptorEdit::Grant { rights, replaces } => {
            let new = entry(rights, 0);
            node.own
                .retain(|own| !(*replaces && own.kind == 0 && own.sid == new.sid));
            node.own.push(new);
        }
        DescriptorEdit::Deny(rights) => {
            let new = entry(rights, 1);
            for own in &mut node.own {
                if own.kind == 0 && own.sid == new.sid {
                    own.mask &= !new.mask;
                }
            }
            node.own.push(new);
        }
        DescriptorEdit::Remove { account, .. } => node.own.retain(|own| own.sid != account.sid()),
        DescriptorEdit::Inheritance(mode) => {
            node.is_closed = *mode != InheritanceMode::Enable;
            if *mode == InheritanceMode::Copy {
                let copied = inherited.into_iter().map(|entry| Ace {
                    flags: entry.flags & !ace_flags::INHERITED,
                    ..entry
                });
                node.own.extend(copied);
            }
        }
        DescriptorEdit::Reset => *node = Node::default(),
        DescriptorEdit::Owner(_) | DescriptorEdit::Replace(_) => {}
    }
}

fn any_change() -> impl Strategy<Value = DescriptorEdit> {
    let account = || prop::sample::select(vec!["Users", "Everyone", "ContainerUser"]);
    let text = prop::sample::select(vec![
        "M", "(OI)(CI)F", "(CI)RX", "(OI)(CI)(IO)W", "(OI)(CI)(NP)R", "(OI)R",
    ]);
    let rights = (account(), text).prop_map(|(account, text)| rights(account, text));
    let mode = prop::sample::select(vec![
        InheritanceMode::Enable,
        InheritanceMode::Copy,
        InheritanceMode::Remove,
    ]);
    prop_oneof![
        (rights.clone(), any::<bool>())
            .prop_map(|(rights, replaces)| DescriptorEdit::Grant { rights, replaces }),
        rights.prop_map(DescriptorEdit::Deny),
        account().prop_map(|account| DescriptorEdit::Remove {
            account: account.parse().unwrap(),
            entries: RemovedEntries::All,
        }),
        mode.prop_map(DescriptorEdit::Inheritance),
        Just(DescriptorEdit::Reset),
    ]
}

proptest! {
    /// Any sequence of changes leaves what NTFS would: each has its own entries, and those that its
    /// folder passes on unless it is closed.
    #[test]
    fn changes_leave_what_inheritance_from_the_top_gives(
        changes in prop::collection::vec((0..3_usize, any_change()), 1..8),
    ) {
        let mut layer = layer_of(&["data/sub/x.txt"]);
        let mut model = vec![Node::default(); 3];
        for (at, change) in changes {
            let path = format!(r"C:\{}", CHAIN[at].replace('/', r"\"));
            let reported = match &change {
                DescriptorEdit::Grant { rights, replaces: false }
                    if !(rights.inherit_only || rights.no_propagate) =>
                {
                    let grants = rights.rights.iter().map(|own| Grant {
                        account: rights.account.clone(),
                        rights: *own,
                    });
                    AccessChange::Grant(Access {
                        path: path.parse().unwrap(),
                        grants: grants.collect(),
                        inherit: rights.inherit,
                    })
                }
                _ => edit(&path, change.clone(), false),
            };
            let changed = layer.change_access(&[reported], &UnknownBase);
            match changed {
                Ok(()) => change_model(&mut model, at, &change),
                Err(error) if error.to_string().contains("cannot change") => {}
                Err(error) => prop_assert!(false, "{error}"),
            }
            let secured = layer.securities();
            for (place, expected) in CHAIN.iter().zip(entries_of_model(&model)) {
                let found = current_descriptor(
                    &secured, &UnknownBase, place, &fold(place), *place != CHAIN[2],
                ).unwrap();
                let found = as_inherited(found, *place != CHAIN[2]).unwrap();
                let found = found.dacl.unwrap().entries;
                prop_assert_eq!(effect(&found), effect(&expected), "{} after {:?}", place, change);
            }
        }
    }
}

#[test]
fn a_folder_of_windows_is_asked_of_the_base_whatever_is_put_there() {
    let path = r"C:\Program Files\App";
    let files = ["Program Files/App/a.exe"];
    let error = refusal(&files, &[access(path)], &UnknownBase);
    assert!(error.to_string().contains("is unknown"), "{error}");
    let file = access(r"C:\Program Files\App\a.exe");
    let mut layer = changed(&files, &[file], &UnknownBase);
    let base = TestBaseContents::default().with_folder("/Program Files", 0x10, PLAIN);
    layer.change_access(&[access(path)], &base).unwrap();
}
