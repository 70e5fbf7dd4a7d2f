//! SPDX 2.3, as JSON.
//!
//! The image is a package; so are its base, its Windows, each of its own layers with all files, and
//! each package found in a file.

#![expect(
    clippy::struct_field_names,
    reason = "the fields have the names of the format"
)]

use std::io::Write;
use std::iter;

use serde::Serialize;
use sha1::{Digest as _, Sha1};
use wincimg_common::json::LazyList;

use super::document::{Tool, uuid_of};
use super::inventory::{
    FileId, Inventory, InventoryBase, InventoryLayer, InventoryPackage as Known,
};
use super::layer::LayerFileEntry as LayerFile;
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
    creation_info: CreationInfo,
    packages: P,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<F>,
    relationships: R,
}

#[derive(Serialize)]
struct CreationInfo {
    created: String,
    creators: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Package<'a> {
    name: &'a str,
    #[serde(rename = "SPDXID")]
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_info: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supplier: Option<String>,
    download_location: &'static str,
    files_analyzed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    package_verification_code: Option<VerificationCode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checksums: Vec<Checksum>,
    license_concluded: &'static str,
    license_declared: &'a str,
    copyright_text: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    external_refs: Vec<ExternalRef>,
    primary_package_purpose: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VerificationCode {
    package_verification_code_value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checksum {
    algorithm: &'static str,
    checksum_value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExternalRef {
    reference_category: &'static str,
    reference_type: &'static str,
    reference_locator: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    file_name: FileName<'a>,
    #[serde(rename = "SPDXID")]
    id: String,
    checksums: [Checksum; 2],
    license_concluded: &'static str,
    copyright_text: &'static str,
}

/// A path from the layer's root, with the prefix that the format requires.
struct FileName<'a>(&'a str);

impl Serialize for FileName<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("./{}", self.0))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Relationship {
    spdx_element_id: String,
    relationship_type: &'static str,
    related_spdx_element: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'static str>,
}

impl Relationship {
    fn new(from: impl Into<String>, kind: &'static str, to: impl Into<String>) -> Self {
        Self {
            spdx_element_id: from.into(),
            relationship_type: kind,
            related_spdx_element: to.into(),
            comment: None,
        }
    }
}

impl<'a> Package<'a> {
    fn new(id: impl Into<String>, name: &'a str, purpose: &'static str) -> Self {
        Self {
            name,
            id: id.into(),
            version_info: None,
            supplier: None,
            download_location: NO_ASSERTION,
            files_analyzed: false,
            package_verification_code: None,
            checksums: Vec::new(),
            license_concluded: NO_ASSERTION,
            license_declared: NO_ASSERTION,
            copyright_text: NO_ASSERTION,
            comment: None,
            external_refs: Vec::new(),
            primary_package_purpose: purpose,
        }
    }

    fn with_purl(mut self, purl: String) -> Self {
        self.external_refs.push(ExternalRef {
            reference_category: "PACKAGE-MANAGER",
            reference_type: "purl",
            reference_locator: purl,
        });
        self
    }

    fn with_cpe(mut self, cpe: Option<String>) -> Self {
        self.external_refs.extend(cpe.map(|cpe| ExternalRef {
            reference_category: "SECURITY",
            reference_type: "cpe23Type",
            reference_locator: cpe,
        }));
        self
    }
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
        creation_info: CreationInfo {
            created: inventory.created.to_string(),
            creators: vec![format!("Tool: {}-{}", tool.name, tool.version)],
        },
        packages: LazyList(|| packages(inventory)),
        files: has_files.then_some(LazyList(|| {
            let files = inventory.files();
            files.map(|(place, known)| described(place, known))
        })),
        relationships: LazyList(|| relationships(inventory)),
    };
    serde_json::to_writer(out, &document)
}

fn packages(inventory: &Inventory) -> impl Iterator<Item = Package<'_>> {
    let layers = inventory.layers.iter().enumerate();
    let packages = inventory.packages.iter().enumerate();
    iter::once(image(inventory))
        .chain(inventory.base.as_ref().map(of_base))
        .chain(inventory.system.as_ref().map(of_system))
        .chain(layers.map(|(number, layer)| of_layer(layer_id(number), layer)))
        .chain(packages.map(|(number, package)| of_package(package_id(number), package)))
}

fn relationships(inventory: &Inventory) -> impl Iterator<Item = Relationship> {
    let base = inventory.base.iter();
    let system = inventory.system.iter();
    let layers = inventory.layers.iter().enumerate();
    let layers = layers.flat_map(|(layer, own)| {
        let files = (0..own.contents.files.len()).map(move |file| {
            let place = FileId { layer, file };
            Relationship::new(layer_id(layer), "CONTAINS", id_of(place))
        });
        iter::once(Relationship::new(IMAGE, "CONTAINS", layer_id(layer))).chain(files)
    });
    let packages = inventory.packages.iter().enumerate();
    let packages = packages.flat_map(|(number, package)| {
        let files = package.files.iter().map(move |place| Relationship {
            // Same text as syft's, which its readers expect.
            comment: Some(
                "evident-by: indicates the package's existence is evident by the given file",
            ),
            ..Relationship::new(package_id(number), "OTHER", id_of(*place))
        });
        iter::once(Relationship::new(IMAGE, "CONTAINS", package_id(number))).chain(files)
    });
    iter::once(Relationship::new(DOCUMENT, "DESCRIBES", IMAGE))
        .chain(base.map(|_| Relationship::new(IMAGE, "DESCENDANT_OF", BASE)))
        .chain(system.map(|_| Relationship::new(IMAGE, "CONTAINS", SYSTEM)))
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

fn image(inventory: &Inventory) -> Package<'_> {
    let digest = inventory.digest.to_string();
    let package = Package::new(IMAGE, &inventory.name, "CONTAINER");
    Package {
        version_info: Some(digest.clone()),
        checksums: checksum_of(&digest),
        ..package.with_purl(purl::of_image(&inventory.name, &digest))
    }
}

fn of_base(base: &InventoryBase) -> Package<'_> {
    let digest = base.digest.to_string();
    let package = Package::new(BASE, &base.name, "CONTAINER");
    Package {
        version_info: Some(base.tag.clone().unwrap_or_else(|| digest.clone())),
        checksums: checksum_of(&digest),
        ..package.with_purl(purl::of_image(&base.name, &digest))
    }
}

fn of_system(system: &OperatingSystem) -> Package<'_> {
    let package = Package::new(SYSTEM, &system.name, "OPERATING-SYSTEM");
    Package {
        version_info: Some(system.version.clone()),
        supplier: Some("Organization: Microsoft Corporation".to_owned()),
        comment: system.kb.map(|kb| format!("Contains update {kb}")),
        ..package.with_cpe(system.cpe.clone())
    }
}

/// A digest as a checksum of the format; images use no other algorithm in practice.
fn checksum_of(digest: &str) -> Vec<Checksum> {
    let hex = digest.strip_prefix("sha256:");
    hex.into_iter()
        .map(|hex| Checksum {
            algorithm: "SHA256",
            checksum_value: hex.to_owned(),
        })
        .collect()
}

fn of_layer(id: String, layer: &InventoryLayer) -> Package<'_> {
    let has_files = !layer.contents.files.is_empty();
    Package {
        version_info: Some(layer.digest.to_string()),
        checksums: checksum_of(layer.digest.as_ref()),
        files_analyzed: has_files,
        package_verification_code: has_files.then(|| verification_code(&layer.contents.files)),
        comment: Some(
            "A layer of the image. Files/ is drive C:, Hives/ are changes to the registry."
                .to_owned(),
        ),
        ..Package::new(id, "layer", "ARCHIVE")
    }
}

/// Verification code by the format's rule: the digest of all files' digests, sorted, as text.
fn verification_code(files: &[LayerFile]) -> VerificationCode {
    let mut digests: Vec<[u8; 20]> = files.iter().map(|file| file.digests.sha1).collect();
    digests.sort_unstable();
    let mut hash = Sha1::new();
    for digest in digests {
        hash.update(hex::encode(digest));
    }
    VerificationCode {
        package_verification_code_value: hex::encode(hash.finalize()),
    }
}

fn id_of(place: FileId) -> String {
    format!("SPDXRef-File-{}-{}", place.layer + 1, place.file + 1)
}

fn described(place: FileId, file: &LayerFile) -> File<'_> {
    File {
        file_name: FileName(&file.path),
        id: id_of(place),
        checksums: [
            Checksum {
                algorithm: "SHA1",
                checksum_value: hex::encode(file.digests.sha1),
            },
            Checksum {
                algorithm: "SHA256",
                checksum_value: hex::encode(file.digests.sha256),
            },
        ],
        license_concluded: NO_ASSERTION,
        copyright_text: NO_ASSERTION,
    }
}

fn of_package(id: String, package: &Known) -> Package<'_> {
    let found = &package.found;
    let declared = found.licence.as_deref();
    let declared = declared.filter(|licence| LICENCES.contains(licence));
    let described = Package::new(id, &found.name, "LIBRARY");
    Package {
        version_info: found.version.clone(),
        supplier: Some(found.supplier.as_ref().map_or_else(
            || NO_ASSERTION.to_owned(),
            |supplier| format!("Organization: {supplier}"),
        )),
        license_declared: declared.unwrap_or(NO_ASSERTION),
        ..described
            .with_purl(package.purl.clone())
            .with_cpe(found.cpe.clone())
    }
}
