//! Registry values that commands set, with `reg` or a cmdlet.

use crate::lint::prelude::*;

/// A command that sets a registry value.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) name: &'a Word,
    pub(super) kind: Option<&'a Word>,
    pub(super) data: Option<&'a Word>,
    pub(super) tool: Tool,
}

/// Tool that changes the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Reg,
    NewItemProperty,
    SetItemProperty,
}

impl<'a> Change<'a> {
    /// Parses the change that a command makes.
    pub(super) fn from_command(command: &'a LintCommand) -> Option<Self> {
        let arguments = command.words.get(1..)?;
        match command.program() {
            "reg" => by_reg(command),
            "new-itemproperty" => by_cmdlet(arguments, Tool::NewItemProperty),
            "set-itemproperty" | "sp" => by_cmdlet(arguments, Tool::SetItemProperty),
            _ => None,
        }
    }
}

fn by_reg(command: &LintCommand) -> Option<Change<'_>> {
    let name = command.value_of(&["/v", "-v"]);
    Some(Change {
        name: name.filter(|_| command.word(1).eq_ignore_ascii_case("add"))?,
        kind: command.value_of(&["/t", "-t"]),
        data: command.value_of(&["/d", "-d"]),
        tool: Tool::Reg,
    })
}

/// Parses the parameters of a cmdlet; PowerShell accepts unambiguous prefixes of names.
fn by_cmdlet(words: &[Word], tool: Tool) -> Option<Change<'_>> {
    let mut positional = Vec::new();
    let (mut path, mut name, mut kind, mut data) = (false, None, None, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let lower = word.value.to_ascii_lowercase();
        let Some(parameter) = lower.strip_prefix('-').filter(|p| !p.is_empty()) else {
            positional.push(word);
            continue;
        };
        if parameter == "force" || parameter == "passthru" || parameter == "whatif" {
            continue;
        }
        let value = rest.next();
        match parameter {
            _ if "name".starts_with(parameter) => name = value,
            _ if "value".starts_with(parameter) => data = value,
            _ if "path".starts_with(parameter) || parameter == "literalpath" => path = true,
            "type" => kind = value,
            _ if "propertytype".starts_with(parameter) => kind = value,
            _ => {}
        }
    }
    let mut positional = positional.into_iter();
    if !path {
        positional.next();
    }
    Some(Change {
        name: name.or_else(|| positional.next())?,
        kind,
        data: data.or_else(|| positional.next()),
        tool,
    })
}
