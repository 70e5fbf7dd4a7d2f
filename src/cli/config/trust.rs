//! What a `wincimg.toml` in a folder may set. It may come from a checkout of somebody else.

use std::path::{Component, Path, PathBuf};

use clap::Arg;

use super::FILE_NAME;

/// Flags that affect security: credentials, trust, programs that run, deletion, and the cache, whose
/// contents are trusted.
const LOWER_SECURITY: [&str; 13] = [
    "insecure-registry", "token-server", "plain-credentials", "ca-file", "certs-dir",
    "registry-config", "docker-host", "builder", "kubeconfig", "cache-dir", "network", "yes",
    "unsafe",
];

/// Words of a value's name that stand for a path.
const PATHS: [&str; 5] = ["DIR", "DOCKERFILE", "FILE", "PLACE", "PROJECT"];

/// Returns true if a file in `folder` may not set a flag to these values.
pub(super) fn is_refused(arg: &Arg, values: &[String], folder: &Path) -> bool {
    let flag = arg.get_long().unwrap_or_default();
    let names = arg.get_value_names().unwrap_or_default();
    let is_path = names
        .iter()
        .any(|name| PATHS.iter().any(|word| name.contains(word)))
        || values.iter().any(|value| is_image_on_disk(value));
    let reads_environment = |value: &String| flag == "build-arg" && !value.contains('=');
    LOWER_SECURITY.contains(&flag)
        || values.iter().any(reads_environment)
        || is_path && {
            let here = std::env::current_dir().unwrap_or_default();
            let folder = here.join(folder);
            values.iter().any(|value| leads_out(value, &folder, &here))
        }
}

/// Returns true for an image of a layout or archive, also one with a name: `build=oci:DIR`.
fn is_image_on_disk(value: &str) -> bool {
    let mut parts = value.split('=');
    parts.any(|part| part.starts_with("oci:") || part.starts_with("docker-archive:"))
}

/// Returns true if a value such as `DIR`, `NAME=DIR` or `oci:DIR` leads out of a folder from the
/// working directory.
fn leads_out(value: &str, folder: &Path, here: &Path) -> bool {
    if value.contains("://") && !value.starts_with("file:") {
        return false;
    }
    let behind = value.match_indices(['=', ':']).map(|(at, _)| at + 1);
    std::iter::once(0)
        .chain(behind)
        .any(|at| is_outside(&here.join(&value[at..]), folder))
}

/// Returns true if a path is outside a folder, or a link leads out of it.
fn is_outside(path: &Path, folder: &Path) -> bool {
    let mut above = path.ancestors();
    let Some(existing) = above.find(|above| above.symlink_metadata().is_ok()) else {
        return true;
    };
    let mut rest = path.strip_prefix(existing).unwrap_or(path).components();
    if rest.any(|part| part == Component::ParentDir) {
        return true;
    }
    match (existing.canonicalize(), folder.canonicalize()) {
        (Ok(real), Ok(folder)) => !real.starts_with(folder),
        _ => true,
    }
}

/// The file in this folder, or in the nearest parent that has one. A parent may be a folder where
/// everybody writes, such as `/tmp`: the file of another user is not taken.
pub(super) fn nearest_file() -> Option<PathBuf> {
    let folder = std::env::current_dir().ok()?;
    let mut files = folder.ancestors().map(|above| above.join(FILE_NAME));
    let path = files.find(|file| file.is_file() && !is_of_another(file, &folder))?;
    let is_here = path.parent() == Some(&folder);
    Some(if is_here { FILE_NAME.into() } else { path })
}

/// Returns true if a file's owner is neither this user, nor root, nor the owner of the working
/// directory: a container often runs as root in somebody's checkout.
#[cfg(unix)]
fn is_of_another(file: &Path, folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let owner = |path: &Path| path.metadata().map(|found| found.uid());
    let Ok(of_file) = owner(file) else {
        return true;
    };
    let user = rustix::process::geteuid().as_raw();
    ![0, user].contains(&of_file) && owner(folder).ok() != Some(of_file)
}

/// Folders that everybody can write to are rare there.
#[cfg(not(unix))]
fn is_of_another(_file: &Path, _folder: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_path_stays_in_the_folder_of_the_file() {
        let outside = tempfile::tempdir().unwrap();
        let made = tempfile::tempdir().unwrap();
        let folder = made.path();
        fs::create_dir(folder.join("app")).unwrap();
        let path = |below: &str| folder.join(below).display().to_string();
        let other = outside.path().display().to_string();
        for value in [
            path(""),
            path("app/../web"),
            "new/image".to_owned(),
            format!("oci:{}", path("new/image")),
            format!("web={}", path("app")),
            "https://feed.example/v2".to_owned(),
        ] {
            assert!(!leads_out(&value, folder, folder), "{value}");
        }
        for value in [
            other.clone(),
            format!("oci:{other}"),
            format!("web={other}"),
            format!("html:{other}/report.html"),
            format!("file://{other}"),
            path("app/../.."),
            path("new/../.."),
        ] {
            assert!(leads_out(&value, folder, folder), "{value}");
        }
        let image = Arg::new("cache-from")
            .long("cache-from")
            .value_name("IMAGE");
        let here = std::env::current_dir().unwrap();
        for (value, expected) in [
            (format!("oci:{other}"), true),
            (format!("docker-archive:{other}/a.tar"), true),
            ("oci:new/image".to_owned(), false),
            ("ghcr.io/acme/app:1".to_owned(), false),
        ] {
            let refused = is_refused(&image, std::slice::from_ref(&value), &here);
            assert_eq!(refused, expected, "{value}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outside.path(), folder.join("link")).unwrap();
            std::os::unix::fs::symlink(outside.path().join("new"), folder.join("dangling"))
                .unwrap();
            for value in ["link", "link/web", "dangling"] {
                assert!(leads_out(value, folder, folder), "{value}");
            }
        }
    }
}
