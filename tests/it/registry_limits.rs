//! Registries with limits on requests, or without mounts.

use bytes::Bytes;
use wincimg_common::progress::Silent;
use wincimg_oci::remote::{RegistryOptions, Repository};
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault};
use wincimg_testkit::scripted::{ScriptedRequest, answer, scripted};
use wincimg_testkit::{describe, loopback_options, noise, options, pieces_to, put, repository};

const MIB: usize = 1024 * 1024;
const GHCR: &str = r#"{"errors":[{"code":"REQUESTED_RANGE_NOT_SATISFIABLE","message":"the request body is too large and exceeds the maximum permissible limit of 4.00MiB"}]}"#;

fn length(passed: &ProxiedRequest) -> usize {
    let length = passed.header("content-length");
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

fn lengths(proxy: &FaultProxy, method: &str) -> Vec<usize> {
    let requests = proxy.requests(method, "/uploads/");
    requests.iter().map(|passed| length(passed) / MIB).collect()
}

/// A repository to which blobs are uploaded in chunks of 8 MiB.
fn eights_to(proxy: &FaultProxy) -> Repository {
    let options = RegistryOptions {
        chunk_size: 8 << 20,
        ..options(&proxy.host())
    };
    repository(options, &format!("{}/a", proxy.host()))
}

#[test]
async fn large_blobs_go_to_a_registry_that_takes_pieces_of_four_mebibytes() {
    let contents = [1, 2].map(|seed| Bytes::from(noise(12 * MIB, seed)));
    for hidden in [None, Some(403), Some(405)] {
        let docker = DockerRegistry::plain();
        let rule = move |passed: &ProxiedRequest| match passed.method.as_str() {
            "PATCH" if length(passed) > 4 * MIB => ProxyFault::Answer(416, Vec::new(), GHCR.into()),
            "GET" if hidden.is_some() && passed.path.contains("/uploads/") => {
                ProxyFault::Answer(hidden.unwrap(), Vec::new(), String::new())
            }
            _ => ProxyFault::Pass,
        };
        let proxy = FaultProxy::start(docker.host(), rule).await;
        let repository = eights_to(&proxy);
        for bytes in &contents {
            let blob = put(&repository, bytes).await;
            assert_eq!(repository.get_blob(&blob, 64 << 20).await.unwrap(), *bytes);
        }
        let mut expected = vec![8];
        expected.extend([4; 6]);
        assert_eq!(
            lengths(&proxy, "PATCH"),
            expected,
            "one refusal, then it is known"
        );
    }
}

#[test]
async fn a_body_that_is_too_large_for_a_proxy_goes_in_smaller_pieces() {
    let page = || "<html>too large</html>".to_owned();
    for refusal in [
        ProxyFault::Answer(413, Vec::new(), page()),
        ProxyFault::AnswerEarly(413, page()),
        ProxyFault::AnswerAndCut(413, page()),
    ] {
        let docker = DockerRegistry::plain();
        let refused = refusal.clone();
        let rule = move |passed: &ProxiedRequest| match length(passed) {
            0..=5_000_000 => ProxyFault::Pass,
            _ => refused.clone(),
        };
        let proxy = FaultProxy::start(docker.host(), rule).await;
        let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
        // The first upload is refused in one request, the next goes in chunks at once.
        for seed in [1, 2] {
            let bytes = Bytes::from(noise(10 * MIB, seed));
            let blob = put(&repository, &bytes).await;
            assert_eq!(repository.get_blob(&blob, 16 << 20).await.unwrap(), bytes);
        }
        // The response before a disconnect may be lost; a second disconnect is no accident.
        let mut puts = lengths(&proxy, "PUT");
        if matches!(refusal, ProxyFault::AnswerAndCut(..)) {
            puts.dedup_by(|one, other| *one == 10 && one == other);
        }
        assert_eq!(puts, [10, 0, 0], "{refusal:?}");
        assert_eq!(lengths(&proxy, "PATCH"), [4, 4, 2, 4, 4, 2], "{refusal:?}");
    }
}

#[test]
async fn a_registry_that_takes_no_pieces_gets_every_blob_whole() {
    for status in [400, 404, 405, 411, 415, 501] {
        let docker = DockerRegistry::plain();
        let rule = move |passed: &ProxiedRequest| match passed.method.as_str() {
            "PATCH" => ProxyFault::Answer(status, Vec::new(), String::new()),
            _ => ProxyFault::Pass,
        };
        let proxy = FaultProxy::start(docker.host(), rule).await;
        let repository = pieces_to(&format!("{}/a", proxy.host()));
        for seed in [1, 2] {
            put(&repository, &Bytes::from(noise(2 * MIB, seed))).await;
        }
        assert_eq!(lengths(&proxy, "PATCH").len(), 1, "{status}");
        let puts = proxy.requests("PUT", "/uploads/");
        assert_eq!(puts.len(), 2, "{status}");
        assert!(puts.iter().all(|put| put.header("content-range").is_none()));
    }
}

#[test]
async fn a_registry_that_knows_only_docker_push_gets_one_piece_and_an_empty_end() {
    let contents = [(MIB, 1), (2 * MIB, 2), (10 * MIB, 3)];
    let contents = contents.map(|(size, seed)| Bytes::from(noise(size, seed)));
    for status in [404, 405, 415, 501] {
        let docker = DockerRegistry::plain();
        let rule = move |passed: &ProxiedRequest| match (passed.method.as_str(), length(passed)) {
            ("PUT", 1..) if passed.path.contains("/uploads/") => {
                ProxyFault::Answer(status, Vec::new(), String::new())
            }
            _ => ProxyFault::Pass,
        };
        let proxy = FaultProxy::start(docker.host(), rule).await;
        let repository = eights_to(&proxy);
        for bytes in &contents {
            let blob = put(&repository, bytes).await;
            assert_eq!(repository.get_blob(&blob, 64 << 20).await.unwrap(), *bytes);
        }
        assert_eq!(lengths(&proxy, "PUT"), [1, 0, 0, 0], "{status}");
        assert_eq!(lengths(&proxy, "PATCH"), [1, 2, 10], "{status}");
        let pieces = proxy.requests("PATCH", "/uploads/");
        assert!(pieces.iter().all(|it| it.header("content-range").is_none()));
    }
}

/// Each mode is tried once, then the response is reported.
#[test]
async fn a_registry_that_takes_blobs_in_no_way_is_given_up() {
    for status in [400, 404, 405, 413, 416] {
        let (log, server) = scripted(move |asked: &ScriptedRequest| match asked.method.as_str() {
            "POST" => answer(202, &[("Location", "/up")], ""),
            "PATCH" | "PUT" => answer(status, &[], ""),
            _ => answer(404, &[], ""),
        });
        let repository = pieces_to(&format!("{}/a", server.host()));
        for size in [MIB / 2, 2 * MIB] {
            let bytes = Bytes::from(noise(size, 6));
            let digest = describe(&bytes).digest;
            let put = repository.put_blob(&digest, size as u64, &bytes, &Silent);
            put.await.unwrap_err();
        }
        assert!(log.all().len() < 80, "{status}: {}", log.all().len());
    }
}

#[test]
async fn pieces_that_were_taken_and_are_not_the_blob_are_sent_again_as_one() {
    let docker = DockerRegistry::plain();
    // The registry accepts chunks but loses them.
    let rule = |passed: &ProxiedRequest| match passed.method.as_str() {
        "PATCH" => {
            let location = passed.path.clone();
            ProxyFault::Answer(202, vec![("Location", location)], String::new())
        }
        _ => ProxyFault::Pass,
    };
    let proxy = FaultProxy::start(docker.host(), rule).await;
    let repository = pieces_to(&format!("{}/a", proxy.host()));
    for seed in [3, 4] {
        let bytes = Bytes::from(noise(2 * MIB, seed));
        let blob = put(&repository, &bytes).await;
        assert_eq!(repository.get_blob(&blob, 4 << 20).await.unwrap(), bytes);
    }
    // The blob may have been at fault: the next one is sent in chunks again.
    assert_eq!(lengths(&proxy, "PATCH"), [1, 1, 1, 1]);
}

#[test]
async fn pieces_are_not_smaller_than_the_registry_wants() {
    let (log, server) = scripted(|asked: &ScriptedRequest| match asked.method.as_str() {
        "POST" => answer(
            202,
            &[("Location", "/up"), ("OCI-Chunk-Min-Length", "3145728")],
            "",
        ),
        // The response has no location.
        "PATCH" => answer(202, &[], ""),
        "PUT" => answer(201, &[], ""),
        _ => answer(404, &[], ""),
    });
    let repository = pieces_to(&format!("{}/a", server.host()));
    put(&repository, &Bytes::from(noise(8 * MIB, 4))).await;
    put(&repository, &Bytes::from(noise(3 * MIB, 5))).await;
    let all = log.all();
    let patches = all.iter().filter(|asked| asked.method == "PATCH");
    let patches: Vec<_> = patches.map(|asked| asked.body.len() / MIB).collect();
    assert_eq!(patches, [3, 3, 2]);
}

#[test]
async fn a_mount_that_is_not_granted_is_no_error() {
    for status in [400, 401, 403, 404, 405, 500, 501, 503] {
        let (log, server) = scripted(move |asked: &ScriptedRequest| {
            match (asked.method.as_str(), asked.field("mount")) {
                ("POST", Some(_)) => answer(status, &[], ""),
                ("POST", None) => answer(202, &[("Location", "/up")], ""),
                ("PUT", _) => answer(201, &[], ""),
                _ => answer(200, &[], "{}"),
            }
        });
        let repository = repository(loopback_options(None), &format!("{}/a", server.host()));
        let bytes = Bytes::from_static(b"layer");
        let digest = describe(&bytes).digest;
        for _ in 0..2 {
            assert!(
                !repository.mount_blob(&digest, "b").await.unwrap(),
                "{status}"
            );
        }
        put(&repository, &bytes).await;
        let mounts = log
            .all()
            .iter()
            .filter(|it| it.field("mount").is_some())
            .count();
        // A registry without mounts is not asked again.
        let expected = if matches!(status, 405 | 501) { 1 } else { 2 };
        assert_eq!(mounts, expected, "{status}");
    }
}

#[test]
async fn a_token_for_two_repositories_that_is_refused_means_not_mounted() {
    for refusal in [400, 401, 403, 404] {
        let (_log, server) = scripted(move |asked: &ScriptedRequest| {
            let realm = format!("http://{}/token", asked.header("host").unwrap());
            let challenge = format!(r#"Bearer realm="{realm}",service="x""#);
            match (asked.path.as_str(), asked.method.as_str()) {
                ("/token", _) if asked.query.matches("scope=").count() > 1 => {
                    answer(refusal, &[], "")
                }
                ("/token", _) => answer(200, &[], r#"{"token":"t"}"#),
                _ if asked.header("authorization").is_none() => {
                    answer(401, &[("WWW-Authenticate", &challenge)], "")
                }
                (_, "POST") => answer(202, &[("Location", "/up")], ""),
                (_, "PUT") => answer(201, &[], ""),
                _ => answer(200, &[], "{}"),
            }
        });
        let repository = repository(loopback_options(None), &format!("{}/a", server.host()));
        let bytes = Bytes::from_static(b"layer");
        let digest = describe(&bytes).digest;
        assert!(
            !repository.mount_blob(&digest, "b").await.unwrap(),
            "{refusal}"
        );
        put(&repository, &bytes).await;
    }
}
