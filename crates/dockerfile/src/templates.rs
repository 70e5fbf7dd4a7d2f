//! Templates of a Dockerfile, and their conditions.

use handlebars::{
    Context, Handlebars, Helper, HelperDef, HelperResult, Output, PathAndJson, RenderContext,
    RenderErrorReason, Renderable, no_escape,
};
use serde_json::Value;
use wincimg_common::diagnose::Problem;

/// Template of the whole file.
const WHOLE: &str = "image";

const TEMPLATES: [(&str, &str); 15] = [
    (WHOLE, include_str!("../templates/image.hbs")),
    ("base", include_str!("../templates/base.hbs")),
    ("env", include_str!("../templates/env.hbs")),
    ("shutdown", include_str!("../templates/shutdown.hbs")),
    ("access", include_str!("../templates/access.hbs")),
    ("registry", include_str!("../templates/registry.hbs")),
    ("files", include_str!("../templates/files.hbs")),
    ("iis", include_str!("../templates/iis.hbs")),
    ("workdir", include_str!("../templates/workdir.hbs")),
    ("run", include_str!("../templates/run.hbs")),
    ("expose", include_str!("../templates/expose.hbs")),
    ("labels", include_str!("../templates/labels.hbs")),
    ("user", include_str!("../templates/user.hbs")),
    ("start", include_str!("../templates/start.hbs")),
    ("shim", include_str!("../templates/shim.hbs")),
];

/// All templates.
pub(super) fn registry() -> Result<Handlebars<'static>, Problem> {
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.set_prevent_indent(true);
    // The view is escaped for Dockerfiles, not for HTML.
    handlebars.register_escape_fn(no_escape);
    for (name, text) in TEMPLATES {
        handlebars
            .register_template_string(name, text)
            .map_err(|error| failed("cannot parse a template").source(error))?;
    }
    handlebars.register_helper("if", Box::new(Condition { wanted: true }));
    handlebars.register_helper("unless", Box::new(Condition { wanted: false }));
    Ok(handlebars)
}

pub(super) fn write(handlebars: &Handlebars<'_>, view: &Value) -> Result<String, Problem> {
    handlebars.render(WHOLE, view).map_err(|error| {
        let RenderErrorReason::MissingVariable(name) = error.reason() else {
            return failed("cannot render a template").source(error);
        };
        let template = error.template_name.as_deref().unwrap_or_default();
        let line = error.line_no.unwrap_or_default();
        let variable = name.as_deref().unwrap_or_default();
        failed(format!(
            "line {line} of the template {template:?} uses the unknown variable {variable:?}"
        ))
    })
}

fn failed(problem: impl Into<String>) -> Problem {
    Problem::new("internal/template", problem)
}

/// The blocks `if` and `unless`. In handlebars' own, an unknown variable is false: a typo would
/// omit a part of the Dockerfile.
struct Condition {
    wanted: bool,
}

impl HelperDef for Condition {
    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        render: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let value = helper
            .param(0)
            .ok_or(RenderErrorReason::ParamNotFoundForIndex("if", 0))?;
        let is_something = match required_value(value)? {
            Value::Null => false,
            Value::Bool(flag) => *flag,
            Value::String(text) => !text.is_empty(),
            Value::Number(_) | Value::Array(_) | Value::Object(_) => true,
        };
        let block = if is_something == self.wanted {
            helper.template()
        } else {
            helper.inverse()
        };
        match block {
            Some(block) => block.render(registry, context, render, out),
            None => Ok(()),
        }
    }
}

/// Value of a parameter, which must exist.
fn required_value<'a>(parameter: &'a PathAndJson<'_>) -> Result<&'a Value, RenderErrorReason> {
    if parameter.is_value_missing() {
        let path = parameter.relative_path().cloned();
        return Err(RenderErrorReason::MissingVariable(path));
    }
    Ok(parameter.value())
}
