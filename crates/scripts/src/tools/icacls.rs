//! `icacls`: changes of rights, owners and inheritance.

use wincimg_common::untrusted::QuotedText;
use wincimg_windows::access::{
    AccessAccount, AccessChange, AccountError, AccountRights, DescriptorEdit, InheritanceMode,
    RemovedEntries,
};

use super::super::error::{self, Result, ScriptError};
use super::super::image::ImageAction;
use super::super::process::{LINK, PathState, Process, check_no_wildcards};

use DescriptorEdit::{Deny, Grant, Inheritance, Owner, Remove, Reset};

/// Reads an operand of the option before it.
type ReadOperand = fn(&str) -> Result<DescriptorEdit>;

/// Options of a line.
#[derive(Default)]
struct Options {
    edits: Vec<DescriptorEdit>,
    each_inside: bool,
}

pub(super) fn run(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let Some((path, rest)) = words.split_first() else {
        return error::unclear("no file given");
    };
    if rest.is_empty() {
        return Ok(0);
    }
    check_no_wildcards(path, &['*', '?'])?;
    let path = machine.path(path)?;
    let is_file = match machine.path_state(&path)? {
        PathState::Absent => return Ok(2),
        PathState::File => true,
        PathState::Folder | PathState::Deferred => false,
    };
    let options = Options::read(rest)?;
    options.check()?;
    if options.is_for_content_only()
        && (is_file || options.each_inside && machine.may_have_files(&path)?)
    {
        return error::unclear(
            "(IO) is supported only for folders: its effect on a file is unclear",
        );
    }
    if options.each_inside
        && let Some(link) = machine.first_with(&path, LINK)?
    {
        return error::unknown(format!("{link} is a link, and links are not followed"));
    }
    for edit in options.edits {
        let change = AccessChange::new(path.clone(), edit, options.each_inside);
        machine.apply(ImageAction::Access(change))?;
    }
    Ok(0)
}

impl Options {
    fn read(words: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut operand: Option<ReadOperand> = None;
        for word in words {
            let lower = word.to_ascii_lowercase();
            if !lower.starts_with('/') {
                let Some(read) = operand else {
                    return error::unclear(format!("unsupported argument {}", QuotedText(word)));
                };
                options.edits.push(read(word)?);
                continue;
            }
            operand = match lower.as_str() {
                "/grant" => Some(|word| grant(word, false)),
                "/grant:r" => Some(|word| grant(word, true)),
                "/deny" => Some(|word| Ok(Deny(account_rights(word)?))),
                "/remove" => Some(|word| removal(word, RemovedEntries::All)),
                "/remove:g" => Some(|word| removal(word, RemovedEntries::Granted)),
                "/remove:d" => Some(|word| removal(word, RemovedEntries::Denied)),
                "/setowner" => Some(|word| Ok(Owner(account(word)?))),
                _ => {
                    options.switch(&lower)?;
                    None
                }
            };
        }
        if options.edits.is_empty() {
            return error::unclear("no change given");
        }
        Ok(options)
    }

    fn switch(&mut self, switch: &str) -> Result<()> {
        match switch {
            "/t" => self.each_inside = true,
            "/q" | "/c" => {}
            "/reset" => self.edits.push(Reset),
            "/inheritance:e" => self.edits.push(Inheritance(InheritanceMode::Enable)),
            "/inheritance:d" => self.edits.push(Inheritance(InheritanceMode::Copy)),
            "/inheritance:r" => self.edits.push(Inheritance(InheritanceMode::Remove)),
            _ => return error::option(switch),
        }
        Ok(())
    }

    /// Refuses options of one line whose order decides on the result: `icacls` has its own.
    fn check(&self) -> Result<()> {
        let refused = |why: &str| {
            Err(ScriptError::unclear(why.to_owned()).help("run icacls once for each change"))
        };
        let all = &self.edits;
        let takes_all = |it: &DescriptorEdit| matches!(it, Reset | Owner(_));
        if all.len() > 1 && all.iter().any(takes_all) {
            return refused("/reset and /setowner are supported only by themselves");
        }
        let is_kept = |it: &DescriptorEdit| {
            matches!(
                it,
                Inheritance(InheritanceMode::Enable | InheritanceMode::Copy)
            )
        };
        let is_plain = |it: &DescriptorEdit| {
            matches!(
                it,
                Grant {
                    replaces: false,
                    ..
                }
            )
        };
        if all.iter().any(is_kept) && all.iter().any(|it| !is_kept(it) && !is_plain(it)) {
            return refused("it is unclear whether inheritance changes before or after the rest");
        }
        let account = |it: &DescriptorEdit| match it {
            Grant { rights, .. } | Deny(rights) => Some(rights.account.sid()),
            Remove { account, .. } => Some(account.sid()),
            _ => None,
        };
        for (place, one) in all.iter().enumerate() {
            let mut others = all[..place].iter();
            let is_same = |other: &DescriptorEdit| account(other) == account(one);
            if account(one).is_some()
                && others.any(|other| is_same(other) && !(is_plain(one) && is_plain(other)))
            {
                return refused("an account has several changes, whose order is unclear");
            }
        }
        Ok(())
    }

    /// Returns true if rights leave out what they are set on (`IO`).
    fn is_for_content_only(&self) -> bool {
        self.edits.iter().any(|it| match it {
            Grant { rights, .. } | Deny(rights) => rights.inherit_only,
            _ => false,
        })
    }
}

fn grant(word: &str, replaces: bool) -> Result<DescriptorEdit> {
    let rights = account_rights(word)?;
    Ok(Grant { rights, replaces })
}

fn removal(word: &str, entries: RemovedEntries) -> Result<DescriptorEdit> {
    let account = account(word)?;
    Ok(Remove { account, entries })
}

/// Reads `account:rights`.
fn account_rights(text: &str) -> Result<AccountRights> {
    let (account, rights) = text
        .rsplit_once(':')
        .ok_or_else(|| ScriptError::unclear(format!("{text:?} has no permissions")))?;
    AccountRights::read(account, &rights.to_ascii_uppercase()).map_err(|error| {
        ScriptError::unclear(error).help("name F, M, RX, R or W and a built-in account")
    })
}

fn account(text: &str) -> Result<AccessAccount> {
    let account = text.strip_prefix('*').unwrap_or(text);
    account.parse().map_err(|error: AccountError| {
        ScriptError::unclear(error.to_string()).help("name a built-in account")
    })
}
