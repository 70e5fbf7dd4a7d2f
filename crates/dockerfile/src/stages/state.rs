//! State of a stage, with a function for each instruction.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wincimg_common::untrusted::{QuotedText, UntrustedText};
use wincimg_oci::document::ContainerConfig;
use wincimg_recipe::{
    CommandForm, HEALTH_TIMES, PlannedEntry, PlannedLayer, PlannedStep, add_volumes,
    check_absolute, check_stop_signal, check_volume,
};
use wincimg_registry::Presence;
use wincimg_windows::path::ImagePath;

use super::drive::{PathKind, Tree};
use super::run::ChangedKeys;
use super::segment::OpenSegment;
use super::{BuildArguments, paths};
use crate::expand::{ExpandedWord, Lexer};
use crate::instruction::{CopyInstruction, Health, InstructionKind};

/// Default shell.
const SHELL: [&str; 3] = ["cmd", "/S", "/C"];

/// Variables that need no `ARG`: a proxy is not a part of the image.
const PREDEFINED: [&str; 10] = [
    "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "FTP_PROXY", "ftp_proxy", "NO_PROXY",
    "no_proxy", "ALL_PROXY", "all_proxy",
];

/// Places of names in a list. Windows compares them without case.
#[derive(Debug, Clone, Default)]
struct Places(HashMap<String, Vec<usize>>);

impl Places {
    fn add(&mut self, name: &str, place: usize) {
        let places = self.0.entry(name.to_ascii_uppercase()).or_default();
        places.push(place);
    }

    fn of(&self, name: &str) -> &[usize] {
        let places = self.0.get(&name.to_ascii_uppercase());
        places.map(Vec::as_slice).unwrap_or_default()
    }
}

/// State of a stage after its instructions so far.
#[derive(Debug, Clone)]
pub(crate) struct StageState {
    pub(crate) config: ContainerConfig,
    /// Names of the configuration's variables: a search for each would take too long.
    env_places: Places,
    /// Those whose values need a build argument that has none, in upper case.
    open_variables: BTreeSet<String>,
    pub(super) author: Option<String>,
    pub(super) tree: Tree,
    pub(super) steps: Vec<PlannedStep>,
    /// What the layers of the steps change in the registry.
    pub(super) registry: ChangedKeys,
    /// Declared build arguments with their values, each name once.
    args: Vec<(String, Option<String>)>,
    arg_places: Places,
    /// True if `CMD` was set in this stage.
    has_cmd: bool,
    /// Users of the image whose `RUN` created files and folders.
    pub(super) makers: BTreeMap<String, String>,
    /// The stage, by its position in the file.
    pub(super) index: usize,
    /// Line of the current instruction.
    pub(super) line: usize,
    /// Its position in the stage; none for a trigger of the base.
    pub(super) place: Option<usize>,
    /// The image at the root, by its name among the bases.
    pub(super) base_name: String,
    /// The steps for Windows at the end.
    pub(super) segment: Option<OpenSegment>,
    /// True if an instruction, of this stage or of a source of files, failed.
    pub(super) has_failed: bool,
    /// True if the failure may be resolved by more facts, so that later instructions are uncertain.
    pub(super) is_postponed: bool,
}

impl StageState {
    pub(super) fn new(config: ContainerConfig, tree: Tree, base_name: &str) -> Self {
        let mut env_places = Places::default();
        for (place, line) in config.env.iter().enumerate() {
            if let Some((name, _)) = line.split_once('=') {
                env_places.add(name, place);
            }
        }
        Self {
            config,
            env_places,
            open_variables: BTreeSet::new(),
            author: None,
            tree,
            steps: Vec::new(),
            registry: ChangedKeys::default(),
            args: Vec::new(),
            arg_places: Places::default(),
            has_cmd: false,
            makers: BTreeMap::new(),
            index: 0,
            line: 0,
            place: None,
            base_name: base_name.to_owned(),
            segment: None,
            has_failed: false,
            is_postponed: false,
        }
    }

    /// State on an image with this name of which nothing is known.
    pub(crate) fn unknown(image: &str) -> Self {
        Self::new(ContainerConfig::default(), Tree::unknown(image), image)
    }

    /// New stage based on this one, with its build arguments, as in `BuildKit`.
    pub(super) fn fork(self) -> Self {
        Self {
            has_cmd: false,
            place: None,
            ..self
        }
    }

    /// New stage based on this one, as in Docker's own builder.
    pub(crate) fn fork_without_arguments(self) -> Self {
        Self {
            args: Vec::new(),
            arg_places: Places::default(),
            ..self.fork()
        }
    }

    /// Names of the build arguments that a line sees: with a value, and not hidden by a variable of
    /// the image.
    pub(super) fn visible_arguments(&self) -> Vec<String> {
        let is_seen = |(name, value): &&(String, Option<String>)| {
            value.is_some() && self.env_value(name).is_none()
        };
        let seen = self.args.iter().filter(is_seen);
        seen.map(|(name, _)| name.clone()).collect()
    }

    /// Value of a declared build argument.
    pub(super) fn argument_value(&self, name: &str) -> Option<String> {
        self.args[self.place_of_argument(name)?].1.clone()
    }

    /// Returns true if a build argument of exactly this name is declared.
    pub(super) fn has_argument(&self, name: &str) -> bool {
        self.place_of_argument(name).is_some()
    }

    fn place_of_argument(&self, name: &str) -> Option<usize> {
        let mut places = self.arg_places.of(name).iter().copied();
        places.find(|place| self.args[*place].0 == name)
    }

    /// Value of a variable of the configuration.
    fn env_value(&self, name: &str) -> Option<&str> {
        let line = &self.config.env[*self.env_places.of(name).last()?];
        line.split_once('=').map(|(_, value)| value)
    }

    /// Value of a variable; the image's variables take precedence over build arguments.
    pub(crate) fn value(&self, name: &str, arguments: &BuildArguments) -> Option<String> {
        if let Some(value) = self.env_value(name) {
            return Some(value.to_owned());
        }
        if let Some(place) = self.place_of_argument(name) {
            return self.args[place].1.clone();
        }
        let mut given = arguments.given.iter().rev();
        let predefined = PREDEFINED.contains(&name);
        let value = given.find(|(known, _)| predefined && known == name);
        let value = value.map(|(_, value)| value.clone());
        value.or_else(|| self.variable(name).filter(|_| arguments.ignores_case))
    }

    /// Returns true if a variable or build argument has this name, with or without a value.
    pub(crate) fn declares(&self, name: &str) -> bool {
        let is_known = |places: &Places| !places.of(name).is_empty();
        is_known(&self.env_places) || is_known(&self.arg_places) || PREDEFINED.contains(&name)
    }

    /// Own spelling of a build argument, by its name in any case, unless the image has a variable of
    /// this name.
    pub(crate) fn argument_only(&self, name: &str) -> Option<&str> {
        let place = self.arg_places.of(name).last()?;
        let is_variable = !self.env_places.of(name).is_empty();
        (!is_variable).then_some(self.args[*place].0.as_str())
    }

    /// Value of a command's variable, by its name in any case: the image's, or a build argument.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        if let Some(value) = self.env_value(name) {
            return Some(value.to_owned());
        }
        let mut places = self.arg_places.of(name).iter();
        places.find_map(|place| self.args[*place].1.clone())
    }

    /// Like `variable`; none if a build may give another value.
    pub(crate) fn known_variable(&self, name: &str) -> Option<String> {
        let is_open = self.open_variables.contains(&name.to_ascii_uppercase());
        self.variable(name).filter(|_| !is_open)
    }

    /// Records whether the variables of an `ENV` need a build argument that has no value.
    pub(crate) fn record_open(&mut self, list: &[(String, String)], unset: &[String]) {
        let is_open = unset.iter().any(|name| self.has_argument(name));
        for (name, _) in list {
            let name = name.to_ascii_uppercase();
            if is_open {
                self.open_variables.insert(name);
            } else {
                self.open_variables.remove(&name);
            }
        }
    }

    /// Shell of a line in shell form.
    pub(super) fn shell_words(&self) -> Vec<String> {
        let own = self.config.shell.clone().filter(|words| !words.is_empty());
        own.unwrap_or_else(|| SHELL.map(str::to_owned).to_vec())
    }

    pub(crate) fn expand(
        &self,
        lexer: Lexer,
        text: &str,
        arguments: &BuildArguments,
    ) -> Result<ExpandedWord, String> {
        let expanded = lexer.expand(text, &|name| self.value(name, arguments));
        expanded.map_err(|error| format!("{}: {error}", UntrustedText(text)))
    }

    /// Applies an instruction that needs neither files nor a program, and adds the names of
    /// variables that are not set.
    pub(crate) fn apply(
        &mut self,
        kind: &InstructionKind,
        lexer: Lexer,
        arguments: &BuildArguments,
        unset: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut expanded = |state: &Self, text: &str| {
            let expanded = state.expand(lexer, text, arguments)?;
            unset.extend_from_slice(&expanded.unset);
            Ok::<_, String>(expanded)
        };
        match kind {
            InstructionKind::Env(list) | InstructionKind::Label(list) => {
                let mut pairs = Vec::new();
                for (name, value) in list {
                    pairs.push((expanded(self, name)?.text, expanded(self, value)?.text));
                }
                match kind {
                    InstructionKind::Env(_) => self.env(&pairs),
                    _ => self.label(&pairs),
                }
            }
            InstructionKind::Arg(list) => {
                for (name, default) in list {
                    let value = match (arguments.argument(name), default) {
                        (Some(given), _) => Some(given),
                        (None, Some(text)) => Some(expanded(self, text)?.text),
                        (None, None) => arguments.global(name),
                    };
                    self.arg(name, value);
                }
            }
            InstructionKind::User(text) => self.user(expanded(self, text)?.text),
            InstructionKind::Workdir(text) => {
                let folder = expanded(self, text)?.text;
                if folder.is_empty() {
                    return Err("the working directory is empty".to_owned());
                }
                self.workdir(&folder)?;
            }
            InstructionKind::Expose(text) => self.expose(&expanded(self, text)?.words)?,
            InstructionKind::Volume(list) => {
                let folders = list.iter().map(|text| Ok(expanded(self, text)?.text));
                let folders = folders.collect::<Result<Vec<_>, String>>()?;
                self.volume(&folders)?;
            }
            InstructionKind::StopSignal(text) => self.stop_signal(expanded(self, text)?.text)?,
            InstructionKind::Cmd(program) => self.cmd(program.clone()),
            InstructionKind::Entrypoint(program) => self.entrypoint(program.clone()),
            InstructionKind::Health(health) => self.health(health.clone()),
            InstructionKind::Maintainer(author) => self.maintainer(author.clone()),
            InstructionKind::OnBuild(trigger) => self.on_build(trigger.clone()),
            InstructionKind::Shell(words) => self.shell(words.clone()),
            InstructionKind::Copy(_) | InstructionKind::Run(_) | InstructionKind::From(_) => {}
        }
        Ok(())
    }

    /// A `COPY` or `ADD` with its variables expanded.
    pub(crate) fn expand_copy(
        &self,
        copy: &CopyInstruction,
        lexer: Lexer,
        arguments: &BuildArguments,
        unset: &mut Vec<String>,
    ) -> Result<CopyInstruction, String> {
        let mut copy = copy.clone();
        let paths = copy.sources.iter_mut().chain([&mut copy.target]);
        for text in paths.chain(&mut copy.checksum) {
            let expanded = self.expand(lexer, text, arguments)?;
            unset.extend(expanded.unset);
            *text = expanded.text;
        }
        Ok(copy)
    }

    pub(crate) fn working_dir(&self) -> Result<ImagePath, String> {
        let text = self.config.working_dir.as_deref().unwrap_or_default();
        Ok(paths::target(&ImagePath::drive(), text)?.path)
    }

    /// Adds a history entry without a layer.
    fn add_history(&mut self, created_by: String) {
        self.steps.push(PlannedStep {
            line: Some(self.line),
            created_by,
            layer: None,
        });
    }

    /// Adds a layer and applies it to the drive.
    pub(super) fn add_layer(&mut self, created_by: String, layer: PlannedLayer) {
        self.tree.apply(&layer.entries);
        layer.kept.iter().for_each(|kept| self.tree.keep(kept));
        let edits = layer.registry.iter();
        edits.for_each(|edit| self.registry.apply(edit));
        for entry in &layer.entries {
            self.makers.remove(&entry.path.key());
        }
        self.steps.push(PlannedStep {
            line: Some(self.line),
            created_by,
            layer: (!layer.is_empty()).then(|| Arc::new(layer)),
        });
    }

    /// Adds the layer of a `RUN`, and its user.
    pub(super) fn add_run(&mut self, created_by: String, layer: PlannedLayer) {
        let made: Vec<String> = layer.entries.iter().map(|entry| entry.path.key()).collect();
        self.add_layer(created_by, layer);
        if let Some(user) = &self.config.user {
            let made = made.into_iter().map(|key| (key, user.clone()));
            self.makers.extend(made);
        }
    }

    /// Returns true if the image's user created the entry at a path in an earlier `RUN`.
    pub(super) fn is_of_user(&self, path: &ImagePath) -> bool {
        let maker = self.makers.get(&path.key());
        maker.is_some() && maker == self.config.user.as_ref()
    }

    fn arg(&mut self, name: &str, value: Option<String>) {
        let text = value
            .as_ref()
            .map_or_else(String::new, |value| format!("={value}"));
        match self.place_of_argument(name) {
            // BuildKit keeps the value of an earlier line or stage.
            Some(_) if value.is_none() => {}
            Some(place) => self.args[place].1 = value,
            None => {
                self.arg_places.add(name, self.args.len());
                self.args.push((name.to_owned(), value));
            }
        }
        self.add_history(format!("ARG {name}{text}"));
    }

    fn env(&mut self, pairs: &[(String, String)]) {
        for (name, value) in pairs {
            let line = format!("{name}={value}");
            match self.env_places.of(name).last().copied() {
                Some(place) => self.config.env[place] = line,
                None => {
                    self.env_places.add(name, self.config.env.len());
                    self.config.env.push(line);
                }
            }
        }
        self.add_history(format!("ENV {}", format_pairs(pairs)));
    }

    fn label(&mut self, pairs: &[(String, String)]) {
        self.config.labels.extend(pairs.iter().cloned());
        self.add_history(format!("LABEL {}", format_pairs(pairs)));
    }

    fn user(&mut self, user: String) {
        self.add_history(format!("USER {user}"));
        self.config.user = Some(user);
    }

    fn workdir(&mut self, text: &str) -> Result<(), String> {
        if text.eq_ignore_ascii_case("C:") {
            return Err(format!("{text:?} has no path after the drive: write C:/"));
        }
        check_absolute(text)?;
        let folder = paths::target(&self.working_dir()?, text)?.path;
        let is_new = self.makes_working_dir(&folder)?;
        let entries = is_new.then(|| PlannedEntry::folder(folder.clone()));
        let layer = PlannedLayer {
            entries: entries.into_iter().collect(),
            ..PlannedLayer::default()
        };
        self.add_layer(format!("WORKDIR {folder}"), layer);
        self.config.working_dir = Some(folder.to_string());
        Ok(())
    }

    /// Returns true if a working directory must be created. That it exists may be known only later:
    /// then its entry is left out of the layer.
    fn makes_working_dir(&self, folder: &ImagePath) -> Result<bool, String> {
        let kind = self.tree.readable_kind(folder)?;
        // Lines above that are left out may change that.
        if !self.tree.is_later(folder) {
            self.tree.check_folders_above(folder)?;
            if kind == Presence::Present(PathKind::File(())) {
                let of = self.tree.origin(folder);
                return Err(format!("{folder} is a file {of}, not a folder"));
            }
        }
        Ok(!matches!(kind, Presence::Present(_)))
    }

    fn shell(&mut self, words: Vec<String>) {
        self.add_history(format!("SHELL [{}]", words.join(" ")));
        self.config.shell = Some(words);
    }

    /// Words of a program, and true if they are an escaped command line: like Docker's builder for
    /// Windows, a shell line is one word, which is not escaped again.
    fn command(&self, program: CommandForm) -> (Vec<String>, bool) {
        match program {
            CommandForm::Shell(line) if line.is_empty() => (Vec::new(), self.config.args_escaped),
            CommandForm::Exec(words) if words.is_empty() => (words, self.config.args_escaped),
            CommandForm::Exec(words) => (words, false),
            CommandForm::Shell(line) => (
                vec![format!("{} {line}", self.shell_words().join(" "))],
                true,
            ),
        }
    }

    fn cmd(&mut self, program: CommandForm) {
        let (words, is_escaped) = self.command(program);
        self.add_history(format!("CMD {}", quoted(&words)));
        self.has_cmd |= !words.is_empty();
        self.config.cmd = Some(words);
        self.config.args_escaped = is_escaped;
    }

    fn entrypoint(&mut self, program: CommandForm) {
        let (words, is_escaped) = self.command(program);
        self.add_history(format!("ENTRYPOINT {}", quoted(&words)));
        self.config.entrypoint = Some(words);
        self.config.args_escaped = is_escaped;
        // The base's arguments belong to the base's program.
        if !self.has_cmd {
            self.config.cmd = None;
        }
    }

    /// The reason why containers start nothing after a `CMD` or `ENTRYPOINT`.
    pub(super) fn start_problem(&self, kind: &InstructionKind) -> Option<&'static str> {
        let entrypoint = self.config.entrypoint.as_deref().unwrap_or_default();
        let shell = self.shell_words();
        let line = match kind {
            InstructionKind::Cmd(CommandForm::Exec(words)) if !words.is_empty() => {
                let start = format!("{} ", shell.join(" "));
                return matches!(entrypoint, [line] if line.starts_with(&start)).then_some(
                    "ENTRYPOINT is in shell form, and with a CMD in exec form Docker 19.03 and later \
                     start nothing: write both in exec form",
                );
            }
            InstructionKind::Cmd(CommandForm::Shell(line)) if entrypoint.is_empty() => line,
            InstructionKind::Entrypoint(CommandForm::Shell(line)) => line,
            _ => return None,
        };
        (shell == SHELL && loses_quotes(line)).then_some(
            "cmd removes the first and the last quote, and finds no program of the rest: use the exec \
             form",
        )
    }

    fn expose(&mut self, words: &[String]) -> Result<(), String> {
        let mut all = Vec::new();
        for word in words {
            all.extend(ports(word).ok_or_else(|| {
                let word = QuotedText(word);
                format!("invalid port {word}: expected 8080, 53/udp or 8000-8010")
            })?);
        }
        for port in &all {
            let nothing = Value::Object(Map::new());
            self.config.exposed_ports.insert(port.clone(), nothing);
        }
        self.add_history(format!("EXPOSE [{}]", all.join(" ")));
        Ok(())
    }

    fn volume(&mut self, folders: &[String]) -> Result<(), String> {
        folders.iter().try_for_each(|text| check_volume(text))?;
        add_volumes(&mut self.config.other, folders);
        self.add_history(format!("VOLUME [{}]", folders.join(" ")));
        Ok(())
    }

    fn stop_signal(&mut self, signal: String) -> Result<(), String> {
        check_stop_signal(&signal)?;
        self.add_history(format!("STOPSIGNAL {signal}"));
        let value = Value::String(signal);
        self.config.other.insert("StopSignal".to_owned(), value);
        Ok(())
    }

    fn health(&mut self, health: Health) {
        let test = match health.test {
            None => vec!["NONE".to_owned()],
            Some(CommandForm::Exec(words)) => [vec!["CMD".to_owned()], words].concat(),
            Some(CommandForm::Shell(line)) => vec!["CMD-SHELL".to_owned(), line],
        };
        self.add_history(format!("HEALTHCHECK {}", quoted(&test)));
        let mut check = Map::new();
        check.insert("Test".to_owned(), json!(test));
        // Written in a fixed order, not that of the flags.
        for key in HEALTH_TIMES {
            if let Some((_, value)) = health.times.iter().rev().find(|(own, _)| *own == key) {
                check.insert(key.to_owned(), json!(value));
            }
        }
        let check = Value::Object(check);
        self.config.other.insert("Healthcheck".to_owned(), check);
    }

    fn on_build(&mut self, trigger: String) {
        self.add_history(format!("ONBUILD {trigger}"));
        self.config.on_build.push(trigger);
    }

    fn maintainer(&mut self, author: String) {
        self.add_history(format!("MAINTAINER {author}"));
        self.author = Some(author);
    }
}

/// Returns true if a line begins with a quoted program, whose quotes `cmd /S` does not take for a pair.
fn loses_quotes(line: &str) -> bool {
    let Some((program, rest)) = line.strip_prefix('"').and_then(|it| it.split_once('"')) else {
        return false;
    };
    rest.starts_with(' ') && !program.is_empty() && (program.contains(' ') || rest.contains('"'))
}

fn format_pairs(pairs: &[(String, String)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join(" ")
}

fn quoted(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("[{}]", words.join(" "))
}

/// Expands ports: `80` is TCP, and a range means all of its ports. An address and port of the host
/// before them are ignored, as in Docker.
fn ports(text: &str) -> Option<Vec<String>> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let (address, host) = host.rsplit_once(':').unwrap_or(("", host));
    let address = address.trim_start_matches('[').trim_end_matches(']');
    if !address.is_empty() && address.parse::<IpAddr>().is_err() {
        return None;
    }
    let (numbers, protocol) = port.split_once('/').unwrap_or((port, "tcp"));
    let protocol = protocol.to_ascii_lowercase();
    let (first, last) = port_range(numbers)?;
    if !host.is_empty() {
        let (first_host, last_host) = port_range(host)?;
        if first != last && last_host - first_host != last - first {
            return None;
        }
    }
    matches!(protocol.as_str(), "tcp" | "udp" | "sctp").then(|| {
        (first..=last)
            .map(|port| format!("{port}/{protocol}"))
            .collect()
    })
}

fn port_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_name_counts_and_that_of_an_env_before_it() {
        let text = |text: &str| text.to_owned();
        let mut state = StageState::unknown("x");
        for (name, value) in [("A", "1"), ("b", "2"), ("A", "3"), ("a", "4")] {
            state.arg(name, Some(text(value)));
        }
        state.arg("A", None);
        state.arg("unset", None);
        assert_eq!(state.visible_arguments(), ["A", "b", "a"]);
        // Docker tells the cases apart, and Windows does not.
        for (name, in_docker, in_windows) in [("A", "3", "3"), ("a", "4", "3"), ("b", "2", "2")] {
            assert_eq!(
                state.value(name, &BuildArguments::default()).as_deref(),
                Some(in_docker)
            );
            assert_eq!(state.variable(name).as_deref(), Some(in_windows));
        }
        assert!(state.declares("B") && !state.declares("c"));
        state.env(&[(text("a"), text("5")), (text("c"), text("6"))]);
        state.env(&[(text("C"), text("7"))]);
        assert_eq!(state.config.env, ["a=5", "C=7"]);
        for name in ["A", "a"] {
            assert_eq!(
                state.value(name, &BuildArguments::default()).as_deref(),
                Some("5")
            );
            assert_eq!(state.variable(name).as_deref(), Some("5"));
        }
        assert_eq!(state.visible_arguments(), ["b"]);
    }

    #[test]
    fn ports_may_name_those_of_the_host() {
        let found = |text: &str| ports(text).map(|ports| ports.join(" "));
        for (text, seen) in [
            ("80", "80/tcp"),
            ("8080:80", "80/tcp"),
            ("8080-8090:80/UDP", "80/udp"),
            ("0.0.0.0:1234-1235:3333-3334/tcp", "3333/tcp 3334/tcp"),
            ("[::1]:80:80", "80/tcp"),
            ("::::80", "80/tcp"),
        ] {
            assert_eq!(found(text).as_deref(), Some(seen), "{text}");
        }
        for text in [
            "http", "http:80", "localhost:80:80", "1-2:1-3", "81-80", "80:",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn a_working_directory_is_made_unless_every_windows_has_it() {
        for (folder, is_made) in [
            (r"C:\app", true),
            (r"C:\Program Files\App", true),
            (r"C:\ProgramData\App\logs", true),
            (r"C:\Windows\app", true),
            (r"C:\windows\TEMP", false),
            (r"C:\inetpub\wwwroot", false),
            ("C:/", false),
        ] {
            let mut state = StageState::unknown("x");
            state.workdir(folder).unwrap();
            assert_eq!(state.steps[0].layer.is_some(), is_made, "{folder}");
        }
    }
}
