//! Uploads over faulty networks and to faulty registries: complete, or a clear error.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wincimg_common::progress::Silent;
use wincimg_oci::document::media_type::OCI_LAYER;
use wincimg_oci::document::{Descriptor, Digest, Hasher};
use wincimg_oci::remote::{BlobReader, BlobSource, HttpError, RegistryError, RegistryOptions};
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault, first, method, reads_blob};
use wincimg_testkit::scripted::{RequestLog, ScriptedRequest, answer, scripted};
use wincimg_testkit::serve::TestServer;
use wincimg_testkit::{
    chain, describe, loopback_options, noise, options, pieces_to, put, repository,
};

const MIB: usize = 1024 * 1024;

fn impatient(host: &str) -> RegistryOptions {
    RegistryOptions {
        idle_timeout: Duration::from_millis(200),
        ..options(host)
    }
}

#[test]
async fn an_upload_that_is_cut_goes_on_from_the_byte_that_came_last() {
    let server = FakeRegistry::start();
    let rule = first(1, method("PUT"), ProxyFault::CutRequest(MIB));
    let proxy = FaultProxy::start(server.host(), rule).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    let bytes = Bytes::from(noise(3 * MIB, 3));
    let blob = put(&repository, &bytes).await;
    assert_eq!(repository.get_blob(&blob, 4 << 20).await.unwrap(), bytes);
    let sent: usize = proxy.log().iter().map(|passed| passed.sent).sum();
    assert_eq!(sent, 3 * MIB, "no byte went twice");
    assert_eq!(proxy.requests("POST", "/uploads/").len(), 1);
}

#[test]
async fn an_upload_in_pieces_goes_on_after_the_last_whole_piece() {
    let docker = DockerRegistry::plain();
    let mut patches = 0;
    let rule = move |passed: &ProxiedRequest| {
        patches += usize::from(passed.method == "PATCH");
        match passed.method.as_str() {
            "PATCH" if patches == 3 => ProxyFault::Answer(503, Vec::new(), "busy".into()),
            _ => ProxyFault::Pass,
        }
    };
    let proxy = FaultProxy::start(docker.host(), rule).await;
    let repository = pieces_to(&format!("{}/a", proxy.host()));
    let bytes = Bytes::from(noise(4 * MIB, 4));
    let blob = put(&repository, &bytes).await;
    let sent: usize = proxy
        .requests("PATCH", "")
        .iter()
        .map(|piece| piece.sent)
        .sum();
    assert_eq!(sent, 4 * MIB, "no piece went twice");
    assert_eq!(proxy.requests("GET", "/uploads/").len(), 1);
    assert_eq!(repository.get_blob(&blob, 4 << 20).await.unwrap(), bytes);
}

#[test]
async fn an_upload_that_the_registry_forgets_after_a_cut_begins_again() {
    let docker = DockerRegistry::plain();
    let rule = first(1, method("PATCH"), ProxyFault::CutRequest(MIB / 2));
    let proxy = FaultProxy::start(docker.host(), rule).await;
    let repository = pieces_to(&format!("{}/a", proxy.host()));
    let bytes = Bytes::from(noise(2 * MIB, 5));
    let blob = put(&repository, &bytes).await;
    assert_eq!(repository.get_blob(&blob, 4 << 20).await.unwrap(), bytes);
}

#[test]
async fn a_finished_upload_whose_answer_was_lost_is_not_sent_again() {
    let docker = DockerRegistry::plain();
    let rule = first(1, method("PUT"), ProxyFault::LoseAnswer);
    let proxy = FaultProxy::start(docker.host(), rule).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    put(&repository, &Bytes::from(noise(MIB, 7))).await;
    assert_eq!(proxy.requests("PUT", "").len(), 1);
}

#[test]
async fn an_upload_under_a_wrong_digest_is_refused_by_the_registry() {
    let docker = DockerRegistry::plain();
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let bytes = Bytes::from_static(b"these");
    let wrong = describe(b"those");
    let error = repository
        .put_blob(&wrong.digest, 5, &bytes, &Silent)
        .await
        .unwrap_err();
    assert_contains!(error, "DIGEST_INVALID");
}

/// A source that returns too few bytes, or an error.
struct TruncatedSource(Option<&'static str>);

impl BlobSource for TruncatedSource {
    fn open(&self, _offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        Box::pin(async move {
            match self.0 {
                Some(reason) => Err(io::Error::other(reason)),
                None => Ok(Box::pin(&b"short"[..]) as BlobReader),
            }
        })
    }
}

#[test]
async fn a_source_that_fails_is_distinguished_from_a_network_that_does() {
    let docker = DockerRegistry::plain();
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let blob = describe(b"longer than that");
    for (source, reason) in [
        (TruncatedSource(Some("bad sector")), "bad sector"),
        (TruncatedSource(None), " 5 bytes"),
    ] {
        let put = repository.put_blob(&blob.digest, blob.size, &source, &Silent);
        let error = put.await.unwrap_err();
        assert!(
            matches!(error, RegistryError::Http(HttpError::Source { .. })),
            "{error:?}"
        );
        assert_contains!(chain(&error), reason);
    }
    assert!(!repository.has_blob(&blob.digest).await.unwrap());
}

/// Both go through one proxy: the blob is read with `GET` and sent with `PATCH`.
#[test]
async fn a_blob_that_is_sent_in_pieces_is_asked_for_once() {
    let docker = DockerRegistry::plain();
    let proxy = FaultProxy::start(docker.host(), |_| ProxyFault::Pass).await;
    let bytes = Bytes::from(noise(4 * MIB, 21));
    let from = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let blob = put(&from, &bytes).await;
    let from = pieces_to(&format!("{}/a", proxy.host()));
    let to = pieces_to(&format!("{}/b", proxy.host()));
    let source = from.blob(&blob);
    let sent = to.put_blob(&blob.digest, blob.size, &source, &Silent);
    sent.await.unwrap();
    assert_eq!(proxy.requests("PATCH", "").len(), 4);
    assert_eq!(proxy.requests("GET", "/a/blobs/").len(), 1);
    assert_eq!(to.get_blob(&blob, 4 << 20).await.unwrap(), bytes);
}

#[test]
async fn a_damaged_blob_is_found_out_before_its_last_bytes_are_sent() {
    let (source, target) = (FakeRegistry::start(), FakeRegistry::start());
    let rule = first(99, reads_blob, ProxyFault::Flip(MIB / 2));
    let proxy = FaultProxy::start(source.host(), rule).await;
    let from = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    let blob = put(&from, &Bytes::from(noise(3 * MIB, 22))).await;
    let name = format!("{}/b", target.host());
    for to in [pieces_to(&name), repository(options(&target.host()), &name)] {
        let bytes = from.blob(&blob);
        let sent = to.put_blob(&blob.digest, blob.size, &bytes, &Silent);
        let error = chain(&sent.await.unwrap_err());
        assert_contains!(error, &blob.digest.to_string());
    }
}

/// A source of any size, generated while it is read.
struct GeneratedSource(u64);

impl BlobSource for GeneratedSource {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        let left = self.0 - offset;
        Box::pin(async move { Ok(Box::pin(tokio::io::repeat(7).take(left)) as BlobReader) })
    }
}

/// The digest of a generated source.
fn generated(mebibytes: usize) -> Digest {
    let mut hasher = Hasher::default();
    let chunk = vec![7; MIB];
    (0..mebibytes).for_each(|_| hasher.update(&chunk));
    hasher.finish()
}

#[test(multi_thread)]
async fn a_large_blob_goes_up_and_down_in_little_memory() {
    let size = 256 * MIB as u64;
    if let Some(host) = wincimg_testkit::child_argument() {
        let repository = repository(options(&host), &format!("{host}/a"));
        let digest = generated(256);
        repository
            .put_blob(&digest, size, &GeneratedSource(size), &Silent)
            .await
            .unwrap();
        let blob = Descriptor::new(OCI_LAYER, digest, size);
        let mut reader = repository.blob(&blob).open(0).await.unwrap();
        assert_eq!(
            tokio::io::copy(&mut reader, &mut tokio::io::sink())
                .await
                .unwrap(),
            size
        );
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
            let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
            assert!(kilobytes < 48 * 1024, "peak memory {kilobytes} kB");
        }
        return;
    }
    let docker = DockerRegistry::plain();
    wincimg_testkit::in_child(
        "a_large_blob_goes_up_and_down_in_little_memory",
        &docker.host(),
        &[],
    );
}

#[test]
async fn a_registry_that_stops_reading_is_left_and_the_upload_goes_on_elsewhere() {
    let docker = DockerRegistry::plain();
    let rule = first(1, method("PUT"), ProxyFault::StallRequest(MIB));
    let proxy = FaultProxy::start(docker.host(), rule).await;
    let repository = repository(impatient(&proxy.host()), &format!("{}/a", proxy.host()));
    let bytes = Bytes::from(noise(24 * MIB, 14));
    let blob = put(&repository, &bytes).await;
    assert_eq!(repository.get_blob(&blob, 32 << 20).await.unwrap(), bytes);
    assert_eq!(proxy.requests("PUT", "").len(), 2);
}

#[test]
async fn an_upload_that_cannot_end_is_cancelled() {
    let docker = DockerRegistry::plain();
    let proxy = FaultProxy::start(docker.host(), |_| ProxyFault::Pass).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    let blob = describe(b"longer than that");
    let put = repository.put_blob(&blob.digest, blob.size, &TruncatedSource(None), &Silent);
    put.await.unwrap_err();
    assert_eq!(proxy.requests("DELETE", "/uploads/").len(), 1);
}

/// A registry that keeps half of the first chunk and reports success.
#[test]
async fn where_pieces_do_not_add_up_the_upload_goes_on_from_the_registrys_offset() {
    let has = Arc::new(Mutex::new(0_usize));
    let (log, server) = scripted(move |asked: &ScriptedRequest| {
        let mut has = has.lock().unwrap();
        let range = format!("0-{}", has.saturating_sub(1));
        match asked.method.as_str() {
            "POST" => answer(202, &[("Location", "/up")], ""),
            "GET" if asked.path == "/up" => answer(204, &[("Range", &range)], ""),
            "PATCH" => {
                let start = asked.header("content-range").unwrap().split('-').next();
                if start != Some(&has.to_string()) {
                    return answer(416, &[], "");
                }
                *has += if *has == 0 { MIB / 2 } else { asked.body.len() };
                answer(202, &[], "")
            }
            "PUT" => answer(if *has == 2 * MIB { 201 } else { 400 }, &[], ""),
            _ => answer(404, &[], ""),
        }
    });
    let repository = pieces_to(&format!("{}/a", server.host()));
    put(&repository, &Bytes::from(noise(2 * MIB, 9))).await;
    let all = log.all();
    let ranges = all.iter().filter_map(|it| it.header("content-range"));
    assert_eq!(
        ranges.collect::<Vec<_>>(),
        [
            "0-1048575", "1048576-2097151", "524288-1572863", "1572864-2097151"
        ]
    );
}

/// Like Gitea: it reports one byte too many, and accepts nothing after an interrupted request.
#[test]
async fn an_upload_that_its_registry_spoilt_begins_again() {
    for (size, sent) in [(MIB / 2, [MIB / 2; 2].as_slice()), (2 * MIB, &[MIB; 4])] {
        let broken = Arc::new(Mutex::new(false));
        let (log, server) = scripted(move |asked: &ScriptedRequest| {
            let mut broken = broken.lock().unwrap();
            let opened = if *broken { "/up/2" } else { "/up/1" };
            let first = asked.path == "/up/1";
            let later = !asked
                .header("content-range")
                .is_some_and(|range| range.starts_with("0-"));
            match asked.method.as_str() {
                "POST" => answer(202, &[("Location", opened)], ""),
                "GET" if first && size > MIB => answer(204, &[("Range", "0-1048576")], ""),
                "GET" if first => answer(204, &[("Range", "0-0")], ""),
                "PATCH" | "PUT" if first && (*broken || later) => {
                    *broken = true;
                    answer(500, &[], "")
                }
                "PATCH" => answer(202, &[], ""),
                "PUT" => answer(201, &[], ""),
                _ => answer(404, &[], ""),
            }
        });
        let repository = pieces_to(&format!("{}/a", server.host()));
        put(&repository, &Bytes::from(noise(size, 10))).await;
        let all = log.all();
        let bodies = all.iter().map(|asked| asked.body.len());
        let bodies: Vec<_> = bodies.filter(|length| *length > 0).collect();
        assert_eq!(bodies, sent);
        assert_eq!(log.count("POST", "/uploads/"), 2);
    }
}

/// Uploads a blob in chunks until no attempt is left.
async fn fail_to_put(server: &TestServer, blob: Vec<u8>) {
    let repository = pieces_to(&format!("{}/a", server.host()));
    let bytes = Bytes::from(blob);
    let blob = describe(&bytes);
    let put = repository.put_blob(&blob.digest, blob.size, &bytes, &Silent);
    let error = put.await.unwrap_err();
    assert!(
        matches!(error, RegistryError::GaveUp { attempts: 6, .. }),
        "{error:?}"
    );
}

/// A registry that accepts each chunk but the last and then has lost the upload must not be retried
/// for ever.
#[test]
async fn what_a_registry_loses_is_not_progress() {
    let (log, server) = scripted(|asked: &ScriptedRequest| match asked.method.as_str() {
        "POST" => answer(202, &[("Location", "/up")], ""),
        "PATCH" if asked.header("content-range") == Some("2097152-3145727") => answer(500, &[], ""),
        "PATCH" => answer(202, &[], ""),
        _ => answer(404, &[], ""),
    });
    fail_to_put(&server, noise(3 * MIB, 12)).await;
    assert_eq!(log.count("PATCH", "/up"), 3 * 6);
}

/// A registry that keeps this many bytes of each chunk, and fails if it has more.
fn keeping(gain: usize) -> (RequestLog, TestServer) {
    let kept = Arc::new(Mutex::new(0));
    scripted(move |asked: &ScriptedRequest| {
        let mut kept = kept.lock().unwrap();
        match asked.method.as_str() {
            "POST" => answer(202, &[("Location", "/up")], ""),
            "PATCH" | "PUT" if asked.body.len() > gain => {
                *kept += gain;
                answer(500, &[], "")
            }
            "PATCH" => answer(202, &[], ""),
            "GET" if asked.path == "/up" => {
                answer(204, &[("Range", &*format!("0-{}", *kept - 1))], "")
            }
            "PUT" => answer(201, &[], ""),
            _ => answer(404, &[], ""),
        }
    })
}

/// A chunk that is always interrupted is progress if the registry keeps its beginning.
#[test]
async fn what_a_registry_keeps_of_broken_chunks_is_progress() {
    const GAIN: usize = MIB / 8;
    let (log, server) = keeping(GAIN);
    let repository = pieces_to(&format!("{}/a", server.host()));
    put(&repository, &Bytes::from(noise(2 * MIB, 13))).await;
    assert_eq!(log.count("PATCH", "/up"), 2 * MIB / GAIN);
    assert_eq!(log.count("POST", "/uploads/"), 1);
}

/// Otherwise it would be sent sixty-four times the blob.
#[test]
async fn little_of_each_chunk_is_not_progress() {
    let (log, server) = keeping(MIB / 64);
    fail_to_put(&server, noise(2 * MIB, 15)).await;
    assert_eq!(log.count("PATCH", "/up"), 6);
}

#[test]
async fn where_large_chunks_break_small_ones_are_progress() {
    const SIZE: usize = 12 * MIB;
    let (log, server) = keeping(MIB);
    let breaks = |passed: &ProxiedRequest| {
        let length = passed.header("content-length");
        length.is_some_and(|length| length.parse::<usize>().unwrap() > MIB)
    };
    let rule = first(usize::MAX, breaks, ProxyFault::LoseAnswer);
    let proxy = FaultProxy::start(server.host(), rule).await;
    let options = RegistryOptions {
        chunk_size: 16 << 20,
        ..loopback_options(None)
    };
    let repository = repository(options, &format!("{}/a", proxy.host()));
    put(&repository, &Bytes::from(noise(SIZE, 16))).await;
    let all = log.all();
    let sent: usize = all.iter().map(|asked| asked.body.len()).sum();
    assert!(sent < 6 * SIZE, "{sent}");
}

/// A proxy that cuts each connection after some bytes; returns its port and the bytes sent through.
async fn cutter(server: String, after: usize) -> (u16, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let sent = Arc::new(Mutex::new(0));
    let count = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (server, count) = (server.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let server = TcpStream::connect(server).await.unwrap();
                let (mut from, mut to) = client.into_split();
                let (mut back, mut ahead) = server.into_split();
                let up = async {
                    let (mut left, mut piece) = (after, vec![0; 64 << 10]);
                    while let Ok(length @ 1..) = from.read(&mut piece).await {
                        *count.lock().unwrap() += length;
                        left = left.saturating_sub(length);
                        let passed = ahead.write_all(&piece[..length]).await;
                        if left == 0 || passed.is_err() {
                            return;
                        }
                    }
                };
                // The end of one direction ends the connection.
                tokio::select! {
                    () = up => {}
                    _ = tokio::io::copy(&mut back, &mut to) => {}
                }
            });
        }
    });
    (port, sent)
}

/// Debian's registry loses an upload whose chunk is interrupted, and a connection carries less than
/// the blob: less than a chunk, a little more, and several of them.
#[test]
async fn what_cuts_connections_after_some_bytes_ends_no_upload() {
    const SIZE: usize = 75 * MIB;
    let digest = generated(75);
    let size = SIZE as u64;
    let source = GeneratedSource(size);
    for after in [5 * MIB, 10 * MIB, 38 * MIB] {
        let docker = DockerRegistry::plain();
        let (port, sent) = cutter(docker.host(), after).await;
        let options = RegistryOptions {
            chunk_size: 8 << 20,
            ..loopback_options(None)
        };
        let repository = repository(options, &format!("127.0.0.1:{port}/a"));
        let put = repository.put_blob(&digest, size, &source, &Silent);
        put.await.unwrap();
        // The registry has verified its digest.
        assert!(repository.has_blob(&digest).await.unwrap());
        let sent = *sent.lock().unwrap();
        assert!((SIZE..SIZE * 5 / 2).contains(&sent), "{after}: {sent}");
    }
}
