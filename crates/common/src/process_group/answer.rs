//! The answer of a helper, with limits on its time and size.

use std::io::{Read, Write};
use std::process::Output;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::ProcessGroup;

/// Interval between checks for its exit.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What the answer of a helper may take.
#[derive(Debug, Clone, Copy)]
pub struct AnswerLimits {
    /// Time until it has ended and closed its pipes.
    pub time: Duration,
    /// Bytes of its output. Of its errors, more are lost.
    pub output: usize,
}

impl ProcessGroup {
    /// Gives the program an input, and waits for its end and that of its pipes. The error completes a
    /// sentence about the helper, such as `was stopped`; the helper then ends when this is dropped.
    pub fn answer(
        &mut self,
        input: &str,
        limits: AnswerLimits,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Output, String> {
        let program = self.program();
        if let Some(mut stdin) = program.stdin.take() {
            let input = input.to_owned();
            // A helper need not read its input; its exit status decides.
            thread::spawn(move || stdin.write_all(input.as_bytes()));
        }
        // One sender stays here, so that there is always something to wait for.
        let (sender, pipes) = channel();
        collect(0, program.stdout.take(), limits.output, sender.clone());
        collect(1, program.stderr.take(), limits.output, sender.clone());
        let mut printed = [None, None];
        let deadline = Instant::now() + limits.time;
        loop {
            let status = program.try_wait();
            let status = status.map_err(|error| format!("did not end: {error}"))?;
            if let Some(status) = status
                && printed.iter().all(Option::is_some)
            {
                let [stdout, stderr] = printed.map(Option::unwrap_or_default);
                return Ok(Output {
                    status,
                    stdout,
                    stderr,
                });
            }
            if is_stopped() {
                return Err("was stopped".to_owned());
            }
            if Instant::now() > deadline {
                let seconds = limits.time.as_secs();
                return Err(format!("did not answer within {seconds} seconds"));
            }
            if let Ok((pipe, bytes)) = pipes.recv_timeout(POLL_INTERVAL) {
                if pipe == 0 && bytes.len() > limits.output {
                    return Err(format!("printed more than {} bytes", limits.output));
                }
                printed[pipe] = Some(bytes);
            }
        }
    }
}

/// Reads a pipe to its end, or to one byte above the limit, in a thread, and sends it with its
/// number.
fn collect(
    number: usize,
    pipe: Option<impl Read + Send + 'static>,
    limit: usize,
    sender: Sender<(usize, Vec<u8>)>,
) {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // After an error, the output so far is used.
            let _ = pipe.take(limit as u64 + 1).read_to_end(&mut bytes);
        }
        let _ = sender.send((number, bytes));
    });
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const LIMITS: AnswerLimits = AnswerLimits {
        time: Duration::from_mins(1),
        output: 1000,
    };

    fn answer(script: &str, limits: AnswerLimits, is_stopped: bool) -> Result<Output, String> {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut helper = ProcessGroup::spawn(&mut command).unwrap();
        helper.answer("asked", limits, || is_stopped)
    }

    #[test]
    fn a_helper_is_asked_and_answers() {
        let output = answer("cat; echo no >&2; exit 3", LIMITS, false).unwrap();
        assert_eq!(output.stdout, b"asked");
        assert_eq!(output.stderr, b"no\n");
        assert_eq!(output.status.code(), Some(3));
        // What it says besides its answer is cut.
        let output = answer("yes >&2; echo yes", LIMITS, false).unwrap();
        assert_eq!(output.stdout, b"yes\n");
    }

    #[test]
    fn a_helper_is_not_waited_for_without_end() {
        let soon = AnswerLimits {
            time: Duration::from_millis(100),
            ..LIMITS
        };
        let refused = |script, limits, is_stopped| answer(script, limits, is_stopped).unwrap_err();
        let expected = "printed more than 1000 bytes";
        assert_eq!(refused("exec yes", LIMITS, false), expected);
        let late = refused("exec sleep 60", soon, false);
        assert_eq!(late, "did not answer within 0 seconds");
        // Nor is what it left behind with its pipes.
        let late = refused("sleep 60 &", soon, false);
        assert_eq!(late, "did not answer within 0 seconds");
        assert_eq!(refused("exec sleep 60", LIMITS, true), "was stopped");
    }
}
