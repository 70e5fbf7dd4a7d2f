//! Images that commands read: in a registry, a layout, an archive, or a Docker daemon.
//!
//! A daemon's image is exported to a temporary file, as `docker save` does, and read as an archive.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::ops::Deref;
use wincimg_common::diagnose::Problem;
use wincimg_engine::docker::{Endpoint, Environment};

use wincimg_common::diagnose::BoxError;
use wincimg_common::files::Spool;
use wincimg_engine::docker::Daemon;
use wincimg_oci::reference::repository_of;
use wincimg_oci::store::LocationError;

use crate::cli::prelude::*;

/// Prefix of the names of images in a daemon.
pub(super) const DAEMON: &str = "docker-daemon:";

/// An image to read, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageSource {
    /// Its location; of an image in a daemon, that which its name says.
    pub(super) location: Location,
    /// Its name in the daemon, if it is in one.
    in_daemon: Option<String>,
}

pub(super) fn parse_source(text: &str) -> Result<ImageSource, LocationError> {
    let Some(name) = text.strip_prefix(DAEMON) else {
        return parse_location(text).map(ImageSource::from);
    };
    let reference = parse_reference(name)?;
    // Without a tag, Docker exports all of them.
    let last = name.rsplit('/').next();
    let is_tagged = last.is_some_and(|it| it.contains([':', '@']));
    let tag = if is_tagged { "" } else { ":latest" };
    Ok(ImageSource {
        location: Location::Registry(reference),
        in_daemon: Some(format!("{name}{tag}")),
    })
}

impl From<Location> for ImageSource {
    fn from(location: Location) -> Self {
        Self {
            location,
            in_daemon: None,
        }
    }
}

impl Display for ImageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.in_daemon {
            Some(name) => write!(f, "{DAEMON}{name}"),
            None => self.location.fmt(f),
        }
    }
}

impl ImageSource {
    /// The location that is read; none in a daemon.
    pub(super) fn stored(&self) -> Option<&Location> {
        Some(&self.location).filter(|_| self.in_daemon.is_none())
    }

    /// The digest or tag to read. What a daemon exports is one image.
    pub(super) fn tag_or_digest(&self) -> Option<&str> {
        self.stored()?.tag_or_digest()
    }

    /// Its file or, in a registry or a daemon, its repository, as in reports of other scanners.
    pub(super) fn path(&self) -> String {
        match &self.location {
            Location::Registry(reference) => reference.repository().to_owned(),
            Location::Layout { dir, .. } => dir.join("index.json").display().to_string(),
            Location::Archive { file, .. } => file.display().to_string(),
        }
    }

    /// Name of the image in documents: its repository, or that of its file.
    pub(super) fn document_name(&self) -> String {
        match &self.location {
            Location::Registry(reference) => repository_of(reference),
            Location::Layout { dir: path, .. } | Location::Archive { file: path, .. } => {
                let name = path.file_stem().unwrap_or(path.as_os_str());
                name.to_string_lossy().into_owned()
            }
        }
    }
}

/// Connections to the places of images.
#[derive(Debug, Clone, Args)]
pub(super) struct SourceArgs {
    #[command(flatten)]
    pub(super) registry: RegistryArgs,
    #[command(flatten)]
    docker: DockerArgs,
}

/// Reader of the places of images.
pub(super) struct SourceReader {
    pub(super) registry: RegistryClient,
    docker: DockerArgs,
    /// Display of its transfers.
    pub(super) progress: Arc<dyn Progress>,
}

/// An opened place, with the temporary file that it may be in.
pub(super) struct OpenSource {
    source: Source,
    _exported: Option<Spool>,
}

impl Deref for OpenSource {
    type Target = Source;

    fn deref(&self) -> &Source {
        &self.source
    }
}

impl SourceArgs {
    /// A reader; connects to nothing yet.
    pub(super) fn connect(&self, session: &Session) -> Result<SourceReader> {
        let progress = display(session);
        Ok(SourceReader {
            registry: self.registry.connect_with(Arc::clone(&progress))?,
            docker: self.docker.clone(),
            progress,
        })
    }

    /// The same flags as words of a command line.
    pub(super) fn to_words(&self) -> Vec<String> {
        let daemon = flag_words("--docker-host", &self.docker.docker_host);
        [self.registry.to_words(), daemon].concat()
    }
}

impl SourceReader {
    pub(super) async fn open(&self, image: &ImageSource) -> Result<OpenSource> {
        let Some(name) = &image.in_daemon else {
            let source = Source::open(&image.location, &self.registry).await?;
            return Ok(OpenSource {
                source,
                _exported: None,
            });
        };
        let exported = self.export(name).await?;
        let archive = Location::Archive {
            file: exported.path().to_owned(),
            name: None,
        };
        Ok(OpenSource {
            source: Source::open(&archive, &self.registry).await?,
            _exported: Some(exported),
        })
    }

    async fn export(&self, name: &str) -> Result<Spool, BoxError> {
        let daemon = Daemon::connect(self.docker.endpoint()?).await?;
        daemon.export(name, self.progress.as_ref()).await
    }
}

/// The daemon of the docker engine.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Docker options")]
pub(super) struct DockerArgs {
    /// Docker daemon to use [default: `DOCKER_HOST`, then Docker's context, then the platform's
    /// default]
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(super) docker_host: Option<String>,
}

impl DockerArgs {
    /// Finds the daemon as Docker's own command line would.
    pub(super) fn endpoint(&self) -> Result<Endpoint, Problem> {
        Endpoint::find(self.docker_host.as_deref(), &Environment::from_env())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_of_a_daemon_has_a_name_and_a_tag() {
        for (text, shown, name) in [
            ("app", "app:latest", "docker.io/library/app"),
            ("app:1.4", "app:1.4", "docker.io/library/app"),
            ("repo.lan:5/app", "repo.lan:5/app:latest", "repo.lan:5/app"),
        ] {
            let read = parse_source(&format!("docker-daemon:{text}")).unwrap();
            assert_eq!(read.to_string(), format!("docker-daemon:{shown}"));
            assert_eq!(read.document_name(), name);
            assert_eq!((read.stored(), read.tag_or_digest()), (None, None));
        }
        for text in ["docker-daemon:", "docker-daemon:A B", "docker-daemon:/"] {
            assert!(parse_source(text).is_err(), "{text}");
        }
        let read = parse_source("oci:./web:1").unwrap();
        assert_eq!(
            (read.to_string().as_str(), read.tag_or_digest()),
            ("oci:./web:1", Some("1"))
        );
    }
}
