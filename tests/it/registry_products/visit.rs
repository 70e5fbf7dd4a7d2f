//! The program's commands run against one registry, fake or real.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use wincimg_oci::document::{Document, Index, ManifestFormat, Verbatim};
use wincimg_testkit::docker_registry::{DockerRegistry, PASSWORD, Setup};
use wincimg_testkit::windows_base::StandIn;

use super::host::RegistryHost;
use super::profile::{Login, Profile, Quirk};
use super::profiles::{DISTRIBUTION_2, MCR};

const VERSION: &str = "10.0.17763.973";
const SMALL: usize = 50_000;
/// More than one piece of an upload.
const LARGE: usize = 33 << 20;

/// Success of a command: with a small layer, and with a large one if it transfers any.
pub type Outcome = (bool, Option<bool>);

/// `build`, `mirror`, `inspect`, `base list`, `doctor`.
pub type Outcomes = [Outcome; 5];

/// Results of the commands.
pub struct VisitResult {
    /// In the page's order.
    pub outcomes: Outcomes,
    /// The output of failed commands.
    pub printed: String,
}

/// Runs every command against a fake registry.
pub fn visit(profile: &'static Profile) -> VisitResult {
    let mut runner = CommandRunner {
        profile,
        // In another registry if this one is read-only.
        target: match profile.login {
            Login::Open => &DISTRIBUTION_2,
            _ => profile,
        },
        printed: String::new(),
    };
    let outcomes = [
        // A build moves the base's layers as a mirror does.
        (runner.build(), None),
        (runner.mirror(SMALL), Some(runner.mirror(LARGE))),
        (runner.inspect(SMALL), Some(runner.inspect(LARGE))),
        (runner.list(), None),
        (runner.doctor(), None),
    ];
    VisitResult {
        outcomes,
        printed: runner.printed,
    }
}

/// The output of `mirror` without login.
pub fn refusal(profile: &'static Profile) -> String {
    let running = RegistryHost::start(&[&MCR, profile]);
    seed(&running, &MCR, "windows/nanoserver", SMALL, 1);
    let image = format!("{}/windows/nanoserver:{VERSION}", MCR.host);
    let place = format!("{}/{}", profile.api, profile.prefix);
    let arguments = ["mirror", &image, "--to", &place];
    let output = run(&arguments, &running.no_login(), &running.environment());
    assert_eq!(output.status.code(), Some(3));
    String::from_utf8(output.stderr).unwrap()
}

/// Runs every command against Debian's `docker-registry`, with TLS and a password.
pub fn run_distribution() -> VisitResult {
    let mut outcomes = [(true, Some(true)); 5];
    let mut printed = String::new();
    for size in [SMALL, LARGE] {
        let docker = DockerRegistry::start(Setup::TLS_AND_PASSWORD);
        let running = RegistryHost::start(&[&MCR]);
        seed(&running, &MCR, "windows/nanoserver", size, 1);
        let trusted = running.trusting(&docker.ca());
        let host = docker.host();
        let place = format!("{host}/me");
        let base = format!("{place}/windows/nanoserver");
        let image = format!("{}/windows/nanoserver:{VERSION}", MCR.host);
        let own = format!("{base}:{VERSION}");
        let trial = format!("{place}/wincimg-doctor");
        let commands: [(usize, &[&str]); 6] = [
            (1, &["mirror", &image, "--to", &place]),
            (0, &build("pause0", &place, MCR.host)),
            (0, &build("pause1", &place, &place)),
            (2, &["inspect", &own, "--layers", "all", "--format", "json"]),
            (3, &["base", "list", &base, "--format", "json"]),
            (4, &["doctor", "--registry", &trial, "--push"]),
        ];
        for (column, arguments) in commands {
            let config = docker.docker_config(&host, PASSWORD);
            let output = run(arguments, &config, &trusted);
            let outcome = &mut outcomes[column];
            let shown = String::from_utf8_lossy(&output.stdout);
            let done = match column {
                // The missing daemon and catalog are problems too.
                4 => shown.contains(&format!("ok       manifest {trial}")),
                2 | 3 => output.status.success() && shown.contains(VERSION),
                _ => output.status.success(),
            };
            if !done {
                printed += &failure(arguments, &output);
                match size {
                    SMALL => outcome.0 = false,
                    _ => outcome.1 = Some(false),
                }
            }
        }
    }
    VisitResult { outcomes, printed }
}

/// `build pause --push` under a name, on the base in a registry.
fn build<'a>(name: &'a str, place: &'a str, base: &'a str) -> [&'a str; 13] {
    [
        "build", "pause", "--engine", "direct", "--push", "--registry", place, "--name", name,
        "--base-registry", base, "--host-build", "17763.973",
    ]
}

struct CommandRunner {
    profile: &'static Profile,
    target: &'static Profile,
    printed: String,
}

impl CommandRunner {
    /// Microsoft's registry and this one; optionally both with the base image of this size.
    fn running(&self, size: usize, own: bool) -> RegistryHost {
        let running = RegistryHost::start(&[&MCR, self.target]);
        seed(&running, &MCR, "windows/nanoserver", size, 1);
        if own && self.profile.name != MCR.name {
            let tags = self.profile.tags();
            seed(&running, self.profile, &self.own_base(), size, tags);
        }
        running
    }

    /// The repository of the base image in this registry.
    fn own_base(&self) -> String {
        base_in(self.profile)
    }

    /// `HOST/PREFIX` of pushed images.
    fn place(&self) -> String {
        format!("{}/{}", self.target.host, self.target.prefix)
    }

    /// Builds on Microsoft's base and, if the registry can store it, on the same base there.
    fn build(&mut self) -> bool {
        let running = self.running(SMALL, true);
        let place = self.place();
        let mut bases = vec![MCR.host];
        if self.target.name == self.profile.name {
            bases.push(&place);
        }
        let mut done = true;
        for (number, base) in bases.iter().enumerate() {
            let name = format!("pause{number}");
            let repository = format!("{}/{name}", self.target.prefix);
            running.create(self.target, &repository);
            let mut arguments = build(&name, &place, base).to_vec();
            arguments.extend(self.target.flags);
            done &= self.run(&running, &arguments).is_some() && self.holds(&running, &repository);
        }
        done
    }

    fn mirror(&mut self, size: usize) -> bool {
        let running = self.running(size, false);
        let repository = base_in(self.target);
        running.create(self.target, &repository);
        let image = format!("{}/windows/nanoserver:{VERSION}", MCR.host);
        let place = self.place();
        let mut arguments = vec!["mirror", &image, "--to", &place];
        arguments.extend(self.target.flags);
        let ran = self.run(&running, &arguments).is_some();
        ran && self.holds(&running, &repository)
    }

    fn inspect(&mut self, size: usize) -> bool {
        let running = self.running(size, true);
        let image = format!("{}/{}:{VERSION}", self.profile.host, self.own_base());
        let arguments = ["inspect", &image, "--layers", "all", "--format", "json"];
        let shown = self.run(&running, &arguments);
        shown.is_some_and(|shown| shown.contains(VERSION))
    }

    /// Returns true if every tag is found.
    fn list(&mut self) -> bool {
        let running = self.running(SMALL, true);
        let repository = format!("{}/{}", self.profile.host, self.own_base());
        let wanted = match self.profile.login {
            Login::Open => 1,
            _ => self.profile.tags(),
        };
        let shown = self.run(&running, &["base", "list", &repository, "--format", "json"]);
        let listed = shown.map_or(0, |shown| {
            let document: Value = serde_json::from_str(&shown).unwrap();
            document["images"].as_array().map_or(0, Vec::len)
        });
        if listed != wanted {
            self.printed += &format!("base list: {listed} of {wanted} tags\n");
        }
        listed == wanted
    }

    /// Returns true if the registry has no problem except one that `--manifest-format` solves.
    fn doctor(&mut self) -> bool {
        let running = self.running(SMALL, false);
        let host = self.profile.host;
        let repository = format!("{}/wincimg-doctor", self.profile.prefix);
        let trial = format!("{host}/{repository}");
        let mut arguments = vec!["doctor", "--format", "json"];
        if self.target.name == self.profile.name {
            running.create(self.profile, &repository);
            arguments.extend(["--registry", &trial, "--push"]);
        }
        // There is neither a daemon nor a catalog, so the exit code is 1.
        let output = run(&arguments, &running.config(), &running.environment());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let checks = document["checks"].as_array().cloned().unwrap_or_default();
        let about = checks.iter().filter(|check| {
            let subject = check["subject"].as_str().unwrap_or_default();
            subject.starts_with(host)
        });
        let (well, ill): (Vec<_>, Vec<_>) = about.partition(|check| {
            let solved = check["fix"].as_str().unwrap_or_default();
            let flag = self.profile.flags.join(" ");
            check["state"] != "problem" || (!flag.is_empty() && solved.ends_with(&flag))
        });
        let done = ill.is_empty() && !well.is_empty();
        if !done {
            self.printed += &failure(&arguments, &output);
            self.printed += &format!("{ill:?}\n");
        }
        done
    }

    /// The output of a command, if it succeeded and used no other host. Public content is read
    /// without login.
    fn run(&mut self, running: &RegistryHost, arguments: &[&str]) -> Option<String> {
        let reads = matches!(arguments[0], "inspect" | "base");
        let config = if reads && self.profile.has(Quirk::PublicReads) {
            running.no_login()
        } else {
            running.config()
        };
        let output = run(arguments, &config, &running.environment());
        let strangers = running.strangers();
        if output.status.success() && strangers.is_empty() {
            return Some(String::from_utf8(output.stdout).unwrap());
        }
        self.printed += &failure(arguments, &output);
        for stranger in strangers {
            self.printed += &format!("asked {stranger}, which is not played\n");
        }
        None
    }

    /// Returns true if the version's tag exists; a manifest is accepted only if its content exists.
    fn holds(&mut self, running: &RegistryHost, repository: &str) -> bool {
        let path = format!("/v2/{repository}/manifests/{VERSION}");
        let found = found(&running.behind(self.target), &path);
        if !found {
            self.printed += &format!("{repository}:{VERSION} is not there\n");
        }
        found
    }
}

/// The repository of the mirrored base image in a registry.
fn base_in(profile: &Profile) -> String {
    let prefix = profile.prefix;
    if profile.has(Quirk::TwoParts) {
        format!("{prefix}/windows-nanoserver")
    } else if prefix.is_empty() {
        "windows/nanoserver".to_owned()
    } else {
        format!("{prefix}/windows/nanoserver")
    }
}

/// A base image in Microsoft's form; the upper layer has this size.
fn base(size: usize, format: ManifestFormat) -> &'static StandIn {
    static BASES: [OnceLock<StandIn>; 4] = [const { OnceLock::new() }; 4];
    let which = usize::from(size == LARGE) + 2 * usize::from(format == ManifestFormat::Oci);
    BASES[which].get_or_init(|| StandIn::new(format, VERSION, &[(7_000, 1), (size, 2)]))
}

/// Adds the base image to a registry, under its version, with this total number of tags.
fn seed(running: &RegistryHost, profile: &Profile, repository: &str, size: usize, tags: usize) {
    let refused = profile.find(|quirk| matches!(quirk, Quirk::OciOnly(_)).then_some(()));
    let format = refused.map_or(ManifestFormat::Docker, |()| ManifestFormat::Oci);
    let base = base(size, format);
    let index = Verbatim::new(Index::new(format, vec![base.image.index_entry()])).unwrap();
    let index = Document::Index(index);
    running.create(profile, repository);
    running.with(profile, |stored| {
        for (_, bytes) in &base.layers {
            stored.add_blob(repository, bytes.clone());
        }
        stored.add_blob(repository, base.image.config().bytes().clone());
        let manifest = base.image.manifest();
        let digest = base.image.digest().to_string();
        let bytes = manifest.bytes().clone();
        stored.add_manifest(repository, &digest, manifest.media_type(), bytes);
        for number in 0..tags {
            let tag = match number {
                0 => VERSION.to_owned(),
                _ => format!("10.0.17763.{}", 10_000 + number),
            };
            let bytes = index.bytes().clone();
            stored.add_manifest(repository, &tag, index.media_type(), bytes);
        }
    });
}

fn run(arguments: &[&str], config: &Path, environment: &[(&str, PathBuf)]) -> Output {
    let own = assert_cmd::cargo::cargo_bin!("wincimg");
    // Another build of the program, for comparison.
    let other = std::env::var_os("WINCIMG_ZOO_PROGRAM");
    let mut command = Command::new(other.as_deref().map_or(own, Path::new));
    for proxy in ["NO_PROXY", "no_proxy", "https_proxy"] {
        command.env_remove(proxy);
    }
    command
        .current_dir(std::env::temp_dir())
        .args(arguments)
        .arg("--registry-config")
        .arg(config)
        .args(["--timeout", "2m", "--quiet"])
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
        .envs(environment.iter().map(|(name, value)| (*name, value)))
        .output()
        .unwrap()
}

fn failure(arguments: &[&str], output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stderr);
    format!("wincimg {}\n{printed}", arguments.join(" "))
}

/// Returns true if a registry without login has the path.
fn found(host: &str, path: &str) -> bool {
    let mut connection = TcpStream::connect(host).unwrap();
    let request = format!("HEAD {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer.starts_with("HTTP/1.1 200")
}
