//! Layers of one image over each other: what an earlier one set stays, whatever is known of the base,
//! and all of them have hives or none.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use wincimg_registry::hive::Hive;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::layout::layers_in;

use crate::base_permissions::entries_of;
use crate::inside::{Machine, publish};
use crate::run_lines::{base, files_of};

const DOCKERFILE: &str = "# escape=`\nFROM mcr.microsoft.com/windows/nanoserver:1809\n";
const GRANT: &str = "RUN mkdir C:\\own && icacls C:\\own /grant \"Users:(OI)(CI)M\"\n";

/// Files of a build's folder, by their names.
type Folder = Vec<(&'static str, String)>;

/// The layers that a build adds, with or without facts about the base.
async fn built(folder: &Folder, knows_base: bool) -> (Machine, Vec<PathBuf>) {
    let server = FakeRegistry::start();
    let host = server.host();
    let reference = publish(&base(), &host).await;
    let machine = Machine::new();
    if knows_base {
        machine.json(&["base", "index", &reference]);
    }
    let app = machine.0.path().join("app");
    fs::create_dir(&app).unwrap();
    fs::write(app.join("a.txt"), "a").unwrap();
    for (name, text) in folder {
        fs::write(app.join(name), text).unwrap();
        if text.contains("large.bin") {
            fs::write(app.join("large.bin"), vec![7; 17 << 20]).unwrap();
        }
    }
    let mut build = vec!["build", "./app", "--output", "oci:out"];
    build.extend(["--host-build", "17763.973", "--base-registry", &host]);
    machine.run(&build).success();
    let layers = layers_in(&machine.0.path().join("out"));
    let of_base = usize::from(!folder[0].1.contains("\"hostprocess\""));
    (machine, layers[of_base..].to_vec())
}

fn dockerfile(instructions: &str) -> Folder {
    vec![("Dockerfile", format!("{DOCKERFILE}{instructions}\n"))]
}

fn recipe(base: &str, tables: &str) -> Folder {
    let text = format!("name = \"app\"\nbase = \"{base}\"\n{tables}");
    vec![("recipe.toml", text)]
}

#[test(multi_thread)]
async fn a_right_survives_the_next_layer() {
    const FOLDER: &str = "[[layers]]\nname = \"data\"\nfolders = ['C:\\own']\n";
    const ACCESS: &str = "[[access]]\npath = 'C:\\own'\ngrant = { Users = \"modify\" }\n";
    const IN_LAYER: &str = "layer = \"data\"\n";
    const FILE: &str = "[[files]]\ncontent = \"x\"\nto = 'C:\\Own\\x.txt'\n";
    for (folder, written) in [
        (
            dockerfile(&format!("{GRANT}COPY a.txt C:/own/")),
            "own/a.txt",
        ),
        (
            dockerfile(&format!("{GRANT}RUN echo x > C:\\own\\f")),
            "own/f",
        ),
        (
            dockerfile(&format!("{GRANT}RUN mkdir C:\\own\\sub")),
            "own/sub",
        ),
        (
            dockerfile(&format!("{GRANT}WORKDIR C:\\own\\work")),
            "own/work",
        ),
        (
            dockerfile(&format!(
                "{GRANT}RUN icacls C:\\own /grant \"NETWORK SERVICE:(OI)(CI)RX\""
            )),
            "own",
        ),
        (
            dockerfile(&format!(
                "{GRANT}COPY a.txt C:/own/in/\nRUN del C:\\own\\in\\a.txt"
            )),
            "own/in",
        ),
        (
            dockerfile(&format!(
                "{GRANT}RUN copy C:\\Windows\\System32\\sc.exe C:\\own\\"
            )),
            "own/sc.exe",
        ),
        (
            recipe("nanoserver", &format!("{FOLDER}{ACCESS}{IN_LAYER}{FILE}")),
            "own/x.txt",
        ),
        (
            recipe(
                "nanoserver",
                &format!(
                    "{FOLDER}{ACCESS}{IN_LAYER}{}",
                    FILE.replace("content", "layer = \"more\"\ncontent")
                ),
            ),
            "own/x.txt",
        ),
        (
            recipe(
                "hostprocess",
                &format!("entrypoint = ['C:\\x.exe']\n{FOLDER}{ACCESS}{IN_LAYER}{FILE}"),
            ),
            "own/x.txt",
        ),
        // Rights that are granted later reach the files of the layer before.
        (
            recipe(
                "nanoserver",
                &format!(
                    "{}{ACCESS}",
                    FILE.replace("content", "layer = \"first\"\ncontent")
                ),
            ),
            "own/x.txt",
        ),
    ] {
        for knows_base in [false, true] {
            let (_machine, layers) = built(&folder, knows_base).await;
            // What a container finds: the topmost entry of each path.
            let mut seen = BTreeMap::new();
            for layer in &layers {
                let entries = entries_of(layer).into_iter();
                seen.extend(entries.map(|(path, (security, _))| (path.to_lowercase(), security)));
            }
            let rights = |path: &str| seen[path].clone().unwrap();
            let of_folder = rights("files/own");
            let shape = &folder[0].1;
            assert_contains!(of_folder, "(A;OICI;0x1301bf;;;BU)");
            let of_inside = rights(&format!("files/{written}"));
            assert!(
                of_inside.contains("0x1301bf;;;BU)"),
                "{shape}: {written}: {of_inside}"
            );
        }
    }
}

/// The delta hives of a layer, by their paths.
fn delta_hives(layer: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = files_of(layer);
    files.retain(|path, _| path.starts_with("Hives/") && !path.ends_with('/'));
    files
}

#[test(multi_thread)]
async fn layers_on_an_own_image_have_hives_if_its_layers_have() {
    let server = FakeRegistry::start();
    let host = server.host();
    publish(&base(), &host).await;
    let machine = Machine::new();
    let app = machine.0.path().join("app");
    fs::create_dir(&app).unwrap();
    fs::write(app.join("a.txt"), "a").unwrap();
    let build = |text: &str, more: &[&str]| {
        fs::write(app.join("Dockerfile"), text).unwrap();
        let build = [
            "build", "./app", "--host-build", "17763.973", "--base-registry", &host,
        ];
        machine.run(&[&build[..], more].concat()).success();
    };
    for (line, hives) in [
        ("reg add HKLM\\SOFTWARE\\Shop /v a /d b /f", 5),
        ("mkdir C:\\x", 0),
    ] {
        let below = format!("oci:below-{hives}");
        let text = format!("{DOCKERFILE}RUN {line}\nENV A=1\n");
        build(&text, &["--output", &below, "--tag", "1"]);
        let text = format!("{DOCKERFILE}FROM made\nCOPY a.txt C:/y/\n");
        let text = text.replacen(":1809\n", ":1809 AS made\nRUN msbuild.exe\n", 1);
        let stage = format!("made={below}:1");
        let out = format!("out-{hives}");
        build(
            &text,
            &["--stage", &stage, "--output", &format!("oci:{out}")],
        );
        let own = &layers_in(&machine.0.path().join(out))[1..];
        let counts: Vec<usize> = own.iter().map(|layer| delta_hives(layer).len()).collect();
        assert_eq!(counts, [hives; 2], "{line}");
    }
}

#[test(multi_thread)]
async fn an_own_image_with_owners_or_links_is_read_without_an_index() {
    let server = FakeRegistry::start();
    let host = server.host();
    publish(&base(), &host).await;
    let machine = Machine::new();
    let app = machine.0.path().join("app");
    fs::create_dir_all(app.join("d/real")).unwrap();
    fs::write(app.join("a.txt"), "a").unwrap();
    fs::write(app.join("d/real/a.txt"), "a").unwrap();
    symlink("real", app.join("d/cur")).unwrap();
    let build = |text: &str, more: &[&str]| {
        fs::write(app.join("Dockerfile"), text).unwrap();
        let build = [
            "build", "./app", "--host-build", "17763.973", "--base-registry", &host,
        ];
        machine.run(&[&build[..], more].concat())
    };
    let on_own_image = |name: &str, lines: &str, copy: &str| {
        let below = format!("oci:below-{name}");
        let text = format!("{DOCKERFILE}{lines}\n");
        build(&text, &["--output", &below, "--tag", "1"]).success();
        let text = format!("{DOCKERFILE}FROM made\n{copy}\n");
        let text = text.replacen(":1809\n", ":1809 AS made\nRUN msbuild.exe\n", 1);
        let stage = format!("made={below}:1");
        build(
            &text,
            &["--stage", &stage, "--output", &format!("oci:out-{name}")],
        )
    };
    let lines = "USER ContainerUser\nRUN mkdir C:\\data";
    on_own_image("owner", lines, "COPY a.txt C:/data/").success();
    let layers = layers_in(&machine.0.path().join("out-owner"));
    let entries = entries_of(layers.last().unwrap());
    let rights = entries["Files/data"].0.clone().unwrap();
    assert!(rights.starts_with("O:S-1-5-93-2-2"), "{rights}");
    for (name, lines, copy, link) in [
        (
            "line",
            "COPY a.txt C:/real/\nRUN mklink /d C:\\cur C:\\real",
            "COPY a.txt C:/cur/x.txt",
            r"C:\cur is a link",
        ),
        (
            "copy", "COPY d C:/t/", "WORKDIR C:/t/cur/sub", r"C:\t\cur is a link",
        ),
    ] {
        let refused = on_own_image(name, lines, copy).failure();
        let printed = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert_contains!(printed, link);
    }
}

#[test(multi_thread)]
async fn all_layers_have_hives_or_none_has() {
    const REGISTRY: &str =
        "[[registry]]\nkey = 'HKLM\\SOFTWARE\\Shop'\nvalues = { Region = \"EU\" }\n";
    let large = "[[files]]\nfrom = \"large.bin\"\nto = 'C:\\large.bin'\n\
         [[files]]\nfrom = \"a.txt\"\nto = 'C:\\a.txt'\n";
    for (folder, layers, hives) in [
        (dockerfile("COPY a.txt C:/x/\nCOPY a.txt C:/y/"), 2, 0),
        (
            dockerfile("COPY a.txt C:/x/\nRUN reg add HKLM\\SOFTWARE\\Shop /v a /d b /f"),
            2,
            5,
        ),
        (
            dockerfile(
                "COPY a.txt C:/x/\nRUN reg add HKLM\\SOFTWARE\\Shop /v a /d b /f\nENV A=1\nCOPY a.txt C:/y/",
            ),
            3,
            5,
        ),
        (recipe("nanoserver", large), 2, 0),
        (recipe("nanoserver", &format!("{large}{REGISTRY}")), 2, 5),
        (
            recipe(
                "nanoserver",
                &format!(
                    "{large}{}",
                    REGISTRY.replace("key", "layer = \"keys\"\nkey")
                ),
            ),
            3,
            5,
        ),
    ] {
        let (_machine, built) = built(&folder, false).await;
        let shape = &folder[0].1;
        assert_eq!(built.len(), layers, "{shape}");
        for layer in &built {
            let deltas = delta_hives(layer);
            assert_eq!(deltas.len(), hives, "{shape}");
            for (path, bytes) in deltas {
                assert!(Hive::read(&bytes).unwrap().layered, "{shape}: {path}");
            }
        }
    }
}
