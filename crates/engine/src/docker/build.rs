//! Builds by the daemon's classic builder, the only one on Windows: the current step, and the lines of
//! its program.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use bollard::Docker;
use bollard::auth::DockerCredentials;
use bollard::query_parameters::BuildImageOptions;
use futures_util::TryStreamExt;
use wincimg_common::diagnose::{BoxError, Diagnose, Problem};
use wincimg_common::lock;
use wincimg_common::progress::{Progress, Task};
use wincimg_common::untrusted::without_passwords;
use wincimg_oci::remote::DaemonCredential;
use wincimg_windows::compat::Isolation;
use wincimg_windows::status::ExitCode;

use super::api::ImageInfo;
use super::client::credentials;
use super::daemon::Daemon;
use super::error::DockerError;
use super::failures::{Failure, exit_code_in};
use super::layers::Layers;
use super::transport::{DaemonFailure, Messages, one_line};
use super::upload::{ContextListing, upload};

/// The operation, for error messages.
const WHAT: &str = "build the image";

/// Options of a build by a daemon.
#[derive(Debug, Clone, Default)]
pub struct DockerBuildOptions {
    /// Values of the Dockerfile's `ARG`s and of the proxy variables.
    pub arguments: BTreeMap<String, String>,
    /// Pulls the base even if the daemon has it.
    pub pull: bool,
    /// Runs every step even if it is cached.
    pub no_cache: bool,
    /// Isolation of the steps' containers; the daemon's default where absent.
    pub isolation: Option<Isolation>,
    /// Memory of each step's container in bytes.
    pub memory: Option<u64>,
    /// Network of the steps' containers; the daemon's default where absent.
    pub network: Option<String>,
    /// Credentials for the registries of bases.
    pub credentials: Vec<DaemonCredential>,
    /// Timestamp of the context's files, in seconds since 1970; the base's own where absent.
    pub timestamp: Option<u64>,
}

#[derive(Debug, thiserror::Error, Diagnose)]
#[error(
    "step {} of {} failed{}: {}",
    step.number,
    step.count,
    exit_code.map_or_else(String::new, |code| format!(" with exit code {code}")),
    step.instruction
)]
#[diagnose(code = "daemon/step", hint = failure_hint(step, *exit_code, output))]
pub(crate) struct StepError {
    pub(crate) step: BuildStep,
    /// Exit code, if a program failed.
    pub(crate) exit_code: Option<ExitCode>,
    /// The daemon's message and the last lines of the program.
    #[source]
    pub(crate) output: StepOutput,
}

/// Output about a failed step, whose lines begin with a bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepOutput {
    /// The daemon's message.
    pub(crate) message: String,
    /// The last lines of the step's program.
    pub(crate) lines: Vec<String>,
}

impl std::error::Error for StepOutput {}

impl fmt::Display for StepOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.lines.is_empty() {
            f.write_str("; last lines of its output:")?;
        }
        for line in &self.lines {
            write!(f, "\n    | {line}")?;
        }
        Ok(())
    }
}

fn during(step: Option<&BuildStep>) -> String {
    step.map_or_else(String::new, |step| {
        let BuildStep { number, count, .. } = step;
        format!(" at step {number} of {count}")
    })
}

fn failure_hint(
    step: &BuildStep,
    exit_code: Option<ExitCode>,
    output: &StepOutput,
) -> Option<String> {
    let failure = Failure {
        message: &output.message,
        output: &output.lines,
        exit_code,
        image: step.base(),
    };
    failure.hint()
}

impl Daemon {
    /// Builds an image and returns its details. Dropping the future cancels the build.
    pub async fn build(
        &self,
        listing: ContextListing,
        options: &DockerBuildOptions,
        progress: &dyn Progress,
    ) -> Result<ImageInfo, BoxError> {
        let parameters = options.for_bollard(&listing);
        let task = progress.task("build context", Some(listing.bytes));
        let (body, outcome) = upload(listing, options.timestamp.unwrap_or_default(), task);
        let context = bollard::body_try_stream(body);
        let call = async |docker: Docker| {
            let credentials = options.credentials();
            let mut messages = docker.build_image(parameters, Some(credentials), Some(context));
            messages.try_next().await
        };
        let mut steps = Steps::new(progress);
        let built = match self.client.call_raw(WHAT, &options.rest(), call).await {
            Ok(answer) => follow(Messages::new(WHAT, answer), &mut steps, progress).await,
            Err(error) => Err(Stop::Failed(error)),
        };
        let id = match built {
            Ok(id) => id.ok_or_else(|| {
                let problem = "the Docker daemon finished the build without naming an image";
                Problem::new("daemon/answer", problem)
            })?,
            Err(stop) => {
                // The upload error is the cause; the daemon only reports half a context.
                return Err(match lock(&outcome).take() {
                    Some(error) => Problem::context("cannot send the build context", error).into(),
                    None => stop.explain(steps),
                });
            }
        };
        steps.finish();
        let image = self.image(&id).await?;
        if image.id != id {
            let shown = &image.id;
            let problem = format!("the Docker daemon built {id}, but shows {shown} instead");
            return Err(Problem::new("daemon/answer", problem).into());
        }
        Ok(image)
    }
}

enum Stop {
    Step(DaemonFailure),
    /// The build failed without details.
    Failed(DockerError),
}

impl Stop {
    fn explain(self, steps: Steps<'_>) -> BoxError {
        let (step, lines) = steps.into_failure();
        match (self, step) {
            (Self::Failed(error @ DockerError::Broken { .. }), step) => {
                let what = format!("the build was interrupted{}", during(step.as_ref()));
                Problem::context(what, error).into()
            }
            (Self::Failed(error), _) => error.into(),
            (Self::Step(complaint), Some(step)) => {
                let message = one_line(&complaint.message);
                let reported = complaint.exit_code.and_then(ExitCode::new);
                StepError {
                    step,
                    exit_code: reported.or_else(|| exit_code_in(&message)),
                    output: StepOutput { message, lines },
                }
                .into()
            }
            (Self::Step(complaint), None) => DockerError::Refused {
                what: WHAT.to_owned(),
                status: None,
                message: one_line(&complaint.message),
                image: None,
            }
            .into(),
        }
    }
}

/// Reads the daemon's messages to the end, and returns the image's id.
async fn follow(
    mut messages: Messages,
    steps: &mut Steps<'_>,
    progress: &dyn Progress,
) -> Result<Option<String>, Stop> {
    let mut layers = Layers::new(progress);
    let mut id = None;
    while let Some(message) = messages.next().await.map_err(Stop::Failed)? {
        if let Some(complaint) = message.complaint {
            return Err(Stop::Step(complaint));
        }
        if let Some(text) = &message.stream {
            steps.read(text);
        }
        layers.show(&message);
        id = message.built.or(id);
    }
    Ok(id)
}

impl DockerBuildOptions {
    /// The proxies among the build arguments.
    pub(crate) fn proxies(&self) -> impl Iterator<Item = (&String, &String)> {
        let given = self.arguments.iter();
        given.filter(|(name, _)| name.to_ascii_lowercase().ends_with("_proxy"))
    }

    fn for_bollard(&self, listing: &ContextListing) -> BuildImageOptions {
        let table = |values: &BTreeMap<String, String>| {
            (!values.is_empty()).then(|| values.clone().into_iter().collect())
        };
        BuildImageOptions {
            dockerfile: listing.dockerfile.clone(),
            target: listing.target.clone().unwrap_or_default(),
            // The containers of steps are removed, also those of failed ones.
            rm: true,
            forcerm: true,
            pull: self.pull.then(|| "1".to_owned()),
            nocache: self.no_cache,
            buildargs: table(&self.arguments),
            labels: table(&listing.labels),
            networkmode: self.network.clone(),
            ..BuildImageOptions::default()
        }
    }

    /// Query parameters that bollard's options lack.
    fn rest(&self) -> String {
        let isolation = self
            .isolation
            .map(|mode| format!("isolation={}", mode.name()));
        let memory = self.memory.map(|bytes| format!("memory={bytes}"));
        let rest: Vec<_> = isolation.into_iter().chain(memory).collect();
        rest.join("&")
    }

    fn credentials(&self) -> HashMap<String, DockerCredentials> {
        let entries = self.credentials.iter();
        entries
            .map(|one| (one.server.clone(), credentials(one)))
            .collect()
    }
}

/// Number of a step's last lines to keep for its error.
const LINES: usize = 20;
/// Maximum length of a line.
const LINE: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BuildStep {
    /// Its number, from 1.
    pub(crate) number: usize,
    pub(crate) count: usize,
    /// The instruction, as the daemon shows it.
    pub(crate) instruction: String,
}

pub(super) struct Steps<'a> {
    progress: &'a dyn Progress,
    current: Option<(BuildStep, Arc<dyn Task>)>,
    output: OutputTail,
}

/// The last lines of a step's program.
#[derive(Debug, Default)]
pub(crate) struct OutputTail {
    lines: VecDeque<String>,
    line: String,
    /// True after a carriage return.
    returned: bool,
}

impl OutputTail {
    /// Takes the next piece of text.
    pub(crate) fn read(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '\n' => self.end_line(),
                '\r' => self.returned = true,
                // Control characters are dropped: a program must not control the user's terminal.
                _ if character.is_control() && character != '\t' => {}
                _ => self.push(character),
            }
        }
    }

    fn push(&mut self, character: char) {
        // Text after a carriage return, as in progress bars, replaces the line.
        if std::mem::take(&mut self.returned) {
            self.line.clear();
        }
        if self.line.len() < LINE {
            self.line.push(character);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.returned = false;
        let line = without_passwords(line.trim_end());
        // The daemon's own lines, about containers and images in between, begin with an arrow.
        let is_own = line.starts_with(" --->") || line.starts_with("Removing intermediate");
        if line.trim().is_empty() || is_own {
            return;
        }
        tracing::debug!("  {line}");
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(crate) fn into_lines(mut self) -> Vec<String> {
        self.end_line();
        self.lines.into()
    }
}

impl<'a> Steps<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        Self {
            progress,
            current: None,
            output: OutputTail::default(),
        }
    }

    /// Takes the next piece of text.
    pub(super) fn read(&mut self, text: &str) {
        // A program may print what looks like a step, but each of the daemon's is one message.
        if let Some(step) = BuildStep::read(text).filter(|step| self.follows(step)) {
            self.finish();
            let (number, count, instruction) = (step.number, step.count, &step.instruction);
            tracing::debug!("step {number}/{count}: {instruction}");
            let label = format!("step {number}/{count} {instruction}");
            let task = self.progress.task(&label, None);
            self.current = Some((step, task));
            return;
        }
        self.output.read(text);
    }

    fn follows(&self, step: &BuildStep) -> bool {
        match &self.current {
            None => step.number == 1,
            Some((current, _)) => step.number == current.number + 1 && step.count == current.count,
        }
    }

    /// Finishes the line of the last step.
    pub(super) fn finish(&mut self) {
        self.output.end_line();
        self.output = OutputTail::default();
        if let Some((_, task)) = self.current.take() {
            task.done("done");
        }
    }

    /// The current step, and its last lines.
    pub(super) fn into_failure(self) -> (Option<BuildStep>, Vec<String>) {
        let step = self.current.map(|(step, _)| step);
        (step, self.output.into_lines())
    }
}

impl BuildStep {
    pub(super) fn base(&self) -> Option<&str> {
        let mut words = self.instruction.split(' ');
        words
            .next()
            .filter(|keyword| keyword.eq_ignore_ascii_case("from"))?;
        words.find(|word| !word.starts_with("--"))
    }

    /// Parses `Step 2/5 : RUN build.cmd`.
    fn read(text: &str) -> Option<Self> {
        let (position, instruction) = text.strip_prefix("Step ")?.split_once(" : ")?;
        let (number, count) = position.split_once('/')?;
        Some(Self {
            number: number.parse().ok()?,
            count: count.parse().ok()?,
            instruction: one_line(instruction),
        })
    }
}

#[cfg(test)]
mod tests {
    use wincimg_common::progress::Silent;

    use super::*;

    fn read(texts: &[&str]) -> (Option<BuildStep>, Vec<String>) {
        let mut steps = Steps::new(&Silent);
        for text in texts {
            steps.read(text);
        }
        steps.into_failure()
    }

    #[test]
    fn the_step_under_way_and_its_lines_are_known() {
        let (step, output) = read(&[
            "Step 1/2 : FROM base",
            "\n",
            " ---> 1234\n",
            "Step 2/2 : RUN a \\\n  https://bob:SECRET@repo.lan/x",
            "\n",
            " ---> Running in 5678\n",
            "fir",
            "st\r\nfatal: 'https://bob:SECRET@repo.lan/x'\n\nlast",
        ]);
        let step = step.unwrap();
        assert_eq!((step.number, step.count), (2, 2));
        assert_eq!(step.instruction, "RUN a \\ https://***@repo.lan/x");
        assert_eq!(output, ["first", "fatal: 'https://***@repo.lan/x'", "last"]);
    }

    #[test]
    fn a_program_that_prints_a_step_is_not_one() {
        let (step, output) = read(&["Step 1/2 : FROM x", "Step 9/9 : FAKE", "\n"]);
        assert_eq!(step.unwrap().number, 1);
        assert_eq!(output, ["Step 9/9 : FAKE"]);
    }

    #[test]
    fn a_line_that_is_written_over_counts_as_it_ends_and_colours_are_dropped() {
        let (_, output) = read(&[
            "Step 1/1 : RUN x",
            "\n",
            "10%\r55%",
            "\r100%\r\n",
            "\u{1b}[31mred\u{7}\ttab\r\n",
        ]);
        assert_eq!(output, ["100%", "[31mred\ttab"]);
    }

    #[test]
    fn of_much_output_the_end_is_kept_and_of_long_lines_the_beginning() {
        let many: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        let many = many.join("\n") + "\n";
        let (_, output) = read(&["Step 1/1 : RUN x", &many, &"x".repeat(5000)]);
        assert_eq!(output.len(), LINES);
        assert_eq!(output[LINES - 2], "999");
        assert_eq!(output[LINES - 1].len(), LINE);
    }
}
