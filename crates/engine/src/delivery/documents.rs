//! Documents attached to images: SBOMs and provenance.
//!
//! They describe delivered images, so they come last; layers that were made here are scanned while
//! they are uploaded.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use jiff::Timestamp;
use serde_json::{Map, Value};
use wincimg_common::diagnose::{Blame, BoxError, Problem};
use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_common::untrusted::public_url;
use wincimg_inspect::LayerProblem;
use wincimg_inspect::provenance::{
    AttachmentReport, BuildProvenance, ImageDocument, Inventory, InventoryBase, LayerContents,
    ResolvedDependency, SbomFormat, SourceFile, Tool, attach, scan_blob, scan_layer,
};
use wincimg_oci::document::{Descriptor, sha256};
use wincimg_oci::reference::repository_of;
use wincimg_oci::store::{Location, Sink};
use wincimg_recipe::Plan;

use super::BuiltImage;
use super::destination::Destination;
use super::destination_writer::DestinationImage;
use crate::direct::{AddedLayer, CancelOnDrop};
use crate::plans::PlannedImage;
use crate::publication::TaggedImage;

/// Options of the attached documents.
#[derive(Debug, Clone, Default)]
pub struct AttachmentOptions {
    /// The program named as their creator.
    pub tool: Tool,
    /// Formats of the SBOM.
    pub bills: Vec<SbomFormat>,
    /// Details for the provenance; no provenance if absent.
    pub provenance: Option<RunDetails>,
}

/// Details of a run for the provenance of its images.
#[derive(Debug, Clone, Default)]
pub struct RunDetails {
    /// URI of the builder.
    pub builder: Option<String>,
    /// The recipe, Dockerfile or fleet file.
    pub source: Option<SourceFile>,
    /// Names of the options that were set.
    pub arguments: Vec<String>,
    /// Start time; none if the result must not depend on it.
    pub started: Option<Timestamp>,
}

impl AttachmentOptions {
    /// Returns true if there are no documents.
    pub fn is_empty(&self) -> bool {
        self.bills.is_empty() && self.provenance.is_none()
    }

    /// Rejects destinations that cannot hold documents.
    pub(super) fn check(&self, destinations: &[Destination]) -> Result<(), Problem> {
        if self.is_empty() {
            return Ok(());
        }
        let takes = |place: &Destination| !matches!(place, Destination::Archive(..));
        let place = if destinations.is_empty() {
            "a Docker daemon"
        } else if destinations.iter().all(takes) {
            return Ok(());
        } else {
            "a docker-archive file"
        };
        let problem = format!("{place} cannot hold documents attached to an image");
        Err(Problem::request("usage/documents", problem)
            .hint("push to a registry alone with --registry … --push, or write --output oci:DIR"))
    }
}

type LayerScan = Shared<BoxFuture<'static, Result<Arc<LayerContents>, Arc<LayerProblem>>>>;

/// Scans layers, each once.
pub(super) struct LayerScanner {
    known: Mutex<HashMap<String, LayerScan>>,
    /// Set when no task waits for the scans any more.
    cancelled: CancelOnDrop,
}

impl LayerScanner {
    /// Starts to scan the layers that are here.
    pub(super) fn new(made: &[BuiltImage<'_>]) -> Self {
        let scanner = Self {
            known: Mutex::default(),
            cancelled: CancelOnDrop::default(),
        };
        for made in made {
            let BuiltImage::Assembled(assembled) = made else {
                continue;
            };
            for layer in &assembled.added {
                scanner.start_scan(layer);
            }
        }
        scanner
    }

    /// Layers that are elsewhere are read at their destination.
    fn start_scan(&self, layer: &Arc<AddedLayer>) {
        let digest = layer.digest.to_string();
        let mut known = lock(&self.known);
        if known.contains_key(&digest) {
            return;
        }
        let Some(opened) = layer.open() else { return };
        let cancelled = Arc::clone(&self.cancelled.0);
        let work = tokio::task::spawn_blocking(move || {
            let bytes = opened.map_err(LayerProblem::Read)?;
            scan_layer(bytes, &cancelled)
                .map_err(|error| LayerProblem::Read(io::Error::other(error)))
        });
        let scan = async move {
            let found = work
                .await
                .unwrap_or_else(|error| Err(LayerProblem::Read(io::Error::other(error))));
            found.map(Arc::new).map_err(Arc::new)
        };
        known.insert(digest, scan.boxed().shared());
    }

    /// Contents of a layer of a delivered image.
    async fn layer(
        &self,
        blob: &Descriptor,
        sink: &Sink,
        progress: &dyn Progress,
    ) -> Result<Arc<LayerContents>, BoxError> {
        let known = {
            let known = lock(&self.known);
            known.get(blob.digest.as_ref()).cloned()
        };
        let found = match (known, sink.as_source()) {
            (Some(known), _) => known.await,
            (None, Some(place)) => {
                let found = scan_blob(&place, blob, progress).await;
                found.map(Arc::new).map_err(Arc::new)
            }
            (None, None) => Err(Arc::new(LayerProblem::ForeignBase)),
        };
        found.map_err(|error| {
            let problem = format!("cannot read layer {}", blob.digest);
            Problem::new("image/document", problem).source(error).into()
        })
    }
}

/// A delivered image, with the facts about its build.
pub(super) struct Subject<'a> {
    pub image: &'a TaggedImage<'a>,
    pub made: &'a BuiltImage<'a>,
    pub arrived: &'a DestinationImage,
    pub location: Location,
}

impl AttachmentOptions {
    /// Attaches the documents to one image. If one fails, the error lists those attached before.
    pub(super) async fn attach(
        &self,
        subject: &Subject<'_>,
        scanner: &LayerScanner,
        sink: &Sink,
        progress: &dyn Progress,
    ) -> Result<Vec<AttachmentReport>, BoxError> {
        let image = &subject.arrived.image;
        let about = image.index_entry();
        let mut attached: Vec<AttachmentReport> = Vec::new();
        let failed = |document: &'static str, attached: &[AttachmentReport], error: BoxError| {
            let attached: Vec<_> = attached.iter().map(|it| it.document).collect();
            let attached = match attached.as_slice() {
                [] => String::new(),
                attached => format!(" (attached: {})", attached.join(", ")),
            };
            let what = format!(
                "delivered all images, but failed to attach the {document} document to {} \
                 ({}){attached}",
                subject.location,
                image.digest()
            );
            let hint = error.diagnosis().hint;
            Problem::context(what, error)
                .blame(Blame::Circumstances)
                .hint(hint.unwrap_or_else(|| subject.way_to_attach(document)))
        };
        if let Some(first) = self.bills.first() {
            let inventory = subject.inventory(scanner, sink, progress).await;
            let inventory = inventory.map_err(|error| failed(first.name(), &attached, error))?;
            if let Some(note) = inventory.partial_note() {
                progress.note(&note);
            }
            for form in &self.bills {
                let put = async {
                    let document = ImageDocument::sbom(*form, &inventory, self.tool);
                    let document = document.map_err(unwritten)?;
                    attach(sink, &about, &document, progress).await
                };
                let put = Box::pin(put).await;
                attached.push(put.map_err(|error| failed(form.name(), &attached, error))?);
            }
        }
        // The provenance of an image that was up to date is that of the run that made it.
        let is_made = |updated: &SourceFile| updated.digest != *image.digest();
        let is_made = subject.made.updated().is_none_or(is_made);
        if let Some(run) = self.provenance.as_ref().filter(|_| is_made) {
            let put = async {
                let build = subject.build(run);
                let document =
                    ImageDocument::provenance(&subject.name(), image.digest(), &build, self.tool);
                let document = document.map_err(unwritten)?;
                attach(sink, &about, &document, progress).await
            };
            let put = Box::pin(put).await;
            attached.push(put.map_err(|error| failed("provenance", &attached, error))?);
        }
        Ok(attached)
    }
}

fn unwritten(error: serde_json::Error) -> Problem {
    Problem::new("image/document", "cannot write the document").source(error)
}

impl Subject<'_> {
    /// The repository, or the name alone if there is none.
    fn name(&self) -> String {
        match &self.location {
            Location::Registry(reference) => repository_of(reference),
            _ => self.image.planned.plan.name.clone(),
        }
    }

    async fn inventory(
        &self,
        scanner: &LayerScanner,
        sink: &Sink,
        progress: &dyn Progress,
    ) -> Result<Inventory, BoxError> {
        let image = &self.arrived.image;
        let base = &self.image.planned.base;
        let below = base.image.manifest().layers.len();
        let own = image.manifest().layers.iter().skip(below);
        let mut layers = Vec::new();
        for blob in own {
            layers.push(scanner.layer(blob, sink, progress).await?);
        }
        let base = base.reference().map(|reference| InventoryBase {
            name: repository_of(reference),
            tag: reference.tag().map(str::to_owned),
            digest: base.digest().clone(),
        });
        Ok(Inventory::new(self.name(), image, base, layers))
    }

    /// The command that attaches a document after a failure. An updated image is up to date then.
    fn way_to_attach(&self, document: &str) -> String {
        let updated = self.made.updated().filter(|_| document == "provenance");
        let (Some(updated), Location::Registry(_)) = (updated, &self.location) else {
            return "run the same command again: existing content is not sent again".to_owned();
        };
        let host = self.image.planned.host_build();
        let host = host.map_or_else(String::new, |host| format!(" --host-build {host}"));
        let (name, tag) = (self.name(), &self.image.tag);
        let command = "wincimg image update";
        format!(
            "update the earlier image again: {command} {name}@{}{host} --tag {tag} --push --provenance",
            updated.digest
        )
    }

    fn build(&self, run: &RunDetails) -> BuildProvenance {
        let planned = self.image.planned;
        BuildProvenance {
            builder: run.builder.clone(),
            engine: self.made.engine(planned),
            source: self.made.updated().or(run.source.as_ref()).cloned(),
            arguments: run.arguments.clone(),
            host_build: planned.host_build(),
            plan: digest_of(&planned.plan),
            dependencies: dependencies(planned),
            started: run.started,
            finished: run.started.map(|_| Timestamp::now()),
        }
    }
}

/// Bases, downloads and images with files of a recipe, each once.
fn dependencies(planned: &PlannedImage) -> Vec<ResolvedDependency> {
    let stages = planned.stages.bases.values();
    let bases = [&planned.base].into_iter().chain(stages);
    let mut all: Vec<ResolvedDependency> = bases
        .filter_map(|base| {
            let uri = match &base.place {
                Some(Location::Registry(reference)) => format!("docker://{reference}"),
                Some(place) => place.to_string(),
                None => base.interim.as_ref().map(|_| base.display_name())?,
            };
            Some(ResolvedDependency {
                name: base.display_name(),
                uri,
                digest: Some(base.digest().clone()),
            })
        })
        .collect();
    let mut plan = planned.plan.clone();
    all.extend(plan.downloads_mut().map(|file| ResolvedDependency {
        name: "download".to_owned(),
        uri: public_url(&file.url),
        digest: file.digest.clone(),
    }));
    all.extend(plan.image_files_mut().map(|(_, files)| ResolvedDependency {
        name: "files of an image".to_owned(),
        uri: files.image.clone(),
        digest: files.digest.clone(),
    }));
    let mut known = Vec::new();
    all.retain(|it| {
        let is_new = !known.contains(it);
        if is_new {
            known.push(it.clone());
        }
        is_new
    });
    all
}

/// Digest of a plan, independent of the folder of its files and of the mirror of its base.
fn digest_of(plan: &Plan) -> String {
    let mut value = serde_json::to_value(plan).unwrap_or_default();
    if let Some(plan) = value.as_object_mut() {
        for printed in ["notes", "warnings"] {
            plan.remove(printed);
        }
        // The digest identifies the base, whatever its name.
        if let Some(base) = plan.get_mut("base").and_then(Value::as_object_mut) {
            base.remove("name");
        }
    }
    strip(&mut value);
    sha256(value.to_string().as_bytes()).digest().to_owned()
}

/// Removes the paths of this machine.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for place in ["disk", "member"] {
                if fields.len() == 1 && fields.contains_key(place) {
                    *fields = Map::from_iter([(place.to_owned(), Value::Null)]);
                }
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use wincimg_layer::DiskSource;
    use wincimg_recipe::{FileSource, PlannedEntry};

    use super::*;

    fn plan_in(folder: &str) -> Plan {
        let path = PathBuf::from(folder).join("app.exe");
        Plan {
            files: vec![PlannedEntry::file(
                r"C:\app\app.exe".parse().unwrap(),
                FileSource::Disk(DiskSource::within(Path::new(folder), path)),
            )],
            ..Plan::default()
        }
    }

    #[test]
    fn a_plans_digest_does_not_depend_on_the_folder() {
        let digest = digest_of(&plan_in("/home/a"));
        assert_eq!(digest, digest_of(&plan_in("/builds/b")));
        let mut other = plan_in("/home/a");
        other.env.insert("KEY".to_owned(), "value".to_owned());
        assert_ne!(digest, digest_of(&other));
    }
}
