//! Reads the contents of the bases of planned images, as far as the images require or profit from
//! them.

use std::sync::Arc;

use futures_util::future::try_join_all;
use wincimg_common::diagnose::{Blame, BoxError, Problem};
use wincimg_inspect::base::Extent;
use wincimg_inspect::facts_provider::{FactsSource, ResolvedFacts};
use wincimg_registry::{BaseReadError, KeyPath, Presence as Answer};
use wincimg_windows::base_contents::{BaseContents, BaseRequirements};
use wincimg_windows::path::ImagePath;

use super::build::BuildContext;
use super::plans::{PlannedBase, PlannedImage};

/// Reason for reading the contents of bases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Layers are written over them.
    Layers,
    /// Windows executes the Dockerfile and has its files at hand.
    Dockerfile,
    /// The plan is only shown: no layers are read for it.
    Rehearsal,
}

/// Sets the known contents of each image's base, and reports what is damaged. Returns notes about
/// what only a build reads.
pub(crate) async fn load_contents(
    images: &mut [PlannedImage],
    purpose: Purpose,
    ctx: &BuildContext<'_>,
) -> Result<Vec<String>, BoxError> {
    let bases = bases(images, purpose);
    let known = find_contents(&bases, purpose, ctx).await;
    for warning in ctx.library.take_warnings() {
        ctx.reporter.warn(&warning);
    }
    let mut unread = Vec::new();
    for ((base, needs), known) in bases.into_iter().zip(known?) {
        let name = base.display_name();
        let Some(known) = known else {
            tracing::info!("contents of {name}: {}", FactsSource::Nowhere);
            if !needs.is_empty() {
                let what = content_name(&needs);
                unread.push(format!("a build reads {what} of {name} from its layers"));
            }
            continue;
        };
        tracing::info!("contents of {name}: {}", known.from);
        for problem in known.problems_of(&needs) {
            ctx.reporter
                .warn(&format_args!("contents of {name}: {problem}"));
        }
        let digest = base.digest();
        let inside: Arc<dyn BaseContents> = known.facts;
        for image in &mut *images {
            if digest == image.base.digest() {
                image.base.inside = Arc::clone(&inside);
            }
            if let Some(ground) = image.windows.as_mut().filter(|it| it.digest() == digest) {
                ground.inside = Arc::clone(&inside);
            }
            image.stages.set_contents(digest, &inside);
        }
    }
    Ok(unread)
}

/// Known contents of bases, read concurrently. Layers are read only for what plans require for the
/// purpose.
async fn find_contents(
    bases: &[(PlannedBase, BaseRequirements)],
    purpose: Purpose,
    ctx: &BuildContext<'_>,
) -> Result<Vec<Option<ResolvedFacts>>, BoxError> {
    let looks = bases.iter().map(|(base, needs)| async move {
        let Some(place) = base.source(&ctx.registry).await? else {
            return Ok(None);
        };
        let known = ctx.library.find_cached(&place, base.digest(), needs).await;
        Ok::<_, BoxError>(Some((place, known)))
    });
    let found = try_join_all(looks).await?;
    let reads = bases
        .iter()
        .zip(found)
        .map(|((base, needs), found)| async move {
            let Some((place, known)) = found else {
                return Ok(None);
            };
            let known = known.filter(|known| known.covers(needs));
            if known.is_some() || needs.is_empty() || purpose == Purpose::Rehearsal {
                return Ok(known);
            }
            let (what, name) = (content_name(needs), base.display_name());
            ctx.reporter.note(&format_args!(
                "reading {what} of {name} from its layers; index it once with `wincimg image base \
                 index {name} --push` to avoid that in later builds"
            ));
            let extent = Extent::Part((*needs).clone());
            let read = ctx.library.read(&place, &base.image, &extent).await;
            let (known, _) = read.map_err(|source| {
                let what = format!("cannot read the contents of {name}, which the image requires");
                Problem::context(what, source).blame(Blame::Circumstances)
            })?;
            Ok(Some(known))
        });
    try_join_all(reads).await
}

/// Each base once, with all requirements on it; without bases whose requirements are met already.
fn bases(images: &[PlannedImage], purpose: Purpose) -> Vec<(PlannedBase, BaseRequirements)> {
    let mut bases: Vec<(PlannedBase, BaseRequirements)> = Vec::new();
    let own = images.iter().map(|image| {
        let needs = match purpose {
            // Windows keeps the rights of what is in the image.
            Purpose::Dockerfile => image.plan.base_requirements(),
            Purpose::Layers | Purpose::Rehearsal => image.base_requirements(),
        };
        (image.ground(), needs)
    });
    let of_stages = images.iter().flat_map(|image| image.stages.required());
    for (planned, mut needs) in own.chain(of_stages) {
        let is_stored = planned.place.is_some() || planned.interim.is_some();
        if !is_stored || planned.os_version.is_none() && needs.is_empty() {
            continue;
        }
        if purpose == Purpose::Dockerfile {
            needs.files = false;
            needs.contents.clear();
        }
        let known = bases
            .iter_mut()
            .find(|(base, _)| base.digest() == planned.digest());
        match known {
            Some((_, all)) => {
                all.hives.extend(needs.hives);
                all.files |= needs.files;
                all.contents.extend(needs.contents);
            }
            None => {
                bases.push((planned.clone(), needs));
            }
        }
    }
    bases.retain(|(base, needs)| needs.is_empty() || !satisfies(base.inside.as_ref(), needs));
    bases
}

/// Returns true if the known contents of a base meet the requirements. A failed read is reported by
/// the next reader.
fn satisfies(inside: &dyn BaseContents, needs: &BaseRequirements) -> bool {
    let mut hives = needs.hives.iter();
    let mut contents = needs.contents.iter();
    hives.all(|hive| is_known(&inside.key(&KeyPath::root_of(*hive))))
        && (!needs.files || has_known_files(inside))
        && contents.all(|path| is_known(&inside.content(path)))
}

/// Returns true if the files of a base are known, so that layers repeat its descriptors.
pub(crate) fn has_known_files(inside: &dyn BaseContents) -> bool {
    is_known(&inside.file(&ImagePath::drive()))
}

fn is_known<T>(answer: &Result<Answer<T>, BaseReadError>) -> bool {
    !matches!(answer, Ok(Answer::Unknown))
}

/// Name of the content that is read from layers.
fn content_name(needs: &BaseRequirements) -> &'static str {
    let files = needs.files || !needs.contents.is_empty();
    match (needs.hives.is_empty(), files) {
        (false, false) => "the registry",
        (true, _) => "the files",
        (false, true) => "the registry and the files",
    }
}
