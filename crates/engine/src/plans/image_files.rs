//! Files of other images: of `COPY --from=IMAGE` in Dockerfiles and `image` in recipes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_dockerfile::stages::{ImageCopy, Stages, local_image};
use wincimg_inspect::bases::NamedBase;
use wincimg_inspect::{ExtractedEntry, extract};
use wincimg_oci::document::Digest;
use wincimg_oci::reference::with_digest;
use wincimg_oci::store::Location;
use wincimg_recipe::Recipe;
use wincimg_windows::compat::HostBuild;

use super::{BuildRequest, PlannedBase, PlannedImage};
use crate::build::BuildContext;
use crate::downloads::DownloadSet;

/// Extracts files of images. Hosts with the same image share them.
pub(super) struct ImageExtractor<'a> {
    pub request: &'a BuildRequest,
    pub ctx: &'a BuildContext<'a>,
    /// Windows builds of the images' bases.
    builds: BTreeSet<u32>,
    extracted: HashMap<(Digest, BTreeSet<String>), BTreeMap<String, ExtractedEntry>>,
}

impl<'a> ImageExtractor<'a> {
    pub(super) fn new(
        request: &'a BuildRequest,
        ctx: &'a BuildContext<'a>,
        images: &[PlannedImage],
    ) -> Self {
        let versions = images.iter().filter_map(|image| image.base.os_version);
        Self {
            request,
            ctx,
            builds: versions.map(|version| version.build).collect(),
            extracted: HashMap::new(),
        }
    }

    /// The image of a name for each host, as a Dockerfile's bases are resolved.
    pub(super) async fn resolve(
        &self,
        name: &str,
        hosts: &[HostBuild],
    ) -> Result<Vec<PlannedBase>, BoxError> {
        let named = self.request.base_registry.parse_dockerfile_name(name)?;
        // The host decides on the Windows of other names.
        if matches!(named, NamedBase::Exact(_)) {
            self.check_windows(name, named.windows().map(|version| version.build))?;
        }
        let matched = self.request.matched;
        self.ctx.bases.by_name(&named, hosts, matched).await
    }

    /// Rejects the name of one Windows build for bases of several: all would get its files.
    pub(super) fn check_windows(&self, name: &str, build: Option<u32>) -> Result<(), Problem> {
        let Some(own) = build.filter(|_| self.builds.len() > 1) else {
            return Ok(());
        };
        let Some(other) = self.builds.iter().find(|build| **build != own) else {
            return Ok(());
        };
        let problem =
            format!("{name} is for build {own} of Windows, and one base has build {other}");
        Err(Problem::request("dockerfile/request", problem).hint(
            "build each Windows version by itself, with the name for it, and join the images: \
             `wincimg build IMAGE --host-build B.R --push --join`",
        ))
    }

    /// The files at these paths of an image; none if wincimg makes the image.
    pub(super) async fn extract(
        &mut self,
        base: &PlannedBase,
        paths: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, ExtractedEntry>, BoxError> {
        let key = (base.digest().clone(), paths.clone());
        if let Some(files) = self.extracted.get(&key) {
            return Ok(files.clone());
        }
        let Some(source) = base.source(&self.ctx.registry).await? else {
            return Ok(BTreeMap::new());
        };
        let files = extract(&source, &base.image, paths, &self.ctx.progress).await?;
        self.extracted.insert(key, files.clone());
        Ok(files)
    }

    /// Resolves a recipe's files of other images, and extracts them unless nothing is built. Returns
    /// the images that no digest pins.
    pub(super) async fn add_to(
        &mut self,
        image: &mut PlannedImage,
        recipe: &Recipe,
        supply: &mut DownloadSet,
    ) -> Result<BTreeSet<String>, BoxError> {
        let host = image.host.as_ref().map(|host| host.build);
        let mut not_pinned = BTreeSet::new();
        for (target, files) in image.plan.image_files_mut() {
            if files.entries.is_some() {
                continue;
            }
            let Some(host) = host else {
                let problem = format!("{}: {files} requires a host", recipe.origin());
                return Err(Problem::request("recipe/image", problem)
                    .hint("name one: --host-build B.R")
                    .into());
            };
            let found = self.pinned(&files.image, host, recipe, supply).await?;
            if !has_digest(&files.image) && supply.image_digest(&files.image, host).is_none() {
                not_pinned.insert(files.image.clone());
            }
            files.digest = Some(found.digest().clone());
            if supply.is_offline() {
                continue;
            }
            let failed = |problem: String| {
                let problem = format!("{}: {problem}", recipe.origin());
                Problem::request("recipe/image", problem)
            };
            let copy = ImageCopy::new(files, target).map_err(failed)?;
            let paths = BTreeSet::from([copy.required_path().to_owned()]);
            let extracted = self.extract(&found, &paths).await?;
            files.entries = Some(copy.entries(&paths, extracted).map_err(failed)?);
        }
        Ok(not_pinned)
    }

    /// The image for a host, pinned by its name or the lock file.
    async fn pinned(
        &self,
        name: &str,
        host: HostBuild,
        recipe: &Recipe,
        supply: &mut DownloadSet,
    ) -> Result<PlannedBase, BoxError> {
        let is_pinned_by_name = has_digest(name);
        let pin = supply
            .image_digest(name, host)
            .filter(|_| !is_pinned_by_name);
        let pin = pin.cloned();
        if pin.is_none() && !is_pinned_by_name {
            supply.check_image(name, recipe.origin())?;
        }
        let folder = recipe.folder().unwrap_or(Path::new(""));
        let found = match local_image(name, folder) {
            Some(place) => {
                let place = place.parse()?;
                let matched = self.request.matched;
                PlannedBase::local(&place, &self.ctx.registry, host, matched).await?
            }
            None => self.of_registry(name, pin.as_ref(), host).await?,
        };
        match pin {
            Some(pin) if pin != *found.digest() => {
                return Err(supply.changed_error(name, found.digest(), &pin));
            }
            Some(_) => {}
            None if is_pinned_by_name => {}
            None => supply.insert_image(name, host, found.digest().clone()),
        }
        Ok(found)
    }

    async fn of_registry(
        &self,
        name: &str,
        pin: Option<&Digest>,
        host: HostBuild,
    ) -> Result<PlannedBase, BoxError> {
        let mut named = self.request.base_registry.parse_dockerfile_name(name)?;
        if let Some(pin) = pin {
            let reference = match named {
                NamedBase::Exact(reference) => reference,
                NamedBase::OfHost { name, .. } => name.repository,
            };
            let (host, repository) = (reference.registry(), reference.repository());
            named = NamedBase::Exact(with_digest(host, repository, None, pin));
        }
        let matched = self.request.matched;
        let mut found = self.ctx.bases.by_name(&named, &[host], matched).await?;
        let Some(found) = found.pop() else {
            unreachable!("a search for one host has one result");
        };
        Ok(found)
    }
}

impl BuildRequest {
    /// Resolves the images that a Dockerfile copies files from. Errors are left to the build.
    pub(crate) async fn resolve_copied(&self, images: &mut [PlannedImage], ctx: &BuildContext<'_>) {
        let stages = self.definition.stages().into_iter();
        let copied: BTreeSet<&str> = stages
            .flat_map(Stages::copied_images)
            .map(|(_, name)| name)
            .collect();
        for name in copied {
            let Ok(named) = self.base_registry.parse_dockerfile_name(name) else {
                continue;
            };
            for image in &mut *images {
                let host = image.host.as_ref().map(|host| host.build);
                let found = ctx.bases.by_name(&named, host.as_slice(), self.matched);
                let found = found.await.into_iter().flatten();
                let digests = found.map(|found| (name.to_owned(), found.digest().clone()));
                image.stages.copied.extend(digests);
            }
        }
    }
}

/// Build of Windows 2004: the tag `2004` of a Linux image means Ubuntu 20.04.
const WINDOWS_2004: u32 = 19_041;

/// The Windows build that the files of a Linux image are for, by its name.
pub(super) fn windows_of_linux(named: &NamedBase) -> Option<u32> {
    let build = named.windows()?.build;
    (build != WINDOWS_2004).then_some(build)
}

fn has_digest(name: &str) -> bool {
    matches!(name.parse(), Ok(Location::Registry(reference)) if reference.digest().is_some())
}
