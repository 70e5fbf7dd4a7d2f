//! The recipes `iis` and `app`, built without Windows and read back.

use std::fs;
use std::path::Path;

use predicates::str::contains;
use serde_json::{Value, json};
use wincimg_testkit::layout::{Entry, config_in, entries_in, layers_in};

use crate::failure::Fails;
use crate::site::Site;

/// A folder with a site and an application.
fn site() -> Site {
    let site = Site::new();
    site.write("site/index.html", b"<h1>Hello</h1>");
    site.write("app/server.exe", b"MZ");
    site
}

/// `wincimg build IMAGE` to the folder `out`.
fn build(site: &Site, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = site.with_bases(&[&["build"], arguments].concat());
    command.args(["--host-build", "17763.973", "--output", "oci:out"]);
    command
}

fn built(site: &Site, arguments: &[&str]) -> Built {
    let _ = fs::remove_dir_all(site.path("out"));
    build(site, arguments).assert().code(0);
    Built::read(&site.path("out"))
}

/// The recipe's parts of an OCI layout with one image.
struct Built {
    container: Value,
    files: Vec<Entry>,
}

impl Built {
    fn read(layout: &Path) -> Self {
        Self {
            container: config_in(layout)["config"].clone(),
            files: entries_in(layers_in(layout).last().unwrap()),
        }
    }

    fn file(&self, name: &str) -> &[u8] {
        let found = self.files.iter().find(|file| file.path == name);
        &found
            .unwrap_or_else(|| panic!("no {name} in the layer"))
            .bytes
    }

    fn text(&self, name: &str) -> &str {
        std::str::from_utf8(self.file(name)).unwrap()
    }
}

const WEB_CONFIG: &str = "Files/inetpub/wwwroot/web.config";

#[test]
fn a_site_is_built_without_windows_on_either_base() {
    let site = site();
    for base in ["aspnet", "iis"] {
        let built = built(
            &site,
            &[
                "iis",
                "--set",
                &format!("base={base}"),
                "--set",
                "file_extensions=json, .WOFF2",
                "--set",
                "mime_types=json=application/json",
            ],
        );
        assert_eq!(
            built.container["Entrypoint"],
            json!([
                "C:\\wincimg\\shim.exe", "--service", "w3svc", "--", "C:\\ServiceMonitor.exe",
                "w3svc"
            ])
        );
        assert_eq!(built.container["ExposedPorts"], json!({"80/tcp": {}}));
        assert_eq!(
            built.file("Files/inetpub/wwwroot/index.html"),
            b"<h1>Hello</h1>"
        );
        assert_eq!(
            built.file("Files/wincimg/shim.exe"),
            include_bytes!("../../images/shim/shim.exe")
        );
        assert!(!built.file("Hives/System_Delta").is_empty());
        let web_config = built.text(WEB_CONFIG);
        assert_contains!(
            web_config,
            r#"<add fileExtension=".json" allowed="true" />"#,
            r#"<add fileExtension=".woff2" allowed="true" />"#,
            r#"<mimeMap fileExtension=".json" mimeType="application/json" />"#,
        );
    }
}

#[test]
fn the_sites_own_web_config_keeps_what_it_says() {
    let site = site();
    let own = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<configuration>\n  \
               <appSettings>\n    <add key=\"a\"   value='b' />\n  </appSettings>\n</configuration>";
    site.write("site/Web.config", own.as_bytes());
    let plain = built(&site, &["iis"]);
    assert_eq!(plain.text("Files/inetpub/wwwroot/Web.config"), own);
    let built = built(&site, &["iis", "--set", "file_extensions=json"]);
    let merged = built.text("Files/inetpub/wwwroot/Web.config");
    let (before, end) = own.split_at(own.len() - "</configuration>".len());
    assert!(
        merged.starts_with(before) && merged.ends_with(end),
        "{merged}"
    );
    assert!(merged.contains(".json"));
    assert!(
        built.files.iter().all(|file| file.path != WEB_CONFIG),
        "it would be there twice"
    );
}

#[test]
fn a_web_config_that_is_no_xml_is_refused_with_its_place() {
    let site = site();
    site.write(
        "site/web.config",
        b"<configuration>\n  <a>\n</configuration>",
    );
    build(&site, &["iis", "--set", "file_extensions=json"]).fails(
        2,
        "recipe/iis",
        &["site/web.config", "3"],
    );
    assert!(!site.path("out").exists());
}

#[test]
fn a_program_gets_the_shim_in_front_of_it() {
    let site = site();
    let built = built(
        &site,
        &[
            "app",
            "--set",
            "program=server.exe",
            "--set",
            r#"arguments=--port 80 --name "my app""#,
        ],
    );
    assert_eq!(
        built.container["Entrypoint"],
        json!(["C:\\wincimg\\shim.exe", "--", "C:\\app\\server.exe"])
    );
    assert_eq!(
        built.container["Cmd"],
        json!(["--port", "80", "--name", "my app"])
    );
    assert_eq!(built.container["WorkingDir"], "C:\\app");
    assert_eq!(built.file("Files/app/server.exe"), b"MZ");
    build(&site, &["app"])
        .assert()
        .code(2)
        .stderr(contains("--set program=VALUE"));
}
