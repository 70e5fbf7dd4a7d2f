//! Images of a fleet without sources: rebased on the base that matches.

use wincimg_common::diagnose::Problem;
use wincimg_oci::reference::{Reference, repository_of};

use super::report::{BuildReport, FleetImageState, ImageReport, ReportedError};
use super::sync::{CheckPermit, EntrySync, SyncMode, no_index_command};
use super::tag_contents::{ImageInputs, TagContents};
use crate::plans::TargetHost;
use crate::publication::{PlannedTag, PlannedTagEntry};
use crate::update::{
    BaseSetting, PlannedUpdate, UpdateConflict, UpdatePlan, UpdateRequest, UpdateVerdict, deliver,
    plan_served,
};

/// One image, which is rebased.
pub(super) struct EntryUpdate<'a> {
    pub(super) sync: EntrySync<'a>,
    pub(super) image: &'a Reference,
    pub(super) base: Option<&'a str>,
    pub(super) hosts: &'a [TargetHost],
}

impl EntryUpdate<'_> {
    pub(super) async fn run(
        &self,
        check: CheckPermit<'_>,
        report: &mut ImageReport,
    ) -> Result<(), ReportedError> {
        let sync = &self.sync;
        let Some(mut updates) = self.plan_served(report).await? else {
            return Ok(());
        };
        let standing = self.other_tag().await?;
        updates.planned.retain_mut(|update| {
            let build = report.for_host(update.planned.host.as_ref());
            let version = update.planned.base.version_text();
            build.image = Some(self.tagged(version.as_deref()));
            build.os_version = version;
            self.record(update, standing.as_ref(), build)
        });
        if sync.work.mode == SyncMode::Check || updates.planned.is_empty() {
            let own = updates.index.as_deref().map(TagContents::of_index);
            if let Some(standing) = standing.as_ref().or(own.as_ref()) {
                sync.check_current(standing, self.hosts, report);
            }
            return Ok(());
        }
        let (name, documents) = (self.image.repository(), sync.work.run.documents.clone());
        let review = |tags: &[PlannedTag<'_>]| sync.review(tags);
        let mut target = sync.entry.target(name, documents, &review);
        target.permit = sync.work.build_permit(check).await;
        let delivering = deliver(&updates, self.image, target, sync.ctx);
        report.record_built(Box::pin(delivering).await?);
        Ok(())
    }

    /// Content of the entry's tag, if it is another one than the image's.
    async fn other_tag(&self) -> Result<Option<TagContents>, ReportedError> {
        let reference = self.sync.entry.reference();
        let reference = reference.filter(|reference| reference.tag() != self.image.tag());
        let Some(reference) = reference else {
            return Ok(None);
        };
        let contents = TagContents::read(&self.sync.ctx.registry, &reference).await;
        contents.map(Some).map_err(ReportedError::from)
    }

    /// Records the state of an image, which is that of its own tag or, if it goes to another one, of
    /// that. Returns true if it is to be published, with its inputs then.
    fn record(
        &self,
        update: &mut PlannedUpdate,
        other_tag: Option<&TagContents>,
        build: &mut BuildReport,
    ) -> bool {
        if let Some(standing) = other_tag {
            let made_of = ImageInputs {
                inputs: update.inputs(),
                base: update.planned.base.digest().clone(),
            };
            let entry = PlannedTagEntry::from_planned(&update.planned);
            build.record(&standing.status(&entry, &made_of, false));
            update.planned.annotations = made_of.annotations();
        } else if update.verdict == UpdateVerdict::UpToDate {
            build.state = FleetImageState::Current;
            build.digest = Some(update.from.digest().to_string());
        } else {
            let fits = build.os_version.as_deref().unwrap_or_default();
            let unknown = match &update.verdict {
                UpdateVerdict::Unknown(_) => ", if its layers mean the same there",
                _ => "",
            };
            build.state = FleetImageState::Outdated;
            build.reason = Some(format!(
                "base {fits} fits, and replaces {}{unknown}",
                update.on.os_version
            ));
        }
        if let UpdateVerdict::Refused(obstacles) = &update.verdict
            && !build.state.is_present()
        {
            build.state = FleetImageState::Failed;
            build.reason = None;
            build.problem = Some(refused(self.image, obstacles));
        }
        matches!(
            build.state,
            FleetImageState::Missing | FleetImageState::Outdated
        )
    }

    /// Plans the updates for the hosts that have a base and a place in the index, and reports the
    /// others; none if no host is left.
    async fn plan_served(
        &self,
        report: &mut ImageReport,
    ) -> Result<Option<UpdatePlan>, ReportedError> {
        let EntrySync {
            work, entry, ctx, ..
        } = self.sync;
        let run = &work.run;
        let base_registry = entry.base_registry.as_ref();
        let request = UpdateRequest {
            image: self.image,
            hosts: self.hosts,
            base: self.base,
            base_setting: BaseSetting::Key,
            base_registry: base_registry.unwrap_or(run.base_registry),
            wanted: entry.matched,
            is_shared: true,
            reads_bases: work.mode == SyncMode::Build,
        };
        let command = |host: &TargetHost| {
            let mut words = ["wincimg", "image", "update"].map(str::to_owned).to_vec();
            words.push(self.image.to_string());
            if self.image.tag() != Some(entry.tag.as_str()) {
                words.extend(["--tag".to_owned(), entry.tag.clone()]);
            }
            words.push("--host-build".to_owned());
            words.push(host.build.version.to_string());
            if let Some(base) = self.base {
                words.extend(["--base".to_owned(), base.to_owned()]);
            }
            words.extend(entry.option_words(run.base_registry));
            words.extend_from_slice(run.flags);
            no_index_command(words)
        };
        let planning = plan_served(&request, &entry.tag, run.all_or_nothing, &command, ctx);
        let (updates, unserved) = planning.await.map_err(ReportedError::from)?;
        for host in unserved {
            report.record_unserved(host);
        }
        Ok(updates)
    }

    /// Reference of one image of the index.
    fn tagged(&self, version: Option<&str>) -> String {
        let (image, tag) = (repository_of(self.image), &self.sync.entry.tag);
        format!("{image}:{tag}-{}", version.unwrap_or_default())
    }
}

/// Error for an image that cannot be rebased, with its first conflict.
fn refused(image: &Reference, obstacles: &[UpdateConflict]) -> ReportedError {
    let first = obstacles.first().map(|first| {
        let (layer, place) = (first.layer, &first.place);
        format!("layer {layer} has {place}: {}", first.conflict)
    });
    let more = obstacles.len().saturating_sub(1);
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    let problem = format!("{}{more}", first.unwrap_or_default());
    let error = Problem::answer("update/conflict", problem).hint(format!(
        "build it from its sources: build = \"FOLDER\" in place of update = \"{image}\""
    ));
    ReportedError::from(error)
}
