//! Host arguments: builds, and the nodes of a cluster.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use wincimg_cluster::nodes::{Node, NodeList, read_nodes};
use wincimg_engine::plans::TargetHost;
use wincimg_windows::compat::HostBuild;
use wincimg_windows::release::{self, Release, ReleaseKind};
use wincimg_windows::update::{Update, Updates};
use wincimg_windows::version::{ParseVersionError, WindowsVersion};

use super::command_context::Session;
use super::error::Failure;
use super::{complete, input};

/// Host arguments.
#[derive(Debug, Clone, Args)]
pub(super) struct HostArgs {
    /// Host: 17763.973, or a release such as ltsc2022 (repeatable)
    ///
    /// A build and revision, or a release (ltsc2022, win2022, 2022, 20H2, or latest for the newest
    /// LTSC) for its newest known revision.
    #[arg(long = "host-build", display_order = 1, value_name = "BUILD", value_parser = host_name, add = complete::builds())]
    builds: Vec<HostName>,
    /// Hosts from `kubectl get nodes -o json` or yaml; - is stdin
    ///
    /// Hosts from `kubectl get nodes -o json` or `-o yaml`; - reads stdin.
    #[arg(long, display_order = 2, value_name = "FILE")]
    nodes: Option<PathBuf>,
}

/// A host as it was typed.
#[derive(Debug, Clone)]
enum HostName {
    Version(WindowsVersion),
    /// Stands for the newest revision known.
    Release(&'static Release, String),
}

fn host_name(text: &str) -> Result<HostName, String> {
    let named = || {
        Some(HostName::Release(
            release::from_name(text)?,
            text.to_owned(),
        ))
    };
    let version = text.parse().map(HostName::Version);
    version.or_else(|error| named().ok_or_else(|| unknown_host(text, &error)))
}

fn unknown_host(text: &str, error: &ParseVersionError) -> String {
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return error.to_string();
    }
    let named = release::all()
        .iter()
        .filter(|release| release.kind == ReleaseKind::Ltsc);
    let tags: Vec<&str> = named.filter_map(|release| release.base_tag).collect();
    format!(
        "expected 17763.973 or a release: {}, latest",
        tags.join(", ")
    )
}

impl HostName {
    fn version(&self) -> WindowsVersion {
        match self {
            Self::Version(version) => *version,
            Self::Release(release, _) => Updates::global()
                .newest_published(release.build)
                .map_or(WindowsVersion::from_build(release.build), Update::version),
        }
    }
}

/// Distinct builds, and the hosts that have them.
#[derive(Debug, Clone, Default)]
pub(super) struct Builds {
    /// The distinct builds of the hosts, oldest first.
    pub(super) all: Vec<HostBuild>,
    /// The hosts that report their build.
    pub(super) nodes: Vec<Node>,
    /// Names of nodes that do not report their build.
    pub(super) left_out: Vec<String>,
}

impl HostArgs {
    /// Returns true if any host is named.
    pub(super) fn is_given(&self) -> bool {
        !self.builds.is_empty() || self.nodes.is_some()
    }

    /// The typed builds.
    pub(super) fn typed_builds(&self) -> impl Iterator<Item = WindowsVersion> {
        self.builds.iter().map(HostName::version)
    }

    /// Returns true if the nodes come from stdin.
    pub(super) fn read_stdin(&self) -> bool {
        self.nodes.as_deref().is_some_and(input::is_stdin)
    }

    /// All named hosts in order, and the nodes with another system; an error if there are none.
    pub(super) fn nodes(&self, session: &Session) -> Result<NodeList, Failure> {
        for host in &self.builds {
            if let HostName::Release(_, name) = host {
                session.note(format_args!(
                    "host {name} is {}, the newest revision known",
                    host.version()
                ));
            }
        }
        let mut hosts = NodeList {
            windows: self
                .typed_builds()
                .map(|version| Node::from_build(HostBuild::new(version)))
                .collect(),
            others: Vec::new(),
        };
        if let Some(path) = &self.nodes {
            let list = read(path)?;
            if !list.others.is_empty() {
                session.note(format_args!(
                    "skipped nodes without Windows: {} of {}",
                    list.others.len(),
                    list.others.len() + list.windows.len()
                ));
            }
            hosts.windows.extend(list.windows);
            hosts.others = list.others;
        }
        if hosts.windows.is_empty() {
            let failure = match &self.nodes {
                Some(path) => {
                    Failure::usage(anyhow!("{} lists no Windows node", input::name(path)))
                }
                None => Failure::usage(anyhow!("no host given")),
            };
            return Err(failure.hint(
                "name one with --host-build 17763.973, or pass `kubectl get nodes -o json` to \
                 --nodes",
            ));
        }
        Ok(hosts)
    }

    /// The distinct builds of the hosts; warns of each node that does not report its build.
    pub(super) fn distinct_builds(&self, session: &Session) -> Result<Builds, Failure> {
        let mut builds = Builds::default();
        for node in self.nodes(session)?.windows {
            match node.build {
                Some(build) => {
                    builds.all.push(build);
                    builds.nodes.push(node);
                }
                None => builds.left_out.push(node.name.unwrap_or_default()),
            }
        }
        builds.all.sort();
        builds.all.dedup();
        if builds.all.is_empty() {
            return Err(
                Failure::usage(anyhow!("no node reports its Windows version"))
                    .hint("name a build with --host-build 17763.973"),
            );
        }
        for node in &builds.left_out {
            session.warn(format_args!(
                "skipped node {node}, which does not report its Windows version: add its build \
                 with --host-build 17763.973"
            ));
        }
        Ok(builds)
    }
}

impl Builds {
    /// The builds, with the names of their nodes.
    pub(super) fn targets(&self) -> Vec<TargetHost> {
        TargetHost::from_nodes(&self.nodes)
    }
}

fn read(path: &Path) -> Result<NodeList, Failure> {
    read_nodes(input::open(path)?).map_err(|error| Failure::from(error).at(&input::name(path)))
}
