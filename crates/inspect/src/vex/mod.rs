//! VEX: statements of others on whether a vulnerability affects an image or its Windows, from `OpenVEX`
//! and CSAF documents in JSON.
//!
//! A statement counts only if it names the image or its Windows exactly, or no product at all. The
//! newest that counts decides.

mod csaf;
mod openvex;
mod subject;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use subject::VexSubject;
use wincimg_common::diagnose::Problem;
use wincimg_common::files::NotUtf8;

/// Status of a vulnerability in a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VexStatus {
    /// The product is not affected.
    NotAffected,
    /// The product has a fix.
    Fixed,
    /// The product is affected.
    Affected,
    /// It is not known yet.
    UnderInvestigation,
}

impl VexStatus {
    /// Returns true if nothing has to be done.
    fn is_settled(self) -> bool {
        matches!(self, Self::NotAffected | Self::Fixed)
    }
}

impl fmt::Display for VexStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAffected => "not affected",
            Self::Fixed => "fixed",
            Self::Affected => "affected",
            Self::UnderInvestigation => "under investigation",
        })
    }
}

/// A statement on vulnerabilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VexStatement {
    /// The status.
    pub status: VexStatus,
    /// The justification, with its explanation.
    pub reason: Option<String>,
    /// Names of the vulnerability.
    vulnerabilities: Vec<String>,
    /// The products; none for all.
    products: Vec<VexProduct>,
    time: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct VexProduct {
    identifiers: Vec<String>,
    /// Identifiers of the parts that the statement is about; none for all of the product.
    components: Vec<Vec<String>>,
}

/// The statements of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VexDocument {
    statements: Vec<VexStatement>,
    /// Places of the statements by the names of their vulnerabilities, in lower case.
    places: BTreeMap<String, Vec<usize>>,
}

impl VexDocument {
    /// Reads a document.
    pub fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let problem = refused("it is not UTF-8").source(error);
            problem.hint(NotUtf8::HINT)
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_ascii().is_empty() {
            return Err(refused("it is empty"));
        }
        let invalid = |error: serde_json::Error| refused("it is invalid").source(error);
        let document: Value = serde_json::from_str(text).map_err(invalid)?;
        let statements = if openvex::is_document(&document) {
            openvex::read(document)
        } else if csaf::is_document(&document) {
            csaf::read(document)
        } else {
            return Err(refused("it is neither OpenVEX nor CSAF in JSON"));
        };
        let statements = statements.map_err(invalid)?;
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, statement) in statements.iter().enumerate() {
            for name in &statement.vulnerabilities {
                let named = places.entry(name.to_ascii_lowercase()).or_default();
                if named.last() != Some(&place) {
                    named.push(place);
                }
            }
        }
        Ok(Self { statements, places })
    }

    fn about<'a>(
        &'a self,
        vulnerability: &'a str,
        subject: &'a VexSubject<'_>,
    ) -> impl Iterator<Item = &'a VexStatement> {
        let places = self.places.get(&vulnerability.to_ascii_lowercase());
        let statements = places.into_iter().flatten();
        let statements = statements.map(move |place| &self.statements[*place]);
        statements.filter(move |it| it.is_for(subject))
    }
}

/// The statement that settles a vulnerability of an image, with the position of its document; none if
/// the newest statement says otherwise.
pub fn settling_statement<'a>(
    documents: impl Iterator<Item = &'a VexDocument>,
    vulnerability: &'a str,
    subject: &'a VexSubject<'_>,
) -> Option<(usize, &'a VexStatement)> {
    let statements = documents.enumerate().flat_map(|(number, document)| {
        let about = document.about(vulnerability, subject);
        about.map(move |statement| (number, statement))
    });
    // The last of equal ones.
    let newest = statements.max_by_key(|(_, statement)| statement.time);
    newest.filter(|(_, statement)| statement.status.is_settled())
}

impl VexStatement {
    fn is_for(&self, subject: &VexSubject<'_>) -> bool {
        let is_named = |identifiers: &[String]| {
            let mut identifiers = identifiers.iter();
            identifiers.any(|it| subject.is_image(it) || subject.is_windows(it))
        };
        let is_windows = |identifiers: &Vec<String>| {
            let mut identifiers = identifiers.iter();
            identifiers.any(|it| subject.is_windows(it))
        };
        let mut products = self.products.iter();
        self.products.is_empty()
            || products.any(|product| {
                let mut components = product.components.iter();
                is_named(&product.identifiers)
                    && (product.components.is_empty() || components.any(is_windows))
            })
    }
}

/// `code_not_present: the driver is not in the image`.
fn reason(justification: Option<String>, explanation: Option<String>) -> Option<String> {
    let parts = [justification, explanation].into_iter().flatten();
    let parts: Vec<String> = parts.filter(|part| !part.trim().is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(": "))
}

fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

fn refused(problem: &str) -> Problem {
    Problem::request("scan/vex", problem).hint("--vex takes OpenVEX and CSAF documents in JSON")
}

#[cfg(test)]
mod tests;
