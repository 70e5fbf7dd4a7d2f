//! `wincimg fleet prepull`: manifests of pods that pull a fleet's images ahead of a rollout.

use std::ffi::OsStr;

use wincimg_cluster::manifest_text::to_yaml;
use wincimg_cluster::prepull::{PrepullBuild, PrepullManifests};
use wincimg_common::files::LARGEST_TEXT;
use wincimg_dockerfile::foreign_file;
use wincimg_engine::fleet::{ExcludedImage, Fleet, FleetPrepull, PrepullProblem, prepull};
use wincimg_windows::compat::ContainerRuntime;

use crate::cli::manifests::{builder_name, image, namespace, object_name};
use crate::cli::manifests::{warn_of_missing_labels, write_commands, write_objects};
use crate::cli::prelude::*;

/// Print manifests of pods that pull a fleet's images to the nodes
///
/// A DaemonSet per Windows build, and per selector of the fleet, pulls the images that a rollout is
/// about to need, by digest. Each is the image of an init container, so they are pulled one after
/// the other, and those that share a base follow each other; then a pause container keeps the pod,
/// and the kubelet keeps the images.
///
/// An image with Windows runs its own `cmd.exe /c exit 0`, as ContainerUser: nodes on which it does
/// not start are left out for it; if these hosts have no names, all of their build. An image without
/// Windows (of `base = "hostprocess"`) has no program to run: it is pulled by a HostProcess pod,
/// which runs the host's cmd.exe as LOCAL SERVICE. Only then the namespace admits privileged pods.
///
/// A later image is pulled once the manifests are printed and applied again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg fleet prepull fleet.toml --kube | kubectl apply -f -\n  \
    wincimg fleet prepull fleet.toml --nodes nodes.json --kustomize prepull\n  \
    wincimg fleet prepull fleet.toml --kube --max-unavailable 1 \\\n      \
    --output prepull.yaml\n  \
    wincimg fleet prepull fleet.toml --kube --remove\n\n\
    Exit code 0: every image exists. 1: an image is left out: it is missing or does not start. 3: no\n\
    registry responded.")]
pub(super) struct PrepullArgs {
    /// Fleet file
    #[arg(value_name = "FILE", add = complete::fleets())]
    file: PathBuf,
    #[command(flatten)]
    hosts: HostArgs,
    /// Image of the pause containers [default: the fleet's `build = "pause"`]
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    pause: Option<String>,
    /// Write a file per object and a kustomization.yaml to this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "format", "remove"])]
    kustomize: Option<PathBuf>,
    /// Print the command that removes the pods
    #[arg(long)]
    remove: bool,
    /// Nodes that pull at once after a change: a number or a percentage
    #[arg(long, value_name = "N|N%", default_value = "20%", value_parser = max_unavailable)]
    max_unavailable: String,
    /// Name of the pods
    #[arg(long, value_name = "NAME", default_value = "prepull", value_parser = builder_name, hide_short_help = true)]
    name: String,
    /// Namespace of the pods
    #[arg(short, long, value_name = "NAME", default_value = "wincimg-prepull", value_parser = namespace, hide_short_help = true)]
    namespace: String,
    /// Secret of the namespace with the credentials for the images
    #[arg(long, value_name = "NAME", value_parser = object_name, hide_short_help = true)]
    pull_secret: Option<String>,
    /// Write the manifests to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output format: YAML or a command as text, or JSON
    #[arg(long, value_enum, default_value = "text", hide_short_help = true)]
    format: OutputFormat,
    #[command(flatten)]
    connection: RegistryArgs,
}

fn max_unavailable(text: &str) -> Result<String, &'static str> {
    let (number, limit) = match text.strip_suffix('%') {
        Some(number) => (number, 100),
        None => (text, u16::MAX),
    };
    let is_valid = number
        .parse()
        .is_ok_and(|number: u16| (1..=limit).contains(&number));
    is_valid
        .then(|| text.to_owned())
        .ok_or("expected a number above 0, or a percentage up to 100%, such as 2 or 20%")
}

impl PrepullArgs {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        if self.remove {
            let removal = self.manifests("").removal(&self.hosts.cluster.to_words());
            return write_commands(&[removal], self.output.as_deref(), self.format);
        }
        let fleet = Fleet::read(&self.file)?;
        let nodes = self.hosts.distinct_builds(session)?.nodes;
        let ctx = online(&self.connection, session)?;
        let pause = self.pause.clone();
        let found =
            registry_args::run(async { Ok(prepull(&fleet, &nodes, &ctx.registry, pause).await?) })?;
        for ExcludedImage {
            image,
            nodes,
            reason,
        } in &found.left_out
        {
            match nodes.as_slice() {
                [] => session.warn(format_args!("{image} is not pulled: it {reason}")),
                nodes => session.warn(format_args!(
                    "{image} is not pulled on {}: it {reason}",
                    nodes.join(", ")
                )),
            }
        }
        if found.builds.is_empty() {
            return Err(self.nothing_to_pull(&fleet, &found));
        }
        for build in &found.builds {
            warn_of_missing_labels(&build.nodes, &nodes, &[], session);
        }
        let pause = pause_image(&found)?;
        let objects = self.manifests(&pause).objects(&found.builds);
        match &self.kustomize {
            Some(folder) => write_kustomization(folder, &objects)?,
            None => {
                write_objects(&objects, self.output.as_deref(), self.format)?;
            }
        }
        Ok(found.left_out.is_empty().into())
    }

    /// Error where no node pulls anything.
    fn nothing_to_pull(&self, fleet: &Fleet, found: &FleetPrepull) -> Failure {
        let file = &fleet.file;
        let mut others = fleet.entries.iter().filter(|entry| !entry.is_pause());
        if let (None, Some(pause)) = (others.next(), fleet.entries.first()) {
            let problem =
                format!("{file} has only the pause image, which keeps the pods that pull");
            let registry = pause.registry.to_string();
            let name = pause.name.as_deref().unwrap_or("pause");
            let script = ["node", "script", "--registry", &registry, "--pause", name];
            let words = [&script[..], &["--tag", &pause.tag, "--output", "node.ps1"]].concat();
            let script = self.command(&words);
            return Failure::no(problem).hint(format!(
                "to pull it on the nodes: {script}; or add images to {file}"
            ));
        }
        let problem = format!("no image of {file} is for these nodes");
        let reasons = &found.left_out;
        if reasons.is_empty() {
            return Failure::no(problem).hint(
                "no selector of the fleet matches them: compare it with `kubectl get nodes \
                 --show-labels`",
            );
        }
        let is_missing = |it: &ExcludedImage| matches!(it.reason, PrepullProblem::Missing(_));
        if reasons.iter().any(is_missing) {
            return Failure::no(problem).hint(self.command(&["fleet", "build", file]));
        }
        Failure::no(problem).hint(format!(
            "images without Windows need {} on the nodes; from 1.6.0 on, pods can name their \
             version tag, which ends with -hostprocess and is not an index",
            ContainerRuntime::FOR_UNVERSIONED
        ))
    }

    /// A command of this program for the same nodes.
    fn command(&self, words: &[&str]) -> String {
        let words = std::iter::once(&"wincimg").chain(words);
        let words = words.map(|&word| word.to_owned());
        let words = words.chain(self.hosts.to_words());
        let words: Vec<String> = words.chain(self.connection.to_words()).collect();
        command_line(&words)
    }

    fn manifests(&self, pause: &str) -> PrepullManifests {
        PrepullManifests {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            pause: pause.to_owned(),
            pull_secret: self.pull_secret.clone(),
            max_unavailable: self.max_unavailable.clone(),
        }
    }
}

fn pause_image(found: &FleetPrepull) -> Result<String> {
    if found.pause.is_none() && found.builds.iter().any(PrepullBuild::needs_pause) {
        let problem = "no image for the pause containers";
        return Err(Failure::usage(problem).hint(
            "name your nodes' pause image with --pause IMAGE, or add an image to the fleet with \
             build = \"pause\" and build it",
        ));
    }
    Ok(found.pause.clone().unwrap_or_default())
}

/// The first line of each file of a kustomization.
const MARK: &str = "# Written by wincimg: the next kustomization replaces it.\n";

/// The file that lists the others.
const KUSTOMIZATION: &str = "kustomization.yaml";

/// Writes a file per object and the kustomization that lists them, and prints their paths. Files of
/// others are neither replaced nor removed.
fn write_kustomization(folder: &Path, objects: &[Value]) -> Result<()> {
    let name = |object: &Value| {
        let kind = object["kind"].as_str().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        format!("{}-{name}.yaml", kind.to_lowercase())
    };
    let names: Vec<String> = objects.iter().map(name).collect();
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": names,
    });
    files::create_folder(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let resources = names.iter().map(String::as_str).zip(objects);
    // Last, so that what it lists is there.
    let all = resources.chain([(KUSTOMIZATION, &kustomization)]);
    for (name, _) in all.clone() {
        let path = folder.join(name);
        if path.symlink_metadata().is_ok() && !is_own(&path) {
            return Err(foreign_file(folder, name).into());
        }
    }
    let mut written = Vec::new();
    for (name, object) in all {
        let path = folder.join(name);
        let text = MARK.to_owned() + &to_yaml(std::slice::from_ref(object));
        files::write(&path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    remove_old_files(folder, &names)?;
    write_result(None, |out| {
        written
            .iter()
            .try_for_each(|path| writeln!(out, "{}", path.display()))
    })
}

/// Returns true for a file of an earlier kustomization.
fn is_own(path: &Path) -> bool {
    files::read(path, LARGEST_TEXT).is_ok_and(|text| text.starts_with(MARK.as_bytes()))
}

/// Removes files of an earlier run for objects that no longer exist: `kubectl apply -f DIR` applies
/// all that are in the folder.
fn remove_old_files(folder: &Path, names: &[String]) -> Result<()> {
    let unreadable = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let is_current = name == KUSTOMIZATION || names.iter().any(|it| it == name);
        let is_manifest = path.extension().is_some_and(|it| it == "yaml");
        if is_manifest && !is_current && is_own(&path) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}
