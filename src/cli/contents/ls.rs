//! `wincimg image ls`: lists the files or registry keys of an image.

use std::slice;

use wincimg_common::diagnose::closest_match;
use wincimg_common::json::LazyList;
use wincimg_inspect::LayerChange;
use wincimg_inspect::base::BaseKeyPath;
use wincimg_inspect::contents::{
    ContentKey, FileEntry, FileTree, ImageContents, display_path, list_keys, sddl,
};
use wincimg_oci::document::Digest;
use wincimg_registry::RegistryData;
use wincimg_windows::base_contents::FileDigest;
use wincimg_windows::path::ImagePath;

use super::view::{Colours, FileView, listed_name, shortened, value_name};
use super::{
    ContentArgs, SkippedLayer, only_image, report_problems, report_unclosed, skipped_layers,
};
use crate::cli::prelude::*;

/// List the files or registry keys of an image
///
/// Lists what a container sees: all layers merged, with the layer that wrote each entry. Sizes of
/// folders include everything below them; a file with several names counts once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image ls repo.mylan.k8s:8888/web:1.4 'C:\\inetpub' --depth 3\n  \
    wincimg image ls oci:./web-1.4 --skip-windows --recursive\n  \
    wincimg image ls oci:./web-1.4 'HKLM\\SOFTWARE\\Vendor' --format json\n\n\
    Exit code 1: the image does not have that file, folder or key.")]
pub(in crate::cli) struct Ls {
    /// Image: a reference, oci:DIR[:TAG], docker-archive:FILE[:NAME] or docker-daemon:NAME
    #[arg(value_name = "IMAGE", value_parser = parse_source, add = complete::images())]
    image: ImageSource,
    /// File, folder or registry key, such as C:\app or HKLM\SOFTWARE\Vendor
    #[arg(default_value = r"C:\", value_parser = parse_path)]
    path: ListedPath,
    /// Levels of folders to list
    #[arg(
        long,
        value_name = "LEVELS",
        default_value = "1",
        conflicts_with = "recursive"
    )]
    depth: usize,
    /// List all levels
    #[arg(long, short)]
    recursive: bool,
    /// Select the image of this platform from an index
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Option<PlatformFilter>,
    #[command(flatten)]
    contents: ContentArgs,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    connection: SourceArgs,
}

/// An entry with its level and the bytes of everything at it and below it.
type ListedEntry<'t> = (usize, &'t FileEntry, u64);

#[derive(Debug, Clone)]
enum ListedPath {
    /// A path in the layers.
    Files(String),
    Key(BaseKeyPath),
}

fn parse_path(text: &str) -> Result<ListedPath, String> {
    let starts = |prefix: &str| {
        let start = text.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    if starts("HK") {
        let key = text.parse().map_err(|error| format!("{error}"));
        return key.map(ListedPath::Key);
    }
    if starts("UtilityVM") {
        return Ok(ListedPath::Files(text.replace('\\', "/")));
    }
    let path: ImagePath = text.parse().map_err(|error| format!("{error}"))?;
    let below = path.components().join("/");
    let path = format!("Files/{below}");
    Ok(ListedPath::Files(path.trim_end_matches('/').to_owned()))
}

impl Ls {
    pub(in crate::cli) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let reader = self.connection.connect(session)?;
        let (image, contents) = registry_args::run(async {
            let (source, image) = only_image(&reader, &self.image, self.platform.as_ref()).await?;
            let reader = self.contents.reader(&reader.progress);
            let contents = reader.read(&source, &image).await?;
            Ok((image, contents))
        })?;
        report_problems(&self.image, &contents, session);
        let identity = ImageIdentity {
            reference: self.image.to_string(),
            digest: image.digest().clone(),
            platform: image.config().platform().to_string(),
            skipped: skipped_layers(&contents),
        };
        match &self.path {
            ListedPath::Files(path) => self.files(identity, &contents, path, session),
            ListedPath::Key(path) => {
                report_unclosed(slice::from_ref(&contents), &[path.hive], session)?;
                self.keys(identity, &contents, path)
            }
        }
    }

    fn depth(&self) -> usize {
        if self.recursive {
            usize::MAX
        } else {
            self.depth
        }
    }

    fn files(
        &self,
        identity: ImageIdentity,
        contents: &ImageContents,
        path: &str,
        session: &Session,
    ) -> Result<CommandOutcome> {
        let tree = contents.files();
        if let Some(link) = tree.broken_name().filter(|_| contents.is_complete()) {
            session.warn(format_args!(
                "layer {} has the hard link {} without its file",
                link.layer,
                UntrustedText(display_path(&link.path))
            ));
        }
        let top = tree.get(path);
        let is_there = |entry: &FileEntry| entry.kind != LayerChange::Deleted;
        // No layer has to describe the drive itself.
        if path.contains('/') && !top.is_some_and(is_there) {
            return Err(no_file(&tree, path));
        }
        let below = tree.below_with_sizes(path, self.depth()).into_iter();
        let below = below.filter(|(_, entry, _)| is_there(entry));
        let own = top.filter(|entry| entry.kind != LayerChange::Folder(()));
        let own = own.map(|entry| (1, entry, entry.size()));
        let entries: Vec<ListedEntry<'_>> = own.into_iter().chain(below).collect();
        let is_folder = |entry: &&FileEntry| entry.kind == LayerChange::Folder(());
        let is_file =
            |entry: &&FileEntry| matches!(entry.kind, LayerChange::File(_)) && !entry.is_stream();
        let all = || tree.below(path, usize::MAX).map(|(_, entry)| entry);
        let with_security = self.contents.acl;
        let view = FilesView {
            identity,
            path: display_path(path),
            files: all().chain(top).filter(is_file).count(),
            folders: all().filter(is_folder).count(),
            size: tree.size_of(path),
            entries: LazyList(|| {
                let entries = entries.iter();
                entries.map(move |(_, entry, _)| FileView::new(entry, with_security))
            }),
        };
        let answer = || &view;
        self.format.print(answer, |out| {
            let colours = Colours(colour_on(&io::stdout()));
            writeln!(out, "{}", colours.title(UntrustedText(&view.path)))?;
            self.write_entries(&entries, colours, out)?;
            let (files, folders) = (count(view.files, "file"), count(view.folders, "folder"));
            writeln!(out, "{files}, {folders}, {}", BinaryBytes(view.size))
        })
    }

    fn write_entries(
        &self,
        entries: &[ListedEntry<'_>],
        colours: Colours,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        for (level, entry, size) in entries {
            let size = match entry.kind {
                LayerChange::File(FileDigest { size, .. }) => size,
                _ => *size,
            };
            let size = BinaryBytes(size).to_string();
            let name = UntrustedText(listed_name(entry)).to_string();
            let name = match entry.kind {
                LayerChange::Folder(()) => colours.folder(name),
                _ => name,
            };
            let indent = "  ".repeat(level.saturating_sub(1));
            writeln!(out, "  {:>3}  {size:>11}  {indent}{name}", entry.layer)?;
            if let Some(security) = entry.security.as_deref().filter(|_| self.contents.acl) {
                writeln!(out, "{:20}{indent}{}", "", UntrustedText(sddl(security)))?;
            }
        }
        Ok(())
    }

    fn keys(
        &self,
        identity: ImageIdentity,
        contents: &ImageContents,
        path: &BaseKeyPath,
    ) -> Result<CommandOutcome> {
        let Some(keys) = list_keys(contents, path, self.depth())? else {
            let problem = format!("the image has no key {path}");
            return Err(Problem::answer("image/no-file", problem).into());
        };
        let with_security = self.contents.acl;
        let view = KeysView {
            identity,
            keys: LazyList(|| {
                let keys = keys.iter();
                keys.map(move |(_, key)| KeyView::new(key, with_security))
            }),
        };
        self.format
            .print(|| &view, |out| self.write_keys(&keys, out))
    }

    fn write_keys(&self, keys: &[(usize, ContentKey)], out: &mut dyn Write) -> io::Result<()> {
        let colours = Colours(colour_on(&io::stdout()));
        for (level, key) in keys {
            let name = match (level, key.path.components.last()) {
                (1.., Some(name)) => format!(r"{name}\"),
                _ => key.path.to_string(),
            };
            let indent = "  ".repeat(*level);
            let deleted = if key.is_deleted { " (deleted)" } else { "" };
            let name = UntrustedText(name).to_string();
            writeln!(out, "{indent}{}{deleted}", colours.folder(name))?;
            if self.contents.acl {
                writeln!(out, "{indent}  {}", UntrustedText(sddl(&key.security)))?;
            }
            for (name, data) in &key.values {
                let data = data
                    .as_ref()
                    .map_or_else(|| "(deleted)".to_owned(), shortened);
                let line = format!("{} = {data}", value_name(name));
                writeln!(out, "{indent}  {}", UntrustedText(line))?;
            }
        }
        Ok(())
    }
}

/// Error for a file that does not exist, with the nearest one that does.
fn no_file(tree: &FileTree, path: &str) -> Failure {
    let mut above = path;
    let mut missing = "";
    while let Some((folder, name)) = above.rsplit_once('/') {
        (above, missing) = (folder, name);
        if tree.get(folder).is_some() {
            break;
        }
    }
    let names: Vec<(String, &str)> = tree
        .below(above, 1)
        .map(|(_, entry)| (entry.name().to_lowercase(), entry.name()))
        .collect();
    let folded = names.iter().map(|(folded, _)| folded.as_str());
    let like = closest_match(&missing.to_lowercase(), folded);
    let like = like.and_then(|like| names.iter().find(|(folded, _)| *folded == like));
    let problem = format!("the image has no {}", display_path(path));
    let like = like.map(|(_, name)| {
        let meant = display_path(&format!("{above}/{name}"));
        format!("did you mean {meant}?")
    });
    Problem::answer("image/no-file", problem)
        .hint_if(like)
        .into()
}

#[derive(Debug, Serialize)]
struct ImageIdentity {
    reference: String,
    digest: Digest,
    platform: String,
    skipped: Vec<SkippedLayer>,
}

/// Files; the numbers are of all below the path.
#[derive(Serialize)]
struct FilesView<E> {
    #[serde(flatten)]
    identity: ImageIdentity,
    path: String,
    files: usize,
    folders: usize,
    size: u64,
    entries: E,
}

#[derive(Serialize)]
struct KeysView<K> {
    #[serde(flatten)]
    identity: ImageIdentity,
    keys: K,
}

#[derive(Debug, Serialize)]
struct KeyView {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    security: Option<String>,
    deleted: bool,
    values: Vec<ValueView>,
}

#[derive(Debug, Serialize)]
struct ValueView {
    name: String,
    deleted: bool,
    #[serde(flatten)]
    data: Option<RegistryData>,
}

impl KeyView {
    fn new(key: &ContentKey, with_security: bool) -> Self {
        let values = key.values.iter();
        Self {
            key: key.path.to_string(),
            class: key.class.clone(),
            security: with_security.then(|| sddl(&key.security)),
            deleted: key.is_deleted,
            values: values
                .map(|(name, data)| ValueView {
                    name: name.clone(),
                    deleted: data.is_none(),
                    data: data.clone(),
                })
                .collect(),
        }
    }
}
