//! Images built by the direct engine, run under wine: the program sees the image's configuration.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use tempfile::TempDir;
use wincimg_testkit::component;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::put_at;
use wincimg_testkit::test_bases::{
    FOLDER, LayerTar, bottom_layer, image_of, made_software, made_system,
};
use wincimg_testkit::wine::succeed;

use crate::failure::{Fails, line, note, says, warning};
use crate::site::{Site, json_of, write_program};

const VERSION: &str = "10.0.17763.973";
const BASE_PATH: &str = r"%SystemRoot%\system32;%SystemRoot%";

/// A folder with the program that prints what it sees, a base with a registry, and a temporary
/// folder that shows leftovers.
struct TrySetup {
    folder: TempDir,
    server: FakeRegistry,
    /// Limits the tests to one Windows of wine at a time.
    _turn: MutexGuard<'static, ()>,
}

async fn trial() -> TrySetup {
    static TURN: Mutex<()> = Mutex::new(());
    static SEEN: OnceLock<Vec<u8>> = OnceLock::new();
    component("wine64");
    component("bwrap");
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("tmp")).unwrap();
    let seen = SEEN.get_or_init(|| {
        compile("seen", folder.path(), &["-municode", "-lcrypt32"]);
        fs::read(folder.path().join("seen.exe")).unwrap()
    });
    fs::write(folder.path().join("seen.exe"), seen).unwrap();
    let server = FakeRegistry::start();
    let host = server.host();
    let mut bottom = bottom_layer(&made_system(BASE_PATH), &made_software());
    bottom.folder("Files/Windows/Help", Some(FOLDER));
    for program in ["reg", "setx"] {
        let file = format!("Files/Windows/System32/{program}.exe");
        bottom.file(&file, b"MZ", None);
    }
    let base = image_of(VERSION, vec![bottom.tar()]);
    put_at(&base, &format!("{host}/windows/nanoserver:{VERSION}")).await;
    TrySetup {
        folder,
        server,
        _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner),
    }
}

/// Compiles a program of `tests/programs` for Windows.
fn compile(name: &str, folder: &Path, options: &[&str]) {
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let warnings = ["-O1", "-Wall", "-Wextra", "-Werror", "-s", "-o"];
    let mut compiler = Command::new(component("x86_64-w64-mingw32-gcc"));
    compiler
        .args(warnings)
        .arg(folder.join(name).with_extension("exe"))
        .arg(source)
        .args(options);
    succeed(&mut compiler).unwrap();
}

impl TrySetup {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command
            .current_dir(self.folder.path())
            .env("DOCKER_CONFIG", self.folder.path())
            .env("TMPDIR", self.path("tmp"))
            .env("SECRET_OF_THIS_MACHINE", "seen")
            .args(["--cache-dir", "cache"]);
        command
    }

    /// Builds the folder into the layout `out`.
    fn build(&self) {
        let host = self.server.host();
        let mut build = self.command();
        build
            .args(["build", ".", "--host-build", "17763.973"])
            .args(["--base-registry", &host, "--insecure-registry", "127.0.0.1"])
            .args(["--output", "oci:out"]);
        succeed(&mut build).unwrap();
    }

    fn attempt(&self, arguments: &[&str]) -> assert_cmd::Command {
        let mut command = self.command();
        command.args(["try", "oci:out"]).args(arguments);
        let mut command = assert_cmd::Command::from(command);
        command.timeout(Duration::from_mins(8));
        command
    }

    /// Output of the image's program, and its exit code.
    fn seen(&self, arguments: &[&str], input: &str) -> (Value, i32) {
        let mut command = self.attempt(arguments);
        let output = command.write_stdin(input).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        let seen = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {printed}"));
        assert_contains!(printed, "seen");
        (seen, output.status.code().unwrap())
    }

    /// Leftovers of earlier runs.
    fn left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

fn utf16(text: &str) -> String {
    let units = text.encode_utf16().chain([0]);
    hex::encode(units.flat_map(u16::to_le_bytes).collect::<Vec<_>>())
}

fn holds(list: &Value, text: &str) -> bool {
    list.as_array().unwrap().contains(&json!(text))
}

/// Writes a recipe with special characters, and the input of its program.
fn write_hard_recipe(trial: &TrySetup, openssl: &Path) {
    let request =
        "req -x509 -newkey rsa:2048 -nodes -keyout root.key -out root.pem -subj /CN=Corp -days 30";
    succeed(
        Command::new(openssl)
            .args(request.split(' '))
            .current_dir(trial.folder.path()),
    )
    .unwrap();
    trial.write("notes.txt", "größer\r\n");
    trial.write(
        "recipe.toml",
        r#"name = "app"
base = "nanoserver"
path = ['C:\app']
entrypoint = ['seen.exe', 'a b', 'q"uo\te\', '', '%PATH%&|<>^', 'ä漢😀']
cmd = ["more"]
working_dir = 'C:\Work Here\below'
user = "ContainerUser"

[env]
GREETING = "hello 'world' \"%PATH%\" ä"
TEMPLATE = '%SystemRoot%\x'

[certificates]
root = ["root.pem"]

[[files]]
from = "seen.exe"
to = 'C:\app\seen.exe'
[[files]]
from = "notes.txt"
to = 'C:\Windows\SYSTEM32\Notes\größer.txt'
[[files]]
from = "notes.txt"
to = 'C:\Users\ContainerUser\own.txt'
[[files]]
from = "ask.txt"
to = 'C:\ask.txt'

[[registry]]
key = 'HKLM\SOFTWARE\Acme\Ünder'
values = { Text = "t\\x \"y\"", Many = ["a", "b c"], Flag = 7 }
[[registry]]
import = "more.reg"
[[registry]]
key = 'HKLM\SYSTEM\CurrentControlSet\Services\Acme'
values = { Start = 4 }
"#,
    );
    trial.write(
        "more.reg",
        "Windows Registry Editor Version 5.00\r\n\r\n[HKEY_LOCAL_MACHINE\\SOFTWARE\\Acme\\More]\r\n\
         @=\"default\"\r\n\"Expand\"=hex(2):25,00,54,00,45,00,4d,00,50,00,25,00,00,00\r\n\
         \"Big\"=hex(b):01,02,03,04,05,06,07,08\r\n\"Raw\"=hex:00,ff\r\n\
         [-HKEY_LOCAL_MACHINE\\SOFTWARE\\Classes\\.txt]\r\n",
    );
    trial.write(
        "ask.txt",
        "key HKLM\\SOFTWARE\\Acme\\Ünder\nkey HKLM\\SOFTWARE\\Acme\\More\n\
         key HKLM\\SYSTEM\\CurrentControlSet\\Services\\Acme\nkey HKLM\\SOFTWARE\\Classes\\.txt\n\
         folder C:\\Users\nfolder C:\\Users\\ContainerUser\nfile C:\\windows\\system32\\notes\\GRÖSSER.TXT\n\
         file C:\\windows\\system32\\notes\\GRÖßER.TXT\nfile Z:\\etc\\passwd\nstore ROOT\nexit 3\n",
    );
}

#[test(multi_thread)]
async fn what_a_recipe_says_is_what_its_program_sees() {
    let trial = trial().await;
    let openssl = component("openssl");
    write_hard_recipe(&trial, &openssl);
    trial.build();
    let (seen, code) = trial.seen(&[], "what comes in");
    assert_eq!(code, 3);

    let line = r#"seen.exe "a b" "q\"uo\te\\" "" %PATH%&|<>^ ä漢😀 more"#;
    assert_eq!(seen["command_line"], line);
    let arguments = [
        "seen.exe", "a b", r#"q"uo\te\"#, "", "%PATH%&|<>^", "ä漢😀", "more",
    ];
    assert_eq!(seen["arguments"], json!(arguments));
    assert_eq!(seen["directory"], r"C:\Work Here\below");
    assert_eq!(seen["user"], "ContainerUser");
    assert_eq!(seen["input"], hex::encode("what comes in"));

    let env = seen["environment"].as_object().unwrap();
    let variable = |name: &str| {
        let mut all = env.iter();
        let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str().unwrap().to_owned())
    };
    assert_eq!(variable("GREETING").unwrap(), "hello 'world' \"%PATH%\" ä");
    assert_eq!(variable("TEMPLATE").unwrap(), r"%SystemRoot%\x");
    assert_eq!(variable("USERPROFILE").unwrap(), r"C:\Users\ContainerUser");
    assert_eq!(
        variable("TEMP").unwrap(),
        r"C:\Users\ContainerUser\AppData\Local\Temp"
    );
    assert_eq!(
        variable("PATH").unwrap().to_lowercase(),
        r"c:\app;c:\windows\system32;c:\windows"
    );
    for name in ["SECRET_OF_THIS_MACHINE", "LC_ALL", "USER", "WINCIMG_START"] {
        assert_eq!(variable(name), None, "{name}");
    }

    has_registry_and_files(&seen);
    let fingerprint = Command::new(openssl)
        .args("x509 -in root.pem -noout -fingerprint -sha1".split(' '))
        .current_dir(trial.folder.path())
        .prints();
    let (_, sha1) = fingerprint.trim().split_once('=').unwrap();
    let sha1 = sha1.replace(':', "").to_lowercase();
    assert!(holds(&seen["store ROOT"], &sha1), "{sha1}");
    assert_eq!(trial.left(), Vec::<PathBuf>::new());
}

fn has_registry_and_files(seen: &Value) {
    assert_eq!(
        seen[r"key HKLM\SOFTWARE\Acme\Ünder"],
        json!({
            "Text": { "type": 1, "data": utf16("t\\x \"y\"") },
            "Many": { "type": 7, "data": utf16("a\0b c\0") },
            "Flag": { "type": 4, "data": "07000000" },
        })
    );
    assert_eq!(
        seen[r"key HKLM\SOFTWARE\Acme\More"],
        json!({
            "": { "type": 1, "data": utf16("default") },
            "Expand": { "type": 2, "data": utf16("%TEMP%") },
            "Big": { "type": 11, "data": "0102030405060708" },
            "Raw": { "type": 3, "data": "00ff" },
        })
    );
    assert_eq!(
        seen[r"key HKLM\SYSTEM\CurrentControlSet\Services\Acme"]["Start"]["data"],
        "04000000"
    );
    assert_eq!(seen[r"key HKLM\SOFTWARE\Classes\.txt"], Value::Null);
    assert!(holds(&seen[r"folder C:\Users"], "ContainerUser"));
    assert!(holds(&seen[r"folder C:\Users\ContainerUser"], "own.txt"));
    let notes = hex::encode("größer\r\n");
    assert_eq!(seen[r"file C:\windows\system32\notes\GRÖßER.TXT"], notes);
    assert_eq!(
        seen[r"file C:\windows\system32\notes\GRÖSSER.TXT"],
        Value::Null
    );
    assert_eq!(
        seen[r"file Z:\etc\passwd"],
        Value::Null,
        "there is no such drive"
    );
}

#[test(multi_thread)]
async fn what_a_dockerfile_does_is_what_its_program_sees() {
    let trial = trial().await;
    trial.write(
        "Dockerfile",
        "# escape=`\n\
         FROM mcr.microsoft.com/windows/nanoserver:1809\n\
         USER ContainerAdministrator\n\
         ENV GREETING=\"hello world\" NEXT=2\n\
         WORKDIR C:\\store\\bin\n\
         COPY seen.exe .\n\
         COPY seen.exe ask.txt old.txt C:\\\n\
         RUN setx /M KIND small && setx /M PATH \"%PATH%;C:\\store\\bin\"\n\
         RUN reg add HKLM\\SOFTWARE\\Acme /v n /t REG_DWORD /d 7 /f\n\
         RUN reg add HKLM\\SOFTWARE\\Acme /v gone /d x /f\n\
         RUN reg delete HKLM\\SOFTWARE\\Acme /v gone /f && del C:\\old.txt && rd /s /q C:\\windows\\help\n\
         RUN echo made> made.txt\n\
         CMD seen.exe \"x & y\"  \"abc\" %KIND% & echo after\n",
    );
    trial.write("old.txt", "old");
    trial.write(
        "ask.txt",
        "key HKLM\\SOFTWARE\\Acme\nfile C:\\old.txt\nfile C:\\store\\bin\\made.txt\n\
         folder C:\\windows\\help\nexit 0xC0000135\n",
    );
    trial.build();
    let mut command = trial.attempt(&[]);
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    let (seen, after) = text.rsplit_once('}').expect(&printed);
    assert_eq!(after.trim(), "after", "{text}{printed}");
    // `echo` keeps the program's exit code.
    assert_eq!(output.status.code(), Some(255), "{printed}");
    let seen: Value = serde_json::from_str(&format!("{seen}}}")).unwrap();
    assert_eq!(
        seen["arguments"],
        json!(["seen.exe", "x & y", "abc", "small"])
    );
    let line = seen["command_line"].as_str().unwrap().trim_end();
    assert_eq!(line, r#"seen.exe "x & y"  "abc" small"#);
    assert_eq!(seen["directory"], r"C:\store\bin");
    assert_eq!(seen["user"], "ContainerAdministrator");
    let env = &seen["environment"];
    assert_eq!(env["GREETING"], "hello world");
    assert_eq!(env["NEXT"], "2");
    assert_eq!(env["KIND"], "small");
    assert_eq!(
        seen[r"key HKLM\SOFTWARE\Acme"],
        json!({ "n": { "type": 4, "data": "07000000" } })
    );
    assert_eq!(seen[r"file C:\old.txt"], Value::Null);
    assert_eq!(seen[r"file C:\store\bin\made.txt"], hex::encode("made\r\n"));
    assert_eq!(seen[r"folder C:\windows\help"], json!([]));

    // The program by its own name on PATH, instead of the command; its whole exit code is reported.
    let arguments = ["--entrypoint", "seen", "--", "--version", "a b"];
    let output = trial.attempt(&arguments).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(255), "{printed}");
    says(&printed, &note(&["3221225781", "0xC0000135"]));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["arguments"], json!(["seen", "--version", "a b"]));
    assert_eq!(trial.left(), Vec::<PathBuf>::new());
}

/// A process of this machine that a program should not see; ended with the test.
struct Bystander(std::process::Child);

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test(multi_thread)]
async fn a_program_cannot_leave_its_sandbox_unless_it_is_allowed_to() {
    let trial = trial().await;
    compile("leave", trial.folder.path(), &[]);
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(outside.path().join("socket")).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bystander = Bystander(Command::new("sleep").arg("600").spawn().unwrap());
    let ask = format!(
        "{} {} {}\n",
        outside.path().display(),
        bystander.0.id(),
        port.local_addr().unwrap().port()
    );
    trial.write("ask.txt", ask);
    trial.write(
        "recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\nentrypoint = ['C:\\leave.exe']\n\
         [[files]]\nfrom = \"leave.exe\"\nto = 'C:\\leave.exe'\n\
         [[files]]\nfrom = \"ask.txt\"\nto = 'C:\\ask.txt'\n",
    );
    trial.build();
    let attempts = |arguments: &[&str]| -> serde_json::Map<String, Value> {
        let output = trial.attempt(arguments).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{printed}");
        let written = outside.path().join("written").exists();
        assert_eq!(written, arguments.contains(&"--unsafe"));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let succeeded = |seen: &serde_json::Map<String, Value>| -> Vec<String> {
        let all = seen
            .iter()
            .filter(|(_, result)| result.as_i64().unwrap() >= 0);
        let mut all: Vec<String> = all.map(|(name, _)| name.clone()).collect();
        all.sort();
        all
    };
    let limits = ["memory-limited", "processes-limited"];
    let inside = attempts(&[]);
    assert_eq!(succeeded(&inside), limits, "{inside:?}");
    for limit in limits {
        assert_eq!(inside[limit], 1, "{limit}");
    }
    let online = attempts(&["--network"]);
    assert_eq!(
        succeeded(&online),
        ["memory-limited", "port", "processes-limited"],
        "{online:?}"
    );

    // Without the sandbox, the same attempts succeed: the test tells the difference.
    let free = attempts(&["--unsafe"]);
    for name in [
        "read", "write", "users", "environment", "ask", "port", "socket", "unix-path",
    ] {
        assert!(free[name].as_i64().unwrap() >= 0, "{name}: {free:?}");
    }
    assert_eq!(trial.left(), Vec::<PathBuf>::new());
}

#[test(multi_thread)]
async fn files_of_an_image_do_not_run_outside_the_sandbox() {
    let trial = trial().await;
    compile("leave", trial.folder.path(), &[]);
    let outside = TempDir::new().unwrap();
    trial.write("ask.txt", format!("{} 1 1\n", outside.path().display()));
    // Programs of Windows that wine starts by itself.
    let files: String = [
        "ask.txt", "reg.exe", "wineboot.exe", "services.exe", "explorer.exe",
    ]
    .map(|name| {
        let from = if name == "ask.txt" { name } else { "leave.exe" };
        let to = if name == "ask.txt" {
            ""
        } else {
            r"Windows\System32\"
        };
        format!("[[files]]\nfrom = {from:?}\nto = 'C:\\{to}{name}'\n")
    })
    .concat();
    trial.write(
        "recipe.toml",
        format!("name = \"app\"\nbase = \"nanoserver\"\nentrypoint = ['reg.exe']\n{files}"),
    );
    trial.build();
    // It may fail, as these are no longer the programs that wine requires.
    trial.attempt(&["--timeout", "60s"]).output().unwrap();
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(trial.left(), Vec::<PathBuf>::new());
}

#[test]
fn without_a_sandbox_a_program_does_not_run() {
    component("wine64");
    let site = Site::new();
    site.write("app.exe", "MZ");
    site.write(
        "recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\nentrypoint = ['C:\\app.exe']\n\
         [[files]]\nfrom = \"app.exe\"\nto = 'C:\\app.exe'\n",
    );
    site.built_layer();
    let run = |path: &str| {
        let mut command = site.with_no_bases(&["try", "oci:layout"]);
        command.env("PATH", path);
        command
    };
    run("/nonexistent")
        .fails(3, "wine/sandbox", &["bubblewrap", "not installed"])
        .advises(&["apt-get install bubblewrap"]);
    // One that cannot isolate, as in a container without user namespaces.
    let refusing = "echo 'bwrap: No permissions' >&2\nexit 1";
    write_program(&site.path("bin"), "bwrap", refusing);
    run(site.path("bin").to_str().unwrap())
        .fails(3, "wine/sandbox", &["bwrap: No permissions"])
        .advises(&["--unsafe"]);
}

/// A recipe whose program never ends.
fn endless(trial: &TrySetup) {
    trial.write("ask.txt", "");
    trial.write(
        "recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\nentrypoint = ['cmd', '/c', 'for /l %i in (0,0,1) do @echo again']\n\
         [[files]]\nfrom = \"ask.txt\"\nto = 'C:\\ask.txt'\n",
    );
    trial.build();
}

#[test(multi_thread)]
async fn a_program_that_does_not_end_is_ended_and_nothing_is_left_of_it() {
    let trial = trial().await;
    endless(&trial);
    let printed = trial.attempt(&["--timeout", "15s"]).tells(3);
    assert_contains!(printed, "--timeout");
    assert_eq!(trial.left(), Vec::<PathBuf>::new());

    // A service that still runs is well.
    let alive = trial.attempt(&["--alive-after", "3s"]).output().unwrap();
    let said = String::from_utf8_lossy(&alive.stderr);
    assert_eq!(alive.status.code(), Some(0), "{said}");
    assert_contains!(said, "note: the program still ran after 3s");
    assert!(alive.stdout.starts_with(b"again"));
    assert_eq!(trial.left(), Vec::<PathBuf>::new());
    let ended = [
        "--alive-after", "1m", "--entrypoint", "cmd", "--", "/c", "exit 7",
    ];
    let ended = trial.attempt(&ended).output().unwrap();
    assert_eq!(ended.status.code(), Some(7), "it ended before");

    let start = || {
        let mut command = trial.command();
        command.args(["try", "oci:out"]).stdout(Stdio::piped());
        let mut started = command.spawn().unwrap();
        let printed = started.stdout.as_mut().unwrap();
        std::io::Read::read_exact(printed, &mut [0]).unwrap();
        started
    };
    let mut asked = start();
    succeed(Command::new("kill").args(["-TERM", &asked.id().to_string()])).unwrap();
    assert_eq!(asked.wait().unwrap().signal(), Some(15));
    assert_eq!(trial.left(), Vec::<PathBuf>::new());

    // When killed, it leaves a folder, which the next run removes, and no process.
    let mut killed = start();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let [left] = trial.left().try_into().unwrap();
    let deadline = Instant::now() + Duration::from_mins(2);
    while runs_in(&left) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(100));
    }
    assert!(!runs_in(&left), "the program goes on");
    let output = trial
        .attempt(&["--entrypoint", "cmd", "--", "/c", "echo well"])
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"well\r\n");
    assert_eq!(trial.left(), Vec::<PathBuf>::new());
}

#[test(multi_thread)]
async fn a_missing_program_is_reported_with_a_way_to_look_around() {
    let trial = trial().await;
    endless(&trial);
    trial
        .attempt(&["--entrypoint", "nothere"])
        .fails(3, "wine/failed", &["nothere"])
        .advises(&["wincimg image try oci:out --entrypoint cmd -- /c dir"]);
    let powershell = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe";
    trial
        .attempt(&["--entrypoint", powershell])
        .fails(3, "failed", &["PowerShell"]);
    assert_eq!(trial.left(), Vec::<PathBuf>::new());
}

/// Returns true if a process of the image's program runs in this folder.
fn runs_in(folder: &Path) -> bool {
    let folder = folder.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(folder))
}

#[test]
fn without_wine_it_says_what_would_start() {
    let site = Site::new();
    site.write("app.exe", "MZ");
    site.write(
        "recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\nentrypoint = ['C:\\app.exe', 'a b']\n[env]\nA = \"b\"\n\
         [[files]]\nfrom = \"app.exe\"\nto = 'C:\\app.exe'\n\
         [[registry]]\nkey = 'HKLM\\SOFTWARE\\A'\nvalues = { b = 1 }\n",
    );
    site.built_layer();
    let run = |arguments: &[&str]| {
        let mut command = site.with_no_bases(&[&["try", "oci:layout"], arguments].concat());
        command.env("WINELOADER", "/nonexistent/wine");
        command
    };
    let shown = json_of(&mut run(&["--dry-run"]));
    assert_eq!(shown["command_line"], r#"C:\app.exe "a b""#);
    assert_eq!(shown["working_dir"], r"C:\");
    assert_eq!(shown["user"], "ContainerUser");
    assert_eq!(shown["env"], json!(["A=b"]));
    assert_eq!(shown["registry"], true);
    run(&["--dry-run"])
        .assert()
        .success()
        .stdout(predicates::str::contains(" C:\\app.exe \"a b\"\n"));
    run(&[]).fails(3, "wine/missing", &["/nonexistent/wine"]);
}

/// The tar with `..` for `@@` in its paths, which no library writes, and corrected header
/// checksums.
fn leading_out(mut tar: Vec<u8>) -> Vec<u8> {
    const SUM: std::ops::Range<usize> = 148..156;
    for header in tar.chunks_mut(512) {
        if !header.starts_with(b"Files/@@") {
            continue;
        }
        let end = header.iter().position(|byte| *byte == 0).unwrap();
        for byte in &mut header[..end] {
            if *byte == b'@' {
                *byte = b'.';
            }
        }
        header[SUM].fill(b' ');
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        header[SUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    tar
}

#[test(multi_thread)]
async fn a_hostile_layer_stays_in_its_drive() {
    let trial = trial().await;
    let mut layer = LayerTar::default();
    layer
        .folder("Files", None)
        .file("Files/@@/@@/@@/@@/escaped", b"x", None)
        .file("Files/a:b", b"x", None)
        .file(
            "Files/Users/ContainerAdministrator/Desktop/in.txt",
            b"x",
            None,
        )
        .link("Files/out", "/tmp")
        .file("Files/out/escaped", b"x", None)
        .hard_link("Files/passwd", "Files/Windows/System32/none")
        .file("Files/in.txt", b"in", None);
    let bottom = bottom_layer(&made_system(BASE_PATH), &made_software());
    let mut image = image_of(VERSION, vec![bottom.tar(), leading_out(layer.tar())]);
    image.image = image
        .image
        .edit_config(|config| {
            config.config.entrypoint = Some(vec!["cmd".to_owned()]);
            config.config.cmd = Some(vec!["/c".to_owned(), r"type in.txt".to_owned()]);
            config.config.working_dir = Some(r"C:\..\..\x".to_owned());
        })
        .unwrap();
    let host = trial.server.host();
    put_at(&image, &format!("{host}/app:1")).await;
    let mut command = trial.command();
    command.args(["try", &format!("{host}/app:1")]);
    command.args(["--insecure-registry", "127.0.0.1"]);
    let output = assert_cmd::Command::from(command)
        .timeout(Duration::from_mins(8))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    says(&printed, &note(&["layer 1"]));
    says(&printed, &warning(&[" 4 "]));
    says(&printed, &line(&["error: ", r"C:\..\..\x"]));
    assert_eq!(output.status.code(), Some(3), "{printed}");
    for place in ["escaped", "tmp/escaped"] {
        assert!(!trial.path(place).exists());
    }
    assert!(!Path::new("/tmp/escaped").exists() && !Path::new("/escaped").exists());
    assert_eq!(trial.left(), Vec::<PathBuf>::new());
}
