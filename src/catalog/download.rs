//! Gets the files of an update: several at once, resumed where an earlier try stopped, hashed while
//! they come, and under their final names only when they are what the catalog says.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::{Method, Request, Url};
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::dialog::UpdateFile;
use super::digest::Digest;
use super::http::{Http, HttpError, Vouched};
use super::msu::{self, PackageError, article_in_name};
use super::part::{Part, remove};
use super::product::Arch;
use super::transfer::{Line, Transfer, TransferError};
use crate::diagnose::Diagnose;
use crate::net::{host_of, shown};
use crate::progress::Progress;
use crate::windows::update::Kb;

/// What the files are expected to be.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// The article of the update.
    pub kb: Kb,
    /// Its architecture.
    pub arch: Arch,
    /// Its size in the search result.
    pub size: Option<u64>,
    /// Take files for which the catalog has no digest.
    pub without_digest: bool,
}

/// A file that is there, under its final name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fetched {
    /// Where it is.
    pub path: PathBuf,
    /// In bytes.
    pub size: u64,
    /// Serialised as `sha256:…` or `sha1:…`.
    #[serde(serialize_with = "as_text")]
    pub digest: Digest,
    /// Whether the catalog gave that digest.
    pub verified: bool,
    /// False where it was there already.
    pub downloaded: bool,
}

fn as_text<S: serde::Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
    let algorithm = digest.algorithm().to_ascii_lowercase();
    serializer.collect_str(&format_args!("{algorithm}:{}", digest.hex()))
}

/// Why a file is not there.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// Something about the disk.
    #[error("cannot {action} {}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Two processes at one file.
    #[error("another process is downloading {}", .0.display())]
    Busy(PathBuf),
    /// Nothing to verify the file with.
    #[error("the catalog gives no digest for {0}, so nothing can tell whether it is genuine")]
    NoDigest(String),
    /// A link that is no URL.
    #[error("the catalog's link to {name} is no URL: {url:?}")]
    Link {
        /// The file.
        name: String,
        /// The link.
        url: String,
    },
    /// The connection.
    #[error("cannot download {name}")]
    Http {
        /// The file.
        name: String,
        /// Why not.
        source: HttpError,
    },
    /// The server's file has another length than the catalog says.
    #[error("{host} has {name} with {found} bytes, the catalog says {expected}")]
    Size {
        /// Host and port.
        host: String,
        /// The file.
        name: String,
        /// What the server has.
        found: u64,
        /// What the search result says.
        expected: u64,
    },
    /// The bytes are not the catalog's.
    #[error("{name} from {url} is not what the catalog lists: it has {found}, expected {expected}")]
    Digest {
        /// The file.
        name: String,
        /// Where it came from.
        url: String,
        /// What came.
        found: Digest,
        /// What the catalog says.
        expected: Digest,
    },
    /// The bytes are the catalog's, but no such package.
    #[error("{name} is not the update that was asked for")]
    Package {
        /// The file.
        name: String,
        /// What it is.
        source: PackageError,
    },
    /// A worker thread died.
    #[error("a worker thread ended early")]
    Worker,
}

impl Diagnose for DownloadError {}

/// Files that are downloaded at the same time; the set of an update rarely has more.
const PARALLEL: usize = 4;
/// How long a host may take to show whether it speaks TLS.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// Brings the files of one update into a folder.
pub async fn download(
    http: &Http,
    files: &[UpdateFile],
    folder: &Path,
    expected: &Expected,
    progress: &dyn Progress,
) -> Result<Vec<Fetched>, DownloadError> {
    std::fs::create_dir_all(folder).map_err(file_error("create", folder))?;
    let mut jobs = Vec::with_capacity(files.len());
    for file in files {
        jobs.push(Job::new(file, folder, expected, files.len() == 1)?);
    }
    let mut probed = HashMap::new();
    for job in &mut jobs {
        job.prefer_tls(http, &mut probed).await;
    }
    stream::iter(&jobs)
        .map(|job| job.run(http, progress))
        .buffered(PARALLEL)
        .try_collect()
        .await
}

/// One file to get.
struct Job<'f> {
    file: &'f UpdateFile,
    url: Url,
    target: PathBuf,
    digest: Option<Digest>,
    size: Option<u64>,
    kb: Kb,
    arch: Arch,
}

impl<'f> Job<'f> {
    fn new(
        file: &'f UpdateFile,
        folder: &Path,
        expected: &Expected,
        alone: bool,
    ) -> Result<Self, DownloadError> {
        let digest = file.digests.best();
        if digest.is_none() && !expected.without_digest {
            return Err(DownloadError::NoDigest(file.name.clone()));
        }
        let url = file.url.parse().map_err(|_| DownloadError::Link {
            name: file.name.clone(),
            url: file.url.chars().take(200).collect(),
        })?;
        Ok(Self {
            url,
            target: folder.join(&file.name),
            digest,
            // The size is the update's; which file of several it is about is not said.
            size: expected.size.filter(|_| alone),
            // A checkpoint file is another article's.
            kb: article_in_name(&file.name)
                .filter(|_| !alone)
                .unwrap_or(expected.kb),
            arch: expected.arch,
            file,
        })
    }

    /// Takes the link over TLS where its host has that; links are often plain HTTP.
    async fn prefer_tls(&mut self, http: &Http, probed: &mut HashMap<String, bool>) {
        if self.url.scheme() != "http" || http.is_listed(&self.url) {
            return;
        }
        let mut upgraded = self.url.clone();
        if upgraded.set_scheme("https").is_err() {
            return;
        }
        let host = host_of(&upgraded);
        let has_tls = match probed.get(&host) {
            Some(has_tls) => *has_tls,
            None => {
                let has_tls = speaks_tls(http, &upgraded).await;
                probed.insert(host, has_tls);
                has_tls
            }
        };
        if has_tls {
            self.url = upgraded;
        }
    }

    async fn run(&self, http: &Http, progress: &dyn Progress) -> Result<Fetched, DownloadError> {
        let line = Line::new(progress, &self.file.name);
        if let Some(fetched) = self.already_there(progress).await? {
            line.done("already there");
            return Ok(fetched);
        }
        let (target, digest) = (self.target.clone(), self.digest);
        let opened = blocking(move || Part::open(&target, digest)).await?;
        let mut part = opened
            .map_err(file_error("open the part of", &self.target))?
            .ok_or_else(|| DownloadError::Busy(self.target.clone()))?;
        self.transfer(http, &mut part, &line).await?;
        if part.was_resumed() && !self.is_expected(&part.digest()) {
            // Bytes of two states of the file, perhaps; in one piece it may be right.
            progress.note(&format!(
                "{} does not fit together with what an earlier try left; beginning again",
                self.file.name
            ));
            part.restart()
                .map_err(file_error("restart", &self.target))?;
            self.transfer(http, &mut part, &line).await?;
        }
        self.keep(part, &line).await
    }

    fn is_expected(&self, found: &Digest) -> bool {
        self.digest.is_none_or(|expected| expected == *found)
    }

    /// Whether the verified file has been there from an earlier run. One that is not right goes.
    async fn already_there(
        &self,
        progress: &dyn Progress,
    ) -> Result<Option<Fetched>, DownloadError> {
        let Ok(metadata) = std::fs::metadata(&self.target) else {
            return Ok(None);
        };
        if let Some(expected) = self.digest {
            let target = self.target.clone();
            let found = blocking(move || expected.of_same_kind(&target)).await?;
            let found = found.map_err(file_error("read", &self.target))?;
            if found == expected && self.check_package(&self.target).await.is_ok() {
                return Ok(Some(Fetched {
                    path: self.target.clone(),
                    size: metadata.len(),
                    digest: found,
                    verified: true,
                    downloaded: false,
                }));
            }
            progress.note(&format!(
                "{} is not what the catalog lists; downloading it again",
                self.target.display()
            ));
            remove(&self.target).map_err(file_error("remove", &self.target))?;
        }
        Ok(None)
    }

    async fn transfer(
        &self,
        http: &Http,
        part: &mut Part,
        line: &Line<'_>,
    ) -> Result<(), DownloadError> {
        let vouched = match self.digest {
            Some(_) => Vouched::ByDigest,
            None => Vouched::ByConnection,
        };
        let name = || self.file.name.clone();
        let client = http
            .client(&self.url, vouched)
            .map_err(|source| DownloadError::Http {
                name: name(),
                source,
            })?;
        let transfer = Transfer {
            http,
            client,
            url: &self.url,
            size: self.size,
            line,
        };
        transfer.run(part).await.map_err(|error| match error {
            TransferError::Http(source) => DownloadError::Http {
                name: name(),
                source,
            },
            TransferError::File(source) => file_error("write the part of", &self.target)(source),
            TransferError::Size { found, expected } => DownloadError::Size {
                host: host_of(&self.url),
                name: name(),
                found,
                expected,
            },
        })
    }

    /// Gives a whole file its name, if it is the right one.
    async fn keep(&self, part: Part, line: &Line<'_>) -> Result<Fetched, DownloadError> {
        let digest = part.digest();
        if let Some(expected) = self.digest.filter(|_| !self.is_expected(&digest)) {
            part.discard()
                .map_err(file_error("remove the part of", &self.target))?;
            return Err(DownloadError::Digest {
                name: self.file.name.clone(),
                url: shown(&self.url),
                found: digest,
                expected,
            });
        }
        if let Err(error) = self.check_package(part.path()).await {
            part.discard()
                .map_err(file_error("remove the part of", &self.target))?;
            return Err(error);
        }
        let size = part.written();
        part.keep_as(&self.target)
            .map_err(file_error("rename the part of", &self.target))?;
        line.done("verified");
        Ok(Fetched {
            path: self.target.clone(),
            size,
            digest,
            verified: self.digest.is_some(),
            downloaded: true,
        })
    }

    async fn check_package(&self, path: &Path) -> Result<(), DownloadError> {
        let (path, name, kb, arch) = (path.to_owned(), self.file.name.clone(), self.kb, self.arch);
        blocking(move || msu::check_package(&path, &name, kb, arch))
            .await?
            .map(drop)
            .map_err(|source| DownloadError::Package {
                name: self.file.name.clone(),
                source,
            })
    }
}

/// Whether a host answers over TLS, with a certificate that this machine trusts.
async fn speaks_tls(http: &Http, url: &Url) -> bool {
    let Ok(client) = http.client(url, Vouched::ByConnection) else {
        return false;
    };
    let request = Request::new(Method::HEAD, url.clone());
    let answer =
        tokio::time::timeout(PROBE_TIME, http.send("find the file", &client, request)).await;
    matches!(answer, Ok(Ok(_)))
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DownloadError {
    let path = path.to_owned();
    move |source| DownloadError::File {
        action,
        path,
        source,
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, DownloadError> {
    spawn_blocking(work)
        .await
        .map_err(|_| DownloadError::Worker)
}
