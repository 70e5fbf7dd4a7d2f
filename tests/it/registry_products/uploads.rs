//! Uploads to a registry: mounts, chunks, whole blobs.

use bytes::Bytes;
use hyper::header::{CONTENT_RANGE, LOCATION, RANGE};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use super::login::Proof;
use super::profile::{Quirk, UploadLocation};
use super::simulated::{
    HttpResponse, SimulatedRegistry, Target, Upload, fields, location, lock, quirk, set, with_body,
};

impl SimulatedRegistry {
    pub async fn upload(
        &self,
        proof: &Proof,
        head: &Parts,
        target: &Target<'_>,
        body: Bytes,
    ) -> HttpResponse {
        match head.method {
            Method::POST => self.begin(proof, head, target).await,
            Method::DELETE => self.pass(head, body).await,
            _ => match self.note_piece(head, &body) {
                None => self.take_piece(head, body).await,
                Some(refusal) => refusal,
            },
        }
    }

    pub async fn begin(&self, proof: &Proof, head: &Parts, target: &Target<'_>) -> HttpResponse {
        let fields = fields(head.uri.query().unwrap_or_default());
        let from = fields.iter().find(|(key, _)| key == "from");
        let refused = quirk!(self, Mount);
        let granted = match (from, refused) {
            (Some(_), Some(401)) => {
                return self.challenge(Some((target.repository, "push")), false);
            }
            (Some(_), Some(status)) if status != 202 => return self.error(status, "DENIED"),
            (Some((_, from)), None) => proof.opens(from, "pull"),
            _ => false,
        };
        let mut answer = if granted {
            self.pass(head, Bytes::new()).await
        } else {
            self.behind(Method::POST, head.uri.path(), None, Bytes::new())
                .await
        };
        if answer.status() == StatusCode::ACCEPTED {
            let place = location(&answer);
            lock(&self.memory).uploads.insert(place, Upload::default());
            self.add_location(&mut answer);
        }
        answer
    }

    /// The reason to refuse a chunk or a blob; an accepted one is recorded.
    fn note_piece(&self, head: &Parts, body: &Bytes) -> Option<HttpResponse> {
        let size = body.len() as u64;
        let piece = head.method == Method::PATCH;
        let mut memory = lock(&self.memory);
        let Some(upload) = memory.uploads.get_mut(head.uri.path()) else {
            return Some(self.error(404, "BLOB_UPLOAD_UNKNOWN"));
        };
        let query = head.uri.query().unwrap_or_default();
        let changes = self.find(|quirk| {
            matches!(
                quirk,
                Quirk::Location(UploadLocation::State | UploadLocation::Once)
            )
            .then_some(())
        });
        if changes.is_some() && !query.contains(&format!("_state={}", upload.state)) {
            return Some(self.error(404, "BLOB_UPLOAD_UNKNOWN"));
        }
        if head.method == Method::GET {
            return None;
        }
        let range = head
            .headers
            .get(CONTENT_RANGE)
            .and_then(|range| range.to_str().ok());
        let start = range.and_then(|range| range.split_once('-')?.0.parse::<u64>().ok());
        for (quirk, _) in self.profile.rows {
            match *quirk {
                Quirk::NoPieces(status) if piece => return Some(self.error(status, "UNSUPPORTED")),
                Quirk::EmptyEnd(status) if !piece && size > 0 => {
                    return Some(self.error(status, "BLOB_UNKNOWN"));
                }
                Quirk::PieceAtMost(most, status) if (piece || range.is_some()) && size > most => {
                    return Some(self.error(status, "REQUESTED_RANGE_NOT_SATISFIABLE"));
                }
                Quirk::BodyAtMost(most) if size > most => {
                    return Some(with_body(
                        413,
                        "<html><body>413 Request Entity Too Large</body></html>",
                    ));
                }
                Quirk::PieceAtLeast(least)
                    if size > 0 && upload.size > 0 && upload.last < least =>
                {
                    return Some(self.error(400, "BLOB_UPLOAD_INVALID"));
                }
                Quirk::RangeNeeded if piece && start.is_none() && upload.size > 0 => {
                    return Some(self.error(400, "BLOB_UPLOAD_INVALID"));
                }
                _ => {}
            }
        }
        if start.is_some_and(|start| start != upload.size) {
            return Some(self.error(416, "BLOB_UPLOAD_INVALID"));
        }
        if upload.size == 0 {
            upload.first = size;
        }
        upload.size += size;
        upload.last = size;
        None
    }

    pub async fn take_piece(&self, head: &Parts, body: Bytes) -> HttpResponse {
        let mut answer = self.pass(head, body).await;
        if head.method == Method::PUT || answer.status().is_client_error() {
            return self.refused(answer);
        }
        for (quirk, _) in self.profile.rows {
            let memory = lock(&self.memory);
            let upload = &memory.uploads[head.uri.path()];
            match *quirk {
                Quirk::StuckRange if upload.size > 0 => {
                    set(&mut answer, RANGE, &format!("0-{}", upload.first - 1));
                }
                Quirk::CountedRange if head.method == Method::GET => {
                    set(&mut answer, RANGE, &format!("0-{}", upload.size));
                }
                Quirk::LastRange if upload.size > 0 => {
                    set(&mut answer, RANGE, &format!("0-{}", upload.last - 1));
                }
                Quirk::PieceIs(status) if head.method == Method::PATCH => {
                    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
                }
                _ => {}
            }
        }
        self.add_location(&mut answer);
        answer
    }

    /// Adds the upload's location in this registry's form.
    fn add_location(&self, answer: &mut HttpResponse) {
        let path = location(answer);
        let api = self.profile.api;
        let style = quirk!(self, Location);
        let mut memory = lock(&self.memory);
        let Some(upload) = memory.uploads.get_mut(&path) else {
            return;
        };
        let place = match style {
            None => path,
            Some(UploadLocation::PlainHttp) => format!("http://{api}{path}"),
            Some(UploadLocation::State | UploadLocation::Once) => {
                upload.state += 1;
                format!(
                    "https://{api}{path}?_nouploadcache=false&_state={}",
                    upload.state
                )
            }
        };
        set(answer, LOCATION, &place);
    }
}
