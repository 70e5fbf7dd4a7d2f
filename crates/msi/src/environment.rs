//! `Environment` table: variables of the machine.

use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_windows::variables::environment_key;

use super::builder::Builder;
use super::error::MsiError;
use super::formatted::SEPARATOR;
use super::session::Session;

impl Session<'_> {
    /// `WriteEnvironmentStrings`.
    pub(crate) fn write_environment(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("Environment") {
            let written = row.text("Name");
            let name = written.trim_start_matches(['=', '+', '-', '!', '*']);
            let prefixes = &written[..written.len() - name.len()];
            if !prefixes.contains('*') {
                self.notes.push(format!(
                    "{name} is a variable of the installing user, which an image does not have"
                ));
                continue;
            }
            let value = self.format(row.text("Value"))?;
            let inside = value.strip_prefix(SEPARATOR).unwrap_or(&value);
            let inside = inside.strip_suffix(SEPARATOR).unwrap_or(inside);
            if inside.contains(SEPARATOR) {
                let why = format!("the variable {name} has [~] inside its value");
                return Err(MsiError::unsupported(why));
            }
            self.variable(name, prefixes, &value, plan)?;
        }
        Ok(())
    }

    fn variable(
        &mut self,
        name: &str,
        prefixes: &str,
        value: &str,
        plan: &mut Builder,
    ) -> Result<(), MsiError> {
        let key = environment_key();
        let (sets, adds) = (prefixes.contains('='), prefixes.contains('+'));
        let is_set = sets || !adds && !prefixes.contains('-');
        // A blank value removes a variable that the row would set.
        // https://learn.microsoft.com/windows/win32/msi/environment-table
        let removes = prefixes.contains('!') || is_set && value.is_empty();
        if !removes && !sets && !adds && prefixes.contains('-') {
            return Ok(());
        }
        let before = self.present_value(&key, name, plan);
        let before = before.map(|data| data.text().unwrap_or_default());
        if removes {
            let Some(before) = before else {
                return Ok(());
            };
            let name = name.to_owned();
            return match without(&before, value) {
                None => plan.edit(RegistryEdit::DeleteValue { key, name }),
                Some(rest) if rest != before => plan.set(&key, &name, text(&rest)),
                Some(_) => Ok(()),
            };
        }
        // `+` only creates; a list is extended in either case.
        let is_list = value.starts_with(SEPARATOR) || value.ends_with(SEPARATOR);
        if adds && !sets && before.is_some() && !is_list {
            return Ok(());
        }
        let value = merged(before.as_deref(), value);
        if value.is_empty() {
            return Ok(());
        }
        // Each row may lengthen what the one before sets.
        self.count(value.len())?;
        plan.set(&key, name, text(&value))
    }
}

fn text(value: &str) -> RegistryData {
    if value.contains('%') {
        RegistryData::expand_sz(value)
    } else {
        RegistryData::sz(value)
    }
}

/// `[~];X` appends, `X;[~]` prepends; a text that is there already stays where it is.
fn merged(before: Option<&str>, value: &str) -> String {
    let before = before.unwrap_or_default();
    let (separator, own, all) = if let Some(added) = value.strip_prefix(SEPARATOR) {
        let mut own = added.chars();
        let separator = own.next();
        (separator, own.as_str(), format!("{before}{added}"))
    } else if let Some(added) = value.strip_suffix(SEPARATOR) {
        let mut own = added.chars();
        let separator = own.next_back();
        (separator, own.as_str(), format!("{added}{before}"))
    } else {
        return value.to_owned();
    };
    let is_own = |text: &str| text.eq_ignore_ascii_case(own);
    if before.is_empty() {
        own.to_owned()
    } else if separator.is_some_and(|separator| before.split(separator).any(is_own)) {
        before.to_owned()
    } else {
        all
    }
}

/// What stays of a value: a list without a text of `[~];X`; without `[~]` nothing if the value is
/// that or none is named, else all.
fn without(all: &str, removed: &str) -> Option<String> {
    if !removed.contains(SEPARATOR) {
        let is_whole = removed.is_empty() || all.eq_ignore_ascii_case(removed);
        return (!is_whole).then(|| all.to_owned());
    }
    let removed = removed.trim_matches([SEPARATOR, ';']);
    let rest: Vec<&str> = all
        .split(';')
        .filter(|it| !it.eq_ignore_ascii_case(removed))
        .collect();
    Some(rest.join(";")).filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_extended_once() {
        for (before, value, expected) in [
            (None, "C:\\x", "C:\\x"),
            (Some("a"), "C:\\x", "C:\\x"),
            (None, "\0;x", "x"),
            (Some("a;b"), "\0;x", "a;b;x"),
            (Some("a;X;b"), "\0;x", "a;X;b"),
            (Some("a;b"), "x;\0", "x;a;b"),
            (Some("a,b"), "\0,c", "a,b,c"),
        ] {
            assert_eq!(merged(before, value), expected, "{before:?} {value:?}");
        }
    }

    #[test]
    fn a_variable_is_removed_with_its_value_or_from_its_list() {
        for (all, removed, expected) in [
            ("a;X;b", "\0;x", Some("a;b")),
            ("a;X;b", "x;\0", Some("a;b")),
            ("x", "\0;x", None),
            ("old;two", "old", Some("old;two")),
            ("", "old", Some("")),
            ("Old", "old", None),
            ("old;two", "", None),
        ] {
            let rest = without(all, removed);
            assert_eq!(rest.as_deref(), expected, "{all} {removed:?}");
        }
    }
}
