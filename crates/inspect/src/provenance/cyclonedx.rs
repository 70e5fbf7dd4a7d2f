//! `CycloneDX` 1.6, as JSON.

#![expect(
    clippy::struct_field_names,
    reason = "the fields have the names of the format"
)]

use std::io::Write;

use serde::Serialize;
use wincimg_common::json::LazyList;

use super::document::{Tool, uuid_of};
use super::inventory::{FileId, Inventory, InventoryBase, InventoryPackage};
use super::layer::LayerFileEntry;
use super::packages::Ecosystem;
use super::purl;
use super::system::OperatingSystem;

const IMAGE: &str = "image";
const SYSTEM: &str = "operating-system";
const UPDATE: &str = "update";
const SYFT_TYPE: &str = "syft:package:type";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bom<'a, C, D> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    bom_format: &'static str,
    spec_version: &'static str,
    serial_number: String,
    version: u32,
    metadata: Metadata<'a>,
    components: C,
    dependencies: [Dependency<D>; 1],
}

#[derive(Serialize)]
struct Metadata<'a> {
    timestamp: String,
    tools: Tools<'a>,
    component: Component<'a>,
}

#[derive(Serialize)]
struct Tools<'a> {
    components: [Component<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dependency<D> {
    r#ref: &'static str,
    depends_on: D,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "kebab-case")]
struct Component<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bom_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supplier: Option<Supplier<'a>>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hashes: Vec<Hash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    licenses: Option<[LicenceChoice<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpe: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purl: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pedigree: Option<Pedigree<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Evidence<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    properties: Vec<Property<'a>>,
}

#[derive(Serialize)]
struct Supplier<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Hash {
    alg: &'static str,
    content: String,
}

#[derive(Serialize)]
struct LicenceChoice<'a> {
    license: Licence<'a>,
}

#[derive(Serialize)]
struct Licence<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Pedigree<'a> {
    ancestors: [Box<Component<'a>>; 1],
}

#[derive(Serialize)]
struct Evidence<'a> {
    occurrences: Vec<Occurrence<'a>>,
}

#[derive(Serialize)]
struct Occurrence<'a> {
    location: &'a str,
}

#[derive(Serialize)]
struct Property<'a> {
    name: &'static str,
    value: &'a str,
}

pub(super) fn write(
    inventory: &Inventory,
    tool: Tool,
    out: impl Write,
) -> Result<(), serde_json::Error> {
    let digest = inventory.digest.to_string();
    let layers = inventory.layers.iter();
    let digests: Vec<String> = layers.map(|it| it.digest.to_string()).collect();
    let digests = digests.as_slice();
    let kb = inventory.system.as_ref().and_then(|system| system.kb);
    let kb = kb.map(|kb| (kb.to_string(), kb.number().to_string()));
    let of_windows = || {
        let (system, kb) = (inventory.system.as_ref(), kb.as_ref());
        let name = kb.map(|(name, _)| name.as_str());
        let update = system.zip(kb);
        let update = update.and_then(|(system, (name, number))| of_update(system, name, number));
        let system = system.map(|system| of_system(system, name));
        system.into_iter().chain(update)
    };
    let packages = || inventory.packages.iter();
    let components = LazyList(|| {
        let packages = packages().map(move |package| of_package(inventory, package));
        let files = inventory.files();
        let files = files.map(move |(place, file)| of_file(place, file, &digests[place.layer]));
        of_windows().chain(packages).chain(files)
    });
    let depends_on = LazyList(|| {
        let of_windows = of_windows().filter_map(|it| it.bom_ref);
        of_windows.chain(packages().map(|package| package.purl.clone()))
    });
    let Tool { version, home, .. } = tool;
    let own = format!("{home}/cyclonedx/{}@{digest}?by={version}", inventory.name);
    let bom = Bom {
        schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
        bom_format: "CycloneDX",
        spec_version: "1.6",
        serial_number: format!("urn:uuid:{}", uuid_of(&own)),
        version: 1,
        metadata: Metadata {
            timestamp: inventory.created.to_string(),
            tools: Tools {
                components: [Component {
                    r#type: "application",
                    name: tool.name,
                    version: Some(version),
                    ..Component::default()
                }],
            },
            component: of_image(inventory, &digest),
        },
        components,
        dependencies: [Dependency {
            r#ref: IMAGE,
            depends_on,
        }],
    };
    serde_json::to_writer(out, &bom)
}

fn of_image<'a>(inventory: &'a Inventory, digest: &'a str) -> Component<'a> {
    Component {
        r#type: "container",
        bom_ref: Some(IMAGE.to_owned()),
        name: &inventory.name,
        version: Some(digest),
        purl: Some(purl::of_image(&inventory.name, digest)),
        pedigree: inventory.base.as_ref().map(|base| Pedigree {
            ancestors: [Box::new(of_base(base))],
        }),
        ..Component::default()
    }
}

fn of_base(base: &InventoryBase) -> Component<'_> {
    Component {
        r#type: "container",
        name: &base.name,
        version: Some(base.digest.as_ref()),
        description: base
            .tag
            .as_ref()
            .map(|tag| format!("Found under tag {tag}")),
        purl: Some(purl::of_image(&base.name, base.digest.as_ref())),
        ..Component::default()
    }
}

/// Grype reads the distribution from the properties, under syft's names.
fn of_system<'a>(system: &'a OperatingSystem, kb: Option<&'a str>) -> Component<'a> {
    let mut properties = vec![Property {
        name: "syft:distro:id",
        value: "windows",
    }];
    let mut property = |name: &'static str, value: Option<&'a str>| {
        properties.extend(value.map(|value| Property { name, value }));
    };
    property("syft:distro:versionID", system.product);
    property("syft:distro:prettyName", Some(&system.name));
    property("wincimg:kb", kb);
    Component {
        r#type: "operating-system",
        bom_ref: Some(SYSTEM.to_owned()),
        supplier: Some(Supplier {
            name: "Microsoft Corporation",
        }),
        name: "windows",
        version: Some(&system.version),
        description: Some(match kb {
            Some(kb) => format!("{} with update {kb}", system.name),
            None => system.name.clone(),
        }),
        cpe: system.cpe.as_deref(),
        properties,
        ..Component::default()
    }
}

/// The update in grype's form: a package with the product's number as its name and the article's as
/// its version.
fn of_update<'a>(system: &'a OperatingSystem, kb: &str, number: &'a str) -> Option<Component<'a>> {
    Some(Component {
        r#type: "application",
        bom_ref: Some(UPDATE.to_owned()),
        name: system.product?,
        version: Some(number),
        description: Some(format!(
            "{kb} for {}, by its number among Microsoft's products",
            system.name
        )),
        properties: vec![Property {
            name: SYFT_TYPE,
            value: "msrc-kb",
        }],
        ..Component::default()
    })
}

fn of_package<'a>(inventory: &'a Inventory, package: &'a InventoryPackage) -> Component<'a> {
    let found = &package.found;
    let occurrences = package.files.iter().map(|place| Occurrence {
        location: inventory.path(*place),
    });
    Component {
        r#type: match found.ecosystem {
            Ecosystem::Program => "application",
            _ => "library",
        },
        bom_ref: Some(package.purl.clone()),
        supplier: found.supplier.as_deref().map(|name| Supplier { name }),
        name: &found.name,
        version: found.version.as_deref(),
        licenses: found.licence.as_deref().map(|name| {
            [LicenceChoice {
                license: Licence { name },
            }]
        }),
        cpe: found.cpe.as_deref(),
        purl: Some(package.purl.clone()),
        evidence: Some(Evidence {
            occurrences: occurrences.collect(),
        }),
        properties: kind_for_syft(found.ecosystem).into_iter().collect(),
        ..Component::default()
    }
}

/// Syft has a type of its own for .NET's packages and does not derive it from `pkg:nuget`, as of
/// version 1.18; grype looks up packages by that type.
fn kind_for_syft(ecosystem: Ecosystem) -> Option<Property<'static>> {
    (ecosystem == Ecosystem::NuGet).then_some(Property {
        name: SYFT_TYPE,
        value: "dotnet",
    })
}

fn of_file<'a>(place: FileId, file: &'a LayerFileEntry, layer: &'a str) -> Component<'a> {
    let hash = |alg, digest: &[u8]| Hash {
        alg,
        content: hex::encode(digest),
    };
    Component {
        r#type: "file",
        bom_ref: Some(format!("file-{}-{}", place.layer + 1, place.file + 1)),
        name: &file.path,
        hashes: vec![
            hash("SHA-1", &file.digests.sha1),
            hash("SHA-256", &file.digests.sha256),
        ],
        properties: vec![Property {
            name: "wincimg:layer",
            value: layer,
        }],
        ..Component::default()
    }
}
