//! `ADD` of a URL.

use wincimg_common::digest::{Digest, Hasher};
use wincimg_common::untrusted::public_url;
use wincimg_http::{download_url, name_in};
use wincimg_recipe::{DownloadRequest, FileSource, PlannedContent, PlannedDownload};

use super::Evaluation;
use super::copy::Draft;
use super::error::StepError;
use super::run::downloads::check;
use super::state::StageState;
use crate::instruction::{CopyInstruction, ParsedInstruction};

impl Evaluation<'_> {
    /// The reason if Windows runs an `ADD`, of URLs only: no digest pins one of them.
    pub(super) fn not_pinned_urls(
        &self,
        state: &StageState,
        copy: &CopyInstruction,
    ) -> Option<String> {
        let windows = self.inputs.windows.as_ref()?;
        state.place?;
        let is_plain = copy.is_add && !copy.has_flags && copy.documents.is_empty();
        let mut sources = copy.sources.iter();
        let url = sources.find(|source| windows.not_pinned.contains(*source))?;
        let is_sent = is_plain && copy.sources.iter().all(|source| is_url(source));
        is_sent.then(|| format!("no digest pins {}", public_url(url)))
    }

    /// Adds the file of a URL to the target, under the URL's file name if the target is a folder.
    pub(super) fn add_url(
        &mut self,
        draft: &mut Draft<'_>,
        text: &str,
        step: &ParsedInstruction,
        copy: &CopyInstruction,
    ) -> Result<(), StepError> {
        if !copy.is_add {
            return Err(format!("COPY does not support URLs: use ADD for {text}").into());
        }
        let place = text.split(['#', '?']).next().unwrap_or(text);
        let place = place.trim_end_matches('/');
        let has_scheme = text.starts_with("git@") || text.starts_with("git://");
        if has_scheme || place.strip_suffix(".git").is_some() {
            return Err(StepError::hinted(
                format!("{text} is a Git repository, which is unsupported"),
                "clone it beforehand, and COPY the folder",
            ));
        }
        let url = download_url(text)?;
        if copy.unpack == Some(true) {
            let problem = "--unpack supports only archives of the context";
            return Err(problem.to_owned().into());
        }
        let checksum = checksum(copy)?;
        let name = name_in(&url);
        let path = draft.file_target(name.as_deref().unwrap_or_default());
        let path = path
            .ok()
            .filter(|path| name.is_some() || draft.is_target(path))
            .ok_or_else(|| {
                let problem = format!("{text} has no file name that Windows supports");
                StepError::hinted(problem, "end the target with the file's name")
            })?;
        let mut download = PlannedDownload::at(text);
        if let Some(here) = self.inputs.downloads.get(text) {
            download.set_content(here.digest.clone(), here.size, here.content.clone());
        }
        if let Some(expected) = &checksum {
            check(&download, expected)?;
        }
        let want = DownloadRequest {
            digests: checksum.into_iter().collect(),
            name: path.name().to_owned(),
            follows: true,
            place: self.position(step),
        };
        want.add_to(&mut self.result.wants, text);
        let content = PlannedContent::File(FileSource::Download(Box::new(download)));
        Ok(draft.insert(path, content)?)
    }
}

/// Digest of `--checksum`, which requires one URL.
pub(super) fn checksum(copy: &CopyInstruction) -> Result<Option<Digest>, String> {
    let Some(text) = &copy.checksum else {
        return Ok(None);
    };
    if copy.sources.len() + copy.documents.len() > 1 || !copy.sources.iter().all(|it| is_url(it)) {
        return Err("--checksum requires exactly one URL".to_owned());
    }
    let digest: Option<Digest> = text.parse().ok();
    let is_strong =
        |digest: &Digest| digest.algorithm() != "sha1" && Hasher::matching(digest).is_some();
    digest.filter(is_strong).map(Some).ok_or_else(|| {
        format!(
            "invalid checksum {text:?}: expected sha256:, sha384: or sha512: and hexadecimal digits"
        )
    })
}

/// Returns true if a source is a URL.
pub(super) fn is_url(source: &str) -> bool {
    source.contains("://") || source.starts_with("git@")
}
