//! Cmdlets that filter a pipeline, and cmdlets that only print.

use super::super::error::{self, Result, ScriptError};
use super::super::process::{PathState, check_no_wildcards};
use super::ast::CommandAst;
use super::drive::{TWO_PATHS, path_of};
use super::eval::{ErrorAction, Shell};
use super::parameters::ParameterSet;
use super::value::{Input, PsValue};

const SELECT_OBJECT: ParameterSet =
    ParameterSet("[property] expandproperty first last skip unique? excludeproperty! skiplast!");

const SPLIT: ParameterSet =
    ParameterSet("[path] literalpath=pspath=lp leaf? parent? resolve? qualifier? noqualifier?");

/// Cmdlets that query a running Windows. They are skipped if their output is not used.
pub(super) const OUTPUT_ONLY: &str = "
    get-date get-host get-process get-service get-command get-module get-windowsfeature
    get-windowsoptionalfeature get-wmiobject get-ciminstance get-computerinfo get-netadapter
    get-netipaddress get-netipconfiguration get-hotfix get-culture get-timezone
    get-packageprovider get-package get-executionpolicy get-alias get-psdrive get-volume
    get-localuser get-random get-printer get-acl test-netconnection resolve-dnsname select-string
";

impl Shell<'_, '_> {
    /// Skips a cmdlet without effect; its output cannot be used.
    pub(super) fn skip_output_cmdlet(
        &mut self,
        name: &str,
        command: &CommandAst,
    ) -> Result<PsValue> {
        // A provider that is named may be installed.
        if name == "get-packageprovider" && !command.arguments.is_empty() {
            return error::windows("it may install a package provider");
        }
        let is_pure = matches!(
            name,
            "get-date" | "get-host" | "get-culture" | "get-random" | "select-string"
        );
        if !is_pure {
            let text = self.script.as_str().get(command.at..).unwrap_or_default();
            let text = text
                .split([';', '|', '\n', ')', '}'])
                .next()
                .unwrap_or_default();
            let outer = self.machine.skipped.take();
            self.machine.skip(text.trim().to_owned())?;
            // Without arguments it prints all there is.
            if command.arguments.is_empty() {
                self.machine.skipped = None;
            }
            self.command_status
                .left_out
                .clone_from(&self.machine.skipped);
            if self.error_action(command)? == ErrorAction::Continue {
                self.machine.skipped = None;
            }
            self.machine.skipped = self.machine.skipped.take().or(outer);
        }
        Ok(PsValue::opaque(format!("the output of {name} is used")))
    }

    pub(super) fn select_object(&mut self, command: &CommandAst, input: Input) -> Result<PsValue> {
        let given = self.bind_parameters(command, &SELECT_OBJECT)?;
        let input = input.unwrap_or(PsValue::Null);
        if let Err(error) = input.check_known() {
            return Ok(PsValue::Opaque(error));
        }
        if given.has("unique") || given.value("property").is_some() {
            return Ok(PsValue::opaque("the output of Select-Object is used"));
        }
        let count = |name: &str| match given.value(name) {
            None => Ok(None),
            Some(value) => match value.number().map(usize::try_from) {
                Some(Ok(count)) => Ok(Some(count)),
                _ => error::option(&format!("-{name}")),
            },
        };
        let mut items = input.items();
        if given.value("skip").is_some() && given.value("last").is_some() {
            return error::option("-Skip with -Last");
        }
        let skipped = count("skip")?.unwrap_or_default().min(items.len());
        items.drain(..skipped);
        if let Some(first) = count("first")? {
            items.truncate(first);
        }
        if let Some(last) = count("last")? {
            items.drain(..items.len().saturating_sub(last));
        }
        if let Some(member) = given.text("expandproperty")? {
            let name = member.to_lowercase();
            // Whether keys count as properties depends on the version.
            if items.iter().any(|item| matches!(item, PsValue::Table(_))) {
                return error::option("-ExpandProperty");
            }
            items = items
                .into_iter()
                .map(|item| self.member(item, &name, false))
                .collect::<Result<_, _>>()?;
        }
        Ok(PsValue::from_items(items))
    }

    /// `Where-Object { … }`
    pub(super) fn where_object(&mut self, command: &CommandAst, input: Input) -> Result<PsValue> {
        let takes = ParameterSet("[filterscript] ...");
        let statements = self.bind_block(command, &takes)?;
        let input = input.unwrap_or(PsValue::Null);
        if let Err(error) = input.check_known() {
            return Ok(PsValue::Opaque(error));
        }
        let mut out = Vec::new();
        for item in input.items() {
            self.machine.step()?;
            self.variables.insert("_".to_owned(), item.clone());
            if self.run_item_block(&statements)?.to_bool()? {
                out.push(item);
            }
        }
        Ok(PsValue::from_items(out))
    }

    pub(super) fn split_path(&mut self, command: &CommandAst, input: Input) -> Result<PsValue> {
        let given = self.bind_parameters(command, &SPLIT)?;
        let text = match (path_of(&given)?, input) {
            (Some(path), None) => path,
            (None, Some(PsValue::Null)) => return Ok(PsValue::Null),
            (None, Some(PsValue::List(_))) => {
                return error::unclear("several paths are not supported");
            }
            (None, Some(input)) => input.text()?,
            (None, None) => return error::unclear("no path given"),
            (Some(_), Some(_)) => return error::unclear(TWO_PATHS),
        };
        for switch in ["resolve", "qualifier", "noqualifier"] {
            if given.has(switch) {
                return error::option(&format!("-{switch}"));
            }
        }
        let text = text.replace('/', r"\");
        let text = text.trim_end_matches('\\');
        let (above, last) = text.rsplit_once('\\').unwrap_or(("", text));
        Ok(PsValue::text_value(if given.has("leaf") {
            last.to_owned()
        } else if is_drive(above) {
            format!(r"{above}\")
        } else {
            above.to_owned()
        }))
    }

    /// `Resolve-Path` and `Convert-Path`, without wildcards
    pub(super) fn resolve_path(&mut self, command: &CommandAst) -> Result<PsValue> {
        let takes = ParameterSet("[path] literalpath=pspath=lp");
        let given = self.bind_parameters(command, &takes)?;
        let path = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no path given"))?;
        let path = self.file_path(&path, "it does not resolve a file path")?;
        check_no_wildcards(&path, &['*', '?', '['])?;
        let path = self.machine.path(&path)?;
        match self.machine.path_state(&path)? {
            PathState::Absent => error::fails(format!("{path} not found")),
            _ => Ok(PsValue::Text(path.to_string())),
        }
    }

    pub(super) fn set_variable_cmdlet(&mut self, command: &CommandAst) -> Result<()> {
        let takes = ParameterSet("[name] [value] option scope force? visibility!");
        let given = self.bind_parameters(command, &takes)?;
        if given.value("scope").is_some() && self.calls > 0 {
            return error::option("-Scope");
        }
        let name = given.required("name")?.to_lowercase();
        let value = given.value("value").cloned().unwrap_or(PsValue::Null);
        self.set_variable(&name, value)
    }
}

/// Returns true for `C:`, the folder above which is written with a backslash: alone, it is the
/// drive's current folder.
fn is_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic())
}

/// Members of files and folders that are part of their names.
pub(super) fn item_member(path: &wincimg_windows::path::ImagePath, name: &str) -> Option<PsValue> {
    let last = path.name();
    let divided = last.rsplit_once('.');
    Some(match name {
        "fullname" | "path" => PsValue::Text(path.to_string()),
        "name" | "pschildname" => PsValue::text_value(last),
        "basename" => PsValue::text_value(divided.map_or(last, |(stem, _)| stem)),
        "extension" => {
            PsValue::text_value(divided.map_or(String::new(), |(_, end)| format!(".{end}")))
        }
        "directoryname" | "directory" => path.parent().map_or(PsValue::Null, PsValue::Item),
        "parent" => path.parent().map_or(PsValue::Null, PsValue::Listed),
        _ => return None,
    })
}
