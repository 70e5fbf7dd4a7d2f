//! Credential helpers: programs of others, each asked in a process of its own that is not trusted
//! to answer, to end, or to be brief.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use wincimg_common::untrusted::Untrusted;

use super::secret::Secret;

/// How long one may take. A person may have to unlock something, but somebody has to be there.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than any secret has.
const MOST_OUTPUT: usize = 64 * 1024;
/// Interval between checks whether it has ended.
const PULSE: Duration = Duration::from_millis(5);
/// What of its own words is shown.
const LONGEST_WORDS: usize = 200;

/// Credential returned by a helper.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HelperCredential {
    pub(super) user: String,
    pub(super) secret: Secret,
}

#[derive(Deserialize)]
struct HelperResponse {
    #[serde(rename = "Username", default)]
    user: String,
    #[serde(rename = "Secret")]
    secret: Secret,
}

/// Asks `docker-credential-NAME` for what it has for a server; nothing where it has nothing. Ends
/// it when it takes too long, says too much, or `stopped` is cancelled.
pub(super) fn get(
    name: &str,
    server: &str,
    stopped: &CancellationToken,
) -> Result<Option<HelperCredential>, String> {
    let Some(output) = run(name, "get", server, stopped)? else {
        return Ok(None);
    };
    // The parser's own message would quote the answer, and with it perhaps a secret.
    let answer: HelperResponse = serde_json::from_slice(&output)
        .map_err(|_| "its answer is not JSON with Username and Secret".to_owned())?;
    Ok(Some(HelperCredential {
        user: answer.user,
        secret: answer.secret,
    }))
}

/// Gives it a password to keep.
pub(super) fn store(
    name: &str,
    server: &str,
    user: &str,
    secret: &Secret,
    stopped: &CancellationToken,
) -> Result<(), String> {
    let input = serde_json::json!({
        "ServerURL": server,
        "Username": user,
        "Secret": secret.expose_secret(),
    });
    run(name, "store", &input.to_string(), stopped).map(drop)
}

/// Lets it forget what it has for a server; no error where it has nothing.
pub(super) fn erase(name: &str, server: &str, stopped: &CancellationToken) -> Result<(), String> {
    run(name, "erase", server, stopped).map(drop)
}

/// Runs it with an input; nothing where it says that it has nothing.
fn run(
    name: &str,
    action: &str,
    input: &str,
    stopped: &CancellationToken,
) -> Result<Option<Vec<u8>>, String> {
    // It becomes part of a file's name, which a path would lead elsewhere.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !name.chars().all(is_plain) {
        return Err("its name is not one that a program could have".to_owned());
    }
    let mut child = Command::new(format!("docker-credential-{name}"))
        .arg(action)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "it cannot be run: no such program in PATH".to_owned(),
            _ => format!("it cannot be run: {error}"),
        })?;
    let watched = HelperPipes::spawn_readers(&mut child, input);
    let ended = watched.wait(&mut child, PATIENCE, stopped);
    // What it still holds open, or a child of it, is of no interest.
    let _ = child.kill();
    let _ = child.wait();
    let (succeeded, output, errors) = ended?;
    if succeeded {
        return Ok(Some(output));
    }
    // Helpers write their error to stdout; the protocol's word for "unknown" is fixed.
    let said = [errors, output].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let all = said.concat().to_lowercase();
    if all.contains("credentials not found") || all.contains("no credentials") {
        return Ok(None);
    }
    let mut lines = said.iter().flat_map(|text| text.lines());
    let line = lines.find(|line| !line.trim().is_empty());
    Err(match line {
        Some(line) => format!("it failed: {}", beginning(line)),
        None => "it failed without a message".to_owned(),
    })
}

/// The beginning of a line of a program's, as it may be shown.
fn beginning(line: &str) -> Untrusted<String> {
    Untrusted(line.trim().chars().take(LONGEST_WORDS).collect())
}

type HelperOutput = (bool, Vec<u8>, Vec<u8>);

/// What comes out of a running helper, by threads that end when it closes its side.
struct HelperPipes {
    output: Receiver<Option<Vec<u8>>>,
    errors: Receiver<Option<Vec<u8>>>,
}

impl HelperPipes {
    fn spawn_readers(child: &mut Child, input: &str) -> Self {
        if let Some(mut stdin) = child.stdin.take() {
            let input = input.to_owned();
            // One that does not read has its own way of knowing.
            thread::spawn(move || stdin.write_all(input.as_bytes()));
        }
        Self {
            output: collect(child.stdout.take()),
            errors: collect(child.stderr.take()),
        }
    }

    /// Waits for its end: whether it succeeded, and what it wrote.
    fn wait(
        &self,
        child: &mut Child,
        patience: Duration,
        stopped: &CancellationToken,
    ) -> Result<HelperOutput, String> {
        let deadline = Instant::now() + patience;
        let too_slow = || {
            format!(
                "it did not answer within {} seconds",
                patience.as_secs_f32()
            )
        };
        let mut written = [None, None];
        loop {
            let status = child.try_wait().map_err(|error| error.to_string())?;
            for (pipe, written) in [&self.output, &self.errors].into_iter().zip(&mut written) {
                if written.is_none() {
                    match pipe.recv_timeout(PULSE) {
                        Ok(Some(bytes)) => *written = Some(bytes),
                        Ok(None) => {
                            return Err(format!("it wrote more than {MOST_OUTPUT} bytes"));
                        }
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => *written = Some(Vec::new()),
                    }
                }
            }
            if let (Some(status), [Some(output), Some(errors)]) = (status, &mut written) {
                let taken = (std::mem::take(output), std::mem::take(errors));
                return Ok((status.success(), taken.0, taken.1));
            }
            if stopped.is_cancelled() {
                return Err("it was ended".to_owned());
            }
            if Instant::now() > deadline {
                return Err(too_slow());
            }
            if written.iter().all(Option::is_some) {
                thread::sleep(PULSE);
            }
        }
    }
}

/// All that comes out of a pipe; none where that is too much.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Option<Vec<u8>>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let limit = MOST_OUTPUT as u64 + 1;
        if let Some(pipe) = pipe {
            // What came before an error is what there is.
            let _ = pipe.take(limit).read_to_end(&mut bytes);
        }
        let _ = sender.send((bytes.len() <= MOST_OUTPUT).then_some(bytes));
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helpers_name_is_no_path() {
        let stopped = CancellationToken::new();
        let refused = get("../../evil", "repo.lan", &stopped).unwrap_err();
        assert_eq!(refused, "its name is not one that a program could have");
    }
}
