//! Adds delta hives to a written layer; its other bytes stay as they are.

use std::io::{self, Read, Write};
use std::thread;

use serde::{Deserialize, Serialize};

use super::content::Layer;
use super::error::LayerError;
use super::header;
use super::pipeline::{Blocks, Stream, WriteOptions, WrittenLayer};
use super::tar_stream::padding;
use crate::archive::tar::{TarEntry, TarEntryKind, TarReader, decompress};

const NAME: &str = "Hives";

/// The `Hives` directory of a written layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiveFolder {
    /// Names of the files in it.
    files: Vec<String>,
    /// Offset of the end of its entry in the decompressed layer, if it has one.
    end: Option<u64>,
}

impl HiveFolder {
    /// Takes note of an entry that a reader just returned, if it is part of the directory.
    pub fn note(&mut self, entry: &TarEntry, reader: &TarReader<'_>) {
        let (top, below) = entry.path.split_once('/').unwrap_or((&entry.path, ""));
        if !top.eq_ignore_ascii_case(NAME) {
            return;
        }
        match entry.kind {
            TarEntryKind::Directory if below.is_empty() => {
                self.end.get_or_insert(reader.position());
            }
            TarEntryKind::File => self.files.push(below.to_owned()),
            _ => {}
        }
    }

    /// Returns true if the layer has no hives.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns true if the layer has the hive of that name.
    pub fn has(&self, name: &str) -> bool {
        self.files.iter().any(|it| it.eq_ignore_ascii_case(name))
    }

    /// Writes the layer that this was read from, with the hives of `added` besides its own.
    pub fn write_with<W: Write + Send>(
        &self,
        layer: impl Read + Send,
        added: &Layer,
        mut sink: W,
        options: &WriteOptions,
    ) -> Result<WrittenLayer, LayerError> {
        let mut tar = decompress(layer).map_err(LayerError::Existing)?;
        thread::scope(|scope| {
            let mut blocks = Blocks::new(scope, &mut sink, options);
            let before = self.end.unwrap_or_default();
            let copied = copy(&mut (&mut tar).take(before), &mut blocks)?;
            if copied < before {
                return Err(LayerError::Existing(io::ErrorKind::UnexpectedEof.into()));
            }
            self.write_hives(added, &mut blocks)?;
            copy(&mut tar, &mut blocks)?;
            blocks.finish()
        })
    }

    fn write_hives(&self, added: &Layer, blocks: &mut impl Stream) -> Result<(), LayerError> {
        let mut headers = Vec::new();
        for item in added.items()? {
            let is_folder = item.name == NAME;
            let is_hive = item.name.starts_with("Hives/");
            if !(is_hive || is_folder && self.end.is_none()) {
                continue;
            }
            let content = item.bytes().unwrap_or_default();
            header::encode(&item, content.len() as u64, added.timestamp, &mut headers);
            for part in [&headers, content, padding(content.len() as u64)] {
                blocks.write(part)?;
            }
        }
        Ok(())
    }
}

/// Writes a finished layer, compressed or not, as the options say.
pub fn recompress<W: Write + Send>(
    layer: impl Read + Send,
    mut sink: W,
    options: &WriteOptions,
) -> Result<WrittenLayer, LayerError> {
    let mut tar = decompress(layer).map_err(LayerError::Existing)?;
    thread::scope(|scope| {
        let mut blocks = Blocks::new(scope, &mut sink, options);
        copy(&mut tar, &mut blocks)?;
        blocks.finish()
    })
}

/// Copies a reader to its end, and returns the number of bytes.
fn copy(source: &mut dyn Read, blocks: &mut impl Stream) -> Result<u64, LayerError> {
    let mut copied = 0;
    loop {
        let read = match source.read(blocks.room()?) {
            Ok(0) => return Ok(copied),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(LayerError::Existing(error)),
        };
        blocks.advance(read);
        copied += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::archive::tar::Limits;

    fn blob(layer: &Layer) -> Vec<u8> {
        let mut blob = Vec::new();
        layer.write(&mut blob, &WriteOptions::default()).unwrap();
        blob
    }

    fn folder_of(blob: &[u8]) -> HiveFolder {
        let mut reader = TarReader::new(blob, Limits::default()).unwrap();
        let mut folder = HiveFolder::default();
        while let Some(entry) = reader.next_entry().unwrap() {
            folder.note(&entry, &reader);
        }
        folder
    }

    fn with(blob: &[u8], added: &Layer) -> Vec<u8> {
        let mut sink = Vec::new();
        let options = WriteOptions::default();
        let folder = folder_of(blob);
        folder.write_with(blob, added, &mut sink, &options).unwrap();
        sink
    }

    fn hives(layer: &mut Layer, names: &[&str]) {
        for name in names {
            layer.hive(name.parse().unwrap(), name.as_bytes().to_vec());
        }
    }

    fn entries(blob: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut reader = TarReader::new(blob, Limits::default()).unwrap();
        let mut entries = Vec::new();
        while let Some(entry) = reader.next_entry().unwrap() {
            let content = reader.content().unwrap();
            entries.push((entry.path, content));
        }
        entries
    }

    #[test]
    fn a_layer_with_added_hives_is_that_written_with_them() {
        let mut layer = Layer::new(7);
        layer.file("app/a.txt".parse().unwrap(), vec![1; 700]);
        let before = blob(&layer);
        assert!(folder_of(&before).is_empty());
        let names = ["A_Delta", "B_Delta"];
        let mut added = Layer::new(7);
        hives(&mut added, &names);
        hives(&mut layer, &names);
        assert_eq!(with(&before, &added), blob(&layer));
    }

    #[test]
    fn a_layer_without_the_folder_gets_it() {
        let mut layer = Layer::new(7);
        layer.set_bottom();
        layer.file("a.txt".parse().unwrap(), b"a".to_vec());
        let mut added = Layer::new(7);
        hives(&mut added, &["A_Delta"]);
        let found = entries(&with(&blob(&layer), &added));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Hives", "Hives/A_Delta", "Files", "Files/a.txt"]);
    }

    #[test]
    fn own_hives_stay_and_a_cut_layer_is_an_error() {
        let mut layer = Layer::new(7);
        hives(&mut layer, &["System_Delta"]);
        let before = blob(&layer);
        let folder = folder_of(&before);
        assert!(folder.has("SYSTEM_DELTA") && !folder.has("Sam_Delta"));
        let mut added = Layer::new(7);
        hives(&mut added, &["Sam_Delta"]);
        let found = entries(&with(&before, &added));
        let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["Files", "Hives", "Hives/Sam_Delta", "Hives/System_Delta"]
        );
        let options = WriteOptions::default();
        let cut = &before[..before.len() / 2];
        let error = folder.write_with(cut, &added, io::sink(), &options);
        assert!(matches!(error, Err(LayerError::Existing(_))), "{error:?}");
    }

    proptest! {
        #[test]
        fn nothing_else_of_a_layer_changes(
            sizes in prop::collection::vec(0usize..3000, 0..12),
            has_folder: bool,
        ) {
            let mut layer = Layer::new(3);
            if !has_folder {
                layer.set_bottom();
            }
            for (number, size) in sizes.iter().enumerate() {
                layer.file(format!("f{number}").parse().unwrap(), vec![7; *size]);
            }
            let before = blob(&layer);
            let mut added = Layer::new(3);
            hives(&mut added, &["A_Delta", "B_Delta"]);
            let is_kept = |(name, _): &(String, Vec<u8>)| !name.starts_with("Hives");
            let kept = |blob: &[u8]| entries(blob).into_iter().filter(is_kept).collect::<Vec<_>>();
            let after = with(&before, &added);
            prop_assert_eq!(kept(&after), kept(&before));
            prop_assert_eq!(entries(&after).len(), kept(&before).len() + 3);
        }
    }
}
