//! Credential helpers: external programs, each run in a process with limits on time and output.

use std::io;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use wincimg_common::process_group::{AnswerLimits, ProcessGroup};
use wincimg_common::untrusted::UntrustedText;

use super::secret::Secret;

/// A user may have to unlock a key store; the output is larger than any secret.
const LIMITS: AnswerLimits = AnswerLimits {
    time: Duration::from_secs(30),
    output: 64 * 1024,
};
/// Maximum length of a quoted message.
const LONGEST_WORDS: usize = 200;

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
    let answer = helper.answer(input, LIMITS, || stopped.is_cancelled());
    // Pipes that it or a child still holds open are not needed.
    drop(helper);
    let Output {
        status,
        stdout,
        stderr,
    } = answer.map_err(|error| format!("it {error}"))?;
    if status.success() {
        return Ok(Some(stdout));
    }
    // Helpers write errors to stdout; the protocol fixes the text for "unknown".
    let printed = [stderr, stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
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
fn beginning(line: &str) -> UntrustedText<String> {
    UntrustedText(line.trim().chars().take(LONGEST_WORDS).collect())
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
