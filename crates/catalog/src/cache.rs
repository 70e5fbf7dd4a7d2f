//! Cache of the refreshed table of updates, on top of the embedded one.

use std::error::Error;
use std::io;
use std::path::Path;

use reqwest::Url;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::files::{self, FolderLock, LARGEST_TEXT};
use wincimg_common::progress::Progress;
use wincimg_common::untrusted::QuotedText;
use wincimg_http::{AddressPolicy, Exchange, HttpClient, HttpError, file_error};
use wincimg_windows::update::Updates;

use super::client::PAGE_LIMIT;
use super::releaseinfo::{ReleaseInfo, read_release_info};

/// Error of a refresh; the hint names flags that every command with `--refresh` has.
fn not_refreshed(error: HttpError) -> Problem {
    let hint = matches!(error, HttpError::Unreachable { .. }).then_some(
        "check the network and HTTPS_PROXY, pass a copy of the page (URL or file) with \
         --release-info, or go on with the table as it is, without --refresh",
    );
    Problem::from_diagnosed(error).hint_if(hint)
}

/// Error of a page from which no table can be made.
fn invalid_page(problem: String, error: impl Into<Box<dyn Error + Send + Sync>>) -> Problem {
    Problem::new("updates/table", problem)
        .hint("the table is unchanged: the same command without --refresh uses it")
        .source(error)
}

/// Loads the embedded table and the additions of an earlier refresh.
pub fn load_updates(path: &Path) -> Result<Updates, BoxError> {
    let embedded = Updates::embedded();
    let cached = load_table(path, "updates", Updates::parse)?;
    Ok(match cached {
        Some(cached) => embedded.with(cached.all().iter().copied()),
        None => embedded.clone(),
    })
}

/// Loads the table that an earlier run kept, if there is one.
pub(super) fn load_table<T, E: Into<Box<dyn Error + Send + Sync>>>(
    path: &Path,
    of: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, BoxError> {
    let text = match files::read_text(path, LARGEST_TEXT) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error("read", path)(error).into()),
    };
    parse(&text).map(Some).map_err(|error| {
        let problem = format!("cannot read {} as a table of {of}", path.display());
        Problem::new("updates/table", problem).source(error).into()
    })
}

/// Locks the folder of a table, until the result is dropped: a change of what was read must not lose
/// another one's.
pub(super) fn lock_table(
    path: &Path,
    progress: &dyn Progress,
) -> Result<Option<FolderLock>, Problem> {
    let folder = files::folder_of(path);
    files::create_private_folder(folder).map_err(file_error("write", path))?;
    Ok(files::lock_folder(folder, progress))
}

/// Keeps a table for later runs; the caller holds the lock.
pub(super) fn store_table(path: &Path, table: &str) -> Result<(), Problem> {
    files::write(path, table.as_bytes()).map_err(file_error("write", path))
}

/// Reads the page of releases from its address or from a file, and replaces the cached table.
pub async fn refresh_updates(
    http: &HttpClient,
    page: &str,
    path: &Path,
) -> Result<ReleaseInfo, BoxError> {
    let text = match page.parse::<Url>() {
        Ok(url) if matches!(url.scheme(), "http" | "https") => {
            let mut exchange = Exchange::get("list the releases", url);
            exchange.addresses = AddressPolicy::ThisMachineToo;
            let read = http.retry(|| http.page(&exchange, PAGE_LIMIT)).await;
            read.map_err(not_refreshed)?
        }
        Ok(_) if page.contains("://") => {
            let problem = format!(
                "invalid page {}: expected https://… or a file",
                QuotedText(page)
            );
            return Err(Problem::request("usage/address", problem).into());
        }
        _ => {
            let path = Path::new(page);
            let bytes = files::read(path, PAGE_LIMIT).map_err(file_error("read", path))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    let _held = lock_table(path, http.progress())?;
    // The rows of an earlier refresh are kept, unless the cache is damaged.
    let known = load_updates(path).unwrap_or_else(|_| Updates::embedded().clone());
    let read = read_release_info(&text, &known).map_err(|error| {
        invalid_page(format!("cannot make a table of updates from {page}"), error)
    })?;
    let text = read.updates.to_string();
    Updates::parse(&text)
        .map_err(|error| invalid_page(format!("the table made from {page} is invalid"), error))?;
    store_table(path, &text)?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wincimg_common::diagnose::Diagnose;

    use super::*;

    #[test]
    fn without_a_cache_the_embedded_table_is_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let updates = load_updates(&folder.path().join("none")).unwrap();
        assert_eq!(&updates, Updates::embedded());
    }

    #[test]
    fn a_cache_adds_rows_and_takes_none_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("updates.tsv");
        let rows = "17763\t1158\tKB9999999\t2020-04-14\tB\n17763\t9999\tKB5555555\t2027-01-01\tB\n";
        fs::write(&path, rows).unwrap();
        let updates = load_updates(&path).unwrap();
        assert_eq!(updates.all().len(), Updates::embedded().all().len() + 1);
        assert_eq!(updates.newest(17763).unwrap().revision, 9999);
        assert!(updates.by_kb("KB9999999".parse().unwrap()).next().is_none());
    }

    #[test]
    fn a_damaged_cache_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("updates.tsv");
        fs::write(&path, "17763\t1158\n").unwrap();
        let error = load_updates(&path).unwrap_err().to_string();
        assert!(error.contains("updates.tsv as a table of updates"));
    }

    #[test]
    fn a_page_out_of_reach_is_answered_with_flags_that_every_refresh_has() {
        // Every client needs a crypto provider, even one that only fails.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let source = reqwest::Client::new().get("https://[").build().unwrap_err();
        let unreachable = not_refreshed(HttpError::Unreachable {
            host: "releases.lan".to_owned(),
            what: "list the releases".to_owned(),
            proxy: None,
            source,
        });
        let hint = unreachable.diagnosis().hint.unwrap();
        assert!(hint.contains("--release-info"), "{hint}");
        assert!(!hint.contains("--catalog"), "{hint}");
    }
}
