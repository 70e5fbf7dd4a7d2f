//! Tests of locked and unlocked sections, and of entries that must or must not exist.

use super::*;

fn delegated(section: &str, allowed: bool) -> ConfigEdit {
    edit(section, "", ConfigChange::Delegate { allowed })
}

fn delegated_in(text: &str, edit: &ConfigEdit) -> Option<String> {
    let mut server = server(text);
    server.apply(edit).unwrap();
    Some(String::from_utf8(server.finish()?).unwrap())
}

#[test]
fn a_section_moves_where_its_lock_is_said_with_all_that_is_in_it() {
    let commented = FILE.replace("<error statusCode", "<!-- kept --><error statusCode");
    let section = "system.webServer/httpErrors";
    let locked = delegated_in(&commented, &delegated(section, false)).unwrap();
    let place = |text: &str| locked.find(text).unwrap();
    assert!(place("<location path=\"\" overrideMode=\"Deny\">") < place("<!-- kept -->"));
    assert_eq!(locked.matches("<httpErrors ").count(), 1);
    let path = section.parse().unwrap();
    assert!(!server(&locked).is_delegated(&path, None).unwrap());
    assert_eq!(delegated_in(&locked, &delegated(section, false)), None);
    let unlocked = delegated_in(&locked, &delegated(section, true)).unwrap();
    assert!(server(&unlocked).is_delegated(&path, None).unwrap());
    assert!(unlocked.contains("<!-- kept -->"));
    // A section that is already unlocked is not moved.
    assert_eq!(
        delegated_in(FILE, &delegated("system.webServer/handlers", true)),
        None
    );
}

#[test]
fn new_entries_must_not_be_there_and_taken_ones_must() {
    let entry = |name: &str| ElementPath::default().entry([("name", name)]);
    let (default, other) = (entry("defaultAPPpool"), entry("other"));
    let new = |entry| {
        let first = false;
        edit(APP_POOLS, "", ConfigChange::New { entry, first })
    };
    let take = |entry| edit(APP_POOLS, "", ConfigChange::Take { entry });
    let mut server = server(FILE);
    let exists = server.apply(&new(default.clone())).unwrap_err();
    assert!(
        exists.to_string().contains("already has the entry"),
        "{exists}"
    );
    let missing = server.apply(&take(other.clone())).unwrap_err();
    assert!(missing.to_string().contains("has no entry"), "{missing}");
    assert!(server.finish().is_none());
    server.apply(&new(other.clone())).unwrap();
    server.apply(&take(other)).unwrap();
    server.apply(&take(default)).unwrap();
    assert!(server.app_pools().is_empty());
}
