//! A fleet's file: a TOML list of images, with what all of them have in common at its top.

mod tags;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use self::tags::{check_tags, filled};
use super::{Entry, Fleet};
use crate::cluster::selector::LabelSelector;
use crate::diagnose::{Blame, Diagnose, Excerpt, line_and_column};
use crate::dockerfile::Outline;
use crate::engine::design::{Design, Named, dockerfile_of};
use crate::files::{LARGEST_TEXT, like, read_text};
use crate::layer::Compression;
use crate::oci::base::Match;
use crate::oci::document::Flavour;
use crate::oci::prefix::RegistryPrefix;
use crate::oci::reference::is_repository;
use crate::progress::Silent;
use crate::recipe::{mistake, shipped};

/// A fleet of images: each for all Windows builds among its nodes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(title = "wincimg fleet")]
struct FleetFile {
    /// Where images are pushed to, unless they say otherwise: HOST[:PORT][/PREFIX].
    #[schemars(with = "Option<String>")]
    registry: Option<Spanned<String>>,
    /// The tag of each image's index. ${name} is the image's name, other names are those of its set
    /// and build-arg.
    #[schemars(with = "Option<String>")]
    tag: Option<Spanned<String>>,
    /// Which nodes images are for: a label selector, such as pool=web,!spot. All nodes without one.
    #[schemars(with = "Option<String>")]
    selector: Option<Spanned<String>>,
    /// Where base images come from.
    #[schemars(with = "Option<String>")]
    base_registry: Option<Spanned<String>>,
    /// How close base images have to be to the hosts.
    #[serde(rename = "match")]
    matched: Option<MatchKey>,
    /// Values for variables of recipes that have them.
    #[serde(default)]
    set: BTreeMap<String, Scalar>,
    /// Values for build arguments of Dockerfiles that have them.
    #[serde(default)]
    build_arg: BTreeMap<String, Scalar>,
    /// Labels of all images.
    #[serde(default)]
    label: BTreeMap<String, Scalar>,
    /// How layers are compressed.
    compression: Option<CompressionKey>,
    /// The format of manifests; the base's without one.
    manifest_format: Option<FormatKey>,
    /// The images.
    #[serde(default)]
    image: Vec<ImageTable>,
}

/// One image of a fleet.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ImageTable {
    /// What is built: a recipe that ships, a recipe file, a Dockerfile, or a folder with one of them.
    #[schemars(with = "String")]
    build: Spanned<String>,
    /// The image's name; the recipe's without one.
    #[schemars(with = "Option<String>")]
    name: Option<Spanned<String>>,
    /// Where it is pushed to: HOST[:PORT][/PREFIX].
    #[schemars(with = "Option<String>")]
    registry: Option<Spanned<String>>,
    /// The tag of its index.
    #[schemars(with = "Option<String>")]
    tag: Option<Spanned<String>>,
    /// Which nodes it is for.
    #[schemars(with = "Option<String>")]
    selector: Option<Spanned<String>>,
    /// Where its base comes from.
    #[schemars(with = "Option<String>")]
    base_registry: Option<Spanned<String>>,
    /// How close its base has to be to the hosts.
    #[serde(rename = "match")]
    matched: Option<MatchKey>,
    /// Values for the recipe's variables.
    #[serde(default)]
    set: BTreeMap<String, Scalar>,
    /// The folder that context files are in; a recipe's is that of this file, a Dockerfile's its own.
    context: Option<PathBuf>,
    /// The Dockerfile, where the folder has it under another name.
    file: Option<PathBuf>,
    /// The Dockerfile's stage; the last without one.
    target: Option<String>,
    /// Folders in place of what stages of the Dockerfile would make.
    #[serde(default)]
    stage: BTreeMap<String, PathBuf>,
    /// Values for the Dockerfile's build arguments.
    #[serde(default)]
    build_arg: BTreeMap<String, Scalar>,
    /// Labels of the image.
    #[serde(default)]
    label: BTreeMap<String, Scalar>,
    /// How its layers are compressed.
    compression: Option<CompressionKey>,
    /// The format of its manifests.
    manifest_format: Option<FormatKey>,
}

/// A value; a number and true or false are texts like any other.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a string, a whole number, true or false")]
enum Scalar {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum MatchKey {
    /// The nearest revision that starts on it.
    Nearest,
    /// Its own revision alone.
    Exact,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CompressionKey {
    /// What every runtime reads.
    Gzip,
    /// Smaller and faster.
    Zstd,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FormatKey {
    /// Docker's.
    Docker,
    /// OCI's.
    Oci,
}

/// The JSON schema of fleets' files, for editors.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(FleetFile)
}

/// Why a fleet's file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Nobody can read it.
    #[error("cannot read the fleet {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Something in it cannot be meant.
    #[error("{origin}:{line}:{column}: {problem}")]
    Invalid {
        /// The file.
        origin: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What is wrong.
        problem: String,
        /// The line, with a mark below the word.
        excerpt: Box<Excerpt>,
        /// What was probably meant.
        hint: Option<String>,
    },
    /// There is nothing in it.
    #[error("{origin} lists no image")]
    Empty {
        /// The file.
        origin: String,
    },
}

impl Diagnose for FleetError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { path, .. } => {
                let meant = like(path)?;
                Some(format!("did you mean {}?", meant.display()))
            }
            Self::Invalid { hint, .. } => hint.clone(),
            Self::Empty { .. } => {
                Some("add one: [[image]], and below it build = \"pause\"".to_owned())
            }
        }
    }

    fn excerpt(&self) -> Option<Excerpt> {
        match self {
            Self::Invalid { excerpt, .. } => Some((**excerpt).clone()),
            Self::Unreadable { .. } | Self::Empty { .. } => None,
        }
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Unreadable { .. } => Blame::Circumstances,
            Self::Invalid { .. } | Self::Empty { .. } => Blame::Request,
        }
    }
}

/// A file's text, for errors that say where in it something is.
struct Origin<'a> {
    name: String,
    text: &'a str,
}

impl Origin<'_> {
    fn error(&self, offset: usize, problem: impl fmt::Display) -> FleetError {
        let (line, column) = line_and_column(self.text, offset);
        FleetError::Invalid {
            origin: self.name.clone(),
            line,
            column,
            problem: problem.to_string(),
            excerpt: Box::new(Excerpt::at(self.text, offset)),
            hint: None,
        }
    }

    fn line(&self, offset: usize) -> usize {
        line_and_column(self.text, offset).0
    }

    /// A text of the file as what it stands for.
    fn parsed<T>(&self, text: &Spanned<String>) -> Result<T, FleetError>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let parsed = text.get_ref().parse();
        parsed.map_err(|error| self.error(text.span().start, error))
    }
}

impl FleetError {
    fn with_hint(mut self, said: String) -> Self {
        if let Self::Invalid { hint, .. } = &mut self {
            *hint = Some(said);
        }
        self
    }
}

impl Fleet {
    /// Reads a fleet's file. Paths in it are relative to its folder.
    pub fn read(path: &Path) -> Result<Self, FleetError> {
        let text = read_text(path, LARGEST_TEXT).map_err(|source| FleetError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::from_text(&path.display().to_string(), &text, folder)
    }

    /// Reads a fleet's text as if it stood in a file of that name in a folder.
    pub fn from_text(name: &str, text: &str, folder: &Path) -> Result<Self, FleetError> {
        let origin = Origin {
            name: name.to_owned(),
            text,
        };
        let file: FleetFile = toml::from_str(text).map_err(|error| {
            let found = mistake(text, &error);
            let told = origin.error(found.offset, found.problem);
            match found.hint {
                Some(hint) => told.with_hint(hint),
                None => told,
            }
        })?;
        if file.image.is_empty() {
            let origin = origin.name;
            return Err(FleetError::Empty { origin });
        }
        let mut entries = Vec::with_capacity(file.image.len());
        for image in &file.image {
            entries.push(entry(&file, image, folder, &origin)?);
        }
        check_tags(&file, &entries, &origin)?;
        Ok(Self {
            file: origin.name,
            entries,
        })
    }
}

/// One image with what the top of the file says of all.
fn entry(
    file: &FleetFile,
    image: &ImageTable,
    folder: &Path,
    origin: &Origin<'_>,
) -> Result<Entry, FleetError> {
    let start = image.build.span().start;
    let Some(registry) = image.registry.as_ref().or(file.registry.as_ref()) else {
        let told = origin.error(start, "nothing says where this image is pushed to");
        return Err(told.with_hint(
            "say it for all images at the top: registry = \"HOST[:PORT][/PREFIX]\"".to_owned(),
        ));
    };
    let prefix: RegistryPrefix = origin.parsed(registry)?;
    prefix
        .check_for_pushes()
        .map_err(|error| origin.error(registry.span().start, error))?;
    if let Some(name) = &image.name
        && !is_repository(name.get_ref())
    {
        let expected = "expected lower-case letters, digits and single - _ . /";
        let problem = format!("invalid name {:?}: {expected}", name.get_ref());
        return Err(origin.error(name.span().start, problem));
    }
    let mut named = named(image, folder);
    let design = named.read(&Silent);
    if let Ok(design) = &design {
        add_shared(file, &mut named, design);
    }
    let name = match &image.name {
        Some(name) => Some(name.get_ref().clone()),
        None => design.ok().map(|design| design.name().to_owned()),
    };
    let tag = match image.tag.as_ref().or(file.tag.as_ref()) {
        Some(tag) => filled(tag, name.as_deref(), &named, origin)?,
        None => "latest".to_owned(),
    };
    let selector = image.selector.as_ref().or(file.selector.as_ref());
    let selector: Option<LabelSelector> = selector.map(|text| origin.parsed(text)).transpose()?;
    let base_registry = image.base_registry.as_ref().or(file.base_registry.as_ref());
    let base_registry = base_registry.map(|text| origin.parsed(text)).transpose()?;
    let compression = image.compression.or(file.compression);
    let flavour = image.manifest_format.or(file.manifest_format);
    if let (Some(CompressionKey::Zstd), Some(FormatKey::Docker)) = (compression, flavour) {
        let problem = "Docker's manifests have no type for layers in zstd";
        let hint = "write compression = \"gzip\", or manifest-format = \"oci\"".to_owned();
        return Err(origin.error(start, problem).with_hint(hint));
    }
    let labels = file.label.iter().chain(&image.label);
    Ok(Entry {
        line: origin.line(start),
        build: image.build.get_ref().clone(),
        named,
        registry: prefix,
        name,
        tag,
        selector,
        base_registry,
        matched: match image.matched.or(file.matched) {
            Some(MatchKey::Exact) => Match::Exact,
            Some(MatchKey::Nearest) | None => Match::Nearest,
        },
        labels: labels
            .map(|(key, value)| (key.clone(), value.to_string()))
            .collect(),
        compression: match compression {
            Some(CompressionKey::Zstd) => Compression::Zstd,
            Some(CompressionKey::Gzip) | None => Compression::Gzip,
        },
        flavour: flavour.map(|flavour| match flavour {
            FormatKey::Docker => Flavour::Docker,
            FormatKey::Oci => Flavour::Oci,
        }),
    })
}

/// What is built, with paths from the file's folder.
fn named(image: &ImageTable, folder: &Path) -> Named {
    let build = image.build.get_ref();
    let is_shipped = shipped().iter().any(|recipe| recipe.name == build);
    let place = if is_shipped {
        build.clone()
    } else {
        folder.join(build).display().to_string()
    };
    let file = image.file.as_ref().map(|file| folder.join(file));
    let context = image.context.as_ref().map(|context| folder.join(context));
    let is_recipe = dockerfile_of(&place, file.clone()).is_none();
    let here = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let stages = image.stage.iter();
    Named {
        image: place,
        values: pairs(&image.set),
        context: context.or_else(|| is_recipe.then(|| here.to_owned())),
        file,
        target: image.target.clone(),
        stages: stages
            .map(|(name, stage)| (name.clone(), folder.join(stage)))
            .collect(),
        arguments: pairs(&image.build_arg),
    }
}

fn pairs(table: &BTreeMap<String, Scalar>) -> Vec<(String, String)> {
    let pairs = table.iter();
    pairs
        .map(|(name, value)| (name.clone(), value.to_string()))
        .collect()
}

/// Adds the values that the top of the file has for all: those that this image has a use for, and no
/// other value.
fn add_shared(file: &FleetFile, named: &mut Named, design: &Design) {
    let add = |to: &mut Vec<(String, String)>, from, is_known: &dyn Fn(&str) -> bool| {
        for (name, value) in pairs(from) {
            if is_known(&name) && to.iter().all(|(own, _)| *own != name) {
                to.push((name, value));
            }
        }
    };
    match (design.recipe(), design.stages()) {
        (Some(recipe), _) => {
            let is_known = |name: &str| recipe.variables().any(|variable| variable.name == name);
            add(&mut named.values, &file.set, &is_known);
        }
        (None, Some(stages)) => {
            let outline = Outline::read(stages.file()).unwrap_or_default();
            let is_known = |name: &str| outline.arguments.iter().any(|(known, _)| known == name);
            add(&mut named.arguments, &file.build_arg, &is_known);
        }
        (None, None) => {}
    }
}
