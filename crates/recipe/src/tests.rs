use std::path::Path;

use wincimg_common::diagnose::{Diagnose, Problem};
use wincimg_images::recipes;
use wincimg_registry::Root;
use wincimg_windows::version::WindowsVersion;

use super::*;

pub(super) fn recipe(text: &str) -> Result<Recipe, Problem> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    Recipe::from_text("recipe.toml", text.to_owned(), &folder)
}

pub(super) fn base() -> PlanBase {
    PlanBase {
        name: "mcr.microsoft.com/windows/nanoserver:10.0.17763.973".to_owned(),
        digest: format!("sha256:{}", "a".repeat(64)),
        os_version: Some(WindowsVersion::new(17763, 973)),
        user: Some("ContainerUser".to_owned()),
        ..PlanBase::default()
    }
}

pub(super) fn plan_with(recipe: &Recipe, values: &[(&str, &str)]) -> Result<Plan, Problem> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let settings = RecipeInputs {
        values: &values.iter().map(owned).collect(),
        context: Path::new(env!("CARGO_MANIFEST_DIR")),
    };
    recipe.plan(base(), WindowsVersion::new(17763, 973), &settings)
}

/// The shim's file.
pub(super) const SHIM: &str = "\n[[files]]\nembedded = 'shim'\nto = 'C:\\wincimg\\shim.exe'\n";

pub(super) fn plan(body: &str) -> Result<Plan, Problem> {
    let recipe = recipe(&format!("name = \"app\"\nbase = \"nanoserver\"\n{body}"))?;
    plan_with(&recipe, &[])
}

pub(super) fn problem(body: &str) -> String {
    plan(body).unwrap_err().to_string()
}

#[test]
fn what_containers_do_not_have_is_a_warning() {
    let of_key = |set: &str| {
        let key = format!(r"HKLM\SYSTEM\{set}\Services\x");
        let body = format!("[[registry]]\nkey = '{key}'\nvalues = {{ a = 1 }}");
        plan(&body).unwrap().control_set_warning()
    };
    for set in [
        "CurrentControlSet", "controlset001", "ControlSet", "ControlSet0022",
    ] {
        assert_eq!(of_key(set), None, "{set}");
    }
    let warning = of_key("controlset002").unwrap();
    assert!(warning.contains("controlset002 ") && warning.contains("CurrentControlSet"));
    let of_user = |user: &str, is_windows: bool| {
        let mut plan = plan(&format!("user = '{user}'")).unwrap();
        plan.base.os_version = plan.base.os_version.filter(|_| is_windows);
        plan.user_warning()
    };
    assert_eq!(of_user("ContainerUser", true), None);
    assert_eq!(of_user(r"NT AUTHORITY\SYSTEM", false), None);
    let warning = of_user("containeruser", false).unwrap();
    assert!(warning.contains("containeruser") && warning.contains("runAsUserName"));
}

#[test]
fn what_is_refused_is_named_with_its_place() {
    for case in include_str!("refused.txt").split("\n### ").skip(1) {
        let (expected, body) = case.split_once('\n').unwrap();
        let found = problem(body);
        let found = found.strip_prefix("recipe.toml:").unwrap_or(&found);
        let is_expected = match expected.split_once('…') {
            None => found == expected,
            Some((start, rest)) => {
                found.starts_with(start) && rest.split('…').all(|part| found.contains(part))
            }
        };
        assert!(is_expected, "{body}\nfound: {found}\nexpected: {expected}");
    }
}

#[test]
fn every_recipe_that_ships_is_found_by_its_name() {
    for shipped in recipes() {
        let recipe = Recipe::find(shipped.name).unwrap();
        assert_eq!(recipe.name(), shipped.name);
        assert!(!recipe.description().is_empty());
    }
}

#[test]
fn the_pause_plan_says_everything_about_its_image() {
    let plan = plan_with(&Recipe::find("pause").unwrap(), &[]).unwrap();
    insta::assert_snapshot!(plan.to_string());
    insta::assert_json_snapshot!(plan);
}

#[test]
fn equal_inputs_make_equal_plans() {
    let pause = Recipe::find("pause").unwrap();
    let plan = plan_with(&pause, &[]).unwrap();
    let same = plan_with(&pause, &[("shutdown_timeout", "30")]).unwrap();
    assert_eq!(plan, same);
    let other = plan_with(&pause, &[("shutdown_timeout", "31")]).unwrap();
    assert_ne!(plan, other);
    assert_eq!(other.shutdown_timeout, Some(31));
}

pub(super) fn hint(error: &Problem) -> String {
    error.diagnosis().hint.unwrap()
}

#[test]
fn variables_have_types_defaults_and_places() {
    let text = "name = \"x\"\nbase = \"servercore\"\nports = [\"${port}\"]\n\
                [variables.port]\ntype = \"integer\"\ndescription = \"where it listens\"\n";
    let needs_port = recipe(text).unwrap();
    let error = plan_with(&needs_port, &[]).unwrap_err();
    let problem = "the recipe \"x\" requires a value for \"port\" (where it listens)";
    assert_eq!(error.to_string(), problem);
    assert_eq!(hint(&error), "add --set port=VALUE");
    let plan = plan_with(&needs_port, &[("port", "8080")]).unwrap();
    assert_eq!(plan.ports, ["8080/tcp"]);
    let error = plan_with(&needs_port, &[("port", "http")]).unwrap_err();
    let problem = "invalid value \"http\" for the variable \"port\": expected integer";
    assert!(error.to_string().contains(problem), "{error}");
    let error = plan_with(&needs_port, &[("prt", "1")]).unwrap_err();
    assert_eq!(hint(&error), "did you mean \"port\"?");
    let error = plan_with(&needs_port, &[("region", "eu")]).unwrap_err();
    assert_eq!(hint(&error), "its variables are: port");
    let error = recipe(&format!("{text}default = \"http\"\n")).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("recipe.toml:7:11: "), "{error}");
}

#[test]
fn an_unknown_recipe_suggests_the_nearest_name() {
    let error = Recipe::find("puase").unwrap_err();
    assert!(error.diagnosis().hint.unwrap().contains("\"pause\""));
    let unreadable = Recipe::find("./nowhere").unwrap_err().diagnosis();
    assert_eq!(unreadable.code, "recipe/unreadable");
}

#[test]
fn files_come_from_the_recipes_folder_the_context_or_the_recipe_itself() {
    let plan = plan(
        "[[files]]\nfrom = \"lib.rs\"\nto = 'C:\\app\\'\n\
         [[files]]\ncontext = \"src\"\nto = 'C:\\site'\n\
         [[files]]\ncontent = \"hello ${base.os_version}\"\nto = \"/hello.txt\"\n",
    )
    .unwrap();
    let targets = plan.files.iter().map(|file| file.path.to_string());
    let targets: Vec<String> = targets.collect();
    assert_eq!(targets, [r"C:\app\lib.rs", r"C:\site", r"C:\hello.txt"]);
    let text = FileSource::Text("hello 10.0.17763.973".into());
    assert_eq!(plan.files[2].source(), Some(&text));
}

#[test]
fn a_pattern_is_not_a_file() {
    for key in ["from", "context"] {
        let refused = plan(&format!("[[files]]\n{key} = '*.txt'\nto = '/a'\n"));
        let shown = hint(&refused.unwrap_err());
        assert!(shown.starts_with("patterns are not supported"), "{shown}");
    }
}

#[test]
fn registry_values_get_the_type_that_they_look_like_or_say() {
    let plan = plan(
        "[[registry]]\nkey = 'HKLM\\SOFTWARE\\Acme'\nmode = \"replace\"\ndelete_values = [\"Old\"]\n\
         values = { Number = 7, Text = \"a\", List = [\"a\", \"b\"], Big = { type = \"qword\", data = 9 },\n\
         Bytes = { type = \"binary\", data = \"00 ff\" } }\n\
         [[registry]]\nkey = 'HKLM\\SOFTWARE\\Gone'\ndelete = true\n\
         [[registry]]\nkey = 'HKLM\\SOFTWARE\\There'\n",
    )
    .unwrap();
    let edits: Vec<String> = plan.registry.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(edits.join("\n"));
}

#[test]
fn a_registration_file_is_imported_and_its_mistakes_are_placed() {
    let folder = tempfile::tempdir().unwrap();
    let recipe_file = folder.path().join("recipe.toml");
    let text = "name = \"x\"\nbase = \"nanoserver\"\n[[registry]]\nimport = \"app.reg\"\n";
    std::fs::write(&recipe_file, text).unwrap();
    let reg = |text: &str| std::fs::write(folder.path().join("app.reg"), text).unwrap();
    let plan = || plan_with(&Recipe::load(&recipe_file).unwrap(), &[]);
    reg(
        "Windows Registry Editor Version 5.00\n\n[HKEY_LOCAL_MACHINE\\SOFTWARE\\Acme]\n\"A\"=dword:0000000a\n",
    );
    let registry = plan().unwrap().registry;
    let edits: Vec<String> = registry.iter().map(ToString::to_string).collect();
    let edit = r#"set HKLM\SOFTWARE\Acme "A" = REG_DWORD 10"#;
    assert!(edits.iter().any(|found| found == edit), "{edits:?}");
    reg("Windows Registry Editor Version 5.00\n\n[HKEY_CURRENT_USER\\Acme]\n");
    let error = plan().unwrap_err().to_string();
    assert!(error.contains("recipe.toml:4:10: "), "{error}");
    assert!(error.contains("app.reg"), "{error}");
}

#[test]
fn ports_are_numbers_with_a_protocol() {
    let plan = plan("ports = [80, \"0081\", \"+82\", \"53/udp\"]\n").unwrap();
    assert_eq!(plan.ports, ["80/tcp", "81/tcp", "82/tcp", "53/udp"]);
    for port in ["0", "65536", "80/icmp", "-1", "http"] {
        let problem = problem(&format!("ports = [\"{port}\"]\n"));
        assert!(problem.contains("invalid port"), "{problem}");
    }
}

#[test]
fn a_name_is_one_that_registries_take() {
    for name in ["", "App", "a b", "-a", "a.", "a//b", "a..b", "a-/b"] {
        let error = recipe(&format!("name = \"{name}\"\nbase = \"x\"\n")).unwrap_err();
        assert!(error.to_string().contains("invalid image name"), "{error}");
    }
    assert!(recipe("name = \"shop/web-1.2_3\"\nbase = \"x\"\n").is_ok());
}

#[test]
fn a_description_is_filled_in_before_a_label_takes_it() {
    let plan = plan(
        "description = \"listens on ${port}\"\nlabels = { d = \"${description}\" }\n\
         [variables.port]\ndefault = 80\n",
    );
    assert_eq!(plan.unwrap().labels["d"], "listens on 80");
}

#[test]
fn control_characters_are_shown_as_in_lists() {
    let printed = plan("env = { A = 'C:\\temp', B = \"1:\\t2\\\\3\" }\nlabels = { c = \"x\\ny\" }");
    let printed = printed.unwrap().to_string();
    for line in [
        r"env         A=C:\temp",
        r#"env         B="1:\t2\\3""#,
        r#"label       c="x\ny""#,
    ] {
        assert!(printed.lines().any(|own| own == line), "{printed}");
    }
}

#[test]
fn a_shutdown_timeout_is_a_number_of_seconds() {
    let plan = plan("shutdown_timeout = 90").unwrap();
    assert_eq!(plan.shutdown_timeout, Some(90));
    for value in ["0", "-1", "\"30s\"", "30000000"] {
        let problem = problem(&format!("shutdown_timeout = {value}"));
        assert!(problem.contains("invalid shutdown timeout"), "{problem}");
    }
}

#[test]
fn a_run_is_either_a_command_or_a_shell_line() {
    let plan = plan(
        "[[run]]\ncommand = [\"cmd\", \"/c\", \"echo ${host_build}\"]\n[[run]]\nshell = \"dir\"\n",
    )
    .unwrap();
    assert_eq!(plan.steps[0].command.to_string(), "cmd /c echo 17763.973");
    assert_eq!(plan.steps[1].command, CommandForm::Shell("dir".to_owned()));
}

#[test]
fn the_service_monitor_gets_a_pool_with_another_name() {
    let started = |body: &str| {
        let plan = plan(body).unwrap();
        let arguments = [plan.entrypoint, plan.cmd].into_iter().flatten();
        arguments.collect::<Vec<_>>().concat().join(" ")
    };
    let pool = "[iis]\napp_pool = { name = \"Web Pool\" }\n";
    let monitor = r"entrypoint = ['C:\ServiceMonitor.exe', 'w3svc']";
    let line = r"C:\ServiceMonitor.exe w3svc Web Pool";
    assert_eq!(started(&format!("{monitor}\n{pool}")), line);
    let shim = r"entrypoint = ['C:\wincimg\shim.exe', '--', 'c:/servicemonitor', 'W3SVC']";
    assert!(started(&format!("{shim}\n{pool}{SHIM}")).ends_with("W3SVC Web Pool"));
    let divided = "entrypoint = ['C:\\ServiceMonitor.exe']\ncmd = ['w3svc']";
    assert!(started(&format!("{divided}\n{pool}")).ends_with("w3svc Web Pool"));
    for left in [
        format!("{monitor}\n[iis]\n"),
        format!("{monitor}\n[iis]\napp_pool = {{ name = \"defaultapppool\" }}\n"),
        monitor.to_owned(),
    ] {
        assert!(started(&left).ends_with("w3svc"), "{left}");
    }
    let own = r"entrypoint = ['C:\ServiceMonitor.exe', 'w3svc', 'Other']";
    assert!(started(&format!("{own}\n{pool}")).ends_with("w3svc Other"));
    let other = "entrypoint = ['C:\\app\\w3svc.exe', 'w3svc']";
    assert!(started(&format!("{other}\n{pool}")).ends_with("w3svc.exe w3svc"));
}

#[test]
fn the_settings_of_a_site_are_read_from_lists_or_from_one_text() {
    let listed = plan(
        "[iis]\nfile_extensions = [\"json\", \".WOFF2\"]\n\
         mime_types = { json = \"application/json\", \".woff2\" = \"font/woff2\" }\n\
         [iis.app_pool.settings]\n\"processModel.idleTimeout\" = \"00:00:00\"\nautoStart = true\n",
    )
    .unwrap()
    .iis
    .unwrap();
    let settings = "autoStart=true,processModel.idleTimeout=00:00:00";
    let texts = [
        ("extensions", "woff2, json,"),
        ("types", "json = application/json,woff2=font/woff2"),
        ("settings", settings),
    ];
    let recipe = recipe(
        "name = \"x\"\nbase = \"iis\"\n[variables]\nextensions = {}\ntypes = {}\nsettings = {}\n\
         [iis]\nfile_extensions = \"${extensions}\"\nmime_types = \"${types}\"\n\
         app_pool = { settings = \"${settings}\" }\n",
    )
    .unwrap();
    let in_one = plan_with(&recipe, &texts).unwrap();
    assert_eq!(in_one.iis, Some(listed.clone()));
    assert_eq!(listed.site.as_str(), "Default Web Site");
    let path = listed.path.as_ref().map(ToString::to_string);
    assert_eq!(path.as_deref(), Some(r"C:\inetpub\wwwroot"));
    assert_eq!(listed.app_pool.as_str(), "DefaultAppPool");
    let printed = in_one.to_string();
    for line in [
        "may serve .woff2",
        ".json is application/json",
        "system.applicationHost/applicationPools [name='DefaultAppPool'].autoStart:true",
    ] {
        let line = format!("iis         {line}\n");
        assert!(printed.contains(&line), "{printed}");
    }
}

#[test]
fn arguments_in_one_text_are_taken_apart_as_windows_does_it() {
    let cmd = |value: &str| plan(&format!("cmd = {value}\n")).unwrap().cmd.unwrap();
    let taken_apart = cmd(r#"'--name "my app" C:\x\'"#);
    assert_eq!(taken_apart, ["--name", "my app", r"C:\x\"]);
    assert_eq!(cmd(r#"["--name", "my app"]"#), ["--name", "my app"]);
    assert!(cmd("\"\"").is_empty());
}

#[test]
fn the_schema_describes_types_of_windows_and_iis() {
    let schema = schema();
    let types = &schema["$defs"];
    assert_eq!(types.get("Text2"), None);
    let read = ["Service", "FailureActions", "FailureAction", "AppPool"];
    insta::assert_json_snapshot!(read.map(|name| &types[name]));
}

#[test]
fn the_schema_knows_every_key_of_the_recipes_that_ship() {
    let schema = schema();
    let known = schema["properties"].as_object().unwrap();
    for shipped in recipes() {
        let table: toml::Table = shipped.text.parse().unwrap();
        for key in table.keys() {
            assert!(known.contains_key(key), "{key}");
        }
    }
    assert_eq!(schema["additionalProperties"], false);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = recipe(&text);
        let _ = plan(&text);
    }
}

#[test]
fn a_deletion_where_nothing_may_be_takes_a_look_into_the_base() {
    let deleting =
        |key: &str| plan(&format!("[[registry]]\nkey = '{key}'\ndelete = true\n")).unwrap();
    let vendor = deleting(r"HKLM\SOFTWARE\Vendor\Toolbar");
    let hives = vendor.base_requirements().hives;
    assert_eq!(hives.into_iter().collect::<Vec<_>>(), [Root::Software]);
    let service = deleting(r"HKLM\SYSTEM\CurrentControlSet\Services\DiagTrack");
    assert!(service.base_requirements().is_empty());
    let inside = plan("look_inside = true").unwrap();
    assert!(inside.base_requirements().hives.into_iter().eq(Root::ALL));
}

#[test]
fn a_value_that_a_variable_adds_is_refused_where_it_is_used() {
    let text = "name = \"x\"\nbase = \"nanoserver\"\n[variables]\nstart = {}\ntypes = { default = \"json\" }\n\
                [[services]]\nname = \"a\"\nprogram = \"/a\"\n  start = \"${start}\"\n";
    let error = plan_with(&recipe(text).unwrap(), &[("start", "boot")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "recipe.toml:9:11: invalid start \"boot\": expected auto, delayed-auto, demand or disabled"
    );
    let shown = error.diagnosis().excerpt.unwrap().to_string();
    let excerpt = "  9 |   start = \"${start}\"\n    |           ^^^^^^^^^^";
    assert_eq!(shown, excerpt);
    assert!(plan_with(&recipe(text).unwrap(), &[("start", "demand")]).is_ok());
    // An invalid default matters only if no other value is set.
    let site = recipe(&format!("{text}[iis]\nmime_types = \"${{types}}\"\n")).unwrap();
    let types = [("start", "auto"), ("types", "json=application/json")];
    assert!(plan_with(&site, &types).is_ok());
    let error = plan_with(&site, &types[..1]).unwrap_err().to_string();
    assert!(error.contains(":11:14: \"json\" has no ="), "{error}");
}

#[test]
fn what_no_value_can_make_right_is_refused_before_there_are_values() {
    let refused = |body: &str| {
        let text = format!(
            "name = \"x\"\nbase = \"y\"\n{body}\n[variables]\nport = {{ type = \"integer\" }}\n"
        );
        recipe(&text).unwrap_err().to_string()
    };
    for (body, printed) in [
        ("ports = [\"${port}\", \"http\"]", "3:21: invalid port"),
        (
            "user = \"${port}\"\nfiels = 1",
            "4:1: unknown field `fiels`",
        ),
        (
            "[iis.mime_types]\njson = \"a/b\"\n\".JSON\" = \"a/b\"",
            "4:8: duplicate .json",
        ),
        ("layers = 5", "3:10: invalid type: integer `5`"),
        (
            "user = \"${who}\"\nworking_dir = \"${who}\"\n[[services]]\nnam = \"${who}\"\n[variables.who]",
            "6:1: unknown field `nam`",
        ),
    ] {
        let problem = refused(body);
        assert!(problem.contains(printed), "{body}: {problem}");
    }
}
