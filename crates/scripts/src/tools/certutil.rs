//! `certutil`, as far as it adds certificates to the machine's stores.

use super::super::image::Action;
use super::super::machine::Machine;
use super::super::trouble::Trouble;
use super::hashes;

pub(super) fn run(machine: &mut Machine<'_>, words: &[String]) -> Result<i32, Trouble> {
    let is = |word: &str, name: &str| {
        word.strip_prefix(['-', '/'])
            .is_some_and(|word| word.eq_ignore_ascii_case(name))
    };
    let operands: Vec<&String> = words
        .iter()
        .filter(|word| !is(word, "f") && !is(word, "addstore") && !is(word, "hashfile"))
        .collect();
    if let Some(option) = operands.iter().find(|word| word.starts_with(['-', '/'])) {
        return Err(Trouble::option(option));
    }
    if words.iter().any(|word| is(word, "hashfile")) {
        // Alone it only prints a digest.
        let [file, ..] = operands.as_slice() else {
            return Err(Trouble::unclear("it names no file"));
        };
        hashes::hash_file(machine, file)?;
        return Ok(0);
    }
    if !words.iter().any(|word| is(word, "addstore")) {
        return Err(Trouble::unclear(
            "of certutil only -addstore and -hashfile are understood",
        ));
    }
    let [store, file] = operands.as_slice() else {
        return Err(Trouble::unclear("it takes a store and a file"));
    };
    add(machine, store, file)
}

/// Adds a certificate to a store of the machine.
pub(in super::super) fn add(
    machine: &mut Machine<'_>,
    store: &str,
    file: &str,
) -> Result<i32, Trouble> {
    let store = match store.to_ascii_lowercase().as_str() {
        "root" => "ROOT",
        "ca" => "CA",
        "authroot" => "AuthRoot",
        "trustedpublisher" => "TrustedPublisher",
        "trustedpeople" => "TrustedPeople",
        _ => {
            return Err(Trouble::unclear(format!(
                "the store {store:?} is not understood"
            )));
        }
    };
    let file = machine.path(file)?;
    if !machine.has_file(&file)? {
        return Ok(machine.fails(1, format!("there is no file {file}")));
    }
    machine.apply(Action::Certificate {
        store: store.to_owned(),
        file,
    })?;
    Ok(0)
}
