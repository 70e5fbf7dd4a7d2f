//! Files of a layer as entries of a recipe, a whole folder as one entry if possible.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use wincimg_http::DownloadedFile;
use wincimg_layer::archive::{Archive, ArchiveFormat, ArchiveLocation, Member, UnpackSelection};
use wincimg_layer::{ContentSource, DiskSource, EntryContent, Layer, Symlink};
use wincimg_msi::TransformPlace;
use wincimg_oci::store::is_local_image;
use wincimg_recipe::{
    FetchedFile, FileSource, PlannedContent, PlannedDownload, PlannedEntry, PlannedPackage,
    add_entries,
};
use wincimg_registry::regfile::to_utf16;
use wincimg_windows::path::{ImagePath, fold};

use super::Reason;
use super::toml::{key, list, quoted, set_list, set_text, text};

const KEEP: &str = "keep building the Dockerfile";

/// Maximum size of a file that is embedded in a recipe as bytes.
const LONGEST: usize = 64 << 10;

/// The folder that a recipe is written to.
pub(super) struct RecipeFolder<'a> {
    folder: PathBuf,
    /// Downloads by URL.
    downloads: &'a BTreeMap<String, DownloadedFile>,
    /// Source folders with their canonical paths.
    tops: HashMap<Arc<Path>, PathBuf>,
}

/// A folder on disk that is copied as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct WholeFolder {
    /// Path relative to the recipe's folder.
    from: Vec<String>,
    to: Vec<String>,
}

impl<'a> RecipeFolder<'a> {
    pub(super) fn new(folder: &Path, downloads: &'a BTreeMap<String, DownloadedFile>) -> Self {
        Self {
            folder: canonical_path(folder),
            downloads,
            tops: HashMap::new(),
        }
    }

    /// Path of a file relative to the recipe's folder; an error if it is outside.
    fn names(&mut self, file: &DiskSource) -> Result<Vec<String>, Reason> {
        let top = self.tops.entry(Arc::clone(&file.top));
        let top = top.or_insert_with(|| canonical_path(&file.top));
        let inside = match file.inside() {
            inside if inside.is_empty() => top.clone(),
            inside => top.join(inside),
        };
        let names = inside.strip_prefix(&self.folder).ok().and_then(|inside| {
            let names = inside.iter();
            names.map(|name| name.to_str().map(str::to_owned)).collect()
        });
        names.ok_or_else(|| {
            let why = format!(
                "{} is outside of the recipe's folder, {}",
                file.path.display(),
                self.folder.display()
            );
            let help = "write the recipe into a folder above both: --output DIR/recipe.toml";
            Reason::new(why, help)
        })
    }

    /// The key of a file on disk.
    fn file_key(&mut self, key: &str, file: &DiskSource) -> Result<String, Reason> {
        Ok(format!("{key} = {}", text(&self.names(file)?.join("/"))))
    }

    /// The keys of an archive; none if its origin has no name in a recipe.
    fn archive_keys(&mut self, archive: &Archive) -> Result<Option<String>, Reason> {
        match archive.location() {
            ArchiveLocation::Path(file) => self.file_key("from", file).map(Some),
            ArchiveLocation::Part(part) => {
                let known = self.downloads.get(archive.name());
                let known = known.filter(|known| known.content == *part);
                Ok(known.map(|known| {
                    let mut file = PlannedDownload::at(archive.name());
                    file.digest = Some(known.digest.clone());
                    download(&file)
                }))
            }
        }
    }

    /// Entries that a recipe makes of a folder, by folded path.
    fn content(&self, whole: &WholeFolder) -> Option<BTreeMap<String, EntryContent>> {
        let mut path = self.folder.clone();
        path.extend(&whole.from);
        let mut layer = Layer::new(0);
        let source = FileSource::Folder(DiskSource::within(self.folder.as_path(), path));
        let entry = PlannedEntry::file(image_path(&whole.to)?, source);
        add_entries(&mut layer, &[entry]).ok()?;
        let drive = layer.drive().unwrap_or_default().into_iter();
        let by_path = drive.map(|(path, content)| (fold(&path), content.clone()));
        Some(by_path.collect())
    }
}

/// Canonical path of a folder, if it exists.
fn canonical_path(folder: &Path) -> PathBuf {
    let folder = match folder.as_os_str() {
        empty if empty.is_empty() => Path::new("."),
        _ => folder,
    };
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

fn image_path(names: &[String]) -> Option<ImagePath> {
    format!("C:/{}", names.join("/")).parse().ok()
}

/// Keys of a layer's own table: created folders and deletions.
#[derive(Default)]
pub(super) struct LayerTable {
    pub(super) folders: Vec<String>,
    pub(super) deletes: Vec<String>,
}

/// Writes the files of a layer as entries and returns the contents of its own table.
pub(super) fn write(
    entries: &[PlannedEntry],
    place: &mut RecipeFolder<'_>,
    layer: &str,
    out: &mut String,
) -> Result<LayerTable, Reason> {
    let on_disk = names_on_disk(entries, place)?;
    let mut covered = BTreeSet::new();
    for (whole, content) in whole_folders(entries, &on_disk, place) {
        covered.extend(content.into_keys());
        let from = match whole.from.join("/") {
            empty if empty.is_empty() => ".".to_owned(),
            path => path,
        };
        let to = format!(r"C:\{}", whole.to.join(r"\"));
        file_entry(layer, &format!("from = {}", text(&from)), &to, out);
    }
    for whole in whole_archives(entries) {
        if let Some(source) = place.archive_keys(&whole.archive)? {
            let mut source = format!("{source}\nunpack = true");
            if whole.strip > 0 {
                let _ = write!(source, "\nstrip = {}", whole.strip);
            }
            file_entry(layer, &source, &format!(r"C:\{}", whole.to.join(r"\")), out);
            covered.extend(whole.entries);
        }
    }
    let there: BTreeSet<String> = entries
        .iter()
        .filter(|entry| entry.content != PlannedContent::Deleted)
        .map(|entry| entry.path.key())
        .collect();
    let mut own = LayerTable::default();
    for entry in entries {
        let at = entry.path.key();
        let to = entry.path.to_string();
        if covered.contains(&at) {
            continue;
        }
        match &entry.content {
            PlannedContent::Deleted => own.deletes.push(to),
            PlannedContent::Folder => {
                // A folder with contents is created implicitly.
                let below = format!("{at}\0");
                let next = there.range(below.clone()..).next();
                if !next.is_some_and(|next| next.starts_with(&below)) {
                    own.folders.push(to);
                }
            }
            PlannedContent::Link(Symlink { target, .. }) => {
                let why =
                    format!("{to} is a symbolic link to {target}, which a recipe does not support");
                let help = "put the folder with the link next to the recipe, and COPY the folder";
                return Err(Reason::new(why, help));
            }
            PlannedContent::File(source) => {
                let keys = source_keys(source, &entry.path, on_disk.get(&at))?;
                file_entry(layer, &keys, &to, out);
            }
        }
    }
    Ok(own)
}

/// The names below the recipe of the files on disk, by their paths in the image.
fn names_on_disk(
    entries: &[PlannedEntry],
    place: &mut RecipeFolder<'_>,
) -> Result<BTreeMap<String, Vec<String>>, Reason> {
    let mut on_disk = BTreeMap::new();
    for entry in entries {
        if let PlannedContent::File(FileSource::Disk(file) | FileSource::Folder(file)) =
            &entry.content
        {
            on_disk.insert(entry.path.key(), place.names(file)?);
        }
    }
    Ok(on_disk)
}

/// Keys with the source of a file; `on_disk` are its names below the recipe.
fn source_keys(
    source: &FileSource,
    to: &ImagePath,
    on_disk: Option<&Vec<String>>,
) -> Result<String, Reason> {
    let (why, help) = match source {
        FileSource::Disk(_) | FileSource::Folder(_) => {
            let names = on_disk.map(|names| names.join("/"));
            return Ok(format!("from = {}", text(&names.unwrap_or_default())));
        }
        FileSource::Text(value) => return Ok(format!("content = {}", text(value))),
        // As a file of a recipe it would replace that of any other base.
        FileSource::Bytes(_) if to.name().eq_ignore_ascii_case("NTUSER.DAT") => {
            let why = format!("{to} has the user's variables and the rest of one base's hive");
            (why, "set the variable for the machine: setx NAME VALUE /M")
        }
        FileSource::Bytes(bytes) => return bytes_of(&to.to_string(), bytes),
        FileSource::Shim => return Ok("embedded = \"shim\"".to_owned()),
        FileSource::Download(file) => return Ok(download(file)),
        FileSource::Member(member) => {
            let why = format!("{to} is {member}, which a layer of a recipe does not support");
            let help = "unpack the archive next to the Dockerfile, and COPY the folder";
            (why, help)
        }
        FileSource::Brought(FetchedFile {
            image: Some((image, from)),
            ..
        }) if !is_local_image(image) => {
            return Ok(format!("image = {}\nfrom = {}", text(image), text(from)));
        }
        FileSource::Brought(FetchedFile {
            image: None, from, ..
        }) if from.starts_with(&to.to_string()) => {
            let why = format!("the layer has {from} again, for its permissions");
            let help = "change the permissions of folders only, or keep building the Dockerfile";
            (why, help)
        }
        FileSource::Brought(_) | FileSource::Image(_) | FileSource::Unpacked(_) => {
            let why = format!("{to} is {source}, which a recipe does not support");
            (why, "put the file next to the Dockerfile, and COPY it")
        }
    };
    Err(Reason::new(why, help))
}

/// The keys of a download.
fn download(file: &PlannedDownload) -> String {
    let url = format!("url = {}", text(&file.url));
    let digest = file.digest.as_ref().map(ToString::to_string);
    match digest.as_deref().and_then(|it| it.strip_prefix("sha256:")) {
        Some(hash) => format!("{url}\nsha256 = {hash:?}"),
        None => url,
    }
}

/// Writes a package, instead of what it leaves behind.
pub(super) fn write_package(
    package: &PlannedPackage,
    place: &mut RecipeFolder<'_>,
    layer: &str,
    out: &mut String,
) -> Result<(), Reason> {
    let source = match &package.file {
        FileSource::Disk(file) => place.file_key("file", file)?,
        FileSource::Download(file) => download(file),
        other => {
            let why = format!("the package is {other}, which a recipe does not support");
            let help = "put the package next to the Dockerfile, and COPY it";
            return Err(Reason::new(why, help));
        }
    };
    let _ = writeln!(out, "\n[[msi]]\nlayer = {}\n{source}", quoted(layer));
    let options = &package.options;
    if options.source_folder != r"C:\" {
        let folder = options.source_folder.trim_end_matches('\\');
        set_text(out, "source", Some(folder));
    }
    set_list(out, "skip_custom_actions", &options.skipped_actions);
    set_list(out, "transforms", &transforms_of(package, place)?);
    let is_feature = |name: &String| !name.is_empty() && !name.contains(char::is_whitespace);
    let mut rest = Vec::new();
    for (name, value) in &options.properties {
        let names: Vec<String> = value.split(',').map(str::to_owned).collect();
        match name.as_str() {
            "TRANSFORMS" => {}
            "ADDLOCAL" if names.iter().all(is_feature) => {
                let _ = writeln!(out, "features = {}", list(&names));
            }
            _ => rest.push((name, value)),
        }
    }
    if !rest.is_empty() {
        out.push_str("[msi.properties]\n");
    }
    for (name, value) in rest {
        let _ = writeln!(out, "{} = {}", key(name), text(value));
    }
    Ok(())
}

/// The transforms of a package: files of the recipe's folder, and `:NAME` for those in the package.
fn transforms_of(
    package: &PlannedPackage,
    place: &mut RecipeFolder<'_>,
) -> Result<Vec<String>, Reason> {
    let places = package.options.transforms();
    let places = places.map_err(|error| Reason::new(error.to_string(), KEEP))?;
    let mut files = package.transforms.iter();
    let names = places.into_iter().map(|transform| match &transform {
        TransformPlace::Package(_) => Ok(transform.to_string()),
        TransformPlace::File(path) => match files.next() {
            Some(FileSource::Disk(file)) => place.names(file).map(|names| names.join("/")),
            _ => {
                let why = format!("the transform {path} is not a file of the context");
                let help = "put the transform next to the Dockerfile, and COPY it";
                Err(Reason::new(why, help))
            }
        },
    });
    names.collect()
}

fn file_entry(layer: &str, source: &str, to: &str, out: &mut String) {
    let _ = writeln!(out, "\n[[files]]\nlayer = {}\n{source}", quoted(layer));
    let _ = writeln!(out, "to = {}", text(to));
}

fn bytes_of(to: &str, bytes: &[u8]) -> Result<String, Reason> {
    let units: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    if let Some(value) = String::from_utf16(&units).ok().as_deref() {
        let value = value.strip_prefix('\u{FEFF}').unwrap_or_default();
        if to_utf16(value) == bytes {
            return Ok(format!("encoding = \"utf-16\"\ncontent = {}", text(value)));
        }
    }
    if bytes.len() > LONGEST {
        let why = format!("{to} is not a text file ({} bytes)", bytes.len());
        let help = "put the file next to the Dockerfile, and COPY it";
        return Err(Reason::new(why, help));
    }
    let mut lines = String::new();
    for line in BASE64_STANDARD.encode(bytes).as_bytes().chunks(76) {
        lines += &String::from_utf8_lossy(line);
        lines.push('\n');
    }
    Ok(format!("base64 = {}", quoted(&lines)))
}

/// Folders that replace many file entries: the topmost ones without differences.
fn whole_folders(
    entries: &[PlannedEntry],
    on_disk: &BTreeMap<String, Vec<String>>,
    place: &RecipeFolder<'_>,
) -> Vec<(WholeFolder, BTreeMap<String, EntryContent>)> {
    let own: BTreeMap<String, (&PlannedContent, Option<&Vec<String>>)> = entries
        .iter()
        .map(|entry| {
            let key = entry.path.key();
            let names = on_disk.get(&key);
            (key, (&entry.content, names))
        })
        .collect();
    let mut found: Vec<(WholeFolder, BTreeMap<String, EntryContent>)> = Vec::new();
    let mut pending: Vec<WholeFolder> = topmost(entries, on_disk).into_iter().rev().collect();
    while let Some(whole) = pending.pop() {
        let is_known = found.iter().any(|(above, _)| {
            let from = whole.from.strip_prefix(above.from.as_slice());
            from.is_some() && from == whole.to.strip_prefix(above.to.as_slice())
        });
        if is_known {
            continue;
        }
        let Some(content) = place.content(&whole) else {
            continue;
        };
        let count = content
            .values()
            .filter(|content| matches!(content, EntryContent::File(_)))
            .count();
        let is_same = content.iter().all(|(path, content)| {
            let Some((own, names)) = own.get(path) else {
                // An ancestor of the folder's target.
                return matches!(content, EntryContent::Directory)
                    && is_above(path, &fold(&whole.to.join("/")));
            };
            is_alike(content, own, *names, &place.folder)
        });
        // A single file is copied by name.
        if is_same && count > 1 {
            found.push((whole, content));
            continue;
        }
        // The difference may be in one subfolder only.
        pending.extend(subfolders(&whole, on_disk));
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

/// The topmost folders whose files may have the same names on disk and in the image.
fn topmost(
    entries: &[PlannedEntry],
    on_disk: &BTreeMap<String, Vec<String>>,
) -> BTreeSet<WholeFolder> {
    let mut folders = BTreeSet::new();
    for entry in entries {
        let Some(from) = on_disk.get(&entry.path.key()) else {
            continue;
        };
        let to = entry.path.components();
        let alike = std::iter::zip(from.iter().rev(), to.iter().rev());
        let count = alike.take_while(|(one, other)| one == other).count();
        if count > 0 {
            folders.insert(WholeFolder {
                from: from[..from.len() - count].to_vec(),
                to: to[..to.len() - count].to_vec(),
            });
        }
    }
    folders
}

/// The folders directly in another one that have files on disk.
fn subfolders(
    whole: &WholeFolder,
    on_disk: &BTreeMap<String, Vec<String>>,
) -> BTreeSet<WholeFolder> {
    let mut inside = BTreeSet::new();
    for (path, names) in on_disk {
        let is_here = names.starts_with(&whole.from) && names.len() > whole.from.len() + 1;
        let depth = path.matches('\0').count() + usize::from(!path.is_empty());
        if is_here && depth + whole.from.len() == names.len() + whole.to.len() {
            let name = names[whole.from.len()].clone();
            inside.insert(WholeFolder {
                from: [whole.from.clone(), vec![name.clone()]].concat(),
                to: [whole.to.clone(), vec![name]].concat(),
            });
        }
    }
    inside
}

/// Returns true if a path is another one or an ancestor of it.
fn is_above(path: &str, other: &str) -> bool {
    path == other || other.starts_with(&format!("{path}\0"))
}

fn is_alike(
    content: &EntryContent,
    own: &PlannedContent,
    names: Option<&Vec<String>>,
    folder: &Path,
) -> bool {
    match (content, own) {
        (EntryContent::Directory, PlannedContent::Folder) => true,
        (EntryContent::File(ContentSource::Path(source)), PlannedContent::File(_)) => names
            .is_some_and(|names| {
                let mut there = folder.to_owned();
                there.extend(names);
                there == *source.path
            }),
        (EntryContent::Symlink(link), PlannedContent::Link(own)) => link == own,
        _ => false,
    }
}

/// An archive whose entries are all in a layer.
struct WholeArchive {
    archive: Arc<Archive>,
    /// Leading components that are left out of its paths.
    strip: usize,
    /// Names of the folder that it is unpacked into.
    to: Vec<String>,
    /// Its entries in the layer.
    entries: BTreeSet<String>,
}

/// Finds the archives, each as often as it was unpacked.
fn whole_archives(entries: &[PlannedEntry]) -> Vec<WholeArchive> {
    let mut left: BTreeMap<String, &PlannedEntry> = entries
        .iter()
        .map(|entry| (entry.path.key(), entry))
        .collect();
    let all = left.clone();
    let mut found: Vec<WholeArchive> = Vec::new();
    for entry in entries {
        if let PlannedContent::File(FileSource::Member(member)) = &entry.content
            && left.contains_key(&entry.path.key())
            && let Some(whole) = whole_archive(entry, member, &all)
        {
            left.retain(|path, _| !whole.entries.contains(path));
            found.push(whole);
        }
    }
    found
}

/// The archive of an entry, if all of it is in the layer.
fn whole_archive(
    entry: &PlannedEntry,
    member: &Member,
    all: &BTreeMap<String, &PlannedEntry>,
) -> Option<WholeArchive> {
    let archive = member.archive();
    if !matches!(
        archive.format(),
        ArchiveFormat::Zip | ArchiveFormat::Tar(_) | ArchiveFormat::SevenZip
    ) {
        return None;
    }
    let names: Vec<&str> = member.path().split(['/', '\\']).collect();
    let names: Vec<&str> = names
        .into_iter()
        .filter(|it| !matches!(*it, "" | "."))
        .collect();
    let path = entry.path.components();
    (0..names.len()).find_map(|strip| {
        let (to, inside) = path.split_at_checked(path.len().checked_sub(names.len() - strip)?)?;
        if inside != &names[strip..] {
            return None;
        }
        let selection = UnpackSelection {
            strip,
            ..UnpackSelection::default()
        };
        let mut entries = BTreeSet::new();
        for unpacked in archive.unpack(&selection).ok()? {
            let names = unpacked.path.split('/').map(str::to_owned);
            let names: Vec<String> = to.iter().cloned().chain(names).collect();
            let at = fold(&names.join("/"));
            let own = &all.get(&at)?.content;
            if *own != PlannedContent::from(unpacked.content) {
                return None;
            }
            entries.insert(at);
        }
        Some(WholeArchive {
            archive: Arc::clone(archive),
            strip,
            to: to.to_vec(),
            entries,
        })
    })
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hive_of_a_user_is_no_file_of_a_recipe() {
        let written = |path: &str| {
            let entry = PlannedEntry {
                path: path.parse().unwrap(),
                content: PlannedContent::File(FileSource::Bytes(vec![0_u8].into())),
            };
            let downloads = BTreeMap::new();
            let mut place = RecipeFolder::new(Path::new("."), &downloads);
            let mut out = String::new();
            write(&[entry], &mut place, "a", &mut out).map(|_| out)
        };
        assert!(written(r"C:\app\a.bin").unwrap().contains("a.bin"));
        let reason = written(r"C:\Users\ContainerUser\NTUSER.DAT").err().unwrap();
        assert!(reason.why.contains("NTUSER.DAT"), "{reason:?}");
        assert!(reason.help.unwrap().contains("/M"));
    }
}
