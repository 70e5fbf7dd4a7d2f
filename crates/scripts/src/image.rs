//! The image that RUN lines change: what they ask about it, and what they do to it.

use std::convert::Infallible;

use wincimg_iis::cmdlets::ParameterValue;
use wincimg_registry::{KeyPath, Presence, RegistryData, RegistryEdit};
use wincimg_windows::base_contents::FileKind;
use wincimg_windows::path::ImagePath;

use super::error::ScriptError;

/// That something is known once what is downloaded has been downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Later;

/// What is known of something that an image may have.
pub type Lookup<T> = Presence<T, Later>;

/// What a path is. Where links lead is not followed: nothing is known of what is there.
pub type EntryKind = FileKind<(), Infallible>;

/// An image on its way through the lines of a Dockerfile.
///
/// Names of files and folders are the same in capitals and small letters; one that is there keeps
/// the spelling it has.
pub trait ImageState {
    /// What a path is.
    fn entry(&self, path: &ImagePath) -> Lookup<EntryKind>;

    /// The names of what is in a folder.
    fn names(&self, folder: &ImagePath) -> Lookup<Vec<String>>;

    /// The content of a small file.
    fn content(&self, file: &ImagePath) -> Lookup<Vec<u8>>;

    /// The data of a value of the registry; the empty name is the key's default value.
    fn value(&self, key: &KeyPath, name: &str) -> Lookup<RegistryData>;

    /// Returns true if a key of the registry is there.
    fn key(&self, key: &KeyPath) -> Lookup<()>;

    /// Returns true if who runs the lines made what is at a path, and so may change it.
    fn is_own(&self, path: &ImagePath) -> bool;

    /// Does something to it.
    fn apply(&mut self, action: ImageAction) -> Result<(), ScriptError>;
}

/// Something that a command does to an image. Folders that it names but the last are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageAction {
    /// The folder is there, and those above it.
    MakeFolder(ImagePath),
    /// The file is there and has this content.
    Write {
        /// The file.
        path: ImagePath,
        /// What is in it.
        content: Vec<u8>,
    },
    /// The file is there and has this content behind what was in it.
    Append {
        /// The file.
        path: ImagePath,
        /// What comes behind.
        content: Vec<u8>,
    },
    /// The file is what a server sends.
    Download {
        /// Where from.
        url: String,
        /// The file.
        path: ImagePath,
        /// True if the program goes where the server sends it on to.
        follows: bool,
    },
    /// The build fails unless the file has this digest.
    Verify {
        /// The file.
        path: ImagePath,
        /// How the digest is made.
        algorithm: Algorithm,
        /// The digest in hexadecimal digits, small letters.
        digest: String,
    },
    /// What is in an archive is laid into a folder, which is made if need be.
    Unpack(UnpackAction),
    /// A copy of a file, or of a folder with everything in it, is there by this other name. A file
    /// of that name is replaced, a folder filled up.
    Copy {
        /// The file or folder.
        from: ImagePath,
        /// The name of the copy.
        to: ImagePath,
    },
    /// A file or folder has this other name; a file of that name is replaced.
    Move {
        /// The file or folder.
        from: ImagePath,
        /// Its new name.
        to: ImagePath,
    },
    /// The file is gone, or the folder with everything in it.
    Delete(ImagePath),
    /// What is at this path, or whether anything is, is known once what is downloaded is there: until
    /// then lines are read to find out what is to be downloaded.
    Unclear(ImagePath),
    /// A change of the registry.
    Registry(RegistryEdit),
    /// A certificate comes into a store of the machine.
    Certificate {
        /// The store, such as `ROOT`.
        store: String,
        /// The file with the certificate.
        file: ImagePath,
    },
    /// A service is made or changed.
    Service(ServiceChange),
    /// Someone may do more with a file or folder, and with what is in it.
    Access(AccessGrant),
    /// A change of IIS's configuration.
    Iis(IisCommand),
    /// A check that nothing depends on, such as that a program says its version, is left out.
    Skip(String),
}

/// How a digest is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// An archive that is unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackAction {
    /// The archive.
    pub archive: ImagePath,
    /// What it may be.
    pub format: UnpackFormat,
    /// The folder that its content is laid into.
    pub into: ImagePath,
    /// How many names are dropped from the start of each path.
    pub strip: usize,
    /// The paths that are unpacked, with what is below them; all where empty.
    pub only: Vec<String>,
    /// What happens to files that are there already.
    pub existing: OverwriteMode,
}

/// What an archive may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnpackFormat {
    /// A zip file.
    Zip,
    /// What `tar` of Windows reads, by its content.
    Any,
    /// What 7-Zip reads, by its content.
    SevenZip,
}

/// What happens to files that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverwriteMode {
    /// They are replaced.
    Replaced,
    /// They are an error.
    Error,
}

/// A change of the services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceChange {
    /// Its name.
    pub name: String,
    /// True if it is made; otherwise it is there and changed.
    pub is_new: bool,
    /// The command line.
    pub command: Option<String>,
    /// The name that people see.
    pub display_name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// When it starts.
    pub start: Option<ServiceStart>,
    /// The account it runs as.
    pub account: Option<String>,
    /// The services that it needs.
    pub depends_on: Option<Vec<String>>,
}

/// When a service starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceStart {
    /// With Windows.
    Auto,
    /// With Windows, a little later.
    Delayed,
    /// When someone asks.
    Demand,
    /// Never.
    Disabled,
}

/// Who may do what with a file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessGrant {
    /// The file or folder.
    pub path: ImagePath,
    /// The account, as it is written.
    pub account: String,
    /// What it may do, as `icacls` spells it: `(OI)(CI)F`.
    pub rights: String,
    /// True if it loses what it was granted before.
    pub replaces: bool,
    /// True if what is in the folder gets an entry of its own too.
    pub each_inside: bool,
}

/// A change of IIS's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IisCommand {
    /// What `appcmd` is called with.
    Appcmd(Vec<String>),
    /// A cmdlet of `WebAdministration` or `IISAdministration`, or one of PowerShell's own on `IIS:`: its
    /// name in small letters, its parameters by their full names.
    Cmdlet {
        /// The name.
        name: String,
        /// The parameters; a switch is `$true`.
        parameters: Vec<(String, ParameterValue)>,
    },
}
