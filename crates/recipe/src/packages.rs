//! Windows Installer packages of a recipe: what each leaves behind becomes a layer.
//!
//! A package depends on its content, which may be downloaded, and on the base. A plan has it with
//! its options first; [`Plan::install_packages`] adds its files and registry edits.

mod base_system;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use wincimg_common::diagnose::{Blame, Problem, error_chain};
use wincimg_common::digest::Digest;
use wincimg_layer::archive::{Archive, ArchiveFormat, Archives};
use wincimg_layer::{BaseOverlay, ContentSource, DiskSource, Layer, LayerError};
use wincimg_msi::{
    InstallOptions, InstallPlan, InstalledContent, InstalledSystem, MsiError, Product,
    TransformPlace,
};
use wincimg_registry::Presence;
use wincimg_registry::hive::{FileTime, layer_hives};
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::path::ImagePath;

use self::base_system::BaseSystem;
use super::source::FileSource;
use super::text::{Field, Text, plain};
use super::{
    Plan, PlannedContent, PlannedEntry, PlannedLayer, Recipe, Result, add_entries, add_hives,
};

pub(super) use self::base_system::HIVES;

/// Folder of the installer's own files: cached packages and icons.
const INSTALLER: &str = r"C:\Windows\Installer";

/// Maximum size of a transform.
pub const LARGEST_TRANSFORM: u64 = 64 << 20;

/// A Windows Installer package. Its source is either file or url.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { file = \"app.msi\" }"
)]
pub(super) struct PackageEntry {
    /// A path relative to the recipe's folder.
    pub(super) file: Option<Text>,
    /// URL of the package.
    pub(super) url: Option<Text>,
    /// SHA-256 of the download; default: the one in wincimg.lock next to the recipe.
    pub(super) sha256: Option<Text>,
    /// Properties, as on the command line of msiexec.
    #[serde(default)]
    properties: BTreeMap<String, Text>,
    /// Features to install instead of the default ones, as ADDLOCAL names them.
    #[serde(default)]
    features: Vec<Text>,
    /// Transforms to apply, in order: files relative to the recipe's folder, and :NAME for one in
    /// the package.
    #[serde(default)]
    transforms: Vec<Text>,
    /// Custom actions to leave out, because the program runs without them.
    #[serde(default)]
    skip_custom_actions: Vec<Text>,
    /// Add only the files, without registry changes, services and the records of the installer.
    #[serde(default)]
    extract: bool,
    /// Folder of the package in the records of the installer; default: C:\.
    source: Option<Field<ImagePath>>,
    /// Name of its layer; default: a layer of its own.
    pub(super) layer: Option<Text>,
}

/// A Windows Installer package in a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedPackage {
    /// Its file.
    pub file: FileSource,
    /// Properties, the skipped actions, and its name.
    pub options: InstallOptions,
    /// Sources of the transforms that are files, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<FileSource>,
    /// True if only its files are added.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_extracted: bool,
    /// The product, once it is installed in the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<Product>,
    /// Packages that are open.
    #[serde(skip)]
    pub archives: Archives,
}

impl std::fmt::Display for PlannedPackage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(product) = &self.product {
            write!(f, "{} {} from ", product.name, product.version)?;
        }
        self.file.fmt(f)?;
        for (name, value) in &self.options.properties {
            write!(f, ", {name}={value}")?;
        }
        for action in &self.options.skipped_actions {
            write!(f, ", without {action}")?;
        }
        f.write_str(if self.is_extracted {
            ", files only"
        } else {
            ""
        })
    }
}

impl Recipe {
    pub(super) fn package(&self, spanned: &Spanned<PackageEntry>) -> Result<PlannedPackage> {
        let entry = spanned.get_ref();
        for (key, texts, property) in [
            ("features", &entry.features, "ADDLOCAL"),
            ("transforms", &entry.transforms, "TRANSFORMS"),
        ] {
            let mut own = entry.properties.iter();
            let given = own.find(|(name, _)| name.eq_ignore_ascii_case(property));
            if let Some((_, text)) = given.filter(|_| !texts.is_empty()) {
                let problem = format!("{key} sets the property {property}: leave out one of them");
                return Err(self.error(text, problem));
            }
        }
        let (file, name) = match (&entry.file, &entry.url, &entry.sha256) {
            (Some(text), None, None) => self.on_disk(text, self.in_recipe_folder(text)?)?,
            (None, Some(text), sha256) => self.download(text, sha256.as_ref())?,
            (Some(_), None, Some(text)) => return Err(self.error(text, "sha256 requires url")),
            _ => {
                let problem = "an msi entry requires either file or url";
                return Err(self.origin.error_at(spanned.span().start, problem));
            }
        };
        let mut properties: Vec<(String, String)> = entry
            .properties
            .iter()
            .map(|(name, value)| (name.to_ascii_uppercase(), value.value.clone()))
            .collect();
        if !entry.features.is_empty() {
            properties.push(("ADDLOCAL".to_owned(), plain(&entry.features).join(",")));
        }
        let (transforms, names) = self.transforms(&entry.transforms)?;
        if !names.is_empty() {
            properties.push(("TRANSFORMS".to_owned(), names.join(";")));
        }
        let source = entry.source.as_ref().map(|it| it.value.to_string());
        let source = source.unwrap_or_else(|| "C:".to_owned());
        let package = PlannedPackage {
            file,
            options: InstallOptions {
                properties,
                file_name: name.unwrap_or_else(|| "package.msi".to_owned()),
                source_folder: format!("{}\\", source.trim_end_matches('\\')),
                skipped_actions: plain(&entry.skip_custom_actions),
            },
            transforms,
            is_extracted: entry.extract,
            product: None,
            archives: self.archives.clone(),
        };
        if matches!(package.file, FileSource::Disk(_))
            && let Err(error) = package.file.package(&package.archives)
            && let Some(text) = &entry.file
        {
            return Err(self.error(text, error_chain(&error)));
        }
        Ok(package)
    }

    /// The files of transforms, and the names of all: an embedded one is a name with a colon.
    fn transforms(&self, texts: &[Text]) -> Result<(Vec<FileSource>, Vec<String>)> {
        let mut files = Vec::new();
        let mut names = Vec::new();
        for text in texts {
            if text.value.starts_with(':') {
                names.push(text.value.clone());
                continue;
            }
            let (file, name) = self.on_disk(text, self.in_recipe_folder(text)?)?;
            let Some(name) = name.filter(|name| !name.contains(';')) else {
                return Err(self.error(text, "a transform is a file without ; in its name"));
            };
            files.push(file);
            names.push(name);
        }
        Ok((files, names))
    }
}

impl Plan {
    /// Packages of its layers.
    pub fn packages(&self) -> impl Iterator<Item = &PlannedPackage> {
        self.instruction_layers().flat_map(|layer| &layer.packages)
    }

    /// Returns true if packages are not installed yet.
    pub(crate) fn lacks_packages(&self) -> bool {
        self.packages().any(|it| it.product.is_none())
    }

    /// Adds what the packages leave behind on a base with this content. Packages that are not
    /// downloaded yet remain.
    pub fn install_packages(&mut self, inside: &dyn BaseContents) -> Result<()> {
        let Some(instructions) = &mut self.instructions else {
            return Ok(());
        };
        let is_pending =
            |layer: &PlannedLayer| layer.packages.iter().any(|it| it.product.is_none());
        let steps = &mut instructions.steps;
        let last = steps
            .iter()
            .rposition(|step| step.layer.as_deref().is_some_and(is_pending));
        let Some(last) = last else {
            return Ok(());
        };
        let mut below = BaseOverlay::over(inside);
        for step in &mut steps[..=last] {
            let Some(layer) = &mut step.layer else {
                continue;
            };
            if is_pending(layer) {
                let system = BaseSystem {
                    inside: &below,
                    transforms: &[],
                    variables: &self.base.container.env,
                    is_bare: self.base.os_version.is_none(),
                    is_extracted: false,
                };
                let notes = Arc::make_mut(layer).install(&system)?;
                self.notes.extend(notes);
            }
            let sketch = fitted(layer, &below).map_err(|error| failed_by(&error))?;
            below
                .lay(&Arc::new(sketch))
                .map_err(|error| failed_by(&error))?;
        }
        Ok(())
    }
}

/// The layer as the packages above it see it.
fn fitted(layer: &PlannedLayer, below: &BaseOverlay<'_>) -> Result<Layer, LayerError> {
    let mut sketch = Layer::new(0);
    add_entries(&mut sketch, &layer.entries)?;
    sketch.fit_to_base(below)?;
    // A registry change that does not fit is reported when the layer is written.
    let hives = layer_hives(&layer.registry, below, FileTime::from_unix_seconds(0));
    add_hives(&mut sketch, hives.unwrap_or_default())?;
    Ok(sketch)
}

impl PlannedLayer {
    /// Installs its packages, in order, below its own entries and registry edits, and returns notes.
    fn install(&mut self, system: &BaseSystem<'_>) -> Result<Vec<String>> {
        let mut made = Self::default();
        let mut notes = Vec::new();
        let mut opened = Vec::new();
        for package in &self.packages {
            let found = package.file.package(&package.archives);
            match found.map_err(|error| problem_of(package, failed_by(&error)))? {
                Some(found) => opened.push(found),
                None => return Ok(notes),
            }
        }
        for (package, opened) in self.packages.iter_mut().zip(opened) {
            let failed = |problem: Problem| problem_of(package, problem);
            let mut below = BaseOverlay::over(system.inside);
            if !made.is_empty() {
                // A package sees those before it.
                let sketch = fitted(&made, &below).map_err(|error| failed(failed_by(&error)))?;
                let laid = below.lay(&Arc::new(sketch));
                laid.map_err(|error| failed(failed_by(&error)))?;
            }
            let transforms = package.transform_contents().map_err(failed)?;
            let system = BaseSystem {
                inside: &below,
                transforms: &transforms,
                ..*system
            };
            let plan = package.plan(&opened, &system).map_err(failed)?;
            let name = &package.options.file_name;
            notes.extend(plan.notes.iter().map(|note| format!("{name}: {note}")));
            let product = plan.product.clone();
            made.registry.extend(plan.registry.iter().cloned());
            made.access.extend(plan.access.iter().cloned());
            let laid = package.lay(plan, &opened, &system, &mut made.entries);
            laid.map_err(failed)?;
            package.product = Some(product);
        }
        let own: BTreeSet<String> = self.entries.iter().map(|it| it.path.key()).collect();
        made.entries
            .retain(|entry| !own.contains(&entry.path.key()));
        made.entries.append(&mut self.entries);
        made.registry.append(&mut self.registry);
        made.access.append(&mut self.access);
        (self.entries, self.registry, self.access) = (made.entries, made.registry, made.access);
        Ok(notes)
    }
}

/// Hint for a question of a package that only Windows answers.
const INSTEAD_OF_MSI: &str = "install it on Windows with a [[run]] entry in place of [[msi]], or \
                              unpack a zip of the program with [[files]]";

/// Hint for a condition that a skipped action may decide.
const SET_PROPERTY: &str = "set the property of the condition in properties";

/// Hint for a package that fails, as it does on Windows.
const CHECK_BASE: &str =
    "correct its properties and features, or use a base with what the package requires";

/// Hint for a file beside a package that cannot be read.
const BESIDE: &str = "put its cabinets (.cab) into the folder of the package, a local file; with \
                      other files beside it, use RUN msiexec in a Dockerfile";

fn problem_of(package: &PlannedPackage, problem: Problem) -> Problem {
    let name = &package.options.file_name;
    Problem::context(format!("cannot install {name}"), problem)
}

fn failed_by(error: &dyn Error) -> Problem {
    refused(error_chain(error))
}

fn refused(why: impl Into<String>) -> Problem {
    Problem::request("recipe/msi", why)
}

impl PlannedPackage {
    fn plan(&self, opened: &Archive, system: &BaseSystem<'_>) -> Result<InstallPlan> {
        if !self.is_extracted {
            system.check()?;
        }
        let system = BaseSystem {
            is_extracted: self.is_extracted,
            ..*system
        };
        let plan = opened.plan_installation(&self.options, &system);
        let mut plan = plan.map_err(|error| {
            let hint = match error {
                MsiError::Unsupported(_) => Some(INSTEAD_OF_MSI),
                MsiError::Undecided(_) => Some(SET_PROPERTY),
                MsiError::Fails(_) => Some(CHECK_BASE),
                _ => None,
            };
            failed_by(&error).hint_if(hint)
        })?;
        if self.is_extracted {
            keep_files(&mut plan);
        }
        if let Some(name) = plan.missing_actions.first() {
            let why =
                format!("skip_custom_actions names {name:?}, an action that it does not have");
            return Err(refused(why));
        }
        if let Some(why) = plan.refusal() {
            let names: Vec<&str> = plan.refused.iter().map(|it| it.name.as_str()).collect();
            let hint = format!(
                "if the program runs without it: skip_custom_actions = {names:?}, or extract = \
                 true for the files alone"
            );
            return Err(refused(why).blame(Blame::Windows).hint(hint));
        }
        match plan.unknown.first() {
            Some(question) => {
                let why = format!("the package asks {question}, which is unknown");
                Err(refused(why).hint(INSTEAD_OF_MSI))
            }
            None => Ok(plan),
        }
    }

    fn lay(
        &self,
        mut plan: InstallPlan,
        opened: &Arc<Archive>,
        system: &BaseSystem<'_>,
        entries: &mut Vec<PlannedEntry>,
    ) -> Result<()> {
        let contents = plan.files.iter().map(|file| {
            let content = content_of(&file.source, self, opened, &|path| self.beside(path));
            let hint = file.source.is_beside().then_some(BESIDE);
            content.map_err(|why| refused(format!("{}: {why}", file.path)).hint_if(hint))
        });
        let mut contents = contents.collect::<Result<Vec<_>, _>>()?;
        let digest = |path: &ImagePath| system.inside.digest(path).unwrap_or(Presence::Unknown);
        let left_out = leave_out_equal_files(&mut plan, &mut contents, &digest);
        left_out.map_err(|why| refused(why).hint(INSTEAD_OF_MSI))?;
        let mut put = |path, content| entries.push(PlannedEntry { path, content });
        for path in plan.removed {
            put(path, PlannedContent::Deleted);
        }
        for folder in plan.folders {
            if system.entry(&folder) != Presence::Present(true) {
                put(folder, PlannedContent::Folder);
            }
        }
        for (file, source) in plan.files.into_iter().zip(contents) {
            put(file.path, PlannedContent::File(source));
        }
        Ok(())
    }

    /// The transforms that are files, at their paths beside the package.
    fn transform_contents(&self) -> Result<Vec<(ImagePath, Vec<u8>)>> {
        let places = self.options.transforms();
        let places = places.map_err(|error| failed_by(&error))?;
        let files = places.into_iter().filter_map(|place| match place {
            TransformPlace::File(path) => Some(path),
            TransformPlace::Package(_) => None,
        });
        let files = files.zip(&self.transforms);
        files
            .map(|(path, source)| {
                let bytes = ContentSource::from(source).read(LARGEST_TRANSFORM);
                let bytes = bytes.map_err(|error| refused(format!("{source}: {error}")))?;
                Ok((path, bytes))
            })
            .collect()
    }

    /// Everything that decides what it leaves behind: the package, its transforms, and cabinets
    /// beside it.
    pub fn sources(&self) -> Vec<FileSource> {
        let mut sources = vec![self.file.clone()];
        sources.extend_from_slice(&self.transforms);
        if let FileSource::Disk(own) = &self.file {
            sources.extend(cabinets_beside(own).into_iter().map(FileSource::Disk));
        }
        sources
    }

    /// A cabinet beside the package, in any case of its name. Only cabinets are inputs of the image.
    fn beside(&self, path: &str) -> Result<FileSource, String> {
        if !is_cabinet(Path::new(path)) {
            return Err(format!(
                "{path} is beside the package, and no cabinet (.cab)"
            ));
        }
        let FileSource::Disk(own) = &self.file else {
            return Err(format!(
                "{path} is beside the package, which is downloaded alone"
            ));
        };
        let all = cabinets_beside(own);
        let found = all.iter().find(|it| name_of(it) == Some(path)).or_else(|| {
            let mut all = all.iter();
            all.find(|it| name_of(it).is_some_and(|name| eq_ignore_case(name, path)))
        });
        match found {
            Some(found) => Ok(FileSource::Disk(found.clone())),
            None => Err(format!("{path}, a file beside the package, not found")),
        }
    }
}

fn name_of(source: &DiskSource) -> Option<&str> {
    source.path.file_name().and_then(OsStr::to_str)
}

/// The cabinets in the folder of a package, sorted.
fn cabinets_beside(package: &DiskSource) -> Vec<DiskSource> {
    let path = package.path.parent().unwrap_or(&package.path);
    let folder = DiskSource::within(Arc::clone(&package.top), path);
    let entries = folder.list().unwrap_or_default().into_iter();
    let names = entries.filter_map(|entry| entry.name.into_string().ok());
    let mut cabinets: Vec<_> = names
        .filter(|name| is_cabinet(Path::new(name)))
        .map(|name| folder.join(&name))
        .filter(|file| file.metadata().is_ok_and(|found| found.is_file()))
        .collect();
    cabinets.sort_by(|one, other| one.path.cmp(&other.path));
    cabinets
}

fn is_cabinet(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|it| it.eq_ignore_ascii_case("cab"))
}

/// What a plan has besides files.
fn left_out(plan: &InstallPlan) -> Vec<String> {
    let counts = [
        (plan.registry.len(), "registry changes"),
        (plan.access.len(), "changes of rights"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, what)| format!("{count} {what}"));
    let removed = plan.removed.iter();
    let shortcuts = plan.shortcuts.iter();
    let services = plan.services.iter();
    let actions = plan.refused.iter();
    counts
        .chain(removed.map(|path| format!("the removal of {path}")))
        .chain(shortcuts.map(|it| format!("the shortcut {}", it.path)))
        .chain(services.map(|name| format!("the service {name}")))
        .chain(actions.map(|action| format!("the action {}", action.name)))
        .collect()
}

/// Reduces a plan to the files of the product.
fn keep_files(plan: &mut InstallPlan) {
    let shortcuts: BTreeSet<String> = plan.shortcuts.iter().map(|it| it.path.key()).collect();
    let is_own = |path: &ImagePath| {
        let installer = INSTALLER.parse::<ImagePath>().ok();
        installer.is_none_or(|folder| path.strip_prefix(&folder).is_none())
    };
    plan.files
        .retain(|file| is_own(&file.path) && !shortcuts.contains(&file.path.key()));
    plan.folders.retain(is_own);
    // A service that is left out does not start.
    let starts = plan.services.iter().map(|it| format!("service {it} "));
    let starts: Vec<String> = starts.collect();
    let is_of_service = |note: &String| starts.iter().any(|it| note.starts_with(it.as_str()));
    plan.notes.retain(|note| !is_of_service(note));
    let left_out = left_out(plan);
    if !left_out.is_empty() {
        let note = format!("files only, without {}", left_out.join(", "));
        plan.notes.insert(0, note);
    }
    plan.removed.clear();
    plan.registry.clear();
    plan.services.clear();
    plan.shortcuts.clear();
    plan.access.clear();
    plan.refused.clear();
}

/// The source of an installed file; `beside` finds files next to the package.
pub fn content_of(
    content: &InstalledContent,
    package: &PlannedPackage,
    opened: &Arc<Archive>,
    beside: &dyn Fn(&str) -> Result<FileSource, String>,
) -> Result<FileSource, String> {
    let member = match content {
        InstalledContent::Package => return Ok(package.file.clone()),
        InstalledContent::Bytes(bytes) => return Ok(FileSource::Bytes(bytes.clone().into())),
        InstalledContent::Beside(path) => return beside(path),
        InstalledContent::Cabinet { cabinet, member } if !cabinet.starts_with('#') => {
            let opened = beside(cabinet)?.open(&package.archives, Some(ArchiveFormat::Cabinet));
            let opened = opened.map_err(|error| error_chain(&error))?;
            opened.and_then(|cabinet| cabinet.member_named(member))
        }
        content => opened.installed_member(content),
    };
    match member {
        Some(member) => Ok(FileSource::Member(member)),
        None => Err(format!("{content} not found in the package")),
    }
}

/// Leaves out files that the image has with the same bytes: whatever Windows does, it has them then.
/// Other files that it has are an error. The contents are those of the plan's files.
/// <https://learn.microsoft.com/windows/win32/msi/file-versioning-rules>
pub fn leave_out_equal_files(
    plan: &mut InstallPlan,
    contents: &mut Vec<FileSource>,
    digest: &dyn Fn(&ImagePath) -> Presence<Digest>,
) -> Result<(), String> {
    let pairs = plan.files.iter().zip(contents.iter());
    let replacements: Vec<_> = pairs.filter(|(file, _)| file.is_replacement).collect();
    let sources = replacements.iter();
    let sources: Vec<ContentSource> = sources.map(|(_, it)| ContentSource::from(*it)).collect();
    let digests = ContentSource::digests(&sources).map_err(|error| error_chain(&error))?;
    for ((file, _), own) in replacements.into_iter().zip(digests) {
        if digest(&file.path) != Presence::Present(own) {
            let when = match file.version {
                Some(_) => "if its version is lower",
                None => "unless it was changed after its creation",
            };
            return Err(format!(
                "the image has {}, which Windows replaces {when}: only Windows can tell",
                file.path
            ));
        }
    }
    let mut files = plan.files.iter();
    contents.retain(|_| files.next().is_some_and(|file| !file.is_replacement));
    plan.files.retain(|file| !file.is_replacement);
    Ok(())
}
#[cfg(test)]
mod tests {
    use wincimg_msi::Shortcut;

    use super::*;

    #[test]
    fn cabinets_beside_a_package_are_inputs() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.msi", "b.CAB", "a.cab", "readme.txt"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        std::fs::create_dir(folder.path().join("c.cab")).unwrap();
        let file = FileSource::Disk(folder.path().join("a.msi").into());
        let package = PlannedPackage {
            file,
            options: InstallOptions::default(),
            transforms: Vec::new(),
            is_extracted: false,
            product: None,
            archives: Archives::default(),
        };
        let names: Vec<String> = package
            .sources()
            .iter()
            .map(|source| source.to_string().rsplit('/').next().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["a.msi", "a.cab", "b.CAB"]);
        for (path, found) in [("a.cab", "a.cab"), ("A.cab", "a.cab"), ("B.cab", "b.CAB")] {
            let source = package.beside(path).unwrap().to_string();
            assert!(source.ends_with(found), "{path}: {source}");
        }
        let problem = package.beside("readme.txt").unwrap_err();
        assert!(problem.contains("no cabinet"), "{problem}");
        assert!(package.beside("../a.cab").is_err());
        assert!(package.beside("z.cab").unwrap_err().contains("not found"));
    }

    #[test]
    fn a_note_says_what_files_alone_lack() {
        let path = |text: &str| text.parse::<ImagePath>().unwrap();
        let advertised = "feature All is advertised, not installed";
        let mut plan = InstallPlan {
            removed: vec![path(r"C:\old.txt")],
            services: vec!["Svc".to_owned()],
            shortcuts: vec![Shortcut {
                path: path(r"C:\App.lnk"),
                target: r"C:\app.exe".to_owned(),
                arguments: String::new(),
            }],
            notes: vec![
                "service Svc starts with the container, not now".to_owned(),
                advertised.to_owned(),
            ],
            ..InstallPlan::default()
        };
        keep_files(&mut plan);
        let lacks = r"files only, without the removal of C:\old.txt, the shortcut C:\App.lnk, the service Svc";
        assert_eq!(plan.notes, [lacks, advertised]);
        plan.notes.clear();
        keep_files(&mut plan);
        assert!(plan.notes.is_empty());
    }
}
