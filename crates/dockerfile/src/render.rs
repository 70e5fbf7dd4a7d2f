//! The Dockerfile of a plan.

use std::collections::BTreeMap;

use wincimg_common::diagnose::Problem;
use wincimg_recipe::Plan;
use wincimg_registry::UnknownBase;
use wincimg_windows::base_contents::BaseContents;

use super::context::{self, ContextEntry};
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

/// Renders the Dockerfile of a plan on a base with these contents, without reading or writing
/// files.
pub fn render(plan: &Plan, inside: &dyn BaseContents) -> Result<RenderedDockerfile, Problem> {
    if plan.base.os_version.is_none() {
        let base = &plan.base.name;
        let problem = format!(
            "a Docker daemon cannot build on {base}: the image contains no Windows to make the layers with"
        );
        return Err(Problem::request("base/no-windows", problem));
    }
    if let Some(instructions) = &plan.instructions {
        let what = if instructions.steps.is_empty() {
            "author, volumes, healthcheck, shell, stop_signal, on_build or args_escaped"
        } else {
            "layers of its own ([[layers]], [[msi]], runtimes or layer)"
        };
        let problem = format!("only the direct engine builds a recipe with {what}");
        let hint = if plan.steps.is_empty() {
            "build it with `wincimg build IMAGE --engine direct`, or remove these keys"
        } else {
            "remove these keys or [[run]], which only a Docker daemon runs"
        };
        return Err(Problem::request("recipe/layers", problem).hint(hint));
    }
    let mut context = context::files(plan).map_err(Problem::from_diagnosed)?;
    let links = context::take_folder_links(&mut context)?;
    let view = view(plan, inside, &mut context, &links)?;
    Ok(RenderedDockerfile {
        dockerfile: templates::dockerfile(&view)?,
        context,
        ..RenderedDockerfile::default()
    })
}

/// Refuses a plan without a Dockerfile, whatever its base.
pub fn check_renderable(plan: &Plan) -> Result<(), Problem> {
    let on_any_base = Plan {
        path: None,
        ..plan.clone()
    };
    render(&on_any_base, &UnknownBase).map(drop)
}
