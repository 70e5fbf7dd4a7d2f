//! Digests of files.

use wincimg_common::digest::Algorithm;
use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::super::process::Process;

/// Parses the name of a digest algorithm.
pub(in super::super) fn algorithm(name: &str) -> Result<Algorithm> {
    Algorithm::from_name(&name.to_ascii_lowercase())
        .ok_or_else(|| ScriptError::unclear(format!("unsupported digest {name:?}")))
}

/// Resolves a file to hash, which has to exist.
pub(in super::super) fn hash_file(machine: &Process<'_>, file: &str) -> Result<ImagePath> {
    let path = machine.path(file)?;
    if !machine.has_file(&path)? {
        return error::fails(format!("{path} is not a file"));
    }
    Ok(path)
}

/// Normalizes a digest to lower-case hexadecimal.
pub(in super::super) fn digest(text: &str, algorithm: Algorithm) -> Result<String> {
    let length = match algorithm {
        Algorithm::Md5 => 32,
        Algorithm::Sha1 => 40,
        Algorithm::Sha256 => 64,
        Algorithm::Sha384 => 96,
        Algorithm::Sha512 => 128,
    };
    if text.len() == length && text.chars().all(|c| c.is_ascii_hexdigit()) {
        Ok(text.to_ascii_lowercase())
    } else {
        error::fails(format!("{text:?} is not a valid digest"))
    }
}

/// Digest that `find` or `findstr` searches in the output of `certutil -hashfile`.
pub(in super::super) fn find_digest(words: &[String], algorithm: Algorithm) -> Option<String> {
    let mut text = None;
    let mut ignores_case = false;
    for word in words {
        let lower = word.to_ascii_lowercase();
        if lower == "/i" {
            ignores_case = true;
        } else if let Some(literal) = lower.strip_prefix("/c:") {
            text = Some(literal.to_owned());
        } else if lower.starts_with('/') || text.is_some() {
            return None;
        } else {
            text = Some(word.clone());
        }
    }
    // certutil prints lower case.
    let text = text.filter(|text| ignores_case || *text == text.to_ascii_lowercase())?;
    digest(&text, algorithm).ok()
}
