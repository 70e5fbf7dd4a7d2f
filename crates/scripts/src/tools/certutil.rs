//! `certutil`, and `certoc` of Nano Server: certificates in the machine's stores, and digests.

use super::super::error::{self, Result};
use super::super::image::ImageAction;
use super::super::process::Process;
use super::hashes;

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
        hashes::hash_file(machine, file)?;
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
