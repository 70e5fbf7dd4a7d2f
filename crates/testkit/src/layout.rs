//! OCI layouts as tests read them: independently of the code that writes them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

fn manifest_in(layout: &Path) -> Value {
    let mut document = json_in(&layout.join("index.json"));
    while let Some(first) = document["manifests"].get(0) {
        document = json_in(&blob_in(layout, &first["digest"]));
    }
    document
}

pub fn config_in(layout: &Path) -> Value {
    json_in(&blob_in(layout, &manifest_in(layout)["config"]["digest"]))
}

/// The layer blobs of the one image in a layout, the base's first.
pub fn layers_in(layout: &Path) -> Vec<PathBuf> {
    let manifest = manifest_in(layout);
    let layers = manifest["layers"].as_array().unwrap().iter();
    layers
        .map(|layer| blob_in(layout, &layer["digest"]))
        .collect()
}

pub fn blob_in(layout: &Path, digest: &Value) -> PathBuf {
    let digest = digest.as_str().unwrap().replace(':', "/");
    layout.join("blobs").join(digest)
}

pub fn json_in(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub struct Entry {
    /// Its path, without a slash at the end.
    pub path: String,
    pub kind: tar::EntryType,
    /// The target of a link.
    pub target: Option<String>,
    /// The PAX records, by their keys.
    pub records: BTreeMap<String, String>,
    pub bytes: Vec<u8>,
}

impl Entry {
    pub fn security(&self) -> Option<Vec<u8>> {
        let record = self.records.get("MSWINDOWS.rawsd")?;
        Some(STANDARD.decode(record).unwrap())
    }
}

/// The entries of a gzipped layer in a file.
pub fn entries_in(layer: &Path) -> Vec<Entry> {
    entries_of(&fs::read(layer).unwrap())
}

pub fn entries_of(layer: &[u8]) -> Vec<Entry> {
    let mut tar = tar::Archive::new(GzDecoder::new(layer));
    let entries = tar.entries().unwrap();
    entries.map(|entry| read(entry.unwrap())).collect()
}

fn read(mut entry: tar::Entry<'_, GzDecoder<&[u8]>>) -> Entry {
    let records = entry.pax_extensions().unwrap().into_iter().flatten();
    let records = records.map(|record| {
        let record = record.unwrap();
        let value = String::from_utf8_lossy(record.value_bytes());
        (record.key().unwrap().to_owned(), value.into_owned())
    });
    let records = records.collect();
    let path = entry.path().unwrap().display().to_string();
    let target = entry.link_name().unwrap();
    let target = target.map(|target| target.display().to_string());
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).unwrap();
    Entry {
        path: path.trim_end_matches('/').to_owned(),
        kind: entry.header().entry_type(),
        target,
        records,
        bytes,
    }
}
