//! Accepted certificates: Debian's `docker-registry` with certificates of all kinds.

use std::fs;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::PemObject as _;
use wincimg_testkit::docker_registry::{DockerRegistry, Setup};

use crate::failure::Failure;
use crate::site::wincimg;

/// Requests a missing image: a 404 shows that the connection is accepted.
fn ask(registry: &DockerRegistry, home: &Path, flags: &[&str]) -> Failure {
    let image = format!("{}/no/such:image", registry.host());
    let mut command = wincimg(home, &["inspect", &image, "--format", "json"]);
    command.env("HOME", home).args(flags);
    for variable in ["SSL_CERT_FILE", "WINCIMG_CONFIG", "DOCKER_CONFIG"] {
        command.env_remove(variable);
    }
    Failure::of(&command.output().unwrap())
}

/// Puts a registry's CA into a host's folder, and returns the folder.
fn put_ca(registry: &DockerRegistry, folder: &Path) -> PathBuf {
    let folder = folder.join(registry.host());
    fs::create_dir_all(&folder).unwrap();
    fs::copy(registry.ca(), folder.join("ca.crt")).unwrap();
    folder
}

#[track_caller]
fn is_trusted(asked: Failure) {
    let failure = asked.is("registry/not-found", &["404"]);
    assert!(!failure.stderr.contains("certificate"), "{failure:#?}");
}

#[track_caller]
fn is_refused(asked: Failure) -> Failure {
    asked.is("network/certificate", &["127.0.0.1:"])
}

/// A registry's own certificate is trusted for that registry only.
fn counts_for_itself_alone(registry: &DockerRegistry, other: &DockerRegistry) {
    let home = tempfile::tempdir().unwrap();
    let own = registry.certificate().display().to_string();
    is_trusted(ask(registry, home.path(), &["--ca-file", &own]));
    is_refused(ask(other, home.path(), &["--ca-file", &own]));
}

#[test]
fn a_ca_that_is_named_vouches_and_the_hint_names_the_flag_first() {
    let registry = DockerRegistry::start(Setup::TLS);
    let home = tempfile::tempdir().unwrap();
    let refused = is_refused(ask(&registry, home.path(), &[]));
    assert_contains!(refused.stderr, "no trusted CA signed it");
    let hint = refused.hint;
    let place = hint.find("--ca-file FILE").unwrap();
    assert!(place < hint.find("--insecure-registry").unwrap(), "{hint}");

    let ca = registry.ca().display().to_string();
    is_trusted(ask(&registry, home.path(), &["--ca-file", &ca]));
    // In DER, as exported by Windows.
    let pem = fs::read(registry.ca()).unwrap();
    let der = rustls::pki_types::CertificateDer::from_pem_slice(&pem).unwrap();
    fs::write(home.path().join("ca.cer"), der).unwrap();
    is_trusted(ask(&registry, home.path(), &["--ca-file", "ca.cer"]));
}

#[test]
fn a_self_signed_certificate_is_accepted_exactly_as_it_is() {
    let setup = Setup {
        self_signed: true,
        ..Setup::TLS
    };
    let registry = DockerRegistry::start(setup);
    let other = DockerRegistry::start(setup);
    let home = tempfile::tempdir().unwrap();
    let refused = is_refused(ask(&registry, home.path(), &[]));
    assert_contains!(refused.stderr, "it is self-signed");
    counts_for_itself_alone(&registry, &other);
}

#[test]
fn a_certificate_in_a_file_counts_for_its_names_and_without_one_in_a_hosts_folder() {
    let setup = Setup {
        self_signed: true,
        nameless: true,
        ..Setup::TLS
    };
    let registry = DockerRegistry::start(setup);
    let other = DockerRegistry::start(setup);
    let home = tempfile::tempdir().unwrap();
    let own = registry.certificate().display().to_string();
    let refused = is_refused(ask(&registry, home.path(), &["--ca-file", &own]));
    assert!(refused.hint.contains("--certs-dir DIR"), "{refused:#?}");
    assert!(refused.stderr.contains("not valid for"), "{refused:#?}");

    for host in [registry.host(), other.host()] {
        let folder = home.path().join("certs").join(&host);
        fs::create_dir_all(&folder).unwrap();
        fs::copy(registry.certificate(), folder.join("server.crt")).unwrap();
    }
    let pinned = ["--certs-dir", "certs"];
    is_trusted(ask(&registry, home.path(), &pinned));
    is_refused(ask(&other, home.path(), &pinned));
}

/// `openssl req -x509` makes the certificate of a registry one of a CA: whoever has its key could
/// pose as any host.
#[test]
fn a_ca_with_the_name_of_a_server_vouches_for_others_in_a_hosts_folder_alone() {
    let setup = Setup {
        named_ca: true,
        ..Setup::TLS
    };
    let registry = DockerRegistry::start(setup);
    let home = tempfile::tempdir().unwrap();
    let ca = registry.ca().display().to_string();
    let refused = is_refused(ask(&registry, home.path(), &["--ca-file", &ca]));
    assert_contains!(refused.message, "CN=throwaway", "names of servers");
    let place = format!("DIR/{}/ca.crt", registry.host());
    refused.advises(&["--certs-dir DIR", &place]);

    put_ca(&registry, &home.path().join("certs"));
    is_trusted(ask(&registry, home.path(), &["--certs-dir", "certs"]));
    let both = ["--certs-dir", "certs", "--ca-file", &ca];
    is_trusted(ask(&registry, home.path(), &both));
}

#[test]
fn a_certificate_that_is_no_cas_vouches_for_no_other() {
    let registry = DockerRegistry::start(Setup::TLS);
    let other = DockerRegistry::start(Setup::TLS);
    counts_for_itself_alone(&registry, &other);
}

#[test]
fn a_hosts_folder_is_for_that_host_alone() {
    let registry = DockerRegistry::start(Setup::TLS);
    let other = DockerRegistry::start(Setup::TLS);
    let home = tempfile::tempdir().unwrap();
    put_ca(&registry, &home.path().join("certs"));
    let named = ["--certs-dir", "certs"];
    is_trusted(ask(&registry, home.path(), &named));
    is_refused(ask(&other, home.path(), &named));
    // The folders of podman and skopeo.
    is_refused(ask(&registry, home.path(), &[]));
    put_ca(&registry, &home.path().join(".config/containers/certs.d"));
    is_trusted(ask(&registry, home.path(), &[]));
    is_refused(ask(&other, home.path(), &[]));
}

#[test]
fn a_registry_with_a_challenge_is_reported() {
    let setup = Setup {
        asks_clients: true,
        ..Setup::TLS
    };
    let registry = DockerRegistry::start(setup);
    let home = tempfile::tempdir().unwrap();
    let folder = put_ca(&registry, &home.path().join("certs"));
    let flags = ["--certs-dir", "certs", "--timeout", "60s"];
    ask(&registry, home.path(), &flags).is("network/unreachable", &[]);
    registry.identify(&folder);
    is_trusted(ask(&registry, home.path(), &flags));

    fs::remove_file(folder.join("client.key")).unwrap();
    ask(&registry, home.path(), &flags).is("usage/certificate-file", &["client.cert", "(.key)"]);
}

#[test]
fn what_is_no_certificate_is_named() {
    let registry = DockerRegistry::start(Setup::TLS);
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("empty.pem"), "nothing").unwrap();
    for (flags, code, file) in [
        (["--ca-file", "none.pem"], "usage", "none.pem"),
        (["--ca-file", "."], "usage", "."),
        (
            ["--ca-file", "empty.pem"],
            "usage/certificate-file",
            "empty.pem",
        ),
        (["--certs-dir", "none"], "usage", "none"),
    ] {
        ask(&registry, home.path(), &flags)
            .is(code, &[file])
            .advises(&["--c"]);
    }
}
