//! Cmdlets that read files and paths: downloads, archives, tests.

use super::super::error::{self, Ends, Result, ScriptError};
use super::super::image::{EntryKind, Lookup, PendingDownload, exists};
use super::super::process::{HIDDEN, PathState, Paths, Wildcards};
use super::super::tools::{self, QUOTE};
use super::ast::{Argument, CommandAst, Expression};
use super::drive::{Drive, path_of};
use super::eval::Shell;
use super::has_word;
use super::parameters::ParameterSet;
use super::value::PsValue;

const NOTHING: ParameterSet = ParameterSet("");

const LOCATION: ParameterSet = ParameterSet("[path] literalpath=pspath=lp passthru!");

const WEB: ParameterSet = ParameterSet(
    "[uri] outfile useragent timeoutsec method maximumretrycount retryintervalsec sslprotocol \
     usebasicparsing? passthru? disablekeepalive? skipcertificatecheck? usedefaultcredentials! \
     transferencoding! maximumredirection! proxy! proxycredential! proxyusedefaultcredentials! \
     sessionvariable! websession! credential! certificatethumbprint! certificate! headers! body! \
     contenttype! infile!",
);

const ARCHIVE: ParameterSet = ParameterSet("[path] literalpath=pspath [destinationpath] force?");

const HASH: ParameterSet = ParameterSet("[path] literalpath=pspath=lp [algorithm]");

const JOIN: ParameterSet = ParameterSet("[path=pspath] [childpath] credential! ...");

const TEST: ParameterSet = ParameterSet("[path] literalpath=pspath=lp pathtype");

const CERTIFICATE: ParameterSet = ParameterSet("[filepath] certstorelocation");

impl Shell<'_, '_> {
    /// `Unblock-File`: a file of an image has no mark of its origin.
    pub(super) fn unblock_file(&mut self, command: &CommandAst) -> Result<()> {
        let given = self.bind_parameters(command, &LOCATION)?;
        let path = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no file given"))?;
        let path = self.with_home(path)?;
        let path = self.machine.only_path(&path)?;
        match self.machine.path_state(&path)? {
            PathState::File | PathState::Deferred => Ok(()),
            PathState::Folder => error::unclear(format!("{path} is a folder")),
            PathState::Absent => error::fails(format!("{path} not found")),
        }
    }

    pub(super) fn set_location(&mut self, command: &CommandAst, pushes: bool) -> Result<()> {
        let given = self.bind_parameters(command, &LOCATION)?;
        let path = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no folder given"))?;
        let path = self.file_path(&path, "the destination is not a folder")?;
        let path = self.machine.path(&path)?;
        if !self.machine.has_folder(&path)? {
            return error::fails(format!("folder {path} not found"));
        }
        if pushes {
            self.machine.stack.push(self.machine.folder.clone());
        }
        self.machine.folder = path;
        Ok(())
    }

    pub(super) fn pop_location(&mut self, command: &CommandAst) -> Result<()> {
        self.bind_parameters(command, &NOTHING)?;
        if let Some(folder) = self.machine.stack.pop() {
            self.machine.folder = folder;
        }
        Ok(())
    }

    pub(super) fn web_request(&mut self, name: &str, command: &CommandAst) -> Result<PsValue> {
        if is_for_curl(command) {
            let why = "it is Invoke-WebRequest in Windows PowerShell, which has no such option";
            let error = ScriptError::fails(why).ending(Ends::Statement);
            return Err(error.help("write the name with .exe, as in curl.exe"));
        }
        let given = self.bind_parameters(command, &WEB)?;
        let url = given.required("uri")?;
        if given
            .text("method")?
            .is_some_and(|method| !method.eq_ignore_ascii_case("get"))
        {
            return error::option("-Method");
        }
        let Some(file) = given.text("outfile")? else {
            if name == "invoke-webrequest" && !self.is_core && !given.has("usebasicparsing") {
                let why = "without -UseBasicParsing, Windows PowerShell reads the answer with \
                           Internet Explorer, which containers do not have";
                return Err(ScriptError::windows(why).instead("add -UseBasicParsing"));
            }
            return Ok(PsValue::opaque(format!("the response of {url} is used")));
        };
        if url.is_empty() {
            let is_unset = |argument: &Argument| match argument {
                Argument::Value(Expression::Variable(name)) => {
                    name.starts_with("env:")
                        && self.variable(name).text().is_ok_and(|text| text.is_empty())
                }
                _ => false,
            };
            let error = ScriptError::fails("-Uri is empty").ending(Ends::Statement);
            return Err(error.help(if command.arguments.iter().any(is_unset) {
                "the variable has no value: add --build-arg NAME=VALUE, or set it with ENV"
            } else {
                QUOTE
            }));
        }
        let file = self.with_home(file)?;
        if self.is_core && self.may_be_folder(&file) {
            return error::unclear("PowerShell 7.4 downloads into a folder, earlier versions fail");
        }
        let path = self.machine.file_path(&file)?;
        self.machine.ensure_parent(&path, false)?;
        let url = if url.contains("://") {
            url
        } else {
            format!("http://{url}")
        };
        tools::download(self.machine, &url, path, true)?;
        Ok(if given.has("passthru") {
            PsValue::opaque(format!("the response of {url} is used"))
        } else {
            PsValue::Null
        })
    }

    /// Returns true for a folder, and for the name of one that the base may have.
    fn may_be_folder(&self, name: &str) -> bool {
        let Ok(path) = self.machine.path(name) else {
            return false;
        };
        match self.machine.entry(&path) {
            Lookup::Present(kind) => kind == EntryKind::Folder,
            Lookup::Unknown => name.ends_with(['\\', '/']),
            Lookup::Absent | Lookup::Deferred(PendingDownload) => false,
        }
    }

    pub(super) fn expand_archive(&mut self, command: &CommandAst) -> Result<()> {
        let given = self.bind_parameters(command, &ARCHIVE)?;
        let archive = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no archive given"))?;
        let mut archive = self.with_home(archive)?;
        if archive.contains(['*', '?', '[']) {
            if given.value("literalpath").is_some() {
                return error::unclear("wildcards are not supported here");
            }
            archive = self.only_match(&archive)?;
        }
        if !archive.to_lowercase().ends_with(".zip") {
            let why = format!("{archive} does not end in .zip, the only supported extension");
            return Err(ScriptError::fails(why).ending(Ends::Statement));
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
        let done = tools::unpack_zip(self.machine, &archive, &folder, given.has("force"));
        done.map_err(|error| error.ending(Ends::Statement))?;
        self.add_assembly("System.IO.Compression.FileSystem");
        Ok(())
    }

    /// The one path that a pattern matches.
    fn only_match(&self, pattern: &str) -> Result<String> {
        let Paths::Pattern { folder, pattern } =
            self.machine.paths(pattern, Wildcards::PowerShell)?
        else {
            return error::unclear("wildcards are not supported here");
        };
        let found = self
            .machine
            .glob(&folder, &pattern, Wildcards::PowerShell, HIDDEN)?;
        match found.as_deref() {
            None => error::later("which file matches is known only after a download"),
            Some([path]) => Ok(path.to_string()),
            Some(paths) => {
                error::unclear(format!("{} files match {pattern}, not one", paths.len()))
            }
        }
    }

    pub(super) fn file_hash(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &HASH)?;
        let file = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no file given"))?;
        let algorithm = given
            .text("algorithm")?
            .unwrap_or_else(|| "SHA256".to_owned());
        let algorithm = tools::algorithm(&algorithm)?;
        let path = tools::hash_file(self.machine, &self.with_home(file)?)?;
        Ok(PsValue::FileHash(path, algorithm))
    }

    pub(super) fn test_path(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &TEST)?;
        let path = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no path given"))?;
        let kind = given.text("pathtype")?.map(|kind| kind.to_lowercase());
        let found = match self.drive(&path)? {
            Drive::File(path) => {
                let now = self.machine.path_state(&self.machine.only_path(&path)?)?;
                match (now, kind.as_deref()) {
                    (PathState::Deferred, _) => return error::unread_file(),
                    (PathState::Absent, _) => false,
                    (_, None | Some("any")) => true,
                    (now, Some("leaf")) => now == PathState::File,
                    (now, Some("container")) => now == PathState::Folder,
                    (_, Some(other)) => return error::option(other),
                }
            }
            Drive::Registry(path) => {
                let key = super::registry::key(&path)?;
                let unknown = format!("whether the base has {key} is unknown");
                exists(&self.machine.image.key(&key), &unknown)?
            }
            Drive::Environment(name) => {
                let unknown = format!("whether the variable {name} is set is unknown");
                exists(&self.machine.variable(&name), &unknown)?
            }
            Drive::Iis(_) => return error::unclear("IIS: is not supported here"),
        };
        Ok(PsValue::Bool(found))
    }

    pub(super) fn join_path(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &JOIN)?;
        let path = given.required("path")?;
        if path.is_empty() {
            return Err(ScriptError::fails("-Path is empty").ending(Ends::Statement));
        }
        if let Some((drive, _)) = path.split_once(':')
            && !drive.contains(['\\', '/'])
            && !has_word("c hklm hkcu registry env iis cert", &drive.to_lowercase())
        {
            return error::unclear(format!("whether the drive of {path} exists is not known"));
        }
        let child = given.required("childpath")?;
        let joined = format!(
            r"{}\{}",
            path.trim_end_matches(['\\', '/']),
            child.trim_start_matches(['\\', '/'])
        );
        Ok(PsValue::Text(joined.replace('/', r"\")))
    }

    pub(super) fn import_certificate(&mut self, command: &CommandAst) -> Result<()> {
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
            0 => Ok(()),
            _ => error::fails(format!("{file} not found")),
        }
    }
}

/// Returns true for options of the program that `curl` or `wget` names elsewhere.
fn is_for_curl(command: &CommandAst) -> bool {
    let is_alias = matches!(
        &command.name,
        Expression::Word(name) if ["curl", "wget"].iter().any(|it| it.eq_ignore_ascii_case(name))
    );
    let mut arguments = command.arguments.iter();
    is_alias
        && arguments.any(|argument| match argument {
            Argument::Parameter { name, .. } => WEB.lacks(name),
            _ => false,
        })
}
