//! A layer that is written, compressed and hashed, on its way to its registry meanwhile; or found
//! where it is already.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use wincimg_common::progress::Progress;
use wincimg_layer::{BlobBuffer, BufferedBlob, Compression, Layer, WriteOptions};
use wincimg_oci::document::{Descriptor, Digest, DocumentError, Image, ManifestFormat};
use wincimg_oci::store::Source;

use super::error::DirectError;
use super::layer_reuse::{self, LayerMatch, LayerReuse, ReusableLayer, WORTH_A_LOOK};
use super::streamed::{LayerStreams, StreamedLayer};

/// A layer up to this size never touches the disk.
const IN_MEMORY: usize = 4 << 20;

/// How an image is put together.
#[derive(Clone, Default)]
pub(crate) struct AssembleOptions {
    /// The compression of new layers.
    pub compression: Compression,
    /// The time that everything new carries; the base's own where absent.
    pub created: Option<Timestamp>,
    /// Set from elsewhere, this ends the work soon.
    pub cancelled: Arc<AtomicBool>,
    /// Where layers may be already.
    pub held: Arc<LayerReuse>,
    /// Where large layers go while they are written.
    pub streams: Option<Arc<LayerStreams>>,
}

/// A layer that is ready to be sent, to as many places as need it.
#[derive(Debug)]
pub(crate) struct AddedLayer {
    digest: Digest,
    size: u64,
    diff_id: Digest,
    compression: Compression,
    /// True if others may look for it.
    is_noted: bool,
    bytes: LayerBytes,
}

/// Where a layer's bytes are, compressed.
#[derive(Debug)]
pub(crate) enum LayerBytes {
    /// They were written now.
    Here(BufferedBlob),
    /// They are somewhere already.
    There(Source),
}

impl AddedLayer {
    /// How manifests in one flavour's words name the layer.
    pub(crate) fn descriptor(&self, flavour: ManifestFormat) -> Descriptor {
        let media_type = match (self.compression, flavour) {
            (Compression::Gzip, ManifestFormat::Docker) => ManifestFormat::Docker.layer_gzip(),
            (compression, _) => compression.oci_media_type(),
        };
        Descriptor::new(media_type, self.digest.clone(), self.size)
    }

    /// What the history says of a layer that others may look for.
    pub(super) fn note(&self) -> Option<String> {
        self.is_noted
            .then(|| layer_reuse::note(&self.diff_id, self.compression))
    }

    /// An image in words that have one for the layer: Docker has no type for zstd, and skopeo
    /// refuses OCI's in a manifest of Docker's.
    pub(super) fn to_supported_format(&self, image: Image) -> Result<Image, DocumentError> {
        match self.compression {
            Compression::Gzip => Ok(image),
            Compression::Zstd => image.in_flavour(ManifestFormat::Oci),
        }
    }

    /// The digest of the layer's bytes, compressed.
    pub(crate) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The digest of the layer's tar.
    pub(crate) fn diff_id(&self) -> Digest {
        self.diff_id.clone()
    }

    /// Where the layer's bytes are, compressed.
    pub(crate) fn bytes(&self) -> &LayerBytes {
        &self.bytes
    }

    /// The same bytes where they are here, for whoever reads them on a thread of its own.
    pub(crate) fn open(&self) -> Option<io::Result<Box<dyn Read + Send>>> {
        let LayerBytes::Here(blob) = &self.bytes else {
            return None;
        };
        Some(match blob {
            BufferedBlob::Memory(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
            BufferedBlob::Disk(spool) => match File::open(spool.path()) {
                Ok(file) => Ok(Box::new(file)),
                Err(error) => Err(error),
            },
        })
    }
}

/// Writes a layer, unless it is somewhere already.
pub(super) fn write(
    layer: &Layer,
    what: &str,
    options: &AssembleOptions,
    progress: &dyn Progress,
) -> Result<AddedLayer, DirectError> {
    let task = progress.task(&format!("layer of {what}"), None);
    let how = WriteOptions {
        compression: options.compression,
        threads: None,
        cancelled: &options.cancelled,
        progress: task.as_ref(),
    };
    let mut layer = layer.sort_entries()?;
    let (found, stamp) = options.held.find(&mut layer, &how)?;
    let is_changed = match found {
        LayerMatch::There(held) => {
            task.done("unchanged");
            return Ok(held.into_added());
        }
        LayerMatch::Changed => true,
        LayerMatch::Unknown => false,
    };
    task.set_position(0);
    let blob = BlobBuffer::new(IN_MEMORY, std::env::temp_dir());
    let mut blob = StreamedLayer::new(blob, options.streams.clone(), is_changed);
    let written = layer.write(&mut blob, &how)?;
    options.held.remember(stamp.as_ref(), &written.diff_id);
    task.done("written");
    let blob = blob.finish(&written.digest);
    Ok(AddedLayer {
        digest: written.digest,
        size: written.size,
        diff_id: written.diff_id,
        compression: written.compression,
        is_noted: written.uncompressed_size > WORTH_A_LOOK,
        bytes: LayerBytes::Here(blob),
    })
}

impl ReusableLayer {
    fn into_added(self) -> AddedLayer {
        AddedLayer {
            digest: self.descriptor.digest,
            size: self.descriptor.size,
            diff_id: self.diff_id,
            compression: self.compression,
            is_noted: true,
            bytes: LayerBytes::There(self.source),
        }
    }
}
