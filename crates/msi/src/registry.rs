//! Registry keys as 32-bit and 64-bit programs name them, and the `Registry` table.

use wincimg_registry::{KeyMode, KeyPath, KeyPathError, RegistryData, RegistryEdit, TypedData};

use super::builder::Builder;
use super::database::Row;
use super::error::MsiError;
use super::formatted::SEPARATOR;
use super::session::Session;

/// Roots of the tables.
const FOR_USER_OR_MACHINE: i32 = -1;
const CLASSES_ROOT: i32 = 0;
const CURRENT_USER: i32 = 1;
pub(crate) const LOCAL_MACHINE: i32 = 2;
const USERS: i32 = 3;

/// Keys below `HKLM\SOFTWARE` that 32-bit and 64-bit programs share, in lower case; from Microsoft's
/// page "Registry Keys Affected by WOW64" for Windows 7 and newer. Two are also in the spelling of
/// Windows itself.
const SHARED: [&str; 53] = [
    r"classes",
    r"clients",
    r"com3",
    r"eventsystem",
    r"microsoft\com3",
    r"microsoft\cryptography\calais\current",
    r"microsoft\cryptography\calais\readers",
    r"microsoft\cryptography\services",
    r"microsoft\ctf\systemshared",
    r"microsoft\ctf\tip",
    r"microsoft\dfs",
    r"microsoft\driver signing",
    r"microsoft\enterprisecertificates",
    r"microsoft\eventsystem",
    r"microsoft\msmq",
    r"microsoft\non-driver signing",
    r"microsoft\notepad\defaultfonts",
    r"microsoft\ole",
    r"microsoft\ras",
    r"microsoft\rpc",
    r"microsoft\shared tools\msinfo",
    r"microsoft\systemcertificates",
    r"microsoft\termservlicensing",
    r"microsoft\transaction server",
    r"microsoft\transactionserver",
    r"microsoft\windows\currentversion\app paths",
    r"microsoft\windows\currentversion\control panel\cursors\schemes",
    r"microsoft\windows\currentversion\explorer\autoplayhandlers",
    r"microsoft\windows\currentversion\explorer\driveicons",
    r"microsoft\windows\currentversion\explorer\kindmap",
    r"microsoft\windows\currentversion\group policy",
    r"microsoft\windows\currentversion\policies",
    r"microsoft\windows\currentversion\previewhandlers",
    r"microsoft\windows\currentversion\setup",
    r"microsoft\windows\currentversion\telephony\locations",
    r"microsoft\windows nt\currentversion\console",
    r"microsoft\windows nt\currentversion\fontdpi",
    r"microsoft\windows nt\currentversion\fontlink",
    r"microsoft\windows nt\currentversion\fontmapper",
    r"microsoft\windows nt\currentversion\fonts",
    r"microsoft\windows nt\currentversion\fontsubstitutes",
    r"microsoft\windows nt\currentversion\gre_initialize",
    r"microsoft\windows nt\currentversion\image file execution options",
    r"microsoft\windows nt\currentversion\language pack",
    r"microsoft\windows nt\currentversion\languagepack",
    r"microsoft\windows nt\currentversion\networkcards",
    r"microsoft\windows nt\currentversion\perflib",
    r"microsoft\windows nt\currentversion\ports",
    r"microsoft\windows nt\currentversion\print",
    r"microsoft\windows nt\currentversion\profilelist",
    r"microsoft\windows nt\currentversion\time zones",
    r"policies",
    r"registeredapplications",
];

/// Keys below `HKLM\SOFTWARE\Classes` that are not shared, from the same page.
const SPLIT_CLASSES: [&str; 5] = [
    r"classes\clsid",
    r"classes\directshow",
    r"classes\interface",
    r"classes\media type",
    r"classes\mediafoundation",
];

/// The key below `HKLM\SOFTWARE` that a program reaches under this name.
pub(crate) fn software_key(below: &str, is_64_bit: bool) -> Result<KeyPath, MsiError> {
    let lower = below.to_lowercase();
    let is_below = |above: &&str| {
        let rest = lower.strip_prefix(*above);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\\'))
    };
    let path = if !is_64_bit && SPLIT_CLASSES.iter().any(is_below) {
        let rest = below.split_once('\\').map_or("", |(_, rest)| rest);
        format!(r"Classes\WOW6432Node\{rest}")
    } else if is_64_bit || lower.starts_with("wow6432node") || SHARED.iter().any(is_below) {
        below.to_owned()
    } else {
        format!(r"WOW6432Node\{below}")
    };
    parse_key(&format!(r"HKLM\SOFTWARE\{path}"))
}

pub(crate) fn parse_key(path: &str) -> Result<KeyPath, MsiError> {
    path.parse::<KeyPath>().map_err(MsiError::unsupported)
}

/// The key of that name in another key.
pub(crate) fn child(key: &KeyPath, name: &str) -> Result<KeyPath, MsiError> {
    key.child(name).map_err(MsiError::unsupported)
}

/// The key of a root and a path, as a component names it; none if it is of a user.
pub(crate) fn named_key(
    root: i32,
    path: &str,
    is_64_bit: bool,
) -> Result<Option<KeyPath>, MsiError> {
    let path = path.trim_matches('\\');
    let key = match (root, path.split_once('\\')) {
        (CURRENT_USER, _) => return Ok(None),
        (CLASSES_ROOT, _) => classes(path, is_64_bit),
        (LOCAL_MACHINE, Some((top, below)))
            if top.eq_ignore_ascii_case("SOFTWARE") && !below.is_empty() =>
        {
            software_key(below, is_64_bit)
        }
        (LOCAL_MACHINE, _) => parse_key(&format!(r"HKLM\{path}")),
        (USERS, _) => {
            // The account of the local system has two names.
            let path = match path.split_at_checked("S-1-5-18".len()) {
                Some((user, below))
                    if user.eq_ignore_ascii_case("S-1-5-18")
                        && (below.is_empty() || below.starts_with('\\')) =>
                {
                    format!(".DEFAULT{below}")
                }
                _ => path.to_owned(),
            };
            parse_key(&format!(r"HKU\{path}"))
        }
        (root, _) => Err(MsiError::damaged(format!("unknown registry root {root}"))),
    };
    key.map(Some)
}

/// True for a key of the machine outside the hives, which are all that is directly below its root.
pub(crate) fn is_outside_hives(root: i32, path: &str) -> bool {
    let top = path.trim_matches('\\').split('\\').next();
    let key = format!(r"HKLM\{}", top.unwrap_or_default()).parse::<KeyPath>();
    root == LOCAL_MACHINE && matches!(key, Err(KeyPathError::Invalid(_)))
}

impl Session<'_> {
    /// `WriteRegistryValues`.
    pub(crate) fn write_registry(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("Registry") {
            let value = row.optional("Value");
            let value = value.map(|value| self.format(value)).transpose()?;
            let Some((key, name)) = self.key_and_name(&row)? else {
                continue;
            };
            match (name.as_str(), value) {
                // `-` removes the key with the product.
                ("-", None) => {}
                ("+" | "*", None) => plan.edit(RegistryEdit::CreateKey {
                    key,
                    mode: KeyMode::Merge,
                })?,
                (name, value) => {
                    let data = self.registry_data(&key, name, &value.unwrap_or_default(), plan)?;
                    plan.set(&key, name, data)?;
                }
            }
        }
        Ok(())
    }

    /// The root of a row.
    pub(crate) fn root(&self, row: &Row<'_>) -> Option<i32> {
        row.number("Root").map(|root| match root {
            FOR_USER_OR_MACHINE if self.is_for_machine() => LOCAL_MACHINE,
            FOR_USER_OR_MACHINE => CURRENT_USER,
            root => root,
        })
    }

    /// Key and formatted name of a row; `None` with a note for a key of the installing user.
    pub(crate) fn key_and_name(
        &mut self,
        row: &Row<'_>,
    ) -> Result<Option<(KeyPath, String)>, MsiError> {
        let mut root = self.root(row).unwrap_or(LOCAL_MACHINE);
        let mut path = self.format(row.text("Key"))?;
        let name = self.format(row.text("Name"))?;
        if root == CLASSES_ROOT && !self.is_for_machine() {
            root = CURRENT_USER;
            path = format!(r"Software\Classes\{}", path.trim_matches('\\'));
        }
        if let Some(key) = named_key(root, &path, self.is_64_bit(row))? {
            return Ok(Some((key, name)));
        }
        let path = path.trim_matches('\\');
        let note =
            format!(r"HKCU\{path} is a key of the installing user, which an image does not have");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        Ok(None)
    }

    /// `RemoveRegistryValues`.
    pub(crate) fn remove_registry(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("RemoveRegistry") {
            match self.key_and_name(&row)? {
                None => {}
                Some((key, name)) if name == "-" => plan.edit(RegistryEdit::DeleteKey { key })?,
                Some((key, name)) => plan.edit(RegistryEdit::DeleteValue { key, name })?,
            }
        }
        Ok(())
    }

    /// The data of a value: `#x00ff`, `#%TEMP%`, `#5`, `##text`, `a[~]b`, or text.
    fn registry_data(
        &mut self,
        key: &KeyPath,
        name: &str,
        value: &str,
        plan: &Builder,
    ) -> Result<RegistryData, MsiError> {
        if value.contains(SEPARATOR) {
            return self.list(key, name, value, plan);
        }
        let Some(rest) = value.strip_prefix('#') else {
            return Ok(RegistryData::sz(value));
        };
        Ok(match rest.split_at_checked(1) {
            Some(("#", _)) => RegistryData::sz(rest),
            Some(("%", text)) => RegistryData::expand_sz(text),
            Some(("x" | "X", digits)) => RegistryData::binary(bytes(digits)),
            _ => match rest.trim().parse::<i64>() {
                #[expect(clippy::cast_possible_truncation, reason = "as Windows Installer does")]
                Ok(number) => RegistryData::dword((number as i32).cast_unsigned()),
                Err(_) => RegistryData::sz(value),
            },
        })
    }

    /// A list; one that begins or ends with `[~]` only keeps, after or before it, what is there.
    fn list(
        &mut self,
        key: &KeyPath,
        name: &str,
        value: &str,
        plan: &Builder,
    ) -> Result<RegistryData, MsiError> {
        let texts: Vec<&str> = value.split(SEPARATOR).filter(|it| !it.is_empty()).collect();
        let (appends, prepends) = (value.starts_with(SEPARATOR), value.ends_with(SEPARATOR));
        let mut all: Vec<String> = texts.iter().map(|&it| it.to_owned()).collect();
        if appends != prepends {
            let mut present = self.present_list(key, name, plan);
            present.retain(|it| !texts.contains(&it.as_str()));
            if appends {
                present.append(&mut all);
                all = present;
            } else {
                all.append(&mut present);
            }
        }
        // Each row may lengthen the list of the one before.
        self.count(all.iter().map(String::len).sum())?;
        RegistryData::multi_sz(&all).map_err(MsiError::unsupported)
    }

    fn present_list(&mut self, key: &KeyPath, name: &str, plan: &Builder) -> Vec<String> {
        match self
            .present_value(key, name, plan)
            .as_ref()
            .map(RegistryData::typed)
        {
            Some(TypedData::List(list)) => list,
            Some(TypedData::Text(text)) => vec![text],
            _ => Vec::new(),
        }
    }

    /// A value after the edits so far.
    pub(crate) fn present_value(
        &mut self,
        key: &KeyPath,
        name: &str,
        plan: &Builder,
    ) -> Option<RegistryData> {
        match plan.last_edit(key, name) {
            Some(RegistryEdit::SetValue { data, .. }) => Some(data.clone()),
            Some(_) => None,
            None => self.value_in_image(key, name),
        }
    }

    /// A value in the image.
    pub(crate) fn value_in_image(&mut self, key: &KeyPath, name: &str) -> Option<RegistryData> {
        let value = self.system.value(key, name);
        self.known(value, || format!("the value {name:?} of {key}"))
    }
}

/// Bytes of hexadecimal digits; an odd number has a zero in front.
fn bytes(digits: &str) -> Vec<u8> {
    let values: Vec<u8> = digits
        .chars()
        .filter_map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let padded: Vec<u8> = std::iter::repeat_n(0, values.len() % 2)
        .chain(values)
        .collect();
    padded
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |all, it| all << 4 | it))
        .collect()
}

/// The root key of a class.
pub(crate) fn classes(path: &str, is_64_bit: bool) -> Result<KeyPath, MsiError> {
    software_key(&format!(r"Classes\{path}"), is_64_bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys below `HKLM\SOFTWARE` that programs of 32 and 64 bits name, and those they get.
    const KEYS: &str = r"
64 Contoso\App => Contoso\App
32 Contoso\App => WOW6432Node\Contoso\App
32 Classes\.abc => Classes\.abc
32 Classes\CLSID\{0} => Classes\WOW6432Node\CLSID\{0}
32 Classes\CLSIDs => Classes\CLSIDs
32 Policies\X => Policies\X
32 Microsoft\Windows\CurrentVersion\Run => WOW6432Node\Microsoft\Windows\CurrentVersion\Run
32 Microsoft\Windows\CurrentVersion\App Paths\q.exe => Microsoft\Windows\CurrentVersion\App Paths\q.exe
32 Microsoft\Windows NT\CurrentVersion\Image File Execution Options\q.exe => Microsoft\Windows NT\CurrentVersion\Image File Execution Options\q.exe
32 Microsoft\Windows NT\CurrentVersion\Language Pack => Microsoft\Windows NT\CurrentVersion\Language Pack
32 RegisteredApplications => RegisteredApplications
32 WOW6432Node\X => WOW6432Node\X
64 WOW6432Node\Classes\TypeLib\{0} => Classes\TypeLib\{0}
";

    #[test]
    fn programs_of_32_bits_have_their_own_keys() {
        for case in KEYS.trim().lines() {
            let (named, expected) = case.split_once(" => ").unwrap();
            let (bits, below) = named.split_once(' ').unwrap();
            let key = software_key(below, bits == "64").unwrap().to_string();
            assert_eq!(key, format!(r"HKLM\SOFTWARE\{expected}"));
        }
    }

    #[test]
    fn digits_are_bytes() {
        assert_eq!(bytes("00ffA0"), [0, 0xff, 0xa0]);
        assert_eq!(bytes("fff"), [0x0f, 0xff]);
        assert!(bytes("").is_empty());
    }
}
