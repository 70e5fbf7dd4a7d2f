//! Arguments of commands that use registries and other hosts, their clients and their runtime.

use std::future::Future;
use std::num::NonZero;
use std::pin::Pin;
use std::sync::Mutex;
use std::thread;
use wincimg_engine::bases::BaseSearch;
use wincimg_engine::build::BuildContext;
use wincimg_http::{HttpClient, RetryPolicy};

use jiff::SignedDuration;
use tokio::runtime::Builder;
use wincimg_common::lock;
use wincimg_common::progress::Silent;
use wincimg_http::CertificateFiles;
use wincimg_inspect::bases::{BaseRegistry, MICROSOFT};
use wincimg_oci::remote::RegistryOptions;

use super::shutdown;
use crate::cli::prelude::*;

/// Time limit for checking that a registry responds.
const SHORT_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for a trial push, which takes some twenty requests.
const TEST_PUSH_TIMEOUT: Duration = Duration::from_mins(1);

/// Time limit for threads to end when their work is cancelled.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Certificates trusted in addition to the system's.
#[derive(Debug, Clone, Args)]
pub(super) struct CertificateArgs {
    /// Trust the CAs and self-signed certificates in this file (repeatable)
    #[arg(long = "ca-file", value_name = "FILE", hide_short_help = true)]
    ca_files: Vec<PathBuf>,
    /// Read certificates from DIR/HOST[:PORT]: *.crt to trust, *.cert with *.key for client
    /// authentication [default: Docker's and containers' certs.d]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    certs_dir: Option<PathBuf>,
}

impl CertificateArgs {
    /// Files of `--ca-file` and the folder of `--certs-dir`, after a check.
    pub(super) fn files(&self) -> Result<CertificateFiles> {
        let mut found = CertificateFiles {
            files: self.ca_files.clone(),
            ..CertificateFiles::default()
        };
        for file in &self.ca_files {
            if !file.is_file() {
                return Err(not_a_file(file).hint("--ca-file takes a file of certificates in PEM"));
            }
        }
        if let Some(folder) = &self.certs_dir {
            if !folder.is_dir() {
                let problem = format!("{} is not a folder", folder.display());
                return Err(Failure::usage(problem)
                    .hint("--certs-dir takes a folder with one folder for each HOST[:PORT]"));
            }
            found.folders = vec![folder.clone()];
            found.is_named = true;
        }
        Ok(found)
    }

    fn to_words(&self) -> Vec<String> {
        let files = self.ca_files.iter().map(|file| file.display());
        let folder = self.certs_dir.iter().map(|folder| folder.display());
        [
            flag_words("--ca-file", files),
            flag_words("--certs-dir", folder),
        ]
        .concat()
    }
}

fn not_a_file(path: &Path) -> Failure {
    Failure::usage(if path.is_dir() {
        format!("{} is a folder", path.display())
    } else if path.exists() {
        format!("{} is not a file", path.display())
    } else {
        format!("{} does not exist", path.display())
    })
}

/// Connection options for registries.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Registry options")]
pub(super) struct RegistryArgs {
    /// Allow plain HTTP or an unverified certificate for this registry (repeatable)
    #[arg(long = "insecure-registry", value_name = "HOST[:PORT]")]
    pub(super) insecure: Vec<String>,
    #[command(flatten)]
    pub(super) certificates: CertificateArgs,
    /// Read credentials from this file [default: Docker's config.json, then `REGISTRY_AUTH_FILE` or
    /// containers' auth.json]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) registry_config: Option<PathBuf>,
    /// Send credentials over plain HTTP too
    #[arg(long, hide_short_help = true)]
    plain_credentials: bool,
    /// Send credentials to this token server of another site (repeatable)
    #[arg(
        long = "token-server",
        value_name = "HOST[:PORT]",
        hide_short_help = true
    )]
    token_servers: Vec<String>,
    /// Time limit for the whole command, such as 90s, 10m or 1h [default: none]
    #[arg(long, value_name = "TIME", value_parser = read_time, hide_short_help = true)]
    timeout: Option<Duration>,
}

impl RegistryArgs {
    pub(super) fn connect(&self, session: &Session) -> Result<RegistryClient> {
        self.connect_with(display(session))
    }

    /// The same, with a display of its transfers.
    pub(super) fn connect_with(&self, progress: Arc<dyn Progress>) -> Result<RegistryClient> {
        Ok(RegistryClient::new(self.options()?, progress)?)
    }

    /// The client for a quick check, with a short time limit.
    pub(super) fn connect_with_short_timeout(&self) -> Result<RegistryClient> {
        let options = RegistryOptions {
            retries: RetryPolicy {
                retries: 1,
                ..RetryPolicy::default()
            },
            timeout: Some(self.short_timeout()),
            ..self.options()?
        };
        Ok(RegistryClient::new(options, Arc::new(Silent))?)
    }

    /// The client for a trial push, in pieces of this size.
    pub(super) fn connect_for_test_push(&self, piece: u64) -> Result<RegistryClient> {
        let options = RegistryOptions {
            chunk_size: piece,
            timeout: Some(self.timeout.unwrap_or(TEST_PUSH_TIMEOUT)),
            ..self.options()?
        };
        Ok(RegistryClient::new(options, Arc::new(Silent))?)
    }

    /// The same flags as words of a command line.
    pub(super) fn to_words(&self) -> Vec<String> {
        let config = self.registry_config.iter().map(|file| file.display());
        let mut words = flag_words("--insecure-registry", &self.insecure);
        words.extend(self.certificates.to_words());
        words.extend(flag_words("--registry-config", config));
        words.extend(flag_words("--token-server", &self.token_servers));
        if self.plain_credentials {
            words.push("--plain-credentials".to_owned());
        }
        words
    }

    /// Time limit of such a check.
    pub(super) fn short_timeout(&self) -> Duration {
        self.timeout.unwrap_or(SHORT_TIMEOUT)
    }

    fn options(&self) -> Result<RegistryOptions> {
        if let Some(path) = &self.registry_config
            && !path.is_file()
        {
            let hint = "--registry-config takes a file like Docker's config.json";
            return Err(not_a_file(path).hint(hint));
        }
        Ok(RegistryOptions {
            user_agent: USER_AGENT,
            insecure: self.insecure.clone(),
            certificates: self.certificates.files()?,
            config_file: self.registry_config.clone(),
            token_servers: self.token_servers.clone(),
            plain_credentials: self.plain_credentials,
            timeout: self.timeout,
            ..RegistryOptions::default()
        })
    }
}

/// Connection options for registries, one of which has the base images.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Registry options")]
pub(super) struct BaseRegistryArgs {
    /// Registry or mirror of the base images
    #[arg(long, value_name = "HOST[/PREFIX]", default_value = MICROSOFT)]
    pub(super) base_registry: BaseRegistry,
    #[command(flatten)]
    pub(super) registry: RegistryArgs,
}

impl BaseRegistryArgs {
    /// The same flags as words of a command line.
    pub(super) fn to_words(&self) -> Vec<String> {
        let own = Some(self.base_registry.to_string()).filter(|it| it != MICROSOFT);
        [flag_words("--base-registry", own), self.registry.to_words()].concat()
    }
}

/// Runs a command to its end or until it is asked to stop: then the work is dropped, so that it can
/// clean up.
pub(super) fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    block_on(cores(), or_shutdown(Box::pin(work)))
}

/// Same as [`run`], in one thread: for work that hands heavy tasks to its own threads, and would
/// only lose time by moving between others.
pub(super) fn run_single_threaded<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    block_on(0, or_shutdown(Box::pin(work)))
}

/// Runs work that listens for [`shutdown::requested`] itself, because it has to clean up first.
pub(super) fn run_uninterrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    block_on(cores(), work)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// The work is in a box: otherwise the runtime would be compiled once for each command.
async fn or_shutdown<T>(work: Pin<Box<dyn Future<Output = Result<T>> + '_>>) -> Result<T> {
    tokio::select! {
        result = work => result,
        reason = shutdown::requested() => Err(shutdown::failure(reason)),
    }
}

/// Runs work in a runtime with this number of workers, or in this thread alone.
fn block_on<T>(workers: usize, work: impl Future<Output = Result<T>>) -> Result<T> {
    check_threads(workers + 2).map_err(shutdown::no_threads)?;
    let mut runtime = match workers {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(shutdown::no_threads)?;
    let result = runtime.block_on(work);
    // Blocked threads are not waited for, but cancelled work may finish.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    result
}

/// Checks that the system allows the threads of the runtime and of blocking calls: without them, the
/// runtime panics or waits forever.
fn check_threads(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        // They exist at the same time, and are gone when the runtime starts.
        let held = lock(&gate);
        let threads =
            (0..count).map(|_| thread::Builder::new().spawn_scoped(scope, || drop(lock(&gate))));
        let threads: io::Result<Vec<_>> = threads.collect();
        drop(held);
        for thread in threads? {
            let _ = thread.join();
        }
        Ok(())
    })
}

pub(super) fn read_time(text: &str) -> Result<Duration, String> {
    let expected = || format!("invalid time {text:?}: expected 90s, 10m or 1h");
    let plain_seconds = text.parse().map(Duration::from_secs);
    let time = match plain_seconds {
        Ok(time) => time,
        Err(_) => text
            .parse::<SignedDuration>()
            .ok()
            .and_then(|time| time.try_into().ok())
            .ok_or_else(expected)?,
    };
    if time.is_zero() {
        Err(expected())
    } else {
        Ok(time)
    }
}

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
    pub(super) fn connect(&self, session: &Session) -> Result<HttpClient> {
        let progress = display(session);
        let http = HttpClient::new(USER_AGENT, &self.insecure, RetryPolicy::default(), progress)?;
        let http = http.with_certificates(self.certificates.files()?);
        Ok(http.with_time_limit(self.timeout))
    }

    /// The same flags as words of a command line.
    pub(super) fn to_words(&self) -> Vec<String> {
        let hosts = flag_words("--insecure-registry", &self.insecure);
        [hosts, self.certificates.to_words()].concat()
    }
}

/// The services of a command, with its registry flags.
pub(super) fn online<'s>(
    connection: &RegistryArgs,
    session: &'s Session,
) -> Result<BuildContext<'s>> {
    let progress = display(session);
    let registry = connection.connect_with(Arc::clone(&progress))?;
    session.cache.enable_document_cache(&registry);
    Ok(BuildContext {
        bases: BaseSearch::new(&registry),
        library: session.cache.facts_provider(&registry, &progress),
        downloads: session.cache.downloads(),
        remembered: session.cache.diff_id_cache(),
        cache: session.cache.folder(),
        registry,
        progress,
        reporter: session,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let seconds = |text| read_time(text).map(|time| time.as_secs()).ok();
        assert_eq!(seconds("90"), Some(90));
        assert_eq!(seconds("90s"), Some(90));
        assert_eq!(seconds("10m"), Some(600));
        assert_eq!(seconds("1h 30m"), Some(5400));
        for text in ["", "0", "-5s", "soon", "1x"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
