//! Certificates of recipes: in the layer, read by hivex and openssl, and in Windows' stores, as far
//! as wine has them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use wincimg_testkit::component;
use wincimg_testkit::wine::{Wine, succeed, windows_path};

use super::host_process::files_of;
use crate::failure::Fails;
use crate::site::{Site, stderr};

/// A CA and a server certificate signed by it; their keys of RSA take a second.
fn certificates() -> &'static [Vec<u8>; 2] {
    static MADE: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        for line in [
            "req -x509 -newkey rsa:2048 -nodes -keyout root.key -out root.pem -subj /O=Corp/CN=Corp-Root -days 30",
            "req -newkey rsa:2048 -nodes -keyout leaf.key -out leaf.csr -subj /CN=www.corp.lan",
            "x509 -req -in leaf.csr -CA root.pem -CAkey root.key -set_serial 3 -days 20 -outform DER -out leaf.der",
        ] {
            openssl(folder.path(), line);
        }
        ["root.pem", "leaf.der"].map(|file| fs::read(folder.path().join(file)).unwrap())
    })
}

/// A folder with the CA, `root.pem`, and the server's certificate, `leaf.der`.
fn with_certificates() -> Site {
    let [root, leaf] = certificates();
    let site = Site::new();
    site.write("root.pem", root);
    site.write("leaf.der", leaf);
    site.write(
        "recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\n[certificates]\nroot = [\"root.pem\"]\ntrusted_people = [\"leaf.der\"]\n",
    );
    site
}

fn openssl(folder: &Path, line: &str) -> String {
    let mut command = Command::new(component("openssl"));
    succeed(command.args(line.split(' ')).current_dir(folder)).unwrap()
}

/// The SHA-1 according to openssl.
fn thumbprint(site: &Site, file: &str) -> String {
    let line = format!("x509 -in {file} -noout -fingerprint -sha1");
    let line = openssl(site.folder.path(), &line);
    let (_, digits) = line.trim().split_once('=').unwrap();
    digits.replace(':', "")
}

#[test]
fn hivex_finds_the_certificate_and_openssl_reads_it() {
    let site = with_certificates();
    let hivexget = component("hivexget");
    let files = files_of(&site, &site.built_layer());
    let software = files
        .iter()
        .find(|(path, _)| path == "Hives/Software_Delta");
    let hive = site.write("delta", &software.unwrap().1);
    for (store, file) in [("ROOT", "root.pem"), ("TrustedPeople", "leaf.der")] {
        let sha1 = thumbprint(&site, file);
        let key = format!(r"\Microsoft\SystemCertificates\{store}\Certificates\{sha1}");
        let output = Command::new(&hivexget)
            .args([hive.as_path(), Path::new(&key), Path::new("Blob")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let (header, rest) = output.stdout.split_at(12);
        assert_eq!(header, [3, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0]);
        let (header, der) = rest.split_at(32);
        assert_eq!(hex::encode_upper(&header[..20]), sha1);
        assert_eq!(header[20..28], [32, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(
            header[28..],
            u32::try_from(der.len()).unwrap().to_le_bytes()
        );
        site.write("found.der", der);
        assert_eq!(thumbprint(&site, "found.der"), sha1);
    }
}

#[test]
fn windows_of_wine_trusts_whom_the_root_vouches_for() {
    let site = with_certificates();
    let wine = Wine::start();
    wine.compile("tests/programs/store.c", "store.exe", &["-lcrypt32"])
        .unwrap();
    let store = |arguments: &[&str]| {
        let mut command = wine.command(wine.drive().join("store.exe"));
        succeed(command.args(arguments)).map(|text| text.trim().to_owned())
    };
    let leaf = windows_path(&site.path("leaf.der"));
    let untrusted = u32::from_str_radix(&store(&["--chain", &leaf]).unwrap(), 16).unwrap();
    assert_ne!(untrusted, 0, "the root is not trusted yet");

    let rendered = site
        .with_bases(&[
            "render", ".", "--host-build", "17763.973", "--output", "out",
        ])
        .output()
        .unwrap();
    assert!(rendered.status.success(), "{}", stderr(&rendered));
    let dockerfile = site.text("out/Dockerfile");
    assert_contains!(dockerfile, "registry-1.reg");
    let changes = windows_path(&site.path("out/registry-1.reg"));
    succeed(wine.command("reg").args(["import", &changes])).unwrap();

    let root = thumbprint(&site, "root.pem");
    let found = store(&["ROOT", &root]).unwrap();
    site.write("found.der", hex::decode(found).unwrap());
    assert_eq!(thumbprint(&site, "found.der"), root);
    assert!(store(&["TrustedPeople", &thumbprint(&site, "leaf.der")]).is_ok());
    assert!(store(&["CA", &root]).is_err());
    assert_eq!(store(&["--chain", &leaf]).unwrap(), "00000000");
}

#[test]
fn a_container_without_windows_has_no_stores() {
    let site = with_certificates();
    let recipe = site
        .text("recipe.toml")
        .replace("nanoserver", "hostprocess");
    site.write("recipe.toml", recipe);
    site.build(".").args(["--output", "oci:layout"]).fails(
        2,
        "base/no-windows",
        &["certificates", "HostProcess"],
    );
}
