//! Application pools that Microsoft's `ServiceMonitor` sets up when a container starts.
//!
//! It removes the container's variables from the pool with one `appcmd`, whose failure it ignores and
//! which removes none if the pool lacks one of them. Then it adds them with another one, and ends if
//! that fails: at a variable that the pool has, or without the pool. So do all versions up to 2.1
//! (`IISConfigUtil.cpp` of microsoft/IIS.ServiceMonitor). `appcmd` decodes values as those of a URL
//! (microsoft/iis-docker#205).

use std::collections::BTreeSet;

use wincimg_iis::config::{APP_POOLS, ConfigChange, ConfigEdit, PathStep, Selector};
use wincimg_iis::{DEFAULT_APP_POOL, IisSettings};

use crate::{Plan, PlannedEntry};

/// Variables that it leaves out, some of them only with their usual value.
const LEFT_OUT: &str = "TMP TEMP USERNAME USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA \
    PSMODULEPATH PUBLIC USERDOMAIN ALLUSERSPROFILE PATHEXT PATH COMPUTERNAME COMSPEC OS \
    PROCESSOR_IDENTIFIER PROCESSOR_LEVEL PROCESSOR_REVISION PROGRAMFILES PROGRAMFILES(X86) \
    PROGRAMW6432 SYSTEMDRIVE WINDIR NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE SYSTEMROOT \
    COMMONPROGRAMFILES COMMONPROGRAMFILES(X86) COMMONPROGRAMW6432 DRIVERDATA";

impl Plan {
    /// A warning if `ServiceMonitor` surely ends the container, because of what the plan does to its
    /// application pool, or passes on another value of a variable.
    pub fn pool_warning(&self) -> Option<String> {
        let container = self.container();
        let words = |words: Option<Vec<String>>| words.unwrap_or_default();
        let line = [words(container.entrypoint), words(container.cmd)].concat();
        let pool = monitored_pool(&line)?;
        // One of its own may know better, and commands of the build may do more.
        let is_own = |entry: &PlannedEntry| {
            let name = entry.path.components().last();
            name.is_some_and(|name| is_monitor(name))
        };
        if self.entries_by_layer().flatten().any(is_own) || !self.steps.is_empty() {
            return None;
        }
        let own = self.iis.as_ref().map(IisSettings::server_edits);
        let own = own.unwrap_or_default();
        let edits = self.instruction_layers().flat_map(|layer| &layer.iis);
        let state = PoolChanges::read(pool, edits.chain(&own))?;
        if state.is_gone {
            return Some(format!(
                "containers end when they start: ServiceMonitor sets their variables in the \
                 application pool {pool}, which is deleted: keep it, or name another one, as in \
                 ServiceMonitor.exe w3svc POOL"
            ));
        }
        if let Some(twice) = state.variables_set_twice(&container.env) {
            return Some(format!(
                "containers end when they start: ServiceMonitor adds their variables to the \
                 application pool {pool}, which already has {twice}: set it for the pool or for the \
                 container, not for both"
            ));
        }
        let (name, code) = encoded_variable(&container.env)?;
        Some(format!(
            "ServiceMonitor gives {name} to appcmd, which reads {code} in it as a character; if that \
             is a control character, containers end when they start: write %25{}",
            &code[1..]
        ))
    }
}

/// Returns true for the path or name of the program.
pub(super) fn is_monitor(program: &str) -> bool {
    let file = program.rsplit(['\\', '/']).next().unwrap_or_default();
    ["ServiceMonitor.exe", "ServiceMonitor"]
        .iter()
        .any(|name| file.eq_ignore_ascii_case(name))
}

/// The pool that a command line has it set up.
fn monitored_pool(line: &[String]) -> Option<&str> {
    let program = line.iter().position(|word| is_monitor(word))?;
    let pool = match &line[program + 1..] {
        [service] if service.eq_ignore_ascii_case("w3svc") => DEFAULT_APP_POOL,
        [service, pool] if service.eq_ignore_ascii_case("w3svc") => pool.as_str(),
        _ => return None,
    };
    (!pool.starts_with('-')).then_some(pool)
}

/// What changes of the server's configuration leave of a pool.
#[derive(Default)]
struct PoolChanges {
    is_gone: bool,
    /// Variables that they added to it, in lower case, as IIS ignores case.
    variables: BTreeSet<String>,
}

impl PoolChanges {
    /// Follows the changes; none if one of them leaves the pool's state open.
    fn read<'e>(pool: &str, edits: impl Iterator<Item = &'e ConfigEdit>) -> Option<Self> {
        let mut state = Self::default();
        let is_of_pools = |edit: &&ConfigEdit| {
            let mut names = [APP_POOLS, "applicationPools"].into_iter();
            names.any(|name| edit.section.as_str().eq_ignore_ascii_case(name))
        };
        for edit in edits.filter(is_of_pools) {
            state.apply(pool, &edit.change)?;
        }
        Some(state)
    }

    fn apply(&mut self, pool: &str, change: &ConfigChange) -> Option<()> {
        let (entry, is_added) = match change {
            ConfigChange::Add { entry, .. }
            | ConfigChange::New { entry, .. }
            | ConfigChange::Ensure { entry } => (entry, true),
            ConfigChange::Take { entry } | ConfigChange::Remove { entry } => (entry, false),
            ConfigChange::Delegate { .. } => return Some(()),
            // Other attributes of the pool than its name do not matter.
            ConfigChange::Set { attribute, .. } if !attribute.eq_ignore_ascii_case("name") => {
                return Some(());
            }
            ConfigChange::Set { element: at, .. }
            | ConfigChange::Fill { collection: at, .. }
            | ConfigChange::Clear { element: at } => {
                return matches!(at.steps(), [PathStep::Element(_), ..]).then_some(());
            }
        };
        match (PoolPart::find(entry.steps(), pool), is_added) {
            (Some(PoolPart::Whole), true) => self.is_gone = false,
            (Some(PoolPart::Whole), false) => {
                self.is_gone = true;
                self.variables.clear();
            }
            (Some(PoolPart::Variable(name)), true) => {
                self.variables.insert(name.to_lowercase());
            }
            (Some(PoolPart::Variable(name)), false) => {
                self.variables.remove(&name.to_lowercase());
            }
            (Some(PoolPart::Other), _) => return None,
            (None, _) => {}
        }
        Some(())
    }

    /// The variables of the container that the pool has, too, if there is another one, which the
    /// pool lacks.
    fn variables_set_twice(&self, env: &[String]) -> Option<String> {
        let has = |name: &&str| self.variables.contains(&name.to_lowercase());
        let passed = passed_variables(env).map(|(name, _)| name);
        let (twice, others): (Vec<&str>, Vec<&str>) = passed.partition(has);
        (!others.is_empty() && !twice.is_empty()).then(|| twice.join(", "))
    }
}

/// The names and values that it passes on.
fn passed_variables(env: &[String]) -> impl Iterator<Item = (&str, &str)> {
    env.iter()
        .filter_map(|variable| variable.split_once('='))
        .filter(|(name, value)| {
            let mut left_out = LEFT_OUT.split_ascii_whitespace();
            !value.is_empty() && !left_out.any(|other| other.eq_ignore_ascii_case(name))
        })
}

/// A variable with a % and two hexadecimal digits, and these. `%25` is a %.
fn encoded_variable(env: &[String]) -> Option<(&str, &str)> {
    passed_variables(env).find_map(|(name, value)| {
        let codes = value.match_indices('%');
        let mut codes = codes.filter_map(|(at, _)| value.get(at..at + 3));
        let is_code = |code: &&str| {
            *code != "%25" && code[1..].bytes().all(|digit| digit.is_ascii_hexdigit())
        };
        Some((name, codes.find(is_code)?))
    })
}

/// A part of a pool.
enum PoolPart<'e> {
    Whole,
    /// A variable, by its name.
    Variable(&'e str),
    Other,
}

impl<'e> PoolPart<'e> {
    /// The part that the path of an entry names; none if it is of another pool.
    fn find(steps: &'e [PathStep], pool: &str) -> Option<Self> {
        let (PathStep::Entry(first), inside) = steps.split_first()? else {
            return None;
        };
        if name_of(first)?.to_lowercase() != pool.to_lowercase() {
            return None;
        }
        Some(match inside {
            [] => Self::Whole,
            [PathStep::Element(element), PathStep::Entry(entry)]
                if element.eq_ignore_ascii_case("environmentVariables") =>
            {
                name_of(entry).map_or(Self::Other, Self::Variable)
            }
            _ => Self::Other,
        })
    }
}

/// The attribute `name` of an entry.
fn name_of(entry: &Selector) -> Option<&str> {
    let mut attributes = entry.attributes();
    let found = attributes.find(|(name, _)| name.eq_ignore_ascii_case("name"));
    found.map(|(_, value)| value)
}
