//! The files of a recipe: where each comes from, and where it goes in the image.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use wincimg_common::diagnose::{Excerpt, in_one_line};
use wincimg_common::foreign::without_password;
use wincimg_http::{download_url, name_in};
use wincimg_layer::{Download, OnDisk, dockerignore};
use wincimg_windows::path::{ImagePath, PathError};

use super::file::FileEntry;
use super::instructions::{PlannedContent, PlannedEntry};
use super::plan::PlannedFile;
use super::source::{Embedded, FileSource};
use super::text::Text;
use super::{Recipe, RecipeError, Settings};

/// Where a file goes.
#[derive(Debug)]
pub(super) struct Target {
    path: ImagePath,
    /// Whether that is the folder that it goes into.
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

impl Recipe {
    pub(super) fn planned_file(
        &self,
        entry: &FileEntry,
        settings: &Settings<'_>,
    ) -> Result<PlannedFile, RecipeError> {
        let given = [
            &entry.from,
            &entry.context,
            &entry.url,
            &entry.embedded,
            &entry.content,
            &entry.base64,
        ];
        if given.iter().filter(|text| text.is_some()).count() != 1 {
            return Err(self.error(
                &entry.to,
                "a file has exactly one of from, context, url, embedded, content and base64",
            ));
        }
        if let (Some(text), None) = (&entry.sha256, &entry.url) {
            return Err(self.error(text, "sha256 is for what url names"));
        }
        if let (Some(text), None) = (&entry.encoding, &entry.content) {
            return Err(self.error(text, "encoding goes with content"));
        }
        let mut own_name = None;
        let source = if let Some(text) = &entry.from {
            let source = self.in_recipe_folder(text)?;
            let (source, name) = self.on_disk(text, source)?;
            own_name = name;
            source
        } else if let Some(text) = &entry.context {
            let path = settings.context.join(self.relative(text)?);
            if let Err(source) = std::fs::metadata(&path) {
                return Err(self.not_in_context(text, &path, settings.context, source));
            }
            let source = self.within(text, settings.context, path)?;
            let (source, name) = self.on_disk(text, source)?;
            own_name = name;
            source
        } else if let Some(text) = &entry.url {
            let (download, name) = self.download(entry, text)?;
            own_name = name;
            FileSource::Download(Box::new(download))
        } else if let Some(text) = &entry.content {
            self.encoded(text.value.clone(), entry.encoding.as_ref())?
        } else if let Some(text) = &entry.base64 {
            let plain: String = text.value.split_whitespace().collect();
            let bytes = BASE64_STANDARD.decode(plain);
            let bytes =
                bytes.map_err(|error| self.error(text, format!("invalid base64: {error}")))?;
            FileSource::Bytes(bytes)
        } else if let Some(text) = &entry.embedded {
            match text.value.as_str() {
                "shim" => FileSource::Embedded(Embedded::Shim),
                other => {
                    let problem = format!("invalid embedded file {other:?}: expected shim");
                    return Err(self.error(text, problem));
                }
            }
        } else {
            return Err(self.error(&entry.to, "this file has no source"));
        };
        let Target { path, into_folder } = &entry.to.value;
        let (target, into_folder) = (path.clone(), *into_folder);
        if let Some((text, unpack)) = self.unpack(entry)? {
            if let Err(error) = unpack.check(&source) {
                return Err(self.error(text, in_one_line(&error)));
            }
            return Ok(PlannedFile {
                source,
                target,
                unpack: Some(unpack),
            });
        }
        let target = match (into_folder, own_name) {
            (true, None) if !matches!(source, FileSource::Folder(_)) => {
                return Err(self.error(&entry.to, "add the name of the file"));
            }
            (true, Some(name)) => target
                .join(&name)
                .map_err(|problem| self.error(&entry.to, problem.to_string()))?,
            _ if target.components().is_empty() && !into_folder => {
                return Err(self.error(&entry.to, "a file cannot replace the drive itself"));
            }
            _ => target,
        };
        Ok(PlannedFile {
            source,
            target,
            unpack: None,
        })
    }

    /// A file that a server has, and the name that its URL gives it.
    fn download(
        &self,
        entry: &FileEntry,
        text: &Text,
    ) -> Result<(Download, Option<String>), RecipeError> {
        let url = &text.value;
        let parsed = download_url(url).map_err(|problem| {
            let shown = Excerpt::of_argument(&without_password(url), 0..0);
            // It may have a password in it.
            let excerpt = Some(Box::new(shown));
            let error = self.error(text, problem);
            RecipeError { excerpt, ..error }
        })?;
        let mut download = Download::at(url);
        if let Some(text) = &entry.sha256 {
            let hash = text.value.to_ascii_lowercase();
            let digest = format!("sha256:{hash}").parse().map_err(|_| {
                let problem = format!("invalid SHA-256 {hash:?}: expected 64 hexadecimal digits");
                self.error(text, problem)
            })?;
            download.digest = Some(digest);
        }
        Ok((download, name_in(&parsed)))
    }

    /// A text as the bytes that it is written in.
    fn encoded(&self, text: String, encoding: Option<&Text>) -> Result<FileSource, RecipeError> {
        let Some(encoding) = encoding else {
            return Ok(FileSource::Text(text));
        };
        match encoding.value.as_str() {
            "utf-8" => Ok(FileSource::Text(text)),
            "utf-16" => Ok(FileSource::Bytes(utf16_with_mark(&text))),
            other => {
                let problem = format!("invalid encoding {other:?}: expected utf-8 or utf-16");
                Err(self.error(encoding, problem))
            }
        }
    }

    /// A file with the name that it keeps when it goes into a folder, or a folder, whose content has
    /// names of its own.
    fn on_disk(
        &self,
        text: &Text,
        source: OnDisk,
    ) -> Result<(FileSource, Option<String>), RecipeError> {
        let path = &source.path;
        let metadata =
            std::fs::metadata(path).map_err(|error| self.unreadable(text, path, &error))?;
        let is_left_out = source
            .is_left_out()
            .map_err(|error| self.error(text, in_one_line(&error)))?;
        if is_left_out {
            let rules = source.top.join(dockerignore::FILE_NAME);
            let problem = format!("{} is left out by {}", path.display(), rules.display());
            let hint = format!("add !{} to the end of that file", source.inside());
            return Err(self.error(text, problem).with_hint(hint));
        }
        if metadata.is_dir() {
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

    fn unreadable(&self, text: &Text, path: &Path, error: &io::Error) -> RecipeError {
        self.error(text, format!("cannot read {}: {error}", path.display()))
    }

    fn not_in_context(
        &self,
        text: &Text,
        path: &Path,
        context: &Path,
        source: io::Error,
    ) -> RecipeError {
        let hint = format!(
            "the context is the folder {}: choose another with --context DIR",
            context.display()
        );
        RecipeError {
            code: "recipe/context",
            hint: Some(hint),
            excerpt: None,
            source: Some(source),
            ..self.error(text, format!("cannot read {}", path.display()))
        }
    }

    /// A file or folder beside the recipe.
    pub(super) fn in_recipe_folder(&self, text: &Text) -> Result<OnDisk, RecipeError> {
        let relative = self.relative(text)?;
        match &self.origin.folder {
            Some(folder) => self.within(text, folder, folder.join(relative)),
            None => Err(self.error(
                text,
                "a recipe that ships has no folder of its own: use context",
            )),
        }
    }

    /// Refuses what a link leads out of the folder that it comes from.
    fn within(&self, text: &Text, top: &Path, path: PathBuf) -> Result<OnDisk, RecipeError> {
        let (top, path) = (top.into(), path.into());
        let source = OnDisk { top, path };
        match source.escape() {
            Ok(None) => Ok(source),
            Ok(Some(target)) => {
                let problem = format!(
                    "{} leads out of its folder, to {}",
                    source.path.display(),
                    target.display()
                );
                let hint = "copy what it leads to into the folder";
                Err(self.error(text, problem).with_hint(hint.to_owned()))
            }
            Err(error) => Err(self.unreadable(text, &source.path, &error)),
        }
    }

    /// A path that stays where it starts.
    fn relative<'a>(&self, text: &'a Text) -> Result<&'a Path, RecipeError> {
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
                format!("{path:?} leads out of its folder: expected a relative path without .."),
            ))
        }
    }
}

/// A file of a layer.
pub(super) fn planned_entry(file: PlannedFile) -> PlannedEntry {
    PlannedEntry {
        path: file.target,
        content: PlannedContent::File(file.source),
    }
}

/// A text in UTF-16 with the mark in front that tells the order of the bytes, as Windows writes it.
pub fn utf16_with_mark(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}
