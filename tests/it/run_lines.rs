//! Effects of RUN lines beyond new files: services, permissions, certificates, and files of the
//! base and of earlier lines. The images are built by the real program and read by independent
//! ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use assert_cmd::assert::Assert;
use wincimg_layer::{LayerReader, Limits, TarEntryKind};
use wincimg_registry::hive::{Hive, Semantics};
use wincimg_registry::security::SecurityDescriptor;
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_testkit::component;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::put_at;
use wincimg_testkit::layout::layers_in;
use wincimg_testkit::test_bases::{
    FILE, FOLDER, LayerTar, delta_hive, image_of, upper_layer, whole_hive,
};
use wincimg_testkit::windows_base::StandIn;

use crate::base_permissions::{DATA, entries_of, layer_with_data};
use crate::failure::{Failure, note, says};
use crate::inside::{Machine, VERSION, publish};
use crate::site::each;

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

#[test(multi_thread)]
async fn rights_reach_what_earlier_lines_made() {
    // Content of the Dockerfile itself is known; the base need not be.
    for bench in [Bench::new().await, Bench::new().await.indexed()] {
        let layers = bench.layers(
            r#"COPY a.txt C:/new/in/
RUN icacls C:\new /grant:r "Users:(OI)(CI)(RX,W)" "NETWORK SERVICE:R" /T"#,
        );
        let files = files_of(&layers[1]);
        assert_eq!(files["Files/new/in/a.txt"], b"a.txt");
        let found = entries_of(&layers[1]);
        let granted = |path: &str| {
            let (security, _) = &found[path];
            let descriptor: SecurityDescriptor = security.as_ref().unwrap().parse().unwrap();
            let list = descriptor.dacl.unwrap().entries.into_iter();
            let own = list.filter(|entry| {
                let sid = entry.sid.to_string();
                ["BU", "NS"].contains(&sid.as_str()) || sid.ends_with("-545")
            });
            own.map(|entry| (entry.flags, entry.mask))
                .collect::<Vec<_>>()
        };
        let (users, network) = (0x12_00A9 | 0x10_0116, 0x12_0089);
        for path in ["Files/new", "Files/new/in"] {
            let entries = granted(path);
            assert!(entries.contains(&(3, users)), "{path}: {entries:x?}");
            assert!(entries.contains(&(0, network)), "{path}: {entries:x?}");
        }
        let entries = granted("Files/new/in/a.txt");
        assert!(entries.contains(&(0, users)), "{entries:x?}");
        assert!(entries.contains(&(0x10, users)), "{entries:x?}");
    }
    let bench = Bench::new().await.indexed();
    for (line, value) in [
        (r"icacls C:\data /grant Nobody:F", "\"Nobody\""),
        (r"icacls C:\data /grant Users:D", "\"D\""),
        (r"icacls C:\ /grant Users:F", "icacls: "),
    ] {
        bench
            .refused(&format!("RUN {line}"))
            .is("dockerfile/not-understood", &[value])
            .names(&["Dockerfile:3: ", "icacls: "]);
    }
}

#[test(multi_thread)]
async fn alternate_data_streams_of_the_base_are_no_files() {
    let mut layer = base_layer();
    layer
        .folder("Files/Windows/d", Some(DATA))
        .file("Files/Windows/d/own.txt", b"x", Some(FILE))
        .file("Files/Windows/d/own.txt:Zone", b"[Zone]", Some(FILE));
    let base = image_of(VERSION, vec![layer.tar()]);
    let change = format!("FROM {BASE}\nRUN icacls C:\\Windows\\d /grant \"Users:(OI)(CI)M\"\n");
    let of_stage = format!("FROM {BASE} AS one\nFROM {BASE}\nCOPY --from=one");
    for (text, copied) in [
        (change, "Files/Windows/d/own.txt"),
        (
            format!("{of_stage} C:/Windows/d C:/two\n"),
            "Files/two/own.txt",
        ),
        (
            format!("{of_stage} C:/Windows/d/own.txt C:/two/\n"),
            "Files/two/own.txt",
        ),
    ] {
        let bench = Bench::on(&base).await.indexed();
        bench
            .build_file(&format!("# escape=`\n{text}"))
            .success()
            .stderr(predicates::str::contains(r"C:\Windows\d\own.txt:Zone"));
        let files = files_of(bench.built().last().unwrap());
        assert_eq!(files[copied], b"x", "{text}");
        assert!(!files.keys().any(|path| path.contains(':')), "{files:?}");
    }
}

#[test(multi_thread)]
async fn rights_move_with_what_a_line_moves() {
    let bench = Bench::new().await.indexed();
    for (line, path) in [
        (
            r#"mkdir C:\a && icacls C:\a /grant "Users:(OI)(CI)M" && ren C:\a b"#,
            "b",
        ),
        (
            r#"mkdir C:\a\c && icacls C:\a\c /grant "Users:(OI)(CI)M" && move C:\a C:\b"#,
            "b/c",
        ),
        (
            r#"mkdir C:\a && icacls C:\a /grant:r "Users:(OI)(CI)M" && ren C:\a b && ren C:\b c"#,
            "c",
        ),
    ] {
        let layers = bench.layers(&format!("RUN {line}\nCOPY a.txt C:/{path}/"));
        for layer in &layers[..2] {
            let found = entries_of(layer);
            let (security, _) = &found[&format!("Files/{path}")];
            let descriptor: SecurityDescriptor = security.as_ref().unwrap().parse().unwrap();
            let mut entries = descriptor.dacl.unwrap().entries.into_iter();
            let is_granted = entries.any(|entry| (entry.flags, entry.mask) == (3, 0x13_01BF));
            assert!(is_granted, "{line}: {security:?}");
        }
        let files = files_of(&layers[1]);
        assert_eq!(files[&format!("Files/{path}/a.txt")], b"a.txt");
    }
}

#[test(multi_thread)]
async fn a_rename_that_changes_only_the_case_loses_nothing() {
    let bench = Bench::new().await.indexed();
    let layers = bench.layers(
        "RUN ren C:\\inetpub INETPUB&& mkdir C:\\new\\in && ren C:\\new NEW\nRUN ren C:\\NEW New",
    );
    assert_eq!(layers.len(), 1, "the last line changes nothing");
    let found: Vec<String> = entries_of(&layers[0]).into_keys().collect();
    assert!(found.contains(&"Files/NEW/in".to_owned()), "{found:?}");
    assert!(!found.iter().any(|path| path.contains(".wh.")), "{found:?}");
}

#[test(multi_thread)]
async fn what_a_line_of_another_user_makes_belongs_to_it() {
    const USER: &str = "S-1-5-93-2-2";
    for bench in [Bench::new().await, Bench::new().await.indexed()] {
        let layers = bench.layers(
            "USER ContainerUser\nRUN mkdir C:\\u\\v && echo a>C:\\u\\v\\f.txt\nRUN echo b>C:\\u\\v\\f.txt",
        );
        for (layer, path) in [(0, "u"), (0, "u/v"), (0, "u/v/f.txt"), (1, "u/v/f.txt")] {
            let found = entries_of(&layers[layer]);
            let (security, _) = &found[&format!("Files/{path}")];
            let security = security.as_ref().unwrap();
            assert!(
                security.starts_with(&format!("O:{USER}")),
                "{path}: {security}"
            );
            let full = format!("(A;ID;FA;;;{USER})");
            assert!(security.contains(&full), "{path}: {security}");
        }
    }
}

#[test(multi_thread)]
async fn what_windows_needs_stays() {
    let bench = Bench::new().await;
    for line in [
        r"rd /s /q C:\Windows",
        r"del C:\Windows\System32\config\SOFTWARE",
    ] {
        bench
            .refused(&format!("RUN {line}"))
            .names(&["Dockerfile:3: ", "cannot be deleted: Windows needs it"]);
    }
    let copy = "COPY a.txt C:/Windows/System32/config/SOFTWARE";
    let failure = bench.refused(copy);
    failure.names(&["Dockerfile:3: ", "is a file of the registry"]);
    for (line, key) in [
        (
            r"reg delete HKLM\SYSTEM\CurrentControlSet /f",
            r"HKLM\SYSTEM\ControlSet001",
        ),
        (r"reg delete HKLM\SOFTWARE /f", r"HKLM\SOFTWARE"),
    ] {
        bench
            .refused(&format!("RUN {line}"))
            .is("dockerfile/refused", &[&format!("{key} cannot be deleted")])
            .advises(&["delete the keys or values below it"])
            .on_line(3);
    }
    for entry in [
        "[[registry]]\nkey = 'HKLM\\SYSTEM\\CurrentControlSet'\ndelete = true\n",
        "[[registry]]\nkey = 'HKLM\\SOFTWARE\\microsoft'\nmode = \"replace\"\n",
        "[[files]]\ncontent = \"x\"\nto = 'C:\\Windows'\n",
        "[[layers]]\nname = \"one\"\ndeletes = ['C:\\windows\\SYSTEM32']\n",
    ] {
        let recipe = format!("name = \"app\"\nbase = \"nanoserver\"\n{entry}");
        let done = bench.build_recipe(&recipe, &[]).failure();
        let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert_contains!(printed, "indows needs");
    }
}

#[test(multi_thread)]
async fn a_layer_of_a_recipe_deletes_a_value_of_a_base_that_is_read() {
    let bench = Bench::new().await;
    let recipe = "name = \"app\"\nbase = \"nanoserver\"\nlook_inside = true\n[[layers]]\nname = \"one\"\n\
        [[registry]]\nlayer = \"one\"\nkey = 'HKLM\\SOFTWARE\\Acme'\ndelete_values = [\"x\"]\n";
    let done = bench.build_recipe(recipe, &[]);
    let printed = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(!printed.contains("if the base may lack"), "{printed}");
}

#[test(multi_thread)]
async fn certificates_come_in_every_form_that_windows_reads() {
    let bench = Bench::new().await;
    let openssl = component("openssl");
    let folder = bench.machine.0.path().join("app");
    let run = |arguments: &str| {
        let mut command = Command::new(&openssl);
        command.current_dir(&folder).args(arguments.split(' '));
        assert!(command.output().unwrap().status.success(), "{arguments}");
    };
    run(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /dev/null -out ca.pem -subj /CN=Lab -days 30",
    );
    run("x509 -in ca.pem -outform DER -out ca.cer");
    run("crl2pkcs7 -nocrl -certfile ca.pem -outform DER -out ca.p7b");
    let pem = fs::read_to_string(folder.join("ca.pem")).unwrap();
    let lines = pem.lines().filter(|line| !line.starts_with('-'));
    bench.write("base64.cer", lines.collect::<Vec<_>>().join("\r\n"));
    bench.write("two.pem", format!("{pem}{pem}"));
    let mut blobs = Vec::new();
    for file in ["ca.pem", "ca.cer", "ca.p7b", "base64.cer"] {
        let layers = bench.layers(&format!(
            "COPY {file} C:/c/\nRUN certutil -addstore -f Root C:\\c\\{file}\n\
             SHELL [\"powershell\", \"-Command\"]\n\
             RUN Import-Certificate -FilePath C:\\c\\{file} -CertStoreLocation Cert:\\LocalMachine\\Root"
        ));
        // In the second layer, the keys above the certificate exist.
        blobs.push([1, 2].map(|layer| files_of(&layers[layer])["Hives/Software_Delta"].clone()));
    }
    assert!(blobs.iter().all(|blob| *blob == blobs[0]));
    let twice = "COPY two.pem C:/c/\nRUN certutil -addstore Root C:\\c\\two.pem";
    let failure = bench
        .refused(twice)
        .is("dockerfile/not-understood", &["two.pem"]);
    assert!(!failure.hint.is_empty(), "{failure:#?}");
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

#[test(multi_thread)]
async fn recipes_do_not_lose_what_moved_files_keep() {
    let bench = Bench::new().await;
    let reported = bench.conversion(
        1,
        r"COPY a.txt C:\in\
RUN del /q C:\inetpub\wwwroot\*
RUN move C:\in\a.txt C:\a.txt",
    );
    let first = reported.lines().next().unwrap();
    assert!(first.starts_with("./app/Dockerfile:5: "), "{reported}");
    assert_contains!(first, r"C:\a.txt", r"C:\in\a.txt");
    // A recipe grants, and does nothing else to rights.
    let reported = bench.conversion(1, r"RUN mkdir C:\d && icacls C:\d /deny Users:W");
    assert!(reported.starts_with("./app/Dockerfile:3: "), "{reported}");
}

#[test(multi_thread)]
async fn files_of_the_base_are_listed_copied_moved_and_changed() {
    let lines = r#"RUN del /q C:\inetpub\wwwroot\*
RUN copy C:\inetpub\app\fixed.txt C:\data2\copy.txt
RUN move C:\inetpub\app C:\moved
RUN echo three>>C:\moved\config.txt
SHELL ["powershell", "-Command"]
RUN (Get-Content C:\moved\config.txt) -replace 'two', '2' | Set-Content C:\moved\config.txt; Remove-Item -Recurse C:\moved\deep\*"#;
    let mut built = Vec::new();
    for bench in [Bench::new().await, Bench::new().await.indexed()] {
        let layers = bench.layers(lines);
        let expected = ["", ".wh.iisstart.htm", ".wh.iisstart.png"];
        assert_eq!(names(&layers[0], "inetpub/wwwroot/"), expected);

        let copied = entries_of(&layers[1]);
        let (security, attributes) = &copied["Files/data2/copy.txt"];
        assert_eq!(files_of(&layers[1])["Files/data2/copy.txt"], b"fixed");
        assert!(security.as_ref().unwrap().contains("ID;"), "{security:?}");
        assert_eq!(attributes, "33");

        let moved = entries_of(&layers[2]);
        assert_eq!(names(&layers[2], "inetpub/.wh."), ["app"]);
        let content = files_of(&layers[2]);
        for path in ["Files/moved/Config.txt", "Files/moved/deep/again.txt"] {
            assert_eq!(content[path], b"one\r\ntwo\r\n", "{path}");
            assert_eq!(moved[path].0, Some(printed(OWN)), "{path}");
        }
        assert_eq!(moved["Files/moved/deep"].0, Some(printed(DATA)));
        assert_eq!(
            moved["Files/moved/fixed.txt"],
            (Some(printed(OWN)), "33".to_owned())
        );

        let path = "Files/moved/Config.txt";
        assert_eq!(files_of(&layers[3])[path], b"one\r\ntwo\r\nthree\r\n");
        assert_eq!(entries_of(&layers[3])[path].0, Some(printed(OWN)));
        assert_eq!(files_of(&layers[4])[path], b"one\r\n2\r\nthree\r\n");
        assert_eq!(names(&layers[4], "moved/deep/"), ["", ".wh.again.txt"]);
        built.push(layers.iter().map(|it| files_of(it)).collect::<Vec<_>>());
    }
    assert_eq!(
        built[0], built[1],
        "what is known beforehand changes nothing"
    );
    let bench = Bench::new().await.indexed();
    for (line, code, value) in [
        (
            r"copy C:\inetpub\linked\x C:\x",
            "dockerfile/not-known",
            r"C:\inetpub\linked\x is a link",
        ),
        (
            r"del C:\inetpub\linked\x\y",
            "dockerfile/not-known",
            r"C:\inetpub\linked\x is a link",
        ),
        (
            r"move C:\inetpub\linked C:\x",
            "dockerfile/not-understood",
            r"C:\inetpub\linked\x",
        ),
        (
            r"copy C:\inetpub\app\none.txt C:\x",
            "dockerfile/fails",
            r"C:\inetpub\app\none.txt",
        ),
    ] {
        let failure = bench
            .refused(&format!("RUN {line}"))
            .is(code, &[value])
            .names(&["Dockerfile:3: "]);
        assert!(!failure.hint.is_empty(), "{failure:#?}");
    }
    // A plan reads no layers, and notes that a build does.
    let bench = Bench::new().await;
    let text = format!(
        "FROM {BASE}\nRUN del /q C:\\inetpub\\wwwroot\\*\n\
         RUN reg add HKLM\\SOFTWARE\\Corp /v A /d 1 /f\n"
    );
    bench.write("Dockerfile", text);
    let host = bench.server.host();
    let dry = [
        "build", "./app", "--dry-run", "--host-build", "17763.973", "--base-registry",
    ];
    let dry = bench.machine.run(&[&dry[..], &[&host]].concat()).success();
    let found = String::from_utf8_lossy(&dry.get_output().stderr).into_owned();
    says(&found, &note(&[&format!("{host}/windows/nanoserver")]));
    says(&found, &note(&["Dockerfile:2: ", "del"]));
    // However often more of it turns out to be required.
    assert_eq!(found.matches("from its layers").count(), 1, "{found}");
}

#[test(multi_thread)]
async fn what_lies_below_a_link_is_not_known() {
    let bench = Bench::new().await.indexed();
    let link = r"USER ContainerAdministrator
RUN mkdir C:\v && mklink /d C:\l C:\v";
    for rest in [
        "\nRUN copy C:\\l\\x C:\\x",
        "\nRUN type C:\\l\\x",
        " && if exist C:\\l\\x mkdir C:\\yes",
        " && mkdir C:\\l\\x",
        // Copies of a folder have what its links are to.
        "\nRUN mkdir C:\\t && mklink /d C:\\t\\l C:\\v\nRUN xcopy C:\\t C:\\c /e /i",
        "\nRUN mkdir C:\\t && mklink /d C:\\t\\l C:\\v && xcopy C:\\t C:\\c /e /i",
    ] {
        let failure = bench.refused(&format!("{link}{rest}"));
        failure.is("dockerfile/not-known", &[r"\l is a link"]);
    }
    // The link itself can be deleted.
    let layers = bench.layers(&format!("{link}\nRUN rd C:\\l"));
    let last = files_of(layers.last().unwrap());
    assert!(last.contains_key("Files/.wh.l"), "{last:?}");
}

#[test(multi_thread)]
async fn a_link_comes_where_an_earlier_line_deleted_something() {
    const USER: &str = "USER ContainerAdministrator\n";
    const PAGE: &str = r"C:\inetpub\wwwroot\iisstart.png";
    let bench = Bench::new().await.indexed();
    let link = format!(r"mklink {PAGE} C:\data\own.txt");
    let layers = bench.layers(&format!("{USER}RUN del {PAGE}\nRUN {link}"));
    let root = "inetpub/wwwroot/";
    assert_eq!(names(&layers[0], root), ["", ".wh.iisstart.png"]);
    assert_eq!(names(&layers[1], root), ["", "iisstart.png"]);
    bench
        .refused(&format!("{USER}RUN del {PAGE} && {link}"))
        .is("dockerfile/not-understood", &[PAGE])
        .advises(&["RUN of its own"]);
    let below = r"RUN mkdir C:\r1 && mkdir C:\r2 && mklink /d C:\cur C:\r1";
    let lines = "RUN rd C:\\cur\nRUN mklink /d C:\\cur C:\\r2";
    bench.build_on(&format!("{USER}{below}"), lines).success();
    assert!(files_of(bench.built().last().unwrap()).contains_key("Files/cur"));
}

#[test(multi_thread)]
async fn attributes_of_the_base_count_as_on_windows() {
    let bench = Bench::new().await.indexed();
    let copied = r"RUN copy C:\inetpub\app\fixed.txt C:\data2\";
    for (lines, line) in [
        (r"RUN del C:\inetpub\app\fixed.txt".to_owned(), 3),
        (format!("{copied}\nRUN del C:\\data2\\fixed.txt"), 4),
    ] {
        bench
            .refused(&lines)
            .is("dockerfile/refused", &["fixed.txt is denied"])
            .advises(&["/f"])
            .on_line(line);
    }
    bench
        .refused(r"RUN echo x> C:\inetpub\app\fixed.txt")
        .is("dockerfile/fails", &["fixed.txt is denied"]);
    let layers = bench.layers(
        "RUN xcopy C:\\data C:\\q\\ /e\nRUN xcopy C:\\data C:\\r\\ /e /h\n\
         RUN del /f C:\\inetpub\\app\\fixed.txt",
    );
    assert_eq!(names(&layers[0], "q/"), ["", "apart/", "own.txt"]);
    assert_eq!(names(&layers[1], "r/"), ["", "Logs/", "apart/", "own.txt"]);
    assert_eq!(names(&layers[2], "inetpub/app/"), ["", ".wh.fixed.txt"]);
}

#[test(multi_thread)]
async fn a_plan_lists_what_is_left_of_its_files_and_what_goes_of_the_base() {
    let bench = Bench::new().await.indexed();
    let instructions = "COPY a.txt b.txt C:/d/sub/\nRUN del C:\\d\\sub\\a.txt\n\
        RUN move C:\\d\\sub C:\\d\\sub2\nRUN del C:\\inetpub\\wwwroot\\iisstart.png";
    bench.write("Dockerfile", format!("FROM {BASE}\n{instructions}\n"));
    let host = bench.server.host();
    let plan = ["build", "./app", "--dry-run", "--host-build", "17763.973"];
    let plan = [&plan[..], &["--base-registry", &host]].concat();
    let shown = &bench.machine.json(&plan)["plans"][0];
    assert_eq!(each(&shown["content"], "path"), [r"C:\d\sub2\b.txt"]);
    let deleted = r"C:\inetpub\wwwroot\iisstart.png";
    assert_eq!(shown["deleted"], serde_json::json!([deleted]));
    let text = bench.machine.run(&plan).success();
    let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
    assert_contains!(text, &format!("\ndeletes     {deleted}\n"));
}

#[test(multi_thread)]
async fn another_stage_is_copied_from_as_its_lines_left_its_base() {
    let mut built = Vec::new();
    for is_known in [false, true] {
        let bench = Bench::new().await;
        let bench = if is_known { bench.indexed() } else { bench };
        let begin = format!(
            "# escape=`\nFROM {BASE} AS core\nCOPY a.txt C:/inetpub/app/deep/\n\
             RUN del /f C:\\inetpub\\app\\fixed.txt && rd /s /q C:\\inetpub\\linked\nFROM {BASE}\n"
        );
        bench
            .build_file(&format!(
                "{begin}COPY --from=core C:/inetpub/app /x/\n\
                 COPY --from=core C:/inetpub/wwwroot/*.png C:/Windows/System32/SC.exe /y/\n\
                 COPY --from=core /inetpub/app/deep/again.txt /z.txt\n"
            ))
            .success();
        let layers = bench.built();
        assert_eq!(
            names(&layers[0], "x/"),
            ["", "Config.txt", "deep/", "deep/a.txt", "deep/again.txt"]
        );
        assert_eq!(names(&layers[1], "y/"), ["", "iisstart.png", "sc.exe"]);
        assert_eq!(files_of(&layers[2])["Files/z.txt"], b"one\r\ntwo\r\n");
        built.push(layers.iter().map(|it| files_of(it)).collect::<Vec<_>>());
        for gone in ["app/fixed.txt", "linked", "linked/x"] {
            let copy = format!("COPY --from=core /inetpub/{gone} /x/");
            let text = format!("{begin}{copy}\n");
            let failed = bench.build_with(&text, &["--format", "json"]).failure();
            let gone = format!("\"inetpub/{gone}\"");
            Failure::of(failed.get_output())
                .is("dockerfile/invalid", &["Dockerfile:6: ", &gone, "\"core\""])
                .on_line(6);
        }
    }
    assert_eq!(
        built[0], built[1],
        "what is known beforehand changes nothing"
    );
}

#[test(multi_thread)]
async fn rights_on_a_folder_of_the_base_reach_its_files() {
    let bench = Bench::new().await;
    let layers = bench.layers(r"RUN icacls C:\inetpub\wwwroot /grant Everyone:(OI)(CI)M");
    // Its list is protected from inheritance, those of its files are not.
    let found = entries_of(&layers[0]);
    let of = |path: &str| found[path].0.clone().unwrap();
    assert_eq!(
        of("Files/inetpub/wwwroot"),
        printed(&format!("{DATA}(A;OICI;0x1301bf;;;WD)"))
    );
    let file = of("Files/inetpub/wwwroot/iisstart.htm");
    assert_contains!(file, "(A;ID;0x1301bf;;;WD)");
    assert_eq!(
        files_of(&layers[0])["Files/inetpub/wwwroot/iisstart.htm"],
        b"start"
    );
    let without = bench.layers(r"RUN icacls C:\inetpub\wwwroot /grant Everyone:(CI)M");
    assert_eq!(names(&without[0], "inetpub/wwwroot/"), [""]);
}

#[test(multi_thread)]
async fn a_folder_can_be_deleted_and_made_again_in_one_line() {
    let bench = Bench::new().await;
    let layers = bench.layers(
        r"COPY a.txt C:/inetpub/wwwroot/in/
RUN rd /s /q C:\inetpub\wwwroot && md C:\inetpub\wwwroot\in && echo new>C:\inetpub\wwwroot\iisstart.htm
RUN echo more>C:\inetpub\wwwroot\in\b.txt",
    );
    let expected = [
        "", ".wh.iisstart.png", "iisstart.htm", "in/", "in/.wh.a.txt",
    ];
    assert_eq!(names(&layers[1], "inetpub/wwwroot/"), expected);
    let found = entries_of(&layers[1]);
    for path in ["Files/inetpub/wwwroot", "Files/inetpub/wwwroot/in"] {
        // It inherits its permissions, like a new one.
        let security = found[path].0.clone().unwrap();
        assert!(
            security.contains("ID;") && !security.contains(";;;BG"),
            "{path}: {security}"
        );
    }
    assert_eq!(
        names(&layers[2], "inetpub/wwwroot/"),
        ["", "in/", "in/b.txt"]
    );
    bench
        .refused(r"RUN rd /s /q C:\inetpub\app && echo x>C:\inetpub\app")
        .is("dockerfile/not-understood", &[r"C:\inetpub\app"])
        .advises(&["RUN"]);
}

#[test(multi_thread)]
async fn later_lines_keep_what_earlier_ones_wrote_to_the_registry() {
    for bench in [Bench::new().await, Bench::new().await.indexed()] {
        let layers = bench.layers(
            r"RUN reg add HKLM\SOFTWARE\Acme\Sub /v a /t REG_SZ /d 1 /f
RUN reg add HKLM\SOFTWARE\Acme\Sub /v b /t REG_SZ /d 2 /f
RUN reg delete HKLM\SOFTWARE\Acme\Sub /v a /f
RUN reg delete HKLM\SOFTWARE\Acme /f
RUN reg add HKLM\SOFTWARE\Acme\Sub /v c /t REG_SZ /d 3 /f",
        );
        let hives: Vec<Vec<u8>> = layers
            .iter()
            .map(|layer| files_of(layer)["Hives/Software_Delta"].clone())
            .collect();
        let hives: Vec<Hive<'_>> = hives.iter().map(|it| Hive::read(it).unwrap()).collect();
        let sub = |layer: usize| hives[layer].root.at(r"Acme\Sub").unwrap();
        assert_eq!(sub(1).layer.semantics, Semantics::Merge, "a is not hidden");
        assert_eq!(sub(2).layer.semantics, Semantics::Merge);
        for layer in [1, 2] {
            assert_eq!(sub(layer).security, sub(0).security);
        }
        let all = hives.iter().take(3).map(|hive| hive.root.clone());
        let seen = wincimg_registry::hive::merge(None, all).unwrap();
        let seen = seen.at(r"Acme\Sub").unwrap();
        let values: Vec<&str> = seen.values.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(values, ["b"]);
        let gone = hives[3].root.at("Acme").unwrap();
        assert_eq!(gone.layer.semantics, Semantics::Tombstone);
        assert_eq!(sub(4).layer.semantics, Semantics::SupersedeTree);
    }
}

#[test(multi_thread)]
async fn every_stage_gets_a_look_into_its_own_base() {
    let bench = Bench::new().await;
    let host = bench.server.host();
    put_at(&base(), &format!("{host}/windows/servercore:{VERSION}")).await;
    let file = format!(
        "# escape=`\nFROM mcr.microsoft.com/windows/servercore:ltsc2019 AS tools\n\
         RUN md C:\\out && move C:\\inetpub\\app\\config.txt C:\\out\nRUN del /q C:\\data\\*.txt\n\
         FROM {BASE}\nCOPY --from=tools C:/out/ C:/got/\nRUN del /q C:\\inetpub\\wwwroot\\*.png\n"
    );
    bench.build_file(&file).success();
    let layers = bench.built();
    assert_eq!(
        files_of(&layers[0])["Files/got/config.txt"],
        b"one\r\ntwo\r\n"
    );
    assert_eq!(
        names(&layers[1], "inetpub/wwwroot/"),
        ["", ".wh.iisstart.png"]
    );
}

#[test(multi_thread)]
async fn folders_made_on_the_way_stay() {
    let bench = Bench::new().await.indexed();
    for (line, left, next) in [
        (
            r"mkdir C:\p\q\r && rmdir /s /q C:\p\q",
            vec!["p/"],
            r"rmdir C:\p",
        ),
        (
            r"mkdir C:\p\q\r && move C:\p\q C:\z",
            vec!["p/", "z/", "z/r/"],
            r"rmdir C:\p C:\z\r",
        ),
        (
            r"mkdir C:\p\q\r && ren C:\p\q z && rmdir /s /q C:\p\z",
            vec!["p/"],
            r"rmdir C:\p",
        ),
        (
            r"mkdir C:\p\q\r && rmdir C:\p\q\r && rmdir C:\p\q",
            vec!["p/"],
            r"rmdir C:\p",
        ),
        (
            r"powershell New-Item -ItemType Directory C:\p\q\r; Remove-Item -Recurse C:\p\q",
            vec!["p/"],
            r"powershell Remove-Item C:\p",
        ),
        (
            r"powershell New-Item -Force C:\p\q\a.txt; Move-Item C:\p\q C:\z; Remove-Item C:\z\a.txt",
            vec!["p/", "z/"],
            r"rmdir C:\z && rmdir C:\p",
        ),
        (
            r#"powershell "mkdir C:\data\p\q | Out-Null; Rename-Item C:\data\p\q z; Remove-Item C:\data\p\z""#,
            vec!["data/", "data/p/"],
            r"rmdir C:\data\p",
        ),
    ] {
        let layers = bench.layers(&format!("RUN {line}\nRUN {next}"));
        let found: Vec<String> = names(&layers[0], "")
            .into_iter()
            .filter(|name| !name.is_empty())
            .collect();
        assert_eq!(found, left, "{line}");
        let folder = left.iter().find(|name| name.contains('p')).unwrap();
        let gone = folder.trim_end_matches('/');
        let gone = if left.contains(&"data/p/") {
            "data/.wh.p".to_owned()
        } else {
            format!(".wh.{gone}")
        };
        assert!(names(&layers[1], "").contains(&gone), "{line}");
    }
    // What is deleted, too, is not there.
    let layers = bench.layers(r"RUN mkdir C:\p\q && rmdir /s /q C:\p && mkdir C:\other");
    assert_eq!(names(&layers[0], ""), ["", "other/"]);
}

/// Text of a descriptor's list in a layer.
fn list_of(layer: &Path, path: &str) -> String {
    let security = entries_of(layer)[&format!("Files/{path}")]
        .0
        .clone()
        .unwrap();
    security.split_once("D:").unwrap().1.to_owned()
}

#[test(multi_thread)]
async fn icacls_takes_away_what_it_grants_and_what_is_inherited() {
    // Of what a Dockerfile makes all is known, of the base nothing has to be.
    for bench in [Bench::new().await, Bench::new().await.indexed()] {
        let layers = bench.layers(
            r#"RUN mkdir C:\d\sub && (echo x)>C:\d\sub\f.txt && icacls C:\d /inheritance:r /grant:r "SYSTEM:(OI)(CI)F" "Users:(OI)(CI)(IO)RX"
RUN mkdir C:\e\sub && icacls C:\e /grant Users:(OI)(CI)M && icacls C:\e /deny Users:(OI)(CI)W && icacls C:\e\sub /setowner SYSTEM
RUN mkdir C:\f\sub && icacls C:\f /grant Users:(OI)(CI)F Everyone:(CI)(NP)R && icacls C:\f /remove:g Users && icacls C:\f\sub /inheritance:d
RUN mkdir C:\g\sub && icacls C:\g /inheritance:r /T && icacls C:\g /reset && icacls C:\g\sub /inheritance:e"#,
        );
        let d = |path| list_of(&layers[0], path);
        assert_eq!(d("d"), "PAI(A;OICI;FA;;;SY)(A;OICIIO;0x1200a9;;;BU)");
        assert_eq!(d("d/sub"), "AI(A;OICIID;FA;;;SY)(A;OICIID;0x1200a9;;;BU)");
        assert_eq!(d("d/sub/f.txt"), "AI(A;ID;FA;;;SY)(A;ID;0x1200a9;;;BU)");
        let own = "AI(D;OICI;0x100116;;;BU)(A;OICI;0x300a9;;;BU)";
        let e = list_of(&layers[1], "e");
        assert!(e.starts_with(&format!("{own}(A;OICIID;FA;;;BA)")), "{e}");
        let sub = entries_of(&layers[1])["Files/e/sub"].0.clone().unwrap();
        let below = "O:SYG:SYD:AI(D;OICIID;0x100116;;;BU)(A;OICIID;0x300a9;;;BU)";
        assert!(sub.starts_with(below), "{sub}");
        let f = list_of(&layers[2], "f");
        assert!(f.starts_with("AI(A;CINP;FR;;;WD)(A;OICIID;FA;;;BA)"), "{f}");
        assert!(!f.contains("FA;;;BU"), "{f}");
        let sub = list_of(&layers[2], "f/sub");
        assert!(sub.starts_with("PAI(A;;FR;;;WD)"), "{sub}");
        assert!(!sub.contains("ID;"), "{sub}");
        for path in ["g", "g/sub"] {
            let list = list_of(&layers[3], path);
            assert!(list.starts_with("AI(A;OICIID;FA;;;BA)"), "{path}: {list}");
        }
    }
    let bench = Bench::new().await.indexed();
    for (line, value) in [
        (r"icacls C:\data /deny Nobody:W", "\"Nobody\""),
        (r"icacls C:\data /setowner Nobody", "\"Nobody\""),
        (r"icacls C:\data /grant Users:(IO)F", "(OI) or (CI)"),
        (r"icacls C:\data /reset /deny Users:W", "/reset"),
        (
            r"icacls C:\data /grant:r Administrators:(OI)(CI)(IO)F",
            r"C:\data: the account has rights",
        ),
    ] {
        let failure = bench
            .refused(&format!("RUN {line}"))
            .is("dockerfile/not-understood", &[value])
            .names(&["Dockerfile:3: ", "icacls: "]);
        assert!(!failure.hint.is_empty(), "{failure:#?}");
    }
}

#[test(multi_thread)]
async fn icacls_changes_folders_and_files_of_the_base() {
    let bench = Bench::new().await.indexed();
    let layers = bench.layers(
        r"RUN icacls C:\data /remove Administrators
RUN icacls C:\inetpub\wwwroot /inheritance:e
RUN icacls C:\inetpub\app /reset /t /q
RUN icacls C:\data\Logs /inheritance:r && icacls C:\data\apart /setowner Administrators",
    );
    assert_eq!(
        list_of(&layers[0], "data"),
        "PAI(D;;WD;;;BG)(A;OICI;FA;;;SY)"
    );
    let logs = list_of(&layers[0], "data/Logs");
    assert_eq!(logs, "AI(A;OICI;FR;;;BU)(A;OICIID;FA;;;SY)");
    // A file of the base that inherits is in the layer with its content.
    let own = &files_of(&layers[0])["Files/data/own.txt"];
    assert_eq!(own, b"x");
    let root = list_of(&layers[1], "inetpub/wwwroot");
    let closed = DATA.split_once("(D").unwrap().1;
    assert!(
        root.starts_with(&format!("AI(D{closed}(A;OICIID;FA;;;BA)")),
        "{root}"
    );
    let found = entries_of(&layers[2]);
    let list = found["Files/inetpub/app/Config.txt"].0.clone().unwrap();
    assert_contains!(list, "D:AI(A;ID;FA;;;BA)");
    assert_eq!(found["Files/inetpub/app/fixed.txt"].1, "33");
    assert_eq!(list_of(&layers[3], "data/Logs"), "PAI(A;OICI;FR;;;BU)");
    let apart = entries_of(&layers[3])["Files/data/apart"]
        .0
        .clone()
        .unwrap();
    assert!(apart.starts_with("O:BAG:SYD:P"), "{apart}");
    // What was removed before is not in the way.
    bench.layers(
        r"RUN icacls C:\data /remove Administrators
RUN icacls C:\data /grant:r Administrators:(OI)(CI)(IO)F",
    );
}

/// The Dockerfile and the registry file of Microsoft's base of the pause image.
#[test(multi_thread)]
async fn microsofts_base_of_the_pause_image_is_built() {
    let service = |name: &str, data| RegistryEdit::SetValue {
        key: r"HKLM\SYSTEM\ControlSet001\Services\DiagTrack"
            .parse()
            .unwrap(),
        name: name.to_owned(),
        data,
    };
    let upper = upper_layer(&[
        service("Start", RegistryData::dword(2)),
        service("ObjectName", RegistryData::sz("LocalSystem")),
    ]);
    let bench = Bench::on(&image_of(VERSION, vec![base_layer().tar(), upper.tar()])).await;
    let tools = bench.machine.0.path().join("app/binaries");
    fs::create_dir(&tools).unwrap();
    let keys = "Windows Registry Editor Version 5.00\n\
        [HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\rpc]\n\
        \"DCOM Protocols\"=hex(7):00,00\n\
        \"UuidSequenceNumber\"=dword:01bcf674\n\
        \"EpMapDisallowedProtocols\"=\"ncacn_ip_tcp\"\n\n\
        [HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\ole]\n\
        \"EnableDCOM\"=\"N\"";
    fs::write(tools.join("keylight.reg"), keys).unwrap();
    let file = "ARG OSVERSION=1809\n\
        FROM mcr.microsoft.com/windows/nanoserver:${OSVERSION}-amd64\n\
        COPY binaries /tools\n\
        USER ContainerAdministrator\n\
        RUN reg import tools\\\\keylight.reg\n\
        RUN sc.exe delete diagtrack -f\n\
        USER ContainerUser\n"
        .replace("-amd64", "");
    bench.build_file(&file).success();
    // The base has two layers.
    let layers = bench.built().split_off(1);
    assert_eq!(
        key_of(&layers[1], "Software_Delta", r"\Microsoft\Ole"),
        ["\"EnableDCOM\"=\"N\""]
    );
    let rpc = key_of(&layers[1], "Software_Delta", r"\Microsoft\Rpc");
    assert!(
        rpc.contains(&"\"EpMapDisallowedProtocols\"=\"ncacn_ip_tcp\"".to_owned()),
        "{rpc:?}"
    );
    let hive = files_of(&layers[2])["Hives/System_Delta"].clone();
    let hive = Hive::read(&hive).unwrap();
    let gone = hive.root.at(r"ControlSet001\Services\DiagTrack").unwrap();
    assert_eq!(gone.layer.semantics, Semantics::Tombstone);
    assert!(gone.values.is_empty() && gone.subkeys.is_empty());
}

#[test(multi_thread)]
async fn services_are_deleted_and_start_again_as_sc_says() {
    let bench = Bench::new().await.indexed();
    let layers = bench.layers(
        r#"RUN sc create Worker binPath= C:\worker.exe && sc failure Worker reset= 86400 actions= restart/60000/run/1000// command= "C:\fix.cmd" && sc failureflag Worker 1
RUN sc delete worker
RUN sc failure W3SVC reset= infinite actions= restart/5000
RUN sc delete w3svc"#,
    );
    let key = |layer: usize, name: &str| {
        let key = format!(r"{SERVICE}\{name}");
        key_of(&layers[layer], "System_Delta", &key)
    };
    let made = key(0, "Worker");
    for line in [
        "\"FailureActions\"=hex(3):80,51,01,00,00,00,00,00,01,00,00,00,03,00,00,00,14,00,00,00,01,00,00,00,60,ea,00,00,03,00,00,00,e8,03,00,00,00,00,00,00,00,00,00,00",
        r#""FailureCommand"="C:\\fix.cmd""#,
        "\"FailureActionsOnNonCrashFailures\"=dword:00000001",
    ] {
        assert!(made.iter().any(|own| own == line), "{line}: {made:?}");
    }
    let hives: Vec<Vec<u8>> = layers
        .iter()
        .map(|layer| files_of(layer)["Hives/System_Delta"].clone())
        .collect();
    let hives: Vec<Hive<'_>> = hives.iter().map(|it| Hive::read(it).unwrap()).collect();
    let service = |layer: usize, name: &str| {
        hives[layer]
            .root
            .at(&format!(r"ControlSet001\Services\{name}"))
            .unwrap()
    };
    // `sc create` writes no descriptor of the service.
    assert!(service(0, "Worker").subkeys.is_empty());
    assert_eq!(service(1, "Worker").layer.semantics, Semantics::Tombstone);
    assert_eq!(key(2, "w3svc").len(), 1);
    assert_eq!(service(3, "w3svc").layer.semantics, Semantics::Tombstone);
    for (line, code) in [
        ("sc delete nobody", "dockerfile/fails"),
        (
            "sc failure nobody reset= 1 actions= restart/1",
            "dockerfile/fails",
        ),
        ("sc failure w3svc reset= 1", "dockerfile/not-understood"),
        ("sc sdset w3svc D:(A;;GA;;;BA)", "dockerfile/not-understood"),
    ] {
        bench
            .refused(&format!("RUN {line}"))
            .is(code, &[])
            .names(&["Dockerfile:3: ", "sc: "]);
    }
}

/// A hive of a user, as a base has it.
fn user_hive() -> Vec<u8> {
    let edit = RegistryEdit::SetValue {
        key: r"HKLM\SOFTWARE\Environment".parse().unwrap(),
        name: "TEMP".to_owned(),
        data: RegistryData::expand_sz(r"%USERPROFILE%\AppData\Local\Temp"),
    };
    whole_hive(&[edit])
}

#[test(multi_thread)]
async fn user_variables_are_set_in_the_hive_of_the_base() {
    let mut layer = base_layer();
    let profile = "Files/Users/ContainerAdministrator";
    layer.folder(profile, Some(FOLDER)).entry(
        &format!("{profile}/NTUSER.DAT"),
        tar::EntryType::Regular,
        "34",
        Some(OWN),
        &user_hive(),
        None,
    );
    let base = image_of(VERSION, vec![layer.tar()]);
    for bench in [Bench::on(&base).await, Bench::on(&base).await.indexed()] {
        let layers = bench.layers(
            r#"RUN setx KIND small && setx TEMP C:\temp
RUN mkdir C:\%KIND% && setx MORE "%KIND% %KIND%"
RUN powershell "[Environment]::SetEnvironmentVariable('KIND', 'big', 'User')""#,
        );
        let file = &format!("{profile}/NTUSER.DAT");
        let variables = |layer: usize| key_in(&files_of(&layers[layer])[file], r"\Environment");
        assert_eq!(variables(0), [r#""KIND"="small""#, r#""TEMP"="C:\\temp""#]);
        assert!(files_of(&layers[1]).contains_key("Files/small/"));
        assert_eq!(variables(1)[1], r#""MORE"="small small""#);
        assert_eq!(variables(2)[0], r#""KIND"="big""#);
        let (security, attributes) = &entries_of(&layers[0])[file];
        assert_eq!((security, attributes.as_str()), (&Some(printed(OWN)), "34"));
        assert!(
            !files_of(&layers[0])
                .keys()
                .any(|path| path.contains("Delta"))
        );
    }
    // So are those of an image below.
    let bench = Bench::on(&base).await;
    let lines = "RUN echo %KIND%>C:\\k.txt\nRUN if defined KIND mkdir C:\\yes\n\
                 RUN powershell mkdir C:\\$env:KIND\nRUN echo %PATH%>C:\\p.txt";
    let below = "RUN setx KIND small\nRUN setx PATH C:\\tools";
    bench.build_on(below, lines).success();
    let built = bench.built();
    let [_, _, kind, is_set, named, path] = built.as_slice() else {
        panic!("{built:?}");
    };
    assert_eq!(files_of(kind)["Files/k.txt"], b"small\r\n");
    assert!(files_of(is_set).contains_key("Files/yes/"));
    assert!(files_of(named).contains_key("Files/small/"));
    let path = String::from_utf8_lossy(&files_of(path)["Files/p.txt"]).into_owned();
    assert!(path.ends_with("\\v1.0\\;C:\\tools\r\n"), "{path}");
    // Windows creates the hive of a user who was never logged on.
    for instructions in ["RUN setx A b", "USER ContainerUser\nRUN setx A b"] {
        let bench = Bench::new().await.indexed();
        bench
            .refused(instructions)
            .is("dockerfile/not-understood", &["NTUSER.DAT"])
            .names(&["setx: "])
            .advises(&["setx /M"]);
    }
}

#[test(multi_thread)]
async fn an_image_below_without_an_index_can_hide_programs_of_windows() {
    let bench = Bench::new().await;
    for (below, line, why) in [
        (
            "RUN setx /M PATH C:\\x",
            "xcopy /y C:\\data\\own.txt C:\\n\\",
            "it is not on PATH",
        ),
        (
            "RUN del C:\\Windows\\System32\\xcopy.exe",
            "xcopy /y C:\\data\\own.txt C:\\n\\",
            "the image has no xcopy",
        ),
        (
            "COPY a.txt C:/app/xcopy.exe\nWORKDIR C:\\app",
            "xcopy /y C:\\data\\own.txt C:\\n\\",
            "it runs xcopy.exe from the working folder",
        ),
    ] {
        let refused = bench.build_on(below, &format!("RUN {line}"));
        let refused = refused.failure();
        let printed = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert_contains!(printed, why);
    }
    // Others are not read for that.
    let below = "RUN setx /M PATH \"%PATH%;C:\\x\"\nCOPY a.txt C:/x/xcopy.exe\nWORKDIR C:\\app";
    let built = bench.build_on(below, "RUN whoami").success();
    let printed = String::from_utf8_lossy(&built.get_output().stderr).into_owned();
    assert!(!printed.contains("from its layers"), "{printed}");
}

#[test(multi_thread)]
async fn users_are_looked_up_among_the_accounts_of_the_base() {
    let name = |name: &str| RegistryEdit::SetValue {
        // A hive does not say which one it is.
        key: format!(r"HKLM\SOFTWARE\SAM\Domains\Account\Users\Names\{name}")
            .parse()
            .unwrap(),
        name: String::new(),
        data: RegistryData::dword(0),
    };
    let mut upper = LayerTar::default();
    let accounts = delta_hive(&[name("Guest"), name("app")]);
    upper
        .folder("Hives", None)
        .file("Hives/Sam_Delta", &accounts, None);
    let bench = Bench::new().await;
    let host = bench.server.host();
    let name = format!("{host}/own/app:{VERSION}");
    let base = image_of(VERSION, vec![base_layer().tar(), upper.tar()]);
    put_at(&base, &name).await;
    let build = |user: &str| {
        let text = format!("FROM {name}\nUSER {user}\n");
        bench.build_with(&text, &["--format", "json"])
    };
    // Of a base that nobody looked into, nothing is known but its name.
    build("apps").success();
    bench.machine.json(&["base", "index", &name]);
    build("App").success();
    Failure::of(build("apps").failure().get_output())
        .is("dockerfile/invalid", &["\"apps\""])
        .names(&["Dockerfile:2: "])
        .on_line(2);
}

#[test(multi_thread)]
async fn files_of_a_build_do_not_replace_folders_of_the_base() {
    // Neither base is indexed before.
    let bench = Bench::new().await;
    let layers = bench.layers("COPY a.txt C:/inetpub/app");
    let copied = files_of(&layers[0]);
    assert_eq!(copied["Files/inetpub/app/a.txt"], b"a.txt");
    assert!(!copied.contains_key("Files/inetpub/app"), "{copied:?}");
    for (line, problem) in [
        ("RUN Set-Content C:\\inetpub x", "folder"),
        (
            "RUN [IO.File]::WriteAllText('C:\\inetpub', 'x')",
            r"C:\inetpub is a folder, which a file cannot replace",
        ),
        (
            "RUN New-Item -ItemType Directory -Force C:\\inetpub\\app\\Config.txt",
            "Config.txt",
        ),
        (
            "RUN [IO.Directory]::CreateDirectory('C:\\inetpub\\app\\Config.txt')",
            r"C:\inetpub\app\Config.txt is a file, which a folder cannot replace",
        ),
    ] {
        let bench = Bench::new().await;
        let shell = "SHELL [\"powershell\", \"-Command\"]\n";
        let failure = bench.refused(&format!("{shell}{line}"));
        failure.is("dockerfile/fails", &[problem]);
    }
}

#[test(multi_thread)]
async fn windows_powershell_fails_on_a_nano_server_without_it() {
    let bench = Bench::without_programs().await;
    let lines = "SHELL [\"powershell\", \"-Command\"]\nRUN mkdir C:\\x";
    bench
        .refused(lines)
        .is("dockerfile/fails", &["the image has no powershell"]);
}

/// A file of 17 bytes, and a line that doubles it.
const SEVENTEEN: &str = "RUN echo 0123456789abcde> C:\\a\nWORKDIR C:/\n";
const DOUBLED: &str = "RUN copy /b a+a b && move /y b a\n";

#[test(multi_thread)]
async fn lines_that_double_a_file_end_at_a_limit() {
    let bench = Bench::new().await;
    let content = r"the content of C:\a is unknown";
    bench
        .refused(&(SEVENTEEN.to_owned() + &DOUBLED.repeat(27)))
        .is("dockerfile/not-known", &[content])
        .on_line(21);
    let sources = ["a"; 30].join("+");
    let joined = (1..20).map(|number| format!("RUN copy /b {sources} c{number}\n"));
    let lines: String = [SEVENTEEN.to_owned(), DOUBLED.repeat(15)]
        .into_iter()
        .chain(joined)
        .collect();
    let written = "the RUN lines write more than 256 MiB";
    bench
        .refused(&lines)
        .is("dockerfile/not-understood", &[written]);
}

#[test(multi_thread)]
async fn entries_count_against_the_limit_of_what_lines_write() {
    let bench = Bench::new().await;
    // Less than half a MiB is left after these, which is 936 entries.
    let joined = |sources: usize, target: usize| {
        let sources = vec!["a"; sources].join("+");
        format!("RUN copy /b {sources} c{target}\n")
    };
    let full: String = [SEVENTEEN.to_owned(), DOUBLED.repeat(15)]
        .into_iter()
        .chain((0..15).map(|target| joined(30, target)))
        .chain([joined(29, 15)])
        .collect();
    let files = |count: u32| {
        let pair = "(echo x> C:\\t\\a%i& echo x> C:\\t\\b%i)";
        let line = format!("RUN for /l %i in (1,1,{}) do @{pair}\n", count / 2);
        full.clone() + "RUN mkdir C:\\t\n" + &line
    };
    let copied = ["u", "v", "w"].map(|to| format!("COPY --from=0 C:/t C:/{to}\n"));
    for (lines, line) in [
        (files(2000), 37),
        (files(600) + "RUN xcopy /e /i /q C:\\t C:\\u", 38),
        (
            files(300) + &format!("FROM {BASE}\n") + &copied.concat(),
            41,
        ),
    ] {
        let failure = bench.refused(&lines).on_line(line);
        failure.names(&["half a million files and folders"]);
    }
}
