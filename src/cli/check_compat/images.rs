//! Images of a check: from files, from this machine, or from registries.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use wincimg_cluster::rollout::{
    Details, EntryContent, Image, ImageContent, ImageRequest, Rollout, TagsByRepository, Variant,
    fetch, fetch_tags, is_host_process,
};
use wincimg_cluster::scheduling::System;
use wincimg_cluster::workloads::Workload;

use crate::cli::input::read_text;
use crate::cli::{Failure, RegistryArgs, Session, progress, registry_args};

/// The images to read, each once: the named ones, then those of workloads, except workloads for
/// other systems.
pub(super) fn images_to_check(named: &[String], workloads: &[Workload]) -> Vec<ImageRequest> {
    let mut known: HashSet<&str> = named.iter().map(String::as_str).collect();
    let of_workloads = workloads
        .iter()
        .filter(|workload| workload.template.system() != System::Other)
        .flat_map(|workload| &workload.template.containers)
        .map(|container| container.image.as_str())
        .filter(|image| known.insert(image));
    let of_workloads: Vec<&str> = of_workloads.collect();
    let named = named.iter().map(|reference| (reference.as_str(), true));
    named
        .chain(of_workloads.into_iter().map(|reference| (reference, false)))
        .map(|(reference, is_local)| ImageRequest {
            reference: reference.to_owned(),
            is_local,
        })
        .collect()
}

/// Images described in files.
#[derive(Debug, Default)]
pub(super) struct ImagesFromFiles(BTreeMap<String, ImageContent>);

#[derive(Deserialize, Default)]
#[serde(default)]
struct File {
    /// Reference of all the images, in the output of `inspect`.
    reference: Option<String>,
    images: Vec<ImageEntry>,
    index: Option<IndexEntry>,
    /// The entries of the index, in the output of `inspect`.
    entries: Option<Vec<StatedEntry>>,
    others: Vec<OtherEntry>,
}

#[derive(Deserialize)]
struct StatedEntry {
    digest: String,
    platform: Option<StatedPlatform>,
}

#[derive(Deserialize)]
struct StatedPlatform {
    os: String,
    os_version: Option<String>,
    architecture: String,
}

#[derive(Deserialize)]
struct OtherEntry {
    digest: String,
    kind: Option<String>,
    problem: Option<String>,
}

#[derive(Deserialize)]
struct ImageEntry {
    reference: Option<String>,
    digest: Option<String>,
    #[serde(default = "windows")]
    os: String,
    #[serde(default = "amd64")]
    architecture: String,
    os_version: Option<String>,
    size: Option<u64>,
    #[serde(default)]
    layers: Vec<Layer>,
    shutdown: Option<Shutdown>,
}

#[derive(Deserialize)]
struct Layer {
    size: Option<u64>,
}

#[derive(Deserialize)]
struct Shutdown {
    seconds: u64,
    complete: bool,
}

#[derive(Deserialize)]
struct IndexEntry {
    reference: Option<String>,
}

/// Parses a result, or only its list of images.
fn read_images(text: &str) -> Result<File, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let file = match value {
        Value::Array(_) => serde_path_to_error::deserialize(value).map(|images| File {
            images,
            ..File::default()
        }),
        Value::Object(ref keys) => match keys.get("images") {
            Some(Value::Array(_)) => serde_path_to_error::deserialize(value),
            Some(_) => return Err("expected a list of images under \"images\"".to_owned()),
            None => return Err("missing list \"images\"".to_owned()),
        },
        _ => {
            return Err(
                "expected a list of images, or an object with one under \"images\"".to_owned(),
            );
        }
    };
    file.map_err(|error| error.to_string())
}

fn windows() -> String {
    "windows".to_owned()
}

fn amd64() -> String {
    "amd64".to_owned()
}

impl ImagesFromFiles {
    pub(super) fn read(files: &[PathBuf]) -> Result<Self, Failure> {
        let mut given = Self::default();
        for path in files {
            let images = read_images(&read_text(path)?).map_err(|problem| {
                Failure::usage(format!("{}: {problem}", path.display())).hint(
                    "--images takes the output of wincimg build or wincimg image inspect with --format json, \
                     or the list under its \"images\"",
                )
            })?;
            given.add(images);
        }
        Ok(given)
    }

    fn add(&mut self, file: File) {
        let images: Vec<(ImageEntry, Variant)> = file
            .images
            .into_iter()
            .map(|entry| {
                let variant = entry.variant();
                (entry, variant)
            })
            .collect();
        for (entry, variant) in &images {
            let Some(reference) = &entry.reference else {
                continue;
            };
            let content = match self.get(reference) {
                None => ImageContent::Single(variant.clone()),
                Some(known) => {
                    ImageContent::Index([known.variants(), std::slice::from_ref(variant)].concat())
                }
            };
            self.0.insert(reference.clone(), content);
        }
        let variants = || images.iter().map(|(_, variant)| variant.clone()).collect();
        if let Some(reference) = file.index.and_then(|index| index.reference) {
            self.0.insert(reference, ImageContent::Index(variants()));
        }
        let Some(reference) = file.reference else {
            return;
        };
        let content = match (file.entries, &images[..]) {
            (Some(entries), _) => ImageContent::Index(of_index(entries, &images, &file.others)),
            (None, [(_, single)]) => ImageContent::Single(single.clone()),
            (None, _) => ImageContent::Index(variants()),
        };
        self.0.insert(reference, content);
    }

    fn get(&self, reference: &str) -> Option<Image> {
        Some(Image {
            reference: Some(reference.to_owned()),
            content: self.0.get(reference)?.clone(),
        })
    }
}

impl ImageEntry {
    /// The image by its configuration.
    fn variant(&self) -> Variant {
        let bottom = self.layers.first().and_then(|layer| layer.size);
        let os_version = self.os_version.as_deref();
        let shutdown = self.shutdown.as_ref();
        Variant {
            host_process: is_host_process(&self.os, os_version, bottom),
            version: os_version.and_then(|text| text.parse().ok()),
            os: self.os.clone(),
            architecture: self.architecture.clone(),
            os_version: self.os_version.clone(),
            size: self.size,
            stop_seconds: shutdown
                .filter(|shutdown| shutdown.complete)
                .map(|shutdown| shutdown.seconds),
            ..Variant::default()
        }
    }
}

/// The entries of an index as a runtime reads them, with what their images say.
fn of_index(
    entries: Vec<StatedEntry>,
    images: &[(ImageEntry, Variant)],
    others: &[OtherEntry],
) -> Vec<Variant> {
    let own = images
        .iter()
        .filter_map(|(entry, variant)| Some((entry.digest.as_deref()?, variant)));
    let own: HashMap<&str, &Variant> = own.collect();
    let others: HashMap<&str, &OtherEntry> = others
        .iter()
        .map(|other| (other.digest.as_str(), other))
        .collect();
    let variants = entries.into_iter().filter_map(|entry| {
        let own = own.get(entry.digest.as_str()).copied().cloned();
        let other = others.get(entry.digest.as_str());
        let kind = other.and_then(|other| other.kind.as_deref());
        let Some(platform) = entry.platform else {
            return own;
        };
        if platform.os == "unknown" || matches!(kind, Some("attestation" | "artifact")) {
            return None;
        }
        let os_version = platform.os_version.as_deref();
        let stated = Variant {
            version: os_version.and_then(|text| text.parse().ok()),
            os: platform.os,
            architecture: platform.architecture,
            os_version: platform.os_version,
            ..Variant::default()
        };
        let problem = other.and_then(|other| other.problem.clone());
        Some(match (own, problem) {
            (Some(own), _) => stated.with_image(own),
            (None, Some(problem)) => Variant {
                content: EntryContent::Unreadable(problem),
                ..stated
            },
            (None, None) => stated,
        })
    });
    variants.collect()
}

/// Reads the facts about each image, in order.
pub(super) fn resolve_images(
    wanted: Vec<ImageRequest>,
    given: &ImagesFromFiles,
    offline: bool,
    connection: &RegistryArgs,
    session: &Session,
) -> Result<Vec<Image>, Failure> {
    let is_here = |image: &ImageRequest| {
        image.is_local
            && (image.reference.starts_with("oci:")
                || image.reference.starts_with("docker-archive:"))
    };
    let to_fetch: Vec<ImageRequest> = wanted
        .iter()
        .filter(|image| {
            given.get(&image.reference).is_none()
                && Image::with_placeholder(&image.reference).is_none()
                && (!offline || is_here(image))
        })
        .cloned()
        .collect();
    let mut fetched: BTreeMap<String, Image> = BTreeMap::new();
    if !to_fetch.is_empty() {
        let registry = connection.connect(session)?;
        session.cache.enable_document_cache(&registry);
        let images = registry_args::run(async { Ok(fetch(&to_fetch, &registry).await) })?;
        let names = to_fetch.into_iter().map(|image| image.reference);
        fetched.extend(names.zip(images));
    }
    Ok(wanted
        .into_iter()
        .map(|ImageRequest { reference, .. }| {
            let known = given
                .get(&reference)
                .or_else(|| Image::with_placeholder(&reference))
                .or_else(|| fetched.get(&reference).cloned());
            known.unwrap_or_else(|| Image::unasked(reference))
        })
        .collect())
}

/// Reads what is behind the entries that nodes would select, and what warnings require.
pub(super) fn add_details(
    details: &Details,
    images: &mut [Image],
    connection: &RegistryArgs,
    session: &Session,
) -> Result<(), Failure> {
    let progress = progress::display(session);
    let registry = connection.connect_with(progress.clone())?;
    session.cache.enable_document_cache(&registry);
    registry_args::run(async {
        details.fetch(images, &registry, &progress).await;
        Ok(())
    })
}

/// Tags of images that do not start everywhere.
pub(super) fn tags(
    rollout: &Rollout,
    connection: &RegistryArgs,
    session: &Session,
) -> Result<TagsByRepository, Failure> {
    if !rollout.has_failing_images() {
        return Ok(TagsByRepository::default());
    }
    let registry = connection.connect(session)?;
    registry_args::run(async { Ok(fetch_tags(rollout, &registry).await) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_a_list_or_an_object_with_one() {
        let image = r#"{"reference": "repo.example/web:1", "os_version": "10.0.20348.1"}"#;
        for text in [format!("[{image}]"), format!("{{\"images\": [{image}]}}")] {
            assert_eq!(read_images(&text).unwrap().images.len(), 1, "{text}");
        }
        for (text, named) in [
            (r#"{"images": {"web": 1}}"#, "list of images"),
            (r#"{"reference": "web"}"#, "list \"images\""),
            ("7", "list of images"),
            (r#"[{"os_version": 5}]"#, "[0].os_version"),
            (r#"{"images": [{"os": true}]}"#, "images[0].os"),
        ] {
            let problem = read_images(text).err().unwrap();
            assert!(problem.contains(named), "{text}: {problem}");
        }
    }
}
