//! The container configuration of an image: the plan's changes to the configuration of its base,
//! and the recipe keys that correspond to further Dockerfile instructions.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use wincimg_oci::document::ContainerConfig;
use wincimg_windows::search_path::VARIABLE;

use super::file::RecipeFile;
use super::instruction_values::{check_stop_signal, check_trigger, check_volume};
use super::text::{Text, plain};
use super::{Plan, Recipe, Result};

/// Fields of a health check in an image configuration, apart from its command, in the order in
/// which they are written.
pub const HEALTH_TIMES: [&str; 5] = [
    "Interval", "Timeout", "StartPeriod", "StartInterval", "Retries",
];

/// Fields that Dockerfiles set and wincimg passes on, in the order in which they are written.
const IN_ORDER: [&str; 3] = ["Healthcheck", "Volumes", "StopSignal"];

/// Health check of Docker; times are written 90s, 1m30s or 500ms.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { test = [\"CMD\", \"check.exe\"], interval = \"30s\" }"
)]
pub(super) struct HealthEntry {
    /// CMD with a program and its arguments, CMD-SHELL with a command line, or NONE.
    test: Vec<Text>,
    /// Time between checks.
    interval: Option<Text>,
    /// Timeout of a check.
    timeout: Option<Text>,
    /// Time after the start during which failed checks do not count.
    start_period: Option<Text>,
    /// Time between checks during `start_period`.
    start_interval: Option<Text>,
    /// Number of consecutive failures that make the container unhealthy.
    retries: Option<Text>,
}

impl Recipe {
    /// The base's container configuration, changed by the keys that only recipes with layers need.
    pub(super) fn container(&self, plan: &mut Plan, file: &RecipeFile) -> Result<ContainerConfig> {
        let mut container = plan.base.container.clone();
        for (texts, check) in [
            (&file.volumes, check_volume as fn(&str) -> _),
            (&file.on_build, |trigger| {
                let keyword = trigger.split_whitespace().next().unwrap_or_default();
                check_trigger(&keyword.to_ascii_uppercase())
            }),
        ] {
            for text in texts {
                check(&text.value).map_err(|problem| self.error(text, problem))?;
            }
        }
        container.on_build = plain(&file.on_build);
        if !file.shell.is_empty() {
            container.shell = Some(plain(&file.shell));
        }
        // In the order of the file.
        let env = std::mem::take(&mut plan.env);
        let mut env: Vec<(&String, &String)> = env.iter().collect();
        env.sort_by_key(|(name, _)| file.env.get(*name).map_or(usize::MAX, |text| text.offset));
        set_variables(&mut container.env, env);
        override_program(&mut container, plan.entrypoint.take(), plan.cmd.take());
        container.args_escaped |= file.args_escaped;
        let other = &mut container.other;
        if let Some(health) = &file.healthcheck {
            other.insert("Healthcheck".to_owned(), self.health(health)?);
        }
        if !file.volumes.is_empty() {
            add_volumes(other, &plain(&file.volumes));
        }
        if let Some(signal) = &file.stop_signal {
            check_stop_signal(&signal.value).map_err(|problem| self.error(signal, problem))?;
            other.insert("StopSignal".to_owned(), json!(signal.value));
        }
        Ok(container)
    }

    fn health(&self, entry: &HealthEntry) -> Result<Value> {
        let words = plain(&entry.test);
        let is_known = match words.first().map(String::as_str) {
            Some("NONE") => words.len() == 1,
            Some("CMD") => words.len() > 1,
            Some("CMD-SHELL") => words.len() == 2,
            _ => false,
        };
        if !is_known {
            let problem =
                "invalid test: expected [\"CMD\", PROGRAM, …], [\"CMD-SHELL\", LINE] or [\"NONE\"]";
            return Err(match entry.test.first() {
                Some(text) => self.error(text, problem),
                None => self.error(&self.head.name, problem),
            });
        }
        let mut check = Map::new();
        check.insert("Test".to_owned(), json!(words));
        let times = [
            &entry.interval, &entry.timeout, &entry.start_period, &entry.start_interval,
            &entry.retries,
        ];
        for (key, text) in HEALTH_TIMES.into_iter().zip(times) {
            let Some(text) = text else { continue };
            let value = &text.value;
            let number = if key == "Retries" {
                value.parse().ok()
            } else {
                let time: Option<SignedDuration> = value.parse().ok();
                time.and_then(|time| i64::try_from(time.as_nanos()).ok())
            };
            let Some(number) = number.filter(|number| *number >= 0) else {
                let problem = format!(
                    "invalid {value:?}: expected a time such as 30s, or a number for retries"
                );
                return Err(self.error(text, problem));
            };
            check.insert(key.to_owned(), json!(number));
        }
        Ok(Value::Object(check))
    }
}

impl Plan {
    /// The container configuration of the image, from that of its base.
    pub fn container(&self) -> ContainerConfig {
        let mut container = match &self.instructions {
            Some(instructions) => instructions.container.clone(),
            // A base's instructions were for this image, not for those that are built on it.
            None => ContainerConfig {
                on_build: Vec::new(),
                ..self.base.container.clone()
            },
        };
        set_variables(&mut container.env, &self.env);
        if let Some(path) = &self.path
            && let Some(own) = variable(&container.env, VARIABLE)
        {
            let path = path.apply_to(own);
            set_variables(&mut container.env, [(&"PATH".to_owned(), &path)]);
        }
        override_program(&mut container, self.entrypoint.clone(), self.cmd.clone());
        if let Some(user) = &self.user {
            container.user = Some(user.clone());
        }
        if let Some(folder) = &self.working_dir {
            container.working_dir = Some(folder.to_string());
        }
        for port in &self.ports {
            let nothing = Value::Object(Map::new());
            container.exposed_ports.insert(port.clone(), nothing);
        }
        container.labels.extend(self.labels.clone());
        if self.instructions.is_some() {
            for name in IN_ORDER {
                if let Some(value) = container.other.shift_remove(name) {
                    container.other.insert(name.to_owned(), value);
                }
            }
        }
        container
    }
}

/// Adds volumes to the further fields of a container configuration.
pub fn add_volumes(fields: &mut Map<String, Value>, folders: &[String]) {
    let volumes = fields.entry("Volumes").or_insert(Value::Null);
    if !volumes.is_object() {
        *volumes = Value::Object(Map::new());
    }
    for folder in folders {
        volumes[folder.as_str()] = json!({});
    }
}

/// Replaces the base's program with that of the image.
fn override_program(
    container: &mut ContainerConfig,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
) {
    if let Some(entrypoint) = entrypoint {
        // As in Docker's builder for Windows: exec form is not escaped yet, and an empty one
        // leaves the flag as it was.
        container.args_escaped &= entrypoint.is_empty();
        container.entrypoint = Some(entrypoint);
        // The base's arguments were for the base's program.
        container.cmd = None;
    }
    if let Some(cmd) = cmd {
        container.args_escaped &= cmd.is_empty();
        container.cmd = Some(cmd);
    }
}

/// A variable of an image's environment; none if it is empty, which is unset to Windows.
pub fn variable<'e>(env: &'e [String], name: &str) -> Option<&'e str> {
    let value = env.iter().find_map(|line| value_of(line, name))?;
    Some(value).filter(|value| !value.is_empty())
}

/// The value of a line, if it sets the variable. Windows compares the names without case.
fn value_of<'e>(line: &'e str, name: &str) -> Option<&'e str> {
    // Of thousands of lines, most differ in length.
    let (known, value) = line.split_at_checked(name.len())?;
    let value = value.strip_prefix('=')?;
    known.eq_ignore_ascii_case(name).then_some(value)
}

/// Sets variables.
fn set_variables<'v>(
    env: &mut Vec<String>,
    variables: impl IntoIterator<Item = (&'v String, &'v String)>,
) {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, line) in env.iter().enumerate() {
        if let Some((name, _)) = line.split_once('=') {
            places.entry(name.to_ascii_lowercase()).or_insert(place);
        }
    }
    for (name, value) in variables {
        let line = format!("{name}={value}");
        match places.entry(name.to_ascii_lowercase()) {
            Entry::Occupied(place) => env[*place.get()] = line,
            Entry::Vacant(place) => {
                place.insert(env.len());
                env.push(line);
            }
        }
    }
}
#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn variables_keep_their_places() {
        let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let mut env: Vec<String> = owned(&["a=1", "B=2", "A=3", "none"]);
        let new = ["A", "b", "c", "none"].map(|name| (name.to_owned(), "x=y".to_owned()));
        set_variables(&mut env, &BTreeMap::from(new));
        let expected: Vec<String> = owned(&["A=x=y", "b=x=y", "A=3", "none", "c=x=y", "none=x=y"]);
        assert_eq!(env, expected);
    }

    #[test]
    fn thousands_of_variables_are_set() {
        let variables = (0..20_000).map(|number| (format!("V{number}"), String::new()));
        let variables: BTreeMap<String, String> = variables.collect();
        let mut env = Vec::new();
        set_variables(&mut env, &variables);
        set_variables(&mut env, &variables);
        assert_eq!(env.len(), 20_000);
    }
}
