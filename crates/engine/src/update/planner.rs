//! Plans the update for one host: its matching base, and whether the image's layers mean the same
//! there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use wincimg_common::diagnose::{Blame, BoxError, Problem, error_chain};
use wincimg_inspect::base::{BaseFacts, Extent};
use wincimg_inspect::bases::NamedBase;
use wincimg_inspect::layer_diff::LayerDiff;
use wincimg_layer::HiveFolder;
use wincimg_oci::document::Image;
use wincimg_oci::reference::{Reference, repository_of, tagged_name};
use wincimg_oci::store::Source;
use wincimg_registry::Root;
use wincimg_windows::base_contents::BaseRequirements;
use wincimg_windows::compat::HostBuild;

use super::bases::OldBase;
use super::compare::{self, Comparison};
use super::conflict::{Conflict, UpdateConflict};
use super::{
    ComparisonScope, CurrentBase, ImageLayer, PlannedUpdate, UpdateRequest, UpdateVerdict, hives,
    rebase,
};
use crate::build::BuildContext;
use crate::listing::windows_path;
use crate::plans::{HostGroups, PlannedBase, PlannedImage, TargetHost};

/// Services and state of planning.
pub(super) struct Planner<'a> {
    pub(super) request: &'a UpdateRequest<'a>,
    pub(super) ctx: &'a BuildContext<'a>,
    pub(super) source: &'a Source,
}

impl Planner<'_> {
    /// The matching base of a host: hosts that can share an image get that of the oldest of them.
    pub(super) async fn new_base(
        &self,
        host: &TargetHost,
        old: &OldBase,
        chosen: &[(&TargetHost, usize)],
        all: &BTreeMap<usize, OldBase>,
    ) -> Result<PlannedBase, BoxError> {
        // Hosts whose images are on bases of the same name.
        let alike = chosen
            .iter()
            .filter(|(_, place)| is_alike(&all[place].named, &old.named));
        let builds: Vec<HostBuild> = alike.map(|(host, _)| host.build).collect();
        let UpdateRequest {
            is_shared, wanted, ..
        } = *self.request;
        let sharing = HostGroups::new(builds, is_shared, wanted);
        let bases = &self.ctx.bases;
        let searching = bases.by_name(&old.named, &sharing.asked_for, wanted);
        let mut found = searching.await?;
        Ok(sharing.base_for(Some(host.build), &mut found))
    }

    pub(super) async fn plan_host(
        &self,
        host: &TargetHost,
        image: &Image,
        old: &OldBase,
        new: PlannedBase,
    ) -> Result<PlannedUpdate, BoxError> {
        let (config, below) = (image.config(), old.image.config());
        let is_there = new.image.config().rootfs.diff_ids == below.rootfs.diff_ids
            && new.image.config().os_version == below.os_version;
        let first = below.rootfs.diff_ids.len();
        let layers = image.manifest().layers.iter().enumerate().skip(first);
        let instructions = rebase::instructions(config, below);
        let own = layers.zip(instructions);
        let mut own: Vec<ImageLayer> = own
            .map(|((number, blob), instruction)| ImageLayer {
                layer: number + 1,
                digest: blob.digest.to_string(),
                size: blob.size,
                instruction,
                compared: ComparisonScope::No,
                added_hives: Vec::new(),
                hives: HiveFolder::default(),
                descriptor: blob.clone(),
            })
            .collect();
        let verdict = if is_there {
            UpdateVerdict::UpToDate
        } else {
            match self.obstacles(&mut own, old, &new).await? {
                none if none.is_empty() => {
                    hives::note_missing(&mut own)?;
                    UpdateVerdict::Moves
                }
                unknown if !self.request.reads_bases && unknown.iter().all(is_unknown) => {
                    UpdateVerdict::Unknown(unknown)
                }
                some => UpdateVerdict::Refused(some),
            }
        };
        let on = CurrentBase {
            reference: old.reference.to_string(),
            digest: old.image.digest().to_string(),
            os_version: below.os_version.clone().unwrap_or_default(),
            found_by: old.by,
        };
        let name = self.request.image.repository();
        let plan = new.plan_of(name, Some(host));
        Ok(PlannedUpdate {
            planned: PlannedImage::new(Some(host.clone()), new, plan),
            from: image.clone(),
            on,
            own,
            verdict,
            old: old.image.clone(),
        })
    }

    /// Conflicts of an image's layers with another base.
    async fn obstacles(
        &self,
        own: &mut [ImageLayer],
        old: &OldBase,
        new: &PlannedBase,
    ) -> Result<Vec<UpdateConflict>, BoxError> {
        let touched = self.touched(own).await?;
        for (layer, touched) in own.iter_mut().zip(&touched) {
            layer.hives = touched.hives.clone();
        }
        let mut obstacles = Vec::from_iter(other_triggers(own, old, new));
        let is_apart = self.independence(old);
        // Those are safe. What is known of the bases is used nevertheless.
        let are_apart = touched.iter().all(&is_apart);
        if are_apart {
            for layer in &mut *own {
                layer.compared = ComparisonScope::Folders;
            }
        }
        let needs = needs_of(&touched);
        if needs.is_empty() {
            for (layer, touched) in own.iter().zip(&touched) {
                obstacles.extend(layer.obstacles(compare::incomparable(touched)));
            }
            return Ok(obstacles);
        }
        let Some(reference) = new.reference() else {
            return Ok(obstacles);
        };
        let looks = [(&old.reference, &old.image), (reference, &new.image)];
        let reads_bases = self.request.reads_bases && !are_apart;
        let known = looks
            .map(|(reference, image)| self.base_contents(reference, image, &needs, reads_bases));
        let facts = try_join_all(known).await?;
        let [Some(before), Some(now)] = facts.as_slice() else {
            let first = own.iter().zip(&touched).find(|(_, it)| !is_apart(it));
            obstacles.extend(first.map(|(layer, touched)| {
                let unknown_bases = unknown([&old.reference, reference], &facts);
                let names = unknown_bases.join(" and ");
                let what = format!("the contents of {names} are not known");
                UpdateConflict {
                    unknown_bases,
                    ..layer.obstacle(first_place(touched), Conflict::NotKnown(what))
                }
            }));
            return Ok(obstacles);
        };
        let found = match compared(own, &touched, before, now) {
            // Whoever may push there can attach a damaged index.
            Err(problem) if are_apart => {
                self.ctx.reporter.warn(&error_chain(&problem));
                Vec::new()
            }
            Err(problem) if reads_bases => {
                self.ctx.reporter.warn(&error_chain(&problem));
                let read = |(reference, image)| Box::pin(self.read_base(reference, image));
                let [before, now] = looks.map(read);
                let (before, now) = tokio::try_join!(before, now)?;
                compared(own, &touched, &before, &now)?
            }
            found => found?,
        };
        obstacles.extend(found);
        Ok(obstacles)
    }

    /// Returns a test for layers with only folders of their own, which mean the same on every Windows.
    fn independence(&self, old: &OldBase) -> impl Fn(&Arc<LayerDiff>) -> bool + use<> {
        let version = old.image.config().os_version.as_deref();
        let version = version.and_then(|text| text.parse().ok());
        let is_windows = self.is_windows_alone(&old.reference);
        move |touched| is_windows && compare::is_independent(touched, version)
    }

    /// Changes of an image's layers.
    async fn touched(&self, own: &[ImageLayer]) -> Result<Vec<Arc<LayerDiff>>, BoxError> {
        let reading = own.iter().map(async |layer| {
            let touched = self
                .ctx
                .library
                .layer_diff(self.source, &layer.descriptor)
                .await;
            touched.map_err(|problem| problem.in_layer(layer.layer - 1, &layer.descriptor.digest))
        });
        Ok(try_join_all(reading).await?)
    }

    /// Contents of a base; none if they require its layers, which may not be read.
    async fn base_contents(
        &self,
        reference: &Reference,
        image: &Image,
        needs: &BaseRequirements,
        reads_bases: bool,
    ) -> Result<Option<Arc<BaseFacts>>, BoxError> {
        let place = Source::Registry(self.ctx.registry.repository(reference));
        let known = self
            .ctx
            .library
            .find_cached(&place, image.digest(), needs)
            .await;
        let covers = |facts: &BaseFacts| facts.is_complete() || needs.hives.is_empty();
        if let Some(known) = known.filter(|known| known.covers(needs) && covers(&known.facts)) {
            if known.is_attached {
                let name = tagged_name(reference);
                self.ctx.reporter.note(&format_args!(
                    "comparing with the attached index of {name}, which anyone who can push there can \
                     forge; `wincimg image base index {name}` reads the layers instead"
                ));
            }
            return Ok(Some(known.facts));
        }
        if !reads_bases {
            return Ok(None);
        }
        self.read_base(reference, image).await.map(Some)
    }

    /// Contents of a base from its layers.
    async fn read_base(
        &self,
        reference: &Reference,
        image: &Image,
    ) -> Result<Arc<BaseFacts>, BoxError> {
        let place = Source::Registry(self.ctx.registry.repository(reference));
        let name = tagged_name(reference);
        self.ctx.reporter.note(&format_args!(
            "reading the layers of {name} to compare the image with them; index it once with \
             `wincimg image base index {name} --push` to avoid that in later updates"
        ));
        // Usually files are required, which takes all bytes.
        let read = self
            .ctx
            .library
            .read(&place, image, &Extent::Everything)
            .await;
        let (known, _) = read.map_err(|error| {
            let what = format!(
                "cannot read the contents of {name} to compare the layers of the image with them"
            );
            Problem::context(what, error).blame(Blame::Circumstances)
        })?;
        Ok(known.facts)
    }
}

impl ImageLayer {
    fn obstacles(&self, found: Vec<(String, Conflict)>) -> impl Iterator<Item = UpdateConflict> {
        let found = found.into_iter();
        found.map(|(place, conflict)| self.obstacle(place, conflict))
    }

    fn obstacle(&self, place: String, conflict: Conflict) -> UpdateConflict {
        UpdateConflict {
            layer: self.layer,
            digest: self.descriptor.digest.clone(),
            instruction: self.instruction.clone(),
            place,
            conflict,
            unknown_bases: Vec::new(),
        }
    }
}

fn is_unknown(conflict: &UpdateConflict) -> bool {
    matches!(conflict.conflict, Conflict::NotKnown(_))
}

/// The conflict with a base that has other ONBUILD triggers.
fn other_triggers(own: &[ImageLayer], old: &OldBase, new: &PlannedBase) -> Option<UpdateConflict> {
    let triggers = |image: &Image| image.config().config.on_build.clone();
    if triggers(&new.image) == triggers(&old.image) {
        return None;
    }
    let what = "the new base has other ONBUILD instructions, which a build carries out";
    let layer = own.first()?;
    Some(layer.obstacle(new.display_name(), Conflict::Strange(what.to_owned())))
}

/// The bases whose contents are not known.
fn unknown(bases: [&Reference; 2], facts: &[Option<Arc<BaseFacts>>]) -> Vec<String> {
    let unknown = bases.iter().zip(facts).filter(|(_, facts)| facts.is_none());
    unknown.map(|(base, _)| tagged_name(base)).collect()
}

/// Compares layers with two bases that are known.
fn compared(
    own: &mut [ImageLayer],
    touched: &[Arc<LayerDiff>],
    before: &BaseFacts,
    now: &BaseFacts,
) -> Result<Vec<UpdateConflict>, Problem> {
    let unreadable = |error| {
        Problem::from_error("base/facts", error)
            .hint("read the bases again: wincimg image base index IMAGE")
    };
    let layers = touched.iter().map(AsRef::as_ref);
    let mut comparison = Comparison::new(before, now, layers).map_err(unreadable)?;
    let mut obstacles = Vec::new();
    for (layer, touched) in own.iter_mut().zip(touched) {
        layer.compared = ComparisonScope::Bases;
        let found = comparison.layer(touched).map_err(unreadable)?;
        obstacles.extend(layer.obstacles(found));
    }
    Ok(obstacles)
}

/// Returns true if two images' bases have the same name, whatever their version of Windows.
fn is_alike(a: &NamedBase, b: &NamedBase) -> bool {
    match (a, b) {
        (NamedBase::OfHost { name: a, .. }, NamedBase::OfHost { name: b, .. }) => {
            a.flavour == b.flavour && repository_of(&a.repository) == repository_of(&b.repository)
        }
        (a, b) => a == b,
    }
}

/// The required contents of both bases.
fn needs_of(touched: &[Arc<LayerDiff>]) -> BaseRequirements {
    let has_keys = touched.iter().any(|layer| !layer.keys.is_empty());
    BaseRequirements {
        hives: if has_keys {
            [Root::System, Root::Software, Root::DefaultUser].into()
        } else {
            BTreeSet::new()
        },
        files: touched.iter().any(|layer| !layer.files.is_empty()),
        ..BaseRequirements::default()
    }
}

fn first_place(touched: &LayerDiff) -> String {
    let file = touched.files.last();
    let file = file.map(|file| windows_path(&file.path));
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
