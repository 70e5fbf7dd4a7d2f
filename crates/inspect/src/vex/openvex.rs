//! `OpenVEX` documents, also those of version 0.0.1, whose products are texts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{VexProduct, VexStatement, VexStatus, reason, time};

/// Begin of the context of every version.
const CONTEXT: &str = "https://openvex.dev/ns";

#[derive(Deserialize)]
struct Document {
    timestamp: Option<String>,
    #[serde(default)]
    statements: Vec<OpenVexStatement>,
}

#[derive(Deserialize)]
struct OpenVexStatement {
    vulnerability: Vulnerability,
    status: VexStatus,
    /// When it was made, which orders statements; `last_updated` does not.
    timestamp: Option<String>,
    justification: Option<String>,
    impact_statement: Option<String>,
    #[serde(default)]
    products: Vec<Component>,
    /// Of all products, in version 0.0.1.
    #[serde(default)]
    subcomponents: Vec<Component>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Vulnerability {
    Name(String),
    Names {
        #[serde(rename = "@id")]
        id: Option<String>,
        name: Option<String>,
        #[serde(default)]
        aliases: Vec<String>,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Component {
    Name(String),
    Details {
        #[serde(rename = "@id")]
        id: Option<String>,
        #[serde(default)]
        identifiers: BTreeMap<String, String>,
        #[serde(default)]
        hashes: BTreeMap<String, String>,
        #[serde(default)]
        subcomponents: Vec<Component>,
    },
}

pub(super) fn is_document(document: &Value) -> bool {
    let context = document["@context"].as_str();
    context.is_some_and(|context| context.starts_with(CONTEXT))
}

pub(super) fn read(document: Value) -> Result<Vec<VexStatement>, serde_json::Error> {
    let document: Document = serde_json::from_value(document)?;
    let issued = document.timestamp.as_deref();
    let statements = document.statements.into_iter();
    let statements = statements.map(|it| it.into_statement(issued));
    Ok(statements.collect())
}

impl OpenVexStatement {
    fn into_statement(self, issued: Option<&str>) -> VexStatement {
        let common: Vec<Vec<String>> = self.subcomponents.iter().map(Component::names).collect();
        let products = self.products.iter().map(|product| VexProduct {
            identifiers: product.names(),
            components: product.components().chain(common.clone()).collect(),
        });
        VexStatement {
            status: self.status,
            reason: reason(self.justification, self.impact_statement),
            vulnerabilities: self.vulnerability.names(),
            products: products.collect(),
            time: time(self.timestamp.as_deref().or(issued)),
        }
    }
}

impl Vulnerability {
    fn names(self) -> Vec<String> {
        match self {
            Self::Name(name) => vec![name],
            Self::Names { id, name, aliases } => {
                id.into_iter().chain(name).chain(aliases).collect()
            }
        }
    }
}

impl Component {
    fn names(&self) -> Vec<String> {
        match self {
            Self::Name(name) => vec![name.clone()],
            Self::Details {
                id,
                identifiers,
                hashes,
                ..
            } => {
                let digest = hashes.get("sha-256").map(|hash| format!("sha256:{hash}"));
                let names = id.iter().chain(identifiers.values()).cloned();
                names.chain(digest).collect()
            }
        }
    }

    fn components(&self) -> impl Iterator<Item = Vec<String>> {
        let components = match self {
            Self::Name(_) => &[][..],
            Self::Details { subcomponents, .. } => subcomponents,
        };
        components.iter().map(Self::names)
    }
}
