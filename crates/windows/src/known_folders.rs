//! Folders of every Windows, with the rights that its setup gives them: what is known of a base
//! whose files were not read.

use wincimg_common::digest::Digest;
use wincimg_registry::security::layer_descriptor;
use wincimg_registry::{BaseKey, BaseKeys, BaseReadError, KeyPath, Presence};

use super::base_contents::{BaseContents, BaseFile, FileKind};
use super::path::ImagePath;

/// Of programs and Windows itself: only its installer changes them.
const PROGRAMS: &str = "O:S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464\
    G:S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464D:PAI(A;OICIIO;GA;;;CO)\
    (A;OICIIO;GA;;;SY)(A;;0x1301bf;;;SY)(A;OICIIO;GA;;;BA)(A;;0x1301bf;;;BA)(A;OICIIO;GXGR;;;BU)\
    (A;;0x1200a9;;;BU)\
    (A;CIIO;GA;;;S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464)\
    (A;;FA;;;S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464)(A;;0x1200a9;;;AC)\
    (A;OICIIO;GXGR;;;AC)(A;;0x1200a9;;;S-1-15-2-2)(A;OICIIO;GXGR;;;S-1-15-2-2)";
/// `ProgramData`, in which users create files.
const DATA: &str = "O:SYG:SYD:PAI(A;OICIIO;GA;;;CO)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)\
    (A;OICI;0x1200a9;;;BU)(A;CI;DCLCRPCR;;;BU)";
/// What everyone reads.
const READABLE: &str = "O:SYG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;;0x1200a9;;;BU)\
    (A;OICIIO;GXGR;;;BU)(A;;0x1200a9;;;WD)(A;OICIIO;GXGR;;;WD)";
/// `Users\Public`, in which every logged-on account creates files.
const PUBLIC: &str = "O:SYG:SYD:PAI(A;OICI;FA;;;BA)(A;OICIIO;GA;;;CO)(A;OICI;FA;;;SY)\
    (A;OICIIO;0x1301ff;;;IU)(A;;0x1200af;;;IU)(A;OICIIO;0x1301ff;;;SU)(A;;0x1200af;;;SU)\
    (A;OICIIO;0x1301ff;;;S-1-5-3)(A;;0x1200af;;;S-1-5-3)";
const ADMINISTRATOR: &str = "O:SYG:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;S-1-5-93-2-1)";
const USER: &str = "O:SYG:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;S-1-5-93-2-2)";
const TEMPORARY: &str = "O:SYG:SYD:PAI(A;CI;0x100026;;;BU)(A;;FA;;;BA)(A;OICIIO;GA;;;BA)(A;;FA;;;SY)\
    (A;OICIIO;GA;;;SY)(A;OICIIO;GA;;;CO)";
/// `inetpub`, with IIS.
const SITES: &str = "O:SYG:SYD:PAI(A;OICIIO;GA;;;CO)(A;OICIIO;GA;;;SY)(A;;FA;;;SY)\
    (A;OICIIO;GA;;;BA)(A;;FA;;;BA)(A;OICIIO;GXGR;;;BU)(A;;0x1200a9;;;BU)\
    (A;OICIIO;GA;;;S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464)\
    (A;;FA;;;S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464)";
/// `inetpub\wwwroot`: the same, and IIS's accounts read it.
const SITE: &str = "O:SYG:SYD:AI(A;;0x1200a9;;;S-1-5-32-568)(A;OICIIO;GXGR;;;S-1-5-32-568)\
    (A;OICIIOID;GA;;;CO)(A;OICIIOID;GA;;;SY)(A;ID;FA;;;SY)(A;OICIIOID;GA;;;BA)(A;ID;FA;;;BA)\
    (A;OICIIOID;GXGR;;;BU)(A;ID;0x1200a9;;;BU)\
    (A;OICIIOID;GA;;;S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464)\
    (A;ID;FA;;;S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464)";

static KNOWN: [(&str, &str); 19] = [
    ("inetpub", SITES),
    (r"inetpub\wwwroot", SITE),
    ("Program Files", PROGRAMS),
    ("Program Files (x86)", PROGRAMS),
    ("ProgramData", DATA),
    (r"ProgramData\Microsoft", READABLE),
    ("Users", READABLE),
    (r"Users\ContainerAdministrator", ADMINISTRATOR),
    (r"Users\ContainerUser", USER),
    (r"Users\Default", READABLE),
    (r"Users\Public", PUBLIC),
    ("Windows", PROGRAMS),
    (r"Windows\Fonts", PROGRAMS),
    (r"Windows\Microsoft.NET", PROGRAMS),
    (r"Windows\System32", PROGRAMS),
    (r"Windows\System32\drivers", PROGRAMS),
    (r"Windows\System32\drivers\etc", PROGRAMS),
    (r"Windows\SysWOW64", PROGRAMS),
    (r"Windows\Temp", TEMPORARY),
];

/// Spelling and descriptor of a known folder.
fn find(path: &ImagePath) -> Option<&'static (&'static str, &'static str)> {
    let inside = path.components().join("\\");
    let mut known = KNOWN.iter();
    known.find(|(known, _)| known.eq_ignore_ascii_case(&inside))
}

/// Returns true for a folder that Windows' setup creates.
pub fn is_known_folder(path: &ImagePath) -> bool {
    find(path).is_some()
}

/// The folder at a path, if Windows' setup creates it.
fn known_folder(path: &ImagePath) -> Option<BaseFile> {
    let (spelled, sddl) = find(path)?;
    Some(BaseFile {
        name: spelled.rsplit('\\').next().unwrap_or(spelled).to_owned(),
        kind: FileKind::Folder,
        attributes: 0x10,
        security: Some(layer_descriptor(sddl)),
    })
}

/// A base with Windows: its folders are known where its files are not.
#[derive(Debug)]
pub struct WindowsBase<'a>(pub &'a dyn BaseContents);

impl BaseKeys for WindowsBase<'_> {
    fn key(&self, path: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        self.0.key(path)
    }
}

impl BaseContents for WindowsBase<'_> {
    fn file(&self, path: &ImagePath) -> Result<Presence<BaseFile>, BaseReadError> {
        Ok(match self.0.file(path)? {
            Presence::Unknown => known_folder(path).map_or(Presence::Unknown, Presence::Present),
            found => found,
        })
    }

    fn read_dir(&self, folder: &ImagePath) -> Result<Presence<Vec<BaseFile>>, BaseReadError> {
        self.0.read_dir(folder)
    }

    fn folders_below(
        &self,
        path: &ImagePath,
    ) -> Result<Presence<Vec<(ImagePath, BaseFile)>>, BaseReadError> {
        self.0.folders_below(path)
    }

    fn content(&self, path: &ImagePath) -> Result<Presence<Vec<u8>>, BaseReadError> {
        self.0.content(path)
    }

    fn digest(&self, path: &ImagePath) -> Result<Presence<Digest>, BaseReadError> {
        self.0.digest(path)
    }

    fn account(&self, name: &str) -> Result<Presence<()>, BaseReadError> {
        self.0.account(name)
    }
}

#[cfg(test)]
mod tests {
    use wincimg_registry::UnknownBase;
    use wincimg_registry::security::SecurityDescriptor;

    use super::*;
    use crate::testing::TestBaseContents;

    #[test]
    fn every_known_folder_has_a_path_and_a_descriptor() {
        for (path, sddl) in KNOWN {
            let descriptor: SecurityDescriptor = sddl.parse().unwrap();
            let found = known_folder(&format!(r"C:\{path}").parse().unwrap()).unwrap();
            let written = found.security.unwrap();
            let read = SecurityDescriptor::from_bytes(&written).unwrap();
            assert_eq!(read, descriptor, "{path}");
            assert!(
                descriptor.owner.is_some() && descriptor.dacl.is_some(),
                "{path}"
            );
        }
    }

    #[test]
    fn what_was_read_of_a_base_comes_before_what_every_windows_has() {
        let path: ImagePath = r"C:\users\CONTAINERUSER".parse().unwrap();
        let of = |base: &dyn BaseContents| WindowsBase(base).file(&path).unwrap();
        let known = of(&UnknownBase).present().unwrap();
        assert_eq!(known.name, "ContainerUser");
        let empty = TestBaseContents::default().with_drive();
        assert_eq!(of(&empty), Presence::Absent);
        let own = "O:BAG:SYD:(A;;FA;;;BA)";
        let read = empty.with_folder(r"C:\Users\ContainerUser", 0x12, own);
        assert_ne!(of(&read).present().unwrap().security, known.security);
        let other = WindowsBase(&UnknownBase).file(&r"C:\app".parse().unwrap());
        assert_eq!(other.unwrap(), Presence::Unknown);
    }
}
