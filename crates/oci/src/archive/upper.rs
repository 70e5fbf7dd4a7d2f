//! Reads the upper layers of an image from a docker-archive while it is received. The archive
//! begins with the known base, gigabytes that are skipped.

use std::collections::HashSet;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use wincimg_common::diagnose::Problem;
use wincimg_common::files::{BufferedBlob, Spool};

use super::format::{Members, SavedImage, blob_member, normalised};
use crate::document::{Digest, Hasher, Image, ImageConfig, MAX_DOCUMENT, Verbatim};
use crate::local_images::ARCHIVE;
use crate::stream;

/// Larger files are on disk.
const IN_MEMORY: u64 = 256 * 1024;

/// An image's configuration, and its layers above another image.
#[derive(Debug)]
pub struct UpperLayers {
    /// The configuration.
    pub config: Verbatim<ImageConfig>,
    /// The layers, from the lowest on.
    pub layers: Vec<UpperLayer>,
}

/// A layer as it was saved.
#[derive(Debug)]
pub struct UpperLayer {
    /// Digest of its tar.
    pub diff_id: Digest,
    /// Its bytes, not verified; none if the image below has the same layer.
    pub bytes: Option<Arc<BufferedBlob>>,
}

impl UpperLayers {
    /// Reads an archive of one image on top of `below`; `name` is for messages. This uses the disk:
    /// call it outside of asynchronous code.
    pub fn read(name: &str, input: impl Read, below: &Image) -> Result<Self, Problem> {
        let archive = Archive::read(name, input, below)?;
        let saved = archive.document("manifest.json")?;
        let saved: Vec<SavedImage> = serde_json::from_slice(&saved)
            .map_err(|error| archive.broken(format!("its manifest.json is damaged: {error}")))?;
        let [image] = saved.as_slice() else {
            let count = saved.len();
            return Err(archive.broken(format!("it has {count} images: expected one")));
        };
        let config = archive.document(&image.config)?;
        let config = Verbatim::<ImageConfig>::parse(config).map_err(|source| {
            let (name, path) = (&image.config, archive.path.display());
            ARCHIVE.document(format!("{name} in {path}"), source)
        })?;
        let members = image.layers.as_deref().unwrap_or_default();
        let known = &below.config().rootfs.diff_ids;
        let diff_ids = &config.rootfs.diff_ids;
        if members.len() != diff_ids.len() || !diff_ids.starts_with(known) {
            return Err(archive.broken("its layers are not those of the image"));
        }
        let upper = members.iter().zip(diff_ids).skip(known.len());
        let layers = upper.map(|(member, diff_id)| {
            let bytes = archive.members.get(member).cloned();
            if bytes.is_none() && !known.contains(diff_id) {
                return Err(archive.lacks(member));
            }
            Ok(UpperLayer {
                diff_id: diff_id.clone(),
                bytes,
            })
        });
        let layers = layers.collect::<Result<_, _>>()?;
        Ok(Self { config, layers })
    }
}

/// The files of an archive, without those of known layers.
struct Archive {
    path: PathBuf,
    members: Members<Arc<BufferedBlob>>,
}

impl Archive {
    fn read(name: &str, input: impl Read, below: &Image) -> Result<Self, Problem> {
        let mut archive = Self {
            path: name.into(),
            members: Members::new(),
        };
        let blobs = below.manifest().layers.iter().map(|layer| &layer.digest);
        let known: HashSet<&Digest> = blobs.chain(&below.config().rootfs.diff_ids).collect();
        let skipped: HashSet<String> = known.iter().map(|digest| blob_member(digest)).collect();
        let unreadable = ARCHIVE.unreadable(&archive.path);
        let mut tar = tar::Archive::new(input);
        for entry in tar.entries().map_err(&unreadable)? {
            let mut entry = entry.map_err(&unreadable)?;
            let kind = entry.header().entry_type();
            let name = normalised(&String::from_utf8_lossy(&entry.path_bytes()));
            if archive.members.add_link(&name, &entry) {
                continue;
            }
            if (kind.is_file() || kind.is_contiguous()) && !skipped.contains(&name) {
                let bytes = if entry.size() <= IN_MEMORY {
                    let mut bytes = Vec::new();
                    entry.read_to_end(&mut bytes).map_err(&unreadable)?;
                    BufferedBlob::Memory(bytes.into())
                } else {
                    let folder = std::env::temp_dir();
                    let unwritable = stream::unwritable(&folder);
                    let spool = Spool::in_folder(&folder).map_err(&unwritable)?;
                    // An older daemon does not name layers by their digests.
                    let mut hasher = Hasher::default();
                    let copied = hasher.copy(&mut entry, &mut spool.file());
                    copied.map_err(unwritable)?;
                    if known.contains(&hasher.finish()) {
                        continue;
                    }
                    BufferedBlob::Disk(spool)
                };
                archive.members.files.insert(name, Arc::new(bytes));
            }
        }
        Ok(archive)
    }

    fn document(&self, name: &str) -> Result<Bytes, Problem> {
        let file = self.members.get(name).ok_or_else(|| self.lacks(name))?;
        let bytes = file.bytes(MAX_DOCUMENT);
        bytes.map_err(ARCHIVE.unreadable(&self.path))
    }

    fn lacks(&self, name: &str) -> Problem {
        ARCHIVE.unusable(&self.path, format!("lacks {name}"))
    }

    fn broken(&self, reason: impl fmt::Display) -> Problem {
        ARCHIVE.invalid(&self.path, reason)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use serde_json::json;

    use super::*;
    use crate::document::{Descriptor, History, ManifestFormat, Platform, sha256};

    fn on(image: &Image, tar: &[u8]) -> Image {
        let diff_id = sha256(tar);
        let blob = Descriptor::new("x", sha256(&[b"gzip", tar].concat()), 9);
        let layered = image.append_layer(blob, diff_id, History::default());
        layered.unwrap()
    }

    /// A base of one layer, and an image with one more.
    fn images() -> (Image, Image) {
        let platform = Platform::windows("10.0.17763.973");
        let image = Image::empty(ManifestFormat::Oci, platform).unwrap();
        let base = on(&image, &base_tar());
        let upper = on(&base, b"upper");
        (base, upper)
    }

    /// Larger than what stays in memory.
    fn base_tar() -> Vec<u8> {
        vec![7; 300 * 1024]
    }

    fn archive(files: &[(&str, &[u8])], link: Option<(&str, &str)>) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, name, *bytes).unwrap();
        }
        if let Some((name, target)) = link {
            let mut header = tar::Header::new_gnu();
            header.set_size(0);
            header.set_entry_type(tar::EntryType::Symlink);
            tar.append_link(&mut header, name, target).unwrap();
        }
        tar.into_inner().unwrap()
    }

    fn text(layer: &UpperLayer) -> String {
        let bytes = layer.bytes.as_ref().unwrap();
        io::read_to_string(bytes.open().unwrap()).unwrap()
    }

    #[test]
    fn only_the_layers_above_are_kept_in_old_and_new_archives() {
        let (base, upper) = images();
        let config = upper.config().bytes();
        let listed = |layers: [&str; 2]| json!([{"Config": "c.json", "Layers": layers}]);
        let old = listed(["a/layer.tar", "b/layer.tar"]).to_string();
        let blobs = upper.config().rootfs.diff_ids.iter().map(blob_member);
        let blobs: Vec<String> = blobs.collect();
        let new = listed([&blobs[0], &blobs[1]]).to_string();
        let tar = base_tar();
        for bytes in [
            archive(
                &[
                    ("a/layer.tar", &tar),
                    ("0/layer.tar", b"upper"),
                    ("c.json", config),
                    ("manifest.json", old.as_bytes()),
                ],
                Some(("b/layer.tar", "../0/layer.tar")),
            ),
            archive(
                &[
                    (&blobs[0], b"not read"),
                    (&blobs[1], b"upper"),
                    ("c.json", config),
                    ("manifest.json", new.as_bytes()),
                ],
                None,
            ),
        ] {
            let read = UpperLayers::read("x", bytes.as_slice(), &base).unwrap();
            assert_eq!(read.config.digest(), upper.config().digest());
            let [layer] = read.layers.as_slice() else {
                panic!("{read:?}");
            };
            assert_eq!(text(layer), "upper");
        }
    }

    #[test]
    fn a_layer_that_the_image_below_has_too_is_named() {
        let (base, _) = images();
        let twice = on(&base, &base_tar());
        let blob = blob_member(&twice.config().rootfs.diff_ids[0]);
        let listed = json!([{"Config": "c.json", "Layers": [blob, blob]}]).to_string();
        let bytes = archive(
            &[
                (&blob, &base_tar()),
                ("c.json", twice.config().bytes()),
                ("manifest.json", listed.as_bytes()),
            ],
            None,
        );
        let read = UpperLayers::read("x", bytes.as_slice(), &base).unwrap();
        assert_eq!(read.layers.len(), 1);
        assert!(read.layers[0].bytes.is_none());
    }

    #[test]
    fn other_archives_are_refused() {
        let (base, upper) = images();
        let config = upper.config().bytes();
        let one = json!([{"Config": "c.json", "Layers": ["a", "b"]}]).to_string();
        let two = json!([{"Config": "c.json"}, {"Config": "c.json"}]).to_string();
        for (below, manifest) in [(&base, &one), (&base, &two), (&on(&upper, b"x"), &one)] {
            let bytes = archive(
                &[("c.json", config), ("manifest.json", manifest.as_bytes())],
                None,
            );
            assert!(UpperLayers::read("x", bytes.as_slice(), below).is_err());
        }
        assert!(UpperLayers::read("x", &[][..], &base).is_err());
    }
}
