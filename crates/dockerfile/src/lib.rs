//! Dockerfiles for Windows images: parsed, evaluated, converted, linted, and rendered from plans.
//!
//! [`source`] joins lines as the daemon does, [`instruction`] parses instructions, [`expand`]
//! expands variables, and [`stages`] evaluates the instructions; `wincimg_scripts` determines the
//! effects of `RUN` lines without running them.
//!
//! [`convert`] writes the equivalent recipe.
//!
//! [`render`] fills the templates and returns the build context. Commands are in exec form with
//! full paths, so that they do not depend on a shell or the base image.
//!
//! ```
//! use wincimg_dockerfile::lint::{LintOptions, lint};
//!
//! let file = r#"
//! FROM mcr.microsoft.com/windows/servercore:ltsc2022
//! SHELL ["powershell", "-Command"]
//! RUN appcmd set config "Default Web Site" /section:httpLogging /dontLog:true
//! "#;
//! let findings = lint(file, &LintOptions::default()).findings;
//! let rules: Vec<_> = findings.iter().map(|finding| finding.rule.name).collect();
//! assert!(rules.contains(&"quotes-under-powershell"));
//! ```

// `#[test]` of the test kit.
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
pub use output::{DOCKERFILE, OutputError};
pub use quote::QuoteError;
use view::View;
use wincimg_common::diagnose::Diagnose;
use wincimg_layer::LayerError;
use wincimg_recipe::{Plan, path_blame, path_hint};
use wincimg_registry::{BaseReadError, UnknownBase};
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::search_path::SearchPathError;

/// Returns true if the text has a `FROM`: without it, it is not a Dockerfile.
pub fn has_from(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    let keyword = first.and_then(|line| line.split_ascii_whitespace().next());
    if keyword.is_some_and(|keyword| keyword.eq_ignore_ascii_case("FROM")) {
        return true;
    }
    let file = source::Dockerfile::read(text);
    file.instructions.iter().any(|it| it.keyword == "FROM")
}

/// A Dockerfile with its build context.
#[derive(Debug, Clone, Default)]
pub struct RenderedDockerfile {
    /// Text.
    pub dockerfile: String,
    /// Build context, folders before their contents, without the Dockerfile.
    pub context: Vec<ContextEntry>,
    /// File name in the context, if not `Dockerfile`.
    pub name: Option<String>,
    /// Target stage, if not the last.
    pub target: Option<String>,
    /// Additional labels of the image.
    pub labels: BTreeMap<String, String>,
}

/// Error of rendering a plan.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "internal/template")]
pub enum RenderError {
    /// A Dockerfile cannot contain a text of the plan.
    #[error(transparent)]
    #[diagnose(code = "recipe/unwritable", blame = Request)]
    Unwritable(#[from] QuoteError),
    /// The base contains no Windows, which a Docker daemon requires.
    #[error(
        "a Docker daemon cannot build on {base}: the image contains no Windows to make the layers with"
    )]
    #[diagnose(code = "base/no-windows", blame = Request)]
    NoWindowsInside {
        /// Base.
        base: String,
    },
    /// The recipe has layers of its own, or keys that a generated Dockerfile does not have.
    #[error("only the direct engine builds a recipe with {0}")]
    #[diagnose(code = "recipe/layers", blame = Request, hint = "build it with `wincimg build --engine direct`, or remove these keys")]
    Layers(&'static str),
    /// Neither `reg` nor a .reg file can make a change to the registry.
    #[error("neither reg nor a .reg file can make the change to the registry: {0}")]
    #[diagnose(code = "recipe/registry", blame = Request)]
    Registry(String),
    /// PATH cannot be extended.
    #[error(transparent)]
    #[diagnose(code = "recipe/path", blame = path_blame(_0), hint = path_hint(_0))]
    Path(#[from] SearchPathError),
    /// The contents of the base cannot be read.
    #[error(transparent)]
    #[diagnose(code = "base/unreadable")]
    Inside(#[from] BaseReadError),
    /// The plan's files are invalid in an image.
    #[error(transparent)]
    #[diagnose(forward)]
    Files(#[from] LayerError),
    /// A template uses an unknown variable.
    #[error("line {line} of the template {template:?} uses the unknown variable {variable:?}")]
    MissingVariable {
        /// Template.
        template: String,
        /// Line, from 1.
        line: usize,
        /// Variable.
        variable: String,
    },
    /// A template writes a value without a helper.
    #[error("line {line} of the Dockerfile has a value that the template does not quote")]
    Unquoted {
        /// Line, from 1.
        line: usize,
    },
    /// A template has invalid syntax.
    #[error("cannot parse a template")]
    Template(#[source] Box<handlebars::TemplateError>),
    /// A template fails.
    #[error("cannot render a template")]
    Broken(#[source] Box<handlebars::RenderError>),
}

/// Renders the Dockerfile of a plan on a base with these contents, without reading or writing
/// files.
pub fn render(plan: &Plan, inside: &dyn BaseContents) -> Result<RenderedDockerfile, RenderError> {
    if plan.base.os_version.is_none() {
        return Err(RenderError::NoWindowsInside {
            base: plan.base.name.clone(),
        });
    }
    if let Some(instructions) = &plan.instructions {
        return Err(RenderError::Layers(if instructions.steps.is_empty() {
            "author, volumes, healthcheck, shell, stop_signal, on_build or args_escaped"
        } else {
            "layers of its own ([[layers]], [[msi]], runtimes or layer)"
        }));
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

/// Refuses a plan without a Dockerfile, whatever its base.
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
