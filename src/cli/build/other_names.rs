//! The names after the first of a build: what was pushed is copied to them.

use std::collections::BTreeSet;

use wincimg_engine::build::BuildContext;
use wincimg_engine::delivery::{DeliveredCopy, DeliveryReport, TagPolicy};
use wincimg_oci::store::{Location, Source};

use super::Build;
use super::image_name::ImageName;
use crate::cli::copy::ImageCopy;
use crate::cli::referrers::{not_copied, report_referrers};
use crate::cli::{Failure, Session};

impl Build {
    /// Copies what was pushed to other names, and adds these to the report.
    pub(super) async fn add_names(
        &self,
        names: &[ImageName],
        delivered: &mut DeliveryReport,
        ctx: &BuildContext<'_>,
        session: &Session,
    ) -> Result<(), Failure> {
        let copy = ImageCopy {
            platforms: Vec::new(),
            existing: self.tags.existing(),
            with_referrers: !self.documents.is_empty(),
        };
        let pushed = pushed(delivered, copy.existing);
        for name in names {
            let Some(target) = location(name)? else {
                continue;
            };
            for (reference, digest) in &pushed {
                let from: Location = reference.parse()?;
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

/// The place of another name in its registry; checked before the build.
fn location(name: &ImageName) -> Result<Option<Location>, Failure> {
    let (Some(registry), Some((name, tag))) = (&name.registry, name.name_and_tag()) else {
        return Ok(None);
    };
    let reference = registry.join(&format!("{name}:{tag}"))?;
    Ok(Some(Location::Registry(reference)))
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
