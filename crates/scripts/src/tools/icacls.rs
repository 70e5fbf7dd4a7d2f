//! `icacls`: grants.

use super::super::error::ScriptError;
use super::super::image::{AccessGrant, ImageAction};
use super::super::process::{PathState, Process};

pub(super) fn run(machine: &mut Process<'_>, words: &[String]) -> Result<i32, ScriptError> {
    let Some((path, rest)) = words.split_first() else {
        return Err(ScriptError::unclear("no file given"));
    };
    if rest.is_empty() {
        return Ok(0);
    }
    let mut grants: Vec<(String, bool)> = Vec::new();
    let mut each_inside = false;
    let mut replaces = None;
    for word in rest {
        match word.to_ascii_lowercase().as_str() {
            "/grant" => replaces = Some(false),
            "/grant:r" => replaces = Some(true),
            "/t" => each_inside = true,
            "/q" | "/c" => {}
            option if option.starts_with('/') => return Err(ScriptError::option(word)),
            _ => match replaces {
                Some(replaces) => grants.push((word.clone(), replaces)),
                None => {
                    return Err(ScriptError::unclear(format!(
                        "unsupported argument {word:?}"
                    )));
                }
            },
        }
    }
    if path.contains(['*', '?']) {
        return Err(ScriptError::unclear("wildcards are not supported here"));
    }
    let path = machine.path(path)?;
    match machine.path_state(&path)? {
        PathState::Absent => return Ok(2),
        PathState::Folder | PathState::File | PathState::Later => {}
    }
    if grants.is_empty() {
        return Err(ScriptError::unclear("no grant given"));
    }
    for (grant, replaces) in grants {
        let (account, rights) = grant
            .rsplit_once(':')
            .ok_or_else(|| ScriptError::unclear(format!("{grant:?} has no permissions")))?;
        let is_right = |c: char| c.is_ascii_alphabetic() || "(),".contains(c);
        if account.is_empty() || rights.is_empty() || !rights.chars().all(is_right) {
            return Err(ScriptError::unclear(format!("unsupported grant {grant:?}")));
        }
        machine.apply(ImageAction::Access(AccessGrant {
            path: path.clone(),
            account: account.to_owned(),
            rights: rights.to_ascii_uppercase(),
            replaces,
            each_inside,
        }))?;
    }
    Ok(0)
}
