//! A real daemon and registries that it trusts, does not trust, or needs a password for.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use wincimg_common::diagnose::Diagnose;
use wincimg_common::progress::Silent;
use wincimg_oci::remote::{Protocol, RegistryClient};
use wincimg_testkit::docker_registry::{DockerRegistry, PASSWORD, Setup, USER};
use wincimg_testkit::dockerd;
use wincimg_testkit::dockerd::Dockerd;
use wincimg_testkit::harness::skip_always;

use super::{connect, text};
use crate::docker::build::DockerBuildOptions;
use crate::docker::daemon::Daemon;
use crate::docker::preflight::Preflight;

async fn build(
    daemon: &Daemon,
    dockerfile: &str,
    options: &DockerBuildOptions,
) -> Result<String, String> {
    let built = super::build(daemon, &text(dockerfile), options).await;
    built
        .map(|image| image.id)
        .map_err(|error| wincimg_testkit::chain(error.as_ref()))
}

/// Forwards connections from the IPv6 loopback address, which no daemon of Docker 20.10 trusts by
/// itself.
async fn forward(to: String) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let to = to.clone();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    Ok(address)
}

#[test]
async fn a_registry_that_is_not_trusted_is_after_what_the_hint_says_was_done() {
    let registry = DockerRegistry::start(Setup::default());
    let Ok(address) = forward(registry.host()).await else {
        skip_always("IPv6");
    };
    // A name that only the daemon resolves.
    let host = format!("registry.test:{}", address.port());
    let mut setup = dockerd::Setup {
        hosts: "::1 registry.test".to_owned(),
        ..dockerd::Setup::default()
    };
    let name = format!("{host}/app");
    for trusted in [false, true] {
        let dockerd = Dockerd::start_with(&setup);
        let daemon = connect(&dockerd.host()).await;
        let info = daemon.info().await.unwrap();
        let image = build(
            &daemon,
            "FROM scratch\nLABEL a=b\n",
            &DockerBuildOptions::default(),
        )
        .await;
        daemon.tag(&image.unwrap(), &name, "1").await.unwrap();
        let preflight = Preflight::new(&daemon, &info);
        let answer = preflight.check_registry(&host, Protocol::PlainHttp).await;
        let pushed = daemon.push(&name, "1", None, &Silent).await;
        if trusted {
            answer.unwrap();
            assert!(pushed.unwrap().starts_with("sha256:"));
        } else {
            let hint = answer.unwrap_err().diagnosis().hint.unwrap();
            let config = info.registry_config.trusting(&host);
            assert!(hint.contains(&config), "{hint}");
            let error = pushed.unwrap_err();
            assert!(error.to_string().contains("HTTPS client"), "{error}");
            let hint = error.diagnosis().hint.unwrap();
            assert!(hint.contains("insecure-registries"), "{hint}");
            setup.config = Some(config);
        }
    }
}

#[test]
async fn a_registry_with_a_password_gets_it_from_the_configuration_for_pushes_and_for_bases() {
    let password = Setup {
        password: true,
        ..Setup::default()
    };
    let dockerd = Dockerd::start();
    let registry = DockerRegistry::start(password);
    let daemon = connect(&dockerd.host()).await;
    let host = registry.host();
    let config = registry.docker_config(&host, PASSWORD);
    let client = RegistryClient::new(
        wincimg_testkit::loopback_options(Some(config)),
        Arc::new(Silent),
    )
    .unwrap();
    let ping = client.ping(&host).await.unwrap();
    let credential = client
        .daemon_credential(&ping, false)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(credential.expose_secret()["username"], USER);
    let shown = format!("{credential:?}");
    assert!(!shown.contains(PASSWORD), "{shown}");
    assert!(shown.contains(&host), "{shown}");

    let none = DockerBuildOptions::default();
    let image = build(&daemon, "FROM scratch\nLABEL a=b\n", &none)
        .await
        .unwrap();
    let name = format!("{host}/team/base");
    daemon.tag(&image, &name, "1").await.unwrap();
    let error = daemon.push(&name, "1", None, &Silent).await.unwrap_err();
    let expected = "no basic auth credentials";
    assert!(error.to_string().contains(expected), "{error}");
    daemon
        .push(&name, "1", Some(&credential), &Silent)
        .await
        .unwrap();

    dockerd.must(&["image", "rm", &format!("{name}:1")]);
    let child = format!("FROM {name}:1\nLABEL c=d\n");
    let error = build(&daemon, &child, &none).await.unwrap_err();
    assert!(error.contains("no basic auth credentials"), "{error}");
    let with_password = DockerBuildOptions {
        credentials: vec![credential],
        ..none
    };
    build(&daemon, &child, &with_password).await.unwrap();
}

#[test]
async fn a_password_goes_to_no_daemon_over_a_line_that_others_read_unless_that_is_allowed() {
    let password = Setup {
        password: true,
        ..Setup::default()
    };
    let registry = DockerRegistry::start(password);
    let host = registry.host();
    let config = Some(registry.docker_config(&host, PASSWORD));
    let mut allowed = wincimg_testkit::loopback_options(config);
    let client = RegistryClient::new(allowed.clone(), Arc::new(Silent)).unwrap();
    let ping = client.ping(&host).await.unwrap();
    assert!(
        client
            .daemon_credential(&ping, true)
            .await
            .unwrap()
            .is_some()
    );
    let mut careful = allowed.clone();
    careful.plain_credentials = false;
    let careful_client = RegistryClient::new(careful.clone(), Arc::new(Silent)).unwrap();
    let error = careful_client
        .daemon_credential(&ping, true)
        .await
        .unwrap_err();
    let printed = error.to_string();
    assert!(printed.contains("Docker daemon"), "{printed}");
    assert!(!printed.contains(PASSWORD), "{printed}");

    // A registry without authentication gets a password only over a private connection.
    let open = DockerRegistry::start(Setup::default());
    let config = Some(registry.docker_config(&open.host(), PASSWORD));
    allowed.config_file.clone_from(&config);
    careful.config_file = config;
    for (options, given) in [(allowed, true), (careful, false)] {
        let client = RegistryClient::new(options, Arc::new(Silent)).unwrap();
        let ping = client.ping(&open.host()).await.unwrap();
        let credential = client.daemon_credential(&ping, false).await.unwrap();
        assert_eq!(credential.is_some(), given);
    }
}
