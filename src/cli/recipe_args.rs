//! Which images are meant: a recipe, its variables, the hosts, and where base images come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::base::{MatchArg, tell_what_was_looked_at};
use super::failure::Failure;
use super::hosts::{Builds, HostArgs};
use super::progress::display;
use super::registry_args::{BaseRegistryArgs, RegistryArgs};
use super::session::Session;
use crate::cluster::nodes::Node;
use crate::engine::inside::{Purpose, look_inside};
use crate::engine::plans::{BuildRequest, PlanError, PlannedImage, TargetHost};
use crate::layer::secrets;
use crate::oci::base::{BaseRegistry, HostProcessBase, Match, warning};
use crate::oci::remote::Registry;
use crate::progress::Progress;
use crate::recipe::dockerignore::FILE_NAME;
use crate::recipe::{Plan, PlannedFile, Recipe, Settings};

/// A recipe and the hosts that its images are for.
#[derive(Debug, Args)]
pub(super) struct RecipeArgs {
    /// A recipe that ships, a recipe file, or a folder with a recipe.toml
    #[arg(value_name = "IMAGE")]
    image: String,
    #[command(flatten)]
    hosts: HostArgs,
    /// How close base images have to be to the host
    #[arg(
        long = "match",
        value_name = "MATCH",
        value_enum,
        default_value = "nearest"
    )]
    wanted: MatchArg,
    /// Set a variable of the recipe (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    values: Vec<(String, String)>,
    /// The folder that the recipe's context files are in
    #[arg(long, value_name = "DIR", default_value = ".")]
    context: PathBuf,
    #[command(flatten)]
    base: BaseRegistryArgs,
    #[command(flatten)]
    connection: RegistryArgs,
}

/// What was asked for, read and checked as far as that goes without a registry.
pub(super) struct Wanted<'a> {
    pub(super) recipe: Recipe,
    values: BTreeMap<String, String>,
    hosts: Builds,
    context: &'a Path,
    base_registry: &'a BaseRegistry,
    matched: Match,
}

impl RecipeArgs {
    /// Reads the recipe and the hosts.
    pub(super) fn read(&self, session: &Session) -> Result<Wanted<'_>, Failure> {
        if let Some(path) = Recipe::hidden(&self.image) {
            session.note(format_args!(
                "using the recipe {:?} that ships; the one in this folder is {}",
                self.image,
                path.display()
            ));
        }
        let recipe = Recipe::find(&self.image)?;
        let values = self.values.iter().cloned().collect();
        let base = recipe.base(&Settings {
            values: &values,
            context: &self.context,
        })?;
        // One image without Windows inside is for all hosts.
        let hosts = if HostProcessBase::is_named(&base) && !self.hosts.are_given() {
            Builds::default()
        } else {
            self.hosts.distinct_builds(session)?
        };
        Ok(Wanted {
            recipe,
            values,
            hosts,
            context: &self.context,
            base_registry: &self.base.base_registry,
            matched: self.wanted.into(),
        })
    }

    /// The client for all registries of this run.
    pub(super) fn connect(&self, progress: Arc<dyn Progress>) -> Result<Registry, Failure> {
        self.connection.connect(progress)
    }
}

impl Wanted<'_> {
    /// The nodes that get no image, because they do not tell their version.
    pub(super) fn left_out(&self) -> &[String] {
        &self.hosts.left_out
    }

    /// The hosts, as far as they tell their version.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.hosts.nodes
    }

    /// The plans as far as the recipe and its folder alone tell them.
    pub(super) fn drafts(&self) -> Result<Vec<Plan>, Failure> {
        Ok(self.request(&self.hosts.targets(), true).drafts()?)
    }

    fn request<'b>(&'b self, hosts: &'b [TargetHost], is_shared: bool) -> BuildRequest<'b> {
        BuildRequest {
            recipe: &self.recipe,
            settings: Settings {
                values: &self.values,
                context: self.context,
            },
            hosts,
            base_registry: self.base_registry,
            wanted: self.matched,
            is_shared,
        }
    }

    /// Finds the bases and fills the recipe in for each; what was passed over is said on the way.
    /// Hosts of one build share an image where one can serve them, unless each is to have its own.
    pub(super) async fn plan(
        &self,
        is_shared: bool,
        registry: &Registry,
        session: &Session,
    ) -> Result<Vec<PlannedImage>, Failure> {
        let hosts = self.hosts.targets();
        let request = self.request(&hosts, is_shared);
        let images = request.plan(registry).await.inspect_err(|error| {
            if let PlanError::Resolve(error) = error {
                tell_what_was_looked_at(error, session);
            }
        })?;
        for tag in images.iter().flat_map(|image| &image.set_aside) {
            session.warn(tag);
        }
        // Images for several hosts are read from the same recipe.
        let notes: BTreeSet<&String> = images.iter().flat_map(|image| &image.plan.notes).collect();
        for note in notes {
            session.note(note);
        }
        let warnings = images.iter().flat_map(|image| &image.plan.warnings);
        for warning in warnings.collect::<BTreeSet<_>>() {
            session.warn(warning);
        }
        for image in &images {
            let version = image.base.os_version;
            let host = image.host.as_ref();
            if let Some((version, host)) = version.zip(host)
                && let Some(warning) = warning(version, host.build)
            {
                session.warn(warning);
            }
        }
        // Images for several hosts mostly have the same files.
        let mut contents: Vec<&[PlannedFile]> = Vec::new();
        for image in &images {
            let files = image.plan.files.as_slice();
            if !contents.contains(&files) {
                contents.push(files);
            }
        }
        // What cannot be read is told by whoever reads it.
        let contents = contents.into_iter().filter_map(|files| secrets(files).ok());
        let found: BTreeSet<String> = contents.flatten().collect();
        if !found.is_empty() {
            session.warn(secrets_warning(&found));
        }
        Ok(images)
    }
}

/// Finds out what is inside the bases of planned images, for whoever makes them, and says what there
/// is to say about that.
pub(super) async fn look(
    images: &mut [PlannedImage],
    purpose: Purpose,
    registry: &Registry,
    session: &Session,
) -> Result<(), Failure> {
    let library = session.cache.library(registry, &display(session));
    let tell = |note: String| session.note(note);
    let looks = look_inside(images, &library, registry, purpose, &tell).await;
    for warning in library.take_warnings() {
        session.warn(warning);
    }
    for look in looks? {
        tracing::info!("inside {}: {}", look.base, look.from);
        if let Some(missing) = look.missing {
            session.note(format_args!(
                "a build reads {missing} of {} from its layers",
                look.base
            ));
        }
    }
    Ok(())
}

/// Tells in one line which files look like secrets.
fn secrets_warning(found: &BTreeSet<String>) -> String {
    const MOST_NAMES: usize = 4;
    let mut names: Vec<&str> = found.iter().map(String::as_str).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "everybody who pulls the image can read what may be a secret: {}{more}; list it in {FILE_NAME} to leave it out",
        names.join(", ")
    )
}

/// Reads `KEY=VALUE`.
pub(super) fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("invalid setting {text:?}: expected KEY=VALUE")),
    }
}
