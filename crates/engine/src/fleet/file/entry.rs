//! One image of a fleet file: its own settings and the shared ones.

use std::collections::BTreeMap;
use std::path::Path;

use wincimg_common::diagnose::Problem;
use wincimg_common::document::Text;
use wincimg_common::files::{self, TextFile};
use wincimg_common::progress::Silent;
use wincimg_dockerfile::DockerfileNames;
use wincimg_dockerfile::stages::StageReplacement;
use wincimg_images::recipes;
use wincimg_layer::Compression;
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::{is_repository, parse_reference};
use wincimg_recipe::Field;

use super::schema::{FleetFile, ImageTable};
use super::tags::expand_tag;
use super::{FleetSource, label_of};
use crate::definition::{BuildDefinition, BuildInput, dockerfile_of};
use crate::fleet::{EntrySource, FleetEntry};

/// One image with the shared settings; `place` is its index.
pub(super) fn entry(
    file: &FleetFile,
    image: &ImageTable,
    place: usize,
    folder: &Path,
    origin: &FleetSource<'_>,
) -> Result<FleetEntry, Problem> {
    let (work, registry, name, tag) = match (&image.build, &image.update) {
        (Some(build), None) => built(file, image, build, folder, origin)?,
        (None, Some(update)) => updated(image, update, origin)?,
        (Some(_), Some(update)) => {
            let problem = "an image has either build or update, not both";
            return Err(origin.error(update.offset, problem));
        }
        (None, None) => {
            let mut tables = origin.text.match_indices("[[image]]");
            let start = tables.nth(place).map_or(0, |(start, _)| start);
            let hint = "set its source: build = \"FOLDER\", or update = \"IMAGE\"";
            let error = origin.error(start, "an image has neither build nor update");
            return Err(error.hint(hint.to_owned()));
        }
    };
    let is_built = image.build.is_some();
    let compression = image.compression.or(file.compression);
    let compression = compression.filter(|_| is_built).unwrap_or_default();
    let manifest_format = image.manifest_format.or(file.manifest_format);
    if let (Compression::Zstd, Some(ManifestFormat::Docker)) = (compression, manifest_format) {
        let problem = "Docker manifests have no media type for zstd layers";
        let hint = "write compression = \"gzip\", or manifest-format = \"oci\"".to_owned();
        return Err(origin.error(image.start(), problem).hint(hint));
    }
    let labels = pairs(&file.label).into_iter().chain(pairs(&image.label));
    let source = image.build.as_ref().or(image.update.as_ref());
    let selector = image.selector.as_ref().or(file.selector.as_ref());
    let base_registry = image.base_registry.as_ref().or(file.base_registry.as_ref());
    let below = images_below(&work, &tag);
    Ok(FleetEntry {
        line: origin.line(image.start()),
        from: source.map_or_else(String::new, |source| source.value.clone()),
        work,
        registry,
        name,
        tag,
        selector: selector.map(|field| field.value.clone()),
        base_registry: base_registry.map(|field| field.value.clone()),
        matched: image.matched.or(file.matched).unwrap_or_default(),
        labels: labels.filter(|_| is_built).collect(),
        compression,
        manifest_format,
        below,
        level: 0,
    })
}

/// Labels of the images that an entry is built on or copies files from.
fn images_below(work: &EntrySource, tag: &str) -> Vec<String> {
    let names = match work {
        // What cannot be read is reported by its build.
        EntrySource::Build(input) => {
            let definition = input.read(&Silent);
            let names = definition.map(|definition| definition.image_names());
            names.unwrap_or_default()
        }
        EntrySource::Update { image, base } => {
            let image = Some(image).filter(|image| image.tag() != Some(tag));
            let image = image.map(ToString::to_string);
            base.iter().cloned().chain(image).collect()
        }
    };
    names.iter().filter_map(|name| label_of(name)).collect()
}

/// Source of an image, and its registry, name and tag.
type EntryParts = (EntrySource, RegistryPrefix, Option<String>, String);

/// An image with `build`.
fn built(
    file: &FleetFile,
    image: &ImageTable,
    build: &Field<String>,
    folder: &Path,
    origin: &FleetSource<'_>,
) -> Result<EntryParts, Problem> {
    if image.base.is_some() {
        let problem = "base is for images with update: a build names its own base";
        return Err(origin.error(build.offset, problem));
    }
    let Some(registry) = image.registry.as_ref().or(file.registry.as_ref()) else {
        let error = origin.error(build.offset, "no registry to push this image to");
        return Err(error.hint(
            "set it for all images at the top: registry = \"HOST[:PORT][/PREFIX]\"".to_owned(),
        ));
    };
    let prefix = registry.value.clone();
    prefix
        .check_for_pushes()
        .map_err(|error| origin.error(registry.offset, error))?;
    if let Some(Field { value, offset }) = &image.name
        && !is_repository(value)
    {
        let expected = "expected lower-case letters, digits and single - _ . /";
        return Err(origin.error(*offset, format!("invalid name {value:?}: {expected}")));
    }
    let mut named = named(image, &build.value, folder);
    let definition = named.read(&Silent);
    if let Ok(definition) = &definition {
        add_shared(file, &mut named, definition);
    }
    let name = match &image.name {
        Some(name) => Some(name.value.clone()),
        None => definition
            .ok()
            .map(|definition| definition.name().to_owned()),
    };
    let tag = match image.tag.as_ref().or(file.tag.as_ref()) {
        Some(tag) => expand_tag(tag, name.as_deref(), &named, origin)?,
        None => "latest".to_owned(),
    };
    Ok((EntrySource::Build(named), prefix, name, tag))
}

/// An image with `update`: rebased under its own name.
fn updated(
    image: &ImageTable,
    update: &Field<String>,
    origin: &FleetSource<'_>,
) -> Result<EntryParts, Problem> {
    let start = update.offset;
    if let Some(key) = image.key_of_build() {
        let problem = format!("{key} is for images with build, but this one has update");
        return Err(origin.error(start, problem));
    }
    let reference = parse_reference(&update.value);
    let reference = reference.map_err(|error| origin.error(start, error))?;
    let Some(own_tag) = reference.tag().filter(|_| reference.digest().is_none()) else {
        let problem = "an image to update requires a tag: a digest always means the same image";
        return Err(origin.error(start, problem));
    };
    let registry = reference.registry().parse::<RegistryPrefix>();
    let registry = registry.map_err(|error| origin.error(start, error))?;
    let name = reference.repository().to_owned();
    let tag = match &image.tag {
        Some(tag) => expand_tag(tag, Some(&name), &BuildInput::default(), origin)?,
        None => own_tag.to_owned(),
    };
    let base = image.base.clone();
    let image = reference.clone();
    Ok((
        EntrySource::Update { image, base },
        registry,
        Some(name),
        tag,
    ))
}

/// The build input, with paths from the file's folder.
fn named(image: &ImageTable, build: &str, folder: &Path) -> BuildInput {
    let is_shipped = recipes().iter().any(|recipe| recipe.name == build);
    let place = if is_shipped {
        build.to_owned()
    } else {
        folder.join(build).display().to_string()
    };
    let file = image.file.as_ref();
    let file = file.map(|file| TextFile::named(folder.join(file)));
    let context = image.context.as_ref().map(|context| folder.join(context));
    let is_recipe = dockerfile_of(&place, file.clone()).is_none();
    let stages = image.stage.iter();
    BuildInput {
        image: place,
        values: pairs(&image.set),
        context: context.or_else(|| is_recipe.then(|| files::or_here(folder).to_owned())),
        file,
        target: image.target.clone(),
        stages: stages
            .map(|(name, stage)| {
                (
                    name.clone(),
                    StageReplacement::parse(&stage.to_string_lossy(), folder),
                )
            })
            .collect(),
        arguments: pairs(&image.build_arg),
        skipped_actions: Vec::new(),
        choco_feed: None,
    }
}

fn pairs(table: &BTreeMap<String, Text>) -> Vec<(String, String)> {
    let pairs = table.iter();
    let pairs = pairs.map(|(name, Text(value))| (name.clone(), value.clone()));
    pairs.collect()
}

/// Adds the shared values that this image declares.
fn add_shared(file: &FleetFile, named: &mut BuildInput, definition: &BuildDefinition) {
    let add = |to: &mut Vec<(String, String)>, from, is_known: &dyn Fn(&str) -> bool| {
        for (name, value) in pairs(from) {
            if is_known(&name) && to.iter().all(|(own, _)| *own != name) {
                to.push((name, value));
            }
        }
    };
    match (definition.recipe(), definition.stages()) {
        (Some(recipe), _) => {
            let is_known = |name: &str| recipe.variables().any(|(known, _)| known == name);
            add(&mut named.values, &file.set, &is_known);
        }
        (None, Some(stages)) => {
            let outline = DockerfileNames::read(stages.text());
            let is_known = |name: &str| outline.arguments.iter().any(|(known, _)| known == name);
            add(&mut named.arguments, &file.build_arg, &is_known);
        }
        (None, None) => {}
    }
}
