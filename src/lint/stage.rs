//! The stages of a build: what each is based on, and which shell reads each instruction.

use std::collections::HashMap;

use super::Options;
use super::base::Reference;
use super::reader::{Dockerfile, Instruction};

/// The program that reads commands in shell form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BaseShell {
    /// `cmd /S /C`, what an image has that names no shell.
    Cmd,
    /// `powershell -Command` or `pwsh -Command`.
    PowerShell,
    /// Something whose grammar is not known here.
    Other,
}

impl BaseShell {
    /// Reads an image's `config.Shell` or the array of a `SHELL` instruction; none is `cmd`.
    pub fn of_config<S: AsRef<str>>(shell: &[S]) -> Self {
        let words: Vec<String> = shell
            .iter()
            .map(|word| word.as_ref().to_ascii_lowercase())
            .collect();
        let Some(path) = words.first() else {
            return Self::Cmd;
        };
        let file = path.rsplit(['\\', '/']).next().unwrap_or_default();
        let options = &words[1..];
        let has = |names: &[&str]| options.iter().any(|o| names.contains(&o.as_str()));
        match file.strip_suffix(".exe").unwrap_or(file) {
            "cmd" if options.iter().all(|option| option.starts_with('/')) => Self::Cmd,
            "powershell" if !has(&["-file", "-f", "-encodedcommand"]) => Self::PowerShell,
            // Newer PowerShell takes a bare argument for a file.
            "pwsh" if has(&["-command", "-c"]) => Self::PowerShell,
            _ => Self::Other,
        }
    }
}

/// What a stage begins with.
#[derive(Debug)]
pub(super) enum Base {
    /// Nothing.
    Scratch,
    /// Another stage, by its index.
    Stage(usize),
    /// An image from somewhere else.
    Image(Reference),
    /// A name that needs a build argument without a default.
    Unknown,
}

/// One `FROM` and what follows it.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) from: &'a Instruction,
    pub(super) base: Base,
    pub(super) steps: Vec<Step<'a>>,
    name: Option<String>,
    shell: BaseShell,
}

/// An instruction and the shell in force at it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) instruction: &'a Instruction,
    pub(super) shell: BaseShell,
}

pub(super) fn stages<'a>(file: &'a Dockerfile<'_>, options: &Options) -> Vec<Stage<'a>> {
    let mut arguments = HashMap::new();
    let mut stages: Vec<Stage<'a>> = Vec::new();
    for instruction in &file.instructions {
        match (instruction.keyword.as_str(), stages.last_mut()) {
            ("FROM", _) => {
                let stage = begin(instruction, &arguments, &stages, options);
                stages.push(stage);
            }
            ("ARG", None) => arguments.extend(defaults(instruction.text())),
            ("SHELL", Some(stage)) => {
                if let Some(words) = instruction.exec_form() {
                    stage.shell = BaseShell::of_config(&words);
                }
            }
            (_, Some(stage)) => stage.steps.push(Step {
                instruction,
                shell: stage.shell,
            }),
            // Nothing but ARG may stand before the first FROM; a part of a file still gets its lint.
            (_, None) => {
                let mut stage = begin(instruction, &arguments, &[], options);
                stage.base = Base::Unknown;
                stage.steps.push(Step {
                    instruction,
                    shell: stage.shell,
                });
                stages.push(stage);
            }
        }
    }
    stages
}

fn begin<'a>(
    from: &'a Instruction,
    arguments: &HashMap<String, String>,
    before: &[Stage<'_>],
    options: &Options,
) -> Stage<'a> {
    let mut words = from.text().split_whitespace();
    let image = words.next().and_then(|word| expand(word, arguments));
    let name = match (words.next(), words.next()) {
        (Some(word), Some(name)) if word.eq_ignore_ascii_case("as") => {
            Some(name.to_ascii_lowercase())
        }
        _ => None,
    };
    let base = match image {
        None => Base::Unknown,
        Some(image) if image == "scratch" => Base::Scratch,
        Some(image) => before
            .iter()
            .position(|stage| stage.name.as_deref() == Some(&image.to_ascii_lowercase()))
            .map_or_else(|| Base::Image(Reference::parse(&image)), Base::Stage),
    };
    let shell = match &base {
        Base::Stage(index) => before[*index].shell,
        Base::Scratch => BaseShell::Cmd,
        Base::Image(reference) => options
            .shell
            .unwrap_or_else(|| known_shell(reference, options)),
        Base::Unknown => options.shell.unwrap_or(BaseShell::Cmd),
    };
    Stage {
        from,
        base,
        steps: Vec::new(),
        name,
        shell,
    }
}

/// Microsoft's images that make PowerShell the shell of what is built on them.
const POWERSHELL_BASES: [&str; 4] = [
    "dotnet/framework/aspnet",
    "dotnet/framework/sdk",
    "dotnet/framework/wcf",
    "windows/servercore/iis",
];

/// The last build of Windows for which they do so; later ones are built with cmd.
const LAST_POWERSHELL_BUILD: u32 = 17763;

/// The shell that an image is known to set; a mirror keeps the end of its name.
fn known_shell(reference: &Reference, options: &Options) -> BaseShell {
    let is_listed = POWERSHELL_BASES.iter().any(|name| {
        let registry = reference.repository.strip_suffix(name);
        registry.is_some_and(|registry| registry.ends_with('/'))
    });
    let host = options.host.map(|host| host.version.build);
    let build = reference.build().or(host);
    if is_listed && build.is_none_or(|build| build <= LAST_POWERSHELL_BUILD) {
        BaseShell::PowerShell
    } else {
        BaseShell::Cmd
    }
}

/// The names and values of `ARG a=b c`, as far as they have a value.
fn defaults(text: &str) -> Vec<(String, String)> {
    text.split_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| {
            let value = value.trim_matches(['"', '\'']);
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

/// Puts in the values of `$NAME`, `${NAME}` and `${NAME:-default}`; `None` if one is not known.
fn expand(word: &str, arguments: &HashMap<String, String>) -> Option<String> {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, default, remaining) = match after.strip_prefix('{') {
            Some(braced) => {
                let (inside, remaining) = braced.split_once('}')?;
                match inside.split_once(":-") {
                    Some((name, default)) => (name, Some(default), remaining),
                    None => (inside, None, remaining),
                }
            }
            None => {
                let end = after
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(after.len());
                (&after[..end], None, &after[end..])
            }
        };
        out.push_str(arguments.get(name).map(String::as_str).or(default)?);
        rest = remaining;
    }
    out.push_str(rest);
    (!out.is_empty()).then_some(out)
}
