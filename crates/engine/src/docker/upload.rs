//! Build contexts, measured before they are sent: a tar stream that is written while it is sent, with
//! only a few pieces in memory.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{Stream, stream};
use tar::{Builder, EntryType, Header};
use tokio::sync::mpsc;
use wincimg_common::diagnose::Problem;
use wincimg_common::lock;
use wincimg_common::progress::Task;
use wincimg_dockerfile::{ContextContent, ContextEntry, RenderedDockerfile};
use wincimg_layer::archive::{ArchiveError, Member};
use wincimg_layer::{ContentSource, DiskSource, Symlink, archive};

const PIECE: usize = 256 << 10;
/// Number of pieces that wait for the network.
const QUEUE_LENGTH: usize = 4;

/// The error of a context that ended its upload early, if there was one.
pub(super) type UploadOutcome = Arc<Mutex<Option<Problem>>>;

/// Starts to write the stream. All entries carry `timestamp`, so that the same context gives the
/// same stream.
pub(super) fn upload(
    listing: ContextListing,
    timestamp: u64,
    task: Arc<dyn Task>,
) -> (
    impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    UploadOutcome,
) {
    let outcome = UploadOutcome::default();
    let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
    let failed = Arc::clone(&outcome);
    tokio::task::spawn_blocking(move || {
        let pieces = PieceSender {
            sender,
            task,
            abandoned: false,
        };
        write(&listing, timestamp, pieces, &failed);
    });
    let pieces = stream::unfold(receiver, |mut receiver| async move {
        Some((receiver.recv().await?, receiver))
    });
    (pieces, outcome)
}

fn write(listing: &ContextListing, timestamp: u64, pieces: PieceSender, outcome: &UploadOutcome) {
    let mut tar = Builder::new(BufWriter::with_capacity(PIECE, pieces));
    let mut members = Vec::new();
    let appended = listing
        .entries
        .iter()
        .try_for_each(|entry| match &entry.content {
            // Members come last, in the order of their archives; their folders exist by then.
            ContextContent::File(ContentSource::Member(member)) => {
                members.push((entry.path.as_str(), member));
                Ok(())
            }
            _ => append(&mut tar, entry, timestamp),
        });
    let appended = appended.and_then(|()| append_members(&mut tar, &members, timestamp));
    match appended {
        Ok(()) => {
            // The receiver knows why it is gone.
            drop(tar.into_inner().and_then(|mut pieces| pieces.flush()));
        }
        Err(failure) => {
            if let Failure::Context(error) = failure {
                *lock(outcome) = Some(error);
            }
            tar.get_mut().get_mut().abandon();
        }
    }
}

fn append_members(
    tar: &mut Builder<BufWriter<PieceSender>>,
    members: &[(&str, &Member)],
    timestamp: u64,
) -> Result<(), Failure> {
    let sources: Vec<_> = members.iter().map(|(_, member)| *member).collect();
    archive::read(&sources, |place, content| {
        let (path, member) = members[place];
        let mut header = Header::new_gnu();
        header.set_mtime(timestamp);
        header.set_size(member.size());
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content)
            .map_err(|error| match error.downcast::<ArchiveError>() {
                Ok(error) => error.into(),
                Err(_) => Failure::Unheard,
            })
    })
}

enum Failure {
    Context(Problem),
    /// The receiver is gone.
    Unheard,
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::Context(Problem::from_error("context/read", error))
    }
}

fn append(
    tar: &mut Builder<BufWriter<PieceSender>>,
    entry: &ContextEntry,
    timestamp: u64,
) -> Result<(), Failure> {
    let mut header = Header::new_gnu();
    header.set_mtime(timestamp);
    header.set_size(0);
    let sent = match &entry.content {
        ContextContent::Folder => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            tar.append_data(&mut header, format!("{}/", entry.path), io::empty())
        }
        ContextContent::Link(Symlink { target, .. }) => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            tar.append_link(&mut header, &entry.path, target)
        }
        ContextContent::File(source @ (ContentSource::Bytes(_) | ContentSource::Part(_))) => {
            header.set_size(source.length());
            header.set_mode(0o644);
            let opened = source.open(0);
            opened.and_then(|content| tar.append_data(&mut header, &entry.path, content))
        }
        ContextContent::File(ContentSource::NotDownloaded { url, .. }) => {
            return Err(Failure::Context(lacking(url)));
        }
        // Members are appended together.
        ContextContent::File(ContentSource::Member(_)) => return Ok(()),
        ContextContent::File(ContentSource::Path(source)) => {
            return append_file(tar, &mut header, &entry.path, source);
        }
    };
    sent.map_err(|_| Failure::Unheard)
}

fn append_file(
    tar: &mut Builder<BufWriter<PieceSender>>,
    header: &mut Header,
    name: &str,
    source: &DiskSource,
) -> Result<(), Failure> {
    let path = &source.path;
    let unreadable = |error| Failure::Context(unreadable(path, error));
    let (file, metadata) = source.open().map_err(unreadable)?;
    let size = metadata.len();
    header.set_size(size);
    header.set_mode(if is_executable(&metadata) {
        0o755
    } else {
        0o644
    });
    let mut source = file.take(size);
    let sent = tar.append_data(header, name, &mut source);
    sent.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Unheard,
        _ => unreadable(error),
    })?;
    // As many bytes as when it was opened.
    let ends = matches!(source.get_mut().read(&mut [0]), Ok(0));
    if source.limit() == 0 && ends {
        return Ok(());
    }
    let problem = format!("{} changed while it was read", path.display());
    let problem = Problem::new("context/changed", problem);
    Err(Failure::Context(
        problem.hint("build again when no program writes to it"),
    ))
}

/// Sends the tar stream piece by piece.
struct PieceSender {
    sender: mpsc::Sender<io::Result<Bytes>>,
    task: Arc<dyn Task>,
    abandoned: bool,
}

impl PieceSender {
    /// Ends the stream so that the daemon cannot take it for a complete context.
    fn abandon(&mut self) {
        self.abandoned = true;
        let error = io::Error::other("the context is incomplete");
        // The receiver knows why it is gone.
        drop(self.sender.blocking_send(Err(error)));
    }
}

impl Write for PieceSender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.abandoned {
            self.task.advance(bytes.len() as u64);
            let sent = self.sender.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
            sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

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

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, TryStreamExt};
    use wincimg_common::progress::Silent;
    use wincimg_dockerfile::RenderedDockerfile;
    use wincimg_layer::archive::{ArchiveLocation, Archives, UnpackSelection, UnpackedContent};

    use super::*;

    #[test]
    async fn files_in_an_archive_are_sent_as_they_come_out_of_it_behind_their_folders() {
        let mut made = Builder::new(Vec::new());
        for (name, content) in [("b", "two"), ("a", "one")] {
            let mut header = Header::new_gnu();
            header.set_size(content.len() as u64);
            made.append_data(&mut header, name, content.as_bytes())
                .unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.tar");
        std::fs::write(&path, made.into_inner().unwrap()).unwrap();
        let archive = Archives::default().open(ArchiveLocation::Path(path.into()), "t.tar", None);
        let archive = archive.unwrap().unwrap();
        let unpacked = archive.unpack(&UnpackSelection::default());
        let mut context = vec![ContextEntry {
            path: "files".to_owned(),
            content: ContextContent::Folder,
        }];
        for entry in unpacked.unwrap() {
            let UnpackedContent::File(member) = entry.content else {
                panic!("only files are in it");
            };
            context.push(ContextEntry {
                path: format!("files/{}", entry.path),
                content: ContextContent::File(ContentSource::Member(member)),
            });
        }
        // Sorted by name, as in a plan.
        context.sort_by(|a, b| a.path.cmp(&b.path));
        let rendered = RenderedDockerfile {
            dockerfile: "FROM x\n".to_owned(),
            context,
            ..RenderedDockerfile::default()
        };
        let listing = ContextListing::new(&rendered).unwrap();
        let (pieces, _) = upload(listing, 0, Arc::new(Silent));
        let pieces: Vec<Bytes> = pieces.try_collect().await.unwrap();
        let sent = pieces.concat();
        let mut archive = tar::Archive::new(sent.as_slice());
        let mut all = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            all.push((path, io::read_to_string(&mut entry).unwrap()));
        }
        let names: Vec<&str> = all.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(names, ["Dockerfile", "files/", "files/b", "files/a"]);
        assert_eq!((all[2].1.as_str(), all[3].1.as_str()), ("two", "one"));
    }

    #[test]
    async fn a_file_that_changes_while_it_is_sent_ends_the_stream() {
        for length in [2_u64 << 20, (4 << 20) + 1] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("big");
            std::fs::write(&path, vec![1_u8; 4 << 20]).unwrap();
            let rendered = RenderedDockerfile {
                dockerfile: "FROM x\n".to_owned(),
                context: vec![ContextEntry {
                    path: "big".to_owned(),
                    content: ContextContent::File(path.clone().into()),
                }],
                ..RenderedDockerfile::default()
            };
            let listing = ContextListing::new(&rendered).unwrap();
            let (pieces, outcome) = upload(listing, 0, Arc::new(Silent));
            let mut pieces = Box::pin(pieces);
            // It is open then, and most of it is unread: few pieces wait.
            pieces.next().await.unwrap().unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_len(length).unwrap();
            let rest: Vec<bool> = pieces.map(|piece| piece.is_ok()).collect().await;
            assert_eq!(rest.last(), Some(&false), "{length}");
            let problem = lock(&outcome).take().unwrap().to_string();
            assert!(problem.ends_with("changed while it was read"), "{problem}");
        }
    }
}
