//! Builders: Docker daemons in `HostProcess` pods, one on a node of each Windows build. They listen
//! on a named pipe only; a client reaches them by exec.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use super::build_nodes::BuildNodes;
use super::manifests::{COMPONENT, INSTANCE, kubectl, labels, namespace};
use super::names::is_dns_label;

/// Scheme of a builder's address.
pub const SCHEME: &str = "kube";

/// The first build with `HostProcess` containers.
pub const OLDEST_BUILD: u32 = 17763;

/// Longest name: the pod's, with the build and a number, is a label too.
const MAX_NAME: usize = 40;

/// Namespace and name of the builders for all builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuilderName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl BuilderName {
    /// Name of the workload for a build.
    pub fn workload(&self, build: u32) -> String {
        format!("{}-{build}", self.name)
    }

    /// Name of the pod for a build.
    pub fn pod(&self, build: u32) -> String {
        format!("{}-0", self.workload(build))
    }
}

impl fmt::Display for BuilderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}://{}/{}", self.namespace, self.name)
    }
}

impl FromStr for BuilderName {
    type Err = String;

    /// Parses `NAMESPACE/NAME`, with or without the scheme.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix(&format!("{SCHEME}://")).unwrap_or(text);
        let expected = || format!("invalid builder {text:?}: expected {SCHEME}://NAMESPACE/NAME");
        let (namespace, name) = text.split_once('/').ok_or_else(expected)?;
        if !is_dns_label(namespace) || !is_dns_label(name) {
            return Err(expected());
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

/// Returns true if a text can be a builder's name.
pub fn is_builder_name(text: &str) -> bool {
    is_dns_label(text) && text.len() <= MAX_NAME
}

/// What the manifests are made of.
#[derive(Debug, Clone)]
pub struct BuilderManifests {
    /// Namespace and name.
    pub builder: BuilderName,
    /// The image with Docker.
    pub image: String,
    /// Secret with the credentials of the image's registry.
    pub pull_secret: Option<String>,
    /// Folder of the daemon's images on the node.
    pub data_root: String,
    /// CPU to reserve on the node.
    pub cpu: String,
    /// Memory to reserve on the node.
    pub memory: String,
    /// Registries without a verified certificate.
    pub insecure_registries: Vec<String>,
    /// Users that may build, besides the service account.
    pub users: Vec<String>,
    /// Groups that may build.
    pub groups: Vec<String>,
}

/// Kinds with the builder's labels, which its removal deletes.
const REMOVED_KINDS: &str = "statefulset,role,rolebinding,serviceaccount";

impl BuilderManifests {
    /// The objects for nodes of these builds, in the order in which they are created.
    pub fn objects(&self, builds: &[BuildNodes]) -> Vec<Value> {
        let namespace = namespace(&self.builder.namespace, true);
        let mut objects = vec![namespace, self.service_account()];
        for nodes in builds {
            objects.push(self.role(nodes.build));
            objects.push(self.role_binding(nodes.build));
            objects.push(self.workload(nodes));
        }
        objects
    }

    fn labels(&self) -> Value {
        labels("wincimg-builder", &self.builder.name)
    }

    fn metadata(&self, name: &str) -> Value {
        json!({"name": name, "namespace": self.builder.namespace, "labels": self.labels()})
    }

    fn service_account(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": self.metadata(&self.builder.name),
            "automountServiceAccountToken": false,
        })
    }

    /// The rights of who builds: one pod, and exec in it. An exec over WebSocket is authorized as
    /// `get` before Kubernetes 1.35, and as `create` too since.
    fn role(&self, build: u32) -> Value {
        let pod = [self.builder.pod(build)];
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": self.metadata(&self.builder.workload(build)),
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "resourceNames": pod, "verbs": ["get"]},
                {
                    "apiGroups": [""],
                    "resources": ["pods/exec"],
                    "resourceNames": pod,
                    "verbs": ["get", "create"],
                },
            ],
        })
    }

    fn role_binding(&self, build: u32) -> Value {
        let name = self.builder.workload(build);
        let account = json!({
            "kind": "ServiceAccount",
            "name": self.builder.name,
            "namespace": self.builder.namespace,
        });
        let group = "rbac.authorization.k8s.io";
        let subject = |kind: &'static str| move |name: &String| json!({"apiGroup": group, "kind": kind, "name": name});
        let users = self.users.iter().map(subject("User"));
        let groups = self.groups.iter().map(subject("Group"));
        let subjects: Vec<Value> = [account].into_iter().chain(users).chain(groups).collect();
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": self.metadata(&name),
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": subjects,
        })
    }

    /// One pod with a name that does not change: created again where it was evicted, and never
    /// twice, because the daemons of a node would share a pipe and a folder.
    fn workload(&self, nodes: &BuildNodes) -> Value {
        let component = format!("windows-{}", nodes.build);
        let mut labels = self.labels();
        labels[COMPONENT] = json!(component);
        let selector = json!({INSTANCE: self.builder.name, COMPONENT: component});
        let mut metadata = self.metadata(&self.builder.workload(nodes.build));
        metadata["labels"] = labels.clone();
        json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": metadata,
            "spec": {
                // There is no such Service: nothing listens on the network.
                "serviceName": self.builder.name,
                "replicas": 1,
                "selector": {"matchLabels": selector},
                "template": {"metadata": {"labels": labels}, "spec": self.pod(nodes)},
            },
        })
    }

    fn pod(&self, nodes: &BuildNodes) -> Value {
        let mut pod = json!({
            "nodeSelector": nodes.selector,
            "tolerations": nodes.tolerations,
            "hostNetwork": true,
            "securityContext": {
                "windowsOptions": {
                    "hostProcess": true,
                    "runAsUserName": r"NT AUTHORITY\SYSTEM",
                },
            },
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 60,
            "containers": [self.container()],
        });
        if let Some(secret) = &self.pull_secret {
            pod["imagePullSecrets"] = json!([{"name": secret}]);
        }
        pod
    }

    fn container(&self) -> Value {
        let pipe = self.pipe();
        let data_root = &self.data_root;
        let mut command = [
            // The image's files have another place on Server 2019.
            r"%CONTAINER_SANDBOX_MOUNT_POINT%\dockerd.exe",
            "--host",
            &pipe,
            "--data-root",
            data_root,
            "--exec-root",
            &format!(r"{data_root}\exec"),
            // The default is that of the node's own Docker, and outlives a killed daemon.
            "--pidfile",
            r"%CONTAINER_SANDBOX_MOUNT_POINT%\docker.pid",
        ]
        .map(str::to_owned)
        .to_vec();
        for registry in &self.insecure_registries {
            command.extend(["--insecure-registry".to_owned(), registry.clone()]);
        }
        json!({
            "name": "dockerd",
            "image": self.image,
            "command": command,
            // For `docker` in the pod.
            "env": [{"name": "DOCKER_HOST", "value": pipe}],
            // The containers of steps are not the pod's: this reserves their share of the node.
            "resources": {"requests": {"cpu": self.cpu, "memory": self.memory}},
            "readinessProbe": {
                "exec": {"command": ["docker", "version"]},
                "periodSeconds": 10,
                "timeoutSeconds": 10,
            },
        })
    }

    /// The daemon's pipe, which other daemons of the node do not have.
    fn pipe(&self) -> String {
        let BuilderName { namespace, name } = &self.builder;
        format!("npipe:////./pipe/wincimg-{namespace}-{name}")
    }
}

/// Commands that remove a builder: its images first, which are more than files.
pub fn removal(builder: &BuilderName, builds: &[u32], cluster: &[String]) -> Vec<String> {
    let BuilderName { namespace, name } = builder;
    let kubectl = kubectl(cluster);
    let in_namespace = format!("{kubectl} --namespace {namespace}");
    let mut commands: Vec<String> = builds
        .iter()
        .map(|build| {
            let pod = builder.pod(*build);
            format!("{in_namespace} exec {pod} -- docker system prune --all --force")
        })
        .collect();
    commands.push(format!(
        "{in_namespace} delete {REMOVED_KINDS} --selector {INSTANCE}={name}"
    ));
    commands.push("# If nothing else is in the namespace:".to_owned());
    commands.push(format!("{kubectl} delete namespace {namespace}"));
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_builder_is_named_by_namespace_and_name() {
        let builder: BuilderName = "kube://ci/builder".parse().unwrap();
        assert_eq!(builder.to_string(), "kube://ci/builder");
        assert_eq!(builder.pod(20348), "builder-20348-0");
        for text in [
            "kube://ci", "kube://ci/", "kube:///x", "kube://ci/x/y", "kube://Ci/x", "ci/-x",
        ] {
            assert!(text.parse::<BuilderName>().is_err(), "{text}");
        }
        assert!(is_builder_name(&"a".repeat(40)) && !is_builder_name(&"a".repeat(41)));
    }
}
