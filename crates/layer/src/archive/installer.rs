//! Windows Installer packages as archives: their members are the contents of files, by cabinet.
//!
//! A package is one only where it is opened as such: `tar` and `ADD` do not unpack it.

use std::collections::BTreeSet;
use std::io::{Read, Seek};
use std::sync::Arc;

use wincimg_common::diagnose::error_chain;
use wincimg_common::files::FileWindow;
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
    /// Opens a Windows Installer package.
    pub fn open_package(place: ArchiveLocation, name: String) -> Result<Self, ArchiveError> {
        let members = |window: FileWindow| {
            let contents = Package::read(window)?.contents()?;
            let members = contents.into_iter();
            Ok(members.map(|(it, size)| (it.to_string(), size)).collect())
        };
        Self::of_members(place, name, ArchiveFormat::Installer, members)
    }

    /// Opens a cabinet.
    pub fn open_cabinet(place: ArchiveLocation, name: String) -> Result<Self, ArchiveError> {
        let members = |mut window: FileWindow| {
            let cabinet = Cabinet::read(&mut window)?;
            let members = cabinet.members();
            Ok(members
                .map(|it| (it.name.clone(), it.size.into()))
                .collect())
        };
        Self::of_members(place, name, ArchiveFormat::Cabinet, members)
    }

    /// Opens the package in a bundle.
    pub fn open_bundle(place: ArchiveLocation, name: String) -> Result<Self, ArchiveError> {
        let members = |mut window: FileWindow| {
            let bundle = Bundle::read(&mut window)?;
            let (_, cabinet) = bundle.cabinet(window)?;
            let members = cabinet.members();
            Ok(members
                .map(|it| (it.name.clone(), it.size.into()))
                .collect())
        };
        Self::of_members(place, name, ArchiveFormat::Bundle, members)
    }

    /// What a bundle says of its package.
    pub fn bundle(&self) -> Result<Bundle, MsiError> {
        let (mut window, _) = self.place.open()?;
        Bundle::read(&mut window)
    }

    fn of_members(
        place: ArchiveLocation,
        name: String,
        format: ArchiveFormat,
        members: impl FnOnce(FileWindow) -> Result<Vec<(String, u64)>, MsiError>,
    ) -> Result<Self, ArchiveError> {
        let (window, stamp) = place.open().map_err(|it| ArchiveError::read(&name, it))?;
        let mut sum = ArchiveSize::new(&name, window.length());
        let members = members(window).map_err(|error| failed(&name, error))?;
        let mut entries = Vec::with_capacity(members.len());
        for (path, size) in members {
            sum.add(&path, size)?;
            entries.push(ArchiveEntry::new(path, ArchiveEntryKind::File, size));
        }
        Ok(Self {
            name,
            place,
            stamp,
            format,
            entries,
        })
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
        let index = self.entries.iter().position(|entry| entry.path == path)?;
        Some(Member {
            archive: Arc::clone(self),
            index,
        })
    }
}

pub(super) fn each_of_bundle<E: From<ArchiveError>>(
    archive: &Archive,
    mut window: FileWindow,
    wanted: &BTreeSet<usize>,
    take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let opened = Bundle::read(&mut window).and_then(|bundle| Ok(bundle.cabinet(window)?));
    let (mut part, cabinet) = opened.map_err(|error| failed(&archive.name, error))?;
    each_member(archive, &cabinet, &mut part, wanted, take)
}

pub(super) fn each_of_cabinet<E: From<ArchiveError>>(
    archive: &Archive,
    mut window: FileWindow,
    wanted: &BTreeSet<usize>,
    take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let cabinet = Cabinet::read(&mut window);
    let cabinet = cabinet.map_err(|error| failed(&archive.name, error.into()))?;
    each_member(archive, &cabinet, &mut window, wanted, take)
}

fn each_member<E: From<ArchiveError>>(
    archive: &Archive,
    cabinet: &Cabinet,
    reader: &mut (impl Read + Seek),
    wanted: &BTreeSet<usize>,
    take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let index = |member: &CabinetMember| {
        let mut wanted = wanted.iter();
        wanted.find(|index| archive.entries[**index].path == member.name)
    };
    hand_over(archive, take, |hand| {
        let is_wanted = |member: &CabinetMember| index(member).is_some();
        let read = cabinet.unpack(reader, &is_wanted, &mut |member, source| {
            index(member).map_or(Ok(()), |index| hand(*index, source))
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
    let contents: Vec<(usize, InstalledContent)> = contents
        .into_iter()
        .map(|(content, _)| content)
        .enumerate()
        .filter(|(index, _)| wanted.contains(index))
        .collect();
    let chosen: BTreeSet<&InstalledContent> = contents.iter().map(|(_, it)| it).collect();
    hand_over(archive, take, |hand| {
        package.read_contents(&chosen, &mut |content, source| {
            let found = contents.iter().find(|(_, it)| it == content);
            found.map_or(Ok(()), |(index, _)| hand(*index, source))
        })
    })
}
