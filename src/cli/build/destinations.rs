//! Destinations of images: `--output` and a registry.

use std::path::Path;

use wincimg_engine::delivery::Destination;
use wincimg_inspect::bases::parse_location;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::store::{Location, LocationError};

use crate::cli::error::Failure;

/// Error for an invalid output. A text that is not even a reference was meant as a path, so only
/// the forms of paths help.
pub(in crate::cli) fn output_place(text: &str) -> Result<Location, String> {
    parse_location(text).map_err(|error| match error {
        LocationError::Reference(_) | LocationError::NoPath { .. } => {
            format!("invalid output {text:?}: expected oci:DIR or docker-archive:FILE")
        }
        LocationError::Meant { meant, .. } if meant.starts_with("did you mean") => {
            format!("invalid output {text:?}: {meant}")
        }
        LocationError::Meant { .. } => {
            let path = text.strip_prefix("tar:").unwrap_or(text);
            let is_file = Path::new(path).extension().is_some() && !Path::new(path).is_dir();
            let scheme = if is_file { "docker-archive" } else { "oci" };
            format!("invalid output {text:?}: expected {scheme}:{path}")
        }
    })
}

/// Rejects outputs that cannot be written, before any network access. `push` is the command for a
/// registry.
pub(in crate::cli) fn check_output(output: Option<&Location>, push: &str) -> Result<(), Failure> {
    match output {
        Some(Location::Registry(_)) => {
            let problem = "--output cannot write to a registry";
            Err(Failure::usage(problem).hint(format!(
                "write to oci:DIR or docker-archive:FILE, or push with {push}"
            )))
        }
        Some(
            tagged @ (Location::Layout { tag: Some(_), .. }
            | Location::Archive { name: Some(_), .. }),
        ) => Err(
            Failure::usage(format!("the output {tagged} contains a tag"))
                .hint("set the tag with --tag instead"),
        ),
        _ => Ok(()),
    }
}

/// Returns true if a folder is missing and the output creates it: a layout's folders, but not those of
/// an archive.
pub(super) fn is_created(folder: &Path, output: Option<&Location>) -> bool {
    let Some(Location::Layout { dir, .. }) = output else {
        return false;
    };
    let [folder, dir] = [folder, dir.as_path()].map(std::path::absolute);
    folder.is_ok_and(|folder| !folder.exists() && dir.is_ok_and(|dir| dir.starts_with(folder)))
}

/// The requested destinations; none without an option. The registry comes first, because pipelines
/// continue with its references. Images in an archive are named after a registry, as by Docker.
pub(in crate::cli) fn destinations(
    registry: Option<RegistryPrefix>,
    output: Option<&Location>,
    named_after: Option<&RegistryPrefix>,
) -> Vec<Destination> {
    let output = match output {
        Some(Location::Layout { dir, .. }) => Some(Destination::Layout(dir.clone())),
        Some(Location::Archive { file, .. }) => {
            Some(Destination::Archive(file.clone(), named_after.cloned()))
        }
        Some(Location::Registry(_)) | None => None,
    };
    let registry = registry.map(Destination::Registry);
    registry.into_iter().chain(output).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_without_a_path_is_answered_with_the_forms_of_outputs() {
        for text in [
            "oci:", "docker-archive:", "docker-archive:-", "oci:-:1", "Not One",
        ] {
            let problem = output_place(text).unwrap_err();
            let expected = ": expected oci:DIR or docker-archive:FILE";
            assert!(problem.ends_with(expected), "{problem}");
        }
    }
}
