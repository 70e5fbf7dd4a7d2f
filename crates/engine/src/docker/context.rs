//! Build contexts: a Dockerfile and the files it copies, measured before they are sent.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::path::Path;

use bytes::Bytes;
use wincimg_common::diagnose::Problem;
use wincimg_dockerfile::{ContextContent, ContextEntry, RenderedDockerfile};
use wincimg_layer::{ContentSource, DiskSource};

const DOCKERFILE: &str = "Dockerfile";

/// A measured context, and what to build of it.
#[derive(Debug)]
pub struct ContextListing {
    /// Name of the Dockerfile.
    pub(super) dockerfile: String,
    /// Target stage, if it is not the last.
    pub(super) target: Option<String>,
    /// Labels in addition to those of the Dockerfile.
    pub(super) labels: BTreeMap<String, String>,
    pub(super) entries: Vec<ContextEntry>,
    /// Total size of the files.
    pub(super) bytes: u64,
}

impl ContextListing {
    /// Measures a context; only the sizes of files are read.
    pub fn new(rendered: &RenderedDockerfile) -> Result<Self, Problem> {
        let context = &rendered.context;
        let name = rendered.name.as_deref().unwrap_or(DOCKERFILE);
        let is_taken = |entry: &&ContextEntry| entry.path.eq_ignore_ascii_case(name);
        if let Some(entry) = context.iter().find(is_taken) {
            let path = &entry.path;
            let problem = format!(
                "the build context already contains {path:?}: that name is reserved for the \
                 Dockerfile"
            );
            return Err(Problem::new("context/name-taken", problem)
                .hint(format!("rename {path:?}, or list it in .dockerignore")));
        }
        let text = Bytes::from(rendered.dockerfile.clone());
        let dockerfile = ContextEntry {
            path: name.to_owned(),
            content: ContextContent::File(text.into()),
        };
        let mut entries = vec![dockerfile];
        entries.extend(context.iter().cloned());
        let mut bytes = 0;
        for entry in &entries {
            bytes += match &entry.content {
                ContextContent::File(ContentSource::Path(source)) => size(source)?,
                ContextContent::File(ContentSource::NotDownloaded { url, .. }) => {
                    return Err(lacking(url));
                }
                ContextContent::File(source) => source.length(),
                ContextContent::Folder | ContextContent::Link(_) => 0,
            };
        }
        Ok(Self {
            dockerfile: name.to_owned(),
            target: rendered.target.clone(),
            labels: rendered.labels.clone(),
            entries,
            bytes,
        })
    }
}

fn size(source: &DiskSource) -> Result<u64, Problem> {
    let metadata = source.metadata();
    let metadata = metadata.map_err(|error| unreadable(&source.path, error))?;
    Ok(metadata.len())
}

/// Error for a file that cannot be read.
pub(super) fn unreadable(path: &Path, error: io::Error) -> Problem {
    let problem = format!("cannot read {}", path.display());
    Problem::new("context/read", problem).source(error)
}

/// Error for a file that is not downloaded.
pub(super) fn lacking(url: &str) -> Problem {
    Problem::new("context/read", format!("{url} is not downloaded"))
}

#[cfg(unix)]
pub(super) fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

/// Windows has no executable bit; Docker's client sets it for every file there.
#[cfg(not(unix))]
pub(super) fn is_executable(_metadata: &Metadata) -> bool {
    true
}
