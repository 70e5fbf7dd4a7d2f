//! Templates and their helpers.
//!
//! A helper gets words of the template and values of the plan, and quotes each for the instruction
//! that it is named after; only helpers can write values. Every text of a plan is passed to the
//! templates with a marker, which the helpers remove: a value written without a helper keeps it,
//! and a Dockerfile with a marker is an error.

use handlebars::{
    Context, Handlebars, Helper, HelperDef, HelperResult, Output, PathAndJson, RenderContext,
    RenderErrorReason, Renderable, no_escape,
};
use serde_json::Value;

use super::RenderError;
use super::quote::{self, QuoteError};
use super::view::View;

/// No value can contain it: for Windows and the daemon, a null ends a text.
const MARK: char = '\0';

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

/// Renders the text of a Dockerfile.
pub(super) fn dockerfile(view: &View<'_>) -> Result<String, RenderError> {
    write(&registry()?, view)
}

/// All templates with their helpers.
pub(super) fn registry() -> Result<Handlebars<'static>, RenderError> {
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.set_prevent_indent(true);
    // The helpers escape for Dockerfiles, not for HTML.
    handlebars.register_escape_fn(no_escape);
    for (name, text) in TEMPLATES {
        handlebars
            .register_template_string(name, text)
            .map_err(|error| RenderError::Template(Box::new(error)))?;
    }
    let helpers: [(&str, Quote); 7] = [
        ("word", Quote::Each(quote::word)),
        ("key", Quote::Each(quote::key)),
        ("reference", Quote::Each(quote::reference)),
        ("comment", Quote::Each(quote::comment)),
        ("run", Quote::Run),
        ("exec", Quote::All(quote::array)),
        ("copy", Quote::All(quote::paths)),
    ];
    for (name, quote) in helpers {
        handlebars.register_helper(name, Box::new(quote));
    }
    handlebars.register_helper("if", Box::new(Condition { wanted: true }));
    handlebars.register_helper("unless", Box::new(Condition { wanted: false }));
    Ok(handlebars)
}

pub(super) fn write(handlebars: &Handlebars<'_>, view: &View<'_>) -> Result<String, RenderError> {
    let mut context = Context::wraps(view).map_err(failure)?;
    mark(context.data_mut());
    let text = handlebars
        .render_with_context(WHOLE, &context)
        .map_err(failure)?;
    match text.find(MARK) {
        None => Ok(text),
        Some(at) => Err(RenderError::Unquoted {
            line: text[..at].matches('\n').count() + 1,
        }),
    }
}

/// Adds the marker to all texts.
fn mark(value: &mut Value) {
    match value {
        Value::String(text) => text.insert(0, MARK),
        Value::Array(items) => items.iter_mut().for_each(mark),
        Value::Object(fields) => fields.values_mut().for_each(mark),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn failure(error: handlebars::RenderError) -> RenderError {
    let template = error.template_name.clone().unwrap_or_default();
    match error.reason() {
        RenderErrorReason::MissingVariable(name) => RenderError::MissingVariable {
            template,
            line: error.line_no.unwrap_or_default(),
            variable: name.clone().unwrap_or_default(),
        },
        RenderErrorReason::NestedError(cause) => match cause.downcast_ref::<QuoteError>() {
            Some(unwritable) => RenderError::Unwritable(unwritable.clone()),
            None => RenderError::Broken(Box::new(error)),
        },
        _ => RenderError::Broken(Box::new(error)),
    }
}

#[derive(Clone, Copy)]
enum Quote {
    Each(fn(&str) -> Result<String, QuoteError>),
    All(fn(&[String]) -> Result<String, QuoteError>),
    /// A command of the build: a list of words in exec form, a text in shell form.
    Run,
}

impl HelperDef for Quote {
    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let mut words = Vec::new();
        for parameter in helper.params() {
            collect_words(required_value(parameter)?, &mut words)?;
        }
        let quoted = match self {
            Self::Each(quote) => match words.as_slice() {
                [word] => quote(word),
                _ => return Err(RenderErrorReason::InvalidParamType("one text").into()),
            },
            Self::All(quote) => quote(&words),
            Self::Run => match helper.params().as_slice() {
                [line] if line.value().is_string() => quote::shell_line(&words.concat()),
                _ => quote::command(&words),
            }
            .map(|command| format!("RUN {command}")),
        };
        let quoted = quoted.map_err(|error| RenderErrorReason::NestedError(Box::new(error)))?;
        out.write(&quoted)?;
        Ok(())
    }
}

/// Adds a text, or the texts of a list.
fn collect_words(value: &Value, words: &mut Vec<String>) -> Result<(), RenderErrorReason> {
    match value {
        Value::String(text) => words.push(text.strip_prefix(MARK).unwrap_or(text).to_owned()),
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| collect_words(item, words))?,
        _ => {
            return Err(RenderErrorReason::InvalidParamType(
                "a text or a list of texts",
            ));
        }
    }
    Ok(())
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
            Value::Array(items) => !items.is_empty(),
            Value::Number(_) | Value::String(_) | Value::Object(_) => true,
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
