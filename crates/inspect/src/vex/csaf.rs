//! CSAF 2.0 documents: the statuses of products in a profile for VEX or in an advisory. Of version 2.1,
//! `product_paths` are not read: statements on these products do not count.

use std::collections::HashMap;
use std::mem;

use serde::Deserialize;
use serde_json::Value;

use super::subject::{CPE_VERSION, cpe_fields, is_any};
use super::{VexProduct, VexStatement, VexStatus, reason, time};

#[derive(Deserialize)]
struct CsafDocument {
    document: Header,
    #[serde(default)]
    product_tree: ProductTree,
    #[serde(default)]
    vulnerabilities: Vec<Vulnerability>,
}

#[derive(Deserialize)]
struct Header {
    tracking: Option<Tracking>,
}

#[derive(Deserialize)]
struct Tracking {
    current_release_date: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ProductTree {
    branches: Vec<Branch>,
    full_product_names: Vec<Product>,
    relationships: Vec<Relationship>,
    product_groups: Vec<ProductGroup>,
}

#[derive(Deserialize)]
struct Branch {
    #[serde(default)]
    category: String,
    product: Option<Product>,
    #[serde(default)]
    branches: Vec<Branch>,
}

#[derive(Deserialize)]
struct Product {
    product_id: String,
    #[serde(default)]
    product_identification_helper: Helper,
}

#[derive(Deserialize, Default)]
struct Helper {
    cpe: Option<String>,
    purl: Option<String>,
    /// Of version 2.1.
    #[serde(default)]
    purls: Vec<String>,
    #[serde(default)]
    hashes: Vec<Hashes>,
}

#[derive(Deserialize)]
struct Hashes {
    #[serde(default)]
    file_hashes: Vec<Hash>,
}

#[derive(Deserialize)]
struct Hash {
    algorithm: String,
    value: String,
}

#[derive(Deserialize)]
struct Relationship {
    full_product_name: Product,
    product_reference: String,
    relates_to_product_reference: String,
}

#[derive(Deserialize)]
struct ProductGroup {
    group_id: String,
    #[serde(default)]
    product_ids: Vec<String>,
}

#[derive(Deserialize)]
struct Vulnerability {
    cve: Option<String>,
    #[serde(default)]
    product_status: ProductStatus,
    #[serde(default)]
    flags: Vec<Flag>,
    #[serde(default)]
    threats: Vec<Threat>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ProductStatus {
    known_not_affected: Vec<String>,
    fixed: Vec<String>,
    first_fixed: Vec<String>,
    known_affected: Vec<String>,
    first_affected: Vec<String>,
    last_affected: Vec<String>,
    under_investigation: Vec<String>,
    /// Of version 2.1.
    unknown: Vec<String>,
}

/// A justification.
#[derive(Deserialize)]
struct Flag {
    label: String,
    #[serde(default)]
    product_ids: Vec<String>,
    #[serde(default)]
    group_ids: Vec<String>,
}

/// An explanation.
#[derive(Deserialize)]
struct Threat {
    category: String,
    details: String,
    #[serde(default)]
    product_ids: Vec<String>,
    #[serde(default)]
    group_ids: Vec<String>,
}

pub(super) fn is_document(document: &Value) -> bool {
    document["document"]["csaf_version"].is_string()
}

pub(super) fn read(document: Value) -> Result<Vec<VexStatement>, serde_json::Error> {
    let mut read: CsafDocument = serde_json::from_value(document)?;
    let tracking = read.document.tracking.as_ref();
    let released = tracking.and_then(|tracking| tracking.current_release_date.as_deref());
    let released = time(released);
    let groups = mem::take(&mut read.product_tree.product_groups).into_iter();
    let groups = groups.map(|group| (group.group_id, group.product_ids));
    let groups: Groups = groups.collect();
    let products = read.product_tree.products();
    let mut statements = Vec::new();
    for vulnerability in &read.vulnerabilities {
        let flags = vulnerability.flags(&groups);
        let impacts = vulnerability.impacts(&groups);
        for (status, ids) in vulnerability.product_status.by_status() {
            let known = ids.iter().filter_map(|id| Some((id, products.get(id)?)));
            statements.extend(known.map(|(id, product)| VexStatement {
                status,
                reason: reason(flags.of(id), impacts.of(id)),
                vulnerabilities: vulnerability.cve.iter().cloned().collect(),
                products: vec![product.clone()],
                time: released,
            }));
        }
    }
    Ok(statements)
}

impl ProductTree {
    /// The products by their ids in the document.
    fn products(self) -> HashMap<String, VexProduct> {
        let mut products = HashMap::new();
        let mut branches: Vec<(Branch, bool)> =
            self.branches.into_iter().map(|it| (it, false)).collect();
        while let Some((branch, is_below_version)) = branches.pop() {
            let is_version = is_below_version || branch.category.starts_with("product_version");
            let below = branch.branches.into_iter();
            branches.extend(below.map(|branch| (branch, is_version)));
            products.extend(branch.product.map(|product| product.named(is_version)));
        }
        let others = self.full_product_names.into_iter();
        products.extend(others.map(|product| product.named(false)));
        for related in self.relationships {
            let (id, mut product) = related.full_product_name.named(false);
            let part = products.get(&related.product_reference);
            let whole = products.get(&related.relates_to_product_reference);
            if let (Some(part), Some(whole)) = (part, whole) {
                product
                    .identifiers
                    .extend(whole.identifiers.iter().cloned());
                product.components = vec![part.identifiers.clone()];
                products.insert(id, product);
            }
        }
        products
    }
}

impl Product {
    /// Its id, and itself. Where the document names a version, identifiers for all versions say too
    /// much.
    fn named(self, is_version: bool) -> (String, VexProduct) {
        let helper = self.product_identification_helper;
        let names = helper.cpe.into_iter();
        let names = names.chain(helper.purl).chain(helper.purls);
        let names = names.filter(|name| !is_version || has_version(name));
        let hashes = helper.hashes.into_iter().flat_map(|it| it.file_hashes);
        let digests = hashes.filter(|hash| hash.algorithm.eq_ignore_ascii_case("sha256"));
        let digests = digests.map(|hash| format!("sha256:{}", hash.value));
        let product = VexProduct {
            identifiers: names.chain(digests).collect(),
            components: Vec::new(),
        };
        (self.product_id, product)
    }
}

fn has_version(identifier: &str) -> bool {
    if identifier.starts_with("pkg:") {
        return identifier.contains('@');
    }
    let fields = cpe_fields(identifier);
    let version = fields.get(CPE_VERSION);
    version.is_some_and(|version| !is_any(version))
}

impl ProductStatus {
    fn by_status(&self) -> [(VexStatus, &[String]); 8] {
        [
            (VexStatus::NotAffected, &self.known_not_affected),
            (VexStatus::Fixed, &self.fixed),
            (VexStatus::Fixed, &self.first_fixed),
            (VexStatus::Affected, &self.known_affected),
            (VexStatus::Affected, &self.first_affected),
            (VexStatus::Affected, &self.last_affected),
            (VexStatus::UnderInvestigation, &self.under_investigation),
            (VexStatus::UnderInvestigation, &self.unknown),
        ]
    }
}

/// The ids of the products of each group.
type Groups = HashMap<String, Vec<String>>;

impl Vulnerability {
    fn flags<'a>(&'a self, groups: &'a Groups) -> Texts<'a> {
        let mut texts = Texts::default();
        for flag in &self.flags {
            texts.add(&flag.label, &flag.product_ids, &flag.group_ids, groups);
        }
        texts
    }

    fn impacts<'a>(&'a self, groups: &'a Groups) -> Texts<'a> {
        let mut texts = Texts::default();
        for threat in self.threats.iter().filter(|it| it.category == "impact") {
            let details = &threat.details;
            texts.add(details, &threat.product_ids, &threat.group_ids, groups);
        }
        texts
    }
}

/// What a vulnerability says about its products, the first text of each: documents have thousands of
/// products, each with a flag.
#[derive(Default)]
struct Texts<'a> {
    /// The one that names neither a product nor a group.
    common: Option<&'a str>,
    by_product: HashMap<&'a str, &'a str>,
}

impl<'a> Texts<'a> {
    /// Adds the text about products and groups of them.
    fn add(
        &mut self,
        text: &'a str,
        products: &'a [String],
        group_ids: &[String],
        groups: &'a Groups,
    ) {
        if products.is_empty() && group_ids.is_empty() {
            self.common = self.common.or(Some(text));
        }
        let in_groups = group_ids.iter().filter_map(|id| groups.get(id)).flatten();
        for product in products.iter().chain(in_groups) {
            self.by_product.entry(product).or_insert(text);
        }
    }

    fn of(&self, product: &str) -> Option<String> {
        let own = self.by_product.get(product).copied();
        own.or(self.common).map(str::to_owned)
    }
}
