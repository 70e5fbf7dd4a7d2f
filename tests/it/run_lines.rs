//! Effects of RUN lines beyond new files: services, permissions, certificates, and files of the
//! base and of earlier lines. The images are built by the real program and read by independent
//! ones.

mod accounts;
mod base_files;
mod icacls;
mod limits;
mod rights;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use assert_cmd::assert::Assert;
use wincimg_layer::{LayerReader, Limits, TarEntryKind};
use wincimg_registry::security::SecurityDescriptor;
use wincimg_testkit::component;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::layout::layers_in;
use wincimg_testkit::test_bases::{FILE, FOLDER, LayerTar, image_of};
use wincimg_testkit::windows_base::StandIn;

use crate::base_permissions::{DATA, layer_with_data};
use crate::failure::Failure;
use crate::inside::{Machine, VERSION, publish};

const BASE: &str = "mcr.microsoft.com/windows/nanoserver:1809";

const OWN: &str = "O:BAG:SYD:PAI(A;;FA;;;SY)(A;;FR;;;BU)";

/// A base with the programs in the lines.
pub(crate) fn base() -> StandIn {
    static MADE: OnceLock<StandIn> = OnceLock::new();
    let made = MADE.get_or_init(|| image_of(VERSION, vec![base_layer().tar()]));
    made.clone()
}

fn base_layer() -> LayerTar {
    let mut layer = layer_with_data("16");
    for program in [
        "sc", "icacls", "certutil", "xcopy", "robocopy", "reg", "setx", "msiexec",
    ] {
        layer.file(
            &format!("Files/Windows/System32/{program}.exe"),
            b"MZ",
            Some(FILE),
        );
    }
    let powershell = "Files/Windows/System32/WindowsPowerShell/v1.0/powershell.exe";
    layer.file(powershell, b"MZ", Some(FILE));
    let (file, link) = (tar::EntryType::Regular, tar::EntryType::Symlink);
    layer
        .folder("Files/inetpub", Some(FOLDER))
        .folder("Files/inetpub/wwwroot", Some(DATA))
        .file("Files/inetpub/wwwroot/iisstart.htm", b"start", Some(FILE))
        .file("Files/inetpub/wwwroot/iisstart.png", b"png", Some(FILE))
        .folder("Files/inetpub/app", Some(FOLDER))
        .file("Files/inetpub/app/Config.txt", b"one\r\ntwo\r\n", Some(OWN))
        .entry(
            "Files/inetpub/app/fixed.txt",
            file,
            "33",
            Some(OWN),
            b"fixed",
            None,
        )
        .folder("Files/inetpub/linked", Some(FOLDER))
        .entry("Files/inetpub/linked/x", link, "1040", None, b"", Some("y"))
        .folder("Files/inetpub/app/deep", Some(DATA))
        .hard_link(
            "Files/inetpub/app/deep/again.txt",
            "Files/inetpub/app/Config.txt",
        );
    layer
}

/// A machine with a Dockerfile, and a registry with its base.
pub(crate) struct Bench {
    machine: Machine,
    server: FakeRegistry,
    reference: String,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::on(&base()).await
    }

    /// A bench on a base without the programs.
    pub(crate) async fn without_programs() -> Self {
        Self::on(&image_of(VERSION, vec![layer_with_data("16").tar()])).await
    }

    pub(crate) async fn on(base: &StandIn) -> Self {
        let server = FakeRegistry::start();
        let reference = publish(base, &server.host()).await;
        let machine = Machine::new();
        let app = machine.0.path().join("app");
        fs::create_dir(&app).unwrap();
        for file in ["a.txt", "b.txt"] {
            fs::write(app.join(file), file).unwrap();
        }
        Self {
            machine,
            server,
            reference,
        }
    }

    /// Collects the base's facts before the build.
    pub(crate) fn indexed(self) -> Self {
        self.machine.json(&["base", "index", &self.reference]);
        self
    }

    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        fs::write(self.machine.0.path().join("app").join(file), content).unwrap();
    }

    fn write_dockerfile(&self, text: &str) {
        // A recipe in the folder would be built instead.
        let _ = fs::remove_file(self.machine.0.path().join("app/recipe.toml"));
        self.write("Dockerfile", text);
    }

    fn write_instructions(&self, instructions: &str) {
        self.write_dockerfile(&format!("# escape=`\nFROM {BASE}\n{instructions}\n"));
    }

    /// Builds a Dockerfile with these instructions on the base.
    fn build(&self, instructions: &str) -> Assert {
        self.build_lines(instructions, &[])
    }

    fn build_file(&self, text: &str) -> Assert {
        self.build_with(text, &[])
    }

    fn build_with(&self, text: &str, more: &[&str]) -> Assert {
        self.write_dockerfile(text);
        self.build_of("./app", more)
    }

    /// Builds a recipe next to the Dockerfile.
    pub(crate) fn build_recipe(&self, text: &str, more: &[&str]) -> Assert {
        self.write("recipe.toml", text);
        self.build_of("./app/recipe.toml", more)
    }

    /// The error of a recipe next to the Dockerfile.
    pub(crate) fn recipe_refused(&self, text: &str) -> Failure {
        let done = self.build_recipe(text, &["--format", "json"]);
        Failure::of(done.failure().get_output())
    }

    /// Converts a Dockerfile with these instructions, and returns the recipe.
    pub(crate) fn convert(&self, instructions: &str) -> String {
        self.conversion(0, instructions)
    }

    /// The output of such a conversion, which must end with this exit code.
    fn conversion(&self, code: i32, instructions: &str) -> String {
        self.write_instructions(instructions);
        let host = self.server.host();
        let arguments = ["convert", "./app", "--host-build", "17763.973"];
        let registry = ["--base-registry", &host];
        let done = self.machine.run(&[&arguments[..], &registry].concat());
        String::from_utf8(done.code(code).get_output().stdout.clone()).unwrap()
    }

    fn build_of(&self, image: &str, more: &[&str]) -> Assert {
        let _ = fs::remove_dir_all(self.layout());
        let host = self.server.host();
        let arguments = [
            "build", image, "--output", "oci:out", "--host-build", "17763.973", "--base-registry",
            &host,
        ];
        self.machine.run(&[&arguments[..], more].concat())
    }

    /// The added layers.
    pub(crate) fn layers(&self, instructions: &str) -> Vec<PathBuf> {
        self.build(instructions).success();
        self.built()
    }

    /// Builds a Dockerfile with these instructions and options.
    pub(crate) fn build_lines(&self, instructions: &str, more: &[&str]) -> Assert {
        self.write_instructions(instructions);
        self.build_of("./app", more)
    }

    /// Builds a Dockerfile with these instructions on the image of others, whose layers are not
    /// indexed.
    fn build_on(&self, below: &str, instructions: &str) -> Assert {
        self.build_lines(below, &["--tag", "1"]).success();
        let image = self.machine.0.path().join("below");
        let _ = fs::remove_dir_all(&image);
        fs::rename(self.layout(), &image).unwrap();
        let stages = format!("FROM {BASE} AS made\nRUN msbuild.exe\nFROM made");
        let text = format!("# escape=`\n{stages}\n{instructions}\n");
        self.build_with(&text, &["--stage", "made=oci:below:1"])
    }

    /// The layout that a build writes.
    pub(crate) fn layout(&self) -> PathBuf {
        self.machine.0.path().join("out")
    }

    pub(crate) fn built(&self) -> Vec<PathBuf> {
        layers_in(&self.layout())[1..].to_vec()
    }

    /// The error of a Dockerfile; nothing may be left of the build.
    pub(crate) fn refused(&self, instructions: &str) -> Failure {
        let done = self.build_lines(instructions, &["--format", "json"]);
        assert!(!self.layout().exists(), "{instructions}");
        Failure::of(done.failure().get_output())
    }
}

/// The files of a layer with their contents, by path; folders end with a slash.
pub(crate) fn files_of(layer: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut reader = LayerReader::new(fs::File::open(layer).unwrap(), Limits::default()).unwrap();
    let mut files = BTreeMap::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        let mut bytes = Vec::new();
        if entry.kind == TarEntryKind::File {
            reader
                .each_piece(|piece| bytes.extend_from_slice(piece))
                .unwrap();
        }
        let end = if entry.kind == TarEntryKind::Directory {
            "/"
        } else {
            ""
        };
        files.insert(format!("{}{end}", entry.path), bytes);
    }
    files
}

/// A key in a layer's hive according to hivex, by line.
pub(crate) fn key_of(layer: &Path, hive: &str, key: &str) -> Vec<String> {
    key_in(&files_of(layer)[&format!("Hives/{hive}")], key)
}

fn key_in(hive: &[u8], key: &str) -> Vec<String> {
    let hivexget = component("hivexget");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hive");
    fs::write(&file, hive).unwrap();
    let output = Command::new(hivexget).arg(&file).arg(key).output().unwrap();
    assert!(output.status.success(), "{key}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// UTF-16 as hivex prints it.
pub(crate) fn utf16(text: &str) -> String {
    let units = text.encode_utf16().flat_map(u16::to_le_bytes);
    let bytes: Vec<String> = units.map(|byte| format!("{byte:02x}")).collect();
    bytes.join(",")
}

const SERVICE: &str = r"\ControlSet001\Services";

#[test(multi_thread)]
async fn services_are_made_and_changed_as_windows_keeps_them() {
    let bench = Bench::new().await.indexed();
    let layers = bench.layers(
        r#"RUN sc create Worker binPath= "C:\app\worker.exe --serve" start= delayed-auto depend= RpcSs/Dhcp obj= "NT AUTHORITY\Network Service"
RUN sc config worker start= auto displayname= "The worker" && sc.exe description Worker "Works"
RUN sc config w3svc start= disabled
SHELL ["powershell", "-Command"]
RUN New-Service -Name Second -BinaryPathName C:\second.exe -DisplayName Second; Set-Service Second -StartupType Manual"#,
    );
    let key = |layer: usize, name: &str| {
        key_of(
            &layers[layer],
            "System_Delta",
            &format!(r"{SERVICE}\{name}"),
        )
    };
    let made = key(0, "Worker");
    assert_eq!(
        made,
        [
            "\"DelayedAutostart\"=dword:00000001".to_owned(),
            format!("\"DependOnService\"=hex(7):{}", utf16("RpcSs\0Dhcp\0\0")),
            "\"ErrorControl\"=dword:00000001".to_owned(),
            r#""ImagePath"=str(2):"C:\\app\\worker.exe --serve""#.to_owned(),
            r#""ObjectName"="NT AUTHORITY\\NetworkService""#.to_owned(),
            "\"Start\"=dword:00000002".to_owned(),
            "\"Type\"=dword:00000010".to_owned(),
        ]
    );
    // Other values stay, in the base and in the layer before.
    let changed = key(1, "Worker");
    let expected = [
        "\"DelayedAutostart\"=dword:00000000",
        "\"Description\"=\"Works\"",
        "\"DisplayName\"=\"The worker\"",
        "\"Start\"=dword:00000002",
    ];
    assert_eq!(changed, expected);
    assert_eq!(key(2, "w3svc"), ["\"Start\"=dword:00000004"]);
    let second = key(3, "Second");
    for line in ["\"Start\"=dword:00000003", "\"ObjectName\"=\"LocalSystem\""] {
        assert!(second.iter().any(|own| own == line), "{second:?}");
    }
    for (instructions, code, value) in [
        (
            "RUN sc create W3SVC binPath= C:\\x.exe",
            "dockerfile/fails",
            "W3SVC",
        ),
        (
            "RUN sc config nobody start= auto",
            "dockerfile/fails",
            "nobody",
        ),
        (
            "RUN sc create a binPath= C:\\a.exe displayname= Both && sc create b binPath= C:\\b.exe displayname= both",
            "dockerfile/fails",
            "display name \"both\"",
        ),
        (
            "RUN sc create a binPath= C:\\a.exe displayname= w3svc",
            "dockerfile/fails",
            "w3svc",
        ),
        (
            "RUN sc create x binPath= C:\\x.exe obj= .\\me",
            "dockerfile/not-understood",
            r#"".\me""#,
        ),
    ] {
        let failure = bench
            .refused(instructions)
            .is(code, &[value])
            .names(&["Dockerfile:3: ", "sc: "])
            .on_line(3);
        assert!(!failure.hint.is_empty(), "{failure:#?}");
    }
}

fn printed(sddl: &str) -> String {
    sddl.parse::<SecurityDescriptor>().unwrap().to_string()
}

/// The names in a layer below a folder, including intermediate folders.
fn names(layer: &Path, below: &str) -> Vec<String> {
    let files = files_of(layer).into_keys();
    let below = format!("Files/{below}");
    files
        .filter_map(|path| Some(path.strip_prefix(&below)?.to_owned()))
        .collect()
}
