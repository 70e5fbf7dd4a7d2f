//! The Dockerfiles of `docs/examples` that require content of their base: the PATH, or IIS.

use std::collections::BTreeMap;
use std::process::Command;

use wincimg_testkit::component;
use wincimg_testkit::file_server::FileServer;
use wincimg_testkit::layout::layers_in;

use crate::examples;
use crate::failure::Fails;
use crate::iis_lines::elements;
use crate::iis_server::{CONFIG, base_with_iis};
use crate::run_lines::{files_of, key_of};
use crate::site::{Site, add_base, json_of, stderr};

/// A copy of an example, and its base.
fn site(example: &str) -> Site {
    let site = examples::site(example);
    for (repository, tag) in [
        ("mcr/windows/servercore", "ltsc2022"),
        (
            "mcr/dotnet/framework/aspnet",
            "4.8-windowsservercore-ltsc2022",
        ),
    ] {
        let base = base_with_iis("10.0.20348.2402");
        site.registry
            .with(|stored| add_base(stored, repository, tag, base));
    }
    site
}

fn build(site: &Site, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = site.build("./app");
    command
        .args(["--host-build", "20348.2402", "--tag", "1"])
        .args(arguments);
    command
}

/// The added layers with their files; the base has two.
fn built(site: &Site, arguments: &[&str]) -> Vec<BTreeMap<String, Vec<u8>>> {
    let _ = std::fs::remove_dir_all(site.path("out"));
    let mut command = build(site, arguments);
    json_of(command.args(["--output", "oci:out"]));
    let layers = layers_in(&site.path("out"));
    layers[2..].iter().map(|layer| files_of(layer)).collect()
}

/// All files of the layers below `Files`, without those deleted by later lines.
fn files(layers: &[BTreeMap<String, Vec<u8>>]) -> Vec<&str> {
    let paths = layers.iter().flat_map(BTreeMap::keys);
    let mut files: Vec<&str> = paths
        .filter_map(|path| path.strip_prefix("Files/"))
        .filter(|path| !path.is_empty() && !path.ends_with('/'))
        .collect();
    files.sort_unstable();
    files
}

#[test]
fn a_tool_is_downloaded_checked_unpacked_and_found() {
    let (site, server) = (site("zip-tool"), FileServer::with_tools());
    let host = format!("TOOL_HOST=http://{}", server.host());
    let listed = server.host();
    let layers = built(
        &site,
        &["--build-arg", &host, "--insecure-registry", &listed],
    );
    assert_eq!(
        server.requests(),
        ["/tools/tool-1.4-windows-amd64.zip"],
        "once, by the digest in the file"
    );
    assert_eq!(
        files(&layers),
        ["tool/LICENSE.txt", "tool/lib/tool.dll", "tool/tool.exe"]
    );
    assert_eq!(
        layers[0]["Files/tool/tool.exe"],
        b"MZ stands in for a program"
    );
    let plan = json_of(&mut build(&site, &["--build-arg", &host, "--dry-run"]))["plans"][0].take();
    let container = &plan["instructions"]["container"];
    assert_eq!(container["Entrypoint"][0], r"C:\tool\tool.exe");
    assert_eq!(container["WorkingDir"], r"C:\work");
    let environment = r"\ControlSet001\Control\Session Manager\Environment";
    let layer = &layers_in(&site.path("out"))[3];
    let variables = key_of(layer, "System_Delta", environment);
    assert!(
        variables
            .iter()
            .any(|line| line.to_lowercase().starts_with("\"path\"=")),
        "{variables:?}"
    );
    let printed = build(&site, &["--build-arg", &host, "--dry-run"]).prints();
    assert_contains!(printed, "\"PATH\" = REG_SZ \"C:\\\\tool;C:\\\\Windows");
}

#[test]
fn a_tool_of_another_digest_is_refused() {
    let (site, server) = (site("zip-tool"), FileServer::with_tools());
    server.put(
        "/tools/tool-1.4-windows-amd64.zip",
        "PK what someone else put there",
    );
    let host = format!("TOOL_HOST=http://{}", server.host());
    let printed = build(&site, &["--build-arg", &host])
        .args(["--insecure-registry", &server.host()])
        .tells(3);
    assert_contains!(
        printed,
        "887a799421a10441abb7a69e6b42111936637317eb88492a35042a7c83355eed"
    );
}

#[test]
fn a_tool_without_a_known_digest_is_pinned_by_the_lock() {
    let (site, server) = (site("zip-tool"), FileServer::with_tools());
    let host = format!("TOOL_HOST=http://{}", server.host());
    let newer = [
        "--build-arg", "TOOL_VERSION=1.5", "--build-arg", "TOOL_SHA256=",
    ];
    let arguments = [&newer[..], &["--build-arg", &host]].concat();
    let insecure = ["--insecure-registry", &server.host()];
    build(&site, &arguments)
        .args(insecure)
        .fails(2, "download/not-pinned", &[])
        .advises(&[" --update-lock"]);
    let update = [&arguments[..], &insecure, &["--update-lock"]].concat();
    let first = built(&site, &update);
    let lock = site.text("app/wincimg.lock");
    assert_contains!(lock, "/tools/tool-1.5-windows-amd64.zip");
    assert_eq!(built(&site, &arguments), first);
    assert_eq!(server.requests().len(), 1);
    let tool = site.path("app/wincimg.lock");
    std::fs::remove_file(tool).unwrap();
    let output = build(&site, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_site_of_dotnet_framework_has_its_own_pool_site_and_certificate() {
    let site = site("framework-site");
    let layers = built(&site, &[]);
    assert_eq!(
        layers
            .last()
            .unwrap()
            .keys()
            .filter(|path| path.contains("shop/"))
            .count(),
        3,
        "the folder and its two files"
    );
    let printed = build(&site, &["--dry-run"]).prints();
    assert_contains!(
        printed,
        "\"Blob\" = REG_BINARY of 472 bytes\n",
        "\"SystemDefaultTlsVersions\" = REG_DWORD 1\n"
    );
    let config = layers.iter().rev().find_map(|layer| layer.get(CONFIG));
    let config = elements(std::str::from_utf8(config.unwrap()).unwrap());
    let host = "configuration/system.applicationHost";
    for element in [
        format!("{host}/applicationPools/add name=shop managedRuntimeVersion=v4.0"),
        format!("{host}/applicationPools/add/processModel idleTimeout=00:00:00"),
        format!("{host}/sites/site name=shop id=1"),
        format!("{host}/sites/site/application path=/ applicationPool=shop"),
        format!("{host}/sites/site/application/virtualDirectory path=/ physicalPath=C:\\shop"),
        format!("{host}/sites/site/bindings/binding protocol=http bindingInformation=*:80:"),
        "configuration/system.webServer/httpErrors \
         lockAttributes=allowAbsolutePathsWhenDelegated,defaultPath errorMode=Custom"
            .to_owned(),
        "configuration/location path=shop".to_owned(),
        "configuration/location/system.webServer/staticContent/mimeMap \
         fileExtension=.webmanifest mimeType=application/manifest+json"
            .to_owned(),
    ] {
        assert!(config.contains(&element), "{element}: {config:#?}");
    }
    assert!(
        !config
            .iter()
            .any(|element| element.contains("Default Web Site"))
    );
    let hivexget = component("hivexget");
    let openssl = component("openssl");
    let succeed = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    let openssl = |arguments: &str| {
        let mut command = Command::new(&openssl);
        succeed(
            command
                .args(arguments.split(' '))
                .current_dir(site.folder.path()),
        )
    };
    let der = openssl("x509 -in app/certificates/corp-root.cer -outform DER");
    let fingerprint = openssl("x509 -in app/certificates/corp-root.cer -noout -fingerprint -sha1");
    let fingerprint = String::from_utf8(fingerprint).unwrap();
    let (_, sha1) = fingerprint.trim().split_once('=').unwrap();
    let sha1 = sha1.replace(':', "");
    // The layer of the certificate, and that of TLS.
    let hive = site.write("delta", &layers[1]["Hives/Software_Delta"]);
    let key = format!(r"\Microsoft\SystemCertificates\ROOT\Certificates\{sha1}");
    let blob = succeed(Command::new(&hivexget).arg(hive).args([&key, "Blob"]));
    assert!(blob.ends_with(&der) && blob.len() > der.len());
    let layer = &layers_in(&site.path("out"))[2 + 2];
    for key in [
        r"\Microsoft\.NETFramework\v4.0.30319",
        r"\WOW6432Node\Microsoft\.NETFramework\v4.0.30319",
    ] {
        assert_eq!(
            key_of(layer, "Software_Delta", key),
            [
                "\"SchUseStrongCrypto\"=dword:00000001",
                "\"SystemDefaultTlsVersions\"=dword:00000001"
            ]
        );
    }
}
