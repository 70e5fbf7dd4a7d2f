use proptest::prelude::*;

use super::super::change::IisChangeError;
use super::super::config::Schema;
use super::*;

const FILE: &str = include_str!("../config/tests/applicationHost.config");
const SCHEMA: &str = include_str!("../config/tests/schema.xml");
const SITE: &str = "system.applicationHost/sites";
const POOL: &str = "system.applicationHost/applicationPools";

fn server() -> Server {
    let schema = Schema::read([("schema.xml", SCHEMA.as_bytes())]).unwrap();
    Server::read(FILE.as_bytes(), schema).unwrap()
}

fn text(text: &str) -> ParameterValue {
    ParameterValue::Text(text.to_owned())
}

fn table<const N: usize>(entries: [(&str, ParameterValue); N]) -> ParameterValue {
    let entries = entries.into_iter();
    ParameterValue::Table(
        entries
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

fn order(name: &str, parameters: &[(&str, ParameterValue)]) -> Result<IisChange, IisChangeError> {
    let parameters: Vec<(String, ParameterValue)> = parameters
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let parameters = &parameters;
    read(CmdletCall { name, parameters }, &server())
}

fn asked(name: &str, parameters: &[(&str, ParameterValue)]) -> Vec<String> {
    let order = order(name, parameters);
    let order = order.unwrap_or_else(|error| panic!("{name} {parameters:?}: {error}"));
    let into = order.into.map(|of| format!("in {of}'s web.config"));
    let folder = order.folder.map(|folder| format!("needs {}", folder.path));
    let edits = order.edits.iter().map(ToString::to_string);
    edits.chain(into).chain(folder).collect()
}

/// A cmdlet with its parameters: `NAME|PARAMETER=TEXT|PARAMETER=#NUMBER|SWITCH`.
fn call(text: &str) -> (&str, Vec<(&str, ParameterValue)>) {
    let mut words = text.split('|');
    let name = words.next().unwrap();
    let parameters = words.map(|word| match word.split_once('=') {
        Some((name, value)) => match value.strip_prefix('#') {
            Some(number) => (name, ParameterValue::Number(number.parse().unwrap())),
            None => (name, ParameterValue::Text(value.to_owned())),
        },
        None => (word, ParameterValue::Bool(true)),
    });
    (name, parameters.collect())
}

fn asked_by(text: &str) -> Vec<String> {
    let (name, parameters) = call(text);
    asked(name, &parameters)
}

fn refusal(name: &str, parameters: &[(&str, ParameterValue)]) -> IisChangeError {
    match order(name, parameters) {
        Ok(order) => panic!("{name} {parameters:?}: {order:?}"),
        Err(error) => error,
    }
}

#[test]
fn sites_and_what_is_in_them_are_made() {
    assert_eq!(
        asked_by(r"new-website|name=w|port=#8080|physicalpath=c:\w|applicationpool=DefaultAppPool"),
        [
            format!("{SITE} +[name='w']"),
            format!("{SITE} +[name='w'].[path='/']"),
            format!("{SITE} [name='w'].[path='/'].applicationPool:DefaultAppPool"),
            format!("{SITE} +[name='w'].[path='/'].[path='/']"),
            format!(r"{SITE} [name='w'].[path='/'].[path='/'].physicalPath:c:\w"),
            format!("{SITE} [name='w'].bindings:[protocol='http',bindingInformation='*:8080:']"),
            r"needs c:\w".to_owned(),
        ]
    );
    assert_eq!(
        asked_by(r"new-webapplication|name=a/b|site=default web site|physicalpath=C:\w|force"),
        [
            format!("{SITE} +[name='default web site'].[path='/a/b']"),
            format!("{SITE} +[name='default web site'].[path='/a/b'].[path='/']"),
            format!(r"{SITE} [name='default web site'].[path='/a/b'].[path='/'].physicalPath:C:\w"),
        ]
    );
    assert_eq!(
        asked_by("remove-website|name=Default Web Site"),
        [format!("{SITE} -[name='Default Web Site']")]
    );
    assert_eq!(
        asked_by("new-webbinding|name=Default Web Site|port=81"),
        [format!(
            "{SITE} +[name='Default Web Site'].bindings.[protocol='http',bindingInformation='*:81:']"
        )]
    );
    let start = order("start-website", &[("name", text("Default Web Site"))]).unwrap();
    assert!(start.is_skipped && start.edits.is_empty());
}

#[test]
fn items_of_the_drive_are_sites_and_pools() {
    use ParameterValue::{Bool, Number};

    let property = |path: &str, name: &str, value: ParameterValue| {
        asked(
            "set-itemproperty",
            &[("path", text(path)), ("name", text(name)), ("value", value)],
        )
    };
    let pool = r"\AppPools\DefaultAppPool";
    let site = r"\Sites\Default Web Site\";
    let network_service = "processModel.identityType:NetworkService";
    let account = table([("identitytype", text("NetworkService"))]);
    for (name, value, expected) in [
        ("processmodel.identityType", Number(2), network_service),
        ("autoStart", Number(0), "autoStart:false"),
        ("autoStart", Bool(true), "autoStart:true"),
        ("managedRuntimeVersion", text(""), "managedRuntimeVersion:"),
        ("processModel", account, network_service),
    ] {
        assert_eq!(
            property(pool, name, value),
            [format!("{POOL} [name='DefaultAppPool'].{expected}")]
        );
    }
    let information = ("bindingInformation", text("*:81:"));
    let binding = table([("protocol", text("http")), information]);
    let bound = ".bindings:[protocol='http',bindingInformation='*:81:']";
    let folder = r".[path='/'].[path='/'].physicalPath:C:\w";
    for (name, value, expected) in [
        ("physicalPath", text(r"C:\w"), folder),
        (
            "applicationPool",
            text("p"),
            ".[path='/'].applicationPool:p",
        ),
        ("serverAutoStart", text("true"), ".serverAutoStart:true"),
        (
            "logFile.directory",
            text(r"C:\l"),
            r".logFile.directory:C:\l",
        ),
        ("bindings", binding, bound),
    ] {
        assert_eq!(
            property(site, name, value),
            [format!("{SITE} [name='Default Web Site']{expected}")]
        );
    }
    assert_eq!(
        asked("new-item", &[("path", text(r"\AppPools\p"))]),
        [format!("{POOL} +[name='p']")]
    );
}

#[test]
fn filters_and_places_lead_to_sections() {
    let set = |filter: &str, more: &[(&str, ParameterValue)]| {
        let own = [
            ("filter", text(filter)),
            ("name", text("errormode")),
            ("value", text("Detailed")),
        ];
        asked("set-webconfigurationproperty", &[&own[..], more].concat())
    };
    let section = "system.webServer/httpErrors errorMode:Detailed";
    for (more, expected) in [
        (&[][..], &[section][..]),
        (&[("pspath", text("MACHINE/WEBROOT/APPHOST"))], &[section]),
        (&[("pspath", text(r"IIS:\"))], &[section]),
        (
            &[
                ("pspath", text(r"IIS:\")),
                ("location", text("Default Web Site")),
            ],
            &["system.webServer/httpErrors errorMode:Detailed for Default Web Site"],
        ),
        (
            &[("pspath", text(r"IIS:\Sites\Default Web Site\a"))],
            &[section, "in Default Web Site/a's web.config"],
        ),
        (
            &[("pspath", text("MACHINE/WEBROOT/APPHOST/Default Web Site"))],
            &[section, "in Default Web Site's web.config"],
        ),
    ] {
        assert_eq!(set("/system.WebServer/HTTPErrors", more), expected);
    }
    assert_eq!(
        asked_by(
            "set-webconfiguration|filter=/system.webServer/httpErrors/@errorMode|value=Detailed"
        ),
        [section]
    );
    let mime = table([("fileExtension", text(".a")), ("mimeType", text("b/c"))]);
    for name in ["add-webconfigurationproperty", "add-webconfiguration"] {
        assert_eq!(
            asked(
                name,
                &[
                    ("filter", text("system.webServer/staticContent")),
                    ("name", text(".")),
                    ("value", mime.clone())
                ]
            ),
            ["system.webServer/staticContent +[fileExtension='.a',mimeType='b/c']"]
        );
    }
    assert_eq!(
        asked(
            "add-webconfigurationproperty",
            &[
                ("filter", text(POOL)),
                ("name", text(".")),
                (
                    "value",
                    table([
                        ("name", text("p")),
                        ("queueLength", ParameterValue::Number(5)),
                        (
                            "processModel",
                            table([("identityType", ParameterValue::Number(4))])
                        ),
                    ])
                ),
            ]
        ),
        [
            format!("{POOL} +[name='p',queueLength='5']"),
            format!(
                "{POOL} [name='p',queueLength='5'].processModel.identityType:ApplicationPoolIdentity"
            ),
        ]
    );
}

/// What fails on Windows, and what is not certain.
const REFUSED: &str = r#"
new-website|physicalpath=C:\w|name=Default Web Site => fails: site "Default Web Site" already exists
new-website|physicalpath=C:\w|name=default web site|force => unclear: the effect of -Force on it is unknown
new-website|physicalpath=C:\w|name=w|port=x => fails: invalid port "x"
new-website|physicalpath=C:\w => unclear: -name is missing
new-website|name=w => unclear: -physicalpath is missing
new-website|name=w|physicalpath=./w => unclear: not an absolute path
new-webapplication|name=a|site=x => fails: site "x" not found
stop-website|name=x => fails: site "x" not found
remove-webbinding|name=x => unclear: remove-webbinding is not supported
new-item|path=\SslBindings\0.0.0.0!443 => unclear: IIS:\SslBindings\0.0.0.0!443 is not supported
set-webconfigurationproperty|filter=/system.webServer/httpErors|name=a|value=b => unclear: the schema has no section
set-itemproperty|path=\AppPools\p|name=processModel.idleTimeout|value=#0 => unclear: the effect of 0 for idleTimeout is unknown
"#;

#[test]
fn what_fails_on_windows_and_what_is_not_certain_is_distinguished() {
    let check = |error: &IisChangeError, kind: &str, printed: &str| {
        let is_unclear = matches!(error, IisChangeError::Unclear(_));
        assert_eq!(is_unclear, kind == "unclear", "{error:?}");
        assert!(error.to_string().contains(printed), "{error:?}");
    };
    for case in REFUSED.trim().lines() {
        let (asked, expected) = case.split_once(" => ").unwrap();
        let (kind, printed) = expected.split_once(": ").unwrap();
        let (name, parameters) = call(asked);
        check(&refusal(name, &parameters), kind, printed);
    }
    let whole = refusal(
        "set-webconfigurationproperty",
        &[
            ("filter", text("/system.webServer/staticContent")),
            ("name", text(".")),
            ("value", table([("a", text("b"))])),
        ],
    );
    check(&whole, "unclear", "cannot set a whole collection");
}

fn value() -> impl Strategy<Value = ParameterValue> {
    let leaf = prop_oneof![
        ".{0,8}".prop_map(ParameterValue::Text),
        any::<i64>().prop_map(ParameterValue::Number),
        any::<bool>().prop_map(ParameterValue::Bool),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(ParameterValue::List),
            proptest::collection::vec((".{0,6}", inner), 0..3).prop_map(ParameterValue::Table),
        ]
    })
}

proptest! {
    #[test]
    fn no_parameters_make_it_panic(
        name in "(new|set|remove|add|clear|start)-(website|webapppool|webbinding|webconfiguration|webconfigurationproperty|itemproperty|item|iissite)",
        filter in "(system.webServer/staticContent)?[a-z/@='\\[\\]]{0,10}",
        values in proptest::collection::vec(("(name|value|path|filter|physicalpath|site|bindings|pspath|location|atelement|atindex|port|metadata)", value()), 0..6),
    ) {
        let own = [("filter".to_owned(), ParameterValue::Text(filter))];
        let parameters: Vec<(String, ParameterValue)> = own.into_iter().chain(values).collect();
        let mut server = server();
        let call = CmdletCall { name: &name, parameters: &parameters };
        if let Ok(order) = read(call, &server) {
            for edit in &order.edits {
                let _ = server.apply(edit);
            }
        }
    }
}
