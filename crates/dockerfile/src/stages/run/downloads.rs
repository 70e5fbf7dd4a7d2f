//! Downloads of a line, and its digest checks.
//!
//! A missing download is an existing file with unknown bytes. A check of its digest pins it, and is
//! made after the download.

use std::io::{self, Read};

use wincimg_common::digest::{Algorithm, Digest, Hasher};
use wincimg_http::download_url;
use wincimg_layer::ContentSource;
use wincimg_recipe::{DownloadRequest, FileSource, PlannedContent, PlannedDownload};
use wincimg_registry::Presence;
use wincimg_scripts::ScriptError;
use wincimg_windows::path::ImagePath;

use super::{Result, RunState};

/// Maximum size of a file in an archive for a digest check.
const LARGEST_MEMBER: u64 = 256 << 20;

impl RunState<'_> {
    fn request(&mut self, url: &str, path: &ImagePath, follows: bool, digests: Vec<Digest>) {
        let want = DownloadRequest {
            digests,
            name: path.name().to_owned(),
            follows,
            place: self.place.clone(),
        };
        want.add_to(self.wants, url);
    }

    /// Downloads a file to a path.
    pub(super) fn download(&mut self, url: &str, path: ImagePath, follows: bool) -> Result<()> {
        download_url(url).map_err(ScriptError::unclear)?;
        self.check_writable(&path, false)?;
        let mut download = PlannedDownload::at(url);
        if let Some(here) = self.downloads.get(url) {
            download.set_content(here.digest.clone(), here.size, here.content.clone());
        }
        self.request(url, &path, follows, Vec::new());
        self.put(
            path,
            PlannedContent::File(FileSource::Download(Box::new(download))),
        )
    }

    /// Returns true if a file is a missing download.
    pub(super) fn is_pending_download(&self, path: &ImagePath) -> bool {
        self.downloaded(path)
            .is_some_and(|file| file.content.is_none())
    }

    fn downloaded(&self, path: &ImagePath) -> Option<&PlannedDownload> {
        match self.created_file(path)? {
            FileSource::Download(download) => Some(download),
            _ => None,
        }
    }

    /// Checks the digest of a file.
    pub(super) fn verify(
        &mut self,
        path: &ImagePath,
        algorithm: Algorithm,
        digest: &str,
    ) -> Result<()> {
        let expected = format!("{}:{digest}", algorithm.name());
        if let Some(download) = self.downloaded(path) {
            let is_strong = !matches!(algorithm, Algorithm::Md5 | Algorithm::Sha1);
            if let (true, Ok(digest)) = (is_strong, expected.parse::<Digest>()) {
                self.request(&download.url.clone(), path, true, vec![digest]);
            }
        }
        if self.is_pending_download(path) || self.tree.is_later(path) {
            return Ok(());
        }
        let found = self.digest(path, algorithm)?;
        if found == expected {
            return Ok(());
        }
        Err(ScriptError::fails(format!(
            "{path} has {found}, expected {expected}"
        )))
    }

    /// Digest of a file of the image.
    fn digest(&self, path: &ImagePath, algorithm: Algorithm) -> Result<String> {
        let unreadable = |error: io::Error| {
            ScriptError::unknown(format!("cannot read {path} for its digest: {error}"))
        };
        let is_asked_for = |known: &&Digest| known.algorithm() == algorithm.name();
        match self.tree.created_entry(path).map(|entry| &entry.content) {
            Some(PlannedContent::File(FileSource::Download(download)))
                if let Some(known) = download.digest.as_ref().filter(is_asked_for) =>
            {
                Ok(known.to_string())
            }
            Some(PlannedContent::File(source)) => {
                let source = ContentSource::from(source);
                let read = source.open(LARGEST_MEMBER);
                let read = read.and_then(|reader| digest_of(reader, algorithm));
                read.map_err(unreadable)
            }
            Some(_) => Err(ScriptError::fails(format!("{path} is not a file"))),
            None => match self.tree.base().content(path) {
                Ok(Presence::Present(bytes)) => {
                    digest_of(bytes.as_slice(), algorithm).map_err(unreadable)
                }
                Ok(Presence::Absent) => Err(ScriptError::fails(format!("{path} does not exist"))),
                Ok(Presence::Unknown) => Err(ScriptError::unknown(format!(
                    "the content of {path} in the base is unknown"
                ))),
                Err(error) => Err(error.into()),
            },
        }
    }
}

/// Digest as `sha256:…`.
fn digest_of(mut reader: impl Read, algorithm: Algorithm) -> io::Result<String> {
    let mut hasher = Hasher::new(algorithm);
    hasher.read_all(&mut reader)?;
    Ok(hasher.finish().to_string())
}

/// Checks a downloaded file against a digest of another algorithm.
pub(in crate::stages) fn check(file: &PlannedDownload, expected: &Digest) -> Result<(), String> {
    let (Some(content), Some(known)) = (&file.content, &file.digest) else {
        return Ok(());
    };
    let found = if known.algorithm() == expected.algorithm() {
        known.clone()
    } else {
        let mut hasher = Hasher::matching(expected).unwrap_or_default();
        let read = content
            .open()
            .and_then(|mut content| hasher.read_all(&mut content));
        read.map_err(|error| format!("cannot read the download of {}: {error}", file.url))?;
        hasher.finish()
    };
    if found == *expected {
        return Ok(());
    }
    Err(format!("{} has {found}, expected {expected}", file.url))
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_that_windows_makes() {
        for (algorithm, expected) in [
            (Algorithm::Md5, "md5:900150983cd24fb0d6963f7d28e17f72"),
            (
                Algorithm::Sha1,
                "sha1:a9993e364706816aba3e25717850c26c9cd0d89d",
            ),
            (
                Algorithm::Sha256,
                "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                Algorithm::Sha384,
                "sha384:cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
            ),
            (
                Algorithm::Sha512,
                "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
        ] {
            assert_eq!(digest_of(&b"abc"[..], algorithm).unwrap(), expected);
        }
    }
}
