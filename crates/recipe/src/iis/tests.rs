use super::super::tests::{plan, problem};

#[test]
fn two_sites_do_not_have_the_same_name() {
    let site = |name: &str| {
        format!("[[iis.sites]]\nname = '{name}'\npath = 'C:\\a'\nbindings = ['http/*:80:']\n")
    };
    let problem = problem(&(site("Api") + &site("api")));
    assert!(problem.contains("two sites have the name api"), "{problem}");
}

#[test]
fn two_paths_of_a_site_differ_in_more_than_their_case() {
    for (keys, printed) in [
        (
            "applications = { '/api' = { path = 'C:\\a' }, '/API' = { path = 'C:\\b' } }",
            "/API and /api are the same path to IIS",
        ),
        (
            "virtual_directories = { '/x' = 'C:\\a', '/X' = 'C:\\b' }",
            "/X and /x are the same path to IIS",
        ),
        (
            "applications = { '/' = { path = 'C:\\a' } }",
            "the application / is the site itself",
        ),
        (
            "virtual_directories = { '/' = 'C:\\a' }",
            "path sets the folder of /",
        ),
    ] {
        let site = "[[iis.sites]]\nname = 'Api'\npath = 'C:\\a'\nbindings = ['http/*:80:']\n";
        let problem = problem(&format!("{site}{keys}\n"));
        assert!(problem.starts_with("recipe.toml:7:"), "{problem}");
        assert!(problem.contains(printed), "{problem}");
    }
}

#[test]
fn a_pool_that_the_service_monitor_cannot_set_up_is_named() {
    let warning = |started: &str, body: &str| {
        let plan = plan(&format!("entrypoint = [{started}]\n{body}")).unwrap();
        plan.pool_warning()
    };
    let monitor = r"'C:\ServiceMonitor.exe', 'w3svc'";
    let pool =
        |name| format!("[[iis.app_pools]]\nname = '{name}'\nenvironment = {{ MODE = 'live' }}\n");
    let of_default = pool("DefaultAppPool");
    let (mode, other) = ("[env]\nMODE = 'test'\n", "OTHER = 'x'\n");
    let config = "[[iis.config]]\nsection = 'system.applicationHost/applicationPools'\n";
    let deleted = format!("{config}remove = [\"[name='DefaultAppPool']\"]\n");
    for (started, body, part) in [
        (monitor, format!("{mode}{other}{of_default}"), "has MODE:"),
        (
            monitor,
            format!("[env]\nMode = 'test'\n{other}{of_default}"),
            "has Mode:",
        ),
        (
            r"'C:\ServiceMonitor.exe', 'W3SVC', 'shop'",
            format!("{mode}{other}{}", pool("shop")),
            "pool shop, ",
        ),
        (
            monitor,
            deleted.clone(),
            "pool DefaultAppPool, which is deleted",
        ),
    ] {
        let found = warning(started, &body).unwrap_or_default();
        assert!(found.contains(part), "{body}: {found}");
    }
    let removed = format!(
        "{mode}{other}{config}add = [\"[name='DefaultAppPool'].environmentVariables.[name='MODE',value='x']\"]\n\
         {config}remove = [\"[name='DefaultAppPool'].environmentVariables.[name='Mode']\"]\n"
    );
    let added = format!("{deleted}add = [\"[name='DefaultAppPool']\"]\n");
    let own = "[[files]]\ncontent = 'x'\nto = 'C:\\ServiceMonitor.exe'\n";
    for (started, body) in [
        // It removes all that it then adds.
        (monitor, format!("{mode}{of_default}")),
        (monitor, format!("[env]\n{other}{of_default}")),
        (monitor, format!("{mode}TEMP = 'C:\\t'\n{of_default}")),
        (monitor, format!("{mode}{other}{}", pool("shop"))),
        (monitor, added),
        (monitor, removed),
        (monitor, format!("{own}{deleted}")),
        (r"'C:\ServiceMonitor.exe', 'w3svc', 'shop'", deleted.clone()),
        (r"'C:\app.exe', 'w3svc'", deleted),
    ] {
        assert_eq!(warning(started, &body), None, "{body}");
    }
}

#[test]
fn a_value_that_no_iis_accepts_is_refused_in_its_place() {
    for settings in [
        "[[iis.app_pools]]\nname = 'a'\nsettings = { 'processModel.idleTimeout' = 20 }",
        "[iis.app_pool]\nname = 'a'\nsettings = 'autoStart=true, processModel.idleTimeout=20'",
    ] {
        let problem = problem(&format!("{settings}\n"));
        assert!(problem.starts_with("recipe.toml:5:"), "{problem}");
        let printed = "invalid processModel.idleTimeout \"20\": expected a time span";
        assert!(problem.contains(printed), "{problem}");
    }
    let sound = "settings = 'queueLength=10, recycling.periodicRestart.time=29:00:00, other=20'";
    plan(&format!("[iis.app_pool]\n{sound}\n")).unwrap();
}

#[test]
fn what_is_no_pool_is_refused_in_its_place() {
    for (keys, printed) in [
        (
            "name = 'a/b'",
            r#"4:8: invalid name of a site or an application pool "a/b": expected letters, digits, spaces, - _ or ."#,
        ),
        (
            r#"settings = { idle = "a\nb" }"#,
            "5:21: expected a value on one line",
        ),
        (
            "settings = { 'a b' = 1 }",
            r#"5:14: invalid attribute of IIS's configuration "a b": expected names separated by dots, such as processModel.idleTimeout"#,
        ),
        ("settings = 'a=1, a=2'", "5:12: duplicate a"),
        (
            "settings = { a = 1.5 }",
            "5:18: invalid type: floating point `1.5`, expected a string, a whole number, true or false",
        ),
        (
            "settings = 'a'",
            r#"5:12: "a" has no =: expected KEY=VALUE"#,
        ),
        (
            "environment = { 'A=B' = '1' }",
            r#"5:25: invalid name of a variable: "A=B""#,
        ),
        (
            r#"environment = { A = "a\nb" }"#,
            "5:21: expected a value on one line",
        ),
        (
            r#"environment = { "a\nb" = 1 }"#,
            r#"5:26: invalid name of a variable: "a\nb""#,
        ),
        (
            "environment = 1",
            "5:15: invalid type: integer `1`, expected a map",
        ),
        (
            "x = 1",
            "5:1: unknown field `x`, expected one of `name`, `settings`, `environment`",
        ),
        (
            "settings = 1",
            "5:12: invalid type: integer `1`, expected a string or a table of strings",
        ),
        (
            "environment = { A = 1.5 }",
            "5:21: invalid type: floating point `1.5`, expected a string, a whole number, true or false",
        ),
    ] {
        let name = (!keys.starts_with("name")).then_some("name = 'a'\n");
        let name = name.unwrap_or_default();
        let problem = problem(&format!("[[iis.app_pools]]\n{name}{keys}\n"));
        assert_eq!(problem, format!("recipe.toml:{printed}"), "{keys}");
    }
}

#[test]
fn a_pool_has_its_settings_and_variables() {
    let body = "[[iis.app_pools]]\nname = 'a'\nsettings = 'b.c=1, d=x'\n\
                environment = { Y = '${name}', X = true, \"it's\" = \"'\" }\n";
    let pools = plan(body).unwrap().iis.unwrap().app_pools;
    assert_eq!(
        serde_json::to_string(&pools).unwrap(),
        r#"[{"name":"a","settings":{"b.c":"1","d":"x"},"environment":{"X":"true","Y":"app","it's":"'"}}]"#
    );
}
