use super::super::tests::plan;

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
    let cased = format!("[env]\nMode = 'test'\n{other}{of_default}");
    let of_shop = r"'C:\ServiceMonitor.exe', 'W3SVC', 'shop'";
    let in_shop = format!("{mode}{other}{}", pool("shop"));
    for (started, body, part) in [
        (monitor, format!("{mode}{other}{of_default}"), "has MODE:"),
        (monitor, cased, "has Mode:"),
        (of_shop, in_shop, "pool shop, "),
        (monitor, deleted.clone(), "DefaultAppPool, which is deleted"),
        (
            monitor,
            deleted.replace("system.applicationHost/", ""),
            "deleted",
        ),
        (monitor, "[env]\nA = '50% %18'\n".to_owned(), "write %2518"),
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
        (
            monitor,
            "[env]\nA = '100% %2518 %PATH%'\nTEMP = '%18'\n".to_owned(),
        ),
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
fn values_that_iis_accepts_are_taken() {
    let sound = "settings = 'queueLength=10, recycling.periodicRestart.time=29:00:00, other=20'";
    plan(&format!("[iis.app_pool]\n{sound}\n")).unwrap();
}

#[test]
fn a_pool_has_its_settings_and_variables() {
    let body = "[[iis.app_pools]]\nname = 'a'\nsettings = 'b.c=1, d=x'\n\
                environment = { Y = '${name}', X = true, \"it's\" = \"'\" }\n";
    let pools = plan(body).unwrap().iis.unwrap().app_pools;
    let expected = r#"[{"name":"a","settings":{"b.c":"1","d":"x"},"environment":{"X":"true","Y":"app","it's":"'"}}]"#;
    assert_eq!(serde_json::to_string(&pools).unwrap(), expected);
}
