//! A registry in memory that keeps to the distribution specification where `docker-registry` does
//! not: an upload that was cut in the middle of a piece goes on from the byte that came last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use futures_util::StreamExt;

use super::describe;
use super::serve::{Served, serve};

/// What the registry has.
#[derive(Default)]
pub struct Stored {
    /// Blobs by their digest.
    pub blobs: HashMap<String, Vec<u8>>,
    uploads: HashMap<String, Vec<u8>>,
    next_upload: usize,
}

type Shared = Arc<Mutex<Stored>>;

/// Starts one; it serves the repository `a` alone.
pub fn spec_registry() -> (Served, Shared) {
    let stored = Shared::default();
    let router = Router::new()
        .route("/v2/", any(|| async { "{}" }))
        .route("/v2/a/blobs/uploads/", post(begin))
        .route("/v2/a/blobs/uploads/{id}", any(upload))
        .route("/v2/a/blobs/{digest}", any(blob))
        .with_state(stored.clone());
    (serve(router), stored)
}

async fn begin(State(stored): State<Shared>) -> Response {
    let mut stored = stored.lock().unwrap();
    stored.next_upload += 1;
    let id = stored.next_upload.to_string();
    stored.uploads.insert(id.clone(), Vec::new());
    (StatusCode::ACCEPTED, [("Location", at(&id))]).into_response()
}

async fn upload(
    State(stored): State<Shared>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    method: axum::http::Method,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let have = match stored.lock().unwrap().uploads.get(&id) {
        Some(bytes) => bytes.len(),
        None => return StatusCode::NOT_FOUND.into_response(),
    };
    if method == "GET" {
        return state(StatusCode::NO_CONTENT, &id, have);
    }
    let start = headers.get("content-range").and_then(|range| {
        let (start, _) = range.to_str().ok()?.split_once('-')?;
        start.parse::<usize>().ok()
    });
    if start.is_some_and(|start| start != have) {
        return state(StatusCode::RANGE_NOT_SATISFIABLE, &id, have);
    }
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else {
            return StatusCode::BAD_REQUEST.into_response();
        };
        let mut stored = stored.lock().unwrap();
        stored
            .uploads
            .get_mut(&id)
            .unwrap()
            .extend_from_slice(&chunk);
    }
    let mut stored = stored.lock().unwrap();
    if method == "PATCH" {
        return state(StatusCode::ACCEPTED, &id, stored.uploads[&id].len());
    }
    let bytes = stored.uploads.remove(&id).unwrap();
    let digest = describe(&bytes).digest().to_string();
    let named = query.unwrap_or_default().replace("%3A", ":");
    if named != format!("digest={digest}") {
        return (
            StatusCode::BAD_REQUEST,
            r#"{"errors":[{"code":"DIGEST_INVALID"}]}"#,
        )
            .into_response();
    }
    stored.blobs.insert(digest, bytes);
    StatusCode::CREATED.into_response()
}

async fn blob(State(stored): State<Shared>, Path(digest): Path<String>) -> Response {
    match stored.lock().unwrap().blobs.get(&digest) {
        Some(bytes) => bytes.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn at(id: &str) -> String {
    format!("/v2/a/blobs/uploads/{id}")
}

fn state(status: StatusCode, id: &str, have: usize) -> Response {
    let range = format!("0-{}", have.saturating_sub(1));
    (status, [("Location", at(id)), ("Range", range)]).into_response()
}
