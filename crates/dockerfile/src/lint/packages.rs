//! Windows Installer packages of the build context that a build without Windows refuses.
//!
//! A package is read only where a `RUN` installs one that a `COPY` brings.

use std::cell::Cell;
use std::error::Error;

use wincimg_common::diagnose::error_chain;
use wincimg_layer::archive::Archives;
use wincimg_layer::dockerignore::Glob;
use wincimg_msi::{InstallOptions, InstalledSystem, MsiError};
use wincimg_recipe::FileSource;
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{KeyPath, Presence, RegistryData};
use wincimg_windows::path::ImagePath;

use super::Finding;
use super::evaluation::EvaluatedStep;
use crate::instruction::InstructionKind;
use crate::stages::{context_file, copy_target, image_path, source_path};

/// Options of `msiexec` that install nothing.
const OTHER: [&str; 7] = ["x", "uninstall", "a", "p", "update", "j", "n"];

/// What a `COPY` fills, and its sources in the context.
pub(super) struct CopiedFiles {
    pub(super) target: ImagePath,
    sources: Vec<String>,
}

impl CopiedFiles {
    pub(super) fn read(it: &EvaluatedStep<'_>) -> Option<Self> {
        let InstructionKind::Copy(copy) = it.kind else {
            return None;
        };
        let mut unset = Vec::new();
        let arguments = &it.linted.arguments;
        let copy = it
            .state
            .expand_copy(copy, it.lexer(), arguments, &mut unset);
        let copy = copy.ok().filter(|_| unset.is_empty())?;
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
    let Some(dockerfile) = &it.linted.options.file else {
        return Vec::new();
    };
    if !it.step.is("RUN") || !it.step.lower_text().contains("msiexec") {
        return Vec::new();
    }
    let text = it.step.instruction.text();
    let text = text.replace(r"\\", r"\");
    let words = text.split(|c: char| c.is_whitespace() || "'\"()[]".contains(c));
    let words: Vec<&str> = words.map(|word| word.trim_matches(',')).collect();
    let option = |word: &&str| word.strip_prefix(['/', '-']).map(str::to_ascii_lowercase);
    let mut options = words.iter().filter_map(option);
    if options.any(|option| OTHER.contains(&option.as_str())) {
        return Vec::new();
    }
    let parts = words.iter().flat_map(|word| word.split(','));
    let packages = parts.filter(|part| {
        let extension = part.rsplit('.').next().unwrap_or_default();
        extension.eq_ignore_ascii_case("msi") && !part.contains(['%', '$', '*'])
    });
    let found = packages.filter_map(|part| {
        let path = image_path(&it.state.working_dir().ok()?, part).ok()?.path;
        let copies = it.copied.iter().rev();
        let candidates = copies.flat_map(|copy| copy.candidates(&path));
        let source = context_file(dockerfile, candidates)?;
        let why = refusal(&source, &path, &words)?;
        let name = path.components().last().map_or("", String::as_str);
        Some(it.step.finding(format!("{name}: {why}")))
    });
    found.collect()
}

/// Why a build without Windows does not install a package.
fn refusal(source: &FileSource, path: &ImagePath, words: &[&str]) -> Option<String> {
    let property = |word: &&str| {
        let (name, value) = word.split_once('=')?;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| (name.to_ascii_uppercase(), value.to_owned()))
    };
    let names = path.components();
    let folder = path.up_to(names.len().saturating_sub(1)).to_string();
    let options = InstallOptions {
        properties: words.iter().filter_map(property).collect(),
        file_name: names.last().cloned().unwrap_or_default(),
        source_folder: format!("{}\\", folder.trim_end_matches('\\')),
        skipped_actions: Vec::new(),
    };
    let stops = |error: &dyn Error| {
        let why = error_chain(error);
        Some(format!("a build without Windows stops here: {why}"))
    };
    let package = match source.package(&Archives::default()) {
        Ok(package) => package?,
        Err(error) => return stops(&error),
    };
    let system = UnknownSystem::default();
    match package.plan_installation(&options, &system) {
        Ok(plan) => {
            let action = plan.refused.first()?;
            let name = &action.name;
            Some(format!(
                "a build without Windows stops here (--skip-custom-action {name} leaves it out): the \
                 action {action}"
            ))
        }
        // What the base has may decide it.
        Err(MsiError::Fails(_)) if system.is_asked.get() => None,
        Err(error) => stops(&error),
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
