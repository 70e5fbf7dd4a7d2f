//! Reads the workloads of a check from files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use wincimg_cluster::workloads::{
    SkippedObject, SourceLocation, WorkloadId, WorkloadList, WorkloadsError, patch_files,
};
use wincimg_common::files;
use wincimg_common::shell::command_line;

use crate::cli::input::read_text;
use crate::cli::named_files::{self, FileKind, FilePath};
use crate::cli::{Failure, Session, input};

const HINT: &str =
    "--workloads takes Kubernetes YAML or JSON, as helm template and kubectl get -o yaml print it";

/// The files that are looked for in folders, as by kubectl.
const MANIFESTS: FileKind = FileKind {
    name: "Kubernetes manifest",
    hint: "a folder is searched for *.yaml, *.yml and *.json",
    matches: is_manifest,
};

pub(super) fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|own| {
        let known = ["yaml", "yml", "json"];
        known.iter().any(|known| own.eq_ignore_ascii_case(known))
    })
}

/// Returns true for the file of kustomize, which need not be an object of Kubernetes.
fn is_kustomization(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str());
    name.is_some_and(|name| name.eq_ignore_ascii_case("kustomization"))
}

/// A kustomization in reports.
fn skipped(kustomization: &Path, name: String) -> SkippedObject {
    SkippedObject {
        id: WorkloadId {
            kind: "Kustomization".to_owned(),
            group: "kustomize.config.k8s.io".to_owned(),
            namespace: "default".to_owned(),
            name: files::folder_of(kustomization).display().to_string(),
        },
        origin: SourceLocation {
            file: name,
            line: 1,
        },
    }
}

/// The command that builds a kustomization and checks it with the same flags.
fn build_command(kustomization: &Path, flags: &[String]) -> String {
    let folder = files::folder_of(kustomization).display().to_string();
    let build = command_line(&["kubectl", "kustomize", &folder]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let check = [&["wincimg", "check-compat"], &flags[..], &["-f", "-"]].concat();
    format!("{build} | {}", command_line(&check))
}

/// Reads the workloads of all files, folders and patterns; `-` is stdin. Files without any are an
/// error: a gate must not pass because its input is empty. Of those in a folder, the ones that are
/// no objects of Kubernetes are skipped. `flags` are those of the other inputs, for hints.
pub(super) fn read(
    files: &[PathBuf],
    flags: &[String],
    session: &Session,
) -> Result<WorkloadList, Failure> {
    let mut list = WorkloadList::default();
    let found = named_files::find(files, &MANIFESTS)?;
    let mut patches: HashSet<PathBuf> = HashSet::new();
    let mut build = None;
    for file in found.iter().filter(|file| is_kustomization(&file.path)) {
        let names = patch_files(&read_text(&file.path)?).into_iter();
        patches.extend(names.map(|name| files::folder_of(&file.path).join(name)));
        build.get_or_insert_with(|| build_command(&file.path, flags));
    }
    for FilePath { path, is_found } in found {
        let name = input::name(&path);
        if is_kustomization(&path) {
            session.warn(format_args!(
                "skipped {name}: a kustomization is built first: {}",
                build_command(&path, flags)
            ));
            list.skipped.push(skipped(&path, name));
            continue;
        }
        if is_found && patches.contains(&path) {
            session.note(format_args!("skipped {name}: a kustomization's patch"));
            continue;
        }
        match list.read(&read_text(&path)?, &name) {
            Ok(()) => {}
            Err(WorkloadsError::NoObject(_)) if is_found => {
                session.note(format_args!(
                    "skipped {name}: it has no object of Kubernetes"
                ));
            }
            Err(error) => return Err(Failure::from(error).at(&name)),
        }
    }
    for warning in &list.warnings {
        session.warn(warning);
    }
    if list.workloads.is_empty() && !files.is_empty() {
        return Err(no_workload(&list, files, build));
    }
    report_repeated(&list, session);
    Ok(list)
}

/// Notes objects with several manifests, such as one for each environment: each is checked, but a
/// command names the object alone.
fn report_repeated(list: &WorkloadList, session: &Session) {
    let mut manifests: BTreeMap<&WorkloadId, BTreeSet<String>> = BTreeMap::new();
    // `web-*` stands for the names that the cluster makes.
    let is_named = |name: &str| !name.is_empty() && !name.ends_with('*');
    let named = list.workloads.iter().filter(|it| is_named(&it.id.name));
    for workload in named {
        if let Some(manifest) = workload.manifest() {
            let places = manifests.entry(&workload.id).or_default();
            places.insert(manifest.to_string());
        }
    }
    for (id, places) in manifests.into_iter().filter(|(_, it)| it.len() > 1) {
        let count = places.len();
        let places: Vec<String> = places.into_iter().collect();
        session.note(format_args!(
            "{count} manifests of {id}: each is checked, and commands name the same object; check \
             those of other clusters by themselves: {}",
            places.join(", ")
        ));
    }
}

/// Error for files without workloads; `build` builds the first kustomization among them.
fn no_workload(list: &WorkloadList, files: &[PathBuf], build: Option<String>) -> Failure {
    let names: Vec<String> = files.iter().map(|file| input::name(file)).collect();
    let problem = format!("found no workload in {}", names.join(", "));
    if let Some(build) = build {
        let problem = format!("{problem}: a kustomization is built first");
        return Failure::usage(problem).hint(build);
    }
    let Some((own, other)) = list.absent_templates().next() else {
        if list.skipped.is_empty() {
            return Failure::usage(problem).hint(HINT);
        }
        let skipped = self::names(&list.skipped);
        return Failure::usage(format!("{problem}: no pod template in {skipped}")).hint(
            "to check pods that they create, pass those to --workloads: kubectl get pods --output \
             yaml",
        );
    };
    Failure::usage(format!(
        "{problem}: {own} uses the pod template of {other}, which is not in the input"
    ))
    .hint(format!(
        "pass it to --workloads too: {}",
        command_line(&[
            "kubectl",
            "get",
            &other.kind.to_ascii_lowercase(),
            &other.name,
            "--namespace",
            &other.namespace,
            "--output",
            "yaml",
        ])
    ))
}

/// The first few names.
pub(super) fn names(all: &[impl ToString]) -> String {
    const NAMED: usize = 5;
    let mut names: Vec<String> = all.iter().take(NAMED).map(ToString::to_string).collect();
    if all.len() > NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}
