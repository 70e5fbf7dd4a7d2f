//! `wincimg recipe convert`: converts a Dockerfile to a recipe, or reports what prevents it.

use wincimg_common::files::{LARGEST_TEXT, TextFile, folder_of, read_text};
use wincimg_dockerfile::convert::{Conversion, ConversionError, obstacles};
use wincimg_dockerfile::lint::Severity;
use wincimg_dockerfile::stages::Stages;
use wincimg_engine::base_contents::Purpose;
use wincimg_engine::build::PlannedBuild;
use wincimg_engine::definition::dockerfile_in;
use wincimg_engine::origin::remote_url;
use wincimg_engine::plans::{BuildRequest, PlannedImage};
use wincimg_images::recipes;

use super::build::image_name;
use super::error::NEEDS_WINDOWS;
use super::output::{ReviewFormat, check_distinct, write_annotations};
use super::recipe_args::{DockerfileArgs, RecipeArgs, build_argument, build_arguments};
use crate::cli::prelude::*;
use crate::report::Annotation;

/// Convert a Dockerfile to a recipe
///
/// The recipe builds the same image, layer by layer, on the base of the same host. If the
/// Dockerfile requires Windows, the lines that do are listed instead.
#[derive(Debug, Args)]
#[command(
    next_display_order = 10,
    mut_arg("image", |arg| arg.help("A Dockerfile, or a folder that contains one")),
    after_help = "Examples:\n  \
    wincimg recipe convert Dockerfile --host-build 17763.973\n  \
    wincimg recipe convert ./app --host-build 17763.973 \\\n      \
    --output ./app/recipe.toml\n  \
    wincimg recipe convert ./app --host-build 17763.973 \\\n      \
    --stage build=./app/out --build-arg VERSION=1.4\n\n\
    Exit code 0: the recipe is written. 1: some lines cannot be converted; each is listed.\n\
    4: all of those run on Windows."
)]
pub(super) struct Convert {
    /// Recipe name [default: the repository's, or the name of the Dockerfile's folder]
    #[arg(long, value_name = "NAME", value_parser = image_name)]
    pub(super) name: Option<String>,
    /// Write the recipe to this file; paths in it are relative to its folder
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    pub(super) force: bool,
    /// Keep the image's history: an entry for each instruction, also for those without a layer
    #[arg(long, hide_short_help = true)]
    pub(super) keep_history: bool,
    /// Set a build argument; without a value, take it from the environment (repeatable)
    #[arg(long = "build-arg", value_name = "KEY[=VALUE]", value_parser = build_argument)]
    pub(super) arguments: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ReviewFormat,
    // The last two, because a help heading also applies to the arguments after it.
    #[command(flatten)]
    pub(super) recipe: RecipeArgs,
    #[command(flatten)]
    pub(super) dockerfile: DockerfileArgs,
}

impl Convert {
    pub(super) fn run(mut self, session: &Session) -> Result<CommandOutcome> {
        if let Some(file) = &self.output {
            refuse_overwriting(file, self.force)?;
        }
        if matches!(self.format, ReviewFormat::Json | ReviewFormat::Gitlab) {
            check_distinct(None, &self.output)?;
        }
        let arguments = build_arguments(&self.arguments);
        let image = &self.recipe.image;
        let place = Path::new(image);
        let is_recipe = || recipes().iter().any(|recipe| recipe.name == *image);
        // The folder may have a recipe already, and what is missing is not a recipe's name.
        self.dockerfile.found = dockerfile_in(place)
            .or_else(|| (!place.exists() && !is_recipe()).then(|| TextFile::named(place)));
        let (request, hosts) = self.recipe.read(&self.dockerfile, &arguments, session)?;
        let Some(stages) = request.definition.stages() else {
            let problem = "the input is already a recipe: expected a Dockerfile";
            return Err(Failure::usage(problem).hint("name a Dockerfile, or a folder with one"));
        };
        let ctx = self.recipe.online(session)?;
        let planned = registry_args::run(async {
            // All obstacles count, and not only the first that a build would stop at.
            let mut planned = request.plan(request.downloads(&ctx)?, &ctx).await?;
            planned.finish(Purpose::Layers, &ctx).await?;
            Ok(planned)
        });
        let mut needs_windows = false;
        let converted = match planned {
            Ok(planned) => self.convert(&request, stages, &planned)?,
            Err(failure) => match failure.cause() {
                Some(error) => {
                    needs_windows = failure.needs_windows();
                    Err(obstacles(error, stages.file()))
                }
                None => return Err(failure),
            },
        };
        match converted {
            Ok(recipe) => self.print(&recipe, &self.recipe.base_words(&hosts), session),
            Err(obstacles) => {
                self.refuse(&obstacles, session)?;
                Ok(if needs_windows {
                    CommandOutcome::Code(NEEDS_WINDOWS)
                } else {
                    CommandOutcome::No
                })
            }
        }
    }

    /// The recipe that the Dockerfile converts to for all hosts, or what prevents it.
    fn convert(
        &self,
        request: &BuildRequest,
        stages: &Stages,
        planned: &PlannedBuild<'_>,
    ) -> Result<Result<String, Vec<ConversionError>>> {
        let folder = match &self.output {
            Some(file) => file.parent().unwrap_or(Path::new("")),
            None => request.definition.context.as_path(),
        };
        let of_repository = repository_name(stages.file());
        let name = self.name.as_deref().or(of_repository.as_deref());
        let convert = |image: &PlannedImage| {
            let conversion = Conversion {
                name: name.unwrap_or(request.definition.name()),
                plan: &image.plan,
                inside: image.base.inside.as_ref(),
                looked: image.stages.depends_on(stages.base()),
                dockerfile: stages.file(),
                base: stages.base(),
                base_registry: &request.base_registry,
                folder,
                downloads: planned.downloads.files(),
                keeps_history: self.keep_history,
            };
            conversion.recipe()
        };
        let texts: Vec<_> = planned.images.iter().map(convert).collect();
        if texts.windows(2).any(|pair| pair[0] != pair[1]) {
            let problem = "the Dockerfile converts to a different recipe for each host";
            return Err(Failure::no(problem).hint("convert it for one of them: --host-build B.R"));
        }
        Ok(texts.into_iter().next().unwrap_or(Ok(String::new())))
    }

    fn print(&self, recipe: &str, hosts: &[String], session: &Session) -> Result<CommandOutcome> {
        if let Some(file) = &self.output {
            write_result(Some(file), |out| out.write_all(recipe.as_bytes()))?;
            let file = file.display().to_string();
            let build = ["wincimg", "build", &file].into_iter();
            let words: Vec<&str> = build.chain(hosts.iter().map(String::as_str)).collect();
            session.note(format_args!(
                "wrote {file}; build it with `{}`, for these hosts or others",
                command_line(&words)
            ));
        }
        match self.format {
            ReviewFormat::Gitlab => {
                write_result(None, |out| write_annotations(self.format, &[], out))?;
            }
            ReviewFormat::Text | ReviewFormat::Github if self.output.is_some() => {}
            ReviewFormat::Text | ReviewFormat::Github => {
                write_result(None, |out| out.write_all(recipe.as_bytes()))?;
            }
            ReviewFormat::Json => write_result(None, |out| {
                let file = self.output.as_ref().map(|file| file.display().to_string());
                let nothing: [ConversionError; 0] = [];
                write_json(
                    &json!({ "recipe": recipe, "file": file, "obstacles": nothing }),
                    out,
                )
            })?,
        }
        Ok(CommandOutcome::Yes)
    }

    fn refuse(&self, obstacles: &[ConversionError], session: &Session) -> Result<()> {
        write_result(None, |out| match self.format {
            ReviewFormat::Github | ReviewFormat::Gitlab => {
                let all: Vec<_> = obstacles.iter().map(annotation).collect();
                write_annotations(self.format, &all, out)
            }
            ReviewFormat::Text => obstacles
                .iter()
                .try_for_each(|obstacle| write_obstacle(obstacle, out)),
            ReviewFormat::Json => write_json(
                &json!({ "recipe": null, "file": null, "obstacles": obstacles }),
                out,
            ),
        })?;
        let lines = count(obstacles.len(), "line");
        session.note(format_args!("{lines} cannot be converted"));
        Ok(())
    }
}

/// Name of the repository that a Dockerfile is at the top of, after its remote: the folder of a
/// clone may have any name.
fn repository_name(dockerfile: &Path) -> Option<String> {
    let folder = folder_of(dockerfile);
    let config = read_text(&folder.join(".git").join("config"), LARGEST_TEXT).ok()?;
    let url = remote_url(&config)?;
    let last = url.trim_end_matches('/').rsplit(['/', ':', '\\']).next()?;
    let name = last.strip_suffix(".git").unwrap_or(last).to_lowercase();
    image_name(&name).ok()
}

fn annotation(obstacle: &ConversionError) -> Annotation<'_> {
    let line = obstacle.line.unwrap_or(1);
    Annotation {
        file: obstacle.file.trim_start_matches("./"),
        line,
        last_line: line,
        name: "convert",
        severity: Severity::Error,
        message: obstacle.why.as_str().into(),
        text: &obstacle.command,
    }
}

fn write_obstacle(obstacle: &ConversionError, out: &mut dyn Write) -> io::Result<()> {
    let (file, why) = (UntrustedText(&obstacle.file), UntrustedText(&obstacle.why));
    let command = UntrustedText(&obstacle.command);
    match obstacle.line {
        Some(line) => writeln!(out, "{file}:{line}: {why}\n  {line} | {command}")?,
        None if obstacle.command.is_empty() => writeln!(out, "{file}: {why}")?,
        None => writeln!(out, "{file}: {why}\n  {command}")?,
    }
    if let Some(hint) = &obstacle.help {
        writeln!(out, "  hint: {}", UntrustedText(hint))?;
    }
    Ok(())
}

/// Rejects an output file that exists, and a link to a missing file, which would be followed: a
/// checkout could have something written out of its folder.
pub(super) fn refuse_overwriting(file: &Path, force: bool) -> Result<()> {
    if fs::symlink_metadata(file).is_err() {
        return Ok(());
    }
    if !file.exists() {
        let problem = format!("{} is a link to a missing file", file.display());
        return Err(Failure::usage(problem).hint("remove the link, or name another file"));
    }
    if force {
        return Ok(());
    }
    let problem = format!("{} already exists", file.display());
    Err(Failure::usage(problem).hint("add --force to replace it, or name another file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_obstacle_has_the_number_of_its_line_and_a_hint() {
        let mut obstacle = ConversionError {
            file: "Dockerfile".to_owned(),
            line: Some(7),
            command: "RUN msbuild".to_owned(),
            why: "msbuild requires Windows".to_owned(),
            help: Some("build it elsewhere".to_owned()),
        };
        let text = |obstacle: &ConversionError| {
            let mut out = Vec::new();
            write_obstacle(obstacle, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let expected = "Dockerfile:7: msbuild requires Windows\n  7 | RUN msbuild\n  \
                        hint: build it elsewhere\n";
        assert_eq!(text(&obstacle), expected);
        obstacle.line = None;
        assert_eq!(text(&obstacle).lines().nth(1), Some("  RUN msbuild"));
        obstacle.command.clear();
        assert_eq!(
            text(&obstacle).lines().nth(1),
            Some("  hint: build it elsewhere")
        );
    }
}
