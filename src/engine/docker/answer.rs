//! Answers that bollard loses parts of, read as the daemon writes them: pieces of a file, one
//! document, or the messages of a build or a push.

use bollard::models::{ErrorDetail, ProgressDetail};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::DockerError;
use super::transport::{Answer, MOST_BYTES, TooLong};

/// The body of an answer, piece by piece. Dropping it ends the connection.
pub(super) struct Pieces {
    what: String,
    answer: Answer,
}

impl Pieces {
    pub(super) fn new(what: &str, answer: Answer) -> Self {
        Self {
            what: what.to_owned(),
            answer,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, DockerError> {
        while let Some(frame) = self.answer.response.frame().await {
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

    /// The whole body as one document.
    pub(super) async fn document<T: DeserializeOwned>(mut self) -> Result<T, DockerError> {
        let mut bytes = BytesMut::new();
        while let Some(piece) = self.next().await? {
            bytes.extend_from_slice(&piece);
            self.check_length(&bytes)?;
        }
        self.read(&bytes)
    }

    fn check_length(&self, bytes: &[u8]) -> Result<(), DockerError> {
        if bytes.len() <= MOST_BYTES {
            return Ok(());
        }
        Err(self.unexpected(TooLong.to_string()))
    }

    fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, DockerError> {
        serde_json::from_slice(bytes).map_err(|error| self.unexpected(error.to_string()))
    }

    fn unexpected(&self, problem: String) -> DockerError {
        DockerError::Answer {
            what: self.what.clone(),
            problem,
        }
    }
}

/// The messages of an answer that is a stream of them, one a line.
pub(super) struct Messages {
    pieces: Pieces,
    pending: BytesMut,
}

impl Messages {
    pub(super) fn new(what: &str, answer: Answer) -> Self {
        Self {
            pieces: Pieces::new(what, answer),
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
                return self.pieces.read(&line).map(Some);
            }
            self.pieces.check_length(&self.pending)?;
            match self.pieces.next().await? {
                Some(piece) => self.pending.extend_from_slice(&piece),
                None if self.pending.iter().all(u8::is_ascii_whitespace) => return Ok(None),
                None => {
                    let line = self.pending.split();
                    return self.pieces.read(&line).map(Some);
                }
            }
        }
    }
}

/// What the daemon says while it builds or pushes.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Message {
    pub(super) stream: Option<String>,
    pub(super) status: Option<String>,
    pub(super) id: Option<String>,
    pub(super) progress_detail: Option<ProgressDetail>,
    pub(super) error: Option<String>,
    pub(super) error_detail: Option<ErrorDetail>,
    pub(super) aux: Option<Aux>,
}

/// What programs are told: of a build the image's id, of a push the digest.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Aux {
    #[serde(rename = "ID")]
    pub(super) id: Option<String>,
    pub(super) digest: Option<String>,
}

impl Message {
    /// The daemon's complaint, where this is one.
    pub(super) fn complaint(&self) -> Option<&str> {
        let detail = self.error_detail.as_ref();
        detail
            .and_then(|detail| detail.message.as_deref())
            .or(self.error.as_deref())
    }

    /// The exit code of the program that ended a build.
    pub(super) fn exit_code(&self) -> Option<i64> {
        self.error_detail.as_ref()?.code.filter(|code| *code != 0)
    }
}

/// The words of a daemon on one line, without what a terminal would obey.
pub(super) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}
