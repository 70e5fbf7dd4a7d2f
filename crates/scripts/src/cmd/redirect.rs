//! Redirected output.

use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::super::image::ImageAction;
use super::super::process::{HIDDEN_OR_SYSTEM, PathState, READ_ONLY, is_nul};
use super::super::traced_text::TracedText;
use super::Cmd;
use super::parse::{Redirect, RedirectTarget};

/// Where output goes: a file, and true if it is appended; `None` for the NUL device.
type Destination = Option<(String, bool)>;

impl Cmd<'_, '_> {
    /// Runs something with redirected output.
    pub(super) fn redirected(
        &mut self,
        redirects: &[Redirect],
        run: impl FnOnce(&mut Self) -> Result<i32>,
    ) -> Result<i32> {
        if let Some(missing) = self.missing_input(redirects)? {
            if self.writes_file(redirects) {
                return error::unclear("whether it creates the file without its input is unknown");
            }
            return Ok(self.machine.fail(1, format!("file {missing} not found")));
        }
        let Some((destination, at)) = self.destination(redirects)? else {
            return run(self);
        };
        let located = |error: ScriptError| error.at_position(at);
        let (appends_to, output) = match &destination {
            None => (None, None),
            Some((name, append)) => {
                let appends_to = self.open(name, *append).map_err(located)?;
                (appends_to, Some(Vec::new()))
            }
        };
        let outer_file = std::mem::replace(&mut self.appends_to, appends_to);
        let outer = std::mem::replace(&mut self.output, output);
        let result = run(self);
        let printed = std::mem::replace(&mut self.output, outer).unwrap_or_default();
        self.appends_to = outer_file;
        let Some((name, append)) = destination else {
            return result;
        };
        if result? != 0 {
            return Err(located(ScriptError::unclear(
                "a command whose output is redirected to a file fails",
            )));
        }
        self.write(&name, append, printed).map_err(located)?;
        Ok(0)
    }

    /// Opens the target of a redirection before the command runs: cmd empties an existing file.
    /// Returns the file if output is appended to it.
    fn open(&mut self, name: &str, append: bool) -> Result<Option<ImagePath>> {
        let path = self.machine.file_path(name)?;
        if append {
            return Ok(Some(path));
        }
        if self.machine.path_state(&path)? == PathState::File {
            self.write(name, false, Vec::new())?;
        }
        Ok(None)
    }

    fn write(&mut self, name: &str, append: bool, content: Vec<u8>) -> Result<()> {
        let path = self.machine.file_path(name)?;
        self.machine.ensure_parent(&path, false)?;
        if self.machine.path_state(&path)? == PathState::Folder {
            return error::fails(format!("{path} is a folder"));
        }
        // cmd opens a file that it replaces like a new one.
        let denied = if append { 0 } else { HIDDEN_OR_SYSTEM };
        self.machine.check_attributes(&path, READ_ONLY | denied)?;
        self.machine.apply(if append {
            ImageAction::Append { path, content }
        } else {
            ImageAction::Write { path, content }
        })
    }

    /// Returns true if a redirection is to a file.
    pub(super) fn writes_file(&self, redirects: &[Redirect]) -> bool {
        redirects.iter().any(|redirect| match &redirect.to {
            RedirectTarget::File { name, .. } => !matches!(self.file_of(name), Ok(None)),
            RedirectTarget::Stream(_) | RedirectTarget::Input(_) => false,
        })
    }

    /// The file that a redirection names; `None` for the NUL device.
    fn file_of(&self, name: &TracedText) -> Result<Option<String>> {
        let name = self.filled(name)?.as_str().replace('"', "");
        Ok(Some(name).filter(|name| !is_nul(name)))
    }

    /// The input that does not exist, if there is one.
    fn missing_input(&self, redirects: &[Redirect]) -> Result<Option<ImagePath>> {
        for redirect in redirects {
            if let RedirectTarget::Input(name) = &redirect.to
                && let Some(name) = self.file_of(name)?
            {
                let path = self.machine.path(&name)?;
                if !self.machine.has_file(&path)? {
                    return Ok(Some(path));
                }
            }
        }
        Ok(None)
    }

    /// Destination of standard output and its position. Errors, and output that goes with them, are
    /// discarded.
    fn destination(&self, redirects: &[Redirect]) -> Result<Option<(Destination, usize)>> {
        let mut found: Option<(Destination, usize)> = None;
        for redirect in redirects {
            let (destination, at) = match (&redirect.to, redirect.stream) {
                (RedirectTarget::Input(_), _)
                | (RedirectTarget::Stream(1), 1)
                | (RedirectTarget::Stream(2), 2) => continue,
                (RedirectTarget::Stream(1), 2) => {
                    let (is_file, at) = match &found {
                        Some((to, at)) => (to.is_some(), *at),
                        None => (self.output.is_some(), usize::MAX),
                    };
                    if is_file {
                        let why = "redirecting errors to a file with the output is not supported";
                        return Err(ScriptError::unclear(why).at_position(at));
                    }
                    continue;
                }
                (RedirectTarget::Stream(2), 1) => (None, usize::MAX),
                (RedirectTarget::File { name, append }, stream) => {
                    let at = name.origin(0);
                    match (self.file_of(name)?, stream) {
                        (None, 2) => continue,
                        (None, 1) => (None, at),
                        (Some(file), 1) => (Some((file, *append)), at),
                        _ => {
                            let why =
                                format!("redirecting stream {stream} to a file is not supported");
                            return Err(ScriptError::unclear(why).at_position(at));
                        }
                    }
                }
                (RedirectTarget::Stream(_), _) => return error::unclear("unsupported redirection"),
            };
            if let Some((first, _)) = &found
                && (first.is_some() || destination.is_some())
            {
                let why = "redirecting output twice is not supported";
                return Err(ScriptError::unclear(why).at_position(at));
            }
            found = Some((destination, at));
        }
        Ok(found)
    }
}
