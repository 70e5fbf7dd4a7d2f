//! Bases for Kubernetes' `HostProcess` containers: programs on the host, whose images contain no
//! Windows, so they have no version and run on any host.

use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_oci::document::{Document, Image, ManifestFormat, Platform};
use wincimg_oci::reference::{Reference, parse_reference, with_digest};
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::Source;

use super::BaseRegistry;

/// Name in a recipe of the base that wincimg creates.
pub const HOST_PROCESS: &str = "hostprocess";

/// Repository of Microsoft's base.
const PUBLISHED: &str = "oss/kubernetes/windows-host-process-containers-base-image";
const TAG: &str = "v1.0.0";

/// The bottom layer of Nano Server, the smallest Windows, has more than twice as many bytes.
const TOO_SMALL: u64 = 32 << 20;

/// Start of the note in the history of a large layer that this program wrote.
const NOTE: &str = "io.wincimg.";

const NAMES_VERSION: &str = "it names a version of Windows";

/// Creation time of the generated base. Both tar and Windows can represent it.
const CREATED: &str = "2000-01-01T00:00:00Z";

/// Returns true for a reference of Microsoft's base, or of a copy of it.
fn is_published(reference: &Reference) -> bool {
    let path = reference.repository().strip_suffix(PUBLISHED);
    path.is_some_and(|above| above.is_empty() || above.ends_with('/'))
}

/// Returns true if the name of an image refers to Microsoft's base for `HostProcess` containers.
pub fn is_published_host_process(name: &str) -> bool {
    parse_reference(name).is_ok_and(|reference| is_published(&reference))
}

/// Returns true if the name refers to a base for `HostProcess` containers.
pub fn is_host_process(name: &str) -> bool {
    name == HOST_PROCESS || is_published_host_process(name)
}

/// The base that a recipe names so, and its reference by tag and digest unless wincimg creates it;
/// none if it is another base.
pub async fn find_host_process(
    name: &str,
    bases: &BaseRegistry,
    registry: &RegistryClient,
) -> Result<Option<(Option<Reference>, Image)>, BoxError> {
    if name == HOST_PROCESS {
        let own = without_layers();
        let own = own.map_err(|error| Problem::from_error("base/document", error))?;
        return Ok(Some((None, own)));
    }
    let named = parse_reference(name).ok().filter(is_published);
    let (Some(named), Some(start)) = (named, name.find(PUBLISHED)) else {
        return Ok(None);
    };
    let (path, version) = name.split_at(start + PUBLISHED.len());
    let repository = bases.repository(path)?.repository;
    let (host, path) = (repository.registry(), repository.repository());
    let tag = named.tag().filter(|_| !version.is_empty());
    let tag = tag.or(named.digest().is_none().then_some(TAG));
    let reference = Reference::new(host, path, tag, named.digest());
    let found = find_published_host_process(&reference, registry).await?;
    Ok(found.map(|(reference, image)| (Some(reference), image)))
}

/// Microsoft's base, with its reference by tag and digest; none if the reference is of another image.
pub async fn find_published_host_process(
    reference: &Reference,
    registry: &RegistryClient,
) -> Result<Option<(Reference, Image)>, BoxError> {
    if !is_published(reference) {
        return Ok(None);
    }
    let found = find_without_version(reference, registry).await?;
    let found = found.map_err(|problem| {
        let problem =
            format!("{reference} cannot be the base of HostProcess containers: {problem}");
        Problem::answer("base/no-host-process", problem).hint(format!(
            "base = {HOST_PROCESS:?} in a recipe requires no other image"
        ))
    })?;
    Ok(Some(found))
}

/// An image that is built on one of these bases, with its reference by tag and digest; none if it,
/// or another image of its index, has Windows inside.
pub async fn find_host_process_image(
    reference: &Reference,
    registry: &RegistryClient,
) -> Result<Option<(Reference, Image)>, BoxError> {
    let found = find_without_version(reference, registry).await?.ok();
    Ok(found.filter(|(_, image)| lacks_windows(image)))
}

/// An image for Windows without a version, with its reference by tag and digest, or the reason why
/// there is none.
async fn find_without_version(
    reference: &Reference,
    registry: &RegistryClient,
) -> Result<Result<(Reference, Image), &'static str>, BoxError> {
    let source = Source::Registry(registry.repository(reference));
    let tag = reference.tag();
    let image = match source.resolve(reference.digest().or(tag)).await? {
        Document::Manifest(manifest) => {
            if !source.is_image(&manifest).await? {
                return Ok(Err("it is not an image"));
            }
            source.image(*manifest).await?
        }
        Document::Index(index) => {
            let entries = index.manifests.iter();
            let entries: Vec<_> = entries.filter(|entry| entry.is_for_windows()).collect();
            let Some(entry) = entries.first() else {
                return Ok(Err("it has no image for Windows"));
            };
            let mut platforms = entries.iter().filter_map(|entry| entry.platform.as_ref());
            if platforms.any(|platform| has_version(platform.os_version.as_deref())) {
                return Ok(Err(NAMES_VERSION));
            }
            match source.document(entry).await? {
                Document::Manifest(manifest) => source.image(*manifest).await?,
                Document::Index(_) => return Ok(Err("its index contains another index")),
            }
        }
    };
    let config = image.config();
    if config.os != "windows" {
        return Ok(Err("it is not for Windows"));
    }
    if has_version(config.os_version.as_deref()) {
        return Ok(Err(NAMES_VERSION));
    }
    let (host, path) = (reference.registry(), reference.repository());
    Ok(Ok((with_digest(host, path, tag, image.digest()), image)))
}

fn has_version(os_version: Option<&str>) -> bool {
    os_version.is_some_and(|version| !version.is_empty())
}

/// Returns true if the bottom layer of an image without a version is not that of a Windows image: it
/// is too small, or this program wrote it.
fn lacks_windows(image: &Image) -> bool {
    let bottom = image.manifest().layers.first();
    let mut steps = image.config().history.iter();
    let step = steps.find(|step| !step.empty_layer);
    let note = step.and_then(|step| step.comment.as_deref());
    bottom.is_none_or(|layer| layer.size < TOO_SMALL)
        || note.is_some_and(|note| note.starts_with(NOTE))
}

/// An image without layers: its files are all that a `HostProcess` container requires.
fn without_layers() -> Result<Image, Problem> {
    let platform = Platform {
        os_version: None,
        ..Platform::windows("")
    };
    let image = Image::empty(ManifestFormat::Oci, platform)?;
    image.edit_config(|config| config.created = Some(CREATED.to_owned()))
}
