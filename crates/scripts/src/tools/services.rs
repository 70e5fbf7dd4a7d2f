//! `sc`: services are created, changed and deleted.

use std::str::FromStr;

use wincimg_common::untrusted::QuotedText;
use wincimg_windows::invalid::InvalidText;
use wincimg_windows::service::{
    FailureAction, FailureActions, FailureKind, ServiceName, ServiceSettings,
};

use super::super::error::{self, Result, ScriptError};
use super::super::image::{ImageAction, ServiceChange};
use super::super::process::Process;

pub(super) fn sc(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let [verb, name, rest @ ..] = words else {
        return error::unclear("expected a verb and a service");
    };
    let mut service = empty(name, false)?;
    match verb.to_ascii_lowercase().as_str() {
        "create" => {
            service.is_new = true;
            service.settings = settings(rest)?;
            if service.settings.command.is_none() {
                return error::fails("a new service requires binPath=");
            }
        }
        "config" => service.settings = settings(rest)?,
        "description" => {
            let [description] = rest else {
                return error::unclear("expected one description");
            };
            service.settings.description = Some(setting(description)?);
        }
        "delete" => {
            // Microsoft's Dockerfile of the pause image's base has -f, which `sc` ignores.
            if let Some(word) = rest.iter().find(|word| *word != "-f") {
                return error::unclear(format!("unsupported argument {}", QuotedText(word)));
            }
            return machine.finish(ImageAction::DeleteService(service.name));
        }
        "failure" => service.on_failure = Some(failure(rest)?),
        "failureflag" => match rest {
            [flag] if flag == "1" => service.fails_on_error = true,
            [flag] => return error::unclear(format!("unsupported flag {flag:?}")),
            _ => return error::unclear("expected one flag"),
        },
        "start" | "stop" => return Err(not_running()),
        "sdset" => {
            let why = "Windows lets only administrators read the key of a service's descriptor, \
                       and a layer's keys inherit from those above";
            return error::unclear(why);
        }
        verb => return error::unclear(format!("sc {verb} is not supported")),
    }
    machine.finish(ImageAction::Service(service))
}

/// Error for starting or stopping a service.
pub(in super::super) fn not_running() -> ScriptError {
    ScriptError::windows("no services run in a build without Windows").instead(
        "set the start type instead (sc config NAME start= TYPE, or Set-Service -StartupType)",
    )
}

/// Reads the options of `sc create` and `sc config`.
fn settings(words: &[String]) -> Result<ServiceSettings> {
    let mut settings = ServiceSettings::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let (option, value) = option(word, &mut rest)?;
        match option.as_str() {
            "binpath" => settings.command = Some(value),
            "displayname" => settings.display_name = Some(setting(&value)?),
            "start" => {
                let start = value.to_ascii_lowercase().parse();
                settings.start = Some(start.map_err(|_| {
                    ScriptError::unclear(format!("unsupported start type {value:?}"))
                })?);
            }
            "obj" => {
                let help = "use a virtual account: obj= \"NT SERVICE\\NAME\"";
                settings.account = Some(setting(&value).map_err(|error| error.help(help))?);
            }
            "depend" => settings.depends_on = Some(services(value.split('/'))?),
            "type" if value.eq_ignore_ascii_case("own") => {}
            "error" if value.eq_ignore_ascii_case("normal") => {}
            _ => return error::option(word),
        }
    }
    Ok(settings)
}

/// Option in lower case and its value, which may be the next word.
fn option<'a>(word: &str, rest: &mut impl Iterator<Item = &'a String>) -> Result<(String, String)> {
    let Some((option, joined)) = word.split_once('=') else {
        return error::unclear(format!("unsupported argument {}", QuotedText(word)));
    };
    let value = if joined.is_empty() {
        rest.next()
            .cloned()
            .ok_or_else(|| ScriptError::fails(format!("{word} requires a value")))?
    } else {
        joined.to_owned()
    };
    Ok((option.to_ascii_lowercase(), value))
}

/// Reads the options of `sc failure`.
fn failure(words: &[String]) -> Result<FailureActions> {
    let (mut reset_after, mut actions, mut command) = (None, None, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let (option, value) = option(word, &mut rest)?;
        match option.as_str() {
            "reset" if value.eq_ignore_ascii_case("infinite") => reset_after = Some(u32::MAX),
            "reset" => {
                let seconds = value.parse().map_err(|_| {
                    ScriptError::unclear(format!("unsupported number of seconds {value:?}"))
                })?;
                reset_after = Some(seconds);
            }
            "actions" => actions = Some(failure_actions(&value)?),
            "command" if !value.is_empty() => command = Some(setting(&value)?),
            _ => return error::option(word),
        }
    }
    let (Some(reset_after), Some(actions)) = (reset_after, actions) else {
        return error::unclear("expected reset= and actions=");
    };
    Ok(FailureActions {
        actions,
        reset_after,
        command,
        also_on_error: false,
    })
}

/// Reads `restart/60000/run/1000//0`: actions, each with its delay in milliseconds. An empty one
/// does nothing.
fn failure_actions(text: &str) -> Result<Vec<FailureAction>> {
    let unsupported = || ScriptError::unclear(format!("unsupported actions {text:?}"));
    let words: Vec<&str> = text.split('/').collect();
    let (pairs, []) = words.as_chunks::<2>() else {
        return Err(unsupported());
    };
    let action = |[kind, after]: &[&str; 2]| {
        let action = match kind.to_ascii_lowercase().as_str() {
            "" => FailureKind::Nothing,
            "restart" => FailureKind::Restart,
            "run" => FailureKind::Run,
            "reboot" => FailureKind::Reboot,
            _ => return Err(unsupported()),
        };
        let after = match *after {
            "" if action == FailureKind::Nothing => 0,
            after => after.parse().map_err(|_| unsupported())?,
        };
        Ok(FailureAction { action, after })
    };
    pairs.iter().map(action).collect()
}

/// Creates a change without any setting.
pub(in super::super) fn empty(name: &str, is_new: bool) -> Result<ServiceChange> {
    Ok(ServiceChange {
        name: setting(name)?,
        is_new,
        settings: ServiceSettings::default(),
        on_failure: None,
        fails_on_error: false,
    })
}

/// Reads the names of services, without empty ones.
pub(in super::super) fn services<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<ServiceName>> {
    let names = names.into_iter().filter(|name| !name.is_empty());
    names.map(setting).collect()
}

/// Reads a setting.
pub(in super::super) fn setting<T>(text: &str) -> Result<T>
where
    T: FromStr<Err = InvalidText>,
{
    let read = text.parse();
    read.map_err(|error: InvalidText| ScriptError::unclear(error.to_string()))
}
