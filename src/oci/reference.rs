//! Image references as people write them: `repo.mylan.k8s:8888/app/web:1.4@sha256:…`.
//!
//! `oci-spec` parses them by Docker's grammar and defaults (`docker.io`, `library/`, `latest`);
//! this module adds what a person needs when the text is none: which part is wrong and what a
//! reference looks like.

use std::str::FromStr;

pub use oci_spec::distribution::Reference;
use oci_spec::image::Digest;

/// A text that is no image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no image reference: {reason}; expected [HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST]"
)]
pub struct ReferenceError {
    text: String,
    reason: &'static str,
}

/// Reads a reference with Docker's defaults: no host means `docker.io`, neither tag nor digest
/// means `latest`.
pub fn parse_reference(text: &str) -> Result<Reference, ReferenceError> {
    let refuse = |reason| ReferenceError {
        text: text.to_owned(),
        reason,
    };
    let reference = Reference::try_from(text).map_err(|_| refuse(what_is_wrong(text)))?;
    if let Some(digest) = reference.digest() {
        Digest::from_str(digest).map_err(|_| refuse(BAD_DIGEST))?;
    }
    Ok(reference)
}

const BAD_DIGEST: &str = "its digest is not sha256: and 64 lowercase hexadecimal digits";

/// The first reason, from left to right of how people get references wrong.
fn what_is_wrong(text: &str) -> &'static str {
    if text.trim().is_empty() {
        return "it is empty";
    }
    if text.contains(char::is_whitespace) {
        return "it contains a space";
    }
    if text.contains("://") {
        return "it is a URL, and a reference has no scheme";
    }
    let (named, digest) = match text.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (text, None),
    };
    if digest.is_some_and(|digest| Digest::from_str(digest).is_err()) {
        return BAD_DIGEST;
    }
    let (name, tag) = split_tag(named);
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return "its tag is not 1 to 128 letters, digits, dots, dashes and underscores";
    }
    let path = match name.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => path,
        _ => name,
    };
    if path.is_empty() {
        "it names no repository"
    } else if path.contains(char::is_uppercase) {
        "its repository has an uppercase letter"
    } else if path.len() > 255 {
        "its repository is longer than 255 characters"
    } else {
        "its repository has a character or an order of separators that is not allowed"
    }
}

/// A colon after the last slash begins the tag; one before it is the host's port.
fn split_tag(named: &str) -> (&str, Option<&str>) {
    match named.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (named, None),
    }
}

fn is_tag(text: &str) -> bool {
    let mut characters = text.chars();
    let starts_well = characters
        .next()
        .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    starts_well
        && text.len() <= 128
        && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

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
    fn a_refusal_says_what_is_wrong_and_what_is_expected() {
        let cases = [
            ("", "it is empty"),
            ("an image", "a space"),
            ("https://host/app", "a URL"),
            ("host:5000/App", "uppercase"),
            ("host:5000/", "names no repository"),
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
