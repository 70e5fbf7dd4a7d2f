//! Groups of commands: `recipe init`, `image mirror`. Each command also has a hidden top-level name,
//! for scripts.

use super::{
    Command, base, contents, convert, copy, delete, images, init, inspect, mirror, render, sbom,
    scan, try_image, update,
};
use crate::cli::prelude::*;

/// Write, list, convert and render recipes
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg recipe init shop\n  \
    wincimg recipe list\n  \
    wincimg recipe convert ./web")]
pub(super) struct Recipe {
    #[command(subcommand)]
    command: RecipeCommand,
}

#[derive(Debug, Subcommand)]
enum RecipeCommand {
    Init(Box<init::Init>),
    List(images::Images),
    Show(images::Show),
    Convert(Box<convert::Convert>),
    Render(Box<render::Render>),
    Schema(images::Schema),
}

impl Recipe {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let command = match self.command {
            RecipeCommand::Init(command) => Command::Init(command),
            RecipeCommand::List(command) => Command::Images(command),
            RecipeCommand::Show(command) => return command.run(),
            RecipeCommand::Convert(command) => Command::Convert(command),
            RecipeCommand::Render(command) => Command::Render(*command),
            RecipeCommand::Schema(command) => return command.run(),
        };
        command.run(session)
    }
}

/// Inspect, compare, copy and update images, and find their bases
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image inspect repo.mylan.k8s:8888/web:1.4\n  \
    wincimg image diff repo.mylan.k8s:8888/web:1.3 repo.mylan.k8s:8888/web:1.4\n  \
    wincimg image mirror base:nanoserver --kube --to repo.mylan.k8s:9999\n  \
    wincimg image update repo.mylan.k8s:8888/web:1.4 --kube --push")]
pub(super) struct Image {
    #[command(subcommand)]
    pub(super) command: ImageCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ImageCommand {
    Inspect(Box<inspect::Inspect>),
    Ls(Box<contents::Ls>),
    Cp(Box<contents::Cp>),
    Diff(Box<contents::Diff>),
    Sbom(Box<sbom::Sbom>),
    Scan(Box<scan::Scan>),
    Export(Box<contents::Export>),
    Push(copy::Push),
    Copy(copy::Copy),
    Tag(copy::Tag),
    Delete(delete::Delete),
    Digest(copy::Digest),
    Manifest(copy::Manifest),
    Mirror(Box<mirror::Mirror>),
    Update(Box<update::Update>),
    Try(Box<try_image::Try>),
    Base(Box<base::Base>),
}

/// Hides the top-level name of a command of images, but for the most common ones.
pub(super) fn hide_grouped(command: clap::Command) -> clap::Command {
    let name = command.get_name();
    let is_grouped = ImageCommand::has_subcommand(name) && !["copy", "push"].contains(&name);
    let hides = is_grouped || command.is_hide_set();
    command.hide(hides)
}

impl ImageCommand {
    /// Returns true if it compares versions of Windows with the table of updates.
    pub(super) fn reads_updates(&self) -> bool {
        matches!(
            self,
            Self::Base(_)
                | Self::Inspect(_)
                | Self::Mirror(_)
                | Self::Sbom(_)
                | Self::Scan(_)
                | Self::Update(_)
        )
    }

    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        match self {
            Self::Inspect(command) => command.run(session),
            Self::Ls(command) => command.run(session),
            Self::Cp(command) => command.run(session),
            Self::Diff(command) => command.run(session),
            Self::Sbom(command) => command.run(session),
            Self::Scan(command) => command.run(session),
            Self::Export(command) => command.run(session),
            Self::Push(command) => command.run(session),
            Self::Copy(command) => command.run(session),
            Self::Tag(command) => command.run(session),
            Self::Delete(command) => command.run(session),
            Self::Digest(command) => command.run(session),
            Self::Manifest(command) => command.run(session),
            Self::Mirror(command) => command.run(session),
            Self::Update(command) => command.run(session),
            Self::Try(command) => command.run(session),
            Self::Base(command) => command.run(session),
        }
    }
}
