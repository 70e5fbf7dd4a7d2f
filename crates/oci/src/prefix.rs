//! Prefix of image names: a registry, and optionally a path in it.

use std::fmt;
use std::str::FromStr;

use wincimg_common::untrusted::QuotedText;

use super::reference::{DOCKER_HUB, Reference, ReferenceError, display_host, parse_reference};

/// A registry, optionally with a path: `repo.mylan.k8s:8888/apps`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RegistryPrefix {
    host: String,
    path: Option<String>,
}

/// A text that is not a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Not `HOST[:PORT][/PREFIX]`.
    #[error(
        "invalid registry {}: expected HOST[:PORT][/PREFIX], where the host has a dot or a port, and \
         the prefix is in lower case",
        QuotedText(.0)
    )]
    Malformed(String),
    /// A URL, with credentials, or without the user that a target on Docker Hub has.
    #[error("{0}")]
    Refused(String),
}

impl FromStr for RegistryPrefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('@') {
            // Not shown, because it may contain a password.
            let problem = "a registry cannot contain @: expected HOST[:PORT][/PREFIX]; for credentials, use `wincimg login HOST`";
            return Err(PrefixError::Refused(problem.to_owned()));
        }
        if let Some((scheme, rest)) = text.split_once("://")
            && let Ok(prefix) = rest.parse::<Self>()
        {
            let plain = match (scheme, &prefix.host) {
                ("http", host) => format!(", and --insecure-registry {host} if it uses plain HTTP"),
                _ => String::new(),
            };
            let problem = format!("a registry has no scheme: type {prefix}{plain}");
            return Err(PrefixError::Refused(problem));
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
        // The rest is validated as part of a reference. There, a host without dot and port would be
        // taken for a repository on Docker Hub.
        match prefix.join("x") {
            Ok(reference) if reference.registry() == host => Ok(prefix),
            // An alias of Docker Hub.
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

    /// Returns true for a repository below the prefix.
    pub fn contains(&self, reference: &Reference) -> bool {
        self.path_below(reference).is_some()
    }

    /// The path of a repository below the prefix.
    pub fn path_below<'a>(&self, reference: &'a Reference) -> Option<&'a str> {
        let repository = reference.repository();
        if display_host(reference.registry()) != self.host {
            return None;
        }
        match &self.path {
            Some(path) => repository.strip_prefix(path.as_str())?.strip_prefix('/'),
            None => Some(repository),
        }
    }

    /// Returns the reference of an image, given its name with or without tag and digest. Names on
    /// Docker Hub have two parts, so later slashes become dashes:
    /// `docker.io/me/windows-nanoserver`.
    pub fn join(&self, name: &str) -> Result<Reference, ReferenceError> {
        let whole = match &self.path {
            Some(path) if self.host == DOCKER_HUB => {
                let path = format!("{path}/{name}");
                let (owner, rest) = path.split_once('/').unwrap_or((&path, ""));
                format!("{}/{owner}/{}", self.host, rest.replace('/', "-"))
            }
            _ => format!("{self}/{name}"),
        };
        parse_reference(&whole)
    }

    /// Rejects a prefix that cannot be pushed to.
    pub fn check_for_pushes(&self) -> Result<(), PrefixError> {
        match &self.path {
            None if self.host == DOCKER_HUB => {
                let problem = "images on Docker Hub belong to a user or an organization: expected docker.io/NAME";
                Err(PrefixError::Refused(problem.to_owned()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
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
        let expected = "repo:8888/a/web:1";
        assert_eq!(prefix.join("web:1").unwrap().to_string(), expected);
    }

    #[test]
    fn names_on_docker_hub_have_two_parts() {
        for (prefix, name, expected) in [
            ("docker.io/me", "web:1", "docker.io/me/web:1"),
            ("docker.io/me", "win/nano:1", "docker.io/me/win-nano:1"),
            ("index.docker.io/me/", "a/b/c:1", "docker.io/me/a-b-c:1"),
            ("registry-1.docker.io/me/m", "a/b:1", "docker.io/me/m-a-b:1"),
            ("docker.io", "me/app:1", "docker.io/me/app:1"),
            ("repo.lan/me", "a/b:1", "repo.lan/me/a/b:1"),
        ] {
            let prefix: RegistryPrefix = prefix.parse().unwrap();
            assert_eq!(prefix.join(name).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn a_repository_is_below_a_prefix_by_whole_names() {
        let contains = |prefix: &str, name: &str| {
            let prefix: RegistryPrefix = prefix.parse().unwrap();
            prefix.contains(&parse_reference(name).unwrap())
        };
        for (prefix, name) in [
            ("repo.lan", "repo.lan/a:1"),
            ("repo.lan/a", "repo.lan/a/b/c:1"),
            ("docker.io/me", "index.docker.io/me/windows-nanoserver:1809"),
        ] {
            assert!(contains(prefix, name), "{prefix} {name}");
        }
        for (prefix, name) in [
            ("repo.lan/a", "repo.lan/ab/c:1"),
            ("repo.lan/a", "repo.lan/a:1"),
            ("repo.lan/a", "repo.lan/x/a/b:1"),
            ("repo.lan/a", "repo.lan:5000/a/b:1"),
            ("docker.io/me", "docker.io/you/windows-nanoserver:1809"),
        ] {
            assert!(!contains(prefix, name), "{prefix} {name}");
        }
    }

    #[test]
    fn a_push_to_docker_hub_requires_a_user() {
        let check = |text: &str| text.parse::<RegistryPrefix>().unwrap().check_for_pushes();
        assert_eq!(check("docker.io/me"), Ok(()));
        assert_eq!(check("repo.lan"), Ok(()));
        for hub in ["docker.io", "index.docker.io", "registry-1.docker.io/"] {
            let error = check(hub).unwrap_err().to_string();
            assert!(error.contains("docker.io/NAME"), "{hub}: {error}");
        }
    }

    #[test]
    fn what_is_no_registry_is_refused() {
        for text in [
            "", "/", "/x", "repo", "repo/apps", "https://repo", "http://",
            "http://https://http://", "a b", "repo.lan/Upper", "repo.lan//x", "repo.lan:x",
        ] {
            let error = text.parse::<RegistryPrefix>().unwrap_err();
            assert_eq!(error, PrefixError::Malformed(text.to_owned()));
        }
    }

    #[test]
    fn a_url_with_a_scheme_is_rejected() {
        let printed = |text: &str| text.parse::<RegistryPrefix>().unwrap_err().to_string();
        let expected = "a registry has no scheme: type repo.lan/apps";
        assert_eq!(printed("https://repo.lan/apps/"), expected);
        let expected = "a registry has no scheme: type repo.lan:8888/apps, and --insecure-registry \
                        repo.lan:8888 if it uses plain HTTP";
        assert_eq!(printed("http://repo.lan:8888/apps"), expected);
    }

    #[test]
    fn a_password_is_not_repeated() {
        let error = "me:secret@repo.lan".parse::<RegistryPrefix>().unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }
}
