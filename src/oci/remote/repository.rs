//! One repository: a name on a host.

use std::fmt;
use std::sync::Arc;

use reqwest::Method;
use reqwest::header::HeaderMap;

use super::auth::Scope;
use super::host::Host;
use super::request::{Request, Target};
use super::transport::Payload;
use super::{Inner, Registry};

/// A repository of a registry. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Repository {
    pub(super) registry: Registry,
    pub(super) host: Arc<Host>,
    name: Arc<str>,
}

impl Repository {
    pub(super) fn new(registry: Registry, host: Arc<Host>, name: &str) -> Self {
        Self {
            registry,
            host,
            name: name.into(),
        }
    }

    /// The host as references name it: `docker.io`, `repo.lan:5000`.
    pub fn host(&self) -> &str {
        &self.host.name
    }

    /// The name below the host: `library/nginx`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.registry.0
    }

    /// A request without headers and body to a path below `/v2/NAME/`.
    pub(super) fn request(&self, method: Method, path: &str, what: String) -> Request<'_> {
        let scope = match method {
            Method::GET | Method::HEAD => Scope::pull(&self.name),
            _ => Scope::push(&self.name),
        };
        Request {
            host: &self.host,
            scope,
            what,
            method,
            target: Target::Api(format!("{}/{path}", self.name)),
            headers: HeaderMap::new(),
            payload: Payload::Empty,
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host.name, self.name)
    }
}

impl fmt::Debug for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Repository({self})")
    }
}
