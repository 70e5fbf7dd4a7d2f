//! `wincimg fleet follow`: replicas of the real program, the demo registry, and a fake Kubernetes
//! API.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use predicates::Predicate as _;
use serde_json::{Value, json};
use wincimg_demo::add_base_images;
use wincimg_windows::version::WindowsVersion;

use crate::api::{Api, windows_node};
use crate::failure::warning;
use crate::fleet::add_security_fix;
use crate::site::{Site, json_of};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/wincimg/leases/wincimg-fleet";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const OLD: WindowsVersion = WindowsVersion::new(17763, 973);
const NEW: WindowsVersion = WindowsVersion::new(17763, 1158);
const TIMEOUT: Duration = Duration::from_mins(1);

/// A cluster, a registry, and a fleet.
struct FollowSetup {
    site: Site,
    api: Api,
}

impl FollowSetup {
    fn new(images: usize) -> Self {
        let site = Site::new();
        let host = site.host();
        let mut fleet = format!("registry = \"{host}\"\nbase-registry = \"{host}/mcr\"\n");
        for image in 0..images {
            write!(
                fleet,
                "[[image]]\nbuild = \"pause\"\nname = \"pause-{image}\"\n"
            )
            .unwrap();
        }
        site.write("fleet.toml", fleet);
        let api = Api::start();
        api.change(&node("win-a", OLD));
        Self { site, api }
    }

    /// Publishes the base images of a build.
    fn publish(&self, version: WindowsVersion) {
        let add = |stored: &mut wincimg_demo::RegistryState| {
            add_base_images(stored, "mcr/windows/nanoserver", &[version])
        };
        self.site.registry.with(add).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.site.command(arguments);
        command.env("KUBECONFIG", self.api.kubeconfig());
        command
    }

    fn start(&self, arguments: &[&str]) -> Replica {
        // Currently free, and known only to this test.
        let place = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let place = place.to_string();
        let mut command = self.command(&["fleet", "follow", "fleet.toml", "--kube"]);
        command
            .args(["--lease", "wincimg/wincimg-fleet"])
            .args(["--listen", &place])
            .args(arguments);
        if !arguments.contains(&"--format") {
            command.args(["--format", "json"]);
        }
        if !arguments.contains(&"--lease-duration") {
            command.args(["--lease-duration", "3s"]);
        }
        Replica::start(command, place)
    }

    /// The images of a tag, as their versions; empty without the tag. All content of the tag must
    /// exist.
    fn versions(&self, image: usize) -> Vec<String> {
        let host = self.site.host();
        let read = |path: &str| {
            let (status, body) = get(&host, &format!("/v2/pause-{image}/{path}"));
            (status == 200).then(|| serde_json::from_str::<Value>(&body).unwrap())
        };
        let Some(index) = read("manifests/latest") else {
            return Vec::new();
        };
        let entries = index["manifests"].as_array().unwrap().iter();
        entries
            .map(|entry| {
                let digest = entry["digest"].as_str().unwrap();
                let manifest = read(&format!("manifests/{digest}")).unwrap();
                let layers = manifest["layers"].as_array().unwrap().iter();
                for blob in layers.chain([&manifest["config"]]) {
                    let digest = blob["digest"].as_str().unwrap();
                    let (status, _) = get(&host, &format!("/v2/pause-{image}/blobs/{digest}"));
                    assert_eq!(status, 200, "pause-{image}: {digest}");
                }
                let version = entry["platform"]["os.version"].as_str();
                version.unwrap().to_owned()
            })
            .collect()
    }

    fn holder(&self) -> String {
        let lease = self.api.object(LEASE).unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"].as_str();
        holder.unwrap_or_default().to_owned()
    }

    /// The reasons of all events about a node, with their counts.
    fn events(&self, node: &str) -> Vec<(String, i64)> {
        let mut events = self.api.objects(EVENTS);
        events.retain(|event| event["regarding"]["name"] == node);
        events.sort_by_key(|event| event["eventTime"].to_string());
        let printed = events.iter();
        printed
            .map(|event| {
                let count = event["series"]["count"].as_i64().unwrap_or(1);
                (event["reason"].as_str().unwrap().to_owned(), count)
            })
            .collect()
    }
}

fn node(name: &str, version: WindowsVersion) -> Value {
    let mut node = windows_node(name, &format!("10.0.{version}"));
    node["metadata"]["uid"] = json!(format!("uid-of-{name}"));
    node
}

/// A running program, which is killed with the test.
struct Replica {
    child: Child,
    printed: Arc<Mutex<Vec<Value>>>,
    errors: Arc<Mutex<String>>,
    place: String,
}

impl Replica {
    fn start(mut command: Command, place: String) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = Arc::<Mutex<Vec<Value>>>::default();
        let errors = Arc::<Mutex<String>>::default();
        let (lines, to) = (
            BufReader::new(child.stdout.take().unwrap()),
            printed.clone(),
        );
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                to.lock().unwrap().push(line);
            }
        });
        let (lines, to) = (BufReader::new(child.stderr.take().unwrap()), errors.clone());
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                writeln!(to.lock().unwrap(), "{line}").unwrap();
            }
        });
        Self {
            child,
            printed,
            errors,
            place,
        }
    }

    fn printed(&self) -> Vec<Value> {
        self.printed.lock().unwrap().clone()
    }

    fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }

    /// Waits until a condition is true.
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !is_so() {
            let reported = (self.printed(), self.errors());
            assert!(
                Instant::now() < deadline,
                "{what} did not happen: {reported:#?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Status and body of a page.
    fn get(&self, path: &str) -> (u16, String) {
        get(&self.place, path)
    }

    /// The value of a metric.
    fn metric(&self, name: &str) -> Option<f64> {
        let (_, text) = self.get("/metrics");
        let line = text.lines().find_map(|line| {
            line.strip_prefix("wincimg_fleet_")
                .and_then(|line| line.strip_prefix(name)?.strip_prefix(' '))
        })?;
        line.parse().ok()
    }

    fn leads(&self) -> bool {
        self.metric("leader") == Some(1.0)
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }
}

/// Status and body of a page; 0 if the connection fails.
fn get(place: &str, path: &str) -> (u16, String) {
    let Ok(mut stream) = TcpStream::connect(place) else {
        return (0, String::new());
    };
    let request = format!("GET {path} HTTP/1.0\r\nHost: {place}\r\nAccept: */*\r\n\r\n");
    let mut answer = Vec::new();
    let asked = stream.write_all(request.as_bytes());
    if asked
        .and_then(|()| stream.read_to_end(&mut answer))
        .is_err()
    {
        return (0, String::new());
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap_or_default(), body.to_owned())
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A node is patched, and its images are built automatically.
#[test]
fn a_node_with_a_new_build_finds_its_images() {
    let scene = FollowSetup::new(1);
    scene.publish(NEW);
    let replica = scene.start(&["--resync", "1h"]);
    let reference = format!("{}/pause-0:latest", scene.site.host());
    replica.until("the first image", || {
        scene.versions(0) == ["10.0.17763.973"]
    });
    replica.until("its event", || !scene.events("win-a").is_empty());
    let strictly = || {
        let arguments = ["check-compat", &reference, "--kube", "--strict"];
        let mut command = assert_cmd::Command::from(scene.command(&arguments));
        command.args(["--on", "2024-06-01"]).output().unwrap()
    };
    assert_eq!(strictly().status.code(), Some(0));
    scene.api.change(&node("win-a", NEW));
    assert_eq!(strictly().status.code(), Some(1), "it is not there yet");
    let begun = Instant::now();
    replica.until("the new image", || strictly().status.code() == Some(0));
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(scene.versions(0), ["10.0.17763.1158"]);
    replica.until("its event", || scene.events("win-a").len() == 2);
    let ready = ("ImagesReady".to_owned(), 1);
    assert_eq!(scene.events("win-a"), [ready.clone(), ready]);
    assert_eq!(replica.metric("windows_builds"), Some(1.0));
    assert_eq!(replica.metric("images_made_total"), Some(2.0));
    assert_eq!(replica.metric("images{state=\"ready\"}"), Some(1.0));
    assert_eq!(replica.metric("images{state=\"missing\"}"), Some(0.0));
    assert!(replica.metric("last_success_timestamp_seconds").is_some());
    assert_eq!(replica.get("/healthz").0, 200);
    assert_eq!(replica.get("/readyz").0, 200);
    assert_eq!(replica.get("/secrets").0, 404);
    let images = || {
        let mut images = replica.printed();
        images.retain(|it| it["image"].is_string());
        images
    };
    replica.until("a line for each", || images().len() >= 2);
    let images = images();
    assert_eq!(images.len(), 2, "{images:#?}");
    assert_eq!(images[1]["build"], "17763.1158");
    assert_eq!(images[1]["state"], "made");
}

/// Nodes that join with a known build, heartbeats and restarts cause no requests to the registry
/// and no duplicate events.
#[test]
fn what_is_known_is_neither_asked_nor_said_again() {
    let scene = FollowSetup::new(2);
    let replica = scene.start(&["--resync", "1h"]);
    replica.until("the event", || scene.events("win-a").len() == 1);
    let asked = scene.site.requests();
    for _ in 0..3 {
        scene.api.change(&node("win-a", OLD));
    }
    scene.api.change(&node("win-b", OLD));
    replica.until("the event", || scene.events("win-b").len() == 1);
    assert_eq!(scene.site.requests_since(asked), Vec::<String>::new());
    drop(replica);
    let replica = scene.start(&[]);
    let rounds = "rounds_total{result=\"complete\"}";
    replica.until("a round", || replica.metric(rounds) == Some(1.0));
    replica.until("events", || {
        let nodes = replica.printed();
        nodes.iter().filter(|it| it["node"].is_string()).count() == 2
    });
    for name in ["win-a", "win-b"] {
        assert_eq!(scene.events(name), [("ImagesReady".to_owned(), 1)]);
    }
    // The events of the first replica are listed, not written again.
    let targets = scene.api.targets();
    let created = targets
        .iter()
        .filter(|(method, target)| method == "POST" && target.starts_with(EVENTS));
    assert_eq!(created.count(), 2);
    assert_eq!(replica.metric("images_made_total"), Some(0.0));
}

/// Missing security fixes of an image are printed when they change, not in each round.
#[test]
fn the_security_fixes_that_an_image_lacks_are_printed_on_change() {
    let scene = FollowSetup::new(1);
    let image = format!("{}/pause-0:latest-10.0.17763.973", scene.site.host());
    let fixes = |replica: &Replica| -> Vec<Value> {
        let mut lines = replica.printed();
        lines.retain(|line| line["missing_fixes"].is_object());
        lines
    };
    let rounds = |replica: &Replica| {
        let rounds = replica.metric("rounds_total{result=\"complete\"}");
        rounds.unwrap_or_default()
    };
    let replica = scene.start(&["--resync", "300ms"]);
    replica.until("a round", || rounds(&replica) >= 2.0);
    assert_eq!(fixes(&replica), [] as [Value; 0], "without a table");

    add_security_fix(
        &scene.site,
        &image,
        ("2024-Apr", "2024-04-09"),
        "CVE-2024-1",
    );
    replica.until("the first count", || fixes(&replica).len() == 1);
    let begun = rounds(&replica);
    replica.until("two rounds", || rounds(&replica) >= begun + 2.0);
    let expected = json!([{"reference": image, "build": "17763.973", "known": true, "missing": 1,
        "critical": 1, "exploited": 0}]);
    assert_eq!(fixes(&replica).len(), 1);
    let found = &fixes(&replica)[0]["missing_fixes"];
    assert_eq!(found["images"], expected);
    assert_eq!(found["table"]["newest"], "2024-Apr");

    add_security_fix(
        &scene.site,
        &image,
        ("2024-May", "2024-05-14"),
        "CVE-2024-2",
    );
    replica.until("the second count", || fixes(&replica).len() == 2);
    assert_eq!(
        fixes(&replica)[1]["missing_fixes"]["images"][0]["missing"],
        2
    );

    drop(replica);
    let replica = scene.start(&["--format", "text"]);
    let line = format!(
        "{image} (17763.973) lacks 2 security fixes, 2 critical, by security updates as of 2024-May"
    );
    let is_it = |it: &Value| it.as_str().is_some_and(|it| it.starts_with(&line));
    replica.until("a line", || replica.printed().iter().any(is_it));
}

/// The leader is killed while it works: another replica takes over and completes everything.
#[test]
fn another_replica_takes_over_from_one_that_was_killed() {
    let count = 24;
    let scene = FollowSetup::new(count);
    let mut first = scene.start(&[]);
    first.until("the lease", || first.leads());
    let second = scene.start(&[]);
    let pushed = || {
        let requests = scene.site.requests_since(0);
        let tags = requests
            .iter()
            .filter(|it| it.starts_with("PUT ") && it.ends_with("/latest"));
        tags.count()
    };
    // In the middle of the work, unless it was too fast.
    first.until("a tag", || pushed() > 0);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let killed = Instant::now();
    assert!(!second.leads(), "two at once");
    second.until("the lease", || second.leads());
    let took = killed.elapsed();
    assert!(
        took > Duration::from_secs(1) && took < Duration::from_secs(15),
        "{took:?}"
    );
    second.until("everything", || {
        second.metric("images{state=\"ready\"}") == Some(24.0)
    });
    for image in 0..count {
        assert_eq!(scene.versions(image), ["10.0.17763.973"]);
    }
    let lease = scene.api.object(LEASE).unwrap();
    assert!(
        lease["spec"]["leaseTransitions"].as_i64() >= Some(1),
        "{lease}"
    );
    let check = json_of(&mut assert_cmd::Command::from(
        scene.command(&["fleet", "check", "fleet.toml", "--kube"]),
    ));
    assert!(check.is_object(), "{check}");
}

#[test]
fn whoever_is_asked_to_end_lets_another_have_the_lease_at_once() {
    let scene = FollowSetup::new(1);
    // Too long to wait for.
    let mut first = scene.start(&["--lease-duration", "1h"]);
    first.until("the lease", || first.leads());
    let second = scene.start(&["--lease-duration", "30s"]);
    second.until("waiting", || second.get("/readyz").0 == 200);
    assert_eq!(second.metric("leader"), Some(0.0));
    first.signal("-TERM");
    let ended = first.child.wait().unwrap();
    assert_eq!(ended.signal(), Some(15), "{}", first.errors());
    assert_eq!(
        first.errors().matches("error").count(),
        0,
        "{}",
        first.errors()
    );
    assert_eq!(scene.holder(), "");
    second.until("the lease", || second.leads());
}

/// The cluster's API fails for a long time: the program waits, probes report it, and changes in the
/// meantime are found.
#[test]
fn an_api_that_is_away_is_waited_for() {
    let scene = FollowSetup::new(1);
    scene.publish(NEW);
    let replica = scene.start(&["--resync", "1h"]);
    replica.until("the first image", || {
        scene.versions(0) == ["10.0.17763.973"]
    });
    for code in [500, 410] {
        scene.api.fault(Some(code));
        replica.until("readyz to tell", || replica.get("/readyz").0 == 503);
        replica.until("the work to stop", || !replica.leads());
        let failures = || replica.metric("cluster_failures_total").unwrap_or_default();
        let before = failures();
        replica.until("it to have asked again", || failures() >= before + 2.0);
        assert_eq!(
            replica.get("/healthz").0,
            200,
            "starting again would not help"
        );
        // The change is missed, and the history is gone too.
        let version = if code == 500 { NEW } else { OLD };
        scene.api.change(&node("win-a", version));
        scene.api.compact();
        scene.api.fault(None);
        replica.until("readyz to tell", || replica.get("/readyz").0 == 200);
        let version = version.os_version();
        replica.until("the image", || scene.versions(0).contains(&version));
    }
    let warnings = replica.errors();
    assert!(
        warnings.lines().count() < 30,
        "said once, not each time: {warnings}"
    );
}

#[test]
fn while_another_holds_the_lease_nothing_is_done() {
    let scene = FollowSetup::new(1);
    let renewed = |second: u32| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "wincimg-fleet", "namespace": "wincimg"},
            "spec": {
                "holderIdentity": "somebody", "leaseDurationSeconds": 2, "leaseTransitions": 4,
                "acquireTime": "2001-01-01T00:00:00.000000Z",
                // From a clock that is years behind.
                "renewTime": format!("2001-01-01T00:00:{second:02}.000000Z"),
            },
        })
    };
    scene.api.put(LEASE, &renewed(0));
    let replica = scene.start(&[]);
    for second in 1..8 {
        std::thread::sleep(Duration::from_millis(500));
        scene.api.put(LEASE, &renewed(second));
    }
    assert_eq!(scene.holder(), "somebody");
    assert_eq!(scene.versions(0), Vec::<String>::new());
    assert_contains!(replica.errors(), "somebody");
    replica.until("the lease", || replica.leads());
    assert_eq!(
        scene.api.object(LEASE).unwrap()["spec"]["leaseTransitions"],
        5
    );
    replica.until("the image", || !scene.versions(0).is_empty());
}

/// A missing base: an event is recorded, the build is retried, and another event is recorded.
#[test]
fn what_is_missing_is_said_and_tried_again() {
    let scene = FollowSetup::new(1);
    scene
        .api
        .change(&node("win-b", WindowsVersion::new(17134, 1)));
    let replica = scene.start(&["--retry", "1s", "--resync", "1h"]);
    replica.until("the warning", || !scene.events("win-b").is_empty());
    assert_eq!(scene.events("win-a"), [("ImagesReady".to_owned(), 1)]);
    let events = scene.api.objects(EVENTS);
    let warning = events
        .iter()
        .find(|event| event["type"] == "Warning")
        .unwrap();
    assert_eq!(warning["reason"], "ImagesMissing");
    assert_eq!(warning["regarding"]["uid"], "uid-of-win-b");
    let note = warning["note"].as_str().unwrap();
    assert_contains!(note, "17134.1", "wincimg fleet check");
    let failures = replica.metric("image_failures_total");
    replica.until("another try", || {
        replica.metric("image_failures_total") > failures
    });
    assert_eq!(replica.metric("images{state=\"missing\"}"), Some(1.0));
    assert_eq!(scene.events("win-b"), [("ImagesMissing".to_owned(), 1)]);
    scene.publish(WindowsVersion::new(17134, 1));
    replica.until("the image", || scene.events("win-b").len() == 2);
    assert_eq!(scene.events("win-b")[1], ("ImagesReady".to_owned(), 1));
}

#[test]
fn a_denied_lease_is_reported_with_the_missing_right() {
    let scene = FollowSetup::new(1);
    for (path, code, values) in [
        (LEASE, 403, &["wincimg/wincimg-fleet", "(403)"][..]),
        ("/api/v1/nodes", 403, &["nodes", "(403)"]),
        ("/api/v1/nodes", 401, &["(401)"]),
    ] {
        scene.api.refuse(path, code);
        let mut replica = scene.start(&[]);
        let ended = replica.child.wait().unwrap();
        let printed = replica.errors();
        assert_eq!(ended.code(), Some(3), "{printed}");
        replica.until("its hint", || replica.errors().contains("hint: "));
        replica.until("its code", || {
            let printed = replica.printed();
            printed
                .iter()
                .any(|line| line.to_string().contains("cluster/denied"))
        });
        let printed = replica.errors();
        for value in values {
            assert_contains!(printed, value);
        }
        if code == 403 {
            assert_contains!(printed, "templates/ci/kubernetes/fleet/rbac.yaml");
        }
        scene.api.refuse(path, 500);
    }
}

/// The shipped role grants exactly the permissions that a complete scene needs.
#[test]
fn the_role_that_ships_grants_what_is_asked_for_and_no_more() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/templates/ci/kubernetes/fleet/rbac.yaml"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let texts = |value: &Value| -> Vec<String> {
        let values = value.as_array().into_iter().flatten();
        values
            .map(|value| value.as_str().unwrap().to_owned())
            .collect()
    };
    let mut granted = BTreeSet::new();
    let mut names = BTreeSet::new();
    for rule in documents
        .iter()
        .filter_map(|document| document["rules"].as_array())
        .flatten()
    {
        for resource in texts(&rule["resources"]) {
            for verb in texts(&rule["verbs"]) {
                granted.insert((resource.clone(), verb));
            }
            names.extend(texts(&rule["resourceNames"]));
        }
    }
    assert_eq!(names, BTreeSet::from(["wincimg-fleet".to_owned()]));
    let scene = FollowSetup::new(1);
    scene
        .api
        .change(&node("win-b", WindowsVersion::new(17134, 1)));
    let mut replica = scene.start(&["--retry", "1s"]);
    replica.until("the warning", || !scene.events("win-b").is_empty());
    scene.publish(WindowsVersion::new(17134, 1));
    replica.until("the image", || scene.events("win-b").len() == 2);
    // An earlier event is counted again.
    scene.api.change(&node("win-b", OLD));
    replica.until("the event", || scene.events("win-b").len() == 3);
    scene
        .api
        .change(&node("win-b", WindowsVersion::new(17134, 1)));
    replica.until("the event", || {
        let events = scene.events("win-b");
        events.contains(&("ImagesReady".to_owned(), 2))
    });
    replica.signal("-TERM");
    replica.child.wait().unwrap();
    let asked: BTreeSet<(String, String)> = scene
        .api
        .targets()
        .into_iter()
        .map(|(method, target)| {
            let (path, query) = target.split_once('?').unwrap_or((&target, ""));
            let mut parts = path
                .split('/')
                .skip_while(|part| !part.starts_with('v'))
                .skip(1);
            let mut resource = parts.next().unwrap();
            if resource == "namespaces" {
                resource = parts.nth(1).unwrap();
            }
            let is_one = parts.next().is_some();
            let verb = match method.as_str() {
                "GET" if query.contains("watch=") => "watch",
                "GET" if is_one => "get",
                "GET" => "list",
                "POST" => "create",
                "PUT" => "update",
                "PATCH" => "patch",
                _ => panic!("{method} {target}"),
            };
            (resource.to_owned(), verb.to_owned())
        })
        .collect();
    assert_eq!(asked, granted);
}

/// Without permission to write events, images are still built.
#[test]
fn events_that_are_rejected_stop_no_work() {
    let scene = FollowSetup::new(1);
    scene.api.refuse(EVENTS, 403);
    let replica = scene.start(&[]);
    replica.until("the image", || scene.versions(0) == ["10.0.17763.973"]);
    replica.until("the warning", || {
        warning(&["win-a"]).eval(&replica.errors())
    });
    assert_eq!(
        replica.metric("events_total{result=\"written\"}"),
        Some(0.0)
    );
    assert!(replica.leads());
}

#[test]
fn answers_without_end_are_reported() {
    let scene = FollowSetup::new(1);
    for (part, what) in [
        ("watch=true", "watch nodes"),
        ("/leases", "read the lease wincimg/wincimg-fleet"),
    ] {
        scene.api.answer_endlessly(part);
        let replica = scene.start(&["--lease-duration", "1m"]);
        let expected = format!("failed to {what}: the answer is too large or does not end");
        replica.until("the warning", || replica.errors().contains(&expected));
    }
}
