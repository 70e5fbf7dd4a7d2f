//! Credentials for somebody else who speaks with a registry: a Docker daemon that pulls and pushes
//! for its client takes them along with the request.

use std::fmt;

use serde_json::{Value, json};

use super::credentials::Proof;
use super::ping::{Login, Ping};
use super::{Registry, RegistryError};

/// A credential in the form in which a Docker daemon takes it; it does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct DaemonCredential {
    server: String,
    document: Value,
}

impl DaemonCredential {
    /// The name under which Docker keeps it.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The document itself, for the one header that it was made for.
    pub fn reveal(&self) -> &Value {
        &self.document
    }
}

impl fmt::Debug for DaemonCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DaemonCredential")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// The credential that a daemon needs for the registry that answered; none where the registry
    /// asks for none. `readable` says that others could read what is sent to the daemon: then it
    /// is an error unless that was allowed.
    pub async fn daemon_credential(
        &self,
        ping: &Ping,
        readable: bool,
    ) -> Result<Option<DaemonCredential>, RegistryError> {
        if ping.login == Login::NotNeeded {
            return Ok(None);
        }
        let inner = &self.0;
        let host = inner.host(&ping.host);
        let credential = inner.credential(&host).await?;
        let server = match host.name.as_str() {
            "docker.io" => "https://index.docker.io/v1/",
            name => name,
        };
        let document = match &credential.proof {
            None => return Ok(None),
            Some(Proof::Password { user, password }) => json!({
                "username": user,
                "password": password.reveal(),
                "serveraddress": server,
            }),
            Some(Proof::IdentityToken(token)) => json!({
                "identitytoken": token.reveal(),
                "serveraddress": server,
            }),
        };
        if readable && !inner.options.plain_credentials {
            return Err(RegistryError::PlainCredentials {
                host: "the Docker daemon".to_owned(),
                tried: credential.to_string(),
            });
        }
        Ok(Some(DaemonCredential {
            server: server.to_owned(),
            document,
        }))
    }
}
