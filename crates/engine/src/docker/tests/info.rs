//! `/info` of daemons of every age, replayed (see `support::windows_daemon`), and its consequences.

use serde_json::{Value, json};
use wincimg_common::diagnose::Diagnose;
use wincimg_oci::remote::Protocol;
use wincimg_testkit::windows_daemon::{WindowsDaemon, info};
use wincimg_windows::compat::WindowsEdition;

use super::connect;
use crate::docker::endpoint::{Endpoint, Environment};
use crate::docker::preflight::Preflight;

#[test]
async fn a_daemon_of_any_age_is_known_by_what_it_says_and_by_nothing_else() {
    let windows = WindowsDaemon::start();
    let daemon = connect(&windows.host()).await;
    let text = include_str!("../../../tests/data/daemon-infos.json");
    let kinds: Vec<Value> = serde_json::from_str(text).unwrap();
    assert!(kinds.len() >= 12);
    for kind in &kinds {
        windows.script(|script| {
            script.info = info("", "");
            script.info["RegistryConfig"] = json!(null);
            script.info["OSType"] = json!(null);
            let fields = kind["info"].as_object().unwrap().clone();
            script.info.as_object_mut().unwrap().extend(fields);
        });
        let info = daemon.info().await.unwrap();
        assert!(info.is_windows(), "{kind}");
        let version = info.host_version().map(|version| version.to_string());
        assert_eq!(version.as_deref(), kind["version"].as_str(), "{kind}");
        let client = info
            .host_build()
            .map(|host| host.edition == WindowsEdition::Client);
        assert_eq!(client, kind["client"].as_bool(), "{kind}");
        assert_eq!(info.default_isolation().name(), kind["isolation"], "{kind}");
    }
}

#[test]
async fn a_registry_of_this_machine_is_not_that_of_another() {
    let windows = WindowsDaemon::start();
    let here = connect(&windows.host()).await;
    let info = here.info().await.unwrap();
    let mut there = connect(&windows.host()).await;
    there.client.endpoint =
        Endpoint::find(Some("tcp://build01:2375"), &Environment::default()).unwrap();
    for registry in [
        "localhost:5000", "127.0.0.1:5000", "[::1]:5000", "localhost",
    ] {
        for reached in [Protocol::PlainHttp, Protocol::Https] {
            let local = Preflight::new(&here, &info)
                .check_registry(registry, reached)
                .await;
            let is_refused = registry.starts_with('[') && reached == Protocol::PlainHttp;
            assert_eq!(local.is_err(), is_refused, "{registry}");
            let error = Preflight::new(&there, &info)
                .check_registry(registry, reached)
                .await;
            let error = error.unwrap_err();
            assert!(error.to_string().contains("is on this machine"), "{error}");
            let hint = error.diagnosis().hint.unwrap();
            assert!(hint.contains("name the registry by"), "{hint}");
        }
    }
    let preflight = Preflight::new(&there, &info);
    let named = preflight.check_registry("repo.lan:5000", Protocol::Https);
    assert!(named.await.is_ok());
}
