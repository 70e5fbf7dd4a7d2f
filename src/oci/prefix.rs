//! Where images of one party live: a registry, and perhaps a path in it.

use std::fmt;
use std::str::FromStr;

use super::reference::{Reference, ReferenceError, parse_reference};

/// A registry with the path in front of its images' names: `repo.mylan.k8s:8888/apps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryPrefix {
    host: String,
    path: Option<String>,
}

/// A text that does not name a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Not `HOST[:PORT][/PREFIX]`.
    #[error(
        "invalid registry {0:?}: expected HOST[:PORT][/PREFIX], where the host has a dot or a port"
    )]
    Malformed(String),
    /// It may have a password in it, so it is not shown.
    #[error(
        "a registry has no @ in it: expected HOST[:PORT][/PREFIX], and credentials in Docker's config.json"
    )]
    Credentials,
}

impl FromStr for RegistryPrefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('@') {
            return Err(PrefixError::Credentials);
        }
        let trimmed = text.trim_end_matches('/');
        let (host, path) = match trimmed.split_once('/') {
            Some((host, path)) => (host, Some(path.to_owned())),
            None => (trimmed, None),
        };
        let prefix = Self {
            host: host.to_owned(),
            path,
        };
        // Whether the parts are well made shows when they are part of a reference. A host without
        // dot and port would be taken for a repository of Docker Hub there.
        match prefix.join("x") {
            Ok(reference) if reference.registry() == host => Ok(prefix),
            // Docker Hub under another one of its names.
            Ok(reference) if host.ends_with(".docker.io") => Ok(Self {
                host: reference.registry().to_owned(),
                ..prefix
            }),
            _ => Err(PrefixError::Malformed(text.to_owned())),
        }
    }
}

impl fmt::Display for RegistryPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}/{path}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

impl RegistryPrefix {
    /// The registry's host and port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// An image there, by its name with or without tag and digest.
    pub fn join(&self, name: &str) -> Result<Reference, ReferenceError> {
        parse_reference(&format!("{self}/{name}"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_has_a_host_and_perhaps_a_path() {
        for (text, host, shown) in [
            ("repo.lan", "repo.lan", "repo.lan"),
            ("repo:8888/", "repo:8888", "repo:8888"),
            ("repo:8888/a/b//", "repo:8888", "repo:8888/a/b"),
            ("localhost", "localhost", "localhost"),
            ("docker.io/me", "docker.io", "docker.io/me"),
            ("index.docker.io/me", "docker.io", "docker.io/me"),
            ("registry-1.docker.io/me", "docker.io", "docker.io/me"),
        ] {
            let prefix: RegistryPrefix = text.parse().unwrap();
            assert_eq!((prefix.host(), prefix.to_string().as_str()), (host, shown));
        }
        let prefix: RegistryPrefix = "repo:8888/a".parse().unwrap();
        assert_eq!(
            prefix.join("web:1").unwrap().to_string(),
            "repo:8888/a/web:1"
        );
    }

    #[test]
    fn what_is_no_registry_is_refused() {
        for text in [
            "",
            "/",
            "/x",
            "repo",
            "repo/apps",
            "https://repo.lan",
            "a b",
            "repo.lan/Upper",
            "repo.lan//x",
            "repo.lan:x",
        ] {
            let error = text.parse::<RegistryPrefix>().unwrap_err();
            assert_eq!(error, PrefixError::Malformed(text.to_owned()));
        }
    }

    #[test]
    fn a_password_is_not_repeated() {
        let error = "me:secret@repo.lan".parse::<RegistryPrefix>().unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }
}
