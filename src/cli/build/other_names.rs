//! The names after the first of a build: what was pushed is copied to them.

use wincimg_engine::build::BuildContext;
use wincimg_engine::delivery::{DeliveredCopy, DeliveryReport, TagPolicy};
use wincimg_oci::copy::CopyOptions;

use super::Build;
use super::image_name::ImageName;
use crate::cli::copy::ImageCopy;
use crate::cli::copy::{not_copied, report_referrers};
use crate::cli::prelude::*;

impl Build {
    /// Copies what was pushed to other names, and adds these to the report.
    pub(super) async fn add_names(
        &self,
        targets: &[Location],
        delivered: &mut DeliveryReport,
        ctx: &BuildContext<'_>,
        session: &Session,
    ) -> Result<()> {
        let existing = self.tags.existing();
        let copy = ImageCopy {
            options: CopyOptions {
                joins: existing == TagPolicy::Join,
                ..CopyOptions::default()
            },
            existing,
            with_referrers: !self.documents.is_empty(),
        };
        let pushed = pushed(delivered, copy.existing);
        for target in targets {
            for (reference, digest) in &pushed {
                let from: Location = reference.parse()?;
                let target = self.with_version_of(&from, target);
                let source = Source::open(&from, &ctx.registry).await?;
                let source = (&source, Some(digest.as_str()));
                let copying = copy.run(source, target.clone(), &ctx.registry, &ctx.progress);
                let copied = Box::pin(copying).await?;
                let failed = report_referrers(copied.beside.iter(), session);
                if failed > 0 {
                    let done = format!("copied the image to {target}");
                    return Err(not_copied(&done, failed).hint("run the same command again"));
                }
                add_copy(delivered, reference, &target, &copied.report.digest);
            }
        }
        Ok(())
    }

    /// With --no-index, a tag ends with the version of the pushed image, as that of the first name.
    fn with_version_of(&self, pushed: &Location, target: &Location) -> Location {
        let first = self.tag.first().and_then(|name| name.tag.as_deref());
        let version = pushed.tag().zip(first);
        let version = version.and_then(|(tag, first)| tag.strip_prefix(first));
        match (target, version) {
            (Location::Registry(name), Some(version)) if self.tags.no_index => {
                let tag = format!("{}{version}", name.tag().unwrap_or_default());
                let (host, path) = (name.registry(), name.repository());
                Location::Registry(Reference::new(host, path, Some(&tag), None))
            }
            _ => target.clone(),
        }
    }
}

/// References and digests to copy: the index, or the image; if they join another index, each image.
fn pushed(delivered: &DeliveryReport, existing: TagPolicy) -> BTreeSet<(String, String)> {
    match &delivered.index {
        Some(index) if existing != TagPolicy::Join => {
            [(index.reference.clone(), index.digest.clone())].into()
        }
        _ => {
            let images = delivered.images.iter();
            images
                .map(|image| (image.reference.clone(), image.digest.clone()))
                .collect()
        }
    }
}

/// The other names in their registries; the default name is that of the first.
pub(super) fn other_tags(names: &[ImageName], name: &str) -> Result<Vec<Location>> {
    let mut tags = Vec::with_capacity(names.len());
    for other in names {
        if let (Some(registry), Some(tag)) = (&other.registry, &other.tag) {
            let name = other.name.as_deref().unwrap_or(name);
            let reference = registry.join(&format!("{name}:{tag}"))?;
            tags.push(Location::Registry(reference));
        }
    }
    Ok(tags)
}

/// Reports a name of the index, or of the image. A digest there is that of an index that all
/// images have joined.
fn add_copy(delivered: &mut DeliveryReport, of: &str, target: &Location, digest: &str) {
    let reference = target.to_string();
    let copy = DeliveredCopy {
        reference,
        digest: digest.to_owned(),
        documents: Vec::new(),
    };
    if let Some(index) = &mut delivered.index {
        index.copies.retain(|it| it.reference != copy.reference);
        index.copies.push(copy);
        return;
    }
    let images = delivered.images.iter_mut();
    for image in images.filter(|image| image.reference == of) {
        image.copies.push(copy.clone());
    }
}
