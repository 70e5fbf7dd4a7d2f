//! `[[files]]` with `image`: files of another image in a recipe, pinned by its digest.

use std::fmt::Write as _;

use serde_json::Value;

use crate::failure::Fails;
use crate::site::{Site, json_of};

const HOSTS: [&str; 4] = ["--host-build", "17763.973", "--host-build", "20348.2402"];

/// A site with an image for two hosts, in which a file names its host.
fn site(text: &str) -> (Site, String) {
    let site = Site::new();
    let host = site.host();
    push_tools(&site, text);
    (site, format!("{host}/tools:1"))
}

fn push_tools(site: &Site, text: &str) {
    site.write("tools/d/Two.txt", text);
    site.write("tools/d/e/three.dll", "three");
    let recipe = "name = \"tools\"\nbase = \"nanoserver\"\n\
         [[files]]\ncontent = \"for ${host_build}\"\nto = 'C:\\t\\One.txt'\n\
         [[files]]\nfrom = \"d\"\nto = 'C:\\t\\d'\n";
    site.write("tools/recipe.toml", recipe);
    site.build("./tools")
        .args(HOSTS)
        .args(["--registry", &site.host(), "--tag", "1"])
        .args(["--push", "--replace"])
        .assert()
        .success();
}

/// A recipe with files of an image, each in a layer of its own.
fn recipe(site: &Site, image: &str, files: &[(&str, &str)]) {
    let mut text = "name = \"app\"\nbase = \"nanoserver\"\n".to_owned();
    for (from, to) in files {
        write!(
            text,
            "[[files]]\nlayer = '{to}'\nimage = '{image}'\nfrom = '{from}'\nto = '{to}'\n"
        )
        .unwrap();
    }
    site.write("app/recipe.toml", text);
}

fn build(site: &Site, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = site.build("./app");
    command.args(["--tag", "1"]).args(arguments);
    command
}

/// Digests of the unpacked layers that a build adds, by image.
fn layers(site: &Site, arguments: &[&str]) -> Vec<Vec<String>> {
    let _ = std::fs::remove_dir_all(site.path("layout"));
    let built = json_of(build(site, &["--output", "oci:layout"]).args(arguments));
    let of_image = |image: &Value| {
        let layers = image["layers"].as_array().unwrap().iter();
        let own = layers.filter(|layer| layer["from"] == "recipe");
        own.map(|layer| layer["diff_id"].as_str().unwrap().to_owned())
            .collect()
    };
    let images = built["images"].as_array().unwrap();
    images.iter().map(of_image).collect()
}

#[test]
fn files_of_an_image_are_those_of_copy_from_and_its_digest_is_locked() {
    let (site, image) = site("two");
    let files = [
        (r"C:\T\one.txt", r"C:\x\"),
        ("/t/d", r"C:\y"),
        ("t/d/*.txt", r"C:\z\"),
        ("/t/d/two.txt", r"C:\w.txt"),
    ];
    recipe(&site, &image, &files);
    let hosts = HOSTS.as_slice();
    build(&site, hosts).fails(2, "download/not-pinned", &["./app/recipe.toml", &image]);
    let locked = layers(&site, &[hosts, &["--update-lock"]].concat());
    let lock = site.text("app/wincimg.lock");
    for build in [17763, 20348] {
        let entry = format!("[[image]]\nname = \"{image}\"\nbuild = {build}\nsha256 = ");
        assert_contains!(lock, &entry);
    }
    assert_eq!(locked, layers(&site, hosts));
    // The hosts have files of their own images, and share the others.
    assert_eq!(locked.len(), 2);
    assert_ne!(locked[0][0], locked[1][0]);
    assert_eq!(locked[0][1..], locked[1][1..]);
    // A Dockerfile makes the same layers.
    let copies: Vec<String> = files
        .map(|(from, to)| format!("COPY --from={image} {from} {to}\n").replace('\\', "/"))
        .into();
    let from = "FROM mcr.microsoft.com/windows/nanoserver:1809\n";
    site.write("copying/Dockerfile", from.to_owned() + &copies.concat());
    let _ = std::fs::rename(site.path("app"), site.path("kept"));
    let _ = std::fs::rename(site.path("copying"), site.path("app"));
    assert_eq!(layers(&site, hosts), locked);
    let _ = std::fs::rename(site.path("app"), site.path("copying"));
    let _ = std::fs::rename(site.path("kept"), site.path("app"));
    // The tag moves, and the build does not.
    push_tools(&site, "another two");
    assert_eq!(layers(&site, hosts), locked);
    assert_ne!(layers(&site, &[hosts, &["--update-lock"]].concat()), locked);
    let planned = json_of(build(&site, &["--dry-run"]).args(hosts));
    let steps = &planned["plans"][0]["instructions"]["steps"];
    let source = &steps[0]["layer"]["entries"][0]["content"]["file"]["image"];
    assert_eq!(source["image"], Value::from(image));
    let digest = source["digest"].as_str().unwrap();
    let hash = digest.strip_prefix("sha256:").unwrap();
    assert!(site.text("app/wincimg.lock").contains(hash), "{planned}");
    // A digest in the name is one, too.
    recipe(
        &site,
        &format!("{}@{digest}", source["image"].as_str().unwrap()),
        &files,
    );
    std::fs::remove_file(site.path("app/wincimg.lock")).unwrap();
    let output = build(
        &site,
        &["--host-build", "17763.973", "--output", "oci:pinned"],
    )
    .output()
    .unwrap();
    let printed = crate::site::stderr(&output);
    assert!(
        output.status.success() && !printed.contains("no digest pins"),
        "{printed}"
    );
}

#[test]
fn a_layout_beside_the_recipe_is_pinned_too() {
    let site = Site::new();
    let make = |text: &str| {
        let _ = std::fs::remove_dir_all(site.path("app/tools"));
        site.write("made/recipe.toml", format!(
            "name = \"tools\"\nbase = \"nanoserver\"\n[[files]]\ncontent = \"{text}\"\nto = 'C:\\t.txt'\n"
        ));
        site.build("./made")
            .args(["--host-build", "17763.973", "--output", "oci:app/tools"])
            .assert()
            .success();
    };
    make("one");
    recipe(&site, "oci:tools", &[("/t.txt", r"C:\app\")]);
    let host = ["--host-build", "17763.973"];
    let locked = layers(&site, &[&host[..], &["--update-lock"]].concat());
    assert_eq!(layers(&site, &host), locked);
    make("two");
    build(&site, &host).fails(3, "download/changed", &["oci:tools", "wincimg.lock"]);
    assert_ne!(
        layers(&site, &[&host[..], &["--update-lock"]].concat()),
        locked
    );
}

#[test]
fn what_no_image_can_have_is_refused() {
    let (site, image) = site("two");
    let host = ["--host-build", "17763.973", "--update-lock"];
    for (from, value) in [("/none.txt", "none.txt"), ("/", "whole drive")] {
        recipe(&site, &image, &[(from, r"C:\x\")]);
        build(&site, &host).fails(2, "recipe/image", &[value, &image]);
    }
    recipe(&site, "oci:../tools", &[("/t.txt", r"C:\x\")]);
    build(&site, &host).fails(2, "recipe/invalid", &["../tools"]);
    for keys in [
        "",
        "from = 'a'\ncontent = 'b'\n",
        "from = 'a'\nunpack = true\n",
    ] {
        let file = format!("[[files]]\nimage = '{image}'\n{keys}to = 'C:\\x'\n");
        let text = format!("name = \"app\"\nbase = \"nanoserver\"\n{file}");
        site.write("app/recipe.toml", text);
        build(&site, &host).fails(2, "recipe/invalid", &["image requires from"]);
    }
    let text = format!(
        "name = \"app\"\nbase = \"hostprocess\"\n[[files]]\nimage = '{image}'\nfrom = '/t/d'\nto = 'C:\\x'\n"
    );
    site.write("app/recipe.toml", text);
    build(&site, &["--update-lock"]).fails(2, "recipe/image", &["requires a host"]);
}

#[test]
fn a_converted_copy_from_an_image_names_it() {
    let (site, image) = site("two");
    site.write(
        "app/Dockerfile",
        format!(
            "FROM mcr.microsoft.com/windows/nanoserver:1809\n\
             COPY --from={image} /t/one.txt C:/x/\nCOPY --from={image} /t/d C:/y\n"
        ),
    );
    let host = ["--host-build", "17763.973"];
    let made = layers(&site, &host);
    site.with_bases(&["convert", "./app", "--output", "app/recipe.toml"])
        .args(host)
        .assert()
        .success();
    let text = site.text("app/recipe.toml");
    let entry = format!("image = '{image}'\nfrom = 't/One.txt'\nto = 'C:\\x\\One.txt'\n");
    let entry = entry.replace('\'', "\"").replace('\\', r"\\");
    let written = text.replace('\'', "\"").replace('\\', r"\\");
    assert!(written.contains(&entry), "{text}");
    assert_eq!(
        layers(&site, &[&host[..], &["--update-lock"]].concat()),
        made
    );
}
