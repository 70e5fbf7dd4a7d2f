//! Paths inside an image: absolute, on drive C, with names that are valid on Windows.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use wincimg_common::SerializeDisplay;
use wincimg_common::untrusted::QuotedText;
use wincimg_registry::name_folding::upcase;

/// Path of a file or folder in an image, such as `C:\app\site`. Copies share the names, because a
/// plan has each path several times.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay)]
pub struct ImagePath {
    components: Arc<[String]>,
}

/// Reason why a text is not a path inside an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PathError(String);

/// Names of devices, with any extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Longest file name, in UTF-16 code units.
const MAX_NAME: usize = 255;

/// Longest path, in bytes. Windows accepts 32,767 characters; no file is that deep, and folders are
/// listed one by one.
const MAX_PATH: usize = 4096;

/// Maximum number of names in a path.
const MAX_NAMES: usize = 128;

/// Returns that a path is too long, and why, if it is.
pub fn path_problem(path: &str) -> Option<String> {
    let problem = length_problem(path.len(), 1 + path.matches(['/', '\\']).count())?;
    let start: String = path.chars().take(40).collect();
    let start = start.escape_debug();
    Some(format!("the path \"{start}…\" is too long: {problem}"))
}

fn length_problem(bytes: usize, names: usize) -> Option<String> {
    if bytes > MAX_PATH {
        Some(format!("it has more than {MAX_PATH} bytes"))
    } else if names > MAX_NAMES {
        Some(format!("it has more than {MAX_NAMES} names"))
    } else {
        None
    }
}

/// Returns why a file name is invalid on Windows, if it is.
pub fn name_problem(name: &str) -> Option<&'static str> {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let is_numbered_device = || {
        let mut characters = stem.chars();
        let number = characters.next_back();
        let device = characters.as_str();
        (device.eq_ignore_ascii_case("COM") || device.eq_ignore_ascii_case("LPT"))
            && number.is_some_and(|number| matches!(number, '1'..='9' | '¹' | '²' | '³'))
    };
    if name.is_empty() {
        Some("it is empty")
    } else if name == "." || name == ".." {
        Some("it is a relative path component")
    } else if name.ends_with(['.', ' ']) {
        Some("it ends with a dot or a space")
    } else if name.contains(['<', '>', ':', '"', '|', '?', '*', '/', '\\']) {
        Some(r#"it has one of < > : " | ? * / \"#)
    } else if name.chars().any(|character| character < ' ') {
        Some("it has a control character")
    } else if DEVICES
        .iter()
        .any(|device| stem.eq_ignore_ascii_case(device))
        || is_numbered_device()
    {
        Some("it is reserved for a device")
    } else if name.encode_utf16().count() > MAX_NAME {
        Some("it is longer than 255 characters")
    } else {
        None
    }
}

/// Key of a path, which is equal for paths that Windows considers equal. Keys order parents before
/// their children and keep a folder's content together.
pub fn fold(path: &str) -> String {
    if path.is_ascii() {
        let mut key = path.replace('/', "\0");
        key.make_ascii_uppercase();
        return key;
    }
    folded(path).collect()
}

/// The characters of the key.
pub fn folded(path: &str) -> impl Iterator<Item = char> {
    path.chars().map(|c| if c == '/' { '\0' } else { upper(c) })
}

/// NTFS maps single code units by the same table as the registry.
fn upper(c: char) -> char {
    let upper = u16::try_from(u32::from(c)).ok().map(upcase);
    upper
        .and_then(|unit| char::from_u32(u32::from(unit)))
        .unwrap_or(c)
}

/// The top-level folders of every Windows.
pub const TOP_FOLDERS: [&str; 6] = [
    "inetpub", "Program Files", "Program Files (x86)", "ProgramData", "Users", "Windows",
];

/// Folders without which Windows does not run.
const ESSENTIAL_FOLDERS: [&str; 7] = [
    "Program Files",
    "ProgramData",
    "Users",
    "Windows",
    "Windows/System32",
    "Windows/System32/config",
    "Windows/System32/drivers",
];

/// Files of the registry. Layers change their keys elsewhere: a copy has no effect, or damages those
/// of the base.
pub const HIVE_FILES: [&str; 5] = [
    "Windows/System32/config/DEFAULT",
    "Windows/System32/config/SAM",
    "Windows/System32/config/SECURITY",
    "Windows/System32/config/SOFTWARE",
    "Windows/System32/config/SYSTEM",
];

impl ImagePath {
    /// Returns true if it is a folder without which Windows does not run, or one of [`HIVE_FILES`].
    pub fn is_essential(&self) -> bool {
        self.is_one_of(&ESSENTIAL_FOLDERS) || self.is_hive()
    }

    /// Returns true if it is one of [`HIVE_FILES`].
    pub fn is_hive(&self) -> bool {
        self.is_one_of(&HIVE_FILES)
    }

    fn is_one_of(&self, paths: &[&str]) -> bool {
        let own = self.components.join("/");
        paths.iter().any(|path| path.eq_ignore_ascii_case(&own))
    }

    /// Returns true if it is one of [`TOP_FOLDERS`] or inside one.
    pub fn is_of_windows(&self) -> bool {
        let top = self.components.first();
        top.is_some_and(|top| TOP_FOLDERS.iter().any(|own| own.eq_ignore_ascii_case(top)))
    }

    /// The root of the drive, `C:\`.
    pub fn drive() -> Self {
        Self {
            components: Arc::default(),
        }
    }

    /// The components, from the root of the drive.
    pub fn components(&self) -> &[String] {
        &self.components
    }

    /// Key shared by all spellings of the path; a folder's contents sort after it.
    pub fn key(&self) -> String {
        fold(&self.components.join("/"))
    }

    /// The components below another path, compared as Windows does; empty if the paths are equal.
    pub fn strip_prefix(&self, folder: &Self) -> Option<&[String]> {
        let (own, other) = (&self.components, &folder.components);
        let starts = own.len() >= other.len()
            && own
                .iter()
                .zip(other.iter())
                .all(|(own, other)| own.eq_ignore_ascii_case(other));
        starts.then(|| &own[other.len()..])
    }

    /// The path's first `names` components.
    #[must_use]
    pub fn up_to(&self, names: usize) -> Self {
        Self {
            components: self.components.iter().take(names).cloned().collect(),
        }
    }

    /// Its folder; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let above = self.components.len().checked_sub(1)?;
        Some(self.up_to(above))
    }

    /// Its last component; empty for the root.
    pub fn name(&self) -> &str {
        self.components.last().map_or("", String::as_str)
    }

    /// Appends components.
    pub fn join_all(
        &self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, PathError> {
        let mut components = self.components.to_vec();
        for name in names {
            let name = name.as_ref();
            check(name, name)?;
            components.push(name.to_owned());
        }
        Self::from_components(components)
    }

    fn from_components(components: Vec<String>) -> Result<Self, PathError> {
        let length = components.iter().map(|name| name.len() + 1).sum();
        match length_problem(length, components.len()) {
            Some(problem) => {
                let start: String = components.join(r"\").chars().take(40).collect();
                Err(PathError(format!(
                    "the path C:\\{start}… is too long: {problem}"
                )))
            }
            None => Ok(Self {
                components: components.into(),
            }),
        }
    }

    /// Appends a component.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        self.join_all([name])
    }
}

fn check(name: &str, path: &str) -> Result<(), PathError> {
    match name_problem(name) {
        None => Ok(()),
        Some(problem) => Err(PathError(format!(
            "invalid name {} in {}: {problem}",
            QuotedText(name),
            QuotedText(path)
        ))),
    }
}

impl FromStr for ImagePath {
    type Err = PathError;

    /// Accepts `C:\a\b`, `C:/a/b` and `/a/b`; a trailing separator is dropped.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_separator = |character| matches!(character, '/' | '\\');
        let shown = QuotedText(text);
        let rest = match text.split_at_checked(2) {
            Some((drive, rest)) if drive.eq_ignore_ascii_case("c:") => rest,
            Some((drive, _))
                if drive.ends_with(':') && drive.starts_with(|c: char| c.is_ascii_alphabetic()) =>
            {
                let problem = "is not on C:, the only drive of an image";
                return Err(PathError(format!("{shown} {problem}")));
            }
            _ => text,
        };
        let Some(inside) = rest.strip_prefix(is_separator) else {
            let expected = r"expected an absolute path in the image, C:\folder\file";
            return Err(PathError(format!("invalid path {shown}: {expected}")));
        };
        let inside = inside.strip_suffix(is_separator).unwrap_or(inside);
        if rest.len() == text.len() && inside.starts_with(is_separator) {
            let expected = r"expected a path in the image, C:\folder\file";
            return Err(PathError(format!("{shown} is a network path: {expected}")));
        }
        let mut components = Vec::new();
        if !inside.is_empty() {
            for name in inside.split(is_separator) {
                check(name, text)?;
                components.push(name.to_owned());
            }
        }
        Self::from_components(components)
    }
}

impl fmt::Display for ImagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r"C:\{}", self.components.join(r"\"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ImagePath, PathError> {
        text.parse()
    }

    #[test]
    fn every_spelling_of_a_path_is_the_same_path() {
        for text in [
            r"C:\app\site", "c:/app/site", "/app/site", r"\app\site\", "C:/app/site/",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), r"C:\app\site", "{text}");
        }
        assert_eq!(parse(r"C:\").unwrap().to_string(), r"C:\");
        assert_eq!(
            parse(r"C:\Ärger\naïve file.txt")
                .unwrap()
                .components()
                .len(),
            2
        );
    }

    #[test]
    fn a_path_has_a_length_that_folders_can_have() {
        let deep = |levels: usize| parse(&format!("C:{}", "/a".repeat(levels)));
        assert_eq!(deep(128).unwrap().components().len(), 128);
        for error in [
            deep(129).unwrap_err(),
            deep(20_000).unwrap_err(),
            deep(128).unwrap().join("a").unwrap_err(),
            parse(&format!("/{}", vec!["x".repeat(200); 21].join("/"))).unwrap_err(),
        ] {
            let said = error.to_string();
            assert!(said.contains("is too long") && said.len() < 120, "{said}");
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_or_nowhere_are_refused() {
        for text in [
            "", "app", r"app\site", "C:", "C:app", r"D:\app", r"C:\..\Windows", r"C:\app\..\..\x",
            r"C:\app\.\x", r"C:\app\\x", r"\\server\share",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        for (text, problem) in [
            (r"\\server\share", r#""\\server\share" is a network path"#),
            (r"D:\app", r#""D:\app" is not on C:"#),
            (r"C:\a|b", r#"invalid name "a|b" in "C:\a|b": "#),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }

    #[test]
    fn names_that_windows_forbids_are_refused() {
        for name in [
            "CON", "con.txt", "NUL.tar.gz", "COM1", "lpt9.log", "COM¹", "Aux ", "CONIN$", "a.",
            "a ", "a:b", "a?b", "a\u{1}b", "a\"b", "COM1 .txt",
        ] {
            assert!(name_problem(name).is_some(), "{name:?}");
        }
        assert!(name_problem(&"x".repeat(256)).is_some());
        for name in [
            "CONSOLE",
            "COM",
            "COM10",
            "LPT",
            "a.b.c",
            ".git",
            "x".repeat(255).as_str(),
            "naïve 😀",
        ] {
            assert_eq!(name_problem(name), None, "{name:?}");
        }
    }

    #[test]
    fn folding_puts_a_folder_right_before_its_content() {
        let mut paths = ["a.txt", "A/z", "a", "a b/c"];
        paths.sort_by_key(|path| fold(path));
        assert_eq!(paths, ["a", "A/z", "a b/c", "a.txt"]);
    }

    #[test]
    fn folding_joins_only_what_windows_joins() {
        assert_eq!(fold("Ünïcode"), fold("ÜNÏCODE"));
        assert_eq!(fold("ᾳ"), fold("ᾼ"));
        assert_ne!(fold("straße"), fold("strasse"));
        assert_ne!(fold("µ"), fold("Μ"));
    }
}
