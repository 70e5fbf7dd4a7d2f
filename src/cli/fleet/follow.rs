//! `wincimg fleet follow`: runs the controller of a fleet and prints its events as lines.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use wincimg_cluster::live::{LeaseName, LiveError};
use wincimg_cluster::names::{is_dns_label, is_dns_subdomain};
use wincimg_common::diagnose::Diagnose as _;
use wincimg_common::lock;
use wincimg_engine::build::BuildContext;
use wincimg_engine::delivery::AttachmentOptions;
use wincimg_engine::fleet::follow::{
    ControllerConfig, ControllerEvent, EntryOutcome, EntryResult, FleetController, NodeState,
    listen,
};
use wincimg_engine::fleet::{DedupReporter, FleetReport, SyncOptions};
use wincimg_windows::missing_fixes::{ImageFixes, MissingFixes};

use super::read_fleet;
use crate::cli::build::source_date_epoch;
use crate::cli::hosts::ClusterArgs;
use crate::cli::output::stdout;
use crate::cli::prelude::*;
use crate::cli::recipe_args::InstallerArgs;
use crate::cli::{security, shutdown};
use crate::report::image_by_table;

/// Manifest with the rights that the controller requires.
const ROLE: &str = "templates/ci/kubernetes/fleet/rbac.yaml";

/// Time to wait for further nodes, because nodes are patched or created in groups.
const SETTLE: Duration = Duration::from_secs(1);

/// Shortest lease: one slow answer would lose a shorter one.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// Watch a cluster and build a fleet's images as nodes change
///
/// Builds the images as soon as a node has a Windows build that is new to the cluster. Several
/// replicas can run: one holds a Lease and works, another takes over when it ends. It is safe to
/// stop at any time.
#[derive(Debug, Args)]
#[command(
    next_display_order = 10,
    after_help = "Examples:\n  \
    wincimg fleet follow fleet.toml --kube\n  \
    wincimg fleet follow fleet.toml --kube --listen :8080 --resync 30m\n  \
    kubectl apply -k templates/ci/kubernetes/fleet\n\n\
    Prints a line for each image that is built or missing, and for each node whose images exist, and\n\
    emits an event for the node. A signal ends it and releases the lease."
)]
pub(super) struct FollowArgs {
    /// Fleet file
    #[arg(value_name = "FILE", add = complete::fleets())]
    file: PathBuf,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Lease for leader election [default namespace: the context's, or the pod's]
    #[arg(
        long,
        value_name = "[NAMESPACE/]NAME",
        default_value = "wincimg-fleet",
        value_parser = lease_name,
        hide_short_help = true
    )]
    lease: (Option<String>, String),
    /// Lease duration: another replica takes over when the leader is silent for this long
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = read_time, hide_short_help = true)]
    lease_duration: Duration,
    /// Interval between full checks of all images
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = read_time, hide_short_help = true)]
    resync: Duration,
    /// Initial delay before a failed image is retried; doubles up to --resync
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = read_time, hide_short_help = true)]
    retry: Duration,
    /// Serve /metrics, /healthz and /readyz on this address, over plain HTTP without
    /// authentication; :8080 listens on all addresses [default: off]
    #[arg(long, value_name = "[HOST]:PORT", value_parser = listen_address)]
    listen: Option<String>,
    /// Output format: text, or one JSON object per line
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    installers: InstallerArgs,
    #[command(flatten)]
    connection: BaseRegistryArgs,
}

fn listen_address(text: &str) -> Result<String, &'static str> {
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => Ok(text.to_owned()),
        _ => Err("expected [HOST]:PORT such as :8080"),
    }
}

/// Parses the name of a lease, optionally with a namespace before it.
fn lease_name(text: &str) -> Result<(Option<String>, String), &'static str> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    if is_dns_subdomain(name) && namespace.is_none_or(is_dns_label) {
        Ok((namespace.map(str::to_owned), name.to_owned()))
    } else {
        Err("expected NAME or NAMESPACE/NAME in lower-case letters, digits, - and .")
    }
}

impl FollowArgs {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        self.check_flags()?;
        let fleet = read_fleet(&self.file, &self.installers)?;
        let reporter = DedupReporter {
            reporter: session,
            printed: &Mutex::default(),
            about: None,
        };
        let ctx = BuildContext {
            reporter: &reporter,
            ..online(&self.connection.registry, session)?
        };
        let flags = self.connection.registry.to_words();
        let run = SyncOptions {
            flags: &flags,
            written: &[],
            all_or_nothing: false,
            ctx: &ctx,
            base_registry: &self.connection.base_registry,
            documents: &AttachmentOptions::default(),
            created: source_date_epoch()?,
            today: Zoned::now().date(),
        };
        shutdown::expect_signal();
        let undoing = shutdown::CleanupGuard::new();
        let ended = registry_args::run_uninterrupted(async {
            let listener = match &self.listen {
                Some(place) => Some(
                    listen(place)
                        .await
                        .with_context(|| format!("cannot listen at {place}"))?,
                ),
                None => None,
            };
            let mut cluster = self.cluster.connect().await?;
            cluster.rbac_template = ROLE;
            let config = self.config(&cluster.namespace);
            let lines = Lines::new(session, self.format);
            let stop = async {
                shutdown::requested().await;
            };
            let controller = FleetController {
                cluster,
                fleet,
                run,
                config,
                listener,
                on_event: Arc::new(move |event| lines.take(&event)),
            };
            Ok(controller.run(stop).await?)
        });
        drop(undoing);
        ended.map(|()| CommandOutcome::Yes)
    }

    fn check_flags(&self) -> Result<()> {
        if !self.cluster.is_set() {
            let problem = "fleet follow requires --kube: it watches the nodes of a cluster";
            let file = self.file.display().to_string();
            return Err(Failure::usage(problem).hint(format!(
                "{}; `wincimg fleet build` takes nodes from a file",
                command_line(&["wincimg", "fleet", "follow", &file, "--kube"])
            )));
        }
        if self.lease_duration < SHORTEST_LEASE {
            let problem = "invalid --lease-duration: expected at least 1s";
            return Err(Failure::usage(problem));
        }
        Ok(())
    }

    fn config(&self, namespace: &str) -> ControllerConfig {
        let (own_namespace, name) = &self.lease;
        let namespace = own_namespace.as_deref().unwrap_or(namespace);
        let file = self.file.display().to_string();
        ControllerConfig {
            lease: LeaseName {
                namespace: namespace.to_owned(),
                name: name.clone(),
            },
            identity: identity(),
            lease_duration: self.lease_duration,
            resync: self.resync,
            retry: self.retry,
            settle: SETTLE,
            version: env!("WINCIMG_VERSION"),
            next_command: command_line(&["wincimg", "fleet", "check", &file, "--kube"]),
        }
    }
}

/// A readable and unique name: even a restart of the same container gets another one.
fn identity() -> String {
    let mut names = ["POD_NAME", "HOSTNAME", "COMPUTERNAME"]
        .into_iter()
        .filter_map(|variable| std::env::var(variable).ok());
    let name = names.find(|name| !name.is_empty());
    let name = name.as_deref().unwrap_or("wincimg").chars().take(63);
    let name: String = name.collect();
    let chance = RandomState::new().hash_one(std::process::id());
    format!("{name}_{chance:016x}")
}

/// Prints events as lines: images and nodes on stdout, the state of the controller on stderr.
struct Lines {
    session: Session,
    /// Messages about security fixes.
    printed: Mutex<HashSet<String>>,
    format: OutputFormat,
    /// Security fixes that images lack, as they were printed.
    fixes: Mutex<BTreeMap<Option<String>, ImageFixes>>,
}

impl Lines {
    fn new(session: &Session, format: OutputFormat) -> Self {
        Self {
            session: session.clone(),
            printed: Mutex::default(),
            format,
            fixes: Mutex::default(),
        }
    }

    fn take(&self, event: &ControllerEvent<'_>) {
        let session = &self.session;
        match event {
            ControllerEvent::Leads => {
                session.note("acquired the lease: this replica is the leader");
            }
            ControllerEvent::Stopped => {
                session.warn("lost the lease: this replica is no longer the leader");
            }
            ControllerEvent::Waits(Some(holder)) => {
                session.note(format_args!("waiting for the lease: {holder} holds it"));
            }
            ControllerEvent::Waits(None) => session.note("waiting for the lease"),
            ControllerEvent::Failure(error) => self.warn(error),
            ControllerEvent::Image(result) => self.image(result),
            ControllerEvent::Checked(report) => self.fixes(report),
            ControllerEvent::Node(node, state) => self.node(&node.name, state),
        }
    }

    fn warn(&self, error: &LiveError) {
        let hint = error.diagnosis().hint;
        let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
        self.session
            .warn(format_args!("{}{hint}", error_chain(error)));
    }

    fn image(&self, result: &EntryResult) {
        let (entry, build) = (&result.entry, &result.build);
        let (state, words, problem, hint) = match &result.outcome {
            EntryOutcome::Ready => ("ready", format!("{entry} exists for {build}"), None, None),
            EntryOutcome::Made => ("made", format!("built {entry} for {build}"), None, None),
            EntryOutcome::Missing { problem, hint } => (
                "missing",
                format!("{entry} is missing for {build}: {problem}"),
                Some(problem),
                hint.as_ref(),
            ),
        };
        let line = json!({
            "image": entry, "build": build, "state": state, "problem": problem, "hint": hint,
        });
        self.print(&words, &line);
        if let (OutputFormat::Text, Some(hint)) = (self.format, hint) {
            self.session.note(hint);
        }
    }

    /// Prints the images whose missing security fixes changed, if there is a table of fixes.
    fn fixes(&self, report: &FleetReport) {
        let reporter = DedupReporter {
            reporter: &self.session,
            printed: &self.printed,
            about: None,
        };
        let found = security::missing_in_fleet(report, &self.session, &reporter);
        let Some(mut found) = found else { return };
        let mut known = lock(&self.fixes);
        found.images.retain(|image| {
            let before = known.insert(image.reference.clone(), image.clone());
            match before {
                Some(before) => before != *image,
                None => image.missing > 0 || !image.known,
            }
        });
        let MissingFixes { table, images } = &found;
        match self.format {
            OutputFormat::Text => {
                for image in images {
                    self.print(&image_by_table(image, table), &Value::Null);
                }
            }
            OutputFormat::Json if images.is_empty() => {}
            OutputFormat::Json => self.print("", &json!({ "missing_fixes": found })),
        }
    }

    fn node(&self, name: &str, state: &NodeState) {
        let missing: Vec<&String> = state.missing.keys().collect();
        let (state, words) = match (missing.len(), state.of) {
            (0, 1) => ("ready", "its image is ready".to_owned()),
            (0, of) => ("ready", format!("all {of} images are ready")),
            (count, of) => ("missing", format!("{count} of {of} images missing")),
        };
        let words = format!("node {name}: {words}");
        let line = json!({"node": name, "state": state, "missing": missing});
        self.print(&words, &line);
    }

    fn print(&self, words: &str, line: &Value) {
        let mut out = stdout().lock();
        // A closed stdout does not end the work.
        let _ = match self.format {
            OutputFormat::Text => writeln!(out, "{}", UntrustedText(words)),
            OutputFormat::Json => writeln!(out, "{line}"),
        };
        let _ = out.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_named_with_its_namespace_or_without() {
        let read = |text: &str| lease_name(text).ok();
        assert_eq!(read("fleet"), Some((None, "fleet".to_owned())));
        let both = (Some("shop".to_owned()), "fleet-2".to_owned());
        assert_eq!(read("shop/fleet-2"), Some(both));
        for text in ["", "/", "a/", "/b", "a/b/c", "Fleet", "a b"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn host_names_are_exact() {
        assert_ne!(identity(), identity());
        assert!(identity().len() <= 128);
    }
}
