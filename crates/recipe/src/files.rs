//! The files of a recipe: the source of each, and its destination in the image.

use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::str::FromStr;
use std::{fmt, io};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use wincimg_common::Named;
use wincimg_common::diagnose::{Diagnose as _, Excerpt, Problem, error_chain};
use wincimg_common::files::LeadsOut;
use wincimg_common::untrusted::{QuotedText, without_password};
use wincimg_http::{download_url, name_in};
use wincimg_layer::archive::{
    ArchiveError, ArchiveFormat, Archives, UnpackSelection, UnpackedEntry,
};
use wincimg_layer::{DiskSource, dockerignore};
use wincimg_oci::store::LOCAL_SCHEMES;
use wincimg_registry::regfile::to_utf16;
use wincimg_windows::path::{ImagePath, PathError, fold};

use super::file::FileEntry;
use super::source::{FileSource, ImageFiles, PlannedDownload};
use super::text::Text;
use super::{PlannedEntry, Recipe, RecipeInputs, Result};

/// Destination of a file.
#[derive(Debug)]
pub(super) struct Target {
    path: ImagePath,
    /// True if `path` is the folder for the file.
    into_folder: bool,
}

impl FromStr for Target {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self {
            path: text.parse()?,
            into_folder: text.ends_with(['/', '\\']),
        })
    }
}

/// Paths of files by layer. Folders and archives may have the same one.
pub(super) type TakenPaths = BTreeSet<(Option<String>, String)>;

impl Recipe {
    /// Plans a file, whose path no other file of its layer may have.
    pub(super) fn planned_file(
        &self,
        entry: &FileEntry,
        settings: &RecipeInputs<'_>,
        taken: &mut TakenPaths,
    ) -> Result<PlannedEntry> {
        let planned = self.planned_entry(entry, settings)?;
        let is_file = planned
            .source()
            .is_some_and(|source| !source.may_be_folder());
        let layer = entry.layer.as_ref().map(|text| text.value.clone());
        if is_file && !taken.insert((layer, planned.path.key())) {
            let problem = format!("two files have the path {}", planned.path);
            return Err(self.error(&entry.to, problem));
        }
        Ok(planned)
    }

    fn planned_entry(
        &self,
        entry: &FileEntry,
        settings: &RecipeInputs<'_>,
    ) -> Result<PlannedEntry> {
        if let (Some(text), None) = (&entry.sha256, &entry.url) {
            return Err(self.error(text, "sha256 requires url"));
        }
        if let (Some(text), None) = (&entry.encoding, &entry.content) {
            return Err(self.error(text, "encoding requires content"));
        }
        if let Some(image) = &entry.image {
            return self.of_image(entry, image);
        }
        let (source, own_name) = self.source(entry, settings)?;
        let Target { path, into_folder } = &entry.to.value;
        let (target, into_folder) = (path.clone(), *into_folder);
        if let Some((text, unpack)) = self.unpack(entry)? {
            if let Err(error) = unpack.check(&source) {
                return Err(self.error(text, error_chain(&error)));
            }
            let archive = PlannedArchive {
                source,
                target: target.clone(),
                unpack,
            };
            return Ok(PlannedEntry::file(
                target,
                FileSource::Unpacked(Box::new(archive)),
            ));
        }
        let target = match (into_folder, own_name) {
            (true, None) if !matches!(source, FileSource::Folder(_)) => {
                return Err(self.error(&entry.to, "add the file name to the folder"));
            }
            (true, Some(name)) => target
                .join(&name)
                .map_err(|problem| self.error(&entry.to, problem.to_string()))?,
            _ if target.components().is_empty() && !into_folder => {
                return Err(self.error(&entry.to, "a file cannot replace the drive itself"));
            }
            _ => target,
        };
        Ok(PlannedEntry::file(target, source))
    }

    /// The source of a file, and its own name if it has one.
    fn source(
        &self,
        entry: &FileEntry,
        settings: &RecipeInputs<'_>,
    ) -> Result<(FileSource, Option<String>)> {
        let given = [
            &entry.from, &entry.context, &entry.url, &entry.content, &entry.base64, &entry.embedded,
        ];
        match given {
            [Some(text), None, None, None, None, None] => {
                self.on_disk(text, self.in_recipe_folder(text)?)
            }
            [None, Some(text), None, None, None, None] => {
                self.on_disk(text, self.in_context(text, settings.context)?)
            }
            [None, None, Some(text), None, None, None] => {
                self.download(text, entry.sha256.as_ref())
            }
            [None, None, None, Some(text), None, None] => {
                Ok((self.encoded(&text.value, entry.encoding.as_ref())?, None))
            }
            [None, None, None, None, Some(text), None] => {
                let plain: String = text.value.split_whitespace().collect();
                let bytes = BASE64_STANDARD.decode(plain);
                let invalid = |error| self.error(text, format!("invalid base64: {error}"));
                Ok((FileSource::Bytes(bytes.map_err(invalid)?.into()), None))
            }
            [None, None, None, None, None, Some(text)] if text.value == "shim" => {
                Ok((FileSource::Shim, None))
            }
            [None, None, None, None, None, Some(text)] => {
                let problem = format!("invalid embedded file {:?}: expected shim", text.value);
                Err(self.error(text, problem))
            }
            _ => {
                let problem = "a file requires exactly one of from, context, url, embedded, content and base64";
                Err(self.error(&entry.to, problem))
            }
        }
    }

    /// Files of another image, which are extracted once it is resolved.
    fn of_image(&self, entry: &FileEntry, image: &Text) -> Result<PlannedEntry> {
        let others = [
            &entry.context, &entry.url, &entry.content, &entry.base64, &entry.embedded,
            &entry.unpack,
        ];
        let from = entry.from.as_ref();
        let Some(from) = from.filter(|_| others.iter().all(|other| other.is_none())) else {
            let problem = "image requires from, the path in the image, and no other source";
            return Err(self.error(image, problem));
        };
        let mut schemes = LOCAL_SCHEMES.iter();
        if let Some(place) = schemes.find_map(|scheme| image.value.strip_prefix(scheme)) {
            self.relative(&Text {
                value: place.to_owned(),
                ..image.clone()
            })?;
        }
        let Target { path, into_folder } = &entry.to.value;
        let files = ImageFiles {
            image: image.value.clone(),
            from: from.value.clone(),
            into_folder: *into_folder,
            digest: None,
            entries: None,
        };
        Ok(PlannedEntry::file(
            path.clone(),
            FileSource::Image(Box::new(files)),
        ))
    }

    /// A download, and the file name in its URL.
    pub(super) fn download(
        &self,
        text: &Text,
        sha256: Option<&Text>,
    ) -> Result<(FileSource, Option<String>)> {
        let url = &text.value;
        let parsed = download_url(url).map_err(|problem| {
            let shown = Excerpt::from_argument(&without_password(url), 0..0);
            // The URL may contain a password.
            self.error(text, problem).excerpt(Some(shown))
        })?;
        let mut download = PlannedDownload::at(url);
        if let Some(text) = sha256 {
            let hash = text.value.to_ascii_lowercase();
            let digest = format!("sha256:{hash}").parse().map_err(|_| {
                let problem = format!("invalid SHA-256 {hash:?}: expected 64 hexadecimal digits");
                self.error(text, problem)
            })?;
            download.digest = Some(digest);
        }
        Ok((FileSource::Download(Box::new(download)), name_in(&parsed)))
    }

    /// Encodes a text.
    fn encoded(&self, text: &str, encoding: Option<&Text>) -> Result<FileSource> {
        match encoding.map(|encoding| (encoding, encoding.value.as_str())) {
            None | Some((_, "utf-8")) => Ok(FileSource::Text(text.into())),
            Some((_, "utf-16")) => Ok(FileSource::Bytes(to_utf16(text).into())),
            Some((encoding, other)) => {
                let problem = format!("invalid encoding {other:?}: expected utf-8 or utf-16");
                Err(self.error(encoding, problem))
            }
        }
    }

    /// A file and its name, which it keeps in a destination folder; or a folder without a name.
    pub(super) fn on_disk(
        &self,
        text: &Text,
        mut source: DiskSource,
    ) -> Result<(FileSource, Option<String>)> {
        let path = &source.path;
        let metadata = source.metadata();
        let metadata = metadata.map_err(|error| self.unreadable(text, path, &error))?;
        let is_left_out = source.is_ignored_path().map_err(|error| {
            let hint = error.diagnosis().hint;
            self.error(text, error_chain(&error)).hint_if(hint)
        })?;
        if is_left_out {
            let rules = source.top.join(dockerignore::FILE_NAME);
            let problem = format!("{} is excluded by {}", path.display(), rules.display());
            let hint = format!("add !{} to the end of that file", source.inside());
            return Err(self.error(text, problem).hint(hint));
        }
        if metadata.is_dir() {
            source.leave_out(&self.written);
            return Ok((FileSource::Folder(source), None));
        }
        match path.file_name().and_then(|name| name.to_str()) {
            Some(name) => {
                let name = name.to_owned();
                Ok((FileSource::Disk(source), Some(name)))
            }
            None => Err(self.error(
                text,
                format!("the name of {} is not Unicode", path.display()),
            )),
        }
    }

    pub(super) fn unreadable(&self, text: &Text, path: &Path, error: &io::Error) -> Problem {
        let problem = format!("cannot read {}: {error}", path.display());
        let hint = pattern_hint(text).or_else(|| error.diagnosis().hint);
        self.error(text, problem).hint_if(hint)
    }

    /// A file or folder of the context.
    fn in_context(&self, text: &Text, context: &Path) -> Result<DiskSource> {
        let source = DiskSource::within(context, context.join(self.relative(text)?));
        if let Err(error) = source.metadata()
            && !LeadsOut::is_cause_of(&error)
        {
            let hint = pattern_hint(text).unwrap_or_else(|| {
                format!(
                    "the context is the folder {}: choose another with --context DIR",
                    context.display()
                )
            });
            let problem = self.error(text, format!("cannot read {}", source.path.display()));
            return Err(Problem::request("recipe/context", problem.to_string())
                .hint(hint)
                .source(error));
        }
        Ok(source)
    }

    /// A file or folder relative to the recipe.
    pub(super) fn in_recipe_folder(&self, text: &Text) -> Result<DiskSource> {
        let relative = self.relative(text)?;
        match &self.origin.folder {
            Some(folder) => Ok(DiskSource::within(folder.as_path(), folder.join(relative))),
            None => Err(self.error(text, "a built-in recipe has no folder: use context")),
        }
    }

    /// Checks that a relative path stays in its folder.
    fn relative<'a>(&self, text: &'a Text) -> Result<&'a Path> {
        let path = &text.value;
        let relative = Path::new(path);
        let stays = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if stays && !path.is_empty() {
            Ok(relative)
        } else {
            Err(self.error(
                text,
                format!(
                    "{} leads out of its folder: expected a relative path without ..",
                    QuotedText(path)
                ),
            ))
        }
    }
}

/// What to write in place of a pattern, which names no file.
fn pattern_hint(text: &Text) -> Option<String> {
    let is_pattern = text.value.contains(['*', '?']);
    is_pattern.then(|| {
        "patterns are not supported: name the folder, and exclude files with .dockerignore"
            .to_owned()
    })
}

/// An archive to unpack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedArchive {
    /// Source.
    pub source: FileSource,
    /// The folder in the image that its entries go into.
    pub target: ImagePath,
    /// Options for unpacking.
    pub unpack: UnpackOptions,
}

/// Options for unpacking an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnpackOptions {
    /// Required format, if the recipe sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ArchiveKind>,
    /// Number of leading components to remove from each path; shorter paths are skipped.
    pub strip: usize,
    /// Archives that are open.
    #[serde(skip)]
    archives: Archives,
}

/// Archive formats in recipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Named)]
#[serde(rename_all = "lowercase")]
pub enum ArchiveKind {
    /// A zip file.
    Zip,
    /// A tar file, compressed or not.
    Tar,
    /// A 7z file.
    #[serde(rename = "7z")]
    SevenZip,
}

impl ArchiveKind {
    fn is(self, format: ArchiveFormat) -> bool {
        matches!(
            (self, format),
            (Self::Zip, ArchiveFormat::Zip)
                | (Self::Tar, ArchiveFormat::Tar(_))
                | (Self::SevenZip, ArchiveFormat::SevenZip)
        )
    }
}

impl UnpackOptions {
    /// Lists the archive's entries.
    pub fn entries(&self, source: &FileSource) -> Result<Vec<UnpackedEntry>, ArchiveError> {
        let Some(archive) = source.archive(&self.archives)? else {
            let problem = "it is not an archive: expected zip, 7z or tar (plain, gzip, zstd, xz or \
                           bzip2)";
            return Err(ArchiveError::whole(&source.to_string(), problem));
        };
        let refused = |problem: String| ArchiveError::whole(archive.name(), problem);
        let found = archive.format();
        if let Some(kind) = self.format.filter(|kind| !kind.is(found)) {
            let wanted = kind.name();
            return Err(refused(format!(
                "it is {found}, where {wanted} is expected"
            )));
        }
        let entries = archive.unpack(&UnpackSelection {
            strip: self.strip,
            ..UnpackSelection::default()
        })?;
        if self.strip > 0 && entries.is_empty() {
            return Err(refused(format!("strip = {} leaves no entries", self.strip)));
        }
        Ok(entries)
    }

    /// Checks that the archive can be unpacked, unless it is not downloaded yet.
    pub(super) fn check(&self, source: &FileSource) -> Result<(), ArchiveError> {
        if matches!(source, FileSource::Download(download) if download.content.is_none()) {
            return Ok(());
        }
        self.entries(source).map(drop)
    }

    /// Returns true if the archive has an entry at this path.
    pub(super) fn provides(&self, source: &FileSource, names: &[String]) -> bool {
        let key = fold(&names.join("/"));
        let is_there = |entry: &UnpackedEntry| fold(&entry.path) == key;
        self.entries(source)
            .is_ok_and(|entries| entries.iter().any(is_there))
    }
}

impl fmt::Display for UnpackOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unpacked")?;
        match self.strip {
            0 => Ok(()),
            1 => f.write_str(" without the first component of each path"),
            more => write!(f, " without the first {more} components of each path"),
        }
    }
}

impl Recipe {
    /// Options for unpacking a file, if it is unpacked, and their position in the recipe.
    pub(super) fn unpack<'e>(
        &self,
        entry: &'e FileEntry,
    ) -> Result<Option<(&'e Text, UnpackOptions)>> {
        let Some(text) = &entry.unpack else {
            return match &entry.strip {
                Some(text) => Err(self.error(text, "strip requires unpack = true")),
                None => Ok(None),
            };
        };
        let format = match text.value.as_str() {
            "false" if entry.strip.is_none() => return Ok(None),
            "true" => None,
            other => Some(ArchiveKind::from_name(other).ok_or_else(|| {
                let names = ArchiveKind::NAMES;
                let problem = format!("invalid unpack {other:?}: expected true, {names}");
                self.error(text, problem)
            })?),
        };
        if entry.from.is_none() && entry.context.is_none() && entry.url.is_none() {
            return Err(self.error(text, "unpack requires from, context or url"));
        }
        let strip = match &entry.strip {
            None => 0,
            Some(text) => text.value.parse().map_err(|_| {
                let value = &text.value;
                let problem =
                    format!("invalid strip {value:?}: expected a number of path components");
                self.error(text, problem)
            })?,
        };
        let unpack = UnpackOptions {
            format,
            strip,
            archives: self.archives.clone(),
        };
        Ok(Some((text, unpack)))
    }
}
