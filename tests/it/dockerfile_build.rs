//! Dockerfiles that do not require Windows: files, configuration and errors of their builds.

mod bases;
mod copied_images;
mod errors;
mod hosts;
mod instructions;
mod outputs;
mod stages;

use serde_json::Value;

use crate::failure::{Fails, Failure};
use crate::site::{Site, json_of, stderr};

const BASE: &str = "mcr.microsoft.com/windows/nanoserver:1809";

/// A folder with a Dockerfile on a base, and files.
fn site(instructions: &str, files: &[&str]) -> Site {
    let site = Site::new();
    site.write("app/Dockerfile", format!("FROM {BASE}\n{instructions}\n"));
    for file in files {
        site.write(&format!("app/{file}"), *file);
    }
    site
}

fn build(site: &Site, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = site.build("./app");
    command.args(["--host-build", "17763.973"]).args(arguments);
    command
}

fn plan(site: &Site, arguments: &[&str]) -> Value {
    let mut plans = json_of(build(site, &["--dry-run"]).args(arguments));
    plans["plans"][0].take()
}

/// The files of the image, without the drive.
fn files(plan: &Value) -> Vec<String> {
    let content = plan["content"].as_array().unwrap().iter();
    let paths = content.map(|file| file["path"].as_str().unwrap());
    paths.map(|path| path[3..].replace('\\', "/")).collect()
}

/// The error of a build.
fn refused(instructions: &str, arguments: &[&str]) -> Failure {
    let site = site(instructions, &["a.txt", "b.txt", "d/c.txt", "d/e.log"]);
    let mut build = build(&site, &["--dry-run", "--format", "json"]);
    let output = build.args(arguments).output().unwrap();
    Failure::of_dockerfile(&output)
}

#[test]
fn files_go_where_docker_puts_them() {
    let cases = [
        ("COPY a.txt /1/", &["1/a.txt"][..]),
        ("COPY a.txt /2", &["2"]),
        ("COPY a.txt C:\\\\3\\\\y.txt", &["3/y.txt"]),
        // As in Docker's own hello-world.
        ("COPY a.txt C:", &["a.txt"]),
        ("WORKDIR /4\nCOPY a.txt .", &["4/a.txt"]),
        ("COPY a.txt ./in/", &["4/in/a.txt"]),
        ("WORKDIR v\nCOPY b.txt c.exe ../", &["4/b.txt", "4/c.exe"]),
        // An existing folder is a valid destination.
        ("WORKDIR /5\nCOPY a.txt /5", &["5/a.txt"]),
        ("COPY a.txt /6/\nCOPY b.txt /6", &["6/a.txt", "6/b.txt"]),
        (
            "COPY a.txt C:/Windows/System32",
            &["Windows/System32/a.txt"],
        ),
        // Copying a folder copies its content.
        ("COPY d /7", &["7/e.txt", "7/f/g.log"]),
        ("COPY d/ /8/", &["8/e.txt", "8/f/g.log"]),
        ("COPY *.txt /9/", &["9/a.txt", "9/b.txt"]),
        ("COPY a.txt a-lock.json* /18/", &["18/a.txt"]),
        ("COPY ?.exe /10/", &["10/c.exe"]),
        (
            "COPY [ab].txt c.exe /11/",
            &["11/a.txt", "11/b.txt", "11/c.exe"],
        ),
        ("COPY d/* /12/", &["12/e.txt", "12/g.log"]),
        ("COPY --exclude=**/*.log d /13/", &["13/e.txt"]),
        ("COPY --exclude=* d C:/", &[]),
        ("COPY --link D/E.TXT /14/", &["14/e.txt"]),
        ("COPY [\"a.txt\", \"/with space/\"]", &["with space/a.txt"]),
        ("ARG N=a\nCOPY ${N}.txt /$N/", &["a/a.txt"]),
        ("ADD a.txt /15/", &["15/a.txt"]),
        ("COPY a.txt /16/\nCOPY b.txt /16/a.txt", &["16/a.txt"]),
        (
            "COPY <<EOF <<'end' /17/\n1\nEOF\n2\nend",
            &["17/end", "17/EOF"],
        ),
    ];
    let instructions = cases.map(|(instructions, _)| instructions).join("\n");
    let all = ["a.txt", "b.txt", "c.exe", "d/e.txt", "d/f/g.log"];
    let mut found = files(&plan(&site(&instructions, &all), &[]));
    found.sort();
    let mut expected = cases.map(|(_, files)| files).concat();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_shim_that_will_not_start_the_program_is_warned_of() {
    let site = site(
        "COPY a.txt C:/wincimg/shim.exe\nENTRYPOINT [\"C:/wincimg/shim.exe\", \"C:/a.exe\"]",
        &["a.txt"],
    );
    let output = build(&site, &["--dry-run"]).output().unwrap();
    let printed = stderr(&output);
    assert!(
        printed.contains("will not start: unexpected 'C:/a.exe'"),
        "{printed}"
    );
}

#[test]
fn what_the_rules_leave_out_does_not_exist() {
    let site = site(
        "COPY . /x/",
        &["a.txt", "b.log", "keep/c.log", "keep/d.log"],
    );
    site.write(
        "app/.dockerignore",
        "Dockerfile\n.dockerignore\n**/*.log\n!keep/c.log\n",
    );
    assert_eq!(files(&plan(&site, &[])), ["x/a.txt", "x/keep/c.log"]);
    // The Dockerfile's own ignore file replaces the other.
    site.write("app/Dockerfile.dockerignore", "*\n!b.log\n");
    assert_eq!(files(&plan(&site, &[])), ["x/b.log"]);
    site.write("app/Dockerfile", format!("FROM {BASE}\nCOPY a.txt /x/\n"));
    build(&site, &["--dry-run"]).fails(
        2,
        "dockerfile/invalid",
        &["a.txt", "./app", "./app/Dockerfile.dockerignore"],
    );
}
