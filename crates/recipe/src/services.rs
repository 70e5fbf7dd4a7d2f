//! Services that a recipe's image brings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use wincimg_windows::path::ImagePath;
use wincimg_windows::service::{
    FailureAction, FailureKind, OnFailure, Service, ServiceName, Start,
};

use super::text::{Text, Values};
use super::{Recipe, RecipeError};

/// Half a day: the actions of services count in seconds and minutes.
const LONGEST_WAIT: u32 = 43_200;

/// A service of its own process. One of that name in the base is replaced.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"Worker\", program = 'C:\\app\\worker.exe' }"
)]
pub(super) struct ServiceEntry {
    /// The service's name.
    name: Text,
    /// What people see in place of the name.
    display_name: Option<Text>,
    /// A sentence on what it is for.
    description: Option<Text>,
    /// The program's full path.
    program: Text,
    /// Its arguments, which reach it as they are.
    #[serde(default)]
    arguments: Vec<Text>,
    /// auto (with the container; the default), delayed-auto, demand or disabled.
    start: Option<Text>,
    /// `LocalSystem` (the default), `LocalService`, `NetworkService` or NT SERVICE\NAME.
    account: Option<Text>,
    /// Names of services that have to run before it.
    #[serde(default)]
    depends_on: Vec<Text>,
    /// Variables that it has beside the container's.
    #[serde(default)]
    environment: BTreeMap<String, Text>,
    /// What Windows does when it ends without having said that it stopped.
    on_failure: Option<FailureEntry>,
}

/// What Windows does when a service fails.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { actions = [{ action = \"restart\", after = 5 }] }"
)]
struct FailureEntry {
    /// For the first failure, the second and so on; the last counts for all further ones.
    actions: Vec<ActionEntry>,
    /// Seconds without a failure after which the next one is the first again; a day by default.
    reset_after: Option<Text>,
    /// The command line of the action run.
    command: Option<Text>,
    /// Whether a service that stops with an error has failed, too.
    also_on_error: Option<Text>,
}

/// What Windows does for one failure.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { action = \"restart\", after = 5 }"
)]
struct ActionEntry {
    /// restart, run or nothing.
    action: Text,
    /// After how many seconds; at once by default.
    after: Option<Text>,
}

impl Recipe {
    pub(super) fn services(
        &self,
        entries: &[ServiceEntry],
        values: &Values,
    ) -> Result<Vec<Service>, RecipeError> {
        let services = entries
            .iter()
            .map(|entry| self.service(entry, values))
            .collect::<Result<Vec<_>, _>>()?;
        for (place, entry) in entries.iter().enumerate() {
            let name = &services[place].name;
            if services[..place].iter().any(|other| other.name.is(name)) {
                return Err(self.error(&entry.name, format!("two services have the name {name}")));
            }
            self.check_dependencies(entry, place, &services)?;
        }
        Ok(services)
    }

    fn service(&self, entry: &ServiceEntry, values: &Values) -> Result<Service, RecipeError> {
        let depends_on = entry.depends_on.iter();
        let environment = self.environment(&entry.environment, None, values)?;
        let environment = environment.iter().map(|(name, value)| {
            let text = entry.environment.get(name).unwrap_or(&entry.name);
            self.read(&text.with_value(&format!("{name}={value}")))
        });
        Ok(Service {
            name: self.parsed(&entry.name, values)?,
            display_name: self.parsed_option(entry.display_name.as_ref(), values)?,
            description: self.parsed_option(entry.description.as_ref(), values)?,
            program: self.program_of(&entry.program, values)?,
            arguments: entry
                .arguments
                .iter()
                .map(|text| self.argument(text, values))
                .collect::<Result<_, _>>()?,
            start: self
                .parsed_option(entry.start.as_ref(), values)?
                .unwrap_or_default(),
            account: self
                .parsed_option(entry.account.as_ref(), values)?
                .unwrap_or_default(),
            depends_on: depends_on
                .map(|text| self.parsed(text, values))
                .collect::<Result<_, _>>()?,
            environment: environment.collect::<Result<_, _>>()?,
            on_failure: entry
                .on_failure
                .as_ref()
                .map(|failure| self.on_failure(failure, &entry.name, values))
                .transpose()?,
        })
    }

    /// A path of drive C, or one that begins with a variable of Windows.
    fn program_of(&self, text: &Text, values: &Values) -> Result<String, RecipeError> {
        let program = self.argument(text, values)?;
        if program.contains('"') {
            return Err(self.error(text, "the program's path has a quote in it"));
        }
        if program.starts_with('%') {
            return Ok(program);
        }
        let path: ImagePath = program
            .parse()
            .map_err(|problem| self.error(text, format!("{problem}")))?;
        Ok(path.to_string())
    }

    fn argument(&self, text: &Text, values: &Values) -> Result<String, RecipeError> {
        let argument = self.resolve(text, values)?;
        if argument.contains(char::is_control) {
            return Err(self.error(text, "a command line has no line ends and other controls"));
        }
        Ok(argument)
    }

    fn on_failure(
        &self,
        entry: &FailureEntry,
        name: &Text,
        values: &Values,
    ) -> Result<OnFailure, RecipeError> {
        /// As `sc failure` is mostly told.
        const DAY: u32 = 86_400;
        let seconds = |text: &Option<Text>, default, most| match text {
            Some(text) => self.whole_seconds(text, values, most),
            None => Ok(default),
        };
        if entry.actions.is_empty() {
            return Err(self.error(name, "on_failure has no actions"));
        }
        let command = self.parsed_option(entry.command.as_ref(), values)?;
        let mut actions = Vec::with_capacity(entry.actions.len());
        for action in &entry.actions {
            let kind = self.parsed(&action.action, values)?;
            if kind == FailureKind::Run && command.is_none() {
                let problem = "on_failure has no command for the action run";
                return Err(self.error(&action.action, problem));
            }
            actions.push(FailureAction {
                action: kind,
                after: seconds(&action.after, 0, LONGEST_WAIT)? * 1000,
            });
        }
        let runs = actions
            .iter()
            .any(|action| action.action == FailureKind::Run);
        if let (Some(text), false) = (&entry.command, runs) {
            return Err(self.error(text, "no action is run, so the command never runs"));
        }
        Ok(OnFailure {
            actions,
            reset_after: seconds(&entry.reset_after, DAY, u32::MAX)?,
            command,
            also_on_error: match &entry.also_on_error {
                Some(text) => self.parsed(text, values)?,
                None => false,
            },
        })
    }

    fn whole_seconds(&self, text: &Text, values: &Values, most: u32) -> Result<u32, RecipeError> {
        let value = self.resolve(text, values)?;
        let seconds = value.parse().ok().filter(|seconds| *seconds <= most);
        seconds.ok_or_else(|| {
            let problem = format!("invalid time {value:?}: expected 0 to {most} seconds");
            self.error(text, problem)
        })
    }

    /// Refuses what can never start: a service that waits for itself, or for one that is disabled.
    fn check_dependencies(
        &self,
        entry: &ServiceEntry,
        place: usize,
        services: &[Service],
    ) -> Result<(), RecipeError> {
        let find = |name: &ServiceName| services.iter().find(|other| other.name.is(name));
        let own = &services[place];
        for (text, name) in entry.depends_on.iter().zip(&own.depends_on) {
            if own.start != Start::Disabled
                && find(name).is_some_and(|other| other.start == Start::Disabled)
            {
                let problem = format!("{} cannot start: {name} is disabled", own.name);
                return Err(self.error(text, problem));
            }
            // The way from here, each service once.
            let mut seen: Vec<&ServiceName> = Vec::new();
            let mut next = vec![name];
            while let Some(name) = next.pop() {
                if name.is(&own.name) {
                    let problem = format!("{} waits for itself, so it never starts", own.name);
                    return Err(self.error(text, problem));
                }
                if !seen.iter().any(|known| known.is(name)) {
                    seen.push(name);
                    next.extend(find(name).into_iter().flat_map(|other| &other.depends_on));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
