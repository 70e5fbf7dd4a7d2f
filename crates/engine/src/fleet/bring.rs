//! From a fleet and nodes to what is missing, and to images where they belong.
//!
//! All images are looked at at once, with a bound. Bases are looked for once for all of them, and each
//! tag is read with one request; what is as it should be costs nothing more.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use jiff::civil::Date;
use tokio::sync::Semaphore;
use wincimg_cluster::nodes::Node;
use wincimg_cluster::rollout::command_line;
use wincimg_common::diagnose::Blame;
use wincimg_common::lock;
use wincimg_common::progress::{Progress, Tell};
use wincimg_http::Downloads;
use wincimg_inspect::bases::{BaseRegistry, ResolveError};
use wincimg_inspect::library::Library;
use wincimg_layer::Remembered;
use wincimg_oci::reference::Reference;
use wincimg_oci::remote::Registry;
use wincimg_recipe::Plan;

use super::report::{ImageReport, Report, State, Trouble};
use super::standing::{MadeOf, Reached, Standing};
use super::update::Updating;
use super::{Entry, Fleet, Work};
use crate::bases::BaseSearch;
use crate::choice::{Engine, Reason, Wish};
use crate::delivery::{Delivery, Destination, Documents, Existing};
use crate::design::{Design, Named};
use crate::downloads::Manner;
use crate::inside::Purpose;
use crate::order::{Means, Order, Reuse, UPDATE_LOCK, deliver_directly};
use crate::plans::{PlannedImage, TargetHost};
use crate::publication::{IndexWhen, Line, Naming, Publication};
use crate::served::review;

/// So many images are looked at at once.
const LOOKS: usize = 32;
/// So many are made at once. Each waits a moment after publishing, so it is more than there are cores.
const BUILDS: usize = 16;

/// Whether what is missing is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is only said.
    Check,
    /// It is made.
    Build,
}

/// What a fleet is brought with.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The client for all registries.
    pub registry: &'a Registry,
    /// Where base images come from, unless the file says otherwise.
    pub base_registry: &'a BaseRegistry,
    /// Who knows what is inside bases.
    pub library: &'a Library,
    /// What was downloaded.
    pub downloads: &'a Downloads,
    /// What the tars of layers came to in earlier runs.
    pub remembered: &'a Remembered,
    /// Who is shown what is under way.
    pub progress: &'a Arc<dyn Progress>,
    /// Who is told what deserves to be read.
    pub tell: &'a dyn Tell,
    /// Which documents go along with what is built.
    pub documents: &'a Documents,
    /// The time that new layers carry, where it is not the base's.
    pub created: Option<Timestamp>,
    /// The day on which the support of Windows is looked at.
    pub today: Date,
}

/// Says, and in [`Mode::Build`] makes, what is missing of a fleet for nodes. What fails of one image
/// stands in its report and stops no other.
pub async fn bring(fleet: &Fleet, nodes: &[Node], run: Run<'_>, mode: Mode) -> Report {
    let work = Bringing {
        run,
        mode,
        nodes,
        bases: BaseSearch::new(run.registry),
        reached: Reached::default(),
        said: Mutex::default(),
        builds: Semaphore::new(BUILDS),
    };
    let entries = stream::iter(&fleet.entries);
    let images = entries.map(|entry| Box::pin(work.one(entry)));
    let images: Vec<ImageReport> = images.buffered(LOOKS).collect().await;
    let silent = nodes.iter().filter(|node| node.build.is_none());
    let left_out = silent.filter_map(|node| node.name.clone()).collect();
    Report::new(fleet.file.clone(), images, left_out)
}

/// What all images share.
struct Bringing<'a> {
    run: Run<'a>,
    mode: Mode,
    nodes: &'a [Node],
    bases: BaseSearch,
    reached: Reached,
    said: Mutex<HashSet<String>>,
    builds: Semaphore,
}

/// Who is told about one image: what was said about another is not said again.
struct Voice<'a> {
    tell: &'a dyn Tell,
    said: &'a Mutex<HashSet<String>>,
    about: String,
}

impl Voice<'_> {
    fn is_new(&self, message: &str) -> bool {
        let mut said = lock(self.said);
        said.insert(message.to_owned())
    }
}

impl Tell for Voice<'_> {
    fn note(&self, message: &dyn Display) {
        let message = message.to_string();
        if self.is_new(&message) {
            self.tell.note(&format_args!("{}: {message}", self.about));
        }
    }

    fn warn(&self, message: &dyn Display) {
        let message = message.to_string();
        if self.is_new(&message) {
            self.tell.warn(&format_args!("{}: {message}", self.about));
        }
    }
}

impl Bringing<'_> {
    /// One image, whatever becomes of it.
    async fn one(&self, entry: &Entry) -> ImageReport {
        let mut report = ImageReport::new(entry);
        if let Err(trouble) = Box::pin(self.settle(entry, &mut report)).await {
            report.fail(trouble);
        }
        report
    }

    async fn settle(&self, entry: &Entry, report: &mut ImageReport) -> Result<(), Trouble> {
        let voice = Voice {
            tell: self.run.tell,
            said: &self.said,
            about: entry.label(),
        };
        let means = Means {
            registry: self.run.registry,
            bases: &self.bases,
            library: self.run.library,
            progress: self.run.progress,
            tell: &voice,
        };
        let nodes = self.nodes.iter().filter(|node| entry.selects(node));
        let nodes: Vec<Node> = nodes.cloned().collect();
        match &entry.work {
            Work::Build(named) => {
                let design = named.read(&voice)?;
                let building = self.build(entry, named, design, &nodes, &means, report);
                Box::pin(building).await
            }
            Work::Update { image, base } => {
                let hosts = TargetHost::of_nodes(&nodes);
                if !has_hosts(entry, &hosts, &means, report) {
                    return Ok(());
                }
                self.reach(image).await?;
                let updating = Updating {
                    run: &self.run,
                    mode: self.mode,
                    entry,
                    image,
                    base: base.as_deref(),
                    hosts: &hosts,
                    nodes: &nodes,
                    builds: &self.builds,
                };
                Box::pin(updating.settle(&means, report)).await
            }
        }
    }

    /// Makes sure that an image's registry answers.
    async fn reach(&self, reference: &Reference) -> Result<(), Trouble> {
        let reached = self.reached.check(self.run.registry, reference.registry());
        reached.await
    }

    async fn build(
        &self,
        entry: &Entry,
        named: &Named,
        design: Design,
        nodes: &[Node],
        means: &Means<'_>,
        report: &mut ImageReport,
    ) -> Result<(), Trouble> {
        let hosts = if design.is_for_any_host()? {
            Vec::new()
        } else {
            let hosts = TargetHost::of_nodes(nodes);
            if !has_hosts(entry, &hosts, means, report) {
                return Ok(());
            }
            hosts
        };
        let (Some(reference), Some(name)) = (entry.reference(), &entry.name) else {
            return Err(nameless(entry));
        };
        self.reach(&reference).await?;
        let base_registry = entry.base_registry.as_ref();
        let mut order = Order {
            design,
            hosts,
            base_registry: base_registry.unwrap_or(self.run.base_registry).clone(),
            matched: entry.matched,
        };
        let standing = Standing::read(self.run.registry, &reference);
        let planning = plan(&mut order, report, means);
        let (standing, images) = tokio::join!(standing, planning);
        let (standing, mut images) = (standing?, images?);
        for image in &mut images {
            image.plan.labels.extend(entry.labels.iter().cloned());
        }
        let naming = Naming {
            name: name.clone(),
            tag: Some(entry.tag.clone()),
            index: IndexWhen::Always,
        };
        let publication = Publication::new(&images, &naming)?;
        let planned = publication.images.iter().map(|image| image.planned);
        let planned: Vec<&PlannedImage> = planned.collect();
        let inputs = order.inputs(&planned, entry.compression)?;
        let (engine, why) = Wish::Any.choose(planned.iter().map(|image| &image.plan));
        let is_daemons = engine == Engine::Docker;
        let mut lacking: Vec<(Plan, MadeOf)> = Vec::new();
        for (image, inputs) in publication.images.iter().zip(inputs) {
            let made_of = MadeOf {
                inputs,
                base: image.planned.base.digest().clone(),
            };
            let verdict = standing.judge(&Line::planned(image), &made_of, is_daemons);
            let hosts = image.for_hosts.iter().map(|planned| planned.host.as_ref());
            for host in hosts {
                let build = report.of_host(host);
                let tagged = tagged(entry, name, &image.tag);
                build.state = verdict.state;
                build.reason.clone_from(&verdict.reason);
                build.digest = verdict.digest.as_ref().map(ToString::to_string);
                build.image = Some(tagged);
                build.os_version = image.planned.base.version_text();
            }
            if !verdict.state.is_there() {
                lacking.push((image.planned.plan.clone(), made_of));
            }
        }
        if self.mode == Mode::Check || lacking.is_empty() {
            return Ok(());
        }
        if is_daemons {
            return Err(needs_daemon(entry, named, &order, &why));
        }
        let is_lacking = |image: &PlannedImage| {
            let mut lacking = lacking.iter();
            lacking.any(|(plan, _)| plan.base == image.plan.base)
        };
        images.retain(is_lacking);
        // Whoever waits here holds nothing that others wait for.
        let _place = self.builds.acquire().await;
        let made = Making {
            work: self,
            entry,
            named,
            order: &order,
            naming: &naming,
            nodes,
            lacking: &lacking,
        };
        Box::pin(made.make(images, means, report)).await
    }
}

/// Notes an image's hosts; says so where there are none.
fn has_hosts(
    entry: &Entry,
    hosts: &[TargetHost],
    means: &Means<'_>,
    report: &mut ImageReport,
) -> bool {
    for host in hosts {
        report.of_host(Some(host));
    }
    if hosts.is_empty() {
        let selector = entry.selector.as_ref();
        let which = selector.map_or_else(String::new, |it| format!(" that {it} selects"));
        means.tell.warn(&format_args!(
            "line {}: there is no Windows node{which}",
            entry.line
        ));
    }
    !hosts.is_empty()
}

/// The tag of one image of an index.
fn tagged(entry: &Entry, name: &str, tag: &str) -> String {
    let joined = entry.registry.join(&format!("{name}:{tag}"));
    joined.map_or_else(|_| tag.to_owned(), |reference| reference.to_string())
}

/// Finds the bases. Hosts that none fits are told, and the others go on without them.
async fn plan(
    order: &mut Order,
    report: &mut ImageReport,
    means: &Means<'_>,
) -> Result<Vec<PlannedImage>, Trouble> {
    loop {
        let error = match order.plan(true, means).await {
            Ok(images) => return Ok(images),
            Err(error) => error,
        };
        let unserved = match error.search() {
            Some(ResolveError::NothingFits(nothing)) => nothing.host.version.build,
            _ => return Err(error.into()),
        };
        let is_unserved = |host: &TargetHost| host.build.version.build == unserved;
        if order.hosts.iter().all(is_unserved) {
            return Err(error.into());
        }
        let trouble = Trouble::from(error);
        for host in order.hosts.iter().filter(|host| is_unserved(host)) {
            let build = report.of_host(Some(host));
            build.state = State::Failed;
            build.problem = Some(trouble.clone());
        }
        order.hosts.retain(|host| !is_unserved(host));
    }
}

/// One image on its way.
struct Making<'a> {
    work: &'a Bringing<'a>,
    entry: &'a Entry,
    named: &'a Named,
    order: &'a Order,
    naming: &'a Naming,
    nodes: &'a [Node],
    lacking: &'a [(Plan, MadeOf)],
}

impl Making<'_> {
    async fn make(
        &self,
        mut images: Vec<PlannedImage>,
        means: &Means<'_>,
        report: &mut ImageReport,
    ) -> Result<(), Trouble> {
        let (run, order) = (&self.work.run, self.order);
        let again = self.noting();
        let mut supply = order.supply(Manner::Pinned, run.downloads.clone(), again)?;
        let plans: Vec<Plan> = images.iter().map(|image| image.plan.clone()).collect();
        order.check_pins(&plans, &supply)?;
        order.bring(&mut images, &mut supply, means).await?;
        let (engine, why) = Wish::Any.choose(images.iter().map(|image| &image.plan));
        if engine == Engine::Docker {
            return Err(needs_daemon(self.entry, self.named, order, &why));
        }
        order
            .look(&mut images, Purpose::Layers, &mut supply, means)
            .await?;
        let mut publication = Publication::new(&images, self.naming)?;
        publication.documents = self.documents();
        for image in &mut publication.images {
            let base = image.planned.base.digest();
            let known = self.lacking.iter().find(|(_, made)| made.base == *base);
            if let Some((_, made_of)) = known {
                image.annotations = made_of.annotations();
            }
        }
        let delivery = Delivery {
            registry: run.registry,
            progress: Arc::clone(run.progress),
            destinations: &[Destination::Registry(self.entry.registry.clone())],
            flavour: self.entry.flavour,
            existing: Existing::Join,
            review: &|outlooks| review(outlooks, self.nodes, run.today, means.tell),
        };
        let compression = self.entry.compression;
        let reuse = Some(Reuse {
            remembered: run.remembered.clone(),
            ..Reuse::default()
        });
        let delivering = deliver_directly(&publication, compression, run.created, reuse, &delivery);
        let delivered = Box::pin(delivering).await?;
        for image in delivered.images {
            let builds = report.builds.iter_mut();
            let of_image = builds.filter(|it| it.image.as_ref() == Some(&image.reference));
            for build in of_image {
                build.state = State::Built;
                build.digest = Some(image.digest.clone());
            }
        }
        Ok(())
    }

    /// The documents that were asked for, with what this image was told by.
    fn documents(&self) -> Documents {
        let mut documents = self.work.run.documents.clone();
        if let Some(told) = &mut documents.provenance {
            let values = self.named.values.iter().chain(&self.named.arguments);
            told.arguments = values.map(|(name, _)| name.clone()).collect();
            told.arguments.sort();
            told.arguments.dedup();
            told.source = self.order.design.source();
        }
        documents
    }

    /// The command that notes what downloads are.
    fn noting(&self) -> String {
        let mut words = build_words(self.named, self.order);
        words.push(UPDATE_LOCK.to_owned());
        typed(&words)
    }
}

impl Entry {
    /// Whether it is for a node.
    pub(super) fn selects(&self, node: &Node) -> bool {
        let selector = self.selector.as_ref();
        selector.is_none_or(|selector| selector.selects(node))
    }
}

/// The build of one image by itself, as far as names and hosts go.
fn build_words(named: &Named, order: &Order) -> Vec<String> {
    let mut words = vec!["wincimg".to_owned(), "build".to_owned()];
    words.push(named.image.clone());
    for host in &order.hosts {
        words.extend(["--host-build".to_owned(), host.build.version.to_string()]);
    }
    for (name, value) in &named.values {
        words.extend(["--set".to_owned(), format!("{name}={value}")]);
    }
    for (name, value) in &named.arguments {
        words.extend(["--build-arg".to_owned(), format!("{name}={value}")]);
    }
    words
}

fn typed(words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    command_line(&words)
}

/// What only a daemon can make.
fn needs_daemon(entry: &Entry, named: &Named, order: &Order, why: &Reason) -> Trouble {
    let mut words = build_words(named, order);
    let name = entry.name.clone().unwrap_or_default();
    let registry = entry.registry.to_string();
    for (flag, value) in [
        ("--registry", registry),
        ("--name", name),
        ("--tag", entry.tag.clone()),
    ] {
        words.extend([flag.to_owned(), value]);
    }
    words.extend(["--join", "--push"].map(str::to_owned));
    Trouble {
        problem: format!("a Docker daemon on Windows is needed: {why}"),
        hint: Some(format!("{} --docker-host tcp://HOST:2376", typed(&words))),
        blame: Blame::Answer,
    }
}

/// An image of which the file says no name, and what is built neither.
fn nameless(entry: &Entry) -> Trouble {
    Trouble {
        problem: format!(
            "the image in line {} has no name that can be pushed to {}",
            entry.line, entry.registry
        ),
        hint: Some("give it one: name = \"…\"".to_owned()),
        blame: Blame::Request,
    }
}
