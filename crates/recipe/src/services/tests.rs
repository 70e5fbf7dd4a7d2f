use wincimg_registry::UnknownBase;

use super::super::tests::{plan, problem};

fn services(text: &str) -> String {
    plan(text).unwrap().to_string()
}

#[test]
fn a_service_is_a_line_of_the_plan_and_comes_before_the_registry_key() {
    let text = r#"
[[services]]
name = "Worker"
program = 'C:/app/a worker.exe'
arguments = ["--in", "a b"]
start = "demand"
account = 'NT SERVICE\Worker'
depends_on = ["RpcSs"]
environment = { B = "${name}", A = "1" }
on_failure = { actions = [{ action = "restart", after = 5 }, { action = "nothing" }], also_on_error = true }

[[registry]]
key = 'HKLM\SYSTEM\CurrentControlSet\Services\Worker'
values = { ServiceSidType = 1 }
"#;
    let line =
        r#"service     Worker runs "C:\app\a worker.exe" --in "a b" as NT SERVICE\Worker, demand"#;
    assert!(services(text).contains(line), "{}", services(text));
    let edits: Vec<String> = plan(text)
        .unwrap()
        .own_layer(&UnknownBase)
        .unwrap()
        .registry
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(edits[0].starts_with("replace "), "{edits:?}");
    let environment = r#""Environment" = REG_MULTI_SZ ["A=1", "B=app"]"#;
    assert!(
        edits.iter().any(|edit| edit.ends_with(environment)),
        "{edits:?}"
    );
    assert!(
        edits.last().unwrap().contains("ServiceSidType"),
        "{edits:?}"
    );
    assert!(
        services("[[services]]\nname = 'a'\nprogram = '%ProgramFiles%\\a.exe'")
            .contains(r"runs %ProgramFiles%\a.exe as LocalSystem, auto")
    );
}

/// Keys of a service, and the error with its place.
const REFUSED: &[(&str, &str)] = &[
    (
        "name = 'a/b'",
        r#"5:8: invalid name of a service "a/b": expected 1 to 255 characters without / and \, not beginning with +"#,
    ),
    (
        "name = ''",
        r#"5:8: invalid name of a service "": expected 1 to 255 characters without / and \, not beginning with +"#,
    ),
    (
        "program = 'app.exe'",
        r#"5:11: invalid path "app.exe": expected an absolute path in the image, C:\folder\file"#,
    ),
    (
        r#"program = 'C:\a"b'"#,
        "5:11: the program's path cannot contain a quote",
    ),
    (
        r"program = 'D:\a.exe'",
        r#"5:11: "D:\\a.exe" is not on C:, the only drive of an image"#,
    ),
    (
        r#"arguments = ["a\nb"]"#,
        "6:14: a command line cannot contain control characters",
    ),
    (
        "start = 'boot'",
        r#"6:9: invalid start "boot": expected auto, delayed-auto, demand or disabled"#,
    ),
    (
        r"account = 'CORP\bob'",
        r#"6:11: invalid account "CORP\\bob": expected LocalSystem, LocalService, NetworkService or NT SERVICE\NAME: others have a password, which an image cannot store"#,
    ),
    (
        "environment = { 'A=B' = '1' }",
        r#"6:25: invalid name of a variable: "A=B""#,
    ),
    (
        r#"environment = { A = "1\u0000" }"#,
        r#"6:21: invalid text "A=1\0": expected a non-empty line"#,
    ),
    (
        "environment = { A = '1', a = '2' }",
        "6:30: A and a are the same variable on Windows",
    ),
    (
        "on_failure = { actions = [] }",
        "4:8: on_failure has no actions",
    ),
    (
        "on_failure = { actions = [{ action = 'reboot' }] }",
        r#"6:38: invalid action "reboot": expected restart, run or nothing"#,
    ),
    (
        "on_failure = { actions = [{ action = 'run' }] }",
        "6:38: on_failure has no command for the action run",
    ),
    (
        "on_failure = { actions = [{ action = 'restart', after = 99999 }] }",
        r#"6:57: invalid time "99999": expected 0 to 43200 seconds"#,
    ),
    (
        "on_failure = { command = 'x', actions = [{ action = 'restart' }] }",
        "6:26: no action is run, so the command never runs",
    ),
    (
        "depends_on = ['x']\n[[services]]\nname = 'X'\nprogram = '/x'\nstart = 'disabled'",
        "6:15: a cannot start: x is disabled",
    ),
    (
        "depends_on = ['B']\n[[services]]\nname = 'b'\nprogram = '/x'\ndepends_on = ['c']\n[[services]]\nname = 'C'\nprogram = '/x'\ndepends_on = ['A']",
        "6:15: a depends on itself, so it never starts",
    ),
    (
        "depends_on = ['A']",
        "6:15: a depends on itself, so it never starts",
    ),
    (
        "depends_on = ['y', 'A']",
        "6:20: a depends on itself, so it never starts",
    ),
    (
        "[[services]]\nname = 'A'\nprogram = '/x'",
        "7:8: two services have the name A",
    ),
    (
        "depends_on = 'A'",
        r#"6:14: invalid type: string "A", expected a sequence"#,
    ),
    (
        "start = 1.5",
        "6:9: invalid type: floating point `1.5`, expected a string, a whole number, true or false",
    ),
    (
        "display_name = true\ndescription = ''",
        r#"7:15: invalid text "": expected a non-empty line"#,
    ),
    (
        "on_failure = 1",
        r#"6:14: invalid type: integer `1`, expected a table, such as { actions = [{ action = "restart", after = 5 }] }"#,
    ),
    (
        "on_failure = { actions = [1] }",
        r#"6:27: invalid type: integer `1`, expected a table, such as { action = "restart", after = 5 }"#,
    ),
    (
        "on_failure = { actions = [{ action = 'nothing' }], also_on_error = 'yes' }",
        "6:68: provided string was not `true` or `false`",
    ),
    (
        "on_failure = { actions = [{ action = 'nothing' }], reset_after = -1 }",
        r#"6:66: invalid time "-1": expected 0 to 4294967295 seconds"#,
    ),
    (
        "environment = 'A=1'",
        r#"6:15: invalid type: string "A=1", expected a map"#,
    ),
    (
        "environment = { A = 1.5 }",
        "6:21: invalid type: floating point `1.5`, expected a string, a whole number, true or false",
    ),
    (
        "path = 1",
        "6:1: unknown field `path`, expected one of `name`, `display_name`, `description`, `program`, `arguments`, `start`, `account`, `depends_on`, `environment`, `on_failure`",
    ),
    ("on_failure = {}", "6:14: missing field `actions`"),
    (
        "[services.on_failure]\nactions = [{ action = 'restart' }]\ncommand = 'x'",
        "8:11: no action is run, so the command never runs",
    ),
];

#[test]
fn what_is_no_service_is_refused_in_its_place() {
    for (keys, printed) in REFUSED {
        let given = |key: &str| keys.starts_with(key);
        let name = if given("name") { "" } else { "name = 'a'\n" };
        let program = if given("program") {
            ""
        } else {
            "program = '/a.exe'\n"
        };
        let problem = problem(&format!("[[services]]\n{name}{program}{keys}\n"));
        assert_eq!(problem, format!("recipe.toml:{printed}"), "{keys}");
    }
    for (text, printed) in [
        (
            "services = 1",
            "3:12: invalid type: integer `1`, expected a sequence",
        ),
        (
            "services = [1]",
            r#"3:13: invalid type: integer `1`, expected a table, such as { name = "Worker", program = 'C:\app\worker.exe' }"#,
        ),
        ("[[services]]\nname = 'a'", "3:1: missing field `program`"),
        (
            "[[services]]\nname = 'a'\nprogram = '/x'\nenvironment = { Path = '%PATH%;/x' }",
            "6:24: PATH of a service cannot contain %PATH%: list all folders",
        ),
    ] {
        assert_eq!(problem(text), format!("recipe.toml:{printed}"), "{text}");
    }
    let own = "[[services]]\nname = 'a'\nprogram = '/x'\ndepends_on = ['b', 'c']\n[[services]]\nname = 'b'\nprogram = '/x'\ndepends_on = ['c']\n[[services]]\nname = 'c'\nprogram = '/x'";
    assert!(plan(own).is_ok());
}
