//! `wincimg login` and `wincimg logout`: stores and removes credentials where other tools find them
//! too.

use std::io::Read;

use wincimg_common::progress::Silent;
use wincimg_common::untrusted::HIDDEN;
use wincimg_oci::prefix::PrefixError;
use wincimg_oci::remote::{AuthScheme as HowTo, RegistryError, Secret, erase, store};

use super::input::decode;
use super::prompt;
use crate::cli::prelude::*;

/// Size limit of a password.
const MOST_INPUT: u64 = 64 * 1024;

/// Log in to a registry
///
/// Verifies the credentials, then stores them with the credential helper of Docker's config.json,
/// or in that file if there is no helper.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg login repo.mylan.k8s:8888\n  \
    wincimg login repo.mylan.k8s:8888 -u bob --password-stdin < password.txt\n  \
    wincimg login docker.io\n\n\
    Exit code 3: the registry is unreachable or rejects the credentials; nothing is stored.")]
pub(super) struct Login {
    /// Registry
    #[arg(value_name = "HOST[:PORT]", value_parser = host)]
    host: String,
    /// User name [default: prompt]
    #[arg(short, long = "username", visible_alias = "user", value_name = "NAME")]
    user: Option<String>,
    /// Read the password from stdin
    #[arg(long, requires = "user")]
    password_stdin: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    connection: RegistryArgs,
}

/// Log out from a registry
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg logout repo.mylan.k8s:8888")]
pub(super) struct Logout {
    /// Registry
    #[arg(value_name = "HOST[:PORT]", value_parser = host)]
    host: String,
    /// Remove the credentials from this file [default: Docker's config.json]
    #[arg(long, value_name = "FILE")]
    registry_config: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

/// Host of a registry; a scheme, which Docker accepts too, and a trailing slash are ignored.
pub(super) fn host(text: &str) -> Result<String, String> {
    let bare = text.strip_prefix("https://").unwrap_or(text);
    let bare = bare.strip_prefix("http://").unwrap_or(bare);
    let bare = bare.trim_end_matches('/');
    let prefix: RegistryPrefix = bare.parse().map_err(|error| match error {
        PrefixError::Malformed(_) => {
            format!(
                "invalid registry {}: expected HOST[:PORT]",
                QuotedText(text)
            )
        }
        other @ PrefixError::Refused(_) => other.to_string(),
    })?;
    if prefix.to_string() != prefix.host() {
        let host = prefix.host();
        return Err(format!("credentials are stored per host: expected {host}"));
    }
    Ok(prefix.host().to_owned())
}

impl Login {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let registry = self.connection.connect_with(Arc::new(Silent))?;
        let (user, password) = self.credential()?;
        let ping = registry_args::run(async {
            let tried = registry.try_login(&self.host, &user, &password).await;
            tried.map_err(|error| {
                let is_denied = matches!(error, RegistryError::Denied { known: false, .. });
                let hint = "check the user and the password";
                Failure::from(error).hint_if(is_denied.then_some(hint))
            })
        })?;
        let file = self.connection.registry_config.as_deref();
        let progress = display(session);
        let kept = store(&self.host, &user, &password, file, progress.as_ref())?;
        if ping.login == HowTo::NotNeeded {
            session.note(format_args!(
                "{} requires no login, so the password was not verified",
                self.host
            ));
        }
        if kept.helper.is_none() {
            session.note(format_args!(
                "the password is not encrypted in {kept}: use a credential helper (credsStore) to \
                 store it safely"
            ));
        }
        let (host, name) = (&self.host, UntrustedText(&user));
        let answer = || json!({"host": host, "user": user, "kept_in": kept.to_string()});
        self.format.print(answer, |out| {
            writeln!(out, "logged in to {host} as {name}; kept in {kept}")
        })
    }

    fn credential(&self) -> Result<(String, Secret)> {
        let user = match &self.user {
            Some(user) => user.clone(),
            None => self
                .check_terminal()
                .and_then(|()| prompt::line("User: "))?,
        };
        // The password may follow a colon.
        let before = user.split_once(':').map(|(name, _)| name);
        if user.is_empty() || before.is_some() {
            let shown = before.map_or_else(String::new, |name| format!("{name}:{HIDDEN}"));
            let problem = format!(
                "invalid user {}: expected a name without a colon",
                QuotedText(shown)
            );
            return Err(Failure::usage(problem).hint("name it with --username NAME"));
        }
        let password = if self.password_stdin {
            from_stdin()?
        } else {
            self.check_terminal()?;
            prompt::hidden("Password: ")?
        };
        if password.is_empty() {
            return Err(Failure::usage("the password is empty"));
        }
        Ok((user, Secret::new(password)))
    }

    fn check_terminal(&self) -> Result<()> {
        if io::IsTerminal::is_terminal(&io::stdin()) {
            return Ok(());
        }
        let (what, user) = match &self.user {
            Some(user) => ("the password", user.as_str()),
            None => ("user and password", "NAME"),
        };
        let problem = format!("cannot prompt for {what} without a terminal");
        let login = ["wincimg", "login", &self.host, "--username", user];
        Err(Failure::usage(problem).hint(command_line(&login) + " --password-stdin < FILE"))
    }
}

/// Reads stdin without the trailing newline that `echo` adds, and a byte order mark.
fn from_stdin() -> Result<String> {
    let mut bytes = Vec::new();
    let mut stdin = io::stdin().lock().take(MOST_INPUT);
    stdin
        .read_to_end(&mut bytes)
        .context("cannot read the password")?;
    let text = decode(bytes).map_err(|failure| failure.context("cannot read the password"))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

impl Logout {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let progress = display(session);
        let file = self.registry_config.as_deref();
        let forgotten = erase(&self.host, file, progress.as_ref())?;
        if forgotten.is_none() {
            session.note(format_args!("no credentials stored for {}", self.host));
        }
        let place = forgotten.map(|place| place.to_string());
        let answer = || json!({"host": self.host, "removed_from": place});
        self.format.print(answer, |out| match &place {
            None => Ok(()),
            Some(place) => writeln!(out, "logged out of {}; removed from {place}", self.host),
        })
    }
}
