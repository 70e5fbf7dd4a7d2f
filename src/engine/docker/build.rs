//! A build by the daemon's classic builder, the only one that Windows has.

use std::collections::BTreeMap;
use std::fmt;

use hyper::Method;
use serde_json::{Map, Value};

use super::api::{ImageInfo, Message};
use super::context::{ContextError, DOCKERFILE, Listing};
use super::daemon::{Call, Daemon, Messages, json_header, one_line};
use super::error::DockerError;
use super::layers::Layers;
use super::steps::{Step, Steps};
use super::upload::upload;
use crate::oci::remote::DaemonCredential;
use crate::progress::Progress;
use crate::windows::compat::Isolation;

/// How a daemon builds.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Values for the Dockerfile's `ARG`s, and for the variables of proxies.
    pub arguments: BTreeMap<String, String>,
    /// Labels besides those of the Dockerfile.
    pub labels: BTreeMap<String, String>,
    /// Asks for the base although the daemon has it.
    pub pull: bool,
    /// Runs every step although the daemon did so before.
    pub no_cache: bool,
    /// How the steps' containers are isolated; the daemon's default where absent.
    pub isolation: Option<Isolation>,
    /// Bytes of memory for each step's container.
    pub memory: Option<u64>,
    /// The network of the steps' containers; the daemon's default where absent.
    pub network: Option<String>,
    /// For the registries that bases come from.
    pub credentials: Vec<DaemonCredential>,
    /// The time of the context's files, in seconds since 1970; the base's own where absent.
    pub timestamp: Option<u64>,
}

/// Why a daemon did not build an image.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The context could not be sent.
    #[error("the build context could not be sent")]
    Context(#[from] ContextError),
    /// A step failed.
    #[error(
        "step {} of {} failed{}: {}",
        step.number,
        step.count,
        exit_code.map_or_else(String::new, |code| format!(" with exit code {code}")),
        step.instruction
    )]
    Step {
        /// Which one.
        step: Step,
        /// What its program returned, where it was a program's fault.
        exit_code: Option<i64>,
        /// The daemon's words and the last of the program's.
        #[source]
        output: StepOutput,
    },
    /// The daemon stopped in the middle.
    #[error("the build broke off{}", during(step.as_ref()))]
    BrokenOff {
        /// The step that was under way.
        step: Option<Step>,
        /// How.
        #[source]
        source: DockerError,
    },
    /// The daemon failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// The build succeeded without an image.
    #[error("the Docker daemon says that it is done, but not which image it built")]
    NoImage,
    /// The daemon has another image than it said.
    #[error("the Docker daemon built {built}, but shows {shown} instead")]
    OtherImage {
        /// What it said.
        built: String,
        /// What it shows.
        shown: String,
    },
}

/// What was said about a step that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepOutput {
    /// The daemon's words.
    pub message: String,
    /// The last lines of the step's program.
    pub lines: Vec<String>,
}

impl std::error::Error for StepOutput {}

impl StepOutput {
    /// What to do about words that Windows says when a base does not fit its host.
    fn hint(&self) -> Option<&'static str> {
        let has = |words| self.message.contains(words);
        if has("0xc0370101") || has("does not match the host") {
            Some("build with --isolation hyperv, or on a host of the base's version")
        } else if has("-based image is incompatible with") {
            Some("build on a host that is not older than the base")
        } else {
            None
        }
    }
}

impl fmt::Display for StepOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.lines.is_empty() {
            f.write_str("; the last of its output:")?;
        }
        for line in &self.lines {
            write!(f, "\n    | {line}")?;
        }
        Ok(())
    }
}

fn during(step: Option<&Step>) -> String {
    step.map_or_else(String::new, |step| {
        let Step { number, count, .. } = step;
        format!(" at step {number} of {count}")
    })
}

impl BuildError {
    /// What to type or do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Docker(error) | Self::BrokenOff { source: error, .. } => error.hint(),
            Self::Step { output, .. } => output.hint().map(str::to_owned),
            _ => None,
        }
    }
}

impl Daemon {
    /// Builds an image and says what the daemon knows of it. Dropping the future ends the build.
    pub async fn build(
        &self,
        listing: Listing,
        options: &BuildOptions,
        progress: &dyn Progress,
    ) -> Result<ImageInfo, BuildError> {
        let task = progress.task("build context", Some(listing.bytes()));
        let (body, outcome) = upload(listing, options.timestamp.unwrap_or_default(), task);
        let mut call = Call::new("build the image", Method::POST, "/build");
        call.query = options.query();
        call.headers = vec![("x-registry-config", options.credentials())];
        call.body = Some(body);
        let mut steps = Steps::new(progress);
        let built = match self.stream(call).await {
            Ok(pieces) => follow(Messages::new(pieces), &mut steps, progress).await,
            Err(error) => Err(Stop::Failed(error)),
        };
        let id = match built {
            Ok(id) => id.ok_or(BuildError::NoImage)?,
            Err(stop) => {
                // What the daemon makes of half a context is not the reason.
                return Err(match outcome.take() {
                    Some(error) => error.into(),
                    None => stop.explain(steps),
                });
            }
        };
        steps.finish();
        let image = self.image(&id).await?;
        if image.id != id {
            return Err(BuildError::OtherImage {
                built: id,
                shown: image.id,
            });
        }
        Ok(image)
    }
}

enum Stop {
    /// The daemon says that a step failed.
    Step(Message),
    /// It says nothing more.
    Failed(DockerError),
}

impl Stop {
    fn explain(self, steps: Steps<'_>) -> BuildError {
        let (step, lines) = steps.failed();
        match (self, step) {
            (Self::Failed(error @ DockerError::Broken { .. }), step) => BuildError::BrokenOff {
                step,
                source: error,
            },
            (Self::Failed(error), _) => error.into(),
            (Self::Step(message), Some(step)) => BuildError::Step {
                step,
                exit_code: message.exit_code(),
                output: StepOutput {
                    message: one_line(message.complaint().unwrap_or_default()),
                    lines,
                },
            },
            (Self::Step(message), None) => BuildError::Docker(DockerError::Refused {
                what: "build the image".to_owned(),
                status: None,
                message: one_line(message.complaint().unwrap_or_default()),
            }),
        }
    }
}

/// Reads what the daemon says to its end, which is the image's id.
async fn follow(
    mut messages: Messages,
    steps: &mut Steps<'_>,
    progress: &dyn Progress,
) -> Result<Option<String>, Stop> {
    let mut layers = Layers::new(progress);
    let mut id = None;
    while let Some(message) = messages.next().await.map_err(Stop::Failed)? {
        if message.complaint().is_some() {
            return Err(Stop::Step(message));
        }
        if let Some(text) = &message.stream {
            steps.read(text);
        }
        layers.show(&message);
        if let Some(built) = message.aux.and_then(|aux| aux.id) {
            id = Some(built);
        }
    }
    Ok(id)
}

impl BuildOptions {
    fn query(&self) -> Vec<(&'static str, String)> {
        let flag = |name, set: bool| set.then(|| (name, "1".to_owned()));
        let table = |name, values: &BTreeMap<String, String>| {
            let json = || {
                let entries = values.iter();
                let entries = entries.map(|(key, value)| (key.clone(), value.clone().into()));
                Value::Object(entries.collect::<Map<_, _>>()).to_string()
            };
            (!values.is_empty()).then(|| (name, json()))
        };
        let text = |name, value: Option<String>| Some((name, value?));
        [
            Some(("dockerfile", DOCKERFILE.to_owned())),
            // The containers of steps are of no use to anybody, not even those of failed ones.
            flag("rm", true),
            flag("forcerm", true),
            flag("pull", self.pull),
            flag("nocache", self.no_cache),
            table("buildargs", &self.arguments),
            table("labels", &self.labels),
            text(
                "isolation",
                self.isolation.map(|mode| mode.name().to_owned()),
            ),
            text("memory", self.memory.map(|bytes| bytes.to_string())),
            text("networkmode", self.network.clone()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn credentials(&self) -> hyper::header::HeaderValue {
        let entries = self.credentials.iter();
        let entries = entries.map(|one| (one.server().to_owned(), one.reveal().clone()));
        json_header(&Value::Object(entries.collect()))
    }
}
