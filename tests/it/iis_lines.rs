//! IIS in RUN lines of whole Dockerfiles, in common styles: the result is byte for byte that of a
//! recipe's `[iis]`.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;
use quick_xml::events::Event;

use crate::failure::{Failure, warning};
use crate::iis_server::{CONFIG, SERVER, Site};

const POWERSHELL: &str = "# escape=`\nFROM mcr.microsoft.com/windows/servercore/iis:ltsc2019\n\
    SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop'; $ProgressPreference = 'SilentlyContinue';\"]\n";
const CMD: &str = "# escape=`\nFROM mcr.microsoft.com/windows/servercore/iis:ltsc2019\n";
const WEB_CONFIG: &str = "Files/inetpub/wwwroot/web.config";

impl Site {
    /// Builds a Dockerfile in its own folder.
    fn dockerfile(&self, start: &str, lines: &str) -> assert_cmd::assert::Assert {
        self.write_dockerfile(start, lines);
        self.build(&["./app"])
    }

    fn write_dockerfile(&self, start: &str, lines: &str) {
        let folder = self.folder.path().join("app");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("Dockerfile"), format!("{start}{lines}\n")).unwrap();
    }

    /// The server configuration of a Dockerfile.
    fn of_dockerfile(&self, start: &str, lines: &str) -> String {
        self.dockerfile(start, lines).success();
        self.built(CONFIG).unwrap().0
    }

    /// The server configuration of a recipe.
    fn of_recipe(&self, settings: &str) -> String {
        self.recipe("iis", settings);
        self.build(&["."]).success();
        self.built(CONFIG).unwrap().0
    }

    /// The error of a Dockerfile, with its line.
    fn refused(&self, start: &str, lines: &str) -> Failure {
        self.write_dockerfile(start, lines);
        let refused = self.build(&["./app", "--format", "json"]).failure();
        Failure::of_dockerfile(refused.get_output())
    }
}

/// The content of an XML file, independent of its formatting: elements by their paths, with their
/// attributes.
pub(crate) fn elements(text: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let mut path: Vec<String> = Vec::new();
    let mut all = Vec::new();
    loop {
        let event = reader.read_event().unwrap();
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                let name = String::from_utf8(tag.name().as_ref().to_vec()).unwrap();
                let attributes = tag.attributes().map(|attribute| {
                    let attribute = attribute.unwrap();
                    let name = String::from_utf8(attribute.key.as_ref().to_vec()).unwrap();
                    format!(
                        " {name}={}",
                        attribute
                            .normalized_value(quick_xml::XmlVersion::Explicit1_0)
                            .unwrap()
                    )
                });
                let attributes: String = attributes.collect();
                all.push(format!("{}/{name}{attributes}", path.join("/")));
                if matches!(event, Event::Start(_)) {
                    path.push(name);
                }
            }
            Event::End(_) => {
                path.pop();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(path.is_empty());
    all
}

#[test(multi_thread)]
async fn cmdlets_write_what_a_recipe_writes() {
    let site = Site::new().await;
    let lines = r"
RUN New-Item -Path C:\api, C:\v2 -ItemType Directory
RUN Import-Module WebAdministration; `
    New-WebAppPool -Name 'api'; `
    Set-ItemProperty IIS:\AppPools\api -Name managedRuntimeVersion -Value ''; `
    Set-ItemProperty IIS:\AppPools\api -Name processModel -Value @{identitytype=2}; `
    Set-ItemProperty 'IIS:\AppPools\api' -Name processModel.idleTimeout -Value '00:00:00'; `
    New-Website -Name 'Api' -Port 8080 -PhysicalPath 'C:\api' -ApplicationPool 'api'; `
    Start-Website -Name Api
RUN New-WebApplication -Name v2 -Site Api -PhysicalPath C:\v2 -ApplicationPool api; `
    New-WebBinding -Name Api -Protocol https -Port 8443 -HostHeader api.corp";
    let settings = r#"
[[iis.app_pools]]
name = "api"
settings = { managedRuntimeVersion = "", "processModel.identityType" = "NetworkService", "processModel.idleTimeout" = "00:00:00" }
[[iis.sites]]
name = "Api"
path = 'C:\api'
app_pool = "api"
bindings = ["http/*:8080:", "https/*:8443:api.corp"]
applications = { "/v2" = { path = 'C:\v2', app_pool = "api" } }
"#;
    let made = site.of_dockerfile(POWERSHELL, lines);
    let expected = site.of_recipe(settings);
    assert_eq!(elements(&made).len(), elements(&expected).len());
    assert_eq!(made, expected);
    assert!(
        elements(&made).contains(
            &"configuration/system.applicationHost/applicationPools/add/processModel \
          identityType=NetworkService idleTimeout=00:00:00"
                .to_owned()
        )
    );
    site.build(&["./app", "--dry-run"])
        .success()
        .stdout(contains("New-Website -Name 'Api'"))
        .stdout(contains("[name='Api'].bindings:"));
    let mut after = made.lines();
    for line in SERVER.lines() {
        assert!(after.any(|other| other == line), "{line} is lost");
    }
}

#[test(multi_thread)]
async fn appcmd_writes_what_a_recipe_writes() {
    let site = Site::new().await;
    let lines = r#"
RUN mkdir C:\api && %windir%\system32\inetsrv\appcmd.exe add apppool /name:api /startMode:alwaysrunning && `
    %windir%\system32\inetsrv\appcmd add site /name:Api /bindings:http/*:8080: /physicalPath:C:\api && `
    %windir%\system32\inetsrv\appcmd set app "Api/" /applicationPool:api
RUN %windir%\system32\inetsrv\appcmd set config "Api" -section:staticContent /+[fileExtension='.x',mimeType='a/b'] /clientCache.cacheControlMode:DisableCache /commit:apphost
RUN ["C:\\Windows\\System32\\inetsrv\\appcmd.exe", "set", "apppool", "/apppool.name:DefaultAppPool", "/processModel.idleTimeout:00:00:00"]"#;
    let settings = r#"
[iis.app_pool]
settings = { "processModel.idleTimeout" = "00:00:00" }
[[iis.app_pools]]
name = "api"
settings = { startMode = "AlwaysRunning" }
[[iis.sites]]
name = "Api"
path = 'C:\api'
app_pool = "api"
bindings = ["http/*:8080:"]
[[iis.config]]
section = "system.webServer/staticContent"
location = "Api"
add = ["[fileExtension='.x',mimeType='a/b']"]
set = { "clientCache.cacheControlMode" = "DisableCache" }
"#;
    let mut made = elements(&site.of_dockerfile(CMD, lines));
    let mut expected = elements(&site.of_recipe(settings));
    // The recipe sets the other pool after new ones.
    made.sort_unstable();
    expected.sort_unstable();
    assert_eq!(made, expected);
}

#[test(multi_thread)]
async fn what_a_line_changed_the_same_line_and_later_ones_see() {
    let site = Site::new().await;
    let appcmd = r"%windir%\system32\inetsrv\appcmd";
    let config = r"C:\Windows\System32\inetsrv\config\applicationHost.config";
    let lines = format!(
        "RUN {appcmd} add apppool /name:one && copy {config} C:\\in-between.config && {appcmd} add apppool /name:two\n\
         RUN copy {config} C:\\later.config\n\
         RUN {appcmd} delete apppool one"
    );
    site.dockerfile(CMD, &lines).success();
    let last = site.built(CONFIG).unwrap().0;
    assert!(last.contains("<add name=\"two\" />") && !last.contains("\"one\""));
    let again = lines.rsplit_once('\n').unwrap().0;
    site.dockerfile(CMD, again).success();
    let later = site.built("Files/later.config").unwrap().0;
    assert!(later.contains("\"one\"") && later.contains("\"two\""));
    let first = again.rsplit_once('\n').unwrap().0;
    let made = site.of_dockerfile(CMD, first);
    assert_eq!(made, later);
    let between = site.built("Files/in-between.config").unwrap().0;
    assert!(between.contains("\"one\"") && !between.contains("\"two\""));
    // A line that writes the file itself overrides earlier lines.
    fs::write(site.folder.path().join("app/own.config"), SERVER).unwrap();
    let lines = format!(
        "COPY own.config /\nRUN {appcmd} add apppool /name:one && copy /y C:\\own.config {config}"
    );
    let made = site.of_dockerfile(CMD, &lines);
    assert_eq!(made, SERVER);
}

#[test(multi_thread)]
async fn a_path_of_a_site_leads_to_its_web_config() {
    let site = Site::new().await;
    let set = "Set-WebConfigurationProperty -PSPath 'IIS:\\Sites\\Default Web Site' -Filter";
    let lines = format!(
        "RUN {set} '/system.webServer/httpErrors' -Name errorMode -Value Detailed\n\
         RUN Add-WebConfigurationProperty -PSPath 'MACHINE/WEBROOT/APPHOST/Default Web Site' \
         -Filter system.webServer/staticContent -Name '.' -Value @{{fileExtension='.x'; mimeType='a/b'}}"
    );
    site.dockerfile(POWERSHELL, &lines).success();
    assert!(site.built(CONFIG).is_none());
    let (text, _) = site.built(WEB_CONFIG).unwrap();
    assert_eq!(
        elements(&text),
        [
            "/configuration",
            "configuration/system.webServer",
            "configuration/system.webServer/httpErrors errorMode=Detailed",
            "configuration/system.webServer/staticContent",
            "configuration/system.webServer/staticContent/mimeMap fileExtension=.x mimeType=a/b",
        ]
    );
    // The file added by the build keeps its content.
    fs::write(
        site.folder.path().join("app/web.config"),
        "<configuration><!-- own --><appSettings /></configuration>",
    )
    .unwrap();
    let copied = format!("COPY web.config /inetpub/wwwroot/\n{lines}");
    site.dockerfile(POWERSHELL, &copied).success();
    let (text, _) = site.built(WEB_CONFIG).unwrap();
    assert!(text.contains("<!-- own --><appSettings />") && text.contains("a/b"));
    // A locked section is unavailable to sites until it is unlocked.
    let server = "RUN C:\\Windows\\System32\\inetsrv\\appcmd.exe lock config -section:httpErrors\n";
    site.refused(POWERSHELL, &format!("{server}{lines}"))
        .is("dockerfile/fails", &["\"system.webServer/httpErrors\""]);
    let unlock = server.replace("lock", "unlock");
    let made = format!("{server}{unlock}{lines}");
    site.dockerfile(POWERSHELL, &made).success();
    assert!(site.built(WEB_CONFIG).unwrap().0.contains("Detailed"));
}

#[test(multi_thread)]
async fn sites_may_share_a_binding_until_the_last_line() {
    let site = Site::new().await;
    let warned = || warning(&["\"Default Web Site\"", "\"w\"", "http/*:80:"]);
    let made = "RUN New-Website -Name w -PhysicalPath C:\\inetpub\\wwwroot";
    site.dockerfile(POWERSHELL, made).success().stderr(warned());
    let appcmd = r"RUN C:\Windows\System32\inetsrv\appcmd.exe";
    let default = "\"Default Web Site\"";
    for last in [
        format!("{appcmd} delete site {default}"),
        format!("{appcmd} set site {default} /bindings:http/*:81:"),
        format!("{appcmd} set site {default} /serverAutoStart:false"),
    ] {
        let lines = format!("{appcmd} add site /name:w /bindings:http/*:80:\n{last}");
        site.dockerfile(CMD, &lines)
            .success()
            .stderr(warned().not());
    }
}

#[test(multi_thread)]
async fn schema_files_of_other_features_are_read() {
    let site = Site::new().await;
    let schema = "<configSchema><sectionSchema name=\"system.applicationHost/sites\">\
        <collection addElement=\"site\"><attribute name=\"name\" type=\"string\" isUniqueKey=\"true\" />\
        <element name=\"ftpServer\"><attribute name=\"allowUTF8\" type=\"bool\" /></element>\
        </collection></sectionSchema></configSchema>";
    let app = site.folder.path().join("app");
    fs::create_dir_all(&app).unwrap();
    fs::write(app.join("Ftp_schema.xml"), schema).unwrap();
    let lines = "COPY Ftp_schema.xml /Windows/System32/inetsrv/config/schema/\n\
        RUN C:\\Windows\\System32\\inetsrv\\appcmd.exe set site \"Default Web Site\" /ftpServer.allowUTF8:False";
    let made = site.of_dockerfile(CMD, lines);
    assert_contains!(made, "<ftpServer allowUTF8=\"false\" />");
}

#[test(multi_thread)]
async fn a_line_may_see_to_the_failure_of_appcmd() {
    let site = Site::new().await;
    let appcmd = r"C:\Windows\System32\inetsrv\appcmd.exe";
    let add = format!("{appcmd} add apppool /name:shop");
    for (start, line) in [
        (CMD, format!("RUN {appcmd} list apppool shop || {add}")),
        (CMD, format!("RUN {appcmd} delete site Nope & {add}")),
        (POWERSHELL, format!("RUN {appcmd} delete site Nope; {add}")),
        (
            CMD,
            "WORKDIR C:\\Windows\\System32\\inetsrv\nRUN appcmd add apppool /name:shop".to_owned(),
        ),
    ] {
        assert_contains!(site.of_dockerfile(start, &line), "<add name=\"shop\" />");
    }
    site.refused(CMD, "RUN appcmd add apppool /name:shop")
        .is("dockerfile/fails", &["appcmd: ", "PATH"])
        .advises(&[appcmd]);
}

#[test(multi_thread)]
async fn a_pool_at_which_containers_end_is_warned_of() {
    let site = Site::new().await;
    let appcmd = r"C:\Windows\System32\inetsrv\appcmd.exe";
    let pool = format!(
        "RUN {appcmd} set config /section:applicationPools \
         /+\"[name='DefaultAppPool'].environmentVariables.[name='MODE',value='live']\""
    );
    for (lines, part) in [
        (
            format!("RUN {appcmd} delete apppool DefaultAppPool"),
            Some("DefaultAppPool, which is deleted"),
        ),
        (format!("ENV MODE=test OTHER=x\n{pool}"), Some("has MODE:")),
        (format!("ENV MODE=test\n{pool}"), None),
    ] {
        let lines = format!("ENTRYPOINT [\"C:\\\\ServiceMonitor.exe\", \"w3svc\"]\n{lines}");
        let built = site.dockerfile(CMD, &lines).success();
        let printed = String::from_utf8_lossy(&built.get_output().stderr);
        match part {
            Some(part) => assert_contains!(printed, "warning: containers end", part),
            None => assert!(!printed.contains("containers end"), "{printed}"),
        }
    }
}

#[test(multi_thread)]
async fn a_plan_says_of_appcmd_that_it_depends_on_a_line_that_is_left_out() {
    let site = Site::new().await;
    let lines = "RUN del /q C:\\inetpub\\wwwroot\\*\n\
                 RUN C:\\Windows\\System32\\inetsrv\\appcmd.exe add apppool /name:shop";
    site.write_dockerfile(CMD, lines);
    let plan = ["./app", "--dry-run", "--format", "json"];
    let dry = site.build(&plan).success();
    let printed = String::from_utf8_lossy(&dry.get_output().stdout);
    assert_contains!(printed, "which depends on a line above");
}

#[test(multi_thread)]
async fn what_iis_refuses_is_reported_with_its_line() {
    let site = Site::new().await;
    for (lines, code, values) in [
        (
            "RUN New-Website -Name w -Port 81 -PhysicalPath C:\\none",
            "dockerfile/fails",
            &["New-Website: ", "C:\\none"][..],
        ),
        (
            "RUN Remove-Website 'Default Web Site'; Remove-Website 'Default Web Site'",
            "dockerfile/fails",
            &["Remove-Website: ", "[name='Default Web Site']"],
        ),
        (
            "RUN New-WebAppPool a\nRUN New-WebAppPool a",
            "dockerfile/fails",
            &["\"a\""],
        ),
        (
            "RUN Set-ItemProperty IIS:\\AppPools\\DefaultAppPool -Name enable32Bit -Value 1",
            "dockerfile/fails",
            &["\"enable32Bit\""],
        ),
        (
            "RUN Set-ItemProperty IIS:\\AppPools\\DefaultAppPool -Name startMode -Value Service",
            "dockerfile/fails",
            &["startMode", "\"Service\"", "OnDemand, AlwaysRunning"],
        ),
        (
            "RUN New-Item IIS:\\SslBindings\\0.0.0.0!443 -Value x",
            "dockerfile/not-understood",
            &["IIS:\\SslBindings\\0.0.0.0!443"],
        ),
        (
            "RUN C:\\Windows\\System32\\inetsrv\\appcmd set config Default Web Site /section:httpErrors",
            "dockerfile/fails",
            &["\"Web\""],
        ),
        (
            "RUN New-Website -Name w -Id 1 -Port 81 -PhysicalPath C:\\inetpub\\wwwroot",
            "dockerfile/fails",
            &["sites already has the entry [id='1']"],
        ),
        (
            "RUN Get-Website | Remove-Website",
            "dockerfile/not-understood",
            &[],
        ),
    ] {
        let count = POWERSHELL.lines().count() + lines.lines().count();
        site.refused(POWERSHELL, lines)
            .is(code, values)
            .names(&[&format!("Dockerfile:{count}: ")]);
        assert!(!site.folder.path().join("out").exists(), "{lines}");
    }
    // A script that continues after errors does so here too.
    let goes_on = POWERSHELL.replace("'Stop'", "'Continue'");
    let made = site.of_dockerfile(
        &goes_on,
        "RUN Remove-Website -Name none; New-WebAppPool -Name a",
    );
    assert_contains!(made, "<add name=\"a\" />");
    // Without IIS, there are no cmdlets for it.
    let start = POWERSHELL.replace("windows/servercore/iis:ltsc2019", "windows/nanoserver:1809");
    site.refused(&start, "RUN New-WebAppPool a")
        .is("dockerfile/fails", &["powershell"]);
}
