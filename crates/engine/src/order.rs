//! An order: what is to be built, for which hosts, on bases from where. It goes its way in steps, from
//! drafts that ask nobody to images that arrived, and says on the way what people may want to know.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use wincimg_common::diagnose::Diagnose;
use wincimg_common::progress::{Progress, Tell};
use wincimg_http::Downloads;
use wincimg_inspect::bases::{BaseRegistry, Match, ResolveError, warning};
use wincimg_inspect::library::Library;
use wincimg_layer::dockerignore::FILE_NAME;
use wincimg_layer::{Compression, Remembered};
use wincimg_oci::remote::Registry;
use wincimg_oci::store::Location;
use wincimg_recipe::Plan;

use super::bases::BaseSearch;
use super::delivery::{Delivered, Delivery, DeliveryError, Made};
use super::design::Design;
use super::direct::{Ahead, AssembleOptions, DirectEngine, Held};
use super::downloads::{Manner, Supply, SupplyError};
use super::inside::{LookError, Purpose, look_inside};
use super::plans::{BuildRequest, Lacking, PlanError, PlannedImage, TargetHost};
use super::publication::Publication;
use crate::listing::secrets;

/// The flag that has downloads noted.
pub const UPDATE_LOCK: &str = "--update-lock";

/// What is to be built, and for whom.
pub struct Order {
    /// What is built.
    pub design: Design,
    /// The hosts; none where the images are for any.
    pub hosts: Vec<TargetHost>,
    /// Where base images come from.
    pub base_registry: BaseRegistry,
    /// Which base images will do.
    pub matched: Match,
}

/// What orders are carried out with.
#[derive(Clone)]
pub struct Means<'a> {
    /// The client for all registries.
    pub registry: &'a Registry,
    /// Who looks for bases.
    pub bases: &'a BaseSearch,
    /// Who knows what is inside bases.
    pub library: &'a Library,
    /// Who is shown what is under way.
    pub progress: &'a Arc<dyn Progress>,
    /// Who is told what deserves to be read.
    pub tell: &'a dyn Tell,
}

impl Order {
    /// The plans as far as the recipe and its folder alone tell them.
    pub fn drafts(&self) -> Result<Vec<Plan>, PlanError> {
        self.request(true).drafts()
    }

    fn request(&self, is_shared: bool) -> BuildRequest<'_> {
        BuildRequest {
            blueprint: self.design.blueprint(),
            hosts: &self.hosts,
            base_registry: &self.base_registry,
            wanted: self.matched,
            is_shared,
        }
    }

    /// The files that are downloaded: those that are pinned, or where that is said all of them.
    /// `again` is the command that pins them.
    pub fn supply(
        &self,
        manner: Manner,
        store: Downloads,
        again: String,
    ) -> Result<Supply, SupplyError> {
        Ok(Supply::new(manner, store, self.design.lock()?, again))
    }

    /// Refuses a recipe's downloads that nothing pins.
    pub fn check_pins(&self, drafts: &[Plan], supply: &Supply) -> Result<(), SupplyError> {
        let Some(recipe) = self.design.recipe() else {
            return Ok(());
        };
        for draft in drafts {
            supply.check(&draft.wants(recipe.origin()))?;
        }
        Ok(())
    }

    /// Finds the bases and fills the recipe in for each; what was passed over is said on the way.
    /// Hosts of one build share an image where one can serve them, unless each is to have its own.
    pub async fn plan(
        &self,
        is_shared: bool,
        means: &Means<'_>,
    ) -> Result<Vec<PlannedImage>, PlanError> {
        let request = self.request(is_shared);
        let images = request.plan(means.bases).await.inspect_err(|error| {
            if let Some(error) = error.search() {
                tell_what_was_looked_at(error, means.tell);
            }
        })?;
        tell_of(&images, means.tell);
        Ok(images)
    }

    /// Brings what is downloaded, as far as that is known before anyone has looked inside the bases.
    pub async fn bring(
        &self,
        images: &mut [PlannedImage],
        supply: &mut Supply,
        means: &Means<'_>,
    ) -> Result<(), PlanError> {
        let request = self.request(true);
        let bringing = request.look_again(images, means.registry, supply, means.progress, false);
        bringing.await.map(drop)
    }

    /// Finds out what is inside the bases, and carries a Dockerfile out on them.
    pub async fn look(
        &self,
        images: &mut [PlannedImage],
        purpose: Purpose,
        supply: &mut Supply,
        means: &Means<'_>,
    ) -> Result<(), LookingError> {
        // What is known then may show that more has to be.
        loop {
            look(images, purpose, means).await?;
            self.look_again(images, supply, means).await?;
            if !images.iter().any(|image| image.stages.wants_a_look) {
                return Ok(());
            }
        }
    }

    /// Carries a Dockerfile out on bases of which more is known by now, and brings what is lacking.
    async fn look_again(
        &self,
        images: &mut [PlannedImage],
        supply: &mut Supply,
        means: &Means<'_>,
    ) -> Result<(), LookingError> {
        let request = self.request(true);
        let told = notes(images);
        let looking = request.look_again(images, means.registry, supply, means.progress, true);
        let lacking = looking.await?;
        tell_what_is_lacking(&lacking, supply, means.tell);
        for note in notes(images).difference(&told) {
            means.tell.note(note);
        }
        if let Some((lock, written)) = supply.write_lock().map_err(PlanError::from)? {
            means.tell.note(&format_args!(
                "{lock}: {} new, {} changed, {} as before",
                written.new, written.changed, written.same
            ));
        }
        Ok(())
    }
}

/// Why a plan could not be finished by looking into its bases.
#[derive(Debug, thiserror::Error, Diagnose)]
pub enum LookingError {
    /// Nobody could look.
    #[error(transparent)]
    #[diagnose(forward)]
    Look(#[from] LookError),
    /// What was found stands in the way.
    #[error(transparent)]
    #[diagnose(forward)]
    Plan(#[from] PlanError),
}

/// Which layers the direct engine need not write, beside those that the replaced tags have.
#[derive(Debug, Clone, Default)]
pub struct Reuse {
    /// Images that may have them too.
    pub from: Vec<Location>,
    /// What the tars of layers came to in earlier runs.
    pub remembered: Remembered,
}

/// Has the direct engine make images, and brings them to where a delivery is for. Without `reuse` all
/// layers are written.
pub async fn deliver_directly(
    publication: &Publication<'_>,
    compression: Compression,
    created: Option<Timestamp>,
    reuse: Option<Reuse>,
    delivery: &Delivery<'_>,
) -> Result<Delivered, DeliveryError> {
    let held = match reuse {
        Some(reuse) => held(publication, reuse, delivery)?,
        None => Held::default(),
    };
    let ahead = ahead(publication, delivery)?.map(Arc::new);
    // Dropped with this work, so that the end of the program does not wait for its threads.
    let cancelled = CancelOnDrop::default();
    let options = AssembleOptions {
        compression,
        created,
        cancelled: Arc::clone(&cancelled.0),
        held: Arc::new(held),
        ahead: ahead.clone(),
    };
    let engine = DirectEngine::new(options, Arc::clone(&delivery.progress));
    let making = async {
        let made = engine.make(publication).await?;
        let made = made.into_iter().map(Box::new);
        Ok(made.map(Made::Assembled).collect())
    };
    let delivered = Box::pin(delivery.deliver(publication, making)).await;
    drop(cancelled);
    if let Some(ahead) = ahead {
        ahead.end().await;
    }
    delivered
}

/// Where the layers of a publication go while they are written: to the first registry that it is for.
fn ahead(
    publication: &Publication<'_>,
    delivery: &Delivery<'_>,
) -> Result<Option<Ahead>, DeliveryError> {
    for destination in delivery.destinations {
        let place = destination.location(&publication.name, publication.tag())?;
        if let Location::Registry(reference) = place {
            let repository = delivery.registry.repository(&reference);
            return Ok(Some(Ahead::to(repository.to_push_to())));
        }
    }
    Ok(None)
}

/// Where the layers of a publication may be already.
fn held(
    publication: &Publication<'_>,
    reuse: Reuse,
    delivery: &Delivery<'_>,
) -> Result<Held, DeliveryError> {
    let mut tags = Vec::new();
    for destination in delivery.destinations {
        for image in &publication.images {
            tags.push(destination.location(&publication.name, &image.tag)?);
        }
    }
    // An archive is written anew, whatever was there.
    tags.retain(|place| !matches!(place, Location::Archive { .. }));
    let (registry, progress) = (delivery.registry.clone(), Arc::clone(&delivery.progress));
    let Reuse { from, remembered } = reuse;
    Ok(Held::by(tags, from, remembered, registry, progress))
}

/// Tells threads that work for a build to stop when the build is given up.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Finds out what is inside the bases of planned images, for whoever makes them, and says what there
/// is to say about that.
async fn look(
    images: &mut [PlannedImage],
    purpose: Purpose,
    means: &Means<'_>,
) -> Result<(), LookError> {
    let Means { library, tell, .. } = means;
    let note = |note: String| tell.note(&note);
    let looks = look_inside(images, library, means.registry, purpose, &note).await;
    for warning in library.take_warnings() {
        tell.warn(&warning);
    }
    for look in looks? {
        tracing::info!("inside {}: {}", look.base, look.from);
        if let Some(missing) = look.missing {
            tell.note(&format_args!(
                "a build reads {missing} of {} from its layers",
                look.base
            ));
        }
        for problem in look.problems {
            tell.warn(&format_args!("inside {}: {problem}", look.base));
        }
    }
    Ok(())
}

/// Says what deserves a look about planned images: tags that were passed over, what authors may want
/// to know, what speaks against a base, and files that may be secrets.
fn tell_of(images: &[PlannedImage], tell: &dyn Tell) {
    for tag in images.iter().flat_map(|image| &image.set_aside) {
        tell.warn(tag);
    }
    for note in &notes(images) {
        tell.note(note);
    }
    let warnings = images.iter().flat_map(|image| &image.plan.warnings);
    for warning in warnings.collect::<BTreeSet<_>>() {
        tell.warn(warning);
    }
    for image in images {
        let version = image.base.os_version;
        let host = image.host.as_ref();
        if let Some((version, host)) = version.zip(host)
            && let Some(warning) = warning(version, host.build)
        {
            tell.warn(&warning);
        }
    }
    // Images for several hosts mostly have the same files.
    let mut contents: Vec<&Plan> = Vec::new();
    for image in images {
        let plan = &image.plan;
        let is_same =
            |known: &&Plan| known.files == plan.files && known.instructions == plan.instructions;
        if !contents.iter().any(is_same) {
            contents.push(plan);
        }
    }
    // What cannot be read is told by whoever reads it.
    let contents = contents.into_iter().filter_map(|plan| secrets(plan).ok());
    let found: BTreeSet<String> = contents.flatten().collect();
    if !found.is_empty() {
        tell.warn(&secrets_warning(&found));
    }
}

/// What authors may want to know of their images, each word once: images for several hosts are read
/// from the same recipe.
fn notes(images: &[PlannedImage]) -> BTreeSet<String> {
    let notes = images.iter().flat_map(|image| &image.plan.notes);
    notes.cloned().collect()
}

/// Says what was looked at in vain, before the failure says that.
pub fn tell_what_was_looked_at(error: &ResolveError, tell: &dyn Tell) {
    if let ResolveError::NothingFits(nothing) = error {
        for tag in &nothing.set_aside {
            tell.warn(tag);
        }
        for reason in nothing.reasons() {
            tell.note(&reason);
        }
    }
}

/// Tells what a build would download first.
fn tell_what_is_lacking(lacking: &Lacking, supply: &Supply, tell: &dyn Tell) {
    let not_pinned = supply.not_pinned(&lacking.files);
    for (url, want) in &lacking.files {
        if not_pinned.contains(&url.as_str()) {
            tell.warn(&format_args!(
                "{}: nothing says what {url} has to be: build with {UPDATE_LOCK} once",
                want.place
            ));
        } else {
            tell.note(&format_args!("{}: a build downloads {url}", want.place));
        }
    }
    for place in &lacking.unclear {
        tell.note(&format_args!(
            "{place}: what it does is known when that is here: the plan leaves it out"
        ));
    }
    for problem in &lacking.unlooked {
        tell.note(&format_args!(
            "{problem}: a build looks into the base first, and the plan leaves it out, with the \
             other instructions; after `wincimg base index` of the base it is known here too"
        ));
    }
}

/// Tells in one line which files look like secrets.
fn secrets_warning(found: &BTreeSet<String>) -> String {
    const MOST_NAMES: usize = 4;
    let mut names: Vec<&str> = found.iter().map(String::as_str).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "everybody who pulls the image can read what may be a secret: {}{more}; list it in {FILE_NAME} to leave it out",
        names.join(", ")
    )
}
