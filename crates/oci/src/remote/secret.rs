//! Passwords and tokens, which are hidden, too, in what a server answers to a request with them.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::HeaderValue;
use serde::Deserialize;
use wincimg_common::untrusted::HIDDEN;

use super::credentials::Authentication;

/// A secret text, hidden from Debug.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for use in a header or form only.
    pub(super) fn expose_secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Passwords, tokens and their encoded forms that a request sent.
#[derive(Default)]
pub(super) struct SentSecrets(Vec<String>);

impl SentSecrets {
    /// The secrets in an `Authorization` header and in the credential that it was made from.
    pub(super) fn new(header: Option<&HeaderValue>, credential: Option<&Authentication>) -> Self {
        let mut secrets = Vec::new();
        let header = header.and_then(|header| header.to_str().ok());
        if let Some((_, value)) = header.and_then(|header| header.split_once(' ')) {
            secrets.push(value.to_owned());
        }
        match credential {
            Some(Authentication::Password { user, password }) => {
                let password = password.expose_secret();
                let pair = format!("{user}:{password}");
                secrets.push(BASE64_STANDARD.encode(&pair));
                secrets.push(pair);
                secrets.push(password.to_owned());
            }
            Some(Authentication::IdentityToken(token)) => {
                secrets.push(token.expose_secret().to_owned());
            }
            None => {}
        }
        secrets.retain(|secret| !secret.is_empty());
        Self(secrets)
    }

    pub(super) fn hide(&self, text: String) -> String {
        let hide = |text: String, secret: &String| text.replace(secret.as_str(), HIDDEN);
        self.0.iter().fold(text, hide)
    }
}

#[cfg(test)]
mod tests {
    use super::super::error_message::error_message;
    use super::*;

    #[test]
    fn a_server_that_repeats_what_it_was_sent_discloses_nothing() {
        let secret = |text: &str| Secret::new(text.to_owned());
        let bob = Authentication::Password {
            user: "bob".to_owned(),
            password: secret("S3 /cret"),
        };
        let basic = HeaderValue::from_static("Basic Ym9iOlMzIC9jcmV0");
        let token = HeaderValue::from_static("Bearer abc.def");
        let refresh = Authentication::IdentityToken(secret("refresh"));
        for (header, credential, body, expected) in [
            (
                Some(&basic),
                Some(&bob),
                r#"{"errors":[{"message":"Basic Ym9iOlMzIC9jcmV0 = bob:S3 \/cret, S3 /cret"}]}"#,
                ": Basic *** = ***, ***",
            ),
            (None, Some(&bob), "no: Ym9iOlMzIC9jcmV0", ": no: ***"),
            (Some(&token), None, "Bearer abc.def", ": Bearer ***"),
            (None, Some(&refresh), "no refresh", ": no ***"),
            (None, None, "no refresh", ": no refresh"),
        ] {
            let secrets = SentSecrets::new(header, credential);
            assert_eq!(error_message(body.as_bytes(), &secrets), expected);
        }
        // A cut does not leave the beginning of one.
        let long = format!("{}S3 /cret", "x".repeat(297));
        let shown = error_message(long.as_bytes(), &SentSecrets::new(None, Some(&bob)));
        assert!(!shown.contains("S3"), "{shown}");
    }
}
