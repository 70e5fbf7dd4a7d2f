//! `wincimg node builder`: manifests of Docker daemons on nodes of a cluster, for steps that require
//! Windows.

use wincimg_cluster::build_nodes::BuildNodes;
use wincimg_cluster::builder::{BuilderManifests, BuilderName, OLDEST_BUILD, removal};
use wincimg_cluster::nodes::Node;

use crate::cli::manifests::{builder_name, image, label, namespace, object_name, quantity};
use crate::cli::manifests::{warn_of_missing_labels, write_commands, write_objects};
use crate::cli::prelude::*;

/// Print manifests of Docker daemons on Windows nodes, for `wincimg build --builder`
///
/// For each Windows build, one pod runs Docker beside the node's containerd, as a host process
/// container. It listens on a named pipe only: who may exec in the pod can build, and is SYSTEM on
/// that node. The image is the recipe `node-builder`, with Docker's static build for Windows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg build node-builder --set url=https://files.lan/docker.zip \\\n      \
    --set sha256=DIGEST --registry repo.mylan.k8s:8888 --tag 1 --push\n  \
    wincimg node builder --kube --image repo.mylan.k8s:8888/node-builder:1 |\n      \
    kubectl apply -f -\n  \
    wincimg node builder --host-build ltsc2019 --host-build ltsc2022 \\\n      \
    --image repo.mylan.k8s:8888/node-builder:1 --output builder.yaml\n  \
    wincimg build . --builder kube://wincimg-builder/builder \\\n      \
    --registry repo.mylan.k8s:8888 --push\n  \
    wincimg node builder --kube --remove")]
pub(super) struct MakeBuilder {
    #[command(flatten)]
    hosts: HostArgs,
    /// Image with Docker, from the recipe node-builder
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    image: Option<String>,
    /// Name of the builder
    #[arg(long, value_name = "NAME", default_value = "builder", value_parser = builder_name)]
    name: String,
    /// Namespace of the builder; who can create pods there is SYSTEM on the nodes
    #[arg(short, long, value_name = "NAME", default_value = "wincimg-builder", value_parser = namespace)]
    namespace: String,
    /// Print the commands that remove the builder
    #[arg(long)]
    remove: bool,
    /// Folder of the daemon's images on the node [default: C:\ProgramData\wincimg\NAME]
    #[arg(long, value_name = "DIR")]
    data_root: Option<String>,
    /// CPU to reserve on the node
    #[arg(long, value_name = "CPU", default_value = "2", value_parser = quantity, hide_short_help = true)]
    cpu: String,
    /// Memory to reserve on the node
    #[arg(long, value_name = "MEMORY", default_value = "4Gi", value_parser = quantity, hide_short_help = true)]
    memory: String,
    /// Label of the nodes, besides their build (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = label, hide_short_help = true)]
    node_selector: Vec<(String, String)>,
    /// User that may build, besides the service account (repeatable)
    #[arg(long = "user", value_name = "NAME", hide_short_help = true)]
    users: Vec<String>,
    /// Group that may build (repeatable)
    #[arg(long = "group", value_name = "NAME", hide_short_help = true)]
    groups: Vec<String>,
    /// Secret of the namespace with the credentials for the image
    #[arg(long, value_name = "NAME", value_parser = object_name, hide_short_help = true)]
    pull_secret: Option<String>,
    /// Let the daemon use plain HTTP or an unverified certificate with this registry (repeatable)
    #[arg(
        long = "insecure-registry",
        value_name = "HOST[:PORT]",
        hide_short_help = true
    )]
    insecure: Vec<String>,
    /// Write the manifests to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output format: YAML or commands as text, or JSON
    #[arg(long, value_enum, default_value = "text", hide_short_help = true)]
    format: OutputFormat,
    /// Time limit for the whole command, such as 90s, 10m or 1h [default: none]
    #[arg(long, value_name = "TIME", value_parser = read_time, hide_short_help = true)]
    timeout: Option<Duration>,
}

impl MakeBuilder {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        if self.image.is_none() && !self.remove {
            return Err(Failure::usage("a builder requires an image")
                .hint("add --image IMAGE, built from the recipe node-builder, or --remove"));
        }
        let nodes = self.hosts.distinct_builds(session)?.nodes;
        let builds = builders(&nodes, &self.node_selector)?;
        let builder = BuilderName {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        };
        if self.remove {
            let builds: Vec<u32> = builds.iter().map(|nodes| nodes.build).collect();
            let commands = removal(&builder, &builds, &self.hosts.cluster.to_words());
            return write_commands(&commands, self.output.as_deref(), self.format);
        }
        self.check_runtimes(&nodes)?;
        // One node is enough.
        for build in builds.iter().filter(|build| !build.select_any(&nodes)) {
            warn_of_missing_labels(build, &nodes, &self.node_selector, session);
        }
        let (output, format) = (self.output.clone(), self.format);
        let objects = self.manifests(builder).objects(&builds);
        write_objects(&objects, output.as_deref(), format)
    }

    /// A pod may be scheduled on any of the selected nodes, so all of them have to run it.
    fn check_runtimes(&self, nodes: &[Node]) -> Result<()> {
        let is_selected = |node: &&Node| {
            let labels = self.node_selector.iter();
            labels
                .clone()
                .all(|(key, value)| node.labels.get(key) == Some(value))
        };
        let lacks = |node: &&Node| node.runs_host_process() == Some(false);
        let found = nodes.iter().filter(is_selected).find(lacks);
        let Some(name) = found.and_then(|node| node.name.as_deref()) else {
            return Ok(());
        };
        let problem = format!(
            "node {name} runs no HostProcess containers: they need Kubernetes 1.23 and containerd 1.6"
        );
        Err(Failure::usage(problem).hint(
            "move it to these or newer, or select other nodes with --node-selector KEY=VALUE",
        ))
    }

    fn manifests(self, builder: BuilderName) -> BuilderManifests {
        let data_root = format!(r"C:\ProgramData\wincimg\{}", builder.name);
        BuilderManifests {
            builder,
            image: self.image.unwrap_or_default(),
            pull_secret: self.pull_secret,
            data_root: self.data_root.unwrap_or(data_root),
            cpu: self.cpu,
            memory: self.memory,
            insecure_registries: self.insecure,
            users: self.users,
            groups: self.groups,
        }
    }
}

/// The nodes of each build, all of which have `HostProcess` containers.
fn builders(nodes: &[Node], labels: &[(String, String)]) -> Result<Vec<BuildNodes>> {
    let builds = BuildNodes::of_each(nodes, labels);
    if let Some(BuildNodes { build: old, .. }) = builds.first().filter(|it| it.build < OLDEST_BUILD)
    {
        let problem =
            format!("build {old} has no HostProcess containers: expected {OLDEST_BUILD} or newer");
        return Err(Failure::usage(problem).hint("name nodes of Server 2019 or newer"));
    }
    Ok(builds)
}
