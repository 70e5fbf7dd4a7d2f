//! Inventory of an image, independent of the document format.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use wincimg_oci::document::{Digest, Image};
use wincimg_windows::path::fold;
use wincimg_windows::version::WindowsVersion;

use super::layer::{LayerContents, LayerFileEntry};
use super::packages::products::ProductKey;
use super::packages::{Ecosystem, FoundPackage};
use super::purl;
use super::system::OperatingSystem;
use crate::base::sort_key;
use crate::contents::display_path;
use crate::merge;

/// An image with all of its own contents.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// Its repository, or its name if it has none.
    pub name: String,
    /// The digest of its manifest.
    pub digest: Digest,
    /// `amd64`, for example.
    pub architecture: String,
    /// Creation time in whole seconds.
    pub created: Timestamp,
    /// Its Windows, if any.
    pub system: Option<OperatingSystem>,
    /// Its base.
    pub base: Option<InventoryBase>,
    /// Number of layers below its own.
    pub layers_below: usize,
    /// Its own layers, the bottom one first.
    pub layers: Vec<InventoryLayer>,
    /// Packages of its layers, sorted by URL.
    pub packages: Vec<InventoryPackage>,
    /// Files of which a limit left out packages.
    partial: Vec<FileId>,
}

/// Base of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryBase {
    /// Its repository.
    pub name: String,
    /// The tag under which it was found.
    pub tag: Option<String>,
    /// The digest of its manifest.
    pub digest: Digest,
}

/// A layer of an image above its base.
#[derive(Debug, Clone)]
pub struct InventoryLayer {
    /// The digest of its blob.
    pub digest: Digest,
    /// Its contents.
    pub contents: Arc<LayerContents>,
}

/// A package in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryPackage {
    /// The package as it was found.
    pub found: FoundPackage,
    /// Its URL.
    pub purl: String,
    /// Files in which it was found.
    pub files: Vec<FileId>,
}

/// A file by the number of its layer among an image's own, and its number in the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// The layer.
    pub layer: usize,
    /// The file.
    pub file: usize,
}

impl Inventory {
    /// Creates the inventory of an image from the contents of its own layers, which are the last
    /// ones.
    pub fn new(
        name: String,
        image: &Image,
        base: Option<InventoryBase>,
        own: impl IntoIterator<Item = Arc<LayerContents>, IntoIter: ExactSizeIterator>,
    ) -> Self {
        let config = image.config();
        let own = own.into_iter();
        let blobs = &image.manifest().layers;
        let above = blobs.len().saturating_sub(own.len());
        let mut layers: Vec<InventoryLayer> = blobs[above..]
            .iter()
            .zip(own)
            .map(|(blob, contents)| InventoryLayer {
                digest: blob.digest.clone(),
                contents,
            })
            .collect();
        let version = config.os_version.as_deref();
        let version = version.and_then(|version| version.parse::<WindowsVersion>().ok());
        let seen = package_files(&mut layers);
        let is_partial = |place: &FileId| {
            let file = &layers[place.layer].contents.files[place.file];
            file.packages.is_partial
        };
        Self {
            name,
            digest: image.digest().clone(),
            architecture: config.architecture.clone(),
            created: created(config.created.as_deref()),
            system: version.map(OperatingSystem::from_version),
            base,
            packages: packages(&layers, &seen),
            partial: seen.values().copied().filter(is_partial).collect(),
            layers_below: above,
            layers,
        }
    }

    /// Layer of a file, counted from 1 at the bottom of the image.
    pub fn layer_number(&self, place: FileId) -> usize {
        self.layers_below + place.layer + 1
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (FileId, &LayerFileEntry)> {
        let layers = self.layers.iter().enumerate();
        layers.flat_map(|(layer, own)| {
            let files = own.contents.files.iter().enumerate();
            files.map(move |(file, known)| (FileId { layer, file }, known))
        })
    }

    /// Path of a file.
    pub fn path(&self, place: FileId) -> &str {
        let layer = self.layers.get(place.layer);
        let file = layer.and_then(|layer| layer.contents.files.get(place.file));
        file.map_or("", |file| &file.path)
    }

    /// Says that packages are left out, if they are.
    pub fn partial_note(&self) -> Option<String> {
        let first = display_path(self.path(*self.partial.first()?));
        let others = match self.partial.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let problem = "too large or too deeply nested";
        Some(format!(
            "not all packages of {first}{others} are listed: {problem}"
        ))
    }

    /// The name without its registry and namespaces.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// Time in whole seconds, the precision of SPDX.
fn created(text: Option<&str>) -> Timestamp {
    let time = text.and_then(|text| text.parse::<Timestamp>().ok());
    let seconds = time.unwrap_or_default().as_second();
    Timestamp::from_second(seconds).unwrap_or_default()
}

/// Packages that a container sees: those of files that no later layer replaces or deletes, and the
/// installed programs.
fn packages(layers: &[InventoryLayer], seen: &BTreeMap<Vec<u8>, FileId>) -> Vec<InventoryPackage> {
    let package_files = &PackageFiles::new(layers, seen);
    let in_files = seen.values().flat_map(|&place| {
        let file = &layers[place.layer].contents.files[place.file];
        let found = file.packages.packages.iter();
        let found = found.filter_map(move |found| package_files.adjusted(&file.path, found));
        found.map(move |found| (place, found))
    });
    let mut packages: BTreeMap<String, InventoryPackage> = BTreeMap::new();
    for (place, found) in in_files.chain(products(layers)) {
        let mut purl = purl::of_package(found.ecosystem, &found.name, found.version.as_deref());
        if let Some(code) = &found.product_code {
            purl += &purl::product_code(code);
        }
        let package = packages
            .entry(purl.clone())
            .or_insert_with(|| InventoryPackage {
                found: found.clone(),
                purl,
                files: Vec::new(),
            });
        let known = &mut package.found;
        known.supplier = known.supplier.take().or(found.supplier);
        known.licence = known.licence.take().or(found.licence);
        if package.files.last() != Some(&place) {
            package.files.push(place);
        }
    }
    packages.into_values().collect()
}

/// The installed programs, as Windows merges the hives of all layers, each with the last hive that
/// changes it.
fn products(layers: &[InventoryLayer]) -> Vec<(FileId, FoundPackage)> {
    let mut merged: BTreeMap<&str, (FileId, ProductKey)> = BTreeMap::new();
    for (layer, own) in layers.iter().enumerate() {
        let files = own.contents.files.iter().enumerate();
        for (file, known) in files.filter(|(_, known)| known.may_have_packages()) {
            let place = FileId { layer, file };
            for product in &known.packages.products {
                merged
                    .entry(&product.id)
                    .and_modify(|(last, below)| {
                        *last = place;
                        below.change(product);
                    })
                    .or_insert_with(|| (place, product.clone()));
            }
        }
    }
    let merged = merged.into_values();
    let found = merged.filter_map(|(place, product)| Some((place, product.package()?)));
    found.collect()
}

/// The files of all merged layers that may have packages, by their sort keys. Hard links become
/// files of their layers.
fn package_files(layers: &mut [InventoryLayer]) -> BTreeMap<Vec<u8>, FileId> {
    let mut seen: BTreeMap<Vec<u8>, FileId> = BTreeMap::new();
    for layer in 0..layers.len() {
        let contents = Arc::clone(&layers[layer].contents);
        for gone in &contents.deleted {
            merge::delete(&mut seen, gone);
        }
        for (file, known) in contents.files.iter().enumerate() {
            let key = sort_key::for_layer_path(&known.path);
            if layer > 0 {
                merge::take_below(&mut seen, &key).for_each(drop);
            }
            seen.insert(key, FileId { layer, file });
        }
        for (path, target) in &contents.links {
            let key = sort_key::for_layer_path(path);
            let file = seen.get(&sort_key::for_layer_path(target)).copied();
            if seen.get(&key).is_some_and(|there| there.layer == layer) {
                continue;
            }
            merge::take_below(&mut seen, &key).for_each(drop);
            seen.remove(&key);
            // The base's files are not known here.
            let Some(FileId { layer: of, file }) = file else {
                continue;
            };
            let linked = LayerFileEntry {
                path: path.clone(),
                ..layers[of].contents.files[file].clone()
            };
            let files = &mut Arc::make_mut(&mut layers[layer].contents).files;
            let file = files.len();
            seen.insert(key, FileId { layer, file });
            files.push(linked);
        }
    }
    seen.retain(|_, place| layers[place.layer].contents.files[place.file].may_have_packages());
    seen
}

/// Files that are covered by lists of packages, by folded paths.
#[derive(Default)]
struct PackageFiles {
    explained: BTreeSet<String>,
    own: BTreeSet<String>,
}

impl PackageFiles {
    fn new(layers: &[InventoryLayer], seen: &BTreeMap<Vec<u8>, FileId>) -> Self {
        let mut package_files = Self::default();
        for place in seen.values() {
            let file = &layers[place.layer].contents.files[place.file];
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = |name: &String| fold(&format!("{folder}/{name}"));
            package_files
                .explained
                .extend(file.packages.explained.iter().map(path));
            package_files.own.extend(file.packages.own.iter().map(path));
        }
        package_files
    }

    /// The package of a file; none if a list already covers it.
    fn adjusted(&self, path: &str, found: &FoundPackage) -> Option<FoundPackage> {
        let of_dotnet = matches!(found.ecosystem, Ecosystem::NuGet | Ecosystem::Program);
        if !of_dotnet || (self.explained.is_empty() && self.own.is_empty()) {
            return Some(found.clone());
        }
        let key = fold(path);
        if self.explained.contains(&key) {
            return None;
        }
        let mut found = found.clone();
        if self.own.contains(&key) {
            found.ecosystem = Ecosystem::Program;
        }
        Some(found)
    }
}
