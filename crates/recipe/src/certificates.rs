//! Certificates that a recipe's image trusts.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use wincimg_common::diagnose::{Diagnose as _, Problem};
use wincimg_common::files::without_mark;
use wincimg_common::shell::command_line;
use wincimg_common::x509::Certificate;
use wincimg_http::certificates_in;
use wincimg_windows::certificate::{CertificateStore, TrustedCertificate};

use super::text::{Text, Texts};
use super::{Recipe, Result};

/// All CAs of a machine have a quarter of that.
const LARGEST_FILE: u64 = 1 << 20;

/// Certificate files by the machine's certificate store. Paths are relative to the recipe's
/// folder; a file is PEM (one or more certificates), DER (one) or PKCS #7 (.p7b).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CertificatesEntry {
    /// Trusted root CAs.
    #[serde(default)]
    #[schemars(with = "Texts")]
    root: Option<Spanned<Texts>>,
    /// Intermediate CAs, for servers that do not send them.
    #[serde(default)]
    #[schemars(with = "Texts")]
    ca: Option<Spanned<Texts>>,
    /// Trusted publishers: their signed scripts and programs run without a prompt.
    #[serde(default)]
    #[schemars(with = "Texts")]
    trusted_publisher: Option<Spanned<Texts>>,
    /// Certificates that are trusted themselves, without a CA.
    #[serde(default)]
    #[schemars(with = "Texts")]
    trusted_people: Option<Spanned<Texts>>,
}

/// Certificates that an image trusts, and warnings about them.
#[derive(Default)]
pub(super) struct TrustedCertificates {
    /// Without duplicates, in an order independent of the recipe's.
    pub(super) certificates: Vec<TrustedCertificate>,
    pub(super) warnings: Vec<String>,
}

impl Recipe {
    pub(super) fn certificates(&self, entry: CertificatesEntry) -> Result<TrustedCertificates> {
        let now = Offset::UTC.to_datetime(Timestamp::now());
        let mut trusted = TrustedCertificates::default();
        for (store, texts) in [
            (CertificateStore::Root, entry.root),
            (CertificateStore::Ca, entry.ca),
            (CertificateStore::TrustedPublisher, entry.trusted_publisher),
            (CertificateStore::TrustedPeople, entry.trusted_people),
        ] {
            let Some(texts) = texts else { continue };
            let offset = texts.span().start;
            let texts = match texts.into_inner() {
                Texts::One(value) => vec![Text { value, offset }],
                Texts::List(list) => list,
            };
            for text in texts {
                let file = self.in_recipe_folder(&text)?;
                let bytes = file.read(LARGEST_FILE);
                let bytes = bytes.map_err(|error| self.unreadable(&text, &file.path, &error))?;
                let found = certificates_in_file(bytes, &text.value).map_err(|error| {
                    let hint = error.diagnosis().hint;
                    self.error(&text, error.to_string()).hint_if(hint)
                })?;
                for certificate in found {
                    trusted.add(store, certificate, &text.value, now);
                }
            }
        }
        trusted
            .certificates
            .sort_by_cached_key(|it| (it.store, it.certificate.thumbprint()));
        Ok(trusted)
    }
}

/// Reads the certificates of a file of this name: PEM, bare base64, DER, or PKCS #7 in either.
pub fn certificates_in_file(bytes: Vec<u8>, name: &str) -> Result<Vec<Certificate>> {
    let refused = |problem: String| Problem::request("recipe/invalid", problem);
    let bytes = without_mark(bytes);
    if let Some((what, hint)) = something_else(&bytes, name) {
        return Err(refused(format!("{name} {what}")).hint(hint));
    }
    let invalid = |problem: String| refused(format!("cannot use {name}: {problem}"));
    let parts = match in_base64(&bytes) {
        Some(der) => vec![der],
        None => certificates_in(bytes)
            .map_err(invalid)?
            .iter()
            .map(|der| der.to_vec())
            .collect(),
    };
    let mut found = Vec::new();
    for der in parts {
        let certificates = match Certificate::in_message(&der) {
            Some(certificates) => certificates,
            None => Certificate::parse(der).map(|certificate| vec![certificate]),
        };
        found.extend(certificates.map_err(|error| invalid(error.to_string()))?);
    }
    if found.is_empty() {
        return Err(invalid("it has no certificate".to_owned()));
    }
    Ok(found)
}

/// DER in base64, bare or between the lines of PKCS #7.
fn in_base64(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = str::from_utf8(bytes).ok()?.trim();
    let inside = match text.strip_prefix("-----BEGIN PKCS7-----") {
        Some(rest) => rest.strip_suffix("-----END PKCS7-----")?,
        None => text,
    };
    let digits: String = inside.split_whitespace().collect();
    let der = BASE64_STANDARD.decode(digits).ok()?;
    der.starts_with(&[0x30]).then_some(der)
}

impl TrustedCertificates {
    fn add(
        &mut self,
        store: CertificateStore,
        certificate: Certificate,
        path: &str,
        now: DateTime,
    ) {
        let new = TrustedCertificate { store, certificate };
        if self.certificates.contains(&new) {
            return;
        }
        let certificate = &new.certificate;
        let mut warn = |problem: String| {
            let warning = format!("{certificate} ({path}) {problem}");
            self.warnings.push(warning);
        };
        if certificate.not_after() < now {
            warn(format!("expired on {}", certificate.not_after().date()));
        } else if certificate.not_before() > now {
            let day = certificate.not_before().date();
            warn(format!("is not valid before {day}"));
        }
        match (store, certificate.is_ca()) {
            (CertificateStore::Root, false) => {
                warn("is not a CA certificate: as a root it makes only itself trusted".to_owned());
            }
            (CertificateStore::Ca, true) if certificate.is_self_issued() => {
                warn(
                    "is a root certificate, which is not trusted under ca: list it under root"
                        .to_owned(),
                );
            }
            _ => {}
        }
        self.certificates.push(new);
    }
}

/// The problem and the hint for a known format without usable certificates.
fn something_else(bytes: &[u8], path: &str) -> Option<(&'static str, String)> {
    /// `INTEGER 3, SEQUENCE`: how PKCS #12 begins.
    const PKCS12: [u8; 4] = [0x02, 0x01, 0x03, 0x30];
    let has = |text: &[u8]| bytes.windows(text.len()).any(|found| found == text);
    // The content of a SEQUENCE.
    let inside = match bytes {
        [0x30, length @ 0x81..=0x84, rest @ ..] => rest.get(usize::from(length & 0x7F)..),
        [0x30, _, rest @ ..] => Some(rest),
        _ => None,
    };
    let begins = |with: &[u8]| inside.is_some_and(|inside| inside.starts_with(with));
    if has(b"PRIVATE KEY-----") {
        let hint = "copy only the certificates to a separate file";
        let problem = "has a private key, which everyone who pulls the image could read";
        Some((problem, hint.to_owned()))
    } else if begins(&PKCS12) {
        let problem = "is PKCS #12 (.pfx, .p12), which may hold a private key";
        let words = [
            "openssl", "pkcs12", "-in", path, "-nokeys", "-out", "certificates.pem",
        ];
        let hint = format!("extract its certificates: {}", command_line(&words));
        Some((problem, hint))
    } else if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        Some(("is UTF-16 text", "save it as UTF-8".to_owned()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
