//! Content of a registry: blobs, tags and manifests; and the manifests that it accepts.

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, LINK, LOCATION};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde_json::Value;

use super::profile::{NextLink, Quirk};
use super::simulated::{
    HttpResponse, SimulatedRegistry, Target, body_of, fields, lock, plain, quirk, set, with_body,
};

impl SimulatedRegistry {
    pub async fn blob(&self, head: &Parts, target: &Target<'_>) -> HttpResponse {
        let elsewhere = self
            .profile
            .blobs_from()
            .filter(|_| head.method == Method::GET);
        let Some(host) = elsewhere else {
            return self.refused(self.pass(head, Bytes::new()).await);
        };
        let mut answer = plain(307);
        let url = format!(
            "https://{host}/{}/{}?signature=s",
            target.repository, target.rest
        );
        set(&mut answer, LOCATION, &url);
        answer
    }

    pub async fn blob_from_elsewhere(&self, head: &Parts) -> HttpResponse {
        if head.headers.contains_key(AUTHORIZATION) {
            return with_body(
                400,
                "<Error><Message>Only one auth mechanism allowed</Message></Error>",
            );
        }
        let path = head.uri.path().trim_start_matches('/');
        let (repository, digest) = path.rsplit_once('/').unwrap_or_default();
        let uri = format!("/v2/{repository}/blobs/{digest}");
        self.behind(Method::GET, &uri, Some(head), Bytes::new())
            .await
    }

    pub async fn tags(&self, head: &Parts, target: &Target<'_>) -> HttpResponse {
        let fields = fields(head.uri.query().unwrap_or_default());
        let field = |name: &str| {
            let mut fields = fields.iter();
            fields
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        };
        let asked: usize = field("n").and_then(|n| n.parse().ok()).unwrap_or(1000);
        let mode = quirk!(self, NextLink);
        let mut page = asked.min(1000);
        for (quirk, _) in self.profile.rows {
            match *quirk {
                Quirk::PageRefused(most) if asked > most => {
                    return self.error(400, "PAGINATION_NUMBER_INVALID");
                }
                Quirk::PageAtMost(most) => page = page.min(most),
                Quirk::NextLink(NextLink::AllAtOnce) => page = 1000,
                _ => {}
            }
        }
        let last = match mode {
            Some(NextLink::Token) => field("next_page").map(|token| token.chars().rev().collect()),
            _ => field("last"),
        };
        let last: String = last.unwrap_or_default();
        let own = format!("/v2/{}/tags/list", target.repository);
        let uri = format!("{own}?n={page}&last={last}");
        let mut answer = self.behind(Method::GET, &uri, None, Bytes::new()).await;
        if answer.status() != StatusCode::OK {
            return self.refused(answer);
        }
        let document: Value = serde_json::from_slice(&body_of(&mut answer).await).unwrap();
        let end = document["tags"].as_array().and_then(|tags| tags.last());
        let end = end.and_then(Value::as_str).unwrap_or(&last).to_owned();
        let has_next = answer.headers_mut().remove(LINK).is_some();
        let query = format!("n={page}&last={end}");
        let link = match mode {
            Some(NextLink::Token) if has_next => {
                let token: String = end.chars().rev().collect();
                Some(format!("{own}?next_page={token}&n={page}"))
            }
            Some(NextLink::WithoutPrefix) if has_next => {
                let below = target
                    .repository
                    .split_once('/')
                    .map_or("", |(_, rest)| rest);
                Some(format!("/v2/{below}/tags/list?{query}"))
            }
            Some(NextLink::Below(path)) if has_next => {
                Some(format!("https://{}{path}{own}?{query}", self.profile.api))
            }
            Some(NextLink::AfterTags) if end != last => Some(format!("{own}?{query}")),
            None if has_next => Some(format!("{own}?{query}")),
            _ => None,
        };
        if let Some(link) = link {
            set(&mut answer, LINK, &format!("<{link}>; rel=\"next\""));
        }
        answer
    }

    pub async fn manifest(&self, head: &Parts, target: &Target<'_>, body: Bytes) -> HttpResponse {
        if head.method == Method::GET && self.has(Quirk::Limited) {
            let limited = std::mem::replace(&mut lock(&self.memory).limited, true);
            if !limited {
                return self.error(429, "TOOMANYREQUESTS");
            }
        }
        if head.method == Method::PUT
            && let Some(refusal) = self.refuses(head, target, &body).await
        {
            return refusal;
        }
        let kept = quirk!(self, NoDelete).filter(|_| head.method == Method::DELETE);
        if let Some(status) = kept {
            return self.error(status, "UNSUPPORTED");
        }
        let answer = self.pass(head, body).await;
        let missing = quirk!(self, MissingIs);
        match (answer.status(), missing) {
            (StatusCode::NOT_FOUND, Some(status)) => self.error(status, "DENIED"),
            _ => self.refused(answer),
        }
    }

    /// The reason to reject a manifest: its format, or missing content.
    pub async fn refuses(
        &self,
        head: &Parts,
        target: &Target<'_>,
        body: &Bytes,
    ) -> Option<HttpResponse> {
        let media_type = head.headers.get(CONTENT_TYPE)?.to_str().ok()?.to_owned();
        let docker = |text: &str| text.contains(".docker.");
        let refused = quirk!(self, OciOnly);
        if let Some(status) = refused.filter(|_| docker(&media_type)) {
            return Some(self.error(status, "MANIFEST_INVALID"));
        }
        let document: Value = serde_json::from_slice(body).ok()?;
        let entries = |name: &str| document[name].as_array().cloned().unwrap_or_default();
        let manifests = entries("manifests");
        let mixed = manifests
            .iter()
            .any(|entry| docker(entry["mediaType"].as_str().unwrap_or_default()));
        if self.has(Quirk::OneFamily) && mixed && !docker(&media_type) {
            return Some(self.error(400, "MANIFEST_INVALID"));
        }
        let mut needed: Vec<String> = Vec::new();
        for entry in &manifests {
            needed.push(format!("manifests/{}", entry["digest"].as_str()?));
        }
        for entry in entries("layers").iter().chain(document.get("config")) {
            needed.push(format!("blobs/{}", entry["digest"].as_str()?));
        }
        for what in needed {
            let uri = format!("/v2/{}/{what}", target.repository);
            let found = self.behind(Method::HEAD, &uri, None, Bytes::new()).await;
            if found.status() != StatusCode::OK {
                return Some(self.error(400, "MANIFEST_BLOB_UNKNOWN"));
            }
        }
        None
    }
}
