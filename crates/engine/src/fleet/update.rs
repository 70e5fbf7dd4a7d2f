//! Images of a fleet without sources: rebased on the base that matches.

use wincimg_cluster::nodes::Node;
use wincimg_common::diagnose::Blame;
use wincimg_oci::reference::Reference;

use super::FleetEntry;
use super::report::{FleetImageState, ImageReport, ReportedError};
use super::sync::{CheckPermit, SyncMode, SyncOptions, no_index_command};
use crate::build::BuildContext;
use crate::compat_check::check_served;
use crate::plans::TargetHost;
use crate::publication::PlannedTag;
use crate::update::{
    BaseSetting, UpdateConflict, UpdatePlan, UpdateRequest, UpdateVerdict, deliver, plan_served,
};

/// One image, and the services to update it with.
pub(super) struct EntryUpdate<'a> {
    pub(super) run: &'a SyncOptions<'a>,
    pub(super) mode: SyncMode,
    pub(super) entry: &'a FleetEntry,
    pub(super) image: &'a Reference,
    pub(super) base: Option<&'a str>,
    pub(super) hosts: &'a [TargetHost],
    pub(super) nodes: &'a [Node],
}

impl EntryUpdate<'_> {
    pub(super) async fn run(
        &self,
        check: CheckPermit<'_>,
        ctx: &BuildContext<'_>,
        report: &mut ImageReport,
    ) -> Result<(), ReportedError> {
        let (run, entry) = (self.run, self.entry);
        let Some(mut updates) = self.plan_served(ctx, report).await? else {
            return Ok(());
        };
        for update in &updates.planned {
            let build = report.for_host(update.planned.host.as_ref());
            let version = update.planned.base.version_text();
            build.os_version.clone_from(&version);
            build.image = Some(self.tagged(version.as_deref()));
            match &update.verdict {
                UpdateVerdict::UpToDate => {
                    build.state = FleetImageState::Current;
                    build.digest = Some(update.from.digest().to_string());
                }
                UpdateVerdict::Moves => {
                    let fits = version.unwrap_or_default();
                    build.state = FleetImageState::Outdated;
                    build.reason = Some(format!(
                        "base {fits} fits, and replaces {}",
                        update.on.os_version
                    ));
                }
                UpdateVerdict::Refused(obstacles) => {
                    build.state = FleetImageState::Failed;
                    build.problem = Some(refused(self.image, obstacles));
                }
            }
        }
        updates
            .planned
            .retain(|update| update.verdict == UpdateVerdict::Moves);
        if self.mode == SyncMode::Check || updates.planned.is_empty() {
            return Ok(());
        }
        let review = |outlooks: &[PlannedTag<'_>]| {
            check_served(outlooks, self.nodes, run.today, ctx.reporter)
        };
        let mut target = entry.target(self.image.repository(), run.documents.clone(), &review);
        target.permit = check.into_build().await;
        let delivering = deliver(&updates, self.image, target, ctx);
        report.record_built(Box::pin(delivering).await?);
        Ok(())
    }

    /// Plans the updates for the hosts that have a base and a place in the index, and reports the
    /// others; none if no host is left.
    async fn plan_served(
        &self,
        ctx: &BuildContext<'_>,
        report: &mut ImageReport,
    ) -> Result<Option<UpdatePlan>, ReportedError> {
        let (run, entry) = (self.run, self.entry);
        let base_registry = entry.base_registry.as_ref();
        let request = UpdateRequest {
            image: self.image,
            hosts: self.hosts,
            base: self.base,
            base_setting: BaseSetting::Key,
            base_registry: base_registry.unwrap_or(run.base_registry),
            wanted: entry.matched,
            is_shared: true,
            reads_bases: self.mode == SyncMode::Build,
        };
        let command = |host: &TargetHost| {
            let mut words = ["wincimg", "image", "update"].map(str::to_owned).to_vec();
            words.push(self.image.to_string());
            words.push("--host-build".to_owned());
            words.push(host.build.version.to_string());
            if let Some(base) = self.base {
                words.extend(["--base".to_owned(), base.to_owned()]);
            }
            words.extend([
                "--base-registry".to_owned(),
                request.base_registry.to_string(),
            ]);
            words.extend_from_slice(run.flags);
            no_index_command(entry, words)
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
        format!(
            "{}/{}:{}-{}",
            self.image.registry(),
            self.image.repository(),
            self.entry.tag,
            version.unwrap_or_default()
        )
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
    ReportedError {
        problem: format!("{}{more}", first.unwrap_or_default()),
        hint: Some(format!(
            "build it from its sources: build = \"FOLDER\" in place of update = \"{image}\""
        )),
        blame: Blame::Answer,
    }
}
