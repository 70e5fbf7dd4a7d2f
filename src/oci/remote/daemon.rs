//! Credentials for somebody else who speaks with a registry: a Docker daemon that pulls and pushes
//! for its client takes them along with the request.

use std::fmt;

use serde_json::{Value, json};

use super::credentials::Proof;
use super::ping::{Connection, Login, Ping};
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
    /// The credential that there is for the registry that answered, for a daemon to use. A registry
    /// may ask for none until somebody pushes, so it is given along all the same; but not where it
    /// could be read on its way, to the daemon (`readable`) or from there to the registry. If the
    /// registry insists on one, that is an error.
    pub async fn daemon_credential(
        &self,
        ping: &Ping,
        readable: bool,
    ) -> Result<Option<DaemonCredential>, RegistryError> {
        let inner = &self.0;
        let host = inner.host(&ping.host);
        let credential = inner.credential(&host).await?;
        let Some(proof) = &credential.proof else {
            return Ok(None);
        };
        let unprotected = readable || ping.connection == Connection::PlainHttp;
        if unprotected && !inner.options.plain_credentials {
            return match ping.login {
                Login::NotNeeded => Ok(None),
                Login::Basic | Login::Token => Err(RegistryError::PlainCredentials {
                    host: "the Docker daemon".to_owned(),
                    tried: credential.to_string(),
                }),
            };
        }
        let server = match host.name.as_str() {
            "docker.io" => "https://index.docker.io/v1/",
            name => name,
        };
        let document = match proof {
            Proof::Password { user, password } => json!({
                "username": user,
                "password": password.reveal(),
                "serveraddress": server,
            }),
            Proof::IdentityToken(token) => json!({
                "identitytoken": token.reveal(),
                "serveraddress": server,
            }),
        };
        Ok(Some(DaemonCredential {
            server: server.to_owned(),
            document,
        }))
    }
}
