//! An image of a fleet whose sources are not at hand: it is put on the base that fits.

use tokio::sync::Semaphore;
use wincimg_cluster::nodes::Node;
use wincimg_common::diagnose::Blame;
use wincimg_oci::reference::Reference;

use super::Entry;
use super::bring::{Mode, Run};
use super::report::{ImageReport, State, Trouble};
use crate::build::Means;
use crate::plans::TargetHost;
use crate::publication::Outlook;
use crate::served::review;
use crate::update::{Obstacle, UpdateRequest, Verdict, deliver, plan};

/// One image, and what it is updated with.
pub(super) struct Updating<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) mode: Mode,
    pub(super) entry: &'a Entry,
    pub(super) image: &'a Reference,
    pub(super) base: Option<&'a str>,
    pub(super) hosts: &'a [TargetHost],
    pub(super) nodes: &'a [Node],
    pub(super) builds: &'a Semaphore,
}

impl Updating<'_> {
    pub(super) async fn settle(
        &self,
        means: &Means<'_>,
        report: &mut ImageReport,
    ) -> Result<(), Trouble> {
        let (run, entry) = (self.run, self.entry);
        let base_registry = entry.base_registry.as_ref();
        let request = UpdateRequest {
            image: self.image,
            hosts: self.hosts,
            base: self.base,
            base_registry: base_registry.unwrap_or(run.base_registry),
            wanted: entry.matched,
            is_shared: true,
            reads_bases: self.mode == Mode::Build,
        };
        let mut updates = plan(&request, means).await?;
        for update in &updates.planned {
            let build = report.of_host(update.planned.host.as_ref());
            let version = update.planned.base.version_text();
            build.os_version.clone_from(&version);
            build.image = Some(self.tagged(version.as_deref()));
            match &update.verdict {
                Verdict::UpToDate => {
                    build.state = State::Current;
                    build.digest = Some(update.from.digest().to_string());
                }
                Verdict::Moves => {
                    let fits = version.unwrap_or_default();
                    build.state = State::Outdated;
                    build.reason = Some(format!(
                        "is on {}, and {fits} fits now",
                        update.on.os_version
                    ));
                }
                Verdict::Refused(obstacles) => {
                    build.state = State::Failed;
                    build.problem = Some(refused(self.image, obstacles));
                }
            }
        }
        updates
            .planned
            .retain(|update| update.verdict == Verdict::Moves);
        if self.mode == Mode::Check || updates.planned.is_empty() {
            return Ok(());
        }
        let _place = self.builds.acquire().await;
        let name = self.image.repository().to_owned();
        let review = |outlooks: &[Outlook<'_>]| review(outlooks, self.nodes, run.today, means.tell);
        let target = entry.target(name, run.documents.clone(), &review);
        let delivering = deliver(&updates, self.image, target, means);
        report.note_built(Box::pin(delivering).await?);
        Ok(())
    }

    /// The tag of one image of the index.
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

/// What is in the way of an image, by the first of it.
fn refused(image: &Reference, obstacles: &[Obstacle]) -> Trouble {
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
    Trouble {
        problem: format!("{}{more}", first.unwrap_or_default()),
        hint: Some(format!(
            "build it from its sources: build = \"FOLDER\" in place of update = \"{image}\""
        )),
        blame: Blame::Answer,
    }
}
