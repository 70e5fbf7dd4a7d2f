//! The other repositories of a host, as far as it tells: where a blob may be mounted from.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde::Deserialize;

use super::super::reference::parse_reference;
use super::Repository;
use super::auth::Scope;
use super::request::{Request, Target};
use super::transport::Payload;

/// As many as are worth a question each.
const MOST: usize = 100;
const LIMIT: u64 = 1024 * 1024;
/// Registries on object storage may take minutes to walk through themselves.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Catalog {
    repositories: Option<Vec<String>>,
}

impl Repository {
    /// Some of the host's other repositories; none where the registry does not list them, to us
    /// or at all.
    pub async fn neighbours(&self) -> Vec<Self> {
        let body = tokio::time::timeout(PATIENCE, self.catalog()).await;
        let names = body.ok().flatten().and_then(|body| body.repositories);
        names
            .unwrap_or_default()
            .iter()
            .filter(|name| *name != self.name())
            .filter_map(|name| parse_reference(&format!("{}/{name}", self.host())).ok())
            .take(MOST)
            .map(|reference| self.registry.repository(&reference))
            .collect()
    }

    async fn catalog(&self) -> Option<Catalog> {
        let request = Request {
            host: &self.host,
            scope: Scope::none(),
            what: format!("list the repositories of {}", self.host()),
            method: Method::GET,
            target: Target::Api(format!("_catalog?n={MOST}")),
            headers: HeaderMap::new(),
            payload: Payload::Empty,
        };
        let response = self.inner().once(&request).await.ok()?;
        let body = self.inner().read_body(response, &request.what, LIMIT).await;
        serde_json::from_slice(&body.ok()?).ok()
    }
}
