//! A layer's sorted entries, shared by its stamp, the digest of its tar and its blob.

use std::cell::OnceCell;
use std::io::Write;
use std::thread;

use super::content::{Layer, TarItem};
use super::error::LayerError;
use super::order;
use super::pipeline::{Blocks, WriteOptions, WrittenLayer};

/// A layer's entries with their parents, checked, in the order of their paths.
pub struct SortedLayer<'a> {
    pub(super) layer: &'a Layer,
    pub(super) items: Vec<TarItem<'a>>,
    /// Length of each entry's content, if all are known.
    pub(super) lengths: Option<Vec<u64>>,
    /// Indexes of the entries in the order of the stream.
    stream: OnceCell<Vec<usize>>,
}

impl Layer {
    /// Sorts the entries; an error if they are invalid on Windows.
    pub fn sort_entries(&self) -> Result<SortedLayer<'_>, LayerError> {
        Ok(SortedLayer {
            layer: self,
            items: self.items()?,
            lengths: None,
            stream: OnceCell::new(),
        })
    }

    /// Writes the layer as a blob to `sink`. Equal layers become equal bytes, on any number of
    /// cores; after an error the sink holds an unusable part of a blob.
    pub fn write<W: Write + Send>(
        &self,
        sink: W,
        options: &WriteOptions,
    ) -> Result<WrittenLayer, LayerError> {
        self.sort_entries()?.write(sink, options)
    }
}

impl<'a> SortedLayer<'a> {
    /// The same as [`Layer::write`].
    pub fn write<W: Write + Send>(
        &self,
        mut sink: W,
        options: &WriteOptions,
    ) -> Result<WrittenLayer, LayerError> {
        thread::scope(|scope| {
            let mut blocks = Blocks::new(scope, &mut sink, options);
            self.stream_to(&mut blocks)?;
            blocks.finish()
        })
    }

    /// See [`Layer::is_larger_than`].
    pub fn is_larger_than(&self, bytes: u64) -> bool {
        self.layer.is_larger_than(bytes)
    }

    /// The entries in the order of the stream.
    pub(super) fn in_stream(&self) -> impl Iterator<Item = &TarItem<'a>> {
        let stream = self.stream.get_or_init(|| {
            let length = |place: usize| match &self.lengths {
                Some(lengths) => lengths[place],
                None => self.items[place].length(),
            };
            order::stream_order(&self.items, length)
        });
        stream.iter().map(|place| &self.items[*place])
    }
}
