//! End-to-end tests of `wincimg node hotfix resolve|search|script` with a fake catalog.

use std::fs;

use regex::Regex;
use serde_json::Value;
use wincimg_testkit::powershell::syntax_errors;
use wincimg_windows::update::Updates;

use crate::failure::{Fails, says, warning};
use crate::fake_catalog::setup::{CatalogSetup, FILE};
use crate::fake_catalog::{ERROR_PAGE, ResponseOverride, msu};

#[test]
fn a_build_leads_to_its_article_and_back() {
    let setup = CatalogSetup::new();
    let there = setup
        .run(&["resolve", "17763.1158", "--format", "json"])
        .assert_code(0)
        .json();
    let back = setup
        .run(&["resolve", "kb4549949", "--format", "json"])
        .assert_code(0)
        .json();
    assert_eq!(there, back);
    assert_eq!(there["build"], "17763.1158");
    assert_eq!(there["kb"], "KB4549949");
    assert_eq!(there["date"], "2020-04-14");
    assert_eq!(there["kind"], "B");
}

#[test]
fn a_revision_between_two_updates_names_both() {
    let setup = CatalogSetup::new();
    let outcome = setup
        .run(&["resolve", "17763.1040", "--format", "json"])
        .assert_code(1);
    let json = outcome.json();
    assert_eq!(json["kb"], Value::Null);
    assert_eq!(json["before"]["kb"], "KB4532691");
    assert_eq!(json["after"]["build"], "17763.1075");
    assert_contains!(
        outcome.stderr, "KB4532691", "17763.1039", "2020-02-11", "KB4537818", "2020-02-25",
    );
    outcome.assert_printed("wincimg node hotfix resolve 17763.1075");
}

#[test]
fn what_is_not_known_is_a_no_and_what_is_not_meant_is_wrong_usage() {
    let setup = CatalogSetup::new();
    setup
        .run(&["resolve", "17764.1"])
        .assert_code(1)
        .assert_printed("17764")
        .assert_printed("wincimg node hotfix resolve --latest 17763")
        .assert_not_printed("--refresh");
    setup
        .run(&["resolve", "--latest", "29501"])
        .assert_code(1)
        .assert_printed("wincimg node hotfix resolve --latest 29501 --refresh");
    setup
        .run(&["resolve", "KB9999999"])
        .assert_code(1)
        .assert_printed("KB9999999");
    setup
        .run(&["resolve", "17763"])
        .assert_code(2)
        .assert_printed("--latest 17763");
    setup
        .run(&["resolve", "ltsc2019"])
        .assert_code(2)
        .assert_printed("\"ltsc2019\"")
        .assert_printed("17763.1158");
    setup
        .catalog_command(&["fetch", "17763.1", "--output", "out"])
        .fails(1, "updates/not-found", &["17763.1"]);
    for command in [
        &["fetch", "17763.99999", "--output", "out"][..],
        &["script", "17763.99999"],
    ] {
        let failure =
            setup
                .catalog_command(command)
                .fails(1, "updates/not-found", &["17763.99999"]);
        failure.advises(&["wincimg node hotfix resolve 17763.99999 --refresh"]);
    }
}

#[test]
fn the_newest_update_is_the_revision_that_a_release_stands_for() {
    let setup = CatalogSetup::new();
    for (name, build) in [("ltsc2019", 17763), ("win2022", 20348), ("26100.1", 26100)] {
        let newest = Updates::embedded().newest_published(build).unwrap();
        let json = setup
            .run(&["resolve", "--latest", name, "--format", "json"])
            .assert_code(0)
            .json();
        assert_eq!(json["build"], newest.version().to_string(), "{name}");
    }
    setup
        .run(&["resolve", "--latest", "ltsc2018"])
        .assert_code(2)
        .assert_printed("ltsc2019");
}

#[test]
fn an_update_whose_article_is_not_known_yet_is_not_called_a_release() {
    let setup = CatalogSetup::new();
    for what in [&["17763.9487"][..], &["--latest", "17763"]] {
        let arguments = [&["script"], what].concat();
        let failure = setup
            .catalog_command(&arguments)
            .fails(1, "updates/not-found", &[]);
        assert_contains!(
            failure.message,
            "17763.9487, of 2026-11-10",
            "not known yet",
            "17763.9247"
        );
        assert_contains!(
            failure.hint,
            "wincimg node hotfix resolve 17763.9487 --refresh"
        );
    }
    let refresh = ["--refresh", "--release-info", "page.md"];
    let page = "| Update type | Date | Build | KB article |\n|---|---|---|---|\n\
                | 2026-11 B | 2026-11-10 | 17763.9487 | KB5131041 |\n";
    fs::write(setup.folder.path().join("page.md"), page).unwrap();
    let refreshed = setup
        .run(&[&["resolve", "17763.9487"], &refresh[..]].concat())
        .assert_code(0)
        .stdout;
    assert_eq!(refreshed, "17763.9487 KB5131041 2026-11-10 B\n");
    setup
        .catalog_command(&["fetch", "17763.1", "--output", "out"])
        .fails(1, "updates/not-found", &["17763.1", "initial release"]);
}

#[test]
fn a_refresh_is_kept_and_used_by_later_runs() {
    let setup = CatalogSetup::new();
    setup.catalog.set_release_info(include_str!(
        "../../crates/catalog/tests/data/windows-server-release-info.html"
    ));
    let page = format!("http://{}/release-info", setup.catalog.host);
    let refresh = [
        "--refresh", "--release-info", &page, "--insecure-registry", &setup.catalog.host,
    ];
    let latest = ["resolve", "--latest", "26100"];
    let before = setup.run(&latest).assert_code(0).stdout;
    let refreshed = setup
        .run(&[&latest[..], &refresh[..]].concat())
        .assert_code(0)
        .stdout;
    assert_ne!(before, refreshed);
    assert_eq!(refreshed, "26100.33500 KB5131031 2026-10-13 B\n");
    assert_eq!(setup.run(&latest).assert_code(0).stdout, refreshed);

    setup.catalog.set_release_info("<h1>We moved</h1>");
    setup
        .wincimg(&[&latest[..], &refresh[..]].concat())
        .fails(3, "updates/table", &[&page]);
    assert_eq!(setup.run(&latest).assert_code(0).stdout, refreshed);
}

/// The source of the page with the calendar of hotpatches.
const MARKDOWN: &str =
    include_str!("../../crates/catalog/tests/data/windows-server-release-info.md");

#[test]
fn a_page_given_as_a_file_is_read_from_its_file() {
    let setup = CatalogSetup::new();
    let row = "| LTSC | 2026-09 B | soon | 17763.9333 | [KB5131041](https://a) |";
    let page = MARKDOWN.replace(
        "| LTSC | 2026-09 B | 2026-09-08 | 17763",
        &format!("{row}\n| LTSC | 2026-09 B | 2026-09-08 | 17763"),
    );
    fs::write(setup.folder.path().join("page.md"), page).unwrap();
    let refresh = ["--refresh", "--release-info", "page.md"];
    let outcome = setup
        .run(&[&["resolve", "20348.5550"], &refresh[..]].concat())
        .assert_code(0)
        .assert_printed("LTSC | 2026-09 B | soon");
    assert_eq!(outcome.stdout, "20348.5550 KB5131021 2026-09-08 hotpatch\n");
    assert_eq!(setup.catalog.requests(), [""; 0]);

    let none = ["--refresh", "--release-info", "none.md"];
    setup
        .wincimg(&[&["resolve", "20348.5550"], &none[..]].concat())
        .fails(3, "file/io", &["none.md"]);
    let folder = ["--refresh", "--release-info", "."];
    setup
        .wincimg(&[&["resolve", "20348.5550"], &folder[..]].concat())
        .fails(3, "file/io", &["."]);
}

#[test]
fn every_command_works_with_the_refreshed_table() {
    let setup = CatalogSetup::new();
    fs::write(setup.folder.path().join("page.md"), MARKDOWN).unwrap();
    let simulated = || {
        setup
            .program()
            .args(["check-compat", "--host-build", "26100.33296"])
            .args(["--image-build", "26100.33500", "--on", "2026-10-20"])
            .args(["--simulate-hotfix", "KB5131031"])
            .output()
            .unwrap()
    };
    let before = simulated();
    assert_eq!(before.status.code(), Some(2), "{before:?}");
    setup
        .run(&[
            "resolve", "KB5131031", "--refresh", "--release-info", "page.md",
        ])
        .assert_code(0);
    let after = simulated();
    assert_eq!(after.status.code(), Some(0), "{after:?}");
    let text = setup
        .program()
        .args(["check-compat", "--host-build", "26100.33296"])
        .args(["--image-build", "26100.33499", "--on", "2026-10-20"])
        .prints();
    assert_contains!(text, "26100.33500", "KB5131031");
}

#[test]
fn a_table_without_the_last_months_is_reported() {
    let setup = CatalogSetup::new();
    let checked = |build: &str, day: &str| {
        let output = setup
            .program()
            .args(["check-compat", "--host-build", build])
            .args(["--image-build", build, "--on", day])
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(checked("17763.973", "2026-10-01"), "");
    for (build, latest) in [("17763.973", "17763"), ("26100.1742", "26100")] {
        let words = checked(build, "2027-01-01");
        let refresh = format!("wincimg node hotfix resolve --latest {latest} --refresh");
        says(&words, &warning(&["2026-09-14", &refresh]));
    }
}

#[test]
fn an_update_that_breaks_something_is_named_with_its_fix() {
    let setup = CatalogSetup::new();
    let text = setup
        .program()
        .args(["check-compat", "--host-build", "14393.9418"])
        .args(["--image-build", "14393.9512", "--on", "2026-09-20"])
        .prints();
    let breaks = ["KB5123099", "Remote Desktop", "KB5129239"];
    assert!(breaks.iter().all(|it| text.contains(it)), "{text}");
    setup
        .run(&["resolve", "14393.9512"])
        .assert_code(0)
        .assert_warning(&breaks);
}

#[test]
fn a_hotpatch_is_named_with_what_all_hosts_install() {
    let setup = CatalogSetup::new();
    let resolved = setup.run(&["resolve", "KB5052105"]).assert_code(0);
    assert_contains!(
        resolved.stderr, "warning: KB5052105", "KB5051987 (26100.3194"
    );
    // The catalog of the test does not have it.
    let script = setup.run_with_catalog(&["script", "26100.3107"]);
    assert_contains!(script.assert_code(1).stderr, "KB5051987 (26100.3194");
    let other = setup.run(&["resolve", "26100.3194"]).assert_code(0);
    assert!(!other.stderr.contains("hotpatch"), "{}", other.stderr);
}

#[test]
fn a_damaged_cache_is_reported_and_not_used() {
    let setup = CatalogSetup::new();
    let cache = setup.folder.path().join("cache/wincimg");
    fs::create_dir_all(&cache).unwrap();
    fs::write(cache.join("windows-updates.tsv"), "17763\n").unwrap();
    let outcome = setup
        .run(&["resolve", "17763.1158"])
        .assert_code(0)
        .assert_printed("line 1")
        .assert_printed("--refresh");
    assert_eq!(outcome.stdout, "17763.1158 KB4549949 2020-04-14 B\n");
}

#[test]
fn a_search_goes_through_all_pages() {
    let setup = CatalogSetup::new();
    for number in 0..60 {
        setup.catalog.publish(&format!("Update {number}"), &[]);
    }
    let json = setup
        .run_with_catalog(&["search", "KB4549949", "--format", "json"])
        .assert_code(0)
        .json();
    let updates = json["updates"].as_array().unwrap();
    assert_eq!(updates.len(), 60);
    assert_eq!(updates[59]["title"], "Update 59");
    assert_eq!(updates[59]["date"], "2020-04-14");
    assert_eq!(
        setup.catalog.requests(),
        ["GET /Search.aspx", "POST /Search.aspx", "POST /Search.aspx"]
    );
    let text = setup
        .run_with_catalog(&["search", "KB4549949"])
        .assert_code(0)
        .stdout;
    assert_eq!(text.lines().count(), 61);
}

#[test]
fn nothing_found_is_a_no_and_a_broken_answer_a_failure() {
    let setup = CatalogSetup::new();
    let outcome = setup
        .run_with_catalog(&["search", "KB1", "--format", "json"])
        .assert_code(1);
    assert_eq!(outcome.json()["updates"], serde_json::json!([]));
    outcome.assert_printed("\"KB1\"");
    setup.catalog.instead([ResponseOverride::Page(
        "<html>Sign in to the network</html>".to_owned(),
    )]);
    setup
        .catalog_command(&["search", "KB1"])
        .fails(3, "catalog/answer", &[]);
}

#[test]
fn an_error_page_that_stays_is_quoted() {
    let setup = CatalogSetup::new();
    setup
        .catalog
        .instead(vec![ResponseOverride::Page(ERROR_PAGE.to_owned()); 20]);
    setup
        .run_with_catalog(&["search", "x"])
        .assert_code(3)
        .assert_printed("8DDD0010");
}

#[test]
fn a_catalog_that_stays_overloaded_is_said_to_be() {
    let setup = CatalogSetup::new();
    setup
        .catalog
        .instead(vec![ResponseOverride::Status(503); 20]);
    setup
        .catalog_command(&["search", "x"])
        .fails(3, "network/answer", &["503"])
        .advises(&["try again later", "--catalog"]);
}

#[test]
fn a_catalog_without_tls_has_to_be_listed() {
    let setup = CatalogSetup::new();
    let address = format!("http://{}", setup.catalog.host);
    setup
        .run(&["search", "x", "--catalog", &address])
        .assert_code(3)
        .assert_printed(&format!("add --insecure-registry {}", setup.catalog.host));
}

#[test]
fn a_script_installs_what_the_catalog_lists() {
    let (setup, _) = CatalogSetup::with_april_2020();
    let mirror = "https://mirror.lan/hotfix";
    setup
        .run_with_catalog(&[
            "script", "17763.1158", "--from-url", mirror, "--restart", "--output", "a.ps1",
        ])
        .assert_code(0);
    let script = fs::read_to_string(setup.folder.path().join("a.ps1")).unwrap();
    assert_contains!(
        script,
        &format!("Url = '{mirror}/KB4549949/{FILE}'"),
        "Restart  = $true",
        "Revision = 1158"
    );
    assert_eq!(setup.file_requests(), [""; 0]);
}

#[test]
fn a_script_without_internet_takes_the_files_of_another_machine() {
    let (setup, _) = CatalogSetup::with_april_2020();
    let nobody = "127.0.0.1:1";
    let catalog = format!("http://{nobody}");
    let flags = ["--catalog", &catalog, "--insecure-registry", nobody];
    setup
        .wincimg(&[&["script", "17763.1158"], &flags[..]].concat())
        .fails(3, "network/unreachable", &[nobody])
        .advises(&[
            "--files DIR",
            "wincimg node hotfix fetch KB4549949 --output DIR",
        ]);
}

#[test]
fn a_script_for_a_folder_says_what_is_missing() {
    let (setup, _) = CatalogSetup::with_april_2020();
    let files = ["script", "17763.1158", "--files", "out"];
    setup
        .run(&files)
        .assert_code(3)
        .assert_printed("wincimg node hotfix fetch KB4549949 --output out");
    // A package without update.json is not a fetched update.
    fs::create_dir_all(setup.out()).unwrap();
    fs::write(setup.out().join(FILE), msu("4549949", "amd64", 5)).unwrap();
    setup
        .wincimg(&files)
        .fails(3, "updates/folder", &["out/KB4549949 has no update.json"]);
    setup.fetch().assert_code(0);
    let script = setup.run(&files).assert_code(0).stdout;
    assert_contains!(
        script,
        "Algorithm = 'SHA1'",
        "Folder   = \"$PSScriptRoot\\KB4549949\""
    );
    let share = [&files[..], &["--from-dir", "C:\\hotfix\\"]].concat();
    let script = setup.run(&share).assert_code(0).stdout;
    assert_contains!(script, "Folder   = 'C:\\hotfix\\KB4549949'");
}

/// A node does not get at a share with the credentials of the session.
#[test]
fn files_on_a_share_are_copied_to_each_node() {
    let (setup, _) = CatalogSetup::with_april_2020();
    setup.fetch().assert_code(0);
    let copied = |folder: &str| {
        let arguments = [
            "script", "17763.1158", "--files", "out", "--from-dir", folder,
        ];
        let script = setup.run(&arguments).assert_code(0).stdout;
        let (_, named) = script.split_once("Folder   = '").unwrap();
        let (_, condition) = script.split_once("$hotfix.Folder -match '").unwrap();
        let pattern = Regex::new(condition.split('\'').next().unwrap()).unwrap();
        pattern.is_match(named)
    };
    assert!(copied(r"\\share\hotfix"));
    assert!(!copied(r"C:\hotfix"));
}

/// Their sessions know nothing of `-WhatIf`.
#[test]
fn a_dry_run_changes_nothing_on_other_nodes() {
    let (setup, _) = CatalogSetup::with_april_2020();
    setup.fetch().assert_code(0);
    let script = setup.run(&["script", "17763.1158", "--files", "out"]);
    let script = script.assert_code(0).stdout;
    let (_, nodes) = script.split_once("function Invoke-OnNodes(").unwrap();
    let (nodes, _) = nodes.split_once("\n}\n").unwrap();
    let (before, rest) = nodes
        .split_once("if ($PSCmdlet.ShouldProcess($node")
        .unwrap();
    let (changes, after) = rest.split_once("\n                }\n").unwrap();
    for change in ["New-Item ", "Copy-Item "] {
        assert_contains!(changes, change);
        assert!(![before, after].concat().contains(change), "{change}");
    }
    assert_contains!(nodes, "Remove-PSSession -Session $session -WhatIf:$false");
    // Nor is it a failure that the files are not there.
    let (_, verified) = script.split_once("function Get-VerifiedFile(").unwrap();
    let (before, _) = verified.split_once("throw ").unwrap();
    assert_contains!(
        before,
        "if ($WhatIfPreference -and ($hotfix.Folder -like \"$own\\*\"))"
    );
}

#[test]
fn scripts_are_powershell_by_its_grammar() {
    let (setup, _) = CatalogSetup::with_april_2020();
    setup.fetch().assert_code(0);
    for more in [
        &[][..],
        &["--restart", "--from-url", "https://mirror.lan/it's"],
        &["--files", "out"],
        &["--files", "out", "--from-dir", "C:\\f\u{fc}r 'alle'"],
    ] {
        let script = setup.run_with_catalog(&[&["script", "17763.1158"], more].concat());
        let script = script.assert_code(0).stdout;
        assert_eq!(syntax_errors(&script), [""; 0]);
        assert_ne!(syntax_errors(&(script + "\nif (")), [""; 0]);
    }
}

#[test]
fn the_script_changes_nothing_before_its_files_are_verified() {
    let (setup, _) = CatalogSetup::with_april_2020();
    let script = setup
        .run_with_catalog(&["script", "17763.1158"])
        .assert_code(0)
        .stdout;
    let (_, install) = script.split_once("function Install-Hotfix {").unwrap();
    let (install, _) = install.split_once("\n}").unwrap();
    let at = |words: &str| install.find(words).unwrap();
    assert!(at("Assert-Build") < at("Get-VerifiedFile"));
    assert!(at("Get-VerifiedFile") < at("Disable-AutomaticUpdate"));
    assert!(at("Disable-AutomaticUpdate") < at("Install-Package"));
    // -WhatIf is checked before each change of a node.
    for changing in [
        "Set-AutomaticUpdate 1",
        "Remove-WindowsPackage -Online",
        "Add-Package $path $isStack",
    ] {
        let (before, _) = script.split_once(changing).unwrap();
        let function = before.rsplit("\nfunction ").next().unwrap();
        assert!(function.contains("$PSCmdlet.ShouldProcess("), "{changing}");
    }
    assert!(!script.contains("[Console]::Error"));
    let (_, undo) = script.split_once("function Undo-Hotfix {").unwrap();
    let (detail, _) = undo.split_once("Get-WindowsPackage").unwrap();
    assert_contains!(detail, "-lt $hotfix.Revision", "is not installed");
}

#[test]
fn every_command_that_a_hint_names_can_run() {
    let (setup, _) = CatalogSetup::with_april_2020();
    setup.catalog.set_release_info(include_str!(
        "../../crates/catalog/tests/data/windows-server-release-info.html"
    ));
    let catalog = format!("http://{}", setup.catalog.host);
    let mut run = 0;
    for arguments in [
        &["resolve", "17763.1040"][..],
        &["resolve", "17763"],
        &["resolve", "17764.1"],
        &["resolve", "22621.1"],
        &["resolve", "--latest", "29501"],
        &["resolve", "17763.99999"],
        &["resolve", "KB9999999"],
        &["resolve", "17763.1158"],
        &["script", "17763.1158", "--files", "out"],
        &["fetch", "17763.1039", "--output", "out"],
        &["script", "17763.9487"],
    ] {
        let printed = setup.run_with_catalog_if_supported(arguments).stderr;
        let commands = printed.lines().filter_map(|line| {
            let (_, command) = line.split_once("wincimg ")?;
            Some(command.split([';', '`']).next()?.to_owned())
        });
        for command in commands {
            let mut words = vec![format!("wincimg {command}")];
            let of_run = ["--catalog", "--insecure-registry"].map(|flag| command.contains(flag));
            if !command.starts_with("node hotfix resolve") && !of_run[0] {
                words.push(format!("--catalog {catalog}"));
            }
            if command.contains("--refresh") {
                words.push(format!("--release-info {catalog}/release-info"));
            }
            if !of_run[1] {
                words.push(format!("--insecure-registry {}", setup.catalog.host));
            }
            let output = setup.shell(&words.join(" "));
            // Finding nothing new is a valid answer.
            let code = output.status.code().unwrap();
            assert!(code <= 1, "{arguments:?}: {words:?}: {output:?}");
            run += 1;
        }
    }
    assert!(run >= 8, "{run}");
}

/// The commands of the examples in a help text.
fn examples(help: &str) -> Vec<String> {
    let joined = help.replace("\\\n", "");
    joined
        .lines()
        .filter_map(|line| line.strip_prefix("  wincimg "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_command_of_the_help_texts_runs() {
    let mut run = 0;
    for about in ["", "resolve", "search", "fetch", "script"] {
        let (setup, _) = CatalogSetup::with_april_2020();
        let newest = "2026-09 Cumulative Update for Microsoft server operating system version 24H2 for x64-based Systems (KB5129235)";
        let wim = b"MSWIM\0\0\0".to_vec();
        setup
            .catalog
            .publish(newest, &[("windows11.0-kb5129235-x64.msu", wim)]);
        setup.catalog.set_release_info(include_str!(
            "../../crates/catalog/tests/data/windows-server-release-info.html"
        ));
        // Prerequisite of examples that use fetched files.
        setup
            .run_with_catalog(&["fetch", "17763.1158", "--output", "./hotfix"])
            .assert_code(0);
        let help =
            setup.run(&[&[about], &["--help"][..]].concat()[usize::from(about.is_empty())..]);
        for example in examples(&help.assert_code(0).stdout) {
            let mut words = vec![format!("wincimg {example}")];
            let catalog = format!("http://{}", setup.catalog.host);
            if !example.starts_with("node hotfix resolve") {
                words.push(format!("--catalog {catalog}"));
            }
            if example.contains("--refresh") {
                words.push(format!("--release-info {catalog}/release-info"));
            }
            words.push(format!("--insecure-registry {}", setup.catalog.host));
            let line = words.join(" ");
            let output = setup.shell(&line);
            assert!(output.status.success(), "{line}: {output:?}");
            run += 1;
        }
    }
    assert!(run >= 12, "{run}");
}
