//! Pulling a fleet's images to the nodes ahead of a rollout: a `DaemonSet` per Windows build.
//!
//! Each image is the image of an init container that ends at once. Init containers start one after
//! the other, so the images are pulled in their order, and the kubelet counts the images of ended
//! containers as used as long as their pod exists: its garbage collection keeps them.

use serde_json::{Value, json};
use wincimg_oci::document::{Descriptor, Digest};

use crate::build_nodes::BuildNodes;
use crate::manifests::{COMPONENT, INSTANCE, kubectl, labels, namespace};
use crate::nodes::{Node, OS_LABEL};
use crate::scheduling::{Operator, Requirement};
use crate::selector::LabelSelector;

/// In every Windows base, and on every host.
const CMD: &str = r"C:\Windows\System32\cmd.exe";

/// An image to pull.
#[derive(Debug, Clone)]
pub struct PrepullImage {
    /// Reference by digest.
    pub reference: String,
    /// Its layers, the bottom first.
    pub layers: Vec<Descriptor>,
    /// True if it contains no Windows, so that only a `HostProcess` container can run it.
    pub host_process: bool,
    /// The nodes that it is for, among those of the build.
    pub selector: Option<LabelSelector>,
}

impl PrepullImage {
    /// True if the pod that pulls it runs on a node and needs the image of a pause container.
    pub fn needs_pause_on(&self, node: &Node) -> bool {
        let selector = self.selector.as_ref();
        !self.host_process && selector.is_none_or(|selector| selector.matches(node))
    }
}

/// The images for the nodes of a build, in any order.
#[derive(Debug, Clone)]
pub struct PrepullBuild {
    /// The nodes.
    pub nodes: BuildNodes,
    /// The images.
    pub images: Vec<PrepullImage>,
}

impl PrepullBuild {
    /// True if a pod of it needs the image of a pause container.
    pub fn needs_pause(&self) -> bool {
        self.images.iter().any(|image| !image.host_process)
    }

    /// The images that one pod pulls: of one kind and for the same nodes. Those of `HostProcess`
    /// containers come last.
    fn pods(&self) -> Vec<Vec<&PrepullImage>> {
        let mut pods: Vec<Vec<&PrepullImage>> = Vec::new();
        for image in &self.images {
            let is_alike = |pod: &&mut Vec<&PrepullImage>| {
                pod[0].host_process == image.host_process
                    && requirements(pod[0]) == requirements(image)
            };
            match pods.iter_mut().find(is_alike) {
                Some(pod) => pod.push(image),
                None => pods.push(vec![image]),
            }
        }
        pods.sort_by_key(|pod| pod[0].host_process);
        let ordered = pods.into_iter().map(|pod| pull_order(pod, 0));
        ordered.collect()
    }
}

/// What the manifests are made of.
#[derive(Debug, Clone)]
pub struct PrepullManifests {
    /// Namespace of the pods.
    pub namespace: String,
    /// Name, to which each `DaemonSet` adds its build.
    pub name: String,
    /// Image of the container that keeps a pod.
    pub pause: String,
    /// Secret with the credentials of the images' registries.
    pub pull_secret: Option<String>,
    /// Nodes that pull at once after a change: a number or a percentage.
    pub max_unavailable: String,
}

impl PrepullManifests {
    /// The objects for nodes of these builds, in the order in which they are created.
    pub fn objects(&self, builds: &[PrepullBuild]) -> Vec<Value> {
        let mut images = builds.iter().flat_map(|build| &build.images);
        let is_privileged = images.any(|image| image.host_process);
        let mut objects = vec![namespace(&self.namespace, is_privileged)];
        for build in builds {
            for (index, images) in build.pods().into_iter().enumerate() {
                let mut suffix = build.nodes.build.to_string();
                if index > 0 {
                    suffix = format!("{suffix}-{}", index + 1);
                }
                objects.push(self.daemon_set(&suffix, &build.nodes, &images));
            }
        }
        objects
    }

    /// Command that removes the pods; the nodes' images are garbage of the kubelet from then on.
    pub fn removal(&self, cluster: &[String]) -> String {
        let Self {
            namespace, name, ..
        } = self;
        format!(
            "{} --namespace {namespace} delete daemonset --selector {INSTANCE}={name}",
            kubectl(cluster)
        )
    }

    fn daemon_set(&self, suffix: &str, nodes: &BuildNodes, images: &[&PrepullImage]) -> Value {
        let component = format!("windows-{suffix}");
        let mut labels = labels("wincimg-prepull", &self.name);
        labels[COMPONENT] = json!(component);
        let max_unavailable = match self.max_unavailable.parse::<u32>() {
            Ok(count) => json!(count),
            Err(_) => json!(self.max_unavailable),
        };
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {
                "name": format!("{}-{suffix}", self.name),
                "namespace": self.namespace,
                "labels": labels,
            },
            "spec": {
                "selector": {"matchLabels": {INSTANCE: self.name, COMPONENT: component}},
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": max_unavailable},
                },
                "template": {"metadata": {"labels": labels}, "spec": self.pod(nodes, images)},
            },
        })
    }

    fn pod(&self, nodes: &BuildNodes, images: &[&PrepullImage]) -> Value {
        let is_host_process = images.iter().any(|image| image.host_process);
        let pulls = images.iter().enumerate().map(|(index, image)| {
            let mut pull = container(&format!("pull-{}", index + 1), &image.reference);
            pull["command"] = json!([CMD, "/c", "exit", "0"]);
            pull
        });
        // All containers of a HostProcess pod are, and run programs of the host.
        let pause = match images.last().filter(|_| is_host_process) {
            Some(image) => {
                let mut pause = container("pause", &image.reference);
                pause["command"] = json!([CMD, "/c", "ping -t 127.0.0.1 >nul"]);
                pause
            }
            None => container("pause", &self.pause),
        };
        let user = if is_host_process {
            json!({"hostProcess": true, "runAsUserName": r"NT AUTHORITY\LOCAL SERVICE"})
        } else {
            // The image's user may be one that the node cannot log on.
            json!({"runAsUserName": "ContainerUser"})
        };
        let mut pod = json!({
            "nodeSelector": nodes.selector,
            "tolerations": nodes.tolerations,
            "securityContext": {"windowsOptions": user},
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 5,
            "initContainers": pulls.collect::<Vec<_>>(),
            "containers": [pause],
        });
        if is_host_process {
            pod["hostNetwork"] = json!(true);
        }
        if let Some(secret) = &self.pull_secret {
            pod["imagePullSecrets"] = json!([{"name": secret}]);
        }
        let expressions = images.first().map_or_else(Vec::new, |it| requirements(it));
        if !expressions.is_empty() {
            pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({"nodeSelectorTerms": [{"matchExpressions": expressions}]});
        }
        pod
    }
}

/// A container that needs little: Windows starts in it, and then nothing.
fn container(name: &str, image: &str) -> Value {
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "requests": {"cpu": "10m", "memory": "100Mi"},
            "limits": {"cpu": "1", "memory": "800Mi"},
        },
    })
}

/// What an image requires of its nodes, besides Windows.
fn requirements(image: &PrepullImage) -> Vec<&Requirement> {
    let is_windows = |requirement: &Requirement| {
        requirement.key == OS_LABEL
            && requirement.operator == Operator::In
            && requirement.values == ["windows"]
    };
    let all = image.selector.iter().flat_map(|selector| &selector.0);
    all.filter(|requirement| !is_windows(requirement)).collect()
}

/// The order in which images share what is pulled: those with the same layers from `depth` on come
/// one after the other, and what most bytes are shared of comes first.
fn pull_order(images: Vec<&PrepullImage>, depth: usize) -> Vec<&PrepullImage> {
    fn layer(image: &PrepullImage, depth: usize) -> Option<&Digest> {
        Some(&image.layers.get(depth)?.digest)
    }
    let mut groups: Vec<Vec<&PrepullImage>> = Vec::new();
    for image in images {
        let same = |group: &&mut Vec<&PrepullImage>| layer(group[0], depth) == layer(image, depth);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(image),
            None => groups.push(vec![image]),
        }
    }
    let mut ordered: Vec<(u64, Vec<&PrepullImage>)> = Vec::new();
    for group in groups {
        let (first, rest) = (group[0], &group[1..]);
        let is_shared = |depth: &usize| {
            let own = layer(first, *depth);
            !rest.is_empty() && rest.iter().all(|it| layer(it, *depth) == own)
        };
        let end = (depth..first.layers.len())
            .take_while(is_shared)
            .last()
            .map(|last| last + 1);
        match end {
            Some(end) => {
                let shared = first.layers[depth..end]
                    .iter()
                    .map(|layer| layer.size)
                    .sum();
                ordered.push((shared, pull_order(group, end)));
            }
            None => ordered.push((0, group)),
        }
    }
    ordered.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    ordered.into_iter().flat_map(|(_, group)| group).collect()
}

#[cfg(test)]
mod tests {
    use wincimg_oci::document::sha256;

    use super::*;

    fn image(name: &str, layers: &[(&str, u64)]) -> PrepullImage {
        let layer =
            |(name, size): &(&str, u64)| Descriptor::new("", sha256(name.as_bytes()), *size);
        PrepullImage {
            reference: name.to_owned(),
            layers: layers.iter().map(layer).collect(),
            host_process: false,
            selector: None,
        }
    }

    #[test]
    fn images_that_share_a_base_are_neighbours_and_the_largest_base_is_first() {
        let (nano, core, iis) = (("nano", 100), ("core", 2000), ("iis", 300));
        let images = [
            image("alone", &[("other", 9000)]),
            image("nano-a", &[nano, ("a", 1)]),
            image("core-a", &[core, ("a", 1)]),
            image("iis-a", &[core, iis, ("a", 1)]),
            image("nano-b", &[nano, ("b", 1)]),
            image("core-b", &[core, ("b", 1)]),
            image("iis-b", &[core, iis, ("b", 1)]),
            image("core", &[core]),
        ];
        let order = pull_order(images.iter().collect(), 0);
        let names: Vec<&str> = order.iter().map(|image| &image.reference[..]).collect();
        assert_eq!(
            names,
            [
                "iis-a", "iis-b", "core-a", "core-b", "core", "nano-a", "nano-b", "alone"
            ]
        );
    }

    #[test]
    fn equal_images_are_each_pulled() {
        let images = [image("a", &[("x", 1)]), image("b", &[("x", 1)])];
        assert_eq!(pull_order(images.iter().collect(), 0).len(), 2);
        let empty = [image("a", &[]), image("b", &[])];
        assert_eq!(pull_order(empty.iter().collect(), 0).len(), 2);
    }
}
