//! Credential plugins of a kubeconfig: programs that print a token or a client certificate.
//!
//! kube would run a plugin three times for a connection, and panic on a token with a line break.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use wincimg_common::diagnose::Problem;
use wincimg_common::process_group::{AnswerLimits, ProcessGroup};

/// A token is renewed this long before it expires.
const MARGIN: SignedDuration = SignedDuration::from_mins(1);

/// A user may have to log in with a browser; the output is larger than any token and certificate.
const LIMITS: AnswerLimits = AnswerLimits {
    time: Duration::from_mins(15),
    output: 1 << 20,
};

/// A plugin that prints tokens, and the last of them.
pub(super) struct Plugin {
    exec: ExecConfig,
    token: Mutex<Token>,
}

struct Token {
    header: HeaderValue,
    expires: Option<Timestamp>,
}

/// What a plugin prints.
#[derive(Deserialize)]
struct ExecCredential {
    status: Option<ExecCredentialStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredentialStatus {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

impl Plugin {
    /// Runs the plugin of a user who has no other credentials, in place of kube. A client certificate
    /// becomes part of the credentials.
    pub(super) async fn start(auth: &mut AuthInfo) -> Result<Option<Self>, Problem> {
        let has_other = auth.auth_provider.is_some()
            || auth.token.is_some()
            || auth.token_file.is_some()
            || auth.username.is_some() && auth.password.is_some();
        let Some(exec) = auth.exec.take_if(|_| !has_other) else {
            return Ok(None);
        };
        let status = run(exec.clone()).await?;
        if let (Some(certificate), Some(key)) =
            (&status.client_certificate_data, &status.client_key_data)
        {
            auth.client_certificate_data = Some(BASE64_STANDARD.encode(certificate));
            auth.client_key_data = Some(BASE64_STANDARD.encode(key).into());
            if status.token.as_ref().is_none_or(String::is_empty) {
                return Ok(None);
            }
        }
        let token = Mutex::new(Token::of(status)?);
        Ok(Some(Self { exec, token }))
    }

    /// The `Authorization` of a request, with a token that has not expired.
    pub(super) async fn header(&self) -> Result<HeaderValue, Problem> {
        let mut token = self.token.lock().await;
        let is_old = |expires: Timestamp| Timestamp::now() + MARGIN >= expires;
        if token.expires.is_some_and(is_old) {
            *token = Token::of(run(self.exec.clone()).await?)?;
        }
        Ok(token.header.clone())
    }
}

impl Token {
    fn of(status: ExecCredentialStatus) -> Result<Self, Problem> {
        let Some(token) = status.token.filter(|token| !token.is_empty()) else {
            return Err(problem("returned neither a token nor a client certificate"));
        };
        let Ok(mut header) = HeaderValue::try_from(format!("Bearer {}", token.trim())) else {
            let what = "returned a token with a line break or control character";
            return Err(problem(what));
        };
        header.set_sensitive(true);
        let expires = status.expiration_timestamp;
        Ok(Self { header, expires })
    }
}

async fn run(exec: ExecConfig) -> Result<ExecCredentialStatus, Problem> {
    let ran = spawn_blocking(move || run_blocking(&exec)).await;
    ran.map_err(|error| problem("did not end").source(error))?
}

/// Runs a plugin, which may ask the user unless the kubeconfig says `Never`.
fn run_blocking(exec: &ExecConfig) -> Result<ExecCredentialStatus, Problem> {
    let is_interactive = exec.interactive_mode != Some(ExecInteractiveMode::Never);
    let mut spec = json!({"interactive": is_interactive});
    if exec.provide_cluster_info {
        spec["cluster"] = serde_json::to_value(&exec.cluster).unwrap_or_default();
    }
    let info = json!({"apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec});
    let variables = exec.env.iter().flatten();
    let variables = variables.filter_map(|it| Some((it.get("name")?, it.get("value")?)));
    let mut command = Command::new(exec.command.as_deref().unwrap_or_default());
    command
        .args(exec.args.iter().flatten())
        .envs(variables)
        .env("KUBERNETES_EXEC_INFO", info.to_string());
    if is_interactive {
        command.stdin(Stdio::inherit()).stderr(Stdio::inherit());
    } else {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
    }
    let started = ProcessGroup::spawn_interactive(command.stdout(Stdio::piped()));
    let mut plugin = started.map_err(|error| {
        let program = exec.command.as_deref().unwrap_or_default();
        problem(&format!("{program:?} cannot be run"))
            .source(error)
            .hint_if(exec.install_hint.as_deref())
    })?;
    // A signal ends all helpers.
    let answer = plugin.answer("", LIMITS, || false);
    let output = answer.map_err(|error| problem(&error))?;
    if !output.status.success() {
        return Err(failed(&output));
    }
    // What it left behind stays, as with kubectl: it may be a cache of tokens, or a browser.
    plugin.keep_rest();
    // The parser's own message would quote the output, which may contain a token.
    let printed = serde_saphyr::from_slice(&output.stdout);
    let printed: ExecCredential =
        printed.map_err(|_| problem("did not print an ExecCredential"))?;
    Ok(printed.status.unwrap_or_default())
}

fn problem(what: &str) -> Problem {
    let problem = format!("the kubeconfig's credential plugin {what}");
    Problem::new("cluster/config", problem)
        .hint("check with `kubectl get nodes` in the same context")
}

/// Error of a plugin, without its standard output, which may contain a token. Its command line is left
/// out too: variables that the kubeconfig sets may be secret.
fn failed(output: &Output) -> Problem {
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.split_whitespace().take(100).collect();
    let what = format!("failed: {} {}", output.status, said.join(" "));
    problem(what.trim_end())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// A user with a plugin, which prints this and counts its runs in a file.
    fn user(printed: &str, runs: &str) -> AuthInfo {
        user_of(format!("echo >>{runs}; echo '{printed}'"))
    }

    fn user_of(script: String) -> AuthInfo {
        let exec = ExecConfig {
            command: Some("sh".to_owned()),
            args: Some(vec!["-c".to_owned(), script]),
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..ExecConfig::default()
        };
        AuthInfo {
            exec: Some(exec),
            ..AuthInfo::default()
        }
    }

    #[tokio::test]
    async fn a_plugin_runs_again_when_its_token_has_expired() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("runs");
        let runs = file.display().to_string();
        for (expires, expected) in [
            ("", 1),
            (r#","expirationTimestamp":null"#, 1),
            (r#","expirationTimestamp":"2999-01-01T00:00:00Z""#, 1),
            (r#","expirationTimestamp":"2001-01-01T00:00:00Z""#, 3),
        ] {
            let printed = format!(r#"{{"status":{{"token":"abc"{expires}}}}}"#);
            let mut auth = user(&printed, &runs);
            let plugin = Plugin::start(&mut auth).await.unwrap().unwrap();
            assert!(auth.exec.is_none(), "kube would run it too");
            for _ in 0..2 {
                let header = plugin.header().await.unwrap();
                assert_eq!(header, "Bearer abc");
                assert!(header.is_sensitive());
            }
            let counted = std::fs::read(&file).unwrap().len();
            assert_eq!(counted, expected, "{printed}");
            std::fs::remove_file(&file).unwrap();
        }
    }

    #[tokio::test]
    async fn a_plugin_that_talks_without_end_is_not_listened_to() {
        let mut endless = user_of("exec yes".to_owned());
        let Err(refused) = Plugin::start(&mut endless).await else {
            panic!("it was listened to");
        };
        let expected = "the kubeconfig's credential plugin printed more than 1048576 bytes";
        assert_eq!(refused.to_string(), expected);
        // What it says besides its answer is cut.
        let script = r#"yes >&2; echo '{"status":{"token":"abc"}}'"#;
        let mut chatty = user_of(script.to_owned());
        assert!(Plugin::start(&mut chatty).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_client_certificate_becomes_part_of_the_credentials() {
        let printed = r#"{"status":{"clientCertificateData":"PEM","clientKeyData":"KEY"}}"#;
        let mut auth = user(printed, "/dev/null");
        let plugin = Plugin::start(&mut auth).await.unwrap();
        assert!(plugin.is_none() && auth.exec.is_none());
        assert_eq!(auth.client_certificate_data.as_deref(), Some("UEVN"));
        assert!(auth.client_key_data.is_some());
    }

    #[tokio::test]
    async fn other_credentials_take_precedence() {
        let mut auth = user("no", "/dev/null");
        auth.token = Some("abc".into());
        assert!(Plugin::start(&mut auth).await.unwrap().is_none());
    }
}
