//! PATH: the folders in which Windows searches for programs, and an image's additions to it.
//!
//! The machine's PATH is a registry value that services and sessions use. A PATH in an image's
//! environment overrides it for the container's program.

use serde::Serialize;
use wincimg_common::untrusted::QuotedText;
use wincimg_registry::name_folding::{FoldedName, eq_ignore_case};
use wincimg_registry::{
    BaseKey, BaseKeys, BaseReadError, DataType, Presence, RegistryData, RegistryEdit,
};

use crate::variables::{environment_key, expanded, fixed_variable};

/// The variable, and the registry's value.
pub const VARIABLE: &str = "Path";

/// Folder of store apps in a user's profile.
const STORE_APPS: &str = r"\appdata\local\microsoft\windowsapps";

/// Folders that an image adds to its base's PATH.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PathAdditions {
    /// Before those of the base, in this order.
    pub prepend: Vec<String>,
    /// After those of the base, in this order.
    pub append: Vec<String>,
}

/// Reason why a text cannot be a folder of PATH.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid folder {} for PATH: {problem}", QuotedText(.entry))]
pub struct EntryError {
    entry: String,
    problem: &'static str,
}

impl EntryError {
    fn new(entry: &str, problem: &'static str) -> Self {
        let entry = entry.to_owned();
        Self { entry, problem }
    }
}

/// Reason why PATH cannot be extended.
#[derive(Debug, thiserror::Error)]
pub enum SearchPathError {
    /// The base's PATH is unknown.
    #[error("cannot add to PATH: the base's PATH is unknown because its registry was not read")]
    Unknown,
    /// The base's PATH is not text.
    #[error("cannot add to PATH: the base's PATH is {0}, which is not text")]
    NotText(DataType),
    /// The base cannot be read.
    #[error(transparent)]
    Inside(#[from] BaseReadError),
}

/// Reads an entry of PATH: absolute, with the variables of every Windows expanded.
pub fn entry(text: &str) -> Result<String, EntryError> {
    let refused = |problem| Err(EntryError::new(text, problem));
    if text.contains(';') {
        return refused("it has a semicolon, which separates folders: list each folder separately");
    }
    if text.contains('"') {
        return refused("write folders with spaces without quotes");
    }
    let folder = expanded(text, fixed_variable).replace('/', r"\");
    if folder.contains('%') {
        return refused(
            "only variables like %SystemRoot% are the same in every image: write the folder out",
        );
    }
    if folder.contains(|c: char| c.is_control() || matches!(c, '<' | '>' | '|' | '?' | '*')) {
        return refused("it has a character that is invalid in folder names");
    }
    let drive = folder.as_bytes();
    let is_on_drive = drive.first().is_some_and(u8::is_ascii_alphabetic)
        && (folder[1..].starts_with(r":\") || folder.len() == 2 && drive[1] == b':');
    let is_on_server = folder.starts_with(r"\\") && folder.len() > 2;
    if !(is_on_drive || is_on_server) {
        return refused(r"expected an absolute folder, such as C:\app");
    }
    let inside = folder.get(2..).unwrap_or_default();
    if inside.split('\\').any(|name| matches!(name, "." | "..")) {
        return refused("it has . or .. as a component");
    }
    let bare = folder.trim_end_matches('\\');
    Ok(match bare.len() {
        2 => format!(r"{bare}\"),
        _ => bare.to_owned(),
    })
}

/// The entries of a PATH as written. Quoted parts may have semicolons; an unclosed quote is
/// literal.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    let mut quotes = path.matches('"').count();
    let mut is_quoted = false;
    path.split(move |c| {
        if c == '"' {
            quotes -= 1;
            is_quoted = !is_quoted && quotes > 0;
        }
        c == ';' && !is_quoted
    })
}

/// Replaces `old` by `new` in a PATH that extends it: folders before and after `old` stay. If they
/// are mixed with `old`, folders that `new` lacks are removed, and new ones are appended.
pub fn replace_prefix(path: &str, old: &str, new: &str) -> String {
    if old == new {
        return path.to_owned();
    }
    let ends = |before: &str| before.is_empty() || before.ends_with(';');
    let begins = |behind: &str| behind.is_empty() || behind.starts_with(';');
    let around = path.split_once(old).filter(|_| !old.is_empty());
    if let Some((before, behind)) = around
        && ends(before)
        && begins(behind)
        && !new.is_empty()
    {
        return format!("{before}{new}{behind}");
    }
    let of = |path: &str| -> Vec<FoldedName> {
        let parts = parts(path).filter(|part| !part.trim().is_empty());
        parts.map(folded).collect()
    };
    let (before, now) = (of(old), of(new));
    let is_gone = |part: &FoldedName| before.contains(part) && !now.contains(part);
    let kept = parts(path).filter(|part| !is_gone(&folded(part)));
    let own = of(path);
    let came = parts(new).filter(|part| {
        let part = folded(part);
        part != FoldedName::new("") && !before.contains(&part) && !own.contains(&part)
    });
    kept.chain(came).collect::<Vec<_>>().join(";")
}

/// Key of a folder of PATH, equal for equal folders.
fn folded(part: &str) -> FoldedName {
    let folder = expanded(&part.replace('"', ""), fixed_variable).replace('/', r"\");
    FoldedName::new(folder.trim().trim_end_matches('\\'))
}

impl PathAdditions {
    /// Reads a text in which `%PATH%` is the base's PATH; none without `%PATH%`.
    pub fn read(text: &str) -> Option<Result<Self, EntryError>> {
        let is_base = |part: &str| part.trim().eq_ignore_ascii_case("%path%");
        if !text.to_ascii_lowercase().contains("%path%") {
            return None;
        }
        let mut additions = Self::default();
        let mut is_behind = false;
        for part in parts(text).map(str::trim).filter(|part| !part.is_empty()) {
            if is_base(part) {
                if is_behind {
                    return Some(Err(EntryError::new(text, "it has %PATH% twice")));
                }
                is_behind = true;
                continue;
            }
            // As cmd reads it.
            let bare = part
                .strip_prefix('"')
                .and_then(|part| part.strip_suffix('"'));
            match entry(bare.unwrap_or(part)) {
                Ok(folder) if is_behind => additions.append.push(folder),
                Ok(folder) => additions.prepend.push(folder),
                Err(error) => return Some(Err(error)),
            }
        }
        if is_behind {
            return Some(Ok(additions));
        }
        let problem = "%PATH% must be a separate entry, between semicolons";
        Some(Err(EntryError::new(text, problem)))
    }

    /// The folders that a PATH has before and after those of another; none if it is not that one
    /// with folders added. The folder of store apps, which every user has after the machine's, does
    /// not count: a line that extends `%PATH%` writes it too.
    pub fn between(old: &str, new: &str) -> Option<Self> {
        let is_own = |part: &&str| {
            let folder = part.replace('"', "").to_ascii_lowercase();
            !folder.trim().is_empty() && !folder.trim().trim_end_matches('\\').ends_with(STORE_APPS)
        };
        let before: Vec<FoldedName> = parts(old).filter(is_own).map(folded).collect();
        let all: Vec<&str> = parts(new).filter(is_own).collect();
        let keys: Vec<FoldedName> = all.iter().map(|part| folded(part)).collect();
        let at = keys
            .windows(before.len().max(1))
            .position(|part| part == before)?;
        let folders = |parts: &[&str]| -> Option<Vec<String>> {
            let bare = parts.iter().map(|part| part.trim().replace('"', ""));
            bare.map(|part| entry(&part).ok()).collect()
        };
        let additions = Self {
            prepend: folders(&all[..at])?,
            append: folders(&all[at + before.len()..])?,
        };
        let is_plain = keys
            .iter()
            .enumerate()
            .all(|(at, key)| !keys[..at].contains(key));
        (is_plain && additions != Self::default()).then_some(additions)
    }

    /// Adds the folders to a PATH, whose entries stay as they are. A folder is added once, and
    /// prepended even if the PATH has it further back.
    pub fn apply_to(&self, path: &str) -> String {
        let mut seen = std::collections::BTreeSet::new();
        let first: Vec<&str> = self
            .prepend
            .iter()
            .map(String::as_str)
            .filter(|folder| seen.insert(folded(folder)))
            .collect();
        let stays = |part: &&str| !seen.contains(&folded(part)) || part.trim().is_empty();
        let kept: Vec<&str> = parts(path).filter(stays).collect();
        let kept = kept.join(";");
        seen.extend(parts(path).map(folded));
        let last = self.append.iter().map(String::as_str);
        let last: Vec<&str> = last.filter(|folder| seen.insert(folded(folder))).collect();
        let kept = if last.is_empty() {
            kept.as_str()
        } else {
            kept.trim_end_matches(';')
        };
        let kept = Some(kept).filter(|kept| !kept.is_empty());
        let all: Vec<&str> = first.into_iter().chain(kept).chain(last).collect();
        all.join(";")
    }

    /// The change to a base's registry.
    pub fn edit(&self, inside: &dyn BaseKeys) -> Result<RegistryEdit, SearchPathError> {
        let key = environment_key();
        let (name, kind, path) = match inside.key(&key)? {
            Presence::Unknown => return Err(SearchPathError::Unknown),
            Presence::Absent => (VARIABLE.to_owned(), DataType::EXPAND_SZ, String::new()),
            Presence::Present(found) => path_of(&found)?,
        };
        let path = self.apply_to(&path);
        let data = match kind {
            DataType::SZ => RegistryData::sz(&path),
            _ => RegistryData::expand_sz(&path),
        };
        Ok(RegistryEdit::SetValue { key, name, data })
    }
}

/// The PATH value in a key; of two with that name the first, which Windows uses.
fn path_of(key: &BaseKey) -> Result<(String, DataType, String), SearchPathError> {
    let found = key
        .values
        .iter()
        .find(|(name, _)| eq_ignore_case(name, VARIABLE));
    let Some((name, data)) = found else {
        return Ok((VARIABLE.to_owned(), DataType::EXPAND_SZ, String::new()));
    };
    match (data.kind(), data.text()) {
        (kind @ (DataType::SZ | DataType::EXPAND_SZ), Some(path)) => Ok((name.clone(), kind, path)),
        (kind, _) => Err(SearchPathError::NotText(kind)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wincimg_registry::UnknownBase;
    use wincimg_registry::testing::Keys;

    use super::*;

    const ENVIRONMENT: &str = r"HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment";

    fn additions(prepend: &[&str], append: &[&str]) -> PathAdditions {
        let read = |texts: &[&str]| texts.iter().map(|text| entry(text).unwrap()).collect();
        PathAdditions {
            prepend: read(prepend),
            append: read(append),
        }
    }

    #[test]
    fn additions_are_found_between_two_paths() {
        let base = r"%SystemRoot%\system32;%SystemRoot%";
        let found = |new: &str| PathAdditions::between(base, new);
        assert_eq!(
            found(r"C:\a;C:\windows\System32\;C:\Windows;C:\b\;"),
            Some(additions(&[r"C:\a"], &[r"C:\b"]))
        );
        // A line that extends %PATH% writes the user's folder too.
        let of_user = r"C:\Users\ContainerAdministrator\AppData\Local\Microsoft\WindowsApps";
        assert_eq!(
            found(&format!(r"C:\Windows\system32;C:\Windows;{of_user};C:\b")),
            Some(additions(&[], &[r"C:\b"]))
        );
        for other in [
            r"C:\b",
            r"C:\Windows;C:\Windows\system32;C:\b",
            r"C:\Windows\system32;C:\x;C:\Windows",
            r"C:\Windows\system32;C:\Windows",
            r"C:\Windows\system32;C:\Windows;%NONE%\b",
            r"C:\Windows\system32;C:\Windows;C:\b;C:\b",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }

    const BASE: &str = r"%SystemRoot%\system32;%SystemRoot%;%SystemRoot%\System32\Wbem;";

    #[test]
    fn folders_come_in_front_or_behind() {
        let both = additions(&[r"C:\a", r"C:\b"], &["C:/c/", r"C:\Program Files\d"]);
        assert_eq!(
            both.apply_to(BASE),
            format!(r"C:\a;C:\b;{BASE}C:\c;C:\Program Files\d")
        );
        assert_eq!(
            additions(&[r"C:\a"], &[]).apply_to(BASE),
            format!(r"C:\a;{BASE}")
        );
        assert_eq!(both.apply_to(""), r"C:\a;C:\b;C:\c;C:\Program Files\d");
        assert_eq!(PathAdditions::default().apply_to(BASE), BASE);
    }

    #[test]
    fn a_folder_comes_once_however_it_is_written() {
        let front = additions(&[r"c:\windows\SYSTEM32\", r"C:\Windows\System32"], &[]);
        assert_eq!(
            front.apply_to(BASE),
            r"c:\windows\SYSTEM32;%SystemRoot%;%SystemRoot%\System32\Wbem;"
        );
        let behind = additions(&[r"C:\a"], &[r"C:\A\", r"%windir%\system32\wbem", r"C:\b"]);
        assert_eq!(behind.apply_to(BASE), format!(r"C:\a;{BASE}C:\b"));
        let quoted = additions(&[], &[r"C:\Program Files\x", r"C:\y"]);
        assert_eq!(
            quoted.apply_to(r#""C:\Program Files\x";"C:\a;b""#),
            r#""C:\Program Files\x";"C:\a;b";C:\y"#
        );
    }

    #[test]
    fn only_absolute_folders_are_taken() {
        for (text, folder) in [
            (r"C:\", r"C:\"),
            ("C:", r"C:\"),
            ("%SystemDrive%/", r"C:\"),
            (
                r"%programfiles(X86)%\Git\cmd",
                r"C:\Program Files (x86)\Git\cmd",
            ),
            (r"\\server\share\", r"\\server\share"),
        ] {
            assert_eq!(entry(text).as_deref(), Ok(folder), "{text}");
        }
        for (text, problem) in [
            ("", "expected an absolute folder"),
            ("app", "expected an absolute folder"),
            (r"\app", "expected an absolute folder"),
            (r"C:app", "expected an absolute folder"),
            ("日本", "expected an absolute folder"),
            (r"C:\a;C:\b", "a semicolon"),
            (r#""C:\a b""#, "without quotes"),
            (r"%PATH%", "write the folder out"),
            (r"C:\100%", "write the folder out"),
            (r"%JAVA_HOME%\bin", "write the folder out"),
            ("C:\\a\nb", "invalid in folder names"),
            (r"C:\a\..\b", ". or .. as a component"),
        ] {
            let error = entry(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn a_variable_with_the_base_in_it_says_the_same() {
        let read = |text| PathAdditions::read(text).unwrap();
        assert_eq!(read(r"C:\a;%Path%"), Ok(additions(&[r"C:\a"], &[])));
        assert_eq!(
            read(r#"C:\a ; "C:\b c";%PATH%;;C:\d;"#),
            Ok(additions(&[r"C:\a", r"C:\b c"], &[r"C:\d"]))
        );
        assert_eq!(read("%path%"), Ok(PathAdditions::default()));
        assert!(PathAdditions::read(r"C:\a;$PATH").is_none());
        for text in [r"%PATH%;%PATH%", r"%PATH%\x", r"%PATH% C:\x", r"a;%PATH%"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    fn base(name: &str, data: RegistryData) -> Keys {
        Keys::default().with_key(ENVIRONMENT, "O:SYG:SYD:", &[(name, data)])
    }

    #[test]
    fn the_registry_keeps_the_type_and_the_spelling() {
        let ours = additions(&[], &[r"C:\app"]);
        let edit = |inside: &dyn BaseKeys| ours.edit(inside).unwrap().to_string();
        let key = environment_key();
        assert_eq!(
            edit(&base("PATH", RegistryData::expand_sz("x;"))),
            format!(r#"set {key} "PATH" = REG_EXPAND_SZ "x;C:\\app""#)
        );
        assert_eq!(
            edit(&base("Path", RegistryData::sz("x"))),
            format!(r#"set {key} "Path" = REG_SZ "x;C:\\app""#)
        );
        assert_eq!(
            edit(&base("other", RegistryData::sz("x"))),
            format!(r#"set {key} "Path" = REG_EXPAND_SZ "C:\\app""#)
        );
        let two = Keys::default().with_key(
            ENVIRONMENT,
            "O:SYG:SYD:",
            &[
                ("PATH", RegistryData::sz("first")),
                ("Path", RegistryData::sz("second")),
            ],
        );
        assert_eq!(
            edit(&two),
            format!(r#"set {key} "PATH" = REG_SZ "first;C:\\app""#)
        );
    }

    #[test]
    fn a_path_that_is_not_known_or_no_text_is_not_guessed() {
        let ours = additions(&[], &[r"C:\app"]);
        assert!(matches!(
            ours.edit(&UnknownBase),
            Err(SearchPathError::Unknown)
        ));
        let number = base("Path", RegistryData::dword(1));
        let error = ours.edit(&number).unwrap_err().to_string();
        assert!(error.contains("is REG_DWORD"), "{error}");
    }

    proptest! {
        #[test]
        fn what_the_base_has_stays_and_ours_exists_once(
            base in "([a-cA-C:\\\\%\"; ]|%SystemRoot%|C:\\\\[ab]\\\\?){0,12}",
            front in proptest::collection::vec("C:\\\\[abAB]", 0..3),
            behind in proptest::collection::vec("C:\\\\[abAB]", 0..3),
        ) {
            let ours = PathAdditions { prepend: front, append: behind };
            let made = ours.apply_to(&base);
            prop_assert_eq!(&ours.apply_to(&made), &made);
            for folder in ours.prepend.iter().chain(&ours.append) {
                let is_ours = |part: &&str| folded(part) == folded(folder);
                let count = parts(&made).filter(is_ours).count();
                let in_base = parts(&base).filter(is_ours).count();
                prop_assert!(count >= 1 && count <= in_base.max(1), "{:?}", made);
            }
            for part in parts(&base).filter(|part| !part.trim().is_empty()) {
                prop_assert!(made.contains(part) || ours.prepend.iter().any(|p| folded(p) == folded(part)));
            }
        }
    }
}
