//! `xcopy` and `robocopy`, as far as they copy a folder with everything in it, or files.

use wincimg_windows::path::ImagePath;

use super::super::image::{Action, Later, Seen};
use super::super::machine::{Fitting, Machine, Now, Paths, Wildcards, child, is_within, last_name};
use super::super::trouble::Trouble;

/// Options of `xcopy` that do not change which files are there afterwards.
const OF_XCOPY: [&str; 12] = [
    "/e", "/s", "/i", "/y", "/q", "/c", "/h", "/k", "/r", "/f", "/v", "/j",
];

pub(super) fn xcopy(machine: &mut Machine<'_>, words: &[String]) -> Result<i32, Trouble> {
    let (switches, operands) = switches(words);
    if let Some(other) = switches
        .iter()
        .find(|switch| !OF_XCOPY.contains(&switch.as_str()))
    {
        return Err(Trouble::option(other));
    }
    let has = |name: &str| switches.iter().any(|switch| switch == name);
    let [from, to] = operands.as_slice() else {
        return Err(Trouble::unclear("it takes one source and one destination"));
    };
    if has("/s") && !has("/e") {
        return Err(Trouble::unclear("/s without /e leaves out empty folders"));
    }
    let target = machine.path(to)?;
    let is_folder = match machine.now(&target)? {
        Now::Folder => true,
        Now::Later => {
            machine.apply(Action::Unclear(target))?;
            return Ok(0);
        }
        Now::File => return Err(Trouble::unclear("the destination is a file")),
        Now::Absent => to.ends_with(['\\', '/']),
    };
    match machine.paths(from, Wildcards::Cmd)? {
        Paths::One(path) => match machine.now(&path)? {
            Now::Absent => Ok(4),
            Now::Later => machine.apply(Action::Unclear(target)).map(|()| 0),
            Now::File if is_folder => {
                let to = child(&target, last_name(&path))?;
                put(machine, path, to)
            }
            Now::File => Err(Trouble::unclear(
                "whether the destination is a file or a folder it would ask, and nobody answers",
            )),
            Now::Folder => {
                if !is_folder && !has("/i") {
                    return Err(Trouble::unclear(
                        "without /i it would ask whether the destination is a folder",
                    ));
                }
                if has("/e") {
                    return put(machine, path, target);
                }
                files_into(machine, &path, "*", &target)
            }
        },
        Paths::Pattern { folder, pattern } => {
            if !is_folder && !has("/i") {
                return Err(Trouble::unclear(
                    "without /i it would ask whether the destination is a folder",
                ));
            }
            match (has("/e"), pattern.as_str()) {
                (true, "*" | "*.*") => put(machine, folder, target),
                (true, _) => Err(Trouble::unclear("wildcards with /e are not understood")),
                (false, pattern) => files_into(machine, &folder, pattern, &target),
            }
        }
    }
}

/// Options of `robocopy` that say how it tries and what it prints.
const IDLE: [&str; 18] = [
    "/nfl", "/ndl", "/njh", "/njs", "/np", "/nc", "/ns", "/v", "/mt", "/z", "/zb", "/b", "/r",
    "/w", "/tee", "/ts", "/fp", "/eta",
];

pub(super) fn robocopy(machine: &mut Machine<'_>, words: &[String]) -> Result<i32, Trouble> {
    let (switches, operands) = switches(words);
    let is_idle = |switch: &str| {
        let name = switch.split(':').next().unwrap_or_default();
        IDLE.contains(&name) || matches!(switch, "/e" | "/copy:dat" | "/dcopy:dat" | "/dcopy:da")
    };
    if let Some(other) = switches.iter().find(|switch| !is_idle(switch)) {
        return Err(Trouble::option(other));
    }
    let [from, to] = operands.as_slice() else {
        return Err(Trouble::unclear("it takes one source and one destination"));
    };
    let (from, to) = (machine.path(from)?, machine.path(to)?);
    match machine.now(&from)? {
        Now::Absent | Now::File => {
            return Ok(machine.fails(16, format!("there is no folder {from}")));
        }
        Now::Later => {
            machine.apply(Action::Unclear(to))?;
            return Ok(1);
        }
        Now::Folder => {}
    }
    let has_anything = match machine.image.names(&from) {
        Seen::Present(names) => !names.is_empty(),
        Seen::Later(Later) => true,
        Seen::Absent | Seen::Unknown => {
            return Err(Trouble::unknown(format!("what {from} holds is not known")));
        }
    };
    if switches.iter().any(|switch| switch == "/e") {
        put(machine, from, to)?;
    } else {
        files_into(machine, &from, "*", &to)?;
    }
    // What it copied makes its exit code 1 or more, which ends a line that does not see to it.
    Ok(i32::from(has_anything))
}

fn switches(words: &[String]) -> (Vec<String>, Vec<String>) {
    let (switches, operands): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| word.starts_with('/'));
    let mut found = Vec::new();
    for switch in switches {
        found.extend(
            switch[1..]
                .split('/')
                .map(|name| format!("/{}", name.to_ascii_lowercase())),
        );
    }
    (found, operands.into_iter().cloned().collect())
}

fn put(machine: &mut Machine<'_>, from: ImagePath, to: ImagePath) -> Result<i32, Trouble> {
    if is_within(&to, &from) {
        return Err(Trouble::unclear("a folder would be copied into itself"));
    }
    machine.apply(Action::Copy { from, to })?;
    Ok(0)
}

fn files_into(
    machine: &mut Machine<'_>,
    folder: &ImagePath,
    pattern: &str,
    target: &ImagePath,
) -> Result<i32, Trouble> {
    match machine.fitting(folder, pattern, Wildcards::Cmd)? {
        Fitting::Later => machine.apply(Action::Unclear(target.clone()))?,
        Fitting::Paths(paths) => {
            machine.apply(Action::MakeFolder(target.clone()))?;
            for from in paths {
                match machine.now(&from)? {
                    Now::File => {
                        let to = child(target, last_name(&from))?;
                        put(machine, from, to)?;
                    }
                    Now::Later => machine.apply(Action::Unclear(target.clone()))?,
                    Now::Folder | Now::Absent => {}
                }
            }
        }
    }
    Ok(0)
}
