//! An image put on another base, without its sources.
//!
//! [`plan`] finds the base that the image was built on ([`bases`]), the one that fits each host, and
//! compares what the image's own layers touch with both. [`deliver`] puts the layers on the new base,
//! with the configuration carried over, where that means the same there, and brings the images to
//! their places. A layer is read once to know what it touches; none is written.
//!
//! `crane rebase` does the same for layers whose author knows that they can be moved. A layer of
//! Windows cannot be told to be one by its author: `RUN` leaves serviced files and keys of the
//! registry in it that no line of a Dockerfile names.

mod bases;
mod carry;
mod compare;
mod deliver;
mod error;
mod obstacle;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use serde::Serialize;

use self::bases::OldBase;
use self::carry::Called;
use self::compare::Comparison;
use super::direct::{Assembled, Carried};
use super::order::Means;
use super::plans::{PlannedBase, PlannedImage, StageBases, TargetHost, common, leader};
use super::publication::{Publication, TaggedImage};
use crate::inspect::base::{BaseFacts, Extent};
use crate::inspect::touched::Touched;
use crate::inspect::{LayerError, windows_images};
use crate::oci::base::{Match, NamedBase, Resolution, SetAside};
use crate::oci::document::{Descriptor, Document, Image};
use crate::oci::reference::Reference;
use crate::oci::store::{Source, StoreError};
use crate::windows::compat::{HostBuild, Isolation, judge};
use crate::windows::inside::Needs;
use crate::windows::registry::Root;
use crate::windows::version::WindowsVersion;

pub use self::bases::{Bases, FoundBy};
pub use self::deliver::{Target, deliver};
pub use self::error::UpdateError;
pub use self::obstacle::{Conflict, Obstacle};

/// An image that is to be put on the bases that fit some hosts.
pub struct UpdateRequest<'a> {
    /// The image, by tag or by digest.
    pub image: &'a Reference,
    /// The hosts.
    pub hosts: &'a [TargetHost],
    /// The base that it was built on, where the user says it.
    pub base: Option<&'a str>,
    /// Whether hosts of one build share an image where one can serve them, as an index needs it.
    pub is_shared: bool,
    /// Whether the layers of bases are read where that is needed and nothing else tells what is inside.
    pub reads_bases: bool,
}

/// What there is to do about an image.
#[derive(Debug)]
pub struct Updates {
    /// Where the image is.
    pub source: Source,
    /// Whether its tag is an index.
    pub is_index: bool,
    /// The versions of Windows that it has images for.
    pub versions: Vec<WindowsVersion>,
    /// What there is to do for each host; nothing for an image without Windows inside, which runs on
    /// any.
    pub updates: Vec<PlannedUpdate>,
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
    pub own: Vec<OwnLayer>,
    /// Whether it can be put on the other base.
    pub verdict: Verdict,
    old: Image,
    /// Whether the new image has to say what its base is, as nobody else could tell.
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
    pub found_by: FoundBy,
}

/// A layer of the image that is not of its base.
#[derive(Debug, Clone, Serialize)]
pub struct OwnLayer {
    /// Counted from 1 at the bottom of the image.
    pub layer: usize,
    /// The blob's digest.
    pub digest: String,
    /// The blob's size in bytes.
    pub size: u64,
    /// The instruction that made it, as the image's history says.
    pub instruction: Option<String>,
    /// With what of the bases it was compared.
    pub compared: Compared,
    #[serde(skip)]
    descriptor: Descriptor,
}

/// With what of the bases a layer was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// With nothing: the image stays as it is.
    No,
    /// With what every Windows has: it stays in folders of its own.
    Folders,
    /// With the files and keys of both.
    Bases,
}

/// Whether an image can be put on the base that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is on it.
    UpToDate,
    /// Its layers mean the same there.
    Moves,
    /// They do not, or nobody knows.
    Refused(Vec<Obstacle>),
}

impl Verdict {
    /// What is in the way.
    pub fn obstacles(&self) -> &[Obstacle] {
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

impl Updates {
    /// Whether there is nothing to do.
    pub fn are_up_to_date(&self) -> bool {
        let mut updates = self.updates.iter();
        updates.all(|update| update.verdict == Verdict::UpToDate)
    }

    /// Whether something is in the way for a host.
    pub fn are_refused(&self) -> bool {
        let mut updates = self.updates.iter();
        updates.any(|update| matches!(update.verdict, Verdict::Refused(_)))
    }
}

/// Finds out what there is to do about an image for each host.
pub async fn plan(
    request: &UpdateRequest<'_>,
    bases: &Bases<'_>,
    means: &Means<'_>,
) -> Result<Updates, UpdateError> {
    let source = Source::Registry(means.registry.repository(request.image));
    let which = request.image.digest().or(request.image.tag());
    let images = windows_images(&source, which, &[]).await?;
    // What was read a moment ago; it says what the tag is.
    let is_index = is_index(&source, which).await?;
    let images = versions(request.image, images)?;
    let versions: Vec<WindowsVersion> = images.iter().map(|(version, _)| *version).collect();
    let mut chosen: Vec<(&TargetHost, usize)> = Vec::new();
    for host in request.hosts {
        if let Some(place) = image_for(host.build, &images) {
            chosen.push((host, place));
        }
    }
    if images.is_empty() {
        return Ok(Updates {
            source,
            is_index,
            versions,
            updates: Vec::new(),
        });
    }
    let mut needed: Vec<usize> = chosen.iter().map(|(_, place)| *place).collect();
    needed.sort_unstable();
    needed.dedup();
    let finding = needed.iter().map(async |place| {
        let (version, image) = &images[*place];
        let under = bases.under(image, request.image, *version, request.base);
        Ok::<_, UpdateError>((*place, under.await?))
    });
    let old: BTreeMap<usize, OldBase> = try_join_all(finding).await?.into_iter().collect();
    let planner = Planner {
        request,
        bases,
        means,
        source: &source,
    };
    let mut updates: Vec<PlannedUpdate> = Vec::new();
    for (host, place) in &chosen {
        let (_, image) = &images[*place];
        let found = planner.new_base(host, &old[place], &chosen, &old).await?;
        updates.push(planner.planned(host, image, &old[place], found).await?);
    }
    Ok(Updates {
        source,
        is_index,
        versions,
        updates,
    })
}

async fn is_index(source: &Source, which: Option<&str>) -> Result<bool, UpdateError> {
    let document = source.resolve(which).await;
    let document = document.map_err(|error: StoreError| UpdateError::Image(error.into()))?;
    Ok(matches!(document, Document::Index(_)))
}

/// The images with Windows inside, with their versions; none where none has.
fn versions(
    name: &Reference,
    images: Vec<Image>,
) -> Result<Vec<(WindowsVersion, Image)>, UpdateError> {
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
                return Err(UpdateError::Version {
                    image: name.to_string(),
                    version: stated.unwrap_or_default(),
                });
            }
            None => runs_anywhere = true,
        }
    }
    if versions.is_empty() && !runs_anywhere {
        if others.is_empty() {
            others.push("none at all".to_owned());
        }
        return Err(UpdateError::NotWindows {
            image: name.to_string(),
            platforms: others.join(", "),
        });
    }
    Ok(versions)
}

/// Which image is put on a host's base: one that starts there, else one of its build, else the newest
/// that is older; what was made for a newer Windows comes last.
fn image_for(host: HostBuild, images: &[(WindowsVersion, Image)]) -> Option<usize> {
    let rank = |version: WindowsVersion| {
        let starts = judge(Some(host), Some(version), Isolation::Process).starts();
        let is_not_newer = version.build <= host.version.build;
        let of_build = version.build == host.version.build;
        (of_build, starts, is_not_newer, version)
    };
    let places = 0..images.len();
    places.max_by_key(|place| rank(images[*place].0))
}

/// What plans need to be made.
struct Planner<'a> {
    request: &'a UpdateRequest<'a>,
    bases: &'a Bases<'a>,
    means: &'a Means<'a>,
    source: &'a Source,
}

/// The base for a host, and what was passed over for it.
struct NewBase {
    base: PlannedBase,
    set_aside: Vec<SetAside>,
}

impl Planner<'_> {
    /// The base that fits a host: hosts that can share an image get the one of the oldest of them.
    async fn new_base(
        &self,
        host: &TargetHost,
        old: &OldBase,
        chosen: &[(&TargetHost, usize)],
        all: &BTreeMap<usize, OldBase>,
    ) -> Result<NewBase, UpdateError> {
        let shares = self.request.is_shared && self.bases.wanted == Match::Nearest;
        // Hosts whose images are on bases of the same name.
        let alike = chosen
            .iter()
            .filter(|(_, place)| is_alike(&all[place].named, &old.named));
        let builds: Vec<HostBuild> = alike.map(|(host, _)| host.build).collect();
        let of = |host: HostBuild| if shares { leader(host, &builds) } else { host };
        let mut asked_for: Vec<HostBuild> = builds.iter().map(|host| of(*host)).collect();
        asked_for.sort();
        asked_for.dedup();
        let found = self.bases.fitting(&old.named, &asked_for).await?;
        let own = of(host.build);
        let place = asked_for.partition_point(|asked| *asked < own);
        let set_aside = found[place].set_aside.clone();
        let place = if shares {
            let versions = found.iter().map(|found: &Resolution| found.base.os_version);
            common(place, &versions.collect::<Vec<_>>())
        } else {
            place
        };
        let mut base = found[place].base.clone();
        base.matched = Match::of(base.os_version, host.build);
        Ok(NewBase {
            base: base.into(),
            set_aside,
        })
    }

    async fn planned(
        &self,
        host: &TargetHost,
        image: &Image,
        old: &OldBase,
        new: NewBase,
    ) -> Result<PlannedUpdate, UpdateError> {
        let (config, below) = (image.config(), old.image.config());
        let is_there = new.base.image.config().rootfs.diff_ids == below.rootfs.diff_ids
            && new.base.image.config().os_version == below.os_version;
        let first = below.rootfs.diff_ids.len();
        let layers = image.manifest().layers.iter().enumerate().skip(first);
        let instructions = carry::instructions(config, below);
        let own = layers.zip(instructions);
        let mut own: Vec<OwnLayer> = own
            .map(|((number, blob), instruction)| OwnLayer {
                layer: number + 1,
                digest: blob.digest.to_string(),
                size: blob.size,
                instruction,
                compared: Compared::No,
                descriptor: blob.clone(),
            })
            .collect();
        let verdict = if is_there {
            Verdict::UpToDate
        } else {
            match self.obstacles(&mut own, old, &new.base).await? {
                none if none.is_empty() => Verdict::Moves,
                some => Verdict::Refused(some),
            }
        };
        let on = CurrentBase {
            reference: old.reference.to_string(),
            digest: old.image.digest().to_string(),
            os_version: below.os_version.clone().unwrap_or_default(),
            found_by: old.by,
        };
        let plan = new.base.plan_of(self.request.image.repository(), host);
        Ok(PlannedUpdate {
            planned: PlannedImage {
                host: Some(host.clone()),
                base: new.base,
                plan,
                stages: StageBases::default(),
                set_aside: new.set_aside,
            },
            from: image.clone(),
            on,
            own,
            verdict,
            old: old.image.clone(),
            notes_base: old.by == FoundBy::Asked,
        })
    }

    /// What is in the way of an image's layers on another base.
    async fn obstacles(
        &self,
        own: &mut [OwnLayer],
        old: &OldBase,
        new: &PlannedBase,
    ) -> Result<Vec<Obstacle>, UpdateError> {
        let reading = own.iter().map(async |layer| {
            let touched = self
                .means
                .library
                .touched(self.source, &layer.descriptor)
                .await;
            touched.map_err(|source| LayerError {
                layer: layer.layer - 1,
                digest: layer.descriptor.digest.clone(),
                source,
            })
        });
        let touched = try_join_all(reading).await?;
        let on_build = &new.image.config().config.on_build;
        let mut obstacles = Vec::new();
        if *on_build != old.image.config().config.on_build
            && let Some(layer) = own.first()
        {
            let what = "the new base has other ONBUILD instructions, which a build carries out";
            obstacles.push(layer.obstacle(new.for_people(), Conflict::Strange(what.to_owned())));
        }
        let is_apart = |touched: &Arc<Touched>| compare::is_apart(touched, &old.reference);
        if touched.iter().all(is_apart) {
            own.iter_mut()
                .for_each(|layer| layer.compared = Compared::Folders);
            return Ok(obstacles);
        }
        let needs = needs_of(&touched);
        if needs.is_empty() {
            for (layer, touched) in own.iter().zip(&touched) {
                let found = compare::strange(touched);
                obstacles.extend(
                    found
                        .into_iter()
                        .map(|(place, it)| layer.obstacle(place, it)),
                );
            }
            return Ok(obstacles);
        }
        let Some(reference) = &new.reference else {
            return Ok(obstacles);
        };
        let looks = [(&old.reference, &old.image), (reference, &new.image)];
        let looks = looks.map(|(reference, image)| self.look(reference, image, &needs));
        let facts = try_join_all(looks).await?;
        let [Some(before), Some(now)] = facts.as_slice() else {
            let missing: Vec<String> = [&old.reference, reference]
                .into_iter()
                .zip(&facts)
                .filter(|(_, facts)| facts.is_none())
                .map(|(reference, _)| name_of(reference))
                .collect();
            let what = format!("nobody has looked into {}", missing.join(" and "));
            let first = own.iter().zip(&touched).find(|(_, it)| !is_apart(it));
            let unknown = first.map(|(layer, touched)| {
                layer.obstacle(first_place(touched), Conflict::NotKnown(what))
            });
            obstacles.extend(unknown);
            return Ok(obstacles);
        };
        let mut comparison = Comparison::new(before, now);
        for (layer, touched) in own.iter_mut().zip(&touched) {
            layer.compared = Compared::Bases;
            let found = comparison.layer(touched)?;
            obstacles.extend(
                found
                    .into_iter()
                    .map(|(place, it)| layer.obstacle(place, it)),
            );
        }
        Ok(obstacles)
    }

    /// What is inside a base; nothing where that would take its layers and they are not to be read.
    async fn look(
        &self,
        reference: &Reference,
        image: &Image,
        needs: &Needs,
    ) -> Result<Option<Arc<BaseFacts>>, UpdateError> {
        let place = Source::Registry(self.means.registry.repository(reference));
        let known = self
            .means
            .library
            .look_up(&place, image.digest(), needs)
            .await;
        let covers = |facts: &BaseFacts| facts.is_complete() || needs.hives.is_empty();
        if let Some(known) = known.filter(|known| known.covers(needs) && covers(&known.facts)) {
            return Ok(Some(known.facts));
        }
        if !self.request.reads_bases {
            return Ok(None);
        }
        let name = name_of(reference);
        self.means.tell.note(&format_args!(
            "reading the layers of {name}, because the image touches what may be in it; after \
             `wincimg base index {name} --push` no update has to"
        ));
        // What is needed are files nearly always, which takes all bytes.
        let read = self
            .means
            .library
            .read(&place, image, &Extent::Everything)
            .await;
        let (known, _) = read.map_err(|source| UpdateError::Look { base: name, source })?;
        Ok(Some(known.facts))
    }
}

impl OwnLayer {
    fn obstacle(&self, place: String, conflict: Conflict) -> Obstacle {
        Obstacle {
            layer: self.layer,
            digest: self.descriptor.digest.clone(),
            instruction: self.instruction.clone(),
            place,
            conflict,
        }
    }
}

/// Whether two images' bases come from the same place, whichever Windows they were for.
fn is_alike(a: &NamedBase, b: &NamedBase) -> bool {
    match (a, b) {
        (NamedBase::OfHost { name: a, .. }, NamedBase::OfHost { name: b, .. }) => {
            (
                a.repository.registry(),
                a.repository.repository(),
                &a.flavour,
            ) == (
                b.repository.registry(),
                b.repository.repository(),
                &b.flavour,
            )
        }
        (a, b) => a == b,
    }
}

/// `HOST/NAME:TAG`.
fn name_of(reference: &Reference) -> String {
    let tag = reference.tag().unwrap_or_default();
    format!("{}/{}:{tag}", reference.registry(), reference.repository())
}

/// What has to be known of both bases.
fn needs_of(touched: &[Arc<Touched>]) -> Needs {
    let has_keys = touched.iter().any(|layer| !layer.keys.is_empty());
    Needs {
        hives: if has_keys {
            [Root::System, Root::Software, Root::DefaultUser].into()
        } else {
            Default::default()
        },
        files: touched.iter().any(|layer| !layer.files.is_empty()),
        ..Needs::default()
    }
}

/// The first place that a layer touches.
fn first_place(touched: &Touched) -> String {
    let file = touched.files.last();
    let file = file.map(|file| format!(r"C:\{}", file.path.replace('/', r"\")));
    let key = || {
        let key = touched.keys.last()?;
        Some(format!(
            r"{}\{}",
            key.hive.short_name(),
            key.components.join(r"\")
        ))
    };
    let strange = || touched.strange.first().map(|it| it.place.clone());
    file.or_else(key).or_else(strange).unwrap_or_default()
}

/// Makes the images of a publication, in their order: documents alone, as their layers are there.
fn make(publication: &Publication<'_>, updates: &Updates) -> Result<Vec<Assembled>, UpdateError> {
    let images = publication.images.iter();
    images.map(|image| make_one(image, updates)).collect()
}

fn make_one(image: &TaggedImage<'_>, updates: &Updates) -> Result<Assembled, UpdateError> {
    let mut all = updates.updates.iter();
    let is_it = |update: &&PlannedUpdate| std::ptr::eq(&raw const update.planned, image.planned);
    let same_base = |update: &&PlannedUpdate| update.planned.plan == image.planned.plan;
    let update = all.clone().find(is_it).or_else(|| all.find(same_base));
    let Some(update) = update else {
        unreachable!("a publication is of the images that were planned for it");
    };
    if update.verdict == Verdict::UpToDate {
        return Ok(Assembled {
            image: update.from.clone(),
            added: Vec::new(),
            carried: Some(Carried {
                source: updates.source.clone(),
                layers: update.from.manifest().layers.clone(),
                has_base: true,
            }),
        });
    }
    let called = Called {
        name: &update.planned.base.for_people(),
        note: update.notes_base,
    };
    let new = &update.planned.base.image;
    Ok(Assembled {
        image: carry::carried(&update.from, &update.old, new, &called)?,
        added: Vec::new(),
        carried: Some(Carried {
            source: updates.source.clone(),
            layers: update
                .own
                .iter()
                .map(|layer| layer.descriptor.clone())
                .collect(),
            has_base: false,
        }),
    })
}
