//! Lines at fault.

use predicates::Predicate as _;
use serde_json::json;

use super::{BASE, build, files, plan, refused, site};
use crate::failure::{Fails, note};
use crate::site::{Site, answer_of, json_of, stderr};

#[test]
fn a_command_is_reported_with_the_line_that_has_it() {
    for (instructions, line, code, values) in [
        (
            "RUN mkdir C:\\x \\\n # a word about it\n && mkdir C:\\y \\\n && start /wait setup.exe",
            5,
            "dockerfile/needs-windows",
            &["start: ", "\"setup.exe\""][..],
        ),
        (
            "SHELL [\"pwsh\", \"-Command\"]\nRUN <<EOF\nmkdir C:\\x\n\ndism /online\nEOF",
            6,
            "dockerfile/needs-windows",
            &["dism: "],
        ),
        ("RUN type <<EOF\nx\nEOF", 2, "dockerfile/invalid", &[]),
        (
            "USER ContainerUser\nRUN setx /M A b",
            3,
            "dockerfile/fails",
            &["setx: ", "ContainerUser"],
        ),
    ] {
        let place = format!("app/Dockerfile:{line}: ");
        refused(instructions, &[])
            .is(code, values)
            .names(&[&place])
            .on_line(line);
    }
}

#[test]
fn every_line_at_fault_is_in_the_error_and_windows_has_an_exit_code() {
    let error = |instructions: &str| {
        let site = site(instructions, &["a.txt"]);
        let (code, answer) = answer_of(&mut build(&site, &["--dry-run"]));
        (code, answer["error"].clone())
    };
    let (code, failure) = error(
        "RUN dism /online /enable-feature /featurename:A\nCOPY a.txt /a\nRUN choco install b",
    );
    assert_eq!((code, &failure["kind"]), (4, &json!("windows")));
    assert_eq!(failure["file"], "./app/Dockerfile");
    assert_eq!(failure["line"], 2);
    assert_eq!(failure["command"], failure["lines"][0]["command"]);
    let lines = failure["lines"].as_array().unwrap();
    let named: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["line"].as_u64(),
                line["code"].as_str(),
                line["command"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        named,
        [
            (
                Some(2),
                Some("dockerfile/needs-windows"),
                Some("RUN dism /online /enable-feature /featurename:A")
            ),
            (
                Some(4),
                Some("dockerfile/needs-windows"),
                Some("RUN choco install b")
            ),
        ]
    );
    assert!(
        lines
            .iter()
            .all(|line| line["hint"].is_string() && line["file"] == "./app/Dockerfile")
    );
    let (code, failure) = error("RUN setx /X A b");
    assert_eq!((code, &failure["kind"]), (4, &json!("windows")));
    // A line that fails there, too, does not depend on the machine.
    let (code, failure) = error("RUN type C:\\none.txt\nRUN setx /X A b");
    assert_eq!((code, &failure["kind"]), (2, &json!("usage")));
    assert_eq!(error("COPY none /x").1["lines"][0]["line"], 2);
    let site = site("RUN dism /online\nENV A=b\nRUN choco install b", &[]);
    let printed = stderr(&build(&site, &["--dry-run"]).output().unwrap());
    for line in ["error: ./app/Dockerfile:2: ", "  also ./app/Dockerfile:4: "] {
        let mut lines = printed.lines();
        assert!(lines.any(|it| it.starts_with(line)), "{line}: {printed}");
    }
}

#[test]
fn directives_are_those_that_docker_takes() {
    let site = site("", &["a.txt"]);
    for (directives, line) in [
        ("# escape=x", 1),
        ("# syntax=docker/dockerfile:1\n# escape=`\n# escape=`", 3),
        ("# syntax=docker/dockerfile:1\n# syntax=x", 2),
    ] {
        let text = format!("{directives}\nFROM {BASE}\nCOPY a.txt /x\n");
        site.write("app/Dockerfile", text);
        build(&site, &["--dry-run"])
            .fails(2, "dockerfile/invalid", &[&format!("Dockerfile:{line}")])
            .on_line(line);
    }
    site.write(
        "app/Dockerfile",
        format!("# a word\n# escape=x\nFROM {BASE}\nCOPY a.txt /x\n"),
    );
    plan(&site, &[]);
}

#[test]
fn a_dockerfile_may_have_any_name() {
    let site = Site::new();
    site.write("app/for-nodes", format!("FROM {BASE}\nCOPY a.txt /x/\n"));
    site.write("app/a.txt", "a");
    let mut build = site.build("./app/for-nodes");
    let plans = json_of(build.args(["--host-build", "17763.973", "--dry-run"]));
    assert_eq!(files(&plans["plans"][0]), ["x/a.txt"]);
}

#[test]
fn every_copy_at_fault_is_reported_with_its_line() {
    let cases = [
        ("COPY missing.txt /x/", &["\"missing.txt\"", "./app"][..]),
        ("COPY *.none /x/", &["\"*.none\"", "./app"]),
        ("COPY a.txt b.txt /x", &["\"/x\""]),
        ("COPY *.txt /x", &["\"*.txt\"", "2"]),
        ("COPY ../../etc/passwd /x/", &["etc/passwd"]),
        ("COPY d /f", &[r"C:\f"]),
        (
            "COPY b.txt /F/b",
            &[r"C:\F is a file that an earlier instruction made"],
        ),
        (
            "COPY a.txt C:/cur/",
            &[r"C:\cur is a link that an earlier instruction made: use its target"],
        ),
    ];
    let copies = cases.map(|(copy, _)| copy).join("\n");
    let instructions = format!(
        "COPY a.txt /f\nUSER ContainerAdministrator\n\
         RUN mkdir C:\\app1 && mklink /d C:\\cur C:\\app1\n{copies}"
    );
    let site = site(&instructions, &["a.txt", "b.txt", "d/c.txt"]);
    let (code, answer) = answer_of(&mut build(&site, &["--dry-run"]));
    assert_eq!(code, 2, "{answer:#}");
    let lines = answer["error"]["lines"].as_array().unwrap();
    assert_eq!(lines.len(), cases.len(), "{answer:#}");
    for (number, (found, (copy, values))) in (5..).zip(lines.iter().zip(cases)) {
        assert_eq!(found["line"], number);
        assert_eq!(found["command"], copy);
        assert_eq!(found["code"], "dockerfile/invalid");
        let message = found["message"].as_str().unwrap();
        for value in values {
            assert_contains!(message, value);
        }
    }
}

#[test]
fn what_is_wrong_is_reported_with_its_line() {
    for (instructions, line, values) in [
        (
            "WORKDIR C:\\\nCOPY a.txt C:/l/",
            2,
            &["the line continuation", "write C:/, ", "# escape=`"][..],
        ),
        (
            "RUN mkdir a; `\n  mkdir b",
            3,
            &["unknown instruction \"MKDIR\"", "# escape=`"],
        ),
        ("\nCOPPY a b", 3, &["\"COPPY\"", "COPY?"]),
        ("WORKDIR D:/x", 2, &["D:"]),
        (
            r"WORKDIR C:\Program Files\My App",
            2,
            &["\\ is the escape", "C:/Program Files/My App", "# escape=`"],
        ),
        (
            r#"VOLUME ["C:\\data"]"#,
            2,
            &["\"C:data\"", "write C:/data,"],
        ),
        ("USER 1000:1000", 2, &["\"1000:1000\""]),
        (
            r"USER NT AUTHORITY\NETWORK SERVICE",
            2,
            &["\"NT AUTHORITYNETWORK SERVICE\""],
        ),
        ("ENV A=${B", 2, &["${B"]),
        ("EXPOSE http", 2, &["\"http\""]),
        (
            "COPY a.txt /x\nWORKDIR /X",
            3,
            &[r"C:\X is a file that an earlier instruction made"],
        ),
        (
            "COPY a.txt /x\nWORKDIR /x/y",
            3,
            &[r"C:\x is a file that an earlier instruction made"],
        ),
        (
            "USER ContainerAdministrator\nRUN mkdir C:\\app1 && mklink /d C:\\cur C:\\app1\n\
             WORKDIR C:/cur/sub",
            4,
            &[r"C:\cur is a link that an earlier instruction made: use its target"],
        ),
        ("COPY --from=9 a.txt /x", 2, &["9"]),
        (
            "COPY --from=$TOOLS a.txt /x",
            2,
            &["does not expand variables", "FROM $TOOLS AS NAME"],
        ),
        ("FROM scratch", 2, &["scratch"]),
        ("FROM ${NONE}", 2, &["NONE"]),
        ("FROM --platform=linux/amd64 alpine", 2, &["linux/amd64"]),
    ] {
        let place = format!("app/Dockerfile:{line}: ");
        refused(instructions, &[])
            .is("dockerfile/invalid", values)
            .names(&[&place])
            .on_line(line);
    }
    refused("COPY --chown=ContainerUser a.txt C:/app/", &[])
        .advises(&[r#"RUN ["icacls","C:\\app","/grant","ContainerUser:(OI)(CI)M"]"#]);
    refused("COPY --chown=1000:1000 a.txt .", &[])
        .advises(&[r#"RUN ["icacls",".","/grant","ContainerUser:(OI)(CI)M"]"#]);
    refused("COPY --chown=Users [\"a.txt\", \"/my app/\"]", &[])
        .advises(&[r#"RUN ["icacls","C:\\my app","/grant","Users:(OI)(CI)M"]"#]);
    for target in ["/", "C:/", "C:\\\\", "$DIR/app"] {
        let failure = refused(&format!("COPY --chown=ContainerUser a.txt {target}"), &[]);
        failure.advises(&["remove the flag"]).hides("icacls");
    }
    refused("COPY --chmod=755 a.txt /x/", &[]).advises(&["remove the flag"]);
    refused("COPY app /x/", &[]).names(&["where its path begins"]);
    let marked = site("COPY d /d", &["d/.wh.x"]);
    let mut marked = build(&marked, &["--dry-run"]);
    marked
        .fails(2, "dockerfile/invalid", &[r"C:\d\.wh.x", ".dockerignore"])
        .on_line(2);
    let unlooked = site("RUN del C:\\Windows\\a.txt", &[]);
    let output = build(&unlooked, &["--dry-run"]).output().unwrap();
    let found = stderr(&output);
    let is_noted = note(&["app/Dockerfile:2: ", "del: "]).eval(&found);
    assert!(output.status.success() && is_noted, "{found}");
    let later = "COPY --from=later a /x\nFROM x AS later";
    refused(later, &["--target", "0"]).is("dockerfile/invalid", &["\"later\"", "3"]);
    for (arguments, code, value) in [
        (
            &["--target", "nobody"][..],
            "dockerfile/request",
            "\"nobody\"",
        ),
        (&["--stage", "0=d"], "dockerfile/request", "0"),
        (&["--build-arg", "=1"], "usage", "KEY=VALUE"),
        (&["--set", "a=b"], "usage/arguments", "--build-arg a=VALUE"),
    ] {
        refused("COPY a.txt /x", arguments).is(code, &[value]);
    }
    let site = site("COPY a.txt /x", &["a.txt"]);
    site.with_bases(&["render", "./app", "--host-build", "17763.973"])
        .fails(2, "usage", &["./app"]);
    site.with_bases(&["build", "pause", "--host-build", "17763.973"])
        .args(["--stage", "a=b"])
        .fails(2, "usage/arguments", &["--stage"]);
}

#[test]
fn a_base_whose_name_has_an_argument_without_a_value_says_what_sets_it() {
    let site = Site::new();
    site.write("app/Dockerfile", "ARG TAG\nFROM own/base:$TAG\n");
    build(&site, &["--dry-run"])
        .fails(2, "dockerfile/invalid", &["ARG TAG has no default"])
        .advises(&["--build-arg TAG="])
        .hides("above FROM");
    site.write("app/Dockerfile", "FROM own/base:$TAG\n");
    build(&site, &["--dry-run"])
        .fails(2, "dockerfile/invalid", &["no ARG"])
        .advises(&["--build-arg TAG=", "ARG TAG above FROM"]);
}
