//! Images of a check: from files, from this machine, or from registries.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use anyhow::anyhow;
use serde::Deserialize;
use serde_json::Value;
use wincimg_cluster::rollout::{
    Details, Image, ImageContent, ImageRequest, Rollout, TagsByRepository, Variant, fetch,
    fetch_tags, is_host_process,
};
use wincimg_cluster::scheduling::System;
use wincimg_cluster::workloads::Workload;

use crate::cli::command_context::Session;
use crate::cli::error::Failure;
use crate::cli::input::read_text;
use crate::cli::registry_args::RegistryArgs;
use crate::cli::{progress, registry_args};

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
pub(super) struct ImagesFromFiles(BTreeMap<String, Vec<Variant>>);

#[derive(Deserialize, Default)]
#[serde(default)]
struct File {
    /// Reference of all the images, in the output of `inspect`.
    reference: Option<String>,
    images: Vec<ImageEntry>,
    index: Option<IndexEntry>,
}

#[derive(Deserialize)]
struct ImageEntry {
    reference: Option<String>,
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
                Failure::usage(anyhow!("{}: {problem}", path.display())).hint(
                    "--images takes the output of wincimg build or wincimg image inspect with --format json, \
                     or the list under its \"images\"",
                )
            })?;
            given.add(images);
        }
        Ok(given)
    }

    fn add(&mut self, file: File) {
        let index = file.index.and_then(|index| index.reference);
        let names = [index, file.reference];
        for entry in file.images {
            let bottom = entry.layers.first().and_then(|layer| layer.size);
            let variant = Variant {
                host_process: is_host_process(&entry.os, entry.os_version.as_deref(), bottom),
                version: entry
                    .os_version
                    .as_deref()
                    .and_then(|text| text.parse().ok()),
                os: entry.os,
                architecture: entry.architecture,
                os_version: entry.os_version,
                digest: None,
                size: entry.size,
                stop_seconds: entry
                    .shutdown
                    .filter(|shutdown| shutdown.complete)
                    .map(|shutdown| shutdown.seconds),
            };
            for reference in names.iter().chain([&entry.reference]).flatten() {
                let variants = self.0.entry(reference.clone()).or_default();
                variants.push(variant.clone());
            }
        }
    }

    fn get(&self, reference: &str) -> Option<Image> {
        let content = match &self.0.get(reference)?[..] {
            [single] => ImageContent::Single(single.clone()),
            several => ImageContent::Index(several.to_vec()),
        };
        Some(Image {
            reference: Some(reference.to_owned()),
            content,
        })
    }
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
        .filter(|image| given.get(&image.reference).is_none() && (!offline || is_here(image)))
        .cloned()
        .collect();
    let mut fetched: BTreeMap<String, Image> = BTreeMap::new();
    if !to_fetch.is_empty() {
        let registry = connection.connect(progress::display(session))?;
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
                .or_else(|| fetched.get(&reference).cloned());
            known.unwrap_or(Image {
                reference: Some(reference),
                content: ImageContent::Unasked,
            })
        })
        .collect())
}

/// Reads the further facts that the warnings about workloads require.
pub(super) fn add_details(
    details: &Details,
    images: &mut [Image],
    connection: &RegistryArgs,
    session: &Session,
) -> Result<(), Failure> {
    let progress = progress::display(session);
    let registry = connection.connect(progress.clone())?;
    let failed =
        registry_args::run(async { Ok(details.fetch(images, &registry, &progress).await) })?;
    for reference in failed {
        session.warn(format_args!(
            "cannot read the size and stop timeouts of {reference}: they are not checked"
        ));
    }
    Ok(())
}

/// Tags of images from other publishers that do not start everywhere.
pub(super) fn tags(
    rollout: &Rollout,
    connection: &RegistryArgs,
    session: &Session,
) -> Result<TagsByRepository, Failure> {
    if !rollout.has_failing_third_party_images() {
        return Ok(TagsByRepository::default());
    }
    let registry = connection.connect(progress::display(session))?;
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
