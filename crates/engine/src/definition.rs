//! Definition of an image: a recipe or a Dockerfile, with the options given for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wincimg_common::diagnose::{BoxError, Problem, closest_match};
use wincimg_common::files::{TextFile, folder_of, named_path_hint, or_here, real_path};
use wincimg_common::progress::Progress;
use wincimg_common::shell::command_line;
use wincimg_dockerfile::stages::{DockerfileRequest, StageReplacement, Stages};
use wincimg_dockerfile::{DockerfileNames, has_from};
use wincimg_images::recipes;
use wincimg_inspect::bases::{BaseRegistry, is_host_process, is_published_host_process};
use wincimg_inspect::provenance::SourceFile;
use wincimg_oci::document::sha256;
use wincimg_recipe::{LOCK_FILE, Recipe, RecipeInputs};
use wincimg_windows::version::WindowsVersion;

use super::delivery::default_layouts;
use super::downloads::LockFile;
use super::origin::Origin;

/// Names of the Dockerfile of a folder, the first of which counts.
pub const DOCKERFILES: [&str; 3] = ["Dockerfile", "dockerfile", "Containerfile"];

/// Definition of an image, as the user gives it.
#[derive(Debug, Clone, Default)]
pub struct BuildInput {
    /// A built-in recipe, a recipe file, a Dockerfile, or a folder with one of them.
    pub image: String,
    /// Values for the recipe's variables.
    pub values: Vec<(String, String)>,
    /// The context folder; by default a recipe's is the current one, a Dockerfile's its own.
    pub context: Option<PathBuf>,
    /// A Dockerfile with another name.
    pub file: Option<TextFile>,
    /// The Dockerfile's stage; by default the last.
    pub target: Option<String>,
    /// Replacements of the Dockerfile's stages.
    pub stages: Vec<(String, StageReplacement)>,
    /// Build arguments of the Dockerfile.
    pub arguments: Vec<(String, String)>,
    /// Custom actions of Windows Installer packages to leave out.
    pub skipped_actions: Vec<String>,
    /// Feed of Chocolatey packages: a folder, or a URL.
    pub choco_feed: Option<String>,
}

/// A recipe with its values or a Dockerfile with its arguments, read and checked as far as possible
/// without a host.
pub struct BuildDefinition {
    pub(super) made_by: DefinitionKind,
    /// Values of the recipe's variables, as given.
    pub(super) values: BTreeMap<String, String>,
    /// The context folder.
    pub context: PathBuf,
}

pub(super) enum DefinitionKind {
    /// A recipe, to be filled in with the values.
    Recipe(Box<Recipe>),
    Dockerfile(Box<Stages>),
}

/// Error for a cache whose folder is also one of the user's.
pub(super) fn cache_conflict(cache: &Path, what: &str) -> Problem {
    let problem = format!("the cache {} is {what}", cache.display());
    Problem::request("output/inside", problem)
        .hint("name a folder for the cache alone: --cache-dir .cache")
}

/// Error for an option that does not apply to the definition.
fn misplaced_option(problem: String, hint: impl Into<String>) -> BoxError {
    Problem::request("usage/arguments", problem)
        .hint(hint)
        .into()
}

impl BuildInput {
    /// Reads the recipe, or the Dockerfile with its build arguments.
    pub fn read(&self, reporter: &dyn Progress) -> Result<BuildDefinition, BoxError> {
        if let Some((what, hint)) = self.unsupported_source() {
            return Err(misplaced_option(format!("cannot build from {what}"), hint));
        }
        if let Some((file, folder)) = dockerfile_of(&self.image, self.file.clone()) {
            return self.read_dockerfile(file, folder, reporter);
        }
        let recipe = Recipe::find(&self.image)?;
        let given = [
            ("--target", self.target.is_some()),
            ("--stage", !self.stages.is_empty()),
            ("--choco-feed", self.choco_feed.is_some()),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) {
            let problem = format!("{flag} is for Dockerfiles, and this is a recipe");
            return Err(misplaced_option(
                problem,
                format!("name a Dockerfile, or remove {flag}"),
            ));
        }
        if let Some(hidden) = hidden_definition(&self.image) {
            let used = match recipe.folder() {
                Some(_) => recipe.origin().to_owned(),
                None => format!("the built-in recipe {:?}", self.image),
            };
            reporter.note(&format_args!(
                "using {used}, not {}: type that path to build it",
                hidden.display()
            ));
        }
        Ok(BuildDefinition {
            made_by: DefinitionKind::Recipe(Box::new(recipe)),
            values: self.values.iter().cloned().collect(),
            context: self.context.clone().unwrap_or(PathBuf::from(".")),
        })
    }

    /// What Docker's tools build from and this program does not, and what to do.
    fn unsupported_source(&self) -> Option<(&'static str, &'static str)> {
        let is_stdin = |path: &Path| path == Path::new("-");
        let image = self.image.to_ascii_lowercase();
        let is_named = |ends: &[&str]| ends.iter().any(|end| image.ends_with(end));
        let file = self.file.as_ref().map(TextFile::path);
        if is_stdin(Path::new(&image)) || file.is_some_and(is_stdin) {
            return Some(("stdin", "write it to a file, and name that with -f FILE"));
        }
        if image.contains("://") || image.starts_with("git@") {
            return Some(("a URL", "clone or download it first, and name its folder"));
        }
        if self.is_dockerfile() || !Path::new(&self.image).is_file() {
            return None;
        }
        if is_named(&[".tar", ".tar.gz", ".tgz", ".tar.xz", ".zip"]) {
            return Some(("an archive", "unpack it first, and name the folder"));
        }
        let hint = "name the folder with the Dockerfile of one image, and give its arguments with \
                    --build-arg";
        is_named(&[".yml", ".yaml", ".hcl"]).then_some(("a file of several images", hint))
    }

    /// The words that name the same definition to `wincimg build`.
    pub fn to_words(&self, definition: &BuildDefinition) -> Vec<String> {
        let Self {
            image,
            values,
            context,
            file,
            target,
            stages,
            arguments,
            skipped_actions,
            choco_feed,
        } = self;
        let path = |path: &Path| path.display().to_string();
        let pair = |(name, value): &(String, String)| format!("{name}={value}");
        // The command refuses a context that the recipe does not use.
        let uses_context = definition.recipe().is_none_or(Recipe::uses_context);
        let context = context.as_deref().filter(|_| uses_context);
        let mut flags: Vec<(&str, String)> = Vec::new();
        flags.extend(file.iter().map(|file| ("--file", path(file.path()))));
        flags.extend(context.map(|folder| ("--context", path(folder))));
        flags.extend(target.iter().map(|stage| ("--target", stage.clone())));
        flags.extend(
            stages
                .iter()
                .map(|(name, place)| ("--stage", format!("{name}={place}"))),
        );
        flags.extend(values.iter().map(|value| ("--set", pair(value))));
        flags.extend(arguments.iter().map(|value| ("--build-arg", pair(value))));
        let skipped = skipped_actions.iter();
        flags.extend(skipped.map(|name| ("--skip-custom-action", name.clone())));
        flags.extend(choco_feed.iter().map(|feed| ("--choco-feed", feed.clone())));
        let words = flags
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value]);
        std::iter::once(image.clone()).chain(words).collect()
    }

    /// Error for a Dockerfile that does not exist, with the one that was meant.
    fn not_found(&self, file: &Path) -> BoxError {
        let in_folder = Some(Path::new(&self.image).join(file)).filter(|path| path.is_file());
        let hint = in_folder
            .map(|meant| format!("did you mean {}?", meant.display()))
            .or_else(|| named_path_hint(file));
        let problem = format!("Dockerfile {} not found", file.display());
        Problem::new("dockerfile/unreadable", problem)
            .hint_if(hint)
            .into()
    }

    /// Returns true for a Dockerfile.
    pub fn is_dockerfile(&self) -> bool {
        dockerfile_of(&self.image, self.file.clone()).is_some()
    }

    fn read_dockerfile(
        &self,
        file: TextFile,
        folder: PathBuf,
        reporter: &dyn Progress,
    ) -> Result<BuildDefinition, BoxError> {
        if let Some((variable, _)) = self.values.first() {
            let path = file.path().display();
            let problem = format!("--set is for recipes, and {path} is a Dockerfile");
            let hint = format!("give a build argument its value: --build-arg {variable}=VALUE");
            return Err(misplaced_option(problem, hint));
        }
        if self.file.is_some() && is_recipe_file(&file) {
            let file = file.path().to_string_lossy();
            let problem = format!("{file} is a recipe, and -f names a Dockerfile");
            let hint = command_line(&["wincimg", "build", &file]);
            return Err(misplaced_option(problem, hint));
        }
        if self.file.is_some() && !file.path().exists() {
            return Err(self.not_found(file.path()));
        }
        let context = self.context.clone().unwrap_or(folder.clone());
        let request = DockerfileRequest {
            file,
            folder,
            context: context.clone(),
            target: self.target.clone(),
            arguments: self.arguments.clone(),
            skipped_actions: self.skipped_actions.clone(),
            choco_feed: self.choco_feed.clone(),
            replacements: self.stages.iter().cloned().collect(),
        };
        let stages = Stages::read(&request)?;
        for unused in unused_arguments(&self.arguments, &stages) {
            reporter.warn(&unused);
        }
        Ok(BuildDefinition {
            made_by: DefinitionKind::Dockerfile(Box::new(stages)),
            values: BTreeMap::new(),
            context,
        })
    }
}

impl BuildDefinition {
    /// The default name of the images.
    pub fn name(&self) -> &str {
        match &self.made_by {
            DefinitionKind::Recipe(recipe) => recipe.name(),
            DefinitionKind::Dockerfile(stages) => stages.name(),
        }
    }

    /// The recipe, if it is one.
    pub fn recipe(&self) -> Option<&Recipe> {
        match &self.made_by {
            DefinitionKind::Recipe(recipe) => Some(recipe),
            DefinitionKind::Dockerfile(_) => None,
        }
    }

    /// The Dockerfile, if it is one.
    pub fn stages(&self) -> Option<&Stages> {
        match &self.made_by {
            DefinitionKind::Recipe(_) => None,
            DefinitionKind::Dockerfile(stages) => Some(stages),
        }
    }

    /// Excludes what builds write from the folders that go into the image: these files and folders,
    /// and default outputs at the top of those folders or in the working directory (`here`), unless
    /// the definition names them.
    pub fn leave_out(&mut self, written: impl IntoIterator<Item = PathBuf>, here: &[PathBuf]) {
        let tops = [&*self.context].into_iter().chain(self.folder());
        let layouts = here.iter().cloned().chain(tops.flat_map(default_layouts));
        let layouts = layouts.filter(|layout| !self.names(layout));
        let written: Vec<PathBuf> = written.into_iter().chain(layouts).collect();
        self.add_written(&written);
    }

    /// Returns true if its text has the name of a file or folder, or a beginning of it before an
    /// argument or a wildcard.
    fn names(&self, path: &Path) -> bool {
        let text = match &self.made_by {
            DefinitionKind::Recipe(recipe) => recipe.text(),
            DefinitionKind::Dockerfile(stages) => stages.text(),
        };
        let is_end = |c: char| c.is_whitespace() || "\"'/\\,=".contains(c);
        let mut words = text.split(is_end);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        words.any(|word| match word.find(['$', '*', '?', '[']) {
            Some(open) => open > 0 && name.starts_with(&word[..open]),
            None => *name == *word,
        })
    }

    fn add_written(&mut self, written: &[PathBuf]) {
        match &mut self.made_by {
            DefinitionKind::Recipe(recipe) => recipe.leave_out(written),
            DefinitionKind::Dockerfile(stages) => stages.leave_out(written),
        }
    }

    /// Leaves the cache out of the folders that the image is made of. It must not be the context of
    /// a Dockerfile: nothing would tell its files from the user's.
    pub fn leave_out_cache(&mut self, cache: Option<&Path>) -> Result<(), Problem> {
        let Some(cache) = cache else { return Ok(()) };
        let real = real_path(cache).filter(|_| self.stages().is_some());
        if real.is_some() && real == real_path(&self.context) {
            return Err(cache_conflict(cache, "the build context"));
        }
        self.add_written(&[cache.to_owned()]);
        Ok(())
    }

    /// Name and digest of the recipe or the Dockerfile.
    pub fn source(&self) -> Option<SourceFile> {
        let (kind, name, digest) = match &self.made_by {
            DefinitionKind::Recipe(recipe) => {
                let digest = sha256(recipe.text().as_bytes());
                ("recipe", Path::new(recipe.origin()), digest)
            }
            DefinitionKind::Dockerfile(stages) => {
                let digest = sha256(stages.text().as_bytes());
                ("dockerfile", stages.file(), digest)
            }
        };
        Some(SourceFile {
            kind,
            name: name.file_name()?.to_string_lossy().into_owned(),
            digest,
        })
    }

    /// The repository and the commit of the definition; a built-in recipe has none.
    pub fn origin(&self) -> Origin {
        let variable = |name: &str| std::env::var(name).ok();
        self.folder().map_or_else(Origin::default, |folder| {
            Origin::of_folder(or_here(folder), variable)
        })
    }

    /// Returns true if one image without Windows inside serves all hosts.
    pub fn is_for_any_host(&self) -> Result<bool, BoxError> {
        let recipe = match &self.made_by {
            DefinitionKind::Recipe(recipe) => recipe,
            DefinitionKind::Dockerfile(stages) => {
                return Ok(stages.bases().into_iter().all(is_published_host_process));
            }
        };
        let base = recipe.base(&self.settings())?;
        Ok(if recipe.has_base_image() {
            is_published_host_process(&base)
        } else {
            is_host_process(&base)
        })
    }

    /// The Windows that the base's tag names, with a revision if the tag has one.
    pub fn windows_of_base(
        &self,
        registry: &BaseRegistry,
    ) -> Result<Option<WindowsVersion>, BoxError> {
        let base = match &self.made_by {
            DefinitionKind::Recipe(recipe) if recipe.has_base_image() => {
                recipe.base(&self.settings())?
            }
            DefinitionKind::Recipe(_) => return Ok(None),
            DefinitionKind::Dockerfile(stages) if stages.is_local(stages.base()) => {
                return Ok(None);
            }
            DefinitionKind::Dockerfile(stages) => stages.base().to_owned(),
        };
        Ok(registry.parse_dockerfile_name(&base)?.windows())
    }

    /// The images that it is built on and those that it copies files from, as it names them.
    pub(super) fn image_names(&self) -> Vec<String> {
        match &self.made_by {
            DefinitionKind::Recipe(recipe) => {
                let base = recipe.base(&self.settings()).ok();
                base.into_iter().collect()
            }
            DefinitionKind::Dockerfile(stages) => {
                let copied = stages.copied_images().map(|(_, name)| name);
                let names = stages.bases().into_iter().chain(copied);
                names.map(str::to_owned).collect()
            }
        }
    }

    /// Returns true if the image may contain the host's own version.
    pub(super) fn uses_host_version(&self) -> bool {
        let text = self.recipe().map(Recipe::text);
        text.is_some_and(|text| text.contains("host_build"))
    }

    /// The lock file of the recipe or the Dockerfile.
    pub(super) fn lock(&self) -> Result<Option<LockFile>, BoxError> {
        self.folder().map(LockFile::in_folder).transpose()
    }

    /// Path of the lock file, whether it exists or not.
    pub(super) fn lock_file(&self) -> Option<PathBuf> {
        Some(self.folder()?.join(LOCK_FILE))
    }

    fn folder(&self) -> Option<&Path> {
        match &self.made_by {
            DefinitionKind::Recipe(recipe) => recipe.folder(),
            DefinitionKind::Dockerfile(stages) => stages.file().parent(),
        }
    }

    pub(super) fn settings(&self) -> RecipeInputs<'_> {
        RecipeInputs {
            values: &self.values,
            context: &self.context,
        }
    }
}

/// The Dockerfile that an image argument names, and its folder; none if it names a recipe.
pub fn dockerfile_of(image: &str, file: Option<TextFile>) -> Option<(TextFile, PathBuf)> {
    let place = Path::new(image);
    if let Some(file) = file {
        return Some((file, place.to_owned()));
    }
    if recipes().iter().any(|recipe| recipe.name == image) {
        return None;
    }
    if place.is_dir() {
        let has_recipe = place.join("recipe.toml").is_file();
        let file = dockerfile_in(place).filter(|_| !has_recipe);
        return file.map(|file| (file, place.to_owned()));
    }
    let is_meant = is_dockerfile(place) || reads_like_a_dockerfile(place);
    is_meant.then(|| (TextFile::named(place), folder_of(place).to_owned()))
}

/// The recipe or Dockerfile in this folder that the recipe of an image argument hides.
fn hidden_definition(image: &str) -> Option<PathBuf> {
    if !recipes().iter().any(|recipe| recipe.name == image) {
        return dockerfile_in(Path::new(image)).map(|file| file.path().to_owned());
    }
    let place = Path::new(".").join(image);
    // A folder without one may be the context of the built-in recipe.
    let is_definition =
        place.is_file() || place.join("recipe.toml").is_file() || dockerfile_in(&place).is_some();
    is_definition.then_some(place)
}

/// The Dockerfile of a folder.
pub fn dockerfile_in(folder: &Path) -> Option<TextFile> {
    let mut files = DOCKERFILES.iter().map(|name| folder.join(name));
    files.find(|file| file.is_file()).map(TextFile::found)
}

/// Returns true if a file is TOML with the name of an image.
fn is_recipe_file(file: &TextFile) -> bool {
    let text = file.read().unwrap_or_default();
    let table: Option<toml::Table> = toml::from_str(&text).ok();
    table.is_some_and(|table| table.contains_key("name"))
}

/// Returns true if the content of a file is a Dockerfile, whatever its name.
fn reads_like_a_dockerfile(file: &Path) -> bool {
    let is_recipe = file.extension().is_some_and(|end| end == "toml");
    let text = || TextFile::named(file).read();
    !is_recipe && file.is_file() && text().is_ok_and(|text| has_from(&text))
}

/// Returns true if a file is a Dockerfile by its name, as Docker's tools and podman use them.
pub fn is_dockerfile(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    let name = name.to_string_lossy().to_lowercase();
    let is_other = [".dockerignore", ".md"]
        .iter()
        .any(|end| name.ends_with(end));
    let is_named = |own: &&str| {
        let rest = name.strip_prefix(own);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']))
            || name.ends_with(&format!(".{own}"))
    };
    !is_other && ["dockerfile", "containerfile"].iter().any(is_named)
}

/// Build arguments that no `ARG` declares, with the nearest known name.
fn unused_arguments(given: &[(String, String)], stages: &Stages) -> Vec<String> {
    if given.is_empty() {
        return Vec::new();
    }
    let known = DockerfileNames::read(stages.text()).arguments;
    let names = || known.iter().map(|(name, _)| name.as_str());
    let given = given.iter().map(|(name, _)| name);
    let unused = given.filter(|name| {
        // Predefined arguments, which no line has to declare.
        let is_everybodys = name.to_uppercase().ends_with("_PROXY")
            || ["TARGET", "BUILD", "SOURCE_DATE_EPOCH"]
                .iter()
                .any(|start| name.starts_with(start));
        !is_everybodys && !names().any(|known| known == name.as_str())
    });
    unused
        .map(|name| {
            let file = stages.file().display();
            let same = names().find(|known| known.eq_ignore_ascii_case(name));
            let meant = same.map(str::to_owned);
            let meant = meant.or_else(|| closest_match(name, names()));
            let meant = meant.map(|meant| format!(": did you mean {meant}?"));
            let meant = meant.unwrap_or_default();
            format!("unknown build argument {name}: no ARG of {file} has that name{meant}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use wincimg_common::progress::Silent;

    use super::*;

    #[test]
    fn names_of_dockerfiles_are_known() {
        for name in [
            "Dockerfile", "Dockerfile.windows", "app.Dockerfile", "Containerfile",
            "dockerfile-nano", "web.containerfile",
        ] {
            assert!(is_dockerfile(Path::new(name)), "{name}");
        }
        for name in [
            "Dockerfile.dockerignore",
            "Dockerfiles",
            "README.md",
            "Dockerfile.md",
        ] {
            assert!(!is_dockerfile(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn an_argument_in_another_case_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Dockerfile"), "ARG VERSION\nFROM a\n").unwrap();
        let input = BuildInput {
            image: folder.path().display().to_string(),
            ..BuildInput::default()
        };
        let definition = input.read(&Silent).unwrap();
        let given = [("version".to_owned(), "2".to_owned())];
        let warnings = unused_arguments(&given, definition.stages().unwrap());
        assert!(
            warnings[0].ends_with("did you mean VERSION?"),
            "{warnings:?}"
        );
    }

    #[test]
    fn an_input_has_words_for_all_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().display().to_string();
        let file = folder.path().join("Dockerfile.win");
        std::fs::write(&file, "FROM a AS b\nFROM c\n").unwrap();
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let place = StageReplacement::parse("ghcr.io/acme/b:1", Path::new(""));
        let input = BuildInput {
            image: image.clone(),
            values: Vec::new(),
            context: Some(folder.path().to_owned()),
            file: Some(TextFile::named(&file)),
            target: Some("1".to_owned()),
            stages: vec![("b".to_owned(), place)],
            arguments: pair("A", "1"),
            skipped_actions: vec!["Start".to_owned()],
            choco_feed: Some("https://feed.test/v2".to_owned()),
        };
        let words = input.to_words(&input.read(&Silent).unwrap()).join(" ");
        let file = file.display();
        assert_eq!(
            words,
            format!(
                "{image} --file {file} --context {image} --target 1 \
                 --stage b=ghcr.io/acme/b:1 --build-arg A=1 --skip-custom-action Start \
                 --choco-feed https://feed.test/v2"
            )
        );

        let recipe = BuildInput {
            image: "iis".to_owned(),
            values: pair("folder", "site"),
            context: Some("src".into()),
            ..BuildInput::default()
        };
        let words = recipe.to_words(&recipe.read(&Silent).unwrap()).join(" ");
        assert_eq!(words, "iis --context src --set folder=site");
        let other = BuildInput {
            image: "pause".to_owned(),
            values: Vec::new(),
            ..recipe
        };
        assert_eq!(other.to_words(&other.read(&Silent).unwrap()), ["pause"]);
    }

    #[test]
    fn a_folder_has_a_recipe_a_dockerfile_or_a_containerfile() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().to_str().unwrap();
        // Some file systems have one file for both cases of a name.
        let found = || {
            let (file, _) = dockerfile_of(image, None)?;
            file.path().canonicalize().ok()
        };
        assert_eq!(found(), None);
        for name in ["Containerfile", "dockerfile", "Dockerfile"] {
            let file = folder.path().join(name);
            std::fs::write(&file, "").unwrap();
            assert_eq!(found(), file.canonicalize().ok());
        }
        assert_eq!(hidden_definition("pause"), None);
        std::fs::write(folder.path().join("recipe.toml"), "").unwrap();
        assert_eq!(found(), None);
        let dockerfile = folder.path().join("Dockerfile");
        assert_eq!(hidden_definition(image), Some(dockerfile));
    }
}
