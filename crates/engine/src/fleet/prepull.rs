//! The images of a fleet as nodes are to pull them: by digest, with the layers that they share.

use futures_util::{StreamExt, TryStreamExt, stream};
use wincimg_cluster::build_nodes::BuildNodes;
use wincimg_cluster::nodes::Node;
use wincimg_cluster::prepull::{PrepullBuild, PrepullImage};
use wincimg_cluster::rollout::Variant;
use wincimg_cluster::selector::LabelSelector;
use wincimg_common::diagnose::BoxError;
use wincimg_oci::document::{Descriptor, Document, ENTRIES_AT_ONCE, Manifest, Platform, Verbatim};
use wincimg_oci::reference::repository_of;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Source, StoreError};
use wincimg_windows::compat::{
    ContainerRuntime, Isolation, RuntimeChoice, VerdictOutcome, check, choose,
};

use super::{EntrySource, Fleet, FleetEntry};

/// Number of images read at once.
const MAX_READS: usize = 32;

/// The recipe of the pause image.
const PAUSE: &str = "pause";

/// The images of a fleet for its nodes.
#[derive(Debug, Clone)]
pub struct FleetPrepull {
    /// The images of each build of Windows, the oldest first; builds without any are left out.
    pub builds: Vec<PrepullBuild>,
    /// The image of the pause containers: the fleet's by digest, unless another is named.
    pub pause: Option<String>,
    /// Images that nodes do not pull.
    pub left_out: Vec<ExcludedImage>,
}

impl FleetPrepull {
    fn leave_out(&mut self, entry: &FleetEntry, refusals: Vec<Refusal>) {
        let left_out = refusals.into_iter().map(|(nodes, reason)| ExcludedImage {
            image: entry.label(),
            nodes,
            reason,
        });
        self.left_out.extend(left_out);
    }
}

/// An image that nodes of a build do not pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedImage {
    /// The image.
    pub image: String,
    /// Names of the nodes; empty for all of the build.
    pub nodes: Vec<String>,
    /// The reason.
    pub reason: PrepullProblem,
}

/// The reason why nodes do not pull an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepullProblem {
    /// The registry has none for them: `has no image for build 17763`.
    #[error("{0}")]
    Missing(String),
    /// Their runtime does not run it.
    #[error("{0}")]
    Runtime(String),
}

impl FleetEntry {
    /// Returns true for the image of pause containers, which `prepull` keeps its pods with.
    pub fn is_pause(&self) -> bool {
        matches!(&self.work, EntrySource::Build(input) if input.image == PAUSE)
    }
}

/// What the registry has of an image.
struct PublishedImage {
    /// Reference by the digest of what the tag names: the same that a node resolves the tag to.
    reference: String,
    /// True if the tag names an index, from which a node's runtime selects.
    is_index: bool,
    variants: Vec<PublishedVariant>,
}

/// Names of nodes of a build that do not pull an image, empty for all of them, and the reason.
type Refusal = (Vec<String>, PrepullProblem);

/// An image for Windows, of an index or alone.
struct PublishedVariant {
    variant: Variant,
    layers: Vec<Descriptor>,
}

/// Finds the images of a fleet for nodes. The pause image, the fleet's or another one, is not among
/// them: it keeps the pods that pull the others.
pub async fn prepull(
    fleet: &Fleet,
    nodes: &[Node],
    registry: &RegistryClient,
    other_pause: Option<String>,
) -> Result<FleetPrepull, BoxError> {
    let entries = stream::iter(&fleet.entries);
    let found = entries.map(async |entry| (entry, published(entry, registry).await));
    let found: Vec<_> = found.buffered(MAX_READS).collect().await;
    let mut images = Vec::with_capacity(found.len());
    let mut pause = None;
    for (entry, published) in found {
        let published = published?;
        if entry.is_pause() {
            pause = published.map(|image| (entry, image)).or(pause);
        } else {
            images.push((entry, published));
        }
    }
    let pause = pause.filter(|_| other_pause.is_none());
    let own_pause = pause.as_ref().map(|(_, image)| image.reference.clone());
    let mut result = FleetPrepull {
        builds: Vec::new(),
        pause: other_pause.or(own_pause),
        left_out: Vec::new(),
    };
    for nodes_of_build in BuildNodes::of_each(nodes, &[]) {
        let mut own: Vec<PrepullImage> = Vec::new();
        for (entry, published) in &images {
            let own_nodes = nodes_of_build.own(nodes);
            let own_nodes: Vec<&Node> = own_nodes.filter(|node| entry.matches(node)).collect();
            if own_nodes.is_empty() {
                continue;
            }
            let (image, refusals) = match published {
                Some(image) => image.for_nodes(&own_nodes, entry.selector.as_ref()),
                None => (None, vec![(Vec::new(), no_image_for(own_nodes[0]))]),
            };
            own.extend(image);
            result.leave_out(entry, refusals);
        }
        if let Some((entry, image)) = &pause {
            let needs_it = |node: &&Node| own.iter().any(|image| image.needs_pause_on(node));
            let own_nodes: Vec<&Node> = nodes_of_build.own(nodes).filter(needs_it).collect();
            let (_, refusals) = image.for_nodes(&own_nodes, None);
            result.leave_out(entry, refusals);
        }
        if !own.is_empty() {
            result.builds.push(PrepullBuild {
                nodes: nodes_of_build,
                images: own,
            });
        }
    }
    Ok(result)
}

impl PublishedImage {
    /// The image for nodes of a build that a selector chooses, and the names of those that do not
    /// pull it, with the reasons. A pod has to start on all of its nodes: its next images are pulled
    /// once this one has ended. So the pod leaves out named nodes on which it does not start; other
    /// hosts cannot be told apart, and then no node pulls the image.
    fn for_nodes(
        &self,
        nodes: &[&Node],
        selector: Option<&LabelSelector>,
    ) -> (Option<PrepullImage>, Vec<Refusal>) {
        let mut selected: Vec<&PublishedVariant> = Vec::new();
        let mut refused: Vec<(&Node, PrepullProblem)> = Vec::new();
        for node in nodes {
            match self.selected_by(node) {
                Ok(variants) => selected.extend(variants),
                Err(reason) => refused.push((*node, reason)),
            }
        }
        let is_everywhere = refused.len() == nodes.len();
        // What is missing is named with the build, what a runtime lacks with the nodes.
        let decisive = refused.iter().find(|(node, reason)| {
            node.name.is_none() || (is_everywhere && matches!(reason, PrepullProblem::Missing(_)))
        });
        if let Some((_, reason)) = decisive {
            return (None, vec![(Vec::new(), reason.clone())]);
        }
        let without: Vec<&Node> = refused.iter().map(|(node, _)| *node).collect();
        let selector = match without.as_slice() {
            [] => selector.cloned(),
            without => Some(selector.cloned().unwrap_or_default().without(without)),
        };
        let first = selected.first();
        let image = PrepullImage {
            reference: self.reference.clone(),
            layers: first.map_or_else(Vec::new, |variant| variant.layers.clone()),
            host_process: selected.iter().any(|it| it.variant.host_process),
            selector,
        };
        let image = (!is_everywhere).then_some(image);
        let mut refusals: Vec<Refusal> = Vec::new();
        for (node, reason) in refused {
            let name = node.name.iter().cloned();
            match refusals.iter_mut().find(|(_, other)| *other == reason) {
                Some((names, _)) => names.extend(name),
                None => refusals.push((name.collect(), reason)),
            }
        }
        (image, refusals)
    }

    /// The images that a node may select, or the reason why it does not run one.
    fn selected_by(&self, node: &Node) -> Result<Vec<&PublishedVariant>, PrepullProblem> {
        let mut selected = Vec::new();
        for choice in self.choices(node) {
            let variant = choice.entry.and_then(|entry| self.variants.get(entry));
            let variant = variant.ok_or_else(|| self.not_selected(node))?;
            variant.check(node)?;
            selected.push(variant);
        }
        Ok(selected)
    }

    /// The reason why a node selects none of the images.
    fn not_selected(&self, node: &Node) -> PrepullProblem {
        let mut variants = self.variants.iter();
        let has_windows = variants.any(|it| !it.variant.host_process);
        if has_windows || self.variants.is_empty() || node.runtime.runs_unversioned() {
            return no_image_for(node);
        }
        PrepullProblem::Runtime(format!(
            "contains no Windows and needs {}: older ones do not select it from an index",
            ContainerRuntime::FOR_UNVERSIONED
        ))
    }

    fn choices(&self, node: &Node) -> Vec<RuntimeChoice> {
        let Some(host) = node.build else {
            return Vec::new();
        };
        if !self.is_index {
            return vec![RuntimeChoice {
                entry: Some(0),
                by: node.runtime.name().to_owned(),
            }];
        }
        let entries: Vec<_> = self.variants.iter().map(|it| it.variant.entry()).collect();
        choose(&entries, host, &node.architecture, node.runtime)
    }
}

impl PublishedVariant {
    /// Checks that a node runs it; otherwise, returns the reason.
    fn check(&self, node: &Node) -> Result<(), PrepullProblem> {
        let version = self.variant.version;
        let Some(version) = version.filter(|_| !self.variant.host_process) else {
            let name = node.runtime.name();
            let lacks = if node.runtime.runs_host_process() {
                "needs HostProcess containers, which require Kubernetes 1.23".to_owned()
            } else {
                format!("needs HostProcess containers, which this {name} lacks")
            };
            let is_run = node.runs_host_process() != Some(false);
            return is_run.then_some(()).ok_or(PrepullProblem::Runtime(lacks));
        };
        match check(node.build, Some(version), Isolation::Process).outcome {
            VerdictOutcome::Incompatible => {
                let host = node.build.map(|host| host.to_string()).unwrap_or_default();
                let reason = format!("is on {version} and does not start on host {host}");
                Err(PrepullProblem::Missing(reason))
            }
            _ => Ok(()),
        }
    }
}

fn no_image_for(node: &Node) -> PrepullProblem {
    let build = node.build.map(|host| host.version.build);
    let build = build.unwrap_or_default();
    PrepullProblem::Missing(format!("has no image for build {build}"))
}

/// Reads an entry's tag; none if it does not exist.
async fn published(
    entry: &FleetEntry,
    registry: &RegistryClient,
) -> Result<Option<PublishedImage>, StoreError> {
    let Some(reference) = entry.reference() else {
        return Ok(None);
    };
    let source = Source::open(&Location::Registry(reference.clone()), registry).await?;
    let document = match source.resolve(reference.tag()).await {
        Err(StoreError::Registry(error)) if error.is_not_found() => return Ok(None),
        document => document?,
    };
    let reference = format!("{}@{}", repository_of(&reference), document.digest());
    let is_index = matches!(document, Document::Index(_));
    let mut variants = Vec::new();
    match document {
        Document::Manifest(manifest) => variants.extend(variant(&source, *manifest, None).await?),
        Document::Index(index) => {
            let entries = index.manifests.iter().filter(|it| it.is_for_windows());
            let mut reads = Vec::new();
            for entry in entries {
                let source = &source;
                reads.push(async move {
                    match source.document(entry).await? {
                        Document::Manifest(image) => {
                            variant(source, *image, entry.platform.clone()).await
                        }
                        Document::Index(_) => Ok(None),
                    }
                });
            }
            let read = stream::iter(reads).buffered(ENTRIES_AT_ONCE);
            let read: Vec<Option<PublishedVariant>> = read.try_collect().await?;
            variants.extend(read.into_iter().flatten());
        }
    }
    Ok(Some(PublishedImage {
        reference,
        is_index,
        variants,
    }))
}

/// An image as a node pulls it, with the platform that its index states; none if it is not for
/// Windows, or for no known version of it.
async fn variant(
    source: &Source,
    manifest: Verbatim<Manifest>,
    stated: Option<Platform>,
) -> Result<Option<PublishedVariant>, StoreError> {
    if !source.is_image(&manifest).await? {
        return Ok(None);
    }
    let image = source.image(manifest).await?;
    let own = Variant::of_image(&image);
    if own.version.is_none() && !own.host_process {
        return Ok(None);
    }
    Ok(Some(PublishedVariant {
        variant: match stated {
            Some(stated) => Variant::of_platform(&stated).with_image(own),
            None => own,
        },
        layers: image.manifest().layers.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use wincimg_windows::compat::HostBuild;
    use wincimg_windows::version::WindowsVersion;

    use super::*;

    fn node(build: &str, runtime: &str) -> Node {
        Node {
            runtime: ContainerRuntime::from_node(runtime),
            ..Node::from_build(HostBuild::new(build.parse().unwrap()))
        }
    }

    /// An index with an entry for each version of a base; `-` is an image without Windows.
    fn index(versions: &[&str]) -> PublishedImage {
        let variants = versions.iter().map(|text| {
            let version: Option<WindowsVersion> = text.parse().ok();
            let platform = Platform {
                os_version: version.map(|version| version.os_version()),
                ..Platform::windows("")
            };
            PublishedVariant {
                variant: Variant {
                    host_process: version.is_none(),
                    ..Variant::of_platform(&platform)
                },
                layers: Vec::new(),
            }
        });
        PublishedImage {
            reference: "repo.lan/app@sha256:0".to_owned(),
            is_index: true,
            variants: variants.collect(),
        }
    }

    #[test]
    fn a_node_pulls_what_its_runtime_selects() {
        let pulls = |versions: &[&str], build: &str, runtime: &str| {
            let (image, refusals) = index(versions).for_nodes(&[&node(build, runtime)], None);
            let reason = refusals.into_iter().next().map(|(_, reason)| reason);
            image
                .map(|image| image.host_process)
                .ok_or_else(|| reason.unwrap())
        };
        let current = "containerd://2.2.0";
        assert_eq!(pulls(&["17763.973"], "17763.973", current), Ok(false));
        assert_eq!(pulls(&["-"], "20348.2402", current), Ok(true));
        // Since Server 2022, the stable ABI, where the runtime knows of it.
        assert_eq!(
            pulls(&["20348.2402"], "26100.1742", "containerd://1.6.30"),
            Ok(false)
        );
        for (versions, build, runtime) in [
            (["20348.2402"], "26100.1742", "containerd://1.7.0"),
            (["-"], "20348.2402", "containerd://1.6.8"),
            (["-"], "20348.2402", "containerd://1.5.0"),
            (["-"], "20348.2402", "docker://20.10.9"),
            (["17763.973"], "17763.1158", current),
        ] {
            pulls(&versions, build, runtime).unwrap_err();
        }
        let refused = |runtime: &str| {
            let reason = pulls(&["-"], "20348.2402", runtime).unwrap_err();
            assert!(matches!(reason, PrepullProblem::Runtime(_)), "{reason}");
            reason.to_string()
        };
        for runtime in [
            "containerd://1.5.0", "containerd://1.6.0", "containerd://1.6.17",
        ] {
            assert!(refused(runtime).contains("containerd 1.6.18"), "{runtime}");
        }
        assert!(refused("docker://20.10.9").contains("Docker"));
        let missing = pulls(&["17763.973"], "20348.2402", current).unwrap_err();
        assert!(matches!(missing, PrepullProblem::Missing(_)), "{missing}");
    }

    #[test]
    fn a_node_that_an_image_does_not_start_on_is_left_out_by_itself() {
        let current = "containerd://2.2.0";
        let named = |name: &str, build: &str| Node {
            name: Some(name.to_owned()),
            ..node(build, current)
        };
        let image = index(&["17763.1158"]);
        let (odd, other) = (named("odd", "17763.973"), named("other", "17763.1158"));
        let (pulled, refusals) = image.for_nodes(&[&odd, &other], None);
        let selector = pulled.unwrap().selector.unwrap().to_string();
        assert_eq!(selector, "kubernetes.io/hostname!=odd");
        let nodes: Vec<&[String]> = refusals.iter().map(|(nodes, _)| &nodes[..]).collect();
        assert_eq!(nodes, [["odd".to_owned()]]);
        // Without names, no pod can tell them apart; without any other node, there is none.
        for nodes in [&[&node("17763.973", current), &other][..], &[&odd]] {
            let (pulled, refusals) = image.for_nodes(nodes, None);
            assert!(pulled.is_none());
            assert!(refusals[0].0.is_empty(), "{refusals:?}");
        }
        // What they lack themselves is said of them.
        let old = Node {
            runtime: ContainerRuntime::from_node("docker://20.10.9"),
            ..odd
        };
        let (pulled, refusals) = index(&["-"]).for_nodes(&[&old], None);
        assert!(pulled.is_none());
        assert_eq!(refusals[0].0, ["odd"]);
    }
}
