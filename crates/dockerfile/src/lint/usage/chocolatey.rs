//! Chocolatey's installer where it fails, and commands that it no longer brings.

use std::ops::Range;

use crate::lint::features;
use crate::lint::prelude::*;
use crate::lint::reference::{SERVER_2016, SERVER_2019};

/// Parts of a file, in lower case, that ask for another version.
const VERSIONS: [&str; 2] = ["chocolateyversion", "1.4.0"];

/// Position of a command that runs the installer of the newest version.
fn installer(text: &str) -> Option<usize> {
    let is_run = text.contains_any(&["iex", "invoke-expression"]);
    text.find("chocolatey.org/install.ps1").filter(|_| is_run)
}

/// Reports the installer on a base of which it has to update .NET Framework.
pub(super) fn missing_framework(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let at = installer(step.lower_full_text())?;
    let build = stage.reference()?.build();
    let is_old =
        features::is_server_core(stage) && matches!(build, Some(SERVER_2016 | SERVER_2019));
    // Something that may bring .NET Framework.
    let is_open = step.file.mentions(&VERSIONS) || step.file.mentions(&["4.8", "ndp48", "vs_"]);
    let message = "Chocolatey 2 requires .NET Framework 4.8, which this base does not have; its installer \
        adds it and fails, as that requires a restart: use mcr.microsoft.com/dotnet/framework/runtime:4.8, \
        or ENV chocolateyVersion=1.4.0";
    (is_old && !is_open).then(|| step.finding_at(at, message).warning())
}

/// Programs that Chocolatey has only before version 2, and what to write in their place.
const REMOVED: [(&str, &str); 5] = [
    ("cinst", "choco install"),
    ("cup", "choco upgrade"),
    ("cuninst", "choco uninstall"),
    ("clist", "choco list"),
    ("chocolatey", "choco"),
];

/// Parts of a file, in lower case, that may bring another version or a command of one's own.
const COMMAND_SOURCES: [&str; 10] = [
    "chocolateydownloadurl", "install chocolatey", "upgrade chocolatey", "alias", "function",
    "mklink", "symbolic", "hardlink", "doskey", "binfile",
];

/// Parts of a copied file's path, in lower case, that may be another version or a command of one's own.
const COPIES: [&str; 5] = ["choco", "cinst.", "clist.", "cuninst.", "cup."];

/// Reports a command of Chocolatey 1 behind the installer of the newest version.
pub(super) fn removed_command(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let (command, (name, instead)) = step.find_map(|it| Some((it, removed(it)?)))?;
    let lines = stage
        .index
        .chocolatey
        .get_or_init(|| lines_with_newest(stage));
    let own = &step.lower_full_text()[..command.start()];
    let line = step.line();
    let is_installed =
        line < lines.end && (line > lines.start || line == lines.start && installer(own).is_some());
    let is_open = own.contains_any(&["if ", "if(", "try"]) || command.next == NextOperator::Or;
    let message = format!(
        "Chocolatey 2, the version that a line above installs, has no {name}: write {instead}"
    );
    (is_installed && !is_open).then(|| step.finding_at(command.start(), message))
}

/// What a command uses that Chocolatey has only before version 2, and what to write in its place.
fn removed(command: &LintCommand) -> Option<(&'static str, &'static str)> {
    let is_local = command.has(&["-l", "-lo", "--local-only", "--localonly"])
        // With this it fails only in its log.
        && !command.has(&["-r", "--limit-output", "--limitoutput"]);
    let is_last = matches!(command.next, NextOperator::End | NextOperator::And);
    if command.program() == "choco" && command.word(1) == "list" && is_local && is_last {
        return Some(("list --local-only", "choco list"));
    }
    let has_folder = command.word(0).contains(['\\', '/']);
    let mut removed = REMOVED.into_iter();
    removed.find(|(name, _)| command.program() == *name && !has_folder)
}

/// Lines from the first installer on, until one may bring another version or these commands.
fn lines_with_newest(stage: &Stage<'_>) -> Range<usize> {
    let mut steps = stage.steps.iter();
    let Some(first) = steps.find(|it| installer(it.lower_full_text()).is_some()) else {
        return 0..0;
    };
    let is_open = !stage.is_of_microsoft()
        || first.file.mentions(&VERSIONS)
        || first.file.mentions(&COMMAND_SOURCES);
    let mut others = stage.steps.iter().filter(|it| !it.is("RUN"));
    let copy = others.find(|it| it.lower_full_text().contains_any(&COPIES));
    let end = if is_open {
        0
    } else {
        copy.map_or(usize::MAX, LintStep::line)
    };
    first.line()..end
}
