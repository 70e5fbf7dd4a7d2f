use wincimg_registry::UnknownBase;

use super::super::tests::plan;

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
    let layer = plan(text).unwrap().own_layer(&UnknownBase).unwrap();
    let edits: Vec<String> = layer.registry.iter().map(ToString::to_string).collect();
    assert!(edits[0].starts_with("replace "), "{edits:?}");
    let environment = r#""Environment" = REG_MULTI_SZ ["A=1", "B=app"]"#;
    let mut ends = edits.iter();
    assert!(ends.any(|edit| edit.ends_with(environment)), "{edits:?}");
    let last = edits.last().unwrap();
    assert!(last.contains("ServiceSidType"), "{edits:?}");
    let plain = services("[[services]]\nname = 'a'\nprogram = '%ProgramFiles%\\a.exe'");
    assert!(plain.contains(r"runs %ProgramFiles%\a.exe as LocalSystem, auto"));
}

#[test]
fn two_services_may_depend_on_the_same_one() {
    let body = "[[services]]\nname = 'a'\nprogram = '/x'\ndepends_on = ['b', 'c']\n\
                [[services]]\nname = 'b'\nprogram = '/x'\ndepends_on = ['c']\n\
                [[services]]\nname = 'c'\nprogram = '/x'";
    assert!(plan(body).is_ok());
}
