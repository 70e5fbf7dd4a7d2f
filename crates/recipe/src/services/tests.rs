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
        .registry_edits(&UnknownBase)
        .unwrap()
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

#[test]
fn what_is_no_service_is_refused_in_its_place() {
    for (keys, printed) in [
        ("name = 'a/b'", "invalid name of a service \"a/b\""),
        ("name = ''", "invalid name of a service"),
        ("program = 'app.exe'", "app.exe"),
        ("program = 'C:\\a\"b'", "quote"),
        ("program = 'D:\\a.exe'", "D:"),
        ("arguments = [\"a\\nb\"]", "control characters"),
        (
            "start = 'boot'",
            "expected auto, delayed-auto, demand or disabled",
        ),
        (
            "account = 'CORP\\bob'",
            "have a password, which an image cannot store",
        ),
        (
            "environment = { 'A=B' = '1' }",
            "invalid name of a variable",
        ),
        ("environment = { A = \"1\\u0000\" }", "invalid text"),
        ("environment = { A = '1', a = '2' }", "the same variable"),
        ("on_failure = { actions = [] }", "on_failure has no actions"),
        (
            "on_failure = { actions = [{ action = 'reboot' }] }",
            "expected restart, run or nothing",
        ),
        (
            "on_failure = { actions = [{ action = 'run' }] }",
            "no command for the action run",
        ),
        (
            "on_failure = { actions = [{ action = 'restart', after = 99999 }] }",
            "expected 0 to 43200 seconds",
        ),
        (
            "on_failure = { command = 'x', actions = [{ action = 'restart' }] }",
            "never runs",
        ),
        (
            "depends_on = ['x']\n[[services]]\nname = 'X'\nprogram = '/x'\nstart = 'disabled'",
            "cannot start: x is disabled",
        ),
        (
            "depends_on = ['B']\n[[services]]\nname = 'b'\nprogram = '/x'\ndepends_on = ['c']\n[[services]]\nname = 'C'\nprogram = '/x'\ndepends_on = ['A']",
            "a depends on itself",
        ),
        ("depends_on = ['A']", "a depends on itself"),
        (
            "[[services]]\nname = 'A'\nprogram = '/x'",
            "two services have the name A",
        ),
    ] {
        let given = |key: &str| keys.starts_with(key);
        let name = if given("name") { "" } else { "name = 'a'\n" };
        let program = if given("program") {
            ""
        } else {
            "program = '/a.exe'\n"
        };
        let problem = problem(&format!("[[services]]\n{name}{program}{keys}\n"));
        assert!(problem.contains(printed), "{keys}: {problem}");
    }
    let own = "[[services]]\nname = 'a'\nprogram = '/x'\ndepends_on = ['b', 'c']\n[[services]]\nname = 'b'\nprogram = '/x'\ndepends_on = ['c']\n[[services]]\nname = 'c'\nprogram = '/x'";
    assert!(plan(own).is_ok());
}
