//! `wincimg image inspect --sbom` and `--provenance`: prints documents attached to an image, unchanged.

use wincimg_inspect::provenance::{AttachedDocument, DocumentKind, SbomFormat, list_attached};
use wincimg_inspect::windows_images;
use wincimg_oci::document::{Digest, Document};

use super::Inspect;
use crate::cli::contents::one_of;
use crate::cli::image_source::SourceReader;
use crate::cli::output::write_document;
use crate::cli::prelude::*;

#[derive(Debug, Clone, Copy)]
pub(super) enum PrintedDocument {
    Bill(Option<SbomFormat>),
    Provenance,
}

impl PrintedDocument {
    fn accepts(self, found: &AttachedDocument) -> bool {
        match self {
            Self::Bill(form) => found.what.is_sbom(form),
            Self::Provenance => found.is_provenance(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bill(None) => "SBOM",
            Self::Bill(Some(SbomFormat::Spdx)) => "SPDX SBOM",
            Self::Bill(Some(SbomFormat::CycloneDx)) => "CycloneDX SBOM",
            Self::Provenance => "provenance",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            Self::Bill(None | Some(SbomFormat::Spdx)) => "--sbom=spdx",
            Self::Bill(Some(SbomFormat::CycloneDx)) => "--sbom=cyclonedx",
            Self::Provenance => "--provenance",
        }
    }
}

impl Inspect {
    pub(super) fn document_wanted(&self) -> Option<PrintedDocument> {
        let bill = self.sbom.map(PrintedDocument::Bill);
        bill.or_else(|| self.provenance.then_some(PrintedDocument::Provenance))
    }

    pub(super) fn print_document(
        &self,
        location: &ImageSource,
        kind: PrintedDocument,
        reader: &SourceReader,
        session: &Session,
    ) -> Result<CommandOutcome> {
        let bytes = registry_args::run(async {
            let place = reader.open(location).await?;
            let named = place.resolve(location.tag_or_digest()).await?;
            let image = self.one_image(location, &place, &named).await?;
            let mut found = Vec::new();
            for it in list_attached(&place, &image, &named).await? {
                found.push(it.with_predicate(&place).await?);
            }
            let mut wanted = found.iter().filter(|found| kind.accepts(found));
            let Some(first) = wanted.next() else {
                return Err(nothing(kind, &location.to_string(), &image, &found));
            };
            for more in wanted {
                session.note(format_args!(
                    "another one is attached to the image: {} ({})",
                    more.digest,
                    UntrustedText(&more.media_type)
                ));
            }
            let read = first.read(&place).await?;
            let read = read.ok_or_else(|| nothing(kind, &location.to_string(), &image, &found))?;
            if read.is_signed {
                session.note("the document is signed; verify its signature with cosign");
            }
            if read.is_about_another(&[&image, named.digest()]) {
                session.warn(format_args!(
                    "the document does not name {image} as its subject"
                ));
            }
            Ok(read.bytes)
        })?;
        write_document(&bytes)?;
        Ok(CommandOutcome::Yes)
    }

    /// The image whose documents are requested: of an index, the selected one.
    async fn one_image(
        &self,
        location: &ImageSource,
        place: &Source,
        named: &Document,
    ) -> Result<Digest> {
        if let Document::Manifest(manifest) = named {
            return Ok(manifest.digest().clone());
        }
        let wanted = Some(named.digest().as_ref());
        let images = windows_images(place, wanted, &self.platform).await?;
        if images.is_empty() {
            let problem = format!("{} has no image for Windows", UntrustedText(location));
            return Err(Failure::usage(problem));
        }
        let image = one_of(location, images, self.platform.first())?;
        Ok(image.digest().clone())
    }
}

/// Failure for a document that is not attached.
fn nothing(
    kind: PrintedDocument,
    name: &str,
    image: &Digest,
    found: &[AttachedDocument],
) -> Failure {
    let mut there: Vec<String> = found
        .iter()
        .map(|found| match found.what {
            DocumentKind::Spdx => "SPDX".to_owned(),
            DocumentKind::CycloneDx => "CycloneDX".to_owned(),
            DocumentKind::Provenance => "provenance".to_owned(),
            DocumentKind::Signature => "a signature".to_owned(),
            DocumentKind::Other => UntrustedText(&found.media_type).to_string(),
        })
        .collect();
    there.sort();
    there.dedup();
    let there = if there.is_empty() {
        "nothing".to_owned()
    } else {
        there.join(", ")
    };
    let (name, flag) = (UntrustedText(name), kind.flag());
    Failure::no(format!(
        "{name} ({image}) has no {} attached: it has {there}",
        kind.name()
    ))
    .hint(format!(
        "attach it where the image is built: wincimg build … {flag} --push"
    ))
}
