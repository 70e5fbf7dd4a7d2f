use std::path::Path;

use wincimg_common::diagnose::Diagnose as _;
use wincimg_windows::version::WindowsVersion;

use crate::tests::{SHIM, base, hint, plan, plan_with, problem, recipe};
use crate::{PlanBase, Recipe, RecipeInputs};

#[test]
fn a_program_that_no_file_adds_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("app");
    std::fs::create_dir_all(app.join("bin")).unwrap();
    for file in ["server.exe", "bin/Tool.exe", "notes.txt"] {
        std::fs::write(app.join(file), "x").unwrap();
    }
    let set = |from: &str, program: &str| {
        let values = [("program", program), ("base", from)];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Recipe::find("app").unwrap().plan(
            base(),
            WindowsVersion::new(17763, 973),
            &RecipeInputs {
                values: &values.into_iter().collect(),
                context: folder.path(),
            },
        )
    };
    let error = set("nanoserver", "sevrer.exe").unwrap_err();
    let problem = "program \"sevrer.exe\" not found in ";
    assert!(error.to_string().contains(problem), "{error}");
    let excerpt = error.diagnosis().excerpt.unwrap().to_string();
    assert!(excerpt.contains("entrypoint = "), "{excerpt}");
    assert_eq!(hint(&error), "did you mean \"server.exe\"?");
    let error = set("nanoserver", r"bin\zzz.exe").unwrap_err();
    let programs = "the folder has these programs: Tool.exe";
    assert_eq!(hint(&error), programs);
    for (program, problem, help) in [
        (
            r"app\server.exe",
            r#"program "app\server.exe" not found in "#,
            "did you mean \"server.exe\"?",
        ),
        (
            "",
            r#"program "C:\app" is a folder"#,
            "the folder has these programs: server.exe",
        ),
        ("bin", r#"program "C:\app\bin" is a folder"#, programs),
    ] {
        let error = set("nanoserver", program).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
        assert_eq!(hint(&error), help);
    }
    for (program, problem) in [
        (".", r#"program "C:\app" is a folder"#),
        (r"..\x.exe", r#"invalid name ".." in "C:\app\..\x.exe": "#),
        (r"C:\x.exe", r#"invalid name "C:" in "C:\app\C:\x.exe": "#),
    ] {
        let error = set("nanoserver", program).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
    for program in [
        "server.exe", "SERVER.EXE", "server", r"bin\tool.exe", "bin/tool", r".\\server.exe",
    ] {
        set("nanoserver", program).unwrap();
    }
    set("repo.example/app-base:1", "sevrer.exe").unwrap();
}

#[test]
fn a_program_that_a_file_or_the_base_may_be_is_accepted() {
    let file = |to: &str| format!("[[files]]\ncontent = ''\nto = '{to}'\n");
    let archive = "[[files]]\nurl = 'https://a.lan/x.zip'\nunpack = true\nto = 'C:\\app'\n";
    for (program, files) in [
        (r"C:\app\x", file(r"c:\APP\X.exe")),
        (r"C:\app\x.exe", file(r"C:\app\x.exe.config")),
        (r"C:\app\x.exe", file(r"C:\app\bin\y.exe")),
        (r"C:\x.exe", file(r"C:\y.exe")),
        (r"C:\Windows\x.exe", file(r"C:\Windows\y.exe")),
        (
            r"C:\app\x.exe",
            format!("{}{archive}", file(r"C:\app\y.exe")),
        ),
    ] {
        plan(&format!("entrypoint = ['{program}']\n{files}")).unwrap();
    }
    let refused = plan(&format!(
        "entrypoint = ['C:\\app\\x.exe']\n{}",
        file(r"C:\app")
    ));
    assert_eq!(
        hint(&refused.unwrap_err()),
        r"for a folder, write to = 'C:\app\'"
    );
}

#[test]
fn the_shim_as_entry_point_requires_its_file() {
    let start = r"entrypoint = ['c:/wincimg/shim.exe', '--', 'C:\app.exe']";
    let refused = plan(start).unwrap_err();
    let printed = refused.to_string();
    assert!(
        printed.contains(r"no file adds the shim C:\wincimg\shim.exe"),
        "{printed}"
    );
    let entry = r#"add to the recipe: [[files]] embedded = "shim", to = 'C:\wincimg\shim.exe'"#;
    assert_eq!(hint(&refused), entry);
    for more in [SHIM, "\n[[run]]\nshell = 'dir'\n"] {
        plan(&format!("{start}{more}")).unwrap();
    }
    let on_own = format!("name = 'x'\nbase = 'repo.example/app-base:1'\n{start}\n");
    plan_with(&recipe(&on_own).unwrap(), &[]).unwrap();
}

#[test]
fn options_that_the_shim_refuses_are_refused() {
    let started = |words: &str, more: &str| {
        let entrypoint = format!(r"entrypoint = ['C:\wincimg\shim.exe'{words}]");
        plan(&format!("{entrypoint}\n{more}{SHIM}"))
    };
    for (words, more, problem) in [
        (
            r", 'C:\app\y.exe'",
            "",
            r"3:15: the shim will not start: unexpected 'C:\app\y.exe'; put -- before the program",
        ),
        (
            ", '--servce', 'a', '--', 'y.exe'",
            "",
            "unknown option --servce",
        ),
        ("", "cmd = ['y.exe']", "unexpected 'y.exe'"),
        (
            ", '--', 'y.exe'",
            "env = { SHIM_DRAIN = '10s' }",
            "SHIM_DRAIN takes seconds, not '10s'",
        ),
        (
            ", '--drain', 'x', '--', 'y.exe'",
            "[[files]]\nlayer = 'a'\ncontent = ''\nto = '/a'\n",
            "--drain takes seconds",
        ),
    ] {
        let error = started(words, more).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    // The program may be an argument of the container.
    let open = started(", '--drain', '5', '--'", "").unwrap();
    assert_eq!(open.shim_warning(), None);
    let own = PlanBase {
        container: open.container(),
        ..base()
    };
    let settings = RecipeInputs {
        values: &std::collections::BTreeMap::new(),
        context: Path::new("."),
    };
    let based = recipe("name = 'x'\nbase = 'nanoserver'\nenv = { SHIM_DRAIN = 'x' }\n").unwrap();
    let plan = based.plan(own, WindowsVersion::new(17763, 973), &settings);
    assert!(plan.unwrap().shim_warning().unwrap().contains("SHIM_DRAIN"));
}

#[test]
fn a_user_may_be_one_that_the_base_or_a_command_creates() {
    let refused = plan("user = 'bob'").unwrap_err();
    assert!(hint(&refused).contains("ContainerUser"));
    for body in [
        "user = 'containeradministrator'",
        r"user = 'NT AUTHORITY\SYSTEM'",
        r"user = 'CORP\bob'",
        "user = 'bob'\n[[run]]\nshell = 'net user bob /add'",
    ] {
        plan(body).unwrap();
    }
    let on_own = "name = 'x'\nbase = 'repo.example/app-base:1'\nuser = 'bob'\n";
    plan_with(&recipe(on_own).unwrap(), &[]).unwrap();
}

#[test]
fn the_shim_finds_the_shutdown_timeout_in_the_images_environment() {
    let env = |text: &str| plan(text).unwrap().env;
    let variable = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    let given = variable("WINCIMG_STOP_TIMEOUT", "90");
    assert_eq!(env("shutdown_timeout = 90"), given);
    let own = "shutdown_timeout = 90\nenv = { wincimg_stop_timeout = \"75\" }";
    assert_eq!(env(own), variable("wincimg_stop_timeout", "75"));
    assert_eq!(env(""), [].into());
}

#[test]
fn the_shim_finds_the_log_files_in_the_images_environment() {
    let shim = r"entrypoint = ['C:\wincimg\shim.exe', '--', 'a.exe']";
    let env = |text: &str| plan(&format!("{shim}\n{text}{SHIM}")).unwrap().env;
    let variable = |value: &str| [("SHIM_LOG".to_owned(), value.to_owned())].into();
    let both = r"logs = ['C:\a\*.log', 'C:\b\**\*.txt']";
    assert_eq!(env(both), variable(r"C:\a\*.log;C:\b\**\*.txt"));
    assert_eq!(env(r"logs = 'C:\a.log'"), variable(r"C:\a.log"));
    assert_eq!(env("logs = ''"), [].into());
    let own = format!("{both}\nenv = {{ SHIM_LOG = 'none' }}");
    assert_eq!(env(&own), variable("none"));
    assert!(problem("logs = ['a.log']").contains("invalid log file"));
    let without = format!("entrypoint = ['a.exe']\n{both}");
    let refused = plan(&without).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("logs requires the shim as entry point")
    );
    let added = r#"and add [[files]] embedded = "shim", to = 'C:\wincimg\shim.exe'"#;
    assert!(hint(&refused).ends_with(added), "{}", hint(&refused));
    let with_file = plan(&format!("{without}{SHIM}")).unwrap_err();
    assert_eq!(
        hint(&with_file),
        r"begin entrypoint with 'C:\wincimg\shim.exe'"
    );
}
