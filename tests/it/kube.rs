//! `wincimg check-compat --kube` with a fake Kubernetes API.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use wincimg_testkit::component;

use crate::api::{Api, windows_node};
use crate::failure::{Fails, line};
use crate::site::{Site, answer_of};

fn wincimg(api: &Api) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command
        .current_dir(std::env::temp_dir())
        .env("KUBECONFIG", api.kubeconfig())
        .args(["check-compat", "--kube", "--offline", "--on", "2024-06-01"]);
    command
}

/// A cluster with one node.
fn one_node() -> Api {
    let api = Api::start();
    let node = windows_node("win-a", "10.0.17763.973");
    api.set("/api/v1/nodes", vec![node]);
    api
}

fn deployment(namespace: &str, name: &str, image: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": namespace, "uid": "1", "labels": {"app": name}},
        "spec": {"template": {"spec": {
            "nodeSelector": {"kubernetes.io/os": "windows"},
            "containers": [{"name": "c", "image": image}],
        }}},
    })
}

#[test]
fn nodes_and_workloads_come_in_pages() {
    let api = Api::start();
    let nodes: Vec<Value> = (0..1203)
        .map(|index| windows_node(&format!("n{index:04}"), "10.0.17763.973"))
        .collect();
    api.set("/api/v1/nodes", nodes);
    let deployments = vec![deployment("shop", "web", "repo.example/web:1")];
    api.set("/apis/apps/v1/deployments", deployments);
    let (code, report) = answer_of(wincimg(&api).arg("--each-node"));
    assert_eq!(code, 1, "the image is not known with --offline");
    assert_eq!(report["checks"].as_array().unwrap().len(), 1203);
    assert_eq!(report["checks"][1202]["host"]["name"], "n1202");
    assert_eq!(report["checks"][0]["workload"]["name"], "web");
    let agent = format!("wincimg/{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(api.agent(), agent);
    let pages: Vec<String> = api.requests_to("/api/v1/nodes");
    assert_eq!(pages.len(), 3, "{pages:?}");
    assert!(
        pages[0].contains("limit=500") && !pages[0].contains("continue"),
        "{pages:?}"
    );
    assert!(pages[2].contains("continue=1000"), "{pages:?}");
    assert!(api.methods().iter().all(|method| method == "GET"));
}

#[test]
fn images_that_are_named_are_checked_on_the_clusters_nodes_alone() {
    let api = one_node();
    let (code, report) = answer_of(wincimg(&api).args(["--image-build", "17763.1158"]));
    assert_eq!(code, 1);
    assert_eq!(report["checks"][0]["rule"], "baseline-2020-02");
    assert!(api.requests_to("/apis/apps/v1/deployments").is_empty());
}

#[test]
fn namespace_and_selector_are_the_servers_to_apply() {
    let api = one_node();
    api.set(
        "/apis/apps/v1/namespaces/shop/deployments",
        vec![deployment("shop", "web", "repo.example/web:1")],
    );
    let (_, report) = answer_of(
        wincimg(&api).args(["--namespace", "shop", "--workload-selector", "app in (web)"]),
    );
    assert_eq!(report["checks"].as_array().unwrap().len(), 1);
    let asked = api.requests_to("/apis/apps/v1/namespaces/shop/deployments");
    assert_contains!(asked[0], "labelSelector=app+in+%28web%29");
    assert!(api.requests_to("/apis/apps/v1/deployments").is_empty());
}

#[test]
fn what_cannot_be_a_namespace_is_refused_before_the_cluster_is_asked() {
    let api = one_node();
    wincimg(&api)
        .args(["--namespace", "Shop"])
        .assert()
        .code(2)
        .stderr(contains("lower-case letters"));
    assert!(api.targets().is_empty());
    Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .args(["fleet", "follow", "fleet.toml", "--lease", "ci.build/x"])
        .assert()
        .code(2)
        .stderr(contains("expected NAME or NAMESPACE/NAME"));
}

#[test]
fn a_selection_without_workloads_is_refused() {
    let api = one_node();
    wincimg(&api)
        .args(["--namespace", "shpo"])
        .fails(2, "usage", &["shpo"]);
    let selected = ["--namespace", "shop", "--workload-selector", "app=wbe"];
    let failure = wincimg(&api).args(selected).fails(2, "usage", &["app=wbe"]);
    assert_contains!(failure.hint, "--workload-selector");
}

#[test]
fn a_namespace_without_workloads_for_windows_is_said_to_have_none() {
    let api = one_node();
    let mut linux = deployment("shop", "web", "repo.example/web:1");
    linux["spec"]["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/os": "linux"});
    api.set("/apis/apps/v1/namespaces/shop/deployments", vec![linux]);
    let output = wincimg(&api)
        .args(["--namespace", "shop"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.starts_with("Nothing to check\n"), "{printed}");
    let warned = String::from_utf8_lossy(&output.stderr);
    assert_contains!(warned, "warning: no workload is for Windows");
}

#[test]
fn the_kubeconfig_is_a_flag_too_and_one_that_cannot_be_read_is_named_once() {
    let api = one_node();
    let check = |file: &std::path::Path| {
        let mut command = wincimg(&api);
        command.args(["--image-build", "17763.973", "--kubeconfig"]);
        command.arg(file).env("KUBECONFIG", "/nowhere");
        command
    };
    check(&api.kubeconfig()).assert().code(0);
    check("/missing/config".as_ref()).fails(3, "cluster/config", &["/missing/config"]);
    let output = wincimg(&api)
        .env("KUBECONFIG", "/nowhere")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(printed.matches("/nowhere").count(), 1, "{printed}");
}

/// Changes the kubeconfig of a server.
fn edit_kubeconfig(api: &Api, edit: impl FnOnce(&mut Value)) {
    let text = std::fs::read(api.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_slice(&text).unwrap();
    edit(&mut config);
    std::fs::write(api.kubeconfig(), config.to_string()).unwrap();
}

#[test]
fn a_line_break_after_a_token_is_not_part_of_it() {
    let api = one_node();
    let set_user = |user: Value| {
        edit_kubeconfig(&api, |config| config["users"][0]["user"] = user);
        let mut command = wincimg(&api);
        command.args(["--image-build", "17763.973"]);
        command
    };
    let file = api.kubeconfig().with_file_name("token");
    std::fs::write(&file, "secret\n").unwrap();
    set_user(json!({"token": "secret\n"})).assert().code(0);
    set_user(json!({"tokenFile": file})).assert().code(0);
    set_user(json!({"token": "s3c\nr3t"}))
        .fails(3, "cluster/config", &["token"])
        .hides("r3t");
}

#[test]
fn a_password_in_the_url_of_a_cluster_is_not_printed() {
    let api = one_node();
    api.refuse("/api/v1/nodes", 403);
    edit_kubeconfig(&api, |config| {
        let server = &mut config["clusters"][0]["cluster"]["server"];
        let url = server.as_str().unwrap();
        *server = json!(url.replacen("://", "://bob:s3cr3t@", 1));
    });
    wincimg(&api)
        .args(["--image-build", "17763.973", "-vv"])
        .fails(3, "cluster/denied", &["http://127.0.0.1:"])
        .hides("s3cr3t");
}

#[test]
fn the_output_of_a_credential_plugin_is_not_printed() {
    let api = one_node();
    let check = |script: &str| {
        edit_kubeconfig(&api, |config| {
            config["users"][0]["user"] = json!({"exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
                "command": "sh", "args": ["-c", script],
                "env": [{"name": "SECRET", "value": "s3cr3t"}],
            }});
        });
        let mut command = wincimg(&api);
        command.args(["--image-build", "17763.973"]);
        command
    };
    let fails = |script: &str, values: &[&str]| {
        check(script)
            .fails(3, "cluster/config", values)
            .advises(&["kubectl get nodes"])
            .hides("s3cr3t");
    };
    fails(
        "echo $SECRET; echo login expired >&2; exit 7",
        &["credential plugin", "7", "login expired"],
    );
    fails("echo \"token: [$SECRET\"", &["ExecCredential"]);
    let prints = |token: &str| format!(r#"printf '%s' '{{"status":{{"token":"{token}"}}}}'"#);
    fails(&prints(r"s3cr3t\nand"), &["line break"]);
    fails(&prints(""), &["token"]);
    check(&prints(r"secret\n")).assert().code(0);
}

/// Tunnels one connection, and returns the proxy's address and the request for the tunnel.
fn tunnel_once() -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, received) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(client.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let mut server = TcpStream::connect(head.split(' ').nth(1).unwrap()).unwrap();
        heads.send(head).unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let mut answers = server.try_clone().unwrap();
        std::thread::spawn(move || std::io::copy(&mut answers, &mut client));
        std::io::copy(&mut reader, &mut server)
    });
    (address, received)
}

#[test]
fn a_cluster_behind_a_proxy_is_reached_through_it() {
    let api = one_node();
    let check = |url: Option<&str>| {
        edit_kubeconfig(&api, |config| {
            config["clusters"][0]["cluster"]["proxy-url"] = json!(url);
        });
        let mut command = wincimg(&api);
        command
            .args(["--image-build", "17763.973"])
            .timeout(Duration::from_mins(1))
            // Nothing listens there.
            .env("HTTPS_PROXY", "http://bob:s3cr3t@127.0.0.1:9")
            .env("HTTP_PROXY", "http://bob:s3cr3t@127.0.0.1:9");
        command
    };
    // Not to this machine.
    check(None).assert().code(0);
    let (proxy, asked) = tunnel_once();
    check(Some(&format!("http://bob:s3cr3t@{proxy}")))
        .assert()
        .code(0);
    let asked = asked.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(asked.starts_with("CONNECT 127.0.0.1:"), "{asked}");
    assert!(asked.contains("Basic Ym9iOnMzY3IzdA=="), "{asked}");
    check(Some("http://bob:s3cr3t@127.0.0.1:9"))
        .fails(3, "cluster/unreachable", &["the proxy 127.0.0.1:9 of"])
        .hides("s3cr3t");
    check(Some("ftp://bob:s3cr3t@127.0.0.1:9"))
        .fails(2, "usage/proxy", &["the kubeconfig"])
        .advises(&["--proxy-url"])
        .hides("s3cr3t");
}

#[test]
fn a_proxy_that_kube_does_not_know_is_named_with_the_way_around_it() {
    let api = one_node();
    edit_kubeconfig(&api, |config| {
        config["clusters"][0]["cluster"]["server"] = json!("https://192.0.2.1:6443");
    });
    wincimg(&api)
        .args(["--image-build", "17763.973"])
        .env("HTTPS_PROXY", "socks4://bob:s3cr3t@127.0.0.1:9")
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .fails(2, "usage/proxy", &["HTTPS_PROXY"])
        .advises(&["unset HTTPS_PROXY", "192.0.2.1", "NO_PROXY"])
        .hides("s3cr3t");
}

#[test]
fn the_cluster_of_a_pod_is_reached_through_the_proxy_of_the_environment() {
    let bwrap = component("bwrap");
    let site = Site::new();
    let account = site.write("account/token", "secret");
    site.write("account/namespace", "shop");
    site.write("account/ca.crt", "");
    let mut command = Command::new(bwrap);
    command
        .args(["--dev-bind", "/", "/", "--tmpfs", "/run", "--ro-bind"])
        .arg(account.parent().unwrap())
        .arg("/run/secrets/kubernetes.io/serviceaccount")
        .arg(assert_cmd::cargo::cargo_bin!("wincimg"))
        .args(["check-compat", "--kube", "--image-build", "17763.973"])
        .current_dir(site.path(""))
        .env("HOME", site.path(""))
        .env("KUBERNETES_SERVICE_HOST", "192.0.2.1")
        .env("KUBERNETES_SERVICE_PORT", "6443")
        .env("HTTPS_PROXY", "socks4://bob:s3cr3t@127.0.0.1:9")
        .env_remove("KUBECONFIG")
        .env_remove("NO_PROXY")
        .env_remove("no_proxy");
    command
        .fails(2, "usage/proxy", &["HTTPS_PROXY"])
        .advises(&["unset HTTPS_PROXY", "192.0.2.1", "NO_PROXY"])
        .hides("s3cr3t");
}

/// A node with a label of its pool.
fn in_pool(name: &str, kernel: &str, pool: &str) -> Value {
    let mut node = windows_node(name, kernel);
    node["metadata"]["labels"]["pool"] = json!(pool);
    node
}

#[test]
fn a_selector_chooses_nodes() {
    let api = Api::start();
    let nodes = vec![
        in_pool("win-a", "10.0.17763.973", "web"),
        in_pool("win-b", "10.0.20348.2402", "batch"),
    ];
    api.set("/api/v1/nodes", nodes);
    let check = |selector: &str| {
        let mut command = wincimg(&api);
        command.args(["--image-build", "17763.973", "-l", selector]);
        command
    };
    let (code, report) = answer_of(&mut check("pool=web"));
    assert_eq!(code, 0);
    assert_eq!(report["checks"].as_array().unwrap().len(), 1);
    assert_eq!(report["checks"][0]["host"]["name"], "win-a");
    check("pool=none")
        .fails(2, "usage", &["pool=none"])
        .advises(&["--show-labels"]);
}

/// Every command that takes hosts reads them from a cluster in the same words.
#[test]
fn commands_read_hosts_from_the_cluster() {
    let api = Api::start();
    let nodes = vec![
        in_pool("win-a", "10.0.17763.973", "web"),
        in_pool("win-b", "10.0.20348.2402", "batch"),
    ];
    api.set("/api/v1/nodes", nodes);
    let site = Site::new();
    site.write(
        "fleet.toml",
        format!(
            "registry = \"{0}/apps\"\nbase-registry = \"{0}/mcr\"\n[[image]]\nbuild = \"pause\"\n\
             tag = \"1\"\n",
            site.host()
        ),
    );
    let host = site.host();
    let mirror = format!("{host}/mirror");
    let app = format!("{host}/apps/pause:1");
    for arguments in [
        &["fleet", "build", "fleet.toml"][..],
        &["fleet", "check", "fleet.toml"],
        &["build", "pause", "--dry-run"],
        &["render", "pause"],
        &["mirror", "base:nanoserver", "--to", &mirror, "--dry-run"],
        &["update", &app, "--check"],
        &["node", "script", "--registry", &host, "--dry-run"],
    ] {
        let run = |more: &[&str]| {
            let words = [arguments, &["--kube", "--selector", "pool=web"], more].concat();
            let mut command = if arguments[0] == "fleet" {
                site.with_no_bases(&words)
            } else {
                site.with_bases(&words)
            };
            command.env("KUBECONFIG", api.kubeconfig());
            command
        };
        let output = run(&[]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let problem = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {said}{problem}"
        );
        let all = format!("{said}{problem}");
        assert!(!all.contains("20348"), "{arguments:?}: {all}");
        // kubectl's name of the flag, where it is free.
        let is_build = matches!(arguments[0], "build" | "render");
        let flag = if is_build {
            "--kube-context"
        } else {
            "--context"
        };
        run(&[flag, "nowhere"]).fails(3, "cluster/config", &["nowhere"]);
    }
}

#[test]
fn what_is_done_or_made_by_another_is_not_checked_again() {
    let api = one_node();
    api.set(
        "/apis/apps/v1/deployments",
        vec![deployment("shop", "web", "repo.example/web:1")],
    );
    let mut set = deployment("shop", "web-5d", "repo.example/web:1");
    set["metadata"]["ownerReferences"] =
        json!([{"kind": "Deployment", "name": "web", "controller": true}]);
    api.set("/apis/apps/v1/replicasets", vec![set]);
    let mut pod = deployment("shop", "done", "repo.example/old:1");
    pod["spec"] = pod["spec"]["template"]["spec"].take();
    pod["status"] = json!({"phase": "Succeeded"});
    api.set("/api/v1/pods", vec![pod]);
    let (_, report) = answer_of(&mut wincimg(&api));
    assert_eq!(report["checks"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["checks"][0]["workload"]["kind"], "Deployment");
}

#[test]
fn refusals_say_what_to_do() {
    for (status, code, values, hint) in [
        (401, "cluster/denied", &["(401)", "Unauthorized"][..], ""),
        (
            403,
            "cluster/denied",
            &["(403)", "nodes is forbidden: User \"ci\" cannot list"],
            "bind this user to the roles of templates/ci/kubernetes/rbac.yaml",
        ),
        (400, "cluster/answer", &["(400)", "nodes"], ""),
    ] {
        let api = Api::start();
        api.refuse("/api/v1/nodes", status);
        let failure = wincimg(&api)
            .args(["--image-build", "17763.1158"])
            .fails(3, code, values)
            .advises(&[hint]);
        let is_denied = code == "cluster/denied";
        assert_eq!(!failure.hint.is_empty(), is_denied, "{failure:#?}");
    }
}

#[test]
fn a_list_whose_pages_became_too_old_is_begun_again() {
    let api = Api::start();
    let nodes: Vec<Value> = (0..600)
        .map(|index| windows_node(&format!("n{index}"), "10.0.17763.973"))
        .collect();
    api.set("/api/v1/nodes", nodes);
    api.forget_pages(1);
    let (_, report) = answer_of(wincimg(&api).args(["--image-build", "17763.973"]));
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 1, "equal nodes are one");
    assert_eq!(checks[0]["host"]["name"], "n0");
    assert_eq!(checks[0]["nodes"].as_array().unwrap().len(), 600);
    assert_eq!(report["summary"]["compatible"], 600);
    assert_eq!(api.requests_to("/api/v1/nodes").len(), 4);
    api.forget_pages(10);
    wincimg(&api)
        .args(["--image-build", "17763.973"])
        .fails(3, "cluster/answer", &["nodes"]);
}

#[test]
fn a_list_that_does_not_end_is_an_error() {
    let api = one_node();
    api.repeat_pages();
    wincimg(&api)
        .args(["--image-build", "17763.973"])
        .timeout(Duration::from_mins(1))
        .fails(3, "cluster/answer", &["list nodes", "does not end"]);
    assert_eq!(api.requests_to("/api/v1/nodes").len(), 2);
    api.answer_endlessly("/api/v1/nodes");
    wincimg(&api)
        .args(["--image-build", "17763.973"])
        .timeout(Duration::from_mins(1))
        .fails(3, "cluster/answer", &["list nodes", "does not end"]);
}

#[test]
fn an_unknown_context_is_reported_before_anything_is_asked() {
    let api = Api::start();
    wincimg(&api)
        .args(["--context", "nowhere", "--image-build", "17763.973"])
        .fails(3, "cluster/config", &["\"nowhere\""])
        .advises(&["kubectl config get-contexts"]);
    assert!(api.methods().is_empty());
}

#[test]
fn a_cluster_without_windows_is_distinguished() {
    let api = Api::start();
    let linux =
        json!({"metadata": {"name": "l"}, "status": {"nodeInfo": {"operatingSystem": "linux"}}});
    api.set("/api/v1/nodes", vec![linux]);
    wincimg(&api).fails(2, "usage", &[]);
}

#[test]
fn the_role_that_ships_grants_what_is_asked_for_and_no_more() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/templates/ci/kubernetes/rbac.yaml"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let role = documents
        .iter()
        .find(|document| document["kind"] == "ClusterRole")
        .unwrap();
    let texts = |value: &Value| -> Vec<String> {
        let values = value.as_array().unwrap().iter();
        values
            .map(|value| value.as_str().unwrap().to_owned())
            .collect()
    };
    let mut granted = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                granted.insert(format!("{group}/{resource}"));
            }
        }
        let verbs = texts(&rule["verbs"]);
        assert!(
            verbs.iter().all(|verb| verb == "list" || verb == "watch"),
            "{verbs:?}"
        );
    }
    let api = one_node();
    wincimg(&api).assert().code(0);
    let asked: BTreeSet<String> = api
        .paths()
        .iter()
        .map(|path| {
            let parts: Vec<&str> = path.split('/').skip(1).collect();
            match parts[..] {
                ["api", _, resource] => format!("/{resource}"),
                ["apis", group, _, resource] => format!("{group}/{resource}"),
                _ => panic!("{path}"),
            }
        })
        .collect();
    assert_eq!(asked, granted);
}

/// Starts a watch, sends events, and reads the lines after the report.
fn watched(api: &Api, events: &[Value], lines: usize) -> Vec<Value> {
    api.set(
        "/api/v1/nodes",
        vec![windows_node("win-a", "10.0.17763.973")],
    );
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .current_dir(std::env::temp_dir())
        .env("KUBECONFIG", api.kubeconfig())
        .args(["check-compat", "--kube", "--watch", "--format", "json"])
        .args(["--image-build", "17763.1158"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for event in events {
        api.say(event);
    }
    let mut text = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let first: Vec<String> = text.by_ref().take_while(|line| line != "}").collect();
    assert!(first.len() > 5, "the report comes first: {first:?}");
    let changes = text
        .take(lines)
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    changes
}

#[test]
fn a_watch_prints_how_verdicts_change_as_nodes_are_patched() {
    let api = Api::start();
    let changes = watched(
        &api,
        &[
            json!({"type": "MODIFIED", "object": windows_node("win-a", "10.0.17763.973")}),
            json!({"type": "BOOKMARK", "object": {"kind": "Node", "apiVersion": "v1", "metadata": {"resourceVersion": "8", "creationTimestamp": null}}}),
            json!({"type": "MODIFIED", "object": windows_node("win-a", "10.0.17763.1158")}),
            json!({"type": "ADDED", "object": windows_node("win-b", "10.0.17763.100")}),
            json!({"type": "DELETED", "object": windows_node("win-b", "10.0.17763.100")}),
        ],
        3,
    );
    assert_eq!(
        changes[0]["host"],
        json!({"name": "win-a", "build_before": "17763.973", "build": "17763.1158"})
    );
    assert_eq!(changes[0]["verdict_before"], "incompatible");
    assert_eq!(changes[0]["verdict"], "compatible");
    assert_eq!(changes[1]["host"]["name"], "win-b");
    assert_eq!(changes[1]["verdict_before"], Value::Null);
    assert_eq!(changes[2]["verdict"], Value::Null);
}

#[test]
fn on_a_terminal_a_watch_keeps_a_table() {
    let script = component("script");
    let api = Api::start();
    let nodes = vec![
        windows_node("win-a", "10.0.17763.973"),
        windows_node("win-b", "10.0.17763.1158"),
    ];
    api.set("/api/v1/nodes", nodes);
    // The terminal ends the watch.
    let watch = format!(
        "stty cols 60 rows 16; timeout 60 {} check-compat --kube --watch --offline \
         --image-build 17763.1158 --on 2024-06-01",
        assert_cmd::cargo::cargo_bin!("wincimg").display()
    );
    let mut child = std::process::Command::new(script)
        .current_dir(std::env::temp_dir())
        .env("KUBECONFIG", api.kubeconfig())
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .args(["-qec", &watch, "/dev/null"])
        .stdout(Stdio::piped())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| line.unwrap().replace('\r', ""));
    let mut until = |end: &str| -> Vec<String> {
        let mut read = Vec::new();
        for line in lines.by_ref() {
            let is_end = line.contains(end);
            read.push(line);
            if is_end {
                return read;
            }
        }
        panic!("{end:?} never came: {read:#?}");
    };
    let table = until("watching 2 Windows nodes");
    let answer = "1 image does not start on some nodes";
    assert_eq!(
        table.iter().filter(|line| *line == answer).count(),
        2,
        "{table:#?}"
    );
    api.say(&json!({"type": "MODIFIED", "object": windows_node("win-a", "10.0.17763.1158")}));
    let table = until("watching 2 Windows nodes");
    let (back, first) = table[0].split_once("\u{1b}[J").unwrap();
    assert!(
        back.starts_with("\u{1b}[") && back.ends_with('A'),
        "{table:#?}"
    );
    assert_eq!(first, "1 image is safe");
    assert!(
        table.contains(&"win-a (17763.1158)  ok".to_owned()),
        "{table:#?}"
    );
    let change = &table[table.len() - 2];
    assert_contains!(change, " win-a 17763.973 -> 17763.1158: ");
    assert!(
        table.iter().skip(1).all(|line| line.chars().count() <= 60),
        "{table:#?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_watch_that_the_server_ends_goes_on_where_it_was() {
    let api = Api::start();
    let changes = watched(
        &api,
        &[
            json!({"type": "END"}),
            json!({"type": "MODIFIED", "object": windows_node("win-a", "10.0.17763.1158")}),
        ],
        1,
    );
    assert_eq!(changes[0]["verdict"], "compatible");
    let watches = api.requests_to("/api/v1/nodes");
    let watches: Vec<_> = watches
        .iter()
        .filter(|query| query.contains("watch=true"))
        .collect();
    assert_eq!(watches.len(), 2, "{watches:?}");
    assert!(watches[1].contains("resourceVersion=7"), "{watches:?}");
}

#[test]
fn a_denied_watch_is_reported() {
    for (code, words) in [(401, "(401)"), (403, "cannot watch resource")] {
        let api = one_node();
        api.refuse_watches(code);
        wincimg(&api)
            .args(["--image-build", "17763.973", "--watch"])
            .timeout(Duration::from_secs(20))
            .assert()
            .code(3)
            .stdout(contains("build-match"))
            .stderr(contains(words).and(contains("hint: ")));
    }
}

#[test]
fn a_watch_looks_at_what_is_and_not_at_what_if() {
    let api = Api::start();
    wincimg(&api)
        .args([
            "--image-build", "17763.973", "--watch", "--simulate", "a=17763.1",
        ])
        .assert()
        .code(2)
        .stderr(contains("cannot be used with"));
}

#[test]
fn a_namespace_that_has_no_effect_is_reported() {
    let api = one_node();
    wincimg(&api)
        .args(["--image-build", "17763.973", "--namespace", "shop"])
        .assert()
        .code(0)
        .stderr(line(&["--namespace", "--workload-selector"]));
}

#[test]
fn a_watch_that_became_too_old_lists_again() {
    let api = Api::start();
    api.on_gone(
        "/api/v1/nodes",
        vec![windows_node("win-a", "10.0.17763.1158")],
    );
    let gone = json!({"type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version: 7 (9)", "reason": "Expired", "code": 410,
    }});
    let changes = watched(&api, &[gone], 1);
    assert_eq!(changes[0]["verdict"], "compatible");
    assert_eq!(changes[0]["host"]["build"], "17763.1158");
}
