//! `icacls`, as far as it grants.

use super::super::image::{Access, Action};
use super::super::machine::{Machine, Now};
use super::super::trouble::Trouble;

pub(super) fn run(machine: &mut Machine<'_>, words: &[String]) -> Result<i32, Trouble> {
    let Some((path, rest)) = words.split_first() else {
        return Err(Trouble::unclear("it names no file"));
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
            option if option.starts_with('/') => return Err(Trouble::option(word)),
            _ => match replaces {
                Some(replaces) => grants.push((word.clone(), replaces)),
                None => return Err(Trouble::unclear(format!("{word:?} is not understood"))),
            },
        }
    }
    if path.contains(['*', '?']) {
        return Err(Trouble::unclear("wildcards are not understood here"));
    }
    let path = machine.path(path)?;
    match machine.now(&path)? {
        Now::Absent => return Ok(2),
        Now::Folder | Now::File | Now::Later => {}
    }
    if grants.is_empty() {
        return Err(Trouble::unclear("it grants nothing to anyone"));
    }
    for (grant, replaces) in grants {
        let (account, rights) = grant
            .rsplit_once(':')
            .ok_or_else(|| Trouble::unclear(format!("{grant:?} does not say what is granted")))?;
        let is_right = |c: char| c.is_ascii_alphabetic() || "(),".contains(c);
        if account.is_empty() || rights.is_empty() || !rights.chars().all(is_right) {
            return Err(Trouble::unclear(format!(
                "the grant {grant:?} is not understood"
            )));
        }
        machine.apply(Action::Access(Access {
            path: path.clone(),
            account: account.to_owned(),
            rights: rights.to_ascii_uppercase(),
            replaces,
            each_inside,
        }))?;
    }
    Ok(0)
}
