//! `buildctl` in front of the stand-in. It takes the arguments of the real one, and what it prints is
//! what a real `BuildKit` says of the build: `buildkitd` where that is installed, or else that in
//! `dockerd`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};

use axum::body::Bytes;
use axum::http::Method;
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use serde_json::{Value, json};

use super::{StandInState, WindowsStandIn, pushed};
use crate::buildkitd::Buildkitd;
use crate::test_bases::tar_of;

/// The program, which lets the stand-in do the work.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(os.path.join(os.path.dirname(__file__), "socket"))
call = {"arguments": sys.argv[1:], "config": os.environ["DOCKER_CONFIG"], "process": os.getpid()}
server.sendall(json.dumps(call).encode() + b"\n")
for line in server.makefile():
    said = json.loads(line)
    if "exit" in said:
        sys.exit(said["exit"])
    print(said["text"], file=getattr(sys, said["to"]), flush=True)
sys.exit("no answer")
"#;

#[derive(Debug, Clone, Default)]
pub struct BuildctlCalls {
    /// Their arguments.
    pub arguments: Vec<Vec<String>>,
    /// Docker's configuration and the mode of its file, in each build.
    pub configurations: Vec<(Value, u32)>,
    /// The folders of that file.
    pub folders: Vec<PathBuf>,
    /// The IDs of their processes.
    pub processes: Vec<u64>,
}

/// What the program has in common with the daemon.
#[derive(Default)]
pub(super) struct BuildctlState {
    calls: Mutex<BuildctlCalls>,
    buildkitd: OnceLock<Option<Buildkitd>>,
}

impl WindowsStandIn {
    /// The folder of `buildctl`, for the PATH.
    pub fn buildctl(&self) -> PathBuf {
        let folder = self.server.folder.path().join("bin");
        if folder.is_dir() {
            return folder;
        }
        fs::create_dir(&folder).unwrap();
        let program = folder.join("buildctl");
        fs::write(&program, PROGRAM).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let listener = UnixListener::bind(folder.join("socket")).unwrap();
        let shared = Arc::clone(&self.shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.serve_buildctl(&stream.unwrap()));
            }
        });
        folder
    }

    /// The calls of `buildctl` so far.
    pub fn buildctl_calls(&self) -> BuildctlCalls {
        self.shared.buildctl.calls.lock().unwrap().clone()
    }
}

#[derive(Debug, Default)]
struct BuildArguments {
    dockerfile: String,
    name: String,
    metadata: String,
    arguments: serde_json::Map<String, Value>,
    no_cache: bool,
}

impl BuildArguments {
    fn read(words: &[String]) -> Self {
        let mut read = Self::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let (flag, value) = word.split_once('=').unwrap_or((word, ""));
            match (flag, value) {
                ("--progress", "rawjson") | ("--frontend", "dockerfile.v0") => {}
                ("--local", value) => {
                    let (name, folder) = value.split_once('=').unwrap();
                    assert!(["context", "dockerfile"].contains(&name));
                    folder.clone_into(&mut read.dockerfile);
                }
                ("--opt", value) => {
                    let value = value.strip_prefix("build-arg:").unwrap();
                    let (name, value) = value.split_once('=').unwrap();
                    read.arguments.insert(name.to_owned(), json!(value));
                }
                ("--output", value) => {
                    let value = value.strip_prefix("type=image,name=").unwrap();
                    let name = value.strip_suffix(",push=true,store=false").unwrap();
                    name.clone_into(&mut read.name);
                }
                ("--metadata-file", "") => words.next().unwrap().clone_into(&mut read.metadata),
                ("--no-cache", "") => read.no_cache = true,
                other => panic!("buildctl has no {other:?}"),
            }
        }
        read
    }
}

/// The output of the program.
struct Printer<'a>(&'a UnixStream);

impl Printer<'_> {
    fn print(&mut self, to: &str, text: &str) {
        // The program may have been ended.
        let _ = writeln!(self.0, "{}", json!({"to": to, "text": text}));
    }

    fn exit(&mut self, code: i32) {
        let _ = writeln!(self.0, "{}", json!({ "exit": code }));
    }
}

impl StandInState {
    fn serve_buildctl(&self, stream: &UnixStream) {
        let mut call = String::new();
        BufReader::new(stream).read_line(&mut call).unwrap();
        let call: Value = serde_json::from_str(&call).unwrap();
        let words = call["arguments"].as_array().unwrap().iter();
        let words: Vec<String> = words.map(|it| it.as_str().unwrap().to_owned()).collect();
        let mut printer = Printer(stream);
        let mut calls = self.buildctl.calls.lock().unwrap();
        calls.arguments.push(words.clone());
        calls.processes.push(call["process"].as_u64().unwrap());
        drop(calls);
        // Flags of the connection come first.
        let (flags, rest) =
            words.split_at(words.iter().position(|it| !it.starts_with('-')).unwrap());
        assert!(flags[0].starts_with("--addr=tcp://127.0.0.1:"), "{flags:?}");
        match rest[0].as_str() {
            "debug" => {
                assert_eq!(rest[1..], ["workers", "--format", "{{json .}}"]);
                printer.print("stdout", &self.workers().to_string());
                printer.exit(0);
            }
            "build" => {
                let build = BuildArguments::read(&rest[1..]);
                let config = Path::new(call["config"].as_str().unwrap());
                let credentials = self.note_configuration(config);
                let buildkitd = self
                    .buildctl
                    .buildkitd
                    .get_or_init(|| Buildkitd::find(&self.registry.host()));
                let succeeded = match buildkitd {
                    Some(daemon) => self.build_by_buildkitd(daemon, &build, config, &mut printer),
                    None => self.build_by_dockerd(&build, &credentials, &mut printer),
                };
                printer.exit(i32::from(!succeeded));
            }
            other => panic!("buildctl has no {other:?}"),
        }
    }

    fn workers(&self) -> Value {
        let (host, _) = self.machine.version.rsplit_once('.').unwrap();
        let platform = json!({"architecture": "amd64", "os": "windows", "os.version": host});
        json!([{"id": "x", "labels": {}, "platforms": [platform], "buildkitVersion": {"version": "v0.13.2"}}])
    }

    fn note_configuration(&self, folder: &Path) -> Value {
        let file = folder.join("config.json");
        let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        let config: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let mut calls = self.buildctl.calls.lock().unwrap();
        calls.configurations.push((config.clone(), mode));
        calls.folders.push(folder.to_owned());
        config
    }

    /// The Dockerfile on the twin of its base.
    fn twin_of(&self, build: &BuildArguments) -> Vec<u8> {
        let text = fs::read(Path::new(&build.dockerfile).join("Dockerfile")).unwrap();
        self.for_linux(&tar_of(&[("Dockerfile", text)]))
    }

    fn build_by_dockerd(
        &self,
        build: &BuildArguments,
        config: &Value,
        printer: &mut Printer<'_>,
    ) -> bool {
        let query = |text: &str| {
            let bytes = text.bytes().map(|byte| format!("%{byte:02X}"));
            bytes.collect::<String>()
        };
        let target = format!(
            "/v1.41/build?version=2&networkmode=none&t={}&nocache={}&buildargs={}",
            query(&build.name),
            build.no_cache,
            query(&Value::from(build.arguments.clone()).to_string()),
        );
        let headers = "Content-Type: application/x-tar\r\n";
        let reply = self.forward(&Method::POST, &target, headers, &self.twin_of(build));
        for line in String::from_utf8(reply.body).unwrap().lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            if message["id"] == "moby.buildkit.trace" {
                let bytes = BASE64_STANDARD.decode(message["aux"].as_str().unwrap());
                printer.print("stderr", &solve_status(&bytes.unwrap()).to_string());
            }
            if let Some(error) = message["error"].as_str().or(message["message"].as_str()) {
                printer.print("stderr", &format!("error: failed to solve: {error}"));
                return false;
            }
        }
        let digest = self.push(build, config);
        let metadata = json!({"containerimage.digest": digest, "image.name": build.name});
        // The program may have been ended, with its folder.
        let _ = fs::write(&build.metadata, metadata.to_string());
        true
    }

    /// Pushes an image, and returns the digest of its Windows twin.
    fn push(&self, build: &BuildArguments, config: &Value) -> String {
        let (name, tag) = build.name.rsplit_once(':').unwrap();
        let (host, _) = name.split_once('/').unwrap();
        let credential = match &config["auths"][host] {
            Value::Null => "{}".to_owned(),
            credential => credential.to_string(),
        };
        let credential = BASE64_URL_SAFE.encode(credential);
        let headers = format!("X-Registry-Auth: {credential}\r\n");
        let target = format!("/v1.41/images/{name}/push?tag={tag}");
        let reply = self.reply(&Method::POST, &target, &headers, &Bytes::new());
        let printed = String::from_utf8(reply.body).unwrap();
        let pushed = pushed(&printed).unwrap_or_else(|| panic!("{printed}"));
        pushed["Digest"].as_str().unwrap().to_owned()
    }

    fn build_by_buildkitd(
        &self,
        daemon: &Buildkitd,
        build: &BuildArguments,
        config: &Path,
        printer: &mut Printer<'_>,
    ) -> bool {
        let folder = tempfile::tempdir().unwrap();
        tar::Archive::new(self.twin_of(build).as_slice())
            .unpack(folder.path())
            .unwrap();
        let local = |name: &str| format!("--local={name}={}", folder.path().display());
        let mut command = daemon.client();
        command
            .args(["build", "--progress=rawjson", "--frontend=dockerfile.v0"])
            .args([local("context"), local("dockerfile")])
            .arg(format!(
                "--output=type=image,name={},push=true,store=false",
                build.name
            ))
            .args([
                "--opt=force-network-mode=none",
                "--metadata-file",
                &build.metadata,
            ])
            .env("DOCKER_CONFIG", config)
            .stderr(Stdio::piped());
        for (name, value) in &build.arguments {
            command.arg(format!(
                "--opt=build-arg:{name}={}",
                value.as_str().unwrap()
            ));
        }
        command.args(build.no_cache.then_some("--no-cache"));
        let mut running = command.spawn().unwrap();
        for line in BufReader::new(running.stderr.take().unwrap()).lines() {
            printer.print("stderr", &line.unwrap());
        }
        let succeeded = running.wait().unwrap().success();
        if succeeded {
            let (name, tag) = build.name.rsplit_once(':').unwrap();
            let (_, repository) = name.split_once('/').unwrap();
            let mut metadata: Value =
                serde_json::from_slice(&fs::read(&build.metadata).unwrap()).unwrap();
            let digest = metadata["containerimage.digest"].as_str().unwrap();
            metadata["containerimage.digest"] = json!(self.windows_twin(repository, digest, tag));
            fs::write(&build.metadata, metadata.to_string()).unwrap();
        }
        succeeded
    }
}

/// The JSON of a `StatusResponse`, as `buildctl` prints it.
fn solve_status(message: &[u8]) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut vertexes, mut logs) = (Vec::new(), Vec::new());
    for (number, bytes) in fields(message) {
        let mut found = json!({});
        for (field, value) in fields(bytes) {
            let (name, value) = match (number, field) {
                (1, 1) => ("digest", json!(text(value))),
                (1, 3) => ("name", json!(text(value))),
                (1, 4) => ("cached", json!(value != [0])),
                (1, 5) => ("started", json!("2020-01-14T00:00:00Z")),
                (1, 6) => ("completed", json!("2020-01-14T00:00:00Z")),
                (1, 7) => ("error", json!(text(value))),
                (3, 1) => ("vertex", json!(text(value))),
                (3, 4) => ("data", json!(BASE64_STANDARD.encode(value))),
                _ => continue,
            };
            found[name] = value;
        }
        match number {
            1 => vertexes.push(found),
            3 => logs.push(found),
            _ => {}
        }
    }
    json!({"vertexes": vertexes, "logs": logs})
}

/// The fields of a message in the format of protocol buffers.
fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    fn number(message: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = message.split_first().unwrap();
            *message = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = number(&mut message);
        let start = message;
        let value = match key & 7 {
            0 => {
                number(&mut message);
                &start[..start.len() - message.len()]
            }
            2 => {
                let length = usize::try_from(number(&mut message)).unwrap();
                let (value, rest) = message.split_at(length);
                message = rest;
                value
            }
            other => panic!("a field of type {other}"),
        };
        found.push((key >> 3, value));
    }
    found
}
