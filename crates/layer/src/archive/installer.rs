//! Windows Installer packages as archives: their members are the contents of files, by cabinet.
//!
//! A package is one only where it is opened as such: `tar` and `ADD` do not unpack it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

use wincimg_common::diagnose::error_chain;
use wincimg_common::files::{FileWindow, Window};
use wincimg_msi::{
    Bundle, Cabinet, CabinetMember, InstallOptions, InstallPlan, InstalledContent, InstalledSystem,
    MsiError, Package, SetupProgram,
};

use super::error::ArchiveError;
use super::member::{Member, MemberReader};
use super::{Archive, ArchiveEntry, ArchiveEntryKind, ArchiveFormat, ArchiveLocation, ArchiveSize};

fn failed(archive: &str, error: MsiError) -> ArchiveError {
    match error {
        MsiError::Read(source) => ArchiveError::read(archive, source),
        MsiError::Unsupported(problem) => ArchiveError::Unsupported {
            what: archive.to_owned(),
            problem,
        },
        error => ArchiveError::whole(archive, error_chain(&error)),
    }
}

impl ArchiveLocation {
    /// The kind of an installer that is a program; none for other files, and what cannot be read.
    pub fn setup_program(&self) -> Option<SetupProgram> {
        let (mut window, _) = self.open().ok()?;
        SetupProgram::detect(&mut window).ok()?
    }
}

impl Archive {
    /// What a bundle says of its package.
    pub fn bundle(&self) -> Result<Bundle, MsiError> {
        let (mut window, _) = self.place.open()?;
        Bundle::read(&mut window)
    }

    /// Plans the installation of a package.
    pub fn plan_installation(
        &self,
        options: &InstallOptions,
        system: &dyn InstalledSystem,
    ) -> Result<InstallPlan, MsiError> {
        let (window, _) = self.place.open()?;
        Package::read(window)?.plan(options, system)
    }

    /// The member with a content of a package.
    pub fn installed_member(self: &Arc<Self>, content: &InstalledContent) -> Option<Member> {
        self.member_named(&content.to_string())
    }

    /// The member with a name in a cabinet.
    pub fn member_named(self: &Arc<Self>, path: &str) -> Option<Member> {
        Some(Member {
            archive: Arc::clone(self),
            index: self.index_of(path)?,
        })
    }

    /// The index of a member, of which there may be thousands: [`list`] sorts them.
    fn index_of(&self, path: &str) -> Option<usize> {
        let by_path = |entry: &ArchiveEntry| entry.path.as_str().cmp(path);
        self.entries.binary_search_by(by_path).ok()
    }
}

pub(super) fn list(
    archive: &str,
    window: FileWindow,
    format: ArchiveFormat,
) -> Result<Vec<ArchiveEntry>, ArchiveError> {
    let mut sum = ArchiveSize::new(archive, window.length());
    let members = members(window, format).map_err(|error| failed(archive, error))?;
    let mut entries = Vec::with_capacity(members.len());
    for (path, size) in members {
        sum.add(&path, size)?;
        entries.push(ArchiveEntry::new(path, ArchiveEntryKind::File, size));
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

/// Paths and sizes of the members.
fn members(window: FileWindow, format: ArchiveFormat) -> Result<Vec<(String, u64)>, MsiError> {
    if format == ArchiveFormat::Installer {
        let contents = Package::read(window)?.contents()?.into_iter();
        return Ok(contents.map(|(it, size)| (it.to_string(), size)).collect());
    }
    let (_, cabinet) = cabinet(window, format)?;
    let members = cabinet.members();
    Ok(members
        .map(|it| (it.name.clone(), it.size.into()))
        .collect())
}

/// A cabinet, or that with the packages of a bundle.
fn cabinet(
    mut window: FileWindow,
    format: ArchiveFormat,
) -> Result<(Window<FileWindow>, Cabinet), MsiError> {
    if format == ArchiveFormat::Bundle {
        let bundle = Bundle::read(&mut window)?;
        return Ok(bundle.cabinet(window)?);
    }
    let length = window.length();
    let mut whole = Window::new(window, 0, length)?;
    let cabinet = Cabinet::read(&mut whole)?;
    Ok((whole, cabinet))
}

pub(super) fn each_of_cabinet<E: From<ArchiveError>>(
    archive: &Archive,
    window: FileWindow,
    wanted: &BTreeSet<usize>,
    take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let opened = cabinet(window, archive.format);
    let (mut reader, cabinet) = opened.map_err(|error| failed(&archive.name, error))?;
    let index = |member: &CabinetMember| {
        let index = archive.index_of(&member.name);
        index.filter(|index| wanted.contains(index))
    };
    hand_over(archive, take, |hand| {
        let is_wanted = |member: &CabinetMember| index(member).is_some();
        let read = cabinet.unpack(&mut reader, &is_wanted, &mut |member, source| {
            index(member).map_or(Ok(()), |index| hand(index, source))
        });
        Ok(read?)
    })
}

/// Reads with a function that hands over members. It knows only I/O errors: one of the caller ends
/// the reading and is kept here.
fn hand_over<E: From<ArchiveError>>(
    archive: &Archive,
    take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
    read: impl FnOnce(
        &mut dyn FnMut(usize, &mut dyn Read) -> std::io::Result<()>,
    ) -> Result<(), MsiError>,
) -> Result<(), E> {
    let mut stopped = None;
    let read = read(&mut |index, source| {
        archive.hand(index, source, take).map_err(|error| {
            stopped = Some(error);
            std::io::Error::other("stopped")
        })
    });
    match (stopped, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(failed(&archive.name, error).into()),
        (None, Ok(())) => Ok(()),
    }
}

pub(super) fn each<E: From<ArchiveError>>(
    archive: &Archive,
    window: FileWindow,
    wanted: &BTreeSet<usize>,
    take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let name = &archive.name;
    let mut package = Package::read(window).map_err(|error| failed(name, error))?;
    let contents = package.contents().map_err(|error| failed(name, error))?;
    let contents: BTreeMap<InstalledContent, usize> = contents
        .into_iter()
        .filter_map(|(content, _)| {
            let index = archive.index_of(&content.to_string());
            let index = index.filter(|index| wanted.contains(index))?;
            Some((content, index))
        })
        .collect();
    let chosen: BTreeSet<&InstalledContent> = contents.keys().collect();
    hand_over(archive, take, |hand| {
        package.read_contents(&chosen, &mut |content, source| {
            let index = contents.get(content);
            index.map_or(Ok(()), |index| hand(*index, source))
        })
    })
}
