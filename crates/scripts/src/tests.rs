//! Effects and errors of RUN lines.

mod attributes;
mod chocolatey;
mod cmd;
mod downloads;
mod effects;
mod failures;
mod item_cmdlets;
mod operators;
mod parameters;
mod pipelines;
mod powershell;
mod programs;
mod properties;
mod registry_cmdlets;
mod rights;
mod script_files;
mod tree;

use tree::Tree;
use wincimg_registry::{RegistryEdit, TypedData};

use super::{
    ImageAction, ImageState, Lookup, RunCommand, RunEnvironment, ScriptError, ScriptErrorKind,
    run_line,
};

const POWERSHELL: [&str; 3] = [
    "powershell",
    "-Command",
    "$ErrorActionPreference = 'Stop'; $ProgressPreference = 'SilentlyContinue';",
];

const CMD: [&str; 3] = ["cmd", "/S", "/C"];

/// Without the error action `Stop`.
const OPEN: [&str; 2] = ["powershell", "-Command"];

const CORE: [&str; 2] = ["pwsh", "-Command"];

/// Shells by the prompts that [`check`] reads.
const PROMPTS: [(&str, &[&str]); 4] = [
    ("cmd> ", &CMD),
    ("PS> ", &POWERSHELL),
    ("PS continue> ", &OPEN),
    ("pwsh> ", &CORE),
];

/// Lines and their results on an image with the folders of Windows and `C:\work`.
const TABLES: [&str; 10] = [
    include_str!("tests/lines/cmd.txt"),
    include_str!("tests/lines/downloads.txt"),
    include_str!("tests/lines/item_cmdlets.txt"),
    include_str!("tests/lines/operators.txt"),
    include_str!("tests/lines/parameters.txt"),
    include_str!("tests/lines/pipelines.txt"),
    include_str!("tests/lines/powershell.txt"),
    include_str!("tests/lines/programs.txt"),
    include_str!("tests/lines/registry_cmdlets.txt"),
    include_str!("tests/lines/script_files.txt"),
];

/// Runs a line and returns the image.
fn run_on(tree: Tree, shell: &[&str], line: &str) -> Result<Tree, ScriptError> {
    run_as("", tree, shell, line)
}

fn run_as(user: &str, mut tree: Tree, shell: &[&str], line: &str) -> Result<Tree, ScriptError> {
    let shell: Vec<String> = shell.iter().map(|word| (*word).to_owned()).collect();
    let variables = |name: &str| match name.to_ascii_uppercase().as_str() {
        "VERSION" => Some("1.2.3".to_owned()),
        "TARGET" => Some(r"C:\target".to_owned()),
        _ => None,
    };
    let setting = RunEnvironment {
        variables: &variables,
        folder: &r"C:\work".parse().unwrap(),
        user: Some(user),
    };
    let command = RunCommand::Shell {
        shell: &shell,
        text: line,
    };
    run_line(command, setting, &mut tree)?;
    Ok(tree)
}

fn image() -> Tree {
    let mut tree = Tree::windows();
    tree.folder(&r"C:\work".parse().unwrap());
    tree
}

/// Actions of a line as text.
fn actions_of(shell: &[&str], line: &str) -> Vec<String> {
    match run_on(image(), shell, line) {
        Ok(tree) => tree.actions.iter().map(describe).collect(),
        Err(error) => panic!("{line}: {error}"),
    }
}

fn in_cmd(line: &str) -> Vec<String> {
    actions_of(&CMD, line)
}

fn in_powershell(line: &str) -> Vec<String> {
    actions_of(&POWERSHELL, line)
}

/// Checks lines on an image as [`check_as`] does, for the usual user.
fn check(tree: &Tree, cases: &str) {
    check_as("", tree, cases);
}

/// Checks lines of a user on an image: `PROMPT LINE => RESULT`. The result is `ACTION; ACTION`,
/// `nothing`, the kind of an error, or `KIND: MESSAGE`, in which `…` stands for any text. `#` begins
/// a comment.
fn check_as(user: &str, tree: &Tree, cases: &str) {
    let cases = cases.lines().map(str::trim_start);
    for case in cases.filter(|case| !case.is_empty() && !case.starts_with('#')) {
        let mut prompts = PROMPTS.iter();
        let found = prompts.find_map(|(prompt, shell)| Some((*shell, case.strip_prefix(*prompt)?)));
        let (shell, case) = found.unwrap_or_else(|| panic!("{case}"));
        let parts = case.rsplit_once(" => ");
        let (line, expected) = parts.unwrap_or_else(|| panic!("{case}"));
        let found = match run_as(user, tree.clone(), shell, line) {
            Ok(tree) if tree.actions.is_empty() => "nothing".to_owned(),
            Ok(tree) => {
                let actions: Vec<String> = tree.actions.iter().map(describe).collect();
                actions.join("; ")
            }
            Err(error) if expected.contains(": ") => format!("{:?}: {error}", error.kind),
            Err(error) => format!("{:?}", error.kind),
        };
        let is_expected = is_like(found.trim_end(), expected);
        assert!(is_expected, "{case}\nfound: {found}");
    }
}

#[test]
fn lines_have_the_results_of_the_tables() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/lines");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), TABLES.len());
    for table in TABLES {
        check(&image(), table);
    }
}

/// Returns true if a text is that of a pattern, in which `…` stands for any text.
fn is_like(text: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('…') else {
        return text == pattern;
    };
    text.strip_prefix(start).is_some_and(|text| {
        let mut ends = (0..=text.len()).filter_map(|at| text.get(at..));
        ends.any(|end| is_like(end, rest))
    })
}

/// Error of a line.
fn refused(shell: &[&str], line: &str) -> (ScriptErrorKind, String) {
    match run_on(image(), shell, line) {
        Ok(tree) => panic!("{line}: {:?}", tree.actions),
        Err(error) => (error.kind, error.to_string()),
    }
}

/// The lines of `C:\o.txt`, each with a semicolon at its end, after a script without the error action
/// `Stop`, or why it is refused.
fn written(script: &str) -> Result<String, String> {
    let tree = run_on(image(), &OPEN, script).map_err(|error| error.to_string())?;
    match tree.content(&r"C:\o.txt".parse().unwrap()) {
        Lookup::Present(content) => Ok(String::from_utf8(content).unwrap().replace("\r\n", ";")),
        _ => Err("no file".to_owned()),
    }
}

fn describe(action: &ImageAction) -> String {
    match action {
        ImageAction::MakeFolder(path) => format!("folder {path}"),
        ImageAction::Write { path, content } => format!("write {path} {}", bytes(content)),
        ImageAction::Append { path, content } => format!("append {path} {}", bytes(content)),
        ImageAction::Download { url, path, follows } => {
            format!(
                "download {url} to {path}{}",
                if *follows { "" } else { ", not followed" }
            )
        }
        ImageAction::Verify {
            path,
            algorithm,
            digest,
        } => format!("verify {path} {algorithm:?} {digest}"),
        ImageAction::Unpack(unpack) => format!(
            "unpack {} ({:?}) into {}, strip {}, only {:?}, overwrites {}",
            unpack.archive,
            unpack.format,
            unpack.into,
            unpack.strip,
            unpack.only,
            unpack.overwrites
        ),
        ImageAction::Install(install) => {
            let quiet = if install.is_quiet { "" } else { ", not quiet" };
            format!(
                "install {} {:?}{quiet}",
                install.package, install.properties
            )
        }
        ImageAction::CopyPackage { file, path } => format!("package {file} to {path}"),
        ImageAction::Note(note) => format!("note {note}"),
        ImageAction::Copy { from, to } => format!("copy {from} to {to}"),
        ImageAction::Move { from, to } => format!("move {from} to {to}"),
        ImageAction::Delete(path) => format!("delete {path}"),
        ImageAction::Unclear(path) => format!("unclear {path}"),
        ImageAction::Registry(RegistryEdit::SetValue { key, name, data }) => {
            let text = match data.typed() {
                TypedData::Text(text) => text,
                other => format!("{other:?}"),
            };
            format!("set {key} {name} = {} {text}", data.kind())
        }
        ImageAction::Registry(edit) => edit.to_string(),
        ImageAction::Certificate { store, file } => format!("certificate {file} in {store}"),
        other => format!("{other:?}"),
    }
}

fn bytes(content: &[u8]) -> String {
    match content {
        [] => "(empty)".to_owned(),
        content => content.escape_ascii().to_string(),
    }
}
