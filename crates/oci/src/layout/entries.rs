//! Entries of a layout's `index.json`: finding an image by tag, and adding one.

use crate::document::{Descriptor, Digest, Index, media_type};
use crate::reference::parse_reference;
use crate::remote::{is_cosign_tag, is_list_tag, tag_of};

/// The annotation that holds an entry's tag.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// Annotation of containerd and Docker for the full reference.
pub(crate) const IMAGE_NAME: &str = "io.containerd.image.name";
/// Annotation of `cosign save` for what an entry is, and the beginning of its values.
const KIND: &str = "kind";
const COSIGN: &str = "dev.cosignproject.cosign/";
/// Annotation of `cosign save` for the reference of an image, and later of what is about it.
const IMAGE_REF: &str = "dev.cosignproject.cosign/imageRef";

/// The entry selected by a tag, a digest or nothing.
pub(crate) enum Selection<'a> {
    /// One image or index.
    Found(&'a Descriptor),
    /// No entry; `known` lists the tags.
    NotFound {
        /// The existing tags, for display.
        known: String,
    },
    /// Several images, and nothing selects one of them.
    Several {
        /// The existing tags, for display.
        known: String,
    },
}

/// Ways to match an entry, strictest first: by its digest, its name, its reference in another
/// spelling, and its tag.
const MATCHES: [fn(&Descriptor, &str) -> bool; 4] = [
    |entry, which| entry.digest.as_ref() == which,
    |entry, which| names(entry).any(|name| name == which),
    |entry, which| {
        let wanted = parse_reference(which).ok();
        wanted.is_some() && names(entry).any(|name| parse_reference(name).ok() == wanted)
    },
    |entry, which| {
        let mut tagged = names(entry).filter_map(|name| name.rsplit_once(':'));
        tagged.any(|(repository, tag)| tag == which && !repository.is_empty())
    },
];

/// Finds the entry with a tag (or a full reference) or digest; without either, the only one.
pub(crate) fn select<'a>(index: &'a Index, which: Option<&str>) -> Selection<'a> {
    let has_others = |entry: &Descriptor, is_match: &dyn Fn(&Descriptor) -> bool| {
        images(index).any(|other| other.digest != entry.digest && is_match(other))
    };
    let found = match which {
        Some(which) => MATCHES.iter().find_map(|is_match| {
            let mut entries = index.manifests.iter();
            let entry = entries.find(|entry| is_match(entry, which))?;
            Some((entry, has_others(entry, &|other| is_match(other, which))))
        }),
        // Attached artifacts are listed too.
        None => images(index)
            .next()
            .map(|first| (first, has_others(first, &|_| true))),
    };
    match found {
        None => Selection::NotFound {
            known: known(index),
        },
        Some((_, true)) => Selection::Several {
            known: known(index),
        },
        Some((entry, false)) => Selection::Found(entry),
    }
}

/// The images and indexes of a layout, without attached artifacts, lists of them, and what cosign's
/// tags refer to.
pub(crate) fn images(index: &Index) -> impl Iterator<Item = &Descriptor> {
    // Some tools tag an image with its own digest.
    let is_list = |entry: &Descriptor, tag: &str| {
        media_type::is_index(&entry.media_type) && is_list_tag(tag) && tag != tag_of(&entry.digest)
    };
    let entries = index.manifests.iter();
    entries.filter(move |entry| {
        let tag = entry.annotations.get(REF_NAME);
        let kind = entry.annotations.get(KIND);
        let kind = kind.and_then(|kind| kind.strip_prefix(COSIGN));
        entry.artifact_type().is_none()
            && kind.is_none_or(|kind| matches!(kind, "image" | "imageIndex"))
            && tag.is_none_or(|tag| !is_cosign_tag(tag) && !is_list(entry, tag))
    })
}

/// Digest of what `cosign save` stored with an image without a tag: that of cosign's tag, which it
/// would have in a registry.
pub(crate) fn find_saved<'a>(index: &'a Index, tag: &str) -> Option<&'a Digest> {
    let (list, suffix) = tag.rsplit_once('.')?;
    let image = images(index).find(|entry| tag_of(&entry.digest) == list)?;
    let kind = format!("{COSIGN}{suffix}s");
    let saved = index.manifests.iter().find(|entry| {
        let about = entry.annotations.get(IMAGE_REF);
        entry.annotations.get(KIND) == Some(&kind)
            && (about.is_none() || about == image.annotations.get(IMAGE_REF))
    })?;
    Some(&saved.digest)
}

/// An entry's names, the full one first.
fn names(entry: &Descriptor) -> impl Iterator<Item = &str> {
    [IMAGE_NAME, REF_NAME]
        .into_iter()
        .filter_map(|name| entry.annotations.get(name))
        .map(String::as_str)
}

/// What selects each image: its name, with the repository where it is known, because images of
/// several can have the same tag, or its digest.
fn known(index: &Index) -> String {
    let mut entries: Vec<(&str, &str)> = images(index)
        .map(|entry| {
            let digest = entry.digest.as_ref();
            let mut annotated = names(entry);
            let (first, tag) = (annotated.next(), annotated.next());
            // An image that got another tag in a layout has the full name that it had.
            let full = first.filter(|full| tag.is_none_or(|tag| full.ends_with(tag)));
            (full.or(tag).unwrap_or(digest), digest)
        })
        .collect();
    entries.sort_unstable();
    entries.dedup();
    let mut known = Vec::with_capacity(entries.len());
    for same_name in entries.chunk_by(|one, other| one.0 == other.0) {
        match same_name {
            [(name, _)] => known.push(*name),
            several => known.extend(several.iter().map(|(_, digest)| *digest)),
        }
    }
    let artifact = index.manifests.first().and_then(Descriptor::artifact_type);
    match artifact {
        _ if !known.is_empty() => known.join(", "),
        Some(artifact) => format!("no images, only artifacts such as {artifact}"),
        None => "no images".to_owned(),
    }
}

/// Digest of the entry that [`put_entry`] would replace.
pub(crate) fn find_tag<'a>(index: &'a Index, tag: &str) -> Option<&'a Digest> {
    let mut entries = index.manifests.iter();
    let entry = entries.find(|entry| has_tag(entry, tag))?;
    Some(&entry.digest)
}

/// Returns true if several images have the tag, all of which [`put_entry`] would replace.
pub(crate) fn is_ambiguous(index: &Index, tag: &str) -> bool {
    let mut tagged = images(index).filter(|entry| has_tag(entry, tag));
    let first = tagged.next();
    first.is_some_and(|first| {
        let name = first.annotations.get(IMAGE_NAME);
        tagged
            .any(|other| other.digest != first.digest || other.annotations.get(IMAGE_NAME) != name)
    })
}

fn has_tag(entry: &Descriptor, tag: &str) -> bool {
    entry.annotations.get(REF_NAME).is_some_and(|it| it == tag)
}

/// Adds an entry under a tag and removes the previous entry of that tag, and an untagged entry with
/// the same content, whose annotations stay. Entries that are added at once have the same order each
/// time: by tag, then those without one by what they are.
pub(crate) fn put_entry(index: &mut Index, mut entry: Descriptor, tag: Option<&str>) {
    if let Some(tag) = tag {
        entry
            .annotations
            .insert(REF_NAME.to_owned(), tag.to_owned());
    }
    for old in &index.manifests {
        if old.digest == entry.digest && !old.annotations.contains_key(REF_NAME) {
            for (name, value) in &old.annotations {
                let known = entry.annotations.entry(name.clone());
                known.or_insert_with(|| value.clone());
            }
        }
    }
    let replaces = |old: &Descriptor| {
        let same_tag = old.annotations.get(REF_NAME) == entry.annotations.get(REF_NAME);
        let untagged = !old.annotations.contains_key(REF_NAME);
        (same_tag && !untagged) || (untagged && old.digest == entry.digest)
    };
    let key = |entry: &Descriptor| {
        let tag = entry.annotations.get(REF_NAME).cloned();
        let artifact_type = entry.artifact_type().map(str::to_owned);
        let digest = entry.digest.to_string();
        (tag.is_none(), tag, artifact_type, digest)
    };
    let own = key(&entry);
    let places = [
        index.manifests.iter().position(replaces),
        index.manifests.iter().position(|old| key(old) > own),
    ];
    let place = places.into_iter().flatten().next();
    let place = place.unwrap_or(index.manifests.len());
    index.manifests.retain(|old| !replaces(old));
    index.manifests.insert(place, entry);
}

#[cfg(test)]
mod tests {
    use wincimg_common::digest::sha256;

    use super::*;
    use crate::document::ManifestFormat;

    #[test]
    fn what_is_attached_is_not_an_image() {
        let image = Descriptor::new(media_type::OCI_MANIFEST, sha256(b"image"), 5);
        let signature = Descriptor::new(media_type::OCI_MANIFEST, sha256(b"signature"), 9);
        let list = Descriptor::new(media_type::OCI_INDEX, sha256(b"list"), 4);
        let tag = tag_of(&image.digest);
        let mut index = Index::new(ManifestFormat::Oci, Vec::new());
        put_entry(&mut index, image.clone(), Some("1.4"));
        put_entry(&mut index, signature, Some(&format!("{tag}.sig")));
        put_entry(&mut index, list.clone(), Some(&tag));
        let found = images(&index).map(|entry| &entry.digest);
        assert_eq!(found.collect::<Vec<_>>(), [&image.digest]);
        assert!(
            matches!(select(&index, None), Selection::Found(found) if found.digest == image.digest)
        );
        // This tag is the image's own.
        let mut index = Index::new(ManifestFormat::Oci, Vec::new());
        let tag = tag_of(&list.digest);
        put_entry(&mut index, list, Some(&tag));
        assert_eq!(images(&index).count(), 1);
    }

    #[test]
    fn signatures_that_cosign_saved_are_those_of_the_image_also_under_a_new_tag() {
        let entry = |kind: &str| {
            let digest = sha256(kind.as_bytes());
            let mut entry = Descriptor::new(media_type::OCI_MANIFEST, digest, 5);
            let kind = (KIND.to_owned(), format!("{COSIGN}{kind}"));
            entry.annotations.extend([kind]);
            entry
        };
        let (image, signatures) = (entry("image"), entry("sigs"));
        let entries = vec![image.clone(), signatures.clone()];
        let mut index = Index::new(ManifestFormat::Oci, entries);
        let tag = tag_of(&image.digest) + ".sig";
        let bare = Descriptor::new(media_type::OCI_MANIFEST, image.digest.clone(), 5);
        for _ in 0..2 {
            let Selection::Found(found) = select(&index, None) else {
                panic!("{index:?}");
            };
            assert_eq!(found.digest, image.digest);
            assert_eq!(found.annotations[KIND], image.annotations[KIND]);
            assert_eq!(find_saved(&index, &tag), Some(&signatures.digest));
            assert_eq!(find_saved(&index, &tag.replace(".sig", ".att")), None);
            put_entry(&mut index, bare.clone(), Some("1.4"));
        }
    }

    #[test]
    fn a_tag_that_several_images_have_selects_none_of_them() {
        let entry = |name: &str, digest: &str| {
            let digest = sha256(digest.as_bytes());
            let mut entry = Descriptor::new(media_type::OCI_MANIFEST, digest, 5);
            let full = format!("docker.io/library/{name}");
            let names = [(REF_NAME, "1.4".to_owned()), (IMAGE_NAME, full)];
            let names = names.map(|(key, name)| (key.to_owned(), name));
            entry.annotations.extend(names);
            entry
        };
        let (web, api) = (entry("web:1.4", "web"), entry("api:1.4", "api"));
        let mut index = Index::new(ManifestFormat::Oci, vec![web.clone(), api.clone()]);
        assert!(is_ambiguous(&index, "1.4"));
        assert!(!is_ambiguous(&index, "1.5"));
        for which in [None, Some("1.4")] {
            let Selection::Several { known } = select(&index, which) else {
                panic!("{which:?}");
            };
            assert_eq!(
                known,
                "docker.io/library/api:1.4, docker.io/library/web:1.4"
            );
        }
        for (which, image) in [("docker.io/library/api:1.4", &api), ("web:1.4", &web)] {
            let Selection::Found(found) = select(&index, Some(which)) else {
                panic!("{which}");
            };
            assert_eq!(found.digest, image.digest);
        }
        // A full name twice: only the digest selects one.
        let other = entry("web:1.4", "other");
        let mut digests = [web.digest.to_string(), other.digest.to_string()];
        digests.sort();
        index.manifests.push(other);
        let Selection::Several { known } = select(&index, Some("web:1.4")) else {
            panic!("{index:?}");
        };
        let digests = digests.join(", ");
        assert_eq!(known, format!("docker.io/library/api:1.4, {digests}"));
    }

    #[test]
    fn entries_have_one_order_whichever_was_first() {
        let entries = [
            Some("10.0.17763.973"),
            Some("10.0.20348.1"),
            Some("latest"),
            None,
        ];
        let order = |first: [usize; 4]| {
            let mut index = Index::new(ManifestFormat::Oci, Vec::new());
            for place in first {
                let tag = entries[place];
                let digest = sha256(tag.unwrap_or_default().as_bytes());
                let entry = Descriptor::new(media_type::OCI_MANIFEST, digest, 1);
                put_entry(&mut index, entry, tag);
            }
            let tags = index.manifests.iter();
            let tags = tags.map(|entry| entry.annotations.get(REF_NAME).cloned());
            tags.collect::<Vec<_>>()
        };
        let expected = entries.map(|tag| tag.map(str::to_owned));
        for first in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            assert_eq!(order(first), expected, "{first:?}");
        }
    }
}
