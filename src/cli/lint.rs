//! `wincimg lint`: what in a Dockerfile goes wrong on Windows, and what to write instead.

mod base;

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};

use super::Answer;
use super::failure::Failure;
use super::output::write_result;
use super::registry_args::{self, RegistryArgs};
use super::session::Session;
use crate::lint::{
    BaseShell, Linted, Options, Severity, has_from, lint, write_json, write_sarif, write_text,
};
use crate::oci::store::Location;
use crate::windows::compat::HostBuild;
use crate::windows::version::WindowsVersion;

/// Find what goes wrong on Windows in Dockerfiles, and what to write instead
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg lint Dockerfile\n  \
    wincimg lint Dockerfile --shell powershell --host-build 17763.973 --format sarif\n  \
    wincimg lint Dockerfile --base repo.mylan.k8s:8888/team/base:1.4\n\n\
    Exit code 0: no errors. 1: at least one; warnings alone do not count.")]
pub(super) struct Lint {
    /// The Dockerfiles; - reads stdin
    #[arg(value_name = "DOCKERFILE", required = true)]
    dockerfiles: Vec<PathBuf>,
    /// The base image, for its shell and version: a reference, oci:DIR or docker-archive:FILE
    #[arg(long, value_name = "IMAGE", conflicts_with = "shell")]
    base: Option<Location>,
    /// The shell that the base images set [default: known for aspnet and iis, otherwise cmd]
    #[arg(long, value_enum)]
    shell: Option<ShellArg>,
    /// The host that the image is for, with its revision
    #[arg(long, value_name = "B.R")]
    host_build: Option<WindowsVersion>,
    /// The form of the findings
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    registry: RegistryArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShellArg {
    Cmd,
    Powershell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
}

impl From<ShellArg> for BaseShell {
    fn from(argument: ShellArg) -> Self {
        match argument {
            ShellArg::Cmd => Self::Cmd,
            ShellArg::Powershell => Self::PowerShell,
        }
    }
}

impl Lint {
    pub(super) fn run(self, session: &Session) -> Result<Answer, Failure> {
        let options = self.options(session)?;
        let files = self
            .dockerfiles
            .iter()
            .map(|path| Ok((path.display().to_string(), lint(&read(path)?, &options))))
            .collect::<Result<Vec<Linted>, Failure>>()?;
        write_result(None, |out| match self.format {
            Format::Text => write_text(&files, out),
            Format::Json => write_json(&files, out),
            Format::Sarif => write_sarif(&files, out),
        })?;
        let count = |severity: Severity| {
            let findings = files.iter().flat_map(|(_, findings)| findings);
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
        Ok(if errors == 0 { Answer::Yes } else { Answer::No })
    }

    /// What is known besides the text; the registry is asked only for a base image that is named.
    fn options(&self, session: &Session) -> Result<Options, Failure> {
        let host = self.host_build.map(HostBuild::new);
        let Some(location) = &self.base else {
            return Ok(Options {
                shell: self.shell.map(BaseShell::from),
                base_version: None,
                host,
            });
        };
        let registry = self.registry.connect(super::progress::display(session))?;
        let config = registry_args::run(base::config_of(location, &registry, host))?;
        let shell = config.config.shell.as_deref().unwrap_or_default();
        Ok(Options {
            shell: Some(BaseShell::of_config(shell)),
            base_version: base::version(config.os_version.as_deref()),
            host,
        })
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .context("cannot read stdin")?;
        bytes
    } else {
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::from(anyhow!(
            "{} is not a Dockerfile: byte {at} is not UTF-8",
            path.display()
        ))
        .hint("save it as UTF-8; some Windows editors and PowerShell's > write UTF-16")
    })?;
    if !has_from(&text) {
        // No findings would read as if all were well.
        let problem = anyhow!("{} is not a Dockerfile: it has no FROM", path.display());
        return Err(Failure::from(problem).hint("check the file's name and the spelling of FROM"));
    }
    Ok(text)
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
