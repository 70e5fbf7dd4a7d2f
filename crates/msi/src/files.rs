//! Files: those of the `File` table with their cabinets, copies, removals, folders, `.ini` entries.

use std::collections::BTreeMap;
use std::ops::Range;

use wincimg_common::wildcards;
use wincimg_registry::Presence;
use wincimg_windows::path::ImagePath;

use super::builder::Builder;
use super::database::Row;
use super::error::MsiError;
use super::plan::{InstalledContent, InstalledFile};
use super::session::{Session, join, long_name, without_dot};

const UNCOMPRESSED: u32 = 0x2000;
const COMPRESSED: u32 = 0x4000;

/// Read-only, hidden and system.
const MARKS: u32 = 0x1 | 0x2 | 0x4;

/// `InstallMode` of rows that remove during an installation.
pub(crate) const REMOVE_ON_INSTALL: u32 = 1;

impl Session<'_> {
    /// `InstallFiles`.
    pub(crate) fn install_files(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        let last = |row: &Row<'_>| row.number("LastSequence").unwrap_or_default();
        let media = self.database.rows("Media");
        let mut media: Vec<(i32, &str)> = media.map(|it| (last(&it), it.text("Cabinet"))).collect();
        media.sort_unstable();
        let mut marked = Vec::new();
        for row in self.installed_rows("File") {
            let key = row.text("File");
            let Some(path) = self.file(key)? else {
                continue;
            };
            let is_replacement = self.is_file(&path)?;
            let sequence = row.number("Sequence").unwrap_or_default();
            let attributes = row.flags("Attributes");
            let is_compressed = attributes & COMPRESSED != 0
                || attributes & UNCOMPRESSED == 0 && self.summary.is_compressed();
            let source = if is_compressed {
                let medium = media.iter().find(|(last, _)| *last >= sequence);
                let cabinet = medium.map(|(_, cabinet)| *cabinet).unwrap_or_default();
                if cabinet.is_empty() {
                    let why = format!("no cabinet has file {key:?}");
                    return Err(MsiError::damaged(why));
                }
                InstalledContent::Cabinet {
                    cabinet: cabinet.to_owned(),
                    member: key.to_owned(),
                }
            } else {
                InstalledContent::Beside(self.source_path(&row)?)
            };
            if attributes & MARKS != 0 {
                marked.push(path.clone());
            }
            let version = row.optional("Version").filter(|it| it.contains('.'));
            plan.file(InstalledFile {
                path,
                size: row.flags("FileSize").into(),
                version: version.map(str::to_owned),
                source,
                is_replacement,
            })?;
        }
        if let [first, rest @ ..] = marked.as_slice() {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let note = format!("read-only, hidden and system are left out: {first}{more}");
            self.notes.push(note);
        }
        Ok(())
    }

    /// True if the image has a file at a path.
    fn is_file(&mut self, path: &ImagePath) -> Result<bool, MsiError> {
        let found = match self.system.entry(path) {
            // A package that is only looked at: its own files are known.
            Presence::Unknown if self.system.content(path) == Presence::Absent => Presence::Absent,
            found => found,
        };
        match self.known(found, || format!("whether {path} exists")) {
            Some(true) => Err(MsiError::Fails(format!("{path} is a folder in the image"))),
            found => Ok(found.is_some()),
        }
    }

    /// Path of an uncompressed file beside the package.
    fn source_path(&self, row: &Row<'_>) -> Result<String, MsiError> {
        const DEPTH: usize = 128;
        let short = |name: &str| match name.split_once('|') {
            Some((short, _)) if self.summary.has_short_names() => short.to_owned(),
            _ => long_name(name).to_owned(),
        };
        let mut names = vec![short(row.text("FileName"))];
        let component = self.components.get(row.text("Component_"));
        let mut at = component
            .map(|it| it.directory.as_str())
            .unwrap_or_default();
        while let Some(row) = self.database.find("Directory", "Directory", at) {
            let parent = row.text("Directory_Parent");
            if parent.is_empty() || parent == at {
                break;
            }
            let default = row.text("DefaultDir");
            let name = short(default.rsplit(':').next().unwrap_or_default());
            if name != "." {
                names.push(name);
            }
            if names.len() > DEPTH {
                return Err(MsiError::damaged(format!(
                    "directory {at:?} is inside itself"
                )));
            }
            at = parent;
        }
        names.reverse();
        let names: Vec<&str> = names.iter().map(|name| without_dot(name)).collect();
        let is_wrong = |name: &str| wincimg_windows::path::name_problem(name).is_some();
        if let Some(name) = names.iter().find(|name| is_wrong(name)) {
            return Err(MsiError::damaged(format!("invalid source name {name:?}")));
        }
        Ok(names.join("/"))
    }

    /// `DuplicateFiles`.
    pub(crate) fn duplicate_files(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("DuplicateFile") {
            let Some(from) = self.file(row.text("File_"))? else {
                continue;
            };
            let Some(file) = plan.planned(&from).cloned() else {
                continue;
            };
            let folder = match row.optional("DestFolder") {
                Some(key) => self.folder_or_property(key)?,
                None => from.parent(),
            };
            let Some(folder) = folder else {
                continue;
            };
            let own = from.components().last().map_or("", String::as_str);
            let name = row.optional("DestName").map_or(own, long_name);
            let path = join(&folder, name)?;
            plan.file(InstalledFile {
                path,
                is_replacement: false,
                ..file
            })?;
        }
        Ok(())
    }

    /// `RemoveFiles`: of the image; nothing of the package is there yet.
    pub(crate) fn remove_files(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        let mut folders = Vec::new();
        for row in self.installed_rows("RemoveFile") {
            if row.flags("InstallMode") & REMOVE_ON_INSTALL == 0 {
                continue;
            }
            let Some(folder) = self.folder_or_property(row.text("DirProperty"))? else {
                continue;
            };
            let pattern = long_name(row.text("FileName"));
            if pattern.is_empty() {
                folders.push(folder);
                continue;
            }
            for name in self.matches(&folder, pattern) {
                let path = join(&folder, &name)?;
                if self.system.entry(&path) == Presence::Present(false) {
                    plan.remove(path)?;
                }
            }
        }
        for folder in folders {
            if self.is_emptied(&folder, plan)? {
                plan.remove_folder(folder)?;
            }
        }
        Ok(())
    }

    /// True for a folder of the image that has nothing but what is removed.
    fn is_emptied(&mut self, folder: &ImagePath, plan: &Builder) -> Result<bool, MsiError> {
        let names = self.system.names(folder);
        let Some(names) = self.known(names, || format!("whether {folder} is empty")) else {
            return Ok(false);
        };
        for name in names {
            if !plan.removes(&join(folder, &name)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The names in a folder of the image that match a pattern.
    fn matches(&mut self, folder: &ImagePath, pattern: &str) -> Vec<String> {
        let names = self.system.names(folder);
        let names = self.known(names, || format!(r"whether {folder}\{pattern} exists"));
        let mut names = names.unwrap_or_default();
        names.retain(|name| is_match(pattern, name));
        names
    }

    /// `MoveFiles` moves files of the image.
    pub(crate) fn move_files(&mut self) -> Result<(), MsiError> {
        for row in self.installed_rows("MoveFile") {
            let Some(folder) = self.folder_or_property(row.text("SourceFolder"))? else {
                continue;
            };
            let pattern = long_name(row.text("SourceName"));
            let (from, is_there) = if pattern.is_empty() {
                // The folder is the path of a file.
                let found = self.system.entry(&folder);
                let found = self.known(found, || format!("whether {folder} exists"));
                (folder.to_string(), found == Some(false))
            } else {
                let is_there = !self.matches(&folder, pattern).is_empty();
                (format!(r"{folder}\{pattern}"), is_there)
            };
            if is_there {
                let why = format!("moving {from} of the image is not supported");
                return Err(MsiError::unsupported(why));
            }
        }
        Ok(())
    }

    /// `CreateFolders`.
    pub(crate) fn create_folders(&self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("CreateFolder") {
            plan.folder(&self.folder(row.text("Directory_"))?)?;
        }
        Ok(())
    }

    /// `RemoveIniValues`: of the image; nothing of the package is there yet.
    pub(crate) fn remove_ini(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        for row in self.installed_rows("RemoveIniFile") {
            let Some(path) = self.ini_path(&row)? else {
                continue;
            };
            if self.system.entry(&path) == Presence::Absent {
                continue;
            }
            let mut lines = self.ini_lines(&path, plan)?;
            let entry = self.ini_entry(&row)?;
            let Some(at) = entry.place(&lines) else {
                continue;
            };
            match entry.action {
                REMOVE_LINE => {
                    lines.remove(at);
                    plan.bytes(path, ini_bytes(&lines))?;
                }
                REMOVE_TAG if entry.has_tag(&lines[at]) => {
                    let why =
                        format!("removing a part of an .ini entry in {path} is not supported");
                    return Err(MsiError::unsupported(why));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// `WriteIniValues`.
    pub(crate) fn write_ini(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        let mut files: BTreeMap<ImagePath, Vec<String>> = BTreeMap::new();
        for row in self.installed_rows("IniFile") {
            let Some(path) = self.ini_path(&row)? else {
                continue;
            };
            if !files.contains_key(&path) {
                let lines = self.ini_lines(&path, plan)?;
                files.insert(path.clone(), lines);
            }
            let entry = self.ini_entry(&row)?;
            if let Some(lines) = files.get_mut(&path) {
                entry.write(lines);
            }
        }
        for (path, lines) in files {
            plan.bytes(path, ini_bytes(&lines))?;
        }
        Ok(())
    }

    /// The file of a row.
    fn ini_path(&self, row: &Row<'_>) -> Result<Option<ImagePath>, MsiError> {
        let folder = row.optional("DirProperty").unwrap_or("WindowsFolder");
        let folder = self.folder_or_property(folder)?;
        let path = folder.map(|folder| join(&folder, long_name(row.text("FileName"))));
        path.transpose()
    }

    /// The entry of a row.
    fn ini_entry(&self, row: &Row<'_>) -> Result<IniEntry, MsiError> {
        Ok(IniEntry {
            section: self.format(row.text("Section"))?,
            key: self.format(row.text("Key"))?,
            value: self.format(row.text("Value"))?,
            action: row.flags("Action"),
        })
    }

    /// The present lines of a file.
    fn ini_lines(&mut self, path: &ImagePath, plan: &Builder) -> Result<Vec<String>, MsiError> {
        let content = match plan.planned(path).map(|file| &file.source) {
            Some(InstalledContent::Bytes(bytes)) => Presence::Present(bytes.clone()),
            Some(_) => {
                let why =
                    format!("an .ini entry in {path}, a file of the package, is not supported");
                return Err(MsiError::unsupported(why));
            }
            None => self.system.content(path),
        };
        let content = self.known(content, || format!("the content of {path}"));
        let text = String::from_utf8(content.unwrap_or_default())
            .map_err(|_| MsiError::unsupported(format!("{path} is not ASCII or UTF-8")))?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

fn ini_bytes(lines: &[String]) -> Vec<u8> {
    (lines.join("\r\n") + "\r\n").into_bytes()
}

struct IniEntry {
    section: String,
    key: String,
    value: String,
    action: u32,
}

const ADD_LINE: u32 = 1;
const REMOVE_LINE: u32 = 2;
const ADD_TAG: u32 = 3;
const REMOVE_TAG: u32 = 4;

impl IniEntry {
    /// The lines of its section, without the header.
    fn section(&self, lines: &[String]) -> Option<Range<usize>> {
        let header = format!("[{}]", self.section);
        let is_header = |line: &String| line.trim().eq_ignore_ascii_case(&header);
        let start = lines.iter().position(is_header)? + 1;
        let is_section = |line: &String| line.trim().starts_with('[');
        let end = lines[start..].iter().position(is_section);
        Some(start..end.map_or(lines.len(), |end| start + end))
    }

    /// The place of the line with its key.
    fn place(&self, lines: &[String]) -> Option<usize> {
        self.section(lines)?.find(|at| {
            let key = lines[*at].split('=').next().unwrap_or_default();
            key.trim().eq_ignore_ascii_case(&self.key)
        })
    }

    /// True if its value is one of the list in a line.
    fn has_tag(&self, line: &str) -> bool {
        let value = line.split_once('=').map_or("", |(_, value)| value);
        value.split(',').any(|tag| tag.trim() == self.value)
    }

    /// Adds or replaces the entry, as `WritePrivateProfileString` does.
    fn write(&self, lines: &mut Vec<String>) {
        let line = format!("{}={}", self.key, self.value);
        match self.place(lines) {
            Some(_) if self.action == ADD_LINE => {}
            Some(at) if self.action == ADD_TAG => {
                if !self.has_tag(&lines[at]) {
                    let value = lines[at].split_once('=').map_or("", |(_, value)| value);
                    lines[at] = format!("{}={value},{}", self.key, self.value);
                }
            }
            Some(at) => lines[at] = line,
            None => match self.section(lines) {
                Some(section) => lines.insert(section.end, line),
                None => lines.extend([format!("[{}]", self.section), line]),
            },
        }
    }
}

/// Matches a name with `*` and `?`, without case. `*.*` is any name.
pub(crate) fn is_match(pattern: &str, name: &str) -> bool {
    pattern == "*.*" || wildcards::matches(&pattern.to_lowercase(), &name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_in_windows() {
        for (pattern, name, matches) in [
            ("*.*", "readme", true),
            ("*.log", "a.LOG", true),
            ("*.log", "a.log.txt", false),
            ("a?c*", "abcdef", true),
            ("*a*b", "xaxbxb", true),
            ("", "a", false),
        ] {
            assert_eq!(is_match(pattern, name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn ini_entries_go_to_their_section() {
        let mut lines: Vec<String> = ["[a]", "x=1", "[b]", "y=2"].map(str::to_owned).to_vec();
        let mut write = |section: &str, key: &str, value: &str, action| {
            let entry = IniEntry {
                section: section.to_owned(),
                key: key.to_owned(),
                value: value.to_owned(),
                action,
            };
            entry.write(&mut lines);
        };
        write("A", "z", "3", 0);
        write("b", "Y", "5", 0);
        write("b", "y", "6", ADD_LINE);
        write("a", "x", "2", ADD_TAG);
        write("c", "n", "0", 0);
        assert_eq!(lines, ["[a]", "x=1,2", "z=3", "[b]", "Y=5", "[c]", "n=0"]);
    }
}
