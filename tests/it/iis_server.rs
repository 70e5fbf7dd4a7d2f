//! The server configuration of IIS, changed on bases that have one, without Windows.

use std::fs;
use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::put_at;
use wincimg_testkit::layout::{entries_in, layers_in};
use wincimg_testkit::test_bases::{
    FILE, FOLDER, LayerTar, bottom_layer, create, delta_hive, descriptor, image_of, made_software,
    made_system,
};
use wincimg_testkit::windows_base::StandIn;

use crate::failure::{Failure, warning};

const VERSION: &str = "10.0.17763.973";
pub(crate) const CONFIG: &str = "Files/Windows/System32/inetsrv/config/applicationHost.config";
pub(crate) const SERVER: &str = wincimg_testkit::iis::SERVER;
const SCHEMA: &str = wincimg_testkit::iis::SCHEMA;
const SETTINGS: &str = wincimg_testkit::iis::SETTINGS;

/// Restricted permissions of the base's configuration.
const SECURED: &str = "O:BAG:SYD:PAI(A;;FA;;;SY)(A;;FA;;;BA)";

const PATH: &str =
    r"%SystemRoot%\system32;%SystemRoot%;%SystemRoot%\System32\WindowsPowerShell\v1.0\";

/// A base with IIS and the programs in lines of Dockerfiles.
pub(crate) fn base_with_iis(version: &str) -> StandIn {
    image_of(version, layers_with_iis())
}

/// The layers of that base.
pub(crate) fn layers_with_iis() -> Vec<Vec<u8>> {
    let bottom = bottom_layer(&made_system(PATH), &made_software());
    let mut iis = LayerTar::default();
    let schema = "Files/Windows/System32/inetsrv/config/schema";
    let server = SERVER.replace('\n', "\r\n");
    iis.file(CONFIG, server.as_bytes(), Some(SECURED))
        .folder(schema, Some(FOLDER))
        .file(
            &format!("{schema}/IIS_schema.xml"),
            SCHEMA.as_bytes(),
            Some(FILE),
        )
        .folder("Files/inetpub", Some(FOLDER))
        .folder("Files/inetpub/wwwroot", Some(FOLDER));
    for program in [
        "cmd.exe",
        "inetsrv/appcmd.exe",
        "WindowsPowerShell/v1.0/powershell.exe",
    ] {
        let path = format!("Files/Windows/System32/{program}");
        iis.file(&path, b"MZ", Some(FILE));
    }
    let frameworks = ["", r"WOW6432Node\"].map(|part| {
        create(&format!(
            r"HKLM\SOFTWARE\{part}Microsoft\.NETFramework\v4.0.30319"
        ))
    });
    iis.folder("Hives", None)
        .file("Hives/Software_Delta", &delta_hive(&frameworks), None);
    vec![bottom.tar(), iis.tar()]
}

/// A machine, and a registry with bases with and without IIS.
pub(crate) struct Site {
    registry: FakeRegistry,
    pub(crate) folder: TempDir,
}

impl Site {
    pub(crate) async fn new() -> Self {
        let registry = FakeRegistry::start();
        let iis = base_with_iis(VERSION);
        let mut none = LayerTar::default();
        none.file(
            "Files/Windows/System32/inetsrv/config/.wh.applicationHost.config",
            b"",
            None,
        );
        let bottom = bottom_layer(&made_system(PATH), &made_software());
        let none = image_of(VERSION, vec![bottom.tar(), none.tar()]);
        for (name, base) in [
            ("dotnet/framework/aspnet", &iis),
            ("windows/servercore/iis", &iis),
            ("windows/nanoserver", &none),
        ] {
            put_at(base, &format!("{}/{name}:{VERSION}", registry.host())).await;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("site")).unwrap();
        fs::write(folder.path().join("site/index.html"), "hello").unwrap();
        Self { registry, folder }
    }

    pub(crate) fn recipe(&self, base: &str, settings: &str) {
        let text = format!("name = \"x\"\nbase = \"{base}\"\n{settings}");
        fs::write(self.folder.path().join("recipe.toml"), text).unwrap();
    }

    /// Builds with the direct engine, without a daemon, to the folder `out`.
    pub(crate) fn build(&self, arguments: &[&str]) -> Assert {
        let _ = fs::remove_dir_all(self.folder.path().join("out"));
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command
            .current_dir(self.folder.path())
            .env("DOCKER_CONFIG", self.folder.path())
            .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
            .env("SOURCE_DATE_EPOCH", "1700000000")
            .arg("build")
            .args(arguments)
            .args(["--host-build", "17763.973", "--output", "oci:out"])
            .args(["--insecure-registry", "127.0.0.1", "--base-registry"])
            .arg(self.registry.host())
            .arg("--cache-dir")
            .arg(self.folder.path().join("cache"))
            .timeout(Duration::from_mins(1));
        command.assert()
    }

    /// A file of the built layer, and its descriptor.
    pub(crate) fn built(&self, name: &str) -> Option<(String, Vec<u8>)> {
        let layers = layers_in(&self.folder.path().join("out"));
        let entries = entries_in(layers.last().unwrap());
        let found = entries.iter().find(|entry| entry.path == name)?;
        let text = String::from_utf8_lossy(&found.bytes).into_owned();
        Some((text, found.security().unwrap_or_default()))
    }
}

#[test(multi_thread)]
async fn the_recipe_for_iis_sets_its_pool_without_a_daemon() {
    let site = Site::new().await;
    let settings = "app_pool_settings=processModel.idleTimeout=00:00:00,startMode=alwaysrunning";
    let arguments = ["iis", "--set", settings, "--set", "file_extensions=json"];
    site.build(&arguments).success();
    let (text, security) = site.built(CONFIG).unwrap();
    assert_eq!(security, descriptor(SECURED), "the base's own");
    let before = r#"<add name="DefaultAppPool" managedRuntimeVersion='v4.0'   />"#;
    let after = "<add name=\"DefaultAppPool\" managedRuntimeVersion='v4.0' startMode=\"AlwaysRunning\">\r\n                \
                 <processModel idleTimeout=\"00:00:00\" />\r\n            </add>";
    let server = SERVER.replace('\n', "\r\n");
    assert_eq!(text, server.replace(before, after));
    assert!(site.built("Files/inetpub/wwwroot/web.config").is_some());
    // Facts about the layers are cached now.
    let asked = site.registry.requests().len();
    site.build(&arguments).success();
    assert_eq!(site.built(CONFIG).unwrap().0, text);
    assert!(site.registry.requests().len() - asked < asked);
    // Without such settings, nothing is read or written.
    site.build(&["iis"]).success();
    assert!(site.built(CONFIG).is_none());
}

#[test(multi_thread)]
async fn the_web_config_of_the_base_keeps_what_it_says() {
    let site = Site::new().await;
    let name = "Files/inetpub/wwwroot/web.config";
    let own = "<configuration>\r\n  <system.webServer>\r\n    <httpErrors errorMode=\"Detailed\" />\r\n  \
               </system.webServer>\r\n</configuration>\r\n";
    let mut web = LayerTar::default();
    web.file(name, own.as_bytes(), Some(SECURED));
    let base = image_of(VERSION, [layers_with_iis(), vec![web.tar()]].concat());
    put_at(
        &base,
        &format!("{}/acme/web:{VERSION}", site.registry.host()),
    )
    .await;
    site.recipe(
        "acme/web",
        "[iis]\nmime_types = { webp = \"image/webp\" }\n",
    );
    site.build(&["."]).success();
    let (text, security) = site.built(name).unwrap();
    assert_contains!(text, "<httpErrors errorMode=\"Detailed\" />", "image/webp");
    assert_eq!(security, descriptor(SECURED), "the base's own");
    // A file of the recipe replaces that of the base.
    fs::write(
        site.folder.path().join("site/web.config"),
        "<configuration />",
    )
    .unwrap();
    let files = "[[files]]\ncontext = \"site\"\nto = 'C:\\inetpub\\wwwroot'\n\
                 [iis]\nmime_types = { webp = \"image/webp\" }\n";
    site.recipe("acme/web", files);
    site.build(&["."]).success();
    let (text, _) = site.built(name).unwrap();
    assert!(
        !text.contains("httpErrors") && text.contains("image/webp"),
        "{text}"
    );
}

#[test(multi_thread)]
async fn every_key_becomes_lines_of_the_servers_configuration() {
    let site = Site::new().await;
    site.recipe("iis", SETTINGS);
    site.build(&["."]).success();
    let (text, _) = site.built(CONFIG).unwrap();
    assert_contains!(
        text,
        r#"<add name="api" managedRuntimeVersion="">"#,
        r#"<site name="Api" id="2">"#,
        r#"<binding protocol="https" bindingInformation="*:8443:api.corp" />"#,
        r#"<virtualDirectory path="/files" physicalPath="C:\files" />"#,
        r#"<add name="second" path="*.b" verb="*" modules="M" />"#,
        r#"<location path="Api/v2">"#,
        r#"<clientCache cacheControlMode="DisableCache" />"#
    );
    let mut after = text.lines();
    for line in SERVER.lines() {
        assert!(after.any(|other| other == line), "{line} is lost");
    }
    site.build(&[".", "--dry-run"]).success().stdout(contains(
        "iis         system.applicationHost/sites [name='Api'].limits.maxConnections:100\n",
    ));
}

#[test(multi_thread)]
async fn a_site_on_the_binding_of_another_one_is_warned_about() {
    let site = Site::new().await;
    let shop = |settings: &str| {
        let shop =
            "[[iis.sites]]\nname = \"Shop\"\npath = 'C:\\shop'\nbindings = [\"http/*:80:\"]\n";
        site.recipe("iis", &format!("{shop}{settings}"));
        site.build(&["."]).success()
    };
    let warned = || warning(&["\"Default Web Site\"", "\"Shop\"", "http/*:80:"]);
    shop("").stderr(warned());
    shop("settings = { serverAutoStart = false }\n").stderr(warned().not());
    let moved = "[[iis.sites]]\nname = \"Default Web Site\"\npath = 'C:\\inetpub\\wwwroot'\n\
                 bindings = [\"http/*:81:\"]\n";
    shop(moved).stderr(warned().not());
}

/// A dry run needs no base for a value that no IIS accepts.
#[test(multi_thread)]
async fn a_value_that_no_iis_accepts_is_refused_in_a_plan_too() {
    let site = Site::new().await;
    let settings = "[iis.app_pool.settings]\n\"processModel.idleTimeout\" = 20\n";
    site.recipe("iis", settings);
    let refused = site.build(&[".", "--dry-run", "--format", "json"]).code(2);
    Failure::of(refused.get_output()).is("recipe/invalid", &["idleTimeout", "\"20\""]);
}

#[test(multi_thread)]
async fn what_the_base_does_not_have_is_refused_with_what_was_meant() {
    let site = Site::new().await;
    for (base, settings, code, values, hint) in [
        (
            "nanoserver",
            "[[iis.app_pools]]\nname = \"a\"\n",
            "base/no-iis",
            &[][..],
            "base = \"aspnet\"",
        ),
        (
            "iis",
            "[iis.app_pool.settings]\n\"processModel.idleTimeuot\" = \"00:00:00\"\n",
            "recipe/iis",
            &["processModel", "\"idleTimeuot\""],
            "\"idleTimeout\"",
        ),
        (
            "iis",
            "[iis.app_pool.settings]\n\"processModel.idleTimeout\" = \"20\"\n",
            "recipe/invalid",
            &["recipe.toml:", "idleTimeout", "\"20\""],
            "",
        ),
        (
            "iis",
            "[iis.app_pool.settings]\nstartMode = \"Never\"\n",
            "recipe/iis",
            &["startMode", "\"Never\""],
            "",
        ),
        (
            "iis",
            "[[iis.sites]]\nname = \"Shop\"\nid = 1\npath = 'C:\\shop'\nbindings = [\"http/*:81:\"]\n",
            "recipe/iis",
            &["[name='Shop'", "sites already has the entry [id='1']"],
            "",
        ),
        (
            "iis",
            "[[iis.config]]\nsection = \"system.webServer/httpErors\"\nset = { errorMode = \"Detailed\" }\n",
            "recipe/iis",
            &["\"system.webServer/httpErors\""],
            "\"system.webServer/httpErrors\"",
        ),
        (
            "iis",
            "[[iis.handlers]]\nname = \"a\"\npath = \"*.a\"\nsite = \"Default Web Stie\"\n",
            "recipe/iis",
            &["\"Default Web Stie\""],
            "\"Default Web Site\"",
        ),
        (
            "iis",
            "[[iis.config]]\nsection = \"system.webServer/modules\"\nlocation = \"Default Web Site\"\nremove = [\"[name='StaticFileModule']\"]\n",
            "recipe/iis",
            &["StaticFileModule", "lockItem"],
            "",
        ),
    ] {
        site.recipe(base, settings);
        let refused = site.build(&[".", "--format", "json"]).code(2);
        Failure::of(refused.get_output())
            .is(code, values)
            .names(&[hint]);
        assert!(!site.folder.path().join("out").exists(), "{settings}");
    }
}
