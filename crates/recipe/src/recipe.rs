//! A recipe's text, its variables, and what is checked before it is filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Deserializer};
use wincimg_common::diagnose::{Blame, Diagnose, Excerpt, Problem, closest_match, line_and_column};
use wincimg_common::files::{TextFile, missing_path_hint, similar_path};
use wincimg_common::untrusted::QuotedText;
use wincimg_images::recipes;
use wincimg_layer::archive::Archives;
use wincimg_oci::reference::is_repository;

use super::Result;
use super::file::{Head, RecipeFile, Variable, VariableType};
use super::text::{Field, Text, Values, fill_in};
use super::toml_error::{
    TomlError, check_paths, explain_misplaced_key, explain_toml_error, key_below_table, move_up,
};

/// Variables that every recipe has in addition to its own.
const ALWAYS_THERE: [&str; 6] = [
    "name", "description", "host_build", "base.name", "base.digest", "base.os_version",
];

/// A recipe that was read, not yet filled in for a host.
#[derive(Debug)]
pub struct Recipe {
    pub(super) origin: RecipeOrigin,
    pub(super) head: Head,
    /// Archives that it unpacks.
    pub(super) archives: Archives,
    /// Files and folders that this program writes.
    pub(super) written: Vec<PathBuf>,
}

/// Origin of a recipe's text, for messages and for the files that it names.
#[derive(Debug, Clone)]
pub(super) struct RecipeOrigin {
    /// A path, or the name of a built-in recipe.
    name: String,
    text: String,
    /// The folder that `from` is relative to; none for a built-in recipe.
    pub(super) folder: Option<PathBuf>,
}

/// Inputs for filling in a recipe.
#[derive(Debug, Clone)]
pub struct RecipeInputs<'a> {
    /// Values for the recipe's variables, by name.
    pub values: &'a BTreeMap<String, String>,
    /// The folder that `context` is relative to.
    pub context: &'a Path,
}

/// A `--set` as typed, with the variable or its value marked.
fn typed(variable: &str, value: &str, at_value: bool) -> Excerpt {
    let before = format!("--set {variable}");
    let whole = format!("{before}={}", value.escape_debug());
    let marked = if at_value {
        before.len() + 1..whole.len()
    } else {
        before.len() - variable.len()..before.len()
    };
    Excerpt::from_argument(&whole, marked)
}

/// Returns true for a text of digits and dots, which TOML accepts as a number.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// A folder with a recipe or Dockerfile whose name is similar to `image`.
fn folder_like(image: &str) -> Option<String> {
    let meant = similar_path(Path::new(image))?;
    let has = |name| meant.join(name).is_file();
    let can_be_built = has("recipe.toml") || has("Dockerfile");
    can_be_built.then(|| meant.display().to_string())
}

fn variable_hint(variable: &str, known: &[&str]) -> String {
    match closest_match(variable, known.iter().copied()) {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None if known.is_empty() => "it has no variables: remove --set".to_owned(),
        None => format!("its variables are: {}", known.join(", ")),
    }
}

fn file_hint(path: &Path) -> String {
    missing_path_hint(path).unwrap_or_else(|| {
        "IMAGE is a recipe file, a Dockerfile or a folder with one; `wincimg recipe init` writes a recipe to start from"
            .to_owned()
    })
}

impl Recipe {
    /// Finds a recipe: a built-in one by name, a recipe file, or a folder with a `recipe.toml`.
    pub fn find(image: &str) -> Result<Self> {
        if let Some(recipe) = recipes().iter().find(|recipe| recipe.name == image) {
            return Self::parse(format!("{image}.toml"), recipe.text.to_owned(), None);
        }
        let path = Path::new(image);
        if path.is_dir() {
            let file = path.join("recipe.toml");
            if !file.exists() {
                let problem = format!("{image} has neither a recipe.toml nor a Dockerfile");
                return Err(Problem::request("recipe/not-found", problem).hint(file_hint(&file)));
            }
            Self::read(&TextFile::found(file))
        } else if path.extension().is_some() || image.contains(['/', '\\']) || path.is_file() {
            Self::load(path)
        } else {
            let nearest = closest_match(image, recipes().iter().map(|recipe| recipe.name))
                .or_else(|| folder_like(image));
            let list = "`wincimg recipe list` lists the recipes";
            let hint = match nearest {
                Some(nearest) => format!("did you mean {nearest:?}? {list}"),
                None => format!("{list}; a path to a recipe file or its folder works too"),
            };
            let problem = format!("unknown recipe {image:?}");
            Err(Problem::request("recipe/not-found", problem).hint(hint))
        }
    }

    /// Reads a recipe's text as that of a file of this name in this folder.
    pub fn from_text(name: &str, text: String, folder: &Path) -> Result<Self> {
        Self::parse(name.to_owned(), text, Some(folder))
    }

    /// Reads a recipe file that the user names.
    pub fn load(path: &Path) -> Result<Self> {
        Self::read(&TextFile::named(path))
    }

    fn read(file: &TextFile) -> Result<Self> {
        let path = file.path();
        let text = file.read().map_err(|source| {
            let problem = format!("cannot read the recipe {}", path.display());
            let hint = file.hint(&source).unwrap_or_else(|| file_hint(path));
            let problem = Problem::new("recipe/unreadable", problem).hint(hint);
            problem.blame(source.diagnosis().blame).source(source)
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(path.display().to_string(), text, Some(folder))
    }

    fn parse(name: String, text: String, folder: Option<&Path>) -> Result<Self> {
        let folder = folder.map(Path::to_owned);
        let origin = RecipeOrigin { name, text, folder };
        let head: Head = toml::from_str(&origin.text).map_err(|error| origin.unreadable(&error))?;
        if let Ok(tree) = DeTable::parse(&origin.text) {
            let checked = check_paths(&origin.text, tree.get_ref());
            checked.map_err(|mistake| origin.mistaken(mistake))?;
        }
        let recipe = Self {
            origin,
            head,
            archives: Archives::default(),
            written: Vec::new(),
        };
        recipe.check_name()?;
        recipe.check_base()?;
        recipe.check_variables()?;
        recipe.check_file()?;
        Ok(recipe)
    }

    /// Leaves files and folders that this program writes out of the folders that it copies.
    pub fn leave_out(&mut self, written: &[PathBuf]) {
        self.written.extend_from_slice(written);
    }

    /// Rejects errors that no values of the variables can fix. If a field accepts none of the
    /// examples, the keys after it are checked only with the actual values.
    fn check_file(&self) -> Result<()> {
        /// Example values of strings, with or without a default.
        const EXAMPLES: [&str; 3] = [r"C:\x", "x", "1"];
        for example in std::iter::once(None).chain(EXAMPLES.map(Some)) {
            let values = self.example_values(example);
            let mut open = BTreeSet::new();
            let read = self.read_file(|offset, text| {
                open.insert(offset);
                // Unknown variables stay as they are.
                if let Ok(filled) = values.expand(text) {
                    *text = filled.into();
                }
                Ok(())
            });
            match read {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) if !error.span().is_some_and(|at| open.contains(&at.start)) => {
                    return Err(self.origin.unreadable(&error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Possible values of the variables: their defaults, or the example for strings.
    fn example_values(&self, example: Option<&str>) -> Values {
        let mut values = Values::default();
        values.insert("name", self.name().to_owned());
        for (name, variable) in &self.head.variables {
            let variable = variable.get_ref();
            let default = variable.default_value();
            let value = match variable.kind {
                VariableType::String => example.or(default),
                VariableType::Integer => default.or(Some("1")),
                VariableType::Boolean => default.or(Some("true")),
            };
            if let Some(value) = value {
                values.insert(name, value.to_owned());
            }
        }
        values
    }

    /// The file with its variables filled in.
    pub(super) fn filled(&self, values: &Values) -> Result<RecipeFile> {
        let read = self.read_file(|offset, text| {
            let filled = values.expand(text);
            *text = filled
                .map_err(|problem| TomlError::at(offset, problem))?
                .into();
            Ok(())
        })?;
        read.map_err(|error| self.origin.unreadable(&error))
    }

    /// Reads the file after filling in the variables in its texts.
    fn read_file(
        &self,
        mut fill: impl FnMut(usize, &mut DeString<'_>) -> Result<(), TomlError>,
    ) -> Result<Result<RecipeFile, toml::de::Error>> {
        let mut tree = match DeTable::parse(&self.origin.text) {
            Ok(tree) => tree,
            Err(error) => return Ok(Err(error)),
        };
        // The declarations of variables are not filled in.
        let variables = tree.get_mut().remove_entry("variables");
        fill_in(tree.get_mut(), &mut fill).map_err(|mistake| self.origin.mistaken(mistake))?;
        tree.get_mut().extend(variables);
        Ok(RecipeFile::deserialize(Deserializer::from(tree)))
    }

    /// The recipe's name, which is also the default name of its images.
    pub fn name(&self) -> &str {
        &self.head.name.value
    }

    /// Purpose of the image, without variables filled in.
    pub fn description(&self) -> &str {
        let description = self.head.description.as_ref();
        description.map_or("", |text| &text.value)
    }

    /// The base's short name, repository or image, with variables filled in.
    pub fn base(&self, settings: &RecipeInputs<'_>) -> Result<String> {
        let values = self.values(settings)?;
        let base = self.head.base.as_ref().or(self.head.base_image.as_ref());
        base.map_or(Ok(String::new()), |base| self.resolve(base, &values))
    }

    /// An error of the base's name, with its place.
    pub fn base_error(&self, error: &impl Diagnose) -> Problem {
        let base = self.head.base.as_ref().or(self.head.base_image.as_ref());
        let offset = base.map_or(0, |base| base.offset);
        let diagnosis = error.diagnosis();
        let placed = self.origin.error_at(offset, error.to_string());
        placed.code(diagnosis.code).hint_if(diagnosis.hint)
    }

    /// Returns true if the base is named as a Dockerfile names it.
    pub fn has_base_image(&self) -> bool {
        self.head.base_image.is_some()
    }

    fn check_base(&self) -> Result<()> {
        match (&self.head.base, &self.head.base_image) {
            (Some(base), None) | (None, Some(base)) if is_number(&base.value) => {
                let problem = format!("{} is not the name of a base image", base.value);
                let hint = "write it like this: base = \"nanoserver\"";
                Err(self.error(base, problem).hint(hint))
            }
            (Some(_), None) | (None, Some(_)) => Ok(()),
            (Some(_), Some(image)) => {
                Err(self.error(image, "base and base_image cannot be combined"))
            }
            (None, None) => {
                let problem = "missing field `base`";
                let hint = "add the image's base: base = \"nanoserver\"";
                Err(self.error(&self.head.name, problem).hint(hint))
            }
        }
    }

    /// Returns true if variables of the base image are used outside of labels, the environment and
    /// the description, where any text is valid.
    pub fn depends_on_base(&self) -> bool {
        let uses = |text: &str| text.matches("${base.").count();
        let head = &self.head;
        let texts = head.labels.values().chain(head.env.values());
        let harmless = texts.chain(&head.description);
        uses(&self.origin.text) > harmless.map(|text| uses(&text.value)).sum()
    }

    /// Returns true if a file is relative to the build's context.
    pub fn uses_context(&self) -> bool {
        let Ok(file) = toml::from_str::<toml::Table>(&self.origin.text) else {
            return true;
        };
        let is_relative = |entry: &toml::Value| entry.get("context").is_some();
        let files = file.get("files").and_then(toml::Value::as_array);
        files.is_some_and(|files| files.iter().any(is_relative))
    }

    /// The variables that a build may set, by name.
    pub fn variables(&self) -> impl Iterator<Item = (&String, &Variable)> {
        let variables = self.head.variables.iter();
        variables.map(|(name, variable)| (name, variable.get_ref()))
    }

    /// The recipe's folder; none for a built-in recipe.
    pub fn folder(&self) -> Option<&Path> {
        self.origin.folder.as_deref()
    }

    /// Its file, or the name of the built-in recipe, for messages.
    pub fn origin(&self) -> &str {
        &self.origin.name
    }

    /// The recipe's file.
    pub fn text(&self) -> &str {
        &self.origin.text
    }

    fn check_name(&self) -> Result<()> {
        let name = &self.head.name;
        if is_repository(&name.value) {
            return Ok(());
        }
        Err(self.error(
            name,
            format!(
                "invalid image name {:?}: expected lower-case letters, digits and single - _ . /",
                name.value
            ),
        ))
    }

    fn check_variables(&self) -> Result<()> {
        for (name, variable) in &self.head.variables {
            let start = variable.span().start;
            let variable = variable.get_ref();
            if ALWAYS_THERE.contains(&name.as_str()) {
                let problem = format!("{name:?} is set by wincimg: give the variable another name");
                return Err(self.origin.error_at(start, problem));
            }
            if let Some(default) = &variable.default
                && !variable.kind.accepts(&default.value)
            {
                let kind = variable.kind.name();
                let problem = format!("invalid default of {name:?}: expected {kind}");
                return Err(self.error(default, problem));
            }
        }
        Ok(())
    }

    /// Warnings of variables and labels that have the names of keys that the recipe lacks.
    pub(super) fn misplaced_keys(&self) -> Vec<String> {
        /// Keys that are unusual as names of variables and labels.
        const KEYS: [&str; 7] = [
            "args_escaped", "cmd", "entrypoint", "shutdown_timeout", "stop_signal", "user",
            "working_dir",
        ];
        let tree = DeTable::parse(&self.origin.text).map(Spanned::into_inner);
        let tree = tree.unwrap_or_default();
        let variables = self.head.env.iter().map(|it| ("variable", it));
        let labels = self.head.labels.iter().map(|it| ("label", it));
        let named = variables.chain(labels).filter_map(|(what, (name, value))| {
            let (key, _) = key_below_table(&self.origin.text, value.offset)?;
            let is_meant = key == name && KEYS.contains(&key) && !tree.contains_key(key);
            let (line, _) = line_and_column(&self.origin.text, value.offset);
            let file = &self.origin.name;
            is_meant.then(|| format!("{file}:{line}: {key} is a {what} here: {}", move_up(key)))
        });
        named.collect()
    }

    /// The values of the recipe's own variables.
    pub(super) fn values(&self, settings: &RecipeInputs<'_>) -> Result<Values> {
        for variable in settings.values.keys() {
            if !self.head.variables.contains_key(variable) {
                let known: Vec<&str> = self.head.variables.keys().map(String::as_str).collect();
                let problem = format!("the recipe {:?} has no variable {variable:?}", self.name());
                return Err(Problem::request("recipe/unknown-variable", problem)
                    .hint(variable_hint(variable, &known))
                    .excerpt(Some(typed(variable, "…", false))));
            }
        }
        let mut values = Values::default();
        for (name, variable) in &self.head.variables {
            let variable = variable.get_ref();
            let value = settings.values.get(name).cloned().or_else(|| {
                let default = variable.default.as_ref()?;
                Some(default.value.clone())
            });
            let Some(value) = value else {
                let description = variable.description.as_deref();
                let description = description.map(|text| format!(" ({text})"));
                let problem = format!(
                    "the recipe {:?} requires a value for {name:?}{}",
                    self.name(),
                    description.unwrap_or_default()
                );
                return Err(Problem::request("recipe/missing-value", problem)
                    .hint(format!("add --set {name}=VALUE")));
            };
            if !variable.kind.accepts(&value) {
                let expected = variable.kind.name();
                let problem = format!(
                    "invalid value {} for the variable {name:?}: expected {expected}",
                    QuotedText(&value)
                );
                return Err(Problem::request("recipe/wrong-value", problem)
                    .excerpt(Some(typed(name, &value, true))));
            }
            values.insert(name, value);
        }
        Ok(values)
    }

    /// A text of the recipe with its variables filled in.
    pub(super) fn resolve(&self, text: &Text, values: &Values) -> Result<String> {
        values
            .expand(&text.value)
            .map_err(|problem| self.error(text, problem))
    }

    pub(super) fn error<T>(&self, field: &Field<T>, problem: impl Into<String>) -> Problem {
        self.origin.error_at(field.offset, problem)
    }
}

impl RecipeOrigin {
    /// Converts a parser error, with a suggestion where there is one.
    fn unreadable(&self, error: &toml::de::Error) -> Problem {
        let misplaced = explain_misplaced_key(&self.text, error);
        self.mistaken(misplaced.unwrap_or_else(|| explain_toml_error(&self.text, error)))
    }

    fn mistaken(&self, mistake: TomlError) -> Problem {
        self.error_at(mistake.offset, mistake.problem)
            .hint_if(mistake.hint)
    }

    /// An error of the value that keys and numbers lead to: `services.0.name`.
    pub(super) fn error_in(&self, path: &str, problem: impl Into<String>) -> Problem {
        let tree = DeTable::parse(&self.text).map(Spanned::into_inner);
        let (mut value, mut offset) = (&DeValue::Table(tree.unwrap_or_default()), 0);
        for step in path.split('.') {
            let inside = match step.parse::<usize>() {
                Ok(number) => value.get(number),
                Err(_) => value.get(step),
            };
            let Some(inside) = inside else { break };
            (value, offset) = (inside.get_ref(), inside.span().start);
        }
        self.error_at(offset, problem)
    }

    pub(super) fn error_at(&self, offset: usize, problem: impl Into<String>) -> Problem {
        let (line, column) = line_and_column(&self.text, offset);
        let problem = problem.into();
        let message = format!("{}:{line}:{column}: {problem}", self.name);
        let error = if problem.starts_with("unknown field") {
            Problem::new("recipe/unknown-key", message)
        } else {
            Problem::new("recipe/invalid", message)
        };
        let excerpt = Excerpt::at(&self.text, offset).in_file(&self.name);
        error.blame(Blame::Request).excerpt(Some(excerpt))
    }
}
