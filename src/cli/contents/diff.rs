//! `wincimg image diff`: compares two images, or two indexes build by build.

use serde_json::Map;
use wincimg_inspect::contents::{
    ContentChange, ContentReader, FileAspect, FileDifference, FileEntry, ImageContents,
    KeyDifference, diff_files, diff_keys, diff_layers, differing_hives, display_path,
};
use wincimg_oci::document::{Digest, Document, Image, Index};
use wincimg_registry::RegistryEdit;

use super::view::{Colours, FileView};
use super::{
    ContentArgs, SkippedLayer, all_images_in, diff_text, report_problems, report_unclosed,
    skipped_layers,
};
use crate::cli::inspect::is_true;
use crate::cli::prelude::*;

/// Compare two images: files, registry, configuration, size
///
/// Compares what containers see. Of two indexes, the images for the same Windows build are compared.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image diff repo.mylan.k8s:8888/web:1.3 repo.mylan.k8s:8888/web:1.4\n  \
    wincimg image diff repo.mylan.k8s:8888/web:1.4 oci:./web-1.5 \\\n      \
    --skip-windows --layers\n  \
    wincimg image diff oci:./a oci:./b --exit-code --format json\n\n\
    With --skip-windows, or if layers of Windows are foreign and not stored with an image, only the\n\
    layers above Windows are compared.")]
pub(in crate::cli) struct Diff {
    /// First image: a reference, oci:DIR[:TAG], docker-archive:FILE[:NAME] or docker-daemon:NAME
    #[arg(value_name = "BEFORE", value_parser = parse_source, add = complete::images())]
    before: ImageSource,
    /// Second image
    #[arg(value_name = "AFTER", value_parser = parse_source, add = complete::images())]
    after: ImageSource,
    /// Select the images of this platform from an index (repeatable) [default: all for Windows]
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Vec<PlatformFilter>,
    /// Also list the contents of each layer that only one image has
    // `inspect` has a flag of this name with values, which a file of defaults may set for all
    // commands.
    #[arg(long, action = clap::ArgAction::SetTrue, value_parser = is_true)]
    layers: bool,
    #[command(flatten)]
    contents: ContentArgs,
    /// Exit with 1 if the images differ
    #[arg(long)]
    exit_code: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    connection: SourceArgs,
}

/// Differences of two references.
#[derive(Debug, Serialize)]
pub(super) struct Differences {
    pub(super) before: String,
    pub(super) after: String,
    pub(super) identical: bool,
    /// Annotations of two indexes, and what they state of the compared images.
    pub(super) index: Vec<ConfigDifference>,
    pub(super) images: Vec<ImageDifference>,
    /// Platforms that only one of the indexes has.
    pub(super) only_before: Vec<String>,
    pub(super) only_after: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct ImageDifference {
    pub(super) platform: String,
    pub(super) before: ImageSide,
    pub(super) after: ImageSide,
    pub(super) config: Vec<ConfigDifference>,
    pub(super) files: Vec<FileRow>,
    pub(super) registry: Vec<KeyDifference>,
    /// Layers that only one of the images has, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) layers: Option<Vec<LayerRow>>,
}

#[derive(Debug, Serialize)]
pub(super) struct ImageSide {
    pub(super) digest: Digest,
    pub(super) os_version: Option<String>,
    pub(super) layers: usize,
    /// Size of the layers as they are stored.
    pub(super) size: u64,
    /// Bytes of all compared files.
    pub(super) content: u64,
    pub(super) skipped: Vec<SkippedLayer>,
}

#[derive(Debug, Serialize)]
pub(super) struct ConfigDifference {
    pub(super) setting: String,
    pub(super) change: ContentChange,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct FileRow {
    pub(super) path: String,
    pub(super) change: ContentChange,
    pub(super) differs: Vec<FileAspect>,
    pub(super) before: Option<FileView>,
    pub(super) after: Option<FileView>,
}

#[derive(Debug, Serialize)]
pub(super) struct LayerRow {
    pub(super) layer: usize,
    pub(super) change: ContentChange,
    pub(super) digest: Digest,
    pub(super) size: u64,
    pub(super) created_by: Option<String>,
    /// Its changes to the layers below.
    pub(super) files: Vec<FileRow>,
    pub(super) registry: Vec<RegistryEdit>,
}

impl Diff {
    pub(in crate::cli) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let reader = self.connection.connect(session)?;
        let found = registry_args::run(async {
            let sources = [
                reader.open(&self.before).await?,
                reader.open(&self.after).await?,
            ];
            let sources = sources.each_ref().map(|source| &**source);
            self.compare(sources, &reader.progress, session).await
        })?;
        let colours = Colours(colour_on(&io::stdout()));
        self.format
            .print(|| &found, |out| diff_text::write(&found, colours, out))?;
        Ok((!self.exit_code || found.identical).into())
    }

    async fn compare(
        &self,
        sources: [&Source; 2],
        progress: &Arc<dyn Progress>,
        session: &Session,
    ) -> Result<Differences> {
        let [old, new] = sources;
        let (before, old_index) = self.images(old, &self.before).await?;
        let (after, new_index) = self.images(new, &self.after).await?;
        let (pairs, [only_before, only_after]) = pair(before, after);
        let names = |images: &[Image]| -> Vec<String> {
            let platforms = images.iter().map(|image| image.config().platform());
            platforms.map(|platform| platform.to_string()).collect()
        };
        let mut found = Differences {
            before: self.before.to_string(),
            after: self.after.to_string(),
            identical: false,
            index: match (old_index, new_index) {
                (Some(old), Some(new)) => diff_indexes(&old, &new, &pairs),
                _ => Vec::new(),
            },
            images: Vec::new(),
            only_before: names(&only_before),
            only_after: names(&only_after),
        };
        let reader = self.contents.reader(progress);
        for [before, after] in &pairs {
            let read = self.read_both(sources, [before, after], &reader, session);
            let contents = read.await?;
            let hives = differing_hives(&contents[0], &contents[1]);
            report_unclosed(&contents, &hives, session)?;
            found.images.push(self.image([before, after], &contents)?);
        }
        found.identical = found.images.iter().all(ImageDifference::is_empty)
            && found.index.is_empty()
            && found.only_before.is_empty()
            && found.only_after.is_empty();
        Ok(found)
    }

    /// The images that a location names, and the index that has them.
    async fn images(
        &self,
        source: &Source,
        location: &ImageSource,
    ) -> Result<(Vec<Image>, Option<Index>)> {
        let document = source.resolve(location.tag_or_digest()).await?;
        let index = match &document {
            Document::Index(index) => Some(Index::clone(index)),
            Document::Manifest(_) => None,
        };
        let images = all_images_in(source, location, document, &self.platform).await?;
        Ok((images, index))
    }

    /// The contents of two images, to the same extent.
    async fn read_both(
        &self,
        sources: [&Source; 2],
        images: [&Image; 2],
        reader: &ContentReader,
        session: &Session,
    ) -> Result<[ImageContents; 2]> {
        let read = |at: usize| Box::pin(reader.read(sources[at], images[at]));
        let (before, after) = tokio::try_join!(read(0), read(1))?;
        report_problems(&self.before, &before, session);
        report_problems(&self.after, &after, session);
        Ok(if before.is_complete() && after.is_complete() {
            [before, after]
        } else {
            [before, after].map(ImageContents::without_windows)
        })
    }

    fn image(
        &self,
        [before, after]: [&Image; 2],
        contents: &[ImageContents; 2],
    ) -> Result<ImageDifference> {
        let [old, new] = contents;
        let trees = [old.files(), new.files()];
        let files = diff_files(&trees[0], &trees[1], self.contents.acl);
        let registry = diff_keys(old, new, self.contents.acl)?;
        let side = |image: &Image, at: usize| ImageSide {
            digest: image.digest().clone(),
            os_version: image.config().os_version.clone(),
            layers: contents[at].layers.len(),
            size: contents[at].layers.iter().map(|layer| layer.size).sum(),
            content: trees[at]
                .iter()
                .map(FileEntry::size)
                .fold(0, u64::saturating_add),
            skipped: skipped_layers(&contents[at]),
        };
        let rows = || layer_rows(old, new, self.contents.acl);
        let layers = self.layers.then(rows).transpose()?;
        Ok(ImageDifference {
            platform: after.config().platform().to_string(),
            before: side(before, 0),
            after: side(after, 1),
            config: diff_settings(settings(before), settings(after)),
            files: files
                .iter()
                .filter_map(|it| FileRow::new(it, self.contents.acl))
                .collect(),
            registry,
            layers,
        })
    }
}

impl ImageDifference {
    pub(super) fn is_empty(&self) -> bool {
        self.before.digest == self.after.digest
            || (self.config.is_empty() && self.files.is_empty() && self.registry.is_empty())
    }
}

/// Pairs single images, and those of indexes by architecture and Windows build; the others are those
/// that only one index has.
fn pair(mut before: Vec<Image>, mut after: Vec<Image>) -> (Vec<[Image; 2]>, [Vec<Image>; 2]) {
    let mut both = Vec::new();
    if let ([_], [_]) = (before.as_slice(), after.as_slice()) {
        both.extend(before.pop().zip(after.pop()).map(|(old, new)| [old, new]));
    }
    let build = |image: &Image| {
        let config = image.config();
        let version = config.os_version.as_deref();
        let version = version.and_then(|text| text.parse::<WindowsVersion>().ok());
        (
            config.architecture.clone(),
            version.map(|version| version.build),
        )
    };
    let mut only_before = Vec::new();
    for old in before {
        match after.iter().position(|new| build(new) == build(&old)) {
            Some(at) => both.push([old, after.remove(at)]),
            None => only_before.push(old),
        }
    }
    (both, [only_before, after])
}

/// Fields of a configuration that say how an image was made, or what its layers are.
const NO_SETTINGS: [&str; 5] = [
    "created", "history", "rootfs", "container", "container_config",
];

fn annotation(key: &str) -> String {
    format!("annotations {key}")
}

/// Compares the annotations of two indexes, and what they state of the compared images.
fn diff_indexes(old: &Index, new: &Index, pairs: &[[Image; 2]]) -> Vec<ConfigDifference> {
    let rows = |annotations: BTreeMap<String, String>, of: &str| -> BTreeMap<String, Value> {
        let row = |(key, value): (String, String)| {
            (format!("{of}{}", annotation(&key)), Value::from(value))
        };
        annotations.into_iter().map(row).collect()
    };
    let mut found = diff_settings(rows(old.annotations(), ""), rows(new.annotations(), ""));
    for [before, after] in pairs {
        let of = format!("{} ", after.config().platform());
        let entry = |index: &Index, image: &Image| {
            let mut entries = index.manifests.iter();
            let entry = entries.find(|entry| entry.digest == *image.digest());
            let annotations = entry.map(|entry| entry.annotations.clone());
            let platform = entry.and_then(|entry| entry.platform.clone());
            let platform = platform.unwrap_or_default();
            let features = Some(platform.os_features).filter(|them| !them.is_empty());
            let about: &str = image.digest().as_ref();
            let attestations = index.manifests.iter();
            let attestations = attestations.filter(|it| it.attested() == Some(about));
            let attestations = Some(attestations.count()).filter(|count| *count > 0);
            let stated = [
                ("os.features", features.map(Value::from)),
                ("variant", platform.variant.map(Value::from)),
                ("attestations", attestations.map(Value::from)),
            ];
            let mut all = rows(annotations.unwrap_or_default(), &of);
            for (name, value) in stated {
                all.extend(value.map(|value| (format!("{of}{name}"), value)));
            }
            all
        };
        found.extend(diff_settings(entry(old, before), entry(new, after)));
    }
    found
}

/// The settings of an image by name: each variable, label, port and annotation by itself.
fn settings(image: &Image) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut add = |name: String, value: Value| {
        let is_empty = match &value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Bool(set) => !set,
            _ => false,
        };
        if !is_empty {
            found.insert(name, value);
        }
    };
    for (key, value) in image.annotations() {
        add(annotation(&key), value.into());
    }
    let object = |value: Value| match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let config = serde_json::to_value(&**image.config());
    let mut config = object(config.unwrap_or_default());
    let container = object(config.remove("config").unwrap_or_default());
    for (name, value) in config.into_iter().chain(container) {
        match (name.as_str(), value) {
            (name, _) if NO_SETTINGS.contains(&name) => {}
            ("Env", Value::Array(list)) => {
                for variable in list.iter().filter_map(Value::as_str) {
                    let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
                    add(format!("Env {name}"), value.into());
                }
            }
            ("Labels" | "ExposedPorts" | "Volumes", Value::Object(entries)) => {
                for (key, value) in entries {
                    add(format!("{name} {key}"), value);
                }
            }
            (_, value) => add(name, value),
        }
    }
    found
}

fn diff_settings(
    mut before: BTreeMap<String, Value>,
    mut after: BTreeMap<String, Value>,
) -> Vec<ConfigDifference> {
    let names: BTreeSet<String> = before.keys().chain(after.keys()).cloned().collect();
    let differences = names.into_iter().filter_map(|setting| {
        let (before, after) = (before.remove(&setting), after.remove(&setting));
        let change = match (&before, &after) {
            (Some(old), Some(new)) if old == new => return None,
            (None, _) => ContentChange::Added,
            (_, None) => ContentChange::Removed,
            _ => ContentChange::Changed,
        };
        Some(ConfigDifference {
            setting,
            change,
            before,
            after,
        })
    });
    differences.collect()
}

impl FileRow {
    fn new(found: &FileDifference, with_security: bool) -> Option<Self> {
        let sides = [found.before.as_ref(), found.after.as_ref()];
        let known = sides[1].or(sides[0]).or(found.deleted.as_ref())?;
        let view = |at: usize| sides[at].map(|entry| FileView::new(entry, with_security));
        Some(Self {
            path: display_path(&known.path),
            change: found.change,
            differs: found.differs.clone(),
            before: view(0),
            after: view(1),
        })
    }
}

/// The layers above those that both images share.
fn layer_rows(
    before: &ImageContents,
    after: &ImageContents,
    with_security: bool,
) -> Result<Vec<LayerRow>> {
    let both = before.layers.iter().zip(&after.layers);
    let shared = both
        .take_while(|(old, new)| old.digest == new.digest)
        .count();
    let mut rows = Vec::new();
    for (contents, change) in [
        (before, ContentChange::Removed),
        (after, ContentChange::Added),
    ] {
        for (layer, files) in diff_layers(contents, shared, with_security) {
            let files = files.iter();
            rows.push(LayerRow {
                layer: layer.number,
                change,
                digest: layer.digest.clone(),
                size: layer.size,
                created_by: layer.created_by.clone(),
                files: files
                    .filter_map(|it| FileRow::new(it, with_security))
                    .collect(),
                registry: layer.registry_edits()?,
            });
        }
    }
    Ok(rows)
}
