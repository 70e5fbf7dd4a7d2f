//! Bases with hives that were not closed: facts and the merged registry have what their logs say.

use serde_json::json;
use wincimg_inspect::base::{BaseFacts, BaseHive, Extent};
use wincimg_registry::hive::log_writer::{new_log, old_log, set_sequences};
use wincimg_registry::{BaseKeys, Presence, Root};
use wincimg_testkit::test_bases::{
    ENVIRONMENT, LayerTar, bottom_layer, delta_hive, image_of, made_software, made_system,
    real_open_system,
};
use wincimg_windows::base_contents::BaseRequirements;

use super::base_facts::{facts_of, real_facts};
use super::*;
use crate::failure::{note, says};

const CONFIG: &str = "Files/Windows/System32/config";

/// A hive that was not closed, its two logs, and the value of PATH after each of its changes.
struct UnclosedHive {
    hive: Vec<u8>,
    logs: [Vec<u8>; 2],
    paths: [&'static str; 4],
}

/// `SYSTEM`, whose changes are split between both logs; the second has the earlier ones.
fn system() -> UnclosedHive {
    let paths = [r"C:\first", r"C:\second", r"C:\third one", r"C:\fourth"];
    let states = paths.map(made_system);
    let mut hive = states[0].clone();
    set_sequences(&mut hive, 8, 7);
    UnclosedHive {
        hive,
        logs: [new_log(&states[1..], 8), new_log(&states[..2], 7)],
        paths,
    }
}

/// A bottom layer whose `SYSTEM` has these logs.
fn bottom(system: &[u8], logs: &[(&str, &[u8])]) -> LayerTar {
    let mut tar = bottom_layer(system, &made_software());
    for (name, log) in logs {
        tar.file(&format!("{CONFIG}/{name}"), log, None);
    }
    tar
}

fn path_in(facts: &BaseFacts) -> RegistryData {
    let key = facts.key(&ENVIRONMENT.parse().unwrap()).unwrap();
    let Presence::Present(key) = key else {
        panic!("{key:?}");
    };
    let mut values = key.values.into_iter();
    values.find(|(name, _)| name == "Path").unwrap().1
}

fn problems_of(facts: &BaseFacts) -> Vec<(String, String)> {
    let problems = facts.problems().iter();
    problems
        .map(|it| (it.place.clone(), it.problem.clone()))
        .collect()
}

fn extents() -> [Extent; 2] {
    let part = BaseRequirements {
        hives: [Root::System].into(),
        ..BaseRequirements::default()
    };
    [Extent::Everything, Extent::Part(part)]
}

#[test]
fn facts_are_what_the_logs_say_wherever_they_lie_in_the_layer() {
    let UnclosedHive { hive, logs, paths } = system();
    let logs = [("SYSTEM.LOG1", &*logs[0]), ("system.log2", &*logs[1])];
    let after = bottom(&hive, &logs).tar();
    let mut before = LayerTar::default();
    for (name, log) in logs {
        before.file(&format!("{CONFIG}/{name}"), log, None);
    }
    before.file(&format!("{CONFIG}/SYSTEM"), &hive, None);
    let before = before.tar();
    let old = [made_system(paths[0]), made_system(paths[3])];
    let old = bottom(&hive, &[("SYSTEM.LOG1", &old_log(&old[0], &old[1], 8))]).tar();
    for extent in extents() {
        for tar in [&after, &before, &old] {
            let facts = facts_of(&extent, std::slice::from_ref(tar));
            assert_eq!(path_in(&facts), RegistryData::expand_sz(paths[3]));
            let hives = problems_of(&facts);
            assert!(
                !hives.iter().any(|(place, _)| place.contains("SYSTEM")),
                "{hives:?}"
            );
        }
    }
}

#[test]
fn what_the_logs_of_a_hive_lack_is_a_problem_of_the_base() {
    let UnclosedHive { hive, logs, paths } = system();
    let [later, earlier] = &logs;
    // Its second entry is torn.
    let torn = &later[..9000];
    for (logs, path, problem) in [
        (vec![], paths[0], "without usable log files"),
        (
            vec![("SYSTEM.LOG1", &[][..])],
            paths[0],
            "without usable log files",
        ),
        (
            vec![("SYSTEM.LOG1", &earlier[..700]), ("SYSTEM.LOG2", b"")],
            paths[0],
            "without usable log files",
        ),
        (
            vec![("SYSTEM.LOG1", earlier), ("SYSTEM.LOG2", b"not a log")],
            paths[1],
            "part of its log files is damaged",
        ),
        (
            vec![("SYSTEM.LOG2", earlier), ("SYSTEM.LOG1", torn)],
            paths[2],
            "part of its log files is damaged",
        ),
    ] {
        let tar = bottom(&hive, &logs).tar();
        for extent in extents() {
            let facts = facts_of(&extent, std::slice::from_ref(&tar));
            assert!(facts.has_hive(BaseHive::System));
            assert_eq!(path_in(&facts), RegistryData::expand_sz(path), "{problem}");
            let [(place, found)] = &problems_of(&facts)[..] else {
                panic!("{:?}", facts.problems());
            };
            assert_eq!(*place, format!("{CONFIG}/SYSTEM"));
            assert_contains!(found, problem);
        }
    }
}

#[test]
fn a_real_hive_that_was_copied_while_it_was_open_is_read_and_marked() {
    let open = bottom(&real_open_system(), &[]).tar();
    let (open, closed) = (facts_of(&Extent::Everything, &[open]), real_facts());
    let keys = |facts: &BaseFacts| -> Vec<_> {
        let top = r"HKLM\SYSTEM".parse().unwrap();
        facts
            .keys_below(&top)
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    let found = keys(&open);
    assert!(found.len() > 10_000);
    assert!(found == keys(&closed));
    assert_eq!(problems_of(&closed), []);
    assert_eq!(open.problems().len(), 1);
    let problem = open.problems()[0].to_string();
    assert_contains!(problem, "not closed, and without usable log files");
}

#[test]
fn a_delta_hive_that_was_not_closed_has_its_logs_next_to_it() {
    let change = |path| [set(ENVIRONMENT, "Path", RegistryData::expand_sz(path))];
    let states = [r"C:\a", r"C:\b"].map(|path| delta_hive(&change(path)));
    let mut hive = states[0].clone();
    set_sequences(&mut hive, 4, 3);
    let mut upper = LayerTar::default();
    upper
        .folder("Hives", None)
        .file("Hives/System_Delta", &hive, None)
        .file("Hives/System_Delta.LOG1", &new_log(&states, 3), None)
        .file("Hives/System_Delta.LOG2", b"", None);
    let tars = [bottom(&made_system(r"C:\x"), &[]).tar(), upper.tar()];
    for extent in extents() {
        let facts = facts_of(&extent, &tars);
        assert_eq!(path_in(&facts), RegistryData::expand_sz(r"C:\b"));
        assert_eq!(problems_of(&facts), []);
    }
    let image = image_of("10.0.17763.1040", tars.to_vec());
    let layout = LayoutImage::new(&image);
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &["--registry"]));
    assert_eq!(code, 0, "{printed}");
    let layer = &found["images"][0]["registry"]["layers"][0];
    assert_eq!(layer["changes"][0]["value"], r"C:\b");
    assert_eq!(layer["other_hives"], json!([]));
    let unclosed = &found["images"][0]["layers"][1]["unclosed_hives"];
    assert_eq!(
        *unclosed,
        json!([{"file": "Hives/System_Delta", "state": "replayed"}])
    );
}

#[test]
fn inspect_shows_the_registry_with_the_logs_and_a_note() {
    let UnclosedHive { hive, logs, paths } = system();
    for (logs, path, state, words) in [
        (
            vec![("SYSTEM.LOG1", &*logs[0]), ("SYSTEM.LOG2", &*logs[1])],
            paths[3],
            "replayed",
            "completed from its log files",
        ),
        (
            vec![("SYSTEM.LOG1", b""), ("SYSTEM.LOG2", &*logs[1])],
            paths[1],
            "replayed",
            "completed from its log files",
        ),
        (
            vec![("SYSTEM.LOG1", b"x"), ("SYSTEM.LOG2", &*logs[1])],
            paths[1],
            "replayed_in_part",
            "part of its log files is damaged",
        ),
        (vec![], paths[0], "unreplayed", "without usable log files"),
    ] {
        let image = image_of("10.0.17763.1040", vec![bottom(&hive, &logs).tar()]);
        let layout = LayoutImage::new(&image);
        let (code, found, printed) =
            report_of(&mut inspect(&layout.place, &["--registry", "--merged"]));
        assert_eq!(code, 0, "{printed}");
        says(&printed, &note(&[&format!("{CONFIG}/SYSTEM"), words]));
        let image = &found["images"][0];
        let file = format!("{CONFIG}/SYSTEM");
        assert_eq!(
            image["layers"][0]["unclosed_hives"],
            json!([{"file": file, "state": state}])
        );
        let result = image["registry"]["result"].as_array().unwrap();
        let value = result
            .iter()
            .find(|edit| edit["key"] == ENVIRONMENT && edit["name"] == "Path")
            .unwrap();
        assert_eq!(value["value"], path);
    }
    // Of a closed hive nothing is said.
    let image = image_of(
        "10.0.17763.1040",
        vec![bottom(&made_system(paths[0]), &[]).tar()],
    );
    let layout = LayoutImage::new(&image);
    let (code, found, printed) =
        report_of(&mut inspect(&layout.place, &["--registry", "--merged"]));
    assert_eq!((code, printed.as_str()), (0, ""));
    assert_eq!(
        found["images"][0]["layers"][0]["unclosed_hives"],
        Value::Null
    );
}
