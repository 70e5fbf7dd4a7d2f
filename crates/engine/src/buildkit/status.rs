//! The state of a build, as `buildctl --progress=rawjson` prints it: the steps, their output, and
//! what failed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use wincimg_common::progress::{Progress, Task};

use crate::docker::{BuildStep, OutputTail, StepError, StepOutput, exit_code_in, one_line};

/// Number of `buildctl`'s last messages to keep.
const MESSAGES: usize = 20;
/// What ends together with a failed step.
const CANCELED: &str = "context canceled";

/// A line of the output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SolveStatus {
    vertexes: Option<Vec<Vertex>>,
    logs: Option<Vec<VertexLog>>,
}

/// A step, or other work.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Vertex {
    digest: String,
    name: String,
    started: Option<String>,
    completed: Option<String>,
    cached: bool,
    error: String,
}

/// Output of a step's program.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VertexLog {
    vertex: String,
    data: String,
}

struct Work {
    step: Option<BuildStep>,
    /// Its line, until it has ended.
    task: Option<Arc<dyn Task>>,
    output: OutputTail,
}

pub(super) struct BuildStatus<'a> {
    progress: &'a dyn Progress,
    /// Numbers of the instructions that make a layer.
    layers: &'a [usize],
    /// Number of instructions.
    count: usize,
    work: HashMap<String, Work>,
    /// The failed step and its error.
    failed: Option<(String, String)>,
    /// Errors of other work, and messages of `buildctl` itself.
    messages: VecDeque<String>,
}

impl<'a> BuildStatus<'a> {
    /// The state of a build of these instructions.
    pub(super) fn new(progress: &'a dyn Progress, layers: &'a [usize], count: usize) -> Self {
        Self {
            progress,
            layers,
            count,
            work: HashMap::new(),
            failed: None,
            messages: VecDeque::new(),
        }
    }

    /// Takes the next line.
    pub(super) fn read(&mut self, line: &[u8]) {
        let Ok(status) = serde_json::from_slice::<SolveStatus>(line) else {
            self.add_message(&String::from_utf8_lossy(line));
            return;
        };
        // The output of a step may be in the line that ends it.
        let vertexes = status.vertexes.unwrap_or_default();
        for vertex in vertexes.iter().filter(|it| it.started.is_some()) {
            if !self.work.contains_key(&vertex.digest) {
                self.work
                    .insert(vertex.digest.clone(), self.start(&vertex.name));
            }
        }
        for log in status.logs.unwrap_or_default() {
            let data = BASE64_STANDARD.decode(&log.data).unwrap_or_default();
            if let Some(work) = self.work.get_mut(&log.vertex) {
                work.output.read(&String::from_utf8_lossy(&data));
            }
        }
        for vertex in vertexes.into_iter().filter(|it| it.completed.is_some()) {
            self.end(vertex);
        }
    }

    fn add_message(&mut self, text: &str) {
        let text = one_line(text);
        if text.is_empty() {
            return;
        }
        tracing::debug!("buildctl: {text}");
        if self.messages.len() == MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(text);
    }

    fn end(&mut self, vertex: Vertex) {
        let work = self.work.get_mut(&vertex.digest);
        let is_step = work.as_ref().is_some_and(|work| work.step.is_some());
        if vertex.error.is_empty() {
            if let Some(task) = work.and_then(|work| work.task.take()) {
                task.done(if vertex.cached { "cached" } else { "done" });
            }
        } else if vertex.error.contains(CANCELED) {
            tracing::debug!("canceled: {}", one_line(&vertex.name));
        } else if is_step && self.failed.is_none() {
            self.failed = Some((vertex.digest, vertex.error));
        } else {
            self.add_message(&vertex.error);
        }
    }

    fn start(&self, name: &str) -> Work {
        let step = self.step(name);
        let label = match &step {
            Some(step) => format!("step {}/{} {}", step.number, step.count, step.instruction),
            None => one_line(name),
        };
        // Work of BuildKit itself, such as `[internal] load metadata`, is soon done.
        let is_shown = step.is_some() || !name.starts_with('[');
        tracing::debug!("{label}");
        Work {
            step,
            task: is_shown.then(|| self.progress.task(&label, None)),
            output: OutputTail::default(),
        }
    }

    /// Parses `[2/3] RUN build.cmd`, which counts only instructions that make a layer.
    fn step(&self, name: &str) -> Option<BuildStep> {
        let (position, instruction) = name.strip_prefix('[')?.split_once("] ")?;
        let position = position.rsplit(' ').next()?;
        let (number, count) = position.split_once('/')?;
        let (number, count): (usize, usize) = (number.parse().ok()?, count.parse().ok()?);
        let instruction = one_line(instruction);
        let number = self.layers.get(number.checked_sub(1)?)?;
        (count == self.layers.len()).then_some(BuildStep {
            number: *number,
            count: self.count,
            instruction,
        })
    }

    /// The error of a failed build: that of its step, or else the last message.
    pub(super) fn into_failure(mut self) -> Result<StepError, String> {
        if let Some((digest, error)) = self.failed {
            let work = self.work.remove(&digest);
            let step = work.and_then(|work| Some((work.step?, work.output)));
            return match step {
                // `FROM` fails for the registry's reasons.
                Some((step, output)) if step.number > 1 => Ok(step_error(step, &error, output)),
                _ => Err(one_line(&error)),
            };
        }
        let last = |messages: &VecDeque<String>| {
            let mut errors = messages.iter().rev();
            errors.find_map(|it| it.strip_prefix("error: ").map(str::to_owned))
        };
        let message = last(&self.messages).or_else(|| self.messages.pop_back());
        Err(message.unwrap_or_else(|| "it has no message".to_owned()))
    }
}

fn step_error(step: BuildStep, error: &str, output: OutputTail) -> StepError {
    let error = one_line(error);
    // The command itself is the author's text. Before 0.9: `executor failed running`.
    let message = match error.rsplit_once("exit code: ") {
        Some((_, code)) => format!("the command did not complete successfully: exit code: {code}"),
        None => error,
    };
    StepError {
        step,
        exit_code: exit_code_in(&message),
        output: StepOutput {
            message,
            lines: output.into_lines(),
        },
    }
}

#[cfg(test)]
mod tests {
    use wincimg_common::progress::Silent;

    use super::*;

    /// What `buildctl` 0.30 printed for `FROM`, `ARG`, `RUN`, `ENV`, `WORKDIR` and a `RUN` that fails.
    const FAILED: &str = include_str!("../../tests/data/buildctl-failed.jsonl");
    /// The same where the registry of the base does not answer.
    const NO_BASE: &str = include_str!("../../tests/data/buildctl-no-base.jsonl");

    const LAYERS: [usize; 4] = [1, 3, 5, 6];

    fn failure(printed: &str) -> Result<StepError, String> {
        let mut status = BuildStatus::new(&Silent, &LAYERS, 6);
        for line in printed.lines() {
            status.read(line.as_bytes());
        }
        status.into_failure()
    }

    #[test]
    fn the_failed_step_is_the_instruction_of_the_dockerfile() {
        let error = failure(FAILED).unwrap();
        assert_eq!((error.step.number, error.step.count), (6, 6));
        assert!(error.step.instruction.starts_with("RUN "));
        assert_eq!(error.exit_code.unwrap().to_string(), "7");
        assert_eq!(error.output.lines, ["begin", "cannot install"]);
        let expected = "the command did not complete successfully: exit code: 7";
        assert_eq!(error.output.message, expected);
    }

    #[test]
    fn without_a_failed_step_the_last_message_counts() {
        let message = failure(NO_BASE).unwrap_err();
        assert!(message.contains("connection refused"), "{message}");
        let unreadable = "no json\nerror: failed to solve: x\nlast\n";
        assert_eq!(failure(unreadable).unwrap_err(), "failed to solve: x");
        assert_eq!(failure("last\n\n").unwrap_err(), "last");
        assert_eq!(failure("").unwrap_err(), "it has no message");
    }

    #[test]
    fn names_of_other_work_and_other_counts_are_no_steps() {
        let status = BuildStatus::new(&Silent, &LAYERS, 6);
        let number = |name: &str| status.step(name).map(|step| step.number);
        assert_eq!(number("[1/4] FROM repo.lan/x@sha256:1"), Some(1));
        assert_eq!(number("[stage-0 4/4] RUN x"), Some(6));
        for name in [
            "[internal] load build definition from Dockerfile",
            "[auth] apps/web:pull token for repo.lan",
            "exporting to image",
            "[5/4] RUN x",
            "[0/4] RUN x",
            "[2/5] RUN x",
            "RUN [2/4] x",
        ] {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
