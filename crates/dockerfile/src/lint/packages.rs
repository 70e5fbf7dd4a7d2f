//! Windows Installer packages of the build context that a build without Windows refuses.
//!
//! A package is read only where a `RUN` installs one that a `COPY` brings.

use std::cell::Cell;
use std::error::Error;
use std::path::Path;

use wincimg_common::diagnose::error_chain;
use wincimg_layer::archive::Archives;
use wincimg_layer::dockerignore::Glob;
use wincimg_msi::{InstallOptions, InstalledSystem, MsiError};
use wincimg_recipe::FileSource;
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{KeyPath, Presence, RegistryData};
use wincimg_scripts::{InstallAction, ScriptError};
use wincimg_windows::path::ImagePath;

use super::prelude::*;
use crate::stages::{KnownPackages, context_file, copy_target, script_error, source_path};

/// What a `COPY` fills, and its sources in the context.
#[derive(Clone)]
pub(super) struct CopiedFiles {
    pub(super) target: ImagePath,
    sources: Vec<String>,
}

impl CopiedFiles {
    pub(super) fn read(it: &EvaluatedStep<'_>) -> Option<Self> {
        let InstructionKind::Copy(copy) = it.kind else {
            return None;
        };
        let copy = it.expand_copy(copy)?;
        let target = copy_target(it.state, &copy).ok()?.path;
        let sources = copy.sources.iter().filter(|_| copy.from.is_none());
        Some(Self {
            target,
            sources: sources.filter_map(|it| source_path(it).ok()).collect(),
        })
    }

    /// Paths of the context from which a file of the image may come.
    fn candidates(&self, file: &ImagePath) -> Vec<String> {
        let (names, own) = (file.components(), self.target.components());
        let is_inside = names.len() >= own.len()
            && std::iter::zip(names, own).all(|(one, other)| eq_ignore_case(one, other));
        if !is_inside {
            return Vec::new();
        }
        let rest = names[own.len()..].join("/");
        let in_folder = |folder: &str| match folder {
            "" => rest.clone(),
            folder => format!("{folder}/{rest}"),
        };
        let from = |source: &String| {
            if rest.is_empty() {
                return source.clone();
            }
            let (folder, _) = source.rsplit_once('/').unwrap_or(("", source));
            let beside = in_folder(folder);
            let is_match = beside.eq_ignore_ascii_case(source)
                || Glob::parse(source).is_ok_and(|glob| glob.matches(&beside));
            if is_match { beside } else { in_folder(source) }
        };
        self.sources.iter().map(from).collect()
    }
}

/// Reports a package whose installation requires Windows.
pub(super) fn check(it: &EvaluatedStep<'_>) -> Vec<Finding> {
    let InstructionKind::Run(run) = it.kind else {
        return Vec::new();
    };
    if !it.step.is("RUN") || !it.step.lower_text().contains("msiexec") {
        return Vec::new();
    }
    let Some(shell) = it.step.shell_words(it.state) else {
        return Vec::new();
    };
    let mut packages = CopiedPackages::new(it.linted, it.copied);
    // That the line fails is said by another rule.
    let _ = script_error(it.state, &run.program, &shell, &[], &mut packages);
    let refused = packages.refused.into_iter();
    refused.map(|message| it.step.finding(message)).collect()
}

/// Packages that `COPY` brings from the context.
pub(super) struct CopiedPackages<'a> {
    dockerfile: Option<&'a Path>,
    copied: &'a [CopiedFiles],
    /// Why a build without Windows refuses those that Windows installs.
    refused: Vec<String>,
}

impl<'a> CopiedPackages<'a> {
    pub(super) fn new(linted: &'a LintFile<'_>, copied: &'a [CopiedFiles]) -> Self {
        Self {
            dockerfile: linted.options.file.as_deref(),
            copied,
            refused: Vec::new(),
        }
    }

    fn source(&self, path: &ImagePath) -> Option<FileSource> {
        let (_, extension) = path.name().rsplit_once('.')?;
        let file = self
            .dockerfile
            .filter(|_| extension.eq_ignore_ascii_case("msi"))?;
        let copies = self.copied.iter().rev();
        context_file(file, copies.flat_map(|copy| copy.candidates(path)))
    }

    fn refuse(&mut self, name: &str, error: &dyn Error) {
        let why = error_chain(error);
        let message = format!("{name}: a build without Windows stops here: {why}");
        self.refused.push(message);
    }
}

impl KnownPackages for CopiedPackages<'_> {
    fn has(&self, path: &ImagePath) -> bool {
        self.source(path).is_some()
    }

    fn install(&mut self, install: &InstallAction) -> Result<(), ScriptError> {
        let names = install.package.components();
        let folder = install.package.up_to(names.len().saturating_sub(1));
        let options = InstallOptions {
            properties: install.properties.clone(),
            file_name: names.last().cloned().unwrap_or_default(),
            source_folder: format!("{}\\", folder.to_string().trim_end_matches('\\')),
            skipped_actions: Vec::new(),
        };
        let name = &options.file_name;
        let opened = self.source(&install.package);
        let package = match opened.map(|source| source.package(&Archives::default())) {
            Some(Ok(Some(package))) => package,
            Some(Err(error)) => {
                self.refuse(name, &error);
                return Ok(());
            }
            None | Some(Ok(None)) => return Ok(()),
        };
        let system = UnknownSystem::default();
        match package.plan_installation(&options, &system) {
            Ok(plan) => {
                let actions = plan.refused.iter();
                let flags: Vec<String> = actions
                    .map(|action| format!("--skip-custom-action {}", action.name))
                    .collect();
                let flags = flags.join(" ");
                let message = plan.refusal().map(|why| {
                    format!(
                        "{name}: a build without Windows stops here, unless {flags} leaves it out: \
                         {why}"
                    )
                });
                self.refused.extend(message);
            }
            // What the base has may decide it.
            Err(MsiError::Fails(_)) if system.is_asked.get() => {}
            Err(error @ MsiError::Fails(_)) => return Err(ScriptError::fails(error_chain(&error))),
            Err(error) => self.refuse(name, &error),
        }
        Ok(())
    }
}

/// A base of which nothing is known.
#[derive(Default)]
struct UnknownSystem {
    is_asked: Cell<bool>,
}

impl UnknownSystem {
    fn unknown<T>(&self) -> Presence<T> {
        self.is_asked.set(true);
        Presence::Unknown
    }
}

impl InstalledSystem for UnknownSystem {
    fn value(&self, _: &KeyPath, name: &str) -> Presence<RegistryData> {
        // Every package asks whether its product is installed: it hardly is.
        if name == "PackageCode" {
            return Presence::Absent;
        }
        self.unknown()
    }

    fn value_names(&self, _: &KeyPath) -> Presence<Vec<String>> {
        self.unknown()
    }

    fn key(&self, _: &KeyPath) -> Presence<()> {
        self.unknown()
    }

    fn entry(&self, _: &ImagePath) -> Presence<bool> {
        self.unknown()
    }

    fn names(&self, _: &ImagePath) -> Presence<Vec<String>> {
        self.unknown()
    }

    fn content(&self, _: &ImagePath) -> Presence<Vec<u8>> {
        self.unknown()
    }

    fn variable(&self, _: &str) -> Option<String> {
        self.is_asked.set(true);
        None
    }
}
