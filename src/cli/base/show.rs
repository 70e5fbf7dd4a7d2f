//! `wincimg image base show`: shows the contents of a base.

use wincimg_common::diagnose::closest_match;
use wincimg_inspect::base::{BaseFacts, BaseHive, BaseKeyPath};
use wincimg_inspect::contents::sddl;
use wincimg_inspect::facts_provider::ResolvedFacts;
use wincimg_oci::document::Image;
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{Presence as Answered, TypedData};
use wincimg_windows::base_contents::{BaseContents, BaseFile, FileDigest, FileKind};
use wincimg_windows::path::ImagePath;

use super::base_args::BaseArgs;
use crate::cli::contents::one_of;
use crate::cli::contents::view::{attribute_names, shortened, value_name};
use crate::cli::prelude::*;

/// Key of the environment of a container's processes; it sets their PATH unless the image's
/// configuration does.
const ENVIRONMENT: &str = r"HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment";

/// Show the registry keys, files and permissions of a base image
///
/// Prints a summary without options. Reads the layers and caches the result if the base is not
/// indexed yet.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image base show repo.mylan.k8s:9999/windows/servercore:ltsc2022\n  \
    wincimg image base show mcr.microsoft.com/windows/nanoserver:ltsc2022 \\\n      \
    --registry 'HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager'\n  \
    wincimg image base show oci:./iis --path 'C:\\inetpub'\n\n\
    Exit code 1: the image does not have that key, file or folder; the nearest one is named.")]
pub(super) struct Show {
    /// Show this registry key: values, subkeys, class and security descriptor
    // Other commands have a flag of this name for a host, which a file of defaults may set for all
    // commands; a registry key does not belong there.
    #[arg(long, value_name = "KEY", conflicts_with = "path")]
    registry: Option<String>,
    /// Show this file or folder: attributes, contents and security descriptor
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    base: BaseArgs,
}

const LABELS: usize = 10;

impl Show {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let (key, path) = self.target()?;
        registry_args::run(async {
            let mut found = self.base.find(session).await?;
            let images = std::mem::take(&mut found.images);
            let image = one_of(&self.base.image.clone().into(), images, None)?;
            let known = found.facts(&image, session).await;
            found.warn(session);
            let known = known?;
            let answer = |known: &ResolvedFacts| match (&key, &path) {
                (Some(key), _) => self.key(&known.facts, key),
                (None, Some(path)) => self.path(&known.facts, path),
                (None, None) => self.summary(&image, known),
            };
            let answered = answer(&known);
            if answered.is_ok() || !known.remove_if_damaged() {
                return answered;
            }
            session.warn("the cached index of the base is damaged: creating it again");
            answer(&found.facts(&image, session).await?)
        })
    }

    /// The selected key or path.
    fn target(&self) -> Result<(Option<BaseKeyPath>, Option<ImagePath>)> {
        let key = self.registry.as_ref().map(|key| {
            let hint = r"name a key of HKLM\SYSTEM, HKLM\SOFTWARE, HKLM\SAM, HKLM\SECURITY or HKU\.DEFAULT";
            key.parse()
                .map_err(|error| Failure::usage(error).hint(hint))
        });
        let path = self.path.as_ref().map(|path| {
            let hint = r"name it as in a container: --path 'C:\Windows\System32'";
            path.parse()
                .map_err(|error| Failure::usage(error).hint(hint))
        });
        Ok((key.transpose()?, path.transpose()?))
    }

    fn summary(&self, image: &Image, known: &ResolvedFacts) -> Result<CommandOutcome> {
        let facts = &known.facts;
        let keys = count_keys(facts).map_err(Failure::operation)?;
        let files = FileCount::new(facts).map_err(Failure::operation)?;
        let path = path_of(facts).map_err(Failure::operation)?;
        let problems: Vec<String> = facts.problems().iter().map(ToString::to_string).collect();
        let config = image.config();
        let answer = || {
            let keys = keys.iter();
            let keys = keys.map(|(hive, keys)| json!({"hive": hive, "keys": keys}));
            json!({
                "reference": self.base.image.to_string(),
                "digest": image.digest(),
                "os_version": config.os_version,
                "from": known.from,
                "path": path,
                "env": config.config.env,
                "keys": keys.collect::<Vec<_>>(),
                "files": files,
                "problems": problems,
            })
        };
        self.format.print(answer, |out| {
            writeln!(out, "{}", UntrustedText(&self.base.image))?;
            let mut rows = Rows { out, width: LABELS };
            rows.row("digest", image.digest())?;
            rows.each("windows", &config.os_version)?;
            rows.row("contents", &known.from)?;
            for (hive, keys) in &keys {
                match keys {
                    Some(keys) => rows.row("registry", format_args!("{keys} keys in {hive}"))?,
                    None => rows.row("registry", format_args!("{hive} is unknown"))?,
                }
            }
            rows.row("files", files.describe())?;
            let folders = path.iter().flat_map(|path| path.split(';'));
            rows.list("path", folders.filter(|it| !it.is_empty()))?;
            rows.each("env", &config.config.env)?;
            rows.each("problem", &problems)
        })
    }

    fn key(&self, facts: &BaseFacts, path: &BaseKeyPath) -> Result<CommandOutcome> {
        let problems = facts.problems().iter();
        let problems = problems.filter(|problem| problem.is_of(path.hive));
        let problems: Vec<String> = problems.map(ToString::to_string).collect();
        let key = match facts.key_at(path)? {
            Answered::Present(key) => key,
            Answered::Absent => return Err(no_key(facts, path).map_err(Failure::operation)?),
            Answered::Unknown => {
                let why = problems.first();
                let why = why.map_or_else(String::new, |it| format!(": {it}"));
                let problem = format!("{} of the base is unknown{why}", path.hive.short_name());
                return Err(Failure::operation(problem));
            }
        };
        let subkeys = facts.subkeys(path)?;
        let names = subkeys.iter().filter_map(|key| key.path.components.last());
        let names: Vec<&String> = names.collect();
        let security = sddl(&key.security);
        let link = key.link.as_ref().map(ToString::to_string);
        let answer = || {
            let values = key.values.iter();
            let values = values.map(|(name, data)| extended(&json!({"name": name}), json!(data)));
            json!({
                "key": path.to_string(),
                "security": security,
                "class": key.class,
                "link": link,
                "values": values.collect::<Vec<_>>(),
                "subkeys": names,
                "problems": problems,
            })
        };
        self.format.print(answer, |out| {
            writeln!(out, "{}", UntrustedText(path))?;
            let mut rows = Rows { out, width: LABELS };
            rows.row("security", &security)?;
            rows.each("class", &key.class)?;
            rows.each("link to", &link)?;
            for (name, data) in &key.values {
                let (name, data) = (value_name(name), shortened(data));
                rows.row("value", format_args!("{name} = {data}"))?;
            }
            rows.each("subkey", &names)?;
            rows.each("problem", &problems)
        })
    }

    fn path(&self, facts: &BaseFacts, path: &ImagePath) -> Result<CommandOutcome> {
        let file = match facts.file(path).map_err(Failure::operation)? {
            Answered::Present(file) => Some(file),
            // No layer contains the drive itself, but all others below it.
            _ if path.components().is_empty() => None,
            Answered::Absent => return Err(no_file(facts, path).map_err(Failure::operation)?),
            Answered::Unknown => {
                return Err(Failure::operation("the files of the base are unknown"));
            }
        };
        let is_kept = facts.content(path).map_err(Failure::operation)?;
        let is_kept = matches!(is_kept, Answered::Present(_));
        let children = facts.folder(path)?;
        let children = children.iter().map(|listed| {
            let name = listed.components.last().cloned().unwrap_or_default();
            (name, FileView::new(&listed.file, listed.target.clone()))
        });
        let children: Vec<(String, FileView)> = children.collect();
        let shown = file.as_ref().map(|file| FileView::new(file, None));
        let answer = || {
            let children = children.iter();
            let children =
                children.map(|(name, file)| extended(&json!({"name": name}), json!(file)));
            let children: Vec<Value> = children.collect();
            let named = extended(&json!({"path": path.to_string()}), json!(shown));
            // The index has the content of a file of which wincimg may write a new version.
            extended(
                &named,
                json!({"content_kept": is_kept, "children": children}),
            )
        };
        self.format.print(answer, |out| {
            writeln!(out, "{}", UntrustedText(path))?;
            let mut rows = Rows { out, width: LABELS };
            if let Some(file) = &shown {
                file.write(&mut rows)?;
                rows.each("content", is_kept.then_some("indexed"))?;
            }
            children
                .iter()
                .try_for_each(|(name, file)| file.write_in_folder(name, rows.out))
        })
    }
}

/// Error for a key that does not exist, with the nearest one that does.
fn no_key(facts: &BaseFacts, path: &BaseKeyPath) -> anyhow::Result<Failure> {
    let mut above = path.clone();
    let mut missing = String::new();
    while let Some(name) = above.components.pop() {
        missing = name;
        if matches!(facts.key_at(&above)?, Answered::Present(_)) {
            break;
        }
    }
    let subkeys = facts.subkeys(&above)?;
    let names = subkeys.iter().filter_map(|key| key.path.components.last());
    let like = closest_match(&missing, names.map(String::as_str));
    let like = like.map(|name| format!(r"; did you mean {above}\{name}?"));
    let like = like.unwrap_or_default();
    Ok(not_there(
        format!("the base has no key {path}"),
        format!("{above} exists, but has no {missing}{like}"),
    ))
}

fn not_there(problem: String, hint: String) -> Failure {
    Problem::answer("image/no-file", problem).hint(hint).into()
}

/// Error for a file that does not exist, with the nearest one that does.
fn no_file(facts: &BaseFacts, path: &ImagePath) -> anyhow::Result<Failure> {
    let names = path.components();
    let mut above = ImagePath::drive();
    let mut missing = String::new();
    for name in names {
        let next = above.join(name)?;
        if !matches!(facts.file(&next)?, Answered::Present(_)) {
            missing.clone_from(name);
            break;
        }
        above = next;
    }
    let children = facts.folder(&above)?;
    let known = children.iter().filter_map(|child| child.components.last());
    let like = closest_match(&missing, known.map(String::as_str));
    let like = match like {
        Some(name) => format!("; did you mean {}?", above.join(&name)?),
        None => String::new(),
    };
    Ok(not_there(
        format!("the base has no {path}"),
        format!("{above} exists, but has no {missing}{like}"),
    ))
}

/// The number of keys of each hive; none if it cannot be read.
fn count_keys(facts: &BaseFacts) -> anyhow::Result<Vec<(&'static str, Option<usize>)>> {
    let mut counts = Vec::new();
    for hive in BaseHive::ALL {
        let root = BaseKeyPath {
            hive,
            components: Vec::new(),
        };
        let mut count = None;
        if facts.has_hive(hive) {
            let mut keys = facts.keys_below(&root)?;
            count = Some(keys.try_fold(0, |number, key| key.map(|_| number + 1))?);
        }
        counts.push((hive.short_name(), count));
    }
    Ok(counts)
}

#[derive(Debug, Default, Serialize)]
struct FileCount {
    folders: usize,
    files: usize,
    links: usize,
    bytes: u64,
}

impl FileCount {
    fn new(facts: &BaseFacts) -> anyhow::Result<Self> {
        let mut files = Self::default();
        for listed in facts.files_below(&ImagePath::drive())? {
            match listed?.file.kind {
                FileKind::Folder => files.folders += 1,
                FileKind::Link(()) => files.links += 1,
                FileKind::File(FileDigest { size, .. }) => {
                    files.files += 1;
                    files.bytes = files.bytes.saturating_add(size);
                }
            }
        }
        Ok(files)
    }

    fn describe(&self) -> String {
        format!(
            "{} with {}, {}, {}",
            count(self.files, "file"),
            BinaryBytes(self.bytes),
            count(self.folders, "folder"),
            count(self.links, "link"),
        )
    }
}

/// The PATH in the base's registry.
fn path_of(facts: &BaseFacts) -> anyhow::Result<Option<String>> {
    let Answered::Present(key) = facts.key_at(&ENVIRONMENT.parse()?)? else {
        return Ok(None);
    };
    let mut values = key.values.iter();
    let value = values.find(|(name, _)| eq_ignore_case(name, "Path"));
    Ok(match value.map(|(_, data)| data.typed()) {
        Some(TypedData::Text(text)) => Some(text),
        _ => None,
    })
}

#[derive(Debug, Serialize)]
struct FileView {
    kind: &'static str,
    attributes: Vec<&'static str>,
    security: Option<String>,
    size: Option<u64>,
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

impl FileView {
    fn new(file: &BaseFile, target: Option<String>) -> Self {
        let (kind, size, sha256) = match &file.kind {
            FileKind::Folder => ("folder", None, None),
            FileKind::Link(()) => ("link", None, None),
            FileKind::File(FileDigest { size, sha256 }) => {
                ("file", Some(*size), Some(hex::encode(sha256)))
            }
        };
        Self {
            kind,
            attributes: attribute_names(file.attributes),
            security: file.security.as_deref().map(sddl),
            size,
            sha256,
            target,
        }
    }

    fn write(&self, rows: &mut Rows<'_>) -> io::Result<()> {
        rows.row(self.kind, self.attributes.join(" "))?;
        rows.each("security", &self.security)?;
        rows.each("size", self.size)?;
        rows.each("sha256", &self.sha256)?;
        rows.each("link to", &self.target)
    }

    fn write_in_folder(&self, name: &str, out: &mut dyn Write) -> io::Result<()> {
        let kind = self.kind;
        let size = self.size.map_or_else(String::new, |size| size.to_string());
        let target = self.target.as_ref().map(|target| format!(" -> {target}"));
        let name = UntrustedText(format_args!("{name}{}", target.unwrap_or_default())).to_string();
        writeln!(out, "  {kind:<8}{size:>12}  {name}")
    }
}
