//! `wincimg image try`: runs an image's program under wine.

use std::io::{IsTerminal as _, Read};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use wincimg_inspect::wine::{Prefix, Sandbox, StartCommand, StartError, WineInstallation};
use wincimg_inspect::{OwnContents, read_own_contents};
use wincimg_oci::document::Image;

use super::contents::only_image;
use super::shutdown;
use crate::cli::prelude::*;

/// Run an image's program under wine (experimental)
///
/// A smoke test without Windows: unpacks the image's own layers into a temporary wine prefix
/// (files, registry, environment, user folders), runs the entry point in its working directory, and
/// exits with its exit code.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image try oci:./web-1.4\n  \
    wincimg image try oci:./web-1.4 --alive-after 10s\n  \
    wincimg image try repo.mylan.k8s:8888/tool:2 -- --version\n  \
    wincimg image try oci:./web-1.4 --entrypoint cmd -- /c dir 'C:\\app'\n  \
    wincimg image try oci:./web-1.4 --dry-run --format json\n\n\
    bubblewrap isolates the program: it sees /usr, wine and its prefix, writes to its prefix, and has\n\
    no network without --network, no other processes, and at most 4 GiB of memory for each of its own.\n\
    Limit its time with --timeout. With --unsafe, the program runs with your rights and can access\n\
    your files, your network and your processes.\n\n\
    wine is not Windows: it has no PowerShell, no .NET Framework, no IIS and no Windows services.\n\
    Layers of Windows itself are skipped, and file permissions have no effect. A program that starts\n\
    here has its files, its settings and a valid command line. One that does not may still start on\n\
    Windows.\n\n\
    The exit code is the program's, or 255 if that is larger; wincimg's own errors have their usual\n\
    exit codes, and begin with \"error:\". wine is found on the PATH, or with WINELOADER and WINESERVER.")]
pub(super) struct Try {
    /// Image: a reference, oci:DIR[:TAG], docker-archive:FILE[:NAME] or docker-daemon:NAME
    #[arg(value_name = "IMAGE", value_parser = parse_source, add = complete::images())]
    image: ImageSource,
    /// Arguments instead of the image's command
    #[arg(value_name = "ARGS", last = true)]
    arguments: Vec<String>,
    /// Program to run instead of the image's entry point and command
    #[arg(long, value_name = "PROGRAM")]
    entrypoint: Option<String>,
    /// Select the image of this platform from an index
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Option<PlatformFilter>,
    /// Exit with 0 if the program still runs after this time, such as 10s: for servers and services
    #[arg(long, value_name = "TIME", value_parser = read_time, conflicts_with = "dry_run")]
    alive_after: Option<Duration>,
    /// Let the program use the network, and services of this machine
    #[arg(long, conflicts_with_all = ["dry_run", "unsafe_"])]
    network: bool,
    /// Run the program with your rights, without bubblewrap
    #[arg(long = "unsafe", conflicts_with = "dry_run")]
    unsafe_: bool,
    /// Print the program and its environment without running it; does not need wine
    #[arg(long)]
    dry_run: bool,
    /// Output format of --dry-run
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    connection: SourceArgs,
}

/// Time to wait for the last output of a program.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(10);
/// Exit code of a Windows program that Ctrl-C ends.
const CONTROL_C: u32 = 0xC000_013A;

/// Waits for a time, or forever.
async fn wait(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

impl Try {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        // Check for wine and a sandbox before anything is fetched.
        let wine = if self.dry_run {
            None
        } else {
            let wine = WineInstallation::find()?;
            let sandbox = if self.unsafe_ {
                Sandbox::none()
            } else {
                Sandbox::find(self.network)?
            };
            Some((wine, sandbox))
        };
        let reader = self.connection.connect(session)?;
        registry_args::run(async {
            let (source, image) = only_image(&reader, &self.image, self.platform.as_ref()).await?;
            let start = StartCommand::new(
                &image.config().config,
                self.entrypoint.as_deref(),
                &self.arguments,
            );
            let start = start.map_err(|error| {
                let is_none = error == StartError::NoProgram;
                let hint = || format!("name one: {}", self.instead("cmd -- /c set"));
                Failure::from(error).hint_if(is_none.then(hint))
            })?;
            let Some((wine, sandbox)) = wine else {
                let own = read_own_contents(&source, &image, &reader.progress).await?;
                return self.print(&image, &start, &own);
            };
            if start.is_powershell() {
                let problem = "the image starts PowerShell, which wine does not have";
                return Err(Failure::operation(problem).hint(format!(
                    "start a program of the image: {}",
                    self.instead("PROGRAM -- ARGS")
                )));
            }
            let undoing = shutdown::CleanupGuard::new();
            let prefix = Prefix::boot(wine, sandbox, &start.user);
            let own = read_own_contents(&source, &image, &reader.progress);
            let (own, prefix) = tokio::join!(own, prefix);
            let (prefix, own) = (prefix?, own?);
            let code = self.start_in(&prefix, &start, &own, session).await;
            drop(prefix);
            drop(undoing);
            if let Some(code) = code? {
                return Ok(answer(code, session));
            }
            let time = self.alive_after.unwrap_or_default();
            session.note(format_args!("the program still ran after {time:?}"));
            Ok(CommandOutcome::Yes)
        })
    }

    /// The command that starts another program of the image.
    fn instead(&self, program: &str) -> String {
        let mut words = ["wincimg", "image", "try"].map(str::to_owned).to_vec();
        words.push(self.image.to_string());
        words.extend(self.connection.to_words());
        let flags = [(self.network, "--network"), (self.unsafe_, "--unsafe")];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set);
        words.extend(flags.map(|(_, flag)| flag.to_owned()));
        words.push("--entrypoint".to_owned());
        words.extend(program.split(' ').map(str::to_owned));
        command_line(&words)
    }

    /// Unpacks the image into a wine prefix and runs its program; returns its exit code, or nothing
    /// if it still ran after the time of `--alive-after`, and was ended.
    async fn start_in(
        &self,
        prefix: &Prefix,
        start: &StartCommand,
        own: &OwnContents,
        session: &Session,
    ) -> Result<Option<u32>> {
        for (number, size) in &own.windows {
            let size = BinaryBytes(*size);
            session.note(format_args!(
                "skipped layer {number} ({size}), which is Windows itself: wine replaces it"
            ));
        }
        prefix.import(own.registry.as_deref()).await?;
        let skipped = prefix.copy_files(own, start)?;
        if let Some(first) = skipped.first() {
            session.warn(format_args!(
            "skipped {} files, links and names of the image that wine does not support, such as \
             {first}",
            skipped.len()
        ));
        }
        // On a terminal wine would draw its output.
        let input = if io::stdin().is_terminal() {
            Stdio::null()
        } else {
            Stdio::inherit()
        };
        let mut running = prefix.start(start, input)?;
        let (output, errors) = running.output();
        let ends = [
            output.map(|from| pass_on(from, io::stdout())),
            errors.map(|from| pass_on(from, io::stderr())),
        ];
        let ended = tokio::select! {
            ended = running.end() => ended,
            () = wait(self.alive_after) => return Ok(None),
        };
        let ended = ended.map_err(|error| {
            let is_missing = error.is_missing_program();
            let hint = || format!("to list the files: {}", self.instead("cmd -- /c dir"));
            Failure::from(error).hint_if(is_missing.then(hint))
        })?;
        for end in ends.into_iter().flatten() {
            // Processes that the program started may hold the output open.
            let _ = end.recv_timeout(OUTPUT_TIMEOUT);
        }
        Ok(Some(ended))
    }

    fn print(
        &self,
        image: &Image,
        start: &StartCommand,
        own: &OwnContents,
    ) -> Result<CommandOutcome> {
        let windows = own.windows.iter().map(|(number, _)| *number);
        let windows: Vec<usize> = windows.collect();
        let named = json!({"reference": self.image.to_string(), "digest": image.digest()});
        let contents = json!({
            "files": own.files.len(),
            "deleted": own.gone.len(),
            "registry": own.registry.is_some(),
            "layers": own.layers,
            "windows_layers": windows,
        });
        let answer = || extended(&extended(&named, json!(start)), contents);
        self.format
            .print(answer, |out| write_plan(start, own, &windows, out))
    }
}

/// Writes the command that would run, and what it would find.
fn write_plan(
    start: &StartCommand,
    own: &OwnContents,
    windows: &[usize],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut row =
        |name: &str, value: &dyn Display| writeln!(out, "{name:<12}{}", UntrustedText(value));
    row("starts", &start.command_line)?;
    row("in", &start.working_dir)?;
    row("as", &start.user)?;
    for (name, value) in &start.env {
        row("with", &format_args!("{name}={value}"))?;
    }
    row("files", &own.files.len())?;
    row("deletes", &own.gone.len())?;
    let registry = match own.registry {
        Some(_) => "changed",
        None => "unchanged",
    };
    row("registry", &registry)?;
    row("layers", &numbers(&own.layers))?;
    row("skipped", &numbers(windows))
}

fn numbers(layers: &[usize]) -> String {
    if layers.is_empty() {
        return "none".to_owned();
    }
    joined(layers, ", ")
}

/// Forwards the output of a program as it arrives.
fn pass_on(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
) -> Receiver<()> {
    let (done, end) = channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let passed = to.write_all(&buffer[..count]).and_then(|()| to.flush());
            if passed.is_err() {
                // The reader is gone, which the program has to notice.
                break;
            }
        }
        drop(from);
        let _ = done.send(());
    });
    end
}

fn answer(code: u32, session: &Session) -> CommandOutcome {
    match code {
        0 => return CommandOutcome::Yes,
        CONTROL_C => session.note("the program was interrupted"),
        1..=255 => session.note(format_args!("the program ended with exit code {code}")),
        _ => session.note(format_args!(
            "the program ended with exit code {code} (0x{code:08X})"
        )),
    }
    CommandOutcome::Code(u8::try_from(code).unwrap_or(u8::MAX))
}
