//! Fills a recipe in for one base image and its host.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use toml::Spanned;
use wincimg_common::untrusted::QuotedText;
use wincimg_images::shim;
use wincimg_registry::{Link, RegistryEdit};
use wincimg_shim::args::LOG_VARIABLE;
use wincimg_shim::limit::VARIABLE as STOP_TIMEOUT;
use wincimg_windows::quoting::argv;
use wincimg_windows::quoting::argv::ArgvParser;
use wincimg_windows::search_path::PathAdditions;
use wincimg_windows::shutdown;
use wincimg_windows::variables::check_new_variable;
use wincimg_windows::version::WindowsVersion;

use super::{CommandForm, Plan, PlanBase, PlannedCommand, host_name};
use crate::check_program::shim_entry;
use crate::file::{RecipeFile, RunEntry};
use crate::iis::name_pool;
use crate::path::is_path;
use crate::runtimes::terms;
use crate::source::FileSource;
use crate::text::{Text, Texts, Values, plain};
use crate::{PlannedEntry, Recipe, RecipeInputs, Result};

/// Arguments of a command; a line is split as Windows does.
fn arguments(texts: Texts) -> Vec<String> {
    match texts {
        Texts::One(line) => argv::split_arguments(&line, ArgvParser::CRuntime),
        Texts::List(list) => plain(&list),
    }
}

/// A port with its protocol, `8080/tcp`.
#[derive(Debug)]
pub(crate) struct Port(String);

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
        match number.parse::<u16>() {
            Ok(number @ 1..) if matches!(protocol, "tcp" | "udp" | "sctp") => {
                Ok(Self(format!("{number}/{protocol}")))
            }
            _ => Err(format!(
                "invalid port {}: expected 8080 or 53/udp",
                QuotedText(text)
            )),
        }
    }
}

/// Seconds that a container has to stop.
#[derive(Debug)]
pub(crate) struct ShutdownTimeout(u32);

impl FromStr for ShutdownTimeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        /// One day: a larger number is a typo, or milliseconds.
        const MOST: u32 = 86_400;
        let seconds = text.parse().ok();
        let seconds = seconds.filter(|seconds| (1..=MOST).contains(seconds));
        seconds.map(Self).ok_or_else(|| {
            format!("invalid shutdown timeout {text:?}: expected 1 to {MOST} seconds")
        })
    }
}

/// A pattern of log files.
#[derive(Debug)]
pub(crate) struct LogPattern(String);

impl FromStr for LogPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(['\\', '/']) && !text.contains(';') {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "invalid log file {}: expected a path such as C:\\logs\\*.log",
                QuotedText(text)
            ))
        }
    }
}

impl Recipe {
    /// Fills the recipe in for one base image and the host that it fits.
    pub fn plan(
        &self,
        base: PlanBase,
        host_build: impl Into<Option<WindowsVersion>>,
        settings: &RecipeInputs<'_>,
    ) -> Result<Plan> {
        let host_build = host_build.into();
        let mut file = self.filled(&self.all_values(&base, host_build, settings)?)?;
        let shutdown_timeout = file.shutdown_timeout.as_ref().map(|it| it.value.0);
        let (registry, links) = self.own_registry(&file)?;
        let certificates = file.certificates.take();
        let trusted = certificates.map(|entry| self.certificates(entry));
        let trusted = trusted.transpose()?.unwrap_or_default();
        let mut taken = BTreeSet::new();
        let steps = self.steps(&file, settings, &mut taken)?;
        let files = file.files.iter().filter(|entry| entry.layer.is_none());
        let access = file.access.iter().filter(|entry| entry.layer.is_none());
        let commands = file.run.iter().map(|entry| self.step(entry));
        let runtimes = file.runtimes.iter().filter_map(|it| terms(&it.value));
        let mut plan = Plan {
            name: file.name.value.clone(),
            base,
            host_build,
            instructions: None,
            looks_inside: file.look_inside,
            files: files
                .map(|entry| self.planned_file(entry, settings, &mut taken))
                .collect::<Result<_, _>>()?,
            registry,
            env: self.environment(&file.env, shutdown_timeout)?,
            path: self.path_additions(&file)?,
            entrypoint: file.entrypoint.as_deref().map(plain),
            cmd: file.cmd.take().map(arguments),
            user: file.user.as_ref().map(|it| it.value.clone()),
            working_dir: file.working_dir.take().map(|it| it.value),
            ports: file.ports.iter().map(|port| port.value.0.clone()).collect(),
            labels: std::mem::take(&mut file.labels)
                .into_iter()
                .map(|(name, text)| (name, text.value))
                .collect(),
            shutdown_timeout,
            certificates: trusted.certificates,
            access: access
                .map(|entry| self.access(entry))
                .collect::<Result<_, _>>()?,
            services: self.checked_services(std::mem::take(&mut file.services))?,
            iis: file.iis.take().map(|entry| self.iis(entry)).transpose()?,
            steps: commands.collect::<Result<_, _>>()?,
            notes: links.iter().map(Link::to_string).chain(runtimes).collect(),
            warnings: [trusted.warnings, self.misplaced_keys()].concat(),
        };
        name_pool(&mut plan);
        self.add_logs(&mut plan, &file.logs)?;
        self.add_instructions(&mut plan, &file, steps)?;
        let base = file.base.or(file.base_image);
        let base = base.as_ref().map_or("", |base| &base.value);
        self.check_program(&plan, base, file.entrypoint.as_deref())?;
        self.check_user(&plan, base, file.user.as_ref())?;
        Ok(plan)
    }

    /// The values of the recipe's variables, also of those that describe the base and the host.
    fn all_values(
        &self,
        base: &PlanBase,
        host_build: Option<WindowsVersion>,
        settings: &RecipeInputs<'_>,
    ) -> Result<Values> {
        let mut values = self.values(settings)?;
        values.insert("name", self.name().to_owned());
        let description = self.head.description.as_ref();
        let description = description
            .map(|text| self.resolve(text, &values))
            .transpose()?;
        values.insert("description", description.unwrap_or_default());
        values.insert("host_build", host_name(host_build));
        values.insert("base.name", base.name.clone());
        values.insert("base.digest", base.digest.clone());
        let version = base.os_version.map(|version| version.os_version());
        values.insert("base.os_version", version.unwrap_or_default());
        Ok(values)
    }

    /// The registry changes without a layer name, and the links that they went through.
    fn own_registry(&self, file: &RecipeFile) -> Result<(Vec<RegistryEdit>, BTreeSet<Link>)> {
        let mut registry = Vec::new();
        let mut links = BTreeSet::new();
        let entries = file.registry.iter();
        for entry in entries.filter(|entry| entry.get_ref().layer.is_none()) {
            let changes = self.registry_edits(entry)?;
            let timeout = file.shutdown_timeout.as_ref().map(|field| field.value.0);
            for edit in timeout.into_iter().flat_map(shutdown::edits) {
                let is_other = |own: &RegistryEdit| *own != edit && is_same_value(own, &edit);
                if changes.edits.iter().any(is_other) {
                    let problem = format!(
                        "shutdown_timeout sets another value there ({edit}): remove one of them"
                    );
                    return Err(self.origin.error_at(entry.span().start, problem));
                }
            }
            registry.extend(changes.edits);
            links.extend(changes.links);
        }
        Ok((registry, links))
    }

    /// The variables, which Windows must not consider equal, and the shim's timeout.
    fn environment(
        &self,
        texts: &BTreeMap<String, Text>,
        shutdown_timeout: Option<u32>,
    ) -> Result<BTreeMap<String, String>> {
        let mut names = BTreeMap::new();
        let mut variables = BTreeMap::new();
        for (name, text) in texts {
            check_new_variable(name, &names).map_err(|problem| self.error(text, problem))?;
            // It is in the plan's `path`.
            if !(is_path(name) && PathAdditions::read(&text.value).is_some()) {
                names.insert(name.to_ascii_lowercase(), name.clone());
                variables.insert(name.clone(), text.value.clone());
            }
        }
        let is_set = |name: &String| name.eq_ignore_ascii_case(STOP_TIMEOUT);
        if let Some(seconds) = shutdown_timeout
            && !variables.keys().any(is_set)
        {
            variables.insert(STOP_TIMEOUT.to_owned(), seconds.to_string());
        }
        Ok(variables)
    }

    /// Names the log files to the shim, unless `env` does.
    fn add_logs(&self, plan: &mut Plan, logs: &[LogPattern]) -> Result<()> {
        if logs.is_empty() {
            return Ok(());
        }
        // Without one, the base's may be the shim.
        let entrypoint = plan.entrypoint.as_deref();
        if entrypoint.is_some_and(|words| shim::detect(words, &[], &[]).is_none()) {
            let problem = "logs requires the shim as entry point";
            let error = self.origin.error_at(0, problem.to_owned());
            let is_shim = |file: &PlannedEntry| file.source() == Some(&FileSource::Shim);
            let mut hint = format!("begin entrypoint with '{}'", shim::PATH);
            if !plan.files.iter().any(is_shim) {
                hint = format!("{hint}, and add {}", shim_entry());
            }
            return Err(error.hint(hint));
        }
        let is_set = |name: &String| name.eq_ignore_ascii_case(LOG_VARIABLE);
        if !plan.env.keys().any(is_set) {
            let patterns: Vec<&str> = logs.iter().map(|it| it.0.as_str()).collect();
            plan.env.insert(LOG_VARIABLE.to_owned(), patterns.join(";"));
        }
        Ok(())
    }

    fn step(&self, entry: &Spanned<RunEntry>) -> Result<PlannedCommand> {
        let RunEntry { command, shell } = entry.get_ref();
        let command = match (command, shell) {
            (Some(arguments), None) if !arguments.is_empty() => CommandForm::Exec(plain(arguments)),
            (None, Some(line)) => CommandForm::Shell(line.value.clone()),
            _ => {
                let problem = "a run entry requires either command or shell";
                return Err(self.origin.error_at(entry.span().start, problem));
            }
        };
        Ok(PlannedCommand { command })
    }
}

/// Returns true if both edits set the same value.
fn is_same_value(one: &RegistryEdit, other: &RegistryEdit) -> bool {
    use RegistryEdit::SetValue;
    matches!(
        (one, other),
        (SetValue { key, name, .. }, SetValue { key: at, name: of, .. })
            if name.eq_ignore_ascii_case(of) && key.to_string().eq_ignore_ascii_case(&at.to_string())
    )
}
