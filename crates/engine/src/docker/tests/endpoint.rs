//! Selection of the daemon: by flags, variables, and contexts as Docker's CLI stores them.

use std::error::Error;
use std::fs;

use serde_json::json;
use wincimg_common::diagnose::{Diagnose, Problem};
use wincimg_oci::document::sha256;
use wincimg_windows::table::read_rows;

use crate::docker::address::Address;
use crate::docker::daemon::Daemon;
use crate::docker::endpoint::{Endpoint, Environment, PLATFORM};
use crate::docker::tls::TlsVerification;

fn find(flag: Option<&str>, environment: &Environment) -> Endpoint {
    Endpoint::find(flag, environment).unwrap()
}

fn refusal(text: &str) -> Problem {
    Endpoint::find(Some(text), &Environment::default()).unwrap_err()
}

/// A folder like `~/.docker`, with a selected context and its files.
struct Config(tempfile::TempDir);

impl Config {
    fn new(current: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = json!({ "auths": {}, "currentContext": current });
        fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        Self(folder)
    }

    fn context(&self, name: &str, host: &str, skip: bool, files: &[&str]) {
        let digest = sha256(name.as_bytes());
        let contexts = self.0.path().join("contexts");
        let meta = contexts.join("meta").join(digest.digest());
        fs::create_dir_all(&meta).unwrap();
        let text = json!({
            "Name": name,
            "Metadata": {},
            "Endpoints": { "docker": { "Host": host, "SkipTLSVerify": skip } },
        });
        fs::write(meta.join("meta.json"), text.to_string()).unwrap();
        let tls = contexts.join("tls").join(digest.digest()).join("docker");
        fs::create_dir_all(&tls).unwrap();
        for file in files {
            fs::write(tls.join(file), "").unwrap();
        }
    }

    fn environment(&self) -> Environment {
        Environment {
            config: Some(self.0.path().to_owned()),
            ..Environment::default()
        }
    }
}

#[test]
fn addresses_are_read_as_docker_writes_them() {
    let table = include_str!("../../../tests/data/daemon-addresses.tsv");
    let rows = read_rows(table, |row| Ok((row.text("address")?, row.text("shown")?)));
    for (text, expected) in rows.unwrap() {
        let endpoint = find(Some(text), &Environment::default());
        assert_eq!(endpoint.address.to_string(), expected, "{text}");
        assert_eq!(endpoint.tls, None);
    }
    let pipe = find(Some("npipe:////./pipe/x"), &Environment::default());
    assert_eq!(pipe.address, Address::Pipe(r"\\.\pipe\x".to_owned()));
}

#[test]
fn what_is_no_address_is_refused_with_a_way_out() {
    for text in [
        "", "unix://", "tcp://", "tcp://host:port", "tcp://host:1/path", "fd://3",
        "https://build.lan",
    ] {
        let error = refusal(text);
        assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        assert!(error.diagnosis().hint.is_some(), "{text}");
    }
    let table = include_str!("../../../tests/data/refused-addresses.tsv");
    let rows = read_rows(table, |row| {
        let (text, problem) = (row.text("address")?, row.text("problem")?);
        Ok((text, problem, row.text("hint")?))
    });
    for (text, problem, hint) in rows.unwrap() {
        let error = refusal(text);
        let printed = format!("{error} {}", error.diagnosis().hint.unwrap());
        assert!(printed.contains(problem), "{printed}");
        assert!(printed.contains(hint), "{printed}");
        assert!(!printed.contains("SECRET"), "{printed}");
    }
}

#[test]
async fn a_windows_pipe_elsewhere_gets_a_hint() {
    let config = Config::new("desktop-windows");
    let missing = Endpoint::find(None, &config.environment()).unwrap_err();
    let pipe = "npipe:////./pipe/dockerDesktopWindowsEngine";
    config.context("desktop-windows", pipe, false, &[]);
    let endpoint = find(None, &config.environment());
    assert_eq!(endpoint.address.to_string(), pipe);
    let unreached = Daemon::connect(endpoint).await.unwrap_err();
    let printed = format!("{}: {}", unreached, unreached.source().unwrap());
    let expected = "only Windows has named pipes";
    assert!(printed.contains(expected), "{printed}");
    for hint in [
        missing.diagnosis().hint.unwrap(),
        unreached.diagnosis().hint.unwrap(),
    ] {
        for words in [
            "wincimg.exe",
            "\"npipe://\", \"tcp://127.0.0.1:2375\"",
            "ssh -NL",
        ] {
            assert!(hint.contains(words), "{hint}");
        }
    }
}

#[test]
fn a_context_with_null_for_what_is_empty_is_read() {
    let config = Config::new("odd");
    config.context("odd", "tcp://a:1", false, &[]);
    let digest = sha256(b"odd");
    let meta = config.0.path().join("contexts/meta").join(digest.digest());
    let write = |text: &str| fs::write(meta.join("meta.json"), text).unwrap();
    write(
        r#"{"Name":"odd","Metadata":null,"Endpoints":{"kubernetes":null,"docker":{"Host":"tcp://a:1","SkipTLSVerify":null,"More":[1]}}}"#,
    );
    let found = find(None, &config.environment());
    assert_eq!(found.address.to_string(), "tcp://a:1");
    write(r#"{"Endpoints":{"docker":{"Host":null}}}"#);
    assert!(find(None, &config.environment()).is_local());
    for text in [
        r#"{"Endpoints":null}"#,
        r#"{"Endpoints":{"docker":null}}"#,
        "{}",
    ] {
        write(text);
        let error = Endpoint::find(None, &config.environment()).unwrap_err();
        let expected = "no endpoint \"docker\"";
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
    for text in ["null", r#"{"currentContext":null}"#] {
        fs::write(config.0.path().join("config.json"), text).unwrap();
        assert!(!find(None, &config.environment()).is_chosen(), "{text}");
    }
}

#[test]
fn a_flag_comes_before_the_variables_and_these_before_the_chosen_context() {
    let config = Config::new("chosen");
    config.context("chosen", "tcp://chosen:1", false, &[]);
    config.context("named", "tcp://named:2", false, &[]);
    let mut environment = config.environment();
    let endpoint = find(None, &environment);
    assert_eq!(endpoint.address.to_string(), "tcp://chosen:1");
    assert_eq!(endpoint.origin, "the Docker context \"chosen\"");

    environment.context = Some("named".to_owned());
    let expected = "tcp://named:2";
    assert_eq!(find(None, &environment).address.to_string(), expected);

    environment.host = Some("tcp://variable:3".to_owned());
    let endpoint = find(None, &environment);
    assert_eq!(endpoint.address.to_string(), "tcp://variable:3");
    assert_eq!(endpoint.origin, "DOCKER_HOST");

    let endpoint = find(Some("tcp://flag:4"), &environment);
    assert_eq!(endpoint.address.to_string(), "tcp://flag:4");
    assert_eq!(endpoint.origin, "--docker-host");
}

#[test]
fn nothing_chosen_means_the_platforms_own_daemon() {
    for environment in [
        Environment::default(),
        Config::new("").environment(),
        Config::new("default").environment(),
    ] {
        let endpoint = find(None, &environment);
        assert!(!endpoint.is_chosen());
        assert!(endpoint.is_local());
    }
    let config = Config::new("chosen");
    config.context("chosen", "tcp://chosen:1", false, &[]);
    let environment = Environment {
        context: Some("default".to_owned()),
        ..config.environment()
    };
    assert_eq!(find(None, &environment).origin, PLATFORM);
}

#[test]
fn a_context_that_is_missing_or_broken_is_named() {
    let config = Config::new("gone");
    let error = Endpoint::find(None, &config.environment()).unwrap_err();
    let expected = "no Docker context \"gone\"";
    assert!(error.to_string().contains(expected), "{error}");
    let hint = error.diagnosis().hint.unwrap();
    assert!(hint.contains("docker context ls"), "{hint}");

    fs::write(config.0.path().join("config.json"), "{").unwrap();
    let error = Endpoint::find(None, &config.environment()).unwrap_err();
    assert!(error.to_string().contains("config.json"), "{error}");

    let config = Config::new("empty");
    config.context("empty", "", false, &[]);
    assert!(find(None, &config.environment()).is_local());
}

#[test]
fn a_contexts_certificates_say_how_it_is_trusted() {
    let config = Config::new("");
    let all = ["ca.pem", "cert.pem", "key.pem"];
    config.context("own", "tcp://a:2376", false, &all);
    config.context("public", "tcp://a", false, &all[1..]);
    config.context("any", "tcp://a", true, &[]);
    config.context("socket", "unix:///s", false, &all);
    let tls = |name: &str| {
        let environment = Environment {
            context: Some(name.to_owned()),
            ..config.environment()
        };
        find(None, &environment).tls
    };
    let own = tls("own").unwrap();
    assert_eq!(own.trust, TlsVerification::Authority);
    assert!(own.authority.is_file() && own.identity.is_some());
    assert_eq!(tls("public").unwrap().trust, TlsVerification::System);
    let any = tls("any").unwrap();
    assert_eq!((any.trust, any.identity), (TlsVerification::Anyone, None));
    assert_eq!(tls("socket"), None);
}

#[test]
fn the_variables_for_tls_count_for_tcp_alone() {
    let certificates = tempfile::tempdir().unwrap();
    let environment = Environment {
        certificates: Some(certificates.path().to_owned()),
        tls_verify: true,
        ..Environment::default()
    };
    let endpoint = find(Some("tcp://build.lan"), &environment);
    assert_eq!(endpoint.address.to_string(), "tcp://build.lan:2376");
    let tls = endpoint.tls.unwrap();
    assert_eq!(tls.trust, TlsVerification::Authority);
    assert_eq!(tls.identity, None);
    assert!(tls.client().is_err(), "there is no ca.pem");
    assert_eq!(find(Some("unix:///s"), &environment).tls, None);
    assert_eq!(find(Some("http://build.lan"), &environment).tls, None);

    let unverified = Environment {
        tls_verify: false,
        tls: true,
        ..environment
    };
    let tls = find(Some("https://build.lan"), &unverified).tls.unwrap();
    assert_eq!(tls.trust, TlsVerification::Anyone);
}

#[test]
fn only_plain_tcp_to_another_machine_can_be_read_on_the_way() {
    let readable = |text| find(Some(text), &Environment::default()).is_readable();
    assert!(readable("tcp://build.lan:2375"));
    assert!(!readable("tcp://127.0.0.1:2375"));
    assert!(!readable("tcp://localhost:2375"));
    assert!(!readable("unix:///s"));
}
