//! `wincimg hotfix fetch`, driven as a user would against a catalog that misbehaves.
#![allow(clippy::unwrap_used)]

use std::fs;

use crate::fake_catalog::desk::{Desk, FILE, TITLE};
use crate::fake_catalog::{ERROR_PAGE, Fault, Instead, Listed, msu};

#[test]
fn an_overloaded_catalog_is_asked_again() {
    let (desk, bytes) = Desk::with_april_2020();
    desk.catalog.instead([
        Instead::Status(429),
        Instead::Page(ERROR_PAGE.to_owned()),
        Instead::Status(503),
    ]);
    desk.fetch().ended_with(0);
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);
}

#[test]
fn the_update_of_a_build_is_fetched_verified_and_not_fetched_twice() {
    let (desk, bytes) = Desk::with_april_2020();
    let outcome = desk.fetch().ended_with(0);
    assert_eq!(outcome.stdout, format!("out/{FILE}\n"));
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);
    assert_eq!(desk.names(), [FILE]);
    assert_eq!(desk.file_requests(), [format!("GET /files/{FILE}")]);

    let again = desk.ask(&["fetch", "KB4549949", "--output", "out", "--format", "json"]);
    let json = again.ended_with(0).json();
    assert_eq!(desk.file_requests(), [""; 0]);
    assert_eq!(json["kb"], "KB4549949");
    assert_eq!(json["build"], "17763.1158");
    assert_eq!(json["title"], TITLE);
    let file = &json["files"][0];
    assert_eq!(file["path"], format!("out/{FILE}"));
    assert_eq!(file["size"], bytes.len());
    assert_eq!(
        (&file["verified"], &file["downloaded"]),
        (&true.into(), &false.into())
    );
    assert!(file["digest"].as_str().unwrap().starts_with("sha1:"));
}

#[test]
fn a_sha256_is_preferred() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let (desk, bytes) = Desk::with_april_2020();
    let sha256 = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(&bytes));
    desk.catalog
        .change_last(|update| update.files[0].sha256 = Some(sha256));
    let json = desk
        .ask(&["fetch", "17763.1158", "--output", "out", "--format", "json"])
        .ended_with(0)
        .json();
    assert!(
        json["files"][0]["digest"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );
}

#[test]
fn a_file_of_other_content_under_the_name_is_replaced() {
    let (desk, bytes) = Desk::with_april_2020();
    fs::create_dir(desk.out()).unwrap();
    fs::write(desk.out().join(FILE), "something else").unwrap();
    desk.fetch().ended_with(0).said("downloading it again");
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);
}

#[test]
fn a_connection_that_breaks_is_continued_where_it_broke() {
    let (desk, bytes) = Desk::with_april_2020();
    desk.catalog.fail(
        FILE,
        [
            Fault::Cut(150_000),
            Fault::Status(503),
            Fault::Cut(100_000),
            Fault::Slow,
        ],
    );
    desk.fetch().ended_with(0);
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);
    let requests = desk.file_requests();
    assert_eq!(requests.len(), 4, "{requests:?}");
    assert!(requests[3].ends_with("bytes=250000-"), "{requests:?}");
}

/// Leaves the first 150,000 bytes of the file behind, as a run does that was broken off.
fn broken_off(desk: &Desk) {
    desk.catalog
        .fail(FILE, [Fault::Cut(150_000), Fault::Status(404)]);
    desk.fetch().ended_with(3).said("404");
    let part = format!("{FILE}.part");
    assert_eq!(desk.names(), [part.clone(), format!("{part}.json")]);
    assert_eq!(fs::metadata(desk.out().join(part)).unwrap().len(), 150_000);
    desk.file_requests();
}

#[test]
fn a_run_that_was_broken_off_is_continued_by_the_next_one() {
    let (desk, bytes) = Desk::with_april_2020();
    broken_off(&desk);
    desk.fetch().ended_with(0);
    assert_eq!(
        desk.file_requests(),
        [format!("GET /files/{FILE} bytes=150000-")]
    );
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);
    assert_eq!(desk.names(), [FILE]);
}

#[test]
fn a_file_that_changed_in_between_is_begun_again() {
    let (desk, bytes) = Desk::with_april_2020();
    desk.catalog.change_served(FILE, |served| {
        served.bytes.reverse();
        served.etag = Some("\"old\"".to_owned());
    });
    broken_off(&desk);
    desk.catalog.change_served(FILE, |served| {
        served.bytes.reverse();
        served.etag = Some("\"new\"".to_owned());
    });
    desk.fetch().ended_with(0);
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);
}

#[test]
fn pieces_that_do_not_fit_together_are_begun_again_even_if_the_server_does_not_tell() {
    let (desk, bytes) = Desk::with_april_2020();
    desk.catalog.change_served(FILE, |served| {
        served.bytes.reverse();
        (served.etag, served.careful) = (None, false);
    });
    broken_off(&desk);
    desk.catalog
        .change_served(FILE, |served| served.bytes.reverse());
    desk.fetch().ended_with(0).said("beginning again");
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);
    assert_eq!(desk.names(), [FILE]);
}

#[test]
fn a_server_that_lost_the_range_is_asked_for_the_whole() {
    let (desk, bytes) = Desk::with_april_2020();
    broken_off(&desk);
    desk.catalog.fail(FILE, [Fault::Status(416)]);
    desk.fetch().ended_with(0);
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);
}

#[test]
fn wrong_bytes_never_get_the_files_name() {
    let (desk, _) = Desk::with_april_2020();
    desk.catalog
        .change_served(FILE, |served| served.bytes[1000] ^= 1);
    desk.fetch()
        .ended_with(3)
        .said("is not what the catalog lists: it has SHA-1 ")
        .said("expected SHA-1 ");
    assert_eq!(desk.names(), [""; 0]);
}

#[test]
fn a_file_of_another_length_is_not_even_begun() {
    let (desk, bytes) = Desk::with_april_2020();
    desk.catalog
        .change_served(FILE, |served| served.bytes.truncate(1000));
    desk.fetch().ended_with(3).said(&format!(
        "with 1000 bytes, the catalog says {}",
        bytes.len()
    ));
    assert_eq!(desk.names(), [""; 0]);
}

#[test]
fn a_package_of_another_article_or_architecture_is_not_kept() {
    for (article, architecture) in [("4549950", "amd64"), ("4549949", "arm64")] {
        let desk = Desk::new();
        desk.catalog
            .publish(TITLE, &[(FILE, msu(article, architecture, 100))]);
        desk.fetch()
            .ended_with(3)
            .said("is not the update that was asked for")
            .said("expected article 4549949 and amd64");
        assert_eq!(desk.names(), [""; 0]);
    }
}

#[test]
fn an_error_page_in_the_place_of_a_file_is_not_kept() {
    let desk = Desk::new();
    desk.catalog
        .publish(TITLE, &[(FILE, b"<html>oops</html>".to_vec())]);
    desk.fetch()
        .ended_with(3)
        .said("not as a cabinet or WIM does");
    assert_eq!(desk.names(), [""; 0]);
}

#[test]
fn a_dialog_of_another_shape_is_a_failure() {
    let (desk, _) = Desk::with_april_2020();
    desk.catalog.change_last(|update| update.files.clear());
    desk.fetch().ended_with(3).said("lists no file for update");
    desk.catalog.change_last(|update| {
        update.files = vec![Listed::of("..%2fpasswd", b"x")];
    });
    desk.fetch()
        .ended_with(3)
        .said("its name is not a plain one");
}

#[test]
fn all_files_of_a_checkpoint_set_are_fetched() {
    let desk = Desk::new();
    let wim = |number: u8| [b"MSWIM\0\0\0".as_slice(), &[number; 1000]].concat();
    let (checkpoint, target) = (
        "windows11.0-kb5043080-x64.msu",
        "windows11.0-kb5120233-x64.msu",
    );
    desk.catalog.publish(
        "2026-08 Cumulative Update for Microsoft server operating system version 24H2 for x64-based Systems (KB5120233)",
        &[(checkpoint, wim(1)), (target, wim(2))],
    );
    // Which file the listed size is about is not said.
    desk.catalog.change_last(|update| update.size = Some(1008));
    let outcome = desk
        .ask(&["fetch", "26100.33296", "--output", "out"])
        .ended_with(0);
    assert_eq!(outcome.stdout, format!("out/{checkpoint}\nout/{target}\n"));
    assert_eq!(desk.names(), [checkpoint, target]);

    let script = desk
        .run(&[
            "script",
            "26100.33296",
            "--files",
            "out",
            "--from-dir",
            "\\\\share\\hotfix",
        ])
        .ended_with(0)
        .stdout;
    assert!(script.contains("Tool     = 'dism'"), "{script}");
    assert!(
        script.contains(&format!("Install  = @('{target}')")),
        "{script}"
    );
    assert!(
        script.contains("Folder   = '\\\\share\\hotfix'"),
        "{script}"
    );
}

#[test]
fn a_file_without_a_digest_is_refused_unless_told() {
    let (desk, bytes) = Desk::with_april_2020();
    desk.catalog
        .change_last(|update| update.files[0].sha1 = None);
    desk.fetch()
        .ended_with(3)
        .said("gives no digest")
        .said("--without-digest");
    assert_eq!(desk.file_requests(), [""; 0]);
    desk.ask(&["fetch", "17763.1158", "--output", "out", "--without-digest"])
        .ended_with(0)
        .said("nothing vouches for");
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);
}

#[test]
fn a_link_without_tls_is_good_enough_for_a_file_with_a_digest_alone() {
    let (desk, bytes) = Desk::with_april_2020();
    // The same server under a name that is not listed.
    let elsewhere = desk.catalog.host.replace("127.0.0.1", "localhost");
    desk.catalog
        .change_last(|update| update.files[0].host = Some(elsewhere.clone()));
    desk.fetch().ended_with(0);
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);

    fs::remove_file(desk.out().join(FILE)).unwrap();
    desk.catalog
        .change_last(|update| update.files[0].sha1 = None);
    desk.ask(&["fetch", "17763.1158", "--output", "out", "--without-digest"])
        .ended_with(3)
        .said(&format!("add --insecure-registry {elsewhere}"));
    assert_eq!(desk.names(), [""; 0]);
}

#[test]
fn several_updates_that_fit_are_listed_with_the_flags_that_pick_them() {
    let (desk, _) = Desk::with_april_2020();
    let twin = desk
        .catalog
        .publish(TITLE, &[(FILE, msu("4549949", "amd64", 5))]);
    desk.fetch()
        .ended_with(1)
        .said("2 updates that are KB4549949 for Windows Server 2019 (x64)")
        .said(&format!("--update-id {twin}"));
    desk.ask(&[
        "fetch",
        "17763.1158",
        "--output",
        "out",
        "--update-id",
        &twin,
    ])
    .ended_with(0);
}

#[test]
fn an_update_that_the_catalog_has_only_for_others_is_a_no() {
    let desk = Desk::new();
    let client = TITLE.replace("Windows Server 2019", "Windows 10 Version 1809");
    desk.catalog
        .publish(&client, &[(FILE, msu("4549949", "amd64", 5))]);
    desk.fetch()
        .ended_with(1)
        .said("the catalog has no KB4549949 for Windows Server 2019 (x64)")
        .said("is for another product");
    desk.ask(&[
        "fetch",
        "KB4549949",
        "--product",
        "windows 10 version 1809",
        "--output",
        "out",
    ])
    .ended_with(0);
}

#[test]
fn ten_that_want_the_same_update_at_once_all_get_it() {
    let (desk, bytes) = Desk::with_april_2020();
    desk.catalog.fail(FILE, [Fault::Slow]);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let users: Vec<_> = (0..10).map(|_| scope.spawn(|| desk.fetch())).collect();
        users.into_iter().map(|user| user.join().unwrap()).collect()
    });
    let mut waited = 0;
    for outcome in outcomes {
        let outcome = outcome.ended_with(0);
        assert_eq!(outcome.stdout, format!("out/{FILE}\n"));
        waited += usize::from(outcome.stderr.contains("waiting for it"));
    }
    assert!(waited > 0);
    assert_eq!(fs::read(desk.out().join(FILE)).unwrap(), bytes);
    assert_eq!(desk.names(), [FILE]);
    assert_eq!(desk.file_requests().len(), 1);
}
