//! End-to-end tests of `wincimg node hotfix fetch` with a catalog that misbehaves.

use std::collections::BTreeSet;
use std::fs;

use predicates::Predicate as _;
use wincimg_testkit::cabinet::cabinet;
use wincimg_testkit::component;
use wincimg_testkit::file_server::ResponseFault;

use crate::failure::{Fails, note};
use crate::fake_catalog::setup::{CatalogSetup, FILE, TITLE};
use crate::fake_catalog::{ERROR_PAGE, Listed, ResponseOverride, msu};
use crate::site::each;

#[test]
fn an_overloaded_catalog_is_asked_again() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    setup.catalog.instead([
        ResponseOverride::Status(429),
        ResponseOverride::Page(ERROR_PAGE.to_owned()),
        ResponseOverride::Status(503),
    ]);
    setup.fetch().assert_code(0);
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
}

#[test]
fn the_update_of_a_build_is_fetched_verified_and_not_fetched_twice() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    let outcome = setup.fetch().assert_code(0);
    assert_eq!(outcome.stdout, format!("out/KB4549949/{FILE}\n"));
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
    assert_eq!(setup.names(), ["update.json", FILE]);
    assert_eq!(setup.file_requests(), [format!("GET /files/{FILE}")]);

    let again =
        setup.run_with_catalog(&["fetch", "KB4549949", "--output", "out", "--format", "json"]);
    let json = again.assert_code(0).json();
    assert_eq!(setup.file_requests(), [""; 0]);
    assert_eq!(json["kb"], "KB4549949");
    assert_eq!(json["build"], "17763.1158");
    assert_eq!(json["title"], TITLE);
    let file = &json["files"][0];
    assert_eq!(file["path"], format!("out/KB4549949/{FILE}"));
    assert_eq!(file["size"], bytes.len());
    assert_eq!(file["verified"], true);
    assert_eq!(file["downloaded"], false);
    assert!(file["digest"].as_str().unwrap().starts_with("sha1:"));
}

#[test]
fn a_sha256_is_preferred() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let (setup, bytes) = CatalogSetup::with_april_2020();
    let sha256 = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(&bytes));
    setup
        .catalog
        .change_last(|update| update.files[0].sha256 = Some(sha256));
    let json = setup
        .run_with_catalog(&["fetch", "17763.1158", "--output", "out", "--format", "json"])
        .assert_code(0)
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
    let (setup, bytes) = CatalogSetup::with_april_2020();
    fs::create_dir_all(setup.out()).unwrap();
    fs::write(setup.out().join(FILE), "something else").unwrap();
    setup.fetch().assert_code(0).assert_note(&[FILE]);
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
}

#[test]
fn a_connection_that_breaks_is_continued_where_it_broke() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    setup.catalog.fail(
        FILE,
        [
            ResponseFault::Cut(150_000),
            ResponseFault::Status(503),
            ResponseFault::Cut(100_000),
            ResponseFault::Slow,
        ],
    );
    setup.fetch().assert_code(0);
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
    let requests = setup.file_requests();
    assert_eq!(requests.len(), 4, "{requests:?}");
    assert!(requests[3].ends_with("bytes=250000-"), "{requests:?}");
}

/// Leaves the first 150,000 bytes of the file, like an interrupted run.
fn broken_off(setup: &CatalogSetup) {
    setup.catalog.fail(
        FILE,
        [ResponseFault::Cut(150_000), ResponseFault::Status(404)],
    );
    setup
        .fetch()
        .assert_code(3)
        .assert_printed("404")
        .assert_printed("wincimg node hotfix search KB4549949");
    let part = format!("{FILE}.part");
    assert_eq!(setup.names(), [part.clone(), format!("{part}.json")]);
    assert_eq!(fs::metadata(setup.out().join(part)).unwrap().len(), 150_000);
    setup.file_requests();
}

#[test]
fn a_run_that_was_broken_off_is_continued_by_the_next_one() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    broken_off(&setup);
    setup.fetch().assert_code(0);
    assert_eq!(
        setup.file_requests(),
        [format!("GET /files/{FILE} bytes=150000-")]
    );
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
    assert_eq!(setup.names(), ["update.json", FILE]);
}

#[test]
fn a_file_that_changed_in_between_is_begun_again() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    setup.catalog.change_served(FILE, |served| {
        served.bytes.reverse();
        served.etag = Some("\"old\"".to_owned());
    });
    broken_off(&setup);
    setup.catalog.change_served(FILE, |served| {
        served.bytes.reverse();
        served.etag = Some("\"new\"".to_owned());
    });
    setup.fetch().assert_code(0);
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
}

#[test]
fn pieces_that_do_not_fit_together_are_begun_again_even_if_the_server_does_not_tell() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    setup.catalog.change_served(FILE, |served| {
        served.bytes.reverse();
        (served.etag, served.careful) = (None, false);
    });
    broken_off(&setup);
    setup
        .catalog
        .change_served(FILE, |served| served.bytes.reverse());
    setup.fetch().assert_code(0).assert_note(&[FILE]);
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
    assert_eq!(setup.names(), ["update.json", FILE]);
}

#[test]
fn a_server_that_lost_the_range_is_asked_for_the_whole() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    broken_off(&setup);
    setup.catalog.fail(FILE, [ResponseFault::Status(416)]);
    setup.fetch().assert_code(0);
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
}

#[test]
fn wrong_bytes_never_get_the_files_name() {
    let (setup, _) = CatalogSetup::with_april_2020();
    setup
        .catalog
        .change_served(FILE, |served| served.bytes[1000] ^= 1);
    let failure = setup.fetch_command().fails(3, "download/changed", &[FILE]);
    assert_eq!(failure.message.matches("SHA-1 ").count(), 2, "{failure:#?}");
    assert_eq!(setup.names(), [""; 0]);
}

#[test]
fn a_file_of_another_length_is_not_even_begun() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    setup
        .catalog
        .change_served(FILE, |served| served.bytes.truncate(1000));
    let length = bytes.len().to_string();
    setup
        .fetch_command()
        .fails(3, "download/changed", &["1000", &length]);
    assert_eq!(setup.names(), [""; 0]);
}

#[test]
fn a_package_of_another_article_or_architecture_is_not_kept() {
    for (article, architecture) in [("4549950", "amd64"), ("4549949", "arm64")] {
        let setup = CatalogSetup::new();
        setup
            .catalog
            .publish(TITLE, &[(FILE, msu(article, architecture, 100))]);
        setup
            .fetch_command()
            .fails(3, "download/other", &["4549949", "amd64"]);
        assert_eq!(setup.names(), [""; 0]);
    }
}

#[test]
fn an_error_page_in_the_place_of_a_file_is_not_kept() {
    let setup = CatalogSetup::new();
    setup
        .catalog
        .publish(TITLE, &[(FILE, b"<html>oops</html>".to_vec())]);
    setup.fetch_command().fails(3, "download/other", &[FILE]);
    assert_eq!(setup.names(), [""; 0]);
}

#[test]
fn a_dialog_of_another_shape_is_a_failure() {
    let (setup, _) = CatalogSetup::with_april_2020();
    setup.catalog.change_last(|update| update.files.clear());
    setup.fetch_command().fails(3, "catalog/answer", &[]);
    setup.catalog.change_last(|update| {
        update.files = vec![Listed::of("..%2fpasswd", b"x")];
    });
    setup
        .fetch_command()
        .fails(3, "catalog/answer", &["passwd"]);
}

#[test]
fn all_files_of_a_checkpoint_set_are_fetched() {
    let setup = CatalogSetup::new();
    let wim = |number: u8| [b"MSWIM\0\0\0".as_slice(), &[number; 1000]].concat();
    let (checkpoint, target) = (
        "windows11.0-kb5043080-x64.msu",
        "windows11.0-kb5120233-x64.msu",
    );
    setup.catalog.publish(
        "2026-08 Cumulative Update for Microsoft server operating system version 24H2 for x64-based Systems (KB5120233)",
        &[(checkpoint, wim(1)), (target, wim(2))],
    );
    // The listed size does not name its file.
    setup.catalog.change_last(|update| update.size = Some(1008));
    let outcome = setup
        .run_with_catalog(&["fetch", "26100.33296", "--output", "out"])
        .assert_code(0);
    let folder = "out/KB5120233";
    assert_eq!(
        outcome.stdout,
        format!("{folder}/{checkpoint}\n{folder}/{target}\n")
    );
    let names = setup.names_in(folder);
    assert_eq!(names, ["update.json", checkpoint, target]);

    let script = setup
        .run(&[
            "script", "26100.33296", "--files", "out", "--from-dir", "\\\\share\\hotfix",
        ])
        .assert_code(0)
        .stdout;
    assert_contains!(
        script,
        "Tool     = 'dism'",
        &format!("Install  = @('{target}')"),
        "Folder   = '\\\\share\\hotfix\\KB5120233'"
    );
}

#[test]
fn a_file_without_a_digest_is_refused_unless_allowed() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    setup
        .catalog
        .change_last(|update| update.files[0].sha1 = None);
    setup
        .fetch_command()
        .fails(3, "download/no-digest", &[FILE])
        .advises(&["--without-digest"]);
    assert_eq!(setup.file_requests(), [""; 0]);
    setup
        .run_with_catalog(&["fetch", "17763.1158", "--output", "out", "--without-digest"])
        .assert_code(0)
        .assert_warning(&[FILE]);
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
}

#[test]
fn a_link_without_tls_is_good_enough_for_a_file_with_a_digest_alone() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    // The same server under a name that is not listed.
    let elsewhere = setup.catalog.host.replace("127.0.0.1", "localhost");
    setup
        .catalog
        .change_last(|update| update.files[0].host = Some(elsewhere.clone()));
    setup.fetch().assert_code(0);
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);

    fs::remove_file(setup.out().join(FILE)).unwrap();
    setup
        .catalog
        .change_last(|update| update.files[0].sha1 = None);
    setup
        .run_with_catalog(&["fetch", "17763.1158", "--output", "out", "--without-digest"])
        .assert_code(3)
        .assert_printed(&format!("add --insecure-registry {elsewhere}"));
    assert_eq!(setup.names(), ["update.json"]);
}

#[test]
fn several_updates_that_fit_are_listed_with_the_flags_that_pick_them() {
    let (setup, _) = CatalogSetup::with_april_2020();
    let twin = setup
        .catalog
        .publish(TITLE, &[(FILE, msu("4549949", "amd64", 5))]);
    setup
        .fetch_command()
        .fails(1, "updates/ambiguous", &["2", "KB4549949"])
        .is(
            "updates/ambiguous",
            &["Windows Server 2019", &format!("--update-id {twin}")],
        );
    setup
        .run_with_catalog(&[
            "fetch", "17763.1158", "--output", "out", "--update-id", &twin,
        ])
        .assert_code(0);
}

#[test]
fn an_update_that_the_catalog_has_only_for_others_is_a_no() {
    let setup = CatalogSetup::new();
    let client = TITLE.replace("Windows Server 2019", "Windows 10 Version 1809");
    setup
        .catalog
        .publish(&client, &[(FILE, msu("4549949", "amd64", 5))]);
    let host = &setup.catalog.host;
    let list = format!(
        "wincimg node hotfix search KB4549949 --catalog http://{host} --insecure-registry {host}"
    );
    setup
        .fetch_command()
        .fails(1, "updates/not-found", &["KB4549949"])
        .names(&["Windows Server 2019"])
        .advises(&[&list]);
    setup
        .run_with_catalog(&[
            "fetch",
            "KB4549949",
            "--product",
            "windows 10 version 1809",
            "--output",
            "out",
        ])
        .assert_code(0);
}

#[test]
fn ten_that_want_the_same_update_at_once_all_get_it() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    setup.catalog.fail(FILE, [ResponseFault::Slow]);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let users: Vec<_> = (0..10).map(|_| scope.spawn(|| setup.fetch())).collect();
        users.into_iter().map(|user| user.join().unwrap()).collect()
    });
    let mut waited = 0;
    for outcome in outcomes {
        let outcome = outcome.assert_code(0);
        assert_eq!(outcome.stdout, format!("out/KB4549949/{FILE}\n"));
        waited += usize::from(note(&[FILE]).eval(&outcome.stderr));
    }
    assert!(waited > 0);
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
    assert_eq!(setup.names(), ["update.json", FILE]);
    assert_eq!(setup.file_requests().len(), 1);
}

/// Publishes updates of Server 2016 for two revisions, and the prerequisite of the newer one.
fn with_two_updates_of_2016() -> CatalogSetup {
    let setup = CatalogSetup::new();
    let title = |month: &str, kind: &str, article: &str| {
        format!("{month} {kind} for Windows Server 2016 for x64-based Systems (KB{article})")
    };
    for (month, kind, article) in [
        ("2017-01", "Cumulative Update", "3213986"),
        ("2026-01", "Cumulative Update", "5073722"),
        ("2026-01", "Servicing Stack Update", "5073447"),
    ] {
        let file = format!("windows10.0-kb{article}-x64.msu");
        let bytes = msu(article, "amd64", 1000);
        setup
            .catalog
            .publish(&title(month, kind, article), &[(&file, bytes)]);
    }
    setup
}

#[test]
fn each_of_two_updates_in_one_folder_gets_a_script_of_its_own() {
    let setup = with_two_updates_of_2016();
    for build in ["14393.693", "14393.8783"] {
        setup
            .run_with_catalog(&["fetch", build, "--output", "hotfix"])
            .assert_code(0);
    }
    assert_eq!(
        setup.names_in("hotfix/KB5073722"),
        [
            "update.json",
            "windows10.0-kb5073447-x64.msu",
            "windows10.0-kb5073722-x64.msu"
        ]
    );
    let script = |build: &str| {
        let output = format!("hotfix/{build}.ps1");
        setup
            .run(&["script", build, "--files", "hotfix", "--output", &output])
            .assert_code(0);
        fs::read_to_string(setup.folder.path().join(output)).unwrap()
    };
    let old = script("14393.693");
    assert_contains!(
        old,
        "Install  = @('windows10.0-kb3213986-x64.msu')",
        "Revision = 693"
    );
    assert!(!old.contains("5073722"), "{old}");
    let new = script("14393.8783");
    let both = "@('windows10.0-kb5073447-x64.msu', 'windows10.0-kb5073722-x64.msu')";
    assert_contains!(new, &format!("Install  = {both}"));
    assert!(!new.contains("3213986"), "{new}");
    // A Server 2019 script uses neither.
    setup
        .wincimg(&["script", "17763.1158", "--files", "hotfix"])
        .fails(3, "updates/folder", &["hotfix", "KB4549949"])
        .advises(&["wincimg node hotfix fetch KB4549949 --output hotfix"]);
    setup
        .catalog_command(&["script", "17763.1158", "--files", "hotfix"])
        .fails(3, "updates/folder", &["hotfix", "KB4549949"])
        .advises(&["--output hotfix --catalog http://"]);
}

#[test]
fn an_article_of_two_builds_is_installed_on_the_one_that_it_was_fetched_for() {
    let setup = CatalogSetup::new();
    let file = "windows10.0-kb4580364-x64.msu";
    for product in [
        "Windows Server, version 2004",
        "Windows Server, version 20H2",
    ] {
        setup.catalog.publish(
            &format!(
                "2020-10 Cumulative Update Preview for {product} for x64-based Systems (KB4580364)"
            ),
            &[(file, msu("4580364", "amd64", 1000))],
        );
    }
    setup
        .run_with_catalog(&["fetch", "19041.610", "--output", "out"])
        .assert_code(0);
    let command = |what: &str| setup.wincimg(&["script", what, "--files", "out"]);
    let script = |what: &str| setup.run(&["script", what, "--files", "out"]);
    for what in ["19041.610", "KB4580364"] {
        let text = script(what).assert_code(0).stdout;
        assert_contains!(text, "Build    = 19041");
    }
    command("19042.610").fails(3, "updates/folder", &["19041.610", "19042.610"]);
}

#[test]
fn what_an_update_needs_first_is_said_where_the_catalog_lacks_it() {
    let setup = CatalogSetup::new();
    let file = "windows10.0-kb5122876-x64.msu";
    setup.catalog.publish(
        "2026-09 Cumulative Update for Windows Server 2019 for x64-based Systems (KB5122876)",
        &[(file, msu("5122876", "amd64", 1000))],
    );
    let fetch = ["fetch", "17763.9245", "--output", "out"];
    setup
        .run_with_catalog(&fetch)
        .assert_code(1)
        .assert_printed("KB5122876 requires KB5005112 first")
        .assert_printed("--without-prerequisites");
    setup
        .run_with_catalog(&[&fetch[..], &["--without-prerequisites"]].concat())
        .assert_code(0);
    let stack = "windows10.0-kb5005112-x64.msu";
    setup.catalog.publish(
        "2021-08 Servicing Stack Update for Windows Server 2019 for x64-based Systems (KB5005112)",
        &[(stack, msu("5005112", "amd64", 1000))],
    );
    let json = setup
        .run_with_catalog(&[&fetch[..], &["--format", "json"]].concat())
        .assert_code(0)
        .json();
    assert_eq!(each(&json["files"], "role"), ["servicing-stack", "target"]);
}

#[test]
fn a_folder_that_is_not_what_was_fetched_makes_no_script() {
    let (setup, bytes) = CatalogSetup::with_april_2020();
    setup.fetch().assert_code(0);
    let script = ["script", "17763.1158", "--files", "out"];
    setup.run(&script).assert_code(0);
    let fails = |value: &str| setup.wincimg(&script).fails(3, "updates/folder", &[value]);
    // The update's own folder is accepted too.
    setup
        .run(&["script", "17763.1158", "--files", "out/KB4549949"])
        .assert_code(0);

    let stranger = setup.out().join("windows10.0-kb5000000-x64.msu");
    fs::write(&stranger, "x").unwrap();
    fails("windows10.0-kb5000000-x64.msu");
    fs::remove_file(stranger).unwrap();
    // DISM installs packages only.
    fs::write(setup.out().join("KB4549949.ps1"), "x").unwrap();
    setup.run(&script).assert_code(0);

    let mut changed = bytes.clone();
    changed[5000] ^= 1;
    let mut messages = BTreeSet::new();
    for content in [&changed[..], &bytes[1..]] {
        fs::write(setup.out().join(FILE), content).unwrap();
        messages.insert(fails(FILE).message);
    }
    let host = &setup.catalog.host;
    let again = format!(
        "wincimg node hotfix fetch KB4549949 --output out --catalog http://{host} --insecure-registry {host}"
    );
    setup
        .catalog_command(&script)
        .fails(3, "updates/folder", &[FILE])
        .advises(&[&again]);
    fs::remove_file(setup.out().join(FILE)).unwrap();
    messages.insert(fails(FILE).message);
    assert_eq!(messages.len(), 3, "{messages:#?}");

    let description = setup.out().join("update.json");
    let sound = fs::read_to_string(&description).unwrap();
    for (from, to, value) in [
        ("KB4549949\"", "KB4549950\"", "KB4549950"),
        ("\"x64\"", "\"arm64\"", "arm64"),
        ("windows10.0-kb4549949", "../kb4549949", "../kb4549949"),
        ("sha1:", "md5:", "md5:"),
        ("\"format\": 1", "\"format\": 9", "9"),
        ("\"target\"", "\"checkpoint\"", "target"),
        ("{", "", "update.json"),
    ] {
        let damaged = sound.replacen(from, to, 1);
        assert_ne!(damaged, sound, "{from}");
        fs::write(&description, damaged).unwrap();
        fs::write(setup.out().join(FILE), &bytes).unwrap();
        fails(value);
    }
}

#[test]
fn an_update_of_another_product_is_not_fetched_into_the_same_folder() {
    let (setup, _) = CatalogSetup::with_april_2020();
    setup.fetch().assert_code(0);
    setup.file_requests();
    let other = [
        "fetch",
        "KB4549949",
        "--output",
        "out",
        "--product",
        "Windows 10 Version 1809",
    ];
    setup
        .catalog_command(&other)
        .fails(3, "updates/folder", &["out/KB4549949", FILE]);
    assert_eq!(setup.file_requests(), [""; 0]);
    setup
        .run(&["script", "17763.1158", "--files", "out"])
        .assert_code(0);
}

#[test]
fn links_that_lead_elsewhere_than_into_the_world_are_refused() {
    let (setup, _) = CatalogSetup::with_april_2020();
    for host in ["169.254.169.254", "[fe80::1]"] {
        setup
            .catalog
            .change_last(|update| update.files[0].host = Some(host.to_owned()));
        setup.fetch_command().fails(3, "catalog/answer", &[host]);
        setup
            .catalog_command(&["script", "17763.1158"])
            .fails(3, "catalog/answer", &[host]);
    }
    for link in ["file:///etc/passwd", "//server/share/a.msu"] {
        setup
            .catalog
            .change_last(|update| update.files[0].link = Some(link.to_owned()));
        setup.fetch_command().fails(3, "catalog/answer", &[link]);
    }
    assert_eq!(setup.file_requests(), [""; 0]);
}

#[test]
fn a_fetch_that_takes_too_long_ends() {
    let (setup, _) = CatalogSetup::with_april_2020();
    setup.catalog.fail(FILE, [ResponseFault::Slow]);
    let began = std::time::Instant::now();
    setup
        .catalog_command(&["fetch", "17763.1158", "--output", "out"])
        .args(["--timeout", "300ms"])
        .fails(3, "network/time-limit", &["0.3"]);
    assert!(began.elapsed() < std::time::Duration::from_secs(20));
}

/// A package in the form of Windows 11 and Server 23H2: no properties, but metadata in nested
/// cabinets. Created by an independent program.
fn uup_style(article: &str, version: &str) -> Vec<u8> {
    let gcab = component("gcab");
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
    let pack = |cabinet: &str, names: &[&str]| {
        let mut command = std::process::Command::new(&gcab);
        command.current_dir(folder.path());
        command.args(["-c", "-z", "-n", cabinet]).args(names);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let database = format!("LCUCompDB_KB{article}.xml");
    let xml = format!(
        "<?xml version=\"1.0\"?><CompDB xmlns=\"http://schemas.microsoft.com/embedded/2004/10/ImageUpdate\" \
         BuildArch=\"amd64\" OSVersion=\"10.0.25398.1\" TargetOSVersion=\"10.0.{version}\" \
         Type=\"BuildUpdate\"><Features><Feature FeatureID=\"CumulativeUpdate_KB{article}\" \
         Type=\"CumulativeUpdate\"/></Features></CompDB>"
    );
    write(&database, xml.as_bytes());
    let packed = format!("{database}.cab");
    pack(&packed, &[&database]);
    let metadata = "onepackage.AggregatedMetadata.cab";
    pack(metadata, &[&packed]);
    let members = [
        "DesktopDeployment.cab", "SSU-25398.2000-x64.cab", "WSUSSCAN.cab",
    ];
    for name in members {
        write(name, &vec![7; 50_000]);
    }
    let msu = "update.msu";
    pack(msu, &[&members[..], &[metadata]].concat());
    fs::read(folder.path().join(msu)).unwrap()
}

#[test]
fn packages_as_server_23h2_has_them_are_read_by_their_metadata() {
    let file = "windows11.0-kb5087541-x64.msu";
    for (version, code) in [("25398.2330", 0), ("25398.2276", 3)] {
        let bytes = uup_style("5087541", version);
        let setup = CatalogSetup::new();
        setup.catalog.publish(
            "2026-05 Cumulative Update for Microsoft server operating system, version 23H2 for x64-based Systems (KB5087541)",
            &[(file, bytes)],
        );
        let mut fetch = setup.catalog_command(&["fetch", "25398.2330", "--output", "out"]);
        if code == 3 {
            fetch.fails(3, "download/other", &["25398.2276"]);
        } else {
            fetch.assert().code(0);
            let names = setup.names_in("out/KB5087541");
            assert_eq!(names, ["update.json", file]);
        }
    }
}

#[test]
fn a_genuine_package_that_says_nothing_of_itself_is_kept() {
    let setup = CatalogSetup::new();
    let bytes = cabinet(&[("readme.txt", b"hello")]);
    setup.catalog.publish(TITLE, &[(FILE, bytes.clone())]);
    setup.fetch().assert_code(0).assert_warning(&[FILE]);
    assert_eq!(fs::read(setup.out().join(FILE)).unwrap(), bytes);
    // Without the digest, nothing else verifies it.
    setup
        .catalog
        .change_last(|update| update.files[0].sha1 = None);
    let other = ["fetch", "17763.1158", "--output", "other"];
    setup
        .catalog_command(&[&other[..], &["--without-digest"]].concat())
        .fails(3, "download/other", &["pkgProperties.txt"]);
}
