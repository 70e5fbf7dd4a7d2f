//! `CycloneDX` 1.6, as JSON.

#![expect(
    clippy::struct_field_names,
    reason = "the fields have the names of the format"
)]

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};
use wincimg_common::json::LazyList;

use super::document::{Tool, present, uuid_of};
use super::inventory::{FileId, Inventory, InventoryBase, InventoryPackage};
use super::layer::LayerFileEntry;
use super::packages::Ecosystem;
use super::purl;
use super::system::OperatingSystem;

const IMAGE: &str = "image";
const SYFT_TYPE: &str = "syft:package:type";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bom<C, D> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    bom_format: &'static str,
    spec_version: &'static str,
    serial_number: String,
    version: u32,
    metadata: Value,
    components: C,
    dependencies: [Dependency<D>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dependency<D> {
    r#ref: &'static str,
    depends_on: D,
}

pub(super) fn write(
    inventory: &Inventory,
    tool: Tool,
    out: impl Write,
) -> Result<(), serde_json::Error> {
    let of_windows = || {
        let system = inventory.system.as_ref();
        let update = system.and_then(of_update);
        system.map(of_system).into_iter().chain(update)
    };
    let packages = || inventory.packages.iter();
    let components = LazyList(|| {
        let packages = packages().map(move |package| of_package(inventory, package));
        let files = inventory.files();
        let files = files.map(move |(place, file)| of_file(inventory, place, file));
        of_windows().chain(packages).chain(files)
    });
    let depends_on = LazyList(|| {
        let of_windows = of_windows().map(|it| it["bom-ref"].clone());
        of_windows.chain(packages().map(|package| Value::from(package.purl.as_str())))
    });
    let Tool {
        name,
        version,
        home,
    } = tool;
    let own = format!(
        "{home}/cyclonedx/{}@{}?by={version}",
        inventory.name, inventory.digest
    );
    let bom = Bom {
        schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
        bom_format: "CycloneDX",
        spec_version: "1.6",
        serial_number: format!("urn:uuid:{}", uuid_of(&own)),
        version: 1,
        metadata: json!({
            "timestamp": inventory.created.to_string(),
            "tools": {
                "components": [{ "type": "application", "name": name, "version": version }],
            },
            "component": of_image(inventory),
        }),
        components,
        dependencies: [Dependency {
            r#ref: IMAGE,
            depends_on,
        }],
    };
    serde_json::to_writer(out, &bom)
}

fn property(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

fn of_image(inventory: &Inventory) -> Value {
    let (name, digest) = (&inventory.name, inventory.digest.to_string());
    let base = inventory.base.as_ref();
    present(json!({
        "type": "container",
        "bom-ref": IMAGE,
        "name": name,
        "version": digest,
        "purl": purl::of_image(name, &digest),
        "pedigree": base.map(|base| json!({ "ancestors": [of_base(base)] })),
    }))
}

fn of_base(base: &InventoryBase) -> Value {
    let (name, digest) = (&base.name, base.digest.to_string());
    let tag = base.tag.as_ref();
    present(json!({
        "type": "container",
        "name": name,
        "version": digest,
        "description": tag.map(|tag| format!("Found under tag {tag}")),
        "purl": purl::of_image(name, &digest),
    }))
}

/// Grype reads the distribution from the properties, under syft's names.
fn of_system(system: &OperatingSystem) -> Value {
    let (name, kb) = (system.name.as_str(), system.kb.map(|kb| kb.to_string()));
    let properties = [
        ("syft:distro:id", Some("windows")),
        ("syft:distro:versionID", system.product),
        ("syft:distro:prettyName", Some(name)),
        ("wincimg:kb", kb.as_deref()),
    ];
    let properties = properties.into_iter();
    let properties = properties.filter_map(|(name, value)| Some(property(name, value?)));
    present(json!({
        "type": "operating-system",
        "bom-ref": "operating-system",
        "supplier": { "name": "Microsoft Corporation" },
        "name": "windows",
        "version": system.version,
        "description": match &kb {
            Some(kb) => format!("{name} with update {kb}"),
            None => name.to_owned(),
        },
        "cpe": system.cpe,
        "properties": properties.collect::<Vec<_>>(),
    }))
}

/// The update in grype's form: a package with the product's number as its name and the article's as
/// its version.
fn of_update(system: &OperatingSystem) -> Option<Value> {
    let (kb, product, name) = (system.kb?, system.product?, &system.name);
    Some(json!({
        "type": "application",
        "bom-ref": "update",
        "name": product,
        "version": kb.number().to_string(),
        "description": format!("{kb} for {name}, by its number among Microsoft's products"),
        "properties": [property(SYFT_TYPE, "msrc-kb")],
    }))
}

fn of_package(inventory: &Inventory, package: &InventoryPackage) -> Value {
    let found = &package.found;
    let (supplier, licence) = (found.supplier.as_ref(), found.licence.as_ref());
    let occurrences = package.files.iter();
    let occurrences = occurrences.map(|place| json!({ "location": inventory.path(*place) }));
    let is_of_dotnet = found.ecosystem == Ecosystem::NuGet;
    present(json!({
        "type": match found.ecosystem {
            Ecosystem::Program => "application",
            _ => "library",
        },
        "bom-ref": package.purl,
        "supplier": supplier.map(|name| json!({ "name": name })),
        "name": found.name,
        "version": found.version,
        "licenses": licence.map(|name| json!([{ "license": { "name": name } }])),
        "cpe": found.cpe,
        "purl": package.purl,
        "evidence": { "occurrences": occurrences.collect::<Vec<_>>() },
        // Syft has a type of its own for .NET's packages and does not derive it from `pkg:nuget`, as
        // of version 1.18; grype looks up packages by that type.
        "properties": is_of_dotnet.then(|| [property(SYFT_TYPE, "dotnet")]),
    }))
}

fn of_file(inventory: &Inventory, place: FileId, file: &LayerFileEntry) -> Value {
    let layer: &str = inventory.layers[place.layer].digest.as_ref();
    json!({
        "type": "file",
        "bom-ref": format!("file-{}-{}", place.layer + 1, place.file + 1),
        "name": file.path,
        "hashes": [
            { "alg": "SHA-1", "content": hex::encode(file.digests.sha1) },
            { "alg": "SHA-256", "content": hex::encode(file.digests.sha256) },
        ],
        "properties": [property("wincimg:layer", layer)],
    })
}
