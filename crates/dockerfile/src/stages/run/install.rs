//! Windows Installer packages that a line installs.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use wincimg_common::diagnose::error_chain;
use wincimg_common::digest::Digest;
use wincimg_layer::ContentSource;
use wincimg_layer::archive::{Archive, ArchiveError, ArchiveFormat};
use wincimg_msi::{
    BundlePackage, InstallOptions, InstallPlan, InstalledSystem, Interaction, MsiError,
    SetupProgram, TransformPlace,
};
use wincimg_recipe::{
    FileSource, LARGEST_TRANSFORM, PlannedContent, PlannedPackage, content_of,
    leave_out_equal_files,
};
use wincimg_registry::{KeyPath, Presence, RegistryData};
use wincimg_scripts::{EntryKind, ImageState as _, InstallAction, ScriptError, ScriptErrorKind};
use wincimg_windows::path::ImagePath;

use super::{Result, RunState};

const CHECK_FILE: &str =
    "check the file: Windows Installer refuses what is not a whole package, too";

const CHECK_BASE: &str =
    "correct the line, or use a base with what the package requires: it fails in a container too";

const ON_WINDOWS: &str = "install it in a stage on Windows, or unpack a zip of the program";

const SET_PROPERTY: &str =
    "set the property of the condition on the line, or install the package in a stage on Windows";

const SET_VARIABLE: &str = "set a variable with ENV; for anything else, install the package in a \
    stage on Windows, or unpack a zip of the program";

const SKIP: &str = "if the program runs without it, or other lines do its work, leave it out with \
                    --skip-custom-action NAME; else install the package in a stage on Windows";

/// A bundle, and the packages that it installs.
type OpenBundle = (Arc<Archive>, Vec<BundlePackage>);

impl RunState<'_> {
    /// Installs a package.
    pub(super) fn install(&mut self, install: &InstallAction) -> Result<()> {
        let path = &install.package;
        self.restart_required = false;
        if self.is_pending_download(path) || self.tree.is_later(path) {
            return Err(ScriptError::later(format!("{path} is downloaded later")));
        }
        let Some(source) = self.created_file(path).cloned() else {
            let why = format!("cannot read the package {path} of the base");
            return Err(ScriptError::unknown(why).help("COPY it into the image"));
        };
        let Some((bundle, packages)) = self.bundle(&source)? else {
            return self.install_package(install, path.name(), source, None);
        };
        for (index, package) in packages.into_iter().enumerate() {
            let Some(member) = bundle.member_named(&package.member) else {
                return Err(of_bundle(format!("the bundle has no {}", package.member)));
            };
            let source = FileSource::Member(member);
            let bundled = Some((&bundle, &package));
            let done = self.install_package(install, &package.file_name, source, bundled);
            done.map_err(|error| if index > 0 { halfway(error) } else { error })?;
        }
        Ok(())
    }

    /// Installs a package, which may be of a bundle.
    fn install_package(
        &mut self,
        install: &InstallAction,
        file_name: &str,
        source: FileSource,
        bundled: Option<(&Arc<Archive>, &BundlePackage)>,
    ) -> Result<()> {
        let path = &install.package;
        let opened = source.package(&self.stages.archives);
        let not_a_package = |why: String| ScriptError::refused(why).help(CHECK_FILE);
        let opened = opened.map_err(|error| not_a_package(error_chain(&error)))?;
        let Some(package) = opened else {
            return Err(not_a_package(format!("{path} is not a package")));
        };
        let folder = path
            .up_to(path.components().len().saturating_sub(1))
            .to_string();
        let mut properties = bundled.map_or_else(Vec::new, |(_, own)| own.properties.clone());
        properties.extend(install.properties.iter().cloned());
        let mut options = InstallOptions {
            properties,
            file_name: file_name.to_owned(),
            source_folder: format!("{}\\", folder.trim_end_matches('\\')),
            skipped_actions: self.stages.request.skipped_actions.clone(),
        };
        let transforms = self.transforms(&options)?;
        let system = ImageSystem {
            image: self,
            is_unknown: Cell::default(),
        };
        let plan = package.plan_installation(&options, &system);
        let is_unknown = system.is_unknown.get();
        let mut plan = plan.map_err(|error| match refused(&error) {
            error if is_unknown => undecided(&error),
            error => error,
        })?;
        if let (Some(interaction), false) = (&plan.interactive, install.is_quiet) {
            let error = match interaction {
                Interaction::Waits => {
                    ScriptError::refused("without /qn it opens a window and waits for it")
                }
                Interaction::Differs(why) => ScriptError::new(ScriptErrorKind::NeedsWindows, why),
            };
            return Err(error.help("add /qn"));
        }
        check(&plan, is_unknown)?;
        let is_missing = |name: &String| plan.missing_actions.contains(name);
        options.skipped_actions.retain(|name| !is_missing(name));
        let installed = PlannedPackage {
            file: source,
            options,
            transforms,
            is_extracted: false,
            product: Some(plan.product.clone()),
            archives: self.stages.archives.clone(),
        };
        let mut contents = self.contents(&plan, &installed, &package, bundled)?;
        system.leave_out_equal_files(&mut plan, &mut contents)?;
        self.restart_required |= plan.restart_required;
        self.apply_plan(plan, contents).map_err(halfway)?;
        self.changes.packages.push(installed);
        Ok(())
    }

    /// The transforms that are files of the image.
    fn transforms(&self, options: &InstallOptions) -> Result<Vec<FileSource>> {
        let mut sources = Vec::new();
        for place in options.transforms().map_err(|error| refused(&error))? {
            let TransformPlace::File(path) = place else {
                continue;
            };
            if self.is_pending_download(&path) || self.tree.is_later(&path) {
                return Err(ScriptError::later(format!("{path} is downloaded later")));
            }
            sources.extend(self.created_file(&path).cloned());
        }
        Ok(sources)
    }

    /// The packages of a bundle, if the file is one.
    fn bundle(&mut self, source: &FileSource) -> Result<Option<OpenBundle>> {
        if source.setup_program(&self.stages.archives) != Some(SetupProgram::Burn) {
            return Ok(None);
        }
        let opened = source.open(&self.stages.archives, Some(ArchiveFormat::Bundle));
        let opened = opened.map_err(|error| match error {
            ArchiveError::Invalid { .. } => {
                ScriptError::refused(error_chain(&error)).help(CHECK_FILE)
            }
            error => of_bundle(error_chain(&error)),
        })?;
        let Some(opened) = opened else {
            return Ok(None);
        };
        let bundle = opened.bundle();
        let packages = bundle
            .map_err(|error| of_bundle(error_chain(&error)))?
            .packages;
        let names: Vec<&str> = packages.iter().map(|it| it.file_name.as_str()).collect();
        let note = format!(
            "{source} installs only {}: the records and the cache of the bundle are left out",
            names.join(", ")
        );
        self.changes.notes.push(note);
        Ok(Some((opened, packages)))
    }

    /// A file beside a package.
    fn beside(
        &self,
        package: &PlannedPackage,
        path: &str,
        bundled: Option<(&Arc<Archive>, &BundlePackage)>,
    ) -> Result<FileSource> {
        let unclear = |why: String| ScriptError::unclear(why).help(ON_WINDOWS);
        if let Some((bundle, own)) = bundled {
            let mut files = own.beside.iter();
            let file = files.find(|(name, _)| name.eq_ignore_ascii_case(path));
            let member = file.and_then(|(_, member)| bundle.member_named(member));
            let missing = || format!("{path}, a file beside the package, not found in the bundle");
            return member
                .map(FileSource::Member)
                .ok_or_else(|| unclear(missing()));
        }
        let place = format!("{}{path}", package.options.source_folder);
        let place = place.parse::<ImagePath>();
        let place = place.map_err(|error| unclear(error.to_string()))?;
        if self.is_pending_download(&place) || self.tree.is_later(&place) {
            return Err(ScriptError::later(format!("{place} is downloaded later")));
        }
        if let Some(source) = self.created_file(&place) {
            return Ok(source.clone());
        }
        if let Presence::Absent = self.entry(&place) {
            let why = format!("{place}, a file beside the package, not found");
            return Err(ScriptError::fails(why).help("COPY it into the folder of the package"));
        }
        let why = format!("cannot read {place}, a file beside the package, of the base");
        Err(ScriptError::unknown(why).help("COPY it into the image"))
    }

    /// The contents of the files that a package installs.
    fn contents(
        &self,
        plan: &InstallPlan,
        installed: &PlannedPackage,
        package: &Arc<Archive>,
        bundled: Option<(&Arc<Archive>, &BundlePackage)>,
    ) -> Result<Vec<FileSource>> {
        let failed = RefCell::new(None);
        let beside = |path: &str| {
            self.beside(installed, path, bundled).map_err(|error| {
                let why = error.why.clone();
                failed.replace(Some(error));
                why
            })
        };
        let contents = plan.files.iter().map(|file| {
            content_of(&file.source, installed, package, &beside).map_err(|why| {
                let unclear = || ScriptError::unclear(why).help(ON_WINDOWS);
                let mut error = failed.take().unwrap_or_else(unclear);
                error.why = format!("{}: {}", file.path, error.why);
                error
            })
        });
        contents.collect()
    }

    fn apply_plan(&mut self, plan: InstallPlan, contents: Vec<FileSource>) -> Result<()> {
        for path in &plan.removed {
            self.delete(path)?;
        }
        for folder in plan.folders {
            self.make_folder(folder)?;
        }
        for (file, content) in plan.files.into_iter().zip(contents) {
            self.check_writable(&file.path, false)?;
            self.put(file.path, PlannedContent::File(content))?;
        }
        for change in plan.access {
            self.set_access(change)?;
        }
        self.registry.edit(plan.registry);
        self.changes.notes.extend(plan.notes);
        Ok(())
    }
}

/// Error for an installation that fails halfway: Windows would roll it back, and the line may go on.
fn halfway(mut error: ScriptError) -> ScriptError {
    if error.kind == ScriptErrorKind::Fails {
        error.kind = ScriptErrorKind::Refused;
    }
    error
}

/// Error for a bundle that only Windows can run.
fn of_bundle(why: String) -> ScriptError {
    ScriptError::new(ScriptErrorKind::NeedsWindows, why).instead(SetupProgram::Burn.help())
}

/// Refuses a plan that is not complete. What is unknown of the base comes first: it may decide which
/// actions run.
fn check(plan: &InstallPlan, is_unknown: bool) -> Result<()> {
    match (plan.unknown.first(), plan.refusal()) {
        (None, None) => Ok(()),
        (_, Some(why)) if !is_unknown => {
            Err(ScriptError::new(ScriptErrorKind::NeedsWindows, why).help(SKIP))
        }
        (question, _) => {
            let question = question.map_or("what is in the base", String::as_str);
            let why = format!("the package asks {question}, which is unknown");
            let error = ScriptError::unknown(why);
            // Another reading of the base tells only what it was asked.
            Err(if is_unknown {
                error
            } else {
                error.help(SET_VARIABLE)
            })
        }
    }
}

/// What is unknown of the base may decide an error.
fn undecided(error: &ScriptError) -> ScriptError {
    let why = &error.why;
    ScriptError::unknown(format!("it depends on what is unknown of the base: {why}"))
}

fn refused(error: &MsiError) -> ScriptError {
    let (kind, help) = match error {
        MsiError::Fails(_) => (ScriptErrorKind::Fails, Some(CHECK_BASE)),
        MsiError::Unsupported(_) => (ScriptErrorKind::NotUnderstood, Some(ON_WINDOWS)),
        MsiError::Undecided(_) => (ScriptErrorKind::NotUnderstood, Some(SET_PROPERTY)),
        MsiError::Damaged(_) => (ScriptErrorKind::Refused, Some(CHECK_FILE)),
        MsiError::TooLarge(_) => (ScriptErrorKind::Refused, None),
        MsiError::Read(_) => (ScriptErrorKind::NotKnown, None),
    };
    let error = ScriptError::new(kind, error_chain(error));
    match help {
        Some(help) => error.help(help),
        None => error,
    }
}

/// The image, as packages ask about it.
struct ImageSystem<'r, 'a> {
    image: &'r RunState<'a>,
    /// True if the package asks what is unknown, which another reading of the base may tell.
    is_unknown: Cell<bool>,
}

impl ImageSystem<'_, '_> {
    /// What depends on a download is unknown to a package.
    fn known<T, L>(&self, found: Presence<T, L>) -> Presence<T> {
        match found {
            Presence::Present(value) => Presence::Present(value),
            Presence::Absent => Presence::Absent,
            Presence::Unknown | Presence::Deferred(_) => {
                self.is_unknown.set(true);
                Presence::Unknown
            }
        }
    }

    /// Leaves out files that the image has with the same bytes.
    fn leave_out_equal_files(
        &self,
        plan: &mut InstallPlan,
        contents: &mut Vec<FileSource>,
    ) -> Result<()> {
        leave_out_equal_files(plan, contents, &|path| self.digest(path)).map_err(|why| {
            let error = ScriptError::unclear(why).help(ON_WINDOWS);
            if self.is_unknown.get() {
                undecided(&error)
            } else {
                error
            }
        })
    }

    /// SHA-256 of a file.
    fn digest(&self, file: &ImagePath) -> Presence<Digest> {
        let tree = &self.image.tree;
        let Some(entry) = tree.created_entry(file) else {
            return self.known(tree.base().digest(file).unwrap_or(Presence::Unknown));
        };
        let source = entry.source().map(ContentSource::from);
        let sources: Vec<ContentSource> = source.into_iter().collect();
        let digests = ContentSource::digests(&sources).unwrap_or_default();
        let digest = digests.into_iter().next();
        digest.map_or(Presence::Unknown, Presence::Present)
    }
}

impl InstalledSystem for ImageSystem<'_, '_> {
    fn value(&self, key: &KeyPath, name: &str) -> Presence<RegistryData> {
        self.known(self.image.value(key, name))
    }

    fn value_names(&self, key: &KeyPath) -> Presence<Vec<String>> {
        self.known(self.image.registry.value_names(key))
    }

    fn key(&self, key: &KeyPath) -> Presence<()> {
        self.known(self.image.key(key))
    }

    fn entry(&self, path: &ImagePath) -> Presence<bool> {
        self.known(self.image.entry(path).map(|kind| kind == EntryKind::Folder))
    }

    fn names(&self, folder: &ImagePath) -> Presence<Vec<String>> {
        self.known(self.image.names(folder))
    }

    fn content(&self, file: &ImagePath) -> Presence<Vec<u8>> {
        if let Some(source) = self.image.created_file(file) {
            let bytes = ContentSource::from(source).read(LARGEST_TRANSFORM);
            return bytes.map_or(Presence::Unknown, Presence::Present);
        }
        self.known(self.image.content(file))
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.image.state.variable(name)
    }
}
