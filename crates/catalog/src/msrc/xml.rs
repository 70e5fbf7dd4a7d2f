//! CVRF documents in XML: the same as in JSON, where kinds are numbers.

use wincimg_common::xml::{XmlElement, XmlError};

use super::document::{
    CvrfDocument, Detail, EXPLOIT_STATUS, Identification, ProductName, ProductTree, SEVERITY, Text,
    Tracking, VENDOR_FIX, Vulnerability,
};

/// Kind of what is of no use here.
const OTHER: u32 = u32::MAX;

/// Reads a document to its end.
pub(super) fn read(document: &str) -> Result<CvrfDocument, XmlError> {
    let root = XmlElement::read(document)?;
    if root.name != "cvrfdoc" {
        return Err("its root is not cvrfdoc".into());
    }
    let tracking = root.children_named("DocumentTracking").next();
    let tracking = tracking.ok_or("it has no DocumentTracking")?;
    let identification = tracking.children_named("Identification").next();
    let products = root.descendants("FullProductName").into_iter();
    let products = products.map(|product| ProductName {
        id: product.attribute("ProductID").to_owned(),
        name: product.text.clone(),
    });
    Ok(CvrfDocument {
        document_tracking: Tracking {
            identification: Identification {
                id: identification.map(|it| text(it, "ID")).unwrap_or_default(),
            },
            initial_release_date: text(tracking, "InitialReleaseDate").value,
        },
        product_tree: ProductTree {
            full_product_name: products.collect(),
        },
        vulnerability: root
            .children_named("Vulnerability")
            .map(vulnerability)
            .collect(),
    })
}

fn vulnerability(element: &XmlElement) -> Vulnerability {
    let threats = element.children_named("Threats");
    let threats = threats.flat_map(|it| it.children_named("Threat"));
    let threats = threats.map(|threat| {
        let kind = match threat.attribute("Type") {
            "Exploit Status" => EXPLOIT_STATUS,
            "Severity" => SEVERITY,
            _ => OTHER,
        };
        detail(threat, kind)
    });
    let remediations = element.children_named("Remediations");
    let remediations = remediations.flat_map(|it| it.children_named("Remediation"));
    let remediations = remediations.map(|remediation| {
        let is_fix = remediation.attribute("Type") == "Vendor Fix";
        detail(remediation, if is_fix { VENDOR_FIX } else { OTHER })
    });
    Vulnerability {
        cve: text(element, "CVE").value,
        title: text(element, "Title"),
        threats: threats.collect(),
        remediations: remediations.collect(),
    }
}

fn detail(element: &XmlElement, kind: u32) -> Detail {
    let products = element.children_named("ProductID");
    Detail {
        kind,
        sub_type: Some(text(element, "SubType").value),
        description: text(element, "Description"),
        products: products.map(|product| product.text.clone()).collect(),
        fixed_build: Some(text(element, "FixedBuild").value),
    }
}

fn text(element: &XmlElement, name: &str) -> Text {
    let value = element.child_text(name).to_owned();
    Text { value }
}
