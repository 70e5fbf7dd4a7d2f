//! Conversion of a Dockerfile to a recipe.
//!
//! The recipe is written from the plan of the Dockerfile, not from its text, and is then read
//! again: if it does not make the same image, the conversion fails.

mod files;
mod registry;
mod settings;
mod toml;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use wincimg_common::diagnose::{Diagnose, error_chain};
use wincimg_common::untrusted::without_password;
use wincimg_http::DownloadedFile;
use wincimg_inspect::bases::{BaseRegistry, FlavourSelector, NAMES, NamedBase};
use wincimg_layer::archive::ArchiveLocation;
use wincimg_layer::{ContentSource, DiskSource, EntryContent, Layer};
use wincimg_oci::document::ContainerConfig;
use wincimg_oci::reference::{Reference, repository_of};
use wincimg_recipe::{
    FileSource, HEALTH_TIMES, Instructions, Plan, PlannedContent, PlannedEntry, PlannedLayer,
    PlannedPackage, PlannedStep, Recipe, RecipeInputs, add_entries,
};
use wincimg_registry::hive::{FileTime, layer_hives};
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::search_path::PathAdditions;

use self::files::RecipeFolder;
use self::toml::{key, list, quoted, set_list, set_text, text};
use super::stages::StageError;

/// A Dockerfile that was planned for a host, and the options of its recipe.
pub struct Conversion<'a> {
    /// Name of the recipe.
    pub name: &'a str,
    /// Plan of the Dockerfile.
    pub plan: &'a Plan,
    /// Known contents of the base.
    pub inside: &'a dyn BaseContents,
    /// True if the plan depends on the contents of the base.
    pub looked: bool,
    /// The Dockerfile's path, as in messages.
    pub dockerfile: &'a Path,
    /// Base, as in `FROM`.
    pub base: &'a str,
    /// Registry of bases.
    pub base_registry: &'a BaseRegistry,
    /// Folder that the recipe is written to.
    pub folder: &'a Path,
    /// Downloads by URL.
    pub downloads: &'a BTreeMap<String, DownloadedFile>,
    /// True to keep the image's history: each instruction is an entry, also without a layer.
    pub keeps_history: bool,
}

/// Reason why a Dockerfile has no recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversionError {
    /// The Dockerfile.
    pub file: String,
    /// Line, from 1; `None` for the whole file.
    pub line: Option<usize>,
    /// Instruction.
    pub command: String,
    /// Reason.
    pub why: String,
    /// Suggestion.
    pub help: Option<String>,
}

/// Reason why a recipe cannot express something.
#[derive(Debug)]
struct Reason {
    why: String,
    help: Option<String>,
}

const BY_HAND: &str = "write the recipe by hand, or keep building the Dockerfile";

impl Reason {
    fn new(why: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            help: Some(help.into()),
        }
    }
}

/// Lines that require Windows or are invalid.
pub fn obstacles(error: &StageError, dockerfile: &Path) -> Vec<ConversionError> {
    error
        .lines()
        .map(|error| match error {
            StageError::Line {
                file,
                line,
                text,
                error,
                ..
            } => ConversionError {
                file: file.clone(),
                line: Some(*line),
                command: text.clone(),
                why: error.problem.clone(),
                help: error.hint(None),
            },
            other => ConversionError {
                file: dockerfile.display().to_string(),
                line: None,
                command: String::new(),
                why: error_chain(other),
                help: other.diagnosis().hint,
            },
        })
        .collect()
}

impl Conversion<'_> {
    /// Writes the recipe, or returns all reasons why it cannot.
    pub fn recipe(&self) -> Result<String, Vec<ConversionError>> {
        let Some(instructions) = &self.plan.instructions else {
            return Ok(String::new());
        };
        if self.keeps_history {
            return self.recipe_of(instructions, None);
        }
        let mut steps = instructions.steps.clone();
        let path = registry::take_additions(&mut steps, self.inside);
        steps.retain(|step| step.layer.is_some());
        let instructions = Instructions {
            steps,
            ..instructions.clone()
        };
        self.recipe_of(&instructions, path.as_ref())
    }

    fn recipe_of(
        &self,
        instructions: &Instructions,
        path: Option<&PathAdditions>,
    ) -> Result<String, Vec<ConversionError>> {
        let text = self.write(instructions, path)?;
        self.compare(&text, instructions, path)
            .map_err(|obstacle| vec![obstacle])?;
        Ok(text)
    }

    fn obstacle(&self, step: Option<&PlannedStep>, reason: Reason) -> ConversionError {
        ConversionError {
            file: self.dockerfile.display().to_string(),
            line: step.and_then(|step| step.line),
            command: step.map_or_else(String::new, |step| step.created_by.clone()),
            why: reason.why,
            help: reason.help,
        }
    }

    fn write(
        &self,
        instructions: &Instructions,
        path: Option<&PathAdditions>,
    ) -> Result<String, Vec<ConversionError>> {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "# Makes the same image as {}. Paths are relative to the folder of this file.",
            self.dockerfile.display()
        );
        let _ = writeln!(out, "name = {}", text(self.name));
        out += &base_key(self.base_registry, self.base);
        if self.looked {
            out.push_str(
                "# The Dockerfile's lines depend on the contents of the base.\nlook_inside = true\n",
            );
        }
        if let Some(path) = path {
            registry::write_additions(path, &mut out);
        }
        self.container(instructions, &mut out);
        let mut obstacles = Vec::new();
        let mut place = RecipeFolder::new(self.folder, self.downloads);
        let mut names = BTreeSet::new();
        for (index, step) in instructions.steps.iter().enumerate() {
            let name = layer_name(step, &mut names);
            let rest = self.without_packages(instructions, index);
            let written =
                rest.and_then(|rest| self.write_step(step, &rest, &name, &mut place, &mut out));
            if let Err(reason) = written {
                obstacles.push(self.obstacle(Some(step), reason));
            }
        }
        if obstacles.is_empty() {
            Ok(out)
        } else {
            Err(obstacles)
        }
    }

    /// The layer of a step without what its packages leave behind.
    fn without_packages(
        &self,
        instructions: &Instructions,
        index: usize,
    ) -> Result<Arc<PlannedLayer>, Reason> {
        let Some(layer) = instructions.steps[index].layer.clone() else {
            return Ok(Arc::default());
        };
        if layer.packages.is_empty() {
            return Ok(layer);
        }
        let mut steps = instructions.steps[..=index].to_vec();
        let packages = layer.packages.iter().map(|package| PlannedPackage {
            product: None,
            ..package.clone()
        });
        steps[index].layer = Some(Arc::new(PlannedLayer {
            packages: packages.collect(),
            ..PlannedLayer::default()
        }));
        let mut plan = Plan {
            instructions: Some(Instructions {
                steps,
                ..instructions.clone()
            }),
            ..self.plan.clone()
        };
        let refused = |why: String| Reason::new(why, BY_HAND);
        let installed = plan.install_packages(self.inside);
        installed.map_err(|error| refused(error_chain(&error)))?;
        let Some(made) = plan.instruction_layers().last() else {
            return Ok(layer);
        };
        let of_package: BTreeMap<String, &PlannedContent> = made
            .entries
            .iter()
            .map(|entry| (entry.path.key(), &entry.content))
            .collect();
        let is_own =
            |entry: &&PlannedEntry| of_package.get(&entry.path.key()) != Some(&&entry.content);
        let registry = layer.registry.strip_prefix(made.registry.as_slice());
        let access = layer.access.strip_prefix(made.access.as_slice());
        let (Some(registry), Some(access)) = (registry, access) else {
            let why = "it changes the registry or rights before it installs the package";
            return Err(refused(why.to_owned()));
        };
        Ok(Arc::new(PlannedLayer {
            entries: layer.entries.iter().filter(is_own).cloned().collect(),
            registry: registry.to_vec(),
            access: access.to_vec(),
            packages: Vec::new(),
            ..PlannedLayer::clone(&layer)
        }))
    }

    /// Writes the container settings that differ from the base.
    fn container(&self, instructions: &Instructions, out: &mut String) {
        let base = &self.plan.base.container;
        let own = &instructions.container;
        set_text(out, "author", instructions.author.as_deref());
        program(own, base, out);
        let user = own.user.as_deref();
        set_text(out, "user", user.filter(|_| own.user != base.user));
        let folder = own.working_dir.as_deref();
        let folder = folder.filter(|_| own.working_dir != base.working_dir);
        set_text(out, "working_dir", folder);
        let ports = own.exposed_ports.keys();
        let ports: Vec<String> = ports
            .filter(|port| !base.exposed_ports.contains_key(*port))
            .map(|port| match port.strip_suffix("/tcp") {
                Some(number) => number.to_owned(),
                None => quoted(port),
            })
            .collect();
        if !ports.is_empty() {
            let _ = writeln!(out, "ports = [{}]", ports.join(", "));
        }
        let mut new = volumes(own);
        let of_base = volumes(base);
        new.retain(|folder| !of_base.contains(folder));
        set_list(out, "volumes", &new);
        let changed = |name: &str| {
            let value = own.other.get(name);
            value.filter(|_| value != base.other.get(name))
        };
        set_text(
            out,
            "stop_signal",
            changed("StopSignal").and_then(Value::as_str),
        );
        if let Some(words) = own.shell.as_ref().filter(|_| own.shell != base.shell) {
            out.push_str("# For Dockerfiles based on this image.\n");
            let _ = writeln!(out, "shell = {}", list(words));
        }
        set_list(out, "on_build", &own.on_build);
        variables_and_labels(own, base, out);
        if let Some(check) = changed("Healthcheck") {
            health(check, out);
        }
    }

    /// Plans the recipe with the downloads and other images' files of the Dockerfile's plan.
    fn plan_again(&self, text: &str, instructions: &Instructions) -> Result<Plan, ConversionError> {
        let whole = |why: String| self.obstacle(None, Reason::new(why, BY_HAND));
        let read = Recipe::from_text("the recipe", text.to_owned(), self.folder);
        let recipe = read.map_err(|error| whole(error_chain(&error)))?;
        let settings = RecipeInputs {
            values: &BTreeMap::new(),
            context: self.folder,
        };
        let made = recipe.plan(self.plan.base.clone(), self.plan.host_build, &settings);
        let mut made = made.map_err(|error| {
            let reason = Reason {
                why: error_chain(&error),
                help: error.diagnosis().hint,
            };
            self.obstacle(None, reason)
        })?;
        // Downloaded files are not fetched again.
        for file in made.downloads_mut() {
            let known = self.downloads.get(&file.url);
            if let Some(known) = known.filter(|it| file.digest.as_ref() == Some(&it.digest)) {
                file.set_content(known.digest.clone(), known.size, known.content.clone());
            }
        }
        take_extracted(&mut made, instructions);
        made.install_packages(self.inside)
            .map_err(|error| whole(error_chain(&error)))?;
        Ok(made)
    }

    /// Reads the recipe and compares it with the Dockerfile.
    fn compare(
        &self,
        text: &str,
        instructions: &Instructions,
        path: Option<&PathAdditions>,
    ) -> Result<(), ConversionError> {
        let differs =
            |step: Option<&PlannedStep>, why: &str| self.obstacle(step, Reason::new(why, BY_HAND));
        let made = self.plan_again(text, instructions)?;
        let (mut own, mut other) = (made.container(), self.plan.container());
        if !self.keeps_history {
            // The order of variables has no meaning.
            own.env.sort_unstable();
            other.env.sort_unstable();
        }
        if own != other {
            let field = changed_field(&own, &other);
            return Err(differs(None, &format!("a recipe cannot express {field}")));
        }
        if made.path.as_ref() != path {
            return Err(differs(None, "a recipe cannot express this PATH"));
        }
        let steps = made.instructions.map_or_else(Vec::new, |made| made.steps);
        let pairs = std::iter::zip(&steps, &instructions.steps);
        for (own, step) in pairs {
            let is_same = (own.created_by == step.created_by || !self.keeps_history)
                && self.is_same_layer(own.layer.as_deref(), step.layer.as_deref());
            if !is_same {
                return Err(differs(Some(step), "a recipe cannot express this line"));
            }
        }
        if steps.len() != instructions.steps.len() {
            return Err(differs(None, "the recipe has different layers"));
        }
        Ok(())
    }

    fn is_same_layer(&self, one: Option<&PlannedLayer>, other: Option<&PlannedLayer>) -> bool {
        let (Some(one), Some(other)) = (one, other) else {
            return one.is_none() && other.is_none();
        };
        let hives = |layer: &PlannedLayer| {
            let hives = layer_hives(&layer.registry, self.inside, FileTime::from_unix_seconds(0));
            hives.map(|hives| hives.into_iter().map(|hive| hive.bytes).collect::<Vec<_>>())
        };
        let same_registry = one.registry == other.registry
            || matches!((hives(one), hives(other)), (Ok(one), Ok(other)) if one == other);
        let same_settings = one.access == other.access
            && settings::in_recipe(&one.iis) == settings::in_recipe(&other.iis)
            && one.owner == other.owner
            && (&one.kept, &one.anew) == (&other.kept, &other.anew);
        let (mut first, mut second) = (Layer::new(0), Layer::new(0));
        let are_made = add_entries(&mut first, &one.entries).is_ok()
            && add_entries(&mut second, &other.entries).is_ok();
        let (Ok(one), Ok(other)) = (first.drive(), second.drive()) else {
            return false;
        };
        let same_files = one.len() == other.len()
            && std::iter::zip(&one, &other)
                .all(|(one, other)| one.0 == other.0 && is_same_content(one.1, other.1));
        same_settings && same_registry && are_made && same_files
    }
}

/// The first setting of a container that another configuration does not have.
fn changed_field(one: &ContainerConfig, other: &ContainerConfig) -> String {
    let (one, other) = (as_json(one), as_json(other));
    let mut fields = other.as_object().into_iter().flatten();
    let field = fields.find(|(name, value)| one.get(name.as_str()) != Some(*value));
    field.map_or_else(
        || "the base's configuration".to_owned(),
        |(name, value)| format!("{name} {value}"),
    )
}

fn volumes(config: &ContainerConfig) -> Vec<String> {
    let volumes = config.other.get("Volumes").and_then(Value::as_object);
    volumes.map_or_else(Vec::new, |volumes| volumes.keys().cloned().collect())
}

/// Writes the entry point and its arguments.
fn program(own: &ContainerConfig, base: &ContainerConfig, out: &mut String) {
    let takes_cmd_away = own.cmd.is_none() && base.cmd.is_some();
    let has_entrypoint = own.entrypoint != base.entrypoint || takes_cmd_away;
    if let Some(words) = own.entrypoint.as_ref().filter(|_| has_entrypoint) {
        let _ = writeln!(out, "entrypoint = {}", list(words));
    }
    let has_cmd = has_entrypoint || own.cmd != base.cmd;
    if let Some(words) = own.cmd.as_ref().filter(|_| has_cmd) {
        let _ = writeln!(out, "cmd = {}", list(words));
    }
    if own.args_escaped && (has_entrypoint || has_cmd || !base.args_escaped) {
        out.push_str("# A shell line: Windows does not quote it again.\n");
        out.push_str("args_escaped = true\n");
    }
}

/// Writes the tables of variables and labels.
fn variables_and_labels(own: &ContainerConfig, base: &ContainerConfig, out: &mut String) {
    let mut env = own.env.clone();
    env.retain(|line| !base.env.contains(line));
    if !env.is_empty() {
        out.push_str("\n[env]\n");
        for (name, value) in env.iter().filter_map(|line| line.split_once('=')) {
            let _ = writeln!(out, "{} = {}", key(name), text(value));
        }
    }
    let mut labels = own.labels.clone();
    labels.retain(|name, value| base.labels.get(name) != Some(value));
    if !labels.is_empty() {
        out.push_str("\n[labels]\n");
        for (name, value) in &labels {
            let _ = writeln!(out, "{} = {}", key(name), text(value));
        }
    }
}

/// Takes the files of other images, which the Dockerfile's plan has, over to that of the recipe.
fn take_extracted(made: &mut Plan, instructions: &Instructions) {
    let entries = instructions.layers().flat_map(|layer| &layer.entries);
    let mut extracted = BTreeMap::new();
    for entry in entries {
        if let PlannedContent::File(FileSource::Brought(file)) = &entry.content
            && let Some((image, from)) = &file.image
        {
            extracted.insert((image.as_str(), from.as_str()), file);
        }
    }
    for (target, files) in made.image_files_mut() {
        let key = (files.image.as_str(), files.from.as_str());
        files.entries = extracted.get(&key).map(|file| {
            let source = FileSource::Brought((*file).clone());
            vec![PlannedEntry::file(target.clone(), source)]
        });
    }
}

/// Files on disk are equal if they are one file, and members of one archive.
fn is_same_content(one: &EntryContent, other: &EntryContent) -> bool {
    let is_same_file = |one: &DiskSource, other: &DiskSource| {
        let real = |source: &DiskSource| std::fs::canonicalize(&source.path).ok();
        one.path == other.path || real(one).is_some_and(|one| Some(one) == real(other))
    };
    match (one, other) {
        (
            EntryContent::File(ContentSource::Path(one)),
            EntryContent::File(ContentSource::Path(other)),
        ) => is_same_file(one, other),
        (
            EntryContent::File(ContentSource::Member(one)),
            EntryContent::File(ContentSource::Member(other)),
        ) => match (one.archive().location(), other.archive().location()) {
            (ArchiveLocation::Path(place), ArchiveLocation::Path(place_of_other)) => {
                one.index() == other.index() && is_same_file(place, place_of_other)
            }
            _ => one == other,
        },
        (one, other) => one == other,
    }
}

fn as_json(config: &ContainerConfig) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

/// Key of the base in a recipe: the short name if the host selects the Windows version, else the
/// name from the Dockerfile.
fn base_key(registry: &BaseRegistry, name: &str) -> String {
    let exactly = format!("base_image = {}\n", text(name));
    let Ok(NamedBase::OfHost { name: meant, .. }) = registry.parse_dockerfile_name(name) else {
        return exactly;
    };
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let end = name[last..]
        .find(':')
        .map_or(name.len(), |colon| last + colon);
    let plain = name[..end]
        .strip_prefix("mcr.microsoft.com/")
        .unwrap_or(&name[..end]);
    let short = NAMES.iter().find(|(_, path)| *path == plain);
    let mut plain = short.map_or(plain, |(short, _)| *short).to_owned();
    if plain == name[..end] {
        // From another registry, which is part of the name.
        plain = repository_of(&meant.repository);
    }
    if let FlavourSelector::Named(words) = &meant.flavour {
        plain = format!("{plain}:{}", words.join("-"));
    }
    let same = |other: &Reference| {
        let own = &meant.repository;
        (own.registry(), own.repository()) == (other.registry(), other.repository())
    };
    match registry.repository(&plain) {
        Ok(read) if same(&read.repository) && read.flavour == meant.flavour => {
            format!("base = {}\n", text(&plain))
        }
        _ => exactly,
    }
}

fn health(check: &Value, out: &mut String) {
    out.push_str("\n[healthcheck]\n");
    let test = check["Test"].as_array().into_iter().flatten();
    let test: Vec<String> = test
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect();
    let _ = writeln!(out, "test = {}", list(&test));
    for (name, key) in HEALTH_TIMES.into_iter().zip([
        "interval", "timeout", "start_period", "start_interval", "retries",
    ]) {
        let Some(number) = check.get(name).and_then(Value::as_i64) else {
            continue;
        };
        let value = match number {
            number if name == "Retries" => number.to_string(),
            number if number % 1_000_000_000 == 0 => format!("\"{}s\"", number / 1_000_000_000),
            number if number % 1_000_000 == 0 => format!("\"{}ms\"", number / 1_000_000),
            number => format!("\"{number}ns\""),
        };
        let _ = writeln!(out, "{key} = {value}");
    }
}

/// Name of a layer, after its instruction and line.
fn layer_name(step: &PlannedStep, taken: &mut BTreeSet<String>) -> String {
    let word = step.created_by.split_whitespace().next().unwrap_or("layer");
    let word = word.to_ascii_lowercase();
    let name = match step.line {
        Some(line) => format!("{word}-{line}"),
        None => word,
    };
    let mut numbered = name.clone();
    let mut number = 1;
    while !taken.insert(numbered.clone()) {
        number += 1;
        numbered = format!("{name}-{number}");
    }
    numbered
}

/// Refuses attributes and permissions that a layer keeps from earlier files.
fn check_kept(layer: &PlannedLayer) -> Result<(), Reason> {
    let why = if let Some(kept) = layer.kept.first() {
        let what = if kept.is_moved {
            "the permissions and attributes"
        } else {
            "the attributes"
        };
        format!("{} keeps {what} of {}", kept.path, kept.from)
    } else if let Some(folder) = layer.anew.first() {
        format!("{folder} is deleted and created again in one layer")
    } else if let Some(owner) = &layer.owner {
        format!("its files belong to {owner}")
    } else {
        return Ok(());
    };
    let help = "copy the file with COPY, or keep building the Dockerfile";
    Err(Reason::new(why, help))
}

/// Writes a key with paths, one a line if there are several.
fn write_paths(key: &str, paths: &[String], out: &mut String) {
    match paths {
        [] => {}
        [path] => {
            let _ = writeln!(out, "{key} = [{}]", text(path));
        }
        several => {
            let _ = writeln!(out, "{key} = [");
            for path in several {
                let _ = writeln!(out, "    {},", text(path));
            }
            out.push_str("]\n");
        }
    }
}

impl Conversion<'_> {
    /// Writes a step; `rest` is its layer without what its packages leave behind.
    fn write_step(
        &self,
        step: &PlannedStep,
        rest: &PlannedLayer,
        name: &str,
        place: &mut RecipeFolder<'_>,
        out: &mut String,
    ) -> Result<(), Reason> {
        let mut content = String::new();
        let mut own = None;
        if let Some(layer) = &step.layer {
            check_kept(layer)?;
            for package in &layer.packages {
                files::write_package(package, place, name, &mut content)?;
            }
            own = Some(files::write(&rest.entries, place, name, &mut content)?);
            registry::write(&rest.registry, name, &mut content);
            settings::write_access(&rest.access, name, &mut content);
            settings::write_iis(&layer.iis, name, &mut content)?;
        }
        out.push_str("\n[[layers]]");
        if let Some(line) = step.line {
            let _ = write!(out, " # line {line}");
            if !self.keeps_history {
                let what = step.created_by.trim_end_matches(" # buildkit");
                let what = what.lines().next().unwrap_or_default();
                let what: String = what.chars().filter(|c| !c.is_control()).take(100).collect();
                let _ = write!(out, ": {}", without_password(&what));
            }
        }
        out.push('\n');
        if !content.is_empty() || !self.keeps_history {
            let _ = writeln!(out, "name = {}", quoted(name));
        }
        if self.keeps_history {
            let _ = writeln!(out, "created_by = {}", text(&step.created_by));
        }
        if let Some(own) = own {
            for (key, paths) in [("folders", &own.folders), ("deletes", &own.deletes)] {
                write_paths(key, paths, out);
            }
        }
        out.push_str(&content);
        Ok(())
    }
}
