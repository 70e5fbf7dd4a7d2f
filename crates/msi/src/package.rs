//! A package: its tables, and the content of its files.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use wincimg_registry::Presence;
use wincimg_windows::path::ImagePath;

use super::cabinet::Cabinet;
use super::database::{Compound, Database, stream_name};
use super::error::MsiError;
use super::extensions::certificate_streams;
use super::plan::{
    InstallOptions, InstallPlan, InstalledContent, NEW_INSTANCE, Product, TransformPlace,
};
use super::session::{InstalledSystem, Session};
use super::summary::Summary;

/// Beginning of what a checkout without Git LFS has in place of a file.
const LFS_POINTER: &[u8] = b"version https://git-lfs";

/// A package for Windows Installer.
pub struct Package<R> {
    file: Compound<R>,
    database: Database,
    summary: Summary,
    size: u64,
}

impl<R: Read + Seek> Package<R> {
    /// Reads the tables of a package.
    pub fn read(mut reader: R) -> Result<Self, MsiError> {
        let size = reader.seek(SeekFrom::End(0))?;
        reader.rewind()?;
        let mut start = Vec::new();
        let length = LFS_POINTER.len() as u64;
        reader.by_ref().take(length).read_to_end(&mut start)?;
        if start == LFS_POINTER {
            let why = "it is a pointer of Git LFS: run git lfs pull for the package";
            return Err(MsiError::damaged(why));
        }
        reader.rewind()?;
        let mut file = Compound::open(reader)
            .map_err(|error| MsiError::damaged(format!("it is not a package: {error}")))?;
        let summary = Summary::read(&mut file, "")?;
        let database = Database::read(&mut file)?;
        Ok(Self {
            file,
            database,
            summary,
            size,
        })
    }

    /// The product, as the package names it.
    pub fn product(&self) -> Product {
        let property = |name: &str| self.database.property(name).to_owned();
        Product::from_properties(property, self.summary.platform())
    }

    /// Plans what an installation leaves behind.
    pub fn plan(
        &mut self,
        options: &InstallOptions,
        system: &dyn InstalledSystem,
    ) -> Result<InstallPlan, MsiError> {
        if !options.property("PATCH").is_empty() {
            let why = "only Windows Installer can apply a patch (PATCH): use the updated package";
            return Err(MsiError::unsupported(why));
        }
        let mut database = Cow::Borrowed(&self.database);
        let mut transforms = Vec::new();
        let places = options.transforms()?;
        let is_instance = !options.property(NEW_INSTANCE).is_empty();
        for (number, place) in places.iter().enumerate() {
            let applied =
                apply_transform(place, &mut database, &mut self.file, system, &self.summary);
            transforms.extend(applied.map_err(|error| error.of_transform(place))?);
            let is_same = database.property("ProductCode") == self.database.property("ProductCode");
            if is_instance && number == 0 && is_same {
                return Err(no_instance());
            }
        }
        if is_instance && places.is_empty() {
            return Err(no_instance());
        }
        let streams = certificate_streams(&database);
        if !streams.is_empty() {
            database.to_mut().keep_streams(&mut self.file, streams)?;
        }
        let session = Session {
            database: &database,
            system,
            options,
            summary: &self.summary,
            package_size: self.size,
            transforms,
            product: Product::default(),
            properties: BTreeMap::new(),
            directories: BTreeMap::new(),
            features: BTreeMap::new(),
            components: BTreeMap::new(),
            unknown: Vec::new(),
            unknown_searches: BTreeSet::new(),
            unknown_values: RefCell::default(),
            missing_action: None,
            open_condition: None,
            formatted: Cell::default(),
            notes: Vec::new(),
        };
        session.run()
    }

    /// Applies a transform to the tables.
    #[cfg(fuzzing)]
    pub(crate) fn transform(&mut self, transform: &[u8]) -> Result<(), MsiError> {
        transform_file(transform, &mut self.database, &self.summary)
    }

    /// The contents in the package itself, with their sizes: members of its cabinets, and icons.
    pub fn contents(&mut self) -> Result<Vec<(InstalledContent, u64)>, MsiError> {
        let mut contents = Vec::new();
        let cabinets = self.database.rows("Media").map(|row| row.text("Cabinet"));
        let cabinets: BTreeSet<&str> = cabinets.filter(|it| it.starts_with('#')).collect();
        for cabinet in cabinets {
            let mut stream = open_stream(&mut self.file, &cabinet[1..])?;
            let directory = Cabinet::read(&mut stream).map_err(|error| failed(cabinet, &error))?;
            contents.extend(directory.members().map(|member| {
                let content = InstalledContent::Cabinet {
                    cabinet: cabinet.to_owned(),
                    member: member.name.clone(),
                };
                (content, u64::from(member.size))
            }));
        }
        for row in self.database.rows("Icon") {
            let name = format!("Icon.{}", row.text("Name"));
            let size = open_stream(&mut self.file, &name)?.len();
            contents.push((InstalledContent::Stream(name), size));
        }
        Ok(contents)
    }

    /// Reads contents that are in the package, cabinet by cabinet. A file beside it is an error; the
    /// package itself is not read.
    pub fn read_contents(
        &mut self,
        wanted: &BTreeSet<&InstalledContent>,
        sink: &mut dyn FnMut(&InstalledContent, &mut dyn Read) -> io::Result<()>,
    ) -> Result<(), MsiError> {
        let mut cabinets: BTreeMap<&str, Members<'_>> = BTreeMap::new();
        for &content in wanted {
            match content {
                InstalledContent::Cabinet { cabinet, member } if cabinet.starts_with('#') => {
                    let members = cabinets.entry(cabinet).or_default();
                    members.insert(member, content);
                }
                InstalledContent::Stream(name) => {
                    sink(content, &mut open_stream(&mut self.file, name)?)?;
                }
                InstalledContent::Bytes(bytes) => sink(content, &mut bytes.as_slice())?,
                InstalledContent::Cabinet { cabinet: path, .. }
                | InstalledContent::Beside(path) => {
                    let why = format!("{path}, a file beside the package, not found");
                    return Err(MsiError::Fails(why));
                }
                InstalledContent::Package => {}
            }
        }
        for (cabinet, members) in cabinets {
            let mut stream = open_stream(&mut self.file, &cabinet[1..])?;
            read_cabinet(&mut stream, cabinet, &members, sink)?;
        }
        Ok(())
    }
}

/// Error for another instance without its code.
fn no_instance() -> MsiError {
    MsiError::Fails(format!(
        "{NEW_INSTANCE} requires TRANSFORMS, whose first transform changes the ProductCode"
    ))
}

/// Applies a transform, and returns its file if it is one of the image.
fn apply_transform<R: Read + Seek>(
    place: &TransformPlace,
    database: &mut Cow<'_, Database>,
    package: &mut Compound<R>,
    system: &dyn InstalledSystem,
    summary: &Summary,
) -> Result<Option<(ImagePath, Vec<u8>)>, MsiError> {
    match place {
        TransformPlace::Package(name) => {
            let folder = format!("/{name}");
            if !package.is_storage(&folder) {
                return Err(MsiError::Fails("it is not in the package".to_owned()));
            }
            database.to_mut().transform(package, &folder, summary)?;
            Ok(None)
        }
        TransformPlace::File(path) => match system.content(path) {
            Presence::Present(bytes) => {
                transform_file(&bytes, database.to_mut(), summary)?;
                Ok(Some((path.clone(), bytes)))
            }
            Presence::Absent => Err(MsiError::Fails("it does not exist".to_owned())),
            Presence::Unknown => {
                let why = "its content is unknown: COPY it into the image";
                Err(MsiError::unsupported(why))
            }
        },
    }
}

fn transform_file(bytes: &[u8], database: &mut Database, own: &Summary) -> Result<(), MsiError> {
    let file = Compound::open(Cursor::new(bytes));
    let mut file = file.map_err(|error| MsiError::damaged(error.to_string()))?;
    database.transform(&mut file, "", own)
}

/// Members of a cabinet, by name.
type Members<'a> = BTreeMap<&'a str, &'a InstalledContent>;

fn open_stream<R: Read + Seek>(
    file: &mut Compound<R>,
    name: &str,
) -> Result<cfb::Stream<R>, MsiError> {
    let opened = file.open_stream(stream_name(name, false));
    opened.map_err(|error| MsiError::damaged(format!("stream {name:?}: {error}")))
}

fn failed(cabinet: &str, error: &io::Error) -> MsiError {
    MsiError::damaged(format!("cabinet {cabinet}: {error}"))
}

fn read_cabinet(
    reader: &mut (impl Read + Seek),
    name: &str,
    members: &Members<'_>,
    sink: &mut dyn FnMut(&InstalledContent, &mut dyn Read) -> io::Result<()>,
) -> Result<(), MsiError> {
    let cabinet = Cabinet::read(reader).map_err(|error| failed(name, &error))?;
    let mut missing: BTreeSet<&str> = members.keys().copied().collect();
    let unpacked = cabinet.unpack(
        reader,
        &|member| members.contains_key(member.name.as_str()),
        &mut |member, bytes| {
            let Some(content) = members.get(member.name.as_str()) else {
                return Ok(());
            };
            missing.remove(member.name.as_str());
            sink(content, bytes)
        },
    );
    unpacked.map_err(|error| failed(name, &error))?;
    match missing.first() {
        Some(member) => Err(MsiError::damaged(format!(
            "cabinet {name} has no file {member:?}"
        ))),
        None => Ok(()),
    }
}
