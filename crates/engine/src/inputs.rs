//! What an image is made of, as one digest: what asks whether an image that is there would be made
//! anew the same. A change that makes no difference may make another digest; one that makes a
//! difference always does.

use serde_json::json;
use wincimg_common::diagnose::BoxError;
use wincimg_common::digest::{Digest, sha256};
use wincimg_common::files::{LARGEST_TEXT, read_text};
use wincimg_layer::Compression;
use wincimg_recipe::{Plan, PlanBase};

use super::plans::{BuildRequest, PlannedImage};
use crate::listing::{content_digest, source_digests};

/// What says what something was made of: as an annotation an image, in the index over it; in the
/// history a layer.
pub(crate) const INPUTS: &str = "io.wincimg.inputs";

/// Raised when the same inputs come to other images than before.
const EDITION: u32 = 2;

impl BuildRequest {
    /// The digest of what each image is made of, before anything was brought for it.
    pub fn inputs(
        &self,
        images: &[&PlannedImage],
        compression: Compression,
    ) -> Result<Vec<Digest>, BoxError> {
        let shared = match (self.design.recipe(), self.design.stages()) {
            (Some(recipe), _) => json!({
                "recipe": recipe.text(),
                "values": self.design.values(),
            }),
            (None, Some(stages)) => {
                let sources = stages.sources()?;
                let files = sources.iter().map(|(path, source)| (path.as_str(), source));
                json!({
                    "dockerfile": stages.text(),
                    "target": stages.target_stage(),
                    "arguments": stages.build_args(),
                    "context": source_digests(files)?.to_string(),
                })
            }
            (None, None) => json!(null),
        };
        let lock = self.design.lock_file();
        // A lock that cannot be read is told by whoever needs it.
        let lock = lock.and_then(|lock| read_text(&lock, LARGEST_TEXT).ok());
        // Images for several hosts mostly have the same files.
        let mut known: Option<(&Plan, Digest)> = None;
        let mut digests = Vec::with_capacity(images.len());
        for image in images {
            let plan = &image.plan;
            let content = match &known {
                _ if self.design.recipe().is_none() => None,
                Some((same, digest))
                    if same.files == plan.files && same.instructions == plan.instructions =>
                {
                    Some(digest.clone())
                }
                _ => Some(content_digest(plan)?),
            };
            let bases = image
                .stages
                .iter()
                .map(|(name, base)| (name, base.digest()));
            let bases: Vec<_> = bases.collect();
            let made_of = json!({
                "edition": EDITION,
                "shared": shared,
                "lock": lock,
                "compression": format!("{compression:?}"),
                "base": image.base.digest(),
                "bases": bases,
                "host": plan.host_build.filter(|_| self.design.uses_host_version()),
                "plan": without_places(plan),
                "content": content,
            });
            digests.push(sha256(made_of.to_string().as_bytes()));
            known = content.map(|content| (plan, content));
        }
        Ok(digests)
    }
}

/// What a plan says, but for where its files are here and what they are called for people.
fn without_places(plan: &Plan) -> Plan {
    Plan {
        host_build: None,
        instructions: None,
        files: Vec::new(),
        notes: Vec::new(),
        warnings: Vec::new(),
        base: PlanBase {
            name: String::new(),
            ..plan.base.clone()
        },
        ..plan.clone()
    }
}
