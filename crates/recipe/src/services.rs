//! Services in a recipe's image.

use std::collections::BTreeMap;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use wincimg_windows::invalid::InvalidText;
use wincimg_windows::path::ImagePath;
use wincimg_windows::service::{
    FailureAction, FailureActions, FailureKind, Service, ServiceAccount, ServiceName, ServiceText,
    StartType,
};

use super::text::{Field, Text, plain};
use super::{Recipe, RecipeError};

/// Half a day: the actions of services count in seconds and minutes.
const LONGEST_WAIT: u32 = 43_200;

/// The usual value in `sc failure` commands.
const DAY: u32 = 86_400;

/// A service in its own process. It replaces a service of that name in the base.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"Worker\", program = 'C:\\app\\worker.exe' }"
)]
pub(super) struct ServiceEntry {
    /// The service's name.
    name: Field<ServiceName>,
    /// Display name.
    display_name: Option<Field<ServiceText>>,
    /// Description.
    description: Option<Field<ServiceText>>,
    /// The program's full path.
    program: Field<Program>,
    /// Its arguments, passed unchanged.
    #[serde(default)]
    arguments: Vec<Field<Argument>>,
    /// auto (with the container; the default), delayed-auto, demand or disabled.
    start: Option<Field<StartType>>,
    /// `LocalSystem` (the default), `LocalService`, `NetworkService` or NT SERVICE\NAME.
    account: Option<Field<ServiceAccount>>,
    /// Names of services that must run before it.
    #[serde(default)]
    depends_on: Vec<Field<ServiceName>>,
    /// Variables in addition to the container's.
    #[serde(default)]
    environment: BTreeMap<String, Text>,
    /// Actions of Windows if it exits without reporting that it stopped.
    on_failure: Option<FailureEntry>,
}

/// Actions of Windows when a service fails.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { actions = [{ action = \"restart\", after = 5 }] }"
)]
struct FailureEntry {
    /// Actions for the first failure, the second and so on; the last applies to all further ones.
    actions: Vec<ActionEntry>,
    /// Seconds without a failure after which the count restarts; default: a day.
    reset_after: Option<Field<Seconds<{ u32::MAX }>>>,
    /// The command line of the action run.
    command: Option<Field<ServiceText>>,
    /// True if stopping with an error counts as a failure, too.
    also_on_error: Option<Field<bool>>,
}

/// Action of Windows for one failure.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { action = \"restart\", after = 5 }"
)]
struct ActionEntry {
    /// restart, run or nothing.
    action: Field<FailureKind>,
    /// Delay in seconds; default: 0.
    after: Option<Field<Seconds<LONGEST_WAIT>>>,
}

/// A word of a command line.
#[derive(Debug)]
struct Argument(String);

impl FromStr for Argument {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(char::is_control) {
            return Err("a command line cannot contain control characters");
        }
        Ok(Self(text.to_owned()))
    }
}

/// A path of drive C, or one that begins with a variable of Windows.
#[derive(Debug)]
struct Program(String);

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Argument(program) = text.parse()?;
        if program.contains('"') {
            return Err("the program's path cannot contain a quote".to_owned());
        }
        if program.starts_with('%') {
            return Ok(Self(program));
        }
        let path: Result<ImagePath, _> = program.parse();
        path.map(|path| Self(path.to_string()))
            .map_err(|problem| problem.to_string())
    }
}

/// A number of seconds.
#[derive(Debug)]
struct Seconds<const MOST: u32>(u32);

impl<const MOST: u32> FromStr for Seconds<MOST> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seconds = text.parse().ok().filter(|seconds| *seconds <= MOST);
        seconds
            .map(Self)
            .ok_or_else(|| format!("invalid time {text:?}: expected 0 to {MOST} seconds"))
    }
}

impl Recipe {
    pub(super) fn services(&self, entries: Vec<ServiceEntry>) -> Result<Vec<Service>, RecipeError> {
        for (place, entry) in entries.iter().enumerate() {
            let name = &entry.name.value;
            if entries[..place]
                .iter()
                .any(|other| other.name.value.eq_ignore_case(name))
            {
                return Err(self.error(&entry.name, format!("two services have the name {name}")));
            }
            self.check_dependencies(entry, &entries)?;
        }
        let services = entries.into_iter().map(|entry| self.service(entry));
        services.collect()
    }

    fn service(&self, entry: ServiceEntry) -> Result<Service, RecipeError> {
        let environment = self.environment(&entry.environment, None)?;
        let texts = entry.environment.iter();
        let texts = texts.filter(|(name, _)| environment.contains_key(*name));
        let environment = texts.map(|(name, text)| {
            let line = format!("{name}={}", text.value).parse();
            line.map_err(|problem: InvalidText| self.error(text, problem.to_string()))
        });
        let on_failure = entry.on_failure;
        Ok(Service {
            display_name: entry.display_name.map(Field::into_inner),
            description: entry.description.map(Field::into_inner),
            program: entry.program.value.0,
            arguments: entry.arguments.into_iter().map(|it| it.value.0).collect(),
            start: entry.start.map(Field::into_inner).unwrap_or_default(),
            account: entry.account.map(Field::into_inner).unwrap_or_default(),
            depends_on: plain(&entry.depends_on),
            environment: environment.collect::<Result<_, _>>()?,
            on_failure: on_failure
                .map(|failure| self.on_failure(failure, &entry.name))
                .transpose()?,
            name: entry.name.value,
        })
    }

    fn on_failure(
        &self,
        entry: FailureEntry,
        name: &Field<ServiceName>,
    ) -> Result<FailureActions, RecipeError> {
        let actions = &entry.actions;
        if actions.is_empty() {
            return Err(self.error(name, "on_failure has no actions"));
        }
        let run = actions
            .iter()
            .find(|it| it.action.value == FailureKind::Run);
        match (run, &entry.command) {
            (Some(run), None) => {
                let problem = "on_failure has no command for the action run";
                return Err(self.error(&run.action, problem));
            }
            (None, Some(command)) => {
                return Err(self.error(command, "no action is run, so the command never runs"));
            }
            _ => {}
        }
        let actions = actions.iter().map(|entry| FailureAction {
            action: entry.action.value,
            after: entry.after.as_ref().map_or(0, |it| it.value.0 * 1000),
        });
        Ok(FailureActions {
            actions: actions.collect(),
            reset_after: entry.reset_after.map_or(DAY, |it| it.value.0),
            command: entry.command.map(Field::into_inner),
            also_on_error: entry.also_on_error.is_some_and(|it| it.value),
        })
    }

    /// Rejects a service that can never start because it depends on itself or on a disabled one.
    fn check_dependencies(
        &self,
        own: &ServiceEntry,
        services: &[ServiceEntry],
    ) -> Result<(), RecipeError> {
        let find = |name: &ServiceName| {
            services
                .iter()
                .find(|other| other.name.value.eq_ignore_case(name))
        };
        let is_disabled = |entry: &ServiceEntry| {
            let start = entry.start.as_ref();
            start.is_some_and(|start| start.value == StartType::Disabled)
        };
        for field in &own.depends_on {
            let name = &field.value;
            if !is_disabled(own) && find(name).is_some_and(is_disabled) {
                let problem = format!("{} cannot start: {name} is disabled", own.name.value);
                return Err(self.error(field, problem));
            }
            // All dependencies of it, each once.
            let mut seen: Vec<&ServiceName> = Vec::new();
            let mut next = vec![name];
            while let Some(name) = next.pop() {
                if name.eq_ignore_case(&own.name.value) {
                    let own = &own.name.value;
                    let problem = format!("{own} depends on itself, so it never starts");
                    return Err(self.error(field, problem));
                }
                if !seen.iter().any(|known| known.eq_ignore_case(name)) {
                    seen.push(name);
                    let further = find(name).into_iter().flat_map(|other| &other.depends_on);
                    next.extend(further.map(|field| &field.value));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
