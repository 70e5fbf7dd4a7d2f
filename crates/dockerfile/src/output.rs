//! Writes a Dockerfile and its context to a folder, as a whole or not at all.

use std::path::Path;
use std::{fs, io};

use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_layer::archive::ArchiveError;
use wincimg_layer::{ContentSource, DiskSource, Symlink, archive};

use super::RenderedDockerfile;
use super::context::{ContextContent, DRIVE};

/// File name that every builder expects.
pub const DOCKERFILE: &str = "Dockerfile";

/// Error of a folder with a file that would be lost.
pub fn foreign_file(folder: &Path, name: &str) -> Problem {
    let folder = folder.display();
    let problem = format!("the folder {folder} contains {name:?}, which wincimg did not write");
    Problem::request("output/not-empty", problem).hint("choose another folder")
}

/// Error of writing a folder or a file in it.
fn unwritable(path: &Path) -> impl Fn(io::Error) -> Problem {
    move |error| {
        let problem = format!("cannot write the folder {}", path.display());
        Problem::new("output/write", problem).source(error)
    }
}

impl RenderedDockerfile {
    /// Writes everything to an empty folder, or with `replace` over the output of an earlier call.
    pub fn write(&self, folder: &Path, replace: bool) -> Result<(), BoxError> {
        let failed = unwritable(folder);
        let target = std::path::absolute(folder).map_err(&failed)?;
        let parent = target.parent().unwrap_or(Path::new("/"));
        check(folder, replace)?;
        fs::create_dir_all(parent).map_err(&failed)?;
        let fresh = temporary(parent).map_err(&failed)?;
        self.fill(fresh.path())?;
        // The old folder is deleted with its temporary folder, after the new one is in place.
        let old = temporary(parent).map_err(&failed)?;
        if target.exists() {
            fs::rename(&target, old.path().join("old")).map_err(&failed)?;
        }
        let fresh = fresh.keep();
        if let Err(error) = fs::rename(&fresh, &target) {
            let _ = fs::rename(old.path().join("old"), &target);
            let _ = fs::remove_dir_all(&fresh);
            return Err(failed(error).into());
        }
        Ok(())
    }

    fn fill(&self, folder: &Path) -> Result<(), BoxError> {
        let write = |path: &Path, bytes: &[u8]| fs::write(path, bytes).map_err(unwritable(path));
        write(&folder.join(DOCKERFILE), self.dockerfile.as_bytes())?;
        let mut members = Vec::new();
        for entry in &self.context {
            let path = folder.join(&entry.path);
            match &entry.content {
                ContextContent::Folder => fs::create_dir(&path).map_err(unwritable(&path))?,
                ContextContent::File(ContentSource::Bytes(bytes)) => write(&path, bytes)?,
                ContextContent::File(ContentSource::Part(part)) => {
                    let copied = part.open().and_then(|mut part| {
                        let mut file = fs::File::create_new(&path)?;
                        io::copy(&mut part, &mut file)
                    });
                    copied.map(drop).map_err(unwritable(&path))?;
                }
                ContextContent::File(ContentSource::Member(member)) => members.push((path, member)),
                ContextContent::File(ContentSource::NotDownloaded { url, .. }) => {
                    let error = io::Error::other(format!("{url} is not downloaded"));
                    return Err(unwritable(&path)(error).into());
                }
                ContextContent::File(ContentSource::Path(source)) => {
                    copy(source, &path).map_err(|error| {
                        let problem = format!("cannot copy {}", source.path.display());
                        Problem::new("output/write", problem).source(error)
                    })?;
                }
                ContextContent::Link(symlink) => link(symlink, &path).map_err(unwritable(&path))?,
            }
        }
        let sources: Vec<_> = members.iter().map(|(_, member)| *member).collect();
        archive::read(&sources, |place, content| {
            let (path, _) = &members[place];
            let failed = unwritable(path);
            let mut file = fs::File::create_new(path).map_err(&failed)?;
            io::copy(content, &mut file).map(drop).map_err(|error| {
                match error.downcast::<ArchiveError>() {
                    Ok(error) => error.into(),
                    Err(error) => failed(error).into(),
                }
            })
        })
    }
}

/// Copies a file with its permissions, as [`fs::copy`] does.
fn copy(source: &DiskSource, path: &Path) -> io::Result<()> {
    let (mut source, metadata) = source.open()?;
    let mut file = fs::File::create_new(path)?;
    io::copy(&mut source, &mut file)?;
    file.set_permissions(metadata.permissions())
}

/// A temporary folder next to the final one, to be renamed to it.
fn temporary(parent: &Path) -> io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".wincimg-render-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755));
    builder.tempdir_in(parent)
}

fn check(folder: &Path, replace: bool) -> Result<(), Problem> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unwritable(folder)(error)),
    };
    for entry in entries.flatten() {
        if !replace {
            let problem = format!("the folder {} is not empty", folder.display());
            return Err(Problem::request("output/not-empty", problem)
                .hint("choose another folder, or replace it with --force"));
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_registry = name
            .strip_prefix("registry-")
            .is_some_and(|rest| rest.strip_suffix(".reg").is_some());
        if name != DOCKERFILE && name != DRIVE && !is_registry {
            return Err(foreign_file(folder, &name));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(link: &Symlink, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(&link.target, path)
}

#[cfg(windows)]
fn link(link: &Symlink, path: &Path) -> io::Result<()> {
    let target = link.target.replace('/', "\\");
    match link.to {
        wincimg_layer::LinkTo::File => std::os::windows::fs::symlink_file(target, path),
        wincimg_layer::LinkTo::Directory => std::os::windows::fs::symlink_dir(target, path),
    }
}
