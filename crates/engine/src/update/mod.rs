//! An image put on another base, without its sources.
//!
//! [`plan`] finds the base that the image was built on (`bases`), the one that fits each host, and
//! compares what the image's own layers touch with both. [`deliver`] puts the layers on the new base,
//! with the configuration carried over, where that means the same there, and brings the images to
//! their places. A layer is read once to know what it touches; none is written.
//!
//! `crane rebase` does the same for layers whose author knows that they can be moved. A layer of
//! Windows cannot be told to be one by its author: `RUN` leaves serviced files and keys of the
//! registry in it that no line of a Dockerfile names.

mod bases;
mod compare;
mod conflict;
mod delivery;
mod planner;
mod rebase;

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use serde::Serialize;
use wincimg_common::diagnose::{Blame, BoxError, Problem};
use wincimg_inspect::bases::{BaseMatch, BaseRegistry};
use wincimg_inspect::{InspectError, windows_images_in};
use wincimg_oci::document::{Descriptor, Document, Image};
use wincimg_oci::reference::Reference;
use wincimg_oci::store::Source;
use wincimg_windows::compat::{HostBuild, Isolation, check};
use wincimg_windows::version::WindowsVersion;

pub use self::bases::BaseDetection;
use self::bases::{Bases, OldBase};
pub use self::conflict::UpdateConflict;
pub use self::delivery::deliver;
use self::planner::Planner;
use super::build::BuildContext;
use super::plans::{PlannedImage, TargetHost};

/// An image that is to be put on the bases that fit some hosts.
pub struct UpdateRequest<'a> {
    /// The image, by tag or by digest.
    pub image: &'a Reference,
    /// The hosts.
    pub hosts: &'a [TargetHost],
    /// The base that it was built on, where the user says it.
    pub base: Option<&'a str>,
    /// Where bases come from.
    pub base_registry: &'a BaseRegistry,
    /// Which base images will do.
    pub wanted: BaseMatch,
    /// True if hosts of one build share an image where one can serve them, as an index needs it.
    pub is_shared: bool,
    /// True if the layers of bases are read where that is needed and nothing else tells what is
    /// inside.
    pub reads_bases: bool,
}

/// What there is to do about an image.
#[derive(Debug)]
pub struct UpdatePlan {
    /// Where the image is.
    pub source: Source,
    /// True if its tag is an index.
    pub is_index: bool,
    /// The versions of Windows that it has images for.
    pub versions: Vec<WindowsVersion>,
    /// What there is to do for each host; nothing for an image without Windows inside, which runs on
    /// any.
    pub planned: Vec<PlannedUpdate>,
}

/// What there is to do for one host.
#[derive(Debug)]
pub struct PlannedUpdate {
    /// The image on the base that fits the host.
    pub planned: PlannedImage,
    /// What it is now.
    pub from: Image,
    /// The base that it is on.
    pub on: CurrentBase,
    /// Its own layers.
    pub own: Vec<ImageLayer>,
    /// True if it can be put on the other base.
    pub verdict: UpdateVerdict,
    old: Image,
    /// True if the new image has to say what its base is, as nobody else could tell.
    notes_base: bool,
}

/// The base that an image is on.
#[derive(Debug, Clone, Serialize)]
pub struct CurrentBase {
    /// Where it is, pinned.
    pub reference: String,
    /// The digest of its manifest.
    pub digest: String,
    /// Its version of Windows.
    pub os_version: String,
    /// How it was found.
    pub found_by: BaseDetection,
}

/// A layer of the image that is not of its base.
#[derive(Debug, Clone, Serialize)]
pub struct ImageLayer {
    /// Counted from 1 at the bottom of the image.
    pub layer: usize,
    /// The blob's digest.
    pub digest: String,
    /// The blob's size in bytes.
    pub size: u64,
    /// The instruction that made it, as the image's history says.
    pub instruction: Option<String>,
    /// With what of the bases it was compared.
    pub compared: ComparisonScope,
    #[serde(skip)]
    descriptor: Descriptor,
}

/// With what of the bases a layer was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonScope {
    /// With nothing: the image stays as it is.
    No,
    /// With what every Windows has: it stays in folders of its own.
    Folders,
    /// With the files and keys of both.
    Bases,
}

/// True if an image can be put on the base that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateVerdict {
    /// It is on it.
    UpToDate,
    /// Its layers mean the same there.
    Moves,
    /// They do not, or nobody knows.
    Refused(Vec<UpdateConflict>),
}

impl UpdateVerdict {
    /// What is in the way.
    pub fn obstacles(&self) -> &[UpdateConflict] {
        match self {
            Self::Refused(obstacles) => obstacles,
            Self::UpToDate | Self::Moves => &[],
        }
    }

    /// What results call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::UpToDate => "up_to_date",
            Self::Moves => "moves",
            Self::Refused(_) => "refused",
        }
    }
}

impl UpdatePlan {
    /// Returns true if there is nothing to do.
    pub fn are_up_to_date(&self) -> bool {
        let mut updates = self.planned.iter();
        updates.all(|update| update.verdict == UpdateVerdict::UpToDate)
    }

    /// Returns true if something is in the way for a host.
    pub fn are_refused(&self) -> bool {
        let mut updates = self.planned.iter();
        updates.any(|update| matches!(update.verdict, UpdateVerdict::Refused(_)))
    }
}

/// Finds out what there is to do about an image for each host.
pub async fn plan(
    request: &UpdateRequest<'_>,
    means: &BuildContext<'_>,
) -> Result<UpdatePlan, BoxError> {
    let source = Source::Registry(means.registry.repository(request.image));
    let which = request.image.digest().or(request.image.tag());
    let document = source.resolve(which).await.map_err(InspectError::from)?;
    let is_index = matches!(document, Document::Index(_));
    let images = windows_images_in(&source, document, &[]).await?;
    let images = versions(request.image, images)?;
    let versions: Vec<WindowsVersion> = images.iter().map(|(version, _)| *version).collect();
    let mut chosen: Vec<(&TargetHost, usize)> = Vec::new();
    for host in request.hosts {
        if let Some(place) = image_for(host.build, &images) {
            chosen.push((host, place));
        }
    }
    if images.is_empty() {
        return Ok(UpdatePlan {
            source,
            is_index,
            versions,
            planned: Vec::new(),
        });
    }
    let mut needed: Vec<usize> = chosen.iter().map(|(_, place)| *place).collect();
    needed.sort_unstable();
    needed.dedup();
    let bases = Bases {
        means,
        base_registry: request.base_registry,
        wanted: request.wanted,
    };
    let finding = needed.iter().map(async |place| {
        let (version, image) = &images[*place];
        let under = bases.find_base_of(image, request.image, *version, request.base);
        Ok::<_, BoxError>((*place, under.await?))
    });
    let old: BTreeMap<usize, OldBase> = try_join_all(finding).await?.into_iter().collect();
    let planner = Planner {
        request,
        bases: &bases,
        means,
        source: &source,
    };
    let mut updates: Vec<PlannedUpdate> = Vec::new();
    for (host, place) in &chosen {
        let (_, image) = &images[*place];
        let found = planner.new_base(host, &old[place], &chosen, &old).await?;
        updates.push(planner.plan_host(host, image, &old[place], found).await?);
    }
    Ok(UpdatePlan {
        source,
        is_index,
        versions,
        planned: updates,
    })
}

/// The images with Windows inside, with their versions; none where none has.
fn versions(name: &Reference, images: Vec<Image>) -> Result<Vec<(WindowsVersion, Image)>, Problem> {
    let mut versions = Vec::new();
    let mut others: Vec<String> = Vec::new();
    let mut runs_anywhere = false;
    for image in images {
        let platform = image.config().platform();
        if platform.os != "windows" {
            others.push(platform.to_string());
            continue;
        }
        let stated = platform.os_version.filter(|stated| !stated.is_empty());
        match stated.as_deref().map(str::parse) {
            Some(Ok(version)) => versions.push((version, image)),
            Some(Err(_)) => {
                let version = stated.unwrap_or_default();
                let problem = format!(
                    "{name} has {version:?} as its os.version: expected 10.0.BUILD.REVISION"
                );
                return Err(Problem::new("image/version", problem).blame(Blame::Answer));
            }
            None => runs_anywhere = true,
        }
    }
    if versions.is_empty() && !runs_anywhere {
        if others.is_empty() {
            others.push("none at all".to_owned());
        }
        let others = others.join(", ");
        let problem = format!("{name} has no image for Windows: it has {others}");
        return Err(Problem::new("image/not-windows", problem).blame(Blame::Answer));
    }
    Ok(versions)
}

/// Which image is put on a host's base: one that starts there, else one of its build, else the newest
/// that is older; what was made for a newer Windows comes last.
fn image_for(host: HostBuild, images: &[(WindowsVersion, Image)]) -> Option<usize> {
    let rank = |version: WindowsVersion| {
        let starts = check(Some(host), Some(version), Isolation::Process).is_startable();
        let is_not_newer = version.build <= host.version.build;
        let of_build = version.build == host.version.build;
        (of_build, starts, is_not_newer, version)
    };
    let places = 0..images.len();
    places.max_by_key(|place| rank(images[*place].0))
}
