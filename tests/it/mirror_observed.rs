//! What an observer of mirrored blobs sees: a blob whose download broke, never other bytes as
//! verified. It delays no copy.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use wincimg_common::progress::Silent;
use wincimg_oci::copy::Watcher;
use wincimg_oci::document::{Descriptor, ManifestFormat};
use wincimg_oci::mirror::{CompanionTask, MirrorHook, MirrorJob, mirror};
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::parse_reference;
use wincimg_oci::remote::BlobObserver;
use wincimg_oci::store::Sink;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::image_locations::registry;
use wincimg_testkit::mirror_fixture::{OLD, client, whole};
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault, first, reads_blob};
use wincimg_testkit::windows_base::StandIn;

/// Long enough not to fit into the buffers on the way.
const SIZE: usize = 24 << 20;

/// What was seen of the layer, and whether it is verified.
type Seen = JoinHandle<(Vec<u8>, bool)>;

/// Takes the bytes of the layer, with a pause after each piece.
#[derive(Default)]
struct Observer {
    pause: Duration,
    seen: Mutex<Option<Seen>>,
}

impl Watcher for Observer {
    fn watch(&self, blob: &Descriptor) -> Option<BlobObserver> {
        if blob.size < SIZE as u64 {
            return None;
        }
        let (bytes, mut receiver) = mpsc::channel::<Bytes>(8);
        let (verified, is_verified) = oneshot::channel();
        let pause = self.pause;
        let seen = tokio::spawn(async move {
            let mut seen = Vec::new();
            while let Some(piece) = receiver.recv().await {
                seen.extend_from_slice(&piece);
                sleep(pause).await;
            }
            (seen, is_verified.await.is_ok())
        });
        *self.seen.lock().unwrap() = Some(seen);
        Some(BlobObserver { bytes, verified })
    }
}

impl MirrorHook for Observer {
    fn start_image<'a>(&'a self, _: MirrorJob<'a>) -> BoxFuture<'a, CompanionTask<'a>> {
        Box::pin(async { CompanionTask(Box::pin(async { Vec::new() })) })
    }
}

struct Observed {
    is_copied: bool,
    layer: Bytes,
    seen: Vec<u8>,
    is_verified: bool,
}

/// Mirrors a layer with faults of its first download and its first upload.
async fn observe(observer: Observer, download: ProxyFault, upload: ProxyFault) -> Observed {
    static IMAGE: OnceLock<StandIn> = OnceLock::new();
    let upstream = DockerRegistry::plain();
    let own = DockerRegistry::plain();
    let image = IMAGE.get_or_init(|| StandIn::new(ManifestFormat::Docker, OLD, &[(SIZE, 1)]));
    let layer = image.layers[0].clone();
    let digest = layer.0.digest.to_string();
    let is_layer =
        move |passed: &ProxiedRequest| reads_blob(passed) && passed.path.ends_with(&digest);
    let front = FaultProxy::start(upstream.host(), first(1, is_layer, download)).await;
    let is_long = |passed: &ProxiedRequest| {
        let length = passed.header("content-length");
        length.is_some_and(|it| it.parse::<usize>().is_ok_and(|it| it > 1 << 20))
    };
    let mirrored = FaultProxy::start(own.host(), first(1, is_long, upload)).await;
    let name = |host: &str| parse_reference(&format!("{host}/app:1")).unwrap();
    let put = registry(&upstream.host()).repository(&name(&upstream.host()));
    image.put(&Sink::Registry(put), Some("1")).await;
    let observer = Arc::new(observer);
    let target: RegistryPrefix = format!("{}/mcr", mirrored.host()).parse().unwrap();
    let (client, images, options) = (
        client(&["127.0.0.1"]),
        [name(&front.host()).into()],
        whole(),
    );
    let hook: Arc<dyn MirrorHook> = observer.clone();
    let report = mirror(
        &client,
        &images,
        &target,
        &options,
        Some(hook),
        Arc::new(Silent),
    );
    let report = timeout(Duration::from_secs(20), report).await.unwrap();
    let seen = observer.seen.lock().unwrap().take().unwrap();
    let (seen, is_verified) = seen.await.unwrap();
    Observed {
        is_copied: report.unwrap().images[0].error.is_none(),
        layer: layer.1,
        seen,
        is_verified,
    }
}

#[test(multi_thread)]
async fn a_blob_is_seen_whole_although_its_download_broke() {
    for download in [ProxyFault::Pass, ProxyFault::CutAnswer(9 << 20)] {
        let it = observe(Observer::default(), download, ProxyFault::Pass).await;
        assert!(it.is_copied && it.is_verified);
        assert!(it.seen == it.layer, "{} bytes", it.seen.len());
    }
}

#[test(multi_thread)]
async fn other_bytes_are_never_verified() {
    let wrong = ProxyFault::Flip(1 << 20);
    let it = observe(Observer::default(), wrong.clone(), ProxyFault::Pass).await;
    assert!(!it.is_copied && !it.is_verified);
    // The second upload has the right bytes; what was seen is of the first.
    let it = observe(Observer::default(), wrong, ProxyFault::CutRequest(500)).await;
    assert!(it.is_copied && !it.is_verified);
}

#[test(multi_thread)]
async fn a_slow_observer_delays_no_copy() {
    let slow = Observer {
        pause: Duration::from_millis(500),
        ..Observer::default()
    };
    let it = observe(slow, ProxyFault::Pass, ProxyFault::Pass).await;
    assert!(it.is_copied && it.is_verified);
    assert!(it.seen.len() < it.layer.len());
}
