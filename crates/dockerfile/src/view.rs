//! View of a plan for the templates: commands and lists of words, without decisions. The templates
//! quote them.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use wincimg_iis::appcmd::AppcmdCall;
use wincimg_iis::{IisSettings, appcmd};
use wincimg_images::shim::{ShimMode, detect};
use wincimg_recipe::{CommandForm, Plan};
use wincimg_registry::{RegistryEdit, UnknownBase};
use wincimg_windows::access::ICACLS;
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::certificate::TrustedCertificate;
use wincimg_windows::service::Service;
use wincimg_windows::shutdown;

use super::RenderError;
use super::context::{ContextEntry, DRIVE, FolderLink};
use super::quote::QuoteError;
use super::registry::{REG, RegistryStep, calls, deletes, steps};

/// Path in Windows.
const CMD: &str = r"C:\Windows\System32\cmd.exe";

/// Default shell.
const DEFAULT_SHELL: [&str; 3] = ["cmd", "/S", "/C"];

/// User with all permissions, in every base.
const ADMINISTRATOR: &str = "ContainerAdministrator";

/// Maximum number of entries that one command removes: cmd's limit is 8191 characters.
const REMOVALS_AT_ONCE: usize = 24;

/// Maximum number of links that one command makes; each has two paths.
const LINKS_AT_ONCE: usize = 12;

/// A program and its arguments.
type Line = Vec<String>;

#[derive(Debug, Serialize)]
pub(super) struct View<'a> {
    name: &'a str,
    host_build: String,
    base: String,
    /// User of the build, if not the base's.
    build_user: Option<&'static str>,
    env: Vec<Pair<'a>>,
    shutdown: Option<Shutdown>,
    registry: Vec<Registry>,
    files: Option<Copy>,
    links: Vec<Line>,
    iis: Option<Iis>,
    workdir: Option<String>,
    access: Vec<Line>,
    shell: Option<Vec<String>>,
    /// Each a list of words, or a line in shell form.
    steps: Vec<Value>,
    ports: Vec<String>,
    labels: Vec<Pair<'a>>,
    user: Option<&'a str>,
    shim: ShimView,
    entrypoint: Option<Words<'a>>,
    cmd: Option<Words<'a>>,
}

#[derive(Debug, Serialize)]
struct Pair<'a> {
    name: &'a str,
    value: Cow<'a, str>,
}

/// An object, because an empty list would be false in a template.
#[derive(Debug, Serialize)]
struct Words<'a> {
    words: &'a [String],
}

#[derive(Debug, Serialize)]
struct Copy {
    source: String,
    target: String,
}

#[derive(Debug, Serialize)]
struct Shutdown {
    seconds: String,
    commands: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Registry {
    title: Option<&'static str>,
    deletes: bool,
    steps: Vec<RegistryView>,
}

#[derive(Debug, Serialize)]
struct RegistryView {
    /// .reg file that the commands import.
    file: Option<Copy>,
    commands: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Iis {
    app_pools: Vec<Line>,
    sites: Vec<Line>,
    physical_path: Option<Line>,
    app_pool_settings: Option<Line>,
    config: Vec<Line>,
    removals: Vec<Line>,
    site: Vec<Line>,
}

/// Kind of entry point, if it is the shim.
#[derive(Debug, Default, Serialize)]
struct ShimView {
    service: Option<String>,
    program: bool,
    pause: bool,
}

impl<'a> View<'a> {
    /// Makes the view of a plan, with links to folders that its context does not contain; .reg
    /// files are added to the context.
    pub(super) fn from_plan(
        plan: &'a Plan,
        inside: &dyn BaseContents,
        context: &mut Vec<ContextEntry>,
        links: &[FolderLink],
    ) -> Result<Self, RenderError> {
        let has_files = !context.is_empty();
        let registry = registry(plan, inside, context)?;
        let base = &plan.base;
        let own_user = base.user.as_deref();
        let build_user = own_user.filter(|user| !user.eq_ignore_ascii_case(ADMINISTRATOR));
        let added = plan.path.as_ref().zip(base.path.as_ref());
        let path = added.map(|(path, own)| Pair {
            name: "PATH",
            value: path.apply_to(own).into(),
        });
        Ok(Self {
            name: &plan.name,
            host_build: plan.host(),
            base: format!("{}@{}", base.name, base.digest),
            build_user: build_user.map(|_| ADMINISTRATOR),
            env: plan.env.iter().map(Pair::of).chain(path).collect(),
            shutdown: plan.shutdown_timeout.map(shutdown_view).transpose()?,
            registry,
            files: has_files.then(|| Copy {
                source: format!("{DRIVE}/"),
                target: "C:/".to_owned(),
            }),
            links: links.chunks(LINKS_AT_ONCE).map(mklink).collect(),
            iis: plan.iis.as_ref().map(iis).transpose()?,
            workdir: plan.working_dir.as_ref().map(ToString::to_string),
            access: plan
                .access
                .iter()
                .map(|access| line(ICACLS, access.icacls()))
                .collect(),
            shell: shell(plan),
            steps: plan
                .steps
                .iter()
                .map(|step| match &step.command {
                    CommandForm::Exec(words) => words.as_slice().into(),
                    CommandForm::Shell(text) => text.as_str().into(),
                })
                .collect(),
            ports: plan.ports.iter().map(ToString::to_string).collect(),
            labels: plan.labels.iter().map(Pair::of).collect(),
            // The user of the build is not that of the container.
            user: plan.user.as_deref().or(build_user),
            shim: shim(plan),
            entrypoint: plan.entrypoint.as_deref().map(|words| Words { words }),
            cmd: plan.cmd.as_deref().map(|words| Words { words }),
        })
    }
}

impl<'a> Pair<'a> {
    fn of((name, value): (&'a String, &'a String)) -> Self {
        Self {
            name,
            value: value.into(),
        }
    }
}

fn line<T: ToString>(program: &str, arguments: impl IntoIterator<Item = T>) -> Line {
    let arguments = arguments.into_iter().map(|word| word.to_string());
    std::iter::once(program.to_owned())
        .chain(arguments)
        .collect()
}

/// Arguments of cmd that make some links.
fn mklink(links: &[FolderLink]) -> Line {
    let commands = links.iter().enumerate().flat_map(|(place, link)| {
        let before = if place == 0 { "/C" } else { "&&" };
        [before, "mklink", "/D", &link.path, &link.target]
    });
    line(CMD, commands)
}

fn shutdown_view(seconds: u32) -> Result<Shutdown, RenderError> {
    let mut commands = Vec::new();
    for edit in shutdown::edits(seconds) {
        let calls =
            calls(&edit, &UnknownBase)?.ok_or_else(|| RenderError::Registry(edit.to_string()))?;
        commands.extend(calls.into_iter().map(|words| line(REG, words)));
    }
    Ok(Shutdown {
        seconds: seconds.to_string(),
        commands,
    })
}

/// Registry changes by purpose.
fn registry(
    plan: &Plan,
    inside: &dyn BaseContents,
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
        (Some("Trusted certificates."), &certificates),
        (Some("Services."), &services),
        (None, &plan.registry),
        (Some("PATH of services and new sessions."), &path),
    ] {
        if !edits.is_empty() {
            views.push(changes(title, edits, inside, &mut files, context)?);
        }
    }
    Ok(views)
}

fn changes(
    title: Option<&'static str>,
    edits: &[RegistryEdit],
    inside: &dyn BaseContents,
    files: &mut usize,
    context: &mut Vec<ContextEntry>,
) -> Result<Registry, RenderError> {
    let steps = steps(edits, inside)?;
    let deletes = deletes(&steps);
    let mut views = Vec::with_capacity(steps.len());
    for step in steps {
        views.push(match step {
            RegistryStep::Call(words) => RegistryView {
                file: None,
                commands: vec![line(REG, words)],
            },
            RegistryStep::Import(bytes) => {
                *files += 1;
                let name = format!("registry-{files}.reg");
                let path = format!(r"C:\Windows\Temp\{name}");
                let file = Copy {
                    source: name.clone(),
                    target: format!("C:/Windows/Temp/{name}"),
                };
                context.push(ContextEntry::generated(name, bytes));
                RegistryView {
                    file: Some(file),
                    commands: vec![
                        line(REG, ["import", &path]),
                        line(CMD, ["/C", "del", &path]),
                    ],
                }
            }
        });
    }
    Ok(Registry {
        title,
        deletes,
        steps: views,
    })
}

fn iis(settings: &IisSettings) -> Result<Iis, RenderError> {
    let (removals, site) = appcmd::site_config(settings);
    let run = |words| line(appcmd::PROGRAM, words);
    Ok(Iis {
        app_pools: commands(appcmd::app_pools(settings))?,
        sites: commands(appcmd::sites(settings))?,
        physical_path: appcmd::physical_path(settings).map(run),
        app_pool_settings: appcmd::app_pool_settings(settings).map(run),
        config: commands(appcmd::config(settings))?,
        removals: commands(vec![AppcmdCall::Try(removals)])?,
        site: site.into_iter().map(run).collect(),
    })
}

/// Commands that run the calls, in order.
fn commands(calls: Vec<AppcmdCall>) -> Result<Vec<Line>, RenderError> {
    let mut commands = Vec::new();
    for call in calls {
        match call {
            AppcmdCall::Run(words) => commands.push(line(appcmd::PROGRAM, words)),
            AppcmdCall::Try(lines) => {
                for lines in lines.chunks(REMOVALS_AT_ONCE) {
                    let divided = lines
                        .iter()
                        .map(|line| [with_appcmd(line), vec!["&"]].concat());
                    // Failures are ignored.
                    let lines = [divided.collect::<Vec<_>>().concat(), vec!["exit", "0"]].concat();
                    commands.push(by_cmd(&lines)?);
                }
            }
            AppcmdCall::Unless(first, second) => {
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

/// Checks words that cmd must not split into commands.
fn by_cmd(words: &[&str]) -> Result<Line, RenderError> {
    let is_divider = |word: &str| matches!(word, "&" | "||");
    let mut own = words.iter().filter(|word| !is_divider(word));
    if let Some(word) = own.find(|word| word.contains(|c| "&|<>^%!\"".contains(c))) {
        let why = format!("cannot pass {word:?} to appcmd: cmd would split it");
        return Err(QuoteError(why).into());
    }
    Ok(line(CMD, ["/C"].iter().chain(words)))
}

/// Shell to write, if a step is in shell form.
fn shell(plan: &Plan) -> Option<Vec<String>> {
    let mut commands = plan.steps.iter().map(|step| &step.command);
    let is_used = commands.any(|command| matches!(command, CommandForm::Shell(_)));
    is_used.then(|| match &plan.base.shell {
        Some(shell) if !shell.is_empty() => shell.clone(),
        _ => DEFAULT_SHELL.map(str::to_owned).to_vec(),
    })
}

fn shim(plan: &Plan) -> ShimView {
    let entrypoint = plan.entrypoint.as_deref().unwrap_or_default();
    let cmd = plan.cmd.as_deref().unwrap_or_default();
    let Some(shim) = detect(entrypoint, cmd, &[]) else {
        return ShimView::default();
    };
    let service = shim.settings.and_then(|settings| settings.service);
    ShimView {
        service,
        program: shim.mode == ShimMode::Run,
        pause: shim.mode == ShimMode::Pause,
    }
}
