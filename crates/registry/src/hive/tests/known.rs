//! Layers for bases into which somebody has looked.

use std::sync::Arc;

use super::*;
use crate::base::{BaseKey, BaseKeys, BaseReadError, Presence};
use crate::testing::{Keys, security};

const OPEN: &str = "O:BAG:BAD:PAI(A;CI;KA;;;BA)(A;CI;KR;;;BU)(A;CIIO;KA;;;CO)";
const CLOSED: &str = "O:SYG:SYD:P(A;CI;KA;;;SY)";

fn base() -> Keys {
    Keys::default()
        .with_key(r"HKLM\SOFTWARE", OPEN, &[])
        .with_key(
            r"HKLM\SOFTWARE\Contoso",
            CLOSED,
            &[("v", RegistryData::dword(1))],
        )
        .with_key(r"HKLM\SOFTWARE\Contoso\Agent", OPEN, &[])
}

fn on(inside: &dyn BaseKeys, edits: &[RegistryEdit]) -> Result<Vec<u8>, WriteError> {
    let hives = layer_hives(edits, inside, NOON)?;
    let mut hives = hives
        .into_iter()
        .filter(|hive| hive.name == "Software_Delta");
    Ok(hives.next().map(|hive| hive.bytes).unwrap_or_default())
}

/// Like `outline`, on a base; empty without a layer.
fn outline_on(inside: &dyn BaseKeys, edits: &[RegistryEdit]) -> Vec<String> {
    let bytes = on(inside, edits).unwrap();
    if bytes.is_empty() {
        return Vec::new();
    }
    let mut lines = lines(&Hive::read(&bytes).unwrap().root);
    assert_eq!(lines[0], " 00");
    lines.split_off(1)
}

#[test]
fn a_key_of_the_base_keeps_its_descriptor_and_a_new_one_is_new_and_inherits() {
    let edits = [set(r"\contoso\NEW\below", "v", 1), set(r"\Other", "v", 1)];
    let bytes = on(&base(), &edits).unwrap();
    let hive = Hive::read(&bytes).unwrap();
    assert_eq!(
        outline_on(&base(), &edits),
        [
            r"\Contoso 80",
            r"\Contoso\NEW 03",
            r"\Contoso\NEW\below 03 v=1",
            r"\Other 03 v=1"
        ]
    );
    let is = |key: &str, sddl: &str| {
        assert_eq!(hive.root.at(key).unwrap().security, security(sddl), "{key}");
    };
    is("", OPEN);
    is("Contoso", CLOSED);
    is(r"Contoso\NEW", "O:SYG:SYD:AI(A;CIID;KA;;;SY)S:AI");
    is(r"Contoso\NEW\below", "O:SYG:SYD:AI(A;CIID;KA;;;SY)S:AI");
    is(
        "Other",
        "O:SYG:SYD:AI(A;CIID;KA;;;BA)(A;CIID;KR;;;BU)(A;ID;KA;;;SY)(A;CIIOID;KA;;;CO)S:AI",
    );
}

#[test]
fn the_root_of_a_hive_without_changes_keeps_its_descriptor() {
    let inside = base().with_key(r"HKLM\SYSTEM", CLOSED, &[]);
    let changed = [set(r"\Other", "v", 1)];
    let roots = |hives: Vec<HiveFile>| {
        let root = |hive: &HiveFile| Hive::read(&hive.bytes).unwrap().root.security.to_vec();
        hives.iter().take(2).map(root).collect::<Vec<_>>()
    };
    let expected = [security(CLOSED), security(OPEN)];
    assert_eq!(
        roots(layer_hives(&changed, &inside, NOON).unwrap()),
        expected
    );
    assert_eq!(roots(unchanged_hives(&inside, NOON).unwrap()), expected);
}

#[test]
fn a_key_that_starts_again_has_nothing_of_the_one_that_was_there() {
    for edits in [
        vec![create(r"\Contoso", KeyMode::Replace)],
        vec![delete(r"\Contoso"), create(r"\Contoso", KeyMode::Merge)],
    ] {
        let edits = [edits, vec![set(r"\Contoso\Agent", "v", 1)]].concat();
        let bytes = on(&base(), &edits).unwrap();
        let hive = Hive::read(&bytes).unwrap();
        let agent = hive.root.at(r"Contoso\Agent").unwrap();
        let inherited =
            "O:SYG:SYD:AI(A;CIID;KA;;;BA)(A;CIID;KR;;;BU)(A;ID;KA;;;SY)(A;CIIOID;KA;;;CO)S:AI";
        assert_eq!(
            hive.root.at("Contoso").unwrap().security,
            security(inherited)
        );
        assert_eq!(agent.layer.semantics, Semantics::SupersedeTree);
        assert_eq!(agent.security.len(), security(inherited).len());
    }
    let values_only = [create(r"\Contoso", KeyMode::ReplaceValues)];
    let bytes = on(&base(), &values_only).unwrap();
    let hive = Hive::read(&bytes).unwrap();
    assert_eq!(hive.root.at("Contoso").unwrap().security, security(CLOSED));
}

#[test]
fn deleting_what_the_base_does_not_have_creates_nothing() {
    for edits in [
        vec![delete(r"\Nothing")],
        vec![delete(r"\Nothing\below\it"), unset(r"\Nothing", "v")],
        vec![unset(r"\Contoso", "other"), unset(r"\Contoso\Agent", "v")],
        vec![delete(r"\Contoso\Agent\x"), delete(r"\Contoso\Agent\x\y")],
    ] {
        let hives = layer_hives(&edits, &base(), NOON).unwrap();
        assert_eq!(hives, [], "{edits:?}");
    }
    assert_eq!(
        outline_on(
            &base(),
            &[unset(r"\Contoso", "V"), delete(r"\Contoso\AGENT")]
        ),
        [r"\Contoso 80 v=-", r"\Contoso\AGENT 01"]
    );
    assert_eq!(
        outline_on(
            &base(),
            &[set(r"\x\y", "v", 1), delete(r"\x\y"), unset(r"\x", "w")]
        ),
        [r"\x 03"]
    );
}

#[test]
fn what_is_set_or_created_is_written_in_the_spelling_of_the_base() {
    assert_eq!(
        outline_on(
            &base(),
            &[
                set(r"\contoso", "V", 1),
                create(r"\Contoso\AGENT", KeyMode::Merge)
            ]
        ),
        [r"\Contoso 80 v=1", r"\Contoso\Agent 80"]
    );
}

#[test]
fn a_deletion_in_a_key_that_may_be_missing_is_refused_unless_an_edit_creates_it() {
    for (edit, holder) in [
        (delete(r"\Contoso\Agent"), r"HKLM\SOFTWARE\Contoso"),
        (
            unset(r"\Contoso\Agent", "v"),
            r"HKLM\SOFTWARE\Contoso\Agent",
        ),
        (
            delete(r"\Contoso\Agent\x\y"),
            r"HKLM\SOFTWARE\Contoso\Agent\x",
        ),
    ] {
        match on(&UnknownBase, std::slice::from_ref(&edit)) {
            Err(WriteError::UnknownHolder {
                edit: refused,
                holder: found,
            }) => {
                assert_eq!((*refused, found.to_string().as_str()), (edit, holder));
            }
            other => panic!("{edit}: {other:?}"),
        }
    }
    let agent = r"\CONTOSO\Agent";
    for edits in [
        [create(r"\Contoso\x", KeyMode::Merge), delete(agent)],
        [delete(agent), set(r"\Contoso\Agent", "v", 1)],
        [delete(agent), delete(r"\Contoso")],
        [delete(r"\Microsoft\Rpc\x"), delete(r"\Contoso")],
    ] {
        assert!(on(&UnknownBase, &edits).is_ok(), "{edits:?}");
    }
}

#[test]
fn links_of_the_base_are_followed_wherever_they_are() {
    let inside = base()
        .with_link(
            r"HKLM\SOFTWARE\One",
            r"\Registry\Machine\Software\Contoso\Two",
        )
        .with_link(
            r"HKLM\SOFTWARE\Contoso\Two",
            r"\Registry\Machine\SOFTWARE\Contoso\Agent",
        );
    assert_eq!(
        outline_on(
            &inside,
            &[set(r"\one\Settings", "v", 1), set(r"\One", "w", 2)]
        ),
        [
            r"\Contoso 80",
            r"\Contoso\Agent 80 w=2",
            r"\Contoso\Agent\Settings 03 v=1"
        ]
    );
    assert_eq!(
        outline_on(&UnknownBase, &[set(r"\One\Settings", "v", 1)]),
        [r"\One 80", r"\One\Settings 80 v=1"]
    );
}

#[test]
fn a_link_that_leads_nowhere_is_refused() {
    let inside = base()
        .with_link(r"HKLM\SOFTWARE\a", r"\Registry\Machine\SOFTWARE\b")
        .with_link(r"HKLM\SOFTWARE\b", r"\Registry\Machine\SOFTWARE\a")
        .with_link(
            r"HKLM\SOFTWARE\deep",
            r"\Registry\Machine\SOFTWARE\Contoso\Agent",
        )
        .with_link(r"HKLM\SOFTWARE\out", r"\Registry\Machine\HARDWARE\x");
    let deep = format!(r"\deep{}", r"\x".repeat(508));
    for (edit, printed) in [
        (
            set(r"\a\x", "v", 1),
            r"cannot resolve a link of the base in HKLM\SOFTWARE\a\x: the path has more than 32 links",
        ),
        (
            delete(r"\out\x"),
            r"link of the base in HKLM\SOFTWARE\out\x: it refers to a key that no layer can change",
        ),
        (set(&deep, "v", 1), "the path is too deep"),
    ] {
        let error = on(&inside, &[edit]).unwrap_err().to_string();
        assert!(error.ends_with(printed), "{error}");
    }
}

#[test]
fn a_descriptor_that_cannot_be_read_stays_and_is_passed_over() {
    let mut strange = security(OPEN);
    strange[0] = 9;
    let odd = FaultyBase {
        base: base(),
        strange: strange.clone(),
    };
    let bytes = on(&odd, &[set(r"\Contoso\New", "v", 1)]).unwrap();
    let hive = Hive::read(&bytes).unwrap();
    assert_eq!(hive.root.at("Contoso").unwrap().security, strange);
    let new = hive.root.at(r"Contoso\New").unwrap();
    assert_eq!(
        new.security,
        security(
            "O:SYG:SYD:AI(A;CIID;KA;;;BA)(A;CIID;KR;;;BU)(A;ID;KA;;;SY)(A;CIIOID;KA;;;CO)S:AI"
        )
    );
}

/// A base one of whose keys is strange, and another cannot be read.
#[derive(Debug)]
struct FaultyBase {
    base: Keys,
    strange: Vec<u8>,
}

impl BaseKeys for FaultyBase {
    fn key(&self, key: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        let mut found = self.base.key(key)?;
        match key.components().last().map(String::as_str) {
            Some("Contoso") => {
                if let Presence::Present(key) = &mut found {
                    key.security.clone_from(&self.strange);
                }
                Ok(found)
            }
            Some("unreadable") => Err(BaseReadError(Arc::new(std::io::Error::other("torn")))),
            _ => Ok(found),
        }
    }
}

#[test]
fn what_cannot_be_read_of_the_base_is_an_error() {
    let odd = FaultyBase {
        base: base(),
        strange: Vec::new(),
    };
    let error = on(&odd, &[set(r"\Contoso\unreadable", "v", 1)]).unwrap_err();
    assert!(matches!(error, WriteError::Inside(_)), "{error}");
}

#[test]
fn a_base_without_the_hive_gets_one_that_merges_with_nothing() {
    let without = Keys::default()
        .with_key(r"HKLM\SOFTWARE", OPEN, &[])
        .without_keys();
    let edits = [set(r"\a", "v", 1), delete(r"\b")];
    assert_eq!(outline_on(&without, &edits), [r"\a 03 v=1"]);
}
