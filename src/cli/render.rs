//! `wincimg recipe render`: writes the Dockerfile of an image and its build context.

use wincimg_dockerfile::{ContextEntry, DOCKERFILE, RenderedDockerfile, render};
use wincimg_engine::base_contents::Purpose;
use wincimg_engine::build::plans;
use wincimg_engine::downloads::LockMode;
use wincimg_engine::engine_choice::Engine;
use wincimg_engine::plans::PlannedImage;

use super::recipe_args::{DockerfileArgs, RecipeArgs};
use crate::cli::prelude::*;

/// Render an image's Dockerfile and build context
///
/// Every value is quoted for its place, and commands run in exec form, without a shell.
#[derive(Debug, Args)]
#[command(
    next_display_order = 10,
    mut_arg("image", |arg| arg.help(
        "A built-in recipe, a recipe file, or a folder that contains one"
    )),
    after_help = "Examples:\n  \
    wincimg recipe render pause --host-build 17763.973\n  \
    wincimg recipe render iis --host-build 17763.973 \\\n      \
    --set folder=site --output ./build\n  \
    docker build ./build\n\n\
    Without --output the Dockerfile goes to stdout. With several hosts, DIR gets a folder for each."
)]
pub(super) struct Render {
    /// Write the Dockerfile and its context to this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Overwrite the output of an earlier run
    #[arg(long, requires = "output")]
    force: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    // The last, because a help heading also applies to the arguments after it.
    #[command(flatten)]
    recipe: RecipeArgs,
}

/// A Dockerfile, and its folder if it was written to one.
struct RenderedImage {
    image: PlannedImage,
    rendered: RenderedDockerfile,
    folder: Option<PathBuf>,
}

impl Render {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        self.recipe.refuse_dockerfile()?;
        let options = DockerfileArgs::default();
        let (mut request, _) = self.recipe.read(&options, &[], session)?;
        request.engine = Some(Engine::Docker);
        if self.output.is_none() {
            request.downloads = LockMode::Offline;
        }
        let ctx = self.recipe.online(session)?;
        let images = registry_args::run(async {
            let planning = plans(&request, Purpose::Dockerfile, None, &ctx);
            Ok(planning.await?.images)
        })?;
        let several = images.len() > 1;
        if several && self.output.is_none() && self.format == OutputFormat::Text {
            return Err(Failure::usage(format!(
                "cannot print {} Dockerfiles to stdout: each host has its own",
                images.len()
            ))
            .hint("write them to folders with --output DIR, or print them with --format json"));
        }
        // All of them are made before any is written.
        let written = images
            .into_iter()
            .map(|image| {
                Ok(RenderedImage {
                    rendered: render(&image.plan, image.base.inside.as_ref())?,
                    folder: self.folder(&image, several),
                    image,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        for image in &written {
            if let Some(folder) = &image.folder {
                image.rendered.write(folder, self.force)?;
            }
        }
        for note in written.iter().filter_map(bare_program) {
            session.note(note);
        }
        self.print(&written)
    }

    fn folder(&self, image: &PlannedImage, several: bool) -> Option<PathBuf> {
        let folder = self.output.as_ref()?;
        Some(if several {
            folder.join(image.plan.host())
        } else {
            folder.clone()
        })
    }

    fn print(&self, written: &[RenderedImage]) -> Result<CommandOutcome> {
        let answer = || json!({"images": written.iter().map(as_json).collect::<Vec<_>>()});
        self.format.print(answer, |out| {
            written
                .iter()
                .try_for_each(|written| match &written.folder {
                    Some(folder) => writeln!(out, "{}", folder.join(DOCKERFILE).display()),
                    None => out.write_all(written.rendered.dockerfile.as_bytes()),
                })
        })
    }
}

/// Warning for a program's path under `BuildKit`, by the rule of the lint rule `args-escaped`.
fn bare_program(written: &RenderedImage) -> Option<String> {
    let plan = &written.image.plan;
    plan.cmd.as_ref()?;
    let words = plan.entrypoint.as_ref().or(plan.cmd.as_ref())?;
    let program = words.first().filter(|word| word.contains([' ', '\t']))?;
    Some(format!(
        "an image built by BuildKit passes {} to Windows without quotes, so the path ends at its first \
         space; Docker's builder for Windows and `wincimg build` quote it",
        QuotedText(program)
    ))
}

fn as_json(written: &RenderedImage) -> Value {
    let (image, rendered) = (&written.image, &written.rendered);
    let context: Vec<_> = rendered.context.iter().map(ContextEntry::summary).collect();
    json!({
        "host_build": image.plan.host_build,
        "os_version": image.base.version_text(),
        "base": {
            "reference": image.base.label(),
            "digest": image.base.digest().to_string(),
        },
        "dockerfile": rendered.dockerfile,
        "context": context,
        "output": written.folder.as_ref().map(|folder| folder.display().to_string()),
    })
}
