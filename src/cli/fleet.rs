//! `wincimg fleet`: builds and checks a list of images for every Windows build among the nodes, and
//! brings them there.

mod follow;
mod prepull;

use wincimg_cluster::nodes::Node;
use wincimg_engine::fleet::{Fleet, INDEX_VARIABLE, Shard, SyncMode, SyncOptions, schema, sync};

use super::build::{is_typed, source_date_epoch};
use super::check_compat::ReportArgs;
use super::document_args::DocumentArgs;
use super::error::FAILED;
use super::hosts::{no_version, warn_of_silence};
use super::recipe_args::InstallerArgs;
use super::security;
use crate::cli::prelude::*;
use crate::report::write_fleet;

/// Build a list of images for every Windows build among the nodes
///
/// FILE is TOML: the registry and other common settings, then one [[image]] table per image. Images
/// that are missing, outdated by a new base, or built from other files are built; the rest is not
/// touched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg fleet check fleet.toml --kube\n  \
    wincimg fleet build fleet.toml --nodes nodes.json\n  \
    wincimg fleet build fleet.toml --kube --shard 0/8\n  \
    wincimg fleet prepull fleet.toml --kube | kubectl apply -f -\n  \
    wincimg fleet schema > fleet.schema.json\n\n\
    A minimal file:\n  \
    registry = \"repo.mylan.k8s:8888/apps\"\n\n  \
    [[image]]\n  \
    build = \"./web\"\n  \
    tag = \"1.4\"")]
pub(super) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    Build(BuildArgs),
    Check(CheckArgs),
    Follow(Box<follow::FollowArgs>),
    Prepull(Box<prepull::PrepullArgs>),
    Schema(SchemaArgs),
}

/// Build the missing and outdated images of a fleet
///
/// Each tag is an index with one entry per Windows build; entries of other builds and platforms are
/// kept. A host or an image that cannot be served is reported and does not stop the others. Where
/// hosts of one build need different images, the tag keeps the one that serves hosts today, or gets
/// the one for most nodes.
#[derive(Debug, Args)]
#[command(
    next_display_order = 10,
    after_help = "Examples:\n  \
    wincimg fleet build fleet.toml --kube\n  \
    wincimg fleet build fleet.toml --nodes nodes.json --report junit:fleet.xml\n  \
    wincimg fleet build fleet.toml --kube --shards 8\n\n\
    Exit code 0: every image exists. 1: an image is missing and could not be built. 3: no\n\
    registry responded."
)]
struct BuildArgs {
    /// Publish an image for all of its hosts or for none
    #[arg(long)]
    all_or_nothing: bool,
    // The last two, because a help heading also applies to the arguments after it.
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    documents: DocumentArgs,
}

/// List the missing and outdated images of a fleet, without building
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg fleet check fleet.toml --kube\n  \
    kubectl get nodes -o json | wincimg fleet check fleet.toml --nodes -\n  \
    wincimg fleet check fleet.toml --host-build 17763.973 --format json\n\n\
    Exit code 0: every image exists. 1: an image is missing. 3: no registry responded.")]
struct CheckArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// Print the JSON schema of fleet files, for editors
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wincimg fleet schema > fleet.schema.json")]
struct SchemaArgs {
    /// Output format; the schema is JSON in both
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// Fleet file
    #[arg(value_name = "FILE", add = complete::fleets())]
    file: PathBuf,
    #[command(flatten)]
    hosts: HostArgs,
    /// Only shard I of N, with I from 0 to N-1; an image keeps its shard when the file changes
    #[arg(long, value_name = "I/N", conflicts_with = "shards")]
    shard: Option<Shard>,
    /// Only this pod's shard of N, as given by `JOB_COMPLETION_INDEX` in an indexed Kubernetes Job
    #[arg(long, value_name = "N")]
    shards: Option<u32>,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    installers: InstallerArgs,
    #[command(flatten)]
    connection: BaseRegistryArgs,
}

impl FleetArgs {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        match self.command {
            FleetCommand::Build(BuildArgs {
                common,
                all_or_nothing,
                documents,
            }) => common.run(SyncMode::Build, all_or_nothing, &documents, session),
            FleetCommand::Check(CheckArgs { common }) => {
                common.run(SyncMode::Check, false, &DocumentArgs::default(), session)
            }
            FleetCommand::Follow(command) => command.run(session),
            FleetCommand::Prepull(command) => command.run(session),
            FleetCommand::Schema(SchemaArgs { format }) => {
                format.print(schema, |out| write_json(&schema(), out))
            }
        }
    }
}

/// Reads a fleet file to build or check its images.
fn read_fleet(file: &Path, installers: &InstallerArgs) -> Result<Fleet> {
    let mut fleet = Fleet::read(file)?;
    let mut entries = fleet.entries.iter();
    if is_typed("--base-registry") && entries.any(|entry| entry.base_registry.is_some()) {
        let file = file.display();
        let problem = format!("--base-registry has no effect on images of {file} with their own");
        return Err(Failure::usage(problem).hint("remove the flag, or base-registry from the file"));
    }
    fleet.for_each_dockerfile(|input| installers.apply_to(input));
    Ok(fleet)
}

impl CommonArgs {
    fn run(
        self,
        mode: SyncMode,
        all_or_nothing: bool,
        documents: &DocumentArgs,
        session: &Session,
    ) -> Result<CommandOutcome> {
        self.report.check()?;
        let shard = self.shard()?;
        let mut fleet = read_fleet(&self.file, &self.installers)?;
        if let Some(shard) = shard {
            fleet = fleet.part(shard);
        }
        let nodes = self.nodes(session)?;
        let ctx = online(&self.connection.registry, session)?;
        let created = source_date_epoch()?;
        let run = SyncOptions {
            ctx: &ctx,
            base_registry: &self.connection.base_registry,
            documents: &documents.to_options(None, Vec::new(), created),
            created,
            today: Zoned::now().date(),
            flags: &self.connection.registry.to_words(),
            written: &self.report.files(),
            all_or_nothing,
        };
        let mut report = registry_args::run(async { Ok(sync(&fleet, &nodes, run, mode).await) })?;
        report.shard = shard.map(|shard| shard.to_string());
        report.missing_fixes = security::missing_in_fleet(&report, session, session);
        self.report
            .write(|format, _, out| write_fleet(&report, format, out))?;
        if !report.complete && report.is_unreachable() {
            return Ok(CommandOutcome::Code(FAILED));
        }
        Ok(report.complete.into())
    }

    fn shard(&self) -> Result<Option<Shard>> {
        let Some(of) = self.shards else {
            return Ok(self.shard);
        };
        let Some(index) = std::env::var_os(INDEX_VARIABLE) else {
            let problem = format!("--shards {of} requires {INDEX_VARIABLE}, which is not set");
            return Err(Failure::usage(problem).hint(format!(
                "a Job with completionMode: Indexed sets it; elsewhere, name the shard: --shard \
                 0/{of}"
            )));
        };
        let text = format!("{}/{of}", index.to_string_lossy());
        let shard = text.parse::<Shard>();
        shard.map(Some).map_err(|error| {
            Failure::usage(error).hint(format!(
                "set --shards to the Job's completions, and {INDEX_VARIABLE} to an index below that"
            ))
        })
    }

    /// All Windows nodes that are named or in the cluster.
    fn nodes(&self, session: &Session) -> Result<Vec<Node>> {
        let nodes = self.hosts.nodes(session)?;
        let silent = nodes.windows.iter().filter(|node| node.build.is_none());
        for node in silent.filter_map(|node| node.name.as_ref()) {
            warn_of_silence(node, session);
        }
        if nodes.windows.iter().all(|node| node.build.is_none()) {
            return Err(no_version());
        }
        Ok(nodes.windows)
    }
}
