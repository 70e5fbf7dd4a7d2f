//! Candidates for completion, by argument.

use std::ffi::{OsStr, OsString};

use clap::ArgMatches;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use wincimg_cluster::live;
use wincimg_common::files::TextFile;
use wincimg_dockerfile::DockerfileNames;
use wincimg_engine::definition::{dockerfile_in, dockerfile_of, is_dockerfile};
use wincimg_images::recipes as shipped;
use wincimg_inspect::bases::NAMES;
use wincimg_oci::layout::Layout;
use wincimg_recipe::{Recipe, VariableType};
use wincimg_windows::release;
use wincimg_windows::update::Updates;

use super::typed;
use crate::cli::prelude::*;

/// Maximum number of files of a folder whose content is checked.
const MOST_FILES: usize = 1000;

type Candidates = Vec<CompletionCandidate>;

fn candidate(value: impl Into<OsString>, help: impl Display) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(help.to_string().into()))
}

/// A completer of texts, from a function that ignores the typed prefix.
fn completer(candidates: impl Fn(&str) -> Candidates + Send + Sync + 'static) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let Some(typed) = current.to_str() else {
            return Candidates::new();
        };
        let mut found = candidates(typed);
        found.retain(|found| {
            found
                .get_value()
                .to_str()
                .is_some_and(|text| text.starts_with(typed))
        });
        found
    })
}

/// Paths that start with a prefix.
fn paths(before: &str, typed: &str, completer: &PathCompleter) -> Candidates {
    let found = completer.complete(OsStr::new(typed)).into_iter();
    // The folder itself needs no dot in a typed path.
    let found = found.filter(|path| path.get_value() != ".");
    found.map(|path| path.add_prefix(before)).collect()
}

/// Built-in recipes, and files and folders that can be built.
pub(in crate::cli) fn images_to_build() -> ArgValueCompleter {
    completer(|typed| {
        let mut found = recipe_names();
        let is_meant = |path: &Path| {
            let is_recipe = path.extension().is_some_and(|end| end == "toml");
            let has_recipe = path.join("recipe.toml").is_file();
            is_dockerfile(path) || is_recipe || has_recipe || dockerfile_in(path).is_some()
        };
        found.extend(paths("", typed, &PathCompleter::any().filter(is_meant)));
        found
    })
}

/// TOML files, for fleets.
pub(in crate::cli) fn fleets() -> ArgValueCompleter {
    completer(|typed| {
        let is_meant = |path: &Path| path.extension().is_some_and(|end| end == "toml");
        paths("", typed, &PathCompleter::any().filter(is_meant))
    })
}

pub(in crate::cli) fn recipes() -> ArgValueCompleter {
    completer(|_| recipe_names())
}

fn recipe_names() -> Candidates {
    let named = shipped().iter().map(|shipped| {
        let recipe = Recipe::find(shipped.name);
        candidate(
            shipped.name,
            recipe.as_ref().map_or("", Recipe::description),
        )
    });
    named.collect()
}

pub(in crate::cli) fn dockerfiles() -> ArgValueCompleter {
    completer(|typed| paths("", typed, &PathCompleter::any().filter(is_dockerfile)))
}

/// Short names of base images.
pub(in crate::cli) fn bases() -> ArgValueCompleter {
    completer(|_| base_names("").collect())
}

fn base_names(before: &str) -> impl Iterator<Item = CompletionCandidate> {
    let names = NAMES.into_iter();
    names.map(move |(name, path)| candidate(format!("{before}{name}"), path))
}

/// Base images in the form that `mirror` takes.
pub(in crate::cli) fn images_to_mirror() -> ArgValueCompleter {
    completer(|_| base_names("base:").collect())
}

/// Hosts with the newest update of each Windows release, and the names of releases.
pub(in crate::cli) fn builds() -> ArgValueCompleter {
    completer(|_| {
        let newest = Updates::global().builds().into_iter().rev();
        let newest = newest.filter_map(|build| Updates::global().newest_published(build));
        let named = newest.map(|update| {
            let help = format!("{}, {}", release::name_of(update.build), update.date);
            candidate(update.version().to_string(), help)
        });
        named.chain(release_names()).collect()
    })
}

/// Names of releases, each for its newest known revision; the newest release first.
fn release_names() -> impl Iterator<Item = CompletionCandidate> {
    let names = release::all().iter().rev().flat_map(|release| {
        let tags = release.base_tag.iter().chain(&release.other_tags).copied();
        tags.map(move |name| (name, release))
    });
    let latest = release::from_name("latest").map(|release| ("latest", release));
    let names = latest.into_iter().chain(names);
    names.map(|(name, release)| candidate(name, release.name))
}

/// Images on this machine: `oci:DIR` and `docker-archive:FILE`.
pub(in crate::cli) fn images() -> ArgValueCompleter {
    completer(|typed| {
        at_place(typed).unwrap_or_else(|| {
            let mut found = layouts("");
            found.extend(archives(""));
            found.retain(is_whole);
            found
        })
    })
}

const LAYOUT: &str = "oci:";
const ARCHIVE: &str = "docker-archive:";

/// Returns true if a candidate is a result, and not a folder on the way to one.
fn is_whole(candidate: &CompletionCandidate) -> bool {
    !candidate.get_value().as_encoded_bytes().ends_with(b"/")
}

/// OCI layouts, and folders that may contain them.
fn layouts(typed: &str) -> Candidates {
    let found = paths(LAYOUT, typed, &PathCompleter::dir());
    let found = found.into_iter().take(MOST_FILES).map(|found| {
        let text = found.get_value().to_string_lossy().into_owned();
        let folder = text.trim_end_matches(std::path::is_separator);
        if Layout::is_at(Path::new(&folder[LAYOUT.len()..])) {
            candidate(folder, "OCI layout")
        } else {
            found
        }
    });
    found.collect()
}

fn archives(typed: &str) -> Candidates {
    paths(ARCHIVE, typed, &PathCompleter::any().filter(is_archive))
}

/// What a typed place may continue with.
fn at_place(typed: &str) -> Option<Candidates> {
    let layout = typed.strip_prefix(LAYOUT).map(layouts);
    layout.or_else(|| typed.strip_prefix(ARCHIVE).map(archives))
}

fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "tar")
}

/// Outputs of images.
pub(in crate::cli) fn places() -> ArgValueCompleter {
    completer(|typed| {
        let places = || {
            vec![
                candidate(LAYOUT, "an OCI layout in a folder"),
                candidate(ARCHIVE, "a file for docker load"),
            ]
        };
        at_place(typed).unwrap_or_else(places)
    })
}

/// A report format, and a file after it.
pub(in crate::cli) fn reports<F: ValueEnum>() -> ArgValueCompleter {
    completer(|typed| {
        if let Some((form, file)) = typed.split_once(':') {
            return paths(&format!("{form}:"), file, &PathCompleter::any());
        }
        let forms = F::value_variants().iter().filter_map(F::to_possible_value);
        let forms = forms.map(|form| CompletionCandidate::new(format!("{}:", form.get_name())));
        forms.collect()
    })
}

pub(in crate::cli) fn contexts() -> ArgValueCompleter {
    completer(|_| {
        live::contexts()
            .into_iter()
            .map(CompletionCandidate::new)
            .collect()
    })
}

/// Variables of the typed recipe, and the values of booleans.
pub(in crate::cli) fn variables() -> ArgValueCompleter {
    completer(|typed| {
        let Some(recipe) = typed_recipe() else {
            return Candidates::new();
        };
        let mut found = Candidates::new();
        for (name, variable) in recipe.variables() {
            let set = format!("{name}=");
            if variable.kind == VariableType::Boolean && typed.starts_with(&set) {
                found.extend(
                    ["true", "false"]
                        .map(|value| CompletionCandidate::new(format!("{set}{value}"))),
                );
            }
            let help = variable.description.as_deref().unwrap_or_default();
            found.push(match variable.default_value() {
                Some(default) => candidate(set, format_args!("{help} (default {default:?})")),
                None => candidate(set, format_args!("{help} (required)")),
            });
        }
        // A partly typed value follows the name.
        found.retain(|found| {
            !typed.contains('=') || found.get_value().len() > typed.find('=').map_or(0, |at| at + 1)
        });
        found
    })
}

/// Stages of the typed Dockerfile.
pub(in crate::cli) fn stages() -> ArgValueCompleter {
    completer(|_| typed_stages(""))
}

/// The names of the stages, each with this end.
fn typed_stages(end: &str) -> Candidates {
    let stages = typed_outline().map(|outline| outline.stages);
    let stages = stages.unwrap_or_default().into_iter();
    stages
        .map(|(name, image)| candidate(format!("{name}{end}"), format_args!("FROM {image}")))
        .collect()
}

/// Stages of the typed Dockerfile, and folders to replace them.
pub(in crate::cli) fn folders_for_stages() -> ArgValueCompleter {
    completer(|typed| {
        if let Some((stage, folder)) = typed.split_once('=') {
            return paths(&format!("{stage}="), folder, &PathCompleter::dir());
        }
        typed_stages("=")
    })
}

/// Build arguments of the typed Dockerfile.
pub(in crate::cli) fn build_arguments() -> ArgValueCompleter {
    completer(|_| {
        let arguments = typed_outline().map(|outline| outline.arguments);
        let arguments = arguments.unwrap_or_default().into_iter();
        let arguments = arguments.map(|(name, default)| {
            let help = default.map_or_else(
                || "no default".to_owned(),
                |value| format!("default {value:?}"),
            );
            candidate(format!("{name}="), help)
        });
        arguments.collect()
    })
}

fn text<'a>(typed: &'a ArgMatches, id: &str) -> Option<&'a str> {
    let value: Option<&String> = typed.try_get_one(id).ok().flatten();
    value.map(String::as_str)
}

fn path(typed: &ArgMatches, id: &str) -> Option<PathBuf> {
    typed.try_get_one(id).ok().flatten().cloned()
}

fn typed_recipe() -> Option<Recipe> {
    Recipe::find(text(&typed()?, "image")?).ok()
}

fn typed_outline() -> Option<DockerfileNames> {
    let typed = typed()?;
    let image = text(&typed, "image").unwrap_or(".");
    let named = path(&typed, "file").map(TextFile::named);
    let (file, _) = dockerfile_of(image, named)?;
    Some(DockerfileNames::read(&file.read().ok()?))
}
