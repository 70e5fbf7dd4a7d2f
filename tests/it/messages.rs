//! Messages for a wrong file or name: the line with its word marked, and the hint.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::failure::Fails;
use crate::site::{folder_of, wincimg};

/// The output of a refused command.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let refused = wincimg(folder, arguments)
        .env_remove("DOCKER_HOST")
        // Such names cause no request: the proxy does not exist.
        .env("HTTPS_PROXY", "http://127.0.0.1:9")
        .assert()
        .code(2)
        .stdout("");
    String::from_utf8(refused.get_output().stderr.clone()).unwrap()
}

/// The output of a command that fails in any way.
fn failed(folder: &Path, arguments: &[&str]) -> String {
    let failed = wincimg(folder, arguments)
        .env("HTTPS_PROXY", "http://127.0.0.1:9")
        .assert()
        .failure();
    String::from_utf8(failed.get_output().stderr.clone()).unwrap()
}

#[test]
fn an_error_in_a_file_shows_the_line_with_its_word_marked() {
    let folder = folder_of(&[
        ("bad.toml", "name = \"x\"\nbase = \"y\"\nfiels = 1\n"),
        ("flags.toml", "[check-compat]\nstrikt = true\n"),
        ("w.yaml", "kind: Pod\nmetadata:\n\tname: x\n"),
        ("list.yaml", "- a\n- b\n"),
        (
            "nodes.json",
            "{\"kind\": \"List\",\n \"items\": [{\"metadata\": {\"name\": 7}}]}",
        ),
        ("nodes.yaml", "kind: List\nitems: [\n"),
    ]);
    let check = ["check-compat", "--image-build", "17763.973"];
    for (arguments, shown) in [
        (
            &["build", "bad.toml", "--host-build", "17763.973"][..],
            "  3 | fiels = 1\n    | ^^^^^\n",
        ),
        (
            &[
                &check[..],
                &["--nodes", "nodes.json", "--config", "flags.toml"],
            ]
            .concat(),
            "  2 | strikt = true\n    | ^^^^^^\n",
        ),
        (
            &[&check[..], &["--nodes", "nodes.json"]].concat(),
            "  2 |  \"items\": [{\"metadata\": {\"name\": 7}}]}\n    |                                  ^\n",
        ),
        (
            &[&check[..], &["--nodes", "nodes.yaml"]].concat(),
            "  2 | items: [\n    |        ^\n",
        ),
        (
            &[
                "check-compat", "--workloads", "list.yaml", "--host-build", "17763.973",
            ],
            "  1 | - a\n    | ^\n",
        ),
        (
            &[
                "check-compat", "--workloads", "w.yaml", "--host-build", "17763.973",
            ],
            "  3 |     name: x\n    | ",
        ),
    ] {
        let printed = printed(folder.path(), arguments);
        assert!(printed.contains(shown), "{arguments:?}: {printed}");
        assert!(!printed.contains('\x1b'), "{printed}");
    }
}

#[test]
fn an_argument_that_is_not_utf8_is_refused_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    for (words, exit, code) in [
        (&["build"][..], 2, "usage"),
        (&["check-compat"], 2, "usage"),
        (&["image", "inspect"], 2, "usage"),
        (&["recipe", "list", "--config"], 3, "file/io"),
    ] {
        wincimg(folder.path(), words)
            .arg(OsStr::from_bytes(b"Docker\xff"))
            .fails(exit, code, &[]);
    }
}

#[test]
fn an_image_missing_on_docker_hub_gets_a_hint() {
    let folder = folder_of(&[
        ("app.tar", ""),
        ("image/oci-layout", "{}"),
        ("sources/Dockerfile", "FROM scratch\n"),
    ]);
    let build = ["build", "pause", "--host-build", "17763.973"];
    for (arguments, expected) in [
        (&["inspect", "app.tar"][..], "docker-archive:app.tar"),
        (&["inspect", "gone.tar"], "gone.tar"),
        (&["inspect", "image"], "oci:image"),
        (&["inspect", "sources"], "`wincimg build sources`"),
        (
            &["inspect", "nanoserver:ltsc2019"],
            "mcr.microsoft.com/windows/nanoserver:ltsc2019",
        ),
        (
            &["mirror", "nanoserver", "--to", "repo.lan"],
            "base:nanoserver",
        ),
        (&["mirror", "app.tar", "--to", "repo.lan"], "app.tar"),
        (&["inspect", "ocii:image"], " oci:image"),
        (
            &["inspect", "oci-archive:app.tar"],
            " docker-archive:app.tar?",
        ),
        (&["inspect", "ocidir://image"], " oci:image"),
        (&["inspect", "oci-layout://image"], " oci:image"),
        (&["inspect", "oci:image@sha256:12"], " oci:image:sha256:12"),
        (
            &["inspect", "dir:image"],
            "`skopeo copy dir:image oci:DIR:TAG`",
        ),
        (
            &["check-compat", "docker-archiv:app.tar"],
            "docker-archive:app.tar",
        ),
        (
            &[&build[..], &["--output", "oic:image"]].concat(),
            " oci:image",
        ),
        (
            &[&build[..], &["--registry", "http://repo.lan:8888"]].concat(),
            "--insecure-registry repo.lan:8888",
        ),
        (
            &[&build[..], &["--base-registry", "https://repo.lan/mcr"]].concat(),
            " repo.lan/mcr",
        ),
        (
            &[&build[..], &["--output", "new.tar"]].concat(),
            "docker-archive:new.tar",
        ),
    ] {
        let printed = printed(folder.path(), arguments);
        assert!(printed.contains(expected), "{arguments:?}: {printed}");
    }
}

#[test]
fn a_path_in_a_suggested_command_is_quoted_for_a_shell() {
    let folder = folder_of(&[
        ("a b/docker/Dockerfile", "FROM scratch\n"),
        (
            "a b/recipe/recipe.toml",
            "name = \"x\"\nbase = \"nanoserver\"\n",
        ),
        (
            "a b/empty/oci-layout",
            "{\"imageLayoutVersion\": \"1.0.0\"}",
        ),
        (
            "a b/empty/index.json",
            "{\"schemaVersion\": 2, \"manifests\": []}",
        ),
        ("a b/two/a.csproj", "<Project/>"),
        ("a b/two/b.csproj", "<Project/>"),
        ("a b/wincimg.toml", "insecure-registry = [\"repo.lan\"]\n"),
    ]);
    let hotfix = ["node", "hotfix", "script", "17763.1158", "--files"];
    for (arguments, expected) in [
        (
            &[&hotfix[..], &["a b/none"]].concat()[..],
            "wincimg node hotfix fetch KB4549949 --output 'a b/none'",
        ),
        (
            &["recipe", "render", "a b/docker"],
            "wincimg build 'a b/docker' --host-build",
        ),
        (
            &["lint", "a b/recipe/recipe.toml"],
            "wincimg build 'a b/recipe/recipe.toml' --dry-run",
        ),
        (
            &["image", "tag", "docker-archive:a b/x.tar", "1"],
            "wincimg copy 'docker-archive:a b/x.tar' oci:DIR:TAG",
        ),
        (
            &["image", "tag", "docker-daemon:a b", "1"],
            "`wincimg copy 'docker-daemon:a b' 'oci:./a b'`",
        ),
        (
            &["image", "inspect", "oci:a b/empty"],
            "wincimg build IMAGE --output 'oci:a b/empty'",
        ),
        (&["image", "inspect", "a b/empty"], "type 'oci:a b/empty'"),
        (
            &["image", "inspect", "docker-archive:a b/empty"],
            "type 'oci:a b/empty'",
        ),
        (
            &["image", "inspect", "a b/docker"],
            "`wincimg build 'a b/docker'`",
        ),
        (
            &["build", ".", "-f", "a b/recipe/recipe.toml"],
            "wincimg build 'a b/recipe/recipe.toml'",
        ),
        (
            &["recipe", "init", "--dotnet", "a b/two"],
            "--dotnet 'a b/two/a.csproj'",
        ),
    ] {
        let printed = failed(folder.path(), arguments);
        assert!(printed.contains(expected), "{arguments:?}: {printed}");
    }
    let below = folder.path().join("a b/docker");
    let printed = failed(&below, &["image", "inspect", "oci:none"]);
    assert_contains!(printed, "/a b/wincimg.toml' or WINCIMG_CONFIG");
}

#[test]
fn every_name_that_was_mistyped_is_guessed() {
    let folder = folder_of(&[
        (
            "mine.toml",
            "name = \"mine\"\nbase = \"nanoserver\"\n[variables]\nport = {}\n",
        ),
        ("key.toml", "name = \"x\"\nbase = \"y\"\nfiels = 1\n"),
        ("flag.toml", "[build]\ntga = \"x\"\n"),
        ("command.toml", "[biuld]\ntag = \"x\"\n"),
        (
            "shop/Dockerfile",
            "ARG VERSION\nFROM scratch AS compile\nFROM r.example/base:1 AS final\n",
        ),
        ("workloads.yaml", "kind: Pod\n"),
    ]);
    let build =
        |arguments: &[&'static str]| [&["build", "--host-build", "17763.973"], arguments].concat();
    let check = |arguments: &[&'static str]| {
        [&["check-compat", "--host-build", "17763.973"], arguments].concat()
    };
    for (arguments, expected) in [
        (vec!["bild"], "'build'"),
        (vec!["hotfix", "reslove"], "'resolve'"),
        (vec!["lint", "--explian", "x"], "'--explain'"),
        (vec!["images", "--format", "jsn"], "'json'"),
        (vec!["recipe", "show", "puase"], "\"pause\"?"),
        (build(&["puase"]), "\"pause\"?"),
        (build(&["shp"]), "\"shop\"?"),
        (build(&["mien.toml"]), "mine.toml?"),
        (build(&["shop", "-f", "shop/Dockerfle"]), "shop/Dockerfile?"),
        (build(&["mine.toml", "--set", "prot=1"]), "\"port\"?"),
        (build(&["key.toml"]), "`fiels`\n"),
        (build(&["pause", "--config", "flag.toml"]), "tag?"),
        (build(&["pause", "--config", "command.toml"]), "build?"),
        (build(&["shop", "--target", "compil"]), "\"compile\"?"),
        (build(&["shop", "--stage", "fianl=."]), "\"final\"?"),
        (build(&["shop", "--build-arg", "VERSOIN=1"]), "VERSION"),
        (
            check(&["--image-build", "17763.973", "--report", "htm:x"]),
            "html?",
        ),
        (check(&["--workloads", "workload.yaml"]), "workloads.yaml?"),
        (vec!["lint", "shop/Dockerfle"], "shop/Dockerfile?"),
    ] {
        let printed = failed(folder.path(), &arguments);
        assert!(printed.contains(expected), "{arguments:?}: {printed}");
    }
}

#[test]
fn what_is_typed_in_another_form_is_answered_with_the_form() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["image", "inspect", "a", "b"][..], "one image at a time"),
        (&["image", "inspect", "a", "--sbom", "spdx"], "--sbom=spdx"),
        (
            &["node", "script", "--pause", "repo.lan/pause:3"][..],
            "--tag",
        ),
        (&["fleet", "follow", "f.toml", "--listen", "x"][..], ":8080"),
        (
            &["login", "repo.lan", "-u", "bob", "-p", "secret"],
            "--password-stdin < FILE",
        ),
        (
            &["login", "repo.lan", "--password=secret"],
            "--password-stdin < FILE",
        ),
    ] {
        let refused = printed(folder.path(), arguments);
        assert_contains!(refused, expected);
    }
}

#[test]
fn a_flag_of_another_command_is_not_taken_for_a_slip() {
    let folder = tempfile::tempdir().unwrap();
    let refused = printed(
        folder.path(),
        &["check-compat", "--base-registry", "repo.lan"],
    );
    assert_contains!(refused, "unexpected argument '--base-registry'");
    assert!(!refused.contains("--insecure-registry"), "{refused}");
    let slip = printed(
        folder.path(),
        &["check-compat", "--insecure-registri", "repo.lan"],
    );
    assert_contains!(slip, "'--insecure-registry'");
}
