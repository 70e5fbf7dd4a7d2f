//! A daemon that answers: the requests of Docker's API that are used here.
//!
//! `bollard` 0.21 is not used, because what it leaves out is what this engine is for: its build
//! options have no `isolation` and no memory above 2 GiB; the messages of a push lose the layer's
//! id and the `aux` object with the digest; credentials go out in base64 of the wrong alphabet, so
//! that the daemon drops some of them; an unknown word in `/info` makes all of it unreadable; TLS
//! needs all three certificates and cannot be unverified. What is left of it is HTTP, which `hyper`
//! does.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::api::{ImageInfo, Info, Message};
use super::endpoint::Endpoint;
use super::error::{ApiVersion, DockerError};
use super::transport::{Answer, Body, Break, Connection, Transport};

/// Docker 17.06, the first that knows an image's version of Windows.
const OLDEST: ApiVersion = ApiVersion {
    major: 1,
    minor: 30,
};
/// The newest version whose answers are known.
const NEWEST: ApiVersion = ApiVersion {
    major: 1,
    minor: 47,
};
/// How long the daemon may take for an answer that needs no work.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than any document of the API has.
const MOST_BYTES: usize = 32 << 20;

/// A daemon that answered.
pub struct Daemon {
    endpoint: Endpoint,
    transport: Transport,
    version: ApiVersion,
}

/// What a request is about.
pub(super) struct Call {
    /// What the daemon is to do, for messages: `build the image`.
    pub(super) what: String,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) headers: Vec<(&'static str, HeaderValue)>,
    pub(super) body: Option<Body>,
}

impl Call {
    pub(super) fn new(what: impl Into<String>, method: Method, path: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            method,
            path: path.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    message: String,
}

impl Daemon {
    /// Connects, and agrees on a version of the API.
    pub async fn connect(endpoint: Endpoint) -> Result<Self, DockerError> {
        let mut daemon = Self {
            transport: Transport::new(&endpoint)?,
            endpoint,
            version: OLDEST,
        };
        let what = "say which version of the API it speaks";
        let call = Call::new(what, Method::GET, "/_ping");
        let response = daemon.quick(call, false).await?.response;
        let found = response
            .headers()
            .get("api-version")
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let spoken = ApiVersion::read(found).ok_or_else(|| DockerError::Answer {
            what: what.to_owned(),
            problem: "there is no Api-Version".to_owned(),
        })?;
        if spoken < OLDEST {
            return Err(DockerError::TooOld {
                found: found.to_owned(),
                oldest: OLDEST,
            });
        }
        daemon.version = spoken.min(NEWEST);
        Ok(daemon)
    }

    /// Where it is and who named it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The version of the API that is spoken with it.
    pub fn api_version(&self) -> ApiVersion {
        self.version
    }

    /// What the daemon says of itself.
    pub async fn info(&self) -> Result<Info, DockerError> {
        let call = Call::new("say what it is", Method::GET, "/info");
        self.document(call).await
    }

    /// What the daemon knows of an image.
    pub async fn image(&self, name: &str) -> Result<ImageInfo, DockerError> {
        let what = format!("show the image {name}");
        let call = Call::new(what, Method::GET, format!("/images/{name}/json"));
        self.document(call).await
    }

    /// Gives an image a name and a tag.
    pub async fn tag(&self, image: &str, name: &str, tag: &str) -> Result<(), DockerError> {
        let what = format!("give {image} the tag {name}:{tag}");
        let mut call = Call::new(what, Method::POST, format!("/images/{image}/tag"));
        call.query = vec![("repo", name.to_owned()), ("tag", tag.to_owned())];
        self.quick(call, true).await.map(drop)
    }

    /// The images of these names as `docker save` writes them.
    pub(super) async fn save(&self, name: &str) -> Result<Pieces, DockerError> {
        let mut call = Call::new(format!("save {name}"), Method::GET, "/images/get");
        call.query = vec![("names", name.to_owned())];
        self.stream(call).await
    }

    async fn document<T: DeserializeOwned>(&self, call: Call) -> Result<T, DockerError> {
        let what = call.what.clone();
        let answer = self.quick(call, true).await?;
        let bytes = within(&what, collect(&what, answer.response.into_body())).await?;
        serde_json::from_slice(&bytes).map_err(|error| DockerError::Answer {
            what,
            problem: error.to_string(),
        })
    }

    async fn quick(&self, call: Call, versioned: bool) -> Result<Answer, DockerError> {
        let what = call.what.clone();
        within(&what, self.send(call, versioned)).await
    }

    /// The body of an answer as it comes, however long that takes.
    pub(super) async fn stream(&self, call: Call) -> Result<Pieces, DockerError> {
        let what = call.what.clone();
        let Answer {
            response,
            connection,
        } = self.send(call, true).await?;
        Ok(Pieces {
            what,
            body: response.into_body(),
            _connection: connection,
        })
    }

    async fn send(&self, call: Call, versioned: bool) -> Result<Answer, DockerError> {
        let Call { what, body, .. } = &call;
        let prefix = if versioned {
            format!("/v{}", self.version)
        } else {
            String::new()
        };
        let impossible = |problem: String| DockerError::Answer {
            what: what.clone(),
            problem,
        };
        let mut url = Url::parse("http://docker").map_err(|error| impossible(error.to_string()))?;
        url.set_path(&format!("{prefix}{}", call.path));
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut target = url.path().to_owned();
        if let Some(query) = url.query() {
            target = format!("{target}?{query}");
        }
        // Not the query: build arguments may be secrets.
        tracing::debug!("docker: {} {prefix}{}", call.method, call.path);
        let mut request = Request::builder()
            .method(&call.method)
            .uri(target)
            .header(HOST, "docker");
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/x-tar");
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let body = call.body.unwrap_or_else(|| {
            Empty::new()
                .map_err(|never: std::convert::Infallible| match never {})
                .boxed_unsync()
        });
        let request = request.body(body).map_err(|error| DockerError::Answer {
            what: call.what.clone(),
            problem: error.to_string(),
        })?;
        let sent = self.transport.send(request).await;
        let answer = sent.map_err(|error| match error {
            Break::Connect(source) => DockerError::Unreachable {
                daemon: self.endpoint.address.to_string(),
                origin: self.endpoint.origin.to_string(),
                source,
            },
            Break::Exchange(source) => DockerError::Broken {
                what: call.what.clone(),
                source,
            },
        })?;
        if answer.response.status().is_success() {
            return Ok(answer);
        }
        Err(refusal(call.what, answer.response).await)
    }
}

async fn refusal(what: String, response: Response<Incoming>) -> DockerError {
    let status = response.status();
    let bytes = collect(&what, response.into_body())
        .await
        .unwrap_or_default();
    let message = match serde_json::from_slice::<Refusal>(&bytes) {
        Ok(refusal) if !refusal.message.is_empty() => refusal.message,
        _ if bytes.is_empty() => status.to_string(),
        _ => String::from_utf8_lossy(&bytes).into_owned(),
    };
    DockerError::Refused {
        what,
        status: Some(status.as_u16()),
        message: one_line(&message),
    }
}

async fn within<T>(
    what: &str,
    work: impl Future<Output = Result<T, DockerError>>,
) -> Result<T, DockerError> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(result) => result,
        Err(_) => Err(DockerError::Slow {
            what: what.to_owned(),
            seconds: PATIENCE.as_secs(),
        }),
    }
}

async fn collect(what: &str, mut body: Incoming) -> Result<BytesMut, DockerError> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|source| DockerError::Broken {
            what: what.to_owned(),
            source,
        })?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > MOST_BYTES {
            return Err(too_long(what));
        }
    }
    Ok(bytes)
}

fn too_long(what: &str) -> DockerError {
    DockerError::Answer {
        what: what.to_owned(),
        problem: format!("it is longer than {MOST_BYTES} bytes"),
    }
}

/// The words of a daemon on one line, without what a terminal would obey.
pub(super) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// A value for one of the daemon's headers: JSON in base64, of the alphabet for URLs.
pub(super) fn json_header(json: &Value) -> HeaderValue {
    let mut value = HeaderValue::from_str(&URL_SAFE.encode(json.to_string()))
        .unwrap_or_else(|_| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

/// The body of an answer, piece by piece. Dropping it ends the connection.
pub(super) struct Pieces {
    what: String,
    body: Incoming,
    _connection: Connection,
}

impl Pieces {
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, DockerError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|source| DockerError::Broken {
                what: self.what.clone(),
                source,
            })?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

/// The objects of an answer that is a stream of them, one a line.
pub(super) struct Messages {
    pieces: Pieces,
    pending: BytesMut,
}

impl Messages {
    pub(super) fn new(pieces: Pieces) -> Self {
        Self {
            pieces,
            pending: BytesMut::new(),
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Message>, DockerError> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line = self.pending.split_to(end + 1);
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return self.read(&line).map(Some);
            }
            if self.pending.len() > MOST_BYTES {
                return Err(too_long(&self.pieces.what));
            }
            match self.pieces.next().await? {
                Some(piece) => self.pending.extend_from_slice(&piece),
                None if self.pending.iter().all(u8::is_ascii_whitespace) => return Ok(None),
                None => {
                    let line = self.pending.split();
                    return self.read(&line).map(Some);
                }
            }
        }
    }

    fn read(&self, line: &[u8]) -> Result<Message, DockerError> {
        serde_json::from_slice(line).map_err(|error| DockerError::Answer {
            what: self.pieces.what.clone(),
            problem: error.to_string(),
        })
    }
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon")
            .field("endpoint", &self.endpoint)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_header_is_in_the_alphabet_that_the_daemon_reads_and_does_not_show_itself() {
        let document = json!({ "password": "??>>\u{fe}~~ÿÿ" });
        let header = json_header(&document);
        let text = header.to_str().unwrap();
        assert!(
            text.contains(['-', '_']) && !text.contains(['+', '/']),
            "{text}"
        );
        let bytes = URL_SAFE.decode(text).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), document);
        assert_eq!(format!("{header:?}"), "Sensitive");
    }
}
