//! Windows paths.

use std::fs;

use wincimg_oci::store::Location;
use wincimg_testkit::wine::windows_path;

use super::exe::{Exe, below};
use super::{build_pause, run, succeed};
use crate::site::Site;

#[test]
fn images_are_written_wherever_a_path_of_windows_leads() {
    let exe = Exe::find();
    let site = Site::new();
    let here = site.folder.path();
    let drive = exe.wine.drive();
    let work = tempfile::tempdir_in(&drive).unwrap();
    let name = work.path().file_name().unwrap().to_str().unwrap();
    let mut digests = Vec::new();
    for (output, place) in [
        (format!(r"oci:C:\{name}\pause"), work.path().join("pause")),
        (
            format!("oci:C:/{name}/slashes"),
            work.path().join("slashes"),
        ),
        (
            format!(r"oci:C:\{name}\a space\ü"),
            work.path().join("a space/ü"),
        ),
        (format!(r"oci:\{name}\rooted"), work.path().join("rooted")),
        (r"oci:.\x".to_owned(), here.join("x")),
        (r"oci:below\x".to_owned(), here.join("below/x")),
        (format!("oci:{}", below(here, "z")), here.join("z")),
    ] {
        // A path without a drive refers to the current drive, which is Z: here.
        let folder = if output.starts_with(r"oci:\") {
            drive.as_path()
        } else {
            here
        };
        let printed = build_pause(&exe, &site, folder, &["--output", &output]);
        digests.push(printed["images"][0]["digest"].clone());
        assert!(
            place.join("index.json").is_file(),
            "{output}: {}",
            place.display()
        );
        // It can be read from there.
        let printed = succeed(exe.command(folder, &["inspect", &output]));
        assert!(printed.contains("10.0.17763.973"), "{output}: {printed}");
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn archives_recipes_and_dockerfiles_are_found_by_paths_of_windows() {
    let exe = Exe::find();
    let site = Site::new();
    let here = site.folder.path();
    site.write(
        "a web/recipe.toml",
        "name = \"web\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\app'\n",
    );
    site.write("a web/files/deep/er/x.txt", "x");
    let recipe = r".\a web\recipe.toml";
    let host = site.host();
    let base = format!("{host}/mcr");
    let mut command = exe.command(here, &["build", recipe, "--host-build", "17763.973"]);
    command.args(["--base-registry", &base, "--insecure-registry", &host]);
    command.args(["--output", r"docker-archive:.\out.tar"]);
    succeed(command);
    let archive = format!("docker-archive:{}", below(here, "out.tar"));
    let printed = succeed(exe.command(here, &["inspect", &archive]));
    assert_contains!(printed, "10.0.17763.973");

    site.write(
        r"sub/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nRUN dir c:\\\n",
    );
    let whole = below(here, r"sub\Dockerfile");
    for file in [r"sub\Dockerfile", r".\sub\Dockerfile", &whole] {
        let (code, printed, errors) = run(exe.command(here, &["lint", file]));
        assert_eq!(code, 1, "{errors}");
        assert_contains!(printed, &format!("{file}:2: error"));
    }
}

#[test]
fn the_colon_of_a_drive_begins_no_tag() {
    for (text, tag) in [
        (r"oci:C:\x", None),
        (r"oci:C:\x:1", Some("1")),
        (r"oci:\\?\C:\x", None),
        (r"oci:\\?\C:\x:1", Some("1")),
    ] {
        let location: Location = text.parse().unwrap();
        assert_eq!(location.tag(), tag, "{text}");
    }
}

/// A layout's digests make long names, in a folder that is already deep.
#[test]
fn long_paths_are_no_hindrance() {
    let exe = Exe::find();
    let site = Site::new();
    let deep = ["a-long-name-of-a-folder"; 9].join(r"\");
    let output = format!(r"oci:.\{deep}\x");
    build_pause(&exe, &site, site.folder.path(), &["--output", &output]);
    let place = site.path(&deep.replace('\\', "/"));
    assert!(place.join("x/index.json").is_file());
}

#[test]
fn what_does_not_exist_is_named_as_it_was_written() {
    let exe = Exe::find();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pause.tar"), "x").unwrap();
    let missing = format!(r"oci:{}\nowhere", windows_path(folder.path()));
    let (code, _, errors) = run(exe.command(folder.path(), &["inspect", &missing]));
    assert_eq!(code, 3, "{errors}");
    assert_contains!(errors, &missing["oci:".len()..]);
}
