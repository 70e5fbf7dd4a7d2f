//! Groups of commands: `recipe init`, `image mirror`. Each command also has a hidden top-level name,
//! for scripts.

use clap::{Args, Subcommand};

use super::{Command, contents, delete, images, init, inspect, mirror, render, try_image, update};
use super::{base, convert, copy, sbom, scan};

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
    /// Returns the equivalent ungrouped command.
    pub(super) fn into_command(self) -> Command {
        match self.command {
            RecipeCommand::Init(command) => Command::Init(command),
            RecipeCommand::List(command) => Command::Images(command),
            RecipeCommand::Show(command) => Command::Images(command.into()),
            RecipeCommand::Convert(command) => Command::Convert(command),
            RecipeCommand::Render(command) => Command::Render(*command),
            RecipeCommand::Schema(command) => Command::Images(command.into()),
        }
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
    command: ImageCommand,
}

#[derive(Debug, Subcommand)]
enum ImageCommand {
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

impl Image {
    /// Returns the equivalent ungrouped command.
    pub(super) fn into_command(self) -> Command {
        match self.command {
            ImageCommand::Inspect(command) => Command::Inspect(*command),
            ImageCommand::Ls(command) => Command::Ls(*command),
            ImageCommand::Cp(command) => Command::Cp(*command),
            ImageCommand::Diff(command) => Command::Diff(*command),
            ImageCommand::Sbom(command) => Command::Sbom(*command),
            ImageCommand::Scan(command) => Command::Scan(*command),
            ImageCommand::Export(command) => Command::Export(*command),
            ImageCommand::Delete(command) => Command::Delete(command),
            ImageCommand::Push(command) => Command::Push(command),
            ImageCommand::Copy(command) => Command::Copy(command),
            ImageCommand::Tag(command) => Command::Tag(command),
            ImageCommand::Digest(command) => Command::Digest(command),
            ImageCommand::Manifest(command) => Command::Manifest(command),
            ImageCommand::Mirror(command) => Command::Mirror(*command),
            ImageCommand::Update(command) => Command::Update(command),
            ImageCommand::Try(command) => Command::Try(*command),
            ImageCommand::Base(command) => Command::Base(*command),
        }
    }
}
