//! Several hosts, users, scripts, and long files.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::test_bases::tar_of;

use super::{BASE, build, files, plan, refused, site};
use crate::failure::{Fails, note, says};
use crate::site::{Site, json_of, stderr};

#[test]
fn every_host_gets_its_base_and_equal_layers_are_one() {
    let site = site("COPY a.txt /x/\nCOPY b.txt /y/", &["a.txt", "b.txt"]);
    let image = format!("oci:{}", site.path("image").display());
    let mut both = site.build("./app/Dockerfile");
    both.args([
        "--host-build", "17763.973", "--host-build", "20348.2402", "--output", &image,
    ])
    .env("SOURCE_DATE_EPOCH", "1580256000");
    let printed = both.tells(0);
    says(&printed, &note(&["20348"]));
    both.args(["--format", "json"]);
    let mut report = || -> Value {
        let output = both.output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let first = report();
    let own = |image: &Value| -> Vec<Value> {
        let layers = image["layers"].as_array().unwrap().iter();
        let own = layers.filter(|layer| layer["from"] == "recipe");
        own.map(|layer| layer["digest"].clone()).collect()
    };
    let images = first["images"].as_array().unwrap();
    assert_eq!(own(&images[0]).len(), 2);
    assert_eq!(own(&images[0]), own(&images[1]));
    // Changing the second file does not change the first layer.
    site.write("app/b.txt", "changed");
    let changed = report();
    let (before, after) = (own(&images[0]), own(&changed["images"][0]));
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
}

#[test]
fn a_plan_without_the_base_has_the_lines_that_need_none_and_names_the_others() {
    let site = site(
        "ENV A=1\nEXPOSE 80\nCOPY a.txt /x/\nRUN del C:\\\\Windows\\\\a.txt\nRUN del C:\\\\Windows\\\\b.txt\n\
         LABEL l=m\nUSER Guest\nWORKDIR /w\nENTRYPOINT [\"e.exe\"]\nCMD [\"x.exe\"]",
        &["a.txt"],
    );
    let plan = plan(&site, &[]);
    let container = &plan["instructions"]["container"];
    let environment = container["Env"].as_array().unwrap();
    assert!(environment.contains(&json!("A=1")), "{container}");
    for (key, expected) in [
        ("Cmd", json!(["x.exe"])),
        ("Entrypoint", json!(["e.exe"])),
        ("ExposedPorts", json!({"80/tcp": {}})),
        ("User", json!("Guest")),
        ("WorkingDir", json!("C:\\w")),
    ] {
        assert_eq!(container[key], expected, "{container}");
    }
    assert_eq!(container["Labels"]["l"], "m", "{container}");
    assert_eq!(files(&plan), ["x/a.txt"]);
    let lines = ["./app/Dockerfile:5", "./app/Dockerfile:6"];
    assert_eq!(plan["left_out"], json!(lines));
    let text = build(&site, &["--dry-run"]).prints();
    for line in lines {
        assert_contains!(text, &format!("\nleft out    {line}\n"));
    }
    // What no base can mend is an error, as in a build.
    site.write(
        "app/Dockerfile",
        format!("FROM {BASE}\nRUN del C:\\\\Windows\\\\a.txt\nRUN net user a /add\n"),
    );
    build(&site, &["--dry-run"]).fails(4, "dockerfile/needs-windows", &["net"]);
}

#[test]
fn users_are_accounts_of_windows_or_of_the_base() {
    let user = |base: &str, written: &str| {
        let site = Site::new();
        site.write("app/Dockerfile", format!("{base}\nUSER {written}\n"));
        let output = build(&site, &["--dry-run", "--format", "json"])
            .output()
            .unwrap();
        let plans: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        let user = plans.map(|plans| {
            let container = &plans["plans"][0]["instructions"]["container"];
            container["User"].clone()
        });
        (user, stderr(&output))
    };
    let from = format!("FROM {BASE}");
    for (written, expected) in [
        ("ContainerUser", "ContainerUser"),
        (
            r#""User Manager\ContainerAdministrator""#,
            r"User Manager\ContainerAdministrator",
        ),
        (
            r"NT AUTHORITY\\NETWORK SERVICE",
            r"NT AUTHORITY\NETWORK SERVICE",
        ),
        (r#""nt authority\system""#, r"nt authority\system"),
        ("Guest", "Guest"),
    ] {
        let (found, printed) = user(&from, written);
        assert_eq!(found, Some(json!(expected)), "{written}: {printed}");
        assert!(!printed.contains("account"), "{printed}");
    }
    let (found, printed) = user(
        &format!("# escape=`\n{from}"),
        r"NT AUTHORITY\NETWORK SERVICE",
    );
    assert_eq!(
        found,
        Some(json!(r"NT AUTHORITY\NETWORK SERVICE")),
        "{printed}"
    );
    refused(r"USER NT AUTHORITY\NETWORK SERVICE", &[])
        .advises(&[r"USER NT AUTHORITY\\NETWORK SERVICE", "# escape=`"]);
    refused("USER app", &[])
        .is("dockerfile/invalid", &["\"app\""])
        .advises(&["ContainerUser"])
        .on_line(2);
}

#[test]
fn files_of_a_linux_image_are_copied_from_a_stage_without_instructions() {
    let registry = FakeRegistry::start();
    let host = registry.host();
    let lower = registry.layer(tar_of(&[
        ("Windows/System32/netapi32.dll", "old"),
        ("gone/", ""),
        ("gone/hidden.txt", "hidden"),
    ]));
    let upper = registry.layer(tar_of(&[
        ("Windows/System32/netapi32.dll", "dll"),
        ("gone/", ""),
        ("gone/.wh..wh..opq", ""),
        ("gone/new.txt", "new"),
    ]));
    let config = json!({"os": "linux", "architecture": "amd64"});
    let image = registry.image_of(&config, &[lower, upper]);
    registry.tag("core", "1", &image);
    let site = Site::new();
    let write = |platform: &str| {
        site.write(
            "app/Dockerfile",
            format!(
                "FROM --platform={platform} {host}/core:1 AS core\nFROM {BASE}\n\
                 COPY --from=core /Windows/System32/netapi32.dll C:/x/\nCOPY --from=core /gone C:/y\n"
            ),
        );
    };
    write("linux/amd64");
    let run = |more: &[&str]| {
        let mut command = build(&site, &["--insecure-registry", &host]);
        command.args(more);
        command
    };
    let mut plans = json_of(&mut run(&["--dry-run"]));
    assert_eq!(
        files(&plans["plans"][0].take()),
        ["x/netapi32.dll", "y/new.txt"]
    );
    json_of(&mut run(&["--output", "oci:image"]));
    // A copy of the image replaces it.
    let text = site.text("app/Dockerfile");
    let absent = text.replace(&format!("{host}/core:1"), &format!("{host}/absent:1"));
    site.write("app/Dockerfile", absent);
    let copied = format!("core={host}/core:1");
    let mut plans = json_of(&mut run(&["--dry-run", "--stage", &copied]));
    assert_eq!(
        files(&plans["plans"][0].take()),
        ["x/netapi32.dll", "y/new.txt"]
    );
    // Another platform than the image's is not taken for it.
    write("linux/arm64");
    let output = run(&["--dry-run"]).output().unwrap();
    assert!(!output.status.success());
    assert_contains!(stderr(&output), "linux/amd64");
}

#[test]
fn scripts_of_the_context_are_read() {
    let site = site(
        "USER ContainerAdministrator\nCOPY s C:/s/\nRUN C:\\s\\setup.cmd C:\\app && mklink /d C:\\link C:\\app",
        &[],
    );
    site.write(
        "app/s/setup.cmd",
        "@echo off\r\nmkdir %1\r\n>%1\\where.txt echo %~dp0\r\ncall \"%~dp0more.bat\"\r\n",
    );
    site.write("app/s/more.bat", "mkdir C:\\more\r\nexit /b 0\r\n");
    let plan = plan(&site, &[]);
    let made = files(&plan);
    assert_eq!(made, ["app/where.txt", "link", "s/more.bat", "s/setup.cmd"]);
    let steps = plan["instructions"]["steps"].to_string();
    assert_contains!(steps, r"C:\\more", "C:/app");
}

#[test]
fn a_script_of_a_copied_folder_runs_without_its_extension() {
    let site = site(
        "USER ContainerAdministrator\nCOPY ./p C:/c/\nRUN C:\\c\\yy a",
        &[],
    );
    site.write("app/p/yy.bat", "@echo %1>C:\\d.txt\r\n");
    assert_eq!(files(&plan(&site, &[])), ["c/yy.bat", "d.txt"]);
}

#[test]
fn many_instructions_take_time_in_proportion() {
    let site = site("", &["a.txt"]);
    let mut text = format!("FROM {BASE}\n");
    for number in 0..2000 {
        let _ = write!(text, "ENV V{number}=v\nLABEL l{number}=v\n");
    }
    for number in 0..100 {
        let _ = writeln!(text, "COPY a.txt C:/x/{number}.txt");
    }
    site.write("app/Dockerfile", text);
    let bases = format!("{}/mcr", site.host());
    for arguments in [
        &["build", "./app", "--output", "oci:layout"][..],
        &["build", "./app", "--dry-run"],
        &["convert", "app/Dockerfile"],
        &["lint", "app/Dockerfile"],
    ] {
        // A limit on its own time, which other programs do not use up.
        let mut command = site.limited("ulimit -t 15", arguments);
        if arguments[0] != "lint" {
            command.args(["--host-build", "17763.973", "--base-registry", &bases]);
        }
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_long_row_of_stages_is_built() {
    let site = site("", &["a.txt"]);
    let copied = |from: usize| format!("COPY --from=s{from} /a.txt /a.txt\n");
    let on_one_another = |number: usize| format!("FROM s{} AS s{number}\n", number - 1);
    let copying = |number: usize| format!("FROM {BASE} AS s{number}\n{}", copied(number - 1));
    let triggered = |number: usize| {
        let trigger = copied(number - 1);
        format!("FROM {BASE} AS t{number}\nONBUILD {trigger}FROM t{number} AS s{number}\n")
    };
    let shapes: [&dyn Fn(usize) -> String; 3] = [&on_one_another, &copying, &triggered];
    for shape in shapes {
        let stages: String = (1..2500).map(shape).collect();
        let text = format!("FROM {BASE} AS s0\nCOPY a.txt /a.txt\n{stages}");
        site.write("app/Dockerfile", text);
        assert_eq!(files(&plan(&site, &[])), ["a.txt"]);
    }
}

#[test]
fn the_base_of_a_stage_that_only_a_trigger_copies_from_is_read() {
    let site = site("", &["a.txt"]);
    let text = format!(
        "FROM mcr.microsoft.com/windows/nanoserver:ltsc2019 AS made\nCOPY a.txt /a.txt\nFROM {BASE} AS parent\n\
         ONBUILD COPY --from=made /a.txt /b.txt\nFROM parent\n"
    );
    site.write("app/Dockerfile", text);
    assert_eq!(files(&plan(&site, &[])), ["b.txt"]);
}
