//! End-to-end tests of `wincimg recipe render`, whose Dockerfiles are also parsed by Docker itself.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use wincimg_testkit::dockerd::Dockerd;

use crate::failure::{Fails, line};
use crate::site::{Site, json_of};

/// `wincimg recipe render` for one host.
fn render(site: &Site, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = render_for_no_host(site, arguments);
    command.args(["--host-build", "17763.973"]);
    command
}

fn render_for_no_host(site: &Site, arguments: &[&str]) -> assert_cmd::Command {
    site.with_bases(&[&["render"], arguments].concat())
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_dockerfile_goes_to_stdout_and_is_pinned_to_the_hosts_base() {
    let site = Site::new();
    let output = render(&site, &["pause"]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("# escape=`\n"), "{text}");
    let from = format!(
        "FROM {}/mcr/windows/nanoserver:10.0.17763.973@sha256:",
        site.registry.host()
    );
    assert_contains!(text, &from);
    assert!(
        text.ends_with("ENTRYPOINT [\"C:\\\\wincimg\\\\shim.exe\", \"pause\"]\n"),
        "{text}"
    );
    assert!(names_in(site.folder.path()).is_empty());
    let again = render(&site, &["pause"]).output().unwrap();
    assert_eq!(text.into_bytes(), again.stdout);
}

#[test]
fn the_folder_has_everything_that_the_dockerfile_copies() {
    let site = Site::new();
    site.write("site/index.html", "<h1>Hello</h1>");
    site.write("site/images/a b [1].png", "x");
    std::os::unix::fs::symlink("index.html", site.path("site/start.html")).unwrap();
    render(
        &site,
        &["iis", "--set", "file_extensions=json", "--output", "out"],
    )
    .assert()
    .code(0)
    .stdout("out/Dockerfile\n");
    assert_eq!(names_in(&site.path("out")), ["Dockerfile", "files"]);
    let root = "out/files/inetpub/wwwroot";
    assert_eq!(site.text(&format!("{root}/index.html")), "<h1>Hello</h1>");
    assert_eq!(site.text(&format!("{root}/images/a b [1].png")), "x");
    let link = fs::read_link(site.path(&format!("{root}/start.html"))).unwrap();
    assert_eq!(link, Path::new("index.html"));
    assert_eq!(
        fs::read(site.path("out/files/wincimg/shim.exe")).unwrap(),
        include_bytes!("../../images/shim/shim.exe")
    );
    let dockerfile = site.text("out/Dockerfile");
    assert_contains!(
        dockerfile,
        "COPY [\"files/\", \"C:/\"]",
        "[fileExtension='.json',allowed='true']"
    );
    assert_eq!(
        names_in(site.folder.path()),
        ["out", "site"],
        "nothing else is left"
    );
}

#[test]
fn a_folder_is_replaced_only_when_asked_and_only_if_it_is_a_rendered_one() {
    let site = Site::new();
    let render = |more: &[&str]| render(&site, &[&["pause", "--output", "out"], more].concat());
    fs::create_dir(site.path("out")).unwrap();
    render(&[]).assert().code(0);
    site.write("out/registry-2.reg", "from before");
    render(&[])
        .fails(2, "output/not-empty", &["the folder out is"])
        .advises(&["--force"]);
    render(&["--force"]).assert().code(0);
    assert_eq!(
        names_in(&site.path("out")),
        ["Dockerfile", "files", "registry-1.reg"]
    );
    site.write("out/precious.txt", "mine");
    render(&["--force"]).fails(2, "output/not-empty", &["\"precious.txt\""]);
    assert_eq!(site.text("out/precious.txt"), "mine");
    assert_eq!(names_in(site.folder.path()), ["out"]);
}

#[test]
fn a_run_that_fails_leaves_the_folder_as_it_was() {
    let site = Site::new();
    site.write("file", "no folder");
    render(&site, &["pause", "--output", "file/out"]).fails(3, "output/write", &["file/out"]);
    site.write(
        "bad/recipe.toml",
        "name = \"bad\"\nbase = \"nanoserver\"\nenv = { A = \"two\\nlines\" }\n",
    );
    render(&site, &["bad", "--output", "out"]).fails(2, "recipe/unwritable", &["two\\nlines"]);
    assert_eq!(names_in(site.folder.path()), ["bad", "file"]);
}

#[test]
fn several_hosts_have_a_folder_each() {
    let site = Site::new();
    let hosts = [
        "pause", "--host-build", "20348.2402", "--host-build", "17763.973",
    ];
    render_for_no_host(&site, &hosts)
        .assert()
        .code(2)
        .stdout("")
        .stderr(line(&["hint: ", "--output DIR"]));
    render_for_no_host(&site, &[&hosts[..], &["--output", "out"]].concat())
        .assert()
        .code(0)
        .stdout("out/17763.973/Dockerfile\nout/20348.2402/Dockerfile\n");
    for host in ["17763.973", "20348.2402"] {
        let text = site.text(&format!("out/{host}/Dockerfile"));
        assert_contains!(text, &format!("nanoserver:10.0.{host}@"));
    }
}

#[test]
fn json_has_the_text_and_what_goes_with_it() {
    let site = Site::new();
    let found = json_of(&mut render(&site, &["pause"]));
    let image = &found["images"][0];
    assert_eq!(image["host_build"], "17763.973");
    assert_eq!(image["os_version"], "10.0.17763.973");
    assert!(
        image["dockerfile"]
            .as_str()
            .unwrap()
            .starts_with("# escape=`\n")
    );
    assert_eq!(image["output"], Value::Null);
    assert_eq!(
        image["context"],
        json!([
            {"path": "files", "kind": "folder", "source": null},
            {"path": "files/wincimg", "kind": "folder", "source": null},
            {"path": "files/wincimg/shim.exe", "kind": "file", "source": null},
            {"path": "files/Windows", "kind": "folder", "source": null},
            {"path": "files/Windows/System32", "kind": "folder", "source": null},
            {"path": "files/Windows/System32/wincat.exe", "kind": "file", "source": null},
            {"path": "registry-1.reg", "kind": "file", "source": null},
        ])
    );
}

#[test]
fn what_no_dockerfile_has_is_refused_with_a_hint() {
    let site = Site::new();
    fs::create_dir(site.path("app")).unwrap();
    for (keys, hint) in [
        (
            "volumes = ['C:/data']",
            "wincimg build IMAGE --engine direct",
        ),
        (
            "[[layers]]\nname = 'one'\nfolders = ['C:/a']",
            "wincimg build IMAGE --engine direct",
        ),
        (
            "volumes = ['C:/data']\n[[run]]\nshell = 'dir'",
            "remove these keys or [[run]]",
        ),
    ] {
        let recipe = format!("name = \"app\"\nbase = \"servercore\"\n{keys}\n");
        fs::write(site.path("app/recipe.toml"), recipe).unwrap();
        for arguments in [&["./app"][..], &["./app", "--format", "json"]] {
            let printed = render(&site, arguments).tells(2);
            assert_contains!(printed, hint);
        }
    }
}

#[test]
fn what_was_rendered_lints_clean() {
    let site = Site::new();
    site.write("site/index.html", "x");
    render(
        &site,
        &[
            "iis",
            "--output",
            "out",
            "--set",
            "mime_types=json=application/json",
        ],
    )
    .assert()
    .code(0);
    assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .current_dir(site.folder.path())
        .args(["lint", "out/Dockerfile", "--host-build", "17763.973"])
        .assert()
        .code(0)
        .stdout("");
}

/// Docker's builder for Linux parses the same syntax, so it is tried with everything but the
/// commands and the base.
#[test]
fn docker_reads_every_word_as_the_recipe_has_it() {
    let daemon = Dockerd::start();
    let site = Site::new();
    site.write(
        "recipe.toml",
        r#"
        name = "words"
        base = "nanoserver"
        entrypoint = ['C:\app\a b.exe', '--x="y"', '$HOME `n', 'C:\']
        cmd = []
        user = 'DOMAIN\the user'
        working_dir = 'C:\my $app `x'
        ports = [80, "53/udp"]
        [env]
        PLAIN = 'C:\bin'
        QUOTES = '''"a" 'b' ` \ $HOME $${HOME:-x} #'''
        SPACES = "  two  "
        EMPTY = ""
        "ProgramFiles(x86)" = 'C:\Program Files (x86)\'
        [labels]
        "com.example/it's \"so\" $x" = 'ends with `'
        [[files]]
        content = "hello"
        to = 'C:\notes [1]\$x.txt'
        "#,
    );
    render(&site, &[".", "--output", "out"]).assert().code(0);
    let dockerfile: Vec<String> = site
        .text("out/Dockerfile")
        .lines()
        .map(|line| match line.split_once(' ') {
            Some(("FROM", _)) => "FROM scratch".to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    site.write("out/Dockerfile", dockerfile.join("\n"));
    let context = site.path("out");
    daemon.must(&["build", "--tag", "words", context.to_str().unwrap()]);
    let found = daemon.must(&["image", "inspect", "words", "--format", "{{json .Config}}"]);
    let config: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(
        config["Entrypoint"],
        json!(["C:\\app\\a b.exe", "--x=\"y\"", "$HOME `n", "C:\\"])
    );
    assert_eq!(config["User"], "DOMAIN\\the user");
    // Linux has no drives.
    assert_eq!(config["WorkingDir"], "/C:\\my $app `x");
    assert_eq!(config["ExposedPorts"], json!({"53/udp": {}, "80/tcp": {}}));
    let mut env: Vec<&str> = config["Env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .filter(|line| !line.starts_with("PATH="))
        .collect();
    env.sort_unstable();
    assert_eq!(
        env,
        [
            "EMPTY=",
            "PLAIN=C:\\bin",
            "ProgramFiles(x86)=C:\\Program Files (x86)\\",
            "QUOTES=\"a\" 'b' ` \\ $HOME ${HOME:-x} #",
            "SPACES=  two  ",
        ]
    );
    assert_eq!(
        config["Labels"],
        json!({"com.example/it's \"so\" $x": "ends with `"})
    );
    let copied = site.path("copied");
    let container = daemon.must(&["create", "words"]);
    let source = format!("{container}:/C:/notes [1]/$x.txt");
    daemon.must(&["cp", &source, copied.to_str().unwrap()]);
    assert_eq!(site.text("copied"), "hello");
}
