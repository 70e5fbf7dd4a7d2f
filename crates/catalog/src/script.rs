//! The PowerShell script that installs an update on a node: a table of settings, followed by a text
//! that is the same for every update.

use std::fmt::Write as _;

use wincimg_common::diagnose::{Blame, Problem};
use wincimg_common::untrusted::UntrustedText;
use wincimg_windows::node_script::{self, switch};
use wincimg_windows::quoting::powershell;
use wincimg_windows::release::{self, PackageKind};

use super::folder::{Description, UpdateManifestFile, is_cabinet, is_package};
use super::msu::PackageFormat;
use super::set::Role;

/// Settings of a node's script.
#[derive(Debug, Clone)]
pub struct InstallScript {
    /// The update; an unknown revision of its build is not checked.
    pub update: Description,
    /// The name of the update's folder.
    pub folder: String,
    /// Source of the files.
    pub source: FileLocation,
    /// Restart the node if that is needed.
    pub restart: bool,
}

/// Source of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileLocation {
    /// At the catalog's links.
    Links,
    /// In the update's folder at this address: an intranet mirror.
    Url(String),
    /// In the update's folder in this folder of the node, or on this share.
    Folder(String),
    /// In the update's folder, next to the script.
    Beside,
}

/// Problem of an update that no script installs.
fn unusable(problem: String) -> Problem {
    Problem::new("updates/script", problem)
}

/// Problem of a text that would break out of its quotes or its line.
fn control_characters(text: &str) -> Problem {
    unusable(format!("{text:?} has control characters")).blame(Blame::Request)
}

const PARAMETERS: &str = include_str!("script/parameters.ps1");
const BODY: &str = include_str!("script/install.ps1");

impl InstallScript {
    /// The script's text, for Windows PowerShell 5.1 and later.
    pub fn render(&self) -> Result<String, Problem> {
        let mut files = self.update.files.iter();
        let odd = files.find(|file| !is_package(&file.name));
        if let Some(odd) = odd {
            let name = &odd.name;
            let problem = format!("a script installs .msu and .cab files, not {name}");
            return Err(unusable(problem));
        }
        let (kb, title) = (&self.update.kb, comment(&self.update.title)?);
        let comment = format!("Installs {kb} on this node: {}.", UntrustedText(title));
        let settings = self.settings()?;
        Ok(node_script::script(
            &comment,
            PARAMETERS,
            ("hotfix", &settings),
            BODY,
        ))
    }

    fn settings(&self) -> Result<String, Problem> {
        let mut text = String::new();
        let number = |number: Option<u32>| {
            number.map_or_else(|| "$null".to_owned(), |number| number.to_string())
        };
        let build = self.update.build.map(|version| version.build);
        let revision = self.update.build.and_then(|version| version.revision);
        let stack = match self.update.stack {
            Some(stack) => quoted(&stack.os_version())?,
            None => "$null".to_owned(),
        };
        let folder = match &self.source {
            FileLocation::Folder(folder) => {
                let folder = folder.trim_end_matches(['\\', '/']);
                quoted(&format!("{folder}\\{}", self.folder))?
            }
            FileLocation::Beside => format!("\"$PSScriptRoot\\{}\"", self.folder),
            // Only administrators can write there, so a verified file stays unchanged.
            FileLocation::Links | FileLocation::Url(_) => format!(
                "(Join-Path $env:ProgramFiles {})",
                quoted(&format!("wincimg\\{}", self.folder))?
            ),
        };
        let is_for_dism = self.is_for_dism();
        let tool = if is_for_dism { "dism" } else { "wusa" };
        let mut line = |key: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    {key:<8} = {value}");
        };
        line("Article", &quoted(&self.update.kb)?);
        line("Build", &number(build));
        line("Revision", &number(revision));
        line("Stack", &stack);
        line("Tool", &quoted(tool)?);
        line("Restart", switch(self.restart));
        line("Folder", &folder);
        line("Beside", switch(self.source == FileLocation::Beside));
        line("Files", "@(");
        for item in &self.update.files {
            let _ = writeln!(text, "        {}", self.file(item)?);
        }
        text.push_str("    )\n");
        // DISM finds checkpoints in the target's folder by itself; wusa needs the prerequisites
        // first.
        let files = self.update.files.iter();
        let install = files.filter(|item| !is_for_dism || item.role != Role::Checkpoint);
        let names: Result<Vec<String>, Problem> = install.map(|item| quoted(&item.name)).collect();
        let _ = writeln!(text, "    Install  = @({})", names?.join(", "));
        Ok(text)
    }

    fn file(&self, item: &UpdateManifestFile) -> Result<String, Problem> {
        let digest = item.digest().ok_or_else(|| {
            let name = &item.name;
            let kb = &self.update.kb;
            unusable(format!(
                "the catalog lists no digest for {name}, so a node cannot verify it"
            ))
            .hint(format!(
                "download it over TLS with: wincimg node hotfix fetch {kb} --without-digest \
                 --output DIR, then add --files DIR"
            ))
        })?;
        let url = match &self.source {
            FileLocation::Links => Some(item.url.clone()),
            FileLocation::Url(mirror) => Some(format!(
                "{}/{}/{}",
                mirror.trim_end_matches('/'),
                self.folder,
                item.name
            )),
            FileLocation::Folder(_) | FileLocation::Beside => None,
        };
        let url = match url {
            Some(url) => format!("; Url = {}", quoted(&url)?),
            None => String::new(),
        };
        Ok(format!(
            "@{{ Name = {}; Stack = {}; Algorithm = '{}'; Digest = '{}'{url} }}",
            quoted(&item.name)?,
            switch(item.role == Role::ServicingStack),
            digest.algorithm().to_ascii_uppercase(),
            digest.digest(),
        ))
    }

    /// Returns true if DISM installs the update, which wusa does not.
    fn is_for_dism(&self) -> bool {
        let mut files = self.update.files.iter();
        let target = files.find(|item| item.role == Role::Target);
        let container = target.and_then(|target| target.container);
        let wim = match (container, self.update.build) {
            (Some(container), _) => container == PackageFormat::Wim,
            (None, Some(version)) => release::up_to_build(version.build)
                .is_some_and(|release| release.package == PackageKind::Wim),
            // Only updates with checkpoints have several files, and these are WIMs.
            (None, None) => self
                .update
                .files
                .iter()
                .any(|item| item.role == Role::Checkpoint),
        };
        wim || target.is_some_and(|target| is_cabinet(&target.name))
    }
}

/// Quotes a text for PowerShell, on one line.
fn quoted(text: &str) -> Result<String, Problem> {
    if text.chars().any(char::is_control) {
        return Err(control_characters(text));
    }
    Ok(powershell::literal(text))
}

/// Checks that a text stays on the line of its comment.
fn comment(text: &str) -> Result<&str, Problem> {
    if text
        .chars()
        .any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
    {
        return Err(control_characters(text));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
