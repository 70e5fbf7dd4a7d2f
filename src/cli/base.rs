//! `wincimg image base`: lists, resolves, indexes and shows base images.

mod base_args;
mod index;
mod show;

use wincimg_engine::notice::report_searched_tags;
use wincimg_inspect::bases::{
    BaseImage, BaseListing, BaseListingEntry, BaseMatch, BaseName, BaseRepository, Fit,
    NearestImage, NoMatchingBase, ResolveError, resolve,
};

use super::hosts::{HostName, host_name, with_revision};
use crate::cli::prelude::*;

/// List, resolve, index and show base images
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image base list nanoserver\n  \
    wincimg image base resolve nanoserver --host-build 17763.973\n  \
    wincimg image base show mcr.microsoft.com/windows/nanoserver:ltsc2022")]
pub(super) struct Base {
    #[command(subcommand)]
    command: BaseCommand,
}

#[derive(Debug, Subcommand)]
enum BaseCommand {
    List(List),
    Resolve(Resolve),
    Index(index::Index),
    Show(show::Show),
}

/// List the base images of a repository, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image base list nanoserver\n  \
    wincimg image base list servercore --host-build 17763.973 --format json\n  \
    wincimg image base list dotnet/aspnet:8.0")]
struct List {
    /// List only images that start on this host
    #[arg(long, value_name = "BUILD", value_parser = host_name, add = complete::builds())]
    host_build: Option<HostName>,
    #[command(flatten)]
    common: Common,
}

/// Resolve the base image for a host, pinned by digest
///
/// Prefers the host's own revision, then the newest older revision that starts on the host, then
/// the oldest newer one.
#[derive(Debug, Args)]
#[command(
    mut_arg("wanted", |arg| arg.hide_short_help(false)),
    after_help = "Examples:\n  \
    wincimg image base resolve nanoserver --host-build 17763.973\n  \
    wincimg image base resolve aspnet --host-build 17763.973 \\\n      \
    --base-registry repo.mylan.k8s:9999/mcr.microsoft.com\n\n\
    Exit code 1: no image fits; the nearest one is named."
)]
struct Resolve {
    /// The host's build and revision, or its release, such as ltsc2022
    #[arg(long, value_name = "BUILD", value_parser = host_name, add = complete::builds())]
    host_build: HostName,
    #[command(flatten)]
    matched: MatchArgs,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct Common {
    /// nanoserver, servercore, server, windows, aspnet, iis, or a repository; add a flavour if it
    /// has several: dotnet/aspnet:8.0
    #[arg(value_name = "NAME", add = complete::bases())]
    name: String,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    connection: BaseRegistryArgs,
}

impl Common {
    /// The client, and the repository of the bases.
    fn connect(&self, session: &Session) -> Result<(RegistryClient, BaseName)> {
        let registry = self.connection.registry.connect(session)?;
        let repository = self.connection.base_registry.repository(&self.name)?;
        Ok((registry, repository))
    }
}

/// Options for selecting the base images of hosts.
#[derive(Debug, Clone, Args)]
pub(super) struct MatchArgs {
    /// Required match of the base with the host's version
    #[arg(
        long = "match",
        value_name = "MATCH",
        value_enum,
        default_value = "nearest",
        hide_short_help = true
    )]
    pub(super) wanted: BaseMatch,
}

impl Base {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        match self.command {
            BaseCommand::List(command) => command.run(session),
            BaseCommand::Resolve(command) => command.run(session),
            BaseCommand::Index(command) => command.run(session),
            BaseCommand::Show(command) => command.run(session),
        }
    }
}

impl List {
    fn run(self, session: &Session) -> Result<CommandOutcome> {
        let (registry, reference) = self.common.connect(session)?;
        let host = self.host_build.map(|host| host.explained(session));
        let host = host.map(HostBuild::new);
        let hosts = host.as_slice();
        let opening = BaseRepository::open(&registry, &reference, hosts);
        let repository = registry_args::run(async { Ok(opening.await?) })?;
        let mut listing = repository.listing()?;
        if let Some(host) = host {
            listing.images.retain(|image| may_start(image, host));
        }
        let listed = listing_json(&repository.to_string(), &listing);
        let format = self.common.format;
        if listing.images.is_empty() {
            let failure = nothing_listed(&repository, host);
            format.print_if_json(|| extended(&listed, json!({"error": failure.document()})))?;
            return Err(failure);
        }
        format.print(|| listed, |out| write_listing(&listing, out))
    }
}

/// Error for a list without images.
fn nothing_listed(repository: &BaseRepository, host: Option<HostBuild>) -> Failure {
    let none = format!(
        "none of the {} tags of {repository}",
        repository.tags().len()
    );
    let problem = match host {
        Some(HostBuild { version, .. }) => Problem::answer(
            "base/nothing-fits",
            format!("{none} is for an image that starts on host {version}"),
        )
        .hint("remove --host-build to list all images"),
        None => Problem::answer("base/tags", format!("{none} names a version of Windows")),
    };
    problem.into()
}

/// Returns true if an image starts on a host, or may start: a tag without a revision can name any
/// image of its build.
fn may_start(image: &BaseListingEntry, host: HostBuild) -> bool {
    match image.version {
        Some(version) if version.revision.is_some() => {
            Fit::of(version, host, BaseMatch::Nearest).is_some()
        }
        Some(version) => version.build == host.version.build,
        None => true,
    }
}

impl Resolve {
    fn run(self, session: &Session) -> Result<CommandOutcome> {
        let (registry, reference) = self.common.connect(session)?;
        let host = HostBuild::new(self.host_build.explained(session));
        let host = with_revision(host, session);
        let wanted = self.matched.wanted;
        let outcome =
            registry_args::run(async { Ok(resolve(&registry, &reference, host, wanted).await) })?;
        match outcome {
            Ok(resolution) => {
                for tag in &resolution.set_aside {
                    session.warn(tag);
                }
                let found = &resolution.base;
                if let Some(warning) = found.warning(host) {
                    session.warn(warning);
                }
                if found.matched == BaseMatch::Nearest {
                    session.note(format_args!(
                        "no image has the revision of host {host}; {} is the nearest that starts \
                         on it",
                        found.os_version
                    ));
                }
                let answer = || base_json(found);
                let format = self.common.format;
                format.print(answer, |out| writeln!(out, "{}", found.reference))
            }
            Err(error) => {
                report_searched_tags(&error, session);
                let nearest = match &error {
                    ResolveError::NothingFits(nothing) => Some(nothing_json(nothing)),
                    _ => None,
                };
                let failure = Failure::from(error);
                if let Some(nearest) = nearest {
                    let answer = || extended(&nearest, json!({"error": failure.document()}));
                    self.common.format.print_if_json(answer)?;
                }
                Err(failure)
            }
        }
    }
}

fn write_listing(listing: &BaseListing, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<18} {:<10} {:<10} TAGS",
        "VERSION", "UPDATE", "DATE"
    )?;
    for image in &listing.images {
        let version = match image.version {
            Some(version) if image.floating => format!("{} (moves)", version.os_version()),
            Some(version) => version.os_version(),
            None => "any (moves)".to_owned(),
        };
        let (kb, date) = (or_dash(image.kb), or_dash(image.date));
        writeln!(
            out,
            "{version:<18} {kb:<10} {date:<10} {}",
            UntrustedText(image.tags.join(" "))
        )?;
    }
    Ok(())
}

fn base_json(base: &BaseImage) -> Value {
    json!({
        "reference": base.reference.to_string(),
        "digest": base.digest(),
        "tag": base.reference.tag().unwrap_or_default(),
        "os_version": base.os_version.os_version(),
        "match": base.matched.name(),
        "index_digest": base.index,
    })
}

fn nothing_json(nothing: &NoMatchingBase) -> Value {
    let neighbour = |neighbour: &Option<NearestImage>| {
        neighbour.as_ref().map(
            |neighbour| json!({"tag": neighbour.tag, "os_version": neighbour.version.os_version()}),
        )
    };
    json!({
        "reference": null,
        "digest": null,
        "os_version": null,
        "match": null,
        "nearest_below": neighbour(&nothing.below),
        "nearest_above": neighbour(&nothing.above),
    })
}

fn listing_json(repository: &str, listing: &BaseListing) -> Value {
    let images = listing.images.iter().map(|image| {
        let whole = image.version.filter(|version| version.revision.is_some());
        json!({
            "build": image.version.map(|version| version.build),
            "os_version": whole.map(|version| version.os_version()),
            "kb": image.kb.map(|kb| kb.to_string()),
            "date": image.date.map(|date| date.to_string()),
            "floating": image.floating,
            "tags": image.tags,
        })
    });
    let images: Vec<Value> = images.collect();
    json!({"repository": repository, "images": images, "other_tags": listing.other_tags})
}
