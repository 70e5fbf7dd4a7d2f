//! `wincimg image base index`: indexes the contents of bases, so that later runs need not read their
//! layers.

use wincimg_inspect::base::Extent;
use wincimg_oci::document::{Descriptor, Image};

use super::base_args::{BaseArgs, BaseLookup, size_of};
use crate::cli::error::FAILED;
use crate::cli::prelude::*;

/// Index the files and registry keys of base images
///
/// Later builds on these bases use the index instead of reading the layers. With --push the index
/// is attached to the image in its registry, for all builds. `wincimg image mirror` does this by default.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image base index \\\n      \
    repo.mylan.k8s:9999/windows/servercore:ltsc2022 --push\n  \
    wincimg image base index oci:./servercore\n\n\
    Exit code 3: an index is neither pushed nor kept in the cache.")]
pub(super) struct Index {
    /// Attach the index to the image in its registry
    #[arg(long)]
    push: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    base: BaseArgs,
}

#[derive(Debug, Serialize)]
struct IndexedImage {
    digest: String,
    os_version: Option<String>,
    /// Compressed size of the layers in bytes.
    layers: u64,
    /// Size of the index in bytes.
    size: u64,
    pushed: bool,
    /// True if later commands on this machine find it.
    kept: bool,
    problems: Vec<String>,
}

impl Index {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        if self.push && !matches!(self.base.image, Location::Registry(_)) {
            let image = &self.base.image;
            let problem = format!("cannot push the index: {image} is not in a registry");
            return Err(
                Failure::usage(problem).hint("remove --push, or name the image in its registry")
            );
        }
        let indexed = registry_args::run(async {
            let found = self.base.find(session).await?;
            let mut indexed = Vec::new();
            for image in &found.images {
                let one = self.index(&found, image).await;
                found.warn(session);
                indexed.push(one?);
            }
            Ok(indexed)
        })?;
        let answer = || json!({ "images": indexed });
        let printed = self.format.print(answer, |out| {
            indexed
                .iter()
                .try_for_each(|one| write_text(&self.base.image, one, out))
        })?;
        let is_of_use = indexed.iter().all(|one| one.pushed || one.kept);
        Ok(if is_of_use {
            printed
        } else {
            CommandOutcome::Code(FAILED)
        })
    }

    async fn index(&self, found: &BaseLookup, image: &Image) -> Result<IndexedImage> {
        let everything = Extent::Everything;
        let read = found.library.read(&found.place, image, &everything).await;
        let (known, bytes) = read?;
        if let (true, Source::Registry(repository)) = (self.push, &found.place) {
            let manifest = image.manifest();
            let (media_type, digest) = (manifest.media_type(), image.digest().clone());
            let base = Descriptor::new(media_type, digest, manifest.size());
            let repository = repository.clone().for_push();
            found.library.push(&repository, &base, &bytes).await?;
        }
        let problems = known.facts.problems().iter();
        Ok(IndexedImage {
            digest: image.digest().to_string(),
            os_version: image.config().os_version.clone(),
            layers: size_of(image),
            size: bytes.len() as u64,
            pushed: self.push,
            kept: found.library.is_cached(image.digest()),
            problems: problems.map(ToString::to_string).collect(),
        })
    }
}

fn write_text(image: &Location, one: &IndexedImage, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", UntrustedText(image))?;
    let mut rows = Rows { out, width: 9 };
    rows.row("digest", &one.digest)?;
    rows.each("windows", &one.os_version)?;
    let (size, layers) = (BinaryBytes(one.size), BinaryBytes(one.layers));
    rows.row("size", format_args!("{size}, from {layers} of layers"))?;
    rows.each("problem", &one.problems)?;
    let place = match (one.pushed, one.kept) {
        (true, _) => "pushed",
        (false, true) => "kept",
        (false, false) => "not kept: the cache is disabled, too small or not writable",
    };
    writeln!(rows.out, "  {place}")
}
