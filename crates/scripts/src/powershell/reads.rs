//! Cmdlets that pick from what others give, and those that only tell something.

use super::super::image::Action;
use super::super::machine::{last_name, parent};
use super::super::trouble::Trouble;
use super::ast::Command;
use super::bind::Takes;
use super::cmdlets::{Drive, drive, path_of};
use super::eval::Shell;
use super::value::Value;

const PICK: Takes = Takes {
    values: &["property", "expandproperty", "first", "last", "skip"],
    switches: &["unique"],
    positions: &["property"],
};

const SPLIT: Takes = Takes {
    values: &["path", "literalpath"],
    switches: &["leaf", "parent", "resolve", "qualifier", "noqualifier"],
    positions: &["path"],
};

/// Cmdlets that tell what only a running Windows knows. Nothing is lost where nobody asks what they
/// told.
const TELL: [&str; 30] = [
    "get-date",
    "get-host",
    "get-process",
    "get-service",
    "get-command",
    "get-module",
    "get-windowsfeature",
    "get-windowsoptionalfeature",
    "get-wmiobject",
    "get-ciminstance",
    "get-computerinfo",
    "get-netadapter",
    "get-netipaddress",
    "get-netipconfiguration",
    "get-hotfix",
    "get-culture",
    "get-timezone",
    "get-packageprovider",
    "get-package",
    "get-executionpolicy",
    "get-alias",
    "get-psdrive",
    "get-volume",
    "get-localuser",
    "get-random",
    "get-printer",
    "get-acl",
    "test-netconnection",
    "resolve-dnsname",
    "select-string",
];

/// Whether a cmdlet only tells something.
pub(super) fn tells(name: &str) -> bool {
    TELL.contains(&name)
}

impl Shell<'_, '_> {
    /// Leaves out a cmdlet that only tells something.
    pub(super) fn told(&mut self, name: &str, command: &Command) -> Result<Value, Trouble> {
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
            self.machine.apply(Action::Skip(text.trim().to_owned()))?;
        }
        Ok(Value::opaque(format!("what {name} tells is used")))
    }

    /// `Select-Object`
    pub(super) fn pick(
        &mut self,
        command: &Command,
        input: Option<Value>,
    ) -> Result<Value, Trouble> {
        let given = self.given(command, &PICK)?;
        let input = input.unwrap_or(Value::Null);
        if let Value::Opaque(_) = input {
            return Ok(input);
        }
        if given.has("unique") || given.value("property").is_some() {
            return Ok(Value::opaque("what Select-Object makes is used"));
        }
        let count = |name: &str| match given.value(name) {
            None => Ok(None),
            Some(value) => match value.number().map(usize::try_from) {
                Some(Ok(count)) => Ok(Some(count)),
                _ => Err(Trouble::option(&format!("-{name}"))),
            },
        };
        let mut items = input.items();
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
            items = items
                .into_iter()
                .map(|item| super::methods::member(item, &name, false))
                .collect::<Result<_, _>>()?;
        }
        Ok(Value::of(items))
    }

    /// `Where-Object { … }`
    pub(super) fn filter(
        &mut self,
        command: &Command,
        input: Option<Value>,
    ) -> Result<Value, Trouble> {
        let takes = Takes {
            values: &["filterscript"],
            switches: &[],
            positions: &["filterscript"],
        };
        let given = self.given(command, &takes)?;
        let Some(Value::Block(statements)) = given.value("filterscript").cloned() else {
            return Err(Trouble::unclear("it is given something else than a block"));
        };
        let input = input.unwrap_or(Value::Null);
        if let Value::Opaque(_) = input {
            return Ok(input);
        }
        let mut out = Vec::new();
        for item in input.items() {
            self.machine.step()?;
            self.variables.insert("_".to_owned(), item.clone());
            if self.block_of_item(&statements)?.truth()? {
                out.push(item);
            }
        }
        Ok(Value::of(out))
    }

    /// `Split-Path`
    pub(super) fn split_path(
        &mut self,
        command: &Command,
        input: Option<Value>,
    ) -> Result<Value, Trouble> {
        let given = self.given(command, &SPLIT)?;
        let text = match (path_of(&given)?, input) {
            (Some(path), _) => path,
            (None, Some(input)) => input.text()?,
            (None, None) => return Err(Trouble::unclear("it names no path")),
        };
        for switch in ["resolve", "qualifier", "noqualifier"] {
            if given.has(switch) {
                return Err(Trouble::option(&format!("-{switch}")));
            }
        }
        let text = text.trim_end_matches(['\\', '/']);
        let (above, last) = text.rsplit_once(['\\', '/']).unwrap_or(("", text));
        Ok(Value::text_value(if given.has("leaf") {
            last
        } else {
            above
        }))
    }

    /// `Resolve-Path` and `Convert-Path` of a path without wildcards.
    pub(super) fn resolve_path(&mut self, command: &Command) -> Result<Value, Trouble> {
        let takes = Takes {
            values: &["path", "literalpath"],
            switches: &[],
            positions: &["path"],
        };
        let given = self.given(command, &takes)?;
        let path = path_of(&given)?.ok_or_else(|| Trouble::unclear("it names no path"))?;
        let Drive::File(path) = drive(&path)? else {
            return Err(Trouble::unclear("it resolves something else than a file"));
        };
        if path.contains(['*', '?', '[']) {
            return Err(Trouble::unclear("wildcards are not understood here"));
        }
        let path = self.machine.path(&path)?;
        match self.machine.now(&path)? {
            super::super::machine::Now::Absent => {
                Err(Trouble::fails(format!("{path} is not there")))
            }
            _ => Ok(Value::Text(path.to_string())),
        }
    }

    /// `Set-Variable`
    pub(super) fn set_variable_cmdlet(&mut self, command: &Command) -> Result<Value, Trouble> {
        let takes = Takes {
            values: &["name", "value", "option", "scope"],
            switches: &["force"],
            positions: &["name", "value"],
        };
        let given = self.given(command, &takes)?;
        if given.value("scope").is_some() && self.calls > 0 {
            return Err(Trouble::option("-Scope"));
        }
        let name = given.needed("name")?.to_lowercase();
        let value = given.value("value").cloned().unwrap_or(Value::Null);
        self.set_variable(&name, value)?;
        Ok(Value::Null)
    }
}

/// Members of files and folders that come from their names.
pub(super) fn item_member(path: &wincimg_windows::path::ImagePath, name: &str) -> Option<Value> {
    let last = last_name(path);
    let divided = last.rsplit_once('.');
    Some(match name {
        "fullname" | "path" => Value::Text(path.to_string()),
        "name" | "pschildname" => Value::text_value(last),
        "basename" => Value::text_value(divided.map_or(last, |(stem, _)| stem)),
        "extension" => {
            Value::text_value(divided.map_or(String::new(), |(_, end)| format!(".{end}")))
        }
        "directoryname" | "directory" | "parent" => parent(path).map_or(Value::Null, Value::Item),
        _ => return None,
    })
}
