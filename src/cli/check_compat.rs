//! `wincimg check-compat`: checks which images start on which nodes, before a rollout.

mod images;
mod table;
mod watch;
mod workloads;

use crate::cli::Failure;
use crate::cli::manifests::namespace;
use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use wincimg_cluster::live::NodeSnapshot;
use wincimg_cluster::nodes::{Node, NodeList};
use wincimg_cluster::rollout::{
    CommandFlags, Details, Image, Rollout, RolloutRequest, Simulation, SimulationMatches,
    TagsByRepository, apply_hotfix,
};
use wincimg_cluster::workloads::{Workload, WorkloadList};
use wincimg_common::diagnose::closest_match;
use wincimg_oci::store::LocationError;
use wincimg_windows::compat::Isolation;
use wincimg_windows::release;
use wincimg_windows::update::{Kb, Update, Updates};

use super::build::source_date_epoch;
use super::hosts::{HostName, host_name};
use super::input::is_stdin;
use super::output::{FILE_WIDTH, check_distinct, check_file, terminal_width};
use super::{security, updates};
use crate::cli::prelude::*;
use crate::report::{
    ReportFormat, ReportOrigin, TextStyle, write_html, write_json, write_junit, write_markdown,
    write_sarif, write_text,
};

/// Check which images start on which nodes, and what to fix
#[derive(Debug, Args)]
#[command(
    next_display_order = 10,
    after_help = "Examples:\n  \
    wincimg check-compat --kube\n  \
    wincimg check-compat --kube --context production --plan \\\n      \
    --report html:report.html\n  \
    wincimg check-compat --kube --selector pool=web repo.mylan.k8s:8888/app:1.4\n  \
    wincimg check-compat --nodes nodes.json --workloads deploy.yaml \\\n      \
    --simulate-hotfix KB4549949\n  \
    kubectl get nodes -o json |\n      \
    wincimg check-compat --nodes - repo.mylan.k8s:8888/app:1.4\n  \
    wincimg check-compat --host-build 17763.973 --image-build 17763.1158\n\n\
    Exit code 0: everything that lands on a node starts. 1: something does not start, or that is unknown."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct CheckCompat {
    /// Images to check: references, oci:DIR or docker-archive:FILE
    #[arg(value_name = "IMAGE", add = complete::images())]
    references: Vec<String>,
    /// Check an image of this Windows version, such as 17763.1158, or of a release such as ltsc2022
    /// (repeatable)
    #[arg(long = "image-build", value_name = "B.R", value_parser = host_name, hide_short_help = true)]
    image_builds: Vec<HostName>,
    /// Read image details from the JSON of `wincimg build` or `wincimg image inspect` instead of a
    /// registry (repeatable)
    #[arg(long = "images", value_name = "FILE", hide_short_help = true)]
    image_files: Vec<PathBuf>,
    /// Kubernetes workloads as YAML or JSON: files, folders, and patterns with * and ?; - reads stdin
    /// (repeatable)
    #[arg(short = 'f', long, value_name = "FILE")]
    workloads: Vec<PathBuf>,
    #[command(flatten)]
    hosts: HostArgs,
    /// Container isolation
    #[arg(long, value_enum, default_value = "process", hide_short_help = true)]
    isolation: Isolation,
    /// Assume that nodes run another version: win-a=17763.1158, or win-*=17763.1158 for all of
    /// build 17763 (repeatable)
    #[arg(long, value_name = "NODE=BUILD")]
    simulate: Vec<Simulation>,
    /// Assume that nodes of the matching build have this update installed (repeatable)
    #[arg(long, value_name = "KB", hide_short_help = true)]
    simulate_hotfix: Vec<Kb>,
    /// Add a plan: the smallest set of actions after which everything starts
    #[arg(long)]
    plan: bool,
    /// Include workloads that are scaled to 0, suspended or completed
    #[arg(long, hide_short_help = true)]
    include_inactive: bool,
    /// Skip cordoned nodes
    #[arg(long, hide_short_help = true)]
    skip_cordoned: bool,
    /// Do not group equal nodes in JSON: one check per node
    #[arg(long, hide_short_help = true)]
    each_node: bool,
    /// Images on a public registry that you build, such as ghcr.io/acme; only these are proposed
    /// for a rebuild (repeatable)
    #[arg(long = "own", value_name = "HOST/PREFIX", hide_short_help = true)]
    own: Vec<String>,
    /// Do not contact any registry
    #[arg(long, hide_short_help = true)]
    offline: bool,
    /// Exit with 1 on warnings too
    #[arg(long, hide_short_help = true)]
    strict: bool,
    /// Check Windows' end of support on this date [default: today]
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day, hide_short_help = true)]
    on: Option<Date>,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    kube: KubeArgs,
    #[command(flatten)]
    connection: RegistryArgs,
}

/// Formats and destinations of the report.
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// Report format [default: that of the output's name, or text]
    #[arg(long, value_enum)]
    format: Option<ReportFormat>,
    /// Write the report to this file instead of stdout; its name determines the format (.html, .json,
    /// .md, .sarif, .xml for JUnit)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write the report to a file, such as html:report.html (repeatable)
    #[arg(long = "report", value_name = "FORMAT:FILE", value_parser = parse_report_arg, add = complete::reports::<ReportFormat>())]
    reports: Vec<(ReportFormat, PathBuf)>,
}

impl ReportArgs {
    /// The given format, or that of the output's name.
    pub(super) fn format(&self) -> ReportFormat {
        format_of(self.format, self.output.as_deref()).unwrap_or(ReportFormat::Text)
    }

    /// Rejects files that cannot be written.
    pub(super) fn check(&self) -> Result<()> {
        self.files().iter().try_for_each(|file| check_file(file))?;
        let reports = self.reports.iter().map(|(_, file)| file);
        check_distinct(self.output.as_deref(), reports)
    }

    /// The files that are written.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let more = self.reports.iter().map(|(_, file)| file);
        more.chain(&self.output).cloned().collect()
    }

    /// Writes the report to each named file, and to stdout, also after one fails.
    pub(super) fn write(
        &self,
        write: impl Fn(ReportFormat, Option<&Path>, &mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let more = self.reports.iter();
        let more = more.map(|(format, file)| (*format, Some(file.as_path())));
        let mut written = Ok(());
        for (format, file) in more.chain([(self.format(), self.output.as_deref())]) {
            written = written.and(write_result(file, |out| write(format, file, out)));
        }
        written
    }
}

impl CheckCompat {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        self.check_arguments(session)?;
        let (list, unread) = workloads::read(&self.workloads, &self.input_flags(), session)?;
        let mut nodes = self.hosts.listed_nodes(session)?;
        let (snapshot, of_cluster) = self.ask_cluster(&mut nodes)?;
        if self.skip_cordoned {
            nodes.windows.retain(|node| !node.is_cordoned);
            nodes.others.retain(|node| !node.is_cordoned);
        }
        let mut lists = [list, of_cluster];
        let inactive = if self.include_inactive {
            0
        } else {
            lists.iter_mut().map(WorkloadList::remove_inactive).sum()
        };
        let skipped = std::mem::take(&mut lists[0].skipped);
        let workloads = lists.into_iter().flat_map(WorkloadList::into_workloads);
        let workloads: Vec<Workload> = workloads.collect();
        let as_it_is = self.simulates().then(|| nodes.clone());
        let what_if = self.simulate(&mut nodes.windows)?;
        let (images, plain) = self.images(&workloads, session)?;
        let mut request = RolloutRequest {
            nodes,
            images,
            plain,
            workloads,
            skipped,
            inactive,
            isolation: Some(self.isolation),
            flags: CommandFlags {
                registry: self.connection.to_words(),
                kubectl: self.hosts.cluster.to_words(),
                is_live: self.workloads.is_empty(),
            },
            own: self.own.clone(),
            today: Some(self.on.unwrap_or_else(|| Zoned::now().date())),
        };
        let mut rollout = self.rollout(&mut request, session)?;
        rollout.what_if = what_if;
        rollout.as_it_is = as_it_is.map(|nodes| Rollout::on(nodes, &request).count_outcomes());
        self.report_skipped(&rollout, session);
        let cluster = snapshot.as_ref().map(|(name, _)| name.as_str());
        self.write(&rollout, cluster, session)?;
        // Whether an image has the latest update depends on the table.
        let is_outdated = |version: WindowsVersion| {
            let newest = Updates::global().newest(version.build);
            newest.is_some_and(|newest| version < newest.version())
        };
        let mut versions = rollout.images.iter().flat_map(Image::versions);
        if let Some(version) = versions.find(|version| is_outdated(*version)) {
            updates::warn_if_stale(version.build, session, request.today);
        }
        if let Some((_, nodes)) = snapshot.filter(|_| self.kube.watch) {
            watch::follow(&self.hosts, nodes, &request, self.report.format())?;
        }
        workloads::conclude(rollout.is_compatible(self.strict), unread, session)
    }

    /// The flags of what is read besides workloads, as words of a command line.
    fn input_flags(&self) -> Vec<String> {
        let mut words = self.hosts.to_words();
        let files = self.image_files.iter().map(|file| file.display());
        words.extend(flag_words("--images", files));
        if self.offline {
            words.push("--offline".to_owned());
        }
        words.extend(self.connection.to_words());
        words
    }

    /// Returns true if images are named, directly or in workloads.
    fn names_images(&self) -> bool {
        !(self.image_builds.is_empty() && self.references.is_empty() && self.workloads.is_empty())
    }

    /// Rejects contradictory arguments before anything is read.
    fn check_arguments(&self, session: &Session) -> Result<()> {
        if !self.names_images() && !self.hosts.cluster.is_set() {
            let hint = if self.image_files.is_empty() {
                "check a cluster with --kube, or name an image, or add --image-build 17763.1158 or \
                 --workloads FILE"
            } else {
                "--images only describes images: name those to check too, or add --workloads FILE"
            };
            return Err(Failure::usage("no image to check").hint(hint));
        }
        let files = self.workloads.iter().chain(&self.image_files);
        let from_stdin = files.filter(|file| is_stdin(file)).count();
        if from_stdin + usize::from(self.hosts.read_stdin()) > 1 {
            return Err(Failure::usage("stdin can be read only once")
                .hint("write all but one of the inputs to files"));
        }
        for reference in &self.references {
            if workloads::is_manifest(Path::new(reference)) && Path::new(reference).is_file() {
                let problem = format!("{} is a file, not an image", QuotedText(reference));
                return Err(Failure::usage(problem).hint(format!(
                    "type -f {} for workloads, and quote patterns: -f '*.yaml'",
                    quote(reference)
                )));
            }
            parse_location(reference).map_err(|error| {
                let is_said = matches!(error, LocationError::Meant { .. });
                let hint = "name images as `docker pull` does";
                Failure::from(error).hint_if((!is_said).then_some(hint))
            })?;
        }
        self.report.check()?;
        self.warn_of_unknown_builds(session);
        if self.names_images() && self.kube.chooses_workloads() {
            session.warn(
                "--namespace and --workload-selector have no effect: images are named, so the \
                 cluster's workloads are not read",
            );
        }
        Ok(())
    }

    /// Warns of typed builds that no known Windows has.
    fn warn_of_unknown_builds(&self, session: &Session) {
        let simulated = self.simulate.iter().map(|simulation| simulation.version);
        let images = self.image_builds.iter().map(HostName::version);
        let typed = self.hosts.typed_builds().chain(images).chain(simulated);
        let builds: BTreeSet<u32> = typed.map(|version| version.build).collect();
        for build in builds {
            if release::from_build(build).is_none()
                && let Some(near) = release::nearest_to_build(build)
            {
                session.warn(format_args!(
                    "no known Windows has build {build}; the nearest is {} ({})",
                    near.build, near.name
                ));
            }
        }
    }

    /// Adds the nodes of the cluster and, if no image is named, its workloads. Returns its name and
    /// nodes too.
    fn ask_cluster(
        &self,
        nodes: &mut NodeList,
    ) -> Result<(Option<(String, NodeSnapshot)>, WorkloadList)> {
        if !self.hosts.cluster.is_set() {
            if nodes.windows.is_empty() {
                return Err(self.hosts.no_node());
            }
            return Ok((None, WorkloadList::default()));
        }
        let ((name, snapshot), of_cluster) = registry_args::run(async {
            let cluster = self.hosts.cluster.connect().await?;
            let name = self.hosts.cluster.describe(&cluster);
            let snapshot = cluster.nodes().await?;
            let workloads = if self.names_images() {
                WorkloadList::default()
            } else {
                let namespace = self.kube.namespace.as_deref();
                let selector = self.kube.workload_selector.as_deref();
                let list = cluster.workloads(namespace, selector).await?;
                if list.workloads.is_empty() && self.kube.chooses_workloads() {
                    return Err(self.kube.no_workload());
                }
                list
            };
            Ok(((name, snapshot), workloads))
        })?;
        let list = self.hosts.matching(snapshot.list());
        nodes.windows.extend(list.windows);
        nodes.others.extend(list.others);
        if nodes.windows.is_empty() {
            return Err(self.hosts.no_node());
        }
        Ok((Some((name, snapshot)), of_cluster))
    }

    fn simulates(&self) -> bool {
        !(self.simulate.is_empty() && self.simulate_hotfix.is_empty())
    }

    /// Applies the simulated updates to the hosts, and describes the changes for reports.
    fn simulate(&self, hosts: &mut [Node]) -> Result<Vec<String>> {
        let mut changes = Vec::new();
        for simulation in &self.simulate {
            let SimulationMatches { moved, left } = simulation.apply(hosts);
            let version = simulation.version;
            let build = release::name_of(version.build);
            if moved == 0 {
                let pattern = &simulation.nodes;
                return Err(if left == 0 {
                    Failure::usage(format!("no node matches {pattern}"))
                        .hint("use names as listed by `kubectl get nodes`; * matches any text")
                } else {
                    Failure::usage(format!(
                        "no node that matches {pattern} has build {} ({build})",
                        version.build
                    ))
                    .hint(format!(
                        "updates do not change a node's build; to simulate another build, name one \
                         node: --simulate NODE={version}"
                    ))
                });
            }
            let left = match left {
                0 => String::new(),
                left => format!(" ({} of other builds unchanged)", count(left, "node")),
            };
            changes.push(format!("{} as {simulation}{left}", count(moved, "node")));
        }
        for kb in &self.simulate_hotfix {
            let updates = Updates::global().by_kb(*kb).map(Update::version);
            let builds: BTreeSet<u32> = updates.map(|version| version.build).collect();
            let mut own = hosts.iter().filter_map(|node| node.build);
            if !own.any(|host| builds.contains(&host.version.build)) {
                let problem = if builds.is_empty() {
                    format!("{kb} is not a cumulative update of a known build")
                } else {
                    let names = builds.iter().map(|build| release::name_of(*build));
                    format!("no node has the build of {kb}: {}", joined(names, ", "))
                };
                let hint = format!("for details: wincimg node hotfix resolve {kb}");
                return Err(Failure::usage(problem).hint(hint));
            }
            let nodes = count(apply_hotfix(*kb, hosts), "node");
            changes.push(format!("{nodes} with {kb}"));
        }
        Ok(changes)
    }

    /// The images to check, those without a workload first, and the number of these.
    fn images(&self, workloads: &[Workload], session: &Session) -> Result<(Vec<Image>, usize)> {
        let mut images: Vec<Image> = self
            .image_builds
            .iter()
            .map(|build| Image::from_version(build.explained_of("image", session)))
            .collect();
        let plain = images.len() + self.references.len();
        let given = images::ImagesFromFiles::read(&self.image_files)?;
        let wanted = images::images_to_check(&self.references, workloads, &given);
        images.extend(images::resolve_images(
            wanted, &given, self.offline, &self.connection, session,
        )?);
        Ok((images, plain))
    }

    /// The rollout with its fixes; adds the details of images that it needs.
    fn rollout(&self, request: &mut RolloutRequest, session: &Session) -> Result<Rollout> {
        let mut rollout = Rollout::new(request);
        let mut details = Details::missing(&rollout);
        if self.offline {
            details = details.of_this_machine(&request.images);
        }
        if !details.is_empty() {
            images::add_details(&details, &mut request.images, &self.connection, session)?;
            rollout = Rollout::new(request);
        }
        let tags = if self.offline {
            TagsByRepository::default()
        } else {
            images::tags(&rollout, &self.connection, session)?
        };
        let advice = rollout.advise(request, &tags);
        rollout.plan = self.plan.then_some(advice);
        let versions = rollout.images.iter().flat_map(|image| {
            let versions = image.versions();
            versions.map(move |version| (image.reference.clone(), version))
        });
        rollout.missing_fixes = security::missing_fixes(versions, rollout.today, session, session);
        Ok(rollout)
    }

    fn report_skipped(&self, rollout: &Rollout, session: &Session) {
        if rollout.other_workloads > 0 {
            session.note(format_args!(
                "skipped workloads for other systems: {} of {}",
                rollout.other_workloads,
                rollout.other_workloads + rollout.workloads.len() + rollout.undecided.len()
            ));
        }
        if rollout.inactive > 0 {
            let inactive = count(rollout.inactive, "inactive workload");
            session.note(format_args!(
                "skipped {inactive} (scaled to 0, suspended or completed); to check them, add \
                 --include-inactive"
            ));
        }
        if !rollout.undecided.is_empty() {
            session.warn(format_args!(
                "skipped workloads for an unknown system, whose images could not be read and which \
                 no Windows node accepts: {}",
                workloads::names(&rollout.undecided)
            ));
        }
        if rollout.workloads.is_empty()
            && (rollout.images.is_empty() || !self.workloads.is_empty())
            && rollout.undecided.is_empty()
        {
            let active = if rollout.inactive > 0 { "active " } else { "" };
            session.warn(format_args!("no {active}workload is for Windows"));
        }
    }

    fn write(&self, rollout: &Rollout, cluster: Option<&str>, session: &Session) -> Result<()> {
        let origin = ReportOrigin {
            time: source_date_epoch()?.unwrap_or_else(Timestamp::now),
            nodes: cluster
                .map(str::to_owned)
                .or_else(|| self.hosts.nodes_file()),
        };
        self.report.write(|format, file, out| match format {
            ReportFormat::Text => {
                let screen = file.map_or_else(screen, |_| screen_for_files());
                write_text(rollout, screen, out)
            }
            ReportFormat::Json => write_json(rollout, self.strict, self.each_node, out),
            ReportFormat::Markdown => write_markdown(rollout, out),
            ReportFormat::Junit => write_junit(rollout, self.strict, out),
            ReportFormat::Sarif => self.write_sarif(rollout, session, out),
            ReportFormat::Html => write_html(rollout, &origin, out),
        })
    }

    /// Writes SARIF; warns of results that it cannot have.
    fn write_sarif(
        &self,
        rollout: &Rollout,
        session: &Session,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let nodes = self.hosts.nodes_file();
        let nodes = nodes.filter(|_| !self.hosts.read_stdin());
        let left_out = write_sarif(rollout, self.strict, nodes.as_deref(), out)?;
        if left_out > 0 {
            session.warn(format_args!(
                "SARIF lacks {}: it requires files; add --nodes FILE or --workloads FILE",
                count(left_out, "result")
            ));
        }
        Ok(())
    }
}

/// Medium of a report in a file.
fn screen_for_files() -> TextStyle {
    TextStyle {
        width: FILE_WIDTH,
        wraps: false,
        colour: false,
    }
}

/// Medium of stdout.
fn screen() -> TextStyle {
    match terminal_width() {
        Some(width) => TextStyle {
            width,
            wraps: true,
            colour: colour_on(&io::stdout()),
        },
        None => screen_for_files(),
    }
}

fn parse_report_arg(text: &str) -> Result<(ReportFormat, PathBuf), String> {
    text.split_once(':')
        .filter(|(_, file)| !file.is_empty())
        .and_then(|(format, file)| Some((ReportFormat::from_str(format, false).ok()?, file.into())))
        .ok_or_else(|| {
            let formats = ReportFormat::value_variants().iter();
            let names = formats.filter_map(ValueEnum::to_possible_value);
            let names: Vec<String> = names.map(|value| value.get_name().to_owned()).collect();
            let typed = text.split(':').next().unwrap_or_default();
            let meant = closest_match(typed, names.iter().map(String::as_str));
            let meant = meant.filter(|meant| meant != typed);
            let meant = meant.map(|meant| format!("; did you mean {meant}?"));
            format!(
                "invalid report {}: expected FORMAT:FILE such as html:report.html, where \
                 FORMAT is one of {}{}",
                QuotedText(text),
                names.join(", "),
                meant.unwrap_or_default()
            )
        })
}

fn day(text: &str) -> Result<Date, String> {
    text.parse()
        .map_err(|_| format!("invalid date {text:?}: expected YYYY-MM-DD such as 2024-06-01"))
}

/// Selection of a cluster's workloads.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster options")]
pub(super) struct KubeArgs {
    /// Only workloads in this namespace
    #[arg(short = 'n', long, value_name = "NAME", value_parser = namespace, requires = "kube")]
    pub(super) namespace: Option<String>,
    /// Only workloads with matching labels, such as app=web,tier!=cache
    #[arg(long, value_name = "LABELS", requires = "kube", hide_short_help = true)]
    pub(super) workload_selector: Option<String>,
    /// Watch the cluster: a live table on a terminal, otherwise one line per changed verdict
    #[arg(long, requires = "kube", conflicts_with_all = ["simulate", "simulate_hotfix"])]
    pub(super) watch: bool,
}

impl KubeArgs {
    /// Returns true if only some of the cluster's workloads are selected.
    pub(super) fn chooses_workloads(&self) -> bool {
        self.namespace.is_some() || self.workload_selector.is_some()
    }

    /// Error for a selection without workloads: a gate must not pass because of a misspelt name.
    pub(super) fn no_workload(&self) -> Failure {
        let namespace = self.namespace.as_ref();
        let namespace = namespace.map(|name| format!(" in the namespace {name}"));
        let selector = self.workload_selector.as_ref();
        let selector = selector.map(|labels| format!(" matches {labels}"));
        let parts: String = namespace.into_iter().chain(selector).collect();
        Failure::usage(format!("no workload{parts}")).hint(
            "run `kubectl get namespaces`; --workload-selector takes labels as listed by `kubectl \
             get deployments --show-labels`",
        )
    }
}

#[cfg(test)]
mod tests;
