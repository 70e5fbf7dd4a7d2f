//! Image references as typed by users: `repo.mylan.k8s:8888/app/web:1.4@sha256:…`.
//!
//! Parsed by hand: the specification's regular expression takes 26 ms and 19 MiB to compile, more
//! than a whole build and push may take here, and cannot tell why a text is invalid. The tests
//! compare both.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use wincimg_common::diagnose::Diagnose;
use wincimg_common::digest::Digest;
use wincimg_common::untrusted::{QuotedText, password, without_password};

/// Reference of an image: a repository of a registry with a tag, a digest, or both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

impl Reference {
    /// A reference by tag, digest, or both, of which the digest decides.
    pub fn new(registry: &str, repository: &str, tag: Option<&str>, digest: Option<&str>) -> Self {
        Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        }
    }

    /// The registry's host, with its port.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The repository's name.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if any.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if any.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        parse_reference(text)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

/// A text that is not an image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnose)]
#[error(
    "invalid image reference {}: {reason}; expected [HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST]",
    QuotedText(.text)
)]
#[diagnose(code = "usage/reference", blame = Request)]
pub struct ReferenceError {
    text: String,
    reason: &'static str,
}

/// Parses a reference with Docker's defaults: the host defaults to `docker.io`, the tag to
/// `latest`.
pub fn parse_reference(text: &str) -> Result<Reference, ReferenceError> {
    parse(text).map_err(|reason| ReferenceError {
        text: without_password(text).into_owned(),
        reason,
    })
}

/// Repository of a reference, without tag and digest: `HOST/NAME`.
pub fn repository_of(reference: &Reference) -> String {
    format!("{}/{}", reference.registry(), reference.repository())
}

/// Where an image is pushed to, `HOST/PATH`, and its name there, `NAME`.
pub fn prefix_and_name(reference: &Reference) -> (String, &str) {
    let (host, repository) = (reference.registry(), reference.repository());
    match repository.rsplit_once('/') {
        Some((path, name)) => (format!("{host}/{path}"), name),
        None => (host.to_owned(), repository),
    }
}

/// Name of a reference by its tag, `HOST/NAME:TAG`; by its digest if it has no tag.
pub fn tagged_name(reference: &Reference) -> String {
    match reference.tag() {
        Some(tag) => format!("{}:{tag}", repository_of(reference)),
        None => reference.to_string(),
    }
}

/// A reference by digest, with the tag it was found under.
pub fn with_digest(host: &str, repository: &str, tag: Option<&str>, digest: &Digest) -> Reference {
    Reference::new(host, repository, tag, Some(digest.as_ref()))
}

/// Returns true if the text is a valid repository name, without host and tag.
pub fn is_repository(text: &str) -> bool {
    check_path(text).is_ok()
}

/// The default host.
pub const DOCKER_HUB: &str = "docker.io";
const MOST_NAME: usize = 255;
const MOST_TAG: usize = 128;

fn parse(text: &str) -> Result<Reference, &'static str> {
    if text.trim().is_empty() {
        return Err("it is empty");
    }
    if text.contains(char::is_whitespace) {
        return Err("it contains a space");
    }
    if text.contains("://") {
        return Err("it is a URL: leave out the scheme");
    }
    if password(text).is_some() {
        return Err("it contains a password; use `wincimg login HOST`");
    }
    let (named, digest) = match text.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (text, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return Err("its digest is not sha256: and 64 lowercase hexadecimal digits");
    }
    let (name, tag) = split_tag(named);
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Err("its tag is not 1 to 128 letters, digits, dots, dashes and underscores");
    }
    let (host, path) = split_host(name);
    if !is_host(host) {
        return Err("its host is not a name or an address with an optional port");
    }
    check_path(path)?;

    let repository = if host == DOCKER_HUB && !path.contains('/') {
        format!("library/{path}")
    } else {
        path.to_owned()
    };
    let tag = tag.or(digest.is_none().then_some("latest"));
    Ok(Reference {
        registry: host.to_owned(),
        repository,
        tag: tag.map(str::to_owned),
        digest: digest.map(str::to_owned),
    })
}

/// Splits off the tag: a colon after the last slash; an earlier colon belongs to the port.
fn split_tag(named: &str) -> (&str, Option<&str>) {
    match named.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (named, None),
    }
}

/// Returns the usual name of a host: Docker Hub has aliases.
pub fn display_host(host: &str) -> &str {
    match host {
        "index.docker.io" | "registry-1.docker.io" => DOCKER_HUB,
        other => other,
    }
}

/// Splits off the host: the first part, if a dot, a port or a capital rules out a name on Docker
/// Hub.
fn split_host(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some((host, path)) if display_host(host) == DOCKER_HUB => (DOCKER_HUB, path),
        Some((host, path))
            if host == "localhost"
                || host.contains(['.', ':'])
                || host.contains(char::is_uppercase) =>
        {
            (host, path)
        }
        _ => (DOCKER_HUB, name),
    }
}

fn is_host(text: &str) -> bool {
    if let Some((address, port)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port_number);
        return has_port && Ipv6Addr::from_str(address).is_ok();
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        let ends_well = !label.starts_with('-') && !label.ends_with('-');
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !label.is_empty() && ends_well && label.chars().all(is_plain)
    };
    // Docker also accepts underscores in hosts, as in paths.
    port.is_none_or(is_port_number) && name.split('.').all(is_label) || is_path_part(text)
}

fn is_port_number(text: &str) -> bool {
    text.bytes().all(|digit| digit.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        Err("it names no repository")
    } else if path.contains(char::is_uppercase) {
        Err("its repository has an uppercase letter")
    } else if path.len() > MOST_NAME {
        Err("its repository is longer than 255 characters")
    } else if !path.split('/').all(is_path_part) {
        Err("its repository has a character or an order of separators that is not allowed")
    } else {
        Ok(())
    }
}

/// Lowercase letters and digits, with one dot, one or two underscores or any number of dashes
/// between them.
fn is_path_part(part: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator = |text: &str| {
        matches!(text, "." | "_" | "__") || text.bytes().all(|separator| separator == b'-')
    };
    part.starts_with(is_word) && part.ends_with(is_word) && part.split(is_word).all(is_separator)
}

/// Returns true if the text is a valid tag.
pub fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(is_word)
        && text.len() <= MOST_TAG
        && text.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

fn is_digest(text: &str) -> bool {
    Digest::from_str(text)
        .is_ok_and(|digest| matches!(digest.algorithm(), "sha256" | "sha384" | "sha512"))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    const DIGEST: &str = "sha256:6c3c624b58dbbcd3c0dd82b4c53f04194d1247c6eebdaab7c610cf7d66709b3b";

    fn parts(text: &str) -> (String, String, Option<String>, Option<String>) {
        let reference = parse_reference(text).unwrap();
        (
            reference.registry().to_owned(),
            reference.repository().to_owned(),
            reference.tag().map(str::to_owned),
            reference.digest().map(str::to_owned),
        )
    }

    fn split(
        host: &str,
        name: &str,
        tag: &str,
    ) -> (String, String, Option<String>, Option<String>) {
        (host.into(), name.into(), Some(tag.into()), None)
    }

    #[test]
    fn defaults_are_dockers() {
        assert_eq!(
            parts("nginx"),
            split("docker.io", "library/nginx", "latest")
        );
        assert_eq!(parts("me/app:1"), split("docker.io", "me/app", "1"));
        assert_eq!(parts("localhost/app"), split("localhost", "app", "latest"));
        for host in ["docker.io", "index.docker.io", "registry-1.docker.io"] {
            let name = format!("{host}/me/app:1");
            assert_eq!(parts(&name), split("docker.io", "me/app", "1"));
        }
    }

    #[test]
    fn a_port_is_not_a_tag() {
        assert_eq!(
            parts("repo.mylan.k8s:8888/app/web"),
            split("repo.mylan.k8s:8888", "app/web", "latest")
        );
    }

    #[test]
    fn a_digest_alone_gets_no_default_tag_and_may_follow_a_tag() {
        let (_, _, tag, digest) = parts(&format!("host:1/a@{DIGEST}"));
        assert_eq!((tag, digest.as_deref()), (None, Some(DIGEST)));
        let (_, _, tag, digest) = parts(&format!("host:1/a:b@{DIGEST}"));
        assert_eq!(
            (tag.as_deref(), digest.as_deref()),
            (Some("b"), Some(DIGEST))
        );
    }

    #[test]
    fn a_port_is_one_that_exists() {
        for text in ["host:99999/a", "[::1]:70000/a", "host:/a", "host:+5/a"] {
            assert!(parse_reference(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_may_be_of_either_kind() {
        assert_eq!(
            parts("127.0.0.1:5000/a:1"),
            split("127.0.0.1:5000", "a", "1")
        );
        assert_eq!(parts("[::1]:5000/a:1"), split("[::1]:5000", "a", "1"));
    }

    /// The grammar published by `distribution`, with the digests allowed for images.
    static GRAMMAR: LazyLock<Regex> = LazyLock::new(|| {
        let label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
        let part = "[a-z0-9]+(?:(?:[._]|__|[-]*)[a-z0-9]+)*";
        let host = format!(r"{label}(?:\.{label})*(?::[0-9]+)?");
        let tag = r"\w[\w.-]{0,127}";
        let digest = "sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}";
        let name = format!("(?:{host}/)?{part}(?:/{part})*");
        Regex::new(&format!("^({name})(?::({tag}))?(?:@({digest}))?$")).unwrap()
    });

    proptest! {
        #[test]
        fn the_answers_are_those_of_the_grammar(
            host in "([a-z0-9.-]{1,6}(:[0-9]{0,3})?/)?",
            path in "[a-z0-9._/-]{1,10}",
            tag in "(:[a-zA-Z0-9._-]{0,4})?",
            digest in "(@(sha256|sha384|md5):([0-9a-f]{63}|[0-9a-f]{64}))?",
        ) {
            let text = format!("{host}{path}{tag}{digest}");
            let expected = GRAMMAR.captures(&text).map(|parts| {
                let part = |number| parts.get(number).map(|part| part.as_str().to_owned());
                let (name, tag, digest) = (part(1).unwrap(), part(2), part(3));
                let tag = tag.or(digest.is_none().then(|| "latest".to_owned()));
                let (host, path) = match name.split_once('/') {
                    Some((host, path)) if host.contains(['.', ':']) => (host, path.to_owned()),
                    Some(_) => (DOCKER_HUB, name),
                    None => (DOCKER_HUB, format!("library/{name}")),
                };
                (host.to_owned(), path, tag, digest)
            });
            prop_assert_eq!(parse_reference(&text).is_ok().then(|| parts(&text)), expected);
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong_and_what_is_expected() {
        let cases = [
            ("", "it is empty"),
            ("an image", "a space"),
            ("https://host/app", "a URL"),
            ("host:5000/App", "uppercase"),
            ("host:5000/", "names no repository"),
            ("host:port/app", "its host"),
            ("-host.lan/app", "its host"),
            ("app:-1", "its tag"),
            ("app@sha256:12", "its digest"),
            (
                "app@sha256:6C3C624B58DBBCD3C0DD82B4C53F04194D1247C6EEBDAAB7C610CF7D66709B3B",
                "its digest",
            ),
            ("host/a//b", "separators"),
        ];
        for (text, reason) in cases {
            let message = parse_reference(text).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
            assert!(message.contains("[HOST[:PORT]/]NAME[:TAG]"), "{message}");
        }
    }
}
