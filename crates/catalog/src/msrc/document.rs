//! A CVRF document: its vulnerabilities, and the fixes that it has for Server Core installations.

use std::collections::{HashMap, HashSet};

use jiff::civil::Date;
use serde::Deserialize;
use wincimg_common::diagnose::Problem;
use wincimg_common::files::NotUtf8;
use wincimg_windows::update::{Kb, Update, Updates};
use wincimg_windows::version::WindowsVersion;

use super::{SecurityFix, Severity, invalid, xml};

/// Part of the names of products without a desktop.
const SERVER_CORE: &str = "server core installation";
/// Kinds of threats.
pub(super) const EXPLOIT_STATUS: u32 = 1;
pub(super) const SEVERITY: u32 = 3;
/// Kind of a remediation: a fix of the vendor.
pub(super) const VENDOR_FIX: u32 = 2;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CvrfDocument {
    pub(super) document_tracking: Tracking,
    #[serde(default)]
    pub(super) product_tree: ProductTree,
    #[serde(default)]
    pub(super) vulnerability: Vec<Vulnerability>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Tracking {
    pub(super) identification: Identification,
    pub(super) initial_release_date: String,
}

#[derive(Deserialize)]
pub(super) struct Identification {
    #[serde(rename = "ID")]
    pub(super) id: Text,
}

#[derive(Deserialize, Default)]
pub(super) struct Text {
    #[serde(rename = "Value", default)]
    pub(super) value: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ProductTree {
    #[serde(default)]
    pub(super) full_product_name: Vec<ProductName>,
}

#[derive(Deserialize)]
pub(super) struct ProductName {
    #[serde(rename = "ProductID")]
    pub(super) id: String,
    #[serde(rename = "Value")]
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct Vulnerability {
    #[serde(rename = "CVE", default)]
    pub(super) cve: String,
    #[serde(rename = "Title", default)]
    pub(super) title: Text,
    #[serde(rename = "Threats", default)]
    pub(super) threats: Vec<Detail>,
    #[serde(rename = "Remediations", default)]
    pub(super) remediations: Vec<Detail>,
}

/// A threat or a remediation.
#[derive(Deserialize)]
pub(super) struct Detail {
    #[serde(rename = "Type", default)]
    pub(super) kind: u32,
    #[serde(rename = "SubType", default)]
    pub(super) sub_type: Option<String>,
    #[serde(rename = "Description", default)]
    pub(super) description: Text,
    #[serde(rename = "ProductID", default)]
    pub(super) products: Vec<String>,
    #[serde(rename = "FixedBuild", default)]
    pub(super) fixed_build: Option<String>,
}

impl CvrfDocument {
    /// Reads a document in JSON or XML.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let refused = |problem: &str| {
            invalid(problem).hint("--msrc takes CVRF documents of Microsoft in JSON or XML")
        };
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let problem = refused("it is not UTF-8").source(error);
            problem.hint(NotUtf8::HINT)
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match text.trim_ascii_start().bytes().next() {
            None => Err(refused("it is empty")),
            Some(b'<') => xml::read(text)
                .map_err(|error| refused("it is not a CVRF document in XML").source(error)),
            Some(_) => serde_json::from_str(text)
                .map_err(|error| refused("it is not a CVRF document in JSON").source(error)),
        }
    }

    /// Its name, `2026-Sep`.
    pub(super) fn name(&self) -> &str {
        &self.document_tracking.identification.id.value
    }

    /// The day of its release.
    pub(super) fn released(&self) -> Option<Date> {
        let day = self.document_tracking.initial_release_date.get(..10)?;
        day.parse().ok()
    }

    /// The fixes for Server Core installations of Windows.
    pub(super) fn fixes(&self, document: &str, released: Date) -> Vec<SecurityFix> {
        let names = self.product_tree.full_product_name.iter();
        let server_core: HashSet<&str> = names
            .filter(|it| it.name.to_lowercase().contains(SERVER_CORE) && is_plain(&it.id))
            .map(|it| it.id.as_str())
            .collect();
        let vulnerabilities = self.vulnerability.iter().filter(|it| is_plain(&it.cve));
        vulnerabilities
            .flat_map(|it| it.fixes(&server_core, document, released))
            .collect()
    }
}

impl Vulnerability {
    fn fixes(
        &self,
        server_core: &HashSet<&str>,
        document: &str,
        released: Date,
    ) -> Vec<SecurityFix> {
        let severities = Severities::new(&self.threats);
        let exploited = self.is_exploited();
        let title = one_line(&self.title.value);
        let fixes = self.remediations.iter();
        let fixes = fixes.filter(|fix| fix.is_for_images()).flat_map(|fix| {
            let versions = fix.fixed_in().into_iter();
            versions.map(move |version| (fix, version))
        });
        let by_product = fixes.flat_map(|(fix, fixed_in)| {
            let products = fix.products.iter();
            let products = products.filter(|it| server_core.contains(it.as_str()));
            products.map(move |product| (fix, fixed_in, product))
        });
        by_product
            .map(|(fix, fixed_in, product)| SecurityFix {
                cve: self.cve.clone(),
                title: title.clone(),
                severity: severities.of(product),
                exploited,
                product: product.clone(),
                fixed_in,
                kb: fix.kb(),
                released,
                document: document.to_owned(),
            })
            .collect()
    }

    /// `Publicly Disclosed:No;Exploited:Yes;…`.
    fn is_exploited(&self) -> bool {
        let threats = self.threats.iter();
        let mut states = threats.filter(|threat| threat.kind == EXPLOIT_STATUS);
        states.any(|threat| {
            let mut fields = threat.description.value.split(';');
            fields.any(|field| field.trim().eq_ignore_ascii_case("Exploited:Yes"))
        })
    }
}

impl Detail {
    /// Returns true for updates, except hotpatches, which images never have.
    fn is_for_images(&self) -> bool {
        let sub_type = self.sub_type.as_deref().unwrap_or_default();
        self.kind == VENDOR_FIX && !sub_type.to_lowercase().contains("hotpatch")
    }

    fn kb(&self) -> Option<Kb> {
        format!("KB{}", self.description.value).parse().ok()
    }

    /// The first versions with the fix, for each build. Documents before May 2021 name only the
    /// article, and some later ones a wrong version, so the table of updates is asked first.
    fn fixed_in(&self) -> Vec<WindowsVersion> {
        let named = self.fixed_build.as_deref().and_then(windows_version);
        let updates = self.kb().map(|kb| Updates::global().by_kb(kb));
        let mut versions: Vec<_> = updates.into_iter().flatten().map(Update::version).collect();
        if let Some(named) = named {
            if versions.iter().any(|it| it.build == named.build) {
                versions.retain(|it| it.build == named.build);
            } else if versions.is_empty() {
                versions.push(named);
            }
        }
        versions
    }
}

/// The severities of a vulnerability.
struct Severities<'a> {
    /// For all products.
    common: Severity,
    by_product: HashMap<&'a str, Severity>,
}

impl<'a> Severities<'a> {
    fn new(threats: &'a [Detail]) -> Self {
        let mut severities = Self {
            common: Severity::Unrated,
            by_product: HashMap::new(),
        };
        for threat in threats.iter().filter(|threat| threat.kind == SEVERITY) {
            let name = threat.description.value.to_ascii_lowercase();
            let Some(severity) = Severity::from_name(&name) else {
                continue;
            };
            if threat.products.is_empty() {
                severities.common = severities.common.max(severity);
            }
            for product in &threat.products {
                let known = severities.by_product.entry(product);
                let known = known.or_insert(severity);
                *known = severity.max(*known);
            }
        }
        severities
    }

    fn of(&self, product: &str) -> Severity {
        let own = self.by_product.get(product);
        own.map_or(self.common, |own| self.common.max(*own))
    }
}

/// A version of Windows, not of another product.
fn windows_version(text: &str) -> Option<WindowsVersion> {
    let version: WindowsVersion = text.strip_prefix("10.0.")?.parse().ok()?;
    version.revision.map(|_| version)
}

/// Returns true if a text can be a field of the table.
pub(super) fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.len() <= 200 && !text.chars().any(char::is_control)
}

fn one_line(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(200).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hotpatch_is_not_for_images_in_any_spelling() {
        for (sub_type, expected) in [
            ("Security Update", true),
            ("Security Hotpatch Update", false),
            ("Security HotPatch Update", false),
        ] {
            let fix = json!({"Type": VENDOR_FIX, "SubType": sub_type});
            let fix: Detail = serde_json::from_value(fix).unwrap();
            assert_eq!(fix.is_for_images(), expected, "{sub_type}");
        }
    }
}
