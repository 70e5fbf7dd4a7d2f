//! Makes what goes into wincimg's packages and needs to know the program: its manual, the licences of
//! what is inside, its container image. The scripts beside it call it.

mod image;
mod licences;
mod man;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use jiff::Timestamp;
use licences::Library;

#[derive(Debug, Parser)]
#[command(name = "wincimg-packaging", about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a manual page for every command
    Man {
        /// The folder
        folder: PathBuf,
        /// The version that the pages name
        #[arg(long)]
        version: String,
        /// Their time, in seconds since 1970
        #[arg(long, value_name = "SECONDS")]
        epoch: i64,
    },
    /// Write the licences of what is in the program
    Licences {
        /// The file for people
        file: PathBuf,
        /// For this target
        #[arg(long)]
        target: String,
        /// The same as Debian's copyright file
        #[arg(long, value_name = "FILE", requires = "installed")]
        debian: Option<PathBuf>,
        /// Path of the readable file in the package
        #[arg(long, value_name = "PATH")]
        installed: Option<String>,
        /// A library that Cargo does not know, with its licence (repeatable)
        #[arg(long, value_name = "NAME=FILE")]
        with: Vec<String>,
    },
    /// Write the container image
    Image(image::ImageArgs),
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Man {
            folder,
            version,
            epoch,
        } => {
            let date = Timestamp::from_second(epoch)?
                .strftime("%Y-%m-%d")
                .to_string();
            man::write(&folder, &version, &date)
                .with_context(|| format!("could not write the manual to {}", folder.display()))
        }
        Command::Licences {
            file,
            target,
            debian,
            installed,
            with,
        } => {
            let mut libraries = licences::libraries(&target)?;
            for other in with {
                let (name, text) = other.split_once('=').context("expected NAME=FILE")?;
                libraries.push(Library::other(name, text.as_ref())?);
            }
            fs::write(&file, licences::notices(&libraries))?;
            if let Some(debian) = debian {
                let place = installed.unwrap_or_default();
                fs::write(debian, licences::debian(&libraries, &place))?;
            }
            Ok(())
        }
        Command::Image(args) => {
            let digest = tokio::runtime::Runtime::new()?.block_on(image::write(&args))?;
            Ok(writeln!(std::io::stdout(), "{digest}")?)
        }
    }
}
