//! Reads workloads from manifests and the output of `kubectl get -o yaml|json`: multiple documents,
//! lists, all kinds that create pods, and runtime classes. Other Kubernetes objects are skipped;
//! custom resources are searched for pod templates, and listed where they have none.

mod api_object;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use wincimg_common::diagnose::{Diagnose, Excerpt, Problem};

use self::api_object::{
    Metadata, RuntimeClassObject, api_version_of, group_of, is_inactive, keda_says,
    name_or_pattern, read_template, template_pointer, templates_of, wrong_type,
};
use super::constraints::of_namespace;
use super::controller::Controller;
use super::pod::{PodTemplate, RuntimeClass};
use super::pod_templates::is_of_kubernetes;
use super::yaml::{
    Document, Items, MOST_OBJECTS, SyntaxError, documents, object, part, too_many_objects,
};

/// An object that creates pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Kind, namespace and name.
    pub id: WorkloadId,
    /// Source location, if it is from a file.
    pub origin: Option<SourceLocation>,
    /// Its ID in the cluster that printed it.
    uid: Option<String>,
    /// Namespace that it names; that of kubectl's context applies to a manifest without one.
    pub(crate) namespace: Option<String>,
    /// Pod template.
    pub template: PodTemplate,
    /// Controllers that created it, as far as they are known, the nearest first.
    owners: Vec<WorkloadId>,
    /// True if the template is its own, in the input. Otherwise its controller undoes changes of
    /// what is in the input.
    pub(crate) owns_template: bool,
    /// True for a Job whose selector and labels are the user's, not the cluster's.
    pub(crate) has_manual_selector: bool,
    /// What its controller asks for beyond the template.
    pub(crate) controller: Controller,
    /// True if it currently runs no pods.
    is_inactive: bool,
    /// Live Jobs of a `CronJob`, which keep the template that they were made from.
    pub(crate) jobs: Vec<LiveJob>,
}

/// A Job that a `CronJob` of the input made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveJob {
    /// Its name, in the namespace of the `CronJob`.
    pub(crate) name: String,
    pub(crate) images: Vec<String>,
    /// Nodes of its pods, as far as these are in the input.
    pub(crate) nodes: Vec<String>,
}

impl Workload {
    /// Location of its manifest; none for what a cluster printed.
    pub fn manifest(&self) -> Option<&SourceLocation> {
        self.origin.as_ref().filter(|_| self.uid.is_none())
    }

    /// Returns true for a live pod without a controller.
    pub(crate) fn is_bare_pod(&self) -> bool {
        let is_pod = self.id.kind == "Pod" && self.id.group.is_empty();
        is_pod && self.owns_template && !self.is_inactive
    }

    /// Returns true if kubectl drain evicts its pods; it leaves static pods and those of daemon sets.
    pub(crate) fn is_evicted(&self) -> bool {
        let is_static = self.id.kind == "Pod" && !self.owns_template;
        !is_static && self.id.kind != "DaemonSet" && !self.is_inactive
    }

    /// Returns true if kubectl drain deletes `emptyDir` volumes of it.
    pub(crate) fn loses_empty_dir(&self) -> bool {
        self.template.has_empty_dir && self.is_evicted()
    }
}

/// Kind with its API group, namespace and name of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct WorkloadId {
    /// `Deployment`, `Pod`, …
    pub kind: String,
    /// API group of a custom resource; empty for Kubernetes' own kinds, whatever their group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Namespace; `default` where absent.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for WorkloadId {
    /// `Deployment shop/web`, `Job.batch.volcano.sh shop/train`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        let Self {
            kind,
            group,
            namespace,
            name,
        } = self;
        write!(f, "{kind}{dot}{group} {namespace}/{name}")
    }
}

/// A location in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct SourceLocation {
    /// File name as given.
    pub file: String,
    /// Line where the object begins, counted from 1.
    pub line: usize,
}

impl fmt::Display for SourceLocation {
    /// `deploy.yaml:3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A custom resource without pod templates: whether it creates pods is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedObject {
    /// Kind, namespace and name.
    pub id: WorkloadId,
    /// Source location.
    pub origin: SourceLocation,
}

impl fmt::Display for SkippedObject {
    /// `Certificate.cert-manager.io shop/web (deploy.yaml, line 3)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}, line {})",
            self.id, self.origin.file, self.origin.line
        )
    }
}

/// Workloads that were read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkloadList {
    /// Workloads in the order of the files.
    pub workloads: Vec<Workload>,
    pub(crate) runtime_classes: Vec<RuntimeClass>,
    /// Node selectors of namespaces, by their names.
    node_selectors: BTreeMap<String, BTreeMap<String, String>>,
    /// Objects of unknown kinds that may create pods.
    pub skipped: Vec<SkippedObject>,
    /// Objects that decide whether another one runs pods: their own IDs, those of the others, and
    /// true if the others are inactive.
    references: Vec<(WorkloadId, WorkloadId, bool)>,
    /// The least number of pods of workloads that an autoscaler scales.
    least_replicas: HashMap<WorkloadId, usize>,
    /// Number of objects of files.
    objects: usize,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Error of reading workloads.
#[derive(Debug, thiserror::Error, Diagnose)]
pub enum WorkloadsError {
    /// A document is not a Kubernetes object.
    #[error(transparent)]
    #[diagnose(forward)]
    NoObject(Problem),
    /// It is neither YAML nor JSON, or an object has a field of the wrong type.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

fn unreadable(problem: String) -> Problem {
    Problem::request("cluster/workloads", problem).hint(
        "--workloads takes Kubernetes YAML or JSON, such as the output of helm template or \
             kubectl get -o yaml",
    )
}

/// A problem of the object that begins on a line of a text.
fn unreadable_at(text: &str, line: usize, problem: &str) -> Problem {
    let excerpt = Excerpt::at_place(text, line, 1);
    unreadable(format!("line {line}: {problem}")).excerpt(Some(excerpt))
}

/// Maximum depth of nested lists.
const MOST_NESTED: usize = 4;

impl WorkloadList {
    /// Adds the objects of a text; `file` is its name in messages. The references among the objects
    /// of all texts are for [`apply_references`](Self::apply_references).
    pub fn read(&mut self, text: &str, file: &str) -> Result<(), WorkloadsError> {
        let read = documents(text).map_err(|malformed| {
            let SyntaxError {
                line,
                column,
                problem,
                excerpt,
                ..
            } = malformed;
            unreadable(format!(
                "line {line}, column {column}: {problem}; expected Kubernetes objects as YAML or JSON"
            ))
            .excerpt(Some(excerpt))
        })?;
        self.warnings.extend(read.warning.map(|twice| {
            let SyntaxError { line, problem, .. } = twice;
            format!("{file}: line {line}: {problem}; the last value is used")
        }));
        for document in read.documents {
            self.add_document(document, file, text, MOST_NESTED)?;
        }
        Ok(())
    }

    /// Applies what objects say of others, such as an autoscaler of its workload, once all are read.
    /// There may be thousands of both, so they are matched by a table.
    pub fn apply_references(&mut self) {
        if self.references.is_empty() {
            return;
        }
        let states = self.references.iter();
        let states = states.map(|(_, other, is_inactive)| (other, *is_inactive));
        let states: HashMap<&WorkloadId, bool> = states.collect();
        let mut known: HashSet<&WorkloadId> = HashSet::new();
        for workload in &mut self.workloads {
            if let Some(is_inactive) = states.get(&workload.id) {
                workload.is_inactive = *is_inactive;
                known.insert(&workload.id);
            }
        }
        let said = self.references.iter();
        let said = said.filter(|(_, other, _)| known.contains(other));
        let said: HashSet<&WorkloadId> = said.map(|(own, ..)| own).collect();
        self.skipped.retain(|skipped| !said.contains(&skipped.id));
    }

    fn add_document(
        &mut self,
        document: Document,
        file: &str,
        text: &str,
        depth: usize,
    ) -> Result<(), WorkloadsError> {
        let (line, json) = (document.line, document.json);
        let wrong = |problem: String| unreadable_at(text, line, &problem);
        let no_object = |found: &str| {
            let problem = format!("expected a Kubernetes object with a kind, found {found}");
            WorkloadsError::NoObject(wrong(problem))
        };
        match json.as_bytes() {
            b"null" => return Ok(()),
            [b'{', ..] => {}
            [b'[', ..] => return Err(no_object("a list")),
            _ => return Err(no_object("a plain value")),
        }
        let fields: HashMap<String, &RawValue> = part(&json).map_err(wrong)?;
        let field = |name: &str| fields.get(name).map(|value| value.get());
        let kind = match (field("kind").map(part::<String>), field("items")) {
            (Some(Ok(kind)), _) => kind,
            (_, Some(_)) => "List".to_owned(),
            _ => return Err(no_object("an object without one")),
        };
        if kind.ends_with("List")
            && depth > 0
            && let Some(items) = field("items").filter(|items| items.starts_with('['))
        {
            let Items(items): Items<&RawValue> = part(items).map_err(wrong)?;
            let api_version = field("apiVersion").unwrap_or("null");
            for (number, item) in items.into_iter().enumerate() {
                let item = Document {
                    line: document.item_lines.get(number).copied().unwrap_or(line),
                    json: name_item(item.get(), &kind, api_version),
                    item_lines: Vec::new(),
                    lacks: None,
                };
                self.add_document(item, file, text, depth - 1)?;
            }
            if document.lacks.is_none() {
                return Ok(());
            }
        }
        if let Some(part) = document.lacks {
            let problem = wrong(format!("found {}", part.found));
            return Err(problem.hint(part.hint).into());
        }
        self.objects += 1;
        if self.objects > MOST_OBJECTS {
            return Err(wrong(too_many_objects()).into());
        }
        let file = file.to_owned();
        let object = object(&json).map_err(wrong)?;
        self.add_located(&kind, object, &SourceLocation { file, line }, text)
    }

    /// Adds an object of a file, also if it only may create pods.
    fn add_located(
        &mut self,
        kind: &str,
        object: Value,
        origin: &SourceLocation,
        text: &str,
    ) -> Result<(), WorkloadsError> {
        let wrong = |problem: String| unreadable_at(text, origin.line, &problem);
        let group = group_of(api_version_of(&object));
        let answer = object.get("message").and_then(Value::as_str);
        if let Some(answer) = answer.filter(|_| kind == "Status" && group.is_empty()) {
            return Err(wrong(format!("found an error of the API server: {answer}")).into());
        }
        let is_known = is_of_kubernetes(api_version_of(&object));
        let name = |pointer: &str, default: &str| {
            let name = object.pointer(pointer).and_then(Value::as_str);
            name.unwrap_or(default).to_owned()
        };
        let id = WorkloadId {
            kind: kind.to_owned(),
            group,
            namespace: name("/metadata/namespace", "default"),
            name: name_or_pattern(
                name("/metadata/name", ""),
                &name("/metadata/generateName", ""),
            ),
        };
        if matches!(kind, "Namespace" | "Project") {
            self.node_selectors.extend(of_namespace(&object));
        }
        if let Some(problem) = wrong_type(kind, &object) {
            return Err(wrong(format!("{kind} {}: {problem}", id.name)).into());
        }
        let is_inactive = is_inactive(kind, &object);
        if let Some(other) = referenced(&object, &id, is_inactive) {
            self.references.push((id.clone(), other, is_inactive));
        }
        // A paused one keeps the replicas that there are.
        if !keda_says(&object, "paused", "true")
            && let Some(other) = scaled(&object, &id)
        {
            self.least_replicas.insert(other, least_replicas(&object));
        }
        let found = self.add_object(kind, object).map_err(wrong)?;
        if found.is_empty() && !is_known && kind != "RuntimeClass" {
            self.skipped.push(SkippedObject {
                id,
                origin: origin.clone(),
            });
        }
        let found = found.into_iter().map(|workload| Workload {
            origin: Some(origin.clone()),
            ..workload
        });
        self.workloads.extend(found);
        Ok(())
    }

    /// Adds the pod templates of one API object. An error says in which it is.
    pub(super) fn add_object(
        &mut self,
        kind: &str,
        object: Value,
    ) -> Result<Vec<Workload>, String> {
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or("without a name")
            .to_owned();
        let failed_in = |path: &str, error: serde_path_to_error::Error<serde_json::Error>| {
            format!("{kind} {name}: {path}{error}")
        };
        let failed = |error| failed_in("", error);
        if kind == "RuntimeClass" {
            let class = serde_path_to_error::deserialize::<_, RuntimeClassObject>(object)
                .map_err(failed)?;
            self.runtime_classes.push(class.into());
            return Ok(Vec::new());
        }
        let templates = templates_of(kind, &object).map_err(|error| {
            let names = template_pointer(kind).split('/').skip(1);
            let path: String = names.flat_map(|name| [name, "."]).collect();
            failed_in(&path, error)
        })?;
        if templates.is_empty() {
            return Ok(Vec::new());
        }
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        let mut metadata = serde_path_to_error::deserialize::<_, Option<Metadata>>(metadata)
            .map_err(failed)?
            .unwrap_or_default();
        let uid = metadata.uid.take();
        let namespace = Some(metadata.namespace.clone()).filter(|own| !own.is_empty());
        let is_inactive = is_inactive(kind, &object);
        let has_manual_selector =
            object.pointer("/spec/manualSelector") == Some(&Value::Bool(true));
        let controller = Controller::of(kind, &object);
        let group = group_of(api_version_of(&object));
        let (id, owners) = metadata.into_ids(kind, group);
        templates
            .into_iter()
            .map(|template| {
                Ok(Workload {
                    id: id.clone(),
                    origin: None,
                    uid: uid.clone(),
                    namespace: namespace.clone(),
                    template: read_template(template, uid.is_some())
                        .map_err(|problem| format!("{id}: {problem}"))?,
                    owners: owners.clone(),
                    owns_template: true,
                    has_manual_selector,
                    controller: controller.clone(),
                    is_inactive,
                    jobs: Vec::new(),
                })
            })
            .collect()
    }

    /// Objects that run the pod template of another one, with those that are not in the input.
    pub fn absent_templates(&self) -> impl Iterator<Item = (&WorkloadId, &WorkloadId)> {
        let active = self
            .references
            .iter()
            .filter(|(.., is_inactive)| !is_inactive);
        active
            .map(|(own, other, _)| (own, other))
            .filter(move |(_, other)| self.workloads.iter().all(|it| it.id != **other))
    }

    /// Removes inactive workloads and returns their number, without those that another workload of
    /// the list owns.
    pub fn remove_inactive(&mut self) -> usize {
        let mut is_made = self.are_made_by_others().into_iter();
        let mut removed = 0;
        self.workloads.retain(|workload| {
            let is_made = is_made.next().unwrap_or_default();
            removed += usize::from(workload.is_inactive && !is_made);
            !workload.is_inactive
        });
        removed
    }

    /// For each workload, true if another one of the list owns it.
    fn are_made_by_others(&self) -> Vec<bool> {
        let ids = self.workloads.iter().map(|workload| &workload.id);
        let known: HashSet<&WorkloadId> = ids.collect();
        let is_made = |workload: &Workload| {
            let mut owners = workload.owners.iter();
            owners.any(|owner| known.contains(owner))
        };
        self.workloads.iter().map(is_made).collect()
    }

    /// The workloads with their runtime classes applied. Those owned by another workload of the
    /// list are left out; those with an owner outside the list are merged under the owner.
    pub fn into_workloads(self) -> Vec<Workload> {
        let mut jobs = live_jobs(&self.workloads);
        let is_made_by_another = self.are_made_by_others();
        let mut kept: Vec<Workload> = Vec::with_capacity(self.workloads.len());
        let mut nodes_of: Vec<BTreeSet<String>> = Vec::with_capacity(self.workloads.len());
        // Only templates with the same hash are compared: an owner may have thousands.
        let hasher = RandomState::new();
        let mut places: HashMap<(WorkloadId, u64), Vec<usize>> = HashMap::new();
        for (mut workload, is_made) in self.workloads.into_iter().zip(is_made_by_another) {
            if is_made {
                continue;
            }
            workload.jobs = jobs.remove(&workload.id).unwrap_or_default();
            let mut nodes = Vec::new();
            if let Some(owner) = std::mem::take(&mut workload.owners).pop() {
                workload.owns_template = false;
                if owner.kind == "DaemonSet" {
                    nodes = workload.template.scheduling.take_node_names();
                }
                // A static pod is owned by its node, and runs nowhere else.
                if owner.kind != "Node" {
                    workload.id = owner;
                    // The node of one pod does not apply to the next.
                    workload.template.scheduling.node_name = None;
                }
            }
            if let Some(least) = self.least_replicas.get(&workload.id) {
                workload.controller.replicas = workload.controller.replicas.max(*least);
            }
            workload.template.apply(&self.runtime_classes);
            let of_namespace = self.node_selectors.get(&workload.id.namespace);
            for (label, value) in of_namespace.into_iter().flatten() {
                workload.template.scheduling.require(label, value);
            }
            let key = (workload.id.clone(), hasher.hash_one(&workload.template));
            let similar = places.entry(key).or_default();
            let same = similar
                .iter()
                .copied()
                .find(|&place| kept[place].template == workload.template);
            let place = same.unwrap_or_else(|| {
                similar.push(kept.len());
                kept.push(workload);
                nodes_of.push(BTreeSet::new());
                kept.len() - 1
            });
            nodes_of[place].extend(nodes);
        }
        for (workload, nodes) in kept.iter_mut().zip(nodes_of) {
            workload.template.scheduling.require_node_names(nodes);
        }
        kept
    }
}

/// The live Jobs by the `CronJob` that made them.
fn live_jobs(workloads: &[Workload]) -> HashMap<WorkloadId, Vec<LiveJob>> {
    let mut nodes: HashMap<&WorkloadId, Vec<String>> = HashMap::new();
    let live = || workloads.iter().filter(|workload| !workload.is_inactive);
    for pod in live().filter(|workload| workload.id.kind == "Pod") {
        if let (Some(owner), Some(node)) = (pod.owners.first(), &pod.template.scheduling.node_name)
        {
            nodes.entry(owner).or_default().push(node.clone());
        }
    }
    let mut jobs: HashMap<WorkloadId, Vec<LiveJob>> = HashMap::new();
    let is_job = |id: &WorkloadId| id.kind == "Job" && id.group.is_empty();
    for job in live().filter(|workload| is_job(&workload.id)) {
        let owner = job.owners.first().filter(|owner| owner.kind == "CronJob");
        let Some(owner) = owner else { continue };
        let images = job.template.containers.iter().map(|it| it.image.clone());
        jobs.entry(owner.clone()).or_default().push(LiveJob {
            name: job.id.name.clone(),
            images: images.collect(),
            nodes: nodes.remove(&job.id).unwrap_or_default(),
        });
    }
    jobs
}

/// The JSON of an item, with the kind and version that an item of a typed list may omit.
fn name_item(item: &str, kind: &str, api_version: &str) -> String {
    let of_list = kind.strip_suffix("List").unwrap_or_default();
    match item.strip_prefix('{') {
        Some(fields) if !of_list.is_empty() => {
            let kind = Value::from(of_list);
            let is_empty = fields.trim_start().starts_with('}');
            let comma = if is_empty { "" } else { "," };
            // Of a repeated key the last one counts: the item's own.
            format!("{{\"kind\":{kind},\"apiVersion\":{api_version}{comma}{fields}")
        }
        _ => item.to_owned(),
    }
}

/// The workload of which an object decides whether it runs pods: an active Rollout of Argo runs its
/// pod template, a `ScaledObject` of KEDA scales it or holds it at zero, unless it keeps the replicas
/// that there are.
fn referenced(object: &Value, own: &WorkloadId, is_inactive: bool) -> Option<WorkloadId> {
    match (own.kind.as_str(), is_inactive) {
        ("ScaledObject", false) if keda_says(object, "paused", "true") => None,
        ("ScaledObject", _) => scaled(object, own),
        (_, true) => None,
        (_, false) => workload_at(object, "/spec/workloadRef", None, own),
    }
}

/// The workload that an autoscaler scales.
fn scaled(object: &Value, own: &WorkloadId) -> Option<WorkloadId> {
    let kind = match own.kind.as_str() {
        "HorizontalPodAutoscaler" => None,
        "ScaledObject" => Some("Deployment"),
        _ => return None,
    };
    workload_at(object, "/spec/scaleTargetRef", kind, own)
}

/// The least number of pods that an autoscaler keeps, unless it scales to zero.
fn least_replicas(autoscaler: &Value) -> usize {
    let fields = ["/spec/minReplicas", "/spec/minReplicaCount"];
    let mut stated = fields.iter().filter_map(|field| autoscaler.pointer(field));
    let least = stated.find_map(Value::as_u64).unwrap_or_default();
    usize::try_from(least).unwrap_or(usize::MAX).max(1)
}

/// The workload that a field of an object names, of this kind if it states none.
fn workload_at(
    object: &Value,
    pointer: &str,
    kind: Option<&str>,
    own: &WorkloadId,
) -> Option<WorkloadId> {
    let reference = object.pointer(pointer)?;
    let word = |key: &str| reference.get(key).and_then(Value::as_str);
    Some(WorkloadId {
        kind: word("kind").or(kind)?.to_owned(),
        group: group_of(word("apiVersion").unwrap_or_default()),
        namespace: own.namespace.clone(),
        name: word("name")?.to_owned(),
    })
}

/// Names of the files that a kustomization applies to its objects as patches.
pub fn patch_files(kustomization: &str) -> Vec<String> {
    const KEYS: [&str; 3] = ["patches", "patchesStrategicMerge", "patchesJson6902"];
    let read = documents(kustomization).map(|read| read.documents);
    let mut names = Vec::new();
    for document in read.unwrap_or_default() {
        let kustomization = object(&document.json).unwrap_or_default();
        let lists = KEYS
            .iter()
            .filter_map(|key| kustomization.get(*key)?.as_array());
        let files = lists
            .flatten()
            .map(|patch| patch.get("path").unwrap_or(patch));
        names.extend(files.filter_map(Value::as_str).map(str::to_owned));
    }
    names
}

#[cfg(test)]
mod tests;
