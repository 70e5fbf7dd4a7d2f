//! Supported cmdlets and their aliases.

use wincimg_registry::{RegistryData, RegistryEdit};

use super::super::error::ScriptError;
use super::super::image::{Deferred, EntryKind, ImageAction, Lookup, PackageFeed};
use super::super::process::{GlobMatches, PathState, Paths, Process, Wildcards};
use super::super::tools;
use super::super::traced_text::TracedText;
use super::ast::CommandAst;
use super::eval::Shell;
use super::parameters::{BoundParameters, ParameterSet};
use super::value::PsValue;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Drive {
    File(String),
    Registry(String),
    Iis(String),
    Environment(String),
}

fn drive(path: &str) -> Result<Drive, ScriptError> {
    let lower = path.to_lowercase();
    let after = |prefix: &str| path[prefix.len()..].to_owned();
    for prefix in ["registry::", "microsoft.powershell.core\\registry::"] {
        if lower.starts_with(prefix) {
            return Ok(Drive::Registry(after(prefix)));
        }
    }
    if lower.starts_with("hklm:") || lower.starts_with("hkcu:") {
        return Ok(Drive::Registry(path.to_owned()));
    }
    if lower.starts_with("iis:") {
        return Ok(Drive::Iis(after("iis:")));
    }
    if lower.starts_with("env:") {
        return Ok(Drive::Environment(
            after("env:").trim_start_matches(['\\', '/']).to_owned(),
        ));
    }
    match lower.split_once(':') {
        Some((drive, _)) if drive.len() > 1 => {
            Err(ScriptError::unclear(format!("unsupported drive {drive}:")))
        }
        _ => Ok(Drive::File(path.to_owned())),
    }
}

impl Shell<'_, '_> {
    /// Finds the drive of a path.
    pub(super) fn drive(&self, path: &str) -> Result<Drive, ScriptError> {
        match drive(path)? {
            Drive::File(path) => self.with_home(path).map(Drive::File),
            other => Ok(other),
        }
    }

    /// Replaces `~` at the beginning of a cmdlet's path, quoted or not, by the home folder.
    pub(super) fn with_home(&self, path: String) -> Result<String, ScriptError> {
        let Some(rest) = path
            .strip_prefix('~')
            .filter(|rest| rest.is_empty() || rest.starts_with(['\\', '/']))
        else {
            return Ok(path);
        };
        match self.machine.variables.profile() {
            Some(home) => Ok(home + rest),
            None => Err(ScriptError::unclear(format!(
                "~ is the home folder of {}, which only Windows knows",
                self.machine.variables.user()
            ))),
        }
    }
}

const NOTHING: ParameterSet = ParameterSet {
    values: "",
    switches: "",
    positions: "",
};

const LOCATION: ParameterSet = ParameterSet {
    values: "path literalpath",
    switches: "",
    positions: "path",
};

const WEB: ParameterSet = ParameterSet {
    values: "uri outfile useragent timeoutsec method maximumretrycount retryintervalsec sslprotocol",
    switches: "usebasicparsing passthru disablekeepalive skipcertificatecheck",
    positions: "uri",
};

const ARCHIVE: ParameterSet = ParameterSet {
    values: "path literalpath destinationpath",
    switches: "force",
    positions: "path destinationpath",
};

const HASH: ParameterSet = ParameterSet {
    values: "path literalpath algorithm",
    switches: "",
    positions: "path algorithm",
};

const JOIN: ParameterSet = ParameterSet {
    values: "path childpath",
    switches: "",
    positions: "path childpath",
};

const TEST: ParameterSet = ParameterSet {
    values: "path literalpath pathtype",
    switches: "",
    positions: "path",
};

const MESSAGE: ParameterSet = ParameterSet {
    values: "object=message foregroundcolor backgroundcolor separator messagedata category \
         inputobject",
    switches: "nonewline noenumerate",
    positions: "object",
};

const START: ParameterSet = ParameterSet {
    values: "filepath=path argumentlist=args workingdirectory windowstyle verb",
    switches: "wait nonewwindow passthru",
    positions: "filepath argumentlist",
};

const WAIT: ParameterSet = ParameterSet {
    values: "id inputobject",
    switches: "",
    positions: "id",
};

const CERTIFICATE: ParameterSet = ParameterSet {
    values: "filepath certstorelocation",
    switches: "",
    positions: "filepath",
};

/// Returns true if a cmdlet is known: supported, or known to require Windows.
pub(super) fn is_cmdlet(name: &str) -> bool {
    KNOWN.contains(&name)
        || super::output_cmdlets::is_output_only(name)
        || super::iis::is_cmdlet(name)
        || needs_windows(name).is_some()
}

impl Shell<'_, '_> {
    /// Resolves an alias.
    pub(super) fn alias(&self, name: &str) -> String {
        let full = match name {
            "rm" | "ri" | "del" | "erase" | "rd" | "rmdir" => "remove-item",
            "mv" | "mi" | "move" => "move-item",
            "cp" | "copy" | "cpi" => "copy-item",
            "ren" | "rni" => "rename-item",
            "md" | "mkdir" => "new-directory",
            "ni" => "new-item",
            "sp" => "set-itemproperty",
            "rp" => "remove-itemproperty",
            "gp" => "get-itemproperty",
            "gpv" => "get-itempropertyvalue",
            "gci" | "ls" | "dir" => "get-childitem",
            "gi" => "get-item",
            "gc" | "cat" | "type" => "get-content",
            "ac" => "add-content",
            "sc" | "curl" | "wget" if self.is_core => name,
            "sc" => "set-content",
            "iwr" | "curl" | "wget" => "invoke-webrequest",
            "irm" => "invoke-restmethod",
            "echo" | "write" => "write-output",
            "cd" | "sl" | "chdir" => "set-location",
            "pushd" => "push-location",
            "popd" => "pop-location",
            "sleep" => "start-sleep",
            "saps" | "start" => "start-process",
            "iex" => "invoke-expression",
            "ipmo" => "import-module",
            "foreach" | "%" => "foreach-object",
            "select" => "select-object",
            "sls" => "select-string",
            "gsv" => "get-service",
            "gcm" => "get-command",
            "rvpa" => "resolve-path",
            "spsv" => "stop-service",
            "sasv" => "start-service",
            "where" | "?" => "where-object",
            "sv" | "set" => "set-variable",
            "oh" => "out-host",
            other => other,
        };
        full.to_owned()
    }

    pub(super) fn cmdlet(
        &mut self,
        name: &str,
        command: &CommandAst,
        input: Option<PsValue>,
    ) -> Result<PsValue, ScriptError> {
        if name == "invoke-expression" {
            return self.run_time_script(command, input.as_ref());
        }
        if let Some(error) = needs_windows(name) {
            return Err(error);
        }
        if super::iis::is_cmdlet(name) {
            return self.iis_cmdlet(name, command, input.as_ref());
        }
        if super::output_cmdlets::is_output_only(name) {
            return self.skip_output_cmdlet(name, command);
        }
        match name {
            "select-object" => self.select_object(command, input),
            "where-object" => self.where_object(command, input),
            "split-path" => self.split_path(command, input),
            "resolve-path" | "convert-path" => self.resolve_path(command),
            "set-variable" | "new-variable" => self.set_variable_cmdlet(command),
            "remove-item" => self.remove_item(command, input),
            "copy-item" | "move-item" => self.transfer_item(command, input, name == "move-item"),
            "rename-item" => self.rename_item(command, input),
            "new-directory" => self.new_directory(command),
            "new-item" if self.is_new_on_iis(command)? => self.new_on_iis(command),
            "new-item" => self.new_item(command),
            "get-childitem" | "get-item" => self.get_items(command, name == "get-item"),
            "set-content" | "add-content" => {
                self.set_content(command, input, name == "add-content")
            }
            "out-file" => self.out_file_cmdlet(command, input),
            "get-content" => self.get_content(command),
            "new-itemproperty" | "set-itemproperty" => {
                self.set_property(command, name == "new-itemproperty")
            }
            "remove-itemproperty" => self.remove_property(command),
            "get-itemproperty" => self.get_property(command),
            "get-itempropertyvalue" => self.property_value(command),
            "new-service" | "set-service" => self.service(command, name == "new-service"),
            "set-location" | "push-location" => self.set_location(command, name == "push-location"),
            "pop-location" => {
                self.bind_parameters(command, &NOTHING)?;
                if let Some(folder) = self.machine.stack.pop() {
                    self.machine.folder = folder;
                }
                Ok(PsValue::Null)
            }
            "invoke-webrequest" | "invoke-restmethod" => self.web_request(command),
            "expand-archive" => self.expand_archive(command),
            "get-filehash" => self.file_hash(command),
            "test-path" => self.test_path(command),
            "join-path" => self.join_path(command),
            "import-certificate" => self.import_certificate(command),
            "foreach-object" => self.foreach_object(command, input),
            "start-process" => self.start_process(command),
            "wait-process" => self.wait_process(command, input.as_ref()),
            _ => self.simple_cmdlet(name, command, input),
        }
    }

    /// The error of `Invoke-Expression`, with the URL of the script if the line has it. The script
    /// that installs Chocolatey is left out if its packages come from a feed.
    fn run_time_script(
        &mut self,
        command: &CommandAst,
        input: Option<&PsValue>,
    ) -> Result<PsValue, ScriptError> {
        let piped = match input {
            Some(PsValue::Opaque(error)) => error.why.as_str(),
            _ => "",
        };
        let after = self.script.as_str().get(command.at..).unwrap_or_default();
        let url = url_in(piped).or_else(|| url_in(after.split('\n').next().unwrap_or_default()));
        let Some(url) = url else {
            let why = "it runs a script that is known only at run time";
            return Err(ScriptError::windows(why));
        };
        let is_chocolatey = url.ends_with("chocolatey.org/install.ps1");
        if is_chocolatey && self.machine.image.feed() != PackageFeed::None {
            let note = "Chocolatey is not installed: only its packages are";
            self.apply(ImageAction::Note(note.to_owned()))?;
            return Ok(PsValue::Null);
        }
        let why = format!("it runs a script that is known only at run time: {url}");
        Err(ScriptError::windows(why).help(if is_chocolatey {
            "add the folder or URL of a feed of the packages (--choco-feed DIR), or let Windows \
             run the line: --docker-host tcp://HOST:2375"
        } else {
            "copy the script with the Dockerfile, or let Windows run the line: --docker-host tcp://HOST:2375"
        }))
    }

    /// Runs `Start-Process msiexec -Wait` or an installer; other programs require Windows.
    fn start_process(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        const HELP: &str = "unpack the vendor's zip or install its .msi (msiexec /i FILE /qn) instead, \
            or let Windows run the line: --docker-host tcp://HOST:2375";
        let Ok(given) = self.bind_parameters(command, &START) else {
            return Err(ScriptError::windows("it starts a program"));
        };
        let program = given.required("filepath")?;
        let is_package = program.to_ascii_lowercase().ends_with(".msi");
        let is_msiexec = tools::program_name(&program) == "msiexec" && !is_package;
        if !is_msiexec && !tools::may_be_installer(self.machine, &program) {
            return Err(
                ScriptError::windows(format!("it starts the program {program}")).help(HELP),
            );
        }
        for parameter in ["workingdirectory", "verb"] {
            if given.value(parameter).is_some() {
                return Err(ScriptError::option(&format!("-{parameter}")));
            }
        }
        let waits = given.has("wait") || given.has("passthru") && self.waits_after(command);
        if !waits {
            let why = "it does not wait for the program, and the build may end before it";
            return Err(ScriptError::refused(why).help("add -Wait"));
        }
        // It joins the arguments with spaces, and quotes none.
        let arguments = given.texts("argumentlist")?.join(" ");
        let line = format!("\"{program}\" {arguments}");
        let at = self.position(command.at);
        let code = tools::command_line(self.machine, &TracedText::from_one(&line, at))?;
        if code != 0 {
            // The exit code is that of the process, which nothing reads here.
            let why = self.machine.error.take();
            let why = why.unwrap_or_else(|| ScriptError::fails(format!("exit code {code}")));
            return Err(why);
        }
        self.unawaited = u32::from(!given.has("wait"));
        Ok(PsValue::Process)
    }

    /// Returns true if the script waits for a process after a command.
    fn waits_after(&self, command: &CommandAst) -> bool {
        let after = self.script.as_str().get(command.at..).unwrap_or_default();
        let after = after.to_ascii_lowercase();
        after.contains(".waitforexit(") || after.contains("wait-process")
    }

    /// Runs `Wait-Process` for the process of `Start-Process -PassThru`.
    fn wait_process(
        &mut self,
        command: &CommandAst,
        input: Option<&PsValue>,
    ) -> Result<PsValue, ScriptError> {
        let given = self.bind_parameters(command, &WAIT);
        let given = given.map_err(|_| ScriptError::windows("it works only on Windows"))?;
        let named = given.value("id").or(given.value("inputobject"));
        if named.or(input) != Some(&PsValue::Process) {
            return Err(ScriptError::windows("it works only on Windows"));
        }
        self.unawaited = 0;
        Ok(PsValue::Null)
    }

    /// Runs cmdlets that print, wait, or create objects.
    fn simple_cmdlet(
        &mut self,
        name: &str,
        command: &CommandAst,
        input: Option<PsValue>,
    ) -> Result<PsValue, ScriptError> {
        match name {
            "write-output" => {
                let given = self.bind_parameters(command, &MESSAGE)?;
                match given.value("object").or(given.value("inputobject")) {
                    Some(value) => Ok(value.clone()),
                    None => Ok(input.unwrap_or(PsValue::Null)),
                }
            }
            "write-error" => Err(ScriptError::fails("the script writes an error")),
            "write-host" | "write-verbose" | "write-warning" | "write-information"
            | "write-debug" | "write-progress" => {
                for argument in &command.arguments {
                    if let super::ast::Argument::Value(value) = argument {
                        self.expression(value)?;
                    }
                }
                Ok(PsValue::Null)
            }
            "out-null" | "out-host" | "out-default" => Ok(PsValue::Null),
            "set-executionpolicy" => self.set_execution_policy(command),
            "start-sleep" | "set-strictmode" | "clear-host" | "set-psdebug" => {
                if name == "set-strictmode" {
                    return Err(ScriptError::unclear("strict mode is not supported"));
                }
                Ok(PsValue::Null)
            }
            "new-timespan" => self.time_span(command),
            "unblock-file" => self.unblock_file(command),
            "new-object" => self.new_object(command),
            "add-type" => {
                let takes = ParameterSet {
                    values: "assemblyname",
                    switches: "",
                    positions: "",
                };
                let given = self.bind_parameters(command, &takes)?;
                for name in given.texts("assemblyname")? {
                    self.add_assembly(&name);
                }
                Ok(PsValue::Null)
            }
            "import-module" => {
                let takes = ParameterSet {
                    values: "name",
                    switches: "force disablenamechecking skipeditioncheck",
                    positions: "name",
                };
                let given = self.bind_parameters(command, &takes)?;
                let module = given.required("name")?;
                if super::script_file::is_module(&module) {
                    return self.import_module(&module);
                }
                match module.to_lowercase().as_str() {
                    "webadministration"
                    | "iisadministration"
                    | "servermanager"
                    | "microsoft.powershell.archive"
                    | "microsoft.powershell.utility"
                    | "microsoft.powershell.management" => Ok(PsValue::Null),
                    _ => Err(ScriptError::windows(format!("it runs the module {module}"))),
                }
            }
            "get-location" => Ok(PsValue::Text(self.machine.folder.to_string())),
            _ => Err(ScriptError::unclear("unsupported cmdlet")),
        }
    }

    /// `Set-ExecutionPolicy`: of the process, or a value of the machine's registry.
    fn set_execution_policy(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        const KEY: &str = r"HKLM\SOFTWARE\Microsoft\PowerShell\1\ShellIds\Microsoft.PowerShell";
        const NAMES: [&str; 5] = [
            "Restricted",
            "AllSigned",
            "RemoteSigned",
            "Unrestricted",
            "Bypass",
        ];
        let takes = ParameterSet {
            values: "executionpolicy scope",
            switches: "force confirm=cf",
            positions: "executionpolicy scope",
        };
        let given = self.bind_parameters(command, &takes)?;
        let name = given.required("executionpolicy")?;
        let mut names = NAMES.into_iter();
        let Some(policy) = names.find(|own| own.eq_ignore_ascii_case(&name)) else {
            return Err(ScriptError::unclear(format!("unsupported policy {name:?}")));
        };
        let scope = given.text("scope")?.map(|scope| scope.to_lowercase());
        match scope.as_deref() {
            Some("process") => {
                let policy = Some(policy.to_owned());
                self.machine.variables.set(super::POLICY, policy);
                return Ok(PsValue::Null);
            }
            None | Some("localmachine") if !self.is_core => {}
            None | Some("localmachine") => {
                let why = "PowerShell 7 keeps the policy in a file of its own";
                return Err(ScriptError::unclear(why));
            }
            Some(other) => return Err(ScriptError::unclear(format!("unsupported scope {other}"))),
        }
        match self.machine.variable(super::POLICY) {
            Lookup::Absent => {}
            Lookup::Present(own) if own.eq_ignore_ascii_case(policy) => {}
            Lookup::Deferred(Deferred) | Lookup::Unknown => {
                let why = format!("whether the base sets {} is unknown", super::POLICY);
                return Err(ScriptError::unknown(why));
            }
            Lookup::Present(_) => {
                let why = "the policy of the process is another one, which makes it fail";
                return Err(ScriptError::unclear(why).help("add -Scope Process"));
            }
        }
        self.machine.edit(RegistryEdit::SetValue {
            key: Process::parse_key(KEY)?,
            name: "ExecutionPolicy".to_owned(),
            data: RegistryData::sz(policy),
        })?;
        Ok(PsValue::Null)
    }

    /// `New-TimeSpan` of one unit.
    fn time_span(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        let takes = ParameterSet {
            values: "days hours minutes seconds",
            switches: "",
            positions: "",
        };
        let given = self.bind_parameters(command, &takes)?;
        let units = takes.values.split_ascii_whitespace().filter_map(|unit| {
            let value = given.value(unit)?;
            Some((unit, value))
        });
        match units.collect::<Vec<_>>().as_slice() {
            [(unit, value)] => super::methods::time_span(unit, value),
            _ => Err(ScriptError::unclear("expected one unit of time")),
        }
    }

    /// `Unblock-File`: a file of an image has no mark of its origin.
    fn unblock_file(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        let given = self.bind_parameters(command, &LOCATION)?;
        let path = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no file given"))?;
        let path = self.with_home(path)?;
        let Paths::One(path) = self.machine.paths(&path, Wildcards::PowerShell)? else {
            return Err(ScriptError::unclear("wildcards are not supported here"));
        };
        match self.machine.path_state(&path)? {
            PathState::File | PathState::Deferred => Ok(PsValue::Null),
            PathState::Folder => Err(ScriptError::unclear(format!("{path} is a folder"))),
            PathState::Absent => Err(ScriptError::fails(format!("{path} not found"))),
        }
    }

    fn new_object(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        let takes = ParameterSet {
            values: "typename",
            switches: "",
            positions: "typename",
        };
        let given = self.bind_parameters(command, &takes)?;
        let name = given.required("typename")?.to_lowercase();
        match name.strip_prefix("system.").unwrap_or(&name) {
            "net.webclient" => Ok(PsValue::WebClient),
            _ => Err(ScriptError::unclear(format!(
                "unsupported object type {name}"
            ))),
        }
    }

    fn foreach_object(
        &mut self,
        command: &CommandAst,
        input: Option<PsValue>,
    ) -> Result<PsValue, ScriptError> {
        let takes = ParameterSet {
            values: "process",
            switches: "",
            positions: "process",
        };
        let statements = self.bind_block(command, &takes)?;
        let input = input.unwrap_or(PsValue::Null);
        input.check_known()?;
        let mut out = Vec::new();
        for item in input.items() {
            self.machine.step()?;
            self.variables.insert("_".to_owned(), item);
            out.extend(self.run_item_block(&statements)?.items());
            if self.exit.is_some() {
                break;
            }
        }
        Ok(PsValue::from_items(out))
    }

    fn set_location(&mut self, command: &CommandAst, pushes: bool) -> Result<PsValue, ScriptError> {
        let given = self.bind_parameters(command, &LOCATION)?;
        let Some(path) = path_of(&given)? else {
            return Err(ScriptError::unclear("no folder given"));
        };
        let Drive::File(path) = self.drive(&path)? else {
            return Err(ScriptError::unclear("the destination is not a folder"));
        };
        let path = self.machine.path(&path)?;
        match self.machine.entry(&path) {
            Lookup::Absent | Lookup::Present(EntryKind::File(())) => {
                return Err(ScriptError::fails(format!("folder {path} not found")));
            }
            Lookup::Unknown => {
                return Err(ScriptError::unknown(format!(
                    "it fails unless the base has the folder {path}"
                )));
            }
            Lookup::Present(EntryKind::Folder) | Lookup::Deferred(Deferred) => {}
        }
        if pushes {
            self.machine.stack.push(self.machine.folder.clone());
        }
        self.machine.folder = path;
        Ok(PsValue::Null)
    }

    fn web_request(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        let given = self.bind_parameters(command, &WEB)?;
        let url = given.required("uri")?;
        if given
            .text("method")?
            .is_some_and(|method| !method.eq_ignore_ascii_case("get"))
        {
            return Err(ScriptError::option("-Method"));
        }
        let Some(file) = given.text("outfile")? else {
            return Ok(PsValue::opaque(format!("the response of {url} is used")));
        };
        let file = self.with_home(file)?;
        let path = self.machine.path(&file)?;
        if !self.machine.check_parent_exists(&path)? {
            return Err(ScriptError::fails(format!(
                "the folder of {path} does not exist"
            )));
        }
        let url = if url.contains("://") {
            url
        } else {
            format!("http://{url}")
        };
        tools::download(self.machine, &url, &file, true)?;
        Ok(if given.has("passthru") {
            PsValue::opaque(format!("the response of {url} is used"))
        } else {
            PsValue::Null
        })
    }

    fn expand_archive(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        let given = self.bind_parameters(command, &ARCHIVE)?;
        let archive = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no archive given"))?;
        let mut archive = self.with_home(archive)?;
        if archive.contains(['*', '?', '[']) {
            if given.value("literalpath").is_some() {
                return Err(ScriptError::unclear("wildcards are not supported here"));
            }
            archive = self.only_match(&archive)?;
        }
        if !archive.to_lowercase().ends_with(".zip") {
            return Err(ScriptError::fails(format!(
                "{archive} does not end in .zip, the only supported extension"
            )));
        }
        let folder = match given.text("destinationpath")? {
            Some(folder) => self.with_home(folder)?,
            // In the working folder, with the name of the archive.
            None => {
                let name = archive.rsplit(['\\', '/']).next().unwrap_or_default();
                let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
                format!(r".\{name}")
            }
        };
        tools::unpack_zip(self.machine, &archive, &folder, given.has("force"))?;
        self.add_assembly("System.IO.Compression.FileSystem");
        Ok(PsValue::Null)
    }

    /// The one path that a pattern matches.
    fn only_match(&self, pattern: &str) -> Result<String, ScriptError> {
        let Paths::Pattern { folder, pattern } =
            self.machine.paths(pattern, Wildcards::PowerShell)?
        else {
            return Err(ScriptError::unclear("wildcards are not supported here"));
        };
        match self
            .machine
            .glob(&folder, &pattern, Wildcards::PowerShell)?
        {
            GlobMatches::Deferred => Err(ScriptError::later(
                "which file matches is known only after a download",
            )),
            GlobMatches::Paths(paths) => match paths.as_slice() {
                [path] => Ok(path.to_string()),
                _ => Err(ScriptError::unclear(format!(
                    "{} files match {pattern}, not one",
                    paths.len()
                ))),
            },
        }
    }

    fn file_hash(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        let given = self.bind_parameters(command, &HASH)?;
        let file = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no file given"))?;
        let algorithm = given
            .text("algorithm")?
            .unwrap_or_else(|| "SHA256".to_owned());
        let algorithm = tools::algorithm(&algorithm)?;
        let path = tools::hash_file(self.machine, &self.with_home(file)?)?;
        Ok(PsValue::FileHash(path, algorithm))
    }

    fn test_path(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        let given = self.bind_parameters(command, &TEST)?;
        let path = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no path given"))?;
        let kind = given.text("pathtype")?.map(|kind| kind.to_lowercase());
        let found = match self.drive(&path)? {
            Drive::File(path) => {
                let now = match self.machine.paths(&path, Wildcards::PowerShell)? {
                    Paths::One(path) => self.machine.path_state(&path)?,
                    Paths::Pattern { .. } => {
                        return Err(ScriptError::unclear("wildcards are not supported here"));
                    }
                };
                match (now, kind.as_deref()) {
                    (PathState::Deferred, _) => {
                        return Err(ScriptError::later(
                            "it depends on a file that is downloaded later",
                        ));
                    }
                    (PathState::Absent, _) => false,
                    (_, None | Some("any")) => true,
                    (now, Some("leaf")) => now == PathState::File,
                    (now, Some("container")) => now == PathState::Folder,
                    (_, Some(other)) => return Err(ScriptError::option(other)),
                }
            }
            Drive::Registry(path) => {
                let key = super::registry::key(&path)?;
                tools::is_present(&self.machine.image.key(&key)).ok_or_else(|| {
                    ScriptError::unknown(format!("whether the base has {key} is unknown"))
                })?
            }
            Drive::Environment(name) => match self.machine.variable(&name) {
                Lookup::Present(_) => true,
                Lookup::Absent => false,
                Lookup::Deferred(Deferred) | Lookup::Unknown => {
                    return Err(ScriptError::unknown(format!(
                        "whether the variable {name} is set is unknown"
                    )));
                }
            },
            Drive::Iis(_) => return Err(ScriptError::unclear("IIS: is not supported here")),
        };
        Ok(PsValue::Bool(found))
    }

    fn join_path(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        let given = self.bind_parameters(command, &JOIN)?;
        let path = given.required("path")?;
        let child = given.required("childpath")?;
        Ok(PsValue::Text(format!(
            r"{}\{}",
            path.trim_end_matches(['\\', '/']),
            child.trim_start_matches(['\\', '/'])
        )))
    }

    fn import_certificate(&mut self, command: &CommandAst) -> Result<PsValue, ScriptError> {
        let given = self.bind_parameters(command, &CERTIFICATE)?;
        let location = given
            .required("certstorelocation")?
            .to_lowercase()
            .replace('/', "\\");
        let store = location
            .strip_prefix("cert:")
            .map(|rest| rest.trim_start_matches('\\'))
            .and_then(|rest| rest.strip_prefix("localmachine\\"))
            .ok_or_else(|| ScriptError::unclear("the store is not a store of the machine"))?;
        let file = given.required("filepath")?;
        match tools::add_certificate(self.machine, store.trim_end_matches('\\'), &file)? {
            0 => Ok(PsValue::Null),
            _ => Err(ScriptError::fails(format!("{file} not found"))),
        }
    }

    pub(super) fn apply(&mut self, action: ImageAction) -> Result<(), ScriptError> {
        self.machine.apply(action)
    }
}

/// The first URL in a text, up to a quote or space.
fn url_in(text: &str) -> Option<String> {
    let at = text.find("https://").or_else(|| text.find("http://"))?;
    let url = text[at..]
        .split(|c: char| c.is_whitespace() || "'\")(|;,".contains(c))
        .next()?;
    // It may have a password.
    (!url.contains('@')).then(|| url.to_owned())
}

/// Value of `-Path` or `-LiteralPath`.
pub(super) fn path_of(given: &BoundParameters) -> Result<Option<String>, ScriptError> {
    let value = given.value("path").or(given.value("literalpath"));
    match value.map(PsValue::texts).transpose()?.as_deref() {
        None => Ok(None),
        Some([path]) => Ok(Some(path.clone())),
        Some(_) => Err(ScriptError::unclear("several paths are not supported")),
    }
}

/// Supported cmdlets, except those of IIS.
const KNOWN: [&str; 61] = [
    "select-object",
    "where-object",
    "split-path",
    "resolve-path",
    "convert-path",
    "set-variable",
    "new-variable",
    "set-psdebug",
    "remove-item",
    "copy-item",
    "move-item",
    "rename-item",
    "new-directory",
    "new-item",
    "get-childitem",
    "get-item",
    "set-content",
    "add-content",
    "out-file",
    "get-content",
    "new-itemproperty",
    "set-itemproperty",
    "remove-itemproperty",
    "get-itemproperty",
    "get-itempropertyvalue",
    "new-service",
    "set-service",
    "set-location",
    "push-location",
    "pop-location",
    "get-location",
    "invoke-webrequest",
    "invoke-restmethod",
    "expand-archive",
    "get-filehash",
    "test-path",
    "join-path",
    "import-certificate",
    "foreach-object",
    "start-process",
    "wait-process",
    "write-output",
    "write-error",
    "write-host",
    "write-verbose",
    "write-warning",
    "write-information",
    "write-debug",
    "write-progress",
    "out-null",
    "out-host",
    "out-default",
    "start-sleep",
    "set-strictmode",
    "set-executionpolicy",
    "clear-host",
    "new-timespan",
    "unblock-file",
    "new-object",
    "add-type",
    "import-module",
];

/// Error for a cmdlet that requires Windows.
fn needs_windows(name: &str) -> Option<ScriptError> {
    Some(match name {
        "invoke-expression" => {
            ScriptError::windows("it runs a script that is known only at run time")
        }
        "install-windowsfeature"
        | "add-windowsfeature"
        | "enable-windowsoptionalfeature"
        | "disable-windowsoptionalfeature"
        | "uninstall-windowsfeature"
        | "remove-windowsfeature"
        | "add-windowscapability" => tools::feature(),
        "install-module"
        | "install-package"
        | "install-packageprovider"
        | "install-script"
        | "save-module"
        | "update-help"
        | "register-psrepository"
        | "set-psrepository" => ScriptError::windows("it runs a package manager"),
        "start-service" | "stop-service" | "restart-service" => {
            ScriptError::windows("it starts or stops a service")
        }
        "start-bitstransfer" => ScriptError::windows("it downloads through a Windows service")
            .help("download with Invoke-WebRequest -OutFile"),
        "set-timezone"
        | "new-localuser"
        | "add-localgroupmember"
        | "new-localgroup"
        | "new-selfsignedcertificate"
        | "set-acl"
        | "new-psdrive"
        | "install-pfxcertificate"
        | "import-pfxcertificate"
        | "get-authenticodesignature"
        | "new-eventlog"
        | "stop-process" => ScriptError::windows("it works only on Windows"),
        _ => return None,
    })
}
