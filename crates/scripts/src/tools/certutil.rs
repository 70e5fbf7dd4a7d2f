//! `certutil`, and `certoc` of Nano Server: certificates in the machine's stores, and digests.

use wincimg_common::digest::Algorithm;
use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::super::image::ImageAction;
use super::super::process::Process;

pub(super) fn run(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let is = |word: &str, name: &str| {
        word.strip_prefix(['-', '/'])
            .is_some_and(|word| word.eq_ignore_ascii_case(name))
    };
    let operands: Vec<&String> = words
        .iter()
        .filter(|word| !is(word, "f") && !is(word, "addstore") && !is(word, "hashfile"))
        .collect();
    if let Some(option) = operands.iter().find(|word| word.starts_with(['-', '/'])) {
        return error::option(option);
    }
    if words.iter().any(|word| is(word, "hashfile")) {
        // Without a pipe it only prints a digest.
        let [file, ..] = operands.as_slice() else {
            return error::unclear("no file given");
        };
        hash_file(machine, file)?;
        return Ok(0);
    }
    if !words.iter().any(|word| is(word, "addstore")) {
        return error::unclear("only certutil -addstore and -hashfile are supported");
    }
    let [store, file] = operands.as_slice() else {
        return error::unclear("expected a store and a file");
    };
    add(machine, store, file)
}

/// Runs `certoc -addstore STORE FILE`.
pub(super) fn certoc(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    match words {
        [option, store, file] if option.eq_ignore_ascii_case("-addstore") => {
            add(machine, store, file)
        }
        _ => error::unclear("only certoc -addstore STORE FILE is supported"),
    }
}

/// Adds a certificate to a store of the machine.
pub(in super::super) fn add(machine: &mut Process<'_>, store: &str, file: &str) -> Result<i32> {
    let store = match store.to_ascii_lowercase().as_str() {
        "root" => "ROOT",
        "ca" => "CA",
        "authroot" => "AuthRoot",
        "trustedpublisher" => "TrustedPublisher",
        "trustedpeople" => "TrustedPeople",
        _ => return error::unclear(format!("unsupported store {store:?}")),
    };
    let file = machine.path(file)?;
    if !machine.has_file(&file)? {
        return Ok(machine.fail(1, format!("file {file} not found")));
    }
    machine.finish(ImageAction::Certificate {
        store: store.to_owned(),
        file,
    })
}

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
