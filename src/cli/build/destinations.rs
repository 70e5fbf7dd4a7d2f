//! Destinations of images: `--output` and a registry.

use wincimg_engine::definition::DOCKERFILES;
use wincimg_engine::delivery::Destination;
use wincimg_oci::store::LocationError;

use super::all::RECIPE;
use crate::cli::output::check_file;
use crate::cli::prelude::*;

/// Error for an invalid output. A text that is not even a reference was meant as a path, so only
/// the forms of paths help.
pub(in crate::cli) fn output_place(text: &str) -> Result<Location, String> {
    let shown = QuotedText(text);
    if let Some(kind) = buildx_field(text, "type") {
        let expected = match (kind, buildx_field(text, "dest")) {
            ("docker", Some(file)) => format!("docker-archive:{file}"),
            ("docker", None) => "docker-archive:FILE".to_owned(),
            ("oci", _) => "oci:DIR".to_owned(),
            ("registry", _) => "--push in its place".to_owned(),
            ("image", _) if buildx_field(text, "push") == Some("true") => {
                "--push in its place".to_owned()
            }
            ("image", _) => "neither --output nor --push, which writes oci:./NAME-TAG".to_owned(),
            ("tar" | "local", _) => {
                "oci:DIR, from which `wincimg image export` writes the files".to_owned()
            }
            _ => "oci:DIR or docker-archive:FILE".to_owned(),
        };
        return Err(format!("invalid output {shown}: expected {expected}"));
    }
    parse_location(text).map_err(|error| match error {
        LocationError::Reference(_) | LocationError::NoPath { .. } => {
            format!("invalid output {shown}: expected oci:DIR or docker-archive:FILE")
        }
        LocationError::Meant { meant, .. } if meant.starts_with("did you mean") => {
            format!("invalid output {shown}: {meant}")
        }
        LocationError::Meant { .. } => {
            let path = text.strip_prefix("tar:").unwrap_or(text);
            let is_file = Path::new(path).extension().is_some() && !Path::new(path).is_dir();
            let scheme = if is_file { "docker-archive" } else { "oci" };
            format!("invalid output {shown}: expected {scheme}:{path}")
        }
    })
}

/// Parses an image whose layers are reused.
pub(super) fn cached_image(text: &str) -> Result<Location, LocationError> {
    if buildx_field(text, "type").is_none() {
        return parse_location(text);
    }
    let image = buildx_field(text, "ref").unwrap_or("the name of a pushed image");
    Err(LocationError::Meant {
        text: text.to_owned(),
        is: "is a cache of buildx",
        meant: format!("write {image}"),
    })
}

/// A field of buildx's `type=TYPE,NAME=VALUE`.
fn buildx_field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut fields = text.split(',').filter(|_| text.starts_with("type="));
    fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
}

/// Rejects outputs that cannot be written, before any network access. `push` is the command for a
/// registry.
pub(in crate::cli) fn check_output(output: Option<&Location>, push: &str) -> Result<()> {
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
        Some(Location::Archive { file, .. }) => check_file(file),
        _ => Ok(()),
    }
}

/// Rejects an archive whose images others cannot join: it is always written anew.
pub(in crate::cli) fn check_joined(target: &Location) -> Result<()> {
    match target {
        Location::Archive { file, .. } if file.is_file() => {
            let problem = format!("--join cannot add to {}, which exists", file.display());
            Err(Failure::usage(problem)
                .hint("join the images in oci:DIR, and copy that to an archive"))
        }
        _ => Ok(()),
    }
}

/// Rejects an output that would replace what is built: IMAGE, a file in it, or the Dockerfile.
pub(super) fn check_inputs<'p>(
    outputs: impl Iterator<Item = &'p PathBuf>,
    image: &Path,
    dockerfile: Option<&Path>,
) -> Result<()> {
    let names = DOCKERFILES.iter().chain(&[RECIPE]);
    let inputs = names.map(|name| image.join(name)).chain([image.to_owned()]);
    let inputs = inputs.chain(dockerfile.map(Path::to_owned));
    let inputs: Vec<PathBuf> = inputs.filter_map(|path| path.canonicalize().ok()).collect();
    for output in outputs {
        if output.canonicalize().is_ok_and(|it| inputs.contains(&it)) {
            let problem = format!(
                "the output {} would replace what is built",
                output.display()
            );
            return Err(Failure::usage(problem).hint("name another file"));
        }
    }
    Ok(())
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

    #[test]
    fn forms_of_buildx_are_answered_with_those_of_this_program() {
        for (text, expected) in [
            ("type=docker,dest=x.tar", "docker-archive:x.tar"),
            ("type=oci,dest=x.tar,tar=true", "oci:DIR"),
            ("type=registry", "--push in its place"),
            ("type=image,name=a,push=true", "--push in its place"),
            ("type=image,push=false", "neither --output nor --push"),
            ("type=local,dest=out", "wincimg image export"),
        ] {
            let problem = output_place(text).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
        let problem = cached_image("type=registry,ref=repo.lan/x:1,mode=max").unwrap_err();
        let problem = problem.to_string();
        assert!(problem.ends_with("write repo.lan/x:1"), "{problem}");
        assert!(cached_image("repo.lan/x:1").is_ok());
    }
}
