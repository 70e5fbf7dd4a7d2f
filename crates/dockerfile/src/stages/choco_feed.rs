//! The feed of Chocolatey packages that a build names: a folder of `.nupkg` files, or a URL.

use std::path::Path;

use wincimg_common::diagnose::error_chain;
use wincimg_common::untrusted::without_password;
use wincimg_http::download_url;
use wincimg_layer::DiskSource;
use wincimg_recipe::FileSource;
use wincimg_scripts::PackageFeed;

use super::{Result, StageError};

/// Maximum number of packages in a folder.
const LARGEST: usize = 10_000;

/// A feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChocoFeed {
    folder: DiskSource,
    packages: PackageFeed,
}

impl ChocoFeed {
    /// Reads the folder, or checks the URL.
    pub(super) fn read(place: &str) -> Result<Self> {
        let invalid = |problem: String| {
            let hint = "expected a folder of .nupkg files or the URL of a NuGet feed of version 2";
            let place = without_password(place);
            StageError::Request(
                format!("--choco-feed {place}: {problem}"),
                Some(hint.to_owned()),
            )
        };
        if place.contains("://") {
            download_url(place).map_err(&invalid)?;
            if place.to_ascii_lowercase().ends_with("/index.json") {
                return Err(invalid("it is a feed of version 3".to_owned()));
            }
            return Ok(Self {
                folder: DiskSource::folder(Path::new("")),
                packages: PackageFeed::Url(place.to_owned()),
            });
        }
        let folder = DiskSource::folder(Path::new(place));
        let names = package_files(&folder).map_err(|error| invalid(error_chain(&error)))?;
        if names.is_empty() || names.len() > LARGEST {
            return Err(invalid(format!("it has {} packages", names.len())));
        }
        Ok(Self {
            folder,
            packages: PackageFeed::Folder(names),
        })
    }

    pub(super) fn packages(&self) -> PackageFeed {
        self.packages.clone()
    }

    pub(super) fn url(&self) -> Option<&str> {
        match &self.packages {
            PackageFeed::Url(url) => Some(url),
            PackageFeed::None | PackageFeed::Folder(_) => None,
        }
    }

    /// The file of a package in the folder.
    pub(super) fn file(&self, name: &str) -> Option<FileSource> {
        let PackageFeed::Folder(names) = &self.packages else {
            return None;
        };
        let name = names.iter().find(|known| *known == name)?;
        Some(FileSource::Disk(self.folder.join(name)))
    }

    /// The packages of a folder.
    pub(super) fn files(&self) -> Vec<(String, FileSource)> {
        let names = match &self.packages {
            PackageFeed::Folder(names) => names.as_slice(),
            _ => &[],
        };
        let files = names.iter();
        files
            .filter_map(|name| Some((name.clone(), self.file(name)?)))
            .collect()
    }
}

/// Names of the packages in a folder, sorted.
fn package_files(folder: &DiskSource) -> std::io::Result<Vec<String>> {
    let entries = folder.list()?.into_iter();
    // A name that is not Unicode is not that of a package.
    let names = entries.filter_map(|entry| entry.name.into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| name.to_ascii_lowercase().ends_with(".nupkg"))
        .collect();
    names.sort();
    Ok(names)
}
