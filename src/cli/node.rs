//! `wincimg node`: configures nodes for a registry and its pause image, and for builds.

mod builder;

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::TryFutureExt as _;
use wincimg_cluster::node_script::{NodeImages, NodeRegistry, NodeRuntime, NodeScript};
use wincimg_cluster::nodes;
use wincimg_common::diagnose::BoxError;
use wincimg_engine::bases::BaseSearch;
use wincimg_engine::error::search as search_error;
use wincimg_engine::plans::{PlannedBase, TargetHost};
use wincimg_engine::unserved::UnservedHost;
use wincimg_http::read_certificates;
use wincimg_inspect::bases::ResolveError;

use self::builder::MakeBuilder;
use super::build::report_failed;
use super::hotfix::Hotfix;
use crate::cli::prelude::*;

/// Configure and update nodes, and build on them
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg node script --kube --registry repo.mylan.k8s:8888 --output node.ps1\n  \
    wincimg node hotfix script 17763.1158 --output KB4549949.ps1\n  \
    wincimg node builder --kube --image repo.mylan.k8s:8888/node-builder:1 |\n      \
    kubectl apply -f -")]
pub(super) struct Node {
    #[command(subcommand)]
    command: NodeCommand,
}

#[derive(Debug, Subcommand)]
enum NodeCommand {
    Script(MakeScript),
    Hotfix(Hotfix),
    Builder(MakeBuilder),
}

impl Node {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        match self.command {
            NodeCommand::Script(command) => command.run(session),
            NodeCommand::Hotfix(command) => command.run(session),
            NodeCommand::Builder(command) => command.run(session),
        }
    }
}

/// Base of the included recipe.
const PAUSE_BASE: &str = "nanoserver";

/// Write a PowerShell script that configures a node for a registry and its pause image
///
/// The script pulls the pause image of the node's version and the base images, then configures
/// containerd, or Docker and the kubelet, to use it. It sets up trust for the registry and a longer
/// pull timeout, backs up every file that it changes, restarts services only if something changed,
/// and can be run again at any time.
#[derive(Debug, Args)]
#[command(
    mut_arg("insecure", |arg| arg.help(
        "Use plain HTTP or an unverified certificate with this registry, here and on nodes \
         (repeatable)"
    )),
    mut_arg("ca_files", |arg| arg.help(
        "Trust the CAs in this file, here and on nodes for these registries (repeatable)"
    )),
    after_help = "Examples:\n  \
    wincimg node script --kube --registry repo.mylan.k8s:8888 --output node.ps1\n  \
    wincimg node script --host-build 17763.973 \\\n      \
    --registry repo.mylan.k8s:8888 --output node.ps1\n  \
    wincimg node script --nodes nodes.json --registry repo.mylan.k8s:8888 \\\n      \
    --insecure-registry repo.mylan.k8s:8888 --hold-updates --output node.ps1\n  \
    wincimg node script --host-build 17763.973 \\\n      \
    --registry repo.mylan.k8s:8888 --dry-run\n\n\
    Run it on the node as an administrator: .\\node.ps1. Add -WhatIf for a dry run, -Undo to \
    revert it, -SkipPull to change only settings. On several nodes: \
    Invoke-Command -ComputerName N1,N2 -FilePath node.ps1."
)]
struct MakeScript {
    #[command(flatten)]
    hosts: HostArgs,
    /// Registry of the pause image
    #[arg(long, value_name = "HOST[/PREFIX]")]
    registry: Option<RegistryPrefix>,
    /// Name of the pause image in the registry
    #[arg(long, value_name = "NAME", default_value = "pause", value_parser = pause_name)]
    pause: String,
    /// Tag of the pause image, for all hosts [default: the version of each host's base, as
    /// `wincimg build` tags it]
    #[arg(long, short, value_name = "TAG", hide_short_help = true)]
    tag: Option<String>,
    /// Base image to pull in advance (repeatable)
    #[arg(long = "base", value_name = "NAME", default_value = "nanoserver", add = complete::bases())]
    bases: Vec<String>,
    /// Container runtime of the nodes [default: detected on each node]
    #[arg(long, value_enum, hide_short_help = true)]
    runtime: Option<NodeRuntime>,
    /// Cancel a pull after this time without progress
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = read_deadline, hide_short_help = true)]
    pull_deadline: String,
    /// Disable automatic updates, so that nodes keep the version that their images are for
    #[arg(long, hide_short_help = true)]
    hold_updates: bool,
    /// Write a script that reverts all changes
    #[arg(long, hide_short_help = true)]
    undo: bool,
    /// Print what the script would do, instead of the script
    #[arg(long)]
    dry_run: bool,
    /// Write the script to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    connection: BaseRegistryArgs,
}

impl MakeScript {
    fn run(self, session: &Session) -> Result<CommandOutcome> {
        let (registries, (images, failed)) = match &self.registry {
            Some(registry) if !self.undo => {
                let builds = self.hosts.distinct_builds(session)?;
                warn_of_unset_nodes(&builds.nodes, session);
                let registries = self.registries(registry)?;
                (
                    registries,
                    self.images(registry, &builds.targets(), session)?,
                )
            }
            None if !self.undo => {
                return Err(Failure::usage("a script requires a registry")
                    .hint("add --registry HOST[:PORT][/PREFIX], or --undo"));
            }
            _ => (Vec::new(), (Vec::new(), Vec::new())),
        };
        let script = NodeScript {
            runtime: self.runtime,
            registries: &registries,
            images: &images,
            deadline: &self.pull_deadline,
            hold_updates: self.hold_updates,
            undo: self.undo,
        };
        let text = if self.dry_run {
            in_words(&script)
        } else {
            script.render()
        };
        let shown = (!self.dry_run).then_some(&text);
        let answer = || extended(&script, json!({ "script": shown, "failed": failed }));
        self.format.write(self.output.as_deref(), answer, |out| {
            out.write_all(text.as_bytes())
        })?;
        Ok(report_failed(&failed, session))
    }

    /// The images for each host, on the same bases as those of `wincimg build`, and the hosts
    /// without any.
    fn images(
        &self,
        registry: &RegistryPrefix,
        targets: &[TargetHost],
        session: &Session,
    ) -> Result<(Vec<NodeImages>, Vec<UnservedHost>)> {
        let hosts: Vec<HostBuild> = targets.iter().map(|target| target.build).collect();
        if let Some(HostBuild { version, .. }) =
            hosts.iter().find(|host| host.version.revision.is_none())
        {
            let problem = format!("{version} has no revision: the tags of its images are unknown");
            return Err(Failure::usage(problem).hint("add the revision, as in 17763.973"));
        }
        let base_registry = &self.connection.base_registry;
        let search = BaseSearch::new(&self.connection.registry.connect(session)?);
        let of_pause = self.tag.is_none().then_some(PAUSE_BASE);
        let bases = self.bases.iter().map(String::as_str);
        let names: Vec<&str> = of_pause.into_iter().chain(bases).collect();
        let searching = search.for_hosts(&names, base_registry, targets);
        let searching = searching.map_err(|error| with_nodes(error, targets));
        let found = match registry_args::run(searching) {
            Err(failure) if failure.is_unreachable() => {
                session.warn(format_args!(
                    "the images are named by the hosts' own versions, although `wincimg build` takes \
                     the nearest base and names its version; set --base-registry to a registry that \
                     can be reached: {}",
                    failure.in_one_line()
                ));
                return Ok((self.images_by_version(registry, &hosts)?, Vec::new()));
            }
            found => found?,
        };
        if found.found.is_empty() {
            report_failed(&found.unserved, session);
            return Err(Failure::no("no host has an image"));
        }
        let images = found.found.iter().map(|(host, bases)| {
            let mut bases = bases.iter();
            let own = of_pause.and_then(|_| bases.next()?.version_text());
            let bases = bases.map(PlannedBase::display_name).collect();
            self.images_of(registry, host.build, own, bases)
        });
        Ok((images.collect::<Result<_, _>>()?, found.unserved))
    }

    /// The images for a host; `tag` is that of the pause image, unless one is given.
    fn images_of(
        &self,
        registry: &RegistryPrefix,
        host: HostBuild,
        tag: Option<String>,
        bases: Vec<String>,
    ) -> Result<NodeImages> {
        let tag = self.tag.clone().or(tag).unwrap_or_default();
        let pause = registry.join(&format!("{}:{tag}", self.pause))?;
        Ok(NodeImages {
            version: host.version,
            pause: pause.to_string(),
            bases,
        })
    }

    /// The images for each host if the bases cannot be listed: of its own version.
    fn images_by_version(
        &self,
        registry: &RegistryPrefix,
        hosts: &[HostBuild],
    ) -> Result<Vec<NodeImages>> {
        let images = hosts.iter().map(|host| {
            let version = host.version.os_version();
            let bases = self.bases.iter().map(|name| {
                let base = self.connection.base_registry.repository(name)?;
                let (registry, path) = (base.repository.registry(), base.repository.repository());
                Ok(format!("{registry}/{path}:{version}"))
            });
            let bases = bases.collect::<Result<_>>()?;
            self.images_of(registry, *host, Some(version), bases)
        });
        images.collect()
    }

    /// The registries that a node must be configured for.
    fn registries(&self, registry: &RegistryPrefix) -> Result<Vec<NodeRegistry>> {
        let mut pem = String::new();
        for file in &self.connection.registry.certificates.files()?.files {
            let certificates = read_certificates(file)
                .map_err(|problem| Failure::usage(format!("{}: {problem}", file.display())))?;
            for certificate in certificates {
                write_pem(&certificate, &mut pem);
            }
        }
        let certificates = (!pem.is_empty()).then_some(pem);
        let named = [registry.host(), self.connection.base_registry.0.host()];
        let insecure = &self.connection.registry.insecure;
        let mut hosts: BTreeSet<&str> = insecure.iter().map(String::as_str).collect();
        // Every node trusts the certificate of Microsoft's registry.
        hosts.extend(
            named
                .into_iter()
                .filter(|host| *host != "mcr.microsoft.com"),
        );
        let registries = hosts.into_iter().map(|host| {
            let is_insecure = insecure.iter().any(|name| name == host);
            NodeRegistry {
                host: host.to_owned(),
                is_insecure,
                certificates: certificates.clone().filter(|_| !is_insecure),
            }
        });
        Ok(registries
            .filter(|registry| registry.is_insecure || registry.certificates.is_some())
            .collect())
    }
}

/// Warns of nodes whose pause image the script does not set.
fn warn_of_unset_nodes(nodes: &[nodes::Node], session: &Session) {
    if let Some(names) = names_of(nodes, nodes::Node::has_cri_dockerd) {
        session.warn(format_args!(
            "cri-dockerd on {names} is not configured: start it with the flags that the script \
             prints"
        ));
    }
    if let Some(names) = names_of(nodes, nodes::Node::is_of_rke2) {
        session.warn(format_args!(
            "the script fails on {names}, where RKE2 configures containerd: set pause-image in \
             RKE2's config.yaml, and the registry in its registries.yaml"
        ));
    }
}

/// The first of these nodes, and how many others there are.
fn names_of(nodes: &[nodes::Node], is_meant: impl Fn(&nodes::Node) -> bool) -> Option<String> {
    let meant = nodes.iter().filter(|node| is_meant(node));
    let mut names = meant.filter_map(|node| node.name.as_deref());
    let first = names.next()?;
    Some(match names.count() {
        0 => first.to_owned(),
        more => format!("{first} and {}", count(more, "other node")),
    })
}

/// Adds the nodes of an only host without a base to its error.
fn with_nodes(error: BoxError, targets: &[TargetHost]) -> Failure {
    let is_without = matches!(search_error(&error), Some(ResolveError::NothingFits(_)));
    let failure = Failure::from(error);
    match targets {
        [only] if is_without && !only.nodes.is_empty() => {
            failure.context(format!("no image for host {only}"))
        }
        _ => failure,
    }
}

/// Summary of the script, one action per line.
fn in_words(script: &NodeScript<'_>) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        let _ = writeln!(text, "{words}");
    };
    let runtime = script.runtime.map_or(
        "containerd or docker, detected on the node",
        NodeRuntime::name,
    );
    line(&format!("runtime     {runtime}"));
    if script.undo {
        line("undo        restores all changed files, and the setting of automatic updates");
        return text;
    }
    for registry in script.registries {
        let trust = if registry.is_insecure {
            "plain HTTP or an unverified certificate"
        } else {
            "the given certificates"
        };
        line(&format!("registry    {} with {trust}", registry.host));
    }
    for images in script.images {
        line(&format!("node        {}", images.version));
        for image in std::iter::once(&images.pause).chain(&images.bases) {
            line(&format!("  pull      {image}"));
        }
        line(&format!("  pause     {}", images.pause));
    }
    line(&format!(
        "deadline    a pull ends after {} without progress",
        script.deadline
    ));
    if script.hold_updates {
        line("updates     off, until the script is run with -Undo");
    }
    text
}

fn write_pem(certificate: &[u8], pem: &mut String) {
    pem.push_str("-----BEGIN CERTIFICATE-----\n");
    let text = STANDARD.encode(certificate);
    for line in text.as_bytes().chunks(64) {
        pem.extend(line.iter().copied().map(char::from));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
}

/// The name of an image below `--registry`.
fn pause_name(text: &str) -> Result<String, &'static str> {
    if text.contains([':', '@']) {
        return Err("expected a name below --registry, such as pause: set the tag with --tag");
    }
    Ok(text.to_owned())
}

/// A duration in Go's format, which the node's configuration uses.
fn read_deadline(text: &str) -> Result<String, String> {
    let seconds = read_time(text)?.as_secs();
    Ok(match (seconds % 3600, seconds % 60) {
        (0, _) => format!("{}h", seconds / 3600),
        (_, 0) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    })
}
