//! `wincimg lint`: finds mistakes in Dockerfiles for Windows, and prints fixes.

mod base;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use wincimg_dockerfile::has_from;
use wincimg_dockerfile::lint::{
    BaseShell, LintOptions, RecipeAlternative, Severity, base_images, lint, recipe_alternatives,
};
use wincimg_inspect::bases::parse_location;
use wincimg_oci::store::Location;
use wincimg_windows::compat::HostBuild;
use wincimg_windows::version::WindowsVersion;

use super::command_context::{Session, colour_on};
use super::error::Failure;
use super::output::write_result;
use super::registry_args::{self, RegistryArgs};
use super::{CommandOutcome, complete, input};
use crate::report::{LintedFile, write_lint_json, write_lint_sarif, write_lint_text};

/// Find mistakes in Dockerfiles for Windows, with fixes
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg lint Dockerfile\n  \
    wincimg lint Dockerfile --shell powershell --host-build 17763.973 --format sarif\n  \
    wincimg lint Dockerfile --base repo.mylan.k8s:8888/team/base:1.4\n  \
    wincimg lint Dockerfile --resolve\n\n\
    Exit code 0: no errors. 1: at least one error; warnings do not count.")]
pub(super) struct Lint {
    /// Dockerfiles; - reads stdin
    #[arg(value_name = "DOCKERFILE", required = true, add = complete::dockerfiles())]
    dockerfiles: Vec<PathBuf>,
    /// Take the shell and version from this base image: a reference, oci:DIR or docker-archive:FILE
    #[arg(long, value_name = "IMAGE", value_parser = parse_location, conflicts_with = "shell", add = complete::images())]
    base: Option<Location>,
    /// Shell that the base images set [default: known for Microsoft's and Docker's official images]
    #[arg(long, value_enum)]
    shell: Option<BaseShell>,
    /// Read the shells and versions of the base images from their registries
    #[arg(long, conflicts_with_all = ["shell", "base"])]
    resolve: bool,
    /// Build and revision of the host that the image is for
    #[arg(long, value_name = "B.R")]
    host_build: Option<WindowsVersion>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: LintFormat,
    #[command(flatten)]
    registry: RegistryArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LintFormat {
    Text,
    Json,
    Sarif,
}

impl Lint {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome, Failure> {
        let texts = self
            .dockerfiles
            .iter()
            .map(|path| Ok((path.display().to_string(), read(path)?)))
            .collect::<Result<Vec<(String, String)>, Failure>>()?;
        let options = self.options(session, &texts)?;
        let offers: Vec<(String, RecipeAlternative)> = texts
            .iter()
            .flat_map(|(name, text)| {
                let offers = recipe_alternatives(text, &options).into_iter();
                offers.map(|offer| (name.clone(), offer))
            })
            .collect();
        let files: Vec<LintedFile> = texts
            .into_iter()
            .map(|(file, text)| LintedFile {
                findings: lint(&text, &options),
                file,
                text,
            })
            .collect();
        write_result(None, |out| match self.format {
            LintFormat::Text => write_lint_text(&files, colour_on(&io::stdout()), out),
            LintFormat::Json => write_lint_json(&files, out),
            LintFormat::Sarif => write_lint_sarif(&files, out),
        })?;
        let count = |severity: Severity| {
            let findings = files.iter().flat_map(|linted| &linted.findings);
            findings
                .filter(|finding| finding.severity == severity)
                .count()
        };
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        session.note(format_args!(
            "{} and {} in {}",
            counted(errors, "error"),
            counted(warnings, "warning"),
            counted(files.len(), "file")
        ));
        for (name, offer) in &offers {
            session.note(format_args!(
                "{name}: a recipe's {} can replace {} without Windows",
                offer.key,
                on_lines(&offer.lines)
            ));
        }
        Ok(if errors == 0 {
            CommandOutcome::Yes
        } else {
            CommandOutcome::No
        })
    }

    /// Facts besides the texts; uses a registry only on request.
    fn options(
        &self,
        session: &Session,
        texts: &[(String, String)],
    ) -> Result<LintOptions, Failure> {
        let host = self.host_build.map(HostBuild::new);
        let mut options = LintOptions {
            shell: self.shell,
            host,
            ..LintOptions::default()
        };
        if self.base.is_none() && !self.resolve {
            return Ok(options);
        }
        let registry = self.registry.connect(super::progress::display(session))?;
        if let Some(location) = &self.base {
            let facts = registry_args::run(base::facts(location, &registry, host))?;
            if !facts.is_windows {
                let problem = anyhow!("{location} is not a Windows image");
                return Err(Failure::usage(problem)
                    .hint("set --base to the image in the Dockerfile's FROM"));
            }
            options.base = Some(facts);
            return Ok(options);
        }
        let images: BTreeSet<String> = texts
            .iter()
            .flat_map(|(_, text)| base_images(text))
            .collect();
        options.bases = registry_args::run(async {
            let mut bases = HashMap::new();
            for image in images {
                let facts = match image.parse() {
                    Ok(location) => base::facts(&location, &registry, host).await,
                    Err(error) => Err(Failure::from(error)),
                };
                match facts {
                    Ok(facts) => {
                        bases.insert(image, facts);
                    }
                    Err(failure) => session.warn(format_args!(
                        "cannot read {image}, so only its name is used: {}",
                        failure.in_one_line()
                    )),
                }
            }
            Ok(bases)
        })?;
        Ok(options)
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = input::read_bytes(path)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::operation(anyhow!(
            "{} is not a Dockerfile: byte {at} is not UTF-8",
            path.display()
        ))
        .hint("save it as UTF-8; some Windows editors and PowerShell's > write UTF-16")
    })?;
    let is_toml = path
        .extension()
        .is_some_and(|extension| extension == "toml")
        || toml::from_str::<toml::Table>(&text).is_ok_and(|table| !table.is_empty());
    if is_toml {
        let problem = anyhow!("{} is not a Dockerfile: it is TOML", path.display());
        return Err(Failure::operation(problem).hint(format!(
            "check a recipe with: wincimg build {} --dry-run",
            path.display()
        )));
    }
    if !has_from(&text) {
        // Printing no findings would look like a pass.
        let problem = anyhow!("{} is not a Dockerfile: it has no FROM", path.display());
        return Err(
            Failure::operation(problem).hint("check the file's name and the spelling of FROM")
        );
    }
    Ok(text)
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// `line 4`, or `lines 4, 7 and 9`.
fn on_lines(lines: &[usize]) -> String {
    let numbers: Vec<String> = lines.iter().map(ToString::to_string).collect();
    match numbers.split_last() {
        Some((last, [])) => format!("line {last}"),
        Some((last, others)) => format!("lines {} and {last}", others.join(", ")),
        None => String::new(),
    }
}
