//! Cmdlets that start processes and scripts.

use wincimg_registry::{RegistryData, RegistryEdit};

use super::super::error::{self, Result, ScriptError, ScriptErrorKind};
use super::super::image::{ImageAction, Lookup, PackageFeed, PendingDownload};
use super::super::process::Process;
use super::super::tools;
use super::super::traced_text::TracedText;
use super::ast::CommandAst;
use super::eval::Shell;
use super::parameters::ParameterSet;
use super::value::PsValue;

const START: ParameterSet = ParameterSet(
    "[filepath=path] [argumentlist=args] workingdirectory windowstyle verb wait? nonewwindow? \
     passthru?",
);

const WAIT: ParameterSet = ParameterSet("inputobject");

impl Shell<'_, '_> {
    /// The error of `Invoke-Expression`, with the URL of the script if the line has it. The script
    /// that installs Chocolatey is left out if its packages come from a feed.
    pub(super) fn run_time_script(
        &mut self,
        command: &CommandAst,
        input: Option<&PsValue>,
    ) -> Result<PsValue> {
        let piped = match input {
            Some(PsValue::Opaque(error)) => error.why.as_str(),
            _ => "",
        };
        let after = self.script.as_str().get(command.at..).unwrap_or_default();
        let url = url_in(piped).or_else(|| url_in(after.split('\n').next().unwrap_or_default()));
        let Some(url) = url else {
            return error::windows("it runs a script that is known only at run time");
        };
        let is_chocolatey = url.ends_with("chocolatey.org/install.ps1");
        if is_chocolatey && self.machine.image.feed() != PackageFeed::None {
            let note = "Chocolatey is not installed: only its packages are";
            self.apply(ImageAction::Note(note.to_owned()))?;
            return Ok(PsValue::Null);
        }
        let why = format!("it runs a script that is known only at run time: {url}");
        Err(ScriptError::windows(why).instead(if is_chocolatey {
            "add the folder or URL of a feed of the packages (--choco-feed DIR)"
        } else {
            "copy the script with the Dockerfile"
        }))
    }

    /// Runs `Start-Process msiexec -Wait` or an installer; other programs require Windows.
    pub(super) fn start_process(&mut self, command: &CommandAst) -> Result<PsValue> {
        let Ok(given) = self.bind_parameters(command, &START) else {
            return error::windows("it starts a program");
        };
        let program = given.required("filepath")?;
        let is_package = tools::is_package(&program);
        let is_msiexec = tools::program_name(&program) == "msiexec" && !is_package;
        if !is_msiexec && !tools::may_be_installer(self.machine, &program) {
            let why = format!("it starts the program {program}");
            return Err(ScriptError::windows(why).instead(if is_package {
                tools::PACKAGE
            } else {
                tools::INSTALLER
            }));
        }
        for parameter in ["workingdirectory", "verb"] {
            if given.value(parameter).is_some() {
                return error::option(&format!("-{parameter}"));
            }
        }
        let waits = given.has("wait") || given.has("passthru") && self.waits_after(command);
        if !waits {
            let why = "it does not wait for the program, and the build may end before it";
            return Err(ScriptError::refused(why).help("add -Wait"));
        }
        // It joins the arguments with spaces, and quotes none.
        let arguments = given.texts("argumentlist")?.join(" ");
        let line = format!("\"{program}\" {arguments}");
        let code = self.run_program(&line, command)?;
        let [_, required] = tools::RESTART;
        if code != 0 && code != required {
            let why = format!("{program} ends with exit code {code}");
            let error = self.machine.take_error(why);
            self.machine.error = Some(error.clone());
            // Windows would go on without what it installs, or restart.
            let unread = ScriptError {
                kind: ScriptErrorKind::Refused,
                help: error.help.or(Some(tools::HANDLE)),
                why: format!("{}, and nothing reads the exit code", error.why),
                ..error
            };
            if !given.has("passthru") {
                return Err(unread);
            }
            self.machine.unread = Some(unread);
        }
        self.unawaited = u32::from(!given.has("wait"));
        Ok(if given.has("passthru") {
            PsValue::Process(code)
        } else {
            PsValue::Null
        })
    }

    /// Runs a command line and returns its exit code.
    pub(super) fn run_program(&mut self, line: &str, command: &CommandAst) -> Result<i32> {
        let at = self.position(command.at);
        let line = TracedText::from_one(line, at);
        tools::command_line(self.machine, tools::Starter::Windows, &line)
    }

    /// Returns true if the script waits for a process after a command.
    fn waits_after(&self, command: &CommandAst) -> bool {
        let after = self.script.as_str().get(command.at..).unwrap_or_default();
        let after = after.to_ascii_lowercase();
        after.contains(".waitforexit(") || after.contains("wait-process")
    }

    /// `Wait-Process` for the program of `Start-Process -PassThru`.
    pub(super) fn wait_process(
        &mut self,
        command: &CommandAst,
        input: Option<&PsValue>,
    ) -> Result<()> {
        if let Ok(given) = self.bind_parameters(command, &WAIT)
            && let Some(PsValue::Process(_)) = given.value("inputobject").or(input)
        {
            self.unawaited = 0;
            return Ok(());
        }
        error::windows("it works only on Windows")
    }

    /// `Set-ExecutionPolicy`: of the process, or a value of the machine's registry.
    pub(super) fn set_execution_policy(&mut self, command: &CommandAst) -> Result<()> {
        const KEY: &str = r"HKLM\SOFTWARE\Microsoft\PowerShell\1\ShellIds\Microsoft.PowerShell";
        const NAMES: [&str; 5] = [
            "Restricted", "AllSigned", "RemoteSigned", "Unrestricted", "Bypass",
        ];
        let takes = ParameterSet("[executionpolicy] [scope] force? confirm=cf?");
        let given = self.bind_parameters(command, &takes)?;
        let name = given.required("executionpolicy")?;
        let mut names = NAMES.into_iter();
        let Some(policy) = names.find(|own| own.eq_ignore_ascii_case(&name)) else {
            return error::unclear(format!("unsupported policy {name:?}"));
        };
        let scope = given.text("scope")?.map(|scope| scope.to_lowercase());
        match scope.as_deref() {
            Some("process") => {
                let policy = Some(policy.to_owned());
                self.machine.variables.set(super::POLICY, policy);
                return Ok(());
            }
            None | Some("localmachine") if !self.is_core => {}
            None | Some("localmachine") => {
                return error::unclear("PowerShell 7 keeps the policy in a file of its own");
            }
            Some(other) => return error::unclear(format!("unsupported scope {other}")),
        }
        match self.machine.variable(super::POLICY) {
            Lookup::Absent => {}
            Lookup::Present(own) if own.eq_ignore_ascii_case(policy) => {}
            Lookup::Deferred(PendingDownload) | Lookup::Unknown => {
                let why = format!("whether the base sets {} is unknown", super::POLICY);
                return error::unknown(why);
            }
            Lookup::Present(_) => {
                let why = "the policy of the process is another one, which makes it fail";
                return Err(ScriptError::unclear(why).help("add -Scope Process"));
            }
        }
        self.machine.edit(RegistryEdit::SetValue {
            key: Process::parse_key(KEY)?,
            name: "ExecutionPolicy".to_owned(),
            data: RegistryData::sz(policy),
        })
    }
}

/// The first URL in a text, up to a quote or space.
fn url_in(text: &str) -> Option<String> {
    let at = text.find("https://").or_else(|| text.find("http://"))?;
    let url = text[at..]
        .split(|c: char| c.is_whitespace() || "'\")(|;,".contains(c))
        .next()?;
    // It may have a password.
    (!url.contains('@')).then(|| url.to_owned())
}
