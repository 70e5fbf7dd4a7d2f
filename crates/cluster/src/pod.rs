//! A pod or pod template: the fields that decide where and how its containers start.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Number, Value};
use wincimg_common::json::or_default;
use wincimg_windows::compat::{Concern, ContainerRuntime, Isolation};
use wincimg_windows::release;

use super::nodes::Node;
use super::null_is_empty;
use super::scheduling::{Scheduling, SelectorTerm, System, Toleration};

/// The annotation that asked dockershim for Hyper-V isolation.
const HYPERV_ANNOTATION: &str = "experimental.windows.kubernetes.io/isolation-type";

/// Handlers that dockershim and cri-dockerd accept: their own name, and the runtimes that Docker has
/// on Windows without configuration.
const DOCKER_HANDLERS: [&str; 3] = ["docker", "com.docker.hcsshim.v1", "io.containerd.runhcs.v1"];

/// Fields of a pod's security context that the API server refuses with `os.name: windows`.
const LINUX_POD_FIELDS: [&str; 11] = [
    "appArmorProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "runAsGroup",
    "runAsUser",
    "seLinuxChangePolicy",
    "seLinuxOptions",
    "seccompProfile",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
];

/// Fields of a container's security context that it refuses then.
const LINUX_CONTAINER_FIELDS: [&str; 10] = [
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
];

/// A pod template.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PodTemplate {
    /// Containers, init containers first.
    pub containers: Vec<Container>,
    /// Names of containers without an image.
    pub(crate) without_image: Vec<String>,
    /// Scheduling constraints, including those of the runtime class.
    pub scheduling: Scheduling,
    /// `spec.os.name`.
    pub(crate) os_name: Option<String>,
    /// If that is `windows`, the fields that the API server then refuses.
    pub(crate) linux_fields: Vec<String>,
    /// The first container that contradicts the pod's `hostProcess`, which the API server refuses.
    pub(crate) contradicts_host_process: Option<String>,
    /// User to whom the kubelet gives the token of its service account; none with that `os.name`.
    pub(crate) token_user: Option<i64>,
    /// Hyper-V isolation that it requests.
    pub hyperv: Hyperv,
    pub(crate) runtime_class: Option<String>,
    /// Handler of that class, if it names one.
    pub(crate) handler: Option<String>,
    pub(crate) class_is_missing: bool,
    /// True if it is in the network of its node, or may be once its manifest is rendered.
    pub(crate) host_network: bool,
    /// True if it has an `emptyDir` volume, whose data is lost with the pod.
    pub(crate) has_empty_dir: bool,
    /// Termination grace period, if given.
    pub(crate) grace_seconds: Option<u64>,
}

/// Way in which a pod requests Hyper-V isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Hyperv {
    /// Not requested.
    #[default]
    No,
    /// The annotation of dockershim, which Kubernetes 1.21 removed and containerd ignores.
    OfDocker,
    /// A runtime class of containerd, with which Docker starts nothing.
    OfContainerd,
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Container {
    /// Its name in the pod.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// True for a host process container.
    pub host_process: bool,
    /// `imagePullPolicy`.
    pub pull_policy: PullPolicy,
}

/// When a node pulls the image of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PullPolicy {
    /// On every start.
    Always,
    /// If it has no copy.
    #[default]
    IfNotPresent,
    /// Never: the image has to be loaded on the node.
    Never,
}

/// A `RuntimeClass` of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuntimeClass {
    /// Its name.
    pub name: String,
    /// Handler: the runtime's configuration.
    pub handler: String,
    /// Additional node selector.
    pub selector: BTreeMap<String, String>,
    /// Additional tolerations.
    pub tolerations: Vec<Toleration>,
}

impl PodTemplate {
    /// Operating system that it requests. Where its `os.name` and the nodes that it selects differ,
    /// one of them is Windows, so it has to be checked as one for Windows.
    pub fn system(&self) -> System {
        match (self.system_of_os(), self.scheduling.system()) {
            (System::Windows, _) | (_, System::Windows) => System::Windows,
            // These fields exist for Windows only.
            (System::Unsaid, System::Unsaid) if self.is_unmistakably_windows() => System::Windows,
            (System::Unsaid, System::Unsaid) => System::Unsaid,
            (System::Other, _) | (_, System::Other) => System::Other,
        }
    }

    /// Returns true if it selects nodes of another system than its `os.name`. The scheduler heeds
    /// the selector only, and the kubelet refuses the pod.
    pub(crate) fn contradicts_its_os(&self) -> bool {
        matches!(
            (self.system_of_os(), self.scheduling.system()),
            (System::Windows, System::Other) | (System::Other, System::Windows)
        )
    }

    /// Returns true if Windows nodes refuse it, or it selects others: by its `os.name`, which the
    /// scheduler does not heed.
    pub(crate) fn is_refused_by_windows(&self) -> bool {
        self.system_of_os() == System::Other || self.contradicts_its_os()
    }

    /// The system that its `os.name` states.
    pub(crate) fn system_of_os(&self) -> System {
        self.os_name
            .as_deref()
            .map_or(System::Unsaid, System::named)
    }

    /// Values that decide where its pods land, and its images.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let images = self.containers.iter().map(|container| &container.image);
        let texts = images.chain(&self.os_name).chain(&self.runtime_class);
        texts.map(String::as_str).chain(self.scheduling.values())
    }

    fn is_unmistakably_windows(&self) -> bool {
        self.hyperv != Hyperv::No
            || self
                .containers
                .iter()
                .any(|container| container.host_process)
            || self.scheduling.tolerations.iter().any(|toleration| {
                matches!(toleration.key.as_str(), "os" | "node.kubernetes.io/os")
                    && toleration.value.eq_ignore_ascii_case("windows")
            })
    }

    /// Isolation of a container on a node that supports this way to request Hyper-V isolation;
    /// `usual` is the default of the nodes.
    pub fn isolation(
        &self,
        container: &Container,
        supported: Hyperv,
        usual: Isolation,
    ) -> Isolation {
        if container.host_process {
            Isolation::HostProcess
        } else if self.hyperv != Hyperv::No && self.hyperv == supported {
            Isolation::HyperV
        } else {
            usual
        }
    }

    /// Build of the virtual machines of its runtime class, if the handler ends with it.
    pub(crate) fn machine_build(&self) -> Option<u32> {
        let is_hyperv = self.hyperv == Hyperv::OfContainerd;
        let handler = self.handler.as_deref().filter(|_| is_hyperv)?;
        let build = handler.rsplit('-').next()?.parse().ok()?;
        release::from_build(build).map(|release| release.build)
    }

    /// The handler of its runtime class if this runtime starts no pod with it.
    pub(crate) fn refused_handler(&self, runtime: ContainerRuntime) -> Option<&str> {
        let handler = self.handler.as_deref()?;
        (runtime == ContainerRuntime::Docker && !DOCKER_HANDLERS.contains(&handler))
            .then_some(handler)
    }

    /// Why the API server refuses it, and the fix.
    pub(crate) fn refusal(&self) -> Option<(Concern, String, String)> {
        let mut problems = self.host_process_problems();
        let concern = if problems.is_empty() {
            Concern::ForbiddenField
        } else {
            Concern::HostProcessUnsupported
        };
        if !self.linux_fields.is_empty() {
            let fields = self.linux_fields.join(", ");
            problems.push((
                format!("os.name windows forbids {fields}"),
                format!("remove from the pod's spec: {fields}"),
            ));
        }
        if problems.is_empty() {
            return None;
        }
        let (reasons, fixes): (Vec<String>, Vec<String>) = problems.into_iter().unzip();
        let reasons = reasons.join(", and ");
        Some((
            concern,
            format!("the API server refuses the pod: {reasons}"),
            fixes.join(", and "),
        ))
    }

    /// What the API server refuses about its host process containers, each with the fix.
    fn host_process_problems(&self) -> Vec<(String, String)> {
        let (own, others): (Vec<&Container>, Vec<&Container>) = self
            .containers
            .iter()
            .partition(|container| container.host_process);
        let contradiction = self.contradicts_host_process.as_ref().map(|name| {
            (
                format!("hostProcess of the container {name} contradicts that of the pod"),
                "set both to the same value, or remove one".to_owned(),
            )
        });
        if own.is_empty() {
            return contradiction.into_iter().collect();
        }
        let network = (!self.host_network).then(|| {
            (
                "HostProcess containers need hostNetwork: true".to_owned(),
                "set hostNetwork: true in the pod's spec".to_owned(),
            )
        });
        let beside = others.first().map(|other| {
            let name = match other.name.as_str() {
                "" => other.image.as_str(),
                name => name,
            };
            (
                format!("the container {name} beside them is not one"),
                "make all containers of the pod HostProcess containers, or move the others to \
                 another pod"
                    .to_owned(),
            )
        });
        let problems = contradiction.into_iter().chain(network);
        problems.chain(beside).collect()
    }

    /// Name of its runtime class if that is not in the input.
    pub(crate) fn missing_class(&self) -> Option<&str> {
        self.runtime_class
            .as_deref()
            .filter(|_| self.class_is_missing)
    }

    /// Returns true if only taints keep it off a node, and its unknown runtime class may tolerate
    /// them.
    pub(crate) fn class_may_admit(&self, node: &Node) -> bool {
        self.missing_class().is_some()
            && !self.is_refused_by_windows()
            && self.scheduling.matches_node(node)
    }

    /// Applies its runtime class, if it is among these.
    pub fn apply(&mut self, classes: &[RuntimeClass]) {
        let Some(name) = &self.runtime_class else {
            return;
        };
        let class = classes.iter().find(|class| class.name == *name);
        self.class_is_missing = class.is_none();
        let Some(class) = class else {
            return;
        };
        if is_hyperv(&class.handler) {
            self.hyperv = Hyperv::OfContainerd;
        }
        self.handler = Some(class.handler.clone()).filter(|handler| !handler.is_empty());
        for (label, value) in &class.selector {
            self.scheduling.require(label, value);
        }
        let tolerations = class.tolerations.iter().cloned();
        self.scheduling.tolerations.extend(tolerations);
    }
}

/// Returns true if a handler is one of containerd's for Hyper-V isolation, such as
/// `runhcs-wcow-hypervisor-17763`.
fn is_hyperv(handler: &str) -> bool {
    let handler = handler.to_ascii_lowercase();
    handler.contains("hypervisor") || handler.contains("hyperv") || handler.contains("hyper-v")
}

/// A pod template of the API.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct PodObject {
    #[serde(default, deserialize_with = "or_default")]
    metadata: PodMetadata,
    #[serde(default, deserialize_with = "or_default")]
    spec: PodSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct PodMetadata {
    /// Of any type: one of them matters.
    #[serde(default)]
    annotations: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    #[serde(default, deserialize_with = "or_default")]
    init_containers: Vec<ContainerObject>,
    #[serde(default, deserialize_with = "or_default")]
    containers: Vec<ContainerObject>,
    node_name: Option<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    node_selector: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "or_default")]
    affinity: Affinity,
    #[serde(default, deserialize_with = "or_default")]
    tolerations: Vec<Toleration>,
    runtime_class_name: Option<String>,
    os: Option<Os>,
    /// Of any type: text such as `${HOST_NETWORK}` is replaced before the API server reads it.
    #[serde(default)]
    host_network: Value,
    #[serde(default, rename = "hostIPC")]
    host_ipc: Value,
    #[serde(default, rename = "hostPID")]
    host_pid: Value,
    #[serde(default)]
    host_users: Value,
    #[serde(default)]
    share_process_namespace: Value,
    #[serde(default)]
    automount_service_account_token: Value,
    #[serde(default, deserialize_with = "or_default")]
    security_context: SecurityContext,
    /// Of any type: one kind of them matters.
    #[serde(default)]
    volumes: Value,
    #[serde(default, deserialize_with = "grace_seconds")]
    termination_grace_period_seconds: Option<u64>,
}

/// Reads seconds as the API server does: a number below zero is one second.
fn grace_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let text = number.to_string();
    // In YAML `30.0` is a whole number, too.
    let whole = text.strip_suffix(".0").unwrap_or(&text);
    let seconds: i64 = whole
        .parse()
        .map_err(|_| D::Error::custom(format_args!("expected whole seconds, found {text}")))?;
    Ok(Some(u64::try_from(seconds).unwrap_or(1)))
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerObject {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    image: Option<String>,
    image_pull_policy: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    security_context: SecurityContext,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecurityContext {
    #[serde(default, deserialize_with = "or_default")]
    windows_options: WindowsOptions,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WindowsOptions {
    host_process: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Affinity {
    #[serde(default, deserialize_with = "or_default")]
    node_affinity: NodeAffinity,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeAffinity {
    required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeSelector {
    /// One that is `null` matches no node, as an empty one.
    #[serde(default, deserialize_with = "or_default")]
    node_selector_terms: Vec<Option<SelectorTerm>>,
}

impl NodeAffinity {
    fn required_terms(self) -> Option<Vec<SelectorTerm>> {
        let selector = self.required_during_scheduling_ignored_during_execution?;
        let terms = selector.node_selector_terms.into_iter();
        Some(terms.map(Option::unwrap_or_default).collect())
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Os {
    name: String,
}

impl PodSpec {
    /// The fields that the API server refuses with `os.name: windows`, named as it documents them.
    fn linux_fields(&self) -> Vec<String> {
        let own = [
            ("hostIPC", self.host_ipc.as_bool() == Some(true)),
            ("hostPID", self.host_pid.as_bool() == Some(true)),
            ("hostUsers", !self.host_users.is_null()),
            (
                "shareProcessNamespace",
                !self.share_process_namespace.is_null(),
            ),
        ];
        let own = own.into_iter().filter(|(_, is_set)| *is_set);
        let mut fields: Vec<String> = own.map(|(field, _)| field.to_owned()).collect();
        for field in LINUX_POD_FIELDS {
            if self.security_context.sets(field) {
                fields.push(format!("securityContext.{field}"));
            }
        }
        for (list, containers) in [
            ("initContainers", &self.init_containers),
            ("containers", &self.containers),
        ] {
            for field in LINUX_CONTAINER_FIELDS {
                if containers.iter().any(|it| it.security_context.sets(field)) {
                    fields.push(format!("{list}[*].securityContext.{field}"));
                }
            }
        }
        fields
    }

    /// The first container that states another `hostProcess` than the pod.
    fn contradicts_host_process(&self) -> Option<String> {
        let of_pod = self.security_context.windows_options.host_process?;
        let mut containers = self.init_containers.iter().chain(&self.containers);
        let contradicting = containers.find(|container| {
            let own = container.security_context.windows_options.host_process;
            own.is_some_and(|own| own != of_pod)
        });
        contradicting.map(|container| container.name.clone())
    }

    /// The user to whom the kubelet gives the token: that of all containers, if they agree.
    fn token_user(&self) -> Option<i64> {
        if self.automount_service_account_token.as_bool() == Some(false) {
            return None;
        }
        let of_pod = self.security_context.user();
        let containers = self.init_containers.iter().chain(&self.containers);
        let mut users = containers.map(|container| container.security_context.user().or(of_pod));
        let first = users.next()??;
        users.all(|user| user == Some(first)).then_some(first)
    }
}

impl SecurityContext {
    fn user(&self) -> Option<i64> {
        self.others.get("runAsUser").and_then(Value::as_i64)
    }

    /// Returns true if a field is set that only Linux has.
    fn sets(&self, field: &str) -> bool {
        match self.others.get(field) {
            None | Some(Value::Null) => false,
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
        }
    }
}

impl PullPolicy {
    fn of(given: Option<&str>, image: &str) -> Self {
        match given {
            Some("Always") => Self::Always,
            Some("Never") => Self::Never,
            None | Some("") if is_latest(image) => Self::Always,
            _ => Self::IfNotPresent,
        }
    }
}

/// Returns true if the image has the tag `latest`, for which the API server defaults to `Always`.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// Hyper-V isolation that annotations request.
fn requested_hyperv(annotations: &Value) -> Hyperv {
    match annotations.get(HYPERV_ANNOTATION) {
        Some(kind) if kind == "hyperv" => Hyperv::OfDocker,
        _ => Hyperv::No,
    }
}

/// Returns true for pods with an `emptyDir`, which a volume without a source is, too.
fn has_empty_dir(volumes: &Value) -> bool {
    let volumes = volumes.as_array().into_iter().flatten();
    let mut volumes = volumes.filter_map(Value::as_object);
    volumes.any(|volume| {
        let mut sources = volume.keys().filter(|key| *key != "name");
        sources.all(|key| key == "emptyDir")
    })
}

impl From<PodObject> for PodTemplate {
    fn from(object: PodObject) -> Self {
        let spec = object.spec;
        let of_pod = spec.security_context.windows_options.host_process;
        let contradicts_host_process = spec.contradicts_host_process();
        let is_windows = spec.os.as_ref().is_some_and(|os| os.name == "windows");
        let (linux_fields, token_user) = if is_windows {
            (spec.linux_fields(), None)
        } else {
            (Vec::new(), spec.token_user())
        };
        let (containers, without_image): (Vec<_>, Vec<_>) = spec
            .init_containers
            .into_iter()
            .chain(spec.containers)
            .partition(|container| {
                let image = container.image.as_deref();
                image.is_some_and(|image| !image.is_empty())
            });
        Self {
            containers: containers
                .into_iter()
                .map(|container| {
                    let own = container.security_context.windows_options.host_process;
                    let image = container.image.unwrap_or_default();
                    Container {
                        name: container.name,
                        pull_policy: PullPolicy::of(container.image_pull_policy.as_deref(), &image),
                        image,
                        host_process: own.or(of_pod).unwrap_or(false),
                    }
                })
                .collect(),
            without_image: without_image
                .into_iter()
                .map(|container| container.name)
                .collect(),
            scheduling: Scheduling {
                node_name: spec.node_name.filter(|name| !name.is_empty()),
                selector: spec.node_selector,
                affinity: spec.affinity.node_affinity.required_terms(),
                tolerations: spec.tolerations,
            },
            os_name: spec.os.map(|os| os.name),
            linux_fields,
            contradicts_host_process,
            token_user,
            hyperv: requested_hyperv(&object.metadata.annotations),
            runtime_class: spec.runtime_class_name.filter(|name| !name.is_empty()),
            handler: None,
            class_is_missing: false,
            host_network: !matches!(spec.host_network, Value::Null | Value::Bool(false)),
            has_empty_dir: has_empty_dir(&spec.volumes),
            grace_seconds: spec.termination_grace_period_seconds,
        }
    }
}
