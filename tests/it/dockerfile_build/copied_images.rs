//! Files that `COPY --from` takes out of other images.

use std::fs;

use super::{BASE, build, files, plan, site};
use crate::failure::Fails;
use crate::site::Site;

/// Pushes an image with files, `tools:1`, and returns the registry.
fn push_tools(site: &Site, more: &str) -> String {
    for file in ["one.txt", "d/two.txt", "d/e/three.dll"] {
        site.write(&format!("tools/{file}"), file);
    }
    let text = format!("FROM {BASE}\nCOPY one.txt /t/\nCOPY d /t/d/\n{more}");
    site.write("tools/Dockerfile", text);
    let mut command = site.push("./tools");
    command.args(["--host-build", "17763.973", "--tag", "1"]);
    command.assert().success();
    site.host()
}

#[test]
fn files_of_another_image_are_taken_out_of_its_layers() {
    let site = site("", &[]);
    let host = push_tools(&site, "COPY d/two.txt /t/one.txt\n");
    let copying = |instructions: &str| {
        let text = instructions.replace("TOOLS", &format!("{host}/tools:1"));
        site.write("app/Dockerfile", format!("FROM {BASE}\n{text}\n"));
    };
    copying(
        "COPY --from=TOOLS C:/T/One.txt /x/\nCOPY --from=TOOLS /t/d /y\nCOPY --from=TOOLS /t/*.txt /z/",
    );
    let expected = ["x/one.txt", "y/e/three.dll", "y/two.txt", "z/one.txt"];
    let planned = plan(&site, &[]);
    assert_eq!(files(&planned), expected);
    // The upper layer's file takes precedence.
    assert_eq!(planned["content"][0]["size"], "d/two.txt".len());
    let output = format!("oci:{}", site.path("image").display());
    build(&site, &["--output", &output]).assert().success();
    for (instructions, value) in [
        ("COPY --from=TOOLS /none /x/", "none\""),
        ("COPY --from=TOOLS / /x/", "\"/\""),
    ] {
        copying(instructions);
        build(&site, &["--dry-run"]).fails(
            2,
            "dockerfile/invalid",
            &[value, &format!("{host}/tools:1")],
        );
    }
}

#[test]
fn files_that_a_stage_has_from_its_base_are_taken_out_of_its_layers() {
    let site = site("", &[]);
    let host = push_tools(&site, "");
    for file in ["app/own.txt", "app/a-longer-two.txt"] {
        site.write(file, file);
    }
    let copying = |copies: &str| {
        let text = format!(
            "FROM {host}/tools:1 AS tools\nFROM tools AS more\nWORKDIR C:/t/d\nCOPY own.txt E/\n\
             COPY a-longer-two.txt two.txt\nFROM {BASE}\n{copies}\n"
        );
        site.write("app/Dockerfile", text);
    };
    for (copies, expected) in [
        (
            "COPY --from=tools C:/T/One.txt /x/",
            &[("x/one.txt", "one.txt")][..],
        ),
        // Both in one folder; the stage's file takes precedence.
        (
            "COPY --from=more \"C:\\\\t\\\\d\" /y",
            &[
                ("y/e/own.txt", "app/own.txt"),
                ("y/e/three.dll", "d/e/three.dll"),
                ("y/two.txt", "app/a-longer-two.txt"),
            ],
        ),
        (
            "COPY --from=more /t/*.txt /t/d/e/*.dll /z/",
            &[("z/one.txt", "one.txt"), ("z/three.dll", "d/e/three.dll")],
        ),
        // The base is not read for files that only the stage has.
        (
            "COPY --from=more /t/d/e/own.txt /x/",
            &[("x/own.txt", "app/own.txt")],
        ),
    ] {
        copying(copies);
        let planned = plan(&site, &[]);
        let content = planned["content"].as_array().unwrap().iter();
        let mut found: Vec<(String, u64)> = files(&planned)
            .iter()
            .map(|path| path.to_lowercase())
            .zip(content.map(|file| file["size"].as_u64().unwrap()))
            .collect();
        found.sort();
        let expected = expected.iter();
        let expected: Vec<(String, u64)> = expected
            .map(|(path, text)| ((*path).to_owned(), text.len() as u64))
            .collect();
        assert_eq!(found, expected, "{copies}");
        let output = format!("oci:{}", site.path("image").display());
        build(&site, &["--output", &output]).assert().success();
        fs::remove_dir_all(site.path("image")).unwrap();
    }
    for (copies, values) in [
        (
            "COPY --from=more /t/none.txt /x/",
            ["\"t/none.txt\"", "\"more\""],
        ),
        ("COPY --from=tools C:/none /x/", ["\"none\"", "\"tools\""]),
        (
            "COPY --from=tools /t/*.none /x/",
            ["\"t/*.none\"", "\"tools\""],
        ),
        ("COPY --from=more / /x/", ["\"/\"", "\"more\""]),
    ] {
        copying(copies);
        let failure = build(&site, &["--dry-run"])
            .fails(2, "dockerfile/invalid", &values)
            .names(&["app/Dockerfile:7"])
            .on_line(7);
        assert!(failure.stderr.contains(copies), "{failure:#?}");
    }
}
