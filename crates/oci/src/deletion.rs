//! Deletes images from registries and layouts, after finding out what else has them.

use std::fmt;

use futures_util::{StreamExt, TryStreamExt, stream};
use wincimg_common::diagnose::{Blame, Problem};

use crate::document::{Descriptor, Digest, Document, media_type};
use crate::remote::RegistryError;
use crate::store::{Source, StoreError};

/// Number of tags that are looked up in parallel.
const PARALLEL: usize = 8;

/// An image to be deleted.
#[derive(Debug)]
pub struct Deletion {
    place: Source,
    /// The digest of the image or index.
    pub digest: Digest,
    /// The tag to be deleted; none if the digest was named.
    pub tag: Option<String>,
    /// Other tags of the digest.
    pub other_tags: Vec<String>,
    /// Tags of indexes that list the digest.
    pub indexes: Vec<String>,
}

impl Deletion {
    /// Finds the image that a tag or digest names, and everything else that names it.
    pub async fn new(source: &Source, name: Option<&str>) -> Result<Self, StoreError> {
        let document = source.resolve(name).await?;
        let digest = document.digest().clone();
        let is_digest = name.is_some_and(|name| name.parse::<Digest>().is_ok());
        let mut deletion = Self {
            place: source.clone(),
            digest,
            tag: (!is_digest).then(|| name.unwrap_or("latest").to_owned()),
            other_tags: Vec::new(),
            indexes: Vec::new(),
        };
        let tags: Vec<(String, Option<Descriptor>)> = match source {
            Source::Registry(repository) => {
                let tags = repository.tags().await?.into_iter();
                tags.map(|tag| (tag, None)).collect()
            }
            Source::Layout(layout) => {
                let tags = layout.tags().await?;
                if name.is_none() {
                    // Of several tags of the only image, none is meant.
                    deletion.tag = match tags.as_slice() {
                        [(tag, _)] => Some(tag.clone()),
                        _ => None,
                    };
                }
                let tags = tags.into_iter();
                tags.map(|(tag, entry)| (tag, Some(entry))).collect()
            }
            Source::Archive(_) | Source::Loose(_) => return Err(deletion.refused()),
        };
        let own = deletion.tag.as_deref();
        let digest = &deletion.digest;
        let others = tags.iter().filter(|(tag, _)| Some(tag.as_str()) != own);
        let looks = others.map(|(tag, entry)| async move {
            let use_of = use_of(source, tag, entry.as_ref(), digest).await?;
            Ok::<_, StoreError>((tag.clone(), use_of))
        });
        let looks: Vec<_> = looks.collect();
        let found: Vec<_> = stream::iter(looks).buffered(PARALLEL).try_collect().await?;
        for (tag, use_of) in found {
            match use_of {
                TagUse::Names => deletion.other_tags.push(tag),
                TagUse::Lists => deletion.indexes.push(tag),
                TagUse::None => {}
            }
        }
        Ok(deletion)
    }

    /// Returns true if something else has the digest, which then stays.
    pub fn is_shared(&self) -> bool {
        !self.other_tags.is_empty() || !self.indexes.is_empty()
    }

    /// Deletes the tag; the digest too, unless it is shared and `with_digest` is false.
    pub async fn run(&self, with_digest: bool) -> Result<(), StoreError> {
        match &self.place {
            Source::Registry(repository) => match &self.tag {
                Some(tag) if self.is_shared() && !with_digest => {
                    let deleted = repository.delete_manifest(tag).await;
                    deleted.map_err(|error| self.tag_error(error))
                }
                _ => Ok(repository.delete_manifest(self.digest.as_ref()).await?),
            },
            Source::Layout(layout) => {
                let tag = self.tag.clone().filter(|_| !with_digest);
                layout.remove(&self.digest, tag).await
            }
            Source::Archive(_) | Source::Loose(_) => Err(self.refused()),
        }
    }

    /// `tagged 1.4, latest and in the index of 1`.
    pub fn others(&self) -> String {
        let mut words = Vec::new();
        if !self.other_tags.is_empty() {
            words.push(format!("tagged {}", self.other_tags.join(", ")));
        }
        if !self.indexes.is_empty() {
            words.push(format!("in the index of {}", self.indexes.join(", ")));
        }
        words.join(" and ")
    }

    /// Error of deleting a tag whose digest others have.
    fn tag_error(&self, error: RegistryError) -> StoreError {
        let problem = format!("{} does not delete a single tag", self.place);
        let problem = match error.status().map(|status| status.as_u16()) {
            // It deletes no tags, rather than nothing at this time or for this user.
            Some(400 | 404 | 405 | 501) => Problem::answer("no", problem),
            _ => Problem::new("registry/answer", problem),
        };
        let hint = format!(
            "the digest is also {}; to delete it for all of them, add --with-digest",
            self.others()
        );
        problem.source(error).hint(hint).into()
    }

    fn refused(&self) -> StoreError {
        let place = &self.place;
        let problem = format!("cannot delete an image of {place}: an archive is a file");
        let problem = Problem::new("usage/location", problem);
        problem.blame(Blame::Request).into()
    }
}

impl fmt::Display for Deletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, digest, .. } = self;
        match (&self.tag, place) {
            (Some(tag), _) => write!(f, "{place}:{tag} ({digest})"),
            (None, Source::Registry(_)) => write!(f, "{place}@{digest}"),
            (None, _) => write!(f, "{place}:{digest}"),
        }
    }
}

/// Relation of another tag to a digest.
enum TagUse {
    None,
    Names,
    Lists,
}

/// Looks at a tag; a layout has its entry.
async fn use_of(
    source: &Source,
    tag: &str,
    entry: Option<&Descriptor>,
    digest: &Digest,
) -> Result<TagUse, StoreError> {
    // Most tags are of other images, which need not be read.
    if let Some(entry) = entry {
        if entry.digest == *digest {
            return Ok(TagUse::Names);
        }
        if media_type::is_manifest(&entry.media_type) {
            return Ok(TagUse::None);
        }
    }
    if let Source::Registry(repository) = source {
        let Some(found) = repository.head_manifest(tag).await? else {
            return Ok(TagUse::None);
        };
        if found.digest == *digest {
            return Ok(TagUse::Names);
        }
        if !media_type::is_index(&found.media_type) {
            return Ok(TagUse::None);
        }
    }
    let document = match entry {
        Some(entry) => source.document(entry).await?,
        None => source.resolve(Some(tag)).await?,
    };
    Ok(match &document {
        _ if document.digest() == digest => TagUse::Names,
        Document::Index(index) if index.manifests.iter().any(|it| it.digest == *digest) => {
            TagUse::Lists
        }
        _ => TagUse::None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::document::{Index, ManifestFormat, Verbatim, sha256};
    use crate::layout::{Layout, REF_NAME};

    #[tokio::test]
    async fn the_tags_of_a_layout_are_read_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).await.unwrap();
        let lists = |digest: &Digest| {
            let entry = Descriptor::new(media_type::OCI_MANIFEST, digest.clone(), 1);
            let index = Index::new(ManifestFormat::Oci, vec![entry]);
            Document::Index(Verbatim::new(index).unwrap())
        };
        let own = lists(&sha256(b"image"));
        let above = lists(own.digest());
        for (document, tag) in [(&own, "own"), (&own, "same"), (&above, "above")] {
            layout.put_document(document).await.unwrap();
            let entry = document.descriptor();
            layout.tag(entry, Some(tag)).await.unwrap();
        }
        let mut index = layout.index().await.unwrap();
        for number in 0..3_000 {
            let mut entry = Descriptor::new(media_type::OCI_MANIFEST, sha256(b"other"), 5);
            let tag = format!("t{number}");
            entry.annotations.insert(REF_NAME.to_owned(), tag);
            index.manifests.push(entry);
        }
        let index = Verbatim::new(index).unwrap();
        std::fs::write(folder.path().join("index.json"), index.bytes()).unwrap();
        let started = Instant::now();
        let deletion = Deletion::new(&Source::Layout(layout), Some("own")).await;
        let deletion = deletion.unwrap();
        assert!(started.elapsed() < Duration::from_secs(30));
        assert_eq!(deletion.other_tags, ["same"]);
        assert_eq!(deletion.indexes, ["above"]);
    }
}
