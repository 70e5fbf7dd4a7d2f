//! Arguments that select a base image to read, and the known facts about it.

use wincimg_inspect::base::Extent;
use wincimg_inspect::facts_provider::{BaseFactsProvider, ResolvedFacts};
use wincimg_inspect::windows_images;
use wincimg_oci::document::Image;
use wincimg_windows::base_contents::BaseRequirements;

use crate::cli::prelude::*;

/// The base image that a command reads.
#[derive(Debug, Args)]
pub(super) struct BaseArgs {
    /// Image: a reference, oci:DIR[:TAG] or docker-archive:FILE[:NAME]
    #[arg(value_name = "IMAGE", value_parser = parse_location, add = complete::images())]
    pub(super) image: Location,
    /// Select the image of this platform from an index (repeatable) [default: all for Windows]
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Vec<PlatformFilter>,
    #[command(flatten)]
    connection: RegistryArgs,
}

/// Location of a base, and the provider of facts about it.
pub(super) struct BaseLookup {
    pub(super) place: Source,
    pub(super) images: Vec<Image>,
    pub(super) library: BaseFactsProvider,
}

impl BaseArgs {
    /// Finds the named Windows images. Call this on the runtime.
    pub(super) async fn find(&self, session: &Session) -> Result<BaseLookup> {
        let progress = display(session);
        let registry = self.connection.connect_with(Arc::clone(&progress))?;
        let place = Source::open(&self.image, &registry).await?;
        let images = windows_images(&place, self.image.tag_or_digest(), &self.platform).await?;
        let (with_windows, others): (Vec<Image>, Vec<Image>) =
            images.into_iter().partition(has_windows);
        if with_windows.is_empty() {
            let what = match others.first() {
                Some(other) if other.config().os == "windows" => {
                    "contains no Windows: it is for HostProcess containers".to_owned()
                }
                Some(other) => format!("is for {}, not for Windows", other.config().platform()),
                None => "has no image for Windows".to_owned(),
            };
            return Err(Failure::no(format!("{} {what}", self.image)));
        }
        Ok(BaseLookup {
            library: session.cache.facts_provider(&registry, &progress),
            place,
            images: with_windows,
        })
    }
}

/// Returns true if the bottom layer of the image is Windows.
fn has_windows(image: &Image) -> bool {
    let config = image.config();
    config.os == "windows" && config.os_version.is_some()
}

impl BaseLookup {
    /// The facts about an image; reads its layers if none are known.
    pub(super) async fn facts(&self, image: &Image, session: &Session) -> Result<ResolvedFacts> {
        let base = image.digest();
        let needs = BaseRequirements::default();
        if let Some(known) = self.library.find_cached(&self.place, base, &needs).await {
            return Ok(known);
        }
        session.note(format_args!(
            "reading the layers of {base} ({}), which is not indexed",
            BinaryBytes(size_of(image))
        ));
        let everything = Extent::Everything;
        let (known, _) = self.library.read(&self.place, image, &everything).await?;
        Ok(known)
    }

    /// Reports problems that did not stop the command.
    pub(super) fn warn(&self, session: &Session) {
        for warning in self.library.take_warnings() {
            session.warn(warning);
        }
    }
}

/// Compressed size of all layers.
pub(super) fn size_of(image: &Image) -> u64 {
    let layers = image.manifest().layers.iter();
    layers.fold(0, |sum, layer| sum.saturating_add(layer.size))
}
