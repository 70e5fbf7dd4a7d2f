//! Dockerfiles for Windows images: read into what they come to, and written from plans.
//!
//! [`source`] reads any text as the daemon joins its lines, [`instruction`] says what is meant,
//! [`expand`] fills variables in, and [`stages`] carries the instructions out; what the commands of
//! a `RUN` line would do, `wincimg_scripts` reads without running them.
//!
//! [`convert`] writes the recipe that they come to.
//!
//! [`render`] fills the templates in `templates/dockerfile` and says what has to be in the build's
//! context. Commands are in exec form with full paths, so that no shell and no base image has a say
//! in how they are read.
//!
//! ```
//! use wincimg_dockerfile::lint::{Options, lint};
//!
//! let file = r#"
//! FROM mcr.microsoft.com/windows/servercore:ltsc2022
//! SHELL ["powershell", "-Command"]
//! RUN appcmd set config "Default Web Site" /section:httpLogging /dontLog:true
//! "#;
//! let findings = lint(file, &Options::default());
//! let rules: Vec<_> = findings.iter().map(|finding| finding.rule.name()).collect();
//! assert!(rules.contains(&"quotes-under-powershell"));
//! ```

// `#[test]` is its own.
#[cfg(test)]
#[macro_use]
extern crate wincimg_testkit;

mod context;
pub mod convert;
pub mod expand;
pub mod instruction;
pub mod lint;
mod names;
mod output;
mod quote;
mod registry;
pub mod source;
pub mod stages;
mod templates;
mod view;

use std::collections::BTreeMap;

pub use context::{ContextContent, ContextEntry};
pub use names::DockerfileNames;
pub use output::DOCKERFILE;
pub use quote::QuoteError;
use view::View;
use wincimg_common::diagnose::Diagnose;
use wincimg_layer::LayerError;
use wincimg_recipe::{Plan, path_blame, path_hint};
use wincimg_registry::{BaseReadError, UnknownBase};
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::search_path::SearchPathError;

/// Returns true if the text has a `FROM`, without which it is no Dockerfile and nothing can be
/// found in it.
pub fn has_from(text: &str) -> bool {
    let file = source::Dockerfile::read(text);
    file.instructions.iter().any(|it| it.keyword == "FROM")
}

/// A Dockerfile, and what it needs beside it.
#[derive(Debug, Clone, Default)]
pub struct RenderedDockerfile {
    /// Its text.
    pub dockerfile: String,
    /// The content of the build's context, folders before what is in them. The Dockerfile itself is
    /// not in it.
    pub context: Vec<ContextEntry>,
    /// What it is called there, where that is not `Dockerfile`.
    pub name: Option<String>,
    /// The stage that is wanted, where that is not the last.
    pub target: Option<String>,
    /// Labels that the image gets beside those that it has.
    pub labels: BTreeMap<String, String>,
}

/// Why a plan has no Dockerfile.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "internal/template")]
pub enum RenderError {
    /// A text of the plan cannot stand in a Dockerfile.
    #[error(transparent)]
    #[diagnose(code = "recipe/unwritable", blame = Request)]
    Unwritable(#[from] QuoteError),
    /// The base brings no Windows, which a Docker daemon for Windows needs.
    #[error(
        "a Docker daemon cannot build on {base}: the image contains no Windows to make the layers with"
    )]
    #[diagnose(code = "base/no-windows", blame = Request)]
    NoWindowsInside {
        /// The base.
        base: String,
    },
    /// Instructions of a Dockerfile, or layers of a recipe.
    #[error("only the direct engine builds a recipe with layers of its own")]
    #[diagnose(code = "recipe/layers", blame = Request, hint = "omit --engine docker, or remove [[layers]], layer and the keys that belong to them")]
    Layers,
    /// A change to the registry that neither `reg` nor a registration file can make.
    #[error("neither reg nor a .reg file can make the change to the registry: {0}")]
    #[diagnose(code = "recipe/registry", blame = Request)]
    Registry(String),
    /// What is added to PATH cannot be.
    #[error(transparent)]
    #[diagnose(code = "recipe/path", blame = path_blame(_0), hint = path_hint(_0))]
    Path(#[from] SearchPathError),
    /// What is known of the base cannot be read.
    #[error(transparent)]
    #[diagnose(code = "base/unreadable")]
    Inside(#[from] BaseReadError),
    /// The plan's files cannot be an image's.
    #[error(transparent)]
    #[diagnose(forward)]
    Files(#[from] LayerError),
    /// A template asks for what no plan has.
    #[error("line {line} of the template {template:?} uses the unknown variable {variable:?}")]
    MissingVariable {
        /// The template.
        template: String,
        /// The line, counted from 1.
        line: usize,
        /// The variable.
        variable: String,
    },
    /// A template writes a value past the helpers.
    #[error("line {line} of the Dockerfile has a value that the template does not quote")]
    Unquoted {
        /// The line, counted from 1.
        line: usize,
    },
    /// A template is none.
    #[error("a template cannot be read")]
    Template(#[source] Box<handlebars::TemplateError>),
    /// A template does not work.
    #[error("a template cannot be filled in")]
    Broken(#[source] Box<handlebars::RenderError>),
}

/// The Dockerfile that makes a plan's image on a base of which that is known. No file is read and none
/// is written.
pub fn render(plan: &Plan, inside: &dyn BaseContents) -> Result<RenderedDockerfile, RenderError> {
    if plan.base.os_version.is_none() {
        return Err(RenderError::NoWindowsInside {
            base: plan.base.name.clone(),
        });
    }
    if plan.instructions.is_some() {
        return Err(RenderError::Layers);
    }
    let mut context = context::files(plan)?;
    let links = context::take_folder_links(&mut context)?;
    let view = View::from_plan(plan, inside, &mut context, &links)?;
    Ok(RenderedDockerfile {
        dockerfile: templates::dockerfile(&view)?,
        context,
        ..RenderedDockerfile::default()
    })
}

/// Refuses a plan that has no Dockerfile, whatever its base is.
pub fn check_renderable(plan: &Plan) -> Result<(), RenderError> {
    let on_any_base = Plan {
        path: None,
        ..plan.clone()
    };
    render(&on_any_base, &UnknownBase).map(drop)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
fn main() -> std::process::ExitCode {
    wincimg_testkit::harness::main()
}
