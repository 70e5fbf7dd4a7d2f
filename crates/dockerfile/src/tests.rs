mod commands;
mod properties;
mod reader;
mod registry;

use std::collections::BTreeMap;
use std::fs;

use wincimg_common::diagnose::Diagnose;
use wincimg_iis::IisSettings;
use wincimg_layer::DiskSource;
use wincimg_recipe::{
    CommandForm, FileSource, Plan, PlanBase, PlannedCommand, PlannedEntry, Recipe, RecipeInputs,
};
use wincimg_registry::{KeyPath, RegistryData, RegistryEdit, UnknownBase};
use wincimg_windows::version::WindowsVersion;

use super::*;
use crate::render::view;

const VERSION: WindowsVersion = WindowsVersion::new(17763, 973);

/// Shell of Microsoft's images with .NET Framework and IIS.
const POWERSHELL: [&str; 3] = [
    "powershell",
    "-Command",
    "$ErrorActionPreference = 'Stop'; $ProgressPreference = 'SilentlyContinue';",
];

fn base(repository: &str, shell: &[&str], user: Option<&str>) -> PlanBase {
    let shell: Vec<String> = shell.iter().map(ToString::to_string).collect();
    PlanBase {
        name: format!("mcr.microsoft.com/{repository}:10.0.17763.973"),
        digest: format!("sha256:{}", "a".repeat(64)),
        os_version: Some(VERSION),
        shell: Some(shell).filter(|shell| !shell.is_empty()),
        user: user.map(str::to_owned),
        ..PlanBase::default()
    }
}

fn nanoserver() -> PlanBase {
    base("windows/nanoserver", &[], Some("ContainerUser"))
}

fn aspnet() -> PlanBase {
    base("dotnet/framework/aspnet", &POWERSHELL, None)
}

/// Plan of an included recipe, in a context with a site and a program.
fn shipped(name: &str, base: PlanBase, values: &[(&str, &str)]) -> Plan {
    let context = tempfile::tempdir().unwrap();
    for file in [
        "site/index.html", "site/bin/web.dll", "app/server.exe", "app/my server.exe",
    ] {
        let path = context.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    let values: BTreeMap<String, String> = values
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    let settings = RecipeInputs {
        values: &values,
        context: context.path(),
    };
    let mut plan = Recipe::find(name)
        .unwrap()
        .plan(base, VERSION, &settings)
        .unwrap();
    // Only names are used; the folder's files are not read.
    plan.files.retain(|file| {
        let source = file.source();
        source.is_some_and(|source| source.to_string().starts_with("wincimg"))
    });
    plan
}

#[test]
fn the_dockerfiles_of_the_recipes_that_ship() {
    let iis = |base| {
        shipped(
            "iis",
            base,
            &[
                ("file_extensions", "json,woff2"),
                ("mime_types", "json=application/json"),
                ("app_pool_settings", "processModel.idleTimeout=00:00:00"),
            ],
        )
    };
    for (name, plan) in [
        ("pause", shipped("pause", nanoserver(), &[])),
        (
            "app",
            shipped(
                "app",
                nanoserver(),
                &[("program", "server.exe"), ("arguments", "--port 80")],
            ),
        ),
        ("iis_on_aspnet", iis(aspnet())),
        (
            "iis_on_iis",
            iis(base("windows/servercore/iis", &POWERSHELL, None)),
        ),
    ] {
        insta::assert_snapshot!(name, render(&plan, &UnknownBase).unwrap().dockerfile);
    }
}

#[test]
fn the_dockerfile_of_a_server_that_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recipe.toml");
    let settings = wincimg_testkit::iis::SETTINGS;
    let text = format!("name = \"x\"\nbase = \"iis\"\n{settings}");
    fs::write(&file, text).unwrap();
    let settings = RecipeInputs {
        values: &BTreeMap::new(),
        context: folder.path(),
    };
    let plan = Recipe::load(&file)
        .unwrap()
        .plan(plan_base(), VERSION, &settings);
    let dockerfile = render(&plan.unwrap(), &UnknownBase).unwrap().dockerfile;
    insta::assert_snapshot!(dockerfile.replace("C:\\\\Windows\\\\System32\\\\", ""));
    let clash =
        "name = \"x\"\nbase = \"iis\"\n[[iis.config]]\nsection = \"a\"\nremove = [\"[a='b&c']\"]\n";
    fs::write(&file, clash).unwrap();
    let plan = Recipe::load(&file)
        .unwrap()
        .plan(plan_base(), VERSION, &settings);
    let refused = render(&plan.unwrap(), &UnknownBase)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("cmd would split it"), "{refused}");
}

fn plan_base() -> PlanBase {
    base("windows/servercore/iis", &[], None)
}

fn plan() -> Plan {
    Plan {
        name: "test".to_owned(),
        base: base("windows/servercore", &[], None),
        host_build: Some(VERSION),
        ..Plan::default()
    }
}

fn dockerfile(plan: &Plan) -> String {
    render(plan, &UnknownBase).unwrap().dockerfile
}

fn problem(plan: &Plan) -> String {
    render(plan, &UnknownBase).unwrap_err().to_string()
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn step(command: CommandForm) -> PlannedCommand {
    PlannedCommand { command }
}

/// A plan for all templates that the included recipes do not use.
fn everything() -> Plan {
    let key: KeyPath = r"HKLM\SOFTWARE\Acme Inc".parse().unwrap();
    let set = |name: &str, data| RegistryEdit::SetValue {
        key: key.clone(),
        name: name.to_owned(),
        data,
    };
    Plan {
        base: aspnet(),
        registry: vec![
            RegistryEdit::DeleteKey { key: key.clone() },
            set("Lines", RegistryData::sz("one\ntwo")),
            set("Limit", RegistryData::dword(5)),
        ],
        env: [("Path to".to_owned(), r#"C:\"my" $files`"#.to_owned())].into(),
        user: Some("svc".to_owned()),
        working_dir: Some(r"C:\my app".parse().unwrap()),
        iis: Some(IisSettings {
            site: "My Site".parse().unwrap(),
            path: r"C:\my app\site".parse().ok(),
            file_extensions: [].into(),
            mime_types: [].into(),
            app_pool: "DefaultAppPool".parse().unwrap(),
            app_pool_settings: [].into(),
            default_documents: Vec::new(),
            app_pools: Vec::new(),
            sites: Vec::new(),
            config: Vec::new(),
        }),
        steps: vec![
            step(CommandForm::Exec(strings(&[
                r"C:\my app\setup.exe", r#"/name="a b""#,
            ]))),
            step(CommandForm::Shell(
                r"Remove-Item C:\Temp\* -Recurse".to_owned(),
            )),
        ],
        cmd: Some(strings(&["--serve"])),
        ..plan()
    }
}

#[test]
fn a_dockerfile_with_everything_else() {
    insta::assert_snapshot!(dockerfile(&everything()));
}

#[test]
fn a_plan_that_asks_for_nothing_is_its_base() {
    let found = reader::instructions(&dockerfile(&plan()));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "FROM");
}

#[test]
fn every_dockerfile_lints_clean() {
    let plans = [
        shipped("pause", nanoserver(), &[]),
        shipped("app", nanoserver(), &[("program", "my server.exe")]),
        shipped(
            "iis",
            aspnet(),
            &[
                ("file_extensions", "json"),
                ("mime_types", "json=text/plain; charset=utf-8"),
            ],
        ),
        // No line creates an account.
        Plan {
            user: Some("ContainerUser".to_owned()),
            ..everything()
        },
    ];
    for plan in plans {
        let options = lint::LintOptions {
            base: Some(lint::BaseConfig {
                shell: lint::BaseShell::Cmd,
                version: Some(VERSION),
                is_windows: true,
            }),
            ..lint::LintOptions::default()
        };
        let text = dockerfile(&plan);
        assert_eq!(lint::lint(&text, &options).findings, [], "{text}");
    }
}

#[test]
fn commands_in_shell_form_name_the_shell_of_the_base() {
    let mut plan = plan();
    plan.steps = vec![step(CommandForm::Shell("dir C:\\ > C:\\list".to_owned()))];
    let text = dockerfile(&plan);
    assert_eq!(reader::array(&text, "SHELL").unwrap(), ["cmd", "/S", "/C"]);
    assert!(text.contains("\nRUN dir C:\\ > C:\\list\n"), "{text}");
    plan.base = aspnet();
    assert_eq!(
        reader::array(&dockerfile(&plan), "SHELL").unwrap(),
        POWERSHELL
    );
    plan.steps = vec![step(CommandForm::Exec(strings(&["cmd"])))];
    assert_eq!(reader::array(&dockerfile(&plan), "SHELL"), None);
}

#[test]
fn an_ordinary_user_of_the_base_runs_the_program_and_does_not_build() {
    let users = |base_user: Option<&str>, own: Option<&str>| {
        let mut plan = plan();
        plan.base.user = base_user.map(str::to_owned);
        plan.user = own.map(str::to_owned);
        let text = dockerfile(&plan);
        reader::instructions(&text)
            .into_iter()
            .filter(|(keyword, _)| keyword == "USER")
            .map(|(_, user)| user)
            .collect::<Vec<_>>()
    };
    let administrator = "ContainerAdministrator";
    assert!(users(None, None).is_empty());
    assert!(users(Some("containeradministrator"), None).is_empty());
    assert_eq!(users(None, Some("svc")), ["svc"]);
    assert_eq!(
        users(Some("ContainerUser"), None),
        [administrator, "ContainerUser"]
    );
    assert_eq!(
        users(Some("ContainerUser"), Some("svc")),
        [administrator, "svc"]
    );
}

#[test]
fn an_empty_entry_point_is_not_the_bases() {
    let mut plan = plan();
    assert_eq!(reader::array(&dockerfile(&plan), "ENTRYPOINT"), None);
    plan.entrypoint = Some(Vec::new());
    plan.cmd = Some(Vec::new());
    assert!(
        reader::array(&dockerfile(&plan), "ENTRYPOINT")
            .unwrap()
            .is_empty()
    );
    assert!(reader::array(&dockerfile(&plan), "CMD").unwrap().is_empty());
}

#[test]
fn the_context_is_laid_out_like_the_drive() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("site/empty")).unwrap();
    fs::write(folder.path().join("site/index.html"), "hello").unwrap();
    let file = |source, target: &str| PlannedEntry::file(target.parse().unwrap(), source);
    let mut plan = plan();
    plan.files = vec![
        file(
            FileSource::Folder(DiskSource::folder(&folder.path().join("site"))),
            r"C:\inetpub\wwwroot",
        ),
        file(FileSource::Text("x".into()), r"C:\notes [1].txt"),
        file(FileSource::Shim, r"C:\wincimg\shim.exe"),
    ];
    let rendered = render(&plan, &UnknownBase).unwrap();
    let paths: Vec<&str> = rendered
        .context
        .iter()
        .map(|entry| entry.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "files",
            "files/inetpub",
            "files/inetpub/wwwroot",
            "files/inetpub/wwwroot/empty",
            "files/inetpub/wwwroot/index.html",
            "files/notes [1].txt",
            "files/wincimg",
            "files/wincimg/shim.exe",
        ]
    );
    assert_eq!(
        reader::array(&rendered.dockerfile, "COPY").unwrap(),
        ["files/", "C:/"]
    );
    plan.files
        .push(file(FileSource::Text("y".into()), r"C:\WINCIMG\Shim.exe"));
    assert!(problem(&plan).contains("the same path on Windows"));
}

#[test]
fn what_a_dockerfile_cannot_hold_is_refused_by_its_text() {
    let with = |change: fn(&mut Plan)| {
        let mut plan = plan();
        change(&mut plan);
        problem(&plan)
    };
    let line = |line: &str| {
        let mut plan = plan();
        plan.steps = vec![step(CommandForm::Shell(line.to_owned()))];
        problem(&plan)
    };
    for (found, printed) in [
        (
            with(|plan| _ = plan.env.insert("A".into(), "two\nlines".into())),
            "two\\nlines",
        ),
        (
            with(|plan| _ = plan.labels.insert("a=b".into(), "c".into())),
            "\"a=b\"",
        ),
        (with(|plan| plan.user = Some("a\rb".into())), "a\\rb"),
        (with(|plan| plan.base.name = "a b".into()), "\"a b@"),
        (with(|plan| plan.name = "x\nRUN evil".into()), "RUN evil"),
        (
            with(|plan| plan.entrypoint = Some(vec!["a\0".into()])),
            "a\\0",
        ),
        (
            with(|plan| plan.steps = vec![step(CommandForm::Exec(Vec::new()))]),
            "empty",
        ),
        (line("a\nb"), "line break"),
        (line("a `"), "escape character"),
        (line("[\"a\"]"), "list"),
        (line("--mount=x a"), "option"),
        (line("a <<EOF"), "here-document"),
        (line("echo 1<<2"), "here-document"),
        (line(" "), "is empty"),
    ] {
        assert!(found.contains(printed), "{found}");
    }
}

#[test]
fn a_variable_that_no_plan_has_is_an_error_that_names_it() {
    let view = view(&plan(), &UnknownBase, &mut Vec::new(), &[]).unwrap();
    for template in [
        "\n{{baes}}",
        "\n{{#if baes}}{{/if}}",
        "\n{{#unless baes}}{{/unless}}",
        "\n{{#each baes}}{{/each}}",
    ] {
        let mut registry = templates::registry().unwrap();
        registry
            .register_template_string("image", template)
            .unwrap();
        let error = templates::write(&registry, &view).unwrap_err().to_string();
        assert_eq!(
            error, r#"line 2 of the template "image" uses the unknown variable "baes""#,
            "{template}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_is_made_where_the_folder_is_already() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join("site").join(name);
    for name in ["v1", "deep/er"] {
        fs::create_dir_all(inside(name)).unwrap();
    }
    fs::write(inside("v1/index.html"), "x").unwrap();
    symlink("v1", inside("current one")).unwrap();
    symlink("../../v1", inside("deep/er/up")).unwrap();
    symlink("v1/index.html", inside("index.html")).unwrap();
    fs::write(
        folder.path().join("recipe.toml"),
        "name = \"x\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"site\"\nto = 'C:\\site\\'\n",
    )
    .unwrap();
    let recipe = Recipe::find(folder.path().to_str().unwrap()).unwrap();
    let values = BTreeMap::new();
    let settings = RecipeInputs {
        values: &values,
        context: folder.path(),
    };
    let plan = recipe.plan(nanoserver(), VERSION, &settings).unwrap();
    let rendered = render(&plan, &UnknownBase).unwrap();
    let links: Vec<&str> = rendered
        .context
        .iter()
        .filter(|entry| matches!(entry.content, ContextContent::Link(_)))
        .map(|entry| entry.path.as_str())
        .collect();
    assert_eq!(
        links,
        ["files/site/index.html"],
        "a link to a file is copied"
    );
    let copied = rendered.dockerfile.find("COPY").unwrap();
    let made = r#"RUN ["C:\\Windows\\System32\\cmd.exe", "/C", "mklink", "/D", "C:\\site\\current one", "v1", "&&", "mklink", "/D", "C:\\site\\deep\\er\\up", "..\\..\\v1"]"#;
    let made = rendered.dockerfile.find(made);
    assert!(
        made.is_some_and(|made| made > copied),
        "{}",
        rendered.dockerfile
    );

    symlink("v1", inside("a&b")).unwrap();
    let plan = recipe.plan(nanoserver(), VERSION, &settings).unwrap();
    let error = render(&plan, &UnknownBase).unwrap_err();
    assert!(error.to_string().contains(r"C:\site\a&b"), "{error}");
}

#[test]
fn path_is_the_bases_with_ours_in_the_registry_and_in_the_environment() {
    use wincimg_registry::testing::Keys;
    use wincimg_windows::search_path::PathAdditions;
    use wincimg_windows::testing::TestBaseContents;

    let mut plan = plan();
    plan.path = Some(PathAdditions {
        prepend: vec![r"C:\app".to_owned()],
        append: vec![r"C:\Program Files\x".to_owned()],
    });
    let key = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment";
    let path = RegistryData::expand_sz(r"%SystemRoot%\system32;");
    let base =
        TestBaseContents::from(Keys::default().with_key(key, "O:SYG:SYD:", &[("Path", path)]));
    let text = render(&plan, &base).unwrap().dockerfile;
    let add = r#"RUN ["C:\\Windows\\System32\\reg.exe", "add", "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Environment", "/v", "Path", "/t", "REG_EXPAND_SZ", "/d", "C:\\app;%SystemRoot%\\system32;C:\\Program Files\\x", "/f"]"#;
    assert!(text.contains(add), "{text}");
    assert!(!text.contains("ENV"), "{text}");

    plan.base.container.env = vec![r"PATH=C:\tools".to_owned()];
    let text = render(&plan, &base).unwrap().dockerfile;
    assert!(text.contains(add), "{text}");
    assert!(
        text.contains(r#"ENV PATH="C:\app;C:\tools;C:\Program Files\x""#),
        "{text}"
    );

    let error = render(&plan, &UnknownBase).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot add to PATH"),
        "{error}"
    );
    assert!(error.diagnosis().hint.is_some());
    assert!(check_renderable(&plan).is_ok());
}
