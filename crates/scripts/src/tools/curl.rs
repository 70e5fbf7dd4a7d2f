//! `curl`: downloads.

use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result};
use super::super::image::{ImageAction, Lookup};
use super::super::process::{PathState, Process};
use super::options::{self, Argument, OptionSpec};

const KNOWN: OptionSpec = OptionSpec {
    letters: "LfsSkO#vg4",
    letters_with_value: "om",
    words: &[
        "location", "fail", "silent", "show-error", "insecure", "remote-name", "progress-bar",
        "ssl-no-revoke", "tlsv1.2", "create-dirs", "retry-connrefused", "retry-all-errors",
        "no-progress-meter", "verbose", "globoff", "ipv4", "http1.1",
    ],
    words_with_value: &[
        "output", "url", "retry", "retry-delay", "retry-max-time", "connect-timeout", "max-time",
        "proto", "proto-redir",
    ],
};

pub(super) fn run(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let mut urls = Vec::new();
    let mut targets = Vec::new();
    let mut follows = false;
    let mut makes_folders = false;
    for argument in options::read(words, &KNOWN)? {
        match argument {
            Argument::Operand(url) => urls.push(url),
            Argument::Option(name, value) => match (name.as_str(), value) {
                ("url", Some(url)) => urls.push(url),
                ("o" | "output", Some(file)) => targets.push(Some(file)),
                ("O" | "remote-name", _) => targets.push(None),
                ("L" | "location", _) => follows = true,
                ("create-dirs", _) => makes_folders = true,
                _ => {}
            },
        }
    }
    if urls.is_empty() || urls.len() != targets.len() {
        return error::unclear("it downloads to standard output: use -o FILE or -O");
    }
    for (url, target) in urls.iter().zip(targets) {
        let file = match target {
            Some(file) => file,
            None => remote_name(url)?,
        };
        // It makes the folder that the file is to be.
        let makes_target = makes_folders && file.ends_with(['\\', '/']);
        if file == "-" || url.contains(['{', '[', '#']) || makes_target {
            return error::unclear(format!("downloading {url} to {file} is not supported"));
        }
        let path = machine.file_path(&file)?;
        machine.ensure_parent(&path, makes_folders)?;
        download(machine, url, path, follows)?;
    }
    Ok(0)
}

/// Last part of the path of a URL.
fn remote_name(url: &str) -> Result<String> {
    let without_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = without_scheme.split(['?', '#']).next().unwrap_or_default();
    match path
        .split_once('/')
        .and_then(|(_, path)| path.rsplit('/').next())
    {
        Some(name) if !name.is_empty() && !name.contains('%') => Ok(name.to_owned()),
        _ => error::unclear(format!("{url} has no file name")),
    }
}

/// Downloads a file.
pub(in super::super) fn download(
    machine: &mut Process<'_>,
    url: &str,
    path: ImagePath,
    follows: bool,
) -> Result<()> {
    let url = match url.split_once("://") {
        Some((scheme, _)) if matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") => {
            url.to_owned()
        }
        Some(_) => return error::unclear(format!("{url} is not an HTTP URL")),
        None => return error::unclear(format!("{url} is not an absolute URL")),
    };
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return error::unclear(format!("{url:?} contains white space"));
    }
    if let Lookup::Unknown = machine.entry(&path) {
        // A file is replaced; a folder is an error.
    } else if machine.path_state(&path)? == PathState::Folder {
        return error::fails(format!("{path} is a folder"));
    }
    machine.apply(ImageAction::Download { url, path, follows })
}
