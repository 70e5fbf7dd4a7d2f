//! Files that a plan puts into an image, by name and size; and those that may be secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::slice;

use serde::Serialize;
use wincimg_common::digest::{Digest, Hasher, sha256, sha256_of};
use wincimg_layer::archive::Member;
use wincimg_layer::{
    ContentSource, DiskSource, EntryContent, Layer, LayerError, Symlink, Whiteout, archive,
};
use wincimg_recipe::{FileSource, Plan, add_entries};

/// Number of bytes of a file to search for a private key.
const KEY_LIMIT: u64 = 64 * 1024;

/// One file of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedImageFile {
    /// Path in the image.
    pub path: String,
    /// Size in bytes; unknown if the file was never downloaded.
    pub size: Option<u64>,
}

/// What a plan changes on the drive of its base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageListing {
    /// The files that it puts there.
    pub files: Vec<ListedImageFile>,
    /// The paths of the base that it deletes.
    pub deleted: Vec<String>,
}

/// The files that a plan puts into an image, and those of the base that it deletes.
pub fn listing(plan: &Plan) -> Result<ImageListing, LayerError> {
    // A file of a later layer replaces that of an earlier one.
    let mut all = BTreeMap::new();
    let mut deleted = BTreeMap::new();
    for layer in layers(plan)? {
        let drive = layer.drive()?;
        // What a layer deletes is below it.
        let (gone, new): (Vec<_>, Vec<_>) = drive
            .into_iter()
            .partition(|(_, content)| matches!(content, EntryContent::Deletion));
        for (path, _) in gone {
            let path = deleted_path(&path);
            let (key, known) = (path.to_lowercase(), all.len());
            let below = format!("{key}/");
            all.retain(|known: &String, _| *known != key && !known.starts_with(&below));
            if known == all.len() {
                deleted.insert(key, windows_path(&path));
            }
        }
        for (path, content) in new {
            let key = path.to_lowercase();
            deleted.remove(&key);
            all.insert(key, (path, content.clone()));
        }
    }
    let deleted = deleted.into_values().collect();
    let mut files = Vec::new();
    for (path, content) in all.values() {
        let size = match content {
            EntryContent::File(ContentSource::NotDownloaded { size, .. }) => *size,
            EntryContent::File(ContentSource::Path(file)) => {
                let found = file.metadata();
                let found = found.map_err(|error| LayerError::unreadable(&file.path, error))?;
                if !found.is_file() {
                    return Err(LayerError::not_a_file(&file.path));
                }
                Some(found.len())
            }
            EntryContent::File(source) => Some(source.length()),
            EntryContent::Symlink(_) => Some(0),
            EntryContent::Directory | EntryContent::Deletion => continue,
        };
        let path = windows_path(path);
        files.push(ListedImageFile { path, size });
    }
    Ok(ImageListing { files, deleted })
}

/// The path in the image of an entry on its drive.
pub(crate) fn windows_path(path: &str) -> String {
    format!(r"C:\{}", path.replace('/', r"\"))
}

/// The path that an entry deletes: in a layer its name has a prefix.
fn deleted_path(entry: &str) -> String {
    let (folder, name) = entry.rsplit_once('/').unwrap_or(("", entry));
    let Some(Whiteout::Deletion(name)) = Whiteout::from_name(name) else {
        return entry.to_owned();
    };
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// Digest of a plan's files: their paths and bytes, whatever their paths here. Files that are not
/// downloaded count by URL.
pub(crate) fn content_digest(plan: &Plan) -> Result<Digest, LayerError> {
    let mut hasher = Hasher::default();
    let mut add = |layer: &Layer| {
        let drive = layer.drive()?;
        let drive = drive.iter();
        let digest = source_digests(drive.map(|(path, content)| (path.as_str(), *content)))?;
        hasher.update(digest.as_ref().as_bytes());
        Ok::<_, LayerError>(())
    };
    for layer in layers(plan)? {
        add(&layer)?;
    }
    for package in plan.packages() {
        let mut sources = Layer::new(0);
        for (number, source) in package.sources().iter().enumerate() {
            sources.file(number.to_string().parse()?, source);
        }
        add(&sources)?;
    }
    Ok(hasher.finish())
}

/// Digests of files and folders, in their order.
pub(crate) fn source_digests<'a>(
    entries: impl Iterator<Item = (&'a str, &'a EntryContent)>,
) -> Result<Digest, LayerError> {
    let entries: Vec<(&str, &EntryContent)> = entries.collect();
    let members = entries.iter().filter_map(|(_, content)| match content {
        EntryContent::File(ContentSource::Member(member)) => Some(member),
        _ => None,
    });
    let members: Vec<&Member> = members.collect();
    let mut of_members = archive::digests(&members)?.into_iter();
    let mut hasher = Hasher::default();
    for (path, content) in entries {
        let (kind, what) = match content {
            EntryContent::Directory => ("folder", String::new()),
            EntryContent::Deletion => ("nothing", String::new()),
            EntryContent::Symlink(Symlink { target, to }) => ("link", format!("{to:?} {target}")),
            EntryContent::File(ContentSource::Bytes(bytes)) => ("file", sha256(bytes).to_string()),
            EntryContent::File(ContentSource::Part(part)) => ("part", part.length().to_string()),
            EntryContent::File(ContentSource::NotDownloaded { url, .. }) => ("url", url.clone()),
            EntryContent::File(ContentSource::Member(_)) => {
                let digest = of_members.next();
                ("file", digest.map_or_else(String::new, |it| it.to_string()))
            }
            EntryContent::File(ContentSource::Path(file)) => {
                let failed = |source| LayerError::unreadable(&file.path, source);
                let (mut opened, _) = file.open().map_err(failed)?;
                ("file", sha256_of(&mut opened).map_err(failed)?.to_string())
            }
        };
        // None of them contains a zero byte.
        hasher.update(format!("{path}\0{kind}\0{what}\0").as_bytes());
    }
    Ok(hasher.finish())
}

/// The first names of a list, and the number of the others.
pub(crate) fn first_names(names: &[impl AsRef<str>], most: usize) -> String {
    let shown: Vec<&str> = names.iter().map(AsRef::as_ref).take(most).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Paths on disk of a plan's files that may be secrets.
pub(crate) fn secrets(plan: &Plan) -> Result<BTreeSet<String>, LayerError> {
    let mut found = BTreeSet::new();
    let mut rest = Layer::new(0);
    for entry in plan.entries_by_layer().flatten() {
        // There may be a hundred thousand members, of which only the names are checked.
        if let Some(FileSource::Disk(file)) = entry.source() {
            let names = entry.path.components().iter().map(String::as_str);
            found.extend(secret(names, file));
        } else {
            add_entries(&mut rest, slice::from_ref(entry))?;
        }
    }
    found.extend(secrets_of(&rest));
    Ok(found)
}

fn secrets_of(layer: &Layer) -> impl Iterator<Item = String> {
    layer.entries().filter_map(|(path, content)| match content {
        EntryContent::File(ContentSource::Path(file)) => secret(path.as_str().split('/'), file),
        _ => None,
    })
}

fn layers(plan: &Plan) -> Result<Vec<Layer>, LayerError> {
    let layers = plan.entries_by_layer().map(|entries| {
        let mut layer = Layer::new(0);
        add_entries(&mut layer, entries).map(|()| layer)
    });
    layers.collect()
}

/// Path of a file that may be a secret by its path in the image; a `.git` folder for all its files.
fn secret<'a>(
    names: impl DoubleEndedIterator<Item = &'a str> + Clone,
    file: &DiskSource,
) -> Option<String> {
    let path = &*file.path;
    if let Some(below) = names.clone().rev().position(is_git) {
        let repository = path.ancestors().nth(below).filter(|folder| {
            let name = folder.file_name().and_then(|name| name.to_str());
            name.is_some_and(is_git)
        });
        // A file may come from elsewhere.
        return Some(repository.unwrap_or(path).display().to_string());
    }
    let name = names.last()?.to_ascii_lowercase();
    let is_secret = match name.as_str() {
        ".env" | "id_rsa" | "id_dsa" | "id_ecdsa" | "id_ed25519" => true,
        name => match name.rsplit_once('.')?.1 {
            "pfx" | "p12" => true,
            "pem" | "key" => !holds_only_what_is_public(file),
            _ => is_environment(name),
        },
    };
    is_secret.then(|| path.display().to_string())
}

fn is_git(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Matches `.env.production`, but not the example that is committed to repositories.
fn is_environment(name: &str) -> bool {
    let kind = name.strip_prefix(".env.");
    kind.is_some_and(|kind| !["example", "sample", "template", "dist"].contains(&kind))
}

/// Returns true if all PEM blocks of a file are certificates or public keys.
fn holds_only_what_is_public(file: &DiskSource) -> bool {
    let mut start = Vec::new();
    let opened = file.open();
    let Ok(Ok(_)) = opened.map(|(file, _)| file.take(KEY_LIMIT).read_to_end(&mut start)) else {
        return false;
    };
    let text = String::from_utf8_lossy(&start);
    let mut kinds = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("-----BEGIN "))
        .peekable();
    kinds.peek().is_some() && kinds.all(|kind| !kind.contains("PRIVATE"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut layer = Layer::new(0);
        layer.folder(folder.path(), None).unwrap();
        let found: BTreeSet<String> = secrets_of(&layer).collect();
        let inside = |path: &String| {
            let inside = PathBuf::from(path);
            let inside = inside.strip_prefix(folder.path()).unwrap();
            inside.display().to_string()
        };
        found.iter().map(inside).collect()
    }

    #[test]
    fn what_looks_like_a_secret_is_found_by_name() {
        let files = [
            "site/.env", ".env.production", "tls/SERVER.PFX", "tls/server.key", "tls/both.pem",
            "home/.ssh/id_rsa", ".git/config", ".git/objects/aa/bb", "lib/.git/HEAD",
        ];
        let found = found(&files.map(|file| (file, "x")));
        let mut expected = [
            "site/.env", ".env.production", "tls/SERVER.PFX", "tls/server.key", "tls/both.pem",
            "home/.ssh/id_rsa", ".git", "lib/.git",
        ];
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_made_to_be_shown_is_not() {
        let certificate = "# a CA\n-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n";
        let public = "-----BEGIN PUBLIC KEY-----\nMII=\n-----END PUBLIC KEY-----\n";
        let both = format!("{certificate}-----BEGIN RSA PRIVATE KEY-----\nMII=\n");
        let found = found(&[
            ("ca.pem", certificate),
            ("sign.key", public),
            (".env.example", "KEY="),
            (".gitignore", "obj"),
            ("environment", "x"),
            ("keyboard.js", "x"),
            ("server.pem", &both),
        ]);
        assert_eq!(found, ["server.pem"]);
    }
}
