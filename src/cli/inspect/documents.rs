//! `wincimg inspect --sbom` and `--provenance`: what lies beside an image, as it is there.

use anyhow::anyhow;
use wincimg_common::foreign::Foreign;
use wincimg_inspect::provenance::{Beside, Form, What, beside};
use wincimg_inspect::windows_images;
use wincimg_oci::document::{Digest, Document};
use wincimg_oci::remote::Registry;
use wincimg_oci::store::Source;

use super::{BillArg, Inspect};
use crate::cli::failure::Failure;
use crate::cli::output::write_result;
use crate::cli::session::Session;
use crate::cli::{Answer, registry_args};

/// What is to be printed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Bill(Option<Form>),
    Provenance,
}

impl Kind {
    fn accepts(self, found: &Beside) -> bool {
        match self {
            Self::Bill(form) => found.what.is_bill(form),
            Self::Provenance => found.is_provenance(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bill(None) => "a bill of materials",
            Self::Bill(Some(Form::Spdx)) => "a bill of materials in SPDX",
            Self::Bill(Some(Form::CycloneDx)) => "a bill of materials in CycloneDX",
            Self::Provenance => "provenance",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            Self::Bill(None | Some(Form::Spdx)) => "--sbom spdx",
            Self::Bill(Some(Form::CycloneDx)) => "--sbom cyclonedx",
            Self::Provenance => "--provenance",
        }
    }
}

impl Inspect {
    pub(super) fn document_wanted(&self) -> Option<Kind> {
        let bill = self.sbom.map(|form| {
            Kind::Bill(match form {
                BillArg::Any => None,
                BillArg::Spdx => Some(Form::Spdx),
                BillArg::CycloneDx => Some(Form::CycloneDx),
            })
        });
        bill.or_else(|| self.provenance.then_some(Kind::Provenance))
    }

    pub(super) fn print_document(
        &self,
        kind: Kind,
        registry: &Registry,
        session: &Session,
    ) -> Result<Answer, Failure> {
        let bytes = registry_args::run(async {
            let place = Source::open(&self.image, registry).await?;
            let named = place.resolve(self.image.wanted()).await?;
            let image = self.one_image(&place, &named).await?;
            let mut found = Vec::new();
            for it in beside(&place, &image, &named).await? {
                found.push(it.looked_at(&place).await?);
            }
            let mut wanted = found.iter().filter(|found| kind.accepts(found));
            let Some(first) = wanted.next() else {
                return Err(nothing(kind, &self.image.to_string(), &image, &found));
            };
            for more in wanted {
                session.note(format_args!(
                    "another one lies beside the image: {} ({})",
                    more.digest,
                    Foreign(&more.media_type)
                ));
            }
            if first.is_enveloped() {
                session.note("it is signed, and the signature was not checked: cosign does that");
            }
            let bytes = first.read(&place).await?;
            bytes.ok_or_else(|| nothing(kind, &self.image.to_string(), &image, &found))
        })?;
        write_result(None, |out| {
            out.write_all(&bytes)?;
            if !bytes.ends_with(b"\n") {
                out.write_all(b"\n")?;
            }
            Ok(())
        })?;
        Ok(Answer::Yes)
    }

    /// The image that documents are looked for: of an index the one that was chosen.
    async fn one_image(&self, place: &Source, named: &Document) -> Result<Digest, Failure> {
        if let Document::Manifest(manifest) = named {
            return Ok(manifest.digest().clone());
        }
        let wanted = Some(named.digest().as_ref());
        let images = windows_images(place, wanted, &self.platform).await?;
        match images.as_slice() {
            [image] => Ok(image.digest().clone()),
            [] => Err(Failure::usage(anyhow!(
                "{} has no image for Windows",
                Foreign(&self.image)
            ))),
            several => Err(Failure::usage(anyhow!(
                "each image has documents of its own, and these are {}",
                several.len()
            ))
            .hint("choose one with --platform windows/amd64:OSVERSION")),
        }
    }
}

/// The answer is no: what was asked for is not there.
fn nothing(kind: Kind, name: &str, image: &Digest, found: &[Beside]) -> Failure {
    let mut there: Vec<String> = found
        .iter()
        .map(|found| match found.what {
            What::Spdx => "SPDX".to_owned(),
            What::CycloneDx => "CycloneDX".to_owned(),
            What::Provenance => "provenance".to_owned(),
            What::Signature => "a signature".to_owned(),
            What::Other => Foreign(&found.media_type).to_string(),
        })
        .collect();
    there.sort();
    there.dedup();
    let there = if there.is_empty() {
        "nothing".to_owned()
    } else {
        there.join(", ")
    };
    let name = Foreign(name);
    Failure::no(anyhow!(
        "{name} ({image}) has not {} beside it: it has {there}",
        kind.name()
    ))
    .hint(format!(
        "attach it where the image is built: wincimg build … {} --push",
        kind.flag()
    ))
}
