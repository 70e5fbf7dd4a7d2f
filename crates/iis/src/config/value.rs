//! Values of attributes and their types in IIS's schema.

use std::borrow::Cow;
use std::collections::BTreeMap;

use wincimg_windows::variables::filled_in;

/// Attribute of a schema.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the schema combines them freely"
)]
pub(crate) struct AttributeSchema {
    pub(crate) kind: ValueKind,
    pub(crate) is_required: bool,
    pub(crate) key: KeyKind,
    pub(crate) is_case_sensitive: bool,
    /// True if IIS expands `%VARIABLES%` when it reads the value.
    pub(crate) is_expanded: bool,
    pub(crate) default: Option<String>,
    /// True if `Infinite` is a value.
    pub(crate) may_be_infinite: bool,
    pub(crate) validation: Validation,
    /// The numbers of the names of an enumeration.
    pub(crate) numbers: BTreeMap<i64, String>,
}

/// Role of an attribute in the key of an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum KeyKind {
    #[default]
    No,
    /// By itself.
    Unique,
    /// Together with others.
    Combined,
}

/// Type of an attribute's values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// Any text; also for unknown types.
    #[default]
    Text,
    Bool,
    /// A whole number from the first to the last.
    Integer(i64, i64),
    /// One of these names.
    Enum(Vec<String>),
    /// Some of these names, separated by commas.
    Flags(Vec<String>),
    /// A time span such as `1.02:03:04`.
    TimeSpan,
    /// A time span as a number of units of this many seconds.
    Seconds(i64),
}

/// Further constraints of a schema on an attribute's values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Validation {
    #[default]
    None,
    NotEmpty,
    Trimmed,
    /// A number, or seconds, in or outside of a range, and a multiple of the last.
    Range {
        least: i64,
        most: i64,
        granularity: i64,
        is_excluded: bool,
    },
    PoolName,
    SiteName,
    /// A path of a URL, such as `/` or `/app`.
    UrlPath,
}

impl AttributeSchema {
    /// The value as IIS writes it, or the expected form as an error.
    pub(crate) fn check(&self, value: &str) -> Result<String, String> {
        if self.may_be_infinite && value.eq_ignore_ascii_case("Infinite") {
            return Ok("Infinite".to_owned());
        }
        let value = self.of_kind(value)?;
        self.validate(&value)?;
        Ok(value)
    }

    /// The value in an entry without the attribute; none if the schema does not say it. A part of a
    /// combined key may be left out, and is empty then.
    pub(crate) fn unset(&self) -> Option<&str> {
        let is_combined = self.key == KeyKind::Combined;
        self.default.as_deref().or(is_combined.then_some(""))
    }

    /// The text that IIS writes for a number.
    pub(crate) fn text_for_number(&self, number: i64) -> Option<String> {
        match &self.kind {
            ValueKind::Bool => matches!(number, 0 | 1).then(|| (number == 1).to_string()),
            ValueKind::Enum(_) => self.numbers.get(&number).cloned(),
            ValueKind::Text | ValueKind::Integer(..) | ValueKind::Seconds(_) => {
                Some(number.to_string())
            }
            ValueKind::Flags(_) | ValueKind::TimeSpan => None,
        }
    }

    /// Returns true if IIS considers two values equal.
    pub(crate) fn is_same(&self, one: &str, other: &str) -> bool {
        if one == other {
            return true;
        }
        let (one, other) = (self.as_read(one), self.as_read(other));
        if self.is_case_sensitive {
            one == other
        } else if one.is_ascii() && other.is_ascii() {
            one.eq_ignore_ascii_case(&other)
        } else {
            one.to_lowercase() == other.to_lowercase()
        }
    }

    /// A value as IIS reads it.
    fn as_read<'v>(&self, value: &'v str) -> Cow<'v, str> {
        let expanded = self.is_expanded.then(|| filled_in(value, &[])).flatten();
        expanded.map_or(Cow::Borrowed(value), Cow::Owned)
    }

    fn of_kind(&self, value: &str) -> Result<String, String> {
        match &self.kind {
            ValueKind::Text => Ok(value.to_owned()),
            ValueKind::Bool => match value.to_ascii_lowercase() {
                value if matches!(value.as_str(), "true" | "false") => Ok(value),
                _ => Err("expected true or false".to_owned()),
            },
            ValueKind::Integer(least, most) => match number(value) {
                Some(number) if (*least..=*most).contains(&number) => Ok(value.to_owned()),
                _ => Err(format!("expected a whole number from {least} to {most}")),
            },
            ValueKind::Enum(names) => named(names, value)
                .map(str::to_owned)
                .ok_or_else(|| format!("expected {}", names.join(", "))),
            ValueKind::Flags(names) => {
                let flags = value.split(',').map(|flag| named(names, flag.trim()));
                let flags: Option<Vec<&str>> = flags.collect();
                flags.map(|flags| flags.join(", ")).ok_or_else(|| {
                    format!("expected some of {}, separated by commas", names.join(", "))
                })
            }
            ValueKind::TimeSpan => match seconds(value) {
                Some(_) => Ok(value.to_owned()),
                None => Err("expected a time span, such as 00:20:00 or 1.05:00:00".to_owned()),
            },
            ValueKind::Seconds(_) => match number(value) {
                Some(_) => Ok(value.to_owned()),
                None => Err("expected a whole number".to_owned()),
            },
        }
    }

    fn validate(&self, value: &str) -> Result<(), String> {
        let refused = |expected: &str| Err(format!("expected {expected}"));
        match &self.validation {
            Validation::NotEmpty if value.is_empty() => refused("a text that is not empty"),
            Validation::Trimmed if value.trim() != value => {
                refused("a text without leading or trailing spaces")
            }
            Validation::PoolName if value.contains(|c| "|<>&\"/[]+=;:,?*@\\".contains(c)) => {
                refused("a name without any of | < > & \" / \\ [ ] + = ; : , ? * @")
            }
            Validation::SiteName if value.contains(['/', '?']) => refused("a name without / and ?"),
            Validation::UrlPath if !is_url_path(value) => {
                refused("/ or a path such as /app, without . and .. in it")
            }
            Validation::Range {
                least,
                most,
                granularity,
                is_excluded,
            } => {
                let Some(number) = self.measured(value) else {
                    return Ok(());
                };
                let unit = match self.kind {
                    ValueKind::TimeSpan | ValueKind::Seconds(_) => " seconds",
                    _ => "",
                };
                if (*least..=*most).contains(&number) == *is_excluded {
                    let or = if *is_excluded { "anything but" } else { "" };
                    return Err(format!("expected {or}{least} to {most}{unit}"));
                }
                if *granularity > 1 && number % granularity != 0 {
                    return Err(format!("expected a multiple of {granularity}{unit}"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The number that a range limits.
    fn measured(&self, value: &str) -> Option<i64> {
        match self.kind {
            ValueKind::TimeSpan => seconds(value),
            ValueKind::Seconds(each) => number(value)?.checked_mul(each),
            _ => number(value),
        }
    }
}

fn named<'a>(names: &'a [String], value: &str) -> Option<&'a str> {
    let mut names = names.iter().map(String::as_str);
    names.find(|name| name.eq_ignore_ascii_case(value))
}

/// Decimal, or hexadecimal as attributes with `displayHex` are written.
fn number(value: &str) -> Option<i64> {
    match value.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

/// The seconds of `hh:mm:ss`, optionally with days before or fractions after it.
fn seconds(value: &str) -> Option<i64> {
    let (head, rest) = value.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let (days, hours) = match head.split_once('.') {
        Some((days, hours)) => (digits(days)?, digits(hours)?),
        None => (0, digits(head)?),
    };
    let whole = seconds
        .split_once('.')
        .map_or(Some(seconds), |(whole, rest)| digits(rest).map(|_| whole))?;
    let (minutes, seconds) = (digits(minutes)?, digits(whole)?);
    // IIS's own default of periodicRestart.time is 29:00:00.
    (minutes < 60 && seconds < 60).then(|| ((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

fn digits(text: &str) -> Option<i64> {
    let is_sound = (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_sound.then(|| text.parse().ok()).flatten()
}

fn is_url_path(path: &str) -> bool {
    let Some(names) = path.strip_prefix('/') else {
        return false;
    };
    names.is_empty()
        || names
            .split('/')
            .all(|name| !matches!(name, "" | "." | "..") && !name.contains('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: ValueKind, validation: Validation, value: &str) -> Result<String, String> {
        let schema = AttributeSchema {
            kind,
            validation,
            ..AttributeSchema::default()
        };
        schema.check(value)
    }

    #[test]
    fn values_are_written_as_iis_writes_them() {
        let names = || vec!["OnDemand".to_owned(), "AlwaysRunning".to_owned()];
        let flags = ("ondemand,AlwaysRunning", "OnDemand, AlwaysRunning");
        for (kind, (value, written)) in [
            (ValueKind::Bool, ("True", "true")),
            (ValueKind::Enum(names()), ("alwaysrunning", "AlwaysRunning")),
            (ValueKind::Flags(names()), flags),
        ] {
            assert_eq!(check(kind, Validation::None, value).unwrap(), written);
        }
        for (kind, value) in [
            (ValueKind::Bool, "yes"),
            (ValueKind::Enum(names()), "Never"),
            (ValueKind::Flags(names()), "OnDemand,Never"),
            (ValueKind::Integer(0, 10), "11"),
            (ValueKind::Integer(0, 10), "-1"),
            (ValueKind::Integer(0, 10), "one"),
            (ValueKind::TimeSpan, "20"),
            (ValueKind::TimeSpan, "00:60:00"),
            (ValueKind::TimeSpan, "a:00:00"),
            (ValueKind::TimeSpan, "999999999:00:00"),
            (ValueKind::Seconds(60), "1:00"),
        ] {
            assert!(check(kind, Validation::None, value).is_err(), "{value}");
        }
    }

    #[test]
    fn variables_are_expanded_where_the_schema_says_so() {
        let schema = |is_expanded| AttributeSchema {
            is_expanded,
            ..AttributeSchema::default()
        };
        for (value, is_same) in [
            (r"%windir%\a.dll", true),
            (r"%SYSTEMROOT%\A.dll", true),
            (r"%other%\a.dll", false),
            (r"100%\a.dll", false),
        ] {
            let found = schema(true).is_same(value, r"C:\Windows\a.dll");
            assert_eq!(found, is_same, "{value}");
            assert!(!schema(false).is_same(value, r"C:\Windows\a.dll"));
        }
    }

    #[test]
    fn ranges_are_in_the_units_of_their_values() {
        let range = |granularity, is_excluded| Validation::Range {
            least: 60,
            most: 3600,
            granularity,
            is_excluded,
        };
        for (kind, validation, value, is_sound) in [
            (ValueKind::TimeSpan, range(60, false), "00:20:00", true),
            (ValueKind::TimeSpan, range(60, false), "00:00:00", false),
            (ValueKind::TimeSpan, range(60, false), "00:20:01", false),
            (ValueKind::TimeSpan, range(1, false), "0.01:00:00", true),
            (ValueKind::TimeSpan, range(1, false), "1.00:00:00", false),
            (ValueKind::Seconds(60), range(1, false), "60", true),
            (ValueKind::Seconds(60), range(1, false), "61", false),
            (ValueKind::Integer(0, 9999), range(1, true), "100", false),
            (ValueKind::Integer(0, 9999), range(1, true), "59", true),
        ] {
            let found = check(kind, validation, value);
            assert_eq!(found.is_ok(), is_sound, "{value}: {found:?}");
        }
        for (validation, value) in [
            (Validation::NotEmpty, ""),
            (Validation::Trimmed, " a"),
            (Validation::PoolName, "a/b"),
            (Validation::SiteName, "a?"),
            (Validation::UrlPath, "app"),
            (Validation::UrlPath, "/app/"),
            (Validation::UrlPath, "/a/../b"),
        ] {
            assert!(
                check(ValueKind::Text, validation, value).is_err(),
                "{value}"
            );
        }
        assert!(check(ValueKind::Text, Validation::UrlPath, "/a/b").is_ok());
    }
}
