//! The entries of an index and of the indexes in it, which runtimes read, too.

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{Source, StoreError};
use crate::document::{
    Descriptor, ENTRIES_AT_ONCE, EntryCount, Index, MAX_DEPTH, Verbatim, too_deep,
};

/// What is behind an entry of an index.
pub enum EntryTarget<T> {
    /// Another index, whose entries take the place of this one.
    Index(Verbatim<Index>),
    /// What the reader makes of anything else.
    Items(Vec<T>),
}

/// Reads the entries of an index, for [`Source::entries`].
pub trait EntryReader: Sync {
    /// What it makes of an entry.
    type Item: Send;

    /// Reads an entry, of the index itself or of one in it. An error ends the reading.
    fn read(
        &self,
        entry: &Descriptor,
        is_nested: bool,
    ) -> impl Future<Output = Result<EntryTarget<Self::Item>, StoreError>> + Send;
}

impl Source {
    /// Reads the entries of an index from this store, with those of the indexes in it, in their
    /// order. Fails if they are too many, or nested too deeply.
    pub async fn entries<R: EntryReader>(
        &self,
        index: &Verbatim<Index>,
        reader: &R,
    ) -> Result<Vec<R::Item>, StoreError> {
        let walk = Walk {
            source: self,
            reader,
            count: EntryCount::default(),
        };
        walk.entries(index, 1).await
    }
}

struct Walk<'a, R> {
    source: &'a Source,
    reader: &'a R,
    count: EntryCount,
}

impl<R: EntryReader> Walk<'_, R> {
    fn entries<'r>(
        &'r self,
        index: &'r Verbatim<Index>,
        depth: usize,
    ) -> BoxFuture<'r, Result<Vec<R::Item>, StoreError>> {
        Box::pin(async move {
            self.check(index, depth)?;
            let mut reads = Vec::with_capacity(index.manifests.len());
            for entry in &index.manifests {
                reads.push(self.entry(entry, depth));
            }
            let found: Vec<Vec<R::Item>> = stream::iter(reads)
                .buffered(ENTRIES_AT_ONCE)
                .try_collect()
                .await?;
            Ok(found.into_iter().flatten().collect())
        })
    }

    fn check(&self, index: &Verbatim<Index>, depth: usize) -> Result<(), StoreError> {
        if depth > MAX_DEPTH {
            return Err(too_deep(index).into());
        }
        let counted = self.count.add(index);
        counted.map_err(|error| self.source.unusable(error))
    }

    async fn entry(&self, entry: &Descriptor, depth: usize) -> Result<Vec<R::Item>, StoreError> {
        match self.reader.read(entry, depth > 1).await? {
            EntryTarget::Items(items) => Ok(items),
            EntryTarget::Index(inner) => self.entries(&inner, depth + 1).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use wincimg_common::progress::Silent;

    use super::*;
    use crate::document::{Digest, ManifestFormat};
    use crate::remote::{RegistryClient, RegistryOptions};

    /// Reads an entry as the last letter of its digest, in upper case if it is nested.
    #[derive(Default)]
    struct Letters(HashMap<Digest, Verbatim<Index>>);

    impl EntryReader for Letters {
        type Item = char;

        async fn read(
            &self,
            entry: &Descriptor,
            is_nested: bool,
        ) -> Result<EntryTarget<char>, StoreError> {
            let letter = entry.digest.to_string().chars().last();
            let letter = letter.map(|it| {
                if is_nested {
                    it.to_ascii_uppercase()
                } else {
                    it
                }
            });
            Ok(match self.0.get(&entry.digest) {
                Some(index) => EntryTarget::Index(index.clone()),
                None => EntryTarget::Items(letter.into_iter().collect()),
            })
        }
    }

    impl Letters {
        /// Adds an index and returns its entry.
        fn add(&mut self, entries: Vec<Descriptor>) -> Descriptor {
            let index = index(entries);
            let entry = index.descriptor(index.media_type());
            self.0.insert(entry.digest.clone(), index);
            entry
        }
    }

    fn index(entries: Vec<Descriptor>) -> Verbatim<Index> {
        Verbatim::new(Index::new(ManifestFormat::Oci, entries)).unwrap()
    }

    fn image(letter: char) -> Descriptor {
        let digest = format!("sha256:{}", letter.to_string().repeat(64));
        Descriptor::new("", digest.parse().unwrap(), 1)
    }

    async fn read(entries: Vec<Descriptor>, reader: &Letters) -> Result<String, StoreError> {
        let registry = RegistryClient::new(RegistryOptions::default(), Arc::new(Silent)).unwrap();
        let source = Source::Registry(registry.repository(&"reg.example/app:1".parse().unwrap()));
        let items = source.entries(&index(entries), reader).await?;
        Ok(items.into_iter().collect())
    }

    #[tokio::test]
    async fn the_entries_of_an_inner_index_take_its_place() {
        let mut letters = Letters::default();
        let deepest = letters.add(vec![image('c')]);
        let inner = letters.add(vec![image('b'), deepest]);
        let entries = vec![image('a'), inner.clone(), image('d')];
        assert_eq!(read(entries, &letters).await.unwrap(), "aBCd");
        let deeper = letters.add(vec![inner]);
        let error = read(vec![deeper], &letters).await.unwrap_err();
        assert!(error.to_string().contains("nested too deeply"), "{error}");
    }

    #[tokio::test]
    async fn the_entries_of_all_indexes_count() {
        let mut letters = Letters::default();
        let inner = letters.add(vec![image('a'); 600]);
        assert!(read(vec![inner.clone()], &letters).await.is_ok());
        assert!(read(vec![inner.clone(), inner], &letters).await.is_err());
    }
}
