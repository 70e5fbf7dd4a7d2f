//! Whose certificates are accepted: Debian's `docker-registry` with certificates of all kinds.

use std::fs;
use std::path::Path;

use predicates::prelude::*;
use predicates::str::contains;
use rustls::pki_types::pem::PemObject as _;
use wincimg_testkit::docker_registry::{DockerRegistry, Setup};

const TLS: Setup = Setup {
    tls: true,
    self_signed: false,
    asks_clients: false,
    password: false,
};

/// Asks a registry for an image that it does not have: who gets the answer has been let in.
fn ask(registry: &DockerRegistry, home: &Path, flags: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command.current_dir(home).env("HOME", home);
    for variable in ["SSL_CERT_FILE", "WINCIMG_CONFIG", "DOCKER_CONFIG"] {
        command.env_remove(variable);
    }
    let image = format!("{}/no/such:image", registry.host());
    command.args(["inspect", &image]).args(flags).assert()
}

fn is_let_in() -> impl Predicate<str> {
    contains("404").and(contains("certificate").not())
}

fn is_refused() -> impl Predicate<str> {
    contains("cannot trust the certificate of 127.0.0.1:")
}

/// A registry's certificate that is named lets in there, and nowhere else.
fn counts_for_itself_alone(registry: &DockerRegistry, other: &DockerRegistry) {
    let home = tempfile::tempdir().unwrap();
    let own = registry.certificate().display().to_string();
    ask(registry, home.path(), &["--ca-file", &own])
        .code(3)
        .stderr(is_let_in());
    ask(other, home.path(), &["--ca-file", &own])
        .code(3)
        .stderr(is_refused());
}

#[test]
fn a_ca_that_is_named_vouches_and_the_hint_names_the_flag_first() {
    let registry = DockerRegistry::start(TLS);
    let home = tempfile::tempdir().unwrap();
    let refused = ask(&registry, home.path(), &[])
        .code(3)
        .stderr(is_refused());
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    let place = |flag: &str| said.find(flag).unwrap_or_else(|| panic!("{flag}: {said}"));
    assert!(
        place("--ca-file FILE") < place("--insecure-registry"),
        "{said}"
    );

    let ca = registry.ca().display().to_string();
    ask(&registry, home.path(), &["--ca-file", &ca])
        .code(3)
        .stderr(is_let_in());
    // In DER, as Windows exports one.
    let pem = fs::read(registry.ca()).unwrap();
    let der = rustls::pki_types::CertificateDer::from_pem_slice(&pem).unwrap();
    fs::write(home.path().join("ca.cer"), der).unwrap();
    ask(&registry, home.path(), &["--ca-file", "ca.cer"])
        .code(3)
        .stderr(is_let_in());
}

#[test]
fn a_self_signed_certificate_is_accepted_exactly_as_it_is() {
    let setup = Setup {
        self_signed: true,
        ..TLS
    };
    let registry = DockerRegistry::start(setup);
    let other = DockerRegistry::start(setup);
    let home = tempfile::tempdir().unwrap();
    ask(&registry, home.path(), &[])
        .code(3)
        .stderr(is_refused());
    counts_for_itself_alone(&registry, &other);
}

#[test]
fn a_certificate_that_is_no_cas_vouches_for_no_other() {
    let registry = DockerRegistry::start(TLS);
    let other = DockerRegistry::start(TLS);
    counts_for_itself_alone(&registry, &other);
}

#[test]
fn a_hosts_folder_is_for_that_host_alone() {
    let registry = DockerRegistry::start(TLS);
    let other = DockerRegistry::start(TLS);
    let home = tempfile::tempdir().unwrap();
    let mine = |place: &str| {
        let folder = home.path().join(place).join(registry.host());
        fs::create_dir_all(&folder).unwrap();
        fs::copy(registry.ca(), folder.join("ca.crt")).unwrap();
    };
    mine("certs");
    let named = ["--certs-dir", "certs"];
    ask(&registry, home.path(), &named)
        .code(3)
        .stderr(is_let_in());
    ask(&other, home.path(), &named)
        .code(3)
        .stderr(is_refused());
    // Where podman and skopeo look.
    ask(&registry, home.path(), &[])
        .code(3)
        .stderr(is_refused());
    mine(".config/containers/certs.d");
    ask(&registry, home.path(), &[]).code(3).stderr(is_let_in());
    ask(&other, home.path(), &[]).code(3).stderr(is_refused());
}

#[test]
fn a_registry_that_asks_who_speaks_is_told() {
    let setup = Setup {
        asks_clients: true,
        ..TLS
    };
    let registry = DockerRegistry::start(setup);
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("certs").join(registry.host());
    fs::create_dir_all(&folder).unwrap();
    fs::copy(registry.ca(), folder.join("ca.crt")).unwrap();
    let flags = ["--certs-dir", "certs", "--timeout", "5s"];
    let refused = ask(&registry, home.path(), &flags).code(3);
    refused.stderr(is_let_in().not());
    registry.identify(&folder);
    ask(&registry, home.path(), &flags)
        .code(3)
        .stderr(is_let_in());

    fs::remove_file(folder.join("client.key")).unwrap();
    ask(&registry, home.path(), &flags)
        .code(3)
        .stderr(contains("client.cert: it has no key beside it (.key)"));
}

#[test]
fn what_is_no_certificate_is_named() {
    let registry = DockerRegistry::start(TLS);
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("empty.pem"), "nothing").unwrap();
    for (flags, code, said) in [
        (["--ca-file", "none.pem"], 2, "none.pem does not exist"),
        (["--ca-file", "."], 2, ". is a folder"),
        (
            ["--ca-file", "empty.pem"],
            3,
            "cannot use empty.pem: it has no certificate",
        ),
        (["--certs-dir", "none"], 2, "none is not a folder"),
    ] {
        ask(&registry, home.path(), &flags)
            .code(code)
            .stderr(contains(said).and(contains("hint: --c")));
    }
}
