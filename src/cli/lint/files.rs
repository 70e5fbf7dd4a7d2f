//! Dockerfiles by their names.

use std::path::Path;

use crate::cli::named_files::FileKind;

/// The files that lint looks for in folders.
pub(super) const DOCKERFILES: FileKind = FileKind {
    name: "Dockerfile",
    hint: "a folder is searched for Dockerfile, Dockerfile.* and *.Dockerfile",
    matches: is_dockerfile,
};

/// Returns true for the names that Docker's tools use.
fn is_dockerfile(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    ["dockerfile", "containerfile"].iter().any(|own| {
        let rest = name.strip_prefix(own);
        let is_named =
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']));
        let is_other = path.extension().is_some_and(|extension| {
            ["dockerignore", "md"]
                .iter()
                .any(|other| extension.eq_ignore_ascii_case(other))
        });
        (is_named && !is_other) || name.ends_with(&format!(".{own}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_dockerfiles_are_known() {
        for name in [
            "Dockerfile", "Dockerfile.windows", "app.Dockerfile", "Containerfile",
            "dockerfile-nano",
        ] {
            assert!(is_dockerfile(Path::new(name)), "{name}");
        }
        for name in [
            "Dockerfile.dockerignore",
            "Dockerfiles",
            "README.md",
            "Dockerfile.md",
        ] {
            assert!(!is_dockerfile(Path::new(name)), "{name}");
        }
    }
}
