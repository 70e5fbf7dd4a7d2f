use std::path::Path;

use wincimg_common::diagnose::{Diagnose, Problem};
use wincimg_images::recipes;
use wincimg_registry::Root;
use wincimg_windows::version::WindowsVersion;

use super::*;
use crate::toml_error::{EXAMPLES, example};

fn recipe(text: &str) -> Result<Recipe, Problem> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    Recipe::from_text("recipe.toml", text.to_owned(), &folder)
}

fn base() -> PlanBase {
    PlanBase {
        name: "mcr.microsoft.com/windows/nanoserver:10.0.17763.973".to_owned(),
        digest: format!("sha256:{}", "a".repeat(64)),
        os_version: Some(WindowsVersion::new(17763, 973)),
        user: Some("ContainerUser".to_owned()),
        ..PlanBase::default()
    }
}

fn plan_with(recipe: &Recipe, values: &[(&str, &str)]) -> Result<Plan, Problem> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let settings = RecipeInputs {
        values: &values.iter().map(owned).collect(),
        context: Path::new(env!("CARGO_MANIFEST_DIR")),
    };
    recipe.plan(base(), WindowsVersion::new(17763, 973), &settings)
}

/// The shim's file.
const SHIM: &str = "\n[[files]]\nembedded = 'shim'\nto = 'C:\\wincimg\\shim.exe'\n";

pub(super) fn plan(body: &str) -> Result<Plan, Problem> {
    let recipe = recipe(&format!("name = \"app\"\nbase = \"nanoserver\"\n{body}"))?;
    plan_with(&recipe, &[])
}

fn problem(body: &str) -> String {
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
fn the_examples_for_mistakes_are_right() {
    for line in EXAMPLES {
        let (key, _) = line.split_once(" = ").unwrap();
        assert_eq!(example(key), Some(line));
        let own = match key {
            "name" => "base = \"nanoserver\"",
            "base" | "base_image" => "name = \"app\"",
            _ => "name = \"app\"\nbase = \"nanoserver\"",
        };
        let read = recipe(&format!("{own}\n{line}\n"));
        assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
    }
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

#[test]
fn unknown_keys_are_refused_with_their_place() {
    let below = "name = \"x\"\nbase = \"y\"\n[[files]]\nfrom = \"a\"\n  too = \"b\"";
    for (text, expected) in [
        (
            "name = \"x\"\nbase = \"y\"\nfiels = 1\n",
            "recipe.toml:3:1: unknown field `fiels`",
        ),
        (below, "recipe.toml:5:3: "),
        ("name = \"x\"", "missing field `base`"),
        ("name = \"Über\"\nbase = \"y\"", "recipe.toml:1:8: "),
    ] {
        let error = recipe(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_slip_is_shown_in_its_line_with_what_was_meant() {
    for (line, problem, mark, hint) in [
        (
            "fiels = 1",
            "unknown field `fiels`",
            "  3 | fiels = 1\n    | ^^^^^",
            "did you mean `files`?",
        ),
        (
            "[variables.port]\ntype = \"integr\"",
            "unknown variant `integr`",
            "  4 | type = \"integr\"\n    |        ^^^^^^^^",
            "did you mean `integer`?",
        ),
        (
            "[variables.port]\ndefualt = 1",
            "unknown field `defualt`",
            "  4 | defualt = 1\n    | ^^^^^^^",
            "did you mean `default`?",
        ),
        (
            "user = nanouser",
            "the string nanouser has no quotes",
            "  3 | user = nanouser\n    |        ^^^^^^^^",
            "quote it: user = \"nanouser\"",
        ),
        (
            "user = ContainerUser # who",
            "the string ContainerUser has no quotes",
            "  3 | user = ContainerUser # who\n    |        ^^^^^^^^^^^^^",
            "quote it: user = \"ContainerUser\"",
        ),
        (
            "[variables.go]\ndefault = 1.26 # a flavour",
            "invalid type: floating point `1.26`",
            "  4 | default = 1.26 # a flavour\n    |           ^^^^",
            "quote it: default = \"1.26\"",
        ),
    ] {
        let error = recipe(&format!("name = \"x\"\nbase = \"y\"\n{line}\n")).unwrap_err();
        assert!(error.to_string().contains(problem), "{line}: {error}");
        let excerpt = error.diagnosis().excerpt.map(|it| it.to_string());
        assert_eq!(excerpt.as_deref(), Some(mark), "{line}");
        assert_eq!(error.diagnosis().hint.as_deref(), Some(hint), "{line}");
    }
    let error = recipe("name = \"x\"\nbase = nanoserver\n").unwrap_err();
    let expected = "recipe.toml:2:8: the string nanoserver has no quotes";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_key_below_the_wrong_table_is_one_to_move() {
    let file = "[[files]]\ncontent = ''\nto = '/a'\n";
    for (body, problem, help) in [
        (
            format!("{file}entrypoint = ['a.exe']"),
            "6:1: unknown field `entrypoint`",
            "for the image's entrypoint, move the line above the first [table]",
        ),
        (
            format!("{file}logs = ['C:\\a.log']"),
            "6:1: unknown field `logs`",
            "for the image's logs, move the line above the first [table]",
        ),
        (
            "[env] # of the shop\nA = '1'\npath = { append = ['C:\\jdk\\bin'] }".to_owned(),
            "invalid type: map",
            "for the image's path, move the line above the first [table]",
        ),
        (
            "[registry]\nkey = 'HKLM\\SOFTWARE\\X'".to_owned(),
            "3:1: invalid type: map",
            "write [[registry]]: each is an entry of a list",
        ),
        (
            "[iis.sites]\nname = 'a'".to_owned(),
            "3:1: invalid type: map",
            "write [[iis.sites]]: each is an entry of a list",
        ),
        (
            "[[run]]\ncommand = \"msiexec /i x\" # quiet".to_owned(),
            "4:11: invalid type: string",
            "write it like this: shell = \"msiexec /i x\"",
        ),
    ] {
        let error = recipe(&format!("name = \"x\"\nbase = \"y\"\n{body}\n")).unwrap_err();
        assert!(error.to_string().contains(problem), "{body}: {error}");
        assert_eq!(hint(&error), help, "{body}");
    }
    let warnings = |body: &str| plan(body).unwrap().warnings;
    assert_eq!(
        warnings("[env]\nA = '1'\nuser = \"ContainerUser\"\n[labels]\ncmd = 'serve'"),
        [
            "recipe.toml:5: user is a variable here: for the image's user, move the line above the first [table]",
            "recipe.toml:7: cmd is a label here: for the image's cmd, move the line above the first [table]",
        ]
    );
    for meant in [
        "env = { user = 'a' }",
        "[env]\nUSER = 'a'\nname = 'b'\n\"cmd\" = 'c'",
        "user = 'ContainerUser'\n[env]\nuser = 'a'",
        "[labels]\nauthor = 'a'\ndescription = 'b'",
    ] {
        assert!(warnings(meant).is_empty(), "{meant}");
    }
}

#[test]
fn an_error_of_the_base_is_placed() {
    let recipe = recipe("name = \"x\"\nbase = \"nanoserver:1\"\n").unwrap();
    let error = recipe.base_error(&Problem::request("base/name", "no base").hint("write x"));
    assert_eq!(error.to_string(), "recipe.toml:2:8: no base");
    let diagnosis = error.diagnosis();
    assert_eq!(diagnosis.code, "base/name");
    assert_eq!(diagnosis.hint.as_deref(), Some("write x"));
}

#[test]
fn a_setting_is_shown_as_it_was_typed() {
    let recipe =
        recipe("name = \"x\"\nbase = \"nanoserver\"\n[variables.port]\ntype = \"integer\"\n");
    let recipe = recipe.unwrap();
    let shown = |name, value| {
        let error = plan_with(&recipe, &[(name, value)]).unwrap_err();
        let diagnosis = error.diagnosis();
        (diagnosis.excerpt.unwrap().to_string(), diagnosis.hint)
    };
    let (excerpt, hint) = shown("prot", "secret");
    assert_eq!(excerpt, "  --set prot=…\n        ^^^^");
    assert_eq!(hint.as_deref(), Some("did you mean \"port\"?"));
    let (excerpt, _) = shown("port", "80\n80");
    assert_eq!(excerpt, "  --set port=80\\n80\n             ^^^^^^");
}

#[test]
fn a_path_with_escapes_is_shown_in_single_quotes() {
    for (line, text) in [
        (r#"entrypoint = ["C:\new\run.exe"]"#, r"C:\new\run.exe"),
        (r#"working_dir = "C:\app\x" # as "usual""#, r"C:\app\x"),
        (r#"volumes = ["C:/a", "C:\Users\me"]"#, r"C:\Users\me"),
        (r#"env = { A = "50\%" }"#, r"50\%"),
    ] {
        let shown = hint(&plan(line).unwrap_err());
        assert_eq!(shown, format!("write it in single quotes: '{text}'"));
    }
    let quoted = plan(r#"working_dir = "C:\it's""#).unwrap_err();
    let example = r"write paths in single quotes: 'C:\app'";
    assert_eq!(hint(&quoted), example);
    for right in [
        r"env = { A = 'C:\temp', B = '''C:\new''' }",
        r#"env = { A = """C:\temp""" } # "C:\temp""#,
        r#"env = { A = "C:\\temp", B = "C:/temp", "C:\temp" = "x" }"#,
        r#"env = { A = "c:\n", B = "c:\n  d: 1", C = "key:\nvalue", D = "a:\tb" }"#,
        r#"labels = { a = "c:\nd" }"#,
        "[[files]]\ncontent = \"c:\\nd: 1\"\nto = '/a'",
    ] {
        plan(right).unwrap();
    }
}

fn hint(error: &Problem) -> String {
    error.diagnosis().hint.unwrap()
}

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
