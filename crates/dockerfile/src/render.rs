//! The Dockerfile of a plan. The templates get a view of it: finished instructions, without
//! decisions, which they order and explain.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wincimg_common::diagnose::Problem;
use wincimg_common::untrusted::QuotedText;
use wincimg_iis::appcmd::AppcmdCall;
use wincimg_iis::{IisSettings, appcmd};
use wincimg_images::shim::{ShimMode, detect};
use wincimg_recipe::{CommandForm, Plan, path_blame, path_hint, variable};
use wincimg_registry::{RegistryEdit, UnknownBase};
use wincimg_windows::access::ICACLS;
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::certificate::TrustedCertificate;
use wincimg_windows::search_path::VARIABLE;
use wincimg_windows::service::Service;
use wincimg_windows::shutdown;

use super::context::{self, ContextEntry, DRIVE, FolderLink};
use super::quote::{self, unwritable};
use super::registry::{REG, RegistryStep, deletes, steps};
use super::templates;

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

/// Makes the view of a plan, with links to folders that its context does not contain; .reg files
/// are added to the context. Its texts are instructions, one per line, or belong in comments.
pub(super) fn view(
    plan: &Plan,
    inside: &dyn BaseContents,
    context: &mut Vec<ContextEntry>,
    links: &[FolderLink],
) -> Result<Value, Problem> {
    let has_files = !context.is_empty();
    let base = &plan.base;
    // A base without a tag is named by its digest.
    let name = base.name.split('@').next().unwrap_or_default();
    let from = format!("{name}@{}", base.digest);
    let own_user = base.user.as_deref();
    let build_user = own_user.filter(|user: &&str| !user.eq_ignore_ascii_case(ADMINISTRATOR));
    let own = variable(&base.container.env, VARIABLE);
    let added = plan.path.as_ref().zip(own);
    let path = added.map(|(path, own)| ("PATH".to_owned(), path.apply_to(own)));
    let path = path.iter().map(|(name, value)| (name, value));
    let timeout = plan.shutdown_timeout;
    let shutdown: Vec<_> = timeout.into_iter().flat_map(shutdown::edits).collect();
    let access = plan.access.iter();
    Ok(json!({
        "name": quote::comment(&plan.name)?,
        "host_build": plan.host(),
        "base": lines("FROM", [from], quote::reference)?,
        "build_user": lines("USER", build_user.map(|_| ADMINISTRATOR), quote::word)?,
        "env": lines("ENV", plan.env.iter().chain(path), quote::pair)?,
        "timeout": timeout,
        "shutdown": changes(None, &shutdown, inside, &mut 0, context)?,
        "registry": registry(plan, inside, context)?,
        "files": copy(has_files.then(|| [format!("{DRIVE}/"), "C:/".to_owned()]))?,
        "links": runs(links.chunks(LINKS_AT_ONCE).map(mklink))?,
        "iis": plan.iis.as_ref().map(iis).transpose()?,
        "workdir": lines("WORKDIR", plan.working_dir.iter().map(ToString::to_string), quote::word)?,
        "access": runs(access.map(|access| line(ICACLS, access.icacls())))?,
        "shell": lines("SHELL", shell(plan), quote::array)?,
        "steps": lines("RUN", &plan.steps, |step| match &step.command {
            CommandForm::Exec(words) => quote::command(words),
            CommandForm::Shell(text) => quote::shell_line(text),
        })?,
        "ports": lines("EXPOSE", &plan.ports, quote::word)?,
        "labels": lines("LABEL", &plan.labels, quote::pair)?,
        // The user of the build is not that of the container.
        "user": lines("USER", plan.user.as_deref().or(build_user), quote::word)?,
        "shim": shim(plan)?,
        "entrypoint": lines("ENTRYPOINT", &plan.entrypoint, quote::array)?,
        "cmd": lines("CMD", &plan.cmd, quote::array)?,
    }))
}

/// Instructions with a keyword, one per line.
fn lines<T>(
    keyword: &str,
    items: impl IntoIterator<Item = T>,
    quote: impl Fn(T) -> Result<String, Problem>,
) -> Result<String, Problem> {
    let mut lines = Vec::new();
    for item in items {
        lines.push(format!("{keyword} {}", quote(item)?));
    }
    Ok(lines.join("\n"))
}

/// Commands in exec form.
fn runs(commands: impl IntoIterator<Item = Line>) -> Result<String, Problem> {
    lines("RUN", commands, |words| quote::command(&words))
}

/// Copies each source to its target.
fn copy(paths: impl IntoIterator<Item = [String; 2]>) -> Result<String, Problem> {
    lines("COPY", paths, |paths| quote::paths(&paths))
}

fn line<T: ToString>(program: &str, arguments: impl IntoIterator<Item = T>) -> Line {
    std::iter::once(program.to_owned())
        .chain(arguments.into_iter().map(|word| word.to_string()))
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

/// Registry changes by purpose.
fn registry(
    plan: &Plan,
    inside: &dyn BaseContents,
    context: &mut Vec<ContextEntry>,
) -> Result<Vec<Value>, Problem> {
    let certificates: Vec<RegistryEdit> = plan
        .certificates
        .iter()
        .map(TrustedCertificate::edit)
        .collect();
    let services: Vec<RegistryEdit> = plan.services.iter().flat_map(Service::edits).collect();
    let path = plan.path.as_ref().map(|path| path.edit(inside));
    let path = path.transpose().map_err(|error| {
        let (blame, hint) = (path_blame(&error), path_hint(&error));
        Problem::from_error("recipe/path", error)
            .blame(blame)
            .hint_if(hint)
    });
    let path = Vec::from_iter(path?);
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
) -> Result<Value, Problem> {
    let steps = steps(edits, inside)?;
    let deletes = deletes(&steps);
    let mut views = Vec::with_capacity(steps.len());
    for step in steps {
        views.push(match step {
            RegistryStep::Call(words) => {
                json!({ "file": "", "commands": runs([line(REG, words)])? })
            }
            RegistryStep::Import(bytes) => {
                *files += 1;
                let name = format!("registry-{files}.reg");
                let path = format!(r"C:\Windows\Temp\{name}");
                let file = copy([[name.clone(), path.replace('\\', "/")]])?;
                context.push(ContextEntry::generated(name, bytes));
                let delete = line(CMD, ["/C", "del", &path]);
                let commands = [line(REG, ["import", &path]), delete];
                json!({ "file": file, "commands": runs(commands)? })
            }
        });
    }
    Ok(json!({ "title": title, "deletes": deletes, "steps": views }))
}

fn iis(settings: &IisSettings) -> Result<Value, Problem> {
    let (removals, site) = appcmd::site_config(settings);
    Ok(json!({
        "app_pools": commands(appcmd::app_pools(settings))?,
        "sites": commands(appcmd::sites(settings))?,
        "physical_path": commands(appcmd::physical_path(settings))?,
        "app_pool_settings": commands(appcmd::app_pool_settings(settings))?,
        "config": commands(appcmd::config(settings))?,
        "removals": commands([AppcmdCall::Try(removals)])?,
        "site": commands(site.into_iter().map(AppcmdCall::Run))?,
    }))
}

/// Commands that run the calls, in order.
fn commands(calls: impl IntoIterator<Item = AppcmdCall>) -> Result<String, Problem> {
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
    runs(commands)
}

fn with_appcmd(line: &[String]) -> Vec<&str> {
    let words = line.iter().map(String::as_str);
    std::iter::once(appcmd::PROGRAM).chain(words).collect()
}

/// Checks words that cmd must not split into commands.
fn by_cmd(words: &[&str]) -> Result<Line, Problem> {
    let is_divider = |word: &str| matches!(word, "&" | "||");
    let mut own = words.iter().filter(|word| !is_divider(word));
    if let Some(word) = own.find(|word| word.contains(|c| "&|<>^%!\"".contains(c))) {
        let why = format!(
            "cannot pass {} to appcmd: cmd would split it",
            QuotedText(word)
        );
        return Err(unwritable(why));
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

/// Kind of entry point, if it is the shim.
fn shim(plan: &Plan) -> Result<Value, Problem> {
    let entrypoint = plan.entrypoint.as_deref().unwrap_or_default();
    let shim = detect(entrypoint, plan.cmd.as_deref().unwrap_or_default(), &[]);
    let mode = shim.as_ref().map(|shim| shim.mode);
    let service = shim.and_then(|shim| shim.settings?.service);
    let service = service.as_deref().map(quote::comment).transpose()?;
    Ok(json!({
        "service": service,
        "program": mode == Some(ShimMode::Run),
        "pause": mode == Some(ShimMode::Pause),
    }))
}

/// A Dockerfile with its build context.
#[derive(Debug, Clone, Default)]
pub struct RenderedDockerfile {
    /// Text.
    pub dockerfile: String,
    /// Build context, folders before their contents, without the Dockerfile.
    pub context: Vec<ContextEntry>,
    /// File name in the context, if not `Dockerfile`.
    pub name: Option<String>,
    /// Target stage, if not the last.
    pub target: Option<String>,
    /// Additional labels of the image.
    pub labels: BTreeMap<String, String>,
}

/// Renders the Dockerfile of a plan on a base with these contents, without reading or writing
/// files.
pub fn render(plan: &Plan, inside: &dyn BaseContents) -> Result<RenderedDockerfile, Problem> {
    if plan.base.os_version.is_none() {
        let base = &plan.base.name;
        let problem = format!(
            "a Docker daemon cannot build on {base}: the image contains no Windows to make the layers with"
        );
        return Err(Problem::request("base/no-windows", problem));
    }
    if let Some(instructions) = &plan.instructions {
        let what = if instructions.steps.is_empty() {
            "author, volumes, healthcheck, shell, stop_signal, on_build or args_escaped"
        } else {
            "layers of its own ([[layers]], [[msi]], runtimes or layer)"
        };
        let problem = format!("only the direct engine builds a recipe with {what}");
        let hint = if plan.steps.is_empty() {
            "build it with `wincimg build IMAGE --engine direct`, or remove these keys"
        } else {
            "remove these keys or [[run]], which only a Docker daemon runs"
        };
        return Err(Problem::request("recipe/layers", problem).hint(hint));
    }
    let mut context = context::files(plan).map_err(Problem::from_diagnosed)?;
    let links = context::take_folder_links(&mut context)?;
    let view = view(plan, inside, &mut context, &links)?;
    Ok(RenderedDockerfile {
        dockerfile: templates::write(&templates::registry()?, &view)?,
        context,
        ..RenderedDockerfile::default()
    })
}

/// Refuses a plan without a Dockerfile, whatever its base.
pub fn check_renderable(plan: &Plan) -> Result<(), Problem> {
    let on_any_base = Plan {
        path: None,
        ..plan.clone()
    };
    render(&on_any_base, &UnknownBase).map(drop)
}
