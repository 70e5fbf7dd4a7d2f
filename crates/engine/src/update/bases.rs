//! Detection of the base of an image: its own layers begin above those of the base.
//!
//! The image may name its base, in annotations or labels. A label can be inherited from an image in
//! between, or be wrong, so a named base counts only if the image's layers begin with its layers.
//! Without one the repositories of Windows are queried for the image's version, and the longest run
//! of layers decides.

use futures_util::future::join_all;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_inspect::bases::{
    BASE_NAMES, BaseMatch, BaseNameError, MICROSOFT, NAMES, NamedBase, ResolveError,
};
use wincimg_inspect::{InspectError, windows_images};
use wincimg_oci::document::{BASE_DIGEST, BASE_NAME, Digest, Image};
use wincimg_oci::reference::{Reference, parse_reference, repository_of, with_digest};
use wincimg_oci::store::{Source, StoreError};
use wincimg_windows::compat::HostBuild;
use wincimg_windows::version::WindowsVersion;

use super::planner::Planner;
use crate::error::search;

const SHORT_NAMES: [&str; 4] = ["nanoserver", "servercore", "server", "windows"];

/// The base that an image was built on.
#[derive(Debug, Clone)]
pub(super) struct OldBase {
    /// Name of the base, for finding newer ones.
    pub(super) named: NamedBase,
    /// Pinned reference.
    pub(super) reference: Reference,
    /// Manifest and configuration.
    pub(super) image: Image,
    pub(super) by: BaseDetection,
}

/// Method of detecting the base of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseDetection {
    /// The user named it.
    Asked,
    /// The image names it.
    Named,
    /// Its layers are the image's lowest ones.
    Layers,
}

impl Planner<'_> {
    /// Returns true if a base is Windows without other programs: by its repository in the registry
    /// of bases, or by Microsoft's name for it in a mirror.
    pub(super) fn is_windows_alone(&self, base: &Reference) -> bool {
        SHORT_NAMES.iter().any(|short| {
            let Ok(known) = self.request.base_registry.repository(short) else {
                return false;
            };
            let (host, path) = (base.registry(), base.repository());
            let known = (known.repository.registry(), known.repository.repository());
            let long = NAMES.iter().find(|(name, _)| name == short);
            let is_mirrors = long.is_some_and(|(_, long)| {
                let before = path.strip_suffix(long);
                before.is_some_and(|before| before.ends_with(&format!("{MICROSOFT}/")))
            });
            known == (host, path) || is_mirrors
        })
    }

    /// Detects the base of an image: named by the user, by the image, or by its layers.
    pub(super) async fn find_base_of(
        &self,
        image: &Image,
        version: WindowsVersion,
    ) -> Result<OldBase, BoxError> {
        let digest = image.recorded(BASE_DIGEST);
        let digest: Option<Digest> = digest.and_then(|digest| digest.parse().ok());
        let pinned = |reference: &Reference| Some(at_digest(reference, digest.as_ref()?));
        if let Some(asked) = self.request.base {
            let (named, exactly) = self.requested(asked, version)?;
            // The tag may be that of a newer base by now.
            let exactly: Vec<Reference> = match exactly {
                Some(exactly) => pinned(&exactly).into_iter().chain([exactly]).collect(),
                None => Vec::new(),
            };
            let by = BaseDetection::Asked;
            let found = self.find_at(&named, &exactly, image, version, by).await?;
            return Ok(found.ok_or_else(|| self.other_base_error(asked, version))?);
        }
        let recorded = self.recorded_base(image);
        if let Some((base, reference)) = &recorded {
            let reference = self.allowed(base, reference)?;
            let named = self.named(&reference, version)?;
            let is_pinned = reference.tag().is_none();
            let at = pinned(&reference).into_iter();
            let exactly: Vec<Reference> = at.chain([reference]).collect();
            let by = BaseDetection::Named;
            let found = self.find_at(&named, &exactly, image, version, by);
            if let Some(found) = found.await? {
                // All tags of Windows alone differ in its version only.
                if is_pinned && !self.is_windows_alone(&found.reference) {
                    return Err(self.pinned_base_error(base, &found).into());
                }
                return Ok(found);
            }
        }
        let usual = self.usual(version)?;
        match (self.by_layers(image, version, &usual).await?, recorded) {
            (Some(found), _) => Ok(found),
            (None, Some((base, _))) => Err(self.deleted_base_error(base, version).into()),
            (None, None) => {
                let tried: Vec<_> = usual.iter().map(|(base, _)| repository_of(base)).collect();
                let problem = format!(
                    "cannot tell which base {} was built on: it names none, and its lowest layers are \
                     not those of {}",
                    self.request.image,
                    tried.join(", ")
                );
                let hint = format!(
                    "name the repository of its base with {}; {BASE_NAMES}, and --base-registry \
                     sets their registry",
                    self.request.base_setting.name()
                );
                Err(Problem::answer("base/unknown", problem).hint(hint).into())
            }
        }
    }

    /// The base that an image names, if it is a name at all.
    fn recorded_base<'i>(&self, image: &'i Image) -> Option<(&'i str, Reference)> {
        let base = image.recorded(BASE_NAME)?;
        match parse_reference(base) {
            Ok(reference) => Some((base, reference)),
            Err(error) => {
                self.ctx.reporter.note(&format_args!(
                    "{BASE_NAME} of {} is not used: {error}",
                    self.request.image
                ));
                None
            }
        }
    }

    /// The base that the user named, and the exact image if there is a digest.
    fn requested(
        &self,
        text: &str,
        version: WindowsVersion,
    ) -> Result<(NamedBase, Option<Reference>), BaseNameError> {
        match self.request.base_registry.repository(text) {
            Ok(name) => {
                let build = version.build;
                Ok((NamedBase::OfHost { name, build }, None))
            }
            Err(BaseNameError::Tagged(_)) => {
                let short = text.split(['/', ':', '@']).next().unwrap_or_default();
                let known = NAMES.iter().find(|(name, _)| *name == short);
                let long = known
                    .map(|(name, path)| text.replacen(name, &format!("{MICROSOFT}/{path}"), 1));
                let exactly = parse_reference(long.as_deref().unwrap_or(text))?;
                Ok((self.named(&exactly, version)?, Some(exactly)))
            }
            Err(error) => Err(error),
        }
    }

    /// Name of a base by the reference of one of its images: by its tag or, if there is only a
    /// digest, by its repository.
    fn named(
        &self,
        reference: &Reference,
        version: WindowsVersion,
    ) -> Result<NamedBase, BaseNameError> {
        let (host, path) = (reference.registry(), reference.repository());
        if let Some(tag) = reference.tag() {
            return self
                .request
                .base_registry
                .parse_dockerfile_name(&format!("{host}/{path}:{tag}"));
        }
        let name = match host {
            MICROSOFT => self.request.base_registry.repository(path)?,
            _ => self
                .request
                .base_registry
                .repository(&format!("{host}/{path}"))?,
        };
        let build = version.build;
        Ok(NamedBase::OfHost { name, build })
    }

    /// The base that an image names, where newer ones may be taken from: Microsoft's repository,
    /// which stands for the registry of bases, one of that registry, or one in the namespace of the
    /// image. In others of a shared registry, a stranger could publish the next base.
    fn allowed(&self, base: &str, reference: &Reference) -> Result<Reference, BoxError> {
        let (image, base_registry) = (self.request.image, self.request.base_registry);
        let is_own =
            reference.registry() == image.registry() && namespace(reference) == namespace(image);
        if is_own || reference.registry() == MICROSOFT || base_registry.0.contains(reference) {
            return Ok(reference.clone());
        }
        let problem = format!(
            "{image} names the base {base}: a repository that only an image names is not used"
        );
        let add = self.request.base_setting.with(base);
        let Some(path) = microsofts_path(reference.repository()) else {
            let hint = format!("to use that base, add {add}");
            return Err(Problem::answer("base/elsewhere", problem).hint(hint).into());
        };
        self.ctx.reporter.note(&format_args!(
            "{problem}, so it is looked for in {base_registry}; to use that base, add {add}"
        ));
        let (tag, digest) = (reference.tag(), reference.digest());
        Ok(Reference::new(MICROSOFT, path, tag, digest))
    }

    /// The base of the image's version whose layers the image begins with: the named one, or else
    /// the repository's image of that version.
    async fn find_at(
        &self,
        named: &NamedBase,
        exactly: &[Reference],
        image: &Image,
        version: WindowsVersion,
        by: BaseDetection,
    ) -> Result<Option<OldBase>, BoxError> {
        let base = |reference, image| OldBase {
            named: named.clone(),
            reference,
            image,
            by,
        };
        for reference in exactly {
            let here = self.in_base_registry(reference);
            let source = Source::Registry(self.ctx.registry.repository(&here));
            let which = here.digest().or(here.tag());
            let images = match windows_images(&source, which, &[]).await {
                Ok(images) => images,
                Err(InspectError::Store(StoreError::Registry(error))) if error.is_not_found() => {
                    continue;
                }
                Err(InspectError::NotAnImage { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let below = images.into_iter().find(|base| is_below(base, image));
            if let Some(found) = below {
                return Ok(Some(base(at_digest(&here, found.digest()), found)));
            }
        }
        let hosts = [HostBuild::new(version)];
        let searching = self.ctx.bases.by_name(named, &hosts, BaseMatch::Exact);
        match searching.await {
            Ok(found) => {
                let below = found.iter().find(|base| is_below(&base.image, image));
                Ok(below
                    .and_then(|found| Some(base(found.reference()?.clone(), found.image.clone()))))
            }
            Err(error) => match search(&error) {
                Some(
                    ResolveError::NothingFits(_)
                    | ResolveError::NotForWindows { .. }
                    | ResolveError::NoBaseTags { .. }
                    | ResolveError::NoTag { .. },
                ) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// The same image in the registry of bases.
    fn in_base_registry(&self, reference: &Reference) -> Reference {
        match self
            .request
            .base_registry
            .parse_dockerfile_name(&reference.to_string())
        {
            Ok(NamedBase::OfHost { name, .. }) => name.repository,
            Ok(NamedBase::Exact(reference)) => reference,
            Err(_) => reference.clone(),
        }
    }

    fn usual(&self, version: WindowsVersion) -> Result<Vec<(Reference, NamedBase)>, BaseNameError> {
        let usual = SHORT_NAMES.iter().map(|short| {
            let name = self.request.base_registry.repository(short)?;
            let build = version.build;
            Ok((name.repository.clone(), NamedBase::OfHost { name, build }))
        });
        usual.collect()
    }

    async fn by_layers(
        &self,
        image: &Image,
        version: WindowsVersion,
        asked: &[(Reference, NamedBase)],
    ) -> Result<Option<OldBase>, BoxError> {
        let looks = asked.iter().map(async |(_, named)| {
            let by = BaseDetection::Layers;
            match self.find_at(named, &[], image, version, by).await {
                // Not every mirror has all of them.
                Err(error) if matches!(search(&error), Some(ResolveError::NoRepository { .. })) => {
                    Ok(None)
                }
                answer => answer,
            }
        });
        let mut best: Vec<OldBase> = Vec::new();
        for found in join_all(looks).await {
            let Some(found) = found? else { continue };
            let length = |base: &OldBase| base.image.config().rootfs.diff_ids.len();
            match best.first().map(length) {
                Some(longest) if longest > length(&found) => {}
                Some(longest) if longest == length(&found) => best.push(found),
                _ => best = vec![found],
            }
        }
        if best.len() > 1 {
            let bases = best.iter().map(|base| repository_of(&base.reference));
            let bases: Vec<String> = bases.collect();
            let both = bases.join(" and of ");
            let (image, base_setting) = (self.request.image, self.request.base_setting);
            let problem = format!("the lowest layers of {image} are those of {both}");
            let hint = format!("choose one, for example {}", base_setting.with(&bases[0]));
            return Err(Problem::answer("base/ambiguous", problem).hint(hint).into());
        }
        Ok(best.pop())
    }

    /// Error for a base that the user named, and that the image is not on.
    fn other_base_error(&self, base: &str, version: WindowsVersion) -> Problem {
        let (os_version, image) = (version.os_version(), &self.request.image);
        let problem =
            format!("{base} has no image of {os_version} whose layers {image} begins with");
        let hint = format!(
            "name the repository of its base with {0}, or omit {0} if the image names its base itself",
            self.request.base_setting.name()
        );
        Problem::answer("base/gone", problem).hint(hint)
    }

    /// Error for a base that the image names by digest alone, which tells no tag of newer ones.
    fn pinned_base_error(&self, base: &str, found: &OldBase) -> Problem {
        let (image, base_setting) = (self.request.image, self.request.base_setting);
        let problem =
            format!("{image} names its base by digest alone, which no newer base has: {base}");
        let hint = format!(
            "name the repository or the tag of newer ones: {}",
            base_setting.with(&repository_of(&found.reference))
        );
        Problem::answer("base/unknown", problem).hint(hint)
    }

    /// Error for a base that no longer exists.
    fn deleted_base_error(&self, base: &str, version: WindowsVersion) -> Problem {
        let problem = format!(
            "the base of {} not found: {base} has no image of {} with its layers",
            self.request.image,
            version.os_version()
        );
        let hint = format!(
            "name a repository that still has it with {}, such as a mirror's, or build the image \
             again: `wincimg build IMAGE`",
            self.request.base_setting.name()
        );
        Problem::answer("base/gone", problem).hint(hint)
    }
}

/// The first part of a repository's path, which has an owner of its own in shared registries.
fn namespace(reference: &Reference) -> Option<&str> {
    reference
        .repository()
        .split_once('/')
        .map(|(first, _)| first)
}

/// Returns true if an image's layers begin with those of a base, and their platforms are equal.
fn is_below(base: &Image, image: &Image) -> bool {
    let (below, own) = (base.config(), image.config());
    let below_ids = &below.rootfs.diff_ids;
    !below_ids.is_empty()
        && below.architecture == own.architecture
        && below.os_version == own.os_version
        && own.rootfs.diff_ids.starts_with(below_ids)
}

/// Microsoft's repository for one of a mirror, whose prefix precedes it.
fn microsofts_path(mirrored: &str) -> Option<&str> {
    let known = NAMES.iter().map(|(_, known)| *known).find(|known| {
        let before = mirrored.strip_suffix(known);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    });
    let after_host = || {
        let (before, path) = mirrored.split_once(MICROSOFT)?;
        let is_name = before.is_empty() || before.ends_with('/');
        path.strip_prefix('/').filter(|_| is_name)
    };
    known.or_else(after_host)
}

fn at_digest(reference: &Reference, digest: &Digest) -> Reference {
    let (host, path) = (reference.registry(), reference.repository());
    with_digest(host, path, reference.tag(), digest)
}
