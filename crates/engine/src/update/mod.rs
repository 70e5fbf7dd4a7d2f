//! Rebases an image without its sources.
//!
//! [`plan_served`] finds the image's base (`bases`) and the matching base of each host, and compares what
//! the image's own layers touch in both. [`deliver`] puts the layers on the new base, with the
//! configuration merged, if they mean the same there, and delivers the images. A layer is read once
//! to find what it touches; none is written.
//!
//! `crane rebase` does the same for layers whose author knows that they can be moved. The author of
//! a Windows layer cannot know that: `RUN` leaves serviced files and registry keys in it that no
//! line of a Dockerfile names.

mod bases;
mod compare;
mod conflict;
mod delivery;
mod hives;
mod planner;
mod rebase;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;
use serde::Serialize;
use wincimg_common::Named;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_inspect::bases::{BaseMatch, BaseRegistry};
use wincimg_inspect::{InspectError, windows_images_in};
use wincimg_layer::HiveFolder;
use wincimg_oci::document::{Descriptor, Document, Image, Index, Verbatim};
use wincimg_oci::reference::Reference;
use wincimg_oci::store::Source;
use wincimg_windows::compat::{Architecture, HostBuild, Isolation, VerdictOutcome, check};
use wincimg_windows::version::WindowsVersion;

pub use self::bases::BaseDetection;
use self::bases::OldBase;
pub use self::conflict::UpdateConflict;
pub use self::delivery::deliver;
use self::planner::Planner;
use super::build::BuildContext;
use super::plans::{PlannedImage, TargetHost};
use super::unserved::{TargetIndex, UnservedHost, served};

/// Request to rebase an image for hosts.
pub struct UpdateRequest<'a> {
    /// The image, by tag or digest.
    pub image: &'a Reference,
    /// The hosts, of one architecture.
    pub hosts: &'a [TargetHost],
    /// Its base, if the user names it.
    pub base: Option<&'a str>,
    /// Where the user names it.
    pub base_setting: BaseSetting,
    /// Registry of bases.
    pub base_registry: &'a BaseRegistry,
    /// Required match of base images.
    pub wanted: BaseMatch,
    /// True if hosts of one build share an image if one can serve them, as an index requires.
    pub is_shared: bool,
    /// True if the layers of bases may be read when their contents are required and not known.
    pub reads_bases: bool,
}

/// Where a user names the base of an image, for hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseSetting {
    /// The flag `--base`.
    Flag,
    /// The key `base` of an entry in a file.
    Key,
}

impl BaseSetting {
    fn name(self) -> &'static str {
        match self {
            Self::Flag => "--base",
            Self::Key => "base = \"…\"",
        }
    }

    fn with(self, base: &str) -> String {
        match self {
            Self::Flag => format!("--base {base}"),
            Self::Key => format!("base = \"{base}\""),
        }
    }
}

/// Plan of the update of an image.
#[derive(Debug)]
pub struct UpdatePlan {
    /// Location of the image.
    pub source: Source,
    /// Its index, if its tag is one.
    pub index: Option<Verbatim<Index>>,
    /// The versions of Windows of its images for the hosts' architecture.
    pub versions: Vec<WindowsVersion>,
    /// The update for each host; empty for an image without Windows inside, which runs on any.
    pub planned: Vec<PlannedUpdate>,
}

/// The update for one host.
#[derive(Debug)]
pub struct PlannedUpdate {
    /// The image on the host's matching base.
    pub planned: PlannedImage,
    /// The current image.
    pub from: Image,
    /// Its current base.
    pub on: CurrentBase,
    /// Its own layers.
    pub own: Vec<ImageLayer>,
    /// Result of the comparison.
    pub verdict: UpdateVerdict,
    old: Image,
}

/// The current base of an image.
#[derive(Debug, Clone, Serialize)]
pub struct CurrentBase {
    /// Pinned reference.
    pub reference: String,
    /// The digest of its manifest.
    pub digest: String,
    /// Its version of Windows.
    pub os_version: String,
    /// Method of its detection.
    pub found_by: BaseDetection,
}

impl CurrentBase {
    /// The reference without its digest.
    pub fn name(&self) -> &str {
        self.reference.split('@').next().unwrap_or_default()
    }
}

/// A layer of the image above its base.
#[derive(Debug, Clone, Serialize)]
pub struct ImageLayer {
    /// Counted from 1 at the bottom of the image.
    pub layer: usize,
    /// The blob's digest.
    pub digest: String,
    /// The blob's size in bytes.
    pub size: u64,
    /// The instruction that made it, from the image's history.
    pub instruction: Option<String>,
    /// Scope of its comparison.
    pub compared: ComparisonScope,
    /// Names of the hives, without changes, that it gets: if one layer has hives, all need all.
    pub added_hives: Vec<&'static str>,
    #[serde(skip)]
    descriptor: Descriptor,
    #[serde(skip)]
    hives: HiveFolder,
}

/// Scope of a layer's comparison with the bases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonScope {
    /// Nothing: the image stays as it is.
    No,
    /// The names of every Windows: it only has folders of its own.
    Folders,
    /// The files and keys of both bases.
    Bases,
}

/// Result for an image and a host.
#[derive(Debug, Clone, PartialEq, Eq, Named)]
#[named(rename_all = "snake_case")]
pub enum UpdateVerdict {
    /// It is on the matching base.
    UpToDate,
    /// Its layers mean the same on that base.
    Moves,
    /// They do not.
    Refused(Vec<UpdateConflict>),
    /// An update finds out, by reading the bases.
    Unknown(Vec<UpdateConflict>),
}

impl UpdateVerdict {
    /// The conflicts.
    pub fn obstacles(&self) -> &[UpdateConflict] {
        match self {
            Self::Refused(obstacles) | Self::Unknown(obstacles) => obstacles,
            Self::UpToDate | Self::Moves => &[],
        }
    }
}

impl UpdatePlan {
    /// Returns true if there is nothing to update.
    pub fn are_up_to_date(&self) -> bool {
        let mut updates = self.planned.iter();
        updates.all(|update| update.verdict == UpdateVerdict::UpToDate)
    }

    /// Returns true if there is a conflict for a host.
    pub fn are_refused(&self) -> bool {
        let mut updates = self.planned.iter();
        updates.any(|update| matches!(update.verdict, UpdateVerdict::Refused(_)))
    }
}

/// Plans the update of an image for each host.
async fn plan(request: &UpdateRequest<'_>, ctx: &BuildContext<'_>) -> Result<UpdatePlan, BoxError> {
    let source = Source::Registry(ctx.registry.repository(request.image));
    let which = request.image.digest().or(request.image.tag());
    let document = source.resolve(which).await.map_err(InspectError::from)?;
    let index = match &document {
        Document::Index(index) => Some(Verbatim::clone(index)),
        Document::Manifest(_) => None,
    };
    let images = windows_images_in(&source, document, &[]).await?;
    let architecture = request.hosts.first().map(|host| host.build.architecture);
    let images = versions(request.image, images, architecture.unwrap_or_default())?;
    let versions: Vec<WindowsVersion> = images.iter().map(|(version, _)| *version).collect();
    // None if the image has no Windows inside.
    let hosts = request.hosts.iter();
    let chosen: Vec<(&TargetHost, usize)> = hosts
        .filter_map(|host| Some((host, image_for(host.build, &images)?)))
        .collect();
    let needed: BTreeSet<usize> = chosen.iter().map(|(_, place)| *place).collect();
    let planner = Planner {
        request,
        ctx,
        source: &source,
    };
    let finding = needed.iter().map(async |place| {
        let (version, image) = &images[*place];
        let under = planner.find_base_of(image, *version);
        Ok::<_, BoxError>((*place, under.await?))
    });
    let old: BTreeMap<usize, OldBase> = try_join_all(finding).await?.into_iter().collect();
    let mut updates: Vec<PlannedUpdate> = Vec::new();
    for (host, place) in &chosen {
        let (_, image) = &images[*place];
        let found = planner.new_base(host, &old[place], &chosen, &old).await?;
        updates.push(planner.plan_host(host, image, &old[place], found).await?);
    }
    Ok(UpdatePlan {
        source,
        index,
        versions,
        planned: updates,
    })
}

/// Plans the update for the hosts that have a base and, in an index of that tag, a place; returns
/// the others, with the command that publishes their image outside the index. No plan if no host
/// has a base. With `all_or_nothing`, the first of the others is the error.
pub async fn plan_served(
    request: &UpdateRequest<'_>,
    tag: &str,
    all_or_nothing: bool,
    command: &(dyn Fn(&TargetHost) -> String + Sync),
    ctx: &BuildContext<'_>,
) -> Result<(Option<UpdatePlan>, Vec<UnservedHost>), BoxError> {
    let planning = async |hosts: &[TargetHost]| {
        let served = UpdateRequest { hosts, ..*request };
        plan(&served, ctx).await
    };
    let (mut updates, mut unserved) = served(request.hosts, all_or_nothing, planning).await?;
    if let Some(updates) = updates.as_mut().filter(|_| request.is_shared) {
        let index = TargetIndex {
            tag,
            existing: &updates.versions,
            command,
            all_or_nothing,
        };
        let planned = &mut updates.planned;
        index.set_aside_conflicts(planned, |update| &update.planned, &mut unserved)?;
    }
    Ok((updates, unserved))
}

/// The images of an architecture with Windows inside, with their versions; none if all of its images
/// have no Windows inside.
fn versions(
    name: &Reference,
    images: Vec<Image>,
    architecture: Architecture,
) -> Result<Vec<(WindowsVersion, Image)>, Problem> {
    let mut versions = Vec::new();
    let mut others: Vec<String> = Vec::new();
    let mut is_for_windows = false;
    let mut runs_anywhere = false;
    for image in images {
        let platform = image.config().platform();
        if platform.os != "windows" || platform.architecture != architecture.name() {
            is_for_windows |= platform.os == "windows";
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
                return Err(Problem::answer("image/version", problem));
            }
            None => runs_anywhere = true,
        }
    }
    if versions.is_empty() && !runs_anywhere {
        if others.is_empty() {
            others.push("none at all".to_owned());
        }
        let others = others.join(", ");
        if is_for_windows {
            let wanted = architecture.name();
            let problem = format!("{name} has no image for windows/{wanted}: it has {others}");
            return Err(Problem::answer("image/no-platform", problem).hint(
                "images for another architecture are built again from their sources: wincimg \
                     build FOLDER --platform windows/arm64",
            ));
        }
        let problem = format!("{name} has no image for Windows: it has {others}");
        return Err(Problem::answer("image/not-windows", problem));
    }
    Ok(versions)
}

/// The image to rebase for a host: one of its build, else one that starts there, preferably without
/// reports that it fails, else the newest older one; one for a newer Windows comes last. Of several
/// alike the first, as runtimes do.
fn image_for(host: HostBuild, images: &[(WindowsVersion, Image)]) -> Option<usize> {
    let rank = |version: WindowsVersion| {
        let verdict = check(Some(host), Some(version), Isolation::Process);
        let starts = (
            verdict.outcome == VerdictOutcome::Compatible,
            verdict.is_startable(),
        );
        let is_not_newer = version.build <= host.version.build;
        let of_build = version.build == host.version.build;
        (of_build, starts, is_not_newer, version)
    };
    let places = 0..images.len();
    places.max_by_key(|place| (rank(images[*place].0), Reverse(*place)))
}
