//! Access: certificates, plain HTTP, passwords, helpers, proxies.

use std::sync::Arc;

use serde_json::json;
use wincimg_common::diagnose::Diagnose;
use wincimg_common::progress::Silent;
use wincimg_oci::remote::{
    AuthScheme, HttpError, Protocol, RegistryClient, RegistryError, RegistryOptions,
};
use wincimg_testkit::docker_registry::{DockerRegistry, PASSWORD, Setup, USER};
use wincimg_testkit::proxy::{FaultProxy, ProxyFault, first};
use wincimg_testkit::scripted::{answer, scripted};
use wincimg_testkit::{
    chain, docker_config, loopback_login, options, push_image, repository, trusting,
};

use crate::site::write_program;

/// The host has to prove what it is.
fn secure_options(host: &str) -> RegistryOptions {
    RegistryOptions {
        insecure: Vec::new(),
        ..options(host)
    }
}

#[test]
async fn a_certificate_of_an_unknown_ca_is_refused_until_its_ca_or_its_host_is_named() {
    let docker = DockerRegistry::start(Setup::TLS);
    let host = docker.host();
    let error = repository(secure_options(&host), &format!("{host}/a"))
        .head_manifest("1")
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::Http(HttpError::Certificate { .. })),
        "{error:?}"
    );
    let listing = format!("--insecure-registry {host}");
    assert_contains!(error.diagnosis().hint.unwrap(), "--ca-file FILE", &listing);

    let registry = RegistryClient::new(trusting(docker.ca()), Arc::new(Silent)).unwrap();
    assert_eq!(
        registry.ping(&host).await.unwrap().connection,
        Protocol::Https
    );

    let listed = RegistryClient::new(options(&host), Arc::new(Silent)).unwrap();
    assert_eq!(
        listed.ping(&host).await.unwrap().connection,
        Protocol::UnverifiedHttps
    );
    let pushed = repository(options(&host), &format!("{host}/a"));
    push_image(&pushed, "1").await;
}

#[test]
async fn a_registry_on_this_machine_needs_no_flag_for_plain_http() {
    let docker = DockerRegistry::plain();
    for name in ["127.0.0.1", "localhost"] {
        let host = docker.host().replace("127.0.0.1", name);
        let own = secure_options(&host);
        push_image(&repository(own.clone(), &format!("{host}/{name}/a")), "1").await;
        let registry = RegistryClient::new(own, Arc::new(Silent)).unwrap();
        let ping = registry.ping(&host).await.unwrap();
        assert_eq!(ping.connection, Protocol::PlainHttp);
    }
}

/// As one that is just starting, or behind `kubectl port-forward`.
#[test]
async fn a_registry_on_this_machine_that_drops_a_connection_is_not_one_with_tls() {
    let docker = DockerRegistry::plain();
    for is_upload in [false, true] {
        let rule = first(1, |_| true, ProxyFault::LoseAnswer);
        let proxy = FaultProxy::start(docker.host(), rule).await;
        let host = proxy.host();
        let repository = repository(secure_options(&host), &format!("{host}/a"));
        if is_upload {
            push_image(&repository, "1").await;
        } else {
            assert_eq!(repository.head_manifest("1").await.unwrap(), None);
        }
    }
}

#[test]
async fn ssl_cert_file_names_a_ca() {
    if let Some(host) = wincimg_testkit::child_argument() {
        push_image(
            &repository(secure_options(&host), &format!("{host}/a")),
            "1",
        )
        .await;
        return;
    }
    let docker = DockerRegistry::start(Setup::TLS);
    let ca = docker.ca();
    wincimg_testkit::in_child(
        "ssl_cert_file_names_a_ca",
        &docker.host(),
        &[("SSL_CERT_FILE", ca.to_str().unwrap())],
    );
}

#[test]
async fn plain_http_is_refused_with_the_flag_that_allows_it() {
    let docker = DockerRegistry::plain();
    // An address that leads to this machine but is not among its own.
    let host = docker.host().replace("127.0.0.1", "0.0.0.0");
    let secure = secure_options(&host);
    let error = repository(secure, &format!("{host}/a"))
        .tags()
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::Http(HttpError::PlainHttp { .. })),
        "{error:?}"
    );
    assert_contains!(
        error.diagnosis().hint.unwrap(),
        &format!("--insecure-registry {host}")
    );
}

#[test]
async fn a_password_from_docker_config_opens_a_locked_registry() {
    let docker = DockerRegistry::start(Setup::TLS_AND_PASSWORD);
    let host = docker.host();
    let options = RegistryOptions {
        config_file: Some(docker.docker_config(&host, PASSWORD)),
        ..options(&host)
    };
    push_image(&repository(options.clone(), &format!("{host}/a")), "1").await;

    let registry = RegistryClient::new(options, Arc::new(Silent)).unwrap();
    let ping = registry.ping(&host).await.unwrap();
    assert_eq!(ping.login, AuthScheme::Basic);
    let credential = &ping.credential;
    assert_contains!(credential, &format!("{USER:?}"));
    assert!(!format!("{registry:?} {ping:?}").contains(PASSWORD));
}

#[test]
async fn a_refusal_says_which_credential_from_where_was_tried() {
    let docker = DockerRegistry::start(Setup::TLS_AND_PASSWORD);
    let host = docker.host();
    let nobody = repository(options(&host), &format!("{host}/a"));
    let error = nobody.tags().await.unwrap_err();
    assert!(
        matches!(error, RegistryError::Denied { status, .. } if status == 401),
        "{error:?}"
    );
    assert!(!error.to_string().contains("\"bob\""), "{error}");
    assert_contains!(error, "empty-config.json");
    assert_contains!(
        error.diagnosis().hint.unwrap(),
        &format!("wincimg login {host}")
    );

    let file = docker.docker_config(&host, "wrong secret");
    let wrong = RegistryOptions {
        config_file: Some(file.clone()),
        ..options(&host)
    };
    let wrong = repository(wrong, &format!("{host}/a"));
    let error = wrong.tags().await.unwrap_err();
    let printed = error.to_string();
    assert_contains!(printed, "\"bob\"", &file.display().to_string());
    assert!(!format!("{error:?} {}", chain(&error)).contains("wrong secret"));
}

#[test]
async fn a_wrong_password_is_tried_once() {
    let (log, server) = scripted(|_| answer(401, &[("WWW-Authenticate", "Basic realm=\"x\"")], ""));
    let folder = tempfile::tempdir().unwrap();
    let options = loopback_login(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    repository.tags().await.unwrap_err();
    let all = log.all();
    let tried = all
        .iter()
        .filter(|asked| asked.header("authorization").is_some());
    assert_eq!(tried.count(), 1, "more would lock the account");
}

#[test]
async fn a_password_goes_over_plain_http_only_if_that_is_asked_for() {
    let docker = DockerRegistry::start(Setup::PASSWORD);
    let seen = FaultProxy::start(docker.host(), |_| ProxyFault::Pass).await;
    let host = seen.host();
    let careful = RegistryOptions {
        config_file: Some(docker.docker_config(&host, PASSWORD)),
        ..options(&host)
    };
    let error = repository(careful.clone(), &format!("{host}/a"))
        .head_manifest("1")
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::PlainCredentials { .. }),
        "{error:?}"
    );
    assert!(
        seen.log()
            .iter()
            .all(|request| request.header("authorization").is_none())
    );

    let asked = RegistryOptions {
        plain_credentials: true,
        ..careful
    };
    push_image(&repository(asked, &format!("{host}/a")), "1").await;
}

#[test]
async fn a_missing_configuration_is_named() {
    let docker = DockerRegistry::start(Setup::TLS_AND_PASSWORD);
    let host = docker.host();
    let options = RegistryOptions {
        config_file: Some("/nonexistent/config.json".into()),
        ..options(&host)
    };
    let repository = repository(options, &format!("{host}/a"));
    let error = repository.tags().await.unwrap_err();
    assert_contains!(error, "/nonexistent/config.json");
}

#[cfg(unix)]
#[test]
async fn a_credential_helper_is_asked_and_named() {
    if let Some(argument) = wincimg_testkit::child_argument() {
        let (host, file) = argument.split_once(' ').unwrap();
        let options = RegistryOptions {
            config_file: Some(file.into()),
            ..options(host)
        };
        let registry = RegistryClient::new(options, Arc::new(Silent)).unwrap();
        let ping = registry.ping(host).await.unwrap();
        assert_contains!(ping.credential, "\"bob\"", "docker-credential-test (");
        return;
    }
    let docker = DockerRegistry::start(Setup::TLS_AND_PASSWORD);
    let folder = tempfile::tempdir().unwrap();
    let answer = json!({ "ServerURL": "x", "Username": "bob", "Secret": PASSWORD });
    let script = format!("cat >/dev/null\necho '{answer}'");
    write_program(folder.path(), "docker-credential-test", &script);
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    for content in [
        json!({ "credHelpers": { docker.host(): "test" } }),
        json!({ "auths": { docker.host(): {} }, "credsStore": "test" }),
    ] {
        let file = docker_config(folder.path(), &content);
        let argument = format!("{} {}", docker.host(), file.display());
        wincimg_testkit::in_child(
            "a_credential_helper_is_asked_and_named",
            &argument,
            &[("PATH", &path)],
        );
    }
}

#[test]
async fn docker_config_names_the_folder_of_the_configuration() {
    if let Some(host) = wincimg_testkit::child_argument() {
        let options = RegistryOptions {
            config_file: None,
            ..options(&host)
        };
        let registry = RegistryClient::new(options, Arc::new(Silent)).unwrap();
        assert_eq!(registry.ping(&host).await.unwrap().login, AuthScheme::Basic);
        return;
    }
    let docker = DockerRegistry::start(Setup::TLS_AND_PASSWORD);
    let file = docker.docker_config(&docker.host(), PASSWORD);
    wincimg_testkit::in_child(
        "docker_config_names_the_folder_of_the_configuration",
        &docker.host(),
        &[("DOCKER_CONFIG", file.parent().unwrap().to_str().unwrap())],
    );
}

#[test(multi_thread)]
async fn a_proxy_from_the_environment_is_used_but_not_for_this_machine() {
    if let Some(argument) = wincimg_testkit::child_argument() {
        let (host, expected) = argument.split_once(' ').unwrap();
        let registry = RegistryClient::new(options(host), Arc::new(Silent)).unwrap();
        assert_eq!(registry.ping(host).await.is_ok(), expected == "answers");
        return;
    }
    let (log, proxy) = scripted(|_| answer(200, &[], "{}"));
    let environment = [("HTTP_PROXY", proxy.url("")), ("NO_PROXY", String::new())];
    let environment = environment
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let test = "a_proxy_from_the_environment_is_used_but_not_for_this_machine";

    let local = format!(
        "127.0.0.1:{} refuses",
        wincimg_testkit::docker_registry::free_port()
    );
    wincimg_testkit::in_child(test, &local, &environment);
    assert_eq!(log.lines(), [""; 0]);

    wincimg_testkit::in_child(test, "registry.invalid:5000 answers", &environment);
    let asked = log.lines();
    assert!(
        !asked.is_empty() && asked.iter().all(|line| line == "GET /v2/"),
        "{asked:?}"
    );
}
