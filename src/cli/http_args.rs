//! Connections to hosts other than registries.

use wincimg_http::{HttpClient, RetryPolicy};

use super::registry_args::CertificateArgs;
use crate::cli::prelude::*;

pub(super) const USER_AGENT: &str = concat!("wincimg/", env!("CARGO_PKG_VERSION"));

/// Connection options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection options")]
pub(super) struct HttpArgs {
    /// Allow plain HTTP or an unverified certificate for this host (repeatable)
    #[arg(long = "insecure-registry", value_name = "HOST[:PORT]")]
    insecure: Vec<String>,
    #[command(flatten)]
    certificates: CertificateArgs,
    /// Time limit for the whole command, such as 90s, 10m or 1h [default: none]
    #[arg(long, value_name = "TIME", value_parser = read_time, hide_short_help = true)]
    timeout: Option<Duration>,
}

impl HttpArgs {
    pub(super) fn connect(&self, session: &Session) -> Result<HttpClient, Failure> {
        let progress = display(session);
        let http = HttpClient::new(USER_AGENT, &self.insecure, RetryPolicy::default(), progress)?;
        let http = http.with_certificates(self.certificates.files()?);
        Ok(http.with_time_limit(self.timeout))
    }

    /// The same flags as words of a command line.
    pub(super) fn to_words(&self) -> Vec<String> {
        let hosts = self.insecure.iter();
        let hosts = hosts.map(|host| ("--insecure-registry", host.clone()));
        let paths = self.certificates.paths();
        let paths = paths.map(|(flag, path)| (flag, path.display().to_string()));
        let words = hosts.chain(paths);
        words
            .flat_map(|(flag, value)| [flag.to_owned(), value])
            .collect()
    }
}
