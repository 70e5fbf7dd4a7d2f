//! `wincimg fleet`: lists of images that follow their nodes, with a registry that records requests.

use std::collections::BTreeSet;
use std::time::Duration;
use std::{fs, thread};

use bytes::Bytes;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use wincimg_demo::add_base_images;
use wincimg_testkit::noise;
use wincimg_testkit::proxy::{FaultProxy, ProxyFault};
use wincimg_windows::version::WindowsVersion;

use crate::api::windows_node;
use crate::failure::{Fails, says, warning};
use crate::site::{Site, answer_of, report_of};

const WEB: &str = "name = \"web\"\nbase = \"nanoserver\"\n\
    [[files]]\nfrom = \"site\"\nto = 'C:\\site'\n";

/// A site with nodes of two builds and a fleet of two images.
pub(crate) fn site() -> Site {
    let site = Site::new();
    site.write("web/recipe.toml", WEB);
    site.write("web/site/index.html", "hello");
    fleet(
        &site,
        "[[image]]\nbuild = \"pause\"\ntag = \"3.9\"\n[[image]]\nbuild = \"./web\"\n",
    );
    let of_cluster = [
        ("win-a", Some("17763.973"), "web"),
        ("win-b", Some("20348.2402"), "web"),
    ];
    write_nodes(&site, &of_cluster);
    site
}

/// Writes a fleet whose images go to the site's registry.
pub(crate) fn fleet(site: &Site, images: &str) {
    let host = site.host();
    let top = format!("registry = \"{host}/apps\"\nbase-registry = \"{host}/mcr\"\ntag = \"1\"\n");
    site.write("fleet.toml", format!("{top}{images}"));
}

/// Updates a node, for which a base exists.
fn update_node(site: &Site) {
    let version = [WindowsVersion::new(17763, 1158)];
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &version))
        .unwrap();
    let of_cluster = [
        ("win-a", Some("17763.1158"), "web"),
        ("win-b", Some("20348.2402"), "web"),
    ];
    write_nodes(site, &of_cluster);
}

/// Writes nodes with their builds and a label.
pub(crate) fn write_nodes(site: &Site, nodes: &[(&str, Option<&str>, &str)]) {
    let items: Vec<Value> = nodes
        .iter()
        .map(|(name, build, pool)| {
            let kernel = build.map(|build| format!("10.0.{build}"));
            let mut node = windows_node(name, &kernel.unwrap_or_default());
            node["metadata"]["labels"]["pool"] = json!(pool);
            node["status"]["nodeInfo"]["containerRuntimeVersion"] = json!("containerd://1.7.0");
            node
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    site.write("nodes.json", list.to_string());
}

pub(crate) fn command(site: &Site, what: &str, more: &[&str]) -> assert_cmd::Command {
    let mut words = vec!["fleet", what, "fleet.toml", "--nodes", "nodes.json"];
    words.extend(more);
    site.with_no_bases(&words)
}

fn run(site: &Site, what: &str) -> (i32, Value) {
    answer_of(&mut command(site, what, &[]))
}

/// The states of all builds of an image, by its place in the file.
fn states(report: &Value, image: usize) -> Vec<String> {
    let builds = report["images"][image]["builds"].as_array().unwrap();
    let states = builds.iter();
    states
        .map(|build| build["state"].as_str().unwrap().to_owned())
        .collect()
}

/// Runs a command, and asserts the exit code and the states of an image's builds.
#[track_caller]
fn finds(site: &Site, what: &str, code: i32, image: usize, expected: &[&str]) -> Value {
    let (found, report) = run(site, what);
    assert_eq!(found, code, "{report:#}");
    assert_eq!(states(&report, image), expected, "{report:#}");
    report
}

/// A part of every entry of the index of `apps/web`.
fn entries_of(site: &Site, tag: &str, part: &str) -> Vec<Value> {
    let index = site.manifest("apps/web", tag);
    let entries = index["manifests"].as_array().unwrap().iter();
    entries
        .map(|entry| entry.pointer(part).unwrap().clone())
        .collect()
}

/// A list of `count` pause images.
fn pauses(count: usize) -> String {
    let one = |number| format!("[[image]]\nbuild = \"pause\"\nname = \"app-{number}\"\n");
    let images: Vec<String> = (0..count).map(one).collect();
    images.concat()
}

#[test]
fn the_feed_of_dockerfiles_is_a_flag() {
    let site = site();
    fleet(
        &site,
        "[[image]]\nbuild = \"./app\"\n[[image]]\nbuild = \"./web\"\n",
    );
    let text =
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nRUN choco install a --version 1 -y\n";
    site.write("app/Dockerfile", text);
    for (more, part) in [
        (&[][..], "--choco-feed"),
        (&["--choco-feed", "none"], "none"),
    ] {
        for what in ["check", "build"] {
            let (code, report) = answer_of(&mut command(&site, what, more));
            assert_eq!(code, 1, "{report}");
            let failed = report["images"][0].to_string();
            assert!(failed.contains(part), "{what} {more:?}: {failed}");
        }
    }
    // A recipe has no feed.
    assert_eq!(states(&run(&site, "build").1, 1), ["current", "current"]);
}

#[test]
fn what_is_missing_is_made_and_what_exists_is_not_touched() {
    let site = site();
    let (code, report) = run(&site, "check");
    assert_eq!((code, &report["complete"]), (1, &json!(false)));
    assert_eq!(report["summary"]["missing"], 4);
    assert_eq!(site.writes_since(0), Vec::<String>::new());

    let (code, report) = run(&site, "build");
    assert_eq!(
        (code, &report["summary"]["built"]),
        (0, &json!(4)),
        "{report:#}"
    );
    let image = &report["images"][1]["builds"][0];
    let expected = format!("{}/apps/web:1-10.0.17763.973", site.host());
    assert_eq!(image["image"], expected.as_str());
    assert_eq!(image["nodes"], json!(["win-a"]));

    // Nothing is said of security without a table.
    assert_eq!(report["missing_fixes"], Value::Null);

    // Nothing to do: one request for each tag, and no writes.
    let before = site.requests();
    let (code, report) = run(&site, "build");
    assert_eq!(
        (code, &report["summary"]["current"]),
        (0, &json!(4)),
        "{report:#}"
    );
    assert_eq!(site.writes_since(before), Vec::<String>::new());
    let asked = site.requests_since(before);
    let of_tags = asked.iter().filter(|request| request.contains("/apps/"));
    assert_eq!(of_tags.count(), 2, "{asked:?}");
    let lists = asked.iter().filter(|request| request.contains("tags/list"));
    assert_eq!(lists.count(), 1, "{asked:?}");

    // A file of one of them changes.
    site.write("web/site/index.html", "hello again");
    let report = finds(&site, "check", 1, 0, &["current", "current"]);
    assert_eq!(states(&report, 1), ["outdated", "outdated"]);
    let reason = |report: &Value| {
        let reason = report["images"][1]["builds"][0]["reason"].as_str();
        reason.unwrap().to_owned()
    };
    // The inputs changed, not the base.
    assert!(!reason(&report).contains("10.0."), "{}", reason(&report));
    finds(&site, "build", 0, 1, &["built", "built"]);

    update_node(&site);
    let (_, report) = run(&site, "check");
    assert_eq!(states(&report, 0), ["outdated", "current"]);
    let reason = report["images"][0]["builds"][0]["reason"].as_str().unwrap();
    assert_contains!(reason, "10.0.17763.973", "10.0.17763.1158");
    finds(&site, "build", 0, 0, &["built", "current"]);
    let check = [
        "check-compat",
        &format!("{}/apps/pause:3.9", site.host()),
        "--nodes",
        "nodes.json",
        "--strict",
    ];
    site.with_no_bases(&check).assert().code(0);
}

/// A fleet of images that are built on one another, and of `d`, which copies from the lowest.
fn stacked() -> Site {
    let site = site();
    let copy = format!("COPY --from={}/apps/web:1 C:/site C:/site", site.host());
    let text = format!("FROM mcr.microsoft.com/windows/nanoserver:1809\n{copy}\n");
    site.write("d/Dockerfile", text);
    for (name, base) in [("c", "b"), ("b", "web")] {
        let text = format!("FROM {}/apps/{base}:1\nENV IMAGE={name}\n", site.host());
        site.write(&format!("{name}/Dockerfile"), text);
    }
    let images = ["c", "b", "d", "web"].map(|name| format!("[[image]]\nbuild = \"./{name}\"\n"));
    fleet(&site, &images.concat());
    site
}

#[test]
fn images_of_a_fleet_are_built_after_those_they_are_made_of() {
    let site = stacked();
    let finds_all = |what: &str, code: i32, state: &str| {
        let (found, report) = run(&site, what);
        assert_eq!(found, code, "{report:#}");
        for image in 0..4 {
            assert_eq!(states(&report, image), [state; 2], "{report:#}");
        }
        report["images"][0]["builds"][0]["reason"].to_string()
    };
    let reason = finds_all("check", 1, "missing");
    assert_contains!(reason, "/apps/b:1 is missing");
    finds_all("build", 0, "built");
    finds_all("check", 0, "current");
    site.write("web/site/index.html", "hello again");
    let reason = finds_all("check", 1, "outdated");
    assert_contains!(reason, "/apps/b:1 is outdated");
    finds_all("build", 0, "built");
    finds_all("build", 0, "current");

    let counts = ["0/3", "1/3", "2/3"].map(|shard| {
        let (_, report) = answer_of(&mut command(&site, "check", &["--shard", shard]));
        report["images"].as_array().unwrap().len()
    });
    assert_eq!(counts.iter().max(), Some(&4), "{counts:?}");
}

#[test]
fn an_image_that_is_built_on_itself_is_refused_at_its_entry() {
    let site = stacked();
    let text = format!("FROM {}/apps/c:1\nENV A=1\n", site.host());
    site.write("b/Dockerfile", text);
    let through = format!("through {}/apps/b:1", site.host());
    let values = ["fleet.toml:5:9: ", "/apps/c:1", &through];
    command(&site, "build", &[]).fails(2, "fleet/invalid", &values);
}

#[test]
fn an_image_without_windows_may_be_below_others() {
    let site = site();
    let agent = "name = \"agent\"\nbase = \"hostprocess\"\nentrypoint = [\"a.exe\"]\n\
                 [[files]]\ncontent = \"x\"\nto = 'C:\\a.exe'\n";
    site.write("agent/recipe.toml", agent);
    let text = format!("FROM {}/apps/agent:1\nENV A=1\n", site.host());
    site.write("tool/Dockerfile", text);
    fleet(
        &site,
        "[[image]]\nbuild = \"./tool\"\n[[image]]\nbuild = \"./agent\"\n",
    );
    finds(&site, "check", 1, 0, &["missing"; 2]);
    let report = finds(&site, "build", 0, 0, &["built"; 2]);
    assert_eq!(states(&report, 1), ["built"]);
    let tag = format!("{}/apps/tool:1-hostprocess", site.host());
    assert_eq!(report["images"][0]["builds"][1]["image"], tag.as_str());
    finds(&site, "check", 0, 0, &["current"; 2]);
}

#[test]
fn the_entry_that_a_node_selects_is_checked_in_each_run() {
    let site = Site::new();
    let base = [WindowsVersion::new(26100, 2314)];
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &base))
        .unwrap();
    fleet(&site, "[[image]]\nbuild = \"pause\"\n");
    let runtime = |version: &str| {
        let nodes = [("win-a", "26100.2314"), ("win-b", "26200.7171")];
        let nodes = nodes.map(|(name, build)| {
            let mut node = windows_node(name, &format!("10.0.{build}"));
            node["status"]["nodeInfo"]["containerRuntimeVersion"] =
                json!(format!("containerd://{version}"));
            node
        });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": nodes});
        site.write("nodes.json", list.to_string());
    };
    // Of the second node, the first entry's image is reported to fail; it selects that one.
    runtime("2.4.0");
    finds(&site, "build", 0, 0, &["built", "built"]);
    for what in ["check", "build"] {
        let (code, report, said) = report_of(&mut command(&site, what, &[]));
        assert_eq!(code, 0, "{said}");
        assert_contains!(said, "0xc0370112");
        assert_eq!(states(&report, 0), ["current", "current"]);
        let builds = &report["images"][0]["builds"];
        assert_eq!(builds[0]["warnings"], Value::Null);
        assert_contains!(builds[1]["warnings"][0], "0xc0370112");
    }
    // This one selects entries of its own build alone.
    runtime("1.7.0");
    let report = finds(&site, "check", 1, 0, &["current", "failed"]);
    let problem = &report["images"][0]["builds"][1]["problem"];
    assert_eq!(problem["code"], "tag/unserved");
    assert_contains!(problem["problem"], "win-b");
}

/// Nodes on both sides of the update that changed the interface, and one of another build.
fn mixed(site: &Site, patched: usize) {
    let version = [WindowsVersion::new(17763, 1158)];
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &version))
        .unwrap();
    let names = ["win-1", "win-2", "win-3"];
    let mut of_cluster = vec![
        ("win-old", Some("17763.973"), "web"),
        ("win-c", Some("20348.2402"), "web"),
    ];
    let patched = names.iter().take(patched);
    of_cluster.extend(patched.map(|name| (*name, Some("17763.1158"), "web")));
    write_nodes(site, &of_cluster);
}

#[test]
fn one_odd_node_does_not_stop_the_rest() {
    let site = site();
    fleet(&site, "[[image]]\nbuild = \"./web\"\n");
    mixed(&site, 2);
    let report = finds(&site, "build", 1, 0, &["failed", "built", "built"]);
    let odd = &report["images"][0]["builds"][0];
    assert_eq!(odd["nodes"], json!(["win-old"]));
    let problem = odd["problem"]["problem"].as_str().unwrap();
    assert_contains!(problem, "17763.1158", "17763.973");
    assert_eq!(odd["problem"]["code"], "tag/several");
    let hint = odd["problem"]["hint"].as_str().unwrap();
    let versions = entries_of(&site, "1", "/platform/os.version");
    assert_eq!(versions, ["10.0.20348.2402", "10.0.17763.1158"]);

    // The hint's command publishes the image of the odd node beside the index.
    let (_, command) = hint.split_once("version tag: wincimg ").unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    site.with_no_bases(&words).assert().code(0);
    let tag = format!("{}/apps/web:1-10.0.17763.973", site.host());
    let check = ["check-compat", &tag, "--host-build", "17763.973"];
    site.with_no_bases(&check).assert().code(0);
}

#[test]
fn the_command_of_a_hint_makes_the_image_that_the_fleet_would() {
    let site = site();
    let from = "FROM mcr.microsoft.com/windows/nanoserver:1809";
    site.write("app/Dockerfile", format!("{from}\nLABEL made=other\n"));
    site.write("out/a.txt", "a");
    let stages = format!(
        "FROM golang AS out\nRUN go build\n\
         {from} AS one\nCOPY --from=out /a.txt C:/a.txt\nLABEL made=right\n\
         {from}\nLABEL made=wrong\n"
    );
    site.write("app/Dockerfile.win", stages);
    fleet(
        &site,
        "match = \"exact\"\n[[image]]\nbuild = \"./app\"\nfile = \"./app/Dockerfile.win\"\n\
         target = \"one\"\nstage = { out = \"out\" }\ncontext = \"app\"\n\
         label = { team = \"web\" }\nmanifest-format = \"docker\"\n",
    );
    mixed(&site, 2);
    let (code, report) = run(&site, "build");
    assert_eq!(code, 1, "{report:#}");
    let odd = &report["images"][0]["builds"][0]["problem"];
    let hint = odd["hint"].as_str().unwrap();
    let (_, command) = hint.split_once("version tag: wincimg ").unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    site.with_no_bases(&words).assert().code(0);
    let inspect = |tag: &str| {
        let image = format!("{}/apps/app:1-10.0.{tag}", site.host());
        let (_, shown) = answer_of(&mut site.with_no_bases(&["inspect", &image]));
        shown.to_string()
    };
    for tag in ["17763.973", "17763.1158"] {
        let label = |name: &str, value: &str| format!("\"{name}\":\"{value}\"");
        let labels = [label("made", "right"), label("team", "web")];
        assert_contains!(inspect(tag), &labels[0], &labels[1]);
    }
    assert_contains!(command, "--match exact", "--manifest-format docker");
}

#[test]
fn the_command_that_locks_a_download_names_the_base_registry() {
    let site = site();
    let text = "FROM mcr.microsoft.com/windows/nanoserver:1809\nADD https://x.test/a.zip C:/a/\n";
    site.write("app/Dockerfile", text);
    fleet(&site, "[[image]]\nbuild = \"./app\"\n");
    let (_, report) = run(&site, "build");
    let hint = report["images"][0]["problem"]["hint"].as_str().unwrap();
    let base = format!(" --base-registry {}/mcr ", site.host());
    assert_contains!(hint, "wincimg build ./app --host-build ", &base);
    assert!(hint.ends_with(" --update-lock"), "{hint}");
}

#[test]
fn a_typed_base_registry_is_not_dropped_for_that_of_the_file() {
    let site = site();
    for command in ["check", "build"] {
        self::command(&site, command, &["--base-registry", "127.0.0.1:9"]).fails(
            2,
            "usage",
            &["--base-registry", "fleet.toml"],
        );
    }
}

#[test]
fn lines_for_windows_are_told_though_their_base_cannot_be_read() {
    let site = site();
    site.write(
        "app/Dockerfile",
        "FROM 127.0.0.1:1/golang:nanoserver AS made\nRUN msbuild app.sln\n\
         FROM mcr.microsoft.com/windows/nanoserver:1809\nCOPY --from=made /app.exe /\n",
    );
    fleet(&site, "[[image]]\nbuild = \"./app\"\n");
    let (_, report) = run(&site, "check");
    let problem = &report["images"][0]["problem"];
    assert_eq!(problem["code"], "dockerfile/needs-windows", "{report:#}");
    let hint = problem["hint"].as_str().unwrap();
    assert_contains!(hint, "run the line: wincimg build ./app --host-build ");
    assert!(
        hint.ends_with(" --join --push --docker-host tcp://HOST:2376"),
        "{hint}"
    );
}

#[test]
fn what_serves_a_node_today_is_kept() {
    let site = site();
    fleet(&site, "[[image]]\nbuild = \"./web\"\n");
    assert_eq!(run(&site, "build").0, 0);
    mixed(&site, 3);
    finds(&site, "build", 1, 0, &["current", "failed", "current"]);
    let versions = entries_of(&site, "1", "/platform/os.version");
    assert_eq!(versions, ["10.0.20348.2402", "10.0.17763.973"]);
}

#[test]
fn all_or_nothing_publishes_no_image_that_some_host_lacks() {
    let site = site();
    fleet(&site, "[[image]]\nbuild = \"./web\"\n");
    mixed(&site, 2);
    let before = site.requests();
    let (code, report) = answer_of(&mut command(&site, "build", &["--all-or-nothing"]));
    assert_eq!(code, 1);
    assert_eq!(states(&report, 0), ["failed", "failed", "failed"]);
    let hint = report["images"][0]["problem"]["hint"].as_str().unwrap();
    assert_contains!(hint, "wincimg build ./web --host-build ");
    assert_eq!(site.writes_since(before), Vec::<String>::new());
}

#[test]
fn entries_of_other_platforms_stay_and_labels_reach_the_image() {
    let site = site();
    let linux = json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 2,
        "digest": format!("sha256:{}", "1".repeat(64)),
        "platform": {"os": "linux", "architecture": "amd64"}});
    let media_type = "application/vnd.oci.image.index.v1+json";
    let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": [linux]});
    site.registry.with(|stored| {
        let bytes = Bytes::from(index.to_string());
        stored.add_manifest("apps/web", "1", media_type, bytes)
    });
    let image = "label = { team = \"web\" }\n[[image]]\nbuild = \"./web\"\nlabel = { tier = 1 }\n";
    fleet(&site, image);
    let (code, report) = run(&site, "build");
    assert_eq!(code, 0, "{report:#}");
    let systems = entries_of(&site, "1", "/platform/os");
    assert_eq!(systems, ["linux", "windows", "windows"]);
    let tag = report["images"][0]["builds"][0]["image"].as_str().unwrap();
    let (_, shown) = answer_of(&mut site.with_no_bases(&["inspect", tag]));
    let shown = shown.to_string();
    assert_contains!(shown, "\"team\":\"web\"", "\"tier\":\"1\"");
}

#[test]
fn what_fails_of_one_image_stops_no_other() {
    let site = site();
    site.write(
        "runs/recipe.toml",
        "name = \"runs\"\nbase = \"nanoserver\"\n[[run]]\ncommand = [\"a.exe\"]\n",
    );
    site.write("wrong/recipe.toml", "name = \"wrong\"\nbase = nanoserver\n");
    fleet(
        &site,
        "[[image]]\nbuild = \"runs\"\n[[image]]\nbuild = \"wrong\"\n\
         [[image]]\nbuild = \"gone\"\nname = \"gone\"\n[[image]]\nbuild = \"web\"\n",
    );
    // No base matches the last one.
    write_nodes(
        &site,
        &[
            ("win-a", Some("17763.973"), "web"),
            ("win-c", Some("18363.592"), "web"),
            ("win-d", None, "web"),
        ],
    );
    let (code, report, printed) = report_of(&mut command(&site, "build", &[]));
    assert_eq!(code, 1);
    says(&printed, &warning(&["win-d"]));
    assert_eq!(report["left_out"], json!(["win-d"]));
    let problem = |image: usize| report["images"][image]["problem"]["problem"].to_string();
    assert_contains!(problem(0), "Docker");
    let hint = report["images"][0]["problem"]["hint"].as_str().unwrap();
    assert_contains!(hint, "--join --push --docker-host tcp://HOST:2376");
    assert_contains!(problem(1), "recipe.toml:2:");
    assert_contains!(problem(2), "gone");
    assert_eq!(states(&report, 3), ["built", "failed"]);
    let nothing = &report["images"][3]["builds"][1]["problem"]["problem"];
    assert_contains!(nothing, "18363.592");
    let text = command(&site, "build", &[]).assert().code(1);
    text.stdout(contains("error: ").and(contains("hint: wincimg build")));
}

#[test]
fn images_are_for_the_nodes_that_their_selectors_choose() {
    let site = site();
    let of_cluster = [
        ("win-a", Some("17763.973"), "web"),
        ("win-b", Some("20348.2402"), "shop"),
    ];
    write_nodes(&site, &of_cluster);
    fleet(
        &site,
        "selector = \"pool=web\"\n[[image]]\nbuild = \"pause\"\n\
         [[image]]\nbuild = \"./web\"\nselector = \"pool in (web, shop)\"\n\
         [[image]]\nbuild = \"pause\"\nname = \"none\"\nselector = \"pool=cache\"\n",
    );
    let (_, report, printed) = report_of(&mut command(&site, "check", &[]));
    assert_eq!(states(&report, 0).len(), 1);
    assert_eq!(states(&report, 1).len(), 2);
    assert_eq!(states(&report, 2).len(), 0);
    assert_contains!(printed, "pool=cache");
    // Reports say so, too.
    let warnings = json!(["no Windows node matches pool=cache"]);
    assert_eq!(report["images"][2]["warnings"], warnings);
    for (format, skipped) in [
        ("text", "warning: no Windows node matches pool=cache"),
        (
            "junit",
            "<skipped message=\"skipped: no Windows node matches",
        ),
        ("markdown", "| skipped | no Windows node matches"),
        ("html", "skipped<td>no Windows node matches"),
    ] {
        let text = command(&site, "check", &["--quiet", "--format", format]).prints();
        assert!(text.contains(skipped), "{text}");
    }
}

#[test]
fn an_image_without_its_sources_is_put_on_the_base_that_fits() {
    let site = site();
    assert_eq!(run(&site, "build").0, 0);
    let image = format!("{}/apps/web:1", site.host());
    fleet(&site, &format!("[[image]]\nupdate = \"{image}\"\n"));
    finds(&site, "check", 0, 0, &["current"; 2]);
    update_node(&site);
    finds(&site, "check", 1, 0, &["outdated", "current"]);
    let report = finds(&site, "build", 0, 0, &["built", "current"]);
    assert_eq!(report["images"][0]["reference"], image.as_str());
    let (code, report) = run(&site, "check");
    assert_eq!((code, &report["complete"]), (0, &json!(true)), "{report:#}");
}

#[test(multi_thread)]
async fn a_tag_that_cannot_be_read_is_missing_with_the_reason() {
    let site = site();
    let proxy = FaultProxy::start(site.host(), |passed| {
        if passed.method == "GET" && passed.path.contains("/apps/") {
            return ProxyFault::Answer(403, Vec::new(), "no".to_owned());
        }
        ProxyFault::Pass
    })
    .await;
    let list = fs::read_to_string(site.path("fleet.toml")).unwrap();
    let own = format!("\"{}/apps\"", site.host());
    let behind = format!("\"{}/apps\"", proxy.host());
    site.write("fleet.toml", list.replace(&own, &behind));
    let report = finds(&site, "check", 1, 1, &["missing"; 2]);
    let reason = report["images"][1]["builds"][0]["reason"].as_str().unwrap();
    assert_contains!(reason, "403");
}

#[test]
fn an_update_under_another_tag_has_the_state_of_that_tag() {
    let site = site();
    assert_eq!(run(&site, "build").0, 0);
    let image = format!("{}/apps/web:1", site.host());
    fleet(
        &site,
        &format!("[[image]]\nupdate = \"{image}\"\ntag = \"live\"\n"),
    );
    finds(&site, "check", 1, 0, &["missing"; 2]);
    finds(&site, "build", 0, 0, &["built"; 2]);
    let digests = |tag: &str| entries_of(&site, tag, "/digest");
    assert_eq!(digests("live"), digests("1"), "on their bases already");
    let from = site.requests();
    finds(&site, "build", 0, 0, &["current"; 2]);
    assert_eq!(site.writes_since(from), Vec::<String>::new());
    update_node(&site);
    assert_eq!(states(&run(&site, "build").1, 0), ["built", "current"]);
    assert_ne!(digests("live"), digests("1"));
    let (code, report) = run(&site, "check");
    assert_eq!((code, &report["complete"]), (0, &json!(true)), "{report:#}");
}

#[test]
fn what_an_update_of_a_fleet_lacks_is_named_in_the_words_of_its_file() {
    let site = site();
    assert_eq!(run(&site, "build").0, 0);
    let image = format!("{}/apps/web:1", site.host());
    let update = |more: &str| fleet(&site, &format!("[[image]]\nupdate = \"{image}\"\n{more}"));
    let hint = |problem: &Value| problem["problem"]["hint"].as_str().unwrap().to_owned();
    update("base = \"nanoserver\"\n");
    mixed(&site, 2);
    let (code, report) = run(&site, "build");
    assert_eq!(code, 1, "{report:#}");
    let builds = report["images"][0]["builds"].as_array().unwrap();
    let odd = builds
        .iter()
        .find(|build| build["state"] == "failed")
        .unwrap();
    let of_host = hint(odd);
    let (_, command) = of_host.split_once("version tag: wincimg ").unwrap();
    assert_contains!(command, "--base nanoserver --base-registry ");
    let words: Vec<&str> = command.split(' ').collect();
    site.with_no_bases(&words).assert().code(0);
}

#[test]
fn a_dockerfile_is_built_again_when_a_file_of_its_folder_changes() {
    let site = site();
    site.write(
        "shop/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nARG VERSION=1\nCOPY app C:/app\nENV V=$VERSION\n",
    );
    site.write("shop/app/a.txt", "a");
    let image = "[[image]]\nbuild = \"shop\"\nbuild-arg = { VERSION = 2 }\ntag = \"v${VERSION}\"\n";
    fleet(&site, image);
    let (code, report) = run(&site, "build");
    assert_eq!(code, 0, "{report:#}");
    let reference = format!("{}/apps/shop:v2", site.host());
    assert_eq!(report["images"][0]["reference"], reference.as_str());
    assert_eq!(run(&site, "check").0, 0);
    site.write("shop/app/a.txt", "b");
    finds(&site, "check", 1, 0, &["outdated"; 2]);
    // A report in the folder is not part of the image.
    for what in ["build", "check"] {
        let report = ["--report", "json:shop/app/report.json"];
        let (code, report) = answer_of(&mut command(&site, what, &report));
        assert_eq!(code, 0, "{report:#}");
    }
}

#[test]
fn a_layout_of_the_image_in_its_context_is_no_change() {
    let site = site();
    site.write(
        "Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nCOPY . C:/app/\n",
    );
    fleet(&site, "[[image]]\nbuild = \".\"\nname = \"shop\"\n");
    let (code, report) = run(&site, "build");
    assert_eq!(code, 0, "{report:#}");
    let mut build = site.build(".");
    build.args(["--host-build", "17763.973", "--name", "shop", "--tag", "1"]);
    build.assert().code(0);
    assert!(site.path("shop-1/oci-layout").is_file());
    let (code, report) = run(&site, "check");
    assert_eq!(code, 0, "{report:#}");
}

#[test]
fn what_a_layer_came_to_is_remembered_for_the_next_run() {
    let site = site();
    let large = site.write("web/site/large.bin", noise(2 << 20, 1));
    // A recent modification may repeat within the same clock tick.
    let changed = fs::metadata(large).unwrap().modified().unwrap();
    while changed.elapsed().unwrap() <= Duration::from_secs(2) {
        thread::sleep(Duration::from_millis(10));
    }
    let cache = site.path("cache");
    let mut command = command(&site, "build", &["--cache-dir", cache.to_str().unwrap()]);
    let (code, report) = answer_of(&mut command);
    assert_eq!(code, 0, "{report:#}");
    let remembered = fs::read_dir(cache.join("layers")).unwrap();
    assert_eq!(remembered.count(), 1);
}

#[test]
fn a_file_that_cannot_be_meant_is_refused_with_its_line() {
    let site = site();
    for (images, values, hint) in [
        ("", &["fleet.toml"][..], "[[image]]"),
        (
            "[[image]]\nbuild = \"pause\"\n[[image]]\nbuild = \"pause\"\n",
            &["fleet.toml:7:9: "],
            "",
        ),
        (
            "[[image]]\nbuild = \"pause\"\n[[image]]\nbuild = \"pause\"\ntag = \"1-10.0.17763.973\"\n",
            &["apps/pause:1-10.0.17763.973", "5"],
            "",
        ),
        ("[[image]]\nbuidl = \"pause\"\n", &["`buidl`"], "`build`"),
        (
            "[[image]]\nbuild = pause\n",
            &["fleet.toml:5:"],
            "build = \"pause\"",
        ),
        (
            "[[image]]\nbuild = \"pause\"\nselector = \"pool=a b\"\n",
            &["fleet.toml:6:12: "],
            "",
        ),
        (
            "[[image]]\nbuild = \"pause\"\ntag = \"a b\"\n",
            &["fleet.toml:6:", "\"a b\""],
            "",
        ),
        (
            "[[image]]\nbuild = \"pause\"\ntag = \"${nmae}\"\n",
            &["${nmae}"],
            "${name}",
        ),
        (
            "[[image]]\nbuild = \"pause\"\nname = \"A\"\n",
            &["\"A\""],
            "",
        ),
    ] {
        fleet(&site, images);
        command(&site, "check", &[])
            .fails(2, "fleet/invalid", values)
            .advises(&[hint]);
    }
    site.write("fleet.toml", "[[image]]\nbuild = \"pause\"\n");
    command(&site, "check", &[]).fails(2, "fleet/invalid", &["registry"]);
    site.with_no_bases(&["fleet", "check", "-", "--host-build", "17763.973"])
        .fails(2, "usage/arguments", &["stdin"]);
    site.with_no_bases(&["fleet", "check", "felet.toml", "--host-build", "17763.973"])
        .fails(3, "fleet/unreadable", &["felet.toml"])
        .advises(&["fleet.toml"]);
}

#[test]
fn a_registry_that_does_not_answer_ends_it_once_for_all_images() {
    let site = site();
    let top = "registry = \"127.0.0.1:1/apps\"\n";
    let images = pauses(50);
    site.write("fleet.toml", format!("{top}{images}"));
    let (code, report) = run(&site, "check");
    assert_eq!((code, &report["summary"]["failed"]), (3, &json!(100)));
}

#[test]
fn the_shards_of_a_fleet_are_disjoint_and_complete() {
    let site = site();
    let images = pauses(50);
    fleet(&site, &images);
    let mut seen = BTreeSet::new();
    for shard in 0..3 {
        let mut check = command(&site, "check", &["--shards", "3"]);
        let (code, report) = answer_of(check.env("JOB_COMPLETION_INDEX", shard.to_string()));
        assert_eq!(code, 1);
        assert_eq!(report["shard"], format!("{shard}/3"));
        for image in report["images"].as_array().unwrap() {
            assert!(seen.insert(image["reference"].to_string()), "{image}");
        }
    }
    assert_eq!(seen.len(), 50);
    command(&site, "check", &["--shard", "3/3"])
        .assert()
        .code(2)
        .stderr(contains("I from 0 to N-1"));
    command(&site, "check", &["--shards", "3"])
        .env_remove("JOB_COMPLETION_INDEX")
        .assert()
        .code(2)
        .stderr(contains("completionMode: Indexed"));
}

#[test]
fn every_form_of_the_report_says_what_is_missing() {
    let site = site();
    let written = [
        "markdown:r.md", "junit:r.xml", "sarif:r.sarif", "html:r.html",
    ];
    let reports: Vec<&str> = written.iter().flat_map(|file| ["--report", file]).collect();
    let text = command(&site, "check", &reports).assert().code(1);
    text.stdout(
        contains("fleet.toml: 2 images, 4 builds: 4 missing").and(contains("17763.973    missing")),
    );
    let tag = format!("{}/apps/web:1", site.host());
    assert_contains!(site.text("r.md"), "| 17763.973 | missing |");
    assert_contains!(site.text("r.xml"), "failures=\"4\"");
    let sarif: Value = serde_json::from_str(&site.text("r.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    let region = &results[3]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], 8);
    let page = site.text("r.html");
    assert_contains!(page, &tag, "default-src 'none'");
    assert_eq!(page.matches("<tr><td>").count(), 4);
}

#[test]
fn the_schema_knows_every_key() {
    let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    let output = command.args(["fleet", "schema"]).output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["title"], "wincimg fleet");
    assert!(
        schema["properties"]["base-registry"].is_object(),
        "{schema:#}"
    );
}

/// Adds a document with one critical fix for Server 2019 to the site's table of security updates.
pub(crate) fn add_security_fix(site: &Site, image: &str, (month, day): (&str, &str), cve: &str) {
    let document = json!({
        "DocumentTracking": {
            "Identification": {"ID": {"Value": month}},
            "InitialReleaseDate": format!("{day}T07:00:00"),
        },
        "ProductTree": {"FullProductName": [
            {"ProductID": "11572", "Value": "Windows Server 2019  (Server Core installation)"},
        ]},
        "Vulnerability": [{
            "CVE": cve,
            "Threats": [{"Type": 3, "Description": {"Value": "Critical"}}],
            "Remediations": [{"Type": 2, "FixedBuild": "10.0.17763.5696",
                "Description": {"Value": "5036896"}, "ProductID": ["11572"]}],
        }],
    });
    site.write("fixes.json", document.to_string());
    let mut scan = site.with_no_bases(&["image", "scan", image, "--msrc", "fixes.json"]);
    scan.assert().success();
}

#[test]
fn the_security_fixes_that_images_lack_are_counted_if_a_table_is_there() {
    let site = site();
    assert_eq!(run(&site, "build").0, 0);
    let image = format!("{}/apps/web:1-10.0.17763.973", site.host());
    add_security_fix(&site, &image, ("2024-Apr", "2024-04-09"), "CVE-2024-0001");

    let (code, report) = run(&site, "check");
    assert_eq!(code, 0);
    let found = &report["missing_fixes"];
    assert_eq!(found["table"]["newest"], "2024-Apr");
    let images = found["images"].as_array().unwrap();
    assert_eq!(images.len(), 4);
    let web = images.iter().find(|it| it["reference"] == image.as_str());
    let expected = json!({"reference": image, "build": "17763.973", "known": true, "missing": 1,
        "critical": 1, "exploited": 0});
    assert_eq!(web, Some(&expected));
    for format in ["text", "markdown", "html"] {
        let line = format!("{image} (17763.973) lacks 1 security fix, 1 critical");
        command(&site, "check", &["--format", format])
            .assert()
            .success()
            .stdout(contains("as of 2024-Apr (2024-04-09)").and(contains(line)));
    }
}
