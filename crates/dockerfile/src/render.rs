//! The Dockerfile of a plan.

use std::collections::BTreeMap;

use wincimg_common::diagnose::Diagnose;
use wincimg_layer::LayerError;
use wincimg_recipe::{Plan, path_blame, path_hint};
use wincimg_registry::{BaseReadError, UnknownBase};
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::search_path::SearchPathError;

use super::context::{self, ContextEntry};
use super::quote::QuoteError;
use super::templates;
use super::view::view;

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
    let view = view(plan, inside, &mut context, &links)?;
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
