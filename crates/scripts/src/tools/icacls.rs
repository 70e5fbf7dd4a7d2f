//! `icacls`: changes of rights, owners and inheritance.

use super::super::error::ScriptError;
use super::super::image::{
    AccessChange, AccessOperation, ImageAction, InheritanceMode, RemovedEntries,
};
use super::super::process::{PathState, Process};

/// Option whose operands follow.
#[derive(Clone, Copy)]
enum Operands {
    None,
    Grants { replaces: bool },
    Denials,
    Removed(RemovedEntries),
    Owner,
}

/// Options of a line.
#[derive(Default)]
struct Options {
    operations: Vec<AccessOperation>,
    each_inside: bool,
}

pub(super) fn run(machine: &mut Process<'_>, words: &[String]) -> Result<i32, ScriptError> {
    let Some((path, rest)) = words.split_first() else {
        return Err(ScriptError::unclear("no file given"));
    };
    if rest.is_empty() {
        return Ok(0);
    }
    let options = Options::read(rest)?;
    if path.contains(['*', '?']) {
        return Err(ScriptError::unclear("wildcards are not supported here"));
    }
    let path = machine.path(path)?;
    let is_file = match machine.path_state(&path)? {
        PathState::Absent => return Ok(2),
        PathState::File => true,
        PathState::Folder | PathState::Deferred => false,
    };
    options.check(is_file)?;
    for operation in options.operations {
        machine.apply(ImageAction::Access(AccessChange {
            path: path.clone(),
            operation,
            each_inside: options.each_inside,
        }))?;
    }
    Ok(0)
}

impl Options {
    fn read(words: &[String]) -> Result<Self, ScriptError> {
        let mut options = Self::default();
        let mut operands = Operands::None;
        for word in words {
            let lower = word.to_ascii_lowercase();
            if !lower.starts_with('/') {
                options.operand(word, operands)?;
                continue;
            }
            operands = match lower.as_str() {
                "/grant" => Operands::Grants { replaces: false },
                "/grant:r" => Operands::Grants { replaces: true },
                "/deny" => Operands::Denials,
                "/remove" => Operands::Removed(RemovedEntries::All),
                "/remove:g" => Operands::Removed(RemovedEntries::Granted),
                "/remove:d" => Operands::Removed(RemovedEntries::Denied),
                "/setowner" => Operands::Owner,
                _ => {
                    options.switch(&lower)?;
                    Operands::None
                }
            };
        }
        if options.operations.is_empty() {
            return Err(ScriptError::unclear("no change given"));
        }
        Ok(options)
    }

    fn switch(&mut self, switch: &str) -> Result<(), ScriptError> {
        let inheritance = |mode| AccessOperation::Inheritance(mode);
        match switch {
            "/t" => self.each_inside = true,
            "/q" | "/c" => {}
            "/reset" => self.operations.push(AccessOperation::Reset),
            "/inheritance:e" => self.operations.push(inheritance(InheritanceMode::Enable)),
            "/inheritance:d" => self.operations.push(inheritance(InheritanceMode::Copy)),
            "/inheritance:r" => self.operations.push(inheritance(InheritanceMode::Remove)),
            _ => return Err(ScriptError::option(switch)),
        }
        Ok(())
    }

    fn operand(&mut self, word: &str, operands: Operands) -> Result<(), ScriptError> {
        let account = || word.to_owned();
        let operation = match operands {
            Operands::None => {
                let why = format!("unsupported argument {word:?}");
                return Err(ScriptError::unclear(why));
            }
            Operands::Grants { replaces } => {
                let (account, rights) = account_and_rights(word)?;
                AccessOperation::Grant {
                    account,
                    rights,
                    replaces,
                }
            }
            Operands::Denials => {
                let (account, rights) = account_and_rights(word)?;
                AccessOperation::Deny { account, rights }
            }
            Operands::Removed(entries) => AccessOperation::Remove {
                account: account(),
                entries,
            },
            Operands::Owner => AccessOperation::Owner(account()),
        };
        self.operations.push(operation);
        Ok(())
    }

    /// Refuses options of one line whose order decides on the result: `icacls` has its own.
    fn check(&self, is_file: bool) -> Result<(), ScriptError> {
        let refused = |why: &str| {
            Err(ScriptError::unclear(why.to_owned()).help("run icacls once for each change"))
        };
        let all = &self.operations;
        let takes_all =
            |it: &AccessOperation| matches!(it, AccessOperation::Reset | AccessOperation::Owner(_));
        if all.len() > 1 && all.iter().any(takes_all) {
            return refused("/reset and /setowner are supported only by themselves");
        }
        let is_kept = |it: &AccessOperation| {
            matches!(
                it,
                AccessOperation::Inheritance(InheritanceMode::Enable | InheritanceMode::Copy)
            )
        };
        let is_plain = |it: &AccessOperation| {
            matches!(
                it,
                AccessOperation::Grant {
                    replaces: false,
                    ..
                }
            )
        };
        if all.iter().any(is_kept) && all.iter().any(|it| !is_kept(it) && !is_plain(it)) {
            return refused("it is unclear whether inheritance changes before or after the rest");
        }
        let accounts = |it: &AccessOperation| match it {
            AccessOperation::Grant { account, .. }
            | AccessOperation::Deny { account, .. }
            | AccessOperation::Remove { account, .. } => Some(account.to_lowercase()),
            _ => None,
        };
        for (place, one) in all.iter().enumerate() {
            let mut others = all[..place].iter();
            let is_same = |other: &AccessOperation| accounts(other) == accounts(one);
            if accounts(one).is_some()
                && others.any(|other| is_same(other) && !(is_plain(one) && is_plain(other)))
            {
                return refused("an account has several changes, whose order is unclear");
            }
        }
        let is_for_folders = |it: &AccessOperation| match it {
            AccessOperation::Grant { rights, .. } | AccessOperation::Deny { rights, .. } => {
                rights.contains("(IO)")
            }
            _ => false,
        };
        if (is_file || self.each_inside) && all.iter().any(is_for_folders) {
            return Err(ScriptError::unclear("(IO) is supported only for a folder"));
        }
        Ok(())
    }
}

/// Reads `account:rights`.
fn account_and_rights(text: &str) -> Result<(String, String), ScriptError> {
    let (account, rights) = text
        .rsplit_once(':')
        .ok_or_else(|| ScriptError::unclear(format!("{text:?} has no permissions")))?;
    let is_right = |c: char| c.is_ascii_alphabetic() || "(),".contains(c);
    if account.is_empty() || rights.is_empty() || !rights.chars().all(is_right) {
        return Err(ScriptError::unclear(format!(
            "unsupported permissions {text:?}"
        )));
    }
    Ok((account.to_owned(), rights.to_ascii_uppercase()))
}
