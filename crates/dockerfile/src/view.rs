//! A plan as the templates see it: ready words and lists of words, nothing to be decided or quoted.

use serde::Serialize;
use wincimg_iis::appcmd::Call;
use wincimg_iis::{IisSettings, appcmd};
use wincimg_images::shim::{Mode, recognise};
use wincimg_recipe::{Command, Plan};
use wincimg_registry::{RegistryEdit, Unseen};
use wincimg_windows::access::ICACLS;
use wincimg_windows::certificate::TrustedCertificate;
use wincimg_windows::inside::Inside;
use wincimg_windows::service::Service;
use wincimg_windows::shutdown;

use super::RenderError;
use super::context::{ContextEntry, DRIVE, FolderLink};
use super::guard::Guarded;
use super::registry::{REG, RegistryStep, calls, deletes, steps};
use super::words::Unwritable;

/// Where Windows has it.
const CMD: &str = r"C:\Windows\System32\cmd.exe";

/// What reads commands in shell form where the base does not say.
const DEFAULT_SHELL: [&str; 3] = ["cmd", "/S", "/C"];

/// Who may change everything; no base has another name for it.
const ADMINISTRATOR: &str = "ContainerAdministrator";

/// How many entries are removed by one command: cmd takes 8191 characters.
const REMOVALS_AT_ONCE: usize = 24;

/// How many links are made by one command; each has two paths.
const LINKS_AT_ONCE: usize = 12;

#[derive(Debug, Serialize)]
pub(super) struct View {
    name: Guarded,
    host_build: Guarded,
    base: Guarded,
    /// Who builds, where that is not the base's own user.
    build_user: Option<Guarded>,
    env: Vec<Pair>,
    reg_exe: Guarded,
    shutdown: Option<Shutdown>,
    registry: Vec<Registry>,
    files: Option<Copy>,
    cmd_exe: Guarded,
    links: Vec<Vec<Guarded>>,
    iis: Option<Iis>,
    workdir: Option<Guarded>,
    icacls: Guarded,
    access: Vec<Vec<Guarded>>,
    shell: Option<Vec<Guarded>>,
    steps: Vec<StepView>,
    ports: Vec<Guarded>,
    labels: Vec<Pair>,
    user: Option<Guarded>,
    shim: ShimView,
    entrypoint: Option<Words>,
    cmd: Option<Words>,
}

#[derive(Debug, Serialize)]
struct Pair {
    name: Guarded,
    value: Guarded,
}

/// An object, so that an empty list of words is not nothing.
#[derive(Debug, Serialize)]
struct Words {
    words: Vec<Guarded>,
}

#[derive(Debug, Serialize)]
struct Copy {
    source: Guarded,
    target: Guarded,
}

#[derive(Debug, Serialize)]
struct Shutdown {
    seconds: Guarded,
    commands: Vec<Vec<Guarded>>,
}

#[derive(Debug, Serialize)]
struct Registry {
    /// What the changes are for, where the recipe has a word for it.
    title: Option<Guarded>,
    reg_exe: Guarded,
    cmd_exe: Guarded,
    deletes: bool,
    steps: Vec<RegistryView>,
}

#[derive(Debug, Serialize)]
struct RegistryView {
    command: Option<Vec<Guarded>>,
    file: Option<RegistryFile>,
}

#[derive(Debug, Serialize)]
struct RegistryFile {
    source: Guarded,
    target: Guarded,
    path: Guarded,
}

/// The commands for IIS, each a list of words.
#[derive(Debug, Serialize)]
struct Iis {
    app_pools: Vec<Vec<Guarded>>,
    sites: Vec<Vec<Guarded>>,
    physical_path: Option<Vec<Guarded>>,
    app_pool_settings: Option<Vec<Guarded>>,
    config: Vec<Vec<Guarded>>,
    removals: Vec<Vec<Guarded>>,
    site: Vec<Vec<Guarded>>,
}

#[derive(Debug, Serialize)]
struct StepView {
    command: Option<Vec<Guarded>>,
    line: Option<Guarded>,
}

/// What the entry point is, if it is the shim.
#[derive(Debug, Default, Serialize)]
struct ShimView {
    service: Option<Guarded>,
    program: bool,
    pause: bool,
}

impl View {
    /// The view of a plan, with the links to folders that its context cannot carry; registration
    /// files that it needs are added to the context.
    pub(super) fn of(
        plan: &Plan,
        inside: &dyn Inside,
        context: &mut Vec<ContextEntry>,
        links: &[FolderLink],
    ) -> Result<Self, RenderError> {
        let has_files = !context.is_empty();
        let registry = registry(plan, inside, context)?;
        let base = &plan.base;
        let own_user = base.user.as_deref();
        let build_user = own_user.filter(|user| !user.eq_ignore_ascii_case(ADMINISTRATOR));
        // Who built is not who runs it.
        let user = plan.user.as_deref().or(build_user);
        let pair = |(name, value): (&String, &String)| Pair {
            name: Guarded::of(name),
            value: Guarded::of(value),
        };
        let words = |words: &Vec<String>| Words {
            words: Guarded::list(words),
        };
        let added = plan.path.as_ref().zip(base.path.as_ref());
        let path = added.map(|(path, own)| Pair {
            name: Guarded::of("PATH"),
            value: Guarded::of(&path.added_to(own)),
        });
        Ok(Self {
            name: Guarded::of(&plan.name),
            host_build: Guarded::of(&plan.host()),
            base: Guarded::of(&format_args!("{}@{}", base.name, base.digest)),
            build_user: build_user.map(|_| Guarded::of(ADMINISTRATOR)),
            env: plan.env.iter().map(pair).chain(path).collect(),
            reg_exe: Guarded::of(REG),
            shutdown: plan.shutdown_timeout.map(shutdown_view).transpose()?,
            registry,
            files: has_files.then(|| Copy {
                source: Guarded::of(&format_args!("{DRIVE}/")),
                target: Guarded::of("C:/"),
            }),
            cmd_exe: Guarded::of(CMD),
            links: links.chunks(LINKS_AT_ONCE).map(mklink).collect(),
            iis: plan.iis.as_ref().map(iis).transpose()?,
            icacls: Guarded::of(&ICACLS),
            access: plan
                .access
                .iter()
                .map(|access| Guarded::list(access.icacls()))
                .collect(),
            workdir: plan.working_dir.as_ref().map(Guarded::of),
            shell: shell(plan),
            steps: plan
                .steps
                .iter()
                .map(|step| step_view(&step.command))
                .collect(),
            ports: Guarded::list(&plan.ports),
            labels: plan.labels.iter().map(pair).collect(),
            user: user.map(Guarded::of),
            shim: shim(plan),
            entrypoint: plan.entrypoint.as_ref().map(words),
            cmd: plan.cmd.as_ref().map(words),
        })
    }
}

/// What cmd does for some links, one after the other.
fn mklink(links: &[FolderLink]) -> Vec<Guarded> {
    let commands = links.iter().enumerate().flat_map(|(place, link)| {
        let and = (place > 0).then_some("&&");
        let command = ["mklink", "/D", &link.path, &link.target];
        and.into_iter().chain(command)
    });
    Guarded::list(commands)
}

fn shutdown_view(seconds: u32) -> Result<Shutdown, RenderError> {
    let mut commands = Vec::new();
    for edit in shutdown::edits(seconds) {
        let calls =
            calls(&edit, &Unseen)?.ok_or_else(|| RenderError::Registry(edit.to_string()))?;
        commands.extend(calls.into_iter().map(Guarded::list));
    }
    Ok(Shutdown {
        seconds: Guarded::of(&seconds),
        commands,
    })
}

/// The changes to the registry, by what they are for.
fn registry(
    plan: &Plan,
    inside: &dyn Inside,
    context: &mut Vec<ContextEntry>,
) -> Result<Vec<Registry>, RenderError> {
    let certificates: Vec<RegistryEdit> = plan
        .certificates
        .iter()
        .map(TrustedCertificate::edit)
        .collect();
    let services: Vec<RegistryEdit> = plan.services.iter().flat_map(Service::edits).collect();
    let path = plan.path.as_ref().map(|path| path.edit(inside));
    let path = Vec::from_iter(path.transpose()?);
    let mut views = Vec::new();
    let mut files = 0;
    for (title, edits) in [
        (Some("Certificates that Windows trusts."), &certificates),
        (
            Some("Services, as the service control manager reads them."),
            &services,
        ),
        (None, &plan.registry),
        (Some("PATH, as services and new sessions see it."), &path),
    ] {
        if !edits.is_empty() {
            views.push(changes(title, edits, inside, &mut files, context)?);
        }
    }
    Ok(views)
}

fn changes(
    title: Option<&str>,
    edits: &[RegistryEdit],
    inside: &dyn Inside,
    files: &mut usize,
    context: &mut Vec<ContextEntry>,
) -> Result<Registry, RenderError> {
    let steps = steps(edits, inside)?;
    let deletes = deletes(&steps);
    let mut views = Vec::with_capacity(steps.len());
    for step in steps {
        views.push(match step {
            RegistryStep::Call(words) => RegistryView {
                command: Some(Guarded::list(words)),
                file: None,
            },
            RegistryStep::Import(bytes) => {
                *files += 1;
                let name = format!("registry-{files}.reg");
                let file = RegistryFile {
                    source: Guarded::of(&name),
                    target: Guarded::of(&format_args!("C:/Windows/Temp/{name}")),
                    path: Guarded::of(&format_args!(r"C:\Windows\Temp\{name}")),
                };
                context.push(ContextEntry::made(name, bytes));
                RegistryView {
                    command: None,
                    file: Some(file),
                }
            }
        });
    }
    Ok(Registry {
        title: title.map(|title| Guarded::of(&title)),
        reg_exe: Guarded::of(REG),
        cmd_exe: Guarded::of(CMD),
        deletes,
        steps: views,
    })
}

fn iis(settings: &IisSettings) -> Result<Iis, RenderError> {
    let (removals, site) = appcmd::site_config(settings);
    let run = |line: Vec<String>| Guarded::list(with_appcmd(&line));
    Ok(Iis {
        app_pools: commands(appcmd::app_pools(settings))?,
        sites: commands(appcmd::sites(settings))?,
        physical_path: appcmd::physical_path(settings).map(run),
        app_pool_settings: appcmd::app_pool_settings(settings).map(run),
        config: commands(appcmd::config(settings))?,
        removals: commands(vec![Call::Try(removals)])?,
        site: site.into_iter().map(run).collect(),
    })
}

/// What runs the calls, in order.
fn commands(calls: Vec<Call>) -> Result<Vec<Vec<Guarded>>, RenderError> {
    let mut commands = Vec::new();
    for call in calls {
        match call {
            Call::Run(line) => commands.push(Guarded::list(with_appcmd(&line))),
            Call::Try(lines) => {
                for lines in lines.chunks(REMOVALS_AT_ONCE) {
                    let divided = lines
                        .iter()
                        .map(|line| [with_appcmd(line), vec!["&"]].concat());
                    // Nobody asks what came of them.
                    let lines = [divided.collect::<Vec<_>>().concat(), vec!["exit", "0"]].concat();
                    commands.push(by_cmd(&lines)?);
                }
            }
            Call::Unless(first, second) => {
                let lines = [with_appcmd(&first), vec!["||"], with_appcmd(&second)].concat();
                commands.push(by_cmd(&lines)?);
            }
        }
    }
    Ok(commands)
}

fn with_appcmd(line: &[String]) -> Vec<&str> {
    let words = line.iter().map(String::as_str);
    std::iter::once(appcmd::PROGRAM).chain(words).collect()
}

/// Words that cmd takes apart into commands: only where it is told to.
fn by_cmd(words: &[&str]) -> Result<Vec<Guarded>, RenderError> {
    let is_divider = |word: &str| matches!(word, "&" | "||");
    let mut own = words.iter().filter(|word| !is_divider(word));
    if let Some(word) = own.find(|word| word.contains(|c| "&|<>^%!\"".contains(c))) {
        let word = (*word).to_owned();
        return Err(RenderError::Unwritable(Unwritable::CmdWord(word)));
    }
    Ok(Guarded::list([CMD, "/C"].iter().chain(words)))
}

/// The shell to be named, where a step has a line for it.
fn shell(plan: &Plan) -> Option<Vec<Guarded>> {
    let mut commands = plan.steps.iter().map(|step| &step.command);
    let is_used = commands.any(|command| matches!(command, Command::Shell(_)));
    is_used.then(|| match &plan.base.shell {
        Some(shell) if !shell.is_empty() => Guarded::list(shell),
        _ => Guarded::list(DEFAULT_SHELL),
    })
}

fn step_view(command: &Command) -> StepView {
    match command {
        Command::Exec(words) => StepView {
            command: Some(Guarded::list(words)),
            line: None,
        },
        Command::Shell(line) => StepView {
            command: None,
            line: Some(Guarded::of(line)),
        },
    }
}

fn shim(plan: &Plan) -> ShimView {
    let entrypoint = plan.entrypoint.as_deref().unwrap_or_default();
    let cmd = plan.cmd.as_deref().unwrap_or_default();
    let Some(shim) = recognise(entrypoint, cmd, &[]) else {
        return ShimView::default();
    };
    let service = shim.settings.and_then(|settings| settings.service);
    ShimView {
        service: service.as_ref().map(Guarded::of),
        program: shim.mode == Mode::Run,
        pause: shim.mode == Mode::Pause,
    }
}
