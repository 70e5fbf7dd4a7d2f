//! `wincimg check-compat`: what will start where, before it is rolled out.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use super::Answer;
use super::failure::Failure;
use super::hosts::HostArgs;
use super::output::{terminal_width, write_result};
use super::session::Session;
use crate::report::{Host, Image, Report, write_json, write_junit, write_markdown, write_text};
use crate::windows::compat::Isolation;
use crate::windows::version::WindowsVersion;

/// Say which Windows images start on which hosts, and what to do about those that do not
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg check-compat --host-build 17763.973 --image-build 17763.1158\n  \
    kubectl get nodes -o json | wincimg check-compat --nodes - --image-build 20348.2402\n\n\
    Exit code 0: everything starts. 1: something does not, or cannot be known.")]
pub(super) struct CheckCompat {
    /// An image's build and revision, as in its os.version (repeatable)
    #[arg(long = "image-build", value_name = "B.R")]
    image_builds: Vec<WindowsVersion>,
    #[command(flatten)]
    hosts: HostArgs,
    /// How containers are kept apart from the host
    #[arg(long, value_enum, default_value = "process")]
    isolation: IsolationArg,
    /// Treat warnings as failures
    #[arg(long)]
    strict: bool,
    /// The form of the report
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the report to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum IsolationArg {
    Process,
    Hyperv,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
    Markdown,
    Junit,
}

impl From<IsolationArg> for Isolation {
    fn from(argument: IsolationArg) -> Self {
        match argument {
            IsolationArg::Process => Self::Process,
            IsolationArg::Hyperv => Self::HyperV,
        }
    }
}

impl CheckCompat {
    pub(super) fn run(self, session: &Session) -> Result<Answer, Failure> {
        let images = self.images()?;
        let hosts = self
            .hosts
            .all(session)?
            .into_iter()
            .map(|host| Host {
                name: host.name,
                build: host.build,
            })
            .collect();
        let report = Report::new(hosts, images, self.isolation.into());
        write_result(self.output.as_deref(), |out| match self.format {
            Format::Text => {
                let width = match self.output {
                    Some(_) => 100,
                    None => terminal_width(),
                };
                write_text(&report, width, out)
            }
            Format::Json => write_json(&report, self.strict, out),
            Format::Markdown => write_markdown(&report, self.strict, out),
            Format::Junit => write_junit(&report, self.strict, out),
        })?;
        Ok(if report.is_compatible(self.strict) {
            Answer::Yes
        } else {
            Answer::No
        })
    }

    fn images(&self) -> Result<Vec<Image>, Failure> {
        if self.image_builds.is_empty() {
            return Err(Failure::usage(anyhow!("no image to check"))
                .hint("name one with --image-build 17763.1158"));
        }
        let image = |build: &WindowsVersion| Image {
            reference: None,
            build: Some(*build),
        };
        Ok(self.image_builds.iter().map(image).collect())
    }
}
