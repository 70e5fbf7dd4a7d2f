//! Supported cmdlets and their aliases.

use super::super::error::{self, Ends, Result, ScriptError};
use super::super::image::ImageAction;
use super::super::script;
use super::super::tools;
use super::ast::CommandAst;
use super::command::check_not_piped;
use super::eval::Shell;
use super::has_word;
use super::iis;
use super::parameters::ParameterSet;
use super::value::{Input, PsValue};
use super::variables;

const MESSAGE: ParameterSet = ParameterSet(
    "[object=message] foregroundcolor backgroundcolor separator messagedata category \
     inputobject nonewline? noenumerate? ...",
);

/// Parameters of the cmdlets that write one message.
const ONE_MESSAGE: ParameterSet = ParameterSet("[message=msg]");

const STRICT: ParameterSet = ParameterSet("version off?");

/// Approved verbs of cmdlets, and those of `ForEach-Object` and its like.
const VERBS: &str = "
    add approve assert backup block build checkpoint clear close compare complete compress
    confirm connect convert convertfrom convertto copy debug deny deploy disable disconnect
    dismount edit enable enter exit expand export find foreach format get grant group hide
    import initialize install invoke join limit lock measure merge mount move new open optimize
    out ping pop protect publish push read receive redo register remove rename repair request
    reset resize resolve restart restore resume revoke save search select send set show skip
    sort split start step stop submit suspend switch sync tee test trace unblock undo uninstall
    unlock unprotect unpublish unregister update use wait watch where write
";

/// Cmdlets that read their pipeline input here, and those of which it changes only what they print.
const READS_INPUT: &str = "
    foreach-object where-object select-object split-path remove-item copy-item move-item
    rename-item set-content add-content out-file write-output wait-process invoke-expression
    write-host write-information write-verbose write-warning write-debug out-null out-host
    out-default start-sleep write-error
";

/// Cmdlets with their aliases.
const ALIASES: &str = "
    remove-item=rm=ri=del=erase=rd=rmdir move-item=mv=mi=move copy-item=cp=copy=cpi
    rename-item=ren=rni new-directory=md=mkdir new-item=ni set-itemproperty=sp
    remove-itemproperty=rp get-itemproperty=gp get-childitem=gci=ls=dir get-item=gi
    get-content=gc=cat=type add-content=ac set-content=sc invoke-webrequest=iwr=curl=wget
    invoke-restmethod=irm write-output=echo=write set-location=cd=sl=chdir push-location=pushd
    pop-location=popd start-sleep=sleep start-process=saps=start invoke-expression=iex
    import-module=ipmo foreach-object=foreach=% select-object=select select-string=sls
    get-service=gsv get-command=gcm resolve-path=rvpa stop-service=spsv start-service=sasv
    where-object=where=? set-variable=sv=set out-host=oh
";

/// Returns true for a name of the form Verb-Noun with a verb of PowerShell's cmdlets; other names,
/// such as `redis-server`, are programs.
pub(super) fn is_cmdlet(name: &str) -> bool {
    script::is_cmdlet(name)
        && name
            .split_once('-')
            .is_some_and(|(verb, _)| has_word(VERBS, verb))
}

impl Shell<'_, '_> {
    /// Resolves an alias.
    pub(super) fn alias(&self, name: &str) -> String {
        if self.is_core && matches!(name, "sc" | "curl" | "wget") {
            return name.to_owned();
        }
        let mut cmdlets = ALIASES.split_ascii_whitespace();
        let full = cmdlets.find_map(|entry| {
            let (full, aliases) = entry.split_once('=')?;
            aliases
                .split('=')
                .any(|alias| alias == name)
                .then_some(full)
        });
        full.unwrap_or(name).to_owned()
    }

    pub(super) fn cmdlet(
        &mut self,
        name: &str,
        command: &CommandAst,
        input: Input,
    ) -> Result<PsValue> {
        if name == "invoke-expression" {
            return self.run_time_script(command, input.as_ref());
        }
        if let Some(error) = needs_windows(name) {
            return Err(error);
        }
        if has_word(super::output_cmdlets::OUTPUT_ONLY, name) {
            return self.skip_output_cmdlet(name, command);
        }
        if !has_word(READS_INPUT, name) {
            check_not_piped(input.as_ref(), "this cmdlet")?;
        }
        if let Some(takes) = iis::parameters_of(name) {
            let given = self.bind_parameters(command, takes)?;
            return self.iis(name, command, iis::parameters(command, &given)?);
        }
        match name {
            "select-object" => self.select_object(command, input),
            "where-object" => self.with_items(|shell| shell.where_object(command, input)),
            "split-path" => self.split_path(command, input),
            "resolve-path" | "convert-path" => self.resolve_path(command),
            "new-directory" => self.new_directory(command),
            "new-item" if self.is_new_on_iis(command) => self.new_on_iis(command),
            "new-item" => self.new_item(command),
            "get-childitem" | "get-item" => self.get_items(command, name == "get-item"),
            "get-content" => self.get_content(command),
            "get-itemproperty" => self.get_property(command),
            "get-location" => Ok(PsValue::Text(self.machine.folder.to_string())),
            "invoke-webrequest" | "invoke-restmethod" => self.web_request(name, command),
            "get-filehash" => self.file_hash(command),
            "test-path" => self.test_path(command),
            "join-path" => self.join_path(command),
            "foreach-object" => self.with_items(|shell| shell.foreach_object(command, input)),
            "new-object" => self.new_object(command),
            "start-process" => self.start_process(command),
            "write-output" => self.write_output(command, input),
            _ => self
                .silent_cmdlet(name, command, input)
                .map(|()| PsValue::Null),
        }
    }

    /// Runs a cmdlet without output.
    fn silent_cmdlet(&mut self, name: &str, command: &CommandAst, input: Input) -> Result<()> {
        match name {
            "set-variable" | "new-variable" => self.set_variable_cmdlet(command),
            "remove-item" => self.remove_item(command, input),
            "copy-item" | "move-item" => self.transfer_item(command, input, name == "move-item"),
            "rename-item" => self.rename_item(command, input),
            "set-content" | "add-content" => {
                self.set_content(command, input, name == "add-content")
            }
            "out-file" => self.out_file_cmdlet(command, input),
            "new-itemproperty" | "set-itemproperty" => {
                self.set_property(command, name == "new-itemproperty")
            }
            "remove-itemproperty" => self.remove_property(command),
            "new-service" | "set-service" => self.service(command, name == "new-service"),
            "set-location" | "push-location" => self.set_location(command, name == "push-location"),
            "pop-location" => self.pop_location(command),
            "expand-archive" => self.expand_archive(command),
            "import-certificate" => self.import_certificate(command),
            "write-error" if input.as_ref().is_some_and(PsValue::is_empty) => Ok(()),
            "write-error" => error::fails("the script writes an error"),
            "write-verbose" | "write-warning" | "write-debug" => {
                self.bind_parameters(command, &ONE_MESSAGE).map(drop)
            }
            "write-host" | "write-information" | "write-progress" => {
                for argument in &command.arguments {
                    if let super::ast::Argument::Value(value) = argument {
                        let value = self.expression(value);
                        value.map_err(|error| error.ending(Ends::Statement))?;
                    }
                }
                Ok(())
            }
            "set-executionpolicy" => self.set_execution_policy(command),
            "out-null" | "out-host" | "out-default" | "start-sleep" | "clear-host"
            | "set-psdebug" => Ok(()),
            variables::STRICT => {
                let given = self.bind_parameters(command, &STRICT)?;
                if given.has("off") {
                    self.variables.remove(name);
                } else {
                    self.variables.insert(name.to_owned(), PsValue::Null);
                }
                Ok(())
            }
            "wait-process" => self.wait_process(command, input.as_ref()),
            "unblock-file" => self.unblock_file(command),
            "add-type" => self.add_type(command),
            "import-module" => self.import_module_cmdlet(command),
            _ => error::unclear("unsupported cmdlet"),
        }
    }

    fn write_output(&mut self, command: &CommandAst, input: Input) -> Result<PsValue> {
        let given = self.bind_parameters(command, &MESSAGE)?;
        match given.value("object").or(given.value("inputobject")) {
            Some(value) => {
                check_not_piped(input.as_ref(), "this cmdlet")?;
                command.check_number(value)?;
                Ok(value.clone())
            }
            None => Ok(input.unwrap_or(PsValue::Null)),
        }
    }

    fn add_type(&mut self, command: &CommandAst) -> Result<()> {
        let takes = ParameterSet("assemblyname ...");
        let given = self.bind_parameters(command, &takes)?;
        for name in given.texts("assemblyname")? {
            self.add_assembly(&name);
        }
        Ok(())
    }

    /// `Import-Module` of a script of the image, or of a module whose cmdlets are supported.
    fn import_module_cmdlet(&mut self, command: &CommandAst) -> Result<()> {
        let takes = ParameterSet("[name] force? disablenamechecking? skipeditioncheck? function!");
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
            | "microsoft.powershell.management" => Ok(()),
            _ => error::windows(format!("it runs the module {module}")),
        }
    }

    fn new_object(&mut self, command: &CommandAst) -> Result<PsValue> {
        let takes = ParameterSet("[typename] ...");
        let given = self.bind_parameters(command, &takes)?;
        let name = given.required("typename")?.to_lowercase();
        match name.strip_prefix("system.").unwrap_or(&name) {
            "net.webclient" => Ok(PsValue::WebClient),
            _ => error::unclear(format!("unsupported object type {name}")),
        }
    }

    fn foreach_object(&mut self, command: &CommandAst, input: Input) -> Result<PsValue> {
        let takes = ParameterSet("[process] ...");
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

    pub(super) fn apply(&mut self, action: ImageAction) -> Result<()> {
        self.machine.apply(action)
    }
}

/// Cmdlets that change the features of Windows.
const FEATURES: &str = "
    install-windowsfeature add-windowsfeature enable-windowsoptionalfeature
    disable-windowsoptionalfeature uninstall-windowsfeature remove-windowsfeature
    add-windowscapability
";

/// Cmdlets of package managers.
const PACKAGES: &str = "
    install-module install-package install-packageprovider install-script save-module update-help
    register-psrepository set-psrepository
";

/// Cmdlets on other state of a running Windows.
const RUNNING: &str = "
    set-timezone new-localuser add-localgroupmember new-localgroup new-selfsignedcertificate
    set-acl new-psdrive install-pfxcertificate import-pfxcertificate get-authenticodesignature
    new-eventlog stop-process
";

/// Error for a cmdlet that requires Windows.
fn needs_windows(name: &str) -> Option<ScriptError> {
    Some(match name {
        "start-service" | "stop-service" | "restart-service" => tools::services::not_running(),
        "start-bitstransfer" => ScriptError::windows("it downloads through a Windows service")
            .help("download with Invoke-WebRequest -OutFile"),
        _ if has_word(FEATURES, name) => tools::feature(),
        _ if has_word(PACKAGES, name) => ScriptError::windows("it runs a package manager"),
        _ if has_word(RUNNING, name) => ScriptError::windows("it works only on Windows"),
        _ => return None,
    })
}
