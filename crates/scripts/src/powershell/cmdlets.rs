//! The cmdlets that are understood, and the other names that they have.

use super::super::image::{Action, Entry, Later, Seen};
use super::super::machine::{Now, Paths, Wildcards};
use super::super::tools;
use super::super::trouble::Trouble;
use super::ast::Command;
use super::bind::{Given, Takes};
use super::eval::Shell;
use super::value::Value;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Drive {
    File(String),
    Registry(String),
    Iis(String),
    Environment(String),
}

/// The drive that a path is on.
pub(super) fn drive(path: &str) -> Result<Drive, Trouble> {
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
        Some((drive, _)) if drive.len() > 1 => Err(Trouble::unclear(format!(
            "the drive {drive}: is not understood"
        ))),
        _ => Ok(Drive::File(path.to_owned())),
    }
}

const NOTHING: Takes = Takes {
    values: &[],
    switches: &[],
    positions: &[],
};

const LOCATION: Takes = Takes {
    values: &["path", "literalpath"],
    switches: &[],
    positions: &["path"],
};

const WEB: Takes = Takes {
    values: &[
        "uri",
        "outfile",
        "useragent",
        "timeoutsec",
        "method",
        "maximumretrycount",
        "retryintervalsec",
        "sslprotocol",
    ],
    switches: &[
        "usebasicparsing",
        "disablekeepalive",
        "skipcertificatecheck",
    ],
    positions: &["uri"],
};

const ARCHIVE: Takes = Takes {
    values: &["path", "literalpath", "destinationpath"],
    switches: &["force"],
    positions: &["path", "destinationpath"],
};

const HASH: Takes = Takes {
    values: &["path", "literalpath", "algorithm"],
    switches: &[],
    positions: &["path", "algorithm"],
};

const JOIN: Takes = Takes {
    values: &["path", "childpath"],
    switches: &[],
    positions: &["path", "childpath"],
};

const TEST: Takes = Takes {
    values: &["path", "literalpath", "pathtype"],
    switches: &[],
    positions: &["path"],
};

const MESSAGE: Takes = Takes {
    values: &[
        "object=message",
        "foregroundcolor",
        "backgroundcolor",
        "separator",
        "messagedata",
        "category",
        "inputobject",
    ],
    switches: &["nonewline", "noenumerate"],
    positions: &["object"],
};

const CERTIFICATE: Takes = Takes {
    values: &["filepath", "certstorelocation"],
    switches: &[],
    positions: &["filepath"],
};

/// Whether a cmdlet is understood, or named as what needs Windows.
pub(super) fn is_cmdlet(name: &str) -> bool {
    KNOWN.contains(&name)
        || super::reads::tells(name)
        || super::iis::is_cmdlet(name)
        || needs_windows(name).is_some()
}

impl Shell<'_, '_> {
    /// The name of the command that another name stands for.
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
        command: &Command,
        input: Option<Value>,
    ) -> Result<Value, Trouble> {
        if let Some(trouble) = needs_windows(name) {
            return Err(trouble);
        }
        if super::iis::is_cmdlet(name) {
            return self.iis_cmdlet(name, command, input.as_ref());
        }
        if super::reads::tells(name) {
            return self.told(name, command);
        }
        match name {
            "select-object" => self.pick(command, input),
            "where-object" => self.filter(command, input),
            "split-path" => self.split_path(command, input),
            "resolve-path" | "convert-path" => self.resolve_path(command),
            "set-variable" | "new-variable" => self.set_variable_cmdlet(command),
            "remove-item" => self.remove_item(command, input),
            "copy-item" | "move-item" => self.transfer_item(command, input, name == "move-item"),
            "rename-item" => self.rename_item(command),
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
            "new-service" | "set-service" => self.service(command, name == "new-service"),
            "set-location" | "push-location" => self.set_location(command, name == "push-location"),
            "pop-location" => {
                self.given(command, &NOTHING)?;
                if let Some(folder) = self.machine.stack.pop() {
                    self.machine.folder = folder;
                }
                Ok(Value::Null)
            }
            "invoke-webrequest" | "invoke-restmethod" => self.web_request(command),
            "expand-archive" => self.expand_archive(command),
            "get-filehash" => self.file_hash(command),
            "test-path" => self.test_path(command),
            "join-path" => self.join_path(command),
            "import-certificate" => self.import_certificate(command),
            "foreach-object" => self.for_each(command, input),
            _ => self.small(name, command, input),
        }
    }

    /// Cmdlets that say something, wait, or make objects.
    fn small(
        &mut self,
        name: &str,
        command: &Command,
        input: Option<Value>,
    ) -> Result<Value, Trouble> {
        match name {
            "write-output" => {
                let given = self.given(command, &MESSAGE)?;
                match given.value("object").or(given.value("inputobject")) {
                    Some(value) => Ok(value.clone()),
                    None => Ok(input.unwrap_or(Value::Null)),
                }
            }
            "write-error" => Err(Trouble::fails("the script reports an error")),
            "write-host" | "write-verbose" | "write-warning" | "write-information"
            | "write-debug" | "write-progress" => {
                for argument in &command.arguments {
                    if let super::ast::Argument::Value(value) = argument {
                        self.expression(value)?;
                    }
                }
                Ok(Value::Null)
            }
            "out-null" | "out-host" | "out-default" => Ok(Value::Null),
            "start-sleep"
            | "set-strictmode"
            | "set-executionpolicy"
            | "clear-host"
            | "set-psdebug" => {
                if name == "set-strictmode" {
                    return Err(Trouble::unclear("what it forbids is not followed"));
                }
                Ok(Value::Null)
            }
            "new-object" => self.new_object(command),
            "add-type" => {
                let takes = Takes {
                    values: &["assemblyname"],
                    switches: &[],
                    positions: &[],
                };
                let given = self.given(command, &takes)?;
                for name in given.texts("assemblyname")? {
                    self.loads(&name);
                }
                Ok(Value::Null)
            }
            "import-module" => {
                let takes = Takes {
                    values: &["name"],
                    switches: &["force", "disablenamechecking", "skipeditioncheck"],
                    positions: &["name"],
                };
                let given = self.given(command, &takes)?;
                let module = given.needed("name")?;
                match module.to_lowercase().as_str() {
                    "webadministration"
                    | "iisadministration"
                    | "servermanager"
                    | "microsoft.powershell.archive"
                    | "microsoft.powershell.utility"
                    | "microsoft.powershell.management" => Ok(Value::Null),
                    _ => Err(Trouble::windows(format!("it runs the module {module}"))),
                }
            }
            "get-location" => Ok(Value::Text(self.machine.folder.to_string())),
            _ => Err(Trouble::unclear("the cmdlet is not understood")),
        }
    }

    fn new_object(&mut self, command: &Command) -> Result<Value, Trouble> {
        let takes = Takes {
            values: &["typename"],
            switches: &[],
            positions: &["typename"],
        };
        let given = self.given(command, &takes)?;
        let name = given.needed("typename")?.to_lowercase();
        match name.strip_prefix("system.").unwrap_or(&name) {
            "net.webclient" => Ok(Value::WebClient),
            _ => Err(Trouble::unclear(format!(
                "an object of type {name} is not understood"
            ))),
        }
    }

    fn for_each(&mut self, command: &Command, input: Option<Value>) -> Result<Value, Trouble> {
        let takes = Takes {
            values: &["process"],
            switches: &[],
            positions: &["process"],
        };
        let given = self.given(command, &takes)?;
        let Some(Value::Block(statements)) = given.value("process").cloned() else {
            return Err(Trouble::unclear("it is given something else than a block"));
        };
        let input = input.unwrap_or(Value::Null);
        input.is_known()?;
        let mut out = Vec::new();
        for item in input.items() {
            self.machine.step()?;
            self.variables.insert("_".to_owned(), item);
            out.extend(self.block_of_item(&statements)?.items());
            if self.exit.is_some() {
                break;
            }
        }
        Ok(Value::of(out))
    }

    fn set_location(&mut self, command: &Command, pushes: bool) -> Result<Value, Trouble> {
        let given = self.given(command, &LOCATION)?;
        let Some(path) = path_of(&given)? else {
            return Err(Trouble::unclear("it names no folder"));
        };
        let Drive::File(path) = drive(&path)? else {
            return Err(Trouble::unclear("it goes to something else than a folder"));
        };
        let path = self.machine.path(&path)?;
        match self.machine.entry(&path) {
            Seen::Absent | Seen::Present(Entry::File(())) => {
                return Err(Trouble::fails(format!("the folder {path} is not there")));
            }
            Seen::Unknown => {
                return Err(Trouble::unknown(format!(
                    "it fails unless the base has the folder {path}"
                )));
            }
            Seen::Present(Entry::Folder) | Seen::Later(Later) => {}
        }
        if pushes {
            self.machine.stack.push(self.machine.folder.clone());
        }
        self.machine.folder = path;
        Ok(Value::Null)
    }

    fn web_request(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &WEB)?;
        let url = given.needed("uri")?;
        if given
            .text("method")?
            .is_some_and(|method| !method.eq_ignore_ascii_case("get"))
        {
            return Err(Trouble::option("-Method"));
        }
        let Some(file) = given.text("outfile")? else {
            return Ok(Value::opaque(format!("what {url} answers is used")));
        };
        let path = self.machine.path(&file)?;
        if !self.machine.parent_is_there(&path)? {
            return Err(Trouble::fails(format!("the folder of {path} is not there")));
        }
        let url = if url.contains("://") {
            url
        } else {
            format!("http://{url}")
        };
        tools::download(self.machine, &url, &file, true)?;
        Ok(Value::Null)
    }

    fn expand_archive(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &ARCHIVE)?;
        let archive = path_of(&given)?.ok_or_else(|| Trouble::unclear("it names no archive"))?;
        if archive.contains(['*', '?', '[']) {
            return Err(Trouble::unclear("wildcards are not understood here"));
        }
        if !archive.to_lowercase().ends_with(".zip") {
            return Err(Trouble::fails(format!(
                "{archive} does not end in .zip, the only kind that it takes"
            )));
        }
        let folder = match given.text("destinationpath")? {
            Some(folder) => folder,
            // In the folder that it works in, by the archive's name.
            None => {
                let name = archive.rsplit(['\\', '/']).next().unwrap_or_default();
                let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
                format!(r".\{name}")
            }
        };
        tools::unpack_zip(self.machine, &archive, &folder, given.has("force"))?;
        self.loads("System.IO.Compression.FileSystem");
        Ok(Value::Null)
    }

    fn file_hash(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &HASH)?;
        let file = path_of(&given)?.ok_or_else(|| Trouble::unclear("it names no file"))?;
        let algorithm = given
            .text("algorithm")?
            .unwrap_or_else(|| "SHA256".to_owned());
        let algorithm = tools::algorithm(&algorithm)?;
        let path = tools::hash_file(self.machine, &file)?;
        Ok(Value::FileHash(path, algorithm))
    }

    fn test_path(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &TEST)?;
        let path = path_of(&given)?.ok_or_else(|| Trouble::unclear("it names no path"))?;
        let kind = given.text("pathtype")?.map(|kind| kind.to_lowercase());
        let found = match drive(&path)? {
            Drive::File(path) => {
                let now = match self.machine.paths(&path, Wildcards::PowerShell)? {
                    Paths::One(path) => self.machine.now(&path)?,
                    Paths::Pattern { .. } => {
                        return Err(Trouble::unclear("wildcards are not understood here"));
                    }
                };
                match (now, kind.as_deref()) {
                    (Now::Later, _) => {
                        return Err(Trouble::later(
                            "it depends on a file that is not downloaded yet",
                        ));
                    }
                    (Now::Absent, _) => false,
                    (_, None | Some("any")) => true,
                    (now, Some("leaf")) => now == Now::File,
                    (now, Some("container")) => now == Now::Folder,
                    (_, Some(other)) => return Err(Trouble::option(other)),
                }
            }
            Drive::Registry(path) => {
                let key = super::registry::key(&path)?;
                tools::is_there(&self.machine.image.key(&key)).ok_or_else(|| {
                    Trouble::unknown(format!("whether the base has {key} is not known"))
                })?
            }
            Drive::Environment(name) => match self.machine.variable(&name) {
                Seen::Present(_) => true,
                Seen::Absent => false,
                Seen::Later(Later) | Seen::Unknown => {
                    return Err(Trouble::unknown(format!(
                        "whether the variable {name} is set is not known"
                    )));
                }
            },
            Drive::Iis(_) => return Err(Trouble::unclear("IIS: is not understood here")),
        };
        Ok(Value::Bool(found))
    }

    fn join_path(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &JOIN)?;
        let path = given.needed("path")?;
        let child = given.needed("childpath")?;
        Ok(Value::Text(format!(
            r"{}\{}",
            path.trim_end_matches(['\\', '/']),
            child.trim_start_matches(['\\', '/'])
        )))
    }

    fn import_certificate(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &CERTIFICATE)?;
        let location = given
            .needed("certstorelocation")?
            .to_lowercase()
            .replace('/', "\\");
        let store = location
            .strip_prefix("cert:")
            .map(|rest| rest.trim_start_matches('\\'))
            .and_then(|rest| rest.strip_prefix("localmachine\\"))
            .ok_or_else(|| Trouble::unclear("the store is not one of the machine's"))?;
        let file = given.needed("filepath")?;
        match tools::add_certificate(self.machine, store.trim_end_matches('\\'), &file)? {
            0 => Ok(Value::Null),
            _ => Err(Trouble::fails(format!("{file} is not there"))),
        }
    }

    pub(super) fn apply(&mut self, action: Action) -> Result<(), Trouble> {
        self.machine.apply(action)
    }
}

/// The one path that a cmdlet is given, by either name.
pub(super) fn path_of(given: &Given) -> Result<Option<String>, Trouble> {
    let value = given.value("path").or(given.value("literalpath"));
    match value.map(Value::texts).transpose()?.as_deref() {
        None => Ok(None),
        Some([path]) => Ok(Some(path.clone())),
        Some(_) => Err(Trouble::unclear("it is given several paths")),
    }
}

/// Every cmdlet that is understood, but for those of IIS.
const KNOWN: [&str; 56] = [
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
    "new-object",
    "add-type",
    "import-module",
];

/// Why a cmdlet takes Windows.
fn needs_windows(name: &str) -> Option<Trouble> {
    Some(match name {
        "start-process" => Trouble::windows("it starts a program"),
        "invoke-expression" => {
            Trouble::windows("it runs a script that is made or fetched while it runs")
        }
        "install-windowsfeature"
        | "add-windowsfeature"
        | "enable-windowsoptionalfeature"
        | "disable-windowsoptionalfeature"
        | "uninstall-windowsfeature"
        | "remove-windowsfeature"
        | "add-windowscapability" => {
            Trouble::windows("a feature of Windows is turned on or off by Windows")
                .help("take a base image that has the feature")
        }
        "install-module"
        | "install-package"
        | "install-packageprovider"
        | "install-script"
        | "save-module"
        | "update-help"
        | "register-psrepository"
        | "set-psrepository" => Trouble::windows("a package manager runs"),
        "start-service" | "stop-service" | "restart-service" => {
            Trouble::windows("a service starts or stops")
        }
        "start-bitstransfer" => Trouble::windows("it downloads through a service of Windows")
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
        | "wait-process"
        | "stop-process" => Trouble::windows("only Windows can do or tell this"),
        _ => return None,
    })
}
