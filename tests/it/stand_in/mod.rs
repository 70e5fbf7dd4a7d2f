//! A registry inside the test that counts what is asked of it: thousands of tags in pages, images
//! of any version without a byte of Windows in them, tags that move while one looks.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::serve::{Served, serve};

const PAGE: usize = 1000;
const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";
const CONFIG: &str = "application/vnd.docker.container.image.v1+json";

/// A running stand-in; it ends with the test's process.
pub struct StandIn {
    pub host: String,
    content: Arc<Mutex<Content>>,
    _served: Served,
}

#[derive(Default)]
struct Content {
    /// Repository → tag → digest.
    tags: BTreeMap<String, BTreeMap<String, String>>,
    /// Digest → media type and bytes, of manifests and blobs alike.
    stored: HashMap<String, (String, Vec<u8>)>,
    requests: Vec<String>,
    /// Applied after the tags were listed.
    after_list: Option<Change>,
}

type Change = Box<dyn FnOnce(&mut Content) + Send>;

impl StandIn {
    pub fn start() -> Self {
        let content = Arc::new(Mutex::new(Content::default()));
        let state = content.clone();
        let served = serve(Router::new().fallback(answer).with_state(state));
        Self {
            host: served.host(),
            content,
            _served: served,
        }
    }

    /// An image manifest with a configuration that says this version, and its digest.
    pub fn image(&self, os: &str, version: &str) -> String {
        self.image_with(&json!({"os": os, "architecture": "amd64", "os.version": version}))
    }

    /// An image manifest with this configuration, and its digest.
    pub fn image_with(&self, config: &Value) -> String {
        self.image_of(config, &[])
    }

    /// The same with layers, each as its descriptor and the digest of its tar.
    pub fn image_of(&self, config: &Value, layers: &[(Value, String)]) -> String {
        let mut config = config.clone();
        let diff_ids: Vec<&String> = layers.iter().map(|(_, diff_id)| diff_id).collect();
        config["rootfs"] = json!({"type": "layers", "diff_ids": diff_ids});
        let config = config.to_string().into_bytes();
        let size = config.len();
        let descriptors: Vec<&Value> = layers.iter().map(|(descriptor, _)| descriptor).collect();
        let mut content = self.content.lock().unwrap();
        let digest = content.store(CONFIG, config);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": digest, "size": size},
            "layers": descriptors,
        });
        content.store(MANIFEST, manifest.to_string().into_bytes())
    }

    /// Stores an uncompressed layer, for [`StandIn::image_of`].
    pub fn layer(&self, tar: Vec<u8>) -> (Value, String) {
        let size = tar.len();
        let digest = self.content.lock().unwrap().store(LAYER, tar);
        let descriptor = json!({"mediaType": LAYER, "digest": digest, "size": size});
        (descriptor, digest)
    }

    /// An index of images, each with the platform version that it should claim.
    pub fn index(&self, entries: &[(&str, Option<&str>)]) -> String {
        let mut content = self.content.lock().unwrap();
        let manifests: Vec<Value> = entries
            .iter()
            .map(|(digest, version)| {
                let mut platform = json!({"os": "windows", "architecture": "amd64"});
                if let Some(version) = version {
                    platform["os.version"] = json!(version);
                }
                let size = content.stored[*digest].1.len();
                json!({"mediaType": MANIFEST, "digest": digest, "size": size, "platform": platform})
            })
            .collect();
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        content.store(INDEX, index.to_string().into_bytes())
    }

    pub fn tag(&self, repository: &str, tag: &str, digest: &str) {
        self.content.lock().unwrap().tag(repository, tag, digest);
    }

    /// An index of one Windows image under a tag, as Microsoft publishes; the image's digest.
    pub fn publish(&self, repository: &str, tags: &[&str], version: &str) -> String {
        let image = self.image("windows", version);
        let index = self.index(&[(&image, Some(version))]);
        for tag in tags {
            self.tag(repository, tag, &index);
        }
        image
    }

    /// Moves a tag right after the tags were listed.
    pub fn move_after_list(&self, repository: &str, tag: &str, digest: Option<String>) {
        let (repository, tag) = (repository.to_owned(), tag.to_owned());
        self.content.lock().unwrap().after_list = Some(Box::new(move |content| match digest {
            Some(digest) => content.tag(&repository, &tag, &digest),
            None => {
                content.tags.get_mut(&repository).unwrap().remove(&tag);
            }
        }));
    }

    /// Drops a manifest or a blob.
    pub fn lose(&self, digest: &str) {
        self.content.lock().unwrap().stored.remove(digest);
    }

    /// What was asked so far, `GET tags` and the like, without the first contact.
    pub fn requests(&self) -> Vec<String> {
        self.content.lock().unwrap().requests.clone()
    }
}

impl Content {
    fn store(&mut self, media_type: &str, bytes: Vec<u8>) -> String {
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(&bytes)));
        self.stored
            .insert(digest.clone(), (media_type.to_owned(), bytes));
        digest
    }

    fn tag(&mut self, repository: &str, tag: &str, digest: &str) {
        let tags = self.tags.entry(repository.to_owned()).or_default();
        tags.insert(tag.to_owned(), digest.to_owned());
    }

    fn answer(&mut self, method: &Method, path: &str, query: &str) -> Response<Body> {
        let Some(rest) = path.strip_prefix("/v2/") else {
            return status(StatusCode::NOT_FOUND);
        };
        if rest.is_empty() {
            return status(StatusCode::OK);
        }
        if let Some(repository) = rest.strip_suffix("/tags/list") {
            self.requests.push(format!("{method} tags {query}"));
            let page = self.list(repository, query);
            if let Some(change) = self.after_list.take() {
                change(self);
            }
            return page;
        }
        for kind in ["manifests", "blobs"] {
            let Some((repository, which)) = rest.split_once(&format!("/{kind}/")) else {
                continue;
            };
            self.requests.push(format!("{method} {kind} {which}"));
            let digest = if which.starts_with("sha256:") {
                Some(which.to_owned())
            } else {
                self.tags
                    .get(repository)
                    .and_then(|tags| tags.get(which))
                    .cloned()
            };
            let found = digest.and_then(|digest| Some((self.stored.get(&digest)?, digest)));
            let Some(((media_type, bytes), digest)) = found else {
                return status(StatusCode::NOT_FOUND);
            };
            return Response::builder()
                .header("content-type", media_type)
                .header("docker-content-digest", digest)
                .body(Body::from(bytes.clone()))
                .unwrap();
        }
        status(StatusCode::NOT_FOUND)
    }

    /// The tags after `last`, as many as asked for, with a link to the rest.
    fn list(&self, repository: &str, query: &str) -> Response<Body> {
        let Some(tags) = self.tags.get(repository) else {
            return status(StatusCode::NOT_FOUND);
        };
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        };
        let last = parameter("last").unwrap_or_default();
        let asked: usize = parameter("n").map_or(PAGE, |n| n.parse().unwrap());
        let length = asked.min(PAGE);
        let mut rest = tags.keys().filter(|tag| **tag > last);
        let page: Vec<&String> = rest.by_ref().take(length).collect();
        let mut response = Response::builder();
        if rest.next().is_some() {
            let link = format!(
                "</v2/{repository}/tags/list?n={length}&last={}>",
                page[length - 1]
            );
            response = response.header("link", format!("{link}; rel=\"next\""));
        }
        let body = json!({"name": repository, "tags": page}).to_string();
        response.body(Body::from(body)).unwrap()
    }
}

fn status(status: StatusCode) -> Response<Body> {
    Response::builder()
        .status(status)
        .body(Body::empty())
        .unwrap()
}

async fn answer(
    State(content): State<Arc<Mutex<Content>>>,
    request: Request<Body>,
) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let mut content = content.lock().unwrap();
    content.answer(request.method(), request.uri().path(), &query)
}
