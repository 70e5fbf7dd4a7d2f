//! Images between steps in the Docker daemon that runs the steps, where no repository is named: the
//! image below is loaded into it, and the result is saved by it and stays there.

use std::sync::Arc;

use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_oci::document::Image;

use super::worker::DockerWorker;
use super::{HybridBuild, digits};
use crate::direct::{AddedLayer, assemble_directly};
use crate::plans::{InterimImage, PlannedBase, PlannedImage};
use crate::publication::{NamingOptions, Publication};

/// Name of the images in the daemon.
pub(super) const NAME: &str = "wincimg-cache";

impl HybridBuild<'_> {
    /// Makes the image below a segment, with its layers here.
    pub(super) async fn make_below(&self, planned: &PlannedImage) -> Result<PlannedBase, BoxError> {
        let naming = NamingOptions::tagged(NAME, "windows-base");
        if planned.base.source(&self.ctx.registry).await?.is_none() {
            return Err(no_place(NO_STORE));
        }
        let publication = Publication::new(std::slice::from_ref(planned), &naming)?;
        let making = assemble_directly(&publication, &self.request.options, self.ctx);
        let made = Box::pin(making).await?.pop();
        let nothing = || Problem::new("internal/segment", "no image was made below a step");
        let made = made.ok_or_else(nothing)?;
        let tag = format!("windows-base-{}", digits(made.image.config().digest()));
        Ok(interim(&tag, made.image, made.added, &planned.base))
    }
}

/// The ways to keep images between steps.
const HINT: &str = "push the image with --registry HOST[:PORT][/PREFIX] --push, or add \
                    --cache-to REPOSITORY";

const NO_STORE: &str = "steps on Windows require a repository for the images below and above \
                        them, or a base that the daemon can pull or load";

/// Why `BuildKit` needs one.
pub(super) const NO_REPOSITORY: &str =
    "BuildKit requires a repository for the images below and above the steps";

/// Error for images below and above steps that can be kept nowhere.
pub(super) fn no_place(problem: &str) -> BoxError {
    Problem::request("usage/cache", problem).hint(HINT).into()
}

/// Error for an image below steps that the daemon did not load.
pub(super) fn not_loaded(error: BoxError) -> BoxError {
    let remedy = error.diagnosis().hint;
    let remedy = remedy.map_or_else(String::new, |hint| format!("{hint}; or "));
    let what = "the image below the steps, in no registry, cannot be loaded into the Docker daemon";
    Problem::context(what, error)
        .hint(format!("{remedy}{HINT}"))
        .into()
}

impl DockerWorker {
    /// The result of a segment in the daemon, if that has it on the image below.
    pub(super) async fn find(
        &self,
        tag: &str,
        below: &PlannedBase,
        build: &HybridBuild<'_>,
    ) -> Result<Option<PlannedBase>, BoxError> {
        let Some(found) = self.daemon.find_image(&format!("{NAME}:{tag}")).await? else {
            return Ok(None);
        };
        if !found.is_on(&below.image) {
            return Ok(None);
        }
        self.save(tag, below, build).await.map(Some)
    }

    /// The result of a segment, whose layers above the image below are saved.
    pub(super) async fn save(
        &self,
        tag: &str,
        below: &PlannedBase,
        build: &HybridBuild<'_>,
    ) -> Result<PlannedBase, BoxError> {
        let name = format!("{NAME}:{tag}");
        let compression = build.request.options.compression;
        let progress = build.ctx.progress.as_ref();
        let saving = self
            .daemon
            .save_above(&name, &below.image, compression, progress);
        let (image, layers) = Box::pin(saving).await?;
        Ok(interim(tag, image, layers, below))
    }
}

/// An image of the daemon on another, for the same hosts.
fn interim(
    tag: &str,
    image: Image,
    layers: Vec<Arc<AddedLayer>>,
    below: &PlannedBase,
) -> PlannedBase {
    PlannedBase {
        interim: Some(Arc::new(InterimImage {
            name: format!("{NAME}:{tag}"),
            layers,
            below: below.clone(),
        })),
        ..below.with_image(None, image)
    }
}
