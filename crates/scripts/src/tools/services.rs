//! `sc create` and `sc config`.

use super::super::error::ScriptError;
use super::super::image::{ImageAction, ServiceChange, ServiceStart};
use super::super::process::Process;

pub(super) fn sc(machine: &mut Process<'_>, words: &[String]) -> Result<i32, ScriptError> {
    let [verb, name, rest @ ..] = words else {
        return Err(ScriptError::unclear("expected a verb and a service"));
    };
    let is_new = match verb.to_ascii_lowercase().as_str() {
        "create" => true,
        "config" => false,
        "description" => {
            let [description] = rest else {
                return Err(ScriptError::unclear("expected one description"));
            };
            let mut service = empty(name, false);
            service.description = Some(description.clone());
            machine.apply(ImageAction::Service(service))?;
            return Ok(0);
        }
        verb => return Err(ScriptError::unclear(format!("sc {verb} is not supported"))),
    };
    let mut service = empty(name, is_new);
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        let Some((option, joined)) = word.split_once('=') else {
            return Err(ScriptError::unclear(format!(
                "unsupported argument {word:?}"
            )));
        };
        let value = if joined.is_empty() {
            rest.next()
                .cloned()
                .ok_or_else(|| ScriptError::fails(format!("{word} requires a value")))?
        } else {
            joined.to_owned()
        };
        match option.to_ascii_lowercase().as_str() {
            "binpath" => service.command = Some(value),
            "displayname" => service.display_name = Some(value),
            "start" => service.start = Some(start(&value)?),
            "obj" => service.account = Some(value),
            "depend" => {
                service.depends_on = Some(value.split('/').map(str::to_owned).collect());
            }
            "type" if value.eq_ignore_ascii_case("own") => {}
            "error" if value.eq_ignore_ascii_case("normal") => {}
            _ => return Err(ScriptError::option(word)),
        }
    }
    if is_new && service.command.is_none() {
        return Err(ScriptError::fails("a new service requires binPath="));
    }
    machine.apply(ImageAction::Service(service))?;
    Ok(0)
}

/// Creates a change without any setting.
pub(in super::super) fn empty(name: &str, is_new: bool) -> ServiceChange {
    ServiceChange {
        name: name.to_owned(),
        is_new,
        command: None,
        display_name: None,
        description: None,
        start: None,
        account: None,
        depends_on: None,
    }
}

fn start(text: &str) -> Result<ServiceStart, ScriptError> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "auto" => ServiceStart::Auto,
        "delayed-auto" => ServiceStart::Delayed,
        "demand" => ServiceStart::Demand,
        "disabled" => ServiceStart::Disabled,
        _ => {
            return Err(ScriptError::unclear(format!(
                "unsupported start type {text:?}"
            )));
        }
    })
}
