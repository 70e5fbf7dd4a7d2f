//! Bases with contents: layers in the form of Windows' tools, with hives of a real Windows and
//! generated ones.

use std::io::Write;
use std::process::Command;
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use wincimg_oci::document::{Descriptor, History, Image, ManifestFormat, Platform, sha256};
use wincimg_registry::hive::{FileTime, unfitted_hives};
use wincimg_registry::security::{DescriptorLayout, SecurityDescriptor};
use wincimg_registry::{KeyMode, RegistryData, RegistryEdit};

use super::programs::{component, sample};
use super::windows_base::StandIn;

const SYSTEM: &str = "hives/SYSTEM_WIN_10_1709.xz";

pub const ENVIRONMENT: &str = r"HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment";

/// The tar of a layer under construction.
pub struct LayerTar(tar::Builder<Vec<u8>>);

impl Default for LayerTar {
    fn default() -> Self {
        let mut tar = Self(tar::Builder::new(Vec::new()));
        tar.folder("Files", None);
        tar
    }
}

impl LayerTar {
    /// Adds a folder, with its descriptor in SDDL.
    pub fn folder(&mut self, path: &str, security: Option<&str>) -> &mut Self {
        self.entry(path, tar::EntryType::Directory, "16", security, b"", None)
    }

    /// Adds a file, with its descriptor in SDDL.
    pub fn file(&mut self, path: &str, bytes: &[u8], security: Option<&str>) -> &mut Self {
        self.entry(path, tar::EntryType::Regular, "32", security, bytes, None)
    }

    pub fn hard_link(&mut self, path: &str, target: &str) -> &mut Self {
        self.entry(path, tar::EntryType::Link, "32", None, b"", Some(target))
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) -> &mut Self {
        let kind = tar::EntryType::Symlink;
        self.entry(path, kind, "1040", None, b"", Some(target))
    }

    /// Adds an entry with any records.
    pub fn entry(
        &mut self,
        path: &str,
        kind: tar::EntryType,
        attributes: &str,
        security: Option<&str>,
        bytes: &[u8],
        target: Option<&str>,
    ) -> &mut Self {
        let mut records = vec![("MSWINDOWS.fileattr".to_owned(), attributes.into())];
        if let Some(sddl) = security {
            let encoded = STANDARD.encode(descriptor(sddl));
            records.push(("MSWINDOWS.rawsd".to_owned(), encoded.into_bytes()));
        }
        self.raw(path, kind, &records, bytes, target)
    }

    /// Adds an entry with exactly these records.
    pub fn raw(
        &mut self,
        path: &str,
        kind: tar::EntryType,
        records: &[(String, Vec<u8>)],
        bytes: &[u8],
        target: Option<&str>,
    ) -> &mut Self {
        let records = records
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_slice()));
        self.0.append_pax_extensions(records).unwrap();
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        match target {
            Some(target) => self.0.append_link(&mut header, path, target).unwrap(),
            None => self.0.append_data(&mut header, path, bytes).unwrap(),
        }
        self
    }

    pub fn tar(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }
}

/// A tar of files as most tools write it; a path with a slash at its end is a folder.
pub fn tar_of<P: AsRef<str>, B: AsRef<[u8]>>(files: &[(P, B)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let (path, bytes) = (path.as_ref(), bytes.as_ref());
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        if path.ends_with('/') {
            header.set_entry_type(tar::EntryType::Directory);
        }
        tar.append_data(&mut header, path, bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

pub fn gzip(tar: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(tar).unwrap();
    gzip.finish().unwrap()
}

/// Converts a descriptor from SDDL to bytes.
pub fn descriptor(sddl: &str) -> Vec<u8> {
    let descriptor: SecurityDescriptor = sddl.parse().unwrap();
    descriptor.to_bytes(DescriptorLayout::OwnerFirst)
}

/// The hive `SYSTEM` of a Windows 10.
pub fn real_system() -> Vec<u8> {
    let mut hive = real_open_system();
    hive.copy_within(4..8, 8);
    seal(&mut hive);
    hive
}

/// The same as it was copied while Windows had it open, with one sequence number ahead.
pub fn real_open_system() -> Vec<u8> {
    static HIVE: OnceLock<Vec<u8>> = OnceLock::new();
    let hive = HIVE.get_or_init(|| {
        let mut xz = Command::new(component("xz"));
        xz.args(["--decompress", "--stdout"]).arg(sample(SYSTEM));
        xz.output().unwrap().stdout
    });
    hive.clone()
}

/// The hive with the result of edits to one root: a whole hive, not a delta.
pub fn whole_hive(edits: &[RegistryEdit]) -> Vec<u8> {
    let mut hive = delta_hive(edits);
    hive[24] = 5;
    hive[144] = 0;
    seal(&mut hive);
    each_key_node(&mut hive, |node| node[13] = 0);
    hive
}

/// Turns the keys with that name into links.
pub fn make_links(hive: &mut [u8], name: &str) {
    each_key_node(hive, |node| {
        if node[76..].starts_with(name.as_bytes()) && usize::from(node[72]) == name.len() {
            node[2] |= 0x10;
        }
    });
}

fn each_key_node(hive: &mut [u8], mut change: impl FnMut(&mut [u8])) {
    let (mut at, end) = (4096, hive.len());
    while at < end {
        let bin = at + number(hive, at + 8) as usize;
        at += 32;
        while at < bin {
            let size = i32::from_le_bytes(hive[at..at + 4].try_into().unwrap());
            if size < 0 && hive[at + 4..].starts_with(b"nk") {
                change(&mut hive[at + 4..]);
            }
            at += size.unsigned_abs() as usize;
        }
    }
}

pub fn delta_hive(edits: &[RegistryEdit]) -> Vec<u8> {
    let mut hives = unfitted_hives(edits, FileTime::from_unix_seconds(1_600_000_000)).unwrap();
    assert_eq!(hives.len(), 1, "one root touched, one hive");
    hives.remove(0).bytes
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Corrects a base block's checksum.
pub fn seal(hive: &mut [u8]) {
    let sum = (0..127).fold(0, |sum, word| sum ^ number(hive, 4 * word));
    hive[508..512].copy_from_slice(&sum.to_le_bytes());
}

pub fn set(key: &str, name: &str, data: RegistryData) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: key.parse().unwrap(),
        name: name.to_owned(),
        data,
    }
}

pub fn delete_value(key: &str, name: &str) -> RegistryEdit {
    RegistryEdit::DeleteValue {
        key: key.parse().unwrap(),
        name: name.to_owned(),
    }
}

pub fn delete_key(key: &str) -> RegistryEdit {
    RegistryEdit::DeleteKey {
        key: key.parse().unwrap(),
    }
}

pub fn create(key: &str) -> RegistryEdit {
    RegistryEdit::CreateKey {
        key: key.parse().unwrap(),
        mode: KeyMode::Replace,
    }
}

/// A `SYSTEM` hive with the keys of an image's PATH.
pub fn made_system(path: &str) -> Vec<u8> {
    whole_hive(&[
        set(ENVIRONMENT, "Path", RegistryData::expand_sz(path)),
        set(
            ENVIRONMENT,
            "ComSpec",
            RegistryData::expand_sz(r"%SystemRoot%\system32\cmd.exe"),
        ),
        set(
            r"HKLM\SYSTEM\ControlSet001\Services\w3svc",
            "Start",
            RegistryData::dword(2),
        ),
    ])
}

/// Renames a value in a hive to a name of the same length.
pub fn rename_value(hive: &mut [u8], from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let at = hive
        .windows(from.len())
        .position(|it| it == from.as_bytes())
        .unwrap();
    hive[at..at + to.len()].copy_from_slice(to.as_bytes());
}

/// A `SOFTWARE` hive with names in several alphabets and many keys.
pub fn made_software() -> Vec<u8> {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    MADE.get_or_init(make_software).clone()
}

fn make_software() -> Vec<u8> {
    let top = r"HKLM\SOFTWARE\Microsoft";
    let mut edits = vec![
        set(
            &format!(r"{top}\Windows NT\CurrentVersion"),
            "ProductName",
            RegistryData::sz("Windows Server"),
        ),
        set(
            &format!(r"{top}\Ünïкод"),
            "имя",
            RegistryData::sz("значение 😀"),
        ),
        set(
            &format!(r"{top}\long"),
            "data",
            RegistryData::binary(vec![7; 100_000]),
        ),
        create(r"HKLM\SOFTWARE\Policies"),
    ];
    for number in 0..1200 {
        let key = format!(r"{top}\Many\key {number}");
        edits.push(set(&key, "n", RegistryData::dword(number)));
    }
    whole_hive(&edits)
}

pub const FOLDER: &str = wincimg_registry::security::DIRECTORY_SDDL;
pub const USER_FOLDER: &str = "O:S-1-5-93-2-2G:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;S-1-5-93-2-2)";
pub const FILE: &str = wincimg_registry::security::FILE_SDDL;

/// The bottom layer of a base, with these hives and those that every base has.
pub fn bottom_layer(system: &[u8], software: &[u8]) -> LayerTar {
    let empty = wincimg_registry::hive::empty_hive(FileTime(1)).unwrap();
    let config = "Files/Windows/System32/config";
    let mut tar = LayerTar::default();
    tar.folder("Files/Program Files", Some(FOLDER))
        .folder("Files/Users", Some(FOLDER))
        .folder("Files/Users/ContainerUser", Some(USER_FOLDER))
        .folder("Files/Windows", Some(FOLDER))
        .folder("Files/Windows/System32", Some(FOLDER))
        .folder(config, Some(FOLDER));
    for (name, hive) in [
        ("DEFAULT", empty.as_slice()),
        ("SAM", &empty),
        ("SECURITY", &empty),
        ("SOFTWARE", software),
        ("SYSTEM", system),
    ] {
        tar.file(&format!("{config}/{name}"), hive, Some(FILE));
    }
    tar.folder("Files/Windows/System32/inetsrv", Some(FOLDER))
        .folder("Files/Windows/System32/inetsrv/config", Some(FOLDER))
        .file(
            "Files/Windows/System32/inetsrv/config/applicationHost.config",
            b"<configuration/>",
            Some(FILE),
        )
        .file("Files/Windows/System32/cmd.exe", b"MZ", Some(FILE))
        .folder("UtilityVM", None)
        .folder("UtilityVM/Files", None)
        .file("UtilityVM/Files/not-ours", b"x", None);
    tar
}

/// An upper layer with changes to `SYSTEM`, in the entry order of Windows' tools.
pub fn upper_layer(changes: &[RegistryEdit]) -> LayerTar {
    let mut tar = LayerTar::default();
    tar.folder("Hives", None);
    tar.file("Hives/System_Delta", &delta_hive(changes), None);
    tar
}

/// An image of gzipped layers, the bottom one first.
pub fn image_of(os_version: &str, tars: Vec<Vec<u8>>) -> StandIn {
    let image = Image::empty(ManifestFormat::Docker, Platform::windows(os_version)).unwrap();
    let layers = Vec::new();
    let mut image = StandIn { image, layers };
    for tar in tars {
        let bytes = Bytes::from(gzip(&tar));
        let media_type = ManifestFormat::Docker.layer_gzip();
        let blob = Descriptor::new(media_type, sha256(&bytes), bytes.len() as u64);
        image.append(blob, &tar, bytes, History::default());
    }
    image
}
