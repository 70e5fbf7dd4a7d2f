//! Commands about the contents of any image: `image ls`, `cp`, `diff` and `export`.

mod cp;
mod diff;
mod diff_text;
mod export;
mod ls;
pub(super) mod view;

pub(super) use cp::{Cp, is_path_in_image};
pub(super) use diff::Diff;
pub(super) use export::Export;
pub(super) use ls::Ls;
use wincimg_inspect::base::BaseHive;
use wincimg_inspect::contents::{ContentOptions, ContentReader, ContentStatus, ImageContents};
use wincimg_inspect::{CopiedFiles, ExtractedFiles};
use wincimg_oci::document::{Document, Image};

use super::copy::by_digest;
use super::image_source::{OpenSource, SourceReader};
use super::inspect::note_unclosed;
use crate::cli::prelude::*;

/// Extent of the contents that are read.
#[derive(Debug, Clone, Args)]
struct ContentArgs {
    /// Skip the layers of Windows itself, which have gigabytes
    #[arg(long)]
    skip_windows: bool,
    /// Include the utility VM of Hyper-V isolation
    #[arg(long)]
    utility_vm: bool,
    /// Include security descriptors
    #[arg(long)]
    acl: bool,
}

impl ContentArgs {
    fn reader(&self, progress: &Arc<dyn Progress>) -> ContentReader {
        let options = ContentOptions {
            utility_vm: self.utility_vm,
            skip_windows: self.skip_windows,
        };
        ContentReader::new(options, Arc::clone(progress))
    }
}

#[derive(Debug, Serialize)]
struct SkippedLayer {
    layer: usize,
    size: u64,
    reason: ContentStatus,
}

fn skipped_layers(contents: &ImageContents) -> Vec<SkippedLayer> {
    let layers = contents.layers.iter();
    let skipped = layers.filter(|layer| layer.status != ContentStatus::Read);
    skipped
        .map(|layer| SkippedLayer {
            layer: layer.number,
            size: layer.size,
            reason: layer.status,
        })
        .collect()
}

/// Reports in one line what an image's contents lack, and the parts that cannot be read.
fn report_problems(image: &ImageSource, contents: &ImageContents, session: &Session) {
    let layers = contents.layers.iter();
    let foreign = layers.filter(|layer| layer.status == ContentStatus::ForeignBytes);
    let foreign: Vec<usize> = foreign.map(|layer| layer.number).collect();
    report_foreign(image, &foreign, session);
    for layer in &contents.layers {
        if let Err(problem) = layer.check_diff_id() {
            let number = layer.number;
            session.warn(format_args!("no runtime unpacks layer {number}: {problem}"));
        }
        for (place, problem) in layer.problems() {
            session.warn(format_args!("layer {}: {place}: {problem}", layer.number));
        }
    }
}

/// Notes which hives were not closed, those of a layer once.
fn report_unclosed(images: &[ImageContents], hives: &[BaseHive], session: &Session) -> Result<()> {
    let mut seen = HashSet::new();
    let layers = images.iter().flat_map(|contents| &contents.layers);
    for layer in layers.filter(|layer| seen.insert(&layer.digest)) {
        for &hive in hives {
            if let Some(unclosed) = layer.unclosed_hive(hive)? {
                note_unclosed(layer.number, &unclosed, session);
            }
        }
    }
    Ok(())
}

pub(super) fn report_foreign(image: &ImageSource, layers: &[usize], session: &Session) {
    if !layers.is_empty() {
        session.note(format_args!(
            "skipped foreign layers, whose bytes are not stored with {image}: {}",
            joined(layers, ", ")
        ));
    }
}

/// Refuses a path that is a link: the copy would be empty.
fn refuse_link(files: &ExtractedFiles, image: &impl Display) -> Result<()> {
    let Some(path) = files.link() else {
        return Ok(());
    };
    let problem = format!("{path} is a link, and links are not copied");
    let list = command_line(&[
        "wincimg",
        "image",
        "ls",
        &image.to_string(),
        &path.to_string(),
    ]);
    Err(Failure::no(problem).hint(format!("see its target: {list}")))
}

fn report_skipped(image: &ImageSource, copied: &CopiedFiles, session: &Session) {
    report_foreign(image, &copied.unread, session);
    let is_stream = |path: &&String| path.rsplit('\\').next().is_some_and(|it| it.contains(':'));
    let (streams, others): (Vec<_>, Vec<_>) = copied.skipped.iter().partition(is_stream);
    if let Some(first) = streams.first() {
        let streams = count(streams.len(), "alternate data stream");
        session.warn(format_args!("skipped {streams}, such as {first}"));
    }
    if let Some(first) = others.first() {
        let entries = count(others.len(), "entry");
        session.warn(format_args!(
            "skipped {entries}, such as {first}: links and invalid names are not copied"
        ));
    }
}

/// The Windows images that a location names, all or those of some platforms; at least one.
pub(super) async fn all_images(
    source: &Source,
    location: &ImageSource,
    platforms: &[PlatformFilter],
) -> Result<Vec<Image>> {
    let document = source.resolve(location.tag_or_digest()).await?;
    all_images_in(source, location, document, platforms).await
}

/// Same as [`all_images`], for a document that was already read.
pub(super) async fn all_images_in(
    source: &Source,
    location: &ImageSource,
    document: Document,
    platforms: &[PlatformFilter],
) -> Result<Vec<Image>> {
    let images = windows_images_in(source, document, platforms).await?;
    if images.is_empty() {
        return Err(Failure::no(format!("{location} has no image for Windows")));
    }
    let other = images.iter().find(|image| image.config().os != "windows");
    match other.map(|image| image.config().platform()) {
        None => Ok(images),
        Some(platform) if platform.os.is_empty() => Err(Failure::usage(format!(
            "{location} has no platform: it is a signature or another artifact"
        ))
        .hint("name the image that it is about")),
        Some(platform) => Err(Failure::usage(format!(
            "{location} is for {platform}, not for Windows"
        ))),
    }
}

/// The platform of one of several images or, if that is not unique or what the user named, its digest:
/// an index can state another platform than the image.
fn how_to_choose(
    location: &ImageSource,
    platforms: &[String],
    first: Option<&Image>,
    wanted: Option<&PlatformFilter>,
) -> String {
    let platform = &platforms[0];
    let is_named = wanted.is_some_and(|wanted| wanted.to_string() == *platform);
    let is_unique = !is_named && platforms[1..].iter().all(|other| other != platform);
    let named = match (first, location.stored()) {
        (Some(first), Some(place @ (Location::Layout { .. } | Location::Registry(_))))
            if !is_unique =>
        {
            by_digest(place, first.digest().as_ref())
        }
        _ => return format!("choose one with --platform {platform}"),
    };
    format!("name one by its digest: {}", quote(&named))
}

/// The only Windows image that a location names, or that of a platform, in its place.
pub(super) async fn only_image(
    reader: &SourceReader,
    location: &ImageSource,
    platform: Option<&PlatformFilter>,
) -> Result<(OpenSource, Image)> {
    let source = reader.open(location).await?;
    let platforms: Vec<PlatformFilter> = platform.into_iter().cloned().collect();
    let images = all_images(&source, location, &platforms).await?;
    Ok((source, one_of(location, images, platform)?))
}

/// The only one of the images that a location names for a platform; at least one.
pub(super) fn one_of(
    location: &ImageSource,
    mut images: Vec<Image>,
    wanted: Option<&PlatformFilter>,
) -> Result<Image> {
    let count = images.len();
    let versions: Vec<String> = images
        .iter()
        .map(|image| image.config().platform().to_string())
        .collect();
    let listed = std::iter::zip(&images, &versions).map(|(image, version)| {
        let others = versions.iter().filter(|other| *other == version);
        match others.count() {
            1 => version.clone(),
            _ => format!("{version} ({})", image.digest()),
        }
    });
    let listed: Vec<String> = listed.collect();
    if let (Some(image), 1) = (images.pop(), count) {
        return Ok(image);
    }
    let platform = wanted.map_or_else(|| "Windows".to_owned(), ToString::to_string);
    let hint = how_to_choose(location, &versions, images.first(), wanted);
    let listed = listed.join(", ");
    let problem = format!("{location} has {count} images for {platform}: {listed}");
    Err(Failure::usage(problem).hint(hint))
}
