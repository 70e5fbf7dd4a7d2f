//! Digest of the inputs of an image: it decides whether an existing image would be built the same
//! again. A change without effect may change the digest; one with an effect always does.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wincimg_common::diagnose::BoxError;
use wincimg_common::digest::{Digest, sha256};
use wincimg_common::files::TextFile;
use wincimg_layer::Compression;
use wincimg_recipe::{Plan, PlanBase};

use super::definition::DefinitionKind;
use super::plans::{BuildRequest, PlannedImage};
use super::update::PlannedUpdate;
use crate::listing::{content_digest, source_digests};

/// Key of the inputs' digest: an annotation of an image in an index; a note of a layer in a
/// history.
pub(crate) const INPUTS: &str = "io.wincimg.inputs";

/// Raised when the same inputs give other images than before.
const EDITION: u32 = 4;

impl BuildRequest {
    /// The digest of each image's inputs, before downloads.
    pub(crate) fn inputs(
        &self,
        images: &[&PlannedImage],
        compression: Compression,
    ) -> Result<Vec<Digest>, BoxError> {
        let shared = self.shared_inputs()?;
        let lock = self.definition.lock_file();
        // A lock file that cannot be read is reported by its reader.
        let lock = lock.and_then(|lock| TextFile::found(lock).read().ok());
        // Images for several hosts mostly have the same files.
        let mut known: Option<(&Plan, Digest)> = None;
        let mut digests = Vec::with_capacity(images.len());
        for image in images {
            let plan = &image.plan;
            let content = match &known {
                _ if self.definition.recipe().is_none() => None,
                Some((same, digest))
                    if same.files == plan.files && same.instructions == plan.instructions =>
                {
                    Some(digest.clone())
                }
                _ => Some(content_digest(plan)?),
            };
            let bases = image.stages.bases.iter();
            let bases = bases.map(|(name, base)| (name, base.digest()));
            let bases: Vec<_> = bases.chain(&image.stages.copied).collect();
            let made_of = json!({
                "edition": EDITION,
                "shared": shared,
                "lock": lock,
                "compression": match compression {
                    Compression::Gzip => "Gzip",
                    Compression::Zstd => "Zstd",
                },
                "base": image.base.digest(),
                "bases": bases,
                "host": plan.host_build.filter(|_| self.definition.uses_host_version()),
                "plan": without_places(plan, &self.origin_labels(&image.base)),
                "content": content,
            });
            digests.push(sha256(made_of.to_string().as_bytes()));
            known = content.map(|content| (plan, content));
        }
        Ok(digests)
    }

    fn shared_inputs(&self) -> Result<Value, BoxError> {
        Ok(match &self.definition.made_by {
            DefinitionKind::Recipe(recipe) => json!({
                "recipe": recipe.text(),
                "values": self.definition.values,
            }),
            DefinitionKind::Dockerfile(stages) => {
                let sources = stages.sources()?;
                let files = sources.iter().map(|(path, source)| (path.as_str(), source));
                json!({
                    "dockerfile": stages.text(),
                    "target": stages.request.target,
                    "arguments": stages.request.arguments,
                    "skipped_actions": stages.request.skipped_actions,
                    "choco_feed": stages.choco_feed_url(),
                    "context": source_digests(files)?.to_string(),
                })
            }
        })
    }
}

impl PlannedUpdate {
    /// The digest of its inputs: the image and its new base.
    pub(crate) fn inputs(&self) -> Digest {
        let made_of = json!({
            "edition": EDITION,
            "image": self.from.digest(),
            "base": self.planned.base.digest(),
        });
        sha256(made_of.to_string().as_bytes())
    }
}

/// A plan without the paths on this machine, its display names and the labels of its origin: a
/// commit that changes nothing else makes no other image.
fn without_places(plan: &Plan, origin: &BTreeMap<String, String>) -> Plan {
    let mut labels = plan.labels.clone();
    labels.retain(|key, value| origin.get(key) != Some(value));
    Plan {
        labels,
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
