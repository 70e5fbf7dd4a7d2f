//! A registry that misbehaves: invalid responses with any status, redirect and size.

use tokio::runtime::Runtime;
use wincimg_testkit::docker_config;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault};
use wincimg_testkit::scripted::{answer, scripted};

use super::{Dice, network, outcome, rounds, run_and_check};
use crate::site::Site;

/// "bob:sesame", as in the `Authorization` header.
const SECRET: &str = "Ym9iOnNlc2FtZQ==";

#[test]
fn registry() {
    rounds("registry", 4, |dice| {
        let site = Site::new();
        network::recipe(&site, dice);
        // Records requests to the redirect target.
        let (seen, elsewhere) = scripted(|_| answer(200, &[], "{}"));
        let runtime = Runtime::new().unwrap();
        let mut chance = Dice::new(dice.below(1 << 30) as u64);
        let away = elsewhere.url("taken");
        let often = 2 + dice.below(8);
        let rule = move |passed: &ProxiedRequest| {
            if chance.one_in(often) {
                misbehaviour(&mut chance, passed, &away)
            } else {
                ProxyFault::Pass
            }
        };
        let proxy = runtime.block_on(FaultProxy::start(site.host(), rule));
        let host = proxy.host();
        let auths = serde_json::json!({ "auths": { &host: { "auth": SECRET } } });
        let config = docker_config(site.folder.path(), &auths);
        let base = format!("{host}/mcr");
        let image = format!("{base}/windows/nanoserver:10.0.17763.973");
        let mirror = format!("{}/mirrored", site.host());
        let build = [
            "build", "own", "--host-build", "17763.973", "--base-registry", &base,
        ];
        let words: Vec<&str> = match dice.below(7) {
            0 => vec!["base", "list", "nanoserver", "--base-registry", &base],
            1 => vec!["inspect", &image],
            2 => vec!["mirror", &image, "--to", &mirror],
            3 => [&build[..], &["--registry", &host, "--push"]].concat(),
            4 => [&build[..], &["--output", "oci:out"]].concat(),
            5 => [&build[..], &["--output", "docker-archive:out.tar"]].concat(),
            _ => vec!["doctor", "--registry", &host, "--base-registry", &base],
        };
        let mut command = site.command(&words);
        command.args(["--insecure-registry", "127.0.0.1", "--timeout", "5s"]);
        command.arg("--plain-credentials");
        command.args(["--registry-config".as_ref(), config.as_os_str()]);
        let output = run_and_check(command);
        for asked in seen.all() {
            let sent = format!("{asked:?}");
            assert!(!sent.contains(SECRET) && !sent.contains("sesame"), "{sent}");
        }
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_ne!(outcome(&output), "refused", "{printed}");
        assert!(
            !printed.contains("sesame") && !printed.contains(SECRET),
            "{printed}"
        );
        outcome(&output)
    });
}

fn misbehaviour(dice: &mut Dice, passed: &ProxiedRequest, away: &str) -> ProxyFault {
    let here = passed.path.clone();
    let body = match dice.below(8) {
        0 => String::new(),
        1 => "<html>\u{1b}[2J\r::error::no</html>".to_owned(),
        2 => "[".repeat(100_000),
        3 => "{\"tags\":[\"\u{202e}a\",null,\"\u{1b}]0;x\u{7}\"],\"name\":7}".to_owned(),
        4 => "{\"errors\":[{\"code\":\"\\u001b[31m\",\"message\":\"\\r\\nerror: all is well\"}]}"
            .to_owned(),
        5 => "{\"token\":\"a b\\r\\nc\",\"expires_in\":-1e999}".to_owned(),
        6 => "{\"schemaVersion\":2,\"manifests\":[{\"size\":-1,\"digest\":\"sha256:../../x\"}]}"
            .to_owned(),
        _ => "x".repeat(1 << dice.below(22)),
    };
    let status = *dice.one_of(&[
        200, 201, 202, 204, 206, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 409, 413, 416,
        418, 429, 500, 501, 502, 503, 504, 599,
    ]);
    let target = dice
        .one_of(&[
            away, &here, "/", "file:///etc/passwd", "http://[", "//", "https://127.0.0.1:1/",
        ])
        .to_string();
    // The client sends the password to the token server that the registry names, like other
    // clients.
    let realm = if target == away { "/" } else { &target };
    let realm = format!("Bearer realm=\"{realm}\",service=\"x\",scope=\"a b:c\"");
    let headers = match dice.below(6) {
        0 => vec![("Location", target)],
        1 => vec![("WWW-Authenticate", realm)],
        2 => vec![("WWW-Authenticate", "Basic realm=\"\"".to_owned())],
        3 => vec![(
            "Retry-After",
            ["0", "1", "99999999999", "soon"][dice.below(4)].to_owned(),
        )],
        4 => vec![("Link", format!("<{target}>; rel=\"next\""))],
        _ => vec![
            ("Docker-Content-Digest", "sha256:00".to_owned()),
            ("Range", "9-0".to_owned()),
        ],
    };
    ProxyFault::Answer(status, headers, body)
}
