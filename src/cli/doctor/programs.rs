//! Checks the programs that single commands require. They may be missing: other commands work
//! without them.

use std::env;
use std::path::Path;

use wincimg_inspect::wine::WineInstallation;

use super::Check;

const KIND: &str = "program";

pub(super) fn check() -> Vec<Check> {
    let path = env::var_os("PATH").unwrap_or_default();
    let kubectl = env::split_paths(&path)
        .map(|folder| folder.join("kubectl"))
        .find(|file| file.is_file());
    vec![wine(), self::kubectl(kubectl.as_deref())]
}

/// wine, which `wincimg image try` runs programs with.
fn wine() -> Check {
    match WineInstallation::find() {
        Ok(found) => Check::ok(KIND, "wine", format!("found {}", found.loader.display())),
        Err(error) => {
            let how = "to run images with `wincimg image try`: apt-get install wine64";
            Check::skipped(KIND, "wine", format!("{error}; {how}"))
        }
    }
}

/// kubectl, for which plans and fixes have commands; clusters are read without it.
fn kubectl(found: Option<&Path>) -> Check {
    match found {
        Some(file) => Check::ok(KIND, "kubectl", format!("found {}", file.display())),
        None => {
            let why = "not found; only the commands of a plan require it";
            Check::skipped(KIND, "kubectl", why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_no_problem() {
        let found = kubectl(Some(Path::new("/usr/bin/kubectl")));
        assert_eq!(found.finding, "found /usr/bin/kubectl");
        assert!(!kubectl(None).is_problem());
        assert!(!wine().is_problem());
    }
}
