//! What instructions make of the image.

use serde_json::{Value, json};
use wincimg_testkit::layout::{blob_in, json_in};
use wincimg_testkit::test_bases::{gzip, tar_of};

use super::{BASE, build, files, plan, site};
use crate::failure::{Fails, note, says};
use crate::site::json_of;

#[test]
fn the_image_says_what_the_instructions_say() {
    let site = site(
        "ARG VERSION=1.2.3\nENV A=${VERSION%.*} B=\"x y\" a=lower\nENV OLD the rest\n\
         LABEL team=\"web servers\" version=$VERSION\nEXPOSE 8080:80 53/udp 8000-8001\n\
         VOLUME C:/data\nUSER ContainerUser\nSTOPSIGNAL SIGTERM\n\
         HEALTHCHECK --interval=1m30s --retries=3 CMD [\"check.exe\"]\n\
         SHELL [\"powershell\", \"-Command\"]\nENTRYPOINT  run  --fast\nCMD [\"serve\"]\n\
         MAINTAINER somebody\nONBUILD RUN later\nWORKDIR C:/app/in",
        &[],
    );
    let image = site.path("image");
    let output = format!("oci:{}", image.display());
    let report = json_of(&mut build(&site, &["--output", &output]));
    assert_eq!(report["images"][0]["layers"].as_array().unwrap().len(), 2);
    let manifest = json_in(&blob_in(&image, &report["images"][0]["digest"]));
    let config = json_in(&blob_in(&image, &manifest["config"]["digest"]));
    let container = &config["config"];
    let set = |name: &str| {
        let lines = container["Env"].as_array().unwrap().iter();
        let found = lines.filter_map(|line| line.as_str()?.strip_prefix(&format!("{name}=")));
        found.map(str::to_owned).collect::<Vec<_>>()
    };
    // Windows' variables are case-insensitive: the last assignment counts.
    assert_eq!((set("A"), set("a")), (vec![], vec!["lower".to_owned()]));
    assert_eq!(
        (set("B"), set("OLD")),
        (vec!["x y".to_owned()], vec!["the rest".to_owned()])
    );
    assert_eq!(container["Labels"]["version"], "1.2.3");
    let ports: Vec<&String> = container["ExposedPorts"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    for port in ["80/tcp", "53/udp", "8000/tcp", "8001/tcp"] {
        assert!(ports.iter().any(|known| *known == port), "{ports:?}");
    }
    assert_eq!(container["Volumes"], json!({ "C:/data": {} }));
    assert_eq!(container["User"], "ContainerUser");
    assert_eq!(container["StopSignal"], "SIGTERM");
    assert_eq!(
        container["Healthcheck"],
        json!({ "Test": ["CMD", "check.exe"], "Interval": 90_000_000_000_u64, "Retries": 3 })
    );
    // One complete command line, as written by Docker's builder for Windows; CMD follows it.
    assert_eq!(
        container["Entrypoint"],
        json!(["powershell -Command run  --fast"])
    );
    assert_eq!(container["Cmd"], json!(["serve"]));
    assert_eq!(container.get("ArgsEscaped"), None);
    assert_eq!(container["OnBuild"], json!(["RUN later"]));
    assert_eq!(container["WorkingDir"], r"C:\app\in");
    assert_eq!(config["author"], "somebody");
    let history = config["history"].as_array().unwrap();
    let last = history.last().unwrap();
    assert_eq!(last["created_by"], r"WORKDIR C:\app\in");
    assert_eq!(last.get("empty_layer"), None);
    assert_eq!(history[history.len() - 2]["empty_layer"], true);
}

#[test]
fn an_entry_point_takes_the_bases_arguments_away_and_a_shell_line_is_ready() {
    let site = site("CMD echo %PATH% \"a b\"", &[]);
    let container = plan(&site, &[])["instructions"]["container"].take();
    assert_eq!(container["Cmd"], json!(["cmd /S /C echo %PATH% \"a b\""]));
    assert_eq!(container["ArgsEscaped"], true);
    site.write(
        "app/Dockerfile",
        format!("FROM {BASE} AS one\nCMD [\"one\"]\nFROM one\nENTRYPOINT [\"two\"]\n"),
    );
    let container = plan(&site, &[])["instructions"]["container"].take();
    assert_eq!(
        (container.get("Cmd"), &container["Entrypoint"]),
        (None, &json!(["two"]))
    );
}

#[test]
fn local_archives_are_unpacked_and_others_are_not() {
    let site = site(
        "ADD t.tar.gz /x/\nADD plain.gz z.zip /y/\nCOPY t.tar.gz /z/",
        &["z.zip"],
    );
    let archive = tar_of(&[("in/one.txt", "one"), ("./two.txt", "two!")]);
    site.write("app/t.tar.gz", gzip(&archive));
    site.write("app/plain.gz", gzip(b"no archive"));
    let expected = [
        "x/in/one.txt", "x/two.txt", "y/plain.gz", "y/z.zip", "z/t.tar.gz",
    ];
    assert_eq!(files(&plan(&site, &[])), expected);
    // They are written too.
    let output = format!("oci:{}", site.path("image").display());
    build(&site, &["--output", &output]).assert().success();
}

#[test]
fn what_lies_below_a_link_is_not_missing() {
    let site = site(
        "USER ContainerAdministrator\nRUN mkdir C:\\v18 && mklink /d C:\\nodejs C:\\v18\n\
         RUN C:\\nodejs\\node.exe --version",
        &[],
    );
    let notes = plan(&site, &[])["notes"].to_string();
    assert_contains!(notes, "--version is skipped");
}

#[test]
fn what_run_lines_do_is_in_their_layers() {
    let site = site(
        "USER ContainerAdministrator\nCOPY d /in/\nENV NAME=made\n\
         RUN mkdir C:\\app\\logs && move C:\\in\\b.txt C:\\app\\%NAME%.txt && rd /s /q C:\\in\n\
         WORKDIR C:/app\n\
         RUN echo hello>a.txt&& setx /M KIND small && reg add HKLM\\SOFTWARE\\Acme /v n /t REG_DWORD /d 7 /f\n\
         SHELL [\"pwsh\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n\
         RUN if (-not (Test-Path logs)) { throw 'no logs' }; \
         'two' > two.txt; Copy-Item a.txt ('C:\\{0}' -f $env:KIND); app --version",
        &["d/b.txt", "d/e/f.txt"],
    );
    let plan = plan(&site, &[]);
    let expected = ["app/a.txt", "app/made.txt", "app/two.txt", "small"];
    let mut found = files(&plan);
    found.sort();
    found.dedup();
    let files: Vec<&String> = found
        .iter()
        .filter(|path| !path.starts_with("in/"))
        .collect();
    assert_eq!(files, expected);
    let steps = plan["instructions"]["steps"].as_array().unwrap();
    let layers: Vec<&Value> = steps.iter().map(|step| &step["layer"]).collect();
    let registry: Vec<&Value> = layers
        .iter()
        .filter_map(|layer| layer["registry"].as_array())
        .flatten()
        .collect();
    assert_eq!(registry[0]["name"], "KIND");
    assert_eq!(registry[1]["key"], "HKLM\\SOFTWARE\\Acme");
    let gone = layers
        .iter()
        .filter_map(|layer| layer["entries"].as_array())
        .flatten()
        .find(|entry| entry["content"] == "deleted");
    assert_eq!(gone.unwrap()["path"], "C:\\in");
    let notes = plan["notes"].to_string();
    assert_contains!(notes, "app --version");
}

#[test]
fn windows_powershell_on_nano_server_depends_on_the_base() {
    let site = site(
        "USER ContainerAdministrator\nRUN powershell mkdir C:\\x\n\
         RUN pwsh -Command mkdir C:\\y\nRUN mkdir C:\\z",
        &[],
    );
    let said = build(&site, &["--dry-run"]).tells(0);
    let missing = "Nano Server has no Windows PowerShell";
    says(&said, &note(&["Dockerfile:3", missing]));
    assert_eq!(said.matches(missing).count(), 1, "{said}");
}

#[test]
fn a_trigger_keeps_its_here_documents() {
    let trigger = "COPY <<EOF C:/x/\nhello\nEOF";
    let site = site(&format!("ONBUILD {trigger}"), &[]);
    let container = plan(&site, &[])["instructions"]["container"].take();
    assert_eq!(container["OnBuild"], json!([trigger]));
    site.write(
        "app/Dockerfile",
        format!("FROM {BASE} AS below\nONBUILD {trigger}\nFROM below\n"),
    );
    assert_eq!(files(&plan(&site, &[])), ["x/EOF"]);
}

#[test]
fn a_stage_has_the_arguments_of_the_one_that_it_is_based_on() {
    let site = site("", &[]);
    site.write(
        "app/Dockerfile",
        format!(
            "FROM {BASE} AS a\nARG Q=1\nARG R=1\nFROM a AS b\nARG Q\nARG R=2\nFROM b\n\
             ENV C=$Q$R\nUSER ContainerAdministrator\nRUN echo x>C:\\v%Q%.txt\n"
        ),
    );
    let plan = plan(&site, &[]);
    assert_contains!(plan["instructions"]["container"]["Env"].to_string(), "C=12");
    assert_eq!(files(&plan), ["v1.txt"]);
}

#[test]
fn names_of_arguments_have_no_case() {
    let site = site("", &["a.txt"]);
    site.write(
        "app/Dockerfile",
        "ARG Tag=1809\nFROM mcr.microsoft.com/windows/nanoserver:${TAG}\nARG App_Dir=app\nARG B=1 b=2\n\
         ENV C=$B$b D=${APP_DIR:-none}\nCOPY a.txt C:/$APP_DIR/\n",
    );
    let plan = plan(&site, &[]);
    assert_eq!(files(&plan), ["app/a.txt"]);
    let variables = plan["instructions"]["container"]["Env"].to_string();
    assert_contains!(variables, "C=12", "D=app");
}

#[test]
fn a_command_that_starts_nothing_is_noted() {
    for (instructions, line) in [
        ("ENTRYPOINT a.exe\nCMD [\"b c\"]", Some(3)),
        ("CMD [\"b c\"]\nENTRYPOINT a.exe", None),
        ("ENTRYPOINT a.exe\nCMD b", None),
        (r#"ENTRYPOINT "C:\pro g\x.exe" "a b""#, Some(2)),
        (r#"CMD "C:\pro g\x.exe" -a"#, Some(2)),
        (r#"CMD "C:\x.exe" -a"#, None),
        (r#"CMD ""C:\pro g\x.exe" "a b"""#, None),
        (r#"CMD "x.exe "a b"""#, None),
    ] {
        let notes = plan(&site(instructions, &[]), &[])["notes"].to_string();
        match line {
            Some(line) => assert_contains!(notes, &format!("Dockerfile:{line}: ")),
            None => assert!(!notes.contains("exec form"), "{instructions}: {notes}"),
        }
    }
}

#[test]
fn a_port_of_the_host_is_noted() {
    let site = site("EXPOSE 80\nEXPOSE 8080:80", &[]);
    let notes = plan(&site, &[])["notes"].to_string();
    assert_contains!(notes, "Dockerfile:3: EXPOSE ignores");
    assert!(!notes.contains("Dockerfile:2"), "{notes}");
}

#[test]
fn a_secret_argument_in_the_history_is_noted() {
    let site = site(
        "ARG DB_PASSWORD\nARG SECRET_NAME\nARG PUBLIC_KEY\nARG API_TOKEN=\nARG NPM_TOKEN\n",
        &[],
    );
    let values = [
        "DB_PASSWORD=Winter-2019",
        "SECRET_NAME=Winter-2019",
        "PUBLIC_KEY=0123456789abcdef",
        "API_TOKEN=my-token",
        "NPM_TOKEN=SEKRET99",
    ];
    let arguments: Vec<&str> = values.iter().flat_map(|it| ["--build-arg", *it]).collect();
    for engine in ["auto", "docker"] {
        let arguments = [&arguments[..], &["--engine", engine]].concat();
        let notes = plan(&site, &arguments)["notes"].to_string();
        let expected = "Dockerfile:2: everyone who has the image can read DB_PASSWORD";
        assert_contains!(notes, expected, "--stage");
        let token = "Dockerfile:6: everyone who has the image can read NPM_TOKEN";
        assert_contains!(notes, token);
        assert!(!notes.contains("Winter"), "{notes}");
        for line in 3..=5 {
            assert!(!notes.contains(&format!("Dockerfile:{line}")), "{notes}");
        }
    }
    let notes = plan(&site, &[])["notes"].to_string();
    assert!(!notes.contains("DB_PASSWORD"), "{notes}");
}
