//! Connections like those of Docker's CLI: contexts written by `docker context`, and a real daemon
//! behind TLS that requires a client certificate.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use wincimg_common::diagnose::{Diagnose as _, Problem};
use wincimg_common::progress::Silent;
use wincimg_oci::remote::RegistryClient;
use wincimg_testkit::chain;
use wincimg_testkit::docker_registry::free_port;
use wincimg_testkit::dockerd::{Dockerd, Setup};
use wincimg_testkit::scripted::{answer, scripted};

use crate::docker::daemon::Daemon;
use crate::docker::endpoint::{Endpoint, Environment};
use crate::docker::error::DockerError;
use crate::docker::tls::TlsVerification;

/// Certificates of a daemon and its client from one throwaway CA, under Docker's names, and another
/// CA.
struct Certificates(tempfile::TempDir);

impl Certificates {
    fn new() -> Self {
        let openssl = wincimg_testkit::component("openssl");
        let folder = tempfile::tempdir().unwrap();
        let names = "subjectAltName=IP:127.0.0.1,DNS:localhost\nbasicConstraints=CA:FALSE\n";
        fs::write(folder.path().join("names.cnf"), names).unwrap();
        let run = |arguments: &str| {
            let mut command = Command::new(&openssl);
            command.current_dir(folder.path());
            let output = command.args(arguments.split(' ')).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "openssl {arguments}: {printed}");
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for (authority, subject) in [("ca", "throwaway"), ("other", "somebody")] {
            let out = format!("-keyout {authority}.key -out {authority}.pem");
            run(&format!(
                "req -x509 {key} {out} -days 2 -subj /CN={subject}"
            ));
        }
        for (name, file) in [("server", "server"), ("client", "cert")] {
            run(&format!(
                "req {key} -keyout {file}.key -out {file}.csr -subj /CN={name}"
            ));
            run(&format!(
                "x509 -req -in {file}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
                 -extfile names.cnf -out {file}.pem"
            ));
        }
        fs::rename(
            folder.path().join("cert.key"),
            folder.path().join("key.pem"),
        )
        .unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A folder like `~/.docker` with some of the files, under these names.
    fn folder(&self, files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (from, to) in files {
            fs::copy(self.file(from), folder.path().join(to)).unwrap();
        }
        folder
    }
}

#[test]
fn an_error_of_a_cluster_names_its_pods_and_no_other_daemon() {
    let error = DockerError::Unreachable {
        daemon: "kube://apps/windows".to_owned(),
        origin: "--docker-host".to_owned(),
        source: io::Error::other(Problem::new("cluster/answer", "request timed out")),
    };
    let hint = error.diagnosis().hint.unwrap();
    assert!(hint.contains("pods --namespace apps`"), "{hint}");
}

/// A daemon on a loopback port that rejects clients without a certificate of the CA.
fn start(certificates: &Certificates) -> (Dockerd, String) {
    let address = format!("tcp://127.0.0.1:{}", free_port());
    let file = |name| certificates.file(name).display().to_string();
    let daemon = Dockerd::start_with(&Setup {
        arguments: vec![
            "--host".to_owned(),
            address.clone(),
            "--tlsverify".to_owned(),
            "--tlscacert".to_owned(),
            file("ca.pem"),
            "--tlscert".to_owned(),
            file("server.pem"),
            "--tlskey".to_owned(),
            file("server.key"),
        ],
        ..Setup::default()
    });
    (daemon, address)
}

async fn connect(host: &str, environment: &Environment) -> Result<Daemon, DockerError> {
    let flag = (!host.is_empty()).then_some(host);
    Daemon::connect(Endpoint::find(flag, environment)?).await
}

fn verified(folder: &Path) -> Environment {
    Environment {
        certificates: Some(folder.to_owned()),
        tls_verify: true,
        ..Environment::default()
    }
}

#[test]
async fn a_daemon_behind_tls_is_reached_with_the_right_certificates_alone() {
    let certificates = Certificates::new();
    let (_dockerd, address) = start(&certificates);
    let identity = [("cert.pem", "cert.pem"), ("key.pem", "key.pem")];
    let with_authority = |authority| {
        let files = [&identity[..], &[(authority, "ca.pem")]].concat();
        certificates.folder(&files)
    };
    let right = with_authority("ca.pem");
    let daemon = connect(&address, &verified(right.path())).await.unwrap();
    assert_eq!(daemon.info().await.unwrap().os_type, "linux");

    let other = with_authority("other.pem");
    let error = connect(&address, &verified(other.path()))
        .await
        .unwrap_err();
    assert!(chain(&error).contains("certificate"), "{}", chain(&error));
    let hint = error.diagnosis().hint.unwrap();
    assert!(hint.contains("ca.pem"), "{hint}");

    // The daemon checks the client's certificate, whether the client verifies or not.
    let unverified = Environment {
        tls_verify: false,
        tls: true,
        ..verified(other.path())
    };
    let daemon = connect(&address, &unverified).await.unwrap();
    let tls = daemon.endpoint().tls.as_ref().unwrap();
    assert_eq!(tls.trust, TlsVerification::Anyone);

    let anonymous = certificates.folder(&[("ca.pem", "ca.pem")]);
    let error = connect(&address, &verified(anonymous.path()))
        .await
        .unwrap_err();
    assert!(chain(&error).contains("ertificate"), "{}", chain(&error));
    let hint = error.diagnosis().hint.unwrap();
    assert!(hint.contains("cert.pem and key.pem"), "{hint}");

    let error = connect(&address, &Environment::default())
        .await
        .unwrap_err();
    assert!(chain(&error).contains("HTTPS"), "{}", chain(&error));
    let hint = error.diagnosis().hint.unwrap();
    assert!(hint.contains("DOCKER_TLS_VERIFY=1"), "{hint}");

    let (_, plain) = scripted(|_| answer(200, &[], "{}"));
    let plain = format!("tcp://{}", plain.host());
    let error = connect(&plain, &verified(right.path())).await.unwrap_err();
    let hint = error.diagnosis().hint.unwrap();
    assert!(hint.contains("unset DOCKER_TLS_VERIFY"), "{hint}");
}

#[test]
async fn files_that_are_no_certificates_are_named() {
    let certificates = Certificates::new();
    let names = ["ca.pem", "cert.pem", "key.pem"];
    for (sources, expected) in [
        (&["names.cnf"][..], "ca.pem: it has no certificate"),
        (&[], "ca.pem"),
        (&["ca.pem", "cert.pem", "names.cnf"], "key.pem"),
        (&["ca.pem", "names.cnf", "key.pem"], "cert.pem"),
        (&["ca.pem", "cert.pem", "server.key"], "cert.pem"),
    ] {
        let files: Vec<(&str, &str)> = sources.iter().copied().zip(names).collect();
        let folder = certificates.folder(&files);
        let environment = verified(folder.path());
        let error = connect("tcp://127.0.0.1:1", &environment)
            .await
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
async fn a_context_that_docker_made_leads_to_its_daemon() {
    let certificates = Certificates::new();
    let docker = wincimg_testkit::component("docker");
    let (dockerd, address) = start(&certificates);
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&docker);
        command
            .env("DOCKER_CONFIG", home.path())
            .env("HOME", home.path());
        let output = command.args(arguments).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "docker {arguments:?}: {printed}");
    };
    let file = |name| certificates.file(name).display().to_string();
    let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(file);
    let secured = format!("host={address},ca={ca},cert={cert},key={key}");
    run(&["context", "create", "secured", "--docker", &secured]);
    let local = format!("host={}", dockerd.host());
    run(&["context", "create", "local", "--docker", &local]);
    run(&["context", "use", "secured"]);

    let environment = Environment {
        config: Some(home.path().to_owned()),
        ..Environment::default()
    };
    let daemon = connect("", &environment).await.unwrap();
    assert_eq!(daemon.endpoint().address.to_string(), address);
    let tls = daemon.endpoint().tls.as_ref().unwrap();
    assert_eq!(tls.trust, TlsVerification::Authority);

    let environment = Environment {
        context: Some("local".to_owned()),
        ..environment
    };
    let daemon = connect("", &environment).await.unwrap();
    assert_eq!(daemon.endpoint().address.to_string(), dockerd.host());
}

/// The password must not follow a redirect of a daemon to another host.
#[test]
async fn a_daemon_that_redirects_takes_no_password_elsewhere() {
    for status in [301, 302, 303, 307, 308] {
        let (received, other) = scripted(|_| answer(200, &[], "{}"));
        let target = other.url("taken");
        let (asked, own) = scripted(move |asked| match asked.path.as_str() {
            "/_ping" => answer(200, &[("api-version", "1.41")], "OK"),
            "/v2/" if asked.header("authorization").is_some() => answer(200, &[], "{}"),
            "/v2/" => answer(401, &[("WWW-Authenticate", "Basic realm=\"r\"")], ""),
            _ => answer(status, &[("Location", &target)], ""),
        });
        let folder = tempfile::tempdir().unwrap();
        let entry = serde_json::json!({ "username": "bob", "password": "sesame" });
        let config = serde_json::json!({ "auths": { own.host(): entry } });
        let options = wincimg_testkit::loopback_options(Some(wincimg_testkit::docker_config(
            folder.path(),
            &config,
        )));
        let registry = RegistryClient::new(options, Arc::new(Silent)).unwrap();
        let ping = registry.ping(&own.host()).await.unwrap();
        let credential = registry.daemon_credential(&ping, false).await.unwrap();
        let address = format!("tcp://{}", own.host());
        let daemon = super::connect(&address).await;
        let pushed = daemon
            .push("repo.lan/app", "1", credential.as_ref(), &Silent)
            .await;
        assert!(pushed.is_err(), "{status}");
        assert!(daemon.info().await.is_err(), "{status}");
        let reported = asked.all();
        let mut headers = reported.iter().map(|one| one.header("x-registry-auth"));
        assert!(headers.any(|header| header.is_some()), "{reported:?}");
        assert_eq!(received.lines(), [""; 0], "{status}");
    }
}
