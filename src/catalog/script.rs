//! The PowerShell script that installs an update on a node: what is to be installed as a table of
//! settings, followed by the same text for every update.

use std::fmt::Write as _;

use super::dialog::UpdateFile;
use super::msu::{Container, article_in_name};
use crate::diagnose::{Blame, Diagnose};
use crate::windows::release::{self, Package};
use crate::windows::update::Kb;
use crate::windows::version::WindowsVersion;

/// What a node's script installs, and from where.
#[derive(Debug, Clone)]
pub struct Script<'a> {
    /// The article.
    pub kb: Kb,
    /// What the update is called.
    pub title: &'a str,
    /// What a node is afterwards; a revision that is not known is not checked.
    pub version: Option<WindowsVersion>,
    /// The files, in the catalog's order.
    pub files: &'a [UpdateFile],
    /// What the files are, where they have been looked at.
    pub container: Option<Container>,
    /// Where the node finds them.
    pub source: Source,
    /// Restart the node if that is needed.
    pub restart: bool,
}

/// Where a node finds the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// At the catalog's links.
    Links,
    /// At this address, under their names: an intranet mirror.
    Url(String),
    /// In this folder of the node, or on this share.
    Folder(String),
}

/// Why there is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// No file of the update carries its article.
    #[error("none of the update's {count} files is named after {kb}: {names}")]
    NoTarget {
        /// The article.
        kb: Kb,
        /// How many there are.
        count: usize,
        /// Their names.
        names: String,
    },
    /// Nothing to verify a file with.
    #[error("the catalog gives no digest for {0}, so a node cannot tell whether it is genuine")]
    NoDigest(String),
    /// A file that neither wusa nor dism installs.
    #[error("a script installs .msu and .cab files, not {0}")]
    Kind(String),
    /// A text that would not stay in its quotes or on its line.
    #[error("{0:?} has control characters")]
    Text(String),
}

impl Diagnose for ScriptError {
    fn blame(&self) -> Blame {
        match self {
            Self::Text(_) => Blame::Request,
            _ => Blame::Circumstances,
        }
    }
}

const BODY: &str = include_str!("script/install.ps1");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Wusa,
    Dism,
}

impl Script<'_> {
    /// The script's text, for Windows PowerShell 5.1 and later.
    pub fn render(&self) -> Result<String, ScriptError> {
        let target = self.target()?;
        let tool = self.tool(target);
        let mut text = format!(
            "#Requires -Version 5.1\n#Requires -RunAsAdministrator\n\
             # Installs {} on this node: {}.\n\
             # Checks first what is there, so that it can be run again at any time.\n\n\
             $hotfix = @{{\n",
            self.kb,
            comment(self.title)?,
        );
        self.settings(&mut text, target, tool)?;
        text.push_str("}\n");
        text.push_str(BODY);
        if !text.is_ascii() {
            // Windows PowerShell takes a file without this mark for one in the machine's code page.
            text.insert(0, '\u{feff}');
        }
        Ok(text)
    }

    fn settings(
        &self,
        text: &mut String,
        target: &UpdateFile,
        tool: Tool,
    ) -> Result<(), ScriptError> {
        let number = |number: Option<u32>| {
            number.map_or_else(|| "$null".to_owned(), |number| number.to_string())
        };
        let build = self.version.map(|version| version.build);
        let revision = self.version.and_then(|version| version.revision);
        let folder = match &self.source {
            Source::Folder(folder) => quoted(folder)?,
            // Only administrators write there, so a verified file stays what it is.
            _ => format!(
                "(Join-Path $env:ProgramFiles {})",
                quoted(&format!("wincimg\\{}", self.kb))?
            ),
        };
        let switch = if self.restart { "$true" } else { "$false" };
        let tool_name = match tool {
            Tool::Wusa => "wusa",
            Tool::Dism => "dism",
        };
        let mut line = |key: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    {key:<8} = {value}");
        };
        line("Article", &quoted(&self.kb.to_string())?);
        line("Build", &number(build));
        line("Revision", &number(revision));
        line("Tool", &quoted(tool_name)?);
        line("Restart", switch);
        line("Folder", &folder);
        line("Files", "@(");
        for file in self.files {
            let _ = writeln!(text, "        {}", self.file(file)?);
        }
        text.push_str("    )\n");
        let install = self.install(target, tool);
        let names: Result<Vec<String>, ScriptError> =
            install.map(|file| quoted(&file.name)).collect();
        let _ = writeln!(text, "    Install  = @({})", names?.join(", "));
        Ok(())
    }

    /// What is handed to the tool: DISM finds checkpoint files beside the target by itself, wusa
    /// wants what comes before the target first.
    fn install<'s>(
        &'s self,
        target: &'s UpdateFile,
        tool: Tool,
    ) -> impl Iterator<Item = &'s UpdateFile> {
        let before = self
            .files
            .iter()
            .filter(move |file| tool == Tool::Wusa && file.name != target.name);
        before.chain([target])
    }

    fn file(&self, file: &UpdateFile) -> Result<String, ScriptError> {
        let digest = file
            .digests
            .best()
            .ok_or_else(|| ScriptError::NoDigest(file.name.clone()))?;
        let url = match &self.source {
            Source::Links => Some(file.url.clone()),
            Source::Url(mirror) => Some(format!("{}/{}", mirror.trim_end_matches('/'), file.name)),
            Source::Folder(_) => None,
        };
        let url = match url {
            Some(url) => format!("; Url = {}", quoted(&url)?),
            None => String::new(),
        };
        Ok(format!(
            "@{{ Name = {}; Algorithm = '{}'; Digest = '{}'{url} }}",
            quoted(&file.name)?,
            digest.algorithm().as_ref().to_ascii_uppercase(),
            digest.digest(),
        ))
    }

    /// The file that is the update; others are what it builds on.
    fn target(&self) -> Result<&UpdateFile, ScriptError> {
        let target = match self.files {
            [only] => Some(only),
            files => files
                .iter()
                .find(|file| article_in_name(&file.name) == Some(self.kb)),
        };
        let target = target.ok_or_else(|| {
            let names: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
            ScriptError::NoTarget {
                kb: self.kb,
                count: names.len(),
                names: names.join(", "),
            }
        })?;
        let odd = self
            .files
            .iter()
            .find(|file| !has_ending(file, "msu") && !has_ending(file, "cab"));
        match odd {
            Some(odd) => Err(ScriptError::Kind(odd.name.clone())),
            None => Ok(target),
        }
    }

    fn tool(&self, target: &UpdateFile) -> Tool {
        let wim = match (self.container, self.version) {
            (Some(container), _) => container == Container::Wim,
            (None, Some(version)) => release::up_to_build(version.build)
                .is_some_and(|release| release.package == Package::Wim),
            // Sets of files came with checkpoints, and these with WIMs.
            (None, None) => self.files.len() > 1,
        };
        if wim || has_ending(target, "cab") {
            Tool::Dism
        } else {
            Tool::Wusa
        }
    }
}

fn has_ending(file: &UpdateFile, ending: &str) -> bool {
    let own = file.name.rsplit('.').next();
    own.is_some_and(|own| own.eq_ignore_ascii_case(ending))
}

/// A text as PowerShell reads it back: in single quotes, of which it knows five.
fn quoted(text: &str) -> Result<String, ScriptError> {
    if text.chars().any(char::is_control) {
        return Err(ScriptError::Text(text.to_owned()));
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        if matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}') {
            quoted.push(c);
        }
        quoted.push(c);
    }
    quoted.push('\'');
    Ok(quoted)
}

/// A text that stays on the line of its comment.
fn comment(text: &str) -> Result<&str, ScriptError> {
    if text
        .chars()
        .any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
    {
        return Err(ScriptError::Text(text.to_owned()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
