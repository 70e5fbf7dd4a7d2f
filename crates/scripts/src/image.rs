//! The image that RUN lines change: what they ask about it, and what they do to it.

use std::convert::Infallible;

use wincimg_common::digest::Algorithm;
use wincimg_iis::cmdlets::ParameterValue;
use wincimg_registry::{KeyPath, Presence, RegistryData, RegistryEdit};
use wincimg_windows::access::AccessChange;
use wincimg_windows::base_contents::FileKind;
use wincimg_windows::path::ImagePath;
use wincimg_windows::service::{FailureActions, ServiceName, ServiceSettings};

use super::error::ScriptError;

/// Marks something that is known only after a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingDownload;

/// Result of a lookup in an image.
pub type Lookup<T> = Presence<T, PendingDownload>;

/// Returns true if something exists; an error that says why where that is unknown.
pub(super) fn exists<T>(found: &Lookup<T>, unknown: &str) -> Result<bool, ScriptError> {
    match found {
        Lookup::Present(_) => Ok(true),
        Lookup::Absent => Ok(false),
        Lookup::Deferred(PendingDownload) | Lookup::Unknown => Err(ScriptError::unknown(unknown)),
    }
}

/// Kind of a path. Links are not followed; their targets are unknown.
pub type EntryKind = FileKind<(), Infallible>;

/// Image that the lines of a Dockerfile change.
///
/// Names of files and folders are case-insensitive; an existing one keeps its spelling.
pub trait ImageState {
    /// Looks up the kind of a path.
    fn entry(&self, path: &ImagePath) -> Lookup<EntryKind>;

    /// Lists the names in a folder.
    fn names(&self, folder: &ImagePath) -> Lookup<Vec<String>>;

    /// Attributes of a file or folder, the bits of Windows; none where they are unknown.
    fn attributes(&self, _path: &ImagePath) -> u32 {
        0
    }

    /// Reads a small file.
    fn content(&self, file: &ImagePath) -> Lookup<Vec<u8>>;

    /// Reads a variable of a user's hive; absent in a hive that only Windows wrote.
    fn user_variable(&self, hive: &ImagePath, name: &str) -> Lookup<RegistryData>;

    /// Reads a registry value; the empty name is the default value of the key.
    fn value(&self, key: &KeyPath, name: &str) -> Lookup<RegistryData>;

    /// Looks up a registry key.
    fn key(&self, key: &KeyPath) -> Lookup<()>;

    /// Returns true for Nano Server, which has no Windows PowerShell.
    fn is_nano_server(&self) -> bool {
        false
    }

    /// Returns true if the user of the lines created the path and may change it.
    fn is_own(&self, path: &ImagePath) -> bool;

    /// Returns true for a log that Windows writes and the image lacks: it exists, and its content is
    /// unknown.
    fn is_log(&self, _path: &ImagePath) -> bool {
        false
    }

    /// Recognises an installer among the programs of earlier lines.
    fn setup_program(&self, _path: &ImagePath) -> Lookup<InstallerProgram> {
        Lookup::Absent
    }

    /// The feed of Chocolatey packages.
    fn feed(&self) -> PackageFeed {
        PackageFeed::None
    }

    /// A feature of Chocolatey that this line or an earlier one set.
    fn chocolatey_feature(&self, _name: &str) -> Option<bool> {
        None
    }

    /// Returns true if the last installation requires a restart of Windows.
    fn restart_required(&self) -> bool {
        false
    }

    /// Applies an action.
    fn apply(&mut self, action: ImageAction) -> Result<(), ScriptError>;
}

/// Feed of Chocolatey packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PackageFeed {
    /// None.
    #[default]
    None,
    /// A folder with these files, `ID.VERSION.nupkg`.
    Folder(Vec<String>),
    /// URL of a `NuGet` feed of version 2, which has a package at `package/ID/VERSION`.
    Url(String),
}

/// An installer that is a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallerProgram {
    /// Kind.
    pub kind: String,
    /// What to do instead of running it.
    pub help: &'static str,
    /// True for a bundle of packages, which [`ImageAction::Install`] may install.
    pub is_bundle: bool,
}

/// Change that a command makes to an image. Parent folders of its paths exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageAction {
    /// Creates a folder and its parents.
    MakeFolder(ImagePath),
    /// Writes a file.
    Write {
        /// File.
        path: ImagePath,
        /// Content.
        content: Vec<u8>,
    },
    /// Appends to a file.
    Append {
        /// File.
        path: ImagePath,
        /// Appended content.
        content: Vec<u8>,
    },
    /// Downloads a file.
    Download {
        /// Source.
        url: String,
        /// File.
        path: ImagePath,
        /// True if redirects are followed.
        follows: bool,
    },
    /// Copies a package of the feed's folder.
    CopyPackage {
        /// File in the folder.
        file: String,
        /// Path of the copy.
        path: ImagePath,
    },
    /// Verifies the digest of a file; the build fails on a mismatch.
    Verify {
        /// File.
        path: ImagePath,
        /// Digest algorithm.
        algorithm: Algorithm,
        /// Digest in lower-case hexadecimal.
        digest: String,
    },
    /// Installs a Windows Installer package.
    Install(InstallAction),
    /// Unpacks an archive into a folder, which is created if necessary.
    Unpack(UnpackAction),
    /// Creates a symbolic link.
    Link(LinkAction),
    /// Copies a file or a folder with its content. An existing file is replaced, an existing folder
    /// merged.
    Copy {
        /// File or folder.
        from: ImagePath,
        /// Path of the copy.
        to: ImagePath,
    },
    /// Moves a file or folder; an existing file is replaced.
    Move {
        /// File or folder.
        from: ImagePath,
        /// New path.
        to: ImagePath,
    },
    /// Deletes a file, or a folder with its content.
    Delete(ImagePath),
    /// Marks a path whose state is known only after a download. Until then, lines are read only to
    /// find the downloads.
    Unclear(ImagePath),
    /// Edits the registry.
    Registry(RegistryEdit),
    /// Sets a variable in a user's hive, which exists.
    UserVariable {
        /// File of the hive.
        hive: ImagePath,
        /// Variable.
        name: String,
        /// Value.
        data: RegistryData,
    },
    /// Adds a certificate to a store of the machine.
    Certificate {
        /// Store, such as `ROOT`.
        store: String,
        /// File of the certificate.
        file: ImagePath,
    },
    /// Creates or changes a service.
    Service(ServiceChange),
    /// Deletes a service.
    DeleteService(ServiceName),
    /// Changes rights on a file or folder and its content.
    Access(AccessChange),
    /// Change of the IIS configuration.
    Iis(IisCommand),
    /// Turns a feature of Chocolatey on or off, for later lines too.
    ChocolateyFeature {
        /// Name.
        name: &'static str,
        /// True to turn it on.
        is_enabled: bool,
    },
    /// Tells the author how an effect differs from that on Windows.
    Note(String),
    /// Marks a log that Windows writes, which is left out.
    Log(ImagePath),
    /// Skips a check without effect, such as a program that prints its version.
    Skip(String),
}

/// Installation of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallAction {
    /// Package.
    pub package: ImagePath,
    /// Properties of the command line.
    pub properties: Vec<(String, String)>,
    /// True if it shows no dialogs.
    pub is_quiet: bool,
}

/// Creation of a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkAction {
    /// Link.
    pub path: ImagePath,
    /// Target as written.
    pub target: String,
    /// True for a link to a folder.
    pub to_folder: bool,
}

/// Unpacking of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackAction {
    /// Archive.
    pub archive: ImagePath,
    /// Format.
    pub format: UnpackFormat,
    /// Destination folder.
    pub into: ImagePath,
    /// Number of leading names removed from each path.
    pub strip: usize,
    /// Paths to unpack with their content; empty for all.
    pub only: Vec<String>,
    /// True if existing files are replaced, false if they are an error.
    pub overwrites: bool,
}

impl UnpackAction {
    /// Unpacks all of an archive; existing files are replaced.
    pub(super) fn new(archive: ImagePath, format: UnpackFormat, into: ImagePath) -> Self {
        Self {
            archive,
            format,
            into,
            strip: 0,
            only: Vec::new(),
            overwrites: true,
        }
    }
}

/// Format of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnpackFormat {
    /// Zip.
    Zip,
    /// Any format that `tar` of Windows reads, detected from the content.
    Any,
    /// Any format that 7-Zip reads, detected from the content.
    SevenZip,
}

/// Creation or change of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceChange {
    /// Name.
    pub name: ServiceName,
    /// True to create the service, false to change an existing one.
    pub is_new: bool,
    /// Settings.
    pub settings: ServiceSettings,
    /// Actions when it fails.
    pub on_failure: Option<FailureActions>,
    /// True if it fails, too, if it stops with an error.
    pub fails_on_error: bool,
}

/// Change of the IIS configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IisCommand {
    /// Arguments of `appcmd`.
    Appcmd(Vec<String>),
    /// Cmdlet of `WebAdministration` or `IISAdministration`, or a PowerShell cmdlet on `IIS:`.
    Cmdlet {
        /// Name in lower case.
        name: String,
        /// Parameters by their full names; a switch is `$true`.
        parameters: Vec<(String, ParameterValue)>,
    },
}
