//! SPDX 2.3, as JSON.
//!
//! The image is a package; so are its base, its Windows, each of its own layers with all files, and
//! each package found in a file.

use std::io::Write;
use std::iter;

use serde::Serialize;
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};
use wincimg_common::json::LazyList;

use super::document::{Tool, present, uuid_of};
use super::inventory::{FileId, Inventory, InventoryBase, InventoryLayer, InventoryPackage};
use super::layer::LayerFileEntry;
use super::purl;
use super::system::OperatingSystem;

const NO_ASSERTION: &str = "NOASSERTION";
const IMAGE: &str = "SPDXRef-Image";
const BASE: &str = "SPDXRef-Base";
const SYSTEM: &str = "SPDXRef-OperatingSystem";
const DOCUMENT: &str = "SPDXRef-DOCUMENT";

/// Licences that are recognised without a list; others are not asserted.
const LICENCES: [&str; 17] = [
    "0BSD", "AGPL-3.0-only", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0",
    "CC-BY-4.0", "CC0-1.0", "GPL-2.0-only", "GPL-3.0-only", "ISC", "LGPL-3.0-only", "MIT",
    "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib",
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpdxDocument<'a, P, F, R> {
    spdx_version: &'static str,
    data_license: &'static str,
    #[serde(rename = "SPDXID")]
    id: &'static str,
    name: &'a str,
    document_namespace: String,
    creation_info: Value,
    packages: P,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<F>,
    relationships: R,
}

/// A package with its own fields, in place of the defaults.
fn package(id: &str, name: &str, purpose: &str, own: Value) -> Value {
    let mut package = json!({
        "name": name,
        "SPDXID": id,
        "versionInfo": null,
        "supplier": null,
        "downloadLocation": NO_ASSERTION,
        "filesAnalyzed": false,
        "packageVerificationCode": null,
        "checksums": null,
        "licenseConcluded": NO_ASSERTION,
        "licenseDeclared": NO_ASSERTION,
        "copyrightText": NO_ASSERTION,
        "comment": null,
        "externalRefs": null,
        "primaryPackagePurpose": purpose,
    });
    if let (Some(fields), Value::Object(own)) = (package.as_object_mut(), own) {
        fields.extend(own);
    }
    present(package)
}

/// References to a package by its URL and its name in the CPE dictionary.
fn references(purl: Option<&str>, cpe: Option<&str>) -> Value {
    let purl = purl.map(|purl| ("PACKAGE-MANAGER", "purl", purl));
    let cpe = cpe.map(|cpe| ("SECURITY", "cpe23Type", cpe));
    let references = purl.into_iter().chain(cpe);
    let references = references.map(|(category, kind, locator)| {
        json!({
            "referenceCategory": category,
            "referenceType": kind,
            "referenceLocator": locator,
        })
    });
    references.collect()
}

fn relationship(from: &str, kind: &str, to: &str) -> Value {
    json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to })
}

pub(super) fn write(
    inventory: &Inventory,
    tool: Tool,
    out: impl Write,
) -> Result<(), serde_json::Error> {
    let has_files = inventory.files().next().is_some();
    let document = SpdxDocument {
        spdx_version: "SPDX-2.3",
        data_license: "CC0-1.0",
        id: DOCUMENT,
        name: &inventory.name,
        document_namespace: namespace(inventory, inventory.short_name(), tool),
        creation_info: json!({
            "created": inventory.created.to_string(),
            "creators": [format!("Tool: {}-{}", tool.name, tool.version)],
        }),
        packages: LazyList(|| packages(inventory)),
        files: has_files.then_some(LazyList(|| {
            let files = inventory.files();
            files.map(|(place, known)| described(place, known))
        })),
        relationships: LazyList(|| relationships(inventory)),
    };
    serde_json::to_writer(out, &document)
}

fn packages(inventory: &Inventory) -> impl Iterator<Item = Value> {
    let layers = inventory.layers.iter().enumerate();
    let packages = inventory.packages.iter().enumerate();
    iter::once(image(inventory))
        .chain(inventory.base.as_ref().map(of_base))
        .chain(inventory.system.as_ref().map(of_system))
        .chain(layers.map(|(number, layer)| of_layer(&layer_id(number), layer)))
        .chain(packages.map(|(number, package)| of_package(&package_id(number), package)))
}

fn relationships(inventory: &Inventory) -> impl Iterator<Item = Value> {
    let base = inventory.base.iter();
    let system = inventory.system.iter();
    let layers = inventory.layers.iter().enumerate();
    let layers = layers.flat_map(|(layer, own)| {
        let files = (0..own.contents.files.len()).map(move |file| {
            let place = FileId { layer, file };
            relationship(&layer_id(layer), "CONTAINS", &id_of(place))
        });
        iter::once(relationship(IMAGE, "CONTAINS", &layer_id(layer))).chain(files)
    });
    let packages = inventory.packages.iter().enumerate();
    let packages = packages.flat_map(|(number, package)| {
        let files = package.files.iter().map(move |place| {
            let mut evident = relationship(&package_id(number), "OTHER", &id_of(*place));
            // Same text as syft's, which its readers expect.
            evident["comment"] =
                "evident-by: indicates the package's existence is evident by the given file".into();
            evident
        });
        iter::once(relationship(IMAGE, "CONTAINS", &package_id(number))).chain(files)
    });
    iter::once(relationship(DOCUMENT, "DESCRIBES", IMAGE))
        .chain(base.map(|_| relationship(IMAGE, "DESCENDANT_OF", BASE)))
        .chain(system.map(|_| relationship(IMAGE, "CONTAINS", SYSTEM)))
        .chain(layers)
        .chain(packages)
}

fn layer_id(number: usize) -> String {
    format!("SPDXRef-Layer-{}", number + 1)
}

fn package_id(number: usize) -> String {
    format!("SPDXRef-Package-{}", number + 1)
}

fn namespace(inventory: &Inventory, name: &str, tool: Tool) -> String {
    let Tool { version, home, .. } = tool;
    let own = format!("{home}/spdx/{}@{}", inventory.name, inventory.digest);
    let uuid = uuid_of(&format!("{own}?by={version}"));
    format!("{home}/spdx/{name}-{uuid}")
}

fn image(inventory: &Inventory) -> Value {
    let (name, digest) = (&inventory.name, inventory.digest.to_string());
    let own = json!({
        "versionInfo": digest,
        "checksums": checksum_of(&digest),
        "externalRefs": references(Some(&purl::of_image(name, &digest)), None),
    });
    package(IMAGE, name, "CONTAINER", own)
}

fn of_base(base: &InventoryBase) -> Value {
    let (name, digest) = (&base.name, base.digest.to_string());
    let own = json!({
        "versionInfo": base.tag.as_ref().unwrap_or(&digest),
        "checksums": checksum_of(&digest),
        "externalRefs": references(Some(&purl::of_image(name, &digest)), None),
    });
    package(BASE, name, "CONTAINER", own)
}

fn of_system(system: &OperatingSystem) -> Value {
    let own = json!({
        "versionInfo": system.version,
        "supplier": "Organization: Microsoft Corporation",
        "comment": system.kb.map(|kb| format!("Contains update {kb}")),
        "externalRefs": references(None, system.cpe.as_deref()),
    });
    package(SYSTEM, &system.name, "OPERATING-SYSTEM", own)
}

fn checksum(algorithm: &str, hex: &str) -> Value {
    json!({ "algorithm": algorithm, "checksumValue": hex })
}

/// A digest as a checksum of the format; images use no other algorithm in practice.
fn checksum_of(digest: &str) -> Option<[Value; 1]> {
    let hex = digest.strip_prefix("sha256:")?;
    Some([checksum("SHA256", hex)])
}

fn of_layer(id: &str, layer: &InventoryLayer) -> Value {
    let files = &layer.contents.files;
    let own = json!({
        "versionInfo": layer.digest,
        "checksums": checksum_of(layer.digest.as_ref()),
        "filesAnalyzed": !files.is_empty(),
        "packageVerificationCode": (!files.is_empty()).then(|| verification_code(files)),
        "comment": "A layer of the image. Files/ is drive C:, Hives/ are changes to the registry.",
    });
    package(id, "layer", "ARCHIVE", own)
}

/// Verification code by the format's rule: the digest of all files' digests, sorted, as text.
fn verification_code(files: &[LayerFileEntry]) -> Value {
    let mut digests: Vec<[u8; 20]> = files.iter().map(|file| file.digests.sha1).collect();
    digests.sort_unstable();
    let mut hash = Sha1::new();
    for digest in digests {
        hash.update(hex::encode(digest));
    }
    json!({ "packageVerificationCodeValue": hex::encode(hash.finalize()) })
}

fn id_of(place: FileId) -> String {
    format!("SPDXRef-File-{}-{}", place.layer + 1, place.file + 1)
}

fn described(place: FileId, file: &LayerFileEntry) -> Value {
    json!({
        "fileName": format!("./{}", file.path),
        "SPDXID": id_of(place),
        "checksums": [
            checksum("SHA1", &hex::encode(file.digests.sha1)),
            checksum("SHA256", &hex::encode(file.digests.sha256)),
        ],
        "licenseConcluded": NO_ASSERTION,
        "copyrightText": NO_ASSERTION,
    })
}

fn of_package(id: &str, known: &InventoryPackage) -> Value {
    let found = &known.found;
    let declared = found.licence.as_deref();
    let declared = declared.filter(|licence| LICENCES.contains(licence));
    let supplier = found.supplier.as_ref();
    let own = json!({
        "versionInfo": found.version,
        "supplier": supplier.map_or_else(
            || NO_ASSERTION.to_owned(),
            |supplier| format!("Organization: {supplier}"),
        ),
        "licenseDeclared": declared.unwrap_or(NO_ASSERTION),
        "externalRefs": references(Some(&known.purl), found.cpe.as_deref()),
    });
    package(id, &found.name, "LIBRARY", own)
}
