//! Images of a check: from files, from this machine, or from registries.

use serde::Deserialize;
use wincimg_cluster::rollout::{
    Details, EntryContent, Image, ImageContent, ImageRequest, Rollout, TagsByRepository, Variant,
    fetch, fetch_tags, is_host_process,
};
use wincimg_cluster::scheduling::System;
use wincimg_cluster::workloads::Workload;
use wincimg_inspect::StatedPlatform;

use crate::cli::input::read_text;
use crate::cli::prelude::*;

/// The images to read, each once: the named ones, then those of workloads; of workloads for other
/// systems only those that are given or seem to be for Windows.
pub(super) fn images_to_check(
    named: &[String],
    workloads: &[Workload],
    given: &ImagesFromFiles,
) -> Vec<ImageRequest> {
    let mut known: HashSet<&str> = named.iter().map(String::as_str).collect();
    let of_workloads = workloads
        .iter()
        .flat_map(|workload| {
            let is_other = workload.template.system() == System::Other;
            let containers = workload.template.containers.iter();
            let images = containers.map(|container| container.image.as_str());
            images.filter(move |image| {
                !is_other || seems_for_windows(image) || given.get(image).is_some()
            })
        })
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

/// Returns true if an image has a name as those for Windows have, so that it is worth a request.
fn seems_for_windows(image: &str) -> bool {
    let words = ["windows", "nanoserver", "servercore", "ltsc20"];
    words.iter().any(|word| image.contains(word))
}

#[derive(Debug, Default)]
pub(super) struct ImagesFromFiles {
    /// By the reference in the file.
    images: BTreeMap<String, ImageContent>,
    /// That reference, by the full one.
    references: BTreeMap<String, String>,
}

/// A reference with Docker's defaults: `docker.io/library/app:latest` for `app`.
fn full_reference(text: &str) -> Option<String> {
    let reference = parse_reference(text).ok()?;
    Some(reference.to_string())
}

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
struct OtherEntry {
    digest: String,
    platform: Option<String>,
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
    /// Platforms of the entries that a build kept.
    #[serde(default)]
    kept: Vec<String>,
}

impl IndexEntry {
    /// The entries that a build kept for other systems.
    fn others(&self) -> impl Iterator<Item = Variant> {
        let platforms = self.kept.iter();
        let platforms = platforms.filter_map(|platform| platform.split_once('/'));
        let others = platforms.filter(|(os, _)| *os != "windows");
        others.map(|(os, architecture)| Variant {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            ..Variant::default()
        })
    }
}

/// Parses results, lists of results, or only the images of one, one after the other.
fn read_images(text: &str) -> Result<Vec<File>, String> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let values: Result<Vec<Value>, _> = values.collect();
    let values = values.map_err(|error| error.to_string())?;
    if values.is_empty() {
        return Err("it is empty".to_owned());
    }
    let is_result = |item: &Value| item.get("images").is_some();
    let results = values.into_iter().flat_map(|value| match value {
        Value::Array(items) if items.iter().any(is_result) => items,
        value => vec![value],
    });
    results.map(read_result).collect()
}

fn read_result(value: Value) -> Result<File, String> {
    let file = match value {
        Value::Array(_) => serde_path_to_error::deserialize(value).map(|images| File {
            images,
            ..File::default()
        }),
        Value::Object(ref keys) => match keys.get("images") {
            Some(Value::Array(_)) => serde_path_to_error::deserialize(value),
            Some(_) => return Err("expected a list of images under \"images\"".to_owned()),
            None if keys.contains_key("reference") && keys.contains_key("os_version") => {
                return read_result(Value::Array(vec![value]));
            }
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
    pub(super) fn read(files: &[PathBuf]) -> Result<Self> {
        let mut given = Self::default();
        for path in files {
            let images = read_images(&read_text(path)?).map_err(|problem| {
                Failure::usage(format!("{}: {problem}", path.display())).hint(
                    "--images takes the output of wincimg build or wincimg image inspect with --format json, \
                     a list of such outputs, or the list under \"images\" of one",
                )
            })?;
            for file in images {
                given.add(file);
            }
        }
        Ok(given)
    }

    fn add(&mut self, file: File) {
        let images = file.images.into_iter().map(|entry| {
            let variant = entry.variant();
            (entry, variant)
        });
        let images: Vec<(ImageEntry, Variant)> = images.collect();
        for (entry, variant) in &images {
            let Some(reference) = &entry.reference else {
                continue;
            };
            let content = match self.images.get(reference).cloned() {
                None => ImageContent::Single(variant.clone()),
                Some(content) => {
                    let known = Image {
                        reference: None,
                        content,
                    };
                    ImageContent::Index([known.variants(), std::slice::from_ref(variant)].concat())
                }
            };
            self.insert(reference.clone(), content);
        }
        let variants = || images.iter().map(|(_, variant)| variant.clone());
        if let Some(index) = file.index
            && let Some(reference) = &index.reference
        {
            let variants = variants().chain(index.others()).collect();
            self.insert(reference.clone(), ImageContent::Index(variants));
        }
        let Some(reference) = file.reference else {
            return;
        };
        let content = match (file.entries, &images[..]) {
            (Some(entries), _) => ImageContent::Index(of_index(entries, &images, &file.others)),
            (None, [(_, single)]) => ImageContent::Single(single.clone()),
            (None, _) => ImageContent::Index(variants().collect()),
        };
        self.insert(reference, content);
    }

    fn insert(&mut self, reference: String, content: ImageContent) {
        if let Some(full) = full_reference(&reference) {
            self.references.insert(full, reference.clone());
        }
        self.images.insert(reference, content);
    }

    /// The image of a file with this reference, or else with one for the same image.
    fn get(&self, reference: &str) -> Option<Image> {
        let same = || {
            let own = self.references.get(&full_reference(reference)?)?;
            self.images.get(own)
        };
        let content = self.images.get(reference).or_else(same)?;
        Some(Image {
            reference: Some(reference.to_owned()),
            content: content.clone(),
        })
    }
}

impl ImageEntry {
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

impl OtherEntry {
    /// An image that was not read.
    fn variant(&self) -> Variant {
        let platform = self.platform.as_deref().unwrap_or("windows/amd64");
        let mut parts = platform.split(['/', ':']).map(str::to_owned);
        Variant {
            os: parts.next().unwrap_or_default(),
            architecture: parts.next().unwrap_or_default(),
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
    let others = others.iter().map(|other| (other.digest.as_str(), other));
    let others: HashMap<&str, &OtherEntry> = others.collect();
    let variants = entries.into_iter().filter_map(|entry| {
        let own = own.get(entry.digest.as_str()).copied().cloned();
        let other = others.get(entry.digest.as_str());
        let kind = other.and_then(|other| other.kind.as_deref());
        let Some(platform) = entry.platform else {
            let unread = other.filter(|other| other.problem.is_some());
            let found = own.or_else(|| unread.map(|other| other.variant()));
            return found.map(|found| Variant {
                without_platform: true,
                ..found
            });
        };
        if platform.os == "unknown" || matches!(kind, Some("attestation" | "artifact")) {
            return None;
        }
        let os_version = platform.os_version.as_deref();
        let stated = Variant {
            version: os_version.and_then(|text| text.parse().ok()),
            os: platform.os.to_ascii_lowercase(),
            architecture: platform.architecture,
            processor_variant: platform.variant,
            os_features: platform.os_features,
            os_version: platform.os_version,
            ..Variant::default()
        };
        let problem = other.and_then(|other| other.problem.clone());
        Some(match (own, problem) {
            (Some(own), _) => stated.with_image(own),
            (None, Some(problem)) => Variant {
                content: match kind {
                    Some("missing") => EntryContent::Missing,
                    _ => EntryContent::Unreadable(problem),
                },
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
) -> Result<Vec<Image>> {
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
        .map(|request| {
            let reference = &request.reference;
            let known = given
                .get(reference)
                .or_else(|| Image::with_placeholder(reference))
                .or_else(|| fetched.get(reference).cloned())
                .or_else(|| request.invalid());
            known.unwrap_or_else(|| Image::unasked(request.reference))
        })
        .collect())
}

/// Reads what is behind the entries that nodes would select, and what warnings require.
pub(super) fn add_details(
    details: &Details,
    images: &mut [Image],
    connection: &RegistryArgs,
    session: &Session,
) -> Result<()> {
    let progress = display(session);
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
) -> Result<TagsByRepository> {
    if !rollout.has_failing_images() {
        return Ok(TagsByRepository::default());
    }
    let registry = connection.connect(session)?;
    registry_args::run(async { Ok(fetch_tags(rollout, &registry).await) })
}

#[cfg(test)]
mod tests {
    use wincimg_cluster::workloads::WorkloadList;

    use super::*;

    #[test]
    fn images_are_in_lists_objects_with_one_or_alone() {
        let image = r#"{"reference": "repo.example/web:1", "os_version": "10.0.20348.1"}"#;
        let result = format!("{{\"images\": [{image}]}}");
        for text in [image, &format!("[{image}]"), &result] {
            assert_eq!(read_images(text).unwrap()[0].images.len(), 1, "{text}");
        }
        for results in [
            format!("[{result}, {result}]"),
            format!("{result}\n{result}"),
            format!("{image}{image}\n"),
        ] {
            assert_eq!(read_images(&results).unwrap().len(), 2, "{results}");
        }
        for (text, named) in [
            (r#"{"images": {"web": 1}}"#, "list of images"),
            (r#"{"reference": "web"}"#, "list \"images\""),
            ("7", "list of images"),
            (" \n", "empty"),
            (r#"[{"os_version": 5}]"#, "[0].os_version"),
            (r#"{"images": [{"os": true}]}"#, "images[0].os"),
            (
                r#"[{"images": []}, {"reference": "web"}]"#,
                "list \"images\"",
            ),
        ] {
            let problem = read_images(text).err().unwrap();
            assert!(problem.contains(named), "{text}: {problem}");
        }
    }

    fn given(text: &str) -> ImagesFromFiles {
        let mut given = ImagesFromFiles::default();
        for file in read_images(text).unwrap() {
            given.add(file);
        }
        given
    }

    #[test]
    fn an_image_is_found_by_any_name_that_it_has() {
        let given = given(
            r#"[{"reference": "mongo:7.0"}, {"reference": "docker.io/library/app", "os": "linux"},
              {"reference": "app:latest"}]"#,
        );
        let os = |reference: &str| given.get(reference).map(|it| it.variants()[0].os.clone());
        for reference in [
            "mongo:7.0",
            "docker.io/library/mongo:7.0",
            "library/mongo:7.0",
        ] {
            assert_eq!(os(reference).as_deref(), Some("windows"), "{reference}");
        }
        // The same reference comes first.
        assert_eq!(os("docker.io/library/app").as_deref(), Some("linux"));
        assert_eq!(os("app").as_deref(), Some("windows"));
        for reference in ["mongo", "repo.example/mongo:7.0", "Mongo:7.0"] {
            assert_eq!(os(reference), None, "{reference}");
        }
    }

    #[test]
    fn an_index_has_the_entries_for_other_systems_that_a_build_kept() {
        let given = given(
            r#"{"images": [{"os_version": "10.0.20348.1"}], "index": {"reference": "repo.example/app:1",
              "kept": ["linux/amd64", "windows/amd64:10.0.17763.1"]}}"#,
        );
        let image = given.get("repo.example/app:1").unwrap();
        let systems: Vec<&str> = image.variants().iter().map(|it| it.os.as_str()).collect();
        assert_eq!(systems, ["windows", "linux"]);
    }

    #[test]
    fn an_entry_keeps_what_it_requires_of_the_host() {
        let given = given(
            r#"{"reference": "repo.example/app:1", "images": [], "entries": [{"digest": "sha256:0",
              "platform": {"os": "windows", "os_version": null, "architecture": "amd64",
              "os_features": ["win32k", "gpu"]}}]}"#,
        );
        let image = given.get("repo.example/app:1").unwrap();
        assert_eq!(image.variants()[0].entry().feature, Some("gpu"));
    }

    #[test]
    fn of_workloads_for_linux_only_images_that_may_be_for_windows_are_read() {
        let mut list = WorkloadList::default();
        let containers = [
            "mcr.microsoft.com/windows/nanoserver:1809",
            "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022",
            "given:1",
            "nginx:1",
        ];
        let containers = containers.map(|image| format!("{{image: '{image}'}}"));
        let text = format!(
            "kind: Pod\nspec: {{nodeSelector: {{kubernetes.io/os: linux}}, containers: [{}]}}\n",
            containers.join(", ")
        );
        list.read(&text, "pod.yaml").unwrap();
        let given = given(r#"[{"reference": "docker.io/library/given:1"}]"#);
        let wanted = images_to_check(&[], &list.into_workloads(), &given);
        let wanted: Vec<&str> = wanted.iter().map(|it| it.reference.as_str()).collect();
        let expected = [
            "mcr.microsoft.com/windows/nanoserver:1809",
            "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022",
            "given:1",
        ];
        assert_eq!(wanted, expected);
    }
}
