//! Docker contexts: named daemons in the folder of Docker's CLI.
//!
//! `contexts/meta/ID/meta.json` has the daemon's address, `contexts/tls/ID/docker/*.pem` its TLS
//! files; ID is the SHA-256 of the context's name.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use wincimg_common::diagnose::{Problem, closest_match};
use wincimg_oci::document::sha256;

use super::address::Address;
use super::error::{no_context, unusable};
use super::settings::{ConfigFile, read_json};
use super::tls::{TlsFiles, TlsVerification};

/// The name that stands for no context.
pub(super) const DEFAULT: &str = "default";

/// Other programs write these files too, with `null` for empty values.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Meta {
    endpoints: Option<HashMap<String, Option<MetaEndpoint>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MetaEndpoint {
    host: Option<String>,
    #[serde(rename = "SkipTLSVerify")]
    skip_tls_verify: Option<bool>,
}

/// The context selected by `docker context use`, if any.
pub(super) fn current(folder: &Path) -> Result<Option<String>, Problem> {
    let chosen = ConfigFile::read(folder)?.current_context;
    Ok(chosen.filter(|name| !name.is_empty()))
}

/// Address and TLS files of a context's daemon.
pub(super) fn read(folder: &Path, name: &str) -> Result<(Address, Option<TlsFiles>), Problem> {
    let contexts = folder.join("contexts");
    let digest = sha256(name.as_bytes());
    let id = digest.digest();
    let file = contexts.join("meta").join(id).join("meta.json");
    let meta: Meta = read_json(&file)?.ok_or_else(|| {
        let nearest = nearest_name(&contexts, name);
        no_context(name, &contexts, nearest.as_deref())
    })?;
    let mut endpoints = meta.endpoints.unwrap_or_default();
    let endpoint = endpoints.remove("docker").flatten();
    let endpoint = endpoint.ok_or_else(|| unusable(&file, &"it names no endpoint \"docker\""))?;
    let Some(host) = endpoint.host.filter(|host| !host.is_empty()) else {
        return Ok((Address::platform_default(), None));
    };
    let tls = tls_files(
        &contexts.join("tls").join(id).join("docker"),
        endpoint.skip_tls_verify.unwrap_or_default(),
    );
    Address::read(&host, tls)
}

fn nearest_name(contexts: &Path, typed: &str) -> Option<String> {
    let folders = std::fs::read_dir(contexts.join("meta")).ok()?;
    let names: Vec<String> = folders
        .filter_map(|folder| {
            let file = folder.ok()?.path().join("meta.json");
            let named: Option<Value> = read_json(&file).ok()?;
            Some(named?["Name"].as_str()?.to_owned())
        })
        .collect();
    closest_match(typed, names.iter().map(String::as_str))
}

/// A context without certificates is not protected, unless it skips verification.
fn tls_files(folder: &Path, skip_verify: bool) -> Option<TlsFiles> {
    let files = TlsFiles::in_folder(folder, TlsVerification::Anyone);
    let trust = match (files.authority.is_file(), skip_verify) {
        (_, true) => TlsVerification::Anyone,
        (true, false) => TlsVerification::Authority,
        (false, false) if files.identity.is_some() => TlsVerification::System,
        (false, false) => return None,
    };
    Some(TlsFiles { trust, ..files })
}
