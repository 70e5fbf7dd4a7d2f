//! Credential helpers: external programs, each run in a process with limits on time and output.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use wincimg_common::process_group::ProcessGroup;
use wincimg_common::untrusted::Untrusted;

use super::secret::Secret;

/// Time limit; a user may have to unlock a key store.
const PATIENCE: Duration = Duration::from_secs(30);
/// Larger than any secret.
const MOST_OUTPUT: usize = 64 * 1024;
/// Interval between checks for its exit.
const PULSE: Duration = Duration::from_millis(5);
/// Maximum length of a quoted message.
const LONGEST_WORDS: usize = 200;

/// Credential returned by a helper.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct HelperCredential {
    #[serde(rename = "Username", default)]
    pub(super) user: String,
    #[serde(rename = "Secret")]
    pub(super) secret: Secret,
}

/// Gets the credential for a server from `docker-credential-NAME`, if it has one. Kills the helper
/// when it takes too long, writes too much, or `stopped` is cancelled.
pub(super) fn get(
    name: &str,
    server: &str,
    stopped: &CancellationToken,
) -> Result<Option<HelperCredential>, String> {
    let Some(output) = run(name, "get", server, stopped)? else {
        return Ok(None);
    };
    // The parser's own message would quote the response, which may contain a secret.
    serde_json::from_slice(&output)
        .map(Some)
        .map_err(|_| "its answer is not JSON with Username and Secret".to_owned())
}

/// Stores a password with a helper.
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
    match run(name, "store", &input.to_string(), stopped)? {
        Some(_) => Ok(()),
        None => Err("it failed: it has no credentials".to_owned()),
    }
}

/// Erases a server's credential; no error if there is none.
pub(super) fn erase(name: &str, server: &str, stopped: &CancellationToken) -> Result<(), String> {
    run(name, "erase", server, stopped).map(drop)
}

/// Runs a helper with an input; `None` if it has no credential.
fn run(
    name: &str,
    action: &str,
    input: &str,
    stopped: &CancellationToken,
) -> Result<Option<Vec<u8>>, String> {
    // The name becomes part of a file name, so it must not contain a path.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !name.chars().all(is_plain) {
        return Err("its name is not a valid program name".to_owned());
    }
    let mut command = Command::new(format!("docker-credential-{name}"));
    command
        .arg(action)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut helper =
        ProcessGroup::spawn_interactive(&mut command).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "it cannot be run: no such program in PATH".to_owned(),
            _ => format!("it cannot be run: {error}"),
        })?;
    let ended = wait(helper.program(), input, stopped);
    // Pipes that it or a child still holds open are not needed.
    drop(helper);
    let (succeeded, [output, errors]) = ended?;
    if succeeded {
        return Ok(Some(output));
    }
    // Helpers write errors to stdout; the protocol fixes the text for "unknown".
    let printed = [errors, output].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let all = printed.concat().to_lowercase();
    if all.contains("credentials not found") || all.contains("no credentials") {
        return Ok(None);
    }
    // It may print its answer and fail then.
    if all.contains("\"secret\"") {
        return Err("it failed; its output has a secret and is not shown".to_owned());
    }
    let mut lines = printed.iter().flat_map(|text| text.lines());
    let line = lines.find(|line| !line.trim().is_empty());
    Err(match line {
        Some(line) => format!("it failed: {}", beginning(line)),
        None => "it failed without a message".to_owned(),
    })
}

/// The first characters of an output line, for display.
fn beginning(line: &str) -> Untrusted<String> {
    Untrusted(line.trim().chars().take(LONGEST_WORDS).collect())
}

/// Waits for the exit of a helper; returns whether it succeeded, and its output and errors. Threads
/// that end when it closes its pipes read these.
fn wait(
    child: &mut Child,
    input: &str,
    stopped: &CancellationToken,
) -> Result<(bool, [Vec<u8>; 2]), String> {
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // A helper need not read its input; its exit status decides.
        thread::spawn(move || stdin.write_all(input.as_bytes()));
    }
    // One sender stays here, so that there is always something to wait for.
    let (sender, pipes) = channel();
    collect(0, child.stdout.take(), sender.clone());
    collect(1, child.stderr.take(), sender.clone());
    let mut written = [None, None];
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = child.try_wait().map_err(|error| error.to_string())?;
        if let Some(status) = status
            && written.iter().all(Option::is_some)
        {
            return Ok((status.success(), written.map(Option::unwrap_or_default)));
        }
        if stopped.is_cancelled() {
            return Err("it was stopped".to_owned());
        }
        if Instant::now() > deadline {
            let seconds = PATIENCE.as_secs_f32();
            return Err(format!("it did not answer within {seconds} seconds"));
        }
        match pipes.recv_timeout(PULSE) {
            Ok((pipe, Some(bytes))) => written[pipe] = Some(bytes),
            Ok((_, None)) => return Err(format!("it wrote more than {MOST_OUTPUT} bytes")),
            Err(_) => {}
        }
    }
}

/// Reads a pipe to its end and sends it with its number; without bytes if they are too many.
fn collect(
    number: usize,
    pipe: Option<impl Read + Send + 'static>,
    sender: Sender<(usize, Option<Vec<u8>>)>,
) {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let limit = MOST_OUTPUT as u64 + 1;
        if let Some(pipe) = pipe {
            // After an error, the output so far is used.
            let _ = pipe.take(limit).read_to_end(&mut bytes);
        }
        let bytes = (bytes.len() <= MOST_OUTPUT).then_some(bytes);
        let _ = sender.send((number, bytes));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helpers_name_is_no_path() {
        let stopped = CancellationToken::new();
        let refused = get("../../evil", "repo.lan", &stopped).unwrap_err();
        assert_eq!(refused, "its name is not a valid program name");
    }
}
