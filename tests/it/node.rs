//! `wincimg node script`: its settings, and valid PowerShell.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use predicates::Predicate as _;
use regex::Regex;
use serde_json::Value;
use wincimg_testkit::powershell::syntax_errors;
use wincimg_windows::compat::{HostBuild, Isolation, check};
use wincimg_windows::update::Updates;
use wincimg_windows::version::WindowsVersion;

use crate::failure::{Fails, Failure, line, says, warning};
use crate::site::{Site, json_of, report_of};

const REGISTRY: &str = "repo.mylan.k8s:8888";

fn script(more: &[&str]) -> (Output, String) {
    let site = Site::new();
    let arguments = ["node", "script", "--registry", REGISTRY];
    let mut command = site.with_bases(&arguments);
    (command.args(more).output().unwrap(), site.host())
}

/// The output, with `BASES` in place of the registry of the bases.
fn text(more: &[&str]) -> String {
    let (output, host) = script(more);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let folder = format!("{}_", host.replace(':', "_"));
    [host.clone(), folder, host.replace(':', "")]
        .iter()
        .fold(text, |text, name| text.replace(name, "BASES"))
}

fn refusal(more: &[&str]) -> String {
    let (output, _) = script(more);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The table of settings, the only part that differs between scripts.
fn settings(script: &str) -> &str {
    let (_, rest) = script.split_once("$node = @{\n").unwrap();
    rest.split_once("\n}\n").unwrap().0
}

/// A function of a script; the name ends with the parenthesis of its parameters, if any.
fn function<'s>(script: &'s str, name: &str) -> &'s str {
    let (_, rest) = script.split_once(&format!("\nfunction {name}")).unwrap();
    rest.split_once("\n}\n").unwrap().0
}

/// Asserts that a text has these words, in this order.
#[track_caller]
fn assert_in_order(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        let Some((_, after)) = rest.split_once(word) else {
            panic!("no {word:?} in {rest}");
        };
        rest = after;
    }
}

fn any_script() -> String {
    text(&["--host-build", "17763.973"])
}

/// A CA created by openssl, in a temporary folder.
fn ca() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    let made = Command::new("openssl")
        .args(request.split(' '))
        .args(["-subj", "/CN=repo.mylan.k8s", "-keyout"])
        .arg(folder.path().join("ca.key"))
        .arg("-out")
        .arg(&file)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    (folder, file)
}

#[test]
fn every_version_among_the_nodes_gets_its_images() {
    let hosts = ["--host-build", "17763.973", "--host-build", "20348.2402"];
    let trust = ["--insecure-registry", REGISTRY, "--hold-updates"];
    insta::assert_snapshot!(settings(&text(&[&hosts[..], &trust].concat())));
}

#[test]
fn a_mirror_and_a_tag_of_ones_own_are_taken() {
    let text = text(&[
        "--host-build", "17763.973", "--tag", "latest", "--base", "iis", "--runtime", "docker",
        "--pull-deadline", "90s",
    ]);
    insta::assert_snapshot!(settings(&text));
}

#[test]
fn nodes_get_the_images_that_build_publishes() {
    let site = Site::new();
    let registry = format!("{}/ns", site.host());
    let hosts = ["20348.2402", "17763.973", "20348.2500", "17763.1000"];
    let hosts: Vec<&str> = hosts
        .iter()
        .flat_map(|host| ["--host-build", host])
        .collect();
    let common = [&["--registry", &registry], &hosts[..]].concat();
    let built = json_of(site.build("pause").args(&common).arg("--push"));
    let built = built["images"].as_array().unwrap().iter();
    let built: BTreeSet<String> = built
        .map(|image| image["reference"].as_str().unwrap().to_owned())
        .collect();
    let script = json_of(site.with_bases(&["node", "script"]).args(&common));
    let images = script["images"].as_array().unwrap();
    let named: BTreeSet<String> = images
        .iter()
        .map(|image| image["pause"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((images.len(), named.len()), (4, 2), "{script}");
    assert_eq!(named, built);
    let base = format!("{}/mcr/windows/nanoserver:10.0.20348.2402", site.host());
    assert_eq!(images[3]["bases"], serde_json::json!([base]));
}

#[test]
fn without_the_bases_a_script_names_images_of_the_hosts_versions() {
    let site = Site::new();
    let script = [
        "node", "script", "--host-build", "17763.1000", "--registry", "repo.mylan.k8s:8888",
        "--base-registry", "127.0.0.1:1/mcr",
    ];
    let (code, script, warning) = report_of(&mut site.with_no_bases(&script));
    assert_eq!(code, 0, "{warning}");
    assert_contains!(warning, "--base-registry");
    assert_eq!(
        script["images"][0]["pause"],
        "repo.mylan.k8s:8888/pause:10.0.17763.1000"
    );
}

/// The output for nodes with these names, Windows versions, runtimes and kubelets.
fn script_for_nodes(nodes: &[[&str; 4]]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let nodes = nodes.iter().map(|[name, version, runtime, kubelet]| {
        serde_json::json!({"kind": "Node", "metadata": {"name": name}, "status": {
            "nodeInfo": {"operatingSystem": "windows", "kernelVersion": version,
                "containerRuntimeVersion": runtime, "kubeletVersion": kubelet}}})
    });
    let nodes: Vec<Value> = nodes.collect();
    let list = serde_json::json!({"kind": "List", "items": nodes});
    let file = folder.path().join("nodes.json");
    fs::write(&file, list.to_string()).unwrap();
    script(&["--nodes", file.to_str().unwrap(), "--format", "json"]).0
}

#[test]
fn a_node_without_a_base_is_named() {
    let nodes = [
        ["w16", "10.0.14393.3384", "", ""],
        ["w19", "10.0.17763.973", "", ""],
    ];
    let failure = Failure::of(&script_for_nodes(&nodes[..1]));
    failure.is("base/nothing-fits", &["14393.3384 (w16)", "nanoserver"]);

    // It does not stop the others.
    let output = script_for_nodes(&nodes);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let script: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(script["images"].as_array().unwrap().len(), 1);
    assert_eq!(script["images"][0]["build"], "17763.973");
    assert_eq!(script["failed"][0]["nodes"][0], "w16");
    assert_eq!(script["failed"][0]["code"], "base/nothing-fits");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_contains!(said, "no image for host 14393.3384 (w16)");

    let both = [nodes[0], ["w15", "10.0.14393.9999", "", ""]];
    let failure = Failure::of(&script_for_nodes(&both));
    assert_contains!(failure.stderr, "(w15)", "(w16)");
}

/// A node that was updated since takes an image only if it starts there.
#[test]
fn the_nodes_of_an_image_are_those_on_which_check_compat_calls_it_startable() {
    let hosts = ["14393.3384", "17763.973", "17763.1158", "20348.2402"];
    let hosts = hosts.iter().flat_map(|host| ["--host-build", host]);
    let text = Site::new()
        .with_no_bases(&["node", "script", "--registry", REGISTRY])
        .args(hosts)
        .args(["--base-registry", "127.0.0.1:1/mcr"])
        .prints();
    let rows = settings(&text).lines();
    let rows: Vec<&str> = rows.filter(|row| row.contains("Revision = ")).collect();
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in rows {
        let number = |key: &str| -> u32 {
            let (_, rest) = row.split_once(&format!("{key} = ")).unwrap();
            rest.split(';').next().unwrap().parse().unwrap()
        };
        let image = WindowsVersion::new(number("Build"), number("Revision"));
        let taken = number("First")..=number("Last");
        for update in Updates::embedded().by_build(image.build) {
            let host = HostBuild::new(update.version());
            let verdict = check(Some(host), Some(image), Isolation::Process);
            let is_taken = taken.contains(&update.revision);
            assert_eq!(is_taken, verdict.is_startable(), "{row} {host}");
        }
    }
    assert_contains!(function(&text, "Get-NodeImage"), "$_.First", "$_.Last");
}

#[test]
fn certificates_travel_in_the_script_and_nothing_else_of_their_file() {
    let (folder, file) = ca();
    let key = fs::read_to_string(folder.path().join("ca.key")).unwrap();
    let certificate = fs::read_to_string(&file).unwrap();
    let both = folder.path().join("both.pem");
    fs::write(&both, format!("{key}{certificate}")).unwrap();
    let text = text(&[
        "--host-build",
        "17763.973",
        "--ca-file",
        both.to_str().unwrap(),
    ]);
    assert_contains!(text, &format!("Certificates = '{certificate}'"));
    assert!(!text.contains("PRIVATE KEY"));
    assert_eq!(syntax_errors(&text), [""; 0]);
}

#[test]
fn scripts_are_powershell_by_its_grammar() {
    for more in [
        &[][..],
        &["--undo", "--hold-updates", "--runtime", "containerd"],
        &[
            "--insecure-registry", "repo.mylan.k8s:8888", "--pause", "kube/pause",
        ],
    ] {
        let text = text(&[&["--host-build", "17763.973"][..], more].concat());
        assert_eq!(syntax_errors(&text), [""; 0]);
        assert_ne!(syntax_errors(&(text + "\nif (")), [""; 0]);
    }
}

/// In a remote session, a program's warning on stderr would end the script.
#[test]
fn programs_run_in_one_function_and_fail_by_their_exit_code_alone() {
    let text = any_script();
    let native = function(&text, "Invoke-Native(");
    assert_in_order(
        native,
        &[
            "$ErrorActionPreference = 'Continue'",
            "& $Program @Arguments 2>&1",
            "$LASTEXITCODE -eq 0",
            "throw ",
        ],
    );
    let others = text.replace(native, "");
    for line in others.lines() {
        let others = ["& $Check ", "& $Assert", "with & '$program' --config"];
        let is_call = line.contains("& ") && !others.iter().any(|other| line.contains(other));
        assert!(!is_call && !line.contains("$LASTEXITCODE"), "{line}");
    }
}

#[test]
fn flags_of_dockershim_are_for_kubelets_that_have_it() {
    let text = any_script();
    let first_flag = "Set-KubeletFlag 'pod-infra-container-image'";
    let steps = [
        "Get-KubeletVersion", "$null -eq $kubelet", "-ge [version]'1.24'", "cri-dockerd", "return",
        first_flag,
    ];
    assert_in_order(function(&text, "Set-Docker("), &steps);
    // A node without its pause image is not up to date.
    assert_contains!(
        function(&text, "Set-Docker("),
        "Add-Unset \"pause image not set: "
    );
    let outcome = [
        "+ @($unset)",
        "everything is up to date",
        "Get-Outcome $state",
    ];
    assert_in_order(function(&text, "Set-Node"), &outcome);
    let nodes = [
        ["w1", "10.0.17763.973", "docker://24.0.7", "v1.29.0"],
        ["w2", "10.0.17763.973", "docker://20.10.9", "v1.23.17"],
        ["w3", "10.0.17763.973", "containerd://1.7.22", "v1.29.0"],
    ];
    let output = script_for_nodes(&nodes);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    let is_told = warning(&["cri-dockerd", "w1 "]).eval(&printed);
    assert!(is_told && !printed.contains("other node"), "{printed}");
    let output = script_for_nodes(&nodes[1..]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(!printed.contains("cri-dockerd"), "{printed}");
}

#[test]
fn nodes_whose_containerd_is_of_rke2_are_named() {
    assert_contains!(function(&any_script(), "Get-Runtime"), "-Name rke2");
    let runtime = "containerd://1.7.23-k3s2";
    let nodes = [
        ["w1", "10.0.20348.2402", runtime, "v1.31.4"],
        ["w2", "10.0.20348.2402", runtime, "v1.31.4+rke2r1"],
        ["w3", "10.0.20348.2402", runtime, "v1.30.8+rke2r1"],
    ];
    let output = script_for_nodes(&nodes);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    let words = ["w2 and 1 other node", "pause-image", "registries.yaml"];
    says(&printed, &warning(&words));
    let output = script_for_nodes(&nodes[..1]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(!printed.contains("RKE2"), "{printed}");
}

#[test]
fn containerd_reads_a_draft_and_gets_its_old_settings_back_if_it_does_not_start() {
    let text = any_script();
    let steps = [
        "WriteAllText($draft", "& $Check $draft", "ReadAllBytes($Path)", "Save-Original",
        "Move-Item", "$wrote.Add(",
    ];
    assert_in_order(function(&text, "Set-File("), &steps);
    let steps = [
        "@(Get-Dependent",
        "Set-File $Config $Text $Check",
        "\n    try {\n",
        "Restart-Runtime $Name @()",
        "& $Assert",
        "\n    } catch {\n",
        "Restore-Written",
        "try { Restart-Runtime $Name $dependents } catch { $problem = ",
        "throw $problem",
        "\n    }\n",
        "Start-Dependent $dependents",
    ];
    assert_in_order(function(&text, "Save-Config("), &steps);
    let steps = ["Remove-File", "WriteAllBytes($file.Path", "Set-Index"];
    assert_in_order(function(&text, "Restore-Written"), &steps);
    let steps = [
        "'--config', $draft, 'config', 'dump'",
        "Save-Config 'containerd'",
        "Assert-Containerd",
        "Set-Pinned $Image.Pause",
    ];
    assert_in_order(function(&text, "Set-Containerd("), &steps);
    // A dependent service that does not start would undo settings that work.
    let restart = function(&text, "Restart-Runtime(");
    assert_in_order(
        restart,
        &["Stop-Service", "Start-Service", "Start-Dependent"],
    );
}

/// The kubelet would remove it: containerd before 2.0 pins only what it pulls itself.
#[test]
fn the_pause_image_is_pinned_if_the_node_has_it() {
    let text = any_script();
    let steps = [
        "$PSCmdlet.ShouldProcess(",
        "'ls', '-q'",
        "-notcontains $Image) { return }",
        "'label', $Image",
        "'io.cri-containerd.pinned=pinned'",
    ];
    assert_in_order(function(&text, "Set-Pinned("), &steps);
}

/// containerd takes credentials beside its `config_path`.
#[test]
fn only_settings_that_containerd_refuses_end_the_script() {
    let text = any_script();
    let code = function(&text, "Get-RegistryFolder(");
    assert_in_order(code, &["$node.Registries.Count -eq 0", "return", "throw "]);
    let line = code.lines().find(|line| line.contains("$old = ")).unwrap();
    let refused = Regex::new(&format!("^{}", line.rsplit('\'').nth(1).unwrap())).unwrap();
    for (table, is_refused) in [
        ("mirrors.\"docker.io\"", true),
        ("configs.\"repo:8888\".tls", true),
        ("configs.\"repo:8888\".auth", false),
        ("configs.\"repo:8888\"", false),
        ("mirrors", false),
    ] {
        assert_eq!(refused.is_match(table), is_refused, "{table}");
    }
}

#[test]
fn the_hosts_file_of_another_program_is_kept() {
    let text = any_script();
    let code = function(&text, "Test-HostsFile(");
    let trusts = code.lines().filter_map(|line| {
        let (_, pattern) = line.split_once("$trust = '")?;
        Regex::new(&pattern.strip_suffix('\'')?.replace("''", "'")).ok()
    });
    let trusts: Vec<Regex> = trusts.collect();
    let [insecure, certificates] = &trusts[..] else {
        panic!("{code}");
    };
    for (hosts, without_tls, with_ca) in [
        ("server = \"http://repo:8888\"", true, false),
        (
            "[host.\"http://repo:8888\"]\n  capabilities = [\"pull\"]",
            true,
            false,
        ),
        (
            "[host.\"https://repo:8888\"]\n  skip_verify = true",
            true,
            true,
        ),
        (
            "[host.'https://repo:8888']\n  ca = 'C:/ca.crt'",
            false,
            true,
        ),
        (
            "server = \"https://repo:8888\"\n  # skip_verify = true",
            false,
            false,
        ),
        // Without a hosts.toml, the names of the files.
        ("client.cert\nrepo.crt", false, true),
        ("client.cert\nclient.key", false, false),
    ] {
        assert_eq!(insecure.is_match(hosts), without_tls, "{hosts}");
        assert_eq!(certificates.is_match(hosts), with_ca, "{hosts}");
    }
    // A folder in containerd's search path would end the use of those behind it.
    let search = [
        "@($Registry.Containerd, $Registry.Docker, '_default')",
        "Get-WrittenRow",
        "-replace '_default$', $Registry.Containerd",
        "throw \"$place ",
    ];
    assert_in_order(code, &search);
    let set = function(&text, "Set-Containerd(");
    let steps = [
        "Test-HostsFile",
        "'hosts.toml'",
        "'wincimg.crt'",
        "Invoke-Pull",
        "catch { Restore-Written; throw }",
    ];
    assert_in_order(set, &steps);
    assert_contains!(function(&text, "Restore-File("), "Remove-File $Row.Path");
    assert!(
        !text.contains("ca.crt"),
        "the name of another program's file"
    );
}

#[test]
fn docker_hub_is_named_by_the_host_of_its_api() {
    let text = text(&[
        "--host-build", "17763.973", "--insecure-registry", "docker.io",
    ]);
    let row = "Host = 'docker.io'; Server = 'registry-1.docker.io'; Containerd = 'docker.io'";
    assert_contains!(settings(&text), row);
    let hosts = function(&text, "Get-HostsFile(");
    assert!(!hosts.contains("$Registry.Host"), "{hosts}");
}

/// With strict mode, member enumeration over no properties fails: a `daemon.json` of `{}`. Of a key
/// without values, `Get-ItemProperty` returns nothing.
#[test]
fn properties_are_looked_up_by_their_name() {
    let text = any_script();
    assert!(!text.contains("Properties.Name"));
    let option = function(&text, "Get-UpdateOption");
    assert_contains!(option, "GetValue('AUOptions', 4)");
    assert!(!option.contains("Get-ItemProperty"), "{option}");
}

/// dockerd does not start with insecure registries from two places.
#[test]
fn docker_gets_its_old_settings_back_and_keeps_the_flags_of_its_service() {
    let text = any_script();
    let code = function(&text, "Get-DaemonSettings(");
    let (_, rest) = code.split_once("Get-ServiceLine 'docker'), '").unwrap();
    let pattern = Regex::new(rest.split('\'').next().unwrap()).unwrap();
    let line = r#""C:\docker\dockerd.exe" --run-service --insecure-registry a:5000 --insecure-registry="b:1""#;
    let found = pattern.captures_iter(line).map(|found| found[1].to_owned());
    assert_eq!(found.collect::<Vec<_>>(), ["a:5000", "b:1"]);
    assert_in_order(
        code,
        &["+ $flags", "return $null", "$flags.Count -gt 0", "throw "],
    );
    let set = function(&text, "Set-Docker(");
    assert_in_order(
        set,
        &["Get-DaemonSettings", "Set-File", "Save-Config 'docker'"],
    );
}

#[test]
fn a_service_behind_a_wrapper_is_read_by_its_own_command_line() {
    let text = any_script();
    let line = function(&text, "Get-ServiceLine(");
    assert_in_order(
        line,
        &[
            r"Services\$Name\Parameters",
            "'Application'",
            "'AppParameters'",
            "PathName",
        ],
    );
    assert_eq!(text.matches("PathName").count(), 1);
    let code = function(&text, "Get-Containerd");
    let steps = [
        "Get-ServiceProgram 'containerd'",
        "Test-Path",
        "$env:ProgramFiles",
    ];
    assert_in_order(code, &steps);
    // containerd before 2.0 has no `config migrate`.
    assert!(!text.contains("config migrate"));
    assert_contains!(code, "config dump | Set-Content -Encoding Ascii");
    let folders = function(&text, "Get-RegistryFolder(");
    assert_contains!(folders, r"$_.TrimEnd('\')");
}

#[test]
fn an_undo_needs_neither_hosts_nor_a_registry() {
    let site = Site::new();
    let undo = ["node", "script", "--undo"];
    let output = site.with_no_bases(&undo).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_contains!(settings(&text), "Undo        = $true");
    // The services restart whose files were restored, whatever these are called.
    let restore = function(&text, "Restore-Node");
    assert_in_order(
        restore,
        &[
            "$restored -contains (Get-ConfigPath $name)",
            "Restart-Runtime",
            "Restart-Kubelet",
        ],
    );
    assert_in_order(
        function(&text, "Restart-Kubelet"),
        &["if (Get-Service", "Restart-Runtime"],
    );
    // Updates that were off or only downloaded are not installed afterwards.
    let updates = function(&text, "Restore-AutomaticUpdate");
    assert_contains!(updates, "Set-AutomaticUpdate $before");
    // Of the options, scregedit.wsf documents only 1 and 4.
    let steps = [
        "Stop-Service", "{ 1 } else { 4 }", "'/AU', $known", "Set-ItemProperty", "-Value $Option",
        "Start-Service",
    ];
    assert_in_order(function(&text, "Set-AutomaticUpdate("), &steps);
    let printed = site.with_no_bases(&undo[..2]).tells(2);
    assert_contains!(printed, "--registry");
}

#[test]
fn what_a_script_does_is_reported_without_it() {
    let args = ["--host-build", "17763.973", "--dry-run"];
    let reported = text(&args);
    assert_contains!(
        reported,
        "pause     repo.mylan.k8s:8888/pause:10.0.17763.973\n"
    );
    assert!(!reported.contains("function"));
    let json: Value =
        serde_json::from_str(&text(&[&args[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!(json["images"][0]["build"], "17763.973");
    assert_eq!(json["script"], Value::Null);
    let whole = text(&["--host-build", "17763.973", "--format", "json"]);
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["script"], text(&["--host-build", "17763.973"]));
}

#[test]
fn mistakes_are_reported_with_what_to_type() {
    let printed = refusal(&["--host-build", "17763"]);
    says(&printed, &line(&["hint: ", "17763.973"]));
    let printed = refusal(&[]);
    assert_contains!(printed, "--host-build 17763.973");
    let printed = refusal(&["--host-build", "17763.973", "--base", "nano server"]);
    assert_contains!(printed, "nano server");
    let printed = refusal(&["--host-build", "17763.973", "--ca-file", "missing.crt"]);
    assert_contains!(printed, "missing.crt");
}
