//! Host arguments: builds, and the nodes of a cluster; the arguments that select a cluster.

use clap::ValueHint;
use wincimg_cluster::live::{Cluster, ClusterContext, NodeSnapshot};
use wincimg_cluster::nodes::{Node, NodeList, read_nodes};
use wincimg_cluster::selector::LabelSelector;
use wincimg_engine::plans::TargetHost;
use wincimg_windows::compat::{Architecture, served_by};
use wincimg_windows::invalid::InvalidText;
use wincimg_windows::release::{self, Release, ReleaseKind};
use wincimg_windows::update::{Update, Updates};

use super::input;
use crate::cli::prelude::*;

/// Host arguments.
#[derive(Debug, Clone, Args)]
pub(super) struct HostArgs {
    /// Host: 17763.973, or a release such as ltsc2022 (repeatable)
    ///
    /// A release (ltsc2022, win2022, 2022, 20H2, or latest for the newest LTSC) stands for its newest
    /// known revision.
    #[arg(long = "host-build", display_order = 1, value_name = "BUILD", value_parser = host_name, add = complete::builds())]
    builds: Vec<HostName>,
    /// Hosts from `kubectl get nodes -o json` or `-o yaml`; - reads stdin
    #[arg(long, display_order = 2, value_name = "FILE")]
    nodes: Option<PathBuf>,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// Only nodes with matching labels, such as pool=web,tier!=cache
    #[arg(
        short = 'l',
        long,
        display_order = 5,
        value_name = "LABELS",
        hide_short_help = true
    )]
    selector: Option<LabelSelector>,
}

#[derive(Debug, Clone)]
pub(super) enum HostName {
    Version(WindowsVersion),
    /// Stands for the newest revision known.
    Release(&'static Release, String),
}

/// Parses a version or the name of a release.
pub(super) fn host_name(text: &str) -> Result<HostName, String> {
    let named = || {
        Some(HostName::Release(
            release::from_name(text)?,
            text.to_owned(),
        ))
    };
    let version = text.parse().map(HostName::Version);
    version.or_else(|error| named().ok_or_else(|| unknown_host(text, &error)))
}

fn unknown_host(text: &str, error: &InvalidText) -> String {
    if text.contains(',') {
        return "expected one build or release; for several, repeat the flag".to_owned();
    }
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return error.to_string();
    }
    let named = release::all()
        .iter()
        .filter(|release| release.kind == ReleaseKind::Ltsc);
    let tags = joined(named.filter_map(|release| release.base_tag), ", ");
    format!("expected 17763.973 or a release: {tags}, latest")
}

impl HostName {
    pub(super) fn version(&self) -> WindowsVersion {
        match self {
            Self::Version(version) => *version,
            Self::Release(release, _) => newest_known(release.build),
        }
    }

    /// The version, with a note of what a name stands for.
    pub(super) fn explained(&self, session: &Session) -> WindowsVersion {
        self.explained_of("host", session)
    }

    /// The same for an image or another thing with a version.
    pub(super) fn explained_of(&self, what: &str, session: &Session) -> WindowsVersion {
        let version = self.version();
        if let Self::Release(_, name) = self {
            session.note(format_args!(
                "{what} {name} is {version}, the newest revision known"
            ));
        }
        version
    }
}

impl Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => version.fmt(f),
            Self::Release(_, name) => f.write_str(name),
        }
    }
}

/// The newest revision known of a build; the bare build if there is none.
fn newest_known(build: u32) -> WindowsVersion {
    Updates::global()
        .newest_published(build)
        .map_or(WindowsVersion::from_build(build), Update::version)
}

/// Distinct builds, and the hosts that have them.
#[derive(Debug, Clone, Default)]
pub(super) struct Builds {
    /// The hosts that report their build.
    pub(super) nodes: Vec<Node>,
    /// Names of nodes that do not report their build.
    pub(super) left_out: Vec<String>,
}

impl HostArgs {
    pub(super) fn is_given(&self) -> bool {
        !self.builds.is_empty() || self.nodes.is_some() || self.cluster.is_set()
    }

    /// Source of the nodes, for reports.
    pub(super) fn nodes_file(&self) -> Option<String> {
        Some(input::name(self.nodes.as_deref()?))
    }

    /// The nodes that the selector chooses.
    pub(super) fn matching(&self, mut nodes: NodeList) -> NodeList {
        if let Some(selector) = &self.selector {
            nodes.windows.retain(|node| selector.matches(node));
            nodes.others.retain(|node| selector.matches(node));
        }
        nodes
    }

    pub(super) fn typed_builds(&self) -> impl Iterator<Item = WindowsVersion> {
        self.builds.iter().map(HostName::version)
    }

    /// The same flags as words of a command line.
    pub(super) fn to_words(&self) -> Vec<String> {
        let mut words = flag_words("--host-build", &self.builds);
        words.extend(flag_words(
            "--nodes",
            self.nodes.iter().map(|it| it.display()),
        ));
        // Without --kube, the context is that of a builder.
        if self.cluster.is_set() {
            words.push("--kube".to_owned());
            words.extend(self.cluster.to_words());
        }
        words.extend(flag_words("--selector", &self.selector));
        words
    }

    /// Returns true if the nodes come from stdin.
    pub(super) fn read_stdin(&self) -> bool {
        self.nodes.as_deref().is_some_and(input::is_stdin)
    }

    /// All hosts in order, and the nodes with another system; an error if there are none.
    pub(super) fn nodes(&self, session: &Session) -> Result<NodeList> {
        let mut hosts = self.listed_nodes(session)?;
        if self.cluster.is_set() {
            let nodes = self.matching(self.cluster.nodes()?.list());
            hosts.windows.extend(nodes.windows);
            hosts.others.extend(nodes.others);
        }
        if hosts.windows.is_empty() {
            return Err(self.no_node());
        }
        Ok(hosts)
    }

    /// Error for hosts without a Windows node.
    pub(super) fn no_node(&self) -> Failure {
        if let Some(selector) = &self.selector {
            let problem = format!("no Windows node matches {selector}");
            return Failure::usage(problem)
                .hint("--selector takes labels as listed by `kubectl get nodes --show-labels`");
        }
        if self.cluster.is_set() {
            let problem = "the cluster has no Windows node";
            return Failure::usage(problem)
                .hint("choose another context of `kubectl config get-contexts`");
        }
        let problem = match &self.nodes {
            Some(path) => format!("{} lists no Windows node", input::name(path)),
            None => "no host given".to_owned(),
        };
        Failure::usage(problem).hint(
            "name one with --host-build 17763.973 or --host-build ltsc2022, or read the nodes with \
             --kube, or with --nodes FILE from `kubectl get nodes -o json`",
        )
    }

    /// The hosts that are given by build or in a file, as far as the selector chooses them.
    pub(super) fn listed_nodes(&self, session: &Session) -> Result<NodeList> {
        if self.selector.is_some() && self.nodes.is_none() && !self.cluster.is_set() {
            return Err(
                Failure::usage("--selector requires nodes").hint("add --kube or --nodes FILE")
            );
        }
        let typed = self.builds.iter().map(|host| host.explained(session));
        let mut hosts = NodeList {
            windows: typed
                .map(|version| Node::from_build(HostBuild::new(version)))
                .collect(),
            others: Vec::new(),
        };
        if let Some(path) = &self.nodes {
            let list = self.matching(read(path)?);
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
        Ok(hosts)
    }

    /// The distinct builds of the hosts that images are for: a typed build without a revision stands
    /// for its newest one.
    pub(super) fn builds_of_images(&self, session: &Session) -> Result<Builds> {
        let mut builds = self.distinct_builds(session)?;
        for node in builds.nodes.iter_mut().filter(|node| node.name.is_none()) {
            node.build = node.build.map(|build| with_revision(build, session));
        }
        Ok(builds)
    }

    /// The distinct builds of the hosts; warns of each node that does not report its build.
    pub(super) fn distinct_builds(&self, session: &Session) -> Result<Builds> {
        let mut builds = Builds::default();
        for node in self.nodes(session)?.windows {
            match node.build {
                Some(_) => builds.nodes.push(node),
                None => builds.left_out.push(node.name.unwrap_or_default()),
            }
        }
        if builds.nodes.is_empty() {
            return Err(no_version());
        }
        for node in &builds.left_out {
            warn_of_silence(node, session);
        }
        Ok(builds)
    }
}

/// Error for nodes that do not report their versions.
pub(super) fn no_version() -> Failure {
    Failure::usage("no node reports its Windows version")
        .hint("name a build with --host-build 17763.973")
}

/// Warns of a node that does not report its version.
pub(super) fn warn_of_silence(node: &str, session: &Session) {
    session.warn(format_args!(
        "skipped node {node}, which does not report its Windows version: add its build with \
         --host-build 17763.973"
    ));
}

/// A typed host, with the newest revision known if it has none.
pub(super) fn with_revision(host: HostBuild, session: &Session) -> HostBuild {
    let newest = newest_known(host.version.build);
    if host.version.revision.is_some() || newest.revision.is_none() {
        return host;
    }
    session.note(format_args!(
        "host {} is {newest}, the newest revision known",
        host.version
    ));
    HostBuild::new(newest)
}

impl Builds {
    /// The distinct builds of the hosts, oldest first.
    pub(super) fn all(&self) -> BTreeSet<HostBuild> {
        self.nodes.iter().filter_map(|node| node.build).collect()
    }

    /// The host for the Windows of a base's tag: of that revision, or of the newest known. Notes
    /// which nodes the image serves.
    pub(super) fn of_base(windows: WindowsVersion, session: &Session) -> Self {
        let (version, known) = match windows.revision {
            Some(_) => (windows, ""),
            None => (newest_known(windows.build), ", the newest revision known"),
        };
        session.note(format_args!(
            "no host given: building for {version}{known}, from the base's tag{}",
            served_names(version)
        ));
        let build = HostBuild::new(version);
        Self {
            nodes: vec![Node::from_build(build)],
            left_out: Vec::new(),
        }
    }

    /// The hosts of an architecture: typed ones have any; nodes with another are left out.
    pub(super) fn on(mut self, architecture: Architecture, session: &Session) -> Result<Self> {
        let has_hosts = !self.nodes.is_empty();
        let mut nodes = Vec::new();
        for node in std::mem::take(&mut self.nodes) {
            match (&node.name, node.build) {
                (None, Some(build)) => nodes.push(Node::from_build(HostBuild {
                    architecture,
                    ..build
                })),
                (Some(name), _) if node.architecture != architecture.name() => {
                    let own = &node.architecture;
                    session.warn(format_args!(
                        "skipped node {name}, whose architecture is {own}: build for it with \
                         --platform windows/{own}"
                    ));
                    self.left_out.push(name.clone());
                }
                (_, build) => nodes.push(Node {
                    build: build.map(|build| HostBuild {
                        architecture,
                        ..build
                    }),
                    ..node
                }),
            }
        }
        if nodes.is_empty() && has_hosts {
            let name = architecture.name();
            return Err(
                Failure::usage(format!("no host has the architecture {name}"))
                    .hint("name a build with --host-build 26100.1742"),
            );
        }
        self.nodes = nodes;
        Ok(self)
    }

    /// The builds, with the names of their nodes.
    pub(super) fn targets(&self) -> Vec<TargetHost> {
        TargetHost::from_nodes(&self.nodes)
    }
}

/// The servers that start an image, as the end of a sentence; empty for a build of no release. The
/// name of one has a comma.
fn served_names(image: WindowsVersion) -> String {
    match joined(served_by(image), "; ") {
        names if names.is_empty() => names,
        names => format!("; the image starts on {names}"),
    }
}

fn read(path: &Path) -> Result<NodeList> {
    read_nodes(&input::read_text(path)?)
        .map_err(|error| Failure::from(error).at(&input::name(path)))
}

/// The flags that use a cluster.
pub(super) const CLUSTER_SOURCE: &str = "cluster_source";

/// Selection of a cluster.
#[derive(Debug, Clone, Args)]
pub(super) struct ClusterArgs {
    /// Read the nodes from the cluster
    #[arg(long, display_order = 3, group = CLUSTER_SOURCE)]
    kube: bool,
    /// Kubeconfig context [default: the current context, or in a pod the pod's cluster]
    #[arg(long = "context", alias = "kube-context", display_order = 4, value_name = "NAME", requires = CLUSTER_SOURCE, hide_short_help = true, add = complete::contexts())]
    kube_context: Option<String>,
    /// Kubeconfig file [default: `KUBECONFIG`, then ~/.kube/config]
    #[arg(long, display_order = 5, value_name = "FILE", value_hint = ValueHint::FilePath, requires = CLUSTER_SOURCE, hide_short_help = true)]
    kubeconfig: Option<PathBuf>,
}

impl ClusterArgs {
    /// Returns true if the nodes of a cluster are to be read.
    pub(super) fn is_set(&self) -> bool {
        self.kube
    }

    pub(super) fn context(&self) -> ClusterContext {
        ClusterContext {
            kubeconfig: self.kubeconfig.clone(),
            name: self.kube_context.clone(),
            user_agent: USER_AGENT,
        }
    }

    /// Arguments that make kubectl use the same cluster.
    pub(super) fn to_words(&self) -> Vec<String> {
        let file = self.kubeconfig.iter().map(|file| file.display());
        let context = flag_words("--context", &self.kube_context);
        [flag_words("--kubeconfig", file), context].concat()
    }

    pub(super) async fn connect(&self) -> Result<Cluster> {
        Ok(Cluster::connect(&self.context()).await?)
    }

    /// `cluster production (https://10.0.0.1:6443)`, for reports.
    pub(super) fn describe(&self, cluster: &Cluster) -> String {
        let address = &cluster.address;
        match &self.kube_context {
            Some(name) => format!("cluster {name} ({address})"),
            None => format!("cluster {address}"),
        }
    }

    pub(super) fn nodes(&self) -> Result<NodeSnapshot> {
        registry_args::run(async { Ok(self.connect().await?.nodes().await?) })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct TestArgs {
        #[command(flatten)]
        hosts: HostArgs,
    }

    #[test]
    fn a_list_of_hosts_is_typed_one_by_one() {
        for list in ["ltsc2022,ltsc2019", "17763.973,20348.2402"] {
            let error = host_name(list).unwrap_err();
            assert!(error.contains("repeat the flag"), "{error}");
        }
    }

    #[test]
    fn names_of_servers_with_a_comma_stay_apart() {
        let names = served_names(WindowsVersion::new(20348, 2402));
        assert!(names.contains("; Windows Server, version 23H2"), "{names}");
        assert_eq!(served_names(WindowsVersion::new(18334, 1)), "");
    }

    #[test]
    fn the_words_of_a_hint_choose_the_same_hosts() {
        let typed = [
            "wincimg", "--host-build", "win2019", "--nodes", "nodes.json", "--kube", "--context",
            "production", "--selector", "pool=web,tier!=cache",
        ];
        let TestArgs { hosts } = TestArgs::parse_from(typed);
        assert_eq!(hosts.to_words(), typed[1..]);
    }
}
