//! What the instructions of a stage may have brought from Linux.

use crate::lint::missing_folder;
use crate::lint::prelude::*;

/// Parts of a text that says that programs of Linux are installed.
const PORTS: [&str; 13] = [
    "msys", "cygwin", "busybox", "mingw", "gnuwin", "unxutils", "coreutils", "w64devkit", "scoop",
    "rtools", "strawberry", "conda", "linux",
];

/// Parts of a text that installs Git: by default with only `git` on the PATH.
const GIT_INSTALLERS: [&str; 4] = [
    "choco install", "choco.exe install", "-64-bit.exe", "-32-bit.exe",
];

/// Parts of a text that says that Git's programs of Linux are on the PATH too.
const WITH_UNIX_TOOLS: [&str; 11] = [
    r"usr\bin", r"usr\\bin", "usr/bin", r"git\bin", r"git\\bin", "git/bin", "unixtools",
    "cmdtools", "loadinf", "mingit", "portable",
];

/// Parts of a line that may set the PATH.
const PATH_SETTERS: [&str; 4] = [
    "%path%", "env:path", "environmentvariable", "session manager",
];

/// Programs of Linux for Windows.
#[derive(Default, PartialEq, Eq)]
enum Ports {
    #[default]
    None,
    /// Git's, of which the installer put only `git` on the PATH.
    PlainGit,
    OnPath,
}

/// Contents of a stage so far.
#[derive(Default)]
pub(super) struct StageContents {
    /// True if the contents and the shell of the base are unknown.
    pub(super) is_open: bool,
    ports: Ports,
    /// Text of the instructions that install something.
    pub(super) installs: String,
    /// Text of the instructions without a finding.
    texts: String,
    /// Folders of copied files, and working folders.
    folders: Vec<String>,
    /// Text that may set the PATH.
    paths: String,
    /// True if a line may have brought any program.
    pub(super) is_vague: bool,
}

impl StageContents {
    /// What the base has.
    pub(super) fn of_base(is_open: bool) -> Self {
        Self {
            is_open,
            ports: if is_open { Ports::OnPath } else { Ports::None },
            ..Self::default()
        }
    }

    /// True if programs of Linux for Windows may be on the PATH.
    pub(super) fn has_ports(&self) -> bool {
        self.ports == Ports::OnPath
    }

    /// Programs of Git that a text, in lower case, adds to the PATH.
    pub(super) fn add_tools_of_git(&mut self, text: &str) {
        if self.ports == Ports::PlainGit && text.contains_any(&WITH_UNIX_TOOLS) {
            self.ports = Ports::OnPath;
        }
    }

    /// `text` is in lower case.
    pub(super) fn add(&mut self, text: &str) {
        // An address of GitHub is not Git.
        let has_git = || {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
            words.any(|word| matches!(word, "git" | "mingit"))
        };
        if self.ports == Ports::None && has_git() {
            let is_plain = text.contains_any(&GIT_INSTALLERS);
            self.ports = if is_plain {
                Ports::PlainGit
            } else {
                Ports::OnPath
            };
        }
        if self.ports != Ports::OnPath && text.contains_any(&PORTS) {
            self.ports = Ports::OnPath;
        }
        self.add_tools_of_git(text);
        if text.contains("install") {
            self.installs.push_str(text);
        }
    }

    /// Adds the names of files and folders in an instruction without a finding.
    pub(super) fn add_files(&mut self, step: &LintStep<'_>) {
        self.texts.push_str(step.lower_full_text());
        self.is_vague =
            self.is_vague || step.is("RUN") && missing_folder::may_make(step.lower_full_text());
        let text = step.lower_full_text().replace('\\', "/");
        let text = text.replace("//", "/");
        let is_copy = step.is("COPY") || step.is("ADD");
        if is_copy && names_files(step) || !is_copy && !step.is("WORKDIR") {
            let is_set =
                step.is("ENV") && text.contains("path") || text.contains_any(&PATH_SETTERS);
            if is_set {
                self.paths.push_str(&text);
            }
            return;
        }
        let folder = paths_in(&text).next_back().unwrap_or_default();
        let folder = folder.trim_start_matches("./").trim_end_matches(['/', '.']);
        self.is_vague |= is_copy;
        let is_on_path = folder.ends_with("/windows") || folder.contains("/windows/system32");
        if is_copy && is_on_path {
            self.ports = Ports::OnPath;
        }
        if !folder.is_empty() {
            self.folders.push(folder.to_owned());
        }
    }

    /// True if a line names the file of a program, or if a copied folder of the PATH may have it.
    pub(super) fn may_have(&self, program: &str, before: &str) -> bool {
        let names_file = |text: &str| {
            text.match_indices(program).any(|(at, _)| {
                let is_begun = text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
                !is_begun && text[at + program.len()..].starts_with(['.', '-', '_', '/', '\\'])
            })
        };
        let mut folders = self.folders.iter();
        names_file(&self.texts)
            || names_file(before)
            || folders.any(|folder| self.paths.contains(folder.as_str()))
    }
}

/// True for a copy whose sources are files by their names.
fn names_files(step: &LintStep<'_>) -> bool {
    let is_file = |source: &str| {
        let extension = file_name(source).rsplit_once('.').map(|(_, it)| it);
        !source.contains(['*', '?', '$']) && extension.is_some_and(TextExt::starts_with_letter)
    };
    let mut sources = paths_in(step.lower_text());
    sources.next_back().is_some() && sources.all(is_file)
}

/// The paths of an instruction, also if they are in an array.
fn paths_in(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "\"[],".contains(c));
    words.filter(|word| !word.is_empty())
}
