//! Archives of real tools, unpacked into images by `ADD`, `RUN` and recipes: the result is that of
//! the tools themselves, and refused entries are reported by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use sha2::{Digest, Sha256};
use wincimg_layer::{LayerReader, Limits, TarEntryKind};
use wincimg_testkit::component;
use wincimg_testkit::file_server::FileServer;
use wincimg_testkit::image_locations::files as files_below;
use wincimg_testkit::layout::layers_in;
use wincimg_testkit::noise;

use crate::failure::{Fails, Failure, line, says};
use crate::site::{Site, json_of, stderr};

const BASE: &str = "mcr.microsoft.com/windows/nanoserver:1809";

/// Creates archives; requires all of these tools.
const MAKE: &str = r#"
set -e
zip -qr zipped.zip tool-1.2 -x "*mig*"
zip -qr unsaid.zip tool-1.2
python3 -m zipfile -c python.zip tool-1.2
7zz a -bd seven.7z tool-1.2 > /dev/null
7zz a -bd -tzip -mm=Deflate64 seven.zip tool-1.2 > /dev/null
7zz a -bd -psecret locked.zip tool-1.2 > /dev/null
tar -cf plain.tar tool-1.2
gzip -k plain.tar
bsdtar --format=pax -cjf t.tar.bz2 tool-1.2
xz -k plain.tar
zstd -q plain.tar
head -c 3000 zipped.zip > cut.zip
head -c 3000 plain.tar.gz > cut.tar.gz
printf 'not at all' > none.zip
"#;

fn run(program: &str, arguments: &[&str], folder: &Path) {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{program}: {}", stderr(&output));
}

/// A folder `app` with archives.
fn site() -> Site {
    for tool in ["zip", "7zz", "bsdtar", "xz", "zstd", "python3"] {
        component(tool);
    }
    let site = Site::new();
    site.write("app/tool-1.2/bin/tool.exe", noise(300_000, 7));
    site.write("app/tool-1.2/doc/läs mig.txt", "läs mig\r\n".repeat(2000));
    site.write("app/tool-1.2/doc/none", "");
    site.write("app/tool-1.2/VERSION", "1.2\n");
    fs::create_dir_all(site.path("app/tool-1.2/plugins/none")).unwrap();
    run("sh", &["-c", MAKE], &site.path("app"));
    fs::remove_dir_all(site.path("app/tool-1.2")).unwrap();
    site
}

fn dockerfile(site: &Site, instructions: &str) {
    let text = format!("# escape=`\nFROM {BASE}\nUSER ContainerAdministrator\n{instructions}\n");
    site.write("app/Dockerfile", text);
}

fn build(site: &Site, image: &str, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = site.build(image);
    command.args(["--host-build", "17763.973"]).args(arguments);
    command
}

/// Content of the drive: files with their content, folders without, excluding the base.
fn drive(layout: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found: BTreeMap<String, Option<Vec<u8>>> = BTreeMap::new();
    for layer in layers_in(layout) {
        let blob = fs::File::open(layer).unwrap();
        let mut reader = LayerReader::new(blob, Limits::default()).unwrap();
        while let Some(entry) = reader.next_entry().unwrap() {
            let Some(path) = entry.path.strip_prefix("Files/") else {
                continue;
            };
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            if let Some(gone) = name.strip_prefix(".wh.") {
                let gone = format!("{folder}/{gone}")
                    .trim_start_matches('/')
                    .to_owned();
                let below = format!("{gone}/");
                found.retain(|known, _| *known != gone && !known.starts_with(&below));
                continue;
            }
            let is_below = folder.is_empty() || found.get(folder) == Some(&None);
            assert!(is_below, "{path} comes before its folder");
            let is_file = entry.kind == TarEntryKind::File;
            let content = is_file.then(|| reader.content().unwrap());
            found.insert(path.to_owned(), content);
        }
    }
    found.remove("License.txt");
    found
}

/// The result of the instructions.
fn built(site: &Site, instructions: &str) -> BTreeMap<String, Option<Vec<u8>>> {
    dockerfile(site, instructions);
    built_from(site, "./app")
}

fn built_from(site: &Site, image: &str) -> BTreeMap<String, Option<Vec<u8>>> {
    let layout = site.path("layout");
    let _ = fs::remove_dir_all(&layout);
    build(site, image, &["--output", "oci:layout"])
        .assert()
        .success();
    drive(&layout)
}

/// The content of a local folder, as expected below a folder of the image.
fn expected(folder: &Path, at: &str) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    let name = |path: &Path| format!("{at}/{}", path.to_str().unwrap());
    for (path, content) in files_below(folder) {
        all.insert(name(&path), Some(content));
    }
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                all.insert(name(entry.strip_prefix(folder).unwrap()), None);
                open.push(entry);
            }
        }
    }
    all.insert(at.to_owned(), None);
    all
}

#[test]
fn what_is_unpacked_is_what_the_tools_unpack() {
    let site = site();
    let app = site.path("app");
    let shell = "SHELL [\"pwsh\", \"-Command\"]\n";
    // The instructions, the equivalent tool here, and the path of the result in the image.
    for (instructions, tool, inside) in [
        (
            format!(
                "{shell}COPY zipped.zip C:\\tools.zip\n\
                 RUN Expand-Archive -Path C:\\tools.zip -DestinationPath C:\\tools; `\n\
                     Move-Item C:\\tools\\tool-1.2 C:\\x; `\n\
                     Remove-Item C:\\tools, C:\\tools.zip -Recurse -Force"
            ),
            "python3 -m zipfile -e zipped.zip out; mv out/tool-1.2/* out; rmdir out/tool-1.2",
            "x",
        ),
        (
            format!(
                "{shell}COPY python.zip C:/in/t.zip\n\
                 RUN Add-Type -AssemblyName System.IO.Compression.FileSystem; `\n\
                     [System.IO.Compression.ZipFile]::ExtractToDirectory('C:\\in\\t.zip', 'C:\\x'); `\n\
                     if (Test-Path C:\\x\\tool-1.2\\VERSION) {{ Remove-Item C:\\in -Recurse }}"
            ),
            "python3 -m zipfile -e python.zip out",
            "x",
        ),
        (
            "WORKDIR C:/x\nCOPY plain.tar.gz C:/\n\
             RUN tar -xf C:\\plain.tar.gz --strip-components=1 && del C:\\plain.tar.gz"
                .to_owned(),
            "bsdtar -xf plain.tar.gz -C out --strip-components 1",
            "x",
        ),
        (
            "COPY zipped.zip C:/\n\
             RUN mkdir x && tar xf zipped.zip -C x tool-1.2/doc && del zipped.zip"
                .to_owned(),
            "bsdtar -xf zipped.zip -C out tool-1.2/doc",
            "x",
        ),
        (
            "COPY seven.7z C:/\nCOPY none.zip C:/z/7z.exe\n\
             RUN C:\\z\\7z.exe x seven.7z -oC:\\x -y && del seven.7z"
                .to_owned(),
            "7zz x -bd seven.7z -oout > /dev/null",
            "x",
        ),
        (
            "COPY seven.zip none.zip C:/z/\nRUN ren C:\\z\\none.zip 7z.exe\n\
             RUN C:\\z\\7z x C:\\z\\seven.zip -oC:\\x -y && rd /s /q C:\\z"
                .to_owned(),
            "7zz x -bd seven.zip -oout > /dev/null",
            "x",
        ),
        (
            "ADD plain.tar /x/".to_owned(),
            "bsdtar -xf plain.tar -C out",
            "x",
        ),
        (
            "ADD plain.tar.xz /x/".to_owned(),
            "bsdtar -xf plain.tar.xz -C out",
            "x",
        ),
        (
            "ADD t.tar.bz2 /x".to_owned(),
            "bsdtar -xf t.tar.bz2 -C out",
            "x",
        ),
        (
            "ADD plain.tar.zst /x/".to_owned(),
            "bsdtar -xf plain.tar.zst -C out",
            "x",
        ),
    ] {
        let out = app.join("out");
        let _ = fs::remove_dir_all(&out);
        fs::create_dir(&out).unwrap();
        run("sh", &["-c", &format!("set -e; {tool}")], &app);
        let expected = expected(&out, inside);
        assert!(expected.len() > 3);
        fs::remove_dir_all(&out).unwrap();
        let mut found = built(&site, &instructions);
        found.retain(|path, _| path == inside || path.starts_with(&format!("{inside}/")));
        assert!(found == expected, "{instructions}: {:?}", found.keys());
    }
}

#[test]
fn later_commands_see_what_was_unpacked() {
    let site = site();
    // In another stage, and an archive in an archive.
    run("zip", &["-q", "outer.zip", "zipped.zip"], &site.path("app"));
    let found = built(
        &site,
        "FROM mcr.microsoft.com/windows/nanoserver:1809 AS made\n\
         USER ContainerAdministrator\n\
         COPY outer.zip C:/\nRUN tar -xf C:\\outer.zip && tar -xf zipped.zip\n\
         FROM mcr.microsoft.com/windows/nanoserver:1809\n\
         USER ContainerAdministrator\n\
         COPY --from=made C:/tool-1.2/doc C:/doc\n\
         COPY --from=made C:/zipped.zip C:/again.zip\n\
         SHELL [\"pwsh\", \"-Command\"]\n\
         RUN Expand-Archive C:\\again.zip C:\\a; `\n\
             $v = (Get-Content C:\\a\\tool-1.2\\VERSION); Set-Content -Path C:\\is.txt -Value ('is ' + $v); `\n\
             if (Test-Path C:\\a\\tool-1.2\\bin\\tool.exe) { Copy-Item C:\\a\\tool-1.2\\bin\\tool.exe C:\\bin.exe }; `\n\
             Remove-Item -Recurse C:\\a; Remove-Item C:\\again.zip",
    );
    let paths: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(paths, ["bin.exe", "doc", "doc/none", "is.txt"]);
    assert_eq!(found["is.txt"].as_deref(), Some(&b"is 1.2\r\n"[..]));
    assert_eq!(found["bin.exe"].as_ref().unwrap().len(), 300_000);
}

/// The error of a build.
fn refused(site: &Site, instructions: &str) -> Failure {
    dockerfile(site, instructions);
    let requests = site.requests();
    let output = build(site, "./app", &["--push", "--registry", &site.host()])
        .args(["--tag", "1", "--format", "json"])
        .output()
        .unwrap();
    let failure = Failure::of_dockerfile(&output);
    let requests = site.requests_since(requests);
    let is_sent = |request: &&String| request.starts_with("PUT") || request.starts_with("POST");
    assert_eq!(requests.iter().find(is_sent), None);
    failure
}

#[test]
fn what_may_not_be_unpacked_is_reported_with_its_line_and_name() {
    let site = site();
    let evil = "import zipfile\n\
        for name, member in [('slip', '../evil.txt'), ('device', 'a/con.txt'), ('stream', 'a:b')]:\n\
        \x20   zipfile.ZipFile(name + '.zip', 'w').writestr(member, 'x')\n\
        z = zipfile.ZipFile('case.zip', 'w'); z.writestr('Read.me', '1'); z.writestr('READ.ME', '2')\n";
    run("python3", &["-c", evil], &site.path("app"));
    let expand = |archive: &str| {
        format!(
            "SHELL [\"pwsh\", \"-Command\"]\nCOPY {archive} C:/t.zip\n\
             RUN Expand-Archive C:\\t.zip C:\\x"
        )
    };
    for (instructions, code, values) in [
        (
            expand("locked.zip"),
            "dockerfile/refused",
            &["locked.zip", "\"tool-1.2/"][..],
        ),
        (expand("cut.zip"), "dockerfile/refused", &["cut.zip"]),
        (expand("none.zip"), "dockerfile/refused", &[r"C:\t.zip"]),
        (
            expand("plain.tar.gz"),
            "dockerfile/refused",
            &["tar.gz", "zip"],
        ),
        (
            expand("slip.zip"),
            "dockerfile/refused",
            &["slip.zip", "\"../evil.txt\""],
        ),
        (
            expand("device.zip"),
            "dockerfile/refused",
            &["device.zip", "\"a/con.txt\""],
        ),
        (expand("stream.zip"), "dockerfile/refused", &["\"a:b\""]),
        (
            expand("case.zip"),
            "dockerfile/refused",
            &["\"READ.ME\"", "\"Read.me\""],
        ),
        (
            format!("{}; Expand-Archive C:\\t.zip C:\\x", expand("zipped.zip")),
            "dockerfile/refused",
            &["-Force"],
        ),
        (
            "COPY plain.tar.xz C:/\nRUN tar -xf plain.tar.xz".to_owned(),
            "dockerfile/not-understood",
            &["tar.xz", "Windows Server 2025", "ADD"],
        ),
        (
            "COPY seven.7z C:/\nRUN tar -xf seven.7z".to_owned(),
            "dockerfile/not-understood",
            &["7z", "Windows Server 2025", "unpack = true"],
        ),
        (
            "COPY zipped.zip C:/\nRUN tar -xf zipped.zip tool-1.2/no".to_owned(),
            "dockerfile/refused",
            &["\"tool-1.2/no\""],
        ),
        (
            "COPY plain.tar.gz C:/\nCOPY none.zip C:/z/7z.exe\nRUN C:\\z\\7z x -y plain.tar.gz"
                .to_owned(),
            "dockerfile/not-understood",
            &["7-Zip"],
        ),
        (
            "ADD cut.tar.gz /x/".to_owned(),
            "dockerfile/invalid",
            &["cut.tar.gz"],
        ),
    ] {
        let failure = refused(&site, &instructions)
            .is(code, values)
            .names(&["Dockerfile:"]);
        assert!(
            !failure.hint.is_empty() || instructions.starts_with("ADD"),
            "{failure:#?}"
        );
    }
    // An intentional replacement is allowed.
    let again = format!(
        "{}; Expand-Archive C:\\t.zip C:\\x -Force",
        expand("zipped.zip")
    );
    assert!(built(&site, &again).contains_key("x/tool-1.2/VERSION"));
}

/// Writes a recipe with these keys of a file, next to the archives.
fn recipe(site: &Site, keys: &str) {
    let text = format!("name = \"app\"\nbase = \"nanoserver\"\n[[files]]\n{keys}\n");
    site.write("app/recipe.toml", text);
}

#[test]
fn recipes_unpack_what_they_name() {
    let site = site();
    let _ = fs::remove_file(site.path("app/Dockerfile"));
    let app = site.path("app");
    let out = app.join("out");
    fs::create_dir(&out).unwrap();
    run("bsdtar", &["-xf", "plain.tar", "-C", "out"], &app);
    let whole = expected(&out, "tools");
    let stripped = expected(&out.join("tool-1.2"), "tools");
    fs::remove_dir_all(&out).unwrap();
    for (keys, expected) in [
        ("from = \"plain.tar\"\nunpack = true", &whole),
        (
            "from = \"plain.tar.gz\"\nunpack = true\nstrip = 1",
            &stripped,
        ),
        (
            "from = \"plain.tar.xz\"\nunpack = \"tar\"\nstrip = 1",
            &stripped,
        ),
        ("from = \"t.tar.bz2\"\nunpack = \"tar\"", &whole),
        ("context = \"app/plain.tar.zst\"\nunpack = true", &whole),
        (
            "from = \"python.zip\"\nunpack = \"zip\"\nstrip = 1",
            &stripped,
        ),
        ("from = \"unsaid.zip\"\nunpack = true", &whole),
        ("from = \"seven.7z\"\nunpack = \"7z\"\nstrip = 1", &stripped),
    ] {
        recipe(&site, &format!("{keys}\nto = 'C:\\tools'"));
        let found = built_from(&site, "./app");
        assert!(found == *expected, "{keys}: {:?}", found.keys());
        // It is also unpacked if a Docker daemon copies it.
        let folder = site.path("rendered");
        let _ = fs::remove_dir_all(&folder);
        let mut render = site.with_bases(&["render", "./app", "--host-build", "17763.973"]);
        render.args(["--output", "rendered"]).assert().success();
        let context = files_below(&folder.join("files"));
        let is_file =
            |(path, content): (&String, &Option<Vec<u8>>)| Some((path.into(), content.clone()?));
        let files: Vec<_> = expected.iter().filter_map(is_file).collect();
        assert!(context == files, "{keys}");
    }
    // The plan shows the intended result.
    recipe(
        &site,
        "from = \"python.zip\"\nunpack = true\nstrip = 1\nto = 'C:\\tools'",
    );
    let plan = json_of(build(&site, "./app", &["--dry-run"]).arg("-q"));
    let plan = &plan["plans"][0];
    assert_eq!(plan["files"][0]["unpack"], json!({"strip": 1}));
    assert_eq!(plan["content"].as_array().unwrap().len(), 4);
    let shown = build(&site, "./app", &["--dry-run"]).prints();
    let unpacked = ["file ", r"C:\tools", "./app/python.zip"];
    says(&shown, &line(&unpacked));
}

#[test]
fn a_downloaded_archive_is_unpacked_once_it_is_here() {
    let site = site();
    let archive = fs::read(site.path("app/python.zip")).unwrap();
    let digest = hex::encode(Sha256::digest(&archive));
    let server = FileServer::with("/tools/python.zip", archive);
    let url = server.url("/tools/python.zip");
    recipe(
        &site,
        &format!(
            "url = \"{url}\"\nsha256 = \"{digest}\"\nunpack = \"zip\"\nstrip = 1\nto = 'C:\\tools'"
        ),
    );
    let plan = json_of(build(&site, "./app", &["--dry-run"]).arg("-q"));
    let content = &plan["plans"][0]["content"];
    assert_eq!(content[0]["path"], r"C:\tools\python.zip");
    build(&site, "./app", &["--output", "oci:layout"])
        .args(["--insecure-registry", &server.host()])
        .assert()
        .success();
    let found = drive(&site.path("layout"));
    assert_eq!(found["tools/bin/tool.exe"].as_ref().unwrap().len(), 300_000);
    assert!(!found.contains_key("tools/python.zip"));
}

#[test]
fn what_a_recipe_may_not_unpack_is_reported_in_its_place() {
    let site = site();
    for (keys, values) in [
        ("from = \"locked.zip\"\nunpack = true", &["locked.zip"][..]),
        (
            "from = \"plain.tar\"\nunpack = \"zip\"",
            &["plain.tar", "zip"],
        ),
        ("from = \"none.zip\"\nunpack = true", &["none.zip"]),
        (
            "from = \"python.zip\"\nunpack = true\nstrip = 9",
            &["strip = 9"],
        ),
        (
            "from = \"python.zip\"\nunpack = true\nstrip = -1",
            &["\"-1\""],
        ),
        (
            "from = \"python.zip\"\nunpack = \"rar\"",
            &["\"rar\"", "true, zip, tar or 7z"],
        ),
        (
            "from = \"python.zip\"\nstrip = 1",
            &["strip", "unpack = true"],
        ),
        ("content = \"x\"\nunpack = true", &["from, context or url"]),
    ] {
        recipe(&site, &format!("{keys}\nto = 'C:\\tools'"));
        build(&site, "./app", &["--dry-run"])
            .fails(2, "recipe/invalid", values)
            .names(&["recipe.toml:"]);
    }
}
