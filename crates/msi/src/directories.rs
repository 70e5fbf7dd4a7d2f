//! The folders of a package: properties of Windows' own folders, and the `Directory` table.

use std::collections::BTreeMap;

use super::error::MsiError;
use super::session::{Session, long_name};

/// Maximum depth of directories.
const DEPTH: usize = 128;

/// Profile of the user, `~` below.
const PROFILE: &str = r"C:\Users\ContainerAdministrator";

/// Windows' folders for every package.
const FOLDERS: [(&str, &str); 21] = [
    ("AppDataFolder", r"~\AppData\Roaming\"),
    ("CommonAppDataFolder", r"C:\ProgramData\"),
    ("CommonFilesFolder", r"C:\Program Files (x86)\Common Files\"),
    ("CommonFiles64Folder", r"C:\Program Files\Common Files\"),
    ("FontsFolder", r"C:\Windows\Fonts\"),
    ("LocalAppDataFolder", r"~\AppData\Local\"),
    ("MyPicturesFolder", r"~\Pictures\"),
    (
        "NetHoodFolder",
        r"~\AppData\Roaming\Microsoft\Windows\Network Shortcuts\",
    ),
    ("PersonalFolder", r"~\Documents\"),
    (
        "PrintHoodFolder",
        r"~\AppData\Roaming\Microsoft\Windows\Printer Shortcuts\",
    ),
    ("ProgramFilesFolder", r"C:\Program Files (x86)\"),
    ("ProgramFiles64Folder", r"C:\Program Files\"),
    (
        "RecentFolder",
        r"~\AppData\Roaming\Microsoft\Windows\Recent\",
    ),
    (
        "SendToFolder",
        r"~\AppData\Roaming\Microsoft\Windows\SendTo\",
    ),
    ("System16Folder", r"C:\Windows\"),
    ("System64Folder", r"C:\Windows\System32\"),
    ("SystemFolder", r"C:\Windows\SysWOW64\"),
    ("TempFolder", r"~\AppData\Local\Temp\"),
    ("WindowsFolder", r"C:\Windows\"),
    ("WindowsVolume", r"C:\"),
    ("ProfileFolder", r"~\"),
];

/// Folders that depend on the users: that of the machine, and that of the user.
const PER_USER: [(&str, &str, &str); 7] = [
    (
        "AdminToolsFolder",
        r"C:\ProgramData\Microsoft\Windows\Start Menu\Programs\Administrative Tools\",
        r"~\AppData\Roaming\Microsoft\Windows\Start Menu\Programs\Administrative Tools\",
    ),
    ("DesktopFolder", r"C:\Users\Public\Desktop\", r"~\Desktop\"),
    ("FavoritesFolder", r"~\Favorites\", r"~\Favorites\"),
    (
        "ProgramMenuFolder",
        r"C:\ProgramData\Microsoft\Windows\Start Menu\Programs\",
        r"~\AppData\Roaming\Microsoft\Windows\Start Menu\Programs\",
    ),
    (
        "StartMenuFolder",
        r"C:\ProgramData\Microsoft\Windows\Start Menu\",
        r"~\AppData\Roaming\Microsoft\Windows\Start Menu\",
    ),
    (
        "StartupFolder",
        r"C:\ProgramData\Microsoft\Windows\Start Menu\Programs\StartUp\",
        r"~\AppData\Roaming\Microsoft\Windows\Start Menu\Programs\Startup\",
    ),
    (
        "TemplateFolder",
        r"C:\ProgramData\Microsoft\Windows\Templates\",
        r"~\AppData\Roaming\Microsoft\Windows\Templates\",
    ),
];

/// Folders of 64-bit programs, and those that a 32-bit package has in their place.
const PAIRS: [(&str, &str); 2] = [
    (r"C:\Program Files\", r"C:\Program Files (x86)\"),
    (r"C:\Windows\System32\", r"C:\Windows\SysWOW64\"),
];

impl Session<'_> {
    /// Sets the properties of Windows' folders.
    pub(crate) fn set_system_folders(&mut self) {
        let is_for_machine = self.is_for_machine();
        let per_user = PER_USER
            .map(|(name, machine, user)| (name, if is_for_machine { machine } else { user }));
        for (name, path) in FOLDERS.into_iter().chain(per_user) {
            self.set(name, path.replace('~', PROFILE));
        }
    }

    /// Resolves all directories, and sets their properties.
    pub(crate) fn resolve_directories(&mut self) -> Result<(), MsiError> {
        if self.property("ROOTDRIVE").is_empty() {
            self.set("ROOTDRIVE", r"C:\");
        }
        let mut resolved = BTreeMap::new();
        for row in self.database.rows("Directory") {
            self.resolve(row.text("Directory"), &mut resolved)?;
        }
        for (key, path) in &mut resolved {
            *path = self.mapped(path);
            self.set(key, path.clone());
        }
        self.directories = resolved;
        Ok(())
    }

    /// Changes the path of a directory and of those below it.
    pub(crate) fn move_directory(&mut self, key: &str, path: &str) -> Result<(), MsiError> {
        let Some(before) = self.directories.get(key).cloned() else {
            let why = format!("directory {key:?} does not exist");
            return Err(MsiError::damaged(why));
        };
        let path = normalized(path);
        let below: Vec<String> = self
            .directories
            .keys()
            .filter(|it| self.is_below(it, key))
            .cloned()
            .collect();
        for moved in below {
            let Some(old) = self.directories.get(&moved) else {
                continue;
            };
            // A directory below with a path of its own stays.
            if let Some(rest) = old.strip_prefix(&before) {
                let path = self.mapped(&format!("{path}{rest}"));
                self.set(&moved, path.clone());
                self.directories.insert(moved, path);
            }
        }
        Ok(())
    }

    /// The path of a directory. The log of a 32-bit package calls this `WIN64DUALFOLDERS`:
    /// <https://devblogs.microsoft.com/setup/different-packages-are-required-for-different-processor-architectures/>
    fn mapped(&self, path: &str) -> String {
        if self.summary.platform() == "Intel" {
            for (wide, narrow) in PAIRS {
                if let Some((start, rest)) = path.split_at_checked(wide.len())
                    && start.eq_ignore_ascii_case(wide)
                {
                    return format!("{narrow}{rest}");
                }
            }
        }
        path.to_owned()
    }

    fn is_below(&self, key: &str, above: &str) -> bool {
        let mut key = key;
        for _ in 0..DEPTH {
            if key == above {
                return true;
            }
            match self.database.find("Directory", "Directory", key) {
                Some(row) if row.text("Directory_Parent") != key => {
                    key = row.text("Directory_Parent");
                }
                _ => return false,
            }
        }
        false
    }

    /// Resolves a directory and those above it.
    fn resolve(
        &self,
        key: &str,
        resolved: &mut BTreeMap<String, String>,
    ) -> Result<String, MsiError> {
        // From the directory up to one that is known, with the names below it.
        let mut pending = Vec::new();
        let mut at = key;
        let mut path = loop {
            if let Some(path) = resolved.get(at) {
                break path.clone();
            }
            let property = self.property(at);
            if !property.is_empty() && at != "SourceDir" {
                let path = normalized(property);
                resolved.insert(at.to_owned(), path.clone());
                break path;
            }
            let Some(row) = self.database.find("Directory", "Directory", at) else {
                let why = format!("directory {at:?} does not exist");
                return Err(MsiError::damaged(why));
            };
            let parent = row.text("Directory_Parent");
            if parent.is_empty() || parent == at {
                let path = normalized(self.property("ROOTDRIVE"));
                resolved.insert(at.to_owned(), path.clone());
                break path;
            }
            pending.push(row);
            if pending.len() > DEPTH {
                let why = format!("directory {key:?} is inside itself");
                return Err(MsiError::damaged(why));
            }
            at = parent;
        };
        while let Some(row) = pending.pop() {
            let target = row.text("DefaultDir").split(':').next().unwrap_or_default();
            let name = long_name(target).trim_matches(' ');
            if name != "." && !name.is_empty() {
                path.push_str(name);
                path.push('\\');
            }
            resolved.insert(row.text("Directory").to_owned(), path.clone());
        }
        Ok(path)
    }
}

/// The value of a variable that names a folder of the profile.
pub(crate) fn profile_variable(name: &str) -> Option<String> {
    let below = match name.to_ascii_uppercase().as_str() {
        "USERPROFILE" => "",
        "APPDATA" => r"\AppData\Roaming",
        "LOCALAPPDATA" => r"\AppData\Local",
        _ => return None,
    };
    Some(format!("{PROFILE}{below}"))
}

/// A path as Windows Installer keeps it, by wine's tests: with a backslash at the end, single ones
/// between the names, and no spaces beside them.
fn normalized(path: &str) -> String {
    let path = path.replace('/', "\\");
    let start = match path.trim_start_matches(' ') {
        share if share.starts_with(r"\\") => r"\\",
        path if path.starts_with('\\') => r"\",
        _ => "",
    };
    let names = path.split('\\').map(|name| name.trim_matches(' '));
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    format!("{start}{}\\", names.join("\\"))
}
