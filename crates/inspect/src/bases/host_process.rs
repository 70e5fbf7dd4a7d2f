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
    let source = Source::Registry(registry.repository(reference));
    let other = |problem: &str| {
        let problem =
            format!("{reference} cannot be the base of HostProcess containers: {problem}");
        Problem::answer("base/no-host-process", problem).hint(format!(
            "base = {HOST_PROCESS:?} in a recipe requires no other image"
        ))
    };
    let tag = reference.tag();
    let image = match source.resolve(reference.digest().or(tag)).await? {
        Document::Manifest(manifest) => {
            if !source.is_image(&manifest).await? {
                return Err(other("it is not an image").into());
            }
            source.image(*manifest).await?
        }
        Document::Index(index) => {
            let mut entries = index.manifests.iter();
            let windows = entries.find(|entry| entry.is_for_windows());
            let entry = windows.ok_or_else(|| other("it has no image for Windows"))?;
            match source.document(entry).await? {
                Document::Manifest(manifest) => source.image(*manifest).await?,
                Document::Index(_) => {
                    return Err(other("its index contains another index").into());
                }
            }
        }
    };
    if image.config().os != "windows" {
        return Err(other("it is not for Windows").into());
    }
    if image
        .config()
        .os_version
        .as_deref()
        .is_some_and(|it| !it.is_empty())
    {
        return Err(other("it names a version of Windows").into());
    }
    let (host, path) = (reference.registry(), reference.repository());
    Ok(Some((with_digest(host, path, tag, image.digest()), image)))
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
