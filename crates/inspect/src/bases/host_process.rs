//! Bases for Kubernetes' `HostProcess` containers: programs on the host, whose images contain no
//! Windows, so they have no version and run on any host.

use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_oci::document::{Document, Image, ManifestFormat, Platform};
use wincimg_oci::reference::{Reference, with_digest};
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

/// The path and the tag of Microsoft's base, if the name refers to it.
fn published(name: &str) -> Option<(&str, &str)> {
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, tag),
        _ => (name, TAG),
    };
    let is_published = path == PUBLISHED || path.ends_with(&format!("/{PUBLISHED}"));
    is_published.then_some((path, tag))
}

/// Returns true if the name refers to a base for `HostProcess` containers.
pub fn is_host_process(name: &str) -> bool {
    name == HOST_PROCESS || published(name).is_some()
}

/// The base of that name, and its reference by tag and digest unless wincimg creates it; none if it
/// is another base.
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
    let Some((path, tag)) = published(name) else {
        return Ok(None);
    };
    let repository = bases.repository(path)?.repository;
    let source = Source::Registry(registry.repository(&repository));
    let other = |problem: &str| {
        let problem = format!("{name} cannot be the base of HostProcess containers: {problem}");
        Problem::answer("base/no-host-process", problem)
            .hint(format!("base = {HOST_PROCESS:?} requires no other image"))
    };
    let image = match source.resolve(Some(tag)).await? {
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
    let (host, name) = (repository.registry(), repository.repository());
    let reference = with_digest(host, name, tag, image.digest());
    Ok(Some((Some(reference), image)))
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
