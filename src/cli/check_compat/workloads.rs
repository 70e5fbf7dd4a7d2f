//! Reads the workloads of a check from files.

use wincimg_cluster::nodes::read_nodes;
use wincimg_cluster::workloads::{
    SkippedObject, SourceLocation, WorkloadId, WorkloadList, WorkloadsError, patch_files,
};

use crate::cli::input;
use crate::cli::input::read_text;
use crate::cli::named_files::{self, FileKind, FilePath};
use crate::cli::prelude::*;

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

/// Sources that a tool renders to manifests.
struct SourceKind {
    kind: &'static str,
    group: &'static str,
    render: [&'static str; 2],
}

const KUSTOMIZATION: SourceKind = SourceKind {
    kind: "Kustomization",
    group: "kustomize.config.k8s.io",
    render: ["kubectl", "kustomize"],
};

const CHART: SourceKind = SourceKind {
    kind: "Chart",
    group: "helm.sh",
    render: ["helm", "template"],
};

/// What to do with a kustomization before the check.
const BUILD_FIRST: &str = "build the kustomization first";

impl SourceKind {
    /// The sources in reports; `file` is the one that describes them.
    fn skipped(&self, file: &Path) -> SkippedObject {
        SkippedObject {
            id: WorkloadId {
                kind: self.kind.to_owned(),
                group: self.group.to_owned(),
                namespace: "default".to_owned(),
                name: files::folder_of(file).display().to_string(),
            },
            origin: SourceLocation {
                file: input::name(file),
                line: 1,
            },
        }
    }

    /// The command that renders the sources and checks them with the same flags, or writes them to a
    /// file where stdin has another input.
    fn command(&self, file: &Path, flags: &[String]) -> String {
        let folder = files::folder_of(file).display().to_string();
        let [program, verb] = self.render;
        let render = command_line(&[program, verb, &folder]);
        if flags.iter().any(|word| word == "-") {
            return format!("write it to a file, and name that with -f: {render} > rendered.yaml");
        }
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let check = [&["wincimg", "check-compat"], &flags[..], &["-f", "-"]].concat();
        format!("{render} | {}", command_line(&check))
    }
}

/// The description of the outermost Helm chart of which a file is a template. Other files of a chart
/// are manifests.
fn chart_of(path: &Path, text: &str) -> Option<PathBuf> {
    if !text.contains("{{") {
        return None;
    }
    // A path from inside of a chart does not name its folder.
    chart_above(path).or_else(|| chart_above(&std::path::absolute(path).ok()?))
}

fn chart_above(path: &Path) -> Option<PathBuf> {
    let has_template = |folder: &&Path| {
        let inside = path.strip_prefix(folder).ok();
        let first = inside.and_then(|inside| inside.iter().next());
        first.is_some_and(|name| name == "templates" || name == "charts")
    };
    let folders = path.ancestors().skip(1).filter(has_template);
    let descriptions = folders.map(|folder| folder.join("Chart.yaml"));
    descriptions.filter(|file| file.is_file()).last()
}

/// What is read of the files of a check.
struct ManifestReader<'a> {
    list: WorkloadList,
    /// Charts whose templates are skipped.
    charts: BTreeSet<PathBuf>,
    /// The command for the first kustomization that is skipped.
    unbuilt: Option<String>,
    /// Failures of files and charts in folders.
    unread: Vec<Failure>,
    flags: &'a [String],
    session: &'a Session,
}

impl ManifestReader<'_> {
    fn add(&mut self, file: &FilePath) -> Result<()> {
        let name = input::name(&file.path);
        if is_kustomization(&file.path) {
            self.skip_kustomization(&file.path, &name);
            return Ok(());
        }
        let text = match read_text(&file.path) {
            Ok(text) => text,
            Err(failure) => return self.fail(failure, file),
        };
        let chart = chart_of(&file.path, &text);
        if let Some(chart) = chart.as_ref().filter(|_| file.is_found) {
            if self.charts.insert(chart.clone()) {
                self.skip_chart(chart);
            }
            return Ok(());
        }
        match self.list.read(&text, &name) {
            Ok(()) => Ok(()),
            Err(WorkloadsError::NoObject(_)) if file.is_found => {
                self.session.note(format_args!(
                    "skipped {name}: it has no object of Kubernetes"
                ));
                Ok(())
            }
            Err(error) => {
                let render = chart.map(|chart| CHART.command(&chart, self.flags));
                self.fail(Failure::from(error).at(&name).hint_if(render), file)
            }
        }
    }

    /// Warns only: the resources of a kustomization are files that are checked by themselves.
    fn skip_kustomization(&mut self, file: &Path, name: &str) {
        let command = KUSTOMIZATION.command(file, self.flags);
        self.session
            .warn(format_args!("skipped {name}: {BUILD_FIRST}: {command}"));
        self.list.skipped.push(KUSTOMIZATION.skipped(file));
        self.unbuilt.get_or_insert(command);
    }

    /// Nothing of a chart is checked, so a gate must not pass.
    fn skip_chart(&mut self, file: &Path) {
        let folder = files::folder_of(file).display();
        let problem = format!("skipped the templates of {folder}: render the Helm chart first");
        let command = CHART.command(file, self.flags);
        self.unread.push(Failure::usage(problem).hint(command));
        self.list.skipped.push(CHART.skipped(file));
    }

    /// Keeps the failure of a file in a folder, whose others can be checked.
    fn fail(&mut self, failure: Failure, file: &FilePath) -> Result<()> {
        if !file.is_found {
            return Err(failure);
        }
        self.unread.push(failure);
        Ok(())
    }
}

/// Reads the workloads of all files, folders and patterns; `-` is stdin. Files without any are an
/// error: a gate must not pass because its input is empty. Of those in a folder, the ones that are
/// no objects of Kubernetes are skipped, and the failures of those that cannot be read, as of Helm
/// charts, are returned.
/// `flags` are those of the other inputs, for hints.
pub(super) fn read(
    files: &[PathBuf],
    flags: &[String],
    session: &Session,
) -> Result<(WorkloadList, Vec<Failure>)> {
    let found = named_files::find(files, &MANIFESTS)?;
    let mut patches: HashSet<PathBuf> = HashSet::new();
    for file in found.iter().filter(|file| is_kustomization(&file.path)) {
        let names = patch_files(&read_text(&file.path)?).into_iter();
        patches.extend(names.map(|name| files::folder_of(&file.path).join(name)));
    }
    let mut reader = ManifestReader {
        list: WorkloadList::default(),
        charts: BTreeSet::new(),
        unbuilt: None,
        unread: Vec::new(),
        flags,
        session,
    };
    for file in &found {
        if file.is_found && patches.contains(&file.path) {
            let name = input::name(&file.path);
            session.note(format_args!("skipped {name}: a kustomization's patch"));
            continue;
        }
        reader.add(file)?;
    }
    reader.list.apply_references();
    let (list, unread) = (reader.list, reader.unread);
    for warning in &list.warnings {
        session.warn(warning);
    }
    if list.workloads.is_empty() && !files.is_empty() {
        let failure = Failure::report_all_but_last(unread, session.colour);
        return Err(failure.unwrap_or_else(|| no_workload(&list, files, reader.unbuilt)));
    }
    report_repeated(&list, session);
    Ok((list, unread))
}

/// The outcome, after the report: what does not start counts before what cannot be read.
pub(super) fn conclude(
    is_compatible: bool,
    unread: Vec<Failure>,
    session: &Session,
) -> Result<CommandOutcome> {
    match Failure::report_all_but_last(unread, session.colour) {
        Some(failure) if is_compatible => return Err(failure),
        Some(failure) => _ = failure.report(session.colour),
        None => {}
    }
    Ok(is_compatible.into())
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
        session.note(format_args!(
            "{count} manifests of {id}: each is checked, and commands name the same object; check \
             those of other clusters by themselves: {}",
            joined(places, ", ")
        ));
    }
}

/// Error for files without workloads; `unbuilt` is the command for the first kustomization among them.
fn no_workload(list: &WorkloadList, files: &[PathBuf], unbuilt: Option<String>) -> Failure {
    let names = joined(files.iter().map(|file| input::name(file)), ", ");
    let problem = format!("found no workload in {names}");
    if let Some(command) = unbuilt {
        return Failure::usage(format!("{problem}: {BUILD_FIRST}")).hint(command);
    }
    if let [file] = files
        && !input::is_stdin(file)
        && read_text(file).is_ok_and(|text| read_nodes(&text).is_ok())
    {
        let hint =
            "it lists nodes: pass it to --nodes, and the manifests of workloads to --workloads";
        return Failure::usage(problem).hint(hint);
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
