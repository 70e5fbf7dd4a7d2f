//! `wincimg recipe init`: creates a recipe.

use wincimg_common::files::{LARGEST_TEXT, or_here, read_text};
use wincimg_images::recipes;
use wincimg_oci::reference::is_repository;
use wincimg_recipe::starter::{Project, StarterRecipe, plain};

use super::convert::{Convert, refuse_overwriting};
use super::output::ReviewFormat;
use super::recipe_args::{DockerfileArgs, RecipeArgs};
use crate::cli::prelude::*;

const FILE: &str = "recipe.toml";

/// Settings common to every project below the folder.
const SHARED: &str = "Directory.Build.props";

/// Create a recipe and print the next commands
///
/// NAME/recipe.toml can be built at once; its comments show common keys, and `wincimg recipe schema`
/// lists all. With --dotnet the recipe packages the published output of a .NET project; with --from
/// it is converted from a Dockerfile. Both put the recipe next to their source.
#[derive(Debug, Args)]
#[command(
    next_display_order = 10,
    after_help = "Examples:\n  \
    wincimg recipe init shop\n  \
    wincimg recipe init --dotnet ./src/Shop.Web\n  \
    wincimg recipe init shop --from ./shop/Dockerfile --host-build 17763.973"
)]
pub(super) struct Init {
    /// Image name and, without --from and --dotnet, folder of the recipe [default: the current folder
    /// and its name]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Convert this Dockerfile
    #[arg(long, value_name = "DOCKERFILE", conflicts_with = "dotnet")]
    from: Option<PathBuf>,
    /// Create a recipe for this .NET project file or folder
    #[arg(long, value_name = "PROJECT")]
    dotnet: Option<PathBuf>,
    /// Overwrite an existing recipe
    #[arg(long)]
    force: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    hosts: HostArgs,
    // The last, because a help heading also applies to the arguments after it.
    #[command(flatten)]
    connection: BaseRegistryArgs,
}

impl Init {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        if let Some(dockerfile) = self.from.clone() {
            return self.convert(&dockerfile, session);
        }
        if let Some(project) = &self.dotnet {
            let (folder, file) = project_file(project)?;
            let name = match &self.name {
                Some(name) => checked(name)?,
                None => name_of(Path::new(&file).file_stem().map(Path::new)),
            };
            let read = read_project(&folder, &file)?;
            let start = read.start(&name, &typed(&folder));
            return self.write(&folder, &start);
        }
        let (folder, name) = match &self.name {
            Some(name) => (PathBuf::from(name), checked(name)?),
            None => {
                let here = fs::canonicalize(".").context("cannot read this folder")?;
                (PathBuf::from("."), name_of(here.file_name().map(Path::new)))
            }
        };
        if recipes().iter().any(|recipe| recipe.name == name) && self.name.is_some() {
            let problem =
                format!("{name:?} is a built-in recipe, which `wincimg build {name}` would use");
            return Err(
                Failure::usage(problem).hint(format!("choose another name, such as my-{name}"))
            );
        }
        self.write(&folder, &plain(&name))
    }

    fn write(&self, folder: &Path, start: &StarterRecipe) -> Result<CommandOutcome> {
        let file = folder.join(FILE);
        refuse_overwriting(&file, self.force)?;
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        write_result(Some(&file), |out| out.write_all(start.recipe.as_bytes()))?;
        let mut commands = start.before.clone();
        let hosts = self.hosts.to_words();
        let hosts = if hosts.is_empty() {
            vec!["--host-build".to_owned(), start.host.to_owned()]
        } else {
            hosts
        };
        let build = ["wincimg".to_owned(), "build".to_owned(), typed(folder)];
        commands.push(command_line(&[&build[..], &hosts].concat()));
        let answer = || json!({"file": file.display().to_string(), "next": commands});
        self.format.print(answer, |out| {
            writeln!(out, "wrote {}", file.display())?;
            writeln!(out, "next:")?;
            commands
                .iter()
                .try_for_each(|line| writeln!(out, "  {line}"))
        })
    }

    fn convert(self, dockerfile: &Path, session: &Session) -> Result<CommandOutcome> {
        let folder = if dockerfile.is_dir() {
            dockerfile
        } else {
            dockerfile.parent().unwrap_or(Path::new(""))
        };
        let name = self.name.as_deref().map(checked).transpose()?;
        let image = typed(folder);
        let file = (!dockerfile.is_dir()).then(|| dockerfile.to_owned());
        let convert = Convert {
            name,
            output: Some(folder.join(FILE)),
            force: self.force,
            arguments: Vec::new(),
            keep_history: false,
            format: match self.format {
                OutputFormat::Text => ReviewFormat::Text,
                OutputFormat::Json => ReviewFormat::Json,
            },
            recipe: RecipeArgs::of_dockerfile(image, self.hosts, self.connection),
            dockerfile: DockerfileArgs::of_file(file),
        };
        convert.run(session)
    }
}

/// Path of a folder for a command line that cannot be mistaken for a built-in recipe.
fn typed(folder: &Path) -> String {
    let text = folder.display().to_string();
    match text.as_str() {
        "" | "." => ".".to_owned(),
        text if text.starts_with(['.', '/']) || folder.is_absolute() => text.to_owned(),
        text => format!("./{text}"),
    }
}

fn checked(name: &str) -> Result<String> {
    if is_repository(name) {
        return Ok(name.to_owned());
    }
    let problem = format!(
        "invalid image name {}: expected lower-case letters, digits and single - _ . /",
        QuotedText(name)
    );
    let name = name_of(Some(Path::new(name)));
    Err(Failure::usage(problem).hint(format!("try wincimg recipe init {name}")))
}

/// The nearest valid image name.
fn name_of(file: Option<&Path>) -> String {
    let text = file.map(|name| name.to_string_lossy().to_lowercase());
    let text: String = text
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let words: Vec<&str> = text.split('-').filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return "image".to_owned();
    }
    words.join("-")
}

/// The folder of a project, and its file name.
fn project_file(path: &Path) -> Result<(PathBuf, String)> {
    let is_project = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("csproj" | "fsproj" | "vbproj"))
    };
    if !path.is_dir() {
        let name = path.file_name().and_then(|name| name.to_str());
        return match name.filter(|_| is_project(path)) {
            Some(name) => Ok((
                path.parent().unwrap_or(Path::new("")).to_owned(),
                name.to_owned(),
            )),
            None => Err(
                Failure::usage(format!("{} is not a .NET project", path.display()))
                    .hint("name a .csproj, .fsproj or .vbproj, or its folder"),
            ),
        };
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let found = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found: Vec<String> = found.filter(|name| is_project(Path::new(name))).collect();
    found.sort();
    match (found.pop(), found.first()) {
        (Some(name), None) => Ok((path.to_owned(), name)),
        (None, _) => Err(
            Failure::usage(format!("{} has no .NET project", path.display()))
                .hint("name a .csproj, .fsproj or .vbproj, or its folder"),
        ),
        (Some(last), Some(first)) => {
            let folder = path.display();
            let problem = format!("{folder} has several projects: {first}, …, {last}");
            let named = quote(&path.join(first).to_string_lossy());
            Err(Failure::usage(problem).hint(format!("name one: --dotnet {named}")))
        }
    }
}

fn read_project(folder: &Path, file: &str) -> Result<Project> {
    let path = folder.join(file);
    let text = read_text(&path, LARGEST_TEXT)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let whole = fs::canonicalize(or_here(folder));
    let whole = whole.unwrap_or_else(|_| folder.to_owned());
    let shared = whole
        .ancestors()
        .map(|above| above.join(SHARED))
        .find(|path| path.is_file())
        .and_then(|path| read_text(&path, LARGEST_TEXT).ok());
    Ok(Project::parse(file, &text, shared.as_deref())?)
}
