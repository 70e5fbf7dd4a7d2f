//! Untrusted text: a poisoned image, node list, workload, catalog page and Dockerfile go through
//! every command that prints them; the text must stay on its line and contain no control sequences.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::json;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::scripted::{answer, scripted};

use crate::api::windows_node;
use crate::failure::Fails;
use crate::fake_catalog::setup::CatalogSetup;
use crate::fake_catalog::{ResponseOverride, msu};

/// Control characters, bidirectional marks, and commands of CI systems.
const POISON: &str = "::warning::\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31mred\r\n\
    ::error::forged\u{2028}\n\u{202e}desrever\u{2066}\u{85}\u{200f}\n##vso[task.setvariable]x\n##[error]y\u{7f}\u{8}";

const MARK: &str = "poisoned";

#[test]
fn nothing_that_others_wrote_leaves_its_line() {
    through_every_command(POISON);
}

#[test]
fn a_manifest_has_every_byte_but_moves_no_terminal() {
    let registry = poisoned_registry(&format!("{POISON}{MARK}"));
    let host = registry.host();
    let folder = tempfile::tempdir().unwrap();
    let image = format!("{host}/app:odd-index");
    let arguments = ["image", "manifest", &image, "--insecure-registry", &host];
    let piped = wincimg(&folder, &arguments).prints();
    assert!(piped.contains(MARK) && piped.contains(steers), "{piped}");

    let program = assert_cmd::cargo::cargo_bin!("wincimg");
    let line = format!("{} -q {}", program.display(), arguments.join(" "));
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(folder.path())
        .env("DOCKER_CONFIG", folder.path())
        .env("NO_COLOR", "1")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its end would be typed.
    let stdin = child.stdin.take();
    let shown = child.wait_with_output().unwrap();
    drop(stdin);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert_contains!(shown, MARK);
    let is_raw = |c: &char| c.is_control() && !['\r', '\n'].contains(c) || steers(*c);
    assert_eq!(shown.chars().find(is_raw), None, "{shown:?}");
}

/// Checks the output of every command for a poisoned text.
pub(crate) fn through_every_command(poison: &str) {
    // Shows that the text was printed at all.
    let poison = &format!("{poison}{MARK}");
    image(poison);
    nodes_and_workloads(poison);
    catalog(poison);
    dockerfile(poison);
    server(poison);
}

fn wincimg(folder: &tempfile::TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command.current_dir(folder.path()).args(arguments);
    command
        .env("DOCKER_CONFIG", folder.path())
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
        .env_remove("WINCIMG_CONFIG");
    command
}

/// Runs a command, which may fail, and checks its output.
fn stays_in_line(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.code().is_some_and(|code| code < 4),
        "{command:?}: {output:?}"
    );
    is_harmless(&format!("{command:?}"), &output);
    let printed = [output.stdout, output.stderr].concat();
    String::from_utf8(printed).unwrap()
}

fn steers(c: char) -> bool {
    let invisible = ['\u{200e}', '\u{200f}', '\u{61c}'].contains(&c);
    invisible || ('\u{2028}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c)
}

fn is_harmless(command: &str, output: &Output) {
    // These formats are for programs, which need every character; JSON escapes what is unsafe.
    let is_json = ["\"json\"", "\"sarif\""]
        .iter()
        .any(|form| command.contains(form));
    let is_data = is_json || command.contains("\"junit\"");
    for (bytes, is_data) in [(&output.stdout, is_data), (&output.stderr, false)] {
        let printed =
            std::str::from_utf8(bytes).unwrap_or_else(|_| panic!("{command}: no Unicode"));
        assert!(!printed.contains("panicked"), "{command}\n{printed}");
        for line in printed.lines() {
            let is_bad =
                |c: char| c < ' ' || (is_json || !is_data) && (c.is_control() || steers(c));
            // Markdown headings are ours.
            let is_forged = line.trim_start().starts_with("::")
                || !is_data && line.trim_start_matches('#').contains("##");
            assert!(
                !line.contains(is_bad) && !is_forged,
                "{command}\n{line:?}\nof {printed}"
            );
        }
    }
}

/// Images with the text in every field of their configurations.
fn poisoned_registry(poison: &str) -> FakeRegistry {
    let registry = FakeRegistry::start();
    for (tag, version, architecture) in [
        ("10.0.17763.973", "10.0.17763.973", "amd64"),
        ("odd", poison, "amd64"),
        ("odder", "10.0.17763.973", poison),
    ] {
        let image = registry.image_with(&json!({
            "os": "windows", "architecture": architecture, "os.version": version,
            "author": poison, "created": poison,
            "config": {
                "Entrypoint": [poison, "b"], "Cmd": [poison], "Shell": [poison], "User": poison,
                "WorkingDir": poison, "Env": [poison, format!("A={poison}")],
                "Labels": {poison: poison, "org.opencontainers.image.base.name": poison},
                "ExposedPorts": {poison: {}}, "StopSignal": poison,
            },
            "history": [{"created_by": poison, "comment": poison}],
        }));
        registry.tag("app", tag, &image);
        let index = registry.index(&[(&image, Some(version))]);
        registry.tag("app", &format!("{tag}-index"), &index);
    }
    registry
}

fn image(poison: &str) {
    let folder = tempfile::tempdir().unwrap();
    let registry = poisoned_registry(poison);
    let host = registry.host();
    let secure = ["--insecure-registry", &host];
    fs::write(
        folder.path().join("recipe.toml"),
        format!(
            "name = \"x\"\nbase = \"app\"\n[labels]\nnote = \"{0}\"\n[[run]]\nshell = \"{0}\"\n",
            toml_text(poison)
        ),
    )
    .unwrap();
    fs::write(
        folder.path().join("Dockerfile"),
        "FROM x\nRUN dir \"a b\"\n",
    )
    .unwrap();
    for tag in ["10.0.17763.973", "odd", "odder", "odd-index", "odder-index"] {
        let image = format!("{host}/app:{tag}");
        let host_build = ["--host-build", "17763.973"];
        for arguments in [
            &["inspect", &image][..],
            &["inspect", &image, "--format", "json"],
            &["check-compat", &image, host_build[0], host_build[1]],
            &[
                "check-compat", &image, host_build[0], host_build[1], "--format", "markdown",
            ],
            &[
                "mirror",
                &image,
                "--to",
                &format!("{host}/copy"),
                "--dry-run",
            ],
            &["mirror", &image, "--to", &format!("{host}/copy")],
            &["lint", "Dockerfile", "--base", &image],
        ] {
            let printed = stays_in_line(wincimg(&folder, &[arguments, &secure].concat()));
            assert!(
                arguments[0] != "inspect" || printed.contains(MARK),
                "{printed}"
            );
        }
    }
    let own = format!("{host}/app");
    for arguments in [
        &["base", "list", "app", "--base-registry", &host][..],
        &[
            "base", "resolve", "app", "--host-build", "17763.973", "--base-registry", &host,
        ],
        &[
            "base", "resolve", "app", "--host-build", "20348.1", "--base-registry", &host,
        ],
        &[
            "build", ".", "--host-build", "17763.973", "--base-registry", &host, "--dry-run",
        ],
        &[
            "build", ".", "--host-build", "17763.973", "--base-registry", &host,
        ],
        &[
            "doctor", "--registry", &own, "--base-registry", &host, "--timeout", "2s",
        ],
    ] {
        stays_in_line(wincimg(&folder, &[arguments, &secure].concat()));
    }
}

/// A string of TOML, without its quotes.
fn toml_text(text: &str) -> String {
    let escaped = text.chars().map(|c| format!("\\U{:08x}", u32::from(c)));
    escaped.collect()
}

fn nodes_and_workloads(poison: &str) {
    let folder = tempfile::tempdir().unwrap();
    let nodes = json!({"kind": "List", "items": [
        node(poison, "10.0.17763.973", poison),
        node(&format!("a{poison}"), poison, "containerd://1.7.20"),
        node("plain", "10.0.20348.2402", poison),
    ]});
    let pod = json!({
        "nodeSelector": {"kubernetes.io/os": "windows", poison: poison},
        "containers": [
            {"name": poison, "image": poison},
            {"name": "b", "image": format!("repo.lan/app:{poison}")},
        ],
    });
    let workloads = json!({"kind": "List", "items": [
        {"kind": "Deployment", "apiVersion": "apps/v1",
         "metadata": {"name": poison, "namespace": poison},
         "spec": {"template": {"spec": pod}}},
        {"kind": poison, "apiVersion": poison, "metadata": {"name": poison}},
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": poison}, "spec": {
            "nodeName": poison, "containers": [{"name": "c", "image": "repo.lan/app:1"}]}},
    ]});
    fs::write(folder.path().join("nodes.json"), nodes.to_string()).unwrap();
    fs::write(folder.path().join("workloads.json"), workloads.to_string()).unwrap();
    fs::write(
        folder.path().join("broken.json"),
        format!("{{\"kind\": {poison}"),
    )
    .unwrap();
    fs::write(
        folder.path().join("broken.yaml"),
        format!("kind: {poison}\n  - x: ["),
    )
    .unwrap();
    let build = ["--image-build", "20348.1"];
    for format in ["text", "markdown", "json", "junit", "sarif"] {
        for images in [&build[..], &["--workloads", "workloads.json", "--offline"]] {
            let nodes = ["check-compat", "--nodes", "nodes.json", "--format", format];
            let printed = stays_in_line(wincimg(&folder, &[&nodes[..], images].concat()));
            assert_contains!(printed, MARK);
        }
    }
    let nodes = ["check-compat", "--nodes", "nodes.json", "--format", "html"];
    let workloads = ["--workloads", "workloads.json", "--offline"];
    let output = wincimg(&folder, &[&nodes[..], &workloads].concat()).output();
    let page = String::from_utf8(output.unwrap().stdout).unwrap();
    assert_contains!(page, MARK);
    let raw = page
        .chars()
        .find(|&c| c.is_control() && c != '\n' || steers(c));
    assert_eq!(raw, None);
    let is_forged = |line: &&str| line.trim_start().starts_with("::") || line.contains("##");
    assert_eq!(page.lines().find(is_forged), None);
    for file in ["broken.json", "broken.yaml"] {
        let (nodes, workloads) = (["--nodes", file], ["--workloads", file]);
        stays_in_line(wincimg(
            &folder,
            &[&["check-compat"][..], &build, &nodes].concat(),
        ));
        let hosts = ["check-compat", "--host-build", "17763.1", "--offline"];
        stays_in_line(wincimg(&folder, &[&hosts[..], &workloads].concat()));
    }
    for command in ["build", "render"] {
        let arguments = [
            command, "pause", "--nodes", "nodes.json", "--base-registry", "127.0.0.1:1",
        ];
        stays_in_line(wincimg(
            &folder,
            &[&arguments[..], &["--timeout", "1s"]].concat(),
        ));
    }
}

fn node(name: &str, version: &str, other: &str) -> serde_json::Value {
    let mut node = windows_node(name, version);
    node["metadata"]["labels"]["pool"] = json!(other);
    node["spec"]["taints"] = json!([{"key": other, "value": other, "effect": "NoSchedule"}]);
    for field in ["osImage", "containerRuntimeVersion"] {
        node["status"]["nodeInfo"][field] = json!(other);
    }
    node
}

fn catalog(poison: &str) {
    let shown = |text: &str| {
        let numbered = text.chars().map(|c| format!("&#{};", u32::from(c)));
        numbered.collect::<String>()
    };
    let setup = CatalogSetup::new();
    let title =
        "2020-04 Cumulative Update for Windows Server 2019 for x64-based Systems (KB4549949)";
    let name = "windows10.0-kb4549949-x64.msu";
    let bytes = msu("4549949", "amd64", 100);
    setup
        .catalog
        .publish(&shown(poison), &[(name, bytes.clone())]);
    let spoilt = format!("{title}{}", shown(poison));
    setup.catalog.publish(&spoilt, &[(name, bytes)]);
    let check = |arguments: &[&str], instead: Option<ResponseOverride>| {
        setup.catalog.instead(instead);
        let outcome = setup.run_with_catalog(arguments);
        let text = format!("{}\n{}", outcome.stdout, outcome.stderr);
        let output = Output {
            status: std::process::ExitStatus::default(),
            stdout: text.into_bytes(),
            stderr: Vec::new(),
        };
        is_harmless(&format!("{arguments:?}"), &output);
        String::from_utf8(output.stdout).unwrap()
    };
    let found = check(&["search", "KB4549949"], None);
    assert_contains!(found, MARK);
    check(&["fetch", "17763.1158", "--output", "out"], None);
    check(&["script", "17763.1158"], None);
    for page in [
        format!(
            "<html><body><div id='errorPageDisplayedError'>{}</div></body></html>",
            shown(poison)
        ),
        shown(poison),
    ] {
        check(
            &["search", "KB4549949"],
            Some(ResponseOverride::Page(page.clone())),
        );
        check(
            &["fetch", "KB4549949", "--output", "out"],
            Some(ResponseOverride::Page(page)),
        );
    }
    setup.catalog.set_release_info(&format!(
        "<html><body><table><tr><td>{0}</td><td>{0}</td></tr></table></body></html>",
        shown(poison)
    ));
    let page = format!("http://{}/release-info", setup.catalog.host);
    let from = [
        "--release-info", &page, "--insecure-registry", &setup.catalog.host,
    ];
    let outcome = setup.run(&[&["resolve", "17763.1158", "--refresh"][..], &from].concat());
    assert!(!outcome.stderr.contains('\u{1b}'), "{}", outcome.stderr);
}

fn dockerfile(poison: &str) {
    let folder = tempfile::tempdir().unwrap();
    let in_line = poison.replace(['\n', '\r'], " ");
    let text = format!(
        "FROM mcr.microsoft.com/windows/nanoserver:{in_line}\n\
         SHELL [\"powershell\"]\n\
         RUN tool.exe \"{in_line}\" 'x'\n\
         RUN reg add HKLM\\{in_line} /v \"a b\" /d {in_line}\n\
         {in_line} what\n\
         COPY {in_line} C:\\{in_line}\\\n\
         ENTRYPOINT {in_line}\n"
    );
    // A name may contain anything but a slash.
    let name = format!("Dockerfile{}", poison.replace('/', ""));
    for name in ["Dockerfile", &name] {
        fs::write(folder.path().join(name), &text).unwrap();
        for flags in [
            &["--host-build", "17763.973"][..],
            &["--shell", "powershell"],
            &["--shell", "cmd", "--format", "sarif"],
            &["--shell", "cmd", "--format", "json"],
        ] {
            let printed = stays_in_line(wincimg(&folder, &[&["lint", name], flags].concat()));
            assert_contains!(printed, MARK);
        }
    }
    let recipe = format!("name = \"x\"\nbase = \"nanoserver\"\n{in_line} = 1\n");
    fs::write(folder.path().join("recipe.toml"), recipe).unwrap();
    stays_in_line(wincimg(
        &folder,
        &["build", ".", "--host-build", "17763.1", "--dry-run"],
    ));
}

/// Error messages of a registry, as JSON and as plain text: of each status one of them through
/// every command, the other through `inspect` and another, which rotates.
fn server(poison: &str) {
    let folder = tempfile::tempdir().unwrap();
    let in_json = json!({"errors": [{"code": poison, "message": poison, "detail": poison}]});
    for (first, body) in [in_json.to_string(), poison.to_owned()].iter().enumerate() {
        for (number, status) in [400, 401, 403, 404, 500].into_iter().enumerate() {
            let (body, poison) = (body.clone(), poison.replace(['\n', '\r', '\0'], " "));
            let printable: String = poison.chars().filter(|c| *c >= ' ' && *c <= '~').collect();
            let (_, served) = scripted(move |_| {
                let realm = format!("Basic realm=\"{printable}\"");
                let kind = if body.starts_with('{') {
                    "application/json"
                } else {
                    "text/plain"
                };
                answer(
                    status,
                    &[("www-authenticate", &realm), ("content-type", kind)],
                    body.clone(),
                )
            });
            let host = served.host();
            let image = format!("{host}/app:1");
            let all = [
                &["inspect", &image][..],
                &["check-compat", &image, "--host-build", "17763.1"],
                &["base", "list", "nanoserver", "--base-registry", &host],
                &["doctor", "--registry", &host, "--base-registry", &host],
                &["mirror", &image, "--to", &host],
            ];
            let is_run = |at: usize| (first + number) % 2 == 0 || at == 0 || at == 1 + number % 4;
            for (_, arguments) in all.into_iter().enumerate().filter(|(at, _)| is_run(*at)) {
                let common = ["--insecure-registry", &host, "--timeout", "1s"];
                let printed = stays_in_line(wincimg(&folder, &[arguments, &common].concat()));
                assert!(
                    arguments[0] != "inspect" || printed.contains(MARK),
                    "{status} {printed}"
                );
            }
        }
    }
}
