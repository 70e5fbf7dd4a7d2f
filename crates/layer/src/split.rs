//! Split of a layer, so that large unchanged parts need not be written and pushed again when
//! another part changes.

use std::cmp::Reverse;

use wincimg_windows::path::ImagePath;

use super::content::{EntryContent, Layer, LayerEntry, is_below};
use super::error::LayerError;
use super::path::LayerPath;

/// Maximum number of parts, without the rest. More would gain little.
const MOST_PARTS: usize = 8;

/// A part of a layer: a path with everything below it, or the rest.
pub type LayerPart<'p> = (Option<&'p ImagePath>, Layer);

impl Layer {
    /// Splits the layer into several that are equivalent when stacked. A path with everything below
    /// it is a part if its files have `least` bytes; the rest is last.
    pub fn split<'p>(
        mut self,
        places: impl IntoIterator<Item = &'p ImagePath>,
        least: u64,
    ) -> Result<Vec<LayerPart<'p>>, LayerError> {
        if !self.secured.is_empty() || !self.is_larger_than(least) {
            return Ok(vec![(None, self)]);
        }
        // Conflicts are detected before the split.
        self.items()?;
        let mut parts = LayerSlice::at_each(places)?;
        let mut entries = Vec::with_capacity(self.files.len());
        for entry in std::mem::take(&mut self.files) {
            let key = entry.path.key();
            let holders = parts
                .iter()
                .enumerate()
                .filter(|(_, part)| part.contains(&key));
            let part = holders.max_by_key(|(_, part)| part.key.len());
            let part = part.map(|(number, _)| number);
            if let (Some(part), EntryContent::File(source)) = (part, &entry.content) {
                parts[part].size += source.length();
            }
            entries.push((part, key, entry));
        }
        let mut large: Vec<usize> = (0..parts.len()).collect();
        large.retain(|number| parts[*number].size >= least);
        large.sort_by_key(|number| Reverse(parts[*number].size));
        for number in large.into_iter().take(MOST_PARTS) {
            parts[number].layer = Some(Self::new(self.timestamp));
        }
        let mut folders: Vec<(String, LayerEntry)> = Vec::new();
        for (part, key, entry) in entries {
            let layer = part.and_then(|part| parts[part].layer.as_mut());
            if let Some(layer) = layer {
                layer.files.push(entry);
            } else if entry.content == EntryContent::Directory
                && parts.iter().any(|part| part.is_below(&key))
            {
                folders.push((key, entry));
            } else {
                self.files.push(entry);
            }
        }
        self.add_folders_above(&folders);
        let mut layers = Vec::new();
        for part in parts {
            if let Some(mut layer) = part.layer {
                layer.add_folders_above(&folders);
                layers.push((Some(part.place), layer));
            }
        }
        if !self.is_empty() {
            layers.push((None, self));
        }
        if let [(place, _)] = layers.as_mut_slice() {
            *place = None;
        }
        Ok(layers)
    }

    /// Adds the folders that contain entries of the layer.
    fn add_folders_above(&mut self, folders: &[(String, LayerEntry)]) {
        let keys = self.files.iter().map(|entry| entry.path.key());
        let keys: Vec<String> = keys.collect();
        for (folder, entry) in folders {
            if keys.iter().any(|key| is_below(key, folder)) {
                self.files.push(entry.clone());
            }
        }
    }
}

struct LayerSlice<'p> {
    place: &'p ImagePath,
    /// Folded path; empty for the drive itself.
    key: String,
    size: u64,
    /// The layer, if it is a part.
    layer: Option<Layer>,
}

impl<'p> LayerSlice<'p> {
    /// A slice for each place, but one for equal places.
    fn at_each(places: impl IntoIterator<Item = &'p ImagePath>) -> Result<Vec<Self>, LayerError> {
        let mut slices: Vec<Self> = Vec::new();
        for place in places {
            let slice = Self::at(place)?;
            if !slices.iter().any(|known| known.key == slice.key) {
                slices.push(slice);
            }
        }
        Ok(slices)
    }

    fn at(place: &'p ImagePath) -> Result<Self, LayerError> {
        let key = match place.components() {
            [] => String::new(),
            _ => LayerPath::try_from(place)?.key(),
        };
        Ok(Self {
            place,
            key,
            size: 0,
            layer: None,
        })
    }

    fn contains(&self, key: &str) -> bool {
        self.key.is_empty() || self.key == key || is_below(key, &self.key)
    }

    /// Returns true if it is a separate layer inside this folder.
    fn is_below(&self, folder: &str) -> bool {
        self.layer.is_some() && is_below(&self.key, folder)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const LEAST: u64 = 1000;

    fn path(text: &str) -> ImagePath {
        text.parse().unwrap()
    }

    fn layer(files: &[(&str, usize)]) -> Layer {
        let mut layer = Layer::new(7);
        for (path, size) in files {
            layer.file(path.parse().unwrap(), vec![b'x'; *size]);
        }
        layer
    }

    fn names(layer: &Layer) -> Vec<String> {
        let items = layer.items().unwrap();
        items.into_iter().map(|item| item.name).collect()
    }

    fn split(layer: &Layer, places: &[ImagePath]) -> Vec<(Option<String>, Vec<String>)> {
        let parts = layer.clone().split(places, LEAST).unwrap();
        let reported = parts
            .iter()
            .map(|(place, part)| (place.map(ToString::to_string), names(part)));
        reported.collect()
    }

    #[test]
    fn what_is_large_at_a_place_comes_apart_and_keeps_its_folders() {
        let mut whole = layer(&[
            ("opt/app/lib/a.dll", 900),
            ("Opt/App/lib/b/c.dll", 900),
            ("opt/app/web.config", 10),
            ("tools/tool.exe", 2000),
        ]);
        whole.directory("opt".parse().unwrap());
        whole.directory("opt/app".parse().unwrap());
        whole.hive("System_Delta".parse().unwrap(), b"regf".as_slice());
        let places = [r"C:\opt\app", r"C:\opt\app\LIB", r"C:\tools\tool.exe"].map(path);
        let parts = split(&whole, &places);
        let places: Vec<_> = parts.iter().map(|(place, _)| place.as_deref()).collect();
        let expected = [Some(r"C:\opt\app\LIB"), Some(r"C:\tools\tool.exe"), None];
        assert_eq!(places, expected);
        let expected = "Hives Files Files/opt Files/opt/app Files/opt/app/lib \
                        Files/opt/app/lib/a.dll Files/opt/app/lib/b Files/opt/app/lib/b/c.dll";
        assert_eq!(parts[0].1.join(" "), expected);
        let expected = "Hives Hives/System_Delta Files Files/opt Files/opt/app \
                        Files/opt/app/web.config";
        assert_eq!(parts[2].1.join(" "), expected);
        let together = parts.into_iter().flat_map(|(_, names)| names);
        let together: BTreeSet<String> = together.collect();
        assert_eq!(together, names(&whole).into_iter().collect());
    }

    #[test]
    fn what_is_small_or_alone_stays_as_it_is() {
        let app = [path(r"C:\app")];
        for (files, places) in [
            (vec![("app/a", 400), ("b", 300)], &app[..]),
            (vec![("app/a", 400), ("b", 3000)], &app),
            (vec![("app/a", 4000), ("app/b/c", 300)], &app),
            (vec![("app/a", 4000), ("b", 300)], &[]),
        ] {
            let whole = layer(&files);
            let parts = whole.clone().split(places, LEAST).unwrap();
            assert_eq!(parts.len(), 1, "{files:?}");
            assert_eq!(parts[0].0, None);
            assert_eq!(names(&parts[0].1), names(&whole));
        }
    }

    #[test]
    fn the_drive_is_a_place_too_and_the_largest_come_first() {
        let names: Vec<String> = (0..12).map(|number| format!("f{number}")).collect();
        let sized = names.iter().map(String::as_str).zip(1000..);
        let files: Vec<(&str, usize)> = sized.collect();
        let places = names.iter().map(|name| path(&format!(r"C:\{name}")));
        let places: Vec<ImagePath> = places.collect();
        let parts = split(&layer(&files), &places);
        assert_eq!(parts.len(), MOST_PARTS + 1);
        assert_eq!(parts[0].0.as_deref(), Some(r"C:\f4"));
        assert_eq!(parts[MOST_PARTS].1.len(), 2 + 4);
        let parts = split(&layer(&files), &[path(r"C:\"), path(r"C:\f3")]);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[1].1, ["Hives", "Files", "Files/f3"]);
    }

    #[test]
    fn what_excludes_each_other_is_refused_as_before() {
        let whole = layer(&[("app", 4000), ("app/lib", 4000)]);
        let error = whole.split(&[path(r"C:\app\lib")], LEAST).unwrap_err();
        let error = error.to_string();
        assert!(error.ends_with("which is not a directory"), "{error}");
    }
}
