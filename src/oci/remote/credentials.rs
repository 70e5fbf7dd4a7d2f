//! The user's credential for a registry: Docker's `config.json` and the helpers it names.
//!
//! `docker_credential` reads the file and runs the helpers; this module finds the file, knows
//! under which names Docker Hub's credential is kept, and remembers where a credential came from,
//! because an error has to say which one was tried.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use docker_credential::{CredentialRetrievalError, DockerCredential};
use serde::Deserialize;

use super::error::RegistryError;

/// A text that never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for the one header or form it was made for.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What a registry or its token server takes as proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proof {
    /// A user's name and password.
    Password { user: String, password: Secret },
    /// A refresh token of an OAuth token server.
    IdentityToken(Secret),
}

/// The outcome of the search for one host's credential.
#[derive(Debug, Clone)]
pub(super) struct Credential {
    /// The credential, where there is one.
    pub(super) proof: Option<Proof>,
    /// The file or helper that was asked.
    origin: String,
}

/// "user NAME from PATH", without the secret.
impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.proof {
            None => write!(f, "no credential (none in {})", self.origin),
            Some(Proof::Password { user, .. }) => write!(f, "user {user:?} from {}", self.origin),
            Some(Proof::IdentityToken(_)) => write!(f, "an identity token from {}", self.origin),
        }
    }
}

/// The part of `config.json` that says who keeps a credential.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Helpers {
    creds_store: Option<String>,
    cred_helpers: HashMap<String, String>,
}

impl Helpers {
    fn origin(&self, file: &Path, key: &str) -> String {
        let helper = self.cred_helpers.get(key).filter(|name| !name.is_empty());
        match helper.or(self.creds_store.as_ref()) {
            Some(name) => format!("docker-credential-{name} ({})", file.display()),
            None => file.display().to_string(),
        }
    }
}

/// Looks up a host's credential. `file` is the one the user named; without it Docker's own is
/// read, and its absence is no error. Blocks while a helper runs.
pub(super) fn look_up(host: &str, file: Option<&Path>) -> Result<Credential, RegistryError> {
    let fail = |origin: String, reason: String| RegistryError::Credential {
        host: host.to_owned(),
        origin,
        reason,
    };
    let Some(path) = file.map(Path::to_owned).or_else(default_file) else {
        return Ok(Credential {
            proof: None,
            origin: "Docker's config.json: no home directory".to_owned(),
        });
    };
    let shown = path.display().to_string();
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && file.is_none() => {
            return Ok(Credential {
                proof: None,
                origin: format!("{shown}, which does not exist"),
            });
        }
        Err(error) => return Err(fail(shown, error.to_string())),
    };
    let helpers: Helpers = serde_json::from_slice(&text).map_err(|error| {
        fail(
            shown.clone(),
            format!("it is not Docker's config.json: {error}"),
        )
    })?;

    for key in keys(host) {
        let origin = helpers.origin(&path, key);
        match docker_credential::get_credential_from_reader(text.as_slice(), key) {
            Ok(found) => {
                if let Some(proof) = proof(found) {
                    let proof = Some(proof);
                    return Ok(Credential { proof, origin });
                }
            }
            Err(error) => {
                if let Some(reason) = failure(&error) {
                    return Err(fail(origin, reason));
                }
            }
        }
    }
    Ok(Credential {
        proof: None,
        origin: helpers.origin(&path, host),
    })
}

/// `$DOCKER_CONFIG/config.json`, else `~/.docker/config.json`.
fn default_file() -> Option<PathBuf> {
    let folder = match std::env::var_os("DOCKER_CONFIG") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder),
        _ => std::env::home_dir()?.join(".docker"),
    };
    Some(folder.join("config.json"))
}

/// The names under which a host's credential may be kept, the usual one first.
fn keys(host: &str) -> Vec<&str> {
    match host {
        "docker.io" => vec![
            "https://index.docker.io/v1/",
            "docker.io",
            "registry-1.docker.io",
        ],
        other => vec![other],
    }
}

/// Helpers answer a question for an unknown host with empty fields or an error of their own.
fn proof(found: DockerCredential) -> Option<Proof> {
    match found {
        DockerCredential::IdentityToken(token) if token.is_empty() => None,
        DockerCredential::IdentityToken(token) => Some(Proof::IdentityToken(Secret::new(token))),
        DockerCredential::UsernamePassword(user, password) => {
            let password = Secret::new(password);
            (!user.is_empty()).then_some(Proof::Password { user, password })
        }
    }
}

/// What went wrong, or nothing where the answer only means that there is no credential.
fn failure(error: &CredentialRetrievalError) -> Option<String> {
    use CredentialRetrievalError as E;
    match error {
        E::NoCredentialConfigured | E::ConfigNotFound => None,
        E::HelperFailure { stdout, stderr, .. } => {
            // Helpers write their error to stdout; the protocol's word for "unknown" is fixed.
            let said = format!("{stdout}\n{stderr}").to_lowercase();
            if said.contains("credentials not found") || said.contains("no credentials") {
                return None;
            }
            let line = stderr
                .lines()
                .chain(stdout.lines())
                .find(|line| !line.trim().is_empty());
            Some(format!(
                "it failed: {}",
                line.unwrap_or("without a word").trim()
            ))
        }
        E::HelperCommunicationError => Some("it cannot be run".to_owned()),
        other => Some(other.to_string().to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    fn with_config(json: &str, host: &str) -> (Result<Credential, RegistryError>, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        fs::write(&file, json).unwrap();
        (look_up(host, Some(&file)), file)
    }

    // "bob:sesame"
    const AUTH: &str = r#"{"auths":{"repo.lan:5000":{"auth":"Ym9iOnNlc2FtZQ=="},"https://index.docker.io/v1/":{"auth":"Ym9iOnNlc2FtZQ=="}}}"#;

    #[test]
    fn a_credential_tells_where_it_is_from_and_keeps_its_secret() {
        let (found, file) = with_config(AUTH, "repo.lan:5000");
        let found = found.unwrap();
        assert_eq!(
            found.to_string(),
            format!("user \"bob\" from {}", file.display())
        );
        assert!(!format!("{found:?}").contains("sesame"));
    }

    #[test]
    fn docker_hub_is_kept_under_its_old_name() {
        let (found, _) = with_config(AUTH, "docker.io");
        assert!(found.unwrap().proof.is_some());
    }

    #[test]
    fn another_host_has_none() {
        let (found, _) = with_config(AUTH, "repo.lan:5001");
        let found = found.unwrap();
        assert_eq!(found.proof, None);
        assert!(found.to_string().starts_with("no credential (none in "));
    }

    #[test]
    fn an_identity_token_is_told_from_a_password() {
        let json = r#"{"auths":{"repo.lan":{"identitytoken":"abc"}}}"#;
        let (found, _) = with_config(json, "repo.lan");
        let expected = Proof::IdentityToken(Secret::new("abc".into()));
        assert_eq!(found.unwrap().proof, Some(expected));
    }

    #[test]
    fn a_helper_that_is_missing_is_named() {
        let json = r#"{"credHelpers":{"repo.lan":"wincimg-test-missing"}}"#;
        let (found, _) = with_config(json, "repo.lan");
        let message = found.unwrap_err().to_string();
        assert!(
            message.contains("docker-credential-wincimg-test-missing"),
            "{message}"
        );
        assert!(message.contains("cannot be run"), "{message}");
    }

    #[test]
    fn a_file_that_was_named_must_be_there_and_be_json() {
        let missing = look_up("repo.lan", Some(Path::new("/nonexistent/config.json")));
        assert!(
            missing
                .unwrap_err()
                .to_string()
                .contains("/nonexistent/config.json")
        );
        let (broken, _) = with_config("{", "repo.lan");
        assert!(
            broken
                .unwrap_err()
                .to_string()
                .contains("not Docker's config.json")
        );
    }
}
