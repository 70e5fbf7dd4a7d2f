//! Download of an update's files: in parallel, resumed, hashed during the transfer, and renamed to
//! their final names only after verification.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::{Method, StatusCode, Url};
use serde::Serialize;
use tokio::task::spawn_blocking;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::digest::{Digest, Hasher};
use wincimg_common::files;
use wincimg_http::{
    AddressPolicy, AddressScope, Exchange, HttpClient, PartialFile, ProgressLine, RedirectPolicy,
    Transfer, TransferError, file_error, host_of, redacted,
};
use wincimg_windows::update::Kb;
use wincimg_windows::version::WindowsVersion;

use super::dialog::UpdateFile;
use super::digests::describe;
use super::folder::reject_other_packages;
use super::msu::{self, PackageFormat, kb_from_filename};
use super::product::Arch;
use super::select::list_hint;
use super::set::{Role, UpdateSetFile};

/// Expected properties of the files, or of one of them.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedUpdate {
    /// The article.
    pub kb: Kb,
    /// The architecture.
    pub arch: Arch,
    /// Version of the host after the update, if known.
    pub version: Option<WindowsVersion>,
    /// Of an update: true to accept files without a digest in the catalog. Of a file: true if it
    /// has none.
    pub without_digest: bool,
}

/// A downloaded file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DownloadedUpdateFile {
    /// Path.
    pub path: PathBuf,
    /// In bytes.
    pub size: u64,
    /// `sha256:…` or `sha1:…`.
    pub digest: Digest,
    /// True if the catalog gave that digest.
    pub verified: bool,
    /// False if it existed already.
    pub downloaded: bool,
    /// Format.
    #[serde(skip)]
    pub container: PackageFormat,
    /// Reason why its content could not be checked.
    #[serde(skip)]
    pub unsaid: Option<String>,
}

/// Files downloaded at the same time; an update rarely has more.
const PARALLEL: usize = 4;
/// Timeout of the check for TLS.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// Downloads the files of one update into a folder. The flags of this run for the catalog are for
/// the command in a hint.
pub async fn download(
    http: &HttpClient,
    members: &[UpdateSetFile],
    folder: &Path,
    expected: &ExpectedUpdate,
    flags: &str,
) -> Result<Vec<DownloadedUpdateFile>, BoxError> {
    std::fs::create_dir_all(folder).map_err(file_error("create", folder))?;
    let names = members.iter().map(|member| member.file.name.as_str());
    reject_other_packages(folder, names)?;
    let mut jobs = Vec::with_capacity(members.len());
    for member in members {
        jobs.push(Job::new(member, folder, expected, flags)?);
    }
    let mut probed = HashMap::new();
    for job in &mut jobs {
        job.prefer_tls(http, &mut probed).await;
    }
    stream::iter(&jobs)
        .map(|job| job.run(http))
        .buffered(PARALLEL)
        .try_collect()
        .await
}

/// One file to download.
struct Job<'f> {
    file: &'f UpdateFile,
    url: Url,
    target: PathBuf,
    digest: Option<&'f Digest>,
    size: Option<u64>,
    wanted: ExpectedUpdate,
    flags: &'f str,
}

impl<'f> Job<'f> {
    fn new(
        member: &'f UpdateSetFile,
        folder: &Path,
        expected: &ExpectedUpdate,
        flags: &'f str,
    ) -> Result<Self, Problem> {
        let file = &member.file;
        let digest = file.digest.as_ref();
        if digest.is_none() && !expected.without_digest {
            let problem = format!(
                "the catalog lists no digest for {}, so it cannot be verified",
                file.name
            );
            return Err(Problem::new("download/no-digest", problem)
                .hint("add --without-digest to download it without verification, over TLS"));
        }
        let url = file.url.parse().map_err(|_| {
            let (name, url) = (&file.name, file.url.chars().take(200).collect::<String>());
            let problem = format!("the catalog's link to {name} is not a URL: {url:?}");
            Problem::new("catalog/answer", problem)
        })?;
        Ok(Self {
            url,
            target: folder.join(&file.name),
            digest,
            size: member.size,
            wanted: ExpectedUpdate {
                // A prerequisite belongs to another article.
                kb: kb_from_filename(&file.name)
                    .filter(|_| member.role != Role::Target)
                    .unwrap_or(expected.kb),
                version: expected.version.filter(|_| member.role == Role::Target),
                without_digest: digest.is_none(),
                ..*expected
            },
            file,
            flags,
        })
    }

    /// Switches the link to TLS if the host supports it; links are often plain HTTP.
    async fn prefer_tls(&mut self, http: &HttpClient, probed: &mut HashMap<String, bool>) {
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
                let has_tls = supports_tls(http, &upgraded).await;
                probed.insert(host, has_tls);
                has_tls
            }
        };
        if has_tls {
            self.url = upgraded;
        }
    }

    async fn run(&self, http: &HttpClient) -> Result<DownloadedUpdateFile, BoxError> {
        let line = ProgressLine::new(http.progress(), &self.file.name);
        if let Some(fetched) = self.already_there(http).await? {
            line.done("already downloaded");
            return Ok(fetched);
        }
        let opened = PartialFile::open(http, &self.target, self.digest).await;
        let mut partial = opened.map_err(|error| self.failed(error))?;
        // Another process may have finished first.
        if let Some(fetched) = self.already_there(http).await? {
            line.done("already downloaded");
            return Ok(fetched);
        }
        self.transfer(http, &mut partial, &line).await?;
        self.keep(partial, &line).await
    }

    /// Returns true if the verified file exists from an earlier run. A wrong one is deleted.
    async fn already_there(
        &self,
        http: &HttpClient,
    ) -> Result<Option<DownloadedUpdateFile>, BoxError> {
        let Ok(metadata) = std::fs::metadata(&self.target) else {
            return Ok(None);
        };
        if let Some(expected) = self.digest {
            let hasher = Hasher::matching(expected).unwrap_or_default();
            let target = self.target.clone();
            let found = blocking(move || digest_of(&target, hasher)).await?;
            if found == *expected
                && let Ok(checked) = self.check_package(&self.target).await
            {
                return Ok(Some(DownloadedUpdateFile {
                    container: checked.container,
                    unsaid: checked.unsaid,
                    path: self.target.clone(),
                    size: metadata.len(),
                    digest: found,
                    verified: true,
                    downloaded: false,
                }));
            }
            http.progress().note(&format!(
                "{} differs from the catalog's entry; downloading it again",
                self.target.display()
            ));
            std::fs::remove_file(&self.target).map_err(file_error("remove", &self.target))?;
        }
        Ok(None)
    }

    async fn transfer(
        &self,
        http: &HttpClient,
        partial: &mut PartialFile,
        line: &ProgressLine<'_>,
    ) -> Result<(), BoxError> {
        let transfer = Transfer {
            http,
            url: &self.url,
            digest: self.digest,
            size: self.size,
            limit: None,
            redirects: RedirectPolicy::SameOrigin,
            addresses: addresses(&self.url),
            takes_pages: false,
            line,
        };
        let done = transfer.run(partial).await;
        done.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: TransferError) -> BoxError {
        let name = &self.file.name;
        let problem = match error {
            TransferError::Http(error) => {
                let is_gone = error.status() == Some(StatusCode::NOT_FOUND);
                Problem::context(format!("cannot download {name}"), error)
                    .hint_if(is_gone.then(|| list_hint(self.wanted.kb, self.flags)))
            }
            TransferError::File(error) => return error.into(),
            TransferError::Size { found, expected } => changed(format!(
                "{} has {name} with {found} bytes, the catalog lists {expected}",
                host_of(&self.url)
            )),
            TransferError::TooLarge(limit) => changed(format!(
                "{} has {name} with more than {limit} bytes",
                host_of(&self.url)
            )),
            TransferError::Page(kind) => changed(format!(
                "the server sent a web page ({kind}) instead of {name}"
            )),
        };
        problem.into()
    }

    /// Verifies a complete file and renames it.
    async fn keep(
        &self,
        partial: PartialFile,
        line: &ProgressLine<'_>,
    ) -> Result<DownloadedUpdateFile, BoxError> {
        let digest = partial.digest();
        if let Some(expected) = self.digest.filter(|it| **it != digest) {
            partial.discard()?;
            let problem = format!(
                "{} from {} differs from the catalog's entry: it has {}, expected {}",
                self.file.name,
                redacted(&self.url),
                describe(&digest),
                describe(expected)
            );
            return Err(changed(problem).into());
        }
        let checked = match self.check_package(partial.path()).await {
            Ok(checked) => checked,
            Err(error) => {
                partial.discard()?;
                return Err(error);
            }
        };
        let size = partial.written();
        partial.commit().await?;
        line.done("verified");
        Ok(DownloadedUpdateFile {
            path: self.target.clone(),
            size,
            digest,
            verified: self.digest.is_some(),
            downloaded: true,
            container: checked.container,
            unsaid: checked.unsaid,
        })
    }

    async fn check_package(&self, path: &Path) -> Result<msu::PackageCheck, BoxError> {
        let (path, name, wanted) = (path.to_owned(), self.file.name.clone(), self.wanted);
        let checked = blocking(move || Ok(msu::check_package(&path, &name, &wanted))).await?;
        checked.map_err(|error| {
            let what = format!("{} is not the requested update", self.file.name);
            Problem::context(what, error).into()
        })
    }
}

/// Problem of a file that differs from the catalog's entry.
fn changed(problem: String) -> Problem {
    Problem::new("download/changed", problem)
        .hint("a proxy or a mirror in between may have changed the file; it was deleted")
}

/// Addresses for a link. That of a catalog on this machine was checked to be one.
fn addresses(url: &Url) -> AddressPolicy {
    match AddressScope::of_url(url) {
        AddressScope::ThisMachine => AddressPolicy::ThisMachineToo,
        _ => AddressPolicy::OtherMachines,
    }
}

/// Returns true if a host responds over TLS with a trusted certificate.
async fn supports_tls(http: &HttpClient, url: &Url) -> bool {
    let mut exchange = Exchange::get("find the file", url.clone());
    exchange.method = Method::HEAD;
    exchange.addresses = addresses(url);
    let answer = tokio::time::timeout(PROBE_TIME, http.send_checked(&exchange)).await;
    matches!(answer, Ok(Ok(_)))
}

/// Digest of a file's content, by `hasher`.
pub(crate) fn digest_of(path: &Path, mut hasher: Hasher) -> Result<Digest, Problem> {
    files::open(path)
        .and_then(|mut file| hasher.read_all(&mut file))
        .map_err(file_error("read", path))?;
    Ok(hasher.finish())
}

/// Runs blocking work on a worker thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, BoxError> {
    match spawn_blocking(work).await {
        Ok(outcome) => Ok(outcome?),
        Err(error) => {
            let problem = Problem::new("internal/thread", "cannot check the downloaded file");
            Err(problem.source(error).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    async fn a_fault_in_a_worker_is_an_error_here() {
        let work = || -> Result<(), Problem> { panic!("no such folder in the cabinet") };
        let error = blocking(work).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot check the downloaded file");
        let cause = std::error::Error::source(error.as_ref()).unwrap();
        assert!(cause.to_string().contains("panicked"), "{cause}");
    }
}
