//! Images for `HostProcess` containers, which contain no Windows and run on any host.

use serde_json::{Value, json};
use wincimg_testkit::layout::{blob_in, config_in, entries_in};

use super::index::nodes;
use super::joined::{add_linux, platforms, published};
use crate::failure::Fails;
use crate::site::{Site, answer_of, each, json_of};

const AGENT: &str = "name = \"agent\"\nbase = \"hostprocess\"\nentrypoint = [\"agent.exe\"]\n\
     [[files]]\ncontent = \"x\"\nto = 'C:\\agent.exe'\n";

/// Repository of Microsoft's base.
const PUBLISHED: &str = "oss/kubernetes/windows-host-process-containers-base-image";

/// The files of a layer, by their paths.
pub(crate) fn files_of(site: &Site, layer: &Value) -> Vec<(String, Vec<u8>)> {
    let entries = entries_in(&blob_in(&site.path("layout"), &layer["digest"])).into_iter();
    entries.map(|entry| (entry.path, entry.bytes)).collect()
}

#[test]
fn one_image_without_a_version_is_for_all_hosts() {
    let site = Site::new();
    site.write("recipe.toml", AGENT);
    let from = site.requests();
    let built = json_of(
        site.build(".")
            .args(["--host-build", "17763.973", "--host-build", "26100.1742"])
            .args(["--output", "oci:layout"]),
    );
    assert_eq!(site.requests_since(from), [""; 0], "no registry is needed");
    assert_eq!(built["index"], Value::Null);
    let images = built["images"].as_array().unwrap();
    assert_eq!(images.len(), 2);
    assert_eq!(images[0]["digest"], images[1]["digest"]);
    assert_eq!(images[0]["reference"], "oci:layout:latest");
    assert_eq!(images[0]["os_version"], Value::Null);
    assert_eq!(images[0]["base"]["reference"], "hostprocess");
    let config = config_in(&site.path("layout"));
    assert_eq!(config["os"], "windows");
    assert_eq!(config.get("os.version"), None);
    assert_eq!(config["rootfs"]["diff_ids"].as_array().unwrap().len(), 1);

    let layers = images[0]["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    let files = files_of(&site, &layers[0]);
    let named: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        named,
        [
            "Files",
            "Files/Windows",
            "Files/Windows/System32",
            "Files/Windows/System32/config",
            "Files/Windows/System32/config/DEFAULT",
            "Files/Windows/System32/config/SAM",
            "Files/Windows/System32/config/SECURITY",
            "Files/Windows/System32/config/SOFTWARE",
            "Files/Windows/System32/config/SYSTEM",
            "Files/agent.exe",
        ]
    );
    for (path, bytes) in &files[4..9] {
        let hive = wincimg_registry::hive::Hive::read(bytes).unwrap();
        assert!(!hive.layered && hive.root.subkeys.is_empty(), "{path}");
    }
}

#[test]
fn check_compat_knows_the_image_and_what_runs_it() {
    let site = Site::new();
    site.write("recipe.toml", AGENT);
    json_of(site.push(".").args(["--host-build", "17763.973"]));
    let image = format!("{}/agent:latest", site.host());
    let check = ["check-compat", &image];
    let hosts = ["--host-build", "14393.1", "--host-build", "26100.1742"];
    let (code, report) = answer_of(assert_cmd::Command::from(site.command(&check)).args(hosts));
    assert_eq!(code, 0, "{report}");
    for check in report["checks"].as_array().unwrap() {
        assert_eq!(check["rule"], "host-process", "{report}");
        assert_eq!(check["verdict"], "compatible");
    }

    let pod = |options: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: agent}}\nspec:\n  {options}\n  \
             nodeSelector: {{kubernetes.io/os: windows}}\n  \
             containers: [{{name: agent, image: \"{image}\"}}]\n"
        )
    };
    for (options, code, rule) in [
        (
            "hostNetwork: true\n  securityContext: {windowsOptions: {hostProcess: true}}",
            0,
            "host-process",
        ),
        ("hostNetwork: true", 1, "host-process-unsupported"),
    ] {
        site.write("pod.yaml", pod(options));
        let workloads = ["check-compat", "--workloads", "pod.yaml"];
        let (found, report) =
            answer_of(assert_cmd::Command::from(site.command(&workloads)).args(hosts));
        assert_eq!(found, code, "{report}");
        assert_eq!(report["checks"][0]["rule"], rule, "{report}");
    }
}

#[test]
fn what_needs_windows_inside_is_refused_with_the_reason() {
    let site = Site::new();
    for (more, value) in [
        ("shutdown_timeout = 30\n", "shutdown_timeout"),
        (
            "[[registry]]\nkey = 'HKLM\\SOFTWARE\\Shop'\n",
            r"HKLM\SOFTWARE\Shop",
        ),
        (
            "[[registry]]\nlayer = \"a\"\nkey = 'HKLM\\SOFTWARE\\Shop'\n",
            r"HKLM\SOFTWARE\Shop",
        ),
        ("[[run]]\nshell = \"dir\"\n", "run"),
        (
            "cmd = [\"pause\"]\n[[files]]\nembedded = \"shim\"\nto = 'C:\\wincimg\\shim.exe'\n",
            "--stop-timeout",
        ),
        (
            "cmd = [\"pause\"]\n[[files]]\nlayer = \"a\"\nembedded = \"shim\"\nto = 'C:\\wincimg\\shim.exe'\n",
            "--stop-timeout",
        ),
    ] {
        let start = if more.contains("shim") {
            r"entrypoint = ['C:\wincimg\shim.exe']"
        } else {
            r#"entrypoint = ["agent.exe"]"#
        };
        let recipe = format!("name = \"agent\"\nbase = \"hostprocess\"\n{start}\n{more}");
        site.write("recipe.toml", recipe);
        site.build(".").args(["--host-build", "17763.973"]).fails(
            2,
            "base/no-windows",
            &[value, "HostProcess"],
        );
    }
    site.write("recipe.toml", AGENT);
    site.with_bases(&["render", ".", "--host-build", "17763.973"])
        .fails(2, "base/no-windows", &["hostprocess"]);
    site.write("recipe.toml", AGENT);
    let printed = site
        .with_bases(&["render", ".", "--host-build", "17763.973"])
        .tells(2);
    assert_contains!(printed, "contains no Windows");
}

#[test]
fn microsofts_base_can_be_named() {
    let site = Site::new();
    // Such a base: an image that contains only hives.
    site.write(
        "base/recipe.toml",
        "name = \"base\"\nbase = \"hostprocess\"\n",
    );
    json_of(
        site.build("base")
            .args(["--host-build", "17763.973", "--registry", &site.host()])
            .args(["--name", &format!("mcr/{PUBLISHED}"), "--tag", "v1.0.0"])
            .arg("--push"),
    );
    let recipe = AGENT.replace("hostprocess", &format!("{PUBLISHED}:v1.0.0"));
    site.write("recipe.toml", recipe);
    let built = json_of(
        site.build(".")
            .args(["--host-build", "20348.2402"])
            .args(["--output", "oci:layout"]),
    );
    let image = &built["images"][0];
    let base = image["base"]["reference"].as_str().unwrap();
    assert_contains!(base, &format!("{PUBLISHED}:v1.0.0@sha256:"));
    assert_eq!(each(&image["layers"], "from"), ["base", "recipe"]);
    let files = files_of(&site, &image["layers"][1]);
    let named: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(named, ["Hives", "Files", "Files/agent.exe"]);

    let recipe = AGENT.replace("hostprocess", &format!("{PUBLISHED}:v9"));
    site.write("recipe.toml", recipe);
    let output = site
        .build(".")
        .args(["--host-build", "20348.2402"])
        .output()
        .unwrap();
    assert_ne!(output.status.code(), Some(0));
}

#[test]
fn a_dockerfile_on_microsofts_base_is_for_all_hosts() {
    let site = Site::new();
    let base = "name = \"base\"\nbase = \"hostprocess\"\n";
    site.write("base/recipe.toml", base);
    let named = format!("mcr/{PUBLISHED}");
    let pushed = json_of(
        site.push("base")
            .args(["--name", &named, "--tag", "v1.0.0"]),
    );
    let digest = pushed["images"][0]["digest"].as_str().unwrap();
    site.write("agent/agent.exe", "x");
    let write = |version: &str, last: &str| {
        let from = format!("--platform=windows/amd64 mcr.microsoft.com/{PUBLISHED}{version}");
        let text =
            format!("FROM {from}\nCOPY agent.exe /agent.exe\nCOPY agent.exe /tool\n{last}\n");
        site.write("agent/Dockerfile", text);
    };
    for version in [
        ":v1.0.0",
        &format!(":v1.0.0@{digest}"),
        &format!("@{digest}"),
    ] {
        write(version, "ENTRYPOINT [\"agent.exe\"]");
        for hosts in [&[][..], &["--host-build", "20348.2402"]] {
            let output = ["--output", "oci:layout"];
            let built = json_of(site.build("./agent").args(output).args(hosts));
            let image = &built["images"][0];
            assert_eq!(image["os_version"], Value::Null, "{version}");
            assert_eq!(image["base"]["match"], "any");
            let files = files_of(&site, &image["layers"][1]);
            assert_eq!(files.last().unwrap().0, "Files/agent.exe");
        }
        let converted = site.with_bases(&["convert", "./agent"]).output().unwrap();
        assert!(converted.status.success(), "{converted:?}");
        site.write("agent/agent.toml", converted.stdout);
        let mut build = site.build("./agent/agent.toml");
        json_of(build.args(["--output", "oci:layout"]));
    }
    let shim = "ENTRYPOINT [\"C:\\\\wincimg\\\\shim.exe\"]\nCMD [\"pause\"]";
    write(":v1.0.0", shim);
    site.build("./agent")
        .fails(2, "base/no-windows", &["--stop-timeout"]);
}

#[test]
fn files_of_microsofts_base_are_copied_for_any_host() {
    let site = Site::new();
    let file = "[[files]]\ncontent = \"x\"\nto = 'C:\\tool.exe'\n";
    let base = format!("name = \"base\"\nbase = \"hostprocess\"\n{file}");
    site.write("base/recipe.toml", base);
    let named = format!("mcr/{PUBLISHED}");
    let pushed = json_of(
        site.push("base")
            .args(["--name", &named, "--tag", "v1.0.0"]),
    );
    let digest = pushed["images"][0]["digest"].as_str().unwrap();
    let published = format!("{PUBLISHED}:v1.0.0");
    for (from, hosts) in [
        (published.as_str(), &[][..]),
        (
            "windows/nanoserver:1809",
            &["--host-build", "17763.973"][..],
        ),
    ] {
        let text = format!(
            "FROM mcr.microsoft.com/{from}\n\
             COPY --from=mcr.microsoft.com/{PUBLISHED}@{digest} /tool.exe C:/x/\n"
        );
        site.write("agent/Dockerfile", text);
        let mut build = site.build("./agent");
        let report = json_of(build.args(["--output", "oci:layout"]).args(hosts));
        let files = files_of(&site, &report["images"][0]["layers"][1]);
        assert_eq!(files.last().unwrap().0, "Files/x/tool.exe", "{from}");
    }
}

/// Builds the agent, with this content in its file, as `app:1.4`.
fn push_agent(site: &Site, content: &str, more: &[&str]) -> assert_cmd::Command {
    let recipe = AGENT.replace("content = \"x\"", &format!("content = {content:?}"));
    site.write("recipe.toml", recipe);
    let mut command = site.push(".");
    command.args(["--name", "app", "--tag", "1.4"]).args(more);
    command
}

#[test]
fn no_host_has_to_be_named_and_a_newer_image_takes_the_older_ones_place() {
    let site = Site::new();
    let built = json_of(&mut push_agent(&site, "1", &[]));
    let images = built["images"].as_array().unwrap();
    assert_eq!(images.len(), 1);
    assert_eq!(images[0]["host_build"], Value::Null);
    assert_eq!(images[0]["base"]["match"], "any");
    let text = push_agent(&site, "1", &[]).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    assert_contains!(text, "HostProcess");
    let newer = json_of(&mut push_agent(&site, "2", &["--host-build", "17763.973"]));
    assert_ne!(newer["images"][0]["digest"], images[0]["digest"]);

    let labelled = AGENT.replace(
        "[[files]]",
        "labels = { host = \"${host_build}\" }\n[[files]]",
    );
    site.write("recipe.toml", labelled);
    let dry_run = json_of(site.build(".").arg("--dry-run"));
    assert_eq!(dry_run["plans"][0]["host_build"], Value::Null);
    assert_eq!(dry_run["plans"][0]["labels"]["host"], "any");

    site.write("recipe.toml", AGENT.replace("hostprocess", "nanoserver"));
    site.build(".").fails(2, "usage", &["--host-build"]);
}

#[test]
fn it_joins_an_index_and_is_known_there() {
    let site = Site::new();
    add_linux(&site);
    push_agent(&site, "1", &[]).fails(1, "tag/taken", &["app:1.4", "linux/amd64"]);
    let joined = json_of(&mut push_agent(&site, "1", &["--join"]));
    assert_eq!(joined["index"]["kept"], json!(["linux/amd64"]));
    let reference = joined["images"][0]["reference"].as_str().unwrap();
    assert!(reference.ends_with("app:1.4-hostprocess"), "{reference}");
    json_of(&mut push_agent(&site, "2", &["--join"]));
    assert_eq!(
        platforms(&published(&site)),
        ["linux", "windows", "unknown"]
    );

    let image = format!("{}/app:1.4", site.host());
    site.write(
        "nodes.json",
        nodes(&[("win-a", "14393.1"), ("win-b", "26100.1742")]),
    );
    let check = |more: &[&str]| {
        let command = site.command(&[&["check-compat"], more].concat());
        let mut command = assert_cmd::Command::from(command);
        answer_of(command.args(["--nodes", "nodes.json"]))
    };
    let rules = |report: &Value| -> Vec<String> {
        let checks = report["checks"].as_array().unwrap().iter();
        checks
            .map(|check| check["rule"].as_str().unwrap().to_owned())
            .collect()
    };
    let (code, report) = check(&[&image, "--strict"]);
    assert_eq!(code, 0, "{report}");
    assert_eq!(rules(&report), ["host-process"; 2]);

    let pod = format!(
        "kind: Pod\nmetadata: {{name: agent}}\nspec: {{os: {{name: windows}}, \
         containers: [{{name: c, image: \"{image}\"}}]}}\n"
    );
    site.write("pod.yaml", pod);
    let (code, report) = check(&["--workloads", "pod.yaml", "--plan"]);
    assert_eq!(code, 1, "{report}");
    assert_eq!(rules(&report)[..2], ["host-process-unsupported"; 2]);
    let fix = report["checks"][0]["fix"].as_str().unwrap();
    assert_contains!(fix, "windowsOptions.hostProcess");
    assert_eq!(
        report["plan"]["actions"],
        json!([]),
        "the same build again does not help"
    );
}

#[test]
fn next_to_images_with_windows_it_is_what_the_other_hosts_get() {
    let site = Site::new();
    json_of(
        site.build("pause")
            .args(["--host-build", "17763.973", "--registry", &site.host()])
            .args(["--push", "--name", "app", "--tag", "1.4"]),
    );
    json_of(&mut push_agent(&site, "1", &["--join"]));
    let image = format!("{}/app:1.4", site.host());
    site.write(
        "nodes.json",
        nodes(&[("win-a", "17763.973"), ("win-b", "20348.2402")]),
    );
    let check = ["check-compat", &image, "--nodes", "nodes.json"];
    let (code, report) = answer_of(&mut assert_cmd::Command::from(site.command(&check)));
    assert_eq!(code, 0, "{report}");
    let rules: Vec<_> = report["checks"].as_array().unwrap().iter().collect();
    assert_eq!(rules[0]["rule"], "build-match");
    assert_eq!(rules[1]["rule"], "host-process");
}

#[test]
fn an_image_built_on_it_is_a_base_for_any_host() {
    let site = Site::new();
    json_of(&mut push_agent(&site, "1", &[]));
    let base = format!("{}/app:1.4", site.host());
    site.write("tool/a.txt", "a");
    let dockerfile = format!("FROM {base}\nCOPY a.txt /tool\n");
    site.write("tool/Dockerfile", dockerfile);
    let recipe = format!(
        "name = \"tool\"\nbase_image = \"{base}\"\n[[files]]\nfrom = \"a.txt\"\nto = 'C:\\tool'\n"
    );
    site.write("tool/tool.toml", recipe);
    for definition in ["./tool", "./tool/tool.toml"] {
        let mut command = site.build(definition);
        let hosts = ["--host-build", "17763.973", "--host-build", "26100.1742"];
        let built = json_of(command.args(hosts).args(["--output", "oci:layout"]));
        let images = built["images"].as_array().unwrap();
        assert_eq!(images[0]["digest"], images[1]["digest"], "{definition}");
        assert_eq!(images[0]["os_version"], Value::Null, "{definition}");
        assert_eq!(images[0]["base"]["match"], "any", "{definition}");
        let files = files_of(&site, &images[0]["layers"][1]);
        assert_eq!(files.last().unwrap().0, "Files/tool", "{definition}");
    }
}

#[test]
fn of_an_index_with_windows_it_is_no_base() {
    let site = Site::new();
    let mut pause = site.build("pause");
    pause.args(["--host-build", "17763.973", "--registry", &site.host()]);
    json_of(pause.args(["--push", "--name", "app", "--tag", "1.4"]));
    json_of(&mut push_agent(&site, "1", &["--join"]));
    let dockerfile = format!("FROM {}/app:1.4\nENV A=1\n", site.host());
    site.write("tool/Dockerfile", dockerfile);
    site.build("./tool")
        .args(["--host-build", "26100.1742", "--output", "oci:layout"])
        .fails(1, "base/nothing-fits", &["app:1.4"]);
}

#[test]
fn the_json_of_a_build_tells_an_offline_check() {
    let site = Site::new();
    let built = push_agent(&site, "1", &["--format", "json"])
        .output()
        .unwrap();
    site.write("images.json", &built.stdout);
    let image = format!("{}/app:1.4", site.host());
    let inspect = site
        .command(&["inspect", &image, "--format", "json"])
        .output()
        .unwrap();
    site.write("inspected.json", &inspect.stdout);
    for file in ["images.json", "inspected.json"] {
        let check = [
            "check-compat", &image, "--host-build", "17763.973", "--offline",
        ];
        let mut check = assert_cmd::Command::from(site.command(&check));
        let (code, report) = answer_of(check.args(["--images", file]));
        assert_eq!(code, 0, "{file}: {report}");
        assert_eq!(report["checks"][0]["rule"], "host-process", "{file}");
    }
}
