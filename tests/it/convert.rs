//! `wincimg recipe convert`: the recipe of a Dockerfile makes the same image, and unsupported lines are
//! reported by line.

use std::fs;

use serde_json::Value;
use wincimg_testkit::layout::{blob_in, json_in};

use crate::failure::{Fails, line, says};
use crate::site::{Site, answer_of, json_of, stderr, zip_of};

const BASE: &str = "mcr.microsoft.com/windows/nanoserver:1809";
const FILES: [&str; 6] = [
    "a.txt", "b.txt", "d/c.txt", "d/e/f.txt", "d/e/g.txt", "tools/t.exe",
];

fn site(text: &str) -> Site {
    let site = Site::new();
    site.write("app/Dockerfile", text);
    for file in FILES {
        site.write(&format!("app/{file}"), file);
    }
    site.write("app/t.zip", archive());
    site
}

fn archive() -> Vec<u8> {
    zip_of(&[("t-1/bin/t.exe", "program"), ("t-1/read me.txt", "text")])
}

/// Builds something and returns the image's digest.
fn built(site: &Site, what: &str, output: &str, arguments: &[&str]) -> String {
    let mut command = site.build(what);
    command
        .args(["--host-build", "17763.973", "--tag", "1"])
        .args(["--output", &format!("oci:{output}")])
        .args(arguments)
        .env("SOURCE_DATE_EPOCH", "1700000000");
    let report = json_of(&mut command);
    report["images"][0]["digest"].as_str().unwrap().to_owned()
}

fn convert(site: &Site, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = site.with_bases(&["convert", "./app"]);
    command.args(["--host-build", "17763.973"]).args(arguments);
    command
}

/// The flags of registries in a command of the site.
fn registry_flags(site: &Site) -> String {
    let host = site.host();
    format!("--base-registry {host}/mcr --insecure-registry {host}")
}

#[test]
fn a_folder_with_a_recipe_is_converted_again_and_the_note_can_be_typed() {
    let site = site(&format!("FROM {BASE}\nCOPY a.txt C:/app/\n"));
    for _ in 0..2 {
        let output = convert(&site, &["--output", "./app/recipe.toml", "--force"]);
        let output = { output }.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let build = "wincimg build ./app/recipe.toml --host-build 17763.973";
        let note = format!("`{build} {}`", registry_flags(&site));
        assert_contains!(stderr(&output), &note);
    }
}

#[test]
fn a_download_that_nothing_pins_is_locked_by_the_command_that_has_the_flag() {
    let site = site(&format!("FROM {BASE}\nADD https://x.test/a.zip C:/a/\n"));
    for (command, file) in [
        (&["convert", "./app"][..], "./app/Dockerfile"),
        (&["recipe", "convert", "./app"], "./app/Dockerfile"),
        (&["init", "--from", "app/Dockerfile"], "app/Dockerfile"),
    ] {
        let mut command = site.with_bases(command);
        let refused = command.args(["--host-build", "17763.973"]).fails(
            2,
            "download/not-pinned",
            &["https://x.test/a.zip"],
        );
        let build = format!("wincimg build ./app --file {file} --host-build 17763.973");
        let lock = format!("{build} {} --update-lock", registry_flags(&site));
        assert_eq!(refused.hint, lock);
    }
}

#[test]
fn lines_for_windows_count_more_than_a_registry_that_does_not_answer() {
    let site = site(&format!(
        "FROM 127.0.0.1:1/golang:nanoserver AS made\nRUN msbuild app.sln\n\
         FROM {BASE}\nCOPY --from=made /app.exe /\n"
    ));
    let (code, answer) = answer_of(&mut convert(&site, &[]));
    assert_eq!(code, 4, "{answer:#}");
    assert_eq!(answer["obstacles"][0]["line"], 2);
}

/// Converts and builds both; returns their common digest.
fn round_trip(text: &str, arguments: &[&str]) -> String {
    let site = site(text);
    site.write("out/app/app.exe", "program");
    site.write("app/.dockerignore", "recipe.toml\n");
    let from_dockerfile = built(&site, "./app", "one", arguments);
    let convert_to = |file: &str, more: &[&str]| {
        let output = convert(&site, &["--output", file])
            .args(arguments)
            .args(more)
            .output()
            .unwrap();
        assert!(output.status.success(), "{text}\n{}", stderr(&output));
        site.text(file)
    };
    let kept = convert_to("kept.toml", &["--keep-history"]);
    let from_recipe = built(&site, "./kept.toml", "two", &[]);
    assert_eq!(from_dockerfile, from_recipe, "{text}\n{kept}");
    // Without the history it has the same settings and the same layers.
    let recipe = convert_to("recipe.toml", &[]);
    let short = built(&site, "./recipe.toml", "three", &[]);
    let (one, three) = (
        content(&site, "one", &from_dockerfile),
        content(&site, "three", &short),
    );
    assert_eq!(one, three, "{text}\n{recipe}");
    assert!(!recipe.contains("created_by"), "{recipe}");
    recipe
}

/// Settings of an image, and the digests of its unpacked layers.
fn content(site: &Site, layout: &str, digest: &str) -> (Value, Value) {
    let blob = |digest: &Value| json_in(&blob_in(&site.path(layout), digest));
    let mut config = blob(&blob(&digest.into())["config"]["digest"]);
    // The order of variables has no meaning.
    if let Some(env) = config["config"]["Env"].as_array_mut() {
        env.sort_by_key(ToString::to_string);
    }
    (
        config["config"].clone(),
        config["rootfs"]["diff_ids"].clone(),
    )
}

#[test]
fn a_recipe_makes_the_same_image_as_its_dockerfile() {
    for instructions in [
        "",
        "COPY a.txt /x/\nCOPY . /all/\nCOPY d C:/\n\
         COPY d /y\nCOPY a.txt /y/c.txt\nCOPY d/e /e/\nCOPY d/* /z/\n\
         COPY --exclude=**/g.txt d /w\n\
         WORKDIR C:/app/in\nCOPY [\"a.txt\", \"b.txt\", \"with space/\"]\n\
         ENV Z=1 A=\"x $y \\${z}\"\nENV a=2\nENV ODD=\"it's\"\n\
         USER ContainerUser\nEXPOSE 80 53/udp 8000-8001\nVOLUME C:/data\nLABEL \"a b\"=c d=\"1\\\"\"\n\
         STOPSIGNAL SIGTERM\nVOLUME [\"C:/v\", \"C:/w\"]\n\
         HEALTHCHECK --retries=3 --interval=1m30s --timeout=500ms CMD curl http://localhost\n\
         CMD echo %PATH% \"a b\"",
        "HEALTHCHECK NONE\nMAINTAINER somebody\nONBUILD COPY a.txt C:/\n\
         SHELL [\"pwsh\", \"-Command\"]\nWORKDIR C:/p\n\
         RUN 'two' > two.txt; Set-Content three.txt 'x'\n\
         ENTRYPOINT [\"one.exe\", \"a b\"]\nCMD [\"two\"]",
        "COPY <<EOF /x/one.txt\nfirst ${HOME} 'it' \"is\"\n'''\nEOF\nRUN echo hello> C:\\x\\two.txt\n\
         COPY d /in/\nRUN move C:\\in\\c.txt C:\\in\\n.txt && rd /s /q C:\\in\\e\n\
         RUN mkdir C:\\empty\\deep\n\
         RUN setx /M KIND \"a b\" && reg add HKLM\\SOFTWARE\\Acme /v n /t REG_DWORD /d 7 /f && \
         reg add HKLM\\SOFTWARE\\Acme /v l /t REG_MULTI_SZ /d a\\0b /f && \
         reg add HKLM\\SOFTWARE\\Acme /v b /t REG_BINARY /d 00ff /f && \
         reg add HKLM\\SOFTWARE\\Acme /ve /t REG_EXPAND_SZ /d %%TEMP%%\\x /f && reg add HKLM\\SOFTWARE\\Acme\\Empty /f\n\
         ENTRYPOINT run me\nCMD [\"x\"]",
    ] {
        // Nano Server's default user lacks write access to some folders.
        let user = if instructions.contains("RUN") {
            "USER ContainerAdministrator\n"
        } else {
            ""
        };
        round_trip(&format!("FROM {BASE}\n{user}{instructions}\n"), &[]);
    }
}

#[test]
fn an_archive_that_a_line_unpacks_is_an_entry_of_the_recipe() {
    let recipe = round_trip(
        &format!(
            "FROM {BASE}\nUSER ContainerAdministrator\n\
             COPY t.zip C:/in/\nRUN tar -xf C:\\in\\t.zip -C C:\\in\n\
             COPY t.zip C:/out/\nRUN mkdir C:\\o && tar -xf C:\\out\\t.zip -C C:\\o --strip-components 1 && \
             del C:\\out\\t.zip && echo x> C:\\o\\x.txt\n\
             SHELL [\"pwsh\", \"-Command\"]\n\
             COPY t.zip C:/again/\nRUN Expand-Archive C:\\again\\t.zip -DestinationPath C:\\two\n"
        ),
        &[],
    );
    for end in ["to = 'C:\\in'", "strip = 1\nto = 'C:\\o'", "to = 'C:\\two'"] {
        let entry = format!("from = \"app/t.zip\"\nunpack = true\n{end}");
        assert!(recipe.contains(&entry), "{entry}\n{recipe}");
    }
    // A part of an archive has no entry.
    let site = site(&format!(
        "FROM {BASE}\nUSER ContainerAdministrator\nCOPY t.zip C:/in/\n\
         RUN tar -xf C:\\in\\t.zip -C C:\\in \"t-1/read me.txt\"\n"
    ));
    let (code, answer) = answer_of(&mut convert(&site, &[]));
    assert_eq!(code, 1);
    let why = answer["obstacles"][0]["why"].as_str().unwrap();
    assert_contains!(why, "t.zip:t-1/read me.txt");
}

#[test]
fn stages_folders_and_arguments_are_in_the_recipe() {
    let text = format!(
        "ARG WHICH=1809\nFROM {BASE} AS tools\nWORKDIR /out\nCOPY d bin/\nENV FROM_TOOLS=1\n\
         FROM golang:1.22 AS compiled\nRUN go build\n\
         FROM tools\nARG VERSION=1\nENV VERSION=$VERSION\nCOPY --from=tools /out/bin /t/\n\
         COPY --from=compiled /app /v/\n"
    );
    let recipe = round_trip(
        &text,
        &["--stage", "compiled=out", "--build-arg", "VERSION=7"],
    );
    assert_contains!(
        recipe,
        "base = \"nanoserver\"",
        "from = \"app/d\"",
        "from = \"out/app/app.exe\"",
        "VERSION = \"7\""
    );
}

#[test]
fn the_recipe_is_written_for_people() {
    let site = site(&format!(
        "FROM {BASE}\nUSER ContainerAdministrator\nENV NAME=store\nCOPY d C:/store\nRUN echo ready> C:\\store\\state.txt&& mkdir C:\\store\\logs\n\
         EXPOSE 8080\nCMD [\"C:\\\\store\\\\store.exe\"]\n"
    ));
    let recipe = convert(&site, &[]).prints();
    assert_eq!(
        recipe,
        r#"# Makes the same image as ./app/Dockerfile. Paths are relative to the folder of this file.
name = "app"
base = "nanoserver"
cmd = ['C:\store\store.exe']
user = "ContainerAdministrator"
ports = [8080]

[env]
NAME = "store"

[[layers]] # line 4: COPY d C:/store
name = "copy-4"

[[files]]
layer = "copy-4"
from = "d"
to = 'C:\store'

[[layers]] # line 5: RUN cmd /S /C echo ready> C:\store\state.txt&& mkdir C:\store\logs
name = "run-5"
folders = ['C:\store\logs']

[[files]]
layer = "run-5"
content = "ready\r\n"
to = 'C:\store\state.txt'
"#
    );
    // It can be built for other hosts too.
    site.write("app/recipe.toml", &recipe);
    let mut other = site.build("./app/recipe.toml");
    let other = json_of(other.args(["--host-build", "20348.2402", "--dry-run"]));
    assert_eq!(other["plans"][0]["base"]["os_version"], "10.0.20348.2402");
}

#[test]
fn every_obstacle_is_reported_once() {
    let site = site(&format!(
        "FROM {BASE} AS build\nRUN msbuild app.sln\nRUN copy C:\\out\\app.exe C:\\app.exe\n\
         FROM {BASE}\nCOPY --from=build /app.exe /\nCOPY missing.txt /\nRUN choco install git && echo done\n"
    ));
    let (code, answer) = answer_of(&mut convert(&site, &[]));
    assert_eq!(code, 1);
    let reported: Vec<(u64, &str)> = answer["obstacles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["line"].as_u64().unwrap(),
                it["command"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        reported,
        [
            (2, "RUN msbuild app.sln"),
            (6, "COPY missing.txt /"),
            (7, "RUN choco install git && echo done")
        ]
    );
    assert_eq!(answer["recipe"], Value::Null);
    let help = answer["obstacles"][0]["help"].as_str().unwrap();
    assert_contains!(help, "--stage build=DIR");
    // Text output too.
    let output = convert(&site, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&output.stdout);
    let first = printed.lines().next().unwrap();
    assert!(first.starts_with("./app/Dockerfile:2: "), "{printed}");
    assert!(first.contains("msbuild"), "{printed}");
    says(&stderr(&output), &line(&["3"]));
}

#[test]
fn nothing_is_written_over_and_what_cannot_be_said_is_reported() {
    let site = site(&format!("FROM {BASE}\nCOPY a.txt /x/\n"));
    site.write("kept.toml", "mine");
    convert(&site, &["--output", "kept.toml"])
        .fails(2, "usage", &["kept.toml"])
        .advises(&["--force"]);
    assert_eq!(site.text("kept.toml"), "mine");

    fs::create_dir(site.path("elsewhere")).unwrap();
    let (code, answer) = answer_of(&mut convert(&site, &["--output", "elsewhere/r.toml"]));
    assert_eq!(code, 1);
    let why = answer["obstacles"][0]["why"].as_str().unwrap();
    assert_contains!(why, "elsewhere");

    // cmd's variable syntax would expand to the base's PATH.
    site.write(
        "app/Dockerfile",
        format!("FROM {BASE}\nENV PATH=\"C:\\x;%PATH%\"\n"),
    );
    let (code, answer) = answer_of(&mut convert(&site, &[]));
    assert_eq!((code, answer["recipe"].is_null()), (1, true), "{answer}");

    site.with_bases(&["convert", "pause", "--host-build", "17763.973"])
        .fails(2, "usage", &["Dockerfile"]);
    site.with_bases(&["convert", "nosuch", "--host-build", "17763.973"])
        .fails(3, "dockerfile/unreadable", &["Dockerfile nosuch"]);
    convert(&site, &["--output", "-"]).fails(2, "usage", &["two outputs", "stdout"]);
}

#[test]
fn an_image_of_a_name_is_a_base_too() {
    let site = site("FROM scratch\n");
    site.write(
        "tools/Dockerfile",
        format!("FROM {BASE}\nENV TOOLS=1 PATH=C:\\\\tools\n"),
    );
    let host = site.host();
    site.build("./tools")
        .args(["--host-build", "17763.973", "--tag", "1.4", "--push"])
        .args(["--registry", &format!("{host}/own")])
        .assert()
        .success();
    site.write(
        "app/Dockerfile",
        format!("FROM {host}/own/tools:1.4\nENV TOOLS=2\nCOPY a.txt /x/\n"),
    );
    let one = built(&site, "./app", "one", &[]);
    convert(&site, &["--output", "app/recipe.toml", "--keep-history"])
        .assert()
        .success();
    let recipe = site.text("app/recipe.toml");
    assert_contains!(recipe, &format!("base_image = \"{host}/own/tools:1.4\""));
    assert_eq!(built(&site, "./app/recipe.toml", "two", &[]), one);
}

#[test]
fn the_name_is_that_of_the_repository() {
    let site = site(&format!("FROM {BASE}\nCOPY a.txt /x/\n"));
    site.write(
        "app/.git/config",
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.com/group/Store.git\n",
    );
    let recipe = convert(&site, &[]).prints();
    assert_contains!(recipe, "name = \"store\"");
}

#[test]
fn the_help_has_the_exit_code_of_lines_for_windows() {
    let site = Site::new();
    let help = site.command(&["convert", "--help"]).prints();
    assert_contains!(help, "4: all of those run on Windows");
}

#[test]
fn failed_lines_are_annotations_of_a_pull_request() {
    let site = site(&format!(
        "FROM {BASE}\nRUN msbuild app.sln\nRUN choco install git\n"
    ));
    for (command, name) in [
        ("convert", "convert"),
        ("build", "dockerfile/needs-windows"),
    ] {
        let run = |format: &str| {
            let mut command = site.with_bases(&[command, "./app"]);
            command.args(["--host-build", "17763.973", "--format", format]);
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(4));
            String::from_utf8(output.stdout).unwrap()
        };
        let printed = run("github");
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines.len(), 2, "{printed}");
        let first = format!("::error file=app/Dockerfile,line=2,endLine=2,title={name}::");
        assert!(lines[0].starts_with(&first), "{printed}");
        assert_contains!(lines[1], "line=3,", "choco");
        let report: Value = serde_json::from_str(&run("gitlab")).unwrap();
        assert_eq!(report[0]["check_name"], name);
        assert_eq!(report[0]["location"]["path"], "app/Dockerfile");
        assert_eq!(report[1]["location"]["lines"]["begin"], 3);
        assert_ne!(report[0]["fingerprint"], report[1]["fingerprint"]);
    }
}
