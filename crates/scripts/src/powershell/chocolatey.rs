//! Chocolatey's functions, for the scripts of its packages.
//!
//! What they set for the user, they set for the machine here: the user of a build has a registry
//! only once Windows has created the profile.

use wincimg_common::digest::Algorithm;
use wincimg_registry::RegistryData;
use wincimg_windows::path::ImagePath;

use super::super::chocolatey::{CACHE, ROOT, SUCCESS, add_to_path};
use super::super::error::{self, Result, ScriptError};
use super::super::image::{ImageAction, Lookup, UnpackAction, UnpackFormat};
use super::super::process::is_within;
use super::super::tools;
use super::ast::CommandAst;
use super::eval::Shell;
use super::parameters::{BoundParameters, ParameterSet};
use super::value::PsValue;

/// The parameters of the functions that install, with their own in front; each ignores those of the
/// others, so that one list of parameters serves all.
macro_rules! install_parameters {
    ($own:literal) => {
        ParameterSet(concat!(
            $own,
            " packagename filetype=installertype=installtype silentargs url url64bit=url64 checksum \
              checksumtype checksum64 checksumtype64 validexitcodes softwarename specificfolder \
              getoriginalfilename? forcedownload? disablelogging? useoriginallocation? \
              useonlypackagesilentarguments=useonlypackagesilentargs? ..."
        ))
    };
}

const PACKAGE: ParameterSet = install_parameters!(
    "[packagename] [filetype] [silentargs] [url] [url64bit] file file64 destination=unziplocation"
);
const INSTALLER: ParameterSet = install_parameters!(
    "[packagename] [filetype] [silentargs] [file=filefullpath] file64=filefullpath64 \
     destination=unziplocation"
);
const ZIP: ParameterSet = install_parameters!(
    "[packagename] [url] [destination=unziplocation] [url64bit] file=filefullpath \
     file64=filefullpath64"
);
const UNZIP: ParameterSet = install_parameters!(
    "[file=filefullpath] [destination=unziplocation] [specificfolder] [packagename] \
     file64=filefullpath64"
);
const WEB_FILE: ParameterSet =
    install_parameters!("[packagename] [filefullpath=file] [url] [url64bit]");

const PROCESS: ParameterSet = ParameterSet(
    "[statements] [exetorun] [validexitcodes] workingdirectory minimized? nosleep? elevated? ...",
);

const BIN_FILE: ParameterSet = ParameterSet("[name] [path] command usestart=isgui? ...");

const PATH: ParameterSet = ParameterSet("[pathtoinstall] [pathtype] ...");

const VARIABLE: ParameterSet = ParameterSet("[variablename] [variablevalue] [variabletype] ...");

const PARAMETERS: ParameterSet = ParameterSet("[parameters=params] ...");

const WIDTH: ParameterSet = ParameterSet("[compare] ...");

/// Supported functions.
pub(super) const FUNCTIONS: &str = "
    install-chocolateypackage install-chocolateyinstallpackage install-chocolateyzippackage
    get-chocolateyunzip get-chocolateywebfile start-chocolateyprocessasadmin install-binfile
    install-chocolateypath install-chocolateyenvironmentvariable install-chocolateyshortcut
    install-chocolateydesktoplink install-chocolateyfileassociation
    install-chocolateyexplorermenuitem install-chocolateypinnedtaskbaritem get-packageparameters
    get-toolslocation get-osarchitecturewidth get-processorbits update-sessionenvironment refreshenv
";

/// A file to download, or of the image.
struct PackageFile {
    place: String,
    checksum: Option<(Algorithm, String)>,
}

impl Shell<'_, '_> {
    pub(super) fn chocolatey_function(
        &mut self,
        name: &str,
        command: &CommandAst,
    ) -> Result<PsValue> {
        match name {
            "install-chocolateypackage" => {
                let given = self.bind_parameters(command, &PACKAGE)?;
                let kind = text(&given, "filetype")?.unwrap_or_else(|| "exe".to_owned());
                let file = self.cached_file(&given, &kind)?;
                self.run_installer(&given, &file, &kind, command)
            }
            "install-chocolateyinstallpackage" => {
                let given = self.bind_parameters(command, &INSTALLER)?;
                let file = local_file(&given)?;
                let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
                let kind = text(&given, "filetype")?.unwrap_or_else(|| extension.to_owned());
                self.hide_installer(&file)?;
                self.run_installer(&given, &file, &kind, command)
            }
            "install-chocolateyzippackage" => {
                let given = self.bind_parameters(command, &ZIP)?;
                let file = self.cached_file(&given, "zip")?;
                self.unzip(&given, &file)
            }
            "get-chocolateyunzip" => {
                let given = self.bind_parameters(command, &UNZIP)?;
                let file = local_file(&given)?;
                self.unzip(&given, &file)
            }
            "get-chocolateywebfile" => {
                let given = self.bind_parameters(command, &WEB_FILE)?;
                let source = package_file(&given)?;
                let file = given.required("filefullpath")?;
                self.fetch(&source, &file).map(PsValue::Text)
            }
            _ => self.chocolatey_setting(name, command),
        }
    }

    /// Runs a function other than those that take the files of a package.
    fn chocolatey_setting(&mut self, name: &str, command: &CommandAst) -> Result<PsValue> {
        match name {
            "start-chocolateyprocessasadmin" => self.start_as_administrator(command),
            "install-binfile" => self.install_bin_file(command),
            "install-chocolateypath" => {
                let given = self.bind_parameters(command, &PATH)?;
                let folder = given.required("pathtoinstall")?;
                self.note_scope(&given, "pathtype", "PATH")?;
                add_to_path(self.machine, &folder)?;
                Ok(PsValue::Null)
            }
            "install-chocolateyenvironmentvariable" => self.set_environment(command),
            "get-packageparameters" => self.package_parameters(command),
            "get-toolslocation" => Ok(match self.variable("env:chocolateytoolslocation") {
                PsValue::Null => PsValue::text_value(r"C:\tools"),
                known => known,
            }),
            "get-osarchitecturewidth" | "get-processorbits" => {
                let given = self.bind_parameters(command, &WIDTH)?;
                Ok(match given.value("compare") {
                    None | Some(PsValue::Null) => PsValue::Number(64),
                    Some(compared) => PsValue::Bool(compared.number() == Some(64)),
                })
            }
            "update-sessionenvironment" | "refreshenv" => Ok(PsValue::Null),
            // A desktop that a container does not have.
            _ => {
                self.apply(ImageAction::Skip(name.to_owned()))?;
                Ok(PsValue::Null)
            }
        }
    }

    /// The file of a package in the folder of downloads.
    fn cached_file(&mut self, given: &BoundParameters, kind: &str) -> Result<String> {
        let source = package_file(given)?;
        let kind = kind.to_ascii_lowercase();
        let folder = ["temp", "chocolateypackagename", "chocolateypackageversion"]
            .map(|name| self.variable(&format!("env:{name}")).text());
        let [temp, id, version] = folder;
        let name = source.place.split(['?', '#']).next().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        // The server may name it otherwise.
        let name =
            if name.to_ascii_lowercase().ends_with(&format!(".{kind}")) && !name.contains('%') {
                name.to_owned()
            } else {
                format!("{}Install.{kind}", given.required("packagename")?)
            };
        self.fetch(&source, &format!(r"{}\{}\{}\{name}", temp?, id?, version?))
    }

    /// Downloads a file, and returns its path.
    fn fetch(&mut self, source: &PackageFile, file: &str) -> Result<String> {
        let place = &source.place;
        let file = if place.contains("://") { file } else { place };
        let path = self.machine.path(file)?;
        if place.contains("://") {
            let may_change = place.to_ascii_lowercase().starts_with("http:");
            let is_allowed = self.variable("env:chocolateyallowemptychecksums") != PsValue::Null;
            if may_change && source.checksum.is_none() && !is_allowed {
                return error::fails(format!("the download {place} has no checksum"));
            }
            if let Some(folder) = path.parent() {
                self.apply(ImageAction::MakeFolder(folder))?;
            }
            tools::download(self.machine, place, path.clone(), true)?;
        } else if !self.machine.has_file(&path)? {
            return error::fails(format!("{path} not found"));
        }
        if let Some((algorithm, digest)) = &source.checksum {
            self.apply(ImageAction::Verify {
                path: path.clone(),
                algorithm: *algorithm,
                digest: digest.clone(),
            })?;
        }
        Ok(path.to_string())
    }

    /// Installs an MSI, or an installer that is a bundle of one.
    fn run_installer(
        &mut self,
        given: &BoundParameters,
        file: &str,
        kind: &str,
        command: &CommandAst,
    ) -> Result<PsValue> {
        let more = self.variable("env:chocolateyinstallarguments").text()?;
        let mut arguments = given.texts("silentargs")?.join(" ");
        if self.variable("env:chocolateyinstalloverride") != PsValue::Null {
            arguments.clear();
        }
        let line = match kind.to_ascii_lowercase().as_str() {
            "msi" => format!("msiexec.exe /i \"{file}\" {arguments} {more}"),
            "msu" | "msp" => return error::windows(format!("{file} is an update of Windows")),
            _ => format!("\"{file}\" {arguments} {more}"),
        };
        self.make_folders(&format!("{arguments} {more}"))?;
        let code = self.run_program(&line, command)?;
        self.machine.package_code = Some(self.valid_exit_code(given, code)?);
        Ok(PsValue::Null)
    }

    /// Makes the folders of quoted paths of an installer's arguments, such as a log, and the folder of
    /// downloads.
    fn make_folders(&mut self, arguments: &str) -> Result<()> {
        let quoted = arguments.split(['"', '\'']).skip(1).step_by(2);
        let paths = quoted.filter(|text| text.get(1..3) == Some(":\\"));
        let paths = paths.filter_map(|text| self.machine.path(text).ok());
        let mut folders: Vec<ImagePath> = paths.filter_map(|path| path.parent()).collect();
        if arguments.contains(CACHE) {
            folders.push(self.machine.path(CACHE)?);
        }
        for folder in folders {
            if self.machine.entry(&folder) == Lookup::Absent {
                self.apply(ImageAction::MakeFolder(folder))?;
            }
        }
        Ok(())
    }

    /// Throws if the exit code of a program is not a valid one, else returns the one to pass on.
    fn valid_exit_code(&mut self, given: &BoundParameters, code: i32) -> Result<i32> {
        let valid = given.value("validexitcodes").cloned();
        let valid = valid.unwrap_or(PsValue::Number(0));
        valid.check_known()?;
        let mut valid = valid.items().into_iter();
        if valid.any(|it| it.number() == Some(i64::from(code))) {
            return Ok(if SUCCESS.contains(&code) { code } else { 0 });
        }
        let why = format!("the installer ends with exit code {code}");
        let error = self.machine.take_error(why);
        Err(if tools::RESTART.contains(&code) {
            error.help("add the exit code to validExitCodes of the package's script")
        } else {
            error
        })
    }

    /// Writes the `.ignore` file that keeps Chocolatey from making a shim of an installer.
    fn hide_installer(&mut self, file: &str) -> Result<()> {
        let file = self.machine.path(file)?;
        if !is_within(&file, &self.machine.path(ROOT)?) {
            return Ok(());
        }
        self.apply(ImageAction::Write {
            path: self.machine.path(&format!("{file}.ignore"))?,
            // An empty line as Out-File writes it.
            content: vec![0xFF, 0xFE, b'\r', 0, b'\n', 0],
        })
    }

    fn start_as_administrator(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &PROCESS)?;
        let Some(program) = text(&given, "exetorun")? else {
            return error::unclear("a script as text is not supported");
        };
        let statements = given.texts("statements")?.join(" ");
        let code = self.run_program(&format!("\"{program}\" {statements}"), command)?;
        let code = self.valid_exit_code(&given, code)?;
        Ok(PsValue::Number(i64::from(code)))
    }

    /// Unpacks an archive with 7-Zip.
    fn unzip(&mut self, given: &BoundParameters, file: &str) -> Result<PsValue> {
        let archive = self.machine.path(file)?;
        let destination = given.required("destination")?;
        let into = self.machine.path(&destination)?;
        if !self.machine.has_file(&archive)? {
            return error::fails(format!("{archive} not found"));
        }
        let mut unpack = UnpackAction::new(archive, UnpackFormat::SevenZip, into);
        if let Some(folder) = text(given, "specificfolder")? {
            if folder.contains(['*', '?']) {
                return error::option("-SpecificFolder");
            }
            unpack.only.push(folder.replace('\\', "/"));
        }
        self.apply(ImageAction::Unpack(unpack))?;
        Ok(PsValue::Text(destination))
    }

    /// Makes a program callable by its name.
    fn install_bin_file(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &BIN_FILE)?;
        let name = given.required("name")?;
        let path = self.machine.path(&given.required("path")?)?;
        let own = tools::program_name(path.name());
        let more = text(&given, "command")?;
        let folder = match path.parent() {
            Some(folder) if own.eq_ignore_ascii_case(&name) && more.is_none() => folder.to_string(),
            _ => {
                let is_plain = path.to_string().is_ascii() && !path.to_string().contains('%');
                if name.contains(['\\', '/', ':']) || !is_plain {
                    let why = format!("a .cmd file {name:?} that starts {path} is unclear");
                    return error::unclear(why);
                }
                let folder = format!(r"{ROOT}\bin");
                let file = self.machine.path(&format!(r"{folder}\{name}.cmd"))?;
                let more = more.map(|more| format!(" {more}")).unwrap_or_default();
                let content = format!("@\"{path}\"{more} %*\r\n").into_bytes();
                self.apply(ImageAction::MakeFolder(self.machine.path(&folder)?))?;
                self.apply(ImageAction::Write {
                    path: file,
                    content,
                })?;
                folder
            }
        };
        add_to_path(self.machine, &folder)?;
        self.apply(ImageAction::Note(format!(
            "{folder} is added to PATH for {name}"
        )))?;
        Ok(PsValue::Null)
    }

    fn set_environment(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &VARIABLE)?;
        let name = given.required("variablename")?;
        let value = given.text("variablevalue")?.unwrap_or_default();
        self.note_scope(&given, "variabletype", &name)?;
        let data = (!value.is_empty()).then(|| RegistryData::sz(&value));
        if data.is_some() {
            self.machine.variables.set(&name, Some(value));
        }
        tools::set_machine_variable(self.machine, &name, data)?;
        Ok(PsValue::Null)
    }

    /// Says that a variable of the user is set for the machine.
    fn note_scope(
        &mut self,
        given: &BoundParameters,
        parameter: &'static str,
        name: &str,
    ) -> Result<()> {
        let scope = text(given, parameter)?.unwrap_or_else(|| "user".to_owned());
        match scope.to_ascii_lowercase().as_str() {
            "machine" => Ok(()),
            "user" => self.apply(ImageAction::Note(format!(
                "{name} is set for the machine instead of the user"
            ))),
            _ => error::option(&scope),
        }
    }

    /// Reads `/Name:Value /Switch` of the command line.
    fn package_parameters(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &PARAMETERS)?;
        let written = match text(&given, "parameters")? {
            Some(written) => written,
            None => self.variable("env:chocolateypackageparameters").text()?,
        };
        let mut table: Vec<(String, PsValue)> = Vec::new();
        for part in split_parameters(&written) {
            let end = part.find([':', '=']).unwrap_or(part.len());
            let name = part[..end].trim().to_lowercase();
            let value = part.get(end + 1..).unwrap_or_default().trim();
            let value = value.trim_matches(['\'', '"']);
            table.retain(|(known, _)| *known != name);
            table.push((
                name,
                match value {
                    "" => PsValue::Bool(true),
                    value => PsValue::text_value(value),
                },
            ));
        }
        Ok(PsValue::Table(table.into()))
    }
}

/// The parameters of a text, without the slash that each begins with.
fn split_parameters(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = None;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == '/' && before.is_whitespace() {
            parts.extend(begin.map(|begin| &text[begin..at]));
            begin = Some(at + 1);
        }
        before = c;
    }
    parts.extend(begin.map(|begin| &text[begin..]));
    parts
}

/// A parameter that is not empty.
fn text(given: &BoundParameters, name: &str) -> Result<Option<String>> {
    Ok(given.text(name)?.filter(|text| !text.is_empty()))
}

/// One of two parameters that is not empty.
fn either(given: &BoundParameters, one: &str, other: &str) -> Result<Option<String>> {
    match text(given, one)? {
        Some(text) => Ok(Some(text)),
        None => text(given, other),
    }
}

/// The file of a function that takes only local ones.
fn local_file(given: &BoundParameters) -> Result<String> {
    let file = either(given, "file64", "file")?;
    file.ok_or_else(|| ScriptError::fails("no file given"))
}

/// The file for 64-bit Windows, with its checksum.
fn package_file(given: &BoundParameters) -> Result<PackageFile> {
    let of_32 = either(given, "url", "file")?;
    let of_64 = either(given, "url64bit", "file64")?;
    let is_own = of_64.is_some() && of_64 != of_32;
    let Some(place) = of_64.or(of_32) else {
        return error::fails("no URL given");
    };
    let mut kind = text(given, "checksumtype")?;
    let checksum = if is_own {
        kind = text(given, "checksumtype64")?.or(kind);
        text(given, "checksum64")?
    } else {
        text(given, "checksum")?
    };
    let checksum = match checksum {
        Some(digest) => {
            let algorithm = tools::algorithm(kind.as_deref().unwrap_or("md5"))?;
            Some((algorithm, digest.trim().to_lowercase()))
        }
        None => None,
    };
    Ok(PackageFile { place, checksum })
}
